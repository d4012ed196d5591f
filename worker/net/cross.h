/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross.h - what becomes of a connection that a peer opened, and proved to be its
 * own: a pure function, so that both ends come to the same.
 *
 * There is one link to a peer, whoever opened it. If both do at once, the one
 * with the lower id is kept: its other end takes it for its own link, and lets
 * go of the connection that it was opening itself. Nothing was sent over that,
 * since messages wait until a link is up, so nothing is lost, and nothing comes
 * twice.
 *
 * Each end numbers the connections it opens. When one is agreed upon, each knows
 * the last number of the other. What bears that or a lower one is a connection
 * that crossed it, and was let go of since. A higher one means that the other end
 * has lost the link, and this one has not noticed yet.
 */
#ifndef WORKER_NET_CROSS_H
#define WORKER_NET_CROSS_H

#include <stdint.h>

enum cross_link {
	CROSS_NONE,
	CROSS_DIALLING, /* this end opens one, too */
	CROSS_UP,
};

enum cross {
	CROSS_TAKE,  /* there is none: a new link */
	CROSS_ADOPT, /* for the link that this end was opening */
	CROSS_WAIT,  /* refused: this end's comes first */
	CROSS_STALE, /* refused: nobody is at its other end any more */
	CROSS_RENEW, /* the link there is is lost: a new one */
	CROSS_OLD,   /* refused: of a life that is over */
};

struct cross_case {
	uint32_t self, other; /* ids */
	uint64_t seen;        /* the latest incarnation of the other */
	enum cross_link link; /* to that */
	uint64_t known; /* in that life, its last number at an agreement */
	uint64_t incarnation; /* of who opened the connection */
	uint64_t dial;        /* its number */
};

enum cross cross_judge(const struct cross_case *c);

#endif /* WORKER_NET_CROSS_H */
