/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - see locks.h. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "proc/locks.h"

/* "1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF"; who waits for one has
 * "->" behind the number. */
static pid_t
read_line(const char *line, ino_t inode)
{
	unsigned long long found;
	int pid;

	if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &pid, &found) !=
			2 ||
		found != inode || pid < 0)
		return 0;
	return pid;
}

pid_t
locks_owner(ino_t inode)
{
	FILE *file = fopen("/proc/locks", "re");
	pid_t owner = 0, pid;
	char *line = NULL;
	size_t room = 0;
	bool one = true;

	while (file != NULL && getline(&line, &room, file) != -1) {
		pid = read_line(line, inode);
		one = one && (pid == 0 || owner == 0);
		owner = pid != 0 ? pid : owner;
	}
	free(line);
	if (file != NULL)
		fclose(file);
	return one ? owner : 0;
}
