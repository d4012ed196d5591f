/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.c - fuzz target: what a peer may write into shared memory.
 *
 * Input: a letter, then bytes.
 *
 * "r": a ring of a peer. 12 bytes that are added to what its head says (lines,
 * writer, reader, each 4), then records: a type, the number of loans, two bytes of
 * length, and the body, of which what is missing is 0; behind it 24 bytes for each
 * loan. The sequence is put right, and offsets count from the peer's memory, so
 * that small numbers mean something. A record of type 9 is eight bytes of a word
 * as it is.
 *
 * "s": the tables of a segment: a byte that says which table, two which word of it,
 * eight what stands there, again and again; then what the dead had is swept.
 *
 * Claims: what is delivered lies in the ring, in memory of the reader's, or in that
 * of the peer; it all comes to an end, with the ring let go and nothing kept; a
 * sweep empties spans of the dead, within the arena, and none of the living's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/sweep.h"
#include "tests/fuzz/fuzz.h"
#include "worker/shm/link.h"
#include "worker/shm/own.h"
#include "worker/shm/plane.h"
#include "worker/shm/shm.h"
#include "worker/shm/span.h"

#define PEER  1 /* its slot */
#define PLANE (1u << 8 | 1)
#define LINES 128
#define KEPT  64
#define TURNS 1000
#define LENGTH \
	(UINT64_C(1) << 26) /* of a part: more is more memory, not more */

/* Enough of them is what a fuzzer takes for a leak. */
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1:detect_leaks=0";
}

static struct shm *shm;
static void *carrier;
static uint64_t base; /* of the peer's span */
static struct ring_head *head;
static struct xr_link *peer_link;
static unsigned delivered;

static struct {
	const void *data;
	void *own;
} kept[KEPT];
static unsigned kept_count;

/* --- the host ------------------------------------------------------------- */

static bool
is_of_peer(const void *data, size_t len)
{
	const char *at = data;

	return at >= shm->map.base + base && len <= SEGMENT_SPAN &&
		at + len <= shm->map.base + base + SEGMENT_SPAN;
}

static bool
is_of_segment(const void *data)
{
	const char *at = data;

	return at >= shm->map.base && at < shm->map.base + shm->map.plan.size;
}

/* Each byte can be read, whatever it is. */
static void
read_all(const void *data, size_t len)
{
	const volatile unsigned char *at = data;

	for (size_t i = 0; i < len; i += 61)
		(void)at[i];
	if (len > 0)
		(void)at[len - 1];
}

static void
keep(const void *data, void *own)
{
	if (own == NULL)
		return;
	if (kept_count == KEPT) {
		shm_free(shm, data, own);
		return;
	}
	kept[kept_count].data = data;
	kept[kept_count++].own = own;
}

static void
deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	const void *data;
	size_t len;
	void *own;

	(void)ctx, (void)peer;
	delivered++;
	/* Private, or of our own arena; or the peer's. */
	HOLDS(!is_of_segment(body->data) || is_of_peer(body->data, body->len) ||
		arena_ref(&shm->arena, body->data, 1));
	if (is_of_segment(body->data) && !is_of_peer(body->data, body->len))
		arena_unref(&shm->arena, body->data);
	read_all(body->data, body->len);
	HOLDS(body->loan_count <= XR_LOANS_MAX);
	for (uint32_t i = 0; i < body->loan_count; i++) {
		HOLDS(is_of_peer(body->loans[i].data, body->loans[i].len));
		if (record->kind % 2 != 0)
			continue;
		own = NULL;
		data = shm_loan_take(shm, body, i, &len, &own);
		HOLDS((data == NULL) == (own == NULL));
		HOLDS(data == NULL || is_of_peer(data, len));
		keep(data, own);
	}
	if (record->flags % 2 == 0) {
		own = shm_carrier.body_take(carrier, body, &data);
		keep(data, own);
	}
}

static void *
place(void *ctx, void *peer, const struct xr_record *record, uint64_t len)
{
	(void)ctx, (void)peer, (void)record, (void)len;
	return NULL;
}

static void
sent(void *ctx, void *token)
{
	(void)ctx, (void)token;
	HOLDS(false); /* nothing was */
}

static void *
accepted(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *l)
{
	(void)ctx, (void)incarnation;
	HOLDS(peer_link == NULL);
	if (id != 0)
		return NULL;
	peer_link = l;
	return &peer_link;
}

static void
lost(void *ctx, void *peer, struct xr_link *l, const char *why)
{
	(void)ctx, (void)peer;
	HOLDS(l == peer_link && why[0] != '\0');
	shm_carrier.link_close(l);
	peer_link = NULL;
}

