/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank.c - properties of the whole table of a rank's life. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/cmd/help.h"
#include "launcher/job/rank.h"

struct step {
	enum rank_state from, to;
	enum rank_event event;
	unsigned act;
};

typedef void step_fn(const struct step *step);

/* Every legal cell. */
static void
each_step(step_fn *fn)
{
	struct step s;

	for (int from = 0; from < RANK_STATE_COUNT; from++)
		for (int event = 0; event < RANK_EVENT_COUNT; event++) {
			s = (struct step){ .from = (enum rank_state)from,
				.event = (enum rank_event)event };
			if (rank_next(s.from, s.event, &s.to, &s.act))
				fn(&s);
		}
}

static const char *
say(const struct step *s)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s, %s: %s, act %#x",
		rank_state_name(s->from), rank_event_name(s->event),
		rank_state_name(s->to), s->act);
	return text;
}

static bool reached[RANK_STATE_COUNT], ends[RANK_STATE_COUNT], more;

static void
reach(const struct step *s)
{
	if (reached[s->from] && !reached[s->to])
		more = reached[s->to] = true;
}

static void
end(const struct step *s)
{
	if (ends[s->to] && !ends[s->from])
		more = ends[s->from] = true;
}

Test(rank, every_state_is_reachable_and_can_end)
{
	reached[RANK_NEW] = ends[RANK_DONE] = true;
	do {
		more = false;
		each_step(reach);
		each_step(end);
	} while (more);
	for (int s = 0; s < RANK_STATE_COUNT; s++) {
		cr_expect(reached[s], "%s is never reached",
			rank_state_name((enum rank_state)s));
		cr_expect(ends[s], "%s never ends",
			rank_state_name((enum rank_state)s));
	}
}

Test(rank, stop_and_kill_are_always_allowed)
{
	enum rank_state to;
	unsigned act;

	for (int s = 0; s < RANK_STATE_COUNT; s++) {
		cr_expect(rank_next((enum rank_state)s, RANK_EV_STOP, &to,
			&act));
		cr_expect(rank_next((enum rank_state)s, RANK_EV_KILL, &to,
			&act));
	}
}

static void
settles_on_entry_of_done(const struct step *s)
{
	bool enters = s->to == RANK_DONE && s->from != RANK_DONE;

	cr_expect_eq((s->act & RANK_DO_SETTLE) != 0, enters, "%s", say(s));
}

Test(rank, a_rank_is_settled_exactly_on_entry_of_done)
{
	each_step(settles_on_entry_of_done);
}

static void
goes_forward(const struct step *s)
{
	cr_expect_geq((int)s->to, (int)s->from, "%s", say(s));
}

/* The enum is in the order of a life; with it, done is final. */
Test(rank, rel_42_no_step_goes_back)
{
	each_step(goes_forward);
}

static void
signals_where_it_says(const struct step *s)
{
	if (s->act & RANK_DO_KILL)
		cr_expect_eq(s->to, RANK_KILLED, "%s", say(s));
	if (s->act & RANK_DO_STOP)
		cr_expect_eq(s->to, RANK_STOPPING, "%s", say(s));
	if (s->to == RANK_KILLED && s->from != RANK_KILLED)
		cr_expect(s->act & RANK_DO_KILL, "%s", say(s));
	if (s->to == RANK_STOPPING && s->from != RANK_STOPPING)
		cr_expect(s->act & RANK_DO_STOP, "%s", say(s));
}

Test(rank, a_signal_and_the_state_that_is_named_after_it_come_together)
{
	each_step(signals_where_it_says);
}

static bool
lives(enum rank_state state)
{
	return state == RANK_RUNNING || state == RANK_STOPPING ||
		state == RANK_KILLED;
}

static void
signals_only_the_living(const struct step *s)
{
	if (s->act & (RANK_DO_STOP | RANK_DO_KILL))
		cr_expect(lives(s->from) && lives(s->to), "%s", say(s));
}

/* Before the start there is no pid, after the end it may be another's. */
Test(rank, only_a_living_rank_is_signalled)
{
	each_step(signals_only_the_living);
}

static void
exits_once(const struct step *s)
{
	if (s->event == RANK_EV_EXITED)
		cr_expect_eq(s->to, RANK_ENDED, "%s", say(s));
	if (s->to == RANK_ENDED && s->from != RANK_ENDED)
		cr_expect_eq(s->event, RANK_EV_EXITED, "%s", say(s));
	cr_expect_eq((s->act & RANK_DO_DRAIN) != 0, s->event == RANK_EV_EXITED,
		"%s", say(s));
}

Test(rank, a_rank_that_exited_waits_for_its_pipes)
{
	enum rank_state to;
	unsigned act;

	each_step(exits_once);
	for (int s = 0; s < RANK_STATE_COUNT; s++)
		cr_expect_eq(rank_next((enum rank_state)s, RANK_EV_EXITED, &to,
				     &act),
			lives((enum rank_state)s), "%s",
			rank_state_name((enum rank_state)s));
}

static void
gives_pipes_up_after_a_wait(const struct step *s)
{
	if (s->act & RANK_DO_CLOSE)
		cr_expect(s->event == RANK_EV_TIMEOUT ||
				s->event == RANK_EV_LOST,
			"%s", say(s));
	if (s->event == RANK_EV_TIMEOUT && s->from == RANK_ENDED)
		cr_expect(s->act & RANK_DO_CLOSE, "%s", say(s));
}

Test(rank, pipes_are_given_up_only_when_nothing_else_is_left)
{
	each_step(gives_pipes_up_after_a_wait);
}

