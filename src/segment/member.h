/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - a rank's side of a segment: find it, map it, hold a slot of it.
 *
 * The mapping stays as long as the process, children made by fork share it, and
 * core dumps leave it out. Other ranks may write anything into it at any time.
 */
#ifndef SEGMENT_MEMBER_H
#define SEGMENT_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct segment_slot;

/* What XRUN_SEGMENT_FD says: "98:4711". */
struct segment_tag {
	int fd;
	uint64_t inode;
};

/* segment_tag_parse() - false, with @tag untouched, if @text is none; or NULL. */
bool segment_tag_parse(const char *text, struct segment_tag *tag);

/*
 * segment_join() - the slot of local rank @rank.
 *
 * Returns  NULL if the descriptor is not what the tag says, is no segment that
 *          was sealed, is of another version, or has no such slot
 * Thread   any, a signal handler too.  Blocks: no.
 */
struct segment_slot *segment_join(const struct segment_tag *tag, uint32_t rank);

/*
 * segment_hold() - the calling process holds @slot.
 *
 * It passes from whoever had it and died, was replaced by exec, or was only met.
 *
 * Returns  0; else the process that holds it
 */
pid_t segment_hold(struct segment_slot *slot);

/* segment_let_go() - if the calling process holds @slot: nobody does. */
void segment_let_go(struct segment_slot *slot);

#endif /* SEGMENT_MEMBER_H */
