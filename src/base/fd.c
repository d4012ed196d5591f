/* SPDX-License-Identifier: Apache-2.0 */
/* fd.c - see fd.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/status.h"

void
fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
}

int
fd_above_stdio(int fd)
{
	int own;

	if (fd == -1 || fd > STDERR_FILENO)
		return fd;
	own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	fd_close(fd);
	return own;
}

void
fd_reserve(unsigned int count)
{
	int saved = errno;

	if (count > 0 && count <= INT_MAX)
		fd_close(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)count - 1));
	errno = saved;
}

int
fd_sole(int fd)
{
	struct stat st;

	if (fd == -1 ||
		(fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
			st.st_nlink == 1 && st.st_uid == geteuid()))
		return fd;
	fd_close(fd);
	errno = EMLINK;
	return -1;
}

int
fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Flags belong to the file behind @fd, which others have, too: so it is opened
 * once more. A regular one would begin anew, and is not. */
static int
open_again(int fd)
{
	char path[40];
	struct stat st;

	if (fstat(fd, &st) == -1 ||
		!(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

ssize_t
fd_write_now(int fd, const void *data, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	int own = -1;

	if (n == -1 && errno == ENOTSOCK) {
		own = open_again(fd);
		if (own == -1 && poll(&room, 1, 0) != 1)
			return 0;
		/* With room for one byte a pipe has room for PIPE_BUF. */
		n = own != -1 ?
			write(own, data, len) :
			write(fd, data, len < PIPE_BUF ? len : PIPE_BUF);
		fd_close(own);
	}
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n;
}

/* The first write to a socket whose peer left data unread gives ECONNRESET. */
bool
fd_reader_gone(int sys)
{
	return sys == EPIPE || sys == ECONNRESET || sys == ESHUTDOWN ||
		sys == ENOTCONN;
}

void
fd_tell(int fd, const void *data, size_t len)
{
	int saved = errno;

	/* A word is below PIPE_BUF, and so is never written in part. */
	for (int tries = 0; tries < 1000; tries++) {
		if (fd_write_all(fd, data, len) == 0 || errno == EPIPE ||
			errno == EBADF)
			break;
		poll(NULL, 0, 1);
	}
	errno = saved;
}

ssize_t
fd_read_some(int fd, void *data, size_t cap)
{
	size_t got = 0;
	ssize_t n;

	while (got < cap) {
		n = read(fd, (char *)data + got, cap - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

size_t
fd_read_small(const char *path, char *out, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : fd_read_some(fd, out, cap - 1);

	fd_close(fd);
	n = n < 0 ? 0 : n;
	out[n] = '\0';
	return (size_t)n;
}

/* A regular file that is not too large; @file->st says what it is. */
static enum xr_status
look_at(struct fd_file *file, struct xr_error *err)
{
	if (fstat(file->fd, &file->st) == -1)
		return fail(err, XR_E_SYS, "%s: %s", file->name,
			strerror(errno));
	if (!S_ISREG(file->st.st_mode))
		return fail(err, XR_E_INVAL, "%s: not a regular file",
			file->name);
	if ((uintmax_t)file->st.st_size > file->max)
		return fail(err, XR_E_RANGE, "%s: larger than %zu bytes",
			file->name, file->max);
	return XR_OK;
}

enum xr_status
fd_read_text(struct fd_file *file, char **text, size_t *len,
	struct xr_error *err)
{
	enum xr_status status = look_at(file, err);
	char *data;
	ssize_t n;

	if (status != XR_OK)
		return status;
	data = malloc((size_t)file->st.st_size + 1);
	if (data == NULL)
		return fail(err, XR_E_NOMEM, "%s: out of memory", file->name);
	n = fd_read_some(file->fd, data, (size_t)file->st.st_size);
	if (n < 0) {
		status = fail(err, XR_E_SYS, "%s: %s", file->name,
			strerror(errno));
		free(data);
		return status;
	}
	data[n] = '\0';
	*text = data;
	*len = (size_t)n;
	return XR_OK;
}

enum xr_status
fd_read_file(const char *path, size_t max, char **text, size_t *len,
	struct xr_error *err)
{
	struct fd_file file = { .name = path, .max = max };
	enum xr_status status;

	file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file.fd == -1)
		return fail(err, XR_E_SYS, "%s: %s", path, strerror(errno));
	status = fd_read_text(&file, text, len, err);
	fd_close(file.fd);
	return status;
}

bool
fd_has_writer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) != 1 || (p.revents & POLLHUP) == 0;
}

bool
fd_close_but(unsigned from, const int *keep, unsigned count)
{
	unsigned next;

	do {
		next = UINT_MAX;
		for (unsigned i = 0; i < count; i++)
			if (keep[i] >= (int)from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (from < next &&
			syscall(SYS_close_range, from,
				next - (next != UINT_MAX), 0) == -1)
			return false;
		from = next + 1;
	} while (next != UINT_MAX);
	return true;
}
