/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.c - fuzz target: what a peer sends to an agent.
 *
 * Input: messages, each of five bytes and a tail: kind, flags, which function and
 * which call, what the body is made of, the tail's length. A body is the tail, or
 * one that would do, in which pairs of the tail's bytes say what is changed, and
 * where; a byte that is left over cuts it. Two calls of ours are open meanwhile, so
 * that there is something to answer.
 *
 * Claims: nothing crashes, and nothing is read beyond a body; whatever came, each
 * of our calls ends once, with a value or an error that has words; a call is
 * answered at most once; a peer that sends no message is lost, and another is not:
 * the agent still serves.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/func.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#include "tests/fuzz/fuzz.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/func.h"
#include "worker/rpc/message.h"
#include "worker/rpc/pending.h"
#include "worker/rpc/serve.h"

#define ASKED    2
#define MESSAGES 16
#define BODY_MAX 4096

/* --- a carrier that delivers what it is told, on this thread --------------- */

struct xr_body_buffer {
	size_t refs;
	char data[];
};

static struct {
	struct xr_carrier_host host;
	pthread_mutex_t lock;
	unsigned answers;      /* sent, of calls that came */
	uint64_t asked[ASKED]; /* corr of our calls */
	unsigned asked_count;
} wire = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char the_link, the_self;

static enum xr_status
wire_open(const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts, void **self, struct xr_error *err)
{
	(void)opts;
	(void)err;
	wire.host = *host;
	*self = &the_self;
	return XR_OK;
}

static size_t
wire_address(void *self, char *text, size_t cap)
{
	(void)self;
	return (size_t)snprintf(text, cap, "wire:here");
}

static enum xr_status
wire_connect(void *self, const char *address, uint32_t id, uint64_t incarnation,
	void *peer, struct xr_link **link, struct xr_error *err)
{
	(void)self;
	(void)address;
	(void)id;
	(void)incarnation;
	(void)peer;
	(void)err;
	*link = (struct xr_link *)&the_link;
	return XR_OK;
}

static enum xr_status
wire_send(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	volatile uint8_t sum = 0;

	(void)link;
	for (uint32_t i = 0; i < m->count; i++)
		for (size_t k = 0; k < m->parts[i].len; k++)
			sum ^= ((const uint8_t *)m->parts[i].data)[k];
	(void)sum;
	pthread_mutex_lock(&wire.lock);
	if (m->record.kind == MESSAGE_REPLY || m->record.kind == MESSAGE_ERROR)
		wire.answers++;
	else if (m->record.kind == MESSAGE_REQUEST && wire.asked_count < ASKED)
		wire.asked[wire.asked_count++] = m->record.corr;
	pthread_mutex_unlock(&wire.lock);
	if (pending != NULL)
		*pending = false;
	return XR_OK;
}

static uint32_t
wire_progress(void *self, uint32_t budget)
{
	(void)self;
	(void)budget;
	return 0;
}

/* A copy of its own size, so that whoever reads beyond it is caught. */
static struct xr_body_buffer *
wire_take(void *self, const struct xr_body *body, const void **data)
{
	struct xr_body_buffer *b = malloc(sizeof(*b) + body->len);

	(void)self;
	HOLDS(b != NULL);
	b->refs = 1;
	if (body->len > 0)
		memcpy(b->data, body->data, body->len);
	*data = b->data;
	return b;
}

static void
wire_unref(struct xr_body_buffer *b)
{
	if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(b);
}

static void
wire_close(struct xr_link *link)
{
	(void)link;
}

static void
wire_free(void *self)
{
	(void)self;
}

static const struct xr_carrier wire_carrier = {
	.size = sizeof(wire_carrier),
	.api = XR_CARRIER_API,
	.name = "wire",
	.copies = UINT32_MAX,
	.open = wire_open,
	.address = wire_address,
	.connect = wire_connect,
	.send = wire_send,
	.progress = wire_progress,
	.body_take = wire_take,
	.buffer_unref = wire_unref,
	.link_close = wire_close,
	.free = wire_free,
};

