/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.c - see greeting.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <sys/socket.h>

#include "base/clock.h"
#include "base/status.h"
#include "store/frame.h"
#include "worker/store/greeting.h"

#define GREETING_MAX 256 /* bytes of an answer */

struct greeting {
	int fd;
	int64_t until;
	char in[GREETING_MAX];
	struct span part[FRAME_PARTS];
	struct frame frame; /* borrows from `in` */
};

static bool
greeting_receive(struct greeting *g, size_t from, size_t to)
{
	struct pollfd p = { .fd = g->fd, .events = POLLIN };
	int64_t left;
	ssize_t n;

	while (from < to) {
		left = g->until - clock_now();
		if (left > 0)
			poll(&p, 1, (int)((left + NS_PER_MS - 1) / NS_PER_MS));
		n = recv(g->fd, g->in + from, to - from, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		/* What has arrived is read, also if this thread is late. */
		if (n < 0 && left <= 0)
			return false;
		from += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Sends @out and receives the frame that answers. */
static enum xr_status
greeting_exchange(struct greeting *g, struct buf *out, struct xr_error *err)
{
	size_t size = 0;
	ssize_t n = -1;

	if (out->bad == XR_OK)
		n = send(g->fd, out->data, out->len, MSG_NOSIGNAL);
	buf_fini(out);
	if (n <= 0 || !greeting_receive(g, 0, 4))
		return fail(err, XR_E_AGAIN,
			"store: the server closed the connection or did not answer");
	if (frame_size((struct span){ g->in, 4 }, &size, NULL) != XR_OK ||
		size > sizeof(g->in))
		return fail(err, XR_E_PROTO,
			"store: another program listens there");
	if (!greeting_receive(g, 4, size))
		return fail(err, XR_E_AGAIN,
			"store: the server did not answer in time");
	g->frame.part = g->part;
	return frame_read((struct span){ g->in, size }, &g->frame, err);
}

static enum xr_status
greeting_refused(enum xr_status status, bool secret, struct xr_error *err)
{
	if (status == XR_E_NOMEM)
		return fail(err, XR_E_AGAIN,
			"store: rank 0 has as many connections as its group or RLIMIT_NOFILE permits");
	if (secret)
		return fail(err, XR_E_AUTH,
			"store: rank 0 does not accept the secret\tthe same XRUN_STORE_SECRET_FILE everywhere, and auth=none nowhere");
	return fail(err, XR_E_AUTH,
		"store: rank 0 asks for a secret\tleave auth=none out");
}

static enum xr_status
greeting_prove(struct greeting *g, const struct store_auth *auth,
	const struct store_nonces *nonces, struct xr_error *err)
{
	uint8_t proof[GREET_PROOF];
	struct span part = { (char *)proof, sizeof(proof) };
	struct frame f = { .type = FRAME_PROOF, .count = 1, .part = &part };
	struct buf out = { 0 };
	enum xr_status status;

	if (!store_auth_prove(auth, false, nonces, proof))
		return fail(err, XR_E_NODEV, "store: libcrypto has failed");
	frame_put(&out, &f, 0);
	status = greeting_exchange(g, &out, err);
	if (status != XR_OK)
		return status;
	if (g->frame.type != FRAME_PROOF || g->frame.id != 1)
		return fail(err, XR_E_PROTO,
			"store: another program listens there");
	return g->frame.status == XR_OK ?
		XR_OK :
		greeting_refused(g->frame.status, true, err);
}

enum xr_status
greeting_client(int fd, const struct store_auth *auth, int64_t until,
	struct xr_error *err)
{
	struct greeting g = { .fd = fd, .until = until };
	struct store_nonces nonces = { 0 };
	struct frame_hello hello = { 0 };
	struct buf out = { 0 };
	enum xr_status status;

	if (auth != NULL && !store_auth_nonce(nonces.client))
		return fail(err, XR_E_SYS, "store: no random bytes");
	if (auth != NULL)
		hello.nonce =
			(struct span){ (char *)nonces.client, STORE_NONCE };
	frame_put_hello(&out, &hello);
	status = greeting_exchange(&g, &out, err);
	if (status == XR_OK)
		status = frame_read_hello(&g.frame, true, &hello, err);
	if (status == XR_OK && hello.status != XR_OK)
		status = greeting_refused(hello.status, auth != NULL, err);
	if (status != XR_OK || auth == NULL)
		return status;
	if (hello.nonce.len != STORE_NONCE)
		return fail(err, XR_E_AUTH,
			"store: the server does not prove that it knows the secret");
	memcpy(nonces.server, hello.nonce.at, STORE_NONCE);
	if (!store_auth_check(auth, true, &nonces, hello.proof))
		return fail(err, XR_E_AUTH,
			"store: the server does not know the secret: it is another user's, or rank 0 reads another file\tthe same XRUN_STORE_SECRET_FILE everywhere");
	return greeting_prove(&g, auth, &nonces, err);
}