static void
is_harmless_twice(const struct step *s)
{
	enum rank_state to;
	unsigned act;

	if (s->event != RANK_EV_STOP && s->event != RANK_EV_KILL)
		return;
	cr_expect(rank_next(s->to, s->event, &to, &act));
	cr_expect_eq(to, s->to, "%s, then %s", say(s), rank_state_name(to));
	cr_expect_not(act & RANK_DO_SETTLE, "%s", say(s));
}

Test(rank, stop_and_kill_change_nothing_the_second_time)
{
	each_step(is_harmless_twice);
}

Test(rank, a_stop_after_a_kill_does_not_soften_it)
{
	enum rank_state to;
	unsigned act;

	cr_assert(rank_next(RANK_KILLED, RANK_EV_STOP, &to, &act));
	cr_expect_eq(to, RANK_KILLED);
	cr_expect_eq(act, 0);
}

static unsigned times[RANK_EVENT_COUNT];

static void
count(const struct step *s)
{
	times[s->event]++;
}

Test(rank, every_event_happens_somewhere_and_only_stop_and_kill_everywhere)
{
	each_step(count);
	for (int e = 0; e < RANK_EVENT_COUNT; e++) {
		cr_expect_gt(times[e], 0, "%s",
			rank_event_name((enum rank_event)e));
		if (e != RANK_EV_STOP && e != RANK_EV_KILL)
			cr_expect_lt(times[e], RANK_STATE_COUNT, "%s",
				rank_event_name((enum rank_event)e));
	}
}

Test(rank, what_cannot_happen_writes_nothing)
{
	enum rank_state to;
	unsigned act;

	for (int s = 0; s < RANK_STATE_COUNT; s++)
		for (int e = 0; e < RANK_EVENT_COUNT; e++) {
			to = (enum rank_state)99;
			act = 12345;
			if (rank_next((enum rank_state)s, (enum rank_event)e,
				    &to, &act))
				continue;
			cr_expect_eq((int)to, 99);
			cr_expect_eq(act, 12345);
		}
}

/* Any order of what may happen ends, and counts the rank once. */
Test(rank, a_random_life_ends_settled_once)
{
	enum rank_state state, to;
	unsigned act, settled;

	srandom(20261121);
	for (int life = 0; life < 10000; life++) {
		state = RANK_NEW;
		settled = 0;
		for (int i = 0; i < 300; i++) {
			if (!rank_next(state,
				    (enum rank_event)(random() %
					    RANK_EVENT_COUNT),
				    &to, &act))
				continue;
			state = to;
			settled += (act & RANK_DO_SETTLE) != 0;
		}
		cr_assert_eq(state, RANK_DONE);
		cr_assert_eq(settled, 1);
	}
}

Test(rank, names_are_words_and_differ)
{
	const char *a, *b;

	for (int i = 0; i < RANK_STATE_COUNT; i++)
		for (int k = 0; k < RANK_STATE_COUNT; k++) {
			a = rank_state_name((enum rank_state)i);
			b = rank_state_name((enum rank_state)k);
			cr_expect_eq(strcmp(a, b) == 0, i == k, "%s", a);
			cr_expect_eq(strcspn(a, " ?\""), strlen(a));
		}
	for (int i = 0; i < RANK_EVENT_COUNT; i++)
		for (int k = 0; k < RANK_EVENT_COUNT; k++) {
			a = rank_event_name((enum rank_event)i);
			b = rank_event_name((enum rank_event)k);
			cr_expect_eq(strcmp(a, b) == 0, i == k, "%s", a);
			cr_expect_eq(strcspn(a, " ?\""), strlen(a));
		}
	cr_expect_str_eq(rank_state_name(RANK_STATE_COUNT), "?");
	cr_expect_str_eq(rank_event_name(RANK_EVENT_COUNT), "?");
}

static const struct help_topic *
topic(const char *name)
{
	const struct help_topic *t = help_topics;

	while (t->name != NULL && strcmp(t->name, name) != 0)
		t++;
	cr_assert_not_null(t->name, "no topic %s", name);
	return t;
}

static struct buf drawing;

static void
is_drawn(const struct step *s)
{
	char edge[128];
	const char *at;

	if (s->to == s->from)
		return;
	snprintf(edge, sizeof(edge), "\t%s -> %s [label=\"%s",
		rank_state_name(s->from), rank_state_name(s->to),
		rank_event_name(s->event));
	at = strstr(buf_text(&drawing), edge);
	cr_expect_not_null(at, "%s", edge);
	if (at != NULL)
		cr_expect_not_null(strchr("\"\\", at[strlen(edge)]), "%s", at);
	times[0]++;
}

Test(rank, help_states_draws_every_step_that_leads_elsewhere)
{
	unsigned arrows = 0;
	const char *p;

	topic("states")->put[HELP_DOT](&drawing);
	p = buf_text(&drawing);
	cr_expect_eq(strncmp(p, "digraph rank {\n", 15), 0, "%s", p);
	each_step(is_drawn);
	while ((p = strstr(p, " -> ")) != NULL) {
		p++;
		arrows++;
	}
	cr_expect_eq(arrows, times[0]);
	cr_expect_str_eq(buf_text(&drawing) + drawing.len - 2, "}\n");
	buf_fini(&drawing);
}

Test(rank, help_states_tells_every_step)
{
	unsigned lines = 0;
	const char *p;

	topic("states")->put[HELP_TEXT](&drawing);
	for (p = buf_text(&drawing); *p != '\0'; p++)
		lines += *p == '\n';
	each_step(count);
	for (int e = 0; e < RANK_EVENT_COUNT; e++)
		lines -= times[e];
	cr_expect_eq(lines, 2, "a line a step, and a heading");
	buf_fini(&drawing);
}
