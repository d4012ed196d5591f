/* SPDX-License-Identifier: Apache-2.0 */
/* test_segment.c - the segment: its seals, its slots, and who has one. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "segment/figures.h"
#include "segment/layout.h"
#include "segment/member.h"
#include "segment/owner.h"
#include "tests/unit/big_files.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"

#define RANKS  3
#define ROUNDS 100
#define CROWD  6
#define NOW    INT64_C(1000000000000)

static int fd = -1;

static void
create(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.attempt = 2,
		.first = 8,
		.ranks = RANKS,
		.spare = 5,
	};

	fd = segment_create(&wish);
	cr_assert_neq(fd, -1);
}

static struct segment_tag
tag_of(int of)
{
	struct stat st;

	cr_assert_eq(fstat(of, &st), 0);
	return (struct segment_tag){ .fd = of, .inode = st.st_ino };
}

static struct segment_slot *
join(uint32_t rank)
{
	struct segment_tag tag = tag_of(fd);

	return segment_join(&tag, rank);
}

/* --- the segment ---------------------------------------------------------- */

Test(segment, nobody_can_make_it_shorter_or_longer_or_lift_the_seals)
{
	struct stat st;

	create();
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_geq(st.st_size, SEGMENT_HEAD + (RANKS + 5) * SEGMENT_SLOT);
	cr_expect_eq(st.st_blocks, SEGMENT_HEAD / 512); /* the head alone */
	cr_assert(allow_big_files());
	cr_expect_eq(ftruncate(fd, st.st_size - 1), -1);
	cr_expect_eq(ftruncate(fd, st.st_size + 1), -1);
	cr_expect_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cr_expect_geq(segment_spare(), 68);
}

Test(segment, its_head_tells_the_job_and_a_secret_of_its_own)
{
	struct segment_head head, other;

	create();
	cr_assert_eq(pread(fd, &head, sizeof(head), 0), sizeof(head));
	cr_expect_eq(memcmp(&head.magic, "xrun.seg", 8), 0);
	cr_expect_eq(head.version, 6);
	cr_expect_eq(head.attempt, 2);
	cr_expect_eq(head.first, 8);
	cr_expect_eq(head.ranks, RANKS);
	cr_expect_eq(head.slots, RANKS + 5);
	cr_expect_eq(head.job, segment_hash("k7m2"));
	cr_expect_neq(head.job, segment_hash("k7m3"));
	close(fd);
	create();
	cr_assert_eq(pread(fd, &other, sizeof(other), 0), sizeof(other));
	cr_expect_neq(memcmp(head.secret, other.secret, SEGMENT_SECRET), 0);
}

Test(segment, what_a_rank_stores_its_owner_reads)
{
	struct segment_view view;
	struct segment_slot *slot;

	create();
	slot = join(1);
	cr_assert_not_null(slot);
	cr_assert(segment_look(fd, 1, NOW, &view));
	cr_expect_eq(view.step, -1);
	cr_expect_eq(view.total, -1);
	cr_expect_eq(view.tick, 0);
	cr_expect_eq(view.holder, 0);
	atomic_store(&slot->step, 1);
	atomic_store(&slot->total, 9);
	atomic_store(&slot->tick, 77);
	atomic_store(&slot->when, NOW - 5);
	cr_assert(segment_look(fd, 1, NOW, &view));
	cr_expect_eq(view.step, 0);
	cr_expect_eq(view.total, 9);
	cr_expect_eq(view.tick, 77);
	cr_expect_eq(view.when, NOW - 5);
	segment_name(fd, 1, 4711);
	cr_expect_eq(atomic_load(&slot->pid), 4711);
	cr_assert(segment_look(fd, 0, NOW, &view));
	cr_expect_eq(view.tick, 0);
}

