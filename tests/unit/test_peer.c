/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer.c - sending to who is lost: the cause is named, by whomever it is met. */
#include <semaphore.h>

#include "base/clock.h"
#include "tests/unit/agent_rig.h"
#include "worker/rpc/agent.h"

static struct xr_error err;

/* A carrier that finds its other end lost when it sends, and has told nobody yet. */
static sem_t met;
static struct xr_carrier broken;

static enum xr_status
find_lost(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	(void)link;
	(void)m;
	*pending = false;
	sem_post(&met);
	return XR_E_PEER_LOST;
}

static const struct xr_func functions[] = {
	FUNC("add_one", "i", add_one, 0),
};

static void
begin_broken(void)
{
	struct xr_value *value = NULL;
	struct peer *self;

	offer(functions, 1);
	join(0);
	cr_assert_eq(ask("add_one", INTS(41), &value, &err), XR_OK);
	cr_assert_eq(int_of(value), 42);
	cr_assert_eq(sem_init(&met, 0, 0), 0);
	self = agent_self();
	broken = *self->carrier;
	broken.send = find_lost;
	self->carrier = &broken;
}

/* Who reads hears of it a little later: when it has been met twice. */
static void *
hear(void *arg)
{
	(void)arg;
	sem_wait(&met);
	sem_wait(&met);
	agent_lose(agent_self(), "its process ended");
	return NULL;
}

TestSuite(peer, .timeout = 60);

Test(peer, who_meets_a_loss_first_names_its_cause)
{
	pthread_t thread;

	begin_broken();
	cr_assert_eq(pthread_create(&thread, NULL, hear, NULL), 0);
	cr_expect_eq(ask("add_one", INTS(1), NULL, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost self (0): its process ended");
	pthread_join(thread, NULL);
}

Test(peer, a_loss_that_nobody_tells_of_is_one_all_the_same)
{
	int64_t begun;

	begin_broken();
	begun = clock_now();
	cr_expect_eq(ask("add_one", INTS(1), NULL, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost self (0)");
	cr_expect_lt(clock_now() - begun, XR_SECONDS(10));
}

Test(peer, whose_time_is_over_does_not_wait_for_the_cause)
{
	int64_t begun;

	begin_broken();
	begun = clock_now();
	cr_expect_eq(ask_within("add_one", INTS(1), XR_SECONDS(1) / 100, NULL,
			     &err),
		XR_E_PEER_LOST);
	cr_expect_lt(clock_now() - begun, XR_SECONDS(1) / 2);
}
