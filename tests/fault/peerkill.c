/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerkill.c - ranks that are killed while others call them (peers.c).
 *
 *   peerkill [--rounds N] [--seed N] [--ranks N] [--apart] XRUN PEERS DIR
 *
 * A round is one kill -9, at a random moment, of a rank that has touched 0, 100 or
 * 1000 MiB; every other rank waits in a call to it, and in every second round all
 * call each other with little and much meanwhile. A job has six rounds. What must
 * hold is in peers.c and scene.h; how long it took everybody to hear of it is
 * printed: a processor that takes memory down does nothing else meanwhile, so with
 * --apart the victim has one, and the others the others. Nothing is asked of the
 * time but an end: others may have the processors.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/fault/board.h"
#include "tests/fault/scene.h"
#include "tests/prog/prog.h"

#define PATIENCE 120000 /* ms */
#define SAMPLES  100000

/* Of rounds of one kind. */
struct kind {
	uint32_t touch;
	bool busy;
	uint32_t rounds, count;
	int64_t ns[SAMPLES];
};

static struct kind kinds[] = {
	{ .touch = 0 },
	{ .touch = 100 },
	{ .touch = 1000 },
	{ .touch = 0, .busy = true },
	{ .touch = 100, .busy = true },
	{ .touch = 1000, .busy = true },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct scene scene;
static uint64_t answered;
static uint32_t ranks = BOARD_RANKS;
static bool apart;

static struct board *
board_new(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct board *board = MAP_FAILED;

	if (fd != -1 && ftruncate(fd, sizeof(*board)) == 0)
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);
	if (fd != -1)
		close(fd);
	return board;
}

static void
note(const struct board *board, uint32_t round)
{
	int64_t killed = atomic_load(&board->was[round].killed_ns);
	struct kind *k = NULL;

	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].touch == board->was[round].touch &&
			kinds[i].busy == board->was[round].busy)
			k = &kinds[i];
	if (k == NULL)
		return;
	k->rounds++;
	for (uint32_t r = 0; r < BOARD_RANKS; r++) {
		int64_t lost = atomic_load(&board->was[round].lost_ns[r]);

		if (lost != 0 && k->count < SAMPLES)
			k->ns[k->count++] = lost - killed;
	}
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t
at(const struct kind *k, uint32_t percent)
{
	return k->ns[(uint64_t)(k->count - 1) * percent / 100] / 1000;
}

static void
print(struct kind *k)
{
	if (k->count == 0)
		return;
	qsort(k->ns, k->count, sizeof(k->ns[0]), compare);
	printf("%4u MiB, %s: %u rounds, heard by %u after us: median %ld, 99 of 100 %ld, all %ld\n",
		k->touch, k->busy ? "busy" : "idle", k->rounds, k->count,
		(long)at(k, 50), (long)at(k, 99), (long)at(k, 100));
}

static void
judge(struct board *board, int status)
{
	uint32_t count = atomic_load(&board->wrong);

	for (uint32_t i = 0; i < count && i < BOARD_WRONG; i++)
		scene_broken(&scene, "%.255s", board->text[i]);
	/* The first who died by a signal. */
	if (status != -1 && !(WIFEXITED(status) && WEXITSTATUS(status) == 137))
		scene_broken(&scene, "wait status %x, not 137", status);
	if (board->done != ranks - 2)
		scene_broken(&scene, "%u rounds of %u", board->done, ranks - 2);
	for (uint32_t i = 0; i < board->done; i++)
		note(board, i);
	for (uint32_t r = 0; r < BOARD_RANKS; r++)
		answered += atomic_load(&board->calls[r]);
}

static void
play(char *xrun, char *peers, uint64_t seed)
{
	const struct scene_end end = { .orphans_ms = 1000 };
	char path[600], number[16];
	char *argv[] = { xrun, "-n", number, "--on-failure=continue", peers,
		path, NULL };
	struct board *board;
	int status;

	scene_clear(&scene);
	snprintf(scene.what, sizeof(scene.what), "seed %lu",
		(unsigned long)seed);
	snprintf(number, sizeof(number), "%u", ranks);
	snprintf(path, sizeof(path), "%s/board", scene.dir);
	board = board_new(path);
	if (board == MAP_FAILED) {
		scene_broken(&scene, "no board");
		return;
	}
	board->seed = seed;
	board->ranks = ranks;
	board->apart = apart;
	scene_start(&scene, argv, false);
	status = scene_wait(&scene, PATIENCE);
	judge(board, status);
	scene_check(&scene, &end);
	munmap(board, sizeof(*board));
}

int
main(int argc, char **argv)
{
	int64_t rounds = 12, seed = 1, number = BOARD_RANKS, done = 0;
	const struct prog_opt opts[] = {
		{ "rounds", PROG_NUM, &rounds, "kills" },
		{ "seed", PROG_NUM, &seed, "of the first job" },
		{ "ranks", PROG_NUM, &number, "of a job, 3 to 8" },
		{ "apart", PROG_FLAG, &apart,
			"the victim has a processor of its own" },
		{ 0 },
	};
	int i = prog_opts(argc, argv, opts);

	if (argc - i != 3 || number < 3 || number > BOARD_RANKS) {
		fprintf(stderr, "usage: peerkill [OPTION]... XRUN PEERS DIR\n");
		return 2;
	}
	ranks = (uint32_t)number;
	scene_init(&scene, argv[i + 2]);
	for (; done < rounds; done += ranks - 2)
		play(argv[i], argv[i + 1], (uint64_t)(seed++));
	for (size_t k = 0; k < KINDS; k++)
		print(&kinds[k]);
	printf("%ld rounds, %lu calls answered beside them, %u violations\n",
		(long)done, (unsigned long)answered, scene.broken);
	scene_fini(&scene);
	return scene.broken > 0;
}
