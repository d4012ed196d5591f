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
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "launcher/state/history.h"
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
#define NOW_NS      (NS_PER_S / 4)
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
	const cJSON *record; /* of the running job; may be NULL */
};

static bool
is_same(const char *text, const char *here)
{
	return text == NULL || strcmp(text, here) == 0;
}

/* Copies the members of the record that job.json has as well. */
static void
add_recorded(cJSON *json, const cJSON *record)
{
	static const char *const keys[] = { "pid", "ranks", "argv", "boot" };
	const cJSON *item;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		item = cJSON_GetObjectItemCaseSensitive(record, keys[i]);
		if (item != NULL)
			cJSON_AddItemToObject(json, keys[i],
				cJSON_Duplicate(item, true));
	}
}

/* Only what it said in time can be said of it: its beginning. */
static cJSON *
beginning(const struct orphan *o)
{
	const char *start = jobs_text(o->record, "start");
	char text[256];
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "v", 1);
	cJSON_AddStringToObject(json, "job", o->id);
	cJSON_AddNumberToObject(json, "attempt", o->attempt);
	cJSON_AddStringToObject(json, "host", host_name(text, sizeof(text)));
	cJSON_AddStringToObject(json, "start",
		start != NULL ? start :
				clock_stamp(o->since, text, sizeof(text)));
	add_recorded(json, o->record);
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
	cJSON_DeleteItemFromObject(o->json, "waiting");
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

/* Returns false if processes are left. Those of another boot are gone. */
static bool
end_all(const struct orphan *o, uint32_t *ended)
{
	const struct stray_job job = lost_stray(o->json);
	bool gone = stray_end(&job, clock_now() + PATIENCE, ended);

	if (job.lineage != 0)
		end_groups(o);
	return gone;
}

/* The record of an attempt before it says nothing of the one that was lost. */
static void
forget_former(struct orphan *o)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(o->json, "attempt");

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
	uint32_t next;

	if (lstat(o->dir, &st) == -1 || !state_is_trusted(&st) ||
		snprintf(path, sizeof(path), "%s/job.json", o->dir) >=
			(int)sizeof(path))
		return false;
	o->age = st.st_mtim;
	next = state_next_number(o->dir);
	o->attempt = next > 0 ? next - 1 : 0;
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
	struct orphan_facts facts = { .id = o->id, .dir = o->dir };

	if (is_readable(o) && !cJSON_HasObjectItem(o->json, "exit") &&
		is_of_this_host(o)) {
		facts.job = lost_stray(o->json);
		facts.groups = facts.job.lineage != 0 && has_groups(o);
		tour->fn(tour->ctx, &facts);
	}
	cJSON_Delete(o->json);
}

/* The caller holds its lock. */
static void
end_orphan(struct orphan *o, uint32_t before)
{
	const struct state closed = { .lock_fd = o->lock };
	uint32_t ended;

	if (!is_readable(o))
		return;
	if (cJSON_HasObjectItem(o->json, "exit"))
		state_close(&closed); /* by an xrun that did not mark it */
	else if (is_of_this_host(o) && end_all(o, &ended))
		close_record(o, before + ended);
	cJSON_Delete(o->json);
}

/* 0 is nobody. */
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
	cJSON *json = jobs_read(o->dir);
	bool own = lost_is_own(json);
	pid_t keeper = (pid_t)jobs_number(json, "pid", 0);

	cJSON_Delete(json);
	if (own || lives(keeper))
		return false;
	/* Last: a read of /proc/locks waits up to 20 ms for all processors. */
	return !lives(locks_owner(lock));
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
	end_orphan(o, 0);
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
	bool dying;

	lost_end_all(&dying);
	if (fstat(st->lock_fd, &lock) == -1 ||
		snprintf(o.dir, sizeof(o.dir), "%s", st->dir) >=
			(int)sizeof(o.dir))
		return;
	o.since = lock.st_mtim.tv_sec * NS_PER_S + lock.st_mtim.tv_nsec;
	end_orphan(&o, 0);
}

void
orphan_each(const char *root, orphan_fn *fn, void *ctx)
{
	state_look_open(root, look_at,
		&(struct tour){ .root = root, .fn = fn, .ctx = ctx });
}

