/* SPDX-License-Identifier: Apache-2.0 */
/* test_answer.c - a supervisor that does not react when the job is told to end. */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/keeper/answer.h"
#include "launcher/keeper/keeper.h"
#include "proc/descend.h"

#define S     NS_PER_S
#define BEGIN (100 * S) /* of the clock */

static int64_t now = BEGIN;
static struct keeper_page page = { .heard = 7 };
static struct answer a;
static char state; /* of the process; 0: there is none */

int64_t __wrap_clock_now(void);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *out);

int64_t
__wrap_clock_now(void)
{
	return now;
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *out)
{
	cr_expect_eq(pid, 77);
	out->state = state != 0 ? state : 'R';
	return state != 0;
}

Test(answer, it_has_ten_seconds_from_the_first_signal)
{
	answer_expect(&a, &page);
	cr_expect_eq(a.deadline_ns, BEGIN + 10 * S);
	cr_expect_eq(a.heard, 7);
	now += S;
	answer_note(&page);
	cr_expect_eq(page.heard, 8);
	answer_expect(&a, &page);
	cr_expect_eq(a.deadline_ns, BEGIN + 10 * S);
	cr_expect_eq(a.heard, 7, "the first is answered");
	answer_expect_soon(&a, &page);
	cr_expect_eq(a.deadline_ns, BEGIN + 2 * S);
	cr_expect_eq(a.heard, 8);
}

Test(answer, who_reads_its_signals_has_not_missed_it)
{
	answer_expect(&a, &page);
	answer_note(&page);
	now += 10 * S;
	cr_expect_not(answer_missed(&a, &page));
	cr_expect_eq(a.deadline_ns, 0);
}

Test(answer, who_does_not_has)
{
	answer_expect(&a, &page);
	now += 11 * S - 1;
	cr_expect(answer_missed(&a, &page));
	cr_expect_eq(a.deadline_ns, 0);
}

/* That looks a second late: it was stopped itself. */
Test(answer, a_keeper_that_was_stopped_grants_the_time_again)
{
	answer_expect(&a, &page);
	now += 11 * S;
	cr_expect_not(answer_missed(&a, &page));
	cr_expect_eq(a.deadline_ns, BEGIN + 21 * S);
	cr_expect_eq(a.heard, 7);
	now += 10 * S;
	cr_expect(answer_missed(&a, &page));
}

Test(answer, the_time_for_poll_is_not_too_short)
{
	cr_expect_eq(answer_timeout(&a), -1);
	a.deadline_ns = BEGIN + NS_PER_MS - 1;
	cr_expect_eq(answer_timeout(&a), 1);
	a.deadline_ns = BEGIN + 10 * S;
	cr_expect_eq(answer_timeout(&a), 10001);
	a.deadline_ns = BEGIN + 1;
	cr_expect_eq(answer_timeout(&a), 1);
	a.deadline_ns = BEGIN;
	cr_expect_eq(answer_timeout(&a), 0);
	a.deadline_ns = BEGIN - 5 * S;
	cr_expect_eq(answer_timeout(&a), 0);
}

Test(answer, a_process_that_is_gone_or_a_zombie_is_dead)
{
	cr_expect(answer_is_dead(77));
	state = 'Z';
	cr_expect(answer_is_dead(77));
	state = 'X';
	cr_expect(answer_is_dead(77));
	state = 't';
	cr_expect_not(answer_is_dead(77));
}
