/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic.c - see dynamic.h. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/epoch.h"
#include "worker/rpc/future.h"
#include "worker/rpc/join.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/rref.h"

#define LEASE_NS  (10 * NS_PER_S)   /* of one that nothing answers for */
#define FIRST_NS  (100 * NS_PER_MS) /* for an acknowledgement, then one looks */
#define AGAIN_NS  NS_PER_S
#define LEAVE_NS  (2 * NS_PER_S) /* that others may take to know */
#define LOST_KEPT 64
#define NOMEM_MS  100 /* until one tries again */

static struct {
	pthread_mutex_t lock;  /* of what follows */
	uint64_t applied;      /* the record that the peers are of */
	struct peer **present; /* [count]: without this process */
	size_t count, cap;

	/* From joining to leaving. */
	struct xr_store *store; /* NULL: this process is no member of one */
	struct xr_value *info;  /* what it tells, and read: */
	struct member self;
	pthread_t watch;
	bool watched;
	_Atomic bool leaving;
} d = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool
dynamic_is(void)
{
	return d.store != NULL;
}

static bool
is_self(const struct member *m)
{
	return m->incarnation == d.self.incarnation && m->id == d.self.id;
}

/* The place of that life in a LIST of members; -1: it is not there. */
static long
place_of(const struct xr_value *members, uint32_t id, uint64_t incarnation)
{
	struct member m;

	for (size_t i = 0; i < xr_value_count(members); i++)
		if (member_read(xr_value_at(members, i), &m) && m.id == id &&
			m.incarnation == incarnation)
			return (long)i;
	return -1;
}

/* --- peers as the list has them ------------------------------------------- */

/* The lock is held. */
static bool
knows(const struct member *m)
{
	for (size_t i = 0; i < d.count; i++)
		if (d.present[i]->id == m->id &&
			d.present[i]->incarnation == m->incarnation)
			return true;
	return false;
}

/* The lock is held. */
static bool
learn(const struct member *m)
{
	size_t cap = d.cap == 0 ? 16 : 2 * d.cap;
	struct peer **more, *p;

	if (d.count == d.cap) {
		more = reallocarray(d.present, cap, sizeof(*more));
		if (more == NULL)
			return false;
		d.present = more;
		d.cap = cap;
	}
	p = member_add(m, &d.self);
	if (p != NULL)
		d.present[d.count++] = p;
	return p != NULL;
}

/* All of @members are peers. The lock is held. */
static bool
learn_all(const struct xr_value *members)
{
	struct member m;

	for (size_t i = 0; i < xr_value_count(members); i++)
		if (member_read(xr_value_at(members, i), &m) && !is_self(&m) &&
			!knows(&m) && !learn(&m))
			return false;
	return true;
}

static bool
is_among(const struct xr_value *incarnations, uint64_t incarnation)
{
	uint64_t n;

	for (size_t i = 0; i < xr_value_count(incarnations); i++)
		if (xr_value_get_u64(xr_value_at(incarnations, i), &n) ==
				XR_OK &&
			n == incarnation)
			return true;
	return false;
}

/* Moves those that are not in @e any more to @gone, which has room for all; how
 * many. The lock is held. */
static size_t
forget(const struct epoch *e, struct peer **gone)
{
	size_t kept = 0, n = 0;

	for (size_t i = 0; i < d.count; i++) {
		struct peer *p = d.present[i];

		if (place_of(e->members, p->id, p->incarnation) >= 0)
			d.present[kept++] = p;
		else
			gone[n++] = p;
	}
	d.count = kept;
	return n;
}

/* Peers are as @e has them. False: no memory. Those who wait for answers of one
 * that is gone are told without the lock. */
static bool
apply(const struct epoch *e)
{
	struct peer **gone;
	bool done = false;
	size_t n = 0;

	pthread_mutex_lock(&d.lock);
	gone = calloc(d.count + 1, sizeof(struct peer *));
	if (e->number > d.applied && gone != NULL) {
		done = learn_all(e->members);
		n = done ? forget(e, gone) : 0;
	}
	if (done)
		d.applied = e->number;
	pthread_mutex_unlock(&d.lock);
	for (size_t i = 0; i < n; i++) {
		peer_gone(gone[i], is_among(e->lost, gone[i]->incarnation));
		meet_lost(gone[i]);
	}
	free(gone);
	return done;
}

