/* SPDX-License-Identifier: Apache-2.0 */
/* stdio_hook.c - see stdio_hook.h. Links with nothing: see preload.c. */
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "worker/job/stdio_block.h"
#include "worker/job/stdio_exec.h"
#include "worker/job/stdio_hook.h"

#pragma weak __errno_location
#pragma weak _r_debug
#pragma weak dl_iterate_phdr
#pragma weak stdout

/* The compiler believes that what libc declares exists; this asks. */
#define HERE(symbol) (&(symbol) != NULL)

#define HIDDEN_VERSION 0x8000 /* of DT_VERSYM: not the default version */

#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[];
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
#define HOOK_EXEC(name, file, env)    { #name, STDIO_HOOK_EXEC, file, env },
#include "worker/job/stdio_hook.def"
};

#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

/* The addresses of the functions of libc, once they are known. */
void *stdio_hook_real[HOOKS];
int32_t stdio_hook_calls = INT32_MAX;
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

static bool
hook_concerns_stdout(uint32_t index, const uint64_t *args)
{
	int arg = hooks[index].arg;

	switch (hooks[index].kind) {
	case STDIO_HOOK_FD:
		return (int)args[arg] == STDOUT_FILENO;
	case STDIO_HOOK_STREAM:
		return hook_is_stdout(arg, args);
	default:
		return true;
	}
}

static void *
hook_target(uint32_t index)
{
	void *at = __atomic_load_n(&stdio_hook_real[index], __ATOMIC_RELAXED);

	if (at == NULL)
		at = stdio_hook_find(hooks[index].name);
	if (at == NULL)
		__builtin_trap(); /* a program calls what its libc lacks */
	__atomic_store_n(&stdio_hook_real[index], at, __ATOMIC_RELAXED);
	return at;
}

static void *
hook_exec(uint32_t index, uint64_t *args)
{
	int file = hooks[index].arg, env = hooks[index].env;
	struct stdio_exec e = {
		.file = file == HOOK_NO_FILE ? NULL : (const char *)args[file],
		.env = env == HOOK_ENVIRON ? NULL : (char **)args[env],
	};

	stdio_exec_prepare(&e);
	if (env != HOOK_ENVIRON)
		args[env] = (uint64_t)e.env;
	return hook_target(index);
}

void *
stdio_hook_slow(uint64_t *args, uint32_t index)
{
	bool writes = hooks[index].kind <= STDIO_HOOK_CHAR;
	int saved = HERE(__errno_location) ? errno : 0;
	void *target;

	if (writes && stdio_hook_calls < 0)
		stdio_block_check(hook_is_stdout(hooks[index].arg, args));
	else if (!writes && stdio_hook_armed != 0 &&
		hook_concerns_stdout(index, args))
		stdio_block_end();
	target = hooks[index].kind == STDIO_HOOK_EXEC ? hook_exec(index, args) :
							hook_target(index);
	if (HERE(__errno_location))
		errno = saved;
	return target;
}
