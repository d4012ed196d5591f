/* SPDX-License-Identifier: Apache-2.0 */
/* put.c - see put.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/ranks.h"
#include "launcher/stacks/chain.h"
#include "launcher/stacks/differ.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/put.h"

#define CHAIN_MIN 30 /* columns; a narrower terminal wraps */

/* "eu-stack, py-spy": what told something; /proc where nothing else did. */
static void
put_tools(struct buf *out, const struct stacks *s)
{
	static const char *const python[] = { "py-spy", "gdb", "faulthandler" };
	bool by[STACKS_BY_GDB + 1] = { false }, told[3] = { false };
	const char *sep = "";

	for (uint32_t i = 0; i < s->count; i++) {
		by[s->process[i].by] = true;
		for (int k = 0; k < 3 && s->process[i].python_by != NULL; k++)
			told[k] = told[k] ||
				strcmp(s->process[i].python_by, python[k]) == 0;
	}
	told[1] = told[1] && !by[STACKS_BY_GDB];
	for (int i = STACKS_BY_GDB; i >= 0; i--) {
		if (by[i])
			buf_fmt(out, "%s%s", sep,
				stacks_by_name((enum stacks_by)i));
		sep = by[i] ? ", " : sep;
	}
	for (int k = 0; k < 3; k++)
		if (told[k])
			buf_fmt(out, "%s%s", sep, python[k]);
}

static void
put_head(struct buf *out, const struct stacks *s)
{
	char time[32];

	buf_fmt(out, "%u rank%s in %s", s->ranks, s->ranks == 1 ? "" : "s",
		clock_text(s->took_ns, time, sizeof(time)));
	if (s->count > 0)
		buf_put_text(out, ", by ");
	put_tools(out, s);
	buf_put_char(out, '\n');
}

static void
put_group(struct buf *out, const struct stacks *s, uint32_t i, int width,
	uint32_t cols)
{
	const struct group *g = &s->group[i];
	struct buf ranks = { 0 };
	size_t at = out->len;
	uint32_t used;

	merge_ranks(s, i, &ranks);
	buf_fmt(out, "%-*s %7u  %-15s  ", width, buf_text(&ranks), g->threads,
		g->process->comm);
	used = (uint32_t)(out->len - at);
	chain_put(out, g->thread,
		cols == 0                       ? 0 :
			cols > used + CHAIN_MIN ? cols - used :
						  CHAIN_MIN);
	buf_put_char(out, '\n');
	buf_fini(&ranks);
}

/* Who has the reason of process @at, if it is the first that has. */
static void
put_reason(struct buf *out, const struct stacks *s, uint32_t at,
	struct ranks *set)
{
	const struct process *p = &s->process[at];

	for (uint32_t i = 0; i < at; i++)
		if (strcmp(s->process[i].why, p->why) == 0)
			return;
	for (uint32_t i = at; i < s->count; i++)
		if (strcmp(s->process[i].why, p->why) == 0)
			ranks_add(set, s->process[i].rank);
	buf_fmt(out, "rank%s ", ranks_count(set) == 1 ? "" : "s");
	ranks_put(set, out);
	buf_fmt(out, ": no stack: %s", p->why);
	buf_put_char(out, '\n');
}

static uint32_t
rank_limit(const struct stacks *s)
{
	uint32_t limit = 1;

	for (uint32_t i = 0; i < s->ranks; i++)
		if (s->rank[i].rank >= limit)
			limit = s->rank[i].rank + 1;
	return limit;
}

/* Whose functions of Python nobody could tell. */
static void
put_nameless(struct buf *out, const struct stacks *s)
{
	struct ranks set = { 0 };

	if (ranks_init(&set, rank_limit(s)) != XR_OK)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->process[i].python && s->process[i].python_by == NULL)
			ranks_add(&set, s->process[i].rank);
	if (ranks_count(&set) > 0) {
		buf_fmt(out, "rank%s ", ranks_count(&set) == 1 ? "" : "s");
		ranks_put(&set, out);
		buf_put_text(out,
			": no functions of Python   try: pip install py-spy, or import xrun in the program\n");
	}
	ranks_fini(&set);
}

