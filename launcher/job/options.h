/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - what the main form can be told. The table is in options_table.c;
 * base/opt.h says what a row gives.
 *
 * Text values borrow from argv, environ and the files of settings, which
 * outlive the settings.
 */
#ifndef LAUNCHER_JOB_OPTIONS_H
#define LAUNCHER_JOB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/opt.h"
#include "launcher/job/config.h"
#include "xrun/error.h"

enum on_failure { ON_FAILURE_STOP, ON_FAILURE_CONTINUE };
enum stdout_close { STDOUT_CLOSE_STOP, STDOUT_CLOSE_CONTINUE };
enum exit_rule { EXIT_FIRST, EXIT_MAX, EXIT_RANK0 };
enum port_hold {
	PORT_HOLD_AUTO,
	PORT_HOLD_SERVE,
	PORT_HOLD_ALWAYS,
	PORT_HOLD_NEVER
};
enum mpi_mode { MPI_REFUSE, MPI_SINGLETONS };
enum buffer_mode { BUFFER_LINE, BUFFER_FULL, BUFFER_NONE };
enum collapse_mode { COLLAPSE_AUTO, COLLAPSE_ON, COLLAPSE_OFF };
enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
enum log_full { LOG_FULL_BLOCK, LOG_FULL_DROP };
enum interrupt_mode { INTERRUPT_STOP, INTERRUPT_ASK };

#define OPTIONS_RANK_MAX 999999 /* whatever the number of ranks */

struct run_options {
	int64_t ranks;        /* 0: not given */
	const char *chdir;    /* NULL: stay */
	const char *devices;  /* "auto", "none" or a list */
	const char *platform; /* "auto", "cpu", "cuda", "tpu" */
	bool any_ranks;
	bool template;    /* {rank} and the like in arguments */
	bool detach;      /* leave it running */
	const char *job;  /* its name, or NULL */
	const char *bind; /* "auto", "none", "core" or a list of CPUs */

	struct opt_list env;      /* NAME=VALUE, in order given */
	struct opt_list env_pass; /* globs; none: all that is inherited */
	const char *env_profile;  /* "auto", "none", "torch,..." */
	int port_hold;            /* enum port_hold */
	int mpi;                  /* enum mpi_mode */

	const char *log_dir; /* NULL: the state directory */
	bool logs;
	const char *log_rotate;  /* "SIZE[,COUNT]", see log/piece.h; or NULL */
	const char *log_reserve; /* SIZE, see log/reserve.h; or NULL */
	int log_full;            /* enum log_full */
	bool merge_stderr;
	const char *show;   /* "auto", "all", "first", "none" or a rank list */
	const char *prefix; /* "auto", "none" or a format */
	bool timestamps;
	int collapse; /* enum collapse_mode */
	int buffer;   /* enum buffer_mode */
	int color;    /* enum color_mode */
	bool pty;
	bool quiet, verbose;

	const char *input; /* --stdin: "none", "all" or a rank */

	int64_t timeout;       /* ns; 0: none */
	int64_t grace;         /* ns */
	int stop_signal;       /* number */
	int interrupt;         /* enum interrupt_mode */
	int on_failure;        /* enum on_failure */
	int on_stdout_close;   /* enum stdout_close */
	int exit_code;         /* enum exit_rule */
	const char *stacks_on; /* "none" or a list; options_stacks_on() */

	int64_t restarts;
	int64_t restart_window; /* ns; 0: the whole job */
	int64_t heartbeat;      /* ns */
	int64_t hang_timeout;   /* ns; 0: none */

	const char *report;       /* file or NULL */
	const char *events;       /* file or NULL */
	const char *metrics_file; /* or NULL */
	const char *http;         /* NULL, "none", "auto" or an address */
	const char *http_token;   /* file or NULL */
	struct opt_list on_event, exec_on; /* EVENT:URL, EVENT:COMMAND */

	bool dry_run;
	bool show_env;
	int64_t show_env_rank; /* which rank --show-env asked for; 0 */
	bool json;
	bool debug_faults;  /* said on the command line, and only there */
	const char *config; /* file, "none" or NULL */
	bool help;          /* -h */
	bool version;       /* -V */
};

extern const struct opt run_options[];
extern const struct opt_later run_options_later[]; /* named, not built yet */

struct options_in {
	int argc;
	char **argv;       /* argv[0] is not looked at */
	char *const *vars; /* environ */
	/* Is it a verb, for "did you mean"? NULL: nothing is. */
	bool (*is_verb)(const char *word);
};

/* A program behind a ':', with options of its own. */
struct options_part {
	struct run_options opt; /* only the rows that are a part's count */
	struct opts opts;
	char *const *argv; /* the program and its arguments */
};

/* What is known beside the values. */
struct options_found {
	int first;         /* index of the program in argv; argc: none */
	bool dashes;       /* "--" stands before it: it is not a verb */
	char *const *argv; /* the first program and its arguments */
	struct options_part *more; /* programs after the first */
	uint32_t more_count;
	char **words; /* argv with a NULL for each ':' that parts; or NULL */
	const char *fault;    /* XRUN_FAULT, or NULL; base/fault.h */
	struct buf warnings;  /* lines, each with its newline; mostly empty */
	struct opts opts;     /* for opt_source(&found->opts, "ranks") */
	struct config config; /* the files of settings that were read */
};

/*
 * options_read() - defaults, files, environment, command line, in this order.
 *
 * With programs behind a ':', what files and environment say holds for each of
 * them, and what the command line says of the first for the first alone, as far
 * as a row is a part's; all other options stand before the first program.
 *
 * Allocates only for lists, warnings, files and further programs. If the command
 * line says -h, what is wrong with the environment is no failure, and no file
 * is read. @out and @found are valid on failure, too, and options_fini() is due
 * in any case. Of the errors in files, @err has the first; found->config.errors
 * has all.
 *
 * Returns  XR_OK; XR_E_NOTFOUND (unknown option, or it comes later),
 *          XR_E_INVAL, XR_E_RANGE, XR_E_DECODE, XR_E_SYS, XR_E_NOMEM, with the
 *          words in @err
 */
enum xr_status options_read(const struct options_in *in,
	struct run_options *out, struct options_found *found,
	struct xr_error *err);
void options_fini(struct options_found *found);

/*
 * options_origin() - where a row got its value: "FILE:4:12", "XRUN_NO_LOGS".
 *
 * @opts: of the first program, or of another
 * Returns what the caller frees; NULL: the command line, or the default
 */
char *options_origin(const struct options_found *found, const struct opts *opts,
	const struct opt *row);

/*
 * options_blame() - let an error about an option say where it was said.
 *
 * What is found out about a value only later begins with "--show: "; said in
 * a file that becomes "FILE:4:12: show: ", in a variable "XRUN_SHOW: ".
 */
void options_blame(const struct options_found *found, struct xr_error *err);

/*
 * options_env_is() - returns true if @name is XRUN_<option>, which ranks do not receive.
 *
 * The names that ranks get are none. Fits env_facts.is_option; @unused may be
 * NULL.
 */
bool options_env_is(const void *unused, struct span name);

/* options_stacks_on() - when stacks are asked for; a set. */
enum stacks_on {
	STACKS_ON_HANG = 1 << 0,
	STACKS_ON_TIMEOUT = 1 << 1,
	STACKS_ON_CRASH = 1 << 2,
};
unsigned options_stacks_on(const struct run_options *opt);

/* options_need_driver() - are devices asked for by what only their driver
 * knows, as a UUID? */
bool options_need_driver(const struct run_options *opt);

#endif /* LAUNCHER_JOB_OPTIONS_H */
