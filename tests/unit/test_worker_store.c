/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_store.c - xr_store_*() against stores that are really served: by
 * rank 0 at tcp://, and in a file; and under store.bats, by xrun. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <xrun/store.h>

#define THREADS 100

static char tcp[64], file[64]; /* addresses of this process's own */
static char secret[64];        /* the file that tcp:// needs */
static struct xr_error err;

/* A port that nobody else is given: bound, and not listened on. */
static void
name_places(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	cr_assert_eq(bind(fd, (struct sockaddr *)&at, len), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)),
		0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(tcp, sizeof(tcp), "tcp://127.0.0.1:%u", ntohs(at.sin_port));
	snprintf(file, sizeof(file), "file:///tmp/xrun-test-store.%d",
		(int)getpid());
	unlink(file + 7);
	snprintf(secret, sizeof(secret), "/tmp/xrun-test-secret.%d",
		(int)getpid());
	fd = open(secret, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, "0123456789abcdef", 16), 16);
	close(fd);
	setenv("XRUN_STORE_SECRET_FILE", secret, 1);
}

static void
remove_file(void)
{
	if (secret[0] != '\0')
		unlink(secret);
	if (file[0] != '\0')
		unlink(file + 7);
}

TestSuite(worker_store, .init = name_places, .fini = remove_file,
	.timeout = 60);

static struct xr_store *
open_as(const char *address, int64_t rank, const char *prefix)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store *store = NULL;

	o.rank = rank;
	o.dynamic = true;
	o.prefix = prefix;
	o.timeout = XR_SECONDS(20);
	cr_assert_eq(xr_store_open(address, &o, &store, &err), XR_OK, "%s",
		err.text);
	return store;
}

static void
has(struct xr_store *store, const char *key, const char *text)
{
	struct xr_store_value v;

	cr_assert_eq(xr_store_get(store, key, XR_SECONDS(20), &v, &err), XR_OK,
		"%s", err.text);
	cr_expect_str_eq(v.data, text);
	cr_expect_eq(v.len, strlen(text));
	xr_store_value_free(&v);
	cr_expect_null(v.data);
}

