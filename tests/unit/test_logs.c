/* SPDX-License-Identifier: Apache-2.0 */
/* test_logs.c - xrun logs: which lines of which ranks, and how they are printed. */
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/cmd/dial.h"
#include "launcher/log/index.h"
#include "launcher/log/view.h"
#include "tests/unit/verb_rig.h"

#define T0 (INT64_C(1795227240) * NS_PER_S) /* 2026-11-21T02:14:00Z */
#define STAMPS \
	"\"start\":\"2026-11-21T02:14:00.000000Z\",\"end\":\"2026-11-21T02:15:00.000000Z\""

struct cJSON *__wrap_dial_status_now(const struct which *job);
int __wrap_isatty(int fd);
bool __wrap_view_alone(int fd);
int __real_fd_write_all(int fd, const void *data, size_t len);
int __wrap_fd_write_all(int fd, const void *data, size_t len);

static const char *status_now; /* of the job itself; NULL: it does not answer */
static bool tty;               /* standard output is one */
static bool alone;
static int unwritable; /* errno of standard output; 0: none */

struct cJSON *
__wrap_dial_status_now(const struct which *job)
{
	(void)job;
	return status_now != NULL ? cJSON_Parse(status_now) : NULL;
}

int
__wrap_isatty(int fd)
{
	return fd == STDOUT_FILENO && tty;
}

bool
__wrap_view_alone(int fd)
{
	(void)fd;
	return alone;
}

int
__wrap_fd_write_all(int fd, const void *data, size_t len)
{
	if (fd != STDOUT_FILENO || unwritable == 0)
		return __real_fd_write_all(fd, data, len);
	errno = unwritable;
	return -1;
}

TestSuite(logs, .init = verb_rig_make, .fini = folder_remove, .timeout = 60);

static void
append(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_neq(fd, -1, "%s", path);
	cr_assert_eq(__real_fd_write_all(fd, data, len), 0);
	fd_close(fd);
}

/* @text of @rank of attempt @number, "stdout" or "stderr", that came @ms after T0. */
static void
put_in(unsigned number, unsigned rank, const char *stream, const char *text,
	int64_t ms)
{
	char name[64];
	struct index_record r = { .ns = T0 + ms * NS_PER_MS };
	struct stat st;

	snprintf(name, sizeof(name), "%u", number);
	mkdir(job_path("k7m2", name), 0700);
	snprintf(name, sizeof(name), "%u/rank-%04u", number, rank);
	mkdir(job_path("k7m2", name), 0700);
	snprintf(name, sizeof(name), "%u/rank-%04u/%s", number, rank, stream);
	append(job_path("k7m2", name), text, strlen(text));
	cr_assert_eq(stat(job_path("k7m2", name), &st), 0);
	r.end = (uint64_t)st.st_size;
	snprintf(name, sizeof(name), "%u/rank-%04u/%s.idx", number, rank,
		stream);
	append(job_path("k7m2", name), &r, sizeof(r));
}

static void
put(unsigned rank, const char *stream, const char *text, int64_t ms)
{
	put_in(0, rank, stream, text, ms);
}

/* Two ranks that wrote three lines each. */
static void
make_two(void)
{
	job_make("k7m2", false, "{\"attempt\":0,\"ranks\":2," STAMPS "}");
	put(0, "stdout", "a0\n", 1000);
	put(1, "stdout", "b1\n", 2000);
	put(0, "stderr", "a2\n", 3000);
	put(1, "stderr", "b3\n", 4000);
	put(0, "stdout", "a4\n", 5000);
	put(1, "stdout", "b5\n", 6000);
}

Test(logs, lines_are_in_the_order_of_their_times)
{
	make_two();
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "[0] a0\n[1] b1\n[0]!a2\n[1]!b3\n[0] a4\n[1] b5\n", "");
}

Test(logs, ranks_and_streams_are_chosen)
{
	make_two();
	CALL("logs", "k7m2", "-r", "1");
	EXPECT_SAID(0, "[1] b1\n[1]!b3\n[1] b5\n", "");
	CALL("logs", "k7m2", "--stdout");
	EXPECT_SAID(0, "[0] a0\n[1] b1\n[0] a4\n[1] b5\n", "");
	CALL("logs", "k7m2", "--stderr");
	EXPECT_SAID(0, "[0]!a2\n[1]!b3\n", "");
	CALL("logs", "k7m2", "--stderr", "--stdout", "-r", "0");
	EXPECT_SAID(0, "[0] a0\n[0]!a2\n[0] a4\n", "");
	CALL("logs", "k7m2", "--no-prefix", "-r", "0");
	EXPECT_SAID(0, "a0\na2\na4\n", "");
	CALL("logs", "k7m2", "-r", "2");
	EXPECT_SAID(125, "", "xrun: --rank: '2': the ranks are 0 to 1\n");
}

