/* SPDX-License-Identifier: Apache-2.0 */
/* in_path.h - programs by their names, as a shell finds them. */
#ifndef LAUNCHER_HOST_IN_PATH_H
#define LAUNCHER_HOST_IN_PATH_H

#include <stdbool.h>

struct suggest;

/* in_path() - the @nth file (from 0) called @name in PATH that can be run; NULL:
 * there are no more. The caller frees. */
char *in_path(const char *name, unsigned nth);

/* in_path_runs() - returns true if @path is a file that can be run. */
bool in_path_runs(const char *path);

/* in_path_offer() - offers the file names of all folders of PATH to @near. Reads
 * the folders, so it is for error messages only. */
void in_path_offer(struct suggest *near);

/* in_path_offer_folder() - offers the names in the folder @path, "" for the
 * current one, to @near. */
void in_path_offer_folder(struct suggest *near, const char *path);

#endif /* LAUNCHER_HOST_IN_PATH_H */
