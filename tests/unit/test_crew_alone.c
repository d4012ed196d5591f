/* SPDX-License-Identifier: Apache-2.0 */
/* test_crew_alone.c - what a thread of the crew runs, and when another one is made, step
 * by step: no thread is made but by the test. See worker/rpc/crew.h. */
#include <semaphore.h>
#include <stdio.h>

#include "tests/unit/short_memory.h"

#include "tests/unit/lead_rig.h"
#include "worker/rpc/crew.h"

TestSuite(crew_alone, .timeout = 20);

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);
int __wrap_sem_wait(sem_t *sem);
int __real_pthread_join(pthread_t thread, void **value);
int __wrap_pthread_join(pthread_t thread, void **value);
int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);

/* --- threads ------------------------------------------------------------------------ */

#define MANY 20

static struct {
	void *(*fn)(void *);
	void *arg;
} thread[MANY];
static uintptr_t threads, tries, joined;
static int thread_sys; /* of those to come */

int
__wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg)
{
	cr_expect_null(attr);
	tries++;
	if (thread_sys != 0)
		return thread_sys;
	cr_assert_lt(threads, MANY);
	thread[threads].fn = fn;
	thread[threads].arg = arg;
	*t = (pthread_t)++threads;
	return 0;
}

int
__wrap_pthread_join(pthread_t t, void **value)
{
	if ((uintptr_t)t > MANY)
		return __real_pthread_join(t, value);
	cr_expect_eq((uintptr_t)t, ++joined);
	cr_expect_null(value);
	return 0;
}

/* The first thread begins in the test only after this. */
static unsigned sem_waits;

int
__wrap_sem_wait(sem_t *sem)
{
	(void)sem;
	return sem_waits++ == 0 ? -1 : 0;
}

static bool no_stack;

int
__wrap_pthread_getattr_np(pthread_t t, pthread_attr_t *attr)
{
	return no_stack ? EINVAL : __real_pthread_getattr_np(t, attr);
}

/* --- a crew -------------------------------------------------------------------------- */

static char ran[64];

static void
note(const char *text)
{
	size_t len = strlen(ran);

	snprintf(ran + len, sizeof(ran) - len, "%s", text);
}

#define RAN(text) \
	do { \
		cr_expect_str_eq(ran, text); \
		ran[0] = '\0'; \
	} while (0)

static void
note_begin(void)
{
	note("(");
}

static void
note_end(void)
{
	note(")");
}

static const struct crew_first first = { note_begin, note_end };

static void
open_crew(uint32_t limit)
{
	struct lead_place place = whole_place;

	place.work = crew_has_work;
	open_with(&place);
	cr_assert_eq(crew_open(limit, &first), 0);
	cr_expect_eq(sem_waits, 2);
	cr_expect_eq(threads, 1);
	cr_expect_eq(crew_limit(), limit);
	cr_expect_eq(crew_idle(), limit);
}

static void
note_late(void)
{
	note("late");
}

static void
close_crew(void)
{
	crew_close(0, note_late);
}

/* The life of thread @i, here. */
static void
live(unsigned i)
{
	cr_assert_lt(i, threads);
	cr_expect_null(thread[i].fn(thread[i].arg));
}

struct named {
	struct work work;
	const char *name;
	void (*then)(void);
};

static void
run_named(struct work *work)
{
	struct named *n = (struct named *)work;

	cr_expect(crew_is_member());
	note(n->name);
	if (n->then != NULL)
		n->then();
}

static bool
post(struct named *n, const char *name, void (*then)(void))
{
	*n = (struct named){ { .run = run_named }, name, then };
	return crew_post(&n->work);
}

/* --- its life ------------------------------------------------------------------------- */

Test(crew_alone, without_a_thread_there_is_no_crew)
{
	struct named a;

	cr_expect_not(crew_is_member());
	until_short = 1;
	cr_expect_eq(crew_open(2, &first), EAGAIN);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(tries, 0);
	cr_expect_not(post(&a, "a", NULL));
	thread_sys = EAGAIN;
	cr_expect_eq(crew_open(2, &first), EAGAIN);
	cr_expect_eq(tries, 1);
	cr_expect_eq(sem_waits, 0);
	cr_expect_not(post(&a, "a", NULL));
	RAN("");
}

Test(crew_alone, work_is_run_in_its_order_until_the_crew_is_closed)
{
	struct named a, b, c;

	open_crew(2);
	cr_expect_not(crew_has_work(NULL));
	cr_expect(post(&a, "a", NULL));
	cr_expect(crew_has_work(NULL));
	cr_expect(post(&b, "b", NULL));
	cr_expect(post(&c, "c", NULL));
	RAN("");
	on_sleep = close_crew;
	live(0);
	/* It waited for more, and its end was not. */
	RAN("(abclate)");
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(threads, 2);
	cr_expect_eq(joined, 2);
	cr_expect_eq(crew_idle(), 2);
	cr_expect(crew_is_member());
	cr_expect_not(post(&a, "a", NULL));
}

static struct named more, too_late;

