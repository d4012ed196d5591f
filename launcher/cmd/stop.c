/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - see stop.h. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/stop.h"
#include "launcher/ctl/place.h"
#include "launcher/keeper/keeper.h"
#include "launcher/state/jobs.h"
#include "proc/descend.h"
#include "proc/locks.h"

#define STOP_NAP_NS    (10 * NS_PER_MS)
#define STOP_LOOK_NS   NS_PER_S        /* between looks at the keeper */
#define STOP_KEEPER_NS (60 * NS_PER_S) /* for the keeper to end the job */

/* On XR_OK @answer has the time within which the job ends; its seconds are NaN if
 * @job is an older xrun, which does not report them. */
static enum xr_status
stop_ask(struct which *job, struct control_done *answer, struct xr_error *err)
{
	const struct control m = control_new(CONTROL_STOP, CONTROL_NONE);
	struct ctl_call call;
	struct control reply;
	enum xr_status status = dial_ask(&call, job, &m, &reply, err);

	if (status == XR_OK)
		*answer = reply.done;
	ctl_hang_up(&call);
	return status;
}

/* --- the keeper ----------------------------------------------------------- */

struct stop_search {
	pid_t keeper;
	bool found;
};

static void
stop_search_child(pid_t pid, void *ctx)
{
	struct stop_search *s = ctx;
	struct proc_stat st;

	if (proc_stat_read(pid, &st) && st.ppid == s->keeper &&
		strcmp(st.comm, KEEPER_SUPER_NAME) == 0)
		s->found = true;
}

/* Returns true if @pid is the parent of a supervisor. */
static bool
stop_is_keeper(pid_t pid)
{
	struct stop_search s = { .keeper = pid };

	if (pid > 1)
		proc_each("/proc", stop_search_child, &s);
	return s.found;
}

/* From job.json; before that file is written, from the lock of the folder. */
static pid_t
stop_keeper_by_folder(const struct which *job)
{
	cJSON *json = jobs_read(job->dir);
	pid_t pid = (pid_t)jobs_number(json, "pid", 0);
	char path[PATH_MAX];
	struct stat st;

	cJSON_Delete(json);
	if (pid == 0 &&
		snprintf(path, sizeof(path), "%s/lock", job->dir) <
			(int)sizeof(path) &&
		stat(path, &st) == 0)
		pid = locks_owner(st.st_ino);
	return pid;
}

/* The supervisor holds the lock of the folder with the control socket. */
static pid_t
stop_keeper_by_socket(const struct which *job)
{
	struct proc_stat supervisor;
	struct stat st;
	pid_t pid;

	if (!ctl_place_stat(job->id, &st))
		return 0;
	pid = locks_owner(st.st_ino);
	return pid != 0 && proc_stat_read(pid, &supervisor) ? supervisor.ppid :
							      0;
}

static pid_t
stop_keeper(const struct which *job)
{
	pid_t pid = job->dir[0] != '\0' ? stop_keeper_by_folder(job) : 0;

	return pid != 0 ? pid : stop_keeper_by_socket(job);
}

/* The descriptor first: the process that it names is then checked. */
static bool
stop_signal_keeper(struct which *job, pid_t pid)
{
	int fd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	bool sent = fd != -1 && stop_is_keeper(pid) && which_runs(job) &&
		syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0;

	if (sent)
		syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
	fd_close(fd);
	return sent;
}

/* A keeper that was stopped alone cannot exit after its supervisor. */
static void
stop_continue_keeper(struct which *job, pid_t pid)
{
	struct proc_stat st;
	int fd;

	if (pid <= 1 || !proc_stat_read(pid, &st) || st.state != 'T')
		return;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd != -1 && stop_is_keeper(pid) && which_runs(job))
		syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
	fd_close(fd);
}

/* Returns true if @job ends within @seconds. @keeper: 0 if it is not known. */
static bool
stop_await(struct which *job, pid_t keeper, double seconds)
{
	int64_t now = clock_now(), until = now + (int64_t)(seconds * NS_PER_S),
		look = now + STOP_LOOK_NS;

	while (which_runs(job) && now < until) {
		nanosleep(&(struct timespec){ .tv_nsec = STOP_NAP_NS }, NULL);
		now = clock_now();
		if (now < look)
			continue;
		stop_continue_keeper(job, keeper);
		look = now + STOP_LOOK_NS;
	}
	return !job->running;
}

/* Returns XR_OK if the supervisor answers by now, XR_E_STATE if the job has ended. */
static enum xr_status
stop_by_keeper(struct which *job, struct control_done *answer,
	struct xr_error *err)
{
	int64_t until = clock_now() + STOP_KEEPER_NS;
	enum xr_status status = XR_E_TIMEOUT;

	while (status != XR_OK && clock_now() < until) {
		if (stop_await(job, 0, 1))
			return XR_E_STATE;
		status = stop_ask(job, answer, err);
		if (status == XR_E_STATE)
			return status;
	}
	return status;
}

/* --- all of it ------------------------------------------------------------ */

/* The first request. */
static enum xr_status
stop_begin(struct which *job, struct control_done *answer, bool *sent,
	struct xr_error *err)
{
	enum xr_status status = stop_ask(job, answer, err);

	*sent = false;
	if (status != XR_E_TIMEOUT && status != XR_E_NOTFOUND)
		return status;
	*sent = (job->dir[0] != '\0' &&
			stop_signal_keeper(job, stop_keeper_by_folder(job))) ||
		stop_signal_keeper(job, stop_keeper_by_socket(job));
	return *sent ? stop_by_keeper(job, answer, err) : status;
}

/* Asks again when the time is over: ranks may have asked for more of it. */
enum xr_status
stop_and_wait(struct which *job, struct control_done *answer,
	struct xr_error *err)
{
	double total = 0;
	pid_t keeper;
	bool sent;
	enum xr_status status = stop_begin(job, answer, &sent, err);

	if (status == XR_E_STATE && sent)
		return XR_OK;
	if (status != XR_OK || isnan(answer->seconds))
		return status;
	keeper = stop_keeper(job);
	do {
		total += answer->seconds > 0 ? answer->seconds : 0;
		if (stop_await(job, keeper, answer->seconds))
			return XR_OK;
		status = stop_ask(job, answer, err);
	} while (status == XR_OK && answer->seconds > 0);
	if (status == XR_E_STATE)
		return XR_OK;
	return fail(err, XR_E_TIMEOUT,
		"stop: %s has not ended within %.0f s\txrun ps %s", job->id,
		total, job->id);
}
