/* SPDX-License-Identifier: Apache-2.0 */
/* remains.c - see remains.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/ctl/place.h"
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "launcher/keeper/remains.h"
#include "launcher/state/jobs.h"
#include "proc/lineage.h"
#include "proc/stray.h"

struct look {
	struct remains *out;
	const char *root; /* NULL: this user has none */
};

static struct remain *
remains_get(struct remains *r, const char *id, bool known)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->remain[i].known == known &&
			strcmp(r->remain[i].id, id) == 0)
			return &r->remain[i];
	return NULL;
}

const struct remain *
remains_find(const struct remains *r, const char *id, bool known)
{
	return remains_get((struct remains *)r, id, known);
}

/* That of job @id, which is new if it was not met before. */
static struct remain *
remains_add(struct remains *r, const char *id, bool known)
{
	struct remain *one = remains_get(r, id, known);

	if (one != NULL)
		return one;
	r->remain = xrealloc(r->remain, (r->count + 1) * sizeof(*r->remain));
	one = &r->remain[r->count++];
	memset(one, 0, sizeof(*one));
	snprintf(one->id, sizeof(one->id), "%s", id);
	one->known = known;
	return one;
}

static void
remains_add_lost(void *ctx, const struct lost_facts *facts)
{
	struct look *look = ctx;
	struct remain *r = remains_add(look->out, facts->id, true);

	r->unclosed = true;
	r->job = facts->job;
}

static void
remains_add_orphan(void *ctx, const struct orphan_facts *facts)
{
	struct look *look = ctx;
	struct remain *r = remains_add(look->out, facts->id, true);

	r->unclosed = true;
	r->groups = facts->groups;
	if (r->job.lineage == LINEAGE_NONE)
		r->job = facts->job;
}

static void
remains_add_socket(void *ctx, const char *id)
{
	struct look *look = ctx;

	remains_add(look->out, id, true)->socket = true;
}

struct search {
	const char *id;
	bool found;
};

static void
remains_is_record(void *ctx, const struct lost_facts *facts)
{
	struct search *s = ctx;

	s->found = s->found || strcmp(s->id, facts->id) == 0;
}

static bool
remains_is_socket(void *ctx, const char *id)
{
	struct search *s = ctx;

	s->found = s->found || strcmp(s->id, id) == 0;
	return !s->found;
}

static bool
remains_runs(const struct look *look, const char *id)
{
	struct search s = { .id = id };
	char dir[PATH_MAX];
	bool running = false;

	if (look->root != NULL &&
		snprintf(dir, sizeof(dir), "%s/%s", look->root, id) <
			(int)sizeof(dir) &&
		jobs_is(dir, &running) && running)
		return true;
	lost_each_held(remains_is_record, &s);
	ctl_place_each(remains_is_socket, &s);
	return s.found;
}

/* Returns the lost job of process @pid, or NULL. */
static struct remain *
remains_of(struct remains *r, pid_t pid)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->remain[i].known && stray_fits(&r->remain[i].job, pid))
			return &r->remain[i];
	return NULL;
}

/* A process that says it is of a job, and is not known to be, is only listed. */
static void
remains_add_stray(void *ctx, const struct stray *stray)
{
	struct look *look = ctx;
	struct remain *r = remains_of(look->out, stray->pid);
	struct remain_process *p;

	if (r == NULL) {
		if (stray->job == NULL || stray->watched ||
			!state_name_valid(stray->job) ||
			remains_runs(look, stray->job))
			return;
		r = remains_add(look->out, stray->job, false);
	}
	r->process = xrealloc(r->process, (r->count + 1) * sizeof(*p));
	p = &r->process[r->count++];
	p->pid = stray->pid;
	snprintf(p->name, sizeof(p->name), "%s", stray->name);
}

void
remains_look(struct remains *out)
{
	char *root = state_home();
	struct look look = { .out = out, .root = root };

	*out = (struct remains){ 0 };
	lost_each(remains_add_lost, &look);
	if (root != NULL)
		orphan_each(root, remains_add_orphan, &look);
	ctl_place_each_dead(remains_add_socket, &look);
	stray_each(remains_add_stray, &look);
	free(root);
}

void
remains_end(void)
{
	orphan_run(state_home());
	ctl_place_sweep();
}

void
remains_fini(struct remains *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->remain[i].process);
	free(r->remain);
	*r = (struct remains){ 0 };
}
