/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_greeting.c - the client's half of a greeting (worker/store/greeting.h) with
 * servers that answer anything; the test is the server. */
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "store/frame.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/store/greeting.h"

#define ANOTHER "store: another program listens there"
#define SILENT  "store: the server closed the connection or did not answer"

static struct xr_error err;
static int pair[2];

static void
begin(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
		0);
}

static void
end(void)
{
	close(pair[0]);
	close(pair[1]);
}

TestSuite(store_greeting, .init = begin, .fini = end, .timeout = 60);

/* Of both sides the secret is the same array of numbers. */
static struct store_auth
auth_make(uint8_t first)
{
	struct store_auth auth = { .crypto = proof_crypto(&err) };
	uint8_t secret[GREET_SECRET] = { first };

	cr_assert_not_null(auth.crypto, "%s", err.text);
	auth.secret = proof_keep(secret);
	cr_assert_not_null(auth.secret);
	return auth;
}

static void
answer(const struct buf *bytes)
{
	cr_assert_eq(send(pair[1], bytes->data, bytes->len, MSG_NOSIGNAL),
		(ssize_t)bytes->len);
}

static enum xr_status
greet(const struct store_auth *auth)
{
	err = (struct xr_error){ 0 };
	return greeting_client(pair[0], auth, clock_now() + 20 * NS_PER_S,
		&err);
}

static void
expect(enum xr_status got, enum xr_status status, const char *text)
{
	cr_expect_eq(got, status, "%s: %s", text, err.text);
	cr_expect(strncmp(err.text, text, strlen(text)) == 0, "'%s', not '%s'",
		err.text, text);
}

/* The answer to a HELLO without a nonce. */
static void
expect_hello(const struct frame_hello *hello, enum xr_status status,
	const char *text)
{
	struct buf bytes = { 0 };

	begin();
	frame_put_hello(&bytes, hello);
	answer(&bytes);
	expect(greet(NULL), status, text);
	buf_fini(&bytes);
	end();
}

Test(store_greeting, without_a_secret_the_status_of_the_server_counts)
{
	static const struct {
		struct frame_hello hello;
		enum xr_status status;
		const char *text;
	} rows[] = {
		{ { .host = true }, XR_OK, "" },
		{ { .host = false }, XR_E_PROTO, ANOTHER },
		{ { .host = true, .status = XR_E_NOMEM }, XR_E_AGAIN,
			"store: rank 0 has as many connections as" },
		{ { .host = true, .status = XR_E_AUTH }, XR_E_AUTH,
			"store: rank 0 asks for a secret" },
	};

	end();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_hello(&rows[i].hello, rows[i].status, rows[i].text);
	begin();
}

/* The last byte of the length, or of the frame, does not come. */
Test(store_greeting, an_answer_that_lacks_a_byte_is_not_taken)
{
	const struct frame_hello hello = { .host = true };
	struct buf bytes = { 0 };
	size_t all;

	frame_put_hello(&bytes, &hello);
	all = bytes.len;
	for (int i = 0; i < 2; i++) {
		bytes.len = i == 0 ? 3 : all - 1;
		answer(&bytes);
		expect(greeting_client(pair[0], NULL,
			       clock_now() + 5 * NS_PER_MS, &err),
			XR_E_AGAIN,
			i == 0 ? SILENT :
				 "store: the server did not answer in time");
		end();
		begin();
	}
	bytes.len = all;
	buf_fini(&bytes);
}

/* Bytes that are no answer; the connection is closed behind them, if @closed. */
Test(store_greeting, an_answer_that_is_no_frame_is_refused)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum xr_status status;
		const char *text;
	} rows[] = {
		{ "", 0, XR_E_AGAIN, SILENT },
		{ "\x26\0\0", 3, XR_E_AGAIN, SILENT },
		{ "\x17\0\0\0", 4, XR_E_PROTO, ANOTHER },
		{ "HTTP", 4, XR_E_PROTO, ANOTHER },
		{ "\xfd\0\0\0", 4, XR_E_PROTO, ANOTHER },
		{ "\xfc\0\0\0", 4, XR_E_AGAIN,
			"store: the server did not answer in time" },
		{ "\x26\0\0\0\x40", 5, XR_E_AGAIN,
			"store: the server did not answer in time" },
	};

	end();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		if (rows[i].len > 0)
			cr_assert_eq(send(pair[1], rows[i].bytes, rows[i].len,
					     0),
				(ssize_t)rows[i].len);
		shutdown(pair[1], SHUT_WR);
		expect(greet(NULL), rows[i].status, rows[i].text);
		end();
	}
	begin();
}

