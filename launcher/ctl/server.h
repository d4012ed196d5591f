/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - the job's end of its control socket.
 *
 * Everything happens on the loop, a bounded amount of it a turn. Whoever is not
 * this user, or root, is turned away. A client costs nobody but itself: its
 * line has at most CONTROL_LINE_MAX bytes; while it does not take its answers
 * it is asked nothing more, and after half a minute of that it is dropped. Of
 * too many clients the one that was silent for longest makes room.
 *
 * A descriptor that is sent along belongs to the line whose end, or middle, the
 * last byte was that came with it. It is whoever's who takes it while that line
 * is handled; what nobody takes is closed.
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
	const char *job; /* its id, borrowed */
	int64_t pid;     /* of the keeper */
	uint32_t most;   /* clients at a time */
	ctl_fn *fn;
	/* Close a descriptor, which may take as long as who made it likes: that
	 * of a connection may hold others which nobody has read. */
	void (*close)(void *ctx, int fd);
	/* Who said ctl_want() has room for the next answer. May be NULL, as may
	 * the next: @client is no more. */
	void (*more)(void *ctx, struct ctl_client *client);
	void (*gone)(void *ctx, struct ctl_client *client);
	void *ctx;
};

#define CTL_NO_RANK   UINT32_MAX
#define CTL_RANK_MOST 8 /* connections of a rank */

/* ctl_open() - NULL if out of memory. */
struct ctl *ctl_open(const struct ctl_config *config);

/* ctl_listen() - clients come through @fd, non-blocking, which is taken. False
 * if out of memory; it is closed then, too. */
bool ctl_listen(struct ctl *ctl, int fd);

/* ctl_admit() - a connection of rank @rank's, a stream socket, which is taken.
 * It makes room for no client, and none for it; of more than CTL_RANK_MOST of
 * the same rank the one that was silent for longest does. */
void ctl_admit(struct ctl *ctl, int fd, uint32_t rank);

/* ctl_rank() - whose connection it is, or CTL_NO_RANK. */
uint32_t ctl_rank(const struct ctl_client *client);

/* ctl_unlisten() - no more clients from now on; gives the descriptor back, or -1
 * if there is none. NULL is fine. */
int ctl_unlisten(struct ctl *ctl);
void ctl_close(struct ctl *ctl); /* NULL is fine; clients see the end */

/* ctl_send() - @m, with what it points to, to a client that may be slow. */
void ctl_send(struct ctl_client *to, const struct control *m);

/* ctl_send_fd() - the same, with @fd, which is borrowed, sent along. Of a client
 * that has not taken the last one there is, nothing more is asked until it has;
 * false: it was not sent for that, or there is no descriptor for it. */
bool ctl_send_fd(struct ctl_client *to, const struct control *m, int fd);

/* ctl_take_fd() - the descriptor that came along with the message at hand, which
 * is the caller's then; -1: there is none. */
int ctl_take_fd(struct ctl_client *from);

/* ctl_want() - call more() when the client can take an answer that does not
 * answer the message at hand: not before this turn is over. Once. */
void ctl_want(struct ctl_client *client);

/* ctl_hold() - @by answers more are to come: who waits for one has not gone
 * silent, and may close its sending end. */
void ctl_hold(struct ctl_client *client, int by);

/* ctl_of() - whatever the owner of the server puts there; NULL at first. */
void **ctl_of(struct ctl_client *client);

/* ctl_refuse() - the error that answers message @id. */
void ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err);

/* ctl_wait() - the client is told of the end of the job, as message @id. False:
 * it waits already. */
bool ctl_wait(struct ctl_client *client, int64_t id);

/* ctl_end() - @over to all who wait; what goes out at once is sent. */
void ctl_end(struct ctl *ctl, const struct control_over *over);

#endif /* LAUNCHER_CTL_SERVER_H */
