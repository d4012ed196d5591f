/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - HMAC-SHA256 by OpenSSL's libcrypto, which is looked for when the
 * first link is made: a process that makes none never has it, and libxrun.so is
 * not linked to it.
 *
 * Once loaded it stays: it cannot be taken out of a process.
 */
#ifndef WORKER_NET_PROOF_H
#define WORKER_NET_PROOF_H

#include "worker/net/greet.h"

/*
 * proof_crypto() - what greet.h asks for; borrowed, for as long as the process
 * lives.
 *
 * Returns  NULL: there is none, and @err says what was missed, with XR_E_NODEV
 * Thread   any.  Blocks: the first time, to load it (milliseconds).
 */
const struct greet_crypto *proof_crypto(struct xr_error *err);

/*
 * proof_keep() - a copy of @secret that stands in no core file and in no forked
 * child, nor in swap where that can be had; NULL: no memory, and errno.
 */
uint8_t *proof_keep(const uint8_t secret[GREET_SECRET]);
void proof_forget(uint8_t *secret); /* NULL is fine */

#endif /* WORKER_NET_PROOF_H */
