/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.h - where ranks of xr_spawn() on one host leave what the others are to have.
 *
 * A memfd that their parent made. Each rank's records are a chain, of which the latest
 * stands at the front, in a word of that rank's own: there is no lock, and who is killed
 * has left whole records only. What is read is checked against the file's size.
 */
#ifndef WORKER_PROC_MEET_H
#define WORKER_PROC_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/value.h>

#define MEET_VARIABLE "XRUN_MEET_FD" /* of a rank that was executed */

/* meet_make() - a place for @count ranks; the caller's descriptor. */
enum xr_status meet_make(uint32_t count, int *fd, struct xr_error *err);

/* meet_take() - this process is rank @index there, and has @fd for good. */
void meet_take(int fd, uint32_t index);

/* meet_is_here() - has this process such a place? */
bool meet_is_here(void);

#define MEET_TAG_MAX 127 /* bytes of a tag without the NUL */

/* Where a payload is. */
struct meet_spot {
	uint64_t at, len;
};

struct meet {
	const char *tag; /* at most MEET_TAG_MAX bytes */
	uint32_t round;
	int64_t deadline;      /* clock_now */
	struct meet_spot left; /* by meet_leave() */
};

/* meet_leave() - this rank's payload of a round. */
enum xr_status meet_leave(struct meet *m, struct xr_value *payload,
	struct xr_error *err);

/* meet_rank_ended() - fills @err for rank @index, which has ended and left no
 * payload; returns XR_E_PEER_LOST. */
enum xr_status meet_rank_ended(const struct meet *m, uint32_t index,
	struct xr_error *err);

/* meet_drop() - nobody reads this rank's payload there any more. */
void meet_drop(struct meet_spot spot);

/* meet_collect() - those of all; XR_E_TIMEOUT names who left none,
 * XR_E_PEER_LOST a rank that ended before it left one. */
enum xr_status meet_collect(const struct meet *m, struct xr_value **all,
	struct xr_error *err);

#endif /* WORKER_PROC_MEET_H */
