/* SPDX-License-Identifier: Apache-2.0 */
/* test_backend.c - backends, transports, and options of xr_rpc_init(). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <xrun/rpc.h>
#include <xrun/transport.h>

#include "worker/net/tcp.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/options.h"
#include "worker/rpc/transports.h"

TestSuite(backend, .timeout = 30);

static struct xr_error err;
static struct xr_rpc_settings *settings;

#define SAYS(text_) \
	cr_expect_not_null(strstr(err.text, text_), "'%s' has no '%s'", \
		err.text, text_)

static void
begin(xr_backend_id backend)
{
	settings = xr_rpc_settings_new(backend);
	cr_assert_not_null(settings);
}

static void
end(void)
{
	xr_rpc_settings_free(settings);
}

static enum xr_status
set(const char *key, const char *value)
{
	memset(&err, 0, sizeof(err));
	return xr_rpc_opts_set(settings, key, value, &err);
}

static const struct xr_rpc_opts *
opts(void)
{
	return xr_rpc_settings_opts(settings);
}

/* --- backends -------------------------------------------------------------- */

Test(backend, AC_B1_a_name_is_registered_once)
{
	struct xr_backend one = { .size = sizeof(one), .name = "mine" };
	xr_backend_id id = 0;

	cr_assert_eq(xr_backend_register(&one, &id, &err), XR_OK);
	cr_expect_eq(xr_backend_find("mine"), id);
	cr_expect_eq(xr_backend_register(&one, &id, &err), XR_E_EXISTS);
	SAYS("mine");
	one.name = "auto";
	cr_expect_eq(xr_backend_register(&one, NULL, &err), XR_E_EXISTS);
	SAYS("auto");
	one.name = "TENSORPIPE";
	cr_expect_eq(xr_backend_register(&one, NULL, &err), XR_E_EXISTS);
	SAYS("TENSORPIPE");
}

Test(backend, AC_B2_a_number_stays_good_whatever_is_registered_later)
{
	char name[] = "first";
	struct xr_backend b = { .size = sizeof(b), .name = name };
	struct xr_rpc_opts o = { .size = sizeof(o) };
	xr_backend_id id = 0, other = 0;

	cr_assert_eq(xr_backend_register(&b, &id, &err), XR_OK);
	memcpy(name, "other", sizeof(name));
	cr_assert_eq(xr_backend_register(&b, &other, &err), XR_OK);
	cr_expect_neq(id, other);
	cr_expect_str_eq(xr_backend_name(id), "first");
	cr_expect_eq(xr_backend_find("first"), id);
	cr_expect_eq(xr_rpc_opts_init(id, &o, &err), XR_OK);
	cr_expect_eq(o.backend, id);
	/* Nor does the one that nobody chose change. */
	cr_expect_eq(xr_rpc_opts_init(0, &o, &err), XR_OK);
	cr_expect_str_eq(xr_backend_name(o.backend), "auto");
}

Test(backend, those_of_the_library_have_their_names_and_those_of_others)
{
	cr_expect_neq(xr_backend_find("auto"), 0);
	cr_expect_neq(xr_backend_find("process_group"), 0);
	cr_expect_neq(xr_backend_find("faulty"), 0);
	cr_expect_eq(xr_backend_find("TENSORPIPE"), xr_backend_find("auto"));
	cr_expect_eq(xr_backend_find("PROCESS_GROUP"),
		xr_backend_find("process_group"));
	cr_expect_eq(xr_backend_find("FAULTY_TENSORPIPE"),
		xr_backend_find("faulty"));
	cr_expect_eq(xr_backend_find("Auto"), 0);
	cr_expect_eq(xr_backend_find(""), 0);
	cr_expect_eq(xr_backend_find(NULL), 0);
	cr_expect_null(xr_backend_name(0));
	cr_expect_null(xr_backend_name(99));
}

