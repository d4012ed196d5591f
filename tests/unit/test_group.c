/* SPDX-License-Identifier: Apache-2.0 */
/* test_group.c - groups that stay as they are: joining, meeting, leaving. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>

#include <xrun/transport.h>

#include "base/status.h"
#include "tests/unit/group_rig.h"

TestSuite(group, .init = rig_begin, .fini = rig_end, .timeout = 120);

static const char *const names[] = { "ann", "bob", "cat", "dan", "eve", "fay" };

/* --- joining ---------------------------------------------------------------- */

static void
has_its_name_twice(int i)
{
	struct xr_worker w = { .size = sizeof(w) };

	EXPECT(join(i == 1 ? "cat" : names[i], i, 3) == XR_E_EXISTS);
	EXPECT(strstr(err.text, "ranks 1 and 2 both have the name cat") !=
		NULL);
	EXPECT(xr_worker_self(&w, NULL) == XR_E_STATE);
}

Test(group, AC_B7_a_name_that_two_have_fails_all_who_join)
{
	together(3, has_its_name_twice);
}

static void
is_told_another_rank(int i)
{
	struct xr_rpc_opts opts = usual();
	char text[200];

	(void)i;
	opts.timeout = XR_SECONDS(5);
	snprintf(text, sizeof(text), "%s?rank=0&world_size=2", store_address);
	opts.init_method = text;
	EXPECT(xr_rpc_init("ann", 1, -1, &opts, &err) == XR_E_INVAL);
	EXPECT(strstr(err.text, "rank=0") != NULL &&
		strstr(err.text, "an argument, 1") != NULL);
	EXPECT(xr_rpc_init("ann", -1, 3, &opts, &err) == XR_E_INVAL);
	EXPECT(strstr(err.text, "world_size=2") != NULL &&
		strstr(err.text, "an argument, 3") != NULL);

	opts.init_method = "env://";
	setenv("RANK", "0", 1);
	setenv("WORLD_SIZE", "2", 1);
	EXPECT(xr_rpc_init("ann", 1, -1, &opts, &err) == XR_E_CONFLICT);
	EXPECT(strstr(err.text, "the rank is 1 here, and 0 in the group") !=
		NULL);
	EXPECT(xr_rpc_init("ann", 0, 3, &opts, &err) == XR_E_CONFLICT);
	EXPECT(strstr(err.text, "the size is 3 here, and 2 in the group") !=
		NULL);
}

Test(group, AC_B15_a_rank_that_is_not_the_groups_is_told)
{
	together(1, is_told_another_rank);
}

static enum xr_status
cannot_open(const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts, void **self, struct xr_error *e)
{
	(void)host;
	(void)opts;
	(void)self;
	return fail(e, XR_E_SYS, "the cable is out");
}

static void
none(void)
{
}

static void
cannot_begin(int i)
{
	struct xr_rpc_opts opts = usual();
	static const char *const broken[] = { "broken" };
	struct xr_carrier c = {
		.size = sizeof(c),
		.api = XR_CARRIER_API,
		.name = "broken",
		.caps = XR_CARRIER_THREAD,
		.open = cannot_open,
		.address = (void *)none,
		.connect = (void *)none,
		.send = (void *)none,
		.body_take = (void *)none,
		.buffer_unref = (void *)none,
		.link_close = (void *)none,
		.free = (void *)none,
	};
	int64_t before = now_ms();

	if (i == 1) {
		NEED(xr_carrier_register(&c, &err) == XR_OK);
		opts.transports = broken;
		opts.transport_count = 1;
	}
	EXPECT(xr_rpc_init(names[i], i, 3, &opts, &err) ==
		(i == 1 ? XR_E_SYS : XR_E_PEER_LOST));
	EXPECT(strstr(err.text, "the cable is out") != NULL);
	if (i != 1)
		EXPECT(strstr(err.text, "rank 1") != NULL &&
			strstr(err.text, "bob") != NULL);
	EXPECT(now_ms() - before < 30000);
}

Test(group, AC_B18_what_keeps_one_from_joining_is_told_to_all)
{
	together(3, cannot_begin);
}

