/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - xrun-http JOB TOKEN-FILE|-: answers what a job is doing.
 *
 * xrun starts it for --http, and ends it with the job. Its standard input is the
 * socket that listens, which xrun made. It is a client of the job's control
 * socket like any other: nothing that is done to it reaches the job. On TCP, a
 * token of TOKEN-FILE has to be shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "launcher/http/serve.h"

#define TOKEN_MAX 4096

/* The port of a TCP socket; NULL: another. */
static const char *
port_of(int fd)
{
	static char text[16];
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = { 0 };
	socklen_t len = sizeof(name);

	if (getsockname(fd, &name.any, &len) == -1 ||
		(name.any.sa_family != AF_INET &&
			name.any.sa_family != AF_INET6))
		return NULL;
	snprintf(text, sizeof(text), "%u",
		ntohs(name.any.sa_family == AF_INET ? name.in.sin_port :
						      name.in6.sin6_port));
	return text;
}

/* The first line; NULL: there is none, or it would be cut by a NUL. */
static const char *
read_token(const char *path)
{
	struct xr_error err;
	char *text = NULL;
	size_t len, line;

	if (fd_read_file(path, TOKEN_MAX, &text, &len, &err) != XR_OK ||
		strlen(text) != len)
		return NULL;
	line = strcspn(text, "\r\n");
	text[line] = '\0';
	return line >= HTTP_TOKEN_MIN ? text : NULL;
}

int
main(int argc, char **argv)
{
	char host[256] = "";
	struct serve_config config = { .fd = STDIN_FILENO };

	if (argc != 3) {
		fputs("xrun-http: only xrun --http starts this program\n",
			stderr);
		return EXIT_FAILURE;
	}
	config.id = argv[1];
	config.rule.port = port_of(STDIN_FILENO);
	gethostname(host, sizeof(host) - 1);
	config.rule.host = host;
	if (strcmp(argv[2], "-") != 0)
		config.rule.token = read_token(argv[2]);
	/* Never without one on TCP. */
	if (config.rule.port != NULL && config.rule.token == NULL)
		return EXIT_FAILURE;
	serve(&config);
	return EXIT_FAILURE;
}
