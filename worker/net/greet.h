/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greet.h - how two ends of a new TCP connection prove who they are.
 *
 *	who dials                              who answers
 *	HELLO  who I am, whom I mean,
 *	       a challenge            ---->
 *	                              <----    ANSWER  who I am, a challenge,
 *	                                       proof over HELLO and ANSWER
 *	PROOF  over the same          ---->
 *	                              <----    VERDICT  or at any time before:
 *	                                       why not
 *
 * A proof is an HMAC-SHA256 with the job's secret over a word for the side, the
 * HELLO and the ANSWER, so that it is good for nothing else. It says that the
 * other end belongs to the job, and that nobody changed what it said of itself;
 * it does not hide or protect what follows: that is for TLS, for which a flag of
 * HELLO is reserved.
 *
 * Without I/O, memory or time: it is fed bytes, and leaves bytes to be sent. What
 * an end without proof may send is limited by the sizes here: no more is ever
 * read. A refusal is a number; its words are made by who reads it.
 */
#ifndef WORKER_NET_GREET_H
#define WORKER_NET_GREET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"

#define GREET_LEAST  1 /* versions that are spoken: from ... */
#define GREET_MOST   1 /* ... to */
#define GREET_SECRET 32
#define GREET_PROOF  32
#define GREET_BYTES  512 /* at most, of an end without proof */

/* Sizes of packets, with the 8 bytes of magic, type and size they begin with. */
#define GREET_HELLO_SIZE   80
#define GREET_ANSWER_SIZE  88
#define GREET_PROOF_SIZE   40
#define GREET_VERDICT_SIZE 24
#define GREET_SIZE_MAX     88

/* V(NAME, number, "what its reader is told") - numbers are on the wire. */
#define GREET_VERDICTS(V) \
	V(OK, 0, "it agrees") \
	V(CROSSED, 1, "it opens a connection itself") \
	V(VERSION, 2, "no common version of the protocol") \
	V(OTHER, 3, "it is another worker") \
	V(LIFE, 4, "it is there for another time") \
	V(OLD, 5, "it knows a later life of this worker") \
	V(UNPROVED, 6, "it says that this process has another secret") \
	V(UNKNOWN, 7, "it knows no such worker") \
	V(UNABLE, 8, "it has no secret, or no libcrypto") \
	V(STALE, 9, "it has a newer connection") \
	V(FULL, 10, "it has no memory for one more")

enum greet_verdict {
#define V(name, number, text) GREET_##name = number,
	GREET_VERDICTS(V)
#undef V
};

/* What makes proofs: worker/net/proof.h, or a test's. */
struct greet_crypto {
	/* mac() - HMAC-SHA256 of @data; false: it cannot. */
	bool (*mac)(const uint8_t secret[GREET_SECRET], const void *data,
		size_t len, uint8_t proof[GREET_PROOF]);
	/* differ() - in a time that does not tell where; 0: they do not. */
	int (*differ)(const void *a, const void *b, size_t len);
};

/* Who this process is. */
struct greet_self {
	uint32_t id;
	uint64_t incarnation;
	const uint8_t *secret; /* [GREET_SECRET]; NULL: there is none */
	const struct greet_crypto *crypto; /* NULL: there is none */
};

enum greet_event {
	GREET_MORE,   /* the next packet is waited for */
	GREET_PROVEN, /* who dialled is who he says: greet_decide() */
	GREET_AGREED, /* the other end agrees, and has proved itself */
	GREET_ENDED,  /* it came to nothing: greet_words() */
};

enum greet_step {
	GREET_AT_HELLO,
	GREET_AT_ANSWER,
	GREET_AT_PROOF,
	GREET_AT_DECISION,
	GREET_AT_VERDICT,
	GREET_AT_END,
};

struct greet {
	const struct greet_self *self;
	enum greet_step step;
	/* Of the other end: meant by who dials, claimed to who answers. */
	uint32_t id;
	uint64_t incarnation;
	uint64_t dial;   /* which try of who dials it is */
	uint64_t number; /* of the verdict */
	enum greet_verdict verdict;
	enum xr_status status; /* of GREET_ENDED */
	uint16_t least, most;  /* versions of the other end */
	char hello[GREET_HELLO_SIZE], answer[GREET_ANSWER_SIZE];
	char in[GREET_SIZE_MAX], out[GREET_SIZE_MAX];
	size_t have;    /* bytes in @in */
	size_t out_len; /* to be sent; who sends them sets it to 0 */
};

/* greet_dial() - to who is @id and lives for the @incarnation time; the HELLO is
 * in @g->out. @self is borrowed as long as @g. */
void greet_dial(struct greet *g, const struct greet_self *self, uint32_t id,
	uint64_t incarnation, uint64_t dial);

/* greet_answer() - to who has connected. */
void greet_answer(struct greet *g, const struct greet_self *self);

/* greet_challenge() - 32 bytes that nobody can foretell, once, before anything is
 * sent of who dials, or fed to who answers. */
void greet_challenge(struct greet *g, const uint8_t challenge[32]);

/* greet_need() - how many bytes it waits for; 0: none, see the last event. */
size_t greet_need(const struct greet *g);

/* greet_feed() - @len bytes, at most greet_need(). There may be some to send
 * afterwards, whatever it gives. */
enum greet_event greet_feed(struct greet *g, const char *bytes, size_t len);

/* greet_decide() - after GREET_PROVEN: what who answers makes of it; @number
 * goes with it. */
void greet_decide(struct greet *g, enum greet_verdict verdict, uint64_t number);

/* greet_is_final() - would another try come to the same? */
bool greet_is_final(const struct greet *g);

/* greet_words() - why it ended, about "it": the other end. */
const char *greet_words(const struct greet *g, char *out, size_t cap);

#endif /* WORKER_NET_GREET_H */
