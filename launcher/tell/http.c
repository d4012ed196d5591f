/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - see http.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/host/own_file.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/http.h"

#define PROGRAM    "xrun-http"
#define BACKLOG    128
#define UNIX       "unix:"
#define TOKEN_SIZE 16 /* random bytes */
#define TOKEN_MIN  16 /* characters, of a file */
#define TOKEN_MAX  4096
#define DEATHS_MAX 3
#define AGAIN_NS   NS_PER_S
#define WHERE_MAX  (PATH_MAX + 64)

struct http {
	char *program;
	char *path; /* of a unix socket of ours; NULL */
	dev_t dev;  /* of that */
	ino_t ino;
	int fd;            /* listens; -1: of *auto*, in the page */
	char address[300]; /* for people; "" with *auto* */
	char *token_file;  /* absolute; NULL: none, or in the job's folder */
	char token[2 * TOKEN_SIZE + 2]; /* to be put there; "": none */

	/* The supervisor's. */
	struct aide *aide;
	struct timer *again;
	unsigned deaths;
};

/* --- before the first rank ------------------------------------------------ */

union name {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static enum xr_status
no_address(const char *text, struct xr_error *err)
{
	return fail(err, XR_E_INVAL,
		"--http: '%.*s' is not auto, unix:PATH or ADDRESS:PORT\t127.0.0.1:9400, [::1]:9400, localhost:0",
		QUOTED(span_of(text)));
}

/* "127.0.0.1:9400", "[::1]:9400", "localhost:9400". Names of the network are
 * not looked up: nobody shall wonder on which interface it listens. */
static enum xr_status
parse_tcp(const char *text, union name *name, struct xr_error *err)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
	size_t len = colon == NULL ? 0 : (size_t)(colon - text);
	uint32_t port;

	if (len == 0 || len >= sizeof(host) ||
		!number_parse(span_of(colon + 1), 65535, &port))
		return no_address(text, err);
	if (strncmp(text, "localhost:", 10) != 0)
		snprintf(host, sizeof(host), "%.*s", (int)len, text);
	*name = (union name){ 0 };
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		name->in6.sin6_family = AF_INET6;
		name->in6.sin6_port = htons((uint16_t)port);
		if (inet_pton(AF_INET6, host + 1, &name->in6.sin6_addr) == 1)
			return XR_OK;
	} else {
		name->in.sin_family = AF_INET;
		name->in.sin_port = htons((uint16_t)port);
		if (inet_pton(AF_INET, host, &name->in.sin_addr) == 1)
			return XR_OK;
	}
	return no_address(text, err);
}

/* As it is by now: the port may have been 0. */
static void
name_tcp(struct http *h)
{
	union name name = { 0 };
	socklen_t len = sizeof(name);
	char host[INET6_ADDRSTRLEN] = "";
	bool six;

	getsockname(h->fd, &name.any, &len);
	six = name.any.sa_family == AF_INET6;
	inet_ntop(name.any.sa_family,
		six ? (void *)&name.in6.sin6_addr : (void *)&name.in.sin_addr,
		host, sizeof(host));
	snprintf(h->address, sizeof(h->address), "http://%s%s%s:%u",
		six ? "[" : "", host, six ? "]" : "",
		ntohs(six ? name.in6.sin6_port : name.in.sin_port));
}

static enum xr_status
listen_tcp(struct http *h, const char *text, struct xr_error *err)
{
	const int on = 1;
	union name name;
	enum xr_status status = parse_tcp(text, &name, err);

	if (status != XR_OK)
		return status;
	h->fd = socket(name.any.sa_family,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd == -1 ||
		setsockopt(h->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ==
			-1 ||
		bind(h->fd, &name.any,
			name.any.sa_family == AF_INET6 ?
				sizeof(name.in6) :
				sizeof(name.in)) == -1 ||
		listen(h->fd, BACKLOG) == -1)
		return fail(err, XR_E_SYS,
			"--http: %s: %s\tanother port, or 0 for any that is free",
			text, strerror(errno));
	name_tcp(h);
	return XR_OK;
}

/* Is what has the name a socket of ours that nobody listens on any more? */
static bool
is_dead(const union name *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	bool dead;

	dead = fd != -1 && lstat(name->un.sun_path, &st) == 0 &&
		S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
		connect(fd, &name->any, sizeof(name->un)) == -1 &&
		errno == ECONNREFUSED;
	fd_close(fd);
	return dead;
}

static int
bind_unix(int fd, const union name *name)
{
	mode_t mask = umask(0177);
	int status = bind(fd, &name->any, sizeof(name->un));

	if (status == -1 && errno == EADDRINUSE) {
		if (is_dead(name) && unlink(name->un.sun_path) == 0)
			status = bind(fd, &name->any, sizeof(name->un));
		else
			errno = EADDRINUSE;
	}
	umask(mask);
	return status;
}

static enum xr_status
listen_unix(struct http *h, const char *path, struct xr_error *err)
{
	union name name = { .un.sun_family = AF_UNIX };
	struct stat st;

	if (strlen(path) >= sizeof(name.un.sun_path) || *path == '\0')
		return fail(err, XR_E_INVAL,
			"--http: a path of a socket has 1 to %zu bytes: '%.*s'",
			sizeof(name.un.sun_path) - 1, QUOTED(span_of(path)));
	snprintf(name.un.sun_path, sizeof(name.un.sun_path), "%s", path);
	h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd == -1 || bind_unix(h->fd, &name) == -1)
		return fail(err, XR_E_SYS, "--http: %s: %s", path,
			strerror(errno));
	h->path = realpath(path, NULL);
	if (h->path == NULL || lstat(h->path, &st) == -1 ||
		listen(h->fd, BACKLOG) == -1)
		return fail(err, XR_E_SYS, "--http: %s: %s", path,
			strerror(errno));
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	snprintf(h->address, sizeof(h->address), UNIX "%s", h->path);
	return XR_OK;
}

