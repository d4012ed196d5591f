/* SPDX-License-Identifier: Apache-2.0 */
/* test_courier.c - backend process_group: messages of calls are the group's, and what
 * is not is refused. */
#include "tests/unit/agent_rig.h"
#include "tests/unit/short_memory.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/message.h"
#include "worker/rpc/way.h"

static struct xr_error err;

/* --- what goes ------------------------------------------------------------- */

#define SEEN_MAX 64

/* Records that went to this process itself, which is of the group, too. */
static struct xr_record seen[SEEN_MAX];
static _Atomic uint32_t seen_count;
static const struct xr_carrier *real;

static enum xr_status
look_and_send(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	uint32_t i = atomic_fetch_add(&seen_count, 1);

	if (i < SEEN_MAX)
		seen[i] = m->record;
	return real->send(link, m, pending);
}

static struct xr_carrier spy;

static void
watch(void)
{
	struct peer *self = agent_self();

	real = self->carrier;
	spy = *real;
	spy.send = look_and_send;
	self->carrier = &spy;
}

static const struct xr_func functions[] = {
	FUNC("add_one", "i", add_one, 0),
};

static int64_t
one_more(int64_t n)
{
	struct xr_value *value = NULL;

	cr_assert_eq(ask("add_one", INTS(n), &value, &err), XR_OK, "%s",
		err.text);
	return int_of(value);
}

/* An agent of this backend, that has a link to itself. */
static void
begin_with(const char *backend)
{
	static bool offered;

	setenv("TEST_BACKEND", backend, 1);
	if (!offered)
		offer(functions, 1);
	offered = true;
	join(0);
	cr_assert_eq(one_more(41), 42);
	watch();
}

TestSuite(courier, .timeout = 60);

Test(courier, calls_and_answers_go_as_messages_of_the_group)
{
	begin_with("process_group");
	cr_assert(way_is_group());
	for (int64_t i = 0; i < 5; i++)
		cr_assert_eq(one_more(i), i + 1);
	cr_assert_eq(seen_count, 10);
	for (uint32_t i = 0; i < 10; i++) {
		cr_expect_eq(seen[i].kind & MESSAGE_CARRIED, MESSAGE_CARRIED);
		cr_expect_eq(seen[i].aux, seen[0].aux);
	}
	cr_expect_eq(seen[0].kind & ~MESSAGE_CARRIED, MESSAGE_REQUEST);
	cr_expect_eq(seen[1].kind & ~MESSAGE_CARRIED, MESSAGE_REPLY);
	leave();
	cr_expect(!way_is_group());
}

Test(courier, those_of_the_default_backend_do_not)
{
	begin_with("auto");
	cr_assert(!way_is_group());
	cr_assert_eq(one_more(1), 2);
	cr_assert_eq(seen_count, 2);
	cr_expect_eq(seen[0].kind, MESSAGE_REQUEST);
	cr_expect_eq(seen[0].aux, 0);
	cr_expect_eq(seen[1].kind, MESSAGE_REPLY);
	leave();
}

/* In the next life there is another group. */
Test(courier, AC_B19_each_life_has_a_group_of_its_own)
{
	uint16_t before = 0, other = 0;

	for (int i = 0; i < 20; i++) {
		begin_with("process_group");
		atomic_store(&seen_count, 0);
		cr_assert_eq(one_more(i), i + 1);
		other += seen[0].aux != before;
		before = seen[0].aux;
		leave();
	}
	cr_expect_gt(other, 15); /* of 65536 two may be one */
}

/* --- what comes ------------------------------------------------------------ */

/* The stamp of this process's messages. */
static uint16_t
own_stamp(void)
{
	atomic_store(&seen_count, 0);
	cr_assert_eq(one_more(1), 2);
	return seen[0].aux;
}

/* A word that no answer is awaited for any more, of a call that nobody made. */
static void
comes(struct peer *from, uint8_t kind, uint16_t aux)
{
	const struct xr_record record = { .kind = kind, .aux = aux };
	const struct xr_body body = { .data = "" };

	message_deliver(NULL, from, &record, &body);
}

