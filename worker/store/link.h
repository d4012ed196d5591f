/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - one connection to a store, and many threads that ask through it.
 *
 * Whichever thread waits reads for all: it hands replies to whom they belong,
 * and leaves the reading to another when its own has come. So there is no
 * thread of ours, and one that waits long keeps nobody from asking.
 *
 * A request that was sent in part when its time was over breaks the connection.
 */
#ifndef WORKER_STORE_LINK_H
#define WORKER_STORE_LINK_H

#include "base/along.h"
#include "base/buf.h"
#include "worker/store/driver.h"

/* What has arrived, and was not taken. */
struct link_in {
	struct buf bytes;
	size_t at;        /* bytes that were taken */
	size_t need;      /* bytes that the next reply lacks; 0: not known */
	struct along fds; /* the first first */
};

/* What a connection speaks. */
struct link_speech {
	/* @q as bytes; *fd goes along with the first, which is closed then. */
	enum xr_status (*put)(struct buf *out, const struct store_request *q,
		int *fd, struct xr_error *err);
	/* The next reply, if it is *there; what it took is counted. */
	enum xr_status (*take)(struct link_in *in, struct store_reply *r,
		bool *there, struct xr_error *err);
};

/* link_open() - @fd, a stream that does not block, is taken. */
enum xr_status link_open(int fd, const struct link_speech *speech,
	struct driver **driver, struct xr_error *err);

#endif /* WORKER_STORE_LINK_H */
