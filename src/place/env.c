/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - who wins: inherited, scrubbed, rows, platform, --env. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "place/env_inner.h"
#include "place/environ.h"

static const struct env_scrub twice = { "*",
	"a second one of that name; getenv() finds the first", false };

/* The cell of @name: its entry + 1, or 0 where it would go. */
static uint32_t *
cell_of(struct env *env, struct span name)
{
	static const struct hash_seed seed; /* they are the user's own names */
	uint32_t at = (uint32_t)hash_bytes(&seed, name.at, name.len) &
		env->index_mask;

	while (env->index[at] != 0) {
		const struct entry *e = &env->entries[env->index[at] - 1];

		if (e->name_len == name.len &&
			memcmp(e->text, name.at, name.len) == 0)
			break;
		at = (at + 1) & env->index_mask;
	}
	return &env->index[at];
}

/* The entry of @name, or NULL. */
static struct entry *
find(struct env *env, const char *name)
{
	struct span all = span_of(name);
	uint32_t *cell = cell_of(env, all);

	return *cell == 0 ? NULL : &env->entries[*cell - 1];
}

static const char *
value_of(const struct entry *e)
{
	const char *value = e->text + e->name_len;

	return *value == '=' ? value + 1 : value;
}

static void
entry_fini(struct env *env, struct entry *e)
{
	if (e->owned)
		free(e->text);
	for (uint32_t i = 0; e->by_deal && i < env->facts.plan->deal_count; i++)
		free(e->by_deal[i]);
	free(e->by_deal);
}

/* Takes @e; an entry of the same name is replaced where it stands. */
static void
put(struct env *env, struct entry e)
{
	struct span name = { .at = e.text, .len = e.name_len };
	uint32_t *cell = cell_of(env, name);
	struct entry *old = NULL;

	if (*cell == 0) {
		env->entries[env->count++] = e;
		*cell = env->count;
		return;
	}
	old = &env->entries[*cell - 1];
	e.hides = old->hides;
	if (old->origin == ENV_INHERITED)
		e.hides = value_of(old);
	entry_fini(env, old);
	*old = e;
}

static void
remove_one(struct env *env, struct span name, const struct env_scrub *rule)
{
	const char *value = name.at + name.len;

	env->removed[env->removed_count++] = (struct env_removed){
		.name = name,
		.value = *value == '=' ? value + 1 : value,
		.rule = rule,
	};
}

static const struct env_scrub *
scrub_rule(const struct env *env, struct span name, bool inner)
{
	const struct env_facts *facts = &env->facts;

	if (name.len > 5 && memcmp(name.at, "XRUN_", 5) == 0 &&
		facts->is_option != NULL &&
		facts->is_option(facts->is_option_arg, name))
		return &env_scrub_option;
	return env_scrub_find(name, inner);
}

static bool
passes(const struct env_facts *facts, struct span name)
{
	if (facts->pass_count == 0 || env_basic(name))
		return true;
	for (size_t i = 0; i < facts->pass_count; i++) {
		struct span rest = span_of(facts->pass[i]);

		while (rest.at != NULL)
			if (span_fits(span_next(&rest, ','), name))
				return true;
	}
	return false;
}

static void
inherit(struct env *env)
{
	char *const *vars = env->facts.inherited;
	bool inner = environ_get(vars, "XRT_MULTI_PROCESSING_DEVICE") != NULL;

	for (; vars != NULL && *vars != NULL; vars++) {
		struct span name = environ_name(*vars);
		const struct env_scrub *rule = scrub_rule(env, name, inner);
		struct entry e = {
			.kind = ENTRY_FIXED,
			.name_len = (uint32_t)name.len,
			.text = *vars,
		};

		if (rule == NULL && !passes(&env->facts, name))
			rule = &env_scrub_pass;
		if (rule == NULL && *cell_of(env, name) != 0)
			rule = &twice;
		if (rule != NULL)
			remove_one(env, name, rule);
		else
			put(env, e);
	}
}

