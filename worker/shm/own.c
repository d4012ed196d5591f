/* SPDX-License-Identifier: Apache-2.0 */
/* own.c - see own.h. */
#include <stdlib.h>

#include "base/status.h"
#include "worker/shm/own.h"

void *
own_new(struct shm *shm, size_t len, void **own)
{
	void *data = arena_alloc(&shm->arena, len);

	if (data != NULL) {
		*own = own_word(data, OWN_BLOCK);
		return data;
	}
	if (len > SIZE_MAX - ARENA_ALIGN)
		return NULL;
	data = aligned_alloc(ARENA_ALIGN, segment_round(len, ARENA_ALIGN));
	*own = own_word(data, OWN_PRIVATE);
	return data;
}

void
own_ref(struct shm *shm, void *own)
{
	void *at = own_at(own);

	switch (own_kind(own)) {
	case OWN_HOLD:
		hold_ref(at);
		return;
	case OWN_BLOCK:
		arena_ref(&shm->arena, at, 1);
		return;
	case OWN_PRIVATE:
	case OWN_KINDS:
		break;
	}
	XR_ASSERT(false);
}

void
own_unref(struct shm *shm, void *own)
{
	void *at = own_at(own);

	switch (own_kind(own)) {
	case OWN_HOLD:
		hold_unref(at);
		return;
	case OWN_BLOCK:
		arena_unref(&shm->arena, at);
		return;
	case OWN_PRIVATE:
	case OWN_KINDS:
		break;
	}
	free(at);
}
