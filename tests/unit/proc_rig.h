/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_rig.h - functions that processes run, and starting those by fork or by a zygote
 * that was forked here. Time passes by waits only, of which those up to 9 s are over at
 * once, and are noted. For programs with short_memory, own_clock and their own poll() (meson.build).
 */
#ifndef TESTS_UNIT_PROC_RIG_H
#define TESTS_UNIT_PROC_RIG_H

#include <poll.h>
#include <pthread.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <xrun/proc.h>
#include <xrun/spawn.h>

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/proc/card.h"
#include "worker/proc/final.h"
#include "worker/proc/meet.h"
#include "worker/proc/proc.h"
#include "worker/proc/zygote.h"

static struct xr_error error;
static const char of; /* what a zygote is forked for */

/* --- the clock, and who waits ---------------------------------------------------- */

#define NOW (1000 * NS_PER_S)

int64_t __wrap_clock_now(void);
int __real_poll(struct pollfd *on, nfds_t n, int ms);
int __wrap_poll(struct pollfd *on, nfds_t n, int ms);

static int64_t passed;     /* since then */
static int most_ms = 9000; /* waits of up to that are over at once */
static bool patient;       /* no wait ends by its time */
static int asked_ms[4];
static unsigned asked;
static void (*at_clock)(bool waits); /* at clock readings and waits */

int64_t
__wrap_clock_now(void)
{
	if (at_clock != NULL)
		at_clock(false);
	return NOW + passed;
}

int
__wrap_poll(struct pollfd *on, nfds_t n, int ms)
{
	int ready;

	if (at_clock != NULL && ms != 0)
		at_clock(true);
	if (patient && ms > 0)
		ms = -1;
	if (ms <= 0 || ms > most_ms)
		return __real_poll(on, n, ms);
	if (asked < 4)
		asked_ms[asked++] = ms;
	ready = __real_poll(on, n, 0);
	if (ready == 0)
		passed += ms * NS_PER_MS;
	return ready;
}

/* --- functions -------------------------------------------------------------------- */

static int changed; /* what a fork has, and what is executed has not */

static enum xr_status
exits(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)arg;
	(void)ctx;
	(void)err;
	_exit((int)ordinal);
}

static enum xr_status
leaves(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)arg;
	(void)ctx;
	(void)err;
	exit((int)ordinal);
}

static enum xr_status
dies(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)arg;
	(void)ctx;
	(void)err;
	sigaction((int)ordinal, &(struct sigaction){ .sa_handler = SIG_DFL },
		NULL);
	kill(getpid(), (int)ordinal);
	return XR_OK;
}

static enum xr_status
fails(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	return xr_error_set(err, XR_E_CLOSED, "it failed");
}

/* Ends with the byte that comes from descriptor @ordinal, or with 99 at its end. */
static enum xr_status
reads(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	unsigned char code = 99;

	(void)arg;
	(void)ctx;
	(void)err;
	_exit(read((int)ordinal, &code, 1) == -1 ? 98 : code);
}

/* Does not end by SIGTERM; says so. */
static enum xr_status
stays(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)arg;
	(void)ctx;
	(void)err;
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	NEED(write((int)ordinal, "s", 1) == 1);
	while (pause() == -1)
		continue;
	return XR_OK;
}

/* Has a child that waits as it does; both have descriptor @ordinal. */
static enum xr_status
descends(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	pid_t pid = fork();

	(void)arg;
	(void)ctx;
	(void)err;
	if (pid == 0)
		NEED(write((int)ordinal, "d", 1) == 1);
	while (pause() == -1)
		continue;
	return XR_OK;
}

