/* SPDX-License-Identifier: Apache-2.0 */
/* test_guild_wire.c - how a group comes together, and who holds its keys. */
#include "tests/unit/guild_rig.h"

TestSuite(guild_wire, .timeout = 60, .init = guild_begin, .fini = guild_end);

/* --- coming together ---------------------------------------------------------------- */

Test(guild_wire, a_group_of_all_is_sorted_and_has_the_number_of_the_first)
{
	const char *names[4] = { NULL };

	cr_expect_str_eq(xr_group_name(g), "g");
	cr_expect_eq(xr_group_size(g), 4);
	cr_expect_eq(xr_group_members(g, names, 3), 4);
	cr_expect_str_eq(names[0], "one");
	cr_expect_str_eq(names[1], "self");
	cr_expect_str_eq(names[2], "three");
	cr_expect_null(names[3]);
	cr_expect_str_eq(tag, "g/47-abc"); /* 71: the incarnation of one */
	cr_expect_eq(g->timeout, WORLD_TIMEOUT);
	cr_expect_eq(g->world, WIRE_PEER_AGE);
	cr_expect_not(g->is_received);
	cr_expect_eq(met.count, 1);
	cr_expect_eq(met.label.what, MEET_GROUP);
	cr_expect_str_eq(met.salt, "g");
	cr_expect_null(met.label.past);
	cr_expect_str_eq(met.names, "one self three two ");
	cr_expect_eq(met.timeout, WORLD_TIMEOUT);
	cr_expect_eq(met.number, 0);
}

Test(guild_wire, each_group_brings_another_number)
{
	static const char *const two[] = { "two", "self" };
	struct xr_group *h = NULL;
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "h",
		.members = two,
		.count = 2,
		.timeout = XR_SECONDS(5) };

	first_says("self", xr_value_new_u64(1));
	cr_assert_eq(xr_group_new((struct xr_world *)&the_world, &opts, &h,
			     &err),
		XR_OK);
	cr_expect_eq(met.number, 1);
	cr_expect_eq(met.timeout, XR_SECONDS(5));
	cr_expect_eq(h->timeout, XR_SECONDS(5));
	cr_expect_str_eq(met.names, "self two ");
	cr_expect_str_eq(h->tag, "h/46-1");
	xr_group_free(h);
}

Test(guild_wire, members_are_known_and_named_once)
{
	static const char *const twice[] = { "self", "one", "one" };
	static const char *const unknown[] = { "self", "nobody" };
	static const char *const others[] = { "one", "two" };
	struct xr_group *h = NULL;

	cr_expect_eq(try_group("h", twice, 3, &h), XR_E_INVAL);
	cr_expect_str_eq(err.text, "one is a member of group h twice");
	cr_expect_eq(try_group("h", unknown, 2, &h), XR_E_NOTFOUND);
	cr_expect_eq(try_group("h", others, 2, &h), XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text, "self is no member of group h");
	cr_expect_eq(try_group("g", NULL, 0, &h), XR_E_EXISTS);
	cr_expect_str_eq(err.text, "self has a group g already");
	cr_expect_null(h);
	cr_expect_eq(met.count, 1);
	/* Of a name that is free it can be made. */
	xr_group_close(g);
	cr_expect_eq(try_group("g", NULL, 0, &h), XR_OK);
	cr_expect_eq(met.count, 2);
	xr_group_free(h);
}

Test(guild_wire, a_group_that_did_not_meet_is_none)
{
	struct xr_group *h = NULL;

	for (int i = 0; i < 2; i++) {
		met.status = XR_E_TIMEOUT;
		cr_expect_eq(try_group("h", NULL, 0, &h), XR_E_TIMEOUT);
		cr_expect_str_eq(err.text, "group h: one did not come");
	}
	met.status = XR_OK;
	first_says("self", xr_value_new_u64(1));
	cr_expect_eq(try_group("h", NULL, 0, &h), XR_E_PROTO);
	cr_expect_str_eq(err.text, "group h: one said no number");
	first_says("one", xr_value_new_nil());
	cr_expect_eq(try_group("h", NULL, 0, &h), XR_E_PROTO);
	cr_expect_null(h);
	first_says("one", xr_value_new_u64(1));
	cr_expect_eq(try_group("h", NULL, 0, &h), XR_OK);
	xr_group_free(h);
}

