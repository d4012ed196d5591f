/* SPDX-License-Identifier: Apache-2.0 */
/* rank_process.c - see rank_process.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <xrun/job.h>

#include "proc/descend.h"
#include "segment/member.h"
#include "worker/proc/rank_process.h"

bool
rank_process_ended(pid_t pid)
{
	struct proc_stat stat;

	if (kill(pid, 0) == -1 && errno == ESRCH)
		return true;
	return proc_stat_read(pid, &stat) &&
		(stat.exiting || stat.state == 'Z' || stat.state == 'X');
}

/* --- the ranks of a job ---------------------------------------------------- */

static const char *slots; /* of the ranks of this machine; NULL: not known */

static const struct segment_slot *
rank_process_slot(uint32_t local)
{
	return (const void *)(slots + (size_t)local * SEGMENT_SLOT);
}

/* Each rank leads a session. So its number means the same here as where the
 * supervisor wrote it, unless this process is in another namespace. */
static void
rank_process_map(void)
{
	uint32_t local = xr_job_local_rank(), count = xr_job_local_size();
	struct segment_tag tag;
	const struct segment_slot *last;

	if (local >= count ||
		!segment_tag_parse(getenv("XRUN_SEGMENT_FD"), &tag))
		return;
	last = segment_join(&tag, count - 1);
	if (last == NULL)
		return;
	slots = (const char *)last - (size_t)(count - 1) * SEGMENT_SLOT;
	if (atomic_load(&rank_process_slot(local)->pid) != getsid(0))
		slots = NULL;
}

bool
rank_process_died(uint32_t rank)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t first = xr_job_rank() - xr_job_local_rank();
	const struct segment_slot *slot;
	pid_t pid;

	pthread_once(&once, rank_process_map);
	/* Of one before the first the difference is above any size. */
	if (slots == NULL || rank - first >= xr_job_local_size())
		return false;
	slot = rank_process_slot(rank - first);
	pid = atomic_load(&slot->pid);
	/* The supervisor empties the slot of a process that has ended. */
	if (pid == 0)
		return segment_gen(atomic_load(&slot->claim)) != 0;
	return rank_process_ended(pid);
}
