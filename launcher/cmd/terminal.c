/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - see terminal.h. */
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/terminal.h"
#include "launcher/job/options.h"

bool
terminal_takes_escapes(void)
{
	const char *term = getenv("TERM");

	return term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

bool
terminal_wants_color(int mode, bool tty)
{
	const char *no = getenv("NO_COLOR");

	if (mode != COLOR_AUTO)
		return mode == COLOR_ALWAYS;
	return tty && (no == NULL || no[0] == '\0') && terminal_takes_escapes();
}
