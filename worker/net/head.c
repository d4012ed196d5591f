/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - see head.h. */
#include "base/crc32c.h"
#include "base/status.h"
#include "store/number.h"
#include "worker/net/head.h"

#define SUMMED (NET_HEAD - 4)

void
net_head_put(char out[NET_HEAD], const struct net_head *head)
{
	out[0] = (char)head->record.kind;
	out[1] = (char)head->record.flags;
	number_put(out + 2, head->record.aux, 2);
	number_put(out + 4, head->record.method, 4);
	number_put(out + 8, head->record.corr, 8);
	number_put(out + 16, head->len, 8);
	number_put(out + SUMMED, crc32c(0, out, SUMMED), 4);
}

enum xr_status
net_head_get(const char in[NET_HEAD], struct net_head *head,
	struct xr_error *err)
{
	uint64_t len = number_get(in + 16, 8);

	if (number_get(in + SUMMED, 4) != crc32c(0, in, SUMMED))
		return fail(err, XR_E_PROTO,
			"it sent what is no message: the checksum does not fit");
	if (len > XR_MESSAGE_MAX)
		return fail(err, XR_E_PROTO,
			"it announced a message of %llu bytes, at most %llu",
			(unsigned long long)len,
			(unsigned long long)XR_MESSAGE_MAX);
	head->record = (struct xr_record){
		.kind = (uint8_t)in[0],
		.flags = (uint8_t)in[1],
		.aux = (uint16_t)number_get(in + 2, 2),
		.method = (uint32_t)number_get(in + 4, 4),
		.corr = number_get(in + 8, 8),
	};
	head->len = len;
	return XR_OK;
}
