/* SPDX-License-Identifier: Apache-2.0 */
/* test_logs_follow.c - xrun logs -f: what comes, in which order, and when it ends. */
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>

#include <sys/ioctl.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/lookout.h"
#include "launcher/log/index.h"
#include "tests/unit/verb_rig.h"

#define T0    (INT64_C(1795227240) * NS_PER_S) /* 2026-11-21T02:14:00Z */
#define START "\"start\":\"2026-11-21T02:14:00.000000Z\""

struct cJSON *__wrap_dial_status_now(const struct which *job);
bool __real_lookout_open(struct lookout *w);
bool __wrap_lookout_open(struct lookout *w);
enum lookout_news __real_lookout_wait(struct lookout *w, bool patient,
	lookout_fn *fn, void *ctx);
enum lookout_news __wrap_lookout_wait(struct lookout *w, bool patient,
	lookout_fn *fn, void *ctx);
int __wrap_isatty(int fd);
int __wrap_raise(int sig);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

/* What the job does at the next wait. */
struct step {
	unsigned attempt, rank;
	const char *stream; /* NULL: nothing is written */
	const char *text;
	const char *json; /* job.json from now on */
	bool ends;        /* the job */
	bool closed;      /* nobody reads any more */
	const char *cut;  /* the piece that the stream is from now on */
	const char *gone; /* a piece that is removed */
	bool stops;       /* Ctrl-Z is typed */
	bool waits;       /* until a row is due */
};

static struct step steps[12];
static unsigned step;
static int64_t came;
static bool blind, tty_errors, tty_out;
static bool say_waits; /* how long they may be */

struct cJSON *
__wrap_dial_status_now(const struct which *job)
{
	(void)job;
	return NULL;
}

int
__wrap_isatty(int fd)
{
	return (fd == STDERR_FILENO && tty_errors) ||
		(fd == STDOUT_FILENO && tty_out);
}

int
__wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request != TIOCGWINSZ || fd != STDOUT_FILENO || !tty_out)
		return __real_ioctl(fd, request, arg);
	*(struct winsize *)arg = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	return 0;
}

/* The process stops, and the shell writes until it continues. */
int
__wrap_raise(int sig)
{
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	dprintf(STDOUT_FILENO, "<%s%s>\n", sig == SIGTSTP ? "TSTP" : "?",
		sigismember(&blocked, SIGTSTP) ? "" : " not blocked");
	return 0;
}

/* A kernel that tells of all changes. */
bool
__wrap_lookout_open(struct lookout *w)
{
	errno = EMFILE;
	if (blind || !__real_lookout_open(w))
		return false;
	w->blind = false;
	return true;
}

static void
append(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_neq(fd, -1, "%s", path);
	cr_assert_eq(fd_write_all(fd, data, len), 0);
	fd_close(fd);
}

static const char *
file_of(const struct step *s, const char *end)
{
	char name[100];

	snprintf(name, sizeof(name), "%u/rank-%04u/%s%s", s->attempt, s->rank,
		s->stream, end);
	return job_path("k7m2", name);
}

static void
put(const struct step *s)
{
	static uint64_t len[4][4];
	struct index_record r;
	char name[64];

	snprintf(name, sizeof(name), "%u", s->attempt);
	mkdir(job_path("k7m2", name), 0700);
	snprintf(name, sizeof(name), "%u/rank-%04u", s->attempt, s->rank);
	mkdir(job_path("k7m2", name), 0700);
	append(file_of(s, ""), s->text, strlen(s->text));
	len[s->attempt][s->rank] += strlen(s->text);
	came += 20 * NS_PER_MS;
	r = (struct index_record){ len[s->attempt][s->rank], T0 + came };
	append(file_of(s, ".idx"), &r, sizeof(r));
}

static void
rename_piece(const struct step *s)
{
	char from[300], end[64];

	snprintf(from, sizeof(from), "%s", file_of(s, ""));
	snprintf(end, sizeof(end), ".%s", s->cut);
	cr_assert_eq(rename(from, file_of(s, end)), 0);
	snprintf(from, sizeof(from), "%s", file_of(s, ".idx"));
	snprintf(end, sizeof(end), ".%s.idx", s->cut);
	cr_assert_eq(rename(from, file_of(s, end)), 0);
}

