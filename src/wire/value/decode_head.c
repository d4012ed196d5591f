/* SPDX-License-Identifier: Apache-2.0 */
/* decode_head.c - see decode.h: what stands before the value, and the parts that a
 * message came in. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "wire/value/decode.h"
#include "wire/value/device_ops.h"

/* --- parts ----------------------------------------------------------------- */

bool
parts_total(const struct value_reader *r, uint64_t *total)
{
	*total = 0;
	for (size_t i = 0; i < r->count; i++)
		if (__builtin_add_overflow(*total, r->parts[i].len, total))
			return false;
	return true;
}

/* The part that has the byte @at, which is there. */
static const struct xr_part *
seek(struct decoder *d, uint64_t at)
{
	const struct xr_part *p;

	if (at < d->part_at)
		d->part = d->part_at = 0;
	p = &d->r->parts[d->part];
	while (at - d->part_at >= p->len) {
		d->part_at += p->len;
		d->part++;
		p++;
	}
	return p;
}

const void *
parts_at(struct decoder *d, uint64_t at, uint64_t len)
{
	const struct xr_part *p = seek(d, at);

	at -= d->part_at;
	return len <= p->len - at ? (const char *)p->data + at : NULL;
}

void
parts_copy(struct decoder *d, uint64_t at, void *out, uint64_t len)
{
	char *to = out;

	while (len > 0) {
		const struct xr_part *p = seek(d, at);
		uint64_t into = at - d->part_at, n = p->len - into;

		if (n > len)
			n = len;
		memcpy(to, (const char *)p->data + into, n);
		to += n;
		at += n;
		len -= n;
	}
}

/* --- the header ------------------------------------------------------------ */

static enum xr_status
check_version(struct decoder *d)
{
	uint16_t version = format_get16(d->head + FORMAT_AT_VERSION);

	if (memcmp(d->head, FORMAT_MAGIC, 4) != 0)
		return fail(d->err, XR_E_DECODE, "value: no message of values");
	if (version == (uint16_t)(FORMAT_VERSION << 8))
		return fail(d->err, XR_E_DECODE,
			"value: a message with its numbers the other way round (big-endian)");
	if (version != FORMAT_VERSION)
		return fail(d->err, XR_E_VERSION,
			"value: a message of version %u, and this libxrun reads %d",
			version, FORMAT_VERSION);
	return XR_OK;
}

/* Lengths, of which none is believed. */
static enum xr_status
check_lengths(struct decoder *d, uint64_t there)
{
	uint32_t head = format_get32(d->head + FORMAT_AT_HEAD);
	uint16_t flags = format_get16(d->head + FORMAT_AT_FLAGS);

	d->total = format_get64(d->head + FORMAT_AT_TOTAL);
	d->count = format_get32(d->head + FORMAT_AT_BUFFERS);
	if (d->total != there)
		return fail(d->err, XR_E_DECODE,
			"value: %" PRIu64 " bytes of a message of %" PRIu64,
			there, d->total);
	if ((flags & ~(FORMAT_SHARED | FORMAT_SUMMED)) != 0 ||
		format_get32(d->head + FORMAT_AT_ZERO) != 0)
		return fail(d->err, XR_E_DECODE,
			"value: flags %#x that nobody knows", flags);
	if (head < FORMAT_HEADER || head > there)
		return fail(d->err, XR_E_DECODE,
			"value: a head of %" PRIu32 " bytes in %" PRIu64, head,
			there);
	if (d->count > (head - FORMAT_HEADER) / FORMAT_ENTRY)
		return fail(d->err, XR_E_DECODE,
			"value: %" PRIu32 " buffers in a head of %" PRIu32
			" bytes",
			d->count, head);
	if (head > FORMAT_HEAD_MAX)
		return fail(d->err, XR_E_RANGE,
			"value: a head of %" PRIu32 " bytes, at most %d", head,
			FORMAT_HEAD_MAX);
	d->len = head;
	return XR_OK;
}

static enum xr_status
copy_head(struct decoder *d)
{
	uint8_t *head = d->first;

	if (d->len > sizeof(d->first)) {
		if (decode_spend(d, d->len) != XR_OK)
			return XR_E_RANGE;
		d->own = malloc(d->len);
		if (d->own == NULL)
			return decode_no_memory(d);
		head = d->own;
		memcpy(head, d->first, FORMAT_HEADER);
	}
	parts_copy(d, FORMAT_HEADER, head + FORMAT_HEADER,
		d->len - FORMAT_HEADER);
	d->head = head;
	return XR_OK;
}

/* With the sum's own field as 0. */
static uint32_t
sum_of(const uint8_t *head, size_t len)
{
	static const uint8_t zero[4];
	uint32_t sum = crc32c(0, head, FORMAT_AT_SUM);

	sum = crc32c(sum, zero, sizeof(zero));
	return crc32c(sum, head + FORMAT_AT_SUM + 4, len - FORMAT_AT_SUM - 4);
}

static enum xr_status
check_sum(struct decoder *d)
{
	uint32_t sum = format_get32(d->head + FORMAT_AT_SUM), want = 0;

	if ((format_get16(d->head + FORMAT_AT_FLAGS) & FORMAT_SUMMED) != 0)
		want = sum_of(d->head, d->len);
	return sum == want ?
		XR_OK :
		fail(d->err, XR_E_DECODE,
			"value: its sum is %08" PRIx32 ", not %08" PRIx32, want,
			sum);
}

/* --- the table ------------------------------------------------------------- */

