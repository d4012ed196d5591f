/* SPDX-License-Identifier: Apache-2.0 */
/* test_view_screen.c - how much of a screen a view changes, at its limits. */
#include <pty.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/burst.h"
#include "launcher/log/view.h"

#define RANKS 40
#define MS    1000000LL

static struct route route;
static struct line_stream stream[RANKS * RAW_STREAMS];
static struct line_sink sink;
static struct buf out;
static int master = -1, slave = -1;
static int64_t now = 1000000 * MS;

static void
open_screen(unsigned short cols, unsigned short rows)
{
	const struct route_config config = { .ranks = RANKS,
		.size = RANKS,
		.show = "all",
		.prefix = "{rank}:" };
	const struct winsize size = { .ws_col = cols, .ws_row = rows };
	struct view_config view = { .out = &out,
		.route = &route,
		.tty = true,
		.screen = true,
		.collapse = true };
	struct xr_error err;

	cr_assert_eq(route_compile(&route, &config, &err), XR_OK);
	cr_assert_eq(openpty(&master, &slave, NULL, NULL, &size), 0);
	for (uint32_t i = 0; i < RANKS * RAW_STREAMS; i++)
		stream[i] = (struct line_stream){ .number = i };
	view.fd = slave;
	sink = (struct line_sink){ .out = &out, .filter = true };
	sink.view = view_new(&view);
	cr_assert_not_null(sink.view);
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

TestSuite(view_screen, .fini = end);

static void
say_as(uint32_t rank, const char *text, enum line_end how)
{
	uint32_t n = rank * RAW_STREAMS;
	struct span data = { text, strlen(text) };

	line_cut(&sink, &stream[n], &route.prefix[n], data, how);
}

static void
say(uint32_t rank, const char *text)
{
	say_as(rank, text, LINE_MORE);
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

Test(view_screen, without_live_rows_nothing_is_due_after_a_loss)
{
	open_screen(20, 10);
	turn(0);
	say(0, "one\n");
	expect(" 0:one\n");
	view_lost(sink.view);
	cr_expect_not(view_moves(sink.view));
	turn(0);
	cr_expect(view_moves(sink.view));
	cr_expect_eq(view_due(sink.view), 0);
	expect("");
	say_as(0, "ask", LINE_IDLE);
	expect(LIVE(" 0:ask"));
	cr_expect_eq(view_due(sink.view), 0);
	view_lost(sink.view);
	turn(0);
	cr_expect_eq(view_due(sink.view), now + VIEW_LIVE_NS);
	turn(50);
	expect(LIVE(" 0:ask"));
}

Test(view_screen, a_prompt_of_which_nothing_is_seen_is_a_row)
{
	open_screen(20, 10);
	turn(0);
	say_as(0, "\033[2J", LINE_IDLE);
	expect(LIVE(" 0:"));
}

Test(view_screen, of_64_lines_the_older_half_becomes_final)
{
	static const char again[] = "\r\033[34A\033[J0,2:line 32\n 0:line 33\n";
	char text[40];

	open_screen(20, 200);
	turn(0);
	for (int i = 0; i < 65; i++) {
		snprintf(text, sizeof(text), "line %d\n", i);
		say(0, text);
	}
	view_paint(sink.view);
	buf_clear(&out);
	say(1, "line 31\n");
	expect(" 1:line 31\n");
	buf_clear(&out);
	say(2, "line 32\n");
	view_paint(sink.view);
	/* 33 lines and the last one are written again. */
	cr_expect_eq(strncmp(buf_text(&out), again, strlen(again)), 0, "%.40s",
		buf_text(&out));
}

/* 10 rows, of which the live ones may have 5, and one is the cursor's. */
Test(view_screen, a_line_above_four_rows_is_not_reached)
{
	open_screen(20, 10);
	for (int more = 0; more < 2; more++) {
		turn(1000);
		say(0, "first\n");
		for (int i = 0; i < 3 + more; i++)
			say(0,
				i == 0         ? "a\n" :
					i == 1 ? "b\n" :
					i == 2 ? "c\n" :
						 "d\n");
		view_paint(sink.view);
		buf_clear(&out);
		say(1, "first\n");
		expect(more == 0 ?
				"\r\033[4A\033[J0-1:first\n 0:a\n 0:b\n 0:c\n" :
				" 1:first\n");
	}
}

Test(view_screen, no_more_than_16_rows_are_live)
{
	char want[2000] = "", one[40];

	open_screen(20, 100);
	turn(0);
	for (uint32_t i = 0; i < 16; i++) {
		say_as(i, "x", LINE_IDLE);
		snprintf(one, sizeof(one), "%s%2u:x", i > 0 ? NEXT : "", i);
		strncat(want, one, sizeof(want) - strlen(want) - 1);
	}
	view_paint(sink.view);
	cr_expect_not_null(strstr(buf_text(&out), want));
	cr_expect_null(strstr(buf_text(&out), "more"));
	turn(50);
	say_as(16, "x", LINE_IDLE);
	view_paint(sink.view);
	cr_expect_not_null(strstr(buf_text(&out), "\033[15A"));
	cr_expect_not_null(strstr(buf_text(&out),
		"14:x" NEXT "... and 2 more"));
	cr_expect_null(strstr(buf_text(&out), "15:x"));
	turn(49);
	say(0, "x\n");
	buf_clear(&out);
	view_paint(sink.view);
	cr_expect_not_null(strstr(buf_text(&out), "15:x" NEXT "16:x"));
}

Test(view_screen, live_rows_are_painted_each_50_ms)
{
	open_screen(20, 10);
	turn(0);
	say_as(0, "1", LINE_IDLE);
	expect(LIVE(" 0:1"));
	turn(49);
	say(0, "12");
	cr_expect_eq(view_due(sink.view), now + MS);
	expect("");
	turn(1);
	expect("\r" LIVE(" 0:12"));
	/* A new line does not wait, nor what it erased. */
	turn(1);
	say(1, "line\n");
	expect("\r\033[J 1:line\n" LIVE(" 0:12"));
	view_break(sink.view);
	view_end(sink.view);
	cr_expect_eq(out.bad, XR_OK);
}

Test(view_screen, a_screen_of_8_by_4_is_one_and_a_smaller_one_is_not)
{
	static const struct {
		unsigned short cols, rows;
		bool moves;
	} sizes[] = { { 8, 4, true }, { 7, 4, false }, { 8, 3, false } };

	for (int i = 0; i < 3; i++) {
		open_screen(sizes[i].cols, sizes[i].rows);
		turn(0);
		cr_expect_eq(view_moves(sink.view), sizes[i].moves, "%d", i);
		if (i < 2)
			end();
	}
}
