/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - threads that share handles of stores, under the thread sanitizer: at
 * rank 0, and in a file. They add, set, wait for each other, run out of time, and
 * are closed in the middle of it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <xrun/store.h>

#define THREADS 12
#define ROUNDS  20
#define HANDLES 3

static struct xr_store *handle[HANDLES];
static int failures;

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# %s\n", what);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

/* Each sets a key of its own, and waits for its neighbour's. */
static void *
meet(void *ctx)
{
	long me = (long)ctx;
	struct xr_store *s = handle[me % HANDLES];
	struct xr_store_value v;
	char key[32];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(key, sizeof(key), "%d/%ld", i, me);
		check(xr_store_set(s, key, key, strlen(key), NULL) == XR_OK,
			"set");
		check(xr_store_add(s, "n", 1, NULL, NULL) == XR_OK, "add");
		snprintf(key, sizeof(key), "%d/%ld", i, (me + 1) % THREADS);
		check(xr_store_get(s, key, XR_SECONDS(60), &v, NULL) == XR_OK,
			"get");
		check(strcmp(v.data, key) == 0, "value");
		xr_store_value_free(&v);
		if (i % 5 == me % 5)
			check(xr_store_get(s, "never", XR_SECONDS(0.001), &v,
				      NULL) == XR_E_TIMEOUT,
				"timeout");
	}
	return NULL;
}

static void *
wait_for_ever(void *ctx)
{
	struct xr_store_value v;

	check(xr_store_get(ctx, "never", XR_TIMEOUT_NEVER, &v, NULL) ==
			XR_E_CLOSED,
		"closed");
	return NULL;
}

static void
run(void *(*fn)(void *), int which)
{
	pthread_t thread[THREADS];
	const struct timespec bit = { .tv_nsec = 20000000 };

	for (long t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, fn,
			which < 0 ? (void *)t : (void *)handle[which]);
	if (which >= 0) {
		nanosleep(&bit, NULL);
		xr_store_close(handle[which]);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
}

static int
try_place(const char *address)
{
	struct xr_store_options o = XR_STORE_OPTIONS;
	struct xr_error err = { 0 };
	int64_t n = 0;

	o.dynamic = true;
	for (int h = 0; h < HANDLES; h++) {
		o.rank = h;
		if (xr_store_open(address, &o, &handle[h], &err) != XR_OK) {
			fprintf(stderr, "# %s\n", err.text);
			return 1;
		}
	}
	run(meet, -1);
	check(xr_store_add(handle[0], "n", 0, &n, NULL) == XR_OK, "sum");
	check(n == THREADS * ROUNDS, "all were added");
	run(wait_for_ever, 1);
	for (int h = HANDLES - 1; h >= 0; h--)
		xr_store_free(handle[h]);
	return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

static void
name_tcp(char *text, size_t cap)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (bind(fd, (struct sockaddr *)&at, len) == -1 ||
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ==
			-1 ||
		getsockname(fd, (struct sockaddr *)&at, &len) == -1)
		exit(2);
	snprintf(text, cap, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
}

/* The file with the secret that tcp:// needs. */
static void
make_secret(char *path, size_t cap)
{
	int fd;

	snprintf(path, cap, "/tmp/xrun-test-thread-secret.%d", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (write(fd, "0123456789abcdef", 16) != 16)
		exit(2);
	close(fd);
	setenv("XRUN_STORE_SECRET_FILE", path, 1);
}

int
main(void)
{
	char address[64], secret[64];
	int bad;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("1..2");
	make_secret(secret, sizeof(secret));
	name_tcp(address, sizeof(address));
	bad = try_place(address);
	printf("%s 1 - threads share handles of a store at rank 0\n",
		bad ? "not ok" : "ok");
	snprintf(address, sizeof(address), "file:///tmp/xrun-test-threads.%d",
		(int)getpid());
	bad = try_place(address);
	unlink(address + 7);
	unlink(secret);
	printf("%s 2 - threads share handles of a store in a file\n",
		bad ? "not ok" : "ok");
	return bad != 0;
}
