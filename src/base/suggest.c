/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - see suggest.h. */
#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "base/suggest.h"

/* As far as one and a half edits. */
#define BEGINNING 3

static size_t
min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Optimal string alignment: Damerau's edits, no letter moved twice. Three rows
 * of the matrix are alive: this one, the last, and the one before it for swaps.
 */
size_t
suggest_distance(const char *a, const char *b)
{
	size_t rows[3][SUGGEST_MAX];
	size_t *before = rows[0], *last = rows[1], *now = rows[2], *spare;
	size_t na = strlen(a), nb = strlen(b);

	XR_ASSERT(na < SUGGEST_MAX && nb < SUGGEST_MAX);
	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			now[j] = min2(last[j], now[j - 1]) + 1;
			now[j] = min2(now[j],
				last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
				a[i - 2] == b[j - 1])
				now[j] = min2(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

/* How many edits still make a neighbour of a word this long. */
static size_t
limit(size_t len)
{
	if (len < 6)
		return 1;
	return len > 8 ? len / 3 : 2;
}

/* Returns true if one of the short words has a letter that the other has not. */
static bool
suggest_changes(const char *a, const char *b)
{
	return strlen(a) < 4 && strlen(a) == strlen(b) &&
		strspn(a, b) != strlen(a);
}

void
suggest_init(struct suggest *s, const char *word, size_t len)
{
	*s = (struct suggest){ .score = SUGGEST_MAX };
	if (len < sizeof(s->word))
		memcpy(s->word, word, len);
}

void
suggest_offer(struct suggest *s, const char *name)
{
	size_t len = strlen(s->word), size = strlen(name), score;

	if (len < 2 || size >= sizeof(s->best))
		return;
	score = 2 * suggest_distance(s->word, name);
	if (score > 2 && strncmp(name, s->word, len) == 0)
		score = BEGINNING;
	else if (score > 2 * limit(len) || suggest_changes(s->word, name) ||
		(score > 2 && *name != *s->word))
		return;
	if (score >= s->score)
		return;
	s->score = score;
	memcpy(s->best, name, size + 1);
}

const char *
suggest_best(const struct suggest *s)
{
	return s->best[0] == '\0' ? NULL : s->best;
}
