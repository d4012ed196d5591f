/* SPDX-License-Identifier: Apache-2.0 */
/* test_keys.c - the job's store, as it is asked on control sockets: each line and what
 * is answered, by the test's clock. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <criterion/criterion.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"
#include "launcher/job/sup.h"
#include "launcher/sup/keys.h"
#include "launcher/sup/steer.h"
#include "store/desk.h"
#include "tests/unit/short_memory.h"

#define SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
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
static int64_t now;
static char said[80 << 10]; /* to all guests, a line each */
static int closed;          /* the descriptor of the last steer_close() */
static void *watched;       /* an address, and how often it was freed */
static unsigned freed;

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
	cr_expect_null(sup.keys);
	cr_expect_eq(timers, 0);
}

TestSuite(keys, .init = begin, .fini = end);

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

static void
more(int g)
{
	said[0] = '\0';
	keys_more(&job, &guests[g]);
}

Test(keys, each_operation_has_its_answer)
{
	EXPECT_SAID("{'type':'store_set','id':1,'key':'/a','value':'YWJj'}",
		"{'type':'done','id':1}\n");
	EXPECT_SAID("{'type':'store_get','id':2,'key':'/a','seconds':0}",
		"{'type':'store_value','id':2,'value':'YWJj'}\n");
	EXPECT_SAID("{'type':'store_add','id':3,'key':'/n','by':-7}",
		"{'type':'store_sum','id':3,'sum':-7}\n");
	EXPECT_SAID("{'type':'store_check','id':4,'keys':['/a','/n']}",
		"{'type':'done','id':4,'count':2}\n");
	EXPECT_SAID("{'type':'store_wait','id':5,'keys':['/a','\\u002fn']}",
		"{'type':'done','id':5}\n");
	EXPECT_SAID(
		"{'type':'store_compare_set','id':6,'key':'/a','expected':'YWJk','value':'eA=='}",
		"{'type':'store_value','id':6,'value':'YWJj'}\n");
	EXPECT_SAID(
		"{'type':'store_compare_set','id':7,'key':'/a','expected':'YWJj','value':'eA=='}",
		"{'type':'store_value','id':7,'value':'eA=='}\n");
	EXPECT_SAID(
		"{'type':'store_compare_set','id':8,'key':'/b','expected':'eA==','value':'eA=='}",
		"{'type':'store_value','id':8}\n");
	EXPECT_SAID("{'type':'store_compare_set','id':9,'key':'/b','value':''}",
		"{'type':'store_value','id':9,'value':''}\n");
	EXPECT_SAID("{'type':'store_delete','id':10,'key':'/a'}",
		"{'type':'done','id':10,'count':1}\n");
	EXPECT_SAID("{'type':'store_delete','id':11,'key':'/a'}",
		"{'type':'done','id':11,'count':0}\n");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_eq(guests[0].wanted, 0);
}

Test(keys, messages_of_the_store_are_those_from_set_to_delete)
{
	cr_expect(keys_is(CONTROL_STORE_SET));
	cr_expect(keys_is(CONTROL_STORE_DELETE));
	cr_expect_not(keys_is(CONTROL_STORE_SET - 1));
	cr_expect_not(keys_is(CONTROL_STORE_DELETE + 1));
}

Test(keys, a_sum_beyond_2_to_the_53_is_a_text)
{
	EXPECT_SAID(
		"{'type':'store_add','id':1,'key':'/n','by':9007199254740992}",
		"{'type':'store_sum','id':1,'sum':9007199254740992}\n");
	EXPECT_SAID("{'type':'store_add','id':2,'key':'/n','by':1}",
		"{'type':'store_sum','id':2,'sum':'9007199254740993'}\n");
	EXPECT_SAID(
		"{'type':'store_add','id':3,'key':'/m','by':'-9007199254740992'}",
		"{'type':'store_sum','id':3,'sum':-9007199254740992}\n");
	EXPECT_SAID("{'type':'store_add','id':4,'key':'/m','by':-1}",
		"{'type':'store_sum','id':4,'sum':'-9007199254740993'}\n");
	EXPECT_SAID(
		"{'type':'store_add','id':5,'key':'/o','by':'-9223372036854775808'}",
		"{'type':'store_sum','id':5,'sum':'-9223372036854775808'}\n");
	EXPECT_SAID(
		"{'type':'store_add','id':6,'key':'/p','by':'0000000000000000000000000000005'}",
		"{'type':'store_sum','id':6,'sum':5}\n");
}

