/* SPDX-License-Identifier: Apache-2.0 */
/* backend.c - see backend.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/span.h"
#include "base/status.h"
#include "base/suggest.h"
#include "base/timeout.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/options.h"
#include "worker/rpc/transports.h"

#define NAME_BYTES 63 /* bytes */

/* --- options of the library's own ------------------------------------------ */

/* An option that one backend has; a backend's are a row each, NULL at the end. */
struct own {
	const char *key;
	const char *want; /* what would be right */
	bool (*is_right)(struct span value);
};

static bool
is_threads(struct span value)
{
	uint32_t n = 0;

	return number_parse(value, OPTIONS_THREADS_MAX, &n) && n > 0;
}

static bool
is_number(struct span value)
{
	uint32_t n = 0;

	return number_parse(value, UINT32_MAX, &n);
}

static bool
is_kinds(struct span value)
{
	struct span kind;

	do {
		kind = span_next(&value, ',');
		if (!fault_is_kind(kind))
			return false;
	} while (value.at != NULL);
	return true;
}

/* "REQUEST:1.5s,REPLY:20ms" */
static bool
is_delays(struct span value)
{
	struct span one, kind;
	char time[32];
	int64_t ns;

	do {
		one = span_next(&value, ',');
		kind = span_next(&one, ':');
		if (!fault_is_kind(kind) || one.at == NULL || one.len == 0 ||
			one.len >= sizeof(time))
			return false;
		memcpy(time, one.at, one.len);
		time[one.len] = '\0';
		if (!opt_time(time, &ns))
			return false;
	} while (value.at != NULL);
	return true;
}

static const struct own no_own[] = { { 0 } };
static const struct own group_own[] = {
	{ "num_send_recv_threads", "a number from 1 to 4096", is_threads },
	{ 0 },
};
static const struct own faulty_own[] = {
	{ "messages_to_fail", "kinds of messages, split by commas", is_kinds },
	{ "messages_to_delay", "kinds and times, as REQUEST:1.5s,REPLY:20ms",
		is_delays },
	{ "num_fail_sends", "a number", is_number },
	{ 0 },
};

static enum xr_status
refuse(const struct own *rows, struct span key, struct xr_error *err)
{
	struct suggest near;
	const char *best;

	suggest_init(&near, key.at, key.len);
	options_offer(&near);
	for (; rows->key != NULL; rows++)
		suggest_offer(&near, rows->key);
	best = suggest_best(&near);
	return fail(err, XR_E_INVAL, "unknown option '%.*s'%s%s%s", QUOTED(key),
		best == NULL ? "" : " (did you mean ", best == NULL ? "" : best,
		best == NULL ? "" : "?)");
}

static enum xr_status
check_one(const struct own *rows, const char *text, struct xr_error *err)
{
	struct span value = span_of(text), key = span_next(&value, '=');

	if (value.at == NULL)
		return fail(err, XR_E_INVAL,
			"option '%.*s' has no value, as key=value has",
			QUOTED(key));
	for (const struct own *row = rows; row->key != NULL; row++) {
		if (!span_is(key, row->key))
			continue;
		if (row->is_right(value))
			return XR_OK;
		return fail(err, XR_E_INVAL, "%s: '%.*s' is not %s", row->key,
			QUOTED(value), row->want);
	}
	return refuse(rows, key, err);
}

static enum xr_status
check_own(const struct xr_rpc_opts *opts, void *ctx, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < opts->extra_count && status == XR_OK; i++)
		status = check_one(ctx, opts->extra[i], err);
	return status;
}

/* --- the rows -------------------------------------------------------------- */

#define BUILT_IN(text, own) \
	{ \
		.size = sizeof(struct xr_backend), \
		.name = (text), \
		.check = check_own, \
		.ctx = (void *)(own), \
	}

static const struct xr_backend built_in[] = {
	BUILT_IN("auto", no_own),
	BUILT_IN("process_group", group_own),
	BUILT_IN("faulty", faulty_own),
};
#define BUILT_INS (sizeof(built_in) / sizeof(built_in[0]))

static const struct {
	const char *name, *means;
} aliases[] = {
	{ "TENSORPIPE", "auto" },
	{ "PROCESS_GROUP", "process_group" },
	{ "FAULTY_TENSORPIPE", "faulty" },
};

/* Row i has the number i + 1. */
static const struct xr_backend *rows[BACKENDS_MAX] = {
	&built_in[0],
	&built_in[1],
	&built_in[2],
};
static _Atomic uint32_t count = BUILT_INS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct xr_backend *
backend_of(xr_backend_id id)
{
	if (id == 0)
		id = BACKEND_AUTO;
	if (id > atomic_load_explicit(&count, memory_order_acquire))
		return NULL;
	return rows[id - 1];
}

