/* SPDX-License-Identifier: Apache-2.0 */
/* test_meet.c - meetings that this process collects, whose reports the test makes. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "tests/unit/wire_rig.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/meet_inner.h"

TestSuite(meet, .timeout = 60, .init = wire_begin, .fini = wire_end);

#define HOUR XR_SECONDS(3600)

/* The names of a report, each with its NUL. */
#define NAMES(text) text, sizeof(text)

struct report {
	uint64_t number;
	int64_t timeout;
	bool least;
	const char *names;
	size_t names_len;
};

/* A reference to the LIST of a report; item @bad is a TEXT instead. */
static struct xr_value *
report_of(const struct report *r, struct xr_value *value, int bad)
{
	struct xr_value *items[MEET_ITEMS];

	items[MEET_SET_A] = xr_value_new_u64(1);
	items[MEET_SET_B] = xr_value_new_u64(2);
	items[MEET_NUMBER] = xr_value_new_u64(r->number);
	items[MEET_TIMEOUT] = xr_value_new_i64(r->timeout);
	items[MEET_LEAST] = xr_value_new_bool(r->least);
	items[MEET_NAMES] = xr_value_new_bytes(r->names, r->names_len);
	items[MEET_VALUE] = value;
	if (bad >= 0) {
		xr_value_unref(items[bad]);
		items[bad] = xr_value_new_text("bad", 3);
	}
	return xr_value_new_list_of(items, MEET_ITEMS);
}

static void
send_report(uint32_t from, uint64_t corr, struct xr_value *all)
{
	wire_reply(from, MESSAGE_MEET, corr, all);
}

static void
report(uint32_t from, uint64_t corr, const struct report *r, uint64_t n)
{
	send_report(from, corr, report_of(r, xr_value_new_u64(n), -1));
}

/* The answer, a number; UINT64_MAX: there is none. */
static uint64_t
number_to(uint32_t to, uint64_t corr)
{
	struct xr_value *v = wire_answer(to, corr);
	uint64_t n = UINT64_MAX;

	if (v != NULL)
		xr_value_get_u64(v, &n);
	xr_value_unref(v);
	return n;
}

/* --- reports --------------------------------------------------------------------- */

Test(meet, what_is_no_report_is_refused)
{
	static const struct report good = { 1, HOUR, false, NAMES("one\0two") };
	struct report bad[] = { good, good, good };
	struct xr_value *seven[MEET_ITEMS];

	for (int i = 0; i < MEET_ITEMS - 1; i++) {
		send_report(1, 1, report_of(&good, xr_value_new_nil(), i));
		cr_expect(wire_failed(1, 1, XR_E_INVAL, "that is no report"),
			"item %d", i);
	}
	bad[0].names_len = 0;
	bad[1].names_len--; /* without its last NUL */
	bad[2].timeout = -1;
	for (int i = 0; i < 3; i++) {
		report(1, 1, &bad[i], 0);
		cr_expect(wire_failed(1, 1, XR_E_INVAL, "that is no report"),
			"row %d", i);
	}
	send_report(1, 1, xr_value_new_i64(1));
	cr_expect(wire_failed(1, 1, XR_E_INVAL, "that is no report"));
	for (int i = 0; i < MEET_ITEMS; i++)
		seven[i] = xr_value_new_u64(1);
	send_report(1, 1, xr_value_new_list_of(seven, MEET_ITEMS - 1));
	cr_expect(wire_failed(1, 1, XR_E_INVAL, "that is no report"));
	xr_value_unref(seven[MEET_ITEMS - 1]);
	wire_say(1, MESSAGE_MEET, 1, "x", 1);
	cr_expect(wire_failed(1, 1, XR_E_INVAL, "that is no report"));
	/* Nothing is left of them. */
	cr_expect_eq(meet_expire(INT64_MAX - 1), INT64_MAX);
	cr_expect_eq(wire_left(), 0);
}

Test(meet, a_meeting_is_of_those_it_names_and_once)
{
	static const struct report two = { 1, HOUR, true, NAMES("one\0two") };
	static const struct report other = { 1, HOUR, true, NAMES("two") };

	report(3, 1, &two, 5);
	cr_expect(wire_failed(3, 1, XR_E_INVAL, "the meeting is of others"));
	cr_expect_eq(meet_expire(clock_now()), INT64_MAX);
	/* Nothing is left of it: others may meet. */
	report(2, 1, &other, 6);
	cr_expect_eq(number_to(2, 1), 6);
	report(1, 2, &two, 5);
	cr_expect_neq(meet_expire(clock_now()), INT64_MAX);
	report(3, 3, &two, 5);
	cr_expect(wire_failed(3, 3, XR_E_INVAL, "the meeting is of others"));
	report(1, 4, &two, 4);
	cr_expect(wire_failed(1, 4, XR_E_INVAL,
		"reported twice to one meeting"));
	report(2, 5, &other, 4);
	cr_expect(wire_failed(2, 5, XR_E_INVAL, "the meeting is of others"));
	cr_expect_eq(wire_left(), 0);
	report(2, 6, &two, 7);
	cr_expect_eq(number_to(1, 2), 5);
	cr_expect_eq(number_to(2, 6), 5);
	cr_expect_eq(meet_expire(INT64_MAX - 1), INT64_MAX);
}

