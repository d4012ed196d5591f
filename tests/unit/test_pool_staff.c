/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_staff.c - workers that are processes: how they are started, and what becomes of their
 * tasks when they end. No process is started: the test makes up what becomes of them.
 */
#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/keeper.h"
#include "worker/pool/mate.h"
#include "worker/pool/told.h"
#include "worker/proc/proc.h"
#include "worker/queue/user.h"

TestSuite(pool_staff, .timeout = 60);

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

static uint64_t
number(enum told which)
{
	uint64_t u = UINT64_MAX;

	EXPECT_EQ(xr_value_get_u64(xr_value_at(told, which), &u), XR_OK);
	return u;
}

static const char *
text(enum told which)
{
	size_t len = 0;
	const char *data = xr_value_data(xr_value_at(told, which), &len);

	return data != NULL ? data : "(none)";
}

/* --- starting -------------------------------------------------------------------------------- */

FORKED_TEST(pool_staff, a_worker_is_told_all_that_it_needs)
{
	static char method[] = "spawn", module[] = "m.so", init[] = "first";
	int fds[2];

	begin();
	made.conf.method = method;
	made.conf.module = module;
	made.conf.initializer = init;
	made.conf.initargs = made_list(2);
	made.conf.contexts = made_list(2);
	made.conf.flags = XR_POOL_CONTEXT;
	made.conf.mode = XR_ENC_SHARE;
	made.conf.max_tasks = 77;
	made.ops.worker = "other";
	made.by_fork = true;
	made.book.fd = 40;
	made_place[1].life = LEDGER_LIFE_MASK - 1;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	EXPECT_EQ(opts.size, sizeof(opts));
	EXPECT_EQ(opts.flags, XR_PROC_DAEMON);
	EXPECT_STR(opts.func, "other");
	EXPECT_STR(fake[0].name, "made/0");
	EXPECT_STR(fake[1].name, "made/1");
	EXPECT_EQ(fake[0].ordinal, 0);
	EXPECT_EQ(opts.ordinal, 1);
	EXPECT(opts.method == method && opts.module == module);
	EXPECT_EQ(more.place, -1);
	EXPECT_EQ(more.give_count, TOLD_FDS);
	EXPECT(more.of == &made && more.mask == &made.mask);
	EXPECT_EQ(give[TOLD_LEDGER], made.ledger.fd);
	EXPECT_EQ(give[TOLD_BOOK], 40);
	xr_queue_fds(queue[1], fds);
	EXPECT(memcmp(&give[TOLD_IN], fds, sizeof(fds)) == 0);
	xr_queue_fds(queue[2], fds);
	EXPECT(memcmp(&give[TOLD_OUT], fds, sizeof(fds)) == 0);
	EXPECT_EQ(xr_value_count(told), TOLD_COUNT);
	EXPECT_EQ(number(TOLD_LIFE), LEDGER_LIFE_MASK);
	EXPECT_EQ(number(TOLD_FLAGS), TOLD_CONTEXTS | TOLD_SHARES);
	EXPECT_EQ(number(TOLD_MAX_TASKS), 77);
	EXPECT_STR(text(TOLD_NAME), "made");
	EXPECT_STR(text(TOLD_INIT), "first");
	EXPECT_EQ(xr_value_count(xr_value_at(told, TOLD_INIT_ARGS)), 2);
	EXPECT(xr_value_at(told, TOLD_CONTEXT) ==
		xr_value_at(made.conf.contexts, 1));
	EXPECT_EQ(made_place[0].life, 1);
	EXPECT_EQ(made_place[1].life, LEDGER_LIFE_MASK);
	EXPECT(made_place[1].proc == proc_of(1) && !made_place[1].coming);
	EXPECT_EQ(made.alive, 2);
	EXPECT_EQ(awaited, 2);
	EXPECT_EQ(await_fd[0], 500);
	EXPECT_EQ(await_fd[1], 501);
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	xr_value_unref(made.conf.initargs);
	xr_value_unref(made.conf.contexts);
	end();
}

