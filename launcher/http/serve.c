/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - see serve.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "event/loop.h"
#include "event/work.h"
#include "launcher/http/page.h"
#include "launcher/http/serve.h"

#define CONNS_MAX  64
#define A_TURN     16                /* connections accepted */
#define REQUEST_NS (10 * NS_PER_S)   /* for a whole request */
#define ANSWER_NS  (30 * NS_PER_S)   /* for the job's answer */
#define STILL_NS   (10 * NS_PER_S)   /* a client that takes nothing */
#define DRAIN_NS   NS_PER_S          /* for one that says more, unasked */
#define FRESH_NS   (250 * NS_PER_MS) /* an answer of the job */
#define LOOK_NS    (500 * NS_PER_MS) /* at deadlines, while there are any */
#define AGAIN_NS   (100 * NS_PER_MS) /* to a kernel that refused */
#define WRITE_MAX  (256 << 10)       /* bytes a turn and connection */

enum stage {
	READS,  /* the request */
	WAITS,  /* for the job */
	WRITES, /* the answer */
	DRAINS, /* what the client still says: closing before would be a reset,
		 * which may overtake the answer */
};

struct conn {
	TAILQ_ENTRY(conn) list; /* the oldest first */
	struct server *server;
	int fd;
	struct watch *readable, *writable;
	enum stage stage;
	int64_t due; /* clock_now() */
	struct http_request request;
	struct pages *pages; /* a body is one of them; or NULL */
	char head[512];
	size_t head_len, sent; /* of head and body together */
	size_t in_len;
	char in[HTTP_REQUEST_MAX];
};

TAILQ_HEAD(conn_list, conn);

struct server {
	const struct serve_config *config;
	struct loop *loop;
	struct work *work;
	struct watch *listening, *answered;
	struct timer *look;
	struct conn_list conns;
	unsigned count;
	struct pages *pages; /* the last answer; or NULL */
	struct pages *asked; /* of the thread, which gives it by answer_fd */
	bool asking, refused;
	int answer_fd;
};

static void
drop(struct conn *c)
{
	TAILQ_REMOVE(&c->server->conns, c, list);
	c->server->count--;
	watch_close(c->readable);
	watch_close(c->writable);
	pages_unref(c->pages);
	fd_close(c->fd);
	free(c);
}

/* --- answers -------------------------------------------------------------- */

static struct span
body_of(const struct conn *c)
{
	const struct buf *b;

	if (c->pages == NULL || c->request.status != 200)
		return (struct span){ "", 0 };
	b = &c->pages->page[c->request.page];
	return (struct span){ buf_text(b), b->len };
}

static void
put_head(struct conn *c)
{
	const int status = c->request.status;
	struct span body = body_of(c);
	char text[64];

	snprintf(text, sizeof(text), "%d %s\n", status, http_reason(status));
	c->head_len = (size_t)snprintf(c->head, sizeof(c->head),
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Connection: close\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\n"
		"Content-Security-Policy: default-src 'none'\r\n%s%s\r\n%s",
		status, http_reason(status),
		status == 200 ? pages_type(c->request.page) :
				pages_type(HTTP_INDEX),
		status == 200 ? body.len : strlen(text),
		status == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
		status == 405 ? "Allow: GET, HEAD\r\n" : "",
		status == 200 || c->request.head ? "" : text);
}

static void
answer(struct conn *c)
{
	put_head(c);
	c->stage = WRITES;
	c->due = clock_now() + STILL_NS;
	watch_resume(c->writable);
}

static void
refuse(struct conn *c, int status)
{
	c->request.status = status;
	answer(c);
}

/* How much of head and body is left, as one piece of either. */
static struct span
left_of(const struct conn *c)
{
	struct span body = body_of(c);
	size_t at;

	if (c->sent < c->head_len)
		return (struct span){ c->head + c->sent,
			c->head_len - c->sent };
	at = c->sent - c->head_len;
	if (c->request.head || at >= body.len)
		return (struct span){ "", 0 };
	return (struct span){ body.at + at, body.len - at };
}

static void
begin_drain(struct conn *c)
{
	watch_pause(c->writable);
	shutdown(c->fd, SHUT_WR);
	c->stage = DRAINS;
	c->due = clock_now() + DRAIN_NS;
	watch_resume(c->readable);
}

static void
on_writable(int fd, void *ctx)
{
	struct conn *c = ctx;
	struct span left = left_of(c);
	size_t turn = 0;
	ssize_t n = 1;

	while (left.len > 0 && n > 0 && turn < WRITE_MAX) {
		n = send(fd, left.at, left.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			c->sent += (size_t)n;
			turn += (size_t)n;
			c->due = clock_now() + STILL_NS;
		}
		left = left_of(c);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		drop(c);
	else if (left.len == 0)
		begin_drain(c);
}

/* --- the job -------------------------------------------------------------- */

static void
give(struct conn *c, struct pages *pages)
{
	const struct buf *b = &pages->page[c->request.page];

	if (b->bad != XR_OK || b->len == 0) {
		refuse(c, 503);
		return;
	}
	c->pages = pages;
	pages->refs++;
	answer(c);
}

/* On the thread. */
static void
ask(void *ctx)
{
	struct server *s = ctx;
	const uint64_t one = 1;

	s->asked = pages_ask(s->config->id);
	fd_tell(s->answer_fd, &one, sizeof(one));
}

static void
on_answer(int fd, void *ctx)
{
	struct server *s = ctx;
	struct conn *c, *next;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return;
	s->asking = false;
	pages_unref(s->pages);
	s->pages = s->asked;
	for (c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, list);
		if (c->stage != WAITS)
			continue;
		if (s->pages != NULL)
			give(c, s->pages);
		else
			refuse(c, 503);
	}
}

