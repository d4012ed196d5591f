/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_secret.c - a rank that dumps core while it knows the secret of its job.
 *
 *   core_secret FILE TRANSPORT
 *
 * Rank 0 writes the secret to FILE and its process to stdout. When it reads a line
 * from FILE.go, it aborts. The other ranks wait for it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/job.h>
#include <xrun/rpc.h>

#include "segment/layout.h"

static void
die(const char *what)
{
	fprintf(stderr, "core_secret: %s\n", what);
	exit(1);
}

static void
write_secret(const char *path)
{
	const char *fd_text = getenv("XRUN_SEGMENT_FD");
	uint8_t secret[SEGMENT_SECRET];
	int fd = fd_text == NULL ? -1 : (int)strtol(fd_text, NULL, 10);
	int file;

	if (pread(fd, secret, sizeof(secret),
		    offsetof(struct segment_head, secret)) != sizeof(secret))
		die("no secret");
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (write(file, secret, sizeof(secret)) != sizeof(secret))
		die("no file");
	close(file);
	explicit_bzero(secret, sizeof(secret));
}

static void
wait_for_line(const char *path)
{
	char name[4096], c;
	int fd;

	snprintf(name, sizeof(name), "%s.go", path);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (read(fd, &c, 1) != 1)
		die("no line");
}

int
main(int argc, char **argv)
{
	const char *transport[1];
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct xr_error err = { 0 };
	char name[32];

	if (argc != 3)
		die("arguments");
	transport[0] = argv[2];
	snprintf(name, sizeof(name), "w%u", xr_job_rank());
	if (xr_rpc_opts_init(0, &opts, &err) != XR_OK)
		die(err.text);
	opts.transports = transport;
	opts.transport_count = 1;
	if (xr_rpc_init(name, -1, -1, &opts, &err) != XR_OK)
		die(err.text);
	if (xr_job_rank() == 0) {
		write_secret(argv[1]);
		printf("process %d\n", (int)getpid());
		fflush(stdout);
		wait_for_line(argv[1]);
		abort();
	}
	pause();
	return 0;
}
