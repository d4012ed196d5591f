/* SPDX-License-Identifier: Apache-2.0 */
/* hang_differ.c - see hang_differ.h. */
#include <string.h>

#include "base/ranks.h"
#include "base/span.h"
#include "launcher/sup/hang_differ.h"
#include "launcher/tell/stacks.h"

/* "ranks 0-1, 3 differ: ..." */
static bool
hang_differ_add(struct ranks *set, struct span line)
{
	char list[4096];
	size_t n = 0;

	if (line.len < 5 || memcmp(line.at, "rank", 4) != 0 ||
		(memmem(line.at, line.len, STACKS_DIFFERS,
			 strlen(STACKS_DIFFERS)) == NULL &&
			memmem(line.at, line.len, STACKS_DIFFER,
				strlen(STACKS_DIFFER)) == NULL))
		return false;
	for (size_t i = 4; i < line.len && n + 1 < sizeof(list); i++) {
		if (line.at[i] == 'd')
			break;
		if (line.at[i] != ' ' && line.at[i] != 's')
			list[n++] = line.at[i];
	}
	list[n] = '\0';
	return ranks_parse(set, list, NULL) == XR_OK;
}

bool
hang_differ_by_stacks(const struct job *job, const char *summary, bool *differs)
{
	uint32_t count = job_size(job);
	struct span rest = span_of(summary);
	struct ranks set = { 0 };
	bool any = false;

	memset(differs, 0, count * sizeof(*differs));
	if (ranks_init(&set, job_rank(job, count - 1) + 1) != XR_OK)
		return false;
	while (rest.at != NULL && rest.len > 0)
		any = hang_differ_add(&set, span_next(&rest, '\n')) || any;
	for (uint32_t r = 0; r < count; r++)
		differs[r] = ranks_has(&set, job_rank(job, r));
	ranks_fini(&set);
	return any;
}

/* The place that may have a majority: Boyer and Moore's vote. */
static const char *
hang_differ_vote(char (*place)[HANG_PLACE], uint32_t count)
{
	const char *most = "";
	uint32_t votes = 0;

	for (uint32_t r = 0; r < count; r++) {
		if (place[r][0] == '\0')
			continue;
		if (votes == 0)
			most = place[r];
		if (strcmp(most, place[r]) == 0)
			votes++;
		else
			votes--;
	}
	return most;
}

bool
hang_differ_by_place(char (*place)[HANG_PLACE], uint32_t count, bool *differs)
{
	const char *most = hang_differ_vote(place, count);
	uint32_t there = 0, elsewhere = 0;

	memset(differs, 0, count * sizeof(*differs));
	for (uint32_t r = 0; r < count; r++) {
		if (place[r][0] == '\0')
			continue;
		differs[r] = strcmp(most, place[r]) != 0;
		elsewhere += differs[r];
		there += !differs[r];
	}
	if (elsewhere > 0 && there > elsewhere)
		return true;
	memset(differs, 0, count * sizeof(*differs));
	return false;
}
