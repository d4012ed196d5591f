/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_module.c - what workers of thread_pool run, in processes without the thread
 * sanitizer, of which a child of fork() is not sure.
 */
#include <signal.h>

#include <xrun/func.h>
#include <xrun/proc.h>

static enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(n + 1));
}

static enum xr_status
die(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	raise(SIGKILL);
	return XR_OK;
}

static enum xr_status
end_with(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(arg, &n);
	return n == ordinal ?
		XR_OK :
		xr_error_set(err, XR_E_RANGE, "it is another one's");
}

enum xr_status xr_module_init(struct xr_error *err);

__attribute__((visibility("default"))) enum xr_status
xr_module_init(struct xr_error *err)
{
	const struct xr_func one = { .size = sizeof(one),
		.name = "add_one",
		.fn = add_one };
	const struct xr_func last = { .size = sizeof(last),
		.name = "die",
		.fn = die };
	enum xr_status status = xr_fn_register(&one, err);

	if (status == XR_OK)
		status = xr_fn_register(&last, err);
	return status == XR_OK ?
		xr_proc_register("end_with", end_with, NULL, err) :
		status;
}
