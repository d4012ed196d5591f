/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_store_control.c - replies of a control socket to a get (worker/store/control.c);
 * the test is the supervisor. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <xrun/store.h>

#define WELCOME "{\"type\":\"welcome\",\"v\":1,\"job\":\"k7m2\",\"pid\":1}\n"
#define SIZE    40000

TestSuite(worker_store_control, .timeout = 60);

struct reply {
	const char *fields; /* of store_value */
	off_t memory;       /* bytes of the memfd that goes with it; -1: none */
	enum xr_status status;
	const char *why; /* part of the error message */
};

static struct sockaddr_un place = { .sun_family = AF_UNIX };
static int listener;
static struct xr_error err;

static void
listen_here(void)
{
	snprintf(place.sun_path, sizeof(place.sun_path),
		"/tmp/xrun-test-control.%d", (int)getpid());
	unlink(place.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&place, sizeof(place)),
		0);
	cr_assert_eq(listen(listener, 1), 0);
}

static int
memory_of(off_t size)
{
	int fd = memfd_create("xrun-test", MFD_CLOEXEC);

	cr_assert_neq(fd, -1);
	cr_assert_eq(ftruncate(fd, size), 0);
	return fd;
}

/* @fd goes with the line, unless it is -1. */
static void
send_line(int socket, const char *line, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (char *)line, strlen(line) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd != -1) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	cr_assert_eq(sendmsg(socket, &m, MSG_NOSIGNAL), (ssize_t)part.iov_len);
}

/* Answers one request, until the client has closed the connection. */
static void *
supervise(void *of)
{
	const struct reply *r = of;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), memory = -1;
	char line[512] = "", reply[256];
	const char *id;
	size_t len = 0;

	cr_assert_neq(fd, -1);
	send_line(fd, WELCOME, -1);
	while (strchr(line, '\n') == NULL) {
		ssize_t n = recv(fd, line + len, sizeof(line) - 1 - len, 0);

		cr_assert_gt(n, 0);
		len += (size_t)n;
	}
	id = strstr(line, "\"id\":");
	cr_assert_not_null(id);
	snprintf(reply, sizeof(reply),
		"{\"type\":\"store_value\",\"id\":%d%s}\n",
		(int)strtol(id + 5, NULL, 10), r->fields);
	if (r->memory != -1)
		memory = memory_of(r->memory);
	send_line(fd, reply, memory);
	close(memory);
	while (recv(fd, line, sizeof(line), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void
expect_get(struct reply *r)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store_value v = { 0 };
	struct xr_store *s = NULL;
	enum xr_status status;
	char address[128];
	pthread_t thread;

	err = (struct xr_error){ 0 };
	snprintf(address, sizeof(address), "control:%s", place.sun_path);
	cr_assert_eq(pthread_create(&thread, NULL, supervise, r), 0);
	cr_assert_eq(xr_store_open(address, &o, &s, &err), XR_OK, "%s",
		err.text);
	status = xr_store_get(s, "k", XR_SECONDS(20), &v, &err);
	cr_expect_eq(status, r->status, "%s: %s: %s", r->fields,
		xr_status_name(status), err.text);
	cr_expect(strstr(err.text, r->why) != NULL, "%s: %s", r->fields,
		err.text);
	cr_expect(status != XR_OK || v.len == SIZE);
	xr_store_value_free(&v);
	xr_store_free(s);
	pthread_join(thread, NULL);
}

Test(worker_store_control, a_large_value_without_all_its_bytes_is_refused)
{
	struct reply reply[] = {
		{ ",\"size\":40000", SIZE, XR_OK, "" },
		{ ",\"size\":40000", SIZE - 1, XR_E_PROTO, "shorter than" },
		{ ",\"size\":40000", 0, XR_E_PROTO, "shorter than" },
		{ ",\"size\":40000", -1, XR_E_PROTO, "without its memory" },
		{ ",\"size\":-1", SIZE, XR_E_PROTO, "without its memory" },
		{ ",\"value\":\"=\"", -1, XR_E_PROTO, "no base64" },
	};

	listen_here();
	for (size_t i = 0; i < sizeof(reply) / sizeof(reply[0]); i++)
		expect_get(&reply[i]);
	close(listener);
	unlink(place.sun_path);
}
