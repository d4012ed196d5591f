/* SPDX-License-Identifier: Apache-2.0 */
/* conf.c - see conf.h. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/pool/conf.h"
#include "worker/pool/hand.h"
#include "worker/proc/proc.h"

#define NAME_MOST 100 /* bytes */

static uint32_t
count_processors(void)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof(set), &set) == -1)
		return 1;
	count = CPU_COUNT(&set);
	return count < 1 ? 1 : (uint32_t)count;
}

static enum xr_status
check_numbers(const struct xr_pool_opts *o, struct xr_error *err)
{
	const uint32_t known = XR_POOL_CONTEXT | XR_POOL_DRAINS;

	if (o->size < sizeof(*o))
		return fail(err, XR_E_INVAL, "struct xr_pool_opts: its size");
	if (o->kind > XR_POOL_THREADS)
		return fail(err, XR_E_INVAL, "no kind of pools is %d", o->kind);
	if (o->routing > XR_POOL_P2P)
		return fail(err, XR_E_INVAL, "no routing is %d", o->routing);
	if (o->on_worker_error > XR_POOL_TERMINATE)
		return fail(err, XR_E_INVAL, "no on_worker_error is %d",
			o->on_worker_error);
	if (o->mode > XR_ENC_SHARE)
		return fail(err, XR_E_INVAL, "no mode is %d", o->mode);
	if ((o->flags & ~known) != 0)
		return fail(err, XR_E_INVAL, "unknown flags 0x%x", o->flags);
	if (timeout_check(o->start_window, err) != XR_OK)
		return XR_E_INVAL;
	if (o->workers > XR_POOL_WORKERS_MAX)
		return fail(err, XR_E_RANGE, "%u workers, and %d are the most",
			o->workers, XR_POOL_WORKERS_MAX);
	if (o->tasks > XR_POOL_TASKS_MAX)
		return fail(err, XR_E_RANGE, "%u tasks, and %d are the most",
			o->tasks, XR_POOL_TASKS_MAX);
	return XR_OK;
}

static enum xr_status
check_contexts(const struct xr_pool_opts *o, uint32_t workers,
	struct xr_error *err)
{
	if (o->contexts == NULL)
		return XR_OK;
	if ((o->flags & XR_POOL_CONTEXT) == 0)
		return fail(err, XR_E_INVAL,
			"contexts, and no function takes them: XR_POOL_CONTEXT");
	if (xr_value_kind(o->contexts) != XR_LIST ||
		xr_value_count(o->contexts) != workers)
		return fail(err, XR_E_INVAL,
			"%zu contexts for %u workers: a list of one for each",
			xr_value_count(o->contexts), workers);
	return XR_OK;
}

static enum xr_status
check_initializer(const struct xr_pool_opts *o, struct xr_error *err)
{
	const struct func *func;

	if (o->initargs != NULL &&
		(xr_value_kind(o->initargs) != XR_LIST ||
			o->initializer == NULL))
		return fail(err, XR_E_INVAL,
			"initargs is a list, for an initializer");
	if (o->initializer == NULL || o->module != NULL)
		return XR_OK;
	return hand_find(o->initializer, &func, err);
}

static bool
copy_text(char **to, const char *from)
{
	if (from == NULL)
		return true;
	*to = strdup(from);
	return *to != NULL;
}

enum xr_status
conf_init(struct pool_conf *c, const struct xr_pool_opts *o,
	struct xr_error *err)
{
	enum xr_status status = check_numbers(o, err);
	uint32_t workers = o->workers > 0 ? o->workers : count_processors();

	if (status == XR_OK)
		status = check_contexts(o, workers, err);
	if (status == XR_OK)
		status = check_initializer(o, err);
	if (status == XR_OK)
		status = proc_method(o->method, err);
	if (status != XR_OK)
		return status;
	*c = (struct pool_conf){
		.kind = o->kind,
		.routing = o->routing,
		.on_error = o->on_worker_error,
		.flags = o->flags,
		.workers = workers,
		.tasks = o->tasks > 0 ? o->tasks : XR_POOL_TASKS,
		.start_failures = o->start_failures > 0 ?
			o->start_failures :
			XR_POOL_START_FAILURES,
		.start_window = o->start_window,
		.max_tasks = o->max_tasks,
		.bytes = o->bytes,
		.mode = o->kind == XR_POOL_THREADS ? XR_ENC_COPY : o->mode,
		.contexts = xr_value_ref(o->contexts),
		.initargs = xr_value_ref(o->initargs),
	};
	timeout_field(&c->start_window, XR_POOL_START_WINDOW, NULL);
	if (copy_text(&c->name, o->name != NULL ? o->name : "pool") &&
		copy_text(&c->initializer, o->initializer) &&
		copy_text(&c->method, o->method) &&
		copy_text(&c->module, o->module)) {
		if (strlen(c->name) > NAME_MOST)
			c->name[NAME_MOST] = '\0';
		return XR_OK;
	}
	conf_fini(c);
	return fail(err, XR_E_NOMEM, "out of memory");
}

void
conf_fini(struct pool_conf *c)
{
	xr_value_unref(c->contexts);
	xr_value_unref(c->initargs);
	free(c->name);
	free(c->initializer);
	free(c->method);
	free(c->module);
	memset(c, 0, sizeof(*c));
}
