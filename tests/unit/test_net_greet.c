/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_greet.c - two ends that prove who they are: without sockets. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "worker/net/cross.h"
#include "worker/net/greet.h"
#include "worker/net/proof.h"

TestSuite(net_greet, .timeout = 30);

static const uint8_t secret[32] = "a secret of thirty-two bytes ...";
static const uint8_t other_secret[32] = "another one of thirty-two bytes!";
static const uint8_t one[32] = { 1 }, two[32] = { 2 };

static struct greet_self caller, callee;
static struct greet dials, answers;

/* Worker 4 dials worker 9; both as they should be. */
static void
begin(void)
{
	const struct greet_crypto *crypto = proof_crypto(NULL);

	cr_assert_not_null(crypto, "libcrypto is needed for the tests");
	caller = (struct greet_self){ 4, 40, secret, crypto };
	callee = (struct greet_self){ 9, 90, secret, crypto };
	greet_dial(&dials, &caller, 9, 90, 77);
	greet_challenge(&dials, one);
	greet_answer(&answers, &callee);
	greet_challenge(&answers, two);
}

/* All that @from has to send, @step bytes at a time; the last event. */
static enum greet_event
pass(struct greet *from, struct greet *to, size_t step)
{
	char *bytes = malloc(from->out_len + 1);
	size_t len = from->out_len, at = 0, n;
	enum greet_event event = GREET_MORE;

	memcpy(bytes, from->out, len);
	from->out_len = 0;
	while (at < len && greet_need(to) > 0) {
		n = greet_need(to) < step ? greet_need(to) : step;
		cr_assert_leq(n, len - at, "it waits for more than is sent");
		event = greet_feed(to, bytes + at, n);
		at += n;
	}
	cr_assert(at == len || event == GREET_ENDED);
	free(bytes);
	return event;
}

static const char *
words(const struct greet *g)
{
	static char text[160];

	return greet_words(g, text, sizeof(text));
}

static void
agree(size_t step)
{
	begin();
	cr_assert_eq(pass(&dials, &answers, step), GREET_MORE);
	cr_assert_eq(pass(&answers, &dials, step), GREET_MORE);
	cr_assert_eq(pass(&dials, &answers, step), GREET_PROVEN);
	cr_expect_eq(answers.id, 4);
	cr_expect_eq(answers.incarnation, 40);
	cr_expect_eq(answers.dial, 77);
	greet_decide(&answers, GREET_OK, UINT64_C(0x1122334455667788));
	cr_assert_eq(pass(&answers, &dials, step), GREET_AGREED);
	cr_expect_eq(dials.number, UINT64_C(0x1122334455667788));
	cr_expect_eq(dials.least, GREET_LEAST);
	cr_expect_eq(dials.most, GREET_MOST);
	cr_expect_eq(greet_need(&dials) + greet_need(&answers), 0);
}

Test(net_greet, two_of_one_job_agree_whole_and_byte_by_byte)
{
	agree(GREET_SIZE_MAX);
	agree(1);
	agree(7);
}

Test(net_greet, little_is_read_of_who_has_proved_nothing)
{
	size_t most = 0;

	begin();
	most += dials.out_len;
	pass(&dials, &answers, 80);
	pass(&answers, &dials, 80);
	most += dials.out_len;
	cr_expect_leq(most, GREET_BYTES);
	pass(&dials, &answers, 80);
	cr_expect_eq(greet_need(&answers), 0, "it reads on before it decides");
}

Test(net_greet, a_packet_that_is_cut_anywhere_is_waited_for)
{
	char packet[GREET_SIZE_MAX];

	for (size_t cut = 0; cut < GREET_HELLO_SIZE; cut++) {
		size_t at = 0, n;

		begin();
		memcpy(packet, dials.out, GREET_HELLO_SIZE);
		while (at < cut) {
			n = greet_need(&answers);
			n = n < cut - at ? n : cut - at;
			cr_assert_eq(greet_feed(&answers, packet + at, n),
				GREET_MORE);
			at += n;
		}
		cr_assert_gt(greet_need(&answers), 0);
		cr_assert_leq(greet_need(&answers), GREET_HELLO_SIZE - cut);
		cr_assert_eq(answers.out_len, 0);
	}
}

Test(net_greet, a_hello_with_any_bit_changed_comes_to_nothing)
{
	for (unsigned bit = 0; bit < GREET_HELLO_SIZE * 8; bit++) {
		enum greet_event event;

		begin();
		dials.out[bit / 8] ^= (char)(1 << bit % 8);
		event = pass(&dials, &answers, 8);
		if (event == GREET_MORE && greet_need(&answers) > 0 &&
			answers.out_len > 0) {
			/* It may be a good HELLO, and is not what was said. */
			event = pass(&answers, &dials, GREET_SIZE_MAX);
			cr_expect_eq(event, GREET_ENDED, "bit %u", bit);
			cr_expect_eq(dials.out_len, 0);
		} else {
			cr_expect_eq(event, GREET_ENDED, "bit %u", bit);
		}
	}
}

