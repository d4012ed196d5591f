/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - --http: the socket that listens, and the aide that answers there.
 *
 * A socket that has an address of its own is made before the first rank, so that
 * a port or path that is taken is a refusal, and belongs to the keeper: it is
 * the same for all attempts of the job. That of *auto* stands beside the control
 * socket and is made with it. The aide, xrun-http, is a client of the control
 * socket; the supervisor starts it, and again if it dies, a few times: then it is
 * given up for the whole job. All of it does nothing without the option.
 */
#ifndef LAUNCHER_TELL_HTTP_H
#define LAUNCHER_TELL_HTTP_H

#include "launcher/job/job.h"

struct json;

/*
 * http_open() - before the first rank.
 *
 * Returns  XR_OK; XR_E_INVAL (no address, a token without one), XR_E_SYS (it is
 *          taken, the token cannot be read), XR_E_NOTFOUND (no xrun-http), with
 *          words in @err
 */
enum xr_status http_open(struct job *job, struct xr_error *err);

/* http_close() - after the last attempt, by the keeper: its path is removed. */
void http_close(struct job *job);
void http_free(struct job *job); /* what is in memory; after the last process */

/* http_make() - on the thread that made the job's folder of sockets: what is to
 * stand in it. */
void http_make(struct job *job);

/* http_begin() - the control socket is there, or will never be (@why). */
void http_begin(struct job *job, const char *why);

/* http_put() - "http" and "http_token", if there are such and somebody answers. */
void http_put(struct json *j, const struct job *job);

#endif /* LAUNCHER_TELL_HTTP_H */
