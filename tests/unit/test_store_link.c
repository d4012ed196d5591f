/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_link.c - one connection to a store (worker/store/link.h): what is sent and
 * received as the test says, by its clock, in a language of its own. A reply is the digit
 * of its id and a letter. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"
#include "worker/store/link.h"

#define START (1000 * NS_PER_S)
#define OURS  5000 /* the connection */
#define ALONG 5001 /* a descriptor that goes along, and those behind it */

#define CLOSED "store: whoever serves it has closed the connection"
#define SILENT \
	"store: the key 'kk': whoever serves the store did not answer in time"

static struct xr_error err;
static struct driver *driver;
static struct store_reply reply;
static struct store_value *value; /* of replies with a v */
static int64_t now;
static bool no_eventfd;
static void (*in_poll)(struct pollfd *p);

/* What along_send() returns, one after the other: bytes, 0: all, or a negative errno. */
static int sends[8];
static unsigned sent;

/* What along_receive() gives: bytes, or NULL: the end, or an error. */
static struct {
	const char *bytes;
	int sys;
	unsigned fds;
} receives[8];
static unsigned received, received_end;

/* What poll() says: i, o: the connection is readable, writable; b: only the bell; e: it
 * was interrupted. Behind them: readable as long as something is to be received. */
static const char *polls = "";
static unsigned closes;

/* --- what takes the place of others ---------------------------------------- */

int64_t __wrap_clock_now(void);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_eventfd(unsigned count, int flags);
int __real_eventfd(unsigned count, int flags);
ssize_t __wrap_along_send(int fd, const void *data, size_t len, int with);
ssize_t __wrap_along_receive(int fd, void *data, size_t room,
	struct along *got);
void __wrap_fd_close(int fd);
void __real_fd_close(int fd);

int64_t
__wrap_clock_now(void)
{
	return now;
}

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	char what = *polls != '\0' ? *polls++ : '\0';

	cr_assert_eq(n, 2);
	cr_expect_eq(p[0].fd, OURS);
	cr_expect_eq(p[1].events, POLLIN);
	note("poll-%d%s ", ms,
		p[0].events == POLLIN                     ? "" :
			p[0].events == (POLLIN | POLLOUT) ? "-out" :
							    "-odd");
	if (in_poll != NULL)
		in_poll(p);
	if (what == '\0' && received < received_end)
		what = 'i';
	if (what == '\0')
		now += ms * NS_PER_MS;
	p[0].revents = what == 'i' ? POLLIN : what == 'o' ? POLLOUT : 0;
	p[1].revents = what == 'b' ? POLLIN : 0;
	errno = EINTR;
	return what == 'e' ? -1 : what != '\0';
}

int
__wrap_eventfd(unsigned count, int flags)
{
	cr_expect_eq(flags, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!no_eventfd)
		return __real_eventfd(count, flags);
	errno = EMFILE;
	return -1;
}

ssize_t
__wrap_along_send(int fd, const void *data, size_t len, int with)
{
	int what = sent < 8 ? sends[sent++] : 0;

	cr_expect_eq(fd, OURS);
	cr_expect_not_null(data);
	note("send-%zu%s ", len,
		with == ALONG      ? "-fd" :
			with == -1 ? "" :
				     "-odd");
	if (what >= 0)
		return what == 0 ? (ssize_t)len : what;
	errno = -what;
	return -1;
}

ssize_t
__wrap_along_receive(int fd, void *data, size_t room, struct along *got)
{
	unsigned i = received++;
	size_t len;

	cr_expect_eq(fd, OURS);
	cr_assert_lt(i, received_end);
	note("receive-%zu ", room);
	got->count = receives[i].fds;
	for (unsigned k = 0; k < got->count; k++)
		got->fd[k] = ALONG + 1;
	errno = receives[i].sys;
	if (receives[i].bytes == NULL)
		return receives[i].sys == 0 ? 0 : -1;
	len = strlen(receives[i].bytes);
	cr_assert_leq(len, room);
	memcpy(data, receives[i].bytes, len);
	return (ssize_t)len;
}

