/* SPDX-License-Identifier: Apache-2.0 */
/* dents.c - see dents.h. */
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "base/dents.h"

bool
dents_read(struct dents *d, int fd)
{
	d->at = 0;
	d->len = syscall(SYS_getdents64, fd, d->room, sizeof(d->room));
	return d->len > 0;
}

const struct dent *
dents_next(struct dents *d)
{
	while (d->at < d->len) {
		const struct dent *e = (const void *)(d->room + d->at);

		d->at += e->len;
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			return e;
	}
	return NULL;
}
