/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - a store that xrun serves, on a control socket: lines of
 * src/wire/control.def.
 *
 * A rank sends one end of a pair to xrun, through the socket that all ranks
 * have. A process of it that has lost that, as whoever starts programs may close
 * what he does not know, connects to the job's own socket, as others do.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <xrun/job.h>

#include "base/along.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/json.h"
#include "base/status.h"
#include "wire/control.h"
#include "worker/job/control.h"
#include "worker/store/link.h"

#define INLINE_MAX  (32 << 10) /* bytes of a value in a line */
#define EXACT       INT64_C(9007199254740992)
#define PAUSE_NS    (10 * NS_PER_MS)
#define PATIENCE_NS (2 * NS_PER_S) /* with a job that has no socket yet */

/* --- requests -------------------------------------------------------------- */

/* A sealed memfd of @v's bytes, or -1. */
static int
as_memory(const struct store_value *v)
{
	int fd = memfd_create("xrun-store", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd == -1)
		return -1;
	if (fd_write_all(fd, v->data, v->len) == 0 &&
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
				F_SEAL_SEAL) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

/* In the text that the message borrows, or in *fd. */
static enum xr_status
put_value(const struct store_value *v, char **text, int *fd,
	struct xr_error *err)
{
	if (v->len > INLINE_MAX) {
		*fd = as_memory(v);
		return *fd == -1 ? fail(err, XR_E_SYS, "store: a memfd: %s",
					   strerror(errno)) :
				   XR_OK;
	}
	*text = malloc(base64_len(v->len) + 1);
	if (*text == NULL)
		return fail(err, XR_E_NOMEM, "store: out of memory");
	base64_put((struct span){ v->data, v->len }, *text);
	return XR_OK;
}

static void
put_keys(struct buf *out, const struct store_request *q)
{
	struct json j;

	json_init(&j, out);
	json_open_array(&j, NULL);
	for (size_t i = 0; i < q->count; i++)
		json_bytes(&j, NULL, q->keys[i]);
	json_close_array(&j);
}

static double
seconds_of(int64_t patience)
{
	return patience == DESK_NEVER ? NAN : (double)patience / 1e9;
}

/* What a request is made of, until its line is written. */
struct parts {
	char key[STORE_KEY_MAX + 1]; /* terminated */
	char by[32];
	char *value, *expected; /* base64 */
	struct buf keys;
};

static void
name_request(struct control *m, const struct store_request *q,
	const struct parts *p)
{
	switch (q->op) {
	case STORE_SET:
		*m = control_new(CONTROL_STORE_SET, q->id);
		m->store_set.key = p->key;
		m->store_set.value = p->value;
		break;
	case STORE_GET:
		*m = control_new(CONTROL_STORE_GET, q->id);
		m->store_get.key = p->key;
		m->store_get.seconds = seconds_of(q->patience);
		break;
	case STORE_ADD:
		*m = control_new(CONTROL_STORE_ADD, q->id);
		m->store_add.key = p->key;
		m->store_add.by = span_of(p->by);
		break;
	case STORE_COMPARE_SET:
		*m = control_new(CONTROL_STORE_COMPARE_SET, q->id);
		m->store_compare_set.key = p->key;
		m->store_compare_set.expected = p->expected;
		m->store_compare_set.value = p->value;
		break;
	case STORE_WAIT:
		*m = control_new(CONTROL_STORE_WAIT, q->id);
		m->store_wait.keys =
			(struct span){ buf_text(&p->keys), p->keys.len };
		m->store_wait.seconds = seconds_of(q->patience);
		break;
	case STORE_CHECK:
		*m = control_new(CONTROL_STORE_CHECK, q->id);
		m->store_check.keys =
			(struct span){ buf_text(&p->keys), p->keys.len };
		break;
	case STORE_DELETE:
	case STORE_OPS:
		*m = control_new(CONTROL_STORE_DELETE, q->id);
		m->store_delete.key = p->key;
		break;
	}
}

static enum xr_status
put_request(struct buf *out, const struct store_request *q, int *fd,
	struct xr_error *err)
{
	struct parts p = { .value = NULL };
	struct store_value expected = { (char *)q->expected.at, q->expected.len,
		1, NULL, NULL };
	enum xr_status status = XR_OK;
	struct control m;

	if (q->key.len > 0)
		memcpy(p.key, q->key.at, q->key.len);
	snprintf(p.by, sizeof(p.by),
		q->number > EXACT || q->number < -EXACT ? "\"%" PRId64 "\"" :
							  "%" PRId64,
		q->number);
	if (q->count > 0)
		put_keys(&p.keys, q);
	if (p.keys.bad != XR_OK)
		status = fail(err, p.keys.bad, "store: out of memory");
	if (status == XR_OK && q->value != NULL)
		status = put_value(q->value, &p.value, fd, err);
	if (status == XR_OK && expected.len > 0)
		status = put_value(&expected, &p.expected, fd, err);
	if (status == XR_OK) {
		name_request(&m, q, &p);
		control_put(out, &m);
		if (out->len > CONTROL_LINE_MAX)
			status = fail(err, XR_E_RANGE,
				"store: the keys together are too long");
	}
	free(p.value);
	free(p.expected);
	buf_fini(&p.keys);
	return status;
}

/* --- replies --------------------------------------------------------------- */

static enum xr_status
read_memory(struct link_in *in, int64_t size, struct store_reply *r,
	struct xr_error *err)
{
	int fd = in->fds.count > 0 ? in->fds.fd[0] : -1;
	size_t got = 0;
	ssize_t n;

	if (fd == -1 || size < 0 || size > STORE_VALUE_MAX)
		return fail(err, XR_E_PROTO,
			"store: a large value came without its memory");
	in->fds.count--;
	memmove(in->fds.fd, in->fds.fd + 1,
		in->fds.count * sizeof(in->fds.fd[0]));
	r->value = store_value_new(NULL, (size_t)size);
	while (r->value != NULL &&
		(n = pread(fd, r->value->data + got, r->value->len - got,
			 (off_t)got)) > 0)
		got += (size_t)n;
	fd_close(fd);
	if (r->value == NULL)
		reply_fail(r, XR_E_NOMEM, "store: out of memory");
	if (r->value == NULL || got == r->value->len)
		return XR_OK;
	store_value_unref(r->value);
	return fail(err, XR_E_PROTO,
		"store: a large value is shorter than it says");
}

static enum xr_status
read_value(struct link_in *in, const struct control *m, struct store_reply *r,
	struct xr_error *err)
{
	const struct control_store_value *v = &m->store_value;
	struct span text = span_of(v->value);

	if (v->size != CONTROL_NONE)
		return read_memory(in, v->size, r, err);
	if (v->value == NULL)
		return XR_OK;
	/* Decoded where it lies: it becomes shorter. */
	r->value = store_value_new(NULL, text.len);
	if (r->value == NULL) {
		reply_fail(r, XR_E_NOMEM, "store: out of memory");
		return XR_OK;
	}
	if (base64_get(text, r->value->data, &r->value->len)) {
		r->value->data[r->value->len] = '\0';
		return XR_OK;
	}
	store_value_unref(r->value);
	return fail(err, XR_E_PROTO, "store: a value is no base64");
}

static enum xr_status
read_sum(struct span sum, struct store_reply *r, struct xr_error *err)
{
	char text[32], *end;
	size_t quote = gate_kind(sum) == GATE_TEXT;

	if (sum.len < 2 * quote + 1 || sum.len >= sizeof(text))
		return fail(err, XR_E_PROTO, "store: a sum is no number");
	memcpy(text, sum.at + quote, sum.len - 2 * quote);
	text[sum.len - 2 * quote] = '\0';
	r->number = strtoll(text, &end, 10);
	return *end == '\0' ?
		XR_OK :
		fail(err, XR_E_PROTO, "store: a sum is no number");
}

static enum xr_status
read_reply(struct link_in *in, const struct control *m, struct store_reply *r,
	struct xr_error *err)
{
	*r = (struct store_reply){ .id = m->id };
	switch (m->type) {
	case CONTROL_DONE:
		r->number = m->done.count == CONTROL_NONE ? 0 : m->done.count;
		return XR_OK;
	case CONTROL_STORE_SUM:
		return read_sum(m->store_sum.sum, r, err);
	case CONTROL_STORE_VALUE:
		return read_value(in, m, r, err);
	case CONTROL_ERROR:
		reply_fail(r, status_of_name(m->error.code), "%s",
			m->error.text);
		return XR_OK;
	default:
		r->id = CONTROL_NONE; /* nobody's */
		return XR_OK;
	}
}

static enum xr_status
take_reply(struct link_in *in, struct store_reply *r, bool *there,
	struct xr_error *err)
{
	char *line = in->bytes.data + in->at;
	char *end = in->bytes.len == in->at ?
		NULL :
		memchr(line, '\n', in->bytes.len - in->at);
	struct control m;
	enum xr_status status;

	*there = end != NULL;
	if (end == NULL)
		return in->bytes.len - in->at < CONTROL_LINE_MAX ?
			XR_OK :
			fail(err, XR_E_PROTO, "store: a line is too long");
	*end = '\0';
	in->at += (size_t)(end - line) + 1;
	status = control_read(&m, line, (size_t)(end - line), CONTROL_BY_JOB,
		err);
	if (status == XR_E_NOTFOUND) {
		r->id = CONTROL_NONE; /* a newer xrun says more */
		r->value = NULL;
		return XR_OK;
	}
	return status == XR_OK ? read_reply(in, &m, r, err) : status;
}

static const struct link_speech speech = {
	.put = put_request,
	.take = take_reply,
};

/* --- connecting ------------------------------------------------------------ */

/* A pair, one end of which is xrun's; the other one. -1 and errno. */
static int
say_hello(int64_t until)
{
	int told = job_control(), fd[2];
	char text[64];
	ssize_t n = -1;

	snprintf(text, sizeof(text), "{\"type\":\"hello\",\"rank\":%u}",
		(unsigned)xr_job_rank());
	if (told == -1)
		errno = ENOENT;
	if (told == -1 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0, fd) == -1)
		return -1;
	do {
		n = along_send(told, text, strlen(text), fd[1]);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR) &&
		driver_pause(-1, PAUSE_NS, until));
	fd_close(fd[1]);
	if (n >= 0)
		return fd[0];
	fd_close(fd[0]);
	return -1;
}

