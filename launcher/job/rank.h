/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.h - the life of one rank, as a table.
 *
 * rank_next() is the whole machine: it reads the table, changes nothing and
 * calls nobody, so every state and event can be tested without a process.
 * What has to be done on the way is returned as a set of actions; the
 * supervisor does them, and each is harmless if done twice.
 *
 * A rank is over only when it was reaped and its pipes reached their end, in
 * either order. Between the two a timer runs, because a process it left behind
 * may hold the pipes for ever. LOST is for a rank that even SIGKILL does not end
 * (an uninterruptible sleep, another user's), or whose output nobody takes: it
 * is given up.
 */
#ifndef LAUNCHER_JOB_RANK_H
#define LAUNCHER_JOB_RANK_H

#include <stdbool.h>

/* R(NAME, "what a person reads") */
#define RANK_STATES(R) \
	R(NEW, "new") \
	R(RUNNING, "running") \
	R(STOPPING, "stopping") \
	R(KILLED, "killed") \
	R(ENDED, "ended") \
	R(DONE, "done")

#define RANK_EVENTS(R) \
	R(EXECED, "execed") \
	R(EXEC_FAILED, "exec-failed") \
	R(STOP, "stop") \
	R(KILL, "kill") \
	R(EXITED, "exited") \
	R(CLOSED, "closed") \
	R(TIMEOUT, "timeout") \
	R(LOST, "lost")

/* What to do on the way; a set. */
enum rank_act {
	RANK_DO_STOP = 1 << 0,   /* the stop signal to its group */
	RANK_DO_KILL = 1 << 1,   /* SIGKILL to its group */
	RANK_DO_DRAIN = 1 << 2,  /* TIMEOUT when its pipes stay open */
	RANK_DO_CLOSE = 1 << 3,  /* stop reading its pipes */
	RANK_DO_SETTLE = 1 << 4, /* final: count it */
};

#define R(name, text) RANK_##name,
enum rank_state { RANK_STATES(R) RANK_STATE_COUNT };
#undef R
#define R(name, text) RANK_EV_##name,
enum rank_event { RANK_EVENTS(R) RANK_EVENT_COUNT };
#undef R

/*
 * rank_next() - where @event leads from @state.
 *
 * @to and @act are written only if true is returned. False means the event
 * cannot happen in that state: the caller says so and carries on.
 */
bool rank_next(enum rank_state state, enum rank_event event,
	enum rank_state *to, unsigned *act);

const char *rank_state_name(enum rank_state state);
const char *rank_event_name(enum rank_event event);

#endif /* LAUNCHER_JOB_RANK_H */
