/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_rig.h - a test is the parent of a zygote: it sends orders over the socket, and
 * sees what children say of themselves and how they end.
 */
#ifndef TESTS_UNIT_ZYGOTE_RIG_H
#define TESTS_UNIT_ZYGOTE_RIG_H

#include <poll.h>

#include <sys/mman.h>
#include <sys/socket.h>

#include <xrun/proc.h>

#include "base/along.h"
#include "tests/unit/forked.h"
#include "worker/proc/card.h"
#include "worker/proc/given.h"
#include "worker/proc/meet.h"
#include "worker/proc/serve.h"
#include "worker/proc/zygote.h"

static struct xr_error error;

/* --- functions that children run ----------------------------------------------- */

static char text[4096]; /* what a function has to say */

static void __attribute__((format(printf, 1, 2)))
say(const char *fmt, ...)
{
	size_t at = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + at, sizeof(text) - at, fmt, ap);
	va_end(ap);
}

/* Its open descriptors, with a + those that are not close-on-exec, the signals it
 * blocks, and what else an order decides. */
static enum xr_status
tells(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	uint32_t count;
	const int *given = given_fds(&count);
	const char *value = getenv("TOLD");
	struct sigaction at_child;
	char folder[256] = "";
	sigset_t mask;
	int sig = 0;

	(void)arg;
	(void)ctx;
	(void)err;
	text[0] = '\0';
	say("open");
	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			say(" %d%s", fd, fcntl(fd, F_GETFD) == 0 ? "+" : "");
	sigprocmask(SIG_SETMASK, NULL, &mask);
	say("; blocked");
	for (sig = 1; sig < 32; sig++)
		if (sigismember(&mask, sig))
			say(" %d", sig);
	sigaction(SIGCHLD, NULL, &at_child);
	say("; %s; ordinal %u; given",
		at_child.sa_handler == SIG_IGN ? "ignores" : "default",
		ordinal);
	for (uint32_t i = 0; i < count; i++)
		say(" %d", given[i]);
	say("; %s; TOLD=%s; %s %s %s", getcwd(folder, sizeof(folder)),
		value != NULL ? value : "", meet_is_here() ? "meets" : "alone",
		getenv(CARD_VARIABLE) != NULL ? "card" : "none",
		getenv(MEET_VARIABLE) != NULL ? "place" : "none");
	return write(STDOUT_FILENO, text, strlen(text)) == -1 ? XR_E_SYS :
								XR_OK;
}

/* Ends with the code that it reads, or fails at the end of the input. */
static enum xr_status
reads(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	unsigned char code;

	(void)ordinal;
	(void)arg;
	(void)ctx;
	if (read(STDIN_FILENO, &code, 1) == 1)
		_exit(code);
	return xr_error_set(err, XR_E_CLOSED, "the end");
}

static enum xr_status
dies(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	return kill(getpid(), SIGTERM) == 0 ? XR_OK : XR_E_SYS;
}

/* Leaves a process that has its output. */
static enum xr_status
leaves(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	pid_t pid = fork();

	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)err;
	while (pid == 0)
		pause();
	return pid != -1 ? XR_OK : XR_E_SYS;
}

static void
register_all(void)
{
	static bool once;

	if (once)
		return;
	once = true;
	NEED(xr_proc_register("tells", tells, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("reads", reads, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("leaves", leaves, NULL, NULL) == XR_OK);
	NEED(xr_proc_register("dies", dies, NULL, NULL) == XR_OK);
}

/* A child that executes this program runs its card before main(). */
__attribute__((constructor)) static void
run_card_if_any(void)
{
	if (getenv(CARD_VARIABLE) == NULL)
		return;
	if (xr_proc_register("tells", tells, NULL, NULL) != XR_OK)
		_exit(90);
	xr_init(NULL);
	_exit(91);
}

/* --- the parent ------------------------------------------------------------------ */

static int asks = -1; /* the socket of the zygote's parent */
static pid_t zygote;

/* What a zygote of the next test does before it serves. */
static void (*first_of_all)(void);

/* The only descriptors of the zygote above 2 are those of the test. */
static void __attribute__((noreturn))
be_zygote(int socket)
{
	NEED(dup3(socket, 3, O_CLOEXEC) == 3);
	NEED(close_range(4, ~0u, 0) == 0);
	if (first_of_all != NULL)
		first_of_all();
	serve(3);
}

static int
readable(int fd)
{
	struct pollfd on = { .fd = fd, .events = POLLIN };

	return poll(&on, 1, -1);
}

/* The next packet of the zygote; the descriptor that came with it, or -1. */
static int
hear(struct zygote_answer *a)
{
	struct along got;

	NEED(readable(asks) == 1);
	*a = (struct zygote_answer){ -1, -2 };
	NEED(along_receive(asks, a, sizeof(*a), &got) == sizeof(*a));
	EXPECT(got.count <= 1);
	return got.count > 0 ? got.fd[0] : -1;
}

static void
expect_answer(int32_t pid, int32_t sys)
{
	struct zygote_answer a;

	EXPECT_EQ(hear(&a), -1);
	EXPECT_EQ(a.pid, pid);
	EXPECT_EQ(a.sys, sys);
}

static void
begin_unheard(void)
{
	int pair[2];

	register_all();
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	zygote = fork();
	NEED(zygote != -1);
	if (zygote == 0)
		be_zygote(pair[1]);
	close(pair[1]);
	asks = pair[0];
}

static void
begin(void)
{
	begin_unheard();
	expect_answer(zygote, 0);
}

static void
expect_exit(pid_t pid, int code)
{
	int status;

	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), code);
}

