/* SPDX-License-Identifier: Apache-2.0 */
/* gate_inner.h - what gate.c and gate_read.c share. No other file includes it.
 */
#ifndef BASE_GATE_INNER_H
#define BASE_GATE_INNER_H

#include "base/gate.h"

static inline bool
gate_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * gate_escape() - what the escape at *p, a backslash, stands for; *p moves
 * behind it. UINT32_MAX if it is none, or one that a text cannot hold.
 */
uint32_t gate_escape(const char **p, const char *end);

/* gate_comment() - the byte behind the comment at @p; NULL if none begins there,
 * or it does not end, or is not UTF-8, or holds control characters. */
const char *gate_comment(const char *p, const char *end);

/* gate_blank() - overwrite comments and commas without need; @text passed. */
void gate_blank(char *text, size_t len);

#endif /* BASE_GATE_INNER_H */
