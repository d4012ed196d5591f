/* SPDX-License-Identifier: Apache-2.0 */
/* test_figures.c - what an agent counts, and its metrics by their names. */
#include <errno.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/serve_rig.h"
#include "worker/rpc/figures.h"

int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);

static __thread bool no_specific;

int
__wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
	return no_specific ? ENOMEM : __real_pthread_setspecific(key, value);
}

/* --- lanes ------------------------------------------------------------------------ */

TestSuite(figures, .timeout = 60);

#define SHARED (FIGURES_LANES - 1)
#define MANY   (FIGURES_LANES + 2)

static pthread_barrier_t all_counted, all_seen;
static struct segment_lane *lane_of[MANY];

static void *
count_once(void *arg)
{
	int i = *(int *)arg;

	figures_add(FIGURE_ONEWAY, 1 + (uint64_t)i);
	lane_of[i] = figures_mine;
	cr_expect_eq(figures_lane(), figures_mine);
	pthread_barrier_wait(&all_counted);
	pthread_barrier_wait(&all_seen);
	return NULL;
}

static void
start_all(pthread_t *thread, int *number, int count)
{
	pthread_barrier_init(&all_counted, NULL, (unsigned)count + 1);
	pthread_barrier_init(&all_seen, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++) {
		number[i] = i;
		cr_assert_eq(pthread_create(&thread[i], NULL, count_once,
				     &number[i]),
			0);
	}
	pthread_barrier_wait(&all_counted);
}

