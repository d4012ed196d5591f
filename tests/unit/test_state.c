/* SPDX-License-Identifier: Apache-2.0 */
/* test_state.c - the folder of a job: made, locked, written, removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "launcher/state/jobs.h"
#include "tests/unit/state_folder.h"

#define ADVICE "\t--log-dir DIR or --no-logs"

TestSuite(state, .init = state_folder_make, .fini = folder_remove);

static enum xr_status
open_state(struct state *state, const char *log_dir, bool logs)
{
	struct state_wish wish = { .log_dir = log_dir, .logs = logs };

	return state_open(state, &wish, &err);
}

/* @log_dir: NULL is the state folder. */
static void
begin(const char *log_dir)
{
	cr_assert_eq(open_state(&st, log_dir, true), XR_OK, "%s", err.text);
}

static void
expect_mode(const char *path, mode_t mode)
{
	struct stat s;

	cr_assert_eq(lstat(path, &s), 0, "%s: %s", path, strerror(errno));
	cr_expect_eq(s.st_mode & (S_IFMT | 07777), mode, "%s: %o", path,
		(unsigned)s.st_mode);
}

Test(state, an_id_can_be_said_aloud_and_typed_without_doubt)
{
	static const char set[] = "abcdefghijkmnpqrstuvwxyz23456789";
	char last[8] = "";
	unsigned same = 0;

	for (int i = 0; i < 5000; i++) {
		cr_assert_eq(open_state(&st, NULL, false), XR_OK);
		cr_assert_eq(strlen(st.id), 4);
		cr_assert_eq(strspn(st.id, set), 4, "%s", st.id);
		cr_assert(st.id[0] >= 'a' && st.id[0] <= 'z', "%s", st.id);
		same += strcmp(st.id, last) == 0;
		memcpy(last, st.id, 5);
	}
	cr_expect_lt(same, 10);
}

Test(state, without_logs_nothing_is_made)
{
	cr_assert_eq(open_state(&st, "/nowhere", false), XR_OK);
	cr_expect_null(st.dir);
	cr_expect_eq(st.dir_fd, -1);
	cr_expect_eq(st.attempt_fd, -1);
	cr_expect_eq(st.lock_fd, -1);
	state_latest(&st);
	state_remove(&st);
	cr_expect_eq(folder_entries(folder), 0);
}

Test(state, folders_are_for_their_owner_only)
{
	begin(NULL);
	cr_expect_str_eq(st.root, in_folder("state/xrun"));
	expect_mode(in_folder("state"), S_IFDIR | 0700);
	expect_mode(st.root, S_IFDIR | 0700);
	expect_mode(st.dir, S_IFDIR | 0700);
	expect_mode(st.attempt, S_IFDIR | 0700);
	cr_assert_eq(state_write(&st, "job.json", "{}", 2), 0);
	cr_assert_eq(mkdirat(st.attempt_fd, "rank-0003", 0700), 0);
	cr_assert_eq(chdir(st.dir), 0);
	expect_mode("lock", S_IFREG | 0600);
	expect_mode("job.json", S_IFREG | 0600);
	expect_mode("0/rank-0003", S_IFDIR | 0700);
	let_go();
}

Test(state, folders_that_are_there_keep_their_mode)
{
	cr_assert_eq(mkdir("state", 0755), 0);
	begin(NULL);
	expect_mode("state", S_IFDIR | 0755);
	expect_mode("state/xrun", S_IFDIR | 0700);
	let_go();
}

Test(state, parents_are_made_and_the_last_name_is_not)
{
	static const char *const ends[] = { "", "/", "///" };
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s/%zu/a/b%s", folder, i,
			ends[i]);
		cr_assert_eq(state_make_parents(path), 0, "%s: %s", path,
			strerror(errno));
		snprintf(path, sizeof(path), "%s/%zu/a", folder, i);
		expect_mode(path, S_IFDIR | 0700);
		snprintf(path, sizeof(path), "%s/%zu/a/b", folder, i);
		cr_expect_eq(access(path, F_OK), -1, "%s", path);
	}
	cr_expect_eq(state_make_parents("/"), 0);
}

