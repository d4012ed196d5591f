/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c - see crash.h. What the handler uses is static: the stack may be all
 * that is left of one. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/uio.h>

#include "worker/job/crash.h"
#include "worker/job/crash_text.h"
#include "worker/job/place.h"

/* Another libc may have none; the agent meets programs of any. */
#pragma weak backtrace

#define FRAMES      16
#define OURS_MAX    8 /* frames of the handler, above those of the program */
#define STACK_BYTES (64 << 10)
#define NEAR        (64 << 10) /* of the stack's end, where an overflow meets it */
#define WAIT_MS     2000       /* for who tells of a crash already */

static const struct {
	int sig;
	const char *name;
} signals[] = {
	{ SIGSEGV, "SIGSEGV" },
	{ SIGBUS, "SIGBUS" },
	{ SIGILL, "SIGILL" },
	{ SIGFPE, "SIGFPE" },
	{ SIGABRT, "SIGABRT" },
};

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* Made by crash_begin(). */
static struct sigaction before[SIGNALS];
static char error_file[PATH_MAX];
static char stack[STACK_BYTES] __attribute__((aligned(64)));

/* The crash that is told of. */
static _Atomic pid_t teller; /* its thread; 0: none yet */
static atomic_bool over;
static struct {
	int sig;
	siginfo_t info;
	void *at[FRAMES + OURS_MAX];
	struct place places[FRAMES];
	size_t count;
	char reason[256], text[8192];
} crash;

static pid_t
thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static size_t
index_of(int sig)
{
	size_t i = 0;

	while (i < SIGNALS - 1 && signals[i].sig != sig)
		i++;
	return i;
}

/* --- where ---------------------------------------------------------------- */

struct registers {
	uintptr_t pc, sp; /* 0: not known on this machine */
	uintptr_t link;   /* where it was called from, if that is a register */
};

static struct registers
registers_of(const ucontext_t *u)
{
	struct registers r = { 0 };

#if defined(__x86_64__)
	r.pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	r.sp = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	r.pc = (uintptr_t)u->uc_mcontext.pc;
	r.sp = (uintptr_t)u->uc_mcontext.sp;
	r.link = (uintptr_t)u->uc_mcontext.regs[30];
#else
	(void)u;
#endif
	return r;
}

/* Who called what is no code: a call leaves it in a register or on the stack,
 * which may be no stack; so the kernel reads it. */
static uintptr_t
caller_of(const struct registers *r)
{
	uintptr_t caller = r->link;
	struct iovec to = { &caller, sizeof(caller) };
	struct iovec from = { (void *)r->sp, sizeof(caller) };

	if (caller == 0)
		syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0);
	return caller;
}

static void
add_frame(uintptr_t address)
{
	if (crash.count < FRAMES)
		crash.places[crash.count++].address = address;
}

/* From where it crashed on. Each address but the first stands behind a call: the
 * byte before belongs to it. */
static void
take_frames(const struct registers *r)
{
	uintptr_t caller = 0;
	int n = 0, i = 0;

	add_frame(r->pc); /* all that is known if the rest cannot be walked */
	if (backtrace != NULL)
		n = backtrace(crash.at, FRAMES + OURS_MAX);
	while (i < n && (uintptr_t)crash.at[i] != r->pc)
		i++;
	for (i++; i < n; i++)
		add_frame((uintptr_t)crash.at[i] - 1);
	if (n > 0 && crash.count == 1)
		caller = caller_of(r);
	if (caller != 0)
		add_frame(caller - 1);
}

/* load+0x3a (train 0x13b9) */
static void
put_place(struct crash_text *t, const struct place *p)
{
	if (p->symbol.name[0] != '\0') {
		crash_put_quoted(t, p->symbol.name);
		crash_put(t, "+");
		crash_put_hex(t, p->symbol.offset);
	} else {
		crash_put(t, "?");
	}
	crash_put(t, " (");
	crash_put_quoted(t, place_file(p));
	crash_put(t, " ");
	crash_put_hex(t, p->base != 0 ? p->in_file : p->address);
	crash_put(t, ")");
}

/* --- what ----------------------------------------------------------------- */