static bool
row_counts(struct env *env, const struct env_row *row)
{
	const struct entry *old = find(env, row->name);

	if ((env->facts.profiles & 1u << row->profile) == 0)
		return false;
	switch (row->when) {
	case ENV_ALWAYS:
		return true;
	case ENV_UNSET:
		return old == NULL;
	case ENV_EMPTY:
		return old == NULL || *value_of(old) == '\0';
	case ENV_CROWD:
		return old == NULL && env->facts.plan->local_size > 1;
	case ENV_LINES:
		return old == NULL && !env->facts.full_buffers;
	}
	return false;
}

static void
put_rows(struct env *env)
{
	for (const struct env_row *row = env_rows; row->name != NULL; row++) {
		bool per_rank = false;
		struct entry e = {
			.origin = row->profile,
			.name_len = (uint32_t)strlen(row->name),
			.owned = true,
			.row = row,
		};

		if (!row_counts(env, row))
			continue;
		e.text = env_row_text(env, row, &per_rank);
		e.kind = per_rank ? ENTRY_ROW : ENTRY_FIXED;
		if (e.text != NULL)
			put(env, e);
	}
}

/* The platform's entry for @name, made if need be. */
static struct entry *
given_entry(struct env *env, const char *name)
{
	struct entry *e = find(env, name);

	if (e != NULL && e->origin == ENV_PLATFORM)
		return e;
	put(env,
		(struct entry){
			.kind = ENTRY_DEAL,
			.origin = ENV_PLATFORM,
			.name_len = (uint32_t)strlen(name),
			.owned = true,
			.text = xasprintf("%s=", name),
			.by_deal = xcalloc(env->facts.plan->deal_count,
				sizeof(char *)),
		});
	return find(env, name);
}

static void
put_given(struct env *env)
{
	const struct env_given *given = env->facts.given;
	uint32_t deals = given == NULL ? 0 : env->facts.plan->deal_count;

	for (uint32_t deal = 0; deal < deals; deal++) {
		for (uint32_t i = 0; i < given[deal].count; i++) {
			const struct env_var *var = &given[deal].vars[i];
			struct entry *e = given_entry(env, var->name);

			free(e->by_deal[deal]);
			e->by_deal[deal] =
				xasprintf("%s=%s", var->name, var->value);
		}
	}
}

enum xr_status
env_check(const char *text, struct xr_error *err)
{
	struct span all = span_of(text), name = environ_name(text);

	if (text[name.len] != '=')
		return fail(err, XR_E_INVAL,
			"'%.*s' is not NAME=VALUE\t--env %.*s=VALUE",
			QUOTED(all), QUOTED(all));
	if (name.len == 0)
		return fail(err, XR_E_INVAL, "'%.*s' has no name", QUOTED(all));
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.at[i] <= ' ' || name.at[i] == 127)
			return fail(err, XR_E_INVAL,
				"'%.*s' is no name of a variable",
				QUOTED(name));
	if (env_identity(name))
		return fail(err, XR_E_INVAL,
			"%.*s is what xrun tells its ranks and cannot be set",
			QUOTED(name));
	return XR_OK;
}

static enum xr_status
put_user(struct env *env, struct xr_error *err)
{
	struct xr_error why = { 0 };

	for (size_t i = 0; i < env->facts.user_count; i++) {
		const char *text = env->facts.user[i];
		struct span name = environ_name(text);
		enum xr_status status = env_check(text, &why);

		if (status != XR_OK)
			return fail(err, status, "--env: %s", why.text);
		put(env,
			(struct entry){
				.kind = ENTRY_FIXED,
				.origin = ENV_OPTION,
				.name_len = (uint32_t)name.len,
				.text = (char *)text,
			});
	}
	return XR_OK;
}

/* Returns true if @value is an item of the list @list, which ':' separates. */
static bool
list_has(const char *list, const char *value)
{
	size_t len = strlen(value), n;

	for (; *list != '\0'; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		if (n == len && memcmp(list, value, len) == 0)
			return true;
	}
	return false;
}

