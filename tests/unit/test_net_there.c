/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_there.c - whether somebody still lives at an address of TCP
 * (worker/net/there.c). The test has the clock, and decides on the system calls. */
#include <poll.h>
#include <stdatomic.h>

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "tests/unit/folder.h"
#include "tests/unit/net_rig.h"
#include "tests/unit/sys_hook.h"
#include "worker/net/greet.h"

TestSuite(net_there, .timeout = 90);

static _Atomic int64_t now = 1000 * NS_PER_S;

int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return atomic_load(&now);
}

/* --- what its system calls do ------------------------------------------------ */

static struct {
	int nr; /* the call that fails; 0: none */
	int sys;
	int events;     /* polls for these end without; 0: none do */
	int64_t ns;     /* pass while it connects, or before an answer comes */
	unsigned stirs; /* polls that a signal interrupts */
	size_t piece;   /* bytes that a recv() gives; 0: what it is asked for */
	bool waits;     /* for an answer, whatever the patience */
	/* What was seen of it. */
	long out_ms, in_ms; /* the patience of the last poll; -1: none */
	unsigned polls, reads;
} calls;

static int dialled; /* the descriptor that it connects */

static long
on_poll(const long arg[5])
{
	struct pollfd *p = (struct pollfd *)arg[0];

	if (p->fd != dialled)
		return 0;
	NEED(++calls.polls < 1000); /* it would go on for ever */
	*(p->events == POLLOUT ? &calls.out_ms : &calls.in_ms) = arg[2];
	if (calls.stirs > 0) {
		calls.stirs--;
		atomic_fetch_add(&now, calls.ns);
		return -EINTR;
	}
	if (p->events == calls.events)
		return -ETIMEDOUT;
	if (calls.waits && poll(p, 1, -1) != 1)
		return -EIO;
	return 0;
}

static long
on_call(int nr, const long arg[5])
{
	if (nr == SYS_poll)
		return on_poll(arg);
	if (nr == SYS_connect) {
		dialled = (int)arg[0];
		if (calls.stirs == 0)
			atomic_fetch_add(&now, calls.ns);
	}
	if (nr == SYS_recvfrom && arg[0] == dialled) {
		NEED(++calls.reads < 1000);
		if (calls.piece > 0)
			return recv((int)arg[0], (void *)arg[1], calls.piece,
				0);
	}
	if (nr != calls.nr || (nr == SYS_sendto && arg[0] != dialled))
		return 0;
	return -calls.sys;
}

/* Of this thread, and not of the carriers that there are. */
static void
trap(void)
{
	static const int set[] = { SYS_socket, SYS_connect, SYS_poll,
		SYS_getrandom, SYS_sendto, SYS_recvfrom };

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		sys_trap(set[i]);
}

/* --- who asks ---------------------------------------------------------------- */

static struct side *asks, *lives;

static enum xr_there
there(const char *address, uint32_t id, uint64_t incarnation)
{
	int before = folder_entries("/proc/self/fd");
	enum xr_there got;

	dialled = -1;
	calls.out_ms = calls.in_ms = -1;
	calls.polls = calls.reads = 0;
	sys_hook = on_call;
	got = tcp_carrier.there(asks->self, address, id, incarnation);
	sys_hook = NULL;
	/* The other end closes its own, but later. */
	EXPECT(dialled == -1 || fcntl(dialled, F_GETFD) == -1);
	if (lives == NULL)
		EXPECT_EQ(folder_entries("/proc/self/fd"), before);
	return got;
}

