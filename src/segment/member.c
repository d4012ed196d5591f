/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - see member.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "segment/layout.h"
#include "segment/member.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
/* Fields of proc(5) behind the state, 3: threads are 20, the start is 22. */
#define THREADS   17
#define START     19
#define NOT_THERE UINT64_MAX

bool
segment_tag_parse(const char *text, struct segment_tag *tag)
{
	unsigned long long inode;
	char *end = NULL;
	int saved = errno;
	long fd;

	if (text == NULL || *text < '0' || *text > '9')
		return false;
	fd = strtol(text, &end, 10);
	if (fd > INT32_MAX || *end != ':' || end[1] < '0' || end[1] > '9')
		return false;
	inode = strtoull(end + 1, &end, 10);
	errno = saved;
	if (*end != '\0')
		return false;
	*tag = (struct segment_tag){ .fd = (int)fd, .inode = inode };
	return true;
}

/* The size of a memfd that keeps its size; 0: it is not that. */
static uint64_t
sealed_size(const struct segment_tag *tag)
{
	struct stat st;

	if (fstat(tag->fd, &st) == -1 || st.st_ino != tag->inode ||
		!S_ISREG(st.st_mode) ||
		(fcntl(tag->fd, F_GET_SEALS) & SEALS) != SEALS ||
		st.st_size < SEGMENT_HEAD)
		return 0;
	return (uint64_t)st.st_size;
}

/* A copy is looked at: the original may change meanwhile. */
static bool
fits(const void *map, uint64_t size, uint32_t rank)
{
	struct segment_head head;
	bool fits;

	memcpy(&head, map, sizeof(head));
	fits = head.magic == SEGMENT_MAGIC && head.version == SEGMENT_VERSION &&
		head.slot_size == SEGMENT_SLOT && head.size == size &&
		rank < head.ranks && segment_slot_at(rank + 1) <= size;
	explicit_bzero(head.secret, sizeof(head.secret));
	return fits;
}

/* @size bytes from the beginning, or NULL. Core dumps leave them out. */
static char *
map_some(int fd, uint64_t size)
{
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return NULL;
	madvise(map, size, MADV_DONTDUMP);
	return map;
}

struct segment_slot *
segment_join(const struct segment_tag *tag, uint32_t rank)
{
	int saved = errno;
	uint64_t size = sealed_size(tag),
		 slots = segment_slot_at(rank) + SEGMENT_SLOT;
	char *map = NULL;

	if (size >= slots)
		map = map_some(tag->fd, slots);
	if (map != NULL && !fits(map, size, rank)) {
		munmap(map, slots);
		map = NULL;
	}
	errno = saved;
	return map == NULL ? NULL : (void *)(map + segment_slot_at(rank));
}

bool
segment_map(const struct segment_tag *tag, struct segment_map *map)
{
	int saved = errno;
	uint64_t size = sealed_size(tag);
	struct segment_head head;

	*map = (struct segment_map){ .base = NULL };
	if (size > 0 &&
		pread(tag->fd, &head, sizeof(head), 0) == sizeof(head) &&
		fits(&head, size, 0) && head.ranks <= head.slots &&
		segment_plan(head.slots, size, &map->plan) &&
		map->plan.spans > 0)
		map->base = map_some(tag->fd, size);
	if (map->base != NULL)
		map->ranks = head.ranks;
	explicit_bzero(head.secret, sizeof(head.secret));
	errno = saved;
	return map->base != NULL;
}

struct segment_gauges *
segment_gauges_join(const struct segment_tag *tag, uint32_t rank)
{
	int saved = errno;
	uint64_t size = sealed_size(tag),
		 page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct segment_plan plan;
	struct segment_head head;
	char *map = MAP_FAILED;
	uint64_t at = 0;

	if (size > 0 &&
		pread(tag->fd, &head, sizeof(head), 0) == sizeof(head) &&
		fits(&head, size, rank) && head.ranks <= head.slots &&
		segment_plan(head.slots, size, &plan) && plan.spans > 0) {
		at = plan.gauges + (uint64_t)rank * SEGMENT_GAUGES;
		map = mmap(NULL, at % page + SEGMENT_GAUGES,
			PROT_READ | PROT_WRITE, MAP_SHARED, tag->fd,
			(off_t)(at - at % page));
	}
	if (map != MAP_FAILED)
		madvise(map, at % page + SEGMENT_GAUGES, MADV_DONTDUMP);
	explicit_bzero(head.secret, sizeof(head.secret));
	errno = saved;
	return map == MAP_FAILED ? NULL : (void *)(map + at % page);
}

