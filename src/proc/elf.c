/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c - see elf.h. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/mpi_library.h"
#include "proc/elf.h"

#define HEADERS_MAX 73    /* Linux refuses more than a page of them */
#define NEEDED_MAX  256   /* names looked at */
#define DYNAMIC_MAX 65536 /* bytes of the dynamic section looked at */
#define SCRIPTS_MAX 5     /* interpreters of interpreters, as in Linux */

/* Where the GNU libc of this machine's kind has its loader, "" if unknown.
 * Source   glibc, the ABI list of its wiki and sysdeps/unix/sysv/linux */
#if !defined(__GLIBC__)
#define ABI_LOADER ""
#elif defined(__x86_64__) && defined(__LP64__)
#define ABI_LOADER "/lib64/ld-linux-x86-64.so.2"
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define ABI_LOADER "/lib/ld-linux-aarch64.so.1"
#elif defined(__riscv) && __riscv_xlen == 64 && \
	defined(__riscv_float_abi_double)
#define ABI_LOADER "/lib/ld-linux-riscv64-lp64d.so.1"
#elif defined(__powerpc64__) && _CALL_ELF == 2
#define ABI_LOADER "/lib64/ld64.so.2"
#elif defined(__s390x__)
#define ABI_LOADER "/lib/ld64.so.1"
#else
#define ABI_LOADER ""
#endif

/* A program file while it is being looked at. */
struct image {
	int fd;
	uint64_t size;
	char top[4096]; /* its first bytes */
	size_t top_len;
	ElfW(Phdr) header[HEADERS_MAX];
	unsigned headers;
};

/* What the dynamic section says; offsets into the strings. */
struct needed {
	uint64_t name[NEEDED_MAX];
	unsigned count;
	uint64_t strings; /* where the loader will see them, then in the file */
	uint64_t strings_len;
};

/* The linker puts this where the program we are part of begins in memory. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static const char *const verdicts[] = {
	[ELF_FITS] = "dynamically linked",
	[ELF_STATIC] = "statically linked",
	[ELF_MACHINE] = "built for another machine",
	[ELF_LIBC] = "linked with another C library",
	[ELF_SECURE] = "run with more rights than its caller",
	[ELF_SANITIZER] = "built with a sanitizer",
	[ELF_DAMAGED] = "a damaged ELF file",
	[ELF_NO_PROGRAM] = "not a program",
	[ELF_UNREADABLE] = "not readable",
};

const char *
elf_verdict_text(enum elf_verdict verdict)
{
	return verdicts[verdict];
}

/* Up to @cap bytes at @at; what is there already is not read again. */
static size_t
read_at(const struct image *image, uint64_t at, void *out, size_t cap)
{
	ssize_t n;

	if (at >= image->size)
		return 0;
	if (cap > image->size - at)
		cap = image->size - at;
	if (at + cap <= image->top_len) {
		memcpy(out, image->top + at, cap);
		return cap;
	}
	n = pread(image->fd, out, cap, (off_t)at);
	return n < 0 ? 0 : (size_t)n;
}

/* Text of at most @cap - 1 bytes at @at, terminated; "" outside the file. */
static void
read_text(const struct image *image, uint64_t at, char *out, size_t cap)
{
	out[read_at(image, at, out, cap - 1)] = '\0';
}

static const ElfW(Phdr) *
	find_header(const struct image *image, ElfW(Word) type)
{
	unsigned i;

	for (i = 0; i < image->headers; i++)
		if (image->header[i].p_type == type)
			return &image->header[i];
	return NULL;
}

/* The loader that runs ourselves, NULL in a static program. */
static const char *
own_loader(void)
{
	const ElfW(Ehdr) *own = (const void *)__ehdr_start;
	const ElfW(Phdr) *h = (const void *)(__ehdr_start + own->e_phoff);
	unsigned i;

	for (i = 0; i < own->e_phnum; i++)
		if (h[i].p_type == PT_INTERP)
			return __ehdr_start + h[i].p_offset;
	return NULL;
}

