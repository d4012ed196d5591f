/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu.c - fuzz target: what is known of a TPU slice, and the shape of a job.
 *
 * Input: a first line "V ranks" and lines of an environment; or "M ranks", a
 * line of worker-network-endpoints, one of agent-worker-number, and the text
 * of tpu-env.
 *
 * Claims: a refusal has words; facts are in range; the same facts said in
 * tpu-env are the same facts; every process of an accepted shape has one
 * address, and every rank here a port.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/span.h"
#include "place/pjrt.h"
#include "place/tpu_facts.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 16

static const char *const names[][2] = {
	{ "TPU_ACCELERATOR_TYPE", "ACCELERATOR_TYPE" },
	{ "TPU_PROCESS_BOUNDS", "TPU_PROCESS_BOUNDS" },
	{ "TPU_HOST_BOUNDS", "HOST_BOUNDS" },
	{ "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_PROCESS_BOUNDS" },
	{ "TPU_CHIPS_PER_HOST_BOUNDS", "CHIPS_PER_HOST_BOUNDS" },
};

static void
check_bounds(const struct tpu_bounds *b)
{
	for (int i = 0; b->name != NULL && i < 3; i++)
		HOLDS(b->at[i] >= 1 && b->at[i] <= 65536);
}

static void
check_facts(const struct tpu_facts *facts)
{
	HOLDS((facts->type != NULL) == (facts->version != 0));
	HOLDS(facts->version <= 9);
	HOLDS(facts->worker <= TPU_WORKERS_MAX);
	HOLDS(facts->worker_known || facts->worker == 0);
	HOLDS(facts->type != NULL || facts->process.name == NULL);
	check_bounds(&facts->process);
	check_bounds(&facts->chips);
}

static void
check_addresses(const struct pjrt *pjrt, size_t processes)
{
	struct span rest = span_of(pjrt->addresses);
	size_t n = 0;

	for (; rest.at != NULL; n++) {
		struct span piece = span_next(&rest, ',');
		const char *colon = memrchr(piece.at, ':', piece.len);

		HOLDS(colon != NULL && colon + 1 < piece.at + piece.len);
	}
	HOLDS(n == processes);
}

static void
check_shape(const struct pjrt *pjrt, const struct tpu_facts *facts,
	uint32_t ranks)
{
	size_t hosts = 1;
	unsigned at[3];

	if (facts->workers != NULL && *facts->workers != '\0')
		hosts = span_count(span_of(facts->workers), ',');
	HOLDS((pjrt->ports == NULL) == (pjrt->addresses == NULL));
	if (pjrt->process_bounds != NULL)
		HOLDS(sscanf(pjrt->process_bounds, "%u,%u,%u", &at[0], &at[1],
			      &at[2]) == 3 &&
			at[0] > 0 && at[1] > 0 && at[2] > 0);
	if (pjrt->addresses == NULL) {
		HOLDS(ranks == 1 || pjrt->process_bounds == NULL);
		return;
	}
	HOLDS(pjrt->process_bounds != NULL);
	check_addresses(pjrt, hosts * ranks);
	HOLDS(pjrt->first_task + ranks <= hosts * ranks);
	for (uint32_t i = 0; i < ranks; i++)
		HOLDS(pjrt->ports[i] != 0);
}

static void
check_make(const struct tpu_facts *facts, uint32_t ranks)
{
	struct xr_error err = { 0 };
	struct pjrt pjrt = { 0 };
	enum xr_status status = pjrt_make(&pjrt, facts, ranks, &err);

	fuzz_error(status, &err);
	if (status == XR_OK)
		check_shape(&pjrt, facts, ranks);
	pjrt_fini(&pjrt);
}

/* KEY: 'value', with its quotes doubled. */
static void
put_key(struct buf *out, const char *key, const char *value)
{
	if (value == NULL)
		return;
	buf_fmt(out, "%s: '", key);
	for (; *value != '\0'; value++)
		buf_fmt(out, *value == '\'' ? "''" : "%c", *value);
	buf_put_text(out, "'\n");
}

static void
same_facts(const struct tpu_facts *a, const struct tpu_facts *b)
{
	HOLDS(a->version == b->version);
	HOLDS((a->type == NULL) == (b->type == NULL));
	HOLDS(a->type == NULL || strcmp(a->type, b->type) == 0);
	HOLDS(a->worker == b->worker && a->worker_known == b->worker_known);
	HOLDS(memcmp(a->process.at, b->process.at, sizeof(a->process.at)) == 0);
	HOLDS(memcmp(a->chips.at, b->chips.at, sizeof(a->chips.at)) == 0);
}

/* What the variables say is what tpu-env would say. */
static void
check_twin(const struct fuzz_lines *lines, const struct tpu_facts *facts,
	enum xr_status status)
{
	const char *worker = fuzz_get(lines, "CLOUD_TPU_TASK_ID");
	struct tpu_facts twin = { 0 };
	struct buf text = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_key(&text, names[i][1], fuzz_get(lines, names[i][0]));
	if (worker == NULL || *worker == '\0')
		worker = fuzz_get(lines, "TPU_WORKER_ID");
	put_key(&text, "WORKER_ID", worker);
	HOLDS(tpu_facts_of_metadata(&twin, buf_text(&text), NULL, NULL, NULL) ==
		status);
	if (status == XR_OK)
		same_facts(facts, &twin);
	tpu_facts_fini(&twin);
	buf_fini(&text);
}

static void
run_vars(const struct fuzz_lines *lines, uint32_t ranks)
{
	struct tpu_facts facts = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status = tpu_facts_of_vars(&facts, lines->at, &err);
	bool newline = false;

	fuzz_error(status, &err);
	for (size_t i = 0; i < lines->n; i++)
		newline = newline || strchr(lines->at[i], '\n') != NULL;
	if (!newline)
		check_twin(lines, &facts, status);
	if (status != XR_OK)
		return;
	check_facts(&facts);
	check_make(&facts, ranks);
	tpu_facts_fini(&facts);
}

static void
run_metadata(const struct fuzz_lines *lines, uint32_t ranks, const char *text)
{
	const char *endpoints = lines->n > 1 ? lines->at[1] : NULL;
	const char *worker = lines->n > 2 ? lines->at[2] : NULL;
	struct tpu_facts facts = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status;

	if (worker != NULL && *worker == '\0')
		worker = NULL;
	status = tpu_facts_of_metadata(&facts, text, endpoints, worker, &err);
	fuzz_error(status, &err);
	if (status != XR_OK)
		return;
	check_facts(&facts);
	check_make(&facts, ranks);
	tpu_facts_fini(&facts);
}

/* What follows the first three lines. */
static const char *
after_three(const char *text)
{
	for (int i = 0; i < 3; i++) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines lines = fuzz_lines(data, size, LINES_MAX);
	char *all = fuzz_text(data, size);
	unsigned ranks = 1;

	if (lines.n > 0 && lines.at[0][0] != '\0')
		sscanf(lines.at[0] + 1, " %5u", &ranks);
	ranks = ranks == 0 ? 1 : ranks;
	if (*all == 'M')
		run_metadata(&lines, ranks, after_three(all));
	else
		run_vars(&lines, ranks);
	free(all);
	fuzz_lines_free(&lines);
	return 0;
}
