/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault_send.c - what the backend "faulty" makes of messages: lost, doubled, late, and
 * behind each other. The test plays who sends them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/due.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"

static struct xr_error err;

/* --- what is called instead ----------------------------------------------------- */

int64_t __wrap_clock_now(void);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
enum xr_status __wrap_peer_send_whole(struct peer *p,
	const struct xr_message *m, struct due *due, struct parcel *parcel,
	struct xr_error *e);
enum xr_status __wrap_peer_post_whole(struct peer *p,
	const struct xr_message *m);
void __wrap_lead_due(int64_t when);
void __wrap_lead_wake_all(void);

static int64_t now = 1000, slept, told_due;
static unsigned sleeps, wakes;
static char sent[128];
static enum xr_status status_of_send;
static struct due *due_given;
static struct parcel *parcel_given;

int64_t
__wrap_clock_now(void)
{
	return now;
}

/* It is interrupted once. */
int
__wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	int64_t ns = t->tv_sec * NS_PER_S + t->tv_nsec, part;

	part = sleeps++ == 0 ? ns / 4 : ns;
	slept += part;
	now += part;
	ns -= part;
	left->tv_sec = ns / NS_PER_S;
	left->tv_nsec = ns % NS_PER_S;
	errno = EINTR;
	return ns > 0 ? -1 : 0;
}

static void
note(char how, const struct peer *p, const struct xr_message *m)
{
	size_t len = strlen(sent);

	len += (size_t)snprintf(sent + len, sizeof(sent) - len, "%c%u:", how,
		p->id);
	for (uint32_t i = 0; i < m->count; i++)
		len += (size_t)snprintf(sent + len, sizeof(sent) - len, "%.*s",
			(int)m->parts[i].len, (const char *)m->parts[i].data);
	snprintf(sent + len, sizeof(sent) - len, " ");
}

enum xr_status
__wrap_peer_send_whole(struct peer *p, const struct xr_message *m,
	struct due *due, struct parcel *parcel, struct xr_error *e)
{
	note('s', p, m);
	due_given = due;
	parcel_given = parcel;
	return status_of_send != XR_OK ? fail(e, status_of_send, "no") : XR_OK;
}

enum xr_status
__wrap_peer_post_whole(struct peer *p, const struct xr_message *m)
{
	note('p', p, m);
	return status_of_send;
}

void
__wrap_lead_due(int64_t when)
{
	told_due = when;
}

void
__wrap_lead_wake_all(void)
{
	wakes++;
}

/* --- messages --------------------------------------------------------------------- */

static void
rules(const char *text)
{
	const char *extra[] = { "" };
	const struct xr_rpc_opts opts = { .size = sizeof(opts),
		.backend = xr_backend_find("faulty"),
		.extra = extra,
		.extra_count = 1 };

	setenv("XRUN_FAULT", text, 1);
	cr_assert_eq(fault_open(&opts, &err), XR_OK, "%s", err.text);
	sent[0] = '\0';
}

static void
end(void)
{
	fault_close();
	unsetenv("XRUN_FAULT");
}

TestSuite(fault_send, .timeout = 60, .fini = end);

static struct peer one = { .name = "one", .id = 1 },
		   two = { .name = "two", .id = 2 };
static struct parcel *const parcel = (struct parcel *)&told_due;

static struct xr_message
message(struct xr_part *parts, const char *a, const char *b)
{
	parts[0] = (struct xr_part){ a, strlen(a) };
	parts[1] = (struct xr_part){ b, strlen(b) };
	return (struct xr_message){ .record = { .kind = MESSAGE_REPLY },
		.parts = parts,
		.count = 2,
		.token = &told_due,
		.lent = true };
}

static enum xr_status
send_to(struct peer *p, const char *a, const char *b, int64_t timeout)
{
	struct due due = { .timeout = timeout };
	struct xr_part parts[2];
	struct xr_message m = message(parts, a, b);

	err = (struct xr_error){ 0 };
	due_given = NULL;
	parcel_given = NULL;
	return fault_send(p, &m, &due, parcel, &err);
}

static enum xr_status
post_to(struct peer *p, const char *text)
{
	struct xr_part parts[2];
	struct xr_message m = message(parts, text, "");

	return fault_post(p, &m);
}

#define SENT(text) \
	do { \
		cr_expect_str_eq(sent, text); \
		sent[0] = '\0'; \
	} while (0)

