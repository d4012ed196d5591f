/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.c - a bad line between two ends: what connects to it is forwarded to
 * TARGET, and suffers on the way.
 *
 *   proxy [--unix PATH] [--last MS] TARGET [FAULT]...
 *
 * TARGET is PORT (of the loopback), ADDRESS:PORT, or the path of a unix socket.
 * Listens on a port of the loopback that nobody has, or on PATH. Each line of
 * stdin is another FAULT (line_fault.h); the end of stdin is the end of the
 * proxy. Faults are of the proxy, not of a connection: they hold for those there
 * are, and for each that comes, until "ok". A FAULT has acted on every
 * connection before the next is read, so "reset" and "ok" in one write cut once.
 *
 * stdout has a line for each event: "listening PORT", "set FAULT" when it has
 * acted, "connection N opened", "... half-open", "... refused", and "... over:
 * " with ended, reset or why the target was not reached.
 *
 * Memory: LINES connections, others wait in the backlog; of each QUEUE reads
 * of CHUNK bytes at most for each direction, which bounds also what a delay can
 * hold; 64 KiB in buffers of the kernel.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/fault/line_fault.h"
#include "tests/prog/prog.h"

#define LINES  64
#define CHUNK  2048
#define QUEUE  128
#define TURN   64 /* sends of a direction, then it is another's turn */
#define KERNEL 65536
#define TEXT   256

/* What one read gave. An end and a reset wait their turn as bytes do. */
enum chunk_kind { DATA, END, BREAK };

struct chunk {
	enum chunk_kind kind;
	int64_t came;
	size_t len, sent;
	char data[CHUNK];
};

struct flow {
	struct chunk queue[QUEUE];
	size_t first, count;
	int64_t taken, passed; /* bytes since the last fault that counts */
	int64_t next_ns;       /* of rate */
	bool closed;           /* the sender's end is in the queue, or was */
	bool over;             /* the end was passed on */
	bool blocked;          /* the receiver takes no more at the moment */
	bool lost;             /* the receiver is gone: all is forgotten */
};

struct line {
	unsigned int id;
	int fd[WAYS];
	bool connecting;
	const char *end; /* how it ended; it is closed soon */
	struct flow flow[WAYS];
};

static struct proxy {
	int listener;
	struct sockaddr_storage to;
	socklen_t to_len;
	unsigned int count; /* of connections, ever */
	struct line_faults faults;
	struct line *lines[LINES];
	char text[TEXT]; /* of stdin, not yet a whole line */
	size_t text_len;
} proxy;

static enum line_way
other(enum line_way w)
{
	return w == UP ? DOWN : UP;
}

/* --- the ends ------------------------------------------------------------- */

static void
turn_on(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)) == -1)
		prog_die(errno, "setsockopt %d", option);
}

static socklen_t
unix_address(const char *path, struct sockaddr_storage *out)
{
	struct sockaddr_un *to = (struct sockaddr_un *)out;

	if (strlen(path) >= sizeof(to->sun_path))
		prog_die(ENAMETOOLONG, "%s", path);
	to->sun_family = AF_UNIX;
	memcpy(to->sun_path, path, strlen(path) + 1);
	return sizeof(*to);
}

/* "4711", "127.0.0.1:4711" or "/run/sock". */
static socklen_t
address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *to = (struct sockaddr_in *)out;
	const char *colon = strrchr(text, ':');
	char host[64] = "127.0.0.1";
	int64_t port;

	if (strchr(text, '/') != NULL)
		return unix_address(text, out);
	if (colon != NULL)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	port = prog_num("port", colon == NULL ? text : colon + 1);
	if (inet_pton(AF_INET, host, &to->sin_addr) != 1 || port < 0 ||
		port > UINT16_MAX)
		prog_die(0, "'%s' is not PORT, ADDRESS:PORT or a path", text);
	to->sin_family = AF_INET;
	to->sin_port = htons((uint16_t)port);
	return sizeof(*to);
}

/* Small buffers, which accepted sockets inherit: back-pressure is felt soon. */
static int
stream_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd == -1)
		prog_die(errno, "socket");
	turn_on(fd, SOL_SOCKET, SO_RCVBUF, KERNEL);
	turn_on(fd, SOL_SOCKET, SO_SNDBUF, KERNEL);
	if (family == AF_INET)
		turn_on(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return fd;
}

