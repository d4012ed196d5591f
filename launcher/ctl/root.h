/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h - the folders that hold control sockets and records of running jobs.
 *
 *   $XDG_RUNTIME_DIR/xrun     if that variable names a folder of ours
 *   /run/user/UID/xrun        if the system made that for us
 *   /tmp/xrun-UID             else
 *   STATE/.run-HOST           if another user made /tmp/xrun-UID, or none of
 *                             these can be used
 *
 * STATE is the state directory of state.h. A folder is used only if it is a
 * directory, belongs to us and is closed to all other users. New jobs use the
 * first folder that fits. Verbs look in it and in STATE/.run-HOST, which a job
 * uses while /tmp/xrun-UID is another user's. Searches for jobs whose xrun was
 * killed look in all four, since they may have run in another environment, and in
 * the folders of other values of XDG_RUNTIME_DIR that records name (record.h).
 */
#ifndef LAUNCHER_CTL_ROOT_H
#define LAUNCHER_CTL_ROOT_H

#include <limits.h>
#include <stdbool.h>

#include "xrun/error.h"

#define CTL_WHERE_MAX 64

enum ctl_root_kind {
	CTL_ROOT_RUNTIME,
	CTL_ROOT_USER,
	CTL_ROOT_TMP,
	CTL_ROOT_STATE,
	CTL_ROOTS,
};

struct ctl_root {
	int dir; /* its descriptor; -1: none */
	enum ctl_root_kind kind;
	char path[PATH_MAX];
};

/*
 * ctl_root_open() - the folder that new jobs use.
 *
 * @make:    make it if it does not exist
 * @trouble: receives why a folder that precedes it is not used, if its
 *           mode or owner is wrong. May be NULL.
 * Returns   false with errno if there is none; @root then describes the last one
 */
bool ctl_root_open(struct ctl_root *root, bool make, struct xr_error *trouble);

/* ctl_root_open_state() - opens STATE/.run-HOST, and makes it if it does not exist.
 * Returns false with errno. */
bool ctl_root_open_state(struct ctl_root *root);

/* ctl_root_open_path() - opens a folder of another environment. Returns its
 * descriptor, or -1 with errno: EPERM if it is not ours alone. */
int ctl_root_open_path(const char *path);

/* ctl_root_is_common() - returns true if @root can be found without the variable
 * XDG_RUNTIME_DIR. */
bool ctl_root_is_common(const struct ctl_root *root);

/* ctl_root_where() - the name of @root for messages: "xrun in
 * $XDG_RUNTIME_DIR". Returns @out. */
const char *ctl_root_where(const struct ctl_root *root,
	char out[static CTL_WHERE_MAX]);

/* ctl_root_each() - calls @fn once for each folder that exists and is ours.
 * @all: all four of them, instead of those in which verbs look for jobs. @fn returns
 * false to stop the walk. */
typedef bool ctl_root_fn(void *ctx, const struct ctl_root *root);
void ctl_root_each(bool all, ctl_root_fn *fn, void *ctx);

#endif /* LAUNCHER_CTL_ROOT_H */
