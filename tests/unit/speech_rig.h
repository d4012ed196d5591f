/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speech_rig.h - a supervisor that serves a store on a control socket: it greets, and
 * answers each line with the next reply. speech_begin() makes a folder and the socket
 * in it; start() or opened() begin its thread, which finish() awaits.
 */
#ifndef TESTS_UNIT_SPEECH_RIG_H
#define TESTS_UNIT_SPEECH_RIG_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <xrun/store.h>

#include "base/clock.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"

#define WELCOME   "{\"type\":\"welcome\",\"v\":1,\"job\":\"k7m2\",\"pid\":1}\n"
#define LINES     12
#define LINE_MAX_ (2 << 20)

/* What the supervisor does: it greets, and answers each line with the next reply. */
static struct {
	const char *greeting;
	const char *const
		*replies;       /* NULL at the end: the connection is closed */
	char heard[LINES][256]; /* the lines, cut off */
	off_t memory[LINES];    /* bytes of the memfd of a line; -1 */
	int lines;
} talk;

static struct sockaddr_un place = { .sun_family = AF_UNIX,
	.sun_path = "control" };
static int listener = -1;
static struct xr_error err;
static char address[PATH_MAX + 32];

static inline void
listen_here(void)
{
	unlink("control");
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&place, sizeof(place)),
		0);
	cr_assert_eq(listen(listener, 8), 0);
}

static inline void
speech_begin(void)
{
	folder_make();
	listen_here();
	snprintf(address, sizeof(address), "control:%s/control", folder);
	unsetenv("XRUN_JOB");
	unsetenv("XRUN_CONTROL_FD");
}

static inline void
speech_end(void)
{
	close(listener);
	folder_remove();
}

/* --- the supervisor -------------------------------------------------------- */

static inline ssize_t
take_some(int fd, char *at, size_t room, int *memory)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { at, room };
	struct msghdr m = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	if (c != NULL)
		memcpy(memory, CMSG_DATA(c), sizeof(*memory));
	return n;
}

/* False: the client has closed the connection. */
static inline bool
hear_line(int fd)
{
	static char line[LINE_MAX_];
	char *heard = talk.heard[talk.lines];
	struct stat st = { .st_size = -1 };
	size_t len = 0;
	int memory = -1;

	while (len == 0 || line[len - 1] != '\n') {
		ssize_t n =
			take_some(fd, line + len, sizeof(line) - len, &memory);

		if (n <= 0)
			return false;
		len += (size_t)n;
	}
	snprintf(heard, sizeof(talk.heard[0]), "%.*s", (int)len - 1, line);
	if (memory != -1) {
		fstat(memory, &st);
		close(memory);
	}
	talk.memory[talk.lines++] = st.st_size;
	return true;
}

static inline void
say(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static inline void *
supervise(void *ctx)
{
	int fd = ctx == NULL ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) :
			       *(int *)ctx;
	const char *const *reply = talk.replies;

	say(fd, talk.greeting);
	while (reply != NULL && *reply != NULL && hear_line(fd))
		say(fd, *reply++);
	if (reply != NULL)
		shutdown(fd, SHUT_RDWR);
	while (hear_line(fd))
		;
	close(fd);
	return NULL;
}

static pthread_t thread;

static inline void
start(const char *greeting, const char *const *replies)
{
	memset(&talk, 0, sizeof(talk));
	talk.greeting = greeting;
	talk.replies = replies;
	cr_assert_eq(pthread_create(&thread, NULL, supervise, NULL), 0);
}

static inline enum xr_status
open_it(const char *where, double seconds, struct xr_store **s)
{
	struct xr_store_options o = XR_STORE_OPTIONS;

	err = (struct xr_error){ 0 };
	*s = NULL;
	o.rank = 0;
	o.world_size = 1;
	o.timeout = XR_SECONDS(seconds);
	return xr_store_open(where, &o, s, &err);
}

static inline struct xr_store *
opened(const char *const *replies)
{
	struct xr_store *s;

	start(WELCOME, replies);
	cr_assert_eq(open_it(address, 20, &s), XR_OK, "%s", err.text);
	return s;
}

static inline void
finish(struct xr_store *s)
{
	xr_store_free(s);
	pthread_join(thread, NULL);
}

static inline void
expect_words(const char *words)
{
	cr_expect_not_null(strstr(err.text, words), "'%s' lacks '%s'", err.text,
		words);
}

#define LINES_OF(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}

#endif /* TESTS_UNIT_SPEECH_RIG_H */
