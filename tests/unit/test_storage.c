/* SPDX-License-Identifier: Apache-2.0 */
/* test_storage.c - where the memory of tensors and long bytes comes from, and that
 * it goes back there. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/kit/entries.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/value_arena.h"
#include "tests/unit/value_device.h"
#include "tests/unit/value_rig.h"
#include "wire/value/tensor.h"

TestSuite(storage, .init = begin, .fini = end);

static struct xr_error err;

static struct storage *
storage_of(const struct xr_value *tensor)
{
	return tensor_of(tensor)->storage;
}

/* --- memfds ---------------------------------------------------------------- */

Test(storage, small_tensors_cost_no_descriptor_and_large_ones_one)
{
	struct xr_value *small = numbers(1, 1023), *large = numbers(1, 1024);
	struct stat st;
	char *map;
	int fd;

	cr_expect(eq(int, storage_of(small)->fd, -1));
	fd = storage_of(large)->fd;
	cr_assert_neq(fd, -1);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_size, 4096);
	cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(ftruncate(fd, 0), -1, "its size is sealed");
	cr_expect_eq(ftruncate(fd, 8192), -1);
	cr_expect_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	cr_expect_eq(memcmp(map, xr_tensor_data(large, NULL), 4096), 0);
	munmap(map, 4096);
	xr_value_unref(small);
	xr_value_unref(large);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "it goes with the tensor");
}

Test(storage, half_of_the_descriptors_are_left_to_the_program)
{
	struct rlimit limit = { 64, 64 };
	struct xr_value *v[64];
	int shared = 0, fd;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 64; i++) {
		v[i] = numbers(1, 1024);
		cr_assert_not_null(v[i]);
		shared += storage_of(v[i])->fd != -1;
		((char *)xr_tensor_data(v[i], NULL))[4095] = 1;
	}
	cr_expect(eq(int, shared, 32));
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_expect_neq(fd, -1);
	close(fd);
	for (int i = 0; i < 64; i++)
		xr_value_unref(v[i]);
	v[0] = numbers(1, 1024);
	cr_expect_neq(storage_of(v[0])->fd, -1, "they were given back");
	xr_value_unref(v[0]);
}

Test(storage, without_descriptors_memory_is_private)
{
	struct rlimit before, limit;
	struct xr_value *v;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){ 1, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &limit);
	v = numbers(1, 1024);
	setrlimit(RLIMIT_NOFILE, &before);
	cr_assert_not_null(v);
	cr_expect(eq(int, storage_of(v)->fd, -1));
	xr_value_unref(v);
}

/* A memfd of @len bytes, the byte i of which is i / 256. */
static int
memory_fd(size_t len, unsigned seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *map;

	cr_assert_eq(ftruncate(fd, (off_t)len), 0);
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	for (size_t i = 0; i < len; i++)
		map[i] = (char)(i / 256);
	munmap(map, len);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(storage, a_descriptor_is_mapped_from_any_byte_on)
{
	int fd = memory_fd(3 * 4096, F_SEAL_SHRINK);
	struct storage *s = NULL;

	cr_assert_eq(storage_map(fd, 5000, 100, &s, &err), XR_OK);
	cr_expect(eq(sz, s->bytes, 100));
	cr_expect_eq(*(char *)s->data, 5000 / 256);
	cr_expect_neq(s->fd, fd, "it has one of its own");
	cr_expect_neq(s->fd, -1);
	cr_expect_eq(s->fd_offset, 5000);
	storage_unref(s);
	cr_assert_eq(storage_map(fd, 0, (uint64_t)3 * 4096, &s, &err), XR_OK);
	storage_unref(s);
	close(fd);
}

/* Those that one may hold: 32 of 64. */
static int
shares_left(void)
{
	struct rlimit limit = { 64, 64 };
	struct storage *s[64];
	int shared = 0;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 64; i++) {
		s[i] = storage_new_shared(4096);
		cr_assert_not_null(s[i]);
		shared += s[i]->fd != -1;
	}
	for (int i = 0; i < 64; i++)
		storage_unref(s[i]);
	return shared;
}

Test(storage, what_cannot_be_handed_on_is_mapped_all_the_same)
{
	int fd = memory_fd(4096, F_SEAL_SHRINK), next = dup(fd);
	struct storage *s = NULL, *more[32];
	struct rlimit limit;

	cr_assert_neq(next, -1);
	close(next);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)next;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(storage_map(fd, 256, 100, &s, &err), XR_OK, "%s",
			err.text);
		cr_expect_eq(s->fd, -1);
		cr_expect_eq(*(char *)s->data, 1);
		storage_unref(s);
	}
	cr_expect(eq(int, shares_left(), 32));
	/* Nor is it when others have them all. */
	for (int i = 0; i < 32; i++)
		more[i] = storage_new_shared(4096);
	cr_assert_eq(storage_map(fd, 512, 100, &s, &err), XR_OK);
	cr_expect_eq(s->fd, -1);
	cr_expect_eq(*(char *)s->data, 2);
	storage_unref(s);
	for (int i = 0; i < 32; i++)
		storage_unref(more[i]);
	cr_expect(eq(int, shares_left(), 32));
	close(fd);
}

