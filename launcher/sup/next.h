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

#include "base/buf.h"
#include "launcher/job/job.h"

struct json;

/* next_decide() - the ranks are over. */
void next_decide(struct job *job);

/* next_is_due() - was it decided that there is another? */
bool next_is_due(const struct job *job);

/* next_told() - to end, by @sig, after the ranks did. */
void next_told(struct job *job, int sig);

/* next_cancel() - nobody is left to begin it. */
void next_cancel(struct job *job);

/* next_restart() - somebody wants the next attempt; in the pause before one, now.
 * False: the job is being ended. */
bool next_restart(struct job *job);

/* next_prepare() - the folder of the next attempt is made, by the helper thread;
 * false: there is nothing to wait for. */
bool next_prepare(struct job *job);

/* next_check() - was it? Else there is no next attempt, and it is said why. */
void next_check(struct job *job);

/* next_start() - timer_fn: start_turn(), of the first rank. */
void next_start(void *job);

/* next_begin() - this is an attempt: the pause before its first rank, and what
 * is left of --timeout. Calls start_turn() in time. */
void next_begin(struct job *job);

/* next_put() - words: what follows, or why nothing does. */
void next_put(const struct job *job, struct buf *out);

/* next_put_event() - members of job.restart. */
void next_put_event(struct json *j, const struct job *job);

/* next_put_past() - "attempts": those before this one, if there are any. */
void next_put_past(struct json *j, const struct job *job);

#endif /* LAUNCHER_SUP_NEXT_H */
