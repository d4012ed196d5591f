/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_block.c - see stdio_block.h. Links with nothing: see preload.c.
 *
 * Uses the fields of FILE that glibc's headers publish and that the inline
 * putc_unlocked() of programs depends on: _flags, _fileno, _IO_write_base,
 * _IO_write_ptr, _IO_write_end, _IO_buf_base and _IO_buf_end.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "worker/job/stdio_block.h"
#include "worker/job/stdio_call.h"
#include "worker/job/stdio_hook.h"
#include "worker/job/stdio_stack.h"

#pragma weak __errno_location
#pragma weak stdout

#define BLOCK_LINE_BUF   0x200  /* _IO_LINE_BUF of glibc's libio.h */
#define BLOCK_UNBUFFERED 0x2    /* _IO_UNBUFFERED */
#define BLOCK_UNLOCKED   0x8000 /* _IO_USER_LOCK: see __fsetlocking(3) */
#define BLOCK_FLAGS      (BLOCK_LINE_BUF | BLOCK_UNBUFFERED | BLOCK_UNLOCKED)
#define BLOCK_FEW        16          /* calls in a tick: lines are rare again */
#define BLOCK_WAIT_NS    100000000LL /* for a lock that another thread holds */
#define BLOCK_SIGNAL_NS  1000000000LL /* until a signal ends the process */
#define BLOCK_GONE_NS    1000000000LL /* until the kernel forgets a thread */
#define BLOCK_AGAIN_NS   20000000LL   /* a signal follows another at once */
#define BLOCK_POLL_NS    200000LL     /* between tries of the lock */
#define BLOCK_STACK      (256 << 10)
#define BLOCK_CALLS_MAX  (1 << 20)
#define BLOCK_FUTILE     2 /* of block.asked: the asking thread could not wait */
#define NS_PER_S         1000000000LL

/* All signals but 32 and 33. glibc sends these to every thread, and waits until
 * each thread has handled them: see nptl(7). */
#define BLOCK_SIGNALS (~(3L << 31))

/* _IO_lock_t of glibc. block_begin() verifies it. */
struct block_lock {
	int lock;
	int count;
	void *owner;
};

/* Found when block mode first begins. */
static struct {
	int (*ftrylockfile)(FILE *);
	void (*funlockfile)(FILE *);
	int (*pthread_create)(pthread_t *, const pthread_attr_t *,
		void *(*)(void *), void *);
	int (*attr_init)(pthread_attr_t *);
	int (*attr_setstacksize)(pthread_attr_t *, size_t);
	int (*attr_setdetachstate)(pthread_attr_t *, int);
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	int (*atfork)(void (*)(void), void (*)(void), void (*)(void), void *);
	int (*clock)(clockid_t, struct timespec *); /* no system call */
} libc;

static struct {
	bool allowed;    /* stdout is xrun's pipe */
	bool prepared;   /* libc is complete, fork handlers are installed */
	int32_t calls;   /* until the next check */
	int64_t checked; /* ns of the last check */
	long owner;      /* process of the thread; 0: it had none yet */
	long seccomp;    /* mode at the start */
	uint64_t dev;    /* of stdout */
	uint64_t ino;
	FILE *file; /* stdout when the thread began: a program may change it */

	/* Atomic. */
	int32_t running; /* the thread exists */
	int32_t asked;   /* a thread waits for the end of block mode; a futex */
	int32_t writing; /* the thread writes, and may wait for the reader */
	int32_t forks;   /* threads between the handlers of fork(2) */
	int32_t deferred; /* a signal that the thread will send; 0 */
	long thread;      /* its number */
	long last; /* number of a thread that the kernel may still know; 0 */
	long vain; /* thread that waited for one between two instructions */
	int64_t vain_end; /* of its wait; of block_now() */
} block;

static siginfo_t block_info; /* before block.deferred is set */

/* Signals that end a process, but SIGKILL. */
static const uint8_t fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP,
	SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM,
	SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
	SIGSYS };

