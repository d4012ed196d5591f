/* SPDX-License-Identifier: Apache-2.0 */
/* twin.c - see twin.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "launcher/host/own_file.h"
#include "launcher/host/twin.h"
#include "proc/elf.h"

#define TWIN "xrun-dynamic"

enum xr_status
twin_take_over(char *const *argv, const char *why, struct xr_error *err)
{
	enum xr_status status;
	char *path;

	if (!elf_is_static())
		return XR_OK;
	path = own_file(TWIN, ".");
	if (path == NULL)
		return fail(err, XR_E_NOTFOUND,
			"%s: the driver is asked by " TWIN
			", which is not where xrun is",
			why);
	execv(path, argv);
	status = fail(err, XR_E_SYS, "%s: %s: %s", why, path, strerror(errno));
	free(path);
	return status;
}
