/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - see attach.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ranks.h"
#include "base/status.h"
#include "launcher/cmd/attach.h"
#include "launcher/cmd/attach_keys.h"
#include "launcher/cmd/logs_inner.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/steer.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/job/options.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/log/thread.h"
#include "proc/limit.h"

#define EXIT_LEFT  130 /* as after any Ctrl-C: the job is not over */
#define TAIL       "10"
#define AGAIN_MS   50
#define LEAVE_MS   1000 /* more, and nobody takes what we write */
#define MOST_LINES (INT64_C(1) << 53)

struct settings {
	const char *ranks;
	int64_t tail;
	int collapse; /* enum collapse_mode */
	bool keys;
};

#define AT(field) .offset = offsetof(struct settings, field)

/* clang-format off */
const struct opt attach_options[] = {
	{ .name = "rank", .letter = 'r', VERB_ROW, .type = OPT_TEXT, .arg = "RANKS", .check = ranks_check, AT(ranks),
		.help = "output of these ranks, 0-3,7; and the terminal of one" },
	{ .name = "tail", VERB_ROW, .type = OPT_INT, .arg = "N", .max = MOST_LINES, .dflt = TAIL, AT(tail),
		.help = "begin with the last N lines" },
	{ .name = "collapse", VERB_ROW, .type = OPT_CHOICE, .dflt = "auto", .choices = logs_collapses, AT(collapse),
		.help = "show equal lines of several ranks as one",
		.text = "As *--collapse* of *xrun-logs*(1)." },
	{ .name = "keys", VERB_ROW, .type = OPT_FLAG, .dflt = "yes", AT(keys),
		.help = "output alone, though the rank has a terminal" },
	{ 0 },
};
/* clang-format on */

/* What is attached to, and how. */
struct attach {
	struct settings s;
	struct attempt attempt;
	int signals;
	bool is_tty;
	struct termios terminal; /* as it was */
	int words;       /* the job's own, since we came; -1: none yet */
	uint32_t number; /* of the attempt that they are of */
};

/* What ends us is read from a descriptor from here on, of threads, too. @fd: one
 * that there is, for more of them; -1 */
