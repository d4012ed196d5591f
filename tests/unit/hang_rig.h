/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang_rig.h - a job whose ranks are made up, for the looks of --hang-timeout: what is
 * seen of them, and what is done, in @done.
 *
 * For the program hang_watch (meson.build). begin() first; beat() is one look.
 */
#ifndef TESTS_UNIT_HANG_RIG_H
#define TESTS_UNIT_HANG_RIG_H

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/sup/hang.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/stacks.h"
#include "proc/usage.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"

#define S     NS_PER_S
#define MS    NS_PER_MS
#define BEGIN (100 * S) /* of the clock */
#define MOST  20
#define PID   100 /* of the first rank */

struct timer {
	timer_fn *fn;
	void *ctx;
	int64_t late;
};

static struct timer timer;
static struct rank ranks[MOST];
static struct sup sup;
static struct job job;

/* --- what is seen, and what is done ------------------------------------------ */

static int64_t now, armed;
static uint64_t bytes[2 * MOST], tick[MOST], waiting[2 * MOST];
static struct usage near[MOST], tree[MOST];
static bool gone[MOST]; /* no process to ask */
static const char *place[MOST], *status[MOST];
static short room[2]; /* of stdout and stderr */
static int polled;    /* what poll(2) gives; -1 fails */
static bool has_stacks, no_timer;
static stacks_fn *stacks_end;

int64_t __wrap_clock_now(void);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *t, int64_t ns);
void __wrap_timer_close(struct timer *t);
int64_t __wrap_timer_late(const struct timer *t);
uint64_t __wrap_logs_bytes(const struct logs *logs, uint32_t stream);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t __wrap_slots_tick(const struct job *job_, uint32_t r);
void __wrap_slots_look(struct job *job_, uint32_t r);
bool __wrap_usage_near(pid_t pid, struct usage *u);
bool __wrap_usage_tree(pid_t pid, struct usage *u);
uint64_t __wrap_raw_waiting(int pipe);
size_t __wrap_fd_read_small(const char *path, char *out, size_t cap);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);
void __wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg);
void __wrap_stop_job(struct job *job_, enum cause cause);
void __wrap_stop_fail(struct job *job_, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool __wrap_stacks_begin(struct job *job_, const char *why, stacks_fn *fn);

int64_t
__wrap_clock_now(void)
{
	return now;
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	(void)loop;
	timer.fn = fn;
	timer.ctx = ctx;
	return no_timer ? NULL : &timer;
}

void
__wrap_timer_arm(struct timer *t, int64_t ns)
{
	cr_expect_eq(t, &timer);
	armed = ns;
}

void
__wrap_timer_close(struct timer *t)
{
	note(t == NULL ? "none " : "close ");
}

int64_t
__wrap_timer_late(const struct timer *t)
{
	return t->late;
}

uint64_t
__wrap_logs_bytes(const struct logs *logs, uint32_t stream)
{
	(void)logs;
	return bytes[stream];
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("%s\n", text);
}

uint64_t
__wrap_slots_tick(const struct job *job_, uint32_t r)
{
	cr_expect_eq(job_, &job);
	return tick[r];
}

void
__wrap_slots_look(struct job *job_, uint32_t r)
{
	cr_expect_eq(job_, &job);
	cr_expect(job.rank[r].pidfd != -1);
}

bool
__wrap_usage_near(pid_t pid, struct usage *u)
{
	*u = near[pid - PID];
	return !gone[pid - PID];
}

bool
__wrap_usage_tree(pid_t pid, struct usage *u)
{
	if (u->cpu_ns != 0 || u->asked != 0)
		note("unclean ");
	*u = tree[pid - PID];
	u->leaf = pid + 1000;
	if (tree[pid - PID].others > 0)
		note("tree:%d ", (int)pid - PID);
	return !gone[pid - PID];
}

uint64_t
__wrap_raw_waiting(int pipe)
{
	cr_assert_geq(pipe, 0);
	return waiting[pipe];
}

size_t
__wrap_fd_read_small(const char *path, char *out, size_t cap)
{
	const char *text = NULL;
	char of[64];

	for (int r = 0; r < MOST; r++) {
		snprintf(of, sizeof(of), "/proc/%d/status", PID + r);
		if (strcmp(path, of) == 0)
			text = status[r] == NULL ? "Name:\tx\n" : status[r];
		snprintf(of, sizeof(of), "/proc/%d/wchan", PID + 1000 + r);
		if (strcmp(path, of) == 0)
			text = place[r] == NULL ? "" : place[r];
	}
	cr_assert_not_null(text, "%s", path);
	return (size_t)snprintf(out, cap, "%s", text);
}

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	cr_expect_eq(count, 2);
	cr_expect_eq(timeout, 0);
	cr_expect_eq(p[0].fd, STDOUT_FILENO);
	cr_expect_eq(p[1].fd, STDERR_FILENO);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(p[i].events, POLLOUT);
		p[i].revents = room[i];
	}
	return polled;
}

void
__wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg)
{
	(void)bus;
	cr_expect_eq(event, BUS_JOB_HANG);
	note("told:%u ", arg);
}

void
__wrap_stop_job(struct job *job_, enum cause cause)
{
	cr_expect_eq(job_, &job);
	note("stop:%d", cause == CAUSE_HANG ? 0 : 1);
}

void
__wrap_stop_fail(struct job *job_, const char *fmt, ...)
{
	char text[100];
	va_list ap;

	cr_expect_eq(job_, &job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("fail:%s", text);
}

bool
__wrap_stacks_begin(struct job *job_, const char *why, stacks_fn *fn)
{
	cr_expect_eq(job_, &job);
	cr_expect_str_eq(why, "--hang-timeout");
	note("stacks ");
	stacks_end = fn;
	return has_stacks;
}

/* --- the rig ----------------------------------------------------------------- */

/* @count ranks, from number 10 on, that were started at BEGIN, with a timeout of
 * 10 s and a beat of 1 s. */
static void
begin(uint32_t count)
{
	job.sup = &sup;
	job.rank = ranks;
	job.plan.first = 10;
	job.plan.local_size = count;
	job.plan.size = 10 + count;
	job.opt.hang_timeout = 10 * S;
	job.opt.heartbeat = 1 * S;
	job.opt.stacks_on = "none";
	job.state.dir_fd = 3;
	job.share = calloc(1,
		sizeof(*job.share) + 2 * MOST * sizeof(job.share->slot[0]));
	cr_assert_not_null(job.share);
	for (uint32_t r = 0; r < count; r++) {
		ranks[r].pid = PID + (pid_t)r;
		ranks[r].pidfd = 50;
		ranks[r].step = -1;
		job.share->slot[2 * r].pipe = 2 * (int)r;
		job.share->slot[2 * r + 1].pipe = 2 * (int)r + 1;
	}
	now = BEGIN;
	hang_begin(&job);
	cr_assert_not_null(sup.hang);
	cr_expect_eq(armed, 1 * S);
	done[0] = '\0';
}

/* The beat that is @at after the begin; gives what it did. */
static const char *
beat(int64_t at)
{
	done[0] = '\0';
	armed = -1;
	now = BEGIN + at;
	timer.fn(timer.ctx);
	return done;
}

static void
fini(void)
{
	hang_close(&job);
	free(job.share);
}

#endif /* TESTS_UNIT_HANG_RIG_H */