/* Is the agent entered as often as it was left? Then it can be closed. */
Test(guild_wire, a_group_is_of_its_world_until_it_is_closed)
{
	struct xr_group *found = guild_find(tag);
	bool is = true;

	cr_expect_eq(found, g);
	guild_unref(found);
	cr_expect_null(guild_find("g/47-abd"));
	g->world++;
	cr_expect_eq(xr_group_is_paired(g, "k", &is, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "group g is of a world that was closed");
	g->world--;
	cr_expect_eq(xr_group_is_paired(g, "k", &is, &err), XR_OK);
	cr_expect_not(is);
	xr_group_close(g);
	cr_expect_null(guild_find(tag));
	cr_expect_eq(xr_group_is_paired(g, "k", &is, &err), XR_E_CLOSED);
	cr_expect_str_eq(err.text, "group g was closed");
	xr_group_close(g);
	cr_expect_eq(atomic_load(&g->refs), 1);
}

Test(guild_wire, a_group_that_was_received_holds_nothing)
{
	struct xr_value *v = xr_group_value(g), *nil = xr_value_new_nil();
	static const char *const names[] = { "one", "two" };
	struct xr_group *h = NULL, *other;

	cr_assert_eq(xr_group_of_value(v, &h, &err), XR_OK);
	cr_expect_str_eq(h->tag, tag);
	cr_expect(h->is_received);
	cr_expect_eq(h->world, WIRE_PEER_AGE);
	cr_expect_eq(h->count, 4);
	cr_expect_eq(xr_group_pair(h, "k", nil, &err), XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text,
		"self received group g, and cannot pair by that: by the one it made");
	cr_expect_eq(xr_group_barrier(h, XR_TIMEOUT_DEFAULT, &err),
		XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text,
		"self received group g, and cannot enter a barrier by that: by the one it made");
	other = guild_alloc("o", names, 2);
	other->world = WIRE_PEER_AGE;
	cr_expect_eq(xr_group_unpair(other, "k", &err), XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text,
		"self is no member of group o, and cannot unpair");
	cr_expect_eq(xr_group_deregister(other, "k", &err), XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text,
		"self is no member of group o, and cannot deregister");
	xr_group_free(other);
	xr_group_free(h);
	xr_value_unref(nil);
	xr_value_unref(v);
}

Test(guild_wire, a_name_is_of_1_to_127_characters)
{
	char name[130];

	memset(name, 'a', sizeof(name));
	name[128] = '\0';
	cr_expect_not(guild_name_is(name));
	name[127] = '\0';
	cr_expect(guild_name_is(name));
	cr_expect(guild_name_is("azAZ09_.:-"));
	cr_expect_not(guild_name_is(""));
	cr_expect_not(guild_name_is(NULL));
	cr_expect_not(guild_name_is("a/b"));
	cr_expect_not(guild_name_is("a b"));
}

/* --- barriers --------------------------------------------------------------------------- */

Test(guild_wire, a_barrier_is_a_meeting_of_the_group)
{
	cr_expect_eq(xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err), XR_OK);
	cr_expect_eq(met.count, 2);
	cr_expect_eq(met.label.what, MEET_GROUP);
	cr_expect_str_eq(met.salt, tag);
	cr_expect_eq(met.label.past, &g->barriers);
	cr_expect_str_eq(met.names, "one self three two ");
	cr_expect_eq(met.timeout, WORLD_TIMEOUT);
	cr_expect_eq(met.number, UINT64_MAX);
	cr_expect_eq(xr_group_barrier(g, 0, &err), XR_OK);
	cr_expect_eq(met.timeout, 0);
	met.status = XR_E_TIMEOUT;
	cr_expect_eq(xr_group_barrier(g, XR_SECONDS(3), &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "a barrier of group g: one did not come");
	cr_expect_eq(met.timeout, XR_SECONDS(3));
	cr_expect_eq(xr_group_barrier(g, -7, &err), XR_E_INVAL);
	cr_expect_eq(met.count, 4);
	met.status = XR_OK;
}

/* --- who holds a key ----------------------------------------------------------------------- */

static uint64_t
generation_of(const char *key)
{
	const struct guild_held *h;

	LIST_FOREACH(h, &g->held, list)
	if (strcmp(h->key, key) == 0)
		return h->generation;
	return 0;
}

Test(guild_wire, what_this_process_holds_stands_in_the_store)
{
	struct xr_value *v = xr_value_new_i64(7);
	char want[64];
	bool is = false;

	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	snprintf(want, sizeof(want), "0 70 %" PRIu64, generation_of("k"));
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), want);
	cr_expect_str_eq(entry(GUILD_SERVICE, "k"), "-");
	cr_expect_eq(xr_group_is_paired(g, "k", &is, &err), XR_OK);
	cr_expect(is);
	cr_expect_eq(xr_group_is_registered(g, "k", &is, &err), XR_OK);
	cr_expect_not(is);
	cr_expect_eq(xr_group_pair(g, "k", v, &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text, "key 'k' of group g is held by self");
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), want);
	cr_expect_eq(xr_group_deregister(g, "k", &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "self does not hold key 'k' of group g");
	cr_expect_eq(xr_group_unpair(g, "k", &err), XR_OK);
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "-");
	cr_expect_eq(xr_group_unpair(g, "k", &err), XR_E_NOTFOUND);
	/* With the group all is given up. */
	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	cr_assert_eq(xr_group_pair(g, "l", v, &err), XR_OK);
	xr_group_close(g);
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "-");
	cr_expect_str_eq(entry(GUILD_VALUE, "l"), "-");
	cr_expect(LIST_EMPTY(&g->held));
	xr_value_unref(v);
}

