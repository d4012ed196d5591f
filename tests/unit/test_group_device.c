/* SPDX-License-Identifier: Apache-2.0 */
/* test_group_device.c - tensors on accelerators between members of a group. */
#include <criterion/criterion.h>

#include <xrun/tensor.h>

#include "tests/unit/group_rig.h"
#include "tests/unit/value_device.h"
#include "worker/rpc/pending.h"

static _Atomic bool counted;
static uint32_t devices = 2;

static uint32_t
count_devices(void *ctx)
{
	(void)ctx;
	atomic_store(&counted, true);
	return devices;
}

static void
begin(void)
{
	static struct device_ops two;

	rig_begin();
	two = device_ops;
	two.count = count_devices;
	cr_assert_eq(device_set_ops(XR_DEVICE_FAKE, &two), XR_OK);
}

TestSuite(group_device, .init = begin, .fini = rig_end, .timeout = 120);

#define PAIRS(...) ((const struct xr_device_pair[]){ __VA_ARGS__ })
#define LIST(...)  ((const int32_t[]){ __VA_ARGS__ })
#define CPU        XR_DEVICE_MAP_CPU

/* What one of the members gives. */
struct wish {
	const struct xr_device_pair *maps;
	uint32_t map_count;
	const int32_t *devices;
	uint32_t device_count;
};

static enum xr_status
join_with(const char *name, int64_t rank, int64_t size, struct wish w)
{
	struct xr_rpc_opts opts = usual();

	opts.maps = w.maps;
	opts.map_count = w.map_count;
	opts.devices = w.devices;
	opts.device_count = w.device_count;
	return xr_rpc_init(name, rank, size, &opts, &err);
}

/* --- what does not fit ------------------------------------------------------ */

static const struct rule {
	const char *name;
	struct wish a, b;
	const char *named[2]; /* stand in the text */
} rules[] = {
	{ "V1", { NULL, 0, LIST(1, 1), 2 }, { NULL }, { "ann", "twice" } },
	{ "V2", { NULL }, { NULL, 0, LIST(2), 1 }, { "bob", "not there" } },
	{ "V3", { PAIRS({ "eve", 0, 0 }), 1, NULL, 0 }, { NULL },
		{ "ann", "eve" } },
	{ "V4", { NULL },
		{ PAIRS({ "ann", 0, 1 }, { "ann", 1, 1 }), 2, NULL, 0 },
		{ "bob", "ann" } },
	{ "V5a", { PAIRS({ "bob", 0, 0 }), 1, LIST(1), 1 }, { NULL },
		{ "ann", "bob" } },
	{ "V5b", { PAIRS({ "bob", 2, 0 }), 1, NULL, 0 }, { NULL },
		{ "ann", "bob" } },
	{ "V6a", { PAIRS({ "bob", 0, 0 }), 1, NULL, 0 },
		{ NULL, 0, LIST(1), 1 }, { "ann", "bob" } },
	{ "V6b", { NULL }, { PAIRS({ "ann", 0, 2 }), 1, NULL, 0 },
		{ "bob", "ann" } },
};
static const struct rule *rule;

static void
is_refused(int i)
{
	struct xr_worker w = { .size = sizeof(w) };

	EXPECT(join_with(i == 0 ? "ann" : "bob", i, 2,
		       i == 0 ? rule->a : rule->b) == XR_E_INVAL);
	snprintf(shared->text_of[i], sizeof(shared->text_of[i]), "%s",
		err.text);
	for (int k = 0; k < 2; k++)
		EXPECT(strstr(err.text, rule->named[k]) != NULL);
	EXPECT(xr_worker_self(&w, &err) == XR_E_STATE);
}

Test(group_device, AC_B9_a_broken_rule_is_told_to_all_and_no_agent_is_left)
{
	for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
		rule = &rules[k];
		rig_fresh();
		together(2, is_refused);
		cr_expect_str_eq(shared->text_of[0], shared->text_of[1], "%s",
			rule->name);
	}
}

/* --- what does -------------------------------------------------------------- */

/* A tensor of four on fake:@index, or in memory of the host. */
static struct xr_value *
tensor_on(int32_t index)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.device_kind = index == CPU ? XR_DEVICE_CPU : XR_DEVICE_FAKE,
		.device_index = index == CPU ? 0 : index,
		.shape = { 4 },
	};
	struct xr_value *v = NULL;
	float *data;

	NEED(xr_tensor_new(&d, &v, &err) == XR_OK);
	data = xr_tensor_data(v, NULL);
	if (index != CPU)
		data = near(data);
	for (int i = 0; i < 4; i++)
		data[i] = (float)i + 0.5f;
	return v;
}

static int32_t
device_of(const struct xr_value *v)
{
	struct xr_tensor_desc d = { .size = sizeof(d) };

	if (xr_tensor_desc(v, &d) != XR_OK)
		return -2;
	return d.device_kind == XR_DEVICE_CPU ? CPU : d.device_index;
}

static bool
is_whole(const struct xr_value *v)
{
	float *data = xr_tensor_data(v, NULL);

	if (device_of(v) != CPU)
		data = near(data);
	return data[0] == 0.5f && data[3] == 3.5f;
}

