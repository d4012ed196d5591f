/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_symbol.c - naming a function from a file's symbol table. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "worker/job/crash_text.h"
#include "worker/job/place.h"
#include "worker/job/symbol.h"

/* A function without the table's knowledge of it would have no name. */
__attribute__((noinline)) static int
some_function(int x)
{
	__asm__ volatile("" ::: "memory");
	return x + 1;
}

/* Its name has 71 characters. */
__attribute__((noinline)) static int
a_function_whose_name_is_longer_than_the_64_bytes_that_a_symbol_keeps__(int x)
{
	__asm__ volatile("" ::: "memory");
	return x + 2;
}

struct file {
	char *data;
	size_t len;
	int fd; /* a copy that may be cut */
};

static struct file
copy_of_self(void)
{
	struct file f = { 0 };

	cr_assert_eq(fd_read_file("/proc/self/exe", 256u << 20, &f.data, &f.len,
			     NULL),
		XR_OK);
	f.fd = memfd_create("self", MFD_CLOEXEC);
	cr_assert_neq(f.fd, -1);
	cr_assert_eq(fd_write_all(f.fd, f.data, f.len), 0);
	return f;
}

static void
drop(struct file *f)
{
	close(f->fd);
	free(f->data);
}

static int
first_load(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(ElfW(Addr) *)arg = info->dlpi_addr;
	return 1;
}

/* As the file counts it. */
static uint64_t
address_of(int (*fn)(int))
{
	ElfW(Addr) base = 0;

	dl_iterate_phdr(first_load, &base);
	return (uintptr_t)fn - base;
}

Test(symbol, a_static_function_is_named)
{
	struct file f = copy_of_self();
	struct symbol s;

	cr_assert_eq(some_function(1), 2);
	cr_assert(symbol_find(f.fd, address_of(some_function) + 1, &s));
	cr_assert_str_eq(s.name, "some_function");
	cr_assert_eq(s.offset, 1u);
	drop(&f);
}

Test(symbol, a_name_is_cut_after_63_characters)
{
	int (*fn)(int) =
		a_function_whose_name_is_longer_than_the_64_bytes_that_a_symbol_keeps__;
	struct file f = copy_of_self();
	struct symbol s;

	cr_assert_eq(fn(1), 3);
	cr_assert(symbol_find(f.fd, address_of(fn) + 1, &s));
	cr_expect_str_eq(s.name,
		"a_function_whose_name_is_longer_than_the_64_bytes_that_a_symbol");
	cr_expect_eq(s.offset, 1);
	drop(&f);
}

Test(symbol, an_address_outside_every_function_has_no_name)
{
	struct file f = copy_of_self();
	struct symbol s;

	cr_assert_not(symbol_find(f.fd, 1, &s));
	cr_assert_not(symbol_find(f.fd, UINT64_MAX, &s));
	drop(&f);
}

/* A copy of the C library whose table of all symbols is hidden, as strip(1) removes it. */
static struct file
stripped_copy(const char *path)
{
	struct file f = { 0 };
	ElfW(Ehdr) head;
	ElfW(Shdr) * section;

	cr_assert_eq(fd_read_file(path, 256u << 20, &f.data, &f.len, NULL),
		XR_OK);
	memcpy(&head, f.data, sizeof(head));
	for (unsigned i = 0; i < head.e_shnum; i++) {
		section =
			(void *)(f.data + head.e_shoff + i * sizeof(*section));
		if (section->sh_type == SHT_SYMTAB)
			section->sh_type = SHT_NULL;
	}
	f.fd = memfd_create("stripped", MFD_CLOEXEC);
	cr_assert_neq(f.fd, -1);
	cr_assert_eq(fd_write_all(f.fd, f.data, f.len), 0);
	return f;
}

Test(symbol, a_stripped_library_names_what_it_exports)
{
	Dl_info info;
	struct file f;
	struct symbol s;

	cr_assert_neq(dladdr((void *)(uintptr_t)a64l, &info), 0);
	f = stripped_copy(info.dli_fname);
	cr_assert(symbol_find(f.fd, (uintptr_t)a64l - (uintptr_t)info.dli_fbase,
		&s));
	cr_expect_str_eq(s.name, "a64l");
	cr_expect_eq(s.offset, 0);
	drop(&f);
}

