/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - see host.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/thread.h"
#include "store/frame.h"
#include "worker/store/auth.h"
#include "worker/store/host.h"
#include "store/peer_uid.h"

#define BYTES      (256 << 20) /* of keys and values */
#define KEYS       (1 << 17)
#define WAITS      (1 << 20)
#define A_GUEST    64          /* waits of a connection */
#define MOST       4096        /* connections with a proof */
#define A_MEMBER   8           /* of them for each member of the group */
#define SPARE      64          /* and for programs that are no members */
#define STRANGERS  64          /* connections without a proof */
#define HELLO_MAX  256         /* bytes of a message without a proof */
#define ARRIVING   (512 << 20) /* bytes of requests that are not whole, of all */
#define OUT_HIGH   (64 << 10)  /* bytes unsent: nothing more is asked */
#define READ_SIZE  (256 << 10)     /* bytes a turn of a connection */
#define TURN       64              /* requests of the same */
#define STRANGE_NS (10 * NS_PER_S) /* for a hello */
#define DEAF_NS    (100 * NS_PER_MS)
#define EVENTS     64

struct conn {
	TAILQ_ENTRY(conn) list;
	struct host *host;
	int fd;
	struct buf in, out;
	size_t in_at, out_at;     /* bytes of them that are done with */
	struct store_value *body; /* comes behind `out` */
	size_t body_at;
	struct desk_guest guest;
	int64_t born;
	uint32_t events; /* what epoll looks for */
	struct store_nonces nonces;
	bool challenged; /* its HELLO was answered, its proof is due */
	bool greeted;
	bool leaving; /* it was rejected: dead when the reason is sent */
	bool dead;
};

TAILQ_HEAD(conns, conn);

struct host {
	TAILQ_ENTRY(host) list;
	struct store_address address;
	unsigned users; /* under hosts_lock */
	pid_t pid;      /* a forked child has the struct, and not the thread */
	pthread_t thread;
	/* All that follows is the thread's. */
	struct desk *desk;
	int epoll, bell, fd;
	struct conns conns;
	struct store_auth auth;  /* secret NULL: auth=none */
	size_t count, strangers; /* connections; those not greeted */
	size_t most, most_strangers;
	size_t arriving;    /* bytes that buffers of requests have */
	int64_t deaf_until; /* no descriptor for one more; 0 */
	int64_t looked;     /* the last look_around() */
	bool again;         /* somebody has more than a turn */
	struct span part[FRAME_PARTS];
};

/* --- one connection -------------------------------------------------------- */

static size_t
unsent(const struct conn *c)
{
	return c->out.len - c->out_at +
		(c->body == NULL ? 0 : c->body->len - c->body_at);
}

static bool
is_choked(const struct conn *c)
{
	return c->dead || c->leaving || c->body != NULL || unsent(c) > OUT_HIGH;
}

