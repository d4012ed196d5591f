/* SPDX-License-Identifier: Apache-2.0 */
/* test_log_logs.c - who gets what of a job's output: mover, sinks, words, and the last lines. */
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/fd.h"
#include "launcher/log/modes.h"
#include "tests/unit/folder.h"
#include "tests/unit/logs_rig.h"
#include "tests/unit/short_memory.h"

static struct raw_share *share;
static struct logs_config config;
static struct logs *l;
static struct buf out;
static char two_modes[2];

static void
begin(void)
{
	alarm(20); /* where a loop has no end */
	folder_make();
	share = raw_share_new(2, 3, open(".", O_DIRECTORY | O_CLOEXEC));
	cr_assert_not_null(share);
	config = (struct logs_config){
		.ranks = 2,
		.share = share,
		.files_max = 7,
	};
}

static void
end(void)
{
	free(l);
	buf_fini(&out);
	folder_remove();
}

TestSuite(log_logs, .init = begin, .fini = end);

static void
open_logs(void)
{
	free(l);
	is.sinks = 0;
	l = logs_open(&config);
	cr_assert_not_null(l);
}

static void
without_files(void)
{
	share->dir = -1;
	open_logs();
}

static void
expect_told(const char *want)
{
	cr_expect_str_eq(told, want, "'%s', not '%s'", told, want);
	told[0] = '\0';
	told_len = 0;
}

/* --- what is opened --------------------------------------------------------- */

Test(log_logs, a_sink_for_each_of_stdout_and_stderr)
{
	struct line_prefix prefix;
	bool shown;

	config.route.prefix = &prefix;
	config.route.shown = &shown;
	config.route.times = true;
	open_logs();
	cr_expect_eq(is.sinks, 2);
	cr_expect_eq(logs_sinks(l), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct sink_config *c = &sink_config[i];

		cr_expect_eq(c->id, i);
		cr_expect_eq(c->fd, i == 0 ? STDOUT_FILENO : STDERR_FILENO);
		cr_expect_not(c->lines);
		cr_expect_not(c->filter);
		cr_expect_not(c->narrow);
		cr_expect(c->times);
		cr_expect_eq(c->idle_ns, LINE_IDLE_NS);
		cr_expect_eq(c->dir, share->dir);
		cr_expect_eq(c->streams, 4);
		cr_expect_eq(c->base, 6);
		cr_expect_eq(c->prefix, &prefix);
		cr_expect_eq(c->shown, &shown);
		cr_expect_eq(c->notes, logs_notes(l));
		cr_expect_null(c->share);
		cr_expect_null(c->view);
		cr_expect_null(c->modes);
		cr_expect_not(c->screen);
		cr_expect_not(c->collapse);
	}
	cr_expect_eq(mover_config.share, share);
	cr_expect_eq(mover_config.notes, logs_notes(l));
	cr_expect_eq((void *)mover_config.sink[0], (void *)&the_sink[0]);
	cr_expect_eq((void *)mover_config.sink[1], (void *)&the_sink[1]);
	cr_expect_not(mover_config.reclaim);
	cr_expect_not(mover_config.drop);
	cr_expect_eq(mover_config.files_max, 7);
	expect_told("");
}

Test(log_logs, one_for_both_if_they_are_one_file)
{
	is.one_file = true;
	open_logs();
	cr_expect_eq(logs_sinks(l), 1);
	cr_expect_eq((void *)mover_config.sink[0], (void *)&the_sink[0]);
	cr_expect_eq((void *)mover_config.sink[1], (void *)&the_sink[0]);
	is.other_dev = true;
	open_logs();
	cr_expect_eq(logs_sinks(l), 2);
	is.other_dev = false;
	is.no_stat = true;
	open_logs();
	cr_expect_eq(logs_sinks(l), 2);
}

Test(log_logs, each_stream_by_what_it_leads_to)
{
	config.route.lines = true;
	config.route.config.tty[RAW_ERR] = true;
	config.route.config.narrow[RAW_ERR] = true;
	config.reclaim = true;
	share->rule.size = 1;
	config.modes = (struct modes *)two_modes;
	open_logs();
	cr_expect(sink_config[0].lines);
	cr_expect(sink_config[1].lines);
	cr_expect_not(sink_config[0].filter);
	cr_expect(sink_config[1].filter);
	cr_expect_not(sink_config[0].narrow);
	cr_expect(sink_config[1].narrow);
	cr_expect_eq(sink_config[0].idle_ns, LINE_IDLE_NS);
	cr_expect_eq(sink_config[1].idle_ns, LINE_IDLE_TTY_NS);
	cr_expect_eq(sink_config[0].share, share);
	cr_expect_null(sink_config[1].modes);
	cr_expect(mover_config.reclaim);
	cr_expect_null(sink_config[0].view);
	cr_expect_not_null(sink_config[1].view);
	cr_expect_eq(sink_config[1].view->lines, true);
	cr_expect_not(sink_config[1].screen);
	expect_told("");
}

