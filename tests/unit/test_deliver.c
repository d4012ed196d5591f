/* SPDX-License-Identifier: Apache-2.0 */
/* test_deliver.c - the thread of a sink, turn by turn. */
#include "tests/unit/deliver_rig.h"

#define IDLE (5 * NS_PER_S)

static void
end(void)
{
	buf_fini(&s.out);
	buf_fini(&s.words);
	buf_fini(&s.hint);
	buf_fini(&s.drops);
	buf_fini(&s.last);
}

TestSuite(deliver, .init = scene, .fini = end);

static void
pipes(void)
{
	s.config.dir = -1;
	for (int i = 0; i < STREAMS; i++)
		feeds[i].pipe = 10 + i;
}

static void
ready(uint32_t stream)
{
	is.events[is.count++] = (int)stream;
}

static void
long_line(uint32_t stream)
{
	static char text[LINE_HOLD + 1];

	memset(text, 'x', LINE_HOLD);
	has(stream, text);
}

/* --- files ---------------------------------------------------------------- */

Test(deliver, whole_lines_go_out_and_the_rest_waits)
{
	feeds[0].new_came = 9;
	grew(0, "one\ntwo\nth", false);
	run();
	TOLD("peek0 took 8 write[0one\n0two\n] wait 5001 ");
	cr_expect_eq(feeds[0].file, 30);
	cr_expect_eq(feeds[0].end, 10);
	cr_expect_eq(feeds[0].came, 9);
	cr_expect_not(feeds[0].eof);
	cr_expect_not(feeds[0].queued);
	cr_expect_not(feeds[0].listed);
	cr_expect_eq(s.delivered, 8);
	cr_expect_eq(s.taken, 0);
	cr_expect_str_eq(waiting(), "0:5000 ");
	cr_expect(s.asleep);
	cr_expect_not(s.settled);
	is.now += IDLE - 1;
	run();
	TOLD("wait 1 ");
	is.now++;
	run();
	TOLD("peek0 took 2 write[0th\n] wait -1 ");
	cr_expect_eq(s.delivered, 10);
	cr_expect(s.settled);
	grew(0, "ree\n", true);
	run();
	TOLD("peek0 took 4 write[0…ree\n] wait -1 ");
	cr_expect(feeds[0].over);
	cr_expect(feeds[0].eof);
	cr_expect_eq(s.delivered, 14);
	s.finishing = true;
	run();
	TOLD("DONE 3 0 ");
}

Test(deliver, the_end_of_a_file_ends_its_line)
{
	s.finishing = true;
	grew(0, "one\nend", true);
	grew(2, "", true);
	feeds[1].unstored = (struct unstored *)&unstored_one;
	grew(1, "x\n", true);
	run();
	TOLD("unstored peek0 took 7 peek2 took 0 peek1 took 2 write[0one\n0end\n1x\n] DONE 3 0 ");
	cr_expect_eq(s.delivered, 9);
}

Test(deliver, who_is_not_shown_is_taken)
{
	shown[1] = false;
	grew(1, "one\ntw", false);
	run();
	TOLD("peek1 took 6 wait -1 ");
	cr_expect_eq(s.delivered, 6);
}

Test(deliver, much_is_read_turn_by_turn)
{
	quiet = true;
	for (int i = 0; i < 20000; i++)
		has(0, "seven!\n");
	quiet = false;
	grew(0, "", false);
	run();
	TOLD("peek0 took 65534 write 74896 peek0 took 65534 write 74896 peek0 took 8932 write 10208 wait -1 ");
	cr_expect_eq(s.delivered, 140000);
}

Test(deliver, out_of_memory_the_rest_of_a_line_is_lost)
{
	src[0].no_memory = true;
	grew(0, "one\ntwo", false);
	run();
	TOLD("peek0 took 4 write[0one\n] wait -1 ");
	cr_expect_eq(s.delivered, 7);
	cr_expect_str_eq(waiting(), "");
}

Test(deliver, what_was_removed_is_counted)
{
	src[0].skips = 5;
	feeds[0].new_end = 5;
	grew(0, "one\n", false);
	run();
	TOLD("peek0 took 4 write[0one\n] wait -1 ");
	cr_expect_eq(s.delivered, 9);
	cr_expect_eq(share->slot[0].unseen, 5);
	cr_expect_eq(feeds[0].skipped, 0);
	long_line(0);
	grew(0, "", false);
	run();
	TOLD("peek0 took 32768 write 32769 wait 5001 ");
	cr_expect_eq(s.lines.holder, &feeds[0].line);
	src[0].skips = 2;
	feeds[0].new_end += 2;
	grew(0, "y\n", false);
	run();
	TOLD("peek0 took 2 write[\n0…y\n] wait -1 ");
	cr_expect_eq(share->slot[0].unseen, 7);
}

