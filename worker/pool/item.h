/* SPDX-License-Identifier: Apache-2.0 */
/*
 * item.h - tasks and results as they stand in queues: a head, and values behind it.
 *
 * What a task's function is stands in the pool's book, a memfd, at a place that the
 * task names: each worker reads it there once.
 */
#ifndef WORKER_POOL_ITEM_H
#define WORKER_POOL_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/value.h>

#include "worker/pool/pack.h"

enum item_form {
	ITEM_APPLY,   /* the values are arguments */
	ITEM_MAP,     /* each value is the one argument of a call */
	ITEM_STARMAP, /* each value is a LIST of arguments */
};

enum item_flags {
	ITEM_CODED = 1, /* the values are a LIST, as xr_encode() has it */
	ITEM_NAMED = 2, /* the last value is a DICT: of named arguments */
	ITEM_EACH =
		4, /* of a task: a call that fails does not end it. Of a result:
			 * the first value is BYTES, one for each other value: 1, that
			 * is an error */
	ITEM_FAILED = 8, /* of a result: the last value is the error of the call
			  * behind those that went well */
};

struct task_head {
	uint32_t index, gen; /* of the task */
	uint64_t at;         /* of the function, in the book */
	uint32_t len;        /* of what stands there */
	uint32_t entry;      /* number of the function; at most one at a time */
	uint32_t serial;     /* has it */
	uint32_t count;      /* values, but for the named ones */
	uint8_t form, flags;
};

struct result_head {
	uint32_t index, gen;
	uint32_t place; /* of the worker */
	uint32_t count; /* calls that went well */
	uint64_t ns;    /* all of it took */
	uint32_t flags;
	uint32_t began; /* in us, the low bits: for profiles */
};

/* The values of an item on their way. */
struct load {
	struct pack pack;
	struct xr_value *list; /* where they are coded */
	struct xr_encoded *encoded;
	struct xr_part parts[2]; /* of what is packed: the head first */
	struct xr_part *many;    /* of what is coded; or NULL */
	const struct xr_part *all;
	size_t count, len;
};

void load_init(struct load *l);
void load_fini(struct load *l);

/* load_code() - @list, which is taken, also on failure, goes as it is encoded. */
enum xr_status load_code(struct load *l, struct xr_value *list,
	struct xr_error *err);

/* load_head() - the parts of the item, behind @head. XR_E_NOMEM. */
enum xr_status load_head(struct load *l, const void *head, size_t len);

/* share_item() - a value that is an item of XR_ENC_SHARE: @head, and @list, which is
 * taken. NULL: no memory. */
struct xr_value *share_item(const void *head, size_t len,
	struct xr_value *list);

/* share_head() - the head of such a one, of @len bytes; @list: borrowed. False: it is
 * none. */
bool share_head(const struct xr_value *item, void *head, size_t len,
	struct xr_value **list);

/* What is read. */
struct unload {
	struct unpack unpack;
	struct xr_value *list; /* of one that is coded */
	size_t at;
};

/* unload_init() - @data outlives it. */
enum xr_status unload_init(struct unload *u, const void *data, size_t len,
	uint32_t flags, struct xr_error *err);
void unload_fini(struct unload *u);

/* unload_list() - the same, of what share_head() gave. */
void unload_list(struct unload *u, struct xr_value *list);

/* unload_nils() - as unpack_nils(), where that can be told. */
uint32_t unload_nils(struct unload *u, uint32_t most);

/* unload_next() - a reference; NULL: broken, or no memory. */
struct xr_value *unload_next(struct unload *u);

#endif /* WORKER_POOL_ITEM_H */
