/* SPDX-License-Identifier: Apache-2.0 */
/* test_agent.c - an agent with carriers that the test makes up: its beginning, its members,
 * who may call, and its end. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/error.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/timeout.h"
#include "tests/unit/carriers_rig.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/lead.h"

TestSuite(agent, .timeout = 20);

/* --- beginning ------------------------------------------------------------------------- */

Test(agent, its_carriers_are_opened_in_order_with_what_it_is)
{
	static const uint8_t secret[AGENT_SECRET] =
		"a secret of 32 bytes, and one !";
	struct agent_wish wish = wish_of(2);
	const struct xr_carrier_opts *o = &fake[1].opts;

	wish.secret = secret;
	wish.interface = "lo";
	wish.store_host = "there";
	cr_assert_eq(agent_open(&wish, &err), XR_OK, "%s", err.text);
	logged("O0 O1 ");
	cr_expect_eq(o->size, sizeof(*o));
	cr_expect_eq(o->id, 5);
	cr_expect_eq(o->incarnation, 70);
	cr_expect_eq(memcmp(fake[1].secret, secret, sizeof(secret)), 0);
	cr_expect_str_eq(o->interface, "lo");
	cr_expect_str_eq(o->store_host, "there");
	cr_expect_eq(fake[1].host.size, sizeof(fake[1].host));
	cr_expect_null(fake[1].host.place(NULL, NULL, NULL, 7));
	cr_expect_eq(agent_state(), AGENT_JOINING);
	agent_begin();
	cr_expect_eq(agent_state(), AGENT_RUNS);
	cr_expect(agent_self()->self && agent_self()->id == 5 &&
		agent_self()->incarnation == 70);
	cr_expect_str_eq(agent_self()->name, "self");
	cr_expect_eq(agent_first(), agent_self());
	cr_expect_null(agent_next(agent_self()));
	agent_close(NULL, NULL);
	logged("F1 F0 ");
	cr_expect_eq(agent_state(), AGENT_NONE);
	cr_expect_null(agent_self());
	cr_expect_null(agent_first());
	cr_expect_null(agent_find("self"));
	cr_expect_null(agent_find_id(5));
}

Test(agent, a_carrier_that_is_not_here_is_left_out)
{
	char text[64];

	fake[1].opens = XR_E_NODEV;
	begin(3);
	logged("O0 O1 O2 ");
	cr_expect_eq(agent_addresses(text, sizeof(text)), 7);
	cr_expect_str_eq(text, "a:1 c:3");
	agent_close(NULL, NULL);
	logged("F2 F0 ");
}

Test(agent, a_carrier_that_fails_ends_the_beginning)
{
	struct agent_wish wish = wish_of(3);

	fake[1].opens = XR_E_SYS;
	cr_expect_eq(agent_open(&wish, &err), XR_E_SYS);
	cr_expect_str_eq(err.text, "open 1");
	logged("O0 O1 F0 ");
	cr_expect_eq(agent_state(), AGENT_NONE);
	/* And another one may begin. */
	fake[1].opens = XR_OK;
	begin(3);
	logged("O0 O1 O2 ");
	agent_close(NULL, NULL);
	logged("F2 F1 F0 ");
}

