/* SPDX-License-Identifier: Apache-2.0 */
/* greet.c - see greet.h. */
#include <stdio.h>
#include <string.h>

#include "store/number.h"
#include "worker/net/greet.h"

#define MAGIC     "xnet"
#define HEAD      8
#define CHALLENGE 32
#define TLS       1u /* flag of a HELLO, reserved: what follows is to be TLS */
#define LABEL     8

enum packet {
	HELLO = 1,
	ANSWER = 2,
	PROOF = 3,
	VERDICT = 4,
};

/* Places in the packets. */
enum at {
	HELLO_LEAST = 8,
	HELLO_MOST = 10,
	HELLO_FLAGS = 12,
	HELLO_ID = 16,
	HELLO_TO = 20,
	HELLO_INCARNATION = 24,
	HELLO_TO_INCARNATION = 32,
	HELLO_DIAL = 40,
	HELLO_CHALLENGE = 48,
	ANSWER_VERSION = 8,
	ANSWER_ID = 12,
	ANSWER_INCARNATION = 16,
	ANSWER_CHALLENGE = 24,
	ANSWER_PROOF = 56,
	VERDICT_VERDICT = 8,
	VERDICT_LEAST = 10,
	VERDICT_MOST = 12,
	VERDICT_NUMBER = 16,
};

_Static_assert(HELLO_CHALLENGE + CHALLENGE == GREET_HELLO_SIZE, "of HELLO");
_Static_assert(ANSWER_PROOF + GREET_PROOF == GREET_ANSWER_SIZE, "of ANSWER");
_Static_assert(HEAD + GREET_PROOF == GREET_PROOF_SIZE, "of PROOF");
_Static_assert(VERDICT_NUMBER + 8 == GREET_VERDICT_SIZE, "of VERDICT");
_Static_assert(GREET_HELLO_SIZE + GREET_PROOF_SIZE <= GREET_BYTES &&
		GREET_ANSWER_SIZE + GREET_VERDICT_SIZE <= GREET_BYTES,
	"what is read of an end without proof");

static size_t
size_of(unsigned type)
{
	switch (type) {
	case HELLO:
		return GREET_HELLO_SIZE;
	case ANSWER:
		return GREET_ANSWER_SIZE;
	case PROOF:
		return GREET_PROOF_SIZE;
	case VERDICT:
		return GREET_VERDICT_SIZE;
	default:
		return 0;
	}
}

static void
put_head(char *out, enum packet type)
{
	memset(out, 0, size_of(type));
	memcpy(out, MAGIC, 4);
	out[4] = (char)type;
	number_put(out + 6, size_of(type), 2);
}

/* --- ends ------------------------------------------------------------------ */

static enum greet_event
end(struct greet *g, enum xr_status status, enum greet_verdict verdict)
{
	g->step = GREET_AT_END;
	g->status = status;
	g->verdict = verdict;
	return GREET_ENDED;
}

static void
put_verdict(struct greet *g, enum greet_verdict verdict, uint64_t number)
{
	put_head(g->out, VERDICT);
	number_put(g->out + VERDICT_VERDICT, verdict, 2);
	number_put(g->out + VERDICT_LEAST, GREET_LEAST, 2);
	number_put(g->out + VERDICT_MOST, GREET_MOST, 2);
	number_put(g->out + VERDICT_NUMBER, number, 8);
	g->out_len = GREET_VERDICT_SIZE;
}

/* Who answers says why not. */
static enum greet_event
refuse(struct greet *g, enum xr_status status, enum greet_verdict verdict,
	uint64_t number)
{
	put_verdict(g, verdict, number);
	return end(g, status, verdict);
}

static enum xr_status
status_of(enum greet_verdict verdict)
{
	switch (verdict) {
	case GREET_OK:
		return XR_OK;
	case GREET_CROSSED:
	case GREET_STALE:
		return XR_E_CONFLICT;
	case GREET_VERSION:
		return XR_E_VERSION;
	case GREET_OTHER:
	case GREET_LIFE:
	case GREET_UNKNOWN:
		return XR_E_NOTFOUND;
	case GREET_OLD:
		return XR_E_FENCED;
	case GREET_UNPROVED:
	case GREET_UNABLE:
		return XR_E_AUTH;
	case GREET_FULL:
		return XR_E_AGAIN;
	}
	return XR_E_PROTO;
}

/* --- proofs ---------------------------------------------------------------- */

/* Of @side, over what both have said of themselves. */
static bool
prove(const struct greet *g, const char *side, uint8_t proof[GREET_PROOF])
{
	char said[LABEL + GREET_HELLO_SIZE + ANSWER_PROOF] = { 0 };

	memcpy(said, side, strlen(side));
	memcpy(said + LABEL, g->hello, GREET_HELLO_SIZE);
	memcpy(said + LABEL + GREET_HELLO_SIZE, g->answer, ANSWER_PROOF);
	return g->self->crypto->mac(g->self->secret, said, sizeof(said), proof);
}

