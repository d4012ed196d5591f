/* SPDX-License-Identifier: Apache-2.0 */
/* test_hook_exec.c - commands of --exec-on without memory. */
#include <criterion/criterion.h>

#include "launcher/job/sup.h"
#include "launcher/tell/hook.h"
#include "tests/unit/short_memory.h"

/* The event has memory, and the queue of events has none. */
Test(hook_exec, an_event_is_freed_if_there_is_no_memory_for_the_queue)
{
	struct hooks hooks = { 0 };
	struct job job = { .hooks = &hooks };

	until_short = 2;
	was_short = false;
	hook_exec_tell(&job, "true", BUS_JOB_END, span_of("{}"));
	until_short = 0;
	cr_expect(was_short);
	cr_expect_not(hook_exec_busy(&job));
}