/* With the one to itself there are eight. */
Test(agent, there_are_seven_carriers_at_most)
{
	struct agent_wish wish = wish_of(8);

	cr_expect_eq(agent_open(&wish, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "more than 7 carriers");
	logged("O0 O1 O2 O3 O4 O5 O6 F6 F5 F4 F3 F2 F1 F0 ");
	begin(7);
	agent_close(NULL, NULL);
}

Test(agent, there_is_one_at_a_time)
{
	struct agent_wish wish = wish_of(1);

	begin(1);
	log_text[0] = '\0';
	wish.devices = calloc(1, sizeof(*wish.devices));
	cr_expect_eq(agent_open(&wish, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "an agent runs in this process already");
	cr_expect_eq(agent_state(), AGENT_RUNS);
	logged("");
	agent_close(NULL, NULL);
}

/* Each allocation fails once: what memory is missing for is left out, or none begins. */
Test(agent, without_memory_none_begins)
{
	static const uint8_t secret[AGENT_SECRET] = "secret";
	struct agent_wish wish = wish_of(1);
	unsigned at, failed = 0;
	enum xr_status status;

	wish.secret = secret;
	was_short = true;
	for (at = 1; was_short && at < 60; at++) {
		wish.devices = calloc(1, sizeof(*wish.devices));
		was_short = false;
		until_short = at;
		status = agent_open(&wish, &err);
		until_short = 0;
		cr_expect_eq(agent_state(),
			status == XR_OK ? AGENT_JOINING : AGENT_NONE);
		failed += status != XR_OK;
		if (status == XR_OK)
			agent_close(NULL, NULL);
	}
	cr_expect(failed > 2 && at < 60, "%u, %u", failed, at);
}

static unsigned looks;

static void
look(void *ctx)
{
	cr_expect_eq(ctx, &looks);
	cr_expect_eq(agent_state(), AGENT_CLOSING);
	looks++;
}

Test(agent, its_links_are_closed_before_its_carriers)
{
	struct peer *one, *two;

	begin(2);
	one = add("one", 1, 71, "a:9");
	two = add("two", 2, 72, "ab:9");
	add("three", 3, 73, "ab:9");
	peer_reach(one);
	peer_reach(two);
	log_text[0] = '\0';
	agent_close(look, &looks);
	cr_expect_eq(looks, 1);
	logged("L11 L1 F1 F0 ");
}

/* --- members ---------------------------------------------------------------------------- */

Test(agent, the_newest_bears_a_name_or_a_number)
{
	struct peer *one, *again, *last, *found = NULL;

	begin(1);
	one = add("one", 1, 71, "a:9");
	cr_expect_eq(one->rank, 3);
	cr_expect_eq(one->incarnation, 71);
	cr_expect_str_eq(one->addresses, "a:9");
	cr_expect_eq(agent_find("one"), one);
	cr_expect_eq(agent_find_id(1), one);
	again = add("one", 1, 72, "a:9");
	cr_expect_eq(agent_find("one"), again);
	cr_expect_eq(agent_find_id(1), again);
	last = add("last", XR_WORKER_ID_MAX, 73, "");
	cr_expect_eq(agent_find_id(XR_WORKER_ID_MAX), last);
	cr_expect_null(agent_add(&(struct agent_member){ "beyond",
		XR_WORKER_ID_MAX + 1, 1, "", NULL, 0 }));
	cr_expect_null(agent_find_id(XR_WORKER_ID_MAX + 1));
	cr_expect_null(agent_find("beyond"));
	cr_expect_eq(agent_first(), last);
	cr_expect_eq(agent_next(last), again);
	cr_expect_eq(agent_next(again), one);
	cr_expect_eq(agent_next(one), agent_self());
	cr_expect_eq(agent_peer("one", 9, &found, &err), XR_OK);
	cr_expect_eq(found, again);
	cr_expect_eq(agent_peer(NULL, XR_WORKER_ID_MAX, &found, &err), XR_OK);
	cr_expect_eq(found, last);
	cr_expect_eq(agent_peer(NULL, 5, &found, &err), XR_OK);
	cr_expect_eq(found, agent_self());
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(agent_peer(NULL,
				     ((const int64_t[]){ -1, INT64_MIN,
					     XR_WORKER_ID_MAX + 1,
					     INT64_MAX })[i],
				     &found, &err),
			XR_E_NOTFOUND);
	/* Who has left is not to be found, whoever it was before. */
	peer_gone(again, false);
	found = NULL;
	cr_expect_eq(agent_peer("one", 0, &found, &err), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "one (1) has left the group");
	cr_expect_null(found);
	agent_close(NULL, NULL);
}

/* Names of one bucket: more of them than there are buckets. */
Test(agent, names_of_one_hash_are_told_apart)
{
	struct peer *p[2000];
	char name[16];

	begin(1);
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		p[i] = add(name, i, 1, "");
	}
	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		cr_expect_eq(agent_find(name), p[i]);
	}
	cr_expect_null(agent_find("n2000"));
	agent_close(NULL, NULL);
}

