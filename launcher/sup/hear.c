/* SPDX-License-Identifier: Apache-2.0 */
/* hear.c - see hear.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/ctl/server.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/keys.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/gauges.h"

#define TURN        64         /* messages */
#define TURN_BYTES  (64 << 10) /* of them, and one message more */
#define REST_MAX    10000      /* messages of those who are dead */
#define MESSAGE_MAX (64 << 10) /* bytes of a message of this way */

void
hear_open(struct job *job)
{
	int fd[2], on = 1;
	struct stat st;

	job->hear_fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) == -1)
		return;
	if (setsockopt(fd[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
		fstat(fd[1], &st) == 0 &&
		spawn_slot_set(SPAWN_SLOT_CONTROL, fd[1]) == 0) {
		job->hear_fd = fd[0];
		snprintf(job->hear_name, sizeof(job->hear_name), "%d:%llu",
			HEAR_FD, (unsigned long long)st.st_ino);
	} else {
		fd_close(fd[0]);
	}
	fd_close(fd[1]);
}

void
hear_promise(struct job *job)
{
	snprintf(job->hear_name, sizeof(job->hear_name), "%d:0", HEAR_FD);
}

/* --- who tells ------------------------------------------------------------ */

/* A rank's process or, since each has a session of its own, one of those that
 * it made. */
static uint32_t
rank_of(const struct job *job, pid_t pid)
{
	pid_t session = pid > 0 ? getsid(pid) : -1;

	for (uint32_t r = 0; pid > 0 && r < job_size(job); r++)
		if (job->rank[r].pid == pid ||
			(session > 0 && job->rank[r].pid == session))
			return r;
	return JOB_NOBODY;
}

/* A process that made a session of its own, lives in another name space, or is
 * gone by now, says which rank it is. */
static uint32_t
claimed(const struct job *job, int64_t rank)
{
	if (rank < job->plan.first ||
		rank >= (int64_t)job->plan.first + job_size(job))
		return JOB_NOBODY;
	return (uint32_t)rank - job->plan.first;
}

/* --- what is told --------------------------------------------------------- */

struct told {
	char text[MESSAGE_MAX + 1];
	size_t len;
	pid_t pid; /* 0: not known */
	int fd;    /* sent along; -1 */
};

static int64_t
claim_of(const struct control *m)
{
	switch (m->type) {
	case CONTROL_HELLO:
		return m->hello.rank;
	case CONTROL_READY:
		return m->ready.rank;
	case CONTROL_PROGRESS:
		return m->progress.rank;
	case CONTROL_GRACE:
		return m->grace.rank;
	case CONTROL_RPC:
		return m->rpc.rank;
	case CONTROL_LOST:
		return m->lost.rank;
	case CONTROL_GAUGES:
		return m->gauges.rank;
	default:
		return CONTROL_NONE;
	}
}

/* Once a job. */
static void
say_odd(struct job *job, const char *why)
{
	if (!job->sup->odd_told && job->opt.verbose)
		logs_say(job->sup->logs,
			"xrun: something was told to descriptor %d that is no message: %s",
			HEAR_FD, why);
	job->sup->odd_told = true;
}

static void
take(struct job *job, struct told *t)
{
	struct control m;
	struct xr_error err = { 0 };
	uint32_t r = rank_of(job, t->pid);

	t->text[t->len] = '\0';
	while (t->len > 0 && t->text[t->len - 1] == '\n')
		t->text[--t->len] = '\0';
	if (control_read(&m, t->text, t->len, CONTROL_BY_RANK, &err) != XR_OK) {
		say_odd(job, err.text);
		return;
	}
	if (keys_is(m.type)) {
		say_odd(job, "the store is asked on a connection of its own");
		return;
	}
	if (r == JOB_NOBODY)
		r = claimed(job, claim_of(&m));
	if (r == JOB_NOBODY) {
		say_odd(job, "nobody knows which rank it is from");
		return;
	}
	if (m.type == CONTROL_HELLO && t->fd != -1) {
		steer_admit(job, t->fd, r);
		t->fd = -1;
		return;
	}
	if (m.type == CONTROL_GAUGES) {
		if (t->fd != -1 && steer_spares(job, t->fd) &&
			gauges_sent(job, r, t->pid, t->fd))
			t->fd = -1;
		return;
	}
	steer_told(job, r, &m);
}

/* --- reading -------------------------------------------------------------- */

/* Credentials, and at most one descriptor; of more, all but the first close. */
static void
read_ancillary(struct job *job, struct msghdr *h, struct told *t)
{
	struct ucred who;
	int fd[16], count;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL;
		c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&who, CMSG_DATA(c), sizeof(who));
			t->pid = who.pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			count = (int)((c->cmsg_len - CMSG_LEN(0)) /
				sizeof(fd[0]));
			memcpy(fd, CMSG_DATA(c), (size_t)count * sizeof(fd[0]));
			t->fd = fd[0];
			while (--count > 0)
				steer_close(job, fd[count]);
		}
	}
}

/* False: there is nothing now. */
static bool
receive(struct job *job, struct told *t)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred)) +
			CMSG_SPACE(16 * sizeof(int))];
	} ancillary;
	struct iovec io = { .iov_base = t->text, .iov_len = MESSAGE_MAX };
	struct msghdr h = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = sizeof(ancillary),
	};
	ssize_t n = recvmsg(job->hear_fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	t->pid = 0;
	t->fd = -1;
	/* Nobody of us closes the other end: 0 is a message, and a descriptor
	 * may have come with it. */
	if (n < 0)
		return false;
	t->len = (size_t)n;
	read_ancillary(job, &h, t);
	if (h.msg_flags & MSG_TRUNC)
		t->len = 0; /* no message */
	return true;
}

bool
hear_turn(struct job *job)
{
	static struct told t; /* the loop's */
	size_t bytes = 0;

	for (int i = 0; i < TURN && bytes < TURN_BYTES; i++) {
		if (job->hear_fd == -1 || !receive(job, &t))
			return true;
		bytes += t.len;
		take(job, &t);
		if (t.fd != -1)
			steer_close(job, t.fd);
	}
	return false;
}

static void
on_told(int fd, void *ctx)
{
	(void)fd;
	hear_turn(ctx);
}

void
hear_begin(struct job *job)
{
	if (job->hear_fd != -1)
		job->sup->hear = watch_open(job->sup->loop, job->hear_fd, false,
			on_told, job);
}

/* What the dead said is not the next attempt's; with no room for descriptors,
 * those are closed. */
static void
drop_rest(int fd)
{
	char byte;

	for (int n = 0; fd != -1 && n < REST_MAX; n++)
		if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0)
			break;
}

void
hear_close(struct job *job)
{
	watch_close(job->sup->hear);
	job->sup->hear = NULL;
	if (again_is_due(&job->page->again)) {
		drop_rest(job->hear_fd);
		return;
	}
	fd_close(job->hear_fd);
	job->hear_fd = -1;
}
