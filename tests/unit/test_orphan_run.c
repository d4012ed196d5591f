/* SPDX-License-Identifier: Apache-2.0 */
/* test_orphan_run.c - how often, and for how long, an xrun looks for lost jobs. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/ctl/place.h"
#include "launcher/keeper/lost.h"
#include "launcher/keeper/orphan.h"
#include "launcher/state/state.h"
#include "tests/unit/noted.h"
#include "tests/unit/folder.h"

static struct {
	unsigned dying; /* rounds in which one is */
	bool lost;      /* there was one */
	bool no_root, no_thread;
	int place_rounds; /* in which there is a place */
} played;

static int64_t now;
static unsigned rounds, walks, sweeps, joined;

int64_t __wrap_clock_now(void);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
bool __wrap_lost_end_all(bool *dying);
void __wrap_state_each_open(const char *root, state_open_fn *fn, void *ctx);
char *__wrap_state_home(void);
void __wrap_ctl_place_sweep(void);
void __wrap_ctl_place_each(ctl_place_fn *fn, void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);
int __wrap_pthread_timedjoin_np(pthread_t thread, void **value,
	const struct timespec *until);

int64_t
__wrap_clock_now(void)
{
	return now;
}

int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	now += time->tv_sec * NS_PER_S + time->tv_nsec;
	return 0;
}

bool
__wrap_lost_end_all(bool *dying)
{
	rounds++;
	*dying = played.dying > 0;
	played.dying -= *dying;
	return played.lost && rounds == 1;
}

void
__wrap_state_each_open(const char *root, state_open_fn *fn, void *ctx)
{
	cr_expect_str_eq(root, folder);
	walks++;
}

char *
__wrap_state_home(void)
{
	note("home ");
	return played.no_root ? NULL : strdup(folder);
}

void
__wrap_ctl_place_sweep(void)
{
	sweeps++;
}

void
__wrap_ctl_place_each(ctl_place_fn *fn, void *ctx)
{
	bool more = true;

	for (int i = 0; i < 2 && more && played.place_rounds > 0; i++) {
		more = fn(ctx, i == 0 ? "a" : "b");
		note("%d ", more);
	}
	played.place_rounds--;
}

/* The thread runs at once, and is over. */
int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg)
{
	(void)attr;
	if (played.no_thread)
		return EAGAIN;
	*thread = pthread_self();
	cr_expect_null(fn(arg));
	return 0;
}

int
__wrap_pthread_timedjoin_np(pthread_t thread, void **value,
	const struct timespec *until)
{
	int64_t left = until->tv_sec * NS_PER_S + until->tv_nsec - clock_wall();

	(void)thread;
	(void)value;
	cr_expect(left <= NS_PER_S && left > 0, "%lld", (long long)left);
	joined++;
	return 0;
}

TestSuite(orphan_run, .init = folder_make, .fini = folder_remove);

/* ns that it has taken. */
static int64_t
run(unsigned dying, bool lost)
{
	now = 77;
	rounds = walks = sweeps = joined = 0;
	done[0] = '\0';
	played.dying = dying;
	played.lost = lost;
	orphan_run(played.no_root ? NULL : strdup(folder));
	return now - 77;
}

Test(orphan_run, one_look_is_enough_if_there_is_nobody)
{
	cr_expect_eq(run(0, false), 0);
	cr_expect(rounds == 1 && walks == 1 && sweeps == 0 && joined == 0);
	cr_expect_str_eq(done, "");
	/* With one that is over its socket is looked for again. */
	cr_expect_eq(run(0, true), 0);
	cr_expect(rounds == 1 && walks == 1 && sweeps == 1 && joined == 1);
	cr_expect_str_eq(done, "");
}

Test(orphan_run, one_that_dies_is_waited_for)
{
	int64_t step = run(1, false);

	cr_expect_eq(step, 5 * NS_PER_MS);
	cr_expect(rounds == 2 && walks == 2 && sweeps == 1);
	cr_expect_eq(run(3, false), 3 * step);
	cr_expect_eq(rounds, 4);
	cr_expect_eq(run(10000, false), 2 * NS_PER_S);
	cr_expect_eq(rounds, 401);
}

Test(orphan_run, a_verb_has_less_patience)
{
	now = 77;
	orphan_run_now();
	cr_expect(rounds == 1 && walks == 1 && sweeps == 0);
	cr_expect_str_eq(done, "home ");
	played.lost = true;
	rounds = 0;
	orphan_run_now();
	cr_expect(sweeps == 1 && joined == 0 && now == 77);
	played.dying = 10000;
	orphan_run_now();
	cr_expect_eq(now, 77 + 250 * NS_PER_MS);
	cr_expect_eq(sweeps, 2);
}

Test(orphan_run, without_a_folder_there_are_records)
{
	played.no_root = true;
	cr_expect_eq(run(0, true), 0);
	cr_expect(rounds == 1 && walks == 0 && sweeps == 0 && joined == 0);
	cr_expect_str_eq(done, "home ");
	played.no_root = false;
	played.no_thread = true;
	cr_expect_eq(run(0, true), 0);
	cr_expect(rounds == 1 && walks == 1 && sweeps == 0 && joined == 0);
}

/* Of a job that lives, its folder is locked as well. */
Test(orphan_run, a_place_whose_xrun_is_gone_is_waited_for)
{
	int fd;

	cr_assert_eq(mkdir("a", 0700), 0);
	cr_assert_eq(mkdir("b", 0700), 0);
	played.place_rounds = 1; /* no lock at all */
	cr_expect_eq(run(0, true), 0);
	cr_expect_str_eq(done, "1 1 ");
	folder_write("a/lock", "", 0600);
	fd = open("a/lock", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	folder_write("b/lock", "", 0600);
	played.place_rounds = 2; /* that of b is free */
	cr_expect_eq(run(0, true), 2 * 5 * NS_PER_MS);
	cr_expect_str_eq(done, "1 0 1 0 ");
	cr_expect_eq(sweeps, 3);
	played.place_rounds = 100000;
	cr_expect_eq(run(0, true), NS_PER_S);
	cr_expect_eq(unlink("b/lock"), 0);
	played.place_rounds = 1;
	cr_expect_eq(run(0, true), 0);
	cr_expect_str_eq(done, "1 1 ");
	close(fd);
	cr_expect_eq(unlink("a/lock"), 0);
	cr_expect_eq(symlink("/dev/null", "a/lock"), 0);
	played.place_rounds = 1;
	cr_expect_eq(run(0, true), 0);
}
