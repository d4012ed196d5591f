/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_refuse.c - arguments that calls, meetings and names of members do not take. */
#include <xrun/call.h>
#include <xrun/rref.h>

#include "tests/unit/agent_rig.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/gather.h"

TestSuite(rpc_refuse, .timeout = 60);

static struct xr_error err;

/* What is called is looked at once. */
#define REFUSED(call, status, words) \
	do { \
		err = (struct xr_error){ 0 }; \
		cr_expect_eq(call, status); \
		cr_expect_str_eq(err.text, words); \
	} while (0)

#define NEGATIVE "timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT"
#define NAME     "a function's name is 1 to 255 bytes"

/* Answers what it was called with. */
static enum xr_status
give_back(struct xr_call *call, const void *args, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, args, len);
}

static const struct xr_func functions[] = {
	FUNC("add_one", "i", add_one, 0),
	{ .size = sizeof(functions[0]), .name = "give_back", .raw = give_back },
};

static void
start(void)
{
	offer(functions, 2);
	join(1);
}

/* --- calls with bytes ------------------------------------------------------------- */

#define NEEDS "a call needs its size, a peer and a method"

static void
refuse_raw(const struct xr_raw_call *call, const char *words)
{
	struct xr_raw_reply reply = { 0 };
	struct xr_future *future = NULL;

	REFUSED(xr_call_sync(call, &reply, &err), XR_E_INVAL, words);
	REFUSED(xr_call_async(call, &future, &err), XR_E_INVAL, words);
	REFUSED(xr_call_oneway(call, &err), XR_E_INVAL, words);
	cr_expect_null(future);
	cr_expect(reply.data == NULL && reply.own == NULL);
}

Test(rpc_refuse, a_call_with_bytes_has_a_size_a_peer_a_method_and_bytes)
{
	struct xr_raw_call good = { .size = sizeof(good), .timeout = 0 }, call;
	struct xr_raw_reply reply = { 0 };

	start();
	cr_assert_eq(xr_peer_find("self", 0, &good.to, &err), XR_OK);
	cr_assert_eq(xr_method_find("give_back", &good.method, &err), XR_OK);
	refuse_raw(NULL, NEEDS);
	call = good;
	call.size--;
	refuse_raw(&call, NEEDS);
	call = good;
	call.to = NULL;
	refuse_raw(&call, NEEDS);
	call = good;
	call.method = NULL;
	refuse_raw(&call, NEEDS);
	call = good;
	call.len = 1;
	refuse_raw(&call, NEEDS);
	call = good;
	call.timeout = -2;
	refuse_raw(&call, NEGATIVE);
	call = good;
	call.size++;
	for (size_t len = 0; len <= 1; len++) {
		call.data = len > 0 ? "x" : NULL;
		call.len = len;
		cr_assert_eq(xr_call_sync(&call, &reply, &err), XR_OK, "%s",
			err.text);
		cr_expect_eq(reply.len, len);
		xr_raw_reply_free(&reply);
		xr_raw_reply_free(&reply);
		xr_raw_reply_free(NULL);
	}
	leave();
}

Test(rpc_refuse, a_method_has_a_name_of_1_to_255_bytes)
{
	struct xr_method_ref *method = NULL, *again = NULL;
	char name[257];

	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	REFUSED(xr_method_find(NULL, &method, &err), XR_E_INVAL, NAME);
	REFUSED(xr_method_find("", &method, &err), XR_E_INVAL, NAME);
	REFUSED(xr_method_find(name, &method, &err), XR_E_INVAL, NAME);
	cr_expect_null(method);
	name[255] = '\0';
	cr_expect_eq(xr_method_find(name, &method, &err), XR_OK);
	cr_expect_eq(xr_method_find(name, &again, &err), XR_OK);
	cr_expect_eq(method, again);
	cr_expect_eq(xr_method_find("n", &again, &err), XR_OK);
	cr_expect(again != NULL && again != method);
}

