/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - what a person sees of a job that runs: its header, and where the
 * ranks are when Ctrl-C is pressed. All of it goes to stderr. */
#ifndef LAUNCHER_SUP_SCREEN_H
#define LAUNCHER_SUP_SCREEN_H

#include <stdint.h>

#include "launcher/job/job.h"

/* screen_header() - "xrun: job k7m2: 4 ranks, cpu, logs ~/..."; on a terminal
 * only. */
void screen_header(struct job *job);

/* screen_interrupt() - after the first Ctrl-C: what each rank is at. */
void screen_interrupt(struct job *job);
void screen_interrupt_again(struct job *job, uint32_t times);

#endif /* LAUNCHER_SUP_SCREEN_H */
