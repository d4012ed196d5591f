/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup.h - the supervisor: one loop that starts ranks, watches them, ends them
 * and says what happened. Its files share struct job and struct sup:
 *
 *   sup.c      the loop and what it listens to; who is asked what
 *   signals.c  what xrun is told             tty_in.c  the terminal's input
 *   start.c    ranks come to life            death.c   who died when, and why
 *   stop.c     the ladder that ends them     step.c    a rank's next state
 *   sweep.c    what ranks left behind        finish.c  delivery, account, end
 *   bus.c      events to files               report.c  job.json, --report
 *   screen.c   words while the job runs      account.c the last words
 *   failure.c  words about the culprit       who.c     ranks by number
 *   why.c      what the kernel ended a rank for
 *   stdin_all.c  xrun's input for every rank
 *   lifeline.c the order of deaths, as evidence
 *   detach.c   a job that is left to itself
 *   next.c     does another attempt follow?
 *   steer.c    the control socket: who asks, who steers
 *   hang.c     ranks that show no sign of life
 *   hear.c     what ranks tell           slots.c   what they tell by a store
 *   keys.c     the rendezvous store
 *   pty.c      a terminal for each rank  typist.c   its keyboard, elsewhere
 *   aide.c     processes that are no ranks
 *   stacks.c   where ranks are, before they are ended
 *   slow.c     whose steps take long
 *   metrics_file.c  what is counted, for others to read
 *   http.c     the same for who asks by HTTP
 *   hook.c     who is told of events; hook_exec.c, hook_web.c
 *
 * keeper/ made it and outlives it. Everything runs on the loop's thread.
 */
#ifndef LAUNCHER_SUP_SUP_H
#define LAUNCHER_SUP_SUP_H

#include <stdbool.h>
#include <stdint.h>

#include <termios.h>

#include <sys/ioctl.h>
#include <sys/queue.h>

#include "event/child.h"
#include "event/loop.h"
#include "event/work.h"
#include "launcher/host/pids.h"
#include "launcher/job/job.h"
#include "launcher/sup/bus.h"
#include "launcher/sup/lifeline.h"

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
	uint32_t count; /* who was met, by name: */
	char text[1024];
	size_t len;
};

/* The files of the end; report.c. */
struct writing {
	enum {
		WRITE_NEXT, /* the folder of the next attempt */
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
	bool told;                /* that --events is not complete */
	struct work_task written; /* tells that they are written */
};

struct stacks_run;
/* metrics_file.c */
struct metrics_file {
	struct timer *timer;
	struct work *work; /* its own thread */
	bool busy;         /* atomic: one is with the thread */
	int sys;           /* atomic: errno of the last one */
	bool told;         /* that one could not be written */
};

struct stdin_all;
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
	struct ctl *ctl;   /* steer.c; NULL: nobody spoke yet */
	struct keys *keys; /* keys.c; NULL: nobody asked yet */
	bool making;       /* steer.c: a thread makes the control socket */
	struct hang_watch *hang; /* hang.c; NULL: not asked for */
	bool has_socket;         /* steer.c: from the attempt before */
	struct watch *hear;      /* hear.c */
	char no_ctl[256];        /* steer.c: why there is no control socket */
	struct stdin_all *stdin_all; /* NULL: not --stdin all */
	struct tty_in *tty_in;       /* NULL: stdin is no terminal */
	struct typist_list typists;  /* typist.c */
	struct aide_list aides;      /* aide.c */
	struct stacks_run *stacks;   /* stacks.c; NULL: not being taken */
	char *stacks_path;           /* the same: where they go; NULL */
	bool stacks_kept;            /* they are there */

	struct watch *signals, *keeper, *notes;
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
	struct timer *late;      /* ranks of whose death no event tells */
	struct timer *strangers; /* look for adopted children to reap */
	struct timer *publish;   /* job.json; counters of the kernel */
	struct timer *deliver;   /* finish.c: a sink without a thread */
	struct sweep sweep;
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
};

/*
 * The files of the supervisor, from the ground up; each calls only what stands
 * above its own lines here.
 */

