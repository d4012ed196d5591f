/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - xrun's own words: the header, the first failure, the end.
 *
 * All of them go to stderr, between whole lines of the ranks. Where stderr is
 * no terminal, a job that went well has none.
 */
#ifndef LAUNCHER_ACCOUNT_H
#define LAUNCHER_ACCOUNT_H

#include <stdint.h>

#include "launcher/job.h"

/* account_header() - "xrun: job k7m2: 4 ranks, cpu, logs ~/...". */
void account_header(struct job *job);

/* account_interrupt() - after the first Ctrl-C: what each rank is at. */
void account_interrupt(struct job *job);
void account_interrupt_again(struct job *job, uint32_t times);

/* job_account() - the end: who failed first, how, with its last lines; what
 * happened to the others; the table of resources with -v. */
void job_account(struct job *job);

#endif /* LAUNCHER_ACCOUNT_H */
