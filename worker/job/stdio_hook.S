/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_hook.S - the entry points of stdio_hook.def.
 *
 * Each entry point jumps to the function of libc with all registers and the
 * stack as they were, so it fits any arguments, vfork(2) included. If there is
 * something to do first, it calls stdio_hook_slow(), which returns the address
 * of that function.
 */
#if defined(__x86_64__) && defined(__LP64__)

	.text

/* The index of the hook is on the stack, above the return address. */
	.type	stdio_hook_enter, @function
stdio_hook_enter:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	pushq	%rax		/* %al: number of vector arguments */
	pushq	%r10
	pushq	%r9
	pushq	%r8
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	subq	$128, %rsp
	.cfi_adjust_cfa_offset 192
	movaps	%xmm0, (%rsp)
	movaps	%xmm1, 16(%rsp)
	movaps	%xmm2, 32(%rsp)
	movaps	%xmm3, 48(%rsp)
	movaps	%xmm4, 64(%rsp)
	movaps	%xmm5, 80(%rsp)
	movaps	%xmm6, 96(%rsp)
	movaps	%xmm7, 112(%rsp)
	leaq	128(%rsp), %rdi
	movl	192(%rsp), %esi
	call	stdio_hook_slow
	movq	%rax, %r11
	movaps	(%rsp), %xmm0
	movaps	16(%rsp), %xmm1
	movaps	32(%rsp), %xmm2
	movaps	48(%rsp), %xmm3
	movaps	64(%rsp), %xmm4
	movaps	80(%rsp), %xmm5
	movaps	96(%rsp), %xmm6
	movaps	112(%rsp), %xmm7
	addq	$128, %rsp
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%r8
	popq	%r9
	popq	%r10
	popq	%rax
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -200
	jmp	*%r11
	.cfi_endproc
	.size	stdio_hook_enter, . - stdio_hook_enter

/* Stands for a function that was called already: stdio_hook_slow() has put its
 * result into the first argument. */
	.globl	stdio_hook_result
	.hidden	stdio_hook_result
	.type	stdio_hook_result, @function
stdio_hook_result:
	.cfi_startproc
	movq	%rdi, %rax
	ret
	.cfi_endproc
	.size	stdio_hook_result, . - stdio_hook_result

#define BEGIN(name) \
	.globl	name; \
	.type	name, @function; \
	.p2align 4; \
name: \
	.cfi_startproc; \
	endbr64

/* @slow: a local label for what has to be done first. */
#define END(name, index) \
	movq	stdio_hook_real + 8 * (index)(%rip), %r11; \
	testq	%r11, %r11; \
	jz	1f; \
	jmp	*%r11; \
1:	pushq	$(index); \
	.cfi_adjust_cfa_offset 8; \
	jmp	stdio_hook_enter; \
	.cfi_endproc; \
	.size	name, . - name

#define TEXT(name, index) \
	BEGIN(name); \
	decl	stdio_hook_calls(%rip); \
	js	1f; \
	END(name, index)

#define CHAR(name, byte, index) \
	BEGIN(name); \
	cmpb	$10, byte; \
	jne	2f; \
	decl	stdio_hook_calls(%rip); \
	js	1f; \
2:	END(name, index)

#define OTHER(name, index) \
	BEGIN(name); \
	cmpl	$0, stdio_hook_armed(%rip); \
	jne	1f; \
	END(name, index)

/* seccomp(2) and prctl(2) may confine the program. */
#define CALL(name, index) \
	BEGIN(name); \
	cmpl	$0, stdio_hook_armed(%rip); \
	jne	1f; \
	cmpl	$317, %edi; \
	je	1f; \
	cmpl	$157, %edi; \
	je	1f; \
	END(name, index)

#define PLAIN(name, index) \
	BEGIN(name); \
	END(name, index)

#define ALWAYS(name, index) \
	BEGIN(name); \
	jmp	1f; \
	END(name, index)

#define HOOK_TEXT(name, stream)	      TEXT(name, __COUNTER__)
#define HOOK_CHAR(name, byte, stream) CHAR(name, byte, __COUNTER__)
#define HOOK_END(name)		      OTHER(name, __COUNTER__)
#define HOOK_FD(name, fd)	      OTHER(name, __COUNTER__)
#define HOOK_STREAM(name, stream)     OTHER(name, __COUNTER__)
#define HOOK_UNLOCKED(name)	      PLAIN(name, __COUNTER__)
#define HOOK_KILL(name, sig)	      OTHER(name, __COUNTER__)
#define HOOK_ALONE(name)	      ALWAYS(name, __COUNTER__)
#define HOOK_STACK(name)	      ALWAYS(name, __COUNTER__)
#define HOOK_PRCTL(name)	      ALWAYS(name, __COUNTER__)
#define HOOK_CALL(name)		      CALL(name, __COUNTER__)
#define HOOK_EXEC(name, file, env)    ALWAYS(name, __COUNTER__)

#include "worker/job/stdio_hook.def"

#endif
	.section .note.GNU-stack, "", @progbits
