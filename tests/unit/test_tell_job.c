/* SPDX-License-Identifier: Apache-2.0 */
/* test_tell_job.c - what ranks count, which of them are slow, and why they were killed. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/stat/pace.h"
#include "launcher/stat/usage.h"
#include "launcher/sup/counted.h"
#include "launcher/tell/figures.h"
#include "launcher/tell/gauges.h"
#include "launcher/tell/slow.h"
#include "launcher/tell/who.h"
#include "launcher/tell/why.h"
#include "segment/figures.h"
#include "segment/gauge.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "wire/control.h"

#define RANKS 8
#define FIRST 10 /* of the ranks of this node */
#define MOST  ((INT64_C(1) << 53) - 1)

TestSuite(tell, .init = folder_make, .fini = folder_remove);

static struct rank ranks[RANKS];
static struct part parts[2];
static struct keeper_page page;
static struct sup sup;
static struct job job = {
	.rank = ranks,
	.parts = parts,
	.page = &page,
	.sup = &sup,
	.plan = { .size = FIRST + RANKS, .first = FIRST, .local_size = RANKS },
};

static void
is_text(struct buf *out, const char *want)
{
	cr_expect_str_eq(buf_text(out), want, "got:  %s\nwant: %s",
		buf_text(out), want);
	buf_clear(out);
}

/* --- calls ---------------------------------------------------------------- */

/* Reports @latency and @errors as rank 1. */
static const struct figures_view *
count(const char *latency, int64_t errors)
{
	const struct control m = { .type = CONTROL_RPC,
		.rpc = { .errors = errors,
			.bytes_in = 5,
			.latency = span_of(latency) } };

	cr_expect(counted_told(&job, 1, &m));
	return ranks[1].figures;
}

Test(tell, pairs_of_latencies_are_checked)
{
	static const struct {
		const char *latency;
		uint32_t bucket;
		int64_t calls; /* in @bucket, and in all */
	} rows[] = {
		{ "[]", 0, 0 },
		{ "[[3,5]]", 3, 5 },
		{ "[[0,5]]", 0, 5 },
		{ "[[111,5]]", 111, 5 },
		{ "[[112,5]]", 111, 0 },
		{ "[[-1,5]]", 0, 0 },
		{ "[[3,1]]", 3, 1 },
		{ "[[3,0]]", 3, 0 },
		{ "[[3,5],[3,0]]", 3, 5 },
		{ "[[3,-5]]", 3, 0 },
		{ "[[3]]", 3, 0 },
		{ "[[]]", 0, 0 },
		{ "[7]", 0, 0 },
		{ "[[\"3\",5]]", 3, 0 },
		{ "[[3,\"5\"]]", 3, 0 },
		{ "[[3,5,7]]", 3, 5 },
		{ "[[3,1e300]]", 3, MOST },
		{ "[[3,9007199254740990]]", 3, MOST - 1 },
		{ "[[3,9007199254740992]]", 3, MOST },
	};
	const struct figures_view *v;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = count(rows[i].latency, 0);
		cr_assert_not_null(v);
		cr_expect_eq(v->latency[rows[i].bucket], rows[i].calls, "%s",
			rows[i].latency);
		cr_expect_eq(v->calls, rows[i].calls, "%s", rows[i].latency);
	}
	cr_expect_eq(count("[[1,1e300],[2,1e300]]", 0)->calls, MOST);
	free(ranks[1].figures);
}

Test(tell, counts_are_within_what_json_can_hold)
{
	static const struct {
		int64_t told, is;
	} rows[] = { { 0, 0 }, { 7, 7 }, { -1, 0 }, { INT64_MIN, 0 },
		{ MOST - 1, MOST - 1 }, { MOST, MOST }, { MOST + 1, MOST },
		{ INT64_MAX, MOST } };
	const struct figures_view *v;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = count("[]", rows[i].told);
		cr_expect_eq(v->count[FIGURE_ERRORS], rows[i].is);
		cr_expect_eq(v->count[FIGURE_BYTES_IN], 5);
	}
	free(ranks[1].figures);
}

