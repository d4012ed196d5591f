/* SPDX-License-Identifier: Apache-2.0 */
/* stamps.c - see stamps.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/log/stamps.h"

#define SIZE sizeof(struct index_record)

/* Records from number @from on are held. */
static void
hold(struct stamps *s, uint64_t from)
{
	ssize_t n = pread(s->fd, s->record, sizeof(s->record),
		(off_t)(from * SIZE));

	s->first = from;
	s->held = n < 0 ? 0 : (uint32_t)((size_t)n / SIZE);
	if (s->held > s->count - from)
		s->held = (uint32_t)(s->count - from);
}

static struct index_record
record_of(const struct stamps *s, uint64_t number)
{
	struct index_record r = { 0 };

	if (pread(s->fd, &r, SIZE, (off_t)(number * SIZE)) != (ssize_t)SIZE)
		r = (struct index_record){ 0 };
	return r;
}

bool
stamps_look(struct stamps *s, int dir, const char *name, int64_t rest)
{
	uint64_t before = s->count;
	struct stat st;

	s->rest = rest;
	if (s->fd == -1)
		s->fd = openat(dir, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (s->fd == -1 || fstat(s->fd, &st) == -1)
		return errno == ENOENT || errno == ELOOP;
	s->count = S_ISREG(st.st_mode) ? (uint64_t)st.st_size / SIZE : 0;
	if (s->count != before)
		s->known = s->count == 0 ? 0 : record_of(s, s->count - 1).end;
	return true;
}

/* Returns true if the first record that ends behind @offset is held, and is either not
 * the first of the held ones or the first of all. */
static bool
is_held(const struct stamps *s, uint64_t offset)
{
	return s->held > 0 && s->record[s->held - 1].end > offset &&
		(s->first == 0 || s->record[0].end <= offset);
}

/* Number of the first record of which @before is false; count: none. */
static uint64_t
bisect(struct stamps *s, bool (*before)(struct index_record r, int64_t value),
	int64_t value)
{
	uint64_t lo = 0, hi = s->count, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (before(record_of(s, mid), value))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
ends_before(struct index_record r, int64_t offset)
{
	return r.end <= (uint64_t)offset;
}

static bool
came_before(struct index_record r, int64_t ns)
{
	return r.ns < ns;
}

/* Who reads on finds the next records behind the held ones; who reads back, or
 * begins somewhere, finds some on either side. */
static void
seek(struct stamps *s, uint64_t offset)
{
	uint64_t number;

	if (s->held > 0 && s->record[s->held - 1].end <= offset) {
		hold(s, s->first + s->held - 1);
		if (is_held(s, offset))
			return;
	}
	number = bisect(s, ends_before, (int64_t)offset);
	hold(s, number < STAMPS_HELD / 2 ? 0 : number - STAMPS_HELD / 2);
}

int64_t
stamps_when(struct stamps *s, uint64_t offset, uint64_t *end)
{
	*end = UINT64_MAX;
	if (s->known <= offset)
		return s->rest;
	if (!is_held(s, offset))
		seek(s, offset);
	for (uint32_t i = 0; i < s->held; i++)
		if (s->record[i].end > offset) {
			*end = s->record[i].end;
			return s->record[i].ns;
		}
	return s->rest;
}

uint64_t
stamps_since(struct stamps *s, int64_t ns)
{
	uint64_t number = bisect(s, came_before, ns);

	if (number == s->count && s->rest < ns)
		return UINT64_MAX;
	return number == 0 ? 0 : record_of(s, number - 1).end;
}

void
stamps_close(struct stamps *s)
{
	fd_close(s->fd);
	*s = STAMPS_NONE;
}
