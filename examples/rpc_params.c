/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_params.c - parameters that rank 0 has, and the others use by a reference.
 *
 *   xrun -n 4 ./rpc_params
 *
 * Rank 0 makes an object and gives each trainer a reference to it. They fetch the
 * parameters, and push what is to be added, as methods of the object, which runs
 * on rank 0. The object goes when the last of them has released its reference.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>
#include <xrun/tensor.h>

#define PARAMS 3
#define ROUNDS 10

/* --- rank 0 ---------------------------------------------------------------- */

struct params {
	pthread_mutex_t lock;
	float value[PARAMS];
};

static struct xr_value *
tensor_of(const float *value)
{
	const struct xr_tensor_desc desc = {
		.size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.shape = { PARAMS },
	};
	struct xr_value *t = NULL;
	size_t bytes;

	if (xr_tensor_new(&desc, &t, NULL) == XR_OK)
		memcpy(xr_tensor_data(t, &bytes), value,
			PARAMS * sizeof(*value));
	return t;
}

/* NULL: that is something else. */
static const float *
floats_in(const struct xr_value *t)
{
	struct xr_tensor_desc desc = { .size = sizeof(desc) };
	size_t bytes = 0;
	const char *data = xr_tensor_data(t, &bytes);

	if (xr_tensor_desc(t, &desc) != XR_OK || desc.dtype != XR_DT_F32 ||
		desc.ndim != 1 || desc.shape[0] != PARAMS ||
		desc.strides[0] != 1)
		return NULL;
	return (const float *)(data + desc.offset);
}

static enum xr_status
pull(struct xr_call *call, void *self, struct xr_value *args, void *ctx)
{
	struct params *p = self;
	struct xr_value *now;

	(void)args;
	(void)ctx;
	pthread_mutex_lock(&p->lock);
	now = tensor_of(p->value);
	pthread_mutex_unlock(&p->lock);
	return xr_reply(call, now);
}

static enum xr_status
push(struct xr_call *call, void *self, struct xr_value *args, void *ctx)
{
	const float *add = floats_in(xr_value_at(args, 0));
	struct params *p = self;

	(void)ctx;
	if (add == NULL)
		return xr_reply_fail(call, XR_E_SCHEMA, "not so many");
	pthread_mutex_lock(&p->lock);
	for (int i = 0; i < PARAMS; i++)
		p->value[i] += add[i];
	pthread_mutex_unlock(&p->lock);
	return XR_OK;
}

static const struct xr_method methods[] = {
	{ .size = sizeof(methods[0]),
		.name = "pull",
		.schema = "",
		.fn = pull },
	{ .size = sizeof(methods[0]),
		.name = "push",
		.schema = "t",
		.fn = push },
};

static void
free_params(void *object, void *ctx)
{
	(void)ctx;
	free(object);
}

static const struct xr_type params_type = {
	.size = sizeof(params_type),
	.name = "params",
	.free = free_params,
	.methods = methods,
	.method_count = sizeof(methods) / sizeof(methods[0]),
};

/* --- the trainers ----------------------------------------------------------- */

static enum xr_status
train(struct xr_call *call, struct xr_value *args, void *ctx)
{
	static const float step[PARAMS] = { 1, 1, 1 };
	struct xr_rref_call pushing = { .size = sizeof(pushing),
		.rref = xr_value_rref(xr_value_at(args, 0)),
		.method = "push",
		.timeout = XR_TIMEOUT_DEFAULT };
	struct xr_rref_call pulling = pushing;
	enum xr_status status = XR_OK;
	struct xr_error err = { 0 };
	struct xr_value *now;

	(void)ctx;
	pulling.method = "pull";
	pushing.args = xr_value_new_list();
	if (xr_value_append(pushing.args, tensor_of(step)) != XR_OK)
		status = XR_E_NOMEM;
	for (int i = 0; i < ROUNDS && status == XR_OK; i++) {
		now = NULL;
		status = xr_rref_call_sync(&pulling, &now, &err);
		/* Here a gradient would be made of them. */
		xr_value_unref(now);
		if (status == XR_OK)
			status = xr_rref_call_sync(&pushing, NULL, &err);
	}
	xr_value_unref(pushing.args);
	return status == XR_OK ? XR_OK : xr_reply_fail(call, status, err.text);
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "train",
		.schema = "r",
		.fn = train },
};

/* --- all of it ----------------------------------------------------------------- */

static enum xr_status
show(struct xr_rref *params, struct xr_error *err)
{
	struct xr_rref_call pulling = { .size = sizeof(pulling),
		.rref = params,
		.method = "pull",
		.timeout = XR_TIMEOUT_DEFAULT };
	struct xr_value *now = NULL;
	enum xr_status status = xr_rref_call_sync(&pulling, &now, err);
	const float *value = now != NULL ? floats_in(now) : NULL;

	if (status == XR_OK && value != NULL)
		printf("after %d rounds of %u trainers: %.1f %.1f %.1f\n",
			ROUNDS, xr_job_size() - 1, value[0], value[1],
			value[2]);
	xr_value_unref(now);
	return status;
}

/* All trainers at once; xr_rpc_wait_end() has the first error. */
static enum xr_status
lead(struct xr_error *err)
{
	struct params *p = calloc(1, sizeof(*p));
	struct xr_value *object;
	struct xr_rref *params = NULL;
	struct xr_future *future;
	enum xr_status status, waited;

	if (p == NULL)
		return XR_E_NOMEM;
	pthread_mutex_init(&p->lock, NULL);
	object = xr_value_new_opaque("params", p);
	status = xr_rref_from_value(object, &params, err);
	if (status == XR_OK)
		status = xr_rpc_wait_begin(err);
	if (status != XR_OK) {
		xr_rref_unref(params);
		return status;
	}
	for (uint32_t i = 1; i < xr_job_size() && status == XR_OK; i++) {
		struct xr_rpc_call call = XR_RPC_CALL;

		call.id = i;
		call.func = "train";
		call.args = xr_value_new_list();
		status = xr_value_append(call.args, xr_value_new_rref(params));
		future = NULL;
		if (status == XR_OK)
			status = xr_rpc_async(&call, &future, err);
		xr_future_unref(future);
		xr_value_unref(call.args);
	}
	waited = xr_rpc_wait_end(XR_SECONDS(60), err);
	if (status == XR_OK)
		status = waited;
	if (status == XR_OK)
		status = show(params, err);
	xr_rref_unref(params);
	return status;
}

int
main(int argc, char **argv)
{
	struct xr_error err = { 0 };
	enum xr_status status;
	char name[32];

	if (getenv("XRUN_RANK") == NULL && getenv("RANK") == NULL) {
		fprintf(stderr, "%s needs several ranks; run: xrun -n 4 %s\n",
			argv[0], argv[0]);
		return 2;
	}
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	status = xr_type_register(&params_type, &err);
	if (status == XR_OK)
		status = xr_module_static(functions, 1, &err);
	if (status == XR_OK)
		status = xr_rpc_init(name, -1, -1, NULL, &err);
	if (status == XR_OK && xr_job_rank() == 0)
		status = lead(&err);
	if (status == XR_OK)
		status = xr_rpc_shutdown(XR_SHUTDOWN_STRICT, XR_SECONDS(30),
			&err);
	if (status != XR_OK)
		fprintf(stderr, "rank %u: %s: %s\n", xr_job_rank(),
			xr_status_name(status), err.text);
	return status == XR_OK ? 0 : 1;
}
