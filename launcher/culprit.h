/* SPDX-License-Identifier: Apache-2.0 */
/*
 * culprit.h - who failed first. A pure function over evidence.
 *
 * The order in which the kernel reports deaths names a victim when a dying
 * rank takes long to be torn down and others hear of its death before. So:
 * (1) a death after xrun's own stop is never a cause; (2) the ranks that were
 * already on their way out when the first death was seen are judged together
 * with it; among them one that died of a broken pipe yields to one that did
 * not, since somebody else must have broken it; (3) then the order of deaths.
 */
#ifndef LAUNCHER_CULPRIT_H
#define LAUNCHER_CULPRIT_H

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
};

/* culprit_of() - the rank, or CULPRIT_NOBODY if none failed by itself. */
uint32_t culprit_of(const struct evidence *e, uint32_t n);

#endif /* LAUNCHER_CULPRIT_H */
