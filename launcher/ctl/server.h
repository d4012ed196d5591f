/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - the job's end of its control socket.
 *
 * Everything happens on the loop, a bounded amount of it a turn. Whoever is not
 * this user, or root, is turned away. A client costs nobody but itself: its
 * line has at most CONTROL_LINE_MAX bytes; while it does not take its answers
 * it is asked nothing more, and after half a minute of that it is dropped. Of
 * too many clients the one that was silent for longest makes room.
 */
#ifndef LAUNCHER_CTL_SERVER_H
#define LAUNCHER_CTL_SERVER_H

#include "event/loop.h"
#include "wire/control.h"

struct ctl;
struct ctl_client;

/* A message came. Borrowed for the call; answers may be sent at once. */
typedef void ctl_fn(struct ctl_client *from, const struct control *m,
	void *ctx);

struct ctl_config {
	struct loop *loop;
	int fd;          /* that listens, non-blocking; taken */
	const char *job; /* its id, borrowed */
	int64_t pid;     /* of the keeper */
	uint32_t most;   /* clients at a time */
	ctl_fn *fn;
	void *ctx;
};

/* ctl_open() - NULL if out of memory; the descriptor is closed then, too. */
struct ctl *ctl_open(const struct ctl_config *config);
void ctl_close(struct ctl *ctl); /* NULL is fine; clients see the end */

/* ctl_send() - @m, with what it points to, to a client that may be slow. */
void ctl_send(struct ctl_client *to, const struct control *m);

/* ctl_refuse() - the error that answers message @id. */
void ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err);

/* ctl_wait() - the client is told of the end of the job, as message @id. */
void ctl_wait(struct ctl_client *client, int64_t id);

/* ctl_end() - @over to all who wait; what goes out at once is sent. */
void ctl_end(struct ctl *ctl, const struct control_over *over);

#endif /* LAUNCHER_CTL_SERVER_H */
