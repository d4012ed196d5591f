/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_loop.c - the carrier of what a process sends itself. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "worker/rpc/loop.h"

static const struct xr_carrier *const c = &loop_carrier;
static struct xr_error err;
static void *self;
static struct xr_link *l;
static int the_peer, the_host;

/* --- the host ------------------------------------------------------------------------- */

static unsigned awakes, delivered;
static struct xr_record last_record;
static char last[64];
static size_t last_len;
static struct xr_body_buffer *kept; /* of the next body, if @keeps */
static const char *kept_data;
static bool keeps;

static const void *watched; /* how often it was given back */
static unsigned freed;

void __real_free(void *p);
void __wrap_free(void *p);

void
__wrap_free(void *p)
{
	if (p != NULL && p == watched)
		freed++;
	__real_free(p);
}

static void
deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	const void *data = NULL;

	cr_expect_eq(ctx, &the_host);
	cr_expect_eq(peer, &the_peer);
	cr_expect_eq((uintptr_t)body->data % 64, 0);
	cr_expect_eq(body->loan_count, 0);
	cr_assert_leq(body->len, sizeof(last));
	delivered++;
	last_record = *record;
	last_len = body->len;
	memcpy(last, body->data, body->len);
	watched = body->own;
	freed = 0;
	if (!keeps)
		return;
	kept = c->body_take(self, body, &data);
	kept_data = data;
}

static void
awake(void *ctx)
{
	cr_expect_eq(ctx, &the_host);
	awakes++;
}

static const struct xr_carrier_host host = { .size = sizeof(host),
	.ctx = &the_host,
	.deliver = deliver,
	.awake = awake };

static void
begin(void)
{
	cr_assert_eq(c->open(&host, NULL, &self, &err), XR_OK);
	cr_assert_eq(c->connect(self, "", 1, 2, &the_peer, &l, &err), XR_OK);
}

static void
end(void)
{
	c->link_close(l);
	c->free(self);
}

TestSuite(rpc_loop, .timeout = 20, .init = begin, .fini = end);

static enum xr_status
send_text(const char *text, uint64_t corr)
{
	const struct xr_part part = { text, strlen(text) };
	const struct xr_message m = { .record = { .kind = 9, .corr = corr },
		.parts = &part,
		.count = 1 };
	bool pending = true;
	enum xr_status status = c->send(l, &m, &pending);

	cr_expect_eq(pending, status != XR_OK);
	return status;
}

/* --- tests ------------------------------------------------------------------------------ */

Test(rpc_loop, it_has_no_address)
{
	char text[4] = "abc";

	cr_expect_eq(c->address(self, text, 0), 0);
	cr_expect_str_eq(text, "abc");
	cr_expect_eq(c->address(self, text, 1), 0);
	cr_expect_str_eq(text, "");
	cr_expect_eq(text[1], 'b');
	cr_expect_str_eq(c->name, "loop");
	cr_expect_eq(c->size, sizeof(*c));
	cr_expect_eq(c->api, XR_CARRIER_API);
	cr_expect_eq(c->caps, XR_CARRIER_LOCAL);
	cr_expect_eq(c->copies, UINT32_MAX);
}

Test(rpc_loop, a_message_is_its_parts_in_a_row)
{
	const struct xr_part parts[] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 },
		{ "f", 1 } };
	struct xr_message m = { .record = { .kind = 7,
					.flags = 3,
					.aux = 300,
					.method = 70000,
					.corr = UINT64_MAX },
		.parts = parts,
		.count = 3 };

	cr_expect_eq(c->send(l, &m, NULL), XR_OK);
	cr_expect_eq(awakes, 1);
	cr_expect_eq(delivered, 0);
	cr_expect_eq(c->progress(self, 8), 1);
	cr_expect_eq(delivered, 1);
	cr_expect_eq(last_len, 5);
	cr_expect_eq(memcmp(last, "abcde", 5), 0);
	cr_expect_eq(last_record.kind, 7);
	cr_expect_eq(last_record.flags, 3);
	cr_expect_eq(last_record.aux, 300);
	cr_expect_eq(last_record.method, 70000);
	cr_expect_eq(last_record.corr, UINT64_MAX);
	/* Where more follow, the last one wakes. */
	m.more = true;
	m.count = 0;
	cr_expect_eq(c->send(l, &m, NULL), XR_OK);
	cr_expect_eq(awakes, 1);
	cr_expect_eq(c->progress(self, 8), 1);
	cr_expect_eq(last_len, 0);
}

Test(rpc_loop, so_many_are_read_at_once_as_were_asked_for)
{
	for (uint64_t i = 1; i <= 5; i++)
		cr_expect_eq(send_text("x", i), XR_OK);
	cr_expect_eq(awakes, 5);
	cr_expect_eq(c->progress(self, 0), 0);
	cr_expect_eq(delivered, 0);
	cr_expect_eq(c->progress(self, 1), 1);
	cr_expect_eq(last_record.corr, 1);
	cr_expect_eq(c->progress(self, 2), 2);
	cr_expect_eq(last_record.corr, 3);
	cr_expect_eq(c->progress(self, 8), 2);
	cr_expect_eq(last_record.corr, 5);
	cr_expect_eq(c->progress(self, 8), 0);
	cr_expect_eq(delivered, 5);
}

Test(rpc_loop, a_body_may_be_kept)
{
	keeps = true;
	cr_expect_eq(send_text("stay", 1), XR_OK);
	cr_expect_eq(c->progress(self, 1), 1);
	cr_assert_not_null(kept);
	cr_expect_eq(watched, kept);
	cr_expect_eq(freed, 0);
	cr_expect_eq(memcmp(kept_data, "stay", 4), 0);
	c->buffer_unref(kept);
	cr_expect_eq(freed, 1);
	keeps = false;
	cr_expect_eq(send_text("gone", 1), XR_OK);
	cr_expect_eq(c->progress(self, 1), 1);
	cr_expect_eq(freed, 1);
}

/* The sanitizers find what is not given back. */
Test(rpc_loop, what_was_not_read_goes_with_it)
{
	cr_expect_eq(send_text("one", 1), XR_OK);
	cr_expect_eq(send_text("two", 2), XR_OK);
}

Test(rpc_loop, without_memory_nothing_is_sent)
{
	void *other = NULL;

	until_short = 1;
	cr_expect_eq(send_text("x", 1), XR_E_NOMEM);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(c->progress(self, 1), 0);
	cr_expect_eq(awakes, 0);
	until_short = 1;
	cr_expect_eq(c->open(&host, NULL, &other, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_expect_null(other);
}
