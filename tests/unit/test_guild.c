/* SPDX-License-Identifier: Apache-2.0 */
/* test_guild.c - names, locks and values of groups; see xrun/group.h. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <xrun/rpc.h>
#include <xrun/world.h>

#include "wire/value/node.h"
#include "worker/group/guild.h"

TestSuite(guild, .timeout = 60);

Test(guild, a_name_has_between_one_byte_and_the_maximum)
{
	char name[XR_GROUP_NAME_MAX + 2];

	memset(name, 'a', sizeof(name));
	name[XR_GROUP_NAME_MAX + 1] = '\0';
	cr_expect_not(guild_name_is(name));
	name[XR_GROUP_NAME_MAX] = '\0';
	cr_expect(guild_name_is(name));
	name[1] = '\0';
	cr_expect(guild_name_is(name));
	name[0] = '\0';
	cr_expect_not(guild_name_is(name));
	cr_expect_not(guild_name_is(NULL));
}

Test(guild, a_name_has_letters_digits_and_four_signs)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
	char name[] = "a?b";

	for (int c = 1; c < 256; c++) {
		name[1] = (char)c;
		cr_expect_eq(guild_name_is(name), strchr(fine, c) != NULL,
			"byte %d", c);
	}
}

/* --- locks ----------------------------------------------------------------------------- */

static _Thread_local unsigned held; /* locks of this thread */
static _Atomic unsigned unmatched;  /* unlocks of threads without a lock */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int
__wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int sys = __real_pthread_mutex_lock(lock);

	held += sys == 0;
	return sys;
}

int
__wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	int sys = __real_pthread_mutex_trylock(lock);

	held += sys == 0;
	return sys;
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (held == 0)
		atomic_fetch_add(&unmatched, 1);
	else
		held--;
	return __real_pthread_mutex_unlock(lock);
}

static struct xr_error err;
static char path[64]; /* of the store, whose file comes with the first key */

/* Of one worker, this process. */
static struct xr_world *
new_world(void)
{
	char method[96];
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_world *world = NULL;
	int fd;

	snprintf(path, sizeof(path), "/tmp/xrun-world-XXXXXX");
	fd = mkstemp(path);
	cr_assert_neq(fd, -1);
	close(fd);
	unlink(path);
	snprintf(method, sizeof(method), "file://%s", path);
	cr_assert_eq(xr_rpc_opts_init(0, &rpc, NULL), XR_OK);
	rpc.init_method = method;
	opts.name = "self";
	opts.rank = 0;
	opts.world_size = 1;
	opts.rpc = &rpc;
	cr_assert_eq(xr_world_new(&opts, &world, &err), XR_OK, "%s", err.text);
	unlink(path);
	return world;
}

Test(guild, a_group_is_opened_and_closed_under_its_locks)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "all" };
	struct xr_world *world = new_world();
	struct xr_group *group = NULL, *second = NULL;

	cr_assert_eq(xr_group_new(world, &opts, &group, &err), XR_OK, "%s",
		err.text);
	cr_expect_eq(xr_group_new(world, &opts, &second, &err), XR_E_EXISTS);
	xr_group_free(group);
	cr_assert_eq(xr_group_new(world, &opts, &group, &err), XR_OK, "%s",
		err.text);
	xr_group_close(group);
	xr_group_free(group);
	cr_expect_eq(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			     &err),
		XR_OK, "%s", err.text);
	xr_world_free(world);
	cr_expect_eq(held, 0);
	cr_expect_eq(atomic_load(&unmatched), 0);
}

/* --- what this process holds ------------------------------------------------------------ */

static struct xr_value *
text_of(const char *text)
{
	return xr_value_new_text(text, strlen(text));
}

static enum xr_status
no_service(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	return XR_E_STATE;
}

/* What the table has of @key. */
static struct guild_held
in_table(const struct xr_group *g, enum guild_kind kind, const char *key)
{
	const struct guild_held *h;

	LIST_FOREACH(h, &g->held, list)
	if (h->kind == kind && strcmp(h->key, key) == 0)
		return (struct guild_held){ .kind = kind,
			.generation = h->generation };
	cr_assert(false, "no key '%s'", key);
	return (struct guild_held){ 0 };
}

static void
expect_not_held(const struct xr_group *g, struct guild_held wanted)
{
	struct guild_held got = { .ctx = &got };
	struct guild_held other = wanted;

	other.kind = wanted.kind == GUILD_VALUE ? GUILD_SERVICE : GUILD_VALUE;
	cr_expect_not(guild_holds(g->tag, &other, "key", &got));
	other = wanted;
	other.generation--;
	cr_expect_not(guild_holds(g->tag, &other, "key", &got));
	other.generation += 2;
	cr_expect_not(guild_holds(g->tag, &other, "key", &got));
	cr_expect_not(guild_holds(g->tag, &wanted, "ke", &got));
	cr_expect_not(guild_holds(g->tag, &wanted, "key1", &got));
	cr_expect_not(guild_holds("other/1", &wanted, "key", &got));
	cr_expect_eq(got.ctx, &got);
	cr_expect_null(got.value);
}