Test(symbol, what_is_no_elf_file_has_no_names)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct symbol s;

	cr_assert_not(symbol_find(fd, 1, &s));
	cr_assert_not(symbol_find(-1, 1, &s));
	close(fd);
}

Test(symbol, every_truncation_has_no_name)
{
	struct file f = copy_of_self();
	uint64_t address = address_of(some_function);
	struct symbol s;
	size_t len, step = f.len / 500 + 1;

	/* The section headers stand at the end. */
	for (len = f.len - 1; len > 0; len -= len > step + 4096 ? step : 1) {
		cr_assert_eq(ftruncate(f.fd, (off_t)len), 0);
		if (symbol_find(f.fd, address, &s))
			cr_assert_str_eq(s.name, "some_function");
		if (len < f.len / 2)
			cr_assert_not(symbol_find(f.fd, address, &s));
	}
	drop(&f);
}

Test(symbol, no_spoilt_byte_does_harm)
{
	struct file f = copy_of_self();
	const ElfW(Ehdr) *head = (const void *)f.data;
	uint64_t address = address_of(some_function);
	size_t from[2] = { 0, head->e_shoff }, at;
	struct symbol s;
	char c;
	int i;

	for (i = 0; i < 2; i++) {
		for (at = from[i]; at < from[i] + 4096 && at < f.len; at++) {
			c = (char)(f.data[at] ^ 0xff);
			cr_assert_eq(pwrite(f.fd, &c, 1, (off_t)at), 1);
			if (symbol_find(f.fd, address, &s))
				cr_assert(memchr(s.name, 0, sizeof(s.name)));
			cr_assert_eq(pwrite(f.fd, &f.data[at], 1, (off_t)at),
				1);
		}
	}
	drop(&f);
}

/* --- places --------------------------------------------------------------- */

Test(place, an_address_is_of_a_function_in_a_file)
{
	int local = 0;
	struct place p[] = {
		{ .address = (uintptr_t)some_function },
		{ .address = (uintptr_t)getppid },
		{ .address = (uintptr_t)&local },
		{ .address = 0 },
		{ .address = UINTPTR_MAX },
	};
	uint64_t base = 0;

	dl_iterate_phdr(first_load, &base);
	place_find(p, 5);
	cr_expect_str_eq(p[0].symbol.name, "some_function");
	cr_expect_eq(p[0].symbol.offset, 0);
	cr_expect_eq(p[0].in_file, (uintptr_t)some_function - base);
	cr_expect_str_eq(place_file(&p[0]), "test_worker_symbol");
	cr_expect_not_null(strstr(place_file(&p[1]), "libc"));
	for (int i = 2; i < 5; i++) {
		cr_expect_eq(p[i].base, 0);
		cr_expect_str_eq(place_file(&p[i]), "?");
		cr_expect_str_eq(p[i].symbol.name, "");
	}
}