void
__wrap_fd_close(int fd)
{
	if (fd < OURS) {
		__real_fd_close(fd);
		return;
	}
	closes++;
	if (fd <= ALONG)
		note("close-%d ", fd - OURS);
}

/* --- its language ---------------------------------------------------------- */

static enum xr_status put_fails;
static int goes_along = -1;
static size_t needs; /* of a reply that is there in part */
static struct {
	size_t at, len, cap;
} looked; /* at what has arrived, the last time that something had */

static enum xr_status
put(struct buf *out, const struct store_request *q, int *fd, struct xr_error *e)
{
	*fd = goes_along;
	if (put_fails != XR_OK)
		return fail(e, put_fails, "cannot be said");
	buf_fmt(out, "%lld:%.*s", (long long)q->id, QUOTED(q->key));
	return XR_OK;
}

static enum xr_status
take(struct link_in *in, struct store_reply *r, bool *there, struct xr_error *e)
{
	const char *p = in->bytes.data + in->at;
	size_t left = in->bytes.len - in->at, size;

	if (left > 0) {
		looked.at = in->at;
		looked.len = in->bytes.len;
		looked.cap = in->bytes.cap;
	}
	size = left >= 2 && p[1] == 'L' ? 10 : 2;
	*there = left >= size;
	in->need = *there || left == 0 ? 0 : needs;
	if (!*there)
		return XR_OK;
	if (p[1] == 'x')
		return fail(e, XR_E_PROTO, "odd");
	*r = (struct store_reply){ .id = p[0] - '0', .number = p[1] };
	if (p[1] == 'v')
		r->value = store_value_ref(value);
	in->at += size;
	return XR_OK;
}

static const struct link_speech speech = { put, take };

/* --- a test ---------------------------------------------------------------- */

static void
begin(void)
{
	now = START;
	cr_assert_eq(link_open(OURS, &speech, &driver, &err), XR_OK);
}

/* Another connection, of which nothing was sent. */
static void
again(void)
{
	driver->ops->free(driver);
	begin();
	sent = received = received_end = 0;
	memset(sends, 0, sizeof(sends));
	done[0] = '\0';
	closes = 0;
}

static void
end(void)
{
	driver->ops->free(driver);
}

TestSuite(store_link, .init = begin, .fini = end, .timeout = 60);

static void
will_receive(const char *bytes, int sys)
{
	receives[received_end].bytes = bytes;
	receives[received_end++].sys = sys;
}

static enum xr_status
ask(int64_t ns)
{
	struct store_request q = { .op = STORE_GET, .key = span_of("kk") };

	done[0] = '\0';
	reply = (struct store_reply){ .id = -1 };
	driver->ops->ask(driver, &q, ns == INT64_MAX ? ns : now + ns, &reply);
	return reply.status;
}

static void
expect_failure(int64_t ns, enum xr_status status, const char *text,
	const char *what)
{
	cr_expect_eq(ask(ns), status, "%s", reply.err.text);
	cr_expect_str_eq(reply.err.text, text);
	cr_expect_eq(reply.err.status, status);
	cr_expect_str_eq(done, what);
}

/* --- sending --------------------------------------------------------------- */

Test(store_link, a_request_is_sent_and_its_reply_awaited)
{
	will_receive("1r", 0);
	cr_expect_eq(ask(5 * NS_PER_S), XR_OK);
	cr_expect_eq(reply.id, 1);
	cr_expect_eq(reply.number, 'r');
	cr_expect_str_eq(done, "send-4 poll-5000 receive-65536 ");
	will_receive("2s", 0);
	cr_expect_eq(ask(NS_PER_MS + 1), XR_OK);
	cr_expect_eq(reply.id, 2);
	cr_expect_eq(reply.number, 's');
	cr_expect_str_eq(done, "send-4 poll-2 receive-65536 ");
	will_receive("3r", 0);
	cr_expect_eq(ask(INT64_MAX), XR_OK);
	cr_expect_str_eq(done, "send-4 poll-3600000 receive-65536 ");
	will_receive("4r", 0);
	cr_expect_eq(ask(1), XR_OK);
	cr_expect_str_eq(done, "send-4 poll-1 receive-65536 ");
}

