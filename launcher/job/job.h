/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - what is known of the running job. Shared by the files of the
 * supervisor (sup/sup.h lists them); each field has one writer, named here.
 *
 * cmd/run.c fills the plan before any process exists; outcome.c says what it
 * all meant.
 */
#ifndef LAUNCHER_JOB_JOB_H
#define LAUNCHER_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/resource.h>
#include <sys/types.h>

#include "base/clock.h"
#include "launcher/host/oom.h"
#include "launcher/host/processors.h"
#include "launcher/job/ending.h"
#include "launcher/job/options.h"
#include "launcher/job/rank.h"
#include "launcher/log/logs.h"
#include "launcher/state/state.h"
#include "place/args.h"
#include "place/env.h"
#include "place/plan.h"
#include "proc/limit.h"
#include "proc/spawn.h"

#define JOB_NOBODY UINT32_MAX

struct pace;

#define DRAIN_NS (2 * NS_PER_S) /* for pipes that outlive their rank */

struct rank {
	enum rank_state state; /* step.c */

	/* start.c */
	pid_t pid;          /* 0: never started */
	int pidfd;          /* -1: none; death.c and stop.c take it away */
	int64_t started_ns; /* clock_now() */
	enum spawn_step failed_step;
	int failed_sys;

	/* death.c */
	int64_t ended_ns; /* 0: lives */
	int status;       /* as waitpid(2) gives it */
	struct rusage usage;
	uint32_t death; /* 1 for the first death of the job, in kernel order */
	bool was_exiting; /* on its way out when the first death was seen */
	uint32_t closed;  /* order in which lifelines ended; 0: no evidence */
	bool after_stop;  /* died after xrun had told it to */
	bool late;        /* looked for: a debugger holds it, or no watch */

	enum oom_kind oom; /* why.c */

	int64_t grace_ns; /* stop.c: clock_now(), till when it asked for time */
	bool hung;        /* hang.c: the job was ended for it */
	bool lost;        /* stop.c: could not be ended; given up */
	bool foreign;     /* step.c: another user's: takes no signal of ours */
	int64_t drain_ns; /* step.c: when its pipes are given up; 0 */
	bool dropped;     /* step.c: they were given up */
	bool left_open;   /* step.c: what it left behind held its output */
	/* steer.c: what it told of itself */
	bool ready;
	int64_t step, total; /* -1: not told */
	int64_t told_ns;     /* clock_now() of the last word; 0: none */
	uint32_t told;       /* reports of progress so far */
	int64_t best;        /* the highest step; 0: see step */
	char *metrics;       /* a JSON object; or NULL */
	int64_t unheard;     /* slots.c: reports of its own without room */
	struct figures_view *figures; /* figures.c: of its agent; or NULL */
	struct gauges *gauges; /* gauges.c: of pools and queues; or NULL */
	uint32_t blames;   /* 1 and the rank here whose loss its agent was first
			  * told of; 0: none */
	struct pace *pace; /* slow.c: of its steps; or NULL */
	bool slow;         /* slow.c, at the end */

	bool unsaved; /* stop.c: its last bytes were not seen in a file */
	int tty;      /* pty.c: master of its terminal, or -1 */
	uint8_t open; /* sup.c: streams not at their end */
	uint8_t full; /* sup.c: streams whose file has no room now */
};

/* One program of the job and the ranks that run it. */
struct part {
	/* cmd/prepare.c, before the first process */
	const struct run_options *opt; /* rows that are a part's own count */
	char *const *argv;             /* the program and its arguments */
	char *program;                 /* its file, as seen from dir */
	char *dir;      /* of --chdir, absolute; NULL: xrun's own */
	uint32_t first; /* local rank of its first rank */
	uint32_t size;  /* ranks here */
	struct env *env;
	struct args *args;      /* of --template; NULL: argv is every rank's */
	const char *preload;    /* the agent; NULL: none, for this reason: */
	const char *no_preload; /* "" if --buffer full asked for it */
	bool needs_xrun;        /* it is linked with libxrun */
	char mpi[64];           /* the MPI library it is linked with, or "" */
	bool python;            /* the program or its interpreter is Python */
	char *env_source; /* where --env was said; NULL: the command line */
};

/* Why the job is being ended, or was; the first one stays. */
enum cause {
	CAUSE_NONE,    /* all ranks ended by themselves */
	CAUSE_FAILURE, /* a rank failed */
	CAUSE_TIMEOUT, /* --timeout */
	CAUSE_HANG,    /* --hang-timeout */
	CAUSE_SIGNAL,  /* xrun was told to stop */
	CAUSE_RESTART, /* somebody wants the next attempt */
	CAUSE_CLOSED,  /* the reader of stdout exited */
	CAUSE_XRUN,    /* xrun itself cannot go on */
};

