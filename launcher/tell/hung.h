/* SPDX-License-Identifier: Apache-2.0 */
/* hung.h - ranks that hang, in events and reports. */
#ifndef LAUNCHER_TELL_HUNG_H
#define LAUNCHER_TELL_HUNG_H

#include "launcher/job/job.h"

struct json;

/* hung_put_event() - members of job.hang: ranks, rule, seconds. */
void hung_put_event(struct json *j, const struct job *job);

/* hung_put() - "hung": the ranks that did, if there are any. */
void hung_put(struct json *j, const struct job *job);

#endif /* LAUNCHER_TELL_HUNG_H */
