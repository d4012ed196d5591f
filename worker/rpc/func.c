/* SPDX-License-Identifier: Apache-2.0 */
/* func.c - see xrun/func.h and func.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "worker/rpc/func.h"

#define NAME_MAX_BYTES 255
#define TABLE_FIRST    64 /* places; a power of 2 */

/* Open addressing. One that is full is copied to a larger one, and stays for
 * whoever is looking into it. */
struct table {
	struct table *former; /* somebody may look at it yet */
	uint32_t places;      /* a power of 2 */
	uint32_t used;
	const struct func *_Atomic place[];
};

static struct table *_Atomic current;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* FNV-1a (draft-eastlake-fnv), 64 bits folded into 32. */
uint32_t
func_hash(const char *name, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	uint32_t folded;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
	folded = (uint32_t)(hash ^ hash >> 32);
	return folded != 0 ? folded : 1;
}

const struct func *
func_find(uint32_t hash)
{
	const struct table *t =
		atomic_load_explicit(&current, memory_order_acquire);
	const struct func *f;

	if (t == NULL)
		return NULL;
	for (uint32_t i = hash;; i++) {
		f = atomic_load_explicit(&t->place[i & (t->places - 1)],
			memory_order_acquire);
		if (f == NULL || f->hash == hash)
			return f;
	}
}

/* --- schemas -------------------------------------------------------------- */

static const char letters[] = {
	[XR_NIL] = 'n',
	[XR_BOOL] = 'b',
	[XR_I64] = 'i',
	[XR_U64] = 'u',
	[XR_F64] = 'f',
	[XR_C128] = 'c',
	[XR_BYTES] = 'B',
	[XR_TEXT] = 'T',
	[XR_LIST] = 'L',
	[XR_DICT] = 'D',
	[XR_TENSOR] = 't',
	[XR_RREF] = 'r',
	[XR_WORKER] = 'w',
	[XR_ERROR] = 'e',
	[XR_OPAQUE] = 'o',
	[XR_FUNC] = 'F',
};

static bool
is_letter(char c)
{
	return c == '?' || (c != '\0' && memchr(letters, c, sizeof(letters)));
}

bool
func_schema_is(const char *schema)
{
	if (schema == NULL)
		return true;
	for (const char *s = schema; *s != '\0'; s++)
		if (*s == '*') {
			if (s == schema || s[1] != '\0')
				return false;
		} else if (!is_letter(*s)) {
			return false;
		}
	return true;
}

/* Numbers fit where their value does, as in xr_value_get_...(). */
static bool
fits(char letter, const struct xr_value *v)
{
	uint64_t u;
	int64_t i;
	double f;

	switch (letter) {
	case '?':
		return true;
	case 'i':
		return xr_value_get_i64(v, &i) == XR_OK;
	case 'u':
		return xr_value_get_u64(v, &u) == XR_OK;
	case 'f':
		return xr_value_get_f64(v, &f) == XR_OK;
	default:
		return letters[xr_value_kind(v)] == letter;
	}
}

static const char *
letter_name(char letter)
{
	for (size_t i = 0; i < sizeof(letters); i++)
		if (letters[i] == letter)
			return xr_kind_name((enum xr_kind)i);
	return "anything";
}

enum xr_status
func_check(const char *schema, const struct xr_value *args,
	struct xr_error *err)
{
	size_t count = xr_value_count(args), i = 0;
	const char *s = schema;
	bool more;

	if (schema == NULL)
		return XR_OK;
	for (; i < count; i++) {
		if (*s == '\0')
			return fail(err, XR_E_SCHEMA,
				"%zu arguments, and it takes %zu", count, i);
		if (!fits(*s, xr_value_at(args, i)))
			return fail(err, XR_E_SCHEMA,
				"argument %zu is of kind %s, and it takes %s",
				i,
				xr_kind_name(xr_value_kind(xr_value_at(args,
					i))),
				letter_name(*s));
		if (s[1] != '*')
			s++;
	}
	if (*s != '\0' && s[1] == '*')
		return XR_OK;
	/* Of what a star stands behind there may be none. */
	more = strchr(schema, '*') != NULL;
	if (*s != '\0')
		return fail(err, XR_E_SCHEMA,
			"%zu arguments, and it takes %zu%s", count,
			strcspn(schema, "*") - more, more ? " and more" : "");
	return XR_OK;
}

/* --- registering ---------------------------------------------------------- */

static bool
is_utf8(const char *text, size_t len)
{
	size_t step;

	for (; len > 0; text += step, len -= step) {
		step = utf8_step(text, len);
		if (step == 0)
			return false;
	}
	return true;
}

