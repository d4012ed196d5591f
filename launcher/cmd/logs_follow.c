/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs_follow.c - xrun logs -f.
 *
 * Each turn: which files changed, then some of what there is. So a rank that
 * writes without end keeps no other rank's lines from being met.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/cmd/logs_inner.h"
#include "launcher/cmd/lookout.h"
#include "launcher/job/words.h"

#define RUNS 64 /* a turn */

struct state_of_rank {
	bool chosen, grew;
};

/* The unfinished line of a reader, as it was put. */
struct rest {
	uint64_t end; /* offset */
	int64_t due;  /* when to put it again; 0: when it has grown */
};

struct follow {
	struct reading *reading;
	struct lookout lookout;
	bool armed;                 /* the end of the lock will be told */
	struct state_of_rank *rank; /* of the attempt */
	struct rest *rest;          /* [readers] */
	uint32_t *folder; /* rank of each that is watched, by its number */
	size_t folders;
	int parent;    /* number of the attempt's folder */
	bool look;     /* whether it is over */
	uint64_t gone; /* bytes, as was said */
};

#define NO_RANK UINT32_MAX

enum { ALSO_STOP, ALSO_TERMINAL };

static void
logs_follow_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(how, &set, NULL);
}

/* Ctrl-Z between two turns. A stop within a turn would leave the output of the turn to be
 * written over the output of the shell. */
static void
logs_follow_stop(void)
{
	raise(SIGTSTP);
	logs_follow_mask(SIG_UNBLOCK);
	logs_follow_mask(SIG_BLOCK);
}

/* Returns a signalfd of the terminal's size, Ctrl-Z and the continuation after a stop; -1 if
 * standard output is no terminal, or descriptors are short: then the signals act as usual. */
static int
watch_terminal(void)
{
	sigset_t set;
	int fd;

	if (!isatty(STDOUT_FILENO))
		return -1;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd == -1)
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	return fd;
}

static void
hear_terminal(struct follow *f)
{
	struct signalfd_siginfo info;
	int fd = f->lookout.also[ALSO_TERMINAL].fd;

	while (fd != -1 && read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			logs_follow_stop();
		if (info.ssi_signo != SIGWINCH)
			f->reading->put.lost = true;
	}
}

/* Until there is news, or something changed. */
static enum lookout_news
wait_for_news(struct follow *f, bool patient, lookout_fn *fn)
{
	enum lookout_news news;

	if (!f->armed)
		lookout_lock(&f->lookout, f->reading->attempt.job.dir);
	f->armed = true;
	news = lookout_wait(&f->lookout, patient, fn, f);
	if (news == LOOKOUT_OVER)
		f->armed = false;
	hear_terminal(f);
	if ((f->lookout.also[ALSO_STOP].revents & POLLIN) == 0)
		return news;
	f->reading->stopped = true;
	return LOOKOUT_CLOSED;
}

/* --- what changes --------------------------------------------------------- */

static void
remember(struct follow *f, int folder, uint32_t rank)
{
	while ((size_t)folder >= f->folders) {
		f->folder = xrealloc(f->folder,
			(f->folders + 1) * sizeof(*f->folder));
		f->folder[f->folders++] = NO_RANK;
	}
	f->folder[folder] = rank;
}

/* A rank has no folder before its first byte. */
static void
watch_rank(struct follow *f, uint32_t rank)
{
	const struct attempt *a = &f->reading->attempt;
	char path[PATH_MAX + 32];
	int folder;

	snprintf(path, sizeof(path), "%s/%u/rank-%04u", a->job.dir, a->number,
		rank);
	folder = lookout_folder(&f->lookout, path);
	if (folder >= 0)
		remember(f, folder, rank);
	f->rank[rank].grew = true; /* maybe, before it was watched */
}

static void
all_grew(struct follow *f)
{
	for (uint32_t r = 0; r < f->reading->attempt.ranks; r++)
		f->rank[r].grew = true;
}

