/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_iter.c - results one by one: which is the next one, and what is done until it is
 * there. */
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/help.h"
#include "worker/pool/iter.h"

TestSuite(pool_iter, .timeout = 60);

#define COUNT   3
#define NOT_YET "the next one is not there yet"

static struct job job;
static struct xr_pool_iter *iter;
static struct xr_value *value;

static struct xr_value *values[COUNT];
static uint8_t items[COUNT];
static bool shown[COUNT];
static size_t order[COUNT];

/* --- what it calls -------------------------------------------------------------------------- */

static bool may_help, comes_late;
static unsigned nobodies, unrefs, helps, waits;
static unsigned has_work; /* so often */

bool __wrap_take_await_in(struct xr_pool *pool, struct room_list *list,
	struct room *r, int64_t deadline);
bool __wrap_future_may_help(void);
bool __wrap_help_job(struct job *of);
void __wrap_job_nobody(struct job *of);
void __wrap_job_unref(struct job *of);

static bool
is_locked(void)
{
	if (pthread_mutex_trylock(&made.lock) != 0)
		return true;
	pthread_mutex_unlock(&made.lock);
	return false;
}

/* The next one comes with the second wait, or the time is up. */
bool
__wrap_take_await_in(struct xr_pool *pool, struct room_list *list,
	struct room *r, int64_t deadline)
{
	EXPECT(pool == &made && list == &job.takers && is_locked());
	EXPECT_EQ(deadline == INT64_MAX, comes_late);
	EXPECT(r->need == 0 && !r->puts && !waiter_is_done(&r->waiter));
	waits++;
	r->need = 9;
	if (comes_late && waits == 2)
		shown[job.given] = true;
	NEED(waits < 9);
	return comes_late;
}

bool
__wrap_future_may_help(void)
{
	return may_help;
}

bool
__wrap_help_job(struct job *of)
{
	EXPECT(of == &job && !is_locked());
	helps++;
	return has_work > 0 && has_work-- > 0;
}

void
__wrap_job_nobody(struct job *of)
{
	EXPECT(of == &job && unrefs == 0);
	nobodies++;
}

void
__wrap_job_unref(struct job *of)
{
	EXPECT(of == &job);
	unrefs++;
}

/* --- a job ------------------------------------------------------------------------------------ */

static struct xr_value *
failed(void)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = XR_E_EXISTS,
		.text = "there" };

	return xr_value_new_error(&f);
}

/* The second of three has failed. */
static void
begin(bool ordered)
{
	make_pool();
	memset(&job, 0, sizeof(job));
	memset(shown, 0, sizeof(shown));
	job.pool = &made;
	job.count = COUNT;
	job.value = values;
	job.item = items;
	job.shown = shown;
	job.order = ordered ? NULL : order;
	for (int i = 0; i < COUNT; i++) {
		values[i] = i == 1 ? failed() : xr_value_new_i64(10 + i);
		items[i] = i == 1 ? JOB_ERROR : JOB_VALUE;
	}
	nobodies = unrefs = helps = waits = 0;
	may_help = comes_late = false;
	NEED(iter_new(&job, &iter, &error) == XR_OK);
}

static void
end(void)
{
	xr_pool_iter_free(iter);
	EXPECT_EQ(nobodies, 1);
	EXPECT_EQ(unrefs, 1);
	for (int i = 0; i < COUNT; i++)
		xr_value_unref(values[i]);
	unmake_pool();
}

static enum xr_status
next(int64_t timeout)
{
	value = (struct xr_value *)&job; /* none */
	memset(&error, 0, sizeof(error));
	return xr_pool_iter_next(iter, timeout, &value, &error);
}

static void
expect_number(int i)
{
	int64_t n = -1;

	EXPECT_EQ(next(0), XR_OK);
	EXPECT_EQ(xr_value_get_i64(value, &n), XR_OK);
	EXPECT_EQ(n, 10 + i);
	EXPECT(values[i] == NULL);
	xr_value_unref(value);
}

static void
expect_failure(const struct xr_value *want)
{
	EXPECT_EQ(next(0), XR_E_EXISTS);
	EXPECT_STR(error.text, "there");
	EXPECT(value == want);
	xr_value_unref(value);
}

static void
expect_none(enum xr_status status, const char *text)
{
	size_t given = job.given;

	EXPECT_EQ(next(0), status);
	EXPECT_STR(error.text, text);
	EXPECT(value == NULL);
	EXPECT_EQ(job.given, given);
}

