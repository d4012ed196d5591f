/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.c - threads that share tasks, under the thread sanitizer. TAP.
 *
 * OPERATIONS is how many tasks, and indices of loops, 200000 otherwise.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/gang/gang.h"
#include "worker/rpc/waiter.h"

#define SEATS   3
#define POSTERS 3
#define WINDOW  1000 /* tasks at a time of one who posts */

struct job {
	struct gang_task task;
	struct poster *of;
	uint32_t children; /* that it posts, behind it in memory */
	uint32_t number;   /* plain: who sees it has been told of it */
};

struct poster {
	pthread_t thread;
	struct job job[WINDOW];
	_Atomic uint32_t left;
	struct waiter over;
	uint64_t rounds;
	uint32_t loops[WINDOW]; /* plain, each index once a loop */
};

static struct gang *gang;
static uint64_t each;
static uint64_t by_seat[SEATS]; /* plain */
static int test;

static void
claim(bool holds, const char *what)
{
	printf("%sok %d - %s\n", holds ? "" : "not ", ++test, what);
}

static void
run(struct gang_task *task, uint32_t seat)
{
	struct job *job = (struct job *)task;
	struct poster *p = job->of;

	by_seat[seat]++;
	job->number++;
	for (uint32_t i = 1; i <= job->children; i++)
		if (!gang_post(gang, &job[i].task))
			abort();
	if (atomic_fetch_sub(&p->left, 1) == 1)
		waiter_end(&p->over);
}

static void
drop(struct gang_task *task)
{
	(void)task;
	abort();
}

static void
part(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	struct poster *p = ctx;

	if (seat != GANG_NOBODY)
		by_seat[seat]++;
	for (uint64_t i = begin; i < end; i++)
		p->loops[i]++;
}

/* Tens, in turn: one that posts the nine behind it, and a list. */
static void
post_round(struct poster *p)
{
	p->left = WINDOW;
	p->over = (struct waiter){ 0 };
	for (uint32_t i = 0; i < WINDOW; i += 10) {
		if (i % 20 == 0) {
			p->job[i].children = 9;
			if (!gang_post(gang, &p->job[i].task))
				abort();
			continue;
		}
		for (uint32_t n = 0; n < 9; n++)
			p->job[i + n].task.next = &p->job[i + n + 1].task;
		if (!gang_post_list(gang, &p->job[i].task, &p->job[i + 9].task))
			abort();
	}
	waiter_rest(&p->over, INT64_MAX);
	if (!waiter_is_done(&p->over))
		abort();
}

static void *
post(void *arg)
{
	struct poster *p = arg;
	const struct gang_loop loop = { part, p, WINDOW, 7, NULL, NULL };
	struct job alone = { .task = { .run = run, .drop = drop }, .of = p };

	for (uint32_t i = 0; i < WINDOW; i++)
		p->job[i] = (struct job){ .task = { .run = run, .drop = drop },
			.of = p };
	for (p->rounds = 0; p->rounds * WINDOW * 2 < each; p->rounds++) {
		post_round(p);
		gang_for(gang, &loop);
		atomic_store(&p->left, 2);
		if (gang_run(gang, &alone.task))
			alone.number--;
	}
	return NULL;
}

static bool
is_whole(const struct poster *p)
{
	bool whole = true;

	for (uint32_t i = 0; i < WINDOW; i++)
		whole = whole && p->job[i].number == p->rounds &&
			p->loops[i] == p->rounds;
	return whole;
}

/* Quiet times between, so that they fall asleep. */
static void
doze(void)
{
	struct gang_figures f;

	do
		gang_figures(gang, &f);
	while (f.asleep < SEATS);
}

int
main(void)
{
	static struct poster poster[POSTERS];
	const char *operations = getenv("OPERATIONS");
	const struct gang_opts opts = { .seats = SEATS, .name = "gang" };
	bool whole = true;

	puts("1..3");
	each = (operations != NULL ? strtoull(operations, NULL, 10) : 200000) /
		POSTERS;
	if (gang_new(&opts, &gang) != 0)
		return 2;
	for (int i = 0; i < POSTERS; i++)
		pthread_create(&poster[i].thread, NULL, post, &poster[i]);
	for (int i = 0; i < POSTERS; i++) {
		pthread_join(poster[i].thread, NULL);
		whole = whole && is_whole(&poster[i]);
	}
	claim(whole, "what is posted and looped over, by three, once each");
	whole = true;
	each = 2 * WINDOW;
	for (int i = 0; i < 20; i++) {
		doze();
		poster[0].rounds = 0;
		for (uint32_t n = 0; n < WINDOW; n++)
			poster[0].loops[n] = 0;
		post(&poster[0]);
		whole = whole && is_whole(&poster[0]);
	}
	claim(whole, "by those who slept, too");
	gang_close(gang);
	claim(gang_join(gang, INT64_MAX), "they end");
	gang_free(gang);
	return 0;
}
