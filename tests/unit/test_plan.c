/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c - how many ranks, which of them here, with which devices. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "place/plan.h"
#include "tests/unit/leaks.h"

#define VARS(...) \
	(char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
#define LIST "XRT_TPU_CONFIG=c_tpu_worker;0;h:8470"

static struct xr_device devices[8];
static struct xr_error err;
static struct plan plan;

static void
setup(void)
{
	for (uint32_t i = 0; i < 8; i++) {
		devices[i] = (struct xr_device){
			.size = sizeof(devices[i]),
			.index = i,
			.platform = "cuda",
		};
		snprintf(devices[i].id, sizeof(devices[i].id), "%u", i);
	}
}

static enum xr_status
make(const struct plan_facts *facts)
{
	plan_fini(&plan);
	err = (struct xr_error){ 0 };
	return plan_make(&plan, facts, &err);
}

#define MAKE(...) \
	make(&(struct plan_facts){ .host = "here", \
		.found = devices, \
		__VA_ARGS__ })

static void
finish(void)
{
	plan_fini(&plan);
	leaks_none();
}

TestSuite(plan, .init = setup, .fini = finish);

static const char *
device_of(uint32_t local_rank)
{
	return plan_deal(&plan, local_rank)->text;
}

Test(plan, nothing_said_and_nothing_found_is_one_rank)
{
	cr_assert(MAKE() == XR_OK);
	cr_assert(eq(u32, plan.size, 1));
	cr_assert(eq(u32, plan.local_size, 1));
	cr_assert(eq(u32, plan.first, 0));
	cr_assert(eq(u32, plan.nodes, 1));
	cr_assert(eq(str, (char *)plan_reason_text(plan.reason), "default"));
	cr_assert(eq(str, (char *)device_of(0), "cpu"));
}

Test(plan, one_rank_an_accelerator)
{
	cr_assert(MAKE(.found_count = 4) == XR_OK);
	cr_assert(eq(u32, plan.size, 4));
	cr_assert(eq(i32, plan.reason, PLAN_ACCELERATORS));
	cr_assert(eq(str, (char *)device_of(0), "cuda:0"));
	cr_assert(eq(str, (char *)device_of(3), "cuda:3"));
}

Test(plan, more_ranks_than_devices_share)
{
	cr_assert(MAKE(.found_count = 2, .ranks = 5) == XR_OK);
	cr_assert(eq(i32, plan.reason, PLAN_GIVEN));
	cr_assert(eq(str, (char *)device_of(0), "cuda:0"));
	cr_assert(eq(str, (char *)device_of(1), "cuda:1"));
	cr_assert(eq(str, (char *)device_of(2), "cuda:0"));
	cr_assert(eq(str, (char *)device_of(4), "cuda:0"));
}

Test(plan, more_devices_than_ranks_are_dealt_out)
{
	cr_assert(MAKE(.found_count = 5, .ranks = 2) == XR_OK);
	cr_assert(eq(str, (char *)device_of(0), "cuda:0,cuda:2,cuda:4"));
	cr_assert(eq(str, (char *)device_of(1), "cuda:1,cuda:3"));
	cr_assert(eq(str, plan.deals[0].ids, "0,2,4"));
	cr_assert(MAKE(.found_count = 4, .ranks = 1) == XR_OK);
	cr_assert(eq(str, (char *)device_of(0), "cuda:0,cuda:1,cuda:2,cuda:3"));
}

Test(plan, a_platform_may_allow_one_device_a_rank)
{
	cr_assert(MAKE(.found_count = 5, .ranks = 2, .most = 1) == XR_OK);
	cr_assert(eq(str, (char *)device_of(0), "cuda:0"));
	cr_assert(eq(str, (char *)device_of(1), "cuda:1"));
	cr_assert(eq(u32, plan.device_count, 2));
}

Test(plan, devices_none_is_cpu)
{
	cr_assert(MAKE(.found_count = 4, .devices = "none") == XR_OK);
	cr_assert(eq(u32, plan.size, 1));
	cr_assert(plan.devices_none);
	cr_assert(eq(str, (char *)device_of(0), "cpu"));
}

Test(plan, devices_are_chosen)
{
	cr_assert(MAKE(.found_count = 8, .devices = "7,2-3") == XR_OK);
	cr_assert(eq(u32, plan.size, 3));
	cr_assert(eq(str, (char *)device_of(0), "cuda:7"));
	cr_assert(eq(str, (char *)device_of(2), "cuda:3"));
	cr_assert(MAKE(.found_count = 8, .devices = "8") == XR_E_RANGE);
	cr_assert(strstr(err.text, "--devices: '8' (byte 0)") == err.text);
	cr_assert(MAKE(.found_count = 8, .devices = "1,1") == XR_E_EXISTS);
}

Test(plan, under_a_worker_list_there_is_one_rank_a_device)
{
	cr_assert(MAKE(.vars = VARS(LIST), .found_count = 4) == XR_OK);
	cr_assert(eq(u32, plan.size, 8));
	cr_assert(eq(i32, plan.reason, PLAN_WORKER_LIST));
	cr_assert(plan.workers.present);
}

Test(plan, AC_L8_three_of_eight_is_refused_with_both_numbers)
{
	cr_assert(MAKE(.vars = VARS(LIST), .ranks = 3) == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"-n 3: this TPU worker list has 8 devices a host, so 1 or 8\t-n 8, or --any-ranks"));
	cr_assert(MAKE(.vars = VARS(LIST), .ranks = 1) == XR_OK);
	cr_assert(MAKE(.vars = VARS(LIST), .ranks = 8) == XR_OK);
	cr_assert(MAKE(.vars = VARS(LIST), .ranks = 3, .any_ranks = true) ==
		XR_OK);
	cr_assert(eq(u32, plan.size, 3));
}

