/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - see pack.h. */
#include <stdlib.h>
#include <string.h>

#include "worker/pool/pack.h"

#define DEPTH_MAX 8    /* lists in each other */
#define ITEMS_MAX 4096 /* of a list */

enum tag {
	TAG_NILS = 1, /* u32: how many */
	TAG_BOOL,
	TAG_I64,
	TAG_U64,
	TAG_F64,
	TAG_BYTES, /* u16: how long */
	TAG_TEXT,
	TAG_LIST, /* u16: how many */
};

void
pack_init(struct pack *p)
{
	p->data = p->own;
	p->len = 0;
	p->cap = sizeof(p->own);
	p->nils = 0;
	p->bad = false;
}

void
pack_fini(struct pack *p)
{
	if (p->data != p->own)
		free(p->data);
	p->data = p->own;
}

/* @len more bytes; NULL: no memory. */
static char *
grow(struct pack *p, size_t len)
{
	size_t cap = p->cap;
	char *more;

	while (cap - p->len < len)
		cap *= 2;
	more = malloc(cap);
	if (more == NULL) {
		p->bad = true;
		return NULL;
	}
	memcpy(more, p->data, p->len);
	pack_fini(p);
	p->data = more;
	p->cap = cap;
	return more;
}

static char *
room(struct pack *p, size_t len)
{
	char *at;

	if (p->cap - p->len < len && grow(p, len) == NULL)
		return NULL;
	at = p->data + p->len;
	p->len += len;
	return at;
}

/* --- writing ------------------------------------------------------------------- */

static bool
put(struct pack *p, enum tag tag, const void *data, size_t len)
{
	char *at = room(p, 1 + len);

	if (at == NULL)
		return false;
	at[0] = (char)tag;
	memcpy(at + 1, data, len);
	return true;
}

/* One more of those before it, or the first. */
static bool
put_nil(struct pack *p)
{
	uint32_t count = 0;

	if (p->nils != 0) {
		memcpy(&count, p->data + p->nils, sizeof(count));
		if (++count == 0)
			return false;
		memcpy(p->data + p->nils, &count, sizeof(count));
		return true;
	}
	count = 1;
	if (!put(p, TAG_NILS, &count, sizeof(count)))
		return false;
	p->nils = p->len - sizeof(count);
	return true;
}

static bool
put_text(struct pack *p, enum tag tag, const struct xr_value *value)
{
	size_t len;
	const void *data = xr_value_data(value, &len);
	uint16_t count = (uint16_t)len;
	char *at;

	if (len > PACK_TEXT || !put(p, tag, &count, sizeof(count)))
		return false;
	at = room(p, len);
	if (at == NULL)
		return false;
	if (len > 0)
		memcpy(at, data, len);
	return true;
}

static bool add(struct pack *p, const struct xr_value *value, int depth);

static bool
put_list(struct pack *p, const struct xr_value *list, int depth)
{
	size_t len = xr_value_count(list);
	uint16_t count = (uint16_t)len;

	if (len > ITEMS_MAX || depth == DEPTH_MAX ||
		!put(p, TAG_LIST, &count, sizeof(count)))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!add(p, xr_value_at(list, i), depth + 1))
			return false;
	p->nils = 0;
	return true;
}

static bool
put_number(struct pack *p, const struct xr_value *value)
{
	int64_t i = 0;
	uint64_t u = 0;
	double f = 0;
	bool b = false;

	switch (xr_value_kind(value)) {
	case XR_BOOL:
		xr_value_get_bool(value, &b);
		return put(p, TAG_BOOL, &b, 1);
	case XR_I64:
		xr_value_get_i64(value, &i);
		return put(p, TAG_I64, &i, sizeof(i));
	case XR_U64:
		xr_value_get_u64(value, &u);
		return put(p, TAG_U64, &u, sizeof(u));
	case XR_F64:
		xr_value_get_f64(value, &f);
		return put(p, TAG_F64, &f, sizeof(f));
	default:
		return false;
	}
}

