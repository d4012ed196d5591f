/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempts.h - what is told of a job's attempts, those before and the next one.
 * sup/next.c decides.
 */
#ifndef LAUNCHER_TELL_ATTEMPTS_H
#define LAUNCHER_TELL_ATTEMPTS_H

#include "base/buf.h"
#include "launcher/job/job.h"

struct json;

/* attempts_put() - words: what follows, or why nothing does. */
void attempts_put(const struct job *job, struct buf *out);

/* attempts_put_event() - members of job.restart. */
void attempts_put_event(struct json *j, const struct job *job);

/* attempts_put_past() - "attempts": those before this one, if there are any. */
void attempts_put_past(struct json *j, const struct job *job);

#endif /* LAUNCHER_TELL_ATTEMPTS_H */
