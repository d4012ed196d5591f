/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environ.h - looking things up in an environment that was handed in.
 *
 * Nothing in place/ reads the environment of the process: who calls says which
 * variables count, so every rule can be tested with a list on the stack.
 */
#ifndef PLACE_ENVIRON_H
#define PLACE_ENVIRON_H

#include "base/span.h"

/* environ_get() - the value of the first @name, or NULL. @vars may be NULL. */
const char *environ_get(char *const *vars, const char *name);

/* environ_name() - the name in front of the '='; all of it if there is none. */
struct span environ_name(const char *entry);

#endif /* PLACE_ENVIRON_H */
