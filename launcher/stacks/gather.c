/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - see gather.h. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launcher/stacks/attach.h"
#include "launcher/stacks/gather.h"
#include "launcher/stacks/handler.h"
#include "launcher/stacks/parse.h"
#include "launcher/stacks/threads.h"
#include "launcher/stacks/tool.h"
#include "launcher/stacks/tree.h"

#define AT_ONCE_MAX 16
#define PID_ARG     "PID" /* in the table, for the process */

typedef bool parse_fn(struct span text, struct process *p);

/* In the order in which they are asked. */
enum kind { EU, GDB, PY_SPY, KINDS };

static const struct kind_row {
	const char *name;
	enum stacks_by by;
	parse_fn *parse;
	const char *args[12];
} kinds[KINDS] = {
	[EU] = { "eu-stack", STACKS_BY_EU, parse_eu, { "-m", "-p", PID_ARG } },
	[GDB] = { "gdb", STACKS_BY_GDB, parse_gdb,
		{ "-nx", "-batch", "-iex", "set auto-load local-gdbinit off",
			"-p", PID_ARG, "-ex", "thread apply all bt", "-ex",
			"thread apply all py-bt" } },
	[PY_SPY] = { "py-spy", STACKS_BY_PROC, parse_py_spy,
		{ "dump", "--pid", PID_ARG } },
};

/* A process, and what is asked about it. */
struct run {
	struct process *p;
	struct tool tool;
	enum kind kind; /* that runs, or is the next to be thought of */
	int64_t until;  /* clock_now() */
	bool running;
};

struct work {
	const struct gather *settings;
	char *file[KINDS]; /* NULL: not there */
	bool gdb_python;
	struct run *run;
	uint32_t runs, at_once, running;
	int64_t until;
	int told; /* the signal; 0 */
};

/* --- which tools ---------------------------------------------------------- */

/* Debian's python3-dbg and the like put it where gdb looks for it. */
static bool
has_gdb_python(void)
{
	DIR *dir = opendir("/usr/share/gdb/auto-load/usr/bin");
	const struct dirent *d;
	bool found = false;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		found = found || strncmp(d->d_name, "python", 6) == 0;
	if (dir != NULL)
		closedir(dir);
	return found;
}

static bool
is_python(const struct process *p)
{
	if (strncmp(p->comm, "python", 6) == 0)
		return true;
	for (uint32_t i = 0; i < p->threads; i++)
		for (uint32_t k = 0; k < p->thread[i].native.count; k++)
			if (strncmp(p->thread[i].native.at[k].function,
				    "_PyEval_Eval", 12) == 0)
				return true;
	return false;
}

static bool
is_due(const struct work *w, const struct run *r)
{
	const struct process *p = r->p;

	if (w->file[r->kind] == NULL)
		return false;
	if (r->kind == PY_SPY)
		return p->python_by == NULL && is_python(p);
	return p->by == STACKS_BY_PROC ||
		(r->kind == GDB && w->gdb_python && w->file[PY_SPY] == NULL &&
			is_python(p));
}

/* --- one of them ---------------------------------------------------------- */

static bool
begin(struct work *w, struct run *r)
{
	char *argv[16], pid[16];
	const char *const *arg = kinds[r->kind].args;
	int64_t now = clock_now();
	int n = 0;

	snprintf(pid, sizeof(pid), "%d", (int)r->p->pid);
	argv[n++] = w->file[r->kind];
	for (; *arg != NULL; arg++)
		argv[n++] = strcmp(*arg, PID_ARG) == 0 ? pid : (char *)*arg;
	argv[n] = NULL;
	/* Half of what is left, so that the next one has some. */
	r->until = now + (w->until - now) / 2;
	if (!tool_start(&r->tool, argv)) {
		snprintf(r->p->why, sizeof(r->p->why), "%s: %s", argv[0],
			strerror(errno));
		return false;
	}
	r->running = true;
	w->running++;
	return true;
}

/* The last line that a tool said, where it told nothing. */
static void
note_words(struct process *p, const char *name, struct span text)
{
	struct span line, last = { "", 0 };
	int len;

	while (parse_line(&text, &line))
		if (line.len > 0)
			last = line;
	if (last.len == 0)
		last = span_of("told nothing");
	len = last.len > 100 ? 100 : (int)last.len;
	if (last.len > strlen(name) && memcmp(last.at, name, strlen(name)) == 0)
		snprintf(p->why, sizeof(p->why), "%.*s", len, last.at);
	else
		snprintf(p->why, sizeof(p->why), "%s: %.*s", name, len,
			last.at);
	stacks_tame(p->why);
}

/* Of gdb, where the rest is known. No tool before gdb tells functions of Python. */
static void
take_python(struct process *p, struct span text)
{
	struct stacks s = { 0 };
	struct process *told = stacks_add_process(&s, p->rank, p->pid);
	struct thread *t;

	parse_gdb(text, told);
	for (uint32_t i = 0; i < told->threads; i++) {
		t = stacks_thread(p, told->thread[i].tid);
		if (t == NULL)
			continue;
		t->python = told->thread[i].python;
		told->thread[i].python = (struct frames){ 0 };
	}
	stacks_fini(&s);
}