/* --- files that cannot be read -------------------------------------------- */

Test(deliver, what_is_short_is_tried_again)
{
	static const int passing[] = { EMFILE, ENFILE, ENOMEM };

	for (int i = 0; i < 3; i++) {
		src[0].sys = passing[i];
		grew(0, i == 0 ? "one\n" : "", false);
		run();
		TOLD("peek0 wait 201 ");
		cr_expect_str_eq(waiting(), "0:200 ");
		cr_expect(feeds[0].unread);
	}
	cr_expect_eq(s.unread_sys, 0);
	src[0].sys = 0;
	is.now += 200 * NS_PER_MS;
	run();
	TOLD("peek0 took 4 write[0one\n] wait -1 ");
	cr_expect_not(feeds[0].unread);
}

/* That it waits for another try is no silence: its line is not cut. */
Test(deliver, a_line_that_could_not_be_read_is_not_idle)
{
	src[0].sys = EMFILE;
	grew(0, "half", false);
	run();
	TOLD("peek0 wait 201 ");
	src[0].sys = 0;
	is.now += 200 * NS_PER_MS;
	run();
	TOLD("peek0 took 0 wait 5001 ");
	cr_expect_str_eq(waiting(), "0:5000 ");
}

Test(deliver, what_cannot_be_read_at_all_ends)
{
	long_line(0);
	grew(0, "", false);
	grew(1, "waits\n", true);
	run();
	TOLD("peek0 took 32768 write 32769 wait 5001 ");
	cr_expect_eq(TAILQ_FIRST(&s.parked), &feeds[1]);
	src[0].sys = ENODATA;
	grew(0, "", false);
	run();
	TOLD("peek0 UNREAD 0 61 write[\n] peek1 took 6 write[1waits\n] wait -1 ");
	cr_expect(feeds[0].over);
	cr_expect(TAILQ_EMPTY(&s.parked));
	cr_expect_null(s.lines.holder);
	cr_expect_eq(s.unread_sys, ENODATA);
	src[2].sys = EIO;
	grew(2, "", false);
	run();
	TOLD("peek2 wait -1 ");
	cr_expect_eq(s.unread_sys, EIO);
	s.finishing = true;
	run();
	TOLD("DONE 3 5 ");
}

/* --- one stream holds the sink -------------------------------------------- */

Test(deliver, others_wait_for_the_end_of_a_long_line)
{
	long_line(0);
	grew(0, "", false);
	grew(1, "one\n", false);
	grew(2, "two", false);
	run();
	TOLD("peek0 took 32768 write 32769 wait 5001 ");
	cr_expect_str_eq(waiting(), "0:5000 ");
	cr_expect(feeds[1].listed);
	cr_expect_not(s.settled);
	s.finishing = true;
	grew(0, "end\n", true);
	run();
	TOLD("peek0 took 4 write[end\n] peek1 took 4 peek2 took 0 write[1one\n] wait 5001 ");
	cr_expect_str_eq(waiting(), "2:5000 ");
	is.now += IDLE;
	run();
	TOLD("peek2 took 3 write[2two\n] DONE 3 0 ");
	cr_expect_eq(s.delivered, LINE_HOLD + 4 + 4 + 3);
}

Test(deliver, a_hold_that_is_idle_ends)
{
	long_line(0);
	grew(0, "", false);
	grew(1, "one\n", false);
	run();
	TOLD("peek0 took 32768 write 32769 wait 5001 ");
	is.now += IDLE;
	run();
	TOLD("peek0 took 0 write[\n] peek1 took 4 write[1one\n] wait -1 ");
	cr_expect_null(s.lines.holder);
	cr_expect_str_eq(waiting(), "");
	cr_expect(s.settled);
}

/* --- times ------------------------------------------------------------------ */

