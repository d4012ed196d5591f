/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain.h - folders of ended jobs go when they are old or take too much room.
 *
 * Kept is everything younger than 7 days, up to 2 GiB in all. Beyond that the
 * oldest goes first, and jobs that failed go last. Never touched: a job whose
 * lock is held, one of another machine (a home shared by many), and what does
 * not look like a job. At most 100 ms a run, half of it to find out, on the
 * helper thread, and not more often than every ten minutes. Where that is too
 * short to see all, the next run begins elsewhere; where it is too short to
 * remove all, the next job goes on with it.
 */
#ifndef LAUNCHER_STATE_RETAIN_H
#define LAUNCHER_STATE_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

#define RETAIN_AGE_NS  (7 * 24 * 3600 * 1000000000LL)
#define RETAIN_BYTES   (2LL << 30)
#define RETAIN_TURN_NS 100000000LL
#define RETAIN_LOOK_NS (RETAIN_TURN_NS / 2)
#define RETAIN_FREE_NS 1000000000LL

struct retain_job {
	char id[65];
	int64_t ended; /* wall ns */
	int64_t bytes;
	bool failed;
	bool kept; /* result of retain_choose() */
};

/*
 * retain_choose() - which stay. Pure; sorts @jobs into the order in which the
 * others go.
 */
void retain_choose(struct retain_job *jobs, uint32_t n, int64_t now);

/* retain_run() - a work_fn: look at the state root and remove what may go.
 * @root: malloc'ed path, freed here */
void retain_run(void *root);

struct retain_freed {
	uint32_t jobs;
	int64_t bytes;
};

/* retain_enough_fn - Returns true if enough space is free. */
typedef bool retain_enough_fn(void *ctx);

/*
 * retain_free() - removes ended jobs below @root, the oldest first, until
 * @enough returns true or none is left.
 *
 * A job without output stays. Takes RETAIN_FREE_NS at most. Any thread; no
 * other call of this file at the same time.
 */
struct retain_freed retain_free(const char *root, retain_enough_fn *enough,
	void *ctx);

/* retain_remove() - removes the folder of job @id below @root, unless it runs.
 * Returns true if it is gone, or never existed. */
bool retain_remove(const char *root, const char *id);

/* retain_bytes() - what the files in the folder @dir hold, as far as they are
 * seen before @deadline (clock_now). */
int64_t retain_bytes(const char *dir, int64_t deadline);

/* retain_soon() - the next job looks, and not the first in ten minutes: much
 * was written under @root. */
void retain_soon(const char *root);

#endif /* LAUNCHER_STATE_RETAIN_H */