static bool
is_proof(const struct greet *g, const char *side, const char *proof)
{
	uint8_t own[GREET_PROOF];

	return prove(g, side, own) &&
		g->self->crypto->differ(own, proof, sizeof(own)) == 0;
}

static bool
is_able(const struct greet_self *self)
{
	return self->secret != NULL && self->crypto != NULL;
}

/* --- who answers ----------------------------------------------------------- */

void
greet_answer(struct greet *g, const struct greet_self *self)
{
	*g = (struct greet){ .self = self, .step = GREET_AT_HELLO };
	put_head(g->answer, ANSWER);
	number_put(g->answer + ANSWER_ID, self->id, 4);
	number_put(g->answer + ANSWER_INCARNATION, self->incarnation, 8);
}

/* What can be said before it has proved anything. */
static enum greet_verdict
judge_hello(const struct greet *g, const char *in)
{
	if (g->most < GREET_LEAST || g->least > GREET_MOST ||
		g->least > g->most)
		return GREET_VERSION;
	if (number_get(in + HELLO_TO, 4) != g->self->id || g->id == g->self->id)
		return GREET_OTHER;
	if (number_get(in + HELLO_TO_INCARNATION, 8) != g->self->incarnation)
		return GREET_LIFE;
	if (!is_able(g->self))
		return GREET_UNABLE;
	return GREET_OK;
}

static enum greet_event
take_hello(struct greet *g, const char *in)
{
	enum greet_verdict verdict;

	g->least = (uint16_t)number_get(in + HELLO_LEAST, 2);
	g->most = (uint16_t)number_get(in + HELLO_MOST, 2);
	g->id = (uint32_t)number_get(in + HELLO_ID, 4);
	g->incarnation = number_get(in + HELLO_INCARNATION, 8);
	g->dial = number_get(in + HELLO_DIAL, 8);
	verdict = judge_hello(g, in);
	if (verdict == GREET_OK && (in[HELLO_FLAGS] & TLS) != 0)
		verdict = GREET_VERSION;
	if (verdict != GREET_OK)
		return refuse(g, status_of(verdict), verdict,
			g->self->incarnation);
	memcpy(g->hello, in, GREET_HELLO_SIZE);
	number_put(g->answer + ANSWER_VERSION,
		g->most < GREET_MOST ? g->most : GREET_MOST, 2);
	if (!prove(g, "answers", (uint8_t *)g->answer + ANSWER_PROOF))
		return refuse(g, XR_E_AUTH, GREET_UNABLE, 0);
	memcpy(g->out, g->answer, GREET_ANSWER_SIZE);
	g->out_len = GREET_ANSWER_SIZE;
	g->step = GREET_AT_PROOF;
	return GREET_MORE;
}

static enum greet_event
take_proof(struct greet *g, const char *in)
{
	if (!is_proof(g, "dials", in + HEAD))
		return refuse(g, XR_E_AUTH, GREET_UNPROVED, 0);
	g->step = GREET_AT_DECISION;
	return GREET_PROVEN;
}

void
greet_decide(struct greet *g, enum greet_verdict verdict, uint64_t number)
{
	refuse(g, status_of(verdict), verdict, number);
}

/* --- who dials ------------------------------------------------------------- */

void
greet_dial(struct greet *g, const struct greet_self *self, uint32_t id,
	uint64_t incarnation, uint64_t dial)
{
	*g = (struct greet){
		.self = self,
		.step = GREET_AT_ANSWER,
		.id = id,
		.incarnation = incarnation,
		.dial = dial,
	};
	put_head(g->hello, HELLO);
	number_put(g->hello + HELLO_LEAST, GREET_LEAST, 2);
	number_put(g->hello + HELLO_MOST, GREET_MOST, 2);
	number_put(g->hello + HELLO_ID, self->id, 4);
	number_put(g->hello + HELLO_TO, id, 4);
	number_put(g->hello + HELLO_INCARNATION, self->incarnation, 8);
	number_put(g->hello + HELLO_TO_INCARNATION, incarnation, 8);
	number_put(g->hello + HELLO_DIAL, dial, 8);
}

void
greet_challenge(struct greet *g, const uint8_t challenge[CHALLENGE])
{
	if (g->step == GREET_AT_HELLO) {
		memcpy(g->answer + ANSWER_CHALLENGE, challenge, CHALLENGE);
		return;
	}
	memcpy(g->hello + HELLO_CHALLENGE, challenge, CHALLENGE);
	memcpy(g->out, g->hello, GREET_HELLO_SIZE);
	g->out_len = GREET_HELLO_SIZE;
}

