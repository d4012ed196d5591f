/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup.h - the supervisor: one loop that starts ranks, watches them, ends them
 * and says what happened. Its files share struct job and struct sup (job/sup.h);
 * words and files are tell/'s:
 *
 *   sup.c      the loop and what it listens to; who is asked what
 *   signals.c  what xrun is told             tty_in.c  the terminal's input
 *   start.c    ranks come to life            death.c   who died when, and why
 *   stop.c     the ladder that ends them     step.c    a rank's next state
 *   sweep.c    what ranks left behind        finish.c  delivery, account, end
 *   next.c     does another attempt follow?  detach.c  a job left to itself
 *   next_folder.c  the folder of that
 *   hang.c     ranks that show no sign of life
 *   closed.c   the reader of stdout exits
 *   stdin_all.c  xrun's input for every rank
 *   lifeline.c the order of deaths, as evidence
 *   pty.c      a terminal for each rank      typist.c  its keyboard, elsewhere
 *   disk.c     output files that find no room
 *   steer.c    the control socket: who asks, who steers
 *   hear.c     what ranks tell               keys.c    the rendezvous store
 *
 * keeper/ made it and outlives it. Everything runs on the loop's thread.
 */
#ifndef LAUNCHER_SUP_SUP_H
#define LAUNCHER_SUP_SUP_H

#include <stdbool.h>
#include <stdint.h>

#include <termios.h>

#include <sys/ioctl.h>

#include "event/child.h"
#include "launcher/job/job.h"
#include "launcher/job/sup.h"
#include "launcher/sup/lifeline.h"
#include "launcher/tell/bus.h"

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
/* NOTE_LEFT_OPEN */
void step_left_open(struct job *job, uint32_t stream);
/* Gives a stream up. The caller calls finish_if_over() afterwards. */
void step_drop(struct job *job, uint32_t stream);
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
/* Sets the deadline for readers to --grace from now, unless it is set. */
void stop_bound(struct job *job);
/* Returns the ns left for the output, or, if @last, for the account. Some time is
 * left after the deadline, too, for a reader that reads. After stop_bound(). */
int64_t stop_left(const struct job *job, bool last);
/* Returns @most, in ns; less if the job was told to end and its deadline is nearer.
 * A slow disk has a second past the deadline. */
int64_t stop_within(const struct job *job, int64_t most);
/* Returns the seconds until the job has ended; includes slow disks and hooks. */
double stop_seconds(const struct job *job);
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
void stop_immune(void *job);        /* timer_fn: after the stop signal */
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

/* disk.c */
void disk_full(struct job *job, uint32_t stream, int sys); /* NOTE_FULL */
void disk_room(struct job *job, uint32_t stream);          /* NOTE_ROOM */
void disk_reclaim(struct job *job);                        /* NOTE_RECLAIM */
void disk_reclaimed(struct job *job);                      /* NOTE_RECLAIMED */
void disk_large(struct job *job, uint32_t gib);            /* NOTE_LARGE */

/* closed.c */
/* Watches for the exit of the reader of stdout. Returns false if memory is
 * exhausted. */
bool closed_watch(struct job *job);
/* Sink number @sink cannot be written: @sys is the errno. */
void closed_sink(struct job *job, uint32_t sink, int sys);

/* signals.c */
int signals_open(void); /* a signalfd for what xrun reacts to; -1, errno */
void signals_read(int fd, void *job); /* watch_fn */

/* sup.c */
/* Run the job to its end; gives xrun's exit status. */
int supervise(struct job *job);

#endif /* LAUNCHER_SUP_SUP_H */