static void
do_step(const struct step *s)
{
	char end[64];

	if (s->cut != NULL)
		rename_piece(s);
	if (s->gone != NULL) {
		snprintf(end, sizeof(end), ".%s", s->gone);
		cr_assert_eq(unlink(file_of(s, end)), 0);
		snprintf(end, sizeof(end), ".%s.idx", s->gone);
		unlink(file_of(s, end));
	}
	if (s->json != NULL)
		folder_write(job_path("k7m2", "job.json"), s->json, 0600);
	if (s->stream != NULL)
		put(s);
	if (s->stops)
		kill(getpid(), SIGTSTP);
	if (s->ends) {
		/* Another file: the test holds the lock of this one. */
		cr_assert_eq(rename(job_path("k7m2", "lock"), "old"), 0);
		folder_write(job_path("k7m2", "lock"), "0", 0600);
	}
}

static const char *
patience_of(const struct lookout *w)
{
	if (w->also_ms == -1)
		return "-";
	return w->also_ms >= 0 && w->also_ms <= 1001 ? "due" : "?";
}

/* What the kernel tells is there at once. */
enum lookout_news
__wrap_lookout_wait(struct lookout *w, bool patient, lookout_fn *fn, void *ctx)
{
	const struct step *s = &steps[step];
	if (!patient)
		return __real_lookout_wait(w, false, fn, ctx);
	if (say_waits)
		dprintf(STDERR_FILENO, "%s ", patience_of(w));
	step++;
	do_step(s);
	/* What was written at last is not told of. */
	if (s->ends)
		return LOOKOUT_OVER;
	return s->closed ?
		LOOKOUT_CLOSED :
		__real_lookout_wait(w, s->waits && w->also_ms > 0, fn, ctx);
}

static void
begin(void)
{
	verb_rig_make();
	job_make("k7m2", true, "{\"attempt\":0,\"ranks\":2," START "}");
	cr_assert_eq(mkdir(job_path("k7m2", "0"), 0700), 0);
}

TestSuite(logs_follow, .init = begin, .fini = folder_remove, .timeout = 60);

#define OUT(n, r, t) \
	{ .attempt = (n), .rank = (r), .stream = "stdout", .text = t }
#define STEPS(...) \
	memcpy(steps, ((const struct step[]){ __VA_ARGS__ }), \
		sizeof((const struct step[]){ __VA_ARGS__ }))

Test(logs_follow, ranks_as_they_come_until_the_job_ends)
{
	const struct step old = OUT(0, 0, "old\n");

	put(&old);
	STEPS(OUT(0, 0, "a\n"), OUT(0, 1, "b\n"), { 0 }, OUT(0, 0, "c\nd"),
		OUT(0, 0, "e\n"),
		{ .rank = 1,
			.stream = "stdout",
			.text = "last",
			.ends = true });
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "[0] old\n[0] a\n[1] b\n[0] c\n[0] de\n[1] last\n", "");
	cr_expect_eq(said.err[0], '\0');
}

Test(logs_follow, ranks_that_are_chosen)
{
	const struct step old = OUT(0, 1, "old\nolder\n");

	put(&old);
	STEPS(OUT(0, 0, "a\n"), OUT(0, 1, "b\n"),
		{ .rank = 1, .stream = "stderr", .text = "c\n" },
		{ .ends = true });
	CALL("logs", "-f", "k7m2", "-r", "1", "--stdout", "-n", "1");
	EXPECT_SAID(0, "[1] older\n[1] b\n", "");
}

Test(logs_follow, the_next_attempts_of_a_job)
{
	STEPS(OUT(0, 0, "a\n"), OUT(0, 0, "b\n"),
		{ .attempt = 1,
			.stream = "stdout",
			.text = "c\nd\n",
			.json = "{\"attempt\":1,\"ranks\":2," START "}" },
		OUT(1, 1, "e\n"), { .ends = true });
	CALL("logs", "-f", "k7m2", "-n", "0");
	EXPECT_SAID(0, "[0] a\n[0] b\n[0] c\n[0] d\n[1] e\n", "");
}

