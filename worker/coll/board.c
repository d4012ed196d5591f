/* SPDX-License-Identifier: Apache-2.0 */
/* board.c - see board.h. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/coll/board.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/local.h"
#include "worker/rpc/peer.h"

#define LINE_DATA  112  /* bytes */
#define PAGE       4096 /* bytes: so many are handed over, and not copied */
#define BOARDS_MAX 64   /* of a process; 512 loans has a ring, RING_LOANS */
#define TURNS_NS   (300 * NS_PER_US)
#define SLICE_NS \
	(500 * NS_PER_US) /* no yield among those who wait takes as long */

struct line {
	_Alignas(64) _Atomic uint32_t
		number; /* of what is shown; 0: nothing yet */
	uint32_t check;
	uint64_t unused;
	uint8_t data[LINE_DATA];
};

struct page {
	struct line line[2];
	_Atomic uint64_t hello; /* the group's number: this is no copy */
	uint8_t unused[PAGE - 2 * sizeof(struct line) - sizeof(uint64_t)];
};

_Static_assert(sizeof(struct line) == 128, "what is fetched together");

/* What is too long for a line: a half for each of the two. */
struct window {
	uint8_t data[2][PLAN_WHOLE];
	_Atomic uint64_t hello; /* as a page's */
};

/* What is known of a member. */
struct seen {
	const struct page *page;
	const struct window *window;
	struct held *held[2]; /* what they lie in */
	struct local_bell bell;
	uint32_t rang; /* its nap that we have ended */
};

struct board {
	LIST_ENTRY(board) list; /* of those where somebody waits */
	struct xr_coll *team;   /* borrowed */
	pthread_mutex_t turn;   /* of who does something */
	int64_t deadline;       /* of all of it; 0: not worked out yet */
	bool counted;           /* among those that are open */
	uint32_t number;        /* of what was shown last */
	struct storage *wide;   /* a window */
	struct storage *own;    /* a page */
	struct op *op;          /* of who has the turn */
	struct seen seen[];     /* [count] */
};
LIST_HEAD(board_list, board);

/* Who waits has given up looking for himself: whoever reads looks for him. */
static struct {
	pthread_mutex_t lock;
	struct board_list waiting;
	_Atomic uint32_t count;
	_Atomic uint32_t open;
	bool added; /* to what is read */
} boards = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- seeing ------------------------------------------------------------------------ */

static const struct line *
line_of(const struct board *b, uint32_t place)
{
	return &b->seen[place].page->line[b->number & 1];
}

static bool
is_shown(const struct board *b, uint32_t place)
{
	return atomic_load_explicit(&line_of(b, place)->number,
		       memory_order_acquire) == b->number;
}

/* From @place on; gives the first that shows nothing yet. */
static uint32_t
look_from(const struct board *b, uint32_t place)
{
	while (place < b->team->count &&
		((int64_t)place == b->team->me || is_shown(b, place)))
		place++;
	return place;
}

/* Those that are new; the group's lock is held. */
static uint32_t
note_shown(struct board *b)
{
	struct op *op = b->op;
	uint32_t found = 0;

	for (uint32_t i = 0; i < b->team->count; i++) {
		struct part *p = op_part(op, 0, i);

		if (p->here || !is_shown(b, i))
			continue;
		p->here = true;
		op->missing[0]--;
		found++;
	}
	return found;
}

/* Does somebody wait? The same. */
static bool
is_listed(const struct board *b)
{
	const struct op *op;

	TAILQ_FOREACH(op, &b->team->ops, list)
	if (op == b->op)
		return true;
	return false;
}

uint32_t
board_look(struct board *b)
{
	uint32_t found = b != NULL && is_listed(b) ? note_shown(b) : 0;

	if (found > 0 && b->op->missing[0] == 0)
		op_stir(b->op);
	return found;
}

static uint32_t
progress(void *unused, uint32_t budget)
{
	struct board *b;
	uint32_t found = 0;

	(void)unused;
	(void)budget;
	if (atomic_load(&boards.count) == 0)
		return 0;
	pthread_mutex_lock(&boards.lock);
	LIST_FOREACH(b, &boards.waiting, list)
	{
		pthread_mutex_lock(&b->team->lock);
		found += board_look(b);
		pthread_mutex_unlock(&b->team->lock);
	}
	pthread_mutex_unlock(&boards.lock);
	return found;
}

bool
board_lacks(const struct board *b, uint32_t place)
{
	return b != NULL && is_listed(b) && !is_shown(b, place);
}

const struct op *
board_op(const struct board *b)
{
	return b->op;
}

/* --- showing ------------------------------------------------------------------------ */

/* Short enough for a window; who scatters shows what is for all. */
static bool
is_shown_whole(const struct op *op)
{
	return plan_is_whole(op) && plan_line(op) <= PLAN_WHOLE;
}

