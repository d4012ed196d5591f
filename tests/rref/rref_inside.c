/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref_inside.c - scenes of rref.c that are in the way of messages: some are not
 * sent at first, some come late, twice, or never.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/rref/rref.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/rref_inner.h"
#include "worker/rpc/values.h"

static void
await_things(uint32_t rank, int64_t want)
{
	time_t begin = time(NULL);
	int64_t got;

	do {
		got = as_int(call(rank, "things", NULL));
	} while (got != want && time(NULL) - begin < 20);
	CHECK(got == want);
}

/* --- the first sends fail ----------------------------------------------------------- */

#define FAILS 3 /* of each message */
#define SEEN  4096

static struct {
	pthread_mutex_t lock;
	struct {
		enum message_kind kind;
		const struct peer *to;
		struct rref_wire wire;
		int fails;
	} seen[SEEN];
	int count;
	_Atomic uint64_t failed;
} failing = { .lock = PTHREAD_MUTEX_INITIALIZER };

static enum xr_status
fail_first(enum message_kind kind, const struct peer *to,
	const struct rref_wire *wire)
{
	enum xr_status status = XR_OK;
	int i = 0;

	pthread_mutex_lock(&failing.lock);
	while (i < failing.count &&
		(failing.seen[i].kind != kind || failing.seen[i].to != to ||
			memcmp(&failing.seen[i].wire, wire, sizeof(*wire)) !=
				0))
		i++;
	if (i == failing.count && i < SEEN) {
		failing.seen[i].kind = kind;
		failing.seen[i].to = to;
		failing.seen[i].wire = *wire;
		failing.count++;
	}
	if (i < SEEN && failing.seen[i].fails++ < FAILS) {
		atomic_fetch_add(&failing.failed, 1);
		status = XR_E_INJECTED;
	}
	pthread_mutex_unlock(&failing.lock);
	return status;
}

static void
shared_though_sends_fail(void)
{
	static const struct rref_seam seam = { .send = fail_first };

	rref_seam = &seam;
	barrier();
	find_scene("share")();
	barrier();
	CHECK(failing.count > 0 && failing.count < SEEN);
	CHECK(atomic_load(&failing.failed) == (uint64_t)failing.count * FAILS);
	rref_seam = NULL;
}

/* --- in any order, and twice --------------------------------------------------------- */

#define HELD 64

struct held_one {
	enum message_kind kind;
	struct peer *from;
	struct rref_wire wire;
	int times; /* it is to come */
};

static struct {
	pthread_mutex_t lock;
	struct held_one one[HELD];
	int count;
	unsigned random;
	bool ends;
	_Atomic uint64_t late;
	pthread_cond_t changed;
} mixing = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER };

/* One of them, in whatever order, and it stays for a second time. */
static bool
take_any(struct held_one *out)
{
	int i;

	if (mixing.count == 0)
		return false;
	i = rand_r(&mixing.random) % mixing.count;
	*out = mixing.one[i];
	if (--mixing.one[i].times == 0)
		mixing.one[i] = mixing.one[--mixing.count];
	return true;
}

static bool
mix(enum message_kind kind, struct peer *from, const struct rref_wire *wire)
{
	bool room;

	pthread_mutex_lock(&mixing.lock);
	room = mixing.count < HELD;
	if (room)
		mixing.one[mixing.count++] =
			(struct held_one){ kind, from, *wire, 2 };
	pthread_cond_signal(&mixing.changed);
	pthread_mutex_unlock(&mixing.lock);
	if (!room)
		rref_deliver(kind, from, wire);
	return false;
}

static void *
deliver_mixed(void *unused)
{
	struct held_one one;
	bool any, ends;

	do {
		pthread_mutex_lock(&mixing.lock);
		if (mixing.count == 0 && !mixing.ends)
			pthread_cond_wait(&mixing.changed, &mixing.lock);
		any = take_any(&one);
		ends = mixing.ends;
		pthread_mutex_unlock(&mixing.lock);
		if (any && agent_enter(NULL) == XR_OK) {
			rref_deliver(one.kind, one.from, &one.wire);
			atomic_fetch_add(&mixing.late, 1);
			agent_leave();
		}
	} while (any || !ends);
	return NULL;
}

