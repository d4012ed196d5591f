/* SPDX-License-Identifier: Apache-2.0 */
/* transports.c - see transports.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "worker/net/tcp.h"
#include "worker/rpc/transports.h"
#include "worker/shm/shm.h"

#define NAME_BYTES 63 /* bytes */

/* Those of the library come first; others are copies. */
static const struct xr_carrier *rows[TRANSPORTS_MAX] = {
	&shm_carrier,
	&tcp_carrier,
};
static _Atomic uint32_t count = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct xr_carrier *
transport_find(const char *name)
{
	uint32_t n = atomic_load_explicit(&count, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++)
		if (strcmp(rows[i]->name, name) == 0)
			return rows[i];
	return NULL;
}

uint32_t
transport_all(const struct xr_carrier **carriers, uint32_t cap)
{
	uint32_t n = atomic_load_explicit(&count, memory_order_acquire), at;
	const struct xr_carrier *all[TRANSPORTS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		for (at = i;
			at > 0 && all[at - 1]->priority < rows[i]->priority;
			at--)
			all[at] = all[at - 1];
		all[at] = rows[i];
	}
	for (uint32_t i = 0; i < n && i < cap; i++)
		carriers[i] = all[i];
	return n;
}

void
transport_names(struct buf *out)
{
	const struct xr_carrier *all[TRANSPORTS_MAX];
	uint32_t n = transport_all(all, TRANSPORTS_MAX);

	for (uint32_t i = 0; i < n; i++)
		buf_fmt(out, "%s%s", i > 0 ? ", " : "", all[i]->name);
}

/* --- registering ----------------------------------------------------------- */

static bool
is_name(const char *name)
{
	size_t len = name == NULL ? 0 : strnlen(name, NAME_BYTES + 1);

	return len > 0 && len <= NAME_BYTES &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

/* What is called without a look at whether it is there. */
static bool
is_whole(const struct xr_carrier *c)
{
	return c->open != NULL && c->address != NULL && c->connect != NULL &&
		c->send != NULL && c->body_take != NULL &&
		c->buffer_unref != NULL && c->link_close != NULL &&
		c->free != NULL &&
		(c->progress != NULL || (c->caps & XR_CARRIER_THREAD) != 0);
}

static enum xr_status
check(const struct xr_carrier *c, struct xr_error *err)
{
	if (c == NULL || c->size < sizeof(*c) || c->api != XR_CARRIER_API)
		return fail(err, XR_E_ABI,
			"a transport of API %u and %u bytes; this libxrun has API %d and %zu",
			c == NULL ? 0 : c->api, c == NULL ? 0 : c->size,
			XR_CARRIER_API, sizeof(*c));
	if (!is_name(c->name))
		return fail(err, XR_E_INVAL,
			"a transport's name is 1 to %d of a-z 0-9 _, and not '%.70s'",
			NAME_BYTES, c->name == NULL ? "" : c->name);
	if (!is_whole(c))
		return fail(err, XR_E_ABI,
			"the transport %s lacks functions that every one has",
			c->name);
	return XR_OK;
}

static struct xr_carrier *
copy(const struct xr_carrier *c)
{
	struct xr_carrier *own = malloc(sizeof(*own));
	char *name = strdup(c->name);

	if (own == NULL || name == NULL) {
		free(own);
		free(name);
		return NULL;
	}
	*own = *c;
	own->size = sizeof(*own);
	own->name = name;
	return own;
}

/* Under the lock. */
static enum xr_status
add(const struct xr_carrier *c, struct xr_error *err)
{
	uint32_t n = atomic_load_explicit(&count, memory_order_relaxed);
	struct xr_carrier *own;

	if (transport_find(c->name) != NULL)
		return fail(err, XR_E_EXISTS,
			"a transport %s is registered already", c->name);
	if (n == TRANSPORTS_MAX)
		return fail(err, XR_E_RANGE,
			"%u transports are registered, and there are no more",
			n);
	own = copy(c);
	if (own == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	rows[n] = own;
	atomic_store_explicit(&count, n + 1, memory_order_release);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_carrier_register(const struct xr_carrier *carrier, struct xr_error *err)
{
	enum xr_status status = check(carrier, err);

	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&lock);
	status = add(carrier, err);
	pthread_mutex_unlock(&lock);
	return status;
}
