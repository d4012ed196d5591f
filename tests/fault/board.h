/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board.h - what peers.c and peerkill.c tell each other, in a file that they map.
 *
 * A round: rank 0 names a victim, everybody else calls it and waits, rank 0 kills
 * it, everybody hears of it, all stop calling for a moment, rank 0 looks into the
 * segment. So ranks go one by one, until two are left.
 */
#ifndef TESTS_FAULT_BOARD_H
#define TESTS_FAULT_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_RANKS  8
#define BOARD_ROUNDS (BOARD_RANKS - 2) /* with so many ranks */
#define BOARD_WRONG  16

struct board {
	/* By who starts the job. */
	uint64_t seed;
	uint32_t ranks;
	bool apart; /* the victim has the last processor, others the others */

	/* By rank 0. */
	_Atomic uint32_t round;  /* 1 and more; UINT32_MAX: all go home */
	_Atomic uint32_t victim; /* of the round */
	_Atomic uint32_t touch;  /* MiB that it shall have touched */
	_Atomic bool hush;       /* nobody calls anybody */
	_Atomic bool dead[BOARD_RANKS]; /* or will be at any moment */
	uint32_t done;                  /* rounds */

	/* By each rank: the last round in which .. */
	_Atomic uint32_t parked[BOARD_RANKS];  /* .. it was about to call */
	_Atomic uint32_t touched[BOARD_RANKS]; /* .. it had touched that much */
	_Atomic uint32_t heard[BOARD_RANKS];   /* .. its call came back */
	_Atomic uint32_t calling[BOARD_RANKS]; /* threads that are not hushed */
	_Atomic uint32_t arrived[BOARD_RANKS]; /* calls parked here */
	_Atomic uint64_t calls[BOARD_RANKS];   /* that were answered */

	/* Of each round. */
	struct {
		uint32_t touch; /* MiB */
		bool busy;      /* others called each other meanwhile */
		_Atomic int64_t killed_ns;
		_Atomic int64_t lost_ns[BOARD_RANKS]; /* 0: it heard nothing */
	} was[BOARD_ROUNDS];

	_Atomic uint32_t wrong;
	char text[BOARD_WRONG][256];
};

#endif /* TESTS_FAULT_BOARD_H */
