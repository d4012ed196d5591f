/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.c - see reserve.h. No heap: the keeper uses it after a crash. */
#include <errno.h>
#include <stddef.h>

#include <sys/statvfs.h>

#include "launcher/log/piece.h"
#include "launcher/log/reserve.h"

#define RESERVE_PERCENT 5
#define RESERVE_NEAR    (1ULL << 20) /* bytes; a smaller rest is one credit */

bool
reserve_parse(const char *text, uint64_t *size)
{
	const char *end;

	*size = RESERVE_AUTO;
	if (text == NULL)
		return true;
	end = piece_parse_size(text, size);
	return end != NULL && *end == '\0' && *size <= INT64_MAX;
}

/* Returns false if the file system does not report its size. */
static bool
reserve_look(int dir, struct statvfs *fs)
{
	int saved = errno;
	bool ok = fstatvfs(dir, fs) == 0 && fs->f_blocks != 0;

	errno = saved;
	return ok;
}

static uint64_t
reserve_size_of(const struct statvfs *fs, uint64_t size)
{
	uint64_t part = fs->f_blocks / 100 * RESERVE_PERCENT * fs->f_frsize;

	if (size != RESERVE_AUTO)
		return size;
	return part < RESERVE_MOST ? part : RESERVE_MOST;
}

uint64_t
reserve_size(int dir, uint64_t size)
{
	struct statvfs fs;

	return reserve_look(dir, &fs) ? reserve_size_of(&fs, size) : 0;
}

uint64_t
reserve_above(int dir, uint64_t size)
{
	struct statvfs fs;
	uint64_t left;

	if (!reserve_look(dir, &fs))
		return UINT64_MAX;
	/* f_bfree would count the blocks reserved for root, too. */
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	size = reserve_size_of(&fs, size);
	return left > size ? left - size : 0;
}

uint64_t
reserve_room(struct reserve *r, int dir)
{
	uint64_t above;

	if (r->credit > 0)
		return r->credit;
	above = reserve_above(dir, r->size);
	if (above >= RESERVE_NEAR)
		above /= 4;
	r->credit = above < RESERVE_CREDIT ? above : RESERVE_CREDIT;
	r->since = 0;
	return r->credit;
}

void
reserve_spend(struct reserve *r, uint64_t bytes, int64_t now)
{
	r->credit = bytes < r->credit ? r->credit - bytes : 0;
	if (r->since == 0)
		r->since = now;
	else if (now - r->since >= RESERVE_NS || now < r->since)
		r->credit = 0;
}
