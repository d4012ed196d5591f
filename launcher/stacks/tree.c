/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/stacks/tree.h"
#include "proc/descend.h"

#define NOBODY    UINT32_MAX
#define DEPTH_MAX 64

/* One of the machine's. */
struct node {
	pid_t pid;
	struct proc_stat st;
	uint32_t rank; /* index in stacks.rank; or NOBODY */
	uint32_t depth;
	bool parent; /* of one that is the rank's */
};

struct tree {
	struct node *node; /* by pid */
	uint32_t count;
	struct stacks *s;
};

static void
add_node(pid_t pid, void *arg)
{
	struct tree *t = arg;
	struct node n = { .pid = pid, .rank = NOBODY };

	if (!proc_stat_read(pid, &n.st) || n.st.exiting)
		return;
	t->node = xrealloc(t->node, (t->count + 1) * sizeof(n));
	t->node[t->count++] = n;
}

static int
by_pid(const void *a, const void *b)
{
	return ((const struct node *)a)->pid - ((const struct node *)b)->pid;
}

static void
read_all(struct tree *t)
{
	proc_each("/proc", add_node, t);
	if (t->count > 1)
		qsort(t->node, t->count, sizeof(*t->node), by_pid);
}

static struct node *
find_node(const struct tree *t, pid_t pid)
{
	const struct node key = { .pid = pid };

	return t->count == 0 ?
		NULL :
		bsearch(&key, t->node, t->count, sizeof(*t->node), by_pid);
}

/* Ranks are where they are marked first. */
static void
mark_ranks(struct tree *t)
{
	struct node *n;

	for (uint32_t i = 0; i < t->s->ranks; i++) {
		n = find_node(t, t->s->rank[i].pid);
		t->s->rank[i].ended = n == NULL;
		if (n != NULL)
			n->rank = i;
	}
}

/* By its ancestors; else by its session, which a rank leads. */
static void
find_rank(struct tree *t, struct node *n)
{
	struct node *up = n;

	for (uint32_t depth = 0; up != NULL && depth < DEPTH_MAX; depth++) {
		if (up->rank != NOBODY && up->depth == 0) {
			n->rank = up->rank;
			n->depth = depth;
			return;
		}
		up = find_node(t, up->st.ppid);
	}
	/* One that ended has no number; nor has a session of another namespace. */
	for (uint32_t i = 0; n->st.session > 0 && i < t->s->ranks; i++)
		if (t->s->rank[i].pid == n->st.session) {
			n->rank = i;
			n->depth = 1;
		}
}

/* What only runs another program, by what it is called. */
static bool
runs_another(const struct node *n)
{
	static const char *const names[] = { "sh", "bash", "dash", "ash", "zsh",
		"ksh", "mksh", "fish", "csh", "tcsh", "busybox", "timeout",
		"time", "xrun", "xrun-super" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(n->st.comm, names[i]) == 0)
			return n->parent;
	return false;
}

static int
by_rank(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->pid - y->pid;
}

static void
add_processes(struct tree *t)
{
	struct stacks_rank *rank;
	struct process *p;
	uint32_t some = 0, last = NOBODY;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct node *n = &t->node[i];

		if (n->rank == NOBODY || runs_another(n))
			continue;
		some = n->rank == last ? some : 0;
		last = n->rank;
		rank = &t->s->rank[n->rank];
		if (some++ >= STACKS_A_RANK) {
			rank->left_out++;
			continue;
		}
		p = stacks_add_process(t->s, rank->rank, n->pid);
		p->depth = n->depth;
		snprintf(p->comm, sizeof(p->comm), "%s", n->st.comm);
		stacks_tame(p->comm);
	}
}

void
tree_find(struct stacks *s)
{
	struct tree t = { .s = s };
	struct node *parent;

	read_all(&t);
	mark_ranks(&t);
	for (uint32_t i = 0; i < t.count; i++)
		if (t.node[i].rank == NOBODY)
			find_rank(&t, &t.node[i]);
	for (uint32_t i = 0; i < t.count; i++) {
		parent = find_node(&t, t.node[i].st.ppid);
		if (parent != NULL && t.node[i].rank != NOBODY)
			parent->parent = true;
	}
	if (t.count > 1)
		qsort(t.node, t.count, sizeof(*t.node), by_rank);
	add_processes(&t);
	free(t.node);
}
