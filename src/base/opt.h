/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.h - one table of settings; everything about a setting follows from it.
 *
 * From a row come --name, -l and --no-name on the command line, XRUN_NAME (and
 * XRUN_NO_NAME) in the environment, the key "name" in a file, the lines of the
 * help, the paragraph of the manual and the word in shell completion. Defaults
 * are written as a person would type them and go through the same parser.
 *
 * Sources are read from the weakest to the strongest, in the order of enum
 * opt_source, and the last that says something counts; of two on the command
 * line, too. A value lands in the caller's struct at `offset`. Text borrows
 * from argv, environ and what opt_file() keeps, which outlive the settings.
 * Only lists and files allocate; opt_fini() frees lists. One owner, one thread.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/gate.h"
#include "xrun/error.h"

enum opt_type {
	OPT_FLAG,     /* bool: 1 true yes on, 0 false no off */
	OPT_INT,      /* int64_t */
	OPT_SIZE,     /* int64_t bytes: 64k, 1.5M, 1G (powers of 1024) */
	OPT_DURATION, /* int64_t nanoseconds: 250ms, 1.5s, 10m, 1h30m, or 0 */
	OPT_TEXT,     /* const char *, never empty; one of choices if given */
	OPT_CHOICE,   /* int: index into choices */
	OPT_SIGNAL,   /* int: TERM, SIGTERM, 15 */
	OPT_LIST,     /* struct opt_list: repeatable text */
};

enum opt_source {
	OPT_DEFAULT,
	OPT_SYSTEM, /* the file of the machine */
	OPT_USER,   /* the file of the user */
	OPT_FILE,   /* the file that was asked for */
	OPT_ENV,
	OPT_ARGV,
};

/* What a stronger source says replaces all that a weaker one said. */
struct opt_list {
	const char **items;
	size_t n;
	char *own; /* lines of an environment variable, taken apart */
};

struct opt {
	const char *name; /* "stop-signal"; NULL ends the table */
	/* "np", shown as -np, or a word, shown as --word: both forms are read, and so
	 * is -np8 of a number; or NULL */
	const char *alias;
	char letter; /* 'n', or 0 */
	enum opt_type type;
	bool maybe;        /* --name or --name=VALUE; `given` says if at all */
	bool common;       /* among the few that -h shows */
	bool no_file;      /* cannot stand in a file */
	bool no_variable;  /* XRUN_NAME means something else */
	bool argv_only;    /* said elsewhere, it does not count */
	bool part;         /* of one program of several, not of the job */
	const char *group; /* heading; on the first row of each group */
	const char *arg;   /* "FILE", as shown; NULL for flags and choices */
	const char *no;    /* text: what --no-NAME means, as typed; or NULL */
	const char *dflt;  /* as typed; NULL: the field is left as it is */
	int64_t min,
		max; /* inclusive, in the value's unit; numbers need them */
	const char *const *choices;       /* NULL-terminated */
	bool (*valid)(const char *value); /* is it an `arg`?  or NULL */
	/* Of a text: fixed words that it may also be; NULL-terminated. */
	const char *const *words;
	/* Of a text: a regular expression of all it may be, for the schema,
	 * and in a file a whole number from `min` to `max` may stand for it,
	 * unless both are 0. Without a pattern any number may. Of a list of
	 * NAME=VALUE: of a name, without ^ and $. Or NULL */
	const char *pattern;
	/* Why it is no `arg`, without a name before it; not asked about the
	 * words. Looks at the value alone, not at the machine. Or NULL */
	enum xr_status (*check)(const char *value, struct xr_error *err);
	size_t offset;    /* of the value in the settings */
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
	/* where the value of each row stands, if its source is a file */
	struct gate_place place[OPT_ROWS_MAX];
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

/* A file of settings, and what its settings borrow from. */
struct opt_file {
	const char *name; /* in errors; borrowed */
	enum opt_source who;
	char *text; /* JSON with comments; becomes JSON */
	size_t len;
	char *values;       /* NULL at first; the caller frees, at the end */
	struct buf *errors; /* receives a line for each; or NULL */
	unsigned count;     /* receives how many settings it has */
};

/*
 * opt_file() - take the settings of a file: one object, names and values.
 *
 * A flag is true or false, a number a number or text with its unit, a list an
 * array; a list of NAME=VALUE also an object. "$schema" is passed over.
 *
 * Returns  XR_OK; else the status of the first error with its words in @err,
 *          "FILE:LINE:COLUMN: what is wrong", and all of them in file->errors.
 *          XR_E_DECODE (no JSON), XR_E_NOTFOUND (no such key, or it comes
 *          later), XR_E_INVAL, XR_E_RANGE, XR_E_NOMEM
 */
enum xr_status opt_file(struct opts *opts, struct opt_file *file,
	struct xr_error *err);
/* opt_of_job() - the first row set on the command line that is not of a part;
 * NULL: there is none. */
const struct opt *opt_of_job(const struct opts *opts);

/* opt_source() - who set the row called @name; it must exist. */
enum opt_source opt_source(const struct opts *opts, const char *name);

/* opt_find() - the row called @name, or NULL. */
const struct opt *opt_find(const struct opt *table, struct span name);

/* opt_time() - ns of "10m", "1h30m", as an OPT_DURATION is typed; false: it is
 * none. Too much is INT64_MAX. */
bool opt_time(const char *text, int64_t *ns);

/* opt_env_is() - does this environment name, "XRUN_...", belong to a row? */
bool opt_env_is(const struct opts *opts, struct span name);

/* opt_env_name() - "XRUN_STOP_SIGNAL" of "stop-signal"; 64 is enough. */
void opt_env_name(const char *name, char *out, size_t cap);

/* opt_suggest_env() - "XRUN_RANKS" for "XRUN_RNAKS", or "" if none is near. */
void opt_suggest_env(const struct opt *table, struct span name, char *out,
	size_t cap);

#endif /* BASE_OPT_H */
