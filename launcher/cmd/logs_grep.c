/* SPDX-License-Identifier: Apache-2.0 */
/* logs_grep.c - see logs_grep.h. */
#include <string.h>

#include "base/status.h"
#include "launcher/cmd/logs_grep.h"

enum xr_status
logs_grep_open(struct logs_grep *g, const char *text, bool ignore_case,
	struct xr_error *err)
{
	int flags = REG_EXTENDED | REG_NOSUB | (ignore_case ? REG_ICASE : 0);
	char why[128];
	int bad;

	*g = (struct logs_grep){ .text = text };
	if (text == NULL)
		return XR_OK;
	g->plain = !ignore_case && strpbrk(text, "\\.[]()*+?{}|^$") == NULL;
	if (g->plain)
		return XR_OK;
	bad = regcomp(&g->regex, text, flags);
	if (bad == 0)
		return XR_OK;
	regerror(bad, &g->regex, why, sizeof(why));
	g->text = NULL;
	return fail(err, XR_E_INVAL, "logs: --grep: '%s': %s", text, why);
}

void
logs_grep_close(struct logs_grep *g)
{
	if (g->text != NULL && !g->plain)
		regfree(&g->regex);
	*g = (struct logs_grep){ 0 };
}

static bool
logs_grep_has(const struct logs_grep *g, struct span text)
{
	return memmem(text.at, text.len, g->text, strlen(g->text)) != NULL;
}

/* REG_STARTEND: the line may hold NUL bytes, and none ends it. */
bool
logs_grep_fits(const struct logs_grep *g, struct span line)
{
	regmatch_t at = { 0 };

	if (g->text == NULL || g->plain)
		return g->text == NULL || logs_grep_has(g, line);
	if (line.len > 0 && line.at[line.len - 1] == '\n')
		line.len--;
	at.rm_eo = (regoff_t)line.len;
	return regexec(&g->regex, line.len == 0 ? "" : line.at, 1, &at,
		       REG_STARTEND) == 0;
}

bool
logs_grep_may(const struct logs_grep *g, struct span lines)
{
	return !g->plain || logs_grep_has(g, lines);
}
