/* SPDX-License-Identifier: Apache-2.0 */
/* test_prof.c - what profiles record, and what they make of what came back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <xrun/prof.h>

#include "tests/unit/prof_number.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/method.h"
#include "worker/rpc/prof.h"

/* This process is worker 3, called a; there is b, and no way to it. */
static struct peer *
begin(void)
{
	const struct agent_wish wish = {
		.name = "a",
		.id = 3,
		.incarnation = 1,
		.threads = 1,
		.timeout = INT64_MAX,
	};
	struct xr_error err = { 0 };
	struct peer *b;

	cr_assert_eq(agent_open(&wish, &err), XR_OK, "%s", err.text);
	agent_begin();
	b = agent_add(&(struct agent_member){ "b", 7, 1, "", NULL, 0 });
	cr_assert_not_null(b);
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	return b;
}

static struct xr_value *
end(void)
{
	struct xr_value *events = NULL;
	struct xr_error err = { 0 };

	cr_assert_eq(xr_prof_end(XR_PROF_THREAD, &events, &err), XR_OK, "%s",
		err.text);
	return events;
}

static void
expect_key(const struct xr_value *events, size_t i, const char *want)
{
	const struct xr_value *e = xr_value_at(events, i);
	size_t len;
	const char *key;

	cr_assert_not_null(e, "event %zu", i);
	key = xr_value_data(xr_value_find(e, "key", 3), &len);
	cr_expect_str_eq(key, want);
}

static int64_t
worker_of(const struct xr_value *events, size_t i)
{
	int64_t id = -1;

	xr_value_get_i64(xr_value_find(xr_value_at(events, i), "worker", 6),
		&id);
	return id;
}

static void
call(const struct question *q, const char *mode)
{
	struct prof_call *c = prof_call_open(q, 1, mode);

	cr_assert_not_null(c);
	cr_expect(prof_call_travels(c));
	prof_call_close(c);
}

Test(prof, AC_P1_a_key_has_the_mode_the_function_and_both_workers)
{
	struct question q = { .to = begin(), .method = method_get("f") };
	struct xr_value *events;

	call(&q, "sync");
	call(&q, "async");
	q.flags = MESSAGE_REMOTE;
	call(&q, "async");
	q.flags = 0;
	q.method = NULL;
	call(&q, "sync");
	events = end();
	cr_expect_eq(xr_value_count(events), 4);
	expect_key(events, 0, "rpc_sync#f(a -> b)");
	expect_key(events, 1, "rpc_async#f(a -> b)");
	expect_key(events, 2, "rpc_remote#f(a -> b)");
	expect_key(events, 3, "to_here#(a)->(b)");
	cr_expect_eq(worker_of(events, 0), 3);
	xr_value_unref(events);
	agent_close(NULL, NULL);
}

/* --- what comes back ------------------------------------------------------ */

struct sent {
	uint8_t data[256];
	size_t len;
};

static void
put(struct sent *s, const void *data, size_t len)
{
	memcpy(s->data + s->len, data, len);
	s->len += len;
}

static void
put_event(struct sent *s, uint32_t worker, const char *key)
{
	const int64_t times[2] = { 10, 20 };
	const uint32_t where[2] = { worker, 99 };
	uint16_t len = (uint16_t)strlen(key);

	put(s, times, sizeof(times));
	put(s, where, sizeof(where));
	put(s, &len, sizeof(len));
	put(s, key, len);
}

static struct sent
two_events(void)
{
	const uint32_t count = 2;
	struct sent s = { .len = 0 };

	put(&s, &count, sizeof(count));
	put_event(&s, 7, "f");
	put_event(&s, 8, "rpc_sync#g(b -> c)#remote_op: g");
	return s;
}

/* What @from says of call @corr, of which @len bytes came. */
static void
arrive(struct peer *from, uint64_t corr, const struct sent *s, size_t len)
{
	/* Not a byte more can be read. */
	void *copy = malloc(len > 0 ? len : 1);
	const struct xr_record record = { .kind = MESSAGE_EVENTS,
		.corr = corr };
	const struct xr_body body = { .data = copy, .len = len };

	memcpy(copy, s->data, len);
	prof_arrived(from, &record, &body);
	free(copy);
}