static void
end_all(const pthread_t *thread, int count)
{
	pthread_barrier_wait(&all_seen);
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

static int
threads_in(const struct segment_lane *lane)
{
	int n = 0;

	for (int i = 0; i < MANY; i++)
		n += lane_of[i] == lane;
	return n;
}

static int64_t
sum_of(enum figure figure)
{
	struct figures_view v;

	figures_sum(&v);
	return v.count[figure];
}

Test(figures, each_thread_has_a_lane_as_long_as_there_are_some)
{
	struct segment_lane *first = figures_lane();
	pthread_t thread[MANY];
	int number[MANY];

	cr_expect_eq(first->shared, 0);
	cr_expect_eq(first->taken, 1);
	cr_expect_eq(first->gen, 1);
	start_all(thread, number, MANY);
	for (int i = 0; i < FIGURES_LANES; i++) {
		cr_expect_eq(first[i].shared, i == SHARED);
		cr_expect_eq(first[i].taken, i != SHARED);
		cr_expect_eq(threads_in(&first[i]),
			i == 0             ? 0 :
				i < SHARED ? 1 :
					     MANY - (FIGURES_LANES - 2));
	}
	end_all(thread, MANY);
	cr_expect_eq(sum_of(FIGURE_ONEWAY), MANY * (MANY + 1) / 2);
	for (int i = 0; i < FIGURES_LANES; i++)
		cr_expect_eq(first[i].taken, i == 0);
	/* The next one goes on where one has stopped. */
	start_all(thread, number, 1);
	cr_expect_eq(lane_of[0], &first[1]);
	end_all(thread, 1);
	cr_expect_eq(sum_of(FIGURE_ONEWAY), MANY * (MANY + 1) / 2 + 1);
}

Test(figures, a_thread_whose_end_is_not_heard_of_shares_a_lane)
{
	struct segment_lane *lane;

	no_specific = true;
	lane = figures_introduce();
	cr_expect_eq(lane->shared, 1);
	cr_expect_eq(figures_mine, lane);
	for (int i = 1; i <= SHARED; i++)
		cr_expect_eq(lane[-i].taken, 0);
	no_specific = false;
	cr_expect_eq(figures_introduce(), lane - SHARED);
}

static struct segment_lane *lane_at_end;

static void
count_at_end(void *arg)
{
	(void)arg;
	figures_add(FIGURE_ONEWAY, 1);
	lane_at_end = figures_mine;
}

static void *
count_and_end(void *key)
{
	cr_assert_eq(pthread_setspecific(*(pthread_key_t *)key, key), 0);
	figures_add(FIGURE_ONEWAY, 1);
	return NULL;
}

/* Its lane may be another's by then. */
Test(figures, what_ends_with_a_thread_counts_in_the_shared_lane)
{
	struct segment_lane *first = figures_lane();
	pthread_key_t key;
	pthread_t thread;

	/* Of two keys the older one ends first. */
	cr_assert_eq(pthread_key_create(&key, count_at_end), 0);
	cr_assert_eq(pthread_create(&thread, NULL, count_and_end, &key), 0);
	pthread_join(thread, NULL);
	cr_expect_eq(lane_at_end, &first[SHARED]);
	cr_expect_eq(first[SHARED].count[FIGURE_ONEWAY], 1);
	cr_expect_eq(first[1].count[FIGURE_ONEWAY], 1);
	cr_expect_eq(sum_of(FIGURE_ONEWAY), 2);
	pthread_key_delete(key);
}

Test(figures, a_shared_lane_counts_as_others_do)
{
	struct segment_lane lane = { .shared = 1 };

	figures_step(&lane, &lane.count[0], 5);
	figures_step(&lane, &lane.count[0], 6);
	lane.shared = 0;
	figures_step(&lane, &lane.count[0], 7);
	cr_expect_eq(lane.count[0], 18);
	cr_expect_eq(lane.count[1], 0);
}

/* --- calls ------------------------------------------------------------------------- */

static int64_t
ago(int64_t ns)
{
	return tick_now() - (int64_t)((double)ns * tick_rate(NULL) / NS_PER_MS);
}

Test(figures, a_call_counts_as_long_as_it_took)
{
	const int64_t ten = 10 * NS_PER_S;
	struct figures_view v;

	/* The clock may go back a little: none has taken less than nothing. */
	figures_call(ago(-ten), XR_OK);
	figures_sum(&v);
	cr_expect_eq(v.calls, 1);
	cr_expect_eq(v.latency[0], 1);
	cr_expect_eq(v.count[FIGURE_CALL_NS], 0);
	cr_expect_eq(v.count[FIGURE_ERRORS], 0);
	cr_expect_eq(v.lost, 0);
	figures_call(ago(ten), XR_E_REMOTE);
	figures_sum(&v);
	cr_expect_eq(v.calls, 2);
	cr_expect_eq(v.latency[figures_bucket((uint64_t)ten)], 1);
	cr_expect(v.count[FIGURE_CALL_NS] >= ten - NS_PER_MS);
	cr_expect(v.count[FIGURE_CALL_NS] < ten + NS_PER_S);
	cr_expect_eq(v.count[FIGURE_ERRORS], 1);
	cr_expect_eq(v.count[FIGURE_TIMEOUTS], 0);
	figures_call(ago(100 * NS_PER_S), XR_E_TIMEOUT);
	figures_sum(&v);
	cr_expect_eq(v.calls, 3);
	cr_expect_eq(v.latency[FIGURES_LATENCIES - 1], 1);
	cr_expect_eq(v.latency[0], 1);
	cr_expect_eq(v.count[FIGURE_ERRORS], 2);
	cr_expect_eq(v.count[FIGURE_TIMEOUTS], 1);
}

Test(figures, the_first_that_was_lost_counts)
{
	struct figures_view v;

	figures_open();
	cr_expect_not(figures_lost(5));
	figures_lost(0);
	figures_sum(&v);
	cr_expect_eq(v.lost, 6);
	cr_expect_not(figures_are_of_job());
}

Test(figures, a_message_weighs_as_much_as_its_parts)
{
	static const struct xr_part parts[] = { { NULL, 3 }, { NULL, 5 } };

	cr_expect_eq(figures_parts(parts, 0), 0);
	cr_expect_eq(figures_parts(parts, 1), 3);
	cr_expect_eq(figures_parts(parts, 2), 8);
}

/* --- metrics ----------------------------------------------------------------------- */

TestSuite(metrics, .timeout = 60, .init = begin, .fini = wire_end);

static const char *const own_names[] = {
	"agent.client_active_calls",
	"agent.num_idle_threads",
	"agent.num_pending_requests",
	"agent.server_active_async_calls",
	"agent.server_active_calls",
	"agent.thread_pool_size",
	"net.bytes_in",
	"net.bytes_out",
	"net.call_ns",
	"net.call_ns_p50",
	"net.call_ns_p99",
	"net.calls",
	"net.errors",
	"net.oneway",
	"net.served",
	"net.timeouts",
	"num_forks",
	"num_owner_rrefs",
	"num_pending_children",
	"num_pending_futures",
	"num_pending_users",
	"num_user_rrefs",
};
#define OWN (sizeof(own_names) / sizeof(own_names[0]))

static int64_t
metric(const char *name)
{
	int64_t n = -1;

	cr_expect_eq(xr_metrics_get(name, &n), XR_OK, "%s", name);
	return n;
}

static struct {
	size_t count;
	char name[64][48];
	int64_t value[64];
} told;

static void
note(const char *name, int64_t value, void *ctx)
{
	cr_expect_eq(ctx, &told);
	snprintf(told.name[told.count], sizeof(told.name[0]), "%s", name);
	told.value[told.count++] = value;
}

static void
tell_all(void)
{
	told.count = 0;
	cr_assert_eq(xr_metrics_each(note, &told), XR_OK);
}

Test(metrics, all_are_told_in_the_order_of_their_names)
{
	static const char *const of_peers[] = { "bytes_in", "bytes_out",
		"calls", "errors" };
	static const char *const names[] = { "one", "self", "three", "two" };
	char name[48];
	size_t at = 0;

	tell_all();
	cr_expect_eq(told.count, OWN + 16);
	for (size_t i = 0; i < OWN; i++, at++)
		cr_expect_str_eq(told.name[at], own_names[i]);
	for (size_t p = 0; p < 4; p++)
		for (size_t i = 0; i < 4; i++, at++) {
			snprintf(name, sizeof(name), "peer.%s.%s", names[p],
				of_peers[i]);
			cr_expect_str_eq(told.name[at], name);
		}
}

Test(metrics, a_name_that_is_none_has_no_figure)
{
	static const char *const bad[] = { "", "net", "net.call", "net.callsx",
		"peer.", "peer.one", "peer.one.", "peer.one.call",
		"peer..calls", "peer.on.calls", "peer.onee.calls",
		"peers.one.calls", "peer.one.calls.", "peer.one.two.calls",
		"peer", "pear.one.calls" };
	int64_t n = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(xr_metrics_get(bad[i], &n), XR_E_NOTFOUND, "%s",
			bad[i]);
	cr_expect_eq(xr_metrics_get(NULL, &n), XR_E_INVAL);
	cr_expect_eq(n, 7);
	wire_end();
	cr_expect_eq(xr_metrics_get("net.calls", &n), XR_E_STATE);
	cr_expect_eq(n, 7);
	wire_begin();
}

Test(metrics, figures_of_this_process_are_told)
{
	static const struct {
		enum figure figure;
		const char *name;
	} row[] = {
		{ FIGURE_ERRORS, "net.errors" },
		{ FIGURE_TIMEOUTS, "net.timeouts" },
		{ FIGURE_ONEWAY, "net.oneway" },
		{ FIGURE_SERVED, "net.served" },
		{ FIGURE_BYTES_OUT, "net.bytes_out" },
		{ FIGURE_BYTES_IN, "net.bytes_in" },
		{ FIGURE_CALL_NS, "net.call_ns" },
	};
	struct segment_lane *lane = figures_lane();

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		cr_expect_eq(metric(row[i].name), 0);
		figures_add(row[i].figure, 10 + i);
		cr_expect_eq(metric(row[i].name), 10 + (int64_t)i);
	}
	cr_expect_eq(metric("net.calls"), 0);
	cr_expect_eq(metric("net.call_ns_p50"), 0);
	cr_expect_eq(metric("net.call_ns_p99"), 0);
	figures_step(lane, &lane->latency[0], 50);
	figures_step(lane, &lane->latency[10], 48);
	cr_expect_eq(metric("net.call_ns_p50"), (int64_t)figures_above(0));
	cr_expect_eq(metric("net.call_ns_p99"), (int64_t)figures_above(10));
	figures_step(lane, &lane->latency[20], 2);
	cr_expect_eq(metric("net.calls"), 100);
	cr_expect_eq(metric("net.call_ns_p50"), (int64_t)figures_above(0));
	cr_expect_eq(metric("net.call_ns_p99"), (int64_t)figures_above(20));
	figures_step(lane, &lane->latency[10], 100);
	cr_expect_eq(metric("net.call_ns_p50"), (int64_t)figures_above(10));
	cr_expect_eq(metric("net.call_ns_p99"), (int64_t)figures_above(10));
}

