/* SPDX-License-Identifier: Apache-2.0 */
/* chain.c - see chain.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launcher/stacks/chain.h"
#include "launcher/stacks/name.h"

#define LINK   " > "
#define ELLIPS "... > "

/* Words of a chain, the caller's to free: at most one for each frame, of which either kind
 * has STACKS_FRAMES_MAX; or one for the kernel. */
struct words {
	char *at[2 * STACKS_FRAMES_MAX];
	uint32_t count;
};

/* One that stands there already is not said again, if it has no name. */
static void
add_word(struct words *w, char *word)
{
	bool twice = w->count > 0 && word[0] == '[' &&
		strcmp(w->at[w->count - 1], word) == 0;

	if (twice)
		free(word);
	else
		w->at[w->count++] = word;
}

static bool
interprets(const struct frames *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (strncmp(f->at[i].function, "_PyEval_Eval", 12) == 0)
			return true;
	return false;
}

static void
add_native(struct words *w, const struct frame *f, bool python)
{
	bool named = f->function[0] != '\0';

	if (python && (!named || name_is_python(f->function)))
		add_word(w, xstrdup("[python]"));
	else if (named)
		add_word(w, xstrdup(f->function));
	else if (f->file[0] == '[')
		add_word(w, xstrdup(f->file));
	else
		add_word(w,
			xasprintf("[%s]", f->file[0] != '\0' ? f->file : "?"));
}

/* In a program without names _start has none, either. @i is not the innermost frame. */
static bool
is_start(const struct frames *f, uint32_t i)
{
	return name_is_start(f->at[i].function) ||
		(f->at[i].function[0] == '\0' &&
			strcmp(f->at[i - 1].function, "libc_start_main") == 0);
}

/* What is native inside of the innermost Python function, or all of it. */
static void
add_all_native(struct words *w, const struct thread *t)
{
	const struct frames *f = &t->native;
	bool python = interprets(f);
	uint32_t from = 0, to = f->count;

	while (from + 1 < to && name_is_wait(f->at[from].function))
		from++;
	while (to > from + 1 && is_start(f, to - 1))
		to--;
	for (uint32_t i = from; python && t->python.count > 0 && i < to; i++)
		if (strncmp(f->at[i].function, "_PyEval_Eval", 12) == 0)
			to = i;
	while (to > from) {
		const struct frame *one = &f->at[--to];

		if (t->python.count == 0 || !python ||
			(one->function[0] != '\0' &&
				!name_is_python(one->function)))
			add_native(w, one, python);
	}
}

static char *
say_kernel(const struct thread *t)
{
	static const struct {
		char state;
		const char *text;
	} states[] = { { 'R', "running" }, { 'T', "stopped" },
		{ 't', "traced" }, { 'Z', "ended" }, { 'D', "uninterruptible" },
		{ 'S', "sleeping" } };
	const char *state = "";
	bool call = t->call[0] != '\0', wchan = t->wchan[0] != '\0';

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i].state == t->state)
			state = states[i].text;
	if (t->state == 'S' && (call || wchan))
		state = "";
	return xasprintf("[%s%s%s%s%s]", call ? t->call : "",
		call && wchan ? ", " : "", wchan ? t->wchan : "",
		(call || wchan) && state[0] != '\0' ? ", " : "", state);
}

static void
list_words(const struct thread *t, struct words *w)
{
	w->count = 0;
	for (uint32_t i = t->python.count; i > 0; i--)
		add_word(w, xstrdup(t->python.at[i - 1].function));
	add_all_native(w, t);
	if (w->count == 0)
		add_word(w, say_kernel(t));
}

/* The first word that stays behind the first one, so that all fit. */
static uint32_t
first_kept(const struct words *w, size_t cols)
{
	size_t len = strlen(w->at[0]);
	uint32_t kept = w->count;

	for (uint32_t i = 1; i < w->count; i++)
		len += strlen(LINK) + strlen(w->at[i]);
	if (cols == 0 || len <= cols)
		return 1;
	len = strlen(w->at[0]) + strlen(LINK ELLIPS);
	while (kept > 1) {
		len += strlen(w->at[kept - 1]) + (kept < w->count ? 3 : 0);
		if (len > cols && kept < w->count)
			break;
		kept--;
	}
	return kept;
}

void
chain_put(struct buf *out, const struct thread *t, uint32_t cols)
{
	struct words *w = xcalloc(1, sizeof(*w));
	uint32_t kept;

	list_words(t, w);
	kept = first_kept(w, cols);
	buf_put_text(out, w->at[0]);
	if (kept > 1)
		buf_put_text(out, LINK "...");
	for (uint32_t i = kept; i < w->count; i++)
		buf_fmt(out, LINK "%s", w->at[i]);
	for (uint32_t i = 0; i < w->count; i++)
		free(w->at[i]);
	free(w);
}