static void
awake(void *ctx)
{
	(void)ctx;
}

static const struct xr_carrier_host host = {
	.size = sizeof(host),
	.deliver = deliver,
	.place = place,
	.sent = sent,
	.accepted = accepted,
	.lost = lost,
	.awake = awake,
};

static void
set_up(void)
{
	const struct xr_carrier_opts opts = { .size = sizeof(opts) };
	struct segment_slot *slot;
	uint32_t span;

	if (carrier != NULL)
		return;
	unsetenv("XRUN_SEGMENT_FD");
	HOLDS(shm_open_segment(&shm, NULL) == XR_OK);
	HOLDS(shm_carrier.open(&host, &opts, &carrier, NULL) == XR_OK);
	slot = segment_slot(&shm->map, PEER);
	atomic_store(&slot->claim,
		segment_claim_word(1, SEGMENT_HELD, (uint32_t)getpid()));
	span = span_take(&shm->map, PEER, 1, 1);
	HOLDS(span != SPAN_NONE);
	base = shm->map.plan.arena + span * SEGMENT_SPAN;
	head = (void *)(shm->map.base + base);
}

/* --- a ring --------------------------------------------------------------- */

struct bytes {
	const uint8_t *at;
	size_t left;
};

static void
get(struct bytes *b, void *to, size_t len)
{
	size_t n = len < b->left ? len : b->left;

	memset(to, 0, len);
	memcpy(to, b->at, n);
	b->at += n;
	b->left -= n;
}

static void
put_head(struct bytes *b)
{
	uint32_t add[3];

	get(b, add, sizeof(add));
	ring_make(head, LINES);
	head->lines += add[0];
	head->writer = PEER + add[1];
	head->reader = shm->slot + add[2];
	head->writer_plane = PLANE;
	head->reader_plane = atomic_load(&shm->mine->plane);
}

/* What the input means by an offset, and by a length. */
static void
put_right(unsigned char *body, struct ring_word w)
{
	struct ring_ref ref;
	struct xr_part part;
	size_t at = (w.len + 7) & ~7u;

	if (w.type == RING_HANDLE) {
		memcpy(&ref, body, sizeof(ref));
		ref.offset += base;
		memcpy(body, &ref, sizeof(ref));
	}
	for (uint32_t i = 0; i < w.loans; i++) {
		memcpy(&ref, body + at + i * sizeof(ref), sizeof(ref));
		ref.offset += base;
		memcpy(body + at + i * sizeof(ref), &ref, sizeof(ref));
	}
	for (size_t p = sizeof(struct ring_bulk);
		w.type == RING_BULK && p + sizeof(part) <= w.len;
		p += sizeof(part)) {
		memcpy(&part, body + p, sizeof(part));
		part.data = (const char *)head + (uintptr_t)part.data % 4096;
		part.len %= LENGTH;
		memcpy(body + p, &part, sizeof(part));
	}
}

/* At line @at; how many lines it takes, 0 if it does not fit. */
static uint32_t
put_record(struct bytes *b, uint64_t at)
{
	static unsigned char body[(1 << 16) + XR_LOANS_MAX * 32];
	uint8_t four[4];
	struct ring_word w;
	struct ring_record *r = ring_line(head, at, LINES);
	uint64_t word = 0;
	uint32_t lines;

	get(b, four, sizeof(four));
	if (four[0] == 9) {
		get(b, &word, sizeof(word));
		atomic_store(&r->word, word);
		return 0;
	}
	w = (struct ring_word){
		.len = four[2] | (uint32_t)four[3] << 8,
		.loans = four[1],
		.type = (enum ring_type)four[0],
	};
	lines = w.type == RING_SKIP ? w.len : ring_lines(w);
	word = ring_sequence(at) | (uint64_t)w.len << 32 |
		(uint64_t)w.loans << 48 | (uint64_t)w.type << 56;
	if (lines > 0 && at % LINES + lines < LINES && w.type != RING_SKIP) {
		get(b, &r->record, 2);
		get(b, body, w.len);
		get(b, body + ((w.len + 7) & ~7u),
			w.loans * sizeof(struct ring_ref));
		put_right(body, w);
		memcpy(w.len <= RING_INLINE ? r->body :
					      (unsigned char *)r + RING_LINE,
			body,
			((w.len + 7) & ~7u) +
				w.loans * sizeof(struct ring_ref));
	}
	atomic_store(&ring_line(head, at + lines, LINES)->word, 0);
	atomic_store(&r->word, word);
	return at % LINES + lines < LINES ? lines : 0;
}

static void
drop_kept(void)
{
	while (kept_count > 0) {
		kept_count--;
		shm_free(shm, kept[kept_count].data, kept[kept_count].own);
	}
}

