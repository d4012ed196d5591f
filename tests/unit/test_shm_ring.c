/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_ring.c - rings: records whole and in order, and what a peer that lies
 * can do. The writer and the reader have mappings of their own. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <criterion/criterion.h>

#include "worker/shm/ring.h"

#define LINES   256
#define QUARTER (LINES / 4)
#define LAPS    40

static struct ring_head *theirs; /* the writer's mapping */
static struct ring_head *ours;   /* the reader's */
static struct ring_out out;
static struct ring_in in;

static void *
map(int fd)
{
	void *at = mmap(NULL, ring_bytes(LINES), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);

	cr_assert_neq(at, MAP_FAILED);
	return at;
}

/* Full of what may pass for words. */
static void
begin(int fill)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	cr_assert_eq(ftruncate(fd, (off_t)ring_bytes(LINES)), 0);
	theirs = map(fd);
	ours = map(fd);
	close(fd);
	memset(theirs, fill, ring_bytes(LINES));
	ring_make(theirs, LINES);
	ring_write(&out, theirs, LINES);
	ring_read(&in, ours, LINES);
}

static enum ring_state
put(uint64_t corr, const void *body, uint32_t len)
{
	const struct ring_word w = { .len = len, .type = RING_BODY };
	uint32_t lines = ring_lines(w);
	enum ring_state state = RING_OK;
	struct ring_record *r = ring_reserve(&out, lines, &state);

	if (r == NULL)
		return state;
	if (len <= RING_INLINE)
		ring_fill(r, body, len);
	else
		memcpy((char *)r + RING_LINE, body, len);
	r->record = (struct xr_record){ .corr = corr, .method = len };
	ring_publish(&out, w, lines);
	ring_ahead(&out);
	return RING_OK;
}

/* The next record that is no SKIP. */
static enum ring_state
get(uint64_t *corr, void *body, uint32_t *len)
{
	struct ring_record *r;
	enum ring_state state;
	struct ring_word w;
	uint32_t lines;

	while ((state = ring_peek(&in, &w, &lines)) == RING_OK &&
		w.type == RING_SKIP)
		ring_consume(&in, lines);
	if (state != RING_OK)
		return state;
	r = ring_line(ours, in.at, LINES);
	*corr = r->record.corr;
	*len = w.len;
	memcpy(body, w.len <= RING_INLINE ? r->body : (void *)(r + 1) + 40,
		w.len);
	ring_consume(&in, lines);
	return RING_OK;
}

/* What only the record @corr has. */
static void
pattern(unsigned char *to, uint64_t corr, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (unsigned char)(corr * 31 + i);
}

static void
expect(uint64_t corr, uint32_t len)
{
	static unsigned char got[1 << 16], want[1 << 16];
	uint64_t corr_got = 0;
	uint32_t len_got = 0;

	cr_assert_eq(get(&corr_got, got, &len_got), RING_OK, "%lu", corr);
	cr_assert_eq(corr_got, corr);
	cr_assert_eq(len_got, len);
	pattern(want, corr, len);
	cr_assert_eq(memcmp(got, want, len), 0, "%lu: %u bytes", corr, len);
}

Test(shm_ring, every_length_comes_whole_whatever_was_there_before)
{
	static const int fills[] = { 0, 0xff, 1 };
	unsigned char body[QUARTER * RING_LINE];

	for (size_t f = 0; f < 3; f++) {
		begin(fills[f]);
		for (uint32_t len = 0; len <= (QUARTER - 1) * RING_LINE;
			len++) {
			pattern(body, len, len);
			cr_assert_eq(put(len, body, len), RING_OK, "%u", len);
			expect(len, len);
		}
	}
}

Test(shm_ring, bodies_that_look_like_records_are_never_taken_for_one)
{
	uint64_t body[QUARTER * RING_LINE / 8], corr = 0, got;
	static unsigned char seen[1 << 16];
	uint32_t len;
	unsigned seed = 7;

	begin(0);
	for (int lap = 0; lap < LAPS * LINES / 8; lap++) {
		/* The words of lines that are to come, in each place. */
		for (size_t i = 0; i < sizeof(body) / 8; i++)
			body[i] = ring_sequence(out.at +
					  (unsigned)rand_r(&seed) % LINES) |
				(uint64_t)RING_BODY << 56;
		len = (unsigned)rand_r(&seed) % (sizeof(body) - RING_LINE);
		cr_assert_eq(put(corr, body, len), RING_OK);
		cr_assert_eq(get(&got, seen, &len), RING_OK);
		cr_assert_eq(got, corr++);
		cr_assert_eq(get(&got, seen, &len), RING_EMPTY);
	}
}

Test(shm_ring, they_come_in_order_through_many_laps)
{
	unsigned char body[4096];
	uint64_t written = 0, read = 0;
	unsigned seed = 3;
	uint32_t len[1 << 14];

	begin(0xff);
	while (read < LAPS * LINES) {
		unsigned n = (unsigned)rand_r(&seed) % 20;

		while (n-- > 0) {
			len[written % (1 << 14)] =
				(unsigned)rand_r(&seed) % sizeof(body);
			pattern(body, written, len[written % (1 << 14)]);
			if (put(written, body, len[written % (1 << 14)]) !=
				RING_OK)
				break;
			written++;
		}
		for (n = (unsigned)rand_r(&seed) % 20; n > 0 && read < written;
			n--, read++)
			expect(read, len[read % (1 << 14)]);
	}
}

