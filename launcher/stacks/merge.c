/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - see merge.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/stacks/merge.h"

/* A thread and what is compared. */
struct item {
	struct process *process;
	struct thread *thread;
};

static int
compare_frames(const struct frames *a, const struct frames *b)
{
	int order;

	for (uint32_t i = 0; i < a->count && i < b->count; i++) {
		order = strcmp(a->at[i].function, b->at[i].function);
		if (order == 0)
			order = strcmp(a->at[i].file, b->at[i].file);
		if (order != 0)
			return order;
	}
	return a->count < b->count ? -1 : a->count > b->count;
}

static bool
is_known(const struct thread *t)
{
	return t->native.count + t->python.count > 0;
}

/* Names of threads are left out of it: pools number theirs. */
static int
compare_threads(const struct item *x, const struct item *y)
{
	const struct thread *a = x->thread, *b = y->thread;
	int order = strcmp(x->process->comm, y->process->comm);

	if (order == 0)
		order = compare_frames(&a->python, &b->python);
	if (order == 0)
		order = compare_frames(&a->native, &b->native);
	if (order != 0 || is_known(a))
		return order;
	order = strcmp(a->call, b->call);
	return order != 0 ? order : strcmp(a->wchan, b->wchan);
}

static int
by_stack(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = compare_threads(x, y);

	if (order == 0)
		order = x->process->rank < y->process->rank ?
			-1 :
			x->process->rank > y->process->rank;
	return order != 0 ? order : x->thread->tid - y->thread->tid;
}

/* Fewer ranks; main threads; who comes first by number. */
static int
by_oddity(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? -1 : 1;
	if (x->main != y->main)
		return x->main ? -1 : 1;
	if (x->process->rank != y->process->rank)
		return x->process->rank < y->process->rank ? -1 : 1;
	return x->thread->tid - y->thread->tid;
}

static struct item *
list_threads(const struct stacks *s, uint32_t *count)
{
	struct item *item;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->count; i++)
		n += s->process[i].threads;
	item = xcalloc(n + 1, sizeof(*item));
	*count = 0;
	for (uint32_t i = 0; i < s->count; i++)
		for (uint32_t k = 0; k < s->process[i].threads; k++)
			item[(*count)++] = (struct item){ &s->process[i],
				&s->process[i].thread[k] };
	return item;
}

/* @item is of the group, and the last of it so far. */
static void
join(struct group *g, const struct item *item, uint32_t last_rank)
{
	const struct process *p = item->process;

	g->threads++;
	g->ranks += g->threads == 1 || p->rank != last_rank;
	g->main = g->main || item->thread->tid == p->pid;
}

void
merge_stacks(struct stacks *s)
{
	uint32_t n;
	struct item *item = list_threads(s, &n);
	struct group *g;

	free(s->group);
	s->group = xcalloc(n + 1, sizeof(*s->group));
	s->groups = 0;
	qsort(item, n, sizeof(*item), by_stack);
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || compare_threads(&item[i - 1], &item[i]) != 0)
			s->group[s->groups++] = (struct group){
				.process = item[i].process,
				.thread = item[i].thread,
				.first = i,
			};
		g = &s->group[s->groups - 1];
		join(g, &item[i], i == 0 ? 0 : item[i - 1].process->rank);
	}
	qsort(s->group, s->groups, sizeof(*s->group), by_oddity);
	for (uint32_t k = 0; k < s->groups; k++)
		for (uint32_t i = 0; i < s->group[k].threads; i++)
			item[s->group[k].first + i].thread->group = k;
	free(item);
}

void
merge_ranks(const struct stacks *s, uint32_t group, struct buf *out)
{
	uint32_t size = 1;
	struct ranks set = { 0 };

	for (uint32_t i = 0; i < s->ranks; i++)
		size = s->rank[i].rank < size ? size : s->rank[i].rank + 1;
	if (ranks_init(&set, size) != XR_OK) {
		out->bad = XR_E_NOMEM;
		return;
	}
	for (uint32_t i = 0; i < s->count; i++)
		for (uint32_t k = 0; k < s->process[i].threads; k++)
			if (s->process[i].thread[k].group == group)
				ranks_add(&set, s->process[i].rank);
	ranks_put(&set, out);
	ranks_fini(&set);
}
