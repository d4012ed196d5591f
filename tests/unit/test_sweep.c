/* SPDX-License-Identifier: Apache-2.0 */
/* test_sweep.c - who is dead in a segment, what he had, and who wakes up. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#include "segment/member.h"
#include "segment/owner.h"
#include "segment/sweep.h"
#include "tests/unit/forked.h"

#define RANKS  4
#define SPARE  2
#define SLOTS  (RANKS + SPARE)
#define ME     0
#define DEAD   1
#define OTHER  2
#define TRIES  20000
#define FILLED 65536 /* bytes of a span */
#define WAKE   5     /* seconds that a test has patience */

static int fd = -1;
static struct segment_map map;

static void
make_segment(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = RANKS,
		.spare = SPARE,
		.most = UINT64_C(64) << 20,
	};
	struct segment_tag tag;
	struct stat st;

	fd = segment_create(&wish);
	NEED(fd != -1 && fstat(fd, &st) == 0);
	tag = (struct segment_tag){ .fd = fd, .inode = st.st_ino };
	NEED(segment_map(&tag, &map));
	NEED(map.plan.spans > 16);
	NEED(segment_hold(segment_slot(&map, ME)) == 0);
}

static uint32_t
gen_of(uint32_t slot)
{
	return segment_gen(atomic_load(&segment_slot(&map, slot)->claim));
}

/* A child that has @slot, and sleeps. */
static pid_t
child_with(uint32_t slot)
{
	int done[2];
	char byte = 0;
	pid_t pid;

	NEED(pipe(done) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		byte = segment_hold(segment_slot(&map, slot)) == 0;
		(void)!write(done[1], &byte, 1);
		for (;;)
			pause();
	}
	NEED(read(done[0], &byte, 1) == 1 && byte == 1);
	close(done[0]);
	close(done[1]);
	return pid;
}

static void
end(pid_t pid)
{
	kill(pid, SIGKILL);
	NEED(waitpid(pid, NULL, 0) == pid);
}

/* Somebody had the slot, and is gone; his generation. */
static uint32_t
dead_with(uint32_t slot)
{
	pid_t pid = child_with(slot);
	uint32_t gen = gen_of(slot);

	end(pid);
	return gen;
}

/* @run spans from @first on are {@slot, @gen}'s, and something stands in them. */
static void
take(uint32_t first, uint32_t run, uint32_t slot, uint32_t gen)
{
	_Atomic uint32_t *top = &segment_shared(&map)->top;

	for (uint32_t i = 0; i < run; i++) {
		atomic_store(&segment_spans(&map)[first + i],
			segment_span_word(slot, gen,
				i == 0 ? SEGMENT_SPAN_RUN : SEGMENT_SPAN_REST,
				i == 0 ? run : 0));
		memset(map.base + map.plan.arena + (first + i) * SEGMENT_SPAN,
			'x', FILLED);
	}
	if (atomic_load(top) < first + run)
		atomic_store(top, first + run);
}

static bool
is_taken(uint32_t span)
{
	return atomic_load(&segment_spans(&map)[span]) != 0;
}

static bool
is_empty(uint32_t span)
{
	return map.base[map.plan.arena + span * SEGMENT_SPAN] == 0;
}

static uint64_t
offset_of(uint32_t span)
{
	return map.plan.arena + span * SEGMENT_SPAN;
}

static uint32_t emptied;

static void
empty(void *ctx, uint64_t offset, uint64_t len)
{
	(void)ctx;
	EXPECT(offset >= map.plan.arena && offset % SEGMENT_SPAN == 0);
	EXPECT(len == SEGMENT_SPAN && offset + len <= map.plan.size);
	madvise(map.base + offset, len, MADV_REMOVE);
	emptied++;
}

static struct segment_swept
sweep_most(uint32_t most)
{
	const struct segment_sweeper how = {
		.map = &map,
		.slot = ME,
		.gen = gen_of(ME),
		.most = most,
		.empty = empty,
	};

	return segment_sweep(&how);
}

static struct segment_swept
sweep(void)
{
	return sweep_most(UINT32_MAX);
}

/* --- who is dead ---------------------------------------------------------- */

