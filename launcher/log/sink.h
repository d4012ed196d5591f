/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - the thread behind one output descriptor: terminal, pipe or file.
 *
 * A sink reads the raw files at offsets of its own, cuts what is new into
 * lines, puts the prefix before each and writes once a turn. It may fall
 * behind by any amount, and block in write(2) as long as its reader likes:
 * neither the ranks nor the loop notice. Descriptors are used as inherited;
 * nothing is ever set on them.
 *
 * Without files (--no-logs) the sink reads the pipes itself, so that a slow
 * reader pushes back through them, and keeps the last bytes of each stream
 * for the account.
 *
 * stdout and stderr of xrun that are the same file are one sink. The words of
 * xrun itself go through the sink of stderr, between whole lines.
 *
 * The thread starts with the first thing it has to do, or by sink_start().
 */
#ifndef LAUNCHER_LOG_SINK_H
#define LAUNCHER_LOG_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/log/line.h"
#include "launcher/log/note.h"

struct modes;
struct raw_share;
struct sink;

struct sink_config {
	uint32_t id; /* value of its notes */
	int fd;      /* borrowed */
	bool lines;  /* cut into lines with prefixes; else bytes as they are */
	bool filter; /* keep escape sequences but colour off */
	bool narrow; /* see escape.h */
	bool times;  /* lines bear the time of their arrival */
	int64_t idle_ns; /* silence of a stream that cuts its unfinished line */
	int dir;         /* the attempt folder; -1: no files, read the pipes */
	uint32_t streams;
	uint32_t base;                    /* see raw.h */
	const struct line_prefix *prefix; /* [streams]; borrowed */
	const struct route *view; /* lines change; or NULL, see view.h */
	bool screen, collapse;    /* of the view */
	const bool *shown;        /* [streams]; borrowed */
	struct modes *modes;      /* of a terminal that gets bytes as they are;
				   * borrowed, or NULL */
	const struct notes *notes;
	struct raw_share *share; /* if files are begun anew; else NULL */
};

/* sink_open() - NULL with errno. */
struct sink *sink_open(const struct sink_config *config);

/* sink_round() - what is told from here on came at the clock_now() @when. Ranks that write
 * together do so at one time, however late it is told. 0, as it is at first: when it is
 * shown. Mover thread. */
void sink_round(struct sink *sink, int64_t when);

/* sink_grew() - @stream has @end bytes in its file @fd (-1: open it by name),
 * and no more will come if @eof. Mover thread. */
void sink_grew(struct sink *sink, uint32_t stream, int fd, uint64_t end,
	bool eof);

/* sink_unstored() - @data of @stream found no room behind the offset @at of its
 * file; see unstored.h. Mover thread. */
void sink_unstored(struct sink *sink, uint32_t stream, uint64_t at,
	struct span data, bool dropped);

#define SINK_SWEPT_ALL INT64_MAX /* nothing waits to be told */

/* sink_swept() - what ranks wrote before the clock_now() @when has been told. No
 * line is given up for bytes that may be on their way. SINK_SWEPT_ALL where
 * nobody ever calls it. Mover thread. */
void sink_swept(struct sink *sink, int64_t when);

/* sink_start() - the thread, now: who reads pipes is waited for. 0 or an errno;
 * then it may be tried again. */
int sink_start(struct sink *sink);

/* sink_retry() - tries again to start a thread that was refused when the sink first had
 * something to do. Returns true if it is refused still. */
bool sink_retry(struct sink *sink);

/* sink_add() - read @pipe for @stream; it is the sink's now. Loop thread, for
 * a sink without files; it is read once the sink is started. */
bool sink_add(struct sink *sink, uint32_t stream, int pipe);

/* sink_drop() - as mover_drop(), for a sink without files; without a thread what
 * the pipe holds is not read, see sink_left(). */
enum drop_end sink_drop(struct sink *sink, uint32_t stream);

/* What puts words of xrun on a sink. */
typedef void sink_words_fn(struct sink *sink, const char *text, size_t len);

/* sink_say() - words of xrun, whole lines. Loop thread. */
void sink_say(struct sink *sink, const char *text, size_t len);

/* sink_hint() - one line that the next output erases; terminals only. */
void sink_hint(struct sink *sink, const char *text, size_t len);

/* sink_look() - the terminal has another size, or, if @lost, was somebody else's
 * meanwhile: what stands there is painted anew. Loop thread. */
void sink_look(struct sink *sink, bool lost);

/* sink_last() - words that come after everything else, at the finish. */
void sink_last(struct sink *sink, const char *text, size_t len);

enum sink_end {
	SINK_LATER, /* NOTE_SINK_DONE tells */
	SINK_OVER,  /* now; no note comes */
	SINK_AGAIN, /* ask again in a while: its words wait for their reader */
};

/*
 * sink_finish() - when all that was announced and can be read is delivered, the
 * thread ends. If none was needed that is at once. If none can be had, only the
 * words of xrun go out, as far as the reader takes them without a wait; a file
 * that is read or written by others is not.
 *
 * @sys: with SINK_OVER: why not all could be shown, or 0
 */
enum sink_end sink_finish(struct sink *sink, int *sys);

/* sink_backlog() - bytes announced and not yet delivered. Any thread; lags. */
uint64_t sink_backlog(struct sink *sink);

/* sink_left() - pipes with bytes that sink_drop() closed unread. Loop. */
uint32_t sink_left(const struct sink *sink);

/* sink_bytes() - bytes that came by a pipe of a sink without files. */
uint64_t sink_bytes(struct sink *sink, uint32_t stream);

/* sink_tail() - the last bytes of a stream of a sink without files; only after
 * NOTE_SINK_DONE. Borrowed. */
struct span sink_tail(const struct sink *sink, uint32_t stream);

#endif /* LAUNCHER_LOG_SINK_H */
