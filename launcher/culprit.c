/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.c - see culprit.h. */
#include <signal.h>
#include <stddef.h>

#include <sys/wait.h>

#include "launcher/culprit.h"

static bool
candidate(const struct evidence *e)
{
	return e->failed && !e->after_stop;
}

static bool
broken_pipe(const struct evidence *e)
{
	return WIFSIGNALED(e->status) && WTERMSIG(e->status) == SIGPIPE;
}

/* The first death of a candidate; everything else is compared with it. */
static const struct evidence *
first_death(const struct evidence *e, uint32_t n)
{
	const struct evidence *first = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (candidate(&e[i]) &&
			(first == NULL || e[i].death < first->death))
			first = &e[i];
	return first;
}

uint32_t
culprit_of(const struct evidence *e, uint32_t n)
{
	const struct evidence *best = first_death(e, n);

	if (best == NULL)
		return CULPRIT_NOBODY;
	if (!broken_pipe(best))
		return best->rank;
	for (uint32_t i = 0; i < n; i++) {
		if (!candidate(&e[i]) || !e[i].was_exiting ||
			broken_pipe(&e[i]))
			continue;
		if (broken_pipe(best) || e[i].death < best->death)
			best = &e[i];
	}
	return best->rank;
}
