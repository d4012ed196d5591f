/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shm_mad.c - a peer that writes anything into what others read: they lose
 * it, for a reason that they are told, and nobody else.
 *
 * Rank 0 talks to rank 1, which is honest, and to rank 2, which lies in one way
 * after the other: each time it is another process.
 */
#include "tests/unit/shm_rig.h"

#define SURVIVOR 0
#define HONEST   1
#define MAD      2
/* What hangs is ended, with a word of what was waited for, before the alarm does that. */
#define PATIENCE ((FORKED_PATIENCE_S - 10) * NS_PER_S)

#define NONSENSE "it wrote what is no record"

static struct {
	void (*lie)(struct xr_link *link);
	const char *why; /* NULL: whatever becomes of it, in so many turns */
	uint32_t turns;
	bool windows;
} plan;

/* --- lies ----------------------------------------------------------------- */

static uint64_t mad_at; /* memory of who lies */
static uint32_t heard;  /* messages of its slot before its process began */

static struct ring_out *
ring_of(struct xr_link *link)
{
	return &atomic_load(&link->out)->ring;
}

/* A record as it should be, but for what @w says, with @body in it. */
static void
publish(struct xr_link *link, struct ring_word w, const void *body, size_t len)
{
	struct ring_out *out = ring_of(link);
	uint32_t lines = ring_lines(w);
	enum ring_state state;
	struct ring_record *r;

	do
		r = ring_reserve(out, lines, &state);
	while (r == NULL);
	memcpy(w.len <= RING_INLINE ? r->body : (void *)(r->body + 40), body,
		len);
	r->record = (struct xr_record){ .kind = 1 };
	ring_publish(out, w, lines);
	shm_ring_slot(rig.shm, SURVIVOR);
}

static void
publish_word(struct xr_link *link, uint64_t word)
{
	struct ring_out *out = ring_of(link);

	atomic_store(&ring_line(out->head, out->at, out->lines)->word, word);
	shm_ring_slot(rig.shm, SURVIVOR);
}

static void
lie_of_another_lap(struct xr_link *link)
{
	publish_word(link,
		(uint64_t)RING_BODY << 56 |
			ring_sequence(ring_of(link)->at - RING_LINES));
}

static void
lie_of_type_200(struct xr_link *link)
{
	publish_word(link,
		UINT64_C(200) << 56 | ring_sequence(ring_of(link)->at));
}

static void
lie_beyond_the_end(struct xr_link *link)
{
	publish_word(link,
		(uint64_t)RING_BODY << 56 | UINT64_C(0xffff) << 32 |
			ring_sequence(ring_of(link)->at));
}

static void
lie_that_skips_nothing(struct xr_link *link)
{
	publish_word(link,
		(uint64_t)RING_SKIP << 56 | ring_sequence(ring_of(link)->at));
}

static void
lie_that_skips_beyond(struct xr_link *link)
{
	publish_word(link,
		(uint64_t)RING_SKIP << 56 | UINT64_C(0xffff) << 32 |
			ring_sequence(ring_of(link)->at));
}

static void
handle(struct xr_link *link, struct ring_ref ref, uint32_t len)
{
	publish(link, (struct ring_word){ .len = len, .type = RING_HANDLE },
		&ref, sizeof(ref));
}

static void
lie_of_a_handle_that_is_short(struct xr_link *link)
{
	handle(link, (struct ring_ref){ .offset = mad_at }, 8);
}

static void
lie_outside_of_the_arena(struct xr_link *link)
{
	handle(link, (struct ring_ref){ .offset = 0, .len = 64 },
		sizeof(struct ring_ref));
}

static void
lie_beyond_the_arena(struct xr_link *link)
{
	handle(link,
		(struct ring_ref){ .offset = rig_map.plan.size - 64,
			.len = 65 },
		sizeof(struct ring_ref));
}

static void
lie_round_the_address_space(struct xr_link *link)
{
	handle(link, (struct ring_ref){ .offset = mad_at, .len = UINT64_MAX },
		sizeof(struct ring_ref));
}

static void
lie_of_an_offset_far_away(struct xr_link *link)
{
	handle(link, (struct ring_ref){ .offset = UINT64_MAX - 63, .len = 64 },
		sizeof(struct ring_ref));
}

