/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_letter.c - messages of a group that this process sends: what they are made
 * of, their order, and what is left of them. */
#include <sched.h>

#include <xrun/coll.h>
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "tests/unit/wire_rig.h"
#include "worker/coll/letter.h"
#include "worker/coll/mail.h"
#include "worker/coll/team.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/parcel.h"

#define HOUR XR_SECONDS(3600)

static struct xr_coll *group; /* of this process and the three peers */
static struct account *one;   /* of peer 1 */
static struct xr_error err;
static int32_t numbers[1024] = { 5, 6 };

/* --- what the library calls (--wrap) ------------------------------------------------ */

static struct question asked;  /* the last one */
static bool over_at_once;      /* the future fails before the letter is sent */
static struct parcel *parcel;  /* the last one, with a reference of the test */
static __thread int64_t due;   /* the last one of this thread; -1: none */
static _Atomic unsigned helds; /* that were given back */
static _Atomic bool alone = true; /* whoever sent was known to send */

struct asked *__real_ask_open(const struct question *q, ask_read_fn *read,
	struct xr_future **future);
struct asked *__wrap_ask_open(const struct question *q, ask_read_fn *read,
	struct xr_future **future);
enum xr_status __real_ask_wait(const struct question *q, struct ask_sync *a,
	struct xr_error *why);
enum xr_status __wrap_ask_wait(const struct question *q, struct ask_sync *a,
	struct xr_error *why);
enum xr_status __real_ask_send(struct asked *a, const struct question *q,
	struct xr_error *why);
enum xr_status __wrap_ask_send(struct asked *a, const struct question *q,
	struct xr_error *why);
struct parcel *__real_parcel_new(void (*release)(void *what), void *what);
struct parcel *__wrap_parcel_new(void (*release)(void *what), void *what);
void __real_lead_due(int64_t at);
void __wrap_lead_due(int64_t at);
void __real_held_unref(struct held *held);
void __wrap_held_unref(struct held *held);

struct asked *
__wrap_ask_open(const struct question *q, ask_read_fn *read,
	struct xr_future **future)
{
	struct asked *a = __real_ask_open(q, read, future);

	asked = *q;
	if (a != NULL && over_at_once)
		ask_fail(a, XR_E_CANCELLED, "over at once");
	return a;
}

enum xr_status
__wrap_ask_wait(const struct question *q, struct ask_sync *a,
	struct xr_error *why)
{
	asked = *q;
	return __real_ask_wait(q, a, why);
}

enum xr_status
__wrap_ask_send(struct asked *a, const struct question *q, struct xr_error *why)
{
	if (!one->sends)
		alone = false;
	return __real_ask_send(a, q, why);
}

struct parcel *
__wrap_parcel_new(void (*release)(void *what), void *what)
{
	parcel_unref(parcel);
	parcel = __real_parcel_new(release, what);
	return parcel != NULL ? parcel_ref(parcel) : NULL;
}

void
__wrap_lead_due(int64_t at)
{
	due = at;
	__real_lead_due(at);
}

void
__wrap_held_unref(struct held *held)
{
	if (held != NULL)
		helds++;
	__real_held_unref(held);
}

/* --- the group ----------------------------------------------------------------------- */

static void
begin(void)
{
	wire_begin();
	cr_assert_eq(team_of_all(4, &group, &err), XR_OK, "%s", err.text);
	one = &group->account[1];
	due = -1;
}

/* Of a letter; each test ends so. What fails after a test, in end(), is not its failure. */
static void
expect_nothing_left(void)
{
	cr_expect_eq(atomic_load(&group->refs), 1, "%u references",
		atomic_load(&group->refs));
	cr_expect(alone, "two could send");
	cr_expect(parcel == NULL || atomic_load(&parcel->refs) == 1);
}

static void
end(void)
{
	parcel_unref(parcel);
	team_unref(group);
	wire_end();
}

TestSuite(coll_letter, .timeout = 20, .init = begin, .fini = end);

static struct xr_coll_op
op_of(size_t count, uint32_t tag)
{
	return (struct xr_coll_op){ .size = sizeof(struct xr_coll_op),
		.dtype = XR_DT_I32,
		.data = numbers,
		.count = count,
		.tag = tag,
		.rank = 1,
		.timeout = HOUR };
}

static struct xr_future *
post(size_t count, uint32_t tag)
{
	struct xr_coll_op op = op_of(count, tag);
	struct xr_future *f = NULL;

	cr_assert_eq(letter_isend(group, &op, &f, &err), XR_OK, "%s", err.text);
	return f;
}

