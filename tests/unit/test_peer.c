/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer.c - sending to who is lost: the cause is named, by whomever it is met. */
#include <sched.h>
#include <semaphore.h>

#include "base/clock.h"
#include "tests/unit/agent_rig.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/due.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/peer.h"

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

/* The clock of a thread is ahead by so much, and gains a step with each look at it. */
static _Thread_local int64_t ahead_ns, step_ns;

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return __real_clock_now() + (ahead_ns += step_ns);
}

/* Waiting for a cause looks at the clock until 1 s is over. Time in which the machine runs
 * something else only ends it earlier. */
Test(peer, whose_time_is_over_does_not_wait_for_the_cause)
{
	begin_broken();
	step_ns = XR_SECONDS(1) / 100;
	cr_expect_eq(ask_within("add_one", INTS(1), XR_SECONDS(1) / 100, NULL,
			     &err),
		XR_E_PEER_LOST);
	step_ns = 0;
	cr_expect_lt(ahead_ns, XR_SECONDS(1) / 2);
}

Test(peer, each_function_that_it_knows_is_counted_by_itself)
{
	struct peer p = { .id = 1 };

	for (uint32_t i = 0; i < PEER_METHODS; i += 67) {
		peer_learns(&p, i);
		for (uint32_t k = 0; k < PEER_METHODS; k++)
			cr_expect_eq(peer_knows(&p, k), k % 67 == 0 && k <= i,
				"%u of %u", k, i);
	}
	peer_learns(&p, PEER_METHODS);
	cr_expect_not(peer_knows(&p, PEER_METHODS));
}

static unsigned losses;

static void
count_loss(struct peer *p)
{
	(void)p;
	losses++;
}

Test(peer, a_guest_that_is_set_twice_is_called_once)
{
	static const struct guest one = { .lost = count_loss },
				  other = { .lost = count_loss };

	guest_set(&one);
	guest_set(&one);
	guest_lost(NULL);
	cr_expect_eq(losses, 1);
	guest_set(&other);
	guest_set(&one);
	guest_lost(NULL);
	cr_expect_eq(losses, 3);
}

/* --- messages that wait for room ----------------------------------------------------- */

static _Atomic uint32_t bells;
static _Atomic bool
	is_refusing; /* the next sender meets peer_refuse_senders() */
static _Atomic pid_t closer;
static _Atomic bool is_closed;

void __real_lead_bell(void);
void __wrap_lead_bell(void);
void __real_send_queue_add(struct send_queue *q, struct send_queue_entry *e);
void __wrap_send_queue_add(struct send_queue *q, struct send_queue_entry *e);

void
__wrap_lead_bell(void)
{
	atomic_fetch_add(&bells, 1);
	__real_lead_bell();
}

static void *
close_agent(void *arg)
{
	(void)arg;
	atomic_store(&closer, gettid());
	peer_refuse_senders();
	atomic_store(&is_closed, true);
	return NULL;
}

/* Returns true if thread @tid sleeps. */
static bool
sleeps(pid_t tid)
{
	char path[64], text[512] = { 0 }, *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	end = strrchr(text, ')');
	return end != NULL && end[2] == 'S';
}

/* The agent closes after the sender has found it open: it has ended all waits, or
 * waits for the lock. */
void
__wrap_send_queue_add(struct send_queue *q, struct send_queue_entry *e)
{
	pthread_t thread;

	if (atomic_exchange(&is_refusing, false)) {
		cr_assert_eq(pthread_create(&thread, NULL, close_agent, NULL),
			0);
		pthread_detach(thread);
		while (!atomic_load(&is_closed) &&
			(atomic_load(&closer) == 0 ||
				!sleeps(atomic_load(&closer))))
			sched_yield();
	}
	__real_send_queue_add(q, e);
}

static enum xr_status
refuse_for_now(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	(void)link;
	(void)m;
	*pending = false;
	return XR_E_AGAIN;
}

static void
begin_full(void)
{
	begin_broken();
	broken.send = refuse_for_now;
}

