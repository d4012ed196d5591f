/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c - see zygote.h. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <xrun/status.h>

#include "base/along.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "worker/proc/report.h"
#include "worker/proc/serve.h"
#include "worker/proc/zygote.h"

#define PATIENCE_NS (60 * NS_PER_S)
#define END_MS      10000 /* more than its own patience with those below it */

struct zygote {
	struct zygote *next;
	char *module;   /* NULL: the program */
	const void *of; /* it was forked, for that */
	pid_t pid;
	int pidfd;
	int socket;
};

static struct zygote *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- what it executes ------------------------------------------------------ */

/* xrun-worker is installed below this library, and built beside it. */
static enum xr_status
worker_path(char *path, struct xr_error *err)
{
	static const char *const tries[] = { "xrun/xrun-worker",
		"xrun-worker" };
	char self[PATH_MAX];
	Dl_info info = { 0 };
	int folder = 0;

	if (dladdr((const void *)zygote_start, &info) != 0 &&
		realpath(info.dli_fname, self) != NULL)
		folder = (int)(strrchr(self, '/') + 1 - self);
	for (int i = 0; i < 2; i++) {
		snprintf(path, PATH_MAX, "%.*s%s", folder, self, tries[i]);
		if (access(path, X_OK) == 0)
			return XR_OK;
	}
	return fail(err, XR_E_NOTFOUND, "%.*s%s is not there", folder, self,
		tries[0]);
}

/* Environment of a zygote: this process's, and its socket. One piece of memory. */
static char **
zygote_env(int socket)
{
	static const size_t room = 64;
	size_t n = 0, kept = 0;
	struct stat st;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = calloc(1, (n + 2) * sizeof(*env) + room);
	if (env == NULL || fstat(socket, &st) == -1) {
		free(env);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], ZYGOTE_VARIABLE "=",
			    sizeof(ZYGOTE_VARIABLE)) != 0)
			env[kept++] = environ[i];
	env[kept] = (char *)(env + n + 2);
	snprintf(env[kept], room, ZYGOTE_VARIABLE "=%d:%llu", socket,
		(unsigned long long)st.st_ino);
	return env;
}

static enum xr_status
execute(struct zygote *z, int socket, const char *path, char **argv,
	struct xr_error *err)
{
	char **env = zygote_env(socket);
	posix_spawn_file_actions_t files;
	int sys;

	if (env == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	posix_spawn_file_actions_init(&files);
	/* Of a descriptor to itself: it stays open. */
	posix_spawn_file_actions_adddup2(&files, socket, socket);
	sys = posix_spawn(&z->pid, path, &files, NULL, argv, env);
	posix_spawn_file_actions_destroy(&files);
	free(env);
	errno = sys;
	return sys == 0 ?
		XR_OK :
		fail(err, XR_E_SYS, "%.160s: %s", path, strerror(sys));
}

static enum xr_status
execute_program(struct zygote *z, int socket, struct xr_error *err)
{
	char path[PATH_MAX], **argv = serve_argv();
	enum xr_status status;

	if (argv == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = execute(z, socket, serve_path(path), argv, err);
	free(argv);
	return status;
}

static enum xr_status
execute_worker(struct zygote *z, int socket, struct xr_error *err)
{
	char path[PATH_MAX], name[] = "xrun-worker";
	char *argv[] = { name, z->module, NULL };
	enum xr_status status = worker_path(path, err);

	return status == XR_OK ? execute(z, socket, path, argv, err) : status;
}

/* --- making and ending one ------------------------------------------------- */

/* It ends by itself, with all below it, once nobody asks it any more; unless somebody
 * has stopped it. */
static void
end(struct zygote *z)
{
	struct pollfd on = { .fd = z->pidfd, .events = POLLIN };

	fd_close(z->socket);
	if (z->pid > 0) {
		if (z->pidfd == -1 || poll(&on, 1, END_MS) == 0)
			kill(z->pid, SIGKILL);
		while (waitpid(z->pid, NULL, 0) == -1 && errno == EINTR)
			continue;
	}
	fd_close(z->pidfd);
	free(z->module);
	free(z);
}

/* The next packet of it. XR_E_STATE: it is gone. */
static enum xr_status
hear(struct zygote *z, struct zygote_answer *a, int *pidfd,
	struct xr_error *err)
{
	int64_t deadline = clock_now() + PATIENCE_NS;
	struct pollfd on = { .fd = z->socket, .events = POLLIN };
	struct along got;
	ssize_t n;

	for (;;) {
		n = along_receive(z->socket, a, sizeof(*a), &got);
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
		if (poll(&on, 1, run_ms(deadline)) == 0)
			return fail(err, XR_E_TIMEOUT,
				"process %d did not get to its xr_init() in 60 s",
				(int)z->pid);
	}
	for (unsigned i = n == sizeof(*a) ? 1 : 0; i < got.count && n >= 0; i++)
		close(got.fd[i]);
	if (n != sizeof(*a))
		return fail(err, XR_E_STATE,
			"process %d ended before it got to its xr_init()",
			(int)z->pid);
	*pidfd = got.count > 0 ? fd_above_stdio(got.fd[0]) : -1;
	return XR_OK;
}

static enum xr_status
greet(struct zygote *z, struct xr_error *err)
{
	struct zygote_answer a;
	int none;
	enum xr_status status = hear(z, &a, &none, err);

	if (status == XR_OK && a.sys == -1)
		return fail(err, XR_E_STATE,
			"the program has threads before its xr_init()");
	errno = status == XR_OK ? a.sys : 0;
	if (status == XR_OK && a.sys != 0)
		return fail(err, XR_E_SYS, "process %d: %s", (int)z->pid,
			strerror(a.sys));
	return status;
}

/* Others have standard input, output and error, also those that are closed. */
static bool
make_pair(int type, int pair[2])
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == -1)
		return false;
	pair[0] = fd_above_stdio(pair[0]);
	pair[1] = fd_above_stdio(pair[1]);
	if (pair[0] != -1 && pair[1] != -1)
		return true;
	fd_close(pair[0]);
	fd_close(pair[1]);
	return false;
}