static bool
is_zero(const uint64_t *word, int from)
{
	for (int i = from; i < 3; i++)
		if (word[i] != 0)
			return false;
	return true;
}

static enum xr_status
check_device(struct decoder *d, const struct decode_buffer *b)
{
	bool cpu = b->device_kind == XR_DEVICE_CPU;

	if (device_kind_name((enum xr_device_kind)b->device_kind) == NULL)
		return DECODE_BAD(d, "no device has number %u", b->device_kind);
	if (b->device_index < 0 || (cpu && b->device_index != 0))
		return DECODE_BAD(d, "no device has index %" PRId32,
			b->device_index);
	if (!cpu && (b->use != FORMAT_TENSOR || b->place != FORMAT_HERE))
		return DECODE_BAD(d, "a buffer that cannot be on a device");
	return XR_OK;
}

/* What is in the message lies behind what came before, at *@end. */
static enum xr_status
check_place(struct decoder *d, struct decode_buffer *b, uint64_t *end)
{
	switch (b->place) {
	case FORMAT_HERE:
		b->at = b->len > 0 ? format_align(*end) : *end;
		if (!is_zero(b->word, 0) || b->at > d->total ||
			b->len > d->total - b->at)
			return DECODE_BAD(d,
				"a buffer of %" PRIu64
				" bytes that are not there",
				b->len);
		*end = b->at + b->len;
		return XR_OK;
	case FORMAT_FD:
		if (b->word[0] >= d->r->fd_count || !is_zero(b->word, 2))
			return DECODE_BAD(d,
				"descriptor %" PRIu64 " of %zu that came",
				b->word[0], d->r->fd_count);
		break;
	case FORMAT_HANDLE:
		break;
	case FORMAT_LOAN:
		if (d->r->owner == NULL || d->r->ctx == NULL ||
			d->r->ctx->borrow == NULL || !is_zero(b->word, 1))
			return DECODE_BAD(d,
				"loan %" PRIu64 ": nothing was lent",
				b->word[0]);
		break;
	default:
		return DECODE_BAD(d, "a buffer in no place (%u)", b->place);
	}
	if (b->use == FORMAT_TEXT || b->len == 0)
		return DECODE_BAD(d, "a buffer that is not shared");
	return XR_OK;
}

static enum xr_status
read_entry(struct decoder *d, struct decode_buffer *b, uint64_t *end)
{
	const uint8_t *p = d->head + d->at;
	enum xr_status status;

	*b = (struct decode_buffer){
		.place = p[0],
		.use = p[1],
		.device_kind = p[2],
		.device_index = (int32_t)format_get32(p + 4),
		.len = format_get64(p + 8),
	};
	for (int i = 0; i < 3; i++)
		b->word[i] = format_get64(p + 16 + 8 * i);
	if (b->use < FORMAT_BYTES || b->use > FORMAT_OBJECT || p[3] != 0)
		return DECODE_BAD(d, "a buffer of no use (%u)", b->use);
	if (b->use != FORMAT_TENSOR && b->len < VALUE_LONG)
		return DECODE_BAD(d, "a buffer of %" PRIu64 " bytes", b->len);
	if (b->len > XR_VALUE_BYTES_MAX)
		return DECODE_BAD(d, "a buffer of %" PRIu64 " bytes", b->len);
	status = check_device(d, b);
	if (status == XR_OK)
		status = check_place(d, b, end);
	if (status == XR_OK)
		d->at += FORMAT_ENTRY;
	return status;
}

static enum xr_status
read_table(struct decoder *d)
{
	bool shared = false;
	uint64_t end = d->len;
	enum xr_status status;

	d->at = FORMAT_HEADER;
	if (d->count > 0) {
		status = decode_spend(d,
			(uint64_t)d->count * sizeof(*d->buffers));
		if (status != XR_OK)
			return status;
		d->buffers = calloc(d->count, sizeof(*d->buffers));
		if (d->buffers == NULL)
			return decode_no_memory(d);
	}
	for (uint32_t i = 0; i < d->count; i++) {
		status = read_entry(d, &d->buffers[i], &end);
		if (status != XR_OK)
			return status;
		shared = shared || d->buffers[i].place != FORMAT_HERE;
	}
	if (end != d->total)
		return fail(d->err, XR_E_DECODE,
			"value: %" PRIu64 " bytes behind the last buffer",
			d->total - end);
	if (shared !=
		((format_get16(d->head + FORMAT_AT_FLAGS) & FORMAT_SHARED) !=
			0))
		return fail(d->err, XR_E_DECODE,
			"value: buffers and flags do not fit");
	return XR_OK;
}

enum xr_status
decode_open(struct decoder *d)
{
	enum xr_status status;
	uint64_t there;

	d->head = d->first;
	if (!parts_total(d->r, &there) || there < FORMAT_HEADER)
		return fail(d->err, XR_E_DECODE,
			"value: a message of less than %d bytes",
			FORMAT_HEADER);
	parts_copy(d, 0, d->first, FORMAT_HEADER);
	status = check_version(d);
	if (status == XR_OK)
		status = check_lengths(d, there);
	if (status == XR_OK)
		status = copy_head(d);
	if (status == XR_OK)
		status = check_sum(d);
	return status == XR_OK ? read_table(d) : status;
}

void
decode_close(struct decoder *d)
{
	for (uint32_t i = 0; d->buffers != NULL && i < d->count; i++)
		storage_unref(d->buffers[i].storage);
	free(d->buffers);
	free(d->tensors);
	free(d->own);
}
