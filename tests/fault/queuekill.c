/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queuekill.c - processes that put and get, and are killed at any moment.
 *
 *   queuekill [--rounds N] [--seed N] any|p2p|redeliver
 *
 * A round is one kill -9, some microseconds after the one before, of one of those who put
 * or get; another takes its place. After each the others have to go on within ten seconds.
 * At the end everything that was put has been got, but for one item for each reader that
 * was killed; and nothing twice. With redeliver nothing is lost, and what was got twice is
 * at most one for each of them.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <sys/wait.h>

#include "tests/prog/line.h"
#include "tests/prog/prog.h"
#include "tests/prog/queue_far.h"
#include "tests/prog/queue_rig.h"

#define MOST     3            /* of each */
#define ROW      (1u << 24)   /* items of one who puts, killed or not */
#define LONG_ONE (300u << 10) /* longer than a lane takes */

struct row {
	_Atomic uint32_t begun;   /* items, from the first */
	_Atomic uint8_t got[ROW]; /* how often; and PUT */
};

#define PUT 0x80 /* its writer knows that it was put */

struct board {
	_Atomic uint32_t over;
	_Atomic uint64_t moved; /* steps with each item that was got */
	struct row row[MOST];
};

static struct board *board;
static uint32_t writers = MOST, readers = MOST, killed_readers, killed;
static bool redelivers;
static int64_t rounds = 50, seed = 1;
static uint64_t chance;

static size_t
bytes_of(uint32_t seq)
{
	if (seq % 1024 == 1023)
		return LONG_ONE;
	return seq % 3 == 0 ? 8 : 16 + (size_t)seq * 37 % 5000;
}

/* That the one before is gone, elsewhere that is heard of a moment later. */
static bool
is_early(enum xr_status status)
{
	if (!far_is_on() || status != XR_E_EXISTS)
		return false;
	sched_yield();
	return true;
}

/* An item begins with whose it is, and ends so. Every other one has a time. */
static void
writer(struct xr_queue *q, uint32_t index)
{
	static uint8_t data[LONG_ONE];
	struct row *row = &board->row[index];

	rig_leave(q, XR_QUEUE_READER);
	while (atomic_load(&board->over) == 0) {
		struct rig_item item = { index, atomic_load(&row->begun) };
		size_t len = bytes_of(item.seq);
		enum xr_status status;

		EXPECT(item.seq + 1 < ROW);
		atomic_store(&row->begun, item.seq + 1);
		memcpy(data, &item, sizeof(item));
		memcpy(data + len - sizeof(item), &item, sizeof(item));
		do
			status = xr_queue_put_bytes(q, data, len,
				item.seq % 2 == 0 ? XR_SECONDS(100) :
						    XR_TIMEOUT_NEVER,
				&rig_err);
		while (is_early(status));
		EXPECT(status == XR_OK);
		atomic_fetch_or(&row->got[item.seq], PUT);
	}
}

static void
reader(struct xr_queue *q, uint32_t index)
{
	static uint8_t data[LONG_ONE];

	(void)index;
	rig_leave(q, XR_QUEUE_WRITER);
	for (;;) {
		struct xr_queue_buf buf = { .data = data,
			.room = sizeof(data) };
		enum xr_status status =
			xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, &rig_err);
		struct rig_item item, end;

		if (status == XR_E_CLOSED)
			return;
		if (is_early(status))
			continue;
		EXPECT(status == XR_OK);
		memcpy(&item, data, sizeof(item));
		memcpy(&end, data + buf.len - sizeof(end), sizeof(end));
		EXPECT(item.writer < writers && item.seq < ROW);
		EXPECT(buf.len == bytes_of(item.seq));
		EXPECT(memcmp(&item, &end, sizeof(item)) == 0);
		atomic_fetch_add(&board->row[item.writer].got[item.seq], 1);
		atomic_fetch_add(&board->moved, 1);
		if (redelivers)
			xr_queue_done(q);
	}
}