bool
elf_is_static(void)
{
	return own_loader() == NULL;
}

/* The loader of programs that fit to what we preload. */
static const char *
usual_loader(void)
{
	const char *own = own_loader();

	return own != NULL ? own : ABI_LOADER;
}

static bool
is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (strcmp(a, b) == 0)
		return true;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
		x.st_ino == y.st_ino;
}

/* Every byte that would be loaded has to be there. */
static bool
is_whole(const struct image *image)
{
	const ElfW(Phdr) * h;
	unsigned i;

	for (i = 0; i < image->headers; i++) {
		h = &image->header[i];
		if (h->p_type != PT_LOAD && h->p_type != PT_INTERP &&
			h->p_type != PT_DYNAMIC)
			continue;
		if (h->p_offset > image->size ||
			h->p_filesz > image->size - h->p_offset)
			return false;
	}
	return true;
}

static enum elf_verdict
read_headers(struct image *image)
{
	const ElfW(Ehdr) *own = (const void *)__ehdr_start;
	ElfW(Ehdr) head;
	size_t len;

	if (image->top_len < sizeof(head))
		return ELF_DAMAGED;
	memcpy(&head, image->top, sizeof(head));
	if (head.e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
		head.e_ident[EI_DATA] != own->e_ident[EI_DATA] ||
		head.e_machine != own->e_machine)
		return ELF_MACHINE;
	if (head.e_type != ET_EXEC && head.e_type != ET_DYN)
		return ELF_NO_PROGRAM;
	len = head.e_phnum * sizeof(image->header[0]);
	if (head.e_phentsize != sizeof(image->header[0]) || len == 0 ||
		len > sizeof(image->header) ||
		read_at(image, head.e_phoff, image->header, len) != len)
		return ELF_DAMAGED;
	image->headers = head.e_phnum;
	return is_whole(image) ? ELF_FITS : ELF_DAMAGED;
}

static enum elf_verdict
check_loader(const struct image *image, struct elf_facts *facts)
{
	const ElfW(Phdr) *h = find_header(image, PT_INTERP);
	char path[256];

	if (h == NULL)
		return ELF_STATIC;
	read_text(image, h->p_offset, path, sizeof(path));
	if (h->p_filesz < 2 || strnlen(path, sizeof(path)) >= h->p_filesz)
		return ELF_DAMAGED;
	if (is_same_file(path, usual_loader()))
		return ELF_FITS;
	snprintf(facts->what, sizeof(facts->what), "%.63s", path);
	return ELF_LIBC;
}

/* Will the kernel set AT_SECURE? nosuid mounts are not looked for. */
static bool
is_secure(const struct image *image, const struct stat *st)
{
	if ((st->st_mode & S_ISUID) && st->st_uid != getuid())
		return true;
	if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) &&
		st->st_gid != getgid())
		return true;
	return geteuid() != 0 &&
		fgetxattr(image->fd, "security.capability", NULL, 0) > 0;
}

/* One piece of the dynamic section; false at its end. */
static bool
read_entries(struct needed *needed, const ElfW(Dyn) * entry, size_t count)
{
	size_t i;

	for (i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
		if (entry[i].d_tag == DT_STRTAB)
			needed->strings = entry[i].d_un.d_ptr;
		else if (entry[i].d_tag == DT_STRSZ)
			needed->strings_len = entry[i].d_un.d_val;
		else if (entry[i].d_tag == DT_NEEDED &&
			needed->count < NEEDED_MAX)
			needed->name[needed->count++] = entry[i].d_un.d_val;
	}
	return i == count;
}

/* From the address of the strings to their place in the file. */
static bool
place_strings(const struct image *image, struct needed *needed)
{
	const ElfW(Phdr) * h;
	unsigned i;

	for (i = 0; i < image->headers; i++) {
		h = &image->header[i];
		if (h->p_type != PT_LOAD || needed->strings < h->p_vaddr ||
			needed->strings - h->p_vaddr >= h->p_filesz)
			continue;
		needed->strings += h->p_offset - h->p_vaddr;
		return needed->strings_len <= image->size - needed->strings;
	}
	return false;
}