Test(agent, a_member_without_memory_is_not_added)
{
	const struct agent_member m = { "one", 1, 71, "a:9", NULL, 0 };
	unsigned at;

	begin(1);
	for (at = 1; agent_find("one") == NULL && at < 10; at++) {
		until_short = at;
		cr_expect(agent_add(&m) == agent_find("one"));
		until_short = 0;
	}
	cr_expect_eq(at, 4);
	agent_close(NULL, NULL);
}

/* --- what is due ------------------------------------------------------------------------------ */

static int64_t (*expire)(void *ctx, int64_t now);
/* What each part of the agent says; of the thread that asks so. */
static _Thread_local int64_t dues[7];
static _Thread_local bool is_told;
static _Thread_local unsigned asked;

void __real_lead_open(const struct lead_place *place);
void __wrap_lead_open(const struct lead_place *place);

void
__wrap_lead_open(const struct lead_place *place)
{
	expire = place->expire;
	__real_lead_open(place);
}

#define DUE(i, name) \
	int64_t __real_##name(int64_t now); \
	int64_t __wrap_##name(int64_t now); \
	int64_t __wrap_##name(int64_t now) \
	{ \
		if (!is_told) \
			return __real_##name(now); \
		cr_expect_eq(now, 5); \
		asked |= 1u << i; \
		return dues[i]; \
	}

DUE(0, meet_expire)
DUE(1, pending_expire)
DUE(2, tell_figures)
DUE(3, fault_expire)
DUE(4, rref_expire)
DUE(5, guest_expire)
DUE(6, local_retire)

Test(agent, the_first_that_is_due_counts)
{
	begin(1);
	is_told = true;
	for (int i = 0; i < 7; i++) {
		for (int k = 0; k < 7; k++)
			dues[k] = k == i ? 6 : 7 + k;
		asked = 0;
		cr_expect_eq(expire(NULL, 5), 6, "%d", i);
		cr_expect_eq(asked, 0x7f);
	}
	is_told = false;
	agent_close(NULL, NULL);
}

/* --- who may call ---------------------------------------------------------------------------- */

#define NONE "no agent runs in this process: xr_rpc_init() comes first"

static bool
may_enter(void)
{
	enum xr_status status;

	err.text[0] = '\0';
	status = agent_enter(&err);
	if (status == XR_OK) {
		agent_leave();
		return true;
	}
	cr_expect_eq(status, XR_E_STATE);
	cr_expect_str_eq(err.text, NONE);
	return false;
}

static bool
may_come(void)
{
	if (!agent_come())
		return false;
	agent_leave();
	return true;
}

Test(agent, a_program_calls_when_it_has_begun)
{
	struct agent_wish wish = wish_of(1);

	for (int i = 0; i < 2; i++) {
		wish.is_new = i == 1;
		cr_expect_not(may_enter());
		cr_expect_not(may_come());
		cr_assert_eq(agent_open(&wish, &err), XR_OK);
		cr_expect_not(may_enter());
		cr_expect(may_come());
		/* A function that serves a call of one who knows this process. */
		lead_deliver_begin();
		cr_expect_eq(may_enter(), !wish.is_new);
		cr_expect(may_come());
		lead_deliver_end();
		agent_begin();
		cr_expect(may_enter());
		cr_expect(may_come());
		agent_close(NULL, NULL);
	}
	cr_expect_not(may_enter());
	cr_expect_not(may_come());
}

static sem_t began, over;
static _Atomic bool entered;

/* By one of the crew. */
static void
enter(struct work *work)
{
	(void)work;
	cr_expect(crew_is_member());
	sem_post(&began);
	atomic_store(&entered, may_enter());
	sem_post(&over);
}

