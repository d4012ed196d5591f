/* SPDX-License-Identifier: Apache-2.0 */
/* test_zygote.c - zygotes that cannot be started, and the arguments of those that
 * can. */
#include <dirent.h>

#include <xrun/proc.h>

#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "worker/proc/serve.h"
#include "worker/proc/zygote.h"

TestSuite(zygote, .timeout = 150);

static struct xr_error error;

static int
descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	NEED(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* Returns the status of a start by a zygote of this program, or of @module. Expects that
 * a start that fails leaves no descriptor. */
static enum xr_status
start(const char *module)
{
	struct zygote_start s = {
		.module = module,
		.card = -1,
		.place = -1,
		.life = -1,
	};
	int before = descriptors();
	enum xr_status status;

	errno = 0;
	status = zygote_start(&s, &error);
	EXPECT_EQ(descriptors(), before);
	EXPECT_EQ(s.life, -1);
	return status;
}

FORKED_TEST(zygote, a_program_that_did_not_call_xr_init_has_none)
{
	EXPECT_EQ(start(NULL), XR_E_STATE);
	EXPECT_STR(error.text,
		"xr_init() comes first, or a module, or method fork");
}

FORKED_TEST(zygote, without_xrun_worker_a_module_has_none)
{
	EXPECT_EQ(start("module.so"), XR_E_NOTFOUND);
	EXPECT(strstr(error.text, "xrun/xrun-worker is not there") != NULL);
}

FORKED_TEST(zygote, an_error_of_socketpair_is_reported)
{
	NEED(seccomp_refuse(SYS_socketpair, ENFILE) == 0);
	EXPECT_EQ(start("module.so"), XR_E_SYS);
	EXPECT_EQ(error.sys, ENFILE);
	EXPECT_STR(error.text, "socketpair: Too many open files in system");
}

/* Expects that the program is not executed because of @sys. */
static void
expect_none_because_of(int sys)
{
	char path[4096], text[sizeof(path) + 64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	NEED(n > 0);
	path[n] = '\0';
	EXPECT_EQ(start(NULL), XR_E_SYS);
	EXPECT_EQ(error.sys, sys);
	snprintf(text, sizeof(text), "%.160s: %s", path, strerror(sys));
	EXPECT_STR(error.text, text);
}

FORKED_TEST(zygote, an_error_of_execve_is_reported)
{
	NEED(xr_init(&error) == XR_OK);
	NEED(seccomp_refuse(SYS_execve, E2BIG) == 0);
	expect_none_because_of(E2BIG);
}

FORKED_TEST(zygote, an_error_of_clone_is_reported)
{
	NEED(xr_init(&error) == XR_OK);
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_vfork, EAGAIN) == 0);
	expect_none_because_of(EAGAIN);
}

/* By a zygote that was forked for @of. */
static enum xr_status
start_of(const void *of, int card)
{
	struct zygote_start s = { .of = of, .card = card, .place = -1 };

	memset(&error, 0, sizeof(error));
	errno = 0;
	return zygote_start(&s, &error);
}

FORKED_TEST(zygote, one_that_was_killed_is_gone_and_one_that_is_there_stays)
{
	static const char of;
	char want[64];
	siginfo_t info;
	int pid = 0, card = open("/dev/null", O_RDONLY | O_CLOEXEC);

	NEED(zygote_fork(&of, &error) == XR_OK);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(start_of(&of, -1), XR_E_SYS);
		EXPECT_EQ(error.sys, EBADF);
		NEED(sscanf(error.text, "process %d, ", &pid) == 1);
		snprintf(want, sizeof(want),
			"process %d, which makes others: %s", pid,
			strerror(EBADF));
		EXPECT_STR(error.text, want);
	}
	NEED(pid > 0 && kill(pid, SIGKILL) == 0);
	NEED(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(start_of(&of, card), XR_E_STATE);
		EXPECT_STR(error.text,
			"the process that made others by fork is gone");
		EXPECT(forked_childless());
	}
}

FORKED_TEST(zygote, each_has_one_of_its_own_until_it_is_ended)
{
	static const char of[3];

	for (int i = 0; i < 3; i++)
		NEED(zygote_fork(&of[i], &error) == XR_OK);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(start_of(&of[i], -1), XR_E_SYS);
	zygote_end(&of[1]);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(start_of(&of[i], -1), i == 1 ? XR_E_STATE : XR_E_SYS);
	EXPECT(!forked_childless());
	zygote_end_all();
	EXPECT(forked_childless());
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(start_of(&of[i], -1), XR_E_STATE);
}

/* The most bytes of one read. */
static size_t at_a_time = SIZE_MAX;

ssize_t __real_fd_read_some(int fd, void *data, size_t len);
ssize_t __wrap_fd_read_some(int fd, void *data, size_t len);

ssize_t
__wrap_fd_read_some(int fd, void *data, size_t len)
{
	return __real_fd_read_some(fd, data, len < at_a_time ? len : at_a_time);
}

static void
expect_own_arguments(void)
{
	static char line[1 << 16];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, line, sizeof(line) - 1);
	char **argv = serve_argv(), *want = line;
	size_t n = 0;

	cr_assert_gt(len, 0);
	cr_assert_not_null(argv);
	for (; want < line + len && argv[n] != NULL; n++) {
		cr_expect_str_eq(argv[n], want, "%zu: %s, not %s", n, argv[n],
			want);
		want += strlen(want) + 1;
	}
	cr_expect_eq(want - line, len, "%zu arguments", n);
	cr_expect_null(argv[n]);
	free(argv);
	close(fd);
}

Test(zygote, a_program_is_executed_again_with_all_its_arguments)
{
	expect_own_arguments();
	at_a_time = 1;
	expect_own_arguments();
}
