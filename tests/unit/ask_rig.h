/* SPDX-License-Identifier: Apache-2.0 */
/* ask_rig.h - a question to "one", which the test plays; see wire_rig.h. */
#ifndef TESTS_UNIT_ASK_RIG_H
#define TESTS_UNIT_ASK_RIG_H

#include "base/status.h"
#include "tests/unit/rref_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/future.h"
#include "worker/rpc/method.h"

static struct xr_error err;
static struct question q; /* a call of "ask.me" to "one" */
static const struct xr_part abc = { "abc", 3 };
static struct xr_future *f;

static inline void
begin(void)
{
	wire_begin();
	q = (struct question){ .to = wire_peer[1],
		.kind = MESSAGE_REQUEST,
		.method = method_get("ask.me"),
		.parts = &abc,
		.count = 1,
		.timeout = HOUR };
	cr_assert_not_null(q.method);
}

static inline const struct wire_message *
begin_future(void)
{
	const struct wire_message *m;

	f = NULL;
	cr_assert_eq(ask_future(&q, NULL, &f, &err), XR_OK, "%s", err.text);
	m = wire_sent(MESSAGE_REQUEST, (uint32_t)q.to->id);
	cr_assert_not_null(m);
	return m;
}

/* What the future failed with. */
static inline void
failed(enum xr_status status, const char *words)
{
	struct xr_error why = { 0 };

	cr_expect_eq(xr_future_wait(f, 0, NULL, &why), status);
	cr_expect_str_eq(why.text, words);
	xr_future_unref(f);
}

/* Returns true if "one" heard that nobody waits for @corr any more. */
static inline bool
cancels(uint64_t corr)
{
	const struct wire_message *m = wire_sent(MESSAGE_CANCEL, 1);

	return m != NULL && m->record.corr == corr && m->len == 0 &&
		m->record.flags == 0;
}

static inline int64_t
figure(enum figure which)
{
	struct figures_view view;

	figures_sum(&view);
	return view.count[which];
}

static inline struct xr_value *
error_of(enum xr_status status, const char *text)
{
	const struct xr_failure fail = { .size = sizeof(fail),
		.status = status,
		.text = text };

	return xr_value_new_error(&fail);
}

static unsigned reads;

static inline struct xr_value *
read_length(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *e)
{
	cr_expect_eq(from, wire_peer[1]);
	cr_expect_eq(record->kind, MESSAGE_REPLY);
	reads++;
	if (body->len > 0)
		return xr_value_new_u64(body->len);
	fail(e, XR_E_RANGE, "it is empty");
	return NULL;
}

#endif /* TESTS_UNIT_ASK_RIG_H */
