/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/value.h - what calls carry: numbers, text, lists, tensors, references.
 *
 * A value is counted, and has no parent: a list holds a reference to each of
 * its items. Whoever makes one is its only owner, and may add to it; from the
 * first xr_value_ref(), or once it stands in another value or was given to a
 * call, it never changes, and any thread may read it. What is read out of it is
 * borrowed, for as long as it lives. A pointer to a value is no address that may be
 * looked at: most numbers need no memory.
 *
 * Text is UTF-8 without a NUL. Nothing here runs what stands in a value.
 */
#ifndef XRUN_VALUE_H
#define XRUN_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_VALUE_DEPTH_MAX 64        /* lists and dicts in each other */
#define XR_VALUE_ITEMS_MAX (1 << 24) /* of a list or dict */
#define XR_VALUE_BYTES_MAX (INT64_C(1) << 40) /* of bytes, text or a tensor */

/* Numbers are on the wire, and are never reused. */
enum xr_kind {
	XR_NIL = 0,
	XR_BOOL = 1,
	XR_I64 = 2,
	XR_U64 = 3,
	XR_F64 = 4,
	XR_C128 = 5,
	XR_BYTES = 6,
	XR_TEXT = 7,
	XR_LIST = 8,
	XR_DICT = 9,
	XR_TENSOR = 10, /* xrun/tensor.h */
	XR_RREF = 11,   /* xrun/rref.h */
	XR_WORKER = 12,
	XR_ERROR = 13,
	XR_OPAQUE = 14, /* of a registered type */
	XR_FUNC = 15,   /* the name of a function, with what it was bound to */
};

struct xr_value;

/* xr_kind_name() - "list"; "?" for a number of no row. */
const char *xr_kind_name(enum xr_kind kind);

/*
 * xr_value_new_...() - a value with one reference, the caller's; release with
 * xr_value_unref().
 *
 * Bytes and text are copied. @len of text is without a NUL, which it need not
 * have.
 *
 * Returns  NULL: no memory; text that is no UTF-8 or has a NUL; too long
 * Thread   any.  Blocks: no.
 */
struct xr_value *xr_value_new_nil(void);
struct xr_value *xr_value_new_bool(bool b);
struct xr_value *xr_value_new_i64(int64_t i);
struct xr_value *xr_value_new_u64(uint64_t u);
struct xr_value *xr_value_new_f64(double f);
struct xr_value *xr_value_new_c128(double re, double im);
struct xr_value *xr_value_new_bytes(const void *data, size_t len);
struct xr_value *xr_value_new_text(const char *text, size_t len);
struct xr_value *xr_value_new_list(void);
struct xr_value *xr_value_new_dict(void);
struct xr_value *xr_value_new_worker(const char *name, uint32_t id);

/* xr_value_new_list_of() - a list of @count items, whose references are taken,
 * also on failure; NULL if one of them is NULL. */
struct xr_value *xr_value_new_list_of(struct xr_value *const *items,
	size_t count);

/* Releases @data, which the library no longer reads. Called once, on any thread. @ctx: as
 * given with @data. */
typedef void xr_free_fn(void *data, void *ctx);

/* xr_value_wrap_bytes() - the same, of @data, which stays where it is; @free_fn
 * is called with it, on any thread, when nobody needs it any more; NULL: it
 * outlives the value. On failure it is not called. */
struct xr_value *xr_value_wrap_bytes(const void *data, size_t len,
	xr_free_fn *free_fn, void *ctx);

/* xr_value_ref() - one more reference to it; gives it back. It never changes
 * any more. */
struct xr_value *xr_value_ref(struct xr_value *value);
void xr_value_unref(struct xr_value *value); /* NULL is fine */

/*
 * xr_value_append() - @item at the end of a list.
 *
 * @item: its reference is taken, also on failure; NULL is XR_E_NOMEM, so that
 *        a chain of constructors is looked at once
 *
 * Returns  XR_OK; XR_E_INVAL: no list, or @item is the list itself, which stays
 *          the caller's; XR_E_STATE: it is shared; XR_E_RANGE: full, or too
 *          deep; XR_E_NOMEM
 */
enum xr_status xr_value_append(struct xr_value *list, struct xr_value *item);

/* xr_value_put() - @item under @key in a dict, in place of what was there; as
 * xr_value_append(). @key is any bytes, copied. Entries keep the order in which
 * their keys came first. */
enum xr_status xr_value_put(struct xr_value *dict, const void *key, size_t len,
	struct xr_value *item);

