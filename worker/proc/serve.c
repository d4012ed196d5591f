/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - see zygote.h; and xr_init(). One thread, and all signals blocked. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <xrun/proc.h>

#include "base/along.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "proc/descend.h"
#include "segment/member.h"
#include "worker/proc/body.h"
#include "worker/proc/meet.h"
#include "worker/proc/serve.h"
#include "worker/proc/zygote.h"

#define SWEEP_NS (5 * NS_PER_S)

/* A process that was made here, until it ended. */
struct ward {
	pid_t pid;
	int life; /* the other end is its maker's */
};

static struct {
	int socket, parent, signals;
	struct sigaction at_child; /* as it was */
	struct ward *wards;
	size_t count, cap;
} z = { .socket = -1 };

static bool is_known;

/* --- as its children see it ------------------------------------------------ */

/* What is the zygote's own is none of the child's. */
static void
let_go(void)
{
	for (size_t i = 0; i < z.count; i++)
		close(z.wards[i].life);
	free(z.wards);
	z.wards = NULL;
	z.count = z.cap = 0;
	close(z.socket);
	close(z.parent);
	close(z.signals);
}

/* Standard input, output and error as the order has them. */
static int
take_stdio(const struct zygote_order *o, const struct along *got)
{
	int next = 0;

	for (int fd = 0; fd < 3; fd++) {
		if (!(o->flags & (1u << fd)))
			close(fd);
		else if (dup2(got->fd[next++], fd) == -1)
			_exit(125);
	}
	for (int i = 0; i < next; i++)
		close(got->fd[i]);
	return next;
}

static void
enter_folder(const char *path)
{
	char now[PATH_MAX];

	if (path[0] == '\0' ||
		(getcwd(now, sizeof(now)) != NULL && strcmp(now, path) == 0))
		return;
	if (chdir(path) == -1)
		_exit(125);
}

#define TAG_ROOM 64

/* @fd for what is executed, and the variable that names it. */
static char *
bequeath(int fd, const char *name, char *out)
{
	struct stat st;

	fd = fcntl(fd, F_DUPFD, 3); /* not close-on-exec */
	if (fd == -1 || fstat(fd, &st) == -1)
		_exit(125);
	snprintf(out, TAG_ROOM, "%s=%d:%llu", name, fd,
		(unsigned long long)st.st_ino);
	return out;
}

/* The program once more, which finds the card by its variable. */
static void __attribute__((noreturn))
execute(const struct card *card, int fd, int place)
{
	char path[PATH_MAX], tags[2][TAG_ROOM];
	char **argv = serve_argv(), **env;
	size_t n = 0;

	while (card->env[n] != NULL)
		n++;
	env = calloc(n + 4, sizeof(*env));
	if (argv == NULL || env == NULL)
		_exit(125);
	memcpy(env, card->env, n * sizeof(*env));
	env[n++] = bequeath(fd, CARD_VARIABLE, tags[0]);
	if (place != -1)
		env[n++] = bequeath(place, MEET_VARIABLE, tags[1]);
	if (!given_bequeath(&env[n]))
		_exit(125);
	execve(serve_path(path), argv, env);
	_exit(127);
}

/* The mask of the thread that asked. */
static void
take_signals(const struct zygote_order *o)
{
	sigset_t mask;

	sigemptyset(&mask);
	memcpy(&mask, &o->mask, sizeof(o->mask));
	sigaction(SIGCHLD, &z.at_child, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void __attribute__((noreturn))
be_child(pid_t maker, const struct zygote_order *o, struct along *got)
{
	struct xr_error err = { 0 };
	int fd, place = -1, n;
	struct card card;

	body_bind(maker);
	let_go();
	n = take_stdio(o, got);
	fd = got->fd[n++];
	if (o->flags & ZYGOTE_MEETS)
		place = got->fd[n++];
	for (uint32_t i = 0; i < o->given; i++)
		given_add(got->fd[n++]);
	close(got->fd[n]); /* the zygote says how it ends */
	if (card_read(fd, &card, &err) != XR_OK) {
		dprintf(STDERR_FILENO, "xrun: %s\n", err.text);
		_exit(125);
	}
	enter_folder(card.text[CARD_FOLDER]);
	take_signals(o);
	if (o->flags & ZYGOTE_EXECUTES)
		execute(&card, fd, place);
	if (place != -1)
		meet_take(place, card.ordinal);
	environ = (char **)(uintptr_t)card.env;
	body_run(&card, fd, false);
}

/* --- the zygote ------------------------------------------------------------ */

static void
end_ward(const siginfo_t *info)
{
	struct zygote_end end = {
		.code = info->si_code,
		.status = info->si_status,
	};

	for (size_t i = 0; i < z.count; i++) {
		if (z.wards[i].pid != info->si_pid)
			continue;
		send(z.wards[i].life, &end, sizeof(end), MSG_NOSIGNAL);
		close(z.wards[i].life);
		z.wards[i] = z.wards[--z.count];
		return;
	}
}

/* Those of ours, and what they left behind. */
static void
reap(void)
{
	struct signalfd_siginfo all[16];
	siginfo_t info;

	while (read(z.signals, all, sizeof(all)) > 0)
		continue;
	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == -1 ||
			info.si_pid == 0)
			return;
		end_ward(&info);
	}
}

