/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_wake.c - how those who sleep at a queue arm, sleep and are woken: what the kernel is
 * asked, and what is left in the words. */
#include <limits.h>
#include <stdarg.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "worker/queue/wake.h"

TestSuite(queue_wake, .timeout = 60);

static struct wake w;

/* --- the kernel ---------------------------------------------------------------------------- */

static struct {
	const void *addr;
	int op;
	uint32_t val;
	bool has_time;
	struct timespec time;
	const void *addr2;
	uint32_t val3;
} asked;

static unsigned calls;
static long answer; /* of the next; -1: as @error says */
static int error;
static bool arms; /* somebody does meanwhile */

long __wrap_syscall(long nr, ...);

long
__wrap_syscall(long nr, ...)
{
	const struct timespec *time;
	va_list ap;

	EXPECT_EQ(nr, SYS_futex);
	va_start(ap, nr);
	asked.addr = va_arg(ap, const void *);
	asked.op = va_arg(ap, int);
	asked.val = va_arg(ap, uint32_t);
	time = va_arg(ap, const struct timespec *);
	asked.has_time = time != NULL;
	if (time != NULL)
		asked.time = *time;
	asked.addr2 = va_arg(ap, const void *);
	asked.val3 = va_arg(ap, uint32_t);
	va_end(ap);
	calls++;
	if (arms)
		wake_arm(&w);
	errno = error;
	return answer;
}

static void
begin(uint32_t rung, uint32_t armed)
{
	atomic_store(&w.rung, rung);
	atomic_store(&w.armed, armed);
	memset(&asked, 0xff, sizeof(asked));
	calls = 0;
	answer = 0;
	error = 0;
	arms = false;
	errno = ENOSPC;
}

static void
expect_words(uint32_t rung, uint32_t armed)
{
	EXPECT_EQ(atomic_load(&w.rung), rung);
	EXPECT_EQ(atomic_load(&w.armed), armed);
	EXPECT_EQ(errno, ENOSPC);
}

/* --- sleeping ------------------------------------------------------------------------------ */

FORKED_TEST(queue_wake, who_arms_is_counted_and_has_the_number)
{
	begin(77, 0);
	EXPECT_EQ(wake_arm(&w), 77);
	expect_words(77, 3);
	EXPECT_EQ(wake_arm(&w), 77);
	expect_words(77, 5);
	atomic_store(&w.armed, 6); /* disarmed meanwhile */
	EXPECT_EQ(wake_arm(&w), 77);
	expect_words(77, 9);
	EXPECT_EQ(calls, 0);
}

FORKED_TEST(queue_wake, who_sleeps_says_for_which_number_and_until_when)
{
	begin(9, 3);
	EXPECT_EQ(wake_sleep(&w, 8, 5 * NS_PER_S + 7), 0);
	EXPECT_EQ(calls, 1);
	EXPECT(asked.addr == &w.rung && asked.addr2 == NULL);
	EXPECT_EQ(asked.op, FUTEX_WAIT_BITSET);
	EXPECT_EQ(asked.val, 8);
	EXPECT(asked.has_time);
	EXPECT_EQ(asked.time.tv_sec, 5);
	EXPECT_EQ(asked.time.tv_nsec, 7);
	EXPECT_EQ(asked.val3, FUTEX_BITSET_MATCH_ANY);
	expect_words(9, 3);
	EXPECT_EQ(wake_sleep(&w, 9, INT64_MAX - 1), 0);
	EXPECT(asked.has_time);
	EXPECT_EQ(wake_sleep(&w, 9, INT64_MAX), 0);
	EXPECT(!asked.has_time);
	expect_words(9, 3);
}

/* Whatever else ends a sleep, who slept looks. */
FORKED_TEST(queue_wake, only_the_end_of_its_time_is_told)
{
	static const int errors[] = { ETIMEDOUT, EINTR, EAGAIN };

	for (int i = 0; i < 3; i++) {
		begin(9, 3);
		answer = -1;
		error = errors[i];
		EXPECT_EQ(wake_sleep(&w, 9, 1), i == 0 ? ETIMEDOUT : 0);
		expect_words(9, 3);
	}
	begin(9, 3);
	error = ETIMEDOUT; /* of something before */
	EXPECT_EQ(wake_sleep(&w, 9, 1), 0);
	expect_words(9, 3);
}

/* --- waking -------------------------------------------------------------------------------- */

FORKED_TEST(queue_wake, who_wakes_fewer_than_it_could_disarms)
{
	const struct {
		uint32_t count;
		long woken;
		uint32_t val, armed;
	} row[] = {
		{ 3, 3, 3, 5 },
		{ 3, 2, 3, 4 },
		{ 1, 0, 1, 4 },
		{ 1, 1, 1, 5 },
		{ 1, -1, 1, 4 },
		{ INT_MAX, 1, INT_MAX, 4 },
		{ (uint32_t)INT_MAX + 1, 1, INT_MAX, 4 },
		{ UINT32_MAX, INT_MAX, INT_MAX, 4 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(9, 5);
		answer = row[i].woken;
		error = EFAULT;
		wake_ring(&w, row[i].count);
		EXPECT_EQ(calls, 1);
		EXPECT(asked.addr == &w.rung && !asked.has_time);
		EXPECT_EQ(asked.op, FUTEX_WAKE);
		EXPECT_EQ(asked.val, row[i].val);
		EXPECT(asked.addr2 == NULL && asked.val3 == 0);
		expect_words(10, row[i].armed);
	}
}

FORKED_TEST(queue_wake, who_arms_meanwhile_stays_armed)
{
	begin(9, 5);
	arms = true;
	wake_ring(&w, 1);
	expect_words(10, 7);
}

FORKED_TEST(queue_wake, where_nobody_has_armed_nobody_is_woken_but_for_all)
{
	begin(9, 4);
	wake_ring(&w, 1);
	EXPECT_EQ(calls, 0);
	expect_words(9, 4);
	wake_all(&w);
	EXPECT_EQ(calls, 1);
	EXPECT_EQ(asked.val, INT_MAX);
	expect_words(10, 4);
}
