/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what stands in the file of a file:// store, one behind the other.
 *
 *	"xrun store 1\n" and three 0          the file begins so
 *	u32 magic   u8 operation   3 times 0   then, of each record,
 *	u32 bytes of the key   u64 bytes of the value   u32 of both, checked
 *	the key, the value
 *
 * All of it is little-endian. A record that is cut off at the end of the file
 * was being written when its writer was killed; the next writer begins there.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "xrun/error.h"

#define RECORD_FILE      "xrun store 1\n\0\0\0"
#define RECORD_FILE_HEAD 16
#define RECORD_HEAD      24

enum record_op {
	RECORD_SET = 1,
	RECORD_DELETE = 2,
};

struct record {
	enum record_op op;
	uint32_t key_len;
	uint64_t value_len;
};

/* record_put() - its head and the key, behind which the value comes. */
void record_put(struct buf *out, enum record_op op, struct span key,
	size_t value_len);

/* record_read() - RECORD_HEAD bytes. XR_E_PROTO: they are none. */
enum xr_status record_read(const char *head, struct record *out,
	struct xr_error *err);

#endif /* STORE_RECORD_H */
