/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_serve.c - connections of xrun-http: what they get, and until when. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/loop.h"
#include "event/work.h"
#include "launcher/http/page.h"
#include "launcher/http/serve.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define CONNS 64

static void (*test)(void); /* what runs instead of the loop */
static struct loop *loop;
static int64_t now = 1000 * S;
static bool holds;     /* the thread does not ask yet */
static bool no_thread; /* work_post() fails */
static bool no_memory; /* pages_ask() fails */
static bool no_answer; /* the job does not answer */
static size_t body;    /* bytes of a large page; 0: a short one */
static unsigned asked;
static work_fn *later;
static void *later_ctx;
static unsigned accept_fails; /* calls */
static int accept_sys;

/* What a server that never ends has, so that it is no leak. */
static const void *kept[1000];
static unsigned kept_count;

int64_t __wrap_clock_now(void);
struct work *__real_work_new(void);
struct work *__wrap_work_new(void);
struct timer *__real_timer_open(struct loop *l, timer_fn *fn, void *ctx);
struct timer *__wrap_timer_open(struct loop *l, timer_fn *fn, void *ctx);
bool __wrap_loop_run(struct loop *l);
bool __real_loop_run(struct loop *l);
bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
struct pages *__wrap_pages_ask(const char *id);
int __real_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags);

int64_t
__wrap_clock_now(void)
{
	return now;
}

static void
stop_it(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

struct work *
__wrap_work_new(void)
{
	struct work *work = __real_work_new();

	kept[kept_count++ % 1000] = work;
	return work;
}

struct timer *
__wrap_timer_open(struct loop *l, timer_fn *fn, void *ctx)
{
	struct timer *timer = __real_timer_open(l, fn, ctx);

	if (fn != stop_it)
		kept[kept_count++ % 1000] = timer;
	return timer;
}

bool
__wrap_loop_run(struct loop *l)
{
	loop = l;
	test();
	return true;
}

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	(void)work;
	if (no_thread)
		return false;
	later = fn;
	later_ctx = ctx;
	if (!holds)
		fn(ctx);
	return true;
}

struct pages *
__wrap_pages_ask(const char *id)
{
	struct pages *p = no_memory ? NULL : calloc(1, sizeof(*p));

	cr_expect_str_eq(id, "k7m2");
	asked++;
	if (p == NULL)
		return NULL;
	kept[kept_count++ % 1000] = p;
	p->refs = 1;
	p->made_ns = now;
	if (no_answer)
		return p;
	buf_fmt(&p->page[HTTP_INDEX], "index %u\n", asked);
	buf_fmt(&p->page[HTTP_METRICS], "metrics\n");
	for (size_t i = 0; i < body; i++)
		buf_put_char(&p->page[HTTP_METRICS], 'm');
	buf_fmt(&p->page[HTTP_JOB], "{}\n");
	return p;
}

int
__wrap_accept4(int fd, struct sockaddr *name, socklen_t *len, int flags)
{
	cr_expect_eq(flags, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (accept_fails > 0) {
		accept_fails--;
		errno = accept_sys;
		return -1;
	}
	return __real_accept4(fd, name, len, flags);
}

static struct sockaddr_un name = { .sun_family = AF_UNIX };
static socklen_t name_len = sizeof(name);

static void
run(void (*fn)(void))
{
	struct serve_config config = { .id = "k7m2" };

	config.fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(config.fd, (struct sockaddr *)&name,
			     sizeof(sa_family_t)),
		0);
	cr_assert_eq(getsockname(config.fd, (struct sockaddr *)&name,
			     &name_len),
		0);
	cr_assert_eq(listen(config.fd, 100), 0);
	test = fn;
	cr_expect(!serve(&config));
	cr_expect_not_null(loop);
}

/* Time passes, and all that is due is done. */
static void
pass(int64_t ns)
{
	struct timer *t = timer_open(loop, stop_it, NULL);

	now += ns;
	for (int i = 0; i < 6; i++) {
		timer_arm(t, 0);
		__real_loop_run(loop);
	}
	timer_close(t);
}

static int
call(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&name, name_len), 0);
	cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void
say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
		(ssize_t)strlen(text));
}

