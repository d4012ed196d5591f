/* SPDX-License-Identifier: Apache-2.0 */
/* attempt.c - see attempt.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/status.h"
#include "launcher/cmd/attempt.h"
#include "launcher/cmd/dial.h"
#include "launcher/state/jobs.h"

#define KNOWN_NS (2 * NS_PER_S)

/* --- the job -------------------------------------------------------------- */

static bool
is_locked(const char *dir)
{
	bool running;

	return jobs_is(dir, &running) && running;
}

/* --log-dir of a job that has ended is known to nobody else. */
static enum xr_status
find_folder(const char *text, struct which *job, struct xr_error *err)
{
	char path[PATH_MAX], lock[PATH_MAX + 8];

	if (realpath(text, path) == NULL)
		return fail(err, XR_E_NOTFOUND, "%s: %s", text,
			strerror(errno));
	snprintf(lock, sizeof(lock), "%s/lock", path);
	if (access(lock, F_OK) == -1)
		return fail(err, XR_E_INVAL,
			"%s: is not the folder of a job: it has no lock", text);
	snprintf(job->dir, sizeof(job->dir), "%s", path);
	snprintf(job->id, sizeof(job->id), "%.64s", strrchr(path, '/') + 1);
	job->running = is_locked(path);
	return XR_OK;
}

/* A job without a folder where folders are says where it writes. */
static enum xr_status
ask_folder(struct which *job, const char *what, struct xr_error *err)
{
	cJSON *json = NULL;
	enum xr_status status = dial_status(job, &json, err);
	const char *output = jobs_text(json, "output");
	char *slash;

	if (status == XR_OK && output == NULL)
		status = fail(err, XR_E_STATE,
			"%s keeps no %s: it was started with --no-logs\tstart it without that, or with --log-dir DIR",
			job->id, what);
	if (status == XR_OK)
		snprintf(job->dir, sizeof(job->dir), "%s", output);
	slash = strrchr(job->dir, '/');
	if (slash != NULL)
		*slash = '\0';
	cJSON_Delete(json);
	return status;
}

/* Explains why a job that has ended has no folder. */
static enum xr_status
attempt_explain_past(const struct which *job, const char *what,
	struct xr_error *err)
{
	cJSON *json = which_said(job);
	bool off =
		cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "no_logs"));
	const char *dir = jobs_text(json, "dir");

	if (off)
		fail(err, XR_E_STATE,
			"%s kept no %s: it was started with --no-logs\tstart it without that, or with --log-dir DIR",
			job->id, what);
	else if (job->kept && dir != NULL)
		fail(err, XR_E_NOTFOUND, "%s: its %s was removed from %s",
			job->id, what, dir);
	else
		fail(err, XR_E_END, "%s kept no %s: its ranks wrote nothing",
			job->id, what);
	cJSON_Delete(json);
	return off ? XR_E_STATE : job->kept ? XR_E_NOTFOUND : XR_E_END;
}

enum xr_status
attempt_find_job(const char *text, const char *what, struct attempt *a,
	struct xr_error *err)
{
	enum xr_status status;

	*a = ATTEMPT_NONE;
	status = text != NULL && strchr(text, '/') != NULL ?
		find_folder(text, &a->job, err) :
		which_job(text, WHICH_LATEST, &a->job, err);
	if (status == XR_OK && a->job.dir[0] == '\0' && a->job.past)
		status = attempt_explain_past(&a->job, what, err);
	else if (status == XR_OK && a->job.dir[0] == '\0')
		status = ask_folder(&a->job, what, err);
	return status;
}

