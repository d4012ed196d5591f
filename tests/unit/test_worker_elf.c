/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_elf.c - which programs the shim is preloaded into. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "proc/elf.h"

/* A whole program in memory, to be spoilt. */
struct program {
	char *data;
	size_t len;
};

static struct program
load(const char *path)
{
	struct program p = { 0 };

	cr_assert_eq(fd_read_file(path, 64u << 20, &p.data, &p.len, NULL),
		XR_OK);
	return p;
}

static enum elf_verdict
probe_bytes(const void *data, size_t len, struct elf_facts *facts)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	enum elf_verdict verdict;
	char path[40];

	cr_assert_neq(fd, -1);
	cr_assert_eq(fd_write_all(fd, data, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	verdict = elf_probe(AT_FDCWD, path, getenv("PATH"), facts);
	cr_assert_eq(verdict, facts->verdict);
	cr_assert_not_null(elf_verdict_text(verdict));
	close(fd);
	return verdict;
}

static enum elf_verdict
probe_text(const char *text, struct elf_facts *facts)
{
	return probe_bytes(text, strlen(text), facts);
}

static ElfW(Phdr) * header_of(struct program *p, ElfW(Word) type)
{
	ElfW(Ehdr) *head = (void *)p->data;
	ElfW(Phdr) *h = (void *)(p->data + head->e_phoff);

	while (h->p_type != type)
		h++;
	return h;
}

/* The first occurrence of @old, with its 0, in the file becomes @with. */
static void
replace(struct program *p, const char *old, const char *with)
{
	char *at = memmem(p->data, p->len, old, strlen(old) + 1);

	cr_assert_not_null(at, "%s is not in the program", old);
	cr_assert_leq(strlen(with), strlen(old));
	memset(at, 0, strlen(old));
	memcpy(at, with, strlen(with));
}

Test(elf, a_usual_program_fits)
{
	struct elf_facts facts;

	cr_assert_eq(elf_probe(AT_FDCWD, "/bin/true", NULL, &facts), ELF_FITS);
	cr_assert_not(facts.script);
	cr_assert_not(facts.needs_xrun);
	cr_assert_str_empty(facts.what);
}

Test(elf, a_program_without_a_loader_is_static)
{
	struct program p = load("/bin/true");
	struct elf_facts facts;

	header_of(&p, PT_INTERP)->p_type = PT_NULL;
	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_STATIC);
	free(p.data);
}

Test(elf, another_loader_is_named)
{
	struct program p = load("/bin/true");
	ElfW(Phdr) *h = header_of(&p, PT_INTERP);
	struct elf_facts facts;

	replace(&p, p.data + h->p_offset, "/lib/ld-musl.so.1");
	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_LIBC);
	cr_assert_str_eq(facts.what, "/lib/ld-musl.so.1");
	free(p.data);
}

Test(elf, the_same_loader_by_another_name_fits)
{
	struct program p = load("/bin/true");
	ElfW(Phdr) *h = header_of(&p, PT_INTERP);
	struct elf_facts facts;
	char dir[] = "/tmp/elfXXXXXX", name[32];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/ld", dir);
	cr_assert_eq(symlink(p.data + h->p_offset, name), 0);
	replace(&p, p.data + h->p_offset, name);
	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_FITS);
	unlink(name);
	rmdir(dir);
	free(p.data);
}

Test(elf, a_sanitizer_is_named)
{
	static const char *const names[] = { "libasan.8", "libtsan.2",
		"liblsan.0", "libmsan.0", "libubsan." };
	struct elf_facts facts;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct program p = load("/bin/true");

		replace(&p, "libc.so.6", names[i]);
		cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_SANITIZER);
		cr_assert_str_eq(facts.what, names[i]);
		free(p.data);
	}
}

Test(elf, an_mpi_library_is_named)
{
	struct program p = load("/bin/true");
	struct elf_facts facts;

	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_FITS);
	cr_assert_str_empty(facts.mpi);
	replace(&p, "libc.so.6", "libmpi.so");
	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_FITS);
	cr_assert_str_eq(facts.mpi, "libmpi.so");
	cr_assert_str_empty(facts.what);
	free(p.data);
}

Test(elf, another_word_size_byte_order_or_processor_is_another_machine)
{
	static const size_t places[] = { EI_CLASS, EI_DATA,
		offsetof(ElfW(Ehdr), e_machine) };
	struct elf_facts facts;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct program p = load("/bin/true");

		p.data[places[i]] ^= 3;
		cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_MACHINE);
		free(p.data);
	}
}