static enum xr_status
begin(struct zygote *z, struct xr_error *err)
{
	enum xr_status status;
	int pair[2];

	if (!make_pair(SOCK_SEQPACKET, pair))
		return fail(err, XR_E_SYS, "socketpair: %s", strerror(errno));
	z->socket = pair[0];
	status = z->module == NULL ? execute_program(z, pair[1], err) :
				     execute_worker(z, pair[1], err);
	close(pair[1]);
	if (status != XR_OK)
		return status;
	z->pidfd = fd_above_stdio((int)syscall(SYS_pidfd_open, z->pid, 0));
	status = greet(z, err);
	if (status != XR_OK)
		kill(z->pid, SIGKILL); /* it is not reaped yet */
	return status;
}

static bool
is_for(const struct zygote *z, const char *module, const void *of)
{
	if (of != NULL || z->of != NULL)
		return z->of == of;
	if (module == NULL || z->module == NULL)
		return module == z->module;
	return strcmp(module, z->module) == 0;
}

static struct zygote **
find(const char *module, const void *of)
{
	struct zygote **at = &all;

	while (*at != NULL && !is_for(*at, module, of))
		at = &(*at)->next;
	return at;
}

static enum xr_status
make(const char *module, struct zygote **made, struct xr_error *err)
{
	struct zygote *z = calloc(1, sizeof(*z));
	enum xr_status status = XR_OK;

	if (z == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	z->socket = z->pidfd = -1;
	z->module = module != NULL ? strdup(module) : NULL;
	if (module != NULL && z->module == NULL)
		status = fail(err, XR_E_NOMEM, "out of memory");
	if (status == XR_OK)
		status = begin(z, err);
	if (status != XR_OK) {
		end(z);
		return status;
	}
	z->next = all;
	all = z;
	*made = z;
	return XR_OK;
}

/* --- asking it ------------------------------------------------------------- */

/* As along_send(), of many. */
static bool
send_order(int socket, const struct zygote_order *o, const int *fds,
	unsigned count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(ZYGOTE_FDS * sizeof(int))];
	} ancillary = { 0 };
	struct iovec io = { (void *)(uintptr_t)o, sizeof(*o) };
	struct msghdr h = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *m = CMSG_FIRSTHDR(&h);

	m->cmsg_level = SOL_SOCKET;
	m->cmsg_type = SCM_RIGHTS;
	m->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(m), fds, count * sizeof(int));
	return sendmsg(socket, &h, MSG_NOSIGNAL) == (ssize_t)sizeof(*o);
}

