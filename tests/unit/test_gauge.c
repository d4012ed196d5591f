/* SPDX-License-Identifier: Apache-2.0 */
/* test_gauge.c - what pools and queues say of themselves: who writes, who reads, and what
 * becomes of nonsense. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "segment/gauge.h"
#include "segment/member.h"
#include "segment/owner.h"
#include "worker/shm/gauge.h"

#define RANKS 2
#define NOW   INT64_C(1000000000000)
#define MOST  ((INT64_C(1) << 53) - 1)

static int fd = -1;
static uint64_t at;

/* A job's segment; this process is rank 1. */
static struct segment_gauges *
create(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = RANKS,
		.spare = 5,
	};
	struct segment_tag tag;
	struct stat st;
	char text[64];

	fd = segment_create(&wish);
	cr_assert_neq(fd, -1);
	cr_assert_eq(fstat(fd, &st), 0);
	tag = (struct segment_tag){ .fd = fd, .inode = st.st_ino };
	snprintf(text, sizeof(text), "%d:%llu", fd,
		(unsigned long long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", text, 1);
	setenv("XRUN_LOCAL_RANK", "1", 1);
	at = segment_gauges_at(fd, RANKS + 5);
	cr_assert_neq(at, 0);
	return segment_gauges_join(&tag, 1);
}

/* @file has the number that the row says. */
static void
refer(struct gauge_row *row, int file)
{
	struct stat st;

	cr_assert_eq(fstat(file, &st), 0);
	atomic_store(&row->inode, (uint64_t)st.st_ino);
	atomic_store(&row->fd, (uint32_t)file);
}

static struct gauge_row *
row_of(struct segment_gauges *g, uint32_t i, enum gauge_kind kind)
{
	struct gauge_row *row = &g->row[i];

	atomic_store(&g->owner, (uint32_t)getpid());
	snprintf(row->name, sizeof(row->name), "row %u", i);
	atomic_store(&row->parts, 2);
	atomic_store(&row->room, 4);
	atomic_store(&row->live, 1);
	atomic_store(&row->kind, kind);
	return row;
}

static struct gauges_view
read_all(void)
{
	struct gauges_view view;

	cr_assert(segment_gauge(fd, at, 1, NOW, &view));
	return view;
}

static int
memory(const uint64_t *words, size_t count)
{
	int file = memfd_create("test", MFD_CLOEXEC);

	cr_assert_neq(file, -1);
	cr_assert_eq(write(file, words, count * 8), (ssize_t)(count * 8));
	return file;
}

/* --- buckets -------------------------------------------------------------- */

Test(gauge, a_bucket_ends_where_the_next_one_begins)
{
	cr_expect_eq(gauge_bucket(0), 0);
	cr_expect_eq(gauge_bucket(1023), 0);
	for (uint32_t i = 0; i < GAUGE_TIMES - 1; i++) {
		cr_expect_eq(gauge_bucket(gauge_above(i) - 1), i, "%u", i);
		cr_expect_eq(gauge_bucket(gauge_above(i)), i + 1, "%u", i);
	}
	cr_expect_eq(gauge_bucket(UINT64_MAX), GAUGE_TIMES - 1);
	cr_expect_eq(gauge_above(GAUGE_TIMES - 1), UINT64_MAX);
}

Test(gauge, quantiles_are_where_so_many_tasks_are_not_above)
{
	struct gauge_view v = { .tasks = 0 };

	cr_expect_eq(gauge_quantile(&v, 500), 0);
	v.time[0] = 50;
	v.time[4] = 49;
	v.time[GAUGE_TIMES - 1] = 1;
	v.tasks = 100;
	cr_expect_eq(gauge_quantile(&v, 500), (int64_t)gauge_above(0));
	cr_expect_eq(gauge_quantile(&v, 501), (int64_t)gauge_above(4));
	cr_expect_eq(gauge_quantile(&v, 990), (int64_t)gauge_above(4));
	cr_expect_eq(gauge_quantile(&v, 1000),
		(int64_t)gauge_above(GAUGE_TIMES - 2));
}

/* --- reading -------------------------------------------------------------- */

Test(gauge, a_slot_that_told_nothing_has_none)
{
	struct gauges_view view = { .count = 7 };
	struct segment_gauges *g = create();

	cr_expect_not(segment_gauge(fd, at, 1, NOW, &view));
	cr_expect_eq(view.count, 7);
	row_of(g, 0, GAUGE_THREADS);
	cr_expect_not(segment_gauge(fd, at, 0, NOW, &view));
	cr_expect_not(segment_gauge(fd, 0, 1, NOW, &view));
	cr_expect_not(segment_gauge(fd, 0, 0, NOW, &view));
	cr_assert(segment_gauge(fd, at, 1, NOW, &view));
	cr_expect_eq(view.count, 1);
	segment_ungauge(fd, at, 1);
	cr_expect_not(segment_gauge(fd, at, 1, NOW, &view));
}

/* A pool of 2 workers and 4 tasks: worker 1 has the second one since 100 ns, worker 0
 * has none, the third is answered, the fourth is free. */
static int
ledger(void)
{
	uint64_t words[7 * 8] = { 0 };

	words[2 * 8 + 1] = NOW - 100;
	words[3 * 8] = UINT64_C(1) << 61;
	words[4 * 8] = UINT64_C(2) << 61 | UINT64_C(9) << 32 | 1 << 20 | 5;
	words[5 * 8] = UINT64_C(3) << 61 | UINT64_C(9) << 32;
	return memory(words, 7 * 8);
}

/* The time is written, and read, before the task. */
Test(gauge, a_task_whose_worker_had_no_time_yet_adds_none)
{
	struct segment_gauges *g = create();
	struct gauge_row *row = row_of(g, 3, GAUGE_PROCESSES);
	uint64_t words[7 * 8] = { 0 };
	struct gauges_view view;

	words[3 * 8] = UINT64_C(2) << 61 | 1 << 20;
	refer(row, memory(words, 7 * 8));
	atomic_store(&row->busy, 500);
	atomic_store(&row->open, 1);
	view = read_all();
	cr_expect_eq(view.row[0].running, 1);
	cr_expect_eq(view.row[0].busy, 500);
}

Test(gauge, what_workers_have_in_hand_is_seen_in_the_pools_memory)
{
	struct segment_gauges *g = create();
	struct gauge_row *row = row_of(g, 3, GAUGE_PROCESSES);
	struct gauges_view view;

	refer(row, ledger());
	atomic_store(&row->born, NOW - 1000);
	atomic_store(&row->busy, 500);
	atomic_store(&row->open, 13);
	view = read_all();
	cr_assert_eq(view.count, 1);
	cr_expect_eq(view.row[0].running, 1);
	cr_expect_eq(view.row[0].waiting, 11);
	cr_expect_eq(view.row[0].took, 500);
	cr_expect_eq(view.row[0].busy, 600);
	cr_expect_eq(view.row[0].spent, 2000);
	/* Without tasks nobody looks. */
	atomic_store(&row->open, 0);
	atomic_store(&row->inode, 0);
	view = read_all();
	cr_expect_eq(view.row[0].running, 0);
	cr_expect_eq(view.row[0].waiting, 0);
}

/* A thread has one task, since the time that it tells. */
Test(gauge, what_threads_have_in_hand_is_what_they_began)
{
	struct segment_gauges *g = create();
	struct gauge_row *row = row_of(g, 3, GAUGE_THREADS);
	uint64_t words[4 * 8] = { 0 };
	struct gauges_view view;

	words[1 * 8 + 1] = 1;
	words[2 * 8 + 1] = NOW - 100;
	atomic_store(&row->live, 3);
	atomic_store(&row->parts, 3);
	refer(row, memory(words, 4 * 8));
	atomic_store(&row->busy, 500);
	atomic_store(&row->open, 13);
	view = read_all();
	cr_assert_eq(view.count, 1);
	cr_expect_eq(view.row[0].running, 2);
	cr_expect_eq(view.row[0].waiting, 11);
	cr_expect_eq(view.row[0].busy, 500 + 100 + NOW - 1);
	words[1 * 8 + 1] = (uint64_t)-5;
	refer(row, memory(words, 4 * 8));
	view = read_all();
	cr_expect_eq(view.row[0].running, 1);
	cr_expect_eq(view.row[0].busy, 600);
	/* Memory of fewer threads than the row says. */
	refer(row, memory(words, 3 * 8));
	view = read_all();
	cr_expect_eq(view.row[0].busy, 500);
}

Test(gauge, the_items_of_a_queue_are_those_of_all_lanes)
{
	uint64_t words[4 * 32] = { 0 };
	struct segment_gauges *g = create();
	struct gauge_row *row = row_of(g, 0, GAUGE_QUEUE);
	struct gauges_view view;

	words[32] = 9;
	words[32 + 16] = 7;
	/* More were got than put, as it seems. */
	words[64] = 5;
	words[64 + 16] = 6;
	words[96] = 50; /* behind the last one */
	words[96 + 16] = 3;
	refer(row, memory(words, 4 * 32));
	atomic_store(&row->at, 256);
	atomic_store(&row->stride, 256);
	atomic_store(&row->put, 100);
	view = read_all();
	cr_expect_eq(view.row[0].items, 2);
	cr_expect_eq(view.row[0].put, 114);
	cr_expect_eq(view.row[0].got, 13);
	/* No more than there is room for. */
	atomic_store(&row->room, 1);
	view = read_all();
	cr_expect_eq(view.row[0].items, 1);
}

Test(gauge, memory_that_is_not_what_the_row_says_is_not_looked_at)
{
	static const char *const files[] = { "/dev/null", "/",
		"/proc/self/stat", "/dev/tty" };
	struct segment_gauges *g = create();
	struct gauge_row *row = row_of(g, 0, GAUGE_QUEUE);
	uint64_t words[64] = { 9, [32] = 3 };
	int file, fifo[2];

	atomic_store(&row->stride, 256);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		file = open(files[i], O_PATH);
		if (file == -1)
			continue;
		refer(row, file);
		cr_expect_eq(read_all().row[0].items, -1, "%s", files[i]);
	}
	cr_assert_eq(pipe(fifo), 0);
	refer(row, fifo[0]);
	cr_expect_eq(read_all().row[0].items, -1);
	file = memory(words, 32);
	refer(row, file);
	cr_expect_eq(read_all().row[0].items, -1); /* one lane, not two */
	file = memory(words, 64);
	refer(row, file);
	atomic_fetch_add(&row->inode, 1);
	cr_expect_eq(read_all().row[0].items, -1);
	refer(row, file);
	cr_expect_eq(read_all().row[0].items, 4 + 3);
	close(file);
	cr_expect_eq(read_all().row[0].items, -1);
}

