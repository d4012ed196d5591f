/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "base/fd.h"
#include "proc/descend.h"
#include "proc/tree.h"

struct node {
	pid_t pid;
	int pidfd;
};

struct tree {
	struct node *nodes; /* the root first */
	size_t count, cap;
	bool short_of_memory;
};

static int
send_signal(int pidfd, int sig)
{
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0 ? 0 :
									  errno;
}

static bool
has(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->nodes[i].pid == pid)
			return true;
	return false;
}

static bool
add(struct tree *t, pid_t pid, int pidfd)
{
	size_t cap = t->cap == 0 ? 16 : 2 * t->cap;
	struct node *more;

	if (t->count == t->cap) {
		more = reallocarray(t->nodes, cap, sizeof(*more));
		if (more == NULL) {
			t->short_of_memory = true;
			return false;
		}
		t->nodes = more;
		t->cap = cap;
	}
	t->nodes[t->count++] = (struct node){ pid, pidfd };
	return true;
}

/* Who is a child of @parent still when its descriptor is had is that one. */
static void
meet(struct tree *t, pid_t parent, pid_t pid)
{
	struct proc_stat st;
	int fd;

	if (has(t, pid))
		return;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd == -1)
		return;
	if (!proc_stat_read(pid, &st) || st.ppid != parent ||
		send_signal(fd, SIGSTOP) != 0 || !add(t, pid, fd))
		fd_close(fd);
}

struct thread_walk {
	struct tree *t;
	pid_t parent;
};

/* The children that a thread of it made: "4711 4712 ". */
static void
meet_children_of(pid_t tid, void *arg)
{
	const struct thread_walk *w = arg;
	char path[64], text[4096], *at = text, *end;
	long pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		(int)w->parent, (int)tid);
	/* More than there is room for come to the next look. */
	fd_read_small(path, text, sizeof(text));
	for (;;) {
		pid = strtol(at, &end, 10);
		if (end == at || *end != ' ')
			return;
		meet(w->t, w->parent, (pid_t)pid);
		at = end;
	}
}

static void
meet_children(struct tree *t, pid_t parent)
{
	struct thread_walk w = { .t = t, .parent = parent };

	proc_each_thread(parent, meet_children_of, &w);
}

/* All of them, stopped. */
static void
gather(struct tree *t)
{
	size_t before;

	do {
		before = t->count;
		for (size_t i = 0; i < t->count; i++)
			meet_children(t, t->nodes[i].pid);
	} while (t->count > before && !t->short_of_memory);
}

int
tree_signal(pid_t root, int pidfd, int sig)
{
	struct tree t = { 0 };
	int sys = send_signal(pidfd, SIGSTOP), first = 0;

	if (sys != 0)
		return sys;
	if (!add(&t, root, dup(pidfd))) {
		send_signal(pidfd, SIGCONT);
		return ENOMEM;
	}
	gather(&t);
	for (size_t i = t.count; i-- > 0;) {
		sys = send_signal(t.nodes[i].pidfd, sig);
		send_signal(t.nodes[i].pidfd, SIGCONT);
		fd_close(t.nodes[i].pidfd);
		first = i == 0 ? sys : first;
	}
	free(t.nodes);
	return first;
}