/* One that brings no number brings 0. */
Test(meet, the_least_number_is_the_answer)
{
	static const struct report r = { 1, INT64_MAX, true,
		NAMES("one\0two\0three") };
	struct report next = r;

	report(1, 1, &r, 9);
	report(2, 2, &r, 3);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(meet_expire(INT64_MAX - 1), INT64_MAX);
	report(3, 3, &r, 4);
	cr_expect_eq(number_to(1, 1), 3);
	cr_expect_eq(number_to(2, 2), 3);
	cr_expect_eq(number_to(3, 3), 3);
	next.number = 2;
	report(1, 1, &next, 9);
	report(2, 2, &next, 3);
	send_report(3, 3, report_of(&next, xr_value_new_nil(), -1));
	cr_expect_eq(number_to(1, 1), 0);
	cr_expect_eq(number_to(2, 2), 0);
	cr_expect_eq(number_to(3, 3), 0);
}

/* all_to() - the answer is what each brought, by his name. */
static void
all_to(uint32_t to, uint64_t corr)
{
	static const char *const names[] = { "one", "two", "three" };
	struct xr_value *v = wire_answer(to, corr);
	uint64_t n = 0;

	cr_assert_not_null(v);
	cr_assert_eq(xr_value_kind(v), XR_DICT);
	cr_expect_eq(xr_value_count(v), 3);
	for (uint64_t i = 0; i < 3; i++) {
		cr_expect_eq(xr_value_get_u64(xr_value_find(v, names[i],
						      strlen(names[i])),
				     &n),
			XR_OK);
		cr_expect_eq(n, 10 + i);
	}
	xr_value_unref(v);
}

Test(meet, what_all_brought_is_the_answer)
{
	static const struct report r = { 1, HOUR, false,
		NAMES("one\0two\0three") };

	report(2, 2, &r, 11);
	report(3, 3, &r, 12);
	cr_expect_eq(wire_left(), 0);
	report(1, 1, &r, 10);
	for (uint32_t i = 1; i <= 3; i++)
		all_to(i, i);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(meet_expire(INT64_MAX - 1), INT64_MAX);
}

/* --- who does not come ------------------------------------------------------------- */

Test(meet, who_is_late_is_named)
{
	static const struct report r = { 1, HOUR, false,
		NAMES("one\0two\0three") };
	struct report patient = r, next = r;
	int64_t now = clock_now();

	patient.timeout = 3 * HOUR;
	next.number = 2;
	next.timeout = 2 * HOUR;
	report(1, 1, &patient, 1);
	report(2, 2, &r, 2);
	report(3, 3, &next, 3);
	cr_expect_geq(meet_expire(now), now + HOUR);
	cr_expect_eq(wire_left(), 0);
	cr_expect_geq(meet_expire(now + HOUR + HOUR / 2), now + 2 * HOUR);
	cr_expect(wire_failed(1, 1, XR_E_TIMEOUT,
		"these did not come in time: three"));
	cr_expect(wire_failed(2, 2, XR_E_TIMEOUT, "in time: three"));
	cr_expect_eq(wire_left(), 0);
	/* Who comes then hears of it, too. */
	report(3, 4, &r, 3);
	cr_expect(wire_failed(3, 4, XR_E_TIMEOUT, "in time: three"));
	cr_expect_eq(meet_expire(now + 3 * HOUR), INT64_MAX);
	cr_expect(wire_failed(3, 3, XR_E_TIMEOUT,
		"these did not come in time: one, two"));
	cr_expect_eq(wire_left(), 0);
}

#define MANY 25

/* many() - a report of "one" and of others, whose names have 30 bytes. */
static void
many(struct report *r, char *text)
{
	r->names = text;
	text += snprintf(text, 4, "one") + 1;
	for (uint32_t i = 1; i < MANY; i++)
		text += snprintf(text, 40, "%02u-name-of-thirty-bytes-------",
				i) +
			1;
	r->names_len = (size_t)(text - r->names);
}

