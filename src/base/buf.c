/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - see buf.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* At least @want bytes and the closing 0; false with b->bad set. */
static int
reserve(struct buf *b, size_t want)
{
	size_t cap = b->cap ? b->cap : 64;
	char *p;

	if (b->bad != XR_OK)
		return 0;
	if (want == SIZE_MAX || (b->max != 0 && want > b->max)) {
		b->bad = XR_E_RANGE;
		return 0;
	}
	while (cap < want + 1 && cap <= SIZE_MAX / 2)
		cap *= 2;
	if (cap == b->cap)
		return 1;
	p = cap > want ? realloc(b->data, cap) : NULL;
	if (p == NULL) {
		b->bad = XR_E_NOMEM;
		return 0;
	}
	b->data = p;
	b->cap = cap;
	return 1;
}

char *
buf_room(struct buf *b, size_t len)
{
	size_t want;
	char *p;

	if (__builtin_add_overflow(b->len, len, &want))
		want = SIZE_MAX;
	if (!reserve(b, want))
		return NULL;
	p = b->data + b->len;
	b->len = want;
	b->data[want] = '\0';
	return p;
}

void
buf_put(struct buf *b, const void *data, size_t len)
{
	char *p = buf_room(b, len);

	if (p != NULL && len != 0)
		memcpy(p, data, len);
}

void
buf_put_text(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

void
buf_put_char(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void
buf_fmt(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n < 0 && b->bad == XR_OK)
		b->bad = XR_E_INVAL;
	if (n >= 0 && reserve(b, b->len + (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	va_end(ap);
}

const char *
buf_text(const struct buf *b)
{
	return b->data == NULL ? "" : b->data;
}

void
buf_clear(struct buf *b)
{
	b->len = 0;
	b->bad = XR_OK;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void
buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}
