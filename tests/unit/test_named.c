/* SPDX-License-Identifier: Apache-2.0 */
/* test_named.c - jobs that have a name, and the attempts of each. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "tests/unit/state_folder.h"

TestSuite(named, .init = state_folder_make, .fini = folder_remove);

Test(named, names_are_file_names_that_nothing_else_bears)
{
	static const char *const good[] = { "a", "1", "train-2.b_c", "A..b" };
	static const char *const bad[] = { "", ".", "..", ".a", "-a", "a/b",
		"a b", "latest", "\303\244" };
	char text[STATE_ID_MAX + 2];

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect(state_name_valid(good[i]), "%s", good[i]);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(state_name_valid(bad[i]), "%s", bad[i]);
	memset(text, 'x', sizeof(text));
	text[STATE_ID_MAX + 1] = '\0';
	cr_expect_not(state_name_valid(text));
	text[STATE_ID_MAX] = '\0';
	cr_expect(state_name_valid(text));
}

static enum xr_status
open_named(struct state *state, const char *name, const char *log_dir)
{
	struct state_wish wish = { .name = name,
		.log_dir = log_dir,
		.logs = true };

	return state_open(state, &wish, &err);
}

Test(named, a_named_job_has_attempt_after_attempt_in_one_folder)
{
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(open_named(&st, "train", NULL), XR_OK, "%s",
			err.text);
		cr_expect_str_eq(st.id, "train");
		cr_expect_eq(st.number, i);
		cr_expect_eq(access(st.attempt, F_OK), 0);
		cr_expect_eq(st.bytes_before, (int64_t)i * 100);
		cr_expect_eq(
			state_write(&st, "job.json",
				i == 0 ? "{\"bytes\":100}" :
					 "{\"bytes\":100,\"bytes_before\":100}",
				i == 0 ? 13 : 32),
			0);
		let_go();
	}
}

Test(named, a_job_that_runs_has_its_name_alone_and_its_pid_is_told)
{
	struct state other;
	char pid[32];

	snprintf(pid, sizeof(pid), "pid %d,", (int)getpid());
	char json[32];

	snprintf(json, sizeof(json), "{\"pid\":%d}", (int)getpid());
	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	cr_assert_eq(state_write(&st, "job.json", json, strlen(json)), 0);
	cr_expect_eq(open_named(&other, "train", NULL), XR_E_EXISTS);
	cr_expect_not_null(strstr(err.text, "--job: train runs ("), "%s",
		err.text);
	cr_expect_not_null(strstr(err.text, pid), "%s", err.text);
	cr_expect_eq(other.dir_fd, -1);
	cr_expect_eq(access(st.attempt, F_OK), 0);
	let_go();
}

Test(named, who_only_looks_after_a_job_is_waited_for_and_not_named)
{
	struct state other;
	pid_t pid;

	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	cr_assert_eq(state_write(&st, "job.json", "{\"pid\":1}", 9), 0);
	cr_expect_eq(open_named(&other, "train", NULL), XR_E_EXISTS);
	cr_expect_null(strstr(err.text, "pid"), "%s", err.text);
	pid = fork();
	if (pid == 0) { /* for longer than a moment */
		usleep(500000);
		_exit(0);
	}
	let_go();
	cr_expect_eq(open_named(&other, "train", NULL), XR_OK, "%s", err.text);
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
	st = other;
	let_go();
}

/* A process that waited for the end of job train, and is stopped. */
static int
shared_lock(void)
{
	int fd = open(in_folder("state/xrun/train/lock"), O_RDWR | O_CLOEXEC);

	cr_assert_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
	return fd;
}

static uint32_t unclosed;

static void
count_unclosed(const struct state *state)
{
	unclosed++;
}

static enum xr_status
open_and_count(struct state *state)
{
	struct state_wish wish = { .name = "train",
		.logs = true,
		.lost = count_unclosed };

	return state_open(state, &wish, &err);
}

Test(named,
	a_process_that_was_stopped_while_it_waited_for_the_end_is_no_obstacle)
{
	struct state other;
	int fd, again;

	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	state_close(&st);
	let_go();
	fd = shared_lock();
	cr_assert_eq(open_and_count(&st), XR_OK, "%s", err.text);
	cr_expect_eq(st.number, 1);
	cr_expect_eq(unclosed, 0);
	/* It runs now, for those that look again. */
	again = open(in_folder("state/xrun/train/lock"), O_RDWR | O_CLOEXEC);
	cr_expect_eq(flock(again, LOCK_SH | LOCK_NB), -1);
	cr_expect_eq(open_named(&other, "train", NULL), XR_E_EXISTS);
	close(again);
	let_go(); /* its xrun is killed */
	again = shared_lock();
	cr_expect_eq(open_and_count(&st), XR_OK, "%s", err.text);
	cr_expect_eq(unclosed, 1);
	state_close(&st);
	let_go();
	close(fd);
	close(again);
}