/* --- members ---------------------------------------------------------------------- */

Test(rpc_refuse, a_peer_has_a_name_or_a_number_that_is_known)
{
	const struct {
		int64_t id;
		const char *words;
	} row[] = {
		{ -1, "self (0) knows no worker -1" },
		{ 1, "self (0) knows no worker 1" },
		{ XR_WORKER_ID_MAX, "self (0) knows no worker 32767" },
		{ XR_WORKER_ID_MAX + 1, "self (0) knows no worker 32768" },
		{ INT64_C(1) << 32, "self (0) knows no worker 4294967296" },
	};
	struct xr_worker w = { .size = sizeof(w) };
	struct xr_peer *peer = NULL, *named = NULL;

	start();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		REFUSED(xr_peer_find(NULL, row[i].id, &peer, &err),
			XR_E_NOTFOUND, row[i].words);
		REFUSED(xr_worker_find_id(row[i].id, &w, &err), XR_E_NOTFOUND,
			row[i].words);
	}
	REFUSED(xr_peer_find("", 0, &peer, &err), XR_E_NOTFOUND,
		"self (0) knows no worker ''");
	REFUSED(xr_worker_find("x", &w, &err), XR_E_NOTFOUND,
		"self (0) knows no worker x");
	cr_expect_null(peer);
	cr_expect_eq(xr_peer_find(NULL, 0, &peer, &err), XR_OK);
	cr_expect_eq(xr_peer_find("self", -1, &named, &err), XR_OK);
	cr_expect(peer != NULL && peer == named);
	leave();
}

#define WORKER "struct xr_worker: its size"

Test(rpc_refuse, a_worker_that_is_asked_for_has_its_size)
{
	struct xr_worker w = { .size = sizeof(w) - 1, .id = 7 };
	size_t count = 0;

	start();
	REFUSED(xr_worker_self(NULL, &err), XR_E_INVAL, WORKER);
	REFUSED(xr_worker_self(&w, &err), XR_E_INVAL, WORKER);
	REFUSED(xr_worker_find("self", &w, &err), XR_E_INVAL, WORKER);
	REFUSED(xr_worker_find_id(0, &w, &err), XR_E_INVAL, WORKER);
	REFUSED(xr_worker_find(NULL, &w, &err), XR_E_INVAL, "no name");
	cr_expect_eq(w.id, 7);
	w.size = sizeof(w) + 1;
	cr_expect_eq(xr_worker_self(&w, &err), XR_OK);
	cr_expect_eq(w.id, 0);
	cr_expect_str_eq(w.name, "self");
	w.id = 7;
	cr_expect_eq(xr_worker_list(&w, 0, &count, &err), XR_OK);
	cr_expect_eq(count, 1);
	cr_expect_eq(w.id, 7);
	cr_expect_eq(xr_worker_list(&w, 1, &count, &err), XR_OK);
	cr_expect_eq(w.id, 0);
	leave();
}

/* --- meetings --------------------------------------------------------------------- */

static void
refuse_meeting(const struct xr_rpc_meeting *m, enum xr_status status,
	const char *words)
{
	struct xr_value *nil = xr_value_new_nil(), *all = NULL;

	REFUSED(xr_rpc_barrier(m, &err), status, words);
	REFUSED(xr_rpc_allgather(m, nil, &all, &err), status, words);
	cr_expect_null(all);
	xr_value_unref(nil);
}

