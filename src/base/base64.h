/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as text, and back: RFC 4648, section 4, strictly. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* base64_len() - characters of @len bytes, without a terminator. */
size_t base64_len(size_t len);

/* base64_put() - base64_len() characters to @out, and a terminator. */
void base64_put(struct span bytes, char *out);

/*
 * base64_get() - the bytes of @text, which may lie where it does.
 *
 * @out: room for text.len / 4 * 3 bytes
 * Returns false if @text is none: another character, a length that is no
 * multiple of 4, bits behind the last byte that are not 0.
 */
bool base64_get(struct span text, char *out, size_t *len);

#endif /* BASE_BASE64_H */