/* Nobody else may read it: that is all it is worth. */
static enum xr_status
take_token_file(struct http *h, const char *path, struct xr_error *err)
{
	struct fd_file file = { .name = path, .max = TOKEN_MAX };
	char *text = NULL;
	size_t len = 0;
	enum xr_status status;

	file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file.fd == -1)
		return fail(err, XR_E_SYS, "--http-token: %s: %s", path,
			strerror(errno));
	status = fd_read_text(&file, &text, &len, err);
	fd_close(file.fd);
	if (status == XR_OK &&
		((file.st.st_mode & 0077) != 0 || file.st.st_uid != geteuid()))
		status = fail(err, XR_E_INVAL,
			"--http-token: %s: others may read it, or it is another's\tchmod 600 %s",
			path, path);
	if (status == XR_OK && strlen(text) != len)
		status = fail(err, XR_E_INVAL,
			"--http-token: %s: it is no text: byte %zu is a NUL",
			path, strlen(text) + 1);
	if (status == XR_OK && strcspn(text, "\r\n") < TOKEN_MIN)
		status = fail(err, XR_E_INVAL,
			"--http-token: %s: its first line has less than %d characters\thead -c 16 /dev/urandom | xxd -p",
			path, TOKEN_MIN);
	if (text != NULL)
		explicit_bzero(text, len);
	free(text);
	h->token_file = status == XR_OK ? realpath(path, NULL) : NULL;
	return status;
}

static enum xr_status
make_token(struct http *h, struct xr_error *err)
{
	unsigned char random[TOKEN_SIZE];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return fail(err, XR_E_SYS, "--http: no random bytes: %s",
			strerror(errno));
	for (int i = 0; i < TOKEN_SIZE; i++)
		snprintf(h->token + (size_t)i * 2, 3, "%02x", random[i]);
	h->token[sizeof(h->token) - 2] = '\n';
	return XR_OK;
}

enum xr_status
http_open(struct job *job, struct xr_error *err)
{
	const char *text = job->opt.http, *token = job->opt.http_token;
	enum xr_status status = XR_OK;
	struct http *h;

	if (text == NULL || strcmp(text, "none") == 0)
		return XR_OK;
	h = job->http = xcalloc(1, sizeof(*h));
	h->fd = -1;
	h->program = own_file(PROGRAM, ".");
	if (h->program == NULL)
		return fail(err, XR_E_NOTFOUND,
			"--http: " PROGRAM " is not where xrun is");
	if (strncmp(text, UNIX, strlen(UNIX)) == 0)
		status = listen_unix(h, text + strlen(UNIX), err);
	else if (strcmp(text, "auto") != 0)
		status = listen_tcp(h, text, err);
	if (status == XR_OK && token != NULL)
		return take_token_file(h, token, err);
	if (status == XR_OK && h->fd != -1 && h->path == NULL)
		return make_token(h, err);
	return status;
}

void
http_close(struct job *job)
{
	const struct http *h = job->http;
	struct stat st;

	if (h != NULL && h->path != NULL && lstat(h->path, &st) == 0 &&
		st.st_dev == h->dev && st.st_ino == h->ino)
		unlink(h->path);
}

void
http_free(struct job *job)
{
	if (job->http == NULL)
		return;
	free(job->http->program);
	free(job->http->path);
	free(job->http->token_file);
	free(job->http);
	job->http = NULL;
}

/* --- beside the control socket -------------------------------------------- */

/* What listens; -1: that of *auto* could not be made. */
static int
listener(const struct job *job)
{
	return job->http->fd != -1 ? job->http->fd : job->page->http;
}

