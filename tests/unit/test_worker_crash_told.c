/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_worker_crash_told.c - what is told of each signal, where to, and what becomes of the
 * handlers of a program (worker/job/crash.c). Signals are the process's own, with what the
 * kernel would say of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/folder.h"
#include "tests/unit/seccomp.h"
#include "worker/job/crash.h"

TestSuite(worker_crash_told, .init = folder_make, .fini = folder_remove,
	.timeout = 60);

#define LOOKS    24 /* frames that are looked for */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- what the handler uses ------------------------------------------------------------- */

int __wrap_backtrace(void **at, int most);
int __wrap_nanosleep(const struct timespec *turn, struct timespec *left);
ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);

static void *found[LOOKS];
static int found_count;
static void (*while_walking)(void); /* once */

/* What a child tells its parent. */
static struct {
	int turns, loads; /* of nanosleep(), of backtrace() by crash_begin() */
	int64_t turn_ns;
	int seen_signal, seen_code;
	uintptr_t seen_address;
	bool was_on_stack;
	int errno_after;
} *shared;

int
__wrap_backtrace(void **at, int most)
{
	void (*walk)(void) = while_walking;

	if (most != LOOKS) {
		shared->loads++;
		return 0;
	}
	while_walking = NULL;
	if (walk != NULL)
		walk();
	memcpy(at, found, sizeof(found));
	return found_count;
}

int
__wrap_nanosleep(const struct timespec *turn, struct timespec *left)
{
	(void)left;
	shared->turns++;
	shared->turn_ns = turn->tv_sec * 1000000000LL + turn->tv_nsec;
	return 0;
}

/* Of a text no write takes more than 7 bytes, and the first one is interrupted. */
ssize_t
__wrap_write(int fd, const void *data, size_t len)
{
	static bool was_interrupted;

	if (!was_interrupted) {
		was_interrupted = true;
		errno = EINTR;
		return -1;
	}
	return __real_write(fd, data, len < 7 ? len : 7);
}

/* --- who crashes ------------------------------------------------------------------------ */

static void
begin(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
}

static void
send(int sig, int code, uintptr_t address)
{
	siginfo_t info = { .si_signo = sig, .si_code = code };

	if (code > 0)
		info.si_addr = (void *)address;
	else
		info.si_pid = (pid_t)address;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig,
		&info);
}

/* How a child is to crash. */
struct crash {
	int sig, code;
	uintptr_t address;
	bool is_in_session; /* and does not lead it */
	const char *path;
	void (*first)(void), (*second)(void); /* before and after installing */
};

static char error_text[16384], file_text[16384];
static pid_t child;
static int child_status;

static void
read_all(int fd, char *out, size_t cap)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, out + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(fd);
}

static void __attribute__((noreturn))
be_child(const struct crash *c, int error)
{
	const stack_t no_stack = { .ss_flags = SS_DISABLE };
	const struct rlimit no_core = { 0, 0 };

	sigaltstack(&no_stack, NULL); /* a sanitizer has one */
	if (!c->is_in_session)
		setsid();
	setrlimit(RLIMIT_CORE, &no_core);
	dup2(error, STDERR_FILENO);
	for (int sig = 1; sig < 32; sig++)
		sigaction(sig, &(struct sigaction){ .sa_handler = SIG_DFL },
			NULL);
	alarm(15);
	if (c->first != NULL)
		c->first();
	if (crash_begin(c->path) != 0)
		_exit(91);
	if (c->second != NULL)
		c->second();
	errno = ENOTTY;
	if (c->sig != 0)
		send(c->sig, c->code,
			c->code > 0 || c->address != 0 ? c->address :
							 (uintptr_t)getpid());
	shared->errno_after = errno;
	_exit(92);
}

/* @error_text is what it wrote to standard error, @file_text what error.json has. */
static void
crash(const struct crash *c)
{
	int ends[2], fd;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	cr_assert_neq(child, -1);
	if (child == 0)
		be_child(c, ends[1]);
	close(ends[1]);
	read_all(ends[0], error_text, sizeof(error_text));
	cr_assert_eq(waitpid(child, &child_status, 0), child);
	file_text[0] = '\0';
	fd = open("error.json", O_RDONLY | O_CLOEXEC);
	if (fd != -1)
		read_all(fd, file_text, sizeof(file_text));
}

static void
expect_ended_by(int sig)
{
	cr_expect(WIFSIGNALED(child_status) && WTERMSIG(child_status) == sig,
		"%x: %s", (unsigned)child_status, error_text);
}

/* The first line on standard error. */
static void
expect_line(const char *want)
{
	char *end = strchr(error_text, '\n');

	cr_assert_not_null(end, "%s", error_text);
	*end = '\0';
	cr_expect_str_eq(error_text, want);
	*end = '\n';
}

