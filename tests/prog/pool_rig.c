/* SPDX-License-Identifier: Apache-2.0 */
/* pool_rig.c - see pool_rig.h. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <xrun/tensor.h>

#include "tests/prog/pool_rig.h"

const struct flavour *flavour;
int64_t rig_secret;

/* --- the page ----------------------------------------------------------------------- */

/* By its name: workers are executed anew, and inherit nothing but the environment. */
__attribute__((constructor)) static void
open_page(void)
{
	const char *path = getenv("POOL_PAGE");
	int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) :
				-1;

	alarm(RIG_PATIENCE_S);
	if (fd == -1 || ftruncate(fd, RIG_WORDS * sizeof(*rig_word)) == -1)
		return;
	rig_word = rig_memory(RIG_WORDS * sizeof(*rig_word), fd);
	close(fd);
}

/* --- pools --------------------------------------------------------------------------- */

bool
rig_threads(void)
{
	return flavour->kind == XR_POOL_THREADS;
}

/* One list for all, which stays. */
static struct xr_value *
contexts(uint32_t count)
{
	static struct xr_value *list;
	char name[16];

	if (list != NULL)
		return list;
	list = xr_value_new_list();
	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		EXPECT(xr_value_append(list,
			       xr_value_new_text(name, strlen(name))) == XR_OK);
	}
	return list;
}

struct xr_pool_opts
rig_opts(void)
{
	struct xr_pool_opts o = {
		.size = sizeof(o),
		.kind = flavour->kind,
		.routing = flavour->routing,
		.workers = WORKERS,
		.name = flavour->name,
		.method = getenv("POOL_METHOD"),
	};

	if (flavour->contexts) {
		o.flags |= XR_POOL_CONTEXT;
		o.contexts = contexts(WORKERS);
	}
	return o;
}

struct xr_pool *
rig_pool_of(const struct xr_pool_opts *opts)
{
	struct xr_pool *pool = NULL;

	EXPECT(xr_pool_new(opts, &pool, &rig_err) == XR_OK);
	return pool;
}

struct xr_pool *
rig_pool(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool = rig_pool_of(&o);

	return pool;
}

void
rig_end(struct xr_pool *pool)
{
	xr_pool_close(pool);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	EXPECT(xr_pool_size(pool) == 0);
	xr_pool_free(pool);
}

struct xr_pool_task
rig_task(const char *name, struct xr_value *args)
{
	struct xr_pool_task t = { .size = sizeof(t), .args = args };

	if (flavour->bound)
		t.func = xr_fn_bind(name, NULL);
	else
		t.name = name;
	return t;
}

void
rig_done(struct xr_pool_task *task)
{
	xr_value_unref(task->args);
	xr_value_unref(task->func);
}

/* --- values ---------------------------------------------------------------------------- */

struct xr_value *
rig_numbers(int64_t n)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = 0; i < n; i++)
		EXPECT(xr_value_append(list, xr_value_new_i64(i)) == XR_OK);
	return list;
}

struct xr_value *
rig_one(int64_t i)
{
	struct xr_value *item = xr_value_new_i64(i);

	return xr_value_new_list_of(&item, 1);
}

struct xr_value *
rig_two(int64_t i, int64_t k)
{
	struct xr_value *items[2] = { xr_value_new_i64(i),
		xr_value_new_i64(k) };

	return xr_value_new_list_of(items, 2);
}

int64_t
rig_int(const struct xr_value *value)
{
	int64_t i = INT64_MIN;

	EXPECT(xr_value_get_i64(value, &i) == XR_OK);
	return i;
}

int64_t
rig_result(const struct xr_value *value)
{
	const char *context;
	size_t len;

	if (!flavour->contexts)
		return rig_int(value);
	context = xr_value_data(xr_value_at(value, 0), &len);
	EXPECT(context != NULL && len == 2 && context[0] == 'c' &&
		context[1] >= '0' && context[1] < '0' + WORKERS);
	return rig_int(xr_value_at(value, 1));
}

int64_t
rig_get(struct xr_future *future)
{
	struct xr_value *value = NULL;
	int64_t i;

	EXPECT(xr_future_wait(future, SOON, &value, &rig_err) == XR_OK);
	i = rig_result(value);
	xr_value_unref(value);
	xr_future_unref(future);
	return i;
}

