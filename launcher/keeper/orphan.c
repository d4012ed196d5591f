/* SPDX-License-Identifier: Apache-2.0 */
/* orphan.c - see orphan.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
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
#include "launcher/ctl/place.h"
#include "launcher/job/outcome.h"
#include "launcher/keeper/orphan.h"
#include "launcher/state/jobs.h"
#include "launcher/state/retain.h"
#include "launcher/state/state.h"
#include "proc/descend.h"
#include "proc/leaf.h"
#include "proc/locks.h"
#include "proc/stray.h"

#define PATIENCE    (2 * NS_PER_S) /* with processes that take time to end */
#define GROUP_TRIES 1000 /* a millisecond each, for the killed to go */
#define DYING_NS    (2 * NS_PER_S) /* for an xrun that was killed to be gone */
#define AGAIN_NS    (5 * NS_PER_MS)
#define PLACES_S    1 /* for its runtime folder to be swept */

struct tour { /* of the open jobs */
	const char *root;
	bool dying;    /* an xrun that was killed holds its lock still */
	bool ended;    /* one was closed, now */
	orphan_fn *fn; /* to be told, and nobody is ended; or NULL */
	void *ctx;
};

struct orphan {
	const char *id;
	char dir[PATH_MAX];
	int lock;            /* held */
	int64_t since;       /* its mtime */
	struct timespec age; /* of the folder */
	uint32_t attempt;    /* that was lost */
	cJSON *json;         /* of job.json; NULL: there is none */
};

static bool
is_same(const char *text, const char *here)
{
	return text == NULL || strcmp(text, here) == 0;
}

/* Did it begin since this machine was started? */
static bool
is_of_this_boot(const struct orphan *o)
{
	struct timespec up;
	char boot[64];

	if (o->json != NULL)
		return is_same(jobs_text(o->json, "boot"),
			host_boot(boot, sizeof(boot)));
	return clock_gettime(CLOCK_BOOTTIME, &up) == 0 &&
		clock_wall() - o->since < up.tv_sec * NS_PER_S;
}

/* Only what it said in time can be said of it: its beginning. */
static cJSON *
beginning(const struct orphan *o)
{
	char text[256];
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "v", 1);
	cJSON_AddStringToObject(json, "job", o->id);
	cJSON_AddNumberToObject(json, "attempt", o->attempt);
	cJSON_AddStringToObject(json, "host", host_name(text, sizeof(text)));
	cJSON_AddStringToObject(json, "start",
		clock_stamp(o->since, text, sizeof(text)));
	return json;
}

/* By which retention goes: the job ended long ago. */
static void
keep_age(const struct state *st, const struct orphan *o)
{
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, o->age };

	if (st->dir_fd != -1)
		futimens(st->dir_fd, times);
}

static int64_t
bytes_of(const struct orphan *o, uint32_t attempt)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%u", o->dir, attempt) >=
		(int)sizeof(path))
		return 0;
	return retain_bytes(path, clock_now() + PATIENCE);
}

/* What nobody lived to count. */
static void
add_bytes(const struct orphan *o)
{
	int64_t before = 0;

	for (uint32_t i = 0; i < o->attempt; i++)
		before += bytes_of(o, i);
	cJSON_AddNumberToObject(o->json, "bytes",
		(double)bytes_of(o, o->attempt));
	if (before > 0)
		cJSON_AddNumberToObject(o->json, "bytes_before",
			(double)before);
}

static void
close_record(struct orphan *o, uint32_t ended)
{
	struct state st = { .lock_fd = o->lock, .attempt_fd = -1 };
	char stamp[40], *text;

	if (o->json == NULL)
		o->json = beginning(o);
	cJSON_AddStringToObject(o->json, "end",
		clock_stamp(clock_wall(), stamp, sizeof(stamp)));
	cJSON_AddNumberToObject(o->json, "exit", EXIT_XRUN);
	cJSON_AddStringToObject(o->json, "reason", "supervisor lost");
	cJSON_AddNumberToObject(o->json, "left_behind", ended);
	add_bytes(o);
	text = cJSON_PrintUnformatted(o->json);
	st.dir_fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (text != NULL && st.dir_fd != -1 &&
		state_write(&st, "job.json", text, strlen(text)) == 0)
		state_close(&st);
	keep_age(&st, o);
	fd_close(st.dir_fd);
	free(text);
}

