/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - see symbol.h. */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "worker/job/symbol.h"

#define SECTIONS_MAX 4096
#define SYMBOLS_MAX  (16u << 20) /* bytes of the table; larger is not read */
#define CHUNK        64          /* symbols a read: 1.5 KiB of stack */

/* Exactly @len bytes at @at of the file. */
static bool
read_at(int fd, void *out, size_t len, uint64_t at)
{
	return at <= INT64_MAX &&
		pread(fd, out, len, (off_t)at) == (ssize_t)len;
}

/* The headers of the symbol table and of the strings it points into; of a file
 * that was stripped, of those that it shows others. */
static bool
find_tables(int fd, ElfW(Shdr) * symbols, ElfW(Shdr) * strings)
{
	ElfW(Shdr) shown = { 0 };
	ElfW(Ehdr) head;
	unsigned i;

	if (!read_at(fd, &head, sizeof(head), 0))
		return false;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (head.e_shentsize != sizeof(*symbols) || head.e_shnum > SECTIONS_MAX)
		return false;
	for (i = 0; i < head.e_shnum; i++) {
		if (!read_at(fd, symbols, sizeof(*symbols),
			    head.e_shoff + i * sizeof(*symbols)))
			return false;
		if (symbols->sh_type == SHT_SYMTAB)
			break;
		if (symbols->sh_type == SHT_DYNSYM)
			shown = *symbols;
	}
	if (i == head.e_shnum)
		*symbols = shown;
	if (symbols->sh_size == 0 || symbols->sh_link >= head.e_shnum)
		return false;
	return read_at(fd, strings, sizeof(*strings),
		head.e_shoff + symbols->sh_link * sizeof(*strings));
}

static bool
covers(const ElfW(Sym) * sym, uint64_t address)
{
	return (sym->st_info & 0xf) == STT_FUNC && sym->st_shndx != SHN_UNDEF &&
		address >= sym->st_value &&
		address - sym->st_value < sym->st_size;
}

/* The symbol that covers @address, read a piece at a time. */
static bool
scan(int fd, const ElfW(Shdr) * table, uint64_t address, ElfW(Sym) * found)
{
	ElfW(Sym) piece[CHUNK];
	uint64_t left = table->sh_size / sizeof(*piece);
	uint64_t at = table->sh_offset;
	size_t n, i;

	if (table->sh_size > SYMBOLS_MAX)
		return false;
	for (; left > 0; left -= n, at += n * sizeof(*piece)) {
		n = left < CHUNK ? left : CHUNK;
		if (!read_at(fd, piece, n * sizeof(*piece), at))
			return false;
		for (i = 0; i < n && !covers(&piece[i], address); i++)
			;
		if (i < n) {
			*found = piece[i];
			return true;
		}
	}
	return false;
}

bool
symbol_find(int fd, uint64_t address, struct symbol *symbol)
{
	ElfW(Shdr) symbols, strings;
	ElfW(Sym) sym;
	ssize_t n;

	if (!find_tables(fd, &symbols, &strings) ||
		!scan(fd, &symbols, address, &sym))
		return false;
	if (sym.st_name >= strings.sh_size ||
		strings.sh_offset > INT64_MAX - strings.sh_size)
		return false;
	n = pread(fd, symbol->name, sizeof(symbol->name) - 1,
		(off_t)(strings.sh_offset + sym.st_name));
	if (n <= 0)
		return false;
	symbol->name[n] = '\0';
	symbol->offset = address - sym.st_value;
	return symbol->name[0] != '\0';
}