/* False: not now, or never. */
static bool
send_bytes(struct conn *c, const char *data, size_t len, size_t *done)
{
	ssize_t n = send(c->fd, data + *done, len - *done,
		MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		c->dead = true;
	*done += n > 0 ? (size_t)n : 0;
	return *done == len;
}

static void
flush(struct conn *c)
{
	if (c->out.len > 0) {
		if (!send_bytes(c, c->out.data, c->out.len, &c->out_at))
			return;
		buf_clear(&c->out);
		c->out_at = 0;
	}
	if (c->leaving)
		c->dead = true;
	if (c->body == NULL ||
		!send_bytes(c, c->body->data, c->body->len, &c->body_at))
		return;
	store_value_unref(c->body);
	c->body = NULL;
	c->body_at = 0;
}

/* Takes its value. */
static void
put_reply(struct conn *c, struct store_reply *r)
{
	struct store_value *v = r->value;

	frame_put_reply(&c->out, r);
	if (v != NULL && v->len > OUT_HIGH) {
		c->body = v;
	} else if (v != NULL) {
		buf_put(&c->out, v->data, v->len);
		store_value_unref(v);
	}
	if (c->out.bad != XR_OK)
		c->dead = true;
}

/* The client is known from here on, unless there are too many. */
static enum xr_status
host_accept_member(struct conn *c)
{
	struct host *h = c->host;

	if (h->count - h->strangers >= h->most)
		return XR_E_NOMEM;
	c->greeted = true;
	h->strangers--;
	return XR_OK;
}

/* The answer to a HELLO: a challenge, or without a secret the whole greeting. */
static void
host_take_hello(struct conn *c, const struct frame *f)
{
	const struct store_auth *auth = &c->host->auth;
	uint8_t proof[GREET_PROOF];
	struct frame_hello hello, reply = { .host = true };

	if (frame_read_hello(f, false, &hello, NULL) != XR_OK) {
		c->dead = true;
		return;
	}
	if ((auth->secret != NULL) != (hello.nonce.len == STORE_NONCE)) {
		reply.status = XR_E_AUTH;
	} else if (auth->secret == NULL) {
		reply.status = host_accept_member(c);
	} else {
		memcpy(c->nonces.client, hello.nonce.at, STORE_NONCE);
		c->challenged = store_auth_nonce(c->nonces.server) &&
			store_auth_prove(auth, true, &c->nonces, proof);
		c->dead = !c->challenged;
		reply.nonce =
			(struct span){ (char *)c->nonces.server, STORE_NONCE };
		reply.proof = (struct span){ (char *)proof, sizeof(proof) };
	}
	frame_put_hello(&c->out, &reply);
	if (reply.status != XR_OK)
		c->leaving = true;
}

static void
host_take_proof(struct conn *c, const struct frame *f)
{
	struct frame reply = { .type = FRAME_PROOF, .id = 1 };

	if (f->type != FRAME_PROOF || f->count != 1) {
		c->dead = true;
		return;
	}
	reply.status = store_auth_check(&c->host->auth, false, &c->nonces,
			       f->part[0]) ?
		host_accept_member(c) :
		XR_E_AUTH;
	frame_put(&c->out, &reply, 0);
	if (reply.status != XR_OK)
		c->leaving = true;
}

static void
take_frame(struct conn *c, struct span bytes)
{
	struct host *h = c->host;
	struct frame f = { .part = h->part };
	struct store_request q = { .value = NULL };
	struct store_reply r = { .status = XR_OK };
	bool was_greeted = c->greeted;

	if (frame_read(bytes, &f, NULL) != XR_OK) {
		c->dead = true;
		return;
	}
	if (!c->greeted && c->challenged)
		host_take_proof(c, &f);
	else if (!c->greeted)
		host_take_hello(c, &f);
	if (!was_greeted)
		return;
	r.status = frame_request(&f, &q, &r.err);
	r.id = f.id;
	if (r.status == XR_E_PROTO)
		c->dead = true;
	else if (r.status != XR_OK ||
		desk_ask(h->desk, &c->guest, &q, clock_now(), &r))
		put_reply(c, &r);
	store_value_unref(q.value);
}

/* The next whole request; false: there is none. */
static bool
take_next(struct conn *c)
{
	struct span in = { c->in.data + c->in_at, c->in.len - c->in_at };
	size_t size = 0;

	if (in.len == 0 || is_choked(c))
		return false;
	if (frame_size(in, &size, NULL) != XR_OK ||
		(!c->greeted && size > HELLO_MAX))
		c->dead = true;
	if (c->dead || size == 0 || size > in.len)
		return false;
	take_frame(c, (struct span){ in.at, size });
	c->in_at += size;
	return true;
}

static void
compact(struct conn *c)
{
	size_t before = c->in.cap;

	if (c->in_at == c->in.len && c->in.cap > READ_SIZE * 2) {
		buf_fini(&c->in);
		c->in_at = 0;
	} else if (c->in_at > 0) {
		memmove(c->in.data, c->in.data + c->in_at,
			c->in.len - c->in_at);
		c->in.len -= c->in_at;
		c->in_at = 0;
	}
	c->host->arriving -= before - c->in.cap;
}

static void
receive(struct conn *c)
{
	size_t size = c->greeted ? READ_SIZE : HELLO_MAX;
	size_t before;
	ssize_t n = -1;
	char *room;

	compact(c);
	before = c->in.cap;
	room = buf_room(&c->in, size);
	c->host->arriving += c->in.cap - before;
	if (room == NULL || c->host->arriving > ARRIVING) {
		c->dead = true;
		return;
	}
	c->in.len -= size;
	n = recv(c->fd, room, size, MSG_DONTWAIT);
	if (n > 0)
		c->in.len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		c->dead = true;
}

static void
watch(struct conn *c)
{
	uint32_t events =
		(is_choked(c) ? 0 : EPOLLIN) | (unsent(c) > 0 ? EPOLLOUT : 0);
	struct epoll_event e = { .events = events, .data.ptr = c };

	if (c->dead || events == c->events)
		return;
	c->events = events;
	if (epoll_ctl(c->host->epoll, EPOLL_CTL_MOD, c->fd, &e) == -1)
		c->dead = true;
}

/* What it has asked, and is to be told, as far as a turn bears. */
static void
serve(struct conn *c)
{
	struct store_reply r;
	unsigned done = 0;
	bool was_choked;

	while (done < TURN && !is_choked(c) && desk_take(&c->guest, &r)) {
		put_reply(c, &r);
		flush(c);
		done++;
	}
	while (done < TURN && take_next(c)) {
		done++;
		if (is_choked(c))
			flush(c);
	}
	was_choked = is_choked(c);
	flush(c);
	/* Requests that have arrived wait for room, and no event tells of them. */
	if (done == TURN || (was_choked && !is_choked(c)))
		c->host->again = true;
	watch(c);
}

static void
end(struct conn *c)
{
	struct host *h = c->host;

	desk_leave(h->desk, &c->guest);
	TAILQ_REMOVE(&h->conns, c, list);
	h->count--;
	h->strangers -= !c->greeted;
	h->arriving -= c->in.cap;
	store_value_unref(c->body);
	buf_fini(&c->in);
	buf_fini(&c->out);
	/* A child that was forked meanwhile may hold the file open, and events
	 * of it would come on. */
	epoll_ctl(h->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	shutdown(c->fd, SHUT_RDWR);
	fd_close(c->fd);
	free(c);
}

/* --- all of them ----------------------------------------------------------- */

static void
on_ready(struct desk_guest *guest, void *ctx)
{
	struct host *h = ctx;

	(void)guest;
	h->again = true;
}

/* The oldest connection without a proof makes room for a new one. An event of it
 * may be in hand, so it ends with this turn of the loop. */
static void
host_evict_stranger(struct host *h)
{
	struct conn *c;

	TAILQ_FOREACH(c, &h->conns, list)
	if (!c->greeted && !c->dead) {
		c->dead = true;
		return;
	}
}

static void
admit(struct host *h, int fd)
{
	struct conn *c = peer_is_foreign(fd) ? NULL : calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
	int on = 1;

	if (c == NULL || epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) == -1) {
		free(c);
		fd_close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (h->strangers >= h->most_strangers)
		host_evict_stranger(h);
	c->host = h;
	c->fd = fd;
	c->born = clock_now();
	c->events = EPOLLIN;
	desk_enter(&c->guest, c);
	TAILQ_INSERT_TAIL(&h->conns, c, list);
	h->count++;
	h->strangers++;
}

static void
listen_for(struct host *h, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.ptr = h };

	epoll_ctl(h->epoll, EPOLL_CTL_MOD, h->fd, &e);
	h->deaf_until = on ? 0 : clock_now() + DEAF_NS;
}

static void
on_connect(struct host *h)
{
	int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd != -1)
		admit(h, fd);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		errno == ENOBUFS)
		listen_for(h, false);
}

