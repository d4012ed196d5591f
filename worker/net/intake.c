/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c - see intake.h. */
#include <string.h>

#include "base/status.h"
#include "worker/net/intake.h"

/* What was not used yet. */
struct rest {
	const char *at;
	size_t len;
};

void
intake_init(struct intake *in, struct bodies *bodies,
	const struct intake_ops *ops, void *ctx)
{
	*in = (struct intake){ .bodies = bodies, .ops = ops, .ctx = ctx };
}

void
intake_fini(struct intake *in)
{
	bodies_unref(in->own);
	in->own = NULL;
	in->body = NULL;
}

static enum xr_status
deliver(struct intake *in, const void *data, struct xr_body_buffer *own)
{
	struct xr_body body = {
		.data = data,
		.len = (size_t)in->head.len,
		.own = own,
	};

	return in->ops->deliver(in->ctx, &in->head, &body) ? XR_OK :
							     XR_E_CLOSED;
}

/* The body is all there. */
static enum xr_status
finish(struct intake *in)
{
	const char *data = in->body;
	struct xr_body_buffer *own = in->own;
	enum xr_status status;

	in->body = NULL;
	in->own = NULL;
	status = deliver(in, data, own);
	bodies_unref(own);
	return status;
}

/* Memory for a body that is not delivered where it lies. */
static enum xr_status
begin(struct intake *in, struct xr_error *err)
{
	in->got = 0;
	if (in->head.len > INTAKE_LONG)
		in->body = in->ops->place(in->ctx, &in->head);
	if (in->body != NULL)
		return XR_OK;
	in->own = bodies_get(in->bodies, in->head.len);
	if (in->own == NULL)
		return fail(err, XR_E_NOMEM,
			"no memory for a message of %llu bytes from it",
			(unsigned long long)in->head.len);
	in->body = bodies_data(in->own);
	return XR_OK;
}

/* A head was read, and is followed by @rest. */
static enum xr_status
on_head(struct intake *in, struct rest *rest, struct xr_error *err)
{
	enum xr_status status;

	if (in->head.len > INTAKE_SHORT || in->head.len > rest->len)
		return begin(in, err);
	status = deliver(in, rest->at, NULL);
	rest->at += in->head.len;
	rest->len -= (size_t)in->head.len;
	return status;
}

static enum xr_status
take_head(struct intake *in, struct rest *rest, struct xr_error *err)
{
	const char *head = rest->at;
	size_t n = NET_HEAD - in->have;
	enum xr_status status;

	if (in->have > 0 || rest->len < NET_HEAD) {
		n = n < rest->len ? n : rest->len;
		memcpy(in->bytes + in->have, rest->at, n);
		in->have += n;
		head = in->bytes;
	}
	rest->at += n;
	rest->len -= n;
	if (in->have > 0 && in->have < NET_HEAD)
		return XR_OK;
	in->have = 0;
	status = net_head_get(head, &in->head, err);
	return status == XR_OK ? on_head(in, rest, err) : status;
}

static enum xr_status
take_body(struct intake *in, struct rest *rest)
{
	uint64_t n = in->head.len - in->got;

	if (n > rest->len)
		n = rest->len;
	memcpy(in->body + in->got, rest->at, (size_t)n);
	in->got += n;
	rest->at += n;
	rest->len -= (size_t)n;
	return in->got == in->head.len ? finish(in) : XR_OK;
}

enum xr_status
intake_feed(struct intake *in, const char *bytes, size_t len,
	struct xr_error *err)
{
	struct rest rest = { bytes, len };
	enum xr_status status = XR_OK;

	while (status == XR_OK && rest.len > 0)
		status = in->body == NULL ? take_head(in, &rest, err) :
					    take_body(in, &rest);
	return status;
}

char *
intake_rest(const struct intake *in, size_t *len)
{
	uint64_t n = in->body == NULL ? 0 : in->head.len - in->got;

	if (n < INTAKE_LONG)
		return NULL;
	*len = n < SIZE_MAX ? (size_t)n : SIZE_MAX;
	return in->body + in->got;
}

enum xr_status
intake_filled(struct intake *in, size_t len)
{
	in->got += len;
	return in->got == in->head.len ? finish(in) : XR_OK;
}

bool
intake_is_midway(const struct intake *in)
{
	return in->have > 0 || in->body != NULL;
}
