/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poolplay.c - pools that are used in every way at once.
 *
 *   poolplay [--rounds N] [--seed N] [--one N] processes|threads|mates
 *
 * A round is a pool with one to three workers and one to twelve tasks, which one to three
 * threads use at random: calls, maps, iterators, with callbacks and without, waited for,
 * cancelled or forgotten, with functions that fail or end their worker; of threads, functions
 * do the same to their own pool. Mates are threads of a pool with operations of the program's. At the end, or in the middle, it is closed or terminated.
 * Each result is what it should be, each callback is called once, and all comes to an end:
 * a round that takes longer than a minute is a violation, and named. --one plays that round
 * alone.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#include "tests/fault/play.h"

#define PLAYERS   3
#define STEPS     60
#define STEPS_IN  8 /* of a function */
#define HELD      6
#define ITEMS_MAX 40
#define DEPTH     2
#define SOON      XR_SECONDS(30)

static struct xr_pool *pool;
static enum xr_pool_kind kind;
static bool nests; /* functions may call their pool */
static bool mates;
static atomic_bool ends;   /* somebody terminates it */
static atomic_bool closes; /* or closes it, in which functions may run on */
static _Atomic uint32_t asked, heard;    /* callbacks */
static _Atomic uint64_t results, killed; /* of all rounds */

/* --- who plays ------------------------------------------------------------------------------- */

struct player {
	uint64_t chance;
	int depth; /* of functions, 0: none */
	struct held {
		struct xr_future *future;
		struct xr_pool_iter *iter;
		int64_t first, count; /* -1: a call */
		bool may_fail, fails;
	} held[HELD];
};

/* --- functions ------------------------------------------------------------------------------ */

static enum xr_status
twice(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(2 * n));
}

static enum xr_status
fails(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply_fail(call, XR_E_SCHEMA, "as it was told to");
}

static enum xr_status
dies(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	if (kind == XR_POOL_PROCESSES)
		_exit(3);
	pthread_exit(NULL);
}

/* --- what may come of it ----------------------------------------------------------------------- */

static bool
was_lost(enum xr_status status)
{
	return status == (!nests ? XR_E_WORKER_LOST : XR_E_STATE);
}

/* A function of threads inside of which another one has ended the thread is lost with it. */
static bool
is_right(const struct held *h, enum xr_status status)
{
	if (status == XR_OK)
		return !h->fails;
	if (status == XR_E_CANCELLED || status == XR_E_STATE)
		return ends || closes || h->may_fail;
	return h->may_fail && (status == XR_E_SCHEMA || was_lost(status));
}

static bool
is_number(const struct xr_value *value, int64_t want)
{
	int64_t n = -1;

	return xr_value_get_i64(value, &n) == XR_OK && n == want;
}

static void
judge(const struct held *h, enum xr_status status, const struct xr_value *value)
{
	atomic_fetch_add(&results, 1);
	if (!is_right(h, status))
		snprintf(err.text + strlen(err.text), 60,
			" (%d, may fail: %d, fails: %d)", status, h->may_fail,
			h->fails);
	EXPECT(is_right(h, status));
	if (status != XR_OK)
		return;
	if (h->count == -1) {
		EXPECT(is_number(value, 2 * h->first));
		return;
	}
	EXPECT(xr_value_count(value) == (size_t)h->count);
	for (int64_t i = 0; i < h->count; i++)
		EXPECT(is_number(xr_value_at(value, (size_t)i),
			2 * (h->first + i)));
}

/* --- submitting ---------------------------------------------------------------------------------- */

static enum xr_status
hear(struct xr_value *value, void *ctx)
{
	(void)value;
	(void)ctx;
	atomic_fetch_add(&heard, 1);
	return XR_OK;
}

static struct xr_value *
numbers(int64_t first, int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = first; i < first + count; i++)
		EXPECT(xr_value_append(list, xr_value_new_i64(i)) == XR_OK);
	return list;
}

/* What is to be done, and what is to come of it. */
static void
choose(struct player *p, struct xr_pool_task *t, struct held *h, bool maps)
{
	uint64_t what = draw(&p->chance, 40);

	*t = (struct xr_pool_task){ .size = sizeof(*t), .name = "twice" };
	*h = (struct held){ .first = (int64_t)draw(&p->chance, 1000),
		.count = -1 };
	if (what == 0 && kind == XR_POOL_THREADS)
		t->name = "dies";
	else if (what == 0 && draw(&p->chance, 4) == 0)
		t->name = "dies";
	else if (what <= 3)
		t->name = "fails";
	else if (what <= 10 && nests && p->depth < DEPTH)
		t->name = p->depth == 0 ? "plays" : "plays-on";
	h->may_fail = h->fails = *t->name != 't' && *t->name != 'p';
	if (*t->name == 'd')
		atomic_fetch_add(&killed, 1);
	/* One inside of it may end its thread. */
	h->may_fail |= nests;
	if (maps) {
		h->count = (int64_t)draw(&p->chance, ITEMS_MAX);
		h->may_fail |= *t->name != 't';
		h->fails &= h->count > 0;
		if (draw(&p->chance, 2) == 0) {
			t->flags = XR_POOL_CHUNK;
			t->chunk = 1 + (int64_t)draw(&p->chance, 7);
		}
		if (*t->name == 'p') /* once is enough */
			h->count = h->count % 4;
	}
	t->args = numbers(h->first, maps ? h->count : 1);
}