Test(fault_send, one_that_fails_is_not_sent)
{
	rules("fail:REPLY:1");
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_E_INJECTED);
	cr_expect_str_eq(err.text, "one (1): a message failed on purpose");
	cr_expect_eq(post_to(&one, "c"), XR_E_INJECTED);
	SENT("");
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_OK);
	SENT("s1:ab ");
	cr_expect_not_null(due_given);
	cr_expect_eq(parcel_given, parcel);
	cr_expect_eq(post_to(&one, "c"), XR_OK);
	SENT("p1:c ");
}

Test(fault_send, one_that_is_dropped_is_as_if_it_were_sent)
{
	rules("drop:REPLY");
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_OK);
	cr_expect_eq(post_to(&one, "c"), XR_OK);
	SENT("");
}

/* The first of both has no parcel: what it has is copied. */
Test(fault_send, one_that_is_doubled_is_sent_twice)
{
	rules("dup:REPLY");
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_OK);
	SENT("s1:ab s1:ab ");
	cr_expect_eq(parcel_given, parcel);
	cr_expect_eq(post_to(&one, "c"), XR_OK);
	SENT("p1:c p1:c ");
	status_of_send = XR_E_AGAIN;
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_E_AGAIN);
	cr_expect_null(parcel_given);
	SENT("s1:ab ");
	cr_expect_eq(post_to(&one, "c"), XR_E_AGAIN);
	SENT("p1:c ");
}

Test(fault_send, one_that_is_late_is_sent_if_its_time_is_not_over)
{
	rules("delay:REPLY:2s");
	cr_expect_eq(send_to(&one, "a", "b", 3 * NS_PER_S), XR_OK);
	cr_expect_eq(slept, 2 * NS_PER_S);
	cr_expect_eq(sleeps, 2);
	SENT("s1:ab ");
	cr_expect_eq(send_to(&one, "a", "b", 2 * NS_PER_S), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "one (1): a message was delayed on purpose");
	SENT("");
	cr_expect_eq(send_to(&one, "a", "b", 2 * NS_PER_S + 1), XR_OK);
	cr_expect_eq(send_to(&one, "c", "d", INT64_MAX), XR_OK);
	SENT("s1:ab s1:cd ");
}

Test(fault_send, one_that_is_kept_goes_behind_the_next)
{
	rules("reorder:REPLY:1");
	cr_expect_eq(fault_expire(now), INT64_MAX);
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_OK);
	cr_expect_eq(send_to(&two, "x", "y", INT64_MAX), XR_OK);
	SENT("");
	cr_expect_eq(told_due, 1000 + 20 * NS_PER_MS);
	cr_expect_eq(wakes, 2);
	/* It was sent once: the next time it goes. */
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_OK);
	SENT("s1:ab s1:ab ");
	cr_expect_null(due_given);
	cr_expect_null(parcel_given);
	/* Or when its time has come. */
	now += 5;
	cr_expect_eq(post_to(&one, "late"), XR_OK);
	SENT("");
	cr_expect_eq(fault_due(), 1000 + 20 * NS_PER_MS);
	cr_expect_eq(fault_expire(1000 + 20 * NS_PER_MS - 1),
		1000 + 20 * NS_PER_MS);
	SENT("");
	cr_expect_eq(fault_expire(1000 + 20 * NS_PER_MS),
		1005 + 20 * NS_PER_MS);
	SENT("s2:xy ");
	cr_expect_eq(fault_expire(1005 + 20 * NS_PER_MS), INT64_MAX);
	SENT("s1:late ");
	cr_expect_eq(fault_due(), INT64_MAX);
}

Test(fault_send, what_was_kept_stays_if_the_next_is_not_sent)
{
	rules("reorder:REPLY:1");
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_OK);
	status_of_send = XR_E_AGAIN;
	cr_expect_eq(send_to(&one, "a", "b", INT64_MAX), XR_E_AGAIN);
	SENT("s1:ab ");
	cr_expect_neq(fault_due(), INT64_MAX);
	fault_close();
	cr_expect_eq(fault_due(), INT64_MAX);
	SENT("");
}

