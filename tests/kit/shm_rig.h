/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_rig.h - processes that share a segment, for tests and benchmarks.
 *
 * One process makes the segment and forks; each of the others is a rank of it,
 * with a host that keeps what was delivered, and waits as an agent would: looks,
 * then sleeps on its bell. For programs that are not linked with libxrun.so.
 */
#ifndef TESTS_KIT_SHM_RIG_H
#define TESTS_KIT_SHM_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include <xrun/transport.h>

#include "worker/shm/shm.h"
#include "worker/shm/wait.h"

#define RIG_LINKS 64

struct rig;

/* A peer, as the host sees him. */
struct rig_peer {
	struct rig *rig;
	struct xr_link *link;
	uint32_t id;
	bool lost;
	char why[64];
};

struct rig {
	struct shm *shm;
	void *carrier;
	struct xr_carrier_host host;
	struct wait_site site;
	struct rig_peer peer[RIG_LINKS]; /* by id */
	uint64_t delivered, sent, lost;
	bool refuses; /* whoever comes */

	/* What the test wants to do with it; NULL: nothing. */
	void (*deliver)(struct rig *rig, struct rig_peer *from,
		const struct xr_record *record, const struct xr_body *body);
	void *(*place)(struct rig *rig, uint64_t len);
	void *ctx;
};

/* rig_segment() - a segment of @ranks for the children of this process; its
 * descriptor. @most: bytes; 0: as much as there may be. Ends it if it cannot. */
int rig_segment(uint32_t ranks, uint64_t most);

/* rig_open() - this process is rank @rank, and its end is told of. */
void rig_open(struct rig *rig, uint32_t rank);

/* rig_connect() - a link to rank @rank, once that is open. */
struct rig_peer *rig_connect(struct rig *rig, uint32_t rank);
void rig_close(struct rig *rig);

/* rig_turn() - poll; else pause, yield, or sleep until @until (ns; INT64_MAX:
 * never). False: it slept, and the time is over. */
bool rig_turn(struct rig *rig, struct wait *w, int64_t until);

/* rig_until() - turns until *@word is at least @value, or somebody is lost; false:
 * 10 s were not enough. */
bool rig_until(struct rig *rig, const uint64_t *word, uint64_t value);

/* rig_send() - one part; turns where there is no room. */
enum xr_status rig_send(struct rig_peer *to, uint32_t method, const void *data,
	size_t len);

/* rig_post() - any message. */
enum xr_status rig_post(struct rig_peer *to, const struct xr_message *m,
	bool *pending);

void rig_pin(int cpu); /* -1: none */

#endif /* TESTS_KIT_SHM_RIG_H */
