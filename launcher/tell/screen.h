/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - what a person sees of a job that runs: its header, and where the
 * ranks are when Ctrl-C is pressed. All of it goes to stderr. */
#ifndef LAUNCHER_TELL_SCREEN_H
#define LAUNCHER_TELL_SCREEN_H

#include "launcher/job/job.h"

/* screen_header() - "xrun: job k7m2: 4 ranks, cpu, logs ~/..."; on a terminal
 * only. */
void screen_header(struct job *job);

/* screen_interrupt() - after the first Ctrl-C: what each rank is at. */
void screen_interrupt(struct job *job);
/* screen_interrupt_again() - after a further one: what it does; the job's
 * ending has advanced already. */
void screen_interrupt_again(struct job *job);

#endif /* LAUNCHER_TELL_SCREEN_H */