/* XR_E_STATE: it is gone. */
static enum xr_status
ask(struct zygote *z, struct zygote_start *s, int their_life,
	struct xr_error *err)
{
	struct zygote_order o = { .flags = s->executes ? ZYGOTE_EXECUTES : 0 };
	struct zygote_answer a = { 0 };
	int fds[ZYGOTE_FDS];
	enum xr_status status;
	sigset_t mask;
	unsigned n = 0;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (s->mask != NULL)
		mask = *s->mask;
	memcpy(&o.mask, &mask, sizeof(o.mask));
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) == -1)
			continue;
		o.flags |= 1u << fd;
		fds[n++] = fd;
	}
	fds[n++] = s->card;
	if (s->place != -1) {
		o.flags |= ZYGOTE_MEETS;
		fds[n++] = s->place;
	}
	for (uint32_t i = 0; i < s->give_count; i++)
		fds[n++] = s->give[i];
	o.given = s->give_count;
	fds[n++] = their_life;
	if (!send_order(z->socket, &o, fds, n))
		return fail(err, errno == EPIPE ? XR_E_STATE : XR_E_SYS,
			"process %d, which makes others: %s", (int)z->pid,
			strerror(errno));
	status = hear(z, &a, &s->pidfd, err);
	errno = a.sys;
	if (status == XR_OK && a.pid == 0)
		status = fail(err, XR_E_SYS, "fork: %s", strerror(a.sys));
	s->pid = a.pid;
	return status;
}

/* Of one that is there; one that has been killed is made anew. */
static enum xr_status
ask_one(struct zygote_start *s, int their_life, struct xr_error *err)
{
	struct zygote **at = find(s->module, s->of), *z = *at;
	enum xr_status status = XR_E_STATE;

	if (z != NULL) {
		status = ask(z, s, their_life, err);
		if (status != XR_E_STATE)
			return status;
		*at = z->next;
		end(z);
	}
	if (s->of != NULL)
		return fail(err, XR_E_STATE,
			"the process that made others by fork is gone");
	status = make(s->module, &z, err);
	return status == XR_OK ? ask(z, s, their_life, err) : status;
}

enum xr_status
zygote_start(struct zygote_start *s, struct xr_error *err)
{
	enum xr_status status;
	int ends[2];

	if (s->module == NULL && s->of == NULL && !serve_is_known())
		return fail(err, XR_E_STATE,
			"xr_init() comes first, or a module, or method fork");
	if (!make_pair(SOCK_STREAM, ends))
		return fail(err, XR_E_SYS, "socketpair: %s", strerror(errno));
	pthread_mutex_lock(&lock);
	status = ask_one(s, ends[1], err);
	pthread_mutex_unlock(&lock);
	close(ends[1]);
	if (status == XR_OK)
		s->life = ends[0];
	else
		close(ends[0]);
	return status;
}

/* It serves, from here on. */
static enum xr_status
begin_by_fork(struct zygote *z, struct xr_error *err)
{
	int pair[2];

	if (!make_pair(SOCK_SEQPACKET, pair))
		return fail(err, XR_E_SYS, "socketpair: %s", strerror(errno));
	z->socket = pair[0];
	fflush(NULL); /* what stdio holds would be written by both */
	z->pid = fork();
	if (z->pid == 0) {
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	if (z->pid == -1)
		return fail(err, XR_E_SYS, "fork: %s", strerror(errno));
	z->pidfd = fd_above_stdio((int)syscall(SYS_pidfd_open, z->pid, 0));
	return greet(z, err);
}

enum xr_status
zygote_fork(const void *of, struct xr_error *err)
{
	struct zygote *z;
	enum xr_status status;

	if (serve_has_threads())
		return fail(err, XR_E_STATE,
			"method fork: this process has threads");
	z = calloc(1, sizeof(*z));
	if (z == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	z->socket = z->pidfd = -1;
	z->of = of;
	status = begin_by_fork(z, err);
	if (status != XR_OK) {
		end(z);
		return status;
	}
	pthread_mutex_lock(&lock);
	z->next = all;
	all = z;
	pthread_mutex_unlock(&lock);
	return XR_OK;
}

void
zygote_end(const void *of)
{
	struct zygote **at, *z;

	pthread_mutex_lock(&lock);
	at = find(NULL, of);
	z = *at;
	if (z != NULL)
		*at = z->next;
	pthread_mutex_unlock(&lock);
	if (z != NULL)
		end(z);
}

void
zygote_end_all(void)
{
	struct zygote *z;

	pthread_mutex_lock(&lock);
	while ((z = all) != NULL) {
		all = z->next;
		end(z);
	}
	pthread_mutex_unlock(&lock);
}

void
zygote_forget(void)
{
	struct zygote *z;

	pthread_mutex_init(&lock, NULL);
	while ((z = all) != NULL) {
		all = z->next;
		z->pid = 0;
		end(z);
	}
}
