/* SPDX-License-Identifier: Apache-2.0 */
/* test_failure.c - what the account tells of the rank that failed first. */
#include <errno.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/account_rig.h"

TestSuite(failure, .init = folder_make, .fini = folder_remove);

/* --- the rank that failed first --------------------------------------------- */

Test(failure, the_culprit_is_named_with_its_program_if_there_are_several)
{
	make_ranks(3, EXITED(3));
	job.part_count = 2;
	for (uint32_t r = 1; r < 3; r++)
		be_stopped(r, (int64_t)r, SIGTERM);
	job.cause = CAUSE_FAILURE;
	is_account(true,
		"xrun: rank 20 (./fit??[5m.py) failed first: exit status 3 after 1.5 s (pid 100)\n"
		"  ranks 21, 22 were stopped by xrun (TERM, 2 ms)\n");
	job.part_count = 1;
	bytes[1] = 1;
	is_account(true,
		"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n"
		"  ranks 21, 22 were stopped by xrun (TERM, 2 ms). All output: logs/k7m2/rank-0020\n");
	job.opt.quiet = true;
	is_account(true, "");
}

Test(failure, who_failed_later_and_who_was_not_started_are_listed)
{
	make_ranks(4, EXITED(3));
	ranks[2].pid = 0;
	ranks[2].death = 0;
	ranks[2].status = 0;
	ranks[3].status = 0;
	bytes[0] = 1;
	is_account(true,
		"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n"
		"  rank 21 failed after it. Rank 22 was not started. All output: logs/k7m2/rank-0020\n");
	ranks[1] = ranks[3] = ranks[2];
	is_account(true,
		"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n"
		"  ranks 21, 22, 23 were not started. All output: logs/k7m2/rank-0020\n");
	make_ranks(1, EXITED(3));
	is_account(true,
		"xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n"
		"  All output: logs/k7m2/rank-0020\n");
	job.state.attempt = NULL;
	is_account(true,
		"xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n");
}

Test(failure, ten_last_lines_are_shown_and_stderr_comes_last)
{
	make_ranks(1, EXITED(3));
	tails[0] = "out\n";
	tails[1] = "10 %\r20 %\r\nno \033[2Jscreen\n\033[31mred\n";
	is_account(true,
		"xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n"
		"  | out\n  | 20 %\n  | no screen\n  | \033[31mred\033[0m\n");
	cr_expect_eq(asked[1], 10);
	cr_expect_eq(asked[0], 7);
	is_account(false,
		"xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n");
	job.errors_are_tty = true;
	job.utf8 = true;
	tails[1] = "1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n";
	asked[0] = 0;
	is_account(true,
		"xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n"
		"  ┃ 1\n  ┃ 2\n  ┃ 3\n  ┃ 4\n  ┃ 5\n  ┃ 6\n  ┃ 7\n  ┃ 8\n  ┃ 9\n  ┃ 0\n");
	cr_expect_eq(asked[0], 0);
	job.errors_are_tty = false;
	tails[1] = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
	is_account(true,
		"xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n"
		"  | out\n  | 1\n  | 2\n  | 3\n  | 4\n  | 5\n  | 6\n  | 7\n  | 8\n  | 9\n");
	cr_expect_eq(asked[0], 1);
}

#define FAILED "xrun: rank 20 failed: exit status 3 after 1.5 s (pid 100)\n"
#define TRY_PTY \
	"  a rank's streams are pipes   try: xrun --pty, which gives it a terminal\n"
#define TRY_PORT \
	"  xrun serves PyTorch's store at MASTER_PORT   try: --port-hold always, if the program serves one itself\n"

Test(failure, a_program_that_wants_a_terminal_is_offered_one)
{
	make_ranks(1, EXITED(3));
	job.errors_are_tty = true;
	tails[1] = "stdin is NOT A TTY\n";
	is_account(true, FAILED "  | stdin is NOT A TTY\n" TRY_PTY);
	job.opt.pty = true;
	is_account(true, FAILED "  | stdin is NOT A TTY\n");
	job.opt.pty = false;
	job.errors_are_tty = false;
	is_account(true, FAILED "  | stdin is NOT A TTY\n");
	job.errors_are_tty = true;
	tails[1] = "Error opening terminal: unknown.\n";
	is_account(true,
		FAILED "  | Error opening terminal: unknown.\n" TRY_PTY);
	make_ranks(2, EXITED(3));
	ranks[1].status = 0;
	is_account(true,
		"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n"
		"  | Error opening terminal: unknown.\n");
}