static struct xr_call *kept;

static enum xr_status
keep(struct xr_call *c, struct xr_value *args)
{
	(void)args;
	kept = xr_call_defer(c);
	return XR_OK;
}

Test(metrics, calls_that_run_are_told)
{
	struct xr_rpc_call c = XR_RPC_CALL;
	struct xr_future *f = NULL;
	struct xr_error err;

	cr_expect_eq(metric("agent.thread_pool_size"), 2);
	cr_expect_eq(metric("agent.num_idle_threads"), 2);
	cr_expect_eq(metric("agent.client_active_calls"), 0);
	cr_expect_eq(metric("agent.num_pending_requests"), 0);
	c.to = "one";
	c.func = "any";
	c.timeout = HOUR;
	cr_assert_eq(xr_rpc_async(&c, &f, &err), XR_OK);
	cr_expect_eq(metric("agent.client_active_calls"), 1);
	cr_expect_eq(metric("agent.num_pending_requests"), 1);
	cr_expect_eq(metric("agent.server_active_calls"), 0);
	xr_future_cancel(f);
	xr_future_unref(f);
	answer = keep;
	call("any", plain());
	cr_assert_not_null(kept);
	cr_expect_eq(metric("agent.server_active_calls"), 1);
	cr_expect_eq(metric("agent.server_active_async_calls"), 1);
	cr_expect_eq(xr_reply(kept, xr_value_new_nil()), XR_OK);
	cr_expect_eq(metric("agent.server_active_calls"), 0);
	cr_expect_eq(metric("agent.server_active_async_calls"), 0);
}