/* A port at which the kernel takes connections, and nobody speaks. */
static int
mute(char *address, size_t cap)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(bind(fd, (struct sockaddr *)&at, len) == 0);
	NEED(listen(fd, 10) == 0);
	NEED(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	snprintf(address, cap, "tcp:127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

static struct side *
living(uint64_t incarnation, const uint8_t *secret)
{
	struct side *s = side_new(2);

	s->opts.incarnation = incarnation;
	s->opts.secret = secret;
	side_start(s);
	return s;
}

/* --- an agent answers -------------------------------------------------------- */

FORKED_TEST(net_there, only_who_is_meant_and_in_the_life_that_is_meant_is_there)
{
	asks = side_open(1);
	lives = living(7, secret_a);
	trap();
	calls.waits = true;
	EXPECT_EQ(there(lives->address, 2, 7), XR_THERE_YES);
	EXPECT_EQ(there(lives->address, 2, 6), XR_THERE_NO);
	EXPECT_EQ(there(lives->address, 2, 8), XR_THERE_NO);
	EXPECT_EQ(there(lives->address, 3, 7), XR_THERE_NO);
	/* It has made no link, and does not keep one from being made. */
	EXPECT_EQ(lives->mates[1].accepted, 0);
	mate_say(side_connect(asks, lives), 1, "hello");
	UNTIL(lives, lives->mates[1].delivered == 1);
	mate_close(&asks->mates[2]);
	mate_close(&lives->mates[1]);
	side_close(lives);
	side_close(asks);
}

FORKED_TEST(net_there, an_answer_may_come_in_pieces)
{
	asks = side_open(1);
	lives = living(7, secret_a);
	trap();
	calls.waits = true;
	calls.piece = 1;
	EXPECT_EQ(there(lives->address, 2, 7), XR_THERE_YES);
	/* No byte more than the answer is read: that ends it. */
	EXPECT_EQ(calls.reads, GREET_ANSWER_SIZE);
	/* A refusal is as long as a verdict. */
	EXPECT_EQ(there(lives->address, 2, 8), XR_THERE_NO);
	EXPECT_EQ(calls.reads, GREET_VERDICT_SIZE);
	side_close(lives);
	side_close(asks);
}

FORKED_TEST(net_there, who_has_another_secret_is_not_he)
{
	struct side *bare;

	asks = side_open(1);
	lives = living(1, secret_b);
	bare = living(1, NULL);
	trap();
	calls.waits = true;
	EXPECT_EQ(there(lives->address, 2, 1), XR_THERE_NO);
	/* Without one he cannot prove anything; but an agent it is. */
	EXPECT_EQ(there(bare->address, 2, 1), XR_THERE_YES);
	side_close(bare);
	side_close(lives);
	side_close(asks);
}

/* The process was late: what has come by then counts. */
FORKED_TEST(net_there, an_answer_that_is_read_late_counts)
{
	asks = side_open(1);
	lives = living(7, secret_a);
	trap();
	calls.waits = true;
	calls.ns = 5 * NS_PER_S;
	EXPECT_EQ(there(lives->address, 2, 6), XR_THERE_NO);
	EXPECT_EQ(calls.in_ms, 0);
	side_close(lives);
	side_close(asks);
}

/* --- something else answers, or nothing -------------------------------------- */

FORKED_TEST(net_there, where_nothing_is_said_for_a_second_somebody_is)
{
	char address[64];
	int door = mute(address, sizeof(address));

	asks = side_open(1);
	trap();
	calls.events = POLLIN;
	EXPECT_EQ(there(address, 2, 1), XR_THERE_YES);
	EXPECT_EQ(calls.in_ms, 1000);
	/* Nothing is ready: the patience is for both. */
	calls.stirs = 1;
	calls.ns = 250 * NS_PER_MS;
	EXPECT_EQ(there(address, 2, 1), XR_THERE_YES);
	EXPECT_EQ(calls.in_ms, 750);
	close(door);
	side_close(asks);
}

static void *
answer_mail(void *ctx)
{
	int fd = accept(*(int *)ctx, NULL, NULL);

	if (write(fd, "220 mail.example.org ESMTP\r\n", 28) == 28)
		while (read(fd, &(char[256]){ 0 }, 256) > 0)
			continue;
	close(fd);
	return NULL;
}

static void *
hang_up(void *ctx)
{
	int fd = accept(*(int *)ctx, NULL, NULL);
	char hello[GREET_HELLO_SIZE];

	for (size_t i = 0; i < sizeof(hello); i++)
		if (read(fd, &hello[i], 1) != 1)
			break;
	close(fd);
	return NULL;
}

FORKED_TEST(net_there, whoever_is_no_agent_is_not_he)
{
	void *(*const other[])(void *) = { answer_mail, hang_up };
	char address[64];
	int door = mute(address, sizeof(address));
	pthread_t thread;

	asks = side_open(1);
	trap();
	lives = asks; /* the thread has a descriptor, too */
	calls.waits = true;
	for (int i = 0; i < 2; i++) {
		NEED(pthread_create(&thread, NULL, other[i], &door) == 0);
		EXPECT_EQ(there(address, 2, 1), XR_THERE_NO);
		pthread_join(thread, NULL);
	}
	close(door);
	EXPECT_EQ(there(address, 2, 1), XR_THERE_NO); /* refused */
	side_close(asks);
}

FORKED_TEST(net_there, what_fails_on_the_way_says_nothing_of_him)
{
	static const struct {
		int nr, sys;
		enum xr_there means;
	} rows[] = {
		{ SYS_getrandom, ENOSYS, XR_THERE_UNKNOWN },
		{ SYS_socket, EMFILE, XR_THERE_SILENT },
		{ SYS_connect, ENETUNREACH, XR_THERE_SILENT },
		{ SYS_connect, EINPROGRESS, XR_THERE_SILENT },
		{ SYS_connect, ECONNREFUSED, XR_THERE_NO },
	};
	char address[64];
	int door = mute(address, sizeof(address));

	asks = side_open(1);
	trap();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		calls.nr = rows[i].nr;
		calls.sys = rows[i].sys;
		calls.events = POLLOUT; /* it does not get ready */
		EXPECT_EQ(there(address, 2, 1), rows[i].means);
		EXPECT_EQ(calls.in_ms, -1);
	}
	close(door);
	side_close(asks);
}

FORKED_TEST(net_there, a_signal_does_not_end_the_patience)
{
	char address[64];
	int door = mute(address, sizeof(address));

	asks = side_open(1);
	trap();
	calls.nr = SYS_sendto;
	calls.sys = ECONNRESET;
	calls.stirs = 3;
	calls.ns = 333333333; /* 1 ns is left after all */
	EXPECT_EQ(there(address, 2, 1), XR_THERE_NO);
	EXPECT_EQ(calls.polls, 4);
	EXPECT_EQ(calls.out_ms, 1);
	close(door);
	side_close(asks);
}

FORKED_TEST(net_there, without_a_secret_or_an_address_it_cannot_tell)
{
	char address[64];
	int door = mute(address, sizeof(address));

	asks = side_open(1);
	trap();
	EXPECT_EQ(there("shm:1:2:3:4", 2, 1), XR_THERE_UNKNOWN);
	EXPECT_EQ(dialled, -1);
	side_close(asks);
	asks = side_new(1);
	asks->opts.secret = NULL;
	side_start(asks);
	EXPECT_EQ(there(address, 2, 1), XR_THERE_UNKNOWN);
	EXPECT_EQ(dialled, -1);
	close(door);
	side_close(asks);
}