/* A copy, without what only its sender has. */
Test(fault_send, what_is_kept_is_a_copy)
{
	char text[] = "abc";
	struct xr_part parts[2], loan = { "x", 1 };
	struct xr_message m = message(parts, text, "d");
	struct fault_held *h;

	rules("reorder:REPLY");
	m.record.corr = 7;
	cr_expect(fault_hold(&one, &m));
	text[0] = 'x';
	cr_expect_null(fault_take(&two, INT64_MAX));
	cr_expect_null(fault_take(&one, now));
	h = fault_take(&one, now + 20 * NS_PER_MS);
	cr_assert_not_null(h);
	cr_expect_eq(h->to, &one);
	cr_expect_eq(h->message.record.corr, 7);
	cr_expect_eq(h->message.count, 1);
	cr_expect_eq(h->message.parts->len, 4);
	cr_expect_eq(memcmp(h->message.parts->data, "abcd", 4), 0);
	cr_expect_null(h->message.token);
	cr_expect_not(h->message.lent);
	free(h);
	cr_expect_null(fault_take(NULL, INT64_MAX));
	/* What is lent cannot be kept, nor anything without memory: it goes at once. */
	m.loans = &loan;
	m.loan_count = 1;
	cr_expect_not(fault_hold(&one, &m));
	cr_expect_eq(fault_post(&one, &m), XR_OK);
	SENT("p1:xbcd ");
	until_short = 1;
	m.loan_count = 0;
	cr_expect_not(fault_hold(&one, &m));
	cr_expect_eq(until_short, 0);
	cr_expect_null(fault_take(NULL, INT64_MAX));
}

/* --- rules ------------------------------------------------------------------------- */

static enum fault_what
becomes(uint8_t kind, uint8_t flags, uint32_t method, const char *name,
	const char *text)
{
	const struct xr_part parts[2] = { { name, strlen(name) },
		{ text, strlen(text) } };
	const struct xr_message m = {
		.record = { .kind = kind, .flags = flags, .method = method },
		.parts = parts,
		.count = 2
	};

	return fault_of(&one, &m);
}

/* The name in front of a body is not sent once it is known. */
Test(fault_send, a_message_is_known_by_its_bytes_but_for_its_name)
{
	rules("drop:REQUEST:1");
	cr_expect_eq(becomes(MESSAGE_REQUEST, MESSAGE_NAMED, 5, "f", "a"),
		FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "", "a"), FAULT_NONE);
	cr_expect_eq(becomes(MESSAGE_REQUEST, MESSAGE_NAMED, 5, "g", "a"),
		FAULT_NONE);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "g", "a"), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 6, "", "a"), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "", "b"), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "", "b"), FAULT_NONE);
	cr_expect_eq(becomes(MESSAGE_REPLY, 0, 5, "", "a"), FAULT_NONE);
	/* Without memory each is a new one. */
	until_short = 1;
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "", "c"), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "", "c"), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 5, "", "c"), FAULT_NONE);
}

Test(fault_send, calls_of_torch_are_told_apart_by_what_they_make)
{
	rules("drop:PYTHON_CALL,dup:SCRIPT_REMOTE_CALL");
	cr_expect_eq(becomes(MESSAGE_REQUEST, 0, 0, "", ""), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, MESSAGE_REMOTE, 0, "", ""),
		FAULT_DUP);
	cr_expect_eq(becomes(MESSAGE_REQUEST, MESSAGE_REMOTE | MESSAGE_VALUE, 0,
			     "", ""),
		FAULT_DUP);
	rules("fail:CALL,drop:SCRIPT_RREF_FETCH_CALL,dup:RREF_USER_DELETE");
	cr_expect_eq(becomes(MESSAGE_REQUEST, MESSAGE_REMOTE, 0, "", ""),
		FAULT_FAIL);
	cr_expect_eq(becomes(MESSAGE_RREF_FETCH, 0, 0, "", ""), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_RREF_USER_DELETE, 0, 0, "", ""),
		FAULT_DUP);
	cr_expect_eq(becomes(MESSAGE_RREF_CONFIRM, 0, 0, "", ""), FAULT_NONE);
	/* The first that fits counts, and one that is used up does not fit. */
	rules("drop:REPLY:1,dup:REPLY:1,fail:REPLY");
	cr_expect_eq(becomes(MESSAGE_REPLY, 0, 0, "", "a"), FAULT_DROP);
	cr_expect_eq(becomes(MESSAGE_REPLY, 0, 0, "", "a"), FAULT_DUP);
	cr_expect_eq(becomes(MESSAGE_REPLY, 0, 0, "", "a"), FAULT_FAIL);
	cr_expect_eq(becomes(MESSAGE_REPLY, 0, 0, "", "a"), FAULT_FAIL);
}

#define REFUSED(said, words) \
	do { \
		struct fault_rules r = { .count = 0 }; \
		cr_expect_eq(fault_read(&r, said, &err), XR_E_INVAL); \
		cr_expect_str_eq(err.text, words); \
		cr_expect_eq(r.count, 0); \
	} while (0)

