/* SPDX-License-Identifier: Apache-2.0 */
/* encode.h - a message while it is made, and what xr_encoded_free() lets go of;
 * inside of src/wire/value only. */
#ifndef WIRE_VALUE_ENCODE_H
#define WIRE_VALUE_ENCODE_H

#include "wire/value/seen.h"
#include "wire/value/storage.h"
#include "wire/value/tensor.h"
#include "wire/value/value_hooks.h"
#include "wire/value/writer.h"

struct encode_buffer {
	const struct storage *storage; /* NULL: of text */
	const void *data;              /* what is written: [len] */
	uint64_t len;
	enum format_use use;
	enum format_place place;
	enum xr_device_kind device_kind; /* where it is to arrive */
	int32_t device_index;

	/* Of a tensor's. */
	uint32_t views, first_view;
	uint64_t begin, end; /* the bytes of the storage that views need */
	uint64_t from;       /* @data is the storage from here on */
	bool packed;         /* @data is the elements of the only view */

	void *own;             /* a copy; to be freed */
	struct xr_value *keep; /* what nobody else has */
	uint64_t word[3];      /* of the descriptor, or the handle */
};

/* A tensor of the message. */
struct encode_view {
	const struct value_tensor *tensor;
	uint32_t buffer;
	size_t at; /* in the head: of its offset, shape, strides */
};

struct xr_encoded {
	struct xr_value *value;
	struct value_encoding how;
	struct xr_error *err; /* while it is made */
	struct writer head;
	size_t head_len; /* without what fills it up */
	uint64_t total;

	struct encode_buffer *buffers;
	uint32_t buffer_count, buffer_cap;
	struct encode_view *views;
	uint32_t view_count, view_cap;
	struct seen seen_buffers; /* by storage, or address of bytes */
	struct seen seen_tensors; /* by value; the number is that of a view */

	struct xr_part first; /* the head */
	struct xr_part *parts;
	size_t part_count;
	int *fds;
	size_t fd_count;
};

/* encode_tensor_buffer() - the number of the buffer of a tensor's storage, of
 * which the view stands at @at. */
enum xr_status encode_tensor_buffer(struct xr_encoded *e,
	const struct value_tensor *tensor, uint32_t *number);

/* encode_bytes_buffer() - of long bytes or text. @keep is NULL, or @value as an
 * object's encoding; it is taken, also on failure. */
enum xr_status encode_bytes_buffer(struct xr_encoded *e,
	const struct xr_value *value, struct xr_value *keep, uint32_t *number);

/* encode_view() - one more tensor: what it needs of its buffer. */
enum xr_status encode_view(struct xr_encoded *e,
	const struct encode_view *view);

/* encode_settle() - what is written of each buffer, and where it is; views are
 * put right in the head. */
enum xr_status encode_settle(struct xr_encoded *e);

#endif /* WIRE_VALUE_ENCODE_H */
