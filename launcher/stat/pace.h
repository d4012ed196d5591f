/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - how long a rank's steps take, from when it told of them; and which
 * ranks are slow. Pure.
 *
 * A pace remembers the last PACE_STEPS times from one word to the next, each
 * divided by the steps between them. The median is what counts: one step that
 * saved a checkpoint, or was told of late, changes nothing.
 */
#ifndef LAUNCHER_STAT_PACE_H
#define LAUNCHER_STAT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_STEPS 16
#define PACE_LEAST 5 /* times before anything is said of them */

struct pace {
	double seconds[PACE_STEPS]; /* a ring */
	uint32_t count;             /* that were ever put in */
	int64_t step;               /* the last that was told, and when: */
	int64_t at_ns;              /* clock_now(); 0: none yet */
};

/* pace_note() - @step steps are done, now. One that is not beyond the last
 * begins anew: the rank does. */
void pace_note(struct pace *pace, int64_t step, int64_t now);

/* pace_median() - seconds a step; NaN before PACE_LEAST times. NULL: NaN. */
double pace_median(const struct pace *pace);

/* The worst that slow ranks are, and what is usual. */
struct pace_slow {
	uint32_t count; /* slow ranks */
	uint32_t worst; /* the slowest of them */
	double usual;   /* the median of all medians; NaN: too few to tell */
};

/*
 * pace_compare() - which of ranks that do the same are slow.
 *
 * Among at least three medians m with the median M, rank r is slow if
 * m[r] > 1.5 M, and 0.6745 (m[r] - M) > 3.5 MAD, where MAD is the median of
 * |m - M|: the modified z-score and its limit of Iglewicz and Hoaglin, How to
 * Detect and Handle Outliers (1993), which half of the ranks cannot shift. The
 * first condition keeps ranks that hardly differ from being told apart.
 *
 * Ranks that wait for each other in each step are all as slow as the slowest:
 * where a step has such a wait, its time has to be told without it.
 *
 * @median: of each rank; NaN: nothing is known of it
 * @slow:   receives for each whether it is
 * @room:   @count doubles to work in
 */
struct pace_slow pace_compare(const double *median, uint32_t count, bool *slow,
	double *room);

#endif /* LAUNCHER_STAT_PACE_H */
