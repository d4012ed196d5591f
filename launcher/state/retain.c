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

static bool
is_late(int64_t deadline)
{
	return clock_now() >= deadline;
}

static DIR *
open_folder(int parent, const char *name)
{
	int fd = openat(parent, name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);

	if (dir == NULL)
		fd_close(fd);
	return dir;
}

/* By what a folder is known for a job: these go last, so that what is begun is
 * ended the next time. */
static bool
is_mark(const char *name)
{
	return strcmp(name, "job.json") == 0 || strcmp(name, "lock") == 0;
}

/* Everything in @dir, which is closed, but the marks of a job at @depth 0; links
 * are removed, never followed. False: not all, yet. */
static bool
empty_folder(DIR *dir, int depth, int64_t deadline)
{
	const struct dirent *d;
	bool all = true;
	DIR *sub;

	while (!is_late(deadline) && (d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 ||
			strcmp(d->d_name, "..") == 0 ||
			(depth == 0 && is_mark(d->d_name)) ||
			unlinkat(dirfd(dir), d->d_name, 0) == 0)
			continue;
		sub = depth < 4 ? open_folder(dirfd(dir), d->d_name) : NULL;
		if (sub == NULL || !empty_folder(sub, depth + 1, deadline) ||
			unlinkat(dirfd(dir), d->d_name, AT_REMOVEDIR) == -1)
			all = false;
	}
	closedir(dir);
	return all && !is_late(deadline);
}

/* With its lock in hand, so that nobody begins a job there meanwhile. */
static void
remove_job(int root, const char *id, int64_t deadline)
{
	static const char *const marks[] = { "job.json", "lock", "" };
	char path[PATH_MAX];
	DIR *dir = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/lock", id);
	fd = openat(root, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		dir = open_folder(root, id);
	if (dir != NULL && empty_folder(dir, 0, deadline))
		for (int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%s/%s", id, marks[i]);
			unlinkat(root, path,
				marks[i][0] == '\0' ? AT_REMOVEDIR : 0);
		}
	fd_close(fd);
}

/* What the files in @dir, which is closed, hold. */
static int64_t
bytes_in(DIR *dir, int depth, int64_t deadline)
{
	const struct dirent *d;
	struct stat st;
	int64_t bytes = 0;

	while (dir != NULL && !is_late(deadline) &&
		(d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.' ||
			fstatat(dirfd(dir), d->d_name, &st,
				AT_SYMLINK_NOFOLLOW) == -1)
			continue;
		if (S_ISREG(st.st_mode))
			bytes += st.st_size;
		else if (S_ISDIR(st.st_mode) && depth < 4)
			bytes += bytes_in(open_folder(dirfd(dir), d->d_name),
				depth + 1, deadline);
	}
	if (dir != NULL)
		closedir(dir);
	return bytes;
}

int64_t
retain_bytes(const char *dir, int64_t deadline)
{
	return bytes_in(open_folder(AT_FDCWD, dir), 0, deadline);
}

struct survey {
	struct retain_job *jobs;
	uint32_t n, cap;
	char host[256];
	int64_t deadline;
};

/* When it ended. A folder that was begun to be removed is younger than its
 * job.json; one that xrun did not live to end has an older one. */
static int64_t
end_of(const char *dir, bool ended)
{
	char path[PATH_MAX];
	struct stat st, json;

	if (stat(dir, &st) == -1)
		return INT64_MAX;
	snprintf(path, sizeof(path), "%s/job.json", dir);
	if (ended && stat(path, &json) == 0 &&
		json.st_mtim.tv_sec < st.st_mtim.tv_sec)
		st = json;
	return st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
}

/* xrun was killed before it could say whose job that is; by its age it runs
 * nowhere any more. */
static bool
is_lost(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/job.json", dir);
	return lstat(path, &st) == -1 && errno == ENOENT &&
		clock_wall() - end_of(dir, false) > RETAIN_AGE_NS;
}

static bool
is_from(const cJSON *json, const char *host)
{
	const char *text = jobs_text(json, "host");

	return text != NULL && strcmp(text, host) == 0;
}

/* A job that xrun did not live to end has neither "exit" nor "bytes"; it counts
 * as failed. */
static bool
consider(void *ctx, const char *dir, const char *id, bool running)
{
	struct survey *s = ctx;
	struct retain_job *job;
	cJSON *json;

	if (is_late(s->deadline) || s->n == s->cap)
		return false;
	if (running || strlen(id) >= sizeof(job->id))
		return true;
	json = jobs_read(dir);
	if (json == NULL ? is_lost(dir) : is_from(json, s->host)) {
		job = &s->jobs[s->n++];
		*job = (struct retain_job){
			.bytes = jobs_number(json, "bytes", -1),
			.failed = jobs_number(json, "exit", -1) != 0,
			.ended = end_of(dir,
				jobs_number(json, "exit", -1) != -1),
		};
		memcpy(job->id, id, strlen(id) + 1);
		if (job->bytes < 0)
			job->bytes = retain_bytes(dir, s->deadline);
		else
			job->bytes += jobs_number(json, "bytes_before", 0);
	}
	cJSON_Delete(json);
	return true;
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
		O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd != -1)
		futimens(fd, NULL);
	fd_close(fd);
	return false;
}