static void
set(struct xr_store *store, const char *key, const char *text)
{
	cr_assert_eq(xr_store_set(store, key, text, strlen(text), &err), XR_OK,
		"%s", err.text);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Both kinds of store: each claim is made of both. */
static const char *
place(int i)
{
	const char *other = getenv("STORE_PLACE");

	if (other != NULL)
		return other;
	return i == 0 ? tcp : file;
}

/* STORE_PLACE, an address, takes the place of both: store.bats has that of a
 * job in it. */
#define EACH(i) \
	for (int i = 0; i < (getenv("STORE_PLACE") == NULL ? 2 : 1); i++)

/* --- claims ---------------------------------------------------------------- */

struct late {
	struct xr_store *store;
	const char *key;
};

static void *
set_later(void *ctx)
{
	const struct late *l = ctx;
	const struct timespec bit = { .tv_nsec = 50000000 };

	nanosleep(&bit, NULL);
	set(l->store, l->key, "late");
	return NULL;
}

Test(worker_store, AC_S1_a_get_waits_until_somebody_sets_the_key)
{
	EACH(i)
	{
		struct late late = { open_as(place(i), 0, NULL), "k" };
		struct xr_store *other = open_as(place(i), 1, NULL);
		pthread_t thread;

		pthread_create(&thread, NULL, set_later, &late);
		has(other, "k", "late");
		pthread_join(thread, NULL);
		/* On the same handle, too. */
		late.key = "own";
		pthread_create(&thread, NULL, set_later, &late);
		has(late.store, "own", "late");
		pthread_join(thread, NULL);
		xr_store_free(other);
		xr_store_free(late.store);
	}
}

Test(worker_store, AC_S1_a_get_that_is_not_answered_in_time_names_its_key)
{
	EACH(i)
	{
		struct xr_store *s = open_as(place(i), 0, NULL);
		struct xr_store_value v;
		const char *keys[] = { "here", "addr/7" };
		double before = now();

		set(s, "here", "x");
		cr_expect_eq(xr_store_get(s, "addr/7", XR_SECONDS(0.1), &v,
				     &err),
			XR_E_TIMEOUT);
		cr_expect_str_eq(err.text,
			"store: nobody has set the key '/addr/7' within 0.1 s");
		cr_expect_eq(xr_store_wait(s, keys, 2, XR_SECONDS(0.1), &err),
			XR_E_TIMEOUT);
		cr_expect_str_eq(err.text,
			"store: nobody has set the key '/addr/7' within 0.1 s");
		cr_expect_geq(now() - before, 0.2);
		cr_expect_eq(xr_store_get(s, "addr/7", 0, &v, &err),
			XR_E_NOTFOUND);
		xr_store_free(s);
	}
}

static void *
add_one(void *ctx)
{
	int64_t sum = 0;

	cr_assert_eq(xr_store_add(ctx, "n", 1, &sum, NULL), XR_OK);
	return (void *)(intptr_t)sum;
}

Test(worker_store, AC_S2_a_hundred_threads_that_add_one_end_at_a_hundred)
{
	EACH(i)
	{
		struct xr_store *s[4];
		pthread_t thread[THREADS];
		bool seen[THREADS + 1] = { false };
		void *sum;

		for (int h = 0; h < 4; h++)
			s[h] = open_as(place(i), h, NULL);
		for (int t = 0; t < THREADS; t++)
			pthread_create(&thread[t], NULL, add_one, s[t % 4]);
		for (int t = 0; t < THREADS; t++) {
			pthread_join(thread[t], &sum);
			cr_assert((intptr_t)sum >= 1 &&
				(intptr_t)sum <= THREADS);
			seen[(intptr_t)sum] = true;
		}
		for (int n = 1; n <= THREADS; n++)
			cr_expect(seen[n], "%d", n);
		has(s[0], "n", "100");
		for (int h = 3; h >= 0; h--)
			xr_store_free(s[h]);
	}
}

static void
swaps(struct xr_store *s, const char *key, const char *expected,
	const char *desired, const char *after)
{
	struct xr_store_swap swap = {
		.size = sizeof(swap),
		.key = key,
		.expected = expected,
		.expected_len = strlen(expected),
		.desired = desired,
		.desired_len = strlen(desired),
	};
	struct xr_store_value v = { 0 };
	bool there = true;

	cr_assert_eq(xr_store_compare_set(s, &swap, &v, &there, &err), XR_OK,
		"%s", err.text);
	cr_expect_eq(there, after != NULL);
	if (after != NULL)
		cr_expect_str_eq(v.data, after);
	xr_store_value_free(&v);
}

Test(worker_store, AC_S3_compare_set_does_what_its_table_says)
{
	EACH(i)
	{
		struct xr_store *s = open_as(place(i), 0, NULL);

		swaps(s, "a", "x", "new", NULL);
		swaps(s, "a", "", "new", "new");
		swaps(s, "a", "new", "newer", "newer");
		swaps(s, "a", "new", "newest", "newer");
		swaps(s, "a", "", "newest", "newer");
		set(s, "e", "");
		swaps(s, "e", "", "full", "full");
		xr_store_free(s);
	}
}

Test(worker_store, AC_S4_two_prefixes_do_not_see_each_other)
{
	EACH(i)
	{
		struct xr_store *none = open_as(place(i), 0, NULL);
		struct xr_store *a = open_as(place(i), 1, "a");
		struct xr_store *b = open_as(place(i), 2, "b");
		struct xr_store *a2 = open_as(place(i), 3, "a");
		const char *keys[] = { "k", "b/k", "/k", "a/k" };
		bool there;

		set(a, "k", "of a");
		set(a, "b/k", "x");
		set(none, "a/k", "y");
		for (int k = 0; k < 3; k++) {
			cr_assert_eq(xr_store_check(b, &keys[k], 1, &there,
					     NULL),
				XR_OK);
			cr_expect_not(there, "%s", keys[k]);
		}
		has(a, "k", "of a");
		has(a2, "k", "of a");
		has(none, "a/k", "y");
		xr_store_free(a);
		xr_store_free(b);
		xr_store_free(a2);
		xr_store_free(none);
	}
}

static enum xr_status
opened(const char *address, int64_t rank, int64_t size)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store *store = NULL;
	enum xr_status status;

	o.rank = rank;
	o.world_size = size;
	o.timeout = XR_SECONDS(20);
	status = xr_store_open(address, &o, &store, &err);
	if (status == XR_OK)
		xr_store_free(store);
	return status;
}

Test(worker_store, AC_S5_each_missing_variable_is_named)
{
	static const char *const names[] = { "RANK", "WORLD_SIZE",
		"MASTER_ADDR", "MASTER_PORT" };

	unsetenv("XRUN_STORE");
	for (int missing = 0; missing < 4; missing++) {
		setenv("RANK", "0", 1);
		setenv("WORLD_SIZE", "1", 1);
		setenv("MASTER_ADDR", "127.0.0.1", 1);
		setenv("MASTER_PORT", strrchr(tcp, ':') + 1, 1);
		cr_expect_eq(opened(NULL, -1, -1), XR_OK, "%s", err.text);
		unsetenv(names[missing]);
		cr_expect_eq(opened(NULL, -1, -1), XR_E_INVAL);
		cr_expect(strstr(err.text, names[missing]) != NULL, "%s",
			err.text);
	}
}

