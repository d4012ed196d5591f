/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - options of xr_rpc_init() that are put together one by one: by
 * their names, from text. See xrun/rpc.h and options.h. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/opt.h"
#include "base/span.h"
#include "base/status.h"
#include "base/suggest.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/options.h"

/* Text that the options refer to; what is replaced stays until the end. */
struct kept {
	struct kept *next;
	char text[];
};

struct xr_rpc_settings {
	struct xr_rpc_opts opts;
	struct kept *kept;
	/* What @opts points to. */
	const char **transports, **extra;
	struct xr_device_pair *maps;
	int32_t *devices;
};

XR_EXPORT struct xr_rpc_settings *
xr_rpc_settings_new(xr_backend_id backend)
{
	struct xr_rpc_settings *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->opts.size = sizeof(s->opts);
	if (xr_rpc_opts_init(backend, &s->opts, NULL) == XR_OK)
		return s;
	free(s);
	return NULL;
}

XR_EXPORT void
xr_rpc_settings_free(struct xr_rpc_settings *settings)
{
	struct kept *k, *next;

	if (settings == NULL)
		return;
	for (k = settings->kept; k != NULL; k = next) {
		next = k->next;
		free(k);
	}
	free(settings->transports);
	free(settings->extra);
	free(settings->maps);
	free(settings->devices);
	free(settings);
}

XR_EXPORT const struct xr_rpc_opts *
xr_rpc_settings_opts(const struct xr_rpc_settings *settings)
{
	return &settings->opts;
}

static enum xr_status
no_memory(struct xr_error *err)
{
	return fail(err, XR_E_NOMEM, "out of memory");
}

/* A copy that lives as long as the settings; NULL: no memory. */
static const char *
keep(struct xr_rpc_settings *s, struct span text)
{
	struct kept *k = malloc(sizeof(*k) + text.len + 1);

	if (k == NULL)
		return NULL;
	if (text.len > 0)
		memcpy(k->text, text.at, text.len);
	k->text[text.len] = '\0';
	k->next = s->kept;
	s->kept = k;
	return k->text;
}

/* --- by name --------------------------------------------------------------- */

static enum xr_status
set_timeout(struct xr_rpc_settings *s, const char *value, struct xr_error *err)
{
	int64_t ns = XR_TIMEOUT_NEVER;

	if (strcmp(value, "never") == 0 || opt_time(value, &ns)) {
		s->opts.timeout = ns;
		return XR_OK;
	}
	if (value[0] != '\0' && value[strspn(value, "0123456789.")] == '\0')
		return fail(err, XR_E_INVAL,
			"timeout: '%.60s' has no unit, such as %.60ss", value,
			value);
	return fail(err, XR_E_INVAL,
		"timeout: '%.60s' is not a time such as 250ms, 30s or 1h30m, and not never",
		value);
}

static enum xr_status
set_init_method(struct xr_rpc_settings *s, const char *value,
	struct xr_error *err)
{
	const char *own;

	if (value[0] == '\0')
		return fail(err, XR_E_INVAL,
			"init_method: it is empty, and not env:// or an address");
	own = keep(s, span_of(value));
	if (own == NULL)
		return no_memory(err);
	s->opts.init_method = own;
	return XR_OK;
}

static enum xr_status
set_threads(struct xr_rpc_settings *s, const char *value, struct xr_error *err)
{
	uint32_t n = 0;

	if (!number_parse(span_of(value), UINT32_MAX, &n) ||
		options_threads_check(n, NULL) != XR_OK)
		return fail(err, XR_E_INVAL,
			"threads: '%.60s' is not a number from 1 to %d", value,
			OPTIONS_THREADS_MAX);
	s->opts.threads = n;
	return XR_OK;
}

/* One of a list: "shm,tcp". */
static enum xr_status
next_transport(struct xr_rpc_settings *s, struct span *rest, const char **name,
	struct xr_error *err)
{
	*name = keep(s, span_next(rest, ','));
	return *name == NULL ? no_memory(err) :
			       options_transport_check(*name, err);
}

static enum xr_status
set_transports(struct xr_rpc_settings *s, const char *value,
	struct xr_error *err)
{
	struct span rest = span_of(value);
	size_t n = span_count(rest, ',');
	const char **all = calloc(n, sizeof(*all));
	enum xr_status status = all == NULL ? no_memory(err) : XR_OK;

	for (size_t i = 0; i < n && status == XR_OK; i++)
		status = next_transport(s, &rest, &all[i], err);
	if (status != XR_OK) {
		free(all);
		return status;
	}
	free(s->transports);
	s->opts.transports = s->transports = all;
	s->opts.transport_count = (uint32_t)n;
	return XR_OK;
}

