/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - see answer.h. */
#include "base/clock.h"
#include "launcher/keeper/answer.h"
#include "launcher/keeper/keeper.h"
#include "proc/descend.h"

#define ANSWER_NS      (10 * NS_PER_S)
#define ANSWER_LATE_NS NS_PER_S

static int32_t
answer_count(const struct keeper_page *page)
{
	return __atomic_load_n(&page->heard, __ATOMIC_SEQ_CST);
}

void
answer_note(struct keeper_page *page)
{
	__atomic_add_fetch(&page->heard, 1, __ATOMIC_SEQ_CST);
}

void
answer_expect(struct answer *a, const struct keeper_page *page)
{
	if (a->deadline_ns != 0)
		return;
	a->heard = answer_count(page);
	a->deadline_ns = clock_now() + ANSWER_NS;
}

void
answer_expect_soon(struct answer *a, const struct keeper_page *page)
{
	a->heard = answer_count(page);
	a->deadline_ns = clock_now() + NS_PER_S;
}

bool
answer_missed(struct answer *a, const struct keeper_page *page)
{
	int64_t late = clock_now() - a->deadline_ns;

	a->deadline_ns = 0;
	if (answer_count(page) != a->heard)
		return false;
	if (late < ANSWER_LATE_NS)
		return true;
	answer_expect(a, page);
	return false;
}

bool
answer_is_dead(pid_t pid)
{
	struct proc_stat st;

	return !proc_stat_read(pid, &st) || st.state == 'Z' || st.state == 'X';
}

int
answer_timeout(const struct answer *a)
{
	int64_t left = a->deadline_ns - clock_now();

	if (a->deadline_ns == 0)
		return -1;
	return left <= 0 ? 0 : (int)(left / NS_PER_MS) + 1;
}
