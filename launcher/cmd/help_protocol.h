/* SPDX-License-Identifier: Apache-2.0 */
/* help_protocol.h - xrun help protocol: the messages of control sockets. */
#ifndef LAUNCHER_CMD_HELP_PROTOCOL_H
#define LAUNCHER_CMD_HELP_PROTOCOL_H

#include "base/buf.h"

void help_protocol(struct buf *out);
void help_protocol_man(struct buf *out);

#endif /* LAUNCHER_CMD_HELP_PROTOCOL_H */
