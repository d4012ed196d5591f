/* SPDX-License-Identifier: Apache-2.0 */
/* test_faulty.c - which messages fail on purpose, as XRUN_FAULT and options say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"

static struct fault_rules rules;
static struct xr_error err;

static enum xr_status
say(const char *text)
{
	rules.count = 0;
	err.text[0] = '\0';
	return fault_read(&rules, text, &err);
}

Test(faulty, what_is_said_is_a_rule_each)
{
	cr_assert_eq(
		say("fail:REQUEST:3,delay:CALL:1.5,drop:REPLY,dup:MEET:1,delay:ERROR:20ms"),
		XR_OK, "%s", err.text);
	cr_assert_eq(rules.count, 5);
	cr_expect_eq(rules.rule[0].what, FAULT_FAIL);
	cr_expect_eq(rules.rule[0].kind, MESSAGE_REQUEST);
	cr_expect_eq(rules.rule[0].count, 3);
	cr_expect_eq(rules.rule[1].what, FAULT_DELAY);
	cr_expect_eq(rules.rule[1].kind, MESSAGE_REQUEST);
	cr_expect_eq(rules.rule[1].delay, INT64_C(1500000000));
	cr_expect_eq(rules.rule[2].what, FAULT_DROP);
	cr_expect_eq(rules.rule[2].count, FAULT_ALWAYS);
	cr_expect_eq(rules.rule[3].what, FAULT_DUP);
	cr_expect_eq(rules.rule[4].delay, 20000000);
}

Test(faulty, a_kind_has_its_number_and_flags)
{
	static const struct {
		const char *name;
		uint8_t kind, flags, flags_are;
	} row[] = {
		{ "REQUEST", MESSAGE_REQUEST, 0, 0 },
		{ "ONEWAY", MESSAGE_ONEWAY, 0, 0 },
		{ "GUEST", MESSAGE_GUEST, 0, 0 },
		{ "RREF_CONFIRM", MESSAGE_RREF_CONFIRM, 0, 0 },
		{ "CALL", MESSAGE_REQUEST, 0, 0 },
		{ "PYTHON_CALL", MESSAGE_REQUEST, MESSAGE_REMOTE, 0 },
		{ "SCRIPT_CALL", MESSAGE_REQUEST, MESSAGE_REMOTE, 0 },
		{ "PYTHON_REMOTE_CALL", MESSAGE_REQUEST, MESSAGE_REMOTE,
			MESSAGE_REMOTE },
		{ "SCRIPT_REMOTE_CALL", MESSAGE_REQUEST, MESSAGE_REMOTE,
			MESSAGE_REMOTE },
		{ "PYTHON_RREF_FETCH_CALL", MESSAGE_RREF_FETCH, 0, 0 },
		{ "SCRIPT_RREF_FETCH_CALL", MESSAGE_RREF_FETCH, 0, 0 },
		{ "RREF_FORK_REQUEST", MESSAGE_RREF_FORK_REQUEST, 0, 0 },
		{ "RREF_CHILD_ACCEPT", MESSAGE_RREF_CHILD_ACCEPT, 0, 0 },
		{ "RREF_USER_DELETE", MESSAGE_RREF_USER_DELETE, 0, 0 },
		{ "CLEANUP_AUTOGRAD_CONTEXT_REQ", 0, 0, 0 },
	};
	char text[80];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(text, sizeof(text), "drop:%s:%zu", row[i].name, i);
		cr_assert_eq(say(text), XR_OK, "%s: %s", text, err.text);
		cr_expect_eq(rules.count, 1);
		cr_expect_eq(rules.rule[0].what, FAULT_DROP);
		cr_expect_eq(rules.rule[0].kind, row[i].kind, "%s", text);
		cr_expect_eq(rules.rule[0].flags, row[i].flags, "%s", text);
		cr_expect_eq(rules.rule[0].flags_are, row[i].flags_are, "%s",
			text);
		cr_expect_eq(rules.rule[0].count, i);
		cr_expect_eq(rules.rule[0].delay, 0);
	}
	cr_expect_eq(say("reorder:REPLY"), XR_OK);
	cr_expect_eq(rules.rule[0].what, FAULT_REORDER);
}

Test(faulty, what_is_wrong_is_said)
{
	static const char *const row[][2] = {
		{ "fail",
			"fault 'fail': it is fail, drop, dup, reorder or delay, as in fail:REQUEST:3" },
		{ "brk:REQUEST",
			"fault 'brk:REQUEST': it is fail, drop, dup, reorder or delay, as in fail:REQUEST:3" },
		{ "dup:REPLY,fail:CAT:1",
			"fault 'fail:CAT:1': no message is of kind 'CAT'" },
		{ "dup:REPLY:x", "fault 'dup:REPLY:x': 'x' is not a number" },
		{ "dup:REPLY:4294967295",
			"fault 'dup:REPLY:4294967295': '4294967295' is not a number" },
		{ "delay:REPLY:x",
			"fault 'delay:REPLY:x': 'x' is not a time of 0 and more, as 1.5 or 20ms" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		cr_expect_eq(say(row[i][0]), XR_E_INVAL);
		cr_expect_str_eq(err.text, row[i][1]);
	}
	cr_expect_eq(say("dup:REPLY:4294967294"), XR_OK);
	cr_expect_eq(rules.rule[0].count, 4294967294u);
}

/* 30 bytes, to which a unit may be added. */
Test(faulty, a_delay_has_30_bytes_at_most)
{
	cr_expect_eq(say("delay:REPLY:000000000000000000000000000001"), XR_OK);
	cr_expect_eq(rules.rule[0].delay, INT64_C(1000000000));
	cr_expect_eq(say("delay:REPLY:0000000000000000000000000001ms"), XR_OK);
	cr_expect_eq(rules.rule[0].delay, 1000000);
	cr_expect_eq(say("delay:REPLY:00000000000000000000000000001ms"),
		XR_E_INVAL);
	cr_expect_eq(say("delay:REPLY:0000000000000000000000000000001"),
		XR_E_INVAL);
}

