/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - how a handle of xrun/store.h reaches its store: by one of these.
 *
 * A driver is asked by many threads at once. What it is asked is that of
 * store/desk.h, checked already, with keys that bear their prefix.
 */
#ifndef WORKER_STORE_DRIVER_H
#define WORKER_STORE_DRIVER_H

#include "store/address.h"
#include "store/desk.h"

struct driver;

struct driver_ops {
	/* @r is filled, whatever comes of it; its value is the caller's. */
	void (*ask)(struct driver *d, struct store_request *q, int64_t until,
		struct store_reply *r);
	/* All who ask, and will, have XR_E_CLOSED. */
	void (*close)(struct driver *d);
	/* Nobody asks any more. */
	void (*free)(struct driver *d);
};

struct driver {
	const struct driver_ops *ops;
};

/* The process that a file stands or falls with. */
struct file_owner {
	/* Returns true if it has ended; asked about once a second by threads that
	 * wait, and before each request. */
	bool (*is_lost)(struct file_owner *owner);
};

/* Each is ready when it returns; @until: clock_now() when to give up. */
enum xr_status control_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *err);
enum xr_status tcp_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *err);
/* @owner: NULL for a file that has none; borrowed until the driver is freed */
enum xr_status file_open(const struct store_address *address,
	struct file_owner *owner, int64_t until, struct driver **driver,
	struct xr_error *err);
/* loopback_file_open() - the store of env:// where all ranks are on this machine. */
enum xr_status loopback_file_open(const struct store_address *address,
	int64_t until, struct driver **driver, struct xr_error *err);

/* driver_pause() - @ns, or until @fd (-1: none) can be read, but not beyond
 * @until. False: it is that late, and @fd cannot be read. */
bool driver_pause(int fd, int64_t ns, int64_t until);

/* reply_fail() - @r is the failure @status, with words. */
void reply_fail(struct store_reply *r, enum xr_status status, const char *fmt,
	...) __attribute__((format(printf, 3, 4)));

#endif /* WORKER_STORE_DRIVER_H */
