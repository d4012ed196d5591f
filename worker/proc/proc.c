/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.c - see xrun/proc.h: starting a process, and how it ended.
 *
 * What one made by a zygote ended with comes by a socket, whose end means that the
 * zygote was killed, and so the process with it. One made by fork() is our child.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/signo.h"
#include "base/status.h"
#include "proc/tree.h"
#include "worker/proc/body.h"
#include "worker/proc/final.h"
#include "worker/proc/given.h"
#include "worker/proc/meet.h"
#include "worker/proc/proc.h"
#include "worker/proc/report.h"
#include "worker/proc/serve.h"
#include "worker/proc/target.h"
#include "worker/proc/zygote.h"

#define GRACE_NS (5 * NS_PER_S) /* of a daemon, when this process exits */

struct xr_proc {
	LIST_ENTRY(xr_proc) list;
	pid_t owner, pid;
	int pidfd, card;
	int life; /* -1: it is our child */
	int64_t started;
	bool is_daemon;

	pthread_mutex_t lock;
	bool ended, is_known; /* it is known how */
	siginfo_t how;
	uint32_t reports;
	struct xr_value *report[CARD_REPORTS];
	char name[];
};

static LIST_HEAD(, xr_proc) all = LIST_HEAD_INITIALIZER(all);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t ending; /* the process that has a finaliser for them */

/* --- how it ended ---------------------------------------------------------- */

/* Without waiting. What is sent stays there, so that poll(2) finds it. */
static void
look(struct xr_proc *p)
{
	struct zygote_end end;
	ssize_t n;

	if (p->ended)
		return;
	if (p->life == -1) {
		p->how.si_pid = 0;
		if (waitid(P_PID, (id_t)p->pid, &p->how, WEXITED | WNOHANG) ==
			-1)
			p->ended = errno == ECHILD;
		else
			p->ended = p->is_known = p->how.si_pid != 0;
	} else {
		n = recv(p->life, &end, sizeof(end), MSG_DONTWAIT | MSG_PEEK);
		if (n == -1)
			return;
		p->ended = p->is_known = true;
		p->how.si_code = n == sizeof(end) ? end.code : CLD_KILLED;
		p->how.si_status = n == sizeof(end) ? end.status : SIGKILL;
	}
	if (p->ended)
		p->reports = card_reports(p->card, p->report, CARD_REPORTS);
}

static enum xr_status
await(struct xr_proc *p, int64_t deadline, struct xr_error *err)
{
	struct pollfd on = { .fd = xr_proc_fd(p), .events = POLLIN };
	bool ended;

	for (;;) {
		pthread_mutex_lock(&p->lock);
		look(p);
		ended = p->ended;
		pthread_mutex_unlock(&p->lock);
		if (ended)
			return XR_OK;
		if (poll(&on, 1, run_ms(deadline)) == 0)
			return fail(err, XR_E_TIMEOUT,
				"%.100s (process %d) runs still", p->name,
				(int)p->pid);
	}
}

XR_EXPORT enum xr_status
xr_proc_wait(struct xr_proc *proc, int64_t timeout, struct xr_proc_end *end,
	struct xr_error *err)
{
	int64_t deadline;
	enum xr_status status = run_deadline(timeout, &deadline, err);

	if (status != XR_OK)
		return status;
	if (end != NULL && end->size < sizeof(*end))
		return fail(err, XR_E_INVAL,
			"struct xr_proc_end: size is %u, at least %zu",
			end->size, sizeof(*end));
	if (proc->owner != getpid())
		return fail(err, XR_E_STATE, "%.100s is of process %d",
			proc->name, (int)proc->owner);
	status = await(proc, deadline, err);
	if (status != XR_OK)
		return status;
	if (!proc->is_known)
		return fail(err, XR_E_SYS,
			"%.100s (process %d): somebody else waited for it",
			proc->name, (int)proc->pid);
	if (end != NULL) {
		bool exited = proc->how.si_code == CLD_EXITED;

		end->code = exited ? proc->how.si_status : -1;
		end->signal = exited ? 0 : proc->how.si_status;
	}
	return XR_OK;
}