Test(backend, a_backend_has_a_size_and_a_name)
{
	static const char *const bad[] = { "", " ", "a-b", "a b",
		"a123456789012345678901234567890123456789012345678901234567890123",
		"a12345678901234567890123456789012345678901234567890123456789012-",
		NULL };
	struct xr_backend b = { .size = sizeof(b) };
	char words[160];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		b.name = bad[i];
		cr_expect_eq(xr_backend_register(&b, NULL, &err), XR_E_INVAL,
			"%s", bad[i] == NULL ? "NULL" : bad[i]);
		snprintf(words, sizeof(words),
			"a backend's name is 1 to 63 of A-Z a-z 0-9 _, and not '%s'",
			bad[i] == NULL ? "" : bad[i]);
		cr_expect_str_eq(err.text, words);
	}
	b.name = "good";
	b.size = sizeof(b) - 1;
	cr_expect_eq(xr_backend_register(&b, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "a backend without its size");
	err = (struct xr_error){ 0 };
	cr_expect_eq(xr_backend_register(NULL, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "a backend without its size");
	b.size = sizeof(b) + 1;
	b.name = bad[4] + 1;
	cr_expect_eq(xr_backend_register(&b, NULL, &err), XR_OK);
	b.name = "x";
	cr_expect_eq(xr_backend_register(&b, NULL, &err), XR_OK);
}

Test(backend, there_is_an_end_to_backends)
{
	char name[16];
	struct xr_backend b = { .size = sizeof(b), .name = name };
	enum xr_status status = XR_OK;
	xr_backend_id id = 0;
	int n = 0;

	while (status == XR_OK && n < 1000) {
		snprintf(name, sizeof(name), "b%d", n++);
		status = xr_backend_register(&b, &id, &err);
	}
	cr_expect_eq(status, XR_E_RANGE);
	cr_expect_eq(id, BACKENDS_MAX);
	cr_expect_str_eq(xr_backend_name(4), "b0");
}

/* --- options --------------------------------------------------------------- */

Test(backend, AC_B3_an_option_that_nobody_has_is_named)
{
	begin(0);
	cr_expect_eq(set("nonsense", "1"), XR_E_INVAL);
	SAYS("'nonsense'");
	cr_expect_eq(set("treads", "1"), XR_E_INVAL);
	SAYS("'treads' (did you mean threads?)");
	cr_expect_eq(set("device_maps", "1"), XR_E_INVAL, "never in silence");
	SAYS("'device_maps'");
	cr_expect_eq(set("num_send_recv_threads", "2"), XR_E_INVAL,
		"that is another backend's");
	cr_expect_eq(opts()->extra_count, 0);
	cr_expect_eq(set("", "1"), XR_E_INVAL);
	cr_expect_eq(set("a=b", "1"), XR_E_INVAL);
	cr_expect_eq(set(NULL, "1"), XR_E_INVAL);
	cr_expect_eq(set("timeout", NULL), XR_E_INVAL);
	end();
}

Test(backend, AC_B4_defaults)
{
	struct xr_rpc_opts o = { .size = sizeof(o) };

	cr_assert_eq(xr_rpc_opts_init(0, &o, &err), XR_OK);
	cr_expect_eq(o.size, sizeof(o));
	cr_expect_eq(o.backend, xr_backend_find("auto"));
	cr_expect_eq(o.timeout, XR_SECONDS(60));
	cr_expect_str_eq(o.init_method, "env://");
	cr_expect_eq(o.threads, 16);
	cr_expect_eq(o.transport_count + o.map_count + o.device_count +
			o.extra_count,
		0);
	cr_expect_eq(xr_rpc_opts_init(99, &o, &err), XR_E_NOTFOUND);
	SAYS("99");
	o.size = 0;
	cr_expect_eq(xr_rpc_opts_init(0, &o, &err), XR_E_INVAL);
	cr_expect_null(xr_rpc_settings_new(99));
	begin(0);
	cr_expect_eq(opts()->timeout, XR_SECONDS(60));
	cr_expect_str_eq(opts()->init_method, "env://");
	cr_expect_eq(opts()->threads, 16);
	end();
}

Test(backend, AC_B4_a_group_has_four_threads_or_those_of_its_own_option)
{
	static const char *const own[] = { "num_send_recv_threads=3",
		"num_send_recv_threads=6" };
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	cr_assert_eq(xr_rpc_opts_init(xr_backend_find("process_group"), &o,
			     &err),
		XR_OK);
	cr_expect_eq(o.threads, 4);
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(all.threads, 4);
	o.threads = 9;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(all.threads, 9);
	o.extra = own;
	o.extra_count = 2;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(all.threads, 6);
	cr_expect(backend_is_group(&all));
	o.backend = xr_backend_find("auto");
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("num_send_recv_threads");
}

Test(backend, a_group_has_no_device_maps_and_no_accelerators_B28)
{
	static const struct xr_device_pair map = { "bob", 0, 1 };
	static const int32_t devices[] = { 5 };
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(xr_backend_find("process_group"), &o, NULL);
	o.maps = &map;
	o.map_count = 1;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("a device map to bob");
	SAYS("process_group has no device maps");
	o.map_count = 0;
	o.devices = devices;
	o.device_count = 1;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("devices: 5");
	SAYS("process_group has no accelerators");
	o.device_count = 0;
	cr_expect_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	o.backend = xr_backend_find("auto");
	o.map_count = 1;
	o.device_count = 1;
	cr_expect_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
}

Test(backend, AC_B5_threads_and_transports_are_checked)
{
	static const char *const bad[] = { "0", "-1", "", "x", "1.5", "4097",
		"99999999999" };

	begin(0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(set("threads", bad[i]), XR_E_INVAL, "%s", bad[i]);
		SAYS("threads");
	}
	cr_expect_eq(opts()->threads, 16);
	cr_expect_eq(set("transports", "tcp,pigeon"), XR_E_INVAL);
	SAYS("'pigeon'");
	SAYS("tcp");
	cr_expect_eq(opts()->transport_count, 0);
	cr_expect_eq(set("transports", ""), XR_E_INVAL);
	end();
}

Test(backend, AC_B5_the_same_of_a_struct)
{
	static const char *const transports[] = { "tcp", "pigeon" };
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(0, &o, NULL);
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	o.threads = 0;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("threads: 0");
	o.threads = (uint32_t)-1;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("threads: -1");
	o.threads = 1;
	o.transports = transports;
	o.transport_count = 2;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("'pigeon'");
	o.transport_count = 1;
	cr_expect_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
}

Test(backend, AC_B6_names_of_workers)
{
	char name[XR_WORKER_NAME_MAX + 2];
	static const char *const bad[] = { "", " ", "abc*", "a b", "a.b",
		"\xc3\xa4", NULL };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(worker_name_check(bad[i], &err), XR_E_INVAL, "%s",
			bad[i] == NULL ? "NULL" : bad[i]);
	memset(name, 'a', sizeof(name));
	name[128] = '\0';
	cr_expect_eq(worker_name_check(name, &err), XR_E_INVAL);
	name[127] = '\0';
	cr_expect_eq(worker_name_check(name, &err), XR_OK);
	cr_expect_eq(worker_name_check("a-b:c_d", &err), XR_OK);
}

Test(backend, values_are_read_as_they_are_typed)
{
	begin(0);
	cr_expect_eq(set("timeout", "1.5s"), XR_OK, "%s", err.text);
	cr_expect_eq(opts()->timeout, XR_SECONDS(1.5));
	cr_expect_eq(set("rpc_timeout", "2m"), XR_OK);
	cr_expect_eq(opts()->timeout, XR_SECONDS(120));
	cr_expect_eq(set("timeout", "never"), XR_OK);
	cr_expect_eq(opts()->timeout, XR_TIMEOUT_NEVER);
	cr_expect_eq(set("timeout", "0"), XR_OK);
	cr_expect_eq(opts()->timeout, 0); /* the default, in the end */
	cr_expect_eq(set("timeout", "60"), XR_E_INVAL);
	SAYS("has no unit, such as 60s");
	cr_expect_eq(set("timeout", "-1s"), XR_E_INVAL);
	cr_expect_eq(set("timeout", "soon"), XR_E_INVAL);
	SAYS("'soon'");
	cr_expect_eq(set("timeout", ""), XR_E_INVAL);
	cr_expect_eq(set("num_worker_threads", "7"), XR_OK);
	cr_expect_eq(opts()->threads, 7);
	cr_expect_eq(set("init_method", "tcp://10.0.0.1:80"), XR_OK);
	cr_expect_str_eq(opts()->init_method, "tcp://10.0.0.1:80");
	cr_expect_eq(set("init_method", ""), XR_E_INVAL);
	cr_expect_eq(set("transports", "tcp,shm"), XR_OK, "%s", err.text);
	cr_expect_eq(opts()->transport_count, 2);
	cr_expect_str_eq(opts()->transports[0], "tcp");
	cr_expect_str_eq(opts()->transports[1], "shm");
	cr_expect_eq(set("transports", "tcp"), XR_OK);
	cr_expect_eq(opts()->transport_count, 1);
	end();
	xr_rpc_settings_free(NULL);
}

Test(backend, a_backends_own_options_are_its_own)
{
	begin(xr_backend_find("process_group"));
	cr_expect_eq(set("num_send_recv_threads", "4"), XR_OK, "%s", err.text);
	cr_expect_eq(set("num_send_recv_threads", "8"), XR_OK);
	cr_expect_eq(opts()->extra_count, 1);
	cr_expect_str_eq(opts()->extra[0], "num_send_recv_threads=8");
	cr_expect_eq(set("num_send_recv_threads", "0"), XR_E_INVAL);
	SAYS("num_send_recv_threads: '0'");
	cr_expect_str_eq(opts()->extra[0], "num_send_recv_threads=8");
	cr_expect_eq(set("num_send_rcv_threads", "8"), XR_E_INVAL);
	SAYS("(did you mean num_send_recv_threads?)");
	cr_expect_eq(opts()->extra_count, 1);
	end();
	begin(xr_backend_find("faulty"));
	cr_expect_eq(set("num_fail_sends", "3"), XR_OK);
	cr_expect_eq(set("num_fail_sends", "many"), XR_E_INVAL);
	cr_expect_eq(set("messages_to_fail", "REQUEST,REPLY"), XR_OK, "%s",
		err.text);
	cr_expect_eq(set("messages_to_fail", "REQUEST,,REPLY"), XR_E_INVAL);
	cr_expect_eq(set("messages_to_fail", "a pigeon"), XR_E_INVAL);
	cr_expect_eq(set("messages_to_delay", "REQUEST:1.5s,REPLY:20ms"), XR_OK,
		"%s", err.text);
	cr_expect_eq(set("messages_to_delay", "REQUEST:0"), XR_OK);
	cr_expect_eq(set("messages_to_delay", "REQUEST:"), XR_E_INVAL);
	cr_expect_eq(set("messages_to_delay", "NONE:1"), XR_E_INVAL);
	/* 31 bytes are a time, and 32 are none. */
	cr_expect_eq(set("messages_to_delay",
			     "REPLY:000000000000000000000000000001s"),
		XR_OK);
	cr_expect_eq(set("messages_to_delay",
			     "REPLY:0000000000000000000000000000001s"),
		XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"messages_to_delay: 'REPLY:0000000000000000000000000000001s' is not kinds and times, as REQUEST:1.5s,REPLY:20ms");
	cr_expect_eq(set("messages_to_delay", "REQUEST:-1s"), XR_E_INVAL);
	cr_expect_eq(set("messages_to_delay", "REQUEST"), XR_E_INVAL);
	end();
}

static enum xr_status
check_mine(const struct xr_rpc_opts *o, void *ctx, struct xr_error *e)
{
	unsigned *asked = ctx;

	++*asked;
	for (uint32_t i = 0; i < o->extra_count; i++)
		if (strncmp(o->extra[i], "colour=", 7) != 0)
			return xr_error_set(e, XR_E_INVAL, "no such colour");
	return XR_OK;
}

static const char *const *
carriers_mine(const struct xr_rpc_opts *o, void *ctx)
{
	static const char *const names[] = { "tcp", NULL };

	(void)o;
	(void)ctx;
	return names;
}

Test(backend, a_registered_backend_checks_and_chooses_for_itself)
{
	unsigned asked = 0;
	struct xr_backend b = { .size = sizeof(b),
		.name = "mine",
		.check = check_mine,
		.carriers = carriers_mine,
		.ctx = &asked };
	const struct xr_carrier *carriers[8];
	struct xr_rpc_opts all;
	xr_backend_id id = 0;
	uint32_t n = 0;

	cr_assert_eq(xr_backend_register(&b, &id, &err), XR_OK);
	begin(id);
	cr_expect_eq(set("colour", "red"), XR_OK, "%s", err.text);
	cr_expect_eq(set("shape", "round"), XR_E_INVAL);
	SAYS("no such colour");
	cr_expect_eq(set("transports", "shm"), XR_OK);
	cr_expect_eq(backend_check(opts(), &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(asked, 3);
	cr_assert_eq(backend_carriers(&all, carriers, 8, &n, &err), XR_OK);
	cr_assert_eq(n, 1);
	cr_expect_str_eq(carriers[0]->name, "tcp");
	end();
}

Test(backend, an_older_programs_options_are_made_whole)
{
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(0, &o, NULL);
	o.size = offsetof(struct xr_rpc_opts, init_method);
	o.timeout = XR_SECONDS(3);
	o.init_method = NULL; /* which it does not know of */
	o.threads = 0;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	cr_expect_eq(all.timeout, XR_SECONDS(3));
	cr_expect_eq(all.threads, 16);
	cr_expect_str_eq(all.init_method, "env://");
	cr_expect_eq(all.size, sizeof(all));
	o.timeout = 0;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK);
	cr_expect_eq(all.timeout, XR_SECONDS(60));
	o.timeout = XR_TIMEOUT_NEVER;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK);
	cr_expect_eq(all.timeout, XR_TIMEOUT_NEVER);
	o.timeout = XR_TIMEOUT_DEFAULT;
	cr_assert_eq(backend_check(&o, &all, &err), XR_OK);
	cr_expect_eq(all.timeout, XR_SECONDS(60));
	o.timeout = -2;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("-2 ns");
	o.timeout = 0;
	o.size = offsetof(struct xr_rpc_opts, timeout);
	cr_expect_eq(backend_check(&o, &all, &err), XR_OK);
	o.size--;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "options without their size");
	err = (struct xr_error){ 0 };
	cr_expect_eq(xr_rpc_opts_init(0, &o, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "options without their size");
	o.size = sizeof(o);
	cr_expect_eq(xr_rpc_opts_init(77, &o, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "no backend has the number 77");
	o.backend = 77;
	err = (struct xr_error){ 0 };
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "no backend has the number 77");
}

Test(backend, lists_of_a_struct_are_checked)
{
	const char *const extra[] = { "no_value" }, *const no_option = NULL;
	const int32_t devices[] = { 0, -1 };
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(0, &o, NULL);
	o.extra_count = 1;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "options with a list that is NULL");
	o.extra = &no_option;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "an option that is NULL");
	o.extra_count = 0;
	for (uint32_t i = 0; i < 3; i++) {
		err = (struct xr_error){ 0 };
		o.transport_count = i == 0;
		o.map_count = i == 1;
		o.device_count = i == 2;
		cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
		cr_expect_str_eq(err.text, "options with a list that is NULL");
	}
	o.device_count = 0;
	o.extra_count = 1;
	o.extra = extra;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("'no_value' has no value");
	o.extra_count = 0;
	o.devices = devices;
	o.device_count = 2;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("devices: -1");
	o.device_count = 1;
	o.init_method = "";
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("init_method");
}