static void
on_change(void *ctx, int folder, const char *name)
{
	struct follow *f = ctx;
	uint32_t ranks = f->reading->attempt.ranks;
	unsigned rank;

	if (folder == LOOKOUT_ALL) {
		f->look = true;
		all_grew(f);
	} else if (folder == f->parent) {
		if (sscanf(name, "rank-%u", &rank) == 1 && rank < ranks &&
			strchr(name, '.') == NULL && f->rank[rank].chosen)
			watch_rank(f, rank);
	} else if ((size_t)folder < f->folders &&
		f->folder[folder] != NO_RANK) {
		f->rank[f->folder[folder]].grew = true;
	} else {
		f->look = true;
	}
}

/* --- an attempt ----------------------------------------------------------- */

static void
watch_attempt(struct follow *f)
{
	const struct attempt *a = &f->reading->attempt;
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < f->folders; i++)
		f->folder[i] = NO_RANK;
	f->rank = xcalloc(a->ranks, sizeof(*f->rank));
	for (size_t i = 0; i < f->reading->count; i++)
		f->rank[f->reading->reader[i].stream / RAW_STREAMS].chosen =
			true;
	snprintf(path, sizeof(path), "%s/%u", a->job.dir, a->number);
	f->parent = lookout_folder(&f->lookout, path);
	for (uint32_t r = 0; r < a->ranks; r++)
		if (f->rank[r].chosen)
			watch_rank(f, r);
}

static void
look_at_grown(struct follow *f)
{
	struct reading *l = f->reading;

	for (size_t i = 0; i < l->count; i++)
		if (f->rank[l->reader[i].stream / RAW_STREAMS].grew)
			reading_look(l, i);
	for (uint32_t r = 0; r < l->attempt.ranks; r++)
		f->rank[r].grew = false;
}

/* What was removed before it was read: of a reader that is slow. */
static void
say_gone(struct follow *f)
{
	uint64_t gone = 0;

	for (size_t i = 0; i < f->reading->count; i++)
		gone += f->reading->reader[i].gone;
	if (gone > f->gone)
		logs_put_break(&f->reading->put);
	if (gone > f->gone)
		words_line("%llu bytes were rotated away",
			(unsigned long long)(gone - f->gone));
	f->gone = gone;
}

/* Checks whether the attempt is over. If it is, its files have everything that is still to be
 * read. */
static void
look_for_end(struct follow *f, enum lookout_news news)
{
	struct reading *l = f->reading;

	if (l->last || (!f->look && news != LOOKOUT_OVER))
		return;
	f->look = false;
	l->last = attempt_is_over(&l->attempt);
	if (l->last)
		all_grew(f);
}

/* --- unfinished lines ----------------------------------------------------- */