/* All of it is in groups of its own: whatever they did to their environment. */
static void
end_groups(const struct orphan *o)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	const char *group = jobs_text(o->json, "cgroup");
	const char *leaf = jobs_text(o->json, "rank_cgroups");
	struct leaves leaves;
	int tries = 0;

	if (leaf == NULL || group == NULL ||
		!leaf_reopen(&leaves, group, o->id, leaf))
		return;
	leaf_kill(&leaves);
	while (!leaf_remove(&leaves) && tries++ < GROUP_TRIES)
		nanosleep(&pause, NULL);
	leaf_close(&leaves);
}

static struct stray_job
stray_job_of(const struct orphan *o)
{
	return (struct stray_job){
		.id = o->id,
		.since = o->since,
		.cgroup = jobs_text(o->json, "cgroup"),
	};
}

/* False if somebody is left. */
static bool
end_all(const struct orphan *o, uint32_t *ended)
{
	const struct stray_job job = stray_job_of(o);
	bool gone;

	*ended = 0;
	if (!is_of_this_boot(o))
		return true;
	gone = stray_end(&job, clock_now() + PATIENCE, ended);
	end_groups(o);
	return gone;
}

/* The record of an attempt before it says nothing of the one that was lost. */
static void
forget_former(struct orphan *o)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(o->json, "attempt");
	uint32_t next = state_next_number(o->dir);

	o->attempt = next > 0 ? next - 1 : 0;
	if (!cJSON_IsNumber(n) || n->valuedouble >= o->attempt)
		return;
	cJSON_Delete(o->json);
	o->json = NULL;
}

/* A folder whose job.json is not to be understood, or another user's, is
 * nobody's to touch; one without has had no time to write it. (One that is
 * being made is locked.) */
static bool
is_readable(struct orphan *o)
{
	char path[PATH_MAX];
	struct stat st;

	if (lstat(o->dir, &st) == -1 || !state_is_trusted(&st) ||
		snprintf(path, sizeof(path), "%s/job.json", o->dir) >=
			(int)sizeof(path))
		return false;
	o->age = st.st_mtim;
	o->json = jobs_read(o->dir);
	if (o->json != NULL) {
		forget_former(o);
		return true;
	}
	return lstat(path, &st) == -1 && errno == ENOENT;
}

static bool
is_of_this_host(const struct orphan *o)
{
	char host[256];

	return is_same(jobs_text(o->json, "host"),
		host_name(host, sizeof(host)));
}

static bool
has_groups(const struct orphan *o)
{
	const char *group = jobs_text(o->json, "cgroup");
	const char *leaf = jobs_text(o->json, "rank_cgroups");
	struct leaves leaves;

	if (leaf == NULL || group == NULL ||
		!leaf_reopen(&leaves, group, o->id, leaf))
		return false;
	leaf_close(&leaves);
	return true;
}

/* What end_orphan() would end, and nobody else. */
static void
tell(const struct tour *tour, struct orphan *o)
{
	struct orphan_facts facts = { .dir = o->dir };

	if (is_readable(o) && !cJSON_HasObjectItem(o->json, "exit") &&
		is_of_this_host(o)) {
		facts.job = stray_job_of(o);
		facts.this_boot = is_of_this_boot(o);
		facts.groups = facts.this_boot && has_groups(o);
		tour->fn(tour->ctx, &facts);
	}
	cJSON_Delete(o->json);
}

/* With its lock in hand. Where no record names a host, only what was found here
 * tells that the job was ours. */
static void
end_orphan(struct orphan *o)
{
	const struct state closed = { .lock_fd = o->lock };
	uint32_t ended;

	if (!is_readable(o))
		return;
	if (cJSON_HasObjectItem(o->json, "exit")) {
		state_close(&closed); /* by an xrun that did not mark it */
	} else if (is_of_this_host(o) && end_all(o, &ended)) {
		if (o->json != NULL || ended > 0)
			close_record(o, ended);
		else
			state_close(&closed); /* not to be asked again */
	}
	cJSON_Delete(o->json);
}

static bool
lives(pid_t pid)
{
	struct proc_stat st;

	return proc_stat_read(pid, &st) && !st.exiting;
}

/* Somebody else has the lock. One who was killed has it until the last of its
 * threads is gone, and a disk can hold that up. Of one that left its terminal
 * (-d) the process that took the lock is gone, too: then its record counts. Where
 * there is none yet, nor such a process, the lock may just have become free. */
static bool
is_dying(const struct orphan *o, ino_t lock)
{
	pid_t taker = locks_owner(lock), keeper;
	cJSON *json = jobs_read(o->dir);

	keeper = (pid_t)jobs_number(json, "pid", 0);
	cJSON_Delete(json);
	if (keeper > 0 && lives(keeper))
		return false;
	return taker == 0 || !lives(taker);
}

