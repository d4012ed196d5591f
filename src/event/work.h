/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the helper thread for calls that may block: small files, retention.
 *
 * Jobs run one after the other, in the order posted, and never on the loop.
 * The thread starts with the first of them. Nothing waits for it but
 * work_wait(), at the end of a program, with a limit: a frozen file system
 * must not keep xrun alive.
 */
#ifndef EVENT_WORK_H
#define EVENT_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct work;

typedef void work_fn(void *ctx);

/* A task of the caller's own memory, for work_post_own(). */
struct work_task {
	struct work_task *next;
	work_fn *fn;
	void *ctx;
	bool own;
};

/* work_new() - NULL if out of memory. */
struct work *work_new(void);

/* work_post() - @fn runs on the helper thread; it owns @ctx from now on.
 * False, and @fn was not called, if out of memory. */
bool work_post(struct work *work, work_fn *fn, void *ctx);

/* work_post_own() - the same where memory must not fail: @task stays as it is
 * until @fn has begun. */
void work_post_own(struct work *work, struct work_task *task, work_fn *fn,
	void *ctx);

/* work_idle() - is nothing to do, and nothing being done? */
bool work_idle(struct work *work);

/* work_push() - what was posted is done without work_wait(): where no thread
 * was to be had yet another try, and if that fails, it is done here. */
void work_push(struct work *work);

/* work_wait() - until all is done or @ns have passed; true if all is done. If
 * there is no thread to be had, it is done here, however long it takes. */
bool work_wait(struct work *work, int64_t ns);

#endif /* EVENT_WORK_H */
