/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_list.c - XRT_TPU_CONFIG, XRT_LOCAL_WORKER and their like. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/worker_list.h"
#include "tests/unit/leaks.h"

TestSuite(worker_list, .fini = leaks_none);

#define VARS(...) \
	(char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}

/* The error of parsing @text; "" if it parses. */
static const char *
error_of(const char *text)
{
	static struct xr_error err;
	struct worker_list list = { 0 };

	err = (struct xr_error){ 0 };
	if (worker_list_parse(&list, "XRT_TPU_CONFIG", text, &err) == XR_OK)
		worker_list_fini(&list);
	return err.text;
}

static enum xr_status
read_env(struct worker_env *env, char *const *vars, struct xr_error *err)
{
	*env = (struct worker_env){ 0 };
	*err = (struct xr_error){ 0 };
	return worker_env_read(env, vars, err);
}

Test(worker_list, AC_L1_two_workers_are_kept_in_order)
{
	struct worker_list list = { 0 };

	cr_assert(worker_list_parse(&list, "V", "a;0;h:1|b;1;h.x-y:65535",
			  NULL) == XR_OK);
	cr_assert(eq(u32, list.count, 2));
	cr_assert(span_is(list.workers[0].name, "a"));
	cr_assert(eq(u32, list.workers[0].ordinal, 0));
	cr_assert(span_is(list.workers[0].host, "h"));
	cr_assert(eq(u16, list.workers[0].port, 1));
	cr_assert(span_is(list.workers[1].name, "b"));
	cr_assert(eq(u32, list.workers[1].ordinal, 1));
	cr_assert(span_is(list.workers[1].host, "h.x-y"));
	cr_assert(eq(u16, list.workers[1].port, 65535));
	worker_list_fini(&list);
}

Test(worker_list, AC_L2_a_bad_piece_is_named_with_its_byte)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "a;0",
			"XRT_TPU_CONFIG: 'a;0' (byte 0) has 2 parts, not name;ordinal;host:port" },
		{ "a;0;h:1;x",
			"XRT_TPU_CONFIG: 'a;0;h:1;x' (byte 0) has 4 parts, not name;ordinal;host:port" },
		{ "", "XRT_TPU_CONFIG: '' (byte 0) has 1 part, not name;ordinal;host:port" },
		{ "a;0;h:1|",
			"XRT_TPU_CONFIG: '' (byte 8) has 1 part, not name;ordinal;host:port" },
		{ "a;0;h:1|a;x;h:1",
			"XRT_TPU_CONFIG: 'a;x;h:1' (byte 8) has ordinal 'x', not a number" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert(eq(str, (char *)error_of(rows[i].text),
			(char *)rows[i].error));
}

Test(worker_list, strict_in_every_part)
{
	static const char *const bad[] = { ";0;h:1", "a b;0;h:1", "a;;h:1",
		"a;-1;h:1", "a;+1;h:1", "a; 1;h:1", "a;1x;h:1",
		"a;99999999999;h:1", "a;0;", "a;0;h", "a;0;h:", "a;0;:1",
		"a;0;h:0", "a;0;h:65536", "a;0;h:x", "a;0;h:1 ", " a;0;h:1",
		"a;0;h:1\n", "a;0;[::1]:1", "a;0;h:1:2", "a;0;h h:1",
		"\xc3\xa4;0;h:1", "a;0;h:1||b;1;h:1", "|", "a;0;h:1\x01" };

	cr_assert(eq(str, (char *)error_of("a_9;0;h_-.9:1"), ""));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect(ne(str, (char *)error_of(bad[i]), ""), "%s", bad[i]);
}

Test(worker_list, a_worker_twice_is_refused)
{
	cr_assert(eq(str, (char *)error_of("a;0;h:1|b;0;h:2|a;0;k:3"),
		"XRT_TPU_CONFIG: 'a;0' stands there twice (bytes 0 and 16)"));
	cr_assert(eq(str, (char *)error_of("a;0;h:1|a;1;h:1|aa;0;h:1"), ""));
}

Test(worker_list, every_truncation_parses_or_is_refused)
{
	static const char whole[] = "a;0;h:12|bb;1;h.x:345|c;22;k:6";

	for (size_t len = 0; len < sizeof(whole); len++) {
		/* On the heap and exact, for the address sanitizer. */
		char *cut = strndup(whole, len);
		size_t ports = len == 30 || len == 21 || len == 20 ||
			len == 19 || len == 8 || len == 7;

		cr_expect(eq(sz, strcmp(error_of(cut), "") == 0, ports), "%s",
			cut);
		free(cut);
	}
}

Test(worker_list, a_long_piece_does_not_push_the_reason_out)
{
	char text[4000];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cr_assert(strstr(error_of(text), "has 1 part, not name") != NULL);
}

