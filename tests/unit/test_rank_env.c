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

/* All variables of rank @index, with a blank between them. */
static const char *
all_of(char *const *vars, uint32_t count, uint16_t port, uint32_t index)
{
	static char text[4096];
	struct rank_job job;
	size_t len = 0;
	char **env;

	cr_assert_eq(rank_job_init(&job, vars, count, &err), XR_OK, "%s",
		err.text);
	job.port = port;
	env = rank_env(&job, index, vars);
	cr_assert_not_null(env);
	for (char **e = env; *e != NULL && len < sizeof(text); e++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
			e > env ? " " : "", *e);
	free(env);
	rank_job_fini(&job);
	return text;
}

#define NUMBERS(rank, size, local, locals, node, nodes) \
	" XRUN_RANK=" rank " XRUN_SIZE=" size " XRUN_LOCAL_RANK=" local \
	" XRUN_LOCAL_SIZE=" locals " XRUN_NODE=" node " XRUN_NODES=" nodes \
	" RANK=" rank " WORLD_SIZE=" size " LOCAL_RANK=" local \
	" LOCAL_WORLD_SIZE=" locals

Test(rank_env, an_environment_is_complete_and_in_order)
{
	char *none[] = { "A=1", "XRUN_CONTROL_FD=97:1", "XRUN_SEGMENT_FD=98:1",
		"XRUN_BELL_FD=99:1", "XRUN_STORE=control:", "RANK=9", "B=2",
		"LOCAL_WORLD_SIZE=9", "RANKS=3", NULL };
	char *list[] = { "A=1", LIST, "XRT_LOCAL_WORKER=d:1",
		"XRT_SHARD_WORLD_SIZE=2", "TPU_NUM_DEVICES=4",
		"XRUN_DEVICE=cpu", NULL };
	char *first[] = { LIST, "TPU_NUM_DEVICES=4", "XRT_SHARD_WORLD_SIZE=2",
		NULL };

	cr_expect_str_eq(all_of(none, 3, 0, 2),
		"A=1 B=2 RANKS=3" NUMBERS("2", "3", "2", "3", "0", "1"));
	cr_expect_str_eq(all_of(none, 0, 0, 0),
		"A=1 B=2 RANKS=3" NUMBERS("0", "1", "0", "1", "0", "1"));
	cr_expect_str_eq(all_of(list, 4, 4711, 3),
		"A=1 XRT_LOCAL_WORKER=d:1 TPU_NUM_DEVICES=4"
		" XRT_SHARD_WORLD_SIZE=8 XRT_MULTI_PROCESSING_DEVICE=TPU:7"
		" XRT_SHARD_ORDINAL=7 XRT_SHARD_LOCAL_ORDINAL=3"
		" XRT_MESH_SERVICE_ADDRESS=localhost:4711"
		" XRUN_DEVICE=tpu:7" NUMBERS("7", "8", "3", "4", "1", "2"));
	cr_expect_str_eq(all_of(first, 0, 0, 0),
		LIST
		" TPU_NUM_DEVICES=4 XRT_SHARD_WORLD_SIZE=8"
		" XRT_MULTI_PROCESSING_DEVICE=TPU:0 XRT_SHARD_ORDINAL=0"
		" XRT_SHARD_LOCAL_ORDINAL=0 XRT_LOCAL_WORKER=c:0"
		" XRUN_DEVICE=tpu:0" NUMBERS("0", "8", "0", "4", "0", "2"));
	cr_expect_str_eq(all_of(first, 0, 0, 1),
		"TPU_NUM_DEVICES=4 XRT_SHARD_WORLD_SIZE=8"
		" XRT_MULTI_PROCESSING_DEVICE=TPU:1 XRT_SHARD_ORDINAL=1"
		" XRT_SHARD_LOCAL_ORDINAL=1 XRT_LOCAL_WORKER=c:0"
		" XRUN_DEVICE=tpu:1" NUMBERS("1", "8", "1", "4", "0", "2"));
}

/* The text of a worker's name may be longer than that of any other variable. */
Test(rank_env, the_name_of_a_worker_may_be_long)
{
	static char name[6001], list[7000], want[7000];
	char *vars[] = { list, "XRT_SHARD_WORLD_SIZE=1", NULL };

	memset(name, 'w', sizeof(name) - 1);
	snprintf(list, sizeof(list), "XRT_TPU_CONFIG=%s;7;h:1", name);
	snprintf(want, sizeof(want), "%s:7", name);
	cr_assert_lt(sizeof(name), 7000);
	for (uint32_t i = 0; i < 2; i++) {
		struct rank_job job;
		char **env;

		cr_assert_eq(rank_job_init(&job, vars, 0, &err), XR_OK, "%s",
			err.text);
		env = rank_env(&job, i, vars);
		cr_assert_not_null(env);
		cr_expect_str_eq(environ_get(env, "XRT_LOCAL_WORKER"), want);
		free(env);
		rank_job_fini(&job);
	}
}

Test(rank_env, the_number_of_ranks_is_that_of_the_devices_or_1)
{
	char *vars[] = { LIST, "TPU_NUM_DEVICES=4", "XRT_SHARD_WORLD_SIZE=2",
		NULL };
	char *none[] = { NULL };
	struct rank_job job;

	for (uint32_t count = 0; count < 6; count++) {
		const bool fits = count < 2 || count == 4;
		char want[200];

		cr_expect_eq(rank_job_init(&job, vars, count, &err),
			fits ? XR_OK : XR_E_INVAL);
		if (fits) {
			cr_expect_eq(job.count, count == 0 ? 4 : count);
			cr_expect_eq(job.port, 0);
			cr_expect_eq(rank_world(&job), 2 * job.count);
			rank_job_fini(&job);
			continue;
		}
		snprintf(want, sizeof(want),
			"%u processes: this worker list has 4 devices a host, so 1 or 4",
			count);
		cr_expect_str_eq(err.text, want);
	}
	cr_expect_eq(rank_job_init(&job, none, 77, &err), XR_OK);
	cr_expect_eq(job.count, 77);
	cr_expect_eq(rank_world(&job), 77);
	cr_expect_eq(rank_ordinal(&job, 76), 76);
	rank_job_fini(&job);
}
