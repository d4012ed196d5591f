/* SPDX-License-Identifier: Apache-2.0 */
/* slow.c - see slow.h. */
#include <math.h>
#include <stdlib.h>

#include "launcher/stat/pace.h"
#include "launcher/tell/slow.h"
#include "launcher/tell/who.h"

#define MUCH 2.0 /* times as long as usual */

void
slow_note(struct rank *rank, int64_t step, int64_t when)
{
	if (rank->pace == NULL)
		rank->pace = calloc(1, sizeof(*rank->pace));
	if (rank->pace != NULL)
		pace_note(rank->pace, step, when);
}

static bool
any_pace(const struct job *job)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].pace != NULL)
			return true;
	return false;
}

void
slow_fini(struct slow *s)
{
	free(s->median);
	free(s->usual);
	free(s->is);
}

bool
slow_look(const struct job *job, struct slow *s)
{
	const uint32_t n = job_size(job);
	struct pace_slow of_part;

	if (!any_pace(job))
		return false;
	s->median = calloc(n, sizeof(*s->median));
	s->usual = calloc(n, sizeof(*s->usual));
	s->is = calloc(n, sizeof(*s->is));
	if (s->median == NULL || s->usual == NULL || s->is == NULL) {
		slow_fini(s);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		s->median[i] = pace_median(job->rank[i].pace);
	for (uint32_t i = 0; i < job->part_count; i++) {
		const struct part *part = &job->parts[i];
		uint32_t at = part->first;

		/* `usual` is the room to work in, until it is known. */
		of_part = pace_compare(s->median + at, part->size, s->is + at,
			s->usual + at);
		for (uint32_t r = 0; r < part->size; r++)
			s->usual[at + r] = of_part.usual;
	}
	return true;
}

static bool
is_slow(const struct job *job, uint32_t r, uint32_t arg)
{
	(void)arg;
	return job->rank[r].slow;
}

/* The slowest beside what is usual for it; -1: none is slow. */
static int64_t
find_worst(const struct job *job, const struct slow *s)
{
	int64_t worst = -1;

	for (uint32_t i = 0; i < job_size(job); i++)
		if (s->is[i] &&
			(worst == -1 ||
				s->median[i] / s->usual[i] >
					s->median[worst] / s->usual[worst]))
			worst = i;
	return worst;
}

void
slow_put(const struct job *job, bool much, struct buf *out)
{
	struct slow s = { 0 };
	struct buf who = { 0 };
	int64_t worst;

	if (!slow_look(job, &s))
		return;
	worst = find_worst(job, &s);
	for (uint32_t i = 0; i < job_size(job); i++)
		job->rank[i].slow = s.is[i];
	if (worst != -1 &&
		(!much || s.median[worst] >= MUCH * s.usual[worst]) &&
		who_put(job, is_slow, 0, &who) > 0)
		buf_fmt(out,
			"xrun: %s took longer than the others: %.3g s a step at the end, where %.3g s is usual\n",
			buf_text(&who), s.median[worst], s.usual[worst]);
	buf_fini(&who);
	slow_fini(&s);
}
