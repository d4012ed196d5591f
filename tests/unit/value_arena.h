/* SPDX-License-Identifier: Apache-2.0 */
/* value_arena.h - a source of storage for tests: a block that several would map,
 * which gives bytes away one behind the other. */
#ifndef TESTS_UNIT_VALUE_ARENA_H
#define TESTS_UNIT_VALUE_ARENA_H

#include <stdint.h>

#include "base/status.h"
#include "wire/value/storage.h"

#define ARENA_GEN 77

static _Alignas(STORAGE_ALIGN) char arena[1 << 20];
static size_t arena_used;
static int arena_held; /* blocks that were not given back */

static void *
arena_alloc(size_t len, void **own)
{
	size_t at = (arena_used + STORAGE_ALIGN - 1) / STORAGE_ALIGN *
		STORAGE_ALIGN;

	if (len > sizeof(arena) - at)
		return NULL;
	arena_used = at + len;
	arena_held++;
	*own = &arena_held;
	return arena + at;
}

static void
arena_free(void *data, void *own)
{
	(void)data;
	--*(int *)own;
}

static bool
arena_handle(const void *data, size_t len, struct storage_handle *handle)
{
	uintptr_t at = (uintptr_t)data - (uintptr_t)arena;

	if (at > sizeof(arena) || len > sizeof(arena) - at)
		return false;
	*handle = (struct storage_handle){ at, len, ARENA_GEN };
	return true;
}

static enum xr_status
arena_adopt(const struct storage_handle *handle, void **data, void **own,
	struct xr_error *e)
{
	if (handle->gen != ARENA_GEN || handle->offset > sizeof(arena) ||
		handle->len > sizeof(arena) - handle->offset)
		return fail(e, XR_E_DECODE, "arena: no such block");
	arena_held++;
	*data = arena + handle->offset;
	*own = &arena_held;
	return XR_OK;
}

static const struct storage_source arena_source = {
	.alloc = arena_alloc,
	.free = arena_free,
	.handle = arena_handle,
	.adopt = arena_adopt,
};

#endif /* TESTS_UNIT_VALUE_ARENA_H */
