/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - see page.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "worker/pool/hand.h"
#include "worker/pool/page.h"

#define ENTRIES_MAX (1u << 20)

/* Up to @entry. */
static bool
has_room(struct pages *p, uint32_t entry)
{
	struct page *more;
	uint32_t count;

	if (entry < p->count)
		return true;
	if (entry >= ENTRIES_MAX)
		return false;
	count = (entry + 16) & ~15u;
	more = reallocarray(p->page, count, sizeof(*more));
	if (more == NULL)
		return false;
	memset(more + p->count, 0, (count - p->count) * sizeof(*more));
	p->page = more;
	p->count = count;
	return true;
}

static enum xr_status
decode(int book, const struct task_head *task, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_part part = { .len = task->len };
	enum xr_status status;
	char *data = malloc((size_t)task->len + 1);

	if (data == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (pread(book, data, task->len, (off_t)task->at) !=
		(ssize_t)task->len) {
		free(data);
		return fail(err, XR_E_PROTO, "the pool's book is cut short");
	}
	part.data = data;
	status = xr_decode(&part, 1, NULL, value, err);
	free(data);
	return status;
}

static enum xr_status
look_up(struct page *page, struct xr_error *err)
{
	const char *name = xr_value_func(page->value, &page->bound);

	if (name == NULL)
		return fail(err, XR_E_PROTO, "that is no function");
	return hand_find(name, &page->func, err);
}

static void
page_fini(struct page *page)
{
	xr_value_unref(page->value);
	*page = (struct page){ 0 };
}

const struct page *
pages_find(struct pages *p, const struct task_head *task)
{
	struct page *page;

	if (!has_room(p, task->entry))
		return NULL;
	page = &p->page[task->entry];
	if (page->serial == task->serial)
		return page;
	page_fini(page);
	page->status = decode(p->book, task, &page->value, &page->err);
	if (page->status == XR_OK)
		page->status = look_up(page, &page->err);
	page->serial = task->serial;
	return page;
}

void
pages_fini(struct pages *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		page_fini(&p->page[i]);
	free(p->page);
}
