/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.c - prints many lines with printf(3), and then does one more thing.
 *
 *	burst COUNT [WHAT]
 *
 * Each line is its number, from 0 on. WHAT is what comes directly behind the
 * last line; see the table at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <linux/seccomp.h>

static long count;

static void
print_lines(void)
{
	for (long i = 0; i < count; i++)
		printf("%ld\n", i);
}

static void
do_segv(void)
{
	volatile int *volatile nowhere = NULL;

	*nowhere = 1;
}

/* The fault comes while printf() holds the lock of stdout. */
static void
do_inside(void)
{
	const char *bad =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("%s\n", bad);
}

static int
grow(volatile char *above, int depth)
{
	volatile char room[4096];

	room[0] = above[0];
	return depth == 0 ? 0 : grow(room, depth - 1) + room[0];
}

static void
do_overflow(void)
{
	volatile char first = 0;

	exit(grow(&first, INT_MAX));
}

static void
do_term(void)
{
	kill(getpid(), SIGTERM);
	for (;;)
		pause();
}

/* Prints on, at most a hundred times as much, while another process sends
 * SIGTERM. */
static void
do_termed(void)
{
	pid_t self = getpid();

	if (fork() == 0) {
		usleep(20000);
		kill(self, SIGTERM);
		_exit(0);
	}
	for (long i = count; i < 100 * count; i++)
		printf("%ld\n", i);
}

static void
do_raise(void)
{
	raise(SIGUSR2);
}

static void
do_quick(void)
{
	_exit(0);
}

static void
do_exec(void)
{
	execlp("echo", "echo", "behind", NULL);
}

static void
do_execve(void)
{
	char *argv[] = { "echo", "behind", NULL }, *env[] = { NULL };

	execve("/bin/echo", argv, env);
}

static void
wait_for(pid_t pid)
{
	waitpid(pid, NULL, 0);
}

/* Both have the unfinished text, as without the agent. */
static void
do_fork(void)
{
	pid_t pid;

	printf("half ");
	pid = fork();
	if (pid == 0) {
		puts("child");
		exit(0);
	}
	wait_for(pid);
	puts("parent");
	print_lines();
}

static void
do_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execlp("echo", "echo", "child", NULL);
		_exit(1);
	}
	wait_for(pid);
	puts("parent");
}

static void
do_spawn(void)
{
	char *argv[] = { "echo", "child", NULL };
	pid_t pid;

	if (posix_spawnp(&pid, "echo", NULL, NULL, argv, environ) == 0)
		wait_for(pid);
	puts("parent");
}

static void
do_system(void)
{
	int (*run)(const char *) = system;

	if (run("echo child") != 0)
		exit(1);
	puts("parent");
}

static void
do_write(void)
{
	if (write(STDOUT_FILENO, "written\n", 8) != 8)
		exit(1);
	puts("parent");
}

/* Later output goes to another file, earlier output does not. */
static void
do_dup(void)
{
	int fd = open("other", O_WRONLY | O_CREAT | O_TRUNC, 0666);

	dup2(fd, STDOUT_FILENO);
	puts("other");
}

/* Waits, so that the last line has to come by itself. */
static void
do_wait(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
	quick_exit(0);
}

static void
do_action(void)
{
	struct sigaction now;

	sigaction(SIGSEGV, NULL, &now);
	puts(now.sa_handler == SIG_DFL ? "default" : "handled");
}

