/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempts.h - what is told of a job's attempts, those before and the next one,
 * whose folder is among the files of this one's end. sup/next.c decides.
 */
#ifndef LAUNCHER_TELL_ATTEMPTS_H
#define LAUNCHER_TELL_ATTEMPTS_H

#include "base/buf.h"
#include "launcher/job/job.h"

struct json;

/* attempts_follow() - was it decided that there is another? */
bool attempts_follow(const struct job *job);

/* attempts_end() - nobody is left to begin it. */
void attempts_end(struct job *job);

/* attempts_prepare() - the folder of the next attempt is made, by the helper
 * thread; false: there is nothing to wait for. */
bool attempts_prepare(struct job *job);

/* attempts_check() - was it? Else there is no next attempt, and it is said why. */
void attempts_check(struct job *job);

/* attempts_put() - words: what follows, or why nothing does. */
void attempts_put(const struct job *job, struct buf *out);

/* attempts_put_event() - members of job.restart. */
void attempts_put_event(struct json *j, const struct job *job);

/* attempts_put_past() - "attempts": those before this one, if there are any. */
void attempts_put_past(struct json *j, const struct job *job);

#endif /* LAUNCHER_TELL_ATTEMPTS_H */
