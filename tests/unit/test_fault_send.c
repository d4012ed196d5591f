/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault_send.c - what becomes of a message with the backend "faulty"; the test plays
 * those who send it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/due.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"

static struct xr_error err;
static struct peer one = { .name = "one", .id = 1 },
		   two = { .name = "two", .id = 2 };
static int the_parcel;
static struct due the_due;

#define PARCEL ((struct parcel *)&the_parcel)

/* --- what is called instead ------------------------------------------------------------ */

enum xr_status __wrap_peer_send_whole(struct peer *p,
	const struct xr_message *message, struct due *due,
	struct parcel *parcel, struct xr_error *e);
enum xr_status __wrap_peer_post_whole(struct peer *p,
	const struct xr_message *message);
void __wrap_lead_due(int64_t when);
void __wrap_lead_wake_all(void);
int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

/* What was sent: its text, in <> with a due time, in [] with a parcel; or posted: with a
 * ! behind it. "2:" before it: to two. */
static char log_text[512];
static unsigned fails; /* of the next ones */
static struct xr_message last;

static void
note(const struct peer *p, const struct xr_message *m, const char *before,
	const char *after)
{
	size_t n = strlen(log_text);

	n += (size_t)snprintf(log_text + n, sizeof(log_text) - n, "%s%s",
		p == &two ? "2:" : "", before);
	for (uint32_t i = 0; i < m->count; i++)
		n += (size_t)snprintf(log_text + n, sizeof(log_text) - n,
			"%.*s", (int)m->parts[i].len,
			(const char *)m->parts[i].data);
	snprintf(log_text + n, sizeof(log_text) - n, "%s ", after);
	last = *m;
}

enum xr_status
__wrap_peer_send_whole(struct peer *p, const struct xr_message *message,
	struct due *due, struct parcel *parcel, struct xr_error *e)
{
	cr_expect(due == NULL || due == &the_due);
	cr_expect(parcel == NULL || parcel == PARCEL);
	note(p, message,
		parcel != NULL      ? "[" :
			due != NULL ? "<" :
				      "",
		parcel != NULL      ? "]" :
			due != NULL ? ">" :
				      "");
	if (fails == 0)
		return XR_OK;
	fails--;
	return fail(e, XR_E_PEER_LOST, "it is lost");
}

enum xr_status
__wrap_peer_post_whole(struct peer *p, const struct xr_message *message)
{
	note(p, message, "", "!");
	if (fails == 0)
		return XR_OK;
	fails--;
	return XR_E_PEER_LOST;
}

static int64_t due_when;
static unsigned wakes;

void
__wrap_lead_due(int64_t when)
{
	due_when = when;
}

void
__wrap_lead_wake_all(void)
{
	wakes++;
}

static int64_t now; /* 0: it is the clock's */

int64_t
__wrap_clock_now(void)
{
	return now != 0 ? now : __real_clock_now();
}

static void
logged(const char *text)
{
	cr_expect_str_eq(log_text, text);
	log_text[0] = '\0';
}

/* --- messages ------------------------------------------------------------------------------ */

static void
rules(const char *text)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts),
		.backend = xr_backend_find("faulty") };

	setenv("XRUN_FAULT", text, 1);
	cr_assert_eq(fault_open(&opts, &err), XR_OK, "%s", err.text);
	unsetenv("XRUN_FAULT");
	cr_assert_eq(fault_is_on(), text[0] != '\0');
}

static void
begin(void)
{
	now = XR_SECONDS(1000);
	the_due = (struct due){ .timeout = INT64_MAX };
}

static void
end(void)
{
	fault_close();
}

TestSuite(fault_send, .timeout = 20, .init = begin, .fini = end);

static struct xr_message
message(const char *text)
{
	static struct xr_part part;

	part = (struct xr_part){ text, strlen(text) };
	return (struct xr_message){ .record = { .kind = MESSAGE_REQUEST,
					    .corr = 5 },
		.parts = &part,
		.count = 1,
		.lent = true,
		.token = &the_parcel };
}

static enum xr_status
send_to(struct peer *p, const char *text)
{
	const struct xr_message m = message(text);

	err.text[0] = '\0';
	return fault_send(p, &m, &the_due, PARCEL, &err);
}

static enum xr_status
post(const char *text)
{
	const struct xr_message m = message(text);

	return fault_post(&one, &m);
}

/* --- one at a time ---------------------------------------------------------------------------- */

Test(fault_send, one_that_fails_is_not_sent)
{
	rules("fail:REQUEST:2");
	cr_expect_eq(send_to(&one, "a"), XR_E_INJECTED);
	cr_expect_str_eq(err.text, "one (1): a message failed on purpose");
	cr_expect_eq(post("a"), XR_E_INJECTED);
	logged("");
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	logged("[a] ");
	cr_expect_eq(post("a"), XR_OK);
	logged("a! ");
}