/* Through its folder, as sockets have short names only. */
static bool
name_socket(const char *path, int *folder, struct sockaddr_un *to)
{
	char dir[STORE_PATH_MAX];
	const char *name = strrchr(path, '/') + 1;
	int n;

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path);
	*folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*folder == -1)
		return false;
	n = snprintf(to->sun_path, sizeof(to->sun_path), "/proc/self/fd/%d/%s",
		*folder, name);
	errno = ENAMETOOLONG;
	return (size_t)n < sizeof(to->sun_path);
}

static int
connect_to(const char *path, int64_t until)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int folder = -1, fd = -1, failed = -1;

	if (name_socket(path, &folder, &to))
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	if (fd != -1)
		do {
			failed =
				connect(fd, (struct sockaddr *)&to, sizeof(to));
		} while (failed != 0 && (errno == EAGAIN || errno == EINTR) &&
			driver_pause(-1, PAUSE_NS, until));
	fd_close(folder);
	if (failed == 0)
		return fd;
	fd_close(fd);
	return -1;
}

/* Where a job of ours has its socket, as launcher/ctl/place.h says. */
static bool
name_job(int which, char *path, size_t cap)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *job = xr_job_id();
	unsigned uid = geteuid();
	int n = -1;

	if (which == 0 && run != NULL && run[0] == '/')
		n = snprintf(path, cap, "%s/xrun/%s/control", run, job);
	else if (which == 1)
		n = snprintf(path, cap, "/run/user/%u/xrun/%s/control", uid,
			job);
	else if (which == 2)
		n = snprintf(path, cap, "/tmp/xrun-%u/%s/control", uid, job);
	return n > 0 && (size_t)n < cap;
}

