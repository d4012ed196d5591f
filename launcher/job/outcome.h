/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - what the end of a job means: exit status, culprit, reason. Pure.
 */
#ifndef LAUNCHER_JOB_OUTCOME_H
#define LAUNCHER_JOB_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/job/job.h"

#define OUTCOME_NOBODY UINT32_MAX

enum {
	EXIT_INFRA = 120, /* a process or machine was lost */
	EXIT_HANG = 121,
	EXIT_TIMEOUT = 124,
	EXIT_XRUN = 125,
	EXIT_CANNOT = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_CLOSED = 141, /* 128 + SIGPIPE */
};

struct outcome {
	int exit_status;    /* of xrun */
	uint32_t culprit;   /* rank that failed first, or OUTCOME_NOBODY */
	uint32_t failed;    /* ranks that failed by themselves */
	const char *reason; /* "ok", "failure", "timeout", "signal", ... */
};

/* outcome_of() - the one place where exit statuses are decided. */
struct outcome outcome_of(const struct job *job);

/* outcome_lost() - bytes of the ranks that came to no file, though they were to:
 * then the job did not go well. What --log-full drop drops is not among them. */
uint64_t outcome_lost(const struct job *job);

/* outcome_is_failure() - was it refused, or did it die of something but 0? */
bool outcome_is_failure(const struct rank *rank);

/* outcome_is_unborn() - was it never started, because the job ended first? */
bool outcome_is_unborn(const struct rank *rank);

/* outcome_rank_status() - 0..255 as a shell would say it: code, 128 + signal,
 * or 126/127 when the program could not be started. */
int outcome_rank_status(const struct rank *rank);

#endif /* LAUNCHER_JOB_OUTCOME_H */
