/* SPDX-License-Identifier: Apache-2.0 */
/* test_pjrt.c - shapes of TPU slices; the vectors are torch_xla's own. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/pjrt.h"
#include "tests/unit/leaks.h"

#define VARS(...) \
	(char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}

static struct xr_error err;
static struct tpu_facts facts;
static struct pjrt pjrt;

static void
finish(void)
{
	pjrt_fini(&pjrt);
	tpu_facts_fini(&facts);
	leaks_none();
}

TestSuite(pjrt, .fini = finish);

static enum xr_status
read_vars(char *const *vars)
{
	err = (struct xr_error){ 0 };
	tpu_facts_fini(&facts);
	return tpu_facts_of_vars(&facts, vars, &err);
}

static enum xr_status
make(uint32_t local_size)
{
	err = (struct xr_error){ 0 };
	pjrt_fini(&pjrt);
	return pjrt_make(&pjrt, &facts, local_size, &err);
}

/* Variables, then ranks here; the result is in pjrt. */
static enum xr_status
run(char *const *vars, uint32_t local_size)
{
	enum xr_status status = read_vars(vars);

	return status != XR_OK ? status : make(local_size);
}

#define LOCAL4 "localhost:8476,localhost:8477,localhost:8478,localhost:8479"

static void
expect(const char *bounds, const char *addresses, uint32_t first_task)
{
	cr_assert(eq(str, pjrt.process_bounds, (char *)bounds));
	cr_assert(eq(str, (char *)pjrt.chip_bounds, "1,1,1"));
	cr_assert(eq(str, pjrt.addresses, (char *)addresses));
	cr_assert(eq(u32, pjrt.first_task, first_task));
}

Test(pjrt, v4_8_local_rank_3_is_task_3_on_port_8479)
{
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-8",
			      "TPU_PROCESS_BOUNDS=1,1,1",
			      "TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1",
			      "TPU_WORKER_ID=0"),
			  4) == XR_OK);
	expect("2,2,1", LOCAL4, 0);
	cr_assert(eq(u32, pjrt.first_task + 3, 3));
	cr_assert(eq(u16, pjrt.ports[3], 8479));
}

Test(pjrt, v4_16_worker_1_local_rank_0_is_task_4_on_port_8476)
{
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-16",
			      "TPU_HOST_BOUNDS=1,1,2",
			      "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1",
			      "CLOUD_TPU_TASK_ID=1", "TPU_WORKER_ID=0",
			      "TPU_WORKER_HOSTNAMES=10.130.0.31,10.130.0.30"),
			  4) == XR_OK);
	expect("2,2,2",
		"10.130.0.31:8476,10.130.0.31:8477,10.130.0.31:8478,10.130.0.31:8479,10.130.0.30:8476,10.130.0.30:8477,10.130.0.30:8478,10.130.0.30:8479",
		4);
	cr_assert(eq(u16, pjrt.ports[0], 8476));
}

Test(pjrt, v5_4_one_chip_bounds_multiply_to_themselves)
{
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v5litepod-4",
			      "TPU_PROCESS_BOUNDS=2,2,1",
			      "TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1"),
			  4) == XR_OK);
	expect("2,2,1", LOCAL4, 0);
}

Test(pjrt, v7_has_a_fourth_factor_of_2)
{
	static const char *const types[] = { "TPU_ACCELERATOR_TYPE=v7-8",
		"TPU_ACCELERATOR_TYPE=tpu7x-8" };

	for (int i = 0; i < 2; i++) {
		for (uint32_t n = 4; n <= 8; n += 4) {
			cr_assert(
				run(VARS((char *)types[i],
					    "TPU_PROCESS_BOUNDS=1,1,1",
					    "TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1"),
					n) == XR_OK);
			cr_assert(eq(str, pjrt.process_bounds, "2,2,1,2"));
		}
	}
}

Test(pjrt, v2_and_v3_have_their_bounds_from_the_table)
{
	static const struct {
		const char *type, *bounds;
		uint32_t hosts;
	} rows[] = {
		{ "v2-8", "2,2,1", 1 },
		{ "v2-32", "4,4,1", 4 },
		{ "v2-128", "8,8,1", 16 },
		{ "v2-256", "8,16,1", 32 },
		{ "v2-512", "16,16,1", 64 },
		{ "v3-8", "2,2,1", 1 },
		{ "v3-32", "4,4,1", 4 },
		{ "v3-64", "4,8,1", 8 },
		{ "v3-128", "8,8,1", 16 },
		{ "v3-256", "8,16,1", 32 },
		{ "v3-512", "16,16,1", 64 },
		{ "v3-1024", "16,32,1", 128 },
		{ "v3-2048", "32,32,1", 256 },
	};
	char type[64], hosts[2048];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(type, sizeof(type), "TPU_ACCELERATOR_TYPE=%s",
			rows[i].type);
		len = (size_t)snprintf(hosts, sizeof(hosts),
			"TPU_WORKER_HOSTNAMES=h");
		for (uint32_t h = 1; h < rows[i].hosts; h++)
			len += (size_t)snprintf(hosts + len,
				sizeof(hosts) - len, ",h");
		cr_assert(run(VARS(type, hosts, "TPU_WORKER_ID=0"), 4) == XR_OK,
			"%s: %s", rows[i].type, err.text);
		cr_assert(eq(str, pjrt.process_bounds, (char *)rows[i].bounds));
	}
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v3-16"), 4) == XR_E_INVAL);
	cr_assert(strstr(err.text, "'v3-16'") != NULL);
}

