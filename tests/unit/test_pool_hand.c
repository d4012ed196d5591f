/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_hand.c - running a registered function, on one thread: what it answers, when it
 * answers later, and when it does not return. */
#include <setjmp.h>
#include <stdarg.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include <xrun/func.h>

#include "base/status.h"
#include "tests/unit/forked.h"
#include "wire/value/many.h"
#include "worker/pool/hand.h"
#include "worker/rpc/future.h"

TestSuite(pool_hand, .timeout = 60);

#define LEFT "it has ended its thread (pthread_exit), which is the pool's"

static struct hand h;
static struct xr_value *result;
static struct xr_error error;

/* --- functions ----------------------------------------------------------------------------- */

enum {
	ANSWERS,
	SAYS_NOTHING,
	RETURNS, /* a status */
	FAILS,
	FAILS_WITH, /* an error that has it all */
	DEFERS,
	DEFERS_AND_ANSWERS,
	DEFERS_AND_DROPS,
	LEAVES,
	ANSWERS_AND_LEAVES,
	DEFERS_AND_LEAVES,
};

static int does;
static unsigned runs;
static bool was_cancelled;
static struct xr_call *deferred;
static jmp_buf out;

static struct xr_value *
whole_error(void)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = XR_E_RANGE,
		.text = "far",
		.func = "theirs",
		.worker = "elsewhere",
		.worker_id = 77,
		.backtrace = "lines" };

	return xr_value_new_error(&f);
}

static enum xr_status
act(struct xr_call *call, struct xr_value *args, void *ctx)
{
	runs++;
	EXPECT(args == h.args && ctx == &runs);
	was_cancelled = xr_call_cancelled(call);
	if (does >= DEFERS && does != LEAVES && does != ANSWERS_AND_LEAVES)
		deferred = xr_call_defer(call);
	switch (does) {
	case ANSWERS:
	case ANSWERS_AND_LEAVES:
		xr_reply(call, xr_value_new_i64(5));
		break;
	case RETURNS:
		return XR_E_CLOSED;
	case FAILS:
		xr_reply_fail(call, XR_E_EXISTS, "there");
		break;
	case FAILS_WITH:
		xr_reply_error(call, whole_error());
		break;
	case DEFERS_AND_ANSWERS:
		xr_reply(deferred, xr_value_new_i64(6));
		xr_call_drop(deferred);
		break;
	case DEFERS_AND_DROPS:
		xr_call_drop(deferred);
		break;
	default:
		break;
	}
	if (does >= LEAVES)
		longjmp(out, 1);
	return XR_OK;
}

static struct func func = { .f = { .size = sizeof(struct xr_func),
				    .name = "act",
				    .fn = act,
				    .ctx = &runs } };

/* Whatever the hash: the one that is registered under another name that has it. */
const struct func *__wrap_func_find(uint32_t hash);
static uint32_t asked;
static const struct func *found;

const struct func *
__wrap_func_find(uint32_t hash)
{
	asked = hash;
	return found;
}

/* --- who waits ------------------------------------------------------------------------------ */

static unsigned sleeps, wakes;
static bool drops_late; /* nothing else comes */

long __wrap_syscall(long nr, ...);

/* The first sleep ends for nothing; at the second one the answer comes. */
long
__wrap_syscall(long nr, ...)
{
	const void *addr;
	uint32_t val;
	va_list ap;
	int op;

	EXPECT_EQ(nr, SYS_futex);
	va_start(ap, nr);
	addr = va_arg(ap, const void *);
	op = va_arg(ap, int);
	val = va_arg(ap, uint32_t);
	va_end(ap);
	if (op == FUTEX_WAKE_PRIVATE) {
		EXPECT_EQ(val, 1);
		wakes += addr == &h.answered;
		return 0;
	}
	NEED(addr == &h.answered);
	EXPECT_EQ(val, 2);
	EXPECT_EQ(atomic_load(&h.answered), 2);
	if (++sleeps == 2) {
		if (!drops_late)
			xr_reply(deferred, xr_value_new_i64(7));
		xr_call_drop(deferred);
	}
	NEED(sleeps < 9);
	return 0;
}