Test(shm_ring, a_full_one_says_so_and_has_room_again_once_it_was_read)
{
	unsigned char body[32] = { 0 };
	uint64_t n = 0, corr;
	uint32_t len;

	begin(0);
	while (put(n, body, sizeof(body)) == RING_OK)
		n++;
	cr_expect_eq(n, LINES - 1); /* one line's word is always zeroed */
	cr_expect_eq(put(n, body, sizeof(body)), RING_FULL);
	for (uint64_t i = 0; i < QUARTER - 1; i++)
		cr_assert_eq(get(&corr, body, &len), RING_OK);
	cr_expect_eq(put(n, body, sizeof(body)), RING_FULL);
	cr_assert_eq(get(&corr, body, &len), RING_OK);
	cr_expect_eq(put(n, body, sizeof(body)), RING_OK);
}

Test(shm_ring, a_writer_who_asks_is_told_at_once)
{
	unsigned char body[32] = { 0 };
	uint64_t corr;
	uint32_t len;

	begin(0);
	while (put(0, body, sizeof(body)) == RING_OK)
		continue;
	cr_expect_not(ring_consume(&in, 1));
	atomic_store(&theirs->want, 1);
	cr_expect(ring_consume(&in, 1));
	cr_expect_eq(put(1, body, sizeof(body)), RING_OK);
	cr_assert_eq(get(&corr, body, &len), RING_OK);
}

/* The largest record, from each place of the ring, once it was read. */
Test(shm_ring, where_all_was_read_there_is_room_for_any_record)
{
	static unsigned char body[QUARTER * RING_LINE];
	uint64_t corr;
	uint32_t len;

	for (unsigned at = 0; at < LINES; at++) {
		begin(0);
		for (unsigned i = 0; i < at; i++) {
			cr_assert_eq(put(i, body, 8), RING_OK);
			cr_assert_eq(get(&corr, body, &len), RING_OK);
		}
		cr_assert_eq(put(at, body, (QUARTER - 1) * RING_LINE), RING_OK,
			"at %u", at);
		cr_assert_eq(get(&corr, body, &len), RING_OK);
		cr_assert_eq(corr, at);
	}
}

Test(shm_ring, what_is_written_and_not_published_is_not_there)
{
	enum ring_state state;
	struct ring_record *r;
	struct ring_word w;
	uint32_t lines;

	begin(0xff);
	r = ring_reserve(&out, 3, &state);
	memset(r->body, 0xff, 3 * RING_LINE - RING_HEAD);
	r->record.corr = 1;
	cr_expect_eq(ring_peek(&in, &w, &lines), RING_EMPTY);
}

/* --- who lies ------------------------------------------------------------- */

Test(shm_ring, a_reader_who_cannot_be_there_has_broken_it)
{
	unsigned char body[32] = { 0 };
	uint64_t n = 0;
	static const int64_t off[] = { -1, 1, INT64_MAX, INT64_MIN };

	begin(0);
	while (put(n, body, sizeof(body)) == RING_OK)
		n++;
	atomic_store(&ours->tail, 100);
	cr_assert_eq(put(n++, body, sizeof(body)), RING_OK);
	while (put(n, body, sizeof(body)) == RING_OK)
		n++;
	atomic_store(&ours->tail, 99); /* it was further */
	cr_expect_eq(put(n, body, sizeof(body)), RING_BROKEN);
	for (size_t i = 1; i < 4; i++) {
		atomic_store(&ours->tail, n + (uint64_t)off[i]);
		cr_expect_eq(put(n, body, sizeof(body)), RING_BROKEN);
	}
}

Test(shm_ring, no_word_makes_the_reader_go_beyond_the_end)
{
	unsigned seed = 11;
	struct ring_word w;
	uint32_t lines;

	begin(0);
	for (int i = 0; i < 1000000; i++) {
		uint64_t word = (uint64_t)rand_r(&seed) << 32 |
			(i % 2 == 0 ? ring_sequence(in.at) :
				      (uint32_t)rand_r(&seed));
		enum ring_state state;

		atomic_store(&ring_line(theirs, in.at, LINES)->word, word);
		state = ring_peek(&in, &w, &lines);
		if (state != RING_OK) {
			cr_assert_eq(state == RING_EMPTY, (uint32_t)word == 0);
			in.at = (unsigned)rand_r(&seed) % LINES;
			continue;
		}
		cr_assert_eq((uint32_t)word, ring_sequence(in.at));
		cr_assert(lines >= 1 && in.at % LINES + lines <= LINES);
		cr_assert(w.type >= RING_SKIP && w.type <= RING_BULK);
		if (w.type != RING_SKIP)
			cr_assert_leq(RING_HEAD + w.len +
					w.loans * sizeof(struct ring_ref),
				lines * RING_LINE);
		in.at += lines;
	}
}

Test(shm_ring, a_sequence_is_never_zero_and_differs_from_lap_to_lap)
{
	for (uint64_t at = 0; at < 1 << 20; at++) {
		cr_assert_neq(ring_sequence(at), 0);
		cr_assert_neq(ring_sequence(at), ring_sequence(at + LINES));
	}
	cr_expect_neq(ring_sequence(UINT32_MAX), 0);
	cr_expect_neq(ring_sequence(UINT64_MAX), 0);
}