/* --- the watch ------------------------------------------------------------ */

/* Others have taken this process off the list: it is alone. */
static void
cast_out(void)
{
	struct peer **alone;
	size_t n;

	pthread_mutex_lock(&d.lock);
	alone = d.present;
	n = d.count;
	d.present = NULL;
	d.count = d.cap = 0;
	pthread_mutex_unlock(&d.lock);
	for (size_t i = 0; i < n; i++)
		peer_lose(alone[i], PEER_LOST,
			"the group has taken this worker for dead");
	free(alone);
}

static void
acknowledge(uint64_t number)
{
	while (epoch_ack(d.store, number, d.self.id, NULL) == XR_E_TIMEOUT)
		continue;
}

/* Who missed records acknowledges them all: whether one was asked for is not
 * known. False: it is over. */
static bool
follow(const struct epoch *e)
{
	uint64_t before = d.applied;

	while (!apply(e))
		poll(NULL, 0, NOMEM_MS);
	if (place_of(e->members, d.self.id, d.self.incarnation) < 0) {
		if (!atomic_load(&d.leaving))
			cast_out();
		return false;
	}
	for (uint64_t n = before + 1; n <= e->number; n++)
		if (n < e->number || e->asks)
			acknowledge(n);
	return true;
}

/* Until it is off the list, or the store is closed, or lost: then the list stays
 * as it is. Only it changes what was applied. */
static void *
watch(void *unused)
{
	enum xr_status status;
	struct epoch e = { 0 };
	bool on = true;

	(void)unused;
	while (on) {
		status = epoch_await(d.store, d.applied, &e, NULL);
		if (status == XR_E_NOMEM || status == XR_E_AGAIN)
			poll(NULL, 0, NOMEM_MS);
		else
			on = status == XR_E_TIMEOUT ||
				(status == XR_OK && follow(&e));
		epoch_fini(&e);
	}
	return NULL;
}

