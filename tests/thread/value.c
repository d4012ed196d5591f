/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - threads that share values, under the thread sanitizer: they refer to
 * them, read, compare, encode and decode them, and whoever is last frees them,
 * while types are registered and dicts get their seed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/tensor.h>
#include <xrun/value.h>

#define THREADS 8
#define ROUNDS  400
#define ITEMS   5

static int failures, freed, objects;

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# %s\n", what);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static void
count_free(void *data, void *ctx)
{
	(void)data;
	__atomic_add_fetch((int *)ctx, 1, __ATOMIC_RELAXED);
}

/* --- what is shared -------------------------------------------------------- */

static struct xr_value *
object_encode(void *object, void *ctx)
{
	(void)ctx;
	return xr_value_new_bytes(object, strlen(object));
}

static void *
object_decode(const void *data, size_t len, void *ctx)
{
	(void)ctx;
	__atomic_add_fetch(&objects, 1, __ATOMIC_RELAXED);
	return strndup(data, len);
}

static void
object_free(void *object, void *ctx)
{
	(void)ctx;
	__atomic_sub_fetch(&objects, 1, __ATOMIC_RELAXED);
	free(object);
}

static void
register_type(const char *name)
{
	struct xr_type type = {
		.size = sizeof(type),
		.name = name,
		.encode = object_encode,
		.decode = object_decode,
		.free = object_free,
	};

	check(xr_type_register(&type, NULL) == XR_OK, "type");
}

static struct xr_value *
tensor(void)
{
	struct xr_tensor_desc desc = {
		.size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.shape = { 2000 },
	};
	struct xr_value *value = NULL;

	check(xr_tensor_new(&desc, &value, NULL) == XR_OK, "tensor");
	memset(xr_tensor_data(value, NULL), 0, 8000);
	return value;
}

/* One that ends with what was wrapped for it. */
static struct xr_value *
shared(void)
{
	struct xr_value *dict = xr_value_new_dict();
	struct xr_value *items[ITEMS] = {
		xr_value_wrap_bytes("bytes", 5, count_free, &freed),
		xr_value_new_text("text", 4),
		tensor(),
		xr_value_new_opaque("an.object", strdup("object")),
		dict,
	};
	char key[8];

	__atomic_add_fetch(&objects, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "%d", i);
		xr_value_put(dict, key, strlen(key), xr_value_new_i64(i));
	}
	return xr_value_new_list_of(items, ITEMS);
}

/* --- what threads do ------------------------------------------------------- */

static pthread_barrier_t barrier;
static struct xr_value *all[ROUNDS]; /* of each round */

static void
read_one(struct xr_value *value, int round)
{
	struct xr_value *dict = xr_value_at(value, ITEMS - 1), *view = NULL;
	struct xr_tensor_desc desc = { .size = sizeof(desc) };
	int64_t i = -1;

	xr_value_get_i64(xr_value_find(dict, "17", 2), &i);
	check(i == 17, "find");
	check(xr_value_append(value, xr_value_new_nil()) == XR_E_STATE,
		"it never changes");
	check(xr_tensor_desc(xr_value_at(value, 2), &desc) == XR_OK, "desc");
	desc.shape[0] = 1 + round % 100;
	check(xr_tensor_view(xr_value_at(value, 2), &desc, &view, NULL) ==
			XR_OK,
		"view");
	xr_value_unref(view);
}

static void
send_one(struct xr_value *value)
{
	struct xr_encoded *encoded = NULL;
	struct xr_value *back = NULL;
	const struct xr_part *parts;
	size_t count;

	check(xr_encode(value, NULL, &encoded, NULL) == XR_OK, "encode");
	parts = xr_encoded_parts(encoded, &count);
	check(xr_decode(parts, count, NULL, &back, NULL) == XR_OK, "decode");
	check(xr_value_equal(value, back), "equal");
	xr_encoded_free(encoded);
	xr_value_unref(back);
}

static void *
share(void *ctx)
{
	long me = (long)ctx;
	char name[32];

	snprintf(name, sizeof(name), "of.thread.%ld", me);
	register_type(name);
	for (int round = 0; round < ROUNDS; round++) {
		struct xr_value *mine;

		if (me == 0) {
			all[round] = shared();
			for (int i = 1; i < THREADS; i++)
				xr_value_ref(all[round]);
		}
		pthread_barrier_wait(&barrier);
		mine = xr_value_ref(xr_value_at(all[round], round % ITEMS));
		read_one(all[round], round);
		if (round % THREADS == me)
			send_one(all[round]);
		xr_value_unref(all[round]);
		xr_value_unref(mine);
	}
	return NULL;
}

int
main(void)
{
	pthread_t thread[THREADS];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..1\n");
	register_type("an.object");
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, share, (void *)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	check(freed == ROUNDS, "each was freed once");
	check(objects == 0, "no object stays");
	printf("%s 1 - threads share values\n",
		failures == 0 ? "ok" : "not ok");
	return failures != 0;
}