enum xr_kind xr_value_kind(const struct xr_value *value);

/* xr_value_get_...() - what it is. XR_E_SCHEMA: it is of another kind. An I64
 * that is not negative is a U64, too, and the other way round where it fits, and
 * both are an F64 where that is exact. */
enum xr_status xr_value_get_bool(const struct xr_value *value, bool *b);
enum xr_status xr_value_get_i64(const struct xr_value *value, int64_t *i);
enum xr_status xr_value_get_u64(const struct xr_value *value, uint64_t *u);
enum xr_status xr_value_get_f64(const struct xr_value *value, double *f);
enum xr_status xr_value_get_c128(const struct xr_value *value, double *re,
	double *im);

/* xr_value_data() - of BYTES and TEXT; NULL with @len 0 for other kinds. Behind
 * TEXT is a NUL, and behind BYTES unless they were wrapped, or came in a
 * message. */
const void *xr_value_data(const struct xr_value *value, size_t *len);

/* xr_value_count() - items of a list or dict; 0 for other kinds. */
size_t xr_value_count(const struct xr_value *value);

/* xr_value_at() - item @i of a list or dict, borrowed; NULL: there is none. */
struct xr_value *xr_value_at(const struct xr_value *value, size_t i);

/* xr_value_key() - the key of entry @i of a dict; NULL: there is none. */
const void *xr_value_key(const struct xr_value *dict, size_t i, size_t *len);

/* xr_value_find() - what stands under @key; NULL: nothing does. */
struct xr_value *xr_value_find(const struct xr_value *dict, const void *key,
	size_t len);

/* xr_value_worker() - name and id of a WORKER; NULL: it is none. */
const char *xr_value_worker(const struct xr_value *value, uint32_t *id);

/* xr_value_equal() - the same kind and content, all the way down: numbers by
 * their bits, dicts in any order, tensors by dtype, shape and elements, references
 * by their ids, opaque values by their encoding. What cannot be read, of a device
 * or for want of memory, is equal to itself only. */
bool xr_value_equal(const struct xr_value *a, const struct xr_value *b);

/* --- what went wrong elsewhere -------------------------------------------- */

/* Borrowed from the value. Texts of any length, NULL where there is none. */
struct xr_failure {
	uint32_t size;         /* sizeof(struct xr_failure) */
	enum xr_status status; /* as the function gave it */
	const char *type;      /* "ValueError": of other languages */
	const char *text;
	const char *func;   /* that failed */
	const char *worker; /* where */
	uint32_t worker_id;
	const char *backtrace;  /* lines */
	struct xr_value *cause; /* another ERROR; or NULL */
};

/* xr_value_new_error() - all is copied, @failure's cause referred to; what of the
 * texts is no UTF-8 becomes '?'. NULL: no memory, a cause that is no ERROR, or
 * more than XR_VALUE_DEPTH_MAX of them. */
struct xr_value *xr_value_new_error(const struct xr_failure *failure);

/* xr_value_failure() - XR_E_SCHEMA: it is no ERROR. @failure->size is set by the
 * caller. */
enum xr_status xr_value_failure(const struct xr_value *value,
	struct xr_failure *failure);

/* --- types of the program's own ------------------------------------------- */

struct xr_call;

/* A method that references to objects of the type have: as a function, with the
 * object; see xrun/func.h. @self is NULL for a static one. */
struct xr_method {
	uint32_t size;
	const char *name;
	const char *schema;
	uint32_t flags; /* enum xr_func_flags */
	bool is_static;
	enum xr_status (*fn)(struct xr_call *call, void *self,
		struct xr_value *args, void *ctx);
};

/*
 * A type is known by its name, in every process that makes or reads values of
 * it. Its functions are called on any thread, and must not call into the library
 * but to make and read values.
 */
struct xr_type {
	uint32_t size;    /* sizeof(struct xr_type) */
	const char *name; /* [A-Za-z0-9_.:-]{1,127} */

	/* encode() - @object as bytes, in a BYTES value. NULL: XR_E_ENCODE. */
	struct xr_value *(*encode)(void *object, void *ctx);
	/* decode() - the other way round. NULL: XR_E_DECODE. */
	void *(*decode)(const void *data, size_t len, void *ctx);
	void (*free)(void *object, void *ctx); /* NULL: nothing to free */

	const struct xr_method *methods; /* [method_count] */
	uint32_t method_count;
	void *ctx;
};

