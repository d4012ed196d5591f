/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_procs.h - workers of a pool made by hand (made_pool.h), of which none is started: what
 * becomes of them the test says.
 *
 * For programs that are linked with made_procs (meson.build).
 */
#ifndef TESTS_UNIT_MADE_PROCS_H
#define TESTS_UNIT_MADE_PROCS_H

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/keeper.h"
#include "worker/pool/mate.h"
#include "worker/pool/told.h"
#include "worker/proc/proc.h"
#include "worker/queue/user.h"

#define PROCS 16

/* --- processes, and who else is told -------------------------------------------------------- */

static struct fake {
	uint32_t ordinal;
	char name[64];
	bool ended, freed;
	int killed, tree_killed; /* by which signal */
	enum xr_status status;   /* how it ended */
	struct xr_value *report;
} fake[PROCS];

static unsigned started, awaited, forgotten, stirred, given_up;
static int await_fd[PROCS], forgot_fd;
static enum xr_status says; /* to who starts one */
static enum xr_pool_state becomes;
static struct xr_proc_opts opts;
static struct proc_more more;
static int give[TOLD_FDS];
static struct xr_value *told;
static struct xr_value *reason;

static struct fake *
of(const struct xr_proc *proc)
{
	return (struct fake *)(uintptr_t)proc;
}

static struct xr_proc *
proc_of(uint32_t i)
{
	return (struct xr_proc *)&fake[i];
}

enum xr_status __wrap_proc_start(const struct xr_proc_opts *o,
	const struct proc_more *m, struct xr_proc **proc, struct xr_error *err);
int32_t __wrap_xr_proc_pid(const struct xr_proc *proc);
const char *__wrap_xr_proc_name(const struct xr_proc *proc);
int __wrap_xr_proc_fd(const struct xr_proc *proc);
enum xr_status __wrap_xr_proc_wait(struct xr_proc *proc, int64_t timeout,
	struct xr_proc_end *end, struct xr_error *err);
enum xr_status __wrap_xr_proc_watch(struct xr_proc *proc, int64_t timeout,
	struct xr_error *err);
struct xr_value *__wrap_xr_proc_report(struct xr_proc *proc, size_t i);
enum xr_status __wrap_xr_proc_kill(struct xr_proc *proc, int sig,
	struct xr_error *err);
enum xr_status __wrap_xr_proc_kill_tree(struct xr_proc *proc, int sig,
	struct xr_error *err);
void __wrap_xr_proc_free(struct xr_proc *proc);
enum xr_status __wrap_keeper_await(struct xr_pool *pool, int fd,
	struct xr_error *err);
void __wrap_keeper_forget(int fd);
void __wrap_keeper_stir(void);
void __wrap_pool_give_up(struct xr_pool *pool, struct xr_value *error);
bool __wrap_user_at(const struct hall *h, uint32_t user, struct user_id *id);
void __wrap_user_check(struct hall *h, uint32_t who);

enum xr_status
__wrap_proc_start(const struct xr_proc_opts *o, const struct proc_more *m,
	struct xr_proc **proc, struct xr_error *err)
{
	struct fake *f = &fake[started];

	NEED(started < PROCS);
	opts = *o;
	more = *m;
	memcpy(give, m->give, sizeof(give));
	xr_value_unref(told);
	told = xr_value_ref(o->arg);
	made.state = becomes;
	EXPECT(made.place[o->ordinal].coming);
	if (says != XR_OK)
		return fail(err, says, "no process");
	*f = (struct fake){ .ordinal = o->ordinal };
	snprintf(f->name, sizeof(f->name), "%s", o->name);
	*proc = proc_of(started++);
	return XR_OK;
}

int32_t
__wrap_xr_proc_pid(const struct xr_proc *proc)
{
	return 100 + (int32_t)(of(proc) - fake);
}

const char *
__wrap_xr_proc_name(const struct xr_proc *proc)
{
	return of(proc)->name;
}

int
__wrap_xr_proc_fd(const struct xr_proc *proc)
{
	return 500 + (int)(of(proc) - fake);
}

