/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_inner.h - a sink from within; for sink.c and deliver.c only.
 *
 * sink.c is what other threads call: they leave things in the queues, each
 * under its lock, and wake the thread. deliver.c is the thread: it takes them
 * and puts what they mean on the screen. Where no thread can be had, the loop
 * says xrun's words itself at the finish, as far as that needs no wait.
 */
#ifndef LAUNCHER_LOG_SINK_INNER_H
#define LAUNCHER_LOG_SINK_INNER_H

#include <pthread.h>

#include "launcher/log/feed.h"
#include "launcher/log/sink.h"

#define SINK_WAKE      UINT64_MAX /* the event of the wake descriptor */
#define SINK_OUT_FIRST (256 * 1024)

struct sink {
	struct sink_config config;
	int epoll;
	int wake; /* eventfd, edge-triggered: never read */
	bool started;
	int refused; /* atomic: errno of the last thread that could not be made */
	uint32_t left; /* pipes that were closed unread, without a thread */

	pthread_mutex_t grow_lock; /* mover and sink; held for a few stores */
	struct feed_list grown;
	bool asleep;
	bool settled;  /* asleep, and no line is unfinished */
	int64_t round; /* the mover's own; see sink_round() */

	pthread_mutex_t say_lock; /* loop and sink; held for a few stores */
	struct buf words;
	struct buf last; /* words for the very end */
	struct buf hint;
	struct buf drops; /* uint32_t streams */
	bool finishing;
	bool lost; /* the terminal was somebody else's meanwhile */

	/* The thread's own. */
	struct feed *feed;
	struct feed_list ready, parked, waiting;
	struct buf out;
	struct line_sink lines;
	char *scratch;
	int64_t known;  /* what came before this clock_now() is known */
	bool torn;      /* passed as it is, the last line has no newline yet */
	bool dead;      /* its reader is gone: what comes is thrown away */
	bool hinted;    /* a hint stands on the terminal */
	uint64_t taken; /* bytes of ranks in out */
	int unread_sys; /* errno of a feed that cannot be read; 0 */

	/* Atomic, for whoever asks; may lag. Beside them @started, of loop and
	 * mover, and the @end of a feed that is a pipe, of the thread. */
	uint64_t unstored;  /* bytes held, see unstored.h */
	uint64_t announced; /* bytes; by the mover */
	uint64_t delivered; /* bytes; by the thread */

	/* Atomic, of mover and thread. */
	int64_t swept; /* see sink_swept() */
	bool asks;     /* to be woken with the next one */
};

/* sink_watch() - false with errno. */
bool sink_watch(struct sink *s, int fd, uint32_t events, uint64_t tag);
void sink_note(struct sink *s, enum note_kind kind, uint32_t value, int sys);

/* deliver_run() - the thread, a struct sink's: until sink_finish(). */
void *deliver_run(void *sink);

#endif /* LAUNCHER_LOG_SINK_INNER_H */
