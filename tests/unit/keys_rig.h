/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys_rig.h - the job's store (launcher/sup/keys.h) without sockets: each line that is
 * said to it and what is answered, by the test's clock.
 *
 * For programs that are linked with own_keys (meson.build). ask() says a line; the
 * answer is in @said.
 */
#ifndef TESTS_UNIT_KEYS_RIG_H
#define TESTS_UNIT_KEYS_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"
#include "launcher/job/sup.h"
#include "launcher/sup/keys.h"
#include "launcher/sup/steer.h"
#include "store/desk.h"
#include "tests/unit/at_end.h"
#include "tests/unit/short_memory.h"

#define GUESTS 3

struct ctl_client {
	void *of;
	unsigned wanted; /* ctl_want() */
	int held;        /* ctl_hold(), in all */
	int fd;          /* that came along; -1: none */
	int sent;        /* that was sent along; -1: none */
	bool crowded;    /* no descriptor can be sent */
};

struct timer {
	timer_fn *fn;
	void *ctx;
	int64_t ns; /* -1: not armed */
};

static struct ctl_client guests[GUESTS];
static struct sup sup;
static struct job job = { .sup = &sup };
static struct timer due = { .ns = -1 };
static unsigned timers; /* that are open */
static bool no_timer, spares;
static ssize_t got = 1; /* of pread64(); 1: what it has */
static int64_t now;
static char said[80 << 10]; /* to all guests, a line each */
static int closed;          /* the descriptor of the last steer_close() */
static void *watched;       /* an address, and how often it was freed */
static unsigned freed;

static struct hash_seed seed; /* of the store */
static bool no_random;        /* the kernel gives none now */

ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags);
struct desk *__real_desk_new(const struct desk_setup *setup);
struct desk *__wrap_desk_new(const struct desk_setup *setup);
void __real_free(void *p);
void __wrap_free(void *p);
int64_t __wrap_clock_now(void);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
void __wrap_timer_disarm(struct timer *timer);
void __wrap_timer_close(struct timer *timer);
void __wrap_ctl_send(struct ctl_client *to, const struct control *m);
bool __wrap_ctl_send_fd(struct ctl_client *to, const struct control *m, int fd);
int __wrap_ctl_take_fd(struct ctl_client *from);
void __wrap_ctl_want(struct ctl_client *client);
void __wrap_ctl_hold(struct ctl_client *client, int by);
void **__wrap_ctl_of(struct ctl_client *client);
void __wrap_ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err);
void __wrap_steer_close(struct job *of, int fd);
bool __wrap_steer_spares(const struct job *of, int fd);
ssize_t __real_pread64(int fd, void *data, size_t len, off_t at);
ssize_t __wrap_pread64(int fd, void *data, size_t len, off_t at);

/* Lines have ' here where they have " on the socket. */
static void
turn(char *text, char from, char to)
{
	for (; *text != '\0'; text++)
		if (*text == from)
			*text = to;
}

void
__wrap_free(void *p)
{
	if (p != NULL && p == watched)
		freed++;
	__real_free(p);
}

ssize_t
__wrap_pread64(int fd, void *data, size_t len, off_t at)
{
	return got == 1 ? __real_pread64(fd, data, len, at) : got;
}

ssize_t
__wrap_getrandom(void *out, size_t len, unsigned flags)
{
	cr_expect_eq(flags, GRND_NONBLOCK);
	if (no_random)
		return -1;
	memset(out, 0xab, len);
	return (ssize_t)len;
}

struct desk *
__wrap_desk_new(const struct desk_setup *setup)
{
	seed = setup->seed;
	return __real_desk_new(setup);
}

int64_t
__wrap_clock_now(void)
{
	return now;
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	(void)loop;
	if (no_timer)
		return NULL;
	due = (struct timer){ fn, ctx, -1 };
	timers++;
	return &due;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	timer->ns = ns;
}

void
__wrap_timer_disarm(struct timer *timer)
{
	timer->ns = -1;
}

void
__wrap_timer_close(struct timer *timer)
{
	timers -= timer != NULL;
}

void
__wrap_ctl_send(struct ctl_client *to, const struct control *m)
{
	struct buf line = { 0 };
	size_t at = strlen(said);

	(void)to;
	until_short = 0; /* the line is the test's */
	control_put(&line, m);
	cr_assert_lt(at + line.len, sizeof(said));
	memcpy(said + at, line.data, line.len);
	said[at + line.len] = '\0';
	turn(said, '"', '\'');
	buf_fini(&line);
}

bool
__wrap_ctl_send_fd(struct ctl_client *to, const struct control *m, int fd)
{
	if (to->crowded)
		return false;
	to->sent = fd;
	__wrap_ctl_send(to, m);
	return true;
}

int
__wrap_ctl_take_fd(struct ctl_client *from)
{
	int fd = from->fd;

	from->fd = -1;
	return fd;
}

void
__wrap_ctl_want(struct ctl_client *client)
{
	client->wanted++;
}

void
__wrap_ctl_hold(struct ctl_client *client, int by)
{
	client->held += by;
}

void **
__wrap_ctl_of(struct ctl_client *client)
{
	return &client->of;
}

void
__wrap_ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err)
{
	size_t at = strlen(said);

	(void)to;
	snprintf(said + at, sizeof(said) - at, "%lld: %s: %s\n", (long long)id,
		xr_status_name(status), err->text);
}

void
__wrap_steer_close(struct job *of, int fd)
{
	(void)of;
	closed = fd;
	close(fd);
}

bool
__wrap_steer_spares(const struct job *of, int fd)
{
	(void)of;
	(void)fd;
	return spares;
}

static void
begin(void)
{
	for (int i = 0; i < GUESTS; i++)
		guests[i] = (struct ctl_client){ .fd = -1, .sent = -1 };
	spares = true;
	closed = -1;
	now = 100 * NS_PER_S;
}

static void
end(void)
{
	for (int i = 0; i < GUESTS; i++)
		keys_gone(&job, &guests[i]);
	keys_close(&job);
	AT_END(sup.keys == NULL);
	AT_END(timers == 0);
}

/* --- asking ----------------------------------------------------------------- */

/* Guest @g says the line, and what is said then stands in @said alone. */
static void
ask(int g, const char *text)
{
	size_t len = strlen(text);
	char *line = malloc(len + 1);
	struct xr_error err = { 0 };
	struct control m;

	cr_assert_not_null(line);
	memcpy(line, text, len + 1);
	turn(line, '\'', '"');
	cr_assert_eq(control_read(&m, line, len, CONTROL_BY_RANK, &err), XR_OK,
		"%.100s: %s", text, err.text);
	cr_assert(keys_is(m.type));
	said[0] = '\0';
	keys_asked(&job, &guests[g], &m);
	free(line);
}

static void
expect(int line, const char *question, const char *answer)
{
	ask(0, question);
	cr_expect_eq(strncmp(said, answer, strlen(answer)), 0,
		"line %d: %.100s: '%.200s', not '%.200s'", line, question, said,
		answer);
}

#define EXPECT_SAID(question, answer) expect(__LINE__, question, answer)

static const char *
refusal(enum xr_status status, const char *why)
{
	static char text[200];

	snprintf(text, sizeof(text), "1: %s: %s", xr_status_name(status), why);
	return text;
}

static void
expect_refusal(enum xr_status status, const char *why)
{
	const char *want = refusal(status, why);

	cr_expect_eq(strncmp(said, want, strlen(want)), 0, "%s, not %s", said,
		want);
}

#endif /* TESTS_UNIT_KEYS_RIG_H */
