/* SPDX-License-Identifier: Apache-2.0 */
/* lost.c - see lost.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/gate.h"
#include "base/host.h"
#include "launcher/ctl/errors.h"
#include "launcher/ctl/record.h"
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "launcher/state/jobs.h"
#include "launcher/state/state.h"
#include "proc/descend.h"
#include "proc/lineage.h"

#define LOST_PATIENCE (2 * NS_PER_S) /* with processes that take time to end */
#define LOST_OLD      (7 * 24 * 3600 * NS_PER_S)

static bool
lost_is_of_this_boot(const cJSON *record)
{
	const char *boot = jobs_text(record, "boot");
	char here[64];

	return boot == NULL || strcmp(boot, host_boot(here, sizeof(here))) == 0;
}

/* Another machine has the same folder, on a file system where locks of one machine
 * do not count on another. A host may have been renamed since. */
static bool
lost_is_of_this_host(const cJSON *record)
{
	const char *host = jobs_text(record, "host");
	char here[256];

	return host == NULL ||
		strcmp(host, host_name(here, sizeof(here))) == 0 ||
		(jobs_text(record, "boot") != NULL &&
			lost_is_of_this_boot(record));
}

/* In another namespace our process ids name other processes. */
static bool
lost_is_of_this_namespace(const cJSON *record)
{
	int64_t number = jobs_number(record, "pid_namespace", 0);
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == -1 || number == 0 ||
		number == (int64_t)st.st_ino;
}

struct stray_job
lost_stray(const cJSON *record)
{
	const char *lineage = jobs_text(record, "lineage");
	struct stray_job job = { 0 };

	if (lineage == NULL || !lost_is_of_this_boot(record))
		return job;
	job.lineage = strtoull(lineage, NULL, 16);
	job.ticks = (uint64_t)jobs_number(record, "ticks", 0);
	return job;
}

bool
lost_is_own(const cJSON *record)
{
	uint64_t own = lineage_of(getpid());

	return own != LINEAGE_NONE && lost_stray(record).lineage == own;
}

static cJSON *
lost_parse(const char *text)
{
	cJSON *record = NULL;
	const char *id;

	if (gate_check("", text, strlen(text), GATE_MAX, NULL) == XR_OK)
		record = cJSON_Parse(text);
	id = jobs_text(record, "job");
	if (id != NULL && state_name_valid(id))
		return record;
	cJSON_Delete(record);
	return NULL;
}

struct lost_walk {
	bool dying, any, held;
	lost_fn *fn;
	void *ctx;
};

/* The keeper that holds the record was killed, and is not gone yet. */
static bool
lost_is_dying(const cJSON *record)
{
	pid_t pid = (pid_t)jobs_number(record, "pid", 0);
	struct proc_stat st;

	return lost_is_of_this_host(record) &&
		lost_is_of_this_namespace(record) &&
		(!proc_stat_read(pid, &st) || st.exiting);
}

static bool
lost_end(const cJSON *record)
{
	const struct stray_job job = lost_stray(record);
	uint32_t ended;
	bool gone = stray_end(&job, clock_now() + LOST_PATIENCE, &ended);

	gone = orphan_close_recorded(record, ended) && gone;
	if (gone)
		errors_remove(jobs_text(record, "errors"));
	return gone;
}

static bool
lost_visit(void *ctx, const struct ctl_record_found *found)
{
	struct lost_walk *walk = ctx;
	cJSON *record = lost_parse(found->text);
	bool over = false;

	if (record == NULL)
		return true; /* no xrun wrote that */
	if (found->held) {
		walk->dying = walk->dying ||
			(!lost_is_own(record) && lost_is_dying(record));
	} else if (!lost_is_of_this_host(record) ||
		(lost_is_of_this_boot(record) &&
			!lost_is_of_this_namespace(record))) {
		over = found->age > LOST_OLD;
	} else {
		walk->any = true;
		over = lost_end(record);
	}
	cJSON_Delete(record);
	return over;
}

bool
lost_end_all(bool *dying)
{
	struct lost_walk walk = { 0 };

	ctl_record_sweep(lost_visit, &walk);
	*dying = walk.dying;
	return walk.any;
}

static bool
lost_look(void *ctx, const struct ctl_record_found *found)
{
	struct lost_walk *walk = ctx;
	cJSON *record = lost_parse(found->text);
	struct lost_facts facts = { .record = record };

	if (record != NULL && found->held == walk->held &&
		lost_is_of_this_host(record) &&
		lost_is_of_this_namespace(record)) {
		facts.id = jobs_text(record, "job");
		facts.dir = jobs_text(record, "dir");
		facts.job = lost_stray(record);
		walk->fn(walk->ctx, &facts);
	}
	cJSON_Delete(record);
	return false;
}

void
lost_each(lost_fn *fn, void *ctx)
{
	struct lost_walk walk = { .fn = fn, .ctx = ctx };

	ctl_record_each(true, lost_look, &walk);
}

void
lost_each_held(lost_fn *fn, void *ctx)
{
	struct lost_walk walk = { .fn = fn, .ctx = ctx, .held = true };

	ctl_record_each(false, lost_look, &walk);
}
