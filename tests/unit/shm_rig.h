/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_rig.h - ranks that are processes, with a supervisor, for tests of shared
 * memory: of the carrier alone, without an agent.
 *
 * The body of a FORKED_TEST is the supervisor: it makes the segment and the page of
 * notes, makes ranks with rig_rank(), and does what xrun does when one ended
 * (rig_bury()). A rank opens the carrier (rig_open()), writes its address into the
 * notes, and connects to those that it finds there.
 *
 * A rank sends messages of each kind, whose bytes follow from their number, and
 * looks at each byte that comes.
 */
#ifndef TESTS_UNIT_SHM_RIG_H
#define TESTS_UNIT_SHM_RIG_H

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "segment/owner.h"
#include "segment/sweep.h"
#include "tests/unit/forked.h"
#include "worker/shm/cma.h"
#include "worker/shm/link.h"
#include "worker/shm/mark.h"
#include "worker/shm/own.h"
#include "worker/shm/plane.h"
#include "worker/shm/shm.h"

#define RIG_RANKS  4
#define RIG_SPARE  2
#define RIG_SLOTS  (RIG_RANKS + RIG_SPARE)
#define RIG_SIZE   (UINT64_C(256) << 20)
#define RIG_HELD   8                   /* loans that a rank keeps */
#define RIG_BULK   (UINT64_C(3) << 19) /* three pieces, or 24 windows */
#define RIG_HANDLE (UINT64_C(100) << 10)

/* What ranks tell each other beside the segment. */
struct rig_notes {
	_Atomic uint32_t incarnation[RIG_RANKS]; /* 0: not there */
	char address[RIG_RANKS][XR_ADDRESS_MAX + 1];
	_Atomic uint32_t delivered[RIG_RANKS]; /* to it */
	_Atomic uint32_t from[RIG_RANKS];      /* of it, to anybody */
	_Atomic uint32_t lost[RIG_RANKS];      /* times */
	char why[RIG_RANKS][128];
	_Atomic int64_t lost_at[RIG_RANKS]; /* ns */
	_Atomic uint32_t wrong[RIG_RANKS];  /* bytes that were others */
	_Atomic uint32_t go, stop;          /* rounds */
	_Atomic uint32_t ready[RIG_RANKS];  /* the round that it has begun */
	_Atomic uint32_t idle[RIG_RANKS];   /* .. that it has ended */
	_Atomic uint32_t turns;             /* of a rank that repeats itself */
};

static struct rig_notes *notes;
static int rig_fd = -1;
static struct segment_map rig_map;

/* --- the supervisor ------------------------------------------------------- */

static inline void
rig_make(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = RIG_RANKS,
		.spare = RIG_SPARE,
		.most = RIG_SIZE,
	};
	struct segment_tag tag;
	struct stat st;
	char text[32];

	rig_fd = segment_create(&wish);
	NEED(rig_fd != -1 && fstat(rig_fd, &st) == 0);
	tag = (struct segment_tag){ .fd = rig_fd, .inode = st.st_ino };
	NEED(segment_map(&tag, &rig_map));
	snprintf(text, sizeof(text), "%d:%lu", rig_fd,
		(unsigned long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", text, 1);
	notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(notes != MAP_FAILED);
}

/* rig_rank() - a process that is rank @rank, runs @fn and ends well. */
static inline pid_t
rig_rank(uint32_t rank, void (*fn)(uint32_t rank))
{
	char text[16];
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(FORKED_PATIENCE_S);
	snprintf(text, sizeof(text), "%u", rank);
	setenv("XRUN_LOCAL_RANK", text, 1);
	fn(rank);
	_exit(forked_wrong > 0);
}

/* rig_bury() - what the supervisor does once it has reaped rank @rank. */
static inline void
rig_bury(uint32_t rank)
{
	struct segment_view view;

	atomic_store(&notes->incarnation[rank], 0);
	NEED(segment_look(rig_fd, rank, clock_now(), &view));
	segment_recycle(rig_fd, rank, view.gen);
	if (view.open)
		segment_alarm(rig_fd, RIG_SLOTS);
	segment_reclaim(rig_fd, RIG_RANKS, RIG_SLOTS);
}

/* rig_spans() - how many are of @slot; RIG_SLOTS: of any. */
static inline uint32_t
rig_spans(uint32_t slot)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rig_map.plan.spans; i++) {
		uint64_t word = atomic_load(&segment_spans(&rig_map)[i]);

		count += word != 0 &&
			(slot == RIG_SLOTS || segment_span_slot(word) == slot);
	}
	return count;
}

