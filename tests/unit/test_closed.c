/* SPDX-License-Identifier: Apache-2.0 */
/* test_closed.c - what is done when the reader of stdout exits, or it cannot be written. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "launcher/sup/sup.h"
#include "tests/unit/forked.h"
#include "tests/unit/noted.h"

static struct sup sup;
static struct job job = { .sup = &sup,
	.state = { .dir_fd = 9, .attempt = (char *)"/a/0" } };
static unsigned sinks = 2;
static watch_fn *reader;
static int watched = -1;
static bool stops_first; /* by a signal that was told before */

unsigned __wrap_logs_sinks(const struct logs *logs);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_signals_read(int fd, void *ctx);
void __wrap_children_turn(struct children *children);
void __wrap_stop_job(struct job *j, enum cause cause);
void __wrap_stop_fail(struct job *j, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct watch *__wrap_watch_open(struct loop *loop, int fd, bool writable,
	watch_fn *fn, void *ctx);
void __wrap_watch_pause(struct watch *watch);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);

unsigned
__wrap_logs_sinks(const struct logs *logs)
{
	(void)logs;
	return sinks;
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	EXPECT(logs == (struct logs *)&job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

void
__wrap_signals_read(int fd, void *ctx)
{
	EXPECT_EQ(fd, 77);
	EXPECT(ctx == &job);
	note("signals ");
	if (stops_first)
		job.ending = ENDING_RUNNING + 1;
}

void
__wrap_children_turn(struct children *children)
{
	EXPECT(children == (struct children *)&job);
	note("children ");
}

void
__wrap_stop_job(struct job *j, enum cause cause)
{
	EXPECT(j == &job && cause == CAUSE_CLOSED);
	note("stop ");
}

void
__wrap_stop_fail(struct job *j, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	EXPECT(j == &job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("fail:%s ", text);
}

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool writable, watch_fn *fn,
	void *ctx)
{
	EXPECT(loop == (struct loop *)&job && !writable && ctx == &job);
	watched = fd;
	reader = fn;
	return (struct watch *)&reader;
}

void
__wrap_watch_pause(struct watch *watch)
{
	EXPECT(watch == (struct watch *)&reader);
	note("pause ");
}

static bool no_epoll;

int
__wrap_epoll_create1(int flags)
{
	errno = EMFILE;
	return no_epoll ? -1 : __real_epoll_create1(flags);
}

static int words;

static void
begin(void)
{
	words = memfd_create("words", MFD_CLOEXEC);
	NEED(words != -1 && dup2(words, STDERR_FILENO) == STDERR_FILENO);
	sup.logs = (struct logs *)&job;
	sup.loop = (struct loop *)&job;
	sup.children = (struct children *)&job;
	sup.signal_fd = 77;
	sup.phase = PHASE_RUN;
	job.ending = ENDING_RUNNING;
	job.opt.on_stdout_close = STDOUT_CLOSE_STOP;
}

static void
closes(int line, uint32_t sink, int sys, const char *does, const char *says)
{
	char got[200];
	ssize_t n;

	done[0] = '\0';
	job.ending = ENDING_RUNNING;
	job.unshown = sup.sink_closed[sink] = false;
	closed_sink(&job, sink, sys);
	n = pread(words, got, sizeof(got) - 1, 0);
	got[n > 0 ? n : 0] = '\0';
	NEED(ftruncate(words, 0) == 0 && lseek(words, 0, SEEK_SET) == 0);
	if (strcmp(done, does) != 0 || strcmp(got, says) != 0)
		forked_note(line, "'%s', not '%s'; says '%s'", done, does, got);
	EXPECT(sup.sink_closed[sink]);
}

#define CLOSES(sink, sys, does, says) closes(__LINE__, sink, sys, does, says)

FORKED_TEST(closed, who_reads_no_more_stops_the_job)
{
	begin();
	CLOSES(0, EPIPE, "children signals children stop ", "");
	EXPECT(!job.unshown);
	CLOSES(1, EPIPE, "", "");
	EXPECT(!job.unshown);
	stops_first = true;
	CLOSES(0, EPIPE, "children signals children ", "");
	stops_first = false;
	sup.phase = PHASE_DELIVER;
	CLOSES(0, EPIPE, "children signals children ", "");
	sup.phase = PHASE_ACCOUNT;
	CLOSES(0, EPIPE, "children ", "");
}

FORKED_TEST(closed, if_it_is_not_to_stop_it_goes_on)
{
	begin();
	job.opt.on_stdout_close = STDOUT_CLOSE_STOP + 1;
	CLOSES(0, EPIPE,
		"children [xrun: the reader of stdout exited: the job "
		"continues, its output is in /a/0] ",
		"");
	job.state.dir_fd = -1;
	CLOSES(0, EPIPE,
		"children [xrun: the reader of stdout exited: the job "
		"continues, its output is dropped] ",
		"");
	job.opt.on_stdout_close = STDOUT_CLOSE_STOP;
	job.detach = (struct detach *)&job;
	CLOSES(0, EPIPE,
		"children [xrun: the reader of stdout exited: the job "
		"continues, its output is dropped] ",
		"");
	sup.phase = PHASE_DELIVER; /* it is over */
	CLOSES(0, EPIPE, "children ", "");
	sinks = 1; /* nobody hears it */
	sup.phase = PHASE_RUN;
	CLOSES(0, EPIPE, "children ", "");
}

FORKED_TEST(closed, what_cannot_be_written_is_told_of)
{
	begin();
	CLOSES(0, ENOSPC,
		"children [xrun: stdout cannot be written: the job continues, "
		"its output is in /a/0 (No space left on device)] ",
		"");
	EXPECT(job.unshown);
	CLOSES(1, ENOSPC, "",
		"xrun: stderr cannot be written (No space left on device)\n");
	EXPECT(job.unshown);
	sup.phase = PHASE_DELIVER;
	CLOSES(0, EIO,
		"children [xrun: stdout cannot be written: its output is in "
		"/a/0 (Input/output error)] ",
		"");
	EXPECT(job.unshown);
	sup.phase = PHASE_RUN;
	sinks = 1;
	CLOSES(0, ENOSPC, "children ",
		"xrun: stderr cannot be written (No space left on device)\n");
	sinks = 2;
	/* Without files all of it would be lost. */
	job.state.dir_fd = -1;
	CLOSES(0, ENOSPC,
		"children fail:stdout cannot be written (No space left on "
		"device) ",
		"");
	EXPECT(job.unshown);
}

/* A terminal that hung up. */
FORKED_TEST(closed, a_terminal_that_is_gone_stops_a_job_without_files)
{
	begin();
	job.on_tty = true;
	CLOSES(0, EIO,
		"children [xrun: the reader of stdout exited: the job "
		"continues, its output is in /a/0] ",
		"");
	EXPECT(!job.unshown);
	CLOSES(1, EIO, "", "");
	job.state.dir_fd = -1;
	CLOSES(0, EIO, "children signals children stop ", "");
	CLOSES(0, ENOSPC,
		"children fail:stdout cannot be written (No space left on "
		"device) ",
		"");
}

/* True if stdout, which @fd is now, is watched. */
static bool
is_watched(int fd)
{
	NEED(dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	watched = -1;
	sup.reader = NULL;
	EXPECT(closed_watch(&job));
	EXPECT_EQ(watched != -1, sup.reader != NULL);
	return watched != -1;
}

FORKED_TEST(closed, the_reader_of_a_pipe_is_watched)
{
	int fd[2], pair[2], both;
	struct epoll_event event;

	begin();
	NEED(pipe2(fd, O_CLOEXEC) == 0);
	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	EXPECT(is_watched(pair[1]));
	EXPECT_EQ(fcntl(watched, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(epoll_wait(watched, &event, 1, 0), 0);
	NEED(shutdown(pair[0], SHUT_WR) == 0);
	EXPECT_EQ(epoll_wait(watched, &event, 1, 0), 0);
	EXPECT(is_watched(fd[1]));
	EXPECT_EQ(epoll_wait(watched, &event, 1, 0), 0);
	close(fd[0]);
	EXPECT_EQ(epoll_wait(watched, &event, 1, 0), 1);
	done[0] = '\0';
	reader(watched, &job);
	EXPECT_STR(done, "pause signals children stop ");
	EXPECT(!is_watched(words)); /* a file */
	NEED(pipe2(fd, O_CLOEXEC) == 0);
	EXPECT(!is_watched(fd[0])); /* it cannot be written */
	snprintf(done, sizeof(done), "/proc/self/fd/%d", fd[0]);
	both = open(done, O_RDWR | O_CLOEXEC);
	EXPECT(!is_watched(both)); /* a reader of its own */
	job.opt.on_stdout_close = STDOUT_CLOSE_STOP + 1;
	EXPECT(!is_watched(fd[1]));
	job.opt.on_stdout_close = STDOUT_CLOSE_STOP;
	job.detach = (struct detach *)&job;
	EXPECT(!is_watched(fd[1]));
	job.detach = NULL;
	EXPECT(is_watched(fd[1]));
	no_epoll = true;
	EXPECT(!closed_watch(&job));
	close(STDOUT_FILENO);
	no_epoll = false;
	EXPECT(closed_watch(&job)); /* there is none */
}
