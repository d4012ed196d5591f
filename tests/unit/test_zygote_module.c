/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_zygote_module.c - the parent of a zygote (worker/proc/zygote.c): what it executes,
 * what it orders, and what it makes of the answers. The zygote is this program, which
 * answers as the variable FAKE says.
 */
#include <poll.h>
#include <pthread.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <xrun/proc.h>

#include "base/along.h"
#include "base/clock.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/proc/zygote.h"

TestSuite(zygote_module, .init = folder_make, .fini = folder_remove,
	.timeout = 150);

static struct xr_error error;

/* --- the zygote ------------------------------------------------------------------------ */

/* What a zygote says of an order, in the other end of its life. */
struct heard {
	struct zygote_order order;
	uint32_t count;
	uint64_t inode[ZYGOTE_FDS];
};

static uint64_t
inode_of(int fd)
{
	struct stat st = { 0 };

	fstat(fd, &st);
	return st.st_ino;
}

/* "ARGC ARGV[0] ARGV[1] OTHER SOCKETS" as a line of the file STARTS. */
static void
note_start(int argc, char **argv)
{
	const char *other = getenv("OTHER");
	int fd = open(getenv("STARTS"), O_WRONLY | O_APPEND | O_CLOEXEC), n = 0;

	for (char **e = environ; *e != NULL; e++)
		n += strncmp(*e, ZYGOTE_VARIABLE "=",
			     sizeof(ZYGOTE_VARIABLE)) == 0;
	dprintf(fd, "%d %s %s %s %d\n", argc,
		strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 :
						argv[0],
		argc > 1 ? argv[1] : "", other != NULL ? other : "", n);
	close(fd);
}

static void
answer(int socket, int32_t pid, int32_t sys, int fd)
{
	const struct zygote_answer a = { .pid = pid, .sys = sys };

	if (along_send(socket, &a, sizeof(a), fd) != sizeof(a))
		_exit(81);
}

static void __attribute__((noreturn))
stay(void)
{
	int fd = open(getenv("PAUSED"), O_WRONLY | O_CLOEXEC);

	if (write(fd, "p", 1) != 1)
		_exit(84);
	for (;;)
		pause();
}

static void
hear_order(int socket, const char *fake)
{
	struct pollfd on = { .fd = socket, .events = POLLIN };
	struct heard heard = { .count = 0 };
	struct along got;
	ssize_t n;

	poll(&on, 1, -1);
	n = along_receive(socket, &heard.order, sizeof(heard.order), &got);
	if (n <= 0)
		_exit(0);
	heard.count = got.count;
	for (unsigned i = 0; i < got.count; i++)
		heard.inode[i] = inode_of(got.fd[i]);
	if (strcmp(fake, "leaves") == 0)
		_exit(0);
	if (strcmp(fake, "stays") == 0)
		stay();
	if (strcmp(fake, "refuses") == 0) {
		answer(socket, 0, EAGAIN, -1);
	} else {
		if (write(got.fd[got.count - 1], &heard, sizeof(heard)) !=
			sizeof(heard))
			_exit(82);
		answer(socket, 4242, 0, got.fd[0]);
	}
	for (unsigned i = 0; i < got.count; i++)
		close(got.fd[i]);
}

static void __attribute__((noreturn))
be_zygote(const char *fake)
{
	const char *tag = getenv(ZYGOTE_VARIABLE);
	unsigned long long inode = 0;
	int socket = -1;

	alarm(20);
	if (tag == NULL || sscanf(tag, "%d:%llu", &socket, &inode) != 2 ||
		inode_of(socket) != inode)
		_exit(80);
	if (strcmp(fake, "dies") == 0)
		_exit(0);
	if (strcmp(fake, "is short") == 0 && write(socket, "abc", 3) != 3)
		_exit(83);
	if (strcmp(fake, "has threads") == 0)
		answer(socket, getpid(), -1, -1);
	if (strcmp(fake, "fails") == 0)
		answer(socket, getpid(), EMFILE, -1);
	while (strcmp(fake, "says nothing") == 0)
		pause();
	answer(socket, getpid(), 0, -1);
	for (;;)
		hear_order(socket, fake);
}

static char **arguments; /* of this program; the first one says where it is */

__attribute__((constructor)) static void
look_who_it_is(int argc, char **argv, char **env)
{
	const char *fake = getenv("FAKE");

	(void)env;
	arguments = argv;
	if (fake == NULL || getenv(ZYGOTE_VARIABLE) == NULL)
		return;
	note_start(argc, argv);
	be_zygote(fake);
}

/* --- time ------------------------------------------------------------------------------- */

int64_t __wrap_clock_now(void);
int __real_poll(struct pollfd *on, nfds_t n, int ms);
int __wrap_poll(struct pollfd *on, nfds_t n, int ms);

