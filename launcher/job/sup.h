/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup.h - what the supervisor of a running job has: struct sup, which is made with
 * its loop and shared by the files of sup/ and tell/. Every field has one writer,
 * named here.
 */
#ifndef LAUNCHER_JOB_SUP_H
#define LAUNCHER_JOB_SUP_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "event/loop.h"
#include "event/work.h"
#include "launcher/host/oom.h"
#include "launcher/host/pids.h"
#include "launcher/job/hang.h"
#include "launcher/job/job.h"

enum phase {
	PHASE_RUN,     /* ranks live */
	PHASE_DELIVER, /* all are over; their output goes out */
	PHASE_ACCOUNT, /* xrun's last words go out */
	PHASE_WRITE,   /* events, job.json and --report are written */
	PHASE_END,
};

#define SUP_DEADLINES 4

/* What ranks left behind is being ended; sweep.c. */
struct sweep {
	enum { SWEEP_NONE, SWEEP_RUNS, SWEEP_OVER } state;
	struct timer *timer; /* the next look */
	int64_t deadline;    /* clock_now() */
	unsigned looks;
	bool spared;    /* somebody, as no rank's; tell/hook.c ends them */
	uint32_t count; /* who was met, by name: */
	char text[1024];
	size_t len;
};

/* The files of the end; tell/report.c. */
struct writing {
	enum {
		WRITE_EVENTS,
		WRITE_LAST_EVENT,
		WRITE_REPORT,
		WRITE_REST,
		WRITE_HOOKS, /* --on-event, --exec-on */
		WRITE_OVER,
	} stage;
	bool keep;                /* the job's folder stays */
	bool waits;               /* the patience has begun */
	bool late;                /* it is at an end */
	bool done;                /* atomic: job.json of the end is written */
	bool told;                /* that --events is not complete */
	struct work_task written; /* tells that they are written */
};

/* tell/metrics_file.c */
struct metrics_file {
	struct timer *timer;
	struct work *work; /* its own thread */
	bool busy;         /* atomic: one is with the thread */
	int sys;           /* atomic: errno of the last one */
	bool told;         /* that one could not be written */
};

/* sup/next_folder.c: the folder of the next attempt. */
enum next_folder { NEXT_FOLDER_UNASKED, NEXT_FOLDER_ASKED, NEXT_FOLDER_KNOWN };

/* sup/hang.c: the verdict. */
struct hung {
	enum hang rule;
	int64_t silent_ns; /* how long nothing was seen of them */
};

struct aide;
struct bus;
struct children;
struct ctl;
struct disk_reclaim;
struct hang_watch;
struct keys;
struct lifelines;
struct stacks_run;
struct stdin_all;
struct tcpstore_server;
struct tty_in;
struct typist;

LIST_HEAD(aide_list, aide);
LIST_HEAD(typist_list, typist);

struct sup {
	struct loop *loop;
	struct children *children;
	struct logs *logs;
	struct lifelines *lifelines; /* NULL: too few descriptors */
	struct work *work;
	struct bus *bus;
	struct ctl *ctl;                  /* steer.c; NULL: nobody spoke yet */
	struct keys *keys;                /* keys.c; NULL: nobody asked yet */
	struct tcpstore_server *tcpstore; /* NULL: not served */
	bool tcpstore_bad;                /* a bad request was reported */
	bool making; /* steer.c: a thread makes the control socket */
	struct hang_watch *hang; /* hang.c; NULL: not asked for */
	struct hung hung;
	bool has_socket;    /* steer.c: from the attempt before */
	struct watch *hear; /* hear.c */
	char no_ctl[256];   /* steer.c: why there is no control socket */
	struct stdin_all *stdin_all; /* NULL: not --stdin all */
	struct tty_in *tty_in;       /* NULL: stdin is no terminal */
	struct typist_list typists;  /* typist.c */
	struct aide_list aides;      /* aide.c */
	struct stacks_run *stacks;   /* stacks.c; NULL: not being taken */
	char *stacks_path;           /* the same: where they go; NULL */
	bool stacks_kept;            /* they are there */

	struct watch *signals, *keeper, *notes;
	int signal_fd;        /* of signals */
	struct watch *reader; /* closed.c: of stdout; NULL: not watched */
	struct watch *caller; /* of detach.h; NULL: nobody waits */
	struct watch *output; /* for the first byte; NULL: it has a thread */
	struct timer *start;  /* the next turn of starts */
	union {
		struct {
			struct timer *timeout;  /* --timeout */
			struct timer *patience; /* with ranks, disks, readers */
			struct timer *drain;    /* pipes outlive their rank */
			struct timer *silence;  /* nothing said for a while */
		};
		struct timer *deadlines[SUP_DEADLINES]; /* Ctrl-Z holds them */
	};
	struct timer *immune;    /* stop.c: the next look for such ranks */
	struct timer *late;      /* ranks of whose death no event tells */
	struct timer *strangers; /* look for adopted children to reap */
	struct timer *publish;   /* job.json; counters of the kernel */
	struct timer *deliver;   /* finish.c: a sink without a thread */
	struct sweep sweep;
	enum next_folder next_folder;
	struct writing writing;
	struct metrics_file metrics_file;

	struct oom oom;   /* why.c; the helper thread fills it */
	struct pids pids; /* the same */

	bool no_leaves; /* start.c: ranks cannot enter groups of their own */
	enum phase phase;
	uint32_t stuck; /* processes that SIGKILL did not end, and were named */
	bool input_flows; /* start.c: to every rank */
	bool told;      /* by a signal, --timeout, ...: not only by a failure */
	bool final;     /* stop.c: no attempt follows */
	bool not_shown; /* a sink had no memory, and it was said */
	bool judged;    /* the evidence of the first failure was taken */
	bool output_dropped; /* no more patience for pipes of the dead */
	bool latest;         /* `latest` points to the job */
	bool retained;       /* old folders were looked at in this run */
	bool delivery_over;  /* its patience is at an end */
	bool hurried;        /* so had the delivery before */
	bool accounting;     /* the helper thread makes the account */
	bool account_said;   /* atomic: it was handed to the sink */
	bool too_large;      /* a log file will never grow, and it was said */
	int64_t grace_ns;    /* stop.c: clock_now(), when --grace is over */
	int64_t until_ns;    /* stop.c: deadline of a job that was told to
			      * end, clock_now(); 0: none */
	struct disk_reclaim *reclaim; /* disk.c; NULL: none is under way */
	int64_t full_ns; /* clock_now() of the last word about a full disk */
	/* start.c: clock_now() of the first refusal, or 0: */
	int64_t retry_ns;  /* of a rank */
	int64_t unread_ns; /* of threads for the output */
	int64_t unfed_ns;  /* of the thread for --stdin all */
	bool odd_told;     /* hear.c: what was no message was told of */
	bool sink_closed[2];
	/* finish.c: the sink that ended without a note, and why not all of it
	 * could be shown */
	bool sink_over;
	int sink_sys;
	int input_sys; /* finish.c: why --stdin all came to no end, or 0 */
};

#endif /* LAUNCHER_JOB_SUP_H */
