/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_fd.c - see storage.h: storages that are memfds.
 *
 * The size of a memfd is sealed, so that nobody who has it can make a mapping of
 * it fault. Each costs a descriptor for as long as it lives; a program that has
 * many tensors is to keep some for itself, so that half of what it may have is
 * the most that go into them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/status.h"
#include "wire/value/storage.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

static _Atomic uint64_t open_count;

/* One descriptor more? */
static bool
take_share(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
		return false;
	if (atomic_fetch_add(&open_count, 1) < limit.rlim_cur / 2)
		return true;
	atomic_fetch_sub(&open_count, 1);
	return false;
}

static void
give_share(int fd)
{
	if (fd == -1)
		return;
	fd_close(fd);
	atomic_fetch_sub(&open_count, 1);
}

static uintptr_t
page_of(const void *data)
{
	return (uintptr_t)data & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* A mapping begins at a page. */
static void
release_map(struct storage *s)
{
	uintptr_t begin = page_of(s->data);

	munmap((void *)begin, (uintptr_t)s->data - begin + s->bytes);
	give_share(s->fd);
}

/* The storage of a mapping: it owns @fd, unless it fails. */
static struct storage *
wrap_map(char *data, size_t bytes, int fd, uint64_t offset)
{
	struct storage_memory memory = { .data = data, .bytes = bytes };
	struct storage *s = storage_wrap(&memory);
	uintptr_t begin = page_of(data);

	if (s == NULL) {
		munmap((void *)begin, (uintptr_t)data - begin + bytes);
		return NULL;
	}
	s->fd = fd;
	s->fd_offset = offset;
	s->release = release_map;
	return s;
}

/* --- making one ------------------------------------------------------------ */

static int
open_sealed(size_t len)
{
	int fd = memfd_create("xrun-tensor",
		MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd == -1 && errno == EINVAL)
		fd = memfd_create("xrun-tensor",
			MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1 ||
		(ftruncate(fd, (off_t)len) == 0 &&
			fcntl(fd, F_ADD_SEALS,
				F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ==
				0))
		return fd;
	fd_close(fd);
	return -1;
}

/* -1: there is none to spare. */
static int
open_share(size_t len)
{
	int fd;

	if (!take_share())
		return -1;
	fd = open_sealed(len);
	if (fd == -1)
		atomic_fetch_sub(&open_count, 1);
	return fd;
}

struct storage *
storage_new_shared(size_t len)
{
	int fd = len == 0 || len > XR_VALUE_BYTES_MAX ? -1 : open_share(len);
	struct storage *s = NULL;
	void *data = MAP_FAILED;

	if (fd != -1)
		data = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (data != MAP_FAILED)
		s = wrap_map(data, len, fd, 0);
	if (s == NULL)
		give_share(fd);
	return s != NULL ? s : storage_new(len);
}

/* --- mapping somebody's ---------------------------------------------------- */

/* Does @fd have the bytes, now and for ever? */
static enum xr_status
check_fd(int fd, uint64_t offset, uint64_t bytes, struct xr_error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	uint64_t end;
	struct stat st;

	if (seals == -1 || (seals & F_SEAL_SHRINK) == 0)
		return fail(err, XR_E_DECODE,
			"value: a descriptor that is no memory of fixed size");
	if (fstat(fd, &st) == -1)
		return fail(err, XR_E_DECODE, "value: a descriptor: %s",
			strerror(errno));
	if (bytes == 0 || __builtin_add_overflow(offset, bytes, &end) ||
		end > (uint64_t)st.st_size)
		return fail(err, XR_E_DECODE,
			"value: bytes that the memory of a descriptor has not");
	return XR_OK;
}

/* A descriptor to hand the memory on with; -1: there is none to spare, and the
 * mapping stays all the same. */
static int
share_fd(int fd)
{
	int own;

	if (!take_share())
		return -1;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own == -1)
		atomic_fetch_sub(&open_count, 1);
	return own;
}

enum xr_status
storage_map(int fd, uint64_t offset, uint64_t bytes, struct storage **storage,
	struct xr_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), into = offset % page;
	enum xr_status status = check_fd(fd, offset, bytes, err);
	void *map;
	int own;

	if (status != XR_OK)
		return status;
	map = mmap(NULL, bytes + into, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		(off_t)(offset - into));
	if (map == MAP_FAILED)
		return fail(err, errno == ENOMEM ? XR_E_NOMEM : XR_E_DECODE,
			"value: memory of a descriptor: %s", strerror(errno));
	own = share_fd(fd);
	*storage = wrap_map((char *)map + into, bytes, own, offset);
	if (*storage != NULL)
		return XR_OK;
	give_share(own);
	return fail(err, XR_E_NOMEM, "value: out of memory");
}
