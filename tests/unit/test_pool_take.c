/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_take.c - who takes results of a pool: leaders and their naps, followers, the keeper.
 *
 * The pools have no worker: the test answers their tasks.
 */
#include <pthread.h>
#include <sched.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include <xrun/func.h>
#include <xrun/pool.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "worker/pool/item.h"
#include "worker/pool/job.h"

TestSuite(pool_take, .timeout = 60);

#define SOON    XR_SECONDS(20)
#define WORKERS 4
#define BYTES   (1 << 19) /* of results; an eighth of them is looked at */

static const struct ledger_who us = { 0, 1 };
static struct xr_pool *pool;
static struct xr_error error;

/* --- naps -------------------------------------------------------------------------------- */

static __thread int64_t looked; /* at the clock */
static _Atomic unsigned naps;
static _Atomic int64_t napped;
static void (*on_nap)(void); /* by who is about to nap */

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);

int64_t
__wrap_clock_now(void)
{
	looked = __real_clock_now();
	return looked;
}

static int64_t
ns_of(const struct timespec *t)
{
	return t->tv_sec * NS_PER_S + t->tv_nsec;
}

long
__wrap_syscall(long nr, ...)
{
	const struct timespec *t;
	long a[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	t = (const struct timespec *)a[3];
	if (nr == SYS_futex && pool != NULL && a[0] == (long)&pool->nudges &&
		(a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
		EXPECT(pool->naps);
		atomic_store(&napped, t != NULL ? ns_of(t) - looked : -1);
		atomic_fetch_add(&naps, 1);
		if (on_nap != NULL)
			on_nap();
	}
	return __real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- pools ------------------------------------------------------------------------------- */

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

static enum xr_status
start_none(struct xr_pool *p, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)ctx;
	(void)err;
	return XR_OK;
}

static void
begin(void)
{
	static const struct xr_pool_ops ops = { .size = sizeof(ops),
		.repopulate = start_none };
	const struct xr_pool_opts o = { .size = sizeof(o),
		.workers = WORKERS,
		.tasks = 8,
		.bytes = BYTES,
		.ops = &ops };
	const struct xr_func func = { .size = sizeof(func),
		.name = "nothing",
		.fn = nothing };

	xr_fn_register(&func, NULL);
	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
}

/* Nobody leads, or is to. */
static void
end(void)
{
	while (atomic_load(&pool->led) != 0)
		sched_yield(); /* the pool's own thread may, for a moment */
	EXPECT(pool->heir == NULL && TAILQ_EMPTY(&pool->followers));
	EXPECT(!pool->naps);
	EXPECT_EQ(pool->open, 0);
	xr_pool_free(pool);
	pool = NULL;
}

static struct xr_future *
post(void)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };
	struct xr_future *f = NULL;

	NEED(xr_pool_apply_async(pool, &t, &f, &error) == XR_OK);
	return f;
}

/* The next task, with what its call gave. */
static void
answer(void)
{
	struct result_head r = { .count = 1, .ns = 1 };
	struct xr_queue_buf buf = { 0 };
	struct task_head head;
	struct load l;
	char data[200];

	NEED(xr_queue_get_bytes(pool->in[0], &buf, SOON, NULL) == XR_OK);
	NEED(buf.len >= sizeof(head));
	memcpy(&head, buf.data, sizeof(head));
	free(buf.data);
	xr_queue_done(pool->in[0]);
	EXPECT(ledger_take(&pool->ledger, head.index, head.gen, us));
	r.index = head.index;
	r.gen = head.gen;
	load_init(&l);
	EXPECT(pack_add(&l.pack, NULL));
	NEED(load_head(&l, &r, sizeof(r)) == XR_OK && l.len <= sizeof(data));
	for (size_t i = 0, at = 0; i < l.count; at += l.all[i++].len)
		memcpy(data + at, l.all[i].data, l.all[i].len);
	EXPECT_EQ(xr_queue_put_bytes(pool->out, data, l.len, SOON, NULL),
		XR_OK);
	load_fini(&l);
}

static void
answer_once(void)
{
	on_nap = NULL;
	answer();
}

/* --- how long ---------------------------------------------------------------------------- */

#define US 1000u

