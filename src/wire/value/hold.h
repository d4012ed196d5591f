/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - putting one value into another: what lists and dicts share. Inside of
 * src/wire/value only. */
#ifndef WIRE_VALUE_HOLD_H
#define WIRE_VALUE_HOLD_H

#include "wire/value/node.h"

/* hold_check() - may @parent, a LIST or DICT of @kind, get @item? As
 * xr_value_append(), but for whether it is full. */
enum xr_status hold_check(const struct xr_value *parent, enum xr_kind kind,
	const struct xr_value *item);

/* hold_item() - @item stands in @parent, whose depth may grow. */
void hold_item(struct xr_value *parent, struct xr_value *item);

/* hold_refused() - lets go of an @item that was taken, and gives @status back.
 * What was to hold itself is still its owner's. */
enum xr_status hold_refused(const struct xr_value *parent,
	struct xr_value *item, enum xr_status status);

#endif /* WIRE_VALUE_HOLD_H */
