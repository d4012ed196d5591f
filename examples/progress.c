/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - a rank that tells how far it is, and saves what it has before it
 * ends. In another window: xrun ps JOB, xrun stop JOB.
 *
 *   xrun -n 4 build/examples/progress [STEPS]        1000 of 10 ms each
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <xrun/job.h>

static void
work(void)
{
	const struct timespec step = { .tv_nsec = 10000000 };

	nanosleep(&step, NULL);
}

static void
save(int64_t step)
{
	const struct timespec second = { .tv_sec = 1 };

	xr_job_extend(INT64_C(30000000000)); /* wait for it, --grace or not */
	nanosleep(&second, NULL);
	printf("rank %u of %u: saved at step %lld\n", (unsigned)xr_job_rank(),
		(unsigned)xr_job_size(), (long long)step);
}

int
main(int argc, char **argv)
{
	int64_t total = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000;
	int64_t step;

	xr_job_report_crashes(NULL);
	xr_job_on_stop(NULL, NULL, NULL);
	xr_job_ready();
	for (step = 0; step < total && !xr_job_stopping(); step++) {
		struct xr_metric loss = { "loss", 1.0 / (double)(step + 1) };
		struct xr_progress progress = {
			.size = sizeof(progress),
			.step = step + 1,
			.total = total,
			.metrics = &loss,
			.metric_count = 1,
		};

		work();
		xr_job_progress(&progress);
	}
	if (xr_job_stopping())
		save(step);
	return 0;
}