bool
attempt_is_followed(const struct attempt *a)
{
	char next[16];

	snprintf(next, sizeof(next), "%u", a->number + 1);
	return faccessat(a->folder, next, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
attempt_is_over(const struct attempt *a)
{
	return attempt_is_followed(a) || !is_locked(a->job.dir);
}

/* --- what is known -------------------------------------------------------- */

/* One line of events.jsonl tells of the attempt. */
static void
read_event(struct attempt *a, const char *line, size_t len, int64_t *number)
{
	cJSON *json = NULL;
	const char *event;

	if (gate_check("", line, len, GATE_MAX, NULL) == XR_OK)
		json = cJSON_ParseWithLength(line, len);
	event = jobs_text(json, "event");
	if (event != NULL && strcmp(event, "job.start") == 0)
		*number = jobs_number(json, "attempt", 0);
	if (event == NULL || *number != a->number)
		event = "";
	if (strcmp(event, "job.start") == 0) {
		a->ranks = (uint32_t)jobs_number(json, "ranks", 0);
		a->start = clock_parse(jobs_text(json, "time"));
	} else if (strcmp(event, "job.end") == 0 ||
		strcmp(event, "job.restart") == 0) {
		a->end = clock_parse(jobs_text(json, "time"));
	}
	cJSON_Delete(json);
}

/* job.json is of the last attempt; events.jsonl tells of all. */
static void
read_events(struct attempt *a)
{
	char path[PATH_MAX + 16], *text = NULL, *nl;
	int64_t number = -1;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/events.jsonl", a->job.dir);
	if (fd_read_file(path, 1 << 30, &text, &len, NULL) != XR_OK)
		return;
	for (char *p = text; (nl = strchr(p, '\n')) != NULL; p = nl + 1)
		if (memmem(p, (size_t)(nl - p), "\"job.", 5) != NULL)
			read_event(a, p, (size_t)(nl - p), &number);
	free(text);
}

/* Of folders alone: what nobody tells of; 0: none. */
static uint32_t
count_ranks(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd == -1 ? NULL : fdopendir(fd);
	const struct dirent *d;
	unsigned rank, most = 0;

	while (all != NULL && (d = readdir(all)) != NULL)
		if (sscanf(d->d_name, "rank-%u", &rank) == 1 && rank >= most &&
			rank < UINT32_MAX / 4)
			most = rank + 1;
	if (all != NULL)
		closedir(all);
	return most;
}

static void
read_json(struct attempt *a, const cJSON *json)
{
	int64_t start = clock_parse(jobs_text(json, "start"));
	int64_t end = clock_parse(jobs_text(json, "end"));

	if (json == NULL || jobs_number(json, "attempt", 0) != a->number)
		return;
	a->ranks = (uint32_t)jobs_number(json, "ranks", 0);
	if (start != -1)
		a->start = start;
	if (end != -1 && !a->job.running)
		a->end = end;
}

static void
read_facts(struct attempt *a)
{
	cJSON *json = jobs_read(a->job.dir);

	a->ranks = 0;
	a->start = a->end = clock_wall();
	read_json(a, json);
	cJSON_Delete(json);
	if (a->ranks == 0)
		read_events(a);
	if (a->ranks == 0) {
		json = dial_status_now(&a->job);
		read_json(a, json);
		cJSON_Delete(json);
	}
	a->known = a->ranks > 0 && a->ranks <= UINT32_MAX / 4;
	if (!a->known)
		a->ranks = count_ranks(a->dir);
	if (a->ranks == 0)
		a->ranks = 1;
}

bool
attempt_is_known(struct attempt *a)
{
	bool over = attempt_is_over(a);

	if (!a->known)
		read_facts(a);
	return a->known || over;
}

/* No event tells of that. */
bool
attempt_await_known(struct attempt *a)
{
	const struct timespec nap = { .tv_nsec = 5 * NS_PER_MS };
	int64_t end = clock_now() + KNOWN_NS;

	while (!attempt_is_known(a)) {
		if (clock_now() >= end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* --- its folder ----------------------------------------------------------- */

static int
open_folder(const struct attempt *a, uint32_t number)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	return openat(a->folder, name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool
open_number(struct attempt *a, uint32_t number)
{
	int dir = open_folder(a, number);

	if (dir == -1)
		return false;
	fd_close(a->dir);
	a->dir = dir;
	a->number = number;
	read_facts(a);
	return true;
}

enum xr_status
attempt_open(struct attempt *a, int64_t number, struct xr_error *err)
{
	uint32_t next;

	a->folder = open(a->job.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->folder == -1)
		return fail(err, XR_E_SYS, "%s: %s", a->job.dir,
			strerror(errno));
	next = state_next_number(a->job.dir);
	if (number == ATTEMPT_LAST)
		number = next == 0 ? 0 : next - 1;
	if (open_number(a, (uint32_t)number))
		return XR_OK;
	if (next == 0)
		return fail(err, XR_E_NOTFOUND, "%s: there is no output in %s",
			a->job.id, a->job.dir);
	return fail(err, XR_E_NOTFOUND,
		"%s has no attempt %lld\t--attempt %u, its last", a->job.id,
		(long long)number, next - 1);
}

bool
attempt_next(struct attempt *a)
{
	return open_number(a, a->number + 1);
}

/* Nobody's rank wrote anything in it, if there is such an attempt. */
static bool
is_silent(const struct attempt *a, uint32_t number)
{
	int dir = open_folder(a, number);
	bool silent = dir != -1 && count_ranks(dir) == 0;

	fd_close(dir);
	return silent;
}

bool
attempt_back(struct attempt *a)
{
	uint32_t number = a->number;

	while (number > 0 && is_silent(a, number))
		number--;
	return number != a->number && !is_silent(a, number) &&
		open_number(a, number);
}

bool
attempt_job_runs(const struct attempt *a)
{
	return is_locked(a->job.dir);
}

void
attempt_close(struct attempt *a)
{
	fd_close(a->dir);
	fd_close(a->folder);
	*a = ATTEMPT_NONE;
}
