/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - see lane.h. */
#include <stdlib.h>
#include <string.h>

#include "worker/queue/lane.h"

/* What was found from an end on. */
struct found {
	struct cell *cell;
	uint64_t ticket, lap, word; /* the cell's */
	uint64_t passed;            /* the first that was passed over */
	bool is_first;              /* none was: the hint may be moved */
};

static void
advance(_Atomic uint64_t *hint, uint64_t ticket)
{
	if (atomic_load_explicit(hint, memory_order_relaxed) == ticket)
		atomic_compare_exchange_strong(hint, &ticket, ticket + 1);
}

/* --- in ------------------------------------------------------------------------------- */

/* A free cell; false: the oldest item is not gone yet. */
static bool
find_free(const struct hall *h, const struct lane *lane, struct found *f,
	struct lane_met *met)
{
	f->ticket =
		atomic_load_explicit(&lane->ends->tail, memory_order_acquire);
	/* Nobody is further behind than that, but where somebody writes nonsense. */
	for (uint32_t n = 0; n <= 2 * h->plan.items; n++, f->ticket++) {
		f->cell = lane_cell(h, lane, f->ticket, &f->lap);
		f->word = atomic_load(&f->cell->state);
		if (cell_behind(f->word, f->lap) > 0) {
			if (cell_phase(f->word) == CELL_TAKEN ||
				cell_phase(f->word) == CELL_CLAIMED)
				met->who = cell_who(f->word);
			return false;
		}
		if (cell_behind(f->word, f->lap) == 0 &&
			cell_phase(f->word) == CELL_FREE)
			return true;
		advance(&lane->ends->tail, f->ticket);
	}
	return false;
}

static void
fill(struct cell *cell, const struct letter *letter)
{
	uint8_t *at = cell->body;

	atomic_store_explicit(&cell->len, letter->len, memory_order_relaxed);
	atomic_store_explicit(&cell->owner, letter->crate.owner,
		memory_order_relaxed);
	atomic_store_explicit(&cell->first, letter->crate.first,
		memory_order_relaxed);
	cell->kind = letter->kind;
	if (letter->crate.owner != 0)
		return;
	for (size_t i = 0; i < letter->count; i++) {
		if (letter->parts[i].len > 0)
			memcpy(at, letter->parts[i].data, letter->parts[i].len);
		at += letter->parts[i].len;
	}
}

/* Whoever sees that it is closed, and no claim, misses nothing: who claims looks after
 * that whether it is closed. */
static enum xr_status
put_claimed(struct hall *h, struct lane *lane, uint32_t who,
	struct letter *letter, struct lane_met *met)
{
	struct found f;

	do
		if (!find_free(h, lane, &f, met))
			return XR_E_AGAIN;
	while (!atomic_compare_exchange_strong(&f.cell->state, &f.word,
		cell_word(CELL_CLAIMED, who, f.lap)));
	advance(&lane->ends->tail, f.ticket);
	if (atomic_load(&h->head->end) != HALL_OPEN) {
		atomic_store(&f.cell->state,
			cell_word(CELL_FREE, 0, f.lap + 1));
		return XR_E_CLOSED;
	}
	fill(f.cell, letter);
	letter->ticket = f.ticket;
	if (!letter->is_offer)
		atomic_store_explicit(&f.cell->state,
			cell_word(CELL_FULL, 0, f.lap), memory_order_release);
	return XR_OK;
}

static enum xr_status
put_alone(struct hall *h, struct lane *lane, struct letter *letter,
	struct lane_met *met)
{
	struct found f;

	if (!find_free(h, lane, &f, met))
		return XR_E_AGAIN;
	fill(f.cell, letter);
	letter->ticket = f.ticket;
	atomic_store_explicit(&f.cell->state, cell_word(CELL_FULL, 0, f.lap),
		memory_order_release);
	atomic_store_explicit(&lane->ends->tail, f.ticket + 1,
		memory_order_relaxed);
	return XR_OK;
}

