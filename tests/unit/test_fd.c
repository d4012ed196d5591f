/* SPDX-License-Identifier: Apache-2.0 */
/* test_fd.c - whole reads and writes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "tests/unit/folder.h"

#define MUCH (1 << 20) /* more than any pipe holds */

TestSuite(fd, .init = folder_make, .fini = folder_remove);

Test(fd, closing_keeps_errno)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	errno = ENOSPC;
	fd_close(fd);
	cr_expect_eq(errno, ENOSPC);
	fd_close(fd); /* EBADF inside */
	cr_expect_eq(errno, ENOSPC);
	fd_close(-1);
	cr_expect_eq(errno, ENOSPC);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

/* It may be anybody's, so its flags stay; and a reader may take his time. */
static void
fill_now(int fd, int reader)
{
	static char data[300 * 1024];
	int flags = fcntl(fd, F_GETFL);
	size_t sent = 0, got = 0;
	ssize_t n = 1;

	while (n > 0 && sent < 64 * sizeof(data)) {
		n = fd_write_now(fd, data, sizeof(data));
		sent += n > 0 ? (size_t)n : 0;
	}
	cr_expect_eq(n, 0);
	cr_expect_gt(sent, 0);
	cr_expect_eq(fcntl(fd, F_GETFL), flags);
	cr_assert_eq(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
	while ((n = read(reader, data, sizeof(data))) > 0)
		got += (size_t)n;
	cr_expect_eq(got, sent);
	cr_expect_gt(fd_write_now(fd, data, 1), 0);
}

Test(fd, what_is_not_of_stdio_stays_where_it_is)
{
	const struct rlimit none = { 3, 3 };
	struct stat was, now;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), own;

	cr_assert_gt(null, 2);
	cr_assert_eq(fstat(null, &was), 0);
	cr_expect_eq(fd_above_stdio(-1), -1);
	cr_expect_eq(fd_above_stdio(null), null);
	for (int fd = 0; fd < 3; fd++) {
		int saved = fcntl(fd, F_DUPFD_CLOEXEC, 20);

		cr_assert_neq(dup2(null, fd), -1);
		own = fd_above_stdio(fd);
		cr_expect_gt(own, 2);
		cr_expect_eq(fcntl(own, F_GETFD), FD_CLOEXEC);
		cr_expect_eq(fstat(own, &now), 0);
		cr_expect_eq(now.st_ino, was.st_ino);
		cr_expect_eq(fcntl(fd, F_GETFD), -1);
		cr_expect_eq(dup2(saved, fd), fd);
		close(saved);
		close(own);
	}
	cr_assert_eq(dup2(null, STDIN_FILENO), STDIN_FILENO);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	errno = 0;
	cr_expect_eq(fd_above_stdio(STDIN_FILENO), -1);
	cr_expect_eq(errno, EINVAL); /* of a number above the limit */
	cr_expect_eq(fcntl(STDIN_FILENO, F_GETFD), -1);
}

Test(fd, what_would_wait_is_not_written_now)
{
	struct termios raw;
	int pair[2];

	cr_assert_eq(pipe2(pair, O_CLOEXEC), 0);
	fill_now(pair[1], pair[0]);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fill_now(pair[1], pair[0]);
	cr_assert_eq(openpty(&pair[0], &pair[1], NULL, NULL, NULL), 0);
	cr_assert_eq(tcgetattr(pair[1], &raw), 0);
	cfmakeraw(&raw);
	cr_assert_eq(tcsetattr(pair[1], TCSANOW, &raw), 0);
	fill_now(pair[1], pair[0]);
}

Test(fd, a_file_takes_all_now_behind_what_it_has)
{
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_expect_eq(fd_write_now(fd, "one ", 4), 4);
	cr_expect_eq(fd_write_now(fd, "two", 3), 3);
	folder_expect("file", "one two");
	fd_close(fd);
	cr_expect_eq(fd_write_now(fd, "three", 5), -1);
	cr_expect_eq(errno, EBADF);
}

/* Places in the table of descriptors, as the kernel counts them. */
static long
table_size(void)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd_read_some(fd, text, sizeof(text) - 1);
	char *at;

	fd_close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "FDSize:");
	return at == NULL ? -1 : strtol(at + strlen("FDSize:"), NULL, 10);
}

