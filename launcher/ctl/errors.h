/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.h - the folder of the ranks' error files of a job with --no-logs.
 *
 * Other jobs have these files in the folder of the attempt. This folder is
 * .errors-HOST-XXXXXX in a folder of root.h, has mode 0700 and is removed with all
 * that ranks put there when the job ends. Keeper and supervisor hold its lock
 * (flock(2)). If both are killed, the lock is free, and the next xrun of the same
 * user on HOST removes the folder.
 */
#ifndef LAUNCHER_CTL_ERRORS_H
#define LAUNCHER_CTL_ERRORS_H

struct xr_error;

/* errors_folder_new() - makes the folder. Returns its absolute path, or NULL if it
 * cannot be made. The lock stays until the process and all that share its
 * descriptors end. */
char *errors_folder_new(struct xr_error *err);

/* errors_folder_clear() - removes what is in the folder. NULL is fine. */
void errors_folder_clear(const char *path);

/* errors_folder_remove() - removes the folder and what is in it. NULL is fine. */
void errors_folder_remove(const char *path);

/* errors_folder_sweep() - removes the folders of jobs whose xrun was killed. */
void errors_folder_sweep(void);

#endif /* LAUNCHER_CTL_ERRORS_H */
