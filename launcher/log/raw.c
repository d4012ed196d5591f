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
#include "launcher/log/reserve.h"

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
		share->slot[i] = (struct raw_slot){
			.pipe = -1,
			.file = -1,
			.tty = -1,
			.fill = -1,
		};
	return share;
}

const char *
raw_name(uint32_t named, char *out, unsigned long cap)
{
	snprintf(out, cap, "rank-%04u/%s", named / RAW_STREAMS,
		named % RAW_STREAMS == RAW_OUT ? "stdout" : "stderr");
	return out;
}

uint64_t
raw_written(const struct raw_share *share)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < share->streams; i++)
		bytes += __atomic_load_n(&share->slot[i].moved,
			__ATOMIC_RELAXED);
	return bytes;
}

void
raw_lose(struct raw_share *share, uint64_t bytes, int sys)
{
	int32_t none = 0;

	if (bytes == 0)
		return;
	__atomic_compare_exchange_n(&share->sys, &none, sys, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_fetch_add(&share->failed, bytes, __ATOMIC_RELEASE);
}

uint64_t
raw_lost(const struct raw_share *share, int *sys)
{
	uint64_t bytes = __atomic_load_n(&share->failed, __ATOMIC_ACQUIRE);

	*sys = __atomic_load_n(&share->sys, __ATOMIC_RELAXED);
	return bytes;
}

const char *
raw_lost_text(const struct raw_share *share, char out[static RAW_LOST_MAX])
{
	int sys;
	unsigned long long bytes = raw_lost(share, &sys);

	if (bytes == 0)
		out[0] = '\0';
	else if (raw_no_room(sys))
		snprintf(out, RAW_LOST_MAX,
			"xrun: %llu bytes found no room on the disk and are lost\n",
			bytes);
	else if (raw_hopeless(sys))
		snprintf(out, RAW_LOST_MAX,
			"xrun: %llu bytes came when their file could not grow any more and are lost\n",
			bytes);
	else if (sys == ESTALE)
		snprintf(out, RAW_LOST_MAX,
			"xrun: %llu bytes came after the folder of the job was removed and are lost\n",
			bytes);
	else
		snprintf(out, RAW_LOST_MAX,
			"xrun: %llu bytes could not be written to their files (%s) and are lost\n",
			bytes, strerror(sys));
	return out;
}

bool
raw_no_room(int sys)
{
	return sys == ENOSPC || sys == EDQUOT;
}

bool
raw_hopeless(int sys)
{
	return sys == EFBIG;
}

/* Its folder may be missing, or be removed in between: then it is made again.
 * Only where @dir has no inode any more can that not be done. */
static int
open_in_folder(int dir, char *name)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, fd;
	char *slash = strchr(name, '/');

	for (int tries = 0; tries < 3; tries++) {
		fd = openat(dir, name, flags, 0600);
		if (fd != -1 || errno != ENOENT)
			return fd;
		*slash = '\0';
		if (mkdirat(dir, name, 0700) == -1 && errno != EEXIST) {
			if (errno == ENOENT)
				errno = ESTALE;
			return -1;
		}
		*slash = '/';
	}
	errno = ENOENT;
	return -1;
}