static void
start_listening(const char *path)
{
	struct sockaddr_storage at = { 0 };
	struct sockaddr_in *tcp = (struct sockaddr_in *)&at;
	socklen_t len = address(path == NULL ? "0" : path, &at);
	int fd = stream_socket(at.ss_family);

	if (bind(fd, (struct sockaddr *)&at, len) == -1 ||
		listen(fd, SOMAXCONN) == -1 ||
		getsockname(fd, (struct sockaddr *)&at, &len) == -1)
		prog_die(errno, "listen on %s", path == NULL ? "a port" : path);
	proxy.listener = fd;
	if (path == NULL)
		printf("listening %u\n", (unsigned)ntohs(tcp->sin_port));
	else
		printf("listening %s\n", path);
}

/* --- connections ---------------------------------------------------------- */

static void
begin_line(struct line **place, int fd)
{
	struct line *l = calloc(1, sizeof(*l));

	if (l == NULL)
		prog_die(errno, "a connection");
	*place = l;
	l->id = proxy.count;
	l->fd[UP] = fd;
	l->fd[DOWN] = stream_socket(proxy.to.ss_family);
	l->connecting = true;
	if (connect(l->fd[DOWN], (struct sockaddr *)&proxy.to, proxy.to_len) ==
			-1 &&
		errno != EINPROGRESS)
		l->end = strerrordesc_np(errno);
}

/* The next waits until there is room. */
static void
take_connection(void)
{
	int fd = accept4(proxy.listener, NULL, NULL,
		SOCK_CLOEXEC | SOCK_NONBLOCK);
	size_t i = 0;

	if (fd == -1)
		return;
	proxy.count++;
	if (proxy.faults.refuse) {
		close(fd);
		printf("connection %u refused\n", proxy.count);
		return;
	}
	while (proxy.lines[i] != NULL)
		i++;
	begin_line(&proxy.lines[i], fd);
}

static bool
is_full(void)
{
	for (size_t i = 0; i < LINES; i++)
		if (proxy.lines[i] == NULL)
			return false;
	return true;
}

static void
finish_connecting(struct line *l)
{
	int sys = 0;
	socklen_t len = sizeof(sys);

	getsockopt(l->fd[DOWN], SOL_SOCKET, SO_ERROR, &sys, &len);
	l->connecting = false;
	if (sys != 0)
		l->end = strerrordesc_np(sys);
	else
		printf("connection %u opened\n", l->id);
}

static void
close_line(struct line **place)
{
	struct line *l = *place;
	struct linger now = { .l_onoff = 1 };

	for (enum line_way w = UP; w < WAYS; w++) {
		if (l->fd[w] != -1 && strcmp(l->end, "ended") != 0)
			setsockopt(l->fd[w], SOL_SOCKET, SO_LINGER, &now,
				sizeof(now));
		fd_close(l->fd[w]);
	}
	printf("connection %u over: %s\n", l->id, l->end);
	free(l);
	*place = NULL;
}

/* --- from a sender -------------------------------------------------------- */

static void
corrupt(struct flow *f, struct chunk *c, int64_t every)
{
	for (size_t i = 0; i < c->len; i++)
		if (++f->taken % every == 0)
			c->data[i] ^= 1;
}

/* One read; there is room. */
static void
take(struct line *l, enum line_way w)
{
	struct flow *f = &l->flow[w];
	struct chunk *c = &f->queue[(f->first + f->count) % QUEUE];
	ssize_t n = recv(l->fd[w], c->data, CHUNK, 0);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	c->kind = n == 0 ? END : DATA;
	if (n == -1)
		c->kind = BREAK;
	c->came = clock_now();
	c->len = n > 0 ? (size_t)n : 0;
	c->sent = 0;
	f->count++;
	f->closed = n <= 0;
	if (proxy.faults.set[w][CORRUPT] != OFF)
		corrupt(f, c, proxy.faults.set[w][CORRUPT]);
}

/* --- to a receiver -------------------------------------------------------- */

static void
pop(struct flow *f)
{
	f->first = (f->first + 1) % QUEUE;
	f->count--;
}

static void
forget(struct flow *f)
{
	while (f->count > 0 && f->queue[f->first].kind == DATA)
		pop(f);
	f->blocked = false;
}

/* When the first of the queue may go; INT64_MAX: that is not for time to say. */
static int64_t
due(const struct flow *f, enum line_way w)
{
	const int64_t *set = proxy.faults.set[w];
	const struct chunk *c = &f->queue[f->first];
	int64_t at = c->came;

	if (f->count == 0 || f->blocked)
		return INT64_MAX;
	if (f->lost)
		return at;
	if (set[DROP] != OFF && c->kind != DATA)
		return INT64_MAX;
	if (set[DELAY] != OFF)
		at += set[DELAY];
	return set[RATE] != OFF && f->next_ns > at ? f->next_ns : at;
}