Test(elf, libxrun_is_seen)
{
	const char *child = getenv("XRUN_TEST_CHILD");
	struct elf_facts facts;

	if (child == NULL)
		cr_skip_test("XRUN_TEST_CHILD is not set");
	elf_probe(AT_FDCWD, child, NULL, &facts);
	cr_assert(facts.needs_xrun || facts.verdict == ELF_SANITIZER);
}

Test(elf, rights_of_others_are_secure_and_own_ones_are_not)
{
	struct program p = load("/bin/true");
	char path[] = "/tmp/elfXXXXXX";
	struct elf_facts facts;
	int fd = mkstemp(path);

	cr_assert_eq(fd_write_all(fd, p.data, p.len), 0);
	cr_assert_eq(fchmod(fd, 06755), 0);
	cr_expect_eq(elf_probe(AT_FDCWD, path, NULL, &facts), ELF_FITS);
	if (geteuid() == 0 && fchown(fd, 1, 0) == 0) {
		fchmod(fd, 04755);
		cr_expect_eq(elf_probe(AT_FDCWD, path, NULL, &facts),
			ELF_SECURE);
		cr_expect_eq(fchown(fd, 0, 1), 0);
		fchmod(fd, 02755);
		cr_expect_eq(elf_probe(AT_FDCWD, path, NULL, &facts),
			ELF_SECURE);
	}
	close(fd);
	unlink(path);
	free(p.data);
}

Test(elf, every_truncation_is_noticed)
{
	struct program p = load("/bin/true");
	ElfW(Ehdr) *head = (void *)p.data;
	ElfW(Phdr) *h = (void *)(p.data + head->e_phoff);
	struct elf_facts facts;
	size_t end = 0, len;
	int i;

	for (i = 0; i < head->e_phnum; i++)
		if (h[i].p_type == PT_LOAD &&
			h[i].p_offset + h[i].p_filesz > end)
			end = h[i].p_offset + h[i].p_filesz;
	for (len = 0; len < end; len += len < 4096 ? 1 : 61) {
		enum elf_verdict verdict = probe_bytes(p.data, len, &facts);

		cr_assert_eq(verdict, len < 4 ? ELF_NO_PROGRAM : ELF_DAMAGED,
			"%zu bytes: %s", len, elf_verdict_text(verdict));
	}
	cr_assert_eq(probe_bytes(p.data, end, &facts), ELF_FITS);
	free(p.data);
}

/* No outcome is right for all of these; what counts is that there is one. */
static void
flip(struct program *p, size_t from, size_t count)
{
	static const unsigned char masks[] = { 0x01, 0x80, 0xff };
	struct elf_facts facts;
	size_t at, i;

	for (at = from; at < from + count; at++) {
		for (i = 0; i < sizeof(masks); i++) {
			p->data[at] ^= (char)masks[i];
			probe_bytes(p->data, p->len, &facts);
			cr_assert(memchr(facts.what, 0, sizeof(facts.what)));
			p->data[at] ^= (char)masks[i];
		}
	}
}

Test(elf, no_spoilt_byte_does_harm)
{
	struct program p = load("/bin/true");
	ElfW(Phdr) *h = header_of(&p, PT_DYNAMIC);

	flip(&p, 0, 4096);
	flip(&p, h->p_offset, h->p_filesz);
	free(p.data);
}

Test(elf, counts_and_offsets_at_their_largest_do_no_harm)
{
	struct program p = load("/bin/true");
	ElfW(Ehdr) *head = (void *)p.data;
	struct elf_facts facts;
	ElfW(Phdr) *h = header_of(&p, PT_DYNAMIC);
	ElfW(Dyn) *dyn = (void *)(p.data + h->p_offset);
	size_t i;

	for (i = 0; i < h->p_filesz / sizeof(*dyn); i++) {
		ElfW(Dyn) saved = dyn[i];

		dyn[i].d_un.d_val = UINT64_MAX;
		probe_bytes(p.data, p.len, &facts);
		dyn[i].d_tag = DT_NEEDED;
		cr_assert_eq(probe_bytes(p.data, p.len, &facts),
			saved.d_tag == DT_NULL && dyn[i - 1].d_tag == DT_NULL ?
				ELF_FITS :
				ELF_DAMAGED,
			"entry %zu", i);
		dyn[i] = saved;
	}
	head->e_phnum = UINT16_MAX;
	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_DAMAGED);
	head->e_phnum = 1;
	head->e_phoff = UINT64_MAX - 8;
	cr_assert_eq(probe_bytes(p.data, p.len, &facts), ELF_DAMAGED);
	free(p.data);
}

