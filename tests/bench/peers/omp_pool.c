/* SPDX-License-Identifier: Apache-2.0 */
/* omp_pool.c - OpenMP, see pool.h; OMP_WAIT_POLICY says how its threads wait. */
#include <omp.h>

#include "pool.h"

static void
map(uint64_t count)
{
#pragma omp parallel for schedule(guided)
	for (uint64_t i = 0; i < count; i++)
		run_task(i);
}

static void
post(uint64_t count)
{
#pragma omp parallel
#pragma omp single
	for (uint64_t i = 0; i < count; i++) {
#pragma omp task firstprivate(i)
		run_task(i);
	}
}

static int
play(uint64_t count)
{
	if (run_is("map")) {
		map(count);
	} else if (run_is("post")) {
		post(count);
	} else if (run_is("loop")) {
		for (uint64_t n = 0; n < count; n++) {
#pragma omp parallel for schedule(static)
			for (uint64_t i = 0; i < (uint64_t)run.workers; i++)
				run_task(i);
		}
	} else {
		return 0;
	}
	return 1;
}

int
main(int argc, char **argv)
{
	run_init(argc, argv);
	omp_set_num_threads((int)run.workers);
	return run_play(play);
}