/* step.c */
/* To a rank's whole group; nothing if it is reaped. */
void step_signal(struct job *job, uint32_t r, int sig);
void step_signal_all(struct job *job, int sig);
/* Give its pipes up after a while, if they are open. */
void step_drain(struct job *job, struct rank *rank);
/* @event happened to rank @r: its state, and what follows. */
void step_rank(struct job *job, uint32_t r, enum rank_event event);
/* A stream is at its end. Whoever tells calls finish_if_over() afterwards. */
void step_eof(struct job *job, uint32_t stream);

/* sweep.c */
bool sweep_due(const struct job *job); /* no rank is left, and none comes */
/* Begins once; true when it is over. Until then finish_if_over() is called
 * again, when it is. */
bool sweep_leftovers(struct job *job);
void sweep_again(void *job); /* timer_fn */

/* tty_in.c */
struct tty_in *tty_in_open(struct job *job, int *rank_end); /* NULL: errno */
/* The same for the terminal behind @master, which is borrowed. */
struct tty_in *tty_in_open_pty(struct job *job, int master);
bool tty_in_is_for(const struct tty_in *in, int master);
void tty_in_resume(struct tty_in *in); /* in the foreground again */
void tty_in_close(struct tty_in *in);  /* NULL is fine */

/* pty.c */
struct pty_before {
	bool changed; /* by us: from @was to @is */
	struct termios was, is;
};
/* A new terminal for rank @r, whose master is then job->rank[r].tty; gives the
 * rank's side, or -1 with errno. @typed: somebody types there */
int pty_open(struct job *job, uint32_t r, bool typed);
void pty_resize(struct job *job); /* as xrun's own is by now */
/* Not before both the rank and its output are over: that closes its program's
 * terminal, which would be told by SIGHUP, and the mover's. */
void pty_close_if_over(struct job *job, uint32_t r);
void pty_close(struct job *job, uint32_t r);
/* Somebody types there from now on, whose own terminal has this size: it is like
 * any terminal, unless its program has made something else of it. @before is for
 * pty_left(), when nobody does any more. */
void pty_typed(struct job *job, uint32_t r, const struct winsize *size,
	struct pty_before *before);
void pty_left(struct job *job, uint32_t r, const struct pty_before *before);
void pty_size(struct job *job, uint32_t r, const struct winsize *size);

/* finish.c */
void finish_if_over(struct job *job);
void finish_note_sink(struct job *job, uint32_t sink, int sys);
void finish_turn(void *job); /* timer_fn: a sink without a thread goes on */
/* The helper thread has done what was posted to it in @phase. */
void finish_written(struct job *job, enum phase phase);
void finish_hurry(struct job *job); /* told to stop while delivering */
void finish_give_up(void *job);     /* timer_fn */

/* stop.c: down the ladder of job/ending.h; the first cause stays */
void stop_job(struct job *job, enum cause cause);
void stop_by_signal(struct job *job, int sig);
void stop_by_ctrl_c(struct job *job); /* on xrun's terminal */
/* xrun itself cannot go on: why; the ranks are stopped, exit 125. */
void stop_fail(struct job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Whoever is gone has his say for --grace at most from now on. */
void stop_waiting(struct job *job);
/* Rank @r needs @seconds from now on to end; once a rank it is said. */
void stop_later(struct job *job, uint32_t r, double seconds);
void stop_recount(struct job *job); /* one died that may have asked */
void stop_now(struct job *job);     /* no more patience with the ranks */
void stop_output(struct job *job);  /* no more patience for their pipes */

/* start.c */
void start_turn(void *job);           /* timer_fn: the next ranks, at most 16 */
void start_output(int fd, void *job); /* watch_fn: the first bytes, or ends */
/* Is there no thread for it, and might there be one soon? */
bool start_lacks_output(const struct job *job);

/* death.c */
void death_of(uint32_t r, void *job);             /* child_fn */
void death_judge(void *job);                      /* child_after_fn, timer_fn */
void death_of_late(void *job);                    /* timer_fn */
void death_look_for(struct job *job, uint32_t r); /* it is not watched */
void death_reap_strangers(void *job);             /* timer_fn */

/* signals.c */
int signals_open(void); /* a signalfd for what xrun reacts to; -1, errno */
void signals_read(int fd, void *job); /* watch_fn */

/* sup.c */
/* Run the job to its end; gives xrun's exit status. */
int supervise(struct job *job);

#endif /* LAUNCHER_SUP_SUP_H */