Test(store_greeting, a_server_that_is_gone_or_silent_is_reported)
{
	struct buf bytes = { 0 };
	struct frame_hello hello = { .host = true };

	/* Silent: the time is over when it begins. What has arrived is read. */
	expect(greeting_client(pair[0], NULL, clock_now(), &err), XR_E_AGAIN,
		SILENT);
	frame_put_hello(&bytes, &hello);
	answer(&bytes);
	expect(greeting_client(pair[0], NULL, clock_now(), &err), XR_OK, "");
	buf_fini(&bytes);
	/* Its half to read is closed: EPIPE. */
	shutdown(pair[1], SHUT_RD);
	expect(greet(NULL), XR_E_AGAIN, SILENT);
}

Test(store_greeting, without_memory_the_hello_is_not_sent)
{
	char byte;

	until_short = 1;
	expect(greet(NULL), XR_E_AGAIN, SILENT);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
}

/* --- with a secret --------------------------------------------------------- */

enum spoiled {
	RIGHT,
	NO_NONCE,
	SHORT_NONCE,
	NO_PROOF,
	WRONG_SECRET,
	PROOF_TYPE,
	PROOF_ID,
	PROOF_NOMEM,
	PROOF_AUTH,
	PROOF_CUT,
};

struct server {
	enum spoiled spoiled;
	enum xr_status status;
	const char *text;
};

static void
receive(struct frame *f, char *room)
{
	size_t size;

	NEED(recv(pair[1], room, 4, MSG_WAITALL) == 4);
	NEED(frame_size((struct span){ room, 4 }, &size, NULL) == XR_OK);
	NEED(recv(pair[1], room + 4, size - 4, MSG_WAITALL) ==
		(ssize_t)size - 4);
	NEED(frame_read((struct span){ room, size }, f, NULL) == XR_OK);
}

static void
challenge(const struct store_auth *auth, enum spoiled spoiled,
	struct store_nonces *nonces)
{
	struct frame_hello hello = { .host = true };
	uint8_t proof[GREET_PROOF];
	struct buf bytes = { 0 };

	memset(nonces->server, 7, sizeof(nonces->server));
	NEED(store_auth_prove(auth, true, nonces, proof));
	hello.nonce = (struct span){ (char *)nonces->server, STORE_NONCE };
	hello.proof = (struct span){ (char *)proof, sizeof(proof) };
	if (spoiled == NO_NONCE)
		hello.nonce.len = hello.proof.len = 0;
	if (spoiled == SHORT_NONCE)
		hello.nonce.len--;
	if (spoiled == NO_PROOF)
		hello.proof.len = 0;
	frame_put_hello(&bytes, &hello);
	answer(&bytes);
	buf_fini(&bytes);
}

/* The other side, in a process of its own; it ends when it has answered. */
static void
serve(const struct store_auth *auth, enum spoiled spoiled)
{
	struct span part[FRAME_PARTS];
	struct frame f = { .part = part };
	struct frame reply = { .type = FRAME_PROOF, .id = 1 };
	struct store_nonces nonces;
	struct buf bytes = { 0 };
	char room[512];

	receive(&f, room);
	NEED(f.count == 2 && part[1].len == STORE_NONCE);
	memcpy(nonces.client, part[1].at, STORE_NONCE);
	challenge(auth, spoiled, &nonces);
	if (spoiled > NO_PROOF && spoiled != WRONG_SECRET) {
		receive(&f, room);
		NEED(f.type == FRAME_PROOF && f.count == 1);
		NEED(store_auth_check(auth, false, &nonces, part[0]));
		NEED(!store_auth_check(auth, true, &nonces, part[0]));
	}
	reply.type = spoiled == PROOF_TYPE ? FRAME_REPLY : FRAME_PROOF;
	reply.id = spoiled != PROOF_ID;
	if (spoiled == PROOF_NOMEM)
		reply.status = XR_E_NOMEM;
	if (spoiled == PROOF_AUTH)
		reply.status = XR_E_AUTH;
	frame_put(&bytes, &reply, 0);
	if (spoiled == PROOF_CUT)
		bytes.len -= 1;
	/* A client that has given up has closed nothing yet. */
	answer(&bytes);
	buf_fini(&bytes);
	shutdown(pair[1], SHUT_WR);
}