static enum xr_status
start_watch(struct xr_error *err)
{
	sigset_t all, before;
	int sys;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sys = pthread_create(&d.watch, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (sys != 0)
		return fail(err, XR_E_SYS, "no thread to watch the group: %s",
			strerror(sys));
	pthread_setname_np(d.watch, "xrun-group");
	d.watched = true;
	return XR_OK;
}

/* --- who is dead ---------------------------------------------------------- */

static bool
append(struct xr_value *list, struct xr_value *v)
{
	return xr_value_append(list, v) == XR_OK;
}

/* Two new lists: those of @now, but for one at @without (-1: none), which is noted
 * as lost if it is. */
static enum xr_status
copy_without(const struct epoch *now, long without, bool lost,
	struct epoch *next, struct xr_error *err)
{
	size_t count = xr_value_count(now->lost);
	struct member m;
	bool good;

	next->members = xr_value_new_list();
	next->lost = xr_value_new_list();
	good = next->members != NULL && next->lost != NULL;
	for (size_t i = 0; i < xr_value_count(now->members) && good; i++)
		if ((long)i != without)
			good = append(next->members,
				xr_value_ref(xr_value_at(now->members, i)));
	for (size_t i = count > LOST_KEPT ? count - LOST_KEPT : 0;
		i < count && good; i++)
		good = append(next->lost,
			xr_value_ref(xr_value_at(now->lost, i)));
	if (good && lost && without >= 0 &&
		member_read(xr_value_at(now->members, (size_t)without), &m))
		good = append(next->lost, xr_value_new_u64(m.incarnation));
	return good ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}

struct one {
	uint32_t id;
	uint64_t incarnation;
	bool lost;
	bool asks;
};

static enum xr_status
take_off(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *err)
{
	const struct one *one = ctx;
	long at = place_of(now->members, one->id, one->incarnation);

	if (at < 0)
		return XR_E_AGAIN;
	next->asks = one->asks;
	return copy_without(now, at, one->lost, next, err);
}

static void
bury(uint32_t id, uint64_t incarnation)
{
	struct one one = { id, incarnation, .lost = true };
	struct epoch e = { 0 };

	epoch_change(d.store, take_off, &one, &e, NULL, NULL);
	epoch_fini(&e);
}

struct loss {
	struct work work;
	struct peer *peer;
};

/* A link may break between two that live on. */
static void
look_at_lost(struct work *work)
{
	struct loss *l =
		(struct loss *)((char *)work - offsetof(struct loss, work));
	struct peer *p = l->peer;

	free(l);
	if (!peer_is_gone(p) && !atomic_load(&d.leaving) &&
		agent_there(p->addresses, p->id, p->incarnation) !=
			XR_THERE_YES &&
		!peer_is_gone(p))
		bury(p->id, p->incarnation);
}

/* Without memory the next one to join finds it. */
static void
on_lost(struct peer *p)
{
	struct loss *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return;
	l->work.run = look_at_lost;
	l->peer = p;
	crew_post(&l->work);
}

/* --- acknowledgements ----------------------------------------------------- */

/* Those that are waited for. */
struct awaited {
	uint64_t number;
	const struct xr_value *members; /* of whom */
	char (*key)[EPOCH_KEY_MAX];     /* [count] */
	const char **keys;
	size_t *place; /* in members */
	size_t count;
	int64_t *silent; /* [members]: since when; 0: not */
};

static bool
is_present(const struct member *m)
{
	bool there;

	pthread_mutex_lock(&d.lock);
	there = knows(m);
	pthread_mutex_unlock(&d.lock);
	return there;
}

/* Place @from is place @to now. */
static void
keep(struct awaited *a, size_t from, size_t to)
{
	memmove(a->key[to], a->key[from], EPOCH_KEY_MAX);
	a->keys[to] = a->key[to];
	a->place[to] = a->place[from];
}

static void
drop_first(struct awaited *a, size_t n)
{
	for (size_t i = n; i < a->count; i++)
		keep(a, i, i - n);
	a->count -= n;
}

/* Those of @a are left that have not acknowledged, and are not gone. */
static void
drop_done(struct awaited *a)
{
	size_t left = 0;
	struct member m;
	bool there;

	for (size_t i = 0; i < a->count; i++) {
		there = false;
		if (member_read(xr_value_at(a->members, a->place[i]), &m) &&
			is_present(&m) &&
			(xr_store_check(d.store, &a->keys[i], 1, &there,
				 NULL) != XR_OK ||
				!there))
			keep(a, i, left++);
	}
	a->count = left;
}

/* The dead among them are buried; a look at one may take a second. */
static void
look_for_dead(struct awaited *a)
{
	int64_t *since;
	struct member m;

	for (size_t i = 0; i < a->count; i++) {
		member_read(xr_value_at(a->members, a->place[i]), &m);
		since = &a->silent[a->place[i]];
		switch (agent_there(m.addresses, m.id, m.incarnation)) {
		case XR_THERE_NO:
			bury(m.id, m.incarnation);
			break;
		case XR_THERE_SILENT:
			if (*since == 0)
				*since = clock_now();
			else if (clock_now() - *since > LEASE_NS)
				bury(m.id, m.incarnation);
			break;
		case XR_THERE_YES:
		case XR_THERE_UNKNOWN:
			*since = 0;
			break;
		}
	}
}

static enum xr_status
name_late(const struct awaited *a, struct xr_error *err)
{
	char text[160] = "";
	struct member m;
	size_t n = 0;

	for (size_t i = 0; i < a->count && n < sizeof(text) - 40; i++) {
		member_read(xr_value_at(a->members, a->place[i]), &m);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.30s",
			i > 0 ? ", " : "", m.name);
	}
	return fail(err, XR_E_TIMEOUT,
		"%zu members have not taken note in time: %s", a->count, text);
}

static enum xr_status
await_all(struct awaited *a, int64_t deadline, struct xr_error *err)
{
	int64_t patience = FIRST_NS, left;
	enum xr_status status;
	size_t n;

	while (a->count > 0) {
		n = a->count < XR_STORE_KEYS_MAX ? a->count : XR_STORE_KEYS_MAX;
		left = future_left(deadline);
		status = xr_store_wait(d.store, a->keys, n,
			left < patience ? left : patience, err);
		if (status != XR_OK && status != XR_E_TIMEOUT &&
			status != XR_E_NOTFOUND)
			return status;
		if (status == XR_OK) {
			drop_first(a, n);
			continue;
		}
		drop_done(a);
		if (a->count > 0 && left == 0)
			return name_late(a, err);
		look_for_dead(a);
		drop_done(a);
		patience = AGAIN_NS;
	}
	return XR_OK;
}