/* It takes no event to be waited for, but time: a while of no length in particular. */
static void
let_pass(void)
{
	const struct timespec t = { .tv_nsec = (long)(line_random(&chance) %
					    1500000) };

	nanosleep(&t, NULL);
}

static void
await_progress(const char *who)
{
	uint64_t before = atomic_load(&board->moved);
	int64_t until = rig_now() + XR_SECONDS(10);
	const struct timespec t = { .tv_nsec = 100000 };

	while (atomic_load(&board->moved) < before + 20) {
		if (rig_now() > until) {
			fprintf(stderr,
				"VIOLATION nobody went on after %s was killed, %u before\n",
				who, killed);
			exit(1);
		}
		nanosleep(&t, NULL);
	}
}

static pid_t
start(struct xr_queue *q, uint32_t i)
{
	return i < writers ? rig_fork(writer, q, i) :
			     rig_fork(reader, q, i - writers);
}

static void
kill_one(struct xr_queue *q, pid_t *pid)
{
	uint32_t i = (uint32_t)(line_random(&chance) % (writers + readers));

	let_pass();
	rig_kill(pid[i]);
	killed++;
	if (i >= writers)
		killed_readers++;
	pid[i] = start(q, i);
	await_progress(i < writers ? "a writer" : "a reader");
}

static int
judge(void)
{
	uint64_t all = 0, lost = 0, twice = 0;

	for (uint32_t w = 0; w < writers; w++) {
		struct row *row = &board->row[w];

		for (uint32_t i = 0; i < atomic_load(&row->begun); i++) {
			uint32_t got = row->got[i] & (PUT - 1);

			twice += got > 1 ? got - 1 : 0;
			all += got > 0;
			/* What was about to be put may be there, or not. */
			lost += row->got[i] == PUT;
		}
	}
	printf("%u kills, %u of readers; %lu items got, %lu lost, %lu twice\n",
		killed, killed_readers, (unsigned long)all, (unsigned long)lost,
		(unsigned long)twice);
	if (lost > (redelivers ? 0 : killed_readers))
		return fprintf(stderr, "VIOLATION too many are lost\n"), 1;
	if (twice > (redelivers ? killed_readers : 0))
		return fprintf(stderr, "VIOLATION some were got twice\n"), 1;
	return 0;
}

static struct xr_queue *
make(const char *kind)
{
	redelivers = strcmp(kind, "redeliver") == 0;
	if (strcmp(kind, "p2p") == 0) {
		writers = readers = 1;
		return QUEUE(.kind = XR_QUEUE_P2P, .items = 50,
			.bytes = 64 << 10);
	}
	return QUEUE(.items = 50, .bytes = 64 << 10, .redeliver = redelivers);
}

static int
play(const char *kind)
{
	struct xr_queue *q = make(kind);
	pid_t pid[2 * MOST];

	for (uint32_t i = 0; i < writers + readers; i++)
		pid[i] = start(q, i);
	await_progress("nobody");
	for (int64_t i = 0; i < rounds; i++)
		kill_one(q, pid);
	atomic_store(&board->over, 1);
	rig_join(pid, writers);
	rig_leave(q, XR_QUEUE_WRITER);
	rig_join(pid + writers, readers);
	EXPECT(xr_queue_empty(q));
	xr_queue_free(q);
	return judge();
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		{ "rounds", PROG_NUM, &rounds, "kills" },
		{ "seed", PROG_NUM, &seed, "of chance" },
		{ 0 },
	};
	int at = prog_opts(argc, argv, table);

	/* A child is told otherwise what to do. */
	if (at + 1 != argc && !(far_is_on() && argc == 1))
		prog_die(0, "usage: queuekill [OPTION]... any|p2p|redeliver");
	rig_keep(&writers, sizeof(writers));
	rig_keep(&readers, sizeof(readers));
	rig_keep(&redelivers, sizeof(redelivers));
	board = rig_init(sizeof(*board));
	if (far_is_on())
		far_begin();
	alarm((unsigned)(60 + rounds));
	chance = (uint64_t)seed * 2 + 1;
	return play(argv[at]);
}
