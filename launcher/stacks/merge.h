/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - equal stacks are one, the odd ones first. Pure.
 *
 * Two stacks are equal if the functions and files are, and so is what the program
 * is called; where no stack is known, what the kernel says of the thread. Lines
 * in a function do not count: a loop is at one place.
 */
#ifndef LAUNCHER_STACKS_MERGE_H
#define LAUNCHER_STACKS_MERGE_H

#include "base/buf.h"
#include "base/ranks.h"
#include "launcher/stacks/stacks.h"

/* merge_stacks() - fills s->group: those of fewer ranks first, main threads before
 * others, then by rank. */
void merge_stacks(struct stacks *s);

/* merge_ranks() - "0-2,5": who has it. */
void merge_ranks(const struct stacks *s, uint32_t group, struct buf *out);

#endif /* LAUNCHER_STACKS_MERGE_H */
