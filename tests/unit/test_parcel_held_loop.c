/* SPDX-License-Identifier: Apache-2.0 */
/* test_parcel_held_loop.c - memory that carriers keep, bodies that are kept, and the
 * carrier to this process itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <xrun/error.h>

#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/held.h"
#include "worker/rpc/loop.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"

TestSuite(parcel, .timeout = 20);
TestSuite(held, .timeout = 20);
TestSuite(rpc_loop, .timeout = 20);

static struct xr_error err;

/* --- parcels ------------------------------------------------------------------------ */

bool __wrap_peer_unsend(struct peer *p, void *token);

static bool takes_back;
static unsigned unsent;
static void *token_asked;

bool
__wrap_peer_unsend(struct peer *p, void *token)
{
	cr_expect_eq(p, (struct peer *)&unsent);
	unsent++;
	token_asked = token;
	return takes_back;
}

static unsigned freed;

static void
note_free(void *what)
{
	cr_expect_eq(what, &freed);
	freed++;
}

static void
expect_sent(uint32_t left)
{
	char text[64];

	if (left == 0) {
		cr_expect_eq(parcel_await_sent(clock_now(), &err), XR_OK);
		return;
	}
	snprintf(text, sizeof(text), "%u messages are not sent", left);
	cr_expect_eq(parcel_await_sent(clock_now(), &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, text);
}

Test(parcel, it_is_let_go_when_nobody_has_it)
{
	struct parcel *p = parcel_new(note_free, &freed);

	cr_expect_eq(parcel_ref(p), p);
	parcel_unref(p);
	cr_expect_eq(freed, 0);
	parcel_lend(p);
	parcel_lend(p);
	cr_expect_eq(p->pending, 2);
	parcel_unref(p);
	expect_sent(2);
	parcel_keep(p);
	expect_sent(1);
	cr_expect_eq(freed, 0);
	p->token.sent(&p->token);
	expect_sent(0);
	cr_expect_eq(freed, 1);
	parcel_unref(NULL);
	parcel_unref(parcel_new(NULL, NULL));
	until_short = 1;
	cr_expect_null(parcel_new(note_free, &freed));
}

Test(parcel, what_a_carrier_has_is_taken_back)
{
	struct peer *peer = (struct peer *)&unsent;
	struct parcel *p = parcel_new(note_free, &freed);

	parcel_end(NULL, peer);
	parcel_end(p, peer);
	cr_expect_eq(unsent, 0);
	cr_expect_eq(freed, 1);
	/* It has gone, or is about to be told. */
	p = parcel_new(note_free, &freed);
	parcel_lend(p);
	parcel_end(p, peer);
	cr_expect_eq(unsent, 1);
	cr_expect_eq(token_asked, &p->token);
	cr_expect_eq(freed, 1);
	parcel_keep(p);
	cr_expect_eq(freed, 2);
	takes_back = true;
	p = parcel_new(note_free, &freed);
	parcel_lend(p);
	parcel_end(p, peer);
	cr_expect_eq(unsent, 2);
	cr_expect_eq(freed, 3);
	expect_sent(0);
}

/* --- bodies ---------------------------------------------------------------------------- */

struct xr_body_buffer {
	int refs;
};

static struct xr_body_buffer body_buffer, loan_buffer[2];
static unsigned body_takes, loan_takes;
static int until_refused = -1; /* takes */
static char self;

static bool
refuses(void)
{
	return until_refused >= 0 && until_refused-- == 0;
}

static struct xr_body_buffer *
take_body(void *carrier, const struct xr_body *body, const void **data)
{
	cr_expect_eq(carrier, &self);
	body_takes++;
	if (refuses())
		return NULL;
	body_buffer.refs++;
	*data = (const char *)body->data + 1;
	return &body_buffer;
}

static struct xr_body_buffer *
take_loan(void *carrier, const struct xr_body *body, uint32_t i)
{
	cr_expect_eq(carrier, &self);
	cr_expect_lt(i, body->loan_count);
	loan_takes++;
	if (refuses())
		return NULL;
	loan_buffer[i].refs++;
	return &loan_buffer[i];
}

static void
unref_buffer(struct xr_body_buffer *b)
{
	b->refs--;
}

const struct agent_carrier *__wrap_message_carrier(void);

const struct agent_carrier *
__wrap_message_carrier(void)
{
	static const struct xr_carrier ops = { .body_take = take_body,
		.loan_take = take_loan,
		.buffer_unref = unref_buffer };
	static const struct agent_carrier carrier = { .ops = &ops,
		.self = &self };

	return &carrier;
}

static const struct xr_part lent[2] = { { "abcdef", 6 }, { "xyz", 3 } };

static void
nothing_is_kept(void)
{
	cr_expect_eq(body_buffer.refs, 0);
	cr_expect_eq(loan_buffer[0].refs, 0);
	cr_expect_eq(loan_buffer[1].refs, 0);
}

Test(held, a_body_is_kept_with_what_was_lent)
{
	const struct xr_body body = { .data = "body",
		.len = 4,
		.loans = lent,
		.loan_count = 2 };
	struct held *h = held_take(&body);

	cr_assert_not_null(h);
	cr_expect_eq(held_data(h), (const char *)body.data + 1);
	cr_expect_eq(held_loan(h, 0, 6), lent[0].data);
	cr_expect_eq(held_loan(h, 0, 0), lent[0].data);
	cr_expect_null(held_loan(h, 0, 7));
	cr_expect_eq(held_loan(h, 1, 3), lent[1].data);
	cr_expect_null(held_loan(h, 1, 4));
	cr_expect_null(held_loan(h, 2, 0));
	cr_expect_eq(held_ref(h), h);
	held_unref(h);
	cr_expect_eq(body_buffer.refs, 1);
	cr_expect_eq(loan_buffer[1].refs, 1);
	held_unref(h);
	nothing_is_kept();
	held_unref(NULL);
	cr_expect_eq(body_takes, 1);
	cr_expect_eq(loan_takes, 2);
}

Test(held, what_cannot_be_kept_is_given_back)
{
	const struct xr_body body = { .data = "body",
		.len = 4,
		.loans = lent,
		.loan_count = 2 };

	for (int i = 0; i < 3; i++) {
		until_refused = i;
		cr_expect_null(held_take(&body));
		cr_expect_eq(until_refused, -1);
		nothing_is_kept();
	}
	until_short = 1;
	cr_expect_null(held_take(&body));
	cr_expect_eq(body_takes, 3);
	nothing_is_kept();
}

/* --- the carrier to oneself ---------------------------------------------------------------- */

static unsigned awakes;
static char delivered[64];
static struct xr_body_buffer *kept;
static const void *kept_data;
static void *loop;

static void
awake(void *ctx)
{
	cr_expect_eq(ctx, &awakes);
	awakes++;
}

static void
deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	size_t len = strlen(delivered);

	cr_expect_eq(ctx, &awakes);
	cr_expect_eq(peer, &self);
	cr_expect_eq((uintptr_t)body->data % 64, 0);
	snprintf(delivered + len, sizeof(delivered) - len, "%d:%.*s ",
		(int)record->corr, (int)body->len, (const char *)body->data);
	if (record->corr == 9)
		kept = loop_carrier.body_take(loop, body, &kept_data);
}

