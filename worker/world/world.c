/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - see xrun/world.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/job.h>
#include <xrun/rpc.h>

#include "base/span.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/inside.h"
#include "worker/world/world.h"

#define TIMEOUT_DEFAULT XR_SECONDS(60)

struct xr_world {
	int64_t timeout;
	uint32_t rank, count;
	atomic_bool is_closed;
	char **name;         /* [count], by rank */
	const char **sorted; /* [count] */
};

static struct xr_world *_Atomic current;

int64_t
world_timeout(const struct xr_world *world)
{
	return world->timeout;
}

static void
world_free(struct xr_world *w)
{
	for (uint32_t i = 0; i < w->count && w->name != NULL; i++)
		free(w->name[i]);
	free(w->name);
	free(w->sorted);
	free(w);
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Who is there, once all have joined. */
static struct xr_world *
world_of_agent(int64_t timeout)
{
	struct xr_world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->timeout = timeout;
	w->rank = agent_self()->id;
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		w->count++;
	w->name = calloc(w->count, sizeof(char *));
	w->sorted = calloc(w->count, sizeof(char *));
	for (uint32_t i = 0; i < w->count && w->name != NULL; i++)
		w->name[i] = strdup(agent_find_id(i)->name);
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->name == NULL || w->sorted == NULL ||
			w->name[i] == NULL) {
			world_free(w);
			return NULL;
		}
		w->sorted[i] = w->name[i];
	}
	qsort(w->sorted, w->count, sizeof(w->sorted[0]), compare);
	return w;
}

static enum xr_status
check(const struct xr_world_opts *opts, struct xr_error *err)
{
	enum xr_status status = inside_not_forked(err);

	if (status != XR_OK)
		return status;
	if (opts->size < sizeof(*opts))
		return fail(err, XR_E_INVAL,
			"struct xr_world_opts: its size is %u", opts->size);
	if (timeout_check(opts->timeout, err) != XR_OK)
		return XR_E_INVAL;
	if (opts->world_size == 0)
		return fail(err, XR_E_INVAL, "a world of 0 ranks");
	if (atomic_load(&current) != NULL)
		return fail(err, XR_E_STATE,
			"this process is in a world already");
	return XR_OK;
}

/* Without xrun it is in the variable that the store reads, too. */
static int64_t
rank_known(const struct xr_world_opts *opts)
{
	const char *text = getenv("XRUN_RANK") == NULL ? getenv("RANK") : NULL;
	uint32_t rank;

	if (opts->rank >= 0)
		return opts->rank;
	return text != NULL && number_parse(span_of(text), INT32_MAX, &rank) ?
		rank :
		xr_job_rank();
}

static enum xr_status
join(const struct xr_world_opts *opts, struct xr_error *err)
{
	char own[32];

	snprintf(own, sizeof(own), "rank%lld", (long long)rank_known(opts));
	return xr_rpc_init(opts->name != NULL ? opts->name : own, opts->rank,
		opts->world_size, opts->rpc, err);
}

XR_EXPORT enum xr_status
xr_world_new(const struct xr_world_opts *opts, struct xr_world **world,
	struct xr_error *err)
{
	const struct xr_world_opts defaults = XR_WORLD_OPTS;
	struct xr_world *w, *none = NULL;
	enum xr_status status;
	int64_t timeout;

	if (opts == NULL)
		opts = &defaults;
	status = check(opts, err);
	if (status == XR_OK)
		status = join(opts, err);
	if (status != XR_OK)
		return status;
	timeout = opts->timeout;
	timeout_field(&timeout, TIMEOUT_DEFAULT, NULL);
	w = world_of_agent(timeout);
	if (w == NULL) {
		xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, NULL);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	/* There is one agent, so nobody else can have come as far. */
	atomic_compare_exchange_strong(&current, &none, w);
	*world = w;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_world_close(struct xr_world *world, uint32_t flags, int64_t timeout,
	struct xr_error *err)
{
	enum xr_status status = inside_not_forked(err);

	if (status != XR_OK)
		return status;
	if (world == NULL || atomic_load(&world->is_closed))
		return fail(err, XR_E_STATE, "the world was closed");
	timeout_argument(&timeout, world->timeout, NULL);
	status = xr_rpc_shutdown(flags, timeout, err);
	if (status == XR_E_INVAL)
		return status;
	/* In one of its functions: the agent stays. */
	if (status == XR_E_STATE && agent_state() != AGENT_NONE)
		return status;
	atomic_store(&world->is_closed, true);
	atomic_compare_exchange_strong(&current, &world, NULL);
	return status;
}

XR_EXPORT void
xr_world_free(struct xr_world *world)
{
	if (world == NULL)
		return;
	if (!atomic_load(&world->is_closed))
		xr_world_close(world, XR_SHUTDOWN_IMMEDIATE, 0, NULL);
	/* In one of its own functions it is not left; so it stays. */
	if (atomic_load(&world->is_closed))
		world_free(world);
	KEEP_FRAME;
}

XR_EXPORT struct xr_world *
xr_world_get(void)
{
	return inside_not_forked(NULL) == XR_OK ? atomic_load(&current) : NULL;
}

XR_EXPORT bool
xr_world_ready(void)
{
	return xr_world_get() != NULL;
}

XR_EXPORT int64_t
xr_rank(void)
{
	const struct xr_world *w = xr_world_get();

	return w != NULL ? (int64_t)w->rank : -1;
}

XR_EXPORT const char *
xr_name(void)
{
	const struct xr_world *w = xr_world_get();

	return w != NULL ? w->name[w->rank] : NULL;
}

XR_EXPORT uint32_t
xr_world_size(const struct xr_world *world)
{
	return atomic_load(&world->is_closed) ? 0 : world->count;
}

XR_EXPORT const char *
xr_world_member(const struct xr_world *world, int64_t rank)
{
	return rank >= 0 && rank < world->count ? world->name[rank] : NULL;
}

XR_EXPORT size_t
xr_world_members(const struct xr_world *world, const char **names, size_t cap)
{
	for (uint32_t i = 0; i < world->count && i < cap; i++)
		names[i] = world->sorted[i];
	return world->count;
}
