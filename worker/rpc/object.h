/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - methods of objects, as functions that are called over a reference. */
#ifndef WORKER_RPC_OBJECT_H
#define WORKER_RPC_OBJECT_H

#include <xrun/error.h>
#include <xrun/func.h>
#include <xrun/value.h>

struct func;

/* object_method() - the method @name of @object's type, and it as a function: name,
 * schema and flags. XR_E_NO_FUNCTION: it has none. */
enum xr_status object_method(const struct xr_value *object, const char *name,
	const struct func **func, struct xr_error *err);

/* object_run() - the method that @func stands for. */
enum xr_status object_run(const struct func *func, struct xr_call *call,
	const struct xr_value *object, struct xr_value *args);

#endif /* WORKER_RPC_OBJECT_H */
