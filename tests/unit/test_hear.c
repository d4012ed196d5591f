/* SPDX-License-Identifier: Apache-2.0 */
/* test_hear.c - what ranks tell through the descriptor that all of them have. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "launcher/keeper/keeper.h"
#include "launcher/sup/hear.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/gauges.h"
#include "proc/spawn.h"
#include "tests/unit/forked.h"
#include "tests/unit/noted.h"

static struct rank ranks[3];
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.page = &page,
	.plan = { .size = 13, .first = 10, .local_size = 3 },
};
static struct {
	pid_t session; /* of getsid(2) */
	bool no_slot, spares, sent;

} played;
static int their = -1; /* the ranks' end */
static void (*on_told)(int fd, void *ctx);

int __wrap_spawn_slot_set(int slot, int fd);
pid_t __wrap_getsid(pid_t pid);
void __wrap_steer_admit(struct job *j, int fd, uint32_t r);
void __wrap_steer_close(void *j, int fd);
bool __wrap_steer_spares(struct job *j, int fd);
bool __wrap_gauges_sent(struct job *j, uint32_t r, pid_t pid, int fd);
void __wrap_steer_told(struct job *j, uint32_t r, const struct control *m);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct watch *__wrap_watch_open(struct loop *loop, int fd, bool writable,
	watch_fn *fn, void *ctx);
void __wrap_watch_close(struct watch *watch);

int
__wrap_spawn_slot_set(int slot, int fd)
{
	EXPECT_EQ(slot, SPAWN_SLOT_CONTROL);
	if (played.no_slot)
		return -1;
	their = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return 0;
}

pid_t
__wrap_getsid(pid_t pid)
{
	EXPECT_EQ(pid, getpid());
	return played.session;
}

void
__wrap_steer_admit(struct job *j, int fd, uint32_t r)
{
	EXPECT(j == &job);
	note("admit:%d,%u ", fcntl(fd, F_GETFD), r);
	close(fd);
}

void
__wrap_steer_close(void *j, int fd)
{
	EXPECT(j == &job);
	note("close:%d ", fcntl(fd, F_GETFD));
	close(fd);
}

bool
__wrap_steer_spares(struct job *j, int fd)
{
	EXPECT(j == &job && fd != -1);
	return played.spares;
}

bool
__wrap_gauges_sent(struct job *j, uint32_t r, pid_t pid, int fd)
{
	EXPECT(j == &job);
	EXPECT_EQ(pid, getpid());
	note("gauges:%u ", r);
	if (played.sent)
		close(fd);
	return played.sent;
}

void
__wrap_steer_told(struct job *j, uint32_t r, const struct control *m)
{
	EXPECT(j == &job);
	note("%s:%u ", control_rows[m->type].name, r);
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("[%s] ", text);
}

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool writable, watch_fn *fn,
	void *ctx)
{
	(void)loop;
	EXPECT_EQ(fd, job.hear_fd);
	EXPECT(!writable && ctx == &job);
	on_told = fn;
	return (struct watch *)&job;
}

void
__wrap_watch_close(struct watch *watch)
{
	note("unwatch:%d ", watch == (struct watch *)&job);
}

static void
begin(void)
{
	struct stat st;
	char name[64];

	for (int i = 0; i < 3; i++)
		ranks[i].pid = 1000000 + i;
	ranks[1].pid = getpid();
	hear_open(&job);
	NEED(job.hear_fd != -1 && their != -1);
	NEED(fstat(their, &st) == 0);
	snprintf(name, sizeof(name), "97:%llu", (unsigned long long)st.st_ino);
	EXPECT_STR(job.hear_name, name);
	EXPECT_EQ(fcntl(job.hear_fd, F_GETFD), FD_CLOEXEC);
}

static void
say(const char *text)
{
	NEED(send(their, text, strlen(text), 0) == (ssize_t)strlen(text));
}

/* With @count descriptors. */
static void
say_with(const char *text, int count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(16 * sizeof(int))];
	} a = { 0 };
	struct iovec io = { (void *)text, strlen(text) };
	struct msghdr h = { .msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &a,
		.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	for (int i = 0; i < count; i++)
		memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &their,
			sizeof(int));
	NEED(sendmsg(their, &h, 0) == (ssize_t)strlen(text));
}

