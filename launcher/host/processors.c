/* SPDX-License-Identifier: Apache-2.0 */
/* processors.c - see processors.h. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/host/processors.h"

/* The CPUs this process may run on; none if the kernel does not say. */
static struct ranks
allowed(void)
{
	struct ranks set;

	XR_ASSERT(ranks_init(&set, TOPOLOGY_CPUS) == XR_OK);
	syscall(SYS_sched_getaffinity, 0, TOPOLOGY_CPUS / 8, set.word);
	return set;
}

uint32_t
processors_count(void)
{
	struct ranks set = allowed();
	uint32_t n = ranks_count(&set);

	ranks_fini(&set);
	return n == 0 ? 1 : n;
}

bool
processors_wanted(const char *how, bool gains)
{
	return strcmp(how, "none") != 0 && (gains || strcmp(how, "auto") != 0);
}

/* The socket that means "this CPU is taken"; -1 with EADDRINUSE if another job
 * has it. */
static int
lease(uint32_t cpu)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), n;

	if (fd == -1)
		return -1;
	n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
		"xrun/cpu/%u", cpu);
	if (bind(fd, (const struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			    (size_t)n)) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

struct taking {
	struct processors *p;
	uint32_t most;
};

/* Only another's lease is in the way; without sockets there are none. */
static bool
take(void *arg, uint32_t cpu)
{
	struct taking *t = arg;
	int fd = -1;

	errno = 0;
	if (t->p->lease_count < t->most)
		fd = lease(cpu);
	if (fd != -1)
		t->p->leases[t->p->lease_count++] = fd;
	return fd != -1 || errno != EADDRINUSE;
}

static void
bind_to_cores(struct processors *p, const struct topology *t, uint32_t ranks,
	uint32_t leases)
{
	struct taking taking = { .p = p, .most = leases };

	p->leases = xcalloc(t->count, sizeof(*p->leases));
	if (bind_cores(&p->bind, t, ranks, take, &taking) > 0 || t->count == 0)
		return;
	p->taken = true;
	bind_fini(&p->bind);
	if (!p->unasked)
		bind_cores(&p->bind, t, ranks, NULL, NULL);
}

enum xr_status
processors_bind(struct processors *p, const char *how, uint32_t ranks,
	uint32_t leases, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct ranks may = allowed();
	struct topology t;

	topology_read(&t, "/sys", &may);
	p->unasked = strcmp(how, "auto") == 0;
	if (p->unasked || strcmp(how, "core") == 0)
		bind_to_cores(p, &t, ranks, leases);
	else
		status = bind_list(&p->bind, &t, how, ranks, err);
	topology_fini(&t);
	ranks_fini(&may);
	return status;
}

void
processors_fini(struct processors *p)
{
	for (uint32_t i = 0; i < p->lease_count; i++)
		fd_close(p->leases[i]);
	free(p->leases);
	bind_fini(&p->bind);
	*p = (struct processors){ 0 };
}
