/* SPDX-License-Identifier: Apache-2.0 */
/* line_fault.c - see line_fault.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/fault/line_fault.h"
#include "tests/prog/prog.h"

enum operand { NOTHING, COUNT, MAYBE, TIME };

static const struct word {
	const char *name;
	enum operand operand;
} words[LINE_FAULTS] = {
	[DELAY] = { "delay", TIME },
	[RATE] = { "rate", COUNT },
	[BYTES] = { "bytes", COUNT },
	[CORRUPT] = { "corrupt", COUNT },
	[STALL] = { "stall", NOTHING },
	[DROP] = { "drop", NOTHING },
	[RESET] = { "reset", MAYBE },
	[HALF_OPEN] = { "half-open", MAYBE },
};

/* A text, taken apart; value is "" where there is none. */
struct said {
	const char *text;
	char word[4][32];
	const char *name, *value;
	enum line_way first, last;
};

static int64_t
time_of(const char *text)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = { { "us", NS_PER_US }, { "ms", NS_PER_MS },
		{ "s", NS_PER_S } };
	char *end = NULL;
	long n = strtol(text, &end, 10);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != text && strcmp(end, units[i].name) == 0 && n >= 0 &&
			n <= 1000000)
			return n * units[i].ns;
	prog_die(0, "delay: '%s' is not a time such as 200ms", text);
}

static int64_t
value_of(const struct word *word, const char *text)
{
	int64_t n;

	if (word->operand == TIME)
		return time_of(text);
	if (*text == '\0' && word->operand != COUNT)
		return 0;
	if (word->operand == NOTHING)
		prog_die(0, "%s takes nothing", word->name);
	n = prog_num(word->name, text);
	if (n < (word->operand == COUNT ? 1 : 0))
		prog_die(0, "%s: %s is too small", word->name, text);
	return n;
}

static enum line_fault
fault_of(const char *name)
{
	for (enum line_fault f = 0; f < LINE_FAULTS; f++)
		if (strcmp(words[f].name, name) == 0)
			return f;
	prog_die(0, "no fault is called '%s'", name);
}

static void
take_apart(struct said *s, const char *text)
{
	int n, name;

	memset(s, 0, sizeof(*s));
	s->text = text;
	n = sscanf(text, "%31s %31s %31s %31s", s->word[0], s->word[1],
		s->word[2], s->word[3]);
	s->last = DOWN;
	if (strcmp(s->word[0], "up") == 0)
		s->last = UP;
	if (strcmp(s->word[0], "down") == 0)
		s->first = DOWN;
	name = s->first == s->last ? 1 : 0;
	if (n < name + 1 || n > name + 2)
		prog_die(0, "'%s' is not [up|down] FAULT [VALUE]", text);
	s->name = s->word[name];
	s->value = s->word[name + 1];
}

/* What is of the whole proxy; false: it is another word. */
static bool
set_whole(struct line_faults *faults, const struct said *s)
{
	bool ok = strcmp(s->name, "ok") == 0;
	bool both = s->first != s->last;

	if (!ok && strcmp(s->name, "refuse") != 0)
		return false;
	if (s->value[0] != '\0')
		prog_die(0, "%s takes nothing", s->name);
	if (!ok && !both)
		prog_die(0, "refuse has no direction");
	if (both)
		faults->refuse = !ok;
	for (enum line_way w = s->first; ok && w <= s->last; w++)
		for (enum line_fault f = 0; f < LINE_FAULTS; f++)
			faults->set[w][f] = OFF;
	return true;
}

void
line_fault_set(struct line_faults *faults, const char *text)
{
	enum line_fault fault;
	struct said s;

	take_apart(&s, text);
	for (enum line_way w = UP; w < WAYS; w++)
		faults->fresh[w] = w >= s.first && w <= s.last;
	if (set_whole(faults, &s))
		return;
	fault = fault_of(s.name);
	if (fault == HALF_OPEN && s.first != s.last)
		prog_die(0, "half-open: say up or down");
	for (enum line_way w = s.first; w <= s.last; w++)
		faults->set[w][fault] = value_of(&words[fault], s.value);
}