FORKED_TEST(pool_staff, a_worker_is_told_that_there_is_nothing_more)
{
	int fds[2];

	begin();
	made.in_count = 1;
	made.conf.workers = 2;
	memset(name, 'n', sizeof(name) - 1);
	made_place[1].life = LEDGER_LIFE_MASK;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_STR(opts.func, TOLD_FUNCTION);
	EXPECT_EQ(strlen(fake[1].name), sizeof(fake[1].name) - 1);
	EXPECT(opts.method == NULL && opts.module == NULL && more.of == NULL);
	xr_queue_fds(queue[0], fds);
	EXPECT(memcmp(&give[TOLD_IN], fds, sizeof(fds)) == 0);
	EXPECT_EQ(number(TOLD_LIFE), 0);
	EXPECT_EQ(number(TOLD_FLAGS), 0);
	EXPECT_EQ(number(TOLD_MAX_TASKS), 0);
	EXPECT_EQ(xr_value_kind(xr_value_at(told, TOLD_INIT)), XR_NIL);
	EXPECT_EQ(xr_value_kind(xr_value_at(told, TOLD_INIT_ARGS)), XR_LIST);
	EXPECT_EQ(xr_value_kind(xr_value_at(told, TOLD_CONTEXT)), XR_NIL);
	end();
}

FORKED_TEST(pool_staff, places_are_filled_while_there_is_something_to_be_done)
{
	struct job *job;

	begin();
	made_place[0].coming = true;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 1);
	EXPECT_EQ(opts.ordinal, 1);
	made_place[0].coming = false;
	becomes = XR_POOL_CLOSED;
	made.state = XR_POOL_CLOSED;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 1);
	job = made_job(JOB_MAP, 1, 1);
	job_list(job);
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	EXPECT_EQ(fake[1].killed, 0);
	made_place[0].proc = NULL;
	made.state = XR_POOL_TERMINATED;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 2);
	/* It is terminated meanwhile. */
	made.state = XR_POOL_RUNNING;
	becomes = XR_POOL_TERMINATED;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(started, 3);
	EXPECT_EQ(fake[2].killed, SIGKILL);
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
}

FORKED_TEST(pool_staff, a_worker_that_cannot_be_started_is_told_of)
{
	begin();
	says = XR_E_SYS;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_E_SYS);
	EXPECT_STR(error.text, "no process");
	EXPECT(!made_place[0].coming && made_place[0].proc == NULL);
	EXPECT_EQ(made.alive, 0);
	EXPECT_EQ(awaited, 0);
	says = XR_OK;
	for (unsigned n = 1; n < 4; n++) {
		until_short = n;
		EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_E_NOMEM);
		until_short = 0;
		EXPECT_STR(error.text, "out of memory");
	}
	EXPECT_EQ(started, 0);
	end();
}

/* --- when one has ended ------------------------------------------------------------------------ */

/* Two workers, of which the first has ended. */
static void
begin_late(enum xr_status status, bool was_ready)
{
	begin();
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	fake[0].ended = true;
	fake[0].status = status;
	made.ledger.place[0].ready = was_ready ? 2 : 1;
}

FORKED_TEST(pool_staff, another_takes_the_place_of_who_has_ended)
{
	begin_late(XR_E_PEER_LOST, true);
	made.starves = true;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(forgotten, 1);
	EXPECT_EQ(forgot_fd, 500);
	EXPECT(fake[0].freed && !fake[1].freed);
	EXPECT_EQ(started, 3);
	EXPECT_EQ(fake[2].ordinal, 0);
	EXPECT(made_place[0].proc == proc_of(2));
	EXPECT_EQ(made_place[0].life, 2);
	EXPECT_EQ(made.alive, 2);
	EXPECT(!made.starves);
	EXPECT_EQ(feedings, 0);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(given_up, 0);
	/* Its queues were swept: of users 1 and the last. */
	EXPECT_EQ(sweeps, 4);
	EXPECT(swept[0].hall == queue[0]->hall && swept[0].who == 1);
	EXPECT_EQ(swept[1].who, HALL_USERS - 1);
	EXPECT(swept[2].hall == queue[2]->hall && swept[2].who == 1);
	made.hungry = true;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(feedings, 1);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(started, 3);
	made_place[1].coming = true;
	fake[1].ended = true;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(started, 3);
	end();
}

