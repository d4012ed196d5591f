/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - named points at which xrun can be made slow, or to fail, in every
 * build: an optimised program has other races than a debugged one.
 *
 * A point costs one predictable branch while nothing is armed. Faults are
 * armed before the first process or thread of a job is made, and never change
 * afterwards but for their counts; each process counts for itself. Points lie
 * also between clone and exec: fault_hit() calls what a signal handler may.
 *
 * The text, as in XRUN_FAULT: one or more of
 *
 *	POINT:ACTION[;rank=N][;nth=N]
 *
 * split by commas. ACTION is delay=TIME (us, ms or s), kill (SIGKILL to this
 * process), stop (SIGSTOP to it), or fail=ERRNO, where the point can fail.
 * rank= takes a fault to one rank, nth= to the N-th time, counted from 1;
 * otherwise it acts at each.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "xrun/error.h"

/* name, text, where, may it fail? */
#define FAULT_POINTS(P) \
	P(KEEPER_CLONE, "keeper.clone", "before the supervisor is made", true) \
	P(KEEPER_WATCH, "keeper.watch", "the keeper begins to wait", false) \
	P(KEEPER_SIGNAL, "keeper.signal", "before a signal is passed on", \
		false) \
	P(KEEPER_DEATH, "keeper.death", "it saw the supervisor die", false) \
	P(KEEPER_SWEEP, "keeper.sweep", "before it ends what is left", false) \
	P(KEEPER_DRAIN, "keeper.drain", "before it saves what pipes hold", \
		false) \
	P(SUPER_START, "super.start", "the supervisor begins", false) \
	P(SUPER_END, "super.end", "before its verdict is left", false) \
	P(SPAWN_PIPE, "spawn.pipe", "before a rank's pipe is made", true) \
	P(SPAWN_BEFORE, "spawn.before", "before a rank is cloned", true) \
	P(SPAWN_CHILD, "spawn.child", "in the rank, before exec", true) \
	P(SPAWN_AFTER, "spawn.after", "cloned; its pid is not recorded yet", \
		false) \
	P(SPAWN_WATCH, "spawn.watch", "before its pidfd is watched", true) \
	P(DEATH_SEEN, "death.seen", "a rank died, and is not reaped", false) \
	P(DEATH_JUDGE, "death.judge", "before deaths are judged", false) \
	P(STOP_SIGNAL, "stop.signal", "before a rank is signalled", false) \
	P(SWEEP, "sweep", "before what ranks left behind is ended", false) \
	P(DELIVER, "deliver", "ranks are over, output goes out", false) \
	P(ACCOUNT, "account", "before the account", false) \
	P(END, "end", "before the files are closed", false) \
	P(MOVE_OPEN, "move.open", "before a raw file is opened", true) \
	P(MOVE_BEFORE, "move.before", "before bytes go to a file", true) \
	P(MOVE_AFTER, "move.after", "they are there, and not counted", false) \
	P(MOVE_LARGE, "move.large", "a move; failed: the output is large", \
		true) \
	P(SINK_READ, "sink.read", "before a raw file is read", true) \
	P(SINK_WRITE, "sink.write", "before a turn is written", true) \
	P(STATE_OPEN, "state.open", "before the job's folder is made", true) \
	P(STATE_LOCK, "state.lock", "before its lock is had", true) \
	P(STATE_WRITE, "state.write", "before job.json is written", true) \
	P(EVENTS_WRITE, "events.write", "before events are written", true) \
	P(REPORT_WRITE, "report.write", "before the report is written", true) \
	P(REPORT_AFTER, "report.after", "it is there, and nobody knows", \
		false) \
	P(THREAD_START, "thread.start", "before a thread is made", true)

enum fault_point {
#define P(name, text, where, fails) FAULT_##name,
	FAULT_POINTS(P)
#undef P
		FAULT_COUNT
};

#define FAULT_ANY UINT32_MAX /* a point that knows no rank */

/* Is any armed? Nobody but fault.c writes it. */
extern bool fault_armed;

/* fault_hit() - what was armed for this point happens; errno, or 0. */
int fault_hit(enum fault_point at, uint32_t rank);

/*
 * fault() - one line at the point.
 *
 * Returns 0, or the errno with which the point is to fail; errno is that then.
 */
static inline int
fault(enum fault_point at, uint32_t rank)
{
	return __builtin_expect(fault_armed, false) ? fault_hit(at, rank) : 0;
}

/*
 * fault_arm() - from now on, what @text says.
 *
 * Returns XR_OK, or XR_E_INVAL with what is wrong in it, and nothing is armed.
 */
enum xr_status fault_arm(const char *text, struct xr_error *err);

/* fault_name() - "spawn.after"; fault_where() - a few words for a person. */
const char *fault_name(enum fault_point at);
const char *fault_where(enum fault_point at);
bool fault_fails(enum fault_point at);

#endif /* BASE_FAULT_H */
