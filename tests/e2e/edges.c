/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edges.c - marks the control-flow edges that a process reaches.
 *
 * The linker adds this file to each executable and shared library of the folder
 * build-edges, which tests/e2e/edges builds. The compiler adds a call of
 * __sanitizer_cov_trace_pc() to each edge of code of src, launcher and worker.
 * Each module has a map: a file in the folder EDGES_MAPS that has the first half
 * of the module's build id as its name. A process maps the file at its start, if
 * it exists, and keeps no descriptor of it. Marks survive SIGKILL and _exit();
 * a child that is forked has the same map.
 *
 * Four bytes of code have one byte in the map, because the instruction of a call
 * takes five. The byte is 0, or 1 plus the lowest two bits of the return address.
 *
 * Modules without libc have this file, too: it makes its system calls itself.
 */
/* The callback saves the registers that it uses, and calls only builtins. */
#pragma clang diagnostic ignored "-Wexcessive-regsave"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef EDGES_MAPS
#define EDGES_MAPS "."
#endif

enum {
	ID_BYTES = 10,
};

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
void __sanitizer_cov_trace_pc(void)
	__attribute__((visibility("hidden"), no_caller_saved_registers));

static unsigned char *map;
static size_t map_size;

#if defined(__x86_64__)
static long
sys(long number, const long *args)
{
	register long r10 __asm__("r10") = args[3];
	register long r8 __asm__("r8") = args[4];
	register long r9 __asm__("r9") = args[5];
	long result = 0;

	__asm__ volatile("syscall"
		: "=a"(result)
		: "a"(number), "D"(args[0]), "S"(args[1]), "d"(args[2]),
		"r"(r10), "r"(r8), "r"(r9)
		: "rcx", "r11", "memory");
	return result;
}
#else
static long
sys(long number, const long *args)
{
	return -1;
}
#endif

/* Returns the build id in the notes, or NULL. */
static const unsigned char *
id_in(const unsigned char *notes, size_t size)
{
	const ElfW(Nhdr) * note;
	size_t at = 0;

	while (at + sizeof(*note) <= size) {
		note = (const void *)(notes + at);
		at += sizeof(*note) + ((note->n_namesz + 3U) & ~3U);
		if (note->n_type == NT_GNU_BUILD_ID &&
			note->n_descsz >= ID_BYTES && note->n_namesz == 4)
			return notes + at;
		at += (note->n_descsz + 3U) & ~3U;
	}
	return NULL;
}

static void
map_open(const char *path, size_t size)
{
	long fd = 0, at = 0;

	fd = sys(SYS_openat,
		(const long[6]){ AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC });
	if (fd < 0)
		return;
	at = sys(SYS_mmap,
		(const long[6]){ 0, (long)size, PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0 });
	sys(SYS_close, (const long[6]){ fd });
	if (at < 0 && at > -4096)
		return;
	map_size = size;
	__atomic_store_n(&map, (unsigned char *)at, __ATOMIC_RELEASE);
}

__attribute__((constructor(101))) static void
edges_start(void)
{
	static char path[] = EDGES_MAPS "/xxxxxxxxxxxxxxxxxxxx";
	char *name = path + sizeof(path) - 1 - 2 * ID_BYTES;
	const char *base = (const char *)&__ehdr_start;
	const ElfW(Phdr) *part = (const void *)(base + __ehdr_start.e_phoff);
	const unsigned char *id = NULL;
	size_t end = 0, i;

	for (i = 0; i < __ehdr_start.e_phnum; i++) {
		if (part[i].p_type == PT_NOTE && id == NULL)
			id = id_in((const void *)(base + part[i].p_vaddr),
				part[i].p_memsz);
		if (part[i].p_type == PT_LOAD && (part[i].p_flags & PF_X))
			end = part[i].p_vaddr + part[i].p_memsz;
	}
	if (id == NULL)
		return;
	for (i = 0; i < ID_BYTES; i++) {
		name[2 * i] = "0123456789abcdef"[id[i] >> 4];
		name[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
	}
	map_open(path, end / 4 + 1);
}

void
__sanitizer_cov_trace_pc(void)
{
	uintptr_t pc = (uintptr_t)__builtin_return_address(0);
	unsigned char *bytes = __atomic_load_n(&map, __ATOMIC_ACQUIRE);
	unsigned char mark = (unsigned char)(1 + (pc & 3));
	size_t at = (pc - (uintptr_t)&__ehdr_start) / 4;

	if (bytes == NULL || at >= map_size)
		return;
	if (bytes[at] != mark)
		bytes[at] = mark;
}
