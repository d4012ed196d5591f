/* SPDX-License-Identifier: Apache-2.0 */
/* gangstep.c - the engine below pools of threads, worker/gang/gang.h, by itself; see
 * peers/pool.h. */
#include "peers/pool.h"
#include "worker/gang/gang.h"
#include "worker/rpc/waiter.h"

struct step {
	struct gang_task task;
	uint64_t number;
};

static struct gang *gang;
static _Atomic uint64_t left;
static struct waiter over;

static void
run_step(struct gang_task *task, uint32_t seat)
{
	struct step *step = (struct step *)task;

	(void)seat;
	run_task(step->number);
	free(step);
	if (atomic_fetch_sub(&left, 1) == 1)
		waiter_end(&over);
}

static void
run_part(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	(void)ctx;
	(void)seat;
	for (uint64_t i = begin; i < end; i++)
		run_task(i);
}

static struct gang_task *
step_of(uint64_t number)
{
	struct step *step = malloc(sizeof(*step));

	if (step == NULL)
		exit(4);
	*step = (struct step){ { .run = run_step, .drop = NULL }, number };
	return &step->task;
}

static void
post(uint64_t count)
{
	atomic_store(&left, count);
	over = (struct waiter){ 0 };
	for (uint64_t i = 0; i < count; i++)
		if (!gang_post(gang, step_of(i)))
			exit(4);
	waiter_rest(&over, INT64_MAX);
}

static void
apply(void)
{
	struct gang_task *task = step_of(0);

	atomic_store(&left, 1);
	over = (struct waiter){ 0 };
	if (gang_run(gang, task))
		return;
	if (!gang_post(gang, task))
		exit(4);
	waiter_rest(&over, INT64_MAX);
}

static int
play(uint64_t count)
{
	struct gang_loop loop = { run_part, NULL, count, 1, NULL, NULL };

	if (run_is("map")) {
		gang_for(gang, &loop);
	} else if (run_is("post")) {
		post(count);
	} else if (run_is("apply")) {
		for (uint64_t i = 0; i < count; i++)
			apply();
	} else if (run_is("loop")) {
		loop.count = (uint64_t)run.workers;
		for (uint64_t i = 0; i < count; i++)
			gang_for(gang, &loop);
	} else {
		return 0;
	}
	return 1;
}

int
main(int argc, char **argv)
{
	struct gang_opts opts = { .name = "bench" };

	run_init(argc, argv);
	opts.seats = (uint32_t)run.workers;
	if (gang_new(&opts, &gang) != 0)
		return 4;
	return run_play(play);
}
