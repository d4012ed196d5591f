/* SPDX-License-Identifier: Apache-2.0 */
/* given.c - see given.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "worker/proc/given.h"

#define EACH 40 /* bytes of one in the variable, at most */

static int given[GIVEN_MAX];
static uint32_t given_count;

const int *
given_fds(uint32_t *count)
{
	*count = given_count;
	return given;
}

void
given_add(int fd)
{
	if (given_count < GIVEN_MAX)
		given[given_count++] = fd;
}

bool
given_bequeath(char **entry)
{
	size_t room = sizeof(GIVEN_VARIABLE) + 1 + GIVEN_MAX * EACH, at;
	struct stat st;

	*entry = NULL;
	if (given_count == 0)
		return true;
	*entry = malloc(room);
	if (*entry == NULL)
		return false;
	at = (size_t)snprintf(*entry, room, GIVEN_VARIABLE "=");
	for (uint32_t i = 0; i < given_count; i++) {
		int fd = fcntl(given[i], F_DUPFD, 3); /* not close-on-exec */

		if (fstat(fd, &st) == -1)
			return false;
		at += (size_t)snprintf(*entry + at, room - at, "%s%d:%llu",
			i > 0 ? "," : "", fd, (unsigned long long)st.st_ino);
	}
	return true;
}

void
given_inherit(void)
{
	const char *text = getenv(GIVEN_VARIABLE);
	unsigned long long inode;
	struct stat st;
	int fd, n;

	while (text != NULL &&
		sscanf(text, "%d:%llu%n", &fd, &inode, &n) == 2) {
		if (fstat(fd, &st) == 0 && st.st_ino == inode) {
			fcntl(fd, F_SETFD, FD_CLOEXEC);
			given_add(fd);
		}
		text += n;
		text += *text == ',';
	}
	unsetenv(GIVEN_VARIABLE);
}