/* The first that it reported. */
static enum xr_status
reported(const struct xr_proc *p, struct xr_error *err)
{
	struct xr_failure f = { .size = sizeof(f) };

	xr_value_failure(p->report[0], &f);
	return fail(err, XR_E_REMOTE, "%.60s (process %d): %.150s", p->name,
		(int)p->pid, f.text);
}

XR_EXPORT enum xr_status
xr_proc_watch(struct xr_proc *proc, int64_t timeout, struct xr_error *err)
{
	struct xr_proc_end end = { .size = sizeof(end) };
	enum xr_status status = xr_proc_wait(proc, timeout, &end, err);
	char name[16];

	if (status != XR_OK || (end.code == 0 && proc->reports == 0))
		return status;
	if (proc->reports > 0)
		return reported(proc, err);
	if (end.signal != 0)
		return fail(err, XR_E_WORKER_LOST,
			"%.100s (process %d) was ended by %s", proc->name,
			(int)proc->pid,
			signo_name(end.signal, name, sizeof(name)));
	return fail(err, XR_E_WORKER_LOST,
		"%.100s (process %d) ended with exit code %d", proc->name,
		(int)proc->pid, end.code);
}

XR_EXPORT struct xr_value *
xr_proc_report(struct xr_proc *proc, size_t i)
{
	struct xr_value *report = NULL;

	if (proc->owner != getpid() || await(proc, 0, NULL) != XR_OK)
		return NULL;
	if (i < proc->reports)
		report = proc->report[i];
	return report;
}

/* --- what it is ------------------------------------------------------------ */

XR_EXPORT int32_t
xr_proc_pid(const struct xr_proc *proc)
{
	return proc->pid;
}

XR_EXPORT const char *
xr_proc_name(const struct xr_proc *proc)
{
	return proc->name;
}

XR_EXPORT int64_t
xr_proc_started(const struct xr_proc *proc)
{
	return proc->started;
}

XR_EXPORT int
xr_proc_fd(const struct xr_proc *proc)
{
	return proc->life == -1 ? proc->pidfd : proc->life;
}

static enum xr_status
killed(const struct xr_proc *p, int sys, struct xr_error *err)
{
	errno = sys;
	if (sys == 0)
		return XR_OK;
	if (sys == ESRCH)
		return fail(err, XR_E_STATE, "%.100s (process %d) has ended",
			p->name, (int)p->pid);
	return fail(err, sys == EINVAL ? XR_E_INVAL : XR_E_SYS,
		"%.100s (process %d): %s", p->name, (int)p->pid, strerror(sys));
}

XR_EXPORT enum xr_status
xr_proc_kill(struct xr_proc *proc, int sig, struct xr_error *err)
{
	int sys = 0;

	if (syscall(SYS_pidfd_send_signal, proc->pidfd, sig, NULL, 0) == -1)
		sys = errno;
	return killed(proc, sys, err);
}

XR_EXPORT enum xr_status
xr_proc_kill_tree(struct xr_proc *proc, int sig, struct xr_error *err)
{
	return killed(proc, tree_signal(proc->pid, proc->pidfd, sig), err);
}

/* --- ending ---------------------------------------------------------------- */

