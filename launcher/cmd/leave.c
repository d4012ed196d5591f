/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c - see leave.h. */
#include "launcher/cmd/leave.h"

bool
leave_pass(struct leave *l, const char *in, size_t len, char *out,
	size_t *passed)
{
	*passed = 0;
	for (size_t i = 0; i < len; i++) {
		if (l->kept && in[i] == LEAVE_SECOND) {
			l->kept = false;
			return true;
		}
		*passed += leave_let_go(l, out + *passed);
		if (in[i] == LEAVE_FIRST)
			l->kept = true;
		else
			out[(*passed)++] = in[i];
	}
	return false;
}

size_t
leave_let_go(struct leave *l, char *out)
{
	if (!l->kept)
		return 0;
	l->kept = false;
	*out = LEAVE_FIRST;
	return 1;
}
