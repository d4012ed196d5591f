/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempt.h - the files of a job, for who reads them: its folder, the folder of
 * one of its attempts, and what is known of that.
 *
 * A job that runs elsewhere (--log-dir) says itself where. Nothing here is
 * locked; a folder that is removed meanwhile stays readable through what is
 * open.
 */
#ifndef LAUNCHER_CMD_ATTEMPT_H
#define LAUNCHER_CMD_ATTEMPT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/cmd/which.h"
#include "xrun/error.h"

#define ATTEMPT_LAST (-1)

struct attempt {
	struct which job; /* with its folder */
	int folder;       /* of the job; -1: none */
	int dir;          /* of the attempt; -1: none */
	uint32_t number;
	uint32_t ranks;
	int64_t start, end; /* wall ns; of one that runs, now */
	bool known;         /* somebody told of them */
};

#define ATTEMPT_NONE ((struct attempt){ .folder = -1, .dir = -1 })

/*
 * attempt_find_job() - the job called @text and its folder; nothing is open.
 *
 * @text: as of which_job(), or the path of a folder, with a "/"; NULL: the
 *        latest
 * @what: what is wanted of it, in the words: "output"
 * Returns  XR_OK; XR_E_NOTFOUND, XR_E_INVAL, XR_E_STATE (no output is kept),
 *          XR_E_END (it has ended without output), with a message in @err
 */
enum xr_status attempt_find_job(const char *text, const char *what,
	struct attempt *a, struct xr_error *err);

/* attempt_open() - attempt @number, or ATTEMPT_LAST, of the job that was found.
 * Returns XR_OK, XR_E_NOTFOUND, XR_E_SYS with words in @err. */
enum xr_status attempt_open(struct attempt *a, int64_t number,
	struct xr_error *err);

/* attempt_is_known() - has anybody told by now how many ranks it has? Of one
 * that is over, nobody may have; then the files tell. */
bool attempt_is_known(struct attempt *a);

/* attempt_await_known() - the same, with patience: a job tells of itself when its ranks
 * were started, and some of them may have written before. Blocks: 2 s at most. */
bool attempt_await_known(struct attempt *a);

/* attempt_next() - is there one behind it? Opens that, and closes this. */
bool attempt_next(struct attempt *a);

/* attempt_back() - if none of its ranks wrote anything, as in the pause before their
 * start: is there one before it of which one did? Opens the last of those, and
 * closes this. */
bool attempt_back(struct attempt *a);

/* attempt_is_followed() - is there one behind it? */
bool attempt_is_followed(const struct attempt *a);

/* attempt_is_over() - will nothing more be written by it? Nobody holds the
 * lock of the job, or the next attempt is there. */
bool attempt_is_over(const struct attempt *a);

/* attempt_job_runs() - does anybody hold the lock of the job that was found? */
bool attempt_job_runs(const struct attempt *a);
void attempt_close(struct attempt *a);

#endif /* LAUNCHER_CMD_ATTEMPT_H */
