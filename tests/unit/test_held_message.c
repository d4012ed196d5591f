/* SPDX-License-Identifier: Apache-2.0 */
/* test_held_message.c - messages that are delivered, each to its handler, and what is kept
 * of them. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "worker/rpc/agent.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/way.h"

TestSuite(held_message, .timeout = 20);

static struct peer peer = { .name = "one", .id = 1 };

/* --- the carrier ------------------------------------------------------------------------ */

struct xr_body_buffer {
	int refs;
};

static struct xr_body_buffer body_buffer, loan_buffer[3];
static uint32_t loans_there; /* more cannot be taken */
static int the_self;

static struct xr_body_buffer *
take_body(void *self, const struct xr_body *body, const void **data)
{
	cr_expect_eq(self, &the_self);
	if (body->len == 0)
		return NULL;
	body_buffer.refs++;
	*data = body->data;
	return &body_buffer;
}

static struct xr_body_buffer *
take_loan(void *self, const struct xr_body *body, uint32_t index)
{
	cr_expect_eq(self, &the_self);
	cr_expect_lt(index, body->loan_count);
	if (index >= loans_there)
		return NULL;
	loan_buffer[index].refs++;
	return &loan_buffer[index];
}

static void
unref(struct xr_body_buffer *buffer)
{
	buffer->refs--;
}

static const struct xr_carrier ops = { .body_take = take_body,
	.buffer_unref = unref,
	.loan_take = take_loan };
static const struct agent_carrier carrier = { .ops = &ops, .self = &the_self };

/* --- handlers ----------------------------------------------------------------------------- */

static const char *handled;
static struct held *kept;
static bool keeps;
static unsigned short_at;

static void
handle(const char *name, struct peer *p, const struct xr_body *body)
{
	cr_expect_eq(p, &peer);
	cr_expect_eq(message_carrier(), &carrier);
	cr_expect(lead_delivers());
	handled = name;
	if (!keeps)
		return;
	until_short = short_at;
	kept = held_take(body);
	until_short = 0;
}