/* Where what does not fit into @line is. */
static void *
room_of(struct board *b, struct line *line)
{
	struct window *w = b->wide->data;

	return plan_line(b->op) <= LINE_DATA ? line->data :
					       w->data[b->number & 1];
}

static void
show(struct board *b)
{
	struct page *own = b->own->data;
	struct line *line = &own->line[++b->number & 1];

	if (b->number == 0) { /* that is "nothing yet"; the other line's turn */
		b->number = 2;
		line = &own->line[0];
	}
	line->check = b->op->check;
	if (is_shown_whole(b->op))
		plan_show(b->op, room_of(b, line));
	atomic_store_explicit(&line->number, b->number, memory_order_release);
	for (uint32_t i = 0; i < b->team->count; i++) {
		struct seen *s = &b->seen[i];

		if ((int64_t)i != b->team->me)
			bell_ring_if(s->bell.awaits, s->bell.bell, &s->rang,
				true);
	}
}

/* Where there are more members than processors each has to run once: whoever waits lets
 * others run, and is back soon, as they wait, too. One that computes meanwhile keeps
 * the processor for a slice: then there are better ways to wait. */
static bool
look_in_turn(struct board *b, uint32_t next)
{
	int64_t end = clock_now() + TURNS_NS, before = end - TURNS_NS, now;

	do {
		sched_yield();
		next = look_from(b, next);
		if (next == b->team->count)
			return true;
		now = clock_now();
		if (now - before > SLICE_NS)
			return false;
		before = now;
	} while (now < end);
	return false;
}

/* For about as long as a tight loop of other waits. True: all show theirs. */
static bool
look_a_while(struct board *b)
{
	uint32_t next = look_from(b, 0);
	struct wait wait;

	if (next == b->team->count)
		return true;
	if (b->team->count > local_cpus())
		return look_in_turn(b, next);
	wait_begin(&wait, local_env(), b->seen[next].bell.cpu, NULL);
	while (wait_turn(&wait) == WAIT_AGAIN) {
		next = look_from(b, next);
		if (next == b->team->count)
			break;
	}
	wait_end(&wait);
	return next == b->team->count;
}

/* Into the group's list, and the other: who is lost, or late, is told of. Lines of all
 * count, also where the group has failed since.
 *
 * @ahead: receives who calls something else: it has sent messages, and shows nothing */
static enum xr_status
enlist(struct board *b, uint32_t *ahead, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct op *op = b->op;

	op->is_over = false;
	op->stages = 1;
	op->seq = UINT32_MAX; /* no message's */
	op->missing[0] = b->team->count - 1;
	if (b->deadline == 0)
		b->deadline = team_deadline(b->team, &op->call);
	op->deadline = b->deadline;
	for (uint32_t i = 0; i < b->team->count; i++)
		op_part(op, 0, i)->here = (int64_t)i == b->team->me;
	pthread_mutex_lock(&boards.lock);
	pthread_mutex_lock(&b->team->lock);
	note_shown(b);
	if (op->missing[0] > 0)
		status = team_failed(b->team, err);
	for (uint32_t i = 0; i < b->team->count && status == XR_OK; i++)
		if (!op_part(op, 0, i)->here && op_is_ahead(b->team, i))
			*ahead = i;
	if (status == XR_OK) {
		TAILQ_INSERT_TAIL(&b->team->ops, op, list);
		LIST_INSERT_HEAD(&boards.waiting, b, list);
		atomic_fetch_add(&boards.count, 1);
	}
	pthread_mutex_unlock(&b->team->lock);
	pthread_mutex_unlock(&boards.lock);
	return status;
}

static enum xr_status
wait_for_all(struct board *b, struct xr_error *err)
{
	uint32_t ahead = UINT32_MAX;
	enum xr_status status = enlist(b, &ahead, err);

	if (status != XR_OK)
		return status;
	if (ahead != UINT32_MAX)
		op_differs(b->op, ahead, NULL);
	status = op_await(b->op, err);
	pthread_mutex_lock(&boards.lock);
	LIST_REMOVE(b, list);
	atomic_fetch_sub(&boards.count, 1);
	pthread_mutex_unlock(&boards.lock);
	return status;
}

static enum xr_status
work(struct board *b, struct xr_error *err)
{
	const struct line *line;

	for (uint32_t i = 0; i < b->team->count; i++) {
		line = line_of(b, i);
		if ((int64_t)i != b->team->me && line->check != b->op->check)
			return op_differs(b->op, i, err);
		plan_see(b->op, i,
			plan_line(b->op) <= LINE_DATA ?
				line->data :
				b->seen[i].window->data[b->number & 1]);
	}
	return b->op->plan->work(b->op, 0);
}

