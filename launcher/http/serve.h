/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - answers a few hostile or friendly clients at a time.
 *
 * One loop; the job is asked on a thread, at most four times a second whatever
 * the number of clients. A connection is for one request, of 8 KiB and ten
 * seconds at most; of 64 that are open the one that has been waited for the
 * longest makes room. A client that takes nothing for ten seconds is dropped.
 */
#ifndef LAUNCHER_HTTP_SERVE_H
#define LAUNCHER_HTTP_SERVE_H

#include "launcher/http/request.h"

struct serve_config {
	int fd;         /* listens; non-blocking */
	const char *id; /* the job's */
	struct http_rule rule;
};

/* serve() - until it is killed. False if there is no memory, or the kernel
 * refuses. */
bool serve(const struct serve_config *config);

#endif /* LAUNCHER_HTTP_SERVE_H */
