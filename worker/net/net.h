/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the inside of the TCP carrier: carrier, links, connections.
 *
 * One thread (loop.c) does all that waits: it accepts, connects, greets, reads,
 * delivers, and writes what did not go at once. A connection is its alone. A link
 * is what the host has of a peer; it outlives connections that were tried for it,
 * and any thread sends over it.
 *
 *	net_carrier.lock   table of peers; links that the thread is to look at
 *	net_link.lock      what waits to be sent, and whether it can be
 *
 * The first is taken before the second where both are; neither while the host is
 * called. A link is freed by the thread, when the host has closed it.
 *
 * In a forked child everything is left as it is: heir.h.
 */
#ifndef WORKER_NET_NET_H
#define WORKER_NET_NET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/transport.h>

#include "base/clock.h"
#include "worker/net/bodies.h"
#include "worker/net/greet.h"
#include "worker/net/intake.h"
#include "worker/net/outbox.h"
#include "worker/net/where.h"

#define NET_CATCH_UP_NS    (500 * NS_PER_MS)
#define NET_CATCH_UP_TURNS 1024 /* peers may send without end */

#define NET_READ      (256 << 10) /* bytes a turn of a connection */
#define NET_READ_LONG (1 << 20)   /* the same, into a long body */
#define NET_STRANGERS 64 /* connections at once that have proved nothing */
#define NET_GREET_NS  (2 * NS_PER_S) /* for that */
#define NET_CROWD_NS \
	(250 * NS_PER_MS) /* the same, while all places are taken */
/* For all tries to make a link. Time during which a connection is there does not
 * count: the host of the peer answers, and the peer is stopped or slow. */
#define NET_DIAL_NS (10 * NS_PER_S)
#define NET_PAUSE_NS \
	(10 * NS_PER_MS) /* between the first two; it doubles ... */
#define NET_PAUSE_MOST_NS (500 * NS_PER_MS) /* ... up to this */
#define NET_DRAIN_NS      NS_PER_S          /* for the last bytes to arrive */
#define NET_DEAF_NS       (100 * NS_PER_MS) /* without descriptors */
#define NET_TICK_NS       NS_PER_S /* how often silence is looked for */
/* Sent, and nothing acknowledged: twice what a partition of 5 s takes to heal,
 * for the kernel tries again after 0.2, 0.4, 0.8, 1.6 and 3.2 s. */
#define NET_SILENT_NS (10 * NS_PER_S)

struct net_carrier;

enum net_conn_state {
	NET_CONNECTING, /* of a link: the kernel does */
	NET_GREETING,
	NET_UP,       /* of a link */
	NET_DRAINING, /* closed here, and what was sent is to arrive */
	NET_DEAD,     /* freed at the end of the turn */
};

struct net_conn {
	TAILQ_ENTRY(net_conn) list; /* of the carrier: young, up or dead */
	struct net_carrier *carrier;
	struct xr_link *link; /* NULL: a stranger's, or nobody's any more */
	int fd;
	enum net_conn_state state;
	bool is_stranger;
	int64_t born, until; /* net_now(); of a young one: when it ends */
	int64_t greeted;     /* net_now(): a dialled one was connected */
	struct where where;  /* the other end */
	struct greet *greet; /* until it is up */
	struct intake in;    /* then */
};

TAILQ_HEAD(net_conns, net_conn);

enum net_link_state {
	NET_LINK_DIALLING,
	NET_LINK_UP,
	NET_LINK_OVER,
};

struct xr_link {
	struct net_carrier *carrier;
	uint32_t id; /* of the peer */
	uint64_t incarnation;
	struct where where; /* to be dialled; of an accepted one: its end */

	TAILQ_ENTRY(xr_link) asked; /* of the carrier, if @is_asked */
	/* Under the carrier's lock: */
	bool is_asked;
	bool is_fenced;  /* a later life of the peer is known */
	bool is_dropped; /* nobody else has it: it is to be freed */

	pthread_mutex_t lock;
	pthread_cond_t idle; /* not @busy any more */
	void *peer;          /* the host's */
	bool has_peer;
	bool busy; /* the thread calls the host */
	bool wants_room;
	bool armed;          /* the thread hears when there is room */
	int broken;          /* errno of a send that failed */
	_Atomic bool closed; /* by the host; also read without the lock */
	enum net_link_state state;
	struct net_conn *conn; /* NET_LINK_UP: that; set by the thread */
	struct outbox out;

	/* The thread's. */
	TAILQ_ENTRY(xr_link) list; /* of the carrier, if @is_listed */
	bool is_listed;
	struct net_conn *tried; /* NET_LINK_DIALLING: that; or NULL ... */
	int64_t again;          /* ... and the next try is then */
	int64_t until; /* net_now(): the tries end, if none is connected */
	int64_t pause;
	bool crossed;         /* the other end dials as well */
	int64_t silent_since; /* 0: not */
	char why[160];        /* the last try failed */
};

TAILQ_HEAD(net_links, xr_link);

struct net_peer {
	uint64_t known;       /* cross.h */
	uint64_t incarnation; /* the latest that was seen */
	struct xr_link *link; /* to that; NULL */
};

struct net_carrier {
	struct xr_carrier_host host;
	struct greet_self self;
	uint8_t *secret;     /* of @self; NULL: there is none */
	unsigned generation; /* heir.h */
	struct where where;
	pthread_t thread;
	int epoll, bell, door;
	struct bodies *bodies;
	_Atomic uint32_t conns; /* connections that exist */
	_Atomic bool watching;  /* something was sent: NET_TICK_NS */