Test(pjrt, one_process_has_one_chip_whatever_the_slice)
{
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-16",
			      "TPU_HOST_BOUNDS=1,1,2",
			      "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1"),
			  1) == XR_OK);
	cr_assert(eq(str, pjrt.process_bounds, "1,1,1"));
	cr_assert(eq(str, (char *)pjrt.chip_bounds, "1,1,1"));
	cr_assert(pjrt.addresses == NULL);
	cr_assert(pjrt.ports == NULL);
}

Test(pjrt, an_unknown_slice_gets_no_shape)
{
	cr_assert(run(VARS("A=b"), 4) == XR_OK);
	cr_assert(facts.type == NULL);
	cr_assert(pjrt.process_bounds == NULL);
	cr_assert(pjrt.chip_bounds == NULL);
	cr_assert(pjrt.ports == NULL);
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-8"), 4) == XR_OK);
	cr_assert(pjrt.process_bounds == NULL);
}

Test(pjrt, malformed_bounds_are_named)
{
	static const struct {
		const char *value, *error;
	} rows[] = {
		{ "2,2", "TPU_PROCESS_BOUNDS: '2,2' has 2 factors, not x,y,z" },
		{ "2", "TPU_PROCESS_BOUNDS: '2' has 1 factor, not x,y,z" },
		{ "2,2,1,1",
			"TPU_PROCESS_BOUNDS: '2,2,1,1' has 4 factors, not x,y,z" },
		{ "2,,1",
			"TPU_PROCESS_BOUNDS: '2,,1' has factor '', not a number from 1" },
		{ "2,0,1",
			"TPU_PROCESS_BOUNDS: '2,0,1' has factor '0', not a number from 1" },
		{ "2,x,1",
			"TPU_PROCESS_BOUNDS: '2,x,1' has factor 'x', not a number from 1" },
		{ "2,99999999999,1",
			"TPU_PROCESS_BOUNDS: '2,99999999999,1' has factor '99999999999', not a number from 1" },
	};
	char var[80];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(var, sizeof(var), "TPU_PROCESS_BOUNDS=%s",
			rows[i].value);
		cr_assert(read_vars(VARS("TPU_ACCELERATOR_TYPE=v4-8", var)) ==
			XR_E_INVAL);
		cr_assert(eq(str, err.text, (char *)rows[i].error));
	}
}

Test(pjrt, what_does_not_add_up_is_refused_with_the_sum)
{
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-16",
			      "TPU_HOST_BOUNDS=1,1,2",
			      "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1"),
			  4) == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"TPU_HOST_BOUNDS 1,1,2 x TPU_CHIPS_PER_HOST_BOUNDS 2,2,1 = 8 processes, but 1 host x 4 ranks = 4"));
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-8",
			      "TPU_PROCESS_BOUNDS=1,1,1",
			      "TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1"),
			  3) == XR_E_INVAL);
	cr_assert(strstr(err.text, "= 4 processes, but 1 host x 3 ranks = 3") !=
		NULL);
}

Test(pjrt, huge_factors_do_not_wrap_around)
{
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-8",
			      "TPU_PROCESS_BOUNDS=65536,65536,65536",
			      "TPU_CHIPS_PER_PROCESS_BOUNDS=65536,65536,65536"),
			  4) == XR_E_INVAL);
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-8",
			      "TPU_PROCESS_BOUNDS=65536,65536,1",
			      "TPU_CHIPS_PER_PROCESS_BOUNDS=65536,65536,1"),
			  4) == XR_E_INVAL);
}

#define V4_8 \
	"TPU_ACCELERATOR_TYPE=v4-8", "TPU_PROCESS_BOUNDS=1,1,1", \
		"TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1"

