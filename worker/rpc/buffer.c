/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - memory that a call can hand over; see xrun/call.h. */
#include <stddef.h>
#include <stdint.h>

#include <xrun/call.h>

#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/rpc/local.h"

/* In front of what the caller has, in memory of its own line. */
struct head {
	_Alignas(STORAGE_ALIGN) struct storage *storage;
};

XR_EXPORT void *
xr_buffer_new(size_t len)
{
	struct storage *s;
	struct head *head;

	if (len > SIZE_MAX - sizeof(*head))
		return NULL;
	local_open();
	s = storage_new(len + sizeof(*head));
	if (s == NULL)
		return NULL;
	head = s->data;
	head->storage = s;
	return head + 1;
}

XR_EXPORT void
xr_buffer_free(void *buffer)
{
	if (buffer != NULL)
		storage_unref(((struct head *)buffer - 1)->storage);
}
