/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_memory.c - the TCP carrier, each of whose allocations fails once. */
#include <sys/wait.h>

#include "tests/unit/net_rig.h"
#include "worker/net/heir.h"
#include "worker/net/intake.h"

TestSuite(net_memory, .timeout = 120);

/* The how manyth from now on fails, on whatever thread; 0: none does. */
static unsigned fails_at, asked;
static size_t most = SIZE_MAX; /* bytes of one */

static bool
is_short(size_t size)
{
	unsigned at = __atomic_load_n(&fails_at, __ATOMIC_RELAXED);

	return size > most ||
		(at != 0 &&
			__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) == at);
}

/* The linker gives the library these for its own (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *
__wrap_malloc(size_t size)
{
	return is_short(size) ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return is_short(n * size) ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return is_short(size) ? NULL : __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return is_short(n * size) ? NULL : __real_reallocarray(p, n, size);
}

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return is_short(size) ? NULL : __real_aligned_alloc(align, size);
}

static struct side *one, *two;

static bool
is_open(struct side *s)
{
	enum xr_status status =
		tcp_carrier.open(&s->host, &s->opts, &s->self, &err);

	cr_expect(status == XR_OK || status == XR_E_NOMEM || status == XR_E_SYS,
		"%d: %s", status, err.text);
	if (status == XR_OK)
		tcp_carrier.address(s->self, s->address, sizeof(s->address));
	return status == XR_OK;
}

/* How many messages the link took. */
static unsigned
talk(struct mate *m)
{
	static char big[100000];
	unsigned taken = 0;
	enum xr_status status[3];
	bool pending;

	status[0] = mate_send(m, 1, "hello", 5, &pending);
	status[1] = mate_send(m, 2, big, 1000, &pending);
	status[2] = mate_send(m, 3, big, sizeof(big), &pending);
	for (unsigned i = 0; i < 3; i++) {
		taken += status[i] == XR_OK;
		cr_expect(status[i] == XR_OK || status[i] == XR_E_NOMEM ||
				status[i] == XR_E_PEER_LOST,
			"%d", status[i]);
	}
	return taken;
}

/* Two workers meet and talk, as far as there is memory; whatever fails is told. */
static void
scene(void)
{
	struct mate *m = &one->mates[2];
	struct xr_link *link = NULL;
	enum xr_status status;
	unsigned taken;

	status = tcp_carrier.connect(one->self, two->address, 2, 1, m, &link,
		&err);
	cr_expect(status == XR_OK || status == XR_E_NOMEM, "%d: %s", status,
		err.text);
	if (status != XR_OK)
		return;
	pthread_mutex_lock(&one->lock);
	m->link = link;
	pthread_mutex_unlock(&one->lock);
	taken = talk(m);
	pthread_mutex_lock(&two->lock);
	while (two->mates[1].delivered < taken && two->mates[1].lost == 0 &&
		__atomic_load_n(&m->lost, __ATOMIC_RELAXED) == 0)
		rig_wait_for(two, 20);
	pthread_mutex_unlock(&two->lock);
	__atomic_store_n(&fails_at, 0, __ATOMIC_RELAXED);
	mate_close(m);
	mate_close(&two->mates[1]);
}

static void
failing_at(unsigned n)
{
	one = side_new(1);
	two = side_new(2);
	asked = 0;
	__atomic_store_n(&fails_at, n, __ATOMIC_RELAXED);
	if (is_open(one) && is_open(two))
		scene();
	__atomic_store_n(&fails_at, 0, __ATOMIC_RELAXED);
	side_close(one);
	side_close(two);
}

Test(net_memory, every_allocation_may_fail)
{
	unsigned n = 0;

	do {
		failing_at(++n);
	} while (asked >= n && n < 200);
	cr_expect_gt(n, 15, "it allocates more than that");
	cr_expect_lt(n, 200);
}

static void *
no_place(void *ctx, const struct net_head *head)
{
	(void)ctx;
	(void)head;
	return NULL;
}

static bool
not_delivered(void *ctx, const struct net_head *head,
	const struct xr_body *body)
{
	(void)ctx;
	(void)head;
	(void)body;
	cr_assert(false);
	return false;
}

Test(net_memory, a_message_that_is_larger_than_memory_is_told)
{
	const struct intake_ops ops = { no_place, not_delivered };
	struct net_head head = { .len = XR_MESSAGE_MAX };
	struct bodies *bodies;
	struct intake in;
	char bytes[NET_HEAD];

	most = 1 << 30;
	bodies = bodies_new();
	intake_init(&in, bodies, &ops, NULL);
	net_head_put(bytes, &head);
	cr_expect_eq(intake_feed(&in, bytes, sizeof(bytes), &err), XR_E_NOMEM);
	cr_expect_not_null(strstr(err.text, "1099511627776 bytes"), "%s",
		err.text);
	cr_expect_null(bodies_get(bodies, UINT64_MAX));
	intake_fini(&in);
	bodies_close(bodies);
}

/* A child of fork() makes its own pool of buffers and reuses its buffers. */
Test(net_memory, a_child_reuses_its_own_buffers)
{
	int status = 0, socket;
	pid_t pid;

	most = 1 << 30;
	socket = heir_socket(AF_INET); /* registers the handlers of fork() */
	cr_assert_geq(socket, 0);
	pid = fork();
	if (pid == 0) {
		struct bodies *bodies = bodies_new();
		struct xr_body_buffer *first, *second;

		if (bodies == NULL || heir_generation() == 0)
			_exit(1);
		first = bodies_get(bodies, 100);
		bodies_unref(first);
		second = bodies_get(bodies, 100);
		_exit(first == NULL || second != first ? 2 : 0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	heir_close(socket);
}