/* The parent is gone, or wants no more: nobody stays. */
static void __attribute__((noreturn))
leave(void)
{
	const struct descend all = { 0 };

	descend_end(&all, clock_now() + SWEEP_NS);
	_exit(0);
}

static void
answer(pid_t pid, int sys, int pidfd)
{
	struct zygote_answer a = { .pid = pid, .sys = sys };

	if (along_send(z.socket, &a, sizeof(a), pidfd) != sizeof(a))
		leave();
}

static bool
has_room(void)
{
	struct ward *more;
	size_t cap = z.cap == 0 ? 64 : 2 * z.cap;

	if (z.count < z.cap)
		return true;
	more = reallocarray(z.wards, cap, sizeof(*more));
	if (more == NULL)
		return false;
	z.wards = more;
	z.cap = cap;
	return true;
}

/* One more. Its pidfd is had while it is ours, so it is its. */
static void
make(const struct zygote_order *o, struct along *got)
{
	pid_t self = getpid(), pid;
	int pidfd = -1;

	if (!has_room()) {
		answer(0, ENOMEM, -1);
		return;
	}
	pid = fork();
	if (pid == 0)
		be_child(self, o, got);
	if (pid == -1) {
		answer(0, errno, -1);
		return;
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd == -1) {
		answer(0, errno, -1);
		kill(pid, SIGKILL);
		return;
	}
	z.wards[z.count++] = (struct ward){ pid, got->fd[got->count - 1] };
	got->count--;
	answer(pid, 0, pidfd);
	close(pidfd);
}

static unsigned
fds_of(const struct zygote_order *o)
{
	unsigned optional = o->flags & (ZYGOTE_STDIO | ZYGOTE_MEETS);

	return 2 + (unsigned)__builtin_popcount(optional) +
		(o->given < GIVEN_MAX ? o->given : GIVEN_MAX);
}

static void
take_order(void)
{
	struct zygote_order o;
	struct along got;
	ssize_t n = along_receive(z.socket, &o, sizeof(o), &got);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		leave();
	if (n == sizeof(o) && got.count == fds_of(&o))
		make(&o, &got);
	else
		answer(0, EINVAL, -1);
	for (unsigned i = 0; i < got.count; i++)
		close(got.fd[i]);
}

bool
serve_has_threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink > 3;
}

/* The socket knows who made it, which is our parent, or was. */
static int
watch_parent(int socket)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd;

	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (getppid() != peer.pid)
		_exit(125); /* it has died, and the descriptor is anybody's */
	return fd;
}

/* Whoever reads what the parent writes is to see the end when that closes it. And what
 * comes with an order has numbers above these. */
static void
have_no_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO && null != -1; fd++)
		if (fd != null)
			dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

/* A thread of the parent made us, and may end long before it: from here on the
 * pidfd counts, and no PDEATHSIG. */
static void
begin(int socket)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t all, child;

	have_no_stdio();
	z.socket = socket;
	fcntl(socket, F_SETFD, FD_CLOEXEC);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Where it is ignored, which exec passes on, nobody is told how a child
	 * ended. */
	sigaction(SIGCHLD, &dfl, &z.at_child);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	z.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	z.parent = watch_parent(socket);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (z.signals == -1 || z.parent == -1) {
		answer(0, errno, -1);
		_exit(125);
	}
	prctl(PR_SET_PDEATHSIG, 0);
}

