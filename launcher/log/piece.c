/* SPDX-License-Identifier: Apache-2.0 */
/* piece.c - see piece.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/log/piece.h"

#define DIGITS 15 /* of an offset in a name: 909 TiB */

const char *
piece_parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "kmgt";
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return NULL;
	*out = strtoull(text, &end, 10);
	unit = *end == '\0' ? NULL :
			      strchr(units, tolower((unsigned char)*end));
	for (const char *u = units; unit != NULL && u <= unit; u++)
		if (__builtin_mul_overflow(*out, 1024, out))
			*out = UINT64_MAX;
	return end + (unit != NULL);
}

enum piece_rule_verdict
piece_rule_parse(const char *text, struct piece_rule *out)
{
	struct piece_rule rule = { 0 };
	unsigned long count = 2;
	char *end = NULL;

	text = piece_parse_size(text, &rule.size);
	if (text != NULL && *text == ',' && isdigit((unsigned char)text[1])) {
		count = strtoul(text + 1, &end, 10);
		text = end;
	}
	if (text == NULL || *text != '\0')
		return PIECE_RULE_NONE;
	if (rule.size < PIECE_SIZE_MIN || rule.size > INT64_MAX / 2)
		return PIECE_RULE_SIZE;
	if (count < 2 || count > UINT32_MAX)
		return PIECE_RULE_COUNT;
	rule.count = end == NULL ? 0 : (uint32_t)count;
	*out = rule;
	return PIECE_RULE_OK;
}

const char *
piece_name(uint32_t named, uint64_t start, char *out, unsigned long cap)
{
	char name[PIECE_NAME];

	snprintf(out, cap, "%s.%0*llu", raw_name(named, name, sizeof(name)),
		DIGITS, (unsigned long long)start);
	return out;
}

/* Where what is read goes. */
struct room {
	char *at;
	size_t cap;
};

static uint64_t
start_of(const struct raw_share *share, uint32_t stream)
{
	return __atomic_load_n(&share->slot[stream].start, __ATOMIC_SEQ_CST);
}

/* Bytes up to the first line end in @pipe, which keeps them. As raw_peek(). */
static long
line_end_in(int pipe)
{
	static char data[RAW_PEEK];
	long n = raw_peek(pipe, data);
	const char *nl;

	if (n <= 0)
		return n;
	nl = memchr(data, '\n', (size_t)n);
	return nl == NULL ? n : nl - data + 1;
}

uint64_t
piece_room(const struct raw_share *share, uint32_t stream, int file)
{
	const struct raw_slot *slot = &share->slot[stream];
	uint64_t len = slot->moved - slot->start;
	uint64_t last = share->rule.size + PIECE_NEAR;
	char c = '\n';
	long line;

	if (share->rule.size == 0)
		return UINT64_MAX;
	if (len < share->rule.size)
		return share->rule.size - len;
	if (len >= last || pread(file, &c, 1, (off_t)len - 1) != 1 || c == '\n')
		return 0;
	line = line_end_in(slot->pipe);
	if (line == 0 || (line == -1 && errno == EAGAIN))
		return 1; /* nothing there now, or never */
	if (line == -1)
		return 0;
	return (uint64_t)line < last - len ? (uint64_t)line : last - len;
}

/* What is in the folder of a stream, but for the newest piece. */
struct scan {
	uint64_t first;  /* start of the oldest */
	uint64_t before; /* the last that begins at or before... */
	uint64_t after;  /* and the first after what is looked for */
	uint32_t count;
	uint64_t offset; /* what is looked for */
};

static bool
parse_start(const char *name, const char *stem, uint64_t *out)
{
	size_t len = strlen(stem);
	char *end;

	if (strncmp(name, stem, len) != 0 || name[len] != '.' ||
		strspn(name + len + 1, "0123456789") < DIGITS)
		return false;
	*out = strtoull(name + len + 1, &end, 10);
	return *end == '\0';
}

bool
piece_each(int folder, uint32_t named, piece_fn *fn, void *ctx)
{
	char name[PIECE_NAME], *stem;
	const struct dirent *d;
	uint64_t start;
	DIR *dir;
	int fd;

	raw_name(named, name, sizeof(name));
	stem = strchr(name, '/');
	*stem++ = '\0';
	fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd == -1 ? NULL : fdopendir(fd);
	if (dir == NULL) {
		fd_close(fd);
		return errno == ENOENT;
	}
	while ((d = readdir(dir)) != NULL)
		if (parse_start(d->d_name, stem, &start))
			fn(ctx, start);
	closedir(dir);
	return true;
}

static void
note_piece(struct scan *s, uint64_t start, uint64_t offset)
{
	s->count++;
	if (s->first == PIECE_NONE || start < s->first)
		s->first = start;
	if (start <= offset && (s->before == PIECE_NONE || start > s->before))
		s->before = start;
	if (start > offset && start < s->after)
		s->after = start;
}

static void
note_in_scan(void *ctx, uint64_t start)
{
	struct scan *s = ctx;

	note_piece(s, start, s->offset);
}

static struct scan
scan(const struct raw_share *share, uint32_t stream, uint64_t offset)
{
	struct scan s = { PIECE_NONE, PIECE_NONE, PIECE_NONE, 0, offset };

	piece_each(share->dir, share->base + stream, note_in_scan, &s);
	return s;
}