static bool
in_range(int64_t n)
{
	return n >= -1 && n <= MOST;
}

static void
expect_harmless(const struct gauge_view *v)
{
	cr_expect(v->kind > GAUGE_NONE && v->kind < GAUGE_KINDS);
	cr_expect_leq(v->parts, GAUGE_PARTS_MAX);
	cr_expect(v->done >= 0 && v->failed >= 0 && v->tasks >= 0);
	cr_expect(v->busy >= 0 && v->spent >= 0 && v->took >= 0);
	cr_expect(in_range(v->done) && in_range(v->open) && in_range(v->put) &&
		in_range(v->busy) && in_range(v->spent) && in_range(v->got) &&
		in_range(v->waiting) && in_range(v->running) &&
		in_range(v->items) && in_range(v->tasks));
	cr_expect_lt(strlen(v->name), GAUGE_NAME);
	for (const char *c = v->name; *c != '\0'; c++)
		cr_expect((uint8_t)*c >= ' ' && *c != 127);
}

Test(gauge, rows_that_cannot_be_are_in_range)
{
	struct segment_gauges *g = create();
	uint32_t seed = 1;

	for (int round = 0; round < 300; round++) {
		struct gauges_view view;
		uint8_t *bytes = (uint8_t *)g;

		for (size_t i = 0; i < sizeof(*g); i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = round == 0 ? 0xff : (uint8_t)(seed >> 24);
		}
		for (uint32_t i = 0; round > 0 && i < GAUGES; i++) {
			atomic_store(&g->row[i].kind, i % 5);
			if (round % 2 == 0)
				refer(&g->row[i], fd);
		}
		atomic_store(&g->owner, (uint32_t)getpid());
		view = read_all();
		cr_expect_leq(view.count, GAUGES);
		for (uint32_t i = 0; i < view.count; i++)
			expect_harmless(&view.row[i]);
	}
}