static uint64_t
offset_of(const void *at)
{
	return (uint64_t)((const char *)at - rig.shm->map.base);
}

/* The survivor's own ring. */
static void
lie_of_what_is_anothers(struct xr_link *link)
{
	handle(link,
		(struct ring_ref){ .offset = offset_of(link->in.head),
			.len = 64 },
		sizeof(struct ring_ref));
}

static void
lie_that_is_not_aligned(struct xr_link *link)
{
	handle(link, (struct ring_ref){ .offset = mad_at + 1, .len = 64 },
		sizeof(struct ring_ref));
}

static void
lie_of_a_loan_that_is_none(struct xr_link *link)
{
	handle(link,
		(struct ring_ref){ .offset = mad_at,
			.len = 64,
			.loan = RING_LOANS },
		sizeof(struct ring_ref));
}

static void
lie_of_what_was_never_lent(struct xr_link *link)
{
	handle(link,
		(struct ring_ref){ .offset = mad_at,
			.len = 64,
			.of = RING_LOANS + 1 },
		sizeof(struct ring_ref));
}

/* The reader would keep memory of its own that it did not lend to us. */
static void
lie_of_what_is_yours(struct xr_link *link)
{
	for (uint32_t of = 1; of <= RING_LOANS; of++)
		handle(link,
			(struct ring_ref){ .offset = offset_of(link->in.head),
				.len = 64,
				.of = of },
			sizeof(struct ring_ref));
}

static void
lie_of_loans(struct xr_link *link)
{
	struct ring_ref refs[XR_LOANS_MAX];

	memset(refs, 0xa5, sizeof(refs));
	publish(link,
		(struct ring_word){ .len = 0,
			.loans = XR_LOANS_MAX,
			.type = RING_BODY },
		refs, sizeof(refs));
}

static void
bulk(struct xr_link *link, struct ring_bulk what, const struct xr_part *parts,
	uint32_t count)
{
	struct {
		struct ring_bulk bulk;
		struct xr_part part[CMA_PARTS + 1];
	} body = { .bulk = what };
	uint32_t len = (uint32_t)(sizeof(what) + count * sizeof(*parts));

	memcpy(body.part, parts, count * sizeof(*parts));
	publish(link, (struct ring_word){ .len = len, .type = RING_BULK },
		&body, len);
}

static const struct xr_part somewhere = { "somewhere", 9 };

static void
lie_of_no_parts(struct xr_link *link)
{
	bulk(link, (struct ring_bulk){ .len = 9 }, &somewhere, 0);
}

static void
lie_of_more_parts(struct xr_link *link)
{
	bulk(link, (struct ring_bulk){ .len = 9, .count = 5 }, &somewhere, 1);
}

static void
lie_of_too_many_parts(struct xr_link *link)
{
	struct xr_part parts[CMA_PARTS + 1] = { somewhere };

	bulk(link, (struct ring_bulk){ .len = 9, .count = CMA_PARTS + 1 },
		parts, CMA_PARTS + 1);
}

static void
lie_of_another_length(struct xr_link *link)
{
	bulk(link, (struct ring_bulk){ .len = 10, .count = 1 }, &somewhere, 1);
}

static void
lie_of_lengths_that_overflow(struct xr_link *link)
{
	const struct xr_part parts[] = { { "", UINT64_MAX - 3 }, { "", 13 } };

	bulk(link, (struct ring_bulk){ .len = 9, .count = 2 }, parts, 2);
}

static void
lie_of_a_bulk_without_loan(struct xr_link *link)
{
	bulk(link, (struct ring_bulk){ .len = 9, .loan = 9999, .count = 1 },
		&somewhere, 1);
}

static void
lie_of_more_than_a_message_has(struct xr_link *link)
{
	const struct xr_part part = { "", XR_MESSAGE_MAX + 1 };

	bulk(link, (struct ring_bulk){ .len = part.len, .count = 1 }, &part, 1);
}

static void
lie_of_more_than_there_is_memory(struct xr_link *link)
{
	const struct xr_part part = { "", XR_MESSAGE_MAX };

	bulk(link, (struct ring_bulk){ .len = part.len, .count = 1 }, &part, 1);
}