Test(metrics, references_are_told)
{
	static struct rref_wire wire;
	struct xr_rref *h[4];
	struct refs_out out = { 0 };

	/* Of two values there are three forks; one is asked for five times. */
	say(1, MESSAGE_RREF_FORK_REQUEST, word(2, 1, 2, 2, 0));
	say(1, MESSAGE_RREF_FORK_REQUEST, word(2, 1, 2, 3, 0));
	say(1, MESSAGE_RREF_FORK_REQUEST, word(2, 4, 2, 5, 0));
	wire = word(2, 4, 2, 5, 0);
	for (uint64_t i = 0; i < 5; i++)
		wire_say(1, MESSAGE_RREF_FETCH, i + 1, &wire, sizeof(wire));
	/* Of four handles one is pending; six forks are on their way. */
	for (uint64_t i = 0; i < 4; i++)
		h[i] = handle_from(1,
			word(i == 3 ? 2 : 1, i, 1, 10 + i, RREF_CONFIRMED));
	cr_assert_eq(refs_out_begin(&out, wire_peer[2], NULL), XR_OK);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(refs_out_add(&out, h[0], (uint8_t *)&wire, NULL),
			XR_OK);
	cr_expect_eq(metric("num_forks"), 3);
	cr_expect_eq(metric("num_owner_rrefs"), 2);
	cr_expect_eq(metric("num_pending_futures"), 5);
	cr_expect_eq(metric("num_user_rrefs"), 4);
	cr_expect_eq(metric("num_pending_users"), 1);
	cr_expect_eq(metric("num_pending_children"), 6);
	refs_out_undo(&out);
	refs_out_fini(&out);
	for (int i = 0; i < 4; i++)
		xr_rref_unref(h[i]);
}

static void
set_peer(struct peer *p, uint64_t n)
{
	atomic_store(&p->bytes_in, n);
	atomic_store(&p->bytes_out, n + 1);
	atomic_store(&p->calls, n + 2);
	atomic_store(&p->errors, n + 3);
}

/* All lives of a peer are told as one. */
Test(metrics, figures_of_peers_are_told)
{
	struct peer *again;
	int64_t n = 0;

	set_peer(wire_peer[1], 100);
	set_peer(wire_peer[2], 200);
	cr_expect_eq(metric("peer.one.bytes_in"), 100);
	cr_expect_eq(metric("peer.one.bytes_out"), 101);
	cr_expect_eq(metric("peer.one.calls"), 102);
	cr_expect_eq(metric("peer.one.errors"), 103);
	cr_expect_eq(metric("peer.two.errors"), 203);
	agent_lose(wire_peer[1], "on purpose");
	again = agent_add(&(struct agent_member){ "one", 1, 500, "wire:there",
		NULL, 0 });
	cr_assert_not_null(again);
	set_peer(again, 1000);
	cr_expect_eq(metric("peer.one.bytes_in"), 1100);
	cr_expect_eq(metric("peer.one.errors"), 1106);
	tell_all();
	cr_expect_eq(told.count, OWN + 16);
	for (size_t i = 0; i < told.count; i++)
		if (strncmp(told.name[i], "peer.one.", 9) == 0)
			n += told.value[i];
	cr_expect_eq(n, 1100 + 1102 + 1104 + 1106);
}

Test(metrics, without_memory_none_is_told)
{
	tell_all();
	told.count = 0;
	until_short = 1;
	cr_expect_eq(xr_metrics_each(note, &told), XR_E_NOMEM);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(told.count, 0);
}
