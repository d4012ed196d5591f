/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_trail.c - how many items of a queue a profile records (trail.h). The test
 * determines the time.
 */
#include <xrun/prof.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "tests/unit/queue_rig.h"
#include "worker/queue/trail.h"

TestSuite(queue_trail, .timeout = 60);

#define START NS_PER_S

static int64_t fake_now = START;

int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return fake_now;
}

static void
put_at(struct xr_queue *q, int64_t now)
{
	fake_now = now;
	EXPECT_EQ(xr_queue_put_bytes(q, "x", 1, 0, &err), XR_OK);
}

static void
get_at(struct xr_queue *q, int64_t now)
{
	struct xr_queue_buf buf = { 0 };

	fake_now = now;
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, &err), XR_OK);
	free(buf.data);
}

static void
begin(void)
{
	EXPECT_EQ(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
}

struct noted {
	int64_t at, items;
};

static int64_t
number_of(const struct xr_value *event, const char *key)
{
	int64_t n = -1;

	xr_value_get_i64(xr_value_find(event, key, strlen(key)), &n);
	return n;
}

static void
expect_events(const struct noted *want, size_t count, const char *key, int line)
{
	struct xr_value *events = NULL;
	const char *text;
	size_t len;

	EXPECT_EQ(xr_prof_end(XR_PROF_PROCESS, &events, &err), XR_OK);
	if (xr_value_count(events) != count)
		forked_note(line, "%zu events", xr_value_count(events));
	for (size_t i = 0; i < count && i < xr_value_count(events); i++) {
		const struct xr_value *e = xr_value_at(events, i);

		text = xr_value_data(xr_value_find(e, "key", 3), &len);
		EXPECT_STR(text, key);
		if (number_of(e, "start") != want[i].at ||
			number_of(e, "end") != want[i].at ||
			number_of(e, "items") != want[i].items)
			forked_note(line, "event %zu: %lld items at %lld", i,
				(long long)number_of(e, "items"),
				(long long)number_of(e, "start"));
		EXPECT_EQ(number_of(e, "thread"), syscall(SYS_gettid));
	}
	xr_value_unref(events);
}

#define EVENTS(key, ...) \
	expect_events((const struct noted[]){ __VA_ARGS__ }, \
		sizeof((const struct noted[]){ __VA_ARGS__ }) / \
			sizeof(struct noted), \
		key, __LINE__)
#define NO_EVENT() expect_events(NULL, 0, "", __LINE__)

static void
key_of(const struct xr_queue *q, char key[64])
{
	struct stat st;

	NEED(fstat(q->hall->fd, &st) == 0);
	snprintf(key, 64, "queue#%llu", (unsigned long long)st.st_ino);
}

/* The next one of these is recorded as a put or get follows, or at the end. */
FORKED_TEST(queue_trail, of_counts_within_an_interval_the_last_is_recorded)
{
	struct xr_queue *q = QUEUE(.lanes = 2), *lane = NULL;
	char key[64];

	key_of(q, key);
	EXPECT_EQ(xr_queue_lane(q, 1, &lane, &err), XR_OK);
	put_at(q, START); /* no profile is recorded */
	begin();
	put_at(q, START + 1);
	put_at(lane, START + 2);
	put_at(lane, START + TRAIL_NS);
	put_at(q, START + TRAIL_NS + 1);
	get_at(lane, START + TRAIL_NS + 2);
	EVENTS(key, { START + 1, 2 }, { START + TRAIL_NS, 4 },
		{ START + TRAIL_NS + 2, 4 });
	put_at(q, START + 3 * TRAIL_NS);
	begin();
	NO_EVENT();
	xr_queue_free(lane);
	xr_queue_free(q);
}

FORKED_TEST(queue_trail, a_count_after_an_interval_is_recorded_at_once)
{
	struct xr_queue *q = QUEUE(0);
	char key[64];

	key_of(q, key);
	begin();
	put_at(q, TRAIL_NS);
	EXPECT_EQ(q->hall->trail.noted, TRAIL_NS);
	EXPECT_EQ(q->hall->trail.at, 0);
	put_at(q, 2 * TRAIL_NS - 1);
	EXPECT_EQ(q->hall->trail.noted, TRAIL_NS);
	EXPECT_EQ(q->hall->trail.at, 2 * TRAIL_NS - 1);
	put_at(q, 2 * TRAIL_NS);
	EXPECT_EQ(q->hall->trail.noted, 2 * TRAIL_NS - 1);
	EXPECT_EQ(q->hall->trail.at, 2 * TRAIL_NS);
	EVENTS(key, { TRAIL_NS, 1 }, { 2 * TRAIL_NS - 1, 2 },
		{ 2 * TRAIL_NS, 3 });
	xr_queue_free(q);
}

FORKED_TEST(queue_trail, the_last_count_of_a_freed_queue_is_recorded)
{
	struct xr_queue *q = QUEUE(0);
	char key[64];

	key_of(q, key);
	begin();
	put_at(q, START);
	put_at(q, START + 1);
	xr_queue_free(q);
	EVENTS(key, { START, 1 }, { START + 1, 2 });
}

/* Neither by another handle of the process that made it, nor in a child. */
FORKED_TEST(queue_trail, only_the_handle_that_made_a_queue_records_it)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	int status;
	pid_t pid;

	EXPECT_EQ(xr_queue_adopt((int[]){ q->hall->fd, q->hall->ear }, &other,
			  &err),
		XR_OK);
	begin();
	put_at(other, START);
	NO_EVENT();
	pid = fork();
	if (pid == 0) {
		forked_wrong = 0;
		begin();
		put_at(q, START);
		NO_EVENT();
		_exit(forked_wrong > 0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	xr_queue_free(other);
	xr_queue_free(q);
}
