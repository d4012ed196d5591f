/* SPDX-License-Identifier: Apache-2.0 */
/* queuestep.c - items through an xr_queue; see peers/queue.h. KIND is any, p2p (one lane
 * for each who puts, which one process gets) or values. */
#include <xrun/queue.h>

#include "peers/queue.h"

static struct xr_queue *queue;

static void
fail_with(const char *what, enum xr_status status)
{
	fprintf(stderr, "%s: %s\n", what, xr_status_text(status));
	_exit(4);
}

static void
put(struct run *r, long index)
{
	uint8_t *data = calloc((size_t)r->batch, r->bytes);
	struct xr_part parts[RUN_BATCH];
	struct xr_queue *to = queue;
	enum xr_status status = XR_OK;

	if (data == NULL)
		_exit(4);
	if (strcmp(r->kind, "p2p") == 0 && r->writers > 1)
		status = xr_queue_lane(queue, (uint32_t)index, &to, NULL);
	for (long i = 0; i < r->batch; i++)
		parts[i] = (struct xr_part){ data + (size_t)i * r->bytes,
			r->bytes };
	run_wait(r);
	for (long i = 0; i < r->items && status == XR_OK; i += r->batch) {
		size_t count = (size_t)(r->items - i < r->batch ? r->items - i :
								  r->batch);

		for (size_t n = 0; n < count; n++)
			run_fill(r, data + n * r->bytes, (uint64_t)i + n);
		status = r->batch == 1 ?
			xr_queue_put_bytes(to, data, r->bytes, XR_TIMEOUT_NEVER,
				NULL) :
			xr_queue_put_many_bytes(to, parts, &count,
				XR_TIMEOUT_NEVER, NULL);
	}
	if (status != XR_OK)
		fail_with("put", status);
}

static void
get(struct run *r, long index)
{
	uint8_t *data = malloc((size_t)r->batch * r->bytes);
	struct xr_queue_buf bufs[RUN_BATCH];
	enum xr_status status;

	(void)index;
	if (data == NULL)
		_exit(4);
	for (long i = 0; i < r->batch; i++)
		bufs[i] = (struct xr_queue_buf){ data + (size_t)i * r->bytes,
			r->bytes, 0 };
	xr_queue_leave(queue, XR_QUEUE_WRITER);
	run_wait(r);
	do {
		size_t count = (size_t)r->batch;

		status = r->batch == 1 ?
			xr_queue_get_bytes(queue, bufs, XR_TIMEOUT_NEVER,
				NULL) :
			xr_queue_get_many_bytes(queue, bufs, &count,
				XR_TIMEOUT_NEVER, NULL);
		for (size_t n = 0; status == XR_OK && n < count; n++)
			run_check(r, bufs[n].data, bufs[n].len);
	} while (status == XR_OK && (r->got < 1024 || !run_tell(r)));
	run_tell(r);
	if (status != XR_OK && status != XR_E_CLOSED)
		fail_with("get", status);
}

/* The end of the last writer is the end. */
static void
leave(void)
{
	xr_queue_leave(queue, XR_QUEUE_WRITER);
}

int
main(int argc, char **argv)
{
	struct xr_queue_opts opts = { .size = sizeof(opts), .bytes = 16 << 20 };
	struct run r;

	run_init(&r, argc, argv);
	if (strcmp(r.kind, "p2p") == 0) {
		opts.kind = XR_QUEUE_P2P;
		opts.lanes = (uint32_t)r.writers;
	}
	if (xr_queue_new(&opts, &queue, NULL) != XR_OK)
		return 4;
	return run_play(&r, put, get, leave);
}
