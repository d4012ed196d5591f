/* SPDX-License-Identifier: Apache-2.0 */
/* test_attach_keys.c - our terminal as a window to a rank's: keys, output, signals, size. */
#include <pty.h>
#include <stdarg.h>
#include <stdint.h>
#include <termios.h>

#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/status.h"
#include "launcher/cmd/attach_keys.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/lookout.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"

#define BODY_S 20 /* ends what hangs */

enum { KEYS, SIGNAL, ROOM }; /* of lookout.also */

bool __wrap_lookout_open(struct lookout *w);
void __wrap_lookout_close(struct lookout *w);
int __wrap_lookout_folder(struct lookout *w, const char *path);
void __wrap_lookout_lock(struct lookout *w, const char *path);
enum lookout_news __wrap_lookout_wait(struct lookout *w, bool patient,
	lookout_fn *fn, void *ctx);
enum xr_status __wrap_dial_open(struct ctl_call *call, struct which *job,
	struct xr_error *err);
enum xr_status __wrap_ctl_ask_along(struct ctl_call *call,
	const struct control *question, int fd, struct control *answer,
	struct xr_error *err);
enum xr_status __wrap_ctl_ask(struct ctl_call *call,
	const struct control *question, struct control *answer,
	struct xr_error *err);
void __wrap_ctl_hang_up(struct ctl_call *call);
bool __wrap_attempt_is_over(const struct attempt *a);

static struct attempt attempt;
static struct attach_keys k;
static int tty;       /* the other side of our terminal */
static int peer = -1; /* the job's end of the socket */
static bool over, no_lookout;
static enum xr_status dial_status_, ask_status;
static char done[32768];

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	size_t len = strlen(done);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(done + len, sizeof(done) - len, fmt, ap);
	va_end(ap);
}

#define EXPECT_DONE(text) \
	do { \
		EXPECT_STR(done, (text)); \
		done[0] = '\0'; \
	} while (0)

/* --- what happens ------------------------------------------------------------- */

/* At the next wait. */
struct step {
	const char *typed;   /* at our terminal */
	const char *written; /* by the rank */
	int signal;
	short room; /* what poll(2) tells of the socket */
	bool over;  /* nobody has the lock */
	bool ends;  /* the attempt is over */
	bool full;  /* the job reads no keys; else all are read before */
};

static const struct step *steps;
static unsigned step;
static char keys[1 << 20]; /* that the job has read */

static void
read_keys(void)
{
	char text[4096];
	ssize_t n;

	while (peer != -1 &&
		(n = recv(peer, text, sizeof(text), MSG_DONTWAIT)) > 0)
		strncat(keys, text, (size_t)n);
}

static void
rank_writes(const char *text)
{
	FILE *f = fopen("job/0/rank-0003/stdout", "a");

	NEED(f != NULL);
	fputs(text, f);
	fclose(f);
}

enum lookout_news
__wrap_lookout_wait(struct lookout *w, bool patient, lookout_fn *fn, void *ctx)
{
	const struct step *s = &steps[step];
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };

	for (int i = 0; i < LOOKOUT_ALSO; i++)
		w->also[i].revents = 0;
	if (!patient)
		return LOOKOUT_CHANGED;
	step++;
	fn(ctx, 0, "");
	note("wait%s%s%s; ", w->also[KEYS].fd == -1 ? " no keys" : "",
		w->also_ms == -1 ? "" : " 500 ms",
		(w->also[ROOM].events & POLLOUT) != 0 ? " room" : "");
	EXPECT(w->also_ms == -1 || w->also_ms == 500);
	EXPECT_EQ(w->also[SIGNAL].fd, k.signals);
	EXPECT_EQ(w->also[ROOM].fd, k.typed);
	if (!s->full)
		read_keys();
	if (s->typed != NULL) {
		NEED(write(tty, s->typed, strlen(s->typed)) > 0);
		poll(&in, 1, -1);
		w->also[KEYS].revents = POLLIN;
	}
	if (s->written != NULL)
		rank_writes(s->written);
	if (s->signal != 0) {
		raise(s->signal);
		w->also[SIGNAL].revents = POLLIN;
	}
	w->also[ROOM].revents = s->room;
	over = s->ends;
	return s->over ? LOOKOUT_OVER : LOOKOUT_CHANGED;
}

bool
__wrap_lookout_open(struct lookout *w)
{
	for (int i = 0; i < LOOKOUT_ALSO; i++)
		w->also[i].fd = -1;
	errno = EMFILE;
	return !no_lookout;
}

