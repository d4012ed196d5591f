/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.c - fuzz target: arguments of --template.
 *
 * Input: first line, a rank and a number of ranks (two numbers); then an
 * argument a line.
 *
 * Claims: a refusal has words; every rank gets as many arguments as there are,
 * the program's name and those without a brace as they are; the pieces of an
 * argument cover it; no rank's texts reach beyond the room set aside for the
 * widest (the sanitizer sees to that).
 */
#include <stdio.h>
#include <string.h>

#include "base/brace.h"
#include "base/span.h"
#include "place/args.h"
#include "place/template.h"
#include "tests/fuzz/fuzz.h"

/* Pieces lie in the text, one behind the other, and end. */
static void
check_pieces(const char *text)
{
	struct brace b = brace_of(span_of(text), template_names);
	struct brace_piece piece;
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;
	size_t last = 0, len = strlen(text);

	do {
		status = brace_next(&b, &piece, &err);
		fuzz_error(status, &err);
		if (status != XR_OK)
			return;
		HOLDS(piece.at == last && b.at <= len);
		HOLDS(piece.name == BRACE_END || b.at > last);
		if (piece.name == BRACE_TEXT)
			HOLDS(piece.text.len > 0 &&
				piece.text.at >= text + last &&
				piece.text.at + piece.text.len <= text + b.at);
		last = b.at;
	} while (piece.name != BRACE_END);
	HOLDS(last == len);
}

static void
check_rank(struct args *args, const struct fuzz_lines *in, uint32_t local)
{
	char *const *argv = args_of_rank(args, local, UINT32_MAX);

	for (size_t i = 1; i < in->n; i++) {
		HOLDS(argv[i - 1] != NULL);
		if (i == 1 || strpbrk(in->at[i], "{}") == NULL)
			HOLDS(argv[i - 1] == in->at[i]);
		else
			HOLDS(strlen(argv[i - 1]) < 12 * strlen(in->at[i]));
	}
	HOLDS(argv[in->n - 1] == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines in = fuzz_lines(data, size, 40);
	struct plan plan = { .size = UINT32_MAX, .nodes = 1, .host = "node7" };
	struct args_facts facts = { .plan = &plan, .job = "k7m2" };
	struct args *args = NULL;
	struct xr_error err = { 0 };
	unsigned first = 0, local = 0;
	enum xr_status status;

	if (in.n > 1 && sscanf(in.at[0], "%9u %9u", &first, &local) == 2) {
		plan.first = first;
		plan.local_size = local + 1;
		facts.part.size = local + 1;
		facts.argv = in.at + 1;
		for (size_t i = 1; i < in.n; i++)
			check_pieces(in.at[i]);
		status = args_new(&args, &facts, &err);
		fuzz_error(status, &err);
		if (status == XR_OK) {
			check_rank(args, &in, 0);
			check_rank(args, &in, local);
		}
		args_free(args);
	}
	fuzz_lines_free(&in);
	return 0;
}
