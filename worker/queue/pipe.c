/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.c - see hall.h: what the pipe of a queue tells. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "worker/queue/hall.h"
#include "worker/queue/wake.h"

void
hall_mute(struct hall *h)
{
	atomic_fetch_and(&h->roles, ~(uint32_t)XR_QUEUE_WRITER);
	fd_close(atomic_exchange(&h->mouth, -1));
}

/* A byte, by the end that a writer has; else by one that is opened for it. */
static void
say(struct hall *h)
{
	int saved = errno, mouth = atomic_load(&h->mouth);
	char path[64];

	if (mouth != -1 && write(mouth, "", 1) == 1)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", h->ear);
	mouth = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	if (write(mouth, "", 1) == -1)
		errno = saved; /* it is full: of bytes that can be read */
	fd_close(mouth);
	errno = saved;
}

void
hall_light(struct hall *h)
{
	if (atomic_load(&h->head->polled) != 0 &&
		atomic_exchange(&h->head->lit, 1) == 0)
		say(h);
}

/* Whatever `lit` says: who lit it may be about to write. What came meanwhile is looked
 * for by the caller. */
void
hall_darken(struct hall *h)
{
	int saved = errno;
	char bytes[64];

	if (atomic_load(&h->head->polled) == 0 ||
		atomic_load(&h->head->end) != HALL_OPEN)
		return;
	while (read(h->ear, bytes, sizeof(bytes)) > 0)
		;
	atomic_store(&h->head->lit, 0);
	errno = saved;
}

void
hall_wake(struct hall *h)
{
	wake_all(&h->head->items_wake);
	wake_all(&h->head->space_wake);
	wake_all(&h->head->memory_wake);
}

void
hall_finish(struct hall *h, enum hall_end end)
{
	uint32_t open = HALL_OPEN;

	atomic_compare_exchange_strong(&h->head->end, &open, end);
	hall_wake(h);
	if (atomic_load(&h->head->polled) != 0)
		say(h);
}

bool
hall_abandoned(struct hall *h)
{
	struct pollfd p = { .fd = h->ear };
	int saved = errno;

	if (hall_has(h, XR_QUEUE_WRITER))
		return false;
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0)
		hall_finish(h, HALL_WRITERS);
	errno = saved;
	return atomic_load(&h->head->end) != HALL_OPEN;
}
