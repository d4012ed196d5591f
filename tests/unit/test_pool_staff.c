/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_staff.c - workers that are processes: how they are started, and ended. */
#include "tests/unit/made_procs.h"

TestSuite(pool_staff, .timeout = 60);

static uint64_t
number(enum told which)
{
	uint64_t u = UINT64_MAX;

	EXPECT_EQ(xr_value_get_u64(xr_value_at(told, which), &u), XR_OK);
	return u;
}

static const char *
text(enum told which)
{
	size_t len = 0;
	const char *data = xr_value_data(xr_value_at(told, which), &len);

	return data != NULL ? data : "(none)";
}

/* --- starting -------------------------------------------------------------------------------- */

FORKED_TEST(pool_staff, a_worker_is_told_all_that_it_needs)
{
	static char method[] = "spawn", module[] = "m.so", init[] = "first";
	int fds[2];

	begin();
	made.conf.method = method;
	made.conf.module = module;
	made.conf.initializer = init;
	made.conf.initargs = made_list(2);
	made.conf.contexts = made_list(2);
	made.conf.flags = XR_POOL_CONTEXT;
	made.conf.mode = XR_ENC_SHARE;
	made.conf.max_tasks = 77;
	made.ops.worker = "other";
	made.by_fork = true;
	made.book.fd = 40;
	made_place[1].life = LEDGER_LIFE_MASK - 1;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	EXPECT_EQ(opts.size, sizeof(opts));
	EXPECT_EQ(opts.flags, XR_PROC_DAEMON);
	EXPECT_STR(opts.func, "other");
	EXPECT_STR(fake[0].name, "made/0");
	EXPECT_STR(fake[1].name, "made/1");
	EXPECT_EQ(fake[0].ordinal, 0);
	EXPECT_EQ(opts.ordinal, 1);
	EXPECT(opts.method == method && opts.module == module);
	EXPECT_EQ(more.place, -1);
	EXPECT_EQ(more.give_count, TOLD_FDS);
	EXPECT(more.of == &made && more.mask == &made.mask);
	EXPECT_EQ(give[TOLD_LEDGER], made.ledger.fd);
	EXPECT_EQ(give[TOLD_BOOK], 40);
	xr_queue_fds(queue[1], fds);
	EXPECT(memcmp(&give[TOLD_IN], fds, sizeof(fds)) == 0);
	xr_queue_fds(queue[2], fds);
	EXPECT(memcmp(&give[TOLD_OUT], fds, sizeof(fds)) == 0);
	EXPECT_EQ(xr_value_count(told), TOLD_COUNT);
	EXPECT_EQ(number(TOLD_LIFE), LEDGER_LIFE_MASK);
	EXPECT_EQ(number(TOLD_FLAGS), TOLD_CONTEXTS | TOLD_SHARES);
	EXPECT_EQ(number(TOLD_MAX_TASKS), 77);
	EXPECT_STR(text(TOLD_NAME), "made");
	EXPECT_STR(text(TOLD_INIT), "first");
	EXPECT_EQ(xr_value_count(xr_value_at(told, TOLD_INIT_ARGS)), 2);
	EXPECT(xr_value_at(told, TOLD_CONTEXT) ==
		xr_value_at(made.conf.contexts, 1));
	EXPECT_EQ(made_place[0].life, 1);
	EXPECT_EQ(made_place[1].life, LEDGER_LIFE_MASK);
	EXPECT(made_place[1].proc == proc_of(1) && !made_place[1].coming);
	EXPECT_EQ(made.alive, 2);
	EXPECT_EQ(awaited, 2);
	EXPECT_EQ(await_fd[0], 500);
	EXPECT_EQ(await_fd[1], 501);
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	xr_value_unref(made.conf.initargs);
	xr_value_unref(made.conf.contexts);
	end();
}

FORKED_TEST(pool_staff, a_worker_is_told_that_there_is_nothing_more)
{
	int fds[2];

	begin();
	made.in_count = 1;
	made.conf.workers = 2;
	memset(name, 'n', sizeof(name) - 1);
	made_place[1].life = LEDGER_LIFE_MASK;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_STR(opts.func, TOLD_FUNCTION);
	EXPECT_EQ(strlen(fake[1].name), sizeof(fake[1].name) - 1);
	EXPECT(opts.method == NULL && opts.module == NULL && more.of == NULL);
	xr_queue_fds(queue[0], fds);
	EXPECT(memcmp(&give[TOLD_IN], fds, sizeof(fds)) == 0);
	EXPECT_EQ(number(TOLD_LIFE), 0);
	EXPECT_EQ(number(TOLD_FLAGS), 0);
	EXPECT_EQ(number(TOLD_MAX_TASKS), 0);
	EXPECT_EQ(xr_value_kind(xr_value_at(told, TOLD_INIT)), XR_NIL);
	EXPECT_EQ(xr_value_kind(xr_value_at(told, TOLD_INIT_ARGS)), XR_LIST);
	EXPECT_EQ(xr_value_kind(xr_value_at(told, TOLD_CONTEXT)), XR_NIL);
	end();
}

