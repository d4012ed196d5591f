/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd.c - ranks that meet, of which one after the other is killed; crowdkill.c
 * starts them.
 *
 *   crowd BOARD [tcp]
 *
 * What must hold is looked at by everybody: nobody leaves a barrier that a member
 * has not entered; a call ends well, or, soon after a member died, with the loss of
 * it by its name; those who are left make new groups and go on.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>

#include <xrun/job.h>

#include "tests/fault/crowd.h"
#include "tests/fault/left.h"

#define TIMEOUT  XR_SECONDS(20)
#define AGREE    16  /* barriers, until it is asked whether that is all */
#define LONGEST  200 /* works of one group */
#define BARRIERS 4000

struct crowd *crowd;
uint32_t crowd_me;

static struct xr_world *world;
static uint64_t own_random;

int64_t
crowd_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

uint32_t
crowd_draw(uint64_t *random, uint32_t most)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(*random >> 20) % most;
}

static uint64_t
stir(uint64_t a, uint64_t b)
{
	uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15) + b + 1;

	return (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) | 1;
}

void
crowd_wrong(const char *fmt, ...)
{
	uint32_t at = atomic_fetch_add(&crowd->wrong, 1);
	va_list ap;
	int n;

	if (at >= CROWD_WRONG)
		return;
	n = snprintf(crowd->text[at], sizeof(crowd->text[at]),
		"rank %u, members %llx, barrier %u: ", crowd_me,
		(unsigned long long)crowd->word[crowd_me] >> 32,
		(uint32_t)crowd->word[crowd_me]);
	va_start(ap, fmt);
	vsnprintf(crowd->text[at] + n, sizeof(crowd->text[at]) - (size_t)n, fmt,
		ap);
	va_end(ap);
}

/* --- judging ---------------------------------------------------------------------- */

/* "rank3", and no "rank30". */
static bool
names_rank(const char *text, uint32_t rank)
{
	char name[16];
	size_t len = (size_t)snprintf(name, sizeof(name), "rank%u", rank);

	for (; (text = strstr(text, name)) != NULL; text += len)
		if (text[len] < '0' || text[len] > '9')
			return true;
	return false;
}

/* From when on it could be known: one that is named is dead. INT64_MAX: none is. */
static int64_t
named_since(const struct crowd_team *t, const char *text)
{
	int64_t first = INT64_MAX, killed;

	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t r = t->member[i];

		if (!atomic_load(&crowd->dead[r]) || !names_rank(text, r))
			continue;
		killed = atomic_load(&crowd->killed_ns[r]);
		first = killed < first ? killed : first;
	}
	return first;
}

bool
crowd_judge(const struct crowd_team *t, const char *what, int64_t begun,
	enum xr_status status, const struct xr_error *err)
{
	int64_t since, took;

	atomic_fetch_add(&crowd->beat[crowd_me], 1);
	if (status == XR_OK)
		return true;
	since = named_since(t, err->text);
	took = crowd_now() - (begun > since ? begun : since);
	if (status != XR_E_PEER_LOST || since == INT64_MAX)
		crowd_wrong("%s: %s: %s", what, xr_status_name(status),
			err->text);
	else if (took > CROWD_SOON)
		crowd_wrong("%s: after %lld ms: %s", what,
			(long long)took / 1000000, err->text);
	else if (took > atomic_load(&crowd->slowest[crowd_me]))
		atomic_store(&crowd->slowest[crowd_me], took);
	atomic_fetch_add(&crowd->heard[crowd_me], 1);
	return false;
}

/* --- making ----------------------------------------------------------------------- */