/* rig_rings() - words of the directory that are not 0. */
static inline uint32_t
rig_rings(void)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < RIG_SLOTS; r++)
		for (uint32_t w = 0; w < RIG_SLOTS; w++)
			count += atomic_load(segment_dir(&rig_map, r, w)) != 0;
	return count;
}

/* rig_holds() - entries of the table of @slot. */
static inline uint32_t
rig_holds(uint32_t slot)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SEGMENT_HOLDS; i++)
		count += atomic_load(&segment_holds(&rig_map, slot)[i]) != 0;
	return count;
}

/* --- a rank --------------------------------------------------------------- */

struct rig_held {
	const void *data;
	size_t len;
	void *own;
};

struct rig_peer {
	uint32_t rank;
	struct xr_link *link;
	bool lost;
};

static struct {
	uint32_t rank, incarnation;
	struct shm *shm;
	void *self;
	struct rig_peer peer[RIG_RANKS];
	struct rig_held held[RIG_HELD];
	uint32_t next_held;
	uint64_t sent; /* messages */
	uint32_t mad;  /* 1 and the rank of whom nothing is believed */
	unsigned char *bulk;
	struct xr_part bulk_part;
	bool bulk_out;
} rig;

/* What stands at @at of message @number. */
static inline unsigned char
rig_byte(uint64_t number, uint64_t at)
{
	return (unsigned char)(number * 7 + at + at / 251);
}

/* Rows of 251 bytes, each of which counts on from where the pattern has it. */
static inline void
rig_fill(unsigned char *to, uint64_t number, size_t len)
{
	unsigned char count[256 + 251];

	for (size_t i = 0; i < sizeof(count); i++)
		count[i] = (unsigned char)i;
	for (size_t at = 0; at < len; at += 251)
		memcpy(to + at, count + rig_byte(number, at),
			len - at < 251 ? len - at : 251);
}

/* Some bytes of all, the first and the last among them. */
static inline void
rig_check(const void *data, uint64_t number, size_t len)
{
	const unsigned char *at = data;
	size_t step = len > 4096 ? 509 : 1;
	bool wrong = false;

	for (size_t i = 0; i < len; i += step)
		wrong |= at[i] != rig_byte(number, i);
	if (wrong || (len > 0 && at[len - 1] != rig_byte(number, len - 1)))
		atomic_fetch_add(&notes->wrong[rig.rank], 1);
}

static inline void
rig_drop(struct rig_held *h)
{
	if (h->own != NULL)
		shm_free(rig.shm, h->data, h->own);
	*h = (struct rig_held){ 0 };
}

static inline void
rig_keep(const void *data, size_t len, void *own)
{
	struct rig_held *h = &rig.held[rig.next_held++ % RIG_HELD];

	if (own == NULL)
		return;
	rig_drop(h);
	*h = (struct rig_held){ data, len, own };
}

static inline void
rig_deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	const struct rig_peer *p = peer;
	const void *data = body->data;
	size_t len = body->len;
	void *own = NULL;

	(void)ctx;
	if (p->rank + 1 != rig.mad)
		rig_check(body->data, record->corr, body->len);
	for (uint32_t i = 0; i < body->loan_count; i++) {
		if (p->rank + 1 != rig.mad)
			rig_check(body->loans[i].data, record->corr,
				body->loans[i].len);
		data = shm_loan_take(rig.shm, body, i, &len, &own);
		rig_keep(data, len, own);
	}
	if (body->loan_count == 0 && body->len > 500) {
		own = shm_carrier.body_take(rig.self, body, &data);
		rig_keep(data, body->len, own);
	}
	atomic_fetch_add(&notes->delivered[rig.rank], 1);
	atomic_fetch_add(&notes->from[p->rank], 1);
}

