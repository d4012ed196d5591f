/* SPDX-License-Identifier: Apache-2.0 */
/* stdio_hook.c - see stdio_hook.h. Links with nothing: see preload.c. */
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "worker/job/stdio_block.h"
#include "worker/job/stdio_exec.h"
#include "worker/job/stdio_hook.h"
#include "worker/job/stdio_stack.h"

#pragma weak __errno_location
#pragma weak _r_debug
#pragma weak dl_iterate_phdr
#pragma weak stdout

/* The compiler believes that what libc declares exists; this asks. */
#define HERE(symbol) (&(symbol) != NULL)

#define HIDDEN_VERSION 0x8000 /* of DT_VERSYM: not the default version */

#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[];
void stdio_hook_result(void);
#pragma GCC visibility pop

static const struct {
	const char name[17];
	int8_t kind;
	int8_t arg;
	int8_t env;
} hooks[] = {
#define HOOK_TEXT(name, stream)       { #name, STDIO_HOOK_TEXT, stream, 0 },
#define HOOK_CHAR(name, byte, stream) { #name, STDIO_HOOK_CHAR, stream, 0 },
#define HOOK_END(name)                { #name, STDIO_HOOK_END, 0, 0 },
#define HOOK_FD(name, fd)             { #name, STDIO_HOOK_FD, fd, 0 },
#define HOOK_STREAM(name, stream)     { #name, STDIO_HOOK_STREAM, stream, 0 },
#define HOOK_UNLOCKED(name)           { #name, STDIO_HOOK_UNLOCKED, 0, 0 },
#define HOOK_KILL(name, sig)          { #name, STDIO_HOOK_KILL, sig, 0 },
#define HOOK_ALONE(name)              { #name, STDIO_HOOK_ALONE, 0, 0 },
#define HOOK_STACK(name)              { #name, STDIO_HOOK_STACK, 0, 0 },
#define HOOK_PRCTL(name)              { #name, STDIO_HOOK_PRCTL, 0, 0 },
#define HOOK_CALL(name)               { #name, STDIO_HOOK_CALL, 0, 0 },
#define HOOK_EXEC(name, file, env)    { #name, STDIO_HOOK_EXEC, file, env },
#include "worker/job/stdio_hook.def"
};

#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

/* The addresses of the functions of libc, once they are known. */
void *stdio_hook_real[HOOKS];
int32_t stdio_hook_calls; /* zero: a page of .data would cost each exec a page fault */
int32_t stdio_hook_armed;

/* --- symbols -------------------------------------------------------------- */

struct hook_object {
	ElfW(Addr) base;
	const ElfW(Sym) * symbol;
	const char *text;
	const uint32_t *gnu, *sysv;
	const uint16_t *version;
};

/* Some loaders relocate these addresses in place, others do not. */
static const void *
hook_pointer(ElfW(Addr) base, ElfW(Addr) at)
{
	return (const void *)(at < base ? base + at : at);
}

static struct hook_object
hook_object_of(ElfW(Addr) base, const ElfW(Dyn) * d)
{
	struct hook_object o = { .base = base };

	for (; d != NULL && d->d_tag != DT_NULL; d++) {
		const void *p = hook_pointer(base, d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			o.symbol = p;
		else if (d->d_tag == DT_STRTAB)
			o.text = p;
		else if (d->d_tag == DT_GNU_HASH)
			o.gnu = p;
		else if (d->d_tag == DT_HASH)
			o.sysv = p;
		else if (d->d_tag == DT_VERSYM)
			o.version = p;
	}
	return o;
}

static bool
hook_is_same(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static void *
hook_symbol(const struct hook_object *o, uint32_t i, const char *name)
{
	const ElfW(Sym) *s = &o->symbol[i];
	ElfW(Addr) at = o->base + s->st_value;

	if (s->st_shndx == SHN_UNDEF ||
		!hook_is_same(o->text + s->st_name, name))
		return NULL;
	if (o->version != NULL && (o->version[i] & HIDDEN_VERSION))
		return NULL;
	if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
		return ((void *(*)(void))at)();
	return (void *)at;
}

/* The table: bucket count, first symbol, bloom words, shift; bloom, buckets,
 * chain. The last hash of a chain is odd. */
static void *
hook_find_gnu(const struct hook_object *o, const char *name)
{
	const uint32_t *t = o->gnu;
	const uint32_t *bucket = t + 4 + t[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + t[0];
	uint32_t hash = 5381, i;
	void *at;

	for (const char *p = name; *p != '\0'; p++)
		hash = hash * 33 + (unsigned char)*p;
	i = t[0] == 0 ? 0 : bucket[hash % t[0]];
	if (i < t[1] || i == 0)
		return NULL;
	for (;; i++) {
		uint32_t h = chain[i - t[1]];

		at = (h | 1) == (hash | 1) ? hook_symbol(o, i, name) : NULL;
		if (at != NULL || (h & 1))
			return at;
	}
}

static void *
hook_find_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *name)
{
	struct hook_object o = hook_object_of(base, dynamic);
	void *at = NULL;

	if (o.symbol == NULL || o.text == NULL)
		return NULL;
	if (o.gnu != NULL)
		return hook_find_gnu(&o, name);
	for (uint32_t i = 1; at == NULL && o.sysv != NULL && i < o.sysv[1]; i++)
		at = hook_symbol(&o, i, name);
	return at;
}

/* For a libc that does not publish its list of objects. */
struct hook_search {
	const char *name;
	bool behind; /* the agent itself was met */
	void *at;
	const char *file;
};

static int
hook_search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct hook_search *s = arg;
	const ElfW(Dyn) *dynamic = NULL;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr +
				info->dlpi_phdr[i].p_vaddr);
	if (s->behind)
		s->at = hook_find_in(info->dlpi_addr, dynamic, s->name);
	s->file = info->dlpi_name;
	s->behind = s->behind || dynamic == _DYNAMIC;
	return s->at != NULL;
}