/* --- a hand --------------------------------------------------------------------------------- */

static struct xr_value *args, *fitting;

static bool
run(int what)
{
	bool ok;

	does = what;
	runs = sleeps = wakes = 0;
	result = NULL;
	args = xr_value_new_list();
	if (func.f.schema != NULL)
		EXPECT_EQ(xr_value_append(args, fitting), XR_OK);
	ok = hand_run(&h, &func, args, NULL, &result);
	xr_value_unref(args);
	EXPECT(h.args == NULL);
	return ok;
}

static void
expect_number(bool ok, int64_t want)
{
	int64_t n = -1;

	EXPECT(ok);
	EXPECT_EQ(xr_value_get_i64(result, &n), XR_OK);
	EXPECT_EQ(n, want);
	xr_value_unref(result);
}

static void
expect_error(bool ok, enum xr_status status, const char *text)
{
	EXPECT(!ok);
	EXPECT_EQ(failure_status(result, &error), status);
	EXPECT_STR(error.text, text);
	xr_value_unref(result);
}

static bool
is_over(const struct hand *of)
{
	EXPECT(of == &h);
	return true;
}

FORKED_TEST(pool_hand, a_function_has_one_answer)
{
	expect_number(run(ANSWERS), 5);
	EXPECT(!was_cancelled);
	EXPECT(run(SAYS_NOTHING));
	EXPECT(result == NULL);
	expect_error(run(RETURNS), XR_E_CLOSED, xr_status_text(XR_E_CLOSED));
	h.is_cancelled = is_over;
	expect_number(run(ANSWERS), 5);
	EXPECT(was_cancelled);
	EXPECT_EQ(runs, 1);
	EXPECT_EQ(sleeps + wakes, 0);
	func.f.schema = "i";
	fitting = xr_value_new_i64(1);
	expect_number(run(ANSWERS), 5);
	fitting = xr_value_new_nil();
	EXPECT(!run(ANSWERS));
	EXPECT_EQ(failure_status(result, &error), XR_E_SCHEMA);
	EXPECT_EQ(runs, 0);
	xr_value_unref(result);
}

/* --- where it failed -------------------------------------------------------------------------- */

static void
expect_failure(const struct xr_failure *want)
{
	struct xr_failure f = { .size = sizeof(f) };

	NEED(xr_value_failure(result, &f) == XR_OK);
	EXPECT_EQ(f.status, want->status);
	EXPECT_STR(f.text, want->text);
	EXPECT_STR(f.func, want->func);
	EXPECT_STR(f.worker, want->worker);
	EXPECT_EQ(f.worker_id, want->worker_id);
	if (want->backtrace != NULL)
		EXPECT_STR(f.backtrace, want->backtrace);
	else
		EXPECT(strlen(f.backtrace) > 200);
	xr_value_unref(result);
}

FORKED_TEST(pool_hand, an_error_says_where_it_happened)
{
	const struct xr_failure ours = { .status = XR_E_EXISTS,
		.text = "there",
		.func = "act",
		.worker = "us/3",
		.worker_id = (uint32_t)getpid() },
				theirs = { .status = XR_E_RANGE,
					.text = "far",
					.func = "theirs",
					.worker = "elsewhere",
					.worker_id = 77,
					.backtrace = "lines" };
	struct xr_failure cut = ours;
	char name[180], start[151];

	h.name = "us/3";
	EXPECT(!run(FAILS));
	expect_failure(&ours);
	EXPECT(!run(FAILS_WITH));
	expect_failure(&theirs);
	memset(name, 'n', sizeof(name));
	name[179] = '\0';
	memset(start, 'n', 150);
	start[150] = '\0';
	h.name = name;
	cut.worker = start;
	EXPECT(!run(FAILS));
	expect_failure(&cut);
}

/* --- later ------------------------------------------------------------------------------------- */