Test(guild_wire, each_holding_has_a_generation_of_its_own)
{
	struct xr_value *v = xr_value_new_i64(7);
	uint64_t first;

	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	first = generation_of("k");
	cr_expect_gt(first, 0);
	cr_assert_eq(xr_group_pair(g, "l", v, &err), XR_OK);
	cr_expect_eq(generation_of("l"), first + 1);
	cr_assert_eq(xr_group_unpair(g, "k", &err), XR_OK);
	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	cr_expect_eq(generation_of("k"), first + 2);
	xr_value_unref(v);
}

/* There is no agent any more. */
Test(guild_wire, a_group_may_be_closed_after_its_world)
{
	struct xr_value *v = xr_value_new_i64(7);

	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	wire_end();
	xr_group_close(g);
	cr_expect(LIST_EMPTY(&g->held));
	cr_expect_null(guild_find(tag));
	xr_value_unref(v);
	wire_begin();
}

/* By then the store may be another one. */
Test(guild_wire, a_group_of_another_world_leaves_the_store_alone)
{
	struct xr_value *v = xr_value_new_i64(7);
	char want[64];

	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	snprintf(want, sizeof(want), "0 70 %" PRIu64, generation_of("k"));
	g->world++;
	xr_group_close(g);
	cr_expect(LIST_EMPTY(&g->held));
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), want);
	cr_expect_null(guild_find(tag));
	xr_value_unref(v);
}

Test(guild_wire, what_another_holds_cannot_be_taken_while_it_is_there)
{
	static const char *const free_ones[] = { "1 70 5", "9 79 5", "junk",
		"1 71", "", "0 70 999" };
	struct xr_value *v = xr_value_new_i64(7);
	char long_one[70];

	put_holder(GUILD_VALUE, "k", 1, 5);
	cr_expect_eq(xr_group_pair(g, "k", v, &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text, "key 'k' of group g is held by one");
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "1 71 5");
	cr_expect(LIST_EMPTY(&g->held));
	/* Of another life, of nobody, of none, and of a time that is over. */
	for (size_t i = 0; i < 6; i++) {
		put_entry(GUILD_VALUE, "k", free_ones[i]);
		cr_expect_eq(xr_group_pair(g, "k", v, &err), XR_OK, "%s: %s",
			free_ones[i], err.text);
		cr_expect_eq(xr_group_unpair(g, "k", &err), XR_OK);
	}
	memset(long_one, 'x', sizeof(long_one));
	long_one[64] = '\0';
	put_entry(GUILD_VALUE, "k", long_one);
	cr_expect_eq(xr_group_pair(g, "k", v, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text,
		"key xr.group/g/47-abc/v/k of the store is not ours");
	cr_expect(LIST_EMPTY(&g->held));
	long_one[63] = '\0';
	put_entry(GUILD_VALUE, "k", long_one);
	cr_expect_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	put_holder(GUILD_VALUE, "lost", 2, 5);
	agent_lose(wire_peer[2], "on purpose");
	cr_expect_eq(xr_group_pair(g, "lost", v, &err), XR_OK);
	xr_value_unref(v);
}

Test(guild_wire, who_is_not_there_any_more_is_struck_off)
{
	struct guild_place p = { 0 };

	put_holder(GUILD_VALUE, "k", 1, 5);
	cr_expect_eq(guild_look_up(g, GUILD_VALUE, "k", &p, &err), XR_OK);
	cr_expect_eq(p.id, 1);
	cr_expect_eq(p.incarnation, 71);
	cr_expect_eq(p.generation, 5);
	cr_expect_eq(guild_look_up(g, GUILD_SERVICE, "k", &p, &err),
		XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "nobody in group g has registered 'k'");
	put_entry(GUILD_VALUE, "k", "1 70 5");
	cr_expect_eq(guild_look_up(g, GUILD_VALUE, "k", &p, &err),
		XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "nobody in group g has paired 'k'");
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "");
	/* What says no place stays. */
	put_entry(GUILD_VALUE, "k", "1 71");
	cr_expect_eq(guild_look_up(g, GUILD_VALUE, "k", &p, &err),
		XR_E_NOTFOUND);
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "1 71");
	/* Only what was read is struck off. */
	put_holder(GUILD_VALUE, "k", 1, 6);
	p = (struct guild_place){ 1, 71, 5 };
	guild_strike(g, GUILD_VALUE, "k", &p);
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "1 71 6");
	p.generation = 6;
	guild_strike(g, GUILD_VALUE, "k", &p);
	cr_expect_str_eq(entry(GUILD_VALUE, "k"), "");
	xr_store_close(group.store);
	cr_expect_eq(guild_look_up(g, GUILD_VALUE, "k", &p, &err), XR_E_CLOSED);
}

