/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - see owner.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "base/fd.h"
#include "segment/figures.h"
#include "segment/gauge.h"
#include "segment/layout.h"
#include "segment/owner.h"
#include "segment/sweep.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

#define ALARM      0x10001u
#define LOOK_SLOTS 16 /* at once */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#define STEP_MAX ((INT64_C(1) << 53) - 1) /* readers of JSON count so far */

static int
make(void)
{
	int fd = memfd_create("xrun",
		MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd == -1 && errno == EINVAL)
		fd = memfd_create("xrun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

static uint64_t
limit_of(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) == 0 ? limit.rlim_cur :
						  RLIM_INFINITY;
}

/* As much as there is memory, and as the limits of who will map it allow; 0: not
 * even the slots. What nobody writes to costs nothing. */
static uint64_t
size_of(uint32_t slots, uint64_t most)
{
	uint64_t file = limit_of(RLIMIT_FSIZE), map = limit_of(RLIMIT_AS);
	uint64_t size = SEGMENT_SIZE_MAX, memory;
	struct segment_plan plan;
	struct sysinfo info;

	if (sysinfo(&info) == 0) {
		memory = segment_round((uint64_t)info.totalram * info.mem_unit,
			SEGMENT_SPAN);
		size = memory < size ? memory : size;
	}
	if (file < size) /* beyond it is a signal */
		size = file;
	if (most > 0 && most < size)
		size = most;
	if (map / 4 < size)
		size = map / 4; /* others want to map things, too */
	size -= size % SEGMENT_PAGE;
	if (file < segment_slot_at(slots))
		return 0;
	if (size < segment_slot_at(slots))
		return segment_slot_at(slots);
	return segment_plan(slots, size, &plan) ? plan.size : 0;
}

static bool
fill(int fd, const struct segment_wish *wish)
{
	struct segment_head head = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.slot_size = SEGMENT_SLOT,
		.job = segment_hash(wish->job),
		.attempt = wish->attempt,
		.first = wish->first,
		.ranks = wish->ranks,
		.slots = wish->ranks + wish->spare,
	};
	bool filled;

	head.size = size_of(head.slots, wish->most);
	if (head.size == 0)
		errno = EFBIG;
	filled = head.size > 0 &&
		getrandom(head.secret, sizeof(head.secret), GRND_NONBLOCK) ==
			sizeof(head.secret) &&
		ftruncate(fd, (off_t)head.size) == 0 &&
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
		pwrite(fd, &head, sizeof(head), 0) == sizeof(head);
	explicit_bzero(head.secret, sizeof(head.secret));
	return filled;
}

int
segment_create(const struct segment_wish *wish)
{
	int fd = make();

	if (fd == -1 || fill(fd, wish))
		return fd;
	fd_close(fd);
	return -1;
}

/* Four workers a CPU that we may use, and some more. */
uint32_t
segment_spare(void)
{
	cpu_set_t cpus;
	int count = 1;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		count = CPU_COUNT(&cpus);
	return 4 * (uint32_t)count + 64;
}

static int64_t
within(int64_t n, int64_t most)
{
	if (n < 0)
		return 0;
	return n < most ? n : most;
}

bool
segment_look(int fd, uint32_t index, int64_t now, struct segment_view *view)
{
	struct segment_slot c; /* nobody else writes it */
	uint64_t claim;

	*view = (struct segment_view){ .step = -1, .total = -1 };
	if (pread(fd, &c, sizeof(c), (off_t)segment_slot_at(index)) !=
		sizeof(c))
		return false;
	claim = c.claim;
	view->gen = segment_gen(claim);
	view->holder = segment_holder(claim);
	view->held = segment_state(claim) == SEGMENT_HELD;
	view->tick = c.tick;
	if (c.step > 0)
		view->step = within(c.step - 1, STEP_MAX);
	if (c.total > 0)
		view->total = within(c.total, STEP_MAX);
	view->when = within(c.when, now);
	view->lost = within((int64_t)c.lost, STEP_MAX);
	view->shares = c.probe != 0;
	view->open = c.plane != 0;
	return true;
}

