/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_fault.h - what proxy.c does to bytes on their way, as words.
 *
 * A fault is one of these, behind "up" (what is sent by who connected) or "down"
 * (what the target sends), else both:
 *
 *   delay TIME    each byte, and the end, comes so much later (us, ms, s); also
 *                 those that are on the way already
 *   rate N        at most N bytes a second
 *   bytes N       in segments of N bytes at most
 *   corrupt N     one bit of every N-th byte is turned
 *   stall         nothing is read, so the sender's buffers fill
 *   drop          all is read and forgotten; an end is not told before "ok"
 *   reset [N]     behind N bytes (0) both ends get a reset
 *   half-open [N] behind N bytes the receiver's side is closed, and the sender
 *                 never hears of it; up or down must be said
 *   refuse        what connects is closed at once; has no direction
 *   ok            none of these
 *
 * N has K, M or G behind it, or none. corrupt, reset and half-open count from
 * the last fault of their direction, or the beginning of the connection. A slip
 * ends the program, so that no test passes because of it.
 */
#ifndef TESTS_FAULT_LINE_FAULT_H
#define TESTS_FAULT_LINE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* A direction, and the side that sends in it: who connected, and the target. */
enum line_way { UP, DOWN, WAYS };

enum line_fault {
	DELAY, /* ns */
	RATE,
	BYTES,
	CORRUPT,
	STALL,
	DROP,
	RESET,
	HALF_OPEN,
	LINE_FAULTS
};

#define OFF (-1)

struct line_faults {
	int64_t set[WAYS]
		   [LINE_FAULTS]; /* OFF, or the value, 0 if it has none */
	bool refuse;
	bool fresh[WAYS]; /* the last text was about this direction */
};

/* line_fault_set() - what @text says, besides what was said before. */
void line_fault_set(struct line_faults *faults, const char *text);

#endif /* TESTS_FAULT_LINE_FAULT_H */
