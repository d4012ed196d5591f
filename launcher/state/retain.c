/* SPDX-License-Identifier: Apache-2.0 */
/* retain.c - see retain.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/host.h"
#include "base/json.h"
#include "launcher/state/jobs.h"
#include "launcher/state/retain.h"

#define STAMP         ".retained"
#define STAMP_EVERY_S 600

/* Goes first, goes last: well before failed, then old before young. */
static int
by_worth(const void *pa, const void *pb)
{
	const struct retain_job *a = pa, *b = pb;

	if (a->failed != b->failed)
		return a->failed ? 1 : -1;
	return (a->ended > b->ended) - (a->ended < b->ended);
}

void
retain_choose(struct retain_job *jobs, uint32_t n, int64_t now)
{
	int64_t total = 0;

	if (jobs == NULL || n == 0)
		return;
	qsort(jobs, n, sizeof(*jobs), by_worth);
	for (uint32_t i = 0; i < n; i++) {
		jobs[i].kept = now - jobs[i].ended < RETAIN_AGE_NS;
		total += jobs[i].kept ? jobs[i].bytes : 0;
	}
	for (uint32_t i = 0; i < n && total > RETAIN_BYTES; i++) {
		total -= jobs[i].kept ? jobs[i].bytes : 0;
		jobs[i].kept = false;
	}
}

/* Everything below; links are removed, never followed. */
static void
remove_tree(int parent, const char *name, int depth)
{
	const struct dirent *d;
	int fd = openat(parent, name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);

	if (dir == NULL) {
		fd_close(fd);
		unlinkat(parent, name, 0);
		return;
	}
	while ((d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), d->d_name, 0) == -1 && depth < 4)
			remove_tree(dirfd(dir), d->d_name, depth + 1);
	}
	closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* With its lock in hand, so that nobody begins a job there meanwhile. */
static void
remove_job(int root, const char *id)
{
	char lock[PATH_MAX];
	int fd;

	snprintf(lock, sizeof(lock), "%s/lock", id);
	fd = openat(root, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		remove_tree(root, id, 0);
	fd_close(fd);
}

static int64_t
number_of(const cJSON *json, const char *key, int64_t otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	if (!cJSON_IsNumber(item) || item->valuedouble < 0 ||
		item->valuedouble >= (double)INT64_MAX)
		return otherwise;
	return (int64_t)item->valuedouble;
}

static const char *
text_of(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

struct survey {
	struct retain_job *jobs;
	uint32_t n, cap;
	char host[256];
	int64_t deadline;
};

/* A job that xrun did not live to end has no "exit"; it counts as failed, and
 * by the age of its folder. */
static void
consider(void *ctx, const char *dir, const char *id, bool running)
{
	struct survey *s = ctx;
	struct retain_job *job;
	struct stat st;
	cJSON *json;

	if (running || strlen(id) >= sizeof(job->id) || s->n == s->cap ||
		clock_now() >= s->deadline || stat(dir, &st) == -1)
		return;
	json = jobs_read(dir);
	if (json != NULL && strcmp(text_of(json, "host"), s->host) == 0) {
		job = &s->jobs[s->n++];
		*job = (struct retain_job){
			.ended = st.st_mtim.tv_sec * NS_PER_S +
				st.st_mtim.tv_nsec,
			.bytes = number_of(json, "bytes", 0),
			.failed = number_of(json, "exit", -1) != 0,
		};
		memcpy(job->id, id, strlen(id) + 1);
	}
	cJSON_Delete(json);
}

static bool
done_lately(int root)
{
	struct stat st;
	int fd;

	if (fstatat(root, STAMP, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		time(NULL) - st.st_mtim.tv_sec < STAMP_EVERY_S)
		return true;
	fd = openat(root, STAMP,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd != -1)
		futimens(fd, NULL);
	fd_close(fd);
	return false;
}

void
retain_run(void *path)
{
	struct survey s = { .cap = 100000,
		.deadline = clock_now() + RETAIN_TURN_NS };
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root != -1 && !done_lately(root)) {
		host_name(s.host, sizeof(s.host));
		s.jobs = calloc(s.cap, sizeof(*s.jobs));
		if (s.jobs != NULL)
			jobs_each(path, consider, &s);
		retain_choose(s.jobs, s.n, clock_wall());
		for (uint32_t i = 0; i < s.n && clock_now() < s.deadline; i++)
			if (!s.jobs[i].kept)
				remove_job(root, s.jobs[i].id);
		free(s.jobs);
	}
	fd_close(root);
	free(path);
}

void
retain_soon(const char *root)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/" STAMP, root) < PATH_MAX)
		unlink(path);
}