FORKED_TEST(sweep, only_who_is_gone_is_buried)
{
	pid_t pid;
	siginfo_t info;
	uint32_t gen;

	make_segment();
	pid = child_with(DEAD);
	gen = gen_of(DEAD);
	EXPECT(!segment_bury(&map, DEAD, true));
	EXPECT(!segment_bury(&map, ME, true));
	EXPECT(!segment_bury(&map, OTHER, true)); /* nobody's */
	kill(pid, SIGKILL);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	EXPECT(!segment_bury(&map, DEAD, false)); /* nobody has reaped it */
	EXPECT(segment_bury(&map, DEAD, true));
	EXPECT(!segment_bury(&map, DEAD, true));
	EXPECT_EQ(gen_of(DEAD), gen + 1);
	NEED(waitpid(pid, NULL, 0) == pid);
	pid = child_with(DEAD);
	EXPECT_EQ(gen_of(DEAD), gen + 2);
	end(pid);
	EXPECT(segment_bury(&map, DEAD, false));
}

static void *
run_for_ever(void *ctx)
{
	(void)ctx;
	for (;;)
		pause();
	return NULL;
}

/* Of some languages the first thread ends first. */
FORKED_TEST(sweep, who_runs_without_its_first_thread_is_not_gone)
{
	char path[64], text[256] = "";
	pthread_t thread;
	pid_t pid;
	FILE *f;

	make_segment();
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		segment_hold(segment_slot(&map, DEAD));
		pthread_create(&thread, NULL, run_for_ever, NULL);
		syscall(SYS_exit, 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (strstr(text, ") Z ") == NULL) {
		f = fopen(path, "re");
		NEED(f != NULL && fgets(text, sizeof(text), f) != NULL);
		fclose(f);
	}
	EXPECT(!segment_bury(&map, DEAD, true));
	EXPECT_EQ(segment_hold(segment_slot(&map, DEAD)), pid);
	end(pid);
	EXPECT(segment_bury(&map, DEAD, true));
}

FORKED_TEST(sweep, a_number_that_another_process_has_now_is_seen)
{
	pid_t pid;

	make_segment();
	pid = child_with(DEAD);
	atomic_fetch_sub(&segment_slot(&map, DEAD)->birth, 1);
	EXPECT(!segment_bury(&map, DEAD, false));
	EXPECT(segment_bury(&map, DEAD, true));
	end(pid);
}

FORKED_TEST(sweep, of_numbers_of_another_space_nobody_knows)
{
	pid_t pid;

	make_segment();
	pid = child_with(DEAD);
	atomic_fetch_add(&segment_slot(&map, DEAD)->space, 1);
	end(pid);
	EXPECT(!segment_bury(&map, DEAD, true));
	EXPECT_EQ(segment_hold(segment_slot(&map, DEAD)), pid);
}

FORKED_TEST(sweep, who_keeps_its_slot_has_it_for_good_by_each_mapping)
{
	struct stat st;
	struct segment_tag tag;
	struct segment_slot *again;

	make_segment();
	NEED(fstat(fd, &st) == 0);
	tag = (struct segment_tag){ .fd = fd, .inode = st.st_ino };
	again = segment_join(&tag, ME);
	NEED(again != NULL && again != segment_slot(&map, ME));
	EXPECT_EQ(segment_hold(again), 0);
	EXPECT_EQ(gen_of(ME), 1);
	segment_keep();
	segment_let_go(again);
	EXPECT_EQ(segment_holder(atomic_load(&again->claim)), getpid());
	EXPECT_EQ(gen_of(ME), 1);
}

/* --- what they had -------------------------------------------------------- */

FORKED_TEST(sweep, what_the_dead_had_is_free_and_empty_and_nothing_else)
{
	uint32_t gen;
	pid_t pid;

	make_segment();
	pid = child_with(OTHER);
	gen = dead_with(DEAD);
	take(0, 1, ME, gen_of(ME));
	take(1, 1, DEAD, gen);
	take(2, 3, OTHER, gen_of(OTHER));
	take(5, 4, DEAD, gen);
	EXPECT_EQ(sweep().freed, 0); /* nobody knows it yet */
	EXPECT(segment_bury(&map, DEAD, false));
	EXPECT_EQ(sweep().freed, 5);
	EXPECT_EQ(emptied, 5);
	EXPECT_EQ(segment_spans_taken(&map), 4);
	for (uint32_t i = 0; i < 9; i++) {
		EXPECT_EQ(is_taken(i), i == 0 || (i >= 2 && i < 5));
		EXPECT_EQ(is_empty(i), !is_taken(i));
	}
	EXPECT_EQ(atomic_load(&segment_shared(&map)->low), 0);
	end(pid);
}

FORKED_TEST(sweep, who_has_the_slot_now_keeps_what_is_his)
{
	uint32_t gen;
	pid_t pid;

	make_segment();
	gen = dead_with(DEAD);
	take(0, 2, DEAD, gen);
	pid = child_with(DEAD);
	take(2, 2, DEAD, gen_of(DEAD));
	EXPECT_EQ(sweep().freed, 2);
	EXPECT(is_taken(2) && is_taken(3));
	end(pid);
}

FORKED_TEST(sweep, no_more_than_was_asked_for_in_one_go)
{
	struct segment_swept swept;

	make_segment();
	take(0, 10, DEAD, dead_with(DEAD));
	segment_bury(&map, DEAD, false);
	swept = sweep_most(4);
	EXPECT(swept.freed == 4 && swept.more);
	swept = sweep_most(6);
	EXPECT(swept.freed == 6 && !swept.more);
	EXPECT_EQ(segment_spans_taken(&map), 0);
}

static void
ring(uint32_t reader, uint32_t reader_gen, uint32_t writer, uint32_t writer_gen)
{
	atomic_store(segment_dir(&map, reader, writer),
		segment_ring_word(offset_of(0), writer_gen, reader_gen));
}

FORKED_TEST(sweep, what_a_living_reader_did_not_let_go_stays)
{
	uint32_t gen;
	pid_t pid;

	make_segment();
	pid = child_with(OTHER);
	gen = dead_with(DEAD);
	take(0, 2, DEAD, gen);
	ring(OTHER, gen_of(OTHER), DEAD, gen);
	segment_bury(&map, DEAD, false);
	EXPECT_EQ(sweep().kept, 2);
	EXPECT(is_taken(0) && !is_empty(0));
	/* Of who is dead, too, nobody asks. */
	end(pid);
	segment_bury(&map, OTHER, false);
	EXPECT_EQ(sweep().freed, 2);
	EXPECT_EQ(atomic_load(segment_dir(&map, OTHER, DEAD)), 0);
}

FORKED_TEST(sweep, a_ring_of_the_living_keeps_nothing_of_the_dead)
{
	uint32_t gen;
	pid_t next;

	make_segment();
	gen = dead_with(DEAD);
	take(0, 2, DEAD, gen);
	next = child_with(DEAD);
	ring(ME, gen_of(ME), DEAD, gen_of(DEAD));
	EXPECT_EQ(sweep().freed, 2);
	EXPECT(atomic_load(segment_dir(&map, ME, DEAD)) != 0);
	end(next);
}

static void
hold(uint32_t slot, uint32_t entry, uint64_t offset, uint32_t gen)
{
	atomic_store(&segment_slot(&map, slot)->holds, gen & 0xffffff);
	atomic_store(&segment_holds(&map, slot)[entry],
		segment_hold_word(offset, gen));
}

FORKED_TEST(sweep, what_is_held_stays_with_all_of_its_run)
{
	uint32_t gen;

	make_segment();
	gen = dead_with(DEAD);
	take(0, 1, DEAD, gen);
	take(1, 4, DEAD, gen);
	take(5, 1, DEAD, gen);
	take(6, 2, DEAD, gen);
	hold(ME, 511, offset_of(3) + 12345 * 64, gen_of(ME));
	segment_bury(&map, DEAD, false);
	EXPECT_EQ(sweep().kept, 4);
	for (uint32_t i = 0; i < 8; i++)
		EXPECT_EQ(is_taken(i), i >= 1 && i < 5);
	atomic_store(&segment_holds(&map, ME)[511], 0);
	EXPECT_EQ(sweep().freed, 4);
}

FORKED_TEST(sweep, a_hold_of_the_dead_is_none)
{
	uint32_t gen, other;

	make_segment();
	other = dead_with(OTHER);
	gen = dead_with(DEAD);
	take(0, 2, DEAD, gen);
	hold(OTHER, 0, offset_of(0), other);
	hold(ME, 0, offset_of(1), gen_of(ME) - 1);
	atomic_store(&segment_slot(&map, ME)->holds, gen_of(ME));
	segment_bury(&map, DEAD, false);
	segment_bury(&map, OTHER, false);
	EXPECT_EQ(sweep().freed, 2);
}

/* --- many at it, and deaths in it ----------------------------------------- */

static void
die(void *ctx, uint64_t offset, uint64_t len)
{
	(void)ctx, (void)offset, (void)len;
	kill(getpid(), SIGKILL);
}

FORKED_TEST(sweep, who_dies_while_he_sweeps_leaves_it_to_the_next)
{
	struct segment_sweeper how = { .map = &map, .most = 9, .empty = die };
	pid_t pid;

	make_segment();
	take(0, 3, DEAD, dead_with(DEAD));
	segment_bury(&map, DEAD, false);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		segment_hold(segment_slot(&map, OTHER));
		how.slot = OTHER;
		how.gen = gen_of(OTHER);
		segment_sweep(&how);
		_exit(0);
	}
	NEED(waitpid(pid, NULL, 0) == pid);
	EXPECT_EQ(sweep().freed, 2);
	EXPECT(is_taken(0));
	segment_bury(&map, OTHER, false);
	EXPECT_EQ(sweep().freed, 1);
	EXPECT_EQ(segment_spans_taken(&map), 0);
}

