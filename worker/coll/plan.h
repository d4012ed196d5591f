/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what each operation sends to whom, and what it does with what came: one
 * row each.
 *
 * Up to PLAN_WHOLE bytes everybody sends all to everybody, and each works out the
 * same. Of more each member works out one slice, and sends that to those who want
 * it. Source of the two: performance.md 3.5, 5.7.
 */
#ifndef WORKER_COLL_PLAN_H
#define WORKER_COLL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/coll.h>
#include <xrun/value.h>

struct op;

#define PLAN_NONE  SIZE_MAX    /* no message at all */
#define PLAN_WHOLE (64U << 10) /* bytes, of two members; of more half of it */
#define PLAN_TOLD  (UINT64_C(1) << 63) /* in a code: the name says all of it */

/* Who has something that others look at: a member's data, but of shares the root's list. */
enum plan_shows {
	SHOWS_NOTHING,
	SHOWS_ALL,
	SHOWS_ROOT,
	SHOWS_OTHERS, /* than the root */
	SHOWS_SHARES,
};

struct plan {
	const char *name; /* "all_reduce" */
	uint64_t code;    /* hashed for the wire, and never another's */
	bool reduces, has_root;
	enum plan_shows shows;
	uint32_t (*stages)(const struct op *op);

	/* gives() - what goes to member @to; a length of PLAN_NONE: nothing. */
	struct xr_part (*gives)(const struct op *op, uint32_t stage,
		uint32_t to);
	/* wants() - how many bytes come of @from; PLAN_NONE. */
	size_t (*wants)(const struct op *op, uint32_t stage, uint32_t from);
	/* work() - what wants() asked for is here. XR_OK or XR_E_NOMEM. */
	enum xr_status (*work)(struct op *op, uint32_t stage);
	/* begin() - before anything is sent; NULL: there is nothing to do. */
	void (*begin)(struct op *op);
};

extern const struct plan plan_barrier, plan_bcast, plan_allreduce, plan_reduce,
	plan_allgather, plan_gather, plan_scatter;

/* plan_is_roots() - does only a root have something? Others wait for it alone, and it for
 * nobody. */
static inline bool
plan_is_roots(const struct plan *plan)
{
	return (plan->shows == SHOWS_ROOT || plan->shows == SHOWS_SHARES) &&
		(plan->code & PLAN_TOLD) == 0;
}

/* plan_whole() - bytes up to which all is sent to all, in groups as large as @team.
 * plan_is_whole() - is that so of @op? */
size_t plan_whole(const struct xr_coll *team);
bool plan_is_whole(const struct op *op);

/* What one member works out of a reduction. */
struct slice {
	size_t first, count; /* elements */
	size_t at, len;      /* bytes */
};

/* plan_slice() - that of member @place, of @count elements of @one bytes. */
struct slice plan_slice(size_t count, size_t one, uint32_t members,
	uint32_t place);

/* plan_line() - bytes that a member shows of @op, if all show them to each other at once;
 * plan_show() puts them there; plan_see(): what @from shows is what came of it. */
size_t plan_line(const struct op *op);
void plan_show(const struct op *op, void *line);
void plan_see(struct op *op, uint32_t from, const void *line);

/* plan_text() - what is called, for a person: "all_reduce of 4 f32, sum". */
void plan_text(const struct plan *plan, const struct xr_coll_op *call,
	char *text, size_t cap);

/* plan_find() - the plan of an operation with this code; NULL: none has it. */
const struct plan *plan_find(uint64_t code);

const char *plan_redop_name(enum xr_redop op); /* "sum"; "?" */

#endif /* WORKER_COLL_PLAN_H */
