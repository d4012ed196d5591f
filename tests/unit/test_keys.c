/* SPDX-License-Identifier: Apache-2.0 */
/* test_keys.c - the job's store, as it is asked on control sockets. */
#include "tests/unit/keys_rig.h"

TestSuite(keys, .init = begin, .fini = end);

static void
more(int g)
{
	said[0] = '\0';
	keys_more(&job, &guests[g]);
}

Test(keys, each_operation_has_its_answer)
{
	EXPECT_SAID("{'type':'store_set','id':1,'key':'/a','value':'YWJj'}",
		"{'type':'done','id':1}\n");
	EXPECT_SAID("{'type':'store_get','id':2,'key':'/a','seconds':0}",
		"{'type':'store_value','id':2,'value':'YWJj'}\n");
	EXPECT_SAID("{'type':'store_add','id':3,'key':'/n','by':-7}",
		"{'type':'store_sum','id':3,'sum':-7}\n");
	EXPECT_SAID("{'type':'store_check','id':4,'keys':['/a','/n']}",
		"{'type':'done','id':4,'count':2}\n");
	EXPECT_SAID("{'type':'store_wait','id':5,'keys':['/a','\\u002fn']}",
		"{'type':'done','id':5}\n");
	EXPECT_SAID(
		"{'type':'store_compare_set','id':6,'key':'/a','expected':'YWJk','value':'eA=='}",
		"{'type':'store_value','id':6,'value':'YWJj'}\n");
	EXPECT_SAID(
		"{'type':'store_compare_set','id':7,'key':'/a','expected':'YWJj','value':'eA=='}",
		"{'type':'store_value','id':7,'value':'eA=='}\n");
	EXPECT_SAID(
		"{'type':'store_compare_set','id':8,'key':'/b','expected':'eA==','value':'eA=='}",
		"{'type':'store_value','id':8}\n");
	EXPECT_SAID("{'type':'store_compare_set','id':9,'key':'/b','value':''}",
		"{'type':'store_value','id':9,'value':''}\n");
	EXPECT_SAID("{'type':'store_delete','id':10,'key':'/a'}",
		"{'type':'done','id':10,'count':1}\n");
	EXPECT_SAID("{'type':'store_delete','id':11,'key':'/a'}",
		"{'type':'done','id':11,'count':0}\n");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_eq(guests[0].wanted, 0);
}

Test(keys, messages_of_the_store_are_those_from_set_to_delete)
{
	cr_expect(keys_is(CONTROL_STORE_SET));
	cr_expect(keys_is(CONTROL_STORE_DELETE));
	cr_expect_not(keys_is(CONTROL_STORE_SET - 1));
	cr_expect_not(keys_is(CONTROL_STORE_DELETE + 1));
}

Test(keys, a_sum_beyond_2_to_the_53_is_a_text)
{
	EXPECT_SAID(
		"{'type':'store_add','id':1,'key':'/n','by':9007199254740992}",
		"{'type':'store_sum','id':1,'sum':9007199254740992}\n");
	EXPECT_SAID("{'type':'store_add','id':2,'key':'/n','by':1}",
		"{'type':'store_sum','id':2,'sum':'9007199254740993'}\n");
	EXPECT_SAID(
		"{'type':'store_add','id':3,'key':'/m','by':'-9007199254740992'}",
		"{'type':'store_sum','id':3,'sum':-9007199254740992}\n");
	EXPECT_SAID("{'type':'store_add','id':4,'key':'/m','by':-1}",
		"{'type':'store_sum','id':4,'sum':'-9007199254740993'}\n");
	EXPECT_SAID(
		"{'type':'store_add','id':5,'key':'/o','by':'-9223372036854775808'}",
		"{'type':'store_sum','id':5,'sum':'-9223372036854775808'}\n");
	EXPECT_SAID(
		"{'type':'store_add','id':6,'key':'/p','by':'0000000000000000000000000000005'}",
		"{'type':'store_sum','id':6,'sum':5}\n");
}

