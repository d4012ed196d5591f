/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - which variables xrun gives its ranks, and which it takes away.
 *
 * Two tables, and nothing else knows a variable's name. ENV_ROWS: what a rank
 * is told, by profile; env.c fills the rows in, --show-env prints them, and a
 * lint keeps options from bearing their names. The scrub table: what another
 * launcher told the process xrun was started in, which would be a lie to a
 * rank; user settings of the same families stay.
 */
#ifndef PLACE_PROFILE_H
#define PLACE_PROFILE_H

#include <stdbool.h>

#include <xrun/error.h>

#include "base/buf.h"

/* Where a variable of a rank comes from; the rows of 1 to 4 are profiles. */
enum env_origin {
	ENV_INHERITED,
	ENV_XRUN,
	ENV_TORCH,
	ENV_XRT,
	ENV_PJRT,
	ENV_PLATFORM, /* give() of the platform's plug-in */
	ENV_OPTION,   /* --env */
};

/* When a row counts. "Unset" looks at the inherited environment. */
enum env_when {
	ENV_ALWAYS,
	ENV_UNSET, /* only if unset */
	ENV_EMPTY, /* only if unset or empty */
	ENV_CROWD, /* only if unset, and there are several ranks here */
	ENV_LINES, /* only if unset, unless --buffer full */
};

/* F(field, changes from rank to rank) */
#define ENV_FIELDS(F) \
	F(job, false) \
	F(size, false) \
	F(local_size, false) \
	F(node, false) \
	F(nodes, false) \
	F(host, false) \
	F(master_addr, false) \
	F(master_port, false) \
	F(agent_store, false) \
	F(mesh_port, false) \
	F(max_restarts, false) \
	F(attempt_dir, true) \
	F(join, false) \
	F(control, false) \
	F(store, false) \
	F(threads, false) \
	F(part, false) \
	F(part_size, false) \
	F(no_mpi, false) /* number of ranks */ \
	F(local_worker, false) \
	F(pjrt_device, false) \
	F(tpu_process_bounds, false) \
	F(tpu_chip_bounds, false) \
	F(tpu_addresses, false) \
	F(rank, true) \
	F(rank4, true) /* with leading zeros: rank-0003 */ \
	F(local_rank, true) \
	F(part_rank, true) \
	F(attempt, true) \
	F(device, true) \
	F(stdio, true) \
	F(segment, true) \
	F(tpu_config, true) /* rank 0 only */ \
	F(tpu_chips, true) \
	F(tpu_task, true) \
	F(tpu_port, true)

enum env_field {
#define F(name, per_rank) FIELD_##name,
	ENV_FIELDS(F)
#undef F
		FIELD_COUNT,
};

/* A row is left out where a field of its value has nothing to say. */
struct env_row {
	enum env_origin profile;
	enum env_when when;
	const char *name;  /* NULL ends the table */
	const char *value; /* text with {field}s */
};

extern const struct env_row env_rows[];

/* Every name a row or a later version sets; NULL ends. */
extern const char *const env_output_names[];

/* env_field_find() - FIELD_rank of "rank"; FIELD_COUNT if there is none. */
enum env_field env_field_find(struct span name);
bool env_field_per_rank(enum env_field field);

struct env_scrub {
	const char *pattern; /* a name, or its beginning and a '*' */
	const char *why;
	bool inner; /* only where xrun runs inside of an XRT rank */
};

/* What is taken away, but for xrun's own; pattern NULL ends the table. */
extern const struct env_scrub env_scrub_rules[];

/* env_scrub_find() - the rule that removes @name, or NULL. */
const struct env_scrub *env_scrub_find(struct span name, bool inner);

/* env_scrub_option - the rule behind what env_facts.is_option() says. */
extern const struct env_scrub env_scrub_option;

/* env_scrub_pass - the rule behind --env-pass: it was not asked for. */
extern const struct env_scrub env_scrub_pass;

/* env_basic() - returns true if ranks get the variable regardless of --env-pass. */
bool env_basic(struct span name);

/* env_identity() - returns true if only xrun sets the variable and --env may not. */
bool env_identity(struct span name);

/* What profiles_parse() needs to know for "auto" and "xla". */
struct profile_facts {
	bool worker_list; /* struct plan, workers.present */
	bool tpu;         /* the platform is tpu, and devices are not "none" */
};

/*
 * profiles_parse() - the profiles of --env-profile as bits 1 << enum env_origin.
 *
 * auto: xrun, torch, and xrt under a worker list or else pjrt on a TPU. none:
 * xrun. A list has exactly what it names, and xrun; "auto" may stand in it;
 * "xla" is pjrt and, under a worker list, xrt.
 *
 * Returns  XR_OK; XR_E_INVAL naming the word and the profiles there are, or
 *          the worker list that xrt lacks
 */
enum xr_status profiles_parse(const char *text,
	const struct profile_facts *facts, unsigned *profiles,
	struct xr_error *err);

/* profiles_check() - returns XR_OK if @text names profiles only. Ignores the worker
 * list. */
enum xr_status profiles_check(const char *text, struct xr_error *err);

#endif /* PLACE_PROFILE_H */
