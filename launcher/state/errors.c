/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c - see errors.h. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "launcher/state/errors.h"

char *
errors_folder_new(void)
{
	const char *tmp = getenv("TMPDIR");
	char *path;

	if (tmp == NULL || tmp[0] != '/')
		tmp = "/tmp";
	path = xasprintf("%s/xrun-errors-XXXXXX", tmp);
	if (mkdtemp(path) != NULL)
		return path;
	free(path);
	return NULL;
}

void
errors_folder_clear(const char *path)
{
	int fd = path == NULL ?
		-1 :
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (dir == NULL) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
}

void
errors_folder_free(char *path)
{
	if (path == NULL)
		return;
	if (rmdir(path) == -1) {
		errors_folder_clear(path);
		rmdir(path);
	}
	free(path);
}
