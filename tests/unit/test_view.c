/* SPDX-License-Identifier: Apache-2.0 */
/* test_view.c - what goes to a terminal, and to a pipe where lines collapse. */
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/resource.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/burst.h"
#include "launcher/log/live.h"
#include "launcher/log/view.h"

#define RANKS 20
#define MS    1000000LL

static struct route route;
static struct line_stream stream[RANKS * RAW_STREAMS];
static struct line_sink sink;
static struct buf out;
static int master = -1, slave = -1;
static int64_t now;

static void
begin(void)
{
	struct route_config config = {
		.ranks = RANKS,
		.size = RANKS,
		.show = "all",
		.prefix = "{rank}:",
	};
	struct winsize size = { .ws_col = 20, .ws_row = 10 };
	struct xr_error err;

	cr_assert_eq(route_compile(&route, &config, &err), XR_OK);
	cr_assert_eq(openpty(&master, &slave, NULL, NULL, &size), 0);
	for (uint32_t i = 0; i < RANKS * RAW_STREAMS; i++)
		stream[i] = (struct line_stream){ .number = i };
	now = 1000000 * MS;
}

static void
end(void)
{
	view_free(sink.view);
	route_fini(&route);
	buf_fini(&out);
	fd_close(master);
	fd_close(slave);
}

TestSuite(view, .init = begin, .fini = end);

static void
open_view(bool tty, bool screen, bool collapse)
{
	struct view_config config = {
		.out = &out,
		.route = &route,
		.fd = slave,
		.tty = tty,
		.screen = screen,
		.collapse = collapse,
	};

	sink = (struct line_sink){ .out = &out, .filter = tty };
	sink.view = view_new(&config);
	cr_assert_not_null(sink.view);
}

static void
resize(unsigned short cols, unsigned short rows)
{
	struct winsize size = { .ws_col = cols, .ws_row = rows };

	cr_assert_eq(ioctl(slave, TIOCSWINSZ, &size), 0);
}

/* @rank writes @text; gives what of it waits. */
static size_t
say_as(uint32_t rank, const char *text, enum line_end how)
{
	uint32_t n = rank * RAW_STREAMS;
	struct span data = { text, strlen(text) };

	return data.len -
		line_cut(&sink, &stream[n], &route.prefix[n], data, how);
}

static size_t
say(uint32_t rank, const char *text)
{
	return say_as(rank, text, LINE_MORE);
}

static void
turn(int64_t ms)
{
	now += ms * MS;
	buf_clear(&out);
	view_known(sink.view, now);
	view_begin(sink.view, now);
}

static void
expect(const char *want)
{
	view_paint(sink.view);
	cr_expect_str_eq(buf_text(&out), want);
}

#define LIVE(rows) "\033[?7l" rows "\033[?7h\033[J"
#define NEXT       "\033[K\n"

/* --- what is seen of a line --- */

static void
expect_seen(const char *line, const char *want)
{
	struct span seen = live_seen((struct span){ line, strlen(line) });

	cr_expect_eq(seen.len, strlen(want), "%s", want);
	cr_expect_eq(memcmp(seen.at, want, seen.len), 0, "%s", want);
}

Test(view, of_a_line_the_last_state_is_seen)
{
	expect_seen("", "");
	expect_seen("plain", "plain");
	expect_seen("one\rtwo", "two");
	expect_seen("one\rtwo\r", "two");
	expect_seen("one\rtwo\r\r", "two");
	expect_seen("\rone", "one");
	expect_seen("\r", "");
	expect_seen("\r\r\r", "");
	expect_seen("a\r\rb", "b");
}

/* --- a screen --- */

Test(view, a_line_is_out_at_once_and_equal_ones_widen_it)
{
	open_view(true, true, true);
	turn(0);
	say(0, "hello\n");
	expect(" 0:hello\n");
	turn(10);
	say(3, "hello\n");
	say(4, "hello\n");
	expect("\r\033[1A\033[J0,3-4:hello\n");
	turn(10);
	expect("");
	turn(100);
	say(5, "hello\n");
	expect(" 5:hello\n");
}

Test(view, what_comes_in_one_turn_is_written_once)
{
	open_view(true, true, true);
	turn(0);
	for (uint32_t r = 0; r < RANKS; r++)
		say(r, "a\nb\n");
	expect("0-19:a\n0-19:b\n");
}

