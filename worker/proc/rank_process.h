/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_process.h - returns which ranks of this machine have ended.
 *
 * The process of a rank is known by its number: from the job's segment, where the
 * supervisor writes it, or from the ranks of xr_spawn() themselves. Where the number
 * means another process here, as in a PID namespace of the rank's own, no rank is
 * reported.
 */
#ifndef WORKER_PROC_RANK_PROCESS_H
#define WORKER_PROC_RANK_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#define RANK_PROCESS_POLL_NS INT64_C(500000000) /* between two checks */

/* rank_process_ended() - returns true if @pid runs no thread any more. */
bool rank_process_ended(pid_t pid);

/* rank_process_died() - returns true if the process of @rank, of this job, is known
 * to have ended. Cost: one or two system calls for a rank of this machine. */
bool rank_process_died(uint32_t rank);

#endif /* WORKER_PROC_RANK_PROCESS_H */