Test(logs_follow, the_next_attempt_is_named_at_a_terminal)
{
	STEPS(OUT(0, 0, "a\n"),
		{ .attempt = 1,
			.stream = "stdout",
			.text = "c\nd\n",
			.json = "{\"attempt\":1,\"ranks\":2," START "}",
			.ends = true });
	tty_errors = true;
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "[0] a\n[0] c\n[0] d\n", "xrun: k7m2: attempt 1\n");
}

Test(logs_follow, one_attempt_alone)
{
	STEPS(OUT(0, 0, "a\n"), OUT(1, 0, "b\n"), { .ends = true });
	CALL("logs", "-f", "k7m2", "--attempt", "0");
	EXPECT_SAID(0, "[0] a\n", "");
}

Test(logs_follow, one_that_has_told_nothing_yet_is_waited_for)
{
	cr_assert_eq(unlink(job_path("k7m2", "job.json")), 0);
	STEPS({ 0 }, OUT(0, 0, "a\n"),
		{ .json = "{\"attempt\":0,\"ranks\":2," START "}" },
		OUT(0, 1, "b\n"), { .ends = true });
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "[0] a\n[1] b\n", "");
}

Test(logs_follow, who_reads_no_more_ends_it)
{
	STEPS(OUT(0, 0, "a\n"), { .closed = true });
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(141, "[0] a\n", "");
	cr_assert_eq(unlink(job_path("k7m2", "job.json")), 0);
	STEPS({ .closed = true });
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(141, "", "");
	blind = true;
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(125, "", "xrun: logs: inotify: Too many open files\n");
}

Test(logs_follow, bytes_that_are_removed_before_they_are_read)
{
	STEPS(OUT(0, 0, "a\n"),
		{ .stream = "stdout",
			.text = "bc\n",
			.cut = "000000000000000" },
		{ .stream = "stdout", .text = "d\n", .cut = "000000000000002" },
		{ .ends = true });
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "[0] a\n[0] bc\n[0] d\n", "");
}

Test(logs_follow, some_of_them_are_counted)
{
	STEPS(OUT(0, 0, "a\n"),
		{ .stream = "stdout", .text = "d\n", .cut = "000000000000017" },
		OUT(0, 0, "e\n"), { .ends = true });
	CALL("logs", "-f", "k7m2");
	/* The file that was read to its end begins at 17 now, in place of 0. */
	EXPECT_SAID(0, "[0] a\n[0] a\n[0] d\n[0] e\n",
		"xrun: 15 bytes were rotated away\n");
}

Test(logs_follow, waits_are_as_long_as_lines_may_wait)
{
	STEPS(OUT(0, 0, "a\n"), { 0 }, { .ends = true });
	say_waits = true;
	CALL("logs", "-f", "k7m2");
	EXPECT_SAID(0, "[0] a\n", "- - - ");
}

Test(logs_follow, progress_is_a_row_now_and_then)
{
	STEPS(OUT(0, 0, "10%\r"), OUT(0, 0, "20%\r"), { 0 }, OUT(0, 0, "30%\r"),
		OUT(0, 0, "done\n"), { .ends = true });
	say_waits = true;
	CALL("logs", "-f", "k7m2");
	/* A row may be there before, if this takes a second. */
	cr_expect_eq(said.status, 0);
	cr_expect_str_eq(said.out + strlen(said.out) - 9, "[0] done\n");
	cr_expect_eq(strncmp(said.err, "- due ", 6), 0, "%s", said.err);
	cr_expect_str_eq(said.err + strlen(said.err) - 3, " - ");
}

/* After a stop the reader draws the row at the cursor. It does not return to the row before
 * the stop. */
Test(logs_follow, ctrl_z_stops_between_two_turns)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct step stop = OUT(0, 0, "\r20%"), again = OUT(0, 0, "\rb\n");

	stop.stops = again.stops = true;
	sigaction(SIGTSTP, &ignore, NULL); /* one that is not blocked */
	tty_out = true;
	STEPS(OUT(0, 0, "a\n\r10%"), stop, { .waits = true }, again,
		{ .ends = true });
	setenv("TERM", "xterm", 1);
	CALL("logs", "-f", "--color", "never", "k7m2");
	EXPECT_SAID(0,
		"[0] a\n\033[?7l[0] 10%\033[?7h\033[J<TSTP>\n"
		"\033[?7l[0] 20%\033[?7h\033[J<TSTP>\n[0] b\n",
		"");
}
