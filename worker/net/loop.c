/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - the thread of the TCP carrier. See net.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/epoll.h>

#include "worker/net/net.h"

#define EVENTS 64
#define NEVER  INT64_MAX
/* A turn that takes longer was interrupted by others: performance.md 4.2 has 4 ms
 * for a time slice that was lost. */
#define LATE_NS (20 * NS_PER_MS)

void
net_listen(struct net_carrier *c, bool on)
{
	struct epoll_event e = { .data.ptr = &c->door };

	on = on && !c->over;
	e.events = on ? EPOLLIN : 0;
	epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->door, &e);
	c->is_deaf = !on;
	c->deaf_until = 0;
}

/* --- what others ask for --------------------------------------------------- */

/* The host has closed it. */
static void
let_go(struct xr_link *l)
{
	struct net_conn *conn = l->tried;

	pthread_mutex_lock(&l->lock);
	if (l->state == NET_LINK_UP)
		conn = l->conn;
	l->state = NET_LINK_OVER;
	l->conn = NULL;
	pthread_mutex_unlock(&l->lock);
	if (conn != NULL)
		net_conn_retire(conn);
	TAILQ_REMOVE(&l->carrier->links, l, list);
	net_link_free(l);
}

static void
begin_dialling(struct xr_link *l)
{
	l->until = net_now(l->carrier) + NET_DIAL_NS;
	l->pause = NET_PAUSE_NS;
	net_dial(l);
}

static void
look_at(struct xr_link *l, bool is_fenced, bool is_dropped)
{
	bool is_new = !l->is_listed;

	if (is_new)
		TAILQ_INSERT_TAIL(&l->carrier->links, l, list);
	l->is_listed = true;
	if (is_dropped)
		let_go(l);
	else if (is_fenced)
		net_link_lose(l, "it was started again");
	else if (is_new && l->state == NET_LINK_DIALLING)
		begin_dialling(l);
}

static void
look_at_asked(struct net_carrier *c)
{
	bool is_fenced, is_dropped;
	struct xr_link *l;

	pthread_mutex_lock(&c->lock);
	while ((l = TAILQ_FIRST(&c->asked)) != NULL) {
		TAILQ_REMOVE(&c->asked, l, asked);
		l->is_asked = false;
		is_fenced = l->is_fenced;
		is_dropped = l->is_dropped;
		pthread_mutex_unlock(&c->lock);
		look_at(l, is_fenced, is_dropped);
		pthread_mutex_lock(&c->lock);
	}
	c->over = c->ending;
	c->noted = c->wanted;
	if (c->noted != c->served && c->behind == 0)
		c->behind = 1;
	pthread_mutex_unlock(&c->lock);
}

/* All that had arrived when net_catch_up() asked for it is delivered if a turn finds no
 * event. */
static void
net_note_turn(struct net_carrier *c, int events)
{
	if (c->behind == 0 || (events > 0 && c->behind++ < NET_CATCH_UP_TURNS))
		return;
	c->behind = 0;
	pthread_mutex_lock(&c->lock);
	c->served = c->noted;
	pthread_cond_broadcast(&c->caught_up);
	pthread_mutex_unlock(&c->lock);
}

/* --- time ------------------------------------------------------------------ */

static void
look_at_young(struct net_carrier *c, int64_t now)
{
	struct net_conn *conn, *next;

	for (conn = TAILQ_FIRST(&c->young); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, list);
		if (net_late(conn) <= now)
			net_meet_late(conn);
		else
			net_due(c, net_late(conn));
	}
}

static void
look_at_dialling(struct net_carrier *c, int64_t now)
{
	struct xr_link *l;

	TAILQ_FOREACH(l, &c->links, list)
	{
		if (l->state != NET_LINK_DIALLING || l->tried != NULL)
			continue;
		if (l->again <= now)
			net_dial(l);
		else
			net_due(c, l->again);
	}
}

static void
look_at_due(struct net_carrier *c, int64_t now)
{
	if (now < c->due)
		return;
	c->due = NEVER;
	look_at_young(c, now);
	look_at_dialling(c, now);
	if (c->deaf_until != 0 && c->deaf_until <= now)
		net_listen(c, true);
	else if (c->deaf_until != 0)
		net_due(c, c->deaf_until);
}

