/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_mail.c - what members of a group send each other: messages of an operation,
 * that the group has failed, and what one calls. */
#include "tests/unit/coll_rig.h"

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/coll/mail.h"
#include "worker/rpc/due.h"
#include "worker/rpc/parcel.h"

/* --- what is sent (--wrap) ----------------------------------------------------------- */

#define SENT_MAX 8

static struct {
	struct peer *to;
	struct xr_record record;
	bool answer, lent, has_due;
	uint32_t count;
	struct xr_part part[2];
	char begin[64]; /* of what the parts are */
	struct due due;
	struct parcel *parcel; /* a reference */
} sent[SENT_MAX];

static unsigned sent_count;
static unsigned fails_at; /* that message fails, from 1; 0: none */

enum xr_status __wrap_peer_send(struct peer *p, const struct xr_message *m,
	struct due *due, struct parcel *parcel, struct xr_error *why);

static void
note_parts(unsigned i, const struct xr_message *m)
{
	size_t n = 0, len;

	for (uint32_t k = 0; k < m->count; k++) {
		sent[i].part[k] = m->parts[k];
		len = m->parts[k].len;
		if (len > sizeof(sent[i].begin) - n)
			len = sizeof(sent[i].begin) - n;
		memcpy(sent[i].begin + n, m->parts[k].data, len);
		n += len;
	}
}

enum xr_status
__wrap_peer_send(struct peer *p, const struct xr_message *m, struct due *due,
	struct parcel *parcel, struct xr_error *why)
{
	unsigned i = sent_count++;

	cr_assert_lt(i, SENT_MAX);
	cr_assert_leq(m->count, 2);
	sent[i].to = p;
	sent[i].record = m->record;
	sent[i].answer = m->answer;
	sent[i].lent = m->lent;
	sent[i].count = m->count;
	note_parts(i, m);
	sent[i].has_due = due != NULL;
	sent[i].due = due != NULL ? *due : (struct due){ 0 };
	sent[i].parcel = parcel != NULL ? parcel_ref(parcel) : NULL;
	if (sent_count == fails_at)
		return fail(why, XR_E_PEER_LOST, "lost on purpose");
	return XR_OK;
}

static void
forget(void)
{
	for (unsigned i = 0; i < sent_count; i++)
		parcel_unref(sent[i].parcel);
	memset(sent, 0, sizeof(sent));
	sent_count = 0;
}

/* --- an operation -------------------------------------------------------------------- */

static struct xr_part given[4]; /* to each */
static char data[2][PARCEL_MIN + 2] = { "first", "second" };
static struct op *op;

static struct xr_part
give(const struct op *of, uint32_t stage, uint32_t to)
{
	cr_expect_eq(of, op);
	cr_expect_eq(stage, op->stage);
	return given[to];
}

static struct plan giving;

static void
begin(void)
{
	const struct xr_part nothing = { data[0], PLAN_NONE };

	coll_begin();
	giving = pair;
	giving.gives = give;
	op = coll_op(0x1000005);
	op->plan = &giving;
	op->stage = 1;
	for (uint32_t i = 0; i < 4; i++)
		given[i] = nothing;
}

static void
end(void)
{
	forget();
	coll_end();
}

TestSuite(coll_mail, .timeout = 20, .init = begin, .fini = end);

Test(coll_mail, each_gets_what_the_plan_gives)
{
	given[1] = (struct xr_part){ data[0], 6 };
	given[3] = (struct xr_part){ data[1], 0 };
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(sent[i].to, wire_peer[1 + 2 * i]);
		cr_expect_eq(sent[i].record.kind, MESSAGE_GUEST);
		cr_expect_eq(sent[i].record.flags, 0);
		cr_expect_eq(sent[i].record.aux, 1);
		cr_expect_eq(sent[i].record.method, op->check);
		cr_expect_eq(sent[i].record.corr, group->id << 24 | 5);
		cr_expect(sent[i].answer && !sent[i].lent);
		cr_expect(!sent[i].has_due && sent[i].parcel == NULL);
		cr_expect_eq(sent[i].count, 1 - i);
	}
	cr_expect_eq(sent[0].part[0].data, data[0]);
	cr_expect_eq(sent[0].part[0].len, 6);
	forget();
	given[3].len = 1;
	op->deadline = INT64_MAX - 1;
	group->timeout = 77;
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 2);
	cr_expect(sent[1].has_due && sent[1].count == 1);
	cr_expect_eq(sent[1].due.timeout, 77);
	cr_expect_eq(sent[1].due.at, INT64_MAX - 1);
	cr_expect_eq(sent[1].part[0].len, 1);
}

Test(coll_mail, a_member_begins_with_the_next_one)
{
	static const uint32_t order[] = { 3, 0, 1 };

	group->me = 2;
	for (uint32_t i = 0; i < 4; i++)
		given[i].len = 1;
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(sent[i].to, group->peer[order[i]]);
	group->me = 0;
}