Test(rpc_refuse, a_meeting_has_its_size_and_names_members_once)
{
	const char *names[] = { "self", "self", NULL, "who" };
	struct xr_rpc_meeting good = { .size = sizeof(good),
		.names = names,
		.count = 1 },
			      m = good;
	char words[100];

	start();
	m.size--;
	snprintf(words, sizeof(words), "a meeting's size is %u, and %zu here",
		m.size, sizeof(m));
	refuse_meeting(&m, XR_E_INVAL, words);
	m = good;
	m.count = 3;
	refuse_meeting(&m, XR_E_INVAL, "name 2 of a meeting is NULL");
	m.count = 2;
	refuse_meeting(&m, XR_E_INVAL, "self is named twice");
	m.count = 0;
	refuse_meeting(&m, XR_E_INVAL, "self is not one of those who meet");
	m.names = names + 3;
	m.count = 1;
	refuse_meeting(&m, XR_E_NOTFOUND, "self (0) knows no worker who");
	m = good;
	m.timeout = -2;
	refuse_meeting(&m, XR_E_INVAL, NEGATIVE);
	m.timeout = XR_TIMEOUT_DEFAULT;
	m.size++;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_OK, "%s", err.text);
	/* Without names, how many there are does not count. */
	m.names = NULL;
	m.count = 3;
	cr_expect_eq(xr_rpc_barrier(&m, &err), XR_OK, "%s", err.text);
	cr_expect_eq(xr_rpc_barrier(NULL, &err), XR_OK, "%s", err.text);
	leave();
}

/* --- calls with values ------------------------------------------------------------ */

static void
refuse_call(const struct xr_rpc_call *call, const char *words)
{
	struct xr_value *value = NULL;
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;

	REFUSED(xr_rpc_sync(call, &value, &err), XR_E_INVAL, words);
	REFUSED(xr_rpc_async(call, &future, &err), XR_E_INVAL, words);
	REFUSED(xr_rpc_remote(call, &rref, &err), XR_E_INVAL, words);
	cr_expect(value == NULL && future == NULL && rref == NULL);
}

static struct xr_rpc_call
good_call(void)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.to = "self";
	call.func = "add_one";
	return call;
}

Test(rpc_refuse, a_call_has_its_size_and_one_function)
{
	struct xr_rpc_call call = good_call();
	struct xr_value *bound;
	char words[64], name[257];

	start();
	bound = xr_fn_bind("add_one", NULL);
	refuse_call(NULL, "struct xr_rpc_call: its size is 0");
	call.size--;
	snprintf(words, sizeof(words), "struct xr_rpc_call: its size is %u",
		call.size);
	refuse_call(&call, words);
	call = good_call();
	call.func = NULL;
	refuse_call(&call,
		"a call names its function, or has one that is bound");
	call.func = "add_one";
	call.bound = bound;
	refuse_call(&call,
		"a call names its function, or has one that is bound");
	call = good_call();
	call.func = "";
	refuse_call(&call, NAME);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	call.func = name;
	refuse_call(&call, NAME);
	call = good_call();
	call.timeout = -2;
	refuse_call(&call, NEGATIVE);
	name[255] = '\0';
	call = good_call();
	call.size++;
	call.func = name;
	cr_expect_eq(xr_rpc_sync(&call, NULL, &err), XR_E_NO_FUNCTION);
	xr_value_unref(bound);
	leave();
}

Test(rpc_refuse, what_a_call_has_is_of_the_kind_that_it_is_to_be)
{
	struct xr_value *list = INTS(41), *dict = xr_value_new_dict(),
			*value = NULL;
	struct xr_rpc_call call = good_call();

	start();
	call.flags = 2;
	refuse_call(&call, "flags 0x2 of a call");
	call.flags = UINT32_C(0x80000001);
	refuse_call(&call, "flags 0x80000001 of a call");
	call = good_call();
	call.func = NULL;
	call.bound = list;
	refuse_call(&call, "bound is of kind list, not func");
	call = good_call();
	call.args = dict;
	refuse_call(&call, "args are of kind dict, not list");
	call.args = NULL;
	call.named = list;
	refuse_call(&call, "named are of kind list, not dict");
	call = good_call();
	call.flags = XR_RPC_SHARE;
	call.args = list;
	cr_expect_eq(xr_rpc_sync(&call, &value, &err), XR_OK, "%s", err.text);
	cr_expect_eq(int_of(value), 42);
	xr_value_unref(list);
	xr_value_unref(dict);
	leave();
}