Test(store_link, what_is_not_taken_at_once_is_sent_later)
{
	sends[0] = 1;
	sends[1] = sends[2] = -EAGAIN;
	sends[3] = 2;
	polls = "oei";
	goes_along = ALONG;
	will_receive("1r", 0);
	cr_expect_eq(ask(5 * NS_PER_S), XR_OK);
	cr_expect_str_eq(done,
		"send-4-fd send-3 send-3 poll-5000-out send-3 send-1 poll-5000 "
		"poll-5000 receive-65536 close-1 ");
	again();
	sends[0] = -EAGAIN;
	sends[1] = -EINTR;
	will_receive("1r", 0);
	cr_expect_eq(ask(5 * NS_PER_S), XR_OK);
	cr_expect_str_eq(done,
		"send-4-fd send-4-fd send-4-fd poll-5000 receive-65536 "
		"close-1 ");
}

Test(store_link, what_cannot_be_sent_ends_the_connection)
{
	static const struct {
		int sys;
		const char *text;
	} rows[] = {
		{ EPIPE, CLOSED },
		{ ECONNRESET, CLOSED },
		{ EIO, "store: the connection: Input/output error" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		again();
		sends[0] = -rows[i].sys;
		expect_failure(NS_PER_S, XR_E_PEER_LOST, rows[i].text,
			"send-4 ");
		expect_failure(NS_PER_S, XR_E_PEER_LOST, rows[i].text, "");
	}
	/* Later, too. */
	again();
	sends[0] = 1;
	sends[1] = -EAGAIN;
	sends[2] = -EPIPE;
	expect_failure(NS_PER_S, XR_E_PEER_LOST, CLOSED,
		"send-4 send-3 send-3 ");
}

Test(store_link, what_cannot_be_said_is_not_sent)
{
	put_fails = XR_E_RANGE;
	goes_along = ALONG;
	expect_failure(NS_PER_S, XR_E_RANGE, "cannot be said", "close-1 ");
	put_fails = XR_OK;
	until_short = 1;
	expect_failure(NS_PER_S, XR_E_NOMEM, "store: out of memory",
		"close-1 ");
	will_receive("3r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
}

/* --- time ------------------------------------------------------------------ */

Test(store_link, a_reply_that_is_late_is_nobodys)
{
	expect_failure(NS_PER_S, XR_E_TIMEOUT, SILENT, "send-4 poll-1000 ");
	cr_expect_eq(now, START + NS_PER_S);
	value = store_value_new("v", 1);
	will_receive("1v9v2v", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_eq(reply.id, 2);
	cr_expect_eq(reply.value, value);
	cr_expect_eq(value->refs, 2);
	store_value_unref(value);
	store_value_unref(value);
	expect_failure(0, XR_E_TIMEOUT, SILENT, "send-4 ");
}

Test(store_link, several_keys_are_named_by_the_first)
{
	const struct span keys[] = { span_of("first"), span_of("second") };
	struct store_request q = { .op = STORE_WAIT, .keys = keys, .count = 2 };

	driver->ops->ask(driver, &q, now + NS_PER_S, &reply);
	cr_expect_eq(reply.status, XR_E_TIMEOUT);
	cr_expect_str_eq(reply.err.text,
		"store: the key 'first': whoever serves the store did not answer in time");
	cr_expect_eq(q.id, 1);
}

Test(store_link, a_request_that_is_sent_in_part_ends_the_connection)
{
	/* Nothing of the first was sent, and all of the second. */
	for (int i = 0; i < 5; i++)
		sends[i] = -EAGAIN;
	expect_failure(NS_PER_S, XR_E_TIMEOUT, SILENT,
		"send-4 send-4 poll-1000-out ");
	again();
	expect_failure(NS_PER_S, XR_E_TIMEOUT, SILENT, "send-4 poll-1000 ");
	sends[1] = 3;
	for (int i = 2; i < 8; i++)
		sends[i] = -EAGAIN;
	expect_failure(NS_PER_S, XR_E_TIMEOUT, SILENT,
		"send-4 send-1 send-1 poll-1000-out ");
	expect_failure(NS_PER_S, XR_E_PEER_LOST,
		"store: the connection stands still", "");
}

/* Whoever says so has not understood it. */
Test(store_link, a_reply_to_what_is_not_sent_yet_is_passed_over)
{
	sends[0] = 1;
	sends[1] = sends[2] = -EAGAIN;
	value = store_value_new("v", 1);
	will_receive("1v", 0);
	will_receive("1r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_eq(reply.number, 'r');
	cr_expect_eq(value->refs, 1);
	cr_expect_str_eq(done,
		"send-4 send-3 send-3 poll-1000-out receive-65536 send-3 "
		"poll-1000 receive-65536 ");
	store_value_unref(value);
}

/* --- receiving ------------------------------------------------------------- */

Test(store_link, what_cannot_be_received_ends_the_connection)
{
	static const struct {
		int sys;
		const char *text;
	} rows[] = {
		{ 0, CLOSED },
		{ ECONNRESET, CLOSED },
		{ EIO, "store: the connection: Input/output error" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		again();
		will_receive(NULL, rows[i].sys);
		expect_failure(NS_PER_S, XR_E_PEER_LOST, rows[i].text,
			"send-4 poll-1000 receive-65536 ");
		expect_failure(NS_PER_S, XR_E_PEER_LOST, rows[i].text, "");
	}
	/* There was nothing after all. */
	again();
	will_receive(NULL, EAGAIN);
	will_receive(NULL, EINTR);
	will_receive("1r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_str_eq(done,
		"send-4 poll-1000 receive-65536 poll-1000 receive-65536 "
		"poll-1000 receive-65536 ");
	again();
	will_receive("2r1x", 0);
	expect_failure(NS_PER_S, XR_E_PROTO, "odd",
		"send-4 poll-1000 receive-65536 ");
	again();
	until_short = 2;
	received_end = 1;
	expect_failure(NS_PER_S, XR_E_PEER_LOST,
		"store: the connection: Cannot allocate memory",
		"send-4 poll-1000 ");
	cr_expect(was_short);
}

Test(store_link, there_is_room_for_what_the_next_reply_lacks)
{
	needs = 100000;
	will_receive("1", 0);
	will_receive("r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_str_eq(done,
		"send-4 poll-1000 receive-65536 poll-1000 receive-100000 ");
	needs = 10;
	will_receive("2", 0);
	will_receive("r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_str_eq(done,
		"send-4 poll-1000 receive-65536 poll-1000 receive-65536 ");
	needs = 5 << 20;
	will_receive("3", 0);
	will_receive("r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_str_eq(done,
		"send-4 poll-1000 receive-65536 poll-1000 receive-4194304 ");
	cr_expect_gt(looked.cap, 4 << 20);
	/* So much is not kept. */
	will_receive("4r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_str_eq(done, "send-4 poll-1000 receive-65536 ");
	cr_expect_lt(looked.cap, 1 << 20);
	cr_expect_eq(looked.at, 0);
	cr_expect_eq(looked.len, 2);
}

/* What was taken is overwritten when it is half of all. */
Test(store_link, what_is_there_in_part_is_moved_if_it_is_short)
{
	static const struct {
		const char *first, *rest;
		size_t at, len;
	} rows[] = {
		{ "9r1", "r", 0, 2 },
		{ "9r1L", "12345678", 0, 10 },
		{ "9r1L1", "2345678", 0, 10 },
		{ "9r1L12", "345678", 2, 12 },
		{ "9r1L1234567", "8", 2, 12 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		again();
		will_receive(rows[i].first, 0);
		will_receive(rows[i].rest, 0);
		cr_expect_eq(ask(NS_PER_S), XR_OK, "%zu", i);
		cr_expect_eq(reply.id, 1);
		cr_expect_eq(looked.at, rows[i].at, "%zu", i);
		cr_expect_eq(looked.len, rows[i].len, "%zu", i);
	}
}

Test(store_link, sixteen_descriptors_wait_to_be_taken)
{
	receives[0].fds = receives[1].fds = receives[2].fds = 8;
	will_receive("1", 0);
	will_receive("r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_eq(closes, 0);
	will_receive("2r", 0);
	cr_expect_eq(ask(NS_PER_S), XR_OK);
	cr_expect_eq(closes, 8);
	closes = 0;
	again();
	receives[0].fds = 3;
	will_receive(NULL, EIO); /* none come with an error */
	ask(NS_PER_S);
	driver->ops->free(driver);
	cr_expect_eq(closes, 1, "the connection's own");
	begin();
}

/* --- others of this process ------------------------------------------------ */

static void
close_it(struct pollfd *p)
{
	struct pollfd bell = { .fd = p[1].fd, .events = POLLIN };

	in_poll = NULL;
	cr_expect_eq(__real_poll(&bell, 1, 0), 0);
	driver->ops->close(driver);
	cr_expect_eq(__real_poll(&bell, 1, 0), 1, "who reads is woken");
}

Test(store_link, closing_ends_all_that_is_asked)
{
	in_poll = close_it;
	polls = "b";
	expect_failure(NS_PER_S, XR_E_CLOSED, "store: this handle was closed",
		"send-4 poll-1000 ");
	expect_failure(NS_PER_S, XR_E_CLOSED, "store: this handle was closed",
		"");
	/* The first reason counts. */
	again();
	sends[0] = -EPIPE;
	ask(NS_PER_S);
	driver->ops->close(driver);
	expect_failure(NS_PER_S, XR_E_PEER_LOST, CLOSED, "");
}

static struct store_reply inner;
static bool rang;

static void
ask_another(struct pollfd *p)
{
	struct pollfd bell = { .fd = p[1].fd, .events = POLLIN };
	struct store_request q = { .op = STORE_GET, .key = span_of("other") };

	in_poll = NULL;
	driver->ops->ask(driver, &q, now, &inner);
	rang = __real_poll(&bell, 1, 0) == 1;
}

/* Who reads has to look for room only if something is left. */
Test(store_link, who_reads_is_woken_by_what_cannot_be_sent_at_once)
{
	for (int i = 0; i < 2; i++) {
		again();
		in_poll = ask_another;
		sends[1] = i == 0 ? -EAGAIN : 0;
		polls = "b";
		will_receive("1r", 0);
		cr_expect_eq(ask(NS_PER_S), XR_OK);
		cr_expect_eq(inner.status, XR_E_TIMEOUT);
		cr_expect_eq(rang, i == 0);
	}
}

/* --- opening --------------------------------------------------------------- */

Test(store_link, a_link_that_is_not_made_closes_its_connection)
{
	struct driver *d = NULL;

	no_eventfd = true;
	cr_expect_eq(link_open(OURS, &speech, &d, &err), XR_E_SYS);
	cr_expect_str_eq(err.text, "store: Too many open files");
	no_eventfd = false;
	until_short = 1;
	cr_expect_eq(link_open(OURS, &speech, &d, &err), XR_E_NOMEM);
	cr_expect_null(d);
	cr_expect_str_eq(done, "close-0 close-0 ");
}
