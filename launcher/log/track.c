/* SPDX-License-Identifier: Apache-2.0 */
/* track.c - see track.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "launcher/log/piece.h"
#include "launcher/log/track.h"

#define TRIES 16 /* cuts that come between two looks */

/* A file's stamp is of the kernel's last tick. */
#define SLACK (2 * INDEX_STEP_NS)

void
track_init(struct track *t, int dir, uint32_t named)
{
	*t = (struct track){
		.dir = dir,
		.named = named,
		.fd = -1,
		.stamps = STAMPS_NONE,
	};
}

void
track_fini(struct track *t)
{
	fd_close(t->fd);
	stamps_close(&t->stamps);
	free(t->piece);
	track_init(t, t->dir, t->named);
}

/* --- what there is -------------------------------------------------------- */

/* A folder may hold anything: no FIFO is waited for, no link followed. */
static int
open_file(struct track *t, const char *name)
{
	int fd = openat(t->dir, name,
		O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd == -1 && errno != ENOENT && errno != ELOOP)
		t->sys = errno;
	if (fd == -1 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	fd_close(fd);
	return -1;
}

/* Returns true if @fd still bears the stream's own name. */
static bool
is_newest(const struct track *t, int fd)
{
	char name[PIECE_NAME];
	struct stat named, open;

	raw_name(t->named, name, sizeof(name));
	return fstatat(t->dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstat(fd, &open) == 0 && named.st_ino == open.st_ino &&
		named.st_dev == open.st_dev;
}

static void
add_piece(void *ctx, uint64_t start)
{
	struct track *t = ctx;

	if ((t->count & (t->count - 1)) == 0)
		t->piece = xrealloc(t->piece,
			(t->count == 0 ? 1 : 2 * t->count) * sizeof(*t->piece));
	t->piece[t->count++] = start;
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Offset behind the piece that was cut last; false: it is gone by now. */
static bool
end_of_cut(const struct track *t, uint64_t *end)
{
	char name[PIECE_NAME];
	struct stat st;

	*end = 0;
	if (t->count == 0)
		return true;
	piece_name(t->named, t->piece[t->count - 1], name, sizeof(name));
	*end = t->piece[t->count - 1];
	if (fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return false;
	*end += (uint64_t)st.st_size;
	return true;
}

/* All pieces anew; the newest is the last of them, and open: its descriptor, or
 * -1 if there is none (a kill in the midst of a cut leaves that). */
static int
list(struct track *t)
{
	char name[PIECE_NAME];
	uint64_t start;
	bool sure;
	int fd;

	t->listed = true;
	for (int i = 0; i < TRIES; i++) {
		fd = open_file(t, raw_name(t->named, name, sizeof(name)));
		t->count = 0;
		if (!piece_each(t->dir, t->named, add_piece, t))
			t->sys = errno;
		if (t->count > 1)
			qsort(t->piece, t->count, sizeof(*t->piece), compare);
		sure = end_of_cut(t, &start);
		if (fd == -1 && (t->count == 0 || i > 2))
			return -1;
		if (fd != -1 && sure && is_newest(t, fd)) {
			add_piece(t, start);
			return fd;
		}
		fd_close(fd);
	}
	return -1;
}

/* --- the piece that is open ----------------------------------------------- */

static void
look(struct track *t)
{
	char name[PIECE_NAME], index[PIECE_NAME + 8];
	struct stat st;

	if (fstat(t->fd, &st) == -1)
		return;
	t->end = t->start + (uint64_t)st.st_size;
	t->changed = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	if (t->newest)
		raw_name(t->named, name, sizeof(name));
	else
		piece_name(t->named, t->start, name, sizeof(name));
	snprintf(index, sizeof(index), "%s.idx", name);
	if (!stamps_look(&t->stamps, t->dir, index, t->changed))
		t->sys = errno;
}

/* Takes @fd. */
static void
use(struct track *t, int fd, uint64_t start, bool newest)
{
	fd_close(t->fd);
	stamps_close(&t->stamps);
	t->fd = fd;
	t->start = start;
	t->newest = newest;
	look(t);
}

/* Which of the pieces holds @offset, or begins behind it; count: none. */
static size_t
place_of(const struct track *t, uint64_t offset)
{
	size_t lo = 0, hi = t->count, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (t->piece[mid] <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo == 0 ? 0 : lo - 1;
}

/* One that was cut; false: it is away. */
static bool
use_cut(struct track *t, size_t place)
{
	char name[PIECE_NAME];
	int fd = open_file(t,
		piece_name(t->named, t->piece[place], name, sizeof(name)));

	if (fd == -1)
		return false;
	use(t, fd, t->piece[place], false);
	return true;
}

/* The piece that holds @offset, or the first behind it. False: there is none,
 * and all is as it was. */
static bool
use_at(struct track *t, uint64_t offset)
{
	size_t place = place_of(t, offset);
	int fd;

	/* One with a follower need not be looked for. */
	if (place + 1 < t->count && use_cut(t, place) && offset < t->end)
		return true;
	for (int i = 0; i < TRIES; i++) {
		fd = list(t);
		if (t->count == 0)
			return false;
		place = place_of(t, offset);
		if (fd != -1 && place + 1 == t->count) {
			use(t, fd, t->piece[place], true);
			return true;
		}
		fd_close(fd);
		if (use_cut(t, place)) {
			if (offset < t->end || place + 1 == t->count)
				return true;
			offset = t->piece[place + 1]; /* removed between */
		}
	}
	return false;
}

bool
track_more(struct track *t, uint64_t *offset)
{
	bool cut;

	if (t->fd == -1 || *offset < t->start) {
		if (!use_at(t, *offset))
			return false;
	} else if (*offset >= t->end) {
		/* Asked first: what was cut grows no more. */
		cut = t->newest && !is_newest(t, t->fd);
		look(t);
		if (*offset < t->end)
			return true;
		if ((t->newest && !cut) || !use_at(t, *offset))
			return false;
	}
	if (*offset < t->start)
		*offset = t->start;
	return *offset < t->end;
}

uint64_t
track_first(struct track *t)
{
	if (!t->listed)
		use_at(t, 0);
	return t->count == 0 ? 0 : t->piece[0];
}

uint64_t
track_end(struct track *t)
{
	return use_at(t, UINT64_MAX) ? t->end : 0;
}

size_t
track_read(struct track *t, uint64_t offset, char *out, size_t cap)
{
	ssize_t n;

	if (offset < t->start || offset >= t->end)
		return 0;
	if (cap > t->end - offset)
		cap = (size_t)(t->end - offset);
	do {
		n = pread(t->fd, out, cap, (off_t)(offset - t->start));
	} while (n == -1 && errno == EINTR);
	t->bytes += n > 0 ? (uint64_t)n : 0;
	return n > 0 ? (size_t)n : 0;
}

/* --- time ----------------------------------------------------------------- */

/* Returns true if all of the piece was written before @ns. One that is away was; of the
 * newest nobody knows. */
static bool
is_before(const struct track *t, size_t place, int64_t ns)
{
	char name[PIECE_NAME];
	struct stat st;

	if (place + 1 == t->count)
		return false;
	piece_name(t->named, t->piece[place], name, sizeof(name));
	return fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
		st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec + SLACK < ns;
}

uint64_t
track_since(struct track *t, int64_t ns)
{
	size_t lo = 0, hi, mid;
	uint64_t at;

	fd_close(list(t));
	for (hi = t->count; lo < hi;) {
		mid = lo + (hi - lo) / 2;
		if (is_before(t, mid, ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < t->count; lo++) {
		at = t->piece[lo];
		if (!use_at(t, at))
			break;
		at = stamps_since(&t->stamps, ns);
		if (at != UINT64_MAX)
			return at > t->start ? at : t->start;
	}
	return track_end(t);
}
