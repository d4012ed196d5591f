/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_worker_child.c - the rank that the tests of libxrun and of the shim
 * run: its argument says what to do.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/spawn.h>

/* A named function in every frame, whatever the optimiser thinks. */
#define FRAME __attribute__((noinline, noclone))
#if defined(__clang__)
#undef FRAME
#define FRAME __attribute__((noinline))
#endif

FRAME static enum xr_status
raise_it(struct xr_error *err)
{
	enum xr_status status;

	status = xr_error_set(err, XR_E_RANGE, "sample 1797 of 1797");
	__asm__ volatile("" ::: "memory");
	return status;
}

FRAME static enum xr_status
dig(int depth, struct xr_error *err)
{
	enum xr_status status;

	status = depth == 0 ? raise_it(err) : dig(depth - 1, err);
	__asm__ volatile("" ::: "memory");
	return status;
}

static enum xr_status
fail_by_system(struct xr_error *err)
{
	errno = ENOENT;
	xr_error_set(err, XR_E_SYS, "digits.bin");
	return errno == ENOENT ? XR_E_SYS : XR_E_STATE;
}

/* What is raised and survived first is not what the rank fails of. */
static enum xr_status
recover_then_fail(struct xr_error *err)
{
	dig(30, err);
	return xr_error_set(err, XR_E_TIMEOUT, "nobody came");
}

static enum xr_status
body(uint32_t ordinal, void *ctx, struct xr_error *err)
{
	const char *what = ctx;

	if (strcmp(what, "ok") == 0)
		return XR_OK;
	if (strcmp(what, "ordinal") == 0)
		return printf("%u\n", ordinal) > 0 ? XR_OK : XR_E_SYS;
	if (strcmp(what, "fail") == 0)
		return printf("before\n") > 0 ? dig(2, err) : XR_OK;
	if (strcmp(what, "deep") == 0)
		return dig(100, err);
	if (strcmp(what, "silent") == 0)
		return XR_E_CANCELLED;
	if (strcmp(what, "null") == 0)
		return dig(2, NULL);
	if (strcmp(what, "system") == 0)
		return fail_by_system(err);
	if (strcmp(what, "recover") == 0)
		return recover_then_fail(err);
	exit((int)strtol(what, NULL, 10));
}

/* One line, a word on stderr, and another line when stdin ends. */
static int
speak(const char *first)
{
	char c;

	printf("%s", first);
	fprintf(stderr, "said\n");
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	printf("second\n");
	return 0;
}

int
main(int argc, char **argv)
{
	int sys = errno;

	if (argc != 2)
		return 2;
	if (strcmp(argv[1], "errno") == 0)
		return sys;
	if (strcmp(argv[1], "line") == 0)
		return speak("first\n");
	if (strcmp(argv[1], "part") == 0)
		return speak("first");
	if (strcmp(argv[1], "nofn") == 0)
		return xr_main(NULL, NULL);
	return xr_main(body, argv[1]);
}