/* --- why ----------------------------------------------------------------------------------- */

Test(worker_crash_told, each_signal_has_its_reason, .init = begin)
{
	static const struct {
		int sig, code;
		uintptr_t address;
		const char *want;
	} row[] = {
		{ SIGSEGV, SEGV_MAPERR, 0x10,
			"SIGSEGV: nothing is at address 0x10" },
		{ SIGSEGV, SEGV_ACCERR, 0x2f,
			"SIGSEGV: not allowed to touch address 0x2f" },
		{ SIGSEGV, 99, 0x10, "SIGSEGV" },
		{ SIGBUS, BUS_ADRERR, 0x30,
			"SIGBUS: no memory behind address 0x30" },
		{ SIGBUS, BUS_ADRALN, 0x31,
			"SIGBUS: not aligned: address 0x31" },
		{ SIGBUS, BUS_OBJERR, 0x31, "SIGBUS" },
		{ SIGFPE, FPE_INTDIV, 0x10,
			"SIGFPE: an integer was divided by zero" },
		{ SIGFPE, FPE_INTOVF, 0x10,
			"SIGFPE: an integer became too large" },
		{ SIGFPE, FPE_FLTDIV, 0x10,
			"SIGFPE: a number was divided by zero" },
		{ SIGFPE, FPE_FLTINV, 0x10,
			"SIGFPE: arithmetic with what is no number" },
		{ SIGFPE, FPE_FLTRES, 0x10, "SIGFPE" },
		{ SIGILL, ILL_ILLOPN, 0x10,
			"SIGILL: no instruction of this processor" },
		{ SIGILL, ILL_ILLOPC, 0x10,
			"SIGILL: no instruction of this processor" },
		{ SIGILL, ILL_BADSTK, 0x10, "SIGILL" },
		{ SIGABRT, SI_TKILL, 0, "SIGABRT: abort was called" },
		{ SIGSEGV, SI_TKILL, 0, "SIGSEGV: sent by itself" },
		{ SIGBUS, SI_QUEUE, 1, "SIGBUS: sent by process 1" },
		{ SIGABRT, SI_QUEUE, 1, "SIGABRT: sent by process 1" },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		crash(&(struct crash){ .sig = row[i].sig,
			.code = row[i].code,
			.address = row[i].address });
		expect_ended_by(row[i].sig);
		expect_line(row[i].want);
		cr_expect_eq((size_t)shared->loads, i + 1);
	}
}

Test(worker_crash_told, who_leads_no_session_tells_its_number, .init = begin)
{
	char want[96];

	crash(&(struct crash){ .sig = SIGSEGV,
		.code = SEGV_MAPERR,
		.address = 0x10,
		.is_in_session = true });
	expect_ended_by(SIGSEGV);
	snprintf(want, sizeof(want),
		"process %d: SIGSEGV: nothing is at address 0x10", child);
	expect_line(want);
}

/* --- where to -------------------------------------------------------------------------------- */

static void
expect_json(const char *signal, const char *reason, time_t from)
{
	char head[512], *at, *end;
	long stamp;
	int n;

	n = snprintf(head, sizeof(head),
		"{\"message\":{\"message\":\"%s\",\"extraInfo\":{\"signal\":\"%s\",\"pid\":%d,\"thread\":%d,\"timestamp\":\"",
		reason, signal, child, child);
	cr_assert_eq(strncmp(file_text, head, (size_t)n), 0, "%s", file_text);
	stamp = strtol(file_text + n, &end, 10);
	cr_expect(stamp >= from && stamp <= time(NULL), "%ld", stamp);
	n = snprintf(head, sizeof(head), "\",\"backtrace\":[\"");
	cr_assert_eq(strncmp(end, head, (size_t)n), 0, "%s", end);
	at = strstr(end, " 0x");
	cr_assert_not_null(at);
	at = strstr(at, ")\"");
	cr_expect_str_eq(at, ")\"]}}}\n");
}

