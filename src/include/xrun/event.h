/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/event.h - flags that threads of a process wait for, one or several.
 *
 * An event is set, and stays so until it is cleared. Others are made of events: one
 * that is set while any of its parts is, or while all are; a part may be such a one
 * itself. Who waits, waits for what holds now or comes to hold at any instant from
 * then on, be it for ever so short.
 *
 * Any thread; events are counted. Nothing here starts a thread or a process, and
 * a child of fork() must not use its parent's.
 */
#ifndef XRUN_EVENT_H
#define XRUN_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/time.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_EVENT_PARTS_MAX 4096 /* of one wait, all the way down */

struct xr_event;

/* xr_event_new() - not set; NULL: no memory. Release with xr_event_unref(). */
struct xr_event *xr_event_new(void);

/* xr_event_new_any(), xr_event_new_all() - of @count events, of each of which a
 * reference is kept. NULL: no memory, one of them is NULL, or more than
 * XR_EVENT_PARTS_MAX. Of none, "any" never holds, and "all" always does. */
struct xr_event *xr_event_new_any(struct xr_event *const *events, size_t count);
struct xr_event *xr_event_new_all(struct xr_event *const *events, size_t count);

struct xr_event *xr_event_ref(struct xr_event *event);
void xr_event_unref(struct xr_event *event); /* NULL is fine */

/* xr_event_set(), xr_event_clear() - nothing happens to one that is made of
 * others. */
void xr_event_set(struct xr_event *event);
void xr_event_clear(struct xr_event *event);
bool xr_event_is_set(const struct xr_event *event);

/*
 * xr_wait_any() - until one of @count events is set.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER
 * @which:   receives the first of them that is, may be NULL
 *
 * Returns  XR_OK; XR_E_TIMEOUT; XR_E_INVAL: none, NULL, too many, @timeout;
 *          XR_E_NOMEM
 */
enum xr_status xr_wait_any(struct xr_event *const *events, size_t count,
	int64_t timeout, size_t *which, struct xr_error *err);

/* xr_wait_all() - until all of them are, in the same instant; as xr_wait_any(). Of
 * none, they are. */
enum xr_status xr_wait_all(struct xr_event *const *events, size_t count,
	int64_t timeout, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_EVENT_H */
