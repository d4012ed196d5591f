/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_hooks.h - what the layer of calls adds to values: references, devices,
 * and bodies that are read where they came.
 *
 * A reference means something only to the agent. So the agent tells this library
 * once how a handle is counted, and with each message how a handle becomes bytes
 * and comes back. xr_encode() and xr_decode() are the functions below without an
 * agent.
 */
#ifndef WIRE_VALUE_VALUE_HOOKS_H
#define WIRE_VALUE_VALUE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/rref.h>
#include <xrun/tensor.h>
#include <xrun/value.h>

/* --- handles --------------------------------------------------------------- */

/* Any thread; none may block. */
struct value_rref_ops {
	struct xr_rref *(*ref)(struct xr_rref *rref);
	void (*unref)(struct xr_rref *rref);
	bool (*equal)(const struct xr_rref *a, const struct xr_rref *b);
};

/* value_set_rref_ops() - before the first handle is made; they stay for the
 * process. Without them no RREF can be made. */
void value_set_rref_ops(const struct value_rref_ops *ops);
const struct value_rref_ops *value_rref_ops(void);

/* --- types ----------------------------------------------------------------- */

/* value_type_find() - as it was registered, for ever; NULL: nobody did. */
const struct xr_type *value_type_find(const char *name, size_t len);

/* value_method_find() - of a type; NULL: it has none of that name. */
const struct xr_method *value_method_find(const struct xr_type *type,
	const char *name);

/* --- messages -------------------------------------------------------------- */

#define VALUE_RREF_BYTES 64 /* of a reference in a message */

/* For one message. A function that is NULL: what needs it cannot be encoded,
 * or decoded. Failing, each fills @err. */
struct value_codec_ctx {
	void *ctx;
	enum xr_status (*rref_pack)(void *ctx, struct xr_rref *rref,
		uint8_t out[VALUE_RREF_BYTES], struct xr_error *err);
	/* rref_unpack() - @rref is the caller's, who calls unref(). */
	enum xr_status (*rref_unpack)(void *ctx,
		const uint8_t in[VALUE_RREF_BYTES], struct xr_rref **rref,
		struct xr_error *err);
	/* device() - on which device @desc, which lies on one here, is to arrive:
	 * device_kind and device_index are changed. Asked once for a storage,
	 * with the first tensor that views it. NULL: on the same. */
	enum xr_status (*device)(void *ctx, struct xr_tensor_desc *desc,
		struct xr_error *err);
	/* lend() - of VALUE_LEND: let the reader have [@data, @data + @len) where
	 * it is, by a number. @tensor: the program may write to it yet, else it
	 * stays as it is. False: it is copied. */
	bool (*lend)(void *ctx, const struct xr_part *part, bool tensor,
		uint64_t *number);
	/* borrow() - what came by a number, which anybody may have written, with
	 * @len bytes at least, good as long as the reader's owner is; NULL: there
	 * is no such. */
	void *(*borrow)(void *ctx, uint64_t number, uint64_t len);
};

enum value_mode {
	VALUE_COPY = XR_ENC_COPY,
	VALUE_SHARE = XR_ENC_SHARE,
	/* What can be handed over by a handle or a descriptor is, the rest is
	 * copied. */
	VALUE_HANDOVER = 2,
	/* What lend() takes is lent, the rest is copied. */
	VALUE_LEND = 3,
};

struct value_encoding {
	enum value_mode mode;
	bool checksum;
	const struct value_codec_ctx *ctx; /* NULL: none */
};

/* value_encode() - xr_encode(), with hooks. */
enum xr_status value_encode(struct xr_value *value,
	const struct value_encoding *how, struct xr_encoded **encoded,
	struct xr_error *err);

/* Memory in which a message lies, counted by whoever received it. Any thread. */
struct value_owner {
	void *owner;
	void (*ref)(void *owner);
	void (*unref)(void *owner);
	bool stable; /* nobody else can write to it */
};

/* A message to be read. All is borrowed for the call. */
struct value_reader {
	const struct xr_part *parts;
	size_t count;
	uint64_t bytes_max; /* of all that is made; 0: XR_VALUE_BYTES_MAX */
	const int *fds;     /* [fd_count] */
	size_t fd_count;
	const struct value_codec_ctx *ctx; /* NULL: none */
	/* Tensors and long bytes that lie in one part, at a multiple of 64, stay
	 * there, each with a reference to the owner. NULL: all is copied. */
	const struct value_owner *owner;
};

/*
 * value_decode() - xr_decode(), with hooks.
 *
 * Whoever wrote the message may go on writing to it: what is checked was copied
 * before, and what stays where it is may have any content.
 */
enum xr_status value_decode(const struct value_reader *reader,
	struct xr_value **value, struct xr_error *err);

#endif /* WIRE_VALUE_VALUE_HOOKS_H */
