/* SPDX-License-Identifier: Apache-2.0 */
/* test_guild_memory.c - the functions of xrun/group.h and xrun/world.h with arguments that
 * are refused, and with each allocation of them failing once. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <xrun/func.h>
#include <xrun/group.h>
#include <xrun/rpc.h>
#include <xrun/world.h>

#include "base/status.h"
#include "tests/unit/at_end.h"
#include "tests/unit/folder.h"
#include "tests/unit/short_memory.h"

static struct xr_world *world;
static struct xr_group *group;
static struct xr_error err;
static char method[PATH_MAX + 16];
static struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
static struct xr_world_opts world_opts = XR_WORLD_OPTS;

static enum xr_status
join(void)
{
	err = (struct xr_error){ 0 };
	world = NULL;
	return xr_world_new(&world_opts, &world, &err);
}

/* A world of one worker, this process, and a group of it. */
static void
begin(void)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "all" };

	folder_make();
	unsetenv("XRUN_STORE");
	snprintf(method, sizeof(method), "file://%s/store", folder);
	cr_assert_eq(xr_rpc_opts_init(0, &rpc, NULL), XR_OK);
	rpc.init_method = method;
	world_opts.name = "self";
	world_opts.rank = 0;
	world_opts.world_size = 1;
	world_opts.rpc = &rpc;
	cr_assert_eq(join(), XR_OK, "%s", err.text);
	cr_assert_eq(xr_group_new(world, &opts, &group, &err), XR_OK, "%s",
		err.text);
}

static void
end(void)
{
	xr_group_free(group);
	AT_END(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	folder_remove();
}

TestSuite(guild_memory, .init = begin, .fini = end, .timeout = 60);

static void
expect(enum xr_status got, enum xr_status want, const char *words)
{
	cr_expect_eq(got, want, "%s: %s: %s", words, xr_status_name(got),
		err.text);
	cr_expect_not_null(strstr(err.text, words), "'%s' lacks '%s'", err.text,
		words);
	err = (struct xr_error){ 0 };
}

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(args));
}

/* --- arguments -------------------------------------------------------------- */

Test(guild_memory, a_group_is_made_of_options_that_are_complete)
{
	static const char *const nobody[] = { "self", NULL };
	static const char *const other[] = { "other" };
	const struct {
		struct xr_group_opts opts;
		enum xr_status status;
		const char *words;
	} rows[] = {
		{ { .size = sizeof(rows[0].opts) - 1, .name = "g" }, XR_E_INVAL,
			"struct xr_group_opts: size 39" },
		{ { .size = sizeof(rows[0].opts), .name = "g", .timeout = -7 },
			XR_E_INVAL, "" },
		{ { .size = sizeof(rows[0].opts) }, XR_E_INVAL,
			"a group's name is" },
		{ { .size = sizeof(rows[0].opts),
			  .name = "g",
			  .members = nobody },
			XR_E_INVAL, "group g of nobody" },
		{ { .size = sizeof(rows[0].opts),
			  .name = "g",
			  .members = nobody,
			  .count = 2 },
			XR_E_INVAL, "member 1 of group g is NULL" },
		{ { .size = sizeof(rows[0].opts),
			  .name = "g",
			  .members = other,
			  .count = 1 },
			XR_E_NOTMEMBER, "self is no member of group g" },
	};
	struct xr_group *g = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect(xr_group_new(world, &rows[i].opts, &g, &err),
			rows[i].status, rows[i].words);
	expect(xr_group_new(world, NULL, &g, &err), XR_E_INVAL,
		"struct xr_group_opts: size 0");
	expect(xr_group_new(NULL, &rows[0].opts, &g, &err), XR_E_STATE,
		"that is not this process's world");
	expect(xr_group_new((struct xr_world *)&g, &rows[0].opts, &g, &err),
		XR_E_STATE, "that is not this process's world");
	cr_expect_null(g);
	cr_expect(xr_group_is_member(group, NULL));
	cr_expect(xr_group_is_member(group, "self"));
	cr_expect_not(xr_group_is_member(group, "other"));
}

