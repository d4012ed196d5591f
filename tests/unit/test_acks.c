/* SPDX-License-Identifier: Apache-2.0 */
/* test_acks.c - which members of a group that changes have acknowledged a record. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/rpc.h>

#include "worker/rpc/dynamic_inner.h"
#include "tests/unit/file_store.h"

TestSuite(acks, .timeout = 60);

#define NUMBER 7 /* of the record */

static struct xr_error err;
static struct epoch record = { .number = NUMBER };

static void
begin(void)
{
	dynamic.store = file_store_open();
	record.members = xr_value_new_list();
	dynamic.self.incarnation = 100;
}

static void
end(void)
{
	epoch_fini(&record);
	file_store_close(dynamic.store);
}

/* Appends member @id. This process is member 0. */
static void
add(uint32_t id, const char *name)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct member m = {
		.name = name,
		.addresses = "",
		.id = id,
		.incarnation = 100 + id,
	};

	cr_assert_eq(xr_value_append(record.members, member_new(&m, &opts)),
		XR_OK);
}

static void
acknowledge(uint32_t id)
{
	cr_assert_eq(epoch_ack(dynamic.store, NUMBER, id, &err), XR_OK);
}

static bool
has_acknowledged(uint32_t id)
{
	char text[EPOCH_KEY_MAX];
	const char *const key = text;
	bool there = false;

	epoch_ack_key(NUMBER, id, text);
	cr_assert_eq(xr_store_check(dynamic.store, &key, 1, &there, &err),
		XR_OK);
	return there;
}

/* No member is waited for. */
static enum xr_status
await_now(void)
{
	return acks_await(&record, clock_now(), &err);
}

static void
expect_late(const char *text)
{
	cr_expect_eq(await_now(), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, text);
}

Test(acks, acknowledgements_of_all_others_are_removed, .init = begin,
	.fini = end)
{
	add(0, "self");
	cr_expect_eq(await_now(), XR_OK);
	add(1, "one");
	add(2, "two");
	cr_assert(roll_learn(&record));
	acknowledge(0);
	acknowledge(1);
	acknowledge(2);
	cr_expect_eq(await_now(), XR_OK);
	cr_expect(has_acknowledged(0));
	cr_expect_not(has_acknowledged(1));
	cr_expect_not(has_acknowledged(2));
}

Test(acks, late_members_are_named, .init = begin, .fini = end)
{
	int64_t begun;

	add(1, "one");
	cr_assert(roll_learn(&record));
	expect_late("1 members have not taken note in time: one");
	begun = clock_now();
	cr_expect_eq(acks_await(&record, begun + NS_PER_S / 5, &err),
		XR_E_TIMEOUT);
	cr_expect_geq(clock_now() - begun, NS_PER_S / 5);
	add(2, "two");
	add(0, "self");
	add(3, "three");
	cr_assert(roll_learn(&record));
	expect_late("3 members have not taken note in time: one, two, three");
	acknowledge(2);
	expect_late("2 members have not taken note in time: one, three");
	acknowledge(1);
	expect_late("1 members have not taken note in time: three");
	cr_expect(has_acknowledged(1));
	acknowledge(3);
	cr_expect_eq(await_now(), XR_OK);
}

Test(acks, members_that_are_gone_are_not_late, .init = begin, .fini = end)
{
	add(1, "one");
	cr_assert(roll_learn(&record));
	add(2, "two");
	expect_late("1 members have not taken note in time: one");
}

/* Six late members, the first of which has a name of @len bytes. */
static void
add_six(size_t len)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz01234";

	for (uint32_t i = 1; i <= 6; i++)
		add(i, i == 1 ? name + sizeof(name) - 1 - len : name);
	cr_assert(roll_learn(&record));
}

/* Names are cut to 30 bytes, and begin in the first 120 bytes of the list. */
Test(acks, the_list_of_late_members_ends_at_120_bytes, .init = begin,
	.fini = end)
{
	add_six(24);
	expect_late("6 members have not taken note in time: "
		    "hijklmnopqrstuvwxyz01234, "
		    "abcdefghijklmnopqrstuvwxyz0123, "
		    "abcdefghijklmnopqrstuvwxyz0123, "
		    "abcdefghijklmnopqrstuvwxyz0123");
}

Test(acks, the_list_of_late_members_goes_on_after_119_bytes, .init = begin,
	.fini = end)
{
	add_six(23);
	expect_late("6 members have not taken note in time: "
		    "ijklmnopqrstuvwxyz01234, "
		    "abcdefghijklmnopqrstuvwxyz0123, "
		    "abcdefghijklmnopqrstuvwxyz0123, "
		    "abcdefghijklmnopqrstuvwxyz0123, "
		    "abcdefghijklmnopqrstuvwxyz0123");
}

Test(acks, more_members_are_awaited_than_the_store_waits_for_at_a_time,
	.init = begin, .fini = end)
{
	const uint32_t count = XR_STORE_KEYS_MAX + 3;
	char name[16], text[80];

	for (uint32_t i = 1; i <= count; i++) {
		snprintf(name, sizeof(name), "w%u", i);
		add(i, name);
		if (i != count && i != count - 2)
			acknowledge(i);
	}
	cr_assert(roll_learn(&record));
	snprintf(text, sizeof(text),
		"2 members have not taken note in time: w%u, w%u", count - 2,
		count);
	expect_late(text);
	acknowledge(count - 2);
	acknowledge(count);
	cr_expect_eq(await_now(), XR_OK);
}
