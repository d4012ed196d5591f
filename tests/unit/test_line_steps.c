/* SPDX-License-Identifier: Apache-2.0 */
/* test_line_steps.c - each step of a stream of lines: how many bytes are done with, what goes
 * to the view or out, and what is known of the stream afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/line.h"
#include "launcher/log/view.h"

static struct buf out, told;
static struct line_sink sink;
static struct line_stream stream, other;
static struct line_prefix prefix;
static bool moves, samples;
static char the_view, a_live;

void __wrap_view_line(struct view *view, struct line_stream *st,
	struct span text, int64_t wall);
void __wrap_view_live(struct view *view, struct line_stream *st,
	struct span text, int64_t wall);
bool __wrap_view_moves(const struct view *view);
bool __wrap_view_sample(struct view *view, struct line_stream *st);
void __wrap_view_break(struct view *view);

static void
tell(const char *what, struct view *view, const struct line_stream *st,
	struct span text, int64_t wall)
{
	cr_assert_eq((void *)view, (void *)&the_view);
	cr_assert_eq(st, &stream);
	buf_fmt(&told, "%s%s(", what, st->resumed ? "+" : "");
	if (text.len > 40)
		buf_fmt(&told, "%zu of %c", text.len, text.at[0]);
	else
		buf_put(&told, text.at, text.len);
	buf_fmt(&told, ")%lld ", (long long)wall);
}

void
__wrap_view_line(struct view *view, struct line_stream *st, struct span text,
	int64_t wall)
{
	tell("line", view, st, text, wall);
	st->resumed = false;
	st->live = NULL;
}

void
__wrap_view_live(struct view *view, struct line_stream *st, struct span text,
	int64_t wall)
{
	tell("live", view, st, text, wall);
	st->live = (struct live *)&a_live;
}

bool
__wrap_view_moves(const struct view *view)
{
	cr_assert_eq((const void *)view, (void *)&the_view);
	return moves;
}

bool
__wrap_view_sample(struct view *view, struct line_stream *st)
{
	cr_assert_eq((void *)view, (void *)&the_view);
	cr_assert_eq(st, &stream);
	buf_put_text(&told, "sample ");
	return samples;
}

void
__wrap_view_break(struct view *view)
{
	cr_assert_eq((void *)view, (void *)&the_view);
	buf_put_text(&told, "break ");
}

static void
begin(void)
{
	buf_clear(&out);
	buf_clear(&told);
	sink = (struct line_sink){ .out = &out, .wall = 7 };
	stream = other = (struct line_stream){ 0 };
	prefix = (struct line_prefix){ .text = "> ", .len = 2 };
	moves = samples = false;
}

static void
end(void)
{
	buf_fini(&out);
	buf_fini(&told);
}

TestSuite(line_steps, .init = begin, .fini = end);

/* A terminal: a screen, or one whose lines never change. */
static void
terminal(bool screen)
{
	sink.view = (struct view *)&the_view;
	sink.filter = true;
	moves = screen;
}

static void
pipe_of_lines(void)
{
	sink.view = (struct view *)&the_view;
}

/* Offers @text. Gives "USED FLAGS TOLD|OUT", with a letter for each flag that is set: Carriage,
 * Shown, Quiet, Resumed, row Waits, coloreD, Hold. Long texts are their length. */
static const char *
step_bytes(const char *text, size_t len, enum line_end how)
{
	static struct buf is;
	size_t used;

	buf_clear(&is);
	buf_clear(&told);
	buf_clear(&out);
	used = line_cut(&sink, &stream, &prefix, (struct span){ text, len },
		how);
	buf_fmt(&is, "%zu %s%s%s%s%s%s%s ", used, stream.carriage ? "C" : "",
		stream.shown ? "S" : "", stream.quiet ? "Q" : "",
		stream.resumed ? "R" : "", stream.row_waits ? "W" : "",
		stream.colored ? "D" : "", sink.holder == &stream ? "H" : "");
	buf_put(&is, buf_text(&told), told.len);
	buf_put_char(&is, '|');
	if (out.len > 100)
		buf_fmt(&is, "%zu of %c", out.len, out.data[0]);
	else
		buf_put(&is, buf_text(&out), out.len);
	return buf_text(&is);
}

static void
expect_step(int at, const char *is, const char *want)
{
	cr_expect_str_eq(is, want, "line %d: %s", at, is);
}

