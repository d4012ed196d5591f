/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.c - see culprit.h. */
#include <signal.h>
#include <stddef.h>

#include <sys/wait.h>

#include "launcher/job/culprit.h"

/* Who is asked about. */
struct bench {
	const struct evidence *e; /* [n] */
	uint32_t n;
	bool victims; /* they are not excused */
};

static bool
failed_itself(const struct evidence *e)
{
	return e->failed && !e->after_stop;
}

/* In most cases they stand in the order of ranks. */
static const struct evidence *
of_rank(const struct bench *b, uint32_t rank)
{
	if (rank < b->n && b->e[rank].rank == rank)
		return &b->e[rank];
	for (uint32_t i = 0; i < b->n; i++)
		if (b->e[i].rank == rank)
			return &b->e[i];
	return NULL;
}

/* Of one that it blames, and that failed of itself. */
static bool
is_victim(const struct bench *b, const struct evidence *e)
{
	const struct evidence *who =
		e->blames != 0 ? of_rank(b, e->blames - 1) : NULL;

	return who != NULL && who != e && failed_itself(who);
}

static bool
candidate(const struct bench *b, const struct evidence *e)
{
	return failed_itself(e) && (b->victims || !is_victim(b, e));
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
first_death(const struct bench *b)
{
	const struct evidence *e = b->e, *first = NULL;

	for (uint32_t i = 0; i < b->n; i++)
		if (candidate(b, &e[i]) &&
			(first == NULL || died_before(&e[i], first)))
			first = &e[i];
	return first;
}

/* Of all candidates the one whose lifeline ended first, if before @best's. */
static const struct evidence *
first_closed(const struct bench *b, const struct evidence *best)
{
	const struct evidence *e = b->e;

	for (uint32_t i = 0; i < b->n && best->closed != 0; i++)
		if (candidate(b, &e[i]) && e[i].closed != 0 &&
			e[i].closed < best->closed)
			best = &e[i];
	return best;
}

/* Of those dying then by anything but a broken pipe the first to be dead. */
static const struct evidence *
first_breaker(const struct bench *b, const struct evidence *best)
{
	const struct evidence *e = b->e;

	for (uint32_t i = 0; i < b->n; i++)
		if (candidate(b, &e[i]) && e[i].was_exiting &&
			!broken_pipe(&e[i]) &&
			(broken_pipe(best) || died_before(&e[i], best)))
			best = &e[i];
	return best;
}

uint32_t
culprit_of(const struct evidence *e, uint32_t n)
{
	struct bench b = { e, n, false };
	const struct evidence *best = first_death(&b);

	if (best == NULL) {
		b.victims = true;
		best = first_death(&b);
	}
	if (best == NULL)
		return CULPRIT_NOBODY;
	if (best->closed != 0)
		return first_closed(&b, best)->rank;
	return (broken_pipe(best) ? first_breaker(&b, best) : best)->rank;
}