Test(guild_memory, a_call_is_made_of_what_is_complete)
{
	struct xr_rpc_call call = { .size = sizeof(call) - 1, .to = "self" };
	struct xr_group_call service = XR_GROUP_CALL;
	struct xr_value *value = NULL, *number = xr_value_new_i64(1);
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;

	for (int i = 0; i < 2; i++) {
		const struct xr_rpc_call *c = i == 0 ? &call : NULL;
		const char *words = i == 0 ?
			"struct xr_rpc_call: its size is 71" :
			"struct xr_rpc_call: its size is 0";

		expect(xr_group_sync(group, c, &value, &err), XR_E_INVAL,
			words);
		expect(xr_group_async(group, c, &future, &err), XR_E_INVAL,
			words);
		expect(xr_group_remote(group, c, &rref, &err), XR_E_INVAL,
			words);
	}
	call.size = sizeof(call);
	call.to = NULL;
	call.id = 1;
	expect(xr_group_sync(group, &call, &value, &err), XR_E_NOTFOUND, "1");
	call.to = "other";
	expect(xr_group_sync(group, &call, &value, &err), XR_E_NOTMEMBER,
		"other is no member of group all");
	service.size--;
	expect(xr_group_call_sync(group, &service, &value, &err), XR_E_INVAL,
		"struct xr_group_call: its size is 39");
	expect(xr_group_call_sync(group, NULL, &value, &err), XR_E_INVAL,
		"struct xr_group_call: its size is 0");
	service.size++;
	service.key = "k";
	service.args = number;
	expect(xr_group_call_async(group, &service, &future, &err), XR_E_INVAL,
		"args are of kind i64, not list");
	service.args = NULL;
	expect(xr_group_call_remote(group, &service, &rref, &err),
		XR_E_NOTFOUND, "'k'");
	service.key = NULL;
	expect(xr_group_call_sync(group, &service, &value, &err), XR_E_INVAL,
		"");
	expect(xr_group_get_paired(group, NULL, &rref, &err), XR_E_INVAL, "");
	cr_expect(value == NULL && future == NULL && rref == NULL);
	xr_value_unref(number);
}

Test(guild_memory, a_service_and_a_value_are_complete)
{
	struct xr_group_service s = { .size = sizeof(s), .key = "k" };
	char key[XR_GROUP_KEY_MAX + 2];
	struct xr_value *one = xr_value_new_i64(1);
	bool is;

	expect(xr_group_register(group, NULL, &err), XR_E_INVAL,
		"its size is 0, or it has no function");
	expect(xr_group_register(group, &s, &err), XR_E_INVAL,
		"its size is 40, or it has no function");
	s.fn = echo;
	s.size--;
	expect(xr_group_register(group, &s, &err), XR_E_INVAL,
		"its size is 39, or it has no function");
	s.size++;
	s.flags = 1u << 31;
	expect(xr_group_register(group, &s, &err), XR_E_INVAL,
		"a service has no flags 0x80000000");
	expect(xr_group_pair(group, "k", NULL, &err), XR_E_INVAL,
		"key 'k' without a value");
	memset(key, 'k', sizeof(key));
	key[XR_GROUP_KEY_MAX + 1] = '\0';
	expect(xr_group_pair(group, key, one, &err), XR_E_INVAL, "");
	expect(xr_group_pair(group, NULL, one, &err), XR_E_INVAL, "");
	expect(xr_group_pair(group, "", one, &err), XR_E_INVAL, "");
	expect(xr_group_pair(group, "k\xff", one, &err), XR_E_INVAL,
		"a key is 1 to 255 bytes of UTF-8");
	expect(xr_group_pair(group, "\xc3", one, &err), XR_E_INVAL,
		"a key is 1 to 255 bytes of UTF-8");
	expect(xr_group_pair(group, "\xc3\xa4", one, &err), XR_OK, "");
	key[XR_GROUP_KEY_MAX] = '\0';
	expect(xr_group_pair(group, key, one, &err), XR_OK, "");
	expect(xr_group_is_paired(group, key, &is, &err), XR_OK, "");
	cr_expect(is);
	expect(xr_group_pair(group, key, one, &err), XR_E_EXISTS,
		"is held by self");
	expect(xr_group_unpair(group, key, &err), XR_OK, "");
	expect(xr_group_unpair(group, key, &err), XR_E_NOTFOUND,
		"self does not hold key");
	xr_value_unref(one);
}

/* The world as its ranks see it. */
Test(guild_memory, a_world_has_members_and_options_that_are_complete)
{
	struct xr_world_opts opts = world_opts;
	const char *names[2] = { NULL, NULL };
	struct xr_world *second = NULL;

	cr_expect_str_eq(xr_world_member(world, 0), "self");
	cr_expect_null(xr_world_member(world, 1));
	cr_expect_null(xr_world_member(world, -1));
	cr_expect_eq(xr_world_members(world, names, 0), 1);
	cr_expect_null(names[0]);
	cr_expect_eq(xr_world_members(world, names, 2), 1);
	cr_expect_str_eq(names[0], "self");
	cr_expect_null(names[1]);
	cr_expect_eq(xr_rank(), 0);
	cr_expect_str_eq(xr_name(), "self");
	opts.size--;
	expect(xr_world_new(&opts, &second, &err), XR_E_INVAL,
		"struct xr_world_opts: its size is 47");
	opts.size++;
	opts.world_size = 0;
	expect(xr_world_new(&opts, &second, &err), XR_E_INVAL,
		"a world of 0 ranks");
	opts.world_size = 1;
	expect(xr_world_new(&opts, &second, &err), XR_E_STATE,
		"in a world already");
	cr_expect_null(second);
	/* After its end there is none, and a group of it is of no use. */
	end();
	cr_expect_eq(xr_rank(), -1);
	cr_expect_null(xr_name());
	cr_expect_null(xr_world_get());
	begin();
}

