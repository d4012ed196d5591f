/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normal.h - whatever we were started with becomes a known state: descriptors
 * 0 to 2 are open, all others close at exec, every signal is blocked and none
 * is ignored. Ranks rely on it, and so does spawn.h.
 */
#ifndef LAUNCHER_HOST_NORMAL_H
#define LAUNCHER_HOST_NORMAL_H

#include <stdbool.h>

struct normal {
	bool hup_ignored; /* nohup */
};

/* normal_init() - once, first of all. -1 with errno: nothing can be opened. */
int normal_init(struct normal *normal);

/* normal_close_others() - all descriptors but 0 to 2, now. */
void normal_close_others(void);

#endif /* LAUNCHER_HOST_NORMAL_H */