static void
put_rest(struct follow *f, size_t i, int64_t now)
{
	struct reader *r = &f->reading->reader[i];
	struct rest *rest = &f->rest[i];
	uint64_t end = r->offset + (r->len - r->at);
	bool grew = end != rest->end;

	if (!grew && (rest->due == 0 || now < rest->due))
		return;
	rest->end = end;
	rest->due = logs_put_rest(&f->reading->put, r, !grew);
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Then the next turn is due though nothing comes; 0: it is not. */
static int64_t
put_rests(struct follow *f)
{
	int64_t now = clock_now(), due = 0;

	for (size_t i = 0; i < f->reading->count; i++) {
		put_rest(f, i, now);
		due = earlier(due, f->rest[i].due);
	}
	return due;
}

static void
wait_until(struct follow *f, int64_t due)
{
	int64_t left = due - clock_now();

	f->lookout.also_ms = (int)(left / NS_PER_MS) + 1;
	if (due == 0)
		f->lookout.also_ms = -1;
	else if (left < 0)
		f->lookout.also_ms = 0;
}

/* The end of a turn; @more: of a part of what is there. */
static void
end_turn(struct follow *f, bool more)
{
	struct logs_put *put = &f->reading->put;
	int64_t due = put_rests(f);

	if (!more)
		logs_put_idle(put);
	logs_put_flush(put);
	wait_until(f, earlier(due, logs_put_due(put)));
}

static void
closed(struct follow *f)
{
	if (!f->reading->stopped)
		f->reading->put.sys = EPIPE;
}

static enum xr_status
follow_attempt(struct follow *f, struct xr_error *err)
{
	struct reading *l = f->reading;
	enum xr_status status;
	enum lookout_news news;
	bool more = true, last;

	do {
		last = l->last;
		news = wait_for_news(f, !more && !last, on_change);
		if (news == LOOKOUT_CLOSED) {
			closed(f);
			break;
		}
		logs_put_turn(&l->put);
		look_for_end(f, news);
		look_at_grown(f);
		status = reading_check(l, err);
		if (status != XR_OK)
			return status;
		more = reading_put_some(l, RUNS);
		say_gone(f);
		end_turn(f, more);
	} while (l->put.sys == 0 && (more || !last));
	return XR_OK;
}

/* --- one after the other -------------------------------------------------- */

static void
ignore(void *ctx, int folder, const char *name)
{
	(void)ctx;
	(void)folder;
	(void)name;
}

/* An attempt that has just begun; false: nobody reads what is written. */
static bool
await_facts(struct follow *f)
{
	enum lookout_news news = LOOKOUT_CHANGED;

	while (news != LOOKOUT_CLOSED &&
		!attempt_is_known(&f->reading->attempt)) {
		news = wait_for_news(f, true, ignore);
	}
	return news != LOOKOUT_CLOSED;
}

/* The next attempt is there, or will be: somebody has the lock again. */
static bool
await_next(struct follow *f)
{
	struct reading *l = f->reading;

	while (l->s.attempt == ATTEMPT_LAST) {
		if (attempt_next(&l->attempt))
			return true;
		if (attempt_is_over(&l->attempt) && !attempt_next(&l->attempt))
			return false;
		if (wait_for_news(f, true, ignore) == LOOKOUT_CLOSED)
			return false;
	}
	return false;
}

static enum xr_status
follow_one(struct follow *f, struct xr_error *err)
{
	struct reading *l = f->reading;
	enum xr_status status;

	if (!await_facts(f)) {
		closed(f);
		return XR_OK;
	}
	status = reading_begin(l, err);
	if (status != XR_OK)
		return status;
	f->gone = 0;
	f->look = true;
	watch_attempt(f);
	f->rest = xcalloc(l->count + 1, sizeof(*f->rest));
	status = follow_attempt(f, err);
	logs_put_end(&l->put);
	f->lookout.also_ms = -1;
	free(f->rest);
	free(f->rank);
	f->rank = NULL;
	return status;
}

enum xr_status
reading_follow(struct reading *l, struct xr_error *err)
{
	struct follow f = { .reading = l };
	enum xr_status status;

	if (!lookout_open(&f.lookout))
		return fail(err, XR_E_SYS, "logs: inotify: %s",
			strerror(errno));
	f.lookout.also[ALSO_STOP] = (struct pollfd){ l->stop, POLLIN, 0 };
	f.lookout.also[ALSO_TERMINAL] =
		(struct pollfd){ watch_terminal(), POLLIN, 0 };
	lookout_folder(&f.lookout, l->attempt.job.dir);
	for (;;) {
		status = follow_one(&f, err);
		if (status != XR_OK || l->stopped || l->put.sys != 0 ||
			!await_next(&f))
			break;
		reading_end(l);
		l->s.tail = -1;
		l->s.since = NULL;
		if (isatty(STDERR_FILENO))
			words_line("%s: attempt %u", l->attempt.job.id,
				l->attempt.number);
	}
	fd_close(f.lookout.also[ALSO_TERMINAL].fd);
	free(f.folder);
	lookout_close(&f.lookout);
	return status;
}