/* --- what others ask ---------------------------------------------------------------------------- */

static void
ask_self(const char *func, const char *of, const char *key, uint64_t generation,
	struct xr_value *args)
{
	struct xr_value *items[4] = { xr_value_new_text(of, strlen(of)),
		xr_value_new_text(key, strlen(key)),
		xr_value_new_u64(generation), args };
	struct xr_value *call[3];
	uint8_t data[WIRE_BODY];
	struct xr_record record = { .kind = MESSAGE_REQUEST,
		.flags = MESSAGE_VALUE,
		.method = func_hash(func, strlen(func)),
		.corr = 5 };

	wire_forget();
	call[0] = xr_value_new_list_of(items, args != NULL ? 4 : 3);
	call[1] = xr_value_new_nil();
	call[2] = xr_value_new_nil();
	wire_deliver(1, &record, data,
		wire_encode(xr_value_new_list_of(call, 3), data, sizeof(data)));
	wire_await(1);
}

static struct xr_value *
text_list(const char *text)
{
	struct xr_value *v = xr_value_new_text(text, strlen(text));

	return xr_value_new_list_of(&v, 1);
}

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	cr_expect_eq(ctx, &the_world);
	cr_expect_str_eq(xr_call_func(call), GUILD_FUNC_CALL);
	return xr_reply(call, xr_value_ref(args));
}

Test(guild_wire, a_member_is_given_what_is_held_here)
{
	struct xr_value *v = xr_value_new_i64(7), *answer;
	int64_t n = 0;

	cr_assert_eq(xr_group_pair(g, "k", v, &err), XR_OK);
	ask_self(GUILD_FUNC_VALUE, tag, "k", generation_of("k"), NULL);
	answer = wire_answer(1, 5);
	xr_value_get_i64(answer, &n);
	cr_expect_eq(n, 7);
	xr_value_unref(answer);
	/* It is another's by now. */
	ask_self(GUILD_FUNC_VALUE, tag, "k", generation_of("k") + 1, NULL);
	cr_expect(wire_failed(1, 5, XR_E_NOTFOUND,
		"self has no key 'k' of group g any more"));
	ask_self(GUILD_FUNC_CALL, tag, "k", generation_of("k"),
		xr_value_new_list());
	cr_expect(wire_failed(1, 5, XR_E_NOTFOUND,
		"self has no key 'k' of group g any more"));
	ask_self(GUILD_FUNC_VALUE, "h/1", "k", generation_of("k"), NULL);
	cr_expect(wire_failed(1, 5, XR_E_NOTFOUND,
		"self has no key 'k' of group h any more"));
	xr_value_unref(v);
}

Test(guild_wire, a_member_calls_a_service_here)
{
	const struct xr_group_service s = { .size = sizeof(s),
		.key = "k",
		.fn = echo,
		.ctx = &the_world };
	struct xr_value *answer;
	size_t len;

	cr_assert_eq(xr_group_register(g, &s, &err), XR_OK);
	ask_self(GUILD_FUNC_CALL, tag, "k", generation_of("k"),
		text_list("hello"));
	answer = wire_answer(1, 5);
	cr_expect_eq(xr_value_count(answer), 1);
	cr_expect_str_eq(xr_value_data(xr_value_at(answer, 0), &len), "hello");
	xr_value_unref(answer);
}