static bool
add(struct pack *p, const struct xr_value *value, int depth)
{
	enum xr_kind kind = xr_value_kind(value);

	if (kind == XR_NIL)
		return put_nil(p);
	p->nils = 0;
	if (kind == XR_BYTES || kind == XR_TEXT)
		return put_text(p, kind == XR_BYTES ? TAG_BYTES : TAG_TEXT,
			value);
	if (kind == XR_LIST)
		return put_list(p, value, depth);
	return put_number(p, value);
}

bool
pack_add(struct pack *p, const struct xr_value *value)
{
	size_t len = p->len, nils = p->nils;

	if (add(p, value, 0))
		return true;
	p->len = len;
	p->nils = nils;
	return false;
}

/* --- reading ------------------------------------------------------------------- */

static bool
take(struct unpack *u, void *out, size_t len)
{
	if ((size_t)(u->end - u->at) < len)
		return false;
	memcpy(out, u->at, len);
	u->at += len;
	return true;
}

static struct xr_value *
take_text(struct unpack *u, enum tag tag)
{
	const char *at;
	uint16_t len;

	if (!take(u, &len, sizeof(len)) || u->end - u->at < len)
		return NULL;
	at = (const char *)u->at;
	u->at += len;
	return tag == TAG_TEXT ? xr_value_new_text(at, len) :
				 xr_value_new_bytes(at, len);
}

static struct xr_value *next(struct unpack *u, int depth);

static struct xr_value *
take_list(struct unpack *u, int depth)
{
	struct xr_value *list, *item;
	uint16_t count;

	if (depth == DEPTH_MAX || !take(u, &count, sizeof(count)))
		return NULL;
	list = xr_value_new_list();
	for (uint32_t i = 0; i < count && list != NULL; i++) {
		item = next(u, depth + 1);
		if (xr_value_append(list, item) != XR_OK) {
			xr_value_unref(list);
			list = NULL;
		}
	}
	return list;
}

static struct xr_value *
take_number(struct unpack *u, enum tag tag)
{
	union {
		int64_t i;
		uint64_t u;
		double f;
	} n;
	uint8_t b;

	if (tag == TAG_BOOL)
		return take(u, &b, 1) ? xr_value_new_bool(b != 0) : NULL;
	if (!take(u, &n, sizeof(n)))
		return NULL;
	if (tag == TAG_I64)
		return xr_value_new_i64(n.i);
	if (tag == TAG_U64)
		return xr_value_new_u64(n.u);
	return tag == TAG_F64 ? xr_value_new_f64(n.f) : NULL;
}

static struct xr_value *
take_nil(struct unpack *u)
{
	if (u->nil == NULL)
		u->nil = xr_value_new_nil();
	u->nils--;
	return xr_value_ref(u->nil);
}

static struct xr_value *
next(struct unpack *u, int depth)
{
	uint8_t tag;

	if (u->nils == 0) {
		if (!take(u, &tag, 1))
			return NULL;
		if (tag == TAG_BYTES || tag == TAG_TEXT)
			return take_text(u, (enum tag)tag);
		if (tag == TAG_LIST)
			return take_list(u, depth);
		if (tag != TAG_NILS)
			return take_number(u, (enum tag)tag);
		if (!take(u, &u->nils, sizeof(u->nils)) || u->nils == 0)
			return NULL;
	}
	return take_nil(u);
}

uint32_t
unpack_nils(struct unpack *u, uint32_t most)
{
	uint32_t n;

	if (u->nils == 0 && u->end - u->at > (ptrdiff_t)sizeof(u->nils) &&
		*u->at == TAG_NILS) {
		u->at++;
		take(u, &u->nils, sizeof(u->nils));
	}
	n = u->nils < most ? u->nils : most;
	u->nils -= n;
	return n;
}

void
unpack_fini(struct unpack *u)
{
	xr_value_unref(u->nil);
	u->nil = NULL;
}

struct xr_value *
unpack_next(struct unpack *u)
{
	return next(u, 0);
}
