/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h - the bytes of a key, counted by reference.
 *
 * An answer of 64 MiB is sent for as long as its reader likes, while the store
 * has long put something else in its place: so both hold a reference, and
 * nothing is copied. Who makes a value may write its bytes until it hands it to
 * the store or to somebody else; from then on nobody does.
 *
 * References are counted plainly: a value stays on one thread.
 */
#ifndef STORE_VALUE_H
#define STORE_VALUE_H

#include <stddef.h>

struct store_value;

/* store_value_free_fn - the last reference is gone; frees value->ctx and what
 * lies at value->data, not the value. */
typedef void store_value_free_fn(struct store_value *value);

struct store_value {
	char *data;
	size_t len;
	size_t refs;
	store_value_free_fn *free; /* of a wrapped one; NULL otherwise */
	void *ctx;                 /* of @free: a mapping's descriptor, say */
};

/*
 * store_value_new() - room for @len bytes; they are those at @data, or not
 * written yet if @data is NULL. Behind them is a 0.
 *
 * store_value_wrap() - @len bytes that lie elsewhere, for ever the same: a
 * sealed memfd, say. @data is NULL where the store itself must not look at them:
 * they are no number then, and equal to nothing. @free may be NULL. It is not
 * called if the wrapping fails.
 *
 * Both return a value with one reference, the caller's; or NULL: no memory.
 */
struct store_value *store_value_new(const void *data, size_t len);
struct store_value *store_value_wrap(void *data, size_t len,
	store_value_free_fn *free, void *ctx);

/* store_value_ref() - one reference more; returns @value. */
struct store_value *store_value_ref(struct store_value *value);
void store_value_unref(struct store_value *value);

#endif /* STORE_VALUE_H */