	pthread_mutex_t lock;
	struct net_peer *peers; /* [peer_count], by id */
	uint32_t peer_count;
	struct net_links asked;
	bool ending;
	uint32_t wanted;          /* requests of net_catch_up() so far */
	uint32_t served;          /* requests that the thread has completed */
	pthread_cond_t caught_up; /* @served has changed */

	/* The thread's. */
	struct net_links links;
	struct net_conns young, up, dead;
	unsigned strangers;
	bool is_deaf; /* the door is not looked at until then; or, if it */
	int64_t deaf_until; /* is 0, until there is a stranger less */
	int64_t due, tick;  /* the next deadline; the next look for silence */
	int64_t late;       /* ns that the thread was late so far */
	uint64_t dials;     /* connections that were opened */
	uint32_t noted;     /* @wanted, as of the last turn */
	uint32_t behind; /* turns since a request was noted; 0: none is open */
	bool over;       /* free() was called */
	char *room;      /* [NET_READ] */
};

/* --- carrier (tcp.c) ------------------------------------------------------- */

/* net_is_heir() - is this a forked child, to which nothing of it belongs? */
bool net_is_heir(const struct net_carrier *c);

/* net_ring() - the thread is to look around. */
void net_ring(struct net_carrier *c);

/* net_ask() - the thread is to look at @link. Under the lock; net_ring() after. */
void net_ask(struct xr_link *link);

/* net_drop() - the thread is to free it. */
void net_drop(struct xr_link *link);

/* net_peer() - the row of @id; NULL: no memory. Under the lock. */
struct net_peer *net_peer(struct net_carrier *c, uint32_t id);

/* --- links (link.c) -------------------------------------------------------- */

/* net_link_new() - in state NET_LINK_DIALLING; NULL: no memory. */
struct xr_link *net_link_new(struct net_carrier *c, uint32_t id,
	uint64_t incarnation);
void net_link_free(struct xr_link *l);

/* Of struct xr_carrier. */
enum xr_status net_link_send(struct xr_link *l,
	const struct xr_message *message, bool *pending);
bool net_link_unsend(struct xr_link *l, void *token);
void net_link_close(struct xr_link *l);

/* net_link_enter() - before the thread calls the host with it; false: it was
 * closed. net_link_leave() - after. */
bool net_link_enter(struct xr_link *l);
void net_link_leave(struct xr_link *l);

/* net_link_up() - @conn is agreed upon: what waits goes out. The thread. */
void net_link_up(struct xr_link *l, struct net_conn *conn);

/* net_link_write() - there is room. The thread. */
void net_link_write(struct xr_link *l);

/* net_link_lose() - it is over, and the host hears why, unless it knows already:
 * "worker 3 at 10.0.0.3:4711: ", then @why. The thread. */
void net_link_lose(struct xr_link *l, const char *why);

/* net_link_watch() - did the other end acknowledge what was sent? False: all of it.
 * The thread. */
bool net_link_watch(struct xr_link *l, int64_t now);

/* --- connections (conn.c): the thread -------------------------------------- */

/* net_conn_new() - @fd is taken, and closed on failure. NULL: no memory, and the
 * like. */
struct net_conn *net_conn_new(struct net_carrier *c, int fd,
	const struct where *where, enum net_conn_state state);

/* net_conn_up() - the greeting is over: it is the link's. */
void net_conn_up(struct net_conn *conn, struct xr_link *l);

/* net_conn_read() - it can be read, or is over. */
void net_conn_read(struct net_conn *conn);

/* net_conn_end() - at once; net_conn_retire() - when what was sent has arrived. */
void net_conn_end(struct net_conn *conn);
void net_conn_retire(struct net_conn *conn);

/* net_conn_drain() - read and forget; it ends by itself. */
void net_conn_drain(struct net_conn *conn);

/*
 * net_now() - the clock of the thread's time limits, in ns.
 *
 * It is CLOCK_MONOTONIC without the time by which the thread was late: a process
 * that was stopped, or had no processor, finds no peer dead for that.
 */
static inline int64_t
net_now(const struct net_carrier *c)
{
	return clock_now() - c->late;
}

/* net_due() - the thread checks its time limits at @when, of net_now(). */
void net_due(struct net_carrier *c, int64_t when);

/* --- who comes, and whom we go to (meet.c, admit.c): the thread ------------- */

/* net_accept() - somebody is at the door. */
void net_accept(struct net_carrier *c);

/* net_dial() - try to make the link. */
void net_dial(struct xr_link *l);

/* net_greet() - it is connected, or a packet may be there. */
void net_greet(struct net_conn *conn);

/* net_say() - send what the greeting left to be sent; false: it does not go. */
bool net_say(struct net_conn *conn);

/* net_agreed() - the peer's connections up to number @dial are void. */
void net_agreed(struct xr_link *l, uint64_t dial);

/* net_admit() - who opened it has proved who he is: take him, or say why not. */
void net_admit(struct net_conn *conn);

/* net_late() - when @conn has had time enough; net_meet_late() - it has. */
int64_t net_late(const struct net_conn *conn);
void net_meet_late(struct net_conn *conn);

/* --- who is there (there.c): any thread ------------------------------------- */

/* Of struct xr_carrier. */
enum xr_there net_there(void *self, const char *address, uint32_t id,
	uint64_t incarnation);

/* --- the thread (loop.c) ---------------------------------------------------- */

void *net_run(void *carrier);

/* net_listen() - look at the door, or not. */
void net_listen(struct net_carrier *c, bool on);

/* net_bury() - free the connections that have ended. */
void net_bury(struct net_carrier *c);

#endif /* WORKER_NET_NET_H */