Test(fault_send, one_that_is_dropped_seems_to_be_sent)
{
	rules("drop:REQUEST:2");
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	cr_expect_eq(post("a"), XR_OK);
	logged("");
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	logged("[a] ");
}

Test(fault_send, one_that_is_doubled_is_sent_twice)
{
	rules("dup:REQUEST");
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	logged("<a> [a] ");
	cr_expect_eq(post("a"), XR_OK);
	logged("a! a! ");
	/* Or once, if that fails. */
	fails = 1;
	cr_expect_eq(send_to(&one, "a"), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "it is lost");
	logged("<a> ");
	fails = 1;
	cr_expect_eq(post("a"), XR_E_PEER_LOST);
	logged("a! ");
}

/* --- behind the next ---------------------------------------------------------------------------- */

Test(fault_send, one_that_is_kept_goes_behind_the_next)
{
	char text[] = "a";

	rules("reorder:REQUEST:1");
	cr_expect_eq(fault_expire(now), INT64_MAX);
	cr_expect_eq(send_to(&one, text), XR_OK);
	text[0] = '-';
	logged("");
	cr_expect_eq(wakes, 1);
	cr_expect_eq(due_when, now + 20 * NS_PER_MS);
	cr_expect_eq(fault_due(), due_when);
	/* Not behind one to another peer, nor behind one that failed. */
	cr_expect_eq(send_to(&two, "b"), XR_OK);
	logged("");
	cr_expect_eq(send_to(&two, "b"), XR_OK);
	logged("2:[b] 2:b ");
	fails = 1;
	rules("reorder:REPLY");
	cr_expect_eq(send_to(&one, "c"), XR_E_PEER_LOST);
	logged("[c] ");
	cr_expect_eq(send_to(&one, "c"), XR_OK);
	logged("[c] a ");
	cr_expect_eq(last.record.kind, MESSAGE_REQUEST);
	cr_expect_eq(last.record.corr, 5);
	cr_expect_eq(last.count, 1);
	cr_expect_not(last.lent);
	cr_expect_null(last.token);
	cr_expect_eq(fault_due(), INT64_MAX);
	cr_expect_eq(wakes, 2);
}

Test(fault_send, one_that_is_kept_goes_after_20_ms)
{
	const int64_t begun = now;

	rules("reorder:REQUEST:1");
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	now += NS_PER_MS;
	cr_expect_eq(post("b"), XR_OK);
	cr_expect_eq(send_to(&two, "c"), XR_OK);
	logged("");
	cr_expect_eq(due_when, begun + 20 * NS_PER_MS);
	cr_expect_eq(fault_expire(begun + 20 * NS_PER_MS - 1),
		begun + 20 * NS_PER_MS);
	logged("");
	cr_expect_eq(fault_expire(begun + 20 * NS_PER_MS),
		begun + 21 * NS_PER_MS);
	logged("a ");
	cr_expect_eq(fault_expire(begun + 21 * NS_PER_MS), INT64_MAX);
	logged("b 2:c ");
	/* One that is posted takes none along. */
	cr_expect_eq(send_to(&one, "d"), XR_OK);
	cr_expect_eq(post("a"), XR_OK);
	logged("a! ");
	/* Without rules nobody looks. */
	rules("");
	cr_expect_eq(fault_expire(INT64_MAX), INT64_MAX);
	logged("");
	fault_close();
	cr_expect_eq(fault_due(), INT64_MAX);
}

