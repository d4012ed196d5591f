/* SPDX-License-Identifier: Apache-2.0 */
/* send.c - send() of the carrier: which way a message takes; see link.h. */
#include <stdlib.h>
#include <string.h>

#include "worker/shm/link.h"
#include "worker/shm/mark.h"
#include "worker/shm/own.h"
#include "worker/shm/shm.h"

static uint64_t
total(const struct xr_message *m)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < m->count; i++)
		if (__builtin_add_overflow(len, m->parts[i].len, &len))
			return UINT64_MAX;
	return len;
}

static void
copy_parts(unsigned char *to, const struct xr_message *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->parts[i].len == 0)
			continue;
		memcpy(to, m->parts[i].data, m->parts[i].len);
		to += m->parts[i].len;
	}
}

/* --- a record ------------------------------------------------------------- */

static enum xr_status
lost(struct xr_link *link)
{
	atomic_store_explicit(&link->state, LINK_BROKEN, memory_order_relaxed);
	return XR_E_PEER_LOST;
}

/* There is no room: the reader is asked for it, and looked at once more, since it
 * may have made it just before. */
static struct ring_record *
reserve_slowly(struct xr_link *link, struct out *out, uint32_t lines,
	enum xr_status *status)
{
	struct ring_head *head = out->ring.head;
	enum ring_state state;
	struct ring_record *r;

	atomic_store_explicit(&head->want, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	r = ring_reserve(&out->ring, lines, &state);
	if (r != NULL) {
		atomic_store_explicit(&head->want, 0, memory_order_relaxed);
		return r;
	}
	*status = state == RING_FULL ? XR_E_AGAIN : lost(link);
	bell_ring(link->bell, &out->rang, true);
	return NULL;
}

static struct ring_record *
reserve(struct xr_link *link, struct out *out, uint32_t lines,
	enum xr_status *status)
{
	enum ring_state state;
	struct ring_record *r = ring_reserve(&out->ring, lines, &state);

	if (__builtin_expect(r == NULL, false))
		return reserve_slowly(link, out, lines, status);
	if (__builtin_expect(atomic_load_explicit(&out->ring.head->want,
				     memory_order_relaxed) != 0,
		    false))
		atomic_store_explicit(&out->ring.head->want, 0,
			memory_order_relaxed);
	return r;
}

static void
publish(struct xr_link *link, struct out *out, struct ring_word w,
	uint32_t lines, const struct xr_message *m)
{
	MARK(MARK_RECORD);
	ring_publish(&out->ring, w, lines);
	MARK(MARK_SENT);
	if (m->answer)
		bell_ring_if(link->awaits, link->bell, &out->rang, true);
	else if (!m->more)
		bell_ring(link->bell, &out->rang, true);
	ring_ahead(&out->ring);
}

/* --- loans ---------------------------------------------------------------- */

/* The rest is for what has no other way: whoever keeps what is lent must not keep
 * the writer from writing. */
#define LEND_MAX (RING_LOANS / 4)

/* The loan by which @hold came, for one that goes back; else 0. */
static bool
prepare(struct xr_link *link, const void *data, uint64_t len, struct loan *loan)
{
	struct shm *shm = link->carrier->shm;
	struct lender *lender;

	*loan = (struct loan){ .data = data, .len = len };
	if (arena_ref(&shm->arena, data, len))
		return true;
	lender = atomic_load_explicit(&link->lender, memory_order_acquire);
	if (lender == NULL || !arena_has(&shm->arena, data, len))
		return false;
	loan->hold = hold_find(lender, data, len);
	return loan->hold != NULL;
}

static void
forget(struct shm *shm, const struct loan *loan)
{
	if (loan->hold != NULL)
		hold_unref(loan->hold);
	else
		arena_unref(&shm->arena, loan->data);
}

bool
shm_can_lend(struct xr_link *link, const void *data, size_t len)
{
	struct loan loan;
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);

	if (out != NULL &&
		atomic_load_explicit(&out->loans.count, memory_order_relaxed) >
			LEND_MAX)
		return false;
	if (!prepare(link, data, len, &loan))
		return false;
	forget(link->carrier->shm, &loan);
	return true;
}

/* Lend what is prepared; @ref: what is told of it. XR_E_AGAIN: too much is out. */
static enum xr_status
lend(struct xr_link *link, struct out *out, struct loan *loan,
	struct ring_ref *ref)
{
	struct shm *shm = link->carrier->shm;
	int index = loans_take(&out->loans, loan,
		loan->has_token ? LOAN_LOUD : LOAN_QUIET);