static void
try_ring(struct bytes b)
{
	_Atomic uint64_t *dir = segment_dir(&shm->map, shm->slot, PEER);
	unsigned turns = 0;
	uint64_t at = 0;
	uint32_t lines;

	put_head(&b);
	while (b.left > 0 && (lines = put_record(&b, at)) > 0)
		at += lines;
	atomic_store(&segment_slot(&shm->map, PEER)->plane, PLANE);
	atomic_store(dir, segment_ring_word(base, 1, shm->gen));
	atomic_fetch_add(&shm->mine->arrivals, 1);
	delivered = 0;
	do {
		shm_look_everywhere(shm);
		HOLDS(++turns < TURNS);
	} while (shm_poll(shm) > 0);
	HOLDS(delivered <= LINES);
	drop_kept();
	if (peer_link != NULL)
		shm_carrier.link_close(peer_link);
	peer_link = NULL;
	atomic_store(&segment_slot(&shm->map, PEER)->plane, 0);
	HOLDS(atomic_load(dir) == 0);
	HOLDS(atomic_load(&shm->attached[PEER]) == 0);
}

/* --- tables --------------------------------------------------------------- */

#define SLOTS 4
#define SPANS 16
#define MINE  5 /* a span of the living */

static void
empty(void *ctx, uint64_t offset, uint64_t len)
{
	const struct segment_map *map = ctx;
	uint64_t span = (offset - map->plan.arena) / SEGMENT_SPAN;

	HOLDS(offset >= map->plan.arena && len == SEGMENT_SPAN);
	HOLDS(span < SPANS && span != MINE);
}

static void
put_word(const struct segment_map *map, struct bytes *b)
{
	uint8_t which[3];
	uint64_t word;
	uint32_t index;

	get(b, which, sizeof(which));
	get(b, &word, sizeof(word));
	index = which[1] | (uint32_t)which[2] << 8;
	switch (which[0] % 6) {
	case 0:
		index %= SPANS;
		if (index != MINE)
			atomic_store(&segment_spans(map)[index], word);
		return;
	case 1:
		atomic_store(segment_dir(map, index % SLOTS,
				     index / SLOTS % SLOTS),
			word);
		return;
	case 2:
		atomic_store(&segment_holds(map, index % SLOTS)[index / SLOTS %
				     SEGMENT_HOLDS],
			word);
		return;
	case 3: /* the first is the living's */
		atomic_store(&segment_slot(map, 1 + index % (SLOTS - 1))->claim,
			word);
		return;
	case 4:
		atomic_store(&segment_slot(map, index % SLOTS)->holds,
			(uint32_t)word);
		return;
	default:
		atomic_store(&segment_shared(map)->top, (uint32_t)word);
		atomic_store(&segment_shared(map)->low, (uint32_t)(word >> 32));
	}
}

/* The arena is no memory: nothing of it is looked at. */
static void
try_tables(struct bytes b)
{
	struct segment_map map = { .ranks = SLOTS };
	struct segment_sweeper how = {
		.map = &map,
		.slot = 0,
		.gen = 1,
		.most = SPANS,
		.empty = empty,
		.ctx = &map,
	};
	struct segment_swept swept;

	HOLDS(segment_plan(SLOTS, (SPANS + 1) * SEGMENT_SPAN, &map.plan));
	HOLDS(map.plan.spans == SPANS);
	map.base = aligned_alloc(SEGMENT_PAGE, map.plan.map + SEGMENT_PAGE);
	HOLDS(map.base != NULL);
	memset(map.base, 0, map.plan.map + SEGMENT_PAGE);
	atomic_store(&segment_slot(&map, 0)->claim,
		segment_claim_word(1, SEGMENT_HELD, 1));
	atomic_store(&segment_spans(&map)[MINE],
		segment_span_word(0, 1, SEGMENT_SPAN_RUN, 1));
	atomic_store(&segment_shared(&map)->top, SPANS);
	while (b.left > 0)
		put_word(&map, &b);
	swept = segment_sweep(&how);
	HOLDS(swept.freed + swept.kept <= SPANS && !swept.more);
	/* What one sweep leaves the next leaves, too. */
	HOLDS(segment_sweep(&how).freed == 0);
	HOLDS(segment_span_slot(atomic_load(&segment_spans(&map)[MINE])) == 0);
	free(map.base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b;

	if (size < 1)
		return 0;
	b = (struct bytes){ data + 1, size - 1 };
	if (data[0] == 'r') {
		set_up();
		try_ring(b);
	} else if (data[0] == 's') {
		try_tables(b);
	}
	return 0;
}