enum xr_status
rig_fails(struct xr_future *future)
{
	enum xr_status status = xr_future_wait(future, SOON, NULL, &rig_err);

	xr_future_unref(future);
	return status;
}

int64_t
rig_call(struct xr_pool *pool, const char *name, int64_t i)
{
	struct xr_pool_task t = rig_task(name, rig_one(i));
	struct xr_value *value = NULL;
	int64_t result;

	EXPECT(xr_pool_apply(pool, &t, SOON, &value, &rig_err) == XR_OK);
	result = rig_result(value);
	xr_value_unref(value);
	rig_done(&t);
	return result;
}

struct xr_future *
rig_async(struct xr_pool *pool, const char *name, int64_t i)
{
	struct xr_pool_task t = rig_task(name, rig_one(i));
	struct xr_future *future = NULL;

	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_OK);
	rig_done(&t);
	return future;
}

/* --- functions --------------------------------------------------------------------------- */

/* The task's own argument @i, behind a context. */
static int64_t
arg(const struct xr_value *args, size_t i)
{
	bool has_context = xr_value_kind(xr_value_at(args, 0)) == XR_TEXT;

	return rig_int(xr_value_at(args, i + has_context));
}

/* With the context in front, if it came with one. */
static enum xr_status
answer(struct xr_call *call, const struct xr_value *args, int64_t i)
{
	struct xr_value *items[2], *first = xr_value_at(args, 0);

	if (xr_value_kind(first) != XR_TEXT)
		return xr_reply(call, xr_value_new_i64(i));
	items[0] = xr_value_ref(first);
	items[1] = xr_value_new_i64(i);
	return xr_reply(call, xr_value_new_list_of(items, 2));
}

/* The sum of 2 * ones(10) * i. */
static enum xr_status
weigh(struct xr_call *call, struct xr_value *args, void *ctx)
{
	double ones[10], sum = 0;
	int64_t i = arg(args, 0);

	(void)ctx;
	for (int k = 0; k < 10; k++)
		ones[k] = 1;
	for (int k = 0; k < 10; k++)
		sum += 2 * ones[k] * (double)i;
	return answer(call, args, (int64_t)sum);
}

static enum xr_status
plus(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return answer(call, args, arg(args, 0) + arg(args, 1));
}

static enum xr_status
secret(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return answer(call, args, rig_secret);
}

static enum xr_status
pid(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return answer(call, args, getpid());
}

/* Word 2i is stepped when it begins; it goes on when word 2i + 1 is. */
static enum xr_status
wait_for(struct xr_call *call, struct xr_value *args, void *ctx)
{
	uint32_t i = (uint32_t)arg(args, 0);

	(void)ctx;
	atomic_store(&rig_word[RIG_WORDS - 1 - i], (uint32_t)getpid());
	rig_post(2 * i);
	rig_await(2 * i + 1, 1);
	return answer(call, args, i);
}

static enum xr_status
fails(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t i = arg(args, 0);

	(void)ctx;
	if (i % 3 != 1)
		return answer(call, args, i);
	return xr_reply_fail(call, XR_E_CONFLICT, "it was one of those");
}

static enum xr_status
leave(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)ctx;
	exit((int)arg(args, 0));
}

static enum xr_status
leave_thread(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	pthread_exit(NULL);
}

static enum xr_status
die(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)ctx;
	kill(getpid(), (int)arg(args, 0));
	return XR_OK;
}

/* Computes for so many microseconds. */
static enum xr_status
toil(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t until = rig_now() + arg(args, 0) * 1000;

	(void)ctx;
	while (rig_now() < until)
		;
	return xr_reply(call, xr_value_new_nil());
}

/* Until nobody waits any more. */
static enum xr_status
heed(struct xr_call *call, struct xr_value *args, void *ctx)
{
	uint32_t i = (uint32_t)arg(args, 0);

	(void)ctx;
	rig_post(2 * i);
	while (!xr_call_cancelled(call))
		usleep(1000);
	rig_post(2 * i + 1);
	return XR_OK;
}

static enum xr_status
deaf(struct xr_call *call, struct xr_value *args, void *ctx)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)ctx;
	sigaction(SIGTERM, &ignore, NULL);
	return wait_for(call, args, NULL);
}

