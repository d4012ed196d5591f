/* SPDX-License-Identifier: Apache-2.0 */
/* slow.h - whose steps take long, of ranks that tell of them; the rule is
 * pace_compare()'s, among the ranks of one program. */
#ifndef LAUNCHER_TELL_SLOW_H
#define LAUNCHER_TELL_SLOW_H

#include "base/buf.h"
#include "launcher/job/job.h"

struct slow {
	double *median; /* of each local rank, seconds a step; NaN */
	double *usual;  /* of the ranks of its program; NaN */
	bool *is;
};

/* slow_note() - @rank said that @step steps are done, at @when of clock_now(). */
void slow_note(struct rank *rank, int64_t step, int64_t when);

/* slow_look() - as it is now. False: nobody tells of steps, or there is no
 * memory; @slow needs no slow_fini() then. */
bool slow_look(const struct job *job, struct slow *slow);
void slow_fini(struct slow *slow);

/* slow_put() - a line on the ranks that are slow; nothing where none is.
 * @much: only if one takes twice as long as is usual, or longer */
void slow_put(const struct job *job, bool much, struct buf *out);

#endif /* LAUNCHER_TELL_SLOW_H */
