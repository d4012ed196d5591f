/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typist.h - a keyboard elsewhere, for a rank's terminal: xrun attach.
 *
 * Who attaches sends one end of a stream socket along; what comes out of it is
 * typed, as fast as the rank's terminal takes it, and at most 4 KiB of it are
 * held here. What the rank answers is in its raw file, as ever. There is one
 * keyboard a rank: xrun's own terminal is one, too (tty_in.c).
 *
 * It ends with the socket, with the connection that asked, and with the rank.
 * Then the terminal is as it was before, unless its program has changed it.
 */
#ifndef LAUNCHER_SUP_TYPIST_H
#define LAUNCHER_SUP_TYPIST_H

#include "launcher/ctl/server.h"
#include "launcher/job/job.h"

/* typist_asked() - the message attach, or resize. */
void typist_asked(struct job *job, struct ctl_client *from,
	const struct control *m);

/* typist_gone() - the connection is no more. */
void typist_gone(struct job *job, struct ctl_client *client);

/* typist_over() - the terminal of rank @r is about to be closed. */
void typist_over(struct job *job, uint32_t r);

#endif /* LAUNCHER_SUP_TYPIST_H */