/* Of an eighth of what is open, by 4 workers; 0: until he is woken. */
FORKED_TEST(pool_take, who_leads_naps_while_much_is_open)
{
	const struct {
		uint32_t open;
		bool starves;
		uint64_t task_ns, task_len, want;
	} row[] = {
		{ 31, false, 100 * US, 0, 0 },
		{ 32, false, 100 * US, 0, 100 * US },
		{ 32, true, 100 * US, 0, 0 },
		{ 39, false, 100 * US, 0, 100 * US },
		{ 40, false, 100 * US, 0, 125 * US },
		{ 32, false, 60 * US, 0, 60 * US },
		{ 32, false, 60 * US - 1, 0, 0 },
		{ 32, false, 999 * US, 0, 999 * US },
		{ 32, false, 1001 * US, 0, 1000 * US },
		{ 32, false, 2000 * US, 0, 1000 * US },
		{ 32, false, 2001 * US, 0, 0 },
		/* As long as there is room for results. */
		{ 512, false, 8 * US, 1024, 128 * US },
		{ 512, false, 8 * US, 1025, 126 * US },
		{ 800, false, 4 * US, 655, 100 * US },
		{ 800, false, 4 * US, 656, 99 * US },
		{ 800, false, 1000 * US, 65537, 0 },
	};

	begin();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xr_future *f = post();

		naps = 0;
		napped = 0;
		pool->open = row[i].open;
		pool->starves = row[i].starves;
		pool->ledger.head->starved = row[i].starves;
		pool->task_ns = row[i].task_ns;
		pool->task_len = row[i].task_len;
		on_nap = answer_once;
		EXPECT_EQ(xr_future_wait(f,
				  row[i].want > 0 ? SOON : 20 * NS_PER_MS, NULL,
				  NULL),
			row[i].want > 0 ? XR_OK : XR_E_TIMEOUT);
		if (napped != (int64_t)row[i].want || naps != (row[i].want > 0))
			forked_note(__LINE__, "row %zu: %u, %lld", i, naps,
				(long long)napped);
		on_nap = NULL;
		pool->starves = false;
		pool->open = row[i].want == 0;
		if (row[i].want == 0) {
			answer();
			EXPECT_EQ(xr_future_wait(f, SOON, NULL, NULL), XR_OK);
		}
		xr_future_unref(f);
	}
	end();
}

/* He looks again when he was nudged, and sleeps where results wake him. */
FORKED_TEST(pool_take, no_nap_is_longer_than_the_time_that_is_left)
{
	struct xr_future *f;

	begin();
	f = post();
	pool->open = 32;
	pool->task_ns = 1000 * US;
	pool->task_len = 0;
	EXPECT_EQ(xr_future_wait(f, 1000 * US, NULL, NULL), XR_E_TIMEOUT);
	EXPECT_EQ(naps, 0);
	pool->open = 1;
	answer();
	EXPECT_EQ(xr_future_wait(f, SOON, NULL, NULL), XR_OK);
	xr_future_unref(f);
	end();
}

/* --- who else ---------------------------------------------------------------------------- */

static struct xr_future *theirs;
static int64_t their_time;
static _Atomic int their_status;

static void *
wait_for_theirs(void *unused)
{
	(void)unused;
	atomic_store(&their_status,
		xr_future_wait(theirs, their_time, NULL, NULL));
	return NULL;
}

/* By one who sleeps. */
static bool
is_followed(void)
{
	const struct waiter *w;
	bool is;

	pthread_mutex_lock(&pool->lock);
	w = TAILQ_FIRST(&pool->followers);
	is = w != NULL && atomic_load(&w->state) == WAITER_ASLEEP;
	pthread_mutex_unlock(&pool->lock);
	return is;
}

static pthread_t thread;

/* While we lead. */
static void
be_followed(void)
{
	on_nap = NULL;
	EXPECT_EQ(pool->led, 1);
	NEED(pthread_create(&thread, NULL, wait_for_theirs, NULL) == 0);
	while (their_time == SOON && !is_followed())
		sched_yield();
	if (their_time != SOON) {
		NEED(pthread_join(thread, NULL) == 0);
		EXPECT(!is_followed());
	}
	on_nap = their_time == SOON ? answer_once : NULL;
	answer();
}

static void
with_follower(int64_t time)
{
	struct xr_future *ours;

	begin();
	ours = post();
	theirs = post();
	their_time = time;
	their_status = 1;
	pool->open = 64;
	pool->task_ns = 1000 * US;
	on_nap = be_followed;
	EXPECT_EQ(xr_future_wait(ours, SOON, NULL, NULL), XR_OK);
	if (time == SOON)
		NEED(pthread_join(thread, NULL) == 0);
	else
		answer();
	EXPECT_EQ(their_status, time == SOON ? XR_OK : XR_E_TIMEOUT);
	EXPECT_EQ(xr_future_wait(theirs, SOON, NULL, NULL), XR_OK);
	pool->open -= 62;
	xr_future_unref(ours);
	xr_future_unref(theirs);
	end();
}

FORKED_TEST(pool_take, who_follows_leads_after_the_leader)
{
	with_follower(SOON);
}

FORKED_TEST(pool_take, who_follows_goes_when_his_time_is_over)
{
	with_follower(NS_PER_MS);
}

/* Of what nobody waits for. */
FORKED_TEST(pool_take, the_keeper_takes_what_nobody_waits_for)
{
	struct xr_future *f, *other;
	int64_t from = clock_now();

	begin();
	EXPECT_EQ(pool->watched, 0);
	f = post();
	EXPECT_EQ(pool->watched, 1);
	other = post();
	answer();
	while (!xr_future_done(f) && clock_now() - from < SOON)
		sched_yield();
	EXPECT(xr_future_done(f));
	EXPECT_EQ(naps, 0);
	/* And then it watches again, as one is open yet. */
	while (pool->watched != 1 && clock_now() - from < SOON)
		sched_yield();
	answer();
	while (!xr_future_done(other) && clock_now() - from < SOON)
		sched_yield();
	EXPECT(xr_future_done(other));
	while (pool->led != 0 && clock_now() - from < SOON)
		sched_yield();
	EXPECT_EQ(pool->watched, 0);
	xr_future_unref(f);
	xr_future_unref(other);
	end();
}
