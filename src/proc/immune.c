/* SPDX-License-Identifier: Apache-2.0 */
/* immune.c - see immune.h. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "proc/descend.h"
#include "proc/immune.h"

#define IMMUNE_STATUS_MAX 8192

struct immune_walk {
	pid_t session;
	int sig;
	bool init;   /* PID 1 of a namespace without a handler was found */
	bool reacts; /* a process that reacts was found */
};

uint64_t
immune_mask(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 16);
}

/* "NSpid:\t3606\t1": one number for each level, the outermost first. */
static bool
immune_is_init(const char *status)
{
	static const char key[] = "\nNSpid:";
	const char *at = strstr(status, key);
	long pid = 0;
	int levels = 0;

	if (at == NULL)
		return false;
	at += sizeof(key) - 1;
	while (*at == '\t') {
		pid = strtol(at + 1, (char **)(uintptr_t)&at, 10);
		levels++;
	}
	return levels > 1 && pid == 1;
}

static bool
immune_read(pid_t pid, char *text, size_t cap)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd == -1 ? 0 : fd_read_some(fd, text, cap - 1);
	fd_close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void
immune_judge(struct immune_walk *w, const char *status)
{
	const uint64_t bit = UINT64_C(1) << (w->sig - 1);
	uint64_t pending = immune_mask(status, "\nShdPnd:") |
		immune_mask(status, "\nSigPnd:");

	if (immune_mask(status, "\nSigBlk:") & bit)
		w->reacts = w->reacts || !(pending & bit);
	else if (immune_mask(status, "\nSigCgt:") & bit)
		w->reacts = true;
	else if (immune_is_init(status))
		w->init = true;
	else if (!(immune_mask(status, "\nSigIgn:") & bit))
		w->reacts = true;
}

static void immune_visit(pid_t pid, void *ctx);

struct immune_threads {
	pid_t pid;
	struct immune_walk *walk;
};

static void
immune_visit_children(pid_t tid, void *ctx)
{
	const struct immune_threads *t = ctx;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)t->pid,
		(int)tid);
	proc_each_listed(path, immune_visit, t->walk);
}

/* Zombies do not count. */
static void
immune_judge_member(struct immune_walk *w, pid_t pid, char state)
{
	char text[IMMUNE_STATUS_MAX];

	if (state != 'Z' && state != 'X' &&
		immune_read(pid, text, sizeof(text)))
		immune_judge(w, text);
}

/* The signal was not sent to other sessions: only a PID 1 in one counts. */
static void
immune_judge_stranger(struct immune_walk *w, pid_t pid)
{
	char text[IMMUNE_STATUS_MAX];
	uint64_t bit = UINT64_C(1) << (w->sig - 1);

	if (immune_read(pid, text, sizeof(text)) && immune_is_init(text) &&
		!(immune_mask(text, "\nSigCgt:") & bit))
		w->init = true;
}

static void
immune_visit(pid_t pid, void *ctx)
{
	struct immune_walk *w = ctx;
	struct proc_stat st;

	if (w->reacts || !proc_stat_read(pid, &st))
		return;
	if (st.session != w->session) {
		immune_judge_stranger(w, pid);
		return;
	}
	immune_judge_member(w, pid, st.state);
	if (!w->reacts)
		proc_each_thread(pid, immune_visit_children,
			&(struct immune_threads){ pid, w });
}

static void
immune_visit_any(pid_t pid, void *ctx)
{
	struct immune_walk *w = ctx;
	struct proc_stat st;

	if (!w->reacts && proc_stat_read(pid, &st) && st.session == w->session)
		immune_judge_member(w, pid, st.state);
}

/* The tree first: it is small, and answers for most sessions. Processes that lost
 * their parent are children of the supervisor. */
bool
immune_session(pid_t leader, int sig)
{
	struct immune_walk w = { .session = leader, .sig = sig };

	immune_visit(leader, &w);
	if (w.init && !w.reacts)
		proc_each("/proc", immune_visit_any, &w);
	return w.init && !w.reacts;
}
