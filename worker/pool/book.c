/* SPDX-License-Identifier: Apache-2.0 */
/* book.c - see book.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "base/fd.h"
#include "base/status.h"
#include "wire/value/node.h"
#include "worker/pool/book.h"
#include "worker/pool/hand.h"
#include "worker/rpc/func.h"

#define PAGE  4096 /* bytes that are given back at a time */
#define LINES 64   /* at first */

enum xr_status
book_init(struct book *b, struct xr_error *err)
{
	*b = (struct book){ .fd = memfd_create("xrun-book", MFD_CLOEXEC) };
	return b->fd != -1 ?
		XR_OK :
		fail(err, XR_E_SYS, "memfd_create: %s", strerror(errno));
}

static void
entry_fini(struct entry *e)
{
	xr_value_unref(e->value);
	xr_value_unref(e->given);
	e->value = e->given = NULL;
	e->bound = NULL;
	e->serial = 0;
	e->ns = 0;
}

void
book_fini(struct book *b)
{
	for (uint32_t i = 0; i < b->count; i++) {
		entry_fini(b->entry[i]);
		free(b->entry[i]);
	}
	free(b->entry);
	free(b->line);
	fd_close(b->fd);
	*b = (struct book){ .fd = -1 };
}

/* --- finding -------------------------------------------------------------------- */

static bool
is_it(const struct entry *e, const char *name, const struct xr_value *func)
{
	if (e->given != func)
		return false;
	return func != NULL || strcmp(e->name, name) == 0;
}

static uint32_t
hash_of(const char *name, const struct xr_value *func)
{
	if (func == NULL)
		return func_hash(name, strlen(name));
	return (uint32_t)((uintptr_t)func * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static struct entry *
look_for(struct book *b, const char *name, const struct xr_value *func)
{
	struct entry *e = NULL;

	if (b->last != NULL && is_it(b->last, name, func))
		return b->last;
	if (b->lines > 0)
		e = b->line[hash_of(name, func) & (b->lines - 1)];
	while (e != NULL && !is_it(e, name, func))
		e = e->next;
	return e;
}

static void
line_add(struct book *b, struct entry *e)
{
	struct entry **line = &b->line[e->hash & (b->lines - 1)];

	e->next = *line;
	*line = e;
}

static void
line_remove(struct book *b, struct entry *e)
{
	struct entry **at = &b->line[e->hash & (b->lines - 1)];

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
}

/* Lines for one more, as many as entries at least. None of these is empty. */
static bool
make_lines(struct book *b)
{
	uint32_t lines = b->lines == 0 ? LINES : 2 * b->lines;
	struct entry **more;

	if (b->count < b->lines)
		return true;
	more = calloc(lines, sizeof(struct entry *));
	if (more == NULL)
		return false;
	free(b->line);
	b->line = more;
	b->lines = lines;
	for (uint32_t i = 0; i < b->count; i++)
		line_add(b, b->entry[i]);
	return true;
}

/* --- making room ------------------------------------------------------------------ */

/* Whole pages of it. There is another one that nobody uses, and was used since: so it is
 * not the last that was found. */
static void
forget(struct book *b, struct entry *e)
{
	uint64_t from = (e->at + PAGE - 1) / PAGE * PAGE;
	uint64_t to = (e->at + e->len) / PAGE * PAGE;

	if (to > from)
		fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)from, (off_t)(to - from));
	line_remove(b, e);
	entry_fini(e);
}

/* One that nobody uses: an empty one, else where there are many the one used least
 * lately. Of threads nothing is written, and so nobody knows how much it is. */
static struct entry *
find_spare(struct book *b)
{
	struct entry *oldest = NULL;
	uint32_t idle = 0, brief = 0;

	for (uint32_t i = 0; i < b->count; i++) {
		struct entry *e = b->entry[i];

		if (e->serial == 0)
			return e;
		if (e->users > 0)
			continue;
		if (e->len > 0 && e->len < PAGE)
			brief++;
		else
			idle++;
		if (oldest == NULL || e->used < oldest->used)
			oldest = e;
	}
	if (idle <= BOOK_KEPT && brief <= BOOK_SHORT)
		return NULL;
	forget(b, oldest);
	return oldest;
}