/* Once a second while something was sent: does it arrive? */
static void
look_for_silence(struct net_carrier *c, int64_t now)
{
	struct xr_link *l, *next;
	bool more = false;

	if (c->tick == NEVER && atomic_load(&c->watching))
		c->tick = now + NET_TICK_NS;
	if (now < c->tick)
		return;
	c->tick = NEVER;
	atomic_store(&c->watching, false);
	for (l = TAILQ_FIRST(&c->links); l != NULL; l = next) {
		next = TAILQ_NEXT(l, list);
		more = net_link_watch(l, now) || more;
	}
	if (more)
		atomic_store(&c->watching, true);
	if (atomic_load(&c->watching))
		c->tick = now + NET_TICK_NS;
}

/* ms until something is due that no descriptor tells of; -1: nothing is. */
static int
wait_of(const struct net_carrier *c)
{
	int64_t due = c->due < c->tick ? c->due : c->tick, now;

	if (due == NEVER)
		return -1;
	now = net_now(c);
	if (due <= now)
		return 0;
	return due - now > 3600 * NS_PER_S ?
		3600000 :
		(int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* --- events ---------------------------------------------------------------- */

static void
on_conn(struct net_conn *conn, uint32_t events)
{
	switch (conn->state) {
	case NET_CONNECTING:
	case NET_GREETING:
		net_greet(conn);
		break;
	case NET_UP:
		if ((events & ~(uint32_t)EPOLLOUT) != 0)
			net_conn_read(conn);
		/* Not if that was its end. */
		if ((events & EPOLLOUT) != 0 && conn->state == NET_UP)
			net_link_write(conn->link);
		break;
	case NET_DRAINING:
		net_conn_drain(conn);
		break;
	case NET_DEAD:
		break;
	}
}

static void
on_event(struct net_carrier *c, const struct epoll_event *e)
{
	uint64_t count;

	if (e->data.ptr == &c->bell) {
		if (read(c->bell, &count, sizeof(count)) == -1)
			return; /* it rang for somebody else */
	} else if (e->data.ptr == &c->door) {
		net_accept(c);
	} else {
		on_conn(e->data.ptr, e->events);
	}
}

void
net_bury(struct net_carrier *c)
{
	struct net_conn *conn;

	while ((conn = TAILQ_FIRST(&c->dead)) != NULL) {
		TAILQ_REMOVE(&c->dead, conn, list);
		free(conn->greet);
		free(conn);
		atomic_fetch_sub(&c->conns, 1);
	}
}

/* The thread should have been here at @due, of CLOCK_MONOTONIC. */
static void
count_lateness(struct net_carrier *c, int64_t due)
{
	int64_t late = clock_now() - due;

	if (late > LATE_NS)
		c->late += late;
}

static void
turn(struct net_carrier *c)
{
	struct epoll_event events[EVENTS];
	int ms = c->behind > 0 ? 0 : wait_of(c), n;
	int64_t begin = clock_now(), now;

	n = epoll_wait(c->epoll, events, EVENTS, ms);
	/* Where nothing is due there is no limit to be extended. */
	if (ms >= 0)
		count_lateness(c, begin + ms * NS_PER_MS);
	begin = clock_now();
	for (int i = 0; i < n; i++)
		on_event(c, &events[i]);
	net_note_turn(c, n);
	look_at_asked(c);
	count_lateness(c, begin);
	now = net_now(c);
	look_at_due(c, now);
	look_for_silence(c, now);
	net_bury(c);
}

/* Nobody comes any more, and what was sent has a moment to arrive. */
static void
finish(struct net_carrier *c)
{
	struct net_conn *conn, *next;

	net_listen(c, false);
	for (conn = TAILQ_FIRST(&c->young); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, list);
		if (conn->state != NET_DRAINING)
			net_conn_end(conn);
	}
	while (!TAILQ_EMPTY(&c->young))
		turn(c);
	net_bury(c);
}

void *
net_run(void *carrier)
{
	struct net_carrier *c = carrier;

	while (!c->over)
		turn(c);
	finish(c);
	return NULL;
}
