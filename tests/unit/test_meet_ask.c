/* SPDX-License-Identifier: Apache-2.0 */
/* test_meet_ask.c - meetings that this process comes to, and whose collector, "one", the
 * test plays. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "tests/unit/wire_rig.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/meet_inner.h"

TestSuite(meet_ask, .timeout = 20, .init = wire_begin, .fini = wire_end);

#define HOUR XR_SECONDS(3600)

/* --- the clock ------------------------------------------------------------------- */

/* The clock of a thread gains a step with each look at it. */
static _Thread_local int64_t ahead_ns, step_ns;

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return __real_clock_now() + (ahead_ns += step_ns);
}

/* --- the collector ---------------------------------------------------------------- */

#define REPORTS 16

/* What the collector does with the reports: report i is the message i + 1. */
static struct {
	unsigned count; /* of @answer */
	struct xr_value
		*answer[REPORTS]; /* taken; NULL: the collector is lost */
	struct xr_value *report[REPORTS]; /* what came */
} c;

static void *
collect(void *arg)
{
	const struct wire_message *m;
	struct xr_part part;

	(void)arg;
	for (unsigned i = 0; i < c.count; i++) {
		wire_await(i + 1);
		m = wire_sent(MESSAGE_MEET, 1);
		cr_assert_not_null(m);
		cr_expect_eq(m->record.flags, MESSAGE_VALUE);
		part = (struct xr_part){ m->data, m->len };
		cr_assert_eq(xr_decode(&part, 1, NULL, &c.report[i], NULL),
			XR_OK);
		if (c.answer[i] == NULL)
			agent_lose(wire_peer[1], "on purpose");
		else
			wire_reply(1,
				xr_value_kind(c.answer[i]) == XR_ERROR ?
					MESSAGE_ERROR :
					MESSAGE_REPLY,
				m->record.corr, c.answer[i]);
	}
	return NULL;
}

static pthread_t collector;

static void
begin_collecting(unsigned count, struct xr_value *const *answer)
{
	c.count = count;
	for (unsigned i = 0; i < count; i++)
		c.answer[i] = answer[i];
	cr_assert_eq(pthread_create(&collector, NULL, collect, NULL), 0);
}

/* And answers @count reports with NIL. */
static void
begin_nil(unsigned count)
{
	struct xr_value *answer[REPORTS];

	for (unsigned i = 0; i < count; i++)
		answer[i] = xr_value_new_nil();
	begin_collecting(count, answer);
}

static void
await_collector(void)
{
	pthread_join(collector, NULL);
}

static void
forget_reports(void)
{
	for (unsigned i = 0; i < c.count; i++)
		xr_value_unref(c.report[i]);
}

static void
end_collecting(void)
{
	await_collector();
	forget_reports();
}

static uint64_t
word(unsigned report, enum meet_item item)
{
	uint64_t n = 0;

	cr_assert_eq(xr_value_get_u64(xr_value_at(c.report[report], item), &n),
		XR_OK);
	return n;
}

static struct set_id
set_of(unsigned report)
{
	return (struct set_id){ word(report, MEET_SET_A),
		word(report, MEET_SET_B) };
}

/* --- coming ----------------------------------------------------------------------- */

static const char *const two_names[] = { "self", "one" };

static struct xr_error err;

static enum xr_status
come(const struct meet_label *label, size_t count, const char *const *names,
	struct xr_value **all)
{
	const struct xr_rpc_meeting m = { .size = sizeof(m),
		.names = names,
		.count = count,
		.timeout = HOUR };
	struct xr_value *five = xr_value_new_u64(5);
	enum xr_status status;

	err = (struct xr_error){ 0 };
	status = meet_as(label, &m, five, all, &err);
	xr_value_unref(five);
	return status;
}

static enum xr_status
come_for(enum meet_for what)
{
	return come(&(struct meet_label){ .what = what }, 2, two_names, NULL);
}

