/* SPDX-License-Identifier: Apache-2.0 */
/* test_prof_events.c - events of profiles: where they go, how they are sorted, and what is
 * sent back of them. */
#include <unistd.h>

#include <sys/syscall.h>

#include "tests/unit/prof_rig.h"

TestSuite(prof_events, .timeout = 60);
TestSuite(prof_calls, .timeout = 60, .init = begin, .fini = end);

/* --- profiles -------------------------------------------------------------------- */

static void
add(struct prof *p, const char *key, int64_t order, uint32_t sub, int64_t stop)
{
	prof_add(p,
		&(struct prof_event){ .key = (char *)key,
			.order = order,
			.sub = sub,
			.end = stop });
}

Test(prof_events, it_is_recorded_until_the_last_profile_is_closed)
{
	struct prof *a, *b;

	cr_expect_not(prof_is_on());
	a = prof_new();
	b = prof_new();
	cr_expect_eq(prof_open_count, 2);
	prof_close(a);
	prof_close(a);
	cr_expect_eq(prof_open_count, 1);
	cr_expect(prof_is_on());
	cr_expect_eq(prof_ref(b), b);
	prof_unref(b);
	cr_expect_eq(prof_open_count, 1);
	prof_unref(b);
	cr_expect_not(prof_is_on());
	prof_unref(a);
	cr_expect_eq(prof_open_count, 0);
	cr_expect_null(prof_ref(NULL));
	prof_unref(NULL);
	until_short = 1;
	cr_expect_null(prof_new());
	cr_expect_eq(prof_open_count, 0);
}

Test(prof_events, they_are_sorted_by_order_then_place_then_end)
{
	static const char *const want[] = { "a", "b", "c", "d", "e", "f", "g" };
	const struct prof_event *e;
	struct prof *p = prof_new();
	size_t count = 7;

	e = prof_sort(p, &count);
	cr_expect_eq(count, 0);
	add(p, "g", INT64_MAX, 0, 0);
	add(p, "f", 2, 1, 9);
	add(p, "d", 1, 2, 7);
	add(p, "c", 1, 2, 8);
	add(p, "b", 1, 1, 4);
	add(p, "e", 2, 0, 1);
	add(p, "a", INT64_MIN, 9, 0);
	e = prof_sort(p, &count);
	cr_expect_eq(count, 7);
	for (size_t i = 0; i < 7; i++)
		cr_expect_str_eq(e[i].key, want[i]);
	cr_expect_eq(prof_lost(p), 0);
	prof_unref(p);
}

Test(prof_events, a_profile_grows_and_says_what_found_no_room)
{
	const struct prof_event *e;
	struct prof *p = prof_new();
	size_t count;

	prof_add(NULL, &(struct prof_event){ .key = (char *)"none" });
	for (int64_t i = 0; i < 32; i++)
		add(p, "k", i, 0, i);
	until_short = 1; /* the key */
	add(p, "k", 100, 0, 0);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(prof_lost(p), 1);
	until_short = 2; /* room for it */
	add(p, "k", 100, 0, 0);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(prof_lost(p), 2);
	for (int64_t i = 32; i < 200; i++)
		add(p, "k", i, 0, i);
	prof_close(p);
	add(p, "late", 0, 0, 0);
	e = prof_sort(p, &count);
	cr_expect_eq(count, 200);
	for (size_t i = 0; i < count; i++)
		cr_expect_eq(e[i].end, (int64_t)i);
	cr_expect_eq(prof_lost(p), 2);
	prof_unref(p);
}

/* --- who records ------------------------------------------------------------------- */

static void *
thread_of(void *arg)
{
	*(uint32_t *)arg = prof_thread();
	return NULL;
}

Test(prof_events, a_thread_has_the_number_of_the_kernel)
{
	uint32_t other = 0;
	pthread_t thread;

	cr_expect_eq(prof_thread(), (uint32_t)syscall(SYS_gettid));
	cr_expect_eq(prof_thread(), (uint32_t)syscall(SYS_gettid));
	cr_assert_eq(pthread_create(&thread, NULL, thread_of, &other), 0);
	pthread_join(thread, NULL);
	cr_expect_neq(other, 0);
	cr_expect_neq(other, prof_thread());
}

