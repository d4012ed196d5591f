/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - the arguments of every rank of a program, made once (--template).
 *
 * args_new() takes the arguments apart, all but the program's name, and sets
 * room aside for the widest texts of any rank: one block. args_of_rank() then
 * writes those with a brace in them into that room, and hands out an array for
 * execve(2); the others are the caller's own, which are borrowed.
 */
#ifndef PLACE_ARGS_H
#define PLACE_ARGS_H

#include "place/env.h"
#include "place/plan.h"

struct args;

struct args_facts {
	char *const *argv; /* NULL-terminated, not empty; borrowed */
	const struct plan *plan;
	const char *job; /* id */
	struct env_part part;
};

/*
 * args_new() - everything that can fail, before the first rank.
 *
 * Returns  XR_OK; XR_E_INVAL as brace_next(), with the argument's number
 */
enum xr_status args_new(struct args **args, const struct args_facts *facts,
	struct xr_error *err);
void args_free(struct args *args);

/* args_of_rank() - NULL-terminated, good until the next call on @args. */
char *const *args_of_rank(struct args *args, uint32_t local_rank,
	uint32_t attempt);

#endif /* PLACE_ARGS_H */
