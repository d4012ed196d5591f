/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - a message while it is read; inside of src/wire/value only.
 *
 * The head is copied before any of it is looked at, and never read again where it
 * came. A failing function has filled @err.
 */
#ifndef WIRE_VALUE_DECODE_H
#define WIRE_VALUE_DECODE_H

#include "base/status.h"
#include "wire/value/format.h"
#include "wire/value/storage.h"
#include "wire/value/tensor.h"
#include "wire/value/value_hooks.h"

#define DECODE_FIRST 512 /* bytes of a head that needs no memory of its own */

struct decode_buffer {
	uint64_t len;
	uint64_t at; /* in the message */
	uint64_t word[3];
	struct storage *storage; /* NULL: nobody wanted it yet */
	int32_t device_index;
	uint8_t place, use, device_kind;
};

struct decoder {
	const struct value_reader *r;
	struct xr_error *err;
	uint64_t left; /* bytes that may be made */

	const uint8_t *head; /* [len] */
	size_t len, at;
	uint64_t total; /* bytes of the message */
	void *own;      /* @head, if it is long */
	uint8_t first[DECODE_FIRST];

	struct decode_buffer *buffers; /* [count] */
	uint32_t count, used;

	struct xr_value **tensors; /* [tensor_count], as they came; borrowed */
	size_t tensor_count, tensor_cap;

	/* Where the part begins that was read from last: buffers are wanted in
	 * their order. */
	size_t part;
	uint64_t part_at;
};

/* DECODE_BAD() - what is wrong in the head, and where. */
#define DECODE_BAD(d, fmt, ...) \
	fail((d)->err, XR_E_DECODE, "value: byte %zu: " fmt, \
		(d)->at __VA_OPT__(, ) __VA_ARGS__)

/* decode_spend() - @bytes more are made. XR_E_RANGE: more than may be. */
enum xr_status decode_spend(struct decoder *d, uint64_t bytes);
enum xr_status decode_no_memory(struct decoder *d);

/* decode_take() - the next @len bytes of the head; NULL: it ends before. */
const uint8_t *decode_take(struct decoder *d, size_t len);

/* decode_open() - the head, checked as far as its table. */
enum xr_status decode_open(struct decoder *d);

/* decode_finish() - every buffer was wanted. */
enum xr_status decode_finish(struct decoder *d);
void decode_close(struct decoder *d);

/* decode_buffer() - the one that the next u32 of the head names. */
enum xr_status decode_buffer(struct decoder *d, enum format_use use,
	struct decode_buffer **buffer);

/* decode_storage() - where its bytes are now. */
enum xr_status decode_storage(struct decoder *d, struct decode_buffer *b);

/* decode_stable() - its bytes where nobody else can write to them; *@own is to be
 * freed. */
enum xr_status decode_stable(struct decoder *d, struct decode_buffer *b,
	const void **data, void **own);

/* --- parts ----------------------------------------------------------------- */

/* parts_total() - bytes of all; false: no number has them. */
bool parts_total(const struct value_reader *r, uint64_t *total);

/* parts_at() - @len bytes from @at on, where one part has them all; else NULL.
 * parts_copy() - wherever they are. */
const void *parts_at(struct decoder *d, uint64_t at, uint64_t len);
void parts_copy(struct decoder *d, uint64_t at, void *out, uint64_t len);

#endif /* WIRE_VALUE_DECODE_H */
