/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell.h - what the agent tells xrun: whom it has lost, and what it has counted.
 *
 * Of a rank with a slot both stand where the supervisor reads them (figures.h).
 * Any other says so on the control socket, and waits for nobody there. Outside of
 * a job all this does nothing.
 */
#ifndef WORKER_RPC_TELL_H
#define WORKER_RPC_TELL_H

#include <stddef.h>
#include <stdint.h>

#define TELL_PLACE_MAX 127

/* tell_open() - once there is an agent, and figures_open(). */
void tell_open(void);

/* tell_place() - of which job and rank this process is, as members tell each other;
 * "": of none. */
const char *tell_place(void);

/* tell_rank() - 1 and the rank that @place says, of this job and attempt; 0: it is
 * of another, or NULL. */
uint32_t tell_rank(const char *place);

/* tell_lost() - the rank with this number, 1 and more, is gone; 0 is nobody. Any
 * thread. */
void tell_lost(uint32_t rank);

/* tell_figures() - by @now, if it is due; gives when it is next, or INT64_MAX. One
 * at a time. */
int64_t tell_figures(int64_t now);

/* tell_last() - the agent ends: what it has counted, once more. */
void tell_last(void);

#endif /* WORKER_RPC_TELL_H */
