/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - see xrun/spawn.h: the ranks of a host, and how they end together. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/spawn.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/timeout.h"
#include "place/port.h"
#include "worker/job/last.h"
#include "worker/job/life.h"
#include "worker/job/slot.h"
#include "worker/proc/card.h"
#include "worker/proc/meet.h"
#include "worker/proc/proc.h"
#include "worker/proc/rank_env.h"
#include "worker/proc/report.h"
#include "worker/proc/target.h"

#define GRACE_NS (10 * NS_PER_S)

struct xr_procset {
	struct port port; /* the service address, where it is ours to hold */
	int64_t grace;
	enum xr_status status; /* once it is settled */
	struct xr_error err;
	struct xr_spawn_end end;
	bool is_settled;
	uint32_t count, started;
	struct xr_proc *procs[]; /* [started] */
};

/* --- the end of them -------------------------------------------------------- */

static bool
has_ended(struct xr_proc *p)
{
	return xr_proc_wait(p, 0, NULL, NULL) != XR_E_TIMEOUT;
}

/*
 * Waits until fewer than @running ranks run, or until @deadline. Ranks may end between the
 * count and the wait: the ranks to wait for are counted again, so that no end is missed.
 * Returns false if memory is exhausted.
 */
static bool
await_one(const struct xr_procset *set, uint32_t running, int64_t deadline)
{
	struct pollfd *on = calloc(set->started + 1, sizeof(*on));
	nfds_t n = 0;

	if (on == NULL)
		return false;
	for (uint32_t i = 0; i < set->started; i++)
		if (!has_ended(set->procs[i]))
			on[n++] = (struct pollfd){
				.fd = xr_proc_fd(set->procs[i]),
				.events = POLLIN,
			};
	if (n > 0 && n == running)
		poll(on, n, run_ms(deadline));
	free(on);
	return true;
}

static uint32_t
count_running(const struct xr_procset *set)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < set->started; i++)
		n += !has_ended(set->procs[i]);
	return n;
}

static void
signal_all(const struct xr_procset *set, int sig)
{
	for (uint32_t i = 0; i < set->started; i++)
		if (!has_ended(set->procs[i]))
			xr_proc_kill_tree(set->procs[i], sig, NULL);
}

/* All are told at once, and have one grace together. */
static void
end_all(const struct xr_procset *set)
{
	int64_t deadline;
	uint32_t running;

	run_deadline(set->grace, &deadline, NULL);
	signal_all(set, SIGTERM);
	do
		running = count_running(set);
	while (running > 0 && clock_now() < deadline &&
		await_one(set, running, deadline));
	signal_all(set, SIGKILL);
	for (uint32_t i = 0; i < set->started; i++)
		xr_proc_wait(set->procs[i], XR_TIMEOUT_NEVER, NULL, NULL);
}

static void
settle(struct xr_procset *set, enum xr_status status)
{
	set->is_settled = true;
	set->status = status;
}

/* It decides how the set ended. */
static void
settle_by(struct xr_procset *set, uint32_t i, enum xr_status status)
{
	struct xr_proc_end how = { .size = sizeof(how), .code = -1 };
	struct xr_proc *p = set->procs[i];

	xr_proc_wait(p, 0, &how, NULL);
	set->end.index = i;
	set->end.pid = xr_proc_pid(p);
	set->end.code = how.code;
	set->end.signal = how.signal;
	set->end.error = xr_proc_report(p, 0);
	end_all(set);
	settle(set, status);
}

/* Returns true if a rank has failed or all have ended; else @running ranks run. */
static bool
look(struct xr_procset *set, uint32_t *running)
{
	enum xr_status status;

	*running = 0;
	for (uint32_t i = 0; i < set->started; i++) {
		status = xr_proc_watch(set->procs[i], 0, &set->err);
		if (status == XR_E_TIMEOUT) {
			++*running;
		} else if (status != XR_OK) {
			settle_by(set, i, status);
			return true;
		}
	}
	if (*running > 0)
		return false;
	settle(set, XR_OK);
	return true;
}