Test(log_logs, bytes_to_a_terminal_are_followed)
{
	struct modes *modes = calloc(2, sizeof(*modes));

	config.modes = modes;
	config.route.config.tty[RAW_ERR] = true;
	config.drop = true;
	open_logs();
	cr_expect_null(sink_config[0].modes);
	cr_expect_eq(sink_config[1].modes, &modes[1]);
	cr_expect_not(sink_config[1].filter);
	cr_expect_null(sink_config[1].view);
	cr_expect(mover_config.drop);
	config.modes = NULL;
	open_logs();
	cr_expect_null(sink_config[1].modes);
	free(modes);
}

Test(log_logs, a_view_is_a_screen_if_xrun_is_alone_there)
{
	config.route.lines = true;
	config.route.config.tty[RAW_OUT] = true;
	config.route.config.collapse = true;
	is.alone = true;
	open_logs();
	cr_expect_not_null(sink_config[0].view);
	cr_expect_not(sink_config[0].screen);
	cr_expect(sink_config[0].collapse);
	expect_told("");
	config.route.config.escapes = true;
	open_logs();
	cr_expect(sink_config[0].screen);
	cr_expect_not(sink_config[1].screen);
	expect_told("alone 1? ");
	is.alone = false;
	config.route.config.everywhere = true;
	open_logs();
	cr_expect_not(sink_config[0].screen);
	cr_expect_not_null(sink_config[1].view);
	cr_expect_not(sink_config[1].screen);
	cr_expect(sink_config[1].collapse);
	expect_told("alone 1? ");
}

