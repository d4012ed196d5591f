/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - see jobs.h. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "launcher/state/jobs.h"
#include "launcher/state/state.h"

#define JOB_JSON_MAX (64 << 20) /* a line a rank, of many thousand ranks */
#define NAMES        3          /* jobs that are named */

bool
jobs_is(const char *dir, bool *running)
{
	char lock[PATH_MAX];
	int fd;

	if (snprintf(lock, sizeof(lock), "%s/lock", dir) >= (int)sizeof(lock))
		return false;
	fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd == -1)
		return false;
	/* Shared: two who look at once are no job. */
	*running = flock(fd, LOCK_SH | LOCK_NB) == -1;
	fd_close(fd);
	return true;
}

/* And no link to one: `latest`, or what a person made; and no other user's. */
static bool
is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		state_is_trusted(&st);
}

struct walk {
	const char *root;
	jobs_fn *fn;
	void *ctx;
};

/* Entries @from to @to - 1 of the folder; how many were met. */
static uint64_t
walk(const struct walk *w, uint64_t from, uint64_t to)
{
	DIR *dir = opendir(w->root);
	const struct dirent *d;
	char path[PATH_MAX];
	bool running, more = true;
	uint64_t met = 0;

	while (dir != NULL && more && met < to && (d = readdir(dir)) != NULL) {
		if (met++ < from || d->d_name[0] == '.' ||
			snprintf(path, sizeof(path), "%s/%s", w->root,
				d->d_name) >= (int)sizeof(path))
			continue;
		if (is_folder(path) && jobs_is(path, &running))
			more = w->fn(w->ctx, path, d->d_name, running);
	}
	if (dir != NULL)
		closedir(dir);
	return more ? met : UINT64_MAX;
}

void
jobs_each(const char *root, jobs_fn *fn, void *ctx)
{
	walk(&(struct walk){ root, fn, ctx }, 0, UINT64_MAX);
}

void
jobs_each_anywhere(const char *root, jobs_fn *fn, void *ctx)
{
	const struct walk w = { root, fn, ctx };
	uint64_t count = walk(&w, UINT64_MAX, UINT64_MAX);
	uint64_t from = count == 0 ? 0 : (uint64_t)clock_now() % count;

	if (walk(&w, from, UINT64_MAX) != UINT64_MAX)
		walk(&w, 0, from);
}

cJSON *
jobs_read(const char *dir)
{
	char path[PATH_MAX], *text = NULL;
	cJSON *json = NULL;
	size_t len;

	if (snprintf(path, sizeof(path), "%s/job.json", dir) >=
		(int)sizeof(path))
		return NULL;
	if (fd_read_file(path, JOB_JSON_MAX, &text, &len, NULL) != XR_OK)
		return NULL;
	if (gate_check("job.json", text, len, JOB_JSON_MAX, NULL) == XR_OK)
		json = cJSON_ParseWithLength(text, len);
	free(text);
	return json;
}

const char *
jobs_text(const cJSON *json, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json,
		key));
}

int64_t
jobs_number(const cJSON *json, const char *key, int64_t otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	if (!cJSON_IsNumber(item) || item->valuedouble < 0 ||
		item->valuedouble >= (double)INT64_MAX)
		return otherwise;
	return (int64_t)item->valuedouble;
}

struct running {
	uint32_t count;
	struct buf *out;
};

/* " (8 ranks, 3 min)": the lock is as old as the job, and a job writes its
 * job.json only when it is 20 ms old. */
static void
put_job(struct buf *out, const char *dir, const char *id)
{
	cJSON *json = jobs_read(dir);
	const cJSON *ranks = cJSON_GetObjectItemCaseSensitive(json, "ranks");
	char path[PATH_MAX], age[32];
	struct stat st;

	buf_fmt(out, "%s%s (", out->len > 0 ? ", " : "", id);
	if (cJSON_IsNumber(ranks))
		buf_fmt(out, "%.0f rank%s, ", ranks->valuedouble,
			ranks->valuedouble == 1 ? "" : "s");
	cJSON_Delete(json);
	if (snprintf(path, sizeof(path), "%s/lock", dir) >= (int)sizeof(path) ||
		stat(path, &st) == -1)
		st.st_mtime = time(NULL);
	buf_fmt(out, "%s)",
		clock_rough((time(NULL) - st.st_mtime) * NS_PER_S, age,
			sizeof(age)));
}

static bool
note_running(void *ctx, const char *dir, const char *id, bool running)
{
	struct running *r = ctx;

	if (!running)
		return true;
	if (r->out != NULL && r->count < NAMES)
		put_job(r->out, dir, id);
	else if (r->out != NULL && r->count == NAMES)
		buf_put_text(r->out, ", ...");
	r->count++;
	return true;
}

uint32_t
jobs_running(struct buf *out)
{
	struct running r = { .out = out };
	char *root = state_home();

	jobs_each(root, note_running, &r);
	free(root);
	return r.count;
}