static void
release(struct xr_proc *p)
{
	fd_close(p->pidfd);
	fd_close(p->card);
	fd_close(p->life);
	for (uint32_t i = 0; i < p->reports; i++)
		xr_value_unref(p->report[i]);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* It is in no list. */
static void
give_up(struct xr_proc *p)
{
	if (p->pidfd != -1 && await(p, 0, NULL) != XR_OK) {
		xr_proc_kill_tree(p, SIGKILL, NULL);
		await(p, INT64_MAX, NULL);
	}
	release(p);
}

XR_EXPORT void
xr_proc_free(struct xr_proc *proc)
{
	if (proc == NULL)
		return;
	if (proc->owner != getpid()) {
		release(proc); /* in no list of this process */
		return;
	}
	pthread_mutex_lock(&lock);
	LIST_REMOVE(proc, list);
	pthread_mutex_unlock(&lock);
	give_up(proc);
}

/* Daemons are told to end, all at once; the others are waited for. */
static void
end_all(void *ctx)
{
	int64_t deadline = clock_now() + GRACE_NS;
	struct xr_proc *p;

	LIST_FOREACH(p, &all, list)
	if (p->is_daemon)
		xr_proc_kill_tree(p, SIGTERM, NULL);
	LIST_FOREACH(p, &all, list)
	if (!p->is_daemon)
		await(p, INT64_MAX, NULL);
	else if (await(p, deadline, NULL) != XR_OK)
		xr_proc_kill_tree(p, SIGKILL, NULL);
	zygote_end_all();
}

/* --- a child of fork() ----------------------------------------------------- */

/* Whoever of them is used in it sees whose they are. */
static void
in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	LIST_INIT(&all);
	zygote_forget();
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* --- starting -------------------------------------------------------------- */

enum xr_status
proc_method(const char *name, struct xr_error *err)
{
	static const char *const names[] = { "zygote", "fork", "spawn" };

	for (int i = 0; name != NULL && i < 3; i++)
		if (strcmp(name, names[i]) == 0)
			return XR_OK;
	if (name == NULL)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"method '%.60s' is not one of zygote, fork, spawn", name);
}

static bool
is_method(const struct xr_proc_opts *o, const char *name)
{
	return o->method != NULL && strcmp(o->method, name) == 0;
}

static enum xr_status
check(const struct xr_proc_opts *o, struct xr_error *err)
{
	const char *asked[2];
	enum xr_status status;

	if (o == NULL || o->size < sizeof(*o) || o->func == NULL ||
		(o->flags & ~(uint32_t)XR_PROC_DAEMON) != 0)
		return fail(err, XR_E_INVAL,
			"struct xr_proc_opts: size, func and flags");
	status = proc_method(o->method, err);
	if (status != XR_OK)
		return status;
	if (o->module != NULL)
		return is_method(o, "fork") ?
			fail(err, XR_E_INVAL, "a module, and method fork") :
			XR_OK;
	asked[0] = o->func;
	asked[1] = o->cleaner;
	for (int i = 0; i < 2; i++)
		if (asked[i] != NULL && target_find(asked[i]) == NULL)
			return fail(err, XR_E_NO_FUNCTION,
				"%s is not registered", asked[i]);
	return XR_OK;
}

/* @path has PATH_MAX. */
static enum xr_status
find_module(struct xr_proc_opts *o, char *path, struct xr_error *err)
{
	if (o->module == NULL)
		return XR_OK;
	if (realpath(o->module, path) == NULL)
		return fail(err, XR_E_NOTFOUND, "module %.150s: %s", o->module,
			strerror(errno));
	o->module = path;
	return XR_OK;
}

static void
fill_card(struct card *card, const struct xr_proc_opts *o,
	const struct xr_proc *p, char *folder)
{
	if (getcwd(folder, PATH_MAX) == NULL)
		folder[0] = '\0';
	card->ordinal = o->ordinal;
	card->started = p->started;
	card->text[CARD_NAME] = p->name;
	card->text[CARD_FUNC] = o->func;
	card->text[CARD_CLEANER] = o->cleaner != NULL ? o->cleaner : "";
	card->text[CARD_FOLDER] = folder;
	card->env = o->env != NULL ? o->env : (const char *const *)environ;
	card->arg = o->arg;
}

static void __attribute__((noreturn))
be_child(pid_t parent, const struct card *card, int fd,
	const struct proc_more *more)
{
	body_bind(parent);
	if (more->place != -1)
		meet_take(more->place, card->ordinal);
	for (uint32_t i = 0; i < more->give_count; i++)
		given_add(more->give[i]);
	if (more->mask != NULL)
		sigprocmask(SIG_SETMASK, more->mask, NULL);
	environ = (char **)(uintptr_t)card->env;
	body_run(card, fd, false);
}