Test(storage, one_of_nothing_has_no_descriptor)
{
	unsigned before = entries("/proc/self/fd");
	struct storage *s = storage_new_shared(0);

	cr_assert_not_null(s);
	cr_expect_eq(s->fd, -1);
	storage_unref(s);
	errno = EINVAL; /* of something else */
	s = storage_new_shared(4096);
	cr_assert_not_null(s);
	cr_expect_neq(s->fd, -1);
	cr_expect(eq(u32, entries("/proc/self/fd"), before + 1));
	storage_unref(s);
	cr_expect(eq(u32, entries("/proc/self/fd"), before));
}

Test(storage, what_could_make_us_fault_is_not_mapped)
{
	int fd = memory_fd(4096, F_SEAL_SHRINK), loose = memory_fd(4096, 0);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int still = memory_fd(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
	struct storage *s = NULL;
	static const struct {
		uint64_t offset, bytes;
	} rows[] = { { 0, 4097 }, { 4096, 1 }, { 4095, 2 }, { 1, 4096 },
		{ 0, 0 }, { UINT64_C(1) << 63, 1 }, { 1, UINT64_C(1) << 63 },
		{ UINT64_MAX, 1 }, { 1, UINT64_MAX } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(storage_map(fd, rows[i].offset, rows[i].bytes, &s,
				     &err),
			XR_E_DECODE, "%zu", i);
	cr_expect_eq(storage_map(loose, 0, 1, &s, &err), XR_E_DECODE);
	cr_expect_str_eq(err.text,
		"value: a descriptor that is no memory of fixed size");
	cr_expect_eq(storage_map(file, 0, 1, &s, &err), XR_E_DECODE);
	cr_expect_eq(storage_map(-1, 0, 1, &s, &err), XR_E_DECODE);
	cr_expect_eq(storage_map(still, 0, 1, &s, &err), XR_E_DECODE);
	cr_expect_null(s);
	close(fd);
	close(loose);
	close(file);
	close(still);
}

/* --- a source -------------------------------------------------------------- */

Test(storage, what_a_source_has_is_taken_from_it_and_given_back)
{
	struct xr_value *tensor, *bytes, *none;
	struct storage_handle handle;
	char data[2000] = { 0 };

	storage_set_source(&arena_source);
	tensor = numbers(8, 8);
	bytes = xr_value_new_bytes(data, sizeof(data));
	none = numbers(0, 8);
	cr_expect(eq(int, arena_held, 3));
	cr_assert(storage_handle_of(storage_of(tensor), &handle));
	cr_expect_eq(arena + handle.offset,
		(char *)xr_tensor_data(tensor, NULL));
	cr_expect_eq(handle.len, 256);
	storage_set_source(NULL);
	cr_expect_not(storage_handle_of(storage_of(tensor), &handle));
	xr_value_unref(tensor);
	xr_value_unref(bytes);
	xr_value_unref(none);
	cr_expect(eq(int, arena_held, 0));
}

Test(storage, what_a_source_has_not_comes_from_elsewhere)
{
	struct storage_handle handle;
	struct xr_value *v;

	storage_set_source(&arena_source);
	v = numbers(1024, 1024);
	cr_assert_not_null(v);
	cr_expect(eq(int, arena_held, 0));
	cr_expect_neq(storage_of(v)->fd, -1);
	cr_expect_not(storage_handle_of(storage_of(v), &handle));
	xr_value_unref(v);
	storage_set_source(NULL);
}

Test(storage, memory_of_the_program_has_a_handle_where_it_lies_in_the_source)
{
	struct xr_tensor_memory memory = { sizeof(memory), arena + 128, 8, NULL,
		NULL };
	struct xr_tensor_desc d = { .size = sizeof(d), .dtype = XR_DT_U8 };
	struct storage_handle handle = { 0 };
	struct xr_value *v = NULL;

	storage_set_source(&arena_source);
	cr_assert_eq(xr_tensor_wrap(&d, &memory, &v, &err), XR_OK);
	cr_expect(storage_handle_of(storage_of(v), &handle));
	cr_expect_eq(handle.offset, 128);
	xr_value_unref(v);
	storage_set_source(NULL);
}

Test(storage, a_handle_is_adopted_if_the_source_knows_it)
{
	struct storage_handle handle = { 64, 32, ARENA_GEN };
	struct storage *s = NULL;

	cr_expect_eq(storage_adopt(&handle, 32, &s, &err), XR_E_DECODE,
		"there is no source");
	storage_set_source(&arena_source);
	cr_expect_eq(storage_adopt(&handle, 33, &s, &err), XR_E_DECODE);
	handle.gen--;
	cr_expect_eq(storage_adopt(&handle, 32, &s, &err), XR_E_DECODE);
	handle.gen++;
	until_short = 1;
	cr_expect_eq(storage_adopt(&handle, 32, &s, &err), XR_E_NOMEM);
	until_short = 0;
	cr_expect_null(s);
	cr_expect(eq(int, arena_held, 0));
	cr_assert_eq(storage_adopt(&handle, 32, &s, &err), XR_OK);
	cr_expect_eq(s->data, arena + 64);
	cr_expect(eq(int, arena_held, 1));
	storage_set_source(NULL);
	storage_unref(s);
	cr_expect(eq(int, arena_held, 0));
}

Test(storage, a_source_that_adopts_nothing_refuses_each_handle)
{
	const struct storage_source source = {
		.alloc = arena_alloc,
		.free = arena_free,
	};
	struct storage_handle handle = { 64, 32, ARENA_GEN };
	struct storage *s = NULL;

	storage_set_source(&source);
	cr_expect_eq(storage_adopt(&handle, 32, &s, &err), XR_E_DECODE);
	cr_expect_null(s);
	storage_set_source(NULL);
}

static size_t asked_of_source;

static void *
note_alloc(size_t len, void **own)
{
	asked_of_source = len;
	*own = &arena_held;
	arena_held++;
	return arena;
}

/* One byte more than a value may have: text has a 0 behind it. */
Test(storage, a_source_is_asked_for_the_longest_text_and_for_no_more)
{
	const struct storage_source source = {
		.alloc = note_alloc,
		.free = arena_free,
	};
	const size_t most = (size_t)XR_VALUE_BYTES_MAX + 1;
	struct storage *s;

	storage_set_source(&source);
	s = storage_new(most);
	cr_assert_not_null(s);
	cr_expect(eq(sz, s->bytes, most));
	cr_expect(eq(sz, asked_of_source, most));
	storage_unref(s);
	cr_expect(eq(int, arena_held, 0));
	asked_of_source = 0;
	cr_expect_null(storage_new(most + 1));
	cr_expect(eq(sz, asked_of_source, 0));
	storage_set_source(NULL);
}

Test(storage, a_source_loses_nothing_when_memory_is_short)
{
	struct xr_value *v;

	storage_set_source(&arena_source);
	until_short = 1;
	v = numbers(1, 1);
	cr_expect_not_null(v, "there is other memory");
	xr_value_unref(v);
	cr_expect(was_short);
	cr_expect(eq(int, arena_held, 0));
	storage_set_source(NULL);
}

/* --- devices --------------------------------------------------------------- */

Test(storage, each_kind_of_device_has_a_name_and_one_platform)
{
	cr_expect_str_eq(device_kind_name(XR_DEVICE_CPU), "cpu");
	cr_expect_str_eq(device_kind_name(XR_DEVICE_NEURON), "neuron");
	cr_expect_null(device_kind_name((enum xr_device_kind)6));
	cr_expect_null(device_ops_of(XR_DEVICE_FAKE));
	cr_expect_null(device_ops_of((enum xr_device_kind)6));
	cr_expect_eq(device_set_ops(XR_DEVICE_CPU, &device_ops), XR_E_INVAL);
	cr_expect_eq(device_set_ops((enum xr_device_kind)6, &device_ops),
		XR_E_INVAL);
	cr_expect_eq(device_set_ops(XR_DEVICE_FAKE, NULL), XR_E_INVAL);
	cr_expect_eq(device_set_ops(XR_DEVICE_FAKE, &device_ops), XR_OK);
	cr_expect_eq(device_set_ops(XR_DEVICE_FAKE, &device_ops), XR_E_EXISTS);
	cr_expect_eq(device_ops_of(XR_DEVICE_FAKE), &device_ops);
	cr_expect_null(device_ops_of(XR_DEVICE_TPU));
}

static struct xr_tensor_desc
on_fake(int32_t index, int64_t count)
{
	return (struct xr_tensor_desc){
		.size = sizeof(struct xr_tensor_desc),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.device_kind = XR_DEVICE_FAKE,
		.device_index = index,
		.shape = { count },
		.strides = { 1 },
	};
}

Test(storage, a_tensor_of_a_device_lies_there)
{
	struct xr_tensor_desc d = on_fake(1, 10), got = { .size = sizeof(got) };
	struct xr_value *v = NULL, *part = NULL;

	device_set_ops(XR_DEVICE_FAKE, &device_ops);
	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK);
	cr_expect(eq(int, device_blocks, 1));
	cr_assert_eq(xr_tensor_desc(v, &got), XR_OK);
	cr_expect_eq(got.device_kind, XR_DEVICE_FAKE);
	cr_expect_eq(got.device_index, 1);
	d.shape[0] = 3;
	d.offset = 2;
	cr_assert_eq(xr_tensor_view(v, &d, &part, &err), XR_OK);
	cr_expect(xr_tensor_same(v, part));
	xr_value_unref(v);
	cr_expect(eq(int, device_blocks, 1));
	xr_value_unref(part);
	cr_expect(eq(int, device_blocks, 0));
	d = on_fake(0, 3);
	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK);
	d.device_index = 1;
	cr_expect_eq(xr_tensor_view(v, &d, &part, &err), XR_E_INVAL,
		"its storage is on another");
	xr_value_unref(v);
	d = on_fake(1, 0);
	cr_assert_eq(xr_tensor_new(&d, &v, &err), XR_OK);
	xr_value_unref(v);
	cr_expect(eq(int, device_blocks, 0));
}

