/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - see writer.h. */
#include <stdlib.h>

#include "wire/value/writer.h"

void
writer_init(struct writer *w)
{
	w->at = w->first;
	w->len = 0;
	w->cap = sizeof(w->first);
	w->bad = XR_OK;
}

void
writer_fini(struct writer *w)
{
	if (w->at != w->first)
		free(w->at);
	writer_init(w);
}

/* Nothing fits any more. */
static uint8_t *
stop(struct writer *w, enum xr_status why)
{
	if (w->bad == XR_OK)
		w->bad = why;
	w->cap = w->len;
	return NULL;
}

uint8_t *
writer_grow(struct writer *w, size_t len)
{
	size_t cap = w->cap;
	uint8_t *more;

	if (w->bad != XR_OK)
		return NULL;
	if (len > FORMAT_HEAD_MAX - w->len)
		return stop(w, XR_E_RANGE);
	while (cap - w->len < len)
		cap *= 2;
	if (cap > FORMAT_HEAD_MAX)
		cap = FORMAT_HEAD_MAX;
	more = w->at == w->first ? malloc(cap) : realloc(w->at, cap);
	if (more == NULL)
		return stop(w, XR_E_NOMEM);
	if (w->at == w->first)
		memcpy(more, w->first, w->len);
	w->at = more;
	w->cap = cap;
	w->len += len;
	return w->at + w->len - len;
}