static void
is_lost(struct peer *from, const char *why)
{
	struct xr_error e = { 0 };

	cr_assert_eq(atomic_load(&from->state), PEER_LOST);
	cr_expect_eq(peer_lost_error(from, &e), XR_E_PEER_LOST);
	cr_expect_not_null(strstr(e.text, why), "%s", e.text);
}

#define NOT_MEMBER "it sent a message of a group that it is no member of"

Test(courier, a_message_of_the_group_is_taken)
{
	begin_with("process_group");
	comes(agent_self(), MESSAGE_CANCEL | MESSAGE_CARRIED, own_stamp());
	cr_expect_eq(atomic_load(&agent_self()->state), PEER_UP);
	cr_expect_eq(one_more(1), 2);
	leave();
}

Test(courier, one_of_no_such_group_loses_who_sent_it)
{
	begin_with("process_group");
	comes(agent_self(), MESSAGE_CANCEL | MESSAGE_CARRIED,
		own_stamp() ^ 0x4000);
	is_lost(agent_self(), NOT_MEMBER);
	/* Who is lost says no more. */
	comes(agent_self(), MESSAGE_CANCEL | MESSAGE_CARRIED, 0);
}

Test(courier, so_does_one_with_the_place_of_another)
{
	begin_with("process_group");
	comes(agent_self(), MESSAGE_CANCEL | MESSAGE_CARRIED, own_stamp() ^ 1);
	is_lost(agent_self(), NOT_MEMBER);
}

Test(courier, so_does_one_that_is_none_of_the_groups)
{
	begin_with("process_group");
	comes(agent_self(), MESSAGE_CANCEL, own_stamp());
	is_lost(agent_self(), "none of the group's");
}

Test(courier, so_does_one_of_who_is_no_member)
{
	struct peer *stranger[2];
	uint16_t stamp;

	begin_with("process_group");
	stamp = own_stamp();
	/* One with a place that there is not, and one in another's. */
	for (uint32_t i = 0; i < 2; i++) {
		stranger[i] = agent_add(&(struct agent_member){
			.name = i == 0 ? "early" : "late",
			.id = 1 - i,
			.incarnation = 7,
			.addresses = "",
		});
		cr_assert_not_null(stranger[i]);
		comes(stranger[i], MESSAGE_CANCEL | MESSAGE_CARRIED,
			stamp ^ (uint16_t)(1 - i));
		is_lost(stranger[i], NOT_MEMBER);
	}
}

Test(courier, without_a_group_one_of_a_group_is_of_no_kind)
{
	begin_with("auto");
	comes(agent_self(), MESSAGE_CANCEL | MESSAGE_CARRIED, 0);
	is_lost(agent_self(), "it sent a message of no kind");
}

/* --- forming --------------------------------------------------------------- */

Test(courier, AC_B15_a_group_in_which_the_place_is_another)
{
	begin_with("auto");
	cr_expect_eq(way_open(1, 1, &err), XR_E_CONFLICT);
	cr_expect_not_null(strstr(err.text,
				   "the rank is 1 here, and 0 in the group"),
		"%s", err.text);
	cr_expect_eq(way_open(0, 2, &err), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text, "has no rank 1"), "%s", err.text);
	cr_expect(!way_is_group());
	cr_expect_eq(one_more(1), 2);
	leave();
}

Test(courier, memory_that_is_short_forms_no_group)
{
	enum xr_status status = XR_E_NOMEM;
	unsigned n = 0;

	begin_with("auto");
	while (status == XR_E_NOMEM) {
		until_short = ++n;
		status = way_open(0, 1, &err);
		until_short = 0;
		cr_assert_eq(way_is_group(), status == XR_OK);
	}
	cr_expect_eq(status, XR_OK, "%s", err.text);
	cr_expect_gt(n, 3);
	cr_expect_eq(one_more(1), 2);
	leave();
}

Test(courier, without_groups_in_the_program_it_is_told)
{
	way_offer(NULL);
	setenv("TEST_BACKEND", "process_group", 1);
	cr_expect_eq(try_to_join(0, &err), XR_E_STATE);
	cr_expect_not_null(strstr(err.text, "there are no groups"), "%s",
		err.text);
	cr_expect_eq(agent_state(), AGENT_NONE);
}
