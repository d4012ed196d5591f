/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_post.c - messages of a group whose other members the test plays, and the
 * arguments of its operations. */
#include <sched.h>

#include <xrun/coll.h>
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "tests/unit/lock_watch.h"
#include "tests/unit/wire_rig.h"
#include "wire/value/node.h"
#include "worker/coll/letter.h"
#include "worker/coll/mail.h"
#include "worker/coll/post.h"
#include "worker/coll/team.h"
#include "worker/rpc/values.h"

#define HOUR XR_SECONDS(3600)

static struct xr_coll *group; /* of this process and the three peers */
static struct xr_error err;

static struct xr_value *refusal; /* the last one; a reference */

/* The linker gives the library these for its own (--wrap). */
struct xr_coll *__wrap_team_find(uint64_t id);
enum xr_status __real_values_pack(struct xr_value *value, struct peer *to,
	struct values_out *out, struct xr_error *why);
enum xr_status __wrap_values_pack(struct xr_value *value, struct peer *to,
	struct values_out *out, struct xr_error *why);

struct xr_coll *
__wrap_team_find(uint64_t id)
{
	return group != NULL && group->id == id ? team_ref(group) : NULL;
}

enum xr_status
__wrap_values_pack(struct xr_value *value, struct peer *to,
	struct values_out *out, struct xr_error *why)
{
	xr_value_unref(refusal);
	refusal = xr_value_ref(value);
	return __real_values_pack(value, to, out, why);
}

static void
begin(void)
{
	wire_begin();
	cr_assert_eq(team_of_all(4, &group, &err), XR_OK, "%s", err.text);
}

static void
end(void)
{
	team_fail(group, XR_E_CLOSED, "the group was closed", false);
	team_unref(group);
	group = NULL;
	wire_end();
	xr_value_unref(refusal);
	refusal = NULL;
}

TestSuite(coll_post, .timeout = 60, .init = begin, .fini = end);

/* --- what comes ---------------------------------------------------------------------- */

struct letter {
	struct label label;
	int32_t data[4];
};

static struct letter
letter(uint32_t tag, uint64_t count)
{
	struct letter l = { .label = { .team = group->id,
				    .tag = tag,
				    .dtype = XR_DT_I32,
				    .count = count } };

	for (int32_t i = 0; i < 4; i++)
		l.data[i] = (int32_t)(10 * tag) + i;
	return l;
}

static void
come_with(uint32_t from, uint64_t corr, const struct letter *l, size_t len)
{
	const struct xr_record record = { .kind = MESSAGE_GUEST,
		.flags = MAIL_POST,
		.corr = corr };
	const struct xr_body body = { .data = l, .len = len };

	played.host.deliver(played.host.ctx, wire_peer[from], &record, &body);
}

static void
come(uint32_t from, uint64_t corr, struct letter l)
{
	come_with(from, corr, &l, sizeof(l.label) + 4 * l.label.count);
}

/* taken() - true if question @corr of peer @to was answered with success. */
static bool
taken(uint32_t to, uint64_t corr)
{
	const struct wire_message *m = wire_sent(MESSAGE_REPLY, to);

	return m != NULL && m->record.corr == corr && m->len == 0;
}

static int32_t buffer[4];

static struct xr_coll_op
two_of(int64_t rank, uint32_t tag)
{
	return (struct xr_coll_op){ .size = sizeof(struct xr_coll_op),
		.dtype = XR_DT_I32,
		.data = buffer,
		.count = 2,
		.tag = tag,
		.rank = rank,
		.timeout = HOUR };
}

static struct xr_future *
await(int64_t rank, uint32_t tag)
{
	struct xr_coll_op op = two_of(rank, tag);
	struct xr_future *f = NULL;

	cr_assert_eq(xr_coll_irecv(group, &op, &f, &err), XR_OK, "%s",
		err.text);
	return f;
}

/* The rank that it came from; -1: there is none. */
static int64_t
came_from(struct xr_future *f)
{
	struct xr_value *v = NULL;
	int64_t rank = -1;

	if (xr_future_wait(f, 0, &v, &err) == XR_OK)
		xr_value_get_i64(v, &rank);
	xr_value_unref(v);
	xr_future_unref(f);
	return rank;
}

