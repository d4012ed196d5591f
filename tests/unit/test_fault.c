/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault.c - faults that are asked for. Tests have a process each. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fault.h"
#include "xrun/status.h"

Test(fault, nothing_happens_unasked)
{
	cr_expect_not(fault_armed);
	errno = EBADF;
	cr_expect_eq(fault(FAULT_MOVE_BEFORE, 0), 0);
	cr_expect_eq(errno, EBADF);
}

Test(fault, a_point_fails_with_the_errno_that_was_named)
{
	cr_assert_eq(fault_arm("move.before:fail=ENOSPC", NULL), XR_OK);
	cr_expect_eq(fault(FAULT_MOVE_BEFORE, 7), ENOSPC);
	cr_expect_eq(errno, ENOSPC);
	cr_expect_eq(fault(FAULT_MOVE_OPEN, 7), 0);
}

Test(fault, one_rank_and_one_time_are_met)
{
	cr_assert_eq(fault_arm("spawn.before:fail=EAGAIN;rank=3;nth=2", NULL),
		XR_OK);
	cr_expect_eq(fault(FAULT_SPAWN_BEFORE, 3), 0);
	cr_expect_eq(fault(FAULT_SPAWN_BEFORE, 2), 0);
	cr_expect_eq(fault(FAULT_SPAWN_BEFORE, 2), 0);
	cr_expect_eq(fault(FAULT_SPAWN_BEFORE, 3), EAGAIN);
	cr_expect_eq(fault(FAULT_SPAWN_BEFORE, 3), 0);
}

Test(fault, several_are_armed_at_once)
{
	cr_assert_eq(fault_arm("end:delay=0us,sink.write:fail=EIO;nth=1,"
			       "sink.write:fail=EPIPE;nth=2",
			     NULL),
		XR_OK);
	cr_expect_eq(fault(FAULT_SINK_WRITE, FAULT_ANY), EIO);
}

Test(fault, a_delay_takes_its_time)
{
	int64_t begun = clock_now();

	cr_assert_eq(fault_arm("end:delay=20ms", NULL), XR_OK);
	cr_expect_eq(fault(FAULT_END, FAULT_ANY), 0);
	cr_expect_geq(clock_now() - begun, 20 * NS_PER_MS);
}

Test(fault, kill_is_sigkill_to_oneself, .signal = SIGKILL)
{
	cr_assert_eq(fault_arm("end:kill", NULL), XR_OK);
	fault(FAULT_END, FAULT_ANY);
}

Test(fault, what_is_wrong_is_named_and_arms_nothing)
{
	static const struct {
		const char *text, *word;
	} rows[] = {
		{ "", "''" },
		{ "ende:kill", "'ende'" },
		{ "end", "end" },
		{ "end:", "end" },
		{ "end:burn", "'burn'" },
		{ "end:delay=", "'delay='" },
		{ "end:delay=5", "'delay=5'" },
		{ "end:delay=-5ms", "'delay=-5ms'" },
		{ "end:delay=99999999999s", "'delay=99999999999s'" },
		{ "end:fail=EIO", "'fail=EIO'" }, /* it cannot */
		{ "move.open:fail=EWHAT", "'fail=EWHAT'" },
		{ "end:kill;rank=", "'rank='" },
		{ "end:kill;rank=4294967295", "'rank=4294967295'" },
		{ "end:kill;nth=0", "'nth=0'" },
		{ "end:kill;", "''" },
		{ "end:kill,", "''" },
		{ "end:kill,end", "end" },
	};
	struct xr_error err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		err = (struct xr_error){ 0 };
		cr_expect_eq(fault_arm(rows[i].text, &err), XR_E_INVAL, "%s",
			rows[i].text);
		cr_expect(strstr(err.text, rows[i].word) != NULL, "%s: %s",
			rows[i].text, err.text);
		cr_expect_not(fault_armed);
	}
}

/* Each beginning of a text is either one itself or refused. */
Test(fault, a_text_may_end_anywhere)
{
	static const char text[] =
		"spawn.after:delay=200ms;rank=3;nth=10,move.open:fail=EMFILE";
	char cut[sizeof(text)];

	for (size_t len = 0; len < sizeof(text); len++) {
		memcpy(cut, text, len);
		cut[len] = '\0';
		fault_arm(cut, NULL);
	}
	cr_expect_eq(fault_arm(text, NULL), XR_OK);
}

Test(fault, every_point_can_be_armed_by_its_name)
{
	char text[80];

	for (int i = 0; i < FAULT_COUNT; i++) {
		snprintf(text, sizeof(text), "%s:kill",
			fault_name((enum fault_point)i));
		cr_expect_eq(fault_arm(text, NULL), XR_OK, "%s", text);
	}
}