static enum xr_status
check(const struct xr_func *f, struct xr_error *err)
{
	const uint32_t known = XR_FN_ASYNC | XR_FN_SHORT | XR_FN_SHARE;
	size_t len;

	if (f == NULL || f->size < sizeof(*f))
		return fail(err, XR_E_INVAL, "struct xr_func: its size is %u",
			f != NULL ? f->size : 0);
	len = f->name != NULL ? strnlen(f->name, NAME_MAX_BYTES + 1) : 0;
	if (len == 0 || len > NAME_MAX_BYTES || !is_utf8(f->name, len))
		return fail(err, XR_E_INVAL,
			"a function's name is 1 to %d bytes of UTF-8",
			NAME_MAX_BYTES);
	if ((f->fn == NULL) == (f->raw == NULL))
		return fail(err, XR_E_INVAL, "%s: it takes either fn or raw",
			f->name);
	if ((f->flags & ~known) != 0)
		return fail(err, XR_E_INVAL, "%s: unknown flags 0x%x", f->name,
			f->flags & ~known);
	if (!func_schema_is(f->schema) || (f->raw != NULL && f->schema != NULL))
		return fail(err, XR_E_INVAL, "%s: '%s' is no schema%s", f->name,
			f->schema, f->raw != NULL ? " of a raw function" : "");
	return XR_OK;
}

static void
func_free(struct func *func)
{
	if (func == NULL)
		return;
	free((char *)func->f.name);
	free((char *)func->f.schema);
	free(func);
}

static struct func *
copy(const struct xr_func *f)
{
	struct func *func = calloc(1, sizeof(*func));

	if (func == NULL)
		return NULL;
	func->f = *f;
	func->f.name = strdup(f->name);
	func->f.schema = f->schema != NULL ? strdup(f->schema) : NULL;
	if (func->f.name == NULL || (f->schema != NULL && !func->f.schema)) {
		func_free(func);
		return NULL;
	}
	func->name_len = (uint32_t)strlen(f->name);
	func->hash = func_hash(f->name, func->name_len);
	return func;
}

static void
insert(struct table *t, const struct func *f)
{
	uint32_t i = f->hash;

	while (atomic_load(&t->place[i & (t->places - 1)]) != NULL)
		i++;
	t->used++;
	atomic_store_explicit(&t->place[i & (t->places - 1)], f,
		memory_order_release);
}

/* Room for @more, half of it free. */
static struct table *
room(size_t more)
{
	struct table *old = atomic_load(&current), *t = old;
	uint32_t places = old != NULL ? old->places : TABLE_FIRST;

	while (places / 2 < (old != NULL ? old->used : 0) + more)
		places *= 2;
	if (old != NULL && places == old->places)
		return old;
	t = calloc(1, sizeof(*t) + places * sizeof(t->place[0]));
	if (t == NULL)
		return NULL;
	t->former = old;
	t->places = places;
	for (uint32_t i = 0; old != NULL && i < old->places; i++)
		if (atomic_load(&old->place[i]) != NULL)
			insert(t, atomic_load(&old->place[i]));
	return t;
}

/* Of those before it in the same call, too. */
static enum xr_status
check_new(struct func *const *funcs, size_t n, struct xr_error *err)
{
	const struct func *f = funcs[n], *old = func_find(f->hash);

	for (size_t i = 0; old == NULL && i < n; i++)
		if (funcs[i]->hash == f->hash)
			old = funcs[i];
	if (old == NULL)
		return XR_OK;
	if (strcmp(old->f.name, f->f.name) == 0)
		return fail(err, XR_E_EXISTS, "%s is registered already",
			f->f.name);
	return fail(err, XR_E_EXISTS,
		"%s cannot be told from %s, which is registered: take another name",
		f->f.name, old->f.name);
}

static enum xr_status
register_all(struct func *const *funcs, size_t count, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct table *t = NULL;

	pthread_mutex_lock(&changing);
	for (size_t i = 0; i < count && status == XR_OK; i++)
		status = check_new(funcs, i, err);
	if (status == XR_OK) {
		t = room(count);
		if (t == NULL)
			status = fail(err, XR_E_NOMEM, "out of memory");
	}
	for (size_t i = 0; i < count && status == XR_OK; i++)
		insert(t, funcs[i]);
	if (status == XR_OK)
		atomic_store_explicit(&current, t, memory_order_release);
	pthread_mutex_unlock(&changing);
	return status;
}

XR_EXPORT enum xr_status
xr_module_static(const struct xr_func *funcs, size_t count,
	struct xr_error *err)
{
	struct func **made = calloc(count > 0 ? count : 1, sizeof(*made));
	enum xr_status status = made != NULL ? XR_OK : XR_E_NOMEM;

	for (size_t i = 0; i < count && status == XR_OK; i++) {
		status = check(&funcs[i], err);
		if (status == XR_OK) {
			made[i] = copy(&funcs[i]);
			if (made[i] == NULL)
				status = fail(err, XR_E_NOMEM, "out of memory");
		}
	}
	if (status == XR_OK)
		status = register_all(made, count, err);
	for (size_t i = 0; made != NULL && i < count && status != XR_OK; i++)
		func_free(made[i]);
	free(made);
	return status;
}

XR_EXPORT enum xr_status
xr_fn_register(const struct xr_func *func, struct xr_error *err)
{
	return xr_module_static(func, 1, err);
}