Test(failure, a_program_that_finds_its_port_taken_is_told_by_whom)
{
	make_ranks(1, EXITED(3));
	tails[0] = "Address already in use\n";
	is_account(true, FAILED "  | Address already in use\n");
	job.tcpstore_fd = 0;
	is_account(true, FAILED "  | Address already in use\n" TRY_PORT);
	tails[0] = "while trying to connect to h:1\n";
	is_account(true,
		FAILED "  | while trying to connect to h:1\n" TRY_PORT);
	tails[0] = "connected\n";
	is_account(true, FAILED "  | connected\n");
}

/* --- files that a rank left ------------------------------------------------- */

static mode_t
mode_of(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

Test(failure, an_error_file_is_shown_and_becomes_private)
{
	static const char *const rows[][2] = {
		{ "{\"message\":\"a\\nb\"}", "  error.json: a\n" },
		{ "{\"message\":{\"message\":\"\\u001b[2Jc\\rd\"}}",
			"  error.json: c\n" },
		{ "{\"message\":{\"message\":\"a\",\"extraInfo\":{\"backtrace\":[\"f\\ng\",\"h\",7,\"i\"]}}}",
			"  error.json: a\n    #0 f\n    #1 h\n" },
		{ "{\"message\":{\"message\":\"a\",\"extraInfo\":{\"backtrace\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\"]}}}",
			"  error.json: a\n    #0 0\n    #1 1\n    #2 2\n    #3 3\n    #4 4\n    #5 5\n    #6 6\n    #7 7\n" },
		{ "{\"message\":7}", "" },
		{ "{\"message\":\"a\"", "" },
	};
	char want[512];

	make_ranks(2, EXITED(3));
	ranks[1].status = 0;
	cr_assert_eq(mkdir("logs", 0700), 0);
	cr_assert_eq(mkdir("logs/k7m2", 0700), 0);
	folder_write("logs/k7m2/rank-0021.error.json", "{}", 0644);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		folder_write("logs/k7m2/rank-0020.error.json", rows[i][0],
			0644);
		snprintf(want, sizeof(want), "%s%s",
			"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n",
			rows[i][1]);
		page.kept = 0;
		is_account(true, want);
		cr_expect_eq(page.kept, 1);
		cr_expect_eq(mode_of("logs/k7m2/rank-0020.error.json"), 0600);
	}
	/* of a rank that ended well it is not looked at */
	cr_expect_eq(mode_of("logs/k7m2/rank-0021.error.json"), 0644);
	/* of whoever may read it already */
	folder_write("logs/k7m2/rank-0020.error.json", "{}", 0400);
	is_account(true,
		"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n");
	cr_expect_eq(mode_of("logs/k7m2/rank-0020.error.json"), 0400);
	page.kept = 0;
	folder_write("logs/k7m2/other", "{\"message\":\"a\"}", 0644);
	cr_assert_eq(unlink("logs/k7m2/rank-0020.error.json"), 0);
	cr_assert_eq(symlink("other", "logs/k7m2/rank-0020.error.json"), 0);
	is_account(false,
		"xrun: rank 20 failed first: exit status 3 after 1.5 s (pid 100)\n");
	job_account(&job, true);
	cr_expect_eq(mode_of("logs/k7m2/other"), 0644);
}

Test(failure, without_files_of_a_job_error_files_are_elsewhere)
{
	make_ranks(1, EXITED(3));
	job.errors = (char *)"there";
	folder_write("there-rank-0020.error.json", "{\"message\":\"a\"}", 0644);
	is_account(true, FAILED "  error.json: a\n");
	cr_expect_eq(mode_of("there-rank-0020.error.json"), 0600);
	cr_expect_eq(page.kept, 1);
	job.errors = NULL;
	job.state.attempt = NULL;
	is_account(true, FAILED);
}

