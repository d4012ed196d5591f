/* SPDX-License-Identifier: Apache-2.0 */
/* report_file.c - see report_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/sendfile.h>

#include "base/fault.h"
#include "base/fd.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/report_file.h"

#define PART        (1 << 20)
#define PATIENCE_MS 5000 /* with a reader that does not read */

/* What stood in the file goes only now that there is something new, unless it
 * is stdout's or the like. Returns 0 or errno. */
static int
begin(int fd)
{
	bool fresh = (fcntl(fd, F_GETFL) & O_APPEND) == 0 &&
		lseek(fd, 0, SEEK_CUR) == 0;

	return fresh && ftruncate(fd, 0) == -1 && errno != EINVAL ? errno : 0;
}

/* Files that are appended to, and some devices, take it in no other way. A kill
 * between the two calls would have it written again. */
static ssize_t
copy(int text, int fd)
{
	char part[4096];
	ssize_t n = pread(text, part, sizeof(part), lseek(text, 0, SEEK_CUR));

	if (n <= 0)
		return n;
	if (fd_write_all(fd, part, (size_t)n) == -1 ||
		lseek(text, n, SEEK_CUR) == -1)
		return -1;
	return n;
}

/* The kernel moves our place in @text together with the bytes. */
static ssize_t
pour_some(int text, int fd, size_t max)
{
	ssize_t n = sendfile(fd, text, NULL, max);

	return n == -1 && errno != EINTR ? copy(text, fd) : n;
}

static int
pour(int text, int fd)
{
	ssize_t n;

	do {
		n = pour_some(text, fd, PART);
	} while (n > 0 || (n == -1 && errno == EINTR));
	return n == 0 ? 0 : errno;
}

bool
report_file_prepare(struct job *job, const struct buf *text)
{
	int fd = memfd_create("xrun-report", MFD_CLOEXEC);

	if (fd == -1)
		return false;
	if (fd_write_all(fd, text->data, text->len) == -1 ||
		lseek(fd, 0, SEEK_SET) == -1) {
		fd_close(fd);
		return false;
	}
	job->page->text = fd;
	return true;
}

int
report_file_put(int fd, const struct buf *text)
{
	int sys = begin(fd);

	if (sys != 0)
		return sys;
	if (fault(FAULT_REPORT_WRITE, FAULT_ANY) != 0)
		return errno;
	return fd_write_all(fd, text->data, text->len) == 0 ? 0 : errno;
}

int
report_file_write(struct job *job)
{
	int sys = begin(job->report_fd);

	if (sys != 0)
		return sys;
	if (fault(FAULT_REPORT_WRITE, FAULT_ANY) != 0)
		return errno;
	return pour(job->page->text, job->report_fd);
}

/* A pipe that has room has it for PIPE_BUF. */
int
report_file_finish(struct job *job)
{
	int text = job->page->text, sys = 0;
	struct pollfd room = { .fd = job->report_fd, .events = POLLOUT };
	ssize_t n = 1;

	if (text == 0)
		return 0;
	if (lseek(text, 0, SEEK_CUR) == 0)
		sys = begin(job->report_fd);
	while (sys == 0 && n > 0) {
		if (poll(&room, 1, PATIENCE_MS) == 0)
			return ETIMEDOUT;
		n = pour_some(text, job->report_fd, PIPE_BUF);
		if (n == -1 && errno != EINTR)
			sys = errno;
		else if (n == -1)
			n = 1;
	}
	return sys;
}
