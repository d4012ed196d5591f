/* SPDX-License-Identifier: Apache-2.0 */
/* test_sup_end.c - the functions that the supervisor calls before and after its event loop,
 * in their order, and its exit status (launcher/sup/sup.c). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "event/work.h"
#include "launcher/host/oom.h"
#include "launcher/host/pids.h"
#include "launcher/job/again.h"
#include "launcher/job/outcome.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/answer.h"
#include "launcher/keeper/keeper.h"
#include "launcher/log/logs.h"
#include "launcher/sup/detach.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/next.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/tcpstore/tcpstore_server.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/bus.h"
#include "launcher/tell/hook.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/screen.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/stacks.h"
#include "proc/leaf.h"
#include "tests/unit/noted.h"

TestSuite(sup_end, .timeout = 60);

struct timer {
	int64_t ns; /* of timer_arm(); 0: not armed */
};

static struct timer timers[16];
static uint32_t timers_open;
static struct rank ranks[3];
static struct keeper_page page;
static struct job job = {
	.rank = ranks,
	.page = &page,
	.plan = { .size = 3, .local_size = 3 },
	.state = { .dir_fd = -1 },
	.events_fd = -1,
	.tcpstore_fd = -1,
};
static int part; /* its address stands for a part of the supervisor */
static bool keeper_died;
static enum phase end_phase; /* when the loop returns */

/* --- replaced functions ------------------------------------------------------------------- */

#define NOTED(name) \
	void __wrap_##name(struct job *j); \
	void __wrap_##name(struct job *j) \
	{ \
		cr_expect_eq(j, &job); \
		note(#name " "); \
	}

NOTED(next_ready)
NOTED(screen_header)
NOTED(hook_begin)
NOTED(steer_resume)
NOTED(hear_begin)
NOTED(slots_open)
NOTED(next_begin)
NOTED(hang_close)
NOTED(stacks_close)
NOTED(metrics_file_end)
NOTED(aide_end_all)
NOTED(hook_end)
NOTED(steer_end)
NOTED(hear_close)

struct loop *__wrap_loop_new(void);
struct work *__wrap_work_new(void);
struct logs *__wrap_logs_open(const struct logs_config *config);
const struct notes *__wrap_logs_notes(const struct logs *logs);
int __wrap_logs_first(const struct logs *logs);
struct bus *__wrap_bus_new(struct job *j, struct loop *loop, struct work *work,
	int file);
void __wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t r);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
struct watch *__wrap_watch_open(struct loop *loop, int fd, bool write,
	watch_fn *fn, void *ctx);
int __wrap_signals_open(void);
struct children *__wrap_children_open(struct loop *loop, child_fn *fn,
	child_after_fn *after, void *ctx);
bool __wrap_closed_watch(struct job *j);
bool __wrap_detach_watch(struct job *j);
bool __wrap_leaf_look(void);
void __wrap_loop_run(struct loop *loop);
void __wrap_answer_note(struct keeper_page *p);
void __wrap_oom_end(struct oom *oom);
void __wrap_pids_end(struct pids *pids);
bool __wrap_keeper_is_dead(const struct keeper_page *p);
void __wrap_again_cancel(struct again *a);
void __wrap_tcpstore_server_close(struct tcpstore_server *server);
struct outcome __wrap_outcome_of(const struct job *j);

struct loop *
__wrap_loop_new(void)
{
	return (struct loop *)&part;
}

struct work *
__wrap_work_new(void)
{
	return (struct work *)&part;
}

struct logs *
__wrap_logs_open(const struct logs_config *config)
{
	cr_expect_eq(config->ranks, 3);
	return (struct logs *)&part;
}

const struct notes *
__wrap_logs_notes(const struct logs *logs)
{
	static const struct notes notes;

	cr_expect_eq(logs, (struct logs *)&part);
	return &notes;
}

int
__wrap_logs_first(const struct logs *logs)
{
	cr_expect_eq(logs, (struct logs *)&part);
	return -1;
}

struct bus *
__wrap_bus_new(struct job *j, struct loop *loop, struct work *work, int file)
{
	(void)loop;
	(void)work;
	(void)file;
	cr_expect_eq(j, &job);
	return (struct bus *)&part;
}