FORKED_TEST(pool_staff, places_are_filled_while_there_is_something_to_be_done)
{
	struct job *job;

	begin();
	made_place[0].coming = true;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 1);
	EXPECT_EQ(opts.ordinal, 1);
	made_place[0].coming = false;
	becomes = XR_POOL_CLOSED;
	made.state = XR_POOL_CLOSED;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 1);
	job = made_job(JOB_MAP, 1, 1);
	job_list(job);
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	EXPECT_EQ(fake[1].killed, 0);
	made_place[0].proc = NULL;
	made.state = XR_POOL_TERMINATED;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	/* It is terminated meanwhile. */
	made.state = XR_POOL_RUNNING;
	becomes = XR_POOL_TERMINATED;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 3);
	EXPECT_EQ(fake[2].killed, SIGKILL);
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
}

FORKED_TEST(pool_staff, a_worker_that_cannot_be_started_is_told_of)
{
	begin();
	says = XR_E_SYS;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_E_SYS);
	EXPECT_STR(error.text, "no process");
	EXPECT(!made_place[0].coming && made_place[0].proc == NULL);
	EXPECT_EQ(made.alive, 0);
	EXPECT_EQ(awaited, 0);
	says = XR_OK;
	for (unsigned n = 1; n < 4; n++) {
		until_short = n;
		EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_E_NOMEM);
		until_short = 0;
		EXPECT_STR(error.text, "out of memory");
	}
	EXPECT_EQ(started, 0);
	end();
}

/* --- ending them ------------------------------------------------------------------------------- */

FORKED_TEST(pool_staff,
	workers_are_told_to_end_and_killed_when_their_time_is_over)
{
	int64_t before;

	begin();
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(staff_late(&made, 0), INT64_MAX);
	EXPECT_EQ(xr_pool_terminate_workers(&made, -2, &error), XR_E_INVAL);
	EXPECT_EQ(fake[0].killed, 0);
	before = clock_now();
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_SECONDS(100), &error),
		XR_OK);
	EXPECT(fake[0].killed == SIGTERM && fake[1].killed == SIGTERM);
	EXPECT_EQ(stirred, 1);
	EXPECT(made.kill_at >= before + XR_SECONDS(100) &&
		made.kill_at <= clock_now() + XR_SECONDS(100));
	made.kill_at = 5000;
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_SECONDS(100), &error),
		XR_OK);
	EXPECT_EQ(made.kill_at, 5000);
	EXPECT_EQ(staff_late(&made, 4999), 5000);
	EXPECT_EQ(fake[0].tree_killed, 0);
	EXPECT_EQ(staff_late(&made, 5000), INT64_MAX);
	EXPECT(fake[0].tree_killed == SIGKILL &&
		fake[1].tree_killed == SIGKILL);
	EXPECT_EQ(made.kill_at, INT64_MAX);
	made.kill_at = 5000;
	made.alive = 0;
	EXPECT_EQ(staff_late(&made, 6000), INT64_MAX);
	EXPECT_EQ(made.kill_at, 5000);
	before = clock_now();
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_TIMEOUT_DEFAULT, &error),
		XR_OK);
	EXPECT_EQ(made.kill_at, 5000);
	made.kill_at = INT64_MAX;
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_TIMEOUT_DEFAULT, &error),
		XR_OK);
	EXPECT(made.kill_at >= before + XR_POOL_GRACE &&
		made.kill_at <= clock_now() + XR_POOL_GRACE);
	end();
}

FORKED_TEST(pool_staff, workers_are_waited_for)
{
	begin();
	EXPECT(staff_await(&made, 0));
	EXPECT(staff_await(&made, INT64_MAX));
	EXPECT_EQ(xr_pool_join_workers(&made, 0, &error), XR_OK);
	made_place[1].coming = true;
	EXPECT(!staff_await(&made, 0));
	made_place[1].coming = false;
	made.alive = 3;
	EXPECT_EQ(xr_pool_join_workers(&made, 1, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "3 workers have not ended");
	EXPECT_EQ(xr_pool_join_workers(&made, -2, &error), XR_E_INVAL);
	end();
}