static void
post_more_and_close(void)
{
	cr_expect(post(&more, "m", NULL));
	close_crew();
	cr_expect_not(post(&too_late, "n", NULL));
}

/* What was posted before the end is run yet. */
Test(crew_alone, its_end_runs_what_was_posted)
{
	open_crew(2);
	on_sleep = post_more_and_close;
	live(0);
	RAN("(latem)");
	cr_expect_eq(joined, 1);
}

/* Only the first one tells of the beginning and the end. */
Test(crew_alone, the_others_end_without_a_word)
{
	struct named a;

	open_crew(2);
	cr_expect(post(&a, "a", close_crew));
	live(0);
	RAN("(alate)");
	cr_expect_eq(threads, 2);
	live(1);
	RAN("");
}

static void
abandon(void)
{
	crew_abandon();
	cr_expect_not(post(&more, "m", NULL));
	close_crew();
}

Test(crew_alone, one_that_is_abandoned_takes_no_work)
{
	open_crew(2);
	on_sleep = abandon;
	live(0);
	RAN("(late)");
}

/* --- how much runs ---------------------------------------------------------------------- */

static struct named other;

static void
expect_one_runs(void)
{
	cr_expect_eq(crew_idle(), 1);
	cr_expect_not(crew_has_work(NULL));
	cr_expect(post(&other, "o", close_crew));
	cr_expect(crew_has_work(NULL));
	/* It waits: another may run. */
	crew_wait_begin();
	cr_expect_eq(crew_idle(), 2);
	crew_wait_end();
	cr_expect_eq(crew_idle(), 1);
}

Test(crew_alone, who_waits_in_a_piece_of_work_does_not_count)
{
	struct named a;

	open_crew(2);
	crew_wait_begin(); /* not of the crew */
	crew_wait_end();
	cr_expect_eq(crew_idle(), 2);
	post(&a, "a", expect_one_runs);
	live(0);
	RAN("(aolate)");
}

static void
expect_the_limit(void)
{
	unsigned rings = lead.stirred;

	atomic_store(&lead.sleepers, 1);
	cr_expect_eq(crew_idle(), 0);
	cr_expect(post(&other, "o", close_crew));
	cr_expect_eq(atomic_load(&lead.stirred), rings + 1);
	/* As many run as may. */
	cr_expect_not(crew_has_work(NULL));
	crew_wait_begin();
	cr_expect(crew_has_work(NULL));
	cr_expect_eq(atomic_load(&lead.stirred), rings + 2);
	crew_wait_end();
	cr_expect_not(crew_has_work(NULL));
	cr_expect_eq(crew_idle(), 0);
	atomic_store(&lead.sleepers, 0);
}

Test(crew_alone, no_more_run_than_the_limit_says)
{
	struct named a;

	open_crew(1);
	post(&a, "a", expect_the_limit);
	live(0);
	RAN("(aolate)");
}

/* Another is to run what is left. */
Test(crew_alone, who_runs_one_wakes_another_for_the_next)
{
	struct named a, b;

	open_crew(3);
	post(&a, "a", NULL);
	post(&b, "b", close_crew);
	atomic_store(&lead.sleepers, 1);
	live(0);
	RAN("(ablate)");
	/* Of lead_busy() for each, for the next, and of the end. */
	cr_expect_eq(atomic_load(&lead.stirred), 2 + 1 + 1);
}

static unsigned depth;

static void
go_deeper(void)
{
	static struct named deeper[MANY];

	/* A thread that is not busy is always there. */
	cr_expect_eq(threads, depth + 2);
	depth++;
	if (depth == 18)
		close_crew();
	else if (post(&deeper[depth], "", go_deeper))
		live(depth);
}

Test(crew_alone, a_thread_is_made_whenever_all_are_busy)
{
	struct named a;

	open_crew(MANY);
	post(&a, "", go_deeper);
	live(0);
	cr_expect_eq(threads, 19);
	cr_expect_eq(joined, 19);
}

/* --- without more threads ------------------------------------------------------------------ */

static bool helped;

static void
help_other(void)
{
	cr_expect(post(&other, "o", NULL));
	crew_wait_begin();
	helped = crew_help(NULL);
	crew_wait_end();
	note(";");
}

static void
help_and_close(void)
{
	help_other();
	cr_expect_eq(crew_idle(), 0);
	close_crew();
}

static void
lend_a_hand(uint32_t limit)
{
	struct named a;

	open_crew(limit);
	thread_sys = EAGAIN;
	post(&a, "a", help_and_close);
	live(0);
}

Test(crew_alone, who_waits_runs_what_no_other_thread_can)
{
	lend_a_hand(1);
	RAN("(ao;late)");
	cr_expect(helped);
	cr_expect_eq(tries, 1 + 2);
	cr_expect_eq(joined, 1);
}

static void
help_in_vain(void)
{
	/* Nothing is there. */
	crew_wait_begin();
	cr_expect_not(crew_help(NULL));
	/* A thread can be made again. */
	cr_expect(post(&other, "o", close_crew));
	thread_sys = 0;
	cr_expect_not(crew_help(NULL));
	cr_expect_eq(threads, 2);
	cr_expect_not(crew_help(NULL));
	cr_expect_eq(threads, 2);
	crew_wait_end();
	note(";");
}

