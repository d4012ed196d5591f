/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs_grep.h - the lines that match --grep: a POSIX extended regular expression.
 *
 * A pattern without special characters is searched for as it is, which is much
 * faster.
 */
#ifndef LAUNCHER_CMD_LOGS_GREP_H
#define LAUNCHER_CMD_LOGS_GREP_H

#include <regex.h>
#include <stdbool.h>

#include "base/buf.h"
#include "xrun/error.h"

struct logs_grep {
	const char *text; /* borrowed; NULL matches every line */
	bool plain;       /* no special characters, and case counts */
	regex_t regex;    /* unless plain */
};

/* logs_grep_open() - returns XR_OK, or XR_E_INVAL with a message in @err.
 * If @text is NULL, every line matches. */
enum xr_status logs_grep_open(struct logs_grep *grep, const char *text,
	bool ignore_case, struct xr_error *err);
void logs_grep_close(struct logs_grep *grep);

/* logs_grep_fits() - returns true if @line, with or without its newline, matches. */
bool logs_grep_fits(const struct logs_grep *grep, struct span line);

/* logs_grep_may() - returns false if no line of @lines can match. */
bool logs_grep_may(const struct logs_grep *grep, struct span lines);

#endif /* LAUNCHER_CMD_LOGS_GREP_H */
