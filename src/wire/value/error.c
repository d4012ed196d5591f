/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - see xrun/value.h: what went wrong elsewhere. */
#include <stdlib.h>
#include <string.h>

#include <xrun/value.h>

#include "base/status.h"
#include "base/utf8.h"
#include "wire/value/node.h"

/* Texts of other programs may be anything, and are to arrive all the same. */
static void
mend(char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n) {
		n = utf8_step(text, left);
		if (n > 0)
			continue;
		*text = '?';
		n = 1;
	}
}

/* Bytes of all texts with their NULs; false: too many. */
static bool
measure(const struct error_parts *parts, size_t *size)
{
	*size = 0;
	for (int i = 0; i < ERROR_TEXTS; i++)
		if (parts->text[i].at != NULL &&
			(__builtin_add_overflow(*size, parts->text[i].len + 1,
				 size) ||
				*size > XR_VALUE_BYTES_MAX))
			return false;
	return true;
}

static void
copy_texts(struct value_error *e, const struct error_parts *parts)
{
	char *p = e->own;

	for (int i = 0; i < ERROR_TEXTS; i++) {
		struct span text = parts->text[i];

		e->text[i] = text.at == NULL ? NULL : p;
		if (text.at == NULL)
			continue;
		memcpy(p, text.at, text.len);
		p[text.len] = '\0';
		mend(p);
		p += text.len + 1;
	}
}

struct xr_value *
error_new(const struct error_parts *parts)
{
	struct value_error *e;
	uint8_t depth = 0;
	size_t size;

	if (parts->cause != NULL &&
		(!node_is(parts->cause, XR_ERROR) ||
			!node_above(parts->cause, &depth)))
		return NULL;
	if (!measure(parts, &size))
		return NULL;
	e = node_new(XR_ERROR, sizeof(*e) + size);
	if (e == NULL)
		return NULL;
	e->head.depth = depth;
	e->status = parts->status;
	e->worker_id = parts->worker_id;
	e->cause = xr_value_ref(parts->cause);
	copy_texts(e, parts);
	return &e->head;
}

void
error_fini(struct xr_value *value)
{
	xr_value_unref(((struct value_error *)value)->cause);
}

XR_EXPORT struct xr_value *
xr_value_new_error(const struct xr_failure *failure)
{
	struct error_parts parts;

	if (failure == NULL || failure->size < sizeof(*failure))
		return NULL;
	parts = (struct error_parts){
		.status = failure->status,
		.worker_id = failure->worker_id,
		.cause = failure->cause,
		.text = {
			[ERROR_TYPE] = span_of(failure->type),
			[ERROR_TEXT] = span_of(failure->text),
			[ERROR_FUNC] = span_of(failure->func),
			[ERROR_WORKER] = span_of(failure->worker),
			[ERROR_BACKTRACE] = span_of(failure->backtrace),
		},
	};
	return error_new(&parts);
}

XR_EXPORT enum xr_status
xr_value_failure(const struct xr_value *value, struct xr_failure *failure)
{
	const struct value_error *e = (const struct value_error *)value;

	if (!node_is(value, XR_ERROR))
		return XR_E_SCHEMA;
	if (failure->size < sizeof(*failure))
		return XR_E_INVAL;
	failure->status = (enum xr_status)e->status;
	failure->type = e->text[ERROR_TYPE];
	failure->text = e->text[ERROR_TEXT];
	failure->func = e->text[ERROR_FUNC];
	failure->worker = e->text[ERROR_WORKER];
	failure->worker_id = e->worker_id;
	failure->backtrace = e->text[ERROR_BACKTRACE];
	failure->cause = e->cause;
	return XR_OK;
}
