/* SPDX-License-Identifier: Apache-2.0 */
/* test_guild_call.c - calls of members, of values and of services, which the test answers
 * in the place of who holds them. */
#include "tests/unit/guild_rig.h"

TestSuite(guild_call, .timeout = 20, .init = guild_begin, .fini = guild_end);

/* request() - the value of the next request to @to, which has these @blocks of
 * references; its number. */
static struct xr_value *
request(uint32_t to, size_t blocks, uint64_t *corr, const char *func)
{
	const struct wire_message *m = wire_sent(MESSAGE_REQUEST, to);
	size_t at = blocks * sizeof(struct rref_wire);
	struct xr_value *v = NULL;
	struct xr_part part;

	cr_assert_not_null(m);
	*corr = m->record.corr;
	cr_expect_eq(m->record.method, func_hash(func, strlen(func)));
	if ((m->record.flags & MESSAGE_NAMED) != 0)
		at += (2 + m->data[0] + 7) & ~(size_t)7;
	part = (struct xr_part){ m->data + at, m->len - at };
	cr_assert_eq(xr_decode(&part, 1, NULL, &v, &err), XR_OK, "%s",
		err.text);
	return v;
}

/* Tag, key and generation stand in front. */
static void
is_errand(struct xr_value *v, const char *key, uint64_t generation,
	size_t count)
{
	const struct xr_value *args = xr_value_at(v, 0);
	uint64_t n = 0;
	size_t len;

	cr_expect_eq(xr_value_count(args), count);
	cr_expect_str_eq(xr_value_data(xr_value_at(args, 0), &len), tag);
	cr_expect_str_eq(xr_value_data(xr_value_at(args, 1), &len), key);
	xr_value_get_u64(xr_value_at(args, 2), &n);
	cr_expect_eq(n, generation);
	if (count == 4)
		cr_expect_eq(xr_value_kind(xr_value_at(args, 3)), XR_LIST);
	xr_value_unref(v);
}

static struct xr_value *
error_of(enum xr_status status)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = status,
		.text = "on purpose" };

	return xr_value_new_error(&f);
}

static struct xr_group_call
of_key(void)
{
	struct xr_group_call call = XR_GROUP_CALL;

	call.key = "k";
	call.timeout = HOUR;
	return call;
}

static struct xr_future *
ask(void)
{
	const struct xr_group_call call = of_key();
	struct xr_future *f = NULL;

	wire_forget();
	cr_assert_eq(xr_group_call_async(g, &call, &f, &err), XR_OK, "%s",
		err.text);
	return f;
}

static void
gives(struct xr_future *f, int64_t want)
{
	struct xr_value *v = NULL;
	int64_t n = 0;

	cr_expect_eq(xr_future_wait(f, XR_TIMEOUT_NEVER, &v, &err), XR_OK, "%s",
		err.text);
	xr_value_get_i64(v, &n);
	cr_expect_eq(n, want);
	xr_value_unref(v);
	xr_future_unref(f);
}

static void
fails(struct xr_future *f, enum xr_status status, const char *words)
{
	cr_expect_eq(xr_future_wait(f, XR_TIMEOUT_NEVER, NULL, &err), status);
	cr_expect_not_null(strstr(err.text, words), "%s", err.text);
	xr_future_unref(f);
}

/* --- members --------------------------------------------------------------------------- */

Test(guild_call, only_members_are_called_by_a_group)
{
	static const char *const names[] = { "self", "one" };
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *f = NULL;
	struct xr_rref *made = NULL;
	struct xr_value *v = NULL;
	struct xr_group *h = NULL;
	uint64_t corr;

	cr_assert_eq(try_group("h", names, 2, &h), XR_OK);
	call.func = "f";
	call.timeout = HOUR;
	call.to = "two";
	cr_expect_eq(xr_group_async(h, &call, &f, &err), XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text,
		"two is no member of group h, and is not called by it");
	cr_expect_eq(xr_group_remote(h, &call, &made, &err), XR_E_NOTMEMBER);
	cr_expect_eq(xr_group_sync(h, &call, &v, &err), XR_E_NOTMEMBER);
	call.to = NULL;
	call.id = 2;
	cr_expect_eq(xr_group_async(h, &call, &f, &err), XR_E_NOTMEMBER);
	cr_expect_str_eq(err.text,
		"two is no member of group h, and is not called by it");
	call.id = 9;
	cr_expect_eq(xr_group_async(h, &call, &f, &err), XR_E_NOTFOUND);
	cr_expect_eq(wire_left(), 0);
	cr_expect(f == NULL && made == NULL && v == NULL);
	call.id = 1;
	cr_expect_eq(xr_group_async(h, &call, &f, &err), XR_OK);
	xr_value_unref(request(1, 0, &corr, "f"));
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_i64(7));
	gives(f, 7);
	call.to = "one";
	cr_expect_eq(xr_group_remote(h, &call, &made, &err), XR_OK);
	xr_value_unref(request(1, 2, &corr, "f"));
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_nil());
	xr_rref_unref(made);
	xr_group_close(h);
	cr_expect_eq(xr_group_async(h, &call, &f, &err), XR_E_CLOSED);
	xr_group_free(h);
}