/* ms until something is due that no descriptor tells of. */
static int
patience(const struct host *h)
{
	int64_t now = clock_now(), due = desk_due(h->desk);

	if (h->again)
		return 0;
	if (h->strangers > 0 && due > now + NS_PER_S)
		due = now + NS_PER_S;
	if (h->deaf_until != 0 && due > h->deaf_until)
		due = h->deaf_until;
	if (due == DESK_NEVER)
		return -1;
	if (due <= now)
		return 0;
	return due - now > 3600 * NS_PER_S ?
		3600000 :
		(int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* While there are strangers the thread looks around once a second. If it is later, since
 * it was stopped or had no CPU, they may have sent what it has not read: their time is
 * longer by that. */
static void
host_forgive_lateness(struct host *h, int64_t now)
{
	int64_t late = now - h->looked - 2 * NS_PER_S;
	struct conn *c;

	h->looked = now;
	if (late <= 0 || h->strangers == 0)
		return;
	TAILQ_FOREACH(c, &h->conns, list)
	if (!c->greeted)
		c->born = c->born + late < now ? c->born + late : now;
}

static void
look_around(struct host *h)
{
	int64_t now = clock_now();
	bool again = h->again;
	struct conn *c, *next;

	host_forgive_lateness(h, now);
	desk_turn(h->desk, now);
	again = again || h->again;
	h->again = false;
	for (c = TAILQ_FIRST(&h->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, list);
		if (again && !c->dead)
			serve(c);
		if (c->dead || (!c->greeted && now - c->born > STRANGE_NS))
			end(c);
	}
	if (h->deaf_until != 0 && now >= h->deaf_until)
		listen_for(h, true);
}

/* False: it is to end. */
static bool
on_event(struct host *h, const struct epoll_event *e)
{
	struct conn *c = e->data.ptr;

	if (e->data.ptr == &h->bell)
		return false;
	if (e->data.ptr == h) {
		on_connect(h);
		return true;
	}
	if (!c->dead && (e->events & ~(uint32_t)EPOLLOUT) != 0)
		receive(c);
	if (!c->dead)
		serve(c);
	return true;
}

static void *
run(void *ctx)
{
	struct host *h = ctx;
	struct epoll_event events[EVENTS];
	bool on = true;
	int n;

	while (on) {
		n = epoll_wait(h->epoll, events, EVENTS, patience(h));
		for (int i = 0; i < n; i++)
			on = on_event(h, &events[i]) && on;
		look_around(h);
	}
	return NULL;
}

/* --- its life -------------------------------------------------------------- */

static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, host) hosts = TAILQ_HEAD_INITIALIZER(hosts);

static void
dispose(struct host *h)
{
	while (!TAILQ_EMPTY(&h->conns))
		end(TAILQ_FIRST(&h->conns));
	desk_free(h->desk);
	store_auth_close(&h->auth);
	fd_close(h->fd);
	fd_close(h->bell);
	fd_close(h->epoll);
	free(h);
}

static enum xr_status
listen_at(struct host *h, const struct addrinfo *at, struct xr_error *err)
{
	int on = 1;

	h->fd = socket(at->ai_family,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd != -1 &&
		setsockopt(h->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ==
			0 &&
		bind(h->fd, at->ai_addr, at->ai_addrlen) == 0 &&
		listen(h->fd, SOMAXCONN) == 0)
		return XR_OK;
	return fail(err, errno == EADDRINUSE ? XR_E_EXISTS : XR_E_SYS,
		"store: rank 0 cannot listen on %s port %u: %s%s",
		h->address.host, h->address.port, strerror(errno),
		errno == EADDRNOTAVAIL ?
			"\tan address of the machine of rank 0" :
			"");
}

static bool
open_parts(struct host *h)
{
	struct epoll_event bell = { .events = EPOLLIN, .data.ptr = &h->bell };
	struct epoll_event door = { .events = EPOLLIN, .data.ptr = h };
	struct desk_setup setup = {
		.limits = { BYTES, STORE_VALUE_MAX, KEYS, WAITS, A_GUEST },
		.ready = on_ready,
		.ctx = h,
	};

	if (getrandom(&setup.seed, sizeof(setup.seed), GRND_NONBLOCK) == -1)
		setup.seed.word[0] = (uint64_t)clock_now();
	h->desk = desk_new(&setup);
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return h->desk != NULL && h->epoll != -1 && h->bell != -1 &&
		epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->bell, &bell) == 0 &&
		epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->fd, &door) == 0;
}