Test(deliver, lines_have_the_times_when_they_came)
{
	s.config.times = true;
	s.lines.clocked = true;
	src[0].when_to[0] = 4;
	src[0].when[0] = 1000000;
	src[0].when_to[1] = 5;
	src[0].when[1] = 2000000;
	is.wall = 9000000;
	setenv("TZ", "UTC", 1);
	memcpy(prefixes[0].text, "????????????", 12);
	prefixes[0].len = prefixes[0].time = 12;
	grew(0, "a\nb\nc\nd", true);
	run();
	TOLD("peek0 took 7 write[00:00:00.001a\n00:00:00.001b\n00:00:00.009c\n00:00:00.009d\n] wait -1 ");
	cr_expect_eq(s.lines.wall, 9000000);
	cr_expect_eq(s.delivered, 7);
}

Test(deliver, of_pipes_nobody_knows_when)
{
	pipes();
	s.config.times = true;
	src[0].when_to[0] = 2;
	src[0].when[0] = 1;
	has(0, "a\nb\n");
	ready(0);
	run();
	cr_expect_eq(s.lines.wall, 44);
	TOLD("wait -1 peek0 took 4 of 4 write[0a\n0b\n] wait -1 ");
}

/* --- pipes ------------------------------------------------------------------- */

Test(deliver, a_pipe_is_read_when_it_has_something)
{
	pipes();
	run();
	TOLD("wait -1 ");
	has(1, "one\ntw");
	ready(1);
	is.events[is.count++] = -1;
	run();
	TOLD("wait -1 peek1 took 4 of 6 write[1one\n] wait 5001 ");
	cr_expect_str_eq(waiting(), "1:5000 ");
	cr_expect_not(feeds[1].listed);
	is.now += IDLE;
	feeds[1].held_len = 2;
	run();
	TOLD("peek1 took 2 of 2 write[1tw\n] wait -1 ");
	cr_expect(feeds[1].line.resumed);
	feeds[1].held_len = 0;
	feeds[1].eof = true;
	ready(1);
	run();
	TOLD("wait -1 peek1 took 0 of 0 deaf 11 shut 11 EOF 1 0 wait -1 ");
	cr_expect_eq(feeds[1].pipe, -1);
	cr_expect(feeds[1].over);
	ready(1);
	run();
	TOLD("wait -1 wait -1 ");
	is.sys_wait = EINTR;
	run();
	TOLD("wait -1 wait -1 ");
	is.sys_wait = EBADF;
	run();
	TOLD("wait -1 pause 0 1 wait -1 ");
}

/* It said nothing for a while, but it has something by now. */
Test(deliver, what_came_meanwhile_is_not_idle)
{
	pipes();
	has(0, "ab");
	ready(0);
	run();
	TOLD("wait -1 peek0 took 0 of 2 wait 5001 ");
	feeds[0].held_len = 2;
	is.now += NS_PER_S;
	ready(0); /* for nothing, and not idle yet */
	run();
	TOLD("wait 4001 peek0 took 0 of 2 wait 5001 ");
	is.now += IDLE;
	has(0, "c");
	run();
	TOLD("peek0 took 0 of 3 wait 5001 ");
	cr_expect_not(feeds[0].line.resumed);
	feeds[0].end++; /* more waits in it */
	feeds[0].held_len = 3;
	is.now += IDLE;
	run();
	TOLD("peek0 took 0 of 3 wait 5001 ");
	cr_expect_not(feeds[0].line.resumed);
}

Test(deliver, a_pipe_behind_a_long_line_is_not_watched)
{
	pipes();
	feeds[2].pipe = 0;
	long_line(0);
	ready(0);
	run();
	has(2, "two\n");
	ready(2);
	run();
	TOLD("wait -1 peek0 took 32768 of 32768 write 32769 wait 5001 wait 5001 deaf 0 wait 5001 ");
	has(0, "\n");
	ready(0);
	run();
	TOLD("wait 5001 peek0 took 1 of 1 watch 0 as 2 write[\n] wait 0 ");
	cr_expect(TAILQ_EMPTY(&s.parked));
}

Test(deliver, the_end_of_a_pipe_is_the_end_of_its_line)
{
	pipes();
	feeds[0].pipe = 0;
	has(0, "one\ntwo");
	feeds[0].eof = true;
	ready(0);
	run();
	TOLD("wait -1 peek0 took 7 of 7 deaf 0 shut 0 EOF 0 0 write[0one\n0two\n] wait -1 ");
}