static enum xr_status
say_opts(uint32_t count, const char *const *extra)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts),
		.extra = extra,
		.extra_count = count };

	rules.count = 0;
	err.text[0] = '\0';
	return fault_read_opts(&rules, &opts, &err);
}

Test(faulty, options_are_rules_and_the_last_of_a_name_counts)
{
	static const char *const extra[] = { "messages_to_fail=MEET",
		"num_fail_sends=7", "messages_to_fail=REPLY,CALL",
		"messages_to_delay=ERROR:1.5,CANCEL:20ms", "num_fail_sends=2" };
	static const char *const wrong[][2] = {
		{ "num_fail_sends=4294967295", "num_fail_sends: '4294967295'" },
		{ "num_fail_sends=", "num_fail_sends: ''" },
		{ "messages_to_delay=ERROR",
			"fault 'delay:ERROR': '' is not a time of 0 and more, as 1.5 or 20ms" },
	};
	const char *two[2] = { "messages_to_fail=CAT", "num_fail_sends=1" };

	cr_expect_eq(say_opts(0, NULL), XR_OK);
	cr_expect_eq(rules.count, 0);
	cr_assert_eq(say_opts(5, extra), XR_OK, "%s", err.text);
	cr_assert_eq(rules.count, 4);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(rules.rule[i].what, FAULT_FAIL);
		cr_expect_eq(rules.rule[i].count, 2);
		cr_expect_eq(rules.rule[2 + i].what, FAULT_DELAY);
	}
	cr_expect_eq(rules.rule[0].kind, MESSAGE_REPLY);
	cr_expect_eq(rules.rule[1].kind, MESSAGE_REQUEST);
	cr_expect_eq(rules.rule[2].kind, MESSAGE_ERROR);
	cr_expect_eq(rules.rule[2].delay, INT64_C(1500000000));
	cr_expect_eq(rules.rule[3].kind, MESSAGE_CANCEL);
	cr_expect_eq(rules.rule[3].delay, 20000000);
	/* How many is said to fail; without, none do. */
	cr_expect_eq(say_opts(1, extra), XR_OK);
	cr_expect_eq(rules.count, 0);
	cr_expect_eq(say_opts(2, extra), XR_OK);
	cr_expect_eq(rules.count, 1);
	cr_expect_eq(rules.rule[0].count, 7);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(say_opts(1, &wrong[i][0]), XR_E_INVAL);
		cr_expect_str_eq(err.text, wrong[i][1]);
	}
	cr_expect_eq(say_opts(2, two), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"fault 'fail:CAT:1': no message is of kind 'CAT'");
}

Test(faulty, AC_P6_a_kind_that_there_is_not_is_refused_and_named)
{
	static const char *const all[] = { "RREF_FORK_REQUEST",
		"RREF_CHILD_ACCEPT", "RREF_USER_DELETE",
		"CLEANUP_AUTOGRAD_CONTEXT_REQ", "PYTHON_REMOTE_CALL",
		"SCRIPT_REMOTE_CALL", "PYTHON_CALL", "SCRIPT_CALL",
		"PYTHON_RREF_FETCH_CALL", "SCRIPT_RREF_FETCH_CALL", "REQUEST",
		"REPLY", "ERROR", "ONEWAY", "CANCEL", "MEET" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		cr_expect(fault_is_kind(span_of(all[i])), "%s", all[i]);
	cr_expect_eq(say("fail:PIGEON:3"), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "'PIGEON'"), "%s", err.text);
	cr_expect_eq(say("fail:request:3"), XR_E_INVAL);
	cr_expect_eq(say("fail::3"), XR_E_INVAL);
	cr_expect_eq(say("fail:REQUESTS:3"), XR_E_INVAL);
	cr_expect_eq(say("fail:REQUEST:3,drop:PIGEON"), XR_E_INVAL);
}

