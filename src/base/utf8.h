/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - one character of UTF-8 at a time, strictly (RFC 3629). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * utf8_step() - bytes of the character at @p, of which @len bytes are there.
 *
 * Returns 1 to 4; 0 if it is none: a stray or missing continuation, a form
 * longer than needed, a surrogate, or beyond U+10FFFF. An ASCII control
 * character is a character.
 */
size_t utf8_step(const char *p, size_t len);

/* utf8_is_bidi() - Returns true if the three bytes at @p are a control character
 * that changes the direction of text: U+202A to U+202E, U+2066 to U+2069. */
bool utf8_is_bidi(const char *p);

/* utf8_tame() - in @text, what would steer a terminal becomes '?': control
 * characters but tab and newline, those of 8 bits and of direction (utf8_is_bidi()),
 * too, and bytes from 80 to 9f
 * that are no part of a character. With @narrow, all of those: for a terminal
 * that does not read UTF-8. For words of ours about names that anybody chose. */
void utf8_tame(char *text, bool narrow);

/* utf8_locale() - the variable's value that counts for characters; NULL or "":
 * none is set. */
const char *utf8_locale(void);

/* utf8_spoken() - does the locale, by its variables, have UTF-8? */
bool utf8_spoken(void);

/* utf8_narrow() - is @fd a terminal that does not read UTF-8? The locale names
 * another set of characters (de_DE.ISO-8859-1) and the terminal's own settings
 * (stty iutf8) do not say otherwise. A locale that is unset or C, as containers
 * have it, says nothing of the terminal: today's read UTF-8. */
bool utf8_narrow(int fd);

/* utf8_put() - @code, at most U+10FFFF, as 1 to 4 bytes; returns how many. */
size_t utf8_put(uint32_t code, char out[4]);

#endif /* BASE_UTF8_H */
