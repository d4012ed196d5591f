/* SPDX-License-Identifier: Apache-2.0 */
/* shm_rig.c - see shm_rig.h. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "segment/member.h"
#include "segment/owner.h"
#include "tests/kit/shm_rig.h"
#include "worker/shm/link.h"

#define PATIENCE_NS (10 * NS_PER_S)

static void
give_up(const char *what)
{
	fprintf(stderr, "shm_rig: %s: %s\n", what, strerror(errno));
	exit(2);
}

int
rig_segment(uint32_t ranks, uint64_t most)
{
	const struct segment_wish wish = {
		.job = "rig",
		.ranks = ranks,
		.spare = 4,
		.most = most,
	};
	int fd = segment_create(&wish);
	struct stat st;
	char name[64];

	if (fd == -1 || fstat(fd, &st) == -1)
		give_up("segment");
	snprintf(name, sizeof(name), "%d:%" PRIu64, fd, (uint64_t)st.st_ino);
	setenv("XRUN_SEGMENT_FD", name, 1);
	return fd;
}

/* --- the host ------------------------------------------------------------- */

static void
on_deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct rig *rig = ctx;

	rig->delivered++;
	if (rig->deliver != NULL)
		rig->deliver(rig, peer, record, body);
}

static void *
on_place(void *ctx, void *peer, const struct xr_record *record, uint64_t len)
{
	struct rig *rig = ctx;

	return rig->place == NULL ? NULL : rig->place(rig, len);
}

static void
on_sent(void *ctx, void *token)
{
	struct rig *rig = ctx;

	__atomic_fetch_add(&rig->sent, 1, __ATOMIC_RELAXED);
}

static void *
on_accepted(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *link)
{
	struct rig *rig = ctx;

	if (rig->refuses || id >= RIG_LINKS)
		return NULL;
	rig->peer[id] = (struct rig_peer){ .rig = rig, .link = link, .id = id };
	return &rig->peer[id];
}

static void
on_lost(void *ctx, void *peer, struct xr_link *link, const char *why)
{
	struct rig *rig = ctx;
	struct rig_peer *p = peer;

	p->lost = true;
	p->link = NULL;
	snprintf(p->why, sizeof(p->why), "%s", why);
	rig->lost++;
	shm_carrier.link_close(link);
}

void
rig_open(struct rig *rig, uint32_t rank)
{
	const struct xr_carrier_opts opts = {
		.size = sizeof(opts),
		.id = rank,
		.incarnation = 1,
	};
	struct xr_error err = { 0 };
	char text[16];

	snprintf(text, sizeof(text), "%u", rank);
	setenv("XRUN_LOCAL_RANK", text, 1);
	rig->host = (struct xr_carrier_host){
		.size = sizeof(rig->host),
		.ctx = rig,
		.deliver = on_deliver,
		.place = on_place,
		.sent = on_sent,
		.accepted = on_accepted,
		.lost = on_lost,
	};
	if (shm_open_segment(&rig->shm, &err) != XR_OK ||
		!shm_alive(rig->shm) ||
		shm_carrier.open(&rig->host, &opts, &rig->carrier, &err) !=
			XR_OK)
		give_up(err.text);
}

/* How a directory of names would: from the slot, once it is open. */
struct rig_peer *
rig_connect(struct rig *rig, uint32_t rank)
{
	struct rig_peer *p = &rig->peer[rank];
	const struct segment_slot *slot = segment_slot(&rig->shm->map, rank);
	struct xr_error err = { 0 };
	char text[XR_ADDRESS_MAX + 1];
	uint32_t plane;
	size_t n;

	do {
		plane = atomic_load(&slot->plane);
		sched_yield();
	} while (plane == 0);
	n = shm_carrier.address(rig->carrier, text, sizeof(text));
	while (text[n - 1] != ':')
		n--;
	for (n--; text[n - 1] != ':'; n--)
		continue;
	snprintf(text + n, sizeof(text) - n, "%u:%u", rank, plane);
	*p = (struct rig_peer){ .rig = rig, .id = rank };
	if (shm_carrier.connect(rig->carrier, text, rank, 1, p, &p->link,
		    &err) != XR_OK)
		give_up(err.text);
	return p;
}

void
rig_close(struct rig *rig)
{
	shm_carrier.free(rig->carrier);
	shm_alive_end(rig->shm);
}

/* --- waiting -------------------------------------------------------------- */

bool
rig_turn(struct rig *rig, struct wait *w, int64_t until)
{
	int rc = 0;

	if (shm_poll(rig->shm) > 0) {
		wait_again(w);
		return true;
	}
	switch (wait_turn(w)) {
	case WAIT_AGAIN:
		break;
	case WAIT_LOOK:
		return clock_now() < until;
	case WAIT_SLEEP:
		if (shm_arm(rig->shm))
			rc = shm_sleep(rig->shm, until);
		wait_woken(w, shm_disarm(rig->shm));
		break;
	}
	return rc != ETIMEDOUT;
}

bool
rig_until(struct rig *rig, const uint64_t *word, uint64_t value)
{
	int64_t until = clock_now() + PATIENCE_NS;
	uint64_t lost = rig->lost;
	bool in_time = true;
	struct wait w;

	wait_begin(&w, shm_env(rig->shm), NULL, &rig->site);
	while (__atomic_load_n(word, __ATOMIC_RELAXED) < value &&
		rig->lost == lost && in_time)
		in_time = rig_turn(rig, &w, until);
	wait_end(&w);
	return in_time;
}

enum xr_status
rig_post(struct rig_peer *to, const struct xr_message *m, bool *pending)
{
	struct rig *rig = to->rig;
	enum xr_status status = XR_E_AGAIN;
	struct wait w;

	wait_begin(&w, shm_env(rig->shm), NULL, NULL);
	for (;;) {
		if (to->link == NULL)
			return XR_E_PEER_LOST;
		status = shm_carrier.send(to->link, m, pending);
		if (status != XR_E_AGAIN)
			return status;
		rig_turn(rig, &w, INT64_MAX);
	}
}

enum xr_status
rig_send(struct rig_peer *to, uint32_t method, const void *data, size_t len)
{
	const struct xr_part part = { data, len };
	const struct xr_message m = {
		.record = { .method = method },
		.parts = &part,
		.count = 1,
	};
	bool pending;

	return rig_post(to, &m, &pending);
}

void
rig_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : (unsigned)cpu, &set);
	if (cpu >= 0)
		sched_setaffinity(0, sizeof(set), &set);
}