/* What has failed is not begun: its members would wait for nobody. */
static enum xr_status
may_begin(struct xr_coll *team, struct xr_error *err)
{
	enum xr_status status;

	if (__builtin_expect(atomic_load_explicit(&team->failed,
				     memory_order_relaxed) == XR_OK,
		    true))
		return XR_OK;
	pthread_mutex_lock(&team->lock);
	status = team_failed(team, err);
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* What is set, in one go. */
static enum xr_status
run_whole(struct board *b, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	show(b);
	if (!look_a_while(b))
		status = wait_for_all(b, err);
	return status == XR_OK ? work(b, err) : status;
}

/* Of two members each reads all of the other's: a window after the other, which stays in
 * the caches between them, is faster than to share the work and hand over the halves. */
static bool
is_cut(const struct board *b, const struct plan *plan)
{
	return plan == &plan_bcast ||
		(b->team->count == 2 &&
			(plan->reduces || plan == &plan_allgather));
}

/* Of @call, @count elements from @at on. */
static void
cut(const struct xr_coll_op *call, size_t at, size_t count,
	struct xr_coll_op *piece, void *list[2])
{
	size_t offset = at * xr_dtype_size(call->dtype);

	*piece = *call;
	piece->data = (char *)call->data + offset;
	piece->count = count;
	if (call->list == NULL)
		return;
	piece->list = list;
	for (int i = 0; i < 2; i++)
		list[i] = (char *)call->list[i] + offset;
}

/* All of them say what the whole is, and which piece. */
static enum xr_status
run_cut(struct board *b, const struct plan *plan, const struct xr_coll_op *call,
	struct xr_error *err)
{
	size_t most = plan_whole(b->team) / xr_dtype_size(call->dtype), left;
	uint32_t check = b->op->check;
	enum xr_status status = XR_OK;
	struct xr_coll_op piece;
	void *list[2];

	for (size_t at = 0; at < call->count && status == XR_OK; at += most) {
		left = call->count - at;
		cut(call, at, left < most ? left : most, &piece, list);
		op_set(b->op, plan, &piece);
		b->op->check = check + (uint32_t)(at / most);
		status = run_whole(b, err);
	}
	return status;
}

/* Another thread may have it for as long as others are waited for. */
static void
take_turn(struct board *b)
{
	if (pthread_mutex_trylock(&b->turn) == 0)
		return;
	crew_wait_begin();
	pthread_mutex_lock(&b->turn);
	crew_wait_end();
}

enum xr_status
board_run(struct xr_coll *team, const struct plan *plan,
	const struct xr_coll_op *call, struct xr_error *err)
{
	struct board *b = team->board;
	enum xr_status status;

	take_turn(b);
	status = may_begin(team, err);
	if (status == XR_OK) {
		b->deadline = 0;
		op_set(b->op, plan, call);
		if (is_shown_whole(b->op)) {
			status = run_whole(b, err);
		} else if (is_cut(b, plan)) {
			status = run_cut(b, plan, call, err);
		} else {
			show(b);
			status = op_run(team, plan, call, err);
		}
	}
	pthread_mutex_unlock(&b->turn);
	return status;
}

/* --- its life ------------------------------------------------------------------------- */

static uint32_t
one_stage(const struct op *op)
{
	(void)op;
	return 1;
}

static void
lend_page(struct op *op)
{
	op->made = op->team->opening->own;
	storage_ref(op->made);
}

static void
lend_window(struct op *op)
{
	op->made = op->team->opening->wide;
	storage_ref(op->made);
}

static struct xr_part
give_made(const struct op *op, uint32_t stage, uint32_t to)
{
	(void)stage;
	(void)to;
	return (struct xr_part){ op->made->data, op->made->bytes };
}

static size_t
want_made(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)stage;
	(void)from;
	return op->made->bytes;
}

/* What came of @i, or is our own, and stays. */
static const void *
keep_part(struct op *op, uint32_t i, struct held **held)
{
	struct part *p = op_part(op, 0, i);

	*held = p->held;
	p->held = NULL;
	return (int64_t)i == op->team->me ? op->made->data : p->data;
}

static enum xr_status
take_pages(struct op *op, uint32_t stage)
{
	struct board *b = op->team->opening;

	(void)stage;
	for (uint32_t i = 0; i < op->team->count; i++)
		b->seen[i].page = keep_part(op, i, &b->seen[i].held[0]);
	return XR_OK;
}

static enum xr_status
take_windows(struct op *op, uint32_t stage)
{
	struct board *b = op->team->opening;

	(void)stage;
	for (uint32_t i = 0; i < op->team->count; i++)
		b->seen[i].window = keep_part(op, i, &b->seen[i].held[1]);
	return XR_OK;
}