static bool
list_awaited(struct awaited *a)
{
	size_t count = xr_value_count(a->members) + 1;
	struct member m;

	a->key = calloc(count, sizeof(*a->key));
	a->keys = calloc(count, sizeof(*a->keys));
	a->place = calloc(count, sizeof(*a->place));
	a->silent = calloc(count, sizeof(*a->silent));
	if (a->key == NULL || a->keys == NULL || a->place == NULL ||
		a->silent == NULL)
		return false;
	for (size_t i = 0; i + 1 < count; i++) {
		if (!member_read(xr_value_at(a->members, i), &m) || is_self(&m))
			continue;
		epoch_ack_key(a->number, m.id, a->key[a->count]);
		a->keys[a->count] = a->key[a->count];
		a->place[a->count++] = i;
	}
	return true;
}

static void
clear_acks(const struct epoch *mine)
{
	char key[EPOCH_KEY_MAX];
	struct member m;

	for (size_t i = 0; i < xr_value_count(mine->members); i++) {
		if (!member_read(xr_value_at(mine->members, i), &m) ||
			is_self(&m))
			continue;
		epoch_ack_key(mine->number, m.id, key);
		if (xr_store_delete(d.store, key, NULL, NULL) != XR_OK)
			return;
	}
}

/* Until all others of @mine, which was written here, have it, or are gone. */
static enum xr_status
await_acks(const struct epoch *mine, int64_t deadline, struct xr_error *err)
{
	struct awaited a = { .number = mine->number, .members = mine->members };
	enum xr_status status = list_awaited(&a) ?
		await_all(&a, deadline, err) :
		fail(err, XR_E_NOMEM, "out of memory");

	free(a.key);
	free(a.keys);
	free(a.place);
	free(a.silent);
	if (status == XR_OK)
		clear_acks(mine);
	return status;
}

/* --- joining -------------------------------------------------------------- */

struct joining {
	int64_t deadline;
	int64_t silent; /* since when who stands in the way is; 0 */
};

/* Somebody has our name or id. @dead: he need not count. */
static enum xr_status
meet_holder(struct joining *j, const struct member *m, bool *dead,
	struct xr_error *err)
{
	enum xr_there there = XR_THERE_SILENT;

	while (there == XR_THERE_SILENT) {
		there = agent_there(m->addresses, m->id, m->incarnation);
		if (there != XR_THERE_SILENT)
			break;
		if (j->silent == 0)
			j->silent = clock_now();
		if (clock_now() - j->silent > LEASE_NS)
			there = XR_THERE_NO;
		else if (future_left(j->deadline) == 0)
			there = XR_THERE_YES;
	}
	*dead = there == XR_THERE_NO;
	if (*dead)
		return XR_OK;
	return strcmp(m->name, d.self.name) == 0 ?
		fail(err, XR_E_EXISTS, "ranks %u and %u both have the name %s",
			m->id, d.self.id, m->name) :
		fail(err, XR_E_EXISTS,
			"%s and %s both say that they are rank %u", m->name,
			d.self.name, m->id);
}

/* The lists of @now without those who stand in the way, and are dead. */
static enum xr_status
make_way(struct joining *j, const struct epoch *now, struct epoch *next,
	struct xr_error *err)
{
	struct epoch less = { 0 };
	enum xr_status status = copy_without(now, -1, false, next, err);
	bool dead = false;
	struct member m;
	size_t i = 0;

	while (status == XR_OK && i < xr_value_count(next->members)) {
		if (!member_read(xr_value_at(next->members, i), &m))
			return fail(err, XR_E_PROTO, "member %zu is none", i);
		if (m.id != d.self.id && strcmp(m.name, d.self.name) != 0) {
			i++;
			continue;
		}
		status = meet_holder(j, &m, &dead, err);
		if (status != XR_OK)
			break;
		less.number = next->number;
		status = copy_without(next, (long)i, true, &less, err);
		epoch_fini(next);
		*next = less;
		less = (struct epoch){ 0 };
	}
	return status;
}

/* Others may come as soon as it is written: they are known before. */
static enum xr_status
put_on(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *err)
{
	enum xr_status status;
	bool known;

	if (place_of(now->members, d.self.id, d.self.incarnation) >= 0)
		return XR_E_AGAIN;
	status = make_way(ctx, now, next, err);
	if (status == XR_OK)
		status = xr_value_append(next->members, xr_value_ref(d.info));
	if (status == XR_OK)
		status = members_check_devices(next->members, false, err);
	if (status != XR_OK)
		return status;
	next->asks = true;
	pthread_mutex_lock(&d.lock);
	known = learn_all(next->members);
	pthread_mutex_unlock(&d.lock);
	return known ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}

