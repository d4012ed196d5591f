/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - a rank's signs of life, whose slot it is, and being told to stop; see
 * xrun/job.h. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include <xrun/job.h>

#include "base/fd.h"
#include "base/status.h"
#include "segment/member.h"
#include "worker/job/crash.h"
#include "worker/job/life.h"
#include "worker/job/slot.h"

#define EVERY_NS INT64_C(1000000000) /* between messages that say only that */

/* --- signs of life -------------------------------------------------------- */

/* The message of a rank without a slot, made when no signal handler runs. */
static struct {
	struct segment_tag socket;
	size_t len; /* 0: there is nobody to tell */
	char text[64];
	_Atomic int64_t last;
} beat;

void
life_init(void)
{
	static const char head[] = "{\"type\":\"progress\",\"rank\":";
	char digits[10];
	uint32_t rank = xr_job_rank();
	size_t n = 0;

	beat.len = 0;
	if (!segment_tag_parse(getenv("XRUN_CONTROL_FD"), &beat.socket))
		return;
	memcpy(beat.text, head, sizeof(head) - 1);
	beat.len = sizeof(head) - 1;
	do
		digits[n++] = (char)('0' + rank % 10);
	while ((rank /= 10) > 0);
	while (n > 0)
		beat.text[beat.len++] = digits[--n];
	beat.text[beat.len++] = '}';
}

__attribute__((constructor)) static void
when_loaded(void)
{
	life_init();
}

static bool
is_due(void)
{
	int64_t before = atomic_load(&beat.last), now;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	return (before == 0 || now - before >= EVERY_NS) &&
		atomic_compare_exchange_strong(&beat.last, &before, now);
}

XR_EXPORT void
xr_heartbeat(void)
{
	int saved = errno;
	struct stat st;

	if (slot_beat() || beat.len == 0 || !is_due())
		return;
	/* To what is no socket nothing can be sent. */
	if (fstat(beat.socket.fd, &st) == 0 && st.st_ino == beat.socket.inode)
		send(beat.socket.fd, beat.text, beat.len,
			MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = saved;
}

/* --- whose slot it is ----------------------------------------------------- */

/* What the system calls process @pid; @out is empty if it does not say. */
static void
name_of(pid_t pid, char *out, size_t cap)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd_read_small(path, out, cap);
	out[strcspn(out, "\n")] = '\0';
}

XR_EXPORT enum xr_status
xr_job_attach(struct xr_error *err)
{
	char name[32] = "";
	pid_t holder;

	if (xr_job_id()[0] == '\0')
		return XR_OK;
	if (!slot_hold(&holder))
		return fail(err, XR_E_NOTFOUND, "job %s has no segment here",
			xr_job_id());
	if (holder == 0)
		return XR_OK;
	name_of(holder, name, sizeof(name));
	return fail(err, XR_E_EXISTS, "rank %u is held by process %d%s%s%s",
		(unsigned)xr_job_rank(), (int)holder, name[0] ? " (" : "", name,
		name[0] ? ")" : "");
}

XR_EXPORT void
xr_job_detach(void)
{
	slot_let_go();
}

/* --- being told to stop --------------------------------------------------- */

static struct {
	_Atomic(xr_stop_fn *) fn;
	void *ctx;
	struct sigaction before;
	atomic_int told;
} stop;

static void
on_term(int sig, siginfo_t *info, void *context)
{
	xr_stop_fn *fn = atomic_load(&stop.fn);
	int saved = errno;

	atomic_store(&stop.told, 1);
	if (fn != NULL)
		fn(stop.ctx);
	errno = saved;
	if (stop.before.sa_flags & SA_SIGINFO)
		stop.before.sa_sigaction(sig, info, context);
	else if (stop.before.sa_handler != SIG_DFL &&
		stop.before.sa_handler != SIG_IGN)
		stop.before.sa_handler(sig);
}

XR_EXPORT enum xr_status
xr_job_on_stop(xr_stop_fn *fn, void *ctx, struct xr_error *err)
{
	struct sigaction action = { .sa_sigaction = on_term }, now;

	if (sigaction(SIGTERM, NULL, &now) == -1)
		return fail(err, XR_E_SYS, "sigaction SIGTERM: %s",
			strerror(errno));
	atomic_store(&stop.fn, NULL);
	stop.ctx = ctx;
	atomic_store(&stop.fn, fn);
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_term)
		return XR_OK;
	stop.before = now;
	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_SIGINFO;
	if (sigaction(SIGTERM, &action, NULL) == -1)
		return fail(err, XR_E_SYS, "sigaction SIGTERM: %s",
			strerror(errno));
	return XR_OK;
}

XR_EXPORT int
xr_job_stopping(void)
{
	return atomic_load(&stop.told);
}

/* --- crashing ------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_job_report_crashes(struct xr_error *err)
{
	int sys = crash_begin(getenv("TORCHELASTIC_ERROR_FILE"));

	return sys == 0 ? XR_OK :
			  fail(err, XR_E_SYS, "sigaltstack: %s", strerror(sys));
}