/* expect_report() - the report 0 but for its set and number. */
static void
expect_report(int64_t timeout, bool least, const char *names, size_t len)
{
	const struct xr_value *v = c.report[0];
	bool is_least = !least;
	int64_t time = 0;
	size_t has = 0;
	const char *text;

	cr_assert_eq(xr_value_kind(v), XR_LIST);
	cr_expect_eq(xr_value_count(v), MEET_ITEMS);
	cr_expect_eq(xr_value_get_i64(xr_value_at(v, MEET_TIMEOUT), &time),
		XR_OK);
	cr_expect_eq(time, timeout);
	cr_expect_eq(xr_value_get_bool(xr_value_at(v, MEET_LEAST), &is_least),
		XR_OK);
	cr_expect_eq(is_least, least);
	text = xr_value_data(xr_value_at(v, MEET_NAMES), &has);
	cr_assert_eq(has, len);
	cr_expect_eq(memcmp(text, names, len), 0);
}

Test(meet_ask, a_report_has_the_set_the_names_in_order_and_the_value)
{
	const struct xr_rpc_meeting m = { .size = sizeof(m),
		.names = two_names,
		.count = 2,
		.timeout = HOUR };
	struct xr_value *answer[] = { xr_value_new_i64(8) }, *all = NULL,
			*five = xr_value_new_u64(5);
	int64_t n = 0;

	begin_collecting(1, answer);
	cr_assert_eq(meet(&m, MEET_PROGRAM, five, &all, &err), XR_OK, "%s",
		err.text);
	cr_expect_eq(xr_value_get_i64(all, &n), XR_OK);
	cr_expect_eq(n, 8);
	xr_value_unref(all);
	xr_value_unref(five);
	await_collector();
	expect_report(HOUR, false, "one\0self", 9);
	cr_expect_eq(word(0, MEET_SET_A), UINT64_C(0xc8615ba084ae810d));
	cr_expect_eq(word(0, MEET_SET_B), UINT64_C(0xe368cc488d6726bb));
	cr_expect_eq(word(0, MEET_NUMBER), 0);
	cr_expect_eq(word(0, MEET_VALUE), 5);
	forget_reports();
}

/* By members, their lives, what it is for and the salt. */
Test(meet_ask, meetings_are_counted_by_their_set)
{
	static const char *const turned[] = { "one", "self" },
				 *const three[] = { "two", "self", "one" };
	const struct meet_label salted = { MEET_PROGRAM, "salt", NULL },
				empty = { MEET_PROGRAM, "", NULL },
				plain = { .what = MEET_PROGRAM };
	struct set_id set[8];

	begin_nil(10);
	cr_expect_eq(come(&plain, 2, two_names, NULL), XR_OK);
	cr_expect_eq(come(&plain, 3, three, NULL), XR_OK);
	cr_expect_eq(come_for(MEET_LEAVING), XR_OK);
	cr_expect_eq(come_for(MEET_GROUP), XR_OK);
	cr_expect_eq(come(&salted, 2, two_names, NULL), XR_OK);
	cr_expect_eq(come(&empty, 2, two_names, NULL), XR_OK);
	wire_peer[1]->incarnation++;
	cr_expect_eq(come(&plain, 2, two_names, NULL), XR_OK);
	wire_peer[1]->incarnation--;
	/* The same sets again. */
	cr_expect_eq(come(&plain, 2, turned, NULL), XR_OK);
	cr_expect_eq(come(&salted, 2, turned, NULL), XR_OK);
	cr_expect_eq(come(&plain, 2, two_names, NULL), XR_OK);
	await_collector();
	for (unsigned i = 0; i < 7; i++) {
		set[i] = set_of(i);
		cr_expect_eq(word(i, MEET_NUMBER), 0, "%u", i);
		for (unsigned k = 0; k < i; k++)
			cr_expect(set[i].a != set[k].a && set[i].b != set[k].b,
				"%u and %u", i, k);
	}
	cr_expect(meet_same(set_of(7), set[0]));
	cr_expect(meet_same(set_of(8), set[4]));
	cr_expect(meet_same(set_of(9), set[0]));
	cr_expect_eq(word(7, MEET_NUMBER), 1);
	cr_expect_eq(word(8, MEET_NUMBER), 1);
	cr_expect_eq(word(9, MEET_NUMBER), 2);
	forget_reports();
}