Test(worker_crash_told, the_error_file_is_made_for_its_owner, .init = begin)
{
	time_t from = time(NULL);
	struct stat st;

	umask(0);
	crash(&(struct crash){ .sig = SIGBUS,
		.code = BUS_ADRERR,
		.address = 0x30,
		.path = "error.json" });
	expect_ended_by(SIGBUS);
	cr_expect_str_eq(error_text, "");
	expect_json("SIGBUS", "SIGBUS: no memory behind address 0x30", from);
	cr_assert_eq(stat("error.json", &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	/* It is not written again, but told on standard error. */
	from = (time_t)strlen(file_text);
	crash(&(struct crash){ .sig = SIGSEGV,
		.code = SEGV_MAPERR,
		.address = 0x10,
		.path = "error.json" });
	expect_line("SIGSEGV: nothing is at address 0x10");
	cr_expect_eq((time_t)strlen(file_text), from);
	unlink("error.json");
	cr_assert_eq(symlink("elsewhere", "error.json"), 0);
	crash(&(struct crash){ .sig = SIGSEGV,
		.code = SEGV_MAPERR,
		.address = 0x10,
		.path = "error.json" });
	expect_line("SIGSEGV: nothing is at address 0x10");
	cr_expect_eq(access("elsewhere", F_OK), -1);
	unlink("error.json");
}

Test(worker_crash_told, a_path_that_is_too_long_is_none, .init = begin)
{
	static char path[PATH_MAX + 2];

	for (size_t len = PATH_MAX - 1; len <= PATH_MAX + 1; len++) {
		memset(path, '/', len);
		path[len] = '\0';
		memcpy(path + len - 10, "error.json", 10);
		memcpy(path, "./", 2);
		crash(&(struct crash){ .sig = SIGABRT,
			.code = SI_TKILL,
			.path = path });
		expect_ended_by(SIGABRT);
		/* "./" and slashes: a path that the kernel accepts */
		if (len < PATH_MAX)
			cr_expect_str_eq(error_text, "");
		else
			expect_line("SIGABRT: abort was called");
		cr_expect_eq(file_text[0] != '\0', len < PATH_MAX);
		unlink("error.json");
	}
}

static void
call_nothing(void)
{
	void (*volatile nothing)(void) = NULL;

	nothing();
}

Test(worker_crash_told, lines_have_their_numbers, .init = begin)
{
	char want[1024];
	int n;

	for (int i = 0; i < 13; i++)
		found[i] = (void *)(uintptr_t)(i == 0 ? 0 : 16 * i + 1);
	found_count = 13;
	crash(&(struct crash){ .second = call_nothing });
	expect_ended_by(SIGSEGV);
	n = snprintf(want, sizeof(want),
		"SIGSEGV: nothing is at address 0x0\n");
	for (int i = 0; i < 13; i++)
		n += snprintf(want + n, sizeof(want) - (size_t)n,
			" %s#%d  ? (? 0x%x)\n", i < 10 ? " " : "", i,
			(unsigned)i * 16);
	cr_expect_str_eq(error_text, want);
}

/* --- handlers ---------------------------------------------------------------------------------- */

static void
program_handles(int sig, siginfo_t *info, void *context)
{
	(void)context;
	shared->seen_signal = sig;
	shared->seen_code = info->si_code;
	shared->seen_address = (uintptr_t)info->si_addr;
}

static void
have_handler(void)
{
	const struct sigaction mine = { .sa_sigaction = program_handles,
		.sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &mine, NULL);
}

Test(worker_crash_told, a_handler_of_the_program_has_the_signal_afterwards,
	.init = begin)
{
	crash(&(struct crash){ .sig = SIGSEGV,
		.code = SEGV_ACCERR,
		.address = 0x77,
		.path = "error.json",
		.first = have_handler });
	cr_expect(WIFEXITED(child_status));
	cr_expect_eq(WEXITSTATUS(child_status), 92); /* it goes on */
	expect_line("SIGSEGV: not allowed to touch address 0x77");
	cr_expect_str_eq(file_text, ""); /* it is no end */
	cr_expect_eq(shared->seen_signal, SIGSEGV);
	cr_expect_eq(shared->seen_code, SEGV_ACCERR);
	cr_expect_eq(shared->seen_address, 0x77);
	cr_expect_eq(shared->errno_after, ENOTTY);
	cr_expect_eq(shared->turns, 0);
}

static void
crash_once_more(void)
{
	send(SIGSEGV, SEGV_MAPERR, 0x55);
	send(SIGBUS, BUS_ADRERR, 0x66);
}

Test(worker_crash_told, another_signal_is_told_after_one_that_was_handled,
	.init = begin)
{
	char *second;

	crash(&(struct crash){ .first = have_handler,
		.second = crash_once_more });
	expect_ended_by(SIGBUS);
	expect_line("SIGSEGV: nothing is at address 0x55");
	second = strstr(error_text, "\nSIGBUS: ");
	cr_assert_not_null(second);
	cr_expect_eq(strncmp(second,
			     "\nSIGBUS: no memory behind address 0x66\n", 39),
		0);
	/* One frame of each. */
	cr_expect_not_null(strstr(second, "  #0  "));
	cr_expect_null(strstr(second, "  #1  "));
	cr_expect_eq(shared->turns, 0);
}

static void
install_and_crash_again(void)
{
	send(SIGSEGV, SEGV_MAPERR, 0x55);
	if (crash_begin(NULL) != 0)
		_exit(93);
	send(SIGSEGV, SEGV_MAPERR, 0x66);
}

Test(worker_crash_told, the_same_signal_is_told_once, .init = begin)
{
	crash(&(struct crash){ .first = have_handler,
		.second = install_and_crash_again });
	cr_expect_eq(WEXITSTATUS(child_status), 92);
	expect_line("SIGSEGV: nothing is at address 0x55");
	cr_expect_null(strstr(error_text, "0x66"));
	cr_expect_eq(shared->seen_address, 0x66);
	cr_expect_eq(shared->turns, 0); /* it was told of */
}

static void
ignore_it(void)
{
	sigaction(SIGFPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

Test(worker_crash_told, what_is_ignored_stays_ignored, .init = begin)
{
	crash(&(struct crash){ .sig = SIGFPE,
		.code = SI_TKILL,
		.first = ignore_it });
	cr_expect(WIFEXITED(child_status));
	cr_expect_str_eq(error_text, "");
}

static void
begin_again(void)
{
	if (crash_begin("error.json") != 0)
		_exit(94);
}

Test(worker_crash_told, installing_twice_is_as_once, .init = begin)
{
	crash(&(struct crash){ .sig = SIGILL,
		.code = ILL_ILLOPC,
		.second = begin_again });
	expect_ended_by(SIGILL);
	cr_expect_str_eq(error_text, "");
	cr_expect_neq(file_text[0], '\0'); /* the second one had a path */
	unlink("error.json");
}

/* --- the stack ----------------------------------------------------------------------------------- */

static char own_stack[64 << 10];

static void
look_at_stack(void)
{
	stack_t now;

	shared->was_on_stack = sigaltstack(NULL, &now) == 0 &&
		(now.ss_flags & SS_ONSTACK) && now.ss_sp != own_stack &&
		now.ss_size == 64 << 10;
}

static void
walk_with_look(void)
{
	while_walking = look_at_stack;
}

static void
have_stack(void)
{
	const stack_t mine = { .ss_sp = own_stack,
		.ss_size = sizeof(own_stack) };

	sigaltstack(&mine, NULL);
	walk_with_look();
}

Test(worker_crash_told, the_handler_has_a_stack_unless_the_program_has,
	.init = begin)
{
	crash(&(struct crash){ .sig = SIGILL,
		.code = ILL_ILLOPC,
		.first = walk_with_look });
	cr_expect(shared->was_on_stack);
	crash(&(struct crash){ .sig = SIGILL,
		.code = ILL_ILLOPC,
		.first = have_stack });
	cr_expect_not(shared->was_on_stack); /* it is on the program's */
	expect_ended_by(SIGILL);
}

Test(worker_crash_told, without_a_stack_nothing_is_installed, .init = begin)
{
	struct sigaction now;

	cr_assert_eq(seccomp_refuse(SYS_sigaltstack, EPERM), 0);
	cr_expect_eq(crash_begin("error.json"), EPERM);
	cr_assert_eq(sigaction(SIGILL, NULL, &now), 0);
	cr_expect_eq(now.sa_handler, SIG_DFL);
}

/* --- crashes of crashes ---------------------------------------------------------------------------- */

static void
crash_too(void)
{
	send(SIGBUS, BUS_ADRERR, 0x88);
}

static void
walk_with_crash(void)
{
	while_walking = crash_too;
}

Test(worker_crash_told, a_stack_that_cannot_be_walked_is_left, .init = begin)
{
	crash(&(struct crash){ .sig = SIGSEGV,
		.code = SEGV_MAPERR,
		.address = 0x10,
		.first = walk_with_crash });
	expect_ended_by(SIGSEGV);
	expect_line("SIGSEGV: nothing is at address 0x10");
	cr_expect_not_null(strstr(error_text, "  #0  "));
	cr_expect_null(strstr(error_text, "0x88"));
	cr_expect_eq(shared->turns, 0);
}

static void *
crashes(void *none)
{
	send(SIGBUS, BUS_ADRERR, 0x99);
	return none;
}

static void
have_another_crash(void)
{
	pthread_t thread;

	/* It waits for this one, in vain, and ends all. */
	if (pthread_create(&thread, NULL, crashes, NULL) == 0)
		pthread_join(thread, NULL);
}

static void
walk_with_another(void)
{
	while_walking = have_another_crash;
}

Test(worker_crash_told, another_thread_waits_2_s_for_who_tells, .init = begin)
{
	crash(&(struct crash){ .sig = SIGSEGV,
		.code = SEGV_MAPERR,
		.address = 0x10,
		.first = walk_with_another });
	expect_ended_by(SIGBUS);
	cr_expect_str_eq(error_text, "");
	cr_expect_eq(shared->turns, 200);
	cr_expect_eq(shared->turn_ns, 10000000);
}
