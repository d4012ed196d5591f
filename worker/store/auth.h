/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - the secret of a tcp:// store, and the proofs that are made with it.
 *
 * The secret is in the file that XRUN_STORE_SECRET_FILE names, or else in
 * $XDG_CONFIG_HOME/xrun/store.secret (~/.config without the variable), which the
 * first process that needs it makes. The file is the user's, has mode 0600 and
 * holds 16 to 4096 bytes; white space at its end does not count. The secret never
 * crosses the connection: each side sends a nonce and proves with an HMAC over
 * both nonces that it knows the secret.
 */
#ifndef WORKER_STORE_AUTH_H
#define WORKER_STORE_AUTH_H

#include "base/span.h"
#include "worker/net/proof.h"

#define STORE_NONCE 32 /* bytes */

struct store_auth {
	const struct greet_crypto *crypto;
	uint8_t *secret; /* proof_keep() */
};

/* The nonces of one connection. */
struct store_nonces {
	uint8_t client[STORE_NONCE], server[STORE_NONCE];
};

/*
 * store_auth_open() - read the secret, or make the file if it is the default one
 * and does not exist.
 *
 * Returns  XR_OK: release with store_auth_close(); XR_E_AUTH: the file is another
 *          user's, or others can read it; XR_E_INVAL: it holds too little or too
 *          much; XR_E_NODEV: there is no libcrypto; XR_E_SYS, XR_E_NOMEM
 */
enum xr_status store_auth_open(struct store_auth *auth, struct xr_error *err);
void store_auth_close(struct store_auth *auth);

/* store_auth_nonce() - fill @nonce. Returns false if the kernel has no random
 * bytes. */
bool store_auth_nonce(uint8_t nonce[STORE_NONCE]);

/* store_auth_prove() - the proof of the server (@host) or of the client. Returns
 * false if libcrypto fails. */
bool store_auth_prove(const struct store_auth *auth, bool host,
	const struct store_nonces *nonces, uint8_t proof[GREET_PROOF]);

/* store_auth_check() - Returns true if @proof is that of the side @host. Takes
 * the same time for each wrong proof. */
bool store_auth_check(const struct store_auth *auth, bool host,
	const struct store_nonces *nonces, struct span proof);

#endif /* WORKER_STORE_AUTH_H */
