/* SPDX-License-Identifier: Apache-2.0 */
/* prof.c - profiles of threads and of the process, and marks; see prof.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <xrun/prof.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/prof.h"

#define EVENTS_MAX (1 << 20)

struct prof {
	_Atomic uint32_t refs;
	pthread_mutex_t lock; /* of what follows */
	bool closed;
	struct prof_event *event; /* [count] */
	size_t count, cap, lost;
	SLIST_ENTRY(prof) below; /* of the process's */
};
SLIST_HEAD(prof_stack, prof);

_Atomic uint32_t prof_open_count;

static struct {
	pthread_mutex_t lock;
	struct prof_stack stack;
	_Atomic uint32_t depth;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A part of the program's that is under way. */
struct mark {
	SLIST_ENTRY(mark) outer;
	uint32_t depth;
	int64_t start;
	char key[];
};
SLIST_HEAD(marks, mark);

static __thread struct {
	struct prof_into into;
	struct marks marks;
	uint32_t depth; /* of marks, also of those that nobody records */
	uint32_t id;    /* the kernel's number of the thread; 0: not asked */
} me __attribute__((tls_model("initial-exec")));

/* --- profiles ------------------------------------------------------------- */

struct prof *
prof_new(void)
{
	struct prof *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	atomic_init(&p->refs, 1);
	pthread_mutex_init(&p->lock, NULL);
	atomic_fetch_add(&prof_open_count, 1);
	return p;
}

struct prof *
prof_ref(struct prof *p)
{
	if (p != NULL)
		atomic_fetch_add(&p->refs, 1);
	return p;
}

void
prof_unref(struct prof *p)
{
	if (p == NULL || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	prof_close(p);
	for (size_t i = 0; i < p->count; i++)
		free(p->event[i].key);
	free(p->event);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void
prof_close(struct prof *p)
{
	bool was;

	pthread_mutex_lock(&p->lock);
	was = p->closed;
	p->closed = true;
	pthread_mutex_unlock(&p->lock);
	if (!was)
		atomic_fetch_sub(&prof_open_count, 1);
}

/* The lock is held. */
static bool
has_room(struct prof *p)
{
	size_t cap = p->cap == 0 ? 32 : 2 * p->cap;
	struct prof_event *more;

	if (p->count < p->cap)
		return true;
	if (p->count >= EVENTS_MAX)
		return false;
	more = reallocarray(p->event, cap, sizeof(*more));
	if (more == NULL)
		return false;
	p->event = more;
	p->cap = cap;
	return true;
}

void
prof_add(struct prof *p, const struct prof_event *e)
{
	char *key = p != NULL ? strdup(e->key) : NULL;

	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	if (!p->closed && key != NULL && has_room(p)) {
		p->event[p->count] = *e;
		p->event[p->count++].key = key;
		key = NULL;
	} else if (!p->closed) {
		p->lost++;
	}
	pthread_mutex_unlock(&p->lock);
	free(key);
}

/* What came back for a call follows it; what began at once with another and ends
 * later has that one in it. */
static int
by_order(const void *a, const void *b)
{
	const struct prof_event *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->sub != y->sub)
		return x->sub < y->sub ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

const struct prof_event *
prof_sort(struct prof *p, size_t *count)
{
	if (p->count > 1)
		qsort(p->event, p->count, sizeof(*p->event), by_order);
	*count = p->count;
	return p->event;
}

size_t
prof_lost(const struct prof *p)
{
	return p->lost;
}

/* --- who records ---------------------------------------------------------- */

struct prof_into *
prof_into(void)
{
	return &me.into;
}

uint32_t
prof_worker(void)
{
	uint32_t id = 0;

	if (agent_enter(NULL) == XR_OK) {
		id = agent_self()->id;
		agent_leave();
	}
	return id;
}

uint32_t
prof_thread(void)
{
	if (me.id == 0)
		me.id = (uint32_t)syscall(SYS_gettid);
	return me.id;
}

static void
add_to_process(const struct prof_event *e)
{
	struct prof *p;

	if (atomic_load(&process.depth) == 0)
		return;
	pthread_mutex_lock(&process.lock);
	SLIST_FOREACH(p, &process.stack, below)
	prof_add(p, e);
	pthread_mutex_unlock(&process.lock);
}

void
prof_note(const struct prof_into *into, const char *key, int64_t start,
	int64_t end)
{
	const struct prof_event e = {
		.key = (char *)key,
		.start = start,
		.end = end,
		.order = start,
		.worker = prof_worker(),
		.thread = into->thread != 0 ? into->thread : prof_thread(),
	};

	prof_add(into->own, &e);
	prof_add(into->serving, &e);
	add_to_process(&e);
}

void
prof_note_task(const struct prof_event *e)
{
	struct prof_event whole = *e;

	whole.order = e->start;
	whole.worker = prof_worker();
	if (whole.thread == 0)
		whole.thread = prof_thread();
	add_to_process(&whole);
}

void
prof_note_items(const char *key, int64_t now, uint64_t items)
{
	const struct prof_event e = { .key = (char *)key,
		.start = now,
		.end = now,
		.items = items + 1 };

	prof_note_task(&e);
}

static _Atomic(void (*)(void)) before_end;

void
prof_on_end(void (*fn)(void))
{
	atomic_store(&before_end, fn);
}

/* --- marks ---------------------------------------------------------------- */

XR_EXPORT void
xr_prof_mark_begin(const char *key)
{
	struct mark *m;
	size_t len;

	me.depth++;
	if (!prof_is_on() || key == NULL)
		return;
	len = strlen(key) + 1;
	m = malloc(sizeof(*m) + len);
	if (m == NULL)
		return;
	memcpy(m->key, key, len);
	m->depth = me.depth;
	m->start = clock_now();
	SLIST_INSERT_HEAD(&me.marks, m, outer);
}

XR_EXPORT void
xr_prof_mark_end(void)
{
	struct mark *m = SLIST_FIRST(&me.marks);

	if (m != NULL && m->depth == me.depth) {
		SLIST_REMOVE_HEAD(&me.marks, outer);
		if (prof_is_on())
			prof_note(&me.into, m->key, m->start, clock_now());
		free(m);
	}
	me.depth -= me.depth > 0;
}

/* --- begin and end -------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_prof_begin(uint32_t flags, struct xr_error *err)
{
	struct prof *p;

	if (flags > XR_PROF_PROCESS)
		return fail(err, XR_E_INVAL, "a profile with flags %u", flags);
	if (flags == XR_PROF_THREAD && me.into.own != NULL)
		return fail(err, XR_E_STATE,
			"this thread records a profile already");
	p = prof_new();
	if (p == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (flags == XR_PROF_THREAD) {
		me.into.own = p;
		return XR_OK;
	}
	pthread_mutex_lock(&process.lock);
	SLIST_INSERT_HEAD(&process.stack, p, below);
	atomic_fetch_add(&process.depth, 1);
	pthread_mutex_unlock(&process.lock);
	return XR_OK;
}

static struct prof *
take(uint32_t flags)
{
	struct prof *p = me.into.own;

	if (flags == XR_PROF_THREAD) {
		me.into.own = NULL;
		return p;
	}
	pthread_mutex_lock(&process.lock);
	p = SLIST_FIRST(&process.stack);
	if (p != NULL) {
		SLIST_REMOVE_HEAD(&process.stack, below);
		atomic_fetch_sub(&process.depth, 1);
	}
	pthread_mutex_unlock(&process.lock);
	return p;
}

static enum xr_status
put(struct xr_value *dict, const char *key, struct xr_value *v)
{
	return xr_value_put(dict, key, strlen(key), v);
}

/* A key that is no text, of a program or a peer that does not care, is "?". */
static struct xr_value *
text_of(const char *key)
{
	struct xr_value *v = xr_value_new_text(key, strlen(key));

	return v != NULL ? v : xr_value_new_text("?", 1);
}

static struct xr_value *
value_of(const struct prof_event *e)
{
	struct xr_value *d = xr_value_new_dict();
	enum xr_status status = d != NULL ? XR_OK : XR_E_NOMEM;

	if (status == XR_OK)
		status = put(d, "key", text_of(e->key));
	if (status == XR_OK)
		status = put(d, "start", xr_value_new_i64(e->start));
	if (status == XR_OK)
		status = put(d, "end", xr_value_new_i64(e->end));
	if (status == XR_OK)
		status = put(d, "worker", xr_value_new_i64(e->worker));
	if (status == XR_OK)
		status = put(d, "thread", xr_value_new_i64(e->thread));
	if (status == XR_OK)
		status = put(d, "remote", xr_value_new_bool(e->remote));
	if (status == XR_OK && e->open > 0)
		status = put(d, "open", xr_value_new_i64(e->open - 1));
	if (status == XR_OK && e->items > 0)
		status = put(d, "items",
			xr_value_new_i64((int64_t)(e->items - 1)));
	if (status == XR_OK)
		return d;
	xr_value_unref(d);
	return NULL;
}

/* NULL: no memory. */
static struct xr_value *
list_of(struct prof *p)
{
	struct xr_value *list = xr_value_new_list();
	const struct prof_event *e;
	size_t count;

	e = prof_sort(p, &count);
	for (size_t i = 0; i < count && list != NULL; i++)
		if (xr_value_append(list, value_of(&e[i])) != XR_OK) {
			xr_value_unref(list);
			list = NULL;
		}
	return list;
}

XR_EXPORT enum xr_status
xr_prof_end(uint32_t flags, struct xr_value **events, struct xr_error *err)
{
	void (*first)(void) = atomic_load(&before_end);
	struct xr_value *list = NULL;
	struct prof *p;
	size_t lost;

	if (flags > XR_PROF_PROCESS)
		return fail(err, XR_E_INVAL, "a profile with flags %u", flags);
	if (flags == XR_PROF_PROCESS && first != NULL)
		first();
	p = take(flags);
	if (p == NULL)
		return fail(err, XR_E_STATE, "no profile is recorded");
	prof_close(p);
	lost = prof_lost(p);
	if (events != NULL && lost == 0)
		list = list_of(p);
	prof_unref(p);
	if (lost > 0)
		return fail(err, XR_E_NOMEM,
			"%zu events found no room in the profile", lost);
	if (events != NULL && list == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (events != NULL)
		*events = list;
	return XR_OK;
}
