/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - a time as a person types it: --since, --until. Pure, but for the
 * local time zone.
 *
 *   10m  1h30m  0             back from now
 *   12:34  12:34:56.789       as --timestamps prints it; of the job's day
 *   2026-11-21  2026-11-21 12:34:56.789  2026-11-21T12:34:56.123456Z
 */
#ifndef LAUNCHER_CMD_WHEN_H
#define LAUNCHER_CMD_WHEN_H

#include <stdint.h>

#include "xrun/error.h"

/* What it is meant beside; wall ns. */
struct when_facts {
	int64_t now;
	int64_t start, end; /* of the job */
};

/* From @ns on, as long as what was typed is true: "12:34" is a minute. */
struct when {
	int64_t ns, last;
};

/*
 * when_parse() - @text as a time.
 *
 * A time of day is that of the day on which the job ran then, or nearest to it.
 * Returns  XR_OK, or XR_E_INVAL with what would be right in @err
 */
enum xr_status when_parse(const char *text, const struct when_facts *facts,
	struct when *out, struct xr_error *err);

/* when_check() - is it one? */
enum xr_status when_check(const char *text, struct xr_error *err);

#endif /* LAUNCHER_CMD_WHEN_H */