/* It ends once nobody can ask it any more. */
static void
end(void)
{
	close(asks);
	expect_exit(zygote, 0);
}

/* An order, with descriptors that the caller still has. */
static void
send_bytes(const void *order, size_t len, const int *fds, size_t count)
{
	char room[CMSG_SPACE(16 * sizeof(int))] = { 0 };
	struct iovec io = { (void *)(uintptr_t)order, len };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *m;

	if (count > 0) {
		h.msg_control = room;
		h.msg_controllen = CMSG_SPACE(count * sizeof(int));
		m = CMSG_FIRSTHDR(&h);
		m->cmsg_level = SOL_SOCKET;
		m->cmsg_type = SCM_RIGHTS;
		m->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(m), fds, count * sizeof(int));
	}
	NEED(sendmsg(asks, &h, MSG_NOSIGNAL) == (ssize_t)len);
}

/* A child that the test has ordered. */
struct child {
	struct zygote_order order;
	const char *func, *cleaner, *folder;
	int stdio[3];
	int card; /* -1: it is written */
	int give[2];
	pid_t pid;
	int pidfd, life;
};

#define CHILD(...) { .card = -1, __VA_ARGS__ }

static int
write_card(const struct child *c)
{
	static const char *const env[] = { "TOLD=by the card", NULL };
	const struct card card = {
		.ordinal = 5,
		.text = { "name", c->func, c->cleaner != NULL ? c->cleaner : "",
			c->folder != NULL ? c->folder : "" },
		.env = env,
	};
	int fd;

	NEED(card_write(&card, &fd, &error) == XR_OK);
	return fd;
}

/* Sends the order of @c; its life is there, unless the zygote has closed it. */
static void
order(struct child *c)
{
	int fds[16], ends[2], card = c->card, place = -1;
	size_t n = 0;

	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	for (int fd = 0; fd < 3; fd++)
		if (c->order.flags & (1u << fd))
			fds[n++] = c->stdio[fd];
	if (card == -1)
		card = write_card(c);
	fds[n++] = card;
	if (c->order.flags & ZYGOTE_MEETS) {
		NEED(meet_make(8, &place, &error) == XR_OK);
		fds[n++] = place;
	}
	for (uint32_t i = 0; i < c->order.given; i++)
		fds[n++] = c->give[i];
	fds[n++] = ends[1];
	send_bytes(&c->order, sizeof(c->order), fds, n);
	close(card);
	if (place != -1)
		close(place);
	close(ends[1]);
	c->life = ends[0];
}

static void
start(struct child *c)
{
	struct zygote_answer a;

	order(c);
	c->pidfd = hear(&a);
	c->pid = a.pid;
	EXPECT_EQ(a.sys, 0);
	EXPECT(a.pid > 0);
	EXPECT(c->pidfd != -1);
}

/* Expects the end of @c as it stands in its socket, and nothing behind it. */
static void
expect_end(struct child *c, int code, int status)
{
	struct zygote_end end = { -1, -1 };

	EXPECT_EQ(recv(c->life, &end, sizeof(end), MSG_WAITALL), sizeof(end));
	EXPECT_EQ(end.code, code);
	EXPECT_EQ(end.status, status);
	EXPECT_EQ(read(c->life, &end, sizeof(end)), 0);
	close(c->life);
	close(c->pidfd);
}

/* All that comes from @fd until its other ends are closed. */
static const char *
all_of(int fd)
{
	static char all[4096];
	size_t at = 0;
	ssize_t n;

	while ((n = read(fd, all + at, sizeof(all) - 1 - at)) > 0)
		at += (size_t)n;
	all[at] = '\0';
	close(fd);
	return all;
}

/* Runs @c, whose standard output is a pipe if it has one, and returns what it wrote. */
static const char *
output_of(struct child *c, int code, int status)
{
	const char *all;
	int ends[2];

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	for (int fd = 0; fd < 3; fd++)
		c->stdio[fd] = ends[1];
	start(c);
	close(ends[1]);
	all = all_of(ends[0]);
	expect_end(c, code, status);
	return all;
}

#endif /* TESTS_UNIT_ZYGOTE_RIG_H */
