/* SPDX-License-Identifier: Apache-2.0 */
/* life.h - whose signs of life this process gives. */
#ifndef WORKER_JOB_LIFE_H
#define WORKER_JOB_LIFE_H

/* life_init() - read the environment, again. By the constructor, and by who has
 * another one since. */
void life_init(void);

#endif /* WORKER_JOB_LIFE_H */