/* Of a task that is in hand, of another worker's, that is answered, by reference. */
static void
have(struct task **t, struct job *job)
{
	const struct ledger_who us = { 0, 1 }, other = { 1, 1 };

	for (uint32_t i = 0; i < 4; i++) {
		t[i] = made_take(job);
		EXPECT_EQ(t[i] - made_task, i);
		t[i]->gen = 10 + i;
		ledger_post(&made.ledger, i, t[i]->gen);
		EXPECT(ledger_take(&made.ledger, i, t[i]->gen,
			i == 1 ? other : us));
	}
	ledger_answer(&made.ledger, 2, 12, us, false);
	ledger_answer(&made.ledger, 3, 13, us, true);
}

static void
lose(bool idempotent, bool was_had)
{
	struct task *t[4];
	struct job *job;

	begin_late(XR_E_PEER_LOST, true);
	made.ledger.place[0].done = was_had ? 2 : 1;
	job = made_job(JOB_MAP, 4, 1);
	job->flags = idempotent ? XR_POOL_IDEMPOTENT : 0;
	job_list(job);
	have(t, job);
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(ledger_phase(made.ledger.task[1].word), LEDGER_RUNNING);
	EXPECT_EQ(ledger_phase(made.ledger.task[2].word), LEDGER_ANSWERED);
	EXPECT_EQ(ledger_phase(made.ledger.task[3].word),
		was_had ? LEDGER_LENT : LEDGER_FREE);
	if (idempotent) {
		EXPECT(t[0]->is_again && t[3]->is_again == !was_had);
		EXPECT(TAILQ_FIRST(&made.again) == t[was_had ? 0 : 3]);
		EXPECT_EQ(t[0]->gen, 11);
		EXPECT_EQ(t[0]->tries, 1);
		EXPECT(made.hungry);
		EXPECT_EQ(job->left, 4);
	} else {
		EXPECT(t[0]->job == NULL && TAILQ_EMPTY(&made.again));
		EXPECT_EQ(t[3]->job == NULL, !was_had);
		EXPECT_EQ(job->left, was_had ? 3 : 2);
		EXPECT_EQ(failure_status(job->error, &error), XR_E_WORKER_LOST);
		EXPECT_STR(error.text, "it was killed");
	}
	EXPECT(t[1]->job == job && t[2]->job == job);
	for (uint32_t i = 1; i < 4; i++)
		ledger_end(&made.ledger, i, 10 + i);
	job_nobody(job);
	for (uint32_t i = 0; i < 4; i++)
		if (t[i]->job != NULL)
			job_part_dropped(&made, t[i]);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
}

FORKED_TEST(pool_staff, what_a_worker_had_in_hand_is_lost_with_it)
{
	lose(false, false);
	lose(false, true);
}

FORKED_TEST(pool_staff, what_may_be_done_twice_is_put_again)
{
	lose(true, false);
	lose(true, true);
}

/* Two workers at most before the last; and nobody does it for a job that has ended. */
FORKED_TEST(pool_staff, a_task_costs_three_workers_at_most)
{
	const struct {
		uint32_t tries;
		bool ended;
		enum xr_pool_state state;
		bool again;
	} row[] = { { 0, false, XR_POOL_RUNNING, true },
		{ 1, false, XR_POOL_CLOSED, true },
		{ 2, false, XR_POOL_RUNNING, false },
		{ 0, true, XR_POOL_RUNNING, false },
		{ 0, false, XR_POOL_TERMINATED, false } };
	const struct ledger_who us = { 0, 1 };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct job *job;
		struct task *t;

		begin_late(XR_E_PEER_LOST, true);
		becomes = row[i].state;
		job = made_job(JOB_MAP, 2, 1);
		job->flags = XR_POOL_IDEMPOTENT;
		job_list(job);
		t = made_take(job);
		t->tries = row[i].tries;
		t->gen = LEDGER_GEN_MASK;
		ledger_post(&made.ledger, 0, t->gen);
		EXPECT(ledger_take(&made.ledger, 0, t->gen, us));
		job->ended = row[i].ended;
		made.state = row[i].state;
		EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
		EXPECT_EQ(t->job != NULL, row[i].again);
		if (row[i].again)
			EXPECT_EQ(t->gen, 0);
		job->ended = false;
		job_nobody(job);
		xr_future_unref(job->mine);
		job_unref(job);
		end();
	}
}