/* What is done about all that was said. */
static void
expect(int line, const char *text)
{
	done[0] = '\0';
	EXPECT(hear_turn(&job));
	if (strcmp(done, text) != 0)
		forked_note(line, "'%s', not '%s'", done, text);
}

#define EXPECT_DONE(text) expect(__LINE__, text)

FORKED_TEST(hear, who_tells_is_known_by_the_kernel)
{
	begin();
	say("{\"type\":\"ready\"}");
	EXPECT_DONE("ready:1 ");
	say("{\"type\":\"ready\",\"rank\":12}\n\n");
	EXPECT_DONE("ready:1 ");
	say("{\"type\":\"progress\",\"step\":3}\n");
	say("{\"type\":\"ready\"}\n");
	EXPECT_DONE("progress:1 ready:1 ");
	/* One that a rank has made. */
	ranks[1].pid = 1000001;
	played.session = 1000002;
	say("{\"type\":\"ready\",\"rank\":10}\n");
	EXPECT_DONE("ready:2 ");
	/* One of another session. */
	played.session = 5;
	ranks[0].pid = 0;
	for (int rank = 9; rank <= 13; rank++) {
		char text[64], want[16] = "";

		snprintf(text, sizeof(text), "{\"type\":\"ready\",\"rank\":%d}",
			rank);
		if (rank >= 10 && rank <= 12)
			snprintf(want, sizeof(want), "ready:%d ", rank - 10);
		say(text);
		EXPECT_DONE(want);
	}
	/* One that has no session. */
	ranks[1].pid = -1;
	played.session = -1;
	say("{\"type\":\"ready\",\"rank\":12}\n");
	EXPECT_DONE("ready:2 ");
	ranks[1].pid = 0;
	played.session = 0;
	say("{\"type\":\"ready\",\"rank\":12}\n");
	EXPECT_DONE("ready:2 ");
}

FORKED_TEST(hear, each_message_may_say_whose_it_is)
{
	static const char *const rows[][2] = {
		{ "{\"type\":\"hello\",\"rank\":12}", "hello:2 " },
		{ "{\"type\":\"ready\",\"rank\":12}", "ready:2 " },
		{ "{\"type\":\"progress\",\"step\":1,\"rank\":12}",
			"progress:2 " },
		{ "{\"type\":\"grace\",\"seconds\":1,\"rank\":12}",
			"grace:2 " },
		{ "{\"type\":\"lost\",\"rank\":12,\"peer\":11}", "lost:2 " },
		{ "{\"type\":\"rpc\",\"rank\":12,\"errors\":0,\"timeouts\":0,"
		  "\"oneway\":0,\"served\":0,\"bytes_out\":0,\"bytes_in\":0,"
		  "\"call_ns\":0,\"latency\":[]}",
			"rpc:2 " },
		{ "{\"type\":\"gauges\",\"rank\":12}", "" },
	};

	begin();
	ranks[1].pid = 1000001;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		say(rows[i][0]);
		EXPECT_DONE(rows[i][1]);
	}
}

FORKED_TEST(hear, what_is_no_message_is_told_of_once)
{
	begin();
	say("hello");
	EXPECT_DONE("");
	EXPECT(sup.odd_told);
	sup.odd_told = false;
	job.opt.verbose = true;
	say("{\"type\":\"nonsense\"}");
	EXPECT_DONE("[xrun: something was told to descriptor 97 that is no "
		    "message: message: there is no type \"nonsense\" here] ");
	say("{\"type\":\"nonsense\"}");
	EXPECT_DONE("");
	sup.odd_told = false;
	say("{\"type\":\"store_delete\",\"id\":1,\"key\":\"a\"}");
	EXPECT_DONE("[xrun: something was told to descriptor 97 that is no "
		    "message: the store is asked on a connection of its own] ");
	sup.odd_told = false;
	ranks[1].pid = 1000001;
	say("{\"type\":\"ready\"}");
	EXPECT_DONE("[xrun: something was told to descriptor 97 that is no "
		    "message: nobody knows which rank it is from] ");
}