/* False: it has slots only. */
static bool
plan_of(int fd, uint32_t slots, struct segment_plan *plan)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
		segment_plan(slots, (uint64_t)st.st_size, plan) &&
		plan->spans > 0;
}

uint64_t
segment_figures_at(int fd, uint32_t slots)
{
	struct segment_plan plan;

	return plan_of(fd, slots, &plan) ? plan.figures : 0;
}

uint64_t
segment_gauges_at(int fd, uint32_t slots)
{
	struct segment_plan plan;

	return plan_of(fd, slots, &plan) ? plan.gauges : 0;
}

/* Both are in range, and so is the sum. */
static int64_t
plus(int64_t sum, uint64_t n)
{
	return within((int64_t)(n < (uint64_t)STEP_MAX ? n : STEP_MAX) + sum,
		STEP_MAX);
}

bool
segment_count(int fd, uint64_t at, uint32_t index, struct figures_view *view)
{
	struct segment_figures f; /* nobody else writes it */
	const struct segment_lane *first = &f.lane[0];

	if (at == 0 ||
		pread(fd, &f, sizeof(f),
			(off_t)(at + (uint64_t)index * SEGMENT_FIGURES)) !=
			sizeof(f) ||
		first->gen == 0)
		return false;
	*view = (struct figures_view){ .lost = first->lost };
	for (const struct segment_lane *l = first; l < first + FIGURES_LANES;
		l++) {
		for (uint32_t i = 0; i < FIGURES; i++)
			view->count[i] = plus(view->count[i], l->count[i]);
		for (uint32_t i = 0; i < FIGURES_LATENCIES; i++) {
			view->latency[i] =
				plus(view->latency[i], l->latency[i]);
			view->calls = plus(view->calls, l->latency[i]);
		}
	}
	return true;
}

void
segment_uncount(int fd, uint64_t at, uint32_t index)
{
	const uint32_t none = 0;
	ssize_t n = pwrite(fd, &none, sizeof(none),
		(off_t)(at + (uint64_t)index * SEGMENT_FIGURES +
			offsetof(struct segment_figures, lane[0].gen)));

	(void)n; /* then the next one counts on */
}

void
segment_name(int fd, uint32_t index, int32_t pid)
{
	ssize_t n = pwrite(fd, &pid, sizeof(pid),
		(off_t)segment_slot_at(index) +
			(off_t)offsetof(struct segment_slot, pid));

	(void)n; /* then its peers do not know it */
}

void
segment_recycle(int fd, uint32_t index, uint32_t gen)
{
	const struct segment_slot fresh = {
		.claim = segment_claim_word(gen + 1, SEGMENT_FREE, 0),
	};
	ssize_t n = pwrite(fd, &fresh, sizeof(fresh),
		(off_t)segment_slot_at(index));

	(void)n; /* as it was, then */
}

/* --- who died ------------------------------------------------------------- */

/* Counts on by so much that no step of another's makes up for it. */
static void
step_word(int fd, uint64_t at)
{
	uint32_t word = 0;
	ssize_t n = pread(fd, &word, sizeof(word), (off_t)at);

	word += ALARM;
	if (n == sizeof(word))
		n = pwrite(fd, &word, sizeof(word), (off_t)at);
}

