/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_bound.c - what others can make a process keep for its groups; and that memory
 * which was given for a message is free when its future has ended. */
#include <xrun/call.h>
#include <xrun/coll.h>

#include "tests/unit/agent_rig.h"
#include "tests/unit/short_memory.h"
#include "worker/coll/letter.h"
#include "worker/coll/mail.h"
#include "worker/coll/team.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/due.h"
#include "worker/rpc/parcel.h"

TestSuite(coll_bound, .timeout = 60);

/* --- a world of one, who is a group, and sends to himself --------------------- */

static struct xr_world *world;
static struct xr_error err;

static void
begin_world(void)
{
	char path[] = "/tmp/xrun-world-XXXXXX", method[64];
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	int fd = mkstemp(path);

	cr_assert_neq(fd, -1);
	close(fd);
	unlink(path);
	snprintf(method, sizeof(method), "file://%s", path);
	cr_assert_eq(xr_rpc_opts_init(0, &rpc, NULL), XR_OK);
	rpc.init_method = method;
	opts.name = "self";
	opts.rank = 0;
	opts.world_size = 1;
	opts.rpc = &rpc;
	cr_assert_eq(xr_world_new(&opts, &world, &err), XR_OK, "%s", err.text);
	unlink(path);
}

static void
end_world(void)
{
	cr_expect_eq(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			     &err),
		XR_OK, "%s", err.text);
	xr_world_free(world);
}

static struct xr_coll *
new_group(void)
{
	struct xr_coll *coll = NULL;

	cr_assert_eq(xr_coll_new(world, NULL, &coll, &err), XR_OK, "%s",
		err.text);
	return coll;
}

#define OP(at, n) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), \
		.dtype = XR_DT_I32, \
		.data = (at), \
		.count = (n), \
		.timeout = XR_SECONDS(50) })

static struct load
load_of(struct xr_coll *team, const struct load *load)
{
	struct load copy;

	pthread_mutex_lock(&team->lock);
	copy = *load;
	pthread_mutex_unlock(&team->lock);
	return copy;
}

static uint32_t
kept(struct xr_coll *team)
{
	return load_of(team, &team->account[0].kept).count;
}

/* --- loads ------------------------------------------------------------------------ */

Test(coll_bound, so_many_so_much_or_one)
{
	const struct load most = { 3, 100 };
	struct load l = { 0 };

	cr_expect(load_takes(&l, 1000, &most));
	load_add(&l, 1000);
	cr_expect_not(load_takes(&l, 0, &most));
	load_drop(&l, 1000);
	load_add(&l, 60);
	cr_expect_not(load_takes(&l, 41, &most));
	cr_expect_not(load_takes(&l, UINT64_MAX, &most));
	cr_expect(load_takes(&l, 40, &most));
	load_add(&l, 40);
	cr_expect(load_takes(&l, 0, &most));
	load_add(&l, 0);
	cr_expect_not(load_takes(&l, 0, &most));
}

/* --- messages --------------------------------------------------------------------- */

#define MANY 3000

static void
receive_in_order(struct xr_coll *coll, int32_t first, int32_t count)
{
	int32_t got;

	for (int32_t i = first; i < first + count; i++) {
		got = -1;
		cr_assert_eq(xr_coll_recv(coll, OP(&got, 1), NULL, &err), XR_OK,
			"%d: %s", i, err.text);
		cr_assert_eq(got, i);
	}
}

/* What was sent has come when a call that was sent later has. */
static void
await_what_was_sent(void)
{
	cr_expect_eq(ask("nothing", NULL, NULL, &err), XR_E_NO_FUNCTION);
}

Test(coll_bound, messages_beyond_the_limit_wait_at_their_sender)
{
	static int32_t x[MANY];
	static struct xr_future *f[MANY];
	struct xr_coll *coll;

	begin_world();
	coll = new_group();
	for (int32_t i = 0; i < MANY; i++) {
		x[i] = i;
		cr_assert_eq(xr_coll_isend(coll, OP(&x[i], 1), &f[i], &err),
			XR_OK, "%s", err.text);
	}
	await_what_was_sent();
	cr_expect_eq(kept(coll), LETTERS_MAX);
	receive_in_order(coll, 0, MANY);
	for (int32_t i = 0; i < MANY; i++)
		cr_expect_eq(end_of(f[i], NULL, &err), XR_OK, "%s", err.text);
	cr_expect_eq(kept(coll), 0);
	cr_expect_eq(load_of(coll, &coll->account[0].out).count, 0);
	xr_coll_free(coll);
	end_world();
}

