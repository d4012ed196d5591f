/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_main.c - xr_main(): what a failing rank says, and its code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

/* What test_worker_child.c did. stderr is a socket of packets, so that one
 * write is one entry here. */
struct outcome {
	int status;
	char out[256];
	char err[4][4096];
	int writes;
};

static void
read_all(struct outcome *o, int out, int err)
{
	ssize_t n;

	n = read(out, o->out, sizeof(o->out) - 1);
	o->out[n > 0 ? n : 0] = '\0';
	while (o->writes < 4) {
		n = read(err, o->err[o->writes], sizeof(o->err[0]) - 1);
		if (n <= 0)
			break;
		o->err[o->writes++][n] = '\0';
	}
}

/* @env: up to three NAME=VALUE, NULL-terminated. */
static struct outcome
run(const char *what, char *const env[])
{
	char *argv[] = { getenv("XRUN_TEST_CHILD"), (char *)what, NULL };
	struct outcome o = { 0 };
	int out[2], err[2];
	pid_t pid;

	if (argv[0] == NULL)
		cr_skip_test("XRUN_TEST_CHILD is not set");
	cr_assert_eq(pipe(out), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, err), 0);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		execve(argv[0], argv, env);
		_exit(127);
	}
	close(out[1]);
	close(err[1]);
	read_all(&o, out[0], err[0]);
	cr_assert_eq(waitpid(pid, &o.status, 0), pid);
	close(out[0]);
	close(err[0]);
	cr_assert(WIFEXITED(o.status), "status %x", (unsigned)o.status);
	o.status = WEXITSTATUS(o.status);
	return o;
}

static char *none[] = { NULL };

