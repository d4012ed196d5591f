/* SPDX-License-Identifier: Apache-2.0 */
/* way.c - see way.h. */
#include <stddef.h>

#include "base/status.h"
#include "worker/rpc/way.h"

_Atomic bool way_is_open;
static const struct way *_Atomic way;

void
way_offer(const struct way *offered)
{
	atomic_store(&way, offered);
}

enum xr_status
way_open(uint32_t rank, uint32_t size, struct xr_error *err)
{
	const struct way *w = atomic_load(&way);
	enum xr_status status;

	if (w == NULL)
		return fail(err, XR_E_STATE,
			"there are no groups in this program, which process_group needs");
	status = w->form(rank, size, err);
	if (status == XR_OK)
		atomic_store(&way_is_open, true);
	return status;
}

void
way_close(void)
{
	if (!atomic_exchange(&way_is_open, false))
		return;
	atomic_load(&way)->dissolve();
}

enum xr_status
way_send(struct peer *to, const struct xr_message *message, bool *pending)
{
	return atomic_load_explicit(&way, memory_order_relaxed)
		->send(to, message, pending);
}

void
way_arrived(struct peer *from, const struct xr_record *record,
	const struct xr_body *body)
{
	atomic_load_explicit(&way, memory_order_relaxed)
		->arrived(from, record, body);
}
