/* SPDX-License-Identifier: Apache-2.0 */
/* differ.c - see differ.h. */
#include <string.h>

#include "launcher/stacks/chain.h"
#include "launcher/stacks/differ.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/name.h"

#define DIFFER_COLUMNS 120
#define DIFFER_LINES   3

/* The main threads of most ranks. The groups are sorted by their size. A process
 * that all ranks have with the same stack, such as a wrapper, tells nothing. */
static bool
differ_majority(const struct stacks *s, uint32_t *majority)
{
	uint32_t others = 0, most = 0;

	for (uint32_t i = 0; i < s->groups; i++) {
		if (!s->group[i].main || s->group[i].ranks == s->ranks)
			continue;
		others += most;
		most = s->group[i].ranks;
		*majority = i;
	}
	return others > 0 && most > others;
}

static void
differ_put_ranks(struct buf *out, const struct stacks *s, uint32_t group)
{
	struct buf ranks = { 0 };

	merge_ranks(s, group, &ranks);
	buf_fmt(out, "rank%s ", s->group[group].ranks == 1 ? "" : "s");
	for (const char *c = buf_text(&ranks); *c != '\0'; c++) {
		buf_put_char(out, *c);
		if (*c == ',')
			buf_put_char(out, ' ');
	}
	buf_fini(&ranks);
}

static bool
differ_is_libc(const char *file)
{
	return strncmp(file, "libc.", 5) == 0 ||
		strncmp(file, "libc-", 5) == 0 ||
		strncmp(file, "libpthread", 10) == 0 ||
		strncmp(file, "ld-", 3) == 0 || file[0] == '[';
}

/* The innermost function of the program, or the function of libxrun that it calls. "": no
 * function is known. */
static const char *
differ_place(const struct thread *t)
{
	const struct frames *f = &t->native;
	const char *place = "", *name;

	if (t->python.count > 0)
		return t->python.at[0].function;
	for (uint32_t i = f->count; i > 0; i--) {
		name = f->at[i - 1].function;
		if (name[0] == '\0' || name_is_start(name))
			continue;
		if (place[0] == '\0' || !differ_is_libc(f->at[i - 1].file))
			place = name;
		if (strncmp(name, "xr_", 3) == 0)
			break;
	}
	return place;
}

/* @group is a majority: of more than one rank. */
static void
differ_put_place(struct buf *out, const struct stacks *s, uint32_t group)
{
	const struct thread *t = s->group[group].thread;
	const char *place = differ_place(t);

	buf_put_text(out, "; ");
	differ_put_ranks(out, s, group);
	buf_fmt(out, " %s in ", t->state == 'R' ? "run" : "wait");
	if (place[0] != '\0')
		buf_put_text(out, place);
	else
		chain_put(out, t, DIFFER_COLUMNS);
}

bool
differ_put(struct buf *out, const struct stacks *s, uint32_t *majority)
{
	uint32_t lines = 0;

	if (!differ_majority(s, majority))
		return false;
	for (uint32_t i = 0; i < *majority && lines < DIFFER_LINES; i++) {
		if (!s->group[i].main)
			continue;
		differ_put_ranks(out, s, i);
		buf_put_text(out,
			s->group[i].ranks == 1 ? DIFFER_ONE : DIFFER_MANY);
		chain_put(out, s->group[i].thread, DIFFER_COLUMNS);
		if (lines++ == 0)
			differ_put_place(out, s, *majority);
		buf_put_char(out, '\n');
	}
	return true;
}
