/* SPDX-License-Identifier: Apache-2.0 */
/* lead_rig.h - who leads, without other threads: the clock, yields and futexes are the
 * test's. */
#ifndef TESTS_UNIT_LEAD_RIG_H
#define TESTS_UNIT_LEAD_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "worker/rpc/lead_inner.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#define MOST_YIELDS 10000000u /* of a test that does not hang */
#define MOST_SLEEPS 10000u

/* Some of what is called is called at the process's end, too, when Criterion cannot be told
 * any more that all is well. */
#define WELL(x) \
	do { \
		if (!(x)) \
			cr_assert_fail(#x); \
	} while (0)

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_sched_yield(void);
int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

/* --- time, yields and futexes ------------------------------------------------ */

static int64_t now = 1000;
static bool real_time; /* while the rate of the CPU's ticks is measured */
static unsigned yields, sleeps, wakes;
static void (*on_yield)(void);
static void (*on_sleep)(void);
/* The last of each. */
static struct futex {
	const void *word;
	uint32_t value; /* of a sleep: what it has seen; of waking: how many */
	uint32_t words; /* beside it */
	int64_t until;  /* INT64_MAX: there is no limit */
} slept, woken;

int64_t
__wrap_clock_now(void)
{
	return real_time ? __real_clock_now() : now;
}

int
__wrap_sched_yield(void)
{
	WELL(++yields < MOST_YIELDS);
	if (on_yield != NULL)
		on_yield();
	return 0;
}

static int64_t
time_in(const struct timespec *t)
{
	return t == NULL ? INT64_MAX : t->tv_sec * NS_PER_S + t->tv_nsec;
}

static long
sleep_of(struct futex futex)
{
	slept = futex;
	WELL(++sleeps < MOST_SLEEPS);
	if (on_sleep != NULL)
		on_sleep();
	return 0;
}

long
__wrap_syscall(long number, ...)
{
	struct waitv {
		uint64_t value, word;
		uint32_t flags, unused;
	};
	const struct waitv *v;
	long arg[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_futex_waitv && arg[0] != 0) {
		v = (const struct waitv *)arg[0];
		return sleep_of((struct futex){ (const void *)v[0].word,
			(uint32_t)v[0].value, (uint32_t)arg[1] - 1,
			time_in((const void *)arg[3]) });
	}
	if (number != SYS_futex)
		return __real_syscall(number, arg[0], arg[1], arg[2], arg[3],
			arg[4], arg[5]);
	if ((arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
		return sleep_of((struct futex){ (const void *)arg[0],
			(uint32_t)arg[2], 0, time_in((const void *)arg[3]) });
	WELL((arg[1] & FUTEX_CMD_MASK) == FUTEX_WAKE);
	woken = (struct futex){ (const void *)arg[0], (uint32_t)arg[2], 0, 0 };
	wakes++;
	return 1;
}

/* --- the place ----------------------------------------------------------------- */

static struct segment_bell bell;
static _Atomic uint32_t awaits;

static unsigned thoroughs, looks, expiries;
static bool is_busy, has_work;
static int64_t expired_at, next_due = INT64_MAX;
static bool expiry_delivers;
static void (*on_look)(void);

static void
thorough(void *ctx)
{
	WELL(ctx == &bell);
	thoroughs++;
}

static bool
busy(void *ctx)
{
	WELL(ctx == &bell);
	return is_busy;
}

static void
look(void *ctx)
{
	WELL(ctx == &bell);
	looks++;
	if (on_look != NULL)
		on_look();
}

static int64_t
expire(void *ctx, int64_t at)
{
	WELL(ctx == &bell);
	expiries++;
	expired_at = at;
	expiry_delivers = lead_delivers();
	return next_due;
}

static bool
work(void *ctx)
{
	WELL(ctx == &bell);
	return has_work;
}

/* What the source has, and how much of it a read brings. */
static struct {
	uint32_t left, each;
	unsigned reads;
	void (*on_read)(void);
} source = { .each = 1 };

static uint32_t
progress(void *self, uint32_t budget)
{
	uint32_t n = source.left < source.each ? source.left : source.each;

	WELL(self == &source);
	WELL(budget == 64);
	WELL(lead_delivers());
	source.reads++;
	source.left -= n;
	if (source.on_read != NULL)
		source.on_read();
	return n;
}

static const struct lead_place whole_place = {
	.bell = &bell,
	.awaits = &awaits,
	.thorough = thorough,
	.busy = busy,
	.look = look,
	.expire = expire,
	.work = work,
	.ctx = &bell,
};

static void
open_with(const struct lead_place *place)
{
	real_time = true;
	lead_open(place);
	real_time = false;
}

static inline void
open_place(void)
{
	open_with(&whole_place);
	lead_add((struct lead_source){ progress, &source });
}

/* follow_as() - @w waits in the row of those that follow. */
static inline void
follow_as(struct waiter *w)
{
	w->follows = true;
	TAILQ_INSERT_TAIL(&lead.followers, w, list);
	atomic_fetch_add(&lead.follower_count, 1);
}

/* nobody_leads() - nor is anything left of who did. */
static inline void
nobody_leads(void)
{
	cr_expect_not(lead_me.leads);
	cr_expect_null(lead_me.leads_for);
	cr_expect_eq(lead_me.delivers, 0);
	cr_expect_eq(atomic_load(&lead.taken), 0);
	cr_expect_eq(atomic_load(&lead.claimed), 0);
	cr_expect_eq(atomic_load(&lead.follower_count), 0);
	cr_expect(TAILQ_EMPTY(&lead.followers));
}

#endif /* TESTS_UNIT_LEAD_RIG_H */