Test(named, one_of_many_replaces_a_lock_that_is_shared)
{
	int fd, status, won = 0;
	pid_t pid[8];

	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	state_close(&st);
	let_go();
	fd = shared_lock();
	for (unsigned i = 0; i < 8; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			status = open_named(&st, "train", NULL) == XR_OK;
			if (status == 1)
				pause();
			_exit(0);
		}
	}
	/* Those that were refused exit; the last runs until it is killed. */
	for (unsigned i = 0; i < 7; i++)
		cr_expect_neq(wait(&status), -1);
	for (unsigned i = 0; i < 8; i++) {
		if (waitpid(pid[i], NULL, WNOHANG) != 0)
			continue;
		won++;
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	cr_expect_eq(won, 1);
	close(fd);
}

Test(named, what_a_killed_one_left_on_the_way_is_no_obstacle)
{
	int fd;

	cr_assert_eq(mkdir(in_folder("d"), 0700), 0);
	cr_assert_eq(mkdir(in_folder("d/a"), 0700), 0);
	fd = open(in_folder("d/a/.lock.a"), O_CREAT | O_WRONLY | O_CLOEXEC,
		0600);
	close(fd);
	cr_expect_eq(open_named(&st, "a", "d"), XR_OK, "%s", err.text);
	let_go();
	cr_assert_eq(open_named(&st, "b", NULL), XR_OK);
	cr_expect_eq(symlink("x", in_folder("state/xrun/.latest.b")), 0);
	state_latest(&st);
	cr_expect_eq(access(in_folder("state/xrun/latest/lock"), F_OK), 0);
	let_go();
}

Test(named, a_further_attempt_that_is_taken_back_leaves_those_before)
{
	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	cr_assert_eq(state_write(&st, "job.json", "{}", 2), 0);
	let_go();
	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	cr_expect_eq(mkdirat(st.attempt_fd, "rank-0003", 0700), 0);
	state_remove(&st);
	let_go();
	cr_expect_eq(access(in_folder("state/xrun/train/1"), F_OK), -1);
	cr_expect_eq(access(in_folder("state/xrun/train/0"), F_OK), 0);
	cr_expect_eq(access(in_folder("state/xrun/train/lock"), F_OK), 0);
	cr_expect_eq(access(in_folder("state/xrun/train/job.json"), F_OK), 0);
}

static off_t
lock_size(void)
{
	struct stat lock;

	cr_assert_eq(fstat(st.lock_fd, &lock), 0);
	return lock.st_size;
}

static uint32_t lost;

static void
note_lost(const struct state *state)
{
	cr_expect_eq(state->lock_fd, st.lock_fd);
	cr_expect_eq(state_next_number(state->dir), lost + 1);
	lost++;
}

Test(named,
	a_previous_attempt_without_an_end_is_reported_and_each_attempt_is_open)
{
	struct state_wish wish = { .name = "train",
		.logs = true,
		.lost = note_lost };

	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(state_open(&st, &wish, &err), XR_OK);
		cr_expect_eq(lost, i);
		let_go();
	}
	cr_assert_eq(state_open(&st, &wish, &err), XR_OK);
	state_close(&st);
	cr_expect_eq(lock_size(), 1);
	let_go();
	cr_assert_eq(state_open(&st, &wish, &err), XR_OK);
	cr_expect_eq(lost, 3);
	cr_expect_eq(lock_size(), 0);
	state_remove(&st);
	cr_expect_eq(lock_size(), 1);
	let_go();
}

Test(named, a_first_attempt_that_wrote_nothing_leaves_no_folder)
{
	cr_assert_eq(open_named(&st, "train", NULL), XR_OK);
	state_remove(&st);
	let_go();
	cr_expect_eq(access(in_folder("state/xrun/train"), F_OK), -1);
}

Test(named, a_folder_that_is_no_jobs_is_not_taken)
{
	cr_assert_eq(mkdir(in_folder("d"), 0700), 0);
	cr_assert_eq(mkdir(in_folder("d/mine"), 0700), 0);
	cr_assert_eq(mkdir(in_folder("d/mine/data"), 0700), 0);
	cr_expect_eq(open_named(&st, "mine", "d"), XR_E_EXISTS);
	cr_expect_not_null(strstr(err.text, "not the folder of a job"));
	/* An empty one is what a killed xrun left. */
	cr_assert_eq(rmdir(in_folder("d/mine/data")), 0);
	cr_expect_eq(open_named(&st, "mine", "d"), XR_OK, "%s", err.text);
	cr_expect_eq(st.number, 0);
	let_go();
}

