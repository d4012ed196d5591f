/* SPDX-License-Identifier: Apache-2.0 */
/* spell.c - see queue_inner.h: how a call waits. */
#include <errno.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/user.h"
#include "worker/queue/vigil.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wait_env env;

static void
make_env(void)
{
	wait_env_init(&env, NULL, 0);
}

void
spell_init(struct spell *s, struct hall *h, struct wake *wake, int64_t timeout)
{
	*s = (struct spell){
		.hall = h,
		.wake = wake,
		.timeout = timeout,
		.deadline = INT64_MAX,
	};
	s->site = wake == &h->head->items_wake ? &h->gets : &h->puts;
}

static void
begin(struct spell *s)
{
	int64_t now = clock_now();

	pthread_once(&once, make_env);
	if (s->timeout < INT64_MAX - now)
		s->deadline = now + s->timeout;
	wait_begin(&s->wait, &env, NULL, s->site);
	s->begun = true;
}

/* Whose claim, or memory, keeps us from what we want: is it there still? */
static void
look_for_dead(struct spell *s)
{
	if (s->met.is_memory)
		user_check_all(s->hall);
	else if (s->met.who != 0)
		user_check(s->hall, s->met.who);
	hall_abandoned(s->hall);
}

/* Once more, and that was it. */
static enum xr_status
last_look(struct spell *s)
{
	s->is_last = true;
	look_for_dead(s);
	return XR_OK;
}

static enum xr_status
sleep_now(struct spell *s)
{
	int rc = wake_sleep(s->wake, s->seen, s->deadline);

	s->armed = false;
	wait_woken(&s->wait, 0);
	return rc == ETIMEDOUT ? last_look(s) : XR_OK;
}

enum xr_status
spell_turn(struct spell *s, struct xr_error *err)
{
	if (atomic_load_explicit(&s->hall->is_quit, memory_order_relaxed))
		return fail(err, XR_E_CANCELLED, "nobody waits for it");
	if (s->is_last)
		return fail(err, XR_E_TIMEOUT, "%s",
			s->site == &s->hall->gets ? "nothing came in time" :
						    "no room in time");
	if (s->timeout == 0)
		return last_look(s);
	if (s->armed)
		return sleep_now(s);
	if (!s->begun)
		begin(s);
	switch (wait_turn(&s->wait)) {
	case WAIT_AGAIN:
		break;
	case WAIT_LOOK:
		if (clock_now() >= s->deadline)
			return last_look(s);
		break;
	case WAIT_SLEEP:
		if (clock_now() >= s->deadline)
			return last_look(s);
		s->seen = wake_arm(s->wake);
		s->armed = true;
		return vigil_follow(s->hall, err);
	}
	return XR_OK;
}

void
spell_end(struct spell *s)
{
	if (s->begun)
		wait_end(&s->wait);
}
