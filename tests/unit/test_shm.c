/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm.c - what is taken for left in a folder of shared memory, and what
 * not. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "proc/shm.h"
#include "tests/unit/folder.h"

static char told[256];

TestSuite(shm, .init = folder_make, .fini = folder_remove);

static int
make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_neq(fd, -1);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	return fd;
}

static bool
is_there(const char *name)
{
	return access(name, F_OK) == 0;
}

static void
note(const char *name, void *ctx)
{
	(void)ctx;
	strncat(told, name, sizeof(told) - strlen(told) - 2);
	strncat(told, " ", 2);
}

/* No process can have this number: it is above PID_MAX_LIMIT, proc(5). */
#define DEAD_PID ((1 << 22) + 1)

Test(shm, what_the_dead_made_goes_and_what_the_living_made_stays)
{
	char dead[64], cuda[64], alive[64];
	pid_t pid = DEAD_PID;

	snprintf(dead, sizeof(dead), "torch_%d_12345_0", (int)pid);
	snprintf(cuda, sizeof(cuda), "cuda.shm.0.%x.1", (unsigned)pid);
	snprintf(alive, sizeof(alive), "torch_%d_12345_0", (int)getpid());
	close(make(dead));
	close(make(cuda));
	close(make(alive));
	close(make("nccl-AbCdEf"));
	cr_assert_eq(shm_sweep(folder, 0, note, NULL), 3);
	cr_expect(!is_there(dead));
	cr_expect(!is_there(cuda));
	cr_expect(!is_there("nccl-AbCdEf"));
	cr_expect(is_there(alive));
	cr_expect_not_null(strstr(told, dead));
}

#define PROBED 4711 /* the process id whose kill() the test plays */

static int probe_rc, probe_errno;

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

int
__wrap_kill(pid_t pid, int sig)
{
	if (pid != PROBED)
		return __real_kill(pid, sig);
	cr_expect_eq(sig, 0);
	errno = probe_errno;
	return probe_rc;
}

/* A success leaves errno as the call before set it. */
Test(shm, only_a_process_that_does_not_exist_is_dead)
{
	static const struct {
		int rc, error;
		uint32_t swept;
	} rows[] = {
		{ 0, ESRCH, 0 },
		{ 0, 0, 0 },
		{ -1, EPERM, 0 },
		{ -1, ESRCH, 1 },
	};
	char name[64];

	snprintf(name, sizeof(name), "torch_%d_12345_0", PROBED);
	close(make(name));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		probe_rc = rows[i].rc;
		probe_errno = rows[i].error;
		cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), rows[i].swept,
			"row %zu", i);
	}
	cr_expect(!is_there(name));
}

Test(shm, what_somebody_has_open_stays)
{
	int fd = make("nccl-open");

	cr_assert_eq(shm_sweep(folder, 0, NULL, NULL), 0);
	cr_expect(is_there("nccl-open"));
	close(fd);
	cr_assert_eq(shm_sweep(folder, 0, NULL, NULL), 1);
}

/* A rank that root started may have changed its user. */
Test(shm, what_another_user_has_open_stays)
{
	int fd, ready[2], over[2];
	pid_t pid;
	char c;

	if (geteuid() != 0)
		return;
	fd = make("nccl-theirs");
	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(over), 0);
	pid = fork();
	if (pid == 0) {
		close(over[1]);
		if (setuid(41234) == 0 && write(ready[1], "", 1) == 1)
			_exit(read(over[0], &c, 1) != 0);
		_exit(1);
	}
	close(fd);
	close(over[0]);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 0);
	cr_expect(is_there("nccl-theirs"));
	close(over[1]);
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 1);
	close(ready[0]);
	close(ready[1]);
}

Test(shm, what_somebody_has_mapped_stays)
{
	int fd = make("nccl-mapped");
	void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	cr_assert_neq(at, MAP_FAILED);
	close(fd);
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 0);
	cr_expect(is_there("nccl-mapped"));
	munmap(at, 4096);
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 1);
}

/* More than are looked for at once; of each kind of use one at the beginning and
 * one at the end. */
Test(shm, of_many_those_stay_that_are_used)
{
	char name[300][64];
	pid_t pid = DEAD_PID;
	int fd[2];
	void *at[2];

	for (int i = 0; i < 300; i++) {
		snprintf(name[i], sizeof(name[i]), "torch_%d_7_%d", (int)pid,
			i);
		close(make(name[i]));
	}
	for (int i = 0; i < 2; i++) {
		fd[i] = make(name[i * 298]);
		at[i] = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd[i], 0);
		cr_assert_neq(at[i], MAP_FAILED);
		close(fd[i]);
		fd[i] = make(name[i * 298 + 1]);
	}
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 296);
	for (int i = 0; i < 2; i++) {
		cr_expect(is_there(name[i * 298]));
		cr_expect(is_there(name[i * 298 + 1]));
		munmap(at[i], 4096);
		close(fd[i]);
	}
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 4);
}

Test(shm, who_uses_a_longer_name_does_not_use_the_shorter)
{
	int fd = make("nccl-ab");
	void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	close(make("nccl-a"));
	cr_assert_neq(at, MAP_FAILED);
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 1);
	cr_expect(!is_there("nccl-a"));
	cr_expect(is_there("nccl-ab"));
	close(fd);
	munmap(at, 4096);
}

Test(shm, unknown_names_and_older_ones_are_nobodys_business)
{
	close(make("psm_1234"));
	close(make("torch_x_1_0"));
	close(make("torch_"));
	close(make("mine"));
	cr_assert_eq(symlink("/etc/passwd", "nccl-link"), 0);
	cr_expect_eq(shm_sweep(folder, 0, NULL, NULL), 0);
	close(make("nccl-older"));
	cr_expect_eq(shm_sweep(folder, clock_wall() + NS_PER_S, NULL, NULL), 0);
	cr_expect(is_there("nccl-older"));
	cr_expect_eq(shm_sweep("/nosuch", 0, NULL, NULL), 0);
}
