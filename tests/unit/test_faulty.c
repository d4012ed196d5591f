/* SPDX-License-Identifier: Apache-2.0 */
/* test_faulty.c - which messages fail on purpose, as XRUN_FAULT and options say. */
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