Test(segment, whatever_stands_in_a_slot_what_is_read_is_in_range)
{
	unsigned char bytes[SEGMENT_SLOT];
	struct segment_view view;
	unsigned seed = 1;

	create();
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = round == 0 ? 0xff :
				round == 1    ? 0x80 :
						(unsigned char)rand_r(&seed);
		cr_assert_eq(pwrite(fd, bytes, sizeof(bytes),
				     (off_t)segment_slot_at(1)),
			sizeof(bytes));
		cr_assert(segment_look(fd, 1, NOW, &view));
		cr_assert(view.step >= -1 && view.step < INT64_C(1) << 53);
		cr_assert(view.total >= -1 && view.total < INT64_C(1) << 53);
		cr_assert(view.when >= 0 && view.when <= NOW);
		cr_assert(view.gen < 1u << 24);
		cr_assert(view.lost >= 0 && view.lost < INT64_C(1) << 53);
	}
	cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			     0, SEGMENT_HEAD + SEGMENT_SLOT * 8),
		0);
	cr_assert(segment_look(fd, 1, NOW, &view));
	cr_expect_eq(view.step, -1);
}

Test(segment, a_slot_that_is_not_there_is_read_as_empty)
{
	struct segment_view view = { .step = 5 };

	create();
	cr_expect_not(segment_look(fd, UINT32_MAX, NOW, &view));
	cr_expect_eq(view.step, -1);
	cr_expect_not(segment_look(-1, 0, NOW, &view));
	segment_recycle(-1, 0, 0);
	segment_name(-1, 0, 1);
}

Test(segment, what_is_recycled_says_nothing_and_counts_on)
{
	struct segment_view view;
	struct segment_slot *slot;

	create();
	slot = join(0);
	cr_assert_eq(segment_hold(slot), 0);
	atomic_store(&slot->step, 5);
	atomic_store(&slot->tick, 6);
	segment_recycle(fd, 0, 1);
	cr_assert(segment_look(fd, 0, NOW, &view));
	cr_expect_eq(view.gen, 2);
	cr_expect_eq(view.holder, 0);
	cr_expect_eq(view.tick, 0);
	cr_expect_eq(view.step, -1);
}

FORKED_TEST(segment, where_memfd_is_refused_there_is_none)
{
	const struct segment_wish wish = { .job = "k7m2", .ranks = 1 };

	NEED(seccomp_refuse(SYS_memfd_create, EPERM) == 0);
	EXPECT_EQ(segment_create(&wish), -1);
	EXPECT_EQ(errno, EPERM);
}

/* --- finding it ----------------------------------------------------------- */

Test(segment, a_tag_is_two_numbers)
{
	static const char whole[] = "98:4711";
	static const char *const bad[] = { "", ":", "98", "98:", ":1", "x:1",
		"98:x", "98:1x", " 98:1", "-1:1", "98: 1", "98:-1",
		"99999999999:1" };
	struct segment_tag tag = { -7, 7 };
	char text[16];

	cr_expect_not(segment_tag_parse(NULL, &tag));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(segment_tag_parse(bad[i], &tag), "%s", bad[i]);
	for (int n = 0; n < 4; n++) {
		snprintf(text, sizeof(text), "%.*s", n, whole);
		cr_expect_not(segment_tag_parse(text, &tag), "%s", text);
	}
	cr_expect_eq(tag.fd, -7);
	cr_assert(segment_tag_parse(whole, &tag));
	cr_expect_eq(tag.fd, 98);
	cr_expect_eq(tag.inode, 4711);
}

/* A memfd that a head of ours was written to. */
static int
imitation(const struct segment_head *head, off_t size, int seals)
{
	int made = memfd_create("imitation", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_neq(made, -1);
	cr_assert_eq(ftruncate(made, size), 0);
	cr_assert_geq(pwrite(made, head, sizeof(*head), 0), 0);
	cr_assert_eq(fcntl(made, F_ADD_SEALS, seals), 0);
	return made;
}

static bool
is_joined(const struct segment_head *head, off_t size, int seals)
{
	int made = imitation(head, size, seals);
	struct segment_tag tag = tag_of(made);
	bool joined = segment_join(&tag, 0) != NULL;

	close(made);
	return joined;
}

Test(segment, what_is_no_sealed_segment_of_this_version_is_not_joined)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	const off_t size = SEGMENT_HEAD + SEGMENT_SLOT;
	struct segment_head good = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.slot_size = SEGMENT_SLOT,
		.size = (uint64_t)size,
		.ranks = 1,
		.slots = 1,
	};
	struct segment_head bad;

	cr_expect(is_joined(&good, size, seals));
	cr_expect_not(is_joined(&good, size, F_SEAL_GROW));
	cr_expect_not(is_joined(&good, size, seals & ~F_SEAL_SEAL));
	cr_expect_not(is_joined(&good, size - 1, seals));
	cr_expect_not(is_joined(&good, 100, seals));
	bad = good, bad.version++;
	cr_expect_not(is_joined(&bad, size, seals));
	bad = good, bad.magic++;
	cr_expect_not(is_joined(&bad, size, seals));
	bad = good, bad.slot_size *= 2;
	cr_expect_not(is_joined(&bad, size, seals));
	bad = good, bad.ranks = 0;
	cr_expect_not(is_joined(&bad, size, seals));
	bad = good, bad.size = SEGMENT_HEAD, bad.ranks = 1000;
	cr_expect_not(is_joined(&bad, SEGMENT_HEAD, seals));
}

