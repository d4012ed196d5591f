/* SPDX-License-Identifier: Apache-2.0 */
/* own_file.c - see own_file.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/span.h"
#include "launcher/host/own_file.h"

/* @dir has no links in it, so that its parent is what is left of its last slash. */
static char *
own_path(struct span dir, const char *place, const char *name)
{
	const char *slash;

	while (strncmp(place, "../", 3) == 0 &&
		(slash = memrchr(dir.at, '/', dir.len)) != NULL) {
		dir.len = (size_t)(slash - dir.at);
		place += 3;
	}
	return xasprintf("%.*s/%s/%s", (int)dir.len, dir.at, place, name);
}

char *
own_file(const char *name, const char *built)
{
	const char *places[] = { built, XRUN_LIBDIR_FROM_BIN "/xrun", "." };
	unsigned count = sizeof(places) / sizeof(places[0]);
	static char exe[PATH_MAX]; /* of the first call */
	char *path = NULL;
	const char *slash;

	if (exe[0] == '\0')
		(void)!readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	slash = strrchr(exe, '/');
	for (unsigned i = 0; slash != NULL && i < count; i++) {
		path = own_path((struct span){ exe, (size_t)(slash - exe) },
			places[i], name);
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	path = xasprintf(XRUN_LIBDIR "/xrun/%s", name);
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}