/* The kernel finds the sleepers by the page; nothing of it is looked at here. */
static void
wake(int fd, const char *slots, uint32_t index)
{
	uint64_t at =
		segment_slot_at(index) + offsetof(struct segment_slot, bell);

	step_word(fd, at + offsetof(struct segment_bell, rung));
	syscall(SYS_futex, slots + at + offsetof(struct segment_bell, rung),
		FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Of slots that were read. Who has ended is woken by nobody. */
static bool
sleeps(const struct segment_slot *slot)
{
	return atomic_load(&slot->bell.asleep) != 0 && !segment_marked(slot);
}

void
segment_alarm(int fd, uint32_t slots)
{
	struct segment_slot slot[LOOK_SLOTS];
	size_t size = segment_slot_at(slots);
	char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	ssize_t n = 0;

	if (map == MAP_FAILED)
		return;
	madvise(map, size, MADV_DONTDUMP); /* it begins with the secret */
	step_word(fd, SEGMENT_SHARED + offsetof(struct segment_shared, fails));
	for (uint32_t i = 0; i < slots; i++) {
		if (i % LOOK_SLOTS == 0)
			n = pread(fd, slot, sizeof(slot),
				(off_t)segment_slot_at(i));
		if (n >= (ssize_t)sizeof(slot[0]) * (i % LOOK_SLOTS + 1) &&
			sleeps(&slot[i % LOOK_SLOTS]))
			wake(fd, map, i);
	}
	munmap(map, size);
}

static void
empty(void *ctx, uint64_t offset, uint64_t len)
{
	fallocate(*(int *)ctx, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)offset, (off_t)len);
}

static bool
map_tables(int fd, uint32_t ranks, uint32_t slots, struct segment_map *map)
{
	struct stat st;

	*map = (struct segment_map){ .ranks = ranks };
	if (fstat(fd, &st) == -1 ||
		!segment_plan(slots, (uint64_t)st.st_size, &map->plan) ||
		map->plan.spans == 0)
		return false;
	map->base = mmap(NULL, map->plan.arena, PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	if (map->base == MAP_FAILED)
		return false;
	madvise(map->base, map->plan.arena, MADV_DONTDUMP);
	return true;
}

/* A page that cannot be had shall be an error, and no signal. Before Linux 5.14
 * there is no way to ask. */
static bool
touch(const struct segment_map *map, uint64_t at, uint64_t len)
{
	uint64_t from = at - at % SEGMENT_PAGE;

	return madvise(map->base + from,
		       segment_round(at + len - from, SEGMENT_PAGE),
		       MADV_POPULATE_READ) == 0 ||
		errno == EINVAL;
}

/* What will be read: of whoever had a slot, his row, and his holds. */
static bool
touch_all(const struct segment_map *map)
{
	uint64_t row = (uint64_t)map->plan.slots * 8;
	uint64_t holds = SEGMENT_HOLDS * 8;

	if (!touch(map, 0, map->plan.dir) ||
		!touch(map, map->plan.map, (uint64_t)map->plan.spans * 8))
		return false;
	for (uint32_t i = 0; i < map->plan.slots; i++) {
		const struct segment_slot *slot = segment_slot(map, i);

		if (atomic_load(&slot->claim) != 0 &&
			!touch(map, map->plan.dir + i * row, row))
			return false;
		if (atomic_load(&slot->holds) != 0 &&
			!touch(map, map->plan.holds + i * holds, holds))
			return false;
	}
	return true;
}

/* Of spare slots nobody tells us that their process ended. */
static void
bury(const struct segment_map *map)
{
	for (uint32_t i = 0; i < map->plan.slots; i++)
		segment_bury(map, i,
			i >= map->ranks ||
				segment_marked(segment_slot(map, i)));
}

uint32_t
segment_reclaim(int fd, uint32_t ranks, uint32_t slots)
{
	struct segment_map map;
	struct segment_sweeper sweeper = {
		.map = &map,
		.slot = SEGMENT_SUPERVISOR,
		.most = UINT32_MAX,
		.empty = empty,
		.ctx = &fd,
	};
	uint32_t freed = 0;

	if (!map_tables(fd, ranks, slots, &map))
		return 0;
	if (touch_all(&map)) {
		bury(&map);
		freed = segment_sweep(&sweeper).freed;
	}
	munmap(map.base, map.plan.arena);
	return freed;
}
