/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see gang.h: seats, posting, finding and running, sweeping. */
#include "base/clock.h"
#include "base/status.h"
#include "worker/gang/rest.h"
#include "worker/shm/tick.h"

#define BATCH    32 /* tasks that one takes from the inbox, for all; see deque.c */
#define PATIENCE 1000 /* looks at an inbox that another one takes from */
#define TIMED    16   /* tasks from one look at the clock to the next, .. */
#define LONG_TICKS(g) \
	((int64_t)(g)->env.rate / 500) /* .. but of 2 us or more */

static __thread struct place here __attribute__((tls_model("initial-exec")));
static __thread bool is_watched __attribute__((tls_model("initial-exec")));

/* --- seats ---------------------------------------------------------------- */

struct seat *
seat_mine(const struct gang *g)
{
	return here.gang == g ? here.seat : NULL;
}

uint32_t
gang_seat(const struct gang *g)
{
	struct seat *seat = seat_mine(g);

	return seat != NULL ? seat->index : GANG_NOBODY;
}

/* A thread has ended in what it ran: others have its seats. */
static void
seats_left(void *unused)
{
	(void)unused;
	while (here.gang != NULL) {
		struct gang *g = here.gang;

		if (g->left != NULL)
			g->left(g->ctx, here.seat->index);
		seat_leave();
	}
	thread_has_left();
}

static pthread_key_t watched;

static void
make_key(void)
{
	XR_ASSERT(pthread_key_create(&watched, seats_left) == 0);
}

void
thread_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_key);
	is_watched = pthread_setspecific(watched, &is_watched) == 0;
}

static bool
try_seat(struct seat *seat)
{
	uint32_t no = 0;

	return atomic_load_explicit(&seat->taken, memory_order_relaxed) == 0 &&
		atomic_compare_exchange_strong(&seat->taken, &no, 1);
}

struct seat *
seat_take(struct gang *g, uint32_t wanted)
{
	struct seat *seat = NULL;

	for (uint32_t i = 0; i < g->seats && seat == NULL; i++) {
		uint32_t n = (wanted + i) % g->seats;

		if (try_seat(&g->seat[n]))
			seat = &g->seat[n];
	}
	if (seat == NULL)
		return NULL;
	if (__builtin_expect(!is_watched, false))
		thread_watch();
	seat->before = here;
	seat->counted = false;
	here = (struct place){ g, seat };
	seat->timed = seat->left = 1;
	seat->clock = 0;
	return seat;
}

void
seat_count(struct gang *g, struct seat *seat)
{
	atomic_fetch_add(&g->counts, REST_RUNS);
	seat->counted = true;
}

void
seat_leave(void)
{
	struct place from = here;

	here = from.seat->before;
	if (from.seat->counted)
		atomic_fetch_sub(&from.gang->counts, REST_RUNS);
	atomic_store(&from.seat->taken, 0);
	gang_share(from.gang, 1);
}

bool
seat_free(struct gang *g)
{
	for (uint32_t i = 0; i < g->seats; i++) {
		if (atomic_load(&g->seat[i].taken) == 0)
			return true;
	}
	return false;
}

/* --- running -------------------------------------------------------------- */

/* How long tasks take, as a moving average of 1/8. */
static void
learn(struct gang *g, struct seat *seat)
{
	int64_t old =
		atomic_load_explicit(&g->task_ticks, memory_order_relaxed);
	int64_t now = tick_now();
	int64_t each = (now - seat->clock) / seat->timed;

	if (each < 1)
		each = 1;
	seat->clock = now;
	seat->timed = seat->left = each > LONG_TICKS(g) ? 1 : TIMED;
	atomic_store_explicit(&g->task_ticks,
		old == 0 ? each : old + (each - old) / 8, memory_order_relaxed);
}

