/* SPDX-License-Identifier: Apache-2.0 */
/* zmq_queue.c - ZeroMQ's PUSH and PULL by ipc:, each who gets with an address of its own;
 * see queue.h. */
#include <poll.h>
#include <zmq.h>

#include "queue.h"

#define PATIENCE_MS 5 /* between two looks whether all is over */

static const char *folder;

static void
put(struct run *r, long index)
{
	void *z = zmq_ctx_new(), *s = zmq_socket(z, ZMQ_PUSH);
	uint8_t *data = calloc(1, r->bytes);
	char address[128];

	(void)index;
	for (long i = 0; i < r->readers; i++) {
		snprintf(address, sizeof(address), "ipc://%s/%ld", folder, i);
		if (zmq_connect(s, address) != 0)
			_exit(4);
	}
	run_wait(r);
	for (long i = 0; i < r->items; i++) {
		run_fill(r, data, (uint64_t)i);
		if (zmq_send(s, data, r->bytes, 0) < 0)
			_exit(4);
	}
	/* It loses some of what a process sent that has ended since. */
	while (r->board->got < run_all(r))
		poll(NULL, 0, PATIENCE_MS);
	zmq_close(s);
	zmq_ctx_term(z);
}

static void
get(struct run *r, long index)
{
	void *z = zmq_ctx_new(), *s = zmq_socket(z, ZMQ_PULL);
	uint8_t *data = malloc(r->bytes + 8);
	int patience = PATIENCE_MS;
	char address[128];

	snprintf(address, sizeof(address), "ipc://%s/%ld", folder, index);
	if (zmq_bind(s, address) != 0 ||
		zmq_setsockopt(s, ZMQ_RCVTIMEO, &patience, sizeof(patience)) !=
			0)
		_exit(4);
	run_wait(r);
	for (;;) {
		int n = zmq_recv(s, data, r->bytes + 8, 0);

		if (n >= 0)
			run_check(r, data, (size_t)n);
		if ((n < 0 || r->got == RUN_BATCH ||
			    r->board->got + r->got >= run_all(r)) &&
			run_tell(r))
			break;
	}
	zmq_close(s);
	zmq_ctx_term(z);
}

int
main(int argc, char **argv)
{
	char place[] = "/tmp/zmq-queue-XXXXXX", command[64];
	struct run r;
	int rc;

	run_init(&r, argc, argv);
	folder = mkdtemp(place);
	if (folder == NULL)
		return 4;
	rc = run_play(&r, put, get, NULL);
	for (long i = 0; i < r.readers; i++) {
		snprintf(command, sizeof(command), "%s/%ld", folder, i);
		unlink(command);
	}
	rmdir(folder);
	return rc;
}
