/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next.h - after this attempt of a job, is there another?
 *
 * It is decided once, when the ranks are over and swept. Then output and words
 * are delivered as at any end, but no file says that the job has ended, the
 * control socket keeps its name, and the keeper makes the next supervisor
 * (keeper/renew.h). Whoever tells the job to end meanwhile is heard by that one.
 */
#ifndef LAUNCHER_SUP_NEXT_H
#define LAUNCHER_SUP_NEXT_H

#include "launcher/job/job.h"

/* next_decide() - the ranks are over. */
void next_decide(struct job *job);

/* next_cannot() - none can follow, @why: the end of a job that somebody wanted to
 * begin again, and then of what told it to end meanwhile, or xrun's own (125). One
 * that failed has failed as it did. */
void next_cannot(struct job *job, const char *why);

/* next_told() - to end, by @sig, after the ranks did. */
void next_told(struct job *job, int sig);

/* next_restart() - somebody wants the next attempt; in the pause before one, now.
 * False: the job is being ended. */
bool next_restart(struct job *job);

/* next_start() - timer_fn: start_turn(), of the first rank. */
void next_start(void *job);

/* next_ready() - puts the terminal of an interactive job in raw mode. Called before the
 * header is written: keys that are typed after the header reach the rank unchanged. Does
 * nothing before a pause: Ctrl-C is xrun's until next_start(). */
void next_ready(struct job *job);

/* next_begin() - this is an attempt: the pause before its first rank, and what
 * is left of --timeout. Calls start_turn() in time. */
void next_begin(struct job *job);

#endif /* LAUNCHER_SUP_NEXT_H */
