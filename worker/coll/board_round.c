/* SPDX-License-Identifier: Apache-2.0 */
/* board_round.c - showing, and waiting for what others show; see board_inner.h. */
#include <sched.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/coll/board_inner.h"
#include "worker/rpc/lead.h"

#define FIRST   1 /* number: members come to that round as they were started */
#define TURN_NS (100 * NS_PER_US) /* for each member of a processor */

LIST_HEAD(board_list, board);

/* Who waits has given up looking for himself: whoever reads looks for him. */
static struct {
	pthread_mutex_t lock;
	struct board_list waiting;
	_Atomic uint32_t count;
	bool added; /* to what is read */
} boards = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- seeing ------------------------------------------------------------------------ */

/* Whose pages are read: from @first to before @end, but for this member's. */
struct span {
	uint32_t first, end;
};

static struct span
all_of(const struct board *b)
{
	return (struct span){ 0, b->team->count };
}

/* Of what a root has, that root's, which itself reads none. */
static struct span
waited_for(const struct board *b)
{
	const struct op *op = b->op;

	if (!plan_is_roots(op->plan))
		return all_of(b);
	return (struct span){ op->root, op->root + (op->root != b->team->me) };
}

static bool
is_all(const struct board *b, struct span s)
{
	return s.end - s.first == b->team->count;
}

static bool
is_shown(const struct board *b, uint32_t place)
{
	return atomic_load_explicit(&round_line(b, place)->number,
		       memory_order_acquire) == b->number;
}

/* Has @place done what is waited for? A root gives, and a member is given to. */
static bool
is_done(const struct board *b, uint32_t place)
{
	if (!b->lends)
		return is_shown(b, place);
	if (b->op->root != b->team->me)
		place = (uint32_t)b->team->me;
	return atomic_load_explicit(&round_line(b, place)->taken,
		       memory_order_acquire) == b->number;
}

/* Gives the first that has not done it yet, or the end. */
static uint32_t
look(const struct board *b, struct span s)
{
	while (s.first < s.end &&
		((int64_t)s.first == b->team->me || is_done(b, s.first)))
		s.first++;
	return s.first;
}

