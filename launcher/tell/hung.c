/* SPDX-License-Identifier: Apache-2.0 */
/* hung.c - see hung.h. */
#include "base/clock.h"
#include "base/json.h"
#include "launcher/job/sup.h"
#include "launcher/tell/hung.h"

void
hung_put(struct json *j, const struct job *job)
{
	bool any = false;

	for (uint32_t r = 0; r < job_size(job); r++) {
		if (!job->rank[r].hung)
			continue;
		if (!any)
			json_open_array(j, "hung");
		any = true;
		json_int(j, NULL, job_rank(job, r));
	}
	if (any)
		json_close_array(j);
}

void
hung_put_event(struct json *j, const struct job *job)
{
	static const char *const rules[] = { "", "silent", "uneven", "even" };
	const struct hung *hung = &job->sup->hung;

	json_text(j, "rule", rules[hung->rule]);
	json_real(j, "seconds", (double)hung->silent_ns / NS_PER_S);
	hung_put(j, job);
}