/* --- who holds it --------------------------------------------------------- */

/* Field @n behind the state; 0: there is none. */
static uint64_t
field(const char *at, int n)
{
	for (int i = 0; i < n && at != NULL; i++)
		at = strchr(at + 1, ' ');
	return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

/* When process @pid was started; NOT_THERE if it is gone, or dead and not
 * reaped; 0 if nobody says. The first thread of a process may be dead while
 * others run. */
static uint64_t
start_of(uint32_t pid)
{
	char path[32], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return kill((pid_t)pid, 0) == -1 && errno == ESRCH ? NOT_THERE :
								     0;
	n = fd_read_some(fd, text, sizeof(text) - 1);
	fd_close(fd);
	if (n <= 0)
		return NOT_THERE;
	text[n] = '\0';
	at = strrchr(text, ')'); /* a name may have one, too */
	if (at == NULL || at[1] == '\0')
		return 0;
	if (at[2] == 'X' || (at[2] == 'Z' && field(at + 1, THREADS) <= 1))
		return NOT_THERE;
	return field(at + 1, START);
}

/* A number may have passed on to another process. */
static bool
lives(const struct segment_slot *slot, uint64_t claim)
{
	uint64_t birth = atomic_load(&slot->birth);
	uint64_t start = start_of(segment_holder(claim));
	uint32_t gen = segment_gen(claim);

	if (start == NOT_THERE)
		return false;
	return start == 0 || birth >> 40 != gen ||
		birth == segment_birth_word(gen, start);
}

/* In which process ids are numbers; 0: nobody says. */
static uint32_t
space_of_pids(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == -1)
		return 0;
	return (uint32_t)st.st_ino;
}

/* Is the holder's number one of other process ids? */
static bool
is_elsewhere(const struct segment_slot *slot, uint64_t claim)
{
	uint64_t birth = atomic_load(&slot->birth);
	uint32_t space = atomic_load(&slot->space);

	return birth >> 40 == segment_gen(claim) && space != 0 &&
		space != space_of_pids();
}

bool
segment_gone(const struct segment_slot *slot, uint64_t claim, bool thorough)
{
	uint32_t pid = segment_holder(claim);
	int saved = errno;
	bool gone;

	if (pid == 0 || pid > INT32_MAX)
		return pid == 0;
	if (kill((pid_t)pid, 0) == -1 && errno == ESRCH)
		gone = true;
	else
		gone = thorough && !lives(slot, claim);
	gone = gone && !is_elsewhere(slot, claim);
	errno = saved;
	return gone;
}

/* What this image of this process holds, as the claim says: exec forgets it, fork
 * is noticed. By the claim, since it may be mapped twice. */
static struct {
	_Atomic uint64_t claim;
	_Atomic pid_t pid;
	_Atomic bool kept;
} held;

static bool
is_mine(uint64_t claim)
{
	return atomic_load(&held.claim) == claim &&
		atomic_load(&held.pid) == getpid() &&
		segment_state(claim) == SEGMENT_HELD &&
		segment_holder(claim) == (uint32_t)getpid();
}

/* What is to be held is noted before: another thread may be at it, too. */
pid_t
segment_hold(struct segment_slot *slot)
{
	uint32_t pid = (uint32_t)getpid(), gen;
	int saved = errno;
	uint64_t seen;

	do {
		seen = atomic_load(&slot->claim);
		gen = segment_gen(seen) + 1;
		if (is_mine(seen))
			return 0;
		if (segment_state(seen) == SEGMENT_HELD &&
			segment_holder(seen) != pid &&
			(is_elsewhere(slot, seen) || lives(slot, seen))) {
			errno = saved;
			return (pid_t)segment_holder(seen);
		}
		atomic_store(&held.pid, (pid_t)pid);
		atomic_store(&held.claim,
			segment_claim_word(gen, SEGMENT_HELD, pid));
	} while (!segment_take(slot, seen, SEGMENT_HELD, pid));
	atomic_store(&slot->space, space_of_pids());
	atomic_store(&slot->birth, segment_birth_word(gen, start_of(pid)));
	errno = saved;
	return 0;
}

void
segment_let_go(struct segment_slot *slot)
{
	uint64_t seen = atomic_load(&slot->claim);

	if (is_mine(seen) && !atomic_load(&held.kept))
		segment_take(slot, seen, SEGMENT_FREE, 0);
}

void
segment_keep(void)
{
	atomic_store(&held.kept, true);
}