static void
shared_in_any_order(void)
{
	static const struct rref_seam seam = { .arrive = mix };
	pthread_t thread;

	mixing.random = 1 + xr_job_rank();
	CHECK(pthread_create(&thread, NULL, deliver_mixed, NULL) == 0);
	rref_seam = &seam;
	barrier();
	for (int i = 0; i < 10; i++)
		find_scene("share")();
	find_scene("parent-first")();
	barrier();
	pthread_mutex_lock(&mixing.lock);
	mixing.ends = true;
	pthread_cond_signal(&mixing.changed);
	pthread_mutex_unlock(&mixing.lock);
	pthread_join(thread, NULL);
	CHECK(atomic_load(&mixing.late) > 0);
	barrier();
	rref_seam = NULL;
	await_empty();
}

/* --- AC-Q11: the owner has not heard of the parent yet -------------------------------- */

static _Atomic bool holds_back;

static enum xr_status
hold_forks_back(enum message_kind kind, const struct peer *to,
	const struct rref_wire *wire)
{
	return kind == MESSAGE_RREF_FORK_REQUEST && atomic_load(&holds_back) ?
		XR_E_INJECTED :
		XR_OK;
}

/* The value is on 0, made by 1, which gives it to 2; 2 passes it on to 3, which
 * releases it, before 0 has heard of 2. */
static void
child_ends_before_its_parent_is_known(void)
{
	static const struct rref_seam seam = { .send = hold_forks_back };
	struct xr_rref *r;
	struct xr_value *v;

	CHECK(xr_job_size() >= 4);
	if (xr_job_rank() != 2)
		return;
	r = remote(0, "thing", list(of_int(9), NULL, NULL));
	xr_value_unref(call(1, "keep", list(of_rref(r), NULL, NULL)));
	xr_rref_unref(r);
	await_table(2, USERS, 0);
	rref_seam = &seam;
	atomic_store(&holds_back, true);
	v = call(1, "give", NULL);
	r = xr_rref_ref(xr_value_rref(v));
	xr_value_unref(v);
	CHECK(!xr_rref_confirmed(r));
	xr_value_unref(call(3, "keep", list(of_rref(r), NULL, NULL)));
	xr_value_unref(call(3, "drop", NULL));
	xr_value_unref(call(1, "drop", NULL));
	await_table(3, USERS, 0);
	/* That of 1, which keeps it until 2 is known. */
	await_table(0, FORKS, 1);
	await_things(0, 1);
	CHECK(!xr_rref_confirmed(r));
	atomic_store(&holds_back, false);
	await_table(1, USERS, 0);
	CHECK(xr_rref_confirmed(r));
	await_things(0, 1);
	xr_rref_unref(r);
	await_things(0, 0);
	await_empty();
	rref_seam = NULL;
}

/* --- AC-Q13, D-Q7: the call that was to make it never comes ---------------------------- */

static bool
never(const struct peer *from)
{
	return false;
}

static void
the_call_never_comes(void)
{
	static const struct rref_seam seam = { .begin = never };
	struct xr_value *value = NULL;
	struct xr_future *waits = NULL, *created = NULL;
	struct xr_rref *r = NULL;

	if (xr_job_rank() == 1)
		rref_seam = &seam;
	barrier();
	if (xr_job_rank() == 0) {
		EXPECT(try_remote(1, "thing", list(of_int(1), NULL, NULL),
			       XR_SECONDS(0.2), &r),
			XR_OK);
		EXPECT(xr_rref_created(r, &created), XR_OK);
		EXPECT(xr_rref_fetch_async(r, XR_TIMEOUT_NEVER, &waits,
			       &last_err),
			XR_OK);
		/* Of another, too, which has it as long as he likes. */
		xr_value_unref(call(2, "keep", list(of_rref(r), NULL, NULL)));
		EXPECT(xr_future_wait(created, XR_SECONDS(30), NULL, &last_err),
			XR_E_TIMEOUT);
		for (int i = 0; i < 2; i++)
			EXPECT(xr_rref_fetch(r, XR_TIMEOUT_NEVER, &value,
				       &last_err),
				XR_E_TIMEOUT);
		EXPECT(try_call(2, "value_of", list(of_rref(r), NULL, NULL),
			       &value),
			XR_E_TIMEOUT);
		/* D-Q5 */
		CHECK(xr_future_wait(waits, XR_SECONDS(30), NULL, &last_err) !=
			XR_OK);
		CHECK(xr_future_done(waits));
		EXPECT(try_call(2, "kept", NULL, &value), XR_E_CANCELLED);
		await_table(1, WANTED, 0);
		xr_value_unref(call(2, "drop", NULL));
		xr_future_unref(waits);
		xr_future_unref(created);
		xr_rref_unref(r);
		await_empty();
	}
	barrier();
	rref_seam = NULL;
}

/* --- D-Q7: a reference that nobody has any more, and never had --------------------------- */

/* Nobody makes it, and its maker lives: whoever asks is told in time, and nothing
 * is left at the owner. */
