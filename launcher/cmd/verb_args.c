/* SPDX-License-Identifier: Apache-2.0 */
/* verb_args.c - see verb_args.h. */
#include <string.h>

#include "launcher/cmd/say.h"
#include "launcher/cmd/verb_args.h"

static bool
add_operand(struct verb_args *args, int most, const char *verb,
	const char *word)
{
	if (args->count < most) {
		args->operand[args->count++] = word;
		return true;
	}
	say_no("%s: '%s' is one word too many   try: xrun %s -h", verb, word,
		verb);
	return false;
}

/* Words up to the next operand, and it. @at: the word before them; receives the
 * operand, or the last word. */
static bool
read_some(struct verb_args *args, int most, char **argv, char ***at)
{
	struct xr_error err = { 0 };
	int argc = 0, next = 0;
	bool rest;

	while ((*at)[argc] != NULL)
		argc++;
	if (opt_argv(&args->opts, argc, *at, &next, &err) != XR_OK) {
		say_no("%s: %s", argv[0], err.text);
		return false;
	}
	/* Behind "--" all are operands. */
	rest = next > 1 && strcmp((*at)[next - 1], "--") == 0;
	*at += next;
	while (**at != NULL) {
		if (!add_operand(args, most, argv[0], **at))
			return false;
		if (!rest || (*at)[1] == NULL)
			break;
		++*at;
	}
	return true;
}

bool
verb_args_read(struct verb_args *args, const struct opt *table, void *base,
	int most, char **argv)
{
	char **at = argv;

	*args = (struct verb_args){ .count = 0 };
	opt_init(&args->opts, table, base);
	while (*at != NULL && at[1] != NULL)
		if (!read_some(args, most, argv, &at))
			return false;
	return true;
}