/* Why the kernel sent it. */
static const struct {
	int sig, code;
	const char *text; /* the address follows a blank */
} faults[] = {
	{ SIGSEGV, SEGV_MAPERR, "nothing is at address " },
	{ SIGSEGV, SEGV_ACCERR, "not allowed to touch address " },
	{ SIGBUS, BUS_ADRERR, "no memory behind address " },
	{ SIGBUS, BUS_ADRALN, "not aligned: address " },
	{ SIGFPE, FPE_INTDIV, "an integer was divided by zero" },
	{ SIGFPE, FPE_INTOVF, "an integer became too large" },
	{ SIGFPE, FPE_FLTDIV, "a number was divided by zero" },
	{ SIGFPE, FPE_FLTINV, "arithmetic with what is no number" },
	{ SIGILL, ILL_ILLOPN, "no instruction of this processor" },
	{ SIGILL, ILL_ILLOPC, "no instruction of this processor" },
};

static void
put_fault(struct crash_text *t, const siginfo_t *info)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const char *text = faults[i].text;

		if (faults[i].sig != info->si_signo ||
			faults[i].code != info->si_code)
			continue;
		crash_put(t, ": ");
		crash_put(t, text);
		if (text[strlen(text) - 1] == ' ')
			crash_put_hex(t, (uintptr_t)info->si_addr);
	}
}

static bool
is_overflow(const siginfo_t *info, uintptr_t sp)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	return info->si_signo == SIGSEGV && sp != 0 &&
		(info->si_code == SEGV_MAPERR ||
			info->si_code == SEGV_ACCERR) &&
		at + NEAR > sp && at < sp + NEAR;
}

/* "SIGSEGV: nothing is at address 0x10" */
static void
put_reason(struct crash_text *t, const siginfo_t *info, uintptr_t sp)
{
	if (getsid(0) != getpid()) {
		crash_put(t, "process ");
		crash_put_number(t, (uint64_t)getpid(), 10);
		crash_put(t, ": ");
	}
	crash_put(t, signals[index_of(info->si_signo)].name);
	if (info->si_code <= 0 && info->si_pid == getpid()) {
		crash_put(t,
			info->si_signo == SIGABRT ? ": abort was called" :
						    ": sent by itself");
	} else if (info->si_code <= 0) {
		crash_put(t, ": sent by process ");
		crash_put_number(t, (uint64_t)info->si_pid, 10);
	} else if (is_overflow(info, sp)) {
		crash_put(t, ": its stack is full");
	} else {
		put_fault(t, info);
	}
}

/* --- telling -------------------------------------------------------------- */

static void
write_all(int fd, const struct crash_text *t)
{
	size_t done = 0;
	ssize_t n;

	while (done < t->len) {
		n = write(fd, t->at + done, t->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		done += (size_t)n;
	}
}

/* What torch.distributed.elastic's error files have, and a backtrace. */
static void
put_json(struct crash_text *t)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	crash_put(t, "{\"message\":{\"message\":\"");
	crash_put_quoted(t, crash.reason);
	crash_put(t, "\",\"extraInfo\":{\"signal\":\"");
	crash_put(t, signals[index_of(crash.sig)].name);
	crash_put(t, "\",\"pid\":");
	crash_put_number(t, (uint64_t)getpid(), 10);
	crash_put(t, ",\"thread\":");
	crash_put_number(t, (uint64_t)thread_id(), 10);
	crash_put(t, ",\"timestamp\":\"");
	crash_put_number(t, (uint64_t)now.tv_sec, 10);
	crash_put(t, "\",\"backtrace\":[");
	for (size_t i = 0; i < crash.count; i++) {
		crash_put(t, i == 0 ? "\"" : ",\"");
		put_place(t, &crash.places[i]);
		crash_put(t, "\"");
	}
	crash_put(t, "]}}}\n");
}

/* For stderr. */
static void
put_lines(struct crash_text *t)
{
	crash_put(t, crash.reason);
	crash_put(t, "\n");
	for (size_t i = 0; i < crash.count; i++) {
		crash_put(t, i < 10 ? "  #" : " #");
		crash_put_number(t, i, 10);
		crash_put(t, "  ");
		put_place(t, &crash.places[i]);
		crash_put(t, "\n");
	}
}