/* A value outlives its key with who looked it up. */
static void
expect_value(struct xr_group *g)
{
	struct xr_value *v = text_of("a text");
	struct guild_held wanted, got;
	size_t len;

	cr_assert_eq(xr_group_pair(g, "key", v, &err), XR_OK, "%s", err.text);
	cr_expect_eq(atomic_load(&v->refs), 2);
	wanted = in_table(g, GUILD_VALUE, "key");
	expect_not_held(g, wanted);
	cr_expect(guild_holds(g->tag, &wanted, "key", NULL));
	cr_expect_eq(atomic_load(&v->refs), 2);
	cr_expect(guild_holds(g->tag, &wanted, "key", &got));
	cr_expect_eq(atomic_load(&v->refs), 3);
	cr_expect_eq(got.value, v);
	cr_expect_eq(got.kind, GUILD_VALUE);
	cr_expect_eq(got.generation, wanted.generation);
	xr_value_unref(v);
	cr_expect_eq(xr_group_unpair(g, "key", &err), XR_OK, "%s", err.text);
	cr_expect_eq(atomic_load(&v->refs), 1);
	cr_expect_str_eq(xr_value_data(got.value, &len), "a text");
	xr_value_unref(got.value);
	cr_expect_not(guild_holds(g->tag, &wanted, "key", NULL));
}

static void
expect_service(struct xr_group *g)
{
	const struct xr_group_service s = { .size = sizeof(s),
		.key = "key",
		.fn = no_service,
		.ctx = &err,
		.flags = XR_FN_ASYNC };
	struct guild_held wanted, got;

	cr_assert_eq(xr_group_register(g, &s, &err), XR_OK, "%s", err.text);
	wanted = in_table(g, GUILD_SERVICE, "key");
	expect_not_held(g, wanted);
	cr_expect(guild_holds(g->tag, &wanted, "key", &got));
	cr_expect_null(got.value);
	cr_expect_eq(got.fn, no_service);
	cr_expect_eq(got.ctx, &err);
	cr_expect_eq(got.flags, XR_FN_ASYNC);
	cr_expect_eq(xr_group_deregister(g, "key", &err), XR_OK);
	cr_expect_not(guild_holds(g->tag, &wanted, "key", NULL));
}

Test(guild, a_key_is_held_by_its_kind_and_generation)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "all" };
	struct xr_world *world = new_world();
	struct xr_group *group = NULL;

	cr_assert_eq(xr_group_new(world, &opts, &group, &err), XR_OK, "%s",
		err.text);
	expect_value(group);
	expect_service(group);
	cr_expect(LIST_EMPTY(&group->held));
	xr_group_free(group);
	cr_expect_eq(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			     &err),
		XR_OK, "%s", err.text);
	xr_world_free(world);
	unlink(path);
}

/* --- groups of values ------------------------------------------------------------------ */

/* What a group is read from. NULL: the entry is absent. */
struct parts {
	const char *name, *tag, *member[4];
	bool no_members, is_number; /* the entry "members" */
	bool ends_in_number;        /* the list of members */
};

#define PARTS(n, t, ...) \
	(struct parts) \
	{ \
		.name = (n), .tag = (t), .member = { __VA_ARGS__ } \
	}

static struct xr_value *
value_of(const struct parts *p)
{
	struct xr_value *v = xr_value_new_dict(), *list = xr_value_new_list();

	if (p->name != NULL)
		xr_value_put(v, "group", 5, text_of(p->name));
	if (p->tag != NULL)
		xr_value_put(v, "tag", 3, text_of(p->tag));
	for (int i = 0; i < 4 && p->member[i] != NULL; i++)
		xr_value_append(list, text_of(p->member[i]));
	if (p->ends_in_number)
		xr_value_append(list, xr_value_new_i64(1));
	if (!p->no_members)
		xr_value_put(v, "members", 7,
			p->is_number ? xr_value_new_i64(1) :
				       xr_value_ref(list));
	xr_value_unref(list);
	return v;
}

static void
expect_no_group(struct xr_value *v, const char *what)
{
	struct xr_group *group = NULL;

	cr_expect_eq(xr_group_of_value(v, &group, &err), XR_E_SCHEMA, "%s",
		what);
	cr_expect_str_eq(err.text, "that value is no group");
	cr_expect_null(group);
	xr_value_unref(v);
}

static void
expect_no_group_of(const char *what, struct parts p)
{
	expect_no_group(value_of(&p), what);
}