Test(failure, a_core_file_is_named)
{
	struct rlimit limit;
	char here[PATH_MAX], want[PATH_MAX + 128];

	make_ranks(1, SIGSEGV | DUMPED);
	parts[0].dir = (char *)"/dir";
	job.begun_wall = 77;
	core_kind = CORE_UNKNOWN;
	is_account(true,
		"xrun: rank 20 failed: SIGSEGV after 1.5 s (pid 100, core: written)\n");
	cr_expect_eq(core_asked.pid, 100);
	cr_expect_eq(core_asked.sig, SIGSEGV);
	cr_expect_eq(core_asked.since, 77);
	cr_expect_str_eq(core_asked.dir, "/dir");
	cr_expect_str_eq(core_asked.program, "./fit");
	core_kind = CORE_PIPED;
	core_name = "a\nb";
	is_account(true,
		"xrun: rank 20 failed: SIGSEGV after 1.5 s (pid 100, core: handed to a?b)\n");
	core_kind = CORE_FILE;
	is_account(true,
		"xrun: rank 20 failed: SIGSEGV after 1.5 s (pid 100, core: a?b)\n");
	setenv("HOME", "/nowhere", 1);
	core_name = "core.1";
	folder_write("core.1", "", 0600);
	snprintf(want, sizeof(want),
		"xrun: rank 20 failed: SIGSEGV after 1.5 s (pid 100, core: %s/core.1)\n",
		realpath(".", here));
	is_account(true, want);
	is_account(false,
		"xrun: rank 20 failed: SIGSEGV after 1.5 s (pid 100)\n");
	cr_assert_eq(getrlimit(RLIMIT_CORE, &limit), 0);
	limit.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_CORE, &limit), 0);
	ranks[0].status = SIGSEGV;
	is_account(true,
		"xrun: rank 20 failed: SIGSEGV after 1.5 s (pid 100, core: none, ulimit -c is 0)\n");
	ranks[0].status = SIGTERM;
	is_account(true,
		"xrun: rank 20 failed: SIGTERM after 1.5 s (pid 100)\n");
	if (limit.rlim_max == 0)
		return; /* it cannot be raised */
	limit.rlim_cur = 1;
	cr_assert_eq(setrlimit(RLIMIT_CORE, &limit), 0);
	ranks[0].status = SIGQUIT;
	is_account(true,
		"xrun: rank 20 failed: SIGQUIT after 1.5 s (pid 100, core: none)\n");
}

/* --- programs that cannot be run -------------------------------------------- */

static void
be_refused(int sys)
{
	make_ranks(1, 0);
	ranks[0].failed_step = SPAWN_EXEC;
	ranks[0].failed_sys = sys;
}

Test(failure, a_program_that_cannot_be_run_has_advice)
{
	argv[0] = (char *)"./p";
	parts[0].program = argv[0];
	be_refused(ENOEXEC);
	is_account(true,
		"xrun: ./p: Exec format error   try: file, to see what machine it is for\n");
	be_refused(EACCES);
	job.opt.quiet = true;
	is_account(true,
		"xrun: ./p: Permission denied   try: ls -l, and the mount options\n");
	be_refused(E2BIG);
	is_account(true,
		"xrun: ./p: Argument list too long   try: shorter arguments and environment (ulimit -s; 128 KiB each)\n");
	be_refused(ENOMEM);
	is_account(true, "xrun: ./p: Cannot allocate memory\n");
	be_refused(EACCES);
	folder_write("p", "#!/no/such\n", 0700);
	is_account(true,
		"xrun: ./p: Permission denied   try: ls -l, and the mount options\n");
}

Test(failure, an_interpreter_that_is_not_there_is_named)
{
	static const char *const rows[][2] = {
		{ "#! \t/no/such -x\n", " (its interpreter /no/such)" },
		{ "#!/a\033b\r\n", " (its interpreter /a?b)" },
		{ "#!x", " (its interpreter x)" },
		{ "#!", "" },
		{ "!#/no/such\n", "" },
		{ "", "" },
	};
	char want[256], path[PATH_MAX + 8];

	argv[0] = (char *)"./p";
	parts[0].program = argv[0];
	be_refused(ENOENT);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		folder_write("p", rows[i][0], 0700);
		snprintf(want, sizeof(want),
			"xrun: ./p: No such file or directory%s   try: head -n 1 of it, or: file\n",
			rows[i][1]);
		is_account(true, want);
	}
	folder_write("p", rows[0][0], 0700);
	is_account(false,
		"xrun: ./p: No such file or directory   try: head -n 1 of it, or: file\n");
	/* from the folder of --chdir, unless it is absolute */
	cr_assert_eq(mkdir("d", 0700), 0);
	cr_assert_eq(rename("p", "d/p"), 0);
	parts[0].dir = (char *)"d";
	is_account(true,
		"xrun: ./p: No such file or directory (its interpreter /no/such)   try: head -n 1 of it, or: file\n");
	snprintf(path, sizeof(path), "%s/d/p", folder);
	parts[0].program = path;
	is_account(true,
		"xrun: ./p: No such file or directory (its interpreter /no/such)   try: head -n 1 of it, or: file\n");
}