	if (index == -1) {
		loans_all_loud(&out->loans);
		forget(shm, loan);
		return XR_E_AGAIN;
	}
	*ref = (struct ring_ref){
		.offset = (uint64_t)((const char *)loan->data - shm->map.base),
		.len = loan->len,
		.loan = (uint32_t)index,
		.of = loan->hold == NULL ? 0 : loan->hold->loan + 1,
	};
	return XR_OK;
}

static void
unlend(struct xr_link *link, struct out *out, const struct ring_ref *refs,
	uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct loan_end end = loans_back(&out->loans, refs[i].loan);

		forget(link->carrier->shm,
			&(struct loan){ .data = end.data, .hold = end.hold });
	}
}

/* All of a message's, or none. */
static enum xr_status
lend_all(struct xr_link *link, struct out *out, const struct xr_message *m,
	struct ring_ref *refs)
{
	enum xr_status status = XR_OK;
	struct loan loan;

	for (uint32_t i = 0; i < m->loan_count; i++) {
		status = prepare(link, m->loans[i].data, m->loans[i].len,
				 &loan) ?
			lend(link, out, &loan, &refs[i]) :
			XR_E_INVAL;
		if (status == XR_OK)
			continue;
		unlend(link, out, refs, i);
		return status;
	}
	return status;
}

/* --- the ways ------------------------------------------------------------- */

/* What a record says, beside the body of the message where that is elsewhere. */
struct letter {
	struct ring_word w;
	const void *body;      /* NULL: that of the message */
	struct ring_ref *refs; /* of loans */
};

static enum xr_status
put(struct xr_link *link, struct out *out, const struct xr_message *m,
	const struct letter *letter)
{
	uint32_t lines = ring_lines(letter->w), len = letter->w.len;
	enum xr_status status = XR_OK;
	struct ring_record *r = reserve(link, out, lines, &status);
	unsigned char *to;

	if (r == NULL)
		return status;
	r->record = m->record;
	to = len <= RING_INLINE ? r->body : (unsigned char *)r + RING_LINE;
	if (letter->body == NULL)
		copy_parts(to, m);
	else
		memcpy(to, letter->body, len);
	if (letter->w.loans > 0)
		memcpy(to + ((len + 7) & ~7u), letter->refs,
			letter->w.loans * sizeof(letter->refs[0]));
	publish(link, out, letter->w, lines, m);
	return XR_OK;
}

static enum xr_status
put_with_loans(struct xr_link *link, struct out *out,
	const struct xr_message *m, const struct letter *letter)
{
	struct ring_ref refs[XR_LOANS_MAX];
	struct letter with = *letter;
	enum xr_status status;

	if (m->loan_count == 0)
		return put(link, out, m, letter);
	if (m->loan_count > XR_LOANS_MAX)
		return XR_E_RANGE;
	with.w.loans = m->loan_count;
	with.refs = refs;
	status = lend_all(link, out, m, refs);
	if (status != XR_OK)
		return status;
	status = put(link, out, m, &with);
	if (status != XR_OK)
		unlend(link, out, refs, m->loan_count);
	return status;
}

/* The body stays where it is, in the arena. */
static enum xr_status
send_handle(struct xr_link *link, struct out *out, const struct xr_message *m,
	struct loan *loan)
{
	struct letter letter = { .w = { .type = RING_HANDLE } };
	struct ring_ref ref;
	enum xr_status status;

	status = lend(link, out, loan, &ref);
	if (status != XR_OK)
		return status;
	letter.w.len = sizeof(ref);
	letter.body = &ref;
	status = put_with_loans(link, out, m, &letter);
	if (status != XR_OK)
		unlend(link, out, &ref, 1);
	return status;
}

static struct xr_part *
parts_copy(const struct xr_message *m)
{
	struct xr_part *parts = malloc(m->count * sizeof(parts[0]));

	if (parts != NULL)
		memcpy(parts, m->parts, m->count * sizeof(parts[0]));
	return parts;
}

static enum xr_status
put_bulk(struct xr_link *link, struct out *out, const struct xr_message *m,
	const struct ring_bulk *bulk)
{
	struct letter letter = { .w = { .type = RING_BULK } };
	struct {
		struct ring_bulk bulk;
		struct xr_part parts[CMA_PARTS];
	} body = { .bulk = *bulk };

	memcpy(body.parts, m->parts, m->count * sizeof(m->parts[0]));
	letter.w.len =
		(uint32_t)(sizeof(body.bulk) + m->count * sizeof(m->parts[0]));
	letter.body = &body;
	return put_with_loans(link, out, m, &letter);
}