Test(tell, without_memory_nothing_is_counted)
{
	until_short = 1;
	cr_expect_null(count("[[3,5]]", 1));
	until_short = 0;
	cr_expect_eq(count("[[3,5]]", 1)->calls, 5);
	/* the memory is there already */
	until_short = 1;
	cr_expect_eq(count("[[3,7]]", 1)->calls, 7);
	until_short = 0;
	free(ranks[1].figures);
}

Test(tell, the_first_rank_of_this_node_that_was_lost_is_blamed)
{
	static const struct {
		int64_t peer;
		uint32_t blames; /* local number and 1 */
	} rows[] = { { FIRST - 1, 0 }, { -1, 0 }, { FIRST + RANKS, 0 },
		{ FIRST + RANKS - 1, RANKS }, { FIRST, RANKS } };
	struct control m = { .type = CONTROL_LOST };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m.lost.peer = rows[i].peer;
		cr_expect(counted_told(&job, 1, &m));
		cr_expect_eq(ranks[1].blames, rows[i].blames, "%zu", i);
	}
	m.lost.peer = FIRST;
	cr_expect(counted_told(&job, 2, &m));
	cr_expect_eq(ranks[2].blames, 1);
	m.type = CONTROL_GAUGES;
	cr_expect(counted_told(&job, 1, &m));
	m.type = CONTROL_GRACE;
	cr_expect_not(counted_told(&job, 1, &m));
}

/* The JSON of rank 1, by @put. */
static void
is_json(void (*put)(struct json *j, const struct rank *rank), const char *want)
{
	struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_open_object(&j, NULL);
	put(&j, &ranks[1]);
	json_close_object(&j);
	cr_expect_eq(out.bad, XR_OK);
	cr_expect(want[0] == '{' ? strcmp(buf_text(&out), want) == 0 :
				   strstr(buf_text(&out), want) != NULL,
		"no %s in %s", want, buf_text(&out));
	buf_fini(&out);
}

Test(tell, the_last_bucket_of_latencies_has_no_limit)
{
	is_json(figures_put, "{}");
	count("[[0,2],[111,3]]", 0);
	is_json(figures_put,
		"\"latency\":[{\"below\":1.28e-07,\"calls\":2},{\"calls\":3}]");
	free(ranks[1].figures);
}

/* --- pools and queues ----------------------------------------------------- */

/* The memory of gauges in @fd, a file of @size with @seals. */
static struct segment_gauges *
make_gauges(int *fd, off_t size, int seals)
{
	char *at;

	*fd = memfd_create("gauges", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_assert_neq(*fd, -1);
	cr_assert_eq(ftruncate(*fd, size), 0);
	cr_assert_eq(fcntl(*fd, F_ADD_SEALS, seals), 0);
	at = mmap(NULL, GAUGE_SENT_AT + SEGMENT_GAUGES, PROT_READ | PROT_WRITE,
		MAP_SHARED, *fd, 0);
	cr_assert(at != MAP_FAILED);
	return (struct segment_gauges *)(void *)(at + GAUGE_SENT_AT);
}

static void
drop_gauges(struct segment_gauges *g)
{
	gauges_free(&ranks[1]);
	munmap((char *)g - GAUGE_SENT_AT, GAUGE_SENT_AT + SEGMENT_GAUGES);
}

#define GAUGES_SIZE (GAUGE_SENT_AT + SEGMENT_GAUGES)

Test(tell, gauges_are_read_from_sealed_memory_of_their_size_only)
{
	static const struct {
		off_t size;
		int seals;
		bool taken;
	} rows[] = { { GAUGES_SIZE, F_SEAL_SHRINK, true },
		{ GAUGES_SIZE, F_SEAL_SHRINK | F_SEAL_GROW, true },
		{ GAUGES_SIZE, F_SEAL_GROW, false },
		{ GAUGES_SIZE - 1, F_SEAL_SHRINK, false },
		{ GAUGES_SIZE + 1, F_SEAL_SHRINK, false } };
	struct segment_gauges *g;
	int fd;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		g = make_gauges(&fd, rows[i].size, rows[i].seals);
		cr_expect_eq(gauges_sent(&job, 1, 0, fd), rows[i].taken, "%zu",
			i);
		if (!rows[i].taken)
			close(fd);
		drop_gauges(g);
		cr_expect_eq(fcntl(fd, F_GETFD), -1);
	}
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_expect_not(gauges_sent(&job, 1, 0, fd));
	close(fd);
	gauges_free(&ranks[1]);
}

