/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.h - one table of settings; everything about a setting follows from it.
 *
 * From a row come --name, -l and --no-name on the command line, XRUN_NAME (and
 * XRUN_NO_NAME) in the environment, the lines of the help, the paragraph of
 * the manual and the word in shell completion. Defaults are written as a
 * person would type them and go through the same parser.
 *
 * A value is set by the strongest of: default, environment, command line; of
 * two on the command line the last counts. It lands in the caller's struct at
 * `offset`. Text borrows from argv and environ, which outlive the settings.
 * Only lists allocate; opt_fini() frees them. One owner, one thread.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "xrun/error.h"

enum opt_type {
	OPT_FLAG,     /* bool: 1 true yes on, 0 false no off */
	OPT_INT,      /* int64_t */
	OPT_SIZE,     /* int64_t bytes: 64k, 1.5M, 1G (powers of 1024) */
	OPT_DURATION, /* int64_t nanoseconds: 250ms, 1.5s, 10m, 1h, or 0 */
	OPT_TEXT,     /* const char *, never empty; one of choices if given */
	OPT_CHOICE,   /* int: index into choices */
	OPT_SIGNAL,   /* int: TERM, SIGTERM, 15 */
	OPT_LIST,     /* struct opt_list: repeatable text */
};

enum opt_source { OPT_DEFAULT, OPT_ENV, OPT_ARGV };

/* What a stronger source says replaces all that a weaker one said. */
struct opt_list {
	const char **items;
	size_t n;
	char *own; /* lines of an environment variable, taken apart */
};

struct opt {
	const char *name;  /* "stop-signal"; NULL ends the table */
	const char *alias; /* "np": also -np VALUE; or NULL */
	char letter;       /* 'n', or 0 */
	enum opt_type type;
	bool maybe;        /* --name or --name=VALUE; `given` says if at all */
	bool common;       /* among the few that -h shows */
	const char *group; /* heading; on the first row of each group */
	const char *arg;   /* "FILE", as shown; NULL for flags and choices */
	const char *dflt;  /* as typed; NULL: the field is left as it is */
	int64_t min,
		max; /* inclusive, in the value's unit; numbers need them */
	const char *const *choices;       /* NULL-terminated */
	bool (*valid)(const char *value); /* is it an `arg`?  or NULL */
	size_t offset;                    /* of the value in the settings */
	size_t given;     /* of a bool in the settings, if `maybe` */
	const char *help; /* one line, no full stop */
	const char *text; /* sentences for the manual, *bold* and _under_ */
};

/* A name that is fixed but not built yet: no row, but an answer. */
struct opt_later {
	const char *name; /* NULL ends the table */
	char letter;      /* or 0 */
};

#define OPT_ROWS_MAX 64

/* A table together with the settings it fills. */
struct opts {
	const struct opt *table;
	const struct opt_later *later; /* or NULL */
	void *base;                    /* the settings */
	uint8_t source[OPT_ROWS_MAX];  /* enum opt_source of each row */
};

/* opt_init() - every row's default. A wrong one is a bug and aborts. */
void opt_init(struct opts *opts, const struct opt *table, void *base);

/* opt_fini() - free what lists hold. */
void opt_fini(struct opts *opts);

/*
 * opt_env() - take one entry of environ.
 *
 * @entry: "XRUN_RANKS=8"; borrowed for the life of the settings. An empty
 *         value is as if it were not there. XRUN_NO_NAME=1 is for flags
 * @known: receives whether it names a row, or one that comes later
 *
 * Returns  XR_OK; XR_E_NOTFOUND (comes later), XR_E_INVAL or XR_E_RANGE with
 *          the variable, its text and what would be right in @err; XR_E_NOMEM
 */
enum xr_status opt_env(struct opts *opts, const char *entry, bool *known,
	struct xr_error *err);

/*
 * opt_argv() - options from argv[1] up to the first operand or behind "--".
 *
 * @next:   the index of the first operand, argc if there is none; on failure,
 *          of the word that was refused
 *
 * Returns  XR_OK; XR_E_NOTFOUND (no such option, or it comes later),
 *          XR_E_INVAL (bad or missing value), XR_E_RANGE, XR_E_NOMEM
 */
enum xr_status opt_argv(struct opts *opts, int argc, char **argv, int *next,
	struct xr_error *err);

/* opt_source() - who set the row called @name; it must exist. */
enum opt_source opt_source(const struct opts *opts, const char *name);

/* opt_find() - the row called @name, or NULL. */
const struct opt *opt_find(const struct opt *table, struct span name);

/* opt_env_is() - does this environment name, "XRUN_...", belong to a row? */
bool opt_env_is(const struct opts *opts, struct span name);

/* opt_env_name() - "XRUN_STOP_SIGNAL" of "stop-signal"; 64 is enough. */
void opt_env_name(const char *name, char *out, size_t cap);

/* opt_suggest_env() - "XRUN_RANKS" for "XRUN_RNAKS", or "" if none is near. */
void opt_suggest_env(const struct opt *table, struct span name, char *out,
	size_t cap);

#endif /* BASE_OPT_H */