Test(faulty, AC_P7_a_delay_below_0_is_refused)
{
	cr_expect_eq(say("delay:CALL:-1"), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "'-1'"), "%s", err.text);
	cr_expect_eq(say("delay:CALL:-0.5s"), XR_E_INVAL);
	cr_expect_eq(say("delay:CALL:0"), XR_OK);
	cr_expect_eq(rules.rule[0].delay, 0);
}

Test(faulty, what_is_none_is_refused)
{
	static const char *const wrong[] = { "", ",", "fail",
		"fail:", "fail:REQUEST:", "fail:REQUEST:-1", "fail:REQUEST:x",
		"fail:REQUEST:1:2", "delay:REQUEST",
		"delay:REQUEST:", "delay:REQUEST:soon", "delay:REQUEST:1:2",
		"break:REQUEST", "REQUEST:3", "fail:REQUEST:3,",
		"delay:REQUEST:00000000000000000000000000000000000000001" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(say(wrong[i]), XR_E_INVAL, "'%s'", wrong[i]);
}

Test(faulty, at_every_end_it_is_a_rule_or_refused)
{
	static const char all[] = "fail:REQUEST:3,delay:CALL:1.5s";
	char text[sizeof(all)];

	for (size_t len = 0; len < sizeof(all); len++) {
		memcpy(text, all, len);
		text[len] = '\0';
		if (say(text) == XR_OK)
			cr_expect_gt(rules.count, 0);
		else
			cr_expect_neq(err.text[0], '\0');
	}
}

Test(faulty, there_are_not_too_many)
{
	struct buf text = { 0 };

	buf_put_text(&text, "drop:REPLY");
	for (int i = 1; i < FAULT_RULES; i++)
		buf_put_text(&text, ",drop:REPLY");
	cr_expect_eq(say(buf_text(&text)), XR_OK);
	buf_put_text(&text, ",drop:REPLY");
	cr_expect_eq(say(buf_text(&text)), XR_E_RANGE);
	buf_fini(&text);
}

/* --- messages ------------------------------------------------------------- */

static void
open_with(const char *backend, const char *first, const char *second)
{
	const char *extra[] = { first, second };
	const struct xr_rpc_opts opts = {
		.size = sizeof(opts),
		.backend = xr_backend_find(backend),
		.extra = extra,
		.extra_count = second != NULL ? 2 : 1,
	};

	cr_assert_eq(fault_open(&opts, &err), XR_OK, "%s", err.text);
}

static enum fault_what
becomes(uint32_t to, uint8_t kind, const char *body)
{
	const struct peer p = { .id = to };
	const struct xr_part part = { body, strlen(body) };
	const struct xr_message m = {
		.record = { .kind = kind },
		.parts = &part,
		.count = 1,
	};

	return fault_of(&p, &m);
}

Test(faulty, the_first_sends_of_each_message_fail)
{
	open_with("FAULTY_TENSORPIPE", "messages_to_fail=CANCEL,PYTHON_CALL",
		"num_fail_sends=2");
	cr_assert(fault_is_on());
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(becomes(1, MESSAGE_REQUEST, "a"), FAULT_FAIL);
		cr_expect_eq(becomes(1, MESSAGE_REQUEST, "b"), FAULT_FAIL);
		cr_expect_eq(becomes(2, MESSAGE_REQUEST, "a"), FAULT_FAIL);
		cr_expect_eq(becomes(1, MESSAGE_CANCEL, "a"), FAULT_FAIL);
	}
	cr_expect_eq(becomes(1, MESSAGE_REQUEST, "a"), FAULT_NONE);
	cr_expect_eq(becomes(1, MESSAGE_REQUEST, "b"), FAULT_NONE);
	cr_expect_eq(becomes(2, MESSAGE_REQUEST, "a"), FAULT_NONE);
	cr_expect_eq(becomes(1, MESSAGE_REPLY, "a"), FAULT_NONE);
	/* A next agent begins anew. */
	open_with("faulty", "messages_to_fail=REQUEST", "num_fail_sends=1");
	cr_expect_eq(becomes(1, MESSAGE_REQUEST, "a"), FAULT_FAIL);
	open_with("faulty", "messages_to_fail=REQUEST", NULL);
	cr_expect_not(fault_is_on());
}

Test(faulty, a_variable_counts_with_this_backend_alone)
{
	setenv("XRUN_FAULT", "drop:REPLY:1", 1);
	open_with("auto", "", NULL);
	cr_expect_not(fault_is_on());
	open_with("faulty", "", NULL);
	cr_expect(fault_is_on());
	cr_expect_eq(becomes(1, MESSAGE_REPLY, "a"), FAULT_DROP);
	cr_expect_eq(becomes(1, MESSAGE_REPLY, "a"), FAULT_NONE);
	open_with("auto", "", NULL);
	cr_expect_not(fault_is_on());
}
