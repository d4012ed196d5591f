/* SPDX-License-Identifier: Apache-2.0 */
/* wake.c - see wake.h. */
#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "worker/queue/wake.h"

uint32_t
wake_arm(struct wake *w)
{
	uint32_t seen = atomic_load(&w->rung);
	uint32_t armed = atomic_load(&w->armed);

	while (!atomic_compare_exchange_weak(&w->armed, &armed,
		(armed + 2) | WAKE_ARMED))
		;
	atomic_thread_fence(memory_order_seq_cst);
	return seen;
}

int
wake_sleep(struct wake *w, uint32_t seen, int64_t until)
{
	const struct timespec t = { .tv_sec = until / NS_PER_S,
		.tv_nsec = until % NS_PER_S };
	int saved = errno, rc = 0;

	if (syscall(SYS_futex, &w->rung, FUTEX_WAIT_BITSET, seen,
		    until == INT64_MAX ? NULL : &t, NULL,
		    FUTEX_BITSET_MATCH_ANY) == -1 &&
		errno == ETIMEDOUT)
		rc = ETIMEDOUT;
	errno = saved;
	return rc;
}

/* Not disarmed before somebody is known not to sleep: another one who rings meanwhile has
 * to wake one, too. And not if somebody has armed since: that one may sleep by now. */
void
wake_slow(struct wake *w, uint32_t count)
{
	uint32_t armed = atomic_load(&w->armed);
	int saved = errno;
	long woken;

	atomic_fetch_add(&w->rung, 1);
	woken = syscall(SYS_futex, &w->rung, FUTEX_WAKE,
		count > INT_MAX ? INT_MAX : (int)count, NULL, NULL, 0);
	if (woken < 0 || (uint32_t)woken < count)
		atomic_compare_exchange_strong(&w->armed, &armed,
			armed & ~WAKE_ARMED);
	errno = saved;
}

void
wake_all(struct wake *w)
{
	wake_slow(w, INT_MAX);
}