static int64_t
block_now(void)
{
	struct timespec t;

	libc.clock(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void
block_wait(int32_t *word, int32_t value, int64_t ns)
{
	struct timespec t = { ns / NS_PER_S, ns % NS_PER_S };

	STDIO_CALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static void
block_wake(int32_t *word)
{
	STDIO_CALL(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int32_t
block_get(int32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void
block_set(int32_t *word, int32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* --- stdout ---------------------------------------------------------------- */

/* Returns false if an error, or an end of the wait, kept some of it back. @limit:
 * of block_now(); 0: none. */
static bool
block_write(const char **at, const char *end, int64_t limit)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
	const struct timespec turn = { .tv_nsec = 10000000 };
	long n;

	while (*at < end) {
		if (limit != 0 &&
			STDIO_CALL(SYS_ppoll, &p, 1, &turn, NULL, 8) == 0) {
			if (block_now() > limit)
				return false;
			continue;
		}
		n = end - *at < PIPE_BUF ? end - *at : PIPE_BUF;
		n = STDIO_CALL(SYS_write, STDOUT_FILENO, *at, n);
		if (n > 0)
			*at += n;
		else if (n == -EAGAIN)
			STDIO_CALL(SYS_ppoll, &p, 1, NULL, NULL, 8);
		else if (n != -EINTR)
			return false;
	}
	return true;
}

/* Writes the whole lines of the buffer. The rest moves to the beginning of the buffer.
 * The caller holds the lock. */
static void
block_write_lines(void)
{
	FILE *f = block.file;
	const char *at = f->_IO_write_base;
	char *end = f->_IO_write_ptr, *to = f->_IO_write_base;

	if (at == NULL || f->_fileno != STDOUT_FILENO)
		return;
	while (end > at && end[-1] != '\n')
		end--;
	if (end == at)
		return;
	block_set(&block.writing, 1);
	block_write(&at, end, 0);
	block_set(&block.writing, 0);
	for (; at < f->_IO_write_ptr; at++)
		*to++ = *at;
	f->_IO_write_ptr = to;
}

/* The lock has to be held. Inline putc() stores characters up to
 * _IO_write_end: line mode leaves it no room, block mode all. */
static void
block_set_mode(bool lines)
{
	FILE *f = block.file;

	if (lines) {
		f->_flags |= BLOCK_LINE_BUF;
		f->_IO_write_end = f->_IO_write_base;
	} else {
		f->_flags &= ~BLOCK_LINE_BUF;
		if (f->_IO_write_base != NULL)
			f->_IO_write_end = f->_IO_buf_end;
	}
}

static void *
block_self(void)
{
	void *self;

	__asm__("movq %%fs:16, %0" : "=r"(self));
	return self;
}

/* Returns true if the calling thread holds the lock of stdout. */
static bool
block_holds(void)
{
	const struct block_lock *l = (const void *)block.file->_lock;

	return __atomic_load_n(&l->owner, __ATOMIC_RELAXED) == block_self();
}

/* Returns true if @thread itself, which a signal interrupted, is between taking the lock of
 * stdout and noting that, or between the two of releasing it: it has just waited in vain for
 * whoever is. If it waited again, a timer would let it execute no instruction any more. */
static bool
block_is_between(long thread, int64_t now)
{
	const struct block_lock *l = (const void *)block.file->_lock;

	return __atomic_load_n(&block.vain, __ATOMIC_SEQ_CST) == thread &&
		now - __atomic_load_n(&block.vain_end, __ATOMIC_SEQ_CST) <
		BLOCK_AGAIN_NS &&
		__atomic_load_n(&l->lock, __ATOMIC_RELAXED) != 0 &&
		__atomic_load_n(&l->owner, __ATOMIC_RELAXED) == NULL;
}

/* Written by whole lines, as the agent set it, and not turned elsewhere since. */
static bool
block_fits(void)
{
	const FILE *f = block.file;
	struct stat st;

	return f->_fileno == STDOUT_FILENO && f->_IO_write_base != NULL &&
		f->_IO_write_base == f->_IO_buf_base &&
		(f->_flags & BLOCK_FLAGS) == BLOCK_LINE_BUF &&
		STDIO_CALL(SYS_fstat, STDOUT_FILENO, &st) == 0 &&
		st.st_dev == block.dev && st.st_ino == block.ino;
}

/* --- signals ---------------------------------------------------------------- */

/* The default action, with all that is known of the signal, as soon as the
 * handler returns. */
static void
block_die(int sig, siginfo_t *info)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };

	libc.sigaction(sig, &usual, NULL);
	STDIO_CALL(SYS_rt_tgsigqueueinfo, STDIO_CALL(SYS_getpid),
		STDIO_CALL(SYS_gettid), sig, info);
}

/* Returns true if the thread that handles the signal caused it. */
static bool
block_is_own(int sig, const siginfo_t *info)
{
	if (info->si_code == SI_TKILL)
		return info->si_pid == (pid_t)STDIO_CALL(SYS_getpid);
	return info->si_code > 0 &&
		(sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
			sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS);
}

/* Returns true if block mode has ended within @ns. If the caller itself holds the
 * lock of stdout, which a signal handler may do, this is impossible: returns at
 * once, and block mode ends when the lock is free. A thread that waits for the
 * reader is waited for, up to BLOCK_SIGNAL_NS if @bounded. */
static bool
block_ask(int64_t ns, bool bounded)
{
	int64_t begin = block_now(), past = 0;
	long self = STDIO_CALL(SYS_gettid);
	bool between = block_is_between(self, begin), ended;

	if (between)
		__atomic_store_n(&block.vain_end, begin, __ATOMIC_SEQ_CST);
	if (between || block_holds()) {
		block_set(&block.asked, BLOCK_FUTILE);
		block_wake(&block.asked);
		return block_get(&stdio_hook_armed) == 0;
	}
	if (block_get(&block.asked) == 0)
		block_set(&block.asked, 1);
	block_wake(&block.asked);
	while (block_get(&stdio_hook_armed) != 0) {
		past = block_now() - begin;
		if (bounded && past > BLOCK_SIGNAL_NS)
			break;
		if (past > ns && block_get(&block.writing) == 0)
			break;
		block_wait(&stdio_hook_armed, 1, 5000000);
	}
	ended = block_get(&stdio_hook_armed) == 0;
	__atomic_store_n(&block.vain_end, begin + past, __ATOMIC_SEQ_CST);
	__atomic_store_n(&block.vain, ended ? 0 : self, __ATOMIC_SEQ_CST);
	return ended;
}

/* Without the lock: its owner is this thread, which does not continue. */
static void
block_write_rest(void)
{
	const char *at = block.file->_IO_write_base;

	if (at != NULL && block.file->_fileno == STDOUT_FILENO)
		block_write(&at, block.file->_IO_write_ptr,
			block_now() + BLOCK_SIGNAL_NS);
}

static bool
block_is_owner(void)
{
	return block.owner == STDIO_CALL(SYS_getpid) &&
		__atomic_load_n(&block.thread, __ATOMIC_SEQ_CST) !=
		STDIO_CALL(SYS_gettid);
}

/* A signal from elsewhere may interrupt a thread that uses stdout. This thread has
 * to continue until it is done; then block_run() sends the signal again. */
static void
block_on_signal(int sig, siginfo_t *info, void *context)
{
	bool own = block_is_own(sig, info), ended = true;
	int saved = errno;

	(void)context;
	if (block_get(&stdio_hook_armed) != 0 && block_is_owner())
		ended = block_ask(own ? BLOCK_WAIT_NS : BLOCK_WAIT_NS / 5,
			true);
	if (!ended && !own && block_get(&block.writing) == 0) {
		if (block_get(&block.deferred) == 0) {
			block_info = *info;
			block_set(&block.deferred, sig);
		}
	} else {
		if (!ended && own)
			block_write_rest();
		block_die(sig, info);
	}
	errno = saved;
}

static void
block_handle(bool begin)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction ours = { .sa_flags = SA_SIGINFO | SA_RESTART |
			SA_ONSTACK },
			 now;
	long *mask = (void *)&ours.sa_mask;

	ours.sa_sigaction = block_on_signal;
	mask[0] = BLOCK_SIGNALS;
	for (size_t i = 0; i < sizeof(fatal); i++) {
		if (libc.sigaction(fatal[i], NULL, &now) == -1)
			continue;
		if (begin && now.sa_handler == SIG_DFL)
			libc.sigaction(fatal[i], &ours, NULL);
		else if (!begin && now.sa_sigaction == block_on_signal)
			libc.sigaction(fatal[i], &usual, NULL);
	}
}

/* --- the thread ------------------------------------------------------------- */

static bool
block_lock(int64_t limit)
{
	while (libc.ftrylockfile(block.file) != 0) {
		const struct timespec turn = { .tv_nsec = BLOCK_POLL_NS };

		if (block_now() > limit)
			return false;
		STDIO_CALL(SYS_nanosleep, &turn, NULL);
	}
	return true;
}

static bool
block_begin(void)
{
	bool fits;

	if (!block_lock(block_now() + BLOCK_WAIT_NS))
		return false;
	/* This thread has the lock: another owner means another layout. */
	if (!block_holds())
		block.allowed = false;
	fits = block.allowed && block_fits() && block_get(&block.forks) == 0;
	if (fits) {
		block_handle(true);
		stdio_hook_calls = INT32_MAX;
		block_set(&stdio_hook_armed, 1);
		block_set_mode(false);
	}
	libc.funlockfile(block.file);
	return fits;
}

/* If so many calls came, stdio has written a block of its own meanwhile: no line
 * of an earlier tick is left. */
static void
block_tick(int32_t calls)
{
	const FILE *f = block.file;

	if (calls > f->_IO_buf_end - f->_IO_buf_base ||
		!block_lock(block_now() + BLOCK_POLL_NS))
		return;
	block_write_lines();
	libc.funlockfile(block.file);
}

/* Returns when lines are rare, or when another thread asks for the end. */
static void
block_stay(void)
{
	int32_t calls = BLOCK_FEW;

	while (calls >= BLOCK_FEW && block_get(&block.asked) == 0) {
		block_wait(&block.asked, 0, STDIO_BLOCK_TICK_NS);
		calls = INT32_MAX - stdio_hook_calls;
		stdio_hook_calls = INT32_MAX;
		block_tick(calls);
	}
}

static void
block_finish(void)
{
	int64_t since = 0;

	while (!block_lock(block_now() + BLOCK_WAIT_NS)) {
		/* A signal that ends the process waits no longer. */
		if (since == 0 && block_get(&block.deferred) != 0)
			since = block_now();
		if (since != 0 && block_now() - since > BLOCK_SIGNAL_NS)
			return;
	}
	/* Only if it is as block_begin() left it. */
	if ((block.file->_flags & (BLOCK_LINE_BUF | BLOCK_UNBUFFERED)) == 0) {
		block_write_lines();
		block_set_mode(true);
	}
	libc.funlockfile(block.file);
}

/* Calls until block mode may begin again. */
static int32_t
block_next(int32_t asked)
{
	if (!block.allowed)
		return INT32_MAX;
	if (asked == 0)
		return STDIO_BLOCK_CALLS;
	if (asked == BLOCK_FUTILE || block.calls > BLOCK_CALLS_MAX / 2)
		return BLOCK_CALLS_MAX;
	return block.calls * 2;
}

static void *
block_run(void *arg)
{
	long none = 0, self = STDIO_CALL(SYS_gettid);
	int sig;

	(void)arg;
	__atomic_store_n(&block.thread, self, __ATOMIC_SEQ_CST);
	__atomic_store_n(&block.last, self, __ATOMIC_SEQ_CST);
	if (block_begin()) {
		block_stay();
		block_finish();
		block.calls = block_next(block_get(&block.asked));
		block_handle(false);
		stdio_hook_calls = block.calls;
		block_set(&stdio_hook_armed, 0);
		block_wake(&stdio_hook_armed);
	}
	sig = block_get(&block.deferred);
	if (sig != 0) {
		/* A thread may send such a signal to itself only. */
		block_die(sig, &block_info);
		STDIO_CALL(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8L);
	}
	__atomic_store_n(&block.thread, 0, __ATOMIC_SEQ_CST);
	block_set(&block.running, 0);
	block_wake(&block.running);
	return NULL;
}

/* --- fork ------------------------------------------------------------------- */

static void
block_before_fork(void)
{
	__atomic_fetch_add(&block.forks, 1, __ATOMIC_SEQ_CST);
	stdio_block_end();
}

static void
block_after_fork(void)
{
	__atomic_fetch_sub(&block.forks, 1, __ATOMIC_SEQ_CST);
}

/* The thread is the parent's. If block mode could not end, the lines in the copy
 * of the buffer are the parent's, too. */
static void
block_in_child(void)
{
	if (stdio_hook_armed != 0) {
		block.file->_IO_write_ptr = block.file->_IO_write_base;
		block_set_mode(true);
		block_handle(false);
	}
	stdio_hook_armed = 0;
	stdio_hook_calls = block.calls;
	block.running = block.asked = block.writing = block.forks = 0;
	block.deferred = 0;
	block.thread = block.last = 0;
	block.owner = STDIO_CALL(SYS_getpid);
}

/* --- beginning ---------------------------------------------------------------- */

static bool
block_find_functions(void)
{
	if (stdio_hook_find("gnu_get_libc_version") == NULL)
		return false; /* another libc, another struct FILE */
	libc.ftrylockfile = stdio_hook_find("ftrylockfile");
	libc.funlockfile = stdio_hook_find("funlockfile");
	libc.pthread_create = stdio_hook_find("pthread_create");
	libc.attr_init = stdio_hook_find("pthread_attr_init");
	libc.attr_setstacksize = stdio_hook_find("pthread_attr_setstacksize");
	libc.attr_setdetachstate =
		stdio_hook_find("pthread_attr_setdetachstate");
	libc.sigaction = stdio_hook_find("sigaction");
	libc.atfork = stdio_hook_find("__register_atfork");
	return libc.ftrylockfile != NULL && libc.funlockfile != NULL &&
		libc.pthread_create != NULL && libc.attr_init != NULL &&
		libc.attr_setstacksize != NULL &&
		libc.attr_setdetachstate != NULL && libc.sigaction != NULL &&
		libc.atfork != NULL;
}

/* A program that has confined itself since its start may not be allowed to make
 * threads. One that imports __overflow() contains putc_unlocked(), which changes
 * stdout without its lock: then no other thread may touch it. */
static bool
block_prepare(void)
{
	if (STDIO_CALL(SYS_prctl, PR_GET_SECCOMP) != block.seccomp)
		return false;
	if (block.prepared)
		return true;
	block.prepared = block_find_functions() &&
		!stdio_hook_imports("__overflow") &&
		libc.atfork(block_before_fork, block_after_fork, block_in_child,
			NULL) == 0;
	return block.prepared;
}

/* No signal of the program is handled on the thread. */
static bool
block_start(void)
{
	long all = BLOCK_SIGNALS, before;
	pthread_attr_t attr;
	pthread_t thread;
	bool made;

	if (libc.attr_init(&attr) != 0)
		return false;
	libc.attr_setstacksize(&attr, BLOCK_STACK);
	libc.attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	STDIO_CALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8L);
	made = libc.pthread_create(&thread, &attr, block_run, NULL) == 0;
	STDIO_CALL(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8L);
	return made;
}

void
stdio_block_allow(uint64_t dev, uint64_t ino)
{
	block.dev = dev;
	block.ino = ino;
	block.seccomp = STDIO_CALL(SYS_prctl, PR_GET_SECCOMP);
	block.calls = STDIO_BLOCK_CALLS;
	stdio_hook_calls = block.calls;
	block.allowed = true;
}

/* Returns true if the last calls came fast. */
static bool
block_is_fast(void)
{
	int64_t now, last = block.checked;

	if (libc.clock == NULL)
		libc.clock = stdio_hook_find("clock_gettime");
	if (libc.clock == NULL) {
		block.allowed = false;
		return false;
	}
	now = block_now();
	block.checked = now;
	return last != 0 && now - last <= STDIO_BLOCK_NS;
}

void
stdio_block_check(bool is_stdout)
{
	stdio_hook_calls = INT32_MAX;
	if (!block.allowed || block_get(&stdio_hook_armed) != 0)
		return;
	stdio_hook_calls = block.calls;
	if (!block_is_fast() || !is_stdout ||
		(block.owner != 0 && block.owner != STDIO_CALL(SYS_getpid)) ||
		__atomic_exchange_n(&block.running, 1, __ATOMIC_SEQ_CST) != 0)
		return;
	block_set(&block.asked, 0);
	block.owner = STDIO_CALL(SYS_getpid);
	block.file = stdout;
	if (block_prepare()) {
		stdio_stack_give();
		if (block_start())
			return;
	}
	block.allowed = false;
	stdio_hook_calls = INT32_MAX;
	block_set(&block.running, 0);
}

void
stdio_block_end(void)
{
	if (block_get(&stdio_hook_armed) != 0 && block_is_owner())
		block_ask(BLOCK_WAIT_NS, false);
}

/* The kernel counts a thread for a moment after it has ended. */
void
stdio_block_end_thread(void)
{
	const struct timespec turn = { .tv_nsec = BLOCK_POLL_NS };
	int64_t limit;

	if (block.owner == 0 || !block_is_owner() ||
		(block_get(&block.running) == 0 && block.last == 0))
		return;
	block_ask(BLOCK_WAIT_NS, false);
	limit = block_now() + BLOCK_GONE_NS;
	while (!block_holds() && block_now() < limit) {
		if (block_get(&block.running) != 0)
			block_wait(&block.running, 1, BLOCK_POLL_NS);
		else if (stdio_stack_thread_exists(block.last))
			STDIO_CALL(SYS_nanosleep, &turn);
		else
			break;
	}
	if (block_get(&block.running) == 0)
		block.last = 0;
}

void
stdio_block_forbid(void)
{
	block.allowed = false;
	stdio_hook_calls = INT32_MAX;
	stdio_block_end_thread();
}

/* After the program's own functions, before libc writes what is left: that
 * happens without a lock. */
__attribute__((destructor)) static void
block_at_exit(void)
{
	block.allowed = false;
	stdio_block_end();
}
