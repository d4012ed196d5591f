/* SPDX-License-Identifier: Apache-2.0 */
/*
 * method.h - functions of others, by name, as this process calls them.
 *
 * Made once for each name and kept. A peer that has answered to the name is called
 * by its hash alone from then on.
 */
#ifndef WORKER_RPC_METHOD_H
#define WORKER_RPC_METHOD_H

#include <stddef.h>
#include <stdint.h>

#define METHOD_PREFIX_MAX 264 /* u16, 255 bytes, padding to 8 */

struct method {
	uint32_t hash;
	uint32_t place; /* of the methods of this process, from 0 */
	uint32_t prefix_len;
	struct method *next;
	char name[256];
	uint8_t prefix
		[METHOD_PREFIX_MAX]; /* in front of a body that is NAMED */
};

/* method_get() - NULL: no memory, or that is no name. Any thread. */
const struct method *method_get(const char *name);

#endif /* WORKER_RPC_METHOD_H */
