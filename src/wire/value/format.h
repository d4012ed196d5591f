/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - a value as bytes.
 *
 * A message is a head, and behind it the buffers: tensors, and bytes and text of
 * VALUE_LONG and more, each at a multiple of FORMAT_ALIGN. All numbers are
 * little-endian. The head:
 *
 *	 0  "XRV1"   u16 version   u16 flags
 *	 8  u64 bytes of all       u32 bytes of the head   u32 its CRC-32C, or 0
 *	24  u32 buffers            u32 0
 *	32  for each buffer FORMAT_ENTRY bytes
 *	    the value
 *
 * The sum is of the head without the sum. The entry of a buffer:
 *
 *	 0  u8 where it is   u8 what it is   u8 kind of device   u8 0
 *	 4  i32 device       u64 bytes
 *	16  u64[3]           of a descriptor its number and where in it, of a handle
 *	                     all three, of a loan its number; else 0
 *
 * Those that are in the message follow in this order; an empty one takes no
 * place. A value is a tag, which for most is its kind, and then:
 *
 *	BOOL            u8                  I64, U64, F64   8 bytes
 *	C128            16 bytes            BYTES, TEXT     u32 length, that many
 *	LIST            u32 count, values   DICT            u32 count; u32 length,
 *	RREF            64 bytes                            key, value
 *	WORKER          u32 id, name        FUNC            u8 bound, name, value
 *	ERROR           i32 status, u32 worker, u8 which of five texts and a cause
 *	                there are; each text as TEXT; the cause, a value
 *	OPAQUE          name of the type, then a value that is BYTES
 *	TENSOR          u8 dtype, u8 dimensions, u32 buffer, u64 offset, i64 shape,
 *	                i64 strides
 *	BYTES_OUT, TEXT_OUT   u32 buffer
 *	TENSOR_AGAIN    u32: the tensor that came as the so-manieth
 *
 * Names are a u8 length and that many bytes. There is one way to write a value:
 * what is short is in the head, what is long is not, buffers are numbered as they
 * come, and each is used.
 */
#ifndef WIRE_VALUE_FORMAT_H
#define WIRE_VALUE_FORMAT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include <xrun/value.h>

#define FORMAT_MAGIC    "XRV1"
#define FORMAT_VERSION  1
#define FORMAT_HEADER   32
#define FORMAT_ENTRY    40
#define FORMAT_ALIGN    64
#define FORMAT_HEAD_MAX (1 << 30)                    /* bytes of a head */
#define FORMAT_MAX      ((uint64_t)INT64_C(1) << 40) /* bytes of all */

/* Fields of the header. */
enum {
	FORMAT_AT_VERSION = 4,
	FORMAT_AT_FLAGS = 6,
	FORMAT_AT_TOTAL = 8,
	FORMAT_AT_HEAD = 16,
	FORMAT_AT_SUM = 20,
	FORMAT_AT_BUFFERS = 24,
	FORMAT_AT_ZERO = 28,
};

enum format_flag {
	FORMAT_SHARED = 1, /* some buffer is not in the message */
	FORMAT_SUMMED = 2,
};

enum format_place {
	FORMAT_HERE = 0, /* in the message */
	FORMAT_FD = 1,
	FORMAT_HANDLE = 2, /* of the source of storage */
	FORMAT_LOAN = 3,   /* beside the message: value_codec_ctx */
};

enum format_use {
	FORMAT_BYTES = 1,
	FORMAT_TEXT = 2,
	FORMAT_TENSOR = 3,
	FORMAT_OBJECT = 4, /* the bytes of one OPAQUE */
};

/* Tags that are no kind. */
enum format_tag {
	FORMAT_BYTES_OUT = 32,
	FORMAT_TEXT_OUT = 33,
	FORMAT_TENSOR_AGAIN = 34,
};

/* The texts of an ERROR are bits 0 to 4, in the order of enum error_text. */
#define FORMAT_CAUSE 0x20

/* A small view of a storage of so many bytes, which it needs at most half of, is
 * sent without the rest: RPC since torch 1.6 does so. */
#define FORMAT_LARGE 8192

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN,
	"buffers are written as they lie");

static inline uint64_t
format_align(uint64_t at)
{
	return (at + FORMAT_ALIGN - 1) & ~(uint64_t)(FORMAT_ALIGN - 1);
}

static inline uint16_t
format_get16(const uint8_t *p)
{
	uint16_t u;

	memcpy(&u, p, sizeof(u));
	return le16toh(u);
}

static inline uint32_t
format_get32(const uint8_t *p)
{
	uint32_t u;

	memcpy(&u, p, sizeof(u));
	return le32toh(u);
}

static inline uint64_t
format_get64(const uint8_t *p)
{
	uint64_t u;

	memcpy(&u, p, sizeof(u));
	return le64toh(u);
}

static inline void
format_put16(uint8_t *p, uint16_t u)
{
	u = htole16(u);
	memcpy(p, &u, sizeof(u));
}

static inline void
format_put32(uint8_t *p, uint32_t u)
{
	u = htole32(u);
	memcpy(p, &u, sizeof(u));
}

static inline void
format_put64(uint8_t *p, uint64_t u)
{
	u = htole64(u);
	memcpy(p, &u, sizeof(u));
}

#endif /* WIRE_VALUE_FORMAT_H */
