/* SPDX-License-Identifier: Apache-2.0 */
/* test_zygote_serve.c - orders of a parent that the test plays, and what the zygote and
 * its children make of them. */
#include <pthread.h>
#include <sched.h>

#include <sys/mman.h>

#include <xrun/spawn.h>

#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/zygote_rig.h"

TestSuite(zygote_serve, .timeout = 150);

static void
expect_told(const char *got, const char *want, const char *folder,
	const char *tail)
{
	char all[1024];

	snprintf(all, sizeof(all), "%s; %s; TOLD=by the card; %s", want, folder,
		tail);
	EXPECT_STR(got, all);
}

/* --- children -------------------------------------------------------------------- */

static void
ignore_children(void)
{
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

FORKED_TEST(zygote_serve, a_child_has_only_what_is_ordered)
{
	struct child c =
		CHILD(.order.flags = 1 << 1, .func = "tells", .folder = "/");
	struct child other = CHILD(.order.flags = 1 << 0, .func = "reads");
	int ends[2];

	begin();
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	other.stdio[0] = ends[0];
	start(&other); /* its end is the zygote's alone */
	/* The zygote has 3 to 5, and the end of the other child as 8: the order's output
	 * comes as 6, its card as 7. */
	expect_told(output_of(&c, CLD_EXITED, 0),
		"open 1+ 7; blocked; default; ordinal 5; given", "/",
		"alone none none");
	close(ends[1]);
	close(ends[0]);
	expect_end(&other, CLD_EXITED, XR_EXIT_RANK_FAILED);
	end();
}

FORKED_TEST(zygote_serve, a_child_has_all_that_is_ordered)
{
	struct child c =
		CHILD(.order = { 7 | ZYGOTE_MEETS, 2,
			      1u << (SIGUSR1 - 1) | 1u << (SIGTERM - 1) },
			.func = "tells");
	char folder[256];

	first_of_all = ignore_children;
	begin();
	NEED(getcwd(folder, sizeof(folder)) != NULL);
	c.give[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c.give[1] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	NEED(c.give[0] != -1 && c.give[1] != -1);
	/* Standard input, output and error have come as 6 to 8. */
	expect_told(output_of(&c, CLD_EXITED, 0),
		"open 0+ 1+ 2+ 9 10 11 12; blocked 10 15; ignores; ordinal 5; given 11 12",
		folder, "meets none none");
	end();
}

FORKED_TEST(zygote_serve, a_child_that_executes_has_all_that_is_ordered)
{
	struct child c = CHILD(.order = { 2 | ZYGOTE_MEETS | ZYGOTE_EXECUTES, 2,
				       1u << (SIGUSR1 - 1) },
		.func = "tells", .folder = "/");

	begin();
	c.give[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c.give[1] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	NEED(c.give[0] != -1 && c.give[1] != -1);
	/* Its card, its place to meet, and what it is given. */
	expect_told(output_of(&c, CLD_EXITED, 0),
		"open 1+ 3 4 5 6; blocked 10; default; ordinal 5; given 5 6",
		"/", "meets none none");
	end();
}

FORKED_TEST(zygote_serve, a_child_in_a_folder_that_is_not_there_ends_with_125)
{
	struct child c = CHILD(.order.flags = 2, .func = "tells",
		.folder = "/there/is/none");

	begin();
	EXPECT_STR(output_of(&c, CLD_EXITED, 125), "");
	end();
}

FORKED_TEST(zygote_serve, a_child_without_a_card_says_so_and_ends_with_125)
{
	struct child c = CHILD(.order.flags = 4);

	begin();
	c.card = memfd_create("none", MFD_CLOEXEC);
	NEED(c.card != -1);
	EXPECT_STR(output_of(&c, CLD_EXITED, 125),
		"xrun: descriptor 7 is no card\n");
	end();
}

FORKED_TEST(zygote_serve, a_child_that_a_signal_ends_is_reported_so)
{
	struct child c = CHILD(.func = "dies");

	begin();
	start(&c);
	expect_end(&c, CLD_KILLED, SIGTERM);
	end();
}

static void
have_no_dup2(void)
{
	NEED(seccomp_refuse(
#ifdef SYS_dup2
		     SYS_dup2,
#else
		     SYS_dup3,
#endif
		     EMFILE) == 0);
}

FORKED_TEST(zygote_serve, a_child_that_cannot_have_its_output_ends_with_125)
{
	struct child c = CHILD(.order.flags = 2, .func = "tells");

	first_of_all = have_no_dup2;
	begin();
	EXPECT_STR(output_of(&c, CLD_EXITED, 125), "");
	end();
}

static void
have_no_execve(void)
{
	NEED(seccomp_refuse(SYS_execve, EACCES) == 0);
}

FORKED_TEST(zygote_serve, a_child_that_cannot_execute_ends_with_127)
{
	struct child c =
		CHILD(.order.flags = 2 | ZYGOTE_EXECUTES, .func = "tells");

	first_of_all = have_no_execve;
	begin();
	EXPECT_STR(output_of(&c, CLD_EXITED, 127), "");
	end();
}

static unsigned short_at;

static void
be_short(void)
{
	until_short = short_at;
}

/* How a child that executes ends when allocation @short_at of its zygote fails. */
static int
code_when_short(void)
{
	struct child c =
		CHILD(.order = { 2 | ZYGOTE_EXECUTES, 1 }, .func = "tells");
	struct zygote_end how = { -1, -1 };
	int ends[2];

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	begin();
	c.stdio[1] = ends[1];
	c.give[0] = ends[1];
	start(&c);
	close(ends[1]);
	EXPECT_EQ(recv(c.life, &how, sizeof(how), MSG_WAITALL), sizeof(how));
	EXPECT_EQ(how.code, CLD_EXITED);
	EXPECT_EQ(*all_of(ends[0]) != '\0', how.status == 0);
	close(c.life);
	close(c.pidfd);
	end();
	return how.status;
}

FORKED_TEST(zygote_serve, each_allocation_of_a_child_that_executes_may_fail)
{
	int code = 125;

	register_all();
	first_of_all = be_short;
	/* The first one is the zygote's own. */
	for (short_at = 2; code == 125 && short_at < 50; short_at++)
		code = code_when_short();
	EXPECT_EQ(code, 0);
	EXPECT(short_at > 6);
}

/* Expects that a child without a function @name reports that, and runs nothing. */
static void
expect_unknown(const char *name, const char *func, const char *cleaner)
{
	struct child c =
		CHILD(.order.flags = 2, .func = func, .cleaner = cleaner);
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_value *reports[2];
	int card = write_card(&c);

	c.card = dup(card);
	EXPECT_STR(output_of(&c, CLD_EXITED, XR_EXIT_RANK_FAILED), "");
	NEED(card_reports(card, reports, 2) == 1);
	EXPECT_EQ(xr_value_failure(reports[0], &f), XR_OK);
	EXPECT_EQ(f.status, XR_E_NO_FUNCTION);
	EXPECT_STR(f.text, "no function of that name is registered there");
	EXPECT_STR(f.func, name);
	EXPECT_STR(f.worker, "name");
	EXPECT_EQ(f.worker_id, c.pid);
	xr_value_unref(reports[0]);
	close(card);
}

FORKED_TEST(zygote_serve, a_function_that_is_not_there_is_reported)
{
	begin();
	expect_unknown("none", "none", "");
	expect_unknown("", "", "");
	expect_unknown("none", "tells", "none");
	expect_unknown("none", "none", "neither");
	end();
}

#define MANY 130 /* more than two reservations of places */

FORKED_TEST(zygote_serve, many_children_end_each_with_its_own_code)
{
	static struct child many[MANY];
	int ends[MANY][2], i;
	unsigned char code;

	begin();
	for (i = 0; i < MANY; i++) {
		many[i] =
			(struct child)CHILD(.order.flags = 1, .func = "reads");
		NEED(pipe2(ends[i], O_CLOEXEC) == 0);
		many[i].stdio[0] = ends[i][0];
		start(&many[i]);
		close(ends[i][0]);
	}
	/* The first ones, then the last ones, then those between. */
	for (int n = 0; n < MANY; n++) {
		i = n * 67 % MANY;
		code = (unsigned char)(i + 1);
		EXPECT_EQ(write(ends[i][1], &code, 1), 1);
		expect_end(&many[i], CLD_EXITED, i + 1);
		close(ends[i][1]);
	}
	end();
}

/* --- orders that fail -------------------------------------------------------------- */

/* Sends @len bytes of an order with @count descriptors, and expects that the zygote
 * refuses it and closes all that came with it. */
static void
expect_refused(const struct zygote_order *o, size_t len, size_t count)
{
	int fds[16], ends[2];
	char none;

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	for (size_t i = 0; i < count; i++)
		fds[i] = ends[1];
	send_bytes(o, len, fds, count);
	expect_answer(0, EINVAL);
	close(ends[1]);
	EXPECT_EQ(read(ends[0], &none, 1), 0);
	close(ends[0]);
}

FORKED_TEST(zygote_serve, an_order_of_another_size_or_count_is_refused)
{
	static const struct {
		struct zygote_order order;
		size_t count; /* of descriptors */
	} good[] = {
		{ { 0 }, 2 },
		{ { .flags = 1 }, 3 },
		{ { .flags = 7 | ZYGOTE_MEETS }, 6 },
		{ { .flags = ZYGOTE_EXECUTES }, 2 },
		{ { .flags = 7 | ZYGOTE_MEETS, .given = GIVEN_MAX }, 12 },
		{ { .given = GIVEN_MAX + 1 }, 3 + GIVEN_MAX - 1 },
	};
	struct child c = CHILD(.func = "dies");

	begin();
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		expect_refused(&good[i].order, sizeof(good[i].order),
			good[i].count - 1);
		expect_refused(&good[i].order, sizeof(good[i].order),
			good[i].count + 1);
		expect_refused(&good[i].order, sizeof(good[i].order) - 1,
			good[i].count);
	}
	start(&c); /* others are still obeyed */
	expect_end(&c, CLD_KILLED, SIGTERM);
	end();
}

static void
have_no_room(void)
{
	until_short = 1;
}

static void
have_no_fork(void)
{
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
}

/* Of its parent only. Signals are blocked, so that no hook can decide that. */
static void
have_one_pidfd(void)
{
	struct sock_filter filter[] = {
		SECCOMP_LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 3),
		SECCOMP_LOAD(args[0]), /* little-endian: the low half */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)getppid(), 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	NEED(seccomp_install(filter, sizeof(filter) / sizeof(filter[0])) == 0);
}

/* Expects that the first child fails with @sys, and that nothing of it is left. */
static void
expect_failure(void (*cause)(void), int sys)
{
	struct child c = CHILD(.order.flags = 3, .func = "reads");
	int in[2], out[2];
	char none;

	first_of_all = cause;
	begin();
	NEED(pipe2(in, O_CLOEXEC) == 0);
	NEED(pipe2(out, O_CLOEXEC) == 0);
	c.stdio[0] = in[0];
	c.stdio[1] = out[1];
	order(&c);
	expect_answer(0, sys);
	close(out[1]);
	EXPECT_EQ(read(c.life, &none, 1), 0);
	EXPECT_EQ(read(out[0], &none, 1), 0); /* it would wait for input */
	close(c.life);
	close(out[0]);
	close(in[0]);
	close(in[1]);
}

FORKED_TEST(zygote_serve, without_memory_a_child_is_not_made)
{
	struct child c = CHILD(.func = "dies");

	expect_failure(have_no_room, ENOMEM);
	start(&c); /* there is enough again */
	expect_end(&c, CLD_KILLED, SIGTERM);
	end();
}

FORKED_TEST(zygote_serve, an_error_of_fork_is_answered)
{
	expect_failure(have_no_fork, EAGAIN);
	end();
}

FORKED_TEST(zygote_serve, a_child_without_pidfd_is_killed)
{
	expect_failure(have_one_pidfd, EMFILE);
	end();
}

/* --- its begin and its end --------------------------------------------------------- */

static void
have_no_pidfd(void)
{
	NEED(seccomp_refuse(SYS_pidfd_open, ENOSYS) == 0);
}

FORKED_TEST(zygote_serve, a_zygote_that_cannot_watch_its_parent_says_so)
{
	first_of_all = have_no_pidfd;
	begin_unheard();
	expect_answer(0, ENOSYS);
	expect_exit(zygote, 125);
}

static void
have_no_signalfd(void)
{
	NEED(seccomp_refuse(SYS_signalfd4, EMFILE) == 0);
}

FORKED_TEST(zygote_serve, a_zygote_without_signalfd_says_so)
{
	first_of_all = have_no_signalfd;
	begin_unheard();
	expect_answer(0, EMFILE);
	expect_exit(zygote, 125);
}

static void *
waits(void *none)
{
	while (pause() == -1)
		;
	return none;
}

static void
have_a_thread(void)
{
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, waits, NULL) == 0);
}