/* The first makes it up. */
static enum xr_status
share_secret(struct xr_store *store, uint8_t secret[JOIN_SECRET],
	struct xr_error *err)
{
	struct xr_store_swap swap = {
		.size = sizeof(swap),
		.key = "rpc/dynamic/secret",
		.desired = secret,
		.desired_len = JOIN_SECRET,
	};
	struct xr_store_value now = { 0 };
	enum xr_status status = join_new_secret(secret, err);
	bool there = false;

	if (status == XR_OK)
		status = xr_store_compare_set(store, &swap, &now, &there, err);
	if (status == XR_OK && (!there || now.len != JOIN_SECRET))
		status = fail(err, XR_E_PROTO, "that is no secret");
	if (status == XR_OK)
		memcpy(secret, now.data, JOIN_SECRET);
	xr_store_value_free(&now);
	return status;
}

static enum xr_status
tell_of_self(const struct member *me, const struct xr_rpc_opts *opts,
	struct xr_error *err)
{
	char addresses[AGENT_ADDRESSES_MAX];
	struct member full = *me;

	agent_addresses(addresses, sizeof(addresses));
	full.addresses = addresses;
	d.info = member_new(&full, opts);
	if (d.info == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	return member_read(d.info, &d.self) ?
		XR_OK :
		fail(err, XR_E_PROTO, "this process is no member");
}

static void
end(void)
{
	xr_store_close(d.store);
	if (d.watched)
		pthread_join(d.watch, NULL);
	d.watched = false;
}

static void
clean(void)
{
	xr_value_unref(d.info);
	free(d.present);
	d.info = NULL;
	d.present = NULL;
	d.count = d.cap = 0;
	d.applied = 0;
	d.store = NULL;
	d.self = (struct member){ 0 };
}

static enum xr_status
come_in(int64_t deadline, struct xr_error *err)
{
	struct joining j = { .deadline = deadline };
	struct epoch now = { 0 }, mine = { 0 };
	enum xr_status status;

	status = epoch_change(d.store, put_on, &j, &now, &mine, err);
	if (status == XR_OK && !apply(&now))
		status = fail(err, XR_E_NOMEM, "out of memory");
	if (status == XR_OK)
		status = start_watch(err);
	if (status == XR_OK)
		status = await_acks(&mine, deadline, err);
	if (status != XR_OK && mine.number != 0)
		dynamic_leave(false, deadline);
	epoch_fini(&now);
	epoch_fini(&mine);
	return status;
}

enum xr_status
dynamic_join(struct xr_store *store, const struct member *me,
	const struct xr_rpc_opts *opts, int64_t deadline, struct xr_error *err)
{
	uint8_t secret[JOIN_SECRET];
	const struct member_begin how = {
		.secret = secret,
		.is_new = true,
		.lost = on_lost,
	};
	enum xr_status status = share_secret(store, secret, err);

	d.store = store;
	atomic_store(&d.leaving, false);
	if (status == XR_OK)
		status = member_open(me, opts, &how, err);
	explicit_bzero(secret, sizeof(secret));
	if (status != XR_OK) {
		clean();
		return status;
	}
	status = tell_of_self(me, opts, err);
	if (status == XR_OK)
		status = come_in(deadline, err);
	if (status == XR_OK) {
		rref_set_flags(opts->rref_flags);
		agent_begin();
		return XR_OK;
	}
	end();
	agent_close();
	clean();
	return status;
}

/* --- leaving -------------------------------------------------------------- */

/* A store that is lost keeps nobody. */
void
dynamic_leave(bool waits, int64_t deadline)
{
	struct one one = { d.self.id, d.self.incarnation, .asks = waits };
	int64_t until = clock_now() + LEAVE_NS;
	struct epoch now = { 0 }, mine = { 0 };

	atomic_store(&d.leaving, true);
	if (epoch_change(d.store, take_off, &one, &now, &mine, NULL) == XR_OK &&
		waits && mine.number != 0)
		await_acks(&mine, until < deadline ? until : deadline, NULL);
	epoch_fini(&now);
	epoch_fini(&mine);
}

void
dynamic_end(void)
{
	end();
	agent_close();
	clean();
}