Test(state, no_descriptor_is_inherited)
{
	begin(NULL);
	cr_expect(fcntl(st.dir_fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(fcntl(st.attempt_fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(fcntl(st.lock_fd, F_GETFD) & FD_CLOEXEC);
	let_go();
}

struct seen {
	char id[8];
	int all, running;
};

static bool
see(void *ctx, const char *dir, const char *id, bool running)
{
	struct seen *s = ctx;

	cr_expect_str_eq(dir + strlen(dir) - strlen(id), id);
	snprintf(s->id, sizeof(s->id), "%s", id);
	s->all++;
	s->running += running;
	return true;
}

Test(state, a_walk_that_begins_anywhere_comes_to_all_once)
{
	struct seen s;

	for (int i = 0; i < 5; i++) {
		begin(NULL);
		let_go();
	}
	for (int i = 0; i < 20; i++) {
		s = (struct seen){ 0 };
		jobs_each_anywhere("state/xrun", see, &s);
		cr_assert_eq(s.all, 5);
	}
	s = (struct seen){ 0 };
	jobs_each_anywhere("/nowhere", see, &s);
	cr_expect_eq(s.all, 0);
}

Test(state, a_job_runs_while_its_lock_is_held)
{
	struct seen s = { 0 };

	begin(NULL);
	state_latest(&st);
	cr_expect_eq(jobs_running(NULL), 1);
	jobs_each(st.root, see, &s);
	cr_expect_eq(s.all, 1, "the link is no job");
	cr_expect_eq(s.running, 1);
	cr_expect_str_eq(s.id, st.id);
	close(st.lock_fd);
	s = (struct seen){ 0 };
	jobs_each(st.root, see, &s);
	cr_expect_eq(s.all, 1);
	cr_expect_eq(s.running, 0);
	cr_expect_eq(jobs_running(NULL), 0);
}

Test(state, no_root_has_no_jobs)
{
	struct seen s = { 0 };

	jobs_each("/nowhere", see, &s);
	cr_expect_eq(s.all, 0);
	cr_expect_eq(jobs_running(NULL), 0);
}

Test(state, jobs_have_folders_of_their_own)
{
	struct state other;

	begin(NULL);
	cr_assert_eq(open_state(&other, NULL, true), XR_OK);
	cr_expect_str_neq(st.id, other.id);
	cr_expect_eq(jobs_running(NULL), 2);
	state_remove(&other);
	cr_expect_eq(jobs_running(NULL), 1);
	cr_expect_eq(access(st.attempt, F_OK), 0);
	state_fini(&other);
	let_go();
}

Test(state, a_removed_job_leaves_nothing)
{
	begin(NULL);
	cr_assert_eq(state_write(&st, "job.json", "{}", 2), 0);
	cr_assert_eq(state_write(&st, "events.jsonl", "{}", 2), 0);
	cr_assert_eq(state_write(&st, ".job.json.new", "{", 1), 0);
	cr_assert_eq(mkdirat(st.attempt_fd, "rank-0000", 0700), 0);
	cr_assert_eq(mkdirat(st.attempt_fd, "rank-12345", 0700), 0);
	state_remove(&st);
	cr_expect_eq(folder_entries(st.root), 1, ".live");
	cr_expect_eq(folder_entries("state/xrun/.live"), 0);
	let_go();
}

Test(state, the_words_of_xrun_go_with_a_job_that_is_removed)
{
	char path[PATH_MAX];
	int fd;

	begin(NULL);
	snprintf(path, sizeof(path), "%s/" STATE_WORDS, st.attempt);
	fd = state_open_words(&st);
	cr_assert_neq(fd, -1, "%s", strerror(errno));
	expect_mode(path, S_IFREG | 0600);
	cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(state_open_words(&st), -1, "not another's, nor a link");
	close(fd);
	state_remove(&st);
	cr_expect_eq(folder_entries(st.root), 1, ".live");
	let_go();
}

Test(state, a_folder_that_was_there_before_stays)
{
	cr_assert_eq(mkdir("mine", 0755), 0);
	begin("mine");
	state_remove(&st);
	cr_expect_eq(folder_entries("mine"), 0);
	let_go();
}

/* Where in @events something happened to @name; -1 if nowhere. */
static int
nth_event(const char *events, ssize_t n, uint32_t what, const char *name)
{
	const struct inotify_event *e;
	int nth = 0;

	for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const void *)(events + at);
		if ((e->mask & what) != 0 && e->len > 0 &&
			strncmp(e->name, name, strlen(name)) == 0)
			return nth;
		nth++;
	}
	return -1;
}

/* Whoever finds a lock finds it held: it gets its name afterwards. */
Test(state, a_lock_has_its_name_only_when_it_is_held)
{
	char events[4096];
	int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), first, named;
	ssize_t n;

	cr_assert_eq(mkdir("mine", 0755), 0);
	cr_assert_neq(inotify_add_watch(notify, "mine",
			      IN_CREATE | IN_DELETE | IN_MOVED_TO),
		-1);
	begin("mine");
	n = read(notify, events, sizeof(events));
	first = nth_event(events, n, IN_CREATE, ".lock.");
	named = nth_event(events, n, IN_CREATE, "lock");
	cr_expect_geq(first, 0);
	cr_expect_gt(named, first);
	cr_expect_gt(nth_event(events, n, IN_DELETE, ".lock."), named);
	cr_expect_eq(nth_event(events, n, IN_MOVED_TO, "lock"), -1);
	close(notify);
	let_go();
}

/* One of a pair that starts when @go is closed; says where it found room and
 * lets its job go when @stay is. */
static void
be_one_of_a_pair(int go, int tell, int stay)
{
	char c;

	if (read(go, &c, 1) != 0)
		_exit(1);
	c = open_state(&st, "pair", true) == XR_OK ? 'x' : '!';
	if (write(tell, &c, 1) != 1 || read(stay, &c, 1) != 0)
		_exit(2);
	_exit(access(st.attempt, F_OK) == 0 &&
				faccessat(st.dir_fd, "lock", F_OK, 0) == 0 ?
			0 :
			3);
}

static int
locks_in(const char *dir)
{
	char path[PATH_MAX];
	struct dirent **list;
	int n = scandir(dir, &list, NULL, NULL), locks = 0;

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s/lock", dir,
			list[i]->d_name);
		locks += strcmp(list[i]->d_name, "..") != 0 &&
			access(path, F_OK) == 0;
		free(list[i]);
	}
	free(list);
	return locks;
}

