/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - see window.h. */
#include <string.h>

#include "worker/shm/mark.h"
#include "worker/shm/window.h"

static uint64_t
piece(const struct window_end *w, uint64_t len)
{
	uint64_t left = len - w->done;

	return left < WINDOW_SIZE ? left : WINDOW_SIZE;
}

struct window_range {
	uint64_t from, len;
};

/* Some bytes of all parts. */
static void
gather(unsigned char *to, const struct xr_part *parts, uint32_t count,
	struct window_range range)
{
	uint64_t skip = range.from, left = range.len;

	for (uint32_t i = 0; i < count && left > 0; i++) {
		uint64_t len = parts[i].len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = len - skip < left ? len - skip : left;
		memcpy(to, (const char *)parts[i].data + skip, len);
		to += len;
		left -= len;
		skip = 0;
	}
}

enum window_state
window_feed(struct window_end *w, const struct xr_part *parts, uint32_t count,
	uint64_t len)
{
	uint64_t taken =
		atomic_load_explicit(&w->window->taken, memory_order_acquire);
	enum window_state state = WINDOW_SAME;

	if (w->at - taken > WINDOW_COUNT)
		return WINDOW_BROKEN;
	for (; w->done < len && w->at - taken < WINDOW_COUNT;
		state = WINDOW_MOVED) {
		uint64_t n = piece(w, len);

		gather(w->window->data[w->at % WINDOW_COUNT], parts, count,
			(struct window_range){ w->done, n });
		MARK(MARK_WINDOW);
		w->done += n;
		atomic_store_explicit(&w->window->fed, ++w->at,
			memory_order_release);
	}
	return state;
}

enum window_state
window_take(struct window_end *w, void *to, uint64_t len)
{
	uint64_t fed =
		atomic_load_explicit(&w->window->fed, memory_order_acquire);
	enum window_state state = WINDOW_SAME;

	if (fed - w->at > WINDOW_COUNT)
		return WINDOW_BROKEN;
	for (; w->done < len && w->at < fed; state = WINDOW_MOVED) {
		uint64_t n = piece(w, len);

		memcpy((char *)to + w->done,
			w->window->data[w->at % WINDOW_COUNT], n);
		MARK(MARK_EMPTIED);
		w->done += n;
		atomic_store_explicit(&w->window->taken, ++w->at,
			memory_order_release);
	}
	return state;
}

void
window_skip(struct window_end *w)
{
	if (w->window == NULL)
		return;
	w->at = atomic_load_explicit(&w->window->fed, memory_order_acquire);
	atomic_store_explicit(&w->window->taken, w->at, memory_order_release);
}