Test(agent, a_function_calls_at_once_if_all_know_this_process)
{
	struct agent_wish wish = wish_of(1);
	struct work work = { .run = enter };

	sem_init(&began, 0, 0);
	sem_init(&over, 0, 0);
	cr_assert_eq(agent_open(&wish, &err), XR_OK);
	cr_expect(crew_post(&work));
	sem_wait(&over);
	cr_expect(atomic_load(&entered));
	agent_close(NULL, NULL);
}

Test(agent, a_function_of_a_new_member_calls_when_it_has_begun)
{
	struct agent_wish wish = wish_of(1);
	struct work work = { .run = enter };

	wish.is_new = true;
	sem_init(&began, 0, 0);
	sem_init(&over, 0, 0);
	cr_assert_eq(agent_open(&wish, &err), XR_OK);
	cr_expect(crew_post(&work));
	sem_wait(&began);
	cr_expect_not(atomic_load(&entered));
	agent_begin();
	sem_wait(&over);
	cr_expect(atomic_load(&entered));
	agent_close(NULL, NULL);
}

/* Nobody is in the agent when they have returned. */
static void *
set_and_get(void *unused)
{
	int64_t ns;

	cr_expect_eq(xr_rpc_set_timeout(1, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(xr_rpc_set_timeout(-2, &err), XR_E_INVAL);
	sem_post(&began);
	sem_wait(&over);
	return unused;
}

Test(agent, an_end_does_not_wait_for_a_thread_that_has_left)
{
	pthread_t thread;

	sem_init(&began, 0, 0);
	sem_init(&over, 0, 0);
	begin(1);
	cr_assert_eq(pthread_create(&thread, NULL, set_and_get, NULL), 0);
	sem_wait(&began);
	agent_close(NULL, NULL);
	sem_post(&over);
	pthread_join(thread, NULL);
}

Test(agent, a_forked_process_has_none)
{
	struct work work = { .run = enter };
	int status = -1;
	pid_t pid;

	begin(1);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		alarm(20);
		_exit((agent_state() == AGENT_FORKED ? 1 : 0) |
			(agent_enter(&err) == XR_E_STATE ? 2 : 0) |
			(!agent_come() ? 4 : 0) | (!crew_post(&work) ? 8 : 0));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 15);
	cr_expect_eq(agent_state(), AGENT_RUNS);
	agent_close(NULL, NULL);
	/* Without one there is nothing to give up. */
	pid = fork();
	if (pid == 0)
		_exit(agent_state() == AGENT_NONE ? 7 : 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(WEXITSTATUS(status), 7);
}

Test(agent, a_timeout_is_its_own_or_the_agents)
{
	int64_t ns = 0;

	begin(1);
	cr_expect_eq(agent_timeout(XR_TIMEOUT_DEFAULT, &ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(7));
	cr_expect_eq(agent_timeout_field(0, &ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(7));
	cr_expect_eq(agent_timeout(0, &ns, &err), XR_OK);
	cr_expect_eq(ns, 0);
	cr_expect_eq(agent_timeout_field(1, &ns, &err), XR_OK);
	cr_expect_eq(ns, 1);
	cr_expect_eq(agent_timeout(-2, &ns, &err), XR_E_INVAL);
	cr_expect_eq(agent_timeout_field(-2, &ns, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_set_timeout(XR_SECONDS(9), &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(9));
	cr_expect_eq(agent_timeout(XR_TIMEOUT_DEFAULT, &ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(9));
	cr_expect_eq(xr_rpc_set_timeout(XR_TIMEOUT_NEVER, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(ns, INT64_MAX);
	/* As it was when it joined. */
	cr_expect_eq(xr_rpc_set_timeout(XR_TIMEOUT_DEFAULT, &err), XR_OK);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_OK);
	cr_expect_eq(ns, XR_SECONDS(7));
	agent_close(NULL, NULL);
	ns = 3;
	cr_expect_eq(xr_rpc_set_timeout(1, &err), XR_E_STATE);
	cr_expect_eq(xr_rpc_get_timeout(&ns, &err), XR_E_STATE);
	cr_expect_eq(ns, 3);
}
