/* SPDX-License-Identifier: Apache-2.0 */
/* rref_table.c - the tables of references, and what is done when their lock was
 * given away; see rref_inner.h. */
#include <stdlib.h>

#include "worker/rpc/agent.h"
#include "worker/rpc/rref_inner.h"

struct rref_state rref = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- maps ------------------------------------------------------------------- */

static struct gid_node **
place(struct gid_map *map, const struct rref_gid *id)
{
	/* Numbers follow each other; those of two workers must not meet. */
	uint64_t hash =
		(id->local ^ (uint64_t)id->worker << 40 ^ id->incarnation) *
		UINT64_C(0x9e3779b97f4a7c15);

	hash ^= hash >> 32;
	return map->bucket != NULL ? &map->bucket[hash & (map->buckets - 1)] :
				     &map->few[hash & (GID_FEW - 1)];
}

struct gid_node *
gid_find(struct gid_map *map, const struct rref_gid *id)
{
	struct gid_node *n = *place(map, id);

	while (n != NULL && !rref_same(&n->id, id))
		n = n->next;
	return n;
}

/* Without memory its chains grow longer, and that is all. */
static void
grow(struct gid_map *map)
{
	struct gid_map more = {
		.buckets = map->bucket != NULL ? 2 * map->buckets : 4 * GID_FEW
	};
	struct gid_node *n;

	more.bucket = calloc(more.buckets, sizeof(struct gid_node *));
	if (more.bucket == NULL)
		return;
	while ((n = gid_first(map)) != NULL) {
		gid_remove(map, n);
		gid_add(&more, n);
	}
	free(map->bucket);
	map->bucket = more.bucket;
	map->buckets = more.buckets;
	map->count = more.count;
}

void
gid_add(struct gid_map *map, struct gid_node *node)
{
	struct gid_node **at;

	if (map->count >= 2 * (map->bucket != NULL ? map->buckets : GID_FEW))
		grow(map);
	at = place(map, &node->id);
	node->next = *at;
	*at = node;
	map->count++;
}

void
gid_remove(struct gid_map *map, struct gid_node *node)
{
	struct gid_node **at = place(map, &node->id);

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	map->count--;
}

static struct gid_node *
first_from(struct gid_map *map, uint32_t i)
{
	uint32_t n = map->bucket != NULL ? map->buckets : GID_FEW;

	for (; i < n; i++)
		if ((map->bucket != NULL ? map->bucket : map->few)[i] != NULL)
			return (map->bucket != NULL ? map->bucket :
						      map->few)[i];
	return NULL;
}

struct gid_node *
gid_first(struct gid_map *map)
{
	return map->count > 0 ? first_from(map, 0) : NULL;
}

struct gid_node *
gid_next(struct gid_map *map, const struct gid_node *node)
{
	struct gid_node **base = map->bucket != NULL ? map->bucket : map->few;

	if (node->next != NULL)
		return node->next;
	return first_from(map, (uint32_t)(place(map, &node->id) - base) + 1);
}

void
gid_free(struct gid_map *map)
{
	free(map->bucket);
	*map = (struct gid_map){ 0 };
}

/* --- ids -------------------------------------------------------------------- */

struct rref_gid
rref_new_gid(void)
{
	const struct peer *self = agent_self();

	return (struct rref_gid){
		.worker = self->id,
		.incarnation = self->incarnation,
		.local = rref.next++,
	};
}

/* --- afterwards ------------------------------------------------------------- */

void
rref_todo_init(struct rref_todo *todo)
{
	*todo = (struct rref_todo){ 0 };
	TAILQ_INIT(&todo->wants);
	TAILQ_INIT(&todo->control);
}

void
rref_later(struct rref_todo *todo, enum message_kind kind, struct peer *to,
	const struct rref_wire *wire)
{
	struct control *c = malloc(sizeof(*c));

	if (c == NULL)
		return;
	*c = (struct control){ .kind = kind, .to = to, .wire = *wire };
	TAILQ_INSERT_TAIL(&todo->control, c, list);
}

void
rref_look(struct rref_todo *todo)
{
	bool empty = rref_untold() == 0 &&
		(rref.settles_owners ?
				rref.forks.count == 0 :
				rref.pending == 0 && rref.children.count == 0);

	if (rref.settled == NULL || !empty)
		return;
	todo->settled = rref.settled;
	rref.settled = NULL;
}

static void
free_owned(struct owned *o)
{
	xr_value_unref(o->value);
	xr_value_unref(o->error);
	xr_future_unref(o->asked);
	free(o);
}

static void
free_all(struct rref_todo *todo)
{
	struct gid_node *n;

	while ((n = todo->owned) != NULL) {
		todo->owned = n->next;
		free_owned((struct owned *)n);
	}
	while ((n = todo->handles) != NULL) {
		todo->handles = n->next;
		handle_free((struct xr_rref *)n);
	}
	while ((n = todo->children) != NULL) {
		todo->children = n->next;
		xr_rref_unref(((struct child *)n)->parent);
		free(n);
	}
}

void
rref_do(struct rref_todo *todo)
{
	struct refs_in *refs;
	struct control *c;
	struct want *w;

	/* A handle is confirmed to its owner's users before they are answered. */
	while ((c = TAILQ_FIRST(&todo->control)) != NULL) {
		TAILQ_REMOVE(&todo->control, c, list);
		rref_tell(c->kind, c->to, &c->wire);
		free(c);
	}
	while ((w = TAILQ_FIRST(&todo->wants)) != NULL) {
		TAILQ_REMOVE(&todo->wants, w, list);
		want_told(w);
	}
	while ((refs = todo->ready) != NULL)
		todo->ready = refs_tell_ready(refs);
	free_all(todo);
	if (todo->settled != NULL)
		waiter_done(todo->settled);
}