Test(plan, the_list_rule_needs_a_list)
{
	cr_assert(MAKE(.vars = VARS("TPU_NUM_DEVICES=8"), .ranks = 3) == XR_OK);
	cr_assert(MAKE(.vars = VARS("XRT_LOCAL_WORKER=w:0",
			       "TPU_NUM_DEVICES=1"),
			  .ranks = 3) == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"-n 3: this TPU worker list has 1 device a host, so 1\t-n 1, or --any-ranks"));
}

Test(plan, AC_L5_the_world_is_hosts_times_ranks)
{
	cr_assert(MAKE(.vars = VARS(LIST, "XRT_SHARD_WORLD_SIZE=2"),
			  .ranks = 8) == XR_OK);
	cr_assert(eq(u32, plan.size, 16));
	cr_assert(eq(u32, plan.nodes, 2));
	cr_assert(MAKE(.vars = VARS(LIST), .ranks = 8) == XR_OK);
	cr_assert(eq(u32, plan.size, 8));
}

Test(plan, the_second_host_has_the_second_block)
{
	cr_assert(MAKE(.vars = VARS("XRT_LOCAL_WORKER=c_tpu_worker:1",
			       "XRT_SHARD_WORLD_SIZE=2")) == XR_OK);
	cr_assert(eq(u32, plan.node, 1));
	cr_assert(eq(u32, plan.first, 8));
	cr_assert(eq(u32, plan.size, 16));
}

Test(plan, the_device_of_a_worker_list_has_its_ordinal)
{
	cr_assert(MAKE(.vars = VARS("XRT_LOCAL_WORKER=c_tpu_worker:1",
			       "XRT_SHARD_WORLD_SIZE=2"),
			  .found_count = 2) == XR_OK);
	cr_assert(eq(u32, plan.deal_count, 8));
	for (uint32_t i = 0; i < 8; i++) {
		char text[16];

		snprintf(text, sizeof(text), "tpu:%u", 8 + i);
		cr_assert(eq(str, (char *)device_of(i), text));
		cr_assert(eq(str, plan_deal(&plan, i)->ids,
			i % 2 == 0 ? "0" : "1"));
	}
	cr_assert(MAKE(.vars = VARS(LIST), .devices = "none") == XR_OK);
	cr_assert(eq(str, (char *)device_of(0), "cpu"));
}

Test(plan, AC_L20_two_hosts_with_one_rank_each_are_0_and_1_of_2)
{
	char host[] = "XRT_LOCAL_WORKER=w:0";

	for (uint32_t h = 0; h < 2; h++) {
		host[sizeof(host) - 2] = (char)('0' + h);
		cr_assert(MAKE(.vars = VARS(host, "XRT_SHARD_WORLD_SIZE=2"),
				  .ranks = 1) == XR_OK);
		cr_assert(eq(u32, plan.size, 2));
		cr_assert(eq(u32, plan.first, h));
	}
}

Test(plan, too_many_ranks_are_refused)
{
	cr_assert(MAKE(.ranks = -1) == XR_E_RANGE);
	cr_assert(MAKE(.ranks = INT64_MAX) == XR_E_RANGE);
	cr_assert(MAKE(.ranks = PLAN_RANKS_MAX + 1) == XR_E_RANGE);
	cr_assert(eq(str, err.text, "-n 10000001: ranks can be 1 to 10000000"));
	cr_assert(MAKE(.ranks = PLAN_RANKS_MAX) == XR_OK, "%s", err.text);
	cr_assert(MAKE(.vars = VARS("XRT_LOCAL_WORKER=w:0",
			       "XRT_SHARD_WORLD_SIZE=65536",
			       "TPU_NUM_DEVICES=65536")) == XR_E_RANGE);
	cr_assert(strstr(err.text, "4294967296 ranks") != NULL);
}

Test(plan, a_refused_plan_leaves_the_old_one)
{
	struct plan kept = { .size = 77 };

	cr_assert(plan_make(&kept, &(struct plan_facts){ .ranks = -1 }, NULL) ==
		XR_E_RANGE);
	cr_assert(eq(u32, kept.size, 77));
}

Test(plan, a_malformed_list_is_refused)
{
	cr_assert(MAKE(.vars = VARS("XRT_TPU_CONFIG=a;0")) == XR_E_INVAL);
	cr_assert(strstr(err.text, "XRT_TPU_CONFIG: 'a;0'") == err.text);
}
