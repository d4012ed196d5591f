/* SPDX-License-Identifier: Apache-2.0 */
/* mate.c - see mate.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/status.h"
#include "base/thread.h"
#include "worker/pool/keeper.h"
#include "worker/pool/mate.h"
#include "worker/pool/seat.h"
#include "worker/pool/told.h"
#include "worker/proc/target.h"

struct mate {
	struct xr_pool *pool;
	uint32_t place;
	int bell;
	pthread_t thread;
	xr_proc_fn *fn;
	void *ctx;
	enum xr_status status;
	struct xr_error err;
	_Atomic bool ended;

	/* what came last */
	struct taker taker;
	struct xr_queue_buf buf;
	struct task_head task;
	bool is_mine;
	struct xr_value *arg;
};

/* --- its life ----------------------------------------------------------------------- */

/* In whatever way: by the end of its function, or of the thread. */
static void
over(void *ctx)
{
	struct mate *m = ctx;
	uint64_t one = 1;

	seat_left(m->pool, m->place);
	xr_value_unref(m->arg);
	m->arg = NULL;
	free(m->taker.made);
	m->taker.made = NULL;
	atomic_store(&m->ended, true);
	fd_tell(m->bell, &one, sizeof(one));
}

static void *
run(void *ctx)
{
	struct mate *m = ctx;

	m->arg = xr_pool_value(m->pool);
	pthread_cleanup_push(over, m);
	if (m->arg != NULL)
		m->status = m->fn(m->place, m->arg, m->ctx, &m->err);
	pthread_cleanup_pop(1);
	return NULL;
}

static enum xr_status
launch(struct mate *m, struct xr_error *err)
{
	int sys;

	m->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->bell == -1)
		return fail(err, XR_E_SYS, "eventfd: %s", strerror(errno));
	sys = thread_begin(&m->thread, run, m);
	errno = sys;
	return sys == 0 ?
		XR_OK :
		fail(err, XR_E_SYS, "pthread_create: %s", strerror(sys));
}

enum xr_status
mate_start(struct xr_pool *pool, uint32_t i, int *fd, struct xr_error *err)
{
	const char *name =
		pool->ops.worker != NULL ? pool->ops.worker : TOLD_FUNCTION;
	const struct target *target = target_find(name);
	struct mate *m;
	enum xr_status status;

	if (target == NULL)
		return fail(err, XR_E_NO_FUNCTION, "%s is not registered",
			name);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	m->pool = pool;
	m->place = i;
	m->fn = target->fn;
	m->ctx = target->ctx;
	m->status = XR_E_WORKER_LOST;
	pool->place[i].mate = m; /* which it looks for */
	status = launch(m, err);
	if (status == XR_OK) {
		*fd = m->bell;
		return XR_OK;
	}
	pool->place[i].mate = NULL;
	fd_close(m->bell);
	free(m);
	return status;
}

bool
mate_has_ended(struct mate *m)
{
	return atomic_load(&m->ended);
}

int
mate_fd(const struct mate *m)
{
	return m->bell;
}

enum xr_status
mate_free(struct mate *m, struct xr_error *err)
{
	enum xr_status status = m->status;

	pthread_join(m->thread, NULL);
	*err = m->err;
	if (status == XR_E_WORKER_LOST)
		fail(err, status, "%s/%u has ended its thread",
			m->pool->conf.name, m->place);
	fd_close(m->bell);
	free(m);
	return status;
}

/* --- tasks ----------------------------------------------------------------------------- */

static struct ledger_who
who(const struct mate *m)
{
	return (struct ledger_who){ m->place, m->pool->place[m->place].life };
}

static void
claim(struct taker *t)
{
	struct mate *m = t->ctx;

	m->is_mine = false;
	if (t->buf->len != sizeof(m->task))
		return;
	memcpy(&m->task, t->made, sizeof(m->task));
	m->is_mine = ledger_take(&m->pool->ledger, m->task.index, m->task.gen,
		who(m));
}

static enum xr_status
answer(struct mate *m, struct xr_error *err)
{
	const struct result_head head = {
		.index = m->task.index,
		.gen = m->task.gen,
		.place = m->place,
	};
	enum xr_status status;

	status = xr_queue_put_bytes(m->pool->out, &head, sizeof(head),
		XR_TIMEOUT_NEVER, err);
	if (status == XR_OK)
		ledger_answer(&m->pool->ledger, m->task.index, m->task.gen,
			who(m), false);
	return status;
}

static enum xr_status
next(struct mate *m, struct xr_error *err)
{
	size_t count = 1;

	m->taker.buf = &m->buf;
	m->taker.before = claim;
	m->taker.ctx = m;
	return take_some(m->pool->in[0], &m->taker, &count, XR_TIMEOUT_NEVER,
		err);
}

enum xr_status
mate_work(struct xr_pool *pool, uint32_t i, struct xr_error *err)
{
	uint64_t tasks_left = pool->conf.max_tasks;
	struct mate *m = pool->place[i].mate;
	enum xr_status status;

	status = seat_initialise(pool, i, err);
	if (status != XR_OK)
		return status;
	atomic_store(&pool->ledger.place[i].ready, pool->place[i].life + 1);
	for (;;) {
		status = next(m, err);
		if (status != XR_OK)
			break;
		if (!m->is_mine) {
			if (atomic_exchange(&pool->ledger.head->starved, 0) !=
				0)
				feed_room(pool);
			continue;
		}
		seat_run(pool, m->task.index, i);
		status = answer(m, err);
		if (status != XR_OK || (tasks_left > 0 && --tasks_left == 0))
			break;
	}
	return status == XR_E_CLOSED ? XR_OK : status;
}