/* Gives a LIST: on which device its argument came, and a tensor: the same, or a
 * new one on the device that its second argument names. */
static enum xr_status
where(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_value *items[2], *t = xr_value_at(args, 0);
	int64_t back = 0;

	(void)ctx;
	if (!atomic_load(&counted) || !is_whole(t))
		return XR_E_STATE;
	items[0] = xr_value_new_i64(device_of(t));
	xr_value_get_i64(xr_value_at(args, 1), &back);
	items[1] = back == -9 ? xr_value_ref(t) : tensor_on((int32_t)back);
	return xr_reply(call, xr_value_new_list_of(items, 2));
}

#define SAME (-9)

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "where",
		.schema = "ti",
		.fn = where },
};

/* A tensor goes there from @from, and one comes back, of @back there: XR_OK, and
 * where it was and is. */
static enum xr_status
send_tensor(const char *to, int32_t from, int32_t back, int64_t *there,
	int32_t *here)
{
	struct xr_value *items[2] = { tensor_on(from), xr_value_new_i64(back) };
	struct xr_rpc_call c = XR_RPC_CALL;
	struct xr_value *v = NULL;
	enum xr_status status;

	c.to = to;
	c.func = "where";
	c.args = xr_value_new_list_of(items, 2);
	status = xr_rpc_sync(&c, &v, &err);
	if (status == XR_OK) {
		xr_value_get_i64(xr_value_at(v, 0), there);
		*here = device_of(xr_value_at(v, 1));
		EXPECT(is_whole(xr_value_at(v, 1)));
	}
	xr_value_unref(v);
	xr_value_unref(c.args);
	return status;
}

/* Its tensor of @from arrives on @there, and the answer on @here. */
#define ARRIVES(to, from, at_there, at_here) \
	do { \
		int64_t there_ = -7; \
		int32_t here_ = -7; \
		EXPECT(send_tensor(to, from, SAME, &there_, &here_) == XR_OK); \
		EXPECT(there_ == (at_there)); \
		EXPECT(here_ == (at_here)); \
	} while (0)

static void
offer_where(void)
{
	offer();
	NEED(xr_module_static(functions, 1, &err) == XR_OK);
}

static void
swap_devices(int i)
{
	offer_where();
	NEED(join_with(i == 0 ? "ann" : "bob", i, 2,
		     i == 0 ? (struct wish){ PAIRS({ "bob", 0, 1 },
						     { "bob", 1, 0 },
						     { "ann", 0, 1 }),
				      3, NULL, 0 } :
			      (struct wish){ PAIRS({ "ann", CPU, 1 },
						     { "ann", 0, CPU }),
				      2, NULL, 0 }) == XR_OK);
	if (i == 0) {
		ARRIVES("bob", 0, 1, 0);
		ARRIVES("bob", 1, 0, 1);
		ARRIVES("bob", CPU, CPU, CPU);
		ARRIVES("ann", 0, 1, 0);
		ARRIVES("ann", CPU, CPU, CPU);
	} else {
		ARRIVES("ann", CPU, 1, CPU);
		ARRIVES("ann", 0, CPU, 0);
	}
	EXPECT(leave() == XR_OK);
}

Test(group_device, AC_B10_tensors_arrive_where_maps_lead_and_come_back)
{
	together(2, swap_devices);
}

static void
has_no_map(int i)
{
	int64_t there = 0, before;
	int32_t here = 0;

	offer_where();
	NEED(join_with(i == 0 ? "ann" : "bob", i, 2,
		     i == 0 ? (struct wish){ PAIRS({ "bob", 0, 0 }), 1, NULL,
				      0 } :
			      (struct wish){ NULL }) == XR_OK);
	for (int k = 0; k < 21 && i == 0; k++) {
		before = now_ms();
		EXPECT(send_tensor("bob", 1, CPU, &there, &here) ==
			XR_E_DEVICE);
		EXPECT(now_ms() - before < 30000);
		EXPECT(strstr(err.text, "ann (0) has no device map to bob") !=
			NULL);
	}
	EXPECT(pending_count(false) == 0);
	if (i == 0)
		EXPECT(call("bob") == XR_OK);
	/* It comes back where no map leads, and the callee lives. */
	for (int k = 0; k < 21 && i == 0; k++) {
		EXPECT(send_tensor("bob", 0, 1, &there, &here) == XR_E_DEVICE);
		EXPECT(strstr(err.text, "bob (1) answers with a tensor on") !=
			NULL);
	}
	if (i == 0) {
		EXPECT(call("bob") == XR_OK);
		ARRIVES("bob", 0, 0, 0);
	}
	EXPECT(leave() == XR_OK);
}

Test(group_device, AC_B14_without_a_map_nothing_is_sent_and_all_goes_on)
{
	together(2, has_no_map);
}

