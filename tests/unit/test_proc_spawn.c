/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_spawn.c - where ranks of xr_spawn() meet (worker/proc/spawn.c). */
#include <sys/stat.h>

#include <xrun/spawn.h>

#include "tests/unit/forked.h"
#include "worker/proc/meet.h"
#include "worker/proc/target.h"

TestSuite(proc_spawn, .timeout = 120);

static struct xr_error error;
static bool shall_meet;

static enum xr_status
looks(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	return meet_is_here() == shall_meet ?
		XR_OK :
		xr_error_set(err, XR_E_STATE, "another place");
}

/* Standard input would do as a place, and stays open. */
static void
spawn_two(void)
{
	const struct xr_spawn_opts o = { .size = sizeof(o),
		.nprocs = 2,
		.method = "fork" };
	struct stat before, st;
	int place, lowest;

	NEED(xr_proc_register("looks", looks, NULL, NULL) == XR_OK);
	NEED(meet_make(16, &place, &error) == XR_OK);
	NEED(dup2(place, STDIN_FILENO) == STDIN_FILENO);
	NEED(fstat(STDIN_FILENO, &before) == 0);
	lowest = dup(place);
	close(lowest);
	EXPECT_EQ(xr_spawn("looks", NULL, &o, NULL, &error), XR_OK);
	EXPECT_STR(error.text, "");
	EXPECT(fstat(STDIN_FILENO, &st) == 0 && st.st_ino == before.st_ino);
	EXPECT_EQ(dup(place), lowest);
}

FORKED_TEST(proc_spawn, ranks_that_are_all_of_one_host_have_a_place_to_meet)
{
	unsetenv("XRT_TPU_CONFIG");
	shall_meet = true;
	spawn_two();
}

FORKED_TEST(proc_spawn, ranks_of_one_host_of_two_have_no_place_to_meet)
{
	setenv("XRT_TPU_CONFIG", "c;0;h:1|d;1;h:2", 1);
	setenv("XRT_LOCAL_WORKER", "c:0", 1);
	setenv("XRT_MESH_SERVICE_ADDRESS", "h:1", 1);
	setenv("XRT_SHARD_WORLD_SIZE", "2", 1);
	setenv("TPU_NUM_DEVICES", "2", 1);
	shall_meet = false;
	spawn_two();
}
