/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where the control sockets of this user's jobs are.
 *
 *   $XDG_RUNTIME_DIR/xrun/k7m2/control    or in another folder of root.h
 *
 * All folders are 0700. That of a job is flock'd while the job lives: what is
 * not is a leftover, and whoever comes by removes it. Everything goes through
 * descriptors of folders, so no path is too long for a socket and no name can
 * be changed below us.
 */
#ifndef LAUNCHER_CTL_PLACE_H
#define LAUNCHER_CTL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "xrun/error.h"

struct stat;

#define CTL_ID_MAX 64

/* What may stand in a job's folder beside its control socket. */
#define CTL_PLACE_HTTP  "http"
#define CTL_PLACE_TOKEN "http-token"

struct ctl_place {
	int dir; /* its descriptor; -1: none */
	char id[CTL_ID_MAX + 1];
};

#define CTL_PLACE_NONE ((struct ctl_place){ .dir = -1 })

/*
 * ctl_place_open() - the folder of job @id, made and locked.
 *
 * Returns  XR_OK; XR_E_EXISTS (a job of that name has it), XR_E_SYS, XR_E_INVAL
 *          (not ours to trust) with words in @err
 */
enum xr_status ctl_place_open(struct ctl_place *p, const char *id,
	struct xr_error *err);

/* ctl_place_listen() - the socket in it; its descriptor, or -1 with errno. */
int ctl_place_listen(const struct ctl_place *p);

/* ctl_place_listen_http() - the same for the socket of --http. */
int ctl_place_listen_http(const struct ctl_place *p);

/* ctl_place_put_token() - the token of --http, in a file beside them, 0600. */
bool ctl_place_put_token(const struct ctl_place *p, const char *text);

/* ctl_place_stat() - of the folder of job @id. Returns false if there is none. */
bool ctl_place_stat(const char *id, struct stat *out);

/* ctl_place_remove() - removes socket and folder. Each process that shares the
 * descriptors may call it. Returns true if the folder does not exist any more. No heap.
 * The descriptors stay open. */
bool ctl_place_remove(const struct ctl_place *p);

/* ctl_place_forget() - the folder of job @id if nothing is in it: of one that
 * was killed while it made it. No heap. */
void ctl_place_forget(const char *id);

/* ctl_place_sweep() - removes the folders of jobs that have ended. */
void ctl_place_sweep(void);

/* ctl_place_each_dead() - calls @fn with the id of each job that has ended and whose
 * folder exists. Removes nothing. */
typedef void ctl_dead_fn(void *ctx, const char *id);
void ctl_place_each_dead(ctl_dead_fn *fn, void *ctx);

/* ctl_place_each() - @fn for the id of each job that has such a folder, and
 * lives; false from it: enough. */
typedef bool ctl_place_fn(void *ctx, const char *id);
void ctl_place_each(ctl_place_fn *fn, void *ctx);

/*
 * ctl_connect() - to the socket of job @id.
 *
 * @until:  clock_now() when to give up a job that lets nobody in
 * Returns  a descriptor that does not block; -1 and errno: ENOENT and
 *          ECONNREFUSED if there is no such job, or it is too young to have
 *          one; EAGAIN if it let nobody in
 */
int ctl_connect(const char *id, int64_t until);

/* ctl_await() - until nobody holds the lock of job @id's folder any more. */
void ctl_await(const char *id);

#endif /* LAUNCHER_CTL_PLACE_H */
