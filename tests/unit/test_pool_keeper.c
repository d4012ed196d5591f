/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_keeper.c - the thread that looks after pools: what it hears, and how long it is
 * there. */
#include <dirent.h>
#include <sched.h>

#include <sys/eventfd.h>

#include "base/clock.h"
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/keeper.h"

TestSuite(pool_keeper, .timeout = 60);

#define SOON XR_SECONDS(20)

/* --- what it does -------------------------------------------------------------------------------- */

static struct xr_pool other;
static struct xr_queue *queue;
static _Atomic unsigned looks, takes, lates, wrong;
static _Atomic(struct xr_pool *) looked_at, took_of;
static _Atomic int64_t next_late = INT64_MAX;
static int told = -1;

void __wrap_staff_look(struct xr_pool *pool);
void __wrap_take_for_keeper(struct xr_pool *pool);
int64_t __wrap_staff_late(struct xr_pool *pool, int64_t now);

void
__wrap_staff_look(struct xr_pool *pool)
{
	uint64_t n;

	wrong += !keeper_is_us() || read(told, &n, sizeof(n)) != sizeof(n);
	atomic_store(&looked_at, pool);
	atomic_fetch_add(&looks, 1);
}

void
__wrap_take_for_keeper(struct xr_pool *pool)
{
	wrong += !keeper_is_us();
	atomic_store(&took_of, pool);
	atomic_fetch_add(&takes, 1);
}

/* Once it is so late it is later. */
int64_t
__wrap_staff_late(struct xr_pool *pool, int64_t now)
{
	int64_t next = atomic_load(&next_late);

	wrong += pool != &made && pool != &other;
	if (next <= now)
		atomic_store(&next_late, INT64_MAX);
	atomic_fetch_add(&lates, 1);
	return next <= now ? INT64_MAX : next;
}

static bool
reaches(_Atomic unsigned *count, unsigned n)
{
	int64_t from = clock_now();

	while (atomic_load(count) < n && clock_now() - from < SOON)
		sched_yield();
	return atomic_load(count) >= n;
}

static unsigned
entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	NEED(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* One that was joined is seen for a moment yet. */
static bool
threads_are(unsigned n)
{
	int64_t from = clock_now();

	while (entries("/proc/self/task") != n && clock_now() - from < SOON)
		sched_yield();
	return entries("/proc/self/task") == n;
}

static void
tell(void)
{
	const uint64_t one = 1;

	EXPECT_EQ(write(told, &one, sizeof(one)), (ssize_t)sizeof(one));
}

/* --- its life ------------------------------------------------------------------------------------ */

FORKED_TEST(pool_keeper, it_is_there_while_there_are_pools)
{
	unsigned threads = entries("/proc/self/task"),
		 fds = entries("/proc/self/fd");
	uint64_t n;

	make_pool();
	fds++; /* the ledger */
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(keeper_come(&made, &error), XR_OK);
		EXPECT(threads_are(threads + 1));
		EXPECT_EQ(entries("/proc/self/fd"), fds + 2);
		EXPECT_EQ(keeper_come(&other, &error), XR_OK);
		EXPECT(threads_are(threads + 1));
		keeper_leave(&made);
		EXPECT(threads_are(threads + 1));
		keeper_leave(&other);
		EXPECT(threads_are(threads));
		EXPECT_EQ(entries("/proc/self/fd"), fds);
	}
	EXPECT(!keeper_is_us());
	NEED(dup2(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), 0) == 0);
	keeper_stir(); /* nobody, on no descriptor */
	EXPECT(read(0, &n, sizeof(n)) == -1 && errno == EAGAIN);
	EXPECT_EQ(wrong, 0);
	unmake_pool();
}