/* --- services --------------------------------------------------------------------------- */

Test(guild_call, a_service_is_called_where_the_store_has_it)
{
	struct xr_value *arg = xr_value_new_i64(3), *v, *named;
	struct xr_group_call call = of_key();
	struct xr_future *f = NULL;
	uint64_t corr;

	put_holder(GUILD_SERVICE, "k", 1, 5);
	f = ask();
	is_errand(request(1, 0, &corr, GUILD_FUNC_CALL), "k", 5, 4);
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_i64(42));
	gives(f, 42);
	/* Where it was is remembered. */
	put_holder(GUILD_SERVICE, "k", 2, 6);
	call.args = xr_value_new_list_of(&arg, 1);
	call.named = named = xr_value_new_dict();
	wire_forget();
	cr_assert_eq(xr_group_call_async(g, &call, &f, &err), XR_OK);
	v = request(1, 0, &corr, GUILD_FUNC_CALL);
	cr_expect(xr_value_equal(xr_value_at(xr_value_at(v, 0), 3), call.args));
	cr_expect(xr_value_equal(xr_value_at(v, 1), named));
	is_errand(v, "k", 5, 4);
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_i64(43));
	gives(f, 43);
	xr_value_unref(call.args);
	xr_value_unref(named);
}

/* It has called nothing: another may have it by now. */
Test(guild_call, a_service_that_was_known_is_looked_up_once_more)
{
	struct xr_future *f;
	uint64_t corr;

	put_holder(GUILD_SERVICE, "k", 1, 5);
	f = ask();
	xr_value_unref(request(1, 0, &corr, GUILD_FUNC_CALL));
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_i64(42));
	gives(f, 42);
	put_holder(GUILD_SERVICE, "k", 2, 6);
	f = ask();
	xr_value_unref(request(1, 0, &corr, GUILD_FUNC_CALL));
	wire_reply(1, MESSAGE_ERROR, corr, error_of(XR_E_NOTFOUND));
	wire_await(2);
	is_errand(request(2, 0, &corr, GUILD_FUNC_CALL), "k", 6, 4);
	/* But once: nobody has it now. */
	wire_reply(2, MESSAGE_ERROR, corr, error_of(XR_E_NOTFOUND));
	fails(f, XR_E_NOTFOUND, "on purpose");
	cr_expect_str_eq(entry(GUILD_SERVICE, "k"), "");
}

Test(guild_call, a_service_that_is_nowhere_is_not_found)
{
	const struct xr_group_call call = of_key();
	struct xr_future *f = NULL;
	struct xr_value *v = NULL;
	struct xr_rref *made = NULL;
	uint64_t corr;

	cr_expect_eq(xr_group_call_async(g, &call, &f, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "nobody in group g has registered 'k'");
	cr_expect_eq(xr_group_call_sync(g, &call, &v, &err), XR_E_NOTFOUND);
	cr_expect_eq(xr_group_call_remote(g, &call, &made, &err),
		XR_E_NOTFOUND);
	cr_expect(f == NULL && v == NULL && made == NULL);
	/* One that was just looked up is not looked up again. */
	put_holder(GUILD_SERVICE, "k", 1, 5);
	f = ask();
	xr_value_unref(request(1, 0, &corr, GUILD_FUNC_CALL));
	wire_reply(1, MESSAGE_ERROR, corr, error_of(XR_E_NOTFOUND));
	fails(f, XR_E_NOTFOUND, "on purpose");
	cr_expect_str_eq(entry(GUILD_SERVICE, "k"), "");
	cr_expect(LIST_EMPTY(&g->known));
}

Test(guild_call, other_failures_are_the_callers)
{
	struct xr_future *f;
	uint64_t corr;

	put_holder(GUILD_SERVICE, "k", 1, 5);
	f = ask();
	xr_value_unref(request(1, 0, &corr, GUILD_FUNC_CALL));
	wire_reply(1, MESSAGE_ERROR, corr, error_of(XR_E_REMOTE));
	fails(f, XR_E_REMOTE, "on purpose");
	cr_expect_str_eq(entry(GUILD_SERVICE, "k"), "1 71 5");
	cr_expect_not(LIST_EMPTY(&g->known));
	/* With the peer goes what was known of it. */
	f = ask();
	agent_lose(wire_peer[1], "on purpose");
	fails(f, XR_E_PEER_LOST, "one");
	cr_expect(LIST_EMPTY(&g->known));
	cr_expect_str_eq(entry(GUILD_SERVICE, "k"), "1 71 5");
}

/* A group that is closed meanwhile asks nobody else. */
Test(guild_call, a_group_that_is_closed_looks_up_nothing)
{
	struct xr_future *f;
	uint64_t corr;

	put_holder(GUILD_SERVICE, "k", 1, 5);
	f = ask();
	xr_value_unref(request(1, 0, &corr, GUILD_FUNC_CALL));
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_i64(42));
	gives(f, 42);
	f = ask();
	xr_value_unref(request(1, 0, &corr, GUILD_FUNC_CALL));
	xr_group_close(g);
	put_holder(GUILD_SERVICE, "k", 2, 6);
	wire_reply(1, MESSAGE_ERROR, corr, error_of(XR_E_NOTFOUND));
	fails(f, XR_E_NOTFOUND, "on purpose");
	cr_expect_null(wire_sent(MESSAGE_REQUEST, 2));
}