static const struct {
	const char *key;
	enum xr_status (*set)(struct xr_rpc_settings *s, const char *value,
		struct xr_error *err);
} keys[] = {
	{ "timeout", set_timeout },
	{ "rpc_timeout", set_timeout },
	{ "init_method", set_init_method },
	{ "threads", set_threads },
	{ "num_worker_threads", set_threads },
	{ "transports", set_transports },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

void
options_offer(struct suggest *near)
{
	for (size_t i = 0; i < KEYS; i++)
		suggest_offer(near, keys[i].key);
}

/* --- a backend's own ------------------------------------------------------- */

/* The place of @key among those that were set, or behind them. */
static uint32_t
find_extra(const struct xr_rpc_settings *s, const char *key)
{
	size_t len = strlen(key);
	uint32_t i = 0;

	while (i < s->opts.extra_count &&
		(strncmp(s->extra[i], key, len) != 0 ||
			s->extra[i][len] != '='))
		i++;
	return i;
}

static const char *
keep_pair(struct xr_rpc_settings *s, const char *key, const char *value)
{
	struct buf pair = { 0 };
	const char *own = NULL;

	buf_fmt(&pair, "%s=%s", key, value);
	if (pair.bad == XR_OK)
		own = keep(s, (struct span){ pair.data, pair.len });
	buf_fini(&pair);
	return own;
}

/* The backend says whether it is one of its options, and what it may be. */
static enum xr_status
set_extra(struct xr_rpc_settings *s, const char *key, const char *value,
	struct xr_error *err)
{
	const struct xr_backend *b = backend_of(s->opts.backend);
	uint32_t at = find_extra(s, key), count = s->opts.extra_count;
	const char *pair = keep_pair(s, key, value), *before;
	const char **more =
		reallocarray(s->extra, (size_t)count + 1, sizeof(*more));
	enum xr_status status;

	if (more != NULL)
		s->opts.extra = s->extra = more;
	if (more == NULL || pair == NULL)
		return no_memory(err);
	before = at < count ? more[at] : NULL;
	more[at] = pair;
	s->opts.extra_count = at < count ? count : count + 1;
	status = b->check == NULL ? XR_OK : b->check(&s->opts, b->ctx, err);
	if (status == XR_OK)
		return XR_OK;
	more[at] = before;
	s->opts.extra_count = count;
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_opts_set(struct xr_rpc_settings *settings, const char *key,
	const char *value, struct xr_error *err)
{
	if (key == NULL || value == NULL || key[0] == '\0' ||
		strchr(key, '=') != NULL)
		return fail(err, XR_E_INVAL,
			"an option without a name or a value");
	for (size_t i = 0; i < KEYS; i++)
		if (strcmp(keys[i].key, key) == 0)
			return keys[i].set(settings, value, err);
	return set_extra(settings, key, value, err);
}

/* --- devices --------------------------------------------------------------- */

/* Behind the last pair to the same worker, so that a map stands together. */
static enum xr_status
insert_pair(struct xr_rpc_settings *s, const struct xr_device_pair *pair,
	uint32_t at, struct xr_error *err)
{
	uint32_t count = s->opts.map_count;
	const char *to = keep(s, span_of(pair->to));
	struct xr_device_pair *more =
		reallocarray(s->maps, (size_t)count + 1, sizeof(*more));

	if (more != NULL)
		s->opts.maps = s->maps = more;
	if (more == NULL || to == NULL)
		return no_memory(err);
	memmove(&more[at + 1], &more[at], (count - at) * sizeof(*more));
	more[at] = *pair;
	more[at].to = to;
	s->opts.map_count++;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_rpc_opts_map_device(struct xr_rpc_settings *settings, const char *to,
	int32_t from, int32_t dst, struct xr_error *err)
{
	const struct xr_device_pair pair = { to, from, dst };
	uint32_t count = settings->opts.map_count, at = count;
	enum xr_status status = options_pair_check(&pair, err);

	if (status != XR_OK)
		return status;
	for (uint32_t i = 0; i < count; i++) {
		const struct xr_device_pair *known = &settings->maps[i];

		if (strcmp(known->to, to) != 0)
			continue;
		at = i + 1;
		if (options_clash(known, &pair))
			return options_clash_error(known, &pair, err);
		if (known->from == from)
			return XR_OK; /* said again */
	}
	return insert_pair(settings, &pair, at, err);
}

XR_EXPORT enum xr_status
xr_rpc_opts_devices(struct xr_rpc_settings *settings, const int32_t *devices,
	uint32_t count, struct xr_error *err)
{
	int32_t *own = NULL;
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < count && status == XR_OK; i++)
		status = options_device_check(devices[i], err);
	if (status != XR_OK)
		return status;
	if (count > 0) {
		own = reallocarray(NULL, count, sizeof(*own));
		if (own == NULL)
			return no_memory(err);
		memcpy(own, devices, count * sizeof(*own));
	}
	free(settings->devices);
	settings->opts.devices = settings->devices = own;
	settings->opts.device_count = count;
	return XR_OK;
}
