/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_leave.c - how a member leaves: what it does, in which order, and what it says
 * when a part of that fails. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <xrun/rpc.h>
#include <xrun/store.h>

#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/gather.h"
#include "worker/rpc/group.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/rref.h"

TestSuite(rpc_leave, .timeout = 60);

#define PATIENCE XR_SECONDS(3600)

/* --- what it calls ---------------------------------------------------------------- */

static char trace[256];

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	size_t len = strlen(trace);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(trace + len, sizeof(trace) - len, fmt, ap);
	va_end(ap);
}

#define DID(text) \
	do { \
		cr_expect_str_eq(trace, text); \
		trace[0] = '\0'; \
	} while (0)

/* The step that fails, and with what. */
static const char *fails;
static enum xr_status fails_with = XR_E_TIMEOUT;

static enum xr_status
step(const char *name, struct xr_error *err)
{
	note("%s ", name);
	if (fails == NULL || strcmp(fails, name) != 0)
		return XR_OK;
	return fail(err, fails_with, "%s failed", name);
}

static bool changes, serves, delivers;
static int64_t began; /* when it was called */

static void
is_deadline(int64_t deadline)
{
	cr_expect_geq(deadline, began + PATIENCE);
	cr_expect_leq(deadline, clock_now() + PATIENCE);
}

bool __wrap_crew_is_member(void);
bool __wrap_lead_delivers(void);
enum xr_status __wrap_inside_not_forked(struct xr_error *err);
enum xr_status __wrap_agent_enter(struct xr_error *err);
void __wrap_agent_leave(void);
enum xr_status __wrap_agent_timeout(int64_t timeout, int64_t *ns,
	struct xr_error *err);
struct peer *__wrap_agent_self(void);
void __wrap_agent_close(void (*look)(void *ctx), void *ctx);
bool __wrap_dynamic_is(void);
void __wrap_dynamic_leave(bool waits, int64_t deadline);
void __wrap_dynamic_end(void (*look)(void *ctx), void *ctx);
enum xr_status __wrap_ask_await_idle(int64_t deadline, struct xr_error *err);
uint32_t __wrap_ask_active(void);
uint64_t __wrap_ask_begun(void);
const char **__wrap_gather_names(size_t *count);
enum xr_status __wrap_meet(const struct xr_rpc_meeting *meeting,
	enum meet_for what, struct xr_value *value, struct xr_value **all,
	struct xr_error *err);
enum xr_status __wrap_rref_settle(bool all, int64_t deadline,
	struct xr_error *err);
uint32_t __wrap_rref_leaks(char *text, size_t cap);
void __wrap_peer_await_flushed(int64_t deadline);
enum xr_status __wrap_parcel_await_sent(int64_t deadline, struct xr_error *err);
void __wrap_xr_store_free(struct xr_store *store);

bool
__wrap_crew_is_member(void)
{
	return serves;
}

bool
__wrap_lead_delivers(void)
{
	return delivers;
}

enum xr_status
__wrap_inside_not_forked(struct xr_error *err)
{
	return fails != NULL && strcmp(fails, "fork") == 0 ? step("fork", err) :
							     XR_OK;
}

enum xr_status
__wrap_agent_enter(struct xr_error *err)
{
	return step("enter", err);
}

void
__wrap_agent_leave(void)
{
	note("leave ");
}

enum xr_status
__wrap_agent_timeout(int64_t timeout, int64_t *ns, struct xr_error *err)
{
	(void)err;
	*ns = timeout == XR_TIMEOUT_DEFAULT ? PATIENCE : timeout;
	return XR_OK;
}

struct peer *
__wrap_agent_self(void)
{
	static struct peer self = { .name = "self" };

	return &self;
}

static void
end_agent(const char *how, void (*look)(void *ctx), void *ctx)
{
	note("%s", how);
	if (look != NULL)
		look(ctx);
}

void
__wrap_agent_close(void (*look)(void *ctx), void *ctx)
{
	end_agent("close ", look, ctx);
}

bool
__wrap_dynamic_is(void)
{
	return changes;
}

void
__wrap_dynamic_leave(bool waits, int64_t deadline)
{
	note("go(%d) ", waits);
	if (waits)
		is_deadline(deadline);
}

void
__wrap_dynamic_end(void (*look)(void *ctx), void *ctx)
{
	end_agent("end ", look, ctx);
}

enum xr_status
__wrap_ask_await_idle(int64_t deadline, struct xr_error *err)
{
	is_deadline(deadline);
	return step("idle", err);
}

uint32_t
__wrap_ask_active(void)
{
	return 3;
}

uint64_t
__wrap_ask_begun(void)
{
	return 50;
}

