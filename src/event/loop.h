/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - libevent, wrapped once.
 *
 * One loop, one thread. Callbacks do a bounded amount of work and never block.
 * Close rule: a watch or a timer may be closed at any time, inside its own
 * callback too; afterwards no callback of it runs. Memory is freed at the end
 * of the turn.
 */
#ifndef EVENT_LOOP_H
#define EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct watch;
struct timer;

typedef void watch_fn(int fd, void *ctx);
typedef void timer_fn(void *ctx);

/* loop_new() - NULL with errno if the kernel refuses. */
struct loop *loop_new(void);
void loop_free(struct loop *loop);

/* loop_run() - until loop_stop(), which may be called from any callback; or
 * until the kernel refuses to wait for a second, with errno. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * watch_open() - call @fn while @fd can be read (or written, if @write).
 * The descriptor stays the caller's. NULL if out of memory.
 */
struct watch *watch_open(struct loop *loop, int fd, bool write, watch_fn *fn,
	void *ctx);
void watch_pause(struct watch *watch);
/* watch_resume() - where the kernel refuses it for now, it is tried again. */
void watch_resume(struct watch *watch);
void watch_close(struct watch *watch); /* NULL is fine */

/* timer_open() - a timer that is not armed. NULL if out of memory. */
struct timer *timer_open(struct loop *loop, timer_fn *fn, void *ctx);

/* timer_arm() - fire once, @ns from now, not before; arming again replaces. It
 * needs no memory and cannot fail. */
void timer_arm(struct timer *timer, int64_t ns);
void timer_disarm(struct timer *timer);
bool timer_armed(const struct timer *timer);
int64_t timer_left(const struct timer *timer); /* ns until it fires; 0: none */
int64_t timer_late(const struct timer *timer); /* ns; when it fired last */
void timer_close(struct timer *timer);         /* NULL is fine */

#endif /* EVENT_LOOP_H */
