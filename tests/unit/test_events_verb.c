/* SPDX-License-Identifier: Apache-2.0 */
/* test_events_verb.c - xrun events: the file of a job's events, now and as it grows. */
#include <stdint.h>

#include "base/fd.h"
#include "launcher/cmd/lookout.h"
#include "tests/unit/verb_rig.h"

enum lookout_news __wrap_lookout_wait(struct lookout *w, bool patient,
	lookout_fn *fn, void *ctx);
int __real_fd_write_all(int fd, const void *data, size_t len);
int __wrap_fd_write_all(int fd, const void *data, size_t len);
int __wrap_isatty(int fd);
bool __wrap_lookout_open(struct lookout *w);
bool __real_lookout_open(struct lookout *w);

static const char *grows[4]; /* by these, one at each wait; then the job ends */
static bool closed;          /* nobody reads any more, at the first wait */
static bool tty, blind;
static int unwritable;
static int waits;

static void
append(const char *text)
{
	FILE *f = fopen(job_path("k7m2", "events.jsonl"), "a");

	fputs(text, f);
	fclose(f);
}

/* In xrun itself: what the job does meanwhile. */
enum lookout_news
__wrap_lookout_wait(struct lookout *w, bool patient, lookout_fn *fn, void *ctx)
{
	cr_expect(patient);
	fn(ctx, 0, "");
	(void)w;
	if (closed)
		return LOOKOUT_CLOSED;
	if (grows[waits] != NULL) {
		append(grows[waits++]);
		return LOOKOUT_CHANGED;
	}
	/* Somebody else has it by now. */
	folder_write(job_path("k7m2", "lock"), "0", 0600);
	cr_assert_eq(rename(job_path("k7m2", "lock"), "old"), 0);
	folder_write(job_path("k7m2", "lock"), "0", 0600);
	append("{\"event\":\"job.end\",\"exit\":0,\"reason\":\"ok\"}\n");
	return LOOKOUT_OVER;
}

bool
__wrap_lookout_open(struct lookout *w)
{
	errno = EMFILE;
	return !blind && __real_lookout_open(w);
}

int
__wrap_fd_write_all(int fd, const void *data, size_t len)
{
	if (fd != STDOUT_FILENO || unwritable == 0)
		return __real_fd_write_all(fd, data, len);
	errno = unwritable;
	return -1;
}

int
__wrap_isatty(int fd)
{
	return fd == STDOUT_FILENO && tty;
}

TestSuite(events_verb, .init = verb_rig_make, .fini = folder_remove,
	.timeout = 60);

#define HEAD  "TIME                     EVENT      RANK  WHAT\n"
#define START "{\"event\":\"rank.start\",\"rank\":3,\"pid\":7}\n"
#define ROW   "-                        rank.start    3  pid 7\n"
#define ENDED "-                        job.end          exit 0, ok\n"

Test(events_verb, each_has_a_row)
{
	job_make("k7m2", false, NULL);
	CALL("events", "k7m2");
	EXPECT_SAID(0, "", "");
	folder_write(job_path("k7m2", "events.jsonl"),
		START
		"{\"event\":\"job.end\",\"exit\":0,\"reason\":\"ok\"}\n{\"event\":\"cut",
		0600);
	CALL("events", "k7m2");
	EXPECT_SAID(0, HEAD ROW ENDED, "");
	CALL("events", "k7m2", "--json");
	EXPECT_SAID(0,
		START "{\"event\":\"job.end\",\"exit\":0,\"reason\":\"ok\"}\n",
		"");
	CALL("events", "k7m2", "-f");
	EXPECT_SAID(0, HEAD ROW ENDED, "");
	CALL("events", "a", "b");
	EXPECT_SAID(125, "",
		"xrun: events: 'b' is one word too many   try: xrun events -h\n");
	CALL("events", "a");
	EXPECT_SAID(125, "", "xrun: there is no job 'a'   try: xrun ps -a\n");
}

Test(events_verb, many_of_them)
{
	const size_t count = 4000;

	job_make("k7m2", false, NULL);
	for (size_t i = 0; i < count; i++)
		append("{\"event\":\"x\"}\n");
	CALL("events", "k7m2", "--json");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(strlen(said.out), count * 14);
	cr_expect_str_eq(said.out + (count - 2) * 14,
		"{\"event\":\"x\"}\n{\"event\":\"x\"}\n");
}

Test(events_verb, a_job_that_runs_is_followed)
{
	job_make("k7m2", true, NULL);
	grows[0] = START;
	grows[1] = "{\"event\":\"rank.st";
	grows[2] = "art\",\"rank\":3,\"pid\":7}\n" START;
	CALL("events", "k7m2", "-f");
	EXPECT_SAID(0, HEAD ROW ROW ROW ENDED, "");
}

Test(events_verb, who_follows_ends_when_nobody_reads)
{
	job_make("k7m2", true, NULL);
	append(START);
	closed = true;
	CALL("events", "k7m2", "-f");
	EXPECT_SAID(141, HEAD ROW, "");
	unwritable = EPIPE;
	CALL("events", "k7m2", "-f");
	EXPECT_SAID(141, "", "");
	unwritable = ENOSPC;
	CALL("events", "k7m2");
	EXPECT_SAID(125, "",
		"xrun: standard output: No space left on device\n");
	unwritable = 0;
	blind = true;
	CALL("events", "k7m2", "-f");
	EXPECT_SAID(125, "", "xrun: events: inotify: Too many open files\n");
}

Test(events_verb, what_is_no_file_is_not_read)
{
	job_make("k7m2", false, NULL);
	folder_write("other", START, 0600);
	cr_assert_eq(symlink("../../../other",
			     job_path("k7m2", "events.jsonl")),
		0);
	CALL("events", "k7m2");
	EXPECT_SAID(0, "", "");
	cr_assert_eq(unlink(job_path("k7m2", "events.jsonl")), 0);
	cr_assert_eq(mkfifo(job_path("k7m2", "events.jsonl"), 0600), 0);
	CALL("events", "k7m2");
	EXPECT_SAID(0, "", "");
}

Test(events_verb, no_name_steers_the_terminal)
{
	static const char odd[] =
		"{\"event\":\"rank.error\",\"step\":\"\\u001b[2J\",\"error\":\"\302\233x\"}\n";

	job_make("k7m2", false, NULL);
	append(odd);
	CALL("events", "k7m2", "--json");
	cr_expect_str_eq(said.out, odd);
	tty = true;
	CALL("events", "k7m2", "--json");
	cr_expect(strstr(said.out, "\"??x\"") != NULL, "%s", said.out);
	folder_write(job_path("k7m2", "events.jsonl"), "", 0600);
	CALL("events", "k7m2", "--json");
	EXPECT_SAID(0, "", "");
}