static inline void *
rig_place(void *ctx, void *peer, const struct xr_record *record, uint64_t len)
{
	(void)ctx, (void)peer, (void)record, (void)len;
	return NULL;
}

static inline void
rig_sent(void *ctx, void *token)
{
	(void)ctx, (void)token;
	rig.bulk_out = false;
}

static inline void *
rig_accepted(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *link)
{
	struct rig_peer *p;

	(void)ctx, (void)incarnation;
	if (id >= RIG_RANKS || rig.peer[id].link != NULL)
		return NULL;
	p = &rig.peer[id];
	*p = (struct rig_peer){ .rank = id, .link = link };
	return p;
}

static inline void
rig_lost(void *ctx, void *peer, struct xr_link *link, const char *why)
{
	struct rig_peer *p = peer;

	(void)ctx, (void)link;
	p->lost = true;
	snprintf(notes->why[rig.rank], sizeof(notes->why[0]), "%s", why);
	atomic_store(&notes->lost_at[rig.rank], clock_now());
	atomic_fetch_add(&notes->lost[rig.rank], 1);
}

static inline void
rig_awake(void *ctx)
{
	(void)ctx;
}

static const struct xr_carrier_host rig_host = {
	.size = sizeof(rig_host),
	.deliver = rig_deliver,
	.place = rig_place,
	.sent = rig_sent,
	.accepted = rig_accepted,
	.lost = rig_lost,
	.awake = rig_awake,
};

/* rig_open() - the carrier of this process, whose end is told of. */
static inline void
rig_open(uint32_t rank, uint32_t incarnation)
{
	const struct xr_carrier_opts opts = {
		.size = sizeof(opts),
		.id = rank,
		.incarnation = incarnation,
	};

	rig.rank = rank;
	rig.incarnation = incarnation;
	NEED(shm_open_segment(&rig.shm, NULL) == XR_OK);
	NEED(shm_slot(rig.shm) == rank && shm_fd(rig.shm) == rig_fd);
	NEED(shm_alive(rig.shm));
	NEED(shm_carrier.open(&rig_host, &opts, &rig.self, NULL) == XR_OK);
	rig.bulk = malloc(RIG_BULK);
	NEED(rig.bulk != NULL);
	NEED(shm_carrier.address(rig.self, notes->address[rank],
		     XR_ADDRESS_MAX + 1) > 0);
	atomic_store(&notes->incarnation[rank], incarnation);
}

/* rig_connect() - a link to rank @to, which is awaited. */
static inline struct rig_peer *
rig_connect(uint32_t to)
{
	struct rig_peer *p = &rig.peer[to];
	uint32_t incarnation;

	while ((incarnation = atomic_load(&notes->incarnation[to])) == 0)
		sched_yield();
	if (p->link != NULL)
		return p;
	*p = (struct rig_peer){ .rank = to };
	NEED(shm_carrier.connect(rig.self, notes->address[to], to, incarnation,
		     p, &p->link, NULL) == XR_OK);
	return p;
}

static inline void
rig_disconnect(struct rig_peer *p)
{
	if (p->link != NULL)
		shm_carrier.link_close(p->link);
	p->link = NULL;
}

/* rig_drop_all() - this process holds nothing any more. */
static inline void
rig_drop_all(void)
{
	for (uint32_t i = 0; i < RIG_HELD; i++)
		rig_drop(&rig.held[i]);
}

/* rig_close() - and is no rank any more. */
static inline void
rig_close(void)
{
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		rig_disconnect(&rig.peer[i]);
	shm_carrier.free(rig.self);
	shm_alive_end(rig.shm);
}

/* --- sending -------------------------------------------------------------- */

static inline enum xr_status
rig_post(struct rig_peer *p, const struct xr_part *part, void *token,
	const struct xr_part *loan, bool *pending)
{
	const struct xr_message m = {
		.record = { .kind = 1, .corr = rig.sent },
		.parts = part,
		.count = 1,
		.token = token,
		.loans = loan,
		.loan_count = loan != NULL,
	};

	*pending = false;
	return shm_carrier.send(p->link, &m, pending);
}