/* --- how they ended --------------------------------------------------------------------------- */

static struct xr_value *
lost_with(enum xr_status status, bool was_ready, struct xr_value *report)
{
	const struct ledger_who us = { 0, 1 };
	struct xr_value *why;
	struct job *job;
	struct task *t;

	begin_late(status, was_ready);
	fake[0].report = report;
	made.conf.start_failures = 9;
	job = made_job(JOB_MAP, 2, 1);
	job_list(job);
	t = made_take(job);
	ledger_post(&made.ledger, 0, t->gen);
	EXPECT(ledger_take(&made.ledger, 0, t->gen, us));
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	why = xr_value_ref(job->error);
	memset(&error, 0, sizeof(error));
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
	return why;
}

FORKED_TEST(pool_staff, a_lost_task_says_how_its_worker_ended)
{
	struct xr_value *report = failure_new(XR_E_STATE, "no init"),
			*none = xr_value_new_i64(1), *why;

	why = lost_with(XR_OK, true, NULL);
	EXPECT_EQ(failure_status(why, &error), XR_E_WORKER_LOST);
	EXPECT_STR(error.text, "made/0 (process 100) ended with exit code 0");
	xr_value_unref(why);
	why = lost_with(XR_E_PEER_LOST, true, report);
	EXPECT_EQ(failure_status(why, &error), XR_E_WORKER_LOST);
	EXPECT_STR(error.text, "it was killed");
	xr_value_unref(why);
	why = lost_with(XR_E_PEER_LOST, false, report);
	EXPECT(why == report);
	xr_value_unref(why);
	why = lost_with(XR_E_PEER_LOST, false, none);
	EXPECT_EQ(failure_status(why, &error), XR_E_WORKER_LOST);
	xr_value_unref(why);
	xr_value_unref(report);
	xr_value_unref(none);
}

/* The worker at place 0 ends again; is that the pool's end? */
static bool
ends_again(enum xr_status status, bool was_ready)
{
	uint32_t last = started - 1;

	last = fake[last].ordinal == 0 ? last : 0;
	fake[last].ended = true;
	fake[last].status = status;
	made.ledger.place[0].ready = made_place[0].life + was_ready;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	return taken(&given_up) > 0;
}

FORKED_TEST(pool_staff, workers_that_never_took_a_task_are_counted)
{
	begin();
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT(!ends_again(XR_E_PEER_LOST, false));
	EXPECT_EQ(made.starts_failed, 1);
	EXPECT(made.first_failed > 0);
	EXPECT(!ends_again(XR_OK, false));
	EXPECT_EQ(made.starts_failed, 1);
	EXPECT(!ends_again(XR_E_PEER_LOST, true));
	EXPECT_EQ(made.starts_failed, 0);
	EXPECT(!ends_again(XR_E_PEER_LOST, false));
	made.first_failed -= XR_SECONDS(3601);
	EXPECT(!ends_again(XR_E_PEER_LOST, false));
	EXPECT_EQ(made.starts_failed, 1);
	made.first_failed -= XR_SECONDS(3000);
	EXPECT(ends_again(XR_E_PEER_LOST, false));
	EXPECT_EQ(failure_status(reason, &error), XR_E_WORKER_LOST);
	EXPECT_EQ(made.alive, 1);
	EXPECT(made_place[0].proc == NULL);
	end();
}