/* The folder was opened again by the next attempt. */
static bool
is_continued(const char *dir, const cJSON *record)
{
	return state_next_number(dir) >
		(uint32_t)jobs_number(record, "attempt", 0) + 1;
}

/* True if the folder is closed by now, or is gone. */
static bool
close_folder(const char *id, const char *dir, const cJSON *record,
	uint32_t ended)
{
	struct orphan o = { .id = id, .lock = -1, .record = record };
	char lock[PATH_MAX];
	struct stat st;
	bool over;

	snprintf(o.dir, sizeof(o.dir), "%s", dir);
	if (snprintf(lock, sizeof(lock), "%s/lock", dir) >= (int)sizeof(lock))
		return true;
	o.lock = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (o.lock == -1)
		return errno == ENOENT;
	over = flock(o.lock, LOCK_EX | LOCK_NB) == 0;
	if (over && fstat(o.lock, &st) == 0 && st.st_size == 0 &&
		st.st_uid == geteuid()) {
		o.since = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
		end_orphan(&o, ended);
	}
	fd_close(o.lock);
	return over || is_continued(dir, record);
}

/* A job without a folder among the others gets a line of the history. */
static void
add_to_history(const cJSON *record, uint32_t ended)
{
	const char *root = jobs_text(record, "root");
	cJSON *line = cJSON_Duplicate(record, true);
	char stamp[40], *text;

	cJSON_AddStringToObject(line, "end",
		clock_stamp(clock_wall(), stamp, sizeof(stamp)));
	cJSON_AddNumberToObject(line, "exit", EXIT_XRUN);
	cJSON_AddStringToObject(line, "reason", "supervisor lost");
	cJSON_AddNumberToObject(line, "left_behind", ended);
	text = cJSON_PrintUnformatted(line);
	cJSON_Delete(line);
	if (text != NULL && root != NULL)
		history_add_line(root, text);
	free(text);
}

/* Its folder is not one of those below the root. */
static bool
is_elsewhere(const cJSON *record, const char *dir)
{
	const char *root = jobs_text(record, "root");
	size_t len = root == NULL ? 0 : strlen(root);

	return dir == NULL || root == NULL || strncmp(dir, root, len) != 0 ||
		dir[len] != '/' || strchr(dir + len + 1, '/') != NULL;
}

/* It had ended, and its xrun was killed after it had said so. */
static bool
is_in_history(const cJSON *record)
{
	const char *start = jobs_text(record, "start"), *said;
	struct history h;
	bool is;

	history_read(&h, jobs_text(record, "root"));
	said = jobs_text(history_find(&h, jobs_text(record, "job")), "start");
	is = start != NULL && said != NULL && strcmp(start, said) == 0;
	history_fini(&h);
	return is;
}

bool
orphan_close_recorded(const cJSON *record, uint32_t ended)
{
	const char *id = jobs_text(record, "job");
	const char *dir = jobs_text(record, "dir");

	if (dir != NULL && !close_folder(id, dir, record, ended))
		return false;
	if (is_elsewhere(record, dir) && !is_in_history(record))
		add_to_history(record, ended);
	return true;
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
		ctl_place_sweep();
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

/* True if there was one. */
static bool
run_until(char *path, int64_t deadline)
{
	const struct timespec pause = { .tv_nsec = AGAIN_NS };
	struct tour tour = { .root = path };
	bool waited = false, lost, dying;

	for (;;) {
		tour.dying = false;
		lost = lost_end_all(&dying);
		tour.ended = tour.ended || lost;
		tour.dying = dying;
		if (path != NULL)
			state_each_open(path, look_at, &tour);
		if (!tour.dying || clock_now() >= deadline)
			break;
		waited = true;
		nanosleep(&pause, NULL);
	}
	return tour.ended || waited;
}

void
orphan_run(void *path)
{
	if (run_until(path, clock_now() + DYING_NS))
		sweep_again(path == NULL ? state_home() : strdup(path));
	free(path);
}

void
orphan_run_now(void)
{
	char *root = state_home();

	if (run_until(root, clock_now() + NOW_NS))
		ctl_place_sweep();
	free(root);
}