static struct xr_link *link_to_self;

static void
open_loop(void)
{
	static const struct xr_carrier_host host = { .size = sizeof(host),
		.ctx = &awakes,
		.deliver = deliver,
		.awake = awake };

	cr_assert_eq(loop_carrier.open(&host, NULL, &loop, &err), XR_OK);
	cr_assert_eq(loop_carrier.connect(loop, "", 0, 0, &self, &link_to_self,
			     &err),
		XR_OK);
}

static enum xr_status
send_it(uint64_t corr, const char *a, const char *b, bool more)
{
	const struct xr_part parts[2] = { { a, strlen(a) }, { b, strlen(b) } };
	const struct xr_message m = { .record = { .corr = corr },
		.parts = parts,
		.count = 2,
		.more = more };
	bool pending = true;
	enum xr_status status = loop_carrier.send(link_to_self, &m, &pending);

	if (status == XR_OK)
		cr_expect_not(pending);
	return status;
}

Test(rpc_loop, what_is_sent_is_delivered_in_its_order)
{
	char text[4] = "xyz";

	cr_expect_eq(loop_carrier.address(NULL, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "");
	text[0] = 'x';
	cr_expect_eq(loop_carrier.address(NULL, text, 0), 0);
	cr_expect_eq(text[0], 'x');
	open_loop();
	cr_expect_eq(loop_carrier.progress(loop, 10), 0);
	cr_expect_eq(send_it(1, "a", "bc", false), XR_OK);
	cr_expect_eq(awakes, 1);
	cr_expect_eq(send_it(2, "", "d", true), XR_OK);
	cr_expect_eq(awakes, 1);
	cr_expect_eq(send_it(3, "", "", false), XR_OK);
	cr_expect_eq(awakes, 2);
	until_short = 1;
	cr_expect_eq(send_it(4, "lost", "", false), XR_E_NOMEM);
	cr_expect_eq(awakes, 2);
	cr_expect_eq(loop_carrier.progress(loop, 2), 2);
	cr_expect_str_eq(delivered, "1:abc 2:d ");
	cr_expect_eq(loop_carrier.progress(loop, 2), 1);
	cr_expect_str_eq(delivered, "1:abc 2:d 3: ");
	cr_expect_eq(loop_carrier.progress(loop, 2), 0);
	cr_expect_eq(loop_carrier.send(link_to_self,
			     &(struct xr_message){ .count = 0 }, NULL),
		XR_OK);
	loop_carrier.link_close(link_to_self);
	loop_carrier.free(loop); /* with what is left */
}

Test(rpc_loop, a_body_may_be_kept)
{
	open_loop();
	cr_expect_eq(send_it(9, "ke", "pt", false), XR_OK);
	cr_expect_eq(loop_carrier.progress(loop, 1), 1);
	cr_assert_not_null(kept);
	cr_expect_eq(memcmp(kept_data, "kept", 4), 0);
	loop_carrier.free(loop);
	loop_carrier.buffer_unref(kept);
	until_short = 1;
	cr_expect_eq(loop_carrier.open(NULL, NULL, &loop, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
}
