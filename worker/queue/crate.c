/* SPDX-License-Identifier: Apache-2.0 */
/* crate.c - see crate.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "worker/queue/crate.h"
#include "worker/queue/wake.h"
#include "worker/shm/seen.h"

/* --- blocks -------------------------------------------------------------------------- */

static uint32_t
blocks_for(const struct hall *h, size_t len)
{
	return (uint32_t)((len + h->plan.block - 1) / h->plan.block);
}

static bool
is_long(const struct hall *h, size_t len)
{
	uint64_t most = (uint64_t)h->plan.blocks * h->plan.block / 4;

	return len > (most > h->plan.block ? most : h->plan.block);
}

static bool
take_block(struct lane *lane, uint32_t i, uint64_t owner)
{
	uint64_t free = 0;

	return atomic_load_explicit(&lane->owner[i], memory_order_relaxed) ==
		0 &&
		atomic_compare_exchange_strong(&lane->owner[i], &free, owner);
}

/* @count blocks, in a row that @crate begins; what there was if there were too few. */
static bool
take_blocks(struct hall *h, struct lane *lane, uint32_t count,
	struct crate *crate)
{
	uint32_t blocks = h->plan.blocks, last = CELL_NO_BLOCK;
	uint32_t at =
		atomic_load_explicit(&lane->ends->block, memory_order_relaxed) %
		blocks;

	crate->first = CELL_NO_BLOCK;
	for (uint32_t n = 0; n < blocks && count > 0; n++) {
		uint32_t i = (at + n) % blocks;

		if (!take_block(lane, i, crate->owner))
			continue;
		atomic_store_explicit(&lane->next[i], CELL_NO_BLOCK,
			memory_order_relaxed);
		if (last == CELL_NO_BLOCK)
			crate->first = i;
		else
			atomic_store_explicit(&lane->next[last], i,
				memory_order_relaxed);
		last = i;
		count--;
	}
	if (last != CELL_NO_BLOCK)
		atomic_store_explicit(&lane->ends->block, last + 1,
			memory_order_relaxed);
	return count == 0;
}

/* The next of an item's blocks; CELL_NO_BLOCK: there is none. */
static uint32_t
next_block(const struct hall *h, const struct lane *lane, uint32_t i)
{
	uint32_t next =
		atomic_load_explicit(&lane->next[i], memory_order_relaxed);

	return next < h->plan.blocks ? next : CELL_NO_BLOCK;
}

static void
free_block(struct lane *lane, uint32_t i, uint64_t owner)
{
	if (atomic_load_explicit(&lane->owner[i], memory_order_relaxed) ==
		owner)
		atomic_compare_exchange_strong(&lane->owner[i], &owner, 0);
}

static void
free_blocks(struct hall *h, struct lane *lane, const struct crate *crate)
{
	uint32_t i = crate->first;

	for (uint32_t n = 0; n < h->plan.blocks && i != CELL_NO_BLOCK; n++) {
		uint32_t next = next_block(h, lane, i);

		free_block(lane, i, crate->owner);
		i = next;
	}
	wake_ring(&h->head->memory_wake, UINT32_MAX);
}

/* Where a load is read from. */
struct reader {
	const struct xr_part *part;
	size_t at; /* in it */
};

static void
read_load(struct reader *r, uint8_t *out, size_t len)
{
	while (len > 0) {
		size_t n = r->part->len - r->at;

		if (n > len)
			n = len;
		if (n > 0)
			memcpy(out, (const uint8_t *)r->part->data + r->at, n);
		out += n;
		len -= n;
		r->at += n;
		if (r->at == r->part->len) {
			r->part++;
			r->at = 0;
		}
	}
}

static enum xr_status
fill_blocks(const struct hall *h, struct lane *lane,
	const struct crate_load *load, uint32_t first)
{
	struct reader r = { .part = load->parts };
	uint64_t block = h->plan.block;
	uint32_t i = first;

	for (size_t left = load->len; left > 0;) {
		size_t n = left < block ? left : block;

		if (i == CELL_NO_BLOCK)
			return XR_E_PROTO;
		read_load(&r, lane->data + i * block, n);
		seen_put(&lane->owner[i]); /* who empties it gives it back */
		left -= n;
		i = next_block(h, lane, i);
	}
	return XR_OK;
}

static enum xr_status
read_blocks(const struct hall *h, const struct lane *lane,
	const struct crate *crate, uint8_t *out)
{
	uint64_t block = h->plan.block;
	uint32_t i = crate->first;

	for (uint64_t left = crate->len; left > 0;) {
		size_t n = left < block ? left : block;

		if (i == CELL_NO_BLOCK)
			return XR_E_PROTO;
		memcpy(out, lane->data + i * block, n);
		out += n;
		left -= n;
		i = next_block(h, lane, i);
	}
	return XR_OK;
}

/* --- lots ---------------------------------------------------------------------------- */

static uint64_t
lot_at(const struct hall *h, uint32_t lot)
{
	return h->plan.lots_at + lot * h->plan.lot;
}