static struct entry *
add_entry(struct book *b)
{
	struct entry *e = find_spare(b), **more;

	if (e != NULL)
		return e;
	if (!make_lines(b))
		return NULL;
	e = calloc(1, sizeof(*e));
	more = reallocarray(b->entry, b->count + 1, sizeof(struct entry *));
	if (more != NULL)
		b->entry = more;
	if (e == NULL || more == NULL) {
		free(e);
		return NULL;
	}
	e->index = b->count;
	b->entry[b->count++] = e;
	return e;
}

/* --- writing ---------------------------------------------------------------------- */

static enum xr_status
write_parts(struct book *b, struct entry *e, const struct xr_encoded *encoded,
	struct xr_error *err)
{
	size_t count;
	const struct xr_part *parts = xr_encoded_parts(encoded, &count);
	uint64_t at = b->end;

	for (size_t i = 0; i < count; i++) {
		if (pwrite(b->fd, parts[i].data, parts[i].len, (off_t)at) !=
			(ssize_t)parts[i].len)
			return fail(err, XR_E_SYS, "pwrite: %s",
				strerror(errno));
		at += parts[i].len;
	}
	if (at - b->end > UINT32_MAX)
		return fail(err, XR_E_RANGE,
			"what a function is bound to has 4 GiB or more");
	e->at = b->end;
	e->len = (uint32_t)(at - b->end);
	b->end = (at + 63) / 64 * 64;
	return XR_OK;
}

static enum xr_status
write_down(struct book *b, struct entry *e, struct xr_error *err)
{
	struct xr_encoded *encoded = NULL;
	enum xr_status status = xr_encode(e->value, NULL, &encoded, err);

	if (status == XR_OK)
		status = write_parts(b, e, encoded, err);
	xr_encoded_free(encoded);
	return status;
}

static bool
is_name(const char *name)
{
	size_t len = strnlen(name, VALUE_NAME_MAX + 1);

	return len > 0 && len <= VALUE_NAME_MAX;
}

static enum xr_status
fill(struct book *b, struct entry *e, const char *name, struct xr_value *func,
	struct xr_error *err)
{
	enum xr_status status;

	e->value = func != NULL ? xr_value_ref(func) : xr_fn_bind(name, NULL);
	if (e->value == NULL && is_name(name))
		return fail(err, XR_E_NOMEM, "out of memory");
	if (e->value == NULL)
		return fail(err, XR_E_INVAL,
			"that is no function's name: 1 to 255 bytes");
	e->given = func != NULL ? xr_value_ref(func) : NULL;
	e->name = xr_value_func(e->value, &e->bound);
	if (hand_find(e->name, &e->func, NULL) != XR_OK)
		e->func = NULL;
	status = b->fd != -1 ? write_down(b, e, err) : XR_OK;
	if (status != XR_OK)
		return status;
	e->serial = ++b->serials;
	e->hash = hash_of(name, func);
	line_add(b, e);
	return XR_OK;
}

enum xr_status
book_find(struct book *b, const char *name, struct xr_value *func,
	struct entry **entry, struct xr_error *err)
{
	struct xr_value *bound = NULL;
	enum xr_status status = XR_OK;
	struct entry *e;

	/* One that is bound to nothing is its name. */
	if (func != NULL) {
		name = xr_value_func(func, &bound);
		func = bound != NULL ? func : NULL;
	}
	e = look_for(b, name, func);
	if (e == NULL) {
		e = add_entry(b);
		if (e == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
		status = fill(b, e, name, func, err);
	}
	if (status != XR_OK) {
		entry_fini(e);
		return status;
	}
	b->last = e;
	e->used = ++b->uses;
	atomic_fetch_add(&e->users, 1);
	*entry = e;
	return XR_OK;
}

void
book_release(struct entry *entry)
{
	atomic_fetch_sub(&entry->users, 1);
}
