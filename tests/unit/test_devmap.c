/* SPDX-License-Identifier: Apache-2.0 */
/* test_devmap.c - device maps of all members: what fits together, the other way
 * round, and the devices that come of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <xrun/device.h>

#define CPU XR_DEVICE_MAP_CPU

TestSuite(devmap, .timeout = 30);

static struct xr_error err;

/* A member without a list. */
#define MEMBER(text, devices_there, ...) \
	{ \
		.size = sizeof(struct xr_device_info), \
		.name = (text), \
		.count = (devices_there), \
		.pairs = (const struct xr_device_pair[]){ __VA_ARGS__ }, \
		.pair_count = \
			sizeof((struct xr_device_pair[]){ __VA_ARGS__ }) / \
			sizeof(struct xr_device_pair), \
	}

/* The same with the list @list. */
#define LISTED(text, devices_there, list, ...) \
	{ \
		.size = sizeof(struct xr_device_info), \
		.name = (text), \
		.count = (devices_there), \
		.devices = (list), \
		.device_count = sizeof(list) / sizeof((list)[0]), \
		.pairs = (const struct xr_device_pair[]){ __VA_ARGS__ }, \
		.pair_count = \
			sizeof((struct xr_device_pair[]){ __VA_ARGS__ }) / \
			sizeof(struct xr_device_pair), \
	}

#define LIST(...) ((const int32_t[]){ __VA_ARGS__ })
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* --- what does not fit ----------------------------------------------------- */

struct broken {
	const char *rule;
	const char *says[4]; /* each stands in the text */
	struct xr_device_info members[2];
};

static const struct broken broken[] = {
	{ "V1", { "a: ", "device 1 is twice", "1, 0, 1" },
		{ LISTED("a", 4, LIST(1, 0, 1)), MEMBER("b", 4) } },
	{ "V2", { "b: ", "device 4", "0, 4", "it has 4" },
		{ MEMBER("a", 4), LISTED("b", 4, LIST(0, 4)) } },
	{ "V2, the CPU", { "b: ", "device -1", "it has 4" },
		{ MEMBER("a", 4), LISTED("b", 4, LIST(0, -1)) } },
	{ "V3", { "a: ", "nobody", "no member" },
		{ MEMBER("a", 4, { "b", 0, 0 }, { "nobody", 0, 0 }),
			MEMBER("b", 4) } },
	{ "V4", { "a: ", "map to b", "device 2 of b twice", "0:2, 1:2" },
		{ MEMBER("a", 4, { "b", 0, 2 }, { "b", 1, 2 }),
			MEMBER("b", 4) } },
	{ "V4, its own", { "b: ", "map to a", "device 3 of b twice" },
		{ MEMBER("a", 4),
			MEMBER("b", 4, { "a", 3, 2 }, { "b", 1, 1 },
				{ "a", 3, 1 }) } },
	{ "V5a", { "a: ", "map to b", "begins at device 1", "not in its list" },
		{ LISTED("a", 4, LIST(0, 2), { "b", 1, 0 }), MEMBER("b", 4) } },
	{ "V5b", { "a: ", "map to b", "begins at device 4", "it has 4" },
		{ MEMBER("a", 4, { "b", 4, 0 }), MEMBER("b", 8) } },
	{ "V6a", { "a: ", "map to b", "ends at device 1", "list there" },
		{ MEMBER("a", 4, { "b", 0, 1 }), LISTED("b", 4, LIST(0, 2)) } },
	{ "V6b", { "a: ", "map to b", "ends at device 2", "are 2 there" },
		{ MEMBER("a", 4, { "b", 3, 2 }), MEMBER("b", 2) } },
	{ "V6b, below", { "a: ", "map to b", "ends at device -2" },
		{ MEMBER("a", 4, { "b", 3, -2 }), MEMBER("b", 2) } },
};

Test(devmap, AC_B9_each_rule_that_is_broken_names_member_and_destination)
{
	for (size_t i = 0; i < COUNT(broken); i++) {
		const struct broken *b = &broken[i];
		struct xr_error again = { 0 };

		memset(&err, 0, sizeof(err));
		cr_expect_eq(xr_devmap_check(b->members, 2, true, &err),
			XR_E_INVAL, "%s", b->rule);
		for (size_t k = 0; k < 4 && b->says[k] != NULL; k++)
			cr_expect_not_null(strstr(err.text, b->says[k]),
				"%s: '%s' has no '%s'", b->rule, err.text,
				b->says[k]);
		/* All members look at the same, and tell the same. */
		xr_devmap_check(b->members, 2, true, &again);
		cr_expect_str_eq(again.text, err.text);
		cr_expect_eq(xr_devmap_check(b->members, 2, true, NULL),
			XR_E_INVAL);
	}
}

