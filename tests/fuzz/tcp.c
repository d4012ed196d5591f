/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - fuzz target: what comes over a connection of the TCP carrier, and its
 * addresses.
 *
 * Input: a letter, then bytes. "m": a number for how they are cut, and a stream of
 * messages; "w": the same, with the checksums put right, and most lengths made
 * small, so that more is reached. "a": bytes for who answers a greeting, "d": for
 * who dials. "g": an honest greeting, cut by the first number; the others are
 * triples: which packet, which byte of it, what is changed in that. "t": text of
 * an address.
 *
 * Claims: a stream gives the same messages however it is cut, up to the same end;
 * nothing is read beyond what there is; nobody agrees who has proved nothing, nor
 * if a bit was changed on the way; an address that was read is written again as
 * one that reads the same; a refusal has words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "store/number.h"
#include "tests/fuzz/fuzz.h"
#include "worker/net/greet.h"
#include "worker/net/intake.h"
#include "worker/net/where.h"

/* --- messages -------------------------------------------------------------- */

struct heard {
	unsigned count;
	uint64_t sum;
	enum xr_status status;
	bool is_midway;
};

static const struct hash_seed seed = { { 1, 2 } };

static void *
place(void *ctx, const struct net_head *head)
{
	(void)ctx;
	HOLDS(head->len > INTAKE_LONG && head->len <= XR_MESSAGE_MAX);
	return NULL;
}

static bool
deliver(void *ctx, const struct net_head *head, const struct xr_body *body)
{
	struct heard *heard = ctx;

	HOLDS(body->len == head->len);
	HOLDS(body->len <= INTAKE_SHORT || (uintptr_t)body->data % 64 == 0);
	heard->count++;
	heard->sum = heard->sum * 31 + head->record.corr + head->record.kind +
		hash_bytes(&seed, body->data, body->len);
	return true;
}

static const struct intake_ops ops = { place, deliver };

/* Each piece is a block of its own, so that whoever reads beyond it is caught. */
static enum xr_status
feed(struct intake *in, const char *bytes, size_t len)
{
	struct xr_error err = { 0 };
	char *piece = malloc(len);
	enum xr_status status;

	HOLDS(piece != NULL);
	memcpy(piece, bytes, len);
	status = intake_feed(in, piece, len, &err);
	fuzz_error(status, &err);
	free(piece);
	return status;
}

/* Into the rest of a long body, as the carrier reads it. */
static size_t
fill(struct intake *in, const char *bytes, size_t len)
{
	size_t room = 0;
	char *rest = intake_rest(in, &room);

	if (rest == NULL)
		return 0;
	HOLDS(room >= INTAKE_LONG);
	len = len < room ? len : room;
	memcpy(rest, bytes, len);
	HOLDS(intake_filled(in, len) == XR_OK);
	return len;
}

/* @step: 0: all at once. */
static struct heard
hear(struct bodies *bodies, const char *bytes, size_t len, size_t step)
{
	struct heard heard = { .status = XR_OK };
	struct intake in;
	size_t at = 0, n;

	intake_init(&in, bodies, &ops, &heard);
	while (at < len && heard.status == XR_OK) {
		n = step == 0 || len - at < step ? len - at : step;
		if (step % 2 == 1 && fill(&in, bytes + at, n) > 0) {
			at += n;
			continue;
		}
		heard.status = feed(&in, bytes + at, n);
		at += n;
		step += step == 0 ? 0 : 2;
	}
	heard.is_midway = intake_is_midway(&in);
	intake_fini(&in);
	return heard;
}

static void
check_stream(const char *bytes, size_t len, size_t step)
{
	struct bodies *bodies;
	struct heard whole, cut;

	bodies = bodies_new();
	whole = hear(bodies, bytes, len, 0);
	cut = hear(bodies, bytes, len, step + 1);
	HOLDS(whole.status == cut.status && whole.count == cut.count &&
		whole.sum == cut.sum);
	HOLDS(whole.status != XR_OK || whole.is_midway == cut.is_midway);
	HOLDS(whole.status == XR_OK || whole.status == XR_E_PROTO);
	bodies_close(bodies);
}

/* Lengths that end with 255 stay, as those of somebody who lies. */
static void
put_right(char *bytes, size_t len)
{
	size_t at = 0, body;

	while (len - at >= NET_HEAD) {
		char *head = bytes + at;

		if ((unsigned char)head[23] != 255)
			number_put(head + 16, number_get(head + 16, 2) & 0x7fff,
				8);
		number_put(head + 24, crc32c(0, head, 24), 4);
		body = (size_t)number_get(head + 16, 8);
		at += NET_HEAD;
		if (body > len - at)
			return;
		at += body;
	}
}

/* --- greetings ------------------------------------------------------------- */

/* Four hashes with the secret: nobody finds another text for them by chance. */
static bool
mac(const uint8_t secret[GREET_SECRET], const void *data, size_t len,
	uint8_t proof[GREET_PROOF])
{
	struct hash_seed own;

	memcpy(&own, secret, sizeof(own));
	for (size_t i = 0; i < 4; i++) {
		own.word[0]++;
		number_put((char *)proof + 8 * i, hash_bytes(&own, data, len),
			8);
	}
	return true;
}

/* A fuzzer sees what memcmp(3) compares, and would know the secret. */
static int
differ(const void *a, const void *b, size_t len)
{
	const uint8_t *p = a, *q = b;
	int all = 0;

	for (size_t i = 0; i < len; i++)
		all |= p[i] ^ q[i];
	return all;
}