Test(view, lines_below_are_written_again_as_high_as_they_are)
{
	open_view(true, true, true);
	turn(0);
	say(0, "first\n0123456789012345678901\n");
	expect(" 0:first\n 0:0123456789012345678901\n");
	turn(1);
	say(1, "first\n");
	expect("\r\033[3A\033[J0-1:first\n 0:0123456789012345678901\n");
}

Test(view, a_line_of_unknown_height_ends_what_may_change)
{
	open_view(true, true, true);
	turn(0);
	say(0, "first\n\xf0\x9f\x98\x80\n");
	view_paint(sink.view);
	turn(1);
	say(1, "first\n\xf0\x9f\x98\x80\n");
	expect(" 1:first\n 1:\xf0\x9f\x98\x80\n");
}

Test(view, what_scrolled_away_changes_no_more)
{
	open_view(true, true, true);
	turn(0);
	say(0, "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
	view_paint(sink.view);
	turn(1);
	say(1, "4\n");
	expect(" 1:4\n");
	turn(1);
	say(2, "8\n");
	expect("\r\033[2A\033[J0,2:8\n 1:4\n");
}

Test(view, a_list_of_ranks_above_20_characters_is_their_number)
{
	static const uint32_t fits[] = { 0, 2, 4, 6, 7, 9, 10, 12, 14 };

	open_view(true, true, true);
	turn(0);
	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++)
		say(fits[i], "fits\n");
	expect("0,2,4,6-7,9-10,12,14:fits\n");
	turn(1);
	for (uint32_t r = 0; r <= 16; r += 2)
		say(r, "even\n");
	expect("9 ranks:even\n");
}

Test(view, lines_that_fill_the_screen_above_live_rows_change_no_more)
{
	char high[82];

	memset(high, 'x', sizeof(high));
	high[77] = '\n';
	high[78] = '\0';
	open_view(true, true, true);
	turn(0);
	say(0, "first\n");
	say(0, high); /* 4 rows, as many as are in reach */
	view_paint(sink.view);
	turn(1);
	say(1, "first\n");
	expect(" 1:first\n");
	view_free(sink.view);
	open_view(true, true, true);
	turn(0);
	say(0, high);
	view_paint(sink.view);
	turn(1);
	say(1, high);
	view_paint(sink.view);
	cr_expect_eq(strncmp(buf_text(&out), "\r\033[4A\033[J0-1:xxx", 15), 0);
	high[77] = 'x';
	high[78] = '\n';
	high[79] = '\0';
	turn(1000);
	say(0, "second\n");
	say(0, high); /* 5 rows */
	view_paint(sink.view);
	turn(1);
	say(1, "second\n");
	expect(" 1:second\n");
	turn(1);
	say(1, high);
	view_paint(sink.view);
	cr_expect_eq(strncmp(buf_text(&out), " 1:xxx", 6), 0);
}

Test(view, a_single_live_row_that_was_lost_is_painted_again)
{
	open_view(true, true, true);
	turn(0);
	say(1, "\r1");
	view_paint(sink.view);
	turn(100);
	expect("");
	view_lost(sink.view);
	cr_expect_not(view_moves(sink.view));
	turn(0);
	expect(LIVE(" 1:1"));
}

Test(view, without_room_for_output_no_time_is_put)
{
	struct route_config config = route.config;
	struct xr_error err;

	route_fini(&route);
	config.prefix = "{rank} {time}:";
	cr_assert_eq(route_compile(&route, &config, &err), XR_OK);
	open_view(true, true, true);
	turn(0);
	say(0, "a\n");
	buf_fini(&out);
	out.bad = XR_E_NOMEM;
	view_paint(sink.view);
	cr_expect_eq(out.bad, XR_E_NOMEM);
	cr_expect_eq(out.len, 0);
}

Test(view, without_collapse_all_lines_are_there)
{
	open_view(true, true, false);
	turn(0);
	say(0, "a\n");
	say(1, "a\n");
	expect(" 0:a\n 1:a\n");
}

