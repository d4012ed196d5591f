/* SPDX-License-Identifier: Apache-2.0 */
/* hello_main.c - a rank as a function; with an argument, a failing one. */
#include <stdio.h>

#include <xrun/spawn.h>

static enum xr_status
greet(uint32_t ordinal, void *ctx, struct xr_error *err)
{
	const char *missing = ctx;

	if (missing != NULL)
		return xr_error_set(err, XR_E_NOTFOUND, missing);
	printf("hello from ordinal %u\n", (unsigned)ordinal);
	return XR_OK;
}

int
main(int argc, char **argv)
{
	return xr_main(greet, argc > 1 ? argv[1] : NULL);
}