XR_EXPORT enum xr_status
xr_procset_join(struct xr_procset *set, int64_t timeout,
	struct xr_spawn_end *end, struct xr_error *err)
{
	int64_t deadline;
	uint32_t running;
	enum xr_status status = run_deadline(timeout, &deadline, err);

	if (status != XR_OK)
		return status;
	if (end != NULL && end->size < sizeof(*end))
		return fail(err, XR_E_INVAL,
			"struct xr_spawn_end: size is %u, at least %zu",
			end->size, sizeof(*end));
	while (!set->is_settled && !look(set, &running)) {
		if (clock_now() >= deadline)
			return fail(err, XR_E_TIMEOUT, "%u of %u run still",
				count_running(set), set->count);
		if (!await_one(set, running, deadline))
			return fail(err, XR_E_NOMEM, "out of memory");
	}
	if (end != NULL) {
		*end = set->end;
		end->size = sizeof(*end);
	}
	if (err != NULL && set->status != XR_OK)
		*err = set->err;
	return set->status;
}

XR_EXPORT size_t
xr_procset_pids(const struct xr_procset *set, int32_t *pids, size_t cap)
{
	for (size_t i = 0; i < set->started && i < cap; i++)
		pids[i] = xr_proc_pid(set->procs[i]);
	return set->started;
}

XR_EXPORT void
xr_procset_free(struct xr_procset *set)
{
	if (set == NULL)
		return;
	for (uint32_t i = 0; i < set->started; i++)
		xr_proc_free(set->procs[i]);
	port_release(&set->port);
	free(set);
}

/* --- one, which is this process --------------------------------------------- */