Test(fd, room_is_made_at_once_and_nothing_stays_open)
{
	const struct rlimit limit = { .rlim_cur = 900, .rlim_max = 900 };
	int first = open("/dev/null", O_RDONLY | O_CLOEXEC);

	fd_close(first);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	errno = ENOSPC;
	fd_reserve(0);
	fd_reserve(1000); /* beyond the limit: nothing happens */
	cr_expect_eq(errno, ENOSPC);
	cr_expect_lt(table_size(), 900);
	fd_reserve(900);
	cr_expect_geq(table_size(), 900);
	cr_expect_eq(fcntl(899, F_GETFD), -1);
	cr_expect_eq(open("/dev/null", O_RDONLY | O_CLOEXEC), first);
}

Test(fd, a_file_with_two_names_is_not_sole)
{
	int fd = open("one", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	cr_expect_eq(fd_sole(fd), fd);
	cr_assert_eq(link("one", "two"), 0);
	cr_expect_eq(fd_sole(fd), -1);
	cr_expect_eq(errno, EMLINK);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	cr_expect_eq(fd_sole(open(".", O_RDONLY | O_CLOEXEC)), -1);
	errno = ENOSPC;
	cr_expect_eq(fd_sole(-1), -1);
	cr_expect_eq(errno, ENOSPC);
}

static volatile sig_atomic_t alarms;

static void
on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* Every millisecond a signal breaks what blocks. */
static void
interrupt_always(void)
{
	const struct sigaction sa = { .sa_handler = on_alarm };
	const struct itimerval every = { .it_interval.tv_usec = 1000,
		.it_value.tv_usec = 1000 };

	cr_assert_eq(sigaction(SIGALRM, &sa, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void
interrupt_no_more(void)
{
	const struct itimerval never = { 0 };

	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static char sent[MUCH], got[MUCH];

static void
fill(void)
{
	for (int i = 0; i < MUCH; i++)
		sent[i] = (char)(i * 7 + i / 251);
}

/* The other end: takes a little at a time, and only after some signals. */
static void *
read_slowly(void *arg)
{
	int fd = *(int *)arg;
	sig_atomic_t seen;
	size_t at = 0;
	ssize_t n;

	do {
		seen = alarms;
		while (at < MUCH / 8 && alarms < seen + 3)
			sched_yield();
		n = read(fd, got + at, MUCH / 16);
		at += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return (void *)at;
}

static void
block_alarms(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	cr_assert_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

static void
unblock_alarms(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	cr_assert_eq(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

Test(fd, every_byte_is_written_through_signals_and_short_writes)
{
	pthread_t reader;
	void *count;
	int p[2];

	fill();
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	block_alarms(); /* only this thread hears them */
	cr_assert_eq(pthread_create(&reader, NULL, read_slowly, &p[0]), 0);
	unblock_alarms();
	interrupt_always();
	cr_expect_eq(fd_write_all(p[1], sent, MUCH), 0);
	interrupt_no_more();
	close(p[1]);
	cr_assert_eq(pthread_join(reader, &count), 0);
	cr_expect_eq((size_t)count, MUCH);
	cr_expect_eq(memcmp(sent, got, MUCH), 0);
	cr_expect_gt(alarms, 0);
}

static void *
write_slowly(void *arg)
{
	int fd = *(int *)arg;
	sig_atomic_t seen;

	for (int at = 0; at < MUCH; at += MUCH / 16) {
		seen = alarms;
		while (at < MUCH / 8 && alarms < seen + 3)
			sched_yield();
		if (fd_write_all(fd, sent + at, MUCH / 16) == -1)
			break;
	}
	close(fd);
	return NULL;
}

Test(fd, everything_is_read_through_signals_and_short_reads)
{
	pthread_t writer;
	int p[2];

	fill();
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	block_alarms();
	cr_assert_eq(pthread_create(&writer, NULL, write_slowly, &p[1]), 0);
	unblock_alarms();
	interrupt_always();
	cr_expect_eq(fd_read_some(p[0], got, MUCH), MUCH);
	interrupt_no_more();
	cr_assert_eq(pthread_join(writer, NULL), 0);
	cr_expect_eq(memcmp(sent, got, MUCH), 0);
	cr_expect_eq(fd_read_some(p[0], got, 1), 0, "the end stays the end");
	cr_expect_gt(alarms, 0);
}

Test(fd, reading_stops_at_what_there_is_room_for)
{
	char two[2] = "";
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(write(p[1], "abc", 3), 3);
	cr_expect_eq(fd_read_some(p[0], two, 0), 0);
	cr_expect_eq(fd_read_some(p[0], two, 2), 2);
	cr_expect_eq(memcmp(two, "ab", 2), 0);
	close(p[1]);
	cr_expect_eq(fd_read_some(p[0], two, 2), 1);
	cr_expect_eq(two[0], 'c');
}

Test(fd, failures_have_their_errno)
{
	int p[2], full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	char c;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	close(p[0]);
	cr_assert_neq(sigaction(SIGPIPE,
			      &(struct sigaction){ .sa_handler = SIG_IGN },
			      NULL),
		-1);
	errno = 0;
	cr_expect_eq(fd_write_all(p[1], "x", 1), -1);
	cr_expect_eq(errno, EPIPE);
	errno = 0;
	cr_expect_eq(fd_read_some(-1, &c, 1), -1);
	cr_expect_eq(errno, EBADF);
	errno = 0;
	cr_expect_eq(fd_write_all(full, "x", 1), -1);
	cr_expect_eq(errno, ENOSPC);
	cr_expect_eq(fd_write_all(full, "x", 0), 0, "nothing needs no room");
}

static struct xr_error err;

static enum xr_status
read_file(const char *path, size_t max, char **text, size_t *len)
{
	*text = NULL;
	*len = 99;
	err = (struct xr_error){ 0 };
	return fd_read_file(path, max, text, len, &err);
}

static void
expect_text(const char *path, size_t max, const char *want)
{
	char *text;
	size_t len;

	cr_assert_eq(read_file(path, max, &text, &len), XR_OK, "%s", err.text);
	cr_expect_eq(len, strlen(want));
	cr_expect_str_eq(text, want);
	free(text);
}

static void
expect_no_text(const char *path, size_t max, enum xr_status status,
	const char *words)
{
	char *text;
	size_t len;

	cr_expect_eq(read_file(path, max, &text, &len), status, "%s", path);
	cr_expect_str_eq(err.text, words);
	cr_expect_null(text, "outputs are written only on success");
	cr_expect_eq(len, 99);
	cr_expect_eq(fd_read_file(path, max, &text, &len, NULL), status);
}

Test(fd, a_file_is_read_whole_and_terminated)
{
	folder_write("a", "hello\n", 0600);
	folder_write("empty", "", 0600);
	expect_text("a", 1000, "hello\n");
	expect_text("a", 6, "hello\n");
	expect_text("empty", 0, "");
}

Test(fd, a_file_that_is_too_large_is_refused)
{
	folder_write("a", "hello\n", 0600);
	expect_no_text("a", 5, XR_E_RANGE, "a: larger than 5 bytes");
	cr_assert_eq(truncate("a", 1LL << 40), 0);
	expect_no_text("a", 1 << 20, XR_E_RANGE,
		"a: larger than 1048576 bytes");
}

/* Nobody has its other end open: opening it could wait for ever. */
Test(fd, what_is_no_regular_file_is_refused_without_waiting)
{
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	expect_no_text("fifo", 10, XR_E_INVAL, "fifo: not a regular file");
	expect_no_text(".", 10, XR_E_INVAL, ".: not a regular file");
	expect_no_text("/dev/null", 10, XR_E_INVAL,
		"/dev/null: not a regular file");
	expect_no_text("gone", 10, XR_E_SYS, "gone: No such file or directory");
	cr_expect_eq(read_file("gone", 1, &(char *){ NULL }, &(size_t){ 0 }),
		XR_E_SYS);
	cr_expect_eq(err.sys, ENOENT);
}

Test(fd, reading_files_leaves_no_descriptor)
{
	int before = folder_entries("/proc/self/fd");

	folder_write("a", "hello\n", 0600);
	for (int i = 0; i < 5; i++) {
		expect_text("a", 6, "hello\n");
		expect_no_text("a", 5, XR_E_RANGE, "a: larger than 5 bytes");
		expect_no_text(".", 10, XR_E_INVAL, ".: not a regular file");
		expect_no_text("gone", 10, XR_E_SYS,
			"gone: No such file or directory");
	}
	cr_expect_eq(folder_entries("/proc/self/fd"), before);
}

Test(fd, the_beginning_of_a_small_file_is_text_and_none_is_empty)
{
	char text[8];

	folder_write("small", "abc", 0600);
	cr_expect_eq(fd_read_small("small", text, sizeof(text)), 3);
	cr_expect_str_eq(text, "abc");
	for (size_t cap = 1; cap < 4; cap++) {
		cr_expect_eq(fd_read_small("small", text, cap), cap - 1);
		cr_expect_eq(strlen(text), cap - 1);
	}
	cr_expect_eq(fd_read_small("/proc/self/comm", text, sizeof(text)), 7);
	memset(text, 'x', sizeof(text));
	cr_expect_eq(fd_read_small("none", text, sizeof(text)), 0);
	cr_expect_str_eq(text, "");
	memset(text, 'x', sizeof(text));
	cr_expect_eq(fd_read_small("/", text, sizeof(text)), 0);
	cr_expect_str_eq(text, "");
}

/* Once fd_tell() has slept so often, the other end of the pipe makes room. */
static int naps_until_room, crowded = -1;

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

int
__wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	static char data[4096];

	if (n > 0 || crowded == -1)
		return __real_poll(fds, n, ms);
	if (--naps_until_room == 0)
		cr_assert_eq(read(crowded, data, sizeof(data)), sizeof(data));
	return 0;
}

Test(fd, a_word_is_told_again_until_there_is_room_for_it)
{
	char data[4096] = "";
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(fd[1], data, sizeof(data)) > 0)
		continue;
	crowded = fd[0];
	naps_until_room = 20;
	errno = EBADF;
	fd_tell(fd[1], "word", 4);
	cr_expect_eq(errno, EBADF);
	cr_expect_eq(naps_until_room, 0);
	while (read(fd[0], data, sizeof(data)) == sizeof(data))
		continue;
	cr_expect_eq(strncmp(data, "word", 4), 0);
}

Test(fd, nobody_is_told_where_nobody_is)
{
	int fd[2];

	cr_assert_eq(sigaction(SIGPIPE,
			     &(struct sigaction){ .sa_handler = SIG_IGN },
			     NULL),
		0);
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	close(fd[0]);
	fd_tell(fd[1], "word", 4);
	fd_tell(-1, "word", 4);
}

Test(fd, a_pipe_has_a_writer_until_all_have_closed_it)
{
	int fd[2], other;

	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	other = dup(fd[1]);
	close(fd[1]);
	cr_expect(fd_has_writer(fd[0]));
	cr_assert_eq(fd_write_all(other, "text", 4), 0);
	cr_expect(fd_has_writer(fd[0]));
	close(other);
	cr_expect_not(fd_has_writer(fd[0]), "bytes are left");
	close(fd[0]);
}

Test(fd, a_terminal_has_a_writer_until_all_have_closed_it)
{
	int master, slave;

	cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	cr_assert_eq(fd_write_all(slave, "text", 4), 0);
	cr_expect(fd_has_writer(master));
	close(slave);
	cr_expect_not(fd_has_writer(master), "bytes are left");
	close(master);
}

Test(fd, all_but_some_are_closed)
{
	int fd[6], keep[] = { -1, 0, 0 };

	for (int i = 0; i < 6; i++)
		fd[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 500 + 10 * i);
	keep[1] = fd[4];
	keep[2] = fd[2];
	fd_close_but(505, keep, 3);
	for (int i = 0; i < 6; i++)
		cr_expect_eq(fcntl(fd[i], F_GETFD) != -1,
			i == 0 || i == 2 || i == 4, "descriptor %d", fd[i]);
}