/* Appends @value to the list that the user has in the variable, once. */
static void
append_to(struct env *env, const char *name, const char *value)
{
	struct entry *old = find(env, name);
	const char *before = old == NULL ? "" : value_of(old);

	if (list_has(before, value))
		return;
	put(env,
		(struct entry){
			.kind = ENTRY_FIXED,
			.origin = ENV_XRUN,
			.name_len = strlen(name),
			.owned = true,
			.text = xasprintf("%s=%s%s%s", name, before,
				*before == '\0' ? "" : ":", value),
		});
}

/* The agent behind the user's own libraries. A program built with the address
 * sanitizer that a rank runs in turn (a shell script, say) would refuse to
 * start behind it; the program of the rank itself gets no agent then. */
static void
put_preload(struct env *env)
{
	if (env->facts.preload == NULL)
		return;
	append_to(env, "LD_PRELOAD", env->facts.preload);
	append_to(env, "ASAN_OPTIONS", "verify_asan_link_order=0");
}

/* The folder of the Python module, after the user's own folders. A rank of any
 * interpreter can import it without an installation. */
static void
put_python(struct env *env)
{
	if (env->facts.python != NULL &&
		(env->facts.profiles & (1u << ENV_XRUN)) != 0)
		append_to(env, "PYTHONPATH", env->facts.python);
}

/* Room for every entry there can be, and an index at most half full. */
static void
make_room(struct env *env)
{
	uint32_t inherited = 0, room = 3, size = 64;

	for (char *const *v = env->facts.inherited; v != NULL && *v; v++)
		inherited++;
	room += inherited + (uint32_t)env->facts.user_count;
	for (const struct env_row *row = env_rows; row->name != NULL; row++)
		room++;
	for (uint32_t i = 0; i < env->facts.plan->deal_count; i++)
		if (env->facts.given != NULL)
			room += env->facts.given[i].count;
	while (size < 2 * room)
		size *= 2;
	env->entries = xcalloc(room, sizeof(*env->entries));
	env->index = xcalloc(size, sizeof(*env->index));
	env->index_mask = size - 1;
	env->removed = xcalloc(inherited, sizeof(*env->removed));
}

enum xr_status
env_new(struct env **env, const struct env_facts *facts, struct xr_error *err)
{
	struct env *out = xcalloc(1, sizeof(*out));
	enum xr_status status = XR_OK;

	out->facts = *facts;
	if (out->facts.part.size == 0)
		out->facts.part.size = facts->plan->local_size;
	out->platform_source = xasprintf("platform %s",
		facts->platform == NULL ? "cpu" : facts->platform);
	make_room(out);
	env_fields_init(out);
	inherit(out);
	put_rows(out);
	put_given(out);
	status = put_user(out, err);
	if (status != XR_OK) {
		env_free(out);
		return status;
	}
	put_preload(out);
	put_python(out);
	env_slots_init(out);
	*env = out;
	return XR_OK;
}

void
env_free(struct env *env)
{
	if (env == NULL)
		return;
	for (uint32_t i = 0; i < env->count; i++)
		entry_fini(env, &env->entries[i]);
	free(env->entries);
	free(env->index);
	free(env->removed);
	free(env->local_worker);
	free(env->platform_source);
	free(env->slots);
	free(env->vars);
	free(env);
}

static bool
user_sets(const struct env_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->user_count; i++)
		if (span_is(environ_name(facts->user[i]), name))
			return true;
	return false;
}

struct env_needs
env_needs(const struct env_facts *facts)
{
	static const char name[] = "XRT_MESH_SERVICE_ADDRESS";
	const char *mesh = passes(facts, span_of(name)) ?
		environ_get(facts->inherited, name) :
		NULL;

	return (struct env_needs){
		.master_port = (facts->profiles & 1u << ENV_TORCH) != 0 &&
			!user_sets(facts, "MASTER_PORT"),
		.mesh_port = (facts->profiles & 1u << ENV_XRT) != 0 &&
			(mesh == NULL || *mesh == '\0'),
	};
}

void
env_each_removed(const struct env *env, env_removed_fn *fn, void *arg)
{
	for (uint32_t i = 0; i < env->removed_count; i++)
		fn(arg, &env->removed[i]);
}