static int
count_lines(const char *text)
{
	int n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

Test(xr_main, success_gives_zero_and_says_nothing)
{
	struct outcome o = run("ok", none);

	cr_assert_eq(o.status, 0);
	cr_assert_eq(o.writes, 0);
}

Test(xr_main, AC_L10_a_failure_gives_17_the_device_and_the_text)
{
	char *env[] = { "XRUN_DEVICE=cuda:2", "XRUN_RANK=2", NULL };
	struct outcome o = run("fail", env);

	cr_assert_eq(o.status, 17);
	cr_assert_str_eq(o.out, "before\n");
	cr_assert_str_eq(o.err[0], "cuda:2: rank 2: sample 1797 of 1797\n");
}

Test(xr_main, the_cause_and_the_place_are_one_write_each)
{
	struct outcome o = run("fail", none);

	cr_assert_eq(o.writes, 2);
	cr_assert_eq(count_lines(o.err[0]), 1);
	cr_assert_eq(strncmp(o.err[1], "  #0  raise_it+0x", 17), 0, "%s",
		o.err[1]);
}

Test(xr_main, AC_L14_an_explicit_exit_keeps_its_code)
{
	struct outcome o = run("5", none);

	cr_assert_eq(o.status, 5);
	cr_assert_eq(o.writes, 0);
}

Test(xr_main, AC_L16_a_backtrace_has_16_frames_at_most)
{
	struct outcome o = run("deep", none);

	cr_assert_eq(o.status, 17);
	cr_assert_eq(count_lines(o.err[1]), 16, "%s", o.err[1]);
	cr_assert_not_null(strstr(o.err[1], "  #0  raise_it+"));
	cr_assert_not_null(strstr(o.err[1], "  #15 dig+"));
}

Test(xr_main, a_shallow_backtrace_ends_where_the_program_begins)
{
	struct outcome o = run("fail", none);

	cr_assert_lt(count_lines(o.err[1]), 16);
	cr_assert_not_null(strstr(o.err[1], " _start+"), "%s", o.err[1]);
	cr_assert_not_null(strstr(o.err[1], "(test_worker_child 0x"));
}

Test(xr_main, the_device_is_cpu_unless_told)
{
	char *xrt[] = { "XRUN_DEVICE=", "XRT_MULTI_PROCESSING_DEVICE=TPU:11",
		"XRT_SHARD_ORDINAL=11", NULL };
	struct outcome o = run("silent", none);

	cr_assert_str_eq(o.err[0], "cpu: rank 0: canceled\n");
	o = run("silent", xrt);
	cr_assert_str_eq(o.err[0], "TPU:11: rank 11: canceled\n");
}

Test(xr_main, a_failure_nobody_described_is_placed_in_xr_main)
{
	struct outcome o = run("silent", none);

	cr_assert_eq(o.writes, 2);
	cr_assert_eq(strncmp(o.err[1], "  #0  xr_main+", 14), 0, "%s",
		o.err[1]);
}

Test(xr_main, a_failure_without_a_place_for_words_still_has_its_place)
{
	struct outcome o = run("null", none);

	cr_assert_str_eq(o.err[0], "cpu: rank 0: out of range\n");
	cr_assert_eq(strncmp(o.err[1], "  #0  raise_it+", 15), 0);
}

Test(xr_main, what_the_system_said_is_added)
{
	struct outcome o = run("system", none);

	cr_assert_str_eq(o.err[0],
		"cpu: rank 0: digits.bin: No such file or directory\n");
}

Test(xr_main, a_failure_that_was_survived_is_not_shown)
{
	struct outcome o = run("recover", none);

	cr_assert_str_eq(o.err[0], "cpu: rank 0: nobody came\n");
	cr_assert_null(strstr(o.err[1], "dig+"), "%s", o.err[1]);
}

Test(xr_main, the_ordinal_is_xruns_then_torchs_then_xrts)
{
	char *env[] = { "XRUN_RANK=7", "RANK=6", "XRT_SHARD_ORDINAL=5", NULL };
	char *rest[] = { "XRUN_RANK=", "RANK=6", "XRT_SHARD_ORDINAL=5", NULL };

	cr_assert_str_eq(run("ordinal", env).out, "7\n");
	cr_assert_str_eq(run("ordinal", env + 1).out, "6\n");
	cr_assert_str_eq(run("ordinal", rest).out, "6\n");
	cr_assert_str_eq(run("ordinal", env + 2).out, "5\n");
	cr_assert_str_eq(run("ordinal", none).out, "0\n");
	env[0] = (char[]){ "XRUN_RANK=100" };
	cr_assert_str_eq(run("ordinal", env).out, "100\n");
}

Test(xr_main, an_ordinal_that_is_no_number_is_named)
{
	static const char *const bad[] = { "x", "1x", "-1", "+1", " 1", "1 ",
		"4294967296", "99999999999999999999999" };
	char value[64], text[128];
	char *env[] = { value, NULL };
	struct outcome o;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(value, sizeof(value), "XRUN_RANK=%s", bad[i]);
		snprintf(text, sizeof(text),
			"cpu: XRUN_RANK: '%s' is not a rank\n", bad[i]);
		o = run("ordinal", env);
		cr_assert_eq(o.status, 17);
		cr_assert_str_eq(o.err[0], text);
		cr_assert_str_empty(o.out);
	}
	snprintf(value, sizeof(value), "XRUN_RANK=4294967295");
	cr_assert_str_eq(run("ordinal", env).out, "4294967295\n");
}

Test(xr_main, a_process_that_cannot_begin_has_failed)
{
	char *env[] = { "XRUN_CARD_FD=none", NULL };
	struct outcome o = run("ordinal", env);

	cr_assert_eq(o.status, 17);
	cr_assert_str_eq(o.err[0],
		"cpu: XRUN_CARD_FD names no card: it is for children of a program's zygote\n");
	cr_assert_str_empty(o.out);
}

Test(xr_main, no_function_is_a_failure)
{
	struct outcome o = run("nofn", none);

	cr_assert_eq(o.status, 17);
	cr_assert_str_eq(o.err[0], "cpu: rank 0: xr_main: no function given\n");
}