FORKED_TEST(pool_hand, who_runs_a_function_waits_for_a_late_answer)
{
	expect_number(run(DEFERS), 7);
	EXPECT_EQ(sleeps, 2);
	EXPECT_EQ(wakes, 1);
	expect_number(run(ANSWERS), 5);
	expect_number(run(DEFERS_AND_ANSWERS), 6);
	EXPECT_EQ(sleeps + wakes, 0);
	expect_error(run(DEFERS_AND_DROPS), XR_E_CANCELLED,
		"the call was dropped without an answer");
	expect_number(run(ANSWERS), 5);
	EXPECT_EQ(sleeps + wakes, 0);
	drops_late = true;
	expect_error(run(DEFERS), XR_E_CANCELLED,
		"the call was dropped without an answer");
	EXPECT_EQ(sleeps, 2);
	EXPECT_EQ(wakes, 1);
}

/* --- gone -------------------------------------------------------------------------------------- */

static unsigned gone;

static void
go(void *data, void *ctx)
{
	(void)data;
	(void)ctx;
	gone++;
}

/* Of which is known when nobody has them any more. */
static struct xr_value *
kept(void)
{
	static char text[] = "kept";

	return xr_value_wrap_bytes(text, 4, go, NULL);
}

/* Its arguments are two, of which the second one is @lent, or nothing. */
static bool
run_and_leave(int what, struct xr_value *lent)
{
	static struct xr_value *items[2];

	does = what;
	runs = sleeps = wakes = gone = 0;
	result = NULL;
	items[0] = kept();
	items[1] = xr_value_new_nil();
	args = xr_value_new_list_of(items, 2);
	if (lent != NULL) {
		many_lend(args, 1, lent);
		h.lent = 2;
	}
	if (setjmp(out) == 0) {
		hand_run(&h, &func, args, NULL, &result);
		EXPECT(false);
	}
	EXPECT(h.args == args);
	return hand_left(&h, &result);
}

FORKED_TEST(pool_hand, a_function_that_has_left_its_thread_has_failed)
{
	struct xr_value *lent = kept();

	for (int i = 0; i < 2; i++) {
		expect_error(run_and_leave(LEAVES, NULL), XR_E_STATE, LEFT);
		EXPECT_EQ(gone, 1);
		EXPECT(h.args == NULL && h.lent == 0);
		expect_error(run_and_leave(LEAVES, lent), XR_E_STATE, LEFT);
		EXPECT_EQ(gone, 1);
		EXPECT(h.args == NULL && h.lent == 0);
	}
	xr_value_unref(lent);
	EXPECT_EQ(gone, 2);
	expect_number(run(ANSWERS), 5);
}

FORKED_TEST(pool_hand, what_a_function_has_answered_before_counts)
{
	expect_number(run_and_leave(ANSWERS_AND_LEAVES, NULL), 5);
	EXPECT_EQ(gone, 1);
	expect_number(run_and_leave(DEFERS_AND_LEAVES, NULL), 7);
	EXPECT_EQ(sleeps, 2);
	EXPECT_EQ(gone, 1);
	expect_number(run(ANSWERS), 5);
}

/* --- its name ------------------------------------------------------------------------------------ */

FORKED_TEST(pool_hand, a_function_is_found_by_its_name_and_takes_values)
{
	const struct func *f = NULL;

	EXPECT_EQ(hand_find("act", &f, &error), XR_E_NO_FUNCTION);
	EXPECT_STR(error.text, "act is not registered, or after xr_init()");
	found = &func;
	EXPECT_EQ(hand_find("acts", &f, &error), XR_E_NO_FUNCTION);
	EXPECT_STR(error.text, "acts is not registered, or after xr_init()");
	EXPECT_EQ(asked, func_hash("acts", 4));
	EXPECT(f == NULL);
	EXPECT_EQ(hand_find("act", &f, &error), XR_OK);
	EXPECT(f == &func);
	func.f.fn = NULL;
	f = NULL;
	EXPECT_EQ(hand_find("act", &f, &error), XR_E_SCHEMA);
	EXPECT_STR(error.text, "act takes bytes");
	EXPECT(f == NULL);
}
