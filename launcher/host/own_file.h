/* SPDX-License-Identifier: Apache-2.0 */
/* own_file.h - files that were built or installed with this program. */
#ifndef LAUNCHER_HOST_OWN_FILE_H
#define LAUNCHER_HOST_OWN_FILE_H

/*
 * own_file() - where @name is: beside the program, in folder @built beside the
 * program's ("../worker", of a build), in lib/xrun of where the program is, or
 * in that of the configured prefix. NULL: nowhere; the caller frees it.
 */
char *own_file(const char *name, const char *built);

#endif /* LAUNCHER_HOST_OWN_FILE_H */