static enum xr_status
end_of(struct xr_future *f)
{
	struct xr_value *v = NULL;
	enum xr_status status = xr_future_wait(f, 0, &v, &err);

	cr_expect(status != XR_OK || xr_value_kind(v) == XR_NIL);
	xr_value_unref(v);
	xr_future_unref(f);
	return status;
}

/* Expects the letter with this tag to be sent next; returns the number of its request, from
 * 1, or 0 if another one was sent. */
static uint64_t
sent(size_t count, uint32_t tag)
{
	const struct wire_message *m = wire_sent(MESSAGE_GUEST, 1);
	const struct label want = { .team = group->id,
		.tag = tag,
		.dtype = XR_DT_I32,
		.count = count };

	if (m == NULL)
		return 0;
	cr_expect_eq(m->record.flags, MAIL_POST);
	cr_expect_eq(m->len, sizeof(want) + 4 * count);
	cr_expect_eq(memcmp(m->data, &want, sizeof(want)), 0);
	cr_expect_eq(memcmp(m->data + sizeof(want), numbers, 4 * count), 0);
	return m->record.corr + 1;
}

static void
receive(uint64_t corr)
{
	cr_expect_neq(corr, 0);
	wire_say(1, MESSAGE_REPLY, corr - 1, NULL, 0);
}

static void
expect_out(uint32_t count, uint64_t bytes)
{
	cr_expect_eq(one->out.count, count, "%u", one->out.count);
	cr_expect_eq(one->out.bytes, bytes, "%llu",
		(unsigned long long)one->out.bytes);
	cr_expect(!one->sends);
}

/* --- what it is made of -------------------------------------------------------------- */

Test(coll_letter, what_is_sent_has_a_label_and_the_data)
{
	int64_t before = clock_now();
	struct xr_future *f = post(2, 9), *empty;
	uint64_t corr = sent(2, 9);

	cr_expect_eq(asked.to, wire_peer[1]);
	cr_expect_eq(asked.count, 2);
	cr_expect(asked.apart && !asked.lent && asked.parcel == NULL);
	cr_expect(asked.timeout > 0 && asked.timeout <= HOUR);
	cr_expect_geq(due, before + HOUR);
	cr_expect_leq(due, clock_now() + HOUR);
	expect_out(1, 8);
	cr_expect(!xr_future_done(f));
	receive(corr);
	expect_out(0, 0);
	cr_expect_eq(end_of(f), XR_OK);
	empty = post(0, 10);
	cr_expect_eq(asked.count, 1);
	expect_out(1, 0);
	receive(sent(0, 10));
	expect_out(0, 0);
	cr_expect_eq(end_of(empty), XR_OK);
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}

Test(coll_letter, what_has_no_end_is_not_due)
{
	struct xr_coll_op op = op_of(1, 1);
	struct xr_future *f = NULL;

	op.timeout = XR_TIMEOUT_NEVER;
	cr_assert_eq(letter_isend(group, &op, &f, &err), XR_OK);
	cr_expect_eq(asked.timeout, INT64_MAX);
	cr_expect_eq(due, -1);
	receive(sent(1, 1));
	cr_expect_eq(end_of(f), XR_OK);
	expect_nothing_left();
}

Test(coll_letter, what_is_long_is_lent)
{
	struct xr_future *f = post(PARCEL_MIN / 4, 1);

	cr_expect(asked.parcel == NULL && !asked.lent);
	receive(sent(PARCEL_MIN / 4, 1));
	cr_expect_eq(end_of(f), XR_OK);
	f = post(PARCEL_MIN / 4 + 1, 2);
	cr_expect(asked.parcel != NULL && asked.parcel == parcel && asked.lent);
	receive(sent(PARCEL_MIN / 4 + 1, 2));
	cr_expect_eq(end_of(f), XR_OK);
	expect_nothing_left();
}

/* --- the order ----------------------------------------------------------------------- */

Test(coll_letter, so_many_are_out_and_the_others_wait_in_their_order)
{
	struct xr_future *f[3];
	uint64_t corr;

	one->out.count = LETTERS_MAX - 1;
	for (uint32_t i = 0; i < 3; i++)
		f[i] = post(1, i);
	corr = sent(1, 0);
	cr_expect_eq(wire_left(), 0);
	for (uint32_t i = 0; i < 3; i++) {
		expect_out(LETTERS_MAX, 4);
		cr_expect_eq(atomic_load(&group->refs), 4 - i, "of letters");
		receive(corr);
		cr_expect_eq(end_of(f[i]), XR_OK);
		corr = sent(1, i + 1);
		cr_expect_eq(corr != 0, i < 2);
	}
	expect_out(LETTERS_MAX - 1, 0);
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}