Test(tell, memory_of_gauges_is_replaced_if_its_process_has_ended)
{
	struct segment_gauges *g;
	int first, fd[3];
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	g = make_gauges(&first, GAUGES_SIZE, F_SEAL_SHRINK);
	for (int i = 0; i < 3; i++)
		fd[i] = fcntl(first, F_DUPFD_CLOEXEC, 0);
	until_short = 1;
	cr_expect_not(gauges_sent(&job, 1, 0, first));
	until_short = 0;
	cr_expect(gauges_sent(&job, 1, 0, first));
	cr_expect(gauges_sent(&job, 1, pid, fd[0]));
	cr_expect_eq(fcntl(first, F_GETFD), -1);
	cr_expect(gauges_sent(&job, 1, getpid(), fd[1]));
	cr_expect_eq(fcntl(fd[0], F_GETFD), -1);
	cr_expect_not(gauges_sent(&job, 1, 0, fd[2]));
	cr_expect_neq(fcntl(fd[1], F_GETFD), -1);
	close(fd[2]);
	drop_gauges(g);
	cr_expect_eq(fcntl(fd[1], F_GETFD), -1);
}

static void
put_row(struct segment_gauges *g, int i, enum gauge_kind kind, int64_t done,
	int64_t n)
{
	struct gauge_row *row = &g->row[i];

	row->kind = kind;
	snprintf(row->name, sizeof(row->name), "x");
	row->done = (uint64_t)done;
	row->busy = (uint64_t)n;
	row->spent = row->put = row->got = (uint64_t)n;
}

/* A pool and a queue of the same name. */
Test(tell, gauges_do_not_go_back_unless_they_begin_anew)
{
	struct segment_gauges *g;
	int fd;

	is_json(gauges_put, "{}");
	g = make_gauges(&fd, GAUGES_SIZE, F_SEAL_SHRINK);
	g->owner = (uint32_t)getpid();
	put_row(g, 0, GAUGE_PROCESSES, 5, 2 * NS_PER_S);
	put_row(g, 1, GAUGE_QUEUE, 0, 7);
	cr_assert(gauges_sent(&job, 1, getpid(), fd));
	gauges_look(&job, 1);
	is_json(gauges_put, "\"worker_seconds\":2,");
	is_json(gauges_put, "\"put\":7,\"got\":7}");
	put_row(g, 0, GAUGE_PROCESSES, 5, NS_PER_S);
	put_row(g, 1, GAUGE_QUEUE, 0, 3);
	gauges_look(&job, 1);
	is_json(gauges_put, "\"busy_seconds\":2,\"worker_seconds\":2,");
	is_json(gauges_put, "\"put\":7,\"got\":7}");
	put_row(g, 0, GAUGE_PROCESSES, 4, NS_PER_S);
	put_row(g, 1, GAUGE_QUEUE, 0, 8);
	gauges_look(&job, 1);
	is_json(gauges_put, "\"busy_seconds\":1,\"worker_seconds\":1,");
	is_json(gauges_put, "\"put\":8,\"got\":8}");
	gauges_reaped(&job, 1);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	is_json(gauges_put, "\"worker_seconds\":1,");
	drop_gauges(g);
}