static bool no_names;

const char **
__wrap_gather_names(size_t *count)
{
	const char **names =
		no_names ? NULL : __real_calloc(2, sizeof(names[0]));

	if (names == NULL)
		return NULL;
	names[0] = "one";
	names[1] = "self";
	*count = 2;
	return names;
}

/* What another says at each meeting about its calls, until it says the same twice. */
#define SAID 4

static const struct said {
	uint64_t active, begun;
} *says;
static unsigned meetings;

static struct xr_value *
calls_of(uint64_t active, uint64_t begun)
{
	struct xr_value *items[2] = { xr_value_new_u64(active),
		xr_value_new_u64(begun) };

	return xr_value_new_list_of(items, 2);
}

static void
is_own(const struct xr_value *value)
{
	uint64_t n = 0;

	cr_expect_eq(xr_value_count(value), 2);
	xr_value_get_u64(xr_value_at(value, 0), &n);
	cr_expect_eq(n, 3);
	xr_value_get_u64(xr_value_at(value, 1), &n);
	cr_expect_eq(n, 50);
}

enum xr_status
__wrap_meet(const struct xr_rpc_meeting *meeting, enum meet_for what,
	struct xr_value *value, struct xr_value **all, struct xr_error *err)
{
	const struct said *now;

	cr_expect_eq(meeting->count, 2);
	cr_expect_str_eq(meeting->names[0], "one");
	cr_expect_str_eq(meeting->names[1], "self");
	cr_expect_eq(what, MEET_LEAVING);
	cr_expect_gt(meeting->timeout, PATIENCE - XR_SECONDS(600));
	cr_expect_leq(meeting->timeout, PATIENCE);
	if (all == NULL) {
		cr_expect_eq(xr_value_kind(value), XR_NIL);
		return step("all", err);
	}
	is_own(value);
	if (step("meet", err) != XR_OK)
		return fails_with;
	*all = xr_value_new_list();
	now = meetings < SAID ? &says[meetings] : &says[SAID - 1];
	xr_value_append(*all, calls_of(now->active, now->begun));
	xr_value_append(*all, calls_of(0, 7));
	return meetings++ < 20 ? XR_OK : XR_E_CLOSED; /* it has no end */
}

enum xr_status
__wrap_rref_settle(bool all, int64_t deadline, struct xr_error *err)
{
	is_deadline(deadline);
	return step(all ? "settle" : "users", err);
}

static uint32_t leaks;

uint32_t
__wrap_rref_leaks(char *text, size_t cap)
{
	note("look ");
	snprintf(text, cap, "(1, 2), (3, 4)");
	return leaks;
}

void
__wrap_peer_await_flushed(int64_t deadline)
{
	is_deadline(deadline);
	note("flush ");
}

enum xr_status
__wrap_parcel_await_sent(int64_t deadline, struct xr_error *err)
{
	is_deadline(deadline);
	return step("sent", err);
}

void
__wrap_xr_store_free(struct xr_store *store)
{
	cr_expect_eq(store, (struct xr_store *)trace);
	note("free ");
}

/* --- a group that stays ------------------------------------------------------------- */

static const struct said quiet[SAID] = { { 0, 1 }, { 0, 1 }, { 0, 1 },
	{ 0, 1 } };
static struct xr_error err;

static enum xr_status
shut_down(uint32_t flags)
{
	enum xr_status status;

	group.store = (struct xr_store *)trace;
	if (says == NULL)
		says = quiet;
	meetings = 0;
	began = clock_now();
	err = (struct xr_error){ 0 };
	status = xr_rpc_shutdown(flags, PATIENCE, &err);
	if (strstr(trace, "free") != NULL)
		cr_expect_null(group.store);
	else
		cr_expect_not_null(group.store);
	return status;
}

Test(rpc_leave, who_leaves_waits_for_all_and_then_goes)
{
	cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_OK);
	DID("enter idle meet idle meet settle all flush sent leave close look free ");
	began = clock_now();
	group.store = (struct xr_store *)trace;
	meetings = 0;
	cr_expect_eq(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_TIMEOUT_DEFAULT,
			     &err),
		XR_OK);
}

/* Two meetings in a row have to say the same, and that none calls. */
Test(rpc_leave, members_meet_until_none_of_them_calls)
{
	static const struct said busy[SAID] = { { 1, 1 }, { 0, 1 }, { 0, 2 },
		{ 0, 2 } };

	says = busy;
	cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_OK);
	DID("enter idle meet idle meet idle meet idle meet settle all flush sent leave close look free ");
	cr_expect_eq(meetings, 4);
}

