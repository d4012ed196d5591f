/* SPDX-License-Identifier: Apache-2.0 */
/* test_bus.c - what happens to a job, as lines of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/bus.h"
#include "tests/unit/folder.h"

#define MANY    5000
#define LONG_NS (20 * NS_PER_S)

static char *argv[] = { "./train", "--name", "two words", "\xff\"\n", NULL };

static struct part part = { .argv = argv, .size = 4 };
static struct rank rank[4];
static struct job job;
static struct keeper_page page;
static struct loop *loop;
static struct work *work;
static struct bus *bus, *buses[8]; /* none is ever freed */
static int bus_count;

/* A job that keeps files in the working directory; @events: of --events. */
static int
begin(const char *events)
{
	int file = -1;

	job = (struct job){
		.parts = &part,
		.part_count = 1,
		.rank = rank,
		.page = &page,
		.plan = { .local_size = 4, .first = 0 },
		.state = { .id = "k7m2", .dir_fd = -1, .attempt_fd = -1 },
	};
	page = (struct keeper_page){ 0 };
	if (loop == NULL)
		loop = loop_new();
	if (work == NULL)
		work = work_new();
	if (events != NULL)
		file = open(events, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bus = buses[bus_count++] = bus_new(&job, loop, work, file);
	cr_assert_not_null(bus);
	return file;
}

static void
keep_files(void)
{
	job.state.dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_neq(job.state.dir_fd, -1);
}

TestSuite(bus, .init = folder_make, .fini = folder_remove);

static void
flush(bool keep)
{
	bus_flush(bus, keep);
	cr_assert(work_wait(work, LONG_NS));
}

/* The lines of a file, parsed; "" is no line. */
static cJSON *lines[MANY + 1];

static int
read_lines(const char *path)
{
	static char *text;
	char *at, *end;
	size_t len;
	int n = 0;

	free(text);
	text = NULL;
	for (int i = 0; i <= MANY; i++) {
		cJSON_Delete(lines[i]);
		lines[i] = NULL;
	}
	if (fd_read_file(path, 1 << 30, &text, &len, NULL) != XR_OK)
		return -1;
	for (at = text; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		cr_assert_leq(n, MANY);
		cr_assert_eq(gate_check("line", at, (size_t)(end - at), 1 << 20,
				     NULL),
			XR_OK, "%.*s", (int)(end - at), at);
		lines[n] = cJSON_ParseWithLength(at, (size_t)(end - at));
		cr_assert_not_null(lines[n]);
		n++;
	}
	cr_assert_eq(*at, '\0', "the last line is whole");
	return n;
}

/* The names of a line's fields in their order: "v,seq,...". */
static const char *
fields_of(const cJSON *line)
{
	static char text[256];
	const cJSON *item;

	text[0] = '\0';
	cJSON_ArrayForEach(item, line)
	{
		strncat(text, item->string, 64);
		strncat(text, ",", 2);
	}
	return text;
}

static const char *
text_of(const cJSON *line, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

	return cJSON_IsString(item) ? item->valuestring : "?";
}

static int
number_of(const cJSON *line, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

	return cJSON_IsNumber(item) ? (int)item->valuedouble : -77;
}

static bool
flag_of(const cJSON *line, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, key));
}

#define HEAD "v,seq,mono_ns,time,event,"

/* One event, told and read back. */
static const cJSON *
tell(enum bus_event event, uint32_t about, const char *fields)
{
	char want[256];

	begin("events");
	bus_tell(bus, event, about);
	flush(true);
	cr_assert_eq(read_lines("events"), 1);
	snprintf(want, sizeof(want), HEAD "%s", fields);
	cr_expect_str_eq(fields_of(lines[0]), want);
	cr_expect_str_eq(text_of(lines[0], "event"), bus_event_name(event));
	return lines[0];
}

