/* SPDX-License-Identifier: Apache-2.0 */
/* test_processors.c - which processors a job takes, and which others have. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <criterion/criterion.h>

#include "base/ranks.h"
#include "launcher/host/processors.h"
#include "place/topology.h"
#include "tests/unit/noted.h"

static struct {
	uint32_t cpus;   /* this process may use so many, from 3 on */
	uint32_t cores;  /* of the topology */
	uint32_t wanted; /* CPUs that bind_cores() asks for, from 3 on */
	int taken;       /* another job has this CPU; -1: none */
	bool no_socket;
} played = { .taken = -1 };

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);
void __wrap_topology_read(struct topology *t, const char *root,
	const struct ranks *allowed);
void __wrap_topology_fini(struct topology *t);
uint32_t __wrap_bind_cores(struct bind *bind, const struct topology *topology,
	uint32_t ranks, bind_take_fn *take, void *arg);
enum xr_status __wrap_bind_list(struct bind *bind,
	const struct topology *topology, const char *text, uint32_t ranks,
	struct xr_error *err);
void __wrap_bind_fini(struct bind *bind);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *name, socklen_t len);

long
__wrap_syscall(long nr, ...)
{
	uint64_t *word;
	va_list ap;
	size_t size;

	cr_assert_eq(nr, SYS_sched_getaffinity);
	va_start(ap, nr);
	cr_expect_eq(va_arg(ap, int), 0);
	size = (size_t)va_arg(ap, int);
	word = va_arg(ap, uint64_t *);
	va_end(ap);
	cr_expect_eq(size, 1024);
	for (uint32_t i = 0; i < played.cpus; i++)
		word[(3 + i) / 64] |= 1ull << ((3 + i) % 64);
	return 0;
}

void
__wrap_topology_read(struct topology *t, const char *root,
	const struct ranks *allowed)
{
	memset(t, 0, sizeof(*t));
	t->count = played.cores;
	note("read:%s,%u ", root, ranks_count(allowed));
}

void
__wrap_topology_fini(struct topology *t)
{
	(void)t;
	note("fini ");
}

uint32_t
__wrap_bind_cores(struct bind *bind, const struct topology *topology,
	uint32_t ranks, bind_take_fn *take, void *arg)
{
	uint32_t had = 0;

	(void)bind;
	cr_expect_eq(topology->count, played.cores);
	note("cores:%u,%d ", ranks, take != NULL);
	for (uint32_t i = 0; take != NULL && i < played.wanted; i++)
		had += take(arg, 3 + i);
	return had;
}

enum xr_status
__wrap_bind_list(struct bind *bind, const struct topology *topology,
	const char *text, uint32_t ranks, struct xr_error *err)
{
	(void)bind;
	(void)topology;
	(void)err;
	note("list:%s,%u ", text, ranks);
	return strcmp(text, "bad") == 0 ? XR_E_INVAL : XR_OK;
}

void
__wrap_bind_fini(struct bind *bind)
{
	(void)bind;
	note("unbind ");
}

int
__wrap_socket(int domain, int type, int protocol)
{
	cr_expect(domain == AF_UNIX && type == (SOCK_DGRAM | SOCK_CLOEXEC) &&
		protocol == 0);
	errno = EMFILE;
	return played.no_socket ? -1 : __real_socket(domain, type, protocol);
}

int
__wrap_bind(int fd, const struct sockaddr *name, socklen_t len)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)name;
	int at = (int)offsetof(struct sockaddr_un, sun_path);

	(void)fd;
	cr_expect_eq(un->sun_path[0], '\0');
	note("%.*s ", (int)len - at - 1, un->sun_path + 1);
	errno = EADDRINUSE;
	return played.taken >= 0 &&
			strtol(un->sun_path + 1 + 9, NULL, 10) == played.taken ?
		-1 :
		0;
}

static struct processors p;

static enum xr_status
bind_by(const char *how, uint32_t leases)
{
	struct xr_error err;

	p = (struct processors){ 0 };
	done[0] = '\0';
	return processors_bind(&p, how, 2, leases, &err);
}

Test(processors, they_are_counted)
{
	cr_expect_eq(processors_count(), 1); /* the kernel does not say */
	played.cpus = 1;
	cr_expect_eq(processors_count(), 1);
	played.cpus = 70;
	cr_expect_eq(processors_count(), 70);
}

Test(processors, programs_that_gain_are_bound_unasked)
{
	cr_expect(!processors_wanted("none", true));
	cr_expect(!processors_wanted("none", false));
	cr_expect(processors_wanted("auto", true));
	cr_expect(!processors_wanted("auto", false));
	cr_expect(processors_wanted("core", false));
	cr_expect(processors_wanted("0-3", true));
}

Test(processors, cores_that_are_had_are_leased)
{
	played.cpus = 5;
	played.cores = 4;
	played.wanted = 3;
	cr_expect_eq(bind_by("core", 9), XR_OK);
	cr_expect_str_eq(done,
		"read:/sys,5 cores:2,1 xrun/cpu/3 xrun/cpu/4 xrun/cpu/5 fini ");
	cr_expect(!p.taken && !p.unasked);
	cr_expect_eq(p.lease_count, 3);
	done[0] = '\0';
	processors_fini(&p);
	cr_expect_str_eq(done, "unbind ");
	cr_expect(p.lease_count == 0 && p.leases == NULL);
	/* No more of them than there are descriptors for. */
	cr_expect_eq(bind_by("auto", 2), XR_OK);
	cr_expect_str_eq(done,
		"read:/sys,5 cores:2,1 xrun/cpu/3 xrun/cpu/4 fini ");
	cr_expect(p.unasked && !p.taken && p.lease_count == 2);
	processors_fini(&p);
	cr_expect_eq(bind_by("core", 0), XR_OK);
	cr_expect_str_eq(done, "read:/sys,5 cores:2,1 fini ");
	processors_fini(&p);
	/* Without sockets there are no leases. */
	played.no_socket = true;
	cr_expect_eq(bind_by("core", 9), XR_OK);
	cr_expect(!p.taken && p.lease_count == 0);
	processors_fini(&p);
}

Test(processors, those_of_others_are_shared_if_it_was_asked_for)
{
	played.cores = 4;
	played.wanted = 1;
	played.taken = 3;
	cr_expect_eq(bind_by("core", 9), XR_OK);
	cr_expect_str_eq(done,
		"read:/sys,0 cores:2,1 xrun/cpu/3 unbind cores:2,0 fini ");
	cr_expect(p.taken && p.lease_count == 0);
	processors_fini(&p);
	cr_expect_eq(bind_by("auto", 9), XR_OK);
	cr_expect_str_eq(done, "read:/sys,0 cores:2,1 xrun/cpu/3 unbind fini ");
	cr_expect(p.taken && p.unasked);
	processors_fini(&p);
	played.wanted = 2; /* one of them is free */
	cr_expect_eq(bind_by("auto", 9), XR_OK);
	cr_expect(!p.taken && p.lease_count == 1);
	processors_fini(&p);
	played.cores = played.wanted = 0; /* nothing is known of them */
	cr_expect_eq(bind_by("auto", 9), XR_OK);
	cr_expect(!p.taken);
	processors_fini(&p);
}

Test(processors, a_list_is_what_was_wanted)
{
	cr_expect_eq(bind_by("0-3", 9), XR_OK);
	cr_expect_str_eq(done, "read:/sys,0 list:0-3,2 fini ");
	cr_expect(!p.unasked && !p.taken && p.leases == NULL);
	processors_fini(&p);
	cr_expect_eq(bind_by("bad", 9), XR_E_INVAL);
	processors_fini(&p);
}
