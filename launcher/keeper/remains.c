/* SPDX-License-Identifier: Apache-2.0 */
/* remains.c - see remains.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/mem.h"
#include "launcher/ctl/place.h"
#include "launcher/keeper/orphan.h"
#include "launcher/keeper/remains.h"
#include "launcher/state/jobs.h"
#include "proc/stray.h"

#define PATIENCE (2 * NS_PER_S) /* with those of one job */

struct look {
	struct remains *out;
	const char *root; /* NULL: this user has none */
};

static struct remain *
find(struct remains *r, const char *id)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->remain[i].id, id) == 0)
			return &r->remain[i];
	return NULL;
}

const struct remain *
remains_find(const struct remains *r, const char *id)
{
	return find((struct remains *)r, id);
}

static struct remain *
add(struct remains *r, const char *id)
{
	struct remain *one;

	r->remain = xrealloc(r->remain, (r->count + 1) * sizeof(*r->remain));
	one = &r->remain[r->count++];
	memset(one, 0, sizeof(*one));
	snprintf(one->id, sizeof(one->id), "%s", id);
	return one;
}

static void
add_orphan(void *ctx, const struct orphan_facts *facts)
{
	struct look *look = ctx;
	struct remain *r = add(look->out, facts->job.id);

	r->known = true;
	r->unclosed = true;
	r->groups = facts->groups;
	r->since = facts->job.since;
	r->cgroup =
		facts->job.cgroup == NULL ? NULL : xstrdup(facts->job.cgroup);
	r->this_boot = facts->this_boot;
}

/* Did it begin since this machine was started? By its clock alone. */
static bool
is_of_this_boot(int64_t since)
{
	struct timespec up;

	return clock_gettime(CLOCK_BOOTTIME, &up) == 0 &&
		clock_wall() - since < up.tv_sec * NS_PER_S;
}

static void
add_socket(void *ctx, const char *id, int64_t since)
{
	struct look *look = ctx;
	struct remain *r = find(look->out, id);

	if (r == NULL) {
		r = add(look->out, id);
		r->known = true;
		r->since = since;
		r->this_boot = is_of_this_boot(since);
	}
	r->socket = true;
}

struct search {
	const char *id;
	bool found;
};

static bool
is_it(void *ctx, const char *id)
{
	struct search *s = ctx;

	s->found = s->found || strcmp(s->id, id) == 0;
	return !s->found;
}

static bool
has_socket(const char *id)
{
	struct search s = { .id = id };

	ctl_place_each(is_it, &s);
	return s.found;
}

static bool
says(const cJSON *json, const char *key, const char *here)
{
	const char *text = jobs_text(json, key);

	return text == NULL || strcmp(text, here) == 0;
}

/* What its folder says of a job that has ended; false if that is nothing to
 * judge processes by. */
static bool
read_record(const char *dir, struct remain *r)
{
	char host[256], boot[64];
	cJSON *json = jobs_read(dir);
	int64_t since = clock_parse(jobs_text(json, "start"));
	const char *group = jobs_text(json, "cgroup");
	bool usable;

	usable = json != NULL && since != -1 &&
		says(json, "host", host_name(host, sizeof(host))) &&
		says(json, "boot", host_boot(boot, sizeof(boot)));
	if (usable) {
		r->known = true;
		r->this_boot = true;
		r->since = since;
		r->cgroup = group == NULL ? NULL : xstrdup(group);
	}
	cJSON_Delete(json);
	return usable;
}

/* The job that a process names, which is not among those that lost their xrun:
 * NULL if it runs. */
static struct remain *
look_up(struct look *look, const char *id)
{
	char dir[PATH_MAX];
	bool running = false, folder;
	struct remain *r;

	folder = look->root != NULL &&
		snprintf(dir, sizeof(dir), "%s/%s", look->root, id) <
			(int)sizeof(dir) &&
		jobs_is(dir, &running);
	if (running || has_socket(id))
		return NULL;
	r = add(look->out, id);
	if (folder)
		read_record(dir, r);
	return r;
}

static bool
is_of(const struct remain *r, const struct stray *stray)
{
	const struct stray_job job = {
		.id = r->id,
		.since = r->since,
		.cgroup = r->cgroup,
	};

	return r->this_boot && stray_fits(&job, stray);
}

/* A process that says it is of a known job and cannot be stays out. */
static void
add_stray(void *ctx, const struct stray *stray)
{
	struct look *look = ctx;
	struct remain *r;
	struct remain_process *p;

	if (!state_name_valid(stray->job))
		return; /* anybody can say anything */
	r = find(look->out, stray->job);
	if (r == NULL)
		r = look_up(look, stray->job);
	if (r == NULL || (r->known && !is_of(r, stray)))
		return;
	r->process = xrealloc(r->process, (r->count + 1) * sizeof(*p));
	p = &r->process[r->count++];
	p->pid = stray->pid;
	snprintf(p->name, sizeof(p->name), "%s", stray->name);
}

static bool
is_something(const struct remain *r)
{
	return r->unclosed || r->groups || r->socket || r->count > 0;
}

static void
fini_one(struct remain *r)
{
	free(r->cgroup);
	free(r->process);
}

/* Jobs that were looked up for a process that was not theirs. */
static void
drop_empty(struct remains *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->count; i++)
		if (is_something(&r->remain[i]))
			r->remain[kept++] = r->remain[i];
		else
			fini_one(&r->remain[i]);
	r->count = kept;
}

void
remains_look(struct remains *out)
{
	char *root = state_home();
	struct look look = { .out = out, .root = root };

	*out = (struct remains){ 0 };
	if (root != NULL)
		orphan_each(root, add_orphan, &look);
	ctl_place_each_dead(add_socket, &look);
	stray_each(add_stray, &look);
	drop_empty(out);
	free(root);
}

static void
end_processes(const struct remain *r)
{
	const struct stray_job job = {
		.id = r->id,
		.since = r->since,
		.cgroup = r->cgroup,
	};
	uint32_t ended;

	if (r->known && r->this_boot && !r->unclosed && r->count > 0)
		stray_end(&job, clock_now() + PATIENCE, &ended);
}

void
remains_end(const struct remains *found)
{
	char *root = state_home();

	if (root != NULL)
		orphan_run(xstrdup(root));
	for (size_t i = 0; i < found->count; i++)
		end_processes(&found->remain[i]);
	ctl_place_sweep(root == NULL ? NULL : orphan_end_bare, root);
	free(root);
}

void
remains_fini(struct remains *r)
{
	for (size_t i = 0; i < r->count; i++)
		fini_one(&r->remain[i]);
	free(r->remain);
	*r = (struct remains){ 0 };
}
