/* SPDX-License-Identifier: Apache-2.0 */
/* rank_env.c - see rank_env.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "base/status.h"
#include "place/environ.h"
#include "worker/proc/rank_env.h"

#define NEW_MAX 32  /* variables that are set */
#define ROOM    160 /* bytes of one; a worker's name may have more */

struct vars {
	char **at; /* [count], in one piece with the texts */
	size_t count;
	char *room, *end;
};

enum xr_status
rank_job_init(struct rank_job *job, char *const *vars, uint32_t count,
	struct xr_error *err)
{
	struct rank_job out = { .count = count };
	enum xr_status status = worker_env_read(&out.workers, vars, err);

	if (status != XR_OK)
		return status;
	if (count == 0)
		out.count = out.workers.present ? out.workers.devices : 1;
	else if (out.workers.present && count != 1 &&
		count != out.workers.devices) {
		status = fail(err, XR_E_INVAL,
			"%u processes: this worker list has %u devices a host, so 1 or %u",
			count, out.workers.devices, out.workers.devices);
		worker_env_fini(&out.workers);
		return status;
	}
	*job = out;
	return XR_OK;
}

void
rank_job_fini(struct rank_job *job)
{
	worker_env_fini(&job->workers);
}

bool
rank_needs_port(const struct rank_job *job, char *const *vars)
{
	const char *address = environ_get(vars, "XRT_MESH_SERVICE_ADDRESS");

	return job->workers.present && (address == NULL || address[0] == '\0');
}

uint32_t
rank_ordinal(const struct rank_job *job, uint32_t index)
{
	return worker_ordinal(job->workers.present ? job->workers.host : 0,
		job->count, index);
}

uint32_t
rank_world(const struct rank_job *job)
{
	return (job->workers.present ? job->workers.hosts : 1) * job->count;
}

/* --- changing an environment ------------------------------------------------ */

static void
drop(struct vars *v, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->count; i++)
		if (!span_is(environ_name(v->at[i]), name))
			v->at[kept++] = v->at[i];
	v->count = kept;
}

static void set(struct vars *v, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void
set(struct vars *v, const char *name, const char *fmt, ...)
{
	size_t room = (size_t)(v->end - v->room);
	int n = snprintf(v->room, room, "%s=", name);
	va_list ap;

	va_start(ap, fmt);
	n += vsnprintf(v->room + n, room - (size_t)n, fmt, ap);
	va_end(ap);
	XR_ASSERT((size_t)n < room);
	drop(v, name);
	v->at[v->count++] = v->room;
	v->room += n + 1;
}

static bool
vars_init(struct vars *v, char *const *from, size_t more)
{
	size_t texts = NEW_MAX * ROOM + more;

	*v = (struct vars){ 0 };
	while (from[v->count] != NULL)
		v->count++;
	v->at = calloc(1, (v->count + NEW_MAX + 1) * sizeof(*v->at) + texts);
	if (v->at == NULL)
		return false;
	memcpy(v->at, from, v->count * sizeof(*v->at));
	v->room = (char *)(v->at + v->count + NEW_MAX + 1);
	v->end = v->room + texts;
	return true;
}

/* --- what a rank is told ---------------------------------------------------- */

/* As torch_xla's launcher has it. */
static void
set_xrt(struct vars *v, const struct rank_job *job, uint32_t index)
{
	const struct worker_env *w = &job->workers;
	uint32_t ordinal = rank_ordinal(job, index);

	set(v, "XRT_SHARD_WORLD_SIZE", "%u", rank_world(job));
	set(v, "XRT_MULTI_PROCESSING_DEVICE", "TPU:%u", ordinal);
	set(v, "XRT_SHARD_ORDINAL", "%u", ordinal);
	set(v, "XRT_SHARD_LOCAL_ORDINAL", "%u", index);
	if (w->local.name.at == NULL && w->list.count > 0)
		set(v, "XRT_LOCAL_WORKER", "%.*s:%u",
			(int)w->list.workers[0].name.len,
			w->list.workers[0].name.at, w->list.workers[0].ordinal);
	if (ordinal > 0)
		drop(v, "XRT_TPU_CONFIG");
	if (job->port != 0)
		set(v, "XRT_MESH_SERVICE_ADDRESS", "localhost:%u", job->port);
	set(v, "XRUN_DEVICE", "tpu:%u", ordinal);
}

/* Those of the rank that this process may be are not its children's, nor are the ways
 * on which it speaks for itself. */
static void
set_own(struct vars *v, const struct rank_job *job, uint32_t index)
{
	static const char *const not_theirs[] = { "XRUN_CONTROL_FD",
		"XRUN_SEGMENT_FD", "XRUN_BELL_FD", "XRUN_STORE" };
	bool hosts = job->workers.present;

	for (size_t i = 0; i < sizeof(not_theirs) / sizeof(*not_theirs); i++)
		drop(v, not_theirs[i]);
	set(v, "XRUN_RANK", "%u", rank_ordinal(job, index));
	set(v, "XRUN_SIZE", "%u", rank_world(job));
	set(v, "XRUN_LOCAL_RANK", "%u", index);
	set(v, "XRUN_LOCAL_SIZE", "%u", job->count);
	set(v, "XRUN_NODE", "%u", hosts ? job->workers.host : 0);
	set(v, "XRUN_NODES", "%u", hosts ? job->workers.hosts : 1);
	set(v, "RANK", "%u", rank_ordinal(job, index));
	set(v, "WORLD_SIZE", "%u", rank_world(job));
	set(v, "LOCAL_RANK", "%u", index);
	set(v, "LOCAL_WORLD_SIZE", "%u", job->count);
}

char **
rank_env(const struct rank_job *job, uint32_t index, char *const *vars)
{
	const struct worker_list *list = &job->workers.list;
	struct vars v;

	if (!vars_init(&v, vars,
		    list->count > 0 ? list->workers[0].name.len : 0))
		return NULL;
	if (job->workers.present)
		set_xrt(&v, job, index);
	set_own(&v, job, index);
	v.at[v.count] = NULL;
	return v.at;
}
