/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - fuzz target: messages of values.
 *
 * Input: a letter, then bytes. "m": they are a message; "w": one, whose header is
 * put right first, so that more of it is reached; "v": a value, which gets a header
 * without buffers; "b": a number of buffers up to 4, for each where it is, what it
 * is, its device, and its length in two bytes, then a value; the buffers are filled
 * with letters.
 *
 * There is a memfd to refer to, memory of a source that has handles, a device, a
 * type, and references that are their 64 bytes.
 *
 * Claims: a refusal has words; what was read is written again as the same head, for
 * there is one way to write a value; cut into parts it is the same, and read where
 * it lies, and handed over by descriptors and handles; with less to be made than it
 * needs it is refused; and nothing of it stays.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <xrun/value.h>

#include "base/crc32c.h"
#include "tests/fuzz/fuzz.h"
#include "wire/value/device_ops.h"
#include "wire/value/format.h"
#include "wire/value/storage.h"
#include "wire/value/value_hooks.h"

#define BUFFERS 4
#define MEMFD   8192 /* bytes */

static int living; /* objects, references, device memory, holders of a body */
static int memfd = -1;

/* --- what values refer to -------------------------------------------------- */

struct xr_rref {
	int refs;
	uint8_t bytes[VALUE_RREF_BYTES];
};

static struct xr_rref *
rref_ref(struct xr_rref *rref)
{
	rref->refs++;
	return rref;
}

static void
rref_unref(struct xr_rref *rref)
{
	if (--rref->refs > 0)
		return;
	free(rref);
	living--;
}

