/* SPDX-License-Identifier: Apache-2.0 */
/* aide.c - see aide.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/queue.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "event/child.h"
#include "launcher/job/sup.h"
#include "launcher/tell/aide.h"

#define GRACE_NS (1 * NS_PER_S) /* between TERM and KILL */
#define LATE_NS  (50 * NS_PER_MS)
#define REAP_MS  100

struct aide {
	LIST_ENTRY(aide) list;
	struct job *job;
	struct watch *death; /* of pidfd */
	struct timer *time;
	aide_fn *fn; /* NULL: nobody wants to hear of it */
	void *ctx;
	pid_t pid;
	int pidfd;
	bool told; /* to end */
	bool late;
	bool dead; /* and maybe not reaped yet */
};

/* Slots are the next rank's, and one that is tried again has its pipes in them
 * already: an aide has them for a moment. */
struct lent {
	int in, out, err; /* what stood in each; -1: not lent */
};

static int
lend(enum spawn_slot slot, int fd)
{
	int held = fcntl((int)slot, F_DUPFD_CLOEXEC, SPAWN_SLOTS);

	if (held == -1 || spawn_slot_set(slot, fd) == 0)
		return held;
	fd_close(held);
	return -1;
}

static void
give_back(enum spawn_slot slot, int held)
{
	if (held != -1)
		spawn_slot_set(slot, held);
	fd_close(held);
}

static bool
spawn_it(struct aide *a, const struct aide_config *c)
{
	struct lent lent = { .in = lend(SPAWN_SLOT_IN, c->in),
		.out = lend(SPAWN_SLOT_OUT, c->out),
		.err = lend(SPAWN_SLOT_ERR, c->err) };
	struct spawn s = {
		.path = c->path,
		.argv = c->argv,
		.envp = c->envp,
		.in = SPAWN_SLOT_IN,
		.out = SPAWN_SLOT_OUT,
		.err = SPAWN_SLOT_ERR,
		.life = -1,
		.control = -1,
		.files = a->job->limits.files,
		.rank = FAULT_ANY,
	};
	bool runs = lent.in != -1 && lent.out != -1 && lent.err != -1;

	if (runs) {
		runs = spawn_start(&s);
		errno = s.sys;
	}
	give_back(SPAWN_SLOT_IN, lent.in);
	give_back(SPAWN_SLOT_OUT, lent.out);
	give_back(SPAWN_SLOT_ERR, lent.err);
	a->pid = s.pid;
	a->pidfd = runs ? s.pidfd : -1;
	return runs;
}

static void
forget(struct aide *a)
{
	LIST_REMOVE(a, list);
	watch_close(a->death);
	timer_close(a->time);
	fd_close(a->pidfd);
	free(a);
}

/* Its whole group, as long as it is not reaped: then the number is nobody
 * else's. */
static void
on_death(int fd, void *ctx)
{
	struct aide *a = ctx;
	aide_fn *fn = a->fn;
	void *whose = a->ctx;
	bool late = a->late;
	struct rusage usage;
	int status = 0;

	(void)fd;
	kill(-a->pid, SIGKILL);
	a->dead = true;
	if (!child_reap(a->pidfd, a->pid, &status, &usage)) {
		watch_pause(a->death); /* a debugger sees its dead first */
		timer_arm(a->time, LATE_NS);
		return;
	}
	forget(a);
	if (fn != NULL)
		fn(status, late, whose);
}

static void
tell(struct aide *a)
{
	kill(-a->pid, a->told ? SIGKILL : SIGTERM);
	kill(-a->pid, SIGCONT);
	if (!a->told)
		timer_arm(a->time, GRACE_NS);
	a->told = true;
}

static void
on_time(void *ctx)
{
	struct aide *a = ctx;

	if (a->dead) {
		on_death(a->pidfd, a);
		return;
	}
	a->late = true;
	tell(a);
}

struct aide *
aide_start(struct job *job, const struct aide_config *c)
{
	struct aide *a = calloc(1, sizeof(*a));
	int sys;

	if (a == NULL)
		return NULL;
	*a = (struct aide){ .job = job, .fn = c->fn, .ctx = c->ctx };
	LIST_INSERT_HEAD(&job->sup->aides, a, list);
	a->time = timer_open(job->sup->loop, on_time, a);
	if (a->time == NULL || !spawn_it(a, c)) {
		sys = a->time == NULL ? ENOMEM : errno;
		a->pidfd = -1;
		forget(a);
		errno = sys;
		return NULL;
	}
	a->death = watch_open(job->sup->loop, a->pidfd, false, on_death, a);
	if (a->death == NULL) {
		kill(-a->pid, SIGKILL); /* reaped at the end of the job */
		a->fn = NULL;
		errno = ENOMEM;
		return NULL;
	}
	if (c->time_ns > 0)
		timer_arm(a->time, c->time_ns);
	return a;
}

pid_t
aide_pid(const struct aide *a)
{
	return a->pid;
}

void
aide_end(struct aide *a)
{
	if (a == NULL)
		return;
	a->fn = NULL;
	if (!a->told && !a->dead)
		tell(a);
}

bool
aide_is(const struct job *job, pid_t pid)
{
	const struct aide *a;

	LIST_FOREACH(a, &job->sup->aides, list)
	if (a->pid == pid)
		return true;
	return false;
}

bool
aide_any(const struct job *job)
{
	return !LIST_EMPTY(&job->sup->aides);
}

void
aide_end_all(struct job *job)
{
	struct pollfd p = { .events = POLLIN };
	struct rusage usage;
	struct aide *a;
	int status;

	LIST_FOREACH(a, &job->sup->aides, list)
	kill(-a->pid, SIGKILL);
	while ((a = LIST_FIRST(&job->sup->aides)) != NULL) {
		p.fd = a->pidfd;
		poll(&p, 1, REAP_MS);
		child_reap(a->pidfd, a->pid, &status, &usage);
		forget(a);
	}
}
