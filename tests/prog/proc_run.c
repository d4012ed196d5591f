/* SPDX-License-Identifier: Apache-2.0 */
/* proc_run.c - what the processes of proc.c run. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/final.h>

#include "tests/prog/proc.h"

static enum xr_status
say(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	size_t len;
	const char *text = xr_value_data(arg, &len);

	printf("%u: %.*s\n", ordinal, (int)len, text != NULL ? text : "");
	return XR_OK;
}

static enum xr_status
break_down(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	enum xr_status status =
		xr_error_set(err, XR_E_RANGE, "sample 1797 of 1797");

	__asm__ volatile("" ::: "memory"); /* or it is no frame */
	return status;
}

static enum xr_status
clean_badly(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	printf("cleaned\n");
	return xr_error_set(err, XR_E_STATE, "the folder is not empty");
}

static enum xr_status
clean_well(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	printf("cleaned\n");
	return XR_OK;
}

#define LONG (10 << 20)

static enum xr_status
say_much(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	struct xr_failure f = {
		.size = sizeof(f),
		.status = XR_E_CONFLICT,
		.type = "ValueError",
	};
	char *text = malloc(LONG + 1);
	enum xr_status status;

	memset(text, 'x', LONG);
	text[LONG] = '\0';
	f.text = text;
	status = xr_proc_raise(xr_value_new_error(&f), err);
	free(text);
	return status;
}

static enum xr_status
leave(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	exit((int)ordinal);
}

static enum xr_status
die(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	raise((int)ordinal);
	return XR_OK;
}

static enum xr_status
stay(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	while (pause() == -1)
		continue;
	return XR_OK;
}

/* With two below it, of which one has a session of its own. */
static enum xr_status
have_children(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	if (fork() == 0) {
		if (fork() == 0)
			setsid();
		for (;;)
			pause();
	}
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (pause() == -1)
		continue;
	return XR_OK;
}

int proc_shared = 1;

/* Memory of xrun that a program started here would have. */
static unsigned
given_away(void)
{
	char path[64], name[64];
	unsigned n = 0;
	int flags;

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		flags = fcntl(fd, F_GETFD);
		n += flags != -1 && !(flags & FD_CLOEXEC) &&
			readlink(path, name, sizeof(name)) > 12 &&
			memcmp(name, "/memfd:xrun-", 12) == 0;
	}
	return n;
}

/* What of this program's memory and environment it sees, and others would see of it. */
static enum xr_status
look_around(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	char folder[4096];

	printf("%d %s %s %u\n", proc_shared, getenv("COLOUR"),
		getcwd(folder, sizeof(folder)), given_away());
	return XR_OK;
}

static enum xr_status
nothing(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	return XR_OK;
}

void
proc_note_end(void *ctx)
{
	printf("final %s\n", (const char *)ctx);
	fflush(stdout);
}

/* Finalisers of a process that the library made are its own. */
static enum xr_status
have_finals(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	return xr_final_new(proc_note_end, "of the process", 0, NULL, err);
}

const struct proc_function proc_functions[] = {
	{ "say", say },
	{ "break_down", break_down },
	{ "clean_badly", clean_badly },
	{ "clean_well", clean_well },
	{ "say_much", say_much },
	{ "leave", leave },
	{ "die", die },
	{ "stay", stay },
	{ "have_children", have_children },
	{ "look_around", look_around },
	{ "nothing", nothing },
	{ "have_finals", have_finals },
	{ NULL, NULL },
};