/* --- the agent -------------------------------------------------------------------- */

Test(rpc_refuse, the_end_of_an_agent_has_flags_that_are_known)
{
	int64_t timeout = 0;

	start();
	REFUSED(xr_rpc_shutdown(4, 0, &err), XR_E_INVAL,
		"flags: 0x4 has unknown ones");
	REFUSED(xr_rpc_shutdown(5, 0, &err), XR_E_INVAL,
		"flags: 0x5 has unknown ones");
	REFUSED(xr_rpc_shutdown(0, -2, &err), XR_E_INVAL, NEGATIVE);
	REFUSED(xr_rpc_set_timeout(-2, &err), XR_E_INVAL, NEGATIVE);
	cr_assert_eq(xr_rpc_set_timeout(5, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&timeout, &err), XR_OK);
	cr_expect_eq(timeout, 5);
	REFUSED(xr_rpc_wait_end(0, &err), XR_E_STATE,
		"xr_rpc_wait_begin() comes first");
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	REFUSED(xr_rpc_wait_end(-2, &err), XR_E_INVAL, NEGATIVE);
	cr_expect_eq(xr_rpc_shutdown(XR_SHUTDOWN_STRICT, XR_SECONDS(60), &err),
		XR_OK, "%s", err.text);
}

#define NO_NAME "a worker's name is 1 to 127 of A-Z a-z 0-9 - _ :, and not '"

Test(rpc_refuse, an_agent_is_not_begun_with_what_is_wrong)
{
	struct xr_rpc_opts o = { .size = sizeof(o) };

	cr_assert_eq(xr_rpc_opts_init(0, &o, &err), XR_OK);
	REFUSED(xr_rpc_init(NULL, 0, 1, &o, &err), XR_E_INVAL, NO_NAME "'");
	REFUSED(xr_rpc_init("a b", 0, 1, &o, &err), XR_E_INVAL, NO_NAME "a b'");
	REFUSED(xr_rpc_init("self", -2, 1, &o, &err), XR_E_INVAL,
		"rank -2, size 1");
	REFUSED(xr_rpc_init("self", 0, -2, &o, &err), XR_E_INVAL,
		"rank 0, size -2");
	o.rref_flags = 2;
	REFUSED(xr_rpc_init("self", 0, 1, &o, &err), XR_E_INVAL,
		"rref_flags: 0x2 has unknown ones");
	o.rref_flags = 0;
	o.backend = xr_backend_find("process_group");
	REFUSED(xr_rpc_init("self", 0, 0, &o, &err), XR_E_INVAL,
		"world_size 0: the backend process_group has no groups whose members come and go");
	o.backend = 0;
	o.size = 4;
	REFUSED(xr_rpc_init("self", 0, 1, &o, &err), XR_E_INVAL,
		"options without their size");
	o.size = sizeof(o);
	o.backend = 77;
	REFUSED(xr_rpc_init("self", 0, 1, &o, &err), XR_E_INVAL,
		"no backend has the number 77");
	start();
	REFUSED(xr_rpc_init("self", 0, 1, NULL, &err), XR_E_STATE,
		"an agent runs in this process already");
	leave();
}

static void
ignore(const char *name, int64_t value, void *ctx)
{
	(void)name;
	(void)value;
	(void)ctx;
}

Test(rpc_refuse, a_figure_has_a_name_and_a_function_that_takes_it)
{
	int64_t value = 7;

	cr_expect_eq(xr_metrics_each(ignore, NULL), XR_E_STATE);
	cr_expect_eq(xr_metrics_each(NULL, NULL), XR_E_INVAL);
	start();
	cr_expect_eq(xr_metrics_get(NULL, &value), XR_E_INVAL);
	cr_expect_eq(xr_metrics_get("", &value), XR_E_NOTFOUND);
	cr_expect_eq(xr_metrics_each(NULL, NULL), XR_E_INVAL);
	cr_expect_eq(value, 7);
	leave();
}