struct job {
	/* cmd/run.c, before the first process */
	struct run_options opt;
	struct part *parts; /* in the order of their ranks */
	uint32_t part_count;
	char *preload; /* the agent; NULL: no program takes it */
	char *python;  /* folder with the Python module, or NULL */
	/* The record of the job, keeper/record.h. Keeper and supervisor have a
	 * copy each. */
	char *record_text; /* a JSON object; NULL if memory was exhausted */
	size_t record_len; /* without its last character */
	char *record_root; /* folder of the history; may be NULL */
	struct plan plan;
	struct state state;
	int tcpstore_fd; /* listens at MASTER_PORT, tcpstore/; -1: none */
	char *errors;    /* folder of error files with --no-logs; NULL: none */
	struct limits limits;
	struct processors processors; /* start.c may drop the binding */
	struct raw_share *share;
	struct keeper_page *page;
	struct detach *detach; /* -d; else NULL */
	struct http *http;     /* tell/http.c; NULL: not asked for */
	struct hooks *hooks;   /* tell/hook.c; the same */
	struct route route;
	uint32_t files_max;  /* raw files that may stay open */
	bool spare_files;    /* descriptors are left for lifelines */
	int hear_fd;         /* hear.h: our end; or -1 */
	char hear_name[32];  /* XRUN_CONTROL_FD; "": there is none */
	int events_fd;       /* of --events, or -1 */
	int report_fd;       /* of --report, or -1 */
	int events_sys;      /* bus.c: errno of the first write that failed */
	int report_sys;      /* report.c: the same of --report */
	int state_sys;       /* the same of job.json and events.jsonl */
	uint32_t input_rank; /* local, who has stdin; JOB_NOBODY */
	bool input_all;      /* every rank has it */
	bool hup_ignored;    /* nohup, or -d */
	bool errors_are_tty; /* stderr is a terminal: header and closing line */
	bool on_tty;         /* stdout or stderr is one, and may hang up */
	bool utf8;           /* the locale's, so that bars may be drawn */
	bool interactive; /* --pty: stdin and stdout are windows to the rank */
	bool hints;       /* lines that are erased again may be shown */
	int64_t begun_ns; /* clock_now() */
	int64_t begun_wall;

	/* slots.c: XRUN_SEGMENT_FD of this attempt; "": there is none */
	char segment[ENV_SEGMENT_MAX];
	uint32_t slots;      /* of it */
	uint32_t slots_left; /* of dead ranks, that others have */
	uint64_t figures_at; /* of it: where agents count; 0: nowhere */
	uint64_t gauges_at;  /* the same of pools and queues */
	struct rank *rank;   /* [plan.local_size] */
	struct sup *sup;

	/* stop.c */
	enum ending ending;
	enum cause cause;
	int cause_signal;     /* with CAUSE_SIGNAL */
	bool ctrl_c;          /* with CAUSE_SIGNAL: it was pressed */
	char cause_text[400]; /* with CAUSE_XRUN: what went wrong */
	int64_t stop_ns;      /* clock_now() of the first stop; 0: none */

	uint32_t started;    /* start.c: ranks that were, or failed to */
	uint32_t settled;    /* step.c: ranks that are over */
	uint32_t deaths;     /* death.c */
	uint32_t left;       /* sweep.c: processes that outlived the ranks */
	int64_t ended_ns;    /* finish.c */
	bool unshown;        /* sup.c: stdout or stderr could not be written */
	char unwritten[400]; /* report.c: a file that was asked for and is not
			      * complete, the first; "": none */
	bool waited_out; /* sup.c: --timeout came when only output was open */
};

static inline uint32_t
job_size(const struct job *job)
{
	return job->plan.local_size;
}

/* job_rank() - the number of the rank at @local of the tables here. */
static inline uint32_t
job_rank(const struct job *job, uint32_t local)
{
	return job->plan.first + local;
}

/* job_part() - the program that local rank @local runs. */
static inline const struct part *
job_part(const struct job *job, uint32_t local)
{
	uint32_t low = 0, high = job->part_count, mid;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (job->parts[mid].first <= local)
			low = mid;
		else
			high = mid;
	}
	return &job->parts[low];
}

/* job_argv() - what local rank @local is started with; good until the next. */
static inline char *const *
job_argv(const struct job *job, uint32_t local)
{
	const struct part *part = job_part(job, local);

	return part->args == NULL ?
		part->argv :
		args_of_rank(part->args, local, job->state.number);
}

/* job_part_index() - XRUN_PART of the ranks of @part. */
static inline uint32_t
job_part_index(const struct job *job, const struct part *part)
{
	return (uint32_t)(part - job->parts);
}

#endif /* LAUNCHER_JOB_JOB_H */