Test(fault_send, one_that_cannot_be_kept_is_sent)
{
	const struct xr_part parts[] = { { "ab", 2 }, { NULL, 0 },
		{ "cd", 2 } };
	struct xr_message m = message("");

	rules("reorder:REQUEST");
	m.loans = parts;
	m.loan_count = 1;
	cr_expect_eq(fault_send(&one, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(fault_post(&one, &m), XR_OK);
	logged(" ! ");
	until_short = 1;
	cr_expect_eq(send_to(&one, "x"), XR_OK);
	cr_expect_eq(until_short, 0);
	logged("[x] ");
	cr_expect_eq(wakes, 0);
	/* All its parts are kept. */
	m = message("");
	m.parts = parts;
	m.count = 3;
	cr_expect_eq(fault_send(&one, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(fault_expire(now + XR_SECONDS(1)), INT64_MAX);
	logged("abcd ");
	cr_expect_eq(last.count, 1);
	cr_expect_eq(last.parts[0].len, 4);
}

/* --- delays ------------------------------------------------------------------------------------------ */

Test(fault_send, one_that_is_delayed_sleeps_first)
{
	int64_t begun = __real_clock_now();

	now = 0;
	rules("delay:REQUEST:20ms");
	the_due.timeout = XR_SECONDS(60);
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	cr_expect_geq(__real_clock_now() - begun, 20 * NS_PER_MS);
	logged("[a] ");
	begun = __real_clock_now();
	cr_expect_eq(post("a"), XR_OK);
	cr_expect_geq(__real_clock_now() - begun, 20 * NS_PER_MS);
	logged("a! ");
	/* That is part of its time. */
	the_due = (struct due){ .timeout = NS_PER_MS };
	cr_expect_eq(send_to(&one, "a"), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "one (1): a message was delayed on purpose");
	logged("");
}

Test(fault_send, a_time_that_has_come_is_over)
{
	rules("drop:REPLY");
	the_due = (struct due){ .timeout = 1, .at = now };
	cr_expect_eq(send_to(&one, "a"), XR_E_TIMEOUT);
	the_due.at = now + 1;
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	logged("[a] ");
}

/* --- which message it is ---------------------------------------------------------------------------------- */

static enum fault_what
becomes(struct peer *p, uint32_t method, uint8_t flags, uint32_t count,
	const struct xr_part *parts)
{
	const struct xr_message m = { .record = { .kind = MESSAGE_REQUEST,
					      .flags = flags,
					      .method = method },
		.parts = parts,
		.count = count };

	return fault_of(p, &m);
}

Test(fault_send, a_message_is_told_by_its_peer_function_and_bytes)
{
	static const struct xr_part ab[] = { { "name", 4 }, { "ab", 2 },
		{ "cd", 2 } },
				    ba[] = { { "ab", 2 }, { "ce", 2 } },
				    joined[] = { { "abcd", 4 } };

	rules("fail:REQUEST:1");
	cr_expect_eq(becomes(&one, 7, 0, 2, ab + 1), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 2, ab + 1), FAULT_NONE);
	/* Its name goes along the first times only, and parts are no bounds. */
	cr_expect_eq(becomes(&one, 7, MESSAGE_NAMED, 3, ab), FAULT_NONE);
	cr_expect_eq(becomes(&one, 7, 0, 1, joined), FAULT_NONE);
	cr_expect_eq(becomes(&one, 7, 0, 3, ab), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 1, ab + 1), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 2, ba), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 8, 0, 2, ab + 1), FAULT_FAIL);
	cr_expect_eq(becomes(&two, 7, 0, 2, ab + 1), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 0, NULL), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 0, NULL), FAULT_NONE);
}

/* The first rule that fits. */
Test(fault_send, each_rule_counts_by_itself)
{
	static const struct xr_part part = { "a", 1 };

	rules("drop:REPLY,fail:REQUEST:1,dup:REQUEST:2,reorder:REQUEST:0,drop:PYTHON_REMOTE_CALL:1");
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_DUP);
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_DUP);
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_NONE);
	cr_expect_eq(becomes(&one, 7, MESSAGE_REMOTE, 1, &part), FAULT_DROP);
	cr_expect_eq(becomes(&one, 7, MESSAGE_REMOTE, 1, &part), FAULT_NONE);
	/* They begin anew with each agent. */
	rules("fail:REQUEST:1");
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_NONE);
}

/* Each is taken for a new one then. */
Test(fault_send, messages_that_cannot_be_counted_fail)
{
	struct xr_part part = { NULL, sizeof(uint32_t) };
	uint32_t i = 0;

	part.data = &i;
	rules("fail:REQUEST:1");
	until_short = 1;
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_FAIL);
	cr_expect_eq(until_short, 0);
	for (i = 0; i < 65536; i++)
		cr_assert_eq(becomes(&one, 7, 0, 1, &part), FAULT_FAIL);
	for (int k = 0; k < 2; k++)
		cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_FAIL);
	i = 65535;
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_NONE);
	/* There is room again. */
	rules("fail:REQUEST:1");
	i = 65536;
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_FAIL);
	cr_expect_eq(becomes(&one, 7, 0, 1, &part), FAULT_NONE);
}

Test(fault_send, rules_that_are_wrong_leave_those_that_are)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts),
		.backend = xr_backend_find("faulty") };
	const char *extra[] = { "messages_to_fail=REPLY", "num_fail_sends=x" };

	rules("drop:REQUEST");
	setenv("XRUN_FAULT", "drop", 1);
	cr_expect_eq(fault_open(&opts, &err), XR_E_INVAL);
	cr_expect(fault_is_on());
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	logged("");
	opts.extra = extra;
	opts.extra_count = 2;
	setenv("XRUN_FAULT", "fail:REQUEST", 1);
	cr_expect_eq(fault_open(&opts, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "num_fail_sends: 'x'");
	cr_expect_eq(send_to(&one, "a"), XR_OK);
	/* Of another backend there are none. */
	opts.backend = xr_backend_find("auto");
	cr_expect_eq(fault_open(&opts, &err), XR_OK);
	cr_expect_not(fault_is_on());
	unsetenv("XRUN_FAULT");
}