Test(devmap, a_member_has_its_size_and_a_name)
{
	struct xr_device_info members[] = { MEMBER("a", 4), MEMBER("b", 4) };
	const char *words = "devices of a member without size or name";

	members[1].size--;
	cr_expect_eq(xr_devmap_check(members, 2, true, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, words);
	members[1].size += 2;
	cr_expect_eq(xr_devmap_check(members, 2, true, &err), XR_OK);
	members[0].name = NULL;
	err = (struct xr_error){ 0 };
	cr_expect_eq(xr_devmap_check(members, 2, true, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, words);
	cr_expect_eq(xr_devmap_check(members, 0, true, &err), XR_OK);
}

Test(devmap, AC_B9_the_first_rule_counts_and_lists_come_before_maps)
{
	const struct xr_device_info members[] = {
		MEMBER("a", 4, { "nobody", 9, 0 }, { "b", 9, 9 }),
		LISTED("b", 4, LIST(7)),
	};
	const struct xr_device_info maps[] = {
		MEMBER("a", 4, { "b", 9, 2 }, { "b", 8, 2 }, { "x", 1, 1 }),
		MEMBER("b", 1),
	};

	cr_expect_eq(xr_devmap_check(members, 2, true, &err), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "b: device 7"), "%s", err.text);
	cr_expect_eq(xr_devmap_check(maps, 2, true, &err), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "no member"), "%s", err.text);
	cr_expect_eq(xr_devmap_check(maps, 2, false, &err), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "twice"), "%s", err.text);
}

Test(devmap, a_map_is_found_whole_wherever_its_pairs_stand)
{
	const struct xr_device_info members[] = {
		MEMBER("a", 4, { "c", 0, 1 }, { "b", 0, 1 }, { "c", 2, 1 }),
		MEMBER("b", 4),
		MEMBER("c", 4),
	};

	cr_expect_eq(xr_devmap_check(members, 3, true, &err), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "device 1 of c twice: 0:1, 2:1"),
		"%s", err.text);
}

Test(devmap, a_member_without_size_or_name_is_refused)
{
	struct xr_device_info members[] = { MEMBER("a", 1) };

	members[0].size = 4;
	cr_expect_eq(xr_devmap_check(members, 1, true, &err), XR_E_INVAL);
	members[0].size = sizeof(members[0]);
	members[0].name = NULL;
	cr_expect_eq(xr_devmap_check(members, 1, true, &err), XR_E_INVAL);
	cr_expect_eq(xr_devmap_check(NULL, 0, true, &err), XR_OK);
}

/* --- what fits ------------------------------------------------------------- */

static void
fits(const struct xr_device_info *members, size_t count, bool is_static)
{
	memset(&err, 0, sizeof(err));
	cr_expect_eq(xr_devmap_check(members, count, is_static, &err), XR_OK,
		"%s", err.text);
	cr_expect_eq(err.text[0], '\0');
}

Test(devmap, AC_B10_what_is_legal_fits)
{
	const struct xr_device_info swap[] = {
		MEMBER("a", 2, { "b", 0, 1 }, { "b", 1, 0 }),
		MEMBER("b", 2, { "a", 0, 1 }, { "a", 1, 0 }),
	};
	const struct xr_device_info cycle[] = {
		MEMBER("a", 4, { "b", 0, 1 }, { "b", 1, 2 }, { "b", 2, 3 },
			{ "b", 3, 0 }),
		MEMBER("b", 4),
	};
	const struct xr_device_info self[] = {
		MEMBER("a", 2, { "a", 0, 1 }, { "a", 1, 0 }),
	};
	const struct xr_device_info cpu[] = {
		MEMBER("a", 1, { "b", CPU, 0 }, { "b", 0, CPU }),
		MEMBER("b", 1, { "a", CPU, CPU }),
	};
	const struct xr_device_info unknown[] = {
		MEMBER("a", 2, { "comes later", 1, 77 }),
	};

	fits(swap, 2, true);
	fits(cycle, 2, true);
	fits(self, 1, true);
	fits(cpu, 2, true);
	fits(unknown, 1, false);
	cr_expect_eq(xr_devmap_check(unknown, 1, true, &err), XR_E_INVAL);
}

/* In the original nobody with a list can map the CPU: D-B3. */
Test(devmap, AC_B10_a_list_of_accelerators_does_not_leave_out_the_cpu)
{
	const struct xr_device_info members[] = {
		LISTED("a", 4, LIST(1, 3), { "b", CPU, 2 }, { "b", 3, CPU }),
		LISTED("b", 4, LIST(2)),
	};

	fits(members, 2, true);
}

