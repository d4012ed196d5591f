/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pty.c - runs a command on a terminal of its own and types at it.
 *
 *   pty [-c COLSxROWS] [-T TERM] [-d SECONDS] [-o FILE] [-m] [STEP]... COMMAND
 *
 * The command leads a session whose terminal the pty is. What it writes goes
 * to stdout (and FILE), what stands on stdin is typed; the end of stdin types
 * nothing. Steps are taken in order, each when the one before is done:
 *
 *   -w TEXT        wait until TEXT was written, after the last TEXT waited for
 *   -s BYTES       type BYTES; \n \r \t \e \\ and \003 (octal) are understood
 *   -r COLSxROWS   give the terminal another size (SIGWINCH)
 *   -S SIG         send signal number SIG to the command's process alone
 *   -h             hang up: close the terminal
 *
 * Ends with the command's status, 128+n for signal n; 124 when SECONDS (60)
 * passed, with a line that says which step was waited for; 97 when the command
 * ended before the last step; 98 with -m when it left the terminal's modes
 * changed; 2 for a wrong command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utmp.h>

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#define STEPS_MAX 32

/* How long the last bytes may take when someone else holds the terminal. */
#define LINGER_MS 200

struct step {
	char kind; /* the letter of the option */
	char *arg;
};

struct pty {
	struct winsize size;
	const char *term;
	double seconds;
	const char *record; /* file name, or NULL */
	bool modes;         /* -m */
	struct step steps[STEPS_MAX];
	unsigned int count, next;
	char **argv;