/* Of a backend that has no maps; the other member is told of none, either. */
static void
has_a_group(int i)
{
	struct xr_rpc_opts opts = usual();
	int64_t there = 0;
	int32_t here = 0;

	opts.backend = xr_backend_find("process_group");
	offer_where();
	NEED(xr_rpc_init(i == 0 ? "ann" : "bob", i, 2, &opts, &err) == XR_OK);
	for (int k = 0; k < 21 && i == 0; k++) {
		EXPECT(send_tensor("bob", 0, CPU, &there, &here) ==
			XR_E_DEVICE);
		EXPECT(strstr(err.text, "ann (0) has no device map to bob") !=
			NULL);
	}
	EXPECT(pending_count(false) == 0);
	if (i == 0)
		EXPECT(call("bob") == XR_OK);
	EXPECT(leave() == XR_OK);
}

Test(group_device, AC_B14_so_it_is_with_process_group)
{
	together(2, has_a_group);
}

static void
is_counted(int i)
{
	EXPECT(!atomic_load(&counted));
	offer_where();
	NEED(join_with(i == 0 ? "ann" : "bob", i, 2,
		     (struct wish){ PAIRS({ i == 0 ? "bob" : "ann", 0, 0 }), 1,
			     NULL, 0 }) == XR_OK);
	/* Refuses, where nobody has counted. */
	ARRIVES(i == 0 ? "bob" : "ann", 0, 0, 0);
	EXPECT(leave() == XR_OK);
}

Test(group_device, AC_B20_devices_are_looked_for_before_anybody_can_call)
{
	together(2, is_counted);
}

/* --- groups that change ----------------------------------------------------- */

/* Bob's map does not fit; he hears it at once, and cat comes in. */
static void
brings_a_bad_map(int i)
{
	int64_t before;

	offer_where();
	if (i == 0) {
		NEED(join("ann", 0, 0) == XR_OK);
		stage_set(1);
		stage_await(3);
		EXPECT(leave() == XR_OK);
		return;
	}
	stage_await((uint32_t)i);
	before = now_ms();
	if (i == 1) {
		EXPECT(join_with("bob", 1, 0,
			       (struct wish){ PAIRS({ "ann", 0, 7 }), 1, NULL,
				       0 }) == XR_E_INVAL);
		EXPECT(strstr(err.text,
			       "bob: its map to ann ends at device 7") != NULL);
		EXPECT(now_ms() - before < 30000);
		stage_set(2);
		return;
	}
	EXPECT(join_with("cat", 2, 0,
		       (struct wish){ PAIRS({ "ann", 0, 1 }, { "zoe", 1, 1 }),
			       2, NULL, 0 }) == XR_OK);
	ARRIVES("ann", 0, 1, 0);
	EXPECT(leave() == XR_OK);
	stage_set(3);
}

Test(group_device, AC_M13_a_bad_map_is_told_at_once_and_the_next_joins_D_M8)
{
	together(3, brings_a_bad_map);
}

/* Maps to bob lead where they did when cat has left. */
static void
outlives_a_leaver(int i)
{
	offer_where();
	stage_await((uint32_t)i);
	NEED(join_with(i == 0       ? "ann" :
			     i == 1 ? "bob" :
				      "cat",
		     i, 0,
		     i == 0 ? (struct wish){ PAIRS({ "bob", 0, 1 },
						     { "cat", 1, 0 }),
				      2, NULL, 0 } :
			      (struct wish){ PAIRS({ "ann", 1, 0 }), 1, NULL,
				      0 }) == XR_OK);
	stage_add();
	stage_await(3);
	if (i == 0) {
		ARRIVES("bob", 0, 1, 0);
		ARRIVES("cat", 1, 0, 1);
	} else {
		ARRIVES("ann", 1, 0, 1);
	}
	stage_add();
	stage_await(6);
	if (i == 2) {
		EXPECT(leave() == XR_OK);
		stage_set(7);
		return;
	}
	stage_await(7);
	if (i == 0)
		ARRIVES("bob", 0, 1, 0);
	else
		ARRIVES("ann", 1, 0, 1);
	stage_add();
	stage_await(9);
	EXPECT(leave() == XR_OK);
}

Test(group_device, AC_M15_who_leaves_takes_no_map_of_others_along)
{
	together(3, outlives_a_leaver);
}

/* Ann has no map at all: only the one who came later says where to. What comes back
 * goes the other way round, to another device than by the same map once more. */
static void
maps_to_an_old_one(int i)
{
	devices = 3;
	device_last = 2;
	offer_where();
	stage_await((uint32_t)i);
	NEED(join_with(i == 0 ? "ann" : "bob", i, 0,
		     i == 0 ? (struct wish){ NULL } :
			      (struct wish){ PAIRS({ "ann", 0, 1 },
						     { "ann", 1, 2 },
						     { "ann", 2, 0 }),
				      3, NULL, 0 }) == XR_OK);
	stage_add();
	stage_await(2);
	if (i == 1) {
		ARRIVES("ann", 0, 1, 0);
		ARRIVES("ann", 1, 2, 1);
		ARRIVES("ann", 2, 0, 2);
	}
	stage_add();
	stage_await(4);
	EXPECT(leave() == XR_OK);
}

Test(group_device, AC_M16_what_an_old_member_answers_comes_back_mapped)
{
	together(2, maps_to_an_old_one);
}