static void
nobody_makes_it(void)
{
	struct xr_value *value = NULL;
	struct xr_rref *r;
	struct rref_todo todo;
	struct rref_gid id, fork;
	struct peer *owner = NULL;

	if (xr_job_rank() != 0)
		return;
	EXPECT(agent_peer(NULL, 1, &owner, &last_err), XR_OK);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	id = rref_new_gid();
	fork = rref_new_gid();
	r = user_new(&id, &fork, owner, 1);
	r->state = USER_CONFIRMED;
	user_add(r);
	pthread_mutex_unlock(&rref.lock);
	EXPECT(xr_rref_fetch(r, XR_SECONDS(0.1), &value, &last_err),
		XR_E_TIMEOUT);
	await_table(1, WANTED, 0);
	xr_rref_unref(r);
	await_empty();
}

/* --- what is told while it is looked for ------------------------------------------------- */

static _Atomic bool tells;

/* Until somebody waits for all to be told. */
static enum xr_status
await_settling(enum message_kind kind, const struct peer *to,
	const struct rref_wire *wire)
{
	time_t begin = time(NULL);

	atomic_store(&tells, true);
	while (atomic_load(&rref.settled) == NULL && time(NULL) - begin < 20)
		sched_yield();
	return XR_OK;
}

/* Of a fork that nobody knows, which is none to its receiver either. */
static void *
tell_one(void *to)
{
	const struct rref_wire word = { .id_worker = 1, .fork_worker = 1 };

	rref_tell(MESSAGE_RREF_CHILD_ACCEPT, to, &word);
	return NULL;
}

static void
told_at_the_last_moment(void)
{
	static const struct rref_seam seam = { .send = await_settling };
	struct peer *other = NULL;
	pthread_t thread;

	if (xr_job_rank() == 0) {
		rref_seam = &seam;
		EXPECT(agent_peer(NULL, 1, &other, &last_err), XR_OK);
		CHECK(pthread_create(&thread, NULL, tell_one, other) == 0);
		while (!atomic_load(&tells))
			sched_yield();
		EXPECT(rref_settle(false, clock_now() + XR_SECONDS(10),
			       &last_err),
			XR_OK);
		pthread_join(thread, NULL);
		rref_seam = NULL;
	}
	barrier();
}

/* --- it comes when its owner is known to be lost ------------------------------------- */

static enum xr_status how = XR_OK;

static void
note_how(void *ctx, enum xr_status status, const char *why)
{
	CHECK(strstr(why, "worker 1") != NULL ||
		strstr(why, "worker1") != NULL);
	how = status;
}

/* As what was sent before that, and is read after it. */
static void
taken_from_the_dead(void)
{
	struct values_out out = { 0 };
	struct xr_body body = { 0 };
	struct refs_in *refs = NULL;
	struct xr_value *args, *value = NULL;
	struct xr_rref *r;
	uint8_t bytes[512];

	if (xr_job_rank() == 1)
		pause();
	r = remote(1, "add", list(of_int(1), of_int(2), NULL));
	CHECK(fetch_int(r) == 3);
	args = list(of_rref(r), NULL, NULL);
	EXPECT(values_pack(args, agent_self(), &out, &last_err), XR_OK);
	for (uint32_t i = 0; i < out.count; i++) {
		CHECK(body.len + out.parts[i].len <= sizeof(bytes));
		memcpy(bytes + body.len, out.parts[i].data, out.parts[i].len);
		body.len += out.parts[i].len;
	}
	body.data = bytes;
	EXPECT(try_call(1, "die", NULL, &value), XR_E_PEER_LOST);
	refs_out_undo(&out.refs);
	values_out_fini(&out);
	xr_value_unref(args);
	xr_rref_unref(r);
	await_table(0, USERS, 0);
	EXPECT(refs_take(&body, agent_self(), &refs, &last_err), XR_OK);
	CHECK(refs_await(refs, note_how, NULL));
	CHECK(how == XR_E_PEER_LOST);
	refs_free(refs);
	await_table(0, USERS, 0);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &last_err),
		XR_E_PEER_LOST);
	printf("it failed at once\n");
}

const struct scene inside_scenes[] = {
	{ "share-failing", shared_though_sends_fail },
	{ "share-mixed", shared_in_any_order },
	{ "child-first", child_ends_before_its_parent_is_known },
	{ "never-made", the_call_never_comes },
	{ "unknown", nobody_makes_it },
	{ "told-last", told_at_the_last_moment },
	{ "taken-dead", taken_from_the_dead },
	{ NULL, NULL },
};