/* --- devices --------------------------------------------------------------- */

static enum xr_status
map(const char *to, int32_t from, int32_t dst)
{
	memset(&err, 0, sizeof(err));
	return xr_rpc_opts_map_device(settings, to, from, dst, &err);
}

Test(backend, AC_B9_a_device_goes_to_one_device_of_each_worker)
{
	begin(0);
	cr_expect_eq(map("b", 0, 1), XR_OK);
	cr_expect_eq(map("c", 0, 2), XR_OK);
	cr_expect_eq(map("b", 0, 1), XR_OK, "said again");
	cr_expect_eq(opts()->map_count, 2);
	cr_expect_eq(map("b", 0, 2), XR_E_INVAL);
	SAYS("map to 'b': device 0 goes to device 1");
	cr_expect_eq(map("b", 1, 1), XR_OK, "that is for xr_devmap_check()");
	cr_expect_eq(map("b", XR_DEVICE_MAP_CPU, 3), XR_OK);
	cr_expect_eq(opts()->map_count, 4);
	/* By destination, as device.h wants them. */
	cr_expect_str_eq(opts()->maps[2].to, "b");
	cr_expect_str_eq(opts()->maps[3].to, "c");
	end();
}

Test(backend, AC_B9_indices_and_names_of_a_map_are_checked)
{
	begin(0);
	cr_expect_eq(map("b", -2, 0), XR_E_INVAL);
	SAYS("map to 'b': -2 is no device");
	cr_expect_eq(map("b", 0, -7), XR_E_INVAL);
	SAYS("-7");
	cr_expect_eq(map("not a name", 0, 0), XR_E_INVAL);
	SAYS("'not a name'");
	cr_expect_eq(map(NULL, 0, 0), XR_E_INVAL);
	cr_expect_eq(opts()->map_count, 0);
	end();
}

