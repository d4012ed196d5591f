/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staff.c - see pool.h: workers that are processes, from their start to their end.
 *
 * When one has ended, what of its is in queues is swept (queue/user.h), so that others
 * have the tasks it had not begun; then the task that it had in hand ends, or is put
 * again; then somebody takes its place.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/pool/job.h"
#include "worker/pool/keeper.h"
#include "worker/pool/mate.h"
#include "worker/pool/thread.h"
#include "worker/pool/told.h"
#include "worker/proc/given.h"
#include "worker/proc/proc.h"
#include "worker/proc/report.h"
#include "worker/queue/user.h"
#include "worker/rpc/future.h"

#define TRIES_MAX 3 /* workers that a task may cost */

/* --- starting -------------------------------------------------------------------- */

static struct xr_value *
text_of(const char *text)
{
	return text != NULL ? xr_value_new_text(text, strlen(text)) :
			      xr_value_new_nil();
}

static struct xr_value *
context_of(const struct xr_pool *pool, uint32_t i)
{
	struct xr_value *all = pool->conf.contexts;

	return all != NULL ? xr_value_ref(xr_value_at(all, i)) :
			     xr_value_new_nil();
}

/* In the order of enum told. */
static struct xr_value *
tell(const struct xr_pool *pool, uint32_t i)
{
	const struct pool_conf *c = &pool->conf;
	struct xr_value *items[TOLD_COUNT];
	uint64_t flags = 0;

	if ((c->flags & XR_POOL_CONTEXT) != 0)
		flags |= TOLD_CONTEXTS;
	if (c->mode == XR_ENC_SHARE)
		flags |= TOLD_SHARES;
	items[TOLD_LIFE] = xr_value_new_u64(pool->place[i].life);
	items[TOLD_FLAGS] = xr_value_new_u64(flags);
	items[TOLD_MAX_TASKS] = xr_value_new_u64(c->max_tasks);
	items[TOLD_NAME] = text_of(c->name);
	items[TOLD_INIT] = text_of(c->initializer);
	items[TOLD_INIT_ARGS] = c->initargs != NULL ?
		xr_value_ref(c->initargs) :
		xr_value_new_list();
	items[TOLD_CONTEXT] = context_of(pool, i);
	return xr_value_new_list_of(items, TOLD_COUNT);
}

static enum xr_status
start_proc(struct xr_pool *pool, uint32_t i, struct xr_proc **proc,
	struct xr_error *err)
{
	int give[TOLD_FDS];
	char name[160];
	struct xr_proc_opts o = {
		.size = sizeof(o),
		.flags = XR_PROC_DAEMON,
		.func = pool->ops.worker != NULL ? pool->ops.worker :
						   TOLD_FUNCTION,
		.name = name,
		.ordinal = i,
		.method = pool->conf.method,
		.module = pool->conf.module,
	};
	const struct proc_more more = {
		.place = -1,
		.give = give,
		.give_count = TOLD_FDS,
		.of = pool->by_fork ? pool : NULL,
		.mask = &pool->mask,
	};
	enum xr_status status;