/* False: there was no time for all that may go. */
static bool
remove_chosen(int root, const struct survey *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->jobs[i].kept)
			continue;
		remove_job(root, s->jobs[i].id, s->deadline);
		if (is_late(s->deadline))
			return false;
	}
	return true;
}

void
retain_run(void *path)
{
	struct survey s = { .cap = 100000,
		.deadline = clock_now() + RETAIN_LOOK_NS };
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root != -1 && !done_lately(root)) {
		host_name(s.host, sizeof(s.host));
		s.jobs = calloc(s.cap, sizeof(*s.jobs));
		if (s.jobs != NULL)
			jobs_each_anywhere(path, consider, &s);
		retain_choose(s.jobs, s.n, clock_wall());
		s.deadline += RETAIN_TURN_NS - RETAIN_LOOK_NS;
		if (!remove_chosen(root, &s))
			retain_soon(path);
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

static int
retain_by_age(const void *pa, const void *pb)
{
	const struct retain_job *a = pa, *b = pb;

	return (a->ended > b->ended) - (a->ended < b->ended);
}

static bool
retain_is_there(int root, const char *id)
{
	struct stat st;

	return fstatat(root, id, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct retain_freed
retain_free_chosen(int root, const struct survey *s, retain_enough_fn *enough,
	void *ctx)
{
	struct retain_freed freed = { 0 };

	for (uint32_t i = 0; i < s->n && !is_late(s->deadline); i++) {
		if (s->jobs[i].bytes == 0)
			continue;
		if (enough(ctx))
			break;
		remove_job(root, s->jobs[i].id, s->deadline);
		if (retain_is_there(root, s->jobs[i].id))
			continue;
		freed.jobs++;
		freed.bytes += s->jobs[i].bytes;
	}
	return freed;
}

struct retain_freed
retain_free(const char *path, retain_enough_fn *enough, void *ctx)
{
	struct survey s = { .cap = 100000,
		.deadline = clock_now() + RETAIN_FREE_NS };
	struct retain_freed freed = { 0 };
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root != -1) {
		host_name(s.host, sizeof(s.host));
		s.jobs = calloc(s.cap, sizeof(*s.jobs));
		if (s.jobs != NULL)
			jobs_each(path, consider, &s);
		if (s.n > 0)
			qsort(s.jobs, s.n, sizeof(*s.jobs), retain_by_age);
		freed = retain_free_chosen(root, &s, enough, ctx);
		free(s.jobs);
	}
	fd_close(root);
	return freed;
}

bool
retain_remove(const char *path, const char *id)
{
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool gone = true;

	if (root != -1) {
		remove_job(root, id, INT64_MAX);
		gone = !retain_is_there(root, id);
	}
	fd_close(root);
	return gone;
}
