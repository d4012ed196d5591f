/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - see pace.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/stat/pace.h"

#define FACTOR      1.5
#define LIMIT       3.5    /* of the modified z-score */
#define MAD_OF_NORM 0.6745 /* MAD of a normal distribution, in its sigmas */
#define RANKS_LEAST 3

void
pace_note(struct pace *p, int64_t step, int64_t now)
{
	if (p->at_ns != 0 && step > p->step)
		p->seconds[p->count++ % PACE_STEPS] = (double)(now - p->at_ns) /
			NS_PER_S / ((double)step - (double)p->step);
	else if (p->at_ns != 0 && step < p->step)
		p->count = 0;
	else if (p->at_ns != 0)
		return; /* said again */
	p->step = step;
	p->at_ns = now;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Changes their order. @n: not 0 */
static double
median_of(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double
pace_median(const struct pace *p)
{
	double v[PACE_STEPS];
	uint32_t n;

	if (p == NULL || p->count < PACE_LEAST)
		return NAN;
	n = p->count < PACE_STEPS ? p->count : PACE_STEPS;
	memcpy(v, p->seconds, n * sizeof(*v));
	return median_of(v, n);
}

struct pace_slow
pace_compare(const double *median, uint32_t count, bool *slow, double *room)
{
	struct pace_slow all = { .usual = NAN };
	uint32_t known = 0;
	double mad;

	for (uint32_t i = 0; i < count; i++) {
		slow[i] = false;
		if (!isnan(median[i]))
			room[known++] = median[i];
	}
	if (known < RANKS_LEAST)
		return all;
	all.usual = median_of(room, known);
	for (uint32_t i = 0; i < known; i++)
		room[i] = fabs(room[i] - all.usual);
	mad = median_of(room, known);
	for (uint32_t i = 0; i < count; i++) {
		/* Nothing is slow beside NaN. */
		slow[i] = median[i] > FACTOR * all.usual &&
			MAD_OF_NORM * (median[i] - all.usual) > LIMIT * mad;
		if (!slow[i])
			continue;
		if (all.count++ == 0 || median[i] > median[all.worst])
			all.worst = i;
	}
	return all;
}
