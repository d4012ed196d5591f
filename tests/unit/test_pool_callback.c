/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_callback.c - the thread that calls callbacks of pools: what they receive, and how
 * long it is there. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"

TestSuite(pool_callback, .timeout = 60);

#define SOON XR_SECONDS(20)
#define JOBS 5

static _Atomic unsigned heard, heard_errors, wrong;
static _Atomic bool exits, may_end;
static pthread_t main_thread;
static enum xr_kind kind; /* of what was heard last */

static void
note(struct xr_value *value, void *ctx)
{
	wrong += pthread_equal(pthread_self(), main_thread) != 0;
	wrong += ctx != &made_row;
	kind = xr_value_kind(value);
	if (kind == XR_ERROR)
		failure_status(value, &error);
	while (!atomic_load(&may_end))
		sched_yield();
}

static enum xr_status
hear(struct xr_value *value, void *ctx)
{
	note(value, ctx);
	atomic_fetch_add(&heard, 1);
	if (atomic_load(&exits))
		pthread_exit(NULL);
	return XR_OK;
}

static enum xr_status
hear_error(struct xr_value *value, void *ctx)
{
	note(value, ctx);
	atomic_fetch_add(&heard_errors, 1);
	return XR_OK;
}

static struct job *
begin_job(void)
{
	struct job *job = made_job(JOB_MAP, 0, 1);

	job->callback = hear;
	job->error_callback = hear_error;
	job->ctx = &made_row;
	return job;
}

static void
begin(void)
{
	make_pool();
	main_thread = pthread_self();
	atomic_store(&may_end, true);
	heard = heard_errors = 0;
}

static bool
ends(const struct xr_future *f)
{
	int64_t from = clock_now();

	while (!xr_future_done(f) && clock_now() - from < SOON)
		sched_yield();
	return xr_future_done(f);
}

/* It has ended, and nobody has it any more. */
static void
expect_end(struct job *job, enum xr_status status)
{
	EXPECT(ends(job->mine));
	EXPECT_EQ(xr_future_wait(job->mine, 0, NULL, NULL), status);
	xr_future_unref(job->mine);
	job_unref(job);
}

static unsigned
threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	NEED(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* One that was joined is seen for a moment yet. */
static bool
are(unsigned n)
{
	int64_t from = clock_now();

	while (threads() != n && clock_now() - from < SOON)
		sched_yield();
	return threads() == n;
}

FORKED_TEST(pool_callback, a_result_is_heard_before_the_future_ends)
{
	struct job *job;
	unsigned n;

	begin();
	n = threads();
	callback_come();
	EXPECT(are(n));
	job = begin_job();
	may_end = false;
	job_empty(job);
	EXPECT(are(n + 1));
	EXPECT_EQ(made.callbacks, 1);
	EXPECT(!xr_future_done(job->mine));
	EXPECT_EQ(nudges, 0);
	may_end = true;
	expect_end(job, XR_OK);
	callback_leave(&made);
	EXPECT_EQ(made.callbacks, 0);
	EXPECT(are(n));
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(heard, 1);
	EXPECT_EQ(heard_errors + wrong, 0);
	EXPECT_EQ(kind, XR_LIST);
	unmake_pool();
}

FORKED_TEST(pool_callback, an_error_is_heard_by_who_hears_errors)
{
	struct xr_value *why = failure_new(XR_E_STATE, "why");
	struct job *job;

	begin();
	callback_come();
	job = begin_job();
	job_list(job);
	EXPECT(job_abort(job, why));
	expect_end(job, XR_E_STATE);
	EXPECT_EQ(heard_errors, 1);
	EXPECT_STR(error.text, "why");
	/* Who hears errors only hears no result, and the other way round. */
	job = begin_job();
	job->callback = NULL;
	job_empty(job);
	EXPECT(xr_future_done(job->mine));
	expect_end(job, XR_OK);
	job = begin_job();
	job->error_callback = NULL;
	job_list(job);
	EXPECT(job_abort(job, why));
	EXPECT(xr_future_done(job->mine));
	expect_end(job, XR_E_STATE);
	EXPECT_EQ(heard_errors, 1);
	/* Without memory for a result it is that. */
	job = begin_job();
	job->ended = true;
	callback_post(job);
	expect_end(job, XR_E_NOMEM);
	EXPECT_EQ(heard_errors, 2);
	EXPECT_STR(error.text, "out of memory");
	callback_leave(&made);
	EXPECT_EQ(heard + wrong, 0);
	xr_value_unref(why);
	unmake_pool();
}

FORKED_TEST(pool_callback, without_memory_or_a_pool_nothing_is_heard)
{
	struct job *job;

	begin();
	job = begin_job();
	job_empty(job);
	expect_end(job, XR_OK);
	callback_come();
	job = begin_job();
	job->ended = true;
	until_short = 1;
	callback_post(job);
	until_short = 0;
	expect_end(job, XR_E_NOMEM);
	callback_leave(&made);
	EXPECT_EQ(made.callbacks, 0);
	EXPECT_EQ(heard + heard_errors, 0);
	unmake_pool();
}

/* What was to be heard is. */
FORKED_TEST(pool_callback, the_last_pool_waits_until_all_was_heard)
{
	struct job *job[JOBS];
	unsigned n;

	begin();
	n = threads();
	callback_come();
	callback_come();
	for (int i = 0; i < JOBS; i++) {
		job[i] = begin_job();
		job_empty(job[i]);
	}
	callback_leave(&made);
	EXPECT_EQ(heard, JOBS);
	EXPECT(are(n + 1));
	for (int i = 0; i < JOBS; i++) {
		EXPECT(xr_future_done(job[i]->mine));
		expect_end(job[i], XR_OK);
	}
	callback_leave(&made);
	EXPECT(are(n));
	callback_come();
	job[0] = begin_job();
	job_empty(job[0]);
	callback_leave(&made);
	EXPECT_EQ(heard, JOBS + 1);
	expect_end(job[0], XR_OK);
	EXPECT(are(n));
	EXPECT_EQ(wrong, 0);
	unmake_pool();
}

/* Another thread takes its place. */
FORKED_TEST(pool_callback, a_callback_that_ends_its_thread_has_ended)
{
	struct job *job[JOBS];

	begin();
	exits = true;
	callback_come();
	for (int i = 0; i < JOBS; i++) {
		job[i] = begin_job();
		job_empty(job[i]);
	}
	callback_leave(&made);
	EXPECT_EQ(heard, JOBS);
	EXPECT_EQ(made.callbacks, 0);
	for (int i = 0; i < JOBS; i++)
		expect_end(job[i], XR_OK);
	EXPECT_EQ(wrong, 0);
	unmake_pool();
}

FORKED_TEST(pool_callback, a_child_has_no_thread_and_no_pools)
{
	struct job *job;
	unsigned n;

	begin();
	n = threads();
	callback_come();
	job = begin_job();
	job_empty(job);
	expect_end(job, XR_OK);
	while (__atomic_load_n(&made.callbacks, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
	if (fork() == 0) {
		alarm(20);
		callback_forked();
		job = begin_job();
		job_empty(job);
		expect_end(job, XR_OK);
		EXPECT_EQ(heard, 1);
		callback_come();
		job = begin_job();
		job_empty(job);
		callback_leave(&made);
		EXPECT_EQ(heard, 2);
		EXPECT(are(n));
		_exit(forked_wrong > 0);
	}
	{
		int how = -1;

		NEED(wait(&how) != -1);
		EXPECT_EQ(how, 0);
	}
	callback_leave(&made);
	EXPECT(are(n));
	unmake_pool();
}