enum xr_status
__wrap_xr_proc_wait(struct xr_proc *proc, int64_t timeout,
	struct xr_proc_end *end, struct xr_error *err)
{
	(void)err;
	EXPECT(timeout == 0 && end == NULL);
	return of(proc)->ended ? XR_OK : XR_E_TIMEOUT;
}

enum xr_status
__wrap_xr_proc_watch(struct xr_proc *proc, int64_t timeout,
	struct xr_error *err)
{
	EXPECT(timeout == 0 && of(proc)->ended);
	return of(proc)->status == XR_OK ?
		XR_OK :
		fail(err, of(proc)->status, "it was killed");
}

struct xr_value *
__wrap_xr_proc_report(struct xr_proc *proc, size_t i)
{
	EXPECT_EQ(i, 0);
	return of(proc)->report;
}

enum xr_status
__wrap_xr_proc_kill(struct xr_proc *proc, int sig, struct xr_error *err)
{
	(void)err;
	of(proc)->killed = sig;
	return XR_OK;
}

enum xr_status
__wrap_xr_proc_kill_tree(struct xr_proc *proc, int sig, struct xr_error *err)
{
	(void)err;
	of(proc)->tree_killed = sig;
	return XR_OK;
}

void
__wrap_xr_proc_free(struct xr_proc *proc)
{
	of(proc)->freed = true;
}

enum xr_status
__wrap_keeper_await(struct xr_pool *pool, int fd, struct xr_error *err)
{
	(void)err;
	EXPECT(pool == &made);
	NEED(awaited < PROCS);
	await_fd[awaited++] = fd;
	return XR_OK;
}

void
__wrap_keeper_forget(int fd)
{
	forgotten++;
	forgot_fd = fd;
}

void
__wrap_keeper_stir(void)
{
	stirred++;
}

void
__wrap_pool_give_up(struct xr_pool *pool, struct xr_value *error_)
{
	EXPECT(pool == &made);
	given_up++;
	xr_value_unref(reason);
	reason = error_;
	made.state = XR_POOL_TERMINATED;
}

/* Users 1, of all processes, 1023, and one that is none. */
static struct {
	const struct hall *hall;
	uint32_t who;
} swept[8];
static unsigned sweeps;

bool
__wrap_user_at(const struct hall *h, uint32_t user, struct user_id *id)
{
	(void)h;
	EXPECT(user > 0 && user < HALL_USERS);
	*id = (struct user_id){ .pid = user == 2 ? 99 : 100, .who = user };
	return user < 3 || user == HALL_USERS - 1;
}

void
__wrap_user_check(struct hall *h, uint32_t who)
{
	NEED(sweeps < 8);
	swept[sweeps].hall = h;
	swept[sweeps++].who = who;
}

/* --- pools ----------------------------------------------------------------------------------- */

static struct xr_queue *queue[3];
static char name[200];

static void
begin(void)
{
	const struct xr_queue_opts o = { .size = sizeof(o), .items = 64 };

	make_pool();
	memset(fake, 0, sizeof(fake));
	started = awaited = forgotten = stirred = given_up = sweeps = 0;
	says = XR_OK;
	becomes = XR_POOL_RUNNING;
	for (int i = 0; i < 3; i++)
		NEED(xr_queue_new(&o, &queue[i], NULL) == XR_OK);
	made.in = queue;
	made.out = queue[2];
	pthread_cond_init(&made.changed, NULL);
	made.conf.start_failures = 2;
	made.conf.start_window = XR_SECONDS(3600);
	made.kill_at = INT64_MAX;
	snprintf(name, sizeof(name), "made");
	made.conf.name = name;
}

static void
end(void)
{
	for (int i = 0; i < 3; i++)
		xr_queue_free(queue[i]);
	xr_value_unref(told);
	told = NULL;
	xr_value_unref(reason);
	reason = NULL;
	unmake_pool();
}

#endif /* TESTS_UNIT_MADE_PROCS_H */