/*
 * xr_type_register() - make @type known; it is copied, with its names.
 *
 * Returns  XR_OK; XR_E_INVAL: a name that is none; XR_E_EXISTS; XR_E_NOMEM
 */
enum xr_status xr_type_register(const struct xr_type *type,
	struct xr_error *err);

/* xr_value_new_opaque() - takes @object, also on failure. NULL: no such type, no
 * memory. */
struct xr_value *xr_value_new_opaque(const char *type, void *object);

/* xr_value_object() - of an OPAQUE of this type; NULL: it is none. @type NULL:
 * of any. */
void *xr_value_object(const struct xr_value *value, const char *type);

/* xr_value_type() - the name of an OPAQUE's type; NULL: it is none. */
const char *xr_value_type(const struct xr_value *value);

/*
 * xr_fn_bind() - the function @name, to be called with @bound in front of its
 * arguments; NULL: with nothing. It is looked up where it is called. Takes @bound,
 * also on failure. NULL: no memory, @name is none, or @bound is too deep.
 */
struct xr_value *xr_fn_bind(const char *name, struct xr_value *bound);

/* xr_value_func() - its name, and what it was bound to, or NULL; NULL: no FUNC. */
const char *xr_value_func(const struct xr_value *value,
	struct xr_value **bound);

/* --- as bytes ------------------------------------------------------------- */

enum xr_enc_mode {
	XR_ENC_COPY = 0, /* the reader has memory of its own */
	XR_ENC_SHARE =
		1, /* both have the same: tensors in shared memory only */
};

struct xr_enc_opts {
	uint32_t size;         /* sizeof(struct xr_enc_opts) */
	enum xr_enc_mode mode; /* copies tensors or shares their memory */
	uint32_t checksum;     /* 1: CRC-32C of all that is not a buffer */
};

struct xr_part {
	const void *data;
	size_t len;
};

struct xr_encoded;

/*
 * xr_encode() - @value as parts: a head, then the buffers of tensors and long
 * bytes, where they lie. Nothing of a buffer is copied, so none may change until
 * the parts were written. @value is kept until xr_encoded_free().
 *
 * @opts: NULL: COPY, no checksum
 *
 * A tensor that needs half of its storage or less, if that has 8 KiB or more, is
 * sent without what no tensor of the message needs; if it has gaps, and is the
 * only one there, packed. With SHARE all of a storage goes, and bytes that are not
 * in shared memory are copied.
 *
 * Returns  XR_OK; XR_E_INVAL: NULL, or no such mode; XR_E_ENCODE: @err says what
 *          cannot be: a reference outside of a call, a type without encoder,
 *          SHARE of a tensor in private memory; XR_E_RANGE: too large;
 *          XR_E_NODEV, XR_E_DEVICE: a tensor of a device; XR_E_NOMEM
 */
enum xr_status xr_encode(struct xr_value *value, const struct xr_enc_opts *opts,
	struct xr_encoded **encoded, struct xr_error *err);

/* xr_encoded_parts() - [@count], the first of them the head. */
const struct xr_part *xr_encoded_parts(const struct xr_encoded *encoded,
	size_t *count);

/* xr_encoded_fds() - of shared memory that goes with it, to be sent in this
 * order; borrowed. @count 0 with COPY. */
const int *xr_encoded_fds(const struct xr_encoded *encoded, size_t *count);
void xr_encoded_free(struct xr_encoded *encoded); /* NULL is fine */

struct xr_dec_opts {
	uint32_t size;      /* sizeof(struct xr_dec_opts) */
	uint64_t bytes_max; /* of all that is made; 0: XR_VALUE_BYTES_MAX */
	const int *fds;     /* [fd_count]: borrowed; of XR_ENC_SHARE */
	size_t fd_count;    /* descriptors */
};

/*
 * xr_decode() - the value of @count parts, which may be cut anywhere.
 *
 * Runs nothing but decoders of registered types, and makes no more than was
 * announced, is there, and is allowed.
 *
 * Returns  XR_OK; XR_E_DECODE: @err says what is wrong, and where; XR_E_VERSION;
 *          XR_E_RANGE: beyond a limit; XR_E_NODEV, XR_E_DEVICE: a tensor that is
 *          to lie on a device here; XR_E_INVAL: @opts; XR_E_NOMEM
 */
enum xr_status xr_decode(const struct xr_part *parts, size_t count,
	const struct xr_dec_opts *opts, struct xr_value **value,
	struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_VALUE_H */