FORKED_TEST(hear, a_connection_comes_along)
{
	begin();
	say("{\"type\":\"hello\"}");
	EXPECT_DONE("hello:1 ");
	say_with("{\"type\":\"hello\"}", 1);
	EXPECT_DONE("admit:1,1 ");
	say_with("{\"type\":\"hello\"}", 3);
	EXPECT_DONE("close:1 close:1 admit:1,1 ");
	say_with("{\"type\":\"ready\"}", 1);
	EXPECT_DONE("ready:1 close:1 ");
	say_with("x", 2);
	EXPECT_DONE("close:1 close:1 ");
	say_with("", 1); /* an empty one is a message, too */
	say("{\"type\":\"ready\"}");
	EXPECT_DONE("close:1 ready:1 ");
	say_with("{\"type\":\"gauges\"}", 1);
	EXPECT_DONE("close:1 ");
	played.spares = true;
	say_with("{\"type\":\"gauges\"}", 1);
	EXPECT_DONE("gauges:1 close:1 ");
	played.sent = true;
	say_with("{\"type\":\"gauges\"}", 1);
	EXPECT_DONE("gauges:1 ");
	say("{\"type\":\"gauges\"}");
	EXPECT_DONE("");
}

/* A message of @size bytes. */
static void
say_long(size_t size)
{
	static char text[(64 << 10) + 2];

	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"type\":\"ready\"}", 16);
	NEED(send(their, text, size, 0) == (ssize_t)size);
}

FORKED_TEST(hear, a_message_has_a_limit)
{
	begin();
	say_long(64 << 10);
	done[0] = '\0';
	EXPECT(!hear_turn(&job)); /* that is a turn's */
	EXPECT_STR(done, "ready:1 ");
	EXPECT(hear_turn(&job));
	say_long((64 << 10) - 1);
	say_long(16);
	say_long(16);
	done[0] = '\0';
	EXPECT(!hear_turn(&job));
	EXPECT_STR(done, "ready:1 ready:1 ");
	EXPECT_DONE("ready:1 ");
	say_long((64 << 10) + 1);
	EXPECT_DONE("");
	EXPECT(sup.odd_told);
}

FORKED_TEST(hear, a_turn_has_a_limit)
{
	int on = 1 << 20;

	begin();
	setsockopt(their, SOL_SOCKET, SO_SNDBUF, &on, sizeof(on));
	for (int i = 0; i < 65; i++)
		say("{\"type\":\"ready\"}");
	EXPECT(!hear_turn(&job));
	EXPECT_DONE("ready:1 ");
	hear_begin(&job);
	NEED(on_told != NULL);
	say("{\"type\":\"ready\"}");
	done[0] = '\0';
	on_told(job.hear_fd, &job);
	EXPECT_STR(done, "ready:1 ");
	EXPECT(sup.hear == (struct watch *)&job);
}

FORKED_TEST(hear, it_stays_for_the_next_attempt)
{
	int fd;

	begin();
	hear_begin(&job);
	fd = job.hear_fd;
	page.again.due = 1;
	for (int i = 0; i < 5; i++)
		say("{\"type\":\"ready\"}");
	done[0] = '\0';
	hear_close(&job);
	EXPECT_STR(done, "unwatch:1 ");
	EXPECT(sup.hear == NULL);
	EXPECT_EQ(job.hear_fd, fd);
	EXPECT(fcntl(fd, F_GETFD) != -1);
	EXPECT_DONE(""); /* what the dead said is gone */
	page.again.due = 0;
	done[0] = '\0';
	hear_close(&job);
	EXPECT_STR(done, "unwatch:0 ");
	EXPECT_EQ(job.hear_fd, -1);
	EXPECT_EQ(fcntl(fd, F_GETFD), -1);
	EXPECT_DONE("");
	on_told = NULL;
	hear_begin(&job);
	EXPECT(on_told == NULL);
	page.again.due = 1;
	hear_close(&job);
	hear_promise(&job);
	EXPECT_STR(job.hear_name, "97:0");
}

FORKED_TEST(hear, without_a_slot_there_is_none)
{
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int second = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(lowest);
	close(second);
	played.no_slot = true;
	job.hear_name[0] = '\0';
	hear_open(&job);
	EXPECT_EQ(job.hear_fd, -1);
	EXPECT_STR(job.hear_name, "");
	EXPECT_EQ(fcntl(lowest, F_GETFD), -1);
	played.no_slot = false;
	hear_open(&job);
	EXPECT(job.hear_fd != -1);
	close(job.hear_fd);
	close(their);
	EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), lowest);
	EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), second);
}
