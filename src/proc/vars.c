/* SPDX-License-Identifier: Apache-2.0 */
/* vars.c - see vars.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "proc/vars.h"

const char *
vars_of(pid_t pid, const char *name, char *room)
{
	const size_t len = strlen(name);
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd != -1)
		n = fd_read_some(fd, room, VARS_ROOM - 1);
	fd_close(fd);
	if (n <= 0)
		return NULL;
	room[n] = '\0';
	for (const char *at = room; at < room + n; at += strlen(at) + 1)
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
	return NULL;
}
