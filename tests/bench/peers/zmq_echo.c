/* SPDX-License-Identifier: Apache-2.0 */
/* zmq_echo.c - ZeroMQ's REQ and REP, each in a process of its own.
 *
 *   zmq_echo BYTES CALLS [ADDRESS] - ipc:// of a fresh name without */
#include <unistd.h>

#include <sys/wait.h>
#include <zmq.h>

#include "echo.h"

static void
serve(const char *address, size_t bytes, long calls)
{
	void *ctx = zmq_ctx_new(), *s = zmq_socket(ctx, ZMQ_REP);
	unsigned char *data = malloc(bytes + 8);

	if (zmq_bind(s, address) != 0 || data == NULL)
		abort();
	for (long i = 0; i < calls; i++) {
		int n = zmq_recv(s, data, bytes + 8, 0);

		if (n < 0 || zmq_send(s, data, (size_t)n, 0) < 0)
			abort();
	}
	zmq_close(s);
	zmq_ctx_term(ctx);
}

static void
call(struct echo *e, void *s, long calls)
{
	for (long i = 0; i < calls; i++) {
		int64_t begin;

		echo_fill(e, (uint64_t)i);
		begin = echo_now();
		if (zmq_send(s, e->data, e->bytes, 0) < 0 ||
			zmq_recv(s, e->back, e->bytes + 8, 0) != (int)e->bytes)
			abort();
		echo_check(e);
		e->took[i] = echo_now() - begin;
	}
}

int
main(int argc, char **argv)
{
	char address[64];
	struct echo e;
	void *ctx, *s;
	double cpu;
	pid_t pid;

	echo_init(&e, argv);
	snprintf(address, sizeof(address), "ipc://@xrun-bench-%d", getpid());
	if (argc > 3)
		snprintf(address, sizeof(address), "%s", argv[3]);
	pid = fork();
	if (pid == 0) {
		serve(address, e.bytes, ECHO_WARM(e.calls) + e.calls);
		_exit(0);
	}
	ctx = zmq_ctx_new();
	s = zmq_socket(ctx, ZMQ_REQ);
	if (zmq_connect(s, address) != 0)
		abort();
	call(&e, s, ECHO_WARM(e.calls));
	cpu = echo_cpu();
	call(&e, s, e.calls);
	echo_print(&e, echo_cpu() - cpu);
	zmq_close(s);
	zmq_ctx_term(ctx);
	waitpid(pid, NULL, 0);
	return 0;
}