/* --- what can be called ---------------------------------------------------- */

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(args));
}

static enum xr_status
echo_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

static enum xr_status
leave_it(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	xr_call_drop(xr_call_defer(call));
	return XR_OK;
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "echo",
		.flags = XR_FN_SHORT,
		.fn = echo },
	{ .size = sizeof(functions[0]), .name = "long", .fn = echo },
	{ .size = sizeof(functions[0]),
		.name = "raw",
		.flags = XR_FN_SHORT,
		.raw = echo_raw },
	{ .size = sizeof(functions[0]),
		.name = "leave",
		.schema = "i",
		.flags = XR_FN_SHORT,
		.fn = leave_it },
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* --- bodies that would do -------------------------------------------------- */

enum body {
	BODY_TAIL,
	BODY_CALL,
	BODY_NAMED, /* the same, with a name in front */
	BODY_ERROR,
	BODY_REPORT, /* of a meeting */
	BODIES,
};

static struct {
	char *data;
	size_t len;
} bodies[BODIES];

static void
keep(enum body which, const void *front, size_t front_len, struct xr_value *v)
{
	struct xr_encoded *encoded = NULL;
	const struct xr_part *parts;
	size_t n, len = front_len;
	char *data = malloc(BODY_MAX);

	HOLDS(data != NULL && v != NULL);
	HOLDS(xr_encode(v, NULL, &encoded, NULL) == XR_OK);
	memcpy(data, front, front_len);
	parts = xr_encoded_parts(encoded, &n);
	for (size_t i = 0; i < n; i++) {
		HOLDS(len + parts[i].len <= BODY_MAX);
		memcpy(data + len, parts[i].data, parts[i].len);
		len += parts[i].len;
	}
	bodies[which].data = data;
	bodies[which].len = len;
	xr_encoded_free(encoded);
	xr_value_unref(v);
}

static struct xr_value *
a_call(void)
{
	struct xr_value *one = xr_value_new_i64(7), *items[3];

	items[0] = xr_value_new_list_of(&one, 1);
	items[1] = xr_value_new_dict();
	items[2] = xr_value_new_nil();
	return xr_value_new_list_of(items, 3);
}

static struct xr_value *
a_report(void)
{
	struct xr_value *names[2], *items[6];

	names[0] = xr_value_new_text("peer", 4);
	names[1] = xr_value_new_text("self", 4);
	items[0] = xr_value_new_u64(1);
	items[1] = xr_value_new_u64(2);
	items[2] = xr_value_new_u64(0);
	items[3] = xr_value_new_i64(INT64_MAX);
	items[4] = xr_value_new_list_of(names, 2);
	items[5] = xr_value_new_nil();
	return xr_value_new_list_of(items, 6);
}

static void
make_bodies(void)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = XR_E_REMOTE,
		.text = "it failed",
		.func = "echo",
		.worker = "peer",
		.worker_id = 1 };
	static const char name[8] = "\4\0echo";

	keep(BODY_CALL, "", 0, a_call());
	keep(BODY_NAMED, name, sizeof(name), a_call());
	keep(BODY_ERROR, "", 0, xr_value_new_error(&f));
	keep(BODY_REPORT, "", 0, a_report());
}

/* A block of its own size. */
static char *
make_body(enum body which, const uint8_t *tail, size_t tail_len, size_t *len)
{
	size_t size = which == BODY_TAIL ? tail_len : bodies[which].len;
	char *data;

	if (which != BODY_TAIL && tail_len % 2 != 0)
		size = size * tail[tail_len - 1] / UINT8_MAX;
	data = malloc(size > 0 ? size : 1);
	HOLDS(data != NULL);
	memcpy(data,
		which == BODY_TAIL ? (const char *)tail : bodies[which].data,
		size);
	for (size_t i = 0; which != BODY_TAIL && size > 0 && i + 1 < tail_len;
		i += 2)
		data[tail[i] % size] ^= (char)tail[i + 1];
	*len = size;
	return data;
}

