/* SPDX-License-Identifier: Apache-2.0 */
/* inbox.c - see inbox.h. */
#include "worker/gang/inbox.h"

void
inbox_init(struct inbox *in)
{
	atomic_init(&in->stub.next, NULL);
	atomic_init(&in->last, &in->stub);
	atomic_init(&in->locked, false);
	atomic_init(&in->first, &in->stub);
}

static struct gang_task *
after(struct gang_task *task)
{
	return atomic_load_explicit(&task->next, memory_order_acquire);
}

/* For who takes, and for who asks whether it is empty. */
static void
go_on(struct inbox *in, struct gang_task *first)
{
	atomic_store_explicit(&in->first, first, memory_order_release);
}

/* The last one stays until there is one behind it: the stub, if nothing else is. */
static struct gang_task *
take_first(struct inbox *in)
{
	struct gang_task *task, *next;

	task = atomic_load_explicit(&in->first, memory_order_relaxed);
	next = after(task);
	if (task == &in->stub) {
		if (next == NULL)
			return NULL;
		go_on(in, next);
		task = next;
		next = after(task);
	}
	if (next == NULL && atomic_load(&in->last) == task) {
		inbox_put(in, &in->stub, &in->stub);
		next = after(task);
	}
	if (next == NULL)
		return NULL;
	go_on(in, next);
	return task;
}

uint32_t
inbox_take(struct inbox *in, struct gang_task **tasks, uint32_t most)
{
	uint32_t count = 0;

	if (inbox_empty(in) ||
		atomic_exchange_explicit(&in->locked, true,
			memory_order_acquire))
		return 0;
	while (count < most && (tasks[count] = take_first(in)) != NULL)
		count++;
	atomic_store_explicit(&in->locked, false, memory_order_release);
	return count;
}