Test(storage, what_a_device_says_is_passed_on)
{
	struct xr_tensor_desc d = on_fake(2, 10);
	struct xr_value *v = NULL;

	device_set_ops(XR_DEVICE_FAKE, &device_ops);
	cr_expect_eq(xr_tensor_new(&d, &v, &err), XR_E_NODEV);
	cr_expect_str_eq(err.text, "fake:2 is not there");
	d.device_index = 0;
	device_broken = true;
	cr_expect_eq(xr_tensor_new(&d, &v, &err), XR_E_DEVICE);
	device_broken = false;
	until_short = 2;
	cr_expect_eq(xr_tensor_new(&d, &v, &err), XR_E_NOMEM);
	until_short = 3;
	cr_expect_eq(xr_tensor_new(&d, &v, &err), XR_E_NOMEM);
	until_short = 0;
	cr_expect_null(v);
	cr_expect(eq(int, device_blocks, 0));
}

Test(storage, elements_of_a_device_are_read_by_its_platform)
{
	struct xr_tensor_desc d = on_fake(0, 10), odd = on_fake(0, 5);
	struct xr_value *a = NULL, *b = NULL, *c = NULL;
	static char here[] = { 0, 7, 0, 0, 0 };
	struct xr_tensor_memory memory = { sizeof(memory), here, 5, NULL,
		NULL };

	device_set_ops(XR_DEVICE_FAKE, &device_ops);
	cr_assert_eq(xr_tensor_new(&d, &a, &err), XR_OK);
	((char *)near(xr_tensor_data(a, NULL)))[3] = 7;
	odd.strides[0] = 2;
	odd.offset = 1;
	cr_assert_eq(xr_tensor_view(a, &odd, &b, &err), XR_OK);
	odd.strides[0] = 1;
	odd.offset = 0;
	odd.device_kind = XR_DEVICE_CPU;
	cr_assert_eq(xr_tensor_wrap(&odd, &memory, &c, &err), XR_OK);
	cr_expect(xr_value_equal(b, c));
	cr_expect(gt(int, device_copies, 0));
	here[1] = 8;
	cr_expect_not(xr_value_equal(b, c));
	here[1] = 7;
	device_broken = true;
	cr_expect_not(xr_value_equal(b, c));
	cr_expect_not(xr_value_equal(c, b));
	device_broken = false;
	until_short = 1;
	cr_expect_not(xr_value_equal(b, c));
	until_short = 0;
	xr_value_unref(a);
	xr_value_unref(b);
	xr_value_unref(c);
}

Test(storage, without_a_platform_a_tensor_is_wrapped_and_never_read)
{
	struct xr_tensor_desc d = on_fake(0, 10);
	struct xr_tensor_memory memory = { sizeof(memory),
		(void *)(uintptr_t)FAR, 10, count_free, &one };
	struct xr_value *a = NULL, *b = NULL;

	cr_assert_eq(xr_tensor_wrap(&d, &memory, &a, &err), XR_OK);
	cr_assert_eq(xr_tensor_view(a, &d, &b, &err), XR_OK);
	cr_expect(xr_value_equal(a, b), "the same view of the same");
	xr_value_unref(b);
	d.offset = 1;
	d.shape[0] = 9;
	cr_assert_eq(xr_tensor_view(a, &d, &b, &err), XR_OK);
	xr_value_unref(a);
	d.offset = 0;
	cr_assert_eq(xr_tensor_view(b, &d, &a, &err), XR_OK);
	cr_expect_not(xr_value_equal(a, b));
	xr_value_unref(a);
	xr_value_unref(b);
	cr_expect(eq(int, freed, 1));
}
