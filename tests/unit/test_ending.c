/* SPDX-License-Identifier: Apache-2.0 */
/* test_ending.c - the ladder that ends a job. */
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/job/ending.h"

static enum ending state;
static unsigned act;

static void
happen(enum ending_event event)
{
	state = ending_next(state, event, &act);
}

static void
expect(enum ending want, unsigned do_what)
{
	cr_expect_eq(state, want, "%s", ending_name(state));
	cr_expect_eq(act, do_what, "%u", act);
}

Test(ending, ctrl_c_three_times_is_int_stop_kill)
{
	happen(ENDING_EV_CTRL_C);
	expect(ENDING_INTERRUPTED, ENDING_DO_SHOW | ENDING_DO_INT);
	happen(ENDING_EV_CTRL_C);
	expect(ENDING_STOPPING, ENDING_DO_TELL | ENDING_DO_STOP);
	happen(ENDING_EV_CTRL_C);
	expect(ENDING_KILLED, ENDING_DO_TELL | ENDING_DO_KILL);
	happen(ENDING_EV_CTRL_C);
	expect(ENDING_KILLED, ENDING_DO_TELL | ENDING_DO_KILL);
}

Test(ending, the_first_ctrl_c_only_shows_where_it_is_to_ask)
{
	happen(ENDING_EV_CTRL_C_ASK);
	expect(ENDING_ASKED, ENDING_DO_SHOW);
	happen(ENDING_EV_CTRL_C_ASK);
	expect(ENDING_STOPPING, ENDING_DO_TELL | ENDING_DO_STOP);
}

Test(ending, whatever_stops_a_job_does_so_after_a_ctrl_c_too)
{
	for (int from = ENDING_RUNNING; from <= ENDING_INTERRUPTED; from++) {
		state = (enum ending)from;
		happen(ENDING_EV_STOP);
		expect(ENDING_STOPPING, ENDING_DO_STOP);
		happen(ENDING_EV_STOP);
		expect(ENDING_STOPPING, 0);
		happen(ENDING_EV_PATIENCE);
		expect(ENDING_KILLED, ENDING_DO_KILL);
		happen(ENDING_EV_PATIENCE);
		expect(ENDING_KILLED, ENDING_DO_LEAVE);
	}
}

Test(ending, no_step_goes_back_and_signals_go_with_their_states)
{
	for (int from = 0; from < ENDING_STATE_COUNT; from++)
		for (int event = 0; event < ENDING_EVENT_COUNT; event++) {
			state = (enum ending)from;
			happen((enum ending_event)event);
			cr_expect_geq((int)state, from);
			cr_expect(!(act & ENDING_DO_STOP) ||
				state == ENDING_STOPPING);
			cr_expect(!(act & ENDING_DO_KILL) ||
				state == ENDING_KILLED);
			cr_expect(!(act & ENDING_DO_INT) ||
				state == ENDING_INTERRUPTED);
		}
}

Test(ending, all_have_names)
{
	for (int i = 0; i < ENDING_STATE_COUNT; i++)
		cr_expect(strcmp(ending_name((enum ending)i), "?") != 0);
	for (int i = 0; i < ENDING_EVENT_COUNT; i++)
		cr_expect(strcmp(ending_event_name((enum ending_event)i),
				  "?") != 0);
	cr_expect_str_eq(ending_name(ENDING_STATE_COUNT), "?");
	cr_expect_str_eq(ending_event_name(ENDING_EVENT_COUNT), "?");
}