/* As driver_pause(). If this process wakes up late, since it was stopped or had no CPU,
 * the supervisor may have been late, too: *end moves by as much. */
static bool
control_pause(int64_t *end, int64_t until)
{
	int64_t begin = clock_now(), late;
	bool goes_on = driver_pause(-1, PAUSE_NS, *end);

	late = clock_now() - begin - 2 * PAUSE_NS;
	if (late > 0)
		*end += late;
	if (*end > until)
		*end = until;
	return goes_on;
}

/* It is made when the job is 20 ms old. */
static int
connect_to_job(int64_t until)
{
	char path[STORE_PATH_MAX];
	int64_t end = clock_now() + PATIENCE_NS;
	int fd = -1;

	if (xr_job_id()[0] == '\0') {
		errno = ENOENT;
		return -1;
	}
	if (end > until)
		end = until;
	do {
		for (int i = 0; i < 3 && fd == -1; i++)
			if (name_job(i, path, sizeof(path)))
				fd = connect_to(path, until);
	} while (fd == -1 && control_pause(&end, until));
	return fd;
}

/* Its user is ours, or root: nobody else's answers are believed. */
static bool
is_ours(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		(who.uid == geteuid() || who.uid == 0);
}

/* As recv(), but no further than to the end of the line: what is behind it is the
 * link's. */