static int
start(struct host *h)
{
	int sys = thread_begin(&h->thread, run, h);

	if (sys == 0)
		pthread_setname_np(h->thread, "xrun-store");
	return sys;
}

static size_t
host_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Clients never take more than an eighth and a half of the descriptors that this
 * process may have. */
static void
host_set_limits(struct host *h)
{
	struct rlimit rl = { .rlim_cur = 1024 };
	size_t members = MOST;

	getrlimit(RLIMIT_NOFILE, &rl);
	if (h->address.size != STORE_UNSAID && h->address.size < MOST)
		members = (size_t)h->address.size * A_MEMBER + SPARE;
	h->most = host_least(host_least(members, MOST), rl.rlim_cur / 2);
	h->most_strangers = host_least(STRANGERS, rl.rlim_cur / 8);
}

static enum xr_status
host_new(const struct store_address *address, const struct addrinfo *at,
	struct host **host, struct xr_error *err)
{
	struct host *h = calloc(1, sizeof(*h));
	enum xr_status status;

	if (h == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	h->address = *address;
	h->users = 1;
	h->pid = getpid();
	h->epoll = h->bell = h->fd = -1;
	TAILQ_INIT(&h->conns);
	host_set_limits(h);
	status = address->open ? XR_OK : store_auth_open(&h->auth, err);
	if (status == XR_OK)
		status = listen_at(h, at, err);
	if (status == XR_OK && (!open_parts(h) || (errno = start(h)) != 0))
		status = fail(err, XR_E_SYS, "store: rank 0 cannot serve: %s",
			strerror(errno));
	if (status == XR_OK)
		*host = h;
	else
		dispose(h);
	return status;
}

static struct host *
find(const struct store_address *address)
{
	struct host *h;

	TAILQ_FOREACH(h, &hosts, list)
	if (h->pid == getpid() && h->address.port == address->port &&
		strcmp(h->address.host, address->host) == 0)
		return h;
	return NULL;
}

enum xr_status
host_open(const struct store_address *address, const struct addrinfo *at,
	struct host **host, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct host *h;

	pthread_mutex_lock(&hosts_lock);
	h = find(address);
	if (h != NULL) {
		h->users++;
		*host = h;
	} else {
		status = host_new(address, at, host, err);
		if (status == XR_OK)
			TAILQ_INSERT_TAIL(&hosts, *host, list);
	}
	pthread_mutex_unlock(&hosts_lock);
	return status;
}

void
host_close(struct host *host)
{
	const uint64_t one = 1;
	bool last;

	if (host == NULL)
		return;
	pthread_mutex_lock(&hosts_lock);
	last = --host->users == 0;
	if (last)
		TAILQ_REMOVE(&hosts, host, list);
	pthread_mutex_unlock(&hosts_lock);
	if (!last)
		return;
	fd_tell(host->bell, &one, sizeof(one));
	pthread_join(host->thread, NULL);
	dispose(host);
}