/* Prints how many threads the process has after a pause. */
static void
do_thread_count(void)
{
	FILE *f;
	int n = 0;
	char line[256];

	for (int i = 0; i < 500; i++) {
		f = fopen("/proc/self/status", "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			sscanf(line, "Threads: %d", &n);
		if (f != NULL)
			fclose(f);
		if (n == 1)
			break;
		usleep(20000);
	}
	printf("threads %d\n", n);
}

static void *
print_named(void *name)
{
	for (long i = 0; i < count; i++)
		printf("%s %ld\n", (const char *)name, i);
	return NULL;
}

static void
do_threads(void)
{
	static char *const name[] = { "a", "b", "c", "d" };
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, print_named, name[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* Another thread forks while this one prints. */
static void *
fork_often(void *arg)
{
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		wait_for(pid);
	}
	return arg;
}

static void
do_forks(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fork_often, NULL);
	print_named("a");
	pthread_join(thread, NULL);
}

/* One character a call, as putc() does. */
static void
do_chars(void)
{
	char text[32];

	for (long i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%ld\n", i);
		for (char *p = text; *p != '\0'; p++)
			putchar(*p);
	}
	puts("last");
	_exit(0);
}

static void
do_unbuffered(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("torn");
	_Exit(0);
}

/* How often it has called write(2) so far, on stderr. */
static void
do_calls(void)
{
	char line[256];
	long calls = 0;
	FILE *f = fopen("/proc/self/io", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		sscanf(line, "syscw: %ld", &calls);
	if (f != NULL)
		fclose(f);
	fprintf(stderr, "%ld\n", calls);
}

/* glibc makes every thread change its identity. */
static void
do_setid(void)
{
	for (int i = 0; i < 3; i++) {
		if (setgid(getgid()) != 0 || seteuid(geteuid()) != 0)
			exit(1);
		print_lines();
	}
}

static void
on_alarm(int sig)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
}

/* The handler interrupts printf() and calls a function before which block mode
 * ends. */
static void
do_timer(void)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } },
			       never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm,
		.sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 20; i++)
		print_lines();
	setitimer(ITIMER_REAL, &never, NULL);
}

/* The timer's signals come while the lock of stdout is taken and nobody is noted as its owner,
 * as between two instructions of printf(). */
static void
do_between(void)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } },
			       never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm,
		.sa_flags = SA_RESTART };
	int *lock = (int *)stdout->_lock,
	    free = 0; /* of glibc: see _IO_lock_t */

	sigaction(SIGALRM, &action, NULL);
	/* Until block mode has begun again. */
	for (;;) {
		print_lines();
		while (!__atomic_compare_exchange_n(lock, &free, 1, false,
			__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			free = 0;
		if (!__flbf(stdout))
			break;
		__atomic_store_n(lock, 0, __ATOMIC_SEQ_CST);
	}
	setitimer(ITIMER_REAL, &often, NULL);
	for (volatile int i = 0; i < 50000000; i++)
		continue;
	setitimer(ITIMER_REAL, &never, NULL);
	__atomic_store_n(lock, 0, __ATOMIC_SEQ_CST);
	print_lines();
}

/* Only read(2), write(2) and exit(2) are allowed from then on. */
static void
do_strict(void)
{
	puts("ready"); /* stdio makes its buffer */
	fflush(stdout);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0)
		_exit(1);
	for (int i = 0; i < 1000; i++)
		printf("confined %d\n", i);
	fflush(stdout);
	syscall(SYS_exit, 0);
}

/* Fails with EINVAL if the process has another thread; EPERM is the machine's. */
static void
do_unshare(void)
{
	int several = 0, status = 0;

	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			print_lines();
			exit(unshare(CLONE_NEWUSER) != 0 && errno == EINVAL);
		}
		waitpid(pid, &status, 0);
		several += status != 0;
	}
	puts(several == 0 ? "one thread" : "several threads");
}

/* ./foreign is no program, but begins as one of 32 bits. */
static void
do_environ(void)
{
	char *before = getenv("LD_PRELOAD"), **all = environ;
	pid_t pid = vfork();

	if (pid == 0) {
		execlp("./foreign", "foreign", NULL);
		_exit(1);
	}
	wait_for(pid);
	execl("./foreign", "foreign", NULL);
	puts(environ == all && getenv("LD_PRELOAD") == before ? "same" :
								"changed");
}

static void
do_stack(void)
{
	stack_t now;

	sigaltstack(NULL, &now);
	puts(now.ss_flags & SS_DISABLE ? "no stack" : "a stack");
}