Test(keys, what_is_no_whole_number_is_not_added)
{
	static const char *const bad[] = { "\"\"", "\"5x\"", "\" 5\"", "\"+5\"",
		"1.5", "1e3", "true", "null", "{}", "\"9223372036854775808\"",
		"\"-9223372036854775809\"", "\"-\"",
		"\"00000000000000000000000000000005\"" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct control m = control_new(CONTROL_STORE_ADD, 1);

		m.store_add.key = "/n";
		m.store_add.by = span_of(bad[i]);
		said[0] = '\0';
		keys_asked(&job, &guests[0], &m);
		expect_refusal(XR_E_INVAL, "store_add: by is not a");
	}
	EXPECT_SAID("{'type':'store_check','id':2,'keys':['/n']}",
		"{'type':'done','id':2,'count':0}\n");
}

static void
ask_many(unsigned count)
{
	struct buf line = { 0 };

	buf_put_text(&line, "{'type':'store_check','id':1,'keys':[");
	for (unsigned i = 0; i < count; i++)
		buf_fmt(&line, "%s'k%u'", i > 0 ? "," : "", i);
	buf_put_text(&line, "]}");
	buf_put(&line, "", 1);
	ask(0, line.data);
	buf_fini(&line);
}

Test(keys, at_most_1024_keys_are_asked_for_at_once)
{
	ask_many(DESK_KEYS_MAX);
	cr_expect_str_eq(said, "{'type':'done','id':1,'count':0}\n");
	ask_many(DESK_KEYS_MAX + 1);
	expect_refusal(XR_E_RANGE, "store: more than 1024 keys");
	ask(0, "{'type':'store_wait','id':1,'keys':{}}");
	expect_refusal(XR_E_PROTO, "store: keys is not an array of");
	ask(0, "{'type':'store_check','id':1,'keys':['a',1]}");
	expect_refusal(XR_E_PROTO, "store: keys is not an array of");
	EXPECT_SAID("{'type':'store_check','id':1,'keys':[]}",
		"{'type':'done','id':1,'count':0}\n");
}

/* --- waiting ---------------------------------------------------------------- */

Test(keys, who_waits_is_held_and_has_the_value_when_it_comes)
{
	ask(0, "{'type':'store_get','id':1,'key':'/a'}");
	ask(0, "{'type':'store_wait','id':2,'keys':['/a','/b'],'seconds':5}");
	cr_expect_str_eq(said, "");
	cr_expect_eq(guests[0].held, 2);
	cr_expect_eq(due.ns, 5 * NS_PER_S);
	ask(1, "{'type':'store_set','id':3,'key':'/a','value':'eA=='}");
	cr_expect_eq(guests[0].wanted, 1);
	ask(1, "{'type':'store_set','id':4,'key':'/b','value':'eA=='}");
	more(0);
	cr_expect_str_eq(said,
		"{'type':'store_value','id':1,'value':'eA=='}\n");
	cr_expect_eq(guests[0].held, 1);
	cr_expect_eq(guests[0].wanted, 2, "there is one more");
	more(0);
	cr_expect_str_eq(said, "{'type':'done','id':2}\n");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_eq(guests[0].wanted, 2);
	/* Nothing is left; and who never asked has nothing. */
	more(0);
	more(2);
	cr_expect_str_eq(said, "");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_null(guests[2].of);
}

Test(keys, so_many_may_be_open_of_one_connection)
{
	char text[100];

	for (int i = 0; i < KEYS_A_GUEST; i++) {
		snprintf(text, sizeof(text),
			"{'type':'store_get','id':%d,'key':'/a'}", i + 1);
		ask(0, text);
		cr_expect_str_eq(said, "", "%d: %s", i, said);
	}
	ask(0, "{'type':'store_get','id':65,'key':'/a'}");
	cr_expect_str_eq(said,
		"65: XR_E_AGAIN: store: 64 gets and waits are open here, at most 64\n");
	ask(1, "{'type':'store_get','id':1,'key':'/a'}");
	cr_expect_str_eq(said, "");
}

