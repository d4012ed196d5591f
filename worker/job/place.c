/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - see place.h. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <unistd.h>

#include <sys/stat.h>

#include "worker/job/place.h"

/* Longer ones are cut, in a path that is too long anyway. */
#define LINE_MAX_ 512

/* A line of /proc/self/maps: proc(5). */
struct mapping {
	uintptr_t from, to;
	uint64_t offset, inode;
	const char *path; /* in the line */
};

/* --- reading -------------------------------------------------------------- */

static const char *
read_number(const char *at, unsigned base, uint64_t *number)
{
	uint64_t n = 0;

	for (;; at++) {
		unsigned digit = *at >= '0' && *at <= '9' ?
			(unsigned)(*at - '0') :
			*at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10 :
						   16;

		if (digit >= base)
			break;
		n = n * base + digit;
	}
	*number = n;
	return at;
}

static const char *
skip_word(const char *at)
{
	while (*at != ' ' && *at != '\0')
		at++;
	while (*at == ' ')
		at++;
	return at;
}

/* "7f00-7f01 r-xp 00002000 fe:01 4711      /usr/lib/libc.so.6" */
static bool
read_mapping(const char *line, struct mapping *m)
{
	uint64_t from, to;
	const char *at = read_number(line, 16, &from);

	if (*at++ != '-')
		return false;
	at = read_number(at, 16, &to);
	m->from = (uintptr_t)from;
	m->to = (uintptr_t)to;
	at = skip_word(skip_word(at)); /* its permissions */
	at = read_number(at, 16, &m->offset);
	at = skip_word(skip_word(at)); /* its device */
	at = read_number(at, 10, &m->inode);
	while (*at == ' ')
		at++;
	m->path = at;
	return true;
}

/* A file, read in pieces. */
struct lines {
	int fd;
	size_t at, len;
	char piece[1024];
};

/* The next line without its end, cut to the room there is. */
static bool
next_line(struct lines *l, char *line, size_t cap)
{
	size_t n = 0;
	ssize_t got;

	for (;;) {
		if (l->at == l->len) {
			got = read(l->fd, l->piece, sizeof(l->piece));
			if (got <= 0)
				return false;
			l->at = 0;
			l->len = (size_t)got;
		}
		if (l->piece[l->at] == '\n')
			break;
		if (n + 1 < cap)
			line[n++] = l->piece[l->at];
		l->at++;
	}
	l->at++;
	line[n] = '\0';
	return true;
}

/* --- finding -------------------------------------------------------------- */

static void
copy_path(char *out, const char *path)
{
	size_t n = 0;

	while (path[n] != '\0' && n < PLACE_PATH - 1) {
		out[n] = path[n];
		n++;
	}
	out[path[n] == '\0' ? n : 0] = '\0';
}

static void
note(struct place *p, const struct mapping *m, uintptr_t base)
{
	if (p->address < m->from || p->address >= m->to || m->inode == 0)
		return;
	p->base = base;
	p->inode = m->inode;
	p->in_file = p->address - base;
	copy_path(p->path, m->path);
}

static void
find_files(struct place *places, size_t count)
{
	struct lines l = { .fd = open("/proc/self/maps",
				   O_RDONLY | O_CLOEXEC) };
	struct mapping m;
	uintptr_t base = 0;
	uint64_t of = 0; /* the file that begins there */
	char line[LINE_MAX_];

	while (l.fd != -1 && next_line(&l, line, sizeof(line))) {
		if (!read_mapping(line, &m))
			continue;
		if (m.offset == 0 || m.inode != of) {
			base = m.from - (uintptr_t)m.offset;
			of = m.inode;
		}
		for (size_t i = 0; i < count; i++)
			note(&places[i], &m, base);
	}
	if (l.fd != -1)
		close(l.fd);
}

/* Addresses of a program that is not relocated are those of its file. */
static void
find_symbol(struct place *p)
{
	ElfW(Ehdr) head;
	struct stat st;
	int fd;

	p->symbol.name[0] = '\0';
	if (p->path[0] != '/')
		return;
	fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return;
	if (fstat(fd, &st) == 0 && st.st_ino == p->inode &&
		pread(fd, &head, sizeof(head), 0) == sizeof(head)) {
		if (head.e_type == ET_EXEC)
			p->in_file = p->address;
		if (!symbol_find(fd, p->in_file, &p->symbol))
			p->symbol.name[0] = '\0';
	}
	close(fd);
}

void
place_find(struct place *places, size_t count)
{
	find_files(places, count);
	for (size_t i = 0; i < count; i++)
		find_symbol(&places[i]);
}

const char *
place_file(const struct place *p)
{
	const char *last = p->path;

	for (const char *at = p->path; *at != '\0'; at++)
		if (*at == '/')
			last = at + 1;
	return *last == '\0' ? "?" : last;
}