Test(view, progress_stands_below_and_is_written_over)
{
	open_view(true, true, true);
	turn(0);
	cr_expect_eq(say(0, "\r 10%"), 4);
	cr_expect(stream[0].quiet);
	expect(LIVE(" 0: 10%"));
	turn(10);
	cr_expect_eq(say(0, " 10%\r 20%\r 30%\r"), 5);
	expect(""); /* too soon */
	cr_expect_eq(view_due(sink.view), now + 40 * MS);
	turn(40);
	expect("\r" LIVE(" 0: 30%"));
	cr_expect_eq(view_due(sink.view), 0);
	turn(1);
	say(1, "whole\n");
	say(2, "\rx");
	expect("\r\033[J 1:whole\n" LIVE(" 0: 30%" NEXT " 2:x"));
	turn(100);
	say(0, " 30%\r 40%");
	expect("\r\033[1A" LIVE(" 0: 40%" NEXT " 2:x"));
	turn(1);
	cr_expect_eq(say(0, " 40%\r100%\n"), 0);
	expect("\r\033[1A\033[J 0:100%\n" LIVE(" 2:x"));
	turn(1);
	say_as(2, "x", LINE_LAST);
	expect("\r\033[J 2:x\n");
}

Test(view, nothing_is_written_for_what_did_not_change)
{
	open_view(true, true, true);
	turn(0);
	say(0, "\rsame");
	view_paint(sink.view);
	turn(100);
	say(0, "same\rsame");
	expect("");
	cr_expect_eq(view_due(sink.view), 0);
}

Test(view, a_prompt_is_live_after_a_while_and_needs_no_mark)
{
	open_view(true, true, true);
	turn(0);
	cr_expect_eq(say(0, "name? "), 6);
	cr_expect_not(stream[0].quiet);
	expect("");
	cr_expect_eq(say_as(0, "name? ", LINE_IDLE), 6);
	cr_expect(stream[0].quiet);
	expect(LIVE(" 0:name? "));
	turn(1000);
	cr_expect_eq(say(0, "name? joe\n"), 0);
	expect("\r\033[J 0:name? joe\n");
}

Test(view, a_colour_of_a_live_row_ends_with_it)
{
	open_view(true, true, true);
	turn(0);
	say(0, "\r\033[31m0123456789012345678901234567890\033[0m");
	say(1, "\rx");
	expect(LIVE(" 0:\033[31m0123456789012345\033[0m" NEXT " 1:x"));
}

Test(view, live_rows_are_clipped_and_no_more_than_half_the_screen)
{
	open_view(true, true, true);
	turn(0);
	say(0, "\r0123456789012345678901234567890");
	expect(LIVE(" 0:0123456789012345"));
	turn(100);
	for (uint32_t r = 1; r < 7; r++)
		say(r, "\rx");
	view_paint(sink.view);
	cr_expect_str_eq(strstr(buf_text(&out), " 3:"),
		" 3:x" NEXT "... and 3 more\033[?7h\033[J");
}

Test(view, words_between_find_no_live_row)
{
	open_view(true, true, true);
	turn(0);
	say(0, "\r1");
	view_paint(sink.view);
	turn(1);
	view_break(sink.view);
	buf_put_text(&out, "xrun: words\n");
	expect("\r\033[Jxrun: words\n" LIVE(" 0:1"));
}

Test(view, another_size_paints_live_rows_anew_and_leaves_lines)
{
	open_view(true, true, true);
	turn(0);
	say(0, "line\n");
	say(0, "\r1");
	say(1, "\r1");
	view_paint(sink.view);
	resize(30, 10);
	turn(10);
	say(2, "line\n");
	expect("\r\033[1A\033[J 2:line\n" LIVE(" 0:1" NEXT " 1:1"));
	resize(30, 8);
	turn(1); /* though nothing came */
	expect("\r\033[1A\033[J" LIVE(" 0:1" NEXT " 1:1"));
	turn(1);
	say(3, "line\n"); /* where the other stands by now, nobody knows */
	expect("\r\033[1A\033[J 3:line\n" LIVE(" 0:1" NEXT " 1:1"));
}

Test(view, where_others_wrote_meanwhile_nothing_is_erased)
{
	open_view(true, true, true);
	turn(0);
	say(0, "line\n");
	say(1, "\r1");
	say(2, "\r2");
	view_paint(sink.view);
	view_lost(sink.view);
	turn(100);
	say(3, "line\n");
	expect(" 3:line\n" LIVE(" 1:1" NEXT " 2:2"));
}