Test(net_greet, an_answer_with_any_bit_changed_is_no_proof)
{
	for (unsigned bit = 0; bit < GREET_ANSWER_SIZE * 8; bit++) {
		enum greet_event event = GREET_MORE;
		size_t at = 0;

		begin();
		pass(&dials, &answers, 80);
		answers.out[bit / 8] ^= (char)(1 << bit % 8);
		/* One that says to be of another size is cut off. */
		while (event == GREET_MORE && at < answers.out_len) {
			size_t n = greet_need(&dials);

			event = greet_feed(&dials, answers.out + at, n);
			at += n;
		}
		cr_expect_eq(event, GREET_ENDED, "bit %u", bit);
		cr_expect_eq(dials.out_len, 0);
	}
}

Test(net_greet, a_proof_with_any_bit_changed_is_refused)
{
	for (unsigned bit = 64; bit < GREET_PROOF_SIZE * 8; bit++) {
		begin();
		pass(&dials, &answers, 80);
		pass(&answers, &dials, 80);
		dials.out[bit / 8] ^= (char)(1 << bit % 8);
		cr_expect_eq(pass(&dials, &answers, 80), GREET_ENDED);
		cr_expect_eq(answers.status, XR_E_AUTH);
		cr_expect_eq(pass(&answers, &dials, 80), GREET_ENDED);
		cr_expect_not_null(strstr(words(&dials), "another secret"));
	}
}

Test(net_greet, another_secret_is_found_out_and_nothing_is_proved_to_it)
{
	begin();
	callee.secret = other_secret;
	pass(&dials, &answers, 80);
	cr_expect_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_eq(dials.status, XR_E_AUTH);
	cr_expect_eq(dials.out_len, 0);
	cr_expect_not_null(strstr(words(&dials), "its secret is another"));
	cr_expect(greet_is_final(&dials));
}

Test(net_greet, a_proof_is_good_once)
{
	char hello[GREET_HELLO_SIZE], proof[GREET_PROOF_SIZE];
	const uint8_t three[32] = { 3 };

	begin();
	memcpy(hello, dials.out, sizeof(hello));
	pass(&dials, &answers, 80);
	pass(&answers, &dials, 80);
	memcpy(proof, dials.out, sizeof(proof));
	cr_assert_eq(pass(&dials, &answers, 80), GREET_PROVEN);
	/* The same words to another answer. */
	greet_answer(&answers, &callee);
	greet_challenge(&answers, three);
	greet_feed(&answers, hello, 8);
	cr_assert_eq(greet_feed(&answers, hello + 8, sizeof(hello) - 8),
		GREET_MORE);
	greet_feed(&answers, proof, 8);
	cr_expect_eq(greet_feed(&answers, proof + 8, sizeof(proof) - 8),
		GREET_ENDED);
	cr_expect_eq(answers.verdict, GREET_UNPROVED);
}

Test(net_greet, an_answer_is_good_once)
{
	char answer[GREET_ANSWER_SIZE];
	const uint8_t three[32] = { 3 };

	begin();
	pass(&dials, &answers, 80);
	memcpy(answer, answers.out, sizeof(answer));
	cr_assert_eq(pass(&answers, &dials, 80), GREET_MORE);
	/* The same words to the same question of later. */
	greet_dial(&dials, &caller, 9, 90, 77);
	greet_challenge(&dials, three);
	dials.out_len = 0;
	greet_feed(&dials, answer, 8);
	cr_expect_eq(greet_feed(&dials, answer + 8, sizeof(answer) - 8),
		GREET_ENDED);
	cr_expect_eq(dials.status, XR_E_AUTH);
}

Test(net_greet, what_one_side_proves_is_no_proof_of_the_other)
{
	char proof[GREET_PROOF_SIZE];

	begin();
	pass(&dials, &answers, 80);
	/* Who dials has no secret, and gives back what he was answered. */
	memcpy(proof + 8, answers.out + 56, 32);
	pass(&answers, &dials, 80);
	memcpy(proof, dials.out, 8);
	greet_feed(&answers, proof, 8);
	cr_expect_eq(greet_feed(&answers, proof + 8, 32), GREET_ENDED);
	cr_expect_eq(answers.verdict, GREET_UNPROVED);
}

Test(net_greet, something_else_is_cut_off_at_once_and_told_nothing)
{
	static const char *const rubbish[] = { "GET / HT", "xnet\1\0\0\0",
		"xnet\2\0\x58\0", "xnet\xff\0\x50\0", "xneu\1\0\x50\0" };

	for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
		begin();
		cr_expect_eq(greet_feed(&answers, rubbish[i], 8), GREET_ENDED,
			"%zu", i);
		cr_expect_eq(answers.status, XR_E_PROTO);
		cr_expect_eq(answers.out_len, 0);
	}
	begin();
	cr_expect_eq(greet_feed(&dials, "HTTP/1.1", 8), GREET_ENDED);
	cr_expect_not_null(strstr(words(&dials), "something else"));
}

Test(net_greet, nobody_agrees_who_has_not_proved_himself)
{
	begin();
	greet_decide(&answers, GREET_OK, 5);
	cr_expect_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_eq(dials.status, XR_E_PROTO);
}

