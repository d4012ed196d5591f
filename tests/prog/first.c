/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first.c - a rank that joins a world, makes a group of all, and meets all in it;
 * then it leaves without a word, as what is measured is how long that took.
 *
 *   xrun -n N first [none | world | times | FILE]
 *
 * none, world: that is all it does; times: rank 0 says when it had what, in ms
 * since it was at main(); FILE: each writes there when it had met all, in ns of
 * CLOCK_MONOTONIC, 8 bytes at its place. What ranks print has files made for it, which
 * others would wait for.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xrun/coll.h>

static struct timespec begun;

static double
passed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begun.tv_sec) * 1e3 +
		(double)(now.tv_nsec - begun.tv_nsec) / 1e6;
}

static bool
stamp(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct timespec now;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	return fd != -1 &&
		pwrite(fd, &ns, sizeof(ns), xr_rank() * (off_t)sizeof(ns)) ==
		sizeof(ns);
}

int
main(int argc, char **argv)
{
	enum xr_status status;
	struct xr_world *world = NULL;
	struct xr_coll *coll = NULL;
	struct xr_error err = { 0 };
	double joined = 0, made = 0;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	if (argc > 1 && strcmp(argv[1], "none") == 0)
		return 0;
	status = xr_world_new(NULL, &world, &err);
	joined = passed();
	if (status == XR_OK && argc > 1 && strcmp(argv[1], "world") == 0)
		_exit(0);
	if (status == XR_OK)
		status = xr_coll_new(world, NULL, &coll, &err);
	made = passed();
	if (status == XR_OK)
		status = xr_coll_barrier(coll, NULL, &err);
	if (status != XR_OK) {
		fprintf(stderr, "rank %lld: %s\n", (long long)xr_rank(),
			err.text);
		return 1;
	}
	if (argc > 1 && strcmp(argv[1], "times") != 0 && !stamp(argv[1])) {
		fprintf(stderr, "%s cannot be written\n", argv[1]);
		return 1;
	}
	if (argc > 1 && strcmp(argv[1], "times") == 0 && xr_rank() == 0)
		printf("joined %.2f, made %.2f, met %.2f ms\n", joined, made,
			passed());
	fflush(stdout);
	_exit(0);
}