Test(state, of_two_that_start_at_once_each_has_a_folder)
{
	int go[2], tell[2], stay[2], status;
	char two[2];

	for (int round = 0; round < 200; round++) {
		cr_assert_eq(pipe(go) + pipe(tell) + pipe(stay), 0);
		if (round % 2 != 0)
			cr_assert_eq(mkdir("pair", 0700), 0);
		for (int i = 0; i < 2; i++)
			if (fork() == 0) {
				close(go[1]);
				close(stay[1]);
				close(tell[0]);
				be_one_of_a_pair(go[0], tell[1], stay[0]);
			}
		close(tell[1]);
		close(go[1]);
		for (int i = 0; i < 2; i++)
			cr_assert_eq(read(tell[0], two + i, 1), 1);
		cr_assert_eq(memcmp(two, "xx", 2), 0, "round %d", round);
		cr_assert_eq(locks_in("pair"), 2, "round %d", round);
		close(stay[1]);
		for (int i = 0; i < 2; i++) {
			cr_assert_gt(wait(&status), 0);
			cr_assert_eq(status, 0, "round %d: %x", round, status);
		}
		close(go[0]);
		close(tell[0]);
		close(stay[0]);
		nftw("pair", folder_forget, 16, FTW_DEPTH | FTW_PHYS);
	}
}

/* Somebody's files in a folder that a job did not get are not the job's. */
Test(state, what_a_failed_start_did_not_make_stays)
{
	cr_assert_eq(mkdir("mine", 0755), 0);
	begin("mine");
	st.made_lock = st.made_attempt = st.made = false;
	state_remove(&st);
	cr_expect_eq(folder_entries("mine"), 2, "lock and 0");
	let_go();
}

