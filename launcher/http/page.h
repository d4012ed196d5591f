/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - what a job answers, made ready to be sent: as metrics, as JSON. Asked
 * on a thread, since a job that was stopped answers when it goes on.
 */
#ifndef LAUNCHER_HTTP_PAGE_H
#define LAUNCHER_HTTP_PAGE_H

#include "base/buf.h"
#include "launcher/http/request.h"

/* One answer of the job's, shared by those who get it. */
struct pages {
	unsigned refs;      /* the loop's */
	int64_t made_ns;    /* clock_now() */
	struct buf page[3]; /* by enum http_page; empty: it did not answer */
};

/* pages_ask() - asks job @id; NULL: no memory. Blocks for some seconds at most. */
struct pages *pages_ask(const char *id);
void pages_unref(struct pages *pages); /* NULL is fine */

const char *pages_type(enum http_page page); /* Content-Type */

#endif /* LAUNCHER_HTTP_PAGE_H */