Test(prof, AC_P3_what_came_back_stands_behind_its_call_with_its_key_in_front)
{
	struct question q = { .to = begin(), .method = method_get("f") };
	struct prof_call *c = prof_call_open(&q, 5, "sync");
	const struct sent s = two_events();
	struct xr_value *events;
	bool remote = false;

	arrive(q.to, 6, &s, s.len);
	arrive(agent_self(), 5, &s, s.len);
	arrive(q.to, 5, &s, s.len);
	prof_call_close(c);
	arrive(q.to, 5, &s, s.len);
	xr_prof_mark_begin("later");
	xr_prof_mark_end();
	events = end();
	cr_assert_eq(xr_value_count(events), 4);
	expect_key(events, 0, "rpc_sync#f(a -> b)");
	expect_key(events, 1, "rpc_sync#f(a -> b)#remote_op: f");
	expect_key(events, 2,
		"rpc_sync#f(a -> b)#remote_op: rpc_sync#g(b -> c)#remote_op: g");
	expect_key(events, 3, "later");
	cr_expect_eq(worker_of(events, 1), 7);
	cr_expect_eq(worker_of(events, 2), 8);
	xr_value_get_bool(xr_value_find(xr_value_at(events, 1), "remote", 6),
		&remote);
	cr_expect(remote);
	xr_value_unref(events);
	agent_close(NULL, NULL);
}

Test(prof, what_is_cut_short_gives_what_is_whole)
{
	struct question q = { .to = begin(), .method = method_get("f") };
	const struct sent s = two_events();
	struct prof_call *c;
	struct xr_value *events;
	struct xr_error err;

	for (size_t len = 0; len <= s.len; len++) {
		c = prof_call_open(&q, 5, "sync");
		arrive(q.to, 5, &s, len);
		prof_call_close(c);
		events = end();
		cr_expect_eq(xr_value_count(events),
			1 + (len >= 4 + 27) + (len == s.len), "%zu bytes", len);
		xr_value_unref(events);
		cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	}
	xr_value_unref(end());
	agent_close(NULL, NULL);
}

Test(prof, a_key_that_is_no_text_is_a_question_mark)
{
	struct question q = { .to = begin(), .method = method_get("f") };
	struct xr_value *events;

	xr_prof_mark_begin("\xff\xfe");
	xr_prof_mark_end();
	events = end();
	(void)q;
	cr_assert_eq(xr_value_count(events), 1);
	expect_key(events, 0, "?");
	xr_value_unref(events);
	agent_close(NULL, NULL);
}

/* --- marks ---------------------------------------------------------------- */

Test(prof, marks_that_began_before_a_profile_are_not_in_it)
{
	struct xr_value *events;
	struct xr_error err = { 0 };

	xr_prof_mark_end(); /* of none */
	xr_prof_mark_begin("before");
	cr_assert_eq(xr_prof_begin(XR_PROF_THREAD, &err), XR_OK);
	xr_prof_mark_begin("outer");
	xr_prof_mark_begin("inner");
	xr_prof_mark_end();
	xr_prof_mark_end();
	xr_prof_mark_end();
	xr_prof_mark_begin("open");
	events = end();
	xr_prof_mark_end();
	cr_assert_eq(xr_value_count(events), 2);
	expect_key(events, 0, "outer");
	expect_key(events, 1, "inner");
	xr_value_unref(events);
	cr_expect_not(prof_is_on());
}

Test(prof, flags_that_there_are_not_are_refused)
{
	struct xr_error err = { 0 };

	cr_expect_eq(xr_prof_begin(2, &err), XR_E_INVAL);
	cr_expect_eq(xr_prof_end(2, NULL, &err), XR_E_INVAL);
	cr_expect_eq(xr_prof_end(XR_PROF_THREAD, NULL, &err), XR_E_STATE);
	cr_expect_eq(xr_prof_end(XR_PROF_PROCESS, NULL, &err), XR_E_STATE);
}

/* --- profiles of a process ------------------------------------------------ */

static int flushes;

static void
flush(void)
{
	flushes++;
	prof_note_items("late", 9000, 0);
}