/* Will it end by this? A handler of its own may go on. */
static bool
is_its_end(void)
{
	return before[index_of(crash.sig)].sa_handler == SIG_DFL;
}

static void
tell(void)
{
	struct crash_text t = { .cap = sizeof(crash.text), .at = crash.text };
	int fd = -1;

	if (error_file[0] != '\0' && is_its_end())
		fd = open(error_file,
			O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);
	if (fd != -1) {
		put_json(&t);
		write_all(fd, &t);
		close(fd);
	} else { /* or there is a file already */
		put_lines(&t);
		write_all(STDERR_FILENO, &t);
	}
}

static void
report(int sig, const siginfo_t *info, const ucontext_t *context)
{
	struct registers r = registers_of(context);
	struct crash_text reason = {
		.cap = sizeof(crash.reason),
		.at = crash.reason,
	};

	crash.sig = sig;
	crash.info = *info;
	put_reason(&reason, info, r.sp);
	take_frames(&r);
	place_find(crash.places, crash.count);
	tell();
	atomic_store(&over, true);
}

/* --- the handler ---------------------------------------------------------- */

/* What it did before, with all that was known of it, as soon as the signal may
 * come: when the handler returns, to where it came from. */
static void
pass_on(int sig, siginfo_t *info)
{
	sigaction(sig, &before[index_of(sig)], NULL);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), thread_id(), sig, info);
}

/* The stack could not be walked, and that crashed: what is known is told, and the
 * first signal is what ends the process. */
static void
give_up(void)
{
	sigset_t set;

	atomic_store(&over, true);
	place_find(crash.places, crash.count);
	tell();
	pass_on(crash.sig, &crash.info);
	sigemptyset(&set);
	sigaddset(&set, crash.sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void
await_teller(void)
{
	const struct timespec turn = { .tv_nsec = 10000000 };

	for (int ms = 0; ms < WAIT_MS && !atomic_load(&over); ms += 10)
		nanosleep(&turn, NULL);
}

/* The first, and one that comes after a handler of the program's took that. */
static bool
is_mine_to_tell(int sig, pid_t self)
{
	pid_t nobody = 0;
	bool done = true;

	if (atomic_compare_exchange_strong(&teller, &nobody, self))
		return true;
	if (sig == crash.sig ||
		!atomic_compare_exchange_strong(&over, &done, false))
		return false;
	crash.count = 0;
	atomic_store(&teller, self);
	return true;
}

static void
on_crash(int sig, siginfo_t *info, void *context)
{
	pid_t self = thread_id();
	int saved = errno;

	if (is_mine_to_tell(sig, self))
		report(sig, info, context);
	else if (atomic_load(&teller) == self && !atomic_load(&over))
		give_up();
	else
		await_teller();
	pass_on(sig, info);
	errno = saved;
}

/* --- installing ----------------------------------------------------------- */

/* Not in place of one that the program has. */
static int
give_stack(void)
{
	stack_t now, ours = { .ss_sp = stack, .ss_size = sizeof(stack) };

	if (sigaltstack(NULL, &now) == -1)
		return errno;
	if (!(now.ss_flags & SS_DISABLE))
		return 0;
	return sigaltstack(&ours, NULL) == -1 ? errno : 0;
}

static bool
is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) &&
		action->sa_sigaction == on_crash;
}

int
crash_begin(const char *path)
{
	struct sigaction action = {
		.sa_sigaction = on_crash,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	}, now;
	void *first[2];
	int sys = give_stack();

	if (sys != 0)
		return sys;
	if (path != NULL && strlen(path) < sizeof(error_file))
		memcpy(error_file, path, strlen(path) + 1);
	if (backtrace != NULL)
		backtrace(first, 2); /* loads what it needs */
	for (size_t i = 0; i < SIGNALS; i++) {
		if (sigaction(signals[i].sig, NULL, &now) == -1 ||
			now.sa_handler == SIG_IGN || is_ours(&now))
			continue;
		before[i] = now;
		sigaction(signals[i].sig, &action, NULL);
	}
	return 0;
}
