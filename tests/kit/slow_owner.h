/* SPDX-License-Identifier: Apache-2.0 */
/* slow_owner.h - a thread of the agent that reads, and does not get a processor. */
#ifndef TESTS_KIT_SLOW_OWNER_H
#define TESTS_KIT_SLOW_OWNER_H

/* slow_owner_stop() - a thread other than the caller becomes the progress owner, and
 * reads nothing until slow_owner_continue(). */
void slow_owner_stop(void);
void slow_owner_continue(void);

#endif /* TESTS_KIT_SLOW_OWNER_H */
