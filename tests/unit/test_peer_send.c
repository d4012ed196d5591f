/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_send.c - one peer without an agent: what is sent, copied and queued, and how it
 * is lost. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/peer_rig.h"

TestSuite(peer_send, .timeout = 20, .init = begin, .fini = end);

/* --- peers ----------------------------------------------------------------------------- */

Test(peer_send, a_new_peer_is_what_it_is_said_to_be)
{
	char name[200];
	struct peer *q;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	q = peer_new(name, 7, 72);
	cr_assert_not_null(q);
	cr_expect_eq(strlen(q->name), sizeof(q->name) - 1);
	cr_expect_eq(q->id, 7);
	cr_expect_eq(q->incarnation, 72);
	cr_expect_eq(atomic_load(&q->state), PEER_NEW);
	cr_expect_null(send_queue_first(&q->queue));
	peer_free(q);
	until_short = 1;
	cr_expect_null(peer_new("two", 2, 1));
	q = peer_new("two", 2, 1);
	q->carrier = &carrier;
	q->link = (struct xr_link *)&out;
	peer_free(q);
	cr_expect_eq(out.closed, 1);
}

Test(peer_send, each_of_1024_functions_has_its_own_bit)
{
	for (uint32_t i = 0; i < PEER_METHODS; i++) {
		cr_expect_not(peer_knows(p, i));
		peer_learns(p, i);
		peer_learns(p, i);
		cr_expect(peer_knows(p, i));
		for (uint32_t k = 0; k < PEER_METHODS / 64; k++)
			cr_expect_eq(atomic_load(&p->knows[k]),
				k < i / 64 ? UINT64_MAX :
					k == i / 64 ?
					     UINT64_MAX >> (63 - i % 64) :
					     0);
	}
}

Test(peer_send, the_first_that_was_lost_is_found)
{
	struct peer *two = peer_new("two", 2, 1),
		    *three = peer_new("three", 3, 1);
	struct peer *const all[] = { p, two, three };

	cr_expect_null(peer_first_lost(all, 3));
	peer_note_loss(three);
	cr_expect_null(peer_first_lost(all, 2));
	cr_expect_eq(peer_first_lost(all, 3), three);
	peer_note_loss(p);
	peer_note_loss(two);
	cr_expect_eq(peer_first_lost(all, 3), three);
	cr_expect_eq(peer_first_lost(all, 2), p);
	cr_expect_eq(peer_first_lost(all + 1, 1), two);
	cr_expect_null(peer_first_lost(all, 0));
	peer_free(two);
	peer_free(three);
}

/* is() - the peer is in state @now, and to use it fails with @words. */
static void
is(enum peer_state now, enum xr_status status, const char *words)
{
	cr_expect_eq(atomic_load(&p->state), now);
	err.text[0] = '\0';
	cr_expect_eq(peer_lost_error(p, &err), status);
	cr_expect_str_eq(err.text, words);
	if (now == PEER_UP)
		return;
	cr_expect_eq(send_text("ab"), status);
	cr_expect_str_eq(err.text, words);
	cr_expect_eq(out.tries, 0);
}

Test(peer_send, a_peer_is_lost_once)
{
	char why[200], words[200];

	p->rank = 6;
	memset(why, 'w', sizeof(why));
	why[sizeof(why) - 1] = '\0';
	snprintf(words, sizeof(words), "lost one (1): %.127s", why);
	peer_lose(p, PEER_LOST, why);
	is(PEER_LOST, XR_E_PEER_LOST, words);
	cr_expect_neq(atomic_load(&p->loss), 0);
	cr_expect_not(peer_is_gone(p));
	peer_lose(p, PEER_LEFT, "again");
	is(PEER_LOST, XR_E_PEER_LOST, words);
	cr_expect_eq(lost_count, 1);
	cr_expect_eq(lost_ranks[0], 6);
}

Test(peer_send, a_peer_may_be_lost_before_it_was_met)
{
	atomic_store(&p->state, PEER_NEW);
	peer_lose(p, PEER_LOST, "");
	is(PEER_LOST, XR_E_PEER_LOST, "lost one (1)");
}

#define LEFT "one (1) has left the group"

