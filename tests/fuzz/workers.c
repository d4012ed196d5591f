/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - fuzz target: the worker list of an XRT job, and the plan that
 * follows from it.
 *
 * Input: lines of an environment; N=ranks and ANY=1 stand for the options.
 *
 * Claims: a refusal has words; counts are in range; a list printed again is
 * the same list; ranks of all hosts lie within the world and do not overlap.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/plan.h"
#include "place/worker_list.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX 16

static bool
same_span(struct span a, struct span b)
{
	return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static void
print_list(const struct worker_list *list, struct buf *out)
{
	for (uint32_t i = 0; i < list->count; i++) {
		const struct worker *w = &list->workers[i];

		buf_fmt(out, "%s%.*s;%u;%.*s:%u", i == 0 ? "" : "|",
			(int)w->name.len, w->name.at, w->ordinal,
			(int)w->host.len, w->host.at, w->port);
	}
}

/* What stands in a list, printed and read again, is the same list. */
static void
check_list(const struct worker_list *list)
{
	struct worker_list again;
	struct xr_error err = { 0 };
	struct buf text = { 0 };

	print_list(list, &text);
	HOLDS(worker_list_parse(&again, "V", buf_text(&text), &err) == XR_OK);
	HOLDS(again.count == list->count);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct worker *a = &list->workers[i];
		const struct worker *b = &again.workers[i];

		HOLDS(same_span(a->name, b->name));
		HOLDS(same_span(a->host, b->host));
		HOLDS(a->ordinal == b->ordinal && a->port == b->port);
		HOLDS(a->port != 0 && a->name.len > 0 && a->host.len > 0);
		for (uint32_t j = 0; j < i; j++)
			HOLDS(a->ordinal != list->workers[j].ordinal ||
				!same_span(a->name, list->workers[j].name));
	}
	worker_list_fini(&again);
	buf_fini(&text);
}

static void
check_env(const struct worker_env *env, const struct fuzz_lines *lines)
{
	HOLDS(env->present == worker_env_detect(lines->at));
	if (!env->present)
		return;
	HOLDS(env->devices >= 1 && env->devices <= WORKER_MAX);
	HOLDS(env->hosts >= 1 && env->hosts <= WORKER_MAX);
	HOLDS(env->host < env->hosts);
	HOLDS((env->list.count > 0) ==
		(fuzz_get(lines, "XRT_TPU_CONFIG") != NULL));
	HOLDS((env->local.name.at != NULL) ==
		(fuzz_get(lines, "XRT_LOCAL_WORKER") != NULL));
	if (env->list.count > 0)
		check_list(&env->list);
}

static void
check_plan(const struct plan *plan, const struct plan_facts *facts)
{
	HOLDS(plan->local_size >= 1 && plan->size >= plan->local_size);
	HOLDS(plan->size == plan->local_size * plan->nodes);
	HOLDS(plan->size <= PLAN_RANKS_MAX);
	HOLDS(plan->node < plan->nodes);
	HOLDS(plan->first + plan->local_size <= plan->size);
	HOLDS(plan->first % plan->local_size == 0);
	HOLDS(plan->deal_count >= 1);
	HOLDS(facts->ranks == 0 || plan->local_size == facts->ranks);
	if (!facts->any_ranks && plan->workers.present && facts->ranks > 1)
		HOLDS(facts->ranks == plan->workers.devices);
	for (uint32_t i = 0; i < 3 && i < plan->local_size; i++)
		HOLDS(plan_deal(plan, i)->text != NULL);
}

static int64_t
ranks_of(const char *text)
{
	return text == NULL ? 0 : (int64_t)strtoll(text, NULL, 10) % 100000;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines lines = fuzz_lines(data, size, LINES_MAX);
	struct plan_facts facts = {
		.ranks = ranks_of(fuzz_get(&lines, "N")),
		.any_ranks = fuzz_get(&lines, "ANY") != NULL,
		.host = "h",
		.vars = lines.at,
	};
	struct xr_error err = { 0 };
	struct worker_env env = { 0 };
	struct plan plan = { 0 };
	enum xr_status status = worker_env_read(&env, lines.at, &err), planned;

	fuzz_error(status, &err);
	if (status == XR_OK) {
		check_env(&env, &lines);
		worker_env_fini(&env);
	}
	err = (struct xr_error){ 0 };
	planned = plan_make(&plan, &facts, &err);
	fuzz_error(planned, &err);
	HOLDS(status == XR_OK || planned == status);
	if (planned == XR_OK) {
		check_plan(&plan, &facts);
		plan_fini(&plan);
	}
	fuzz_lines_free(&lines);
	return 0;
}
