/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - see figures.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "launcher/tell/figures.h"
#include "segment/figures.h"
#include "segment/owner.h"

/* Without memory for it nothing is known of this rank. */
void
figures_told(struct rank *rank, const struct figures_view *view)
{
	if (rank->figures == NULL)
		rank->figures = malloc(sizeof(*rank->figures));
	if (rank->figures != NULL)
		*rank->figures = *view;
}

void
figures_blame(struct job *job, uint32_t r, int64_t peer)
{
	peer -= job->plan.first;
	if (job->rank[r].blames == 0 && peer >= 0 && peer < job_size(job))
		job->rank[r].blames = (uint32_t)peer + 1;
}

static bool
look(struct job *job, uint32_t r)
{
	struct figures_view view;

	if (!segment_count(SPAWN_SLOT_SEGMENT, job->figures_at, r, &view))
		return false;
	figures_told(&job->rank[r], &view);
	if (view.lost != 0)
		figures_blame(job, r, (int64_t)view.lost - 1);
	return true;
}

void
figures_look(struct job *job, uint32_t r)
{
	look(job, r);
}

void
figures_reaped(struct job *job, uint32_t r)
{
	if (look(job, r))
		segment_uncount(SPAWN_SLOT_SEGMENT, job->figures_at, r);
}

/* --- JSON ----------------------------------------------------------------- */

static double
seconds(int64_t ns)
{
	return (double)ns / NS_PER_S;
}

/* Of the last bucket nobody knows where it ends. */
static void
put_latency(struct json *j, const struct figures_view *v)
{
	json_open_array(j, "latency");
	for (uint32_t i = 0; i < FIGURES_LATENCIES; i++) {
		if (v->latency[i] == 0)
			continue;
		json_open_object(j, NULL);
		if (figures_above(i) != UINT64_MAX)
			json_real(j, "below",
				seconds((int64_t)figures_above(i)));
		json_int(j, "calls", v->latency[i]);
		json_close_object(j);
	}
	json_close_array(j);
}

void
figures_put(struct json *j, const struct rank *rank)
{
	const struct figures_view *v = rank->figures;

	if (v == NULL)
		return;
	json_open_object(j, "rpc");
	json_int(j, "calls", v->calls);
	json_int(j, "errors", v->count[FIGURE_ERRORS]);
	json_int(j, "timeouts", v->count[FIGURE_TIMEOUTS]);
	json_int(j, "oneway", v->count[FIGURE_ONEWAY]);
	json_int(j, "served", v->count[FIGURE_SERVED]);
	json_int(j, "bytes_out", v->count[FIGURE_BYTES_OUT]);
	json_int(j, "bytes_in", v->count[FIGURE_BYTES_IN]);
	json_real(j, "seconds", seconds(v->count[FIGURE_CALL_NS]));
	json_real(j, "p50", seconds(figures_quantile(v, 500)));
	json_real(j, "p99", seconds(figures_quantile(v, 990)));
	put_latency(j, v);
	json_close_object(j);
}