static _Atomic uint32_t *times; /* [spans], shared */

static void
count(void *ctx, uint64_t offset, uint64_t len)
{
	(void)ctx, (void)len;
	sched_yield(); /* the others */
	atomic_fetch_add(&times[(offset - map.plan.arena) / SEGMENT_SPAN], 1);
}

FORKED_TEST(sweep, of_several_that_sweep_one_empties_each_span)
{
	struct segment_sweeper how = { .map = &map,
		.most = 99,
		.empty = count };
	uint32_t spans, gen;
	pid_t pid[3];

	make_segment();
	spans = map.plan.spans;
	times = mmap(NULL, spans * sizeof(*times), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(times != MAP_FAILED);
	for (uint32_t round = 1; round <= 50; round++) {
		gen = dead_with(DEAD);
		take(0, spans, DEAD, gen);
		for (uint32_t i = 0; i < 3; i++) {
			pid[i] = fork();
			NEED(pid[i] != -1);
			if (pid[i] > 0)
				continue;
			how.slot = OTHER + i;
			segment_hold(segment_slot(&map, how.slot));
			how.gen = gen_of(how.slot);
			segment_bury(&map, DEAD, false);
			segment_sweep(&how);
			_exit(0);
		}
		for (uint32_t i = 0; i < 3; i++)
			NEED(waitpid(pid[i], NULL, 0) == pid[i]);
		for (uint32_t i = 0; i < spans; i++)
			EXPECT_EQ(atomic_load(&times[i]), round);
		EXPECT_EQ(segment_spans_taken(&map), 0);
	}
}

/* --- who lies ------------------------------------------------------------- */

static uint64_t
any(unsigned *seed)
{
	return (uint64_t)rand_r(seed) << 62 | (uint64_t)rand_r(seed) << 31 |
		(uint64_t)rand_r(seed);
}

/* Near what may stand there, or not at all. */
static uint64_t
any_span(unsigned *seed)
{
	return rand_r(seed) % 4 == 0 ?
		any(seed) :
		segment_span_word((uint32_t)rand_r(seed) % (SLOTS + 2),
			(uint32_t)rand_r(seed) % 3,
			(enum segment_span_kind)(rand_r(seed) % 4),
			(uint32_t)rand_r(seed));
}

static void
scribble(unsigned *seed)
{
	struct segment_shared *shared = segment_shared(&map);

	for (uint32_t i = 0; i < map.plan.spans; i++)
		if (i != 7)
			atomic_store(&segment_spans(&map)[i], any_span(seed));
	for (uint32_t i = 1; i < SLOTS; i++) {
		atomic_store(&segment_slot(&map, i)->claim, any(seed));
		for (uint32_t j = 0; j < SLOTS; j++)
			atomic_store(segment_dir(&map, i, j), any(seed));
		for (uint32_t j = 0; j < SEGMENT_HOLDS; j += 17)
			atomic_store(&segment_holds(&map, i)[j], any(seed));
		atomic_store(&segment_slot(&map, i)->holds, rand_r(seed) % 3);
	}
	atomic_store(&shared->top, (uint32_t)any(seed));
	atomic_store(&shared->low, (uint32_t)any(seed));
}

/* Nothing beyond the arena is touched, whatever stands there: empty() looks. */
FORKED_TEST(sweep, no_word_leads_astray)
{
	unsigned seed = 5;

	make_segment();
	take(7, 1, ME, gen_of(ME));
	for (int i = 0; i < TRIES; i++) {
		scribble(&seed);
		/* Numbers of processes that may be there must not be asked. */
		sweep();
		if (!is_taken(7))
			EXPECT(i < 0);
	}
	EXPECT(emptied > TRIES / 10);
	EXPECT(!is_empty(7));
}

/* --- the supervisor ------------------------------------------------------- */

static blkcnt_t
blocks(void)
{
	struct stat st;

	NEED(fstat(fd, &st) == 0);
	return st.st_blocks;
}

FORKED_TEST(sweep, the_supervisor_gives_back_what_ranks_and_others_had)
{
	uint32_t rank, spare;
	blkcnt_t before, after;

	make_segment();
	rank = dead_with(DEAD);
	spare = dead_with(RANKS + 1);
	segment_spans(&map)[0] = 0; /* the map has its page */
	before = blocks();
	take(0, 3, DEAD, rank);
	take(3, 2, RANKS + 1, spare);
	take(5, 1, ME, gen_of(ME));
	after = blocks();
	EXPECT(after > before);
	segment_recycle(fd, DEAD, rank);
	EXPECT_EQ(segment_reclaim(fd, RANKS, SLOTS), 5);
	EXPECT_EQ(segment_spans_taken(&map), 1);
	/* One is left, and some pages of tables were looked at. */
	EXPECT(blocks() - before < (after - before) / 6 + 4 * 8);
	EXPECT_EQ(segment_reclaim(fd, RANKS, SLOTS), 0);
	EXPECT_EQ(segment_reclaim(-1, RANKS, SLOTS), 0);
}

/* The page at this offset of a segment cannot be had; 0: each can. */
static uint64_t missing;

int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);

