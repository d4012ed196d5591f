/* SPDX-License-Identifier: Apache-2.0 */
/* counted.c - see counted.h. */
#include <stdlib.h>

#include "base/gate.h"
#include "launcher/sup/counted.h"
#include "launcher/tell/figures.h"
#include "segment/figures.h"
#include "wire/control.h"

#define MOST ((INT64_C(1) << 53) - 1) /* readers of JSON count so far */

static int64_t
within(int64_t n)
{
	if (n < 0)
		return 0;
	return n < MOST ? n : MOST;
}

/* [bucket, calls]; what is none is passed over. */
static void
take_pair(struct figures_view *v, struct span pair)
{
	struct gate_walk walk = gate_walk(pair);
	struct gate_item item;
	double n[2] = { -1, -1 };
	int count = 0;

	for (; count < 2 && gate_next(&walk, &item); count++)
		if (gate_kind(item.value) == GATE_NUMBER)
			n[count] = strtod(item.value.at, NULL);
	if (n[0] >= 0 && n[0] < FIGURES_LATENCIES && n[1] > 0)
		v->latency[(uint32_t)n[0]] =
			n[1] < (double)MOST ? (int64_t)n[1] : MOST;
}

static void
take(struct rank *rank, const struct control_rpc *m)
{
	struct figures_view v = { .lost = 0 };
	struct gate_walk walk = gate_walk(m->latency);
	struct gate_item item;

#define F(name, member, text) v.count[FIGURE_##name] = within(m->member);
	FIGURES_TABLE(F)
#undef F
	while (gate_next(&walk, &item))
		take_pair(&v, item.value);
	for (uint32_t i = 0; i < FIGURES_LATENCIES; i++)
		v.calls = within(v.calls + v.latency[i]);
	figures_told(rank, &v);
}

bool
counted_told(struct job *job, uint32_t r, const struct control *m)
{
	if (m->type == CONTROL_RPC)
		take(&job->rank[r], &m->rpc);
	else if (m->type == CONTROL_LOST)
		figures_blame(job, r, m->lost.peer);
	else if (m->type != CONTROL_GAUGES) /* without the memory it is none */
		return false;
	return true;
}
