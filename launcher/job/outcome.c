/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - see outcome.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <sys/wait.h>

#include "launcher/job/culprit.h"
#include "launcher/job/outcome.h"

bool
outcome_is_failure(const struct rank *rank)
{
	return rank->failed_step != SPAWN_OK ||
		(rank->death != 0 && rank->status != 0);
}

bool
outcome_is_unborn(const struct rank *rank)
{
	return rank->pid == 0 && rank->failed_step == SPAWN_OK;
}

int
outcome_rank_status(const struct rank *r)
{
	if (r->failed_step != SPAWN_OK)
		return r->failed_sys == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT;
	if (WIFSIGNALED(r->status))
		return 128 + WTERMSIG(r->status);
	return WEXITSTATUS(r->status);
}

/* Without memory for the evidence: the first that died of itself. */
static uint32_t
first_failed(const struct job *job)
{
	uint32_t who = CULPRIT_NOBODY;

	for (uint32_t i = 0; i < job_size(job); i++) {
		const struct rank *r = &job->rank[i];

		if (outcome_is_failure(r) && !r->after_stop &&
			(who == CULPRIT_NOBODY ||
				r->death < job->rank[who].death))
			who = i;
	}
	return who;
}

static uint32_t
find_culprit(const struct job *job)
{
	struct evidence *e = calloc(job_size(job), sizeof(*e));
	uint32_t who;

	if (e == NULL)
		return first_failed(job);
	for (uint32_t i = 0; i < job_size(job); i++) {
		const struct rank *r = &job->rank[i];

		e[i] = (struct evidence){
			.rank = i,
			.death = r->death,
			.status = r->status,
			.failed = outcome_is_failure(r),
			.after_stop = r->after_stop,
			.was_exiting = r->was_exiting,
			.closed = r->closed,
			.blames = r->blames,
		};
	}
	who = culprit_of(e, job_size(job));
	free(e);
	return who;
}

/* The status by --exit-code. What xrun itself ended says nothing; then rank 0
 * gives way to the first that failed. */
static int
ranks_status(const struct job *job, uint32_t culprit)
{
	int worst = 0, status;

	switch ((enum exit_rule)job->opt.exit_code) {
	case EXIT_RANK0:
		if (!job->rank[0].after_stop)
			return outcome_rank_status(&job->rank[0]);
		break;
	case EXIT_MAX:
		for (uint32_t i = 0; i < job_size(job); i++) {
			const struct rank *r = &job->rank[i];

			status = r->after_stop ? 0 : outcome_rank_status(r);
			worst = status > worst ? status : worst;
		}
		return worst;
	case EXIT_FIRST:
		break;
	}
	return culprit == OUTCOME_NOBODY ?
		0 :
		outcome_rank_status(&job->rank[culprit]);
}

static const char *
reason_of(enum cause cause, const struct outcome *o)
{
	switch (cause) {
	case CAUSE_TIMEOUT:
		return "timeout";
	case CAUSE_HANG:
		return "hang";
	case CAUSE_SIGNAL:
		return "signal";
	case CAUSE_RESTART:
		return "restart";
	case CAUSE_CLOSED:
		return "stdout closed";
	case CAUSE_XRUN:
		return "xrun";
	case CAUSE_NONE:
	case CAUSE_FAILURE:
		break;
	}
	return o->culprit == OUTCOME_NOBODY ? "ok" : "failure";
}

/* What xrun could not keep, show or write, of a job that went well else. */
static void
judge_output(const struct job *job, struct outcome *o)
{
	bool lost = outcome_lost(job) > 0;

	if (o->exit_status != 0 ||
		(!lost && !job->unshown && job->unwritten[0] == '\0'))
		return;
	o->exit_status = lost && job->waited_out ? EXIT_TIMEOUT : EXIT_XRUN;
	o->reason = lost && job->waited_out ? "timeout" : "xrun";
}

uint64_t
outcome_lost(const struct job *job)
{
	int sys;

	return job->share == NULL ? 0 : raw_lost(job->share, &sys);
}

struct outcome
outcome_of(const struct job *job)
{
	struct outcome o = { .culprit = find_culprit(job) };

	for (uint32_t i = 0; i < job_size(job); i++)
		o.failed += outcome_is_failure(&job->rank[i]) &&
			!job->rank[i].after_stop;
	o.exit_status = ranks_status(job, o.culprit);
	o.reason = reason_of(job->cause, &o);
	if (job->cause == CAUSE_TIMEOUT)
		o.exit_status = EXIT_TIMEOUT;
	else if (job->cause == CAUSE_HANG)
		o.exit_status = EXIT_HANG;
	else if (job->cause == CAUSE_SIGNAL)
		o.exit_status = 128 + job->cause_signal;
	else if (job->cause == CAUSE_CLOSED)
		o.exit_status = EXIT_CLOSED;
	else if (job->cause == CAUSE_XRUN)
		o.exit_status = EXIT_XRUN;
	judge_output(job, &o);
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].lost)
			o.exit_status = EXIT_INFRA;
	return o;
}