static void
at_most(size_t *len, int64_t most)
{
	if (most != OFF && (int64_t)*len > most)
		*len = (size_t)most;
}

/* How many bytes of the first chunk go at once; 10 ms' worth of a rate. */
static size_t
portion(const struct flow *f, enum line_way w)
{
	const int64_t *set = proxy.faults.set[w];
	const struct chunk *c = &f->queue[f->first];
	size_t len = c->len - c->sent;

	at_most(&len, set[BYTES]);
	if (set[RATE] != OFF)
		at_most(&len, 1 + set[RATE] / 100);
	if (set[RESET] != OFF)
		at_most(&len, set[RESET] - f->passed);
	if (set[HALF_OPEN] != OFF)
		at_most(&len, set[HALF_OPEN] - f->passed);
	return len;
}

/* MSG_EOR: the kernel adds nothing to this segment later (tcp_skb_can_collapse,
 * tcp_sendmsg_locked: TCP_SKB_CB()->eor). */
static void
send_some(struct line *l, enum line_way w, int64_t now)
{
	const int64_t *set = proxy.faults.set[w];
	struct flow *f = &l->flow[w];
	struct chunk *c = &f->queue[f->first];
	ssize_t n = send(l->fd[other(w)], c->data + c->sent, portion(f, w),
		MSG_NOSIGNAL | (set[BYTES] != OFF ? MSG_EOR : 0));

	if (n == -1) {
		f->blocked = errno == EAGAIN;
		f->lost = errno != EAGAIN && errno != EINTR;
		return;
	}
	f->passed += n;
	c->sent += (size_t)n;
	if (set[RATE] != OFF)
		f->next_ns = now + n * NS_PER_S / set[RATE];
	if (c->sent == c->len)
		pop(f);
}

static void
pass_end(struct line *l, enum line_way w)
{
	struct flow *f = &l->flow[w];

	if (f->queue[f->first].kind == BREAK && !f->lost)
		l->end = "reset";
	else if (l->fd[other(w)] != -1)
		shutdown(l->fd[other(w)], SHUT_WR);
	f->over = true;
	pop(f);
}

/* Who sends in this direction is never told. */
static void
halve(struct line *l, enum line_way w)
{
	struct flow *back = &l->flow[other(w)];

	fd_close(l->fd[other(w)]);
	l->fd[other(w)] = -1;
	l->flow[w].lost = true;
	back->closed = back->over = true;
	back->count = 0;
	printf("connection %u half-open\n", l->id);
}

static void
cut(struct line *l, enum line_way w)
{
	const int64_t *set = proxy.faults.set[w];
	const struct flow *f = &l->flow[w];

	if (set[RESET] != OFF && f->passed >= set[RESET])
		l->end = "reset";
	else if (set[HALF_OPEN] != OFF && f->passed >= set[HALF_OPEN] &&
		l->fd[UP] != -1 && l->fd[DOWN] != -1)
		halve(l, w);
}

static void
give(struct line *l, enum line_way w, int64_t now)
{
	struct flow *f = &l->flow[w];

	for (int i = 0; i < TURN && l->end == NULL; i++) {
		cut(l, w);
		if (f->lost || proxy.faults.set[w][DROP] != OFF)
			forget(f);
		if (l->end != NULL || due(f, w) > now)
			return;
		if (f->queue[f->first].kind == DATA)
			send_some(l, w, now);
		else
			pass_end(l, w);
	}
}

/* --- turns ---------------------------------------------------------------- */

/* A receiver that is gone is told to the sender by a reset, once its own end
 * was passed on; until then that is on its way, and may be held back. */
static void
judge(struct line *l)
{
	const struct flow *up = &l->flow[UP], *down = &l->flow[DOWN];

	if (l->end != NULL)
		return;
	if (up->over && down->over)
		l->end = "ended";
	else if (l->fd[UP] != -1 && l->fd[DOWN] != -1 &&
		((up->lost && down->over) || (down->lost && up->over)))
		l->end = "reset";
}

/* All that can be done now; when there is more to do. */
static int64_t
work(void)
{
	int64_t now = clock_now(), next = INT64_MAX;

	for (size_t i = 0; i < LINES; i++) {
		struct line *l = proxy.lines[i];

		if (l == NULL)
			continue;
		for (enum line_way w = UP; w < WAYS && !l->connecting; w++) {
			give(l, w, now);
			if (due(&l->flow[w], w) < next)
				next = due(&l->flow[w], w);
		}
		judge(l);
		if (l->end != NULL)
			close_line(&proxy.lines[i]);
	}
	return next;
}