static void
has_another_backend(int i)
{
	const struct xr_backend other = { .size = sizeof(other),
		.name = "other" };
	xr_backend_id before = xr_backend_find("auto"), id = 0;
	struct xr_rpc_opts opts = usual();

	offer();
	NEED(xr_backend_register(&other, &id, &err) == XR_OK);
	opts.backend = before;
	EXPECT(xr_rpc_init(names[i], i, 1, &opts, &err) == XR_OK);
	EXPECT(call(names[i]) == XR_OK);
	EXPECT(leave() == XR_OK);
	opts.backend = 0;
	EXPECT(xr_rpc_init(names[i], i, 1, &opts, &err) == XR_OK);
	EXPECT(leave() == XR_OK);
	opts.backend = id;
	EXPECT(xr_rpc_init(names[i], i, 1, &opts, &err) == XR_OK);
	EXPECT(leave() == XR_OK);
}

Test(group, AC_B2_a_backend_of_before_starts_after_another_was_registered)
{
	together(1, has_another_backend);
}

/* --- meeting ---------------------------------------------------------------- */

static void
tells_its_id(int i)
{
	struct xr_value *mine, *all = NULL;
	struct xr_worker w = { .size = sizeof(w) };
	uint64_t id = 0;

	NEED(join(names[i], i, 4) == XR_OK);
	mine = xr_value_new_u64((uint64_t)i);
	EXPECT(xr_rpc_allgather(NULL, mine, &all, &err) == XR_OK);
	EXPECT(xr_value_count(all) == 4);
	for (int k = 0; k < 4; k++) {
		EXPECT(xr_value_get_u64(xr_value_find(all, names[k], 3), &id) ==
			XR_OK);
		EXPECT(xr_worker_find(names[k], &w, &err) == XR_OK);
		EXPECT(id == w.id && w.id == (uint32_t)k);
	}
	xr_value_unref(all);
	xr_value_unref(mine);
	EXPECT(leave() == XR_OK);
}

Test(group, AC_M1_a_gather_of_ids_is_the_table_of_ids)
{
	together(4, tells_its_id);
}

static enum xr_status
barrier(const char *const *who, size_t count, int64_t timeout)
{
	const struct xr_rpc_meeting meeting = {
		.size = sizeof(meeting),
		.names = who,
		.count = count,
		.timeout = timeout,
	};

	return xr_rpc_barrier(&meeting, &err);
}

static int absent;

static void
is_absent(int i)
{
	int64_t before;

	NEED(join(names[i], i, 4) == XR_OK);
	before = now_ms();
	if (i != absent) {
		EXPECT(barrier(names, 4, XR_SECONDS(1.5)) == XR_E_TIMEOUT);
		EXPECT(strstr(err.text, names[absent]) != NULL);
		EXPECT(now_ms() - before >= 1400);
	}
	stage_add();
	stage_await(4);
	/* Who comes to that when it is over hears the same. */
	if (i == absent)
		EXPECT(barrier(names, 4, XR_SECONDS(1.5)) == XR_E_TIMEOUT);
	stage_add();
	stage_await(8);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &err) == XR_OK);
}

/* The first by name collects. */
Test(group, AC_M2_each_who_is_there_hears_who_is_not_D_M1)
{
	for (absent = 0; absent < 3; absent += 2) {
		rig_fresh();
		together(4, is_absent);
	}
}

enum { OF_ALL, OF_HALF, ALONE, WAYS };

/* A barrier of a way, which a thread enters 20 times. */
struct meeter {
	pthread_t thread;
	const char *who[6];
	int member[6];
	size_t count;
	int way;
	enum xr_status status;
};

/* What this process has left, by way. */
static _Atomic uint32_t barriers_left[WAYS];

static void
adds(struct meeter *m, int member)
{
	m->who[m->count] = names[member];
	m->member[m->count++] = member;
}

