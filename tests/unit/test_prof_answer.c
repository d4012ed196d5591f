/* SPDX-License-Identifier: Apache-2.0 */
/* test_prof_answer.c - what ran for the calls of others, and is sent back; traces. */
#include <unistd.h>

#include <sys/syscall.h>

#include "tests/unit/prof_rig.h"

TestSuite(prof_answer, .timeout = 60);
TestSuite(prof_answer_calls, .timeout = 60, .init = begin, .fini = end);

/* --- calls of others ---------------------------------------------------------------------- */

static struct func function = { .f = { .name = "served" } };

Test(prof_answer_calls, what_a_function_records_is_not_the_threads)
{
	struct prof *serving = prof_new();
	struct xr_call kept = { .began = 0 },
		       call = { .prof = serving, .kept = &kept };
	struct prof_into before;
	struct prof_run run;
	struct xr_value *events;

	cr_assert_eq(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	prof_into()->thread = 55;
	before = *prof_into();
	atomic_store(&now, 3000);
	prof_run_begin(&run, &call);
	cr_expect_eq(call.began, 3000);
	cr_expect_eq(kept.began, 3000);
	cr_expect_null(prof_into()->own);
	cr_expect_eq(prof_into()->serving, serving);
	cr_expect_eq(prof_into()->thread, 0);
	/* One that it does not end. */
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	cr_expect_eq(prof_open_count, 4);
	atomic_store(&now, 4000);
	prof_run_end(&run, "served");
	cr_expect_eq(prof_open_count, 3);
	cr_expect_eq(prof_into()->own, before.own);
	cr_expect_null(prof_into()->serving);
	cr_expect_eq(prof_into()->thread, 55);
	xr_value_unref(end_of(XR_PROF_THREAD, 0));
	events = end_of(XR_PROF_PROCESS, 1);
	is_key(events, 0, "served");
	cr_expect_eq(prof_number(events, 0, "start"), 3000);
	cr_expect_eq(prof_number(events, 0, "end"), 4000);
	cr_expect_eq(prof_number(events, 0, "thread"), prof_thread());
	xr_value_unref(events);
	/* Without a copy of the call. */
	call.kept = NULL;
	prof_run_begin(&run, &call);
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	prof_run_left();
	cr_expect_eq(prof_open_count, 1);
	cr_expect_null(prof_into()->own);
	cr_expect_null(prof_into()->serving);
	prof_run_left();
	prof_unref(serving);
	cr_expect_not(prof_is_on());
}

/* answered() - what peer one is sent of the events of @p; takes it. */
static const struct wire_message *
answered(struct prof *p, const struct func *func, int64_t began)
{
	struct xr_call call = { .prof = p,
		.peer = wire_peer[1],
		.corr = 9,
		.func = func,
		.began = began };
	const struct wire_message *m;

	prof_answer(&call);
	prof_unref(p);
	m = wire_sent(MESSAGE_EVENTS, 1);
	cr_expect_eq(wire_left(), 0);
	if (m != NULL)
		cr_expect_eq(m->record.corr, 9);
	return m;
}

static struct prof *
with(const char *key, int64_t order)
{
	struct prof *p = prof_new();

	prof_add(p,
		&(struct prof_event){ .key = (char *)key,
			.start = 10,
			.end = 15,
			.order = order,
			.worker = 8,
			.thread = 99 });
	return p;
}

Test(prof_answer_calls, what_ran_is_sent_back_in_order)
{
	const struct wire_message *m;
	struct sent want = { .len = 0 };
	const int64_t times[2] = { 900, 1000 };
	const uint32_t two = 2, where[2] = { 0, prof_thread() };
	const uint16_t len = 6;
	struct prof *p;

	put(&want, &two, sizeof(two));
	put(&want, times, sizeof(times));
	put(&want, where, sizeof(where));
	put(&want, &len, sizeof(len));
	put(&want, "served", 6);
	put_event(&want, 10, "inner", 5);
	m = answered(with("inner", 901), &function, 900);
	cr_assert_not_null(m);
	cr_expect_eq(m->len, want.len);
	cr_expect_eq(memcmp(m->data, want.data, want.len), 0);
	/* One that has not begun, or is no function, is not in it. */
	for (int i = 0; i < 2; i++) {
		m = answered(with("inner", 901), i == 0 ? &function : NULL,
			i == 0 ? 0 : 900);
		cr_assert_not_null(m);
		cr_expect_eq(m->len, 4 + 26 + 5);
		cr_expect_eq(m->data[0], 1);
	}
	cr_expect_null(answered(prof_new(), &function, 0));
	/* Without memory nothing is. */
	p = with("k", 0);
	until_short = 1;
	cr_expect_null(answered(p, NULL, 0));
	cr_expect_eq(until_short, 0);
}

Test(prof_answer_calls, a_long_key_is_sent_up_to_its_last_whole_character)
{
	static const struct {
		size_t as;        /* before the character */
		const char *then; /* and what follows */
		size_t sent;
	} row[] = {
		{ 4094, "", 4094 },
		{ 4095, "", 4095 },
		{ 4095, "b", 4095 },
		{ 4094, "\xc3\xa9", 4094 },
		{ 4093, "\xc3\xa9", 4095 },
		{ 4093, "\xc3\xa9x", 4095 },
		{ 4093, "\xe2\x82\xac", 4093 },
		{ 4092, "\xe2\x82\xac", 4095 },
		{ 4095, "\xe2\x82\xac", 4095 },
	};
	static char key[8000];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct wire_message *m;
		uint16_t len;

		memset(key, 'a', row[i].as);
		snprintf(key + row[i].as, 8, "%s", row[i].then);
		m = answered(with(key, 0), NULL, 0);
		cr_assert_not_null(m);
		memcpy(&len, m->data + 4 + 24, sizeof(len));
		cr_expect_eq(len, row[i].sent, "row %zu: %u", i, len);
		cr_expect_eq(m->len, 4 + 26 + row[i].sent);
		cr_expect_eq(memcmp(m->data + 30, key, len), 0);
	}
}