static void
with_callbacks(struct player *p, struct xr_pool_task *t)
{
	if (draw(&p->chance, 4) == 0)
		t->callback = t->error_callback = hear;
}

/* False: it was not submitted, since the pool has ended. */
static bool
was_taken(const struct xr_pool_task *t, enum xr_status status)
{
	xr_value_unref(t->args);
	if (status == XR_OK && t->callback != NULL)
		atomic_fetch_add(&asked, 1);
	EXPECT(status == XR_OK || ((ends || closes) && status == XR_E_STATE));
	return status == XR_OK;
}

/* --- steps ----------------------------------------------------------------------------------------- */

/* In a function others may have to be done by the one that waits. */
static int64_t
patience(const struct player *p)
{
	return p->depth > 0 ? XR_TIMEOUT_NEVER : SOON;
}

static void
take_some(struct player *p, struct held *h)
{
	int64_t n = (int64_t)draw(&p->chance, (uint64_t)h->count + 2);
	struct xr_value *value = NULL;
	enum xr_status status = XR_OK;

	for (int64_t i = 0; i < n && status != XR_E_END; i++) {
		const struct held item = { .first = h->first + i,
			.count = -1,
			.may_fail = h->may_fail,
			.fails = h->fails };

		status = xr_pool_iter_next(h->iter, patience(p), &value, &err);
		EXPECT((status == XR_E_END) == (i == h->count));
		if (status != XR_E_END)
			judge(&item, status, value);
		xr_value_unref(value);
	}
	xr_pool_iter_free(h->iter);
}

static void
let_go(struct player *p, struct held *h)
{
	uint64_t how = draw(&p->chance, 8);
	struct xr_value *value = NULL;
	enum xr_status status;

	if (h->iter != NULL) {
		take_some(p, h);
	} else if (h->future != NULL && how == 0) {
		xr_future_unref(h->future);
	} else if (h->future != NULL) {
		if (how == 1 && xr_future_cancel(h->future) == XR_OK)
			h->may_fail = true;
		status = xr_future_wait(h->future, patience(p), &value, &err);
		judge(h, status, value);
		xr_value_unref(value);
		xr_future_unref(h->future);
	}
	*h = (struct held){ 0 };
}

static struct held *
spare(struct player *p)
{
	struct held *h = &p->held[draw(&p->chance, HELD)];

	let_go(p, h);
	return h;
}

static void
post(struct player *p)
{
	struct held *to = spare(p), h;
	bool maps = draw(&p->chance, 3) == 0;
	struct xr_pool_task t;

	choose(p, &t, &h, maps);
	with_callbacks(p, &t);
	if (was_taken(&t,
		    (maps ? xr_pool_map_async : xr_pool_apply_async)(pool, &t,
			    &h.future, &err)))
		*to = h;
}

static void
begin_iter(struct player *p)
{
	struct held *to = spare(p), h;
	struct xr_pool_task t;

	choose(p, &t, &h, true);
	if (draw(&p->chance, 2) == 0) {
		if (was_taken(&t, xr_pool_imap(pool, &t, &h.iter, &err)))
			*to = h;
		return;
	}
	/* In which order is not known. */
	if (was_taken(&t, xr_pool_imap_unordered(pool, &t, &h.iter, &err))) {
		struct xr_value *value = NULL;
		enum xr_status status;
		int64_t came = 0;

		do {
			status = xr_pool_iter_next(h.iter, patience(p), &value,
				&err);
			EXPECT(status != XR_E_TIMEOUT);
			came += status != XR_E_END;
			xr_value_unref(value);
		} while (status != XR_E_END);
		EXPECT(came == h.count);
		xr_pool_iter_free(h.iter);
	}
}

/* Without a timeout a function runs it in its place, which is no task; or with one that may
 * be over. */
static void
call(struct player *p)
{
	bool maps = draw(&p->chance, 3) == 0, timed = draw(&p->chance, 4) == 0;
	struct xr_value *value = NULL;
	struct xr_pool_task t;
	enum xr_status status;
	struct held h;

	choose(p, &t, &h, maps);
	status = (maps ? xr_pool_map : xr_pool_apply)(pool, &t,
		timed ? (int64_t)draw(&p->chance, 1000000) : patience(p),
		&value, &err);
	xr_value_unref(t.args);
	if (!timed || status != XR_E_TIMEOUT)
		judge(&h, status, value);
	xr_value_unref(value);
}

