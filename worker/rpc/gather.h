/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - all members, for those who meet without saying who. */
#ifndef WORKER_RPC_GATHER_H
#define WORKER_RPC_GATHER_H

#include <stddef.h>

/* gather_names() - of the members that there are now; the caller frees the list,
 * the names are the agent's. NULL: no memory. */
const char **gather_names(size_t *count);

#endif /* WORKER_RPC_GATHER_H */
