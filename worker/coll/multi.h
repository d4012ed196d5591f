/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multi.h - an operation of members that have several tensors each.
 *
 * It goes in pieces, each of which is brought to the host, is an operation of the
 * group (op.h) there, and is brought back; so little memory of the host is enough
 * for long tensors. In the end all meet: none has results of which another has
 * none. What is called is one text, in which everything stands that members can
 * differ in; it is the name of each of those operations, and its hash what they
 * compare.
 */
#ifndef WORKER_COLL_MULTI_H
#define WORKER_COLL_MULTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/coll.h>

#include "worker/coll/spot.h"

struct form;
struct plan;

struct multi {
	struct xr_coll *team;
	const struct form *form;
	const struct xr_coll_multi *call;
	char text[100]; /* what is called */
	int64_t deadline;
	struct spot *spot; /* [count] */
	struct spot *out;  /* [count][all]: of who gathers; there is none where
			    * the list is NULL */
	size_t all;        /* tensors of all members */
	uint8_t *stage;    /* the host's memory */
	void **list;       /* [members], [count]: places in it */
	size_t at, n;      /* the piece: elements */
	uint64_t step;     /* operations of the group so far */
};

struct form {
	const char *name;
	const struct plan *plan; /* of a piece */
	bool gathers;
	/* room() - bytes of the host's memory for an element. */
	size_t (*room)(const struct multi *m);
	/* before() - brings the piece to the host, for @op, whose data, count,
	 * type and so on it fills in. after() - brings back what came of it. */
	enum xr_status (*before)(struct multi *m, struct xr_coll_op *op,
		struct xr_error *err);
	enum xr_status (*after)(struct multi *m, struct xr_error *err);
};

/* multi_check() - of team, form and call, which are set, it works out text, spot, out
 * and all. Returns as xr_coll_bcast_multi(). */
enum xr_status multi_check(struct multi *m, struct xr_error *err);

#endif /* WORKER_COLL_MULTI_H */
