/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.h - how often something took how long, in buckets: of calls (figures.h), and of
 * tasks (gauge.h).
 *
 * An octave has 2^parts_log2 buckets, evenly; so a bucket's ends are always in the same
 * ratio, about. The first has all below 2^first_log2 ns, the last all beyond the others.
 */
#ifndef SEGMENT_SCALE_H
#define SEGMENT_SCALE_H

#include <stdint.h>

struct scale {
	uint32_t first_log2, parts_log2;
	uint32_t count; /* of buckets */
};

/* scale_bucket() - of what took @ns. */
static inline uint32_t
scale_bucket(struct scale s, uint64_t ns)
{
	uint32_t log2, part, i;

	if (ns < UINT64_C(1) << s.first_log2)
		return 0;
	log2 = 63 - (uint32_t)__builtin_clzll(ns);
	part = (uint32_t)(ns >> (log2 - s.parts_log2)) &
		((1u << s.parts_log2) - 1);
	i = ((log2 - s.first_log2) << s.parts_log2) + part + 1;
	return i < s.count ? i : s.count - 1;
}

/* scale_above() - what is of bucket @i took less than so many ns; of the last one that
 * is not known: UINT64_MAX. */
static inline uint64_t
scale_above(struct scale s, uint32_t i)
{
	uint32_t parts = 1u << s.parts_log2;

	if (i >= s.count - 1)
		return UINT64_MAX;
	return ((uint64_t)parts + i % parts)
		<< (s.first_log2 - s.parts_log2 + i / parts);
}

/* scale_quantile() - how many ns the @per_mille-th of a thousand took, at most, fastest
 * first; 0: there were none. Of those in the last bucket where it begins.
 *
 * @times: of each bucket; @all: the sum, or where it saturates */
static inline int64_t
scale_quantile(struct scale s, const int64_t *times, int64_t all,
	uint32_t per_mille)
{
	/* Rounded up, without a product that is too large. */
	int64_t rank =
		all / 1000 * per_mille + (all % 1000 * per_mille + 999) / 1000;
	int64_t below = 0;

	for (uint32_t i = 0; i < s.count && all > 0; i++) {
		if (__builtin_add_overflow(below, times[i], &below))
			below = INT64_MAX;
		if (below >= rank && below > 0)
			return (int64_t)scale_above(s,
				i < s.count - 1 ? i : i - 1);
	}
	return 0;
}

#endif /* SEGMENT_SCALE_H */
