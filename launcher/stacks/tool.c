/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - see tool.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/span.h"
#include "launcher/stacks/tool.h"

#define END_MS 1000 /* that a killed one may take */

extern char **environ;

char *
tool_find(const char *name)
{
	struct span path = span_of(getenv("PATH")), dir;
	struct stat st;
	char *file;

	while (path.at != NULL) {
		dir = span_next(&path, ':');
		if (dir.len == 0 || dir.at[0] != '/')
			continue;
		file = xasprintf("%.*s/%s", (int)dir.len, dir.at, name);
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
			access(file, X_OK) == 0)
			return file;
		free(file);
	}
	return NULL;
}

/* In English, and nothing that would ask the network for symbols, or have others'
 * code in it. */
static void
prepare(void)
{
	static const char *const without[] = { "DEBUGINFOD_URLS", "LD_PRELOAD",
		"LANGUAGE", "PYTHONHOME", "PYTHONPATH" };

	setenv("LC_ALL", "C", 1);
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		unsetenv(without[i]);
}

static void
become(char *const *argv, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(argv[0], argv, environ);
	_exit(127);
}

bool
tool_start(struct tool *t, char *const *argv)
{
	int fd[2];

	*t = (struct tool){ .pidfd = -1, .out = -1 };
	prepare();
	if (pipe2(fd, O_CLOEXEC) == -1)
		return false;
	t->pid = fork();
	if (t->pid == 0)
		become(argv, fd[1]);
	fd_close(fd[1]);
	t->out = fd[0];
	if (t->pid != -1) {
		setpgid(t->pid, t->pid); /* before it is killed as one */
		t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	}
	if (t->pidfd != -1 && fcntl(t->out, F_SETFL, O_NONBLOCK) == 0)
		return true;
	tool_end(t);
	return false;
}

void
tool_read(struct tool *t)
{
	char some[16384];
	ssize_t n;

	while ((n = read(t->out, some, sizeof(some))) > 0)
		if (t->text.len < TOOL_OUTPUT_MAX)
			buf_put(&t->text, some, (size_t)n);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	fd_close(t->out); /* or poll(2) would tell of its end for ever */
	t->out = -1;
}

/* One that does not even die by that is in the kernel, and left. */
bool
tool_end(struct tool *t)
{
	bool exited = false;
	int status;
	struct pollfd end = { .fd = t->pidfd, .events = POLLIN };

	if (t->pid > 0) {
		kill(-t->pid, SIGKILL);
		poll(&end, t->pidfd != -1, t->pidfd != -1 ? END_MS : 1);
		exited = waitpid(t->pid, &status, WNOHANG) == t->pid &&
			WIFEXITED(status);
	}
	fd_close(t->pidfd);
	fd_close(t->out);
	*t = (struct tool){ .pidfd = -1, .out = -1 };
	return exited;
}