Test(state, two_who_look_at_once_see_no_job)
{
	struct seen s = { 0 };
	int other;

	begin(NULL);
	other = openat(st.dir_fd, "lock", O_RDWR | O_CLOEXEC);
	close(st.lock_fd);
	cr_assert_eq(flock(other, LOCK_SH | LOCK_NB), 0);
	jobs_each(st.root, see, &s);
	cr_expect_eq(s.all, 1);
	cr_expect_eq(s.running, 0);
	close(other);
}

Test(state, the_next_attempt_has_the_next_number_and_a_folder_of_its_own)
{
	int fd;

	begin(NULL);
	fd = state_make_next(&st);
	cr_assert_neq(fd, -1);
	cr_assert_eq(state_advance(&st, 7, fd), 0);
	cr_expect_eq(st.number, 1);
	cr_expect_eq(st.bytes_before, 7);
	cr_expect_str_eq(strrchr(st.attempt, '/'), "/1");
	expect_mode(st.attempt, S_IFDIR | 0700);
	let_go();
}

Test(state, a_number_that_somebody_took_is_no_folder_of_ours)
{
	int fd;

	begin(NULL);
	fd = openat(st.dir_fd, "1", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	cr_assert_eq(state_make_next(&st), -1);
	cr_expect_eq(errno, EEXIST);
	cr_expect_eq(faccessat(st.dir_fd, "2", F_OK, 0), -1);
	unlinkat(st.dir_fd, "1", 0);
	cr_assert_eq(mkdirat(st.dir_fd, "1", 0700), 0);
	cr_assert_eq(state_make_next(&st), -1);
	cr_expect_eq(errno, EEXIST);
	cr_expect_eq(faccessat(st.dir_fd, "2", F_OK, 0), -1);
	let_go();
}

Test(state, what_a_rank_wrote_is_never_removed)
{
	begin(NULL);
	cr_assert_eq(mkdirat(st.attempt_fd, "rank-0000", 0700), 0);
	cr_assert_eq(chdir(st.attempt), 0);
	folder_write("rank-0000/stdout", "x", 0600);
	state_remove(&st);
	cr_expect_eq(access("rank-0000/stdout", F_OK), 0);
	let_go();
}

Test(state, a_log_dir_that_is_absent_or_empty_is_the_folder)
{
	begin("logs/of/mine");
	cr_expect_str_eq(st.dir, in_folder("logs/of/mine"));
	cr_expect_str_eq(st.attempt, in_folder("logs/of/mine/0"));
	cr_expect_null(st.root);
	expect_mode("logs", S_IFDIR | 0700);
	expect_mode("logs/of/mine/0", S_IFDIR | 0700);
	let_go();
	cr_assert_eq(mkdir("empty", 0755), 0);
	begin(in_folder("empty/"));
	cr_expect_str_eq(st.dir, in_folder("empty"));
	cr_expect_eq(access("empty/0", F_OK), 0);
	let_go();
}

Test(state, a_log_dir_that_is_used_gets_a_folder_a_job)
{
	char want[2 * PATH_MAX + 8];

	cr_assert_eq(mkdir("logs", 0755), 0);
	folder_write("logs/.hidden", "", 0600);
	begin("logs");
	snprintf(want, sizeof(want), "%s/logs/%s", folder, st.id);
	cr_expect_str_eq(st.dir, want);
	expect_mode(st.dir, S_IFDIR | 0700);
	let_go();
}

/* A job under --log-dir @dir is one folder in it, and nothing else is there. */
static void
expect_folder_in(const char *dir)
{
	char want[2 * PATH_MAX + 8];

	begin(dir);
	snprintf(want, sizeof(want), "%s/%s/%s", folder, dir, st.id);
	cr_expect_str_eq(st.dir, want);
	cr_expect_eq(folder_entries(dir), 1);
	expect_mode(st.dir, S_IFDIR | 0700);
	let_go();
}

Test(state, a_log_dir_that_others_may_write_gets_a_folder_a_job)
{
	cr_assert_eq(mkdir("open", 0777), 0);
	expect_folder_in("open");
	if (geteuid() != 0)
		folder_skip("another user's folder needs root");
	cr_assert_eq(mkdir("foreign", 0755), 0);
	cr_assert_eq(chown("foreign", 12345, 12345), 0);
	expect_folder_in("foreign");
	cr_assert_eq(mkdir("shared", 0775), 0);
	cr_assert_eq(chown("shared", 12345, getegid()), 0);
	expect_folder_in("shared");
}

static bool
note_one(void *count, const char *dir, const char *id, bool running)
{
	(void)dir;
	(void)id;
	(void)running;
	++*(int *)count;
	return true;
}

Test(state, another_users_folder_is_no_job_of_ours)
{
	int jobs = 0;
	char *root;

	begin(NULL);
	root = state_home();
	jobs_each(root, note_one, &jobs);
	cr_expect_eq(jobs, 1);
	cr_assert_eq(chmod(st.dir, 0777), 0);
	jobs_each(root, note_one, &jobs);
	cr_expect_eq(jobs, 1);
	free(root);
	let_go();
}

Test(state, a_log_dir_knows_job_and_host)
{
	char want[3 * PATH_MAX], host[256] = "";

	cr_assert_eq(gethostname(host, sizeof(host) - 1), 0);
	begin("a{job}b/{host}/{job}{host}");
	snprintf(want, sizeof(want), "%s/a%sb/%s/%s%s", folder, st.id, host,
		st.id, host);
	cr_expect_str_eq(st.dir, want);
	let_go();
}

Test(state, doubled_braces_are_part_of_a_name)
{
	begin("{{jobs}}/{{/}}/{{{{");
	cr_expect_str_eq(st.dir, in_folder("{jobs}/{/}/{{"));
	let_go();
}

Test(state, a_log_dir_has_no_link_to_the_latest)
{
	cr_assert_eq(mkdir("state", 0700), 0);
	cr_assert_eq(mkdir("state/xrun", 0700), 0);
	begin("logs");
	state_latest(&st);
	cr_expect_eq(folder_entries("logs"), 2, "lock and 0");
	cr_expect_eq(folder_entries(folder), 2);
	cr_expect_eq(folder_entries("state/xrun"), 0);
	let_go();
}

static int
open_descriptors(void)
{
	return folder_entries("/proc/self/fd");
}

static void
expect_refused(const char *log_dir, const char *text)
{
	int before = open_descriptors();

	err.text[0] = '\0';
	cr_expect_eq(open_state(&st, log_dir, true), XR_E_SYS);
	cr_expect_not_null(strstr(err.text, text), "%s", err.text);
	cr_expect_not_null(strstr(err.text, ADVICE), "%s", err.text);
	cr_expect_eq(open_descriptors(), before);
}

Test(state, a_link_of_another_user_in_place_of_the_folder_is_refused)
{
	if (geteuid() != 0)
		folder_skip("only root can make such a link");
	cr_assert_eq(mkdir("target", 0755), 0);
	cr_assert_eq(symlink("target", "link"), 0);
	cr_assert_eq(lchown("link", 12345, 12345), 0);
	cr_expect_eq(open_state(&st, "link", true), XR_E_INVAL);
	cr_expect_not_null(strstr(err.text,
		"link: is another user's symbolic link"));
	cr_expect_eq(folder_entries("target"), 0);
}

Test(state, a_link_of_ones_own_is_followed)
{
	cr_assert_eq(mkdir("target", 0755), 0);
	cr_assert_eq(symlink("target", "link"), 0);
	begin("link");
	cr_expect_eq(access("target/lock", F_OK), 0);
	state_remove(&st);
	cr_expect_eq(folder_entries("target"), 0);
	cr_expect_eq(folder_entries("link"), 0);
	let_go();
}

Test(state, a_place_that_cannot_be_written_is_told_with_advice)
{
	folder_write("file", "", 0600);
	expect_refused("file", ": Not a directory");
	expect_refused("file/logs", ": Not a directory");
	setenv("XDG_STATE_HOME", in_folder("file"), 1);
	expect_refused(NULL, ": Not a directory");
	setenv("XDG_STATE_HOME", "/proc", 1);
	expect_refused(NULL, "/proc/xrun/");
	cr_assert_eq(symlink("gone", "file2"), 0);
	setenv("XDG_STATE_HOME", in_folder("file2"), 1);
	expect_refused(NULL, "file2/xrun/");
	cr_expect_eq(folder_entries(folder), 2);
}

Test(state, a_file_is_replaced_as_a_whole)
{
	char text[8] = "";
	int old;

	begin(NULL);
	cr_assert_eq(state_write(&st, "job.json", "first", 5), 0);
	old = openat(st.dir_fd, "job.json", O_RDONLY);
	cr_assert_eq(state_write(&st, "job.json", "2nd", 3), 0);
	cr_expect_eq(read(old, text, sizeof(text)), 5);
	cr_expect_str_eq(text, "first");
	close(old);
	old = openat(st.dir_fd, "job.json", O_RDONLY);
	cr_expect_eq(read(old, text, sizeof(text)), 3);
	cr_expect_eq(memcmp(text, "2nd", 3), 0);
	close(old);
	cr_expect_eq(folder_entries(st.dir), 3, "lock, 0, job.json");
	let_go();
}

Test(state, a_link_in_place_of_a_new_file_is_not_followed)
{
	struct stat mine;

	begin(NULL);
	folder_write("mine", "precious", 0600);
	cr_assert_eq(symlinkat(in_folder("mine"), st.dir_fd, ".job.json.new"),
		0);
	cr_expect_eq(state_write(&st, "job.json", "{}", 2), 0);
	cr_assert_eq(linkat(AT_FDCWD, "mine", st.dir_fd, ".job.json.new", 0),
		0);
	cr_expect_eq(state_write(&st, "job.json", "[]", 2), 0);
	cr_assert_eq(unlinkat(st.dir_fd, "job.json", 0), 0);
	cr_assert_eq(symlinkat(in_folder("mine"), st.dir_fd, "job.json"), 0);
	cr_expect_eq(state_write(&st, "job.json", "{}", 2), 0);
	cr_assert_eq(stat("mine", &mine), 0);
	cr_expect_eq(mine.st_size, (off_t)strlen("precious"));
	expect_mode("mine", S_IFREG | 0600);
	let_go();
}

static void
expect_latest(const char *id)
{
	char to[64] = "";

	cr_assert_gt(readlink("state/xrun/latest", to, sizeof(to) - 1), 0);
	cr_expect_str_eq(to, id);
}

Test(state, latest_points_to_the_last_job_that_said_so)
{
	struct state other;

	begin(NULL);
	state_latest(&st);
	expect_latest(st.id);
	cr_assert_eq(open_state(&other, NULL, true), XR_OK);
	expect_latest(st.id);
	state_latest(&other);
	expect_latest(other.id);
	cr_expect_eq(folder_entries("state/xrun"), 4,
		"and .live: nothing else is left");
	state_fini(&other);
	let_go();
}

Test(state, a_job_without_folder_is_not_the_latest)
{
	char link[2];

	st.root = folder;
	state_latest(&st);
	st.root = NULL;
	cr_expect_eq(readlink(in_folder("latest"), link, sizeof(link)), -1);
}

Test(state, why_a_file_was_not_made_is_known)
{
	begin(NULL);
	cr_assert_eq(mkdirat(st.dir_fd, ".a.new", 0700), 0);
	cr_expect_eq(state_write(&st, "a", "1", 1), -1);
	cr_expect_eq(errno, EEXIST);
	let_go();
}

Test(state, a_folder_named_latest_is_left_alone)
{
	begin(NULL);
	cr_assert_eq(mkdir("state/xrun/latest", 0700), 0);
	state_latest(&st);
	expect_mode("state/xrun/latest", S_IFDIR | 0700);
	cr_expect_eq(folder_entries("state/xrun"), 3, "and .live");
	let_go();
}
