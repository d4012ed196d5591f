/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - see threads.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/threads.h"
#include "proc/descend.h"

#define KERNEL_MAX 8192 /* bytes of a stack */

/* Of /proc/PID/task/TID. */
size_t
threads_file(pid_t pid, pid_t tid, const char *name, char *out, size_t cap)
{
	char path[96];
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid,
		name);
	n = fd_read_small(path, out, cap);
	if (n > 0 && out[n - 1] == '\n')
		out[--n] = '\0';
	return n;
}

/* "4711 (name) S ...", where the name may hold anything. */
bool
threads_state(pid_t pid, struct thread *t)
{
	char text[512], *open, *close;

	if (threads_file(pid, t->tid, "stat", text, sizeof(text)) == 0)
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (open == NULL || close == NULL || close[1] != ' ')
		return false;
	*close = '\0';
	snprintf(t->comm, sizeof(t->comm), "%s", open + 1);
	stacks_tame(t->comm);
	t->state = close[2];
	return true;
}

/* "pipe:[12]", "socket:[13]", "anon_inode:[eventpoll]", "/data/x": without what
 * is another in each process. Nothing, if @fd is no descriptor of the process. */
static void
put_file(pid_t pid, int64_t fd, char *out, size_t cap)
{
	char path[64], name[PATH_MAX];
	const char *at = name;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%lld", (int)pid,
		(long long)fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n <= 0)
		return;
	name[n] = '\0';
	if (strncmp(name, "anon_inode:", 11) == 0) {
		at = name + 11 + (name[11] == '[');
		name[strcspn(name, "]")] = '\0';
	} else if (name[0] != '/') {
		name[strcspn(name, ":")] = '\0';
	}
	snprintf(out, cap, " %s", at);
}

static void
read_call(pid_t pid, struct thread *t)
{
	char text[256];
	const char *name;
	bool on_file;
	int64_t first;
	long number;
	size_t len;

	threads_file(pid, t->tid, "syscall", text, sizeof(text));
	number = call_parse(span_of(text), &first);
	if (number < 0)
		return;
	name = call_name(number, &on_file);
	if (name == NULL)
		snprintf(t->call, sizeof(t->call), "system call %ld", number);
	else
		snprintf(t->call, sizeof(t->call), "%s", name);
	len = strlen(t->call);
	if (on_file)
		put_file(pid, first, t->call + len, sizeof(t->call) - len);
	stacks_tame(t->call);
}

static void
add_kernel(struct thread *t, struct span name)
{
	char text[128];
	const struct frame frame = { .function = text, .file = "" };

	snprintf(text, sizeof(text), "%.*s", QUOTED(name));
	stacks_tame(text);
	stacks_add_frame(&t->kernel, &frame);
}

/* "[<0>] futex_wait+0x67/0x120" */
static void
read_kernel(pid_t pid, struct thread *t)
{
	char text[KERNEL_MAX];
	struct span rest, line, name;
	size_t n = threads_file(pid, t->tid, "stack", text, sizeof(text) - 1);

	text[n] = '\n';
	rest = (struct span){ text, n + 1 };
	while (n > 0 && parse_line(&rest, &line))
		if (parse_split(&line, "] ", &name) &&
			parse_split(&line, "+", &name))
			add_kernel(t, name);
}

static void
read_thread(pid_t tid, void *arg)
{
	struct process *p = arg;
	struct thread *t = stacks_thread(p, tid);

	if (t == NULL || !threads_state(p->pid, t))
		return;
	p->stopped = p->stopped || t->state == 'T';
	threads_file(p->pid, tid, "wchan", t->wchan, sizeof(t->wchan));
	if (strcmp(t->wchan, "0") == 0)
		t->wchan[0] = '\0';
	read_call(p->pid, t);
	read_kernel(p->pid, t);
}

void
threads_read(struct process *p)
{
	proc_each_thread(p->pid, read_thread, p);
}