/* A page of the file @fd with pages of no file before and behind it. */
static char *
map_between(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	cr_assert_neq(map, MAP_FAILED);
	map = mmap(map + page, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	return map;
}

Test(place, a_file_is_from_its_first_byte_to_its_last)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("page", MFD_CLOEXEC);
	struct place p[4] = { 0 };
	struct stat st;
	char *map;

	cr_assert_eq(ftruncate(fd, (off_t)page), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	map = map_between(fd);
	p[0].address = (uintptr_t)map - 1;
	p[1].address = (uintptr_t)map;
	p[2].address = (uintptr_t)map + page - 1;
	p[3].address = (uintptr_t)map + page;
	for (int i = 0; i < 4; i++)
		snprintf(p[i].symbol.name, sizeof(p[i].symbol.name), "old");
	place_find(p, 4);
	for (int i = 0; i < 4; i++) {
		cr_expect_str_eq(p[i].symbol.name, "");
		cr_expect_eq(p[i].base, i % 3 == 0 ? 0 : (uintptr_t)map);
		cr_expect_eq(p[i].inode, i % 3 == 0 ? 0 : st.st_ino);
	}
	cr_expect_eq(p[1].in_file, 0);
	cr_expect_eq(p[2].in_file, page - 1);
	cr_expect_str_eq(p[1].path, "/memfd:page (deleted)");
	cr_expect_str_eq(place_file(&p[0]), "?");
	munmap(map - page, 3 * page);
	close(fd);
}

/* A file in a folder, whose path has @len characters and goes through @path. */
static int
make_deep(char *path, size_t len)
{
	size_t n = strlen(path);
	int fd;

	while (len - n > 100) {
		memset(path + n, 'd', 60);
		path[n] = '/';
		n += 60;
		path[n] = '\0';
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	memset(path + n, 'f', len - n);
	path[n] = '/';
	path[len] = '\0';
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_neq(fd, -1);
	cr_assert_eq(ftruncate(fd, 1), 0);
	return fd;
}

static void
remove_deep(char *path, size_t root)
{
	for (unlink(path); strlen(path) > root; rmdir(path))
		*strrchr(path, '/') = '\0';
}

Test(place, a_path_of_256_characters_or_more_is_none)
{
	static const size_t lens[] = { 254, 255, 256, 257, 437, 438, 439, 600 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		char path[1024] = "/tmp/xrun-place-XXXXXX";
		size_t root = strlen(path);
		struct place p = { 0 };
		int fd;
		char *map;

		cr_assert_not_null(mkdtemp(path));
		fd = make_deep(path, lens[i]);
		map = map_between(fd);
		p.address = (uintptr_t)map;
		place_find(&p, 1);
		cr_expect_eq(p.base, (uintptr_t)map);
		cr_expect_str_eq(p.path, lens[i] < 256 ? path : "");
		cr_expect_str_eq(place_file(&p),
			lens[i] < 256 ? strrchr(path, '/') + 1 : "?");
		cr_expect_str_eq(p.symbol.name, "");
		remove_deep(path, root);
		close(fd);
		munmap(map, 1);
	}
}

/* A file of our code that was removed, or written anew, since it was loaded. */
Test(place, a_file_that_is_not_the_one_that_was_loaded_names_nothing)
{
	char path[] = "/tmp/xrun-place-XXXXXX", other[64];
	struct file f = copy_of_self();
	int fd = mkstemp(path);
	struct place p = { 0 };
	uint64_t base = 0;
	char *map;

	dl_iterate_phdr(first_load, &base);

	cr_assert_eq(fd_write_all(fd, f.data, f.len), 0);
	map = mmap(NULL, f.len, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	p.address = (uintptr_t)map + (uintptr_t)some_function - base;
	place_find(&p, 1);
	cr_expect_eq(p.base, (uintptr_t)map);
	cr_expect_str_eq(p.path, path);
	cr_expect_str_eq(p.symbol.name, "some_function");
	/* As the kernel calls what was removed. */
	snprintf(other, sizeof(other), "%s (deleted)", path);
	cr_assert_eq(unlink(path), 0);
	close(fd);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_eq(fd_write_all(fd, f.data, f.len), 0);
	place_find(&p, 1);
	cr_expect_str_eq(p.path, other);
	cr_expect_str_eq(p.symbol.name, "");
	unlink(other);
	close(fd);
	drop(&f);
}

Test(crash_text, what_does_not_fit_is_left_out_and_what_would_end_a_string)
{
	char room[8];
	struct crash_text t = { .cap = sizeof(room), .at = room };

	for (uint64_t i = 0; i < 3; i++)
		crash_put_hex(&t, UINT64_MAX);
	cr_expect_eq(t.len, 7);
	cr_expect_str_eq(room, "0xfffff");
	t.len = 0;
	crash_put_quoted(&t, "a\"b\\\n\xc3z");
	cr_expect_str_eq(room, "a?b???z");
	t.len = 0;
	crash_put_number(&t, 0, 10);
	cr_expect_str_eq(room, "0");
}
