/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.h - places at which a test ends its process, to see what the others make
 * of it. A load and a branch.
 */
#ifndef WORKER_SHM_MARK_H
#define WORKER_SHM_MARK_H

enum mark {
	MARK_NONE,
	MARK_RECORD,  /* a record is written, and not published */
	MARK_SENT,    /* published, and nobody was woken */
	MARK_RING,    /* a ring is in the directory, and nobody was told */
	MARK_TAKEN,   /* between two spans of a run that is taken */
	MARK_SPAN,    /* a span is taken, and its owner does not know */
	MARK_GIVEN,   /* between two spans of a run that is given back */
	MARK_LOAN,    /* memory is lent, and nobody was told */
	MARK_HELD,    /* memory of another is in use */
	MARK_LETGO,   /* a ring is let go, and its writer was not told */
	MARK_WINDOW,  /* between two windows that are filled */
	MARK_EMPTIED, /* .. that are emptied */
	MARK_CMA,     /* between two pieces of the other's memory */
	MARK_ARMED,   /* about to sleep */
	MARK_COUNT
};

/* NONE outside of tests; set before there is a second thread. */
extern enum mark mark_at;
extern unsigned mark_after; /* so many times it goes on */

void mark_hit(void); /* SIGKILL to this process, or count */

#define MARK(at) \
	do { \
		if (__builtin_expect(mark_at == (at), 0)) \
			mark_hit(); \
	} while (0)

#endif /* WORKER_SHM_MARK_H */
