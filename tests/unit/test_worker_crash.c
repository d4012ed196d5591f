/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_crash.c - what a process tells of its crash (worker/job/crash.c). The test
 * says what backtrace() finds, and where the stack is. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/folder.h"
#include "worker/job/crash.h"

TestSuite(worker_crash, .init = folder_make, .fini = folder_remove,
	.timeout = 60);

#define FRAMES   16         /* that are told */
#define LOOKS    24         /* frames that are looked for */
#define NEAR     (64 << 10) /* of the stack's end */
#define FAR_AWAY 0x20000    /* nothing is there */

/* --- what is found ----------------------------------------------------------- */

static void *found[LOOKS];
static int found_count;

int __wrap_backtrace(void **at, int most);

/* crash_begin() only has it loaded. */
int
__wrap_backtrace(void **at, int most)
{
	if (most != LOOKS)
		return 0;
	memcpy(at, found, sizeof(found));
	return found_count;
}

static void
find(int count, const uintptr_t *at)
{
	found_count = count;
	for (int i = 0; i < count; i++)
		found[i] = (void *)at[i];
}

/* --- who crashes ------------------------------------------------------------- */

/* Goes on at @to. There the stack is at @sp, unless that is 0, or it has @top above the
 * rest: who called. */
static void
go_to(uintptr_t to, uintptr_t sp, uintptr_t top)
{
#if defined(__x86_64__)
	if (sp != 0)
		__asm__ volatile("movq %0, %%rsp\n\tjmp *%1"
			:
			: "r"(sp), "r"(to));
	__asm__ volatile("pushq %0\n\tjmp *%1" : : "r"(top), "r"(to));
#elif defined(__aarch64__)
	if (sp != 0)
		__asm__ volatile("mov x30, #0\n\tmov sp, %0\n\tbr %1"
			:
			: "r"(sp), "r"(to));
	__asm__ volatile("mov x30, %0\n\tbr %1" : : "r"(top), "r"(to) : "x30");
#endif
	_exit(1);
}

static char text[8192];

/* What is written of it. */
static const char *
crash_at(uintptr_t to, uintptr_t sp, uintptr_t top)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	const struct rlimit no_core = { 0, 0 };
	int status, fd;
	ssize_t n;
	pid_t pid = fork();

	cr_assert_neq(pid, -1);
	if (pid == 0) {
		alarm(30);
		setsid();
		setrlimit(RLIMIT_CORE, &no_core);
		sigaction(SIGSEGV, &usual, NULL);
		if (crash_begin("error.json") == 0)
			go_to(to, sp, top);
		_exit(1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%x",
		(unsigned)status);
	fd = open("error.json", O_RDONLY | O_CLOEXEC);
	cr_assert_neq(fd, -1);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	unlink("error.json");
	cr_assert_gt(n, 0);
	text[n] = '\0';
	return text;
}

static void
expect_words(const char *got, const char *words)
{
	cr_expect_not_null(strstr(got, words), "'%s' lacks '%s'", got, words);
}

/* --- where ------------------------------------------------------------------- */

/* Each but the first is the byte before. */
Test(worker_crash, frames_above_the_crash_are_left_out_and_callers_are_told)
{
	static const uintptr_t at[] = { 0x99, 0x98, 0, 0x11, 0x21 };

	find(5, at);
	expect_words(crash_at(0, 0, 0x31),
		"\"backtrace\":[\"? (? 0x0)\",\"? (? 0x10)\",\"? (? 0x20)\"]}}}\n");
	/* The one that crashed is the last. */
	find(3, at);
	expect_words(crash_at(0, 0, 0x31),
		"\"backtrace\":[\"? (? 0x0)\",\"? (? 0x30)\"]}}}\n");
}

Test(worker_crash, if_the_crash_is_in_no_frame_its_caller_is_told)
{
	static const uintptr_t at[] = { 0x99, 0x98 };

	for (int i = 1; i < 3; i++) {
		find(i, at);
		expect_words(crash_at(0, 0, 0x31),
			"\"backtrace\":[\"? (? 0x0)\",\"? (? 0x30)\"]}}}\n");
	}
	expect_words(crash_at(0, 0, 0), "\"backtrace\":[\"? (? 0x0)\"]}}}\n");
	/* Nothing is on the stack. */
	expect_words(crash_at(0, 16, 0), "\"backtrace\":[\"? (? 0x0)\"]}}}\n");
	/* Nothing can be walked. */
	find(0, at);
	expect_words(crash_at(0, 0, 0x31),
		"\"backtrace\":[\"? (? 0x0)\"]}}}\n");
}

Test(worker_crash, sixteen_frames_are_told)
{
	uintptr_t at[LOOKS];
	const char *got;
	int count = 0;

	for (uintptr_t i = 0; i < LOOKS; i++)
		at[i] = i * 16 + 1;
	at[0] = 0;
	find(LOOKS, at);
	got = crash_at(0, 0, 0x31);
	expect_words(got, "\"? (? 0xf0)\"]}}}\n");
	for (const char *p = got; (p = strstr(p, "\"? (")) != NULL; p++)
		count++;
	cr_expect_eq(count, FRAMES);
}

/* --- why --------------------------------------------------------------------- */

Test(worker_crash, near_the_end_of_the_stack_the_stack_is_full)
{
	static const struct {
		uintptr_t at, sp;
		const char *words;
	} rows[] = {
		{ 0, NEAR - 16, "\"SIGSEGV: its stack is full\"" },
		{ 0, NEAR, "\"SIGSEGV: nothing is at address 0x0\"" },
		{ FAR_AWAY, FAR_AWAY - NEAR,
			"\"SIGSEGV: nothing is at address 0x20000\"" },
		{ FAR_AWAY, FAR_AWAY - NEAR + 16,
			"\"SIGSEGV: its stack is full\"" },
		{ FAR_AWAY, FAR_AWAY, "\"SIGSEGV: its stack is full\"" },
		{ FAR_AWAY, FAR_AWAY + NEAR - 16,
			"\"SIGSEGV: its stack is full\"" },
		{ FAR_AWAY, FAR_AWAY + NEAR,
			"\"SIGSEGV: nothing is at address 0x20000\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_words(crash_at(rows[i].at, rows[i].sp, 0),
			rows[i].words);
}
