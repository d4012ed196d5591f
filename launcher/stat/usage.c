/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - see usage.h. */
#include <stdint.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "launcher/stat/usage.h"
#include "launcher/state/jobs.h"
#include "proc/usage.h"

/* A signal or a debugger can stop a rank without the supervisor. */
static void
add_stop(cJSON *rank, const struct usage *u)
{
	const char *state = jobs_text(rank, "state");
	cJSON *stopped;

	if (!u->stopped || state == NULL || strcmp(state, "running") != 0)
		return;
	stopped = cJSON_CreateString("stopped");
	if (stopped != NULL)
		cJSON_ReplaceItemInObjectCaseSensitive(rank, "state", stopped);
}

/* Adds the members under the names that the report uses for ended ranks. */
static void
add_usage(cJSON *rank)
{
	int64_t pid = jobs_number(rank, "pid", 0);
	struct usage u = { 0 };

	if (pid == 0 || cJSON_HasObjectItem(rank, "exit"))
		return;
	if (!usage_tree((pid_t)pid, &u))
		return;
	cJSON_AddNumberToObject(rank, "cpu_seconds",
		(double)u.cpu_ns / NS_PER_S);
	cJSON_AddNumberToObject(rank, "rss_bytes", (double)u.rss);
	cJSON_AddNumberToObject(rank, "processes", u.processes);
	add_stop(rank, &u);
}

void
usage_add(cJSON *status)
{
	cJSON *rank;

	cJSON_ArrayForEach(rank,
		cJSON_GetObjectItemCaseSensitive(status, "rank"))
		add_usage(rank);
}