static inline enum xr_status
rig_send_bulk(struct rig_peer *p)
{
	if (rig.bulk_out)
		return XR_E_AGAIN;
	rig.bulk_part = (struct xr_part){ rig.bulk, RIG_BULK };
	rig_fill(rig.bulk, rig.sent, RIG_BULK);
	return rig_post(p, &rig.bulk_part, NULL, NULL, &rig.bulk_out);
}

/* The body stays in the arena, where the reader may have it as long as it will. */
static inline enum xr_status
rig_send_handle(struct rig_peer *p)
{
	void *own, *data = shm_alloc(rig.shm, RIG_HANDLE, &own);
	const struct xr_part part = { data, RIG_HANDLE };
	const struct xr_message m = {
		.record = { .kind = 1, .corr = rig.sent },
		.parts = &part,
		.count = 1,
		.lent = true,
	};
	enum xr_status status;
	bool pending = false;

	if (data == NULL)
		return XR_E_NOMEM;
	rig_fill(data, rig.sent, RIG_HANDLE);
	status = shm_carrier.send(p->link, &m, &pending);
	EXPECT(!pending);
	shm_free(rig.shm, data, own);
	return status;
}

/* Of ours, or back what was lent to us by him. */
static inline enum xr_status
rig_send_loan(struct rig_peer *p, size_t len)
{
	unsigned char body[40];
	const struct xr_part part = { body, sizeof(body) };
	void *own, *data = shm_alloc(rig.shm, len, &own);
	struct xr_part loan = { data, len };
	enum xr_status status;
	bool pending;

	if (data == NULL)
		return XR_E_NOMEM;
	rig_fill(body, rig.sent, sizeof(body));
	rig_fill(data, rig.sent, len);
	status = rig_post(p, &part, NULL, &loan, &pending);
	shm_free(rig.shm, data, own);
	return status;
}

static inline enum xr_status
rig_send_short(struct rig_peer *p, size_t len)
{
	unsigned char body[6000];
	const struct xr_part part = { body, len };
	bool pending;

	rig_fill(body, rig.sent, len);
	return rig_post(p, &part, NULL, NULL, &pending);
}

enum rig_kind {
	RIG_SHORT,
	RIG_LINES,
	RIG_EAGER,
	RIG_LOAN,
	RIG_A_HANDLE,
	RIG_A_BULK,
	RIG_KINDS
};

/* rig_send() - the next message, of @kind. */
static inline enum xr_status
rig_send(struct rig_peer *p, enum rig_kind kind)
{
	enum xr_status status = XR_E_INVAL;

	switch (kind) {
	case RIG_SHORT:
		status = rig_send_short(p, 16);
		break;
	case RIG_LINES:
		status = rig_send_short(p, 300);
		break;
	case RIG_EAGER:
		status = rig_send_short(p, 5000);
		break;
	case RIG_LOAN:
		status = rig_send_loan(p, 1000);
		break;
	case RIG_A_HANDLE:
		status = rig_send_handle(p);
		break;
	case RIG_A_BULK:
		status = rig_send_bulk(p);
		break;
	case RIG_KINDS:
		break;
	}
	if (status == XR_OK)
		rig.sent++;
	return status;
}

/* rig_used() - blocks of this process's arena that have a reference. */
static inline uint32_t
rig_used(void)
{
	const struct arena *a = &rig.shm->arena;
	const struct arena_span *last = NULL, *s;
	uint32_t used = 0;

	for (uint32_t i = 0; i < a->map.plan.spans; i++) {
		s = atomic_load(&a->span[i]);
		if (s != NULL && s != last)
			used += s->used;
		last = s;
	}
	return used;
}

/* rig_sleep() - until rung, or so many ns. */
static inline void
rig_sleep(int64_t ns)
{
	if (shm_arm(rig.shm))
		shm_sleep(rig.shm, clock_now() + ns);
	shm_disarm(rig.shm);
}

#endif /* TESTS_UNIT_SHM_RIG_H */