Test(rpc_leave, who_does_not_wait_meets_nobody)
{
	leaks = 2;
	cr_expect_eq(shut_down(XR_SHUTDOWN_IMMEDIATE), XR_OK);
	DID("enter leave close free ");
}

/* It is closed all the same. */
Test(rpc_leave, a_step_that_fails_is_told)
{
	static const struct {
		const char *step, *did;
	} row[] = {
		{ "idle", "enter idle leave close look free " },
		{ "meet", "enter idle meet leave close look free " },
		{ "settle",
			"enter idle meet idle meet settle leave close look free " },
		{ "all",
			"enter idle meet idle meet settle all leave close look free " },
		{ "sent",
			"enter idle meet idle meet settle all flush sent leave close look free " },
		{ "enter", "enter " },
		{ "fork", "fork " },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fails = row[i].step;
		cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_E_TIMEOUT);
		snprintf(text, sizeof(text), "%s failed", row[i].step);
		cr_expect_str_eq(err.text, text);
		DID(row[i].did);
	}
	/* Nobody holds the lock. */
	cr_expect_eq(pthread_mutex_trylock(&group.changing), 0);
	pthread_mutex_unlock(&group.changing);
}

Test(rpc_leave, without_memory_nobody_is_met)
{
	no_names = true;
	cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	DID("enter leave close look free ");
	no_names = false;
	/* What it brings to a meeting. */
	for (unsigned at = 1; at <= 2; at++) {
		until_short = at;
		cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_E_NOMEM);
		cr_expect_eq(until_short, 0);
		cr_expect_str_eq(err.text, "out of memory");
		DID("enter idle leave close look free ");
	}
}

/* --- a group that changes ------------------------------------------------------------- */

Test(rpc_leave, who_leaves_a_group_that_changes_waits_for_itself)
{
	changes = true;
	cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_OK);
	DID("enter idle users go(1) flush sent leave end look free ");
	cr_expect_eq(shut_down(XR_SHUTDOWN_IMMEDIATE), XR_OK);
	DID("enter go(0) leave end free ");
	/* It goes in any case. */
	fails = "idle";
	cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_E_TIMEOUT);
	DID("enter idle go(1) leave end look free ");
	fails = "users";
	cr_expect_eq(shut_down(XR_SHUTDOWN_GRACEFUL), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "users failed");
	DID("enter idle users go(1) leave end look free ");
}

/* --- what is left ------------------------------------------------------------------------ */

/* said() - what is written to stderr by a shutdown with @flags. */
static const char *
said(uint32_t flags, enum xr_status status)
{
	static char text[512];
	int ends[2], before = dup(STDERR_FILENO);
	ssize_t n;

	cr_assert_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	cr_expect_eq(shut_down(flags), status);
	dup2(before, STDERR_FILENO);
	close(before);
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	return text;
}

Test(rpc_leave, references_that_are_left_are_told_or_are_an_error)
{
	cr_expect_str_eq(said(XR_SHUTDOWN_GRACEFUL, XR_OK), "");
	leaks = 2;
	cr_expect_str_eq(said(XR_SHUTDOWN_GRACEFUL, XR_OK),
		"xrun: self: 2 references were not released: (1, 2), (3, 4)\n");
	cr_expect_str_eq(said(XR_SHUTDOWN_STRICT, XR_E_EXISTS), "");
	cr_expect_str_eq(err.text, "2 references leaked: (1, 2), (3, 4)");
	/* What failed before is told first. */
	fails = "settle";
	cr_expect_str_eq(said(XR_SHUTDOWN_STRICT, XR_E_TIMEOUT), "");
	cr_expect_str_eq(err.text, "settle failed");
	fails = NULL;
	leaks = 0;
	cr_expect_str_eq(said(XR_SHUTDOWN_STRICT, XR_OK), "");
	leaks = 1;
	trace[0] = '\0';
	cr_expect_str_eq(said(XR_SHUTDOWN_STRICT | XR_SHUTDOWN_IMMEDIATE,
				 XR_E_EXISTS),
		"");
	DID("enter leave close look free ");
}

/* --- who may not ---------------------------------------------------------------------------- */

Test(rpc_leave, what_is_asked_for_is_checked_first)
{
	cr_expect_eq(xr_rpc_shutdown(0, -5, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE |
				     XR_SHUTDOWN_STRICT | 0x40,
			     0, &err),
		XR_E_INVAL);
	cr_expect_str_eq(err.text, "flags: 0x43 has unknown ones");
	for (int i = 0; i < 2; i++) {
		serves = i == 0;
		delivers = i == 1;
		cr_expect_eq(shut_down(0), XR_E_STATE);
		cr_expect_str_eq(err.text,
			"a function that serves a call cannot shut the agent down");
	}
	DID("");
}
