/* SPDX-License-Identifier: Apache-2.0 */
/*
 * immune.h - processes that do not react to a signal.
 *
 * The kernel drops a signal to PID 1 of a PID namespace if that process has no
 * handler for it; only SIGKILL and SIGSTOP from outside the namespace arrive. The
 * programs that make such a namespace, such as unshare(1), block or ignore SIGTERM and
 * wait for PID 1.
 */
#ifndef PROC_IMMUNE_H
#define PROC_IMMUNE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

/*
 * immune_mask() - returns the set of signals behind @key in @status, the text of a
 * /proc/PID/status: bit N - 1 is signal N. Empty if @key is not there.
 *
 * @key: with the newline in front and the colon, such as "\nSigBlk:"
 */
uint64_t immune_mask(const char *status, const char *key);

/*
 * immune_session() - returns true if a signal that was sent to a session has no effect.
 *
 * This holds if at least one process below @leader, or @leader itself, is PID 1 of
 * another PID namespace without a handler for @sig, and if each of the others in the
 * session ignores @sig, or blocks it and has it pending. That PID 1 may have made a
 * session of its own. The others include processes whose parent has exited.
 *
 * @leader: of the session
 * Blocks   no. Cost: some files of /proc for each process of the session; before it
 *          returns true, one for each process of the machine
 */
bool immune_session(pid_t leader, int sig);

#endif /* PROC_IMMUNE_H */
