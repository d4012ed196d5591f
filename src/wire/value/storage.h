/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.h - counted memory of tensors and of long bytes.
 *
 * Several values may lie in one storage; it goes when the last of them does.
 * Where memory comes from is the business of a source, one for the process: the
 * shared memory of a job, say, which other processes know by a handle. Without,
 * or where it has none left, it is memory of this process, and tensors lie in
 * memfds, which can be handed over as descriptors.
 *
 * What lies at @data may be written to by anybody; the rest of a storage never
 * changes once others have it.
 */
#ifndef WIRE_VALUE_STORAGE_H
#define WIRE_VALUE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/device.h>
#include <xrun/error.h>
#include <xrun/value.h>

#define STORAGE_ALIGN  64
#define STORAGE_SHARED 4096 /* bytes from which on a memfd is made for them */

struct value_owner;

/* Memory as another process finds it; the numbers are the source's. */
struct storage_handle {
	uint64_t offset;
	uint64_t len;
	uint64_t gen;
};

/* Functions of a source: on any thread, and none may block. */
struct storage_source {
	/* alloc() - @len bytes at a multiple of STORAGE_ALIGN; @own comes back
	 * with free(). NULL: there is no room. */
	void *(*alloc)(size_t len, void **own);
	void (*free)(void *data, void *own);

	/* handle() - of [@data, @data + @len); false: it is not of this source.
	 * Whoever sends it keeps the memory until it was adopted. NULL: the
	 * source has no handles. */
	bool (*handle)(const void *data, size_t len,
		struct storage_handle *handle);

	/* adopt() - memory of a handle, which anybody may have written: it lies
	 * within the source for its whole length, or this fails. To be given
	 * back with free(). NULL: the source has no handles. */
	enum xr_status (*adopt)(const struct storage_handle *handle,
		void **data, void **own, struct xr_error *err);
};

/* storage_set_source() - for what is made from now on; NULL: none. It stays for
 * as long as storages of it do. */
void storage_set_source(const struct storage_source *source);
const struct storage_source *storage_source(void);

struct storage {
	_Atomic uint64_t refs;
	void *data; /* an address of the device */
	size_t bytes;
	enum xr_device_kind device_kind;
	int32_t device_index; /* of the CPU: 0 */
	int fd;               /* of a memfd, whose bytes they are; -1 */
	uint64_t fd_offset;   /* of @data in it */

	void (*release)(struct storage *storage); /* NULL: nothing to do */
	xr_free_fn *free_fn;                      /* of what is wrapped */
	void *ctx;
	const struct storage_source *source;
	void (*unref)(void *owner); /* of a message */
	void *own;                  /* the source's, or the message's */
};

/*
 * storage_new() - @len bytes of the source, else of this process.
 * storage_new_shared() - of a memfd of its own, whose size is sealed; else of
 * this process, where there are no descriptors to spare.
 * storage_for_tensor() - the one or the other.
 *
 * The content is undefined. NULL: no memory.
 */
struct storage *storage_new(size_t len);
struct storage *storage_new_shared(size_t len);
struct storage *storage_for_tensor(size_t len);

/* What is there already. */
struct storage_memory {
	void *data;
	size_t bytes;
	enum xr_device_kind device_kind;
	int32_t device_index;
	xr_free_fn *free_fn;
	void *ctx;
};

/* storage_wrap() - memory of the program's. NULL: no memory; nothing is freed. */
struct storage *storage_wrap(const struct storage_memory *memory);

/* storage_within() - bytes of a message, of whose owner it has a reference. NULL:
 * no memory. */
struct storage *storage_within(const struct value_owner *owner, void *data,
	size_t bytes);

/* storage_on_device() - content undefined. XR_E_NODEV: no platform. */
enum xr_status storage_on_device(const struct storage_memory *where,
	struct storage **storage, struct xr_error *err);

/*
 * storage_map() - @bytes at @offset of the memfd @fd, which stays the caller's.
 *
 * Returns  XR_OK; XR_E_DECODE: it is not sealed, too short, or cannot be mapped;
 *          XR_E_NOMEM
 */
enum xr_status storage_map(int fd, uint64_t offset, uint64_t bytes,
	struct storage **storage, struct xr_error *err);

/* storage_adopt() - @bytes that a handle of the source names. XR_E_DECODE: there
 * is no source, or it is none of its handles; XR_E_NOMEM. */
enum xr_status storage_adopt(const struct storage_handle *handle,
	uint64_t bytes, struct storage **storage, struct xr_error *err);

/* storage_handle_of() - false: no other process can find it so. */
bool storage_handle_of(const struct storage *storage,
	struct storage_handle *handle);

/* storage_read() - @len bytes from @at on, to memory of the host. XR_E_NODEV: no
 * platform knows them. */
enum xr_status storage_read(const struct storage *storage, uint64_t at,
	void *out, size_t len, struct xr_error *err);

struct storage *storage_ref(struct storage *storage);
void storage_unref(struct storage *storage); /* NULL is fine */

#endif /* WIRE_VALUE_STORAGE_H */
