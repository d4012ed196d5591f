/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.h - who is told of events: commands of --exec-on, addresses of --on-event.
 *
 * The bus hands each event over as the line that goes to events.jsonl. Commands
 * run one after the other, each five seconds at most, as aides; web hooks are
 * sent by one aide, xrun-notify, which has libcurl. What waits is bounded: an
 * event that finds no room is dropped, and that is told. At the end of the job
 * they have HOOK_END_NS to be done, before a next attempt HOOK_NEXT_NS.
 *
 * Nothing of it is there unless an option asked for it. On the loop.
 */
#ifndef LAUNCHER_TELL_HOOK_H
#define LAUNCHER_TELL_HOOK_H

#include "base/span.h"
#include "launcher/job/job.h"
#include "launcher/tell/bus.h"

#define HOOK_EXEC_NS (5 * NS_PER_S)
#define HOOK_END_NS  (10 * NS_PER_S)
#define HOOK_NEXT_NS (2 * NS_PER_S)

/* "EVENT:COMMAND" or "EVENT:URL", read. */
struct hook {
	uint32_t events;  /* a bit for each enum bus_event */
	const char *text; /* borrowed: command or URL */
};

struct hooks {
	struct hook *exec, *web;
	size_t exec_count, web_count;
	char *notify; /* xrun-notify's file; NULL without web hooks */

	/* The supervisor's. */
	struct hook_exec *running;
	struct hook_web *sending;
	struct timer *end;
	bool over; /* no patience any more */
};

/* hook_parse() - @option: for words. */
enum xr_status hook_parse(struct hook *hook, const char *text,
	const char *option, struct xr_error *err);

/* hook_open() - before the first rank. XR_E_INVAL, or XR_E_NOTFOUND where
 * xrun-notify is not there, with words in @err. */
enum xr_status hook_open(struct job *job, struct xr_error *err);
void hook_free(struct job *job); /* after the last process */

/* hook_begin() - the bus is there. */
void hook_begin(struct job *job);

/* hook_wait() - called after the last event; returns true if something is still to be
 * done. Then finish_written() is called when it is done, or when its time is over. */
bool hook_wait(struct job *job);

/* hook_bound() - told to end: what is waited for by hook_wait() has the deadline of
 * the job, or half a second. */
void hook_bound(struct job *job);

/* hook_hurry() - told to end, twice: what is waited for by hook_wait() is given
 * up. */
void hook_hurry(struct job *job);

/* hook_left() - returns true if a command left this child behind, and not a rank. */
bool hook_left(const struct job *job, pid_t pid);

/* hook_end() - after the loop: what commands left behind is ended, and named. */
void hook_end(struct job *job);

/* --- hook_exec.c ---------------------------------------------------------- */

void hook_exec_tell(struct job *job, const char *command, enum bus_event event,
	struct span line);
bool hook_exec_busy(const struct job *job);
void hook_exec_give_up(struct job *job);
/* hook_exec_free() - after the loop. */
void hook_exec_free(struct job *job);

/* --- hook_web.c ----------------------------------------------------------- */

void hook_web_tell(struct job *job, const char *url, enum bus_event event,
	struct span line);
/* What is under way goes out, and nothing comes after it. */
void hook_web_last(struct job *job);
bool hook_web_busy(const struct job *job);
void hook_web_give_up(struct job *job);

/* hook_say() - as logs_say(), and to stderr where that is over. */
void hook_say(struct job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* hook_done() - by either: nothing is left to do now. */
void hook_done(struct job *job);

#endif /* LAUNCHER_TELL_HOOK_H */