int
__wrap_madvise(void *at, size_t len, int advice)
{
	static char *base; /* of what segment_reclaim() maps */

	if (advice == MADV_DONTDUMP)
		base = at;
	if (advice == MADV_POPULATE_READ && missing != 0 &&
		(char *)at <= base + missing &&
		base + missing < (char *)at + len) {
		errno = ENOMEM;
		return -1;
	}
	return __real_madvise(at, len, advice);
}

FORKED_TEST(sweep, the_supervisor_reads_no_page_that_cannot_be_had)
{
	const uint64_t row = SLOTS * 8, holds = SEGMENT_HOLDS * 8;
	const uint32_t slot = RANKS + 1;
	uint64_t read_at[6] = { 1 };
	uint32_t gen;

	make_segment();
	gen = dead_with(slot);
	take(0, 3, slot, gen);
	atomic_store(&segment_slot(&map, slot)->holds, gen);
	read_at[1] = map.plan.dir - 1;
	read_at[2] = map.plan.map;
	read_at[3] = map.plan.dir + slot * row;
	read_at[4] = map.plan.holds + slot * holds;
	read_at[5] = map.plan.holds + slot * holds + holds - 1;
	for (size_t i = 0; i < sizeof(read_at) / sizeof(read_at[0]); i++) {
		missing = read_at[i];
		if (segment_reclaim(fd, RANKS, SLOTS) != 0)
			forked_note(__LINE__, "offset %zu is read", i);
	}
	/* This slot had no holds. */
	missing = map.plan.holds + OTHER * holds;
	EXPECT_EQ(segment_reclaim(fd, RANKS, SLOTS), 3);
}

