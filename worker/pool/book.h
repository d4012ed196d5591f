/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book.h - the functions that tasks of a pool name, each with what it was bound to.
 *
 * Workers read them in a memfd, each once (page.h). Of those that no job has, the ones
 * that were used last are kept; the place of another is given back to the system.
 */
#ifndef WORKER_POOL_BOOK_H
#define WORKER_POOL_BOOK_H

#include <stdatomic.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/value.h>

struct func;

#define BOOK_KEPT  64   /* that no job has, */
#define BOOK_SHORT 1024 /* and of those that take less than a page */

struct entry {
	uint32_t index, serial; /* 0: there is nothing */
	uint64_t at;
	uint32_t len;
	_Atomic uint32_t users; /* jobs */
	uint64_t used;          /* when, by count */
	struct xr_value *value; /* a FUNC; a reference */
	struct xr_value
		*given;   /* that of the program; NULL: by name. A reference */
	const char *name; /* of @value */
	uint32_t hash;    /* of @given, or of the name */
	struct entry *next;      /* in its line */
	struct xr_value *bound;  /* of @value; or NULL */
	const struct func *func; /* NULL: it is not registered here */
	double ns;               /* that a call takes, as seen; 0: not known */
};

struct book {
	int fd;
	struct entry **entry; /* [count] */
	uint32_t count, serials;
	struct entry **line; /* [lines], by hash; a power of two, or none */
	uint32_t lines;
	struct entry *last; /* that was found */
	uint64_t end;       /* of the file */
	uint64_t uses;
};

/* The pool's lock is held. book_find() - that of @name, or @func; one user more, until
 * book_release(), which needs no lock. */
enum xr_status book_find(struct book *b, const char *name,
	struct xr_value *func, struct entry **entry, struct xr_error *err);
void book_release(struct entry *entry);

enum xr_status book_init(struct book *b, struct xr_error *err);
void book_fini(struct book *b); /* zeroed is fine, with fd -1 */

#endif /* WORKER_POOL_BOOK_H */