FORKED_TEST(pool_keeper, it_looks_when_a_worker_has_ended)
{
	make_pool();
	told = eventfd(0, EFD_CLOEXEC);
	EXPECT_EQ(keeper_come(&other, &error), XR_OK);
	EXPECT_EQ(keeper_come(&made, &error), XR_OK);
	EXPECT_EQ(keeper_await(&made, told, &error), XR_OK);
	tell();
	EXPECT(reaches(&looks, 1));
	EXPECT(looked_at == &made);
	tell();
	EXPECT(reaches(&looks, 2));
	keeper_forget(told);
	EXPECT_EQ(keeper_await(&other, told, &error), XR_OK);
	tell();
	EXPECT(reaches(&looks, 3));
	EXPECT(looked_at == &other);
	EXPECT_EQ(keeper_await(&made, -1, &error), XR_E_SYS);
	EXPECT_STR(error.text, "epoll_ctl: Bad file descriptor");
	/* Of one that has left it hears nothing. */
	keeper_leave(&other);
	tell();
	atomic_store(&lates, 0);
	EXPECT(reaches(&lates, 3));
	EXPECT_EQ(looks, 3);
	keeper_leave(&made);
	EXPECT_EQ(takes, 0);
	EXPECT_EQ(wrong, 0);
	close(told);
	unmake_pool();
}

FORKED_TEST(pool_keeper,
	it_looks_who_is_late_when_that_is_due_or_somebody_says_so)
{
	unsigned n;

	make_pool();
	EXPECT_EQ(keeper_come(&made, &error), XR_OK);
	EXPECT(reaches(&lates, 1));
	n = lates;
	keeper_stir();
	EXPECT(reaches(&lates, n + 1));
	EXPECT_EQ(keeper_come(&other, &error), XR_OK);
	atomic_store(&next_late, clock_now() + NS_PER_MS);
	keeper_stir();
	while (atomic_load(&next_late) != INT64_MAX && reaches(&lates, n + 2))
		n++;
	EXPECT_EQ(next_late, INT64_MAX);
	keeper_leave(&other);
	keeper_leave(&made);
	EXPECT_EQ(looks + takes + wrong, 0);
	unmake_pool();
}

/* Once, until it is to do that again. */
FORKED_TEST(pool_keeper, it_takes_results_when_it_watches)
{
	const struct xr_queue_opts o = { .size = sizeof(o), .items = 64 };
	unsigned n;

	make_pool();
	NEED(xr_queue_new(&o, &queue, NULL) == XR_OK);
	made.out = queue;
	EXPECT_EQ(keeper_come(&made, &error), XR_OK);
	EXPECT_EQ(xr_queue_put_bytes(queue, "", 0, 0, NULL), XR_OK);
	n = lates;
	keeper_stir();
	EXPECT(reaches(&lates, n + 1));
	EXPECT_EQ(takes, 0);
	keeper_watch(&made);
	EXPECT(reaches(&takes, 1));
	EXPECT(took_of == &made);
	n = lates;
	keeper_stir();
	EXPECT(reaches(&lates, n + 1));
	EXPECT_EQ(takes, 1);
	keeper_watch(&made);
	EXPECT(reaches(&takes, 2));
	keeper_leave(&made);
	EXPECT_EQ(looks + wrong, 0);
	made.out = NULL;
	xr_queue_free(queue);
	unmake_pool();
}

FORKED_TEST(pool_keeper, it_is_not_in_a_child)
{
	uint32_t forks = keeper_forks();
	int how = -1;
	pid_t pid;

	make_pool();
	EXPECT_EQ(keeper_come(&made, &error), XR_OK);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		alarm(20);
		EXPECT_EQ(keeper_forks(), forks + 1);
		EXPECT(threads_are(3));
		EXPECT_EQ(keeper_come(&other, &error), XR_OK);
		EXPECT(threads_are(4));
		atomic_store(&lates, 0);
		keeper_stir();
		EXPECT(reaches(&lates, 1));
		keeper_leave(&other);
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
	EXPECT_EQ(keeper_forks(), forks);
	keeper_leave(&made);
	unmake_pool();
}