static short
wanted(const struct line *l, enum line_way side)
{
	const struct flow *f = &l->flow[side];
	short events = 0;

	if (l->connecting)
		return side == DOWN ? POLLOUT : 0;
	if (!f->closed && f->count < QUEUE &&
		(proxy.faults.set[side][STALL] == OFF || f->lost))
		events |= POLLIN;
	if (l->flow[other(side)].blocked)
		events |= POLLOUT;
	return events;
}

/* Where nothing is wanted, -1: poll() would tell of a hang-up all the same. */
static void
watch(const struct line *l, struct pollfd *p)
{
	for (enum line_way w = UP; w < WAYS; w++) {
		p[w] = (struct pollfd){ .fd = -1 };
		if (l == NULL || wanted(l, w) == 0)
			continue;
		p[w].fd = l->fd[w];
		p[w].events = wanted(l, w);
	}
}

static void
heed(struct line *l, const struct pollfd *p)
{
	if (l->connecting && p[DOWN].revents != 0) {
		finish_connecting(l);
		return;
	}
	for (enum line_way w = UP; w < WAYS; w++) {
		if ((p[w].revents & ~POLLOUT) != 0 && (p[w].events & POLLIN))
			take(l, w);
		if (p[w].revents != 0 && (p[w].events & POLLOUT))
			l->flow[other(w)].blocked = false;
	}
}

/* --- stdin ---------------------------------------------------------------- */

/* Counts begin anew, and all connections feel it at once. */
static void
obey(const char *text)
{
	line_fault_set(&proxy.faults, text);
	for (size_t i = 0; i < LINES * WAYS; i++) {
		enum line_way w = i % WAYS;

		if (proxy.lines[i / WAYS] == NULL || !proxy.faults.fresh[w])
			continue;
		proxy.lines[i / WAYS]->flow[w].taken = 0;
		proxy.lines[i / WAYS]->flow[w].passed = 0;
	}
	work();
	printf("set %s\n", text);
}

/* False: there is no more. */
static bool
read_faults(void)
{
	ssize_t n = read(STDIN_FILENO, proxy.text + proxy.text_len,
		TEXT - 1 - proxy.text_len);
	char *nl;

	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	proxy.text_len += (size_t)n;
	while ((nl = memchr(proxy.text, '\n', proxy.text_len)) != NULL) {
		*nl = '\0';
		obey(proxy.text);
		proxy.text_len -= (size_t)(nl + 1 - proxy.text);
		memmove(proxy.text, nl + 1, proxy.text_len);
	}
	if (proxy.text_len == TEXT - 1)
		prog_die(0, "a line of stdin is too long");
	return true;
}

/* --- main ----------------------------------------------------------------- */

static void
wait_until(int64_t when, struct pollfd *p, nfds_t count)
{
	int64_t ns = when == INT64_MAX ? 0 : when - clock_now();
	struct timespec t = { 0 };

	if (ns > 0) {
		t.tv_sec = (time_t)(ns / NS_PER_S);
		t.tv_nsec = (long)(ns % NS_PER_S);
	}
	if (ppoll(p, count, when == INT64_MAX ? NULL : &t, NULL) == -1 &&
		errno != EINTR)
		prog_die(errno, "poll");
}

static bool
turn(void)
{
	int64_t next = work(); /* which may make room for a connection */
	struct pollfd p[2 + LINES * WAYS] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = is_full() ? -1 : proxy.listener, .events = POLLIN },
	};

	for (size_t i = 0; i < LINES; i++)
		watch(proxy.lines[i], &p[2 + i * WAYS]);
	wait_until(next, p, sizeof(p) / sizeof(p[0]));
	for (size_t i = 0; i < LINES; i++)
		if (proxy.lines[i] != NULL)
			heed(proxy.lines[i], &p[2 + i * WAYS]);
	if (p[1].revents != 0)
		take_connection();
	return p[0].revents == 0 || read_faults();
}

int
main(int argc, char **argv)
{
	const char *path = NULL;
	int64_t last = 60000;
	const struct prog_opt table[] = {
		{ "unix", PROG_TEXT, &path, "listen on this path" },
		{ "last", PROG_NUM, &last, "ms it never outlives" },
		{ 0 },
	};
	int at = prog_opts(argc, argv, table);

	if (at == argc)
		prog_die(0, "proxy [OPTION]... TARGET [FAULT]...");
	prog_lifetime(last);
	setvbuf(stdout, NULL, _IOLBF, 0);
	proxy.to_len = address(argv[at], &proxy.to);
	line_fault_set(&proxy.faults, "ok");
	while (++at < argc)
		line_fault_set(&proxy.faults, argv[at]);
	start_listening(path);
	while (turn())
		continue;
	return 0;
}