static bool hurries; /* waits end by their time at once */
static int paused[2] = { -1,
	-1 }; /* a pipe: they do, once there is something in it */
static int asked_ms;

int64_t
__wrap_clock_now(void)
{
	return 1000 * NS_PER_S;
}

int
__wrap_poll(struct pollfd *on, nfds_t n, int ms)
{
	struct pollfd two[2] = { { 0 }, { .events = POLLIN } };

	if (ms > 0)
		asked_ms = ms;
	if (ms <= 0)
		return __real_poll(on, n, ms);
	if (hurries)
		return 0;
	two[0] = on[0];
	two[1].fd = paused[0];
	if (__real_poll(two, 2, -1) == -1)
		return -1;
	on[0].revents = two[0].revents;
	return two[0].revents != 0;
}

/* --- the parent -------------------------------------------------------------------------- */

static int starts; /* a file: a line of each start */

/* xrun-worker is @path in the folder of the test, in which this program seems to be. */
static void
have_worker(const char *path, const char *fake)
{
	static char program[PATH_MAX + 16], text[64];
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	NEED(n > 0);
	self[n] = '\0';
	snprintf(program, sizeof(program), "%s/program", folder);
	close(open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700));
	arguments[0] = program;
	NEED(mkdir("xrun", 0700) == 0 || errno == EEXIST);
	if (path != NULL)
		NEED(symlink(self, path) == 0);
	starts = fcntl(fileno(tmpfile()), F_DUPFD_CLOEXEC, 50);
	NEED(starts != -1);
	snprintf(text, sizeof(text), "/proc/%d/fd/%d", (int)getpid(), starts);
	setenv("STARTS", text, 1);
	setenv("FAKE", fake, 1);
	setenv("OTHER", "other", 1);
}