static ssize_t
read_line(int fd, char *at, size_t room)
{
	ssize_t n = recv(fd, at, room, MSG_PEEK);
	const char *end = n > 0 ? memchr(at, '\n', (size_t)n) : NULL;

	if (end != NULL)
		n = end + 1 - at;
	return n > 0 ? recv(fd, at, (size_t)n, 0) : n;
}

static enum xr_status
await_welcome(int fd, int64_t until, struct xr_error *err)
{
	char line[512];
	size_t len = 0;
	struct control m;
	enum xr_status status;

	while (len == 0 || line[len - 1] != '\n') {
		ssize_t n = len < sizeof(line) ?
			read_line(fd, line + len, sizeof(line) - len) :
			0;

		if (n > 0)
			len += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return fail(err, XR_E_PEER_LOST,
				"store: xrun has closed the connection: the job ends, or has no room");
		else if (!driver_pause(fd, NS_PER_S, until))
			return fail(err, XR_E_TIMEOUT,
				"store: xrun did not answer in time");
	}
	line[--len] = '\0';
	status = control_read(&m, line, len, CONTROL_BY_JOB, err);
	if (status == XR_OK && m.type != CONTROL_WELCOME)
		status = fail(err, XR_E_PROTO, "store: it does not greet");
	if (status == XR_OK && m.welcome.v != CONTROL_VERSION)
		status = fail(err, XR_E_VERSION,
			"store: xrun speaks version %lld of the control protocol, and this libxrun %d",
			(long long)m.welcome.v, CONTROL_VERSION);
	return status;
}

enum xr_status
control_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *err)
{
	bool named = address->path[0] != '\0';
	enum xr_status status;
	int fd;

	if (named)
		fd = connect_to(address->path, until);
	else if (job_control() != -1)
		fd = say_hello(until);
	else
		fd = connect_to_job(until);
	if (fd == -1 && !named && errno == ENOENT)
		return fail(err, XR_E_NOTFOUND,
			"store: control: is for ranks of xrun, and XRUN_CONTROL_FD names no socket here\tcontrol:/PATH");
	if (fd == -1)
		return fail(err, errno == ENOENT ? XR_E_NOTFOUND : XR_E_SYS,
			"store: %s: %s",
			named ? address->path : "control:", strerror(errno));
	if (!is_ours(fd))
		status = fail(err, XR_E_AUTH,
			"store: that control socket is another user's");
	else
		status = await_welcome(fd, until, err);
	if (status == XR_OK)
		return link_open(fd, &speech, driver, err);
	fd_close(fd);
	return status;
}
