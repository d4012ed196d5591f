/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_host.c - rank 0's side of a tcp:// store (worker/store/host.c): how long its
 * thread sleeps, which connections it keeps, and for how long. The test has the clock. */
#include <pthread.h>
#include <stdatomic.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "store/frame.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "worker/store/auth.h"
#include "worker/store/host.h"

#define ANSWER_MAX 512
#define SPINS      1000 /* turns without an event in a row */

static _Atomic int64_t now = 1000 * NS_PER_S;
static _Atomic int accept_fails; /* errno; 0: it does not */
static _Atomic unsigned accepts;
static _Atomic uint64_t descriptors = 1 << 20;

/* The thread of the store, as it sleeps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slept = PTHREAD_COND_INITIALIZER;
static bool sleeps;
static int ms;         /* for so long */
static unsigned spins; /* turns that did not wait and brought no event */

static struct host *host;
static int port = -1; /* keeps the port of the store for this test */
static struct sockaddr_in place = { .sin_family = AF_INET };
static struct xr_error err;

int64_t __wrap_clock_now(void);
int __wrap_accept4(int fd, struct sockaddr *at, socklen_t *len, int flags);
int __real_accept4(int fd, struct sockaddr *at, socklen_t *len, int flags);
int __wrap_getrlimit64(int what, struct rlimit *rl);
int __wrap_epoll_wait(int fd, struct epoll_event *at, int most, int timeout);
int __real_epoll_wait(int fd, struct epoll_event *at, int most, int timeout);

int64_t
__wrap_clock_now(void)
{
	return atomic_load(&now);
}

int
__wrap_accept4(int fd, struct sockaddr *at, socklen_t *len, int flags)
{
	int sys = atomic_load(&accept_fails);

	atomic_fetch_add(&accepts, 1);
	if (sys == 0)
		return __real_accept4(fd, at, len, flags);
	errno = sys;
	return -1;
}

int
__wrap_getrlimit64(int what, struct rlimit *rl)
{
	rl->rlim_cur = rl->rlim_max = atomic_load(&descriptors);
	return what == RLIMIT_NOFILE ? 0 : -1;
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
	pthread_mutex_lock(&lock);
	sleeps = sleeps && n <= 0;
	spins = timeout == 0 && n == 0 ? spins + 1 : 0;
	pthread_mutex_unlock(&lock);
	return n;
}

/* How long the thread sleeps in ms once it has nothing to do; -1: until an event. */
static int
sleep_of(void)
{
	int got;

	pthread_mutex_lock(&lock);
	while (!sleeps)
		pthread_cond_wait(&slept, &lock);
	got = ms;
	pthread_mutex_unlock(&lock);
	return got;
}

/* --- connections ------------------------------------------------------------ */

