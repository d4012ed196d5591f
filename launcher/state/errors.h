/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.h - the folder of the ranks' error files of a job with --no-logs.
 *
 * Other jobs have these files in the folder of the attempt. This folder is below
 * TMPDIR or /tmp, has mode 0700 and is removed when the job ends.
 */
#ifndef LAUNCHER_STATE_ERRORS_H
#define LAUNCHER_STATE_ERRORS_H

/* errors_folder_new() - make the folder. Returns its absolute path, or NULL if it
 * cannot be made. */
char *errors_folder_new(void);

/* errors_folder_clear() - remove the files of an attempt. NULL is fine. */
void errors_folder_clear(const char *path);

/* errors_folder_free() - remove the folder with its files, and free @path. NULL is
 * fine. */
void errors_folder_free(char *path);

#endif /* LAUNCHER_STATE_ERRORS_H */
