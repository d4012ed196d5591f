/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_sleep.c - how long the thread of the TCP carrier sleeps (worker/net/loop.c),
 * what it takes for the end of a connection (worker/net/conn.c), when nobody can be
 * accepted, and when it dials again (worker/net/meet.c). The test has the clock. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/unit/net_pair.h"
#include "worker/net/net.h"
#include "worker/net/where.h"

TestSuite(net_sleep, .timeout = 90);

#define SPINS 1000 /* turns without an event in a row */

/* Later than that of the kernel: a wait by that one does not end in the meantime. */
static _Atomic int64_t now = INT64_C(1) << 60;

/* ns that the next turn takes that does not wait. */
static _Atomic int64_t interrupts;

/* The thread of the only carrier, as it sleeps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slept = PTHREAD_COND_INITIALIZER;
static bool sleeps;
static int ms;         /* for so long */
static unsigned spins; /* turns that did not wait and brought no event */

static _Atomic unsigned fails; /* recv() that fail ... */
static _Atomic int fails_with; /* ... with this */
static _Atomic int
	refuses; /* the next accept4() fails with this; 0: it is done */

static _Atomic int unreached;  /* connect() fails with this; 0: it is done */
static _Atomic unsigned dials; /* connect() that failed */

int64_t __wrap_clock_now(void);
int __wrap_epoll_wait(int fd, struct epoll_event *at, int most, int timeout);
int __real_epoll_wait(int fd, struct epoll_event *at, int most, int timeout);
ssize_t __wrap_recv(int fd, void *to, size_t len, int flags);
ssize_t __real_recv(int fd, void *to, size_t len, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags);
int __real_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);
int __real_connect(int fd, const struct sockaddr *to, socklen_t len);

int64_t
__wrap_clock_now(void)
{
	return atomic_load(&now);
}

/* A sleep ends with an event only: the clock does not move by itself. */
int
__wrap_epoll_wait(int fd, struct epoll_event *at, int most, int timeout)
{
	int n;

	pthread_mutex_lock(&lock);
	sleeps = timeout != 0 || spins > SPINS;
	ms = timeout;
	pthread_cond_signal(&slept);
	pthread_mutex_unlock(&lock);
	n = __real_epoll_wait(fd, at, most, timeout > 0 ? -1 : timeout);
	if (timeout == 0)
		atomic_fetch_add(&now, atomic_exchange(&interrupts, 0));
	pthread_mutex_lock(&lock);
	sleeps = sleeps && n <= 0;
	spins = timeout == 0 && n == 0 ? spins + 1 : 0;
	pthread_mutex_unlock(&lock);
	return n;
}

ssize_t
__wrap_recv(int fd, void *to, size_t len, int flags)
{
	if (atomic_load(&fails) == 0)
		return __real_recv(fd, to, len, flags);
	atomic_fetch_sub(&fails, 1);
	errno = atomic_load(&fails_with);
	return -1;
}

int
__wrap_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	int sys = atomic_exchange(&refuses, 0);

	if (sys == 0)
		return __real_accept4(fd, from, len, flags);
	errno = sys;
	return -1;
}

int
__wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	int sys = atomic_load(&unreached);

	if (sys == 0)
		return __real_connect(fd, to, len);
	atomic_fetch_add(&dials, 1);
	errno = sys;
	return -1;
}

/* How long the thread sleeps in ms once it has looked at all there is; -1: until an
 * event. */
static int
sleep_of(struct side *s)
{
	int got;

	net_catch_up(s->self);
	pthread_mutex_lock(&lock);
	while (!sleeps)
		pthread_cond_wait(&slept, &lock);
	got = ms;
	pthread_mutex_unlock(&lock);
	return got;
}

static void
expect_sleep(struct side *s, int wanted)
{
	int got = sleep_of(s);

	cr_expect_eq(got, wanted, "%d ms, and not %d", got, wanted);
}

/* One that comes, and says nothing. */
static int
caller(struct side *s)
{
	struct where where;
	int fd;

	cr_assert_eq(where_parse(s->address, &where, &err), XR_OK);
	fd = socket(where.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(__real_connect(fd, &where.at.any, where.len), 0);
	return fd;
}

/* One that is accepted, and says nothing. */
static int
stranger(struct side *s)
{
	struct net_carrier *c = s->self;
	uint32_t before = atomic_load(&c->conns);
	int fd = caller(s);

	while (atomic_load(&c->conns) == before)
		sched_yield();
	return fd;
}

/* 0: it was closed; -1: it is open. */
static ssize_t
state_of(int fd)
{
	return __real_recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT);
}