int
raw_open(int dir, uint32_t named)
{
	char name[64];
	int fd;

	raw_name(named, name, sizeof(name));
	fd = fd_sole(open_in_folder(dir, name));
	if (fd != -1 && lseek(fd, 0, SEEK_END) == -1) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

/* What was read from a pipe and is in no file yet; there is one. What refuses
 * one file refuses them all, mostly, and a buffer for each would be memory that
 * is never used: only copying needs it, and only where it fails. */
static struct {
	char data[COPY_MAX];
	size_t len; /* 0: free */
	int pipe;
	int sys; /* why it is held */
} held = { .pipe = -1 };

/* All of it or nothing: a part would have to be told of as moved and as
 * refused. */
static long
write_held(int file, off_t at)
{
	long len = (long)held.len;

	if (fd_write_all(file, held.data, held.len) == 0) {
		held.len = 0;
		return len;
	}
	held.sys = errno;
	/* Where this fails the next try writes over what is there. */
	lseek(file, at, SEEK_SET);
	(void)!ftruncate(file, at);
	errno = held.sys;
	return -1;
}

/* How much there is to read: 0 at the end; -1 with errno, EAGAIN if none. */
static long
readable(int pipe)
{
	struct pollfd p = { .fd = pipe, .events = POLLIN };
	int waiting = 0;

	if (ioctl(pipe, FIONREAD, &waiting) == 0 && waiting > 0)
		return waiting > COPY_MAX ? COPY_MAX : waiting;
	if (poll(&p, 1, 0) == 1 && p.revents == POLLHUP)
		return 0;
	if ((p.revents & POLLIN) != 0)
		return COPY_MAX;
	errno = EAGAIN;
	return -1;
}

/* Reading only what there is room for, as far as the file system tells. */
static long
copy(int pipe, int file, uint64_t max)
{
	off_t at = lseek(file, 0, SEEK_CUR);
	long n;

	if (held.len > 0 && held.pipe == pipe)
		return write_held(file, at);
	n = readable(pipe);
	if (n <= 0)
		return n;
	n = (uint64_t)n < max ? n : (long)max;
	if (held.len > 0) {
		errno = held.sys;
		return -1;
	}
	if (fallocate(file, FALLOC_FL_KEEP_SIZE, at, n) == -1 &&
		errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	n = read(pipe, held.data, (size_t)n);
	if (n <= 0)
		return n;
	held.len = (size_t)n;
	held.pipe = pipe;
	return write_held(file, at);
}

long
raw_move_some(int pipe, int file, uint64_t max)
{
	long n = -1;

	max = max < MOVE_MAX ? max : MOVE_MAX;
	if (held.len > 0 && held.pipe == pipe)
		return copy(pipe, file, max);
	n = splice(pipe, NULL, file, NULL, (size_t)max, SPLICE_F_NONBLOCK);
	if (n == -1 && (errno == EINVAL || errno == ENOSYS || errno == EPERM))
		return copy(pipe, file, max);
	return n;
}

long
raw_move(int pipe, int file)
{
	return raw_move_some(pipe, file, MOVE_MAX);
}

_Static_assert(RAW_TAKE >= COPY_MAX, "what is held fits");

long
raw_take(int pipe, char out[static RAW_TAKE])
{
	long n;

	if (held.len > 0 && held.pipe == pipe) {
		n = (long)held.len;
		memcpy(out, held.data, held.len);
		held.len = 0;
		return n;
	}
	n = readable(pipe);
	if (n <= 0)
		return n;
	return read(pipe, out, RAW_TAKE);
}

long
raw_discard(int pipe)
{
	static char data[RAW_TAKE];

	return raw_take(pipe, data);
}

long
raw_peek(int pipe, char out[static RAW_PEEK])
{
	static int copy[2] = { -1, -1 };
	size_t len = held.pipe == pipe ? held.len : 0;
	ssize_t n;

	if (copy[0] == -1 && pipe2(copy, O_CLOEXEC | O_NONBLOCK) == -1)
		return -1;
	memcpy(out, held.data, len);
	n = tee(pipe, copy[1], RAW_TAKE, SPLICE_F_NONBLOCK);
	if (n > 0 && read(copy[0], out + len, (size_t)n) != n)
		return -1;
	return len > 0 ? (long)len + (n > 0 ? n : 0) : n;
}

uint64_t
raw_waiting(int pipe)
{
	struct pollfd p = { .fd = pipe, .events = POLLIN };
	int waiting = 0;

	/* Where it may not be asked how much: whatever a pipe can hold. */
	if (ioctl(pipe, FIONREAD, &waiting) == -1 && poll(&p, 1, 0) == 1 &&
		(p.revents & POLLIN) != 0)
		waiting = COPY_MAX;
	return (uint64_t)waiting + (held.pipe == pipe ? held.len : 0);
}

void
raw_close(struct raw_slot *slot)
{
	int pipe = slot->pipe;

	slot->pipe = -1;
	if (held.pipe == pipe)
		held.len = 0;
	fd_close(pipe);
	fd_close(slot->fill);
	slot->fill = slot->tty = -1;
}

/* Where splice(2) knows no terminals: what there is room for in the pipe. */
static long
copy_tty(const struct raw_slot *slot)
{
	char data[4096]; /* PIPE_BUF: room for all of it, or none */
	struct pollfd room = { .fd = slot->fill, .events = POLLOUT };
	long n;

	if (poll(&room, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	n = read(slot->tty, data, sizeof(data));
	if (n > 0)
		fd_write_all(slot->fill, data, (size_t)n);
	return n;
}

void
raw_fill(struct raw_slot *slot)
{
	long n = 1;

	while (slot->fill >= 0 && (n > 0 || errno == EINTR)) {
		n = splice(slot->tty, NULL, slot->fill, NULL, COPY_MAX,
			SPLICE_F_NONBLOCK);
		if (n == -1 &&
			(errno == EINVAL || errno == ENOSYS || errno == EPERM))
			n = copy_tty(slot);
		/* EIO: nobody has the other side open any more. */
		if (n == 0 || (n == -1 && errno == EIO)) {
			fd_close(slot->fill);
			slot->fill = -1;
		}
	}
}

/* No more than it may hold: somebody may go on writing. */
static uint64_t
empty_tty(const struct raw_slot *slot)
{
	uint64_t bytes = 0;
	char data[4096];
	long n = 1;

	for (int i = 0; i < 32 && slot->tty >= 0 && n > 0; i++) {
		n = read(slot->tty, data, sizeof(data));
		bytes += n > 0 ? (uint64_t)n : 0;
	}
	return bytes;
}

uint64_t
raw_left(struct raw_slot *slot)
{
	return (slot->pipe < 0 ? 0 : raw_waiting(slot->pipe)) + empty_tty(slot);
}

bool
raw_leave(struct raw_share *share, uint32_t stream)
{
	struct raw_slot *slot = &share->slot[stream];
	uint64_t lost;

	raw_fill(slot);
	lost = empty_tty(slot);
	if (lost > 0)
		raw_lose(share, lost, EAGAIN);
	fd_close(slot->fill);
	slot->fill = slot->tty = -1;
	if (raw_waiting(slot->pipe) == 0)
		return false;
	share->left++;
	return true;
}

/* Moves all that waits in the pipe of @slot to @file. Returns 0 or an errno. */
static int
drain_to(const struct raw_share *share, struct raw_slot *slot, int file)
{
	uint64_t room;
	long n = 1;

	while (n != 0 && raw_waiting(slot->pipe) > 0) {
		room = reserve_above(share->dir, share->reserve);
		if (room == 0)
			return ENOSPC;
		n = raw_move_some(slot->pipe, file, room);
		if (n > 0)
			slot->moved += (uint64_t)n;
		else if (n < 0 && errno != EINTR)
			return errno;
		raw_fill(slot);
	}
	return 0;
}

/* One pipe to its file; 0, or the errno of what is in the way. Descriptors may
 * be short: those of a stream that is done are given back, and so is that of a
 * file that was opened for it here. */
static int
drain_one(struct raw_share *share, uint32_t stream)
{
	struct raw_slot *slot = &share->slot[stream];
	int fd = slot->file, sys = 0;

	if (slot->pipe < 0)
		return 0;
	raw_fill(slot);
	if (raw_waiting(slot->pipe) > 0) {
		if (fd < 0)
			fd = raw_open(share->dir, share->base + stream);
		sys = fd < 0 ? errno : drain_to(share, slot, fd);
	}
	if (sys == 0) {
		raw_close(slot);
		slot->file = -1;
	}
	if (fd != slot->file)
		fd_close(fd);
	return sys;
}

/* Returns true if another try may go better, in a while or after other streams. */
static bool
passes(int sys)
{
	return raw_no_room(sys) || sys == EMFILE || sys == ENFILE ||
		sys == ENOMEM;
}

/* Why a stream cannot be saved is not kept: the last try tells it again. */
static void
count_left(struct raw_share *share)
{
	for (uint32_t i = 0; i < share->streams; i++) {
		int sys = drain_one(share, i);

		if (sys != 0)
			raw_lose(share, raw_left(&share->slot[i]), sys);
	}
}

uint64_t
raw_drain(struct raw_share *share, int64_t patience)
{
	int64_t deadline = clock_now() + patience;
	bool all = share->dir < 0;
	int sys;

	while (!all && clock_now() < deadline) {
		all = true;
		for (uint32_t i = 0; i < share->streams; i++)
			all = !passes(drain_one(share, i)) && all;
		if (!all)
			poll(NULL, 0, 100);
	}
	if (share->dir >= 0)
		count_left(share);
	return raw_lost(share, &sys);
}
