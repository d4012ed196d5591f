/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - see object.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/value_hooks.h"
#include "worker/rpc/func.h"
#include "worker/rpc/object.h"

/* Types stay for the process, and so do these. */
struct as_func {
	struct func func; /* first */
	const struct xr_type *type;
	const struct xr_method *method;
	struct as_func *next;
};

static struct {
	pthread_mutex_t lock;
	struct as_func *first;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The lock is held. */
static struct as_func *
find(const struct xr_method *method)
{
	struct as_func *f = known.first;

	while (f != NULL && f->method != method)
		f = f->next;
	return f;
}

static struct as_func *
add(const struct xr_type *type, const struct xr_method *method)
{
	struct as_func *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->func.f = (struct xr_func){
		.size = sizeof(f->func.f),
		.name = method->name,
		.schema = method->schema,
		.flags = method->flags,
	};
	f->func.name_len = (uint32_t)strlen(method->name);
	f->func.hash = func_hash(method->name, f->func.name_len);
	f->type = type;
	f->method = method;
	f->next = known.first;
	known.first = f;
	return f;
}

enum xr_status
object_method(const struct xr_value *object, const char *name,
	const struct func **func, struct xr_error *err)
{
	const char *type_name = xr_value_type(object);
	const struct xr_type *type = type_name != NULL ?
		value_type_find(type_name, strlen(type_name)) :
		NULL;
	const struct xr_method *method =
		type != NULL ? value_method_find(type, name) : NULL;
	struct as_func *f;

	if (method == NULL)
		return fail(err, XR_E_NO_FUNCTION, "%s%s has no method %s",
			type != NULL ? "type " : "a ",
			type != NULL ? type->name :
				       xr_kind_name(xr_value_kind(object)),
			name);
	pthread_mutex_lock(&known.lock);
	f = find(method);
	if (f == NULL)
		f = add(type, method);
	pthread_mutex_unlock(&known.lock);
	if (f == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	*func = &f->func;
	return XR_OK;
}

enum xr_status
object_run(const struct func *func, struct xr_call *call,
	const struct xr_value *object, struct xr_value *args)
{
	const struct as_func *f = (const struct as_func *)func;

	return f->method->fn(call,
		f->method->is_static ? NULL : xr_value_object(object, NULL),
		args, f->type->ctx);
}