Test(peer, a_queue_that_ends_keeps_copies_only_if_senders_are_meant)
{
	const struct xr_part part = { "x", 1 };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = &part,
		.count = 1 };
	struct send_queue q;

	send_queue_init(&q);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(send_queue_put(&q, &m, NULL), XR_OK);
	send_queue_end_all(&q, XR_E_CLOSED, true);
	cr_expect_not_null(send_queue_first(&q));
	cr_expect(send_queue_is_filled(&q));
	send_queue_end_all(&q, XR_E_CLOSED, false);
	cr_expect_null(send_queue_first(&q));
	cr_expect_not(send_queue_is_filled(&q));
}

static int let_go; /* parcels */

static void
note_free(void *what)
{
	cr_expect_eq(what, &let_go);
	let_go++;
}

Test(peer, a_queued_message_keeps_its_parcel_until_it_ends)
{
	const struct xr_part parts[] = { { "ab", 2 }, { "cde", 3 } },
			     loan = { "f", 1 };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = parts,
		.count = 2,
		.loans = &loan,
		.loan_count = 1,
		.lent = true,
		.more = true };
	struct parcel *parcel = parcel_new(note_free, &let_go);
	const struct send_queue_entry *e;
	struct send_queue q;

	send_queue_init(&q);
	cr_assert_eq(send_queue_put(&q, &m, parcel), XR_OK);
	parcel_unref(parcel);
	cr_expect_eq(let_go, 0);
	e = send_queue_first(&q);
	cr_assert_not_null(e);
	cr_expect(e->message.count == 2 && e->message.loan_count == 1);
	cr_expect_eq(e->message.parts, e->part);
	cr_expect_eq(memcmp(e->part, parts, sizeof(parts)), 0);
	cr_expect_eq(e->message.loans, e->part + 2);
	cr_expect_eq(memcmp(e->part + 2, &loan, sizeof(loan)), 0);
	cr_expect(e->message.lent && !e->message.more);
	send_queue_end_all(&q, XR_E_CLOSED, false);
	cr_expect_eq(let_go, 1);
	/* What is lent by no parcel is not copied. */
	cr_expect_eq(send_queue_put(&q, &m, NULL), XR_E_NOMEM);
	cr_expect_null(send_queue_first(&q));
}

Test(peer, a_queued_copy_is_one_part)
{
	const struct xr_part parts[] = { { "ab", 2 }, { NULL, 0 },
		{ "cde", 3 } };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = parts,
		.count = 3,
		.lent = true,
		.more = true };
	const struct send_queue_entry *e;
	struct send_queue q;

	send_queue_init(&q);
	cr_assert_eq(send_queue_put(&q, &m, NULL), XR_OK);
	e = send_queue_first(&q);
	cr_assert_not_null(e);
	cr_expect_eq(e->message.count, 1);
	cr_expect_eq(e->part[0].len, 5);
	cr_expect_eq(memcmp(e->part[0].data, "abcde", 5), 0);
	cr_expect(!e->message.lent && !e->message.more);
	cr_expect_null(e->parcel);
	send_queue_end_all(&q, XR_E_CLOSED, false);
}

Test(peer, a_message_that_a_delivering_thread_queues_rings_the_bell)
{
	const struct xr_part part = { "x", 1 };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = &part,
		.count = 1 };

	begin_full();
	lead_deliver_begin();
	atomic_store(&bells, 0);
	cr_expect_eq(peer_send_whole(agent_self(), &m, NULL, NULL, &err),
		XR_OK);
	cr_expect_gt(atomic_load(&bells), 0);
	lead_deliver_end();
}

Test(peer, a_sender_that_begins_to_wait_as_the_agent_closes_is_refused)
{
	const struct xr_part part = { "x", 1 };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = &part,
		.count = 1 };
	struct due due = { .timeout = XR_SECONDS(10) };

	begin_full();
	atomic_store(&is_refusing, true);
	cr_expect_eq(peer_send_whole(agent_self(), &m, &due, NULL, &err),
		XR_E_CLOSED);
}

