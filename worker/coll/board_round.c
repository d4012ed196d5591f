/* SPDX-License-Identifier: Apache-2.0 */
/* board_round.c - showing, and waiting for what others show; see board_inner.h. */
#include <sched.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/coll/board_inner.h"
#include "worker/rpc/lead.h"

#define TURN_NS (100 * NS_PER_US) /* for each member of a processor */
#define SLICE_NS \
	(500 * NS_PER_US) /* no yield among those who wait takes as long */

LIST_HEAD(board_list, board);

/* Who waits has given up looking for himself: whoever reads looks for him. */
static struct {
	pthread_mutex_t lock;
	struct board_list waiting;
	_Atomic uint32_t count;
	bool added; /* to what is read */
} boards = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- seeing ------------------------------------------------------------------------ */

static bool
is_shown(const struct board *b, uint32_t place)
{
	return atomic_load_explicit(&round_line(b, place)->number,
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

void
round_read(void)
{
	pthread_mutex_lock(&boards.lock);
	if (!boards.added)
		lead_add((struct lead_source){ progress, NULL });
	boards.added = true;
	pthread_mutex_unlock(&boards.lock);
}

void
round_unread(void)
{
	pthread_mutex_lock(&boards.lock);
	boards.added = false;
	pthread_mutex_unlock(&boards.lock);
}

/* --- showing ------------------------------------------------------------------------ */

static struct line *
own_line(const struct board *b)
{
	return round_line(b, (uint32_t)b->team->me);
}

struct line *
round_begin(struct board *b)
{
	if (++b->number == 0) /* that is "nothing yet"; the other line's turn */
		b->number = 2;
	return own_line(b);
}

void
round_show(struct board *b)
{
	struct line *line = own_line(b);

	line->check = b->op->check;
	atomic_store_explicit(&line->number, b->number, memory_order_release);
	for (uint32_t i = 0; i < b->team->count; i++) {
		struct seen *s = &b->seen[i];

		if (s->bell.bell != NULL)
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
	int64_t end = 0, before = 0, now;

	do {
		sched_yield();
		next = look_from(b, next);
		if (next == b->team->count)
			return true;
		now = clock_now();
		if (end == 0)
			end = now + TURN_NS * (b->team->count / local_cpus());
		else if (now - before > SLICE_NS)
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

/* Whoever calls something else is told, too. */
static enum xr_status
compare(const struct board *b, struct xr_error *err)
{
	for (uint32_t i = 0; i < b->team->count; i++)
		if ((int64_t)i != b->team->me &&
			round_line(b, i)->check != b->op->check)
			return op_differs(b->op, i, err);
	return XR_OK;
}

enum xr_status
round_end(struct board *b, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	round_show(b);
	if (!look_a_while(b))
		status = wait_for_all(b, err);
	return status == XR_OK ? compare(b, err) : status;
}