Test(tell, gauges_that_cannot_be_seen_are_left_out)
{
	struct segment_gauges *g;
	int fd;

	g = make_gauges(&fd, GAUGES_SIZE, F_SEAL_SHRINK);
	g->owner = (uint32_t)getpid();
	put_row(g, 0, GAUGE_THREADS, 5, NS_PER_S);
	g->row[0].spent = 0;
	g->row[0].time[0] = 2;
	g->row[0].time[GAUGE_TIMES - 1] = 3;
	cr_assert(gauges_sent(&job, 1, getpid(), fd));
	gauges_look(&job, 1);
	is_json(gauges_put, "\"waiting\":0,\"running\":0,");
	is_json(gauges_put, "\"busy\":0,");
	is_json(gauges_put,
		"\"times\":[{\"below\":1.024e-06,\"tasks\":2},{\"tasks\":3}]");
	g->row[0].spent = NS_PER_S / 2; /* of one task that is not over */
	put_row(g, 1, GAUGE_QUEUE, 0, 4);
	gauges_look(&job, 1);
	is_json(gauges_put, "\"busy\":1,\"busy_seconds\":1,");
	is_json(gauges_put, "\"queues\":[{\"name\":\"x\",\"items\":0,");
	g->row[0].spent = 4 * NS_PER_S;
	g->row[0].live = g->row[1].live = 1;
	g->row[0].fd = g->row[1].fd = 1 << 30;
	g->row[0].open = 6;
	gauges_look(&job, 1);
	is_json(gauges_put, "\"open\":6,\"done\":5,");
	is_json(gauges_put, "\"busy\":0.25,");
	is_json(gauges_put, "\"queues\":[{\"name\":\"x\",\"room\":");
	drop_gauges(g);
}

/* --- what /proc adds ------------------------------------------------------ */

static bool
has_member(const cJSON *status, int rank, const char *name)
{
	const cJSON *all = cJSON_GetObjectItem(status, "rank");

	return cJSON_HasObjectItem(cJSON_GetArrayItem(all, rank), name);
}

static const char *
state_of(const cJSON *status, int rank)
{
	const cJSON *all = cJSON_GetObjectItem(status, "rank");

	return cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(all,
								rank),
		"state"));
}

FORKED_TEST(tell, a_running_rank_that_a_signal_stopped_is_stopped)
{
	pid_t pid = fork(), ended;
	char text[1024];
	cJSON *status;

	while (pid == 0)
		pause();
	ended = fork();
	if (ended == 0)
		_exit(0);
	NEED(waitpid(ended, NULL, 0) == ended);
	NEED(kill(pid, SIGSTOP) == 0);
	NEED(waitpid(pid, NULL, WUNTRACED) == pid);
	snprintf(text, sizeof(text),
		"{\"rank\":[{\"pid\":%d,\"state\":\"running\"},"
		"{\"pid\":%d,\"state\":\"stopping\"},{\"pid\":%d},"
		"{\"pid\":%d,\"state\":\"running\",\"exit\":0},"
		"{\"pid\":%d,\"state\":\"running\"},"
		"{\"state\":\"running\"},"
		"{\"pid\":%d,\"state\":\"running\"}]}",
		pid, pid, pid, pid, ended, getpid());
	status = cJSON_Parse(text);
	NEED(status != NULL);
	usage_add(status);
	EXPECT_STR(state_of(status, 0), "stopped");
	EXPECT_STR(state_of(status, 1), "stopping");
	EXPECT(state_of(status, 2) == NULL);
	for (int r = 3; r < 7; r++)
		EXPECT_STR(state_of(status, r), "running");
	for (int r = 0; r < 7; r++) {
		EXPECT_EQ(has_member(status, r, "cpu_seconds"),
			r < 3 || r == 6);
		EXPECT_EQ(has_member(status, r, "rss_bytes"), r < 3 || r == 6);
		EXPECT_EQ(has_member(status, r, "processes"), r < 3 || r == 6);
	}
	cJSON_Delete(status);
	kill(pid, SIGKILL);
	NEED(waitpid(pid, NULL, 0) == pid);
}