Test(bus, every_line_says_when_and_in_which_order)
{
	int64_t now = clock_now(), last = now;
	char stamp[40];

	begin("events");
	clock_stamp(clock_wall(), stamp, sizeof(stamp));
	for (uint32_t i = 0; i < 10; i++)
		bus_tell(bus, BUS_RANK_START, i % 4);
	flush(true);
	cr_assert_eq(read_lines("events"), 10);
	for (int i = 0; i < 10; i++) {
		int64_t mono = (int64_t)cJSON_GetObjectItem(lines[i], "mono_ns")
				       ->valuedouble;

		cr_expect_eq(number_of(lines[i], "v"), 1);
		cr_expect_eq(number_of(lines[i], "seq"), i);
		cr_expect_geq(mono, last);
		cr_expect_geq(strcmp(text_of(lines[i], "time"), stamp), 0);
		cr_expect_eq(strlen(text_of(lines[i], "time")), 27);
		last = mono;
	}
	cr_expect_lt(last - now, LONG_NS);
}

Test(bus, the_start_of_a_job_has_its_words_whatever_bytes_they_are)
{
	const cJSON *l =
		tell(BUS_JOB_START, 0, "job,attempt,host,pid,ranks,argv,");
	const cJSON *words = cJSON_GetObjectItem(l, "argv");
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	cr_expect_str_eq(text_of(l, "job"), "k7m2");
	cr_expect_str_eq(text_of(l, "host"), host);
	cr_expect_eq(number_of(l, "pid"), getppid());
	cr_expect_eq(number_of(l, "ranks"), 4);
	cr_assert_eq(cJSON_GetArraySize(words), 4);
	cr_expect_str_eq(cJSON_GetArrayItem(words, 0)->valuestring, "./train");
	cr_expect_str_eq(cJSON_GetArrayItem(words, 2)->valuestring,
		"two words");
	cr_expect_str_eq(cJSON_GetArrayItem(words, 3)->valuestring,
		"\xef\xbf\xbd\"\n");
}

Test(bus, the_start_of_a_rank_has_its_pid)
{
	const cJSON *l;

	rank[3].pid = 4711;
	l = tell(BUS_RANK_START, 3, "rank,pid,");
	cr_expect_eq(number_of(l, "rank"), 3);
	cr_expect_eq(number_of(l, "pid"), 4711);
}

Test(bus, a_rank_that_did_not_start_says_why)
{
	const cJSON *l;

	rank[1].failed_step = SPAWN_EXEC;
	rank[1].failed_sys = ENOENT;
	l = tell(BUS_RANK_ERROR, 1, "rank,step,error,");
	cr_expect_eq(number_of(l, "rank"), 1);
	cr_expect_str_eq(text_of(l, "step"), "exec");
	cr_expect_str_eq(text_of(l, "error"), "No such file or directory");
}

Test(bus, the_exit_of_a_rank_has_its_status)
{
	const cJSON *l;

	rank[2].pid = 4711;
	rank[2].status = 77 << 8;
	l = tell(BUS_RANK_EXIT, 2, "rank,pid,exit,stopped,");
	cr_expect_eq(number_of(l, "rank"), 2);
	cr_expect_eq(number_of(l, "pid"), 4711);
	cr_expect_eq(number_of(l, "exit"), 77);
	cr_expect_not(flag_of(l, "stopped"));
}

Test(bus, or_its_signal_and_its_core)
{
	const cJSON *l;

	rank[2].status = SIGSEGV | 0x80;
	l = tell(BUS_RANK_EXIT, 2, "rank,pid,signal,core,exit,stopped,");
	cr_expect_str_eq(text_of(l, "signal"), "SIGSEGV");
	cr_expect_eq(number_of(l, "exit"), 128 + SIGSEGV);
	cr_expect(flag_of(l, "core"));
	rank[2].status = SIGTERM;
	rank[2].after_stop = true;
	l = tell(BUS_RANK_EXIT, 2, "rank,pid,signal,core,exit,stopped,");
	cr_expect_str_eq(text_of(l, "signal"), "SIGTERM");
	cr_expect_not(flag_of(l, "core"));
	cr_expect(flag_of(l, "stopped"));
}

/* The number of an event is that of a stream: rank 3 has 6 and 7. */
Test(bus, a_full_disk_is_told_by_stream)
{
	const cJSON *l = tell(BUS_LOG_ROOM, 6, "rank,stream,");

	cr_expect_eq(number_of(l, "rank"), 3);
	cr_expect_str_eq(text_of(l, "stream"), "stdout");
	l = tell(BUS_LOG_ROOM, 7, "rank,stream,");
	cr_expect_eq(number_of(l, "rank"), 3);
	cr_expect_str_eq(text_of(l, "stream"), "stderr");
}

