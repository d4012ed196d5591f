/* SPDX-License-Identifier: Apache-2.0 */
/* scene.c - see scene.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/fault/scene.h"
#include "tests/prog/prog.h"

#define FILE_MAX (512L * 1024 * 1024) /* no round fills a disk */

void
scene_init(struct scene *s, const char *dir)
{
	struct rlimit most = { FILE_MAX, FILE_MAX };

	memset(s, 0, sizeof(*s));
	s->master = -1;
	snprintf(s->dir, sizeof(s->dir), "%s", dir);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1)
		prog_die(errno, "subreaper");
	setrlimit(RLIMIT_FSIZE, &most);
	scene_clear(s);
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

void
scene_fini(struct scene *s)
{
	fd_close(s->master);
	nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
make_folder(const struct scene *s, const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	if (mkdir(path, 0700) == -1)
		prog_die(errno, "%s", path);
}

void
scene_clear(struct scene *s)
{
	nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	make_folder(s, "");
	make_folder(s, "state");
	make_folder(s, "run");
}

void
scene_broken(struct scene *s, const char *fmt, ...)
{
	va_list ap;

	s->broken++;
	printf("VIOLATION %s: ", s->what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

void
scene_terminal(struct scene *s)
{
	int slave;

	if (openpty(&s->master, &slave, NULL, NULL, NULL) == -1)
		prog_die(errno, "openpty");
	fcntl(s->master, F_SETFD, FD_CLOEXEC);
	tcgetattr(slave, &s->before);
	close(slave);
}

static void
redirect(const char *path, int flags, int to)
{
	int fd = open(path, flags, 0600);

	if (fd == -1)
		prog_die(errno, "%s", path);
	dup2(fd, to);
	close(fd);
}

static void
set(const struct scene *s, const char *name, const char *folder)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", s->dir, folder);
	setenv(name, path, 1);
}

static void
enter(const struct scene *s)
{
	char name[64] = "/dev/null";
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir(s->dir) == -1)
		prog_die(errno, "%s", s->dir);
	setsid();
	if (s->master != -1)
		ptsname_r(s->master, name, sizeof(name));
	redirect(name, O_RDWR, 0);
	redirect("out", O_WRONLY | O_CREAT | O_APPEND, 1);
	redirect("err", O_WRONLY | O_CREAT | O_APPEND, 2);
	set(s, "XDG_STATE_HOME", "state");
	set(s, "XDG_RUNTIME_DIR", "run");
	set(s, "HOME", "");
	setenv("LC_ALL", "C.UTF-8", 1);
}

void
scene_start(struct scene *s, char *const *argv, bool traced)
{
	fflush(stdout);
	s->pid = fork();
	if (s->pid == -1)
		prog_die(errno, "fork");
	if (s->pid > 0)
		return;
	/* Nobody awaits what a campaign that is killed leaves. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	enter(s);
	if (traced) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
	}
	execv(argv[0], argv);
	prog_die(errno, "%s", argv[0]);
}

int
scene_wait(struct scene *s, int64_t ms)
{
	struct pollfd p = { .events = POLLIN };
	int status = 0, timely;

	p.fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	timely = poll(&p, 1, (int)ms);
	if (timely != 1) {
		scene_broken(s, "not over after %lld ms", (long long)ms);
		kill(s->pid, SIGKILL);
	}
	fd_close(p.fd);
	while (waitpid(s->pid, &status, 0) == -1 && errno == EINTR)
		continue;
	return timely == 1 ? status : -1;
}

/* --- who is left ---------------------------------------------------------- */

static void
name_of(pid_t pid, char out[32])
{
	char path[64];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd == -1 ? 0 : read(fd, out, 31);
	out[n > 0 ? n - 1 : 0] = '\0';
	fd_close(fd);
}

/* The children of @pid; 0 behind the last. */
static void
children_of(pid_t pid, pid_t *out, int cap)
{
	char path[64];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
		(int)pid);
	f = fopen(path, "re");
	while (f != NULL && n < cap - 1 && fscanf(f, "%d", &out[n]) == 1)
		n++;
	out[n] = 0;
	if (f != NULL)
		fclose(f);
}

pid_t
scene_child(pid_t pid, const char *name)
{
	pid_t list[256];
	char comm[32];

	children_of(pid, list, 256);
	for (int i = 0; list[i] != 0; i++) {
		name_of(list[i], comm);
		if (strcmp(comm, name) == 0)
			return list[i];
	}
	return 0;
}

pid_t
scene_number(pid_t tid, const char *name)
{
	char path[64], line[256];
	pid_t number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			number = (pid_t)strtol(line + strlen(name), NULL, 10);
	if (file != NULL)
		fclose(file);
	return number;
}

static bool
reap(void)
{
	pid_t pid;

	do {
		pid = waitpid(-1, NULL, WNOHANG | __WALL);
	} while (pid > 0);
	return pid == -1 && errno == ECHILD;
}

static void
end_orphans(struct scene *s)
{
	pid_t list[256];
	char name[32];

	for (int tries = 0; tries < 100 && !reap(); tries++) {
		children_of(getpid(), list, 256);
		for (int i = 0; list[i] != 0; i++) {
			name_of(list[i], name);
			if (tries == 0)
				scene_broken(s, "left behind: %s (pid %d)",
					name, (int)list[i]);
			kill(list[i], SIGKILL);
		}
		poll(NULL, 0, 5);
	}
}

static int64_t
await_nobody(struct scene *s, const struct scene_end *end)
{
	int64_t begun = clock_now(), gone = -1;

	while (gone == -1 &&
		clock_now() - begun < end->orphans_ms * NS_PER_MS) {
		if (reap())
			gone = (clock_now() - begun) / NS_PER_MS;
		else
			poll(NULL, 0, 2);
	}
	end_orphans(s);
	return gone;
}

/* --- files ---------------------------------------------------------------- */

static struct scene *looked_at; /* for nftw() */

static void
check_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == -1)
		scene_broken(looked_at, "%s is locked", path);
	fd_close(fd);
}

