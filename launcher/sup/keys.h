/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - the job's rendezvous store, as it is asked on control sockets.
 *
 * It is made when somebody first asks it, and lives as long as the supervisor:
 * ranks may die, an attempt of the whole job begins with an empty one. So all
 * its keys are those of one job and one attempt, without a word of that in any.
 *
 * Messages are those of src/wire/control.def, the rest is src/store/desk.h.
 * Values beyond 32 KiB stay in the sealed memory that they came in, which is
 * handed on, and of which nothing here reads a byte.
 */
#ifndef LAUNCHER_SUP_KEYS_H
#define LAUNCHER_SUP_KEYS_H

#include "launcher/ctl/server.h"
#include "launcher/job/job.h"

#define KEYS_BYTES   (256 << 20) /* keys and values in all */
#define KEYS_INLINE  (32 << 10)  /* a value's bytes in a line */
#define KEYS_MOST    (1 << 17)   /* keys with a value */
#define KEYS_WAITS   (1 << 20)   /* keys waited for, once for each who waits */
#define KEYS_A_GUEST 64          /* gets and waits open of one connection */

/* keys_is() - is the message one of the store's? */
bool keys_is(enum control_type type);

/* keys_asked() - @m, which is, came from @from. */
void keys_asked(struct job *job, struct ctl_client *from,
	const struct control *m);

/* keys_more(), keys_gone() - as ctl_config has them. */
void keys_more(struct job *job, struct ctl_client *client);
void keys_gone(struct job *job, struct ctl_client *client);

/* keys_close() - all connections are gone. */
void keys_close(struct job *job);

#endif /* LAUNCHER_SUP_KEYS_H */