static bool
read_needed(const struct image *image, struct needed *needed)
{
	const ElfW(Phdr) *h = find_header(image, PT_DYNAMIC);
	ElfW(Dyn) piece[64];
	uint64_t at, end;
	size_t n;

	needed->count = 0;
	needed->strings = needed->strings_len = 0;
	if (h == NULL)
		return true;
	end = h->p_filesz < DYNAMIC_MAX ? h->p_filesz : DYNAMIC_MAX;
	for (at = 0; at + sizeof(piece[0]) <= end; at += n) {
		n = end - at < sizeof(piece) ? end - at : sizeof(piece);
		if (read_at(image, h->p_offset + at, piece, n) != n)
			return false;
		if (!read_entries(needed, piece, n / sizeof(piece[0])))
			break;
	}
	return needed->count == 0 || place_strings(image, needed);
}

static bool
is_sanitizer(const char *name)
{
	static const char *const names[] = { "libasan.", "libtsan.", "libmsan.",
		"liblsan.", "libubsan.", "libhwasan.", "libclang_rt." };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static enum elf_verdict
check_needed(const struct image *image, struct elf_facts *facts)
{
	char name[sizeof(facts->what)];
	enum elf_verdict verdict = ELF_FITS;
	struct needed needed;
	unsigned i;

	if (!read_needed(image, &needed))
		return ELF_DAMAGED;
	for (i = 0; i < needed.count; i++) {
		if (needed.name[i] >= needed.strings_len)
			return ELF_DAMAGED;
		read_text(image, needed.strings + needed.name[i], name,
			sizeof(name));
		if (strcmp(name, "libxrun.so.0") == 0)
			facts->needs_xrun = true;
		if (facts->mpi[0] == '\0' && mpi_library_is(name))
			memcpy(facts->mpi, name, sizeof(name));
		if (verdict == ELF_SANITIZER || !is_sanitizer(name))
			continue;
		memcpy(facts->what, name, sizeof(name));
		verdict = ELF_SANITIZER;
	}
	return verdict;
}

static enum elf_verdict
check(struct image *image, const struct stat *st, struct elf_facts *facts)
{
	enum elf_verdict verdict = read_headers(image);

	if (verdict == ELF_FITS)
		verdict = check_loader(image, facts);
	if (verdict == ELF_FITS && is_secure(image, st))
		verdict = ELF_SECURE;
	if (verdict == ELF_FITS)
		verdict = check_needed(image, facts);
	return verdict;
}

/* The words of a "#!" line as Linux cuts it: program, and one argument. */
static bool
read_script(const struct image *image, char *program, char *argument)
{
	char line[256];
	size_t n;
	char *p;

	/* 256: BINPRM_BUF_SIZE. */
	read_text(image, 2, line, sizeof(line) - 2);
	line[strcspn(line, "\n")] = '\0';
	p = line + strspn(line, " \t");
	n = strcspn(p, " \t");
	memcpy(program, p, n);
	program[n] = '\0';
	p += n;
	p += strspn(p, " \t");
	n = strlen(p);
	while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	memcpy(argument, p, n);
	argument[n] = '\0';
	return program[0] != '\0';
}

/* The program that env(1) would run for this argument, or NULL. */
static char *
env_program(char *argument)
{
	char *p = argument;

	if (strncmp(p, "-S", 2) != 0)
		return *p == '\0' || *p == '-' || strchr(p, '=') ? NULL : p;
	for (p += 2;; p += strlen(p) + 1) {
		p += strspn(p, " \t");
		if (*p == '\0' || *p == '-')
			return NULL;
		if (strcspn(p, "=") > strcspn(p, " \t"))
			break;
		if (p[strcspn(p, " \t")] == '\0')
			return NULL;
		p[strcspn(p, " \t")] = '\0';
	}
	p[strcspn(p, " \t")] = '\0';
	return p;
}

/* Where @name is on the PATH @search. */
static bool
find_program(int dirfd, const char *search, const char *name, char *out)
{
	const char *p = search;
	struct stat st;
	size_t n;
	int len;

	if (strchr(name, '/') != NULL)
		return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX;
	for (; p != NULL && *p != '\0'; p += n, p += *p == ':') {
		n = strcspn(p, ":");
		len = snprintf(out, PATH_MAX, "%.*s%s%s", (int)n, p,
			n == 0 ? "" : "/", name);
		if (len < PATH_MAX && faccessat(dirfd, out, X_OK, 0) == 0 &&
			fstatat(dirfd, out, &st, 0) == 0 && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/*
 * What a script will run in the end: the interpreter of its first line, or
 * what that has env(1) search for, if it can be found.
 */
static bool
find_interpreter(const struct image *image, int dirfd, const char *search,
	char *path)
{
	char program[256], argument[256], found[PATH_MAX];
	const char *slash;
	char *name;

	if (!read_script(image, program, argument))
		return false;
	slash = strrchr(program, '/');
	name = strcmp(slash == NULL ? program : slash + 1, "env") == 0 ?
		env_program(argument) :
		NULL;
	if (name != NULL && find_program(dirfd, search, name, found))
		snprintf(path, PATH_MAX, "%s", found);
	else
		snprintf(path, PATH_MAX, "%s", program);
	return true;
}

/* Opened without waiting for a FIFO's writer or a terminal's carrier. */
static enum elf_verdict
image_open(struct image *image, int dirfd, const char *path, struct stat *st)
{
	ssize_t n;

	image->fd = openat(dirfd, path,
		O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (image->fd == -1 || fstat(image->fd, st) == -1)
		return ELF_UNREADABLE;
	if (!S_ISREG(st->st_mode))
		return ELF_NO_PROGRAM;
	n = pread(image->fd, image->top, sizeof(image->top), 0);
	if (n < 0)
		return ELF_UNREADABLE;
	image->top_len = (size_t)n;
	image->size = (uint64_t)st->st_size;
	return ELF_FITS;
}

/* One file; @path is replaced if it is a script. Returns true if it is. */
static bool
probe_file(int dirfd, char *path, const char *search, struct elf_facts *facts)
{
	struct image image;
	struct stat st;
	bool again = false;

	facts->verdict = image_open(&image, dirfd, path, &st);
	if (facts->verdict != ELF_FITS)
		goto out;
	if (image.top_len >= SELFMAG &&
		memcmp(image.top, ELFMAG, SELFMAG) == 0) {
		facts->verdict = check(&image, &st, facts);
	} else if (image.top_len > 2 && memcmp(image.top, "#!", 2) == 0 &&
		find_interpreter(&image, dirfd, search, path)) {
		facts->script = again = true;
	} else {
		facts->verdict = ELF_NO_PROGRAM;
	}
out:
	fd_close(image.fd);
	return again;
}

static void
elf_put_name(const char *path, struct elf_facts *facts)
{
	const char *slash = strrchr(path, '/');

	snprintf(facts->name, sizeof(facts->name), "%.63s",
		slash == NULL ? path : slash + 1);
}

enum elf_verdict
elf_probe(int dirfd, const char *path, const char *search,
	struct elf_facts *facts)
{
	char file[PATH_MAX];
	int i;

	*facts = (struct elf_facts){ .verdict = ELF_UNREADABLE };
	if ((size_t)snprintf(file, sizeof(file), "%s", path) >= sizeof(file))
		return facts->verdict;
	for (i = 0; i < SCRIPTS_MAX; i++)
		if (!probe_file(dirfd, file, search, facts)) {
			elf_put_name(file, facts);
			return facts->verdict;
		}
	facts->verdict = ELF_NO_PROGRAM;
	return facts->verdict;
}
