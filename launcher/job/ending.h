/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - how a job is brought to its end, as a dense pure table.
 *
 * From RUNNING on, Ctrl-C and everything else that stops a job, and the
 * patience that comes to an end, lead down the ladder and never up. What
 * follows when all ranks are over (delivery, account) is finish.c's.
 */
#ifndef LAUNCHER_JOB_ENDING_H
#define LAUNCHER_JOB_ENDING_H

/* E(NAME, "what a person reads") */
#define ENDING_STATES(E) \
	E(RUNNING, "running") \
	E(ASKED, "asked") \
	E(INTERRUPTED, "interrupted") \
	E(STOPPING, "stopping") \
	E(KILLED, "killed")

#define ENDING_EVENTS(E) \
	E(CTRL_C, "ctrl-c") \
	E(CTRL_C_ASK, "ctrl-c-ask") \
	E(STOP, "stop") \
	E(PATIENCE, "patience")

/* What to do on the way; a set, in this order. */
enum ending_act {
	ENDING_DO_SHOW = 1 << 0,  /* a screen with the ranks */
	ENDING_DO_TELL = 1 << 1,  /* what this further Ctrl-C does */
	ENDING_DO_INT = 1 << 2,   /* SIGINT to all ranks */
	ENDING_DO_STOP = 1 << 3,  /* --stop-signal to all, then patience */
	ENDING_DO_KILL = 1 << 4,  /* SIGKILL to all, then patience */
	ENDING_DO_LEAVE = 1 << 5, /* name those that live on, and leave them */
};

#define E(name, text) ENDING_##name,
enum ending { ENDING_STATES(E) ENDING_STATE_COUNT };
#undef E
#define E(name, text) ENDING_EV_##name,
enum ending_event { ENDING_EVENTS(E) ENDING_EVENT_COUNT };
#undef E

/* ending_next() - where @event leads from @from; @act receives what to do. */
enum ending ending_next(enum ending from, enum ending_event event,
	unsigned *act);

const char *ending_name(enum ending ending);
const char *ending_event_name(enum ending_event event);

#endif /* LAUNCHER_JOB_ENDING_H */