/* Each barrier that this process has left, all others of it have entered. */
static void *
meets(void *arg)
{
	struct meeter *m = arg;
	const struct xr_rpc_meeting meeting = {
		.size = sizeof(meeting),
		.names = m->who,
		.count = m->count,
		.timeout = XR_SECONDS(60),
	};

	m->status = XR_OK;
	for (int k = 0; k < 20 && m->status == XR_OK; k++) {
		uint32_t n;

		atomic_fetch_add(&shared->entered[m->way][self_index], 1);
		m->status = xr_rpc_barrier(&meeting, NULL);
		n = atomic_fetch_add(&barriers_left[m->way], 1) + 1;
		for (size_t i = 0; i < m->count; i++)
			EXPECT(atomic_load(&shared->entered[m->way]
							   [m->member[i]]) >=
				n);
	}
	return NULL;
}

/* At once: @each threads of all, as many of its half, as many alone. */
static void
meets_three_ways(int i, int each)
{
	struct meeter m[3 * WAYS] = { { .count = 0 } };

	NEED(join(names[i], i, 6) == XR_OK);
	for (int t = 0; t < each * WAYS; t++) {
		m[t].way = t % WAYS;
		/* Each names them in another order. */
		for (int j = 0; j < 6; j++) {
			int k = (i + j) % 6;

			if (m[t].way == OF_ALL || k == i ||
				(m[t].way == OF_HALF && k % 2 == i % 2))
				adds(&m[t], k);
		}
		NEED(pthread_create(&m[t].thread, NULL, meets, &m[t]) == 0);
	}
	for (int t = 0; t < each * WAYS; t++) {
		pthread_join(m[t].thread, NULL);
		EXPECT(m[t].status == XR_OK);
	}
	EXPECT(atomic_load(&barriers_left[OF_ALL]) == 20 * (uint32_t)each);
	EXPECT(leave() == XR_OK);
}

static void
meets_by_one_thread(int i)
{
	meets_three_ways(i, 1);
}

static void
meets_by_three_threads(int i)
{
	meets_three_ways(i, 3);
}

Test(group, AC_M3_all_halves_and_one_alone_meet_at_once)
{
	together(6, meets_by_one_thread);
}

Test(group, AC_M3_three_threads_of_each_member_meet_at_once)
{
	together(6, meets_by_three_threads);
}

/* Once with a link to it, and once without. */
static void
is_dead(int i)
{
	enum xr_status status;

	offer();
	NEED(join(names[i], i, 3) == XR_OK);
	stage_add();
	stage_await(3);
	if (i == 2)
		pause();
	if (i == 0) {
		EXPECT(call("cat") == XR_OK);
		kill(atomic_load(&shared->pid[2]), SIGKILL);
		do
			status = call("cat");
		while (status == XR_OK);
		EXPECT(status == XR_E_PEER_LOST);
		stage_set(4);
	}
	stage_await(4);
	for (int k = 0; k < 2; k++) {
		status = barrier(names, 3, XR_SECONDS(5));
		EXPECT(status == XR_E_PEER_LOST || status == XR_E_TIMEOUT);
		EXPECT(strstr(err.text, "cat") != NULL);
	}
	stage_add();
	stage_await(6);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &err) == XR_OK);
}

Test(group, AC_M4_a_barrier_with_the_dead_is_an_error_D_M4)
{
	pid_t pid[3];

	for (int i = 0; i < 3; i++)
		pid[i] = start(i, is_dead);
	ended(0, pid[0]);
	ended(1, pid[1]);
	waitpid(pid[2], NULL, 0);
	told();
}

static void *
meet_all(void *error)
{
	const struct xr_rpc_meeting meeting = {
		.size = sizeof(meeting),
		.names = names,
		.count = 3,
		.timeout = XR_SECONDS(60),
	};

	return (void *)(intptr_t)xr_rpc_barrier(&meeting, error);
}