void
__wrap_lookout_close(struct lookout *w)
{
	(void)w;
	note("closed");
}

int
__wrap_lookout_folder(struct lookout *w, const char *path)
{
	static unsigned met;

	(void)w;
	/* Those of the beginning. */
	if (met++ < 3)
		note("%s; ", path);
	return 0;
}

void
__wrap_lookout_lock(struct lookout *w, const char *path)
{
	(void)w;
	note("lock %s; ", path);
}

enum xr_status
__wrap_dial_open(struct ctl_call *call, struct which *job, struct xr_error *err)
{
	EXPECT_STR(job->id, "k7m2");
	if (dial_status_ != XR_OK)
		return fail(err, dial_status_, "no socket");
	call->fd = 99;
	return XR_OK;
}

enum xr_status
__wrap_ctl_ask_along(struct ctl_call *call, const struct control *question,
	int fd, struct control *answer, struct xr_error *err)
{
	(void)answer;
	EXPECT_EQ(call->fd, 99);
	EXPECT_EQ(question->type, CONTROL_ATTACH);
	note("attach %lld %lld %lld; ", (long long)question->attach.rank,
		(long long)question->attach.rows,
		(long long)question->attach.cols);
	if (ask_status != XR_OK)
		return fail(err, ask_status, "no");
	peer = fcntl(fd, F_DUPFD_CLOEXEC, FORKED_FD_MIN);
	return XR_OK;
}

enum xr_status
__wrap_ctl_ask(struct ctl_call *call, const struct control *question,
	struct control *answer, struct xr_error *err)
{
	(void)answer;
	EXPECT_EQ(call->fd, 99);
	EXPECT(err == NULL);
	EXPECT_EQ(question->type, CONTROL_RESIZE);
	note("resize %lld %lld; ", (long long)question->resize.rows,
		(long long)question->resize.cols);
	return XR_OK;
}

void
__wrap_ctl_hang_up(struct ctl_call *call)
{
	note("hang up; ");
	call->fd = -1;
}

bool
__wrap_attempt_is_over(const struct attempt *a)
{
	EXPECT(a == &attempt);
	return over;
}

/* --- our terminal --------------------------------------------------------------- */

static struct termios before;

static void
begin(void)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	sigset_t set;
	int slave;

	alarm(BODY_S);
	NEED(openpty(&tty, &slave, NULL, NULL, &size) == 0);
	tty = fcntl(tty, F_DUPFD_CLOEXEC, FORKED_FD_MIN);
	fcntl(tty, F_SETFL, O_NONBLOCK);
	NEED(dup2(slave, STDIN_FILENO) != -1);
	NEED(dup2(slave, STDOUT_FILENO) != -1);
	NEED(dup2(open("err", O_RDWR | O_CREAT | O_APPEND, 0600),
		     STDERR_FILENO) != -1);
	NEED(tcgetattr(STDIN_FILENO, &before) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGWINCH);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	attempt = ATTEMPT_NONE;
	attempt.job = (struct which){ .id = "k7m2", .dir = "job" };
	attempt.ranks = 4;
	attempt.dir = open("job/0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	k = (struct attach_keys){ .attempt = &attempt,
		.rank = 3,
		.tail = 10,
		.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.typed = -1,
		.call = { .fd = -1 } };
}

