/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user.h - the processes that put and get, and what is left of the dead.
 *
 * A process becomes a user by its first put or get, and has a number that stands in all
 * its claims. When it is dead, whoever hears of it, or meets a claim of its, sweeps: cells
 * that it had claimed are voided, items that it had taken are lost, or are there again
 * (opts' redeliver), memory that it had for what it did not put is free, and then so is its
 * number. Any number of processes may sweep the same at a time, and be killed meanwhile:
 * each step is a compare-and-exchange of a word that is never the same again.
 *
 * A process is dead when its pidfd says so, or the number has passed on to another.
 */
#ifndef WORKER_QUEUE_USER_H
#define WORKER_QUEUE_USER_H

#include "worker/queue/hall.h"

struct user_id {
	uint32_t pid;
	uint32_t who;
	uint64_t start; /* as /proc/PID/stat has it; 0: not known */
};

/* user_self() - this process, as a user; it comes, if it has not.
 *
 * Returns  XR_OK; XR_E_RANGE: there are too many
 */
enum xr_status user_self(struct hall *h, uint32_t *who, struct xr_error *err);

/* user_leave() - this process has claimed nothing, and is none any more. */
void user_leave(struct hall *h);

/* user_at() - who has number @user; false: nobody. */
bool user_at(const struct hall *h, uint32_t user, struct user_id *id);

/* user_pid() - of @who; 0: it is gone. */
uint32_t user_pid(const struct hall *h, uint32_t who);

#define USER_TEXT (USER_NAME + 16)

/* user_text() - what @who is, in words. */
void user_text(const struct hall *h, uint32_t who, char text[USER_TEXT]);

/* user_open() - a descriptor that tells of its end; -1: it has ended, or @is_dead is
 * false, and it cannot be known. */
int user_open(const struct user_id *id, bool *is_dead);

/* user_start() - when process @pid began; 0: nobody says, and errno why, or 0. */
uint64_t user_start(uint32_t pid);

/* user_is_gone() - returns true if @error, errno of what looked at a process or opened a
 * descriptor of it, or 0, says that it is not there, and not that the look failed. */
bool user_is_gone(int error);

/* user_check() - sweep after @who, if that is dead. */
void user_check(struct hall *h, uint32_t who);

/* user_check_all() - after all that are. */
void user_check_all(struct hall *h);

/* user_free() - its number is free, if it is still @id's. */
void user_free(struct hall *h, uint32_t user, const struct user_id *id);

/* user_sweep() - the process of number @user is dead, if it is still @id. */
void user_sweep(struct hall *h, uint32_t user, const struct user_id *id);

#endif /* WORKER_QUEUE_USER_H */
