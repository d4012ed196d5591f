/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "event/child.h"

#define BATCH 256

struct children {
	int epoll;
	struct watch *watch;
	child_fn *fn;
	child_after_fn *after;
	void *ctx;
	uint32_t turns; /* of children_turn() under way */
	bool closed;    /* within one of them */
};

void
children_turn(struct children *c)
{
	struct epoll_event events[BATCH];
	int n;

	c->turns++;
	/* The kernel's list is in the order of the deaths; see child.h. */
	do {
		n = epoll_wait(c->epoll, events, BATCH, 0);
		for (int i = 0; i < n && !c->closed; i++)
			c->fn(events[i].data.u32, c->ctx);
	} while (n == BATCH && !c->closed);
	if (!c->closed)
		c->after(c->ctx);
	if (--c->turns == 0 && c->closed)
		free(c);
}

static void
on_readable(int fd, void *ctx)
{
	(void)fd;
	children_turn(ctx);
}

struct children *
children_open(struct loop *loop, child_fn *fn, child_after_fn *after, void *ctx)
{
	struct children *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->fn = fn;
	c->after = after;
	c->ctx = ctx;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll != -1)
		c->watch = watch_open(loop, c->epoll, false, on_readable, c);
	if (c->watch == NULL) {
		children_close(c);
		return NULL;
	}
	return c;
}

bool
children_add(struct children *c, int pidfd, uint32_t id)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = id };

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, pidfd, &e) == 0;
}

void
children_remove(struct children *c, int pidfd)
{
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, pidfd, NULL);
}

void
children_close(struct children *c)
{
	if (c == NULL)
		return;
	watch_close(c->watch);
	fd_close(c->epoll);
	c->epoll = -1;
	c->closed = true;
	if (c->turns == 0)
		free(c);
}

/* The status of waitpid(2), made from what waitid(2) says. */
static int
wait_status(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

bool
child_reap(int pidfd, pid_t pid, int *status, struct rusage *usage)
{
	siginfo_t info = { 0 };

	/* The system call, because libc's waitid() gives no rusage. */
	if (syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG,
		    usage) == -1)
		/* An older kernel, or a sandbox; it is ours, and not reaped. */
		return (errno == EINVAL || errno == ENOSYS || errno == EPERM) &&
			wait4(pid, status, WNOHANG, usage) == pid;
	if (info.si_pid == 0)
		return false;
	*status = wait_status(&info);
	return true;
}
