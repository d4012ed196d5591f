/* SPDX-License-Identifier: Apache-2.0 */
/* many.h - lists of very many results, and one that is used again for each of many
 * calls. */
#ifndef WIRE_VALUE_MANY_H
#define WIRE_VALUE_MANY_H

#include <stdbool.h>
#include <stddef.h>

#include <xrun/value.h>

/* many_adopt() - a list of @items, which are taken, with their memory by malloc(3); NULL
 * among them is NIL. NULL: no memory, or too many; then nothing is taken. */
struct xr_value *many_adopt(struct xr_value **items, size_t count);

/* many_swap() - @item, of which a reference is made, in place of item @i of a list that
 * nobody else has. False: somebody has it, or has no such item. */
bool many_swap(struct xr_value *list, size_t i, struct xr_value *item);

#endif /* WIRE_VALUE_MANY_H */
