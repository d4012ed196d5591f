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