/* Says on standard output where it is and what it has. */
static enum xr_status
tells(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	const char *value = getenv("TOLD"), *other = getenv("OTHER"), *text;
	char folder[256] = "";
	size_t len = 0;
	sigset_t mask;

	(void)ctx;
	(void)err;
	text = xr_value_kind(arg) == XR_BYTES ? xr_value_data(arg, &len) : "";
	sigprocmask(SIG_SETMASK, NULL, &mask);
	dprintf(STDOUT_FILENO,
		"%u %.*s; %s; TOLD=%s OTHER=%s; %s; %s; memory %d", ordinal,
		(int)(len < 20 ? len : 20), text,
		getcwd(folder, sizeof(folder)), value != NULL ? value : "",
		other != NULL ? other : "", meet_is_here() ? "meets" : "alone",
		sigismember(&mask, SIGUSR2) ? "blocked" : "open", changed);
	return XR_OK;
}

/* Fails if it has standard input, output or error. */
static enum xr_status
lacks_stdio(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	(void)ctx;
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			return xr_error_set(err, XR_E_EXISTS, "one is there");
	return XR_OK;
}

static void
have_enough(void)
{
	until_short = 0;
}

static inline void
register_all(void)
{
	static const struct {
		const char *name;
		xr_proc_fn *fn;
	} all[] = {
		{ "exits", exits },
		{ "leaves", leaves },
		{ "dies", dies },
		{ "fails", fails },
		{ "reads", reads },
		{ "stays", stays },
		{ "descends", descends },
		{ "tells", tells },
		{ "lacks stdio", lacks_stdio },
	};
	static char name[128];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		NEED(xr_proc_register(all[i].name, all[i].fn, NULL, NULL) ==
			XR_OK);
	memset(name, 'n', 127);
	NEED(xr_proc_register(name, exits, NULL, NULL) == XR_OK);
	pthread_atfork(NULL, NULL, have_enough);
}

/* A child that executes this program runs its card before main(). */
__attribute__((constructor)) static void
run_card_if_any(void)
{
	if (getenv(CARD_VARIABLE) == NULL)
		return;
	if (xr_proc_register("tells", tells, NULL, NULL) != XR_OK)
		_exit(90);
	xr_init(NULL);
	_exit(91);
}

/* --- starting --------------------------------------------------------------------- */

static bool by_zygote; /* else by fork */

static inline struct xr_proc *
start_with(struct xr_proc_opts o, struct proc_more more)
{
	struct xr_proc *proc = NULL;
	enum xr_status status;

	o.size = sizeof(o);
	if (by_zygote)
		more.of = &of;
	else
		o.method = "fork";
	status = proc_start(&o, &more, &proc, &error);
	if (status != XR_OK)
		forked_note(__LINE__, "%s", error.text);
	NEED(status == XR_OK);
	return proc;
}

static inline struct xr_proc *
start(const char *func, uint32_t ordinal)
{
	return start_with((struct xr_proc_opts){ .func = func,
				  .ordinal = ordinal },
		(struct proc_more){ .place = -1 });
}

/* Runs @body with processes of both kinds. */
static inline void
of_both(void (*body)(void))
{
	register_all();
	body();
	NEED(zygote_fork(&of, &error) == XR_OK);
	by_zygote = true;
	body();
	zygote_end(&of);
	zygote_end(&of); /* there is none any more */
	zygote_end_all();
}

static inline void
expect_end(struct xr_proc *proc, int code, int sig)
{
	struct xr_proc_end how = { .size = sizeof(how), -2, -2 };

	EXPECT_EQ(xr_proc_wait(proc, XR_TIMEOUT_NEVER, &how, &error), XR_OK);
	EXPECT_EQ(how.code, code);
	EXPECT_EQ(how.signal, sig);
	EXPECT_EQ(how.size, sizeof(how));
}

/* Expects @status of xr_proc_watch(), and "NAME (process PID)@text". */
static inline void
expect_watched(struct xr_proc *proc, enum xr_status status, const char *text)
{
	char want[300] = "";

	memset(&error, 0, sizeof(error));
	if (status != XR_OK)
		snprintf(want, sizeof(want), "%s (process %d)%s",
			xr_proc_name(proc), xr_proc_pid(proc), text);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(xr_proc_watch(proc, XR_TIMEOUT_NEVER, &error),
			status);
		EXPECT_STR(error.text, want);
	}
}

static inline unsigned
descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

#endif /* TESTS_UNIT_PROC_RIG_H */