FORKED_TEST(pool_iter, results_come_in_the_order_of_items)
{
	begin(true);
	shown[1] = shown[2] = true;
	expect_none(XR_E_TIMEOUT, NOT_YET);
	EXPECT_EQ(waits, 1);
	EXPECT_EQ(helps, 0);
	shown[0] = true;
	expect_number(0);
	expect_failure(values[1]);
	EXPECT_EQ(job.given, 2);
	expect_number(2);
	expect_none(XR_E_END, "there are no more");
	EXPECT_EQ(waits, 1);
	end();
}

FORKED_TEST(pool_iter, results_come_as_they_were_there)
{
	begin(false);
	shown[0] = true; /* does not count */
	expect_none(XR_E_TIMEOUT, NOT_YET);
	order[0] = 2;
	order[1] = 1;
	job.came = 1;
	expect_number(2);
	expect_none(XR_E_TIMEOUT, NOT_YET);
	job.came = 2;
	expect_failure(values[1]);
	job.came = 3;
	expect_number(0);
	expect_none(XR_E_END, "there are no more");
	end();
}

FORKED_TEST(pool_iter, what_did_not_come_has_the_error_of_all)
{
	for (int ordered = 0; ordered < 2; ordered++) {
		begin(ordered);
		job.error = failed();
		expect_none(XR_E_TIMEOUT, NOT_YET);
		job.ended = true;
		expect_failure(job.error);
		shown[1] = true;
		order[1] = 2;
		job.came = 2;
		shown[2] = true;
		EXPECT_EQ(next(0), ordered ? XR_E_EXISTS : XR_OK);
		xr_value_unref(value);
		EXPECT_EQ(job.given, 2);
		xr_value_unref(job.error);
		job.error = NULL;
		shown[2] = false;
		expect_none(XR_E_TIMEOUT, NOT_YET);
		end();
	}
}

FORKED_TEST(pool_iter, who_wants_no_value_has_none)
{
	begin(true);
	shown[0] = shown[1] = true;
	EXPECT_EQ(xr_pool_iter_next(iter, 0, NULL, NULL), XR_OK);
	EXPECT(values[0] == NULL);
	EXPECT_EQ(xr_pool_iter_next(iter, 0, NULL, NULL), XR_E_EXISTS);
	EXPECT_EQ(job.given, 2);
	EXPECT_EQ(next(-2), XR_E_INVAL);
	EXPECT(value == NULL);
	end();
}

/* --- waiting ---------------------------------------------------------------------------------- */

FORKED_TEST(pool_iter, who_waits_for_ever_does_what_he_can_before)
{
	begin(true);
	comes_late = may_help = true;
	has_work = 2;
	EXPECT_EQ(next(XR_TIMEOUT_NEVER), XR_OK);
	EXPECT_EQ(waits, 2);
	EXPECT_EQ(helps, 4);
	xr_value_unref(value);
	helps = waits = 0;
	may_help = false;
	EXPECT_EQ(next(XR_TIMEOUT_DEFAULT), XR_E_EXISTS);
	EXPECT_EQ(waits, 2);
	EXPECT_EQ(helps, 0);
	xr_value_unref(value);
	EXPECT(!is_locked());
	comes_late = false;
	may_help = true;
	waits = 0;
	EXPECT_EQ(next(XR_SECONDS(1000)), XR_E_TIMEOUT);
	EXPECT_EQ(waits, 1);
	EXPECT_EQ(helps, 0);
	end();
}

/* --- making, and freeing ------------------------------------------------------------------------ */

FORKED_TEST(pool_iter, without_memory_nobody_wants_the_results)
{
	begin(true);
	end();
	nobodies = unrefs = 0;
	iter = NULL;
	until_short = 1;
	EXPECT_EQ(iter_new(&job, &iter, &error), XR_E_NOMEM);
	until_short = 0;
	EXPECT_STR(error.text, "out of memory");
	EXPECT(iter == NULL);
	EXPECT_EQ(nobodies, 1);
	EXPECT_EQ(unrefs, 1);
	xr_pool_iter_free(NULL);
}

FORKED_TEST(pool_iter, a_child_of_fork_cancels_nothing)
{
	begin(true);
	made.born++;
	EXPECT_EQ(next(0), XR_E_STATE);
	EXPECT(value == NULL);
	xr_pool_iter_free(iter);
	EXPECT_EQ(nobodies, 0);
	EXPECT_EQ(unrefs, 1);
}
