/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - how values lie in memory; inside of src/wire/value only.
 *
 * Each kind is a struct that begins with struct xr_value. References are counted
 * atomically. While a value has never been shared it belongs to one thread, which
 * may add to it; whatever stands in another value is shared.
 *
 * A number that fits is its own pointer (number.h): an odd one, which points nowhere.
 * It is not counted, is never made or freed, and is as good as shared. So the members
 * of struct xr_value are for who knows that there is one; node_kind() and what else
 * stands here is for any value.
 *
 * Depth is counted upwards: 0 is a leaf, and whatever holds others is one more
 * than the deepest of them. Nothing is made that is deeper than
 * XR_VALUE_DEPTH_MAX, so that whoever walks through a value may recurse.
 */
#ifndef WIRE_VALUE_NODE_H
#define WIRE_VALUE_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/rref.h>
#include <xrun/value.h>

#include "base/span.h"

#define VALUE_NAME_MAX 255 /* bytes of a function's name, as xrun/func.h */

/* Bytes and text of this length lie outside of a message's head. */
#define VALUE_LONG 1024

struct storage;

struct xr_value {
	_Atomic uint64_t refs;
	_Atomic bool shared; /* it never changes any more */
	uint8_t kind;        /* enum xr_kind */
	uint8_t depth;
};

struct value_number { /* I64, U64, F64: those that are too long for a pointer */
	struct xr_value head;
	uint64_t bits;
};

struct value_complex {
	struct xr_value head;
	double re, im;
};

struct value_bytes { /* BYTES, TEXT */
	struct xr_value head;
	const char *data; /* @own, or in @storage */
	size_t len;
	struct storage *storage; /* NULL: @own */
	char own[];
};

struct value_list {
	struct xr_value head;
	struct xr_value **items;
	size_t count, cap;
};

struct dict_entry {
	char *key; /* behind it a NUL */
	size_t len;
	uint64_t hash; /* not set while there is no index */
	struct xr_value *item;
};

struct value_dict {
	struct xr_value head;
	struct dict_entry *entries;
	size_t count, cap;
	uint32_t *index; /* NULL: few entries, which are looked through */
	size_t slots;    /* of @index, a power of 2; 0 is a free one */
};

struct value_worker {
	struct xr_value head;
	uint32_t id;
	char name[];
};

enum error_text {
	ERROR_TYPE,
	ERROR_TEXT,
	ERROR_FUNC,
	ERROR_WORKER,
	ERROR_BACKTRACE,
	ERROR_TEXTS,
};

struct value_error {
	struct xr_value head;
	int32_t status;
	uint32_t worker_id;
	struct xr_value *cause;
	const char *text[ERROR_TEXTS]; /* in @own; or NULL */
	char own[];
};

struct value_opaque {
	struct xr_value head;
	const struct xr_type *type; /* registered, so for ever */
	void *object;
};

struct value_func {
	struct xr_value head;
	struct xr_value *bound; /* or NULL */
	char name[];
};

struct value_rref {
	struct xr_value head;
	struct xr_rref *rref;
};

struct value_tensor {
	struct xr_value head;
	struct storage *storage;
	uint64_t offset; /* bytes */
	uint8_t dtype;   /* enum xr_dtype */
	uint8_t ndim;
	int64_t dims[]; /* [ndim] of the shape, [ndim] strides */
};

/* --- any kind -------------------------------------------------------------- */

/* node_new() - @size bytes, whose head is set up; the rest is not. */
void *node_new(enum xr_kind kind, size_t size);

/* node_is_number() - is it a number that is its own pointer? */
static inline bool
node_is_number(const struct xr_value *value)
{
	return ((uintptr_t)value & 1) != 0;
}

/* node_kind() - of a value that is not NULL. */
static inline enum xr_kind
node_kind(const struct xr_value *value)
{
	return node_is_number(value) ?
		(enum xr_kind)((uintptr_t)value >> 1 & 7) :
		(enum xr_kind)value->kind;
}