Test(coll_post, what_is_no_message_is_refused)
{
	struct letter l = letter(1, 2);

	come_with(1, 1, &l, sizeof(l.label) - 1);
	cr_expect(wire_failed(1, 1, XR_E_PROTO, "that is no message"));
	come_with(1, 2, &l, sizeof(l.label) + 7);
	cr_expect(wire_failed(1, 2, XR_E_PROTO, "that is no message"));
	come_with(1, 3, &l, sizeof(l.label) + 9);
	cr_expect(wire_failed(1, 3, XR_E_PROTO, "that is no message"));
	l.label.dtype = 0;
	come_with(1, 4, &l, sizeof(l.label) + 8);
	cr_expect(wire_failed(1, 4, XR_E_PROTO, "that is no message"));
	/* Times four it would be eight. */
	l = letter(1, (UINT64_C(1) << 62) + 2);
	come_with(1, 5, &l, sizeof(l.label) + 8);
	cr_expect(wire_failed(1, 5, XR_E_PROTO, "that is no message"));
	l = letter(1, 2);
	l.label.team++;
	come(1, 6, l);
	cr_expect(wire_failed(1, 6, XR_E_CLOSED,
		"the receiver's group was closed"));
	cr_expect(TAILQ_EMPTY(&group->sent));
	cr_expect_eq(wire_left(), 0);
	cr_assert_not_null(refusal);
	cr_expect_eq(atomic_load(&refusal->refs), 1, "the last is the test's");
}

Test(coll_post, this_process_sends_to_itself)
{
	struct xr_future *own = await(0, 1);

	come(0, 1, letter(1, 2));
	cr_expect_eq(came_from(own), 0);
	cr_expect_eq(buffer[1], 11);
	cr_expect_eq(wire_left(), 0);
}

Test(coll_post, a_message_of_no_member_is_refused)
{
	struct xr_coll *whole = group;

	cr_assert_eq(team_of_all(2, &group, &err), XR_OK);
	come(3, 1, letter(1, 2));
	cr_expect(wire_failed(3, 1, XR_E_CLOSED, "group was closed"));
	come(1, 2, letter(1, 2));
	cr_expect_eq(wire_left(), 0);
	post_cancelled(group, wire_peer[1], 2);
	team_unref(group);
	group = whole;
}

/* By its tag, and by who sent it. */
Test(coll_post, a_message_is_for_who_awaits_it)
{
	struct xr_future *two = await(2, 7), *other = await(2, 8),
			 *any = await(XR_COLL_ANY, 7);

	come(2, 1, letter(7, 2));
	cr_expect(taken(2, 1));
	cr_expect_eq(came_from(two), 2);
	cr_expect_eq(buffer[0], 70);
	cr_expect_eq(buffer[1], 71);
	cr_expect(!xr_future_done(any));
	come(1, 2, letter(8, 2));
	cr_expect_eq(wire_left(), 0, "it is kept");
	come(3, 3, letter(7, 2));
	cr_expect(taken(3, 3));
	cr_expect_eq(came_from(any), 3);
	cr_expect(!xr_future_done(other));
	/* What came before it was awaited. */
	any = await(XR_COLL_ANY, 8);
	cr_expect(taken(1, 2));
	cr_expect_eq(came_from(any), 1);
	come(2, 4, letter(8, 2));
	cr_expect(taken(2, 4));
	cr_expect_eq(came_from(other), 2);
	cr_expect_eq(group->account[1].kept.count, 0);
}

Test(coll_post, a_message_of_another_shape_is_a_conflict)
{
	struct xr_future *f = await(1, 1);
	struct letter l = letter(1, 3);

	buffer[0] = buffer[2] = -1;
	come(1, 1, l);
	cr_expect(wire_failed(1, 1, XR_E_CONFLICT,
		"rank 1 sends 3 i32, and rank 0 awaits 2 i32"));
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CONFLICT);
	xr_future_unref(f);
	f = await(1, 1);
	l = letter(1, 2);
	l.label.dtype = XR_DT_F32;
	come(1, 2, l);
	cr_expect(wire_failed(1, 2, XR_E_CONFLICT,
		"rank 1 sends 2 f32, and rank 0 awaits 2 i32"));
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CONFLICT);
	xr_future_unref(f);
	cr_expect_eq(buffer[0], -1, "nothing is written");
	cr_expect_eq(buffer[2], -1);
}

