/* SPDX-License-Identifier: Apache-2.0 */
/* prog.c - see prog.h. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/time.h>

#include "base/clock.h"
#include "tests/prog/prog.h"

void
prog_die(int sys, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "%s: %s%s%s\n", program_invocation_short_name,
		text, sys != 0 ? ": " : "", sys != 0 ? strerror(sys) : "");
	_exit(2);
}

static int64_t
unit(const char *suffix)
{
	if (*suffix == '\0')
		return 1;
	if (suffix[1] != '\0')
		return 0;
	switch (*suffix) {
	case 'k':
	case 'K':
		return 1LL << 10;
	case 'm':
	case 'M':
		return 1LL << 20;
	case 'g':
	case 'G':
		return 1LL << 30;
	default:
		return 0;
	}
}

int64_t
prog_num(const char *what, const char *text)
{
	char *end = NULL;
	int64_t value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || unit(end) == 0 ||
		__builtin_mul_overflow(value, unit(end), &value))
		prog_die(0, "%s: '%s' is not a number", what, text);
	return value;
}

int
prog_signal(const char *text)
{
	const char *name;
	int sig;

	if (strncmp(text, "SIG", 3) == 0)
		text += 3;
	for (sig = 1; sig < NSIG; sig++) {
		name = sigabbrev_np(sig);
		if (name != NULL && strcmp(name, text) == 0)
			return sig;
	}
	return (int)prog_num("signal", text);
}

/* The first of @names that is set, else NULL; @which says the one. */
static const char *
first_set(const char *const *names, int *which)
{
	const char *value;
	int i;

	for (i = 0; names[i] != NULL; i++) {
		value = getenv(names[i]);
		if (value != NULL && *value != '\0') {
			*which = i;
			return value;
		}
	}
	return NULL;
}

int64_t
prog_rank(void)
{
	static const char *const names[] = { "RANK", "XRUN_RANK", "PMI_RANK",
		"OMPI_COMM_WORLD_RANK", "PARALLEL_SEQ", NULL };
	const char *value;
	int which = 0;

	value = first_set(names, &which);
	if (value == NULL)
		return -1;
	return prog_num(names[which], value) - (which == 4 ? 1 : 0);
}

int64_t
prog_size(void)
{
	static const char *const names[] = { "WORLD_SIZE", "XRUN_SIZE",
		"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", NULL };
	const char *value;
	int which = 0;

	value = first_set(names, &which);
	return value == NULL ? 1 : prog_num(names[which], value);
}

static void
set_opt(const struct prog_opt *opt, const char *text)
{
	switch (opt->kind) {
	case PROG_FLAG:
		*(bool *)opt->to = true;
		break;
	case PROG_NUM:
		*(int64_t *)opt->to = prog_num(opt->name, text);
		break;
	case PROG_TEXT:
		*(const char **)opt->to = text;
		break;
	case PROG_SIGNAL:
		*(int *)opt->to = prog_signal(text);
		break;
	}
}

static void
print_help(const struct prog_opt *table)
{
	const struct prog_opt *opt;

	printf("usage: %s [options] [operands]\n",
		program_invocation_short_name);
	for (opt = table; opt->name != NULL; opt++)
		printf("  --%s%s  %s\n", opt->name,
			opt->kind == PROG_FLAG ? "" : " X", opt->help);
	exit(0);
}

static const struct prog_opt *
find_opt(const struct prog_opt *table, const char *name, size_t len)
{
	const struct prog_opt *opt;

	for (opt = table; opt->name != NULL; opt++)
		if (strlen(opt->name) == len &&
			memcmp(opt->name, name, len) == 0)
			return opt;
	if (len == 4 && memcmp(name, "help", 4) == 0)
		print_help(table);
	prog_die(0, "unknown option --%.*s", (int)len, name);
}

int
prog_opts(int argc, char **argv, const struct prog_opt *table)
{
	const struct prog_opt *opt;
	const char *name, *equals;
	int i;

	for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		name = argv[i] + 2;
		if (*name == '\0')
			return i + 1;
		equals = strchrnul(name, '=');
		opt = find_opt(table, name, (size_t)(equals - name));
		if (opt->kind == PROG_FLAG)
			set_opt(opt, NULL);
		else if (*equals == '=')
			set_opt(opt, equals + 1);
		else if (++i < argc)
			set_opt(opt, argv[i]);
		else
			prog_die(0, "--%s needs a value", opt->name);
	}
	return i;
}

void
prog_lifetime(int64_t ms)
{
	struct itimerval when = {
		.it_value = { .tv_sec = ms / 1000,
			.tv_usec = ms % 1000 * 1000 },
	};

	setitimer(ITIMER_REAL, &when, NULL);
}

void
prog_pause_ms(int64_t ms)
{
	struct timespec left = { .tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * NS_PER_MS };

	while (nanosleep(&left, &left) == -1 && errno == EINTR)
		;
}

void
prog_rest(void)
{
	for (;;)
		pause();
}