uint64_t
piece_after(const struct raw_share *share, uint32_t stream, uint64_t offset)
{
	uint64_t after = scan(share, stream, offset).after;
	uint64_t newest = start_of(share, stream);

	return newest > offset && newest < after ? newest : after;
}

uint64_t
piece_of(const struct raw_share *share, uint32_t stream, uint64_t offset)
{
	uint64_t newest = start_of(share, stream);

	return newest <= offset ? newest : scan(share, stream, offset).before;
}

/* With its index; one that is away already is fine. */
static void
remove_piece(const struct raw_share *share, uint32_t stream, uint64_t start)
{
	char name[PIECE_NAME], index[PIECE_NAME + 8];

	piece_name(share->base + stream, start, name, sizeof(name));
	snprintf(index, sizeof(index), "%s.idx", name);
	unlinkat(share->dir, index, 0);
	unlinkat(share->dir, name, 0);
}

/* Those that are more than the rule keeps beside the newest. */
static void
remove_oldest(const struct raw_share *share, uint32_t stream)
{
	uint32_t most =
		share->rule.count == 0 ? UINT32_MAX : share->rule.count - 1;
	struct scan s;

	for (int i = 0; i < 16; i++) {
		s = scan(share, stream, 0);
		if (s.count <= most)
			return;
		remove_piece(share, stream, s.first);
	}
}

int
piece_cut(struct raw_share *share, uint32_t stream, int file)
{
	struct raw_slot *slot = &share->slot[stream];
	uint64_t start = slot->start;
	char name[PIECE_NAME], old[PIECE_NAME], new[PIECE_NAME + 8];
	int fd;

	raw_name(share->base + stream, name, sizeof(name));
	piece_name(share->base + stream, start, old, sizeof(old));
	snprintf(new, sizeof(new), "%s.new", name);
	unlinkat(share->dir, new, 0); /* of a kill in the midst of this */
	fd = openat(share->dir, new,
		O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return -1;
	if (renameat(share->dir, name, share->dir, old) == -1)
		goto fail;
	__atomic_store_n(&slot->start, slot->moved, __ATOMIC_SEQ_CST);
	if (renameat(share->dir, new, share->dir, name) == -1) {
		/* First: who meets neither name looks again, see read_piece(). */
		__atomic_store_n(&slot->start, start, __ATOMIC_SEQ_CST);
		renameat(share->dir, old, share->dir, name);
		goto fail;
	}
	dup3(fd, file, O_CLOEXEC);
	fd_close(fd);
	remove_oldest(share, stream);
	return 0;
fail:
	fd_close(fd);
	unlinkat(share->dir, new, 0);
	return -1;
}

/* The piece of @stream that begins at @start: the mover's own descriptor if it
 * is the newest, or by name; false with errno. */
static bool
open_piece(const struct raw_share *share, uint32_t stream, uint64_t start,
	int *out)
{
	char name[PIECE_NAME];

	*out = -1;
	if (start_of(share, stream) == start) {
		*out = __atomic_load_n(&share->slot[stream].file,
			__ATOMIC_ACQUIRE);
		if (*out == -1)
			*out = openat(share->dir,
				raw_name(share->base + stream, name,
					sizeof(name)),
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (*out == -1)
		*out = openat(share->dir,
			piece_name(share->base + stream, start, name,
				sizeof(name)),
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return *out != -1;
}

/* What is read of the newest piece counts if it is that still: its descriptor,
 * and its name, may be of the next one by now. And one that is not there may have
 * got its other name meanwhile, by a cut or by one that was taken back. */
static ssize_t
read_piece(const struct raw_share *share, uint32_t stream, uint64_t start,
	uint64_t offset, struct room to)
{
	bool newest;
	ssize_t n;
	int fd;

	for (int tries = 0; tries < 3; tries++) {
		newest = start_of(share, stream) == start;
		if (!open_piece(share, stream, start, &fd)) {
			if (errno == ENOENT &&
				(newest || start_of(share, stream) == start))
				continue;
			return -1;
		}
		do {
			n = pread(fd, to.at, to.cap, (off_t)(offset - start));
		} while (n == -1 && errno == EINTR);
		if (fd != share->slot[stream].file)
			fd_close(fd);
		if (!newest || start_of(share, stream) == start)
			return n;
	}
	errno = ENOENT;
	return -1;
}

/* Does a piece begin at @offset? */
static bool
is_start(const struct raw_share *share, uint32_t stream, uint64_t offset)
{
	char name[PIECE_NAME];

	return start_of(share, stream) == offset ||
		faccessat(share->dir,
			piece_name(share->base + stream, offset, name,
				sizeof(name)),
			F_OK, 0) == 0;
}

ssize_t
piece_read(const struct raw_share *share, uint32_t stream, struct piece_at *at,
	char *out, size_t cap)
{
	uint64_t start = at->start;
	size_t got = 0;
	ssize_t n;

	at->border = PIECE_NONE;
	for (int i = 0; i < 2 && got < cap; i++) {
		n = read_piece(share, stream, start, at->offset + got,
			(struct room){ out + got, cap - got });
		if (n == -1)
			return got > 0 ? (ssize_t)got : -1;
		got += (size_t)n;
		if (got == cap || start == start_of(share, stream) ||
			!is_start(share, stream, at->offset + got))
			break;
		start = at->offset + got;
		at->border = start;
	}
	return (ssize_t)got;
}

void
piece_pass(struct piece_at *at, uint64_t used)
{
	at->offset += used;
	if (at->offset >= at->border)
		at->start = at->border;
}