/* A look at the cell first: where there is none, nothing is copied. */
static enum xr_status
pack(struct hall *h, struct lane *lane, uint32_t who, struct letter *letter,
	struct lane_met *met)
{
	const struct crate_load load = { letter->parts, letter->count,
		letter->len };
	enum xr_status status;
	struct found f;

	if (!find_free(h, lane, &f, met))
		return XR_E_AGAIN;
	status = crate_pack(h, lane, who, &load, &letter->crate);
	met->is_memory = status == XR_E_AGAIN;
	if (status != XR_OK)
		letter->crate.owner = 0;
	else
		letter->lane = lane;
	return status;
}

void
lane_unpack(struct hall *h, struct letter *letter)
{
	if (letter->crate.owner != 0)
		crate_free(h, letter->lane, &letter->crate);
	letter->crate.owner = 0;
}

enum xr_status
lane_put(struct hall *h, struct lane *lane, uint32_t who, struct letter *letter,
	struct lane_met *met)
{
	enum xr_status status = XR_OK;

	*met = (struct lane_met){ 0 };
	if (atomic_load_explicit(&h->head->end, memory_order_relaxed) !=
		HALL_OPEN)
		return XR_E_CLOSED;
	if (letter->crate.owner != 0 && letter->lane != lane)
		lane_unpack(h, letter);
	if (letter->len > CELL_BODY && letter->crate.owner == 0)
		status = pack(h, lane, who, letter, met);
	if (status != XR_OK)
		return status;
	letter->lane = lane;
	return h->plan.kind == XR_QUEUE_P2P && !letter->is_offer ?
		put_alone(h, lane, letter, met) :
		put_claimed(h, lane, who, letter, met);
}

bool
lane_withdraw(struct hall *h, struct letter *letter)
{
	struct lane *lane = letter->lane;
	uint64_t lap, full;
	struct cell *cell = lane_cell(h, lane, letter->ticket, &lap);

	full = cell_word(CELL_FULL, 0, lap);
	if (atomic_load(&lane->ends->shut) == 0 ||
		!atomic_compare_exchange_strong(&cell->state, &full,
			cell_word(CELL_FREE, 0, lap + 1)))
		return false;
	lane_unpack(h, letter);
	return true;
}

/* --- out ------------------------------------------------------------------------------ */

bool
lane_shut(struct lane *lane)
{
	return atomic_load(&lane->ends->shut) == 0 &&
		atomic_exchange(&lane->ends->shut, 1) == 0;
}

/* Back to a cell that is full again, from behind it. */
static void
look_back(struct lane *lane, const struct found *f)
{
	uint64_t head = atomic_load(&lane->ends->head);

	while (head > f->ticket &&
		atomic_load(&f->cell->state) ==
			cell_word(CELL_FULL, 0, f->lap) &&
		!atomic_compare_exchange_weak(&lane->ends->head, &head,
			f->ticket))
		;
}

/* What was taken may be given back meanwhile: either who does sees the head behind it, or
 * we see that it is full. Who gives back what we have seen taken said before that it
 * may. */
static void
advance_head(const struct hall *h, struct lane *lane, const struct found *f)
{
	advance(&lane->ends->head, f->ticket);
	if (h->plan.redeliver ||
		atomic_load_explicit(&h->head->returns, memory_order_relaxed) !=
			0)
		look_back(lane, f);
}

/* Has one been filled that was passed over? What was found behind it may be of the same
 * writer, and come after it. If none has, what was found is older than what those will
 * have. */
static bool
was_filled(const struct hall *h, const struct lane *lane, uint64_t from,
	uint64_t to)
{
	for (uint64_t ticket = from; ticket < to; ticket++) {
		uint64_t lap;
		const struct cell *cell = lane_cell(h, lane, ticket, &lap);

		if (atomic_load(&cell->state) == cell_word(CELL_FULL, 0, lap))
			return true;
	}
	return false;
}

