/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_coll_board.c - the limit of boards of a process; see board.h. Two ranks of one machine
 * make groups until one has no board.
 */
#include <stdlib.h>

#include <xrun/coll.h>

#include "tests/kit/shm_rig.h"
#include "tests/unit/group_rig.h"
#include "worker/coll/team.h"

#define RANKS  2
#define GROUPS 256 /* more than a process has boards */
#define WAIT_S 20

static struct xr_world *world;
static struct xr_coll *groups[GROUPS];

static void
begin(void)
{
	rig_begin();
	rig_segment(RANKS, 0);
}

TestSuite(coll_board, .init = begin, .fini = rig_end, .timeout = 120);

static void
begin_world(int rank)
{
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = usual();
	char text[16];

	snprintf(text, sizeof(text), "%d", rank);
	setenv("XRUN_LOCAL_RANK", text, 1);
	opts.name = rank == 0 ? "zero" : "one";
	opts.rank = rank;
	opts.world_size = RANKS;
	opts.rpc = &rpc;
	NEED(xr_world_new(&opts, &world, &err) == XR_OK);
}

static void
end_world(void)
{
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60),
		       &err) == XR_OK);
	xr_world_free(world);
}

/* Returns true if the new group has a board. All members agree on that. */
static bool
group_new(struct xr_coll **group)
{
	bool has_board;

	NEED(xr_coll_new(world, NULL, group, &err) == XR_OK);
	pthread_mutex_lock(&(*group)->lock);
	has_board = (*group)->board != NULL;
	pthread_mutex_unlock(&(*group)->lock);
	return has_board;
}

/* Makes groups until one has no board, and frees that one. Returns how many have one. */
static int
fill(void)
{
	int count = 0;

	while (count < GROUPS && group_new(&groups[count]))
		count++;
	NEED(count < GROUPS);
	xr_coll_free(groups[count]);
	return count;
}

/* Returns true if a new group has a board before the deadline. A freed group may live a
 * little longer: a thread that serves it has a reference. */
static bool
has_room_again(void)
{
	int64_t end = now_ms() + 1000 * WAIT_S;
	struct xr_coll *group;
	bool has_board;

	do {
		has_board = group_new(&group);
		xr_coll_free(group);
	} while (!has_board && now_ms() < end);
	return has_board;
}

static void
reaches_the_limit(int rank)
{
	int count;

	begin_world(rank);
	count = fill();
	EXPECT(count > 0);
	/* The freed group without a board made no room. */
	EXPECT(!group_new(&groups[count]));
	xr_coll_free(groups[count]);
	for (int i = 0; i < count; i++)
		xr_coll_free(groups[i]);
	EXPECT(has_room_again());
	end_world();
}

Test(coll_board, only_a_freed_group_with_a_board_makes_room_for_another)
{
	together(RANKS, reaches_the_limit);
}