static void
lie_of_memory_that_is_not_there(struct xr_link *link)
{
	const struct xr_part part = { (void *)(uintptr_t)64, 9 };

	bulk(link, (struct ring_bulk){ .len = 9, .count = 1 }, &part, 1);
}

/* As the reader of what the survivor sends. */
static void
lie_of_having_read(struct xr_link *link)
{
	while (atomic_load(&notes->stop) == 0)
		atomic_store(&link->in.head->tail, UINT64_MAX / 2);
}

static void
lie_of_not_having_read(struct xr_link *link)
{
	struct ring_head *head = link->in.head;

	/* The writer has looked before. */
	while (atomic_load(&head->tail) < 3 * RING_LINES)
		shm_poll(rig.shm);
	while (atomic_load(&notes->stop) == 0)
		atomic_store(&head->tail, 1);
}

static void
lie_of_windows_that_are_empty(struct xr_link *link)
{
	uint64_t at;

	while ((at = atomic_load(&link->in.head->window)) == 0)
		shm_poll(rig.shm);
	while (atomic_load(&notes->stop) == 0) {
		struct window *w = (void *)(rig_map.base + at);

		shm_poll(rig.shm);
		atomic_store(&w->taken, 77777);
	}
}

/* The survivor turns to others, with nothing from us left to read. */
static void
be_passed(void)
{
	uint32_t from = atomic_load(&notes->from[HONEST]);

	while (atomic_load(&notes->from[HONEST]) - from < 4)
		continue;
}

/* When all are full their writer waits, and looks at nothing else of ours. */
static void
lie_of_windows_while_their_writer_waits(struct xr_link *link)
{
	const struct fetch *f = &link->fetch;
	struct window *w;

	while (!f->active || f->len - f->done <= 2 * sizeof(w->data))
		shm_poll(rig.shm);
	while (atomic_load(&link->in.head->window) == 0)
		continue;
	w = (void *)(rig_map.base + atomic_load(&link->in.head->window));
	while (atomic_load(&w->fed) - atomic_load(&w->taken) < WINDOW_COUNT)
		continue;
	while (atomic_load(&notes->from[MAD]) - heard != rig.sent)
		continue;
	be_passed();
	atomic_store(&w->taken, 77777);
}

static void
lie_of_windows_that_are_full(struct xr_link *link)
{
	struct window *w;
	unsigned turn = RIG_A_BULK;

	do {
		rig_send(&rig.peer[SURVIVOR], (enum rig_kind)turn);
		shm_poll(rig.shm);
		w = atomic_load(&link->out)->window;
	} while (w == NULL);
	while (atomic_load(&notes->stop) == 0) {
		rig_send(&rig.peer[SURVIVOR], (enum rig_kind)turn);
		shm_poll(rig.shm);
		atomic_store(&w->fed, 77777);
	}
}

/* Nor does a reader that waits for the next one. */
static void
lie_of_windows_that_were_not_filled(struct xr_link *link)
{
	struct out *out;

	do {
		rig_send(&rig.peer[SURVIVOR], RIG_A_BULK);
		shm_poll(rig.shm);
		out = atomic_load(&link->out);
	} while (out->window == NULL || out->loans.feeding == 0 ||
		atomic_load(&out->window->taken) == 0);
	while (atomic_load(&out->window->taken) != out->feed.at)
		continue;
	be_passed();
	atomic_store(&out->window->fed, 0);
}

static void
lie_of_a_second_ring(struct xr_link *link)
{
	struct out *out = atomic_load(&link->out);

	atomic_store(segment_dir(&rig_map, SURVIVOR, MAD),
		out->word + (UINT64_C(1) << 40));
	atomic_fetch_add(&link->peer->arrivals, 1);
	shm_ring_slot(rig.shm, SURVIVOR);
}

