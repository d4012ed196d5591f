/* SPDX-License-Identifier: Apache-2.0 */
/* test_deliver_view.c - the thread of a sink whose lines go through a view, turn by turn. */
#include "tests/unit/deliver_rig.h"

#define IDLE (5 * NS_PER_S)

static void
end(void)
{
	buf_fini(&s.out);
	buf_fini(&s.words);
}

TestSuite(deliver_view, .init = scene, .fini = end);

static void
long_line(uint32_t stream)
{
	static char text[LINE_HOLD + 1];

	memset(text, 'x', LINE_HOLD);
	has(stream, text);
}

/* --- a view ------------------------------------------------------------------------ */

Test(deliver_view, a_view_is_begun_and_painted_each_turn)
{
	s.lines.view = (struct view *)&a_view;
	feeds[0].new_came = 7;
	grew(0, "one\n", false);
	grew(1, "two", false);
	s.lost = true;
	s.swept = is.now - 5;
	run();
	TOLD("lost begin 1000000000000 peek0 came 7 line(one) took 4 peek1 took 0 known 999999999995 paint begin 1000000000000 known 999999999995 paint wait 5001 ");
	cr_expect_not(s.lost);
	cr_expect_not(s.settled);
	say(&s.words, "xrun: words\n");
	run();
	TOLD("begin 1000000000000 break known 999999999995 paint write[xrun: words\n] wait 5001 ");
	s.swept = INT64_MAX;
	is.now += IDLE;
	run();
	TOLD("begin 1005000000000 peek1 line(two) took 3 known 1005000000000 paint begin 1005000000000 known 1005000000000 paint wait -1 ");
	s.finishing = true;
	run();
	TOLD("begin 1005000000000 known 1005000000000 paint end DONE 3 0 ");
}

Test(deliver_view, a_view_is_not_painted_in_a_line_of_somebody)
{
	s.lines.view = (struct view *)&a_view;
	is.view_due = is.now + NS_PER_S;
	long_line(0);
	grew(0, "", false);
	run();
	TOLD("begin 1000000000000 peek0 break took 32768 known 1000000000000 write 32769 begin 1000000000000 known 1000000000000 wait 5001 ");
	grew(0, "\n", false);
	run();
	TOLD("begin 1000000000000 peek0 took 1 known 1000000000000 paint write[\n] begin 1000000000000 known 1000000000000 paint wait 1001 ");
}

Test(deliver_view, of_view_and_silence_the_first_is_waited_for)
{
	s.lines.view = (struct view *)&a_view;
	grew(0, "a", false);
	is.view_due = is.now + IDLE - NS_PER_MS;
	run();
	TOLD("begin 1000000000000 peek0 took 0 known 1000000000000 paint begin 1000000000000 known 1000000000000 paint wait 5000 ");
	is.view_due = is.now + IDLE + NS_PER_MS;
	run();
	TOLD("begin 1000000000000 known 1000000000000 paint wait 5001 ");
	is.view_due = 0;
	run();
	TOLD("begin 1000000000000 known 1000000000000 paint wait 5001 ");
	is.now += IDLE;
	run();
	is.view_due = is.now + 3 * NS_PER_MS;
	told[0] = '\0';
	told_len = 0;
	run();
	TOLD("begin 1005000000000 known 1005000000000 paint wait 4 ");
	is.view_due = is.now;
	run();
	TOLD("begin 1005000000000 known 1005000000000 paint wait 0 ");
	is.view_due = is.now - NS_PER_S;
	run();
	TOLD("begin 1005000000000 known 1005000000000 paint wait 0 ");
}

Test(deliver_view, lines_that_are_held_wait_until_all_is_told)
{
	s.lines.view = (struct view *)&a_view;
	is.view_due = is.now;
	is.view_holds = true;
	s.swept = is.now - 1;
	run();
	TOLD("begin 1000000000000 known 999999999999 paint wait -1 ");
	cr_expect(s.asks);
	s.asks = false;
	is.view_holds = false;
	run();
	TOLD("begin 1000000000000 known 999999999999 paint wait 0 ");
	cr_expect_not(s.asks);
	is.view_holds = true;
	s.swept = is.now;
	run();
	TOLD("begin 1000000000000 known 1000000000000 paint wait 0 ");
	s.asks = false;
	s.known = is.now;
	run();
	TOLD("begin 1000000000000 known 1000000000000 paint wait 0 ");
	cr_expect_not(s.asks);
}