static const char *
all_starts(void)
{
	static char text[1024];
	ssize_t n = pread(starts, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static unsigned
descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static struct zygote_start
start_of(const char *module, int card)
{
	return (struct zygote_start){
		.module = module,
		.card = card,
		.place = -1,
		.life = -1,
		.pidfd = -1,
	};
}

/* Starts by a zygote of @module, and expects that it works. */
static struct heard
start(struct zygote_start *s)
{
	struct heard heard = { 0 };

	memset(&error, 0, sizeof(error));
	EXPECT_EQ(zygote_start(s, &error), XR_OK);
	NEED(s->life != -1);
	EXPECT_EQ(s->pid, 4242);
	EXPECT_EQ(read(s->life, &heard, sizeof(heard)), sizeof(heard));
	EXPECT_EQ(inode_of(s->pidfd), heard.inode[0]);
	close(s->life);
	close(s->pidfd);
	return heard;
}

static int
open_null(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* --- what it executes ----------------------------------------------------------------------- */

FORKED_TEST(zygote_module, the_worker_has_the_module_and_one_socket)
{
	struct zygote_start s = start_of("m.so", open_null());

	have_worker("xrun/xrun-worker", "works");
	setenv(ZYGOTE_VARIABLE, "99:1", 1);
	start(&s);
	EXPECT_STR(all_starts(), "2 xrun-worker m.so other 1\n");
	unsetenv(ZYGOTE_VARIABLE);
	start(&s);
	EXPECT_STR(all_starts(), "2 xrun-worker m.so other 1\n");
	zygote_end_all();
}

FORKED_TEST(zygote_module, a_worker_beside_the_library_is_found_too)
{
	struct zygote_start s = start_of("m.so", open_null());

	have_worker("xrun-worker", "works");
	start(&s);
	EXPECT_STR(all_starts(), "2 xrun-worker m.so other 1\n");
	zygote_end_all();
}

FORKED_TEST(zygote_module, the_first_place_of_the_worker_counts)
{
	struct zygote_start s = start_of("m.so", open_null());

	have_worker("xrun/xrun-worker", "works");
	close(open("xrun-worker", O_WRONLY | O_CREAT | O_CLOEXEC, 0700));
	start(&s);
	zygote_end_all();
}

FORKED_TEST(zygote_module, without_a_worker_its_place_is_told)
{
	struct zygote_start s = start_of("m.so", -1);
	char want[PATH_MAX + 64];

	have_worker(NULL, "works");
	close(open("xrun-worker", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	EXPECT_EQ(zygote_start(&s, &error), XR_E_NOTFOUND);
	snprintf(want, sizeof(want), "%s/xrun/xrun-worker is not there",
		folder);
	EXPECT(strncmp(error.text, want, sizeof(error.text) - 1) == 0);
	EXPECT(forked_childless());
}

FORKED_TEST(zygote_module, a_module_is_passed_with_its_whole_path)
{
	const struct xr_proc_opts o = { .size = sizeof(o),
		.func = "f",
		.module = "./m.so" };
	char want[PATH_MAX + 64];
	struct xr_proc *proc = NULL;

	have_worker("xrun/xrun-worker", "refuses");
	close(open("m.so", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	EXPECT_EQ(xr_proc_start(&o, &proc, &error), XR_E_SYS);
	snprintf(want, sizeof(want), "2 xrun-worker %s/m.so other 1\n", folder);
	EXPECT_STR(all_starts(), want);
	zygote_end_all();
}

FORKED_TEST(zygote_module, there_is_one_for_each_module_and_one_of_the_program)
{
	struct zygote_start s = start_of("a.so", open_null());

	have_worker("xrun/xrun-worker", "works");
	start(&s);
	s.module = "b.so";
	start(&s);
	s.module = "a.so";
	start(&s);
	EXPECT_STR(all_starts(),
		"2 xrun-worker a.so other 1\n2 xrun-worker b.so other 1\n");
	unsetenv("FAKE");
	NEED(xr_init(&error) == XR_OK);
	setenv("FAKE", "works", 1);
	NEED(ftruncate(starts, 0) == 0);
	s.module = NULL;
	start(&s);
	start(&s);
	EXPECT(strchr(all_starts(), '\n') != NULL);
	EXPECT_STR(strchr(all_starts(), '\n'), "\n");
	s.module = "b.so";
	start(&s);
	EXPECT_STR(strchr(all_starts(), '\n'), "\n");
	zygote_end_all();
	EXPECT(forked_childless());
}

/* --- what it orders --------------------------------------------------------------------------- */

FORKED_TEST(zygote_module, an_order_says_all_that_comes_with_it)
{
	int give[GIVEN_MAX], n = 0;
	struct zygote_start s = start_of("m.so", open("/proc/self/exe", 0));
	struct heard heard;
	uint64_t blocked;
	sigset_t mask;

	have_worker("xrun/xrun-worker", "works");
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	NEED(sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
	memcpy(&blocked, &mask, sizeof(blocked));
	heard = start(&s);
	EXPECT_EQ(heard.order.flags, 7);
	EXPECT_EQ(heard.order.given, 0);
	EXPECT(memcmp(&heard.order.mask, &mask, sizeof(heard.order.mask)) == 0);
	EXPECT_EQ(heard.count, 5);
	for (int fd = 0; fd < 3; fd++)
		EXPECT_EQ(heard.inode[fd], inode_of(fd));
	EXPECT_EQ(heard.inode[3], inode_of(s.card));

	for (; n < GIVEN_MAX; n++)
		NEED((give[n] = memfd_create("given", MFD_CLOEXEC)) != -1);
	NEED((s.place = memfd_create("place", MFD_CLOEXEC)) != -1);
	s.give = give;
	s.give_count = GIVEN_MAX;
	s.executes = true;
	sigaddset(&mask, SIGUSR2);
	s.mask = &mask;
	NEED(close(STDOUT_FILENO) == 0);
	heard = start(&s);
	EXPECT_EQ(heard.order.flags, 5 | ZYGOTE_MEETS | ZYGOTE_EXECUTES);
	EXPECT_EQ(heard.order.given, GIVEN_MAX);
	EXPECT(memcmp(&heard.order.mask, &mask, sizeof(heard.order.mask)) == 0);
	EXPECT_EQ(heard.count, 2 + 3 + GIVEN_MAX);
	EXPECT_EQ(heard.inode[0], inode_of(0));
	EXPECT_EQ(heard.inode[1], inode_of(2));
	EXPECT_EQ(heard.inode[2], inode_of(s.card));
	EXPECT_EQ(heard.inode[3], inode_of(s.place));
	for (n = 0; n < GIVEN_MAX; n++)
		EXPECT_EQ(heard.inode[4 + n], inode_of(give[n]));
	zygote_end_all();
}

/* --- what it makes of answers -------------------------------------------------------------------- */

/* Starts by a zygote that is not good, and expects that nothing is left. The text begins
 * with "process PID" if it is @of_process. */
static void
expect_failure(const char *fake, enum xr_status status, int sys,
	const char *text, bool of_process)
{
	struct zygote_start s = start_of("m.so", open_null());
	unsigned open;

	have_worker("xrun/xrun-worker", fake);
	open = descriptors();
	errno = 0;
	EXPECT_EQ(zygote_start(&s, &error), status);
	EXPECT_EQ(error.sys, sys);
	if (of_process) {
		EXPECT(strncmp(error.text, "process ", 8) == 0);
		EXPECT_STR(error.text + 8 +
				strspn(error.text + 8, "0123456789"),
			text);
	} else {
		EXPECT_STR(error.text, text);
	}
	EXPECT_EQ(s.life, -1);
	zygote_end_all();
	EXPECT_EQ(descriptors(), open);
	EXPECT(forked_childless());
}

FORKED_TEST(zygote_module, one_that_has_threads_is_told_of)
{
	expect_failure("has threads", XR_E_STATE, 0,
		"the program has threads before its xr_init()", false);
}

FORKED_TEST(zygote_module, an_error_of_its_begin_is_told)
{
	expect_failure("fails", XR_E_SYS, EMFILE, ": Too many open files",
		true);
}

FORKED_TEST(zygote_module, one_that_dies_is_told_of)
{
	expect_failure("dies", XR_E_STATE, 0,
		" ended before it got to its xr_init()", true);
}

FORKED_TEST(zygote_module, an_answer_that_is_cut_is_none)
{
	expect_failure("is short", XR_E_STATE, 0,
		" ended before it got to its xr_init()", true);
}

FORKED_TEST(zygote_module, an_error_of_its_fork_is_told)
{
	expect_failure("refuses", XR_E_SYS, EAGAIN,
		"fork: Resource temporarily unavailable", false);
}

FORKED_TEST(zygote_module, one_that_says_nothing_has_a_minute)
{
	hurries = true;
	expect_failure("says nothing", XR_E_TIMEOUT, 0,
		" did not get to its xr_init() in 60 s", true);
	EXPECT_EQ(asked_ms, 10000); /* the last wait is for its end */
}

FORKED_TEST(zygote_module, one_that_leaves_is_made_anew_once)
{
	struct zygote_start s = start_of("m.so", open_null());

	have_worker("xrun/xrun-worker", "leaves");
	EXPECT_EQ(zygote_start(&s, &error), XR_E_STATE);
	EXPECT_STR(all_starts(), "2 xrun-worker m.so other 1\n");
	/* The first one is gone, so another one is asked. */
	setenv("FAKE", "works", 1);
	start(&s);
	EXPECT_STR(all_starts(),
		"2 xrun-worker m.so other 1\n2 xrun-worker m.so other 1\n");
	zygote_end_all();
	EXPECT(forked_childless());
}

FORKED_TEST(zygote_module, one_that_does_not_end_is_killed_after_10_s)
{
	struct zygote_start s = start_of("m.so", open_null());
	char path[64];

	have_worker("xrun/xrun-worker", "stays");
	NEED(pipe2(paused, O_CLOEXEC) == 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(),
		paused[1]);
	setenv("PAUSED", path, 1);
	EXPECT_EQ(zygote_start(&s, &error), XR_E_TIMEOUT);
	EXPECT_EQ(asked_ms, 60000);
	zygote_end_all();
	EXPECT_EQ(asked_ms, 10000);
	EXPECT(forked_childless());
}

FORKED_TEST(zygote_module, each_allocation_may_fail)
{
	struct zygote_start s = start_of("m.so", open_null());
	unsigned n = 0, failed = 0, open;
	enum xr_status status;

	have_worker("xrun/xrun-worker", "works");
	open = descriptors();
	do {
		was_short = false;
		until_short = ++n;
		status = zygote_start(&s, &error);
		until_short = 0;
		failed += was_short;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		if (was_short) {
			EXPECT_STR(error.text, "out of memory");
			EXPECT_EQ(descriptors(), open);
			EXPECT(forked_childless());
		}
	} while (was_short && n < 20);
	EXPECT_EQ(failed, 3);
	close(s.life);
	close(s.pidfd);
	zygote_end_all();
	EXPECT_EQ(descriptors(), open);
}

/* --- one that is forked ---------------------------------------------------------------------------- */

static const char of;

static void
expect_no_fork(enum xr_status status, const char *text)
{
	unsigned open = descriptors();

	EXPECT_EQ(zygote_fork(&of, &error), status);
	EXPECT_STR(error.text, text);
	EXPECT_EQ(descriptors(), open);
	EXPECT(forked_childless());
}

static void *
waits(void *none)
{
	while (pause() == -1)
		continue;
	return none;
}

FORKED_TEST(zygote_module, a_zygote_that_cannot_be_forked_leaves_nothing)
{
	pthread_t thread;

	until_short = 1;
	expect_no_fork(XR_E_NOMEM, "out of memory");
	NEED(pthread_create(&thread, NULL, waits, NULL) == 0);
	expect_no_fork(XR_E_STATE, "method fork: this process has threads");
}

FORKED_TEST(zygote_module, an_error_of_fork_is_told)
{
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
	expect_no_fork(XR_E_SYS, "fork: Resource temporarily unavailable");
	EXPECT_EQ(error.sys, EAGAIN);
	NEED(seccomp_refuse(SYS_socketpair, ENFILE) == 0);
	expect_no_fork(XR_E_SYS, "socketpair: Too many open files in system");
	EXPECT_EQ(error.sys, ENFILE);
}