/* With lock, record and attempt: a whole job, but for whose it is. */
static void
expect_others(const char *dir)
{
	cr_expect_eq(open_named(&st, "mine", "d"), XR_E_EXISTS);
	cr_expect_not_null(strstr(err.text, "other users may write into it"),
		"%s", err.text);
	cr_expect_eq(folder_entries(dir), 2);
}

Test(named, a_folder_that_others_may_write_is_not_taken)
{
	char dir[2 * PATH_MAX];

	cr_assert_eq(open_named(&st, "mine", "d"), XR_OK);
	let_go();
	snprintf(dir, sizeof(dir), "%s", in_folder("d/mine"));
	cr_assert_eq(chmod(dir, 0777), 0);
	expect_others(dir);
	cr_assert_eq(chmod(dir, 0775), 0);
	cr_expect_eq(open_named(&st, "mine", "d"), XR_OK, "%s", err.text);
	cr_expect_eq(st.number, 1);
	state_remove(&st);
	let_go();
	if (geteuid() != 0)
		folder_skip("another user's folder needs root");
	cr_assert_eq(chown(dir, 12345, 12345), 0);
	expect_others(dir);
	/* A link to what is ours is no folder. */
	cr_assert_eq(symlink("mine", in_folder("d/link")), 0);
	cr_expect_eq(open_named(&st, "link", "d"), XR_E_SYS);
}

Test(named, under_log_dir_a_named_job_has_the_folder_of_its_name)
{
	cr_assert_eq(open_named(&st, "a", "d"), XR_OK);
	cr_expect_str_eq(st.dir, in_folder("d/a"));
	let_go();
	cr_assert_eq(open_named(&st, "b", "all/{job}"), XR_OK);
	cr_expect_str_eq(st.dir, in_folder("all/b"));
	let_go();
}

/* Keeps what it has until all competitors have reported. */
static void
compete(int go, int said, int over)
{
	char c;

	alarm(30);
	(void)!read(go, &c, 1);
	c = open_named(&st, "race", NULL) == XR_OK ? 'x' : '-';
	(void)!write(said, &c, 1);
	(void)!read(over, &c, 1);
	_exit(0);
}

/* Each tries to be the job; returns how many were. */
static int
race(int many)
{
	int go[2], said[2], over[2], won = 0;
	char c;

	cr_assert_eq(pipe(go), 0);
	cr_assert_eq(pipe(said), 0);
	cr_assert_eq(pipe(over), 0);
	for (int i = 0; i < many; i++)
		if (fork() == 0) {
			close(go[1]);
			close(over[1]);
			compete(go[0], said[1], over[0]);
		}
	close(go[1]);
	for (int i = 0; i < many; i++) {
		cr_assert_eq(read(said[0], &c, 1), 1);
		won += c == 'x';
	}
	close(over[1]);
	while (wait(NULL) > 0)
		continue;
	return won;
}

Test(named, of_many_that_want_one_name_at_once_one_has_it, .timeout = 60)
{
	cr_expect_eq(race(8), 1);
}

Test(named, the_next_number_is_behind_the_last_of_those_that_are_numbers)
{
	static const char *const strange[] = { "+5", " 7", "-0", "9x", "x9",
		"8.5", ":", "1000000000", "99999999999999999999999" };

	cr_expect_eq(state_next_number(folder), 0);
	cr_expect_eq(state_next_number(in_folder("none")), 0);
	for (unsigned i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		cr_assert_eq(mkdir(in_folder(strange[i]), 0700), 0);
	cr_expect_eq(state_next_number(folder), 0);
	cr_assert_eq(mkdir(in_folder("0"), 0700), 0);
	cr_expect_eq(state_next_number(folder), 1);
	cr_assert_eq(mkdir(in_folder("9"), 0700), 0);
	cr_expect_eq(state_next_number(folder), 10);
	cr_assert_eq(mkdir(in_folder("1"), 0700), 0);
	cr_expect_eq(state_next_number(folder), 10);
	cr_assert_eq(mkdir(in_folder("999999999"), 0700), 0);
	cr_expect_eq(state_next_number(folder), 1000000000);
}

Test(named, in_a_batch_job_each_job_has_its_id_and_a_number)
{
	struct state_wish wish = { .batch = "4711", .logs = true };
	struct state other;

	cr_assert_eq(state_open(&st, &wish, &err), XR_OK);
	cr_expect_str_eq(st.id, "4711");
	cr_assert_eq(state_open(&other, &wish, &err), XR_OK);
	cr_expect_str_eq(other.id, "4711.2");
	let_go();
	st = other;
	let_go();
}