FORKED_TEST(zygote_serve, a_zygote_with_threads_says_so)
{
	first_of_all = have_a_thread;
	begin_unheard();
	expect_answer(zygote, -1);
	end();
}

static void
expect_null(int fd)
{
	char path[64], got[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", zygote, fd);
	EXPECT(readlink(path, got, sizeof(got) - 1) > 0);
	EXPECT_STR(got, "/dev/null");
}

FORKED_TEST(zygote_serve, a_zygote_has_no_stdio_and_blocks_signals)
{
	struct child c = CHILD(.func = "dies");
	char path[64];

	begin();
	for (int fd = 0; fd < 3; fd++)
		expect_null(fd);
	snprintf(path, sizeof(path), "/proc/%d/fd/6", zygote);
	EXPECT_EQ(access(path, F_OK), -1); /* of /dev/null */
	kill(zygote, SIGTERM);
	kill(zygote, SIGHUP);
	start(&c);
	expect_end(&c, CLD_KILLED, SIGTERM);
	end();
}

static void
close_stdio(void)
{
	EXPECT_EQ(close_range(0, 2, 0), 0);
}

FORKED_TEST(zygote_serve, a_zygote_that_has_no_stdio_opens_null)
{
	first_of_all = close_stdio;
	begin();
	for (int fd = 0; fd < 3; fd++)
		expect_null(fd);
	end();
}

static void
close_stderr(void)
{
	EXPECT_EQ(close(STDERR_FILENO), 0);
}

FORKED_TEST(zygote_serve, a_zygote_that_has_no_standard_error_opens_null)
{
	first_of_all = close_stderr;
	begin();
	for (int fd = 0; fd < 3; fd++)
		expect_null(fd);
	end();
}

FORKED_TEST(zygote_serve, what_descends_from_a_zygote_ends_with_it)
{
	struct child c = CHILD(.order.flags = 1, .func = "reads");
	int ends[2];
	char none;

	begin();
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	c.stdio[0] = ends[0];
	start(&c);
	EXPECT_EQ(syscall(SYS_pidfd_send_signal, c.pidfd, 0, NULL, 0), 0);
	end();
	EXPECT_EQ(readable(c.pidfd), 1);
	EXPECT_EQ(read(c.life, &none, 1), 0);
}

FORKED_TEST(zygote_serve, what_a_child_has_left_ends_with_the_zygote)
{
	struct child c = CHILD(.order.flags = 2, .func = "leaves");
	int ends[2];

	begin();
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	c.stdio[1] = ends[1];
	start(&c);
	close(ends[1]);
	expect_end(&c, CLD_EXITED, 0);
	end();
	EXPECT_STR(all_of(ends[0]), "");
}

FORKED_TEST(zygote_serve, a_child_ends_with_a_zygote_that_is_killed)
{
	struct child c = CHILD(.order.flags = 1, .func = "reads");
	int ends[2], status;

	begin();
	NEED(pipe2(ends, O_CLOEXEC) == 0);
	c.stdio[0] = ends[0];
	start(&c);
	kill(zygote, SIGKILL);
	NEED(waitpid(zygote, &status, 0) == zygote);
	EXPECT_EQ(readable(c.pidfd), 1);
	NEED(waitpid(c.pid, &status, 0) == c.pid);
	/* One that was not as far yet sees that its parent is another. */
	EXPECT((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
		(WIFEXITED(status) && WEXITSTATUS(status) == 125));
}

static void
die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static pid_t maker;

static void *
begins(void *none)
{
	maker = (pid_t)syscall(SYS_gettid);
	begin();
	return none;
}

FORKED_TEST(zygote_serve, a_zygote_survives_the_thread_that_made_it)
{
	struct child c = CHILD(.func = "dies");
	pthread_t thread;
	char path[64];

	first_of_all = die_with_parent;
	NEED(pthread_create(&thread, NULL, begins, NULL) == 0);
	NEED(pthread_join(thread, NULL) == 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d", maker);
	while (access(path, F_OK) == 0)
		sched_yield();
	start(&c);
	expect_end(&c, CLD_KILLED, SIGTERM);
	end();
}

/* A process that makes a zygote, gives its socket away, and ends when @go does. */
static void __attribute__((noreturn))
be_parent(int give, int go)
{
	char none;

	begin_unheard();
	if (along_send(give, &zygote, sizeof(zygote), asks) != sizeof(zygote))
		_exit(1);
	_exit(read(go, &none, 1) != 0);
}

/* Has @asks and @zygote of a process that has not ended, which is returned; the end of
 * @go[1] ends it. */
static pid_t
have_parent(int go[2])
{
	struct along got;
	int pair[2];
	pid_t parent;

	NEED(pipe2(go, O_CLOEXEC) == 0);
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	parent = fork();
	NEED(parent != -1);
	if (parent == 0) {
		close(go[1]);
		be_parent(pair[1], go[0]);
	}
	NEED(readable(pair[0]) == 1);
	NEED(along_receive(pair[0], &zygote, sizeof(zygote), &got) ==
		sizeof(zygote));
	NEED(got.count == 1);
	asks = got.fd[0];
	return parent;
}

FORKED_TEST(zygote_serve, a_zygote_ends_when_its_parent_has_ended)
{
	int go[2];
	pid_t parent = have_parent(go);

	expect_answer(zygote, 0);
	close(go[1]);
	expect_exit(parent, 0);
	expect_exit(zygote, 0);
}

static void
become_orphan(void)
{
	pid_t parent = getppid();
	char none = 0;

	/* The parent ends when it has read this. */
	NEED(write(3, &none, 1) == 1);
	while (getppid() == parent)
		sched_yield();
}

FORKED_TEST(zygote_serve, a_zygote_whose_parent_has_died_does_not_begin)
{
	struct along got;
	int go[2];
	char none;
	pid_t parent;

	first_of_all = become_orphan;
	parent = have_parent(go);
	NEED(readable(asks) == 1);
	EXPECT_EQ(along_receive(asks, &none, 1, &got), 1);
	close(go[1]);
	expect_exit(parent, 0);
	expect_exit(zygote, 125);
	EXPECT_EQ(along_receive(asks, &none, 1, &got), 0);
}
