/* SPDX-License-Identifier: Apache-2.0 */
/* rref_inside.c - scenes of rref.c that are in the way of messages. */
#include "tests/prog/rref.h"

const struct scene inside_scenes[] = {
	{ 0, 0 },
};