void
serve(int socket)
{
	struct pollfd on[3];

	begin(socket);
	answer(getpid(), serve_has_threads() ? -1 : 0, -1);
	on[0] = (struct pollfd){ .fd = z.socket, .events = POLLIN };
	on[1] = (struct pollfd){ .fd = z.signals, .events = POLLIN };
	on[2] = (struct pollfd){ .fd = z.parent, .events = POLLIN };
	for (;;) {
		if (poll(on, 3, -1) == -1) /* no signal interrupts it */
			leave();
		if (on[2].revents != 0)
			leave();
		if (on[1].revents != 0)
			reap();
		if (on[0].revents != 0)
			take_order();
	}
}

/* --- being executed -------------------------------------------------------- */

/* The descriptor that @name names: -1 if it is none of that kind. */
static int
inherited(const char *name, mode_t kind)
{
	struct segment_tag tag;
	struct stat st;

	if (!segment_tag_parse(getenv(name), &tag) ||
		fstat(tag.fd, &st) == -1 || (st.st_mode & S_IFMT) != kind ||
		st.st_ino != tag.inode)
		return -1;
	return tag.fd;
}

/* Who dies before xr_init() of its child leaves none. */
__attribute__((constructor)) static void
when_loaded(void)
{
	if (getenv(ZYGOTE_VARIABLE) != NULL &&
		inherited(ZYGOTE_VARIABLE, S_IFSOCK) != -1)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static enum xr_status
run_card(struct xr_error *err)
{
	int fd = inherited(CARD_VARIABLE, S_IFREG);
	int place = inherited(MEET_VARIABLE, S_IFREG);
	enum xr_status status;
	struct card card;

	given_inherit();
	unsetenv(CARD_VARIABLE);
	unsetenv(MEET_VARIABLE);
	if (fd == -1)
		return fail(err, XR_E_STATE,
			"%s names no card: it is for children of a program's zygote",
			CARD_VARIABLE);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	status = card_read(fd, &card, err);
	if (status != XR_OK)
		return status;
	if (place != -1) {
		fcntl(place, F_SETFD, FD_CLOEXEC);
		meet_take(place, card.ordinal);
	}
	body_run(&card, fd, true);
}

XR_EXPORT enum xr_status
xr_init(struct xr_error *err)
{
	int socket;

	if (is_known)
		return XR_OK;
	if (getenv(CARD_VARIABLE) != NULL) {
		is_known = true; /* it may start others */
		return run_card(err);
	}
	if (getenv(ZYGOTE_VARIABLE) == NULL) {
		is_known = true;
		return XR_OK;
	}
	socket = inherited(ZYGOTE_VARIABLE, S_IFSOCK);
	unsetenv(ZYGOTE_VARIABLE);
	if (socket == -1)
		return fail(err, XR_E_STATE, "%s names no socket of a program",
			ZYGOTE_VARIABLE);
	is_known = true;
	serve(socket);
}

bool
serve_is_known(void)
{
	return is_known;
}

/* --- this program ---------------------------------------------------------- */

/* By its name, so that ps(1) has that, where it is still this file. */
const char *
serve_path(char *path)
{
	static const char self[] = "/proc/self/exe";
	ssize_t n = readlink(self, path, PATH_MAX - 1);
	struct stat a, b;

	if (n <= 0)
		return self;
	path[n] = '\0';
	if (stat(self, &a) == -1 || stat(path, &b) == -1 ||
		a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return self;
	return path;
}

/* All of /proc/self/cmdline, which says no size; NULL: no memory. */
static char *
read_command(size_t *len)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t cap = 4096;
	char *text = NULL, *more;
	ssize_t n;

	for (*len = 0;; *len += (size_t)n) {
		if (text == NULL || cap - *len < 2) {
			cap *= 2;
			more = realloc(text, cap);
			if (more == NULL)
				break;
			text = more;
		}
		n = fd_read_some(fd, text + *len, cap - *len - 1);
		if (n <= 0) {
			fd_close(fd);
			text[*len] = '\0';
			return text;
		}
	}
	fd_close(fd);
	free(text);
	return NULL;
}

char **
serve_argv(void)
{
	size_t len = 0, count = 0, n = 0;
	char *text = read_command(&len), *at, **argv;

	if (text == NULL)
		return NULL;
	for (size_t i = 0; i < len; i++)
		count += text[i] == '\0';
	argv = malloc((count + 1) * sizeof(*argv) + len + 1);
	if (argv != NULL) {
		at = memcpy(argv + count + 1, text, len + 1);
		for (; n < count; at += strlen(at) + 1)
			argv[n++] = at;
		argv[n] = NULL;
	}
	free(text);
	return argv;
}
