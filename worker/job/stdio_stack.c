/* SPDX-License-Identifier: Apache-2.0 */
/* stdio_stack.c - see stdio_stack.h. Links with nothing: see preload.c. */
#include <signal.h>
#include <stddef.h>

#include <sys/mman.h>

#include "worker/job/stdio_call.h"
#include "worker/job/stdio_stack.h"

#define STACK_SIZE (32 << 10)

static struct {
	void *at;    /* NULL: none yet */
	long holder; /* number of the thread that has it; 0 */
} stack;

bool
stdio_stack_thread_exists(long thread)
{
	return thread != 0 &&
		STDIO_CALL(SYS_tgkill, STDIO_CALL(SYS_getpid), thread, 0) == 0;
}

void
stdio_stack_give(void)
{
	stack_t now, ours = { .ss_size = STACK_SIZE };

	if (STDIO_CALL(SYS_sigaltstack, 0, &now) != 0 ||
		!(now.ss_flags & SS_DISABLE) ||
		stdio_stack_thread_exists(stack.holder))
		return;
	if (stack.at == NULL)
		stack.at = stdio_call_map(STACK_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1);
	ours.ss_sp = stack.at;
	if (ours.ss_sp != NULL && STDIO_CALL(SYS_sigaltstack, &ours, 0) == 0)
		stack.holder = STDIO_CALL(SYS_gettid);
}

void
stdio_stack_take(void)
{
	const stack_t none = { .ss_flags = SS_DISABLE };
	stack_t now;

	if (stack.at != NULL && STDIO_CALL(SYS_sigaltstack, 0, &now) == 0 &&
		now.ss_sp == stack.at && now.ss_flags == 0 &&
		STDIO_CALL(SYS_sigaltstack, &none, 0) == 0)
		stack.holder = 0;
}