#define STEP(text, how, want) \
	expect_step(__LINE__, step_bytes(text, sizeof(text) - 1, LINE_##how), \
		want)
#define STEP_OF(text, how, want) \
	expect_step(__LINE__, step_bytes(text, strlen(text), LINE_##how), want)

/* @len times @c, and @tail; freed by the caller. */
static char *
many(size_t len, char c, const char *tail)
{
	size_t size = len + strlen(tail) + 1;
	char *text = malloc(size);

	cr_assert_not_null(text);
	memset(text, c, len);
	memcpy(text + len, tail, size - len);
	return text;
}

#define STEP_MANY(len, c, tail, how, want) \
	do { \
		char *text = many(len, c, tail); \
\
		STEP_OF(text, how, want); \
		free(text); \
	} while (0)

/* --- whole lines go to the view --- */

Test(line_steps, each_line_goes_to_the_view_without_its_newline)
{
	pipe_of_lines();
	STEP("one\ntwo\nthr", MORE, "8  line(one)7 line(two)7 |");
	STEP("\n\nx\n", MORE, "4  line()7 line()7 line(x)7 |");
	STEP("a\n", IDLE, "2  line(a)7 |");
	STEP("a\n", LAST, "2  line(a)7 |");
	STEP("", LAST, "0  |");
}

Test(line_steps, on_a_terminal_the_last_state_of_a_line_is_the_line)
{
	terminal(true);
	STEP("a\rb\n", MORE, "4  line(b)7 |");
	STEP("a\r\n", MORE, "3  line(a)7 |");
	STEP("\r\n", MORE, "2  line()7 |");
	STEP("\n", MORE, "1  line()7 |");
	stream.resumed = true;
	STEP("x\n", MORE, "2  line+(x)7 |");
	stream.resumed = true;
	STEP("x\ry\n", MORE, "4  line(y)7 |");
	stream.carriage = stream.shown = stream.quiet = true;
	STEP("\n", MORE, "1  |");
	stream.carriage = stream.shown = stream.quiet = true;
	STEP("\r\n", MORE, "2  |");
	stream.shown = true;
	STEP("z\n", MORE, "2  line(z)7 |");
}

Test(line_steps, in_a_pipe_carriage_returns_are_bytes_unless_there_are_rows)
{
	pipe_of_lines();
	STEP("a\rb\n", MORE, "4  line(a\rb)7 |");
	STEP("a\r\n", MORE, "3  line(a\r)7 |");
	sink.rows = true;
	STEP("a\rb\n", MORE, "4  line(b)7 |");
	STEP("a\rb\r\n", MORE, "5  line(b)7 |");
	STEP("a\r\n", MORE, "3  line(a\r)7 |");
	STEP("a\r\r\n", MORE, "4  line(a\r\r)7 |");
	STEP("\r\n", MORE, "2  line(\r)7 |");
}

/* --- what is unfinished --- */

Test(line_steps, on_a_screen_what_is_idle_or_was_written_over_is_live)
{
	terminal(true);
	STEP("ask? ", MORE, "0  |");
	STEP("ask? ", IDLE, "0 Q live(ask? )7 |");
	STEP("ask? y", MORE, "0 Q live(ask? y)7 |");
	STEP("ask? yes\n", MORE, "9  line(ask? yes)7 |");
	STEP("10%\r", MORE, "0 CQ live(10%)7 |");
	STEP("10%\r20%", MORE, "4 CQ live(20%)7 |");
	STEP("20%\r", MORE, "0 CQ live(20%)7 |");
	STEP("20%\r30%\r", IDLE, "4 CQ live(30%)7 |");
	STEP("30%\r", LAST, "4  line(30%)7 |");
	STEP("again", LAST, "5  line(again)7 |");
}

Test(line_steps, a_state_that_came_after_others_is_not_resumed)
{
	terminal(true);
	stream.resumed = stream.shown = true;
	STEP("\r1%", MORE, "1 CQ live(1%)7 |");
	stream.resumed = stream.shown = true;
	STEP("1%", MORE, "0 CSQR live+(1%)7 |");
	stream.resumed = stream.shown = true;
	STEP("1%\r", MORE, "0 CSQR live+(1%)7 |");
	stream.resumed = stream.shown = true;
	STEP("\r", MORE, "0 CSQR |");
	stream.resumed = stream.shown = true;
	STEP("\r", LAST, "1 CSR |");
}

Test(line_steps, elsewhere_a_state_is_a_line_when_its_time_has_come)
{
	terminal(false);
	STEP("1%", MORE, "0  |");
	STEP("1%\r", MORE, "0 CQ sample |");
	STEP("1%\r2%", MORE, "3 CQ sample |");
	STEP("2%\r3%", IDLE, "3 CQ sample |");
	samples = true;
	STEP("3%\r4%\r", MORE, "5 CSQR sample line(4%)7 |");
	STEP("\r5%", MORE, "3 CSQR sample line(5%)7 |");
	STEP("\n", MORE, "1  |");
	STEP("6%", IDLE, "2 QR line(6%)7 |");
	STEP("7%", IDLE, "2 QR line+(7%)7 |");
	STEP("\n", MORE, "1  line+()7 |");
	stream.live = (struct live *)&a_live;
	STEP("8", MORE, "0  |");
}

Test(line_steps, what_remains_at_the_end_of_the_stream_is_a_line)
{
	terminal(true);
	STEP("a\rb", LAST, "3  line(b)7 |");
	STEP("\r\r", LAST, "2 C |");
	STEP("x", LAST, "1  line(x)7 |");
	stream.shown = true;
	STEP("\r", LAST, "1 CS |");
	STEP("one\ntwo", LAST, "7  line(one)7 line(two)7 |");
}

/* --- long ones --- */

Test(line_steps, a_state_as_long_as_a_hold_goes_straight_out)
{
	terminal(true);
	STEP_MANY(LINE_HOLD - 1, 'x', "", MORE, "0  |");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("y", MORE, "1 H |y");
	STEP("y\r", MORE, "1 H |y");
	STEP("\r", MORE, "0 H |");
	STEP("\rz", MORE, "1 CSQ live(z)7 |\n");
	STEP("z\n", MORE, "2  line(z)7 |");
	STEP_MANY(LINE_HOLD, 'x', "\r", MORE, "32768 CH break |32770 of >");
	STEP_MANY(LINE_HOLD, 'x', "\r\n", MORE, "32770  |32769 of x");
	STEP_MANY(LINE_HOLD, 'x', "\r", IDLE, "32769 CS break |32771 of >");
	STEP_MANY(LINE_HOLD, 'x', "", LAST, "32768  line(32768 of x)7 |");
	STEP_MANY(LINE_HOLD, 'x', "", IDLE, "32768 R break |32771 of >");
}

Test(line_steps, a_held_line_ends_at_its_carriage_return_on_a_terminal)
{
	terminal(true);
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("tail\rnext\n", MORE, "10  line(next)7 |tail\n");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("tail\r\nnext\n", MORE, "11  line(next)7 |tail\n");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("\r\r\n", MORE, "3  |\n");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("\nnext", MORE, "1  |\n");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("\r", LAST, "1 CS |\n");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 CSH break |32770 of >");
	STEP("\rnext", IDLE, "1 CSQ live(next)7 |\n");
}

Test(line_steps, a_held_line_ends_at_its_newline_in_a_pipe)
{
	pipe_of_lines();
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H break |32770 of >");
	STEP("a\rb", MORE, "3 H |a\rb");
	STEP("c\rd\nnext\n", MORE, "9  line(next)7 |c\rd\n");
	STEP_MANY(LINE_HOLD, 'x', "\ry", MORE, "32770 H break |32772 of >");
	STEP("\n", LAST, "1  |\n");
}

Test(line_steps, returns_behind_a_state_that_fill_a_hold_do_not_wait)
{
	terminal(true);
	STEP_MANY(LINE_HOLD - 2, '\r', "", MORE, "32765 CQ |");
	STEP_MANY(LINE_HOLD, '\r', "", MORE, "32767 CQ |");
	STEP_MANY(1, '1', "", MORE, "0 CQ live(1)7 |");
	{
		char *text = many(LINE_HOLD - 1, '\r', "");

		text[0] = 'a';
		STEP_OF(text, MORE, "0 CQ live(a)7 |");
		free(text);
		text = many(LINE_HOLD, '\r', "");
		text[0] = 'a';
		STEP_OF(text, MORE, "32767 CSQ line(a)7 |");
		text[0] = '\r';
		text[1] = 'b';
		STEP_OF(text, MORE, "1 CQ live(b)7 |");
		free(text);
		text = many(LINE_HOLD + 1, '\r', "");
		text[1] = 'c';
		STEP_OF(text, MORE, "32768 CSQ line(c)7 |");
		free(text);
	}
}

Test(line_steps, who_does_not_hold_the_sink_waits)
{
	terminal(true);
	sink.holder = &other;
	STEP("whole\n", LAST, "0  |");
	sink.view = NULL;
	STEP("whole\n", LAST, "0  |");
	sink.holder = NULL;
	STEP("whole\n", MORE, "6  |> whole\n");
}

/* --- without a view --- */

Test(line_steps, the_end_of_a_stream_without_a_view)
{
	STEP("a\nb", MORE, "2  |> a\n");
	STEP("b", IDLE, "1 R |> b\n");
	STEP("c", IDLE, "1 R |> …c\n");
	STEP("d\n", MORE, "2  |> …d\n");
	STEP("e", LAST, "1  |> e\n");
	STEP_MANY(LINE_HOLD - 1, 'x', "", MORE, "0  |");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H |32770 of >");
	STEP("f", IDLE, "1 R |f\n");
	STEP("g\nh", MORE, "2  |> …g\n");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 H |32770 of >");
	STEP("\nh\ni", MORE, "3  |\n> h\n");
}

Test(line_steps, the_time_stands_in_the_last_bytes_of_the_prefix)
{
	struct line_prefix timed = { .len = 18, .time = 16 };

	memcpy(timed.text, "[????????????????]", 18);
	timed.time = 1 + PREFIX_TIME;
	sink.clocked = true;
	prefix = timed;
	setenv("TZ", "UTC", 1);
	sink.wall = 3723004000000;
	STEP("x\ny", MORE, "2  |[01:02:03.004????]x\n");
	STEP("y", IDLE, "1 R |[01:02:03.004????]y\n");
	STEP("y\n", MORE, "2  |[01:02:03.004????]…y\n");
}

/* --- rows --- */

Test(line_steps, rows_of_progress_wait_for_their_time)
{
	sink.rows = true;
	sink.now = 1;
	STEP("plain\r\n", MORE, "7  |> plain\r\n");
	STEP("1%\r", MORE, "0 W |");
	cr_expect_eq(stream.row_ns, 1 + LINE_ROW_NS);
	STEP("1%\r2%", MORE, "3 CW |");
	sink.now = LINE_ROW_NS;
	STEP("2%", MORE, "0 CW |");
	sink.now = 1 + LINE_ROW_NS;
	STEP("2%", MORE, "2 CSR |> 2%\n");
	cr_expect_eq(stream.row_ns, 1 + 2 * LINE_ROW_NS);
	STEP("\r3%\r", MORE, "1 CW |");
	sink.now = 1 + 2 * LINE_ROW_NS;
	STEP("3%\r", MORE, "3 CS |> 3%\n");
	STEP("4%\n", MORE, "3  |> 4%\n");
	cr_expect_eq(stream.row_ns, 0);
	STEP("next\n", MORE, "5  |> next\n");
}

Test(line_steps, the_end_of_rows)
{
	sink.rows = true;
	STEP("1%\r2%", LAST, "5  |> 2%\n");
	STEP("\r", LAST, "1  |> \r\n");
	STEP("1%\r", MORE, "0 W |");
	STEP("1%", LAST, "2 W |> 1%\n");
	stream.carriage = stream.shown = stream.resumed = true;
	STEP("\n", MORE, "1  |");
	stream.carriage = stream.shown = stream.resumed = true;
	STEP("\rx\n", MORE, "3  |> x\n");
	stream.carriage = stream.resumed = true;
	STEP("x\n", MORE, "2  |> …x\n");
	stream.carriage = true;
	STEP("x\r\n", MORE, "3  |> x\n");
	stream.carriage = stream.shown = true;
	STEP("\ny\nz", IDLE, "4 R |> y\n> z\n");
	STEP("\rq", IDLE, "2 CRW |> q\n");
}

Test(line_steps, rows_without_anything_to_see_are_done_with)
{
	sink.rows = true;
	STEP("\r", MORE, "1 C |");
	STEP("\r\r", MORE, "2 C |");
	stream.resumed = stream.shown = true;
	STEP("\r", MORE, "1 CSR |");
	STEP("\ra", MORE, "1 CW |");
	sink.now = LINE_ROW_NS;
	STEP("a\r\r", MORE, "3 CS |> a\n");
	STEP("\r", MORE, "1 CS |");
	STEP("\n", MORE, "1  |");
}

Test(line_steps, rows_as_long_as_a_hold_are_no_rows)
{
	sink.rows = true;
	STEP_MANY(LINE_HOLD - 2, 'x', "\r", MORE, "0 W |");
	STEP_MANY(LINE_HOLD - 1, 'x', "\r", MORE, "32768 CS |32770 of >");
	stream = (struct line_stream){ 0 };
	STEP_MANY(LINE_HOLD, 'x', "\r", MORE, "32769 CH |32771 of >");
	STEP("end\n", MORE, "4  |end\n");
	stream = (struct line_stream){ .carriage = true };
	STEP_MANY(LINE_HOLD - 1, 'x', "", MORE, "0 CW |");
	STEP_MANY(LINE_HOLD, 'x', "", MORE, "32768 CH |32770 of >");
	STEP("end\r\nnext\r\n", MORE, "11  |end\r\n> next\r\n");
}
