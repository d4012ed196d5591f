/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_nested.c - calls within calls, where no more threads can be made. */
#include <errno.h>

#include "tests/unit/agent_rig.h"

static _Atomic bool refused;

/* The linker gives the library this for its own (--wrap). */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg)
{
	return atomic_load(&refused) ?
		EAGAIN :
		__real_pthread_create(thread, attr, fn, arg);
}

/* Calls itself @n times more, each within the one before, and counts them. */
static enum xr_status
nest(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0, below = 0;
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	if (n > 0)
		status = ask("nest", INTS(n - 1), &value, &err);
	if (status != XR_OK)
		return xr_reply_fail(call, status, err.text);
	if (n > 0)
		below = int_of(value) + 1;
	return xr_reply(call, xr_value_new_i64(below));
}

static const struct xr_func functions[] = {
	FUNC("nest", "i", nest, 0),
};

TestSuite(call_nested, .timeout = 50);

Test(call_nested, run_on_the_waiting_thread_if_no_other_can_be_made)
{
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };

	offer(functions, 1);
	join(0);
	atomic_store(&refused, true);
	cr_assert_eq(ask("nest", INTS(100), &value, &err), XR_OK, "%s",
		err.text);
	cr_expect_eq(int_of(value), 100);
	leave();
}

Test(call_nested, name_the_limit_when_the_stack_is_used_up)
{
	struct xr_error err = { 0 };

	offer(functions, 1);
	join(0);
	atomic_store(&refused, true);
	cr_assert_eq(ask("nest", INTS(1000000), NULL, &err), XR_E_REMOTE, "%s",
		err.text);
	cr_expect_not_null(strstr(err.text, "RLIMIT_NPROC"), "%s", err.text);
	leave();
}