/* All that is there; @over: and then nothing more comes. */
static const char *
heard(int fd, bool over)
{
	static char got[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	got[len] = '\0';
	cr_expect_eq(n == 0 || (n == -1 && errno == ECONNRESET), over, "%s",
		got);
	return got;
}

#define HEAD(status, type, length, more) \
	"HTTP/1.1 " status "\r\nContent-Type: " type \
	"\r\nContent-Length: " length \
	"\r\nConnection: close\r\nCache-Control: no-store\r\n" \
	"X-Content-Type-Options: nosniff\r\n" \
	"Content-Security-Policy: default-src 'none'\r\n" more "\r\n"
#define TEXT                 "text/plain; charset=utf-8"
#define GET(path)            "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define REFUSED(why, length) HEAD(why, TEXT, length, "") why "\n"

static void
gets(int line, const char *request, const char *answer)
{
	int fd = call();
	const char *got;

	pass(0);
	say(fd, request);
	pass(0);
	got = heard(fd, true);
	cr_expect_str_eq(got, answer, "line %d: %s", line, got);
	close(fd);
	pass(0);
}

#define GETS(request, answer) gets(__LINE__, request, answer)

static void
test_pages(void)
{
	GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 1\n");
	GETS(GET("/metrics"),
		HEAD("200 OK", "text/plain; version=0.0.4; charset=utf-8", "8",
			"") "metrics\n");
	GETS(GET("/api/v1/job"),
		HEAD("200 OK", "application/json", "3", "") "{}\n");
	GETS("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
		HEAD("200 OK", TEXT, "8", ""));
	GETS(GET("/x"), REFUSED("404 Not Found", "14"));
	GETS("POST / HTTP/1.1\r\nHost: x\r\n\r\n",
		HEAD("405 Method Not Allowed", TEXT, "23",
			"Allow: GET, HEAD\r\n") "405 Method Not Allowed\n");
	GETS("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n",
		HEAD("404 Not Found", TEXT, "14", ""));
	cr_expect_eq(asked, 1);
}

Test(http_serve, each_page_has_its_type_and_length, .timeout = 20)
{
	run(test_pages);
}

static void
test_fresh(void)
{
	GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 1\n");
	now += 250 * MS - 1;
	GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 1\n");
	now += 1;
	GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 2\n");
	now += 250 * MS;
	no_answer = true;
	GETS(GET("/"), REFUSED("503 Service Unavailable", "24"));
	GETS(GET("/"), REFUSED("503 Service Unavailable", "24"));
	cr_expect_eq(asked, 3);
	now += 250 * MS;
	no_memory = true;
	GETS(GET("/"), REFUSED("503 Service Unavailable", "24"));
	no_memory = no_answer = false;
	GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 5\n");
	now += 250 * MS;
	no_thread = true;
	GETS(GET("/"), REFUSED("503 Service Unavailable", "24"));
	no_thread = false;
	GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 6\n");
}

Test(http_serve, an_answer_of_the_job_is_shared_for_a_while, .timeout = 20)
{
	run(test_fresh);
}

static void
test_waits(void)
{
	int a = call(), b = call();

	holds = true;
	pass(0);
	say(a, GET("/"));
	say(b, GET("/api/v1/job"));
	pass(0);
	pass(0);
	cr_expect_str_eq(heard(a, false), "");
	cr_expect_eq(asked, 0);
	later(later_ctx);
	pass(0);
	cr_expect_not_null(strstr(heard(a, true), "index 1\n"));
	cr_expect_not_null(strstr(heard(b, true), "{}\n"));
	cr_expect_eq(asked, 1);
	close(a);
	close(b);
	/* A job that does not answer in time. */
	now += S;
	a = call();
	pass(0);
	say(a, GET("/"));
	pass(0);
	pass(30 * S - 1);
	cr_expect_str_eq(heard(a, false), "");
	pass(500 * MS);
	cr_expect_str_eq(heard(a, true),
		REFUSED("503 Service Unavailable", "24"));
	close(a);
}

Test(http_serve, the_job_is_asked_once_for_all_who_wait, .timeout = 20)
{
	run(test_waits);
}

/* Clients that are late. */
static void
test_late(void)
{
	int silent = call(), slow = call(), done = call();

	pass(0);
	say(slow, "GET");
	pass(0);
	pass(10 * S - 500 * MS);
	cr_expect_str_eq(heard(silent, false), "");
	cr_expect_str_eq(heard(slow, false), "");
	pass(500 * MS);
	cr_expect_str_eq(heard(silent, true), "");
	cr_expect_str_eq(heard(slow, true),
		REFUSED("408 Request Timeout", "20"));
	close(silent);
	close(done);
	/* It closes a second after its answer. */
	say(slow, "x");
	pass(500 * MS);
	say(slow, "x");
	pass(500 * MS);
	cr_expect_eq(send(slow, "x", 1, MSG_NOSIGNAL), -1);
	close(slow);
	pass(S);
}

Test(http_serve, clients_have_deadlines, .timeout = 20)
{
	run(test_late);
}

/* Requests that are slow or too long. */
static void
test_requests(void)
{
	static char much[(8 << 10) + 1];
	int a = call(), b = call();

	pass(0);
	say(a, "GET / HT");
	pass(0);
	pass(5 * S);
	say(a, "TP/1.1\r\nHost: x\r\n");
	pass(0);
	cr_expect_str_eq(heard(a, false), "");
	say(a, "\r\n");
	pass(0);
	cr_expect_not_null(strstr(heard(a, true), "index 1\n"));
	/* What comes after it is read, and not answered. */
	say(a, "more");
	pass(0);
	cr_expect_str_eq(heard(a, true), "");
	close(a);
	cr_expect_str_eq(heard(b, false), "");
	memset(much, 'x', sizeof(much) - 1);
	memcpy(much, "GET /", 5);
	say(b, much);
	pass(0);
	cr_expect_str_eq(heard(b, true),
		REFUSED("431 Request Header Fields Too Large", "36"));
	close(b);
	b = call();
	pass(0);
	much[sizeof(much) - 2] = '\0';
	say(b, much);
	pass(0);
	cr_expect_str_eq(heard(b, false), "");
	close(b);
	pass(0);
}

Test(http_serve, a_request_has_a_limit, .timeout = 20)
{
	run(test_requests);
}

/* Who comes when there are 64. */
static void
test_crowd(void)
{
	int fd[CONNS + 2];

	holds = true;
	for (int i = 0; i < CONNS; i++) {
		fd[i] = call();
		pass(0);
	}
	say(fd[0], GET("/")); /* it waits */
	pass(0);
	for (int i = 0; i < CONNS; i++)
		cr_expect_str_eq(heard(fd[i], false), "");
	fd[CONNS] = call();
	pass(0);
	cr_expect_str_eq(heard(fd[0], false), "");
	cr_expect_str_eq(heard(fd[1], true), "");
	cr_expect_str_eq(heard(fd[2], false), "");
	for (int i = 2; i <= CONNS; i++)
		say(fd[i], GET("/"));
	pass(0);
	fd[CONNS + 1] = call();
	pass(0);
	cr_expect_str_eq(heard(fd[0], true), "");
	cr_expect_str_eq(heard(fd[2], false), "");
	later(later_ctx);
	pass(0);
	for (int i = 2; i <= CONNS; i++)
		cr_expect_not_null(strstr(heard(fd[i], true), "index 1\n"));
}

Test(http_serve, of_too_many_one_makes_room, .timeout = 20)
{
	run(test_crowd);
}

/* A page that the client takes in pieces. */
static void
test_large(void)
{
	static char got[1 << 16];
	int fd = call();
	size_t sum = 0;
	ssize_t n;

	body = 1 << 20;
	pass(0);
	say(fd, GET("/metrics"));
	pass(0);
	for (int i = 0; i < 1000; i++) {
		n = read(fd, got, sizeof(got));
		if (n == 0)
			break;
		if (n > 0)
			sum += (size_t)n;
		pass(0);
	}
	cr_expect_eq(sum,
		(1 << 20) + 8 +
			strlen(HEAD("200 OK",
				"text/plain; version=0.0.4; charset=utf-8",
				"1048584", "")));
	close(fd);
}

Test(http_serve, a_large_page_comes_whole, .timeout = 20)
{
	run(test_large);
}

/* A kernel that refuses one more is asked again. */
static void
test_refused(void)
{
	static const int again[] = { EAGAIN, EINTR, ECONNABORTED };

	for (int i = 0; i < 3; i++) {
		accept_fails = 1;
		accept_sys = again[i];
		GETS(GET("/"), HEAD("200 OK", TEXT, "8", "") "index 1\n");
	}
	accept_fails = 1;
	accept_sys = EMFILE;
	{
		int fd = call();
		struct timer *t = timer_open(loop, stop_it, NULL);

		pass(0);
		say(fd, GET("/"));
		pass(0);
		cr_expect_str_eq(heard(fd, false), "");
		now += 100 * MS;
		for (int i = 0;
			i < 200 && recv(fd, &(char){ 0 }, 1, MSG_PEEK) == -1;
			i++) {
			timer_arm(t, 0);
			__real_loop_run(loop);
		}
		cr_expect_not_null(strstr(heard(fd, true), "index 1\n"));
		timer_close(t);
		close(fd);
	}
}

Test(http_serve, a_kernel_that_refuses_is_asked_again, .timeout = 20)
{
	run(test_refused);
}