Test(crew_alone, who_waits_helps_only_where_threads_are_short)
{
	struct named a;

	open_crew(1);
	cr_expect_not(crew_help(NULL));
	thread_sys = EAGAIN;
	post(&a, "a", help_in_vain);
	live(0);
	RAN("(a;olate)");
	cr_expect_not(crew_help(NULL));
}

static void
help_at_the_limit(void)
{
	cr_expect(post(&other, "o", close_crew));
	cr_expect_not(crew_help(NULL));
	note(";");
}

Test(crew_alone, no_more_help_than_the_limit_says)
{
	struct named a;

	open_crew(1);
	thread_sys = EAGAIN;
	post(&a, "a", help_at_the_limit);
	live(0);
	RAN("(a;olate)");
}

static void
note_why(struct work *work, const char *why)
{
	cr_expect_eq(work, &other.work);
	cr_expect_str_eq(why,
		"no thread can be made for it (RLIMIT_NPROC, ulimit -u, or pids.max)");
	note("r");
}

static void
help_refuses(void)
{
	other = (struct named){ { .run = run_named, .refuse = note_why }, "o",
		NULL };
	cr_expect(crew_post(&other.work));
	crew_wait_begin();
	cr_expect(crew_help(NULL));
	cr_expect_not(crew_help(NULL)); /* it is gone */
	crew_wait_end();
	cr_expect_eq(crew_idle(), 0);
	close_crew();
}

Test(crew_alone, where_there_is_no_stack_work_is_refused)
{
	struct named a;

	no_stack = true;
	open_crew(1);
	thread_sys = EAGAIN;
	post(&a, "a", help_refuses);
	live(0);
	RAN("(arlate)");
}

static void
help_later(void)
{
	static struct named third;

	cr_expect(post(&other, "o", NULL));
	cr_expect(post(&third, "t", close_crew));
	crew_wait_begin();
	cr_expect_not(crew_help(NULL));
	cr_expect(crew_has_work(NULL));
	crew_wait_end();
	cr_expect_eq(crew_idle(), 0);
	note(";");
}

/* What cannot be refused stays, and is the next. */
Test(crew_alone, what_cannot_be_refused_waits)
{
	struct named a;

	no_stack = true;
	open_crew(1);
	thread_sys = EAGAIN;
	post(&a, "a", help_later);
	live(0);
	RAN("(a;otlate)");
}

/* --- threads that end ------------------------------------------------------------------------ */

static void
end_thread(void)
{
	pthread_exit(NULL);
}

static void
note_ended(struct work *work)
{
	note(((struct named *)work)->name);
	note("!");
}

static void *
live_in_thread(void *unused)
{
	(void)unused;
	live(0);
	note("never");
	return NULL;
}

static void
run_in_thread(void)
{
	pthread_t t;

	cr_assert_eq(__real_pthread_create(&t, NULL, live_in_thread, NULL), 0);
	cr_assert_eq(__real_pthread_join(t, NULL), 0);
}

/* The thread is not its own: it goes on. */
Test(crew_alone, a_thread_that_is_ended_by_its_work_goes_on)
{
	struct named a, b, c, d;

	open_crew(1);
	a = (struct named){ { .run = run_named, .ended_thread = note_ended },
		"a", end_thread };
	cr_expect(crew_post(&a.work));
	post(&b, "b", NULL);
	post(&c, "c", end_thread);
	post(&d, "d", close_crew);
	run_in_thread();
	RAN("(aa!bcdlate)");
	cr_expect_eq(crew_idle(), 1);
	cr_expect_eq(joined, 2);
}

/* --- patience ---------------------------------------------------------------------------------- */

static unsigned naps;

static void
nap(void)
{
	naps++;
	cr_expect_eq(slept.value, 1);
	cr_expect_eq(slept.until, 1000 + 100);
	now += 40;
}

Test(crew_alone, its_end_is_waited_for_with_patience)
{
	struct named a;

	open_crew(1);
	on_sleep = nap;
	crew_close(100, note_late);
	cr_expect_eq(naps, 3);
	RAN("late");
	now = 1000;
	naps = 0;
	live(0); /* for the next end finds that all have ended */
	RAN("()");
	crew_close(100, note_late);
	cr_expect_eq(naps, 0);
	RAN("");
	cr_expect_not(post(&a, "a", NULL));
}

static void
all_end(void)
{
	on_sleep = NULL;
	live(0);
}

Test(crew_alone, who_ends_in_time_is_not_late)
{
	open_crew(1);
	on_sleep = all_end;
	crew_close(100, note_late);
	RAN("()");
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(joined, 1);
	/* Nobody need be told. */
	sem_waits = 0;
	threads = joined = 0;
	open_crew(1);
	crew_close(0, NULL);
	RAN("");
	cr_expect_eq(joined, 1);
}