Test(view, the_last_states_stay)
{
	open_view(true, true, true);
	turn(0);
	say(0, "\r1");
	say(1, "\r2");
	view_paint(sink.view);
	turn(0);
	view_end(sink.view);
	cr_expect_str_eq(buf_text(&out), "\r\033[1A\033[J 0:1\n 1:2\n");
}

Test(view, a_long_line_stands_alone_and_ends_at_a_carriage_return)
{
	static char big[LINE_HOLD + 1];

	memset(big, 'x', LINE_HOLD);
	open_view(true, true, true);
	turn(0);
	say(1, "\r1");
	view_paint(sink.view);
	turn(0);
	cr_expect_eq(say(0, big), 0);
	cr_expect_eq(sink.holder, &stream[0]);
	cr_expect_eq(strncmp(buf_text(&out), "\r\033[J 0:xxx", 10), 0);
	buf_clear(&out);
	cr_expect_eq(say(0, "y\r"), 1);
	cr_expect_eq(say(0, "\rnext"), 4);
	cr_expect_null(sink.holder);
	expect("y\n" LIVE(" 0:next" NEXT " 1:1"));
}

/* A reader that keeps what waits would fill its memory, or read no further. */
Test(view, carriage_returns_without_end_do_not_wait)
{
	static char many[2 * LINE_HOLD + 1], big[2 * LINE_HOLD + 1];

	memset(many, '\r', 2 * LINE_HOLD);
	memcpy(big, many, sizeof(big));
	memset(big, 'x', LINE_HOLD);
	open_view(true, true, true);
	turn(0);
	cr_expect_eq(say(0, many), 1);
	cr_expect(stream[0].quiet);
	expect("");
	memcpy(many, "100%", 4);
	cr_expect_eq(say(0, many), 1);
	expect(" 0:100%\n");
	turn(1);
	cr_expect_eq(say(0, "\r\n"), 0);
	expect("");
	turn(1);
	cr_expect_eq(say(0, big), 1);
	cr_expect_null(sink.holder);
	cr_expect_eq(buf_text(&out)[out.len - 1], '\n');
	turn(1);
	cr_expect_eq(say(0, "\rnext\n"), 0);
	expect(" 0:next\n");
}

/* --- other terminals --- */

Test(view, elsewhere_progress_is_a_line_now_and_then)
{
	open_view(true, false, true);
	turn(0);
	cr_expect_eq(say(0, "\r 1%\r 2%"), 3);
	cr_expect(stream[0].quiet);
	expect("");
	cr_expect_eq(view_due(sink.view), 0);
	turn(9999);
	cr_expect_eq(say(0, " 2%\r 3%"), 3);
	expect("");
	turn(1);
	cr_expect_eq(say(0, " 3%\r 4%"), 0);
	expect(" 0: 4%\n");
	turn(1);
	cr_expect_eq(say(0, "\n"), 0); /* it is there already */
	expect("");
	turn(1);
	cr_expect_eq(say(0, "1\r2\r3\r\n"), 0);
	expect(" 0:3\n");
}

Test(view, elsewhere_an_unfinished_line_goes_on_behind_a_mark)
{
	open_view(true, false, true);
	turn(0);
	cr_expect_eq(say_as(0, "wait", LINE_IDLE), 0);
	expect(" 0:wait\n");
	turn(1);
	say(0, "ing\n");
	expect(" 0:…ing\n");
}

Test(view, elsewhere_nothing_collapses)
{
	open_view(true, false, true);
	turn(0);
	say(0, "a\n");
	say(1, "a\n");
	expect(" 0:a\n 1:a\n");
}

/* --- pipes --- */

Test(view, in_a_pipe_lines_wait_for_others)
{
	open_view(false, false, true);
	turn(0);
	say(0, "a\rb\n");
	expect("");
	cr_expect_eq(view_due(sink.view), now + 100 * MS);
	turn(99);
	say(1, "a\rb\n");
	say(1, "c\n");
	expect("");
	turn(1);
	expect("0-1:a\rb\n");
	turn(99);
	expect(" 1:c\n");
	cr_expect_eq(view_due(sink.view), 0);
}