static bool
rref_equal(const struct xr_rref *a, const struct xr_rref *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static const struct value_rref_ops rref_ops = { rref_ref, rref_unref,
	rref_equal };

static enum xr_status
pack(void *ctx, struct xr_rref *rref, uint8_t out[VALUE_RREF_BYTES],
	struct xr_error *err)
{
	(void)ctx, (void)err;
	memcpy(out, rref->bytes, VALUE_RREF_BYTES);
	return XR_OK;
}

static enum xr_status
unpack(void *ctx, const uint8_t in[VALUE_RREF_BYTES], struct xr_rref **rref,
	struct xr_error *err)
{
	(void)ctx;
	if (in[0] == 'x')
		return fail(err, XR_E_DECODE, "nobody's reference");
	*rref = malloc(sizeof(**rref));
	HOLDS(*rref != NULL);
	(*rref)->refs = 1;
	memcpy((*rref)->bytes, in, VALUE_RREF_BYTES);
	living++;
	return XR_OK;
}

static const struct value_codec_ctx codec = { .rref_pack = pack,
	.rref_unpack = unpack };

/* An object is its bytes, with their length in front. */
static struct xr_value *
object_encode(void *object, void *ctx)
{
	size_t len;

	(void)ctx;
	memcpy(&len, object, sizeof(len));
	return xr_value_new_bytes((char *)object + sizeof(len), len);
}

static void *
object_decode(const void *data, size_t len, void *ctx)
{
	char *object;

	(void)ctx;
	if (len > 0 && *(const char *)data == '!')
		return NULL;
	object = malloc(sizeof(len) + len);
	HOLDS(object != NULL);
	memcpy(object, &len, sizeof(len));
	if (len > 0)
		memcpy(object + sizeof(len), data, len);
	living++;
	return object;
}

static void
object_free(void *object, void *ctx)
{
	(void)ctx;
	free(object);
	living--;
}

static enum xr_status
device_alloc(void *ctx, struct device_memory *memory, struct xr_error *err)
{
	(void)ctx;
	if (memory->index > 7)
		return fail(err, XR_E_NODEV, "no such device");
	memory->data = aligned_alloc(STORAGE_ALIGN, format_align(memory->len));
	HOLDS(memory->data != NULL);
	living++;
	return XR_OK;
}

static void
device_free(void *ctx, const struct device_memory *memory)
{
	(void)ctx;
	free(memory->data);
	living--;
}

static enum xr_status
device_to_host(void *ctx, void *host, const struct device_memory *from,
	struct xr_error *err)
{
	(void)ctx, (void)err;
	memcpy(host, from->data, from->len);
	return XR_OK;
}

static enum xr_status
device_from_host(void *ctx, const void *host, const struct device_memory *to,
	struct xr_error *err)
{
	(void)ctx, (void)err;
	memcpy(to->data, host, to->len);
	return XR_OK;
}

static const struct device_ops device = { NULL, NULL, device_alloc, device_free,
	device_to_host, device_from_host };

/* --- a source: one block ---------------------------------------------------- */

static _Alignas(STORAGE_ALIGN) char block[4096];

static void *
no_block(size_t len, void **own)
{
	(void)len, (void)own;
	return NULL;
}

static void
block_free(void *data, void *own)
{
	(void)data, (void)own;
	living--;
}

static bool
block_handle(const void *data, size_t len, struct storage_handle *handle)
{
	uintptr_t at = (uintptr_t)data - (uintptr_t)block;

	if (at > sizeof(block) || len > sizeof(block) - at)
		return false;
	*handle = (struct storage_handle){ at, len, 0 };
	return true;
}

static enum xr_status
block_adopt(const struct storage_handle *handle, void **data, void **own,
	struct xr_error *err)
{
	(void)own;
	if (handle->offset % 64 != 0 || handle->offset > sizeof(block) ||
		handle->len > sizeof(block) - handle->offset ||
		handle->gen != 0)
		return fail(err, XR_E_DECODE, "no such block");
	*data = block + handle->offset;
	living++;
	return XR_OK;
}

static const struct storage_source source = { no_block, block_free,
	block_handle, block_adopt };

static void
set_up(void)
{
	static const struct xr_type type = {
		.size = sizeof(type),
		.name = "t",
		.encode = object_encode,
		.decode = object_decode,
		.free = object_free,
	};

	if (memfd != -1)
		return;
	memfd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	HOLDS(memfd != -1 && ftruncate(memfd, MEMFD) == 0);
	HOLDS(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	HOLDS(xr_type_register(&type, NULL) == XR_OK);
	HOLDS(device_set_ops(XR_DEVICE_FAKE, &device) == XR_OK);
	value_set_rref_ops(&rref_ops);
	storage_set_source(&source);
}

/* --- reading and writing --------------------------------------------------- */

struct message {
	uint8_t *data;
	size_t len;
};

static enum xr_status
read_as(const struct value_reader *how, struct xr_value **v)
{
	struct xr_error err = { 0 };
	enum xr_status status = value_decode(how, v, &err);

	fuzz_error(status, &err);
	HOLDS(status == XR_OK || status == XR_E_DECODE ||
		status == XR_E_RANGE || status == XR_E_VERSION ||
		status == XR_E_NODEV || status == XR_E_NOMEM);
	return status;
}

/* In up to three parts, cut at @a and @b. */
static enum xr_status
read_parts(struct message m, size_t a, size_t b, struct xr_value **v)
{
	struct xr_part parts[] = { { m.data, a }, { m.data + a, b - a },
		{ m.data + b, m.len - b } };
	struct value_reader how = {
		.parts = parts,
		.count = 3,
		.fds = &memfd,
		.fd_count = 1,
		.ctx = &codec,
	};

	return read_as(&how, v);
}

static struct message
written(struct xr_value *v, const struct value_encoding *how)
{
	struct xr_encoded *e = NULL;
	struct message m = { 0 };
	const struct xr_part *parts;
	size_t count;

	HOLDS(value_encode(v, how, &e, NULL) == XR_OK);
	parts = xr_encoded_parts(e, &count);
	for (size_t i = 0; i < count; i++)
		m.len += parts[i].len;
	m.data = aligned_alloc(FORMAT_ALIGN, format_align(m.len));
	HOLDS(m.data != NULL);
	m.len = 0;
	for (size_t i = 0; i < count; i++) {
		memcpy(m.data + m.len, parts[i].data, parts[i].len);
		m.len += parts[i].len;
	}
	xr_encoded_free(e);
	return m;
}

/* --- claims ---------------------------------------------------------------- */

/* Is a buffer so large that not all of it need be written, or in another place
 * than the message? */
static bool
may_differ(struct message m)
{
	uint32_t count = format_get32(m.data + FORMAT_AT_BUFFERS);

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *p =
			m.data + FORMAT_HEADER + (size_t)i * FORMAT_ENTRY;

		if (p[0] != FORMAT_HERE || format_get64(p + 8) >= FORMAT_LARGE)
			return true;
	}
	return false;
}

static void
check_written(struct message m, struct xr_value *v)
{
	const struct value_encoding how = {
		.ctx = &codec,
		.checksum = (m.data[FORMAT_AT_FLAGS] & FORMAT_SUMMED) != 0,
	};
	struct message again = written(v, &how);
	struct xr_value *back = NULL;

	HOLDS(read_parts(again, 0, 0, &back) == XR_OK);
	HOLDS(xr_value_equal(v, back));
	if (!may_differ(m)) {
		HOLDS(again.len == m.len);
		HOLDS(memcmp(again.data, m.data,
			      format_get32(m.data + FORMAT_AT_HEAD)) == 0);
	}
	xr_value_unref(back);
	free(again.data);
}

static void
check_handed_over(struct xr_value *v)
{
	const struct value_encoding how = {
		.ctx = &codec,
		.mode = VALUE_HANDOVER,
	};
	struct xr_encoded *e = NULL;
	struct xr_value *back = NULL;
	struct value_reader reader = { .ctx = &codec };

	HOLDS(value_encode(v, &how, &e, NULL) == XR_OK);
	reader.parts = xr_encoded_parts(e, &reader.count);
	reader.fds = xr_encoded_fds(e, &reader.fd_count);
	HOLDS(read_as(&reader, &back) == XR_OK);
	HOLDS(xr_value_equal(v, back));
	xr_value_unref(back);
	xr_encoded_free(e);
}

static void
body_ref(void *owner)
{
	++*(int *)owner;
}

static void
body_unref(void *owner)
{
	--*(int *)owner;
}

static void
check_in_place(struct message m, struct xr_value *v)
{
	const struct value_owner owner = { &living, body_ref, body_unref,
		(m.len & 1) != 0 };
	struct xr_part part = { m.data, m.len };
	const struct value_reader how = {
		.parts = &part,
		.count = 1,
		.fds = &memfd,
		.fd_count = 1,
		.ctx = &codec,
		.owner = &owner,
	};
	struct xr_value *back = NULL;

	HOLDS(read_as(&how, &back) == XR_OK);
	HOLDS(xr_value_equal(v, back));
	xr_value_unref(back);
}

static void
check_limit(struct message m)
{
	struct xr_part part = { m.data, m.len };
	struct value_reader how = {
		.parts = &part,
		.count = 1,
		.fds = &memfd,
		.fd_count = 1,
		.ctx = &codec,
		.bytes_max = 1,
	};
	struct xr_value *v = NULL;

	HOLDS(read_as(&how, &v) != XR_OK);
	HOLDS(v == NULL);
}

static void
check_message(struct message m)
{
	struct xr_value *v = NULL, *cut = NULL;
	enum xr_status status = read_parts(m, 0, 0, &v);

	HOLDS(read_parts(m, m.len / 3, m.len / 2, &cut) == status);
	HOLDS((v != NULL) == (status == XR_OK));
	HOLDS((cut != NULL) == (status == XR_OK));
	if (status == XR_OK) {
		HOLDS(xr_value_equal(v, cut));
		check_written(m, v);
		check_handed_over(v);
		check_in_place(m, v);
		check_limit(m);
	}
	xr_value_unref(v);
	xr_value_unref(cut);
	HOLDS(living == 0);
}

/* --- inputs ---------------------------------------------------------------- */

/* All that a header says of lengths, and its sum. */
static void
put_right(struct message m)
{
	uint8_t *p = m.data;
	uint16_t flags = format_get16(p + FORMAT_AT_FLAGS);

	memcpy(p, FORMAT_MAGIC, 4);
	format_put16(p + FORMAT_AT_VERSION, FORMAT_VERSION);
	format_put16(p + FORMAT_AT_FLAGS,
		flags & (FORMAT_SHARED | FORMAT_SUMMED));
	format_put64(p + FORMAT_AT_TOTAL, m.len);
	if (format_get32(p + FORMAT_AT_HEAD) > m.len)
		format_put32(p + FORMAT_AT_HEAD, (uint32_t)m.len);
	format_put32(p + FORMAT_AT_SUM, 0);
	format_put32(p + FORMAT_AT_ZERO, 0);
	if ((flags & FORMAT_SUMMED) != 0)
		format_put32(p + FORMAT_AT_SUM,
			crc32c(0, p, format_get32(p + FORMAT_AT_HEAD)));
}

static void
put_entry(uint8_t *p, const uint8_t *in)
{
	memset(p, 0, FORMAT_ENTRY);
	p[0] = in[0];
	p[1] = in[1];
	p[2] = in[2] / 16;
	format_put32(p + 4, in[2] % 16);
	format_put64(p + 8, (uint64_t)in[3] << 8 | in[4]);
	/* A descriptor or a handle of all there is, as the place has it. */
	if (in[0] == FORMAT_HANDLE)
		format_put64(p + 24, sizeof(block));
}

/* A value behind a table of @count buffers, and what they hold. */
static void
check_value(const uint8_t *in, size_t len, size_t count)
{
	size_t head = FORMAT_HEADER + count * FORMAT_ENTRY + len - 5 * count;
	size_t total = head;
	bool shared = false;
	struct message m;

	for (size_t i = 0; i < count; i++) {
		size_t n = (size_t)in[5 * i + 3] << 8 | in[5 * i + 4];

		shared = shared || in[5 * i] != FORMAT_HERE;
		if (in[5 * i] == FORMAT_HERE && n > 0)
			total = format_align(total) + n;
	}
	m.len = total;
	m.data = aligned_alloc(FORMAT_ALIGN, format_align(total));
	HOLDS(m.data != NULL);
	memset(m.data, 'x', total);
	memset(m.data, 0, FORMAT_HEADER);
	format_put32(m.data + FORMAT_AT_HEAD, (uint32_t)head);
	format_put32(m.data + FORMAT_AT_BUFFERS, (uint32_t)count);
	format_put16(m.data + FORMAT_AT_FLAGS, shared ? FORMAT_SHARED : 0);
	for (size_t i = 0; i < count; i++)
		put_entry(m.data + FORMAT_HEADER + i * FORMAT_ENTRY,
			in + 5 * i);
	memcpy(m.data + head - (len - 5 * count), in + 5 * count,
		len - 5 * count);
	put_right(m);
	check_message(m);
	free(m.data);
}

/* Bytes as they came, in memory of just their size. */
static void
check_bytes(const uint8_t *in, size_t len, bool right)
{
	struct message m = { aligned_alloc(FORMAT_ALIGN, format_align(len + 1)),
		len };
	uint8_t *exact = malloc(len + 1);

	HOLDS(m.data != NULL && exact != NULL);
	exact = realloc(exact, len > 0 ? len : 1);
	memcpy(m.data, in, len);
	if (right && len >= FORMAT_HEADER)
		put_right(m);
	memcpy(exact, m.data, len);
	free(m.data);
	m.data = exact;
	check_message(m);
	free(exact);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	set_up();
	if (size < 2)
		return 0;
	switch (data[0]) {
	case 'm':
	case 'w':
		check_bytes(data + 1, size - 1, data[0] == 'w');
		break;
	case 'v':
		check_value(data + 1, size - 1, 0);
		break;
	case 'b':
		if (data[1] <= BUFFERS && size - 2 >= 5 * (size_t)data[1])
			check_value(data + 2, size - 2, data[1]);
		break;
	}
	return 0;
}