Test(keys, what_is_no_whole_number_is_not_added)
{
	static const char *const bad[] = { "\"\"", "\"5x\"", "\" 5\"", "\"+5\"",
		"1.5", "1e3", "true", "null", "{}", "\"9223372036854775808\"",
		"\"-9223372036854775809\"", "\"-\"",
		"\"00000000000000000000000000000005\"" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct control m = control_new(CONTROL_STORE_ADD, 1);

		m.store_add.key = "/n";
		m.store_add.by = span_of(bad[i]);
		said[0] = '\0';
		keys_asked(&job, &guests[0], &m);
		expect_refusal(XR_E_INVAL, "store_add: by is not a");
	}
	EXPECT_SAID("{'type':'store_check','id':2,'keys':['/n']}",
		"{'type':'done','id':2,'count':0}\n");
}

static void
ask_many(unsigned count)
{
	struct buf line = { 0 };

	buf_put_text(&line, "{'type':'store_check','id':1,'keys':[");
	for (unsigned i = 0; i < count; i++)
		buf_fmt(&line, "%s'k%u'", i > 0 ? "," : "", i);
	buf_put_text(&line, "]}");
	buf_put(&line, "", 1);
	ask(0, line.data);
	buf_fini(&line);
}

Test(keys, at_most_1024_keys_are_asked_for_at_once)
{
	ask_many(DESK_KEYS_MAX);
	cr_expect_str_eq(said, "{'type':'done','id':1,'count':0}\n");
	ask_many(DESK_KEYS_MAX + 1);
	expect_refusal(XR_E_RANGE, "store: more than 1024 keys");
	ask(0, "{'type':'store_wait','id':1,'keys':{}}");
	expect_refusal(XR_E_PROTO, "store: keys is not an array of");
	ask(0, "{'type':'store_check','id':1,'keys':['a',1]}");
	expect_refusal(XR_E_PROTO, "store: keys is not an array of");
	EXPECT_SAID("{'type':'store_check','id':1,'keys':[]}",
		"{'type':'done','id':1,'count':0}\n");
}

/* --- waiting ---------------------------------------------------------------- */

Test(keys, who_waits_is_held_and_has_the_value_when_it_comes)
{
	ask(0, "{'type':'store_get','id':1,'key':'/a'}");
	ask(0, "{'type':'store_wait','id':2,'keys':['/a','/b'],'seconds':5}");
	cr_expect_str_eq(said, "");
	cr_expect_eq(guests[0].held, 2);
	cr_expect_eq(due.ns, 5 * NS_PER_S);
	ask(1, "{'type':'store_set','id':3,'key':'/a','value':'eA=='}");
	cr_expect_eq(guests[0].wanted, 1);
	ask(1, "{'type':'store_set','id':4,'key':'/b','value':'eA=='}");
	more(0);
	cr_expect_str_eq(said,
		"{'type':'store_value','id':1,'value':'eA=='}\n");
	cr_expect_eq(guests[0].held, 1);
	cr_expect_eq(guests[0].wanted, 2, "there is one more");
	more(0);
	cr_expect_str_eq(said, "{'type':'done','id':2}\n");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_eq(guests[0].wanted, 2);
	/* Nothing is left; and who never asked has nothing. */
	more(0);
	more(2);
	cr_expect_str_eq(said, "");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_null(guests[2].of);
}

Test(keys, patience_ends_when_the_timer_fires)
{
	ask(0, "{'type':'store_get','id':1,'key':'/a','seconds':2}");
	ask(1, "{'type':'store_get','id':2,'key':'/a','seconds':9e9}");
	cr_expect_eq(due.ns, 2 * NS_PER_S);
	now += NS_PER_S;
	due.fn(due.ctx);
	cr_expect_eq(guests[0].wanted, 0);
	cr_expect_eq(due.ns, NS_PER_S);
	now += NS_PER_S;
	due.fn(due.ctx);
	cr_expect_eq(guests[0].wanted, 1);
	more(0);
	expect_refusal(XR_E_TIMEOUT, "");
	cr_expect_eq(guests[0].held, 0);
	cr_expect_eq(due.ns, INT64_C(9000000000) * NS_PER_S - 2 * NS_PER_S);
	keys_gone(&job, &guests[1]);
	cr_expect_eq(due.ns, -1, "nobody waits");
}

Test(keys, what_is_due_already_is_due_at_once)
{
	ask(0, "{'type':'store_get','id':1,'key':'/a','seconds':2}");
	now += 5 * NS_PER_S;
	ask(1, "{'type':'store_get','id':2,'key':'/b','seconds':9}");
	cr_expect_eq(due.ns, 0);
}