Test(log_logs, why_it_cannot_be_opened)
{
	size_t before = 0;

	for (int i = 0; i < 30; i++) {
		is.sinks = 0;
		is.no_notes = i % 4 == 0;
		is.no_sink = i % 4 == 1 ? 1 : i % 4 == 2 ? 2 : 0;
		is.no_mover = i % 4 == 3;
		cr_expect_null(logs_open(&config));
		cr_expect_eq(errno,
			is.no_notes         ? EMFILE :
				is.no_mover ? ENOSYS :
					      ENOMEM);
		if (i == 20)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}

/* --- with files ------------------------------------------------------------- */

Test(log_logs, the_mover_has_the_streams_if_there_are_files)
{
	uint32_t ended[LOGS_PEEK], n;

	share->left = 5;
	open_logs();
	cr_expect(logs_add(l, 3, 30));
	cr_expect(logs_add_tty(l, 2, 31));
	is.fails = true;
	cr_expect_not(logs_add(l, 1, 32));
	cr_expect_not(logs_add_tty(l, 0, 33));
	expect_told("add 3 30 tty 2 31 add 1 32 tty 0 33 ");
	cr_expect_eq(logs_first(l), 66);
	cr_expect_not(logs_peek(l, ended, &n));
	is.fails = false;
	cr_expect(logs_peek(l, ended, &n));
	cr_expect_eq(n, 1);
	cr_expect_eq(ended[0], 4);
	cr_expect_eq(logs_start(l), 0);
	is.sys = EAGAIN;
	cr_expect_eq(logs_start(l), EAGAIN);
	logs_tell_first(l);
	logs_reclaimed(l, true);
	logs_reclaimed(l, false);
	cr_expect_eq(logs_drop(l, 3), DROP_LEFT_OPEN);
	expect_told("start start first reclaimed 1 reclaimed 0 drop 3 ");
	cr_expect_eq(logs_bytes(l, 2), 102);
	cr_expect_eq(logs_total(l), 406);
	cr_expect_eq(logs_last(l, 1), 1001);
	cr_expect_eq(logs_left(l), 5 + 20 + 21);
	share->slot[1].dropped = 8;
	share->slot[1].unseen = 9;
	cr_expect_eq(logs_dropped(l, 1), 8);
	cr_expect_eq(logs_unseen(l, 1), 9);
}

/* --- without ------------------------------------------------------------------ */

Test(log_logs, the_sinks_have_the_streams_if_there_are_none)
{
	int fd = open(".", O_DIRECTORY | O_CLOEXEC), next;

	without_files();
	cr_expect(logs_add(l, 2, fd));
	cr_expect(logs_add(l, 3, fd));
	expect_told("add0 2 own add1 3 own ");
	next = dup(fd);
	fd_close(next);
	cr_expect(logs_add_tty(l, 1, fd));
	expect_told("add1 1 own ");
	cr_expect_eq(fcntl(next, F_GETFD), FD_CLOEXEC, "its own");
	fd_close(next);
	is.fails = true;
	cr_expect_not(logs_add_tty(l, 0, fd));
	expect_told("add0 0 own ");
	cr_expect_eq(fcntl(next, F_GETFD), -1);
	cr_expect_not(logs_add_tty(l, 0, -1));
	cr_expect_eq(errno, EBADF);
	expect_told("");
	cr_expect_eq(logs_first(l), -1);
	cr_expect_eq(logs_start(l), 0);
	expect_told("start0 start1 ");
	is.sys = EAGAIN;
	cr_expect_eq(logs_start(l), EAGAIN);
	logs_tell_first(l);
	logs_reclaimed(l, true);
	cr_expect_eq(logs_drop(l, 3), DROP_OVER);
	cr_expect_eq(logs_drop(l, 2), DROP_OVER);
	expect_told("start0 drop1 3 drop0 2 ");
	cr_expect_eq(logs_bytes(l, 2), 1002);
	cr_expect_eq(logs_total(l), 6006);
	cr_expect_eq(logs_last(l, 1), 0);
}

Test(log_logs, sinks_have_numbers)
{
	int sys = 0;

	open_logs();
	logs_look(l, true);
	expect_told("look0 1 look1 1 ");
	cr_expect_eq(logs_finish(l, 0, &sys), SINK_AGAIN);
	cr_expect_eq(sys, 9);
	logs_finish(l, 1, &sys);
	expect_told("finish0 finish1 ");
	cr_expect_eq(logs_backlog(l, 0), 10);
	cr_expect_eq(logs_backlog(l, 1), 11);
	is.one_file = true;
	open_logs();
	logs_look(l, false);
	logs_finish(l, 0, &sys);
	expect_told("look0 0 finish0 ");
	cr_expect_eq(logs_left(l), 20);
}

/* --- words ---------------------------------------------------------------------- */

Test(log_logs, words_go_to_stderr)
{
	open_logs();
	logs_say(l, "a %s", "b\033[2Jc");
	logs_put(l, "two\nlines\n", 10);
	logs_put(l, "", 0);
	logs_hint(l, "hint");
	logs_last_words(l, "end\033]0;x\a\n", 10);
	logs_last_words(l, "", 0);
	expect_told(
		"say1[a b?[2Jc\n] say1[two\nlines\n] hint1[hint] last1[end\n] ");
	logs_say(l, "\rover %d", 1);
	logs_say(l, "\r\rover");
	logs_say(l, "CAF\303\211");
	config.route.config.narrow[RAW_ERR] = true;
	open_logs();
	logs_say(l, "CAF\303\211");
	logs_last_words(l, "\302\233x\n", 4);
	expect_told(
		"say1[\rover 1\n] say1[\r?over\n] say1[CAF\303\211\n] say1[CAF\303?\n] last1[\n] ");
}

Test(log_logs, where_a_terminal_only_moves_down_words_begin_at_its_edge)
{
	config.carriage = true;
	open_logs();
	logs_say(l, "a");
	logs_put(l, "b\nc\n", 4);
	logs_put(l, "", 0);
	logs_last_words(l, "d\n", 2);
	expect_told("say1[\ra\r\n] say1[\rb\r\nc\r\n] last1[\rd\r\n] ");
}

Test(log_logs, words_that_are_too_long_are_cut)
{
	char text[3000];

	open_logs();
	memset(text, 'x', sizeof(text));
	text[2045] = '\0';
	logs_say(l, "%s", text);
	text[2045] = 'x';
	text[2046] = '\0';
	logs_say(l, "%s", text);
	text[2046] = 'x';
	text[2047] = '\0';
	logs_say(l, "%s", text);
	text[2047] = 'x';
	text[2999] = '\0';
	logs_say(l, "%s", text);
	expect_told(
		"say1 2046 ...x\n say1 2047 ...x\n say1 2047 ...x\n say1 2047 ...x\n ");
}

/* --- last lines ------------------------------------------------------------------- */

static void
expect_tail(const char *text, uint32_t lines, uint32_t count, const char *want)
{
	is.tail = text;
	buf_clear(&out);
	cr_expect_eq(logs_tail(l, 1, lines, &out), count, "%u of '%s'", lines,
		text);
	cr_expect_eq(out.len, strlen(want));
	cr_expect_str_eq(buf_text(&out), want, "%u of '%s': '%s'", lines, text,
		buf_text(&out));
}

Test(log_logs, the_last_lines_of_what_a_sink_keeps)
{
	without_files();
	expect_tail(NULL, 3, 0, "");
	expect_tail("one", 3, 1, "one\n");
	expect_tail("one\n", 3, 1, "one\n");
	expect_tail("one\ntwo", 1, 1, "two\n");
	expect_tail("one\ntwo\n", 1, 1, "two\n");
	expect_tail("one\ntwo\n", 2, 2, "one\ntwo\n");
	expect_tail("one\ntwo\nthree\n", 2, 2, "two\nthree\n");
	expect_tail("one\n\n", 2, 2, "one\n\n");
	expect_tail("one\n\n", 1, 0, "");
	expect_tail("\n", 2, 0, "");
	expect_tail("\nx", 1, 1, "x\n");
	expect_tail("\nx", 2, 2, "\nx\n");
	expect_tail("\nx\n", 3, 2, "\nx\n");
	expect_tail("a\n\nx", 3, 3, "a\n\nx\n");
	expect_tail("one\n", 0, 0, "");
	told[0] = '\0';
	told_len = 0;
	expect_tail("x", 1, 1, "x\n");
	expect_told("tail1 1 ");
}

Test(log_logs, the_last_lines_of_a_file)
{
	int fd;

	open_logs();
	buf_clear(&out);
	cr_expect_eq(logs_tail(l, 1, 2, &out), 0, "there is none");
	fd = raw_open(share->dir, 7);
	cr_assert_eq(fd_write_all(fd, "zero\none\ntwo\n", 13), 0);
	expect_tail("", 2, 2, "one\ntwo\n");
	/* The mover has it open. */
	cr_assert_eq(unlink("rank-0003/stderr"), 0);
	share->slot[1].file = fd;
	expect_tail("", 1, 1, "two\n");
	cr_expect_neq(fcntl(fd, F_GETFD), -1);
	cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	share->slot[1].file = STDIN_FILENO;
	expect_tail("", 1, 1, "two\n");
	share->slot[1].file = open(".", O_DIRECTORY | O_CLOEXEC);
	expect_tail("", 1, 0, "");
}

Test(log_logs, the_last_lines_over_pieces)
{
	share->rule.size = 1;
	open_logs();
	is.of = 40;
	is.read = 8;
	expect_tail("one\ntwo\n", 1, 1, "two\n");
	expect_told("of 1 0 read 1 0/40 16384 ");
	is.of = PIECE_NONE;
	is.after = 84;
	expect_tail("one\ntwo\n", 1, 1, "two\n");
	expect_told("of 1 0 after 1 0 read 1 84/84 16300 ");
	is.after = PIECE_NONE;
	is.read = -1;
	expect_tail("", 1, 0, "");
	expect_told(
		"of 1 0 after 1 0 read 1 18446744073709551615/18446744073709551615 0 ");
}

Test(log_logs, a_tail_gives_its_memory_and_descriptors_back)
{
	int next = dup(STDOUT_FILENO), fd;
	size_t before = 0;

	fd_close(next);
	open_logs();
	fd = raw_open(share->dir, 7);
	cr_assert_eq(fd_write_all(fd, "one\n", 4), 0);
	fd_close(fd);
	next = dup(STDOUT_FILENO);
	fd_close(next);
	for (int i = 0; i < 20; i++) {
		buf_clear(&out);
		cr_expect_eq(logs_tail(l, 1, 1, &out), 1);
		if (i == 10)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
	cr_expect_eq(dup(STDOUT_FILENO), next);
}

Test(log_logs, without_memory_there_is_none)
{
	until_short = 1;
	cr_expect_null(logs_open(&config));
	cr_expect(was_short);
	open_logs();
	until_short = 1;
	cr_expect_eq(logs_tail(l, 1, 1, &out), 0);
	cr_expect_eq(until_short, 0);
}
