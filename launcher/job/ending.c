/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - the table. Rows are states, cells are events; see ending.h. */
#include "launcher/job/ending.h"

struct cell {
	unsigned char to;
	unsigned char act;
};

/* clang-format off */
#define GO(state, act) { ENDING_##state, (act) }
#define SHOW  ENDING_DO_SHOW
#define TELL  ENDING_DO_TELL
#define INT   ENDING_DO_INT
#define STOP  ENDING_DO_STOP
#define KILL  ENDING_DO_KILL
#define LEAVE ENDING_DO_LEAVE

static const struct cell cells[ENDING_STATE_COUNT][ENDING_EVENT_COUNT] = {
	[ENDING_RUNNING] = {
		[ENDING_EV_CTRL_C]     = GO(INTERRUPTED, SHOW | INT),
		[ENDING_EV_CTRL_C_ASK] = GO(ASKED,       SHOW),
		[ENDING_EV_STOP]       = GO(STOPPING,    STOP),
		[ENDING_EV_PATIENCE]   = GO(RUNNING,     0),
	},
	[ENDING_ASKED] = {
		[ENDING_EV_CTRL_C]     = GO(STOPPING,    TELL | STOP),
		[ENDING_EV_CTRL_C_ASK] = GO(STOPPING,    TELL | STOP),
		[ENDING_EV_STOP]       = GO(STOPPING,    STOP),
		[ENDING_EV_PATIENCE]   = GO(ASKED,       0),
	},
	[ENDING_INTERRUPTED] = {
		[ENDING_EV_CTRL_C]     = GO(STOPPING,    TELL | STOP),
		[ENDING_EV_CTRL_C_ASK] = GO(STOPPING,    TELL | STOP),
		[ENDING_EV_STOP]       = GO(STOPPING,    STOP),
		[ENDING_EV_PATIENCE]   = GO(INTERRUPTED, 0),
	},
	[ENDING_STOPPING] = {
		[ENDING_EV_CTRL_C]     = GO(KILLED,      TELL | KILL),
		[ENDING_EV_CTRL_C_ASK] = GO(KILLED,      TELL | KILL),
		[ENDING_EV_STOP]       = GO(STOPPING,    0),
		[ENDING_EV_PATIENCE]   = GO(KILLED,      KILL),
	},
	[ENDING_KILLED] = {
		[ENDING_EV_CTRL_C]     = GO(KILLED,      TELL | KILL),
		[ENDING_EV_CTRL_C_ASK] = GO(KILLED,      TELL | KILL),
		[ENDING_EV_STOP]       = GO(KILLED,      0),
		[ENDING_EV_PATIENCE]   = GO(KILLED,      LEAVE),
	},
};
/* clang-format on */

enum ending
ending_next(enum ending from, enum ending_event event, unsigned *act)
{
	const struct cell *c = &cells[from][event];

	*act = c->act;
	return (enum ending)c->to;
}

const char *
ending_name(enum ending ending)
{
	static const char *const names[] = {
#define E(name, text) text,
		ENDING_STATES(E)
#undef E
	};

	return (unsigned)ending < ENDING_STATE_COUNT ? names[ending] : "?";
}

const char *
ending_event_name(enum ending_event event)
{
	static const char *const names[] = {
#define E(name, text) text,
		ENDING_EVENTS(E)
#undef E
	};

	return (unsigned)event < ENDING_EVENT_COUNT ? names[event] : "?";
}
