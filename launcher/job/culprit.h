/* SPDX-License-Identifier: Apache-2.0 */
/*
 * culprit.h - who failed first. A pure function over evidence.
 *
 * The order in which the kernel reports deaths names a victim when others hear
 * of a death before the dead is torn down. So: (1) a death after xrun's own
 * stop is never a cause; (2) nor is that of a rank which had been told by its
 * agent that another one is gone, who died of itself, too; (3) the first reported
 * death counts, unless a rank that was dying then, too, had let go of its lifeline
 * before it did (see lifeline.h); (4) without that evidence a death by broken pipe
 * yields to one that is not among those dying then, since somebody must have
 * broken it. Where each blames another, nobody is believed.
 */
#ifndef LAUNCHER_JOB_CULPRIT_H
#define LAUNCHER_JOB_CULPRIT_H

#include <stdbool.h>
#include <stdint.h>

#define CULPRIT_NOBODY UINT32_MAX

struct evidence {
	uint32_t rank;
	uint32_t death;   /* order; 0: it lives, or failed to start */
	int status;       /* as waitpid(2) gives it */
	bool failed;      /* died, and not with 0; or could not be started */
	bool after_stop;  /* xrun had told it to end */
	bool was_exiting; /* already on its way out at the first death */
	uint32_t closed;  /* order in which lifelines ended; 0: unknown */
	uint32_t blames; /* 1 and the rank whose loss it was told of; 0: none */
};

/* culprit_of() - the rank, or CULPRIT_NOBODY if none failed by itself. */
uint32_t culprit_of(const struct evidence *e, uint32_t n);

#endif /* LAUNCHER_JOB_CULPRIT_H */
