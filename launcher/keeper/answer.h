/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - detects a supervisor that does not react when the job is told to end.
 *
 * The supervisor counts its reads of signals in the page. The keeper notes the
 * counter when it passes on a signal that ends the job. If the counter is the same
 * ten seconds later, the supervisor is stuck: a debugger stopped it, or it sleeps in
 * a system call. A keeper that was stopped itself grants the time again.
 */
#ifndef LAUNCHER_KEEPER_ANSWER_H
#define LAUNCHER_KEEPER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct keeper_page;

struct answer {
	int32_t heard;       /* the counter when the signal was passed on */
	int64_t deadline_ns; /* clock_now(); 0: no answer is expected */
};

/* answer_note() - the supervisor has read its signals. */
void answer_note(struct keeper_page *page);

/* answer_expect() - a signal was passed on; an earlier deadline stays. */
void answer_expect(struct answer *a, const struct keeper_page *page);

/* answer_expect_soon() - the same, within a second. */
void answer_expect_soon(struct answer *a, const struct keeper_page *page);

/* answer_missed() - at the deadline. Returns true if there was no answer. */
bool answer_missed(struct answer *a, const struct keeper_page *page);

/* answer_is_dead() - returns true if @pid is dead. A debugger can keep the threads of
 * a process that was killed: no event reports its death then. */
bool answer_is_dead(pid_t pid);

/* answer_timeout() - returns the milliseconds until the deadline, for poll(2). */
int answer_timeout(const struct answer *a);

#endif /* LAUNCHER_KEEPER_ANSWER_H */
