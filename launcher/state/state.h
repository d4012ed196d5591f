/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the folder of a job.
 *
 *   $XDG_STATE_HOME/xrun/latest -> k7m2
 *                        k7m2/lock          flock'd while the job lives;
 *                                           empty until it is closed
 *                        k7m2/job.json      replaced at the end
 *                        k7m2/events.jsonl
 *                        k7m2/0/rank-0003/  stdout stderr, with .idx each
 *                        k7m2/0/rank-0003.error.json  by the rank itself
 *                        k7m2/0/xrun.log    with -d: xrun's own words
 *                        .live/k7m2         the same file as k7m2/lock, until
 *                                           it is closed: live.c
 *
 * A job that was named (--job) has its next attempt in the same folder: 1/ and so
 * on; job.json is the last one's, events.jsonl tells of all.
 *
 * With --log-dir D the folder is D itself if D is absent or empty, else
 * D/JOB, and of a named job always D/JOB, or D if {job} is in it; of jobs that
 * start at once, one gets D. A folder that is there and that others may write
 * into is never taken as a whole. With --no-logs there is none. A run that wrote no
 * byte leaves none, but for a further attempt, and with -d.
 */
#ifndef LAUNCHER_STATE_STATE_H
#define LAUNCHER_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <limits.h>
#include <stdint.h>

#include <sys/stat.h>

#include "xrun/error.h"

#define STATE_ID_MAX 64
#define STATE_WORDS  "xrun.log"

#define STATE_NUMBER_ROOM 12 /* bytes: "/", the number of an attempt, NUL */

struct state {
	char id[STATE_ID_MAX + 1];
	char *root;      /* "/home/a/.local/state/xrun"; NULL under --log-dir */
	char *dir;       /* absolute path of the job's folder; NULL: none */
	char *attempt;   /* absolute path of <dir>/<number> */
	uint32_t number; /* of the attempt */
	int64_t bytes_before; /* written by those before */
	/* What this run made and may take away: */
	bool made;         /* <dir> */
	bool made_attempt; /* <dir>/<number> */
	bool made_words;   /* <dir>/<number>/xrun.log */
	bool made_lock;    /* <dir>/lock, and so what else is in <dir> */
	bool live;         /* <root>/.live/<id> */
	bool others;       /* other jobs were open when this one began */
	int place_fd; /* under --log-dir, of the folder that <dir> is in; else -1 */
	int dir_fd, attempt_fd, lock_fd; /* -1: none */
};

/* state_user_home() - the user's home, absolute; NULL if there is none. */
const char *state_user_home(void);

/* state_home() - the root folder by the rules of the XDG; caller frees. NULL
 * if there is no absolute one. */
char *state_home(void);

/* state_make_parents() - makes the folders above @path that do not exist, with
 * mode 0700. Returns 0, or -1 with errno. */
int state_make_parents(const char *path);

/* state_is_trusted() - may a folder that is there be taken for one's own? It is
 * ours, and not everybody's to write into; or root's, and root's alone. */
bool state_is_trusted(const struct stat *dir);

struct state_wish {
	const char *name;    /* of --job, or NULL */
	const char *batch;   /* id of the batch job we are in, or NULL */
	const char *log_dir; /* with {job} and {host}; NULL: the state folder */
	bool logs;           /* false: an id and nothing else */
	/* Told of a named job's former attempt that nobody closed, with its
	 * lock in hand and before anything is changed; or NULL. */
	void (*lost)(const struct state *state);
};

/* state_dir_check() - is @text a --log-dir? XR_OK, or as brace_next(). */
enum xr_status state_dir_check(const char *text, struct xr_error *err);

/* state_name_valid() - may a job be called so? A name is a file's as well. */
bool state_name_valid(const char *name);

/* state_is_full() - returns true if state_open() found no room. */
bool state_is_full(const struct xr_error *err);

/*
 * state_open() - choose an id, make and lock the folder.
 *
 * With a name, the folder that bears it: a new one, or if the job of that name
 * has ended the next attempt in it. May wait a second for a folder that
 * somebody is making or removing.
 *
 * If the file system has no room, removes ended jobs and tries once more.
 *
 * Returns  XR_OK, or XR_E_SYS / XR_E_INVAL / XR_E_EXISTS (a job of that name
 *          runs) with what, where and why; nothing is left behind then
 */
enum xr_status state_open(struct state *state, const struct state_wish *wish,
	struct xr_error *err);

/* state_make_next() - the folder of the attempt behind this one; open, or -1 with
 * errno: EEXIST if somebody put something there. May wait for the disk. */
int state_make_next(const struct state *state);

/*
 * state_advance() - the job goes on with the next attempt in the folder @fd, which
 * is taken, with @bytes more written by those before.
 *
 * In place, for who may not use the heap or wait: the descriptor of the attempt
 * keeps its number, and its path its memory. 0, or -1 with errno.
 */
int state_advance(struct state *state, int64_t bytes, int fd);

/* state_fini() - free what is in memory; folder and lock stay. */
void state_fini(struct state *state);

/* state_write() - replace @name in the folder as a whole, by rename.
 * Returns 0, or -1 with errno. */
int state_write(const struct state *state, const char *name, const char *text,
	size_t len);

/* state_open_words() - a new file for xrun's own words in the attempt's folder,
 * to append to; -1 with errno. */
int state_open_words(struct state *state);

/*
 * state_amend() - @members (",\"a\":1") for the object in the file @name, unless
 * @key ("\"a\":") is in it. For who may not use the heap.
 *
 * Returns  0, or -1 with errno: EEXIST if it has the key, or is no object
 */
int state_amend(const struct state *state, const char *name, const char *key,
	const char *members);

/* state_next_number() - that of the attempt behind the last in the job's folder
 * @dir. */
uint32_t state_next_number(const char *dir);

/* state_close() - mark the job as over: its lock file has a byte from now on,
 * and its name is not among the open ones. errno is not kept. */
void state_close(const struct state *state);

/*
 * state_each_open() - jobs below @root that no xrun has closed: those that
 * run, and those whose xrun was killed.
 *
 * @fn: true if the job is closed by now and need not be met again
 */
typedef bool state_open_fn(void *ctx, int root, const char *id);
void state_each_open(const char *root, state_open_fn *fn, void *ctx);

/* state_look_open() - the same, and what nobody owns is left there, too. */
void state_look_open(const char *root, state_open_fn *fn, void *ctx);

/* state_latest() - let `latest` point to this job. */
void state_latest(const struct state *state);

/* state_remove() - the folder of a job that wrote nothing. False: its ranks have
 * left something there, which retention then finds with it. */
bool state_remove(const struct state *state);

/* state_mount() - where the file system of @path is mounted: in @at, @path
 * itself where that cannot be known, or a constant. */
const char *state_mount(const char *path, char at[static PATH_MAX]);

/* state_tilde() - @path with the home folder as "~", in @out. */
const char *state_tilde(const char *path, char *out, size_t cap);

#endif /* LAUNCHER_STATE_STATE_H */
