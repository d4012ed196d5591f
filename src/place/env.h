/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - the environment of every rank of a program, made once.
 *
 * env_new() works out what its ranks have in common: what is inherited, what
 * is scrubbed, the rows of the profiles (profile.h), the platform's variables
 * and --env. env_of_rank() then writes the few texts that differ into room
 * that was set aside, and hands out an array for execve(2). It allocates
 * nothing, costs about a microsecond, and its result is good until the next
 * call: exec copies it.
 *
 * Of several sources for one name the strongest wins: --env, platform, rows,
 * inherited. Nobody else gets to see the names that scrubbing or a row took.
 *
 * Everything in struct env_facts is borrowed for the life of the env. Values
 * are bytes and are never looked into.
 */
#ifndef PLACE_ENV_H
#define PLACE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>

#include "base/buf.h"
#include "base/stdio_tag.h"
#include "place/pjrt.h"
#include "place/plan.h"
#include "place/profile.h"

struct env;

struct env_var {
	const char *name, *value;
};

/* What the platform gives to the ranks of one deal. */
struct env_given {
	const struct env_var *vars;
	uint32_t count;
};

/* The ranks of one program of several. */
struct env_part {
	uint32_t index; /* from 0 */
	uint32_t first; /* local rank of its first rank here */
	uint32_t size;  /* ranks here; 0: all there are */
};

struct env_facts {
	char *const *inherited;
	const struct plan *plan;
	struct env_part part;
	unsigned profiles; /* of profiles_parse() */

	const char *job;         /* id */
	const char *master_addr; /* NULL: no MASTER_* rows */
	uint16_t master_port;    /* 0: no MASTER_PORT row */
	bool agent_store;   /* the launcher serves a store at MASTER_PORT */
	uint16_t mesh_port; /* 0: env_needs() said there is no need */
	uint32_t max_restarts;
	uint32_t threads; /* cores a rank is bound to, the fewest; 0: as 1 */
	/* NULL: no TORCHELASTIC_ERROR_FILE. It is read for each rank, and may
	 * become longer by the digits of a number meanwhile. */
	const char *attempt_dir;
	const char *join;    /* behind it: "/", or "-" if it is a prefix */
	const char *control; /* XRUN_CONTROL_FD; NULL: neither is it nor
			      * XRUN_STORE, which goes that way */
	bool segment;        /* there may be an XRUN_SEGMENT_FD */
	bool full_buffers;   /* --buffer full: leave Python alone */
	bool no_mpi;         /* ranks must not initialise MPI: XRUN_NO_MPI */
	const char *preload; /* agent, put behind LD_PRELOAD; or NULL */
	const char *python;  /* folder, appended to PYTHONPATH; or NULL */

	const char *platform;          /* name of the plug-in: "cuda" */
	const struct env_given *given; /* one a deal of the plan; or NULL */
	const struct pjrt *pjrt;       /* NULL without the profile */

	const char *const *user; /* --env, in order */
	size_t user_count;
	const char *const *pass; /* --env-pass: globs, with commas */
	size_t pass_count;       /* 0: all that is inherited passes */
	const char *user_source; /* where they were said; NULL: "--env" */
	/* Is it XRUN_<option>? Asked of XRUN_ names only. NULL: none is. */
	bool (*is_option)(const void *arg, struct span name);
	const void *is_option_arg;
};

#define ENV_SEGMENT_MAX 32

/* What differs from rank to rank beyond its number, or from attempt to attempt. */
struct env_rank {
	uint32_t local_rank;
	uint32_t attempt;  /* 0 at the first start */
	const char *stdio; /* XRUN_STDIO, under STDIO_TAG_MAX bytes; or NULL */
	const char
		*segment; /* XRUN_SEGMENT_FD, under ENV_SEGMENT_MAX; or NULL */
};

/*
 * env_new() - everything that can fail, before the first rank.
 *
 * Returns  XR_OK; XR_E_INVAL: an --env that is no NAME=VALUE, or says what
 *          only xrun can say; @err names it
 */
enum xr_status env_new(struct env **env, const struct env_facts *facts,
	struct xr_error *err);
void env_free(struct env *env);

/* env_of_rank() - NULL-terminated, good until the next call on @env. @rank is
 * one of the program's. */
char *const *env_of_rank(struct env *env, const struct env_rank *rank);

/* Which held ports the variables will name. */
struct env_needs {
	bool master_port, mesh_port;
};

/* env_needs() - ask before env_new(), with the ports still 0. */
struct env_needs env_needs(const struct env_facts *facts);

/* One variable of a rank, for --show-env. All borrowed. */
struct env_item {
	struct span name;
	const char *value;
	enum env_origin origin;
	const char *source; /* "inherited", "profile torch", "platform cuda" */
	const char *hides;  /* the inherited value it replaced; or NULL */
};

typedef void env_item_fn(void *arg, const struct env_item *item);

/* env_each() - every variable of @rank, as env_of_rank() has them. */
void env_each(struct env *env, const struct env_rank *rank, env_item_fn *fn,
	void *arg);

/* One inherited variable that ranks do not get. */
struct env_removed {
	struct span name;
	const char *value;
	const struct env_scrub *rule;
};

typedef void env_removed_fn(void *arg, const struct env_removed *removed);

void env_each_removed(const struct env *env, env_removed_fn *fn, void *arg);

/* env_check() - returns XR_OK if @text is a valid NAME=VALUE of --env. */
enum xr_status env_check(const char *text, struct xr_error *err);

#endif /* PLACE_ENV_H */