static const struct greet_crypto crypto = { mac, differ };
static const uint8_t secret[GREET_SECRET] = "known to both";
static const struct greet_self caller = { 4, 40, secret, &crypto };
static const struct greet_self callee = { 9, 90, secret, &crypto };

static void
begin(struct greet *dials, struct greet *answers)
{
	static const uint8_t one[32] = { 1 }, two[32] = { 2 };

	greet_dial(dials, &caller, 9, 90, 3);
	greet_challenge(dials, one);
	greet_answer(answers, &callee);
	greet_challenge(answers, two);
}

/* @g has ended, or waits for bytes; what it says of it is one line. */
static void
check_greet(const struct greet *g, enum greet_event event)
{
	char words[200];

	HOLDS(g->out_len <= GREET_SIZE_MAX);
	HOLDS((greet_need(g) == 0) == (event != GREET_MORE));
	HOLDS(greet_need(g) <= GREET_SIZE_MAX);
	if (event != GREET_ENDED)
		return;
	HOLDS(g->status != XR_OK);
	greet_words(g, words, sizeof(words));
	HOLDS(words[0] != '\0' && strlen(words) < sizeof(words) - 1);
	for (const char *p = words; *p != '\0'; p++)
		HOLDS((unsigned char)*p >= 0x20);
}

static void
check_rubbish(const char *bytes, size_t len, bool is_answering)
{
	struct greet dials, answers, *g = is_answering ? &answers : &dials;
	enum greet_event event = GREET_MORE;
	size_t at = 0, n;

	begin(&dials, &answers);
	while (event == GREET_MORE && at < len) {
		n = greet_need(g);
		n = n < len - at ? n : len - at;
		event = greet_feed(g, bytes + at, n);
		at += n;
		check_greet(g, event);
	}
	HOLDS(at <= GREET_BYTES);
	/* Who has no secret cannot know the proofs. */
	HOLDS(event == GREET_MORE || event == GREET_ENDED);
}

struct change {
	uint8_t packet, at, bits;
};

/* What @from has to send, changed, in pieces. */
static enum greet_event
pass(struct greet *from, struct greet *to, const struct change *change,
	size_t step)
{
	enum greet_event event = GREET_MORE;
	char packet[GREET_SIZE_MAX];
	size_t len = from->out_len, at = 0, n;

	memcpy(packet, from->out, len);
	from->out_len = 0;
	if (change != NULL && len > 0)
		packet[change->at % len] ^= (char)change->bits;
	while (at < len && event == GREET_MORE) {
		n = greet_need(to);
		n = n < step ? n : step;
		n = n < len - at ? n : len - at;
		event = greet_feed(to, packet + at, n);
		at += n;
		check_greet(to, event);
	}
	return event;
}

static const struct change *
change_of(const struct change *changes, size_t n, uint8_t packet)
{
	for (size_t i = 0; i < n; i++)
		if (changes[i].packet % 4 == packet && changes[i].bits != 0)
			return &changes[i];
	return NULL;
}

static void
check_greeting(const struct change *changes, size_t n, size_t step)
{
	struct greet dials, answers;
	bool honest = change_of(changes, n, 0) == NULL &&
		change_of(changes, n, 1) == NULL &&
		change_of(changes, n, 2) == NULL;
	enum greet_event event;

	begin(&dials, &answers);
	pass(&dials, &answers, change_of(changes, n, 0), step);
	pass(&answers, &dials, change_of(changes, n, 1), step);
	event = pass(&dials, &answers, change_of(changes, n, 2), step);
	HOLDS((event == GREET_PROVEN) == honest);
	if (!honest)
		return;
	HOLDS(answers.id == 4 && answers.incarnation == 40 &&
		answers.dial == 3);
	greet_decide(&answers, GREET_OK, 5);
	event = pass(&answers, &dials, change_of(changes, n, 3), step);
	HOLDS(change_of(changes, n, 3) != NULL || event == GREET_AGREED);
	HOLDS(event != GREET_AGREED || dials.status == XR_OK);
}

/* --- addresses ------------------------------------------------------------- */

static void
check_address(const char *text)
{
	struct where where, again;
	struct xr_error err = { 0 };
	char out[WHERE_TEXT], full[WHERE_TEXT + 8];
	enum xr_status status = where_parse(text, &where, &err);

	fuzz_error(status, &err);
	HOLDS((status == XR_E_NODEV) == (strncmp(text, "tcp:", 4) != 0));
	if (status != XR_OK)
		return;
	HOLDS(!where_is_any(&where));
	snprintf(full, sizeof(full), "tcp:%s", where_text(&where, out));
	HOLDS(where_parse(full, &again, NULL) == XR_OK);
	HOLDS(again.len == where.len &&
		memcmp(&again.at, &where.at, where.len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size > 2 ? size - 2 : 0;
	char *copy = malloc(len + 1);

	HOLDS(copy != NULL);
	memcpy(copy, data + (len > 0 ? 2 : 0), len);
	copy[len] = '\0';
	switch (size >= 2 ? data[0] : 0) {
	case 'w':
		put_right(copy, len);
		check_stream(copy, len, data[1]);
		break;
	case 'm':
		check_stream(copy, len, data[1]);
		break;
	case 'a':
	case 'd':
		check_rubbish(copy, len, data[0] == 'a');
		break;
	case 'g':
		check_greeting((const struct change *)copy, len / 3,
			data[1] + 1u);
		break;
	case 't':
		check_address(copy);
		break;
	default:
		break;
	}
	free(copy);
	return 0;
}
