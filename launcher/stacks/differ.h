/* SPDX-License-Identifier: Apache-2.0 */
/* differ.h - the ranks whose stacks differ from those of most ranks. */
#ifndef LAUNCHER_STACKS_DIFFER_H
#define LAUNCHER_STACKS_DIFFER_H

#include <stdbool.h>

#include "base/buf.h"
#include "launcher/stacks/stacks.h"

#define DIFFER_ONE  " differs: "
#define DIFFER_MANY " differ: "

/*
 * differ_put() - "rank 2 differs: main > pause; ranks 0-1, 3 wait in mesh_sum", a line for
 * each group of main threads but the largest.
 *
 * Returns false, and puts nothing, if there is one group only, or if the largest group has
 * no majority of the ranks. @s is merged. @majority: receives the largest group
 */
bool differ_put(struct buf *out, const struct stacks *s, uint32_t *majority);

#endif /* LAUNCHER_STACKS_DIFFER_H */