Test(net_sleep, the_thread_sleeps_until_a_stranger_has_had_his_time)
{
	struct side *s = side_open(1);
	int fd, other;

	expect_sleep(s, -1);
	fd = stranger(s);
	expect_sleep(s, 2000);
	atomic_fetch_add(&now, NS_PER_MS / 2);
	other = stranger(s);
	expect_sleep(s, 2000);
	atomic_fetch_add(&now, NET_GREET_NS - NS_PER_MS / 2 - 1);
	expect_sleep(s, 1);
	cr_expect_eq(state_of(fd), -1);
	atomic_fetch_add(&now, 1);
	expect_sleep(s, 1);
	cr_expect_eq(state_of(fd), 0);
	cr_expect_eq(state_of(other), -1);
	atomic_fetch_add(&now, NS_PER_MS / 2);
	expect_sleep(s, -1);
	cr_expect_eq(state_of(other), 0);
	close(fd);
	close(other);
	side_close(s);
}

/* A thread that had no processor closes no connection for it. */
Test(net_sleep, a_turn_that_was_interrupted_is_no_time_of_a_stranger)
{
	struct side *s = side_open(1);
	int fd;

	expect_sleep(s, -1);
	fd = stranger(s);
	expect_sleep(s, 2000);
	atomic_store(&interrupts, 20 * NS_PER_MS);
	expect_sleep(s, 1980);
	atomic_store(&interrupts, 20 * NS_PER_MS + 1);
	expect_sleep(s, 1980);
	atomic_store(&interrupts, 2 * NET_GREET_NS);
	expect_sleep(s, 1980);
	cr_expect_eq(state_of(fd), -1);
	close(fd);
	side_close(s);
}

/* What it slept longer than it would. */
Test(net_sleep, a_sleep_that_was_too_long_is_no_time_of_a_stranger)
{
	struct side *s = side_open(1);
	int fd, other;

	expect_sleep(s, -1);
	fd = stranger(s);
	expect_sleep(s, 2000);
	atomic_fetch_add(&now, 100 * NS_PER_MS);
	other = stranger(s);
	expect_sleep(s, 1900);
	atomic_fetch_add(&now, NET_GREET_NS - 100 * NS_PER_MS + NS_PER_S);
	expect_sleep(s, 100);
	cr_expect_eq(state_of(fd), 0);
	cr_expect_eq(state_of(other), -1);
	close(fd);
	close(other);
	side_close(s);
}

static void
say_with(unsigned n, int sys)
{
	atomic_store(&fails_with, sys);
	atomic_store(&fails, n);
	mate_say(to_two, 2, "hello");
	UNTIL(two, two->mates[1].delivered == 2 || two->mates[1].lost == 1);
	atomic_store(&fails, 0);
}

static void
meet(void)
{
	pair_up();
	mate_say(to_two, 1, "the link is up");
	UNTIL(two, two->mates[1].delivered == 1);
}

Test(net_sleep, what_is_not_read_yet_is_read_later)
{
	static const int sys[] = { EAGAIN, EINTR };

	for (int i = 0; i < 2; i++) {
		meet();
		say_with(3, sys[i]);
		cr_expect_eq(two->mates[1].delivered, 2, "%s",
			two->mates[1].why);
		cr_expect_eq(two->mates[1].lost, 0);
		pair_down();
	}
}

Test(net_sleep, what_cannot_be_read_is_lost)
{
	meet();
	say_with(1, ECONNRESET);
	cr_expect_eq(two->mates[1].delivered, 1);
	cr_expect_not_null(strstr(two->mates[1].why,
				   "Connection reset by peer"),
		"%s", two->mates[1].why);
	pair_down();
}

/* --- who cannot be accepted ------------------------------------------------ */

static uint32_t
conns_of(const struct side *s)
{
	const struct net_carrier *c = s->self;

	return atomic_load(&c->conns);
}

/* Nor if another leaves meanwhile. net_catch_up() waits for the thread only where there is
 * a connection. */
Test(net_sleep, without_descriptors_or_memory_nobody_is_accepted_for_a_while)
{
	static const int sys[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS };

	for (int i = 0; i < 4; i++) {
		struct side *s = side_open(1);
		int first = stranger(s), leaves = stranger(s), fd;

		expect_sleep(s, 2000);
		atomic_store(&refuses, sys[i]);
		fd = caller(s);
		while (atomic_load(&refuses) != 0)
			sched_yield();
		expect_sleep(s, 100);
		cr_expect_eq(conns_of(s), 2);
		close(leaves);
		expect_sleep(s, 100);
		cr_expect_eq(conns_of(s), 1);
		atomic_fetch_add(&now, NET_DEAF_NS - 1);
		expect_sleep(s, 1);
		cr_expect_eq(conns_of(s), 1);
		atomic_fetch_add(&now, 1);
		expect_sleep(s, 1900);
		cr_expect_eq(conns_of(s), 2);
		close(first);
		close(fd);
		side_close(s);
	}
}