static void
play(struct player *p, int steps)
{
	for (int i = 0; i < steps; i++) {
		switch (draw(&p->chance, 6)) {
		case 0:
			begin_iter(p);
			break;
		case 1:
			call(p);
			break;
		default:
			post(p);
			break;
		}
	}
	for (int i = 0; i < HELD; i++)
		let_go(p, &p->held[i]);
}

static enum xr_status
play_inside(struct xr_call *call, struct xr_value *args, int depth)
{
	struct player p;
	int64_t n = 0;

	xr_value_get_i64(xr_value_at(args, 0), &n);
	p = (struct player){ .chance = chance_of((uint64_t)(n + round_now)),
		.depth = depth };
	play(&p, STEPS_IN);
	return xr_reply(call, xr_value_new_i64(2 * n));
}

static enum xr_status
plays(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return play_inside(call, args, 1);
}

static enum xr_status
plays_on(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return play_inside(call, args, 2);
}

/* --- a round ------------------------------------------------------------------------------------------ */

static void *
player(void *number)
{
	uint64_t which = (uint64_t)(seed * 1000003 + round_now * PLAYERS) +
		(uintptr_t)number;
	struct player p = { .chance = chance_of(which) };

	play(&p, STEPS);
	return NULL;
}

/* As it would be put. */
static enum xr_status
put(struct xr_pool *of, struct xr_pool_item *item, void *ctx,
	struct xr_error *error)
{
	(void)ctx;
	return xr_pool_inqueue_put(of, item, error);
}

static void
begin(struct player *p)
{
	const struct xr_pool_ops ops = { .size = sizeof(ops),
		.inqueue_put = put };
	struct xr_pool_opts o = {
		.size = sizeof(o),
		.kind = kind,
		.workers = 1 + (uint32_t)draw(&p->chance, 3),
		.tasks = 1 + (uint32_t)draw(&p->chance, 12),
		.routing =
			draw(&p->chance, 2) == 0 ? XR_POOL_SHARED : XR_POOL_P2P,
		.start_failures = 1000,
	};

	if (kind == XR_POOL_PROCESSES && draw(&p->chance, 3) == 0)
		o.max_tasks = 1 + draw(&p->chance, 20);
	if (kind == XR_POOL_PROCESSES && draw(&p->chance, 3) == 0)
		o.mode = XR_ENC_SHARE;
	if (mates || (kind == XR_POOL_PROCESSES && draw(&p->chance, 3) == 0))
		o.ops = &ops;

	atomic_store(&ends, false);
	atomic_store(&closes, false);
	atomic_store(&asked, 0);
	atomic_store(&heard, 0);
	EXPECT(xr_pool_new(&o, &pool, &err) == XR_OK);
}

static void
play_round(void)
{
	pthread_t thread[PLAYERS];
	uint64_t players;
	struct player p = {
		.chance = chance_of((uint64_t)(seed * 7919 + round_now))
	};

	begin(&p);
	players = 1 + draw(&p.chance, PLAYERS);
	for (uint64_t i = 0; i < players; i++)
		EXPECT(pthread_create(&thread[i], NULL, player, (void *)i) ==
			0);
	if (draw(&p.chance, 5) == 0) {
		usleep((unsigned)draw(&p.chance, 3000));
		atomic_store(&ends, true);
		xr_pool_terminate(pool, 0, NULL);
	}
	for (uint64_t i = 0; i < players; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&closes, true);
	xr_pool_close(pool);
	EXPECT(xr_pool_join(pool, SOON, &err) == XR_OK);
	xr_pool_free(pool);
	EXPECT(heard == asked);
}

static void
known(const char *name, xr_func_fn *fn)
{
	const struct xr_func f = { .size = sizeof(f), .name = name, .fn = fn };

	EXPECT(xr_fn_register(&f, NULL) == XR_OK);
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		PLAY_OPTIONS,
		{ 0 },
	};
	int at = prog_opts(argc, argv, table);

	known("twice", twice);
	known("fails", fails);
	known("dies", dies);
	known("plays", plays);
	known("plays-on", plays_on);
	EXPECT(xr_init(NULL) == XR_OK);
	if (at + 1 != argc)
		prog_die(0,
			"usage: poolplay [OPTION]... processes|threads|mates");
	mates = strcmp(argv[at], "mates") == 0;
	nests = strcmp(argv[at], "threads") == 0;
	if (mates || nests)
		kind = XR_POOL_THREADS;
	play_all(play_round);
	printf("ok %s: %" PRIu64 " results, %" PRIu64
	       " functions that end their worker\n",
		argv[at], results, killed);
	return 0;
}
