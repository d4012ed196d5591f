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

bool
window_feed(struct window_end *w, const struct xr_part *parts, uint32_t count,
	uint64_t len)
{
	bool fed = false;

	for (int i = 0; i < WINDOW_COUNT && w->done < len &&
		w->at -
				atomic_load_explicit(&w->window->taken,
					memory_order_acquire) <
			WINDOW_COUNT;
		i++) {
		uint64_t n = piece(w, len);

		gather(w->window->data[w->at % WINDOW_COUNT], parts, count,
			(struct window_range){ w->done, n });
		MARK(MARK_WINDOW);
		w->done += n;
		atomic_store_explicit(&w->window->fed, ++w->at,
			memory_order_release);
		fed = true;
	}
	return fed;
}

bool
window_take(struct window_end *w, void *to, uint64_t len)
{
	bool took = false;

	for (int i = 0; i < WINDOW_COUNT && w->done < len &&
		w->at < atomic_load_explicit(&w->window->fed,
				memory_order_acquire);
		i++) {
		uint64_t n = piece(w, len);

		memcpy((char *)to + w->done,
			w->window->data[w->at % WINDOW_COUNT], n);
		w->done += n;
		atomic_store_explicit(&w->window->taken, ++w->at,
			memory_order_release);
		took = true;
	}
	return took;
}

void
window_skip(struct window_end *w)
{
	if (w->window == NULL)
		return;
	w->at = atomic_load_explicit(&w->window->fed, memory_order_acquire);
	atomic_store_explicit(&w->window->taken, w->at, memory_order_release);
}