Test(pjrt, preset_addresses_give_the_ports)
{
	cr_assert(run(VARS(V4_8, "TPU_PROCESS_ADDRESSES=a:1,a:22,a:3,a:65535"),
			  4) == XR_OK);
	cr_assert(eq(str, pjrt.addresses, "a:1,a:22,a:3,a:65535"));
	cr_assert(eq(u16, pjrt.ports[1], 22));
	cr_assert(eq(u16, pjrt.ports[3], 65535));
}

Test(pjrt, each_host_has_its_own_ports_of_preset_addresses)
{
	char id[] = "TPU_WORKER_ID=0";

	for (uint32_t w = 0; w < 2; w++) {
		id[sizeof(id) - 2] = (char)('0' + w);
		cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-16",
				      "TPU_HOST_BOUNDS=1,1,2",
				      "TPU_CHIPS_PER_HOST_BOUNDS=2,1,1",
				      "TPU_WORKER_HOSTNAMES=a,b", id,
				      "TPU_PROCESS_ADDRESSES=a:1,a:2,b:3,b:4"),
				  2) == XR_OK);
		cr_assert(eq(u16, pjrt.ports[0], 1 + 2 * w));
		cr_assert(eq(u16, pjrt.ports[1], 2 + 2 * w));
	}
}

Test(pjrt, a_count_of_addresses_that_is_wrong_is_refused)
{
	cr_assert(run(VARS(V4_8, "TPU_PROCESS_ADDRESSES=a:1,a:2,a:3"), 4) ==
		XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"TPU_PROCESS_ADDRESSES has 3 addresses, but 1 host x 4 ranks = 4 processes"));
	cr_assert(run(VARS(V4_8, "TPU_PROCESS_ADDRESSES=a:1,a,a:3,a:4"), 4) ==
		XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"TPU_PROCESS_ADDRESSES: 'a' is not host:port"));
	cr_assert(run(VARS(V4_8, "TPU_PROCESS_ADDRESSES=a:1,a:0,a:3,a:4"), 4) ==
		XR_E_INVAL);
}

Test(pjrt, the_worker_must_be_one_of_the_hosts)
{
#define V4_16 \
	"TPU_ACCELERATOR_TYPE=v4-16", "TPU_HOST_BOUNDS=1,1,2", \
		"TPU_CHIPS_PER_HOST_BOUNDS=2,2,1", "TPU_WORKER_HOSTNAMES=a,b"
	cr_assert(run(VARS(V4_16, "TPU_WORKER_ID=2"), 4) == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"TPU worker 2 does not exist: TPU_WORKER_HOSTNAMES has 2 hosts"));
	cr_assert(run(VARS(V4_16), 4) == XR_E_INVAL);
	cr_assert(strstr(err.text, "TPU_WORKER_ID does not say") != NULL);
	cr_assert(run(VARS(V4_16, "TPU_WORKER_ID=x"), 4) == XR_E_INVAL);
	cr_assert(eq(str, err.text, "TPU_WORKER_ID: 'x' is not a number"));
	cr_assert(run(VARS("TPU_ACCELERATOR_TYPE=v4-16",
			      "TPU_HOST_BOUNDS=1,1,2",
			      "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1",
			      "TPU_WORKER_HOSTNAMES=a,", "TPU_WORKER_ID=0"),
			  4) == XR_E_INVAL);
	cr_assert(eq(str, err.text, "TPU_WORKER_HOSTNAMES: '' is no host"));
}

Test(pjrt, a_strange_type_is_refused)
{
	static const char *const bad[] = { "x4-8", "v", "vx-8", "tpu", "4-8",
		"v0-8" };
	char var[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(var, sizeof(var), "TPU_ACCELERATOR_TYPE=%s", bad[i]);
		cr_expect(read_vars(VARS(var)) == XR_E_INVAL, "%s", bad[i]);
	}
}

static const char tpu_env[] = "ACCELERATOR_TYPE: 'v4-16'\n"
			      "CHIPS_PER_HOST_BOUNDS: '2,2,1'\n"
			      "HOST_BOUNDS: '1,1,2'\n"
			      "\n"
			      "TPU_CHIPS_PER_PROCESS_BOUNDS: '2,2,1'\n"
			      "TPU_PROCESS_BOUNDS: '1,1,2'\n"
			      "WORKER_ID: '1'\n"
			      "ZONE: 'us-central2-b'\n";
static const char endpoints[] =
	"t1v-n-0-w-0:12345:10.130.0.31,t1v-n-0-w-1:12346:10.130.0.30";

static enum xr_status
read_metadata(const char *text, const char *worker)
{
	err = (struct xr_error){ 0 };
	tpu_facts_fini(&facts);
	return tpu_facts_of_metadata(&facts, text, endpoints, worker, &err);
}

