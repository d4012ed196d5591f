/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "store/record.h"
#include "base/status.h"
#include "store/number.h"
#include "store/store.h"

#define MAGIC 0x52535258 /* "XRSR" */

/* Of lengths that nobody wrote it is another. */
static uint32_t
check_of(uint64_t key_len, uint64_t value_len)
{
	uint64_t sum = (key_len << 40 ^ value_len) * 0x9e3779b97f4a7c15;

	return (uint32_t)(sum >> 32);
}

void
record_put(struct buf *out, enum record_op op, struct span key,
	size_t value_len)
{
	char head[RECORD_HEAD] = { 0 };

	number_put(head, MAGIC, 4);
	head[4] = (char)op;
	number_put(head + 8, key.len, 4);
	number_put(head + 12, value_len, 8);
	number_put(head + 20, check_of(key.len, value_len), 4);
	buf_put(out, head, sizeof(head));
	buf_put(out, key.at, key.len);
}

enum xr_status
record_read(const char *head, struct record *out, struct xr_error *err)
{
	struct record r = {
		.op = (enum record_op)head[4],
		.key_len = (uint32_t)number_get(head + 8, 4),
		.value_len = number_get(head + 12, 8),
	};

	if (number_get(head, 4) != MAGIC ||
		(r.op != RECORD_SET && r.op != RECORD_DELETE) ||
		r.key_len > STORE_KEY_MAX || r.value_len > STORE_VALUE_MAX ||
		(r.op == RECORD_DELETE && r.value_len > 0) ||
		number_get(head + 20, 4) != check_of(r.key_len, r.value_len))
		return fail(err, XR_E_PROTO, "that is no record of a store");
	*out = r;
	return XR_OK;
}