static int
take_signals(int fd, bool size)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	/* Or a thread that does not block them hears them. */
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGCONT);
	if (!size)
		sigdelset(&set, SIGWINCH);
	return signalfd(fd, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
left_status(int sig)
{
	return sig == 0 || sig == SIGINT ? EXIT_LEFT : 128 + sig;
}

static int
say_left(const struct attach *a, int sig)
{
	const char *id = a->attempt.job.id;

	words_line("left %s running; xrun attach %s comes back", id, id);
	return left_status(sig);
}

/* A call that writes holds us for as long as nobody reads, and nobody looks for
 * signals then: some time after one of them we are gone in any case. */
static void *
leave_anyway(void *arg)
{
	struct attach *a = arg;
	struct pollfd end = { take_signals(-1, false), POLLIN, 0 };
	struct pollfd room = { STDERR_FILENO, POLLOUT, 0 };
	struct signalfd_siginfo info = { 0 };

	while (poll(&end, 1, -1) != 1)
		continue;
	poll(NULL, 0, LEAVE_MS);
	if (read(end.fd, &info, sizeof(info)) != sizeof(info))
		info.ssi_signo = 0; /* taken, but what follows is not written */
	if (a->is_tty)
		tcsetattr(STDIN_FILENO, TCSANOW, &a->terminal);
	if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
		_exit(say_left(a, (int)info.ssi_signo));
	_exit(left_status((int)info.ssi_signo));
}

static void
watch_signals(struct attach *a)
{
	pthread_t thread;

	a->signals = take_signals(-1, false);
	a->is_tty = tcgetattr(STDIN_FILENO, &a->terminal) == 0;
	thread_start(&thread, leave_anyway, a);
}

/* --- what the job says of itself ------------------------------------------ */

/* Its account goes into a file where nobody sees it, if it was left alone. */
static void
open_words(struct attach *a)
{
	char name[sizeof(STATE_WORDS) + 16];

	snprintf(name, sizeof(name), "%u/" STATE_WORDS, a->attempt.number);
	a->words = openat(a->attempt.folder, name,
		O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	a->number = a->attempt.number;
	if (a->words != -1)
		lseek(a->words, 0, SEEK_END);
}

static void
copy_words(struct attach *a)
{
	char text[4096];
	ssize_t n;

	while (a->words != -1 &&
		(n = fd_read_some(a->words, text, sizeof(text))) > 0)
		fd_write_all(STDERR_FILENO, text, (size_t)n);
}

/* The job is over: its last words, and its exit status. */
static int
say_over(struct attach *a)
{
	if (a->attempt.number != a->number) {
		fd_close(a->words);
		open_words(a); /* of the last attempt, all of them */
		lseek(a->words, 0, SEEK_SET);
	}
	copy_words(a);
	return steer_wait(&a->attempt.job);
}

/* --- lines ---------------------------------------------------------------- */

/* Lines from the attempt that is open on: of all that follow, or (@attempt is its
 * number) of this one alone. False: we leave, with *@exit_status. */
static bool
put_lines(struct attach *a, int64_t attempt, int *exit_status)
{
	struct reading l = {
		.s = { .ranks = a->s.ranks,
			.tail = a->s.tail,
			.attempt = attempt,
			.follow = true,
			.prefix = true,
			.color = COLOR_AUTO,
			.collapse = a->s.collapse },
		.attempt = a->attempt,
		.stop = a->signals,
	};
	struct signalfd_siginfo info = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status = reading_follow(&l, &err);
	bool all = false;

	a->attempt = l.attempt;
	a->s.tail = 0;
	if (l.stopped && read(a->signals, &info, sizeof(info)) == sizeof(info))
		*exit_status = say_left(a, (int)info.ssi_signo);
	else if (status != XR_OK)
		*exit_status = say_error(&err);
	else if (l.put.sys != 0)
		*exit_status = say_unwritten(l.put.sys);
	else
		all = true;
	reading_end(&l);
	return all;
}

static int
show_lines(struct attach *a)
{
	int exit_status;

	return put_lines(a, ATTEMPT_LAST, &exit_status) ? say_over(a) :
							  exit_status;
}

/* --- keys ----------------------------------------------------------------- */

/* The rank that is meant, if it is a single one. */
static bool
is_one_rank(const struct attach *a, uint32_t *rank)
{
	struct ranks set = { 0 };
	bool one = false;

	*rank = 0;
	if (a->s.ranks == NULL)
		return a->attempt.ranks == 1;
	if (ranks_init(&set, a->attempt.ranks) == XR_OK &&
		ranks_parse(&set, a->s.ranks, NULL) == XR_OK &&
		ranks_count(&set) == 1) {
		RANKS_EACH(r, &set)
			*rank = r;
		one = true;
	}
	ranks_fini(&set);
	return one;
}

/* XR_OK; else the rank's terminal is not to be had, now or at all. If somebody else
 * types there, that is said. */
static enum xr_status
begin_keys(struct attach *a, struct attach_keys *k)
{
	struct xr_error err = { 0 };
	enum xr_status status;

	*k = (struct attach_keys){
		.attempt = &a->attempt,
		.tail = a->s.tail,
		.signals = a->signals,
		.typed = -1,
		.call = { .fd = -1 },
	};
	if (!a->s.keys || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
		!attempt_await_known(&a->attempt) || !is_one_rank(a, &k->rank))
		return XR_E_INVAL;
	status = attach_keys_begin(k, &err);
	if (status == XR_E_EXISTS)
		words_line("%s; its output alone", err.text);
	return status;
}

/* A signal that ends us, for as long as a rank may take to begin; 0: none. */
static int
told_meanwhile(const struct attach *a)
{
	struct pollfd end = { a->signals, POLLIN, 0 };
	struct signalfd_siginfo info;

	if (poll(&end, 1, AGAIN_MS) != 1 ||
		read(a->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

/* An attempt has a terminal of its own as soon as its ranks begin, which may be
 * after a pause; no event tells of it. As begin_keys(), unless it is over or a
 * signal came before. */
static enum xr_status
await_keys(struct attach *a, struct attach_keys *k)
{
	enum xr_status status = XR_E_STATE;

	while (status != XR_OK && status != XR_E_EXISTS && k->signal == 0 &&
		!attempt_is_over(&a->attempt)) {
		status = begin_keys(a, k);
		if (status != XR_OK)
			k->signal = told_meanwhile(a);
	}
	return status;
}

/* The keyboard of the next attempt that is there for long enough; of others, the
 * lines. False: there is none to be had, or we leave, which *@exit_status says
 * unless it is -1. */
static bool
begin_next(struct attach *a, struct attach_keys *k, int *exit_status)
{
	enum xr_status status;

	while (attempt_next(&a->attempt)) {
		words_line("attempt %u", a->attempt.number);
		a->s.tail = MOST_LINES;
		status = await_keys(a, k);
		if (status == XR_OK || status == XR_E_EXISTS || k->signal != 0)
			return status == XR_OK;
		if (!attempt_is_followed(&a->attempt) ||
			!put_lines(a, a->attempt.number, exit_status))
			return false;
	}
	return false;
}

/* Only where there is a window does its size matter to anybody: elsewhere what is
 * read of @a->signals ends us. */
static enum attached
run_keys(struct attach *a, struct attach_keys *k)
{
	enum attached how;

	take_signals(a->signals, true);
	how = attach_keys_run(k);
	take_signals(a->signals, false);
	attach_keys_end(k);
	a->s.tail = 0;
	return how;
}

static int
show_terminal(struct attach *a, struct attach_keys *k)
{
	enum attached how;
	int exit_status = -1;

	do {
		how = run_keys(a, k);
	} while (how == ATTACHED_OVER && begin_next(a, k, &exit_status));
	if (how == ATTACHED_LEFT || k->signal != 0)
		return say_left(a, k->signal);
	if (how == ATTACHED_UNWRITTEN)
		return say_unwritten(k->sys);
	return exit_status != -1 ? exit_status : show_lines(a);
}

static enum xr_status
find(const char *name, struct attempt *a, struct xr_error *err)
{
	struct which job;
	enum xr_status status = which_job(name, WHICH_RUNNING, &job, err);

	if (status == XR_OK && !job.running)
		status = fail(err, XR_E_STATE, "%s has ended\txrun logs %s",
			job.id, job.id);
	if (status == XR_OK)
		status = attempt_find_job(job.id, "output", a, err);
	return status == XR_OK ? attempt_open(a, ATTEMPT_LAST, err) : status;
}

int
cmd_attach(int argc, char **argv)
{
	static struct attach a = { .attempt = ATTEMPT_NONE, .words = -1 };
	struct limits limits;
	struct verb_args args;
	struct xr_error err = { 0 };
	struct attach_keys k;
	int exit_status;

	(void)argc;
	if (!verb_args_read(&args, attach_options, &a.s, 1, argv))
		return EXIT_XRUN;
	limit_read(&limits); /* as many files as may be open */
	if (find(args.count > 0 ? args.operand[0] : NULL, &a.attempt, &err) !=
		XR_OK)
		return say_error(&err);
	watch_signals(&a);
	open_words(&a);
	exit_status = begin_keys(&a, &k) == XR_OK ? show_terminal(&a, &k) :
						    show_lines(&a);
	fd_close(a.words);
	attempt_close(&a.attempt);
	return exit_status;
}