#define HANDLER(name) \
	void __wrap_##name(struct peer *p, const struct xr_record *record, \
		const struct xr_body *body); \
	void __wrap_##name(struct peer *p, const struct xr_record *record, \
		const struct xr_body *body) \
	{ \
		(void)record; \
		handle(#name, p, body); \
	}

HANDLER(serve_request)
HANDLER(ask_answered)
HANDLER(serve_cancel)
HANDLER(meet_on_report)
HANDLER(rref_on_control)
HANDLER(rref_on_fetch)
HANDLER(prof_arrived)
HANDLER(guest_arrived)
HANDLER(way_arrived)

static const char *lost_because;

void __wrap_agent_lose(struct peer *p, const char *why);

void
__wrap_agent_lose(struct peer *p, const char *why)
{
	cr_expect_eq(p, &peer);
	lost_because = why;
}

static void
deliver(uint8_t kind, const struct xr_body *body)
{
	const struct xr_record record = { .kind = kind };

	handled = lost_because = NULL;
	message_deliver((void *)&carrier, &peer, &record, body);
	cr_expect_not(lead_delivers());
}

/* --- messages -------------------------------------------------------------------------------- */

Test(held_message, each_kind_has_its_handler)
{
	static const char *const row[256] = {
		[1] = "serve_request",
		[2] = "ask_answered",
		[3] = "ask_answered",
		[4] = "serve_request",
		[5] = "serve_cancel",
		[10] = "meet_on_report",
		[20] = "rref_on_control",
		[21] = "rref_on_control",
		[22] = "rref_on_control",
		[23] = "rref_on_control",
		[24] = "rref_on_fetch",
		[30] = "prof_arrived",
		[40] = "guest_arrived",
	};
	const struct xr_body body = { .len = 0 };

	atomic_store(&peer.state, PEER_UP);
	for (int kind = 0; kind < 256; kind++) {
		deliver((uint8_t)kind, &body);
		if (row[kind] == NULL) {
			cr_expect_null(handled, "%d", kind);
			cr_assert_not_null(lost_because, "%d", kind);
			cr_expect_str_eq(lost_because,
				"it sent a message of no kind");
			continue;
		}
		cr_assert_not_null(handled, "%d", kind);
		cr_expect_str_eq(handled, row[kind]);
		cr_expect_null(lost_because);
	}
}

static int64_t
bytes_in(void)
{
	struct figures_view view;

	figures_sum(&view);
	cr_expect_eq(view.count[FIGURE_BYTES_IN],
		(int64_t)atomic_load(&peer.bytes_in));
	return view.count[FIGURE_BYTES_IN];
}

Test(held_message, what_comes_is_counted_with_its_loans)
{
	const struct xr_part loans[] = { { "ab", 2 }, { "cde", 3 } };
	struct xr_body body = { .data = "xyzw",
		.len = 4,
		.loans = loans,
		.loan_count = 2 };

	atomic_store(&peer.state, PEER_NEW);
	deliver(MESSAGE_REPLY, &body);
	cr_expect_not_null(handled);
	cr_expect_eq(bytes_in(), 9);
	body.loan_count = 0;
	deliver(MESSAGE_REPLY, &body);
	cr_expect_eq(bytes_in(), 13);
	/* Also of who is lost, to whom nobody listens. */
	atomic_store(&peer.state, PEER_LOST);
	deliver(MESSAGE_REPLY, &body);
	cr_expect_eq(bytes_in(), 17);
	cr_expect(handled == NULL && lost_because == NULL);
	deliver(0, &body);
	cr_expect_null(lost_because);
	/* Who has left may answer. */
	atomic_store(&peer.state, PEER_LEFT);
	deliver(MESSAGE_REPLY, &body);
	cr_expect_not_null(handled);
}

Test(held_message, where_all_goes_over_a_group_that_has_it_first)
{
	const struct xr_body body = { .data = "xyz", .len = 3 };

	atomic_store(&peer.state, PEER_UP);
	atomic_store(&way_is_open, true);
	deliver(MESSAGE_REPLY, &body);
	cr_assert_not_null(handled);
	cr_expect_str_eq(handled, "way_arrived");
	cr_expect_eq(bytes_in(), 0);
	atomic_store(&way_is_open, false);
}

/* --- what is kept ------------------------------------------------------------------------------ */

static void
none_are_kept(void)
{
	cr_expect_eq(body_buffer.refs, 0);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(loan_buffer[i].refs, 0, "%d", i);
}

Test(held_message, a_body_is_kept_with_its_loans)
{
	char a[2], b[3];
	const struct xr_part loans[] = { { a, sizeof(a) }, { b, sizeof(b) } };
	const struct xr_body body = { .data = "xyz",
		.len = 3,
		.loans = loans,
		.loan_count = 2 };

	atomic_store(&peer.state, PEER_UP);
	keeps = true;
	loans_there = 2;
	deliver(MESSAGE_REPLY, &body);
	cr_assert_not_null(kept);
	cr_expect_eq(held_data(kept), body.data);
	cr_expect_eq(body_buffer.refs, 1);
	cr_expect(loan_buffer[0].refs == 1 && loan_buffer[1].refs == 1);
	cr_expect_eq(held_loan(kept, 0, 0), a);
	cr_expect_eq(held_loan(kept, 0, 2), a);
	cr_expect_null(held_loan(kept, 0, 3));
	cr_expect_eq(held_loan(kept, 1, 3), b);
	cr_expect_null(held_loan(kept, 1, 4));
	cr_expect_null(held_loan(kept, 2, 0));
	cr_expect_null(held_loan(kept, UINT64_MAX, 0));
	cr_expect_eq(held_ref(kept), kept);
	held_unref(kept);
	cr_expect_eq(body_buffer.refs, 1);
	held_unref(kept);
	none_are_kept();
	held_unref(NULL);
}

Test(held_message, what_cannot_be_kept_whole_is_not_kept)
{
	const struct xr_part loans[] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
	struct xr_body body = { .data = "xyz",
		.len = 3,
		.loans = loans,
		.loan_count = 3 };

	atomic_store(&peer.state, PEER_UP);
	keeps = true;
	for (loans_there = 0; loans_there < 3; loans_there++) {
		deliver(MESSAGE_REPLY, &body);
		cr_expect_null(kept);
		none_are_kept();
	}
	body.len = 0;
	deliver(MESSAGE_REPLY, &body);
	cr_expect_null(kept);
	none_are_kept();
	body.len = 3;
	short_at = 1;
	deliver(MESSAGE_REPLY, &body);
	cr_expect_null(kept);
	none_are_kept();
}