/* The collector is stopped when the other is lost, so it does not report that. */
static void
loses_two(int i)
{
	struct xr_error why = { 0 };
	void *status = NULL;
	pthread_t thread;

	offer();
	NEED(join(names[i], i, 3) == XR_OK);
	stage_add();
	stage_await(3);
	if (i != 1)
		pause();
	EXPECT(call("ann") == XR_OK && call("cat") == XR_OK);
	kill(atomic_load(&shared->pid[0]), SIGSTOP);
	NEED(pthread_create(&thread, NULL, meet_all, &why) == 0);
	kill(atomic_load(&shared->pid[2]), SIGKILL);
	while (call("cat") == XR_OK)
		;
	kill(atomic_load(&shared->pid[0]), SIGKILL);
	pthread_join(thread, &status);
	EXPECT((int)(intptr_t)status == XR_E_PEER_LOST);
	if (strstr(why.text, "cat") == NULL)
		note(__LINE__, "%s", why.text);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &err) == XR_OK);
}

Test(group, a_barrier_whose_collector_is_lost_names_the_member_lost_before)
{
	pid_t pid[3];

	for (int i = 0; i < 3; i++)
		pid[i] = start(i, loses_two);
	ended(1, pid[1]);
	waitpid(pid[0], NULL, 0);
	waitpid(pid[2], NULL, 0);
	told();
}

static const char *const alike[] = { "a", "b", "b1" };

/* What the members of {"a", @other} brought in their round @k. */
static void
gathers_with(const char *other, int k)
{
	const char *who[] = { "a", other };
	struct xr_rpc_meeting meeting = {
		.size = sizeof(meeting),
		.names = who,
		.count = 2,
		.timeout = XR_SECONDS(60),
	};
	char text[32];
	struct xr_value *mine, *all = NULL;

	snprintf(text, sizeof(text), "%s/%d", other, k);
	mine = xr_value_new_text(text, strlen(text));
	EXPECT(xr_rpc_allgather(&meeting, mine, &all, &err) == XR_OK);
	EXPECT(xr_value_count(all) == 2);
	EXPECT(xr_value_equal(xr_value_find(all, "a", 1), mine));
	EXPECT(xr_value_equal(xr_value_find(all, other, strlen(other)), mine));
	xr_value_unref(mine);
	xr_value_unref(all);
}

static void
is_named_alike(int i)
{
	NEED(join(alike[i], i, 3) == XR_OK);
	for (int k = 0; k < 11; k++) {
		if (i != 2)
			gathers_with("b", k);
		if (i != 1)
			gathers_with("b1", k);
	}
	EXPECT(leave() == XR_OK);
}

Test(group, AC_M5_sets_whose_names_run_together_do_not_mix)
{
	together(3, is_named_alike);
}

/* --- leaving ---------------------------------------------------------------- */

static void
has_more_to_do(int i)
{
	offer();
	NEED(join(names[i], i, 3) == XR_OK);
	for (int to = 1; to < 3 && i == 0; to++)
		for (int k = 0; k < 30; k++)
			EXPECT(call(names[to]) == XR_OK);
	EXPECT(leave() == XR_OK);
}

Test(group, AC_M6_who_has_nothing_to_do_leaves_with_who_has)
{
	together(3, has_more_to_do);
}

/* Counts, and calls the next without waiting. */
static enum xr_status
pass_on(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_rpc_call next = XR_RPC_CALL;
	struct xr_value *items[2];
	struct xr_future *f = NULL;
	int64_t left = 0, to = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &left);
	xr_value_get_i64(xr_value_at(args, 1), &to);
	atomic_fetch_add(&shared->count, 1);
	if (left > 0) {
		items[0] = xr_value_new_i64(left - 1);
		items[1] = xr_value_new_i64((to + 1) % 3);
		next.id = to;
		next.func = "pass_on";
		next.args = xr_value_new_list_of(items, 2);
		if (xr_rpc_async(&next, &f, &err) != XR_OK)
			note(__LINE__, "%s", err.text);
		xr_future_unref(f);
		xr_value_unref(next.args);
	}
	return xr_reply(c, xr_value_new_nil());
}

static const struct xr_func passes[] = {
	{ .size = sizeof(passes[0]),
		.name = "pass_on",
		.schema = "ii",
		.fn = pass_on },
};