static void
expect_server(const struct server *s)
{
	struct store_auth ours = auth_make(1);
	int status;
	pid_t pid;

	begin();
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		struct store_auth child =
			auth_make(s->spoiled == WRONG_SECRET ? 2 : 1);

		serve(&child, s->spoiled);
		_exit(0);
	}
	expect(greet(&ours), s->status, s->text);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "%s", s->text);
	store_auth_close(&ours);
	end();
}

Test(store_greeting, each_answer_to_a_proof_is_checked)
{
	static const struct server rows[] = {
		{ RIGHT, XR_OK, "" },
		{ NO_NONCE, XR_E_AUTH,
			"store: the server does not prove that it knows" },
		{ SHORT_NONCE, XR_E_AUTH,
			"store: the server does not prove that it knows" },
		{ NO_PROOF, XR_E_AUTH,
			"store: the server does not know the secret" },
		{ WRONG_SECRET, XR_E_AUTH,
			"store: the server does not know the secret" },
		{ PROOF_TYPE, XR_E_PROTO, ANOTHER },
		{ PROOF_ID, XR_E_PROTO, ANOTHER },
		{ PROOF_NOMEM, XR_E_AGAIN,
			"store: rank 0 has as many connections as" },
		{ PROOF_AUTH, XR_E_AUTH,
			"store: rank 0 does not accept the secret" },
		{ PROOF_CUT, XR_E_AGAIN,
			"store: the server did not answer in time" },
	};

	end();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_server(&rows[i]);
	begin();
}

/* --- a kernel and a library that fail -------------------------------------- */

static bool
mac_fails(const uint8_t *secret, const void *data, size_t len,
	uint8_t out[GREET_PROOF])
{
	(void)secret;
	(void)data;
	(void)len;
	(void)out;
	return false;
}

Test(store_greeting, a_proof_that_libcrypto_does_not_make_proves_nothing)
{
	struct store_auth auth = auth_make(1);
	struct greet_crypto broken = *auth.crypto;
	struct store_nonces nonces = { 0 };
	uint8_t proof[GREET_PROOF] = { 0 };
	struct span as_span = { (char *)proof, sizeof(proof) };

	cr_assert(store_auth_prove(&auth, true, &nonces, proof));
	cr_expect(store_auth_check(&auth, true, &nonces, as_span));
	as_span.len--;
	cr_expect_not(store_auth_check(&auth, true, &nonces, as_span));
	as_span.len++;
	broken.mac = mac_fails;
	auth.crypto = &broken;
	cr_expect_not(store_auth_prove(&auth, true, &nonces, proof));
	cr_expect_not(store_auth_check(&auth, true, &nonces, as_span));
	store_auth_close(&auth);
}

/* Of the server only. */
static bool
mac_of_server(const uint8_t *secret, const void *data, size_t len,
	uint8_t out[GREET_PROOF])
{
	(void)secret;
	(void)len;
	memset(out, 7, GREET_PROOF);
	return memcmp(data, "store server", 12) == 0;
}

Test(store_greeting, a_proof_that_cannot_be_made_is_not_sent)
{
	struct store_auth auth = auth_make(1);
	struct greet_crypto broken = *auth.crypto;
	uint8_t nonce[STORE_NONCE] = { 1 }, proof[GREET_PROOF];
	const struct frame_hello hello = { .host = true,
		.nonce = { (char *)nonce, sizeof(nonce) },
		.proof = { (char *)proof, sizeof(proof) } };
	struct buf bytes = { 0 };
	char taken[4096];

	memset(proof, 7, sizeof(proof));
	broken.mac = mac_of_server;
	auth.crypto = &broken;
	frame_put_hello(&bytes, &hello);
	answer(&bytes);
	expect(greet(&auth), XR_E_NODEV, "store: libcrypto has failed");
	cr_expect_gt(recv(pair[1], taken, sizeof(taken), MSG_DONTWAIT), 0);
	cr_expect_eq(recv(pair[1], taken, sizeof(taken), MSG_DONTWAIT), -1,
		"only the first message was sent");
	buf_fini(&bytes);
	store_auth_close(&auth);
}

FORKED_TEST(store_greeting, without_random_bytes_nothing_is_sent)
{
	struct store_auth auth = auth_make(1);
	char byte;

	NEED(seccomp_refuse(SYS_getrandom, ENOSYS) == 0);
	EXPECT_EQ(greet(&auth), XR_E_SYS);
	EXPECT_STR(err.text, "store: no random bytes");
	EXPECT_EQ(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
	/* Without a secret none are needed. */
	shutdown(pair[1], SHUT_WR);
	EXPECT_EQ(greet(NULL), XR_E_AGAIN);
	store_auth_close(&auth);
}