Test(deliver, pipes_that_are_given_up)
{
	uint32_t streams[] = { 2, 0 };

	pipes();
	src[2].open = true;
	src[2].drops = true;
	buf_put(&s.drops, streams, sizeof(streams));
	has(2, "left");
	run();
	/* It has another turn, until its end. */
	TOLD("drop2 OPEN 2 0 drop0 peek2 took 0 of 4 wait 0 ");
}

/* --- without lines ------------------------------------------------------------ */

Test(deliver, bytes_pass_as_they_are)
{
	s.config.lines = false;
	s.config.modes = (struct modes *)&a_modes;
	grew(0, "one\ntwo", false);
	run();
	TOLD("peek0 follow 7 took 7 write[one\ntwo] wait -1 ");
	cr_expect(s.torn);
	say(&s.words, "xrun: words\n");
	run();
	TOLD("write[\nxrun: words\n] wait -1 ");
	cr_expect_not(s.torn);
	grew(1, "three\n", false);
	run();
	TOLD("peek1 follow 6 took 6 write[three\n] wait -1 ");
	cr_expect_not(s.torn);
	grew(2, "", true);
	run();
	TOLD("peek2 follow 0 took 0 wait -1 ");
	cr_expect_not(s.torn);
	say(&s.words, "xrun: more\n");
	say(&s.last, "xrun: last\n");
	s.finishing = true;
	run();
	TOLD("write[xrun: more\n] write[<off>xrun: last\n] DONE 3 0 ");
	s.torn = true;
	say(&s.hint, "");
	run();
	TOLD("write[<off>\nxrun: last\n] DONE 3 0 ");
}

Test(deliver, a_turn_is_written_when_it_has_128_KiB)
{
	s.config.lines = false;
	src[0].len = 65535;
	src[1].len = src[2].len = 65536;
	for (uint32_t i = 0; i < 4; i++)
		grew(i, i == 3 ? "x" : "", true);
	for (int i = 0; i < 3; i++)
		feeds[i].new_end = src[i].len;
	run();
	TOLD("peek0 took 65535 peek1 took 65536 peek2 took 65536 write 196607 peek3 took 1 write[x] wait -1 ");
	buf_fini(&s.out);
	scene();
	s.config.lines = false;
	src[0].len = src[1].len = 65536;
	for (uint32_t i = 0; i < 3; i++)
		grew(i, i == 2 ? "x" : "", true);
	feeds[0].new_end = feeds[1].new_end = 65536;
	run();
	TOLD("peek0 took 65536 peek1 took 65536 write 131072 peek2 took 1 write[x] wait -1 ");
}

/* --- words --------------------------------------------------------------------- */

Test(deliver, words_end_the_line_of_who_holds_the_sink)
{
	long_line(0);
	grew(0, "", false);
	grew(1, "one\n", false);
	run();
	TOLD("peek0 took 32768 write 32769 wait 5001 ");
	say(&s.words, "xrun: words\n");
	run();
	TOLD("peek1 took 4 write[\nxrun: words\n1one\n] wait 5001 ");
	cr_expect_eq(s.words.len, 0);
	cr_expect(feeds[0].line.resumed);
}

Test(deliver, a_hint_is_erased_by_what_comes_next)
{
	say(&s.words, "xrun: words\n");
	say(&s.hint, "hint");
	run();
	TOLD("write[xrun: words\n] write[hint] wait -1 ");
	cr_expect(s.hinted);
	run();
	TOLD("wait -1 ");
	cr_expect(s.hinted);
	grew(0, "one\n", false);
	run();
	TOLD("peek0 took 4 write[\r\033[K0one\n] wait -1 ");
	cr_expect_not(s.hinted);
	s.dead = true;
	say(&s.hint, "hint");
	run();
	TOLD("wait -1 ");
}

/* --- the reader ------------------------------------------------------------------ */

Test(deliver, a_slow_reader_gets_all_of_it)
{
	is.write_most = 4;
	is.write_fails = 1;
	is.sys_write = EAGAIN;
	grew(0, "one two\n", false);
	run();
	TOLD("peek0 took 8 refused poll 90 4 1 -1 write[0one] write[ two] write[\n] wait -1 ");
	is.write_fails = 1;
	is.sys_write = EINTR;
	grew(0, "abc\n", false);
	run();
	TOLD("peek0 took 4 refused write[0abc] write[\n] wait -1 ");
}