	snprintf(name, sizeof(name), "%.127s/%u", pool->conf.name, i);
	give[TOLD_LEDGER] = pool->ledger.fd;
	give[TOLD_BOOK] = pool->book.fd;
	xr_queue_fds(pool->in[pool->in_count > 1 ? i : 0], &give[TOLD_IN]);
	xr_queue_fds(pool->out, &give[TOLD_OUT]);
	o.arg = tell(pool, i);
	if (o.arg == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = proc_start(&o, &more, proc, err);
	xr_value_unref(o.arg);
	return status;
}

static bool
is_vacant(const struct place *p)
{
	return p->proc == NULL && p->mate == NULL && !p->coming;
}

/* A place that nobody has, and somebody is to have. With the lock held. */
static bool
find_vacancy(struct xr_pool *pool, uint32_t *i)
{
	if (pool->state == XR_POOL_TERMINATED ||
		(pool->state == XR_POOL_CLOSED && !pool_is_busy(pool)))
		return false;
	for (*i = 0; *i < pool->conf.workers; ++*i)
		if (is_vacant(&pool->place[*i])) {
			pool->place[*i].coming = true;
			return true;
		}
	return false;
}

static enum xr_status
fill_vacancy(struct xr_pool *pool, uint32_t i, struct xr_error *err)
{
	struct place *place = &pool->place[i];
	struct xr_proc *proc = NULL;
	enum xr_status status;
	bool is_late;
	int fd = -1;

	pthread_mutex_lock(&pool->lock);
	place->life = (place->life + 1) & LEDGER_LIFE_MASK;
	pthread_mutex_unlock(&pool->lock);
	status = pool->by_mates ? mate_start(pool, i, &fd, err) :
				  start_proc(pool, i, &proc, err);
	if (proc != NULL)
		fd = xr_proc_fd(proc);
	pthread_mutex_lock(&pool->lock);
	place->coming = false;
	place->proc = proc;
	pool->alive += fd != -1;
	is_late = pool->state == XR_POOL_TERMINATED;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	if (proc != NULL && is_late)
		xr_proc_kill(proc, SIGKILL, NULL);
	if (status == XR_OK)
		status = keeper_await(pool, fd, err);
	return status;
}

XR_EXPORT enum xr_status
xr_pool_repopulate(struct xr_pool *pool, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	bool is_one = true;
	uint32_t i;

	if (pool->conf.kind == XR_POOL_THREADS && !pool->by_mates)
		return pool->gang == NULL ?
			XR_KEEP_FRAME(thread_start(pool, err)) :
			XR_OK;
	while (is_one && status == XR_OK) {
		pthread_mutex_lock(&pool->lock);
		is_one = find_vacancy(pool, &i);
		pthread_mutex_unlock(&pool->lock);
		if (is_one)
			status = fill_vacancy(pool, i, err);
	}
	return status;
}

enum xr_status
staff_repopulate(struct xr_pool *pool, struct xr_error *err)
{
	if (pool->ops.repopulate != NULL)
		return pool->ops.repopulate(pool, pool->ops.ctx, err);
	return xr_pool_repopulate(pool, err);
}

/* --- what is left of one ---------------------------------------------------------- */

/* One that has ended. */
struct late {
	uint32_t place, life;
	struct xr_proc *proc; /* one of both */
	struct mate *mate;
	struct xr_value *error; /* how it ended */
	bool was_ready, is_well, was_had;
};

/* Who has answered by reference may be gone too early for that, but for one who has waited until
 * it was had. */
static bool
is_answer_lost(struct xr_pool *pool, const struct late *l, uint32_t i)
{
	const struct ledger_who who = { l->place, l->life };
	uint64_t word = atomic_load(&pool->ledger.task[i].word);

	return !l->was_had && ledger_phase(word) == LEDGER_LENT &&
		ledger_is_of(word, who) &&
		ledger_end(&pool->ledger, i, ledger_gen(word));
}

static void
sweep_queue(struct xr_queue *q, uint32_t pid)
{
	struct user_id id;

	for (uint32_t i = 1; i < HALL_USERS; i++)
		if (user_at(q->hall, i, &id) && id.pid == pid)
			user_check(q->hall, id.who);
}

static void
sweep(struct xr_pool *pool, const struct late *l)
{
	uint32_t pid;

	if (l->proc == NULL)
		return; /* it was of this process */
	pid = (uint32_t)xr_proc_pid(l->proc);
	sweep_queue(pool->in[pool->in_count > 1 ? l->place : 0], pid);
	sweep_queue(pool->out, pid);
}

/* Is it to be done once more? Then it is in the list for that. */
static bool
try_again(struct xr_pool *pool, struct task *t)
{
	bool again;

	pthread_mutex_lock(&pool->lock);
	again = (t->job->flags & XR_POOL_IDEMPOTENT) != 0 && !t->job->ended &&
		t->tries + 1 < TRIES_MAX && pool->state != XR_POOL_TERMINATED;
	if (again) {
		t->tries++;
		t->gen = (t->gen + 1) & LEDGER_GEN_MASK;
		t->is_again = true;
		TAILQ_INSERT_HEAD(&pool->again, t, list);
		atomic_store(&pool->hungry, true);
	}
	pthread_mutex_unlock(&pool->lock);
	return again;
}

static void
end_tasks(struct xr_pool *pool, const struct late *l)
{
	const struct ledger_who who = { l->place, l->life };
	uint32_t gen;

	for (uint32_t i = 0; i < pool->conf.tasks; i++) {
		struct job_part part = { .task = &pool->task[i] };

		if ((!ledger_bury(&pool->ledger, i, who, &gen) &&
			    !is_answer_lost(pool, l, i)) ||
			try_again(pool, part.task))
			continue;
		part.error = xr_value_ref(l->error);
		job_part_over(pool, &part);
	}
}

/* And release it. */
static void
describe_mate(struct late *l)
{
	struct xr_error err = { 0 };
	enum xr_status status = mate_free(l->mate, &err);

	l->is_well = status == XR_OK;
	l->error = failure_new(status != XR_OK ? status : XR_E_WORKER_LOST,
		"%s", status != XR_OK ? err.text : "a worker has ended");
}

static void
describe(struct late *l)
{
	struct xr_error err = { 0 };
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_value *report = xr_proc_report(l->proc, 0);
	enum xr_status status = xr_proc_watch(l->proc, 0, &err);

	l->is_well = status == XR_OK;
	if (report != NULL && !l->was_ready &&
		xr_value_failure(report, &f) == XR_OK) {
		l->error = xr_value_ref(report);
		return;
	}
	if (status == XR_OK)
		snprintf(err.text, sizeof(err.text),
			"%.100s (process %d) ended with exit code 0",
			xr_proc_name(l->proc), (int)xr_proc_pid(l->proc));
	l->error = failure_new(XR_E_WORKER_LOST, "%s", err.text);
}

/* It never took a task: how many of these were there? With the lock held. */
static bool
is_too_many(struct xr_pool *pool, const struct late *l)
{
	int64_t now = clock_now();

	if (l->was_ready)
		pool->starts_failed = 0;
	if (l->was_ready || l->is_well)
		return false;
	if (pool->starts_failed == 0 ||
		now - pool->first_failed > pool->conf.start_window) {
		pool->starts_failed = 0;
		pool->first_failed = now;
	}
	return ++pool->starts_failed >= pool->conf.start_failures;
}

/* Nobody takes its place, if it is to be the pool's end. */
static void
bury(struct xr_pool *pool, struct late *l)
{
	struct place *place = &pool->place[l->place];
	bool is_end;

	keeper_forget(l->mate != NULL ? mate_fd(l->mate) : xr_proc_fd(l->proc));
	l->was_ready =
		atomic_load(&pool->ledger.place[l->place].ready) == l->life + 1;
	l->was_had =
		atomic_load(&pool->ledger.place[l->place].done) == l->life + 1;
	if (l->mate != NULL)
		describe_mate(l);
	else
		describe(l);
	sweep(pool, l);
	end_tasks(pool, l);
	if (atomic_load(&pool->starves))
		feed_room(pool);
	pthread_mutex_lock(&pool->lock);
	is_end = is_too_many(pool, l) ||
		(!l->is_well && pool->conf.on_error == XR_POOL_TERMINATE);
	is_end = is_end && pool->state != XR_POOL_TERMINATED;
	pthread_mutex_unlock(&pool->lock);
	if (is_end)
		pool_give_up(pool, xr_value_ref(l->error));
	pthread_mutex_lock(&pool->lock);
	place->proc = NULL;
	place->mate = NULL;
	pool->alive--;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	xr_proc_free(l->proc);
	xr_value_unref(l->error);
}

static bool
find_late(struct xr_pool *pool, uint32_t i, struct late *l)
{
	pthread_mutex_lock(&pool->lock);
	*l = (struct late){ .place = i, .life = pool->place[i].life };
	if (!pool->place[i].coming) {
		l->proc = pool->place[i].proc;
		l->mate = pool->place[i].mate;
	}
	pthread_mutex_unlock(&pool->lock);
	if (l->mate != NULL)
		return mate_has_ended(l->mate);
	return l->proc != NULL &&
		xr_proc_wait(l->proc, 0, NULL, NULL) != XR_E_TIMEOUT;
}

XR_EXPORT enum xr_status
xr_pool_maintain(struct xr_pool *pool, struct xr_error *err)
{
	struct late l;

	for (uint32_t i = 0; i < pool->conf.workers; i++)
		if (find_late(pool, i, &l))
			bury(pool, &l);
	feed_hungry(pool);
	return staff_repopulate(pool, err);
}

void
staff_look(struct xr_pool *pool)
{
	struct xr_error err = { 0 };
	enum xr_status status;

	status = pool->ops.maintain != NULL ?
		pool->ops.maintain(pool, pool->ops.ctx, &err) :
		xr_pool_maintain(pool, &err);
	if (status != XR_OK)
		pool_give_up(pool, failure_new(status, "%s", err.text));
}

/* --- ending them --------------------------------------------------------------------- */

void
staff_signal(struct xr_pool *pool, int sig)
{
	pthread_mutex_lock(&pool->lock);
	for (uint32_t i = 0; i < pool->conf.workers; i++)
		if (pool->place[i].proc != NULL)
			xr_proc_kill(pool->place[i].proc, sig, NULL);
	pthread_mutex_unlock(&pool->lock);
}

int64_t
staff_late(struct xr_pool *pool, int64_t now)
{
	int64_t when;

	pthread_mutex_lock(&pool->lock);
	when = pool->alive > 0 ? pool->kill_at : INT64_MAX;
	for (uint32_t i = 0; when <= now && i < pool->conf.workers; i++)
		if (pool->place[i].proc != NULL)
			xr_proc_kill_tree(pool->place[i].proc, SIGKILL, NULL);
	if (when <= now) {
		pool->kill_at = INT64_MAX;
		when = INT64_MAX;
	}
	pthread_mutex_unlock(&pool->lock);
	return when;
}

static bool
is_any(const struct xr_pool *pool)
{
	for (uint32_t i = 0; i < pool->conf.workers; i++)
		if (pool->place[i].coming)
			return true;
	return pool->alive > 0;
}

bool
staff_await(struct xr_pool *pool, int64_t deadline)
{
	struct timespec t = { deadline / NS_PER_S, deadline % NS_PER_S };
	int sys = 0;
	bool gone;

	pthread_mutex_lock(&pool->lock);
	while (is_any(pool) && sys == 0)
		sys = deadline == INT64_MAX ?
			pthread_cond_wait(&pool->changed, &pool->lock) :
			pthread_cond_timedwait(&pool->changed, &pool->lock, &t);
	gone = !is_any(pool);
	pthread_mutex_unlock(&pool->lock);
	return gone;
}

XR_EXPORT enum xr_status
xr_pool_terminate_workers(struct xr_pool *pool, int64_t grace,
	struct xr_error *err)
{
	enum xr_status status = timeout_argument(&grace, XR_POOL_GRACE, err);
	int64_t deadline;

	if (status != XR_OK)
		return status;
	run_deadline(grace, &deadline, NULL);
	if (pool->gang != NULL) {
		thread_stop(pool);
		return XR_OK;
	}
	staff_signal(pool, SIGTERM);
	pthread_mutex_lock(&pool->lock);
	if (deadline < pool->kill_at)
		pool->kill_at = deadline;
	pthread_mutex_unlock(&pool->lock);
	keeper_stir();
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_pool_join_workers(struct xr_pool *pool, int64_t timeout,
	struct xr_error *err)
{
	int64_t deadline;
	enum xr_status status = run_deadline(timeout, &deadline, err);

	if (status != XR_OK)
		return status;
	if (pool->gang != NULL ? thread_join(pool, deadline) :
				 staff_await(pool, deadline))
		return XR_OK;
	return fail(err, XR_E_TIMEOUT, "%u workers have not ended",
		xr_pool_size(pool));
}
