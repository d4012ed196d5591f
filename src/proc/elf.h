/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.h - will a library that is preloaded into this program do it good?
 *
 * Looks at a program file before it is run, as the kernel and the loader will:
 * ELF header, program headers, PT_INTERP, DT_NEEDED, set-user-id bits and
 * capabilities; for a script at its interpreter. A few short reads, 5 to 10 us.
 * The file is data from outside: every offset in it is checked, and none of it
 * is believed for longer than the call.
 */
#ifndef PROC_ELF_H
#define PROC_ELF_H

#include <stdbool.h>

enum elf_verdict {
	ELF_FITS,       /* preload */
	ELF_STATIC,     /* no loader will read LD_PRELOAD */
	ELF_MACHINE,    /* other word size, byte order or processor */
	ELF_LIBC,       /* other loader than ours would be, so other libc */
	ELF_SECURE,     /* set-user-id and the like: the loader ignores it */
	ELF_SANITIZER,  /* wants to be the first library, and dies if not */
	ELF_DAMAGED,    /* an ELF file whose parts are not where it says */
	ELF_NO_PROGRAM, /* neither ELF nor a script */
	ELF_UNREADABLE, /* may be run, perhaps, but not read */
};

struct elf_facts {
	enum elf_verdict verdict;
	bool script;     /* the rest is about its interpreter */
	bool needs_xrun; /* linked with libxrun.so */
	char what[64];   /* what decided: loader or library; "" if nothing */
	char mpi[64];    /* the MPI library it is linked with; "" if none */
	char name[64];   /* base name of the program, or of its interpreter */
};

/*
 * elf_probe() - look at a program.
 *
 * @dirfd:  where @path begins if it is relative, as it will at the exec;
 *          AT_FDCWD for here
 * @path:   the file, not searched for
 * @search: PATH of the program to be, for "#!/usr/bin/env NAME"; NULL: none
 * @facts:  filled in any case
 *
 * Returns  @facts->verdict
 * Blocks   for the disk.  Errno is not kept.
 */
enum elf_verdict elf_probe(int dirfd, const char *path, const char *search,
	struct elf_facts *facts);

/* elf_is_static() - is this program one file, without a loader? It cannot open
 * a library, then. */
bool elf_is_static(void);

/* elf_verdict_text() - "statically linked"; fits behind "it is ". */
const char *elf_verdict_text(enum elf_verdict verdict);

#endif /* PROC_ELF_H */