/* --- an agent -------------------------------------------------------------- */

static struct peer *peer;

static void
open_agent(void)
{
	static const struct xr_carrier *const carriers[] = { &wire_carrier };
	const struct agent_wish wish = {
		.name = "self",
		.incarnation = 1,
		.threads = 2,
		.timeout = INT64_MAX,
		.carriers = carriers,
		.carrier_count = 1,
	};
	struct xr_error err = { 0 };

	HOLDS(agent_open(&wish, &err) == XR_OK);
	agent_begin();
	peer = agent_add(&(struct agent_member){ "peer", 1, 1, "wire:there",
		NULL, 0 });
	HOLDS(peer != NULL);
}

static void
set_up(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	HOLDS(xr_module_static(functions, FUNCTIONS, NULL) == XR_OK);
	make_bodies();
	open_agent();
}

static struct xr_future *
ask(const char *who)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };

	call.to = who;
	call.func = "echo";
	call.timeout = XR_TIMEOUT_NEVER;
	HOLDS(xr_rpc_async(&call, &future, &err) == XR_OK);
	return future;
}

/* The number of a call that is answered, or of one that comes. */
static uint64_t
corr_of(uint8_t which, unsigned number)
{
	switch (which % 4) {
	case 0:
	case 1:
		return wire.asked[which % 4];
	case 2:
		return number;
	default:
		return ~UINT64_C(0) - number;
	}
}

/* One message off the front of @data; gives what is left. */
static size_t
deliver_one(const uint8_t **data, size_t size, unsigned number, unsigned *calls)
{
	const uint8_t *d = *data, *tail = d + 5;
	struct xr_record record = { .kind = d[0], .flags = d[1] };
	size_t tail_len = d[4] < size - 5 ? d[4] : size - 5;
	struct xr_body body = { 0 };
	char *bytes = make_body(d[3] % BODIES, tail, tail_len, &body.len);

	record.corr = corr_of(d[2] >> 4, number);
	record.method = (d[2] & 15) < FUNCTIONS ?
		func_hash(functions[d[2] & 15].name,
			strlen(functions[d[2] & 15].name)) :
		d[2] & 15u;
	body.data = bytes;
	*calls += record.kind != MESSAGE_REPLY && record.kind != MESSAGE_ERROR;
	wire.host.deliver(wire.host.ctx, peer, &record, &body);
	free(bytes);
	*data = tail + tail_len;
	return size - 5 - tail_len;
}

static void
check_end(struct xr_future *future)
{
	struct xr_error err = { 0 };

	xr_future_cancel(future);
	HOLDS(xr_future_done(future));
	fuzz_error(xr_future_value(future, NULL, &err), &err);
	xr_future_unref(future);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xr_future *future[ASKED], *own;
	unsigned calls = 0;

	set_up();
	wire.answers = wire.asked_count = 0;
	for (int i = 0; i < ASKED; i++)
		future[i] = ask("peer");
	HOLDS(wire.asked_count == ASKED);
	for (unsigned i = 0; i < MESSAGES && size >= 5; i++)
		size = deliver_one(&data, size, i, &calls);
	while (serve_count(false) > 0)
		sched_yield();
	own = ask("self");
	HOLDS(xr_future_wait(own, XR_SECONDS(60), NULL, NULL) == XR_OK);
	xr_future_unref(own);
	for (int i = 0; i < ASKED; i++)
		check_end(future[i]);
	HOLDS(pending_count(false) == 0);
	pthread_mutex_lock(&wire.lock);
	HOLDS(wire.answers <= calls);
	pthread_mutex_unlock(&wire.lock);
	/* What a meeting was told stays as long as the agent. */
	agent_close(NULL, NULL);
	open_agent();
	return 0;
}
