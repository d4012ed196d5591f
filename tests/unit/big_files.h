/* SPDX-License-Identifier: Apache-2.0 */
/*
 * big_files.h - for tests that make large files with holes.
 *
 * Who runs the tests may limit the size of files, so that a defect does not fill the disk.
 */
#ifndef TESTS_UNIT_BIG_FILES_H
#define TESTS_UNIT_BIG_FILES_H

#include <stdbool.h>

#include <sys/resource.h>

/* Raises the soft limit to the hard one, for this process and its children. */
static inline bool
allow_big_files(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_FSIZE, &rl) != 0)
		return false;
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &rl) == 0;
}

#endif
