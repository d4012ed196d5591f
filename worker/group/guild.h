/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guild.h - inside of xrun/group.h: a group, and what this process knows of it.
 *
 * Who holds a key stands in the job's store, under the group's tag, which no other
 * group ever had; it is written by compare and set, so that one of many wins. What is
 * held stands in the holder's table, under the generation that the store says: a call
 * that names another finds nothing, and its caller looks up once more. A holder takes
 * its entry off the store before its table, so that who finds nothing there may
 * take off the store what led there.
 *
 * Locks: that of the list of all groups, and one of each group, for its tables;
 * neither is held while another is taken, or while anybody waits.
 */
#ifndef WORKER_GROUP_GUILD_H
#define WORKER_GROUP_GUILD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/group.h>

#define GUILD_TAG_MAX (XR_GROUP_NAME_MAX + 40)

enum guild_kind {
	GUILD_VALUE = 'v',
	GUILD_SERVICE = 's',
};

/* Who holds a key, and since when. */
struct guild_place {
	uint32_t id;
	uint64_t incarnation, generation;
};

/* What this process holds. */
struct guild_held {
	LIST_ENTRY(guild_held) list;
	enum guild_kind kind;
	uint64_t generation;
	bool changes;           /* being claimed, or given up: by one thread */
	struct xr_value *value; /* of GUILD_VALUE, */
	xr_func_fn *fn;         /* or of GUILD_SERVICE */
	void *ctx;
	uint32_t flags; /* enum xr_func_flags */
	char key[];
};
LIST_HEAD(guild_held_list, guild_held);

/* Where a service of others was. */
struct guild_known {
	LIST_ENTRY(guild_known) list;
	struct guild_place place;
	char key[];
};
LIST_HEAD(guild_known_list, guild_known);

struct xr_group {
	LIST_ENTRY(xr_group) list;
	atomic_uint refs;
	atomic_bool is_closed;
	bool is_received;
	uint64_t world; /* the life of this worker that it is of */
	int64_t timeout;
	_Atomic uint64_t barriers; /* that were begun here */
	char name[XR_GROUP_NAME_MAX + 1];
	char tag[GUILD_TAG_MAX + 1]; /* name/life-number, of the first member */

	pthread_mutex_t lock;
	struct guild_held_list held;
	struct guild_known_list known;

	uint32_t count;
	char *member[]; /* [count], sorted */
};

/* --- guild.c -------------------------------------------------------------- */

/* guild_alloc() - with copies of the names; NULL: no memory. */
struct xr_group *guild_alloc(const char *name, const char *const *members,
	size_t count);
void guild_unref(struct xr_group *g);
bool guild_name_is(const char *name);
bool guild_has(const struct xr_group *g, const char *worker);

/* guild_enter() - as agent_enter(), where it is open, and its world; guild_leave()
 * is agent_leave(). */
enum xr_status guild_enter(const struct xr_group *g, struct xr_error *err);

/* guild_enter_member() - the same, of a member that made it. @what it does. */
enum xr_status guild_enter_member(const struct xr_group *g, const char *what,
	struct xr_error *err);

/* guild_find() - of those that this process made, by tag; a reference, or NULL. */
struct xr_group *guild_find(const char *tag);

/* --- guild_place.c: the store ---------------------------------------------- */

/* guild_claim() - @mine, if nobody has @key; XR_E_EXISTS says who does. */
enum xr_status guild_claim(struct xr_group *g, const struct guild_held *held,
	struct xr_error *err);

/* guild_give_up() - what this process claimed. */
enum xr_status guild_give_up(struct xr_group *g, const struct guild_held *held,
	struct xr_error *err);

/* guild_look_up() - who has @key; XR_E_NOTFOUND names key and group. */
enum xr_status guild_look_up(struct xr_group *g, enum guild_kind kind,
	const char *key, struct guild_place *place, struct xr_error *err);

/* guild_strike() - @key is not at @place: where that stands, nobody has it. */
void guild_strike(struct xr_group *g, enum guild_kind kind, const char *key,
	const struct guild_place *place);

/* guild_key_check() - is that a key? */
enum xr_status guild_key_check(const char *key, struct xr_error *err);

/* --- guild_held.c ----------------------------------------------------------- */

/* guild_holds() - has this process that key with that generation? Then @out, unless
 * it is NULL, has what it is, with a reference to a value, and no key. */
bool guild_holds(const char *tag, const struct guild_held *wanted,
	const char *key, struct guild_held *out);

/* guild_release_all() - the store and the tables have nothing of ours any more;
 * @is_there: the store can be asked. */
void guild_release_all(struct xr_group *g, bool is_there);

/* --- guild_serve.c ----------------------------------------------------------- */

#define GUILD_FUNC_VALUE "xr.group.value"
#define GUILD_FUNC_CALL  "xr.group.call"

/* guild_serve() - let others call what this process holds. Again: nothing. */
enum xr_status guild_serve(struct xr_error *err);

#endif /* WORKER_GROUP_GUILD_H */