	pid_t pid;
	int pidfd, master, file;
	bool typing; /* stdin may still give bytes */
	bool ended;  /* nobody but us holds the terminal */
	struct termios before;
	struct buf seen; /* written since the last match */
	int64_t deadline;
};

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("pty: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

static struct winsize
parse_size(const char *text)
{
	struct winsize size = { 0 };
	unsigned short cols = 0, rows = 0;

	if (sscanf(text, "%hux%hu", &cols, &rows) != 2)
		die(2, "'%s' is not COLSxROWS", text);
	size.ws_col = cols;
	size.ws_row = rows;
	return size;
}

/* In place; the result has no longer more bytes than the text. */
static size_t
unescape(char *text)
{
	static const char from[] = "nrte\\", to[] = "\n\r\t\033\\";
	char *in = text, *out = text;

	while (*in != '\0') {
		const char *simple = NULL;

		if (*in != '\\' || in[1] == '\0') {
			*out++ = *in++;
			continue;
		}
		simple = strchr(from, in[1]);
		if (simple != NULL) {
			*out++ = to[simple - from];
			in += 2;
		} else {
			char digits[4] = { 0 };

			memcpy(digits, in + 1, strnlen(in + 1, 3));
			*out++ = (char)strtoul(digits, NULL, 8);
			in += 1 + strlen(digits);
		}
	}
	return (size_t)(out - text);
}

static void
add_step(struct pty *p, char kind, char *arg)
{
	if (p->count == STEPS_MAX)
		die(2, "more than %d steps", STEPS_MAX);
	p->steps[p->count++] = (struct step){ .kind = kind, .arg = arg };
}

static void
parse(struct pty *p, int argc, char **argv)
{
	int c = 0;

	while ((c = getopt(argc, argv, "+c:T:d:o:mw:s:r:S:h")) != -1) {
		switch (c) {
		case 'c':
			p->size = parse_size(optarg);
			break;
		case 'T':
			p->term = optarg;
			break;
		case 'd':
			p->seconds = strtod(optarg, NULL);
			break;
		case 'o':
			p->record = optarg;
			break;
		case 'm':
			p->modes = true;
			break;
		case '?':
			exit(2);
		default:
			add_step(p, (char)c, optarg);
		}
	}
	p->argv = argv + optind;
	if (*p->argv == NULL)
		die(2, "no command given");
}

/* The slave stays open here only until the child has it. */
static void
start(struct pty *p)
{
	int slave = -1;

	if (openpty(&p->master, &slave, NULL, NULL, &p->size) == -1)
		die(2, "openpty: %s", strerror(errno));
	fcntl(p->master, F_SETFD, FD_CLOEXEC);
	memset(&p->before, 0, sizeof(p->before));
	tcgetattr(slave, &p->before);
	setenv("TERM", p->term, 1);
	p->pid = fork();
	if (p->pid == -1)
		die(2, "fork: %s", strerror(errno));
	if (p->pid == 0) {
		login_tty(slave);
		/* nohup(1) ignores it. */
		sigaction(SIGHUP, &(struct sigaction){ .sa_handler = SIG_DFL },
			NULL);
		execvp(p->argv[0], p->argv);
		fprintf(stderr, "pty: %s: %s\n", p->argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(slave);
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd == -1)
		die(2, "pidfd_open: %s", strerror(errno));
}

static void
type(struct pty *p, const char *bytes, size_t len)
{
	if (p->master != -1 && fd_write_all(p->master, bytes, len) != 0)
		die(2, "typing: %s", strerror(errno));
}

static void
hang_up(struct pty *p)
{
	fd_close(p->master);
	p->master = -1;
}

/* A wait is over when its text stands in what was seen; the rest stays. */
static bool
found(struct pty *p, const char *text)
{
	size_t len = strlen(text);
	char *at = p->seen.data == NULL ?
		NULL :
		memmem(p->seen.data, p->seen.len, text, len);

	if (at == NULL)
		return false;
	p->seen.len -= (size_t)(at + len - p->seen.data);
	memmove(p->seen.data, at + len, p->seen.len);
	return true;
}

static void
take_steps(struct pty *p)
{
	for (; p->next < p->count; p->next++) {
		struct step *step = &p->steps[p->next];
		struct winsize size;

		switch (step->kind) {
		case 'w':
			if (!found(p, step->arg))
				return;
			break;
		case 's':
			type(p, step->arg, unescape(step->arg));
			break;
		case 'r':
			size = parse_size(step->arg);
			ioctl(p->master, TIOCSWINSZ, &size);
			break;
		case 'S':
			kill(p->pid, (int)strtol(step->arg, NULL, 10));
			break;
		case 'h':
			hang_up(p);
			break;
		}
	}
}

static void
copy_output(struct pty *p)
{
	char bytes[65536];
	ssize_t n = read(p->master, bytes, sizeof(bytes));

	if (n == -1 && errno == EINTR)
		return;
	if (n <= 0) {
		p->ended = true;
		return;
	}
	if (fd_write_all(STDOUT_FILENO, bytes, (size_t)n) != 0)
		die(2, "stdout: %s", strerror(errno));
	if (p->file != -1 && fd_write_all(p->file, bytes, (size_t)n) != 0)
		die(2, "%s: %s", p->record, strerror(errno));
	buf_put(&p->seen, bytes, (size_t)n);
}

static void
copy_typing(struct pty *p)
{
	char bytes[4096];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n > 0)
		type(p, bytes, (size_t)n);
	else if (n == 0 || errno != EINTR)
		p->typing = false;
}

static void __attribute__((noreturn))
late(struct pty *p)
{
	kill(-p->pid, SIGKILL);
	kill(p->pid, SIGKILL);
	if (p->next < p->count)
		die(124, "%g s passed while '%s' was waited for", p->seconds,
			p->steps[p->next].arg);
	die(124, "%g s passed and the command still runs", p->seconds);
}

/* Until the command ends: its output, our typing, the steps. */
static void
serve(struct pty *p)
{
	for (;;) {
		int64_t left = p->deadline - clock_now();
		struct pollfd fds[3];

		take_steps(p);
		if (left <= 0)
			late(p);
		fds[0] = (struct pollfd){ .fd = p->pidfd, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = p->ended ? -1 : p->master,
			.events = POLLIN };
		fds[2] = (struct pollfd){ .fd = p->typing ? STDIN_FILENO : -1,
			.events = POLLIN };
		poll(fds, 3, (int)(left / NS_PER_MS) + 1);
		if (fds[1].revents != 0)
			copy_output(p);
		if (fds[2].revents != 0)
			copy_typing(p);
		if (fds[0].revents != 0)
			return;
	}
}

/* What the command wrote before its end arrives in a moment, or the terminal
 * says that nobody holds it any more. */
static void
drain(struct pty *p)
{
	struct pollfd fd = { .fd = p->master, .events = POLLIN };

	while (!p->ended && poll(&fd, 1, LINGER_MS) > 0)
		copy_output(p);
	take_steps(p);
}

static bool
modes_kept(struct pty *p)
{
	struct termios after;

	/* Its padding is compared, too. */
	memset(&after, 0, sizeof(after));
	/* The master answers for the slave, also when nobody holds that. */
	if (p->master == -1 || tcgetattr(p->master, &after) == -1)
		return true;
	return memcmp(&after, &p->before, sizeof(after)) == 0;
}

int
main(int argc, char **argv)
{
	struct pty p = { .term = "xterm",
		.seconds = 60,
		.size = { .ws_col = 80, .ws_row = 24 },
		.file = -1,
		.typing = true };
	int status = 0;

	parse(&p, argc, argv);
	p.deadline = clock_now() + (int64_t)(p.seconds * 1e9);
	if (p.record != NULL) {
		p.file = open(p.record,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (p.file == -1)
			die(2, "open %s: %s", p.record, strerror(errno));
	}
	start(&p);
	serve(&p);
	drain(&p);
	waitpid(p.pid, &status, 0);
	if (p.next < p.count)
		die(97, "the command ended before '%s' came",
			p.steps[p.next].arg);
	if (p.modes && !modes_kept(&p))
		die(98, "the command left the modes of the terminal changed");
	buf_fini(&p.seen);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}