/* tell() with why the job is ended. */
static const cJSON *
tell_cause(enum bus_event event, enum cause cause, int sig)
{
	begin("events");
	job.cause = cause;
	job.cause_signal = sig;
	bus_tell(bus, event, 0);
	flush(true);
	cr_assert_eq(read_lines("events"), 1);
	return lines[0];
}

Test(bus, a_stop_has_its_reason)
{
	const cJSON *l = tell_cause(BUS_JOB_STOP, CAUSE_TIMEOUT, 0);

	cr_expect_str_eq(fields_of(l), HEAD "reason,");
	cr_expect_str_eq(text_of(l, "reason"), "timeout");
	l = tell_cause(BUS_JOB_STOP, CAUSE_SIGNAL, SIGINT);
	cr_expect_str_eq(fields_of(l), HEAD "reason,signal,");
	cr_expect_str_eq(text_of(l, "reason"), "signal");
	cr_expect_str_eq(text_of(l, "signal"), "SIGINT");
}

Test(bus, the_end_of_a_job_has_its_exit_status)
{
	const cJSON *l = tell_cause(BUS_JOB_END, CAUSE_NONE, 0);

	cr_expect_str_eq(fields_of(l), HEAD "exit,reason,");
	cr_expect_eq(number_of(l, "exit"), 0);
	cr_expect_str_eq(text_of(l, "reason"), "ok");
	rank[1].death = 1;
	rank[1].status = 9 << 8;
	l = tell_cause(BUS_JOB_END, CAUSE_FAILURE, 0);
	cr_expect_str_eq(fields_of(l), HEAD "exit,reason,culprit,");
	cr_expect_eq(number_of(l, "exit"), 9);
	cr_expect_str_eq(text_of(l, "reason"), "failure");
	cr_expect_eq(number_of(l, "culprit"), 1);
}

Test(bus, ranks_have_their_number_in_the_job)
{
	begin("events");
	job.plan.first = 8;
	rank[1].death = 1;
	rank[1].status = 9 << 8;
	bus_tell(bus, BUS_RANK_START, 1);
	bus_tell(bus, BUS_RANK_ERROR, 1);
	bus_tell(bus, BUS_RANK_EXIT, 1);
	bus_tell(bus, BUS_LOG_ROOM, 1 * RAW_STREAMS);
	bus_tell(bus, BUS_JOB_END, 0);
	flush(true);
	cr_assert_eq(read_lines("events"), 5);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(number_of(lines[i], "rank"), 9);
	cr_expect_eq(number_of(lines[4], "culprit"), 9);
}

Test(bus, every_event_has_a_name_of_its_own)
{
	for (int i = 0; i < BUS_EVENT_COUNT; i++)
		for (int k = 0; k < i; k++)
			cr_expect_str_neq(bus_event_name((enum bus_event)i),
				bus_event_name((enum bus_event)k));
	cr_expect_str_eq(bus_event_name(BUS_RANK_EXIT), "rank.exit");
	cr_expect_str_eq(bus_event_name(BUS_EVENT_COUNT), "?");
}

Test(bus, lines_go_to_the_folder_and_to_the_file)
{
	begin("mine");
	keep_files();
	bus_tell(bus, BUS_RANK_START, 0);
	flush(true);
	bus_tell(bus, BUS_RANK_START, 1);
	flush(true);
	cr_expect_eq(read_lines("events.jsonl"), 2, "one after the other");
	cr_expect_eq(read_lines("mine"), 2);
}

Test(bus, a_folder_that_will_be_removed_gets_no_file)
{
	begin("mine");
	keep_files();
	bus_tell(bus, BUS_JOB_START, 0);
	flush(false);
	cr_expect_eq(read_lines("events.jsonl"), -1);
	cr_expect_eq(read_lines("mine"), 1);
	cr_expect_eq(folder_entries("."), 1);
}

Test(bus, what_nobody_reads_is_not_written)
{
	begin(NULL);
	for (int i = 0; i < 10; i++)
		bus_tell(bus, BUS_JOB_START, 0);
	flush(true);
	cr_expect_eq(folder_entries("."), 0);
}

