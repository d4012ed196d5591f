/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_env.c - what ranks of xr_spawn() are told. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/environ.h"
#include "worker/proc/rank_env.h"

TestSuite(rank_env, .timeout = 60);

static struct xr_error err;

static const char *
of(char *const *vars, uint32_t count, uint32_t index, const char *name)
{
	static char value[256];
	struct rank_job job;
	char **env;
	const char *found;

	cr_assert_eq(rank_job_init(&job, vars, count, &err), XR_OK, "%s",
		err.text);
	env = rank_env(&job, index, vars);
	found = environ_get(env, name);
	if (found != NULL)
		snprintf(value, sizeof(value), "%s", found);
	free(env);
	rank_job_fini(&job);
	return found != NULL ? value : NULL;
}

#define LIST "XRT_TPU_CONFIG=c;0;h:1|d;1;h:2"

Test(rank_env, AC_L26_a_rank_of_the_second_host_is_told_its_place)
{
	char *vars[] = { "A=b", LIST, "XRT_LOCAL_WORKER=d:1",
		"XRT_SHARD_WORLD_SIZE=2", NULL };

	cr_assert_str_eq(of(vars, 0, 3, "XRT_SHARD_ORDINAL"), "11");
	cr_assert_str_eq(of(vars, 0, 3, "XRT_SHARD_LOCAL_ORDINAL"), "3");
	cr_assert_str_eq(of(vars, 0, 3, "XRT_MULTI_PROCESSING_DEVICE"),
		"TPU:11");
	cr_assert_str_eq(of(vars, 0, 3, "XRT_SHARD_WORLD_SIZE"), "16");
	cr_assert_null(of(vars, 0, 3, "XRT_TPU_CONFIG"));
	cr_assert_str_eq(of(vars, 0, 3, "XRUN_RANK"), "11");
	cr_assert_str_eq(of(vars, 0, 3, "XRUN_NODE"), "1");
	cr_assert_str_eq(of(vars, 0, 3, "A"), "b");
}

Test(rank_env, AC_L23_one_rank_a_host_counts_hosts)
{
	char *vars[] = { LIST, "XRT_LOCAL_WORKER=d:1", "XRT_SHARD_WORLD_SIZE=2",
		NULL };

	cr_assert_str_eq(of(vars, 1, 0, "XRT_SHARD_ORDINAL"), "1");
	cr_assert_str_eq(of(vars, 1, 0, "XRT_SHARD_WORLD_SIZE"), "2");
}

Test(rank_env, the_local_worker_is_of_the_first_entry_where_nobody_said)
{
	char *vars[] = { LIST, "XRT_SHARD_WORLD_SIZE=2", NULL };

	cr_assert_str_eq(of(vars, 0, 5, "XRT_LOCAL_WORKER"), "c:0");
	cr_assert_null(of(vars, 0, 5, "XRT_TPU_CONFIG"));
	cr_assert_str_eq(of(vars, 0, 0, "XRT_LOCAL_WORKER"), "c:0");
	cr_assert_not_null(of(vars, 0, 0, "XRT_TPU_CONFIG"));
}

Test(rank_env, a_rank_does_not_speak_as_the_one_that_started_it)
{
	char *vars[] = { "XRUN_JOB=k7m2", "XRUN_RANK=3", "XRUN_SIZE=4",
		"XRUN_CONTROL_FD=97:1", "XRUN_SEGMENT_FD=98:1",
		"XRUN_STORE=control:", "RANK=3", NULL };

	cr_assert_null(of(vars, 2, 1, "XRUN_CONTROL_FD"));
	cr_assert_null(of(vars, 2, 1, "XRUN_SEGMENT_FD"));
	cr_assert_null(of(vars, 2, 1, "XRUN_STORE"));
	cr_assert_str_eq(of(vars, 2, 1, "XRUN_RANK"), "1");
	cr_assert_str_eq(of(vars, 2, 1, "XRUN_SIZE"), "2");
	cr_assert_str_eq(of(vars, 2, 1, "RANK"), "1");
	cr_assert_str_eq(of(vars, 2, 1, "XRUN_JOB"), "k7m2");
	cr_assert_null(of(vars, 2, 1, "XRT_SHARD_ORDINAL"));
}

Test(rank_env, a_number_that_is_not_the_hosts_is_refused_with_both)
{
	char *vars[] = { LIST, "TPU_NUM_DEVICES=4", NULL };
	char *bad[] = { "XRT_LOCAL_WORKER=w", NULL };
	struct rank_job job;

	cr_assert_eq(rank_job_init(&job, vars, 3, &err), XR_E_INVAL);
	cr_assert_not_null(strstr(err.text, "3 processes"));
	cr_assert_not_null(strstr(err.text, "4 devices"));
	cr_assert_eq(rank_job_init(&job, bad, 0, &err), XR_E_INVAL);
	cr_assert_not_null(strstr(err.text, "XRT_LOCAL_WORKER: 'w'"));
}

Test(rank_env, a_service_address_that_is_there_stays)
{
	char *set[] = { LIST, "XRT_MESH_SERVICE_ADDRESS=h:8470", NULL };
	char *empty[] = { LIST, "XRT_MESH_SERVICE_ADDRESS=", NULL };
	char *none[] = { "A=b", NULL };
	struct rank_job job;

	cr_assert_eq(rank_job_init(&job, set, 0, &err), XR_OK);
	cr_assert_not(rank_needs_port(&job, set));
	rank_job_fini(&job);
	cr_assert_eq(rank_job_init(&job, empty, 0, &err), XR_OK);
	cr_assert(rank_needs_port(&job, empty));
	rank_job_fini(&job);
	cr_assert_eq(rank_job_init(&job, none, 0, &err), XR_OK);
	cr_assert_not(rank_needs_port(&job, none));
	rank_job_fini(&job);
}
