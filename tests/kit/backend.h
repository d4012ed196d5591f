/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - the backend with which a test is made: that of the variable
 * TEST_BACKEND, or the default.
 *
 * So what holds of one can be tried with the other: tests/e2e/process_group.bats.
 */
#ifndef TESTS_KIT_BACKEND_H
#define TESTS_KIT_BACKEND_H

#include <stdio.h>
#include <stdlib.h>

#include <xrun/rpc.h>

/* tested_backend() - 0: the default. Ends the program where there is none of that
 * name. */
static inline xr_backend_id
tested_backend(void)
{
	const char *name = getenv("TEST_BACKEND");
	xr_backend_id id = name != NULL ? xr_backend_find(name) : 0;

	if (name != NULL && id == 0) {
		fprintf(stderr, "TEST_BACKEND: there is no %s\n", name);
		exit(2);
	}
	return id;
}

#endif /* TESTS_KIT_BACKEND_H */