static void
serve(int64_t size)
{
	struct store_address address = { .place = STORE_AT_TCP,
		.serve = true,
		.open = true,
		.size = size,
		.host = "127.0.0.1" };
	struct addrinfo at = { .ai_family = AF_INET,
		.ai_addr = (struct sockaddr *)&place,
		.ai_addrlen = sizeof(place) };
	socklen_t len = sizeof(place);
	int on = 1;

	/* A port that nobody else is given: bound, and not listened on. */
	port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	place.sin_port = 0;
	NEED(bind(port, (struct sockaddr *)&place, len) == 0);
	NEED(setsockopt(port, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	NEED(getsockname(port, (struct sockaddr *)&place, &len) == 0);
	address.port = ntohs(place.sin_port);
	if (host_open(&address, &at, &host, &err) != XR_OK) {
		forked_note(__LINE__, "%s", err.text);
		_exit(1);
	}
}

static void
serve_end(void)
{
	host_close(host);
	close(port);
}

static int
dialled(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(connect(fd, (struct sockaddr *)&place, sizeof(place)) == 0);
	return fd;
}

/* One that is accepted, and says nothing: the thread sleeps again. */
static int
stranger(void)
{
	unsigned before = atomic_load(&accepts);
	int fd = dialled();

	while (atomic_load(&accepts) == before)
		sched_yield();
	sleep_of();
	return fd;
}

static void
say(int fd, struct buf *bytes)
{
	NEED(send(fd, bytes->data, bytes->len, MSG_NOSIGNAL) ==
		(ssize_t)bytes->len);
	buf_fini(bytes);
}

static void
say_hello(int fd, struct span nonce)
{
	struct frame_hello hello = { .nonce = nonce };
	struct buf bytes = { 0 };

	frame_put_hello(&bytes, &hello);
	say(fd, &bytes);
}

/* Returns false if the connection ends. The parts of @f are borrowed. */
static bool
hear(int fd, struct frame *f)
{
	static struct span part[FRAME_PARTS];
	static char data[ANSWER_MAX];
	struct span in = { data, 4 };
	size_t size;

	if (recv(fd, data, 4, MSG_WAITALL) != 4)
		return false;
	NEED(frame_size(in, &size, &err) == XR_OK && size <= ANSWER_MAX);
	in.len = size;
	NEED(recv(fd, data + 4, size - 4, MSG_WAITALL) == (ssize_t)size - 4);
	f->part = part;
	NEED(frame_read(in, f, &err) == XR_OK);
	return true;
}

static int
greeted(void)
{
	int fd = dialled();
	struct frame f;

	say_hello(fd, (struct span){ 0 });
	NEED(hear(fd, &f));
	NEED(f.type == FRAME_HELLO && f.id == 1 && f.status == XR_OK);
	return fd;
}

static void
ask_get(int fd, int64_t id, int64_t patience)
{
	struct store_request q = { .op = STORE_GET,
		.id = id,
		.key = span_of("/none"),
		.patience = patience };
	struct buf bytes = { 0 };

	frame_put_request(&bytes, &q);
	say(fd, &bytes);
}

/* The thread has answered, and has looked around after that. */
static void
poke(int fd)
{
	struct frame f;

	ask_get(fd, 77, 0);
	NEED(hear(fd, &f));
	EXPECT_EQ(f.id, 77);
	EXPECT_EQ(f.status, XR_E_NOTFOUND);
	sleep_of();
}

static void
advance(int64_t ns, int fd)
{
	atomic_fetch_add(&now, ns);
	poke(fd);
}

/* 0: it was closed; -1: it is open, and nothing has come; else what has. */
static ssize_t
state_of(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT);
}

/* --- how long the thread sleeps ---------------------------------------------- */

FORKED_TEST(store_host, the_thread_sleeps_until_a_wait_is_over)
{
	static const struct {
		int64_t patience;
		int ms;
	} rows[] = {
		{ 2 * 3600 * NS_PER_S, 3600000 },
		{ 3600 * NS_PER_S + 1, 3600000 },
		{ 3600 * NS_PER_S, 3600000 },
		{ 3599 * NS_PER_S, 3599000 },
		{ 5 * NS_PER_MS, 5 },
		{ 2 * NS_PER_MS + 1, 3 },
		{ 1, 1 },
	};
	struct frame f;
	int fd, n = sizeof(rows) / sizeof(rows[0]);

	serve(1);
	EXPECT_EQ(sleep_of(), -1);
	fd = greeted();
	EXPECT_EQ(sleep_of(), -1);
	for (int i = 0; i < n; i++) {
		ask_get(fd, i, rows[i].patience);
		poke(fd);
		EXPECT_EQ(sleep_of(), rows[i].ms);
	}
	atomic_fetch_add(&now, 1);
	ask_get(fd, n, 0);
	/* The request wakes the thread, which answers it before it looks around. */
	NEED(hear(fd, &f) && f.id == n);
	NEED(hear(fd, &f));
	EXPECT_EQ(f.id, n - 1);
	EXPECT_EQ(f.status, XR_E_TIMEOUT);
	EXPECT_EQ(sleep_of(), 2);
	close(fd);
	serve_end();
}

/* It looks at strangers once a second, also if a wait ends later, and not if it ends
 * sooner. */
FORKED_TEST(store_host, while_there_are_strangers_the_thread_sleeps_a_second)
{
	int fd, other;

	serve(1);
	fd = greeted();
	other = stranger();
	EXPECT_EQ(sleep_of(), 1000);
	ask_get(fd, 1, 3 * NS_PER_S);
	poke(fd);
	EXPECT_EQ(sleep_of(), 1000);
	ask_get(fd, 2, NS_PER_S / 2);
	poke(fd);
	EXPECT_EQ(sleep_of(), 500);
	say_hello(other, (struct span){ 0 });
	EXPECT(hear(other, &(struct frame){ 0 }));
	sleep_of();
	poke(other);
	EXPECT_EQ(sleep_of(), 500);
	close(fd);
	poke(other);
	EXPECT_EQ(sleep_of(), -1);
	close(other);
	serve_end();
}

static const int without[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS };

/* Without a descriptor for one more, the listener is left alone for 100 ms. */
FORKED_TEST(store_host, what_cannot_be_accepted_is_accepted_100_ms_later)
{
	int fd, other;
	unsigned before;

	serve(1);
	fd = greeted();
	for (int i = 0; i < 4; i++) {
		atomic_store(&accept_fails, without[i]);
		before = atomic_load(&accepts);
		other = stranger();
		poke(fd);
		EXPECT_EQ(sleep_of(), 100);
		advance(100 * NS_PER_MS - 1, fd);
		EXPECT_EQ(sleep_of(), 1);
		EXPECT_EQ(atomic_load(&accepts), before + 1);
		atomic_store(&accept_fails, 0);
		advance(1, fd);
		say_hello(other, (struct span){ 0 });
		EXPECT(hear(other, &(struct frame){ 0 }));
		poke(other);
		EXPECT_EQ(sleep_of(), -1);
		EXPECT_EQ(atomic_load(&accepts), before + 2);
		close(other);
	}
	close(fd);
	serve_end();
}

FORKED_TEST(store_host, a_client_that_went_does_not_keep_others_waiting)
{
	int fd;

	serve(1);
	sleep_of();
	atomic_store(&accept_fails, ECONNABORTED);
	fd = dialled();
	while (atomic_load(&accepts) < 3)
		sched_yield();
	atomic_store(&accept_fails, 0);
	say_hello(fd, (struct span){ 0 });
	EXPECT(hear(fd, &(struct frame){ 0 }));
	close(fd);
	serve_end();
}

/* --- strangers --------------------------------------------------------------- */

FORKED_TEST(store_host, a_stranger_has_ten_seconds_for_its_hello)
{
	int fd, other;

	serve(1);
	fd = greeted();
	other = stranger();
	for (int i = 0; i < 5; i++)
		advance(2 * NS_PER_S, fd);
	EXPECT_EQ(state_of(other), -1);
	advance(1, fd);
	EXPECT_EQ(state_of(other), 0);
	EXPECT_EQ(sleep_of(), -1);
	close(other);
	close(fd);
	serve_end();
}

/* The thread was stopped for 30 s, 28 s longer than it may be late. */
FORKED_TEST(store_host, time_that_the_thread_lost_is_not_a_strangers)
{
	int fd, old, young;

	serve(1);
	fd = greeted();
	old = stranger();
	atomic_fetch_add(&now, 30 * NS_PER_S);
	young = stranger();
	poke(fd);
	for (int i = 0; i < 4; i++)
		advance(2 * NS_PER_S, fd);
	EXPECT_EQ(state_of(old), -1);
	advance(1, fd);
	EXPECT_EQ(state_of(old), 0);
	advance(2 * NS_PER_S - 1, fd);
	EXPECT_EQ(state_of(young), -1);
	advance(1, fd);
	EXPECT_EQ(state_of(young), 0);
	/* Without strangers the time is lost to nobody. */
	advance(30 * NS_PER_S, fd);
	close(young);
	young = stranger();
	advance(2 * NS_PER_S + 1, fd);
	for (int i = 0; i < 4; i++)
		advance(2 * NS_PER_S, fd);
	EXPECT_EQ(state_of(young), -1);
	advance(1, fd);
	EXPECT_EQ(state_of(young), 0);
	close(young);
	close(old);
	close(fd);
	serve_end();
}

/* One of eight descriptors is for strangers; the oldest of them makes room. */
FORKED_TEST(store_host, too_many_strangers_make_room)
{
	static const int most[] = { 1, 1, 1, 2, 3 };
	static const uint64_t limits[] = { 4, 8, 15, 16, 24 };
	int fd[4];

	for (int row = 0; row < 5; row++) {
		atomic_store(&descriptors, limits[row]);
		serve(1);
		for (int i = 0; i < most[row]; i++)
			fd[i] = stranger();
		for (int i = 0; i < most[row]; i++)
			EXPECT_EQ(state_of(fd[i]), -1);
		fd[most[row]] = stranger();
		EXPECT_EQ(state_of(fd[0]), 0);
		for (int i = 1; i <= most[row]; i++)
			EXPECT_EQ(state_of(fd[i]), -1);
		for (int i = 0; i <= most[row]; i++)
			close(fd[i]);
		serve_end();
	}
}

/* Who is greeted is no stranger, and who left makes room. */
FORKED_TEST(store_host, members_are_none_of_the_strangers)
{
	int fd[6];

	atomic_store(&descriptors, 16);
	serve(1);
	for (int i = 0; i < 4; i++)
		fd[i] = greeted();
	fd[4] = stranger();
	fd[5] = stranger();
	poke(fd[0]);
	EXPECT_EQ(state_of(fd[4]), -1);
	close(fd[4]);
	poke(fd[0]);
	fd[4] = stranger();
	poke(fd[0]);
	EXPECT_EQ(state_of(fd[5]), -1);
	for (int i = 0; i < 4; i++)
		poke(fd[i]);
	for (int i = 0; i < 6; i++)
		close(fd[i]);
	serve_end();
}

/* --- members ----------------------------------------------------------------- */

static void
expect_refused(int status)
{
	int fd = dialled();
	struct frame f;

	say_hello(fd, (struct span){ 0 });
	if (hear(fd, &f))
		EXPECT_EQ(f.status, status);
	EXPECT(!hear(fd, &f));
	close(fd);
}

/* Eight for each rank and 64 besides, and at most half of the descriptors. */
FORKED_TEST(store_host, as_many_members_are_served_as_there_is_room_for)
{
	static const struct {
		int64_t size;
		uint64_t descriptors;
		int most;
	} rows[] = { { 1, 1 << 20, 72 }, { 2, 1 << 20, 80 }, { 2, 16, 8 },
		{ STORE_UNSAID, 17, 8 }, { STORE_UNSAID, 200, 100 } };
	int fd[128], most;

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		atomic_store(&descriptors, rows[row].descriptors);
		serve(rows[row].size);
		most = rows[row].most;
		for (int i = 0; i < most; i++)
			fd[i] = greeted();
		expect_refused(XR_E_NOMEM);
		close(fd[0]);
		poke(fd[1]);
		fd[0] = greeted();
		expect_refused(XR_E_NOMEM);
		for (int i = 0; i < most; i++) {
			poke(fd[i]);
			close(fd[i]);
		}
		serve_end();
	}
}

