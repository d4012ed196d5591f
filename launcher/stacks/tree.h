/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - which processes are a rank: itself, what descends from it, and what
 * is of its session, though its parent died.
 *
 * A shell that waits for its child, and others that only run a program, are
 * left out: it is the program that is meant.
 */
#ifndef LAUNCHER_STACKS_TREE_H
#define LAUNCHER_STACKS_TREE_H

#include "launcher/stacks/stacks.h"

/* tree_find() - adds the processes of all ranks, and says which have ended. */
void tree_find(struct stacks *s);

#endif /* LAUNCHER_STACKS_TREE_H */
