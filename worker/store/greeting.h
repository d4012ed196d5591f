/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.h - the first messages of a client of a tcp:// store (store/frame.h). */
#ifndef WORKER_STORE_GREETING_H
#define WORKER_STORE_GREETING_H

#include "worker/store/auth.h"

/*
 * greeting_client() - exchange HELLO and proofs over @fd, which does not block.
 *
 * @auth:  NULL if the address has auth=none
 * @until: clock_now() at which it ends
 * Returns  XR_OK; XR_E_AGAIN: a later attempt may succeed; XR_E_AUTH: one of the
 *          sides does not know the secret, or only one of them uses one;
 *          XR_E_PROTO, XR_E_VERSION
 */
enum xr_status greeting_client(int fd, const struct store_auth *auth,
	int64_t until, struct xr_error *err);

#endif /* WORKER_STORE_GREETING_H */