/* some_named() - an error that names some, each with @word, and counts the others. */
static void
some_named(enum xr_status status, const char *word)
{
	struct xr_value *v = wire_answer(1, 1);
	struct xr_failure f = { .size = sizeof(f) };
	char last[64];
	size_t named = 0;

	cr_assert_eq(xr_value_failure(v, &f), XR_OK);
	cr_expect_eq(f.status, status);
	for (const char *at = f.text; (at = strstr(at, word)) != NULL; at++)
		named++;
	snprintf(last, sizeof(last), " and %zu more", MANY - 1 - named);
	cr_expect(named > 1 && named < MANY - 1);
	cr_expect_str_eq(f.text + strlen(f.text) - strlen(last), last, "%s",
		f.text);
	xr_value_unref(v);
}

Test(meet, of_many_who_do_not_come_some_are_named)
{
	char text[1024];
	struct report r = { 1, HOUR, false, NULL, 0 };
	const char *name;

	many(&r, text);
	/* They are unknown: nobody waits for them. */
	report(1, 1, &r, 1);
	some_named(XR_E_PEER_LOST, "no member of the group");
	name = text + sizeof("one");
	for (uint32_t i = 1; i < MANY; i++, name += strlen(name) + 1)
		cr_assert_not_null(agent_add(&(struct agent_member){ name,
			10 + i, 1, "wire:there", NULL, 0 }));
	r.number = 2;
	report(1, 1, &r, 1);
	cr_expect_null(wire_answer(1, 1));
	meet_expire(clock_now() + 2 * HOUR);
	some_named(XR_E_TIMEOUT, "-name-of-thirty-bytes");
}

Test(meet, who_has_left_is_not_awaited)
{
	static const struct report r = { 1, HOUR, false,
		NAMES("one\0two\0three") };
	struct report next = r;

	report(1, 1, &r, 1);
	next.number = 2;
	report(2, 2, &next, 1);
	report(1, 5, &next, 1);
	agent_lose(wire_peer[2], "on purpose");
	/* What it has reported is taken back; it is not told. */
	cr_expect(wire_failed(1, 5, XR_E_PEER_LOST, "lost two (2)"));
	cr_expect(wire_failed(1, 1, XR_E_PEER_LOST, "lost two (2)"));
	cr_expect_eq(wire_left(), 0);
	report(3, 3, &r, 1);
	cr_expect(wire_failed(3, 3, XR_E_PEER_LOST, "lost two (2)"));
	next.number = 4;
	report(3, 6, &next, 1);
	cr_expect(wire_failed(3, 6, XR_E_PEER_LOST, "lost two (2)"));
	/* Nor one that said that it leaves. */
	peer_gone(wire_peer[1], false);
	next.number = 3;
	next.names = "one\0three";
	next.names_len = sizeof("one\0three");
	report(3, 4, &next, 1);
	cr_expect(wire_failed(3, 4, XR_E_PEER_LOST, "one (1)"));
	/* Who is lost reports in vain. */
	report(2, 7, &next, 1);
	cr_expect_eq(wire_left(), 0);
}

/* Who is waited for is spoken to, so that his end is heard of; of a report that is
 * refused nobody is. */
Test(meet, all_who_are_named_are_reached)
{
	static const struct report r = { 1, HOUR, false,
		NAMES("one\0two\0three") };
	static const struct report two = { 2, HOUR, false, NAMES("one\0two") };

	report(3, 1, &two, 5);
	cr_expect(wire_failed(3, 1, XR_E_INVAL, "the meeting is of others"));
	cr_expect_eq(atomic_load(&wire_peer[1]->state), PEER_NEW);
	cr_expect_eq(atomic_load(&wire_peer[2]->state), PEER_NEW);
	report(3, 2, &r, 5);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(atomic_load(&wire_peer[1]->state), PEER_UP);
	cr_expect_eq(atomic_load(&wire_peer[2]->state), PEER_UP);
}

Test(meet, who_is_not_named_is_not_missed)
{
	static const struct report r = { 1, HOUR, true, NAMES("one\0two") };

	report(1, 1, &r, 5);
	agent_lose(wire_peer[3], "on purpose");
	cr_expect_eq(wire_left(), 0);
	report(2, 2, &r, 4);
	cr_expect_eq(number_to(1, 1), 4);
	cr_expect_eq(number_to(2, 2), 4);
}

/* However many are lost later. */
Test(meet, a_meeting_fails_for_one_reason)
{
	static const struct report r = { 1, HOUR, false,
		NAMES("one\0two\0three") };

	report(1, 1, &r, 5);
	cr_expect_eq(meet_expire(clock_now() + 2 * HOUR), INT64_MAX);
	cr_expect(wire_failed(1, 1, XR_E_TIMEOUT,
		"these did not come in time: two, three"));
	agent_lose(wire_peer[2], "on purpose");
	cr_expect_eq(wire_left(), 0);
	report(3, 2, &r, 5);
	cr_expect(wire_failed(3, 2, XR_E_TIMEOUT,
		"these did not come in time: two, three"));
}

