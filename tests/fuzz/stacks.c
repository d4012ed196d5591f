/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.c - fuzz target: what tools print of a process, and what is made of it.
 *
 * Input: what eu-stack, gdb and py-spy print, all at once: each takes what it
 * knows.
 *
 * Claims: no stack is longer, and no process has more threads, than may be; what is
 * put has no character that steers a terminal; each thread is of one group, and the
 * groups count all of them; the JSON passes the gate.
 */
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/put.h"
#include "tests/fuzz/fuzz.h"

static void
check_tame(const struct buf *text)
{
	for (size_t i = 0; i < text->len; i++) {
		unsigned char c = (unsigned char)text->data[i];

		HOLDS(c == '\n' || (c >= ' ' && c != 0x7f));
	}
}

static void
check_process(const struct process *p)
{
	HOLDS(p->threads <= STACKS_THREADS_MAX);
	for (uint32_t i = 0; i < p->threads; i++) {
		HOLDS(p->thread[i].native.count <= STACKS_FRAMES_MAX);
		HOLDS(p->thread[i].python.count <= STACKS_FRAMES_MAX);
	}
}

static void
check_groups(const struct stacks *s)
{
	uint32_t threads = 0;

	for (uint32_t i = 0; i < s->groups; i++) {
		HOLDS(s->group[i].threads > 0);
		HOLDS(s->group[i].ranks == 1);
		HOLDS(s->group[i].thread->group == i);
		threads += s->group[i].threads;
	}
	HOLDS(threads == s->process[0].threads);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct span all = { text, strlen(text) };
	struct stacks s = { 0 };
	struct buf out = { 0 };
	struct process *p;

	stacks_add_rank(&s, 0, 1);
	p = stacks_add_process(&s, 0, 1);
	parse_eu(all, p);
	parse_gdb(all, p);
	parse_py_spy(all, p);
	parse_faulthandler(all, p);
	check_process(p);
	merge_stacks(&s);
	check_groups(&s);
	put_table(&out, &s, 60, 0);
	put_full(&out, &s);
	check_tame(&out);
	buf_clear(&out);
	put_json(&out, &s, "k7m2");
	HOLDS(out.bad == XR_OK);
	HOLDS(gate_check("stacks", out.data, out.len, out.len, NULL) == XR_OK);
	buf_fini(&out);
	stacks_fini(&s);
	free(text);
	return 0;
}