/* Of many as many as fit into 4 MiB, and the one that is over. */
Test(prof_answer_calls, as_many_are_sent_as_there_is_room_for)
{
	const struct wire_message *m;
	static char key[4096];
	struct prof *p;
	uint32_t n;

	memset(key, 'a', 4095);
	p = with(key, 0);
	for (int i = 1; i < 1100; i++)
		prof_add(p, &(struct prof_event){ .key = key });
	m = answered(p, NULL, 0);
	cr_assert_not_null(m);
	memcpy(&n, m->data, sizeof(n));
	cr_expect_eq(n, 1018);
	cr_expect_eq(m->len, 4 + 1018 * (26 + 4095));
}

/* --- traces ----------------------------------------------------------------------------------- */

static struct xr_value *
event(const char *key, int64_t start, int64_t stop, int64_t worker)
{
	struct xr_value *d = xr_value_new_dict();

	xr_value_put(d, "key", 3, xr_value_new_text(key, strlen(key)));
	xr_value_put(d, "start", 5, xr_value_new_i64(start));
	xr_value_put(d, "end", 3, xr_value_new_i64(stop));
	xr_value_put(d, "worker", 6, xr_value_new_i64(worker));
	xr_value_put(d, "thread", 6, xr_value_new_i64(4));
	return d;
}

Test(prof_answer, a_trace_has_remote_events_and_names_each_worker_once)
{
	struct xr_value *events = xr_value_new_list(), *json = NULL,
			*remote = event("r: s: t", 1500, 2750, 2);
	size_t len;

	xr_value_put(remote, "remote", 6, xr_value_new_bool(true));
	xr_value_put(remote, "open", 4, xr_value_new_i64(0));
	xr_value_append(events, event("a", 0, 1, 1));
	xr_value_append(events, remote);
	xr_value_append(events, event("b", 1, 1, 1));
	cr_assert_eq(xr_prof_trace(events, &json, &err), XR_OK);
	cr_expect_str_eq(xr_value_data(json, &len),
		"{\"traceEvents\":["
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"worker 1\"}},"
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":2,\"args\":{\"name\":\"worker 2\"}},"
		"{\"name\":\"a\",\"cat\":\"local\",\"ph\":\"X\",\"ts\":0,\"dur\":0.001,\"pid\":1,\"tid\":4},"
		"{\"name\":\"r: s: t\",\"cat\":\"remote\",\"ph\":\"X\",\"ts\":1.5,\"dur\":1.25,\"pid\":2,\"tid\":4},"
		"{\"name\":\"r\",\"ph\":\"C\",\"ts\":2.75,\"pid\":2,\"args\":{\"open\":0}},"
		"{\"name\":\"b\",\"cat\":\"local\",\"ph\":\"X\",\"ts\":0.001,\"dur\":0,\"pid\":1,\"tid\":4}"
		"],\"displayTimeUnit\":\"ns\"}");
	xr_value_unref(json);
	xr_value_unref(events);
}

static unsigned
count_in(const struct xr_value *json, const char *what)
{
	size_t len;
	const char *at = xr_value_data(json, &len);
	unsigned n = 0;

	while ((at = strstr(at, what)) != NULL) {
		at += strlen(what);
		n++;
	}
	return n;
}

Test(prof_answer, a_trace_names_the_first_64_workers)
{
	struct xr_value *events = xr_value_new_list(), *json = NULL;

	for (int64_t i = 0; i < 70; i++)
		xr_value_append(events, event("k", i, i, i));
	cr_assert_eq(xr_prof_trace(events, &json, &err), XR_OK);
	cr_expect_eq(count_in(json, "process_name"), 64);
	cr_expect_eq(count_in(json, "\"worker 63\""), 1);
	cr_expect_eq(count_in(json, "\"worker 64\""), 0);
	cr_expect_eq(count_in(json, "\"ph\":\"X\""), 70);
	cr_expect_eq(count_in(json, "\"pid\":69,\"tid\""), 1);
	xr_value_unref(json);
	xr_value_unref(events);
}

/* Each of them is needed. */
Test(prof_answer, an_event_has_a_key_a_start_and_an_end)
{
	static const char *const needed[] = { "key", "start", "end" };
	struct xr_value *json = NULL;

	for (size_t i = 0; i < 3; i++) {
		struct xr_value *e = event("k", 1, 2, 3), *events;

		xr_value_put(e, needed[i], strlen(needed[i]),
			xr_value_new_nil());
		events = xr_value_new_list_of(&e, 1);
		cr_expect_eq(xr_prof_trace(events, &json, &err), XR_E_INVAL);
		cr_expect_str_eq(err.text, "item 0 is no event of a profile");
		xr_value_unref(events);
	}
	cr_expect_null(json);
}