static inline bool
node_is(const struct xr_value *value, enum xr_kind kind)
{
	return value != NULL && node_kind(value) == kind;
}

static inline uint8_t
node_depth(const struct xr_value *value)
{
	return node_is_number(value) ? 0 : value->depth;
}

/* node_several() - may it stand in more than one place? Not of a number. */
static inline bool
node_several(const struct xr_value *value)
{
	return atomic_load_explicit(&value->refs, memory_order_relaxed) > 1;
}

/* node_release() - @count references less of what is counted. */
void node_release(struct xr_value *value, uint64_t count);

/* node_unref() - @count references less; NULL is fine. */
static inline void
node_unref(struct xr_value *value, uint64_t count)
{
	if (value != NULL && !node_is_number(value))
		node_release(value, count);
}

/* node_held() - @item stands in another value from now on. */
static inline void
node_held(struct xr_value *item)
{
	if (!node_is_number(item) &&
		!atomic_load_explicit(&item->shared, memory_order_relaxed))
		atomic_store_explicit(&item->shared, true,
			memory_order_relaxed);
}

/* node_above() - the depth of what holds @item, which may be NULL; false: that
 * is too deep. */
static inline bool
node_above(const struct xr_value *item, uint8_t *depth)
{
	*depth = item == NULL ? 1 : (uint8_t)(node_depth(item) + 1);
	return *depth <= XR_VALUE_DEPTH_MAX;
}

/* --- of one kind: what a value of it refers to is let go ------------------- */

void bytes_fini(struct xr_value *value);
void list_fini(struct xr_value *value);
void dict_fini(struct xr_value *value);
void error_fini(struct xr_value *value);
void opaque_fini(struct xr_value *value);
void func_fini(struct xr_value *value);
void rref_fini(struct xr_value *value);
void tensor_fini(struct xr_value *value);

/* --- making them of parts, for the decoder --------------------------------- */

/* bytes_new() - BYTES or TEXT, copied to memory of its own; NULL: no memory. */
struct xr_value *bytes_new(enum xr_kind kind, const void *data, size_t len);

/* bytes_over() - @len bytes of a storage, of which it takes a reference of its
 * own. */
struct xr_value *bytes_over(enum xr_kind kind, struct storage *storage,
	size_t len);

/* text_valid() - UTF-8 without a NUL? */
bool text_valid(const void *text, size_t len);

/* list_new() - with room for @count items. */
struct xr_value *list_new(size_t count);

/* dict_add() - as xr_value_put(), of a key that is not there: XR_E_EXISTS. */
enum xr_status dict_add(struct xr_value *dict, struct span key,
	struct xr_value *item);

/* worker_new() - NULL: no memory, or no name. */
struct xr_value *worker_new(struct span name, uint32_t id);
bool worker_name_valid(struct span name);

struct error_parts {
	int32_t status;
	uint32_t worker_id;
	struct xr_value *cause;        /* or NULL; borrowed */
	struct span text[ERROR_TEXTS]; /* at is NULL: there is none */
};

/* error_new() - what of its texts is no UTF-8 becomes '?'. NULL: no memory, @cause
 * is no ERROR, or too many causes of causes. */
struct xr_value *error_new(const struct error_parts *parts);

/* func_new() - takes @bound, also on failure. NULL: no memory, no name, too
 * deep. */
struct xr_value *func_new(struct span name, struct xr_value *bound);
bool func_name_valid(struct span name);

bool type_name_valid(struct span name);

/* opaque_new() - takes @object, also on failure. */
struct xr_value *opaque_new(const struct xr_type *type, void *object);

/* opaque_bytes() - its encoding, a new reference; NULL, with @err filled: it has
 * none. */
struct xr_value *opaque_bytes(const struct xr_value *value,
	struct xr_error *err);

#endif /* WIRE_VALUE_NODE_H */
