/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "store/record.h"
#include "base/status.h"
#include "store/store.h"

#define MAGIC 0x52535258 /* "XRSR" */

static void
put_number(char *out, uint64_t number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (char)(number >> 8 * i);
}

static uint64_t
get_number(const char *in, size_t bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < bytes; i++)
		number |= (uint64_t)(unsigned char)in[i] << 8 * i;
	return number;
}

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

	put_number(head, MAGIC, 4);
	head[4] = (char)op;
	put_number(head + 8, key.len, 4);
	put_number(head + 12, value_len, 8);
	put_number(head + 20, check_of(key.len, value_len), 4);
	buf_put(out, head, sizeof(head));
	buf_put(out, key.at, key.len);
}

enum xr_status
record_read(const char *head, struct record *out, struct xr_error *err)
{
	struct record r = {
		.op = (enum record_op)head[4],
		.key_len = (uint32_t)get_number(head + 8, 4),
		.value_len = get_number(head + 12, 8),
	};

	if (get_number(head, 4) != MAGIC ||
		(r.op != RECORD_SET && r.op != RECORD_DELETE) ||
		r.key_len > STORE_KEY_MAX || r.value_len > STORE_VALUE_MAX ||
		(r.op == RECORD_DELETE && r.value_len > 0) ||
		get_number(head + 20, 4) != check_of(r.key_len, r.value_len))
		return fail(err, XR_E_PROTO, "that is no record of a store");
	*out = r;
	return XR_OK;
}