/* --- copies ------------------------------------------------------------------------- */

static char taken[64]; /* the parts of the last message, in a row */
static uint32_t taken_parts;

static enum xr_status
take_message(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	size_t at = 0;

	(void)link;
	*pending = false;
	taken_parts = m->count;
	for (uint32_t i = 0; i < m->count; i++) {
		cr_assert_leq(at + m->parts[i].len, sizeof(taken));
		memcpy(taken + at, m->parts[i].data, m->parts[i].len);
		at += m->parts[i].len;
	}
	return at == 5 ? XR_OK : XR_E_PROTO;
}

Test(peer, a_carrier_that_copies_nothing_gets_the_parts_as_one_copy)
{
	const struct xr_part parts[] = { { "ab", 2 }, { NULL, 0 },
		{ "cde", 3 } };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = parts,
		.count = 3 };

	begin_broken();
	broken.send = take_message;
	broken.copies = 0;
	cr_expect_eq(peer_send_whole(agent_self(), &m, NULL, NULL, &err),
		XR_OK);
	cr_expect_eq(taken_parts, 1);
	cr_expect_arr_eq(taken, "abcde", 5);
	cr_expect_eq(atomic_load(&agent_self()->copied), 0);
}

static size_t taken_len;

static enum xr_status
take_length(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	(void)link;
	*pending = false;
	for (uint32_t i = 0; i < m->count; i++)
		taken_len += m->parts[i].len;
	return XR_OK;
}

#define COPIES (UINT32_C(64) << 20) /* bytes that wait for a peer at most */

/* With so many bytes that the carrier has kept. Returns true if it went at once. */
static bool
goes(const void *data, size_t len, size_t kept)
{
	const struct xr_part part = { data, len };
	const struct xr_message m = { .record.kind = MESSAGE_ONEWAY,
		.parts = &part,
		.count = 1 };
	struct peer *p = agent_self();
	bool is_queued;

	taken_len = 0;
	atomic_store(&p->copied, kept);
	cr_assert_eq(peer_send_whole(p, &m, NULL, NULL, &err), XR_OK);
	cr_expect_eq(atomic_load(&p->copied), kept);
	pthread_mutex_lock(&p->lock);
	is_queued = send_queue_first(&p->queue) != NULL;
	cr_expect_eq(taken_len, is_queued ? 0 : len);
	send_queue_end_all(&p->queue, XR_E_CLOSED, false);
	pthread_mutex_unlock(&p->lock);
	atomic_store(&p->copied, 0);
	return !is_queued;
}

/* Who delivers queues what does not go. */
Test(peer, copies_for_a_peer_are_64_MiB_at_most_or_one_message)
{
	const struct {
		size_t kept, len;
		bool goes;
	} row[] = {
		{ 0, COPIES + 1, true },
		{ 1, COPIES + 1, false },
		{ 1, COPIES, false },
		{ 0, COPIES, true },
		{ 1, COPIES - 1, true },
		{ COPIES - 5, 5, true },
		{ COPIES - 4, 5, false },
		{ COPIES, 1, false },
		{ COPIES + 1, 1, false },
	};
	char *data = calloc(1, COPIES + 1);

	cr_assert_not_null(data);
	begin_broken();
	broken.send = take_length;
	broken.copies = 0;
	lead_deliver_begin();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		cr_expect_eq(goes(data, row[i].len, row[i].kept), row[i].goes,
			"row %zu", i);
	lead_deliver_end();
	free(data);
}

/* The sanitizers find what is not given back. */
Test(peer, the_end_of_a_peer_gives_back_its_memory)
{
	struct peer *p = peer_new("one", 1, 1);

	cr_assert_not_null(p);
	p->devices = calloc(1, sizeof(*p->devices));
	p->addresses = strdup("shm:1");
	cr_expect_not_null(p->devices);
	cr_expect_not_null(p->addresses);
	peer_free(p);
	peer_free(NULL);
}
