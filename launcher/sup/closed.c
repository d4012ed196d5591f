/* SPDX-License-Identifier: Apache-2.0 */
/* closed.c - the reader of stdout or stderr exits, or they cannot be written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/sup/sup.h"

/* Only of a job that nothing else has begun to stop. */
static void
closed_say(struct job *job, bool gone, int sys)
{
	bool runs =
		job->sup->phase == PHASE_RUN && job->ending == ENDING_RUNNING;

	if (!gone)
		logs_say(job->sup->logs,
			"xrun: stdout cannot be written: %sits output is in %s (%s)",
			runs ? "the job continues, " : "", job->state.attempt,
			strerror(sys));
	else if (runs && job->state.dir_fd == -1)
		logs_say(job->sup->logs,
			"xrun: the reader of stdout exited: the job continues, its output is dropped");
	else if (runs)
		logs_say(job->sup->logs,
			"xrun: the reader of stdout exited: the job continues, its output is in %s",
			job->state.attempt);
}

/* Ctrl-C ends the reader of a pipe, too. Signals and deaths that came before
 * the reader exited decide first. */
static void
closed_stop(struct job *job)
{
	signals_read(job->sup->signal_fd, job);
	children_turn(job->sup->children);
	if (job->sup->phase == PHASE_RUN && job->ending == ENDING_RUNNING)
		stop_job(job, CAUSE_CLOSED);
}

/* Without files, a terminal that hung up stops the job as well. With files,
 * SIGHUP decides. */
static bool
closed_stops(const struct job *job, int sys)
{
	return job->detach == NULL &&
		job->opt.on_stdout_close == STDOUT_CLOSE_STOP &&
		(fd_reader_gone(sys) || job->state.dir_fd == -1);
}

void
closed_sink(struct job *job, uint32_t sink, int sys)
{
	struct sup *sup = job->sup;
	bool last = sink + 1 == logs_sinks(sup->logs);
	bool gone = fd_reader_gone(sys) || (sys == EIO && job->on_tty);

	sup->sink_closed[sink] = true;
	job->unshown = job->unshown || !gone;
	if (last && !gone)
		dprintf(STDERR_FILENO, "xrun: stderr cannot be written (%s)\n",
			strerror(sys));
	if (sink != 0)
		return;
	children_turn(sup->children); /* deaths before it come first */
	if (sup->phase > PHASE_DELIVER)
		return;
	if (job->state.dir_fd == -1 && !gone)
		stop_fail(job, "stdout cannot be written (%s)", strerror(sys));
	else if (gone && closed_stops(job, sys))
		closed_stop(job);
	else if (!last)
		closed_say(job, gone, sys);
}

static void
closed_reader(int fd, void *ctx)
{
	struct job *job = ctx;

	(void)fd;
	watch_pause(job->sup->reader);
	closed_stop(job);
}

/* Of a pipe only the end for writing: the kernel then reports the exit of its last
 * reader, and nothing else. */
static bool
closed_is_watched(mode_t mode)
{
	return S_ISSOCK(mode) ||
		(S_ISFIFO(mode) &&
			(fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) ==
				O_WRONLY);
}

/* Reports hang-ups only. A peer that has no more to write (EPOLLRDHUP) may still
 * read: a TCP peer that exits is found by the next write. */
static int
closed_epoll(void)
{
	struct epoll_event none = { .events = 0 };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd != -1 && epoll_ctl(fd, EPOLL_CTL_ADD, STDOUT_FILENO, &none) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

bool
closed_watch(struct job *job)
{
	struct sup *sup = job->sup;
	struct stat st;
	int fd;

	if (!closed_stops(job, EPIPE) || fstat(STDOUT_FILENO, &st) == -1 ||
		!closed_is_watched(st.st_mode))
		return true;
	fd = closed_epoll();
	if (fd == -1)
		return false;
	sup->reader = watch_open(sup->loop, fd, false, closed_reader, job);
	return sup->reader != NULL;
}
