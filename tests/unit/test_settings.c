/* SPDX-License-Identifier: Apache-2.0 */
/* test_settings.c - options and registers of RPC, each of whose allocations fails
 * once. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/device.h>
#include <xrun/rpc.h>
#include <xrun/transport.h>

#include "worker/net/tcp.h"
#include "worker/rpc/transports.h"

TestSuite(settings, .timeout = 30);

static unsigned fails_at, asked; /* the how manyth fails; 0: none does */

static bool
is_short(void)
{
	return fails_at != 0 && ++asked == fails_at;
}

/* The linker gives the library these for its own (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *
__wrap_malloc(size_t size)
{
	return is_short() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return is_short() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return is_short() ? NULL : __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return is_short() ? NULL : __real_reallocarray(p, n, size);
}

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return is_short() ? NULL : __real_aligned_alloc(align, size);
}

static struct xr_rpc_settings *settings;

static void
check_sum(uint32_t transports, uint32_t extra, uint32_t maps, uint32_t devices)
{
	const struct xr_rpc_opts *o = xr_rpc_settings_opts(settings);

	cr_assert_eq(o->transport_count, transports);
	cr_assert_eq(o->extra_count, extra);
	cr_assert_eq(o->map_count, maps);
	cr_assert_eq(o->device_count, devices);
	for (uint32_t i = 0; i < transports; i++)
		cr_assert_not_null(o->transports[i]);
	for (uint32_t i = 0; i < maps; i++)
		cr_assert_str_eq(o->maps[i].to, "b");
	for (uint32_t i = 0; i < extra; i++)
		cr_assert_str_eq(o->extra[i], "num_fail_sends=3");
}

/* What fails leaves all as it was. True: nothing failed. */
static bool
set_all(void)
{
	const int32_t devices[] = { 1, 2 };
	struct xr_error err = { 0 };
	enum xr_status status[5];
	bool all = true;

	settings = xr_rpc_settings_new(xr_backend_find("faulty"));
	if (settings == NULL)
		return false;
	status[0] = xr_rpc_opts_set(settings, "transports", "tcp,shm", &err);
	status[1] = xr_rpc_opts_set(settings, "num_fail_sends", "3", &err);
	status[2] = xr_rpc_opts_map_device(settings, "b", 0, 1, &err);
	status[3] = xr_rpc_opts_devices(settings, devices, 2, &err);
	status[4] = xr_rpc_opts_set(settings, "init_method", "tcp://a:1", &err);
	for (size_t i = 0; i < 5; i++) {
		cr_assert(status[i] == XR_OK || status[i] == XR_E_NOMEM, "%s",
			err.text);
		all = all && status[i] == XR_OK;
	}
	check_sum(status[0] == XR_OK ? 2 : 0, status[1] == XR_OK,
		status[2] == XR_OK, status[3] == XR_OK ? 2 : 0);
	cr_assert_str_eq(xr_rpc_settings_opts(settings)->init_method,
		status[4] == XR_OK ? "tcp://a:1" : "env://");
	xr_rpc_settings_free(settings);
	return all;
}

Test(settings, each_option_is_set_or_is_as_it_was)
{
	bool all = false;

	for (fails_at = 1; !all && fails_at < 100; fails_at++) {
		asked = 0;
		all = set_all();
	}
	cr_expect(all);
	cr_expect_gt(fails_at, 8, "there are more allocations than that");
}

Test(settings, what_could_not_be_registered_is_not_there)
{
	struct xr_backend b = { .size = sizeof(b), .name = "mine" };
	struct xr_carrier c = tcp_carrier;
	const struct xr_carrier *all[8];
	xr_backend_id id = 0;

	c.name = "mine";
	fails_at = 1;
	cr_expect_eq(xr_backend_register(&b, &id, NULL), XR_E_NOMEM);
	cr_expect_eq(xr_backend_find("mine"), 0);
	asked = 0;
	cr_expect_eq(xr_carrier_register(&c, NULL), XR_E_NOMEM);
	cr_expect_null(transport_find("mine"));
	fails_at = 0;
	cr_expect_eq(xr_backend_register(&b, &id, NULL), XR_OK);
	cr_expect_eq(xr_backend_find("mine"), id);
	cr_expect_eq(xr_carrier_register(&c, NULL), XR_OK);
	cr_expect_eq(transport_all(all, 8), 3);
}

Test(settings, maps_that_could_not_be_looked_at_are_no_maps_that_fit)
{
	const struct xr_device_pair pair = { "a", 0, 0 };
	const struct xr_device_info member = { .size = sizeof(member),
		.name = "a",
		.count = 1,
		.pairs = &pair,
		.pair_count = 1 };

	for (fails_at = 1; fails_at <= 2; fails_at++) {
		asked = 0;
		cr_expect_eq(xr_devmap_check(&member, 1, true, NULL),
			XR_E_NOMEM);
	}
	fails_at = 0;
	cr_expect_eq(xr_devmap_check(&member, 1, true, NULL), XR_OK);
}