enum look {
	LOOK_FULL,
	LOOK_END, /* nothing was put here, or behind it, yet */
	LOOK_COMING,
	LOOK_GONE,
};

static enum look
look_at(const struct hall *h, const struct lane *lane, struct found *f)
{
	int64_t behind;

	f->cell = lane_cell(h, lane, f->ticket, &f->lap);
	f->word = atomic_load(&f->cell->state);
	behind = cell_behind(f->word, f->lap);
	if (behind != 0)
		return behind > 0 ? LOOK_END : LOOK_GONE;
	switch (cell_phase(f->word)) {
	case CELL_FREE:
		return LOOK_END;
	case CELL_CLAIMED:
		return LOOK_COMING;
	case CELL_FULL:
		return LOOK_FULL;
	case CELL_TAKEN:
		break;
	}
	return LOOK_GONE;
}

/* From the head on. */
static enum look
walk(const struct hall *h, struct lane *lane, struct found *f,
	struct lane_met *met)
{
	enum look look = LOOK_END;
	uint32_t passed = 0;

	for (uint32_t n = 0; n <= 2 * h->plan.items && passed < h->plan.items;
		n++, f->ticket++) {
		look = look_at(h, lane, f);
		if (look == LOOK_FULL || look == LOOK_END)
			return look;
		if (look == LOOK_COMING && f->is_first) {
			f->is_first = false;
			f->passed = f->ticket;
		}
		if (look == LOOK_COMING) {
			met->who = cell_who(f->word);
			met->is_coming = true;
		}
		if (f->is_first)
			advance_head(h, lane, f);
		else
			passed++;
	}
	return LOOK_END;
}

/* A full cell; false: there is none. */
static bool
find_full(const struct hall *h, struct lane *lane, struct found *f,
	struct lane_met *met)
{
	enum look look;

	do {
		f->is_first = true;
		f->ticket = atomic_load_explicit(&lane->ends->head,
			memory_order_acquire);
		look = walk(h, lane, f, met);
	} while (look == LOOK_FULL && !f->is_first &&
		was_filled(h, lane, f->passed, f->ticket));
	return look == LOOK_FULL;
}

static struct crate
crate_of(const struct cell *cell)
{
	return (struct crate){
		.owner = atomic_load_explicit(&cell->owner,
			memory_order_relaxed),
		.first = atomic_load_explicit(&cell->first,
			memory_order_relaxed),
		.len = atomic_load_explicit(&cell->len, memory_order_relaxed),
	};
}

/* How long the item in @cell is; of one that cannot be, 0, and it is not got. */
static uint64_t
length_of(const struct hall *h, const struct cell *cell)
{
	const struct crate crate = crate_of(cell);
	bool fits = crate.owner != 0 ? crate_is_whole(h, &crate) :
				       crate.len <= CELL_BODY;

	return fits ? crate.len : 0;
}

/* Room for an item of @len bytes. */
static enum xr_status
make_room(struct taker *t, uint64_t len)
{
	void *more;

	t->buf->len = len;
	if (t->buf->data != NULL)
		return len <= t->buf->room ? XR_OK : XR_E_RANGE;
	if (t->over != 0 && len >= t->over)
		return XR_E_RANGE;
	if (t->made != NULL && len <= t->made_room)
		return XR_OK;
	more = realloc(t->made, len > 0 ? len : 1);
	if (more == NULL)
		return XR_E_NOMEM;
	t->made = more;
	t->made_room = len;
	return XR_OK;
}

/* Of a cell that nobody else reads. */
static enum xr_status
copy_out(struct hall *h, const struct lane *lane, const struct cell *cell,
	struct taker *t)
{
	const struct crate crate = crate_of(cell);
	void *out = t->buf->data != NULL ? t->buf->data : t->made;
	enum xr_status status = XR_OK;

