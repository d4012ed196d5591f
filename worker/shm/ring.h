/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - records from one process to another, through memory that both map.
 *
 * A ring has one writer and one reader, each a process that lets one thread at a
 * time do it. It is lines of 64 bytes; a record is some of them behind each
 * other, and its first word is what publishes it:
 *
 *	word := sequence | bytes << 32 | loans << 48 | type << 56
 *
 * The sequence comes from the record's place and is never 0. Before the writer
 * publishes a record it zeroes the word behind it, so what is left of an earlier
 * lap is never taken for one. So a death at any instruction leaves a record that
 * is whole, or none. A record never wraps: one of type SKIP fills up to the end.
 *
 * The reader tells how far it is when it has read a quarter of the ring, or when
 * the writer wants room: so there is room for any record once all were read. A writer believes a number that
 * can be, and calls the ring broken otherwise; so does a reader with a record
 * that reaches beyond its end, or has the wrong sequence. What a peer writes can
 * damage what is read, and nothing else.
 *
 * Loans are words by which the writer lets the reader use memory of its own: it
 * sets one, tells of it in a record, and has the memory back when it is 0 again,
 * which the reader makes it by one store. No death leaves half of that, either.
 */
#ifndef WORKER_SHM_RING_H
#define WORKER_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <xrun/transport.h>

#define RING_LINE      64 /* bytes */
#define RING_ALIGN     128
#define RING_LINES     1024 /* 64 KiB: a few pages, and much less than a cache */
#define RING_LINES_MAX 65536
#define RING_LOANS     512
#define RING_INLINE    488 /* bytes of a body that begins in the first line */
#define RING_HEAD      24  /* bytes of a record before its body */

/* What the writer and the reader share; written by who is named. */
struct ring_head {
	/* The writer, before anybody sees it. */
	uint32_t lines; /* a power of two */
	uint32_t writer, reader;
	uint32_t writer_plane, reader_plane;
	uint32_t id; /* of the writer's worker */
	uint64_t incarnation;

	/* The reader. */
	_Alignas(128) _Atomic uint64_t tail; /* lines read */
	_Alignas(128) _Atomic uint32_t done; /* steps with each loan ended */
	_Atomic uint32_t gone;               /* nothing is read any more */
	_Atomic uint32_t asks;               /* steps with each LOAN_WINDOW */

	/* The writer. */
	_Alignas(128) _Atomic uint32_t want; /* room */
	_Atomic uint32_t closed;             /* nothing follows */
	_Atomic uint64_t window;             /* offset of window.h's; 0: none */

	_Alignas(128) _Atomic uint64_t loan[RING_LOANS];
	_Alignas(128) unsigned char data[];
};

enum ring_type {
	RING_SKIP = 1,
	RING_BODY,   /* the body is in the record */
	RING_HANDLE, /* it is in the arena: struct ring_ref */
	RING_BULK,   /* it is in the writer's own memory: struct ring_bulk */
};

/* The first line of a record. A body of up to RING_INLINE bytes begins here, a
 * longer one in the next line. */
struct ring_record {
	_Atomic uint64_t word;
	struct xr_record record;
	unsigned char body[];
};

_Static_assert(offsetof(struct ring_record, body) == RING_HEAD, "40 in a line");
_Static_assert(sizeof(struct ring_head) % 128 == 0, "lines are aligned");

/* Memory that is lent. */
struct ring_ref {
	uint64_t offset;
	uint64_t len;
	uint32_t loan;
	uint32_t of; /* 1 and the loan by which it came, if it goes back */
};

/* Where the body of a BULK lies; then its parts, struct xr_part. */
struct ring_bulk {
	uint64_t len;
	uint32_t loan;
	uint32_t count;
};

/* --- the writer's side ---------------------------------------------------- */

struct ring_out {
	struct ring_head *head;
	uint64_t at;   /* lines written */
	uint64_t tail; /* lines read, as it was seen last */
	uint64_t zero; /* a line behind what is written whose word is 0 */
	uint32_t lines;
};

/* What is published: bytes of a BODY, count of loans behind it. */
struct ring_word {
	uint32_t len;
	uint32_t loans;
	enum ring_type type;
};

/* ring_bytes() - what a ring of so many lines takes. */
static inline size_t
ring_bytes(uint32_t lines)
{
	return sizeof(struct ring_head) + (size_t)lines * RING_LINE;
}

/* ring_make() - an empty ring in memory of ring_bytes(); constant fields are the
 * caller's to fill in. */
void ring_make(struct ring_head *head, uint32_t lines);

/* ring_write() - begin at a ring that was just made. */
void ring_write(struct ring_out *out, struct ring_head *head, uint32_t lines);

static inline uint32_t
ring_sequence(uint64_t at)
{
	return (uint32_t)at << 1 | 1;
}

/* ring_lines() - that a record takes. */
static inline uint32_t
ring_lines(struct ring_word w)
{
	uint32_t bytes = ((w.len + 7) & ~7u) +
		w.loans * (uint32_t)sizeof(struct ring_ref);

	bytes += w.len <= RING_INLINE ? RING_HEAD : RING_LINE;
	return (bytes + RING_LINE - 1) / RING_LINE;
}