/* --- slow ranks ----------------------------------------------------------- */

/* Ranks have taken @tenths of a second for each step; 0: they told of none. */
static void
pace(const int *tenths)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		free(ranks[r].pace);
		ranks[r].pace = NULL;
		for (int i = 0; tenths[r] > 0 && i <= PACE_LEAST; i++)
			slow_note(&ranks[r], 1 + i,
				NS_PER_S + i * tenths[r] * (NS_PER_S / 10));
	}
}

#define SLOW(who, is, usual) \
	"xrun: " who " took longer than the others: " is \
	" s a step at the end, where " usual " s is usual\n"

Test(tell, the_slowest_is_compared_with_its_own_program)
{
	static const struct {
		int tenths[RANKS];
		bool much;
		const char *want;
	} rows[] = {
		{ { 0, 0, 0, 0, 0, 0, 0, 0 }, false, "" },
		{ { 1, 1, 1, 1, 2, 2, 2, 2 }, false, "" },
		{ { 1, 1, 3, 1, 2, 2, 2, 2 }, false,
			SLOW("rank 12", "0.3", "0.1") },
		/* 6 of 2 is less than 4 of 1 */
		{ { 1, 1, 4, 1, 2, 6, 2, 2 }, false,
			SLOW("ranks 12, 15", "0.4", "0.1") },
		{ { 1, 1, 3, 1, 2, 8, 2, 2 }, false,
			SLOW("ranks 12, 15", "0.8", "0.2") },
		{ { 10, 10, 19, 10, 0, 0, 0, 0 }, false,
			SLOW("rank 12", "1.9", "1") },
		{ { 10, 10, 19, 10, 0, 0, 0, 0 }, true, "" },
		{ { 10, 10, 21, 10, 0, 0, 0, 0 }, true,
			SLOW("rank 12", "2.1", "1") },
	};
	struct buf out = { 0 };

	job.part_count = 2;
	parts[0] = (struct part){ .first = 0, .size = 4 };
	parts[1] = (struct part){ .first = 4, .size = 4 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pace(rows[i].tenths);
		slow_put(&job, rows[i].much, &out);
		is_text(&out, rows[i].want);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		cr_expect_eq(ranks[r].slow, r == 2);
	/* the arrays, and the set of ranks */
	for (unsigned i = 1; i <= 4; i++) {
		until_short = i;
		was_short = false;
		slow_put(&job, false, &out);
		until_short = 0;
		cr_expect(was_short);
		is_text(&out, "");
	}
	slow_put(&job, false, &out);
	is_text(&out, SLOW("rank 12", "2.1", "1"));
	until_short = 1;
	free(ranks[0].pace);
	ranks[0].pace = NULL;
	slow_note(&ranks[0], 1, NS_PER_S);
	until_short = 0;
	cr_expect_null(ranks[0].pace);
	pace((int[RANKS]){ 0 });
	buf_fini(&out);
}

/* --- why a rank was killed ------------------------------------------------ */

#define EXITED(status) ((status) << 8)

/* The control group of rank @r has counted @text in @file. */
static void
put_group(uint32_t r, const char *file, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "rank-%04u", FIRST + r);
	cr_assert(mkdir(name, 0755) == 0 || errno == EEXIST);
	snprintf(name, sizeof(name), "rank-%04u/%s", FIRST + r, file);
	folder_write(name, text, 0644);
	page.leaves.on = true;
	if (page.leaves.dir <= 0)
		page.leaves.dir = open(folder, O_RDONLY | O_CLOEXEC);
	cr_assert_neq(page.leaves.dir, -1);
}