static void
put_unseen(struct buf *out, const struct stacks *s)
{
	struct ranks set = { 0 };

	for (uint32_t i = 0; i < s->count; i++)
		if (s->process[i].why[0] != '\0' &&
			s->process[i].python_by == NULL &&
			ranks_init(&set, rank_limit(s)) == XR_OK) {
			put_reason(out, s, i, &set);
			ranks_fini(&set);
		}
	if (ranks_init(&set, rank_limit(s)) != XR_OK)
		return;
	for (uint32_t i = 0; i < s->ranks; i++)
		if (s->rank[i].ended)
			ranks_add(&set, s->rank[i].rank);
	if (ranks_count(&set) > 0) {
		buf_fmt(out, "rank%s ", ranks_count(&set) == 1 ? "" : "s");
		ranks_put(&set, out);
		buf_fmt(out, ": ended\n");
	}
	ranks_fini(&set);
	put_nameless(out, s);
	for (uint32_t i = 0; i < s->ranks; i++)
		if (s->rank[i].left_out > 0)
			buf_fmt(out, "rank %u: %u more processes\n",
				s->rank[i].rank, s->rank[i].left_out);
}

static int
ranks_width(const struct stacks *s, uint32_t most)
{
	struct buf ranks = { 0 };
	size_t width = 5;

	for (uint32_t i = 0; i < most; i++) {
		merge_ranks(s, i, &ranks);
		width = ranks.len > width && ranks.len <= 24 ? ranks.len :
							       width;
		buf_clear(&ranks);
	}
	buf_fini(&ranks);
	return (int)width;
}

void
put_table(struct buf *out, const struct stacks *s, uint32_t cols, uint32_t most)
{
	int width;

	if (most == 0 || most > s->groups)
		most = s->groups;
	width = ranks_width(s, most);
	put_head(out, s);
	if (most > 0)
		buf_fmt(out, "%-*s %7s  %-15s  %s\n", width, "RANKS", "THREADS",
			"COMMAND", "STACK");
	for (uint32_t i = 0; i < most; i++)
		put_group(out, s, i, width, cols);
	if (most < s->groups)
		buf_fmt(out, "and %u more; --full shows all of them\n",
			s->groups - most);
	put_unseen(out, s);
}

static void
put_frames(struct buf *out, const struct frames *frames, const char *what)
{
	for (uint32_t i = 0; i < frames->count; i++) {
		const struct frame *f = &frames->at[i];

		buf_fmt(out, "  %s%s", what,
			f->function[0] == '\0' ? "?" : f->function);
		if (f->file[0] != '\0')
			buf_fmt(out, "  %s", f->file);
		if (f->line > 0)
			buf_fmt(out, ":%lld", (long long)f->line);
		buf_put_char(out, '\n');
	}
}

void
put_full(struct buf *out, const struct stacks *s)
{
	for (uint32_t i = 0; i < s->groups; i++) {
		const struct group *g = &s->group[i];

		buf_fmt(out, "\nrank%s ", g->ranks == 1 ? "" : "s");
		merge_ranks(s, i, out);
		buf_fmt(out, ", %u thread%s of %s\n", g->threads,
			g->threads == 1 ? "" : "s", g->process->comm);
		put_frames(out, &g->thread->python, "python ");
		put_frames(out, &g->thread->native, "");
		if (g->thread->call[0] != '\0')
			buf_fmt(out, "  in the kernel: %s\n", g->thread->call);
		put_frames(out, &g->thread->kernel, "kernel ");
	}
}

static bool
has_main(const struct stacks *s)
{
	for (uint32_t i = 0; i < s->groups; i++)
		if (s->group[i].main)
			return true;
	return false;
}

static void
put_one(struct buf *out, const struct stacks *s, uint32_t group)
{
	buf_fmt(out, "rank%s ", s->group[group].ranks == 1 ? "" : "s");
	merge_ranks(s, group, out);
	buf_put_text(out, ": ");
	chain_put(out, s->group[group].thread, 160);
	buf_put_char(out, '\n');
}

void
put_first(struct buf *out, const struct stacks *s)
{
	uint32_t shown = 0, majority;
	bool main = s->groups > 0 && has_main(s);

	if (differ_put(out, s, &majority)) {
		put_one(out, s, majority);
		return;
	}
	for (uint32_t i = 0; i < s->groups && shown < 2; i++) {
		if (main && !s->group[i].main)
			continue;
		shown++;
		put_one(out, s, i);
	}
}
