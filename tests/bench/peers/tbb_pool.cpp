/* SPDX-License-Identifier: Apache-2.0 */
/* tbb_pool.cpp - oneTBB, see pool.h. The thread that waits is one of the workers. */
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include "pool.h"

static int
play(uint64_t count)
{
	tbb::task_group group;

	if (run_is("map")) {
		tbb::parallel_for(uint64_t(0), count, run_task);
	} else if (run_is("post")) {
		for (uint64_t i = 0; i < count; i++)
			group.run([i] { run_task(i); });
		group.wait();
	} else if (run_is("apply")) {
		for (uint64_t i = 0; i < count; i++) {
			group.run([] { run_task(0); });
			group.wait();
		}
	} else if (run_is("loop")) {
		for (uint64_t i = 0; i < count; i++)
			tbb::parallel_for(uint64_t(0), uint64_t(run.workers),
				run_task, tbb::simple_partitioner());
	} else {
		return 0;
	}
	return 1;
}

int
main(int argc, char **argv)
{
	run_init(argc, argv);
	tbb::global_control limit(
		tbb::global_control::max_allowed_parallelism,
		size_t(run.workers));
	return run_play(play);
}