static void
expect_group_of(struct parts p)
{
	struct xr_value *v = value_of(&p);
	struct xr_group *group = NULL;
	const char *name[4] = { NULL };

	cr_assert_eq(xr_group_of_value(v, &group, &err), XR_OK, "%s: %s", p.tag,
		err.text);
	xr_value_unref(v);
	cr_expect_str_eq(xr_group_name(group), p.name);
	cr_expect_str_eq(group->tag, p.tag);
	cr_expect(group->is_received);
	for (int i = 0; i < 4 && p.member[i] != NULL; i++) {
		cr_assert_eq(xr_group_members(group, name, 4), group->count);
		cr_assert_lt((uint32_t)i, group->count);
		cr_expect_str_eq(name[i], p.member[i]);
	}
	xr_group_free(group);
}

/* A text of @len bytes: @begin, then 'x'. */
static const char *
padded(char *text, const char *begin, size_t len)
{
	memset(text, 'x', len);
	memcpy(text, begin, strlen(begin));
	text[len] = '\0';
	return text;
}

Test(guild, a_value_of_another_form_is_no_group)
{
	struct xr_value *v;
	char tag[GUILD_TAG_MAX + 2], name[XR_WORKER_NAME_MAX + 2];

	expect_no_group(NULL, "NULL");
	expect_no_group(xr_value_new_list(), "a list");
	expect_no_group_of("no name", PARTS(NULL, "a/1", "w"));
	expect_no_group_of("a bad name", PARTS("a b", "a b/1", "w"));
	expect_no_group_of("no tag", PARTS("a", NULL, "w"));
	expect_no_group_of("another name's tag", PARTS("a", "b/1", "w"));
	expect_no_group_of("a longer name's tag", PARTS("a", "ab/1", "w"));
	expect_no_group_of("no slash", PARTS("a", "a", "w"));
	expect_no_group_of("a long tag",
		PARTS("a", padded(tag, "a/", GUILD_TAG_MAX + 1), "w"));
	expect_no_group_of("no members",
		(struct parts){ .name = "a",
			.tag = "a/1",
			.member = { "w" },
			.no_members = true });
	expect_no_group_of("members that are no list",
		(struct parts){ .name = "a",
			.tag = "a/1",
			.member = { "w" },
			.is_number = true });
	expect_no_group_of("a member that is no text",
		(struct parts){ .name = "a",
			.tag = "a/1",
			.member = { "w" },
			.ends_in_number = true });
	expect_no_group_of("none in members", PARTS("a", "a/1", NULL));
	expect_no_group_of("a member twice", PARTS("a", "a/1", "v", "v"));
	expect_no_group_of("not sorted", PARTS("a", "a/1", "w", "v"));
	expect_no_group_of("an empty name", PARTS("a", "a/1", ""));
	expect_no_group_of("a long name of a member",
		PARTS("a", "a/1", padded(name, "", XR_WORKER_NAME_MAX + 1)));
	v = value_of(&PARTS("a", "a/1", NULL));
	xr_value_put(v, "members", 7,
		value_of(&(struct parts){ .name = "v", .no_members = true }));
	expect_no_group(v, "members in a dict");
	v = value_of(&PARTS("a", NULL, "w"));
	xr_value_put(v, "tag", 3, xr_value_new_bytes("a/1", 4));
	expect_no_group(v, "a tag that is no text");
}

Test(guild, a_value_of_the_form_is_a_group)
{
	struct xr_world *world = new_world();
	char tag[GUILD_TAG_MAX + 1], name[XR_WORKER_NAME_MAX + 1];

	expect_group_of(PARTS("a", "a/", "w"));
	expect_group_of(PARTS("ab", "ab/1/2", "u", "v", "w"));
	expect_group_of(PARTS("a", padded(tag, "a/", GUILD_TAG_MAX),
		padded(name, "", XR_WORKER_NAME_MAX)));
	cr_expect_eq(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			     &err),
		XR_OK, "%s", err.text);
	xr_world_free(world);
}

/* --- threads that are in the agent ----------------------------------------------------- */

static sem_t has_read, has_closed;

static void *
read_group(void *arg)
{
	struct xr_value *v = value_of(&PARTS("a", "a/1", "w"));
	struct xr_group *group = NULL;

	(void)arg;
	cr_expect_eq(xr_group_of_value(v, &group, NULL), XR_OK);
	xr_value_unref(v);
	xr_group_free(group);
	sem_post(&has_read);
	sem_wait(&has_closed);
	return NULL;
}

/* xr_world_close() waits for the threads that are in it. */
Test(guild, a_thread_that_has_read_a_group_has_left_the_agent)
{
	struct xr_world *world = new_world();
	pthread_t thread;

	sem_init(&has_read, 0, 0);
	sem_init(&has_closed, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, read_group, NULL), 0);
	sem_wait(&has_read);
	cr_expect_eq(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			     &err),
		XR_OK, "%s", err.text);
	xr_world_free(world);
	sem_post(&has_closed);
	pthread_join(thread, NULL);
}
