/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - see attach.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/stacks/attach.h"
#include "launcher/stacks/threads.h"

#define STATUS_MAX 4096

/* The number behind @key, in /proc/PID/status; -1. */
static long
number_of(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at == NULL ? -1 : strtol(at + strlen(key), NULL, 10);
}

static void
say_tracer(struct process *p, long tracer)
{
	char path[64], name[17];

	snprintf(path, sizeof(path), "/proc/%ld/comm", tracer);
	fd_read_small(path, name, sizeof(name));
	name[strcspn(name, "\n")] = '\0';
	snprintf(p->why, sizeof(p->why), "%s traces it",
		name[0] != '\0' ? name : "a debugger");
}

/* Why the kernel said @sys. */
static void
say_refused(struct process *p, long uid, int sys)
{
	char scope[8];

	fd_read_small("/proc/sys/kernel/yama/ptrace_scope", scope,
		sizeof(scope));
	if (sys == ENOENT || sys == ESRCH)
		snprintf(p->why, sizeof(p->why), "it has ended");
	else if (uid >= 0 && (uid_t)uid != geteuid())
		snprintf(p->why, sizeof(p->why),
			"it is another user's (uid %ld): root may look", uid);
	else if (scope[0] >= '1')
		snprintf(p->why, sizeof(p->why),
			"/proc/sys/kernel/yama/ptrace_scope is %c: root may look",
			scope[0]);
	else
		snprintf(p->why, sizeof(p->why), "it cannot be traced (%s)",
			strerror(sys));
}

bool
attach_allowed(struct process *p)
{
	char path[64], status[STATUS_MAX];
	long tracer;
	int fd, sys;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)p->pid);
	fd_read_small(path, status, sizeof(status));
	tracer = number_of(status, "\nTracerPid:");
	if (tracer > 0) {
		say_tracer(p, tracer);
		return false;
	}
	/* To open it takes the same right as to attach. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	sys = errno;
	if (fd == -1)
		say_refused(p, number_of(status, "\nUid:"), sys);
	fd_close(fd);
	return fd != -1;
}

void
attach_undo(const struct process *p)
{
	if (!p->stopped)
		kill(p->pid, SIGCONT);
}