/* names_of() - "one" and two others, of @a and @b bytes. */
static void
names_of(struct report *r, char text[512], size_t a, size_t b)
{
	memset(text, 'x', 512);
	memcpy(text, "one", 4);
	text[4 + a] = '\0';
	text[4 + a + 1] = 'y';
	text[4 + a + 1 + b] = '\0';
	r->names = text;
	r->names_len = 4 + a + 1 + b + 1;
}

/* last_words() - the error that "one" has ends with @words. */
static bool
last_words(const char *words)
{
	struct xr_value *v = wire_answer(1, 1);
	struct xr_failure f = { .size = sizeof(f) };
	size_t len = strlen(words);
	bool is;

	cr_assert_eq(xr_value_failure(v, &f), XR_OK);
	is = strlen(f.text) >= len &&
		strcmp(f.text + strlen(f.text) - len, words) == 0;
	xr_value_unref(v);
	return is;
}

/* The text has room for 400 bytes, of which 40 are for how many more there are. */
Test(meet, a_text_names_as_many_as_it_has_room_for)
{
	static const char tail[] = " is no member of the group";
	const size_t half = 180 - (sizeof(tail) - 1);
	struct report r = { 1, HOUR, false, NULL, 0 };
	char text[512];

	names_of(&r, text, half, half);
	report(1, 1, &r, 1);
	cr_expect(last_words(tail));
	names_of(&r, text, half, half + 1);
	r.number = 2;
	report(1, 1, &r, 1);
	cr_expect(last_words(" and 1 more"));
}

/* A report with other names, while others wait: it ends nothing. */
Test(meet, a_report_of_other_names_changes_nothing)
{
	static const struct report r = { 1, HOUR, true,
		NAMES("one\0two\0three") };
	struct report few = r;

	few.names = "three";
	few.names_len = sizeof("three");
	report(1, 1, &r, 1);
	report(2, 2, &r, 2);
	report(3, 3, &few, 0);
	cr_expect(wire_failed(3, 3, XR_E_INVAL, "the meeting is of others"));
	cr_expect_eq(wire_left(), 0);
	/* All hear of a member that is lost meanwhile, and are not more than are named. */
	report(3, 4, &r, 3);
	cr_expect_eq(number_to(1, 1), 1);
	cr_expect_eq(number_to(2, 2), 1);
	cr_expect_eq(number_to(3, 4), 1);
}

/* --- no memory ---------------------------------------------------------------------- */

Test(meet, a_report_without_memory_is_refused_and_may_come_again)
{
	static struct report r = { 1, HOUR, true, NAMES("one\0two") };
	uint8_t data[256];
	unsigned at = 0, refused = 0;
	bool whole = false;

	while (!whole && at < 60) {
		const struct xr_record record = { .kind = MESSAGE_MEET,
			.flags = MESSAGE_VALUE,
			.corr = ++at };
		struct xr_body body = { .data = data };
		struct xr_value *v;

		r.number = at;
		body.len = wire_encode(report_of(&r, xr_value_new_u64(5), -1),
			data, sizeof(data));
		was_short = false;
		until_short = at;
		meet_on_report(wire_peer[1], &record, &body);
		until_short = 0;
		whole = !was_short;
		v = wire_answer(1, at);
		if (v != NULL) {
			cr_expect_eq(xr_value_kind(v), XR_ERROR);
			xr_value_unref(v);
			refused++;
			report(1, at, &r, 5);
			cr_expect_null(wire_answer(1, at));
		}
		report(2, 2, &r, 7);
		cr_expect_eq(number_to(1, at), 5, "%u", at);
		cr_expect_eq(number_to(2, 2), 5, "%u", at);
	}
	cr_expect(at > 3 && at < 60, "%u", at);
	cr_expect_gt(refused, 2);
}

/* It is told by the next look, which has memory. */
Test(meet, who_is_late_is_told_when_there_is_memory)
{
	static const struct report r = { 1, HOUR, true, NAMES("one\0two") };
	int64_t late = clock_now() + 2 * HOUR;

	report(1, 1, &r, 5);
	until_short = 1;
	meet_expire(late);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(meet_expire(late), INT64_MAX);
	cr_expect(wire_failed(1, 1, XR_E_TIMEOUT,
		"these did not come in time: two"));
	cr_expect_eq(wire_left(), 0);
}
