/* SPDX-License-Identifier: Apache-2.0 */
/* signo.c - see signo.h. */
#include <signal.h>
#include <stdio.h>
#include <strings.h>

#include "base/signo.h"

/* A table of ours: sigabbrev_np() came only with glibc 2.32. */
static const char *const names[] = {
	[SIGHUP] = "HUP",
	[SIGINT] = "INT",
	[SIGQUIT] = "QUIT",
	[SIGILL] = "ILL",
	[SIGTRAP] = "TRAP",
	[SIGABRT] = "ABRT",
	[SIGBUS] = "BUS",
	[SIGFPE] = "FPE",
	[SIGKILL] = "KILL",
	[SIGUSR1] = "USR1",
	[SIGSEGV] = "SEGV",
	[SIGUSR2] = "USR2",
	[SIGPIPE] = "PIPE",
#ifdef SIGSTKFLT /* not everywhere */
	[SIGSTKFLT] = "STKFLT",
#endif
	[SIGALRM] = "ALRM",
	[SIGTERM] = "TERM",
	[SIGCHLD] = "CHLD",
	[SIGCONT] = "CONT",
	[SIGSTOP] = "STOP",
	[SIGTSTP] = "TSTP",
	[SIGTTIN] = "TTIN",
	[SIGTTOU] = "TTOU",
	[SIGURG] = "URG",
	[SIGXCPU] = "XCPU",
	[SIGXFSZ] = "XFSZ",
	[SIGVTALRM] = "VTALRM",
	[SIGPROF] = "PROF",
	[SIGWINCH] = "WINCH",
	[SIGIO] = "IO",
	[SIGPWR] = "PWR",
	[SIGSYS] = "SYS",
};

#define COUNT ((int)(sizeof(names) / sizeof(names[0])))

int
signo_parse(const char *text)
{
	int number = 0;

	if (*text >= '0' && *text <= '9') {
		for (; *text >= '0' && *text <= '9' && number < NSIG; text++)
			number = number * 10 + (*text - '0');
		return *text == '\0' && number < NSIG ? number : 0;
	}
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int i = 1; i < COUNT; i++)
		if (names[i] != NULL && strcasecmp(names[i], text) == 0)
			return i;
	return 0;
}

const char *
signo_name(int signo, char *out, size_t cap)
{
	if (signo > 0 && signo < COUNT && names[signo] != NULL)
		snprintf(out, cap, "SIG%s", names[signo]);
	else
		snprintf(out, cap, "signal %d", signo);
	return out;
}

const char *
signo_short(int signo, char *out, size_t cap)
{
	if (signo > 0 && signo < COUNT && names[signo] != NULL)
		snprintf(out, cap, "%s", names[signo]);
	else
		snprintf(out, cap, "signal %d", signo);
	return out;
}