static const struct link_map *
hook_self(void)
{
	const struct link_map *l = HERE(_r_debug) ? _r_debug.r_map : NULL;

	while (l != NULL && l->l_ld != _DYNAMIC)
		l = l->l_next;
	return l;
}

/* Objects of the start stay loaded and are first in the list, so it can be read
 * while another thread adds to it. */
void *
stdio_hook_find_file(const char *name, const char **file)
{
	struct hook_search s = { .name = name };
	const struct link_map *l = hook_self();
	void *at = NULL;

	if (l == NULL) {
		if (dl_iterate_phdr != NULL)
			dl_iterate_phdr(hook_search_object, &s);
		*file = s.file;
		return s.at;
	}
	while (at == NULL && (l = l->l_next) != NULL) {
		at = hook_find_in(l->l_addr, l->l_ld, name);
		*file = l->l_name;
	}
	return at;
}

void *
stdio_hook_find(const char *name)
{
	const char *file;

	return stdio_hook_find_file(name, &file);
}

/* Each imported function has a relocation. @size: of @r, in bytes. */
static bool
hook_relocates(const struct hook_object *o, const ElfW(Rela) * r, size_t size,
	const char *name)
{
	for (size_t i = 0; r != NULL && i < size / sizeof(*r); i++) {
		const ElfW(Sym) *s = &o->symbol[ELF64_R_SYM(r[i].r_info)];

		if (ELF64_R_SYM(r[i].r_info) != 0 && s->st_shndx == SHN_UNDEF &&
			hook_is_same(o->text + s->st_name, name))
			return true;
	}
	return false;
}