Test(logs, the_last_lines_and_those_of_a_time)
{
	make_two();
	CALL("logs", "k7m2", "-n", "2");
	EXPECT_SAID(0, "[0] a4\n[1] b5\n", "");
	CALL("logs", "k7m2", "--tail", "0");
	EXPECT_SAID(0, "", "");
	CALL("logs", "k7m2", "--since", "02:14:04");
	EXPECT_SAID(0, "[1]!b3\n[0] a4\n[1] b5\n", "");
	CALL("logs", "k7m2", "--since", "02:14:04.001");
	EXPECT_SAID(0, "[0] a4\n[1] b5\n", "");
	CALL("logs", "k7m2", "--until", "02:14:02");
	EXPECT_SAID(0, "[0] a0\n[1] b1\n", "");
	CALL("logs", "k7m2", "--since", "02:14:02", "--until", "02:14:03",
		"-t");
	EXPECT_SAID(0, "02:14:02.000 [1] b1\n02:14:03.000 [0]!a2\n", "");
	CALL("logs", "k7m2", "-n", "1", "--since", "02:14:06");
	EXPECT_SAID(0, "[1] b5\n", "");
	CALL("logs", "k7m2", "-n", "3", "--since", "02:14:06");
	EXPECT_SAID(0, "[1] b5\n", "");
	CALL("logs", "k7m2", "--since", "noon");
	cr_expect_eq(said.status, 125);
}

Test(logs, lines_that_match)
{
	make_two();
	CALL("logs", "k7m2", "--grep", "a4");
	EXPECT_SAID(0, "[0] a4\n", "");
#ifndef __SANITIZE_ADDRESS__ /* there regexec(3) reads up to a NUL */
	CALL("logs", "k7m2", "--grep", "a[24]");
	EXPECT_SAID(0, "[0]!a2\n[0] a4\n", "");
	CALL("logs", "k7m2", "--grep", "A", "-i", "-n", "2");
	EXPECT_SAID(0, "[0]!a2\n[0] a4\n", "");
#endif
	CALL("logs", "k7m2", "--grep", "A", "-n", "2");
	EXPECT_SAID(0, "", "");
	CALL("logs", "k7m2", "-i");
	EXPECT_SAID(125, "",
		"xrun: logs: -i is for --grep   try: --grep PATTERN\n");
	CALL("logs", "k7m2", "-f", "--until", "1s");
	EXPECT_SAID(125, "",
		"xrun: logs: --until is for what is there already   try: -f or --until\n");
	CALL("logs", "k7m2", "--grep", "(");
	cr_expect_eq(said.status, 125);
}

Test(logs, objects_have_time_rank_stream_and_text)
{
	make_two();
	CALL("logs", "k7m2", "--json", "-n", "3");
	EXPECT_SAID(0,
		"{\"time\":\"2026-11-21T02:14:04.000000Z\",\"rank\":1,\"stream\":\"stderr\",\"text\":\"b3\"}\n"
		"{\"time\":\"2026-11-21T02:14:05.000000Z\",\"rank\":0,\"stream\":\"stdout\",\"text\":\"a4\"}\n"
		"{\"time\":\"2026-11-21T02:14:06.000000Z\",\"rank\":1,\"stream\":\"stdout\",\"text\":\"b5\"}\n",
		"");
	CALL("logs", "k7m2", "--json", "--grep", "a4");
	EXPECT_SAID(0,
		"{\"time\":\"2026-11-21T02:14:05.000000Z\",\"rank\":0,\"stream\":\"stdout\",\"text\":\"a4\"}\n",
		"");
	/* A last line without its newline. */
	put(1, "stdout", "end", 7000);
	CALL("logs", "k7m2", "--json", "-n", "1");
	EXPECT_SAID(0,
		"{\"time\":\"2026-11-21T02:14:07.000000Z\",\"rank\":1,\"stream\":\"stdout\",\"text\":\"end\"}\n",
		"");
}

Test(logs, a_line_without_its_end_gets_one_before_the_next)
{
	job_make("k7m2", false, "{\"attempt\":0,\"ranks\":1," STAMPS "}");
	put(0, "stdout", "one\ntwo", 1000);
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "one\ntwo", "");
	put(0, "stderr", "three\n", 500);
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "three\none\ntwo", "");
	put(0, "stderr", "four\n", 2000);
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "three\none\ntwo\nfour\n", "");
}