FORKED_TEST(pool_staff, a_pool_may_end_with_the_first_error_of_a_worker)
{
	begin();
	made.conf.on_error = XR_POOL_TERMINATE;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT(!ends_again(XR_OK, true));
	EXPECT(ends_again(XR_E_PEER_LOST, true));
	end();
	begin_late(XR_E_PEER_LOST, true);
	made.conf.on_error = XR_POOL_TERMINATE;
	made.state = XR_POOL_TERMINATED;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(given_up, 0);
	EXPECT_EQ(made.alive, 1);
	end();
}

static enum xr_status
maintain(struct xr_pool *pool, void *ctx, struct xr_error *err)
{
	EXPECT(pool == &made && ctx == fake);
	return fail(err, XR_E_STATE, "unmaintained");
}

FORKED_TEST(pool_staff, a_pool_that_cannot_be_maintained_gives_up)
{
	begin();
	staff_look(&made);
	EXPECT_EQ(started, 2);
	EXPECT_EQ(given_up, 0);
	made.ops.maintain = maintain;
	made.ops.ctx = fake;
	staff_look(&made);
	EXPECT_EQ(given_up, 1);
	EXPECT_EQ(failure_status(reason, &error), XR_E_STATE);
	EXPECT_STR(error.text, "unmaintained");
	end();
}

/* --- ending them ------------------------------------------------------------------------------- */

FORKED_TEST(pool_staff,
	workers_are_told_to_end_and_killed_when_their_time_is_over)
{
	int64_t before;

	begin();
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT_EQ(staff_late(&made, 0), INT64_MAX);
	EXPECT_EQ(xr_pool_terminate_workers(&made, -2, &error), XR_E_INVAL);
	EXPECT_EQ(fake[0].killed, 0);
	before = clock_now();
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_SECONDS(100), &error),
		XR_OK);
	EXPECT(fake[0].killed == SIGTERM && fake[1].killed == SIGTERM);
	EXPECT_EQ(stirred, 1);
	EXPECT(made.kill_at >= before + XR_SECONDS(100) &&
		made.kill_at <= clock_now() + XR_SECONDS(100));
	made.kill_at = 5000;
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_SECONDS(100), &error),
		XR_OK);
	EXPECT_EQ(made.kill_at, 5000);
	EXPECT_EQ(staff_late(&made, 4999), 5000);
	EXPECT_EQ(fake[0].tree_killed, 0);
	EXPECT_EQ(staff_late(&made, 5000), INT64_MAX);
	EXPECT(fake[0].tree_killed == SIGKILL &&
		fake[1].tree_killed == SIGKILL);
	EXPECT_EQ(made.kill_at, INT64_MAX);
	made.kill_at = 5000;
	made.alive = 0;
	EXPECT_EQ(staff_late(&made, 6000), INT64_MAX);
	EXPECT_EQ(made.kill_at, 5000);
	before = clock_now();
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_TIMEOUT_DEFAULT, &error),
		XR_OK);
	EXPECT_EQ(made.kill_at, 5000);
	made.kill_at = INT64_MAX;
	EXPECT_EQ(xr_pool_terminate_workers(&made, XR_TIMEOUT_DEFAULT, &error),
		XR_OK);
	EXPECT(made.kill_at >= before + XR_POOL_GRACE &&
		made.kill_at <= clock_now() + XR_POOL_GRACE);
	end();
}

FORKED_TEST(pool_staff, workers_are_waited_for)
{
	begin();
	EXPECT(staff_await(&made, 0));
	EXPECT(staff_await(&made, INT64_MAX));
	EXPECT_EQ(xr_pool_join_workers(&made, 0, &error), XR_OK);
	made_place[1].coming = true;
	EXPECT(!staff_await(&made, 0));
	made_place[1].coming = false;
	made.alive = 3;
	EXPECT_EQ(xr_pool_join_workers(&made, 1, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "3 workers have not ended");
	EXPECT_EQ(xr_pool_join_workers(&made, -2, &error), XR_E_INVAL);
	end();
}