static void
name(struct gauge_row *row, const char *text)
{
	snprintf(row->name, sizeof(row->name), "%s", text);
}

Test(gauge, two_of_a_name_are_one_and_one_more)
{
	struct segment_gauges *g = create();
	struct gauges_view view;

	for (uint32_t i = 0; i < 3; i++)
		name(row_of(g, i, GAUGE_THREADS), "same");
	name(row_of(g, 3, GAUGE_QUEUE), "same");
	row_of(g, 4, GAUGE_QUEUE)->name[0] = '\0';
	view = read_all();
	cr_expect_eq(view.count, 2);
	cr_expect_eq(view.more, 3);
}

/* --- writing -------------------------------------------------------------- */

static struct gauge_row *
tell(enum gauge_kind kind, const char *name)
{
	const struct gauge_of of = { .kind = kind,
		.name = name,
		.fd = fd,
		.parts = 1,
		.room = 1 };

	return gauge_new(&of);
}

Test(gauge, names_are_told_apart_and_cut_between_characters)
{
	struct segment_gauges *g = create();
	struct gauge_row *row[5];
	char name[80];

	row[0] = tell(GAUGE_THREADS, "pool");
	row[1] = tell(GAUGE_PROCESSES, "pool");
	row[2] = tell(GAUGE_QUEUE, "pool");
	cr_expect_str_eq(row[0]->name, "pool");
	cr_expect_str_eq(row[1]->name, "pool-2");
	cr_expect_str_eq(row[2]->name, "pool");
	memset(name, 'x', sizeof(name));
	memcpy(name + GAUGE_NAME - 3, "\xe2\x82\xac", 4);
	row[3] = tell(GAUGE_THREADS, name);
	row[4] = tell(GAUGE_THREADS, name);
	cr_expect_eq(strlen(row[3]->name), GAUGE_NAME - 3);
	cr_expect_eq(strlen(row[4]->name), GAUGE_NAME - 1);
	cr_expect_str_eq(row[4]->name + GAUGE_NAME - 3, "-2");
	cr_expect_eq(atomic_load(&g->owner), (uint32_t)getpid());
}