Test(bus, a_link_in_place_of_the_file_is_not_followed)
{
	begin(NULL);
	keep_files();
	folder_write("precious", "", 0600);
	cr_assert_eq(symlink("precious", "events.jsonl"), 0);
	bus_tell(bus, BUS_JOB_START, 0);
	flush(true);
	cr_expect_eq(read_lines("precious"), 0);
}

static void
stop_when_written(void *ctx)
{
	struct timer *again = *(struct timer **)ctx;

	if (access("events.jsonl", F_OK) == 0)
		loop_stop(loop);
	else
		timer_arm(again, NS_PER_MS);
}

static void
stop_at_last(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

Test(bus, lines_are_written_soon_without_a_flush)
{
	struct timer *look = NULL, *belt;

	begin(NULL);
	keep_files();
	look = timer_open(loop, stop_when_written, &look);
	belt = timer_open(loop, stop_at_last, NULL);
	timer_arm(look, 0);
	timer_arm(belt, LONG_NS);
	bus_tell(bus, BUS_RANK_START, 0);
	bus_tell(bus, BUS_RANK_START, 1);
	loop_run(loop);
	cr_assert(work_wait(work, LONG_NS));
	cr_expect_eq(read_lines("events.jsonl"), 2, "both at once");
	timer_close(look);
	timer_close(belt);
}

/* While the helper thread writes, the loop tells on. */
Test(bus, no_line_of_many_is_lost_or_turned_round)
{
	begin("mine");
	keep_files();
	for (uint32_t i = 0; i < MANY; i++)
		bus_tell(bus, BUS_RANK_START, i % 4);
	cr_expect_geq(folder_entries("."), 1);
	flush(true);
	cr_assert_eq(read_lines("events.jsonl"), MANY);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(number_of(lines[i], "seq"), i);
	cr_assert_eq(read_lines("mine"), MANY);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(number_of(lines[i], "rank"), i % 4);
}

/* A pipe that nobody reads holds the helper thread, not the loop. */
Test(bus, a_slow_reader_holds_nobody_up)
{
	int64_t begun = clock_now();
	char path[64];
	int p[2];

	cr_assert_eq(sigaction(SIGPIPE,
			     &(struct sigaction){ .sa_handler = SIG_IGN },
			     NULL),
		0);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[1]);
	begin(path);
	keep_files();
	for (uint32_t i = 0; i < MANY; i++)
		bus_tell(bus, BUS_RANK_START, i % 4);
	bus_flush(bus, true);
	cr_expect_lt(clock_now() - begun, LONG_NS);
	cr_expect_not(work_wait(work, 0));
	close(p[0]);
}

Test(bus, what_finds_no_room_is_written_when_there_is_some)
{
	int fd = begin("/dev/full");

	bus_tell(bus, BUS_RANK_START, 0);
	flush(true);
	cr_expect_eq(job.events_sys, 0, "not for the time being");
	cr_assert_eq(dup2(open("events", O_WRONLY | O_CREAT, 0600), fd), fd);
	bus_tell(bus, BUS_RANK_START, 1);
	flush(true);
	cr_expect_eq(job.events_sys, 0);
	cr_expect_eq(read_lines("events"), 2);
}

Test(bus, the_first_failure_ends_a_file_and_is_remembered)
{
	begin("/dev/full");
	bus_tell(bus, BUS_RANK_START, 0);
	cr_assert(bus_flush_last(bus, true));
	cr_assert(work_wait(work, LONG_NS));
	cr_expect_eq(job.events_sys, ENOSPC);
	bus_lose(&job.events_sys, EIO);
	cr_expect_eq(job.events_sys, ENOSPC);
}

Test(bus, after_a_failure_nothing_more_is_written)
{
	begin("events");
	bus_tell(bus, BUS_RANK_START, 0);
	flush(true);
	bus_lose(&job.events_sys, ENOSPC);
	bus_tell(bus, BUS_RANK_START, 1);
	flush(true);
	cr_expect_eq(read_lines("events"), 1);
}

Test(bus, a_file_of_the_job_that_cannot_be_made_is_remembered)
{
	begin(NULL);
	keep_files();
	cr_assert_eq(mkdir("events.jsonl", 0700), 0);
	bus_tell(bus, BUS_RANK_START, 0);
	flush(true);
	cr_expect_eq(job.state_sys, EISDIR);
	cr_expect_eq(job.events_sys, 0);
}
