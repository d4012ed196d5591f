/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_rig.h - the whole program xrun, in a child of the test.
 *
 * For programs that are linked with xrun_main (meson.build): CALL("ps", "-a") does what
 * the command line does, with standard input from /dev/null; its exit status and what it
 * wrote are in @said. The folder of the test is its home, and has its state (ROOT), its
 * settings and its sockets. job_make() makes the folder of a job, which runs as long as
 * job_end() was not called for it.
 *
 * What the test puts in the place of functions of xrun may assert, but not in several
 * processes at a time: they share one connection to Criterion.
 */
#ifndef TESTS_UNIT_VERB_RIG_H
#define TESTS_UNIT_VERB_RIG_H

#include <errno.h>
#include <fcntl.h>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/unit/folder.h"

#define ROOT "state/xrun"

#define VERB_RIG_S 20 /* ends what hangs */

int xrun_main(int argc, char **argv);

static struct {
	int status;
	char out[65536], err[8192];
} said;

static void (*verb_rig_first)(void); /* called in the child; or NULL */

/* All variables that are options of xrun. */
static inline void
verb_rig_unset(void)
{
	char name[80];

	for (char **v = environ; *v != NULL;) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*v, "="), *v);
		if (strncmp(name, "XRUN_", 5) == 0 && unsetenv(name) == 0)
			v = environ;
		else
			v++;
	}
}

static inline void
verb_rig_make(void)
{
	static const char *const unset[] = { "SLURM_JOB_ID", "NO_COLOR", "TERM",
		"OMP_NUM_THREADS", "LC_ALL", "LC_CTYPE", "LANG" };
	char path[PATH_MAX + 16];

	folder_make();
	umask(022);
	cr_assert_eq(mkdir("state", 0700), 0);
	cr_assert_eq(mkdir(ROOT, 0700), 0);
	cr_assert_eq(mkdir("run", 0700), 0);
	for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++)
		unsetenv(unset[i]);
	verb_rig_unset();
	/* One rank where nothing is said, whatever there is on this machine. */
	setenv("XRUN_PLATFORM", "cpu", 1);
	setenv("HOME", folder, 1);
	snprintf(path, sizeof(path), "%s/state", folder);
	setenv("XDG_STATE_HOME", path, 1);
	snprintf(path, sizeof(path), "%s/run", folder);
	setenv("XDG_RUNTIME_DIR", path, 1);
	snprintf(path, sizeof(path), "%s/settings", folder);
	setenv("XDG_CONFIG_HOME", path, 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("TZ", "UTC0", 1);
}

static inline void
verb_rig_read(const char *name, char *text, size_t cap)
{
	FILE *f = fopen(name, "r");

	cr_assert_not_null(f);
	text[fread(text, 1, cap - 1, f)] = '\0';
	fclose(f);
}

static inline void
verb_rig_child(char **argv)
{
	const int flags = O_RDWR | O_CREAT | O_TRUNC;
	int argc = 0, status;

	alarm(VERB_RIG_S);
	dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
	dup2(open("said-out", flags, 0600), STDOUT_FILENO);
	dup2(open("said-err", flags, 0600), STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
	if (verb_rig_first != NULL)
		verb_rig_first();
	while (argv[argc] != NULL)
		argc++;
	status = xrun_main(argc, argv);
	fflush(NULL);
	_exit(status);
}

static inline void
verb_rig_call(char **argv)
{
	int how = 0;
	pid_t pid = fork();

	cr_assert_neq(pid, -1);
	if (pid == 0)
		verb_rig_child(argv);
	cr_assert_eq(waitpid(pid, &how, 0), pid);
	said.status = WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
	verb_rig_read("said-out", said.out, sizeof(said.out));
	verb_rig_read("said-err", said.err, sizeof(said.err));
}

#define CALL(...) verb_rig_call((char *[]){ (char *)"xrun", __VA_ARGS__, NULL })

/* The status, and all that was written to standard output and standard error. */
#define EXPECT_SAID(wanted, out_, err_) \
	do { \
		cr_expect_eq(said.status, (wanted), "%d", said.status); \
		cr_expect_str_eq(said.out, (out_)); \
		cr_expect_str_eq(said.err, (err_)); \
	} while (0)

/* --- jobs ------------------------------------------------------------------- */

static struct {
	char id[16];
	int lock;
} verb_rig_job[64];
static int verb_rig_jobs;

static inline const char *
job_path(const char *id, const char *name)
{
	static char path[4][300];
	static unsigned turn;
	char *at = path[turn++ % 4];

	snprintf(at, sizeof(path[0]), ROOT "/%s%s%s", id,
		name[0] == '\0' ? "" : "/", name);
	return at;
}

/* @json: job.json; NULL: there is none. Its lock is held if @runs. */
static inline void
job_make(const char *id, bool runs, const char *json)
{
	int fd;

	cr_assert_eq(mkdir(job_path(id, ""), 0700), 0);
	/* A byte: somebody has closed it. */
	folder_write(job_path(id, "lock"), runs ? "" : "0", 0600);
	if (json != NULL)
		folder_write(job_path(id, "job.json"), json, 0600);
	if (!runs)
		return;
	/* The test keeps it. */
	fd = open(job_path(id, "lock"), O_RDWR | O_CLOEXEC);
	cr_assert_neq(fd, -1);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	snprintf(verb_rig_job[verb_rig_jobs].id, sizeof(verb_rig_job[0].id),
		"%s", id);
	verb_rig_job[verb_rig_jobs++].lock = fd;
}

static inline void
job_end(const char *id)
{
	for (int i = 0; i < verb_rig_jobs; i++)
		if (strcmp(verb_rig_job[i].id, id) == 0)
			close(verb_rig_job[i].lock);
}

/* One more line of the history. */
static inline void
past_make(const char *line)
{
	FILE *f = fopen(ROOT "/.history", "a");

	cr_assert_not_null(f);
	fprintf(f, "%s\n", line);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(ROOT "/.history", 0600), 0);
}

#endif /* TESTS_UNIT_VERB_RIG_H */
