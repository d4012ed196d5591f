/* SPDX-License-Identifier: Apache-2.0 */
/* which.c - see which.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/which.h"
#include "launcher/ctl/place.h"
#include "launcher/state/jobs.h"

/* All jobs there are. A verb is short-lived: xmalloc is fine. */
struct list {
	struct which *job;
	size_t count;
};

static struct which *
add(struct list *l, const char *id)
{
	struct which *w;

	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->job[i].id, id) == 0)
			return &l->job[i];
	l->job = xrealloc(l->job, (l->count + 1) * sizeof(*l->job));
	w = &l->job[l->count++];
	memset(w, 0, sizeof(*w));
	snprintf(w->id, sizeof(w->id), "%s", id);
	return w;
}

static bool
add_folder(void *ctx, const char *dir, const char *id, bool running)
{
	struct which *w = add(ctx, id);

	snprintf(w->dir, sizeof(w->dir), "%s", dir);
	w->running = running;
	return true;
}

static bool
add_socket(void *ctx, const char *id)
{
	add(ctx, id)->running = true;
	return true;
}

static struct list
all_jobs(void)
{
	struct list l = { 0 };
	char *root = state_home();

	if (root != NULL)
		jobs_each(root, add_folder, &l);
	free(root);
	ctl_place_each(add_socket, &l);
	return l;
}

void
which_each(which_fn *fn, void *ctx)
{
	struct list l = all_jobs();

	for (size_t i = 0; i < l.count && fn(ctx, &l.job[i]); i++)
		continue;
	free(l.job);
}

/* "k7m2, k7p3, ..." */
static void
put_names(const struct list *l, bool (*is)(const struct which *, const char *),
	const char *text, char *out, size_t cap)
{
	size_t len = 0;
	int shown = 0;

	out[0] = '\0';
	for (size_t i = 0; i < l->count && len < cap; i++) {
		if (!is(&l->job[i], text))
			continue;
		if (shown++ == 3) {
			snprintf(out + len, cap - len, ", ...");
			break;
		}
		len += (size_t)snprintf(out + len, cap - len, "%s%s",
			len > 0 ? ", " : "", l->job[i].id);
	}
}

static bool
begins_so(const struct which *w, const char *text)
{
	return strncmp(w->id, text, strlen(text)) == 0;
}

static bool
runs(const struct which *w, const char *text)
{
	return w->running && (text == NULL || begins_so(w, text));
}

/* How many are meant; the last of them, or who bears just that name, in @job. */
static unsigned
pick(const struct list *l, bool (*is)(const struct which *, const char *),
	const char *text, struct which *job)
{
	unsigned count = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (!is(&l->job[i], text))
			continue;
		*job = l->job[i];
		if (text != NULL && strcmp(job->id, text) == 0)
			return 1;
		count++;
	}
	return count;
}

/* The name in `latest`; false: there is none. */
static bool
read_latest(char *id, size_t cap)
{
	char *root = state_home(), path[PATH_MAX];
	ssize_t n = -1;

	if (root != NULL &&
		snprintf(path, sizeof(path), "%s/latest", root) <
			(int)sizeof(path))
		n = readlink(path, id, cap - 1);
	free(root);
	id[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

static enum xr_status
choose_unnamed(const struct list *l, enum which_none none, struct which *job,
	struct xr_error *err)
{
	char id[PATH_MAX], names[3 * (STATE_ID_MAX + 2) + 8];
	unsigned count = pick(l, runs, NULL, job);

	if (count == 1)
		return XR_OK;
	if (count > 1) {
		put_names(l, runs, NULL, names, sizeof(names));
		return fail(err, XR_E_INVAL, "which job? %u run: %s\txrun ps",
			count, names);
	}
	if (none == WHICH_LATEST && read_latest(id, sizeof(id)) &&
		pick(l, begins_so, id, job) == 1)
		return XR_OK;
	return fail(err, XR_E_NOTFOUND,
		none == WHICH_LATEST ?
			"there is no job that kept output\txrun ps -a" :
			"no job runs\txrun ps -a, for those that have ended");
}

static enum xr_status
choose(const struct list *l, const char *text, struct which *job,
	struct xr_error *err)
{
	bool (*is)(const struct which *, const char *) = begins_so;
	char names[3 * (STATE_ID_MAX + 2) + 8];
	unsigned count;

	/* All begin so: a script whose variable is unset means none of them. */
	if (text[0] == '\0')
		return fail(err, XR_E_INVAL,
			"which job? the one named is ''\txrun ps");
	count = pick(l, is, text, job);
	/* Of several, one that runs is meant. */
	if (count > 1 && pick(l, runs, text, job) > 0) {
		is = runs;
		count = pick(l, is, text, job);
	}
	if (count == 1)
		return XR_OK;
	if (count == 0)
		return fail(err, XR_E_NOTFOUND,
			"there is no job '%s'\txrun ps -a", text);
	put_names(l, is, text, names, sizeof(names));
	return fail(err, XR_E_INVAL,
		"'%s' may be any of %u jobs: %s\tmore of its id", text, count,
		names);
}

enum xr_status
which_job(const char *text, enum which_none none, struct which *job,
	struct xr_error *err)
{
	struct list l = all_jobs();
	enum xr_status status = text != NULL ?
		choose(&l, text, job, err) :
		choose_unnamed(&l, none, job, err);

	free(l.job);
	return status;
}

bool
which_runs(struct which *job)
{
	struct list l;

	if (job->dir[0] != '\0' && jobs_is(job->dir, &job->running))
		return job->running;
	l = all_jobs();
	job->running = false;
	for (size_t i = 0; i < l.count; i++)
		if (strcmp(l.job[i].id, job->id) == 0)
			job->running = l.job[i].running;
	free(l.job);
	return job->running;
}
