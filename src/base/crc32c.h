/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.h - the checksum of messages.
 *
 * It finds what lines and bad memory do to bytes; it is no proof against who
 * changes them on purpose.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * crc32c() - of @len bytes, behind those that gave @crc; 0 at first.
 *
 * By the processor's instruction where it has one.
 *
 * Source   CRC-32C, polynomial 1EDC6F41: RFC 3720, section 12.1
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* crc32c_plain() - the same by any processor; for tests. */
uint32_t crc32c_plain(uint32_t crc, const void *data, size_t len);

#endif /* BASE_CRC32C_H */
