/* SPDX-License-Identifier: Apache-2.0 */
/* detach.c - see detach.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/status.h"
#include "launcher/cmd/detach.h"
#include "launcher/cmd/say.h"
#include "launcher/host/normal.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/sup/detach.h"

/* normal_init() puts /dev/null where nothing is. */
static void
be_alone(int words)
{
	setsid();
	dup2(words, STDERR_FILENO);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	normal_close_others();
}

/* Until nobody holds its other end. */
static void
copy_words(int from)
{
	char text[4096];
	ssize_t n;

	do {
		n = read(from, text, sizeof(text));
		if (n > 0)
			fd_write_all(STDERR_FILENO, text, (size_t)n);
	} while (n > 0 || (n == -1 && errno == EINTR));
}

static int
exit_of(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) == -1)
		if (errno != EINTR)
			return EXIT_XRUN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The id for programs, and for a person at a terminal what to do with it. */
static int
say_runs(const struct detach *d, pid_t child, bool quiet)
{
	char where[PATH_MAX];
	struct buf id = { 0 };
	int status;

	buf_fmt(&id, "%s\n", d->job);
	status = say(&id);
	if (status != 0 || (isatty(STDERR_FILENO) && !quiet))
		words_line(
			"job %s: %u rank%s in the background, output in %s; to end it: xrun stop %s",
			d->job, d->ranks, d->ranks == 1 ? "" : "s",
			state_tilde(d->where, where, sizeof(where)), d->job);
	return status;
}

static int
cannot(const char *what)
{
	return say_no("-d: %s: %s", what, strerror(errno));
}

bool
detach_call(const struct run_options *opt, struct detach **detach,
	int *exit_status)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct detach *d = detach_new();
	int words[2];
	pid_t child;

	*exit_status = EXIT_XRUN;
	if (d == NULL || pipe2(words, O_CLOEXEC) == -1) {
		cannot("pipe");
		return true;
	}
	/* Where it is ignored nobody is told how a child ended. */
	sigaction(SIGCHLD, &dfl, NULL);
	child = fork();
	if (child == 0) {
		*detach = d;
		be_alone(words[1]);
		return false;
	}
	fd_close(words[1]);
	if (child == -1) {
		cannot("fork");
		return true;
	}
	copy_words(words[0]);
	*exit_status = __atomic_load_n(&d->runs, __ATOMIC_SEQ_CST) ?
		say_runs(d, child, opt->quiet) :
		exit_of(child);
	return true;
}
