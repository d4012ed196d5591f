/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_store_link.c - a store's other end that is odd, slow or gone: as a
 * guest sees it, and as rank 0 does. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <xrun/store.h>

#define HELLO \
	"\x26\0\0\0\x40\0\x01\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0" \
	"\x0a\0\0\0xrun store"
#define HELLO_LEN 42

static struct sockaddr_in place = { .sin_family = AF_INET };
static char address[64];
static struct xr_error err;

static int
bound(void)
{
	socklen_t len = sizeof(place);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	place.sin_port = 0;
	cr_assert_eq(bind(fd, (struct sockaddr *)&place, len), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)),
		0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&place, &len), 0);
	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u?auth=none",
		ntohs(place.sin_port));
	return fd;
}

TestSuite(worker_store_link, .timeout = 60);

static enum xr_status
open_as(int64_t rank, double seconds, struct xr_store **store)
{
	struct xr_store_options o = XR_STORE_OPTIONS;

	o.rank = rank;
	o.dynamic = true;
	o.timeout = XR_SECONDS(seconds);
	return xr_store_open(address, &o, store, &err);
}

static int
dialled(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&place, sizeof(place)), 0);
	return fd;
}

static void
say(int fd, const char *bytes, size_t len)
{
	cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Until the other end closes. */
static size_t
hear_all(int fd)
{
	char data[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(fd, data, sizeof(data), 0)) > 0)
		all += (size_t)n;
	return all;
}

/* --- rank 0 ---------------------------------------------------------------- */

Test(worker_store_link, strangers_are_shown_the_door_and_harm_nobody)
{
	static const char *const rubbish[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\xff\xff\xff\xff rest of something",
		"\x40\0\0\0 is more than a hello has, or less, who knows",
	};
	struct xr_store *s = NULL;
	struct xr_store_value v;
	int fd;

	bound();
	cr_assert_eq(open_as(0, 20, &s), XR_OK, "%s", err.text);
	for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
		fd = dialled();
		say(fd, rubbish[i],
			strlen(rubbish[i]) < 4 ? 4 : strlen(rubbish[i]));
		if (i < 2)
			cr_expect_eq(hear_all(fd), 0);
		close(fd);
	}
	fd = dialled();
	say(fd, HELLO "\x18\0\0\0\x63", HELLO_LEN + 5); /* and goes */
	close(fd);
	fd = dialled();
	say(fd, HELLO, HELLO_LEN);
	/* A head that says to be whole, of an operation that is none. */
	say(fd, "\x18\0\0\0\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		28);
	cr_expect_eq(hear_all(fd), HELLO_LEN);
	close(fd);
	cr_assert_eq(xr_store_set(s, "k", "v", 1, &err), XR_OK, "%s", err.text);
	cr_assert_eq(xr_store_get(s, "k", 0, &v, &err), XR_OK);
	xr_store_value_free(&v);
	xr_store_free(s);
}

/* The thread of rank 0 can be held where it looks at the clock, which can be moved. */
static _Atomic bool is_held, holds;
static _Atomic int64_t ahead; /* seconds */

__attribute__((visibility("default"))) int
clock_gettime(clockid_t id, struct timespec *t)
{
	char name[16] = "";

	if (atomic_load(&is_held)) {
		pthread_getname_np(pthread_self(), name, sizeof(name));
		while (strcmp(name, "xrun-store") == 0 &&
			atomic_load(&is_held)) {
			atomic_store(&holds, true);
			sched_yield();
		}
	}
	if (syscall(SYS_clock_gettime, id, t) == -1)
		return -1;
	t->tv_sec += atomic_load(&ahead);
	return 0;
}

/* One that has said HELLO, and was answered. */
static int
greeted(void)
{
	char answer[HELLO_LEN];
	int fd = dialled();

	say(fd, HELLO, HELLO_LEN);
	cr_assert_eq(recv(fd, answer, sizeof(answer), MSG_WAITALL), HELLO_LEN);
	return fd;
}

/* More members ask something than are served in a turn: the stranger's hello, which has
 * arrived, too, is read in a later one. */