Test(pjrt, tpu_env_gives_the_same_facts_as_variables)
{
	cr_assert(read_metadata(tpu_env, NULL) == XR_OK);
	cr_assert(eq(str, (char *)facts.type, "v4-16"));
	cr_assert(eq(u32, facts.version, 4));
	cr_assert(eq(u32, facts.worker, 1));
	cr_assert(make(4) == XR_OK);
	expect("2,2,2",
		"10.130.0.31:8476,10.130.0.31:8477,10.130.0.31:8478,10.130.0.31:8479,10.130.0.30:8476,10.130.0.30:8477,10.130.0.30:8478,10.130.0.30:8479",
		4);
}

/* The entries, their end, and the text. */
Test(pjrt, tpu_env_takes_one_block)
{
	static const char text[] = "ZONE: 'a'\nWORKER_ID: '1'";
	size_t size = 0;

	cr_assert(read_metadata(text, NULL) == XR_OK, "%s", err.text);
	for (unsigned i = 0; i < leaks.count; i++)
		if (leaks.at[i] == facts.owned)
			size = leaks.size[i];
	cr_assert(eq(sz, size, 3 * sizeof(char *) + sizeof(text)));
}

Test(pjrt, tpu_env_is_read_as_people_and_tools_write_it)
{
	cr_assert(read_metadata("# comment\r\n"
				"  HOST_BOUNDS :\t\"1,1,1\"  \r\n"
				"CHIPS_PER_HOST_BOUNDS: 2,2,1\r\n"
				"TPU_PROCESS_BOUNDS: ''\n"
				"no colon here\n"
				": no key\n"
				"URL: 'it''s http://x:1/a,b'\n"
				"ACCELERATOR_TYPE:'v4-8'",
			  "3") == XR_OK);
	cr_assert(eq(str, (char *)facts.type, "v4-8"));
	cr_assert(eq(u32, facts.process.at[2], 1));
	cr_assert(eq(str, (char *)facts.process.name, "HOST_BOUNDS"));
	cr_assert(eq(u32, facts.chips.at[1], 2));
	cr_assert(eq(u32, facts.worker, 3));
	cr_assert(read_metadata("ACCELERATOR_TYPE: 'v4''8'", NULL) == XR_OK);
	cr_assert(eq(str, (char *)facts.type, "v4'8"));
}

Test(pjrt, tpu_env_says_what_is_wrong)
{
	cr_assert(read_metadata("ACCELERATOR_TYPE: 'v4-8\n", NULL) ==
		XR_E_INVAL);
	cr_assert(strstr(err.text, "tpu-env: 'ACCELERATOR_TYPE: 'v4-8'") ==
		err.text);
	cr_assert(read_metadata("ACCELERATOR_TYPE: v4-8\nHOST_BOUNDS: 2,2\n",
			  NULL) == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"HOST_BOUNDS: '2,2' has 2 factors, not x,y,z"));
	cr_assert(read_metadata("ACCELERATOR_TYPE: v4-8\n", "x") == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"agent-worker-number: 'x' is not a number"));
}

Test(pjrt, an_endpoint_has_its_address_third)
{
	facts = (struct tpu_facts){
		.type = "v4-16",
		.version = 4,
		.process = { { 1, 1, 2 }, "P" },
		.chips = { { 2, 2, 1 }, "C" },
		.worker_known = true,
		.workers = "a:1:10.0.0.1,b:2",
		.endpoints = true,
	};
	cr_assert(make(4) == XR_E_INVAL);
	cr_assert(eq(str, err.text,
		"worker-network-endpoints: 'b:2' is no host"));
}

Test(pjrt, every_truncation_of_tpu_env_is_read_or_refused)
{
	size_t good = 0;

	for (size_t len = 0; len < sizeof(tpu_env); len++) {
		char *cut = strndup(tpu_env, len);
		enum xr_status status = read_metadata(cut, NULL);

		cr_expect(eq(i32, status == XR_OK, err.text[0] == '\0'));
		good += status == XR_OK;
		/* A cut may hide a fact, but not change one. */
		if (status == XR_OK && make(4) == XR_OK &&
			pjrt.process_bounds != NULL)
			cr_expect(eq(str, pjrt.process_bounds, "2,2,2"));
		free(cut);
	}
	cr_assert(gt(sz, good, 50));
}

/* Half a shape is none. */
Test(pjrt, both_bounds_are_needed)
{
	cr_assert(run(VARS("TPU_PROCESS_BOUNDS=1,1,1"), 4) == XR_OK, "%s",
		err.text);
	cr_expect_null(pjrt.process_bounds);
	cr_expect_null(pjrt.ports);
	cr_assert(run(VARS("TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1"), 4) == XR_OK,
		"%s", err.text);
	cr_expect_null(pjrt.process_bounds);
	cr_expect_null(pjrt.ports);
}
