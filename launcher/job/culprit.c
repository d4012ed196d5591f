/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.c - see culprit.h. */
#include <signal.h>
#include <stddef.h>

#include <sys/wait.h>

#include "launcher/job/culprit.h"

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

/* Before another in the order of deaths; what never started comes first. */
static bool
died_before(const struct evidence *a, const struct evidence *b)
{
	return a->death != b->death ? a->death < b->death : a->rank < b->rank;
}

static const struct evidence *
first_death(const struct evidence *e, uint32_t n)
{
	const struct evidence *first = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (candidate(&e[i]) &&
			(first == NULL || died_before(&e[i], first)))
			first = &e[i];
	return first;
}

/* Of all candidates the one whose lifeline ended first, if before @best's. */
static const struct evidence *
first_closed(const struct evidence *e, uint32_t n, const struct evidence *best)
{
	for (uint32_t i = 0; i < n && best->closed != 0; i++)
		if (candidate(&e[i]) && e[i].closed != 0 &&
			e[i].closed < best->closed)
			best = &e[i];
	return best;
}

/* Of those dying then by anything but a broken pipe the first to be dead. */
static const struct evidence *
first_breaker(const struct evidence *e, uint32_t n, const struct evidence *best)
{
	for (uint32_t i = 0; i < n; i++)
		if (candidate(&e[i]) && e[i].was_exiting &&
			!broken_pipe(&e[i]) &&
			(broken_pipe(best) || died_before(&e[i], best)))
			best = &e[i];
	return best;
}

uint32_t
culprit_of(const struct evidence *e, uint32_t n)
{
	const struct evidence *best = first_death(e, n);

	if (best == NULL)
		return CULPRIT_NOBODY;
	if (best->closed != 0)
		return first_closed(e, n, best)->rank;
	return (broken_pipe(best) ? first_breaker(e, n, best) : best)->rank;
}
