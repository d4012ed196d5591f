/* SPDX-License-Identifier: Apache-2.0 */
/* handler.c - see handler.h. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/dents.h"
#include "base/fd.h"
#include "base/mem.h"
#include "launcher/stacks/handler.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/threads.h"
#include "proc/immune.h"

#define FILE_NAME "/memfd:xrun-stacks (deleted)"
#define TEXT_MAX  (64 << 10)
#define PATIENCE  (100 * NS_PER_MS)
#define BUSY      (2 * NS_PER_S) /* the same, of a thread that waits for a CPU */

struct asked {
	struct process *p;
	int fd;
	off_t from; /* what stood there before */
};

/* Its file, opened anew, so that its own place in it stays; -1. */
static int
open_file(pid_t pid)
{
	struct dents names;
	const struct dent *d;
	char path[64], name[64];
	int dir, fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (dir != -1 && fd == -1 && dents_read(&names, dir))
		while (fd == -1 && (d = dents_next(&names)) != NULL) {
			n = readlinkat(dir, d->name, name, sizeof(name));
			if (n == (ssize_t)strlen(FILE_NAME) &&
				memcmp(name, FILE_NAME, (size_t)n) == 0)
				fd = openat(dir, d->name, O_RDONLY | O_CLOEXEC);
		}
	fd_close(dir);
	return fd;
}

/* By its main thread, in which Python runs its handlers. */
static bool
ask(struct asked *a, struct process *p)
{
	struct thread main = { .tid = p->pid };
	struct stat st;

	if (p->python_by != NULL || p->stopped ||
		!threads_state(p->pid, &main) || main.state == 'D' ||
		main.state == 't')
		return false;
	*a = (struct asked){ .p = p, .fd = open_file(p->pid) };
	if (a->fd != -1 && fstat(a->fd, &st) == 0 && S_ISREG(st.st_mode)) {
		a->from = st.st_size;
		if (syscall(SYS_tgkill, p->pid, p->pid, SIGURG) == 0)
			return true;
	}
	fd_close(a->fd);
	return false;
}

/* Its signal is not delivered yet, or its handler still writes: the kernel blocks the
 * signal meanwhile. The same is seen of a thread that blocks the signal itself. */
static bool
is_under_way(const struct asked *a)
{
	const uint64_t bit = UINT64_C(1) << (SIGURG - 1);
	char text[8192];

	return threads_file(a->p->pid, a->p->pid, "status", text,
		       sizeof(text)) > 0 &&
		((immune_mask(text, "\nSigPnd:") |
			 immune_mask(text, "\nSigBlk:")) &
			bit) != 0;
}

/* The signal handler itself writes the text, and a thread that has a CPU runs the handler
 * before anything else: one that is runnable may not have had a CPU since the signal. */
static bool
may_answer(const struct asked *a, int64_t until)
{
	struct thread main = { .tid = a->p->pid };
	int64_t now = clock_now();

	return now < until ||
		(now < until + BUSY && threads_state(a->p->pid, &main) &&
			main.state == 'R');
}

/* All of what it wrote; or what there is at the end of patience. */
static void
take(struct asked *a, int64_t until)
{
	char *text = xcalloc(1, TEXT_MAX);
	bool is_over;
	ssize_t n;

	do {
		is_over = !is_under_way(a);
		n = pread(a->fd, text, TEXT_MAX, a->from);
		if (n > 0 && is_over)
			break;
		poll(NULL, 0, 1);
	} while (may_answer(a, until));
	if (n > 0 && parse_faulthandler((struct span){ text, (size_t)n }, a->p))
		a->p->python_by = "faulthandler";
	free(text);
	fd_close(a->fd);
}

void
handler_ask(struct stacks *s)
{
	struct asked *a = xcalloc(s->count + 1, sizeof(*a));
	uint32_t n = 0;
	int64_t until;

	for (uint32_t i = 0; i < s->count; i++)
		n += ask(&a[n], &s->process[i]);
	until = clock_now() + PATIENCE;
	for (uint32_t i = 0; i < n; i++)
		take(&a[i], until);
	free(a);
}
