/* SPDX-License-Identifier: Apache-2.0 */
/* cma.c - see cma.h. */
#include <errno.h>

#include <sys/random.h>

#include "worker/shm/cma.h"

static uint64_t proof; /* 0: not drawn */
static bool forbidden;

void
cma_forbid(bool now)
{
	forbidden = now;
}

void
cma_offer(struct segment_slot *slot)
{
	int saved = errno;

	if (proof == 0 &&
		getrandom(&proof, sizeof(proof), GRND_NONBLOCK) !=
			sizeof(proof))
		proof = 0;
	atomic_store(&slot->proof, proof);
	atomic_store(&slot->probe, (uintptr_t)&proof);
	errno = saved;
}

static int64_t
read_parts(const struct segment_slot *slot, const struct iovec *to,
	const struct iovec *from, uint32_t count)
{
	pid_t pid = (pid_t)segment_holder(atomic_load_explicit(&slot->claim,
		memory_order_relaxed));
	int saved = errno;
	ssize_t n;

	n = pid <= 0 ? -1 : process_vm_readv(pid, to, 1, from, count, 0);
	if (n == -1 && pid > 0 && errno == ESRCH)
		n = CMA_GONE;
	errno = saved;
	return n;
}

bool
cma_probe(const struct segment_slot *slot)
{
	uint64_t want = atomic_load(&slot->proof), got = 0;
	const struct iovec to = { &got, sizeof(got) };
	const struct iovec from = {
		(void *)(uintptr_t)atomic_load(&slot->probe), sizeof(got)
	};

	return !forbidden && want != 0 &&
		read_parts(slot, &to, &from, 1) == sizeof(got) && got == want;
}

int64_t
cma_read(const struct segment_slot *slot, const struct xr_part *parts,
	uint32_t count, uint64_t skip, const struct iovec *to)
{
	struct iovec from[CMA_PARTS];
	uint64_t left = to->iov_len;
	uint32_t n = 0;

	for (uint32_t i = 0; i < count && left > 0; i++) {
		uint64_t len = parts[i].len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = len - skip < left ? len - skip : left;
		from[n].iov_base = (char *)parts[i].data + skip;
		from[n++].iov_len = len;
		left -= len;
		skip = 0;
	}
	return read_parts(slot, to, from, n);
}
