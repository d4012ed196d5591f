/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_options.c - what an option of an agent may be, to the letter. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <xrun/error.h>

#include "worker/rpc/backend.h"
#include "worker/rpc/options.h"

TestSuite(rpc_options, .timeout = 20);

static struct xr_error err;

#define SAYS(call, words) \
	do { \
		err = (struct xr_error){ 0 }; \
		cr_expect_eq(call, XR_E_INVAL); \
		cr_expect_str_eq(err.text, words); \
	} while (0)

#define NAME "a worker's name is 1 to 127 of A-Z a-z 0-9 - _ :, and not '%s'%s"

Test(rpc_options, a_workers_name_has_1_to_127_bytes_of_a_set)
{
	char name[200], words[400], first[61];

	for (size_t len = 1; len <= 130; len++) {
		memset(name, 'n', sizeof(name));
		name[len] = '\0';
		snprintf(first, sizeof(first), "%.60s", name);
		snprintf(words, sizeof(words), NAME, first, "...");
		if (len <= 127)
			cr_expect_eq(worker_name_check(name, &err), XR_OK);
		else
			SAYS(worker_name_check(name, &err), words);
		/* The last byte counts. */
		name[len - 1] = '.';
		snprintf(first, sizeof(first), "%.60s", name);
		snprintf(words, sizeof(words), NAME, first,
			len > 60 ? "..." : "");
		SAYS(worker_name_check(name, &err), words);
	}
	snprintf(words, sizeof(words), NAME, "", "");
	SAYS(worker_name_check("", &err), words);
	SAYS(worker_name_check(NULL, &err), words);
	for (int c = 1; c < 128; c++) {
		name[0] = (char)c;
		name[1] = '\0';
		cr_expect_eq(worker_name_check(name, NULL) == XR_OK,
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				(c >= 'A' && c <= 'Z') || c == '-' ||
				c == '_' || c == ':',
			"%d", c);
	}
}

Test(rpc_options, threads_are_1_to_4096)
{
	cr_expect_eq(options_threads_check(1, &err), XR_OK);
	cr_expect_eq(options_threads_check(4096, &err), XR_OK);
	SAYS(options_threads_check(0, &err), "threads: 0 is not 1 to 4096");
	SAYS(options_threads_check(-7, &err), "threads: -7 is not 1 to 4096");
	SAYS(options_threads_check(4097, &err),
		"threads: 4097 is not 1 to 4096");
	SAYS(options_threads_check(UINT32_MAX, &err),
		"threads: -1 is not 1 to 4096");
	SAYS(options_threads_check(UINT32_MAX - 1, &err),
		"threads: 4294967294 is not 1 to 4096");
}

Test(rpc_options, a_transport_is_one_that_was_registered)
{
	cr_expect_eq(options_transport_check("tcp", &err), XR_OK);
	err = (struct xr_error){ 0 };
	cr_expect_eq(options_transport_check("pigeon", &err), XR_E_INVAL);
	cr_expect_eq(
		strncmp(err.text,
			"transports: nobody registered 'pigeon'; there is ",
			49),
		0, "%s", err.text);
	cr_expect_not_null(strstr(err.text + 49, "tcp"));
	err = (struct xr_error){ 0 };
	cr_expect_eq(options_transport_check(NULL, &err), XR_E_INVAL);
	cr_expect_eq(strncmp(err.text,
			     "transports: nobody registered ''; there is ", 43),
		0, "%s", err.text);
}

#define IS_NONE " is no device: it is 0 or more, or -1 for the CPU"

Test(rpc_options, a_map_leads_from_a_device_to_one)
{
	static const struct {
		int32_t from, dst;
		const char *words; /* NULL: it is right */
	} row[] = {
		{ 0, 0, NULL },
		{ -1, 7, NULL },
		{ 7, -1, NULL },
		{ INT32_MAX, INT32_MAX, NULL },
		{ -2, 0, "device map to 'b': -2" IS_NONE },
		{ 0, -3, "device map to 'b': -3" IS_NONE },
		{ -2, -3, "device map to 'b': -2" IS_NONE },
		{ -1, -2, "device map to 'b': -2" IS_NONE },
	};
	struct xr_device_pair pair = { .to = "b" };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		pair.from = row[i].from;
		pair.dst = row[i].dst;
		if (row[i].words == NULL)
			cr_expect_eq(options_pair_check(&pair, &err), XR_OK);
		else
			SAYS(options_pair_check(&pair, &err), row[i].words);
	}
	pair = (struct xr_device_pair){ "a b", 0, 0 };
	SAYS(options_pair_check(&pair, &err),
		"device map: a worker's name is 1 to 127 of A-Z a-z 0-9 - _ :, and not 'a b'");
}

Test(rpc_options, maps_clash_that_lead_from_one_device_to_two)
{
	const struct xr_device_pair a = { "b", 1, 2 }, other = { "c", 1, 3 },
				    from = { "b", 2, 3 }, dst = { "b", 1, 3 };

	cr_expect_not(options_clash(&a, &a));
	cr_expect_not(options_clash(&a, &other));
	cr_expect_not(options_clash(&a, &from));
	cr_expect(options_clash(&a, &dst));
	SAYS(options_clash_error(&a, &dst, &err),
		"device map to 'b': device 1 goes to device 2 there already, and so not to 3");
}

Test(rpc_options, devices_are_accelerators)
{
	cr_expect_eq(options_device_check(0, &err), XR_OK);
	cr_expect_eq(options_device_check(INT32_MAX, &err), XR_OK);
	SAYS(options_device_check(-1, &err),
		"devices: -1 is no accelerator: those are 0 and more; the CPU needs no list");
	SAYS(options_device_check(-2, &err),
		"devices: -2 is no accelerator: those are 0 and more");
}

/* --- all of them ------------------------------------------------------------------------ */

Test(rpc_options, options_without_a_backend_are_of_the_default_one)
{
	const int32_t devices[] = { 0, 1, 2 };
	int32_t bad[3];
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(0, &o, NULL);
	o.backend = 0;
	o.devices = devices;
	o.device_count = 3;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(all.backend, xr_backend_find("auto"));
	cr_expect_eq(all.devices, devices);
	cr_expect_eq(all.device_count, 3);
	/* Each of the list is looked at. */
	o.devices = bad;
	for (int i = 0; i < 3; i++) {
		memcpy(bad, devices, sizeof(bad));
		bad[i] = -1;
		cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL, "%d",
			i);
	}
}

/* Only the option that is for them says how many threads there are. */
Test(rpc_options, a_number_of_another_option_is_no_number_of_threads)
{
	const char *extra[] = { "num_fail_sends=7", "messages_to_fail=REPLY" };
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(xr_backend_find("faulty"), &o, NULL);
	o.extra = extra;
	o.extra_count = 2;
	o.threads = 5;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(all.threads, 5);
}
