/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "launcher/stacks/stacks.h"

void
stacks_add_rank(struct stacks *s, uint32_t rank, pid_t pid)
{
	s->rank = xrealloc(s->rank, (s->ranks + 1) * sizeof(*s->rank));
	s->rank[s->ranks++] = (struct stacks_rank){ .rank = rank, .pid = pid };
}

struct process *
stacks_add_process(struct stacks *s, uint32_t rank, pid_t pid)
{
	struct process *p;

	s->process = xrealloc(s->process, (s->count + 1) * sizeof(*p));
	p = &s->process[s->count++];
	*p = (struct process){ .rank = rank, .pid = pid };
	return p;
}

struct thread *
stacks_thread(struct process *p, pid_t tid)
{
	for (uint32_t i = 0; i < p->threads; i++)
		if (p->thread[i].tid == tid)
			return &p->thread[i];
	if (p->threads == STACKS_THREADS_MAX)
		return NULL;
	p->thread = xrealloc(p->thread, (p->threads + 1) * sizeof(*p->thread));
	p->thread[p->threads] = (struct thread){ .tid = tid, .state = '?' };
	return &p->thread[p->threads++];
}

void
stacks_add_frame(struct frames *f, const struct frame *frame)
{
	struct frame *at;

	if (f->count == STACKS_FRAMES_MAX)
		return;
	f->at = xrealloc(f->at, (f->count + 1) * sizeof(*f->at));
	at = &f->at[f->count++];
	*at = (struct frame){
		.function = xstrdup(frame->function),
		.file = xstrdup(frame->file),
		.line = frame->line,
	};
}

static void
frames_fini(struct frames *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		free(f->at[i].function);
		free(f->at[i].file);
	}
	free(f->at);
	*f = (struct frames){ 0 };
}

void
stacks_fini(struct stacks *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		for (uint32_t k = 0; k < s->process[i].threads; k++) {
			frames_fini(&s->process[i].thread[k].native);
			frames_fini(&s->process[i].thread[k].python);
			frames_fini(&s->process[i].thread[k].kernel);
		}
		free(s->process[i].thread);
	}
	free(s->process);
	free(s->rank);
	free(s->group);
	*s = (struct stacks){ 0 };
}

void
stacks_tame(char *name)
{
	for (char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	utf8_tame(name, false);
}

const char *
stacks_by_name(enum stacks_by by)
{
	static const char *const names[] = {
		[STACKS_BY_PROC] = "/proc",
		[STACKS_BY_EU] = "eu-stack",
		[STACKS_BY_GDB] = "gdb",
	};

	return names[by];
}