XR_EXPORT xr_backend_id
xr_backend_find(const char *name)
{
	uint32_t n = atomic_load_explicit(&count, memory_order_acquire);

	if (name == NULL)
		return 0;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i].name, name) == 0)
			name = aliases[i].means;
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(rows[i]->name, name) == 0)
			return i + 1;
	return 0;
}

XR_EXPORT const char *
xr_backend_name(xr_backend_id id)
{
	const struct xr_backend *b = id == 0 ? NULL : backend_of(id);

	return b == NULL ? NULL : b->name;
}

void
backend_offer(const struct xr_backend *backend, struct suggest *near)
{
	if (backend->check != check_own)
		return;
	for (const struct own *row = backend->ctx; row->key != NULL; row++)
		suggest_offer(near, row->key);
}

/* --- registering ----------------------------------------------------------- */

static bool
is_name(const char *name)
{
	size_t len = name == NULL ? 0 : strnlen(name, NAME_BYTES + 1);

	return len > 0 && len <= NAME_BYTES &&
		strspn(name,
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
		len;
}

static struct xr_backend *
copy(const struct xr_backend *b)
{
	struct xr_backend *own = malloc(sizeof(*own));
	char *name = strdup(b->name);

	if (own == NULL || name == NULL) {
		free(own);
		free(name);
		return NULL;
	}
	*own = *b;
	own->size = sizeof(*own);
	own->name = name;
	return own;
}

/* Under the lock. */
static enum xr_status
add(const struct xr_backend *b, xr_backend_id *id, struct xr_error *err)
{
	uint32_t n = atomic_load_explicit(&count, memory_order_relaxed);
	struct xr_backend *own;

	if (xr_backend_find(b->name) != 0)
		return fail(err, XR_E_EXISTS,
			"a backend %s is registered already", b->name);
	if (n == BACKENDS_MAX)
		return fail(err, XR_E_RANGE,
			"%u backends are registered, and there are no more", n);
	own = copy(b);
	if (own == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	rows[n] = own;
	atomic_store_explicit(&count, n + 1, memory_order_release);
	if (id != NULL)
		*id = n + 1;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_backend_register(const struct xr_backend *backend, xr_backend_id *id,
	struct xr_error *err)
{
	enum xr_status status;

	if (backend == NULL || backend->size < sizeof(*backend))
		return fail(err, XR_E_INVAL, "a backend without its size");
	if (!is_name(backend->name))
		return fail(err, XR_E_INVAL,
			"a backend's name is 1 to %d of A-Z a-z 0-9 _, and not '%.70s'",
			NAME_BYTES, backend->name == NULL ? "" : backend->name);
	pthread_mutex_lock(&lock);
	status = add(backend, id, err);
	pthread_mutex_unlock(&lock);
	return status;
}

/* --- options, whole -------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_rpc_opts_init(xr_backend_id backend, struct xr_rpc_opts *opts,
	struct xr_error *err)
{
	struct xr_rpc_opts all = {
		.size = sizeof(all),
		.backend = backend == 0 ? BACKEND_AUTO : backend,
		.timeout = XR_RPC_TIMEOUT_DEFAULT,
		.init_method = XR_INIT_METHOD_DEFAULT,
		.threads = backend == BACKEND_GROUP ?
			XR_RPC_GROUP_THREADS_DEFAULT :
			XR_RPC_THREADS_DEFAULT,
	};
	uint32_t size = opts->size;

	if (size < offsetof(struct xr_rpc_opts, timeout))
		return fail(err, XR_E_INVAL, "options without their size");
	if (backend_of(backend) == NULL)
		return fail(err, XR_E_NOTFOUND, "no backend has the number %u",
			backend);
	memcpy(opts, &all, size < sizeof(all) ? size : sizeof(all));
	opts->size = size;
	return XR_OK;
}

static enum xr_status
check_lists(const struct xr_rpc_opts *o, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	if ((o->transport_count > 0 && o->transports == NULL) ||
		(o->map_count > 0 && o->maps == NULL) ||
		(o->device_count > 0 && o->devices == NULL) ||
		(o->extra_count > 0 && o->extra == NULL))
		return fail(err, XR_E_INVAL,
			"options with a list that is NULL");
	for (uint32_t i = 0; i < o->transport_count && status == XR_OK; i++)
		status = options_transport_check(o->transports[i], err);
	for (uint32_t i = 0; i < o->device_count && status == XR_OK; i++)
		status = options_device_check(o->devices[i], err);
	for (uint32_t i = 0; i < o->extra_count && status == XR_OK; i++)
		if (o->extra[i] == NULL)
			status =
				fail(err, XR_E_INVAL, "an option that is NULL");
	return status;
}

/* No device goes to two; those of one map stand together in most lists. */
static enum xr_status
check_maps(const struct xr_rpc_opts *o, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < o->map_count && status == XR_OK; i++)
		status = options_pair_check(&o->maps[i], err);
	if (status != XR_OK)
		return status;
	for (uint32_t i = 1; i < o->map_count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (options_clash(&o->maps[k], &o->maps[i]))
				return options_clash_error(&o->maps[k],
					&o->maps[i], err);
	return XR_OK;
}

/* Those of SPEC.md, B28. */
static enum xr_status
check_group(const struct xr_rpc_opts *o, struct xr_error *err)
{
	if (!backend_is_group(o))
		return XR_OK;
	if (o->map_count > 0)
		return fail(err, XR_E_INVAL,
			"a device map to %s: the backend process_group has no device maps",
			o->maps[0].to);
	if (o->device_count > 0)
		return fail(err, XR_E_INVAL,
			"devices: %d: the backend process_group has no accelerators",
			o->devices[0]);
	return XR_OK;
}

/* A backend of ours may have a name of its own for them, which is checked. */
static uint32_t
threads_of(const struct xr_rpc_opts *o)
{
	const struct xr_backend *b = backend_of(o->backend);
	uint32_t n = o->threads;
	struct span value, key;

	if (b->check != check_own)
		return n;
	for (uint32_t i = 0; i < o->extra_count; i++) {
		value = span_of(o->extra[i]);
		key = span_next(&value, '=');
		for (const struct own *row = b->ctx; row->key != NULL; row++)
			if (row->is_right == is_threads &&
				span_is(key, row->key))
				number_parse(value, OPTIONS_THREADS_MAX, &n);
	}
	return n;
}

static enum xr_status
check_all(const struct xr_rpc_opts *o, struct xr_error *err)
{
	const struct xr_backend *b = backend_of(o->backend);
	enum xr_status status = timeout_check(o->timeout, err);

	if (status == XR_OK)
		status = options_threads_check(o->threads, err);
	if (status == XR_OK &&
		(o->init_method == NULL || o->init_method[0] == '\0'))
		status = fail(err, XR_E_INVAL,
			"init_method: it is empty, and not env:// or an address");
	if (status == XR_OK)
		status = check_lists(o, err);
	if (status == XR_OK)
		status = check_maps(o, err);
	if (status == XR_OK)
		status = check_group(o, err);
	if (status == XR_OK && b->check != NULL)
		status = b->check(o, b->ctx, err);
	return status;
}

enum xr_status
backend_check(const struct xr_rpc_opts *opts, struct xr_rpc_opts *all,
	struct xr_error *err)
{
	struct xr_rpc_opts own = { .size = sizeof(own) };
	enum xr_status status;

	if (opts->size < offsetof(struct xr_rpc_opts, timeout))
		return fail(err, XR_E_INVAL, "options without their size");
	if (backend_of(opts->backend) == NULL)
		return fail(err, XR_E_INVAL, "no backend has the number %u",
			opts->backend);
	xr_rpc_opts_init(opts->backend, &own, NULL);
	memcpy(&own, opts, opts->size < sizeof(own) ? opts->size : sizeof(own));
	own.size = sizeof(own);
	if (own.backend == 0)
		own.backend = BACKEND_AUTO;
	status = check_all(&own, err);
	if (status != XR_OK)
		return status;
	own.threads = threads_of(&own);
	timeout_field(&own.timeout, XR_RPC_TIMEOUT_DEFAULT, NULL);
	*all = own;
	return XR_OK;
}

/* --- carriers -------------------------------------------------------------- */

/* Names, of the backend's choice or the user's; NULL: nobody chose. */
static const char *const *
chosen(const struct xr_rpc_opts *o, uint32_t *n)
{
	const struct xr_backend *b = backend_of(o->backend);
	const char *const *names =
		b->carriers == NULL ? NULL : b->carriers(o, b->ctx);

	*n = o->transport_count;
	if (names == NULL)
		return *n == 0 ? NULL : o->transports;
	for (*n = 0; names[*n] != NULL; ++*n)
		continue;
	return names;
}

enum xr_status
backend_carriers(const struct xr_rpc_opts *opts,
	const struct xr_carrier **carriers, uint32_t cap, uint32_t *count_out,
	struct xr_error *err)
{
	uint32_t n = 0;
	const char *const *names = chosen(opts, &n);
	enum xr_status status = XR_OK;

	if (names == NULL)
		n = transport_all(carriers, cap);
	if (n > cap)
		return fail(err, XR_E_RANGE, "%u transports, and at most %u", n,
			cap);
	for (uint32_t i = 0; names != NULL && i < n && status == XR_OK; i++) {
		status = options_transport_check(names[i], err);
		if (status == XR_OK)
			carriers[i] = transport_find(names[i]);
	}
	if (status == XR_OK)
		*count_out = n;
	return status;
}