Test(keys, seconds_are_none_some_or_without_end)
{
	const char *want = refusal(XR_E_INVAL, "store: seconds are below 0");

	EXPECT_SAID("{'type':'store_get','id':1,'key':'/a','seconds':-0.1}",
		want);
	EXPECT_SAID("{'type':'store_wait','id':1,'keys':['/a'],'seconds':-1}",
		want);
	cr_expect_eq(guests[0].held, 0);
	ask(0, "{'type':'store_wait','id':1,'keys':['/a'],'seconds':0}");
	cr_expect_neq(said[0], '\0');
	cr_expect_eq(guests[0].held, 0);
	ask(0, "{'type':'store_get','id':2,'key':'/a'}");
	cr_expect_eq(due.ns, -1);
	ask(0, "{'type':'store_get','id':3,'key':'/a','seconds':9.1e9}");
	cr_expect_eq(due.ns, -1, "it may take as long as it takes");
	ask(0, "{'type':'store_get','id':4,'key':'/a','seconds':0.5}");
	cr_expect_eq(due.ns, NS_PER_S / 2);
	cr_expect_eq(guests[0].held, 3);
}

Test(keys, who_leaves_is_forgotten_and_its_memory_is_given_back)
{
	/* Somebody who never asked. */
	keys_gone(&job, &guests[0]);
	cr_expect_null(sup.keys);
	ask(0, "{'type':'store_get','id':1,'key':'/a','seconds':2}");
	ask(1, "{'type':'store_get','id':2,'key':'/a','seconds':7}");
	watched = guests[0].of;
	cr_assert_not_null(watched);
	freed = 0;
	keys_gone(&job, &guests[0]);
	cr_expect_eq(freed, 1);
	cr_expect_null(guests[0].of);
	cr_expect_eq(due.ns, 7 * NS_PER_S);
	watched = NULL;
	/* What it waited for reaches nobody. */
	ask(2, "{'type':'store_set','id':3,'key':'/a','value':'eA=='}");
	cr_expect_eq(guests[0].wanted, 0);
	cr_expect_eq(guests[1].wanted, 1);
	watched = sup.keys;
	for (int i = 1; i < GUESTS; i++)
		keys_gone(&job, &guests[i]);
	keys_close(&job);
	cr_expect_eq(freed, 2);
	watched = NULL;
}

/* --- values ----------------------------------------------------------------- */

/* A line that sets /a to @len bytes. */
static void
set_bytes(size_t len)
{
	char *bytes = calloc(1, len + 1), *text = malloc(base64_len(len) + 1);
	struct buf line = { 0 };

	cr_assert(bytes != NULL && text != NULL);
	base64_put((struct span){ bytes, len }, text);
	buf_fmt(&line, "{'type':'store_set','id':1,'key':'/a','value':'");
	buf_put_text(&line, text);
	buf_put_text(&line, "'}");
	buf_put(&line, "", 1);
	ask(0, line.data);
	buf_fini(&line);
	free(bytes);
	free(text);
}

