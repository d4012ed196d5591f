/* SPDX-License-Identifier: Apache-2.0 */
/* worker_list.c - see worker_list.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "place/environ.h"
#include "place/worker_list.h"

/* Where a piece stands, so that every complaint begins the same way. */
struct spot {
	const char *variable, *text;
	struct xr_error *err;
};

#define BAD(spot, piece, fmt, ...) \
	fail((spot)->err, XR_E_INVAL, "%s: '%.*s' (byte %zu) " fmt, \
		(spot)->variable, QUOTED(piece), \
		(size_t)((piece).at - (spot)->text), ##__VA_ARGS__)

/* Letters, digits, '_' and @more; whatever the locale calls a letter. */
static bool
is_word(struct span s, const char *more)
{
	static const char word[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

	for (size_t i = 0; i < s.len; i++)
		if (strchr(word, s.at[i]) == NULL &&
			strchr(more, s.at[i]) == NULL)
			return false;
	return s.len > 0;
}

static enum xr_status
parse_address(struct worker *w, const struct spot *spot, struct span piece,
	struct span address)
{
	uint32_t port = 0;

	w->host = span_next(&address, ':');
	if (address.at == NULL || !is_word(w->host, ".-"))
		return BAD(spot, piece, "has no host:port in its third part");
	if (!number_parse(address, UINT16_MAX, &port) || port == 0)
		return BAD(spot, piece, "has port '%.*s', not 1 to 65535",
			QUOTED(address));
	w->port = (uint16_t)port;
	return XR_OK;
}

static enum xr_status
parse_worker(struct worker *w, const struct spot *spot, struct span piece)
{
	size_t parts = span_count(piece, ';');
	struct span rest = piece;
	struct span ordinal;

	if (parts != 3)
		return BAD(spot, piece,
			"has %zu part%s, not name;ordinal;host:port", parts,
			parts == 1 ? "" : "s");
	w->name = span_next(&rest, ';');
	if (!is_word(w->name, ""))
		return BAD(spot, piece,
			"has name '%.*s', not letters, digits and _",
			QUOTED(w->name));
	ordinal = span_next(&rest, ';');
	if (!number_parse(ordinal, INT32_MAX, &w->ordinal))
		return BAD(spot, piece, "has ordinal '%.*s', not a number",
			QUOTED(ordinal));
	return parse_address(w, spot, piece, rest);
}

static int
compare(const void *a, const void *b)
{
	const struct worker *l = *(const struct worker *const *)a;
	const struct worker *r = *(const struct worker *const *)b;

	if (l->ordinal != r->ordinal)
		return l->ordinal < r->ordinal ? -1 : 1;
	if (l->name.len != r->name.len)
		return l->name.len < r->name.len ? -1 : 1;
	return memcmp(l->name.at, r->name.at, l->name.len);
}

/* Sorted pointers: a list of 65536 hosts must not take a minute. */
static enum xr_status
refuse_twins(const struct worker_list *list, const struct spot *spot)
{
	const struct worker **sorted =
		calloc(list->count, sizeof(struct worker *));
	enum xr_status status = XR_OK;

	if (sorted == NULL)
		return fail(spot->err, XR_E_NOMEM, "out of memory");
	for (uint32_t i = 0; i < list->count; i++)
		sorted[i] = &list->workers[i];
	qsort(sorted, list->count, sizeof(*sorted), compare);
	for (uint32_t i = 1; i < list->count && status == XR_OK; i++) {
		const struct worker *a = sorted[i - 1], *b = sorted[i];

		if (compare(&a, &b) == 0)
			status = fail(spot->err, XR_E_EXISTS,
				"%s: '%.*s;%u' stands there twice (bytes %zu and %zu)",
				spot->variable, QUOTED(a->name), a->ordinal,
				(size_t)((a < b ? a : b)->name.at - spot->text),
				(size_t)((a < b ? b : a)->name.at -
					spot->text));
	}
	free(sorted);
	return status;
}

enum xr_status
worker_list_parse(struct worker_list *list, const char *variable,
	const char *text, struct xr_error *err)
{
	struct spot spot = { variable, text, err };
	struct span rest = span_of(text);
	struct worker_list out = { 0 };
	enum xr_status status = XR_OK;
	size_t count = span_count(rest, '|');

	if (count > WORKER_MAX)
		return fail(err, XR_E_RANGE, "%s: %zu workers, at most %d",
			variable, count, WORKER_MAX);
	out.workers = calloc(count, sizeof(*out.workers));
	if (out.workers == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	while (rest.at != NULL && status == XR_OK)
		status = parse_worker(&out.workers[out.count++], &spot,
			span_next(&rest, '|'));
	if (status == XR_OK)
		status = refuse_twins(&out, &spot);
	if (status == XR_OK)
		*list = out;
	else
		worker_list_fini(&out);
	return status;
}

void
worker_list_fini(struct worker_list *list)
{
	free(list->workers);
	*list = (struct worker_list){ 0 };
}

enum xr_status
worker_local_parse(struct worker *local, const char *variable, const char *text,
	struct xr_error *err)
{
	struct span rest = span_of(text);
	struct span all = rest;
	struct worker w = { 0 };

	w.name = span_next(&rest, ':');
	if (rest.at == NULL || !is_word(w.name, ""))
		return fail(err, XR_E_INVAL, "%s: '%.*s' is not name:index",
			variable, QUOTED(all));
	if (!number_parse(rest, INT32_MAX, &w.ordinal))
		return fail(err, XR_E_INVAL,
			"%s: '%.*s' is not name:index, '%.*s' is not a number",
			variable, QUOTED(all), QUOTED(rest));
	*local = w;
	return XR_OK;
}

bool
worker_env_detect(char *const *vars)
{
	if (environ_get(vars, "XRT_MULTI_PROCESSING_DEVICE") != NULL)
		return false;
	return environ_get(vars, "XRT_TPU_CONFIG") != NULL ||
		environ_get(vars, "XRT_LOCAL_WORKER") != NULL;
}

/* A count in a variable; @dflt if it is unset. */
static enum xr_status
read_count(char *const *vars, const char *name, uint32_t dflt, uint32_t *count,
	struct xr_error *err)
{
	const char *text = environ_get(vars, name);
	struct span all = span_of(text);
	uint32_t number = dflt;

	if (text != NULL &&
		(!number_parse(all, WORKER_MAX, &number) || number == 0))
		return fail(err, XR_E_INVAL, "%s: '%.*s' is not 1 to %d", name,
			QUOTED(all), WORKER_MAX);
	*count = number;
	return XR_OK;
}

static enum xr_status
read_numbers(struct worker_env *env, char *const *vars, struct xr_error *err)
{
	const char *local = environ_get(vars, "XRT_LOCAL_WORKER");
	enum xr_status status = XR_OK;

	if (local != NULL)
		status = worker_local_parse(&env->local, "XRT_LOCAL_WORKER",
			local, err);
	if (status == XR_OK)
		status = read_count(vars, "TPU_NUM_DEVICES", WORKER_DEVICES,
			&env->devices, err);
	if (status == XR_OK)
		status = read_count(vars, "XRT_SHARD_WORLD_SIZE", 1,
			&env->hosts, err);
	if (status != XR_OK)
		return status;
	env->host = env->local.ordinal;
	if (env->host >= env->hosts)
		return fail(err, XR_E_RANGE,
			"XRT_LOCAL_WORKER: '%.*s:%u' is not one of %u host%s\tset XRT_SHARD_WORLD_SIZE to the number of hosts",
			QUOTED(env->local.name), env->host, env->hosts,
			env->hosts == 1 ? "" : "s");
	return XR_OK;
}

enum xr_status
worker_env_read(struct worker_env *env, char *const *vars, struct xr_error *err)
{
	struct worker_env out = { .present = worker_env_detect(vars) };
	const char *list = environ_get(vars, "XRT_TPU_CONFIG");
	enum xr_status status = XR_OK;

	if (out.present)
		status = read_numbers(&out, vars, err);
	if (status == XR_OK && out.present && list != NULL)
		status = worker_list_parse(&out.list, "XRT_TPU_CONFIG", list,
			err);
	if (status == XR_OK)
		*env = out;
	return status;
}

void
worker_env_fini(struct worker_env *env)
{
	worker_list_fini(&env->list);
	*env = (struct worker_env){ 0 };
}

uint32_t
worker_ordinal(uint32_t host, uint32_t started, uint32_t i)
{
	return host * started + i;
}
