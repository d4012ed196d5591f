/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - see ring.h. */
#include <string.h>

#include "worker/shm/ring.h"

void
ring_make(struct ring_head *head, uint32_t lines)
{
	memset(head, 0, sizeof(*head));
	head->lines = lines;
	atomic_store_explicit(&ring_line(head, 0, lines)->word, 0,
		memory_order_relaxed);
}

void
ring_write(struct ring_out *out, struct ring_head *head, uint32_t lines)
{
	*out = (struct ring_out){ .head = head, .lines = lines };
}

void
ring_read(struct ring_in *in, struct ring_head *head, uint32_t lines)
{
	*in = (struct ring_in){ .head = head, .lines = lines };
}

enum ring_state
ring_look(struct ring_out *out, uint32_t lines)
{
	uint64_t tail =
		atomic_load_explicit(&out->head->tail, memory_order_acquire);

	if (tail < out->tail || tail > out->at)
		return RING_BROKEN;
	out->tail = tail;
	if (out->at + lines <= tail + out->lines)
		return RING_OK;
	return RING_FULL;
}

/* The end must be free, and the first line's word, which is zeroed. */
enum ring_state
ring_wrap(struct ring_out *out, uint32_t lines)
{
	uint32_t rest = out->lines - (uint32_t)(out->at & (out->lines - 1));
	enum ring_state state;

	if (rest >= lines)
		return RING_OK;
	state = ring_look(out, rest + 1);
	if (state == RING_OK)
		ring_publish(out,
			(struct ring_word){ .len = rest, .type = RING_SKIP },
			rest);
	return state;
}

enum ring_state
ring_parse(const struct ring_in *in, uint64_t word, struct ring_word *w,
	uint32_t *lines)
{
	uint32_t rest = in->lines - (uint32_t)(in->at & (in->lines - 1));

	if ((uint32_t)word != ring_sequence(in->at))
		return RING_BROKEN;
	*w = (struct ring_word){
		.len = (uint32_t)(word >> 32) & 0xffff,
		.loans = (uint32_t)(word >> 48) & 0xff,
		.type = (enum ring_type)(word >> 56),
	};
	*lines = w->type == RING_SKIP ? w->len : ring_lines(*w);
	if (*lines == 0 || *lines > rest || w->type < RING_SKIP ||
		w->type > RING_BULK)
		return RING_BROKEN;
	return RING_OK;
}

bool
ring_tell(struct ring_in *in)
{
	if (in->told == in->at)
		return false;
	in->told = in->at;
	atomic_store_explicit(&in->head->tail, in->at, memory_order_release);
	return atomic_load_explicit(&in->head->want, memory_order_relaxed) != 0;
}