static int
look_at(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	const char *name = path + at->base;

	(void)kind;
	if (S_ISSOCK(st->st_mode) || S_ISFIFO(st->st_mode))
		scene_broken(looked_at, "a socket or FIFO: %s", path);
	if (strcmp(name, "lock") == 0)
		check_lock(path);
	return 0;
}

/* Copies the name of one entry of @path, or "" if there is none. */
static void
first_entry(const char *path, char name[256])
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	name[0] = '\0';
	while (dir != NULL && name[0] == '\0' && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
			strcmp(entry->d_name, "..") != 0)
			snprintf(name, 256, "%s", entry->d_name);
	if (dir != NULL)
		closedir(dir);
}

static void
check_places(struct scene *s)
{
	char path[600], name[256];

	looked_at = s;
	snprintf(path, sizeof(path), "%s/state", s->dir);
	nftw(path, look_at, 16, FTW_PHYS);
	/* Of the folder of all jobs nothing but itself may be there. */
	snprintf(path, sizeof(path), "%s/run/xrun", s->dir);
	first_entry(path, name);
	if (!s->unremovable && name[0] != '\0')
		scene_broken(s, "%s holds %s", path, name);
}

static void
check_terminal(struct scene *s)
{
	struct termios now;
	char name[64], data[4096];
	int fd;

	if (s->master == -1)
		return;
	fcntl(s->master, F_SETFL, O_NONBLOCK);
	while (read(s->master, data, sizeof(data)) > 0)
		continue;
	ptsname_r(s->master, name, sizeof(name));
	fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd != -1 && tcgetattr(fd, &now) == 0 &&
		memcmp(&now, &s->before, sizeof(now)) != 0)
		scene_broken(s, "the terminal's settings changed");
	fd_close(fd);
}

struct bytes {
	const char *at;
	size_t len;
};

static struct bytes
map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct bytes b = { .at = "" };
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 && st.st_size > 0) {
		b.at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
			fd, 0);
		b.len = (size_t)st.st_size;
		if (b.at == MAP_FAILED)
			prog_die(errno, "map %s", path);
	}
	fd_close(fd);
	return b;
}

static void
unmap(struct bytes b)
{
	if (b.len > 0)
		munmap((void *)(uintptr_t)b.at, b.len);
}