Test(meet_ask, who_counts_by_itself_has_its_own_numbers)
{
	_Atomic uint64_t past = 7;
	const struct meet_label own = { MEET_GROUP, "salt", &past };

	begin_nil(3);
	cr_expect_eq(come(&own, 2, two_names, NULL), XR_OK);
	cr_expect_eq(come(&own, 2, two_names, NULL), XR_OK);
	cr_expect_eq(atomic_load(&past), 9);
	cr_expect_eq(come(&(struct meet_label){ MEET_GROUP, "salt", NULL }, 2,
			     two_names, NULL),
		XR_OK);
	await_collector();
	cr_expect_eq(word(0, MEET_NUMBER), 7);
	cr_expect_eq(word(1, MEET_NUMBER), 8);
	cr_expect_eq(word(2, MEET_NUMBER), 0);
	cr_expect(meet_same(set_of(0), set_of(2)));
	forget_reports();
}

/* The end of an agent is the end of its counts. */
Test(meet_ask, counts_are_forgotten_with_all_meetings)
{
	begin_nil(3);
	cr_expect_eq(come_for(MEET_PROGRAM), XR_OK);
	cr_expect_eq(come_for(MEET_PROGRAM), XR_OK);
	meet_forget_series();
	cr_expect_eq(come_for(MEET_PROGRAM), XR_OK);
	await_collector();
	cr_expect_eq(word(1, MEET_NUMBER), 1);
	cr_expect_eq(word(2, MEET_NUMBER), 0);
	forget_reports();
}

Test(meet_ask, who_meets_is_named_once_and_is_among_them)
{
	static const char *const twice[] = { "one", "two", "one" },
				 *const others[] = { "one", "two" },
				 *const unknown[] = { "one", "self", "who" };
	const struct meet_label label = { .what = MEET_PROGRAM };

	cr_expect_eq(come(&label, 3, twice, NULL), XR_E_INVAL);
	cr_expect_str_eq(err.text, "one is named twice");
	cr_expect_eq(come(&label, 2, others, NULL), XR_E_INVAL);
	cr_expect_str_eq(err.text, "self is not one of those who meet");
	cr_expect_eq(come(&label, 0, others, NULL), XR_E_INVAL);
	cr_expect_str_eq(err.text, "self is not one of those who meet");
	cr_expect_eq(come(&label, 3, unknown, NULL), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "self (0) knows no worker who");
	cr_expect_eq(wire_left(), 0);
}

/* --- the least number --------------------------------------------------------------- */

Test(meet_ask, the_least_number_is_of_a_team)
{
	struct peer *const team[] = { wire_peer[1], wire_peer[3],
		wire_peer[0] };
	const struct meet_team t = { .id = 77,
		.peer = team,
		.count = 3,
		.timeout = INT64_MAX };
	struct xr_value *answer[] = { xr_value_new_u64(3), xr_value_new_nil() };
	uint64_t number = 9;

	begin_collecting(2, answer);
	cr_expect_eq(meet_least(&t, &number, &err), XR_OK, "%s", err.text);
	cr_expect_eq(number, 3);
	number = 9;
	cr_expect_eq(meet_least(&t, &number, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "one did not answer a number");
	await_collector();
	expect_report(INT64_MAX, true, "one\0three\0self", 15);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(word(i, MEET_SET_A), 77);
		cr_expect_eq(word(i, MEET_SET_B), MEET_TEAM);
		cr_expect_eq(word(i, MEET_NUMBER), 0);
		cr_expect_eq(word(i, MEET_VALUE), 9);
	}
	forget_reports();
}

/* --- failures ----------------------------------------------------------------------- */

static struct xr_value *
failure(enum xr_status status, const char *text)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = status,
		.text = text };

	return xr_value_new_error(&f);
}