Test(logs, of_many_ranks_a_part_is_shown_on_a_terminal)
{
	char line[32];

	job_make("k7m2", false, "{\"attempt\":0,\"ranks\":20," STAMPS "}");
	for (unsigned r = 0; r < 20; r++) {
		snprintf(line, sizeof(line), "line %u\n", r);
		put(r, "stdout", line, 1000 * r);
	}
	put(7, "stderr", "oh\n", 50000);
	tty = true;
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "[ 0] line 0\n[ 7]!oh\n",
		"xrun: 20 ranks: showing rank 0's stdout and everybody's stderr; -r 0-19 shows the rest\n");
	CALL("logs", "k7m2", "--stdout");
	EXPECT_SAID(0, "[ 0] line 0\n",
		"xrun: 20 ranks: showing rank 0's stdout; -r 0-19 shows the rest\n");
	CALL("logs", "k7m2", "--stderr");
	EXPECT_SAID(0, "[ 7]!oh\n", "");
	CALL("logs", "k7m2", "-r", "3,19");
	EXPECT_SAID(0, "[ 3] line 3\n[19] line 19\n", "");
	CALL("logs", "k7m2", "--grep", "line 18");
	EXPECT_SAID(0, "[18] line 18\n", "");
	CALL("logs", "k7m2", "--json", "-n", "1");
	EXPECT_SAID(0,
		"{\"time\":\"2026-11-21T02:14:50.000000Z\",\"rank\":7,\"stream\":\"stderr\",\"text\":\"oh\"}\n",
		"");
}

Test(logs, attempts)
{
	job_make("k7m2", false, "{\"attempt\":2,\"ranks\":1," STAMPS "}");
	put_in(0, 0, "stdout", "zero\n", 1000);
	put_in(1, 0, "stdout", "one\n", 2000);
	cr_assert_eq(mkdir(job_path("k7m2", "2"), 0700), 0);
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "one\n",
		"xrun: attempt 2 wrote nothing; this is attempt 1\n");
	CALL("logs", "k7m2", "--attempt", "0");
	EXPECT_SAID(0, "zero\n", "");
	CALL("logs", "k7m2", "--attempt", "2");
	EXPECT_SAID(0, "", "");
	CALL("logs", "k7m2", "--attempt", "3");
	EXPECT_SAID(125, "",
		"xrun: k7m2 has no attempt 3   try: --attempt 2, its last\n");
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "", "");
	CALL("logs", "-f", "k7m2", "--attempt", "0");
	EXPECT_SAID(0, "zero\n", "");
}

Test(logs, bytes_that_are_gone_are_counted)
{
	make_two();
	/* Of rank 1, what came first was removed: its files begin later. */
	cr_assert_eq(rename(job_path("k7m2", "0/rank-0001/stdout"),
			     job_path("k7m2",
				     "0/rank-0001/stdout.000000000000003")),
		0);
	cr_assert_eq(rename(job_path("k7m2", "0/rank-0001/stdout.idx"),
			     job_path("k7m2",
				     "0/rank-0001/stdout.000000000000003.idx")),
		0);
	put(1, "stdout", "new\n", 9000);
	CALL("logs", "k7m2");
	EXPECT_SAID(0,
		"[0] a0\n[0]!a2\n[1]!b3\n[0] a4\n[1] b1\n[1] b5\n[1] new\n",
		"xrun: 3 bytes were rotated away\n");
	CALL("logs", "k7m2", "-f");
	EXPECT_SAID(0,
		"[0] a0\n[0]!a2\n[1]!b3\n[0] a4\n[1] b1\n[1] b5\n[1] new\n",
		"xrun: 3 bytes were rotated away\n");
	CALL("logs", "k7m2", "-n", "1");
	EXPECT_SAID(0, "[1] new\n", "");
	CALL("logs", "k7m2", "-n", "100", "-r", "1", "--stdout");
	EXPECT_SAID(0, "[1] b1\n[1] b5\n[1] new\n",
		"xrun: 3 bytes were rotated away\n");
	CALL("logs", "k7m2", "-n", "3", "-r", "1", "--stdout");
	EXPECT_SAID(0, "[1] b1\n[1] b5\n[1] new\n", "");
	CALL("logs", "k7m2", "-r", "0");
	EXPECT_SAID(0, "[0] a0\n[0]!a2\n[0] a4\n", "");
}

Test(logs, equal_lines_of_several_ranks_are_one)
{
	job_make("k7m2", false, "{\"attempt\":0,\"ranks\":3," STAMPS "}");
	for (unsigned r = 0; r < 3; r++)
		put(r, "stdout", "same\n", 1000 + r);
	put(1, "stdout", "other\n", 3000);
	CALL("logs", "k7m2", "--collapse", "on");
	EXPECT_SAID(0, "[0-2] same\n[1] other\n", "");
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "[0] same\n[1] same\n[2] same\n[1] other\n", "");
	CALL("logs", "k7m2", "--collapse", "on", "--no-prefix");
	EXPECT_SAID(0, "same\nsame\nsame\nother\n", "");
	tty = true;
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "[0-2] same\n[1] other\n", "");
	CALL("logs", "k7m2", "--collapse", "off");
	EXPECT_SAID(0, "[0] same\n[1] same\n[2] same\n[1] other\n", "");
	CALL("logs", "k7m2", "--color", "always", "-n", "1");
	EXPECT_SAID(0, "\033[32m[1] \033[0mother\n", "");
}