/* A counter of this process's own group that has @text. */
static int
put_counter(const char *name, const char *text)
{
	int fd;

	folder_write(name, text, 0644);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	cr_assert_neq(fd, -1);
	return fd;
}

Test(tell, the_group_of_a_rank_tells_if_memory_was_short)
{
	static const struct {
		int status;
		enum rank_state state;
		int stop_signal;
		const char *kills; /* in the rank's own group; NULL: no file */
		enum oom_kind want;
	} rows[] = {
		{ SIGKILL, RANK_RUNNING, SIGTERM, NULL, OOM_CGROUP },
		{ SIGKILL, RANK_STOPPING, SIGTERM, NULL, OOM_CGROUP },
		{ SIGKILL, RANK_RUNNING, SIGTERM, "oom_kill 0\n", OOM_NO },
		{ SIGKILL, RANK_RUNNING, SIGTERM, "oom_kill 1\n", OOM_CGROUP },
		{ SIGKILL, RANK_RUNNING, SIGTERM, "oom 1\n", OOM_CGROUP },
		/* xrun sent it */
		{ SIGKILL, RANK_KILLED, SIGTERM, NULL, OOM_NO },
		{ SIGKILL, RANK_STOPPING, SIGKILL, NULL, OOM_NO },
		{ SIGTERM, RANK_RUNNING, SIGTERM, NULL, OOM_NO },
		{ EXITED(9), RANK_RUNNING, SIGTERM, NULL, OOM_NO },
	};
	struct rank *r = &ranks[2];

	put_group(2, "none", "");
	sup.oom = (struct oom){ .ready = 1,
		.machine.fd = -1,
		.machine.known = CGROUP_NONE,
		.group.fd = put_counter("memory.events", "oom_kill 50\n") };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].kills != NULL)
			put_group(2, "memory.events", rows[i].kills);
		else
			remove("rank-0012/memory.events");
		*r = (struct rank){ .status = rows[i].status,
			.state = rows[i].state };
		job.opt.stop_signal = rows[i].stop_signal;
		why_note(&job, 2);
		cr_expect_eq(r->oom, rows[i].want, "%zu: %d", i, r->oom);
	}
	page.leaves.on = false;
	put_counter("rank-0012/memory.events", "oom_kill 0\n");
	*r = (struct rank){ .status = SIGKILL };
	why_note(&job, 2);
	cr_expect_eq(r->oom, OOM_CGROUP);
	close(page.leaves.dir);
}

Test(tell, processes_that_were_refused_are_those_of_the_rank_or_of_all)
{
	static const struct {
		const char *own; /* NULL: no file */
		const char *want;
	} rows[] = {
		{ "max 3\n",
			"  the kernel refused 3 new processes or threads" },
		{ "max 0\n",
			"  the kernel refused 5 new processes or threads" },
		{ "min 3\n",
			"  the kernel refused 5 new processes or threads" },
		{ NULL, "  the kernel refused 5 new processes or threads" },
	};
	struct buf out = { 0 };

	sup.pids.ready = 1;
	sup.pids.at[1].fd = -1;
	sup.pids.at[0].fd = put_counter("pids.events", "max 7\n");
	sup.pids.at[0].known = 2;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_group(3, "pids.events", rows[i].own ? rows[i].own : "");
		if (rows[i].own == NULL)
			remove("rank-0013/pids.events");
		why_put_refused(&job, 3, &out);
		cr_expect_eq(strncmp(buf_text(&out), rows[i].want,
				     strlen(rows[i].want)),
			0, "%s", buf_text(&out));
		buf_clear(&out);
	}
	put_group(3, "pids.events", "max 3\n");
	page.leaves.on = false;
	why_put_refused(&job, 3, &out);
	cr_expect_not_null(strstr(buf_text(&out), "refused 5 new"));
	buf_clear(&out);
	sup.pids.at[0].known = 7;
	why_put_refused(&job, 3, &out);
	is_text(&out, "");
	close(page.leaves.dir);
	buf_fini(&out);
}