Test(view, in_a_pipe_every_line_comes_out_in_order)
{
	struct buf all = { 0 };
	char line[16];
	size_t at = 0;

	open_view(false, false, true);
	for (int i = 0; i < 300; i++) {
		turn(1);
		snprintf(line, sizeof(line), "%d\n", i);
		say(0, line);
		say(1, line);
		view_paint(sink.view);
		buf_put(&all, buf_text(&out), out.len);
	}
	turn(0);
	view_end(sink.view);
	buf_put(&all, buf_text(&out), out.len);
	for (int i = 0; i < 300; i++) {
		snprintf(line, sizeof(line), "0-1:%d\n", i);
		cr_assert_eq(strncmp(buf_text(&all) + at, line, strlen(line)),
			0, "%s", line);
		at += strlen(line);
	}
	cr_expect_eq(at, all.len);
	buf_fini(&all);
}

Test(view, a_prefix_without_ranks_collapses_nothing)
{
	struct route_config config = route.config;
	struct xr_error err;

	route_fini(&route);
	config.prefix = "none";
	cr_assert_eq(route_compile(&route, &config, &err), XR_OK);
	open_view(false, false, true);
	turn(0);
	say(0, "a\n");
	say(1, "a\n");
	expect("a\na\n");
}

static void
open_stored(bool tty)
{
	struct view_config config = {
		.out = &out,
		.route = &route,
		.fd = slave,
		.tty = tty,
		.collapse = true,
		.stored = true,
	};

	sink = (struct line_sink){ .out = &out, .filter = tty };
	sink.view = view_new(&config);
	cr_assert_not_null(sink.view);
}

/* As say(), of a line that came at @ms. */
static void
said_at(int64_t ms, uint32_t rank, const char *text)
{
	view_came(sink.view, ms * MS);
	say(rank, text);
}

Test(view, stored_lines_are_joined_by_the_times_at_which_they_came)
{
	for (int tty = 0; tty < 2; tty++) {
		open_stored(tty != 0);
		turn(0);
		said_at(1000, 0, "a\n");
		said_at(1099, 1, "a\n");
		said_at(1100, 2, "a\n");
		expect("0-1:a\n");
		said_at(1150, 3, "a\n");
		cr_expect_eq(view_due(sink.view), now + 50 * MS);
		view_end(sink.view);
		cr_expect_str_eq(buf_text(&out), "0-1:a\n2-3:a\n");
		if (tty == 0)
			view_free(sink.view);
	}
}

Test(view, a_clock_that_was_set_back_keeps_no_stored_line)
{
	open_stored(true);
	turn(0);
	said_at(100000, 0, "a\n");
	said_at(1000, 1, "a\n");
	expect(" 0:a\n");
	view_came(sink.view, 1100 * MS);
	expect(" 0:a\n 1:a\n");
}

Test(view, lines_that_came_together_are_one_however_late_they_are_put)
{
	int64_t came;

	open_view(false, false, true);
	turn(0);
	came = now;
	say(0, "a\n");
	expect("");
	for (uint32_t rank = 1; rank < 4; rank++) {
		now += 2 * BURST_NS;
		view_begin(sink.view, now);
		view_came(sink.view, came);
		say(rank, "a\n");
		view_known(sink.view, came + BURST_NS - 1);
		expect("");
		cr_expect_eq(view_due(sink.view), came + BURST_NS);
	}
	view_known(sink.view, came + BURST_NS);
	expect("0-3:a\n");
}

/* Longer than what the heap has to give; what malloc() asks the kernel for is
 * refused. */
Test(view, a_line_without_memory_goes_straight_out)
{
	static char text[300001], want[300032];
	struct rlimit none = { .rlim_cur = 1, .rlim_max = RLIM_INFINITY };
	struct rlimit before;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("it reserves memory itself");
#endif
	memset(text, 'x', sizeof(text) - 2);
	text[sizeof(text) - 2] = '\n';
	open_view(false, false, true);
	turn(0);
	cr_assert_not_null(buf_room(&out, 2 * sizeof(text)));
	buf_clear(&out);
	say(0, "held\n");
	cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
	none.rlim_max = before.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	say(1, text);
	cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
	say(0, "next\n");
	view_end(sink.view);
	snprintf(want, sizeof(want), " 0:held\n 1:%s 0:next\n", text);
	cr_expect_str_eq(buf_text(&out), want);
}