Test(segment, another_file_at_its_number_is_not_taken_for_it)
{
	struct segment_tag tag;
	int other;

	create();
	tag = tag_of(fd);
	cr_expect_null(segment_join(&tag, RANKS));
	cr_expect_null(segment_join(&tag, UINT32_MAX));
	other = fd;
	create(); /* of another job */
	cr_assert_eq(dup2(fd, other), other);
	cr_expect_null(segment_join(&tag, 0));
	fd = other;
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	cr_assert_eq(dup2(other, fd), fd);
	cr_expect_null(segment_join(&tag, 0));
	close(fd);
	errno = 7;
	cr_expect_null(segment_join(&tag, 0));
	cr_expect_eq(errno, 7);
}

Test(segment, core_dumps_leave_it_out)
{
	char line[512];
	bool ours = false, left_out = false;
	FILE *f;

	create();
	cr_assert_not_null(join(0));
	f = fopen("/proc/self/smaps", "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strstr(line, "memfd:xrun") != NULL)
			ours = true;
		if (ours && strncmp(line, "VmFlags:", 8) == 0) {
			left_out = strstr(line, " dd") != NULL;
			break;
		}
	}
	fclose(f);
	cr_expect(left_out);
}

/* --- whose it is ---------------------------------------------------------- */

/* A child that holds @slot, or does not; its end is the caller's to say. */
static pid_t
child_that_holds(struct segment_slot *slot, pid_t *answer)
{
	int pipe_[2];
	pid_t pid, holder;

	NEED(pipe(pipe_) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		holder = segment_hold(slot);
		(void)!write(pipe_[1], &holder, sizeof(holder));
		pause();
		_exit(0);
	}
	close(pipe_[1]);
	NEED(read(pipe_[0], answer, sizeof(*answer)) == sizeof(*answer));
	close(pipe_[0]);
	return pid;
}

static void
end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

FORKED_TEST(segment, a_second_process_learns_who_holds_it)
{
	struct segment_slot *slot;
	pid_t answer, pid;

	create();
	slot = join(0);
	EXPECT_EQ(segment_hold(slot), 0);
	EXPECT_EQ(segment_hold(slot), 0);
	EXPECT_EQ(segment_gen(atomic_load(&slot->claim)), 1);
	pid = child_that_holds(slot, &answer);
	EXPECT_EQ(answer, getpid());
	end_child(pid);
	segment_let_go(slot);
	EXPECT_EQ(segment_holder(atomic_load(&slot->claim)), 0);
	pid = child_that_holds(slot, &answer);
	EXPECT_EQ(answer, 0);
	segment_let_go(slot); /* it is not ours */
	EXPECT_EQ(segment_holder(atomic_load(&slot->claim)), pid);
	EXPECT_EQ(segment_hold(slot), pid);
	end_child(pid);
}

FORKED_TEST(segment, who_died_holds_nothing_reaped_or_not)
{
	struct segment_slot *slot;
	pid_t answer, pid;
	siginfo_t info;

	create();
	slot = join(0);
	pid = child_that_holds(slot, &answer);
	kill(pid, SIGKILL);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	EXPECT_EQ(segment_hold(slot), 0);
	EXPECT_EQ(segment_gen(atomic_load(&slot->claim)), 2);
	waitpid(pid, NULL, 0);
	segment_let_go(slot);
	pid = child_that_holds(slot, &answer);
	end_child(pid);
	EXPECT_EQ(segment_hold(slot), 0);
}