/* True if it is closed: now, or it was. */
static bool
take(struct tour *tour, struct orphan *o)
{
	struct stat st;
	bool closed;

	if (fstat(o->lock, &st) == -1 || !S_ISREG(st.st_mode) ||
		st.st_uid != geteuid())
		return false;
	if (st.st_size != 0)
		return tour->fn == NULL;
	o->since = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	if (tour->fn != NULL) {
		tell(tour, o);
		return false;
	}
	end_orphan(o);
	closed = fstat(o->lock, &st) == 0 && st.st_size != 0;
	tour->ended = tour->ended || closed;
	return closed;
}

static bool
look_at(void *ctx, int root, const char *id)
{
	struct tour *tour = ctx;
	struct orphan o = { .id = id, .lock = -1 };
	char lock[NAME_MAX + 8];
	struct stat st;
	bool closed = false;

	snprintf(lock, sizeof(lock), "%s/lock", id);
	if (snprintf(o.dir, sizeof(o.dir), "%s/%s", tour->root, id) >=
		(int)sizeof(o.dir))
		return false;
	o.lock = openat(root, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (o.lock == -1)
		return false;
	/* Shared: two who look at once are no job. */
	if (flock(o.lock, (tour->fn != NULL ? LOCK_SH : LOCK_EX) | LOCK_NB) ==
		0)
		closed = take(tour, &o);
	else if (errno == EWOULDBLOCK && fstat(o.lock, &st) == 0)
		tour->dying = tour->dying || is_dying(&o, st.st_ino);
	fd_close(o.lock);
	return closed;
}

void
orphan_end(const struct state *st)
{
	struct orphan o = { .id = st->id, .lock = st->lock_fd };
	struct stat lock;

	if (fstat(st->lock_fd, &lock) == -1 ||
		snprintf(o.dir, sizeof(o.dir), "%s", st->dir) >=
			(int)sizeof(o.dir))
		return;
	o.since = lock.st_mtim.tv_sec * NS_PER_S + lock.st_mtim.tv_nsec;
	end_orphan(&o);
}

void
orphan_each(const char *root, orphan_fn *fn, void *ctx)
{
	state_look_open(root, look_at,
		&(struct tour){ .root = root, .fn = fn, .ctx = ctx });
}

void
orphan_end_bare(void *root, const char *id, int64_t since)
{
	struct orphan o = { .id = id, .lock = -1, .since = since };
	struct stat st;
	uint32_t ended;

	if (snprintf(o.dir, sizeof(o.dir), "%s/%s", (const char *)root, id) <
			(int)sizeof(o.dir) &&
		lstat(o.dir, &st) == -1 && errno == ENOENT)
		end_all(&o, &ended);
}

struct held {
	const char *root;
	bool by_dead;
};

/* Of a job that lives the lock of its folder is held, too: who has this one only is
 * about to be gone. */
static bool
look_at_held(void *ctx, const char *id)
{
	struct held *held = ctx;
	char path[PATH_MAX];
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s/%s/lock", held->root, id) <
		(int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	held->by_dead = fd != -1 && flock(fd, LOCK_SH | LOCK_NB) == 0;
	fd_close(fd);
	return !held->by_dead;
}

static void *
sweep_places(void *root)
{
	const struct timespec pause = { .tv_nsec = AGAIN_NS };
	int64_t deadline = clock_now() + PLACES_S * NS_PER_S;
	struct held held = { .root = root };

	for (;;) {
		ctl_place_sweep(orphan_end_bare, root);
		held.by_dead = false;
		ctl_place_each(look_at_held, &held);
		if (!held.by_dead || clock_now() >= deadline)
			break;
		nanosleep(&pause, NULL);
	}
	free(root);
	return NULL;
}

/* Sockets were looked at before, while who had them was dying, maybe. By a thread of
 * its own, as the runtime folder may be frozen. */
static void
sweep_again(char *root)
{
	struct timespec until;
	pthread_t thread;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PLACES_S;
	if (root == NULL ||
		pthread_create(&thread, NULL, sweep_places, root) != 0)
		free(root);
	else if (pthread_timedjoin_np(thread, NULL, &until) != 0)
		pthread_detach(thread);
}

void
orphan_run(void *path)
{
	const struct timespec pause = { .tv_nsec = AGAIN_NS };
	int64_t deadline = clock_now() + DYING_NS;
	struct tour tour = { .root = path };
	bool waited = false;

	for (;;) {
		tour.dying = false;
		state_each_open(path, look_at, &tour);
		if (!tour.dying || clock_now() >= deadline)
			break;
		waited = true;
		nanosleep(&pause, NULL);
	}
	if (tour.ended || waited)
		sweep_again(strdup(path));
	free(path);
}