static enum xr_status
write_part(int fd, const struct xr_part *part, uint64_t at)
{
	for (size_t done = 0; done < part->len;) {
		ssize_t n = pwrite(fd, (const char *)part->data + done,
			part->len - done, (off_t)(at + done));

		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return XR_E_SYS;
		done += (size_t)n;
	}
	return XR_OK;
}

static enum xr_status
fill_lot(struct hall *h, uint32_t lot, const struct crate_load *load)
{
	enum xr_status status = XR_OK;
	uint64_t at = lot_at(h, lot);

	/* Beyond the limit a write would end the process. */
	if (at + load->len > hall_file_limit()) {
		errno = EFBIG;
		return XR_E_SYS;
	}
	for (size_t i = 0; i < load->count && status == XR_OK; i++) {
		status = write_part(h->fd, &load->parts[i], at);
		at += load->parts[i].len;
	}
	return status;
}

static enum xr_status
read_lot(struct hall *h, const struct crate *crate, char *out)
{
	uint64_t at = lot_at(h, crate->first - HALL_BLOCKS);

	for (uint64_t done = 0; done < crate->len;) {
		ssize_t n = pread(h->fd, out + done, crate->len - done,
			(off_t)(at + done));

		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? XR_E_PROTO : XR_E_SYS;
		done += (uint64_t)n;
	}
	return XR_OK;
}

/* All of it: one that died may have written more, before. */
static void
free_lot(struct hall *h, const struct crate *crate)
{
	uint32_t lot = crate->first - HALL_BLOCKS;
	uint64_t owner = crate->owner;
	int saved = errno;

	fallocate(h->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)lot_at(h, lot), (off_t)h->plan.lot);
	errno = saved;
	atomic_compare_exchange_strong(&h->head->lots[lot], &owner, 0);
	wake_ring(&h->head->memory_wake, UINT32_MAX);
}

static enum xr_status
pack_lot(struct hall *h, const struct crate_load *load, struct crate *crate)
{
	enum xr_status status;
	uint64_t free = 0;
	uint32_t i;

	if (load->len > h->plan.lot)
		return XR_E_RANGE;
	for (i = 0; i < HALL_LOTS; i++, free = 0)
		if (atomic_compare_exchange_strong(&h->head->lots[i], &free,
			    crate->owner))
			break;
	if (i == HALL_LOTS)
		return XR_E_AGAIN;
	crate->first = HALL_BLOCKS + i;
	status = fill_lot(h, i, load);
	if (status != XR_OK)
		free_lot(h, crate);
	return status;
}

/* --- both ---------------------------------------------------------------------------- */

enum xr_status
crate_pack(struct hall *h, struct lane *lane, uint32_t who,
	const struct crate_load *load, struct crate *crate)
{
	enum xr_status status;

	crate->owner =
		owner_word(who, atomic_fetch_add(&h->head->number, 1) + 1);
	crate->len = load->len;
	if (is_long(h, load->len))
		return pack_lot(h, load, crate);
	if (!take_blocks(h, lane, blocks_for(h, load->len), crate)) {
		free_blocks(h, lane, crate);
		return XR_E_AGAIN;
	}
	status = fill_blocks(h, lane, load, crate->first);
	if (status != XR_OK)
		free_blocks(h, lane, crate);
	return status;
}

static bool
is_lot(const struct crate *crate)
{
	return crate->first >= HALL_BLOCKS &&
		crate->first < HALL_BLOCKS + HALL_LOTS;
}

/* What was not written costs nobody anything, and need not be read. */
static bool
is_written(const struct hall *h, const struct crate *crate)
{
	uint64_t at = lot_at(h, crate->first - HALL_BLOCKS);
	int saved = errno;
	off_t end;

	if (crate->len > h->plan.lot)
		return false;
	end = lseek(h->fd, (off_t)at, SEEK_HOLE);
	errno = saved;
	return end != -1 && (uint64_t)end >= at + crate->len;
}

bool
crate_is_whole(const struct hall *h, const struct crate *crate)
{
	if (is_lot(crate))
		return is_written(h, crate);
	return crate->len <= (uint64_t)h->plan.blocks * h->plan.block;
}

enum xr_status
crate_unpack(struct hall *h, const struct lane *lane, const struct crate *crate,
	void *out)
{
	if (is_lot(crate))
		return read_lot(h, crate, out);
	if (crate->first >= h->plan.blocks)
		return XR_E_PROTO;
	return read_blocks(h, lane, crate, out);
}

void
crate_free(struct hall *h, struct lane *lane, const struct crate *crate)
{
	if (is_lot(crate))
		free_lot(h, crate);
	else if (crate->first < h->plan.blocks)
		free_blocks(h, lane, crate);
}

/* What lies in a lot stays there till somebody writes to it: to empty it would take one
 * who does it alone. */
void
crate_purge(struct hall *h, struct lane *lane, uint64_t owner)
{
	for (uint32_t i = 0; i < h->plan.blocks; i++)
		free_block(lane, i, owner);
	for (uint32_t i = 0; i < HALL_LOTS; i++) {
		uint64_t word = owner;

		atomic_compare_exchange_strong(&h->head->lots[i], &word, 0);
	}
	wake_ring(&h->head->memory_wake, UINT32_MAX);
}
