/* SPDX-License-Identifier: Apache-2.0 */
/* in_path.c - see in_path.h. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "launcher/host/in_path.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

bool
in_path_runs(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		access(path, X_OK) == 0;
}

char *
in_path(const char *name, unsigned nth)
{
	const char *path = getenv("PATH"), *end;
	char one[PATH_MAX];
	int n;

	if (path == NULL)
		path = DEFAULT_PATH;
	for (; path != NULL; path = *end == ':' ? end + 1 : NULL) {
		end = path + strcspn(path, ":");
		n = snprintf(one, sizeof(one), "%.*s%s%s", (int)(end - path),
			path, end > path ? "/" : "", name);
		if (n > 0 && n < (int)sizeof(one) && in_path_runs(one) &&
			nth-- == 0)
			return xstrdup(one);
	}
	return NULL;
}

void
in_path_offer_folder(struct suggest *near, const char *path)
{
	DIR *folder = opendir(path[0] == '\0' ? "." : path);
	const struct dirent *d;

	while (folder != NULL && (d = readdir(folder)) != NULL)
		if (d->d_name[0] != '.')
			suggest_offer(near, d->d_name);
	if (folder != NULL)
		closedir(folder);
}

void
in_path_offer(struct suggest *near)
{
	const char *path = getenv("PATH"), *end;
	char one[PATH_MAX];

	if (path == NULL)
		path = DEFAULT_PATH;
	for (; path != NULL; path = *end == ':' ? end + 1 : NULL) {
		end = path + strcspn(path, ":");
		if (end - path < PATH_MAX) {
			snprintf(one, sizeof(one), "%.*s", (int)(end - path),
				path);
			in_path_offer_folder(near, one);
		}
	}
}
