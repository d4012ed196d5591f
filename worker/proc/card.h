/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.h - what a process is told when it starts, and what it reports.
 *
 * A memfd that the starting process writes before the other one is there, and reads
 * when it has ended. In between it is that one's: each report is written behind what
 * is there, and counted last, so that of one who is killed there are whole ones only.
 * The reader believes no length of it.
 */
#ifndef WORKER_PROC_CARD_H
#define WORKER_PROC_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/value.h>

#define CARD_REPORTS 2 /* of the function, of its cleaner */

enum card_flags {
	CARD_TELLS = 1, /* a failure is told on stderr, as a rank's is */
};

enum card_text {
	CARD_NAME,
	CARD_FUNC,
	CARD_CLEANER, /* "": there is none */
	CARD_FOLDER,
	CARD_TEXTS,
};

/* What it is told. */
struct card {
	uint32_t flags; /* enum card_flags */
	uint32_t ordinal;
	int64_t started; /* ns since the epoch */
	const char *text[CARD_TEXTS];
	const char *const *env; /* [..., NULL] */
	struct xr_value *arg;   /* NULL: it comes some other way */
	void *own;              /* of card_read() */
};

/* card_write() - a descriptor with all of it; the caller's. */
enum xr_status card_write(const struct card *card, int *fd,
	struct xr_error *err);

/* card_read() - the same; what it points to stays with the process. */
enum xr_status card_read(int fd, struct card *card, struct xr_error *err);

/* card_report() - one more. False: there is no room for it in this system. */
bool card_report(int fd, struct xr_value *report);

/* card_reports() - up to @cap, whose references are the caller's; how many. */
uint32_t card_reports(int fd, struct xr_value **reports, uint32_t cap);

#endif /* WORKER_PROC_CARD_H */
