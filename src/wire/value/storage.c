/* SPDX-License-Identifier: Apache-2.0 */
/* storage.c - see storage.h. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/device_ops.h"
#include "wire/value/storage.h"
#include "wire/value/value_hooks.h"

/* A storage of this process and its bytes are one block. */
#define HEAD \
	((sizeof(struct storage) + STORAGE_ALIGN - 1) / STORAGE_ALIGN * \
		STORAGE_ALIGN)

static _Atomic(const struct storage_source *) chosen;

void
storage_set_source(const struct storage_source *source)
{
	atomic_store_explicit(&chosen, source, memory_order_release);
}

const struct storage_source *
storage_source(void)
{
	return atomic_load_explicit(&chosen, memory_order_acquire);
}

/* --- making ---------------------------------------------------------------- */

/* A storage whose bytes lie elsewhere. */
static struct storage *
new_over(void *data, size_t bytes)
{
	struct storage *s = malloc(sizeof(*s));

	if (s != NULL)
		*s = (struct storage){
			.refs = 1,
			.data = data,
			.bytes = bytes,
			.fd = -1,
		};
	return s;
}

static struct storage *
new_private(size_t len)
{
	struct storage *s;

	if (len > XR_VALUE_BYTES_MAX + 1)
		return NULL;
	s = aligned_alloc(STORAGE_ALIGN,
		HEAD + (len + STORAGE_ALIGN) / STORAGE_ALIGN * STORAGE_ALIGN);
	if (s != NULL)
		*s = (struct storage){
			.refs = 1,
			.data = (char *)s + HEAD,
			.bytes = len,
			.fd = -1,
		};
	return s;
}

static void
release_source(struct storage *s)
{
	s->source->free(s->data, s->own);
}

/* NULL: the source has no room, or there is none. */
static struct storage *
new_of_source(size_t len)
{
	const struct storage_source *source = storage_source();
	void *own = NULL, *data;
	struct storage *s;

	if (source == NULL || len > XR_VALUE_BYTES_MAX + 1)
		return NULL;
	data = source->alloc(len > 0 ? len : 1, &own);
	if (data == NULL)
		return NULL;
	s = new_over(data, len);
	if (s == NULL) {
		source->free(data, own);
		return NULL;
	}
	s->source = source;
	s->own = own;
	s->release = release_source;
	return s;
}

struct storage *
storage_new(size_t len)
{
	struct storage *s = new_of_source(len);

	return s != NULL ? s : new_private(len);
}

struct storage *
storage_for_tensor(size_t len)
{
	struct storage *s = new_of_source(len);

	if (s == NULL && len >= STORAGE_SHARED)
		s = storage_new_shared(len);
	return s != NULL ? s : new_private(len);
}

static void
release_wrapped(struct storage *s)
{
	if (s->free_fn != NULL)
		s->free_fn(s->data, s->ctx);
}

struct storage *
storage_wrap(const struct storage_memory *memory)
{
	struct storage *s = new_over(memory->data, memory->bytes);

	if (s == NULL)
		return NULL;
	s->device_kind = memory->device_kind;
	if (s->device_kind != XR_DEVICE_CPU)
		s->device_index = memory->device_index;
	s->free_fn = memory->free_fn;
	s->ctx = memory->ctx;
	s->release = release_wrapped;
	return s;
}

static void
release_owner(struct storage *s)
{
	s->unref(s->own);
}

struct storage *
storage_within(const struct value_owner *owner, void *data, size_t bytes)
{
	struct storage *s = new_over(data, bytes);

	if (s == NULL)
		return NULL;
	owner->ref(owner->owner);
	s->own = owner->owner;
	s->unref = owner->unref;
	s->release = release_owner;
	return s;
}

/* --- devices --------------------------------------------------------------- */

/* Nothing is still memory of a device. */
static struct device_memory
memory_of(const struct storage *s)
{
	return (struct device_memory){
		.index = s->device_index,
		.data = s->data,
		.len = s->bytes > 0 ? s->bytes : 1,
	};
}

static void
release_device(struct storage *s)
{
	const struct device_ops *ops = device_ops_of(s->device_kind);
	struct device_memory memory = memory_of(s);

	ops->free(ops->ctx, &memory);
}

static enum xr_status
platform_of(enum xr_device_kind kind, const struct device_ops **ops,
	struct xr_error *err)
{
	*ops = device_ops_of(kind);
	return *ops != NULL ?
		XR_OK :
		fail(err, XR_E_NODEV, "value: no platform for %s here",
			device_kind_name(kind));
}

enum xr_status
storage_on_device(const struct storage_memory *where, struct storage **storage,
	struct xr_error *err)
{
	struct device_memory memory = {
		.index = where->device_index,
		.len = where->bytes > 0 ? where->bytes : 1,
	};
	const struct device_ops *ops;
	enum xr_status status = platform_of(where->device_kind, &ops, err);
	struct storage *s;

	if (status == XR_OK)
		status = ops->alloc(ops->ctx, &memory, err);
	if (status != XR_OK)
		return status;
	s = new_over(memory.data, where->bytes);
	if (s == NULL) {
		ops->free(ops->ctx, &memory);
		return fail(err, XR_E_NOMEM, "value: out of memory");
	}
	s->device_kind = where->device_kind;
	s->device_index = where->device_index;
	s->release = release_device;
	*storage = s;
	return XR_OK;
}

enum xr_status
storage_read(const struct storage *s, uint64_t at, void *out, size_t len,
	struct xr_error *err)
{
	struct device_memory memory = memory_of(s);
	const struct device_ops *ops;
	enum xr_status status;

	if (s->device_kind == XR_DEVICE_CPU) {
		if (len > 0)
			memcpy(out, (const char *)s->data + at, len);
		return XR_OK;
	}
	status = platform_of(s->device_kind, &ops, err);
	if (status != XR_OK)
		return status;
	memory.data = (char *)memory.data + at;
	memory.len = len;
	return ops->copy_to_host(ops->ctx, out, &memory, err);
}

/* --- handles --------------------------------------------------------------- */

bool
storage_handle_of(const struct storage *s, struct storage_handle *handle)
{
	const struct storage_source *source = storage_source();

	return source != NULL && source->handle != NULL &&
		s->device_kind == XR_DEVICE_CPU &&
		source->handle(s->data, s->bytes, handle);
}

enum xr_status
storage_adopt(const struct storage_handle *handle, uint64_t bytes,
	struct storage **storage, struct xr_error *err)
{
	const struct storage_source *source = storage_source();
	void *data = NULL, *own = NULL;
	enum xr_status status;

	if (source == NULL || source->adopt == NULL)
		return fail(err, XR_E_DECODE,
			"value: memory of a job, which is not here");
	if (handle->len < bytes)
		return fail(err, XR_E_DECODE,
			"value: a handle of fewer bytes than are in it");
	status = source->adopt(handle, &data, &own, err);
	if (status != XR_OK)
		return status;
	*storage = new_over(data, bytes);
	if (*storage == NULL) {
		source->free(data, own);
		return fail(err, XR_E_NOMEM, "value: out of memory");
	}
	(*storage)->source = source;
	(*storage)->own = own;
	(*storage)->release = release_source;
	return XR_OK;
}

/* --- counting -------------------------------------------------------------- */

struct storage *
storage_ref(struct storage *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void
storage_unref(struct storage *s)
{
	if (s == NULL ||
		atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) >
			1)
		return;
	if (s->release != NULL)
		s->release(s);
	free(s);
}