/* Now and then one is late; it may be the one that is killed next. */
static void
dawdle(void)
{
	uint32_t what = crowd_draw(&own_random, 256);
	int64_t ns = 0;

	if (what < 4)
		ns = crowd_draw(&own_random, 3000000);
	else if (what < 32)
		ns = crowd_draw(&own_random, 100000);
	if (ns > 0)
		nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static uint32_t
living(void)
{
	uint32_t mask = 0;

	for (uint32_t r = 0; r < crowd->ranks; r++)
		mask |= (uint32_t)!atomic_load(&crowd->dead[r]) << r;
	return mask;
}

/* Numbers go on from one group of these members to the next. */
static uint32_t
number_of(const struct crowd_team *t, uint32_t barrier)
{
	return t->times << 12 | barrier;
}

static void
set_members(struct crowd_team *t, uint32_t mask)
{
	t->times = mask == t->mask ? t->times + 1 : 0;
	t->mask = mask;
	t->count = 0;
	for (uint32_t r = 0; r < crowd->ranks; r++)
		if ((mask >> r & 1) != 0)
			t->member[t->count++] = r;
	atomic_store(&crowd->word[crowd_me],
		(uint64_t)mask << 32 | number_of(t, 0));
}

static bool
make_coll(struct crowd_team *t)
{
	const struct xr_coll_opts opts = { .size = sizeof(opts),
		.ranks = t->member,
		.count = t->count,
		.timeout = TIMEOUT };
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();

	return crowd_judge(t, "xr_coll_new", begun,
		xr_coll_new(world, &opts, &t->coll, &err), &err);
}

static bool
make_group(struct crowd_team *t)
{
	const char *member[CROWD_RANKS];
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "crowd",
		.members = member,
		.count = t->count,
		.timeout = TIMEOUT };
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();

	for (uint32_t i = 0; i < t->count; i++)
		member[i] = xr_world_member(world, t->member[i]);
	return crowd_judge(t, "xr_group_new", begun,
		xr_group_new(world, &opts, &t->group, &err), &err);
}

static void
free_both(struct crowd_team *t)
{
	xr_group_free(t->group);
	xr_coll_free(t->coll);
	t->group = NULL;
	t->coll = NULL;
}

/* In either order, the same on all. */
static bool
make_both(struct crowd_team *t)
{
	bool made;

	if (stir(t->mask, t->times) % 3 != 0)
		made = make_coll(t) && make_group(t);
	else
		made = make_group(t) && make_coll(t);
	atomic_fetch_add(&crowd->made[crowd_me], made);
	return made;
}

/* --- meeting ---------------------------------------------------------------------- */

/* All who are members have entered: what they say they are at is this, or what
 * comes later. */
static void
look_around(const struct crowd_team *t, uint32_t number)
{
	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t word = atomic_load(&crowd->word[t->member[i]]);
		uint32_t mask = (uint32_t)(word >> 32);

		if ((mask == t->mask && (uint32_t)word < number) ||
			(mask != t->mask && (mask & t->mask) == t->mask))
			crowd_wrong("%u has not entered: it is at %x, %u",
				t->member[i], mask, (uint32_t)word);
	}
}

/* A failed group stays so. */
static void
fail_again(const struct crowd_team *t)
{
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();
	enum xr_status status = xr_coll_barrier(t->coll, NULL, &err);

	if (crowd_judge(t, "again", begun, status, &err))
		crowd_wrong("a group that had failed goes on");
}

static bool
meet(const struct crowd_team *t, uint32_t number, bool by_names)
{
	struct xr_error err = { 0 };
	enum xr_status status;
	int64_t begun;

	atomic_store(&crowd->word[crowd_me], (uint64_t)t->mask << 32 | number);
	begun = crowd_now();
	status = by_names ?
		xr_group_barrier(t->group, XR_TIMEOUT_DEFAULT, &err) :
		xr_coll_barrier(t->coll, NULL, &err);
	if (!crowd_judge(t, by_names ? "xr_group_barrier" : "xr_coll_barrier",
		    begun, status, &err)) {
		if (!by_names)
			fail_again(t);
		return false;
	}
	look_around(t, number);
	if (t->member[0] == crowd_me)
		atomic_fetch_add(&crowd->barriers[by_names][crowd_me], 1);
	return true;
}

/* Has one of them heard that it is over? Then all have. False: one is lost. */
static bool
agree(const struct crowd_team *t, bool *over)
{
	int32_t word = atomic_load(&crowd->over);
	const struct xr_coll_op op = { .size = sizeof(op),
		.dtype = XR_DT_I32,
		.data = &word,
		.count = 1,
		.op = XR_MAX };
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();

	if (!crowd_judge(t, "is it over", begun,
		    xr_coll_allreduce(t->coll, &op, &err), &err))
		return false;
	*over = word != 0;
	return true;
}