Test(net_sleep, after_another_error_who_comes_is_accepted_at_once)
{
	static const int sys[] = { EAGAIN, ECONNABORTED, EINTR };

	for (int i = 0; i < 3; i++) {
		struct side *s = side_open(1);
		int fd;

		expect_sleep(s, -1);
		atomic_store(&refuses, sys[i]);
		fd = stranger(s);
		expect_sleep(s, 2000);
		cr_expect_eq(atomic_load(&refuses), 0);
		close(fd);
		side_close(s);
	}
}

/* Those who came first have less time while all places are taken, as they are again when
 * the next is accepted. */
Test(net_sleep, one_more_than_there_are_places_waits_for_one)
{
	struct side *s = side_open(1);
	int fd[NET_STRANGERS], more;

	expect_sleep(s, -1);
	for (int i = 0; i < NET_STRANGERS - 1; i++)
		fd[i] = stranger(s);
	expect_sleep(s, 2000);
	atomic_fetch_add(&now, NS_PER_MS);
	fd[NET_STRANGERS - 1] = stranger(s);
	expect_sleep(s, 249);
	more = caller(s);
	atomic_fetch_add(&now, NET_CROWD_NS - NS_PER_MS - 1);
	expect_sleep(s, 1);
	cr_expect_eq(conns_of(s), NET_STRANGERS);
	cr_expect_eq(state_of(fd[0]), -1);
	atomic_fetch_add(&now, 1);
	expect_sleep(s, 1750);
	cr_expect_eq(conns_of(s), NET_STRANGERS - 1);
	cr_expect_eq(state_of(fd[0]), 0);
	cr_expect_eq(state_of(fd[1]), 0);
	cr_expect_eq(state_of(fd[2]), -1);
	cr_expect_eq(state_of(more), -1);
	for (int i = 0; i < NET_STRANGERS; i++)
		close(fd[i]);
	close(more);
	side_close(s);
}

/* --- who cannot be reached ------------------------------------------------- */

static unsigned
lost(struct mate *m)
{
	unsigned n;

	pthread_mutex_lock(&m->side->lock);
	n = m->lost;
	pthread_mutex_unlock(&m->side->lock);
	return n;
}

/* Dials, which fails with @sys. */
static struct mate *
dial_in_vain(struct side *s, int sys)
{
	atomic_store(&dials, 0);
	atomic_store(&unreached, sys);
	return side_dial(s, s->address, 2, 1);
}

Test(net_sleep, an_error_of_the_moment_is_no_reason_to_give_up)
{
	static const int sys[] = { EAGAIN, ECONNRESET, EINTR, EMFILE, ENFILE,
		ENOBUFS, ENOMEM, ETIMEDOUT };

	for (int i = 0; i < 8; i++) {
		struct side *s = side_open(1);
		int fd = stranger(s);
		struct mate *m = dial_in_vain(s, sys[i]);

		expect_sleep(s, 10);
		cr_expect_eq(atomic_load(&dials), 1);
		atomic_fetch_add(&now, NET_PAUSE_NS - 1);
		expect_sleep(s, 1);
		cr_expect_eq(atomic_load(&dials), 1);
		cr_expect_eq(lost(m), 0);
		mate_close(m);
		close(fd);
		side_close(s);
	}
}

Test(net_sleep, another_error_is_told_at_once)
{
	static const int sys[] = { ECONNREFUSED, EHOSTUNREACH, EACCES };

	for (int i = 0; i < 3; i++) {
		struct side *s = side_open(1);
		int fd = stranger(s);
		struct mate *m = dial_in_vain(s, sys[i]);

		UNTIL(s, m->lost == 1);
		expect_sleep(s, 2000);
		cr_expect_eq(atomic_load(&dials), 1);
		cr_expect_not_null(strstr(m->why, strerrordesc_np(sys[i])),
			"%s", m->why);
		mate_close(m);
		close(fd);
		side_close(s);
	}
}

/* After 10, 20, 40 ms, and so on, up to 500, and for 10 s. The strangers are there for
 * net_catch_up(). */
Test(net_sleep, the_pause_between_tries_doubles_and_tries_have_an_end)
{
	struct side *s = side_open(1);
	int pause = 10, past = 0, fd = stranger(s);
	struct mate *m = dial_in_vain(s, ETIMEDOUT);
	unsigned count = 1;

	while (past + pause < 10000) {
		int other = stranger(s);

		close(fd);
		fd = other;
		expect_sleep(s, pause);
		cr_expect_eq(atomic_load(&dials), count);
		cr_assert_eq(lost(m), 0);
		atomic_fetch_add(&now, pause * NS_PER_MS);
		past += pause;
		count++;
		pause = pause * 2 < 500 ? pause * 2 : 500;
	}
	net_catch_up(s->self);
	UNTIL(s, m->lost == 1);
	cr_expect_eq(past, 9630);
	cr_expect_eq(atomic_load(&dials), count);
	cr_expect_not_null(strstr(m->why, "Connection timed out"), "%s",
		m->why);
	mate_close(m);
	close(fd);
	side_close(s);
}