enum ring_state {
	RING_OK,
	RING_FULL,
	RING_EMPTY,
	RING_BROKEN, /* by the other side */
};

/* ring_look() - is there room for so many lines, by what the reader says now? */
enum ring_state ring_look(struct ring_out *out, uint32_t lines);

/* ring_wrap() - SKIP to the end, if the record does not fit before it. */
enum ring_state ring_wrap(struct ring_out *out, uint32_t lines);

static inline struct ring_record *
ring_line(struct ring_head *head, uint64_t at, uint32_t lines)
{
	return (void *)(head->data + (at & (lines - 1)) * RING_LINE);
}

/*
 * ring_reserve() - room for a record of so many lines, at most a quarter of the
 * ring; NULL with @state: FULL or BROKEN.
 */
static inline struct ring_record *
ring_reserve(struct ring_out *out, uint32_t lines, enum ring_state *state)
{
	uint64_t at = out->at & (out->lines - 1);

	if (__builtin_expect(at + lines > out->lines, false)) {
		*state = ring_wrap(out, lines);
		if (*state != RING_OK)
			return NULL;
	}
	/* One more, whose word is zeroed. */
	if (__builtin_expect(out->at + lines + 1 > out->tail + out->lines,
		    false)) {
		*state = ring_look(out, lines + 1);
		if (*state != RING_OK)
			return NULL;
	}
	return ring_line(out->head, out->at, out->lines);
}

/* ring_publish() - the record that was reserved last is whole. */
static inline void
ring_publish(struct ring_out *out, struct ring_word w, uint32_t lines)
{
	struct ring_record *r = ring_line(out->head, out->at, out->lines);
	struct ring_record *next =
		ring_line(out->head, out->at + lines, out->lines);

	if (out->zero != out->at + lines)
		atomic_store_explicit(&next->word, 0, memory_order_relaxed);
	atomic_store_explicit(&r->word,
		ring_sequence(out->at) | (uint64_t)w.len << 32 |
			(uint64_t)w.loans << 48 | (uint64_t)w.type << 56,
		memory_order_release);
	out->at += lines;
}

/*
 * ring_ahead() - after ring_publish(), when nobody waits for us: what the next
 * record of one line needs.
 *
 * The reader looks at the next line all the time. If we had to get hold of another
 * one between our first store to it and the last, it would take the line from us
 * in between, and each would have it twice.
 */
static inline void
ring_ahead(struct ring_out *out)
{
	uint64_t next = out->at + 1;

	if (next >= out->tail + out->lines)
		return;
	atomic_store_explicit(&ring_line(out->head, next, out->lines)->word, 0,
		memory_order_relaxed);
	out->zero = next;
}

/* ring_fill() - @len bytes of a body into the record that was reserved, its first
 * line last, for the same reason. */
static inline void
ring_fill(struct ring_record *r, const void *body, size_t len)
{
	size_t first = RING_LINE - RING_HEAD;

	if (len > first) {
		memcpy(r->body + first, (const char *)body + first,
			len - first);
		len = first;
	}
	memcpy(r->body, body, len);
}

/* --- the reader's side ---------------------------------------------------- */

struct ring_in {
	struct ring_head *head;
	uint64_t at;   /* lines read */
	uint64_t told; /* of them, the writer knows */
	uint32_t lines;
};

/* ring_read() - begin at a ring; @lines was checked by the caller. */
void ring_read(struct ring_in *in, struct ring_head *head, uint32_t lines);

/* ring_parse() - takes the word of the record at in->at apart; BROKEN: it is
 * none, or reaches too far. */
enum ring_state ring_parse(const struct ring_in *in, uint64_t word,
	struct ring_word *w, uint32_t *lines);

/*
 * ring_peek() - the next record; its word was looked at once.
 *
 * Returns  RING_OK; RING_EMPTY; RING_BROKEN
 */
static inline enum ring_state
ring_peek(const struct ring_in *in, struct ring_word *w, uint32_t *lines)
{
	uint64_t word =
		atomic_load_explicit(&ring_line(in->head, in->at, in->lines)
					     ->word,
			memory_order_acquire);

	if (__builtin_expect((uint32_t)word == 0, true))
		return RING_EMPTY;
	return ring_parse(in, word, w, lines);
}

/* ring_tell() - the writer may have the room. True: it asked for it. */
bool ring_tell(struct ring_in *in);

/* ring_consume() - the record, of so many lines, is not needed any more. True: the
 * writer waits for room, which there is now. */
static inline bool
ring_consume(struct ring_in *in, uint32_t lines)
{
	in->at += lines;
	if (in->at - in->told >= in->lines / 4 ||
		atomic_load_explicit(&in->head->want, memory_order_relaxed) !=
			0)
		return ring_tell(in);
	return false;
}

#endif /* WORKER_SHM_RING_H */