/* --- the other way round --------------------------------------------------- */

static const struct xr_device_info inverse[] = {
	MEMBER("A", 8, { "M", 0, 1 }, { "M", 2, 3 }, { "B", 6, 7 }),
	MEMBER("M", 8, { "A", 5, 0 }),
	MEMBER("B", 8),
};

Test(devmap, AC_B11_a_map_is_turned_round)
{
	struct xr_device_pair pairs[4] = { { 0 } };

	cr_assert_eq(xr_devmap_invert(inverse, 3, "M", pairs, 4), 2);
	cr_expect_str_eq(pairs[0].to, "A");
	cr_expect_eq(pairs[0].from, 1);
	cr_expect_eq(pairs[0].dst, 0);
	cr_expect_str_eq(pairs[1].to, "A");
	cr_expect_eq(pairs[1].from, 3);
	cr_expect_eq(pairs[1].dst, 2);
	cr_expect_eq(xr_devmap_invert(inverse, 3, "B", pairs, 0), 1,
		"room is not what there is");
	cr_expect_eq(pairs[0].from, 1, "and nothing is written beyond it");
	cr_expect_eq(xr_devmap_invert(inverse, 3, "nobody", pairs, 4), 0);
}

Test(devmap, a_map_of_a_member_to_itself_is_turned_round_too)
{
	const struct xr_device_info self[] = { MEMBER("a", 2, { "a", 0, 1 }) };
	struct xr_device_pair pair = { 0 };

	cr_assert_eq(xr_devmap_invert(self, 1, "a", &pair, 1), 1);
	cr_expect_eq(pair.from, 1);
	cr_expect_eq(pair.dst, 0);
}

Test(devmap, AC_B12_devices_come_of_the_maps)
{
	const int32_t want[] = { 1, 3, 5 };
	int32_t devices[4] = { 0 };

	cr_assert_eq(xr_devmap_devices(inverse, 3, "M", devices, 4), 3);
	cr_expect_arr_eq(devices, want, sizeof(want));
	cr_expect_eq(xr_devmap_devices(inverse, 3, "M", devices, 1), 3);
	cr_expect_eq(xr_devmap_devices(inverse, 3, "nobody", devices, 4), 0);
}

Test(devmap, the_cpu_is_no_accelerator)
{
	const struct xr_device_info members[] = {
		MEMBER("a", 4, { "b", CPU, 2 }, { "b", 1, CPU }),
		MEMBER("b", 4),
	};
	int32_t device = 0;

	cr_expect_eq(xr_devmap_devices(members, 2, "a", &device, 1), 1);
	cr_expect_eq(device, 1);
	cr_expect_eq(xr_devmap_devices(members, 2, "b", &device, 1), 1);
	cr_expect_eq(device, 2);
}

Test(devmap, AC_B13_a_list_comes_out_in_order)
{
	const struct xr_device_info members[] = {
		LISTED("a", 4, LIST(2, 0), { "b", 2, 1 }),
		MEMBER("b", 4, { "a", 0, 2 }),
	};
	const int32_t want[] = { 0, 2 };
	int32_t devices[4] = { 0 };

	cr_assert_eq(xr_devmap_devices(members, 2, "a", devices, 4), 2);
	cr_expect_arr_eq(devices, want, sizeof(want));
}

/* Whatever maps say beside it. */
Test(devmap, a_list_is_all_of_a_members_devices)
{
	const struct xr_device_info members[] = {
		MEMBER("b", 4, { "a", 0, 1 }, { "a", 1, 3 }),
		LISTED("a", 4, LIST(2), { "b", 0, 1 }),
	};
	int32_t devices[4] = { 0 };

	cr_assert_eq(xr_devmap_devices(members, 2, "a", devices, 4), 1);
	cr_expect_eq(devices[0], 2);
}

Test(devmap, many_members_that_map_to_each_other_take_no_hour)
{
	enum { MEMBERS = 300, DEVICES = 8 };
	static struct xr_device_info members[MEMBERS];
	static struct xr_device_pair pairs[MEMBERS * DEVICES];
	static char names[MEMBERS][8];

	for (int i = 0; i < MEMBERS; i++) {
		snprintf(names[i], sizeof(names[i]), "w%d", i);
		for (int d = 0; d < DEVICES; d++)
			pairs[d * MEMBERS + i] =
				(struct xr_device_pair){ names[i], d,
					(d + 1) % DEVICES };
		members[i] = (struct xr_device_info){
			.size = sizeof(members[i]),
			.name = names[i],
			.count = DEVICES,
			.pairs = pairs,
			.pair_count = MEMBERS * DEVICES,
		};
	}
	fits(members, MEMBERS, true);
}