/* A list that is its own size in MiB; or what cannot travel. */
static enum xr_status
large(struct xr_call *call, struct xr_value *args, void *ctx)
{
	size_t len = (size_t)arg(args, 0) << 20;
	char *data = calloc(1, len + 1);
	struct xr_value *value = xr_value_new_bytes(data, len);

	(void)ctx;
	free(data);
	return xr_reply(call, value);
}

static enum xr_status
odd(struct xr_call *call, struct xr_value *args, void *ctx)
{
	static int object;

	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_opaque("rig.mute", &object));
}

/* The tensor's first byte becomes the number. */
static enum xr_status
paint(struct xr_call *call, struct xr_value *args, void *ctx)
{
	bool has_context = xr_value_kind(xr_value_at(args, 0)) == XR_TEXT;
	uint8_t *data = xr_tensor_data(xr_value_at(args, has_context), NULL);

	(void)ctx;
	data[0] = 77;
	return answer(call, args, data[0]);
}

struct xr_value *
rig_tensor(void)
{
	struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.device_kind = XR_DEVICE_CPU,
		.shape = { RIG_TENSOR } };
	struct xr_value *t = NULL;

	EXPECT(xr_tensor_new(&d, &t, &rig_err) == XR_OK);
	memset(xr_tensor_data(t, NULL), 1, RIG_TENSOR);
	return t;
}

static enum xr_status
canvas(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, rig_tensor());
}

static _Atomic uint32_t decodes;

/* How often what it is bound to was decoded in this process. */
static enum xr_status
tell_decodes(struct xr_call *call, struct xr_value *args, void *ctx)
{
	bool has_context = xr_value_kind(xr_value_at(args, 0)) == XR_TEXT;
	struct xr_value *bound = xr_value_at(args, has_context);

	(void)ctx;
	EXPECT(xr_value_object(bound, "rig.count") != NULL);
	return answer(call, args, atomic_load(&decodes) * 1000 + arg(args, 1));
}

static enum xr_status
refuse(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	rig_post(1000);
	return xr_reply_fail(call, XR_E_DEVICE, "no device for me");
}

static enum xr_status
greet(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)ctx;
	atomic_fetch_add(&rig_word[1001], (uint32_t)arg(args, 0));
	rig_post(1000);
	return XR_OK;
}

static enum xr_status
later(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_call *kept = xr_call_defer(call);

	(void)ctx;
	EXPECT(kept != NULL);
	answer(kept, args, -arg(args, 0));
	xr_call_drop(kept);
	return XR_OK;
}

static struct xr_value *
count_encode(void *object, void *ctx)
{
	(void)ctx;
	return xr_value_new_bytes(object, 1);
}

static void *
count_decode(const void *data, size_t len, void *ctx)
{
	static char object;

	(void)data;
	(void)len;
	(void)ctx;
	atomic_fetch_add(&decodes, 1);
	return &object;
}

void
rig_register(void)
{
	static const struct {
		const char *name;
		xr_func_fn *fn;
	} all[] = {
		{ "weigh", weigh },
		{ "plus", plus },
		{ "pid", pid },
		{ "secret", secret },
		{ "wait", wait_for },
		{ "fails", fails },
		{ "leave", leave },
		{ "leave-thread", leave_thread },
		{ "die", die },
		{ "toil", toil },
		{ "heed", heed },
		{ "deaf", deaf },
		{ "large", large },
		{ "odd", odd },
		{ "paint", paint },
		{ "canvas", canvas },
		{ "decodes", tell_decodes },
		{ "refuse", refuse },
		{ "greet", greet },
		{ "later", later },
	};
	const struct xr_type count = {
		.size = sizeof(count),
		.name = "rig.count",
		.encode = count_encode,
		.decode = count_decode,
	};
	const struct xr_type mute = { .size = sizeof(mute),
		.name = "rig.mute" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct xr_func f = {
			.size = sizeof(f),
			.name = all[i].name,
			.fn = all[i].fn,
		};

		EXPECT(xr_fn_register(&f, &rig_err) == XR_OK);
	}
	EXPECT(xr_type_register(&count, &rig_err) == XR_OK);
	EXPECT(xr_type_register(&mute, &rig_err) == XR_OK);
}
