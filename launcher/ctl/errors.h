/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.h - the ranks' error files of a job with --no-logs.
 *
 * Other jobs have these files in the folder of the attempt. These are
 * .errors-NUMBER-rank-0003.error.json in a folder of root.h, which no other user can
 * read; only ranks make them. The record of the job (record.h) has their prefix. It is
 * made before the first rank and removed after the files, so that the next xrun of the
 * same user removes them if keeper and supervisor are killed.
 */
#ifndef LAUNCHER_CTL_ERRORS_H
#define LAUNCHER_CTL_ERRORS_H

#include <stdbool.h>

struct ctl_root;

/* errors_prefix_new() - returns the absolute path prefix of the files in @root, without
 * the last hyphen. The caller frees it. Returns NULL with errno. */
char *errors_prefix_new(const struct ctl_root *root);

/* errors_remove() - removes all files with that prefix. NULL is fine. Returns false if one
 * of them is still there. Uses the heap. */
bool errors_remove(const char *prefix);

#endif /* LAUNCHER_CTL_ERRORS_H */