static const struct plan plan_pages = { "new", 20, false, false, one_stage,
	give_made, want_made, take_pages, lend_page };
static const struct plan plan_windows = { "new", 21, false, false, one_stage,
	give_made, want_made, take_windows, lend_window };

static struct board *
board_new(struct xr_coll *team)
{
	struct board *b =
		calloc(1, sizeof(*b) + team->count * sizeof(b->seen[0]));

	if (b == NULL)
		return NULL;
	b->team = team;
	pthread_mutex_init(&b->turn, NULL);
	b->own = storage_new(PAGE);
	b->wide = storage_new(sizeof(struct window));
	b->op = op_new(team);
	if (b->op != NULL) /* it is the board's, which is the group's */
		team_unref(team);
	if (b->own == NULL || b->wide == NULL || b->op == NULL) {
		board_free(b);
		return NULL;
	}
	memset(b->own->data, 0, PAGE);
	return b;
}

void
board_free(struct board *b)
{
	if (b == NULL)
		return;
	for (uint32_t i = 0; i < b->team->count; i++)
		for (int k = 0; k < 2; k++)
			held_unref(b->seen[i].held[k]);
	storage_unref(b->own);
	storage_unref(b->wide);
	free(b->op); /* what came of others were their lines */
	if (b->counted)
		atomic_fetch_sub(&boards.open, 1);
	pthread_mutex_destroy(&b->turn);
	free(b);
}

static uint64_t
hello_of(const _Atomic uint64_t *hello)
{
	return atomic_load(hello);
}

/* Whether the pages that came are those which the others write to, and they can be
 * rung. */
static bool
pages_are_good(struct board *b)
{
	for (uint32_t i = 0; i < b->team->count; i++)
		if ((int64_t)i != b->team->me &&
			(hello_of(&b->seen[i].page->hello) != b->team->id ||
				!local_bell_of(b->team->peer[i],
					&b->seen[i].bell)))
			return false;
	return local_env() != NULL;
}

/* So with the windows, and there are not too many: each takes a loan of those that a ring
 * has, and calls need some, too. */
static bool
windows_are_good(struct board *b)
{
	for (uint32_t i = 0; i < b->team->count; i++)
		if (hello_of(&b->seen[i].window->hello) != b->team->id)
			return false;
	return atomic_load(&boards.open) < BOARDS_MAX;
}

static void
have_it_read(void)
{
	pthread_mutex_lock(&boards.lock);
	if (!boards.added)
		lead_add((struct lead_source){ progress, NULL });
	boards.added = true;
	pthread_mutex_unlock(&boards.lock);
}

/* Hand over what @plan does, and see that it is no copy: all of them come to the same
 * @is_good. */
static enum xr_status
exchange(struct board *b, const struct plan *plan, _Atomic uint64_t *hello,
	uint8_t *is_good, struct xr_error *err)
{
	struct xr_coll_op op = { .size = sizeof(op), .dtype = XR_DT_U8 };
	enum xr_status status = op_run(b->team, plan, &op, err);

	atomic_store(hello, b->team->id);
	if (status == XR_OK)
		status = op_run(b->team, &plan_barrier, &op, err);
	if (status != XR_OK)
		return status;
	*is_good =
		plan == &plan_pages ? pages_are_good(b) : windows_are_good(b);
	op.data = is_good;
	op.count = 1;
	op.op = XR_MIN;
	return op_run(b->team, &plan_allreduce, &op, err);
}

static enum xr_status
make(struct board *b, uint8_t *is_good, struct xr_error *err)
{
	struct page *page = b->own->data;
	struct window *window = b->wide->data;
	enum xr_status status;

	atomic_store(&window->hello, 0);
	status = exchange(b, &plan_pages, &page->hello, is_good, err);
	if (status == XR_OK && *is_good)
		status = exchange(b, &plan_windows, &window->hello, is_good,
			err);
	return status;
}

enum xr_status
board_open(struct xr_coll *team, struct xr_error *err)
{
	enum xr_status status;
	uint8_t is_good = 0;
	struct board *b;

	if (team->count == 1)
		return XR_OK;
	b = board_new(team);
	if (b == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	team->opening = b;
	status = make(b, &is_good, err);
	team->opening = NULL;
	if (status != XR_OK || !is_good) {
		board_free(b);
		return status;
	}
	have_it_read();
	b->counted = true;
	atomic_fetch_add(&boards.open, 1);
	pthread_mutex_lock(&team->lock);
	team->board = b;
	pthread_mutex_unlock(&team->lock);
	return XR_OK;
}

void
board_forget(void)
{
	pthread_mutex_lock(&boards.lock);
	boards.added = false;
	pthread_mutex_unlock(&boards.lock);
}