Test(worker_store_link,
	a_server_that_was_stopped_reads_what_strangers_have_sent)
{
	static const char get[] =
		"\x1e\0\0\0\x02\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x02\0\0\0/k";
	struct xr_store *s = NULL;
	char answer[HELLO_LEN];
	int stranger, member[70];

	bound();
	cr_assert_eq(open_as(0, 20, &s), XR_OK, "%s", err.text);
	stranger = dialled();
	for (int i = 0; i < 70; i++)
		member[i] = greeted();
	atomic_store(&is_held, true);
	while (!atomic_load(&holds))
		sched_yield();
	for (int i = 0; i < 70; i++)
		say(member[i], get, 34);
	say(stranger, HELLO, HELLO_LEN);
	atomic_store(&ahead, 30);
	atomic_store(&is_held, false);
	cr_expect_eq(recv(stranger, answer, sizeof(answer), MSG_WAITALL),
		HELLO_LEN);
	for (int i = 0; i < 70; i++)
		close(member[i]);
	close(stranger);
	xr_store_free(s);
}

Test(worker_store_link, who_does_not_take_his_answers_is_asked_nothing_more)
{
	static char big[8 << 20];
	static const char get[] =
		"\x1e\0\0\0\x02\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x02\0\0\0/k";
	struct xr_store *s = NULL;
	struct xr_store_value v;
	int fd;

	bound();
	cr_assert_eq(open_as(0, 20, &s), XR_OK, "%s", err.text);
	cr_assert_eq(xr_store_set(s, "k", big, sizeof(big), &err), XR_OK);
	fd = dialled();
	say(fd, HELLO, HELLO_LEN);
	for (int i = 0; i < 1000; i++)
		say(fd, get, 34);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(xr_store_get(s, "k", 0, &v, &err), XR_OK);
		xr_store_value_free(&v);
	}
	close(fd);
	xr_store_free(s);
}

static size_t
hear_some(int fd, size_t len)
{
	static char data[1 << 16];
	size_t all = 0;
	ssize_t n = 1;

	while (all < len && n > 0) {
		n = recv(fd, data,
			len - all < sizeof(data) ? len - all : sizeof(data), 0);
		all += n > 0 ? (size_t)n : 0;
	}
	return all;
}

/* The requests come at once; the replies do not fit into the socket. */
Test(worker_store_link, all_requests_that_came_together_are_answered)
{
	static char big[8 << 20];
	static const char get[] =
		"\x1e\0\0\0\x02\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x02\0\0\0/k";
	char bytes[3 * 34 + HELLO_LEN];
	struct xr_store *s = NULL;
	int fd;

	bound();
	cr_assert_eq(open_as(0, 20, &s), XR_OK, "%s", err.text);
	cr_assert_eq(xr_store_set(s, "k", big, sizeof(big), &err), XR_OK);
	memcpy(bytes, HELLO, HELLO_LEN);
	for (int i = 0; i < 3; i++)
		memcpy(bytes + HELLO_LEN + 34 * i, get, 34);
	fd = dialled();
	say(fd, bytes, sizeof(bytes));
	cr_expect_eq(hear_some(fd, HELLO_LEN), HELLO_LEN);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(hear_some(fd, 32 + sizeof(big)), 32 + sizeof(big),
			"%d", i);
	close(fd);
	xr_store_free(s);
}