static const struct {
	void (*lie)(struct xr_link *link);
	const char *why;
	bool windows;
} lies[] = {
	{ lie_of_another_lap, NONSENSE, false },
	{ lie_of_type_200, NONSENSE, false },
	{ lie_beyond_the_end, NONSENSE, false },
	{ lie_that_skips_nothing, NONSENSE, false },
	{ lie_that_skips_beyond, NONSENSE, false },
	{ lie_of_a_handle_that_is_short, NONSENSE, false },
	{ lie_outside_of_the_arena, NONSENSE, false },
	{ lie_beyond_the_arena, NONSENSE, false },
	{ lie_round_the_address_space, NONSENSE, false },
	{ lie_of_an_offset_far_away, NONSENSE, false },
	{ lie_of_what_is_anothers, NONSENSE, false },
	{ lie_that_is_not_aligned, NONSENSE, false },
	{ lie_of_a_loan_that_is_none, NONSENSE, false },
	{ lie_of_what_was_never_lent, NONSENSE, false },
	{ lie_of_what_is_yours, NONSENSE, false },
	{ lie_of_loans, NONSENSE, false },
	{ lie_of_no_parts, NONSENSE, false },
	{ lie_of_more_parts, NONSENSE, false },
	{ lie_of_too_many_parts, NONSENSE, false },
	{ lie_of_another_length, NONSENSE, false },
	{ lie_of_lengths_that_overflow, NONSENSE, false },
	{ lie_of_a_bulk_without_loan, NONSENSE, false },
	{ lie_of_more_than_a_message_has, NONSENSE, false },
	{ lie_of_more_than_there_is_memory,
		"there is no memory for what it sent", false },
	{ lie_of_memory_that_is_not_there, "its memory cannot be read", false },
	{ lie_of_having_read, NONSENSE, false },
	{ lie_of_not_having_read, NONSENSE, false },
	{ lie_of_windows_that_are_empty, NONSENSE, true },
	{ lie_of_windows_while_their_writer_waits, NONSENSE, true },
	{ lie_of_windows_that_are_full, NONSENSE, true },
	{ lie_of_windows_that_were_not_filled, NONSENSE, true },
	{ lie_of_a_second_ring, NONSENSE, false },
};

#define LIES (sizeof(lies) / sizeof(lies[0]))

/* --- ranks ---------------------------------------------------------------- */

static void
mad(uint32_t rank)
{
	struct rig_peer *p;
	void *own;

	heard = atomic_load(&notes->from[rank]);
	cma_forbid(plan.windows);
	rig_open(rank, atomic_load(&notes->go));
	mad_at = (uint64_t)((char *)shm_alloc(rig.shm, 4096, &own) -
		rig.shm->map.base);
	p = rig_connect(SURVIVOR);
	/* Both rings are there, and messages went over them. */
	while (atomic_load(&notes->delivered[rank]) < 20 ||
		p->link->in.head == NULL) {
		rig_send(p, RIG_SHORT);
		shm_poll(rig.shm);
		if (!p->lost)
			continue;
		forked_note(__LINE__, "lost the survivor: %s", notes->why[MAD]);
		_exit(1);
	}
	atomic_store(&notes->ready[rank], atomic_load(&notes->go));
	plan.lie(p->link);
	while (atomic_load(&notes->stop) == 0)
		usleep(100);
	_exit(0);
}

static void
honest(uint32_t rank)
{
	struct rig_peer *p;
	unsigned turn = 0;

	rig_open(rank, 1);
	p = rig_connect(SURVIVOR);
	while (atomic_load(&notes->go) != UINT32_MAX && !p->lost) {
		if (rig_send(p, (enum rig_kind)(turn % RIG_KINDS)) == XR_OK)
			turn++;
		if (shm_poll(rig.shm) == 0)
			rig_sleep(NS_PER_MS);
	}
	/* The other may have gone first. */
	if (p->lost && atomic_load(&notes->go) != UINT32_MAX)
		forked_note(__LINE__, "lost its friend: %s",
			notes->why[HONEST]);
	_exit(p->lost && atomic_load(&notes->go) != UINT32_MAX);
}

static void
talk(struct rig_peer *p, unsigned *turn)
{
	enum rig_kind kind = (enum rig_kind)(*turn % RIG_KINDS);

	if (!p->lost && rig_send(p, kind) == XR_OK)
		++*turn;
	else if (!p->lost)
		rig_send(p, RIG_SHORT);
}

