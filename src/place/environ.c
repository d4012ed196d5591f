/* SPDX-License-Identifier: Apache-2.0 */
/* environ.c - see environ.h. */
#include <string.h>

#include "place/environ.h"

const char *
environ_get(char *const *vars, const char *name)
{
	size_t len = strlen(name);

	for (; vars != NULL && *vars != NULL; vars++)
		if (strncmp(*vars, name, len) == 0 && (*vars)[len] == '=')
			return *vars + len + 1;
	return NULL;
}

struct span
environ_name(const char *entry)
{
	return (struct span){ .at = entry, .len = strcspn(entry, "=") };
}