Test(meet_ask, the_collectors_error_is_the_meetings)
{
	struct xr_value *answer[] = { failure(XR_E_TIMEOUT, "two is late"),
		failure(XR_E_PEER_LOST, "lost two (2)") },
			*all = NULL;

	begin_collecting(2, answer);
	cr_expect_eq(come(&(struct meet_label){ .what = MEET_PROGRAM }, 2,
			     two_names, &all),
		XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "two is late");
	/* As it says, whoever else is lost. */
	agent_lose(wire_peer[3], "before");
	cr_expect_eq(come(&(struct meet_label){ .what = MEET_PROGRAM }, 2,
			     two_names, &all),
		XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost two (2)");
	cr_expect_null(all);
	end_collecting();
}

static enum xr_status
come_three(struct xr_error *e)
{
	static const char *const three[] = { "two", "self", "one" };
	const struct xr_rpc_meeting m = { .size = sizeof(m),
		.names = three,
		.count = 3,
		.timeout = HOUR };
	struct xr_value *five = xr_value_new_u64(5);
	enum xr_status status = meet(&m, MEET_PROGRAM, five, NULL, e);

	xr_value_unref(five);
	return status;
}

Test(meet_ask, a_lost_collector_is_named_if_it_is_the_first)
{
	struct xr_value *answer[] = { NULL };

	begin_collecting(1, answer);
	cr_expect_eq(come_three(&err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1): on purpose");
	agent_lose(wire_peer[2], "after it");
	cr_expect_eq(come_three(&err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1): on purpose");
	cr_expect_eq(come_three(NULL), XR_E_PEER_LOST);
	end_collecting();
}

Test(meet_ask, a_member_that_was_lost_before_the_collector_is_named)
{
	struct xr_value *answer[] = { NULL };

	agent_lose(wire_peer[2], "before it");
	begin_collecting(1, answer);
	cr_expect_eq(come_three(&err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost two (2): before it");
	end_collecting();
}

/* The carrier has found it lost, and nobody has been told. */
Test(meet_ask, a_collector_whose_loss_nobody_told_of_is_named)
{
	wire_refuse(XR_E_PEER_LOST, UINT_MAX);
	step_ns = XR_SECONDS(1) / 4;
	cr_expect_eq(come_three(&err), XR_E_PEER_LOST);
	step_ns = 0;
	cr_expect_str_eq(err.text, "lost one (1)");
}

/* The collector may take a second longer than the meeting. */
Test(meet_ask, a_collector_that_is_silent_is_awaited_for_a_second_more)
{
	const struct xr_rpc_meeting m = { .size = sizeof(m),
		.names = two_names,
		.count = 2,
		.timeout = XR_SECONDS(1) / 2 };
	struct xr_value *five = xr_value_new_u64(5);

	step_ns = XR_SECONDS(1) / 100;
	cr_expect_eq(meet(&m, MEET_PROGRAM, five, NULL, &err), XR_E_TIMEOUT);
	step_ns = 0;
	cr_expect_str_eq(err.text, "no answer from one (1) within 1500 ms");
	xr_value_unref(five);
}

static enum xr_status
least_of_two(void)
{
	struct peer *const team[] = { wire_peer[1], wire_peer[0] };
	const struct meet_team t = { 1, team, 2, HOUR };
	uint64_t number = 9;

	return meet_least(&t, &number, &err);
}

static enum xr_status
program_of_two(void)
{
	return come_for(MEET_PROGRAM);
}

/* Each allocation fails once: the collector hears of nothing. */
static void fail_each(enum xr_status (*call)(void))
{
	bool whole = false;
	enum xr_status status;
	unsigned at;

	for (at = 1; !whole && at < 60; at++) {
		struct xr_value *answer = xr_value_new_u64(at);

		wire_forget();
		begin_collecting(1, &answer);
		was_short = false;
		until_short = at;
		status = call();
		until_short = 0;
		whole = !was_short;
		cr_expect_eq(status, whole ? XR_OK : XR_E_NOMEM, "%u", at);
		if (status == XR_E_NOMEM)
			cr_expect_eq(call(), XR_OK, "%u", at);
		end_collecting();
	}
	cr_expect(at > 6 && at < 60, "%u", at);
}

Test(meet_ask, without_memory_nobody_is_asked)
{
	fail_each(least_of_two);
	fail_each(program_of_two);
}