FORKED_TEST(segment, another_process_with_the_number_of_the_dead_holds_nothing)
{
	struct segment_slot *slot;
	pid_t answer, pid;

	create();
	slot = join(0);
	pid = child_that_holds(slot, &answer);
	EXPECT_EQ(segment_hold(slot), pid);
	atomic_fetch_sub(&slot->birth, 1); /* another one was started then */
	EXPECT_EQ(segment_hold(slot), 0);
	end_child(pid);
}

FORKED_TEST(segment, a_name_that_looks_like_a_state_misleads_nobody)
{
	struct segment_slot *slot;
	pid_t answer, pid;

	create();
	slot = join(0);
	NEED(prctl(PR_SET_NAME, "a) Z 1 (b") == 0);
	pid = child_that_holds(slot, &answer);
	EXPECT_EQ(answer, 0);
	EXPECT_EQ(segment_hold(slot), pid);
	end_child(pid);
}

FORKED_TEST(segment, the_agent_keeps_nobody_out_and_takes_from_nobody)
{
	struct segment_slot *slot;

	create();
	slot = join(0);
	EXPECT(segment_meet(slot, 1));
	EXPECT(!segment_meet(slot, 2));
	EXPECT(segment_meet(slot, 1)); /* it executed another program */
	EXPECT_EQ(segment_gen(atomic_load(&slot->claim)), 2);
	EXPECT_EQ(segment_hold(slot), 0);
	EXPECT_EQ(segment_gen(atomic_load(&slot->claim)), 3);
	EXPECT(!segment_meet(slot, 2));
}

/* A process that tries when the first gate opens, and ends when the second one does. */
static void
contend(struct segment_slot *slot, const int gate[2], int said)
{
	char go;
	bool won;

	(void)!read(gate[0], &go, 1);
	won = segment_hold(slot) == 0;
	(void)!write(said, &won, 1);
	(void)!read(gate[1], &go, 1);
	_exit(0);
}

/* How many of a crowd hold the slot. */
static int
round_of(struct segment_slot *slot)
{
	int first[2], second[2], said[2], count = 0;
	const char all[CROWD] = { 0 };
	pid_t pid[CROWD];
	bool won;

	NEED(pipe(first) == 0 && pipe(second) == 0 && pipe(said) == 0);
	for (int i = 0; i < CROWD; i++) {
		pid[i] = fork();
		NEED(pid[i] != -1);
		if (pid[i] == 0)
			contend(slot, (int[]){ first[0], second[0] }, said[1]);
	}
	NEED(write(first[1], all, CROWD) == CROWD);
	for (int i = 0; i < CROWD; i++) {
		NEED(read(said[0], &won, 1) == 1);
		count += won;
	}
	NEED(write(second[1], all, CROWD) == CROWD);
	for (int i = 0; i < CROWD; i++)
		waitpid(pid[i], NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(first[i]);
		close(second[i]);
		close(said[i]);
	}
	return count;
}

FORKED_TEST(segment, of_a_crowd_exactly_one_holds_it_each_time)
{
	struct segment_slot *slot;

	create();
	slot = join(0);
	for (int round = 0; round < ROUNDS; round++)
		EXPECT_EQ(round_of(slot), 1);
	EXPECT_EQ(segment_gen(atomic_load(&slot->claim)), ROUNDS);
}

FORKED_TEST(segment, children_of_a_fork_tell_through_the_same_slot)
{
	struct segment_slot *slot;
	struct segment_view view;
	pid_t pid[4];

	create();
	slot = join(2);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		NEED(pid[i] != -1);
		for (int k = 0; pid[i] == 0 && k < 10000; k++)
			atomic_fetch_add(&slot->tick, 1);
		if (pid[i] == 0)
			_exit(0);
	}
	for (int i = 0; i < 4; i++)
		waitpid(pid[i], NULL, 0);
	EXPECT(segment_look(fd, 2, NOW, &view));
	EXPECT_EQ(view.tick, 40000);
}