Test(logs, output_that_cannot_be_written)
{
	make_two();
	unwritable = ENOSPC;
	CALL("logs", "k7m2");
	EXPECT_SAID(125, "",
		"xrun: standard output: No space left on device\n");
	unwritable = EPIPE;
	CALL("logs", "k7m2");
	EXPECT_SAID(141, "", "");
}

Test(logs, a_file_that_cannot_be_opened_is_named)
{
	make_two();
	cr_assert_eq(rename(job_path("k7m2", "0/rank-0001"),
			     job_path("k7m2", "0/away")),
		0);
	folder_write(job_path("k7m2", "0/rank-0001"), "", 0600);
	CALL("logs", "k7m2");
	EXPECT_SAID(125, "",
		"xrun: ~/state/xrun/k7m2/0/rank-0001/stdout: Not a directory   try: -r RANKS\n");
	CALL("logs", "k7m2", "-r", "0");
	EXPECT_SAID(0, "[0] a0\n[0]!a2\n[0] a4\n", "");
}

Test(logs, a_job_that_runs)
{
	job_make("k7m2", true, NULL);
	put(0, "stdout", "a\nbegun", 1000);
	CALL("logs", "k7m2");
	EXPECT_SAID(125, "", "xrun: k7m2 says nothing of itself yet\n");
	status_now =
		"{\"attempt\":0,\"ranks\":1,\"start\":\"2026-11-21T02:14:00.000000Z\"}";
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "a\n", "");
	job_end("k7m2");
	CALL("logs", "k7m2");
	EXPECT_SAID(0, "a\nbegun", "");
}

Test(logs, a_job_that_has_ended_is_followed_to_its_end)
{
	make_two();
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "[0] a0\n[1] b1\n[0]!a2\n[1]!b3\n[0] a4\n[1] b5\n", "");
	CALL("logs", "-f", "k7m2", "-n", "1");
	EXPECT_SAID(0, "[1] b5\n", "");
	put_in(1, 0, "stdout", "next\n", 9000);
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "next\n", "");
}

Test(logs, a_job_without_output)
{
	CALL("logs");
	EXPECT_SAID(125, "", "xrun: there is no job yet   try: xrun ps -a\n");
	job_make("k7m2", false, "{\"attempt\":0,\"ranks\":2," STAMPS "}");
	CALL("logs", "k7m2");
	cr_expect_eq(said.status, 125);
	cr_expect(strncmp(said.err, "xrun: k7m2: there is no output in ", 34) ==
			0,
		"%s", said.err);
	CALL("logs", "b");
	EXPECT_SAID(125, "", "xrun: there is no job 'b'   try: xrun ps -a\n");
}

Test(logs, a_job_of_the_history)
{
	char line[2 * PATH_MAX];

	past_make("{\"job\":\"gone\",\"dir\":\"/nowhere/gone\"}");
	past_make("{\"job\":\"silent\"}");
	past_make("{\"job\":\"empty\",\"dir\":\"/nowhere/x\",\"bytes\":0}");
	past_make("{\"job\":\"off\",\"no_logs\":true}");
	CALL("logs", "gone");
	EXPECT_SAID(125, "",
		"xrun: gone: its output was removed from /nowhere/gone\n");
	CALL("logs", "silent");
	EXPECT_SAID(0, "",
		"xrun: silent kept no output: its ranks wrote nothing\n");
	CALL("logs", "empty");
	EXPECT_SAID(0, "",
		"xrun: empty kept no output: its ranks wrote nothing\n");
	CALL("logs", "off");
	EXPECT_SAID(125, "",
		"xrun: off kept no output: it was started with --no-logs   try: start it without that, or with --log-dir DIR\n");
	/* One whose output is elsewhere. */
	make_two();
	cr_assert_eq(rename(job_path("k7m2", ""), "k7m2"), 0);
	snprintf(line, sizeof(line), "{\"job\":\"far\",\"dir\":\"%s/k7m2\"}",
		folder);
	past_make(line);
	CALL("logs", "far", "-n", "1");
	EXPECT_SAID(0, "[1] b5\n", "");
	CALL("logs", "./k7m2", "-n", "1");
	EXPECT_SAID(0, "[1] b5\n", "");
}
