/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookout.h - sleeping until files of a job change, or the job is over.
 *
 * inotify(7) tells of folders. A thread waits for the job's lock, which is free
 * exactly when both processes of xrun are gone, however they went. Where the
 * kernel does not tell of splice(2), which is how output comes to its files, or
 * refuses to tell at all, the files are looked at every LOOKOUT_BLIND_MS.
 */
#ifndef LAUNCHER_CMD_LOOKOUT_H
#define LAUNCHER_CMD_LOOKOUT_H

#include <stdbool.h>

#include <poll.h>

#define LOOKOUT_BLIND_MS 100
#define LOOKOUT_ALSO     4
#define LOOKOUT_ALL      (-1) /* of a change: it may be any */

struct lookout {
	int inotify; /* -1: refused */
	int over;    /* readable when the lock is free */
	bool blind;
	/* What else ends a wait, for poll(2); the owner's, none (-1) at first. */
	struct pollfd also[LOOKOUT_ALSO];
	int also_ms; /* it ends by then in any case; -1: never */
};

/* lookout_open() - false: errno. */
bool lookout_open(struct lookout *w);
void lookout_close(struct lookout *w);

/* lookout_folder() - tell of files in @path that are made, renamed or grow; its
 * number for lookout_fn, or -1: it is not there, or nothing is told. */
int lookout_folder(struct lookout *w, const char *path);

/* lookout_lock() - tell when nobody holds the lock of the job's folder @path any
 * more; to be asked again after each time. */
void lookout_lock(struct lookout *w, const char *path);

/* @folder: which one, or LOOKOUT_ALL; @name: of the file, or "" */
typedef void lookout_fn(void *ctx, int folder, const char *name);

enum lookout_news {
	LOOKOUT_CHANGED, /* maybe: @fn was told what */
	LOOKOUT_OVER, /* nobody held the lock at a moment; @fn was told, too */
	LOOKOUT_CLOSED, /* nobody reads standard output any more */
};

/* lookout_wait() - until there is news; or, without @patient, what there is now. */
enum lookout_news lookout_wait(struct lookout *w, bool patient, lookout_fn *fn,
	void *ctx);

#endif /* LAUNCHER_CMD_LOOKOUT_H */
