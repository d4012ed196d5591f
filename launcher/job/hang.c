/* SPDX-License-Identifier: Apache-2.0 */
/* hang.c - see hang.h. */
#include "launcher/job/hang.h"

/* A rank that started a moment later than those that hang may hang with them, and may be
 * the one that they wait for. So a verdict waits for such a rank, for an eighth of the
 * time at most. Returns true if it has to wait. */
static bool
awaits_more(const struct hang_rank *ranks, uint32_t count, int64_t timeout_ns,
	int64_t now, int64_t *due)
{
	int64_t first = INT64_MAX, next = INT64_MAX, end;

	for (uint32_t i = 0; i < count; i++) {
		if (!ranks[i].lives || ranks[i].excused)
			continue;
		end = ranks[i].sign_ns + timeout_ns;
		if (end <= now)
			first = end < first ? end : first;
		else
			next = end < next ? end : next;
	}
	if (first == INT64_MAX || next > first + timeout_ns / 8)
		return false;
	*due = next < *due ? next : *due;
	return true;
}

static bool
judge_silence(struct hang_rank *ranks, uint32_t count, int64_t timeout_ns,
	int64_t now, int64_t *due)
{
	bool any = false, sure = true;

	for (uint32_t i = 0; i < count; i++) {
		struct hang_rank *r = &ranks[i];
		int64_t end = r->sign_ns + timeout_ns;

		if (!r->lives || r->excused)
			continue;
		r->hangs = now >= end && r->sure_ns == 0;
		any = any || r->hangs;
		if (now >= end && r->sure_ns != 0) {
			sure = false;
			end = r->sure_ns;
		}
		if (!r->hangs && end < *due)
			*due = end;
	}
	sure = sure && !awaits_more(ranks, count, timeout_ns, now, due);
	for (uint32_t i = 0; !sure && i < count; i++)
		ranks[i].hangs = false;
	return any && sure;
}

/* Of those that live: how often was told, and when last. */
struct tally {
	bool all; /* of them tell, and nobody holds one up */
	uint64_t least, most;
	int64_t last;
};

static struct tally
count_told(const struct hang_rank *ranks, uint32_t count)
{
	struct tally t = { .all = count > 0, .least = UINT64_MAX };

	for (uint32_t i = 0; i < count; i++) {
		const struct hang_rank *r = &ranks[i];

		if (!r->lives)
			continue;
		t.all = t.all && r->told > 0 && !r->excused;
		t.least = r->told < t.least ? r->told : t.least;
		t.most = r->told > t.most ? r->told : t.most;
		t.last = r->told_ns > t.last ? r->told_ns : t.last;
	}
	t.all = t.all && t.most > 0;
	return t;
}

static enum hang
judge_told(struct hang_rank *ranks, uint32_t count, int64_t timeout_ns,
	int64_t now, int64_t *due)
{
	struct tally t = count_told(ranks, count);
	bool even = t.least == t.most;
	int64_t end = t.last + (even ? 2 * timeout_ns : timeout_ns);

	if (!t.all)
		return HANG_NO;
	if (end < *due)
		*due = end;
	if (now < end)
		return HANG_NO;
	for (uint32_t i = 0; i < count; i++)
		ranks[i].hangs = ranks[i].lives && ranks[i].told == t.least;
	return even ? HANG_EVEN : HANG_UNEVEN;
}

/* Some are silent. Where all tell how far they are, they may wait for those that
 * are behind and have told nothing for as long: then those hang. */
static bool
blame_those_behind(struct hang_rank *ranks, uint32_t count, int64_t timeout_ns,
	int64_t now)
{
	struct tally t = count_told(ranks, count);

	if (!t.all || t.least == t.most)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (ranks[i].lives && ranks[i].told == t.least &&
			now - ranks[i].told_ns < timeout_ns)
			return false;
	for (uint32_t i = 0; i < count; i++)
		ranks[i].hangs = ranks[i].lives && ranks[i].told == t.least;
	return true;
}

enum hang
hang_judge(struct hang_rank *ranks, uint32_t count, int64_t timeout_ns,
	int64_t now, int64_t *due)
{
	*due = INT64_MAX;
	for (uint32_t i = 0; i < count; i++)
		ranks[i].hangs = false;
	if (judge_silence(ranks, count, timeout_ns, now, due))
		return blame_those_behind(ranks, count, timeout_ns, now) ?
			HANG_UNEVEN :
			HANG_SILENT;
	return judge_told(ranks, count, timeout_ns, now, due);
}

int64_t
hang_age(const struct hang_rank *ranks, uint32_t count, enum hang rule,
	int64_t now)
{
	int64_t longest = 0, shortest = INT64_MAX, age;

	for (uint32_t i = 0; i < count; i++) {
		const struct hang_rank *r = &ranks[i];

		if (!r->hangs)
			continue;
		age = now - (rule == HANG_SILENT ? r->sign_ns : r->told_ns);
		longest = age > longest ? age : longest;
		shortest = age < shortest ? age : shortest;
	}
	return rule == HANG_EVEN ? shortest : longest;
}