Test(coll_bound, one_that_waits_is_cancelled_and_never_comes)
{
	static int32_t x[LETTERS_MAX + 3];
	static struct xr_future *f[LETTERS_MAX + 3];
	struct xr_coll *coll;
	int32_t last = -1;

	begin_world();
	coll = new_group();
	for (int32_t i = 0; i < (int32_t)LETTERS_MAX + 3; i++) {
		x[i] = i;
		cr_assert_eq(xr_coll_isend(coll, OP(&x[i], 1), &f[i], &err),
			XR_OK, "%s", err.text);
	}
	cr_expect_eq(xr_future_cancel(f[LETTERS_MAX]), XR_OK);
	cr_expect_eq(end_of(f[LETTERS_MAX], NULL, &err), XR_E_CANCELLED);
	receive_in_order(coll, 0, LETTERS_MAX);
	receive_in_order(coll, LETTERS_MAX + 1, 1);
	/* What waits when the group is closed is not sent. */
	cr_assert_eq(xr_coll_recv(coll, OP(&last, 1), NULL, &err), XR_OK);
	cr_expect_eq(last, (int32_t)LETTERS_MAX + 2);
	for (uint32_t i = 0; i < LETTERS_MAX + 3; i++)
		if (i != LETTERS_MAX)
			cr_expect_eq(end_of(f[i], NULL, &err), XR_OK);
	xr_coll_free(coll);
	end_world();
}

Test(coll_bound, those_that_wait_end_with_their_group)
{
	static int32_t x;
	static struct xr_future *f[LETTERS_MAX + 2];
	struct xr_coll *coll;

	begin_world();
	coll = new_group();
	for (uint32_t i = 0; i < LETTERS_MAX + 2; i++)
		cr_assert_eq(xr_coll_isend(coll, OP(&x, 1), &f[i], &err), XR_OK,
			"%s", err.text);
	await_what_was_sent();
	xr_coll_close(coll);
	for (uint32_t i = 0; i < LETTERS_MAX + 2; i++)
		cr_expect_eq(end_of(f[i], NULL, &err), XR_E_CLOSED);
	xr_coll_free(coll);
	end_world();
}

/* Who does not wait for answers is no member that this library made. */
Test(coll_bound, more_than_a_member_may_send_is_refused)
{
	static struct xr_future *f[2 * LETTERS_MAX + 1];
	struct xr_coll *coll;
	struct label label;
	struct xr_part part = { &label, sizeof(label) };
	struct question q = {
		.kind = MESSAGE_GUEST,
		.flags = MAIL_POST,
		.parts = &part,
		.count = 1,
		.timeout = XR_SECONDS(50),
	};

	begin_world();
	coll = new_group();
	label = (struct label){ coll->id, 0, XR_DT_I32, 0, 0 };
	q.to = coll->peer[0];
	for (uint32_t i = 0; i <= 2 * LETTERS_MAX; i++)
		cr_assert_eq(ask_future(&q, NULL, &f[i], &err), XR_OK);
	cr_expect_eq(end_of(f[2 * LETTERS_MAX], NULL, &err), XR_E_AGAIN);
	cr_expect_str_eq(err.text,
		"rank 0 keeps 2048 messages of rank 0, 0 bytes, which nobody asks for");
	cr_expect_eq(kept(coll), 2 * LETTERS_MAX);
	for (uint32_t i = 0; i < 2 * LETTERS_MAX; i++)
		xr_future_unref(f[i]);
	xr_coll_free(coll);
	end_world();
}

/* --- operations ------------------------------------------------------------------- */

static void
send_part(struct xr_coll *coll, uint32_t seq, uint16_t stage)
{
	struct xr_message m = {
		.record = {
			.kind = MESSAGE_GUEST,
			.aux = stage,
			.method = 1,
			.corr = mail_corr(coll->id, seq),
		},
	};
	struct due due = { .timeout = XR_SECONDS(50) };

	cr_assert_eq(peer_send(coll->peer[0], &m, &due, NULL, &err), XR_OK,
		"%s", err.text);
}

static void
expect_refused(struct xr_coll *coll, const char *why)
{
	await_what_was_sent();
	cr_expect_eq(xr_coll_barrier(coll, NULL, &err), XR_E_PROTO);
	cr_expect_not_null(strstr(err.text, why), "%s", err.text);
	cr_expect_eq(load_of(coll, &coll->account[0].early).count, 0);
	xr_coll_free(coll);
}

Test(coll_bound, a_member_is_ahead_as_far_as_it_can_begin)
{
	struct xr_coll *coll;

	begin_world();
	coll = new_group();
	send_part(coll, coll->next + TEAM_OPS_MAX - 1, 0);
	await_what_was_sent();
	cr_expect_eq(load_of(coll, &coll->account[0].early).count, 1);
	cr_expect_eq(coll->failed, XR_OK);
	send_part(coll, coll->next + TEAM_OPS_MAX, 0);
	expect_refused(coll, "rank 0 is 4097 operations ahead of rank 0");

	/* A second stage needs what we have sent in the first. */
	coll = new_group();
	send_part(coll, coll->next + 1, 1);
	expect_refused(coll, "rank 0 is 2 operations ahead of rank 0");

	/* The same again and again. */
	coll = new_group();
	for (uint32_t i = 0; i <= TEAM_OPS_MAX; i++)
		send_part(coll, coll->next + 7, 0);
	expect_refused(coll, "rank 0 is 8 operations ahead of rank 0");
	end_world();
}

/* --- memory that was given -------------------------------------------------------- */

static struct xr_future *watched;
static unsigned ended_before, loans; /* when memory was given back */

void __real_parcel_end(struct parcel *parcel, struct peer *peer);
void __wrap_parcel_end(struct parcel *parcel, struct peer *peer);

