/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_prof_fault.c - calls that fail on purpose; see rpc_prof.c. */
#include <string.h>
#include <time.h>

#include "tests/prog/prog.h"
#include "tests/prog/rpc_prof.h"

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static enum xr_status
call_for(int64_t timeout, int64_t number, struct xr_error *err)
{
	struct xr_rpc_call call =
		call_of(1, "echo.value", xr_value_new_i64(number));
	struct xr_value *value = NULL;
	enum xr_status status;

	call.timeout = timeout;
	status = xr_rpc_sync(&call, &value, err);
	xr_value_unref(value);
	xr_value_unref(call.args);
	return status;
}

void
try_delayed(void)
{
	struct xr_error err = { 0 };
	int64_t begun = now(), out = metric("net.bytes_out");

	holds(call_for(XR_SECONDS(1), 1, &err) == XR_E_TIMEOUT,
		"1 s is not enough for 1.5 s");
	holds(now() - begun >= XR_SECONDS(1.5), "it was delayed");
	holds(metric("net.bytes_out") == out, "and is not sent any more");
	must(call_for(XR_TIMEOUT_DEFAULT, 1, &err), &err, "the default");
	must(call_for(XR_TIMEOUT_NEVER, 1, &err), &err, "no timeout");
	holds(now() - begun >= XR_SECONDS(4.5), "all were");
}

/* Three times, and the fourth goes through; each of them has its own three. */
static void
fail_thrice(int64_t number)
{
	int64_t errors = metric("net.errors"), out = metric("net.bytes_out");
	struct xr_error err = { 0 };

	for (int i = 0; i < 3; i++) {
		holds(call_for(XR_TIMEOUT_DEFAULT, number, &err) ==
				XR_E_INJECTED,
			"it fails");
		holds(strstr(err.text, "worker1 (1)") != NULL,
			"'%s' says to whom", err.text);
	}
	holds(metric("net.errors") == errors + 3, "errors are counted");
	holds(metric("net.bytes_out") == out, "nothing was sent");
	must(call_for(XR_TIMEOUT_DEFAULT, number, &err), &err, "the fourth");
}

/* A call is counted until its callbacks have run, behind whoever waits. */
static void
nothing_open(void)
{
	for (int i = 0; i < 6000 && metric("agent.client_active_calls") > 0;
		i++)
		prog_pause_ms(10);
	holds(metric("agent.client_active_calls") == 0, "nothing is open");
}

void
try_failed(void)
{
	struct xr_error err = { 0 };
	struct xr_future *future;

	fail_thrice(1);
	fail_thrice(2);
	must(call_for(XR_TIMEOUT_DEFAULT, 1, &err), &err, "the first, again");
	for (int i = 0; i < 4; i++) {
		future = call_async(1, "echo.value", xr_value_new_i64(3));
		holds(xr_future_wait(future, XR_SECONDS(60), NULL, &err) ==
				(i < 3 ? XR_E_INJECTED : XR_OK),
			"future %d fails or not", i);
		xr_future_unref(future);
	}
	nothing_open();
	holds(metric("agent.num_pending_requests") == 0, "nothing is pending");
}

static int64_t
served(void)
{
	static const char key[] = "net.served";
	struct xr_value *v =
		call_sync(1, "metric", xr_value_new_text(key, strlen(key)));
	int64_t n = -1;

	must(xr_value_get_i64(v, &n), NULL, key);
	xr_value_unref(v);
	return n;
}

/* Oneway calls are dropped once and REQUESTs doubled, by their bytes; ask twice, as
 * a call that is doubled once looks on its second time. */
void
try_odd(void)
{
	struct xr_error err = { 0 };
	int64_t before;

	served();
	before = served();
	must(call_for(XR_TIMEOUT_DEFAULT, 5, &err), &err, "doubled");
	while (served() < before + 3)
		continue;
	/* An answer that is not the first is nobody's. */
	must(call_for(XR_TIMEOUT_DEFAULT, 5, &err), &err, "once");
	nothing_open();
	holds(metric("agent.num_pending_requests") == 0, "nothing is pending");
}

void
try_whole(void)
{
	struct xr_error err = { 0 };

	for (int64_t n = 0; n < 5; n++)
		must(call_for(XR_TIMEOUT_DEFAULT, n, &err), &err, "call");
}