static void
want(struct conn *c)
{
	struct server *s = c->server;

	if (s->pages != NULL && clock_now() - s->pages->made_ns < FRESH_NS) {
		give(c, s->pages);
		return;
	}
	c->stage = WAITS;
	c->due = clock_now() + ANSWER_NS;
	if (!s->asking)
		s->asking = work_post(s->work, ask, s);
	if (!s->asking)
		refuse(c, 503);
}

/* --- requests ------------------------------------------------------------- */

static void
take_request(struct conn *c)
{
	size_t len = http_ends(c->in, c->in_len);

	if (len == 0 && c->in_len < sizeof(c->in))
		return; /* more is to come */
	watch_pause(c->readable);
	if (len == 0) {
		refuse(c, 431);
		return;
	}
	http_read(c->in, len, &c->server->config->rule, &c->request);
	if (c->request.status == 200)
		want(c);
	else
		answer(c);
}

/* What comes unasked is read a little, and for a little while. */
static void
drain(struct conn *c)
{
	char data[4096];
	ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		drop(c);
}

static void
on_readable(int fd, void *ctx)
{
	struct conn *c = ctx;
	ssize_t n;

	if (c->stage == DRAINS) {
		drain(c);
		return;
	}
	n = recv(fd, c->in + c->in_len, sizeof(c->in) - c->in_len,
		MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	c->in_len += (size_t)n;
	take_request(c);
}

/* --- connections ---------------------------------------------------------- */

/* Who has not said what he wants yet, for the longest; else who has been here
 * for the longest. */
static void
make_room(struct server *s)
{
	struct conn *c;

	if (s->count < CONNS_MAX)
		return;
	TAILQ_FOREACH(c, &s->conns, list)
	if (c->stage == READS || c->stage == DRAINS)
		break;
	drop(c != NULL ? c : TAILQ_FIRST(&s->conns));
}

static void
admit(struct server *s, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		fd_close(fd);
		return;
	}
	make_room(s);
	c->server = s;
	c->fd = fd;
	c->due = clock_now() + REQUEST_NS;
	TAILQ_INSERT_TAIL(&s->conns, c, list);
	s->count++;
	c->readable = watch_open(s->loop, fd, false, on_readable, c);
	c->writable = watch_open(s->loop, fd, true, on_writable, c);
	if (c->readable == NULL || c->writable == NULL) {
		drop(c);
		return;
	}
	watch_pause(c->writable);
	if (!timer_armed(s->look))
		timer_arm(s->look, LOOK_NS);
}

/* On a unix socket, besides its mode. */
static bool
may_ask(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	int domain = 0;

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain,
		&(socklen_t){ sizeof(domain) });
	if (domain != AF_UNIX)
		return true;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		(who.uid == geteuid() || who.uid == 0);
}

static void
on_connect(int fd, void *ctx)
{
	struct server *s = ctx;
	int client = 0;

	for (int i = 0; i < A_TURN; i++) {
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client == -1)
			break;
		if (may_ask(client))
			admit(s, client);
		else
			fd_close(client);
	}
	if (client != -1 || errno == EAGAIN || errno == EINTR ||
		errno == ECONNABORTED)
		return;
	s->refused = true;
	watch_pause(s->listening);
	timer_arm(s->look, AGAIN_NS);
}

static void
is_late(struct conn *c)
{
	if (c->stage == READS && c->in_len > 0)
		refuse(c, 408);
	else if (c->stage == WAITS)
		refuse(c, 503);
	else
		drop(c);
}

static void
on_look(void *ctx)
{
	struct server *s = ctx;
	struct conn *c, *next;
	int64_t now = clock_now();

	if (s->refused)
		watch_resume(s->listening);
	s->refused = false;
	for (c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, list);
		if (now >= c->due)
			is_late(c);
	}
	if (s->count > 0)
		timer_arm(s->look, LOOK_NS);
}

bool
serve(const struct serve_config *config)
{
	struct server s = {
		.config = config,
		.loop = loop_new(),
		.work = work_new(),
		.answer_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};

	TAILQ_INIT(&s.conns);
	if (s.loop == NULL || s.work == NULL || s.answer_fd == -1)
		return false;
	s.look = timer_open(s.loop, on_look, &s);
	s.answered = watch_open(s.loop, s.answer_fd, false, on_answer, &s);
	s.listening = watch_open(s.loop, config->fd, false, on_connect, &s);
	if (s.look == NULL || s.answered == NULL || s.listening == NULL)
		return false;
	loop_run(s.loop);
	return false;
}
