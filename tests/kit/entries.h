/* SPDX-License-Identifier: Apache-2.0 */
/* entries.h - how many a folder has: of /proc/self/fd, /proc/self/task, before and after. */
#ifndef TESTS_KIT_ENTRIES_H
#define TESTS_KIT_ENTRIES_H

#include <dirent.h>
#include <stdlib.h>

/* entries() - with "." and ".."; without an answer nothing can be said. */
static inline unsigned
entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (dir == NULL)
		abort();
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

#endif /* TESTS_KIT_ENTRIES_H */