void
__wrap_parcel_end(struct parcel *parcel, struct peer *peer)
{
	if (parcel != NULL && watched != NULL) {
		loans++;
		ended_before += xr_future_done(watched);
	}
	__real_parcel_end(parcel, peer);
}

static void
cancel_watched(struct xr_future *future)
{
	loans = ended_before = 0;
	watched = future;
	cr_expect_eq(xr_future_cancel(future), XR_OK);
	watched = NULL;
	cr_expect(xr_future_done(future));
	cr_expect_eq(loans, 1);
	cr_expect_eq(ended_before, 0);
	cr_expect_eq(end_of(future, NULL, &err), XR_E_CANCELLED);
}

static enum xr_status
stand(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	(void)ctx;
	gate_pass();
	return xr_reply_bytes(call, NULL, 0);
}

Test(coll_bound, memory_is_given_back_before_a_cancelled_call_ends)
{
	static char data[PARCEL_MIN + 1];
	const struct xr_func func = { .size = sizeof(func),
		.name = "stand",
		.raw = stand };
	struct xr_raw_call call = { .size = sizeof(call),
		.data = data,
		.len = sizeof(data),
		.timeout = XR_SECONDS(50) };
	struct xr_future *future = NULL;

	offer(&func, 1);
	begin_world();
	cr_assert_eq(xr_peer_find("self", 0, &call.to, &err), XR_OK);
	cr_assert_eq(xr_method_find("stand", &call.method, &err), XR_OK);
	cr_assert_eq(xr_call_async(&call, &future, &err), XR_OK);
	gate_await(1);
	cancel_watched(future);
	gate_open();
	end_world();
}

Test(coll_bound, memory_is_given_back_before_a_cancelled_message_ends)
{
	static int32_t x[PARCEL_MIN];
	struct xr_future *future = NULL;
	struct xr_coll *coll;

	begin_world();
	coll = new_group();
	cr_assert_eq(xr_coll_isend(coll, OP(x, PARCEL_MIN), &future, &err),
		XR_OK, "%s", err.text);
	await_what_was_sent();
	cr_expect_eq(kept(coll), 1);
	cancel_watched(future);
	/* The receiver hears of it. */
	await_what_was_sent();
	cr_expect_eq(kept(coll), 0);
	cr_expect_eq(load_of(coll, &coll->account[0].out).count, 0);
	xr_coll_free(coll);
	end_world();
}

Test(coll_bound, a_message_that_is_late_is_taken_back_at_its_receiver)
{
	static int32_t x[PARCEL_MIN];
	struct xr_coll_op op = *OP(x, PARCEL_MIN);
	struct xr_future *future = NULL;
	struct xr_coll *coll;

	op.timeout = XR_SECONDS(0.01);
	begin_world();
	coll = new_group();
	cr_assert_eq(xr_coll_isend(coll, &op, &future, &err), XR_OK);
	cr_expect_eq(end_of(future, NULL, &err), XR_E_TIMEOUT);
	await_what_was_sent();
	cr_expect_eq(kept(coll), 0);
	xr_coll_free(coll);
	end_world();
}

static void
look_who_waits(struct xr_future *future, void *ctx)
{
	struct xr_coll *coll = ctx;

	(void)future;
	pthread_mutex_lock(&coll->lock);
	cr_expect(TAILQ_EMPTY(&coll->awaited), "it may be written to yet");
	pthread_mutex_unlock(&coll->lock);
}

Test(coll_bound, nobody_writes_to_the_memory_of_a_cancelled_receiver)
{
	struct xr_future *future = NULL;
	struct xr_coll *coll;
	int32_t x;

	begin_world();
	coll = new_group();
	cr_assert_eq(xr_coll_irecv(coll, OP(&x, 1), &future, &err), XR_OK);
	cr_assert_eq(xr_future_on_done(future, look_who_waits, coll), XR_OK);
	cr_expect_eq(xr_future_cancel(future), XR_OK);
	cr_expect_eq(xr_future_cancel(future), XR_E_STATE);
	cr_expect_eq(end_of(future, NULL, &err), XR_E_CANCELLED);
	xr_coll_free(coll);
	end_world();
}

/* --- all groups ------------------------------------------------------------------- */

static struct xr_coll *seen[8];
static unsigned seen_count;

/* And close that and the next. */
static void
see(struct xr_coll *team, void *ctx)
{
	struct xr_coll **made = ctx;

	seen[seen_count++] = team;
	if (team != made[2])
		return;
	xr_coll_close(made[2]);
	xr_coll_close(made[1]);
}

Test(coll_bound, all_groups_are_told_without_memory)
{
	struct xr_coll *made[4];

	begin_world();
	for (int i = 0; i < 4; i++)
		made[i] = new_group();
	until_short = 1;
	was_short = false;
	team_each(see, made);
	until_short = 0;
	cr_expect_eq(seen_count, 3);
	cr_expect(seen[0] == made[3] && seen[1] == made[2] &&
		seen[2] == made[0]);
	for (int i = 0; i < 4; i++)
		xr_coll_free(made[i]);
	end_world();
}