/* One round with a mad peer; the honest one is there all the time. */
static void
survive_round(uint32_t round, struct rig_peer *friend)
{
	struct rig_peer *p = rig_connect(MAD);
	unsigned turn = 0, other = RIG_A_BULK;

	while (atomic_load(&notes->idle[MAD]) != round) {
		talk(p, &other);
		talk(friend, &turn);
		if (shm_poll(rig.shm) == 0)
			rig_sleep(NS_PER_MS);
	}
	rig_disconnect(p);
	rig_drop_all();
	if (friend->lost)
		forked_note(__LINE__, "round %u: lost its friend: %s", round,
			notes->why[SURVIVOR]);
	atomic_store(&notes->idle[SURVIVOR], round);
}

static void
survivor(uint32_t rank)
{
	struct rig_peer *friend;
	uint32_t round = 0, go;

	cma_forbid(plan.windows);
	rig_open(rank, 1);
	rig.mad = MAD + 1;
	friend = rig_connect(HONEST);
	for (;;) {
		while ((go = atomic_load(&notes->go)) == round)
			if (shm_poll(rig.shm) == 0)
				sched_yield();
		if (go == UINT32_MAX)
			break;
		round = go;
		survive_round(round, friend);
	}
	_exit(forked_wrong > 0);
}

/* --- the supervisor ------------------------------------------------------- */

static int64_t deadline;
static pid_t one, other; /* who survives, and who is honest */

static void
begin(void)
{
	deadline = clock_now() + PATIENCE;
	rig_make();
	one = rig_rank(SURVIVOR, survivor);
	other = rig_rank(HONEST, honest);
}

/* All ranks end when they are told to. One that ended before ends the test, too, and so
 * does a rank that hangs: others would be waited for in vain. */
static void
check_ranks(void)
{
	siginfo_t info = { 0 };

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid != 0) {
		forked_note(__LINE__, "a rank ended too early: %s %d",
			info.si_code == CLD_EXITED ? "status" : "signal",
			info.si_status);
		_exit(1);
	}
	if (clock_now() > deadline) {
		forked_note(__LINE__, "a rank hangs");
		_exit(1);
	}
}

static void
await_more(const _Atomic uint32_t *word, uint32_t than, int line)
{
	while (atomic_load(word) <= than) {
		if (clock_now() > deadline)
			forked_note(line, "waits for more than %u", than);
		check_ranks();
		usleep(100);
	}
}

#define AWAIT_MORE(word, than) await_more(word, than, __LINE__)

static void
expect_lost(uint32_t lost)
{
	AWAIT_MORE(&notes->lost[SURVIVOR], lost);
	EXPECT_EQ(atomic_load(&notes->lost[SURVIVOR]), lost + 1);
	EXPECT_STR(notes->why[SURVIVOR], plan.why);
}

static void
play(uint32_t round)
{
	uint32_t lost = atomic_load(&notes->lost[SURVIVOR]);
	uint32_t from = atomic_load(&notes->from[HONEST]);
	int status;
	pid_t pid;

	atomic_store(&notes->stop, 0);
	atomic_store(&notes->delivered[MAD], 0);
	atomic_store(&notes->turns, 0);
	atomic_store(&notes->go, round);
	pid = rig_rank(MAD, mad);
	AWAIT_MORE(&notes->ready[MAD], round - 1);
	if (plan.why != NULL)
		expect_lost(lost);
	else
		AWAIT_MORE(&notes->turns, plan.turns);
	/* Others go on. */
	AWAIT_MORE(&notes->from[HONEST], from + 10);
	atomic_store(&notes->stop, 1);
	atomic_store(&notes->idle[MAD], round);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	AWAIT_MORE(&notes->idle[SURVIVOR], round - 1);
	rig_bury(MAD);
}

static void
end_well(void)
{
	const pid_t pid[] = { other, one };
	int status;

	atomic_store(&notes->go, UINT32_MAX);
	for (size_t i = 0; i < 2; i++) {
		NEED(waitpid(pid[i], &status, 0) == pid[i]);
		EXPECT_EQ(status, 0);
	}
}

/* A sanitizer ends a process that asks for more memory than there is. */
static bool
is_too_much(size_t i)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return lies[i].lie == lie_of_more_than_there_is_memory;
#else
	(void)i;
	return false;
#endif
}

