/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - the table. Rows are states, cells are events; see rank.h. */
#include <stddef.h>

#include "launcher/job/rank.h"

struct cell {
	bool legal;
	unsigned char to;
	unsigned short act;
};

/* clang-format off */
#define GO(state, act) { true, RANK_##state, (act) }

static const struct cell cells[RANK_STATE_COUNT][RANK_EVENT_COUNT] = {
	[RANK_NEW] = {
		[RANK_EV_EXECED]      = GO(RUNNING,  0),
		[RANK_EV_EXEC_FAILED] = GO(DONE,     RANK_DO_SETTLE),
		[RANK_EV_STOP]        = GO(DONE,     RANK_DO_SETTLE),
		[RANK_EV_KILL]        = GO(DONE,     RANK_DO_SETTLE),
	},
	[RANK_RUNNING] = {
		[RANK_EV_STOP]        = GO(STOPPING, RANK_DO_STOP),
		[RANK_EV_KILL]        = GO(KILLED,   RANK_DO_KILL),
		[RANK_EV_EXITED]      = GO(ENDED,    RANK_DO_DRAIN),
		[RANK_EV_CLOSED]      = GO(RUNNING,  0),
	},
	[RANK_STOPPING] = {
		[RANK_EV_STOP]        = GO(STOPPING, RANK_DO_STOP),
		[RANK_EV_KILL]        = GO(KILLED,   RANK_DO_KILL),
		[RANK_EV_EXITED]      = GO(ENDED,    RANK_DO_DRAIN),
		[RANK_EV_CLOSED]      = GO(STOPPING, 0),
	},
	[RANK_KILLED] = {
		[RANK_EV_STOP]        = GO(KILLED,   0),
		[RANK_EV_KILL]        = GO(KILLED,   RANK_DO_KILL),
		[RANK_EV_EXITED]      = GO(ENDED,    RANK_DO_DRAIN),
		[RANK_EV_CLOSED]      = GO(KILLED,   0),
		[RANK_EV_LOST]        = GO(DONE,     RANK_DO_CLOSE | RANK_DO_SETTLE),
	},
	[RANK_ENDED] = {
		[RANK_EV_STOP]        = GO(ENDED,    0),
		[RANK_EV_KILL]        = GO(ENDED,    0),
		[RANK_EV_CLOSED]      = GO(DONE,     RANK_DO_SETTLE),
		[RANK_EV_TIMEOUT]     = GO(ENDED,    RANK_DO_CLOSE),
		[RANK_EV_LOST]        = GO(DONE,     RANK_DO_SETTLE),
	},
	[RANK_DONE] = {
		[RANK_EV_STOP]        = GO(DONE,     0),
		[RANK_EV_KILL]        = GO(DONE,     0),
		[RANK_EV_TIMEOUT]     = GO(DONE,     0),
	},
};
/* clang-format on */

bool
rank_next(enum rank_state state, enum rank_event event, enum rank_state *to,
	unsigned *act)
{
	const struct cell *c = &cells[state][event];

	if (!c->legal)
		return false;
	*to = (enum rank_state)c->to;
	*act = c->act;
	return true;
}

const char *
rank_state_name(enum rank_state state)
{
	static const char *const names[] = {
#define R(name, text) text,
		RANK_STATES(R)
#undef R
	};

	return (unsigned)state < RANK_STATE_COUNT ? names[state] : "?";
}

const char *
rank_event_name(enum rank_event event)
{
	static const char *const names[] = {
#define R(name, text) text,
		RANK_EVENTS(R)
#undef R
	};

	return (unsigned)event < RANK_EVENT_COUNT ? names[event] : "?";
}