/* Bytes of address space before and after threads that print. */
static long
size_of_maps(void)
{
	char line[256];
	long size = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		sscanf(line, "VmSize: %ld", &size);
	if (f != NULL)
		fclose(f);
	return size;
}

static void *
print_and_rest(void *arg)
{
	for (int i = 0; i < 1000; i++)
		puts("thread");
	usleep(50000);
	return arg;
}

static void
do_leak(void)
{
	pthread_t thread;
	long before = 0;

	for (int i = 0; i < 30; i++) {
		pthread_create(&thread, NULL, print_and_rest, NULL);
		pthread_join(thread, NULL);
		if (i == 4)
			before = size_of_maps();
	}
	puts(size_of_maps() - before < 300 ? "no leak" : "leak");
}

static void
do_exit_group(void)
{
	syscall(SYS_exit_group, 0);
}

static void
do_kill(void)
{
	raise(SIGKILL);
}

static void
do_sendfile(void)
{
	int fd = open("sent", O_RDONLY);

	if (fd == -1 || sendfile(STDOUT_FILENO, fd, NULL, 100) <= 0)
		exit(1);
	puts("parent");
}

/* Without the lock of stdout. */
static void
do_unlocked(void)
{
	int (*volatile put)(int, FILE *) = putc_unlocked;
	char text[32];

	for (long i = 0; i < 20 * count; i++) {
		snprintf(text, sizeof(text), "unlocked %ld", i);
		fputs_unlocked(text, stdout);
		put('\n', stdout);
	}
}

/* Starts a program of 32 bits in each way. */
static void
do_foreign(void)
{
	static const char path[] = "/lib32/libc.so.6", *const dir = "/lib32";
	char *argv[] = { (char *)path, NULL };

	for (int way = 0; way < 7; way++) {
		pid_t pid = fork();

		if (pid != 0) {
			wait_for(pid);
			continue;
		}
		if (way == 0)
			execle(path, path, NULL, environ);
		else if (way == 1)
			fexecve(open(path, O_RDONLY | O_CLOEXEC), argv,
				environ);
		else if (way == 2 && chdir(dir) == 0)
			execl("libc.so.6", path, NULL);
		else if (way == 3)
			execv(path, argv);
		else if (way == 4)
			execlp(path, path, "1", "2", "3", "4", "5", "6", NULL);
		else if (way == 5)
			execve(path, argv, environ);
		else if (way == 6)
			execl("./script", "script", NULL);
		_exit(1);
	}
}

static const struct {
	const char *name;
	void (*fn)(void);
} table[] = {
	{ "abort", abort },
	{ "action", do_action },
	{ "calls", do_calls },
	{ "chars", do_chars },
	{ "dup", do_dup },
	{ "environ", do_environ },
	{ "exec", do_exec },
	{ "execve", do_execve },
	{ "exit-group", do_exit_group },
	{ "foreign", do_foreign },
	{ "fork", do_fork },
	{ "forks", do_forks },
	{ "inside", do_inside },
	{ "kill", do_kill },
	{ "leak", do_leak },
	{ "overflow", do_overflow },
	{ "quick", do_quick },
	{ "raise", do_raise },
	{ "segv", do_segv },
	{ "sendfile", do_sendfile },
	{ "setid", do_setid },
	{ "spawn", do_spawn },
	{ "stack", do_stack },
	{ "strict", do_strict },
	{ "system", do_system },
	{ "term", do_term },
	{ "termed", do_termed },
	{ "thread-count", do_thread_count },
	{ "threads", do_threads },
	{ "timer", do_timer },
	{ "between", do_between },
	{ "unbuffered", do_unbuffered },
	{ "unlocked", do_unlocked },
	{ "unshare", do_unshare },
	{ "vfork", do_vfork },
	{ "wait", do_wait },
	{ "write", do_write },
};

int
main(int argc, char **argv)
{
	count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	print_lines();
	for (size_t i = 0; argc > 2 && i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i].name, argv[2]) == 0)
			table[i].fn();
	return 0;
}