/* --- little memory ---------------------------------------------------------- */

static struct xr_value *value, *list;
static struct xr_rref *rref;
static struct xr_future *future;
static struct xr_group *made;

static const struct xr_group_opts other = { .size = sizeof(other),
	.name = "other" };

static enum xr_status
make_group(void)
{
	return xr_group_new(world, &other, &made, &err);
}

static enum xr_status
pair_key(void)
{
	return xr_group_pair(group, "key", list, &err);
}

static enum xr_status
call_sync(void)
{
	struct xr_group_call call = XR_GROUP_CALL;

	call.key = "echo";
	call.args = list;
	return xr_group_call_sync(group, &call, &value, &err);
}

static enum xr_status
call_async(void)
{
	struct xr_group_call call = XR_GROUP_CALL;
	enum xr_status status;

	call.key = "echo";
	status = xr_group_call_async(group, &call, &future, &err);
	if (status == XR_OK)
		status = xr_future_wait(future, XR_SECONDS(30), &value, &err);
	return status;
}

static enum xr_status
get_paired(void)
{
	return xr_group_get_paired(group, "paired", &rref, &err);
}

static enum xr_status
is_paired(void)
{
	bool is = false;
	enum xr_status status = xr_group_is_paired(group, "paired", &is, &err);

	cr_expect(status != XR_OK || is);
	return status;
}

static enum xr_status
as_value(void)
{
	value = xr_group_value(group);
	return value != NULL ? XR_OK : XR_E_NOMEM;
}

static enum xr_status
unpair_key(void)
{
	return xr_group_unpair(group, "key", &err);
}

static const struct {
	const char *name;
	enum xr_status (*ask)(void);
	unsigned most; /* allocations that fail; 0: all */
} steps[] = {
	{ "new", make_group, 12 }, /* before the meeting */
	{ "pair", pair_key, 0 },
	{ "unpair", unpair_key, 0 },
	{ "is paired", is_paired, 0 },
	{ "get paired", get_paired, 0 },
	{ "call", call_sync, 0 },
	{ "call later", call_async, 0 },
	{ "value", as_value, 0 },
};

static void
drop(void)
{
	xr_value_unref(value);
	xr_rref_unref(rref);
	xr_future_unref(future);
	xr_group_free(made);
	value = NULL;
	rref = NULL;
	future = NULL;
	made = NULL;
}

/* What has failed has done nothing: it succeeds the next time. */
Test(guild_memory, what_fails_for_want_of_memory_succeeds_afterwards)
{
	const struct xr_group_service s = { .size = sizeof(s),
		.key = "echo",
		.fn = echo };
	struct xr_value *one = xr_value_new_i64(1);
	enum xr_status status;
	unsigned n;

	list = xr_value_new_list();
	cr_assert_eq(xr_group_register(group, &s, &err), XR_OK, "%s", err.text);
	cr_assert_eq(xr_group_pair(group, "paired", one, &err), XR_OK, "%s",
		err.text);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		n = 0;
		do {
			was_short = false;
			until_short = ++n;
			status = steps[i].ask();
			until_short = 0;
			drop();
			if (!was_short)
				cr_expect_eq(status, XR_OK, "%s, %u: %s",
					steps[i].name, n, err.text);
			else if (status != XR_OK)
				cr_expect_eq(status, XR_E_NOMEM,
					"%s, allocation %u: %s: %s",
					steps[i].name, n,
					xr_status_name(status), err.text);
			if (status == XR_OK && steps[i].ask == pair_key)
				cr_expect_eq(unpair_key(), XR_OK);
			if (status == XR_OK && steps[i].ask == unpair_key)
				cr_expect_eq(pair_key(), XR_OK);
		} while (was_short && n != steps[i].most);
		if (steps[i].ask == pair_key)
			cr_expect_eq(pair_key(), XR_OK, "%s", err.text);
		cr_expect_gt(n, 1, "%s", steps[i].name);
	}
	xr_value_unref(list);
	xr_value_unref(one);
}
