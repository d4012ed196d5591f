/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - see host.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/host.h"

const char *
host_name(char *out, size_t cap)
{
	out[0] = '\0';
	if (gethostname(out, cap) == -1 || out[0] == '\0')
		snprintf(out, cap, "localhost");
	out[cap - 1] = '\0';
	return out;
}

const char *
host_boot(char *out, size_t cap)
{
	fd_read_small("/proc/sys/kernel/random/boot_id", out, cap);
	out[strcspn(out, "\n")] = '\0';
	return out;
}
