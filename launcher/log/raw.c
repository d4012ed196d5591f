/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c - see raw.h. No heap: the keeper runs this after a crash. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/raw.h"

#define MOVE_MAX (1 << 20) /* a pipe holds 64 KiB; larger ones are allowed */
#define COPY_MAX (64 * 1024)

struct raw_share *
raw_share_new(uint32_t ranks, uint32_t first, int dir)
{
	uint32_t streams = ranks * RAW_STREAMS;
	struct raw_share *share = mmap(NULL,
		sizeof(*share) + streams * sizeof(share->slot[0]),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (share == MAP_FAILED)
		return NULL;
	share->dir = dir;
	share->streams = streams;
	share->base = first * RAW_STREAMS;
	for (uint32_t i = 0; i < streams; i++)
		share->slot[i] = (struct raw_slot){ .pipe = -1, .file = -1 };
	return share;
}

const char *
raw_name(uint32_t named, char *out, unsigned long cap)
{
	snprintf(out, cap, "rank-%04u/%s", named / RAW_STREAMS,
		named % RAW_STREAMS == RAW_OUT ? "stdout" : "stderr");
	return out;
}

int
raw_open(int dir, uint32_t named)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, fd;
	char name[64], *slash;

	raw_name(named, name, sizeof(name));
	slash = strchr(name, '/');
	fd = openat(dir, name, flags, 0600);
	if (fd == -1 && errno == ENOENT) {
		*slash = '\0';
		if (mkdirat(dir, name, 0700) == -1 && errno != EEXIST)
			return -1;
		*slash = '/';
		fd = openat(dir, name, flags, 0600);
	}
	fd = fd_sole(fd);
	if (fd != -1 && lseek(fd, 0, SEEK_END) == -1) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

/* Reading only what there is room for: what was read cannot be put back. */
static long
copy(int pipe, int file)
{
	static char data[COPY_MAX];
	struct pollfd p = { .fd = pipe, .events = POLLIN };
	off_t at = lseek(file, 0, SEEK_CUR);
	int waiting = 0;

	if (ioctl(pipe, FIONREAD, &waiting) == -1)
		return -1;
	if (waiting == 0) {
		errno = EAGAIN;
		return poll(&p, 1, 0) == 1 && p.revents == POLLHUP ? 0 : -1;
	}
	if (waiting > COPY_MAX)
		waiting = COPY_MAX;
	if (fallocate(file, FALLOC_FL_KEEP_SIZE, at, waiting) == -1 &&
		errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	waiting = (int)fd_read_some(pipe, data, (size_t)waiting);
	if (waiting > 0 && fd_write_all(file, data, (size_t)waiting) == -1)
		return -1;
	return waiting;
}

long
raw_move(int pipe, int file)
{
	long n = splice(pipe, NULL, file, NULL, MOVE_MAX, SPLICE_F_NONBLOCK);

	if (n == -1 && (errno == EINVAL || errno == ENOSYS || errno == EPERM))
		return copy(pipe, file);
	return n;
}

static bool
no_room(int sys)
{
	return sys == ENOSPC || sys == EDQUOT;
}

/* One pipe to its file; false if the disk has no room for it now. */
static bool
drain_one(struct raw_share *share, uint32_t stream)
{
	struct raw_slot *slot = &share->slot[stream];
	ssize_t n;

	if (slot->pipe < 0)
		return true;
	for (;;) {
		int waiting = 0;

		if (ioctl(slot->pipe, FIONREAD, &waiting) == -1 || waiting == 0)
			return true;
		if (slot->file < 0)
			slot->file = raw_open(share->dir, share->base + stream);
		if (slot->file < 0)
			return !no_room(errno);
		n = raw_move(slot->pipe, slot->file);
		if (n > 0)
			slot->moved += (uint64_t)n;
		else if (n == 0 || errno != EINTR)
			return n == 0 || !no_room(errno);
	}
}

static uint64_t
left_in(const struct raw_share *share)
{
	uint64_t left = 0;
	int waiting;

	for (uint32_t i = 0; i < share->streams; i++) {
		waiting = 0;
		if (share->slot[i].pipe >= 0 &&
			ioctl(share->slot[i].pipe, FIONREAD, &waiting) == 0)
			left += (uint64_t)waiting;
	}
	return left;
}

uint64_t
raw_drain(struct raw_share *share, int64_t patience)
{
	int64_t deadline = clock_now() + patience;
	bool all;

	if (share->dir < 0)
		return 0;
	do {
		all = true;
		for (uint32_t i = 0; i < share->streams; i++)
			all = drain_one(share, i) && all;
		if (!all)
			poll(NULL, 0, 100);
	} while (!all && clock_now() < deadline);
	share->failed += left_in(share);
	return share->failed;
}