Test(worker_store_link, handles_and_processes_share_a_port)
{
	struct xr_store *a = NULL, *b = NULL, *c = NULL;
	struct xr_store_value v;
	int status = 0;
	pid_t pid;

	bound();
	cr_assert_eq(open_as(0, 20, &a), XR_OK, "%s", err.text);
	cr_assert_eq(open_as(0, 20, &b), XR_OK, "%s", err.text);
	xr_store_free(a); /* not the last */
	cr_assert_eq(xr_store_set(b, "k", "v", 1, &err), XR_OK);
	pid = fork();
	if (pid == 0) {
		/* The child has nothing of its parent's, and makes its own. */
		if (xr_store_set(b, "k", "x", 1, NULL) != XR_E_STATE)
			_exit(1);
		xr_store_close(b);
		xr_store_free(b);
		if (open_as(0, 20, &c) != XR_OK ||
			xr_store_get(c, "k", 0, &v, &err) != XR_OK)
			_exit(2);
		xr_store_value_free(&v);
		xr_store_free(c);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
	cr_assert_eq(xr_store_get(b, "k", 0, &v, &err), XR_OK, "%s", err.text);
	xr_store_value_free(&v);
	xr_store_free(b);
	/* Now it is over, and another may begin. */
	cr_assert_eq(open_as(0, 20, &a), XR_OK, "%s", err.text);
	cr_expect_eq(xr_store_get(a, "k", 0, &v, &err), XR_E_NOTFOUND);
	xr_store_free(a);
}

static void *
open_late(void *ctx)
{
	const struct timespec bit = { .tv_nsec = 100000000 };

	nanosleep(&bit, NULL);
	cr_assert_eq(open_as(0, 20, ctx), XR_OK, "%s", err.text);
	return NULL;
}

Test(worker_store_link, rank_0_may_begin_later_and_nobody_waits_for_ever)
{
	struct xr_store *zero = NULL, *one = NULL;
	pthread_t thread;

	bound();
	cr_expect_eq(open_as(1, 0.1, &one), XR_E_TIMEOUT);
	cr_expect(strstr(err.text, "rank 0 does not serve") != NULL, "%s",
		err.text);
	pthread_create(&thread, NULL, open_late, &zero);
	cr_assert_eq(open_as(1, 20, &one), XR_OK, "%s", err.text);
	pthread_join(thread, NULL);
	xr_store_free(one);
	xr_store_free(zero);
}

/* --- a guest --------------------------------------------------------------- */

struct odd {
	int fd;
	const char *says; /* behind its hello; NULL: closes at once */
	size_t len;
};

/* The hello of a host has the id 1. */
static void *
be_odd(void *ctx)
{
	const struct odd *o = ctx;
	char hello[HELLO_LEN], data[4096];
	int fd = accept(o->fd, NULL, NULL);

	memcpy(hello, HELLO, HELLO_LEN);
	hello[8] = 1;
	cr_assert_eq(recv(fd, data, HELLO_LEN, MSG_WAITALL), HELLO_LEN);
	send(fd, hello, HELLO_LEN, MSG_NOSIGNAL);
	recv(fd, data, sizeof(data), 0);
	if (o->says != NULL) {
		send(fd, o->says, o->len, MSG_NOSIGNAL);
		while (recv(fd, data, sizeof(data), 0) > 0)
			;
	}
	close(fd);
	return NULL;
}

static enum xr_status
get_from_odd(const char *says, size_t len, double seconds)
{
	struct odd odd = { .fd = bound(), .says = says, .len = len };
	struct xr_store *s = NULL;
	struct xr_store_value v;
	pthread_t thread;
	enum xr_status status;

	cr_assert_eq(listen(odd.fd, 8), 0);
	pthread_create(&thread, NULL, be_odd, &odd);
	cr_assert_eq(open_as(1, 5, &s), XR_OK, "%s", err.text);
	status = xr_store_get(s, "k", XR_SECONDS(seconds), &v, &err);
	xr_store_free(s);
	pthread_join(thread, NULL);
	close(odd.fd);
	return status;
}

Test(worker_store_link,
	a_store_that_goes_is_lost_and_one_that_is_odd_is_refused)
{
	cr_expect_eq(get_from_odd(NULL, 0, 20), XR_E_PEER_LOST);
	cr_expect_eq(get_from_odd("\xff\xff\xff\xff", 4, 20), XR_E_PROTO);
	cr_expect_eq(get_from_odd("HTTP/1.1 400 Bad Request\r\n\r\n", 28, 20),
		XR_E_PROTO);
	/* A reply to a get, without a value. */
	cr_expect_eq(get_from_odd("\x18\0\0\0\x80\0\0\0\x01\0\0\0\0\0\0\0\0\0"
				  "\0\0\0\0\0\0\0\0\0\0",
			     28, 20),
		XR_E_PROTO);
}

Test(worker_store_link, one_that_says_nothing_is_given_up_with_the_key_named)
{
	cr_expect_eq(get_from_odd("", 0, 0.1), XR_E_TIMEOUT);
	cr_expect(strstr(err.text, "'/k'") != NULL, "%s", err.text);
	/* Half a reply, and one to somebody else. */
	cr_expect_eq(get_from_odd("\x18\0\0\0\x80\0\0", 7, 0.1), XR_E_TIMEOUT);
	cr_expect_eq(get_from_odd("\x18\0\0\0\x80\0\0\0\x63\0\0\0\0\0\0\0\0\0"
				  "\0\0\0\0\0\0\0\0\0\0",
			     28, 0.1),
		XR_E_TIMEOUT);
}
