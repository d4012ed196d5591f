/* SPDX-License-Identifier: Apache-2.0 */
/* test_inside.c - threads that are inside the agent, who waits until none is, and
 * forks. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "worker/rpc/inside.h"

TestSuite(inside, .timeout = 20);

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_pthread_key_create(pthread_key_t *key, void (*end)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*end)(void *));

/* --- system calls ------------------------------------------------------------------ */

static _Atomic unsigned registered, barriers, wakes;
static unsigned sleeps;
static bool no_barrier;
static void (*on_sleep)(void);

long
__wrap_syscall(long number, ...)
{
	long arg[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_membarrier) {
		if (no_barrier)
			return -1;
		if (arg[0] == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
			registered++;
		else if (arg[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
			barriers++;
	}
	if (number == SYS_futex && (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
		wakes++;
	if (number == SYS_futex &&
		(arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
		if (++sleeps > 100)
			abort();
		cr_expect_eq(arg[3], 0); /* there is no limit */
		if (on_sleep != NULL)
			on_sleep();
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
		arg[5]);
}

static unsigned keys;
static int key_sys;

int
__wrap_pthread_key_create(pthread_key_t *key, void (*end)(void *))
{
	keys++;
	return key_sys != 0 ? key_sys : __real_pthread_key_create(key, end);
}

/* --- another thread ------------------------------------------------------------------ */

static struct other {
	pthread_t thread;
	sem_t do_next, did;
	void (*next)(void); /* NULL: it ends */
} other;

static void *
run_other(void *unused)
{
	(void)unused;
	for (;;) {
		while (sem_wait(&other.do_next) == -1)
			continue;
		if (other.next == NULL)
			return NULL;
		other.next();
		sem_post(&other.did);
	}
}

static void
start_other(void)
{
	sem_init(&other.do_next, 0, 0);
	sem_init(&other.did, 0, 0);
	cr_assert_eq(pthread_create(&other.thread, NULL, run_other, NULL), 0);
}

static void
let_other(void (*next)(void))
{
	other.next = next;
	sem_post(&other.do_next);
	if (next == NULL)
		pthread_join(other.thread, NULL);
	else
		while (sem_wait(&other.did) == -1)
			continue;
}

static unsigned looks;

static void
look(void *ctx)
{
	cr_expect_eq(ctx, &looks);
	looks++;
}

static void
await_empty(void)
{
	looks = sleeps = 0;
	inside_await_empty(look, &looks);
}

static void
other_leaves(void)
{
	let_other(inside_leave);
}

static void
other_ends(void)
{
	let_other(NULL);
}

/* --- waiting --------------------------------------------------------------------------- */

Test(inside, who_waits_does_not_wait_for_itself)
{
	await_empty();
	cr_expect_eq(looks, 1);
	cr_expect_eq(sleeps, 0);
	inside_enter();
	await_empty();
	cr_expect_eq(looks, 1);
	cr_expect_eq(sleeps, 0);
	inside_leave();
	cr_expect_eq(wakes, 0);
	cr_expect_eq(keys, 1);
}

Test(inside, another_is_waited_for_until_it_has_left_as_often_as_it_came)
{
	/* Who was there before, and is not now, changes nothing. */
	inside_enter();
	inside_leave();
	start_other();
	let_other(inside_enter);
	let_other(inside_enter);
	on_sleep = other_leaves;
	await_empty();
	cr_expect_eq(looks, 3);
	cr_expect_eq(sleeps, 2);
	cr_expect_eq(wakes, 2);
	/* Nobody waits any more. */
	let_other(inside_enter);
	let_other(inside_leave);
	cr_expect_eq(wakes, 2);
	await_empty();
	cr_expect_eq(looks, 1);
	cr_expect_eq(sleeps, 0);
	other_ends();
	await_empty();
	cr_expect_eq(sleeps, 0);
}

/* It was ended inside, such as by a callback. */
static void
other_ends_and_somebody_leaves(void)
{
	other_ends();
	inside_leave();
}

Test(inside, a_thread_that_has_ended_is_not_waited_for)
{
	start_other();
	let_other(inside_enter);
	inside_enter();
	on_sleep = other_ends_and_somebody_leaves;
	await_empty();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(looks, 2);
	start_other();
	let_other(inside_enter);
	other_ends();
	await_empty();
	cr_expect_eq(sleeps, 0);
	cr_expect_eq(keys, 1);
}

static void
enter_short(void)
{
	until_short = 1;
	inside_enter();
	cr_expect_eq(until_short, 0);
}

static void
enter_unnamed(void)
{
	until_short = 1;
	inside_enter();
	/* It is known as one for whom there was no memory. */
	cr_expect_eq(until_short, 1);
	until_short = 0;
}

static void
enter_named(void)
{
	until_short = 2;
	inside_enter();
	cr_expect_eq(until_short, 1);
	until_short = 0;
}

Test(inside, one_for_whom_there_is_no_memory_is_waited_for)
{
	start_other();
	let_other(enter_short);
	let_other(enter_unnamed);
	on_sleep = other_leaves;
	await_empty();
	cr_expect_eq(looks, 3);
	cr_expect_eq(sleeps, 2);
	/* Afterwards it may be known by itself. */
	let_other(enter_named);
	await_empty();
	cr_expect_eq(sleeps, 1);
	let_other(enter_unnamed);
	let_other(inside_leave);
	await_empty();
	cr_expect_eq(sleeps, 0);
	other_ends();
}

Test(inside, without_a_key_threads_are_known_all_the_same)
{
	key_sys = EAGAIN;
	start_other();
	let_other(inside_enter);
	on_sleep = other_leaves;
	await_empty();
	cr_expect_eq(sleeps, 1);
	key_sys = 0;
	inside_enter();
	inside_leave();
	cr_expect_eq(keys, 2);
	inside_enter();
	inside_leave();
	cr_expect_eq(keys, 2);
	other_ends();
}

/* --- barriers ---------------------------------------------------------------------------- */

Test(inside, who_waits_makes_others_see_it_where_it_can)
{
	start_other();
	await_empty();
	cr_expect_eq(barriers, 0);
	inside_open();
	cr_expect_eq(registered, 1);
	let_other(inside_enter);
	on_sleep = other_leaves;
	await_empty();
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(barriers, 2);
	no_barrier = true;
	inside_open();
	let_other(inside_enter);
	await_empty();
	cr_expect_eq(sleeps, 1);
	no_barrier = false;
	await_empty();
	cr_expect_eq(barriers, 2);
	inside_order();
	other_ends();
}

/* --- forks -------------------------------------------------------------------------------- */

/* in_child() - the exit code of a child that runs @fn. */
static int
in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(10);
		_exit(fn());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int
not_forked(void)
{
	struct xr_error err = { 0 };

	return inside_not_forked(&err) == XR_OK ? 0 : 1;
}

static int
was_forked(void)
{
	struct xr_error err = { 0 };

	if (inside_not_forked(&err) != XR_E_STATE)
		return 1;
	return strcmp(err.text,
		       "this process was forked: the agent is its parent's") !=
		0;
}

static void
leave_the_child(void)
{
	_exit(3);
}

static int
is_empty(void)
{
	on_sleep = leave_the_child;
	await_empty();
	return sleeps == 0 && looks == 1 ? 0 : 1;
}

Test(inside, a_fork_of_an_open_agent_is_told_apart)
{
	cr_expect_eq(in_child(not_forked), 0);
	inside_open();
	cr_expect_eq(in_child(was_forked), 0);
	cr_expect_eq(not_forked(), 0);
	inside_close();
	cr_expect_eq(in_child(not_forked), 0);
	inside_open();
	cr_expect_eq(in_child(was_forked), 0);
	inside_close();
}

/* There is but the thread that forked. */
Test(inside, after_a_fork_nobody_else_is_inside)
{
	inside_open();
	start_other();
	let_other(inside_enter);
	cr_expect_eq(in_child(is_empty), 0);
	inside_enter();
	cr_expect_eq(in_child(is_empty), 0);
	inside_leave();
	let_other(inside_leave);
	other_ends();
	inside_close();
}