static void
take(struct run *r, bool late)
{
	const struct kind_row *k = &kinds[r->kind];
	struct process *p = r->p;
	struct span text = { r->tool.text.data, r->tool.text.len };
	bool known = p->by != STACKS_BY_PROC;

	if (known && r->kind == GDB) {
		take_python(p, text);
	} else if (k->parse(text, p)) {
		p->by = known ? p->by : k->by;
		p->why[0] = '\0';
	} else if (!known && r->kind != PY_SPY && late) {
		snprintf(p->why, sizeof(p->why), "%s had no answer", k->name);
	} else if (!known && r->kind != PY_SPY) {
		note_words(p, k->name, text);
	}
	for (uint32_t i = 0; i < p->threads; i++)
		if (p->python_by == NULL && p->thread[i].python.count > 0)
			p->python_by = k->name;
}

static void
end(struct work *w, struct run *r, bool late)
{
	tool_read(&r->tool);
	take(r, late);
	buf_fini(&r->tool.text);
	if (!tool_end(&r->tool))
		attach_undo(r->p); /* tools crash, too */
	r->running = false;
	r->kind++;
	w->running--;
}

/* --- all of them ---------------------------------------------------------- */

static void
begin_some(struct work *w)
{
	for (uint32_t i = 0; i < w->runs && w->running < w->at_once; i++) {
		struct run *r = &w->run[i];

		while (!r->running && r->kind < KINDS)
			if (!is_due(w, r) || !begin(w, r))
				r->kind++;
	}
}

static void
hear_signal(struct work *w)
{
	struct signalfd_siginfo info;

	if (read(w->settings->signals, &info, sizeof(info)) == sizeof(info))
		w->told = (int)info.ssi_signo;
}

/* Till one ends or has had its time, or somebody says so. */
static void
wait_for_one(struct work *w, struct pollfd *fds)
{
	int64_t until = w->until, left;
	uint32_t n = 0;

	fds[n++] =
		(struct pollfd){ .fd = w->settings->signals, .events = POLLIN };
	for (uint32_t i = 0; i < w->runs; i++) {
		const struct run *r = &w->run[i];

		if (!r->running)
			continue;
		until = r->until < until ? r->until : until;
		fds[n++] = (struct pollfd){ .fd = r->tool.pidfd,
			.events = POLLIN };
		fds[n++] =
			(struct pollfd){ .fd = r->tool.out, .events = POLLIN };
	}
	left = until - clock_now();
	poll(fds, n, left > 0 ? (int)(left / NS_PER_MS) + 1 : 0);
	if (fds[0].revents != 0)
		hear_signal(w);
}

static void
turn(struct work *w, const struct pollfd *fds)
{
	int64_t now = clock_now();
	uint32_t n = 1;

	for (uint32_t i = 0; i < w->runs; i++) {
		struct run *r = &w->run[i];

		if (!r->running)
			continue;
		if (fds[n + 1].revents != 0)
			tool_read(&r->tool);
		if (fds[n].revents != 0)
			end(w, r, false);
		else if (now >= r->until || w->told != 0)
			end(w, r, true);
		n += 2;
	}
}

static void
ask(struct work *w)
{
	struct pollfd *fds = xcalloc(2 * AT_ONCE_MAX + 1, sizeof(*fds));

	begin_some(w);
	while (w->running > 0) {
		wait_for_one(w, fds);
		turn(w, fds);
		if (w->told == 0 && clock_now() < w->until)
			begin_some(w);
	}
	free(fds);
}

static uint32_t
count_at_once(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) :
							       1;

	return n * 2 < AT_ONCE_MAX ? (uint32_t)n * 2 : AT_ONCE_MAX;
}

static void
look(struct work *w, struct stacks *s)
{
	w->run = xcalloc(s->count + 1, sizeof(*w->run));
	for (uint32_t i = 0; i < s->count; i++) {
		threads_read(&s->process[i]);
		if (attach_allowed(&s->process[i]))
			w->run[w->runs++].p = &s->process[i];
	}
}

static void
say_why_not(const struct work *w, struct process *p)
{
	if (p->by != STACKS_BY_PROC || p->why[0] != '\0')
		return;
	if (w->file[EU] == NULL && w->file[GDB] == NULL)
		snprintf(p->why, sizeof(p->why),
			"neither eu-stack nor gdb is installed   try: apt-get install elfutils");
	else
		snprintf(p->why, sizeof(p->why), "there was no time for it");
}

int
gather_stacks(struct stacks *s, const struct gather *settings)
{
	int64_t begun = clock_now();
	struct work w = {
		.settings = settings,
		.at_once = count_at_once(),
		.until = begun + settings->patience,
		.gdb_python = has_gdb_python(),
	};

	for (int k = 0; k < KINDS; k++)
		w.file[k] = tool_find(kinds[k].name);
	tree_find(s);
	look(&w, s);
	ask(&w);
	if (w.told == 0)
		handler_ask(s);
	for (uint32_t i = 0; i < w.runs; i++)
		say_why_not(&w, w.run[i].p);
	for (uint32_t i = 0; i < s->count; i++)
		s->process[i].python = is_python(&s->process[i]);
	for (int k = 0; k < KINDS; k++)
		free(w.file[k]);
	free(w.run);
	s->took_ns = clock_now() - begun;
	return w.told;
}