static bool
hook_object_imports(const struct link_map *l, const char *name)
{
	struct hook_object o = hook_object_of(l->l_addr, l->l_ld);
	const void *rela = NULL, *plt = NULL;
	size_t rela_size = 0, plt_size = 0;

	for (const ElfW(Dyn) *d = l->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			rela = hook_pointer(l->l_addr, d->d_un.d_ptr);
		else if (d->d_tag == DT_JMPREL)
			plt = hook_pointer(l->l_addr, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			rela_size = d->d_un.d_val;
		else if (d->d_tag == DT_PLTRELSZ)
			plt_size = d->d_un.d_val;
	}
	return o.symbol != NULL && o.text != NULL &&
		(hook_relocates(&o, rela, rela_size, name) ||
			hook_relocates(&o, plt, plt_size, name));
}

bool
stdio_hook_imports(const char *name)
{
	const struct link_map *l = hook_self();

	if (l == NULL)
		return true;
	for (l = _r_debug.r_map; l != NULL; l = l->l_next)
		if (hook_object_imports(l, name))
			return true;
	return false;
}

const char *
stdio_hook_path(void)
{
	const struct link_map *l = hook_self();

	return l == NULL || l->l_name == NULL ? "" : l->l_name;
}

/* --- calls ---------------------------------------------------------------- */

static bool
hook_is_stdout(int arg, const uint64_t *args)
{
	return arg == HOOK_STDOUT ||
		(HERE(stdout) && (void *)args[arg] == (void *)stdout);
}

/* System calls that a program makes by number, and that concern stdout as the
 * functions of the same names do; @fd: the argument that has to be descriptor 1. */
static bool
hook_call_concerns(const uint64_t *args)
{
	static const struct {
		uint16_t number;
		int8_t fd;
	} calls[] = { { SYS_write, 1 }, { SYS_writev, 1 }, { SYS_close, 1 },
		{ SYS_sendfile, 1 }, { SYS_splice, 3 }, { SYS_dup2, 2 },
		{ SYS_dup3, 2 }, { SYS_fork, 0 }, { SYS_vfork, 0 },
		{ SYS_clone, 0 }, { SYS_clone3, 0 }, { SYS_execve, 0 },
		{ SYS_execveat, 0 }, { SYS_exit_group, 0 }, { SYS_kill, 0 },
		{ SYS_tkill, 0 }, { SYS_tgkill, 0 }, { SYS_rt_sigaction, 0 },
		{ SYS_close_range, 0 } };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (args[0] == calls[i].number)
			return calls[i].fd == 0 ||
				(int)args[calls[i].fd] == STDOUT_FILENO;
	return false;
}

static bool
hook_concerns_stdout(uint32_t index, const uint64_t *args)
{
	int arg = hooks[index].arg;

	switch (hooks[index].kind) {
	case STDIO_HOOK_FD:
		return (int)args[arg] == STDOUT_FILENO;
	case STDIO_HOOK_STREAM:
		return hook_is_stdout(arg, args);
	case STDIO_HOOK_KILL:
		return (int)args[arg] == SIGKILL;
	case STDIO_HOOK_CALL:
		return hook_call_concerns(args);
	case STDIO_HOOK_END:
	case STDIO_HOOK_EXEC:
		return true;
	default:
		return false;
	}
}

/* The name without "_unlocked". */
static void
hook_copy_name(const char *name, char *out)
{
	while (*name != '\0' && !hook_is_same(name, "_unlocked"))
		*out++ = *name++;
	*out = '\0';
}

static void *
hook_target(uint32_t index)
{
	void *at = __atomic_load_n(&stdio_hook_real[index], __ATOMIC_RELAXED);
	char name[sizeof(hooks[0].name)];

	if (at != NULL)
		return at;
	hook_copy_name(hooks[index].name, name);
	at = stdio_hook_find(name);
	if (at == NULL)
		__builtin_trap(); /* a program calls what its libc lacks */
	__atomic_store_n(&stdio_hook_real[index], at, __ATOMIC_RELAXED);
	return at;
}

/* What has to be done whether or not there is block mode. */
static void
hook_always(int kind, const uint64_t *args)
{
	if (kind == STDIO_HOOK_ALONE)
		stdio_block_end_thread();
	else if (kind == STDIO_HOOK_STACK)
		stdio_stack_take();
	else if (kind == STDIO_HOOK_PRCTL && (int)args[0] == PR_SET_SECCOMP)
		stdio_block_forbid();
	else if (kind == STDIO_HOOK_CALL &&
		(args[0] == SYS_seccomp ||
			(args[0] == SYS_prctl &&
				(int)args[1] == PR_SET_SECCOMP)))
		stdio_block_forbid();
	else if (kind == STDIO_HOOK_CALL && stdio_hook_armed != 0 &&
		(args[0] == SYS_unshare || args[0] == SYS_setns))
		stdio_block_end_thread();
}

void *
stdio_hook_slow(struct stdio_hook_frame *frame, uint32_t index)
{
	int kind = hooks[index].kind;
	bool writes = kind <= STDIO_HOOK_CHAR;
	int saved = HERE(__errno_location) ? errno : 0;
	struct stdio_exec exec;

	if (writes && stdio_hook_calls < 0)
		stdio_block_check(hook_is_stdout(hooks[index].arg,
			frame->args));
	hook_always(kind, frame->args);
	if (!writes && stdio_hook_armed != 0 &&
		hook_concerns_stdout(index, frame->args))
		stdio_block_end();
	if (HERE(__errno_location))
		errno = saved;
	exec = (struct stdio_exec){ .way = hooks[index].arg,
		.env_at = hooks[index].env,
		.frame = frame };
	if (kind == STDIO_HOOK_EXEC &&
		stdio_exec_run(&exec, hook_target(index)))
		return (void *)stdio_hook_result;
	return hook_target(index);
}