/* Without a secret none is asked for, and none is answered. */
FORKED_TEST(store_host, a_nonce_is_refused_by_a_store_without_a_secret)
{
	char nonce[STORE_NONCE] = { 1 };
	int fd;
	struct frame f;

	serve(1);
	fd = dialled();
	say_hello(fd, (struct span){ nonce, sizeof(nonce) });
	NEED(hear(fd, &f));
	EXPECT_EQ(f.type, FRAME_HELLO);
	EXPECT_EQ(f.id, 1);
	EXPECT_EQ(f.status, XR_E_AUTH);
	EXPECT_EQ(f.count, 1);
	EXPECT(!hear(fd, &f));
	close(fd);
	serve_end();
}

static int
option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	getsockopt(fd, level, name, &value, &len);
	return value;
}

/* The store's end of a connection, which this process has, too. */
static int
other_end(int fd)
{
	struct sockaddr_in ours, theirs;
	socklen_t len = sizeof(ours);

	NEED(getsockname(fd, (struct sockaddr *)&ours, &len) == 0);
	for (int i = 3; i < 256; i++) {
		len = sizeof(theirs);
		if (getpeername(i, (struct sockaddr *)&theirs, &len) == 0 &&
			theirs.sin_port == ours.sin_port)
			return i;
	}
	return -1;
}