/* --- figures -------------------------------------------------------------- */

static struct segment_map
map_all(void)
{
	struct segment_tag tag = tag_of(fd);
	struct segment_map map;

	cr_assert(segment_map(&tag, &map));
	return map;
}

Test(segment, what_an_agent_counted_is_the_sum_of_its_lanes)
{
	struct figures_view view = { .calls = 7 };
	struct segment_figures *f;
	struct segment_map map;
	uint64_t at;

	create();
	map = map_all();
	at = segment_figures_at(fd, RANKS + 5);
	cr_assert_eq(at, map.plan.figures);
	cr_expect_not(segment_count(fd, at, 1, &view));
	cr_expect_eq(view.calls, 7);
	f = segment_figures(&map, 1);
	atomic_store(&f->lane[0].gen, 1);
	atomic_store(&f->lane[0].lost, 3);
	for (int i = 0; i < FIGURES_LANES; i++) {
		atomic_store(&f->lane[i].count[FIGURE_SERVED], 10);
		atomic_store(&f->lane[i].latency[i], 2);
	}
	cr_assert(segment_count(fd, at, 1, &view));
	cr_expect_eq(view.lost, 3);
	cr_expect_eq(view.calls, 2 * FIGURES_LANES);
	cr_expect_eq(view.count[FIGURE_SERVED], 10 * FIGURES_LANES);
	cr_expect_eq(view.count[FIGURE_ERRORS], 0);
	cr_expect_eq(view.latency[FIGURES_LANES - 1], 2);
	cr_expect_not(segment_count(fd, at, 0, &view));
	cr_expect_not(segment_count(fd, at, 2, &view));
	cr_expect_not(segment_count(fd, 0, 1, &view));
	segment_uncount(fd, at, 1);
	cr_expect_not(segment_count(fd, at, 1, &view));
}

Test(segment, figures_that_cannot_be_are_in_range)
{
	struct figures_view view;
	struct segment_figures *f;
	struct segment_map map;
	const int64_t most = (INT64_C(1) << 53) - 1;

	create();
	map = map_all();
	f = segment_figures(&map, 0);
	memset(f, 0xff, sizeof(*f));
	cr_assert(segment_count(fd, map.plan.figures, 0, &view));
	cr_expect_eq(view.calls, most);
	for (int i = 0; i < FIGURES; i++)
		cr_expect_eq(view.count[i], most);
	cr_expect_leq(figures_quantile(&view, 990), INT64_C(1) << 35);
}

Test(segment, one_that_has_slots_only_has_no_figures)
{
	const struct segment_wish wish = { .job = "k7m2",
		.ranks = 1,
		.most = 64 << 10 };

	fd = segment_create(&wish);
	cr_assert_neq(fd, -1);
	cr_expect_eq(segment_figures_at(fd, 1), 0);
}

Test(segment, buckets_of_latency_leave_no_gap)
{
	cr_expect_eq(figures_bucket(0), 0);
	cr_expect_eq(figures_bucket(127), 0);
	for (uint32_t i = 0; i + 1 < FIGURES_LATENCIES; i++) {
		cr_expect_eq(figures_bucket(figures_above(i) - 1), i);
		cr_expect_eq(figures_bucket(figures_above(i)), i + 1);
	}
	cr_expect_eq(figures_bucket(UINT64_MAX), FIGURES_LATENCIES - 1);
	cr_expect_eq(figures_above(FIGURES_LATENCIES - 1), UINT64_MAX);
}

Test(segment, a_quantile_is_no_less_than_what_so_many_calls_took)
{
	struct figures_view v = { .calls = 0 };

	cr_expect_eq(figures_quantile(&v, 500), 0);
	v.calls = 100;
	v.latency[0] = 99;
	v.latency[40] = 1;
	cr_expect_eq(figures_quantile(&v, 500), 128);
	cr_expect_eq(figures_quantile(&v, 990), 128);
	cr_expect_eq((uint64_t)figures_quantile(&v, 991), figures_above(40));
	cr_expect_eq((uint64_t)figures_quantile(&v, 1000), figures_above(40));
}