/* Two tasks of a pool and the length of a queue. */
static struct xr_value *
events_of_process(void)
{
	struct xr_value *events = NULL;
	struct xr_error err = { 0 };

	cr_assert_eq(xr_prof_begin(XR_PROF_PROCESS, &err), XR_OK);
	prof_note_task(&(struct prof_event){
		.key = (char *)"p: f",
		.start = 4000,
		.end = 7500,
		.thread = 22,
		.open = 4,
	});
	prof_note_task(&(struct prof_event){
		.key = (char *)"g",
		.start = 1000,
		.end = 2000,
	});
	prof_note_items("queue", 5000, 6);
	cr_assert_eq(xr_prof_end(XR_PROF_PROCESS, &events, &err), XR_OK);
	return events;
}

Test(prof, tasks_and_queues_are_events_of_the_process)
{
	struct xr_value *events;

	prof_on_end(flush);
	events = events_of_process();
	cr_expect_eq(flushes, 1);
	cr_assert_eq(xr_value_count(events), 4);
	expect_key(events, 0, "g");
	cr_expect_eq(prof_number(events, 0, "start"), 1000);
	cr_expect_eq(prof_number(events, 0, "end"), 2000);
	cr_expect_eq(prof_number(events, 0, "worker"), 0);
	cr_expect_eq(prof_number(events, 0, "thread"), prof_thread());
	cr_expect_eq(prof_number(events, 0, "open"), -1);
	cr_expect_eq(prof_number(events, 0, "items"), -1);
	expect_key(events, 1, "p: f");
	cr_expect_eq(prof_number(events, 1, "thread"), 22);
	cr_expect_eq(prof_number(events, 1, "open"), 3);
	cr_expect_eq(prof_number(events, 1, "items"), -1);
	expect_key(events, 2, "queue");
	cr_expect_eq(prof_number(events, 2, "start"), 5000);
	cr_expect_eq(prof_number(events, 2, "end"), 5000);
	cr_expect_eq(prof_number(events, 2, "items"), 6);
	cr_expect_eq(prof_number(events, 2, "open"), -1);
	expect_key(events, 3, "late");
	cr_expect_eq(prof_number(events, 3, "items"), 0);
	xr_value_unref(events);
	prof_on_end(NULL);
}

Test(prof, tasks_and_queues_have_counters_in_a_trace)
{
	struct xr_value *events = events_of_process(), *json = NULL;
	struct xr_error err = { 0 };
	char want[1024];
	size_t len;

	cr_assert_eq(xr_prof_trace(events, &json, &err), XR_OK);
	snprintf(want, sizeof(want),
		"{\"traceEvents\":["
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"worker 0\"}},"
		"{\"name\":\"g\",\"cat\":\"local\",\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":0,\"tid\":%u},"
		"{\"name\":\"p: f\",\"cat\":\"local\",\"ph\":\"X\",\"ts\":4,\"dur\":3.5,\"pid\":0,\"tid\":22},"
		"{\"name\":\"p\",\"ph\":\"C\",\"ts\":7.5,\"pid\":0,\"args\":{\"open\":3}},"
		"{\"name\":\"queue\",\"ph\":\"C\",\"ts\":5,\"pid\":0,\"args\":{\"items\":6}}"
		"],\"displayTimeUnit\":\"ns\"}",
		prof_thread());
	cr_expect_str_eq(xr_value_data(json, &len), want);
	xr_value_unref(json);
	xr_value_unref(events);
}

Test(prof, what_is_no_list_of_events_has_no_trace)
{
	struct xr_value *events = events_of_process(), *json = NULL;
	struct xr_error err = { 0 };

	cr_expect_eq(xr_prof_trace(NULL, &json, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "no events of a profile");
	cr_expect_eq(xr_prof_trace(xr_value_at(events, 0), &json, &err),
		XR_E_INVAL);
	cr_expect_str_eq(err.text, "no events of a profile");
	cr_assert_eq(xr_value_append(events, xr_value_new_nil()), XR_OK);
	cr_expect_eq(xr_prof_trace(events, &json, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "item 3 is no event of a profile");
	cr_expect_null(json);
	xr_value_unref(events);
}