Test(prof_events, an_event_goes_to_the_thread_the_call_and_the_process)
{
	struct prof *own = prof_new(), *serving = prof_new();
	struct prof_into into = { own, serving, 77 };
	const struct prof_event *e;
	struct xr_value *inner, *outer;
	size_t count;

	cr_assert_eq(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
	prof_note(&into, "first", 10, 20);
	cr_assert_eq(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
	into.thread = 0;
	prof_note(&into, "second", 30, 40);
	inner = end_of(XR_PROF_PROCESS, 1);
	is_key(inner, 0, "second");
	prof_note(&(struct prof_into){ .thread = 5 }, "third", 50, 60);
	outer = end_of(XR_PROF_PROCESS, 3);
	is_key(outer, 0, "first");
	is_key(outer, 1, "second");
	is_key(outer, 2, "third");
	cr_expect_eq(prof_number(outer, 0, "start"), 10);
	cr_expect_eq(prof_number(outer, 0, "end"), 20);
	cr_expect_eq(prof_number(outer, 0, "worker"), 0);
	cr_expect_eq(prof_number(outer, 0, "thread"), 77);
	cr_expect_eq(prof_number(outer, 1, "thread"), prof_thread());
	cr_expect_eq(prof_number(outer, 2, "thread"), 5);
	prof_note(&into, "fourth", 70, 80);
	for (int i = 0; i < 2; i++) {
		e = prof_sort(i == 0 ? own : serving, &count);
		cr_expect_eq(count, 3);
		cr_expect_str_eq(e[2].key, "fourth");
		cr_expect_eq(e[2].order, 70);
		cr_expect_eq(e[2].start, 70);
		cr_expect_eq(e[2].end, 80);
		cr_expect_not(e[2].remote);
	}
	cr_expect_eq(xr_prof_end(XR_PROF_PROCESS, NULL, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "no profile is recorded");
	prof_unref(own);
	prof_unref(serving);
	xr_value_unref(inner);
	xr_value_unref(outer);
}

Test(prof_events, a_thread_records_one_profile_at_a_time)
{
	struct xr_value *events;

	cr_expect_eq(xr_prof_begin(2, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "a profile with flags 2");
	cr_expect_eq(xr_prof_end(2, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "a profile with flags 2");
	until_short = 1;
	cr_expect_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	cr_expect_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "this thread records a profile already");
	cr_assert_eq(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
	xr_prof_mark_begin("m");
	xr_prof_mark_end();
	events = end_of(XR_PROF_THREAD, 1);
	xr_value_unref(events);
	events = end_of(XR_PROF_PROCESS, 1);
	xr_value_unref(events);
	cr_expect_not(prof_is_on());
	/* Its events are not wanted. */
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	cr_expect_eq(xr_prof_end(XR_PROF_THREAD, NULL, &err), XR_OK);
	cr_expect_eq(xr_prof_end(XR_PROF_THREAD, NULL, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "no profile is recorded");
}

Test(prof_events, a_profile_whose_events_found_no_room_has_none)
{
	struct xr_value *events = NULL;

	cr_expect_eq(prof_worker(), 0); /* what is made once is made now */
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
		for (int k = 0; k < 3; k++) {
			xr_prof_mark_begin("m");
			until_short = k < 2;
			xr_prof_mark_end();
			until_short = 0;
		}
		cr_expect_eq(xr_prof_end(XR_PROF_THREAD,
				     i == 0 ? &events : NULL, &err),
			XR_E_NOMEM);
		cr_expect_str_eq(err.text,
			"2 events found no room in the profile");
		cr_expect_null(events);
	}
}

/* A key for which there is none is no text any more. */
Test(prof_events, events_without_memory_are_not_given)
{
	struct xr_value *events = NULL;
	bool whole = false;
	unsigned at = 0, failed = 0;

	while (!whole && at < 60) {
		enum xr_status status;

		cr_assert_eq(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
		prof_note_task(&(struct prof_event){ .key = (char *)"k",
			.open = 1,
			.items = 1 });
		was_short = false;
		until_short = ++at;
		status = xr_prof_end(XR_PROF_PROCESS, &events, &err);
		until_short = 0;
		whole = !was_short;
		if (status == XR_OK) {
			cr_expect_eq(xr_value_count(events), 1);
			cr_expect_eq(xr_value_count(xr_value_at(events, 0)), 8);
			is_key(events, 0, whole ? "k" : "?");
			xr_value_unref(events);
			events = NULL;
		} else {
			failed++;
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_str_eq(err.text, "out of memory");
			cr_expect_null(events);
		}
	}
	cr_expect(failed > 8 && at < 60, "%u of %u", failed, at);
}

/* --- marks --------------------------------------------------------------------------- */

Test(prof_events, marks_that_nobody_records_keep_the_others_in_order)
{
	struct xr_value *events;

	xr_prof_mark_end();
	xr_prof_mark_end();
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	xr_prof_mark_begin("outer");
	xr_prof_mark_begin(NULL);
	xr_prof_mark_begin("inner");
	xr_prof_mark_end();
	xr_prof_mark_end(); /* of the one without a key */
	until_short = 1;
	xr_prof_mark_begin("no memory");
	cr_expect_eq(until_short, 0);
	xr_prof_mark_end();
	events = end_of(XR_PROF_THREAD, 1);
	is_key(events, 0, "inner");
	xr_value_unref(events);
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	xr_prof_mark_end(); /* it began in another profile */
	xr_prof_mark_end();
	events = end_of(XR_PROF_THREAD, 1);
	is_key(events, 0, "outer");
	xr_value_unref(events);
}

/* --- calls here ------------------------------------------------------------------------ */

static struct question
question(void)
{
	return (struct question){ .to = wire_peer[1],
		.method = method_get("f") };
}

static void *
close_call(void *c)
{
	prof_call_close(c);
	return NULL;
}

Test(prof_calls, a_call_is_of_the_thread_that_began_it)
{
	struct prof *serving = prof_new();
	struct question q = question();
	const struct prof_event *e;
	struct xr_value *events;
	struct prof_call *c;
	pthread_t thread;
	size_t count;

	until_short = 1;
	cr_expect_null(prof_call_open(&q, 5, "sync"));
	c = prof_call_open(&q, 5, "sync");
	cr_expect_not(prof_call_travels(c));
	prof_call_close(c);
	prof_call_close(NULL);
	prof_into()->serving = serving;
	c = prof_call_open(&q, 5, "sync");
	cr_expect(prof_call_travels(c));
	prof_call_close(c);
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	c = prof_call_open(&q, 5, "async");
	atomic_store(&now, 1500);
	cr_assert_eq(pthread_create(&thread, NULL, close_call, c), 0);
	pthread_join(thread, NULL);
	prof_into()->serving = NULL;
	c = prof_call_open(&q, 6, "async");
	cr_expect(prof_call_travels(c));
	prof_call_close(c);
	events = end_of(XR_PROF_THREAD, 2);
	cr_expect_eq(prof_number(events, 0, "thread"), prof_thread());
	cr_expect_eq(prof_number(events, 0, "start"), 1000);
	cr_expect_eq(prof_number(events, 0, "end"), 1500);
	xr_value_unref(events);
	prof_close(serving);
	e = prof_sort(serving, &count);
	cr_expect_eq(count, 2);
	cr_expect_str_eq(e[0].key, "rpc_async#f(self -> one)");
	cr_expect_str_eq(e[1].key, "rpc_sync#f(self -> one)");
	prof_unref(serving);
}

/* One event, of @key. */
static void
arrive(uint32_t from, uint64_t corr, const char *key, size_t len)
{
	const struct xr_record record = { .kind = MESSAGE_EVENTS,
		.corr = corr };
	static struct sent s;
	struct xr_body body;
	uint32_t one = 1;

	s.len = 0;
	put(&s, &one, sizeof(one));
	put_event(&s, 10, key, (uint16_t)len);
	body = (struct xr_body){ .data = s.data, .len = s.len };
	prof_arrived(wire_peer[from], &record, &body);
}

Test(prof_calls, what_came_back_is_of_its_call_and_no_other)
{
	struct prof *serving = prof_new();
	struct question q = question();
	struct prof_call *a, *b;
	const struct prof_event *e;
	struct xr_value *events;
	size_t count;

	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	prof_into()->serving = serving;
	a = prof_call_open(&q, 5, "sync");
	atomic_store(&now, 2000);
	b = prof_call_open(&q, 5 + 64, "sync");
	arrive(1, 5, "x", 1);
	arrive(1, 5 + 64, "y", 1);
	arrive(1, 5 + 128, "z", 1);
	arrive(2, 5, "z", 1);
	arrive(1, 5, "v", 1);
	until_short = 1;
	arrive(1, 5, "short", 5);
	cr_expect_eq(until_short, 0);
	prof_call_close(b);
	prof_call_close(a);
	prof_into()->serving = NULL;
	events = end_of(XR_PROF_THREAD, 5);
	is_key(events, 0, "rpc_sync#f(self -> one)");
	is_key(events, 1, "rpc_sync#f(self -> one)#remote_op: x");
	is_key(events, 2, "rpc_sync#f(self -> one)#remote_op: v");
	is_key(events, 3, "rpc_sync#f(self -> one)");
	is_key(events, 4, "rpc_sync#f(self -> one)#remote_op: y");
	cr_expect_eq(prof_number(events, 1, "start"), 10);
	cr_expect_eq(prof_number(events, 1, "end"), 15);
	cr_expect_eq(prof_number(events, 1, "worker"), 8);
	cr_expect_eq(prof_number(events, 1, "thread"), 99);
	xr_value_unref(events);
	prof_close(serving);
	e = prof_sort(serving, &count);
	cr_expect_eq(count, 5);
	cr_expect(e[1].remote);
	cr_expect_eq(e[1].order, 1000);
	cr_expect_eq(e[1].sub, 1);
	cr_expect_eq(e[2].sub, 2);
	cr_expect_eq(e[4].order, 2000);
	cr_expect_eq(e[4].sub, 1);
	cr_expect_not(e[0].remote);
	prof_unref(serving);
}

Test(prof_calls, a_key_that_came_back_has_at_most_4095_bytes)
{
	static char key[5000];
	struct question q = question();
	struct prof_call *c;

	memset(key, 'k', sizeof(key));
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	c = prof_call_open(&q, 5, "sync");
	arrive(1, 5, key, 4096);
	arrive(1, 5, key, 4095);
	arrive(1, 5, key, 0);
	prof_call_close(c);
	xr_value_unref(end_of(XR_PROF_THREAD, 3));
}
