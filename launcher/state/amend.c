/* SPDX-License-Identifier: Apache-2.0 */
/* amend.c - see state_amend(): a file is changed by who may use no heap. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/state/state.h"

#define FILE_MAX (64 << 20) /* nobody wrote that */

/* How much of @text stands before its last brace; 0: it has none. */
static size_t
before_brace(const char *text, size_t len)
{
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	return len > 1 && text[len - 1] == '}' ? len - 1 : 0;
}

/* In @text, which has room for @size bytes of @fd, and @members. */
static int
put_members(int fd, size_t size, const char *key, const char *members,
	char *text)
{
	ssize_t n = fd_read_some(fd, text, size);
	size_t len = n <= 0 ? 0 : before_brace(text, (size_t)n);

	if (len == 0 || memmem(text, len, key, strlen(key)) != NULL) {
		errno = EEXIST;
		return -1;
	}
	memcpy(text + len, members, strlen(members));
	memcpy(text + len + strlen(members), "}\n", 3);
	return 0;
}

int
state_amend(const struct state *st, const char *name, const char *key,
	const char *members)
{
	int fd = openat(st->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t room = strlen(members) + 3;
	char *text = MAP_FAILED;
	struct stat file;
	int done = -1;

	if (fd != -1 && fstat(fd, &file) == 0 && file.st_size < FILE_MAX) {
		room += (size_t)file.st_size;
		text = mmap(NULL, room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (text != MAP_FAILED &&
		put_members(fd, (size_t)file.st_size, key, members, text) == 0)
		done = state_write(st, name, text, strlen(text));
	if (text != MAP_FAILED)
		munmap(text, room);
	fd_close(fd);
	return done;
}