/* Begins a chain of @n calls, the first of them on worker @to. */
static struct xr_future *
begin_chain(int64_t n, int64_t to)
{
	struct xr_value *items[2] = { xr_value_new_i64(n - 1),
		xr_value_new_i64((to + 1) % 3) };
	struct xr_rpc_call first = XR_RPC_CALL;
	struct xr_future *f = NULL;

	first.id = to;
	first.func = "pass_on";
	first.args = xr_value_new_list_of(items, 2);
	EXPECT(xr_rpc_async(&first, &f, &err) == XR_OK);
	xr_value_unref(first.args);
	return f;
}

static void
leaves_a_chain(int i)
{
	NEED(xr_module_static(passes, 1, &err) == XR_OK);
	NEED(join(names[i], i, 3) == XR_OK);
	for (int k = 0; k < 5; k++)
		xr_future_unref(begin_chain(40, (i + 1) % 3));
	EXPECT(leave() == XR_OK);
	EXPECT(atomic_load(&shared->count) == 3 * 5 * 40);
}

Test(group, AC_M7_calls_that_nobody_waits_for_are_waited_for_by_leaving)
{
	together(3, leaves_a_chain);
}

static void
is_left_alone(int i)
{
	int64_t before;

	NEED(join(names[i], i, 2) == XR_OK);
	if (i == 1) {
		stage_await(1);
		xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &err);
		return;
	}
	before = now_ms();
	EXPECT(xr_rpc_shutdown(0, XR_SECONDS(5), &err) == XR_E_TIMEOUT);
	/* A second wait for the same time shows; a late thread does not. */
	EXPECT(now_ms() - before < 10000);
	EXPECT(strstr(err.text, "bob") != NULL);
	EXPECT(xr_rpc_shutdown(0, XR_SECONDS(2), &err) == XR_E_STATE);
	stage_set(1);
}

Test(group, AC_M8_leaving_takes_no_longer_than_it_may)
{
	together(2, is_left_alone);
}

/* Ann does not wait for the others, which stay until she is gone. */
static void
leaves_at_once(int i)
{
	int64_t before;

	NEED(join(names[i], i, 3) == XR_OK);
	if (i > 0)
		stage_await(1);
	before = now_ms();
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, XR_SECONDS(60), &err) ==
		XR_OK);
	EXPECT(now_ms() - before < 30000);
	stage_set(1);
}

Test(group, AC_M9_who_leaves_at_once_waits_for_nobody)
{
	together(3, leaves_at_once);
}

static void
begins_another(struct xr_future *future, void *ctx)
{
	(void)future;
	(void)ctx;
	xr_future_unref(begin_chain(7, 2));
}

static void
follows_up(int i)
{
	struct xr_future *f;

	NEED(xr_module_static(passes, 1, &err) == XR_OK);
	NEED(join(names[i], i, 3) == XR_OK);
	if (i == 0) {
		f = begin_chain(1, 1);
		NEED(xr_future_on_done(f, begins_another, NULL) == XR_OK);
		xr_future_unref(f);
	}
	EXPECT(leave() == XR_OK);
	EXPECT(atomic_load(&shared->count) == 8);
}

Test(group, AC_M10_a_call_that_an_answer_begins_is_waited_for)
{
	for (int k = 0; k < 5; k++) {
		rig_fresh();
		atomic_store(&shared->count, 0);
		together(3, follows_up);
	}
}

/* Ann does not wait for long; bob never comes to that, and both leave in peace. */
static void
gives_a_barrier_up(int i)
{
	struct xr_rpc_meeting soon = { .size = sizeof(soon),
		.timeout = XR_SECONDS(0.1) };

	NEED(join(names[i], i, 2) == XR_OK);
	if (i == 0) {
		EXPECT(xr_rpc_barrier(&soon, &err) == XR_E_TIMEOUT);
		EXPECT(strstr(err.text, "bob") != NULL);
		stage_set(1);
	} else {
		stage_await(1);
	}
	EXPECT(leave() == XR_OK);
}

Test(group, a_barrier_that_one_gave_up_does_not_keep_all_from_leaving)
{
	together(2, gives_a_barrier_up);
}
