/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_folder.h - a state folder and a home of its own for a test, and one job
 * in it: state_folder_make() at the beginning, let_go() when the job is over.
 */
#ifndef TESTS_UNIT_STATE_FOLDER_H
#define TESTS_UNIT_STATE_FOLDER_H

#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include "launcher/state/state.h"
#include "tests/unit/folder.h"

static struct state st;
static struct xr_error err;

static inline void
state_folder_make(void)
{
	char path[PATH_MAX + 8];

	folder_make();
	snprintf(path, sizeof(path), "%s/state", folder);
	setenv("XDG_STATE_HOME", path, 1);
	setenv("HOME", folder, 1);
	umask(0); /* the modes are ours, not the shell's */
}

static inline void
let_go(void)
{
	if (st.place_fd != -1)
		close(st.place_fd);
	close(st.dir_fd);
	close(st.attempt_fd);
	close(st.lock_fd);
	state_fini(&st);
}

/* folder/@relative, in a buffer of its own. */
static inline const char *
in_folder(const char *relative)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, relative);
	return path;
}

#endif /* TESTS_UNIT_STATE_FOLDER_H */