static enum greet_event
take_answer(struct greet *g, const char *in)
{
	unsigned version = (unsigned)number_get(in + ANSWER_VERSION, 2);

	g->least = g->most = (uint16_t)version;
	if (version < GREET_LEAST || version > GREET_MOST)
		return end(g, XR_E_VERSION, GREET_VERSION);
	if (number_get(in + ANSWER_ID, 4) != g->id)
		return end(g, XR_E_NOTFOUND, GREET_OTHER);
	g->number = number_get(in + ANSWER_INCARNATION, 8);
	if (g->number != g->incarnation)
		return end(g, XR_E_NOTFOUND, GREET_LIFE);
	memcpy(g->answer, in, GREET_ANSWER_SIZE);
	put_head(g->out, PROOF);
	if (!is_able(g->self) || !is_proof(g, "answers", in + ANSWER_PROOF) ||
		!prove(g, "dials", (uint8_t *)g->out + HEAD))
		return end(g, XR_E_AUTH, GREET_OK);
	g->out_len = GREET_PROOF_SIZE;
	g->step = GREET_AT_VERDICT;
	return GREET_MORE;
}

static enum greet_event
take_verdict(struct greet *g, const char *in)
{
	enum greet_verdict verdict =
		(enum greet_verdict)number_get(in + VERDICT_VERDICT, 2);

	g->least = (uint16_t)number_get(in + VERDICT_LEAST, 2);
	g->most = (uint16_t)number_get(in + VERDICT_MOST, 2);
	g->number = number_get(in + VERDICT_NUMBER, 8);
	if (verdict != GREET_OK)
		return end(g, status_of(verdict), verdict);
	/* Nobody agrees before he knows with whom. */
	if (g->step != GREET_AT_VERDICT)
		return end(g, XR_E_PROTO, GREET_OK);
	end(g, XR_OK, verdict);
	return GREET_AGREED;
}

/* --- both ------------------------------------------------------------------ */

/* May a packet of this type come now? */
static bool
is_due(const struct greet *g, unsigned type)
{
	switch (g->step) {
	case GREET_AT_HELLO:
		return type == HELLO;
	case GREET_AT_ANSWER:
		return type == ANSWER || type == VERDICT;
	case GREET_AT_PROOF:
		return type == PROOF;
	case GREET_AT_VERDICT:
		return type == VERDICT;
	case GREET_AT_DECISION:
	case GREET_AT_END:
		break;
	}
	return false;
}

/* Its first bytes are there. */
static bool
is_head(const struct greet *g)
{
	unsigned type = (unsigned char)g->in[4];

	return memcmp(g->in, MAGIC, 4) == 0 && g->in[5] == 0 &&
		is_due(g, type) && number_get(g->in + 6, 2) == size_of(type);
}

size_t
greet_need(const struct greet *g)
{
	if (g->step == GREET_AT_DECISION || g->step == GREET_AT_END)
		return 0;
	return (g->have < HEAD ? HEAD : size_of((unsigned char)g->in[4])) -
		g->have;
}

static enum greet_event
take(struct greet *g)
{
	g->have = 0;
	switch (g->in[4]) {
	case HELLO:
		return take_hello(g, g->in);
	case ANSWER:
		return take_answer(g, g->in);
	case PROOF:
		return take_proof(g, g->in);
	default:
		return take_verdict(g, g->in);
	}
}

enum greet_event
greet_feed(struct greet *g, const char *bytes, size_t len)
{
	size_t need = greet_need(g);
	bool was_head = g->have >= HEAD;

	if (len > need)
		len = need;
	memcpy(g->in + g->have, bytes, len);
	g->have += len;
	if (len < need || need == 0)
		return g->step == GREET_AT_END ? GREET_ENDED : GREET_MORE;
	if (was_head)
		return take(g);
	return is_head(g) ? GREET_MORE : end(g, XR_E_PROTO, GREET_OK);
}

bool
greet_is_final(const struct greet *g)
{
	return g->status != XR_E_CONFLICT && g->status != XR_E_AGAIN;
}

static const char *
verdict_text(enum greet_verdict verdict)
{
	switch (verdict) {
#define V(name, number, text) \
	case GREET_##name: \
		return text;
		GREET_VERDICTS(V)
#undef V
	}
	return "it refuses, and this libxrun does not know why";
}

const char *
greet_words(const struct greet *g, char *out, size_t cap)
{
	if (g->status == XR_E_PROTO && g->verdict == GREET_OK)
		snprintf(out, cap, "something else than libxrun is there");
	else if (g->status == XR_E_AUTH && g->verdict == GREET_OK)
		snprintf(out, cap,
			"it could not prove to be of this job: its secret is another");
	else if (g->verdict == GREET_VERSION)
		snprintf(out, cap,
			"it speaks versions %u to %u of the protocol, and this libxrun %d to %d",
			g->least, g->most, GREET_LEAST, GREET_MOST);
	else if (g->verdict == GREET_LIFE)
		snprintf(out, cap,
			"its incarnation is %llu, and %llu was meant",
			(unsigned long long)g->number,
			(unsigned long long)g->incarnation);
	else if (g->verdict == GREET_OLD)
		snprintf(out, cap, "%s: incarnation %llu",
			verdict_text(g->verdict),
			(unsigned long long)g->number);
	else
		snprintf(out, cap, "%s", verdict_text(g->verdict));
	return out;
}
