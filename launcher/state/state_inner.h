/* SPDX-License-Identifier: Apache-2.0 */
/* state_inner.h - what the files of a job's folder share; see state.h. */
#ifndef LAUNCHER_STATE_STATE_INNER_H
#define LAUNCHER_STATE_STATE_INNER_H

#include "launcher/state/state.h"

/* Closed, empty. */
#define STATE_NONE \
	((struct state){ .place_fd = -1, \
		.dir_fd = -1, \
		.attempt_fd = -1, \
		.lock_fd = -1 })

/* What a person may try where files cannot be kept. */
#define STATE_ADVICE "\t--log-dir DIR or --no-logs"

/* state.c */
/* As errno says; what a person may try instead. */
enum xr_status state_cannot(struct xr_error *err, const char *path);
/* The attempt's own folder, by st->number, in st->dir. */
enum xr_status state_open_attempt(struct state *state, struct xr_error *err);

/* home.c */
/* state_home() for who writes there. Where the user has no home it is in a place
 * where everybody could have made it: XR_E_INVAL unless it is ours, and for us
 * alone. @root is the caller's to free, whatever is returned. */
enum xr_status state_find_root(char **root, struct xr_error *err);
/* state_is_trusted() of a folder that is open. */
bool state_is_ours(int dir);

/* walk.c */
/*
 * state_walk() - open the folder at the absolute @path (O_PATH).
 *
 * A symbolic link in any part of it is followed only if it belongs to this user or to
 * root. With @make, folders that do not exist are made, with mode 0700.
 *
 * @link: receives the path of another user's link, else ""
 * Returns  a descriptor, or -1 with errno
 */
int state_walk(const char *path, bool make, char link[static PATH_MAX]);
/* state_walk_place() - sets state->place_fd to the folder in which state->dir is, and
 * makes it. Returns 0, or -1 with errno. */
int state_walk_place(struct state *state, char link[static PATH_MAX]);
/* state_place() - the descriptor for openat(2) and the like by which state->dir has
 * the name @name. */
int state_place(const struct state *state, const char **name);

/* place.c */
/* @want, then @want.2 and so on: of several in one batch job each is one. NULL:
 * any. */
void state_next_id(struct state *state, const char *want, int taken);
/* Both --log-dir, with its words, and the state folder: state->dir is made. */
enum xr_status state_choose_folder(struct state *state,
	const struct state_wish *wish, struct xr_error *err);
/* Is {job} in a --log-dir? */
bool state_dir_has_job(const char *text);
/* An absolute path of a --log-dir that was checked, with {job} and {host}
 * replaced; malloc'ed. */
char *state_expand(const char *text, const char *id);
bool state_is_empty(int dir_fd);
/* Of a --log-dir: for @link, if it is not "", or as errno says for @path. */
enum xr_status state_refuse_link(struct xr_error *err, const char *link,
	const char *path);

/* named.c: the folder of the job that is called @wish->name. */
enum xr_status state_open_named(struct state *state,
	const struct state_wish *wish, struct xr_error *err);

/* lock.c: a lock where there is none: 0, or -1 with errno, EEXIST if there is. */
int state_take_lock(struct state *state);
/* True if the file lock of the folder is the one that is open here. */
bool state_is_lock(const struct state *state);

/* live.c */
/* A lock that has a name among the open jobs as well; its descriptor, or -1 where
 * that cannot be had. */
int live_lock(struct state *state);
/* The same for a lock that is there already. */
void live_enter(struct state *state);
void live_leave(const struct state *state);

#endif /* LAUNCHER_STATE_STATE_INNER_H */