/* What stdio holds would be written by both. */
static enum xr_status
start_by_fork(struct xr_proc *p, struct card *card,
	const struct proc_more *more, struct xr_error *err)
{
	pid_t self = getpid();
	struct xr_value *arg = card->arg;
	enum xr_status status;

	if (serve_has_threads())
		return fail(err, XR_E_STATE,
			"method fork: this process has threads");
	card->arg = NULL; /* it has that */
	status = card_write(card, &p->card, err);
	card->arg = arg;
	if (status != XR_OK)
		return status;
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0)
		be_child(self, card, p->card, more);
	if (p->pid == -1)
		return fail(err, XR_E_SYS, "fork: %s", strerror(errno));
	p->pidfd = fd_above_stdio((int)syscall(SYS_pidfd_open, p->pid, 0));
	if (p->pidfd != -1)
		return XR_OK;
	fail(err, XR_E_SYS, "pidfd_open: %s", strerror(errno));
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	return XR_E_SYS;
}

static enum xr_status
start_by_zygote(struct xr_proc *p, const struct xr_proc_opts *o,
	const struct card *card, const struct proc_more *more,
	struct xr_error *err)
{
	struct zygote_start s = {
		.module = o->module,
		.of = more->of,
		.executes = is_method(o, "spawn"),
		.place = more->place,
		.give = more->give,
		.give_count = more->give_count,
		.mask = more->mask,
	};
	enum xr_status status = card_write(card, &p->card, err);

	if (status != XR_OK)
		return status;
	s.card = p->card;
	status = zygote_start(&s, err);
	if (status != XR_OK)
		return status;
	p->pid = s.pid;
	p->pidfd = s.pidfd;
	p->life = s.life;
	return XR_OK;
}

static struct xr_proc *new(const struct xr_proc_opts *o)
{
	const char *name = o->name != NULL ? o->name : o->func;
	struct xr_proc *p = calloc(1, sizeof(*p) + strlen(name) + 1);

	if (p == NULL)
		return NULL;
	memcpy(p->name, name, strlen(name));
	p->owner = getpid();
	p->pidfd = p->card = p->life = -1;
	p->started = clock_wall();
	p->is_daemon = (o->flags & XR_PROC_DAEMON) != 0;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

/* It is one of those that are ended with this process. */
static enum xr_status
enlist(struct xr_proc *p, struct xr_error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum xr_status status = XR_OK;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (ending != p->owner)
		status = xr_final_new(end_all, NULL, 0, NULL, err);
	if (status == XR_OK) {
		ending = p->owner;
		LIST_INSERT_HEAD(&all, p, list);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

static enum xr_status
start(struct xr_proc *p, struct xr_proc_opts *o, struct card *card,
	const struct proc_more *more, struct xr_error *err)
{
	char module[PATH_MAX];
	enum xr_status status = find_module(o, module, err);

	if (status != XR_OK)
		return status;
	return is_method(o, "fork") && more->of == NULL ?
		start_by_fork(p, card, more, err) :
		start_by_zygote(p, o, card, more, err);
}

enum xr_status
proc_start(const struct xr_proc_opts *opts, const struct proc_more *more,
	struct xr_proc **proc, struct xr_error *err)
{
	struct xr_proc_opts o;
	struct card card = { .flags = more->card_flags };
	enum xr_status status = check(opts, err);
	char folder[PATH_MAX];
	struct xr_proc *p;

	if (status != XR_OK)
		return status;
	if (more->give_count > GIVEN_MAX)
		return fail(err, XR_E_RANGE, "too many descriptors");
	p = new (opts);
	if (p == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	o = *opts;
	fill_card(&card, opts, p, folder);
	status = start(p, &o, &card, more, err);
	if (status == XR_OK)
		status = enlist(p, err);
	if (status == XR_OK)
		*proc = p;
	else
		give_up(p);
	return status;
}

XR_EXPORT enum xr_status
xr_proc_start(const struct xr_proc_opts *opts, struct xr_proc **proc,
	struct xr_error *err)
{
	const struct proc_more none = { .place = -1 };

	return proc_start(opts, &none, proc, err);
}
