/* SPDX-License-Identifier: Apache-2.0 */
/* which.c - see which.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/which.h"
#include "launcher/ctl/place.h"
#include "launcher/job/words.h"
#include "launcher/keeper/lost.h"
#include "launcher/state/history.h"
#include "launcher/state/jobs.h"

/* All jobs there are. A verb is short-lived: xmalloc is fine. */
struct list {
	struct which *job;
	size_t count;
};

static struct which *
which_add(struct list *l, const char *id)
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
	struct which *w = which_add(ctx, id);

	snprintf(w->dir, sizeof(w->dir), "%s", dir);
	w->running = running;
	return true;
}

static bool
add_socket(void *ctx, const char *id)
{
	which_add(ctx, id)->running = true;
	return true;
}

/* A job has a record before it has a socket. With --log-dir it names the folder. */
static void
which_add_record(void *ctx, const struct lost_facts *facts)
{
	struct which *w = which_add(ctx, facts->id);
	const char *start = jobs_text(facts->record, "start");

	w->running = true;
	if (start != NULL)
		snprintf(w->start, sizeof(w->start), "%s", start);
	if (w->dir[0] == '\0' && facts->dir != NULL)
		snprintf(w->dir, sizeof(w->dir), "%s", facts->dir);
}

/* Returns true if the run in the folder of @w began before the one of @said. Stamps of one length compare as text. */
static bool
which_is_older(const struct which *w, const cJSON *said)
{
	cJSON *json = jobs_read(w->dir);
	const char *old = jobs_text(json, "start");
	const char *start = jobs_text(said, "start");
	bool older = old != NULL && start != NULL && strcmp(old, start) < 0;

	cJSON_Delete(json);
	return older;
}

static void
which_add_past(struct list *l, const cJSON *said)
{
	struct which *w = which_add(l, jobs_text(said, "job"));
	const char *dir = jobs_text(said, "dir");
	bool running;

	if (w->running || (w->dir[0] != '\0' && !which_is_older(w, said)))
		return;
	w->past = true;
	if (jobs_text(said, "start") != NULL)
		snprintf(w->start, sizeof(w->start), "%s",
			jobs_text(said, "start"));
	w->kept = dir != NULL && jobs_number(said, "bytes", 1) > 0;
	/* The folder holds an earlier run, if there is one. */
	w->dir[0] = '\0';
	if (dir != NULL && jobs_is(dir, &running))
		snprintf(w->dir, sizeof(w->dir), "%s", dir);
}

static struct list
all_jobs(void)
{
	struct list l = { 0 };
	struct history past;
	char *root = state_home();

	if (root != NULL)
		jobs_each(root, add_folder, &l);
	ctl_place_each(add_socket, &l);
	lost_each_held(which_add_record, &l);
	history_read(&past, root);
	for (size_t i = 0; i < past.count; i++)
		which_add_past(&l, past.job[i]);
	history_fini(&past);
	free(root);
	return l;
}

cJSON *
which_said(const struct which *job)
{
	cJSON *json = job->dir[0] == '\0' ? NULL : jobs_read(job->dir);
	struct history past;
	char *root;

	if (json != NULL || !job->past)
		return json;
	root = state_home();
	history_read(&past, root);
	json = cJSON_Duplicate(history_find(&past, job->id), true);
	history_fini(&past);
	free(root);
	return json;
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

/* Start and end of a job as text; "" if unknown. */
struct which_times {
	char start[40], end[40];
};

static struct which_times
which_times(const struct which *job)
{
	struct which_times times = { 0 };
	cJSON *json = which_said(job);
	const char *start, *end;

	memcpy(times.start, job->start, sizeof(times.start));
	if (json == NULL && times.start[0] == '\0')
		json = dial_status_now(job);
	start = jobs_text(json, "start");
	end = jobs_text(json, "end");
	if (start != NULL)
		snprintf(times.start, sizeof(times.start), "%s", start);
	if (end != NULL && !job->running)
		snprintf(times.end, sizeof(times.end), "%s", end);
	cJSON_Delete(json);
	return times;
}

/* "job k7m2, 3 min ago". The time begins at the end of the job. If the job runs, it
 * begins at its start. */
static void
which_name(const struct which *job)
{
	const struct which_times times = which_times(job);
	bool ended = times.end[0] != '\0';
	int64_t since = clock_parse(ended ? times.end : times.start);
	int64_t now = clock_wall();
	char ago[32];

	if (since == -1 || since > now)
		words_line("job %s", job->id);
	else
		words_line("job %s, %s%s ago", job->id, ended ? "" : "started ",
			clock_rough(now - since, ago, sizeof(ago)));
}

/* Finds the job that began last: the one in `latest`, or one of the history. */
static bool
which_find_latest(const struct list *l, struct which *job)
{
	char id[PATH_MAX], start[40] = "";
	bool found =
		read_latest(id, sizeof(id)) && pick(l, begins_so, id, job) == 1;

	if (found)
		memcpy(start, which_times(job).start, sizeof(start));
	for (size_t i = 0; i < l->count; i++) {
		if (!l->job[i].past ||
			(found && strcmp(l->job[i].start, start) <= 0))
			continue;
		*job = l->job[i];
		memcpy(start, job->start, sizeof(start));
		found = true;
	}
	return found;
}

static enum xr_status
choose_unnamed(const struct list *l, enum which_none none, struct which *job,
	struct xr_error *err)
{
	char names[3 * (STATE_ID_MAX + 2) + 8];
	unsigned count = pick(l, runs, NULL, job);

	if (count > 1) {
		put_names(l, runs, NULL, names, sizeof(names));
		return fail(err, XR_E_INVAL, "which job? %u run: %s\txrun ps",
			count, names);
	}
	if (count == 1 || (none == WHICH_LATEST && which_find_latest(l, job))) {
		which_name(job);
		return XR_OK;
	}
	return fail(err, XR_E_NOTFOUND,
		none == WHICH_LATEST ?
			"there is no job yet\txrun ps -a" :
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
		if (strcmp(l.job[i].id, job->id) == 0) {
			job->running = l.job[i].running;
			job->past = l.job[i].past;
			job->kept = l.job[i].kept;
		}
	free(l.job);
	return job->running;
}
