/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - see target.h. They are few, and are looked for once a process. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/proc/target.h"

#define NAME_MAX_ 127

static struct target *_Atomic first;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

const struct target *
target_find(const char *name)
{
	const struct target *t = atomic_load(&first);

	while (t != NULL && strcmp(t->name, name) != 0)
		t = t->next;
	return t;
}

XR_EXPORT enum xr_status
xr_proc_register(const char *name, xr_proc_fn *fn, void *ctx,
	struct xr_error *err)
{
	size_t len = name != NULL ? strnlen(name, NAME_MAX_ + 1) : 0;
	struct target *t;
	bool taken;

	if (len == 0 || len > NAME_MAX_ || fn == NULL)
		return fail(err, XR_E_INVAL,
			"xr_proc_register: a name of 1 to %d bytes, and a function",
			NAME_MAX_);
	t = calloc(1, sizeof(*t) + len + 1);
	if (t == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	t->fn = fn;
	t->ctx = ctx;
	memcpy(t->name, name, len);
	pthread_mutex_lock(&changing);
	taken = target_find(name) != NULL;
	if (!taken) {
		t->next = atomic_load(&first);
		atomic_store(&first, t);
	}
	pthread_mutex_unlock(&changing);
	if (!taken)
		return XR_OK;
	free(t);
	return fail(err, XR_E_EXISTS, "%s is registered already", name);
}