/* Limits, and a signal that the kernel sends at them. */
FORKED_TEST(tell, a_limit_that_was_reached_is_the_reason)
{
	static const struct {
		int status;
		int ms; /* of processor time, half of it in the kernel */
		bool after_stop;
		enum oom_kind oom;
		const char *want;
	} rows[] = {
		{ SIGXCPU, 59500, false, OOM_NO, ", ulimit -t is 60 s" },
		{ SIGXCPU, 59400, false, OOM_NO, "" },
		{ SIGKILL, 89500, false, OOM_NO, ", ulimit -Ht is 90 s" },
		{ SIGKILL, 89400, false, OOM_NO, "" },
		{ SIGKILL, 89500, true, OOM_NO, "" },
		{ SIGKILL, 89500, false, OOM_MACHINE,
			", the kernel's OOM killer was active meanwhile, the rank's peak 2.0 MiB" },
		{ SIGXFSZ, 0, false, OOM_NO, ", ulimit -f is 1024 KiB" },
		{ SIGTERM, 89500, false, OOM_NO, "" },
		{ EXITED(SIGXFSZ), 89500, false, OOM_NO, "" },
		{ 0, 89500, false, OOM_NO, "" },
	};
	const struct rlimit cpu = { 60, 90 }, size = { 1 << 20, 1 << 21 };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct buf out = { 0 };
	struct rlimit was;
	struct rank r;
	bool unlimited;

	NEED(getrlimit(RLIMIT_CPU, &was) == 0);
	unlimited = was.rlim_cur == RLIM_INFINITY;
	r = (struct rank){ .status = SIGXCPU, .usage.ru_utime.tv_sec = 1000 };
	if (unlimited)
		why_put(&job, &r, &out);
	EXPECT_STR(buf_text(&out), "");
	NEED(getrlimit(RLIMIT_FSIZE, &was) == 0);
	r.status = SIGXFSZ;
	if (was.rlim_cur == none.rlim_cur)
		why_put(&job, &r, &out);
	EXPECT_STR(buf_text(&out), "");
	NEED(setrlimit(RLIMIT_CPU, &cpu) == 0);
	NEED(setrlimit(RLIMIT_FSIZE, &size) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct timeval half = { .tv_sec = rows[i].ms / 2000,
			.tv_usec = rows[i].ms % 2000 * 500 };

		r = (struct rank){ .status = rows[i].status,
			.after_stop = rows[i].after_stop,
			.oom = rows[i].oom,
			.usage = { .ru_utime = half,
				.ru_stime = half,
				.ru_maxrss = 2048 } };
		buf_clear(&out);
		why_put(&job, &r, &out);
		EXPECT_STR(buf_text(&out), rows[i].want);
	}
	buf_fini(&out);
}

/* The rank itself was not killed. */
Test(tell, a_killed_worker_is_a_reason_of_a_rank_that_failed)
{
	static const struct {
		int status;
		bool some;
	} rows[] = { { EXITED(1), true }, { 0, false }, { SIGTERM, false } };
	struct buf out = { 0 };

	sup.oom = (struct oom){ .ready = 1,
		.machine.fd = -1,
		.machine.known = CGROUP_NONE,
		.group.fd = put_counter("memory.events", "oom_kill 1\n") };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		why_put(&job, &(struct rank){ .status = rows[i].status }, &out);
		cr_expect_eq(
			strstr(buf_text(&out),
				", and the kernel killed another process, out of memory") !=
				NULL,
			rows[i].some, "%zu: %s", i, buf_text(&out));
		cr_expect_eq(out.len > 0, rows[i].some);
		buf_clear(&out);
	}
	sup.oom.group.known = 1;
	why_put(&job, &(struct rank){ .status = EXITED(1) }, &out);
	is_text(&out, "");
	buf_fini(&out);
}