/* Until it is over, or one dies, or, of works, these groups have done enough. */
static bool
play(const struct crowd_team *t)
{
	uint64_t random = stir(stir(crowd->seed, t->mask), t->times);
	uint32_t end =
		crowd->works ? 1 + crowd_draw(&random, LONGEST) : BARRIERS;
	bool over = false;

	if (crowd->works && !crowd_hand_out(t))
		return false;
	for (uint32_t i = 1; i < end && !over; i++) {
		atomic_store(&crowd->state[crowd_me],
			i == 1 ? CROWD_MADE : CROWD_MEETS);
		dawdle();
		if (!meet(t, number_of(t, i), crowd_draw(&random, 2) == 0))
			return false;
		if (crowd->works && !crowd_work(t, stir(random, i)))
			return false;
		if (i % AGREE == 0 && !agree(t, &over))
			return false;
	}
	/* Until then others call this one by its keys. */
	meet(t, number_of(t, end), false);
	return over;
}

/* Nobody uses what the dead had. */
static void
look_into_segment(const struct crowd_team *t)
{
	int64_t end = crowd_now() + TIMEOUT / 2;
	uint32_t spans, rings;
	struct segment_map map;

	if (!left_map(&map)) {
		crowd_wrong("there is no segment");
		return;
	}
	do {
		spans = left_spans(&map);
		rings = left_rings(&map, crowd->ranks, t->mask);
		atomic_store(&crowd->spans[crowd_me],
			left_used(&map, crowd_me));
		if (spans + rings == 0)
			return;
		poll(NULL, 0, 1);
	} while (crowd_now() < end);
	crowd_wrong("%u spans and %u rings of the dead are left", spans, rings);
}

/* --- a rank ------------------------------------------------------------------------ */

/* Who leaves at once drops what he has not sent yet. */
static void
go_together(const struct crowd_team *t)
{
	int64_t end = crowd_now() + TIMEOUT;

	atomic_store(&crowd->state[crowd_me], CROWD_GOES);
	for (uint32_t i = 0; i < t->count; i++)
		while (atomic_load(&crowd->state[t->member[i]]) != CROWD_GOES) {
			if (crowd_now() > end) {
				crowd_wrong("%u does not go", t->member[i]);
				return;
			}
			poll(NULL, 0, 1);
		}
}

static void
live(void)
{
	struct crowd_team t = { 0 };
	bool over = false;

	while (!over) {
		atomic_store(&crowd->state[crowd_me], CROWD_MAKES);
		set_members(&t, living());
		dawdle();
		if (make_both(&t))
			over = play(&t);
		free_both(&t);
	}
	go_together(&t);
	if (t.member[0] == crowd_me)
		look_into_segment(&t);
}

static bool
open_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd == -1)
		return false;
	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, 0);
	close(fd);
	return crowd != MAP_FAILED;
}

static enum xr_status
join(bool by_tcp, struct xr_error *err)
{
	const char *const tcp[] = { "tcp" };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	enum xr_status status = xr_rpc_opts_init(0, &rpc, err);

	rpc.transports = tcp;
	rpc.transport_count = by_tcp;
	rpc.threads = CROWD_POOL;
	opts.rpc = &rpc;
	if (status == XR_OK)
		status = crowd_serve(err);
	return status == XR_OK ? xr_world_new(&opts, &world, err) : status;
}

int
main(int argc, char **argv)
{
	struct xr_error err = { 0 };

	crowd_me = xr_job_rank();
	if (argc < 2 || crowd_me >= CROWD_RANKS || !open_board(argv[1])) {
		fprintf(stderr, "crowd: no board\n");
		return 2;
	}
	own_random = stir(crowd->seed, crowd_me + 100);
	if (join(argc > 2, &err) != XR_OK) {
		crowd_wrong("%s", err.text);
		return 1;
	}
	atomic_store(&crowd->pid[crowd_me], getpid());
	live();
	xr_world_close(world, XR_SHUTDOWN_IMMEDIATE, XR_SECONDS(10), &err);
	xr_world_free(world);
	return 0;
}