Test(coll_letter, so_many_bytes_are_out)
{
	struct xr_future *all, *more;
	uint64_t corr;

	one->out = (struct load){ 1, LETTER_BYTES - 8 };
	all = post(2, 1);
	more = post(1, 2);
	corr = sent(2, 1);
	cr_expect_eq(wire_left(), 0);
	expect_out(2, LETTER_BYTES);
	receive(corr);
	cr_expect_eq(end_of(all), XR_OK);
	receive(sent(1, 2));
	cr_expect_eq(end_of(more), XR_OK);
	one->out.bytes = LETTER_BYTES - 7;
	more = post(2, 3);
	cr_expect_eq(wire_left(), 0);
	xr_future_cancel(more);
	cr_expect_eq(end_of(more), XR_E_CANCELLED);
	expect_out(1, LETTER_BYTES - 7);
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}

Test(coll_letter, who_waits_can_be_cancelled)
{
	struct xr_future *first, *given_up, *last;
	uint64_t corr;

	one->out.count = LETTERS_MAX - 1;
	first = post(1, 1);
	given_up = post(2, 2);
	last = post(3, 3);
	corr = sent(1, 1);
	xr_future_cancel(given_up);
	cr_expect_eq(end_of(given_up), XR_E_CANCELLED);
	expect_out(LETTERS_MAX, 4);
	receive(corr);
	cr_expect_eq(end_of(first), XR_OK);
	receive(sent(3, 3));
	cr_expect_eq(end_of(last), XR_OK);
	expect_out(LETTERS_MAX - 1, 0);
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}

/* Also where there is room: nothing goes past what waits. */
Test(coll_letter, one_at_a_time_sends)
{
	struct xr_future *a, *b, *c;

	one->sends = true;
	a = post(1, 1);
	cr_expect_eq(wire_left(), 0);
	cr_expect(one->sends);
	one->sends = false;
	b = post(1, 2);
	c = post(1, 3);
	cr_expect_eq(wire_left(), 0);
	expect_out(0, 0);
	xr_future_cancel(b);
	cr_expect_eq(end_of(b), XR_E_CANCELLED);
	expect_out(2, 8);
	receive(sent(1, 1));
	receive(sent(1, 3));
	cr_expect_eq(end_of(a), XR_OK);
	cr_expect_eq(end_of(c), XR_OK);
	expect_out(0, 0);
	expect_nothing_left();
}

Test(coll_letter, what_is_over_before_it_is_sent_is_not_sent)
{
	struct xr_future *f;

	over_at_once = true;
	f = post(1, 1);
	cr_expect_eq(end_of(f), XR_E_CANCELLED);
	cr_expect_str_eq(err.text, "over at once");
	cr_expect(TAILQ_EMPTY(&one->waiting));
	expect_out(0, 0);
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}

/* --- failures ------------------------------------------------------------------------ */

Test(coll_letter, a_failed_group_sends_nothing)
{
	struct xr_coll_op op = op_of(1, 1), large = op_of(1024, 1);
	struct xr_future *f = NULL, *wait[2];
	uint64_t corr;

	one->out.count = LETTERS_MAX - 1;
	f = post(1, 1);
	wait[0] = post(1, 2);
	wait[1] = post(1, 3);
	corr = sent(1, 1);
	team_fail(group, XR_E_CONFLICT, "on purpose", false);
	letter_fail_all(group);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(end_of(wait[i]), XR_E_CONFLICT);
		cr_expect_str_eq(err.text, "on purpose");
	}
	cr_expect(TAILQ_EMPTY(&one->waiting));
	expect_out(LETTERS_MAX, 4);
	receive(corr);
	cr_expect_eq(end_of(f), XR_OK);
	expect_out(LETTERS_MAX - 1, 0);
	err = (struct xr_error){ 0 };
	cr_expect_eq(letter_isend(group, &op, &f, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "on purpose");
	err = (struct xr_error){ 0 };
	cr_expect_eq(letter_send(group, &large, &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "on purpose");
	expect_out(LETTERS_MAX - 1, 0);
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}

Test(coll_letter, without_memory_nothing_is_sent)
{
	struct xr_coll_op op = op_of(1, 1);
	enum xr_status status = XR_E_NOMEM;
	struct xr_future *f = NULL;
	unsigned at = 0;

	while (status != XR_OK && at < 10) {
		until_short = ++at;
		status = letter_isend(group, &op, &f, &err);
		until_short = 0;
		if (status == XR_OK)
			break;
		cr_expect_eq(status, XR_E_NOMEM);
		cr_expect_str_eq(err.text, "out of memory");
		cr_expect_eq(atomic_load(&group->refs), 1);
		cr_expect(TAILQ_EMPTY(&one->waiting));
	}
	cr_expect_gt(at, 2);
	receive(sent(1, 1));
	cr_expect_eq(end_of(f), XR_OK);
	cr_expect_eq(wire_left(), 0);
	/* What is long is copied. */
	op.count = 1024;
	until_short = 2;
	cr_assert_eq(letter_isend(group, &op, &f, &err), XR_OK);
	cr_expect(was_short && asked.parcel == NULL && !asked.lent);
	until_short = 0;
	receive(sent(1024, 1));
	cr_expect_eq(end_of(f), XR_OK);
	expect_nothing_left();
}

/* --- who waits ----------------------------------------------------------------------- */

static enum xr_status status_of;
static struct xr_error why_of;

static void *
send_blocked(void *arg)
{
	status_of = letter_send(group, arg, &why_of);
	return NULL;
}

static pthread_t
send_by_thread(struct xr_coll_op *op)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, send_blocked, op), 0);
	return thread;
}