void
http_make(struct job *job)
{
	const struct http *h = job->http;
	const struct ctl_place *place = &job->page->ctl;

	if (h == NULL || place->dir == -1)
		return;
	if (h->fd == -1)
		job->page->http = ctl_place_listen_http(place);
	if (h->token[0] != '\0')
		ctl_place_put_token(place, h->token);
}

/* A path in the job's folder of sockets, behind @before. */
static bool
put_path(const struct job *job, const char *before, const char *name,
	char out[static WHERE_MAX])
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", job->page->ctl.dir);
	n = readlink(link, path, sizeof(path));
	if (n <= 0)
		return false;
	snprintf(out, WHERE_MAX, "%s%.*s/%s", before, (int)n, path, name);
	return true;
}

static const char *
put_address(const struct job *job, char out[static WHERE_MAX])
{
	if (job->http->fd != -1)
		return job->http->address;
	return put_path(job, UNIX, CTL_PLACE_HTTP, out) ? out : NULL;
}

/* NULL: there is none. */
static const char *
put_token_file(const struct job *job, char out[static WHERE_MAX])
{
	if (job->http->token_file != NULL)
		return job->http->token_file;
	if (job->http->token[0] == '\0')
		return NULL;
	return put_path(job, "", CTL_PLACE_TOKEN, out) ? out : NULL;
}

void
http_put(struct json *j, const struct job *job)
{
	char at[WHERE_MAX], token[WHERE_MAX];

	if (job->http == NULL || job->page->ctl.dir == -1 ||
		job->page->http_over != 0)
		return;
	if (put_address(job, at) != NULL)
		json_text(j, "http", put_address(job, at));
	if (put_token_file(job, token) != NULL)
		json_text(j, "http_token", put_token_file(job, token));
}

/* --- the aide ------------------------------------------------------------- */

static void
on_death(int status, bool late, void *ctx)
{
	struct job *job = ctx;
	struct http *h = job->http;

	(void)status;
	(void)late;
	h->aide = NULL;
	if (job->sup->phase != PHASE_RUN)
		return;
	if (++h->deaths < DEATHS_MAX) {
		timer_arm(h->again, AGAIN_NS);
		return;
	}
	job->page->http_over = 1;
	/* Who comes is refused, and does not wait; also by a later attempt, as
	 * the socket is the same. */
	shutdown(listener(job), SHUT_RDWR);
	logs_say(job->sup->logs,
		"xrun: --http: " PROGRAM
		" ended %u times, and is not started again; the job goes on",
		h->deaths);
}

static void
start(void *ctx)
{
	struct job *job = ctx;
	struct http *h = job->http;
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *token;
	char path[WHERE_MAX], variable[PATH_MAX + 32];
	char *env[] = { NULL, NULL };
	char *argv[] = { (char *)PROGRAM, (char *)job->state.id, (char *)"-",
		NULL };
	struct aide_config config = {
		.path = h->program,
		.argv = argv,
		.envp = env,
		.in = listener(job),
		.out = -1,
		.err = -1,
		.fn = on_death,
		.ctx = job,
	};

	if (runtime != NULL) {
		snprintf(variable, sizeof(variable), "XDG_RUNTIME_DIR=%s",
			runtime);
		env[0] = variable;
	}
	token = put_token_file(job, path);
	if (token != NULL)
		argv[2] = (char *)token;
	h->aide = aide_start(job, &config);
	if (h->aide == NULL)
		logs_say(job->sup->logs,
			"xrun: --http: " PROGRAM
			" cannot be started: %s; the job goes on",
			strerror(errno));
}

/* Once a job, for people: with -d, ps --json has it. */
static void
say_where(struct job *job)
{
	char at[WHERE_MAX], token[WHERE_MAX];
	const char *file = put_token_file(job, token);

	if (job->opt.quiet || job->page->again.restarts > 0)
		return;
	if (file != NULL)
		logs_say(job->sup->logs, "xrun: %s/metrics, token in %s",
			put_address(job, at), file);
	else if (job->errors_are_tty || job->opt.verbose)
		logs_say(job->sup->logs, "xrun: metrics at %s",
			put_address(job, at));
}

void
http_begin(struct job *job, const char *why)
{
	struct http *h = job->http;
	char at[WHERE_MAX];

	if (h == NULL || job->sup->phase != PHASE_RUN ||
		job->page->http_over != 0)
		return;
	if (why == NULL && listener(job) == -1)
		why = "no socket could be made beside the control socket";
	if (why == NULL && put_address(job, at) == NULL)
		why = "/proc is not mounted";
	if (why == NULL)
		h->again = timer_open(job->sup->loop, start, job);
	if (why != NULL || h->again == NULL) {
		logs_say(job->sup->logs,
			"xrun: --http: nobody answers there: %s; the job goes on",
			why != NULL ? why : strerror(ENOMEM));
		return;
	}
	start(job);
	if (h->aide != NULL)
		say_where(job);
}
