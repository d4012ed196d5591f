/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol.h - the function around an address, from the file's own symbol table.
 *
 * dladdr(3) knows only what a program exports, which is nothing for most; the
 * table that the linker left in the file knows static functions, too. Where that
 * was stripped, what is exported is all. Reads the file in small pieces,
 * allocates nothing, believes nothing it reads; async-signal-safe.
 */
#ifndef WORKER_JOB_SYMBOL_H
#define WORKER_JOB_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
	char name[64];   /* cut there, always terminated */
	uint64_t offset; /* of the address from the start of the function */
};

/*
 * symbol_find() - the function of the ELF file @fd that covers @address.
 *
 * @address: as the file counts, before relocation
 * Returns  false if the file was stripped, is damaged, or has no such function
 */
bool symbol_find(int fd, uint64_t address, struct symbol *symbol);

#endif /* WORKER_JOB_SYMBOL_H */
