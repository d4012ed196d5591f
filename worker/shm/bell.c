/* SPDX-License-Identifier: Apache-2.0 */
/* bell.c - see bell.h. */
#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/shm/bell.h"

/* Linux 5.16; older headers have neither. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define WAITV_32 2u

struct waitv {
	uint64_t value;
	uint64_t word;
	uint32_t flags;
	uint32_t unused;
};

void
bell_init(struct bell *b, struct segment_bell *at, bool shared)
{
	*b = (struct bell){ .at = at, .shared = shared };
}

void
bell_arm(struct bell *b)
{
	b->nap = b->nap == UINT32_MAX ? 1 : b->nap + 1;
	b->seen = atomic_load_explicit(&b->at->rung, memory_order_relaxed);
	atomic_store_explicit(&b->at->asleep, b->nap, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

int64_t
bell_disarm(struct bell *b)
{
	uint32_t rung =
		atomic_load_explicit(&b->at->rung, memory_order_acquire);

	atomic_store_explicit(&b->at->asleep, 0, memory_order_relaxed);
	if (rung == b->seen)
		return 0;
	return tick_now() -
		(int64_t)atomic_load_explicit(&b->at->rung_at,
			memory_order_relaxed);
}

static int
private_flag(bool shared)
{
	return shared ? 0 : FUTEX_PRIVATE_FLAG;
}

void
bell_wake(struct segment_bell *at, bool shared)
{
	int saved = errno;

	atomic_store_explicit(&at->rung_at, (uint64_t)tick_now(),
		memory_order_relaxed);
	atomic_fetch_add_explicit(&at->rung, 1, memory_order_release);
	syscall(SYS_futex, &at->rung, FUTEX_WAKE | private_flag(shared),
		INT_MAX, NULL, NULL, 0);
	errno = saved;
}

static struct timespec
time_of(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S,
		.tv_nsec = ns % NS_PER_S };
}

static int
sleep_alone(struct bell *b, const struct timespec *until)
{
	long rc = syscall(SYS_futex, &b->at->rung,
		FUTEX_WAIT_BITSET | private_flag(b->shared), b->seen, until,
		NULL, FUTEX_BITSET_MATCH_ANY);

	return rc == -1 && errno == ETIMEDOUT ? ETIMEDOUT : 0;
}

static struct waitv
waitv(_Atomic uint32_t *word, uint32_t value, bool shared)
{
	return (struct waitv){
		.value = value,
		.word = (uintptr_t)word,
		.flags = WAITV_32 | (uint32_t)private_flag(shared),
	};
}

/* -1: not on this kernel. */
static int
sleep_among(struct bell *b, const struct bell_word *words, uint32_t count,
	const struct timespec *until)
{
	struct waitv v[BELL_WORDS + 1];
	long rc;

	v[0] = waitv(&b->at->rung, b->seen, b->shared);
	for (uint32_t i = 0; i < count; i++)
		v[i + 1] = waitv(words[i].word, words[i].value, true);
	rc = syscall(SYS_futex_waitv, v, count + 1, 0, until, CLOCK_MONOTONIC);
	if (rc == -1 && errno == ENOSYS)
		return -1;
	return rc == -1 && errno == ETIMEDOUT ? ETIMEDOUT : 0;
}

int
bell_sleep(struct bell *b, const struct bell_word *words, uint32_t count,
	int64_t until)
{
	struct timespec t = time_of(until);
	int saved = errno, rc = -1;

	XR_ASSERT(count <= BELL_WORDS);
	if (count > 0)
		rc = sleep_among(b, words, count,
			until == INT64_MAX ? NULL : &t);
	if (rc == -1)
		rc = sleep_alone(b, until == INT64_MAX ? NULL : &t);
	errno = saved;
	return rc;
}

bool
bell_watches(void)
{
	int saved = errno;
	bool has;

	/* Of nothing: EINVAL where there is such a call. */
	has = syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC) ==
			-1 &&
		errno == EINVAL;
	errno = saved;
	return has;
}