	t->kind = (enum cell_kind)cell->kind;
	if (crate.len != t->buf->len)
		return XR_E_PROTO;
	if (crate.owner != 0)
		status = crate_unpack(h, lane, &crate, out);
	else if (crate.len > 0)
		memcpy(out, cell->body, crate.len);
	if (status == XR_OK && t->before != NULL)
		t->before(t);
	return status;
}

/* The memory first: when the cell is free nobody knows of it any more. And before that
 * nobody may think that it can be got again. */
static void
let_go(struct hall *h, struct lane *lane, struct cell *cell, uint64_t lap)
{
	const struct crate crate = crate_of(cell);

	if (h->keeps)
		atomic_store(&cell->state,
			cell_word(CELL_CLAIMED, atomic_load(&h->me), lap));
	if (crate.owner != 0)
		crate_free(h, lane, &crate);
	atomic_store_explicit(&cell->state, cell_word(CELL_FREE, 0, lap + 1),
		memory_order_release);
}

void
lane_release(struct hall *h, struct lane *lane, uint64_t ticket)
{
	uint64_t lap;
	struct cell *cell = lane_cell(h, lane, ticket, &lap);

	let_go(h, lane, cell, lap);
}

void
lane_return(struct hall *h, struct lane *lane, uint64_t ticket)
{
	struct found f = { .ticket = ticket };

	f.cell = lane_cell(h, lane, ticket, &f.lap);
	atomic_store(&f.cell->state, cell_word(CELL_FULL, 0, f.lap));
	look_back(lane, &f);
}

/* What was got is ours, until it is done; there is room to note it. */
static enum xr_status
reserve_hand(struct hall *h)
{
	size_t room = h->hand_room == 0 ? 16 : h->hand_room * 2;
	struct hall_hand *more;

	if (h->hand_count < h->hand_room)
		return XR_OK;
	more = reallocarray(h->hand, room, sizeof(*more));
	if (more == NULL)
		return XR_E_NOMEM;
	h->hand = more;
	h->hand_room = room;
	return XR_OK;
}

static enum xr_status
get_claimed(struct hall *h, struct lane *lane, struct taker *t,
	struct lane_met *met)
{
	enum xr_status status;
	struct found f;

	for (;;) {
		if (!find_full(h, lane, &f, met))
			return XR_E_AGAIN;
		status = make_room(t, length_of(h, f.cell));
		if (atomic_load(&f.cell->state) != f.word)
			continue; /* that was the length of another */
		if (status != XR_OK)
			return status;
		if (atomic_compare_exchange_strong(&f.cell->state, &f.word,
			    cell_word(CELL_TAKEN, t->who, f.lap)))
			break;
	}
	if (f.is_first)
		advance_head(h, lane, &f);
	status = copy_out(h, lane, f.cell, t);
	if (h->keeps && status == XR_OK) {
		t->hand = (struct hall_hand){ lane, f.ticket };
		h->hand[h->hand_count++] = t->hand;
	} else {
		let_go(h, lane, f.cell, f.lap);
	}
	return status;
}

/* What is said to be done is noted, by one thread at a time. */
static enum xr_status
get_kept(struct hall *h, struct lane *lane, struct taker *t,
	struct lane_met *met)
{
	enum xr_status status;
	struct found f;

	if (!find_full(h, lane, &f, met))
		return XR_E_AGAIN;
	pthread_mutex_lock(&h->lock);
	status = reserve_hand(h);
	if (status == XR_OK)
		status = get_claimed(h, lane, t, met);
	pthread_mutex_unlock(&h->lock);
	return status;
}

/* Not where the writer may withdraw it: lane_shut(). */
static bool
is_had(const struct lane *lane, struct found *f, uint32_t who)
{
	return atomic_load_explicit(&lane->ends->shut, memory_order_relaxed) ==
		0 ||
		atomic_compare_exchange_strong(&f->cell->state, &f->word,
			cell_word(CELL_TAKEN, who, f->lap));
}