Test(peer_send, a_peer_that_says_so_has_left)
{
	peer_lose(p, PEER_LEFT, "it said so");
	is(PEER_LEFT, XR_E_NOTFOUND, LEFT);
	cr_expect_eq(atomic_load(&p->loss), 0);
	cr_expect_eq(lost_count, 0);
}

/* It may answer what it was asked yet. */
Test(peer_send, a_peer_that_left_the_group_is_there_until_its_link_ends)
{
	peer_gone(p, false);
	cr_expect(peer_is_gone(p));
	is(PEER_UP, XR_E_NOTFOUND, LEFT);
	peer_lose(p, PEER_LOST, "its process ended");
	is(PEER_LEFT, XR_E_NOTFOUND, LEFT);
	cr_expect_eq(atomic_load(&p->loss), 0);
}

Test(peer_send, a_peer_that_left_the_group_and_was_not_met_is_not_there)
{
	atomic_store(&p->state, PEER_NEW);
	peer_gone(p, false);
	is(PEER_LEFT, XR_E_NOTFOUND, LEFT);
}

Test(peer_send, a_peer_that_was_lost_may_have_left)
{
	peer_lose(p, PEER_LOST, "its process ended");
	peer_gone(p, false);
	is(PEER_LEFT, XR_E_NOTFOUND, LEFT);
}

Test(peer_send, a_peer_that_the_group_finds_dead_is_lost)
{
	peer_gone(p, true);
	cr_expect(peer_is_gone(p));
	is(PEER_LOST, XR_E_PEER_LOST,
		"lost one (1): the group has found it dead");
	cr_expect_neq(atomic_load(&p->loss), 0);
}

Test(peer_send, a_peer_is_connected_when_it_is_needed)
{
	becomes = PEER_UP;
	peer_reach(p);
	cr_expect_eq(connects, 0);
	atomic_store(&p->state, PEER_NEW);
	peer_reach(p);
	cr_expect_eq(connects, 1);
	atomic_store(&p->state, PEER_NEW);
	cr_expect_eq(send_text("ab"), XR_OK);
	cr_expect_eq(connects, 2);
	cr_expect(sent("ab"));
	cr_expect_eq(send_text("cd"), XR_OK);
	cr_expect_eq(connects, 2);
	atomic_store(&p->state, PEER_NEW);
	becomes = PEER_LOST;
	cr_expect_eq(send_text("ef"), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1)");
	cr_expect_eq(out.count, 2);
}

Test(peer_send, a_link_is_closed_if_it_is_the_peers)
{
	peer_unlink(p, (struct xr_link *)&carrier);
	cr_expect_eq(out.closed, 0);
	cr_expect_not_null(p->link);
	peer_unlink(p, (struct xr_link *)&out);
	cr_expect_eq(out.closed, 1);
	cr_expect_null(p->link);
	peer_free(p);
	cr_expect_eq(out.closed, 1);
	p = NULL;
}

Test(peer_send, what_a_carrier_can_is_asked_of_it)
{
	const struct xr_part three = { "abc", 3 }, two = { "ab", 2 };

	cr_expect_not(peer_can_lend(p, &three));
	cr_expect_not(peer_unsend(p, &out));
	can = unsent = true;
	cr_expect(peer_can_lend(p, &three));
	cr_expect_not(peer_can_lend(p, &two));
	cr_expect(peer_unsend(p, &out));
	cr_expect_not(peer_unsend(p, &can));
	carrier.caps = 0;
	carrier.unsend = NULL;
	cr_expect_not(peer_can_lend(p, &three));
	cr_expect_not(peer_unsend(p, &out));
	carrier.caps = XR_CARRIER_LENDS;
	carrier.unsend = unsend;
	p->link = NULL;
	cr_expect_not(peer_can_lend(p, &three));
	cr_expect_not(peer_unsend(p, &out));
}

/* --- sending ----------------------------------------------------------------------------- */