static uint64_t
await_sent(size_t count, uint32_t tag)
{
	uint64_t corr;

	while ((corr = sent(count, tag)) == 0)
		sched_yield();
	return corr;
}

Test(coll_letter, who_waits_sends_at_once_where_there_is_room)
{
	struct xr_coll_op op = op_of(1024, 3);
	pthread_t thread = send_by_thread(&op);
	uint64_t corr = await_sent(1024, 3);

	cr_expect(asked.lent && asked.apart && asked.parcel == parcel);
	cr_expect_eq(one->out.count, 1);
	cr_expect_eq(one->out.bytes, 4096);
	/* What an answer brings is given back. */
	wire_say(1, MESSAGE_REPLY, corr - 1, "x", 1);
	pthread_join(thread, NULL);
	cr_expect_eq(status_of, XR_OK);
	cr_expect_eq(helds, 1);
	expect_out(0, 0);
	thread = send_by_thread(&op);
	wire_reply(1, MESSAGE_ERROR, await_sent(1024, 3) - 1,
		failure_new(XR_E_CONFLICT, "not so"));
	pthread_join(thread, NULL);
	cr_expect_eq(status_of, XR_E_CONFLICT);
	cr_expect_not_null(strstr(why_of.text, "not so"), "%s", why_of.text);
	expect_out(0, 0);
	expect_nothing_left();
}

static bool
anyone_waits(void)
{
	bool any;

	pthread_mutex_lock(&group->lock);
	any = !TAILQ_EMPTY(&one->waiting);
	pthread_mutex_unlock(&group->lock);
	return any;
}

Test(coll_letter, who_waits_behind_others_sends_in_turn)
{
	struct xr_coll_op op = op_of(1024, 2);
	struct xr_future *f;
	pthread_t thread;
	uint64_t corr;

	one->out.count = LETTERS_MAX - 1;
	f = post(1, 1);
	corr = sent(1, 1);
	thread = send_by_thread(&op);
	while (!anyone_waits())
		sched_yield();
	cr_expect_eq(wire_left(), 0);
	receive(corr);
	cr_expect_eq(end_of(f), XR_OK);
	wire_reply(1, MESSAGE_ERROR, await_sent(1024, 2) - 1,
		failure_new(XR_E_CONFLICT, "not so"));
	pthread_join(thread, NULL);
	cr_expect_eq(status_of, XR_E_CONFLICT);
	cr_expect_str_eq(why_of.text, "not so");
	expect_out(LETTERS_MAX - 1, 0);
	expect_nothing_left();
}

Test(coll_letter, a_short_function_may_not_wait)
{
	struct xr_coll_op op = op_of(1024, 2);

	lead_deliver_begin();
	for (unsigned i = 0; i < 2; i++) {
		one->out.count = i * LETTERS_MAX;
		err = (struct xr_error){ 0 };
		cr_expect_eq(letter_send(group, &op, &err), XR_E_STATE);
		cr_expect_str_eq(err.text,
			"a short function or callback may not wait");
		expect_out(i * LETTERS_MAX, 0);
		cr_expect(TAILQ_EMPTY(&one->waiting));
	}
	lead_deliver_end();
	cr_expect_eq(wire_left(), 0);
	expect_nothing_left();
}