Test(elf, a_script_is_judged_by_its_interpreter)
{
	static const char *const lines[] = { "#!/bin/sh\n", "#! /bin/sh -e\n",
		"#!\t/bin/sh", "#!/usr/bin/env sh\n", "#!/usr/bin/env\tsh \n",
		"#!/usr/bin/env -S sh -e\n", "#!/usr/bin/env -S A=1 B=2 sh\n",
		"#!/usr/bin/env -i sh\n", "#!/usr/bin/env no-such-program\n" };
	struct elf_facts facts;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		probe_text(lines[i], &facts);
		cr_assert_eq(facts.verdict, ELF_FITS, "%s: %s", lines[i],
			elf_verdict_text(facts.verdict));
		cr_assert(facts.script);
	}
}

Test(elf, a_script_of_a_script_is_followed_and_a_ring_ends)
{
	char first[] = "/tmp/elfXXXXXX", second[] = "/tmp/elfXXXXXX";
	int a = mkstemp(first), b = mkstemp(second);
	struct elf_facts facts;

	dprintf(a, "#!%s\n", second);
	dprintf(b, "#!/bin/sh\n");
	cr_expect_eq(elf_probe(AT_FDCWD, first, NULL, &facts), ELF_FITS);
	cr_expect(facts.script);
	cr_expect_eq(ftruncate(b, 0), 0);
	cr_expect_eq(pwrite(b, "#!", 2, 0), 2);
	cr_expect_eq(pwrite(b, first, strlen(first), 2),
		(ssize_t)strlen(first));
	cr_expect_eq(elf_probe(AT_FDCWD, first, NULL, &facts), ELF_NO_PROGRAM);
	close(a);
	close(b);
	unlink(first);
	unlink(second);
}

Test(elf, env_searches_the_given_path_from_the_given_folder)
{
	struct program p = load("/bin/true");
	char dir[] = "/tmp/elfXXXXXX", tool[64], script[64];
	struct elf_facts facts;
	int fd, dirfd;

	replace(&p, "libc.so.6", "libasan.8");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(tool, sizeof(tool), "%s/tool", dir);
	snprintf(script, sizeof(script), "%s/script", dir);
	fd = open(tool, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	cr_expect_eq(fd_write_all(fd, p.data, p.len), 0);
	close(fd);
	fd = open(script, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	dprintf(fd, "#!/usr/bin/env tool\n");
	close(fd);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_expect_eq(elf_probe(dirfd, "script", "/bin", &facts), ELF_FITS);
	cr_expect_eq(elf_probe(dirfd, "script", "/bin::/usr/bin", &facts),
		ELF_SANITIZER);
	cr_expect_eq(elf_probe(dirfd, "script", "/nowhere:.", &facts),
		ELF_SANITIZER);
	cr_expect_eq(elf_probe(AT_FDCWD, script, dir, &facts), ELF_SANITIZER);
	cr_expect_str_eq(facts.what, "libasan.8");
	close(dirfd);
	unlink(tool);
	unlink(script);
	rmdir(dir);
	free(p.data);
}

Test(elf, every_truncation_of_a_script_line_has_an_answer)
{
	char line[600];
	struct elf_facts facts;
	size_t len;

	snprintf(line, sizeof(line), "#!/usr/bin/env -S A=1 sh -e ");
	memset(line + strlen(line), 'x', sizeof(line) - strlen(line));
	for (len = 0; len < sizeof(line); len++)
		probe_bytes(line, len, &facts);
	memset(line + 2, ' ', sizeof(line) - 2);
	for (len = 0; len < sizeof(line); len++)
		cr_assert_eq(probe_bytes(line, len, &facts), ELF_NO_PROGRAM);
}

Test(elf, what_is_no_program_is_told_from_what_cannot_be_read)
{
	struct elf_facts facts;

	cr_assert_eq(probe_text("echo hello\n", &facts), ELF_NO_PROGRAM);
	cr_assert_eq(probe_text("", &facts), ELF_NO_PROGRAM);
	cr_assert_eq(elf_probe(AT_FDCWD, "/dev/null", NULL, &facts),
		ELF_NO_PROGRAM);
	cr_assert_eq(elf_probe(AT_FDCWD, "/tmp", NULL, &facts), ELF_NO_PROGRAM);
	cr_assert_eq(elf_probe(AT_FDCWD, "/nowhere/at/all", NULL, &facts),
		ELF_UNREADABLE);
}