Test(peer_send, what_went_is_counted)
{
	const struct xr_part loan = { "abc", 3 };
	struct xr_message m = message("ab");

	m.loans = &loan;
	m.loan_count = 1;
	cr_expect_eq(peer_send(p, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(atomic_load(&p->bytes_out), 5);
	cr_expect_eq(atomic_load(&p->calls), 1);
	m.record.kind = MESSAGE_ONEWAY;
	m.loan_count = 0;
	cr_expect_eq(peer_send(p, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(atomic_load(&p->bytes_out), 7);
	cr_expect_eq(atomic_load(&p->calls), 2);
	m.record.kind = MESSAGE_REPLY;
	cr_expect_eq(peer_send(p, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(atomic_load(&p->bytes_out), 9);
	cr_expect_eq(atomic_load(&p->calls), 2);
	cr_expect_eq(figure(FIGURE_BYTES_OUT), 9);
	out.status = XR_E_RANGE;
	cr_expect_neq(peer_send(p, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(atomic_load(&p->bytes_out), 9);
	cr_expect_eq(figure(FIGURE_BYTES_OUT), 9);
}

Test(peer_send, a_message_that_does_not_go_is_an_error_that_names_the_peer)
{
	const struct xr_part loans[2] = { { "a", 1 }, { "b", 1 } };
	struct xr_message m = message("abc");
	char words[200];

	m.loans = loans;
	m.loan_count = 2;
	out.status = XR_E_RANGE;
	cr_expect_eq(peer_send(p, &m, NULL, NULL, &err), XR_E_RANGE);
	snprintf(words, sizeof(words),
		"one (1): a message of 3 bytes, with 2 loans: there can be 1 TiB and %u",
		XR_LOANS_MAX);
	cr_expect_str_eq(err.text, words);
	out.status = XR_E_NOMEM;
	cr_expect_eq(peer_send(p, &m, NULL, NULL, &err), XR_E_NOMEM);
	snprintf(words, sizeof(words), "one (1): %s",
		xr_status_text(XR_E_NOMEM));
	cr_expect_str_eq(err.text, words);
	cr_expect_null(send_queue_first(&p->queue));
}

/* A carrier copies 4 bytes by itself; of more it gets a copy that it may keep. */
Test(peer_send, what_is_long_is_copied_once)
{
	cr_expect_eq(send_text("abcd"), XR_OK);
	cr_expect(sent("abcd"));
	cr_expect_eq(out.parts, 2);
	cr_expect_null(out.token);
	cr_expect_eq(send_text("abcde"), XR_OK);
	cr_expect(sent("abcde"));
	cr_expect_eq(out.parts, 1);
	cr_expect_not_null(out.token);
	cr_expect_not(out.lent);
	cr_expect_eq(atomic_load(&p->copied), 0);
	out.keeps = true;
	cr_expect_eq(send_text("abcdef"), XR_OK);
	cr_expect_eq(atomic_load(&p->copied), 6);
	cr_expect_eq(atomic_load(&bells), 0);
	out.token->sent(out.token);
	cr_expect_eq(atomic_load(&p->copied), 0);
	/* There may be room for a message that waits. */
	cr_expect_eq(atomic_load(&bells), 0);
	cr_expect_eq(send_text("abcdef"), XR_OK);
	out.status = XR_E_AGAIN;
	cr_expect_eq(post("x"), XR_OK);
	atomic_store(&bells, 0);
	out.token->sent(out.token);
	cr_expect_eq(atomic_load(&bells), 1);
}

Test(peer_send, a_copy_without_memory_is_not_sent)
{
	for (unsigned at = 1; at <= 2; at++) {
		until_short = at;
		cr_expect_eq(send_text("abcdef"), XR_E_NOMEM);
		cr_expect_eq(until_short, 0);
		cr_expect_eq(atomic_load(&p->copied), 0);
	}
	cr_expect_eq(out.tries, 0);
}

static unsigned freed;

static void
note_freed(void *what)
{
	cr_expect_eq(what, &freed);
	freed++;
}

/* It is lent to the carrier, until that has sent it. */
Test(peer_send, a_parcel_is_not_copied)
{
	struct parcel *parcel = parcel_new(note_freed, &freed);
	const struct xr_message m = message("abcdef");

	cr_expect_eq(peer_send(p, &m, NULL, parcel, &err), XR_OK);
	cr_expect_eq(out.parts, 2);
	cr_expect(out.more);
	cr_expect_eq(out.token, &parcel->token);
	cr_expect_eq(atomic_load(&parcel->pending), 0);
	out.keeps = true;
	cr_expect_eq(peer_send(p, &m, NULL, parcel, &err), XR_OK);
	cr_expect_eq(atomic_load(&parcel->pending), 1);
	parcel_unref(parcel);
	cr_expect_eq(freed, 0);
	out.token->sent(out.token);
	cr_expect_eq(freed, 1);
	/* Nor one that was refused. */
	parcel = parcel_new(note_freed, &freed);
	out.status = XR_E_RANGE;
	cr_expect_eq(peer_send(p, &m, NULL, parcel, &err), XR_E_RANGE);
	cr_expect_eq(atomic_load(&parcel->pending), 0);
	parcel_unref(parcel);
	cr_expect_eq(freed, 2);
}

/* --- the queue ------------------------------------------------------------------------------ */

static uint32_t
flush(void)
{
	return peer_flush(NULL, 1);
}

Test(peer_send, what_has_no_room_is_sent_later_in_order)
{
	out.status = XR_E_AGAIN;
	cr_expect_eq(flush(), 0);
	cr_expect_eq(post("ab"), XR_OK);
	cr_expect_eq(atomic_load(&bells), 1);
	cr_expect_eq(out.tries, 1);
	cr_expect(send_queue_any());
	/* What comes later waits behind it. */
	out.status = XR_OK;
	cr_expect_eq(post("abcdef"), XR_OK);
	cr_expect_eq(out.tries, 1);
	cr_expect_eq(atomic_load(&bells), 2);
	cr_expect_eq(atomic_load(&p->bytes_out), 0);
	out.status = XR_E_AGAIN;
	cr_expect_eq(flush(), 0);
	cr_expect_eq(out.tries, 2);
	out.status = XR_OK;
	cr_expect_eq(flush(), 2);
	cr_expect_eq(out.count, 2);
	cr_expect(sent("abcdef"));
	cr_expect_not(out.more);
	cr_expect_eq(atomic_load(&p->bytes_out), 8);
	cr_expect_eq(atomic_load(&p->calls), 2);
	cr_expect_not(send_queue_any());
	cr_expect_null(send_queue_first(&p->queue));
	cr_expect_eq(flush(), 0);
	cr_expect_eq(out.tries, 4);
}

/* A long one that is queued is copied for the carrier once. */
Test(peer_send, what_is_queued_waits_for_memory)
{
	out.status = XR_E_AGAIN;
	cr_expect_eq(post("abcdef"), XR_OK);
	out.status = XR_OK;
	for (unsigned at = 1; at <= 2; at++) {
		until_short = at;
		cr_expect_eq(flush(), 0);
		cr_expect_eq(until_short, 0);
		cr_expect_not_null(send_queue_first(&p->queue));
	}
	/* And for others that the carrier has. */
	atomic_store(&p->copied, (size_t)64 << 20);
	cr_expect_eq(flush(), 0);
	cr_expect_eq(out.tries, 1);
	atomic_store(&p->copied, 0);
	out.status = XR_E_AGAIN;
	cr_expect_eq(flush(), 0);
	cr_expect_eq(atomic_load(&p->copied), 6);
	cr_expect_eq(flush(), 0);
	cr_expect_eq(atomic_load(&p->copied), 6);
	out.status = XR_OK;
	until_short = 1;
	cr_expect_eq(flush(), 1);
	cr_expect_eq(until_short, 1);
	until_short = 0;
	cr_expect(sent("abcdef"));
	cr_expect_eq(atomic_load(&p->copied), 0);
}

Test(peer_send, what_fails_is_taken_out_of_the_queue)
{
	out.status = XR_E_AGAIN;
	cr_expect_eq(post("ab"), XR_OK);
	cr_expect_eq(post("cd"), XR_OK);
	out.status = XR_E_RANGE;
	cr_expect_eq(flush(), 2);
	cr_expect_null(send_queue_first(&p->queue));
	cr_expect_eq(atomic_load(&p->bytes_out), 0);
	/* Also all of it, when the peer is lost. */
	out.status = XR_E_AGAIN;
	cr_expect_eq(post("ab"), XR_OK);
	peer_lose(p, PEER_LOST, "on purpose");
	cr_expect_null(send_queue_first(&p->queue));
	cr_expect_not(send_queue_any());
	cr_expect_eq(post("ab"), XR_E_PEER_LOST);
}

Test(peer_send, nothing_is_queued_without_memory)
{
	out.status = XR_E_AGAIN;
	until_short = 1;
	cr_expect_eq(post("ab"), XR_E_NOMEM);
	cr_expect_null(send_queue_first(&p->queue));
	cr_expect_not(send_queue_any());
}

static enum xr_status busy_status;
static uint32_t busy_flushed;

static void *
post_while_busy(void *unused)
{
	busy_status = post("cd");
	busy_flushed = flush();
	return unused;
}

Test(peer_send, who_may_not_wait_does_not_wait_for_who_sends)
{
	pthread_t thread;

	out.status = XR_E_AGAIN;
	cr_expect_eq(post("ab"), XR_OK);
	out.status = XR_OK;
	pthread_mutex_lock(&p->lock);
	cr_assert_eq(pthread_create(&thread, NULL, post_while_busy, NULL), 0);
	pthread_join(thread, NULL);
	pthread_mutex_unlock(&p->lock);
	cr_expect_eq(busy_status, XR_E_AGAIN);
	cr_expect_eq(busy_flushed, 0);
	cr_expect_eq(out.count, 0);
	cr_expect_eq(flush(), 1);
	cr_expect(sent("ab"));
}

/* --- senders that wait -------------------------------------------------------------------------- */

struct sender {
	pthread_t thread;
	const char *text;
	struct parcel *parcel;
	struct due due;
	enum xr_status status;
	struct xr_error err;
};

static void *
wait_for_room(void *arg)
{
	struct sender *s = arg;
	const struct xr_part part = { s->text, strlen(s->text) };
	const struct xr_message m = { .record.kind = MESSAGE_REQUEST,
		.parts = &part,
		.count = 1,
		.more = true };

	s->status = peer_send(p, &m, &s->due, s->parcel, &s->err);
	return NULL;
}

/* start() - it has no room, and waits. */
static void
start(struct sender *s)
{
	out.status = XR_E_AGAIN;
	s->due.timeout = INT64_MAX;
	cr_assert_eq(pthread_create(&s->thread, NULL, wait_for_room, s), 0);
	while (!send_queue_is_filled(&p->queue))
		sched_yield();
	/* It has given the lock back. */
	pthread_mutex_lock(&p->lock);
	pthread_mutex_unlock(&p->lock);
}

static enum xr_status
finish(struct sender *s)
{
	pthread_join(s->thread, NULL);
	return s->status;
}

Test(peer_send, a_sender_waits_until_there_is_room)
{
	struct sender s = { .text = "abcd" }, longer = { .text = "abcdef" };

	start(&s);
	cr_expect_eq(atomic_load(&bells), 0);
	out.status = XR_OK;
	cr_expect_eq(flush(), 1);
	cr_expect_eq(finish(&s), XR_OK);
	cr_expect(sent("abcd"));
	cr_expect_not(out.more);
	cr_expect_eq(atomic_load(&p->bytes_out), 4);
	cr_expect_eq(atomic_load(&p->calls), 1);
	start(&longer);
	out.status = XR_OK;
	cr_expect_eq(flush(), 1);
	cr_expect_eq(finish(&longer), XR_OK);
	cr_expect(sent("abcdef"));
	cr_expect_eq(out.parts, 1);
	cr_expect_eq(atomic_load(&p->copied), 0);
	cr_expect_not(send_queue_any());
}

Test(peer_send, a_sender_with_a_parcel_keeps_it)
{
	struct sender s = { .text = "abcdef",
		.parcel = parcel_new(note_freed, &freed) };

	start(&s);
	out.status = XR_OK;
	cr_expect_eq(flush(), 1);
	cr_expect_eq(finish(&s), XR_OK);
	cr_expect_eq(out.token, &s.parcel->token);
	cr_expect_eq(freed, 0);
	parcel_unref(s.parcel);
	cr_expect_eq(freed, 1);
}

Test(peer_send, a_sender_without_memory_fails)
{
	struct sender s = { .text = "abcdef" };

	start(&s);
	out.status = XR_OK;
	until_short = 1;
	cr_expect_eq(flush(), 1);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(finish(&s), XR_E_NOMEM);
	cr_expect_eq(out.count, 0);
}

Test(peer_send, a_sender_whose_peer_is_lost_hears_why)
{
	struct sender s = { .text = "ab" };

	start(&s);
	peer_lose(p, PEER_LOST, "on purpose");
	cr_expect_eq(finish(&s), XR_E_PEER_LOST);
	cr_expect_str_eq(s.err.text, "lost one (1): on purpose");
}

Test(peer_send, a_sender_does_not_wait_longer_than_it_may)
{
	const struct xr_message m = message("ab");
	struct due due = { .timeout = NS_PER_MS };

	out.status = XR_E_AGAIN;
	cr_expect_eq(peer_send(p, &m, &due, NULL, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "one (1) takes nothing more");
	cr_expect(due.no_room);
	cr_expect_null(send_queue_first(&p->queue));
	cr_expect_not(send_queue_any());
	cr_expect_eq(atomic_load(&bells), 0);
	/* Those behind it may go now. */
	cr_expect_eq(post("cd"), XR_OK);
	atomic_store(&bells, 0);
	due = (struct due){ .timeout = NS_PER_MS };
	cr_expect_eq(peer_send(p, &m, &due, NULL, &err), XR_E_TIMEOUT);
	cr_expect_eq(atomic_load(&bells), 1);
	/* Other failures leave @due as it is. */
	out.status = XR_E_RANGE;
	cr_expect_eq(flush(), 1);
	due = (struct due){ .timeout = NS_PER_MS };
	cr_expect_eq(peer_send(p, &m, &due, NULL, &err), XR_E_RANGE);
	cr_expect_not(due.no_room);
}

Test(peer_send, senders_are_refused_when_the_agent_closes)
{
	struct sender s = { .text = "ab" };
	char words[100];

	cr_expect_eq(post("xy"), XR_OK);
	start(&s);
	state = AGENT_CLOSING;
	peer_refuse_senders();
	cr_expect_eq(finish(&s), XR_E_CLOSED);
	snprintf(words, sizeof(words), "one (1): %s",
		xr_status_text(XR_E_CLOSED));
	cr_expect_str_eq(s.err.text, words);
	cr_expect_eq(send_text("ab"), XR_E_CLOSED);
	cr_expect_str_eq(err.text, words);
	/* What need not wait goes yet. */
	cr_expect_eq(post("cd"), XR_OK);
	out.status = XR_OK;
	cr_expect_eq(flush(), 1);
	cr_expect(sent("cd"));
	cr_expect_eq(send_text("ef"), XR_OK);
}

static void *
flush_later(void *unused)
{
	/* A mark behind the message. */
	while (TAILQ_NEXT(send_queue_first(&p->queue), list) == NULL)
		sched_yield();
	pthread_mutex_lock(&p->lock);
	out.status = XR_OK;
	pthread_mutex_unlock(&p->lock);
	cr_expect_eq(flush(), 2);
	return unused;
}

Test(peer_send, what_is_queued_is_awaited)
{
	pthread_t thread;

	peer_await_flushed(INT64_MAX);
	out.status = XR_E_AGAIN;
	cr_expect_eq(post("ab"), XR_OK);
	peer_await_flushed(clock_now());
	cr_expect_not_null(send_queue_first(&p->queue));
	cr_expect_null(TAILQ_NEXT(send_queue_first(&p->queue), list));
	cr_assert_eq(pthread_create(&thread, NULL, flush_later, NULL), 0);
	peer_await_flushed(INT64_MAX);
	pthread_join(thread, NULL);
	cr_expect(sent("ab"));
	cr_expect_eq(out.count, 1);
	cr_expect_eq(atomic_load(&p->bytes_out), 2);
	cr_expect_eq(atomic_load(&p->calls), 1);
	cr_expect_null(send_queue_first(&p->queue));
}