Test(coll_post, who_waits_hears_from_whom_it_is)
{
	struct xr_coll_op op = two_of(XR_COLL_ANY, 5);
	int64_t from = -1;

	come(3, 1, letter(5, 3));
	cr_expect_eq(xr_coll_recv(group, &op, &from, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text,
		"rank 3 sends 3 i32, and rank 0 awaits 2 i32");
	cr_expect_eq(from, -1);
	cr_expect(wire_failed(3, 1, XR_E_CONFLICT, err.text));
	come(3, 2, letter(5, 2));
	cr_expect_eq(xr_coll_recv(group, &op, &from, &err), XR_OK);
	cr_expect_eq(from, 3);
	cr_expect_eq(buffer[1], 51);
	cr_expect(taken(3, 2));
}

Test(coll_post, a_message_can_be_one_byte)
{
	struct xr_coll_op op = two_of(1, 1);
	struct letter l = letter(1, 1);
	struct xr_future *f = NULL;

	op.dtype = l.label.dtype = XR_DT_I8;
	op.count = 1;
	cr_assert_eq(xr_coll_irecv(group, &op, &f, &err), XR_OK);
	buffer[0] = -1;
	come_with(1, 1, &l, sizeof(l.label) + 1);
	cr_expect(taken(1, 1));
	cr_expect_eq(came_from(f), 1);
	cr_expect_eq(memcmp(buffer, "\012\377\377\377", 4), 0);
}

/* --- the end of a wait ------------------------------------------------------------------ */

Test(coll_post, a_receive_ends_with_its_time)
{
	struct xr_coll_op never = two_of(1, 3), soon = two_of(1, 4);
	int64_t now = clock_now(), next;
	struct xr_future *one = await(1, 1), *any = await(XR_COLL_ANY, 2),
			 *f = NULL;

	never.timeout = XR_TIMEOUT_NEVER;
	cr_assert_eq(xr_coll_irecv(group, &never, &f, &err), XR_OK);
	next = post_expire(group, now);
	cr_expect(next >= now + HOUR && next < now + 2 * HOUR);
	cr_expect(!xr_future_done(one));
	cr_expect_eq(post_expire(group, next - 1), next);
	cr_expect(!xr_future_done(one));
	post_expire(group, next);
	cr_expect(xr_future_done(one), "the time that it has is over");
	cr_expect_eq(post_expire(group, now + 2 * HOUR), INT64_MAX);
	cr_expect_eq(xr_future_wait(one, 0, NULL, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"no message with tag 1 of rank 1 came in time");
	cr_expect_eq(xr_future_wait(any, 0, NULL, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "no message with tag 2 came in time");
	cr_expect(!xr_future_done(f));
	xr_future_unref(one);
	xr_future_unref(any);
	/* Who waits looks after it himself. */
	soon.timeout = 1;
	cr_expect_eq(xr_coll_recv(group, &soon, NULL, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"no message with tag 4 of rank 1 came in time");
	soon.rank = XR_COLL_ANY;
	cr_expect_eq(xr_coll_recv(group, &soon, NULL, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "no message with tag 4 came in time");
	/* It is no message's any more. */
	come(1, 1, letter(4, 2));
	cr_expect_eq(wire_left(), 0);
	come(1, 2, letter(3, 2));
	cr_expect_eq(came_from(f), 1);
}

static enum xr_status blocked_status;

static void *
receive_blocked(void *arg)
{
	struct xr_error why = { 0 };

	blocked_status = xr_coll_recv(group, arg, NULL, &why);
	return NULL;
}

static bool
anyone_awaits(void)
{
	bool any;

	pthread_mutex_lock(&group->lock);
	any = !TAILQ_EMPTY(&group->awaited);
	pthread_mutex_unlock(&group->lock);
	return any;
}

/* Its own thread looks after its deadline, which the agent does not wait for either. */
Test(coll_post, a_receive_that_a_thread_waits_for_is_not_ended_by_the_agent)
{
	struct xr_coll_op op = two_of(1, 1);
	int64_t now = clock_now();
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, receive_blocked, &op), 0);
	while (!anyone_awaits())
		sched_yield();
	cr_expect_eq(post_expire(group, now), INT64_MAX);
	cr_expect_eq(post_expire(group, now + 2 * HOUR), INT64_MAX);
	cr_expect(anyone_awaits());
	come(1, 1, letter(1, 2));
	pthread_join(thread, NULL);
	cr_expect_eq(blocked_status, XR_OK);
	cr_expect(taken(1, 1));
	cr_expect_eq(buffer[0], 10);
}

Test(coll_post, a_cancelled_receive_takes_nothing)
{
	struct xr_future *f = await(1, 1);

	xr_future_cancel(f);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CANCELLED);
	xr_future_unref(f);
	buffer[0] = -1;
	come(1, 1, letter(1, 2));
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(buffer[0], -1);
	/* Nor is a message whose sender has given it up. */
	come(1, 2, letter(1, 2));
	cr_expect_eq(group->account[1].kept.count, 2);
	post_cancelled(group, wire_peer[2], 1);
	post_cancelled(group, wire_peer[1], 9);
	cr_expect_eq(group->account[1].kept.count, 2);
	post_cancelled(group, wire_peer[1], 1);
	cr_expect_eq(group->account[1].kept.count, 1);
	cr_expect_eq(came_from(await(1, 1)), 1);
	cr_expect(taken(1, 2));
}

Test(coll_post, a_failed_group_ends_all)
{
	struct xr_future *f = await(1, 1);
	struct xr_coll_op op = two_of(1, 1);

	come(2, 1, letter(2, 2));
	team_fail(group, XR_E_CONFLICT, "on purpose", false);
	post_fail_all(group);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "on purpose");
	xr_future_unref(f);
	cr_expect(wire_failed(2, 1, XR_E_CONFLICT, "on purpose"));
	come(2, 2, letter(2, 2));
	cr_expect(wire_failed(2, 2, XR_E_CONFLICT, "on purpose"));
	cr_expect_eq(xr_coll_recv(group, &op, NULL, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "on purpose");
	cr_expect_eq(xr_coll_irecv(group, &op, &f, &err), XR_OK);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CONFLICT);
	xr_future_unref(f);
}

/* Of each member: first what counts as sent, then those that wait for room. */
Test(coll_post, what_a_failed_group_has_not_sent_ends_with_it)
{
	struct load *out[] = { &group->account[1].out, &group->account[3].out };
	struct xr_future *f[3];

	for (uint32_t i = 0; i < 2; i++)
		load_add(out[i], LETTER_BYTES);
	for (uint32_t i = 0; i < 3; i++) {
		struct xr_coll_op op = two_of(i < 2 ? 1 : 3, 1);

		cr_assert_eq(xr_coll_isend(group, &op, &f[i], &err), XR_OK,
			"%s", err.text);
	}
	team_fail(group, XR_E_CONFLICT, "on purpose", false);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(xr_future_wait(f[i], 0, NULL, &err),
			XR_E_CONFLICT);
		cr_expect_str_eq(err.text, "on purpose");
		xr_future_unref(f[i]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		cr_expect_eq(out[i]->count, 1);
		cr_expect_eq(out[i]->bytes, LETTER_BYTES);
		load_drop(out[i], LETTER_BYTES);
	}
	cr_expect(TAILQ_EMPTY(&group->account[1].waiting));
	cr_expect(TAILQ_EMPTY(&group->account[3].waiting));
	cr_expect_eq(wire_left(), 0);
}

/* --- no memory --------------------------------------------------------------------------- */

Test(coll_post, a_message_without_memory_is_refused)
{
	struct letter l = letter(1, 2);
	unsigned at;

	for (at = 1; at < 10; at++) {
		until_short = at;
		come(1, at, l);
		if (until_short > 0)
			break;
		cr_expect(wire_failed(1, at, XR_E_NOMEM, "out of memory"), "%u",
			at);
		cr_expect_eq(group->account[1].kept.count, 0);
	}
	until_short = 0;
	cr_expect_gt(at, 2);
	cr_expect_eq(group->account[1].kept.count, 1);
	cr_expect_eq(came_from(await(1, 1)), 1);
}

Test(coll_post, a_receive_without_memory_does_not_begin)
{
	struct xr_coll_op op = two_of(1, 1);
	enum xr_status status = XR_E_NOMEM;
	struct xr_future *f = NULL;
	unsigned at = 0;

	/* What is made once is made now. */
	cr_expect_eq(xr_coll_recv(group, NULL, NULL, &err), XR_E_INVAL);
	until_short = 1;
	cr_expect_eq(xr_coll_recv(group, &op, NULL, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	while (status != XR_OK && at < 10) {
		until_short = ++at;
		status = xr_coll_irecv(group, &op, &f, &err);
		until_short = 0;
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		cr_expect(status == XR_OK || TAILQ_EMPTY(&group->awaited));
	}
	cr_expect_eq(at, 3, "%u", at);
	come(1, 1, letter(1, 2));
	cr_expect_eq(came_from(f), 1);
}

/* --- arguments ------------------------------------------------------------------------------ */

Test(coll_post, an_operation_needs_its_data)
{
	const size_t most = XR_VALUE_BYTES_MAX / 4;
	void *list[4] = { buffer, buffer, NULL, buffer };
	const struct {
		uint32_t size, dtype;
		void *data;
		size_t count;
		int64_t rank, timeout;
		const char *text;
	} row[] = {
		{ -1, XR_DT_I32, buffer, 1, 1, 0, "struct xr_coll_op: its" },
		{ 0, 0, buffer, 1, 1, 0, "dtype 0: there is none" },
		{ 0, XR_DT_I32, buffer, most + 1, 1, 0, "at most 1 TiB" },
		{ 0, XR_DT_I32, NULL, 1, 1, 0, "data is NULL, and count 1" },
		{ 0, XR_DT_I32, buffer, 1, 4, 0,
			"rank 4 is no member of the group" },
		{ 0, XR_DT_I32, buffer, 1, 1, XR_TIMEOUT_DEFAULT - 1,
			"a timeout of" },
	};
	struct xr_future *f = NULL;
	struct xr_coll_op op;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		op = (struct xr_coll_op){
			.size = (uint32_t)sizeof(op) + row[i].size,
			.dtype = row[i].dtype,
			.data = row[i].data,
			.count = row[i].count,
			.rank = row[i].rank,
			.timeout = row[i].timeout,
		};
		cr_expect_eq(xr_coll_bcast(group, &op, &err), XR_E_INVAL);
		cr_expect_not_null(strstr(err.text, row[i].text), "row %zu: %s",
			i, err.text);
		err.text[0] = '\0';
		cr_expect_eq(xr_coll_irecv(group, &op, &f, &err), XR_E_INVAL);
		cr_expect_not_null(strstr(err.text, row[i].text), "row %zu: %s",
			i, err.text);
		cr_expect_eq(xr_coll_isend(group, &op, &f, &err), XR_E_INVAL);
		cr_expect_eq(xr_coll_send(group, &op, &err), XR_E_INVAL);
		cr_expect_eq(xr_coll_ibcast(group, &op, &f, &err), XR_E_INVAL);
		cr_expect_eq(xr_coll_recv(group, &op, NULL, &err), XR_E_INVAL);
	}
	cr_expect_eq(xr_coll_bcast(group, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "struct xr_coll_op: its size is 0");
	cr_expect_eq(xr_coll_send(group, NULL, &err), XR_E_INVAL);
	op = two_of(1, 1);
	op.list = list;
	cr_expect_eq(xr_coll_allgather(group, &op, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "all_gather: list[2] is NULL");
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(xr_coll_size(group), 4);
	cr_expect_eq(xr_coll_index(group), 0);
}

/* Of nothing there need not be a place. */
Test(coll_post, an_empty_message_needs_no_data)
{
	struct xr_coll_op op = two_of(1, 1);
	struct xr_future *f = NULL;

	op.data = NULL;
	op.count = 0;
	cr_assert_eq(xr_coll_irecv(group, &op, &f, &err), XR_OK);
	come(1, 1, letter(1, 0));
	cr_expect(taken(1, 1));
	cr_expect_eq(came_from(f), 1);
}

Test(coll_post, nothing_is_done_without_an_agent)
{
	struct xr_coll_op op = two_of(1, 1);
	struct xr_future *f = NULL;

	wire_end();
	cr_expect_eq(xr_coll_barrier(group, &op, &err), XR_E_STATE);
	cr_expect_eq(xr_coll_ibarrier(group, &op, &f, &err), XR_E_STATE);
	cr_expect_eq(xr_coll_send(group, &op, &err), XR_E_STATE);
	cr_expect_eq(xr_coll_isend(group, &op, &f, &err), XR_E_STATE);
	cr_expect_eq(xr_coll_recv(group, &op, NULL, &err), XR_E_STATE);
	cr_expect_eq(xr_coll_irecv(group, &op, &f, &err), XR_E_STATE);
	wire_begin();
}