Test(net_greet, refusals_have_their_words)
{
	begin();
	callee.id = 8;
	pass(&dials, &answers, 80);
	cr_assert_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_str_eq(words(&dials), "it is another worker");
	begin();
	callee.incarnation = 91;
	pass(&dials, &answers, 80);
	cr_assert_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_str_eq(words(&dials),
		"its incarnation is 91, and 90 was meant");
	begin();
	callee.secret = NULL;
	pass(&dials, &answers, 80);
	cr_assert_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_str_eq(words(&dials), "it has no secret, or no libcrypto");
	begin();
	caller.id = callee.id;
	greet_dial(&dials, &caller, 9, 90, 1);
	greet_challenge(&dials, one);
	pass(&dials, &answers, 80);
	cr_expect_eq(answers.verdict, GREET_OTHER, "he says to be ourselves");
	begin();
	pass(&dials, &answers, 80);
	pass(&answers, &dials, 80);
	pass(&dials, &answers, 80);
	greet_decide(&answers, GREET_OLD, 44);
	cr_assert_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_str_eq(words(&dials),
		"it knows a later life of this worker: incarnation 44");
	cr_expect(greet_is_final(&dials));
	begin();
	greet_decide(&answers, GREET_CROSSED, 0);
	cr_assert_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect(!greet_is_final(&dials));
	begin();
	greet_decide(&answers, (enum greet_verdict)999, 0);
	cr_assert_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_not_null(strstr(words(&dials), "does not know why"));
}

Test(net_greet, versions_that_do_not_meet_are_both_named)
{
	begin();
	dials.out[8] = 3; /* the least that the other end speaks */
	dials.out[10] = 5;
	cr_expect_eq(pass(&dials, &answers, 80), GREET_ENDED);
	cr_expect_eq(answers.status, XR_E_VERSION);
	cr_expect_str_eq(words(&answers),
		"it speaks versions 3 to 5 of the protocol, and this libxrun 1 to 1");
	cr_expect_eq(pass(&answers, &dials, 80), GREET_ENDED);
	cr_expect_eq(dials.status, XR_E_VERSION);
	begin();
	dials.out[10] =
		5; /* it speaks ours, too: but this is not what it said */
	cr_expect_eq(pass(&dials, &answers, 80), GREET_MORE);
	cr_expect_eq(answers.out[8], 1, "the greater of both that is common");
}

Test(net_greet, the_place_of_tls_is_kept)
{
	begin();
	dials.out[12] = 1;
	cr_expect_eq(pass(&dials, &answers, 80), GREET_ENDED);
	cr_expect_eq(answers.verdict, GREET_VERSION);
}

Test(net_greet, a_secret_that_is_kept_is_not_a_childs)
{
	uint8_t *kept = proof_keep(secret);
	int status = -1;
	pid_t pid;

	cr_expect_arr_eq(kept, secret, GREET_SECRET);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		for (size_t i = 0; i < GREET_SECRET; i++)
			if (kept[i] != 0)
				_exit(1);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_arr_eq(kept, secret, GREET_SECRET);
	proof_forget(kept);
	proof_forget(NULL);
}

/* --- who is kept ----------------------------------------------------------- */

static enum cross
judge(enum cross_link link, uint32_t self, uint64_t incarnation, uint64_t dial)
{
	struct cross_case c = {
		.self = self,
		.other = 5,
		.seen = 3,
		.link = link,
		.known = 10,
		.incarnation = incarnation,
		.dial = dial,
	};

	return cross_judge(&c);
}

Test(net_greet, whose_connection_is_kept)
{
	/* Of a life that is over, whatever there is. */
	cr_expect_eq(judge(CROSS_NONE, 1, 2, 99), CROSS_OLD);
	cr_expect_eq(judge(CROSS_UP, 1, 2, 99), CROSS_OLD);
	/* A later life: its numbers begin again. */
	cr_expect_eq(judge(CROSS_NONE, 1, 4, 1), CROSS_TAKE);
	cr_expect_eq(judge(CROSS_DIALLING, 1, 4, 1), CROSS_RENEW);
	cr_expect_eq(judge(CROSS_UP, 1, 4, 1), CROSS_RENEW);
	/* Let go of since. */
	cr_expect_eq(judge(CROSS_NONE, 1, 3, 10), CROSS_STALE);
	cr_expect_eq(judge(CROSS_DIALLING, 9, 3, 10), CROSS_STALE);
	cr_expect_eq(judge(CROSS_UP, 1, 3, 9), CROSS_STALE);
	/* Both at once: that of the lower id. */
	cr_expect_eq(judge(CROSS_NONE, 1, 3, 11), CROSS_TAKE);
	cr_expect_eq(judge(CROSS_DIALLING, 4, 3, 11), CROSS_WAIT);
	cr_expect_eq(judge(CROSS_DIALLING, 6, 3, 11), CROSS_ADOPT);
	/* He has lost the link there is. */
	cr_expect_eq(judge(CROSS_UP, 4, 3, 11), CROSS_RENEW);
	cr_expect_eq(judge(CROSS_UP, 6, 3, 11), CROSS_RENEW);
}
