/* SPDX-License-Identifier: Apache-2.0 */
/* many.h - lists of very many results, and one that is used again for each of many
 * calls. */
#ifndef WIRE_VALUE_MANY_H
#define WIRE_VALUE_MANY_H

#include <stdbool.h>
#include <stddef.h>

#include <xrun/value.h>

/* many_adopt() - a list of @items, which are taken, with their memory by malloc(3), which
 * has room for one more; NULL among them is NIL. NULL: no memory, or too many; then nothing
 * is taken. */
struct xr_value *many_adopt(struct xr_value **items, size_t count);

/* many_lend() - @item in place of item @i of a list that nobody else has, without a
 * reference: what stood there before is NULL, or was lent, too. The list is shared as long
 * as its owner says, and @item is there until many_return(). */
void many_lend(struct xr_value *list, size_t i, struct xr_value *item);

/* many_return() - NULL in its place. False: somebody else has the list by now, which has
 * got a reference of its own instead, and is not to be lent anything any more. */
bool many_return(struct xr_value *list, size_t i);

#endif /* WIRE_VALUE_MANY_H */