static void
play_all(bool windows)
{
	uint32_t round = 0;

	plan.windows = windows;
	begin();
	for (size_t i = 0; i < LIES; i++) {
		unsigned before = forked_wrong;

		if (lies[i].windows != windows || is_too_much(i))
			continue;
		plan.lie = lies[i].lie;
		plan.why = lies[i].why;
		play(++round);
		if (forked_wrong > before)
			forked_note(__LINE__, "lie %zu", i);
	}
	EXPECT_EQ(atomic_load(&notes->wrong[SURVIVOR]), 0);
	end_well();
}

FORKED_TEST(shm_mad, who_lies_is_lost_for_a_reason_and_nobody_else)
{
	play_all(false);
}

FORKED_TEST(shm_mad, so_is_who_lies_about_windows)
{
	play_all(true);
}

/* --- anything ------------------------------------------------------------- */

/* Each with another seed; ROUNDS in the environment: so many. */
static void
play_rounds(uint32_t rounds)
{
	const char *text = getenv("ROUNDS");

	if (text != NULL)
		rounds = (uint32_t)strtoul(text, NULL, 10);
	begin();
	for (uint32_t round = 1; round <= rounds; round++)
		play(round);
}

static uint64_t
any(unsigned *seed)
{
	uint64_t wide = (uint64_t)rand_r(seed) << 62 |
		(uint64_t)rand_r(seed) << 31 | (uint64_t)rand_r(seed);

	switch (rand_r(seed) % 4) {
	case 0:
		return wide;
	case 1:
		return wide % 2000;
	case 2: /* what may be a record */
		return ring_sequence(wide % RING_LINES) |
			(uint64_t)(rand_r(seed) % 6) << 56 | (wide >> 50) << 32;
	default:
		return rig_map.plan.arena + wide % (64 << 20);
	}
}

static void
scribble(struct xr_link *link)
{
	struct ring_head *head = ring_of(link)->head;
	uint64_t *words = (void *)head;
	size_t count = ring_bytes(RING_LINES) / 8;
	unsigned seed = atomic_load(&notes->go);
	uint64_t at = (uint64_t)rand_r(&seed);

	/* So that some of it lies where the reader looks. */
	while (atomic_load(&notes->stop) == 0) {
		for (int i = 0; i < 20; i++)
			words[at++ % count] = any(&seed);
		words[(size_t)rand_r(&seed) % count] = any(&seed);
		atomic_store(&link->in.head->tail, any(&seed));
		atomic_store(&link->in.head->loan[rand_r(&seed) % RING_LOANS],
			any(&seed) % 6);
		atomic_fetch_add(&link->in.head->done, 1);
		atomic_fetch_add(&link->in.head->asks, 1);
		shm_ring_slot(rig.shm, SURVIVOR);
		atomic_fetch_add(&notes->turns, 1);
	}
}

FORKED_TEST(shm_mad, whatever_one_writes_others_go_on)
{
	plan.lie = scribble;
	plan.turns = 3000;
	play_rounds(30);
	end_well();
}

/* Any word in the directory, and any head behind it. */
static void
scribble_directory(struct xr_link *link)
{
	unsigned seed = atomic_load(&notes->go);
	_Atomic uint64_t *dir = segment_dir(&rig_map, SURVIVOR, MAD);
	void *own, *head = shm_alloc(rig.shm, 1 << 20, &own);
	uint64_t at = (uint64_t)((char *)head - rig_map.base);

	while (atomic_load(&notes->stop) == 0) {
		uint32_t *words = head;

		for (int i = 0; i < 10; i++)
			words[i] = (uint32_t)any(&seed);
		if (rand_r(&seed) % 2 == 0)
			words[0] = 1u << rand_r(&seed) % 32;
		words[1] = MAD;
		words[2] = SURVIVOR;
		words[4] = link->plane;
		atomic_store(dir,
			rand_r(&seed) % 2 == 0 ?
				any(&seed) :
				segment_ring_word(at, rig.shm->gen,
					link->plane >> 8));
		atomic_fetch_add(&link->peer->arrivals, 1);
		shm_ring_slot(rig.shm, SURVIVOR);
		atomic_fetch_add(&notes->turns, 1);
		usleep(50);
	}
}

FORKED_TEST(shm_mad, no_word_of_the_directory_leads_out_of_the_arena)
{
	plan.lie = scribble_directory;
	plan.turns = 100;
	play_rounds(20);
	EXPECT_EQ(atomic_load(&notes->wrong[SURVIVOR]), 0);
	end_well();
}
