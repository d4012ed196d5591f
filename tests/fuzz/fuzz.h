/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what every fuzz target shares.
 *
 * A target is one LLVMFuzzerTestOneInput() in a file of its own. It takes the
 * input apart, calls the parser, and then checks claims about the result: that
 * it did not crash is the least of them. A claim that does not hold ends the
 * program, which is a finding. With clang it is linked to libFuzzer
 * (tests/fuzz/build); with any compiler to replay.c, which runs files.
 *
 * Inputs are text, so that a person can read and write them: a line for each
 * word or variable, where a vertical tab stands for a newline inside of it.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>

#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* HOLDS() - a claim about what was parsed. */
#define HOLDS(x) XR_ASSERT(x)

/*
 * Lines of an input. Each is a block of its own, so that whoever reads beyond
 * one is caught. @at is NULL-terminated, as argv and environ are.
 */
struct fuzz_lines {
	char **at;
	size_t n;
};

/* fuzz_lines() - at most @max of them; NUL ends a line, too. */
struct fuzz_lines fuzz_lines(const uint8_t *data, size_t size, size_t max);
void fuzz_lines_free(struct fuzz_lines *lines);

/* fuzz_text() - all of it as one text of its own size, up to the first NUL. */
char *fuzz_text(const uint8_t *data, size_t size);

/* fuzz_get() - the value of the first NAME= among the lines, or NULL. */
const char *fuzz_get(const struct fuzz_lines *lines, const char *name);

/* fuzz_error() - a failure has words, on one line; a success has none. */
void fuzz_error(enum xr_status status, const struct xr_error *err);

#endif /* TESTS_FUZZ_FUZZ_H */
