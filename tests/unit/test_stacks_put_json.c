/* SPDX-License-Identifier: Apache-2.0 */
/* test_stacks_put_json.c - stacks as JSON, each byte of it. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/stacks/merge.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/put.h"

static struct stacks s;
static struct buf out;

int64_t __wrap_clock_wall(void);

int64_t
__wrap_clock_wall(void)
{
	return INT64_C(1000000000) * NS_PER_S + 5 * NS_PER_MS;
}

static void
end(void)
{
	stacks_fini(&s);
	buf_fini(&out);
}

TestSuite(stacks_put_json, .fini = end);

static void
expect_json(int at, const char *job, const char *want)
{
	const char *is;

	buf_clear(&out);
	put_json(&out, &s, job);
	is = buf_text(&out);
	cr_expect_str_eq(is, want, "line %d: %s", at, is);
}

#define JSON(job, want) expect_json(__LINE__, job, want)

Test(stacks_put_json, without_ranks)
{
	JSON(NULL,
		"{\"v\":1,\"time\":\"2001-09-09T01:46:40.005000Z\",\"seconds\":0,\"group\":[],\"rank\":[]}\n");
	s.took_ns = 1500 * NS_PER_MS;
	JSON("job",
		"{\"v\":1,\"job\":\"job\",\"time\":\"2001-09-09T01:46:40.005000Z\",\"seconds\":1.5,\"group\":[],\"rank\":[]}\n");
}

Test(stacks_put_json, all_that_may_be_known)
{
	struct process *p;
	struct thread *t;

	stacks_add_rank(&s, 3, 30);
	s.rank[0].left_out = 2;
	stacks_add_rank(&s, 4, 40);
	s.rank[1].ended = true;
	p = stacks_add_process(&s, 3, 30);
	snprintf(p->comm, sizeof(p->comm), "train");
	p->stopped = true;
	p->by = STACKS_BY_EU;
	p->python_by = "py-spy";
	t = stacks_thread(p, 30);
	snprintf(t->comm, sizeof(t->comm), "main");
	t->state = 'S';
	snprintf(t->call, sizeof(t->call), "read pipe");
	snprintf(t->wchan, sizeof(t->wchan), "pipe_read");
	parse_add(&t->python, span_of("step"), span_of("a.py"), 7);
	parse_add(&t->native, span_of("read"), span_of("libc.so.6"), 0);
	parse_add(&t->native, span_of("??"), span_of("m"), 1);
	parse_add(&t->kernel, span_of("pipe_read"), span_of(""), 0);
	t = stacks_thread(p, 31);
	t->state = 'R';
	p = stacks_add_process(&s, 3, 33);
	p->depth = 1;
	snprintf(p->why, sizeof(p->why), "no \"way\"");
	merge_stacks(&s);
	JSON("j",
		"{\"v\":1,\"job\":\"j\",\"time\":\"2001-09-09T01:46:40.005000Z\",\"seconds\":0,\"group\":[{\"ranks\":\"3\",\"count\":1,\"threads\":1,\"main\":true,\"command\":\"train\",\"stack\":\"step > [m] > read\"},{\"ranks\":\"3\",\"count\":1,\"threads\":1,\"main\":false,\"command\":\"train\",\"stack\":\"[running]\"}],\"rank\":[{\"rank\":3,\"pid\":30,\"left_out\":2,\"process\":[{\"pid\":30,\"command\":\"train\",\"depth\":0,\"by\":\"eu-stack\",\"python_by\":\"py-spy\",\"stopped\":true,\"thread\":[{\"tid\":30,\"name\":\"main\",\"state\":\"S\",\"call\":\"read pipe\",\"wchan\":\"pipe_read\",\"group\":0,\"python\":[{\"function\":\"step\",\"file\":\"a.py\",\"line\":7}],\"native\":[{\"function\":\"read\",\"file\":\"libc.so.6\"},{\"file\":\"m\",\"line\":1}],\"kernel\":[{\"function\":\"pipe_read\"}]},{\"tid\":31,\"state\":\"R\",\"group\":1}]},{\"pid\":33,\"depth\":1,\"by\":\"/proc\",\"error\":\"no \\\"way\\\"\",\"thread\":[]}]},{\"rank\":4,\"pid\":40,\"ended\":true,\"process\":[]}]}\n");
}

Test(stacks_put_json, its_memory_is_given_back)
{
	size_t before = 0;

	stacks_add_rank(&s, 3, 30);
	stacks_thread(stacks_add_process(&s, 3, 30), 30)->state = 'S';
	merge_stacks(&s);
	buf_room(&out, 4000);
	for (int i = 0; i < 20; i++) {
		buf_clear(&out);
		put_json(&out, &s, "j");
		if (i == 10)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}
