/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - figures of the agent by their names; see xrun/rpc.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/rpc.h>

#include "base/span.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/pending.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/serve.h"

#define PER_MILLE 1000
#define NAME_ROOM (sizeof("peer.") + XR_WORKER_NAME_MAX + 32)

/* --- of the agent --------------------------------------------------------- */

#define A(name, figure) \
	static int64_t name(const struct figures_view *v) \
	{ \
		(void)v; \
		return figure; \
	}
A(threads, crew_limit())
A(idle_threads, crew_idle())
A(client_calls, ask_active())
A(server_calls, serve_count(false))
A(server_async_calls, serve_count(true))
A(pending_requests, pending_count(false))

/* --- of references --------------------------------------------------------- */

A(forks, rref_figure(RREF_FORKS))
A(owners, rref_figure(RREF_OWNERS))
A(pending_children, rref_figure(RREF_PENDING_CHILDREN))
A(pending_futures, rref_figure(RREF_PENDING_FUTURES))
A(pending_users, rref_figure(RREF_PENDING_USERS))
A(users, rref_figure(RREF_USERS))
#undef A

/* --- of the process ------------------------------------------------------- */

#define F(name, member, text) \
	static int64_t counted_##member(const struct figures_view *v) \
	{ \
		return v->count[FIGURE_##name]; \
	}
FIGURES_TABLE(F)
#undef F

static int64_t
calls(const struct figures_view *v)
{
	return v->calls;
}

static int64_t
median(const struct figures_view *v)
{
	return figures_quantile(v, PER_MILLE / 2);
}

static int64_t
slow(const struct figures_view *v)
{
	return figures_quantile(v, 990);
}

/* In the order of their names. */
static const struct row {
	const char *name;
	int64_t (*read)(const struct figures_view *v);
} rows[] = {
	{ "agent.client_active_calls", client_calls },
	{ "agent.num_idle_threads", idle_threads },
	{ "agent.num_pending_requests", pending_requests },
	{ "agent.server_active_async_calls", server_async_calls },
	{ "agent.server_active_calls", server_calls },
	{ "agent.thread_pool_size", threads },
	{ "net.bytes_in", counted_bytes_in },
	{ "net.bytes_out", counted_bytes_out },
	{ "net.call_ns", counted_call_ns },
	{ "net.call_ns_p50", median },
	{ "net.call_ns_p99", slow },
	{ "net.calls", calls },
	{ "net.errors", counted_errors },
	{ "net.oneway", counted_oneway },
	{ "net.served", counted_served },
	{ "net.timeouts", counted_timeouts },
	{ "num_forks", forks },
	{ "num_owner_rrefs", owners },
	{ "num_pending_children", pending_children },
	{ "num_pending_futures", pending_futures },
	{ "num_pending_users", pending_users },
	{ "num_user_rrefs", users },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* --- of each peer --------------------------------------------------------- */

/* "peer.NAME.bytes_in"; in the order of their names. */
static const struct peer_row {
	const char *name;
	size_t at; /* of struct peer */
} peer_rows[] = {
	{ "bytes_in", offsetof(struct peer, bytes_in) },
	{ "bytes_out", offsetof(struct peer, bytes_out) },
	{ "calls", offsetof(struct peer, calls) },
	{ "errors", offsetof(struct peer, errors) },
};
#define PEER_ROWS (sizeof(peer_rows) / sizeof(peer_rows[0]))

/* Of all lives of the one with this name. */
static bool
read_peer(const struct peer_row *row, struct span name, int64_t *value)
{
	bool any = false;

	*value = 0;
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p)) {
		if (strlen(p->name) != name.len ||
			memcmp(p->name, name.at, name.len) != 0)
			continue;
		*value += (int64_t)
			atomic_load_explicit((_Atomic uint64_t *)(void
							     *)((char *)p +
						     row->at),
				memory_order_relaxed);
		any = true;
	}
	return any;
}

static enum xr_status
find_peer(const char *name, int64_t *value)
{
	static const char head[] = "peer.";
	const char *dot = strrchr(name, '.');
	struct span who;

	if (strncmp(name, head, strlen(head)) != 0 || dot < name + strlen(head))
		return XR_E_NOTFOUND;
	name += strlen(head);
	who = (struct span){ name, (size_t)(dot - name) };
	for (size_t i = 0; i < PEER_ROWS; i++)
		if (strcmp(peer_rows[i].name, dot + 1) == 0 &&
			read_peer(&peer_rows[i], who, value))
			return XR_OK;
	return XR_E_NOTFOUND;
}

/* --- asking --------------------------------------------------------------- */

static enum xr_status
find(const char *name, int64_t *value)
{
	struct figures_view v;

	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0) {
			figures_sum(&v);
			*value = rows[i].read(&v);
			return XR_OK;
		}
	return find_peer(name, value);
}

XR_EXPORT enum xr_status
xr_metrics_get(const char *name, int64_t *value)
{
	enum xr_status status = agent_enter(NULL);
	int64_t n = 0;

	if (status != XR_OK)
		return status;
	status = name == NULL ? XR_E_INVAL : find(name, &n);
	agent_leave();
	if (status == XR_OK)
		*value = n;
	return status;
}

struct metric {
	char name[NAME_ROOM];
	int64_t value;
};

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct metric *)a)->name,
		((const struct metric *)b)->name);
}

/* Has a newer peer its name? */
static bool
is_old(const struct peer *p)
{
	struct peer *q = agent_first();

	while (q != p && strcmp(q->name, p->name) != 0)
		q = agent_next(q);
	return q != p;
}

/* A copy of all, in order; NULL: no memory. */
static struct metric *
collect(size_t *count)
{
	struct metric *all;
	struct figures_view v;
	size_t n = 0;

	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		n++;
	all = calloc(ROWS + n * PEER_ROWS, sizeof(*all));
	*count = 0;
	if (all == NULL)
		return NULL;
	figures_sum(&v);
	for (size_t i = 0; i < ROWS; i++) {
		struct metric *m = &all[(*count)++];

		snprintf(m->name, sizeof(m->name), "%s", rows[i].name);
		m->value = rows[i].read(&v);
	}
	/* Of those that are new since they were counted, nothing is told. */
	for (struct peer *p = agent_first(); p != NULL && n > 0;
		p = agent_next(p), n--) {
		if (is_old(p))
			continue;
		for (size_t i = 0; i < PEER_ROWS; i++) {
			struct metric *m = &all[(*count)++];

			snprintf(m->name, sizeof(m->name), "peer.%s.%s",
				p->name, peer_rows[i].name);
			read_peer(&peer_rows[i],
				(struct span){ p->name, strlen(p->name) },
				&m->value);
		}
	}
	qsort(all, *count, sizeof(*all), by_name);
	return all;
}

XR_EXPORT enum xr_status
xr_metrics_each(xr_metrics_fn *fn, void *ctx)
{
	enum xr_status status = fn == NULL ? XR_E_INVAL : agent_enter(NULL);
	struct metric *all;
	size_t count = 0;

	if (status != XR_OK)
		return status;
	all = collect(&count);
	agent_leave();
	if (all == NULL)
		return XR_E_NOMEM;
	for (size_t i = 0; i < count; i++)
		fn(all[i].name, all[i].value, ctx);
	free(all);
	return XR_OK;
}