Test(fault_send, what_is_no_rule_is_told_with_what_would_be)
{
	REFUSED("lose:REPLY",
		"fault 'lose:REPLY': it is fail, drop, dup, reorder or delay, as in fail:REQUEST:3");
	REFUSED("fail",
		"fault 'fail': it is fail, drop, dup, reorder or delay, as in fail:REQUEST:3");
	REFUSED("fail:NONE", "fault 'fail:NONE': no message is of kind 'NONE'");
	REFUSED("fail:REPLY:x", "fault 'fail:REPLY:x': 'x' is not a number");
	REFUSED("drop:REPLY:4294967295",
		"fault 'drop:REPLY:4294967295': '4294967295' is not a number");
	REFUSED("delay:REPLY",
		"fault 'delay:REPLY': '' is not a time of 0 and more, as 1.5 or 20ms");
	REFUSED("delay:REPLY:soon",
		"fault 'delay:REPLY:soon': 'soon' is not a time of 0 and more, as 1.5 or 20ms");
	REFUSED("delay:REPLY:0000000000000000000000000000001",
		"fault 'delay:REPLY:0000000000000000000000000000001': '0000000000000000000000000000001' is not a time of 0 and more, as 1.5 or 20ms");
}

Test(fault_send, numbers_and_times_are_read_to_their_limits)
{
	struct fault_rules r = { .count = 0 };

	cr_expect_eq(
		fault_read(&r,
			"drop:REPLY:4294967294,drop:REPLY:0,delay:REPLY:000000000000000000000000000001,delay:REPLY:0",
			&err),
		XR_OK, "%s", err.text);
	cr_expect_eq(r.count, 4);
	cr_expect_eq(r.rule[0].count, UINT32_MAX - 1);
	cr_expect_eq(r.rule[1].count, 0);
	cr_expect_eq(r.rule[2].delay, NS_PER_S);
	cr_expect_eq(r.rule[3].delay, 0);
}

Test(fault_send, options_say_which_messages_fail_or_are_late)
{
	static const char *const extra[] = { "num_fail_sends=1",
		"messages_to_fail=REPLY", "other=1", "num_fail_sends=3",
		"messages_to_fail=CANCEL,PYTHON_CALL",
		"messages_to_delay=REPLY:1.5,ERROR:20ms" };
	static const char *const bad[] = { "num_fail_sends=-1" };
	static const char *const none[] = { "messages_to_fail=PIGEON",
		"messages_to_delay=REPLY:1" };
	struct xr_rpc_opts opts = { .extra = extra, .extra_count = 6 };
	struct fault_rules r = { .count = 0 };

	cr_expect_eq(fault_read_opts(&r, &opts, &err), XR_OK, "%s", err.text);
	cr_expect_eq(r.count, 4);
	cr_expect_eq(r.rule[0].what, FAULT_FAIL);
	cr_expect_eq(r.rule[0].kind, MESSAGE_CANCEL);
	cr_expect_eq(r.rule[0].count, 3);
	cr_expect_eq(r.rule[1].kind, MESSAGE_REQUEST);
	cr_expect_eq(r.rule[1].flags, MESSAGE_REMOTE);
	cr_expect_eq(r.rule[1].flags_are, 0);
	cr_expect_eq(r.rule[1].count, 3);
	cr_expect_eq(r.rule[2].what, FAULT_DELAY);
	cr_expect_eq(r.rule[2].kind, MESSAGE_REPLY);
	cr_expect_eq(r.rule[2].delay, 1500 * NS_PER_MS);
	cr_expect_eq(r.rule[3].kind, MESSAGE_ERROR);
	cr_expect_eq(r.rule[3].delay, 20 * NS_PER_MS);
	opts.extra = bad;
	opts.extra_count = 1;
	cr_expect_eq(fault_read_opts(&r, &opts, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "num_fail_sends: '-1'");
	opts.extra = (const char *const[]){ "num_fail_sends=4294967295" };
	cr_expect_eq(fault_read_opts(&r, &opts, &err), XR_E_INVAL);
	opts.extra = (const char *const[]){ "num_fail_sends=4294967294" };
	cr_expect_eq(fault_read_opts(&r, &opts, &err), XR_OK);
	/* What was in force stays. */
	rules("drop:REPLY");
	opts.backend = xr_backend_find("faulty");
	opts.extra = bad;
	cr_expect_eq(fault_open(&opts, &err), XR_E_INVAL);
	cr_expect_eq(becomes(MESSAGE_REPLY, 0, 0, "", "a"), FAULT_DROP);
	/* Where nobody says how many, none fail, whatever they are. */
	r.count = 0;
	opts.extra = none;
	opts.extra_count = 2;
	cr_expect_eq(fault_read_opts(&r, &opts, &err), XR_OK);
	cr_expect_eq(r.count, 1);
}