Test(backend, AC_B9_the_same_of_a_struct)
{
	struct xr_device_pair maps[] = { { "b", 0, 1 }, { "c", 0, 2 },
		{ "b", 0, 1 }, { "b", 0, 3 } };
	struct xr_rpc_opts o = { .size = sizeof(o) }, all;

	xr_rpc_opts_init(0, &o, NULL);
	o.maps = maps;
	o.map_count = 3;
	cr_expect_eq(backend_check(&o, &all, &err), XR_OK, "%s", err.text);
	o.map_count = 4;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("map to 'b'");
	maps[3].from = -4;
	cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL);
	SAYS("-4 is no device");
	/* Each of them, and each two. */
	for (size_t i = 0; i < 3; i++) {
		maps[i].from = -4;
		o.map_count = 3;
		cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL,
			"map %zu", i);
		maps[i].from = 0;
	}
	maps[2].to = "d";
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < i; k++) {
			const struct xr_device_pair was = maps[i];

			maps[i].to = maps[k].to;
			maps[i].dst = 9;
			cr_expect_eq(backend_check(&o, &all, &err), XR_E_INVAL,
				"%zu and %zu", k, i);
			maps[i] = was;
			cr_expect_eq(backend_check(&o, &all, &err), XR_OK);
		}
}