Test(gauge, what_was_freed_counts_on_until_its_row_is_needed)
{
	struct gauge_row *row, *first = NULL;
	struct segment_gauges *g = create();
	char name[16];

	for (int i = 0; i < GAUGES; i++) {
		snprintf(name, sizeof(name), "pool%d", i);
		row = tell(GAUGE_THREADS, name);
		cr_assert_not_null(row);
		gauge_add(&row->done, 5);
		first = i == 0 ? row : first;
	}
	cr_expect_null(tell(GAUGE_THREADS, "more"));
	cr_expect_eq(atomic_load(&g->more), 1);
	gauge_free(row);
	gauge_free(first);
	cr_expect_eq(tell(GAUGE_THREADS, "pool0"), first);
	cr_expect_eq(atomic_load(&first->done), 5);
	gauge_free(first);
	/* The one that was freed before. */
	cr_expect_eq(tell(GAUGE_THREADS, "more"), row);
	cr_expect_eq(atomic_load(&row->done), 0);
	cr_expect_str_eq(row->name, "more");
	cr_expect_eq(tell(GAUGE_QUEUE, "queue"), first);
	gauge_free(NULL);
}

Test(gauge, a_queue_that_is_renamed_takes_what_another_of_that_name_had)
{
	struct gauge_row *old, *q;

	create();
	old = tell(GAUGE_QUEUE, "jobs");
	gauge_add(&old->put, 3);
	gauge_free(old);
	q = tell(GAUGE_QUEUE, "queue");
	gauge_rename(q, "jobs");
	cr_expect_str_eq(q->name, "jobs");
	cr_expect_eq(atomic_load(&q->put), 3);
	cr_expect_eq(read_all().count, 1);
	gauge_rename(q, "jobs");
	cr_expect_str_eq(q->name, "jobs");
	gauge_rename(tell(GAUGE_QUEUE, "queue"), "jobs");
	cr_expect_eq(read_all().count, 2);
	gauge_rename(NULL, "jobs");
}

Test(gauge, a_child_of_fork_tells_nothing)
{
	struct gauge_row *row;
	int status = 0;
	pid_t pid;

	create();
	row = tell(GAUGE_THREADS, "pool");
	cr_assert_not_null(row);
	pid = fork();
	if (pid == 0) {
		if (tell(GAUGE_THREADS, "child") != NULL)
			_exit(1);
		gauge_free(row);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect(read_all().row[0].live);
	cr_expect_eq(read_all().count, 1);
}

Test(gauge, the_pages_are_the_first_ones_as_long_as_it_lives)
{
	struct segment_gauges *g = create();

	row_of(g, 0, GAUGE_THREADS);
	atomic_store(&g->owner, (uint32_t)getppid());
	cr_expect_null(tell(GAUGE_THREADS, "pool"));
	cr_expect_eq(atomic_load(&g->owner), (uint32_t)getppid());
	/* Nobody any more. */
	atomic_store(&g->owner, 0);
	cr_expect_not_null(tell(GAUGE_THREADS, "pool"));
	cr_expect_eq(atomic_load(&g->owner), (uint32_t)getpid());
}

Test(gauge, the_pages_of_who_is_gone_are_anothers)
{
	struct segment_gauges *g = create();
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	row_of(g, 7, GAUGE_THREADS);
	atomic_store(&g->owner, (uint32_t)pid);
	cr_expect_not_null(tell(GAUGE_QUEUE, "queue"));
	cr_expect_eq(atomic_load(&g->owner), (uint32_t)getpid());
	cr_expect_eq(read_all().count, 1);
}

Test(gauge, outside_of_a_job_nobody_is_told)
{
	unsetenv("XRUN_SEGMENT_FD");
	cr_expect_null(tell(GAUGE_THREADS, "pool"));
	gauge_rename(NULL, "x");
	gauge_free(NULL);
}