Test(coll_mail, who_cannot_be_sent_to_ends_the_stage)
{
	for (uint32_t i = 0; i < 4; i++)
		given[i].len = 1;
	fails_at = 2;
	cr_expect_eq(mail_stage(op, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost on purpose");
	cr_expect_eq(sent_count, 2);
}

Test(coll_mail, what_is_long_is_handed_over_in_one_copy)
{
	given[1] = given[2] = given[3] =
		(struct xr_part){ data[0], PARCEL_MIN };
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect(!sent[i].lent && sent[i].parcel == NULL &&
			sent[i].part[0].data == data[0]);
	forget();
	given[1].len = given[2].len = PARCEL_MIN + 1;
	given[3] = (struct xr_part){ data[1], PARCEL_MIN + 1 };
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect(sent[i].lent && sent[i].parcel != NULL);
		cr_expect_eq(sent[i].part[0].len, PARCEL_MIN + 1);
		cr_expect_neq(sent[i].part[0].data, given[i + 1].data);
		cr_expect_eq(memcmp(sent[i].part[0].data, given[i + 1].data,
				     PARCEL_MIN + 1),
			0);
	}
	cr_expect_eq(sent[0].parcel, sent[1].parcel);
	cr_expect_eq(sent[0].part[0].data, sent[1].part[0].data);
	cr_expect_neq(sent[1].parcel, sent[2].parcel);
	cr_expect_eq(atomic_load(&sent[0].parcel->refs), 2, "of the test");
	cr_expect_eq(atomic_load(&sent[2].parcel->refs), 1, "of the test");
	forget();
	/* The same place, and another length. */
	given[2].len = PARCEL_MIN + 2;
	given[3].len = PLAN_NONE;
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 2);
	cr_expect_neq(sent[0].parcel, sent[1].parcel);
}

Test(coll_mail, what_the_stage_made_is_handed_over_as_it_is)
{
	op->made = storage_new(PARCEL_MIN + 1);
	cr_assert_not_null(op->made);
	memset(op->made->data, 'm', PARCEL_MIN + 1);
	given[1] = (struct xr_part){ op->made->data, PARCEL_MIN + 1 };
	given[2] = (struct xr_part){ data[1], PARCEL_MIN + 1 };
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	cr_assert_eq(sent_count, 2);
	cr_expect(sent[0].lent && sent[0].parcel != NULL);
	cr_expect_eq(sent[0].part[0].data, op->made->data);
	cr_expect_neq(sent[1].part[0].data, data[1]);
	cr_expect_eq(sent[1].begin[0], 's');
	cr_expect_eq(atomic_load(&op->made->refs), 2, "the parcel's, too");
	forget();
	cr_expect_eq(atomic_load(&op->made->refs), 1);
}

Test(coll_mail, without_memory_nothing_long_is_sent)
{
	enum xr_status status = XR_E_NOMEM;
	unsigned at = 0;

	op->made = storage_new(PARCEL_MIN + 1);
	cr_assert_not_null(op->made);
	memset(op->made->data, 'm', PARCEL_MIN + 1);
	given[1] = (struct xr_part){ op->made->data, PARCEL_MIN + 1 };
	given[2] = (struct xr_part){ data[1], PARCEL_MIN + 1 };
	/* What is made once is made now. */
	cr_expect_eq(mail_stage(op, &err), XR_OK);
	stays_short = true; /* there are several places for a copy */
	while (status != XR_OK && at < 20) {
		forget();
		cr_assert_eq(atomic_load(&op->made->refs), 1);
		err = (struct xr_error){ 0 };
		until_short = ++at;
		status = mail_stage(op, &err);
		until_short = 0;
		if (status == XR_OK)
			break;
		cr_expect_eq(status, XR_E_NOMEM);
		cr_expect_str_eq(err.text, "out of memory");
		cr_expect_lt(sent_count, 2);
	}
	cr_expect_gt(at, 2);
	cr_expect_eq(sent_count, 2);
}

/* --- what is told -------------------------------------------------------------------- */

static void
expect_told(unsigned i, uint32_t to, uint16_t flags, uint32_t seq)
{
	cr_expect_eq(sent[i].to, wire_peer[to]);
	cr_expect_eq(sent[i].record.kind, MESSAGE_GUEST);
	cr_expect_eq(sent[i].record.flags, flags);
	cr_expect_eq(sent[i].record.aux, 0);
	cr_expect_eq(sent[i].record.corr, group->id << 24 | seq);
	cr_expect(!sent[i].answer && !sent[i].lent && sent[i].parcel == NULL);
	cr_expect_eq(sent[i].due.timeout, 10 * NS_PER_MS);
	cr_expect_eq(sent[i].due.at, 0);
}

Test(coll_mail, all_others_hear_that_the_group_has_failed)
{
	int32_t status = XR_E_CONFLICT;

	group->failed = XR_E_CONFLICT;
	snprintf(group->why, sizeof(group->why), "why");
	fails_at = 1; /* the others hear of it all the same */
	mail_failed(group, 0x3000009);
	cr_assert_eq(sent_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		expect_told(i, i + 1, MAIL_FAILED, 9);
		cr_expect_eq(sent[i].count, 2);
		cr_expect_eq(sent[i].part[0].len, sizeof(status));
		cr_expect_eq(sent[i].part[1].len, 3);
		cr_expect_eq(memcmp(sent[i].begin, &status, sizeof(status)), 0);
		cr_expect_eq(memcmp(sent[i].begin + 4, "why", 3), 0);
	}
}

Test(coll_mail, one_hears_what_is_called_here)
{
	mail_call(group, 2, 0x3000009, "barrier");
	cr_assert_eq(sent_count, 1);
	expect_told(0, 2, MAIL_CALL, 9);
	cr_expect_eq(sent[0].count, 1);
	cr_expect_eq(sent[0].part[0].len, 7);
	cr_expect_eq(memcmp(sent[0].begin, "barrier", 7), 0);
}
