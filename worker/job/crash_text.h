/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash_text.h - text put together in a signal handler: no libc, no heap.
 */
#ifndef WORKER_JOB_CRASH_TEXT_H
#define WORKER_JOB_CRASH_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* What does not fit is left out; the text is always terminated. */
struct crash_text {
	size_t len, cap;
	char *at;
};

static inline void
crash_put_char(struct crash_text *t, char c)
{
	if (t->len + 1 >= t->cap)
		return;
	t->at[t->len++] = c;
	t->at[t->len] = '\0';
}

static inline void
crash_put(struct crash_text *t, const char *text)
{
	while (*text != '\0')
		crash_put_char(t, *text++);
}

/* In a string of JSON: what would end it, or is no character, is '?'. */
static inline void
crash_put_quoted(struct crash_text *t, const char *text)
{
	for (; *text != '\0'; text++)
		crash_put_char(t,
			*text == '"' || *text == '\\' || *text < ' ' ||
					*text > '~' ?
				'?' :
				*text);
}

static inline void
crash_put_number(struct crash_text *t, uint64_t number, unsigned base)
{
	static const char digits[] = "0123456789abcdef";
	char reversed[24];
	size_t n = 0;

	do
		reversed[n++] = digits[number % base];
	while ((number /= base) > 0);
	while (n > 0)
		crash_put_char(t, reversed[--n]);
}

static inline void
crash_put_hex(struct crash_text *t, uint64_t number)
{
	crash_put(t, "0x");
	crash_put_number(t, number, 16);
}

#endif /* WORKER_JOB_CRASH_TEXT_H */
