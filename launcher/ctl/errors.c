/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c - see errors.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>

#include "base/dents.h"
#include "base/fd.h"
#include "base/mem.h"
#include "launcher/ctl/errors.h"
#include "launcher/ctl/root.h"

#define ERRORS_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ERRORS_NAME   ".errors-"

char *
errors_prefix_new(const struct ctl_root *root)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return NULL;
	return xasprintf("%s/" ERRORS_NAME "%016llx", root->path,
		(unsigned long long)number);
}

/* The name of a file that begins with @name and a hyphen. */
static bool
errors_is_one(const char *file, const char *name)
{
	size_t len = strlen(name);

	return strncmp(file, name, len) == 0 && file[len] == '-';
}

static bool
errors_remove_one(int dir, const char *name)
{
	return unlinkat(dir, name, 0) == 0 ||
		unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

bool
errors_remove(const char *prefix)
{
	const char *slash = prefix == NULL ? NULL : strrchr(prefix, '/');
	struct dents names;
	const struct dent *d;
	bool gone = true;
	char *folder;
	int dir;

	/* The record may come from another program of the user. */
	if (slash == NULL ||
		strncmp(slash + 1, ERRORS_NAME, strlen(ERRORS_NAME)) != 0)
		return true;
	folder = xasprintf("%.*s", (int)(slash - prefix), prefix);
	dir = open(folder, ERRORS_FOLDER);
	free(folder);
	if (dir == -1)
		return errno == ENOENT;
	do {
		dents_read(&names, dir);
		while ((d = dents_next(&names)) != NULL)
			gone = (!errors_is_one(d->name, slash + 1) ||
				       errors_remove_one(dir, d->name)) &&
				gone;
	} while (names.len > 0);
	fd_close(dir);
	return gone && names.len == 0;
}
