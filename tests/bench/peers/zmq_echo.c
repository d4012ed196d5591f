/* SPDX-License-Identifier: Apache-2.0 */
/* zmq_echo.c - ZeroMQ's REQ and REP, each in a process of its own.
 *
 *   zmq_echo BYTES CALLS [WINDOW [ADDRESS]] - ipc:// of a fresh name without; with
 *   a window DEALER calls */
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

/* What REQ and REP send in front of a message: nothing. */
static void
call_windows(struct echo *e, void *s, long calls)
{
	for (long i = 0; i < calls; i += e->window) {
		echo_fill(e, (uint64_t)i);
		for (long k = 0; k < e->window; k++)
			if (zmq_send(s, "", 0, ZMQ_SNDMORE) < 0 ||
				zmq_send(s, e->data, e->bytes, 0) < 0)
				abort();
		for (long k = 0; k < e->window; k++) {
			if (zmq_recv(s, e->back, 0, 0) < 0 ||
				zmq_recv(s, e->back, e->bytes + 8, 0) !=
					(int)e->bytes)
				abort();
			echo_check(e);
		}
	}
}

static void
measure(struct echo *e, void *s)
{
	int64_t begin;
	double cpu;

	if (e->window > 0)
		call_windows(e, s, e->window);
	else
		call(e, s, ECHO_WARM(e->calls));
	cpu = echo_cpu();
	begin = echo_now();
	if (e->window > 0) {
		call_windows(e, s, e->calls);
		echo_print_rate(e, echo_now() - begin, echo_cpu() - cpu);
	} else {
		call(e, s, e->calls);
		echo_print(e, echo_cpu() - cpu);
	}
}

int
main(int argc, char **argv)
{
	char address[64];
	struct echo e;
	void *ctx, *s;
	pid_t pid;

	echo_init(&e, argv);
	if (e.window > 0)
		e.calls -= e.calls % e.window;
	snprintf(address, sizeof(address), "ipc://@xrun-bench-%d", getpid());
	if (argc > 4)
		snprintf(address, sizeof(address), "%s", argv[4]);
	pid = fork();
	if (pid == 0) {
		serve(address, e.bytes,
			(e.window > 0 ? e.window : ECHO_WARM(e.calls)) +
				e.calls);
		_exit(0);
	}
	ctx = zmq_ctx_new();
	s = zmq_socket(ctx, e.window > 0 ? ZMQ_DEALER : ZMQ_REQ);
	if (zmq_connect(s, address) != 0)
		abort();
	measure(&e, s);
	zmq_close(s);
	zmq_ctx_term(ctx);
	waitpid(pid, NULL, 0);
	return 0;
}