Test(worker_list, AC_L3_devices_of_a_host_are_8_or_TPU_NUM_DEVICES)
{
	struct worker_env env;
	struct xr_error err;

	read_env(&env, VARS("XRT_LOCAL_WORKER=w:0"), &err);
	cr_assert(eq(u32, env.devices, 8));
	read_env(&env, VARS("XRT_LOCAL_WORKER=w:0", "TPU_NUM_DEVICES=4"), &err);
	cr_assert(eq(u32, env.devices, 4));
}

Test(worker_list, a_bad_count_is_named)
{
	static const char *const bad[] = { "", "0", "-1", "x", "8 ", "65537" };
	struct worker_env env;
	struct xr_error err;
	char var[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(var, sizeof(var), "TPU_NUM_DEVICES=%s", bad[i]);
		cr_expect(read_env(&env, VARS("XRT_LOCAL_WORKER=w:0", var),
				  &err) == XR_E_INVAL);
		cr_expect(strstr(err.text, "TPU_NUM_DEVICES: '") == err.text);
		cr_expect(strstr(err.text, bad[i]) != NULL);
		snprintf(var, sizeof(var), "XRT_SHARD_WORLD_SIZE=%s", bad[i]);
		cr_expect(read_env(&env, VARS("XRT_LOCAL_WORKER=w:0", var),
				  &err) == XR_E_INVAL);
		cr_expect(strstr(err.text, "XRT_SHARD_WORLD_SIZE: '") != NULL);
	}
	/* Without a worker list they are somebody else's business. */
	cr_assert(read_env(&env, VARS("TPU_NUM_DEVICES=x"), &err) == XR_OK);
	cr_assert(not(env.present));
}

Test(worker_list, AC_L4_index_arithmetic)
{
	cr_assert(eq(u32, worker_ordinal(0, 8, 0), 0));
	cr_assert(eq(u32, worker_ordinal(1, 8, 3), 11));
	cr_assert(eq(u32, worker_ordinal(2, 4, 1), 9));
}

Test(worker_list, AC_L28_detection)
{
	cr_assert(worker_env_detect(VARS("A=1", "XRT_TPU_CONFIG=a;0;h:1")));
	cr_assert(worker_env_detect(VARS("XRT_LOCAL_WORKER=w:0")));
	cr_assert(worker_env_detect(VARS("XRT_LOCAL_WORKER=w:0",
		"XRT_TPU_CONFIG=a;0;h:1")));
	cr_assert(worker_env_detect(VARS("XRT_TPU_CONFIG=")));
	cr_assert(worker_env_detect(VARS("XRT_LOCAL_WORKER=")));
	cr_assert(not(worker_env_detect(VARS("A=1", "XRT_TPU_CONFIGS=x"))));
	cr_assert(not(worker_env_detect(NULL)));
}

Test(worker_list, AC_L28_set_but_empty_is_an_error_and_not_absence)
{
	struct worker_env env;
	struct xr_error err;

	cr_assert(read_env(&env, VARS("XRT_TPU_CONFIG="), &err) == XR_E_INVAL);
	cr_assert(strstr(err.text, "XRT_TPU_CONFIG: ''") == err.text);
	cr_assert(read_env(&env, VARS("XRT_LOCAL_WORKER="), &err) ==
		XR_E_INVAL);
	cr_assert(strstr(err.text, "XRT_LOCAL_WORKER: ''") == err.text);
}

Test(worker_list, inside_of_a_rank_there_is_no_list)
{
	cr_assert(not(worker_env_detect(VARS("XRT_LOCAL_WORKER=w:1",
		"XRT_MULTI_PROCESSING_DEVICE=TPU:11"))));
}

Test(worker_list, AC_L29_a_bad_local_worker_is_named)
{
	static const char *const bad[] = { "w", "w:", "w:x", ":1", "w:1:2",
		"w:-1", "w 1:1", "w:99999999999" };
	struct worker_env env;
	struct xr_error err;
	char var[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(var, sizeof(var), "XRT_LOCAL_WORKER=%s", bad[i]);
		cr_expect(read_env(&env, VARS(var), &err) == XR_E_INVAL);
		snprintf(var, sizeof(var), "XRT_LOCAL_WORKER: '%s' is not",
			bad[i]);
		cr_expect(strstr(err.text, var) == err.text, "%s", err.text);
	}
}

Test(worker_list, a_host_outside_of_the_job_is_refused)
{
	struct worker_env env;
	struct xr_error err;

	cr_assert(read_env(&env, VARS("XRT_LOCAL_WORKER=w:1"), &err) ==
		XR_E_RANGE);
	cr_assert(eq(str, err.text,
		"XRT_LOCAL_WORKER: 'w:1' is not one of 1 host\tset XRT_SHARD_WORLD_SIZE to the number of hosts"));
	cr_assert(read_env(&env,
			  VARS("XRT_LOCAL_WORKER=w:1",
				  "XRT_SHARD_WORLD_SIZE=2"),
			  &err) == XR_OK);
	cr_assert(eq(u32, env.host, 1));
	cr_assert(eq(u32, env.hosts, 2));
}