/* --- who waits ------------------------------------------------------------------------------ */

/* What the holders answer, one after the other; a status is an error. */
static struct script {
	uint32_t from;
	enum xr_status status;
} script[2];
static unsigned steps;

static void *
answer(void *unused)
{
	const struct wire_message *m;

	(void)unused;
	for (unsigned i = 0; i < steps; i++) {
		wire_await(i + 1);
		m = wire_sent(MESSAGE_REQUEST, script[i].from);
		cr_assert_not_null(m);
		if (script[i].status == XR_OK)
			wire_reply(script[i].from, MESSAGE_REPLY,
				m->record.corr, xr_value_new_i64(42));
		else
			wire_reply(script[i].from, MESSAGE_ERROR,
				m->record.corr, error_of(script[i].status));
	}
	return NULL;
}

static enum xr_status
ask_and_wait(struct xr_value **v)
{
	const struct xr_group_call call = of_key();
	enum xr_status status;
	pthread_t thread;

	wire_forget();
	cr_assert_eq(pthread_create(&thread, NULL, answer, NULL), 0);
	status = xr_group_call_sync(g, &call, v, &err);
	pthread_join(thread, NULL);
	return status;
}

Test(guild_call, who_waits_is_told_which_key_failed)
{
	struct xr_value *v = NULL;

	put_holder(GUILD_SERVICE, "k", 1, 5);
	script[0] = (struct script){ 1, XR_OK };
	steps = 1;
	cr_expect_eq(ask_and_wait(&v), XR_OK);
	cr_expect_eq(xr_value_kind(v), XR_I64);
	xr_value_unref(v);
	cr_expect_eq(ask_and_wait(NULL), XR_OK);
	script[0] = (struct script){ 1, XR_E_REMOTE };
	cr_expect_eq(ask_and_wait(&v), XR_E_REMOTE);
	cr_expect_str_eq(err.text, "'k' of group g: on purpose");
	/* It was known: another has it by now. */
	put_holder(GUILD_SERVICE, "k", 2, 6);
	script[0] = (struct script){ 1, XR_E_NOTFOUND };
	script[1] = (struct script){ 2, XR_OK };
	steps = 2;
	v = NULL;
	cr_expect_eq(ask_and_wait(&v), XR_OK);
	cr_expect_not_null(v);
	xr_value_unref(v);
	/* And nobody the next time. */
	script[0] = (struct script){ 2, XR_E_NOTFOUND };
	steps = 1;
	cr_expect_eq(ask_and_wait(&v), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "nobody in group g has registered 'k'");
	cr_expect_str_eq(entry(GUILD_SERVICE, "k"), "");
}

/* --- references -------------------------------------------------------------------------------- */

Test(guild_call, a_value_is_referred_to_where_it_is)
{
	struct xr_rref *made = NULL;
	uint64_t corr;

	cr_expect_eq(xr_group_get_paired(g, "k", &made, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "nobody in group g has paired 'k'");
	put_holder(GUILD_VALUE, "k", 1, 5);
	wire_forget();
	cr_assert_eq(xr_group_get_paired(g, "k", &made, &err), XR_OK);
	is_errand(request(1, 2, &corr, GUILD_FUNC_VALUE), "k", 5, 3);
	wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_nil());
	xr_rref_unref(made);
	cr_expect(LIST_EMPTY(&g->known));
}

Test(guild_call, a_remote_call_of_a_service_is_looked_up_each_time)
{
	const struct xr_group_call call = of_key();
	const struct guild_known *known;
	struct xr_rref *made = NULL;
	uint64_t corr;

	for (uint32_t to = 1; to <= 2; to++) {
		put_holder(GUILD_SERVICE, "k", to, 5 + to);
		wire_forget();
		cr_assert_eq(xr_group_call_remote(g, &call, &made, &err),
			XR_OK);
		is_errand(request(to, 2, &corr, GUILD_FUNC_CALL), "k", 5 + to,
			4);
		wire_reply(to, MESSAGE_REPLY, corr, xr_value_new_nil());
		xr_rref_unref(made);
	}
	/* What was found last is remembered. */
	known = LIST_FIRST(&g->known);
	cr_assert_not_null(known);
	cr_expect_str_eq(known->key, "k");
	cr_expect_eq(known->place.id, 2);
	cr_expect_eq(known->place.generation, 7);
	cr_expect_null(LIST_NEXT(known, list));
}