/* --- to the letter --------------------------------------------------------------------- */

static struct xr_error words;

#define REFUSED(call, status, says) \
	do { \
		words = (struct xr_error){ 0 }; \
		cr_expect_eq(call, status); \
		cr_expect_str_eq(words.text, says); \
	} while (0)

static enum xr_status
set(const char *key, const char *value)
{
	return xr_rpc_opts_set(settings, key, value, &words);
}

static const struct xr_rpc_opts *
opts(void)
{
	return xr_rpc_settings_opts(settings);
}

Test(settings, a_value_that_is_none_says_what_would_be_one)
{
	static const char *const row[][3] = {
		{ "timeout", "60", "timeout: '60' has no unit, such as 60s" },
		{ "timeout", "1.5",
			"timeout: '1.5' has no unit, such as 1.5s" },
		{ "rpc_timeout", "",
			"timeout: '' is not a time such as 250ms, 30s or 1h30m, and not never" },
		{ "timeout", "5x",
			"timeout: '5x' is not a time such as 250ms, 30s or 1h30m, and not never" },
		{ "init_method", "",
			"init_method: it is empty, and not env:// or an address" },
		{ "threads", "0",
			"threads: '0' is not a number from 1 to 4096" },
		{ "threads", "4097",
			"threads: '4097' is not a number from 1 to 4096" },
		{ "threads", "4294967297",
			"threads: '4294967297' is not a number from 1 to 4096" },
		{ "num_worker_threads", "x",
			"threads: 'x' is not a number from 1 to 4096" },
		{ "", "x", "an option without a name or a value" },
		{ "a=b", "x", "an option without a name or a value" },
	};

	settings = xr_rpc_settings_new(0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		REFUSED(set(row[i][0], row[i][1]), XR_E_INVAL, row[i][2]);
	REFUSED(set(NULL, "x"), XR_E_INVAL,
		"an option without a name or a value");
	REFUSED(set("timeout", NULL), XR_E_INVAL,
		"an option without a name or a value");
	cr_expect_eq(opts()->timeout, XR_RPC_TIMEOUT_DEFAULT);
	cr_expect_eq(opts()->threads, XR_RPC_THREADS_DEFAULT);
	cr_expect_str_eq(opts()->init_method, XR_INIT_METHOD_DEFAULT);
	cr_expect_eq(opts()->size, sizeof(*opts()));
	cr_expect_eq(set("threads", "1"), XR_OK);
	cr_expect_eq(opts()->threads, 1);
	cr_expect_eq(set("threads", "4096"), XR_OK);
	cr_expect_eq(opts()->threads, 4096);
	cr_expect_eq(set("timeout", "never"), XR_OK);
	cr_expect_eq(opts()->timeout, XR_TIMEOUT_NEVER);
	cr_expect_null(xr_rpc_settings_new(77));
	xr_rpc_settings_free(settings);
}

/* The text is kept, whatever becomes of the caller's. */
Test(settings, each_transport_of_a_list_is_one)
{
	char list[] = "shm,tcp,shm";

	settings = xr_rpc_settings_new(0);
	cr_assert_eq(set("transports", list), XR_OK);
	memset(list, '-', sizeof(list) - 1);
	cr_expect_eq(opts()->transport_count, 3);
	cr_expect_str_eq(opts()->transports[0], "shm");
	cr_expect_str_eq(opts()->transports[1], "tcp");
	cr_expect_str_eq(opts()->transports[2], "shm");
	cr_expect_eq(set("transports", "tcp,"), XR_E_INVAL);
	cr_expect_eq(set("transports", ""), XR_E_INVAL);
	cr_expect_eq(set("transports", "tcp,pigeon"), XR_E_INVAL);
	cr_expect_eq(set("transports", "pigeon,tcp"), XR_E_INVAL);
	cr_expect_eq(opts()->transport_count, 3);
	cr_expect_str_eq(opts()->transports[2], "shm");
	xr_rpc_settings_free(settings);
}

/* One that begins like another is another. */
Test(settings, an_option_of_a_backend_is_set_once)
{
	struct xr_backend any = { .size = sizeof(any), .name = "any" };
	xr_backend_id id = 0;

	cr_assert_eq(xr_backend_register(&any, &id, NULL), XR_OK);
	settings = xr_rpc_settings_new(id);
	cr_expect_eq(set("ab", "1"), XR_OK);
	cr_expect_eq(set("a", "2"), XR_OK);
	cr_expect_eq(set("abc", ""), XR_OK);
	cr_expect_eq(set("a", "3"), XR_OK);
	cr_assert_eq(opts()->extra_count, 3);
	cr_expect_str_eq(opts()->extra[0], "ab=1");
	cr_expect_str_eq(opts()->extra[1], "a=3");
	cr_expect_str_eq(opts()->extra[2], "abc=");
	xr_rpc_settings_free(settings);
}

static void
has_map(uint32_t i, const char *to, int32_t from, int32_t dst)
{
	const struct xr_device_pair *m = &opts()->maps[i];

	cr_expect_str_eq(m->to, to, "%u", i);
	cr_expect_eq(m->from, from, "%u", i);
	cr_expect_eq(m->dst, dst, "%u", i);
}

Test(settings, maps_to_one_worker_stand_together)
{
	char to[] = "c";

	settings = xr_rpc_settings_new(0);
	cr_expect_eq(xr_rpc_opts_map_device(settings, "b", 0, 1, NULL), XR_OK);
	cr_expect_eq(xr_rpc_opts_map_device(settings, to, 0, 2, NULL), XR_OK);
	to[0] = 'x';
	cr_expect_eq(xr_rpc_opts_map_device(settings, "b", 1, 3, NULL), XR_OK);
	cr_expect_eq(xr_rpc_opts_map_device(settings, "b", 2, 4, NULL), XR_OK);
	cr_expect_eq(xr_rpc_opts_map_device(settings, "b", 1, 3, NULL), XR_OK);
	cr_expect_eq(xr_rpc_opts_map_device(settings, "c", 1, 5, NULL), XR_OK);
	REFUSED(xr_rpc_opts_map_device(settings, "c", 0, 9, &words), XR_E_INVAL,
		"device map to 'c': device 0 goes to device 2 there already, and so not to 9");
	REFUSED(xr_rpc_opts_map_device(settings, "b", -2, 9, &words),
		XR_E_INVAL,
		"device map to 'b': -2 is no device: it is 0 or more, or -1 for the CPU");
	cr_assert_eq(opts()->map_count, 5);
	has_map(0, "b", 0, 1);
	has_map(1, "b", 1, 3);
	has_map(2, "b", 2, 4);
	has_map(3, "c", 0, 2);
	has_map(4, "c", 1, 5);
	xr_rpc_settings_free(settings);
}

Test(settings, devices_replace_those_before)
{
	static const int32_t three[] = { 3, 1, 2 }, bad[] = { 0, 1, -1 };

	settings = xr_rpc_settings_new(0);
	cr_expect_eq(xr_rpc_opts_devices(settings, three, 3, NULL), XR_OK);
	REFUSED(xr_rpc_opts_devices(settings, bad, 3, &words), XR_E_INVAL,
		"devices: -1 is no accelerator: those are 0 and more; the CPU needs no list");
	cr_assert_eq(opts()->device_count, 3);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(opts()->devices[i], three[i]);
	cr_expect_eq(xr_rpc_opts_devices(settings, bad, 2, NULL), XR_OK);
	cr_expect_eq(opts()->device_count, 2);
	cr_expect_eq(opts()->devices[1], 1);
	cr_expect_eq(xr_rpc_opts_devices(settings, NULL, 0, NULL), XR_OK);
	cr_expect_eq(opts()->device_count, 0);
	cr_expect_null(opts()->devices);
	xr_rpc_settings_free(settings);
}

/* Whatever allocation fails, it is that; and the rest is as it was. */
Test(settings, without_memory_an_option_says_so)
{
	const int32_t device = 1;
	unsigned failed = 0;

	settings = xr_rpc_settings_new(xr_backend_find("faulty"));
	for (unsigned at = 1; at <= 3; at++) {
		enum xr_status status[5];

		fails_at = at;
		asked = 0;
		status[0] = set("init_method", "tcp://a:1");
		asked = 0;
		status[1] = set("transports", "tcp,shm");
		asked = 0;
		status[2] = set("num_fail_sends", "3");
		asked = 0;
		status[3] =
			xr_rpc_opts_map_device(settings, "b", at, 1, &words);
		asked = 0;
		status[4] = xr_rpc_opts_devices(settings, &device, 1, &words);

		fails_at = 0;
		for (int i = 0; i < 5; i++) {
			cr_expect(status[i] == XR_OK ||
				status[i] == XR_E_NOMEM);
			failed += status[i] == XR_E_NOMEM;
		}
	}
	cr_expect_eq(failed, 10, "%u", failed);
	fails_at = 1;
	asked = 0;
	REFUSED(set("init_method", "tcp://a:1"), XR_E_NOMEM, "out of memory");
	xr_rpc_settings_free(settings);
}
