/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procstart.c - how long it takes to start a process of a program, and till its end is
 * known.
 *
 *   procstart METHOD COUNT MIB
 *
 * One after the other, of a program that has written to MIB of memory, since a copy of
 * that is what fork(2) makes. Prints both times of each, in ns, as one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/proc.h>

#include "base/clock.h"

static enum xr_status
nothing(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	return XR_OK;
}

static int
give_up(const struct xr_error *err)
{
	fprintf(stderr, "procstart: %s\n", err->text);
	return 1;
}

static void
print_all(const char *name, const int64_t *ns, long count)
{
	printf("\"%s\": [", name);
	for (long i = 0; i < count; i++)
		printf("%s%lld", i > 0 ? ", " : "", (long long)ns[i]);
	printf("]");
}

static int
measure(const char *method, long count)
{
	struct xr_proc_opts opts = {
		.size = sizeof(opts),
		.func = "nothing",
		.method = method,
	};
	int64_t *started = calloc((size_t)count, sizeof(*started));
	int64_t *ended = calloc((size_t)count, sizeof(*ended));
	struct xr_error err = { 0 };

	for (long i = -1; i < count; i++) { /* the first makes the zygote */
		int64_t begun = clock_now(), there;
		struct xr_proc *p;

		if (xr_proc_start(&opts, &p, &err) != XR_OK)
			return give_up(&err);
		there = clock_now();
		if (xr_proc_watch(p, XR_SECONDS(30), &err) != XR_OK)
			return give_up(&err);
		if (i >= 0) {
			started[i] = there - begun;
			ended[i] = clock_now() - begun;
		}
		xr_proc_free(p);
	}
	printf("{");
	print_all("started", started, count);
	printf(", ");
	print_all("ended", ended, count);
	printf("}\n");
	free(started);
	free(ended);
	return 0;
}

int
main(int argc, char **argv)
{
	struct xr_error err = { 0 };
	size_t size;
	char *used;
	int status;

	if (argc != 4)
		return 2;
	if (xr_proc_register("nothing", nothing, NULL, &err) != XR_OK ||
		xr_init(&err) != XR_OK)
		return give_up(&err);
	size = (size_t)strtoul(argv[3], NULL, 10) << 20;
	used = malloc(size + 1);
	memset(used, 1, size + 1);
	__asm__ volatile("" ::"r"(used) : "memory");
	status = measure(argv[1], strtol(argv[2], NULL, 10));
	free(used);
	return status;
}