static void
count_run(struct seat *seat)
{
	atomic_store_explicit(&seat->runs,
		atomic_load_explicit(&seat->runs, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static void
run(struct gang *g, struct seat *seat, struct gang_task *task)
{
	if (__builtin_expect(gang_stops(g), false)) {
		task->drop(task);
		return;
	}
	if (seat->clock == 0)
		seat->clock = tick_now();
	count_run(seat);
	task->run(task, seat->index);
	if (--seat->left == 0)
		learn(g, seat);
}

/* --- finding -------------------------------------------------------------- */

bool
gang_pending(struct gang *g)
{
	if (!inbox_empty(&g->inbox) || loop_pending(g))
		return true;
	for (uint32_t i = 0; i < g->seats; i++) {
		if (!deque_empty(&g->seat[i].deque))
			return true;
	}
	return false;
}

void
gang_share(struct gang *g, uint32_t tasks)
{
	uint64_t counts = atomic_load(&g->counts);

	/* Who is about to sleep has looked, and may not have seen it. */
	bool is_to_look = (counts & REST_EVENT) != 0 ||
		((counts & REST_MOST) != 0 && rest_nobody_looks(counts));

	if (is_to_look && gang_pending(g))
		rest_event(g, tasks);
}

/* The first is ours, the others are for whoever is faster, in their order: the deque is
 * empty, and has room for so many. */
static struct gang_task *
take_batch(struct gang *g, struct seat *seat)
{
	struct gang_task *task[BATCH];
	uint32_t count = inbox_take(&g->inbox, task, BATCH);

	if (count == 0)
		return NULL;
	for (uint32_t i = count - 1; i > 0; i--)
		XR_ASSERT(deque_push(&seat->deque, task[i]));
	gang_share(g, count);
	if (inbox_empty(&g->inbox))
		atomic_store_explicit(&g->unanswered, 0, memory_order_relaxed);
	return task[0];
}

static uint32_t
random_next(struct seat *seat)
{
	seat->random ^= seat->random << 13;
	seat->random ^= seat->random >> 17;
	seat->random ^= seat->random << 5;
	return seat->random;
}

static struct gang_task *
steal(struct gang *g, struct seat *seat)
{
	uint32_t first = random_next(seat) % g->seats;
	struct gang_task *task = NULL;

	for (uint32_t i = 0; i < g->seats && task == NULL; i++)
		task = deque_steal(&g->seat[(first + i) % g->seats].deque);
	return task;
}

bool
gang_work(struct gang *g, struct seat *seat)
{
	struct gang_task *task = deque_pop(&seat->deque);

	if (task == NULL && loop_join(g, seat))
		return true;
	if (task == NULL)
		task = take_batch(g, seat);
	if (task == NULL) {
		task = steal(g, seat);
		if (task == NULL)
			return false;
		gang_share(g, 1);
	}
	run(g, seat, task);
	return true;
}

/* --- from outside --------------------------------------------------------- */

static bool
accepts(const struct gang *g, const struct seat *seat)
{
	return !atomic_load_explicit(seat != NULL ? &g->stopped : &g->closed,
		memory_order_acquire);
}

bool
gang_post(struct gang *g, struct gang_task *task)
{
	struct seat *seat = seat_mine(g);

	if (!accepts(g, seat))
		return false;
	if (seat == NULL || !deque_push(&seat->deque, task))
		inbox_put(&g->inbox, task, task);
	rest_event(g, 0);
	return true;
}

bool
gang_post_list(struct gang *g, struct gang_task *first, struct gang_task *last)
{
	if (!accepts(g, seat_mine(g)))
		return false;
	inbox_put(&g->inbox, first, last);
	rest_event(g, first == last ? 0 : BATCH);
	return true;
}

bool
gang_run(struct gang *g, struct gang_task *task)
{
	struct seat *seat;

	if (seat_mine(g) != NULL || !accepts(g, NULL) ||
		!inbox_empty(&g->inbox))
		return false;
	seat = seat_take(g, 0);
	if (seat == NULL)
		return false;
	seat_count(g, seat);
	count_run(seat);
	task->run(task, seat->index);
	seat_leave();
	return true;
}

/* --- sweeping ------------------------------------------------------------- */

struct broom {
	struct gang *gang;
	struct seat *seat; /* ours; NULL */
	bool (*is_stale)(const struct gang_task *task);
	struct gang_task *first, *last; /* for the inbox, linked */
};

/* False: it is to be kept. */
static bool
sweep_one(const struct broom *b, struct gang_task *task)
{
	if (!b->is_stale(task))
		return false;
	task->run(task, b->seat != NULL ? b->seat->index : GANG_NOBODY);
	return true;
}

static void
sweep_off(struct broom *b, struct gang_task *task)
{
	if (sweep_one(b, task))
		return;
	if (b->first == NULL)
		b->first = task;
	else
		atomic_store_explicit(&b->last->next, task,
			memory_order_relaxed);
	b->last = task;
}

/* Those that are kept come back in their order. */
static void
sweep_own(const struct broom *b, uint32_t most)
{
	struct deque *d = &b->seat->deque;
	struct gang_task *kept = NULL, *task, *next;

	for (; most > 0 && (task = deque_pop(d)) != NULL; most--) {
		if (sweep_one(b, task))
			continue;
		atomic_store_explicit(&task->next, kept, memory_order_relaxed);
		kept = task;
	}
	for (task = kept; task != NULL; task = next) {
		next = atomic_load_explicit(&task->next, memory_order_relaxed);
		if (!deque_push(d, task))
			inbox_put(&b->gang->inbox, task, task);
	}
}

/* Who sits there sleeps, maybe, for as long as nobody does this. */
static void
sweep_others(struct broom *b, uint32_t most)
{
	struct gang *g = b->gang;
	struct gang_task *task;

	for (uint32_t i = 0; i < g->seats; i++) {
		struct deque *d = &g->seat[i].deque;

		for (uint32_t n = 0; &g->seat[i] != b->seat && n < most; n++) {
			task = deque_steal(d);
			if (task != NULL)
				sweep_off(b, task);
			else if (deque_empty(d))
				break;
		}
	}
}

static void
sweep_inbox(struct broom *b, uint32_t most)
{
	struct inbox *in = &b->gang->inbox;
	struct gang_task *task[BATCH];
	uint32_t count;

	for (uint32_t tries = 0; most > 0 && tries < PATIENCE; tries++) {
		count = inbox_take(in, task, most < BATCH ? most : BATCH);
		for (uint32_t i = 0; i < count; i++)
			sweep_off(b, task[i]);
		most -= count;
		if (count > 0)
			tries = 0;
		else if (inbox_empty(in))
			break;
		else
			tick_pause(); /* somebody takes a few */
	}
}

void
gang_sweep(struct gang *g, uint32_t most,
	bool (*is_stale)(const struct gang_task *task))
{
	struct broom b = { g, seat_mine(g), is_stale, NULL, NULL };

	if (b.seat != NULL)
		sweep_own(&b, most);
	sweep_others(&b, most);
	sweep_inbox(&b, most);
	if (b.first != NULL)
		inbox_put(&g->inbox, b.first, b.last);
	gang_share(g, 1); /* nobody saw them meanwhile */
}
