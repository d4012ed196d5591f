/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - see merge.h. */
#include <stdlib.h>

#include "base/mem.h"
#include "launcher/log/merge.h"

/* --- forward -------------------------------------------------------------- */

static bool
is_before(const struct reader *a, const struct reader *b)
{
	return a->when != b->when ? a->when < b->when : a->stream < b->stream;
}

static void
swap(struct merge *m, size_t a, size_t b)
{
	struct reader *r = m->reader[a];

	m->reader[a] = m->reader[b];
	m->reader[b] = r;
}

static void
rise(struct merge *m, size_t at)
{
	for (; at > 0 && is_before(m->reader[at], m->reader[(at - 1) / 2]);
		at = (at - 1) / 2)
		swap(m, at, (at - 1) / 2);
}

static void
sink(struct merge *m, size_t at)
{
	size_t child;

	for (; (child = 2 * at + 1) < m->count; at = child) {
		if (child + 1 < m->count &&
			is_before(m->reader[child + 1], m->reader[child]))
			child++;
		if (!is_before(m->reader[child], m->reader[at]))
			break;
		swap(m, at, child);
	}
}

void
merge_add(struct merge *m, struct reader *r, bool last)
{
	if (!reader_next(r, last))
		return;
	if (m->count == m->cap) {
		m->cap = m->cap == 0 ? 16 : 2 * m->cap;
		m->reader = xrealloc(m->reader, m->cap * sizeof(*m->reader));
	}
	m->reader[m->count] = r;
	rise(m, m->count++);
}

struct reader *
merge_first(const struct merge *m)
{
	return m->count == 0 ? NULL : m->reader[0];
}

void
merge_took(struct merge *m, bool last)
{
	reader_took(m->reader[0]);
	if (!reader_next(m->reader[0], last))
		m->reader[0] = m->reader[--m->count];
	sink(m, 0);
}

void
merge_fini(struct merge *m)
{
	free(m->reader);
	*m = (struct merge){ 0 };
}

/* --- the last lines ------------------------------------------------------- */

/* Where a reader begins, if nothing further back is wanted. */
struct end {
	struct back back;
	uint64_t begin;
	bool some; /* back.line is one that is wanted */
};

/* The next line back that counts. */
static void
step(struct end *e, const struct merge_tail *tail)
{
	do {
		e->some = back_line(&e->back) && e->back.when >= tail->since;
	} while (e->some && tail->wanted != NULL &&
		!tail->wanted(tail->ctx, e->back.line));
}

/* Behind the last line that may be wanted at all. */
static void
begin_back(struct end *e, struct reader *r, const struct merge_tail *tail)
{
	uint64_t end = track_end(&r->track);
	bool whole = tail->last;

	if (r->limit < end)
		end = r->limit;
	if (r->until != INT64_MAX) {
		uint64_t later = track_since(&r->track, r->until + 1);

		whole = whole && later >= end;
		end = later < end ? later : end;
	}
	back_init(&e->back, &r->track, end, whole);
	e->begin = e->back.at;
	step(e, tail);
}

static struct end *
latest(struct end *ends, size_t count)
{
	struct end *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (ends[i].some &&
			(best == NULL || ends[i].back.when >= best->back.when))
			best = &ends[i];
	return best;
}

bool
merge_tail(struct reader *readers, size_t count, const struct merge_tail *tail)
{
	struct end *ends = xcalloc(count == 0 ? 1 : count, sizeof(*ends)), *e;
	uint64_t got = 0;

	for (size_t i = 0; i < count; i++)
		begin_back(&ends[i], &readers[i], tail);
	while (got < tail->lines && (e = latest(ends, count)) != NULL) {
		e->begin = e->back.at;
		step(e, tail);
		got++;
	}
	for (size_t i = 0; i < count; i++) {
		reader_go(&readers[i], ends[i].begin);
		back_fini(&ends[i].back);
	}
	free(ends);
	return got < tail->lines;
}