/* The names are the caller's: by a count of tries, who failed once would look for
 * others than the rest. */
Test(worker_store,
	AC_S7_who_failed_at_first_meets_the_others_in_the_same_process)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_store *first, *late = NULL;

	o.rank = 1;
	o.dynamic = true;
	o.prefix = "group";
	o.timeout = XR_SECONDS(0.2);
	cr_assert_neq(xr_store_open(tcp, &o, &late, &err), XR_OK);
	cr_expect_null(late);
	first = open_as(tcp, 0, "group");
	cr_assert_eq(xr_store_set(first, "here", "I am", 4, &err), XR_OK);
	late = open_as(tcp, 1, "group");
	has(late, "here", "I am");
	xr_store_free(late);
	xr_store_free(first);
}

Test(worker_store, AC_S8_a_rank_that_is_given_twice_is_refused)
{
	char text[96];

	snprintf(text, sizeof(text), "%s?rank=0&world_size=1", tcp);
	cr_expect_eq(opened(text, -1, -1), XR_OK, "%s", err.text);
	cr_expect_eq(opened(text, 0, -1), XR_E_INVAL);
	cr_expect(strstr(err.text, "rank is given twice") != NULL, "%s",
		err.text);
}

Test(worker_store, AC_S9_an_unknown_scheme_and_port_65536_are_refused_by_name)
{
	cr_expect_eq(opened("carrier://pigeon", 0, 1), XR_E_NOTFOUND);
	cr_expect(strstr(err.text, "'carrier'") != NULL, "%s", err.text);
	cr_expect_eq(opened("tcp://localhost:65536", 0, 1), XR_E_RANGE);
	cr_expect(strstr(err.text, "65536") != NULL, "%s", err.text);
}

static void *
get_for_ever(void *ctx)
{
	struct xr_store_value v;

	return (void *)(intptr_t)xr_store_get(ctx, "never", XR_TIMEOUT_NEVER,
		&v, NULL);
}

Test(worker_store, AC_S10_closing_the_handle_ends_its_gets_with_closed)
{
	EACH(i)
	{
		struct xr_store *s = open_as(place(i), 0, NULL);
		struct xr_store *other = open_as(place(i), 1, NULL);
		pthread_t thread[3];
		const struct timespec bit = { .tv_nsec = 50000000 };
		void *status;

		for (int t = 0; t < 3; t++)
			pthread_create(&thread[t], NULL, get_for_ever, other);
		nanosleep(&bit, NULL);
		xr_store_close(other);
		for (int t = 0; t < 3; t++) {
			pthread_join(thread[t], &status);
			cr_expect_eq((intptr_t)status, XR_E_CLOSED);
		}
		cr_expect_eq(xr_store_set(other, "k", "", 0, &err),
			XR_E_CLOSED);
		set(s, "k", "others go on");
		xr_store_free(other);
		xr_store_free(s);
	}
}

Test(worker_store, AC_S11_ten_thousand_keys_and_64_mib_make_the_round)
{
	static char big[64 << 20];
	char key[16], text[1024];

	for (size_t at = 0; at < sizeof(big); at += 4096)
		memcpy(big + at, &at, sizeof(at));
	EACH(i)
	{
		struct xr_store *s = open_as(place(i), 0, NULL);
		struct xr_store *other = open_as(place(i), 1, NULL);
		struct xr_store_value v;

		for (int k = 0; k < 10000; k++) {
			snprintf(key, sizeof(key), "key/%d", k);
			memset(text, 'a' + k % 26, sizeof(text));
			cr_assert_eq(xr_store_set(s, key, text, sizeof(text),
					     &err),
				XR_OK, "%s", err.text);
		}
		for (int k = 0; k < 10000; k++) {
			snprintf(key, sizeof(key), "key/%d", k);
			memset(text, 'a' + k % 26, sizeof(text));
			cr_assert_eq(xr_store_get(other, key, 0, &v, &err),
				XR_OK, "%s", err.text);
			cr_assert(v.len == sizeof(text) &&
				memcmp(v.data, text, v.len) == 0);
			xr_store_value_free(&v);
		}
		cr_assert_eq(xr_store_set(s, "big", big, sizeof(big), &err),
			XR_OK, "%s", err.text);
		cr_assert_eq(xr_store_get(other, "big", 0, &v, &err), XR_OK,
			"%s", err.text);
		cr_assert(v.len == sizeof(big) &&
			memcmp(v.data, big, v.len) == 0);
		xr_store_value_free(&v);
		cr_expect_eq(xr_store_set(s, "big", big, sizeof(big) + 1, NULL),
			XR_E_RANGE);
		xr_store_free(other);
		xr_store_free(s);
	}
}