Test(backend, AC_B9_the_cpu_is_in_no_list_of_devices)
{
	const int32_t good[] = { 2, 0 }, bad[] = { 0, XR_DEVICE_MAP_CPU };

	begin(0);
	cr_expect_eq(xr_rpc_opts_devices(settings, good, 2, &err), XR_OK);
	cr_expect_eq(xr_rpc_opts_devices(settings, bad, 2, &err), XR_E_INVAL);
	SAYS("-1 is no accelerator");
	cr_expect_eq(opts()->device_count, 2);
	cr_expect_eq(opts()->devices[0], 2);
	cr_expect_eq(xr_rpc_opts_devices(settings, NULL, 0, &err), XR_OK);
	cr_expect_eq(opts()->device_count, 0);
	end();
}

/* --- transports ------------------------------------------------------------ */

Test(backend, transports_come_by_priority_or_as_they_were_asked_for)
{
	struct xr_carrier mine = tcp_carrier;
	const struct xr_carrier *all[8];
	struct xr_rpc_opts o;
	uint32_t n = 0;

	cr_assert_eq(transport_all(all, 8), 2);
	cr_expect_str_eq(all[0]->name, "shm");
	cr_expect_str_eq(all[1]->name, "tcp");
	mine.name = "ucx";
	mine.priority = 100;
	cr_assert_eq(xr_carrier_register(&mine, &err), XR_OK, "%s", err.text);
	mine.name = "changed afterwards";
	cr_assert_eq(transport_all(all, 8), 3);
	cr_expect_str_eq(all[1]->name, "ucx");
	cr_expect_eq(transport_find("ucx"), all[1]);
	cr_expect_eq(transport_all(all, 1), 3, "room is not what there is");
	begin(0);
	cr_assert_eq(backend_check(opts(), &o, &err), XR_OK);
	cr_assert_eq(backend_carriers(&o, all, 8, &n, &err), XR_OK);
	cr_expect_eq(n, 3);
	cr_expect_eq(backend_carriers(&o, all, 2, &n, &err), XR_E_RANGE);
	cr_assert_eq(set("transports", "tcp,ucx"), XR_OK, "%s", err.text);
	cr_assert_eq(backend_check(opts(), &o, &err), XR_OK);
	cr_assert_eq(backend_carriers(&o, all, 8, &n, &err), XR_OK);
	cr_assert_eq(n, 2);
	cr_expect_eq(all[0], &tcp_carrier);
	cr_expect_str_eq(all[1]->name, "ucx");
	end();
}

Test(backend, a_transport_that_does_not_fit_is_refused)
{
	struct xr_carrier mine = tcp_carrier;

	cr_expect_eq(xr_carrier_register(&mine, &err), XR_E_EXISTS);
	SAYS("tcp");
	mine.name = "mine";
	mine.api++;
	cr_expect_eq(xr_carrier_register(&mine, &err), XR_E_ABI);
	mine.api = XR_CARRIER_API;
	mine.size--;
	cr_expect_eq(xr_carrier_register(&mine, &err), XR_E_ABI);
	mine.size++;
	mine.caps = 0; /* no thread, and no progress() */
	cr_expect_eq(xr_carrier_register(&mine, &err), XR_E_ABI);
	SAYS("mine");
	mine = tcp_carrier;
	mine.name = "Mine";
	cr_expect_eq(xr_carrier_register(&mine, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"a transport's name is 1 to 63 of a-z 0-9 _, and not 'Mine'");
	mine.name = NULL;
	cr_expect_eq(xr_carrier_register(&mine, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"a transport's name is 1 to 63 of a-z 0-9 _, and not ''");
	cr_expect_eq(xr_carrier_register(NULL, &err), XR_E_ABI);
	cr_expect_null(transport_find("mine"));
}
