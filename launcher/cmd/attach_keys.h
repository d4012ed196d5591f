/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_keys.h - our terminal as a window to a rank's (--pty): what is typed
 * goes there, what the rank wrote comes here, byte for byte, from its raw file.
 *
 * Ours is in raw mode meanwhile: Ctrl-C is the program's. Whatever ends this,
 * our terminal is as it was; the rank's is looked after by the job itself
 * (launcher/sup/typist.h), however we end.
 */
#ifndef LAUNCHER_CMD_ATTACH_KEYS_H
#define LAUNCHER_CMD_ATTACH_KEYS_H

#include <stdint.h>

#include "launcher/cmd/attempt.h"
#include "launcher/ctl/client.h"

enum attached {
	ATTACHED_OVER,      /* the attempt is */
	ATTACHED_LEFT,      /* somebody typed the keys, or told us to end */
	ATTACHED_UNWRITTEN, /* our output cannot be written: @sys */
};

struct attach_keys {
	struct attempt *attempt;
	uint32_t rank;
	int64_t tail; /* lines to begin with */
	int signals;  /* a signalfd of what ends us, and SIGWINCH */
	struct ctl_call call;
	int typed;  /* our end of the socket; -1: nobody reads it any more */
	int signal; /* that told us to end; 0 */
	int sys;
};

/*
 * attach_keys_begin() - have the keyboard of the rank.
 *
 * Returns  XR_OK; XR_E_EXISTS (somebody else has it), XR_E_STATE (it has no
 *          terminal, or the job has ended), or as dial_ask()
 */
enum xr_status attach_keys_begin(struct attach_keys *k, struct xr_error *err);

/* attach_keys_run() - until the attempt is over, or we leave. */
enum attached attach_keys_run(struct attach_keys *k);
void attach_keys_end(struct attach_keys *k);

#endif /* LAUNCHER_CMD_ATTACH_KEYS_H */