static int
memory(size_t len, int seals)
{
	int fd = memfd_create("value", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_neq(fd, -1);
	cr_assert_eq(ftruncate(fd, (off_t)len), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Guest 0 sets /a to what came along. */
static void
set_memory(int fd, const char *answer)
{
	guests[0].fd = fd;
	ask(0, "{'type':'store_set','id':1,'key':'/a'}");
	cr_expect_eq(strncmp(said, answer, strlen(answer)), 0, "%s, not %s",
		said, answer);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

Test(keys, a_value_in_a_line_has_at_most_32_KiB)
{
	const char *beyond = "store: a value beyond 32768 bytes is sent along";
	const char *bare = "{'type':'store_value','id':2,'value':''}\n";

	for (size_t len = KEYS_INLINE - 2; len <= KEYS_INLINE; len++) {
		set_bytes(len);
		cr_expect_str_eq(said, "{'type':'done','id':1}\n");
		ask(0, "{'type':'store_get','id':2,'key':'/a'}");
		cr_expect_eq(strlen(said), base64_len(len) + strlen(bare),
			"%zu of %zu", strlen(said), len);
	}
	for (size_t len = KEYS_INLINE + 1; len <= KEYS_INLINE + 4; len++) {
		set_bytes(len);
		expect_refusal(XR_E_RANGE, beyond);
	}
	EXPECT_SAID("{'type':'store_set','id':1,'key':'/a','value':'Y'}",
		refusal(XR_E_INVAL, "store: a value is no base64"));
	EXPECT_SAID(
		"{'type':'store_compare_set','id':1,'key':'/a','expected':'Y','value':''}",
		refusal(XR_E_INVAL, "store: a value is no base64"));
	EXPECT_SAID("{'type':'store_set','id':1,'key':'/a'}",
		refusal(XR_E_INVAL, "store: there is no value"));
}

Test(keys, memory_that_is_not_sealed_is_refused_and_closed)
{
	static const int seals[] = { 0, SEALS & ~F_SEAL_SHRINK,
		SEALS & ~F_SEAL_GROW, SEALS & ~F_SEAL_WRITE };
	const char *want = refusal(XR_E_INVAL, "store: a value that is sent");
	int fd;

	for (unsigned i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		fd = memory(5, seals[i]);
		set_memory(fd, want);
		cr_expect_eq(closed, fd);
	}
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	set_memory(fd, want);
	cr_expect_eq(closed, fd);
}

Test(keys, memory_is_refused_if_it_is_too_large_or_no_descriptor_is_left)
{
	int fd = memory(STORE_VALUE_MAX + 1, SEALS);

	set_memory(fd,
		refusal(XR_E_RANGE,
			"store: a value of 67108865 bytes, at most 67108864"));
	cr_expect_eq(closed, fd);
	spares = false;
	fd = memory(5, SEALS);
	set_memory(fd, refusal(XR_E_NOMEM, "store: no descriptor is left"));
	cr_expect_eq(closed, fd);
}

Test(keys, large_memory_is_kept_and_handed_on)
{
	int fd = memory(KEYS_INLINE + 1, SEALS);

	set_memory(fd, "{'type':'done','id':1}\n");
	cr_expect(is_open(fd));
	ask(1, "{'type':'store_get','id':2,'key':'/a'}");
	cr_expect_str_eq(said, "{'type':'store_value','id':2,'size':32769}\n");
	cr_expect_eq(guests[1].sent, fd);
	guests[2].crowded = true;
	ask(2, "{'type':'store_get','id':1,'key':'/a'}");
	expect_refusal(XR_E_AGAIN, "store: no descriptor is left to send");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_not(is_open(fd));
	cr_expect_eq(closed, -1, "a small one is closed at once");
}

Test(keys, what_takes_long_to_close_is_closed_beside_the_loop)
{
	int fd = memory(1 << 20, SEALS);

	set_memory(fd, "{'type':'done','id':1}\n");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_eq(closed, -1);
	cr_expect_not(is_open(fd));
	fd = memory((1 << 20) + 1, SEALS);
	set_memory(fd, "{'type':'done','id':1}\n");
	ask(1, "{'type':'store_delete','id':3,'key':'/a'}");
	cr_expect_eq(closed, fd);
}

Test(keys, small_memory_is_read_and_closed)
{
	int fd = memfd_create("value", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(write(fd, "abc", 3), 3);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	set_memory(fd, "{'type':'done','id':1}\n");
	cr_expect_not(is_open(fd));
	ask(1, "{'type':'store_get','id':2,'key':'/a'}");
	cr_expect_str_eq(said,
		"{'type':'store_value','id':2,'value':'YWJj'}\n");
	fd = memory(KEYS_INLINE, SEALS);
	set_memory(fd, "{'type':'done','id':1}\n");
	cr_expect_not(is_open(fd));
	cr_expect_eq(closed, -1);
}

/* --- no memory -------------------------------------------------------------- */

static void
ask_short(const char *name, int fd, const char *question)
{
	bool again = true;
	char line[200];
	struct control m;

	for (unsigned n = 1; again; n++) {
		cr_assert_lt(n, 40);
		guests[0].fd = fd == -1 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
		snprintf(line, sizeof(line), "%s", question);
		turn(line, '\'', '"');
		cr_assert_eq(control_read(&m, line, strlen(line),
				     CONTROL_BY_RANK, NULL),
			XR_OK);
		said[0] = '\0';
		was_short = false;
		until_short = n;
		keys_asked(&job, &guests[0], &m);
		until_short = 0;
		again = was_short;
		if (again)
			cr_expect(strstr(said, "memory") != NULL, "%s, %u: %s",
				name, n, said);
		keys_gone(&job, &guests[0]);
		keys_close(&job);
	}
	cr_expect_str_eq(said, "{'type':'done','id':1}\n", "%s", name);
}

Test(keys, where_memory_is_short_the_request_is_refused)
{
	int fd = memory(KEYS_INLINE + 1, SEALS), small = memory(5, SEALS);

	ask_short("in the line", -1,
		"{'type':'store_set','id':1,'key':'/a','value':'eA=='}");
	ask_short("large", fd, "{'type':'store_set','id':1,'key':'/a'}");
	ask_short("small", small, "{'type':'store_set','id':1,'key':'/a'}");
	close(fd);
	close(small);
}

Test(keys, without_a_timer_there_is_no_store)
{
	no_timer = true;
	EXPECT_SAID("{'type':'store_get','id':1,'key':'/a'}",
		refusal(XR_E_NOMEM, "store: out of memory"));
	cr_expect_null(sup.keys);
	cr_expect_null(guests[0].of);
}