/* Taken first, where there is memory: what is freed must not be got once more, though who
 * reads dies meanwhile. */
static enum xr_status
get_alone(struct hall *h, struct lane *lane, struct taker *t,
	struct lane_met *met)
{
	enum xr_status status;
	struct found f;

	do {
		if (!find_full(h, lane, &f, met))
			return XR_E_AGAIN;
		status = make_room(t, length_of(h, f.cell));
		if (status != XR_OK)
			return status;
	} while (!is_had(lane, &f, t->who));
	/* Who is killed before it has all leaves it to the next one, where it is not taken. */
	status = copy_out(h, lane, f.cell, t);
	if (atomic_load_explicit(&f.cell->owner, memory_order_relaxed) != 0)
		atomic_store(&f.cell->state,
			cell_word(CELL_TAKEN, t->who, f.lap));
	let_go(h, lane, f.cell, f.lap);
	atomic_store_explicit(&lane->ends->head, f.ticket + 1,
		memory_order_relaxed);
	return status;
}

enum xr_status
lane_get(struct hall *h, struct lane *lane, struct taker *t,
	struct lane_met *met)
{
	*met = (struct lane_met){ 0 };
	if (h->plan.kind == XR_QUEUE_P2P)
		return get_alone(h, lane, t, met);
	return h->keeps ? get_kept(h, lane, t, met) :
			  get_claimed(h, lane, t, met);
}

/* --- asking --------------------------------------------------------------------------- */

bool
lane_has(const struct hall *h, const struct lane *lane, uint64_t ticket)
{
	uint64_t lap;
	const struct cell *cell = lane_cell(h, lane, ticket, &lap);
	uint64_t word = atomic_load(&cell->state);

	return cell_behind(word, lap) == 0 && cell_phase(word) != CELL_FREE;
}

size_t
lane_count(const struct hall *h, const struct lane *lane)
{
	uint64_t head = atomic_load(&lane->ends->head);
	uint64_t tail = atomic_load(&lane->ends->tail);

	if (tail <= head)
		return 0;
	return tail - head < h->plan.items ? tail - head : h->plan.items;
}

bool
lane_is_empty(const struct hall *h, struct lane *lane)
{
	struct lane_met met;
	struct found f;

	return !find_full(h, lane, &f, &met);
}

/* The memory of what a writer was about to put is its own, of what was about to be
 * released nobody's; so is that of what a reader had, unless others are to have it. */
bool
lane_void(struct hall *h, struct lane *lane, uint32_t index, uint32_t who)
{
	struct found f = { .cell = &lane->cell[index] };
	uint64_t owner;
	bool is_again;

	f.word = atomic_load(&f.cell->state);
	f.lap = f.word & LAP_MASK;
	owner = atomic_load(&f.cell->owner);
	if (cell_who(f.word) != who || atomic_load(&f.cell->state) != f.word)
		return false;
	f.ticket = f.lap * h->plan.items + index;
	is_again = h->plan.redeliver && cell_phase(f.word) == CELL_TAKEN;
	if (owner != 0 && !is_again)
		crate_purge(h, lane, owner);
	if (!atomic_compare_exchange_strong(&f.cell->state, &f.word,
		    is_again ? cell_word(CELL_FULL, 0, f.lap) :
			       cell_word(CELL_FREE, 0, f.lap + 1)))
		return false;
	if (is_again)
		look_back(lane, &f);
	return true;
}

bool
lane_names(const struct hall *h, const struct lane *lane, uint64_t owner)
{
	for (uint32_t i = 0; i < h->plan.items; i++) {
		enum cell_phase phase =
			cell_phase(atomic_load(&lane->cell[i].state));

		if (phase != CELL_FREE &&
			atomic_load(&lane->cell[i].owner) == owner)
			return true;
	}
	return false;
}
