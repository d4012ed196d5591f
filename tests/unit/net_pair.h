/* SPDX-License-Identifier: Apache-2.0 */
/* net_pair.h - two workers of net_rig.h, 1 and 2, and a link between them. */
#ifndef TESTS_UNIT_NET_PAIR_H
#define TESTS_UNIT_NET_PAIR_H

#include "tests/unit/net_rig.h"

static struct side *one, *two;
static struct mate *to_two;

static inline void
pair_up(void)
{
	one = side_open(1);
	two = side_open(2);
	to_two = side_connect(one, two);
}

static inline void
pair_down(void)
{
	for (uint32_t i = 0; i < MATES; i++) {
		mate_close(&one->mates[i]);
		mate_close(&two->mates[i]);
	}
	side_close(one);
	side_close(two);
}

#endif /* TESTS_UNIT_NET_PAIR_H */