FORKED_TEST(store_host, connections_are_prompt_and_notice_a_dead_machine)
{
	int fd, end;

	serve(1);
	fd = greeted();
	end = other_end(fd);
	NEED(end != -1);
	EXPECT_EQ(option_of(end, IPPROTO_TCP, TCP_NODELAY), 1);
	EXPECT_EQ(option_of(end, SOL_SOCKET, SO_KEEPALIVE), 1);
	EXPECT_EQ(fcntl(end, F_GETFD), FD_CLOEXEC);
	EXPECT(fcntl(end, F_GETFL) & O_NONBLOCK);
	close(fd);
	serve_end();
}

/* A forked child keeps the descriptors; a connection ends all the same, and no event of
 * it comes again. */
FORKED_TEST(store_host, a_connection_ends_though_a_child_has_its_descriptor)
{
	struct buf bytes = { 0 };
	int fd, other, gate[2], status;
	char byte;
	pid_t pid;

	serve(1);
	fd = greeted();
	other = greeted();
	sleep_of();
	NEED(pipe2(gate, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		close(gate[1]);
		_exit(read(gate[0], &byte, 1) != 0);
	}
	buf_put(&bytes,
		"\x18\0\0\0\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		28);
	say(fd, &bytes);
	EXPECT(!hear(fd, &(struct frame){ 0 }));
	poke(other);
	EXPECT_EQ(sleep_of(), -1);
	close(gate[1]);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	close(fd);
	close(other);
	serve_end();
}

FORKED_TEST(store_host, nothing_of_a_store_that_is_closed_stays)
{
	int before = folder_entries("/proc/self/fd"), fd, other;

	serve(1);
	fd = greeted();
	other = stranger();
	serve_end();
	EXPECT_EQ(state_of(fd), 0);
	EXPECT_EQ(state_of(other), 0);
	close(fd);
	close(other);
	EXPECT_EQ(folder_entries("/proc/self/fd"), before);
}

/* One thread serves an address, whoever opens it, until the last has closed it. */
FORKED_TEST(store_host, each_address_is_served_by_one_thread)
{
	struct store_address address = { .place = STORE_AT_TCP,
		.serve = true,
		.open = true,
		.size = 1,
		.host = "127.0.0.1" };
	struct addrinfo at = { .ai_family = AF_INET,
		.ai_addr = (struct sockaddr *)&place,
		.ai_addrlen = sizeof(place) };
	struct host *again, *other;
	int fd;

	serve(1);
	address.port = ntohs(place.sin_port);
	NEED(host_open(&address, &at, &again, &err) == XR_OK);
	EXPECT(again == host);
	/* The same port of another address. */
	snprintf(address.host, sizeof(address.host), "127.0.0.2");
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	NEED(host_open(&address, &at, &other, &err) == XR_OK);
	EXPECT(other != host);
	host_close(other);
	host_close(again);
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = greeted();
	close(fd);
	serve_end();
}