/* All that came to our terminal: the kernel may take its time. */
static const char *
shown(void)
{
	static char text[65536];
	struct pollfd room = { tty, POLLIN, 0 };
	size_t len = 0;
	ssize_t n;

	NEED(write(STDOUT_FILENO, "$", 1) == 1);
	do {
		NEED(poll(&room, 1, -1) == 1);
		n = read(tty, text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (len == 0 || text[len - 1] != '$');
	text[len - 1] = '\0';
	return text;
}

static const char *
errors(void)
{
	static char text[4096];
	int fd = open("err", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static bool
is_as_before(void)
{
	struct termios now;

	return tcgetattr(STDIN_FILENO, &now) == 0 &&
		now.c_lflag == before.c_lflag &&
		now.c_iflag == before.c_iflag && now.c_oflag == before.c_oflag;
}

static enum attached
run(const struct step *what)
{
	enum attached how;

	steps = what;
	step = 0;
	over = false;
	NEED(attach_keys_begin(&k, NULL) == XR_OK);
	EXPECT(k.typed != -1);
	how = attach_keys_run(&k);
	EXPECT(is_as_before());
	read_keys();
	return how;
}

static void
make(void)
{
	folder_make();
	cr_assert_eq(mkdir("job", 0700), 0);
	cr_assert_eq(mkdir("job/0", 0700), 0);
	cr_assert_eq(mkdir("job/0/rank-0003", 0700), 0);
	folder_write("job/0/rank-0003/stdout", "one\ntwo\nthree", 0600);
}

TestSuite(attach_keys, .init = make, .fini = folder_remove, .timeout = 60);

#define ASKED "attach 3 24 80; "
#define BEGIN ASKED "job; job/0; job/0/rank-0003; lock job; "
#define SAID  "xrun: k7m2, rank 3; Ctrl-P Ctrl-Q leaves it running\r\n"
#define ALL   "one\ntwo\nthree"

FORKED_TEST(attach_keys, a_keyboard_is_asked_for_with_the_size_of_the_terminal)
{
	struct winsize none = { 0 };
	struct xr_error err = { 0 };
	int low = dup(0);

	begin();
	close(low);
	EXPECT_EQ(attach_keys_begin(&k, &err), XR_OK);
	EXPECT_DONE(ASKED);
	EXPECT_EQ(k.call.fd, 99);
	EXPECT_EQ(write(k.typed, "x", 1), 1);
	read_keys();
	EXPECT_STR(keys, "x");
	attach_keys_end(&k);
	EXPECT_EQ(k.typed, -1);
	EXPECT_EQ(k.call.fd, -1);
	EXPECT_EQ(recv(peer, keys, 1, MSG_DONTWAIT), 0);
	EXPECT_DONE("hang up; ");
	ioctl(tty, TIOCSWINSZ, &none);
	low = dup(0);
	close(low);
	ask_status = XR_E_EXISTS;
	EXPECT_EQ(attach_keys_begin(&k, &err), XR_E_EXISTS);
	EXPECT_STR(err.text, "no");
	EXPECT_EQ(k.typed, -1);
	EXPECT_EQ(k.call.fd, -1);
	note("%lld", (long long)CONTROL_NONE);
	EXPECT_DONE(
		"attach 3 -9223372036854775808 -9223372036854775808; hang up; -9223372036854775808");
	dial_status_ = XR_E_STATE;
	EXPECT_EQ(attach_keys_begin(&k, &err), XR_E_STATE);
	EXPECT_DONE("hang up; ");
	/* Nothing stays open. */
	EXPECT_EQ(dup(0), low);
}

FORKED_TEST(attach_keys, the_last_lines_then_what_comes_until_it_is_over)
{
	static const struct step what[] = {
		{ .written = "!\r\n\033[?1049h" },
		{ .over = true },
		{ .written = "bye", .ends = true },
	};

	begin();
	EXPECT_EQ(run(what), ATTACHED_OVER);
	EXPECT_STR(shown(), ALL "!\r\n\033[?1049hbye\033[?1049l\r\n");
	EXPECT_STR(errors(), SAID);
	EXPECT_DONE(BEGIN "wait; wait; lock job; wait; closed");
	EXPECT_EQ(k.sys, 0);
	EXPECT_EQ(k.signal, 0);
	k.tail = 2;
	EXPECT_EQ(run(what + 2), ATTACHED_OVER);
	EXPECT_STR(strstr(shown(), "\033[?1049h"),
		"\033[?1049hbyebye\033[?1049l\r\n");
}

FORKED_TEST(attach_keys, as_many_lines_as_are_wanted)
{
	static const struct step what[] = { { .ends = true } };

	begin();
	k.tail = 1;
	EXPECT_EQ(run(what), ATTACHED_OVER);
	EXPECT_STR(shown(), "three\r\n");
	k.tail = 2;
	EXPECT_EQ(run(what), ATTACHED_OVER);
	EXPECT_STR(shown(), "two\nthree\r\n");
	k.tail = 0;
	EXPECT_EQ(run(what), ATTACHED_OVER);
	EXPECT_STR(shown(), "\r\n");
}

FORKED_TEST(attach_keys, keys_go_to_the_rank_and_two_of_them_leave)
{
	static const struct step what[] = {
		{ .typed = "ls\003" },
		{ .typed = "\020x" },
		{ .typed = "\020" },
		{ .typed = "y" },
		{ .typed = "z\020" },
		{ 0 },
		{ .typed = "a\020" },
		{ .typed = "\021b" },
	};

	begin();
	EXPECT_EQ(run(what), ATTACHED_LEFT);
	EXPECT_STR(keys, "ls\003\020x\020yz\020a");
	EXPECT_DONE(BEGIN
		"wait; wait; wait; wait 500 ms; wait; wait 500 ms; wait; wait 500 ms; closed");
	EXPECT_EQ(k.signal, 0);
	EXPECT_STR(shown(), ALL "\r\n");
}

FORKED_TEST(attach_keys, a_key_that_may_leave_is_kept_while_output_comes)
{
	static const struct step what[] = {
		{ .typed = "\020", .written = "x" },
		{ .typed = "\021" },
	};

	begin();
	EXPECT_EQ(run(what), ATTACHED_LEFT);
	EXPECT_STR(keys, "");
	EXPECT_STR(shown(), ALL "x\r\n");
}

FORKED_TEST(attach_keys, signals_end_it_or_tell_of_a_size)
{
	static const struct step what[] = {
		{ .signal = SIGWINCH },
		{ .signal = SIGTERM },
	};

	begin();
	EXPECT_EQ(run(what), ATTACHED_LEFT);
	EXPECT_EQ(k.signal, SIGTERM);
	EXPECT_DONE(BEGIN "wait; resize 24 80; wait; closed");
	/* A job that was lost is told nothing. */
	k.signal = 0;
	NEED(attach_keys_begin(&k, NULL) == XR_OK);
	attach_keys_end(&k);
	done[0] = '\0';
	step = 0;
	EXPECT_EQ(attach_keys_run(&k), ATTACHED_LEFT);
	EXPECT_DONE("lock job; wait no keys; wait no keys; closed");
}

FORKED_TEST(attach_keys, a_rank_that_has_ended_takes_no_keys)
{
	static const struct step what[] = {
		{ .typed = "a\020" },
		{ .room = POLLHUP, .written = "last" },
		{ .room = 0, .ends = true },
	};

	begin();
	EXPECT_EQ(run(what), ATTACHED_OVER);
	EXPECT_EQ(k.typed, -1);
	EXPECT_DONE(BEGIN "wait; wait 500 ms; hang up; wait no keys; closed");
	/* Our terminal is no window any more. */
	EXPECT_STR(shown(), ALL "last\r\r\n");
	EXPECT_STR(errors(),
		SAID "xrun: rank 3 takes no more keys; Ctrl-C leaves\n");
	EXPECT_STR(keys, "a\020");
	/* The only one has no need of words. */
	attempt.ranks = 1;
	EXPECT_EQ(run(what + 1), ATTACHED_OVER);
	EXPECT_STR(errors(),
		SAID "xrun: rank 3 takes no more keys; Ctrl-C leaves\n" SAID);
}

FORKED_TEST(attach_keys, keys_that_are_not_read_wait_and_too_many_are_dropped)
{
	static char much[1001];
	static const struct step first = { .typed = much, .full = true };
	static struct step what[1000];
	struct step *s = what;
	int n = 0;

	begin();
	memset(much, 'k', sizeof(much) - 1);
	/* More than the socket and xrun hold. */
	for (n = 0; n < 600; n++)
		*s++ = first;
	*s++ = (struct step){ .room = POLLOUT };
	*s++ = (struct step){ .room = POLLOUT };
	*s++ = (struct step){ .typed = "end" };
	*s++ = (struct step){ .signal = SIGTERM };
	EXPECT_EQ(run(what), ATTACHED_LEFT);
	EXPECT(strstr(done, "wait room; wait; wait; wait; closed") != NULL);
	n = (int)strlen(keys);
	EXPECT(n >= 3 && strcmp(keys + n - 3, "end") == 0);
	EXPECT_EQ(strspn(keys, "k"), n - 3);
}

FORKED_TEST(attach_keys, where_the_terminal_is_gone)
{
	static const struct step what[] = { { 0 } };

	begin();
	no_lookout = true;
	EXPECT_EQ(attach_keys_run(&k), ATTACHED_UNWRITTEN);
	EXPECT_EQ(k.sys, EMFILE);
	no_lookout = false;
	NEED(dup2(open("/dev/null", O_RDONLY), STDOUT_FILENO) != -1);
	steps = what;
	EXPECT_EQ(attach_keys_run(&k), ATTACHED_UNWRITTEN);
	EXPECT_EQ(k.sys, EBADF);
	EXPECT(is_as_before());
	NEED(dup2(open("/dev/null", O_RDONLY), STDIN_FILENO) != -1);
	EXPECT_EQ(attach_keys_run(&k), ATTACHED_UNWRITTEN);
	EXPECT_EQ(k.sys, ENOTTY);
}