Test(deliver, a_reader_that_is_gone_is_told_once)
{
	long_line(0);
	grew(0, "", false);
	run();
	TOLD("peek0 took 32768 write 32769 wait 5001 ");
	is.write_fails = 1;
	is.sys_write = EPIPE;
	grew(1, "parked\n", false);
	grew(0, "more", false);
	run();
	TOLD("peek0 took 4 refused CLOSED 3 32 peek1 took 7 wait 5001 ");
	cr_expect(s.dead);
	cr_expect_null(s.lines.holder);
	cr_expect_eq(s.out.len, 0);
	cr_expect_eq(s.delivered, LINE_HOLD + 11);
	grew(0, "abc", false);
	say(&s.words, "xrun: words\n");
	s.finishing = true;
	run();
	TOLD("peek0 took 3 DONE 3 0 ");
}

Test(deliver, a_fault_of_the_reader)
{
	fault_armed = true;
	is.fault = FAULT_SINK_WRITE;
	grew(0, "one\n", false);
	run();
	fault_armed = false;
	TOLD("peek0 took 4 CLOSED 3 5 wait -1 ");
}

Test(deliver, what_found_no_memory_on_its_way_out_is_told_at_the_end)
{
	grew(0, "one\n", false);
	run();
	s.out.bad = XR_E_NOMEM;
	run();
	cr_expect_eq(s.unread_sys, ENOMEM);
	s.unread_sys = EIO;
	s.out.bad = XR_E_NOMEM;
	s.finishing = true;
	TOLD("peek0 took 4 write[0one\n] wait -1 wait -1 ");
	run();
	TOLD("DONE 3 5 ");
}

/* --- what is known --------------------------------------------------------------- */

Test(deliver, a_line_is_not_cut_before_all_is_told)
{
	s.swept = is.now + IDLE - 1;
	grew(0, "half", false);
	run();
	TOLD("peek0 took 0 wait 5001 ");
	is.now += IDLE;
	run();
	/* It asks, and waits for the mover. */
	TOLD("wait -1 ");
	cr_expect(s.asks);
	cr_expect_eq(s.known, is.now - 1);
	s.swept++;
	s.asks = false;
	run();
	TOLD("peek0 took 4 write[0half\n] wait -1 ");
	cr_expect_not(s.asks);
}

Test(deliver, feeds_wait_in_the_order_of_their_times)
{
	grew(0, "a", false);
	run();
	is.now += NS_PER_S;
	grew(1, "b", false);
	run();
	s.config.idle_ns = 2 * NS_PER_S;
	grew(2, "c", false);
	run();
	s.config.idle_ns = 4 * NS_PER_S;
	grew(3, "d", false);
	run();
	cr_expect_str_eq(waiting(), "2:2000 0:4000 3:4000 1:5000 ");
	TOLD("peek0 took 0 wait 5001 peek1 took 0 wait 4001 peek2 took 0 wait 2001 peek3 took 0 wait 2001 ");
	is.now += 4 * NS_PER_S;
	run();
	TOLD("peek2 took 1 peek0 took 1 peek3 took 1 write[2c\n0a\n3d\n] wait 1001 ");
	cr_expect_str_eq(waiting(), "1:1000 ");
	/* What grew begins again. */
	grew(1, "b", false);
	run();
	cr_expect_str_eq(waiting(), "1:4000 ");
	TOLD("peek1 took 0 wait 4001 ");
}

Test(deliver, waits_are_in_ms_and_round_up)
{
	static const int64_t idle[] = { 1, NS_PER_MS - 1, NS_PER_MS,
		NS_PER_MS + 1 };

	for (uint32_t i = 0; i < 4; i++) {
		s.config.idle_ns = idle[i];
		grew(i, "a", false);
		run();
		is.now += NS_PER_S;
		quiet = true;
		run();
		quiet = false;
	}
	TOLD("peek0 took 0 wait 1 peek1 took 0 wait 1 peek2 took 0 wait 2 peek3 took 0 wait 2 ");
}

Test(deliver, rows_wait_for_their_time)
{
	s.lines.rows = true;
	grew(0, "1%\r", false);
	run();
	cr_expect_str_eq(waiting(), "0:1000 ");
	TOLD("peek0 took 0 wait 1001 ");
	is.now += NS_PER_S;
	run();
	TOLD("peek0 took 3 write[01%\n] wait -1 ");
	cr_expect_str_eq(waiting(), "");
	cr_expect_eq(s.lines.now, is.now);
}