/* Those that are new; the group's lock is held. */
static uint32_t
note_shown(struct board *b)
{
	struct op *op = b->op;
	uint32_t found = 0;

	for (uint32_t i = 0; i < b->team->count; i++) {
		struct part *p = op_part(op, 0, i);

		if (p->here || !is_done(b, i))
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

/* 0 is "nothing yet"; the other line's turn. */
static uint32_t
number_after(uint32_t number)
{
	return number == UINT32_MAX ? 2 : number + 1;
}

/* The call that member @place shows in round @number. It stays until this member shows the
 * next one. */
static void
board_text_of(const struct board *b, uint32_t place, uint32_t number,
	char text[CONFLICT_CALL])
{
	const struct shown *s = round_shown(b, place, number);
	const struct plan *plan = plan_find(s->code);
	const struct xr_coll_op call = { .rank = s->rank,
		.op = s->op,
		.dtype = s->dtype,
		.count = s->count };

	if (plan != NULL)
		conflict_text(plan, &call, false, text, CONFLICT_CALL);
	else
		snprintf(text, CONFLICT_CALL, "%.*s", (int)sizeof(s->text),
			s->text);
}

static void
board_call_text(const struct board *b, uint32_t place, char text[CONFLICT_CALL])
{
	board_text_of(b, place, b->number, text);
}

bool
board_is_next(const struct board *b, uint32_t place, char text[CONFLICT_CALL])
{
	uint32_t next;

	if (b == NULL || atomic_load(&b->turn) != TURN_FREE)
		return false;
	next = number_after(b->number);
	if (atomic_load_explicit(&round_line_of(b, place, next)->number,
		    memory_order_acquire) != next)
		return false;
	board_text_of(b, place, next, text);
	return true;
}

void
board_judge(const struct board *b, uint32_t from, uint32_t seq,
	struct conflict *c)
{
	char own[CONFLICT_CALL];

	board_call_text(b, (uint32_t)b->team->me, own);
	conflict_judge_call(b->team, own, from, seq, c);
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

/* If it sleeps; behind a fence. */
static void
ring(struct seen *s)
{
	if (s->bell.bell != NULL)
		bell_ring_fenced(s->bell.awaits, s->bell.bell, &s->rang, true);
}

/* Does anybody wait who now has all that he waits for? Of a root, and of the last to
 * show; who shows before that ends nobody's wait. */
static bool
is_awaited(const struct board *b)
{
	bool leads = !is_all(b, waited_for(b)) && b->op->root == b->team->me;

	return leads || look(b, all_of(b)) == b->team->count;
}

/* The whole call, also if this is a round of one piece. */
static void
show_call(const struct board *b)
{
	struct shown *s = round_shown(b, (uint32_t)b->team->me, b->number);

	s->code = b->plan->code;
	s->count = b->call->count;
	s->rank = (uint32_t)b->call->rank;
	s->op = b->call->op;
	s->dtype = b->call->dtype;
	if (__builtin_expect((s->code & PLAN_TOLD) != 0, false))
		snprintf(s->text, sizeof(s->text), "%s", b->plan->name);
}

static void
show(struct board *b)
{
	struct line *line = own_line(b);

	/* It shows that already, if two rounds ago the call was the same. */
	if (line->check != b->op->check)
		show_call(b);
	line->check = b->op->check;
	atomic_store_explicit(&line->number, b->number, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (!is_awaited(b))
		return;
	for (uint32_t i = 0; i < b->team->count; i++)
		ring(&b->seen[i]);
}

/* Where there are more members than processors each has to run once: whoever waits lets
 * others run, and is back soon, as they wait, too. */
static bool
look_in_turn(struct board *b, struct span s)
{
	int64_t end = 0, before = 0, now;

	do {
		sched_yield();
		s.first = look(b, s);
		if (s.first == s.end)
			return true;
		now = clock_now();
		if (end == 0)
			end = now + TURN_NS * (b->team->count / local_cpus());
		else if (now - before > OP_SLICE_NS)
			return false;
		before = now;
	} while (now < end);
	return false;
}

/* For about as long as a tight loop of other waits. True: all of @s show theirs. */
static bool
look_a_while(struct board *b, struct span s)
{
	struct wait wait;

	s.first = look(b, s);
	if (s.first == s.end)
		return true;
	if (b->team->count > local_cpus())
		return b->number != FIRST && look_in_turn(b, s);
	wait_begin(&wait, local_env(), b->seen[s.first].bell.cpu, NULL);
	while (s.first < s.end && wait_turn(&wait) == WAIT_AGAIN)
		s.first = look(b, s);
	wait_end(&wait);
	return s.first == s.end;
}

/* Adds the operation to the group's list and the board to the list of those that wait, so
 * that a loss or a timeout is reported. Lines of all members count, also if the group has
 * failed since.
 *
 * @c: receives a member that shows nothing and has sent a message: it calls something else */
static enum xr_status
enlist(struct board *b, struct span s, struct conflict *c, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct op *op = b->op;
	uint32_t seq;

	op->is_over = false;
	op->stages = 1;
	op->seq = UINT32_MAX; /* no message's */
	op->missing[0] = 0;
	if (b->deadline == 0)
		b->deadline = team_deadline(b->team, &op->call);
	op->deadline = b->deadline;
	for (uint32_t i = 0; i < b->team->count; i++) {
		op_part(op, 0, i)->here =
			i < s.first || i >= s.end || (int64_t)i == b->team->me;
		op->missing[0] += !op_part(op, 0, i)->here;
	}
	pthread_mutex_lock(&boards.lock);
	pthread_mutex_lock(&b->team->lock);
	note_shown(b);
	if (op->missing[0] > 0)
		status = team_failed(b->team, err);
	for (uint32_t i = 0; i < b->team->count && status == XR_OK; i++)
		if (!op_part(op, 0, i)->here && !is_shown(b, i) &&
			op_is_ahead(b->team, i, &seq))
			board_judge(b, i, seq, c);
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
wait_for(struct board *b, struct span s, struct xr_error *err)
{
	struct conflict c = { .status = XR_OK };
	enum xr_status status = enlist(b, s, &c, err);

	if (status != XR_OK)
		return status;
	conflict_settle(b->team, &c);
	status = op_await(b->op, err);
	pthread_mutex_lock(&boards.lock);
	LIST_REMOVE(b, list);
	atomic_fetch_sub(&boards.count, 1);
	pthread_mutex_unlock(&boards.lock);
	return status;
}

/* Gives the first of @s that calls something else than this member, or the end. */
static uint32_t
who_differs(const struct board *b, struct span s)
{
	uint32_t check = own_line(b)->check;

	while (s.first < s.end &&
		((int64_t)s.first == b->team->me ||
			round_line(b, s.first)->check == check))
		s.first++;
	return s.first;
}

__attribute__((noinline, cold)) static enum xr_status
board_fail_differs(struct board *b, uint32_t place, struct xr_error *err)
{
	char own[CONFLICT_CALL], other[CONFLICT_CALL];

	board_call_text(b, (uint32_t)b->team->me, own);
	board_call_text(b, place, other);
	return conflict_fail(b->team, own, place, other, err);
}

/* Returns XR_OK if all of @s call what this member calls. */
static enum xr_status
check_calls(struct board *b, struct span s, struct xr_error *err)
{
	uint32_t place = who_differs(b, s);

	return place == s.end ? XR_OK : board_fail_differs(b, place, err);
}

static enum xr_status
wait_a_while(struct board *b, struct span s, struct xr_error *err)
{
	return look_a_while(b, s) ? XR_OK : wait_for(b, s, err);
}

static enum xr_status
meet_last(struct board *b, struct xr_error *err)
{
	struct span all = all_of(b);
	enum xr_status status = wait_a_while(b, all, err);

	return status == XR_OK ? check_calls(b, all, err) : status;
}

enum xr_status
round_begin(struct board *b, struct xr_error *err)
{
	enum xr_status status = b->met ? XR_OK : meet_last(b, err);

	if (status != XR_OK)
		return status;
	b->number = number_after(b->number);
	b->met = false;
	return XR_OK;
}

/* All of @s have done what is waited for, and call the same. */
static enum xr_status
await(struct board *b, struct span s, struct xr_error *err)
{
	enum xr_status status = wait_a_while(b, s, err);

	if (status != XR_OK)
		return status;
	b->met = is_all(b, s);
	return check_calls(b, s, err);
}

enum xr_status
round_end(struct board *b, struct xr_error *err)
{
	show(b);
	return await(b, waited_for(b), err);
}

enum xr_status
round_meet(struct board *b, struct xr_error *err)
{
	show(b);
	return await(b, all_of(b), err);
}

bool
round_claim(struct board *b, uint32_t place)
{
	return atomic_exchange(&round_line(b, place)->claimed, b->number) !=
		b->number;
}

void
round_taken(struct board *b, uint32_t place)
{
	bool mine = (int64_t)place == b->team->me;

	atomic_store_explicit(&round_line(b, place)->taken, b->number,
		memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	ring(&b->seen[mine ? b->op->root : place]);
}

enum xr_status
round_lent(struct board *b, struct xr_error *err)
{
	bool gives = b->op->root == b->team->me;
	enum xr_status status;

	b->lends = true;
	status = wait_a_while(b, gives ? all_of(b) : waited_for(b), err);
	b->lends = false;
	return status;
}

/* Does all of it show the next, and call the same? */
static bool
is_next(const struct board *b, struct span s)
{
	uint32_t next = number_after(b->number);
	const struct line *line;

	for (uint32_t i = s.first; i < s.end; i++) {
		line = round_line_of(b, i, next);
		if ((int64_t)i != b->team->me &&
			(atomic_load_explicit(&line->number,
				 memory_order_acquire) != next ||
				line->check != b->op->check))
			return false;
	}
	return true;
}

/* Who has lost a member that has shown its part needs it no more. */
enum xr_status
round_may_begin(struct board *b, struct xr_error *err)
{
	struct span s = waited_for(b);
	enum xr_status status;

	if (__builtin_expect(atomic_load_explicit(&b->team->failed,
				     memory_order_relaxed) == XR_OK,
		    true))
		return XR_OK;
	pthread_mutex_lock(&b->team->lock);
	status = team_failed(b->team, err);
	pthread_mutex_unlock(&b->team->lock);
	if (status == XR_E_PEER_LOST && !b->told && s.first < s.end &&
		is_next(b, s))
		status = XR_OK;
	return status;
}