/* The body stays where it is, in our own memory, and the reader fetches it. */
static enum xr_status
send_bulk(struct xr_link *link, struct out *out, const struct xr_message *m,
	uint64_t len)
{
	struct ring_bulk bulk = { .len = len, .count = m->count };
	struct loan loan = {
		.len = len,
		.parts = parts_copy(m),
		.count = m->count,
		.token = m->token,
		.has_token = true,
	};
	enum xr_status status;
	int index;

	if (loan.parts == NULL)
		return XR_E_NOMEM;
	index = loans_take(&out->loans, &loan, LOAN_LOUD);
	if (index == -1) {
		loans_all_loud(&out->loans);
		free(loan.parts);
		return XR_E_AGAIN;
	}
	bulk.loan = (uint32_t)index;
	status = put_bulk(link, out, m, &bulk);
	if (status != XR_OK)
		loans_back(&out->loans, bulk.loan);
	return status;
}

/* So many parts that they are put together first, in a block that is lent. */
static enum xr_status
send_gathered(struct xr_link *link, struct out *out, const struct xr_message *m,
	uint64_t len)
{
	struct shm *shm = link->carrier->shm;
	struct loan loan = { .len = len };
	struct letter letter = { .w = { .type = RING_HANDLE } };
	struct ring_ref ref;
	enum xr_status status;
	void *data = arena_alloc(&shm->arena, len);

	if (data == NULL)
		return XR_E_NOMEM;
	copy_parts(data, m);
	loan.data = data;
	status = lend(link, out, &loan, &ref);
	if (status != XR_OK)
		return status;
	letter.w.len = sizeof(ref);
	letter.body = &ref;
	status = put_with_loans(link, out, m, &letter);
	if (status != XR_OK)
		unlend(link, out, &ref, 1);
	return status;
}

/* Can the body stay in the arena? It is aligned there, as the reader expects. */
static bool
is_handle(struct xr_link *link, const struct xr_message *m, uint64_t len,
	struct loan *loan)
{
	const void *data = m->parts[0].data;

	return m->lent && m->count == 1 && (uintptr_t)data % ARENA_ALIGN == 0 &&
		arena_has(&link->carrier->shm->arena, data, len) &&
		prepare(link, data, len, loan);
}

static enum xr_status
send_long(struct xr_link *link, struct out *out, const struct xr_message *m,
	bool *pending)
{
	struct letter letter = { .w = { .type = RING_BODY } };
	uint64_t len = total(m);
	struct loan loan;
	enum xr_status status;

	if (len > XR_MESSAGE_MAX)
		return XR_E_RANGE;
	if (is_handle(link, m, len, &loan))
		return send_handle(link, out, m, &loan);
	if (len <= LINK_EAGER) {
		letter.w.len = (uint32_t)len;
		return put_with_loans(link, out, m, &letter);
	}
	if (m->count <= CMA_PARTS)
		status = send_bulk(link, out, m, len);
	else
		return send_gathered(link, out, m, len);
	*pending = status == XR_OK;
	return status;
}

static enum xr_status
send_any(struct xr_link *link, struct out *out, const struct xr_message *m,
	bool *pending)
{
	struct letter letter = { .w = { .type = RING_BODY } };
	uint64_t len = total(m);

	if (len > LINK_HANDLE)
		return send_long(link, out, m, pending);
	letter.w.len = (uint32_t)len;
	return put_with_loans(link, out, m, &letter);
}

/* Nearly all: one part that fits into some lines. */
static enum xr_status
send_inline(struct xr_link *link, struct out *out, const struct xr_message *m)
{
	const struct ring_word w = {
		.len = (uint32_t)m->parts[0].len,
		.type = RING_BODY,
	};
	enum xr_status status = XR_OK;
	uint32_t lines = ring_lines(w);
	struct ring_record *r = reserve(link, out, lines, &status);

	if (__builtin_expect(r == NULL, false))
		return status;
	ring_fill(r, m->parts[0].data, m->parts[0].len);
	r->record = m->record;
	publish(link, out, w, lines, m);
	return XR_OK;
}

enum xr_status
link_send(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_relaxed);
	enum xr_status status;

	*pending = false;
	if (__builtin_expect(atomic_load_explicit(&link->state,
				     memory_order_relaxed) != LINK_OPEN,
		    false))
		return XR_E_PEER_LOST;
	if (__builtin_expect(out == NULL, false)) {
		status = out_open(link);
		if (status != XR_OK)
			return status;
		out = atomic_load_explicit(&link->out, memory_order_relaxed);
	}
	if (m->count == 1 && m->loan_count == 0 &&
		m->parts[0].len <= RING_INLINE)
		return send_inline(link, out, m);
	return send_any(link, out, m, pending);
}

bool
link_can_lend(struct xr_link *link, const struct xr_part *part)
{
	return shm_can_lend(link, part->data, part->len);
}

bool
link_unsend(struct xr_link *link, void *token)
{
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);

	return out != NULL && loans_void(&out->loans, token);
}