Test(keys, its_seed_is_the_kernels_or_of_time_and_place)
{
	now = 0x1234567;
	ask(0, "{'type':'store_get','id':1,'key':'/a'}");
	cr_expect_eq(seed.word[0], 0xababababababababULL);
	cr_expect_eq(seed.word[1], 0xababababababababULL);
	keys_gone(&job, &guests[0]);
	keys_close(&job);
	no_random = true;
	ask(1, "{'type':'store_get','id':1,'key':'/a'}");
	cr_expect_eq(seed.word[0], 0x1234567);
	cr_expect_eq(seed.word[1], (uintptr_t)sup.keys);
}

Test(keys, patience_ends_when_the_timer_fires)
{
	ask(0, "{'type':'store_get','id':1,'key':'/a','seconds':2}");
	ask(1, "{'type':'store_get','id':2,'key':'/a','seconds':9e9}");
	cr_expect_eq(due.ns, 2 * NS_PER_S);
	now += NS_PER_S;
	due.fn(due.ctx);
	cr_expect_eq(guests[0].wanted, 0);
	cr_expect_eq(due.ns, NS_PER_S);
	now += NS_PER_S;
	due.fn(due.ctx);
	cr_expect_eq(guests[0].wanted, 1);
	more(0);
	expect_refusal(XR_E_TIMEOUT, "");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_eq(due.ns, INT64_C(9000000000) * NS_PER_S - 2 * NS_PER_S);
	keys_gone(&job, &guests[1]);
	cr_expect_eq(due.ns, -1, "nobody waits");
}

Test(keys, what_is_due_already_is_due_at_once)
{
	ask(0, "{'type':'store_get','id':1,'key':'/a','seconds':2}");
	now += 5 * NS_PER_S;
	ask(1, "{'type':'store_get','id':2,'key':'/b','seconds':9}");
	cr_expect_eq(due.ns, 0);
}

Test(keys, seconds_are_none_some_or_without_end)
{
	const char *want = refusal(XR_E_INVAL, "store: seconds are below 0");

	EXPECT_SAID("{'type':'store_get','id':1,'key':'/a','seconds':-0.1}",
		want);
	EXPECT_SAID("{'type':'store_wait','id':1,'keys':['/a'],'seconds':-1}",
		want);
	cr_expect_eq(guests[0].held, 0);
	ask(0, "{'type':'store_wait','id':1,'keys':['/a'],'seconds':0}");
	cr_expect_neq(said[0], '\0');
	cr_expect_eq(guests[0].held, 0);
	ask(0, "{'type':'store_get','id':2,'key':'/a'}");
	cr_expect_eq(due.ns, -1);
	ask(0, "{'type':'store_get','id':3,'key':'/a','seconds':9.1e9}");
	cr_expect_eq(due.ns, -1, "it may take as long as it takes");
	ask(0, "{'type':'store_get','id':4,'key':'/a','seconds':0.5}");
	cr_expect_eq(due.ns, NS_PER_S / 2);
	cr_expect_eq(guests[0].held, 3);
}

Test(keys, who_leaves_is_forgotten_and_its_memory_is_given_back)
{
	/* Somebody who never asked. */
	keys_gone(&job, &guests[0]);
	cr_expect_null(sup.keys);
	ask(0, "{'type':'store_get','id':1,'key':'/a','seconds':2}");
	ask(1, "{'type':'store_get','id':2,'key':'/a','seconds':7}");
	watched = guests[0].of;
	cr_assert_not_null(watched);
	freed = 0;
	keys_gone(&job, &guests[0]);
	cr_expect_eq(freed, 1);
	cr_expect_null(guests[0].of);
	cr_expect_eq(due.ns, 7 * NS_PER_S);
	watched = NULL;
	/* What it waited for reaches nobody. */
	ask(2, "{'type':'store_set','id':3,'key':'/a','value':'eA=='}");
	cr_expect_eq(guests[0].wanted, 0);
	cr_expect_eq(guests[1].wanted, 1);
	watched = sup.keys;
	for (int i = 1; i < GUESTS; i++)
		keys_gone(&job, &guests[i]);
	keys_close(&job);
	cr_expect_eq(freed, 2);
	watched = NULL;
}