/* The folder of the one job of the scene; false: it left none. */
static bool
job_folder(const struct scene *s, char *out, size_t cap)
{
	char root[600];
	const struct dirent *d;
	bool found = false;
	DIR *dir;

	snprintf(root, sizeof(root), "%s/state/xrun", s->dir);
	dir = opendir(root);
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.' || strcmp(d->d_name, "latest") == 0)
			continue;
		found = (size_t)snprintf(out, cap, "%s/%s", root, d->d_name) <
			cap;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

/* What arrived begins the copy, and is at least what spew knew to be taken. */
static void
check_stream(struct scene *s, const struct scene_end *end, const char *job,
	uint32_t rank, const char *name)
{
	char path[1400];
	struct bytes raw, ref, count;
	uint64_t least = 0;

	snprintf(path, sizeof(path), "%s/0/rank-%04u/std%s", job, rank, name);
	raw = map(job[0] == '\0' ? "" : path);
	snprintf(path, sizeof(path), "%s/ref.%u.%s", s->dir, rank, name);
	ref = map(path);
	snprintf(path, sizeof(path), "%s/ref.%u.%s.count", s->dir, rank, name);
	count = map(path);
	if (count.len == sizeof(least))
		memcpy(&least, count.at, sizeof(least));
	if (end->complete)
		least = ref.len;
	if (raw.len > ref.len || memcmp(raw.at, ref.at, raw.len) != 0)
		scene_broken(s, "rank %u std%s: %zu bytes that are not its own",
			rank, name, raw.len);
	else if (raw.len + end->pipe_bytes < least)
		scene_broken(s, "rank %u std%s: %zu bytes of %llu", rank, name,
			raw.len, (unsigned long long)least);
	unmap(raw);
	unmap(ref);
	unmap(count);
}

/* True if xrun said that there is no room to store the output: it is displayed only. */
static bool
is_unstored(const struct scene *s)
{
	static const char words[] = "the output of this job is not stored";
	char path[600];
	struct bytes b;
	bool said;

	snprintf(path, sizeof(path), "%s/err", s->dir);
	b = map(path);
	said = b.len > 0 &&
		memmem(b.at, b.len, words, sizeof(words) - 1) != NULL;
	unmap(b);
	return said;
}

static void
check_raw(struct scene *s, const struct scene_end *end)
{
	char job[1024];

	if (is_unstored(s))
		return;
	if (!job_folder(s, job, sizeof(job)))
		job[0] = '\0';
	for (uint32_t i = 0; i < end->ranks; i++) {
		check_stream(s, end, job, i, "out");
		check_stream(s, end, job, i, "err");
	}
}

/* What the report says of the exit status; -1: it is not one whole object. */
static long
told_exit(struct bytes b)
{
	static const char key[] = "\"exit\":", begin[] = "{\"v\":";
	char digits[8] = "-1";
	const char *at, *end = b.at + b.len;

	if (b.len < sizeof(begin) || memcmp(b.at, begin, sizeof(begin) - 1) ||
		end[-2] != '}' || memchr(b.at, '\n', b.len) != end - 1)
		return -1;
	at = memmem(b.at, b.len, key, sizeof(key) - 1);
	if (at != NULL)
		snprintf(digits, sizeof(digits), "%.7s", at + sizeof(key) - 1);
	return strtol(digits, NULL, 10);
}

/* An exit status is also in the report. Where the keeper was killed, its
 * supervisor reports, unless there was none yet; where both were, the report may
 * lack its end. */
static void
check_report(struct scene *s, const struct scene_end *end)
{
	char path[600];
	struct bytes b;
	long told;

	if (!end->report || end->status == -1)
		return;
	snprintf(path, sizeof(path), "%s/report", s->dir);
	b = map(path);
	told = told_exit(b);
	if (WIFEXITED(end->status) && told != WEXITSTATUS(end->status))
		scene_broken(s, "exit status %d, and the report says %ld: %.*s",
			WEXITSTATUS(end->status), told,
			b.len < 2000 ? (int)b.len : 2000, b.at);
	else if (told == -1 && b.len > 0 && end->pipe_bytes == 0)
		scene_broken(s, "a report that is not whole: %zu bytes", b.len);
	unmap(b);
}

int64_t
scene_check(struct scene *s, const struct scene_end *end)
{
	int64_t gone = await_nobody(s, end);

	check_places(s);
	check_terminal(s);
	check_raw(s, end);
	check_report(s, end);
	return gone;
}

uint32_t
scene_count(const struct scene *s, const char *name, const char *prefix)
{
	char path[600];
	size_t len = strlen(prefix);
	struct bytes b;
	uint32_t n = 0;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	b = map(path);
	for (size_t at = 0; at < b.len;) {
		const char *nl = memchr(b.at + at, '\n', b.len - at);

		if (b.len - at >= len && memcmp(b.at + at, prefix, len) == 0)
			n++;
		at = nl == NULL ? b.len : (size_t)(nl - b.at) + 1;
	}
	unmap(b);
	return n;
}

int64_t
scene_size(const struct scene *s, const char *name)
{
	char path[600];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	return stat(path, &st) == 0 ? st.st_size : 0;
}
