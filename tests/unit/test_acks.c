/* SPDX-License-Identifier: Apache-2.0 */
/* test_acks.c - which members of a group that changes have acknowledged a record. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/rpc.h>

#include "worker/rpc/agent.h"
#include "worker/rpc/dynamic_inner.h"
#include "tests/unit/file_store.h"
#include "tests/unit/short_memory.h"

TestSuite(acks, .timeout = 60);

#define NUMBER 7 /* of the record */
/* As in acks.c. */
#define FIRST_NS (100 * NS_PER_MS)
#define AGAIN_NS NS_PER_S

static struct xr_error err;

/* --- what is called instead ---------------------------------------------------- */

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);
enum xr_there __wrap_agent_there(const char *addresses, uint32_t id,
	uint64_t incarnation);
void __wrap_dead_bury(uint32_t id, uint64_t incarnation);
enum xr_status __real_xr_store_wait(struct xr_store *s, const char *const *keys,
	size_t count, int64_t timeout, struct xr_error *e);
enum xr_status __wrap_xr_store_wait(struct xr_store *s, const char *const *keys,
	size_t count, int64_t timeout, struct xr_error *e);

static int64_t jump;                 /* ns, beyond the clock */
static bool plays;                   /* nothing comes, and no time passes */
static enum xr_there state_of[4];    /* of members 1 to 3 */
static unsigned looks[4], buried[4]; /* of each */
static unsigned waits, looks_when_buried; /* of the first */
static int64_t waited[64];
static void (*on_wait)(void);

int64_t
__wrap_clock_now(void)
{
	return plays ? 1000 + jump : __real_clock_now();
}

enum xr_there
__wrap_agent_there(const char *addresses, uint32_t id, uint64_t incarnation)
{
	cr_expect_str_eq(addresses, "");
	cr_expect_eq(incarnation, 100 + id);
	if (!plays)
		return XR_THERE_UNKNOWN;
	cr_assert_lt(id, 4);
	looks[id]++;
	return state_of[id];
}

void
__wrap_dead_bury(uint32_t id, uint64_t incarnation)
{
	cr_expect_eq(incarnation, 100 + id);
	cr_assert_lt(id, 4);
	if (buried[id]++ == 0)
		looks_when_buried = looks[id];
}

enum xr_status
__wrap_xr_store_wait(struct xr_store *s, const char *const *keys, size_t count,
	int64_t timeout, struct xr_error *e)
{
	if (!plays)
		return __real_xr_store_wait(s, keys, count, timeout, e);
	cr_assert_lt(waits, 64);
	waited[waits++] = timeout;
	jump += timeout;
	if (on_wait != NULL)
		on_wait();
	return XR_E_TIMEOUT;
}
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

/* --- the dead -------------------------------------------------------------------- */

/* One that answers nothing counts as dead after a while, and one that answers begins
 * anew. */
Test(acks, the_dead_are_buried, .init = begin, .fini = end)
{
	static const char *const names[] = { "", "one", "two", "three" };

	for (uint32_t i = 1; i <= 3; i++)
		add(i, names[i]);
	cr_assert(roll_learn(&record));
	state_of[1] = XR_THERE_NO;
	state_of[2] = XR_THERE_SILENT;
	state_of[3] = XR_THERE_YES;
	plays = true;
	cr_expect_eq(acks_await(&record, 1000 + 6 * NS_PER_S, &err),
		XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"3 members have not taken note in time: one, two, three");
	cr_expect_gt(waits, 3);
	cr_expect_eq(waited[0], FIRST_NS);
	cr_expect_eq(waited[1], AGAIN_NS);
	cr_expect_eq(jump, 6 * NS_PER_S);
	cr_expect_eq(waited[waits - 1], 0);
	cr_expect_eq(buried[1], looks[1]);
	cr_expect_gt(buried[1], 0);
	cr_expect_eq(buried[2], 0);
	cr_expect_eq(buried[3], 0);
	/* After 10 s. */
	waits = 0;
	jump = 0;
	cr_expect_eq(acks_await(&record, 1000 + 20 * NS_PER_S, &err),
		XR_E_TIMEOUT);
	cr_expect_gt(buried[2], 0);
	cr_expect_lt(buried[2], looks[2]);
	cr_expect_eq(buried[3], 0);
	plays = false;
}

static void
two_answers(void)
{
	state_of[2] = waits % 6 == 5 ? XR_THERE_UNKNOWN : XR_THERE_SILENT;
}

Test(acks, one_that_answers_now_and_then_is_alive, .init = begin, .fini = end)
{
	add(2, "two");
	cr_assert(roll_learn(&record));
	plays = true;
	on_wait = two_answers;
	cr_expect_eq(acks_await(&record, 1000 + 40 * NS_PER_S, &err),
		XR_E_TIMEOUT);
	cr_expect_eq(buried[2], 0);
	cr_expect_gt(looks[2], 30);
	plays = false;
}

static void
all_answer(void)
{
	if (waits == 2)
		acknowledge(2);
}

Test(acks, who_has_taken_note_meanwhile_is_not_looked_at, .init = begin,
	.fini = end)
{
	add(2, "two");
	cr_assert(roll_learn(&record));
	plays = true;
	state_of[2] = XR_THERE_YES;
	on_wait = all_answer;
	cr_expect_eq(acks_await(&record, INT64_MAX, &err), XR_OK);
	cr_expect_eq(looks[2], 1);
	cr_expect_eq(waits, 2);
	cr_expect_eq(waited[1], AGAIN_NS);
	plays = false;
	cr_expect_not(has_acknowledged(2));
}

static void
two_has_taken_note(void)
{
	acknowledge(2);
}

/* The look after the last wait counts. */
Test(acks, who_takes_note_at_the_deadline_is_not_late, .init = begin,
	.fini = end)
{
	add(2, "two");
	cr_assert(roll_learn(&record));
	plays = true;
	on_wait = two_has_taken_note;
	cr_expect_eq(acks_await(&record, 1000, &err), XR_OK);
	cr_expect_eq(waits, 1);
	cr_expect_eq(waited[0], 0);
	cr_expect_eq(looks[2], 0);
	plays = false;
}

Test(acks, without_memory_nobody_is_waited_for, .init = begin, .fini = end)
{
	add(2, "two");
	cr_assert(roll_learn(&record));
	plays = true;
	for (unsigned at = 1; at <= 4; at++) {
		until_short = at;
		cr_expect_eq(acks_await(&record, INT64_MAX, &err), XR_E_NOMEM);
		cr_expect_eq(until_short, 0);
		cr_expect_str_eq(err.text, "out of memory");
	}
	cr_expect_eq(waits, 0);
	plays = false;
}
