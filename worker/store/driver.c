/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - see driver.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "worker/store/driver.h"

bool
driver_pause(int fd, int64_t ns, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t left = until == INT64_MAX ? INT64_MAX : until - clock_now();

	if (left <= 0)
		return fd != -1 && poll(&p, 1, 0) == 1;
	if (ns > left)
		ns = left;
	poll(&p, 1, (int)((ns + NS_PER_MS - 1) / NS_PER_MS));
	return true;
}

void
reply_fail(struct store_reply *r, enum xr_status status, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	r->err.status = status;
	va_start(ap, fmt);
	vsnprintf(r->err.text, sizeof(r->err.text), fmt, ap);
	va_end(ap);
}