FORKED_TEST(sweep, it_sees_who_shared_and_who_had_links)
{
	struct segment_view view;

	make_segment();
	EXPECT(segment_look(fd, ME, 0, &view) && !view.shares && !view.open);
	atomic_store(&segment_slot(&map, ME)->probe, 1);
	EXPECT(segment_look(fd, ME, 0, &view) && view.shares && !view.open);
	atomic_store(&segment_slot(&map, ME)->plane, gen_of(ME) << 8 | 1);
	EXPECT(segment_look(fd, ME, 0, &view) && view.shares && view.open);
}

/* One that sleeps at its bell, until it is rung. */
static pid_t
sleeper(uint32_t slot)
{
	struct segment_bell *bell = &segment_slot(&map, slot)->bell;
	const struct timespec patience = { .tv_sec = WAKE };
	uint32_t fails = atomic_load(&segment_shared(&map)->fails);
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid > 0)
		return pid;
	atomic_store(&bell->asleep, 1);
	while (atomic_load(&bell->rung) == 0)
		if (syscall(SYS_futex, &bell->rung, FUTEX_WAIT, 0, &patience,
			    NULL, 0) == -1 &&
			errno == ETIMEDOUT)
			_exit(1);
	_exit(atomic_load(&segment_shared(&map)->fails) == fails ? 2 : 0);
}

FORKED_TEST(sweep, an_alarm_wakes_all_who_sleep)
{
	pid_t pid[2];
	int status;

	make_segment();
	for (int i = 0; i < 2; i++) {
		pid[i] = sleeper(1 + (uint32_t)i * RANKS);
		while (atomic_load(&segment_slot(&map, 1 + (uint32_t)i * RANKS)
				       ->bell.asleep) == 0)
			sched_yield();
	}
	segment_alarm(fd, SLOTS);
	for (int i = 0; i < 2; i++) {
		NEED(waitpid(pid[i], &status, 0) == pid[i]);
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	EXPECT_EQ(atomic_load(&segment_slot(&map, 2)->bell.rung), 0);
	segment_alarm(-1, SLOTS);
}