void
__wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t r)
{
	cr_expect_eq(bus, (struct bus *)&part);
	cr_expect_eq(event, BUS_JOB_START);
	cr_expect_eq(r, 0);
	note("bus_tell ");
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	(void)loop;
	(void)fn;
	(void)ctx;
	return &timers[timers_open++];
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	timer->ns = ns;
}

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool write, watch_fn *fn,
	void *ctx)
{
	(void)loop;
	(void)fd;
	(void)fn;
	cr_expect_not(write);
	return (struct watch *)ctx;
}

int
__wrap_signals_open(void)
{
	return 0;
}

struct children *
__wrap_children_open(struct loop *loop, child_fn *fn, child_after_fn *after,
	void *ctx)
{
	(void)loop;
	(void)fn;
	(void)after;
	return (struct children *)ctx;
}

bool
__wrap_closed_watch(struct job *j)
{
	return j == &job;
}

bool
__wrap_detach_watch(struct job *j)
{
	return j == &job;
}

bool
__wrap_leaf_look(void)
{
	return false;
}

void
__wrap_loop_run(struct loop *loop)
{
	struct sup *s = job.sup;

	cr_expect_eq(loop, s->loop);
	cr_expect_eq(s->publish->ns, 20 * NS_PER_MS);
	cr_expect_eq(s->silence->ns, job.hints ? 10 * NS_PER_S : 0);
	s->tcpstore = (struct tcpstore_server *)&part;
	s->phase = end_phase;
	note("loop_run ");
}

void
__wrap_answer_note(struct keeper_page *p)
{
	cr_expect_eq(p, &page);
	note("answer_note ");
}

void
__wrap_oom_end(struct oom *oom)
{
	cr_expect_eq(oom, &job.sup->oom);
	note("oom_end ");
}

void
__wrap_pids_end(struct pids *pids)
{
	cr_expect_eq(pids, &job.sup->pids);
	note("pids_end ");
}

bool
__wrap_keeper_is_dead(const struct keeper_page *p)
{
	cr_expect_eq(p, &page);
	return keeper_died;
}

void
__wrap_again_cancel(struct again *a)
{
	cr_expect_eq(a, &page.again);
	note("again_cancel ");
}

void
__wrap_tcpstore_server_close(struct tcpstore_server *server)
{
	cr_expect_eq(server, (struct tcpstore_server *)&part);
	note("tcpstore_server_close ");
}

struct outcome
__wrap_outcome_of(const struct job *j)
{
	cr_expect_eq(j, &job);
	return (struct outcome){ .exit_status = 5 };
}

/* --- tests -------------------------------------------------------------------------------- */

#define BEFORE \
	"next_ready screen_header hook_begin bus_tell steer_resume hear_begin " \
	"slots_open next_begin loop_run answer_note oom_end pids_end "
#define AFTER \
	"hang_close stacks_close metrics_file_end aide_end_all hook_end " \
	"steer_end hear_close tcpstore_server_close "

/* The helper process of the stacks is closed before all helper processes are ended, which
 * frees it. */
static void
expect_end(int status, const char *want)
{
	timers_open = 0;
	memset(timers, 0, sizeof(timers));
	done[0] = '\0';
	cr_expect_eq(supervise(&job), status);
	cr_expect_str_eq(done, want);
}

Test(sup_end, all_parts_are_closed_after_the_loop)
{
	end_phase = PHASE_END;
	expect_end(5, BEFORE AFTER);
	job.hints = true;
	expect_end(5, BEFORE AFTER);
}

Test(sup_end, no_attempt_follows_if_the_keeper_is_dead)
{
	end_phase = PHASE_END;
	keeper_died = true;
	expect_end(5, BEFORE "again_cancel " AFTER);
}

Test(sup_end, a_loop_that_ends_too_early_leaves_no_verdict)
{
	static const char want[] = "xrun: its event loop failed (";
	char text[200];
	ssize_t n;
	int end[2], saved = dup(STDERR_FILENO);

	end_phase = PHASE_RUN;
	cr_assert_eq(pipe(end), 0);
	cr_assert_neq(dup2(end[1], STDERR_FILENO), -1);
	expect_end(KEEPER_NO_VERDICT, BEFORE AFTER);
	dup2(saved, STDERR_FILENO);
	close(end[1]);
	n = read(end[0], text, sizeof(text) - 1);
	cr_assert_gt(n, (ssize_t)strlen(want));
	text[n] = '\0';
	cr_expect_eq(strncmp(text, want, strlen(want)), 0, "%s", text);
	cr_expect_str_eq(text + n - 2, ")\n");
}