static enum xr_status
adopt_env(const struct rank_job *job, struct xr_error *err)
{
	char **env = rank_env(job, 0, environ);

	if (env == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	environ = env; /* for good */
	slot_init();
	life_init();
	return XR_OK;
}

/* Whatever the function returns, this process ends. */
static enum xr_status
run_here(const struct rank_job *job, const struct target *t,
	struct xr_value *arg, struct xr_error *err)
{
	struct xr_value *report = NULL;
	struct xr_error why;
	struct run run = {
		.fn = t->fn,
		.ctx = t->ctx,
		.func = t->name,
		.name = t->name,
		.started = clock_wall(),
		.ordinal = rank_ordinal(job, 0),
		.arg = arg,
	};
	enum xr_status status = adopt_env(job, err);

	if (status != XR_OK)
		return status;
	last_keep(true);
	status = run_do(&run, &why, &report);
	xr_value_unref(report);
	if (status == XR_OK)
		exit(XR_EXIT_OK);
	last_words(status, &run.ordinal, &why);
	exit(XR_EXIT_RANK_FAILED);
}

/* --- several ---------------------------------------------------------------- */

/* What all of a set are started with. */
struct plan {
	const char *func;
	struct xr_value *arg;
	const struct xr_spawn_opts *opts;
	struct rank_job job;
	int place; /* to meet; -1 */
};

static enum xr_status
start_one(const struct plan *plan, uint32_t i, struct xr_proc **proc,
	struct xr_error *err)
{
	const struct proc_more more = {
		.card_flags = CARD_TELLS,
		.place = plan->place,
	};
	char **env = rank_env(&plan->job, i, environ);
	char name[24];
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.flags = plan->opts->flags & XR_SPAWN_DAEMON ? XR_PROC_DAEMON :
							       0,
		.func = plan->func,
		.name = name,
		.arg = plan->arg,
		.ordinal = rank_ordinal(&plan->job, i),
		.method = plan->opts->method,
		.module = plan->opts->module,
		.env = (const char *const *)env,
	};
	enum xr_status status;

	if (env == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	snprintf(name, sizeof(name), "rank %u", o.ordinal);
	status = proc_start(&o, &more, proc, err);
	free(env);
	return status;
}

/* Ranks of one host meet there; others have the store. */
static enum xr_status
make_place(struct plan *plan, struct xr_error *err)
{
	plan->place = -1;
	if (rank_world(&plan->job) != plan->job.count)
		return XR_OK;
	return meet_make(plan->job.count, &plan->place, err);
}

static enum xr_status
start_all(struct xr_procset *set, struct plan *plan, struct xr_error *err)
{
	enum xr_status status = make_place(plan, err);

	while (status == XR_OK && set->started < set->count) {
		status = start_one(plan, set->started,
			&set->procs[set->started], err);
		if (status == XR_OK)
			set->started++;
	}
	fd_close(plan->place);
	return status;
}

static enum xr_status
hold_port(struct rank_job *job, struct port *port, struct xr_error *err)
{
	static struct port_limits limits;
	enum xr_status status;

	if (!rank_needs_port(job, environ))
		return XR_OK;
	port_limits_read(&limits);
	status = port_hold(port, &limits, err);
	job->port = port->number;
	return status;
}

static struct xr_procset *new(const struct plan *plan)
{
	uint32_t count = plan->job.count;
	struct xr_procset *set =
		calloc(1, sizeof(*set) + count * sizeof(struct xr_proc *));

	if (set == NULL)
		return NULL;
	set->count = count;
	set->port.fd = -1;
	set->grace = plan->opts->grace;
	timeout_field(&set->grace, GRACE_NS, NULL);
	return set;
}

static enum xr_status
run_several(struct plan *plan, struct xr_procset **made, struct xr_error *err)
{
	struct xr_procset *set = new (plan);
	enum xr_status status;

	if (set == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = hold_port(&plan->job, &set->port, err);
	if (status == XR_OK)
		status = start_all(set, plan, err);
	if (status == XR_OK && !(plan->opts->flags & XR_SPAWN_NO_JOIN))
		status = xr_procset_join(set, XR_TIMEOUT_NEVER, NULL, err);
	/* One that was joined tells how it ended, also when it failed. */
	if (made != NULL && (status == XR_OK || set->is_settled))
		*made = set;
	else
		xr_procset_free(set);
	return status;
}

static enum xr_status
run_one(struct plan *plan, struct xr_error *err)
{
	const struct target *t = target_find(plan->func);
	static struct port port; /* held as long as this process */
	enum xr_status status = XR_OK;

	if (t == NULL)
		return fail(err, XR_E_NO_FUNCTION, "%s is not registered",
			plan->func);
	status = hold_port(&plan->job, &port, err);
	return status == XR_OK ? run_here(&plan->job, t, plan->arg, err) :
				 status;
}

static enum xr_status
check(const char *func, const struct xr_spawn_opts *o, struct xr_procset **set,
	struct xr_error *err)
{
	const uint32_t known = XR_SPAWN_NO_JOIN | XR_SPAWN_DAEMON;

	if (func == NULL || o->size < sizeof(*o) || (o->flags & ~known) != 0)
		return fail(err, XR_E_INVAL,
			"xr_spawn: func is NULL, or size or flags of struct xr_spawn_opts are invalid");
	if (timeout_check(o->grace, err) != XR_OK)
		return XR_E_INVAL;
	if ((o->flags & XR_SPAWN_NO_JOIN) && set == NULL)
		return fail(err, XR_E_INVAL,
			"xr_spawn: nobody joins them, and there is no set");
	return proc_method(o->method, err);
}

XR_EXPORT enum xr_status
xr_spawn(const char *func, struct xr_value *arg,
	const struct xr_spawn_opts *opts, struct xr_procset **set,
	struct xr_error *err)
{
	static const struct xr_spawn_opts none = { .size = sizeof(none) };
	struct plan plan = {
		.func = func,
		.arg = arg,
		.opts = opts != NULL ? opts : &none,
	};
	enum xr_status status = check(func, plan.opts, set, err);

	if (status == XR_OK)
		status = rank_job_init(&plan.job, environ, plan.opts->nprocs,
			err);
	if (status != XR_OK)
		return status;
	status = plan.job.count == 1 ? run_one(&plan, err) :
				       run_several(&plan, set, err);
	rank_job_fini(&plan.job);
	return status;
}
