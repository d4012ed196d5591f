/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_user.c - handles of values of other processes, in messages of peers. */
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"

TestSuite(rref_user, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

/* --- the references of a body ------------------------------------------------ */

Test(rref_user, a_body_gives_the_references_in_front_of_it)
{
	static const struct {
		uint32_t magic, flags, count;
		size_t blocks; /* with the head */
		size_t cut;
		enum xr_status status;
		size_t left;
	} row[] = {
		{ MAGIC, 0, 0, 1, 0, XR_OK, 0 },
		{ MAGIC, 0, 0, 1, 1, XR_OK, 63 },
		{ MAGIC, 0, 0, 2, 0, XR_OK, 64 },
		{ MAGIC + 1, 0, 1, 2, 0, XR_OK, 128 },
		{ MAGIC, 0, 2, 3, 0, XR_OK, 0 },
		{ MAGIC, 0, 2, 3, 1, XR_E_PROTO, 191 },
		{ MAGIC, 1, 0, 2, 0, XR_OK, 0 },
		{ MAGIC, 1, 0, 2, 1, XR_E_PROTO, 127 },
		{ MAGIC, 2, 0, 2, 0, XR_OK, 0 },
		{ MAGIC, 2, 0, 2, 1, XR_E_PROTO, 127 },
		{ MAGIC, 3, 1, 4, 0, XR_OK, 0 },
		{ MAGIC, 3, 1, 4, 1, XR_E_PROTO, 255 },
		{ MAGIC, 0, UINT32_MAX, 3, 0, XR_E_PROTO, 192 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct rref_wire block[5] = { { 0 } };
		uint32_t head[3] = { row[i].magic, row[i].flags, row[i].count };
		size_t len = row[i].blocks * sizeof(block[0]) - row[i].cut;
		struct xr_body body = { .data = block, .len = len };
		struct refs_in *refs = NULL;
		bool whole;

		/* Of an unknown worker: each of them is lost. */
		for (size_t k = 1; k < row[i].blocks; k++)
			block[k] = word(9, k, 9, k, 0);
		memcpy(&block[0], head, sizeof(head));
		cr_expect_eq(refs_take(&body, wire_peer[1], &refs, &err),
			row[i].status, "row %zu", i);
		cr_expect_eq(body.len, row[i].left, "row %zu: %zu", i,
			body.len);
		whole = body.len < len;
		cr_expect_eq(refs != NULL, whole, "row %zu", i);
		if (row[i].status != XR_OK)
			cr_expect_str_eq(err.text, "references are cut short");
		cr_expect_eq(refs_birth(refs) != NULL,
			whole && (row[i].flags & 1) != 0, "row %zu", i);
		cr_expect_eq(refs_target(refs) != NULL,
			whole && (row[i].flags & 2) != 0, "row %zu", i);
		if (whole && row[i].flags == 3) {
			cr_expect_eq(refs_birth(refs)->id_local, 1);
			cr_expect_eq(refs_target(refs)->id_local, 2);
			xr_rref_unref(handle_in(refs, &block[3]));
		}
		refs_free(refs);
	}
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 0);
}

Test(rref_user, a_value_names_only_references_in_front_of_it)
{
	struct rref_wire wires[3] = { word(1, 1, 1, 10, RREF_CONFIRMED),
		word(1, 2, 1, 11, RREF_CONFIRMED),
		word(1, 2, 1, 12, RREF_CONFIRMED) };
	struct refs_in *refs = refs_from(1, wires, 2);
	struct xr_rref *h, *again;

	h = handle_in(refs, &wires[1]);
	again = handle_in(refs, &wires[0]);
	cr_expect_neq(h, again);
	xr_rref_unref(again);
	again = handle_in(refs, &wires[1]);
	cr_expect_eq(h, again);
	cr_expect_eq(refs_find(refs, (uint8_t *)&wires[2], &again, &err),
		XR_E_DECODE);
	cr_expect_str_eq(err.text, "rref: it does not stand before the value");
	cr_expect_eq(refs_find(NULL, (uint8_t *)&wires[0], &again, &err),
		XR_E_DECODE);
	cr_expect_eq(refs_target(NULL), NULL);
	xr_rref_unref(h);
	xr_rref_unref(h);
	refs_free(refs);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* --- what its owner says ------------------------------------------------------ */

Test(rref_user, a_handle_from_its_owner_is_confirmed_at_once)
{
	struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED);
	struct refs_in *refs = refs_from(1, &wire, 1);
	struct xr_rref *h = handle_in(refs, &wire);
	struct xr_worker worker = { .size = sizeof(worker) };

	cr_expect(refs_known(refs));
	cr_expect(refs_known(NULL));
	cr_expect(!awaits(refs));
	cr_expect(!awaits(NULL));
	cr_expect(xr_rref_confirmed(h));
	cr_expect(!xr_rref_is_owner(h));
	cr_expect_eq(xr_rref_owner(h, NULL), XR_E_INVAL);
	worker.size--;
	cr_expect_eq(xr_rref_owner(h, &worker), XR_E_INVAL);
	worker.size++;
	cr_expect_eq(xr_rref_owner(h, &worker), XR_OK);
	cr_expect_eq(worker.id, 1);
	cr_expect_str_eq(worker.name, "one");
	cr_expect_eq(FIGURE(PENDING_USERS), 0);
	refs_free(refs);
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(h);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* Only the owner's word counts, whatever the flags say. */
Test(rref_user, a_handle_from_another_waits_for_its_owner)
{
	struct rref_wire wire = word(1, 5, 2, 6, RREF_CONFIRMED);
	struct refs_in *refs = refs_from(2, &wire, 1), *again;
	struct xr_rref *h = handle_in(refs, &wire);

	cr_expect(says(MESSAGE_RREF_FORK_REQUEST, 1, wire, RREF_CONFIRMED));
	cr_expect_eq(FIGURE(PENDING_USERS), 1);
	cr_expect(!refs_known(refs));
	cr_expect(!xr_rref_confirmed(h));
	cr_expect(awaits(refs));
	/* The same message once more. */
	again = refs_from(2, &wire, 1);
	cr_expect_eq(FIGURE(USERS), 1);
	cr_expect_eq(wire_left(), 0);
	say(2, MESSAGE_RREF_CONFIRM, wire);
	cr_expect(!xr_rref_confirmed(h));
	say(1, MESSAGE_RREF_CONFIRM, wire);
	cr_expect(xr_rref_confirmed(h));
	cr_expect(is_ready(XR_OK, ""));
	cr_expect(says(MESSAGE_RREF_CHILD_ACCEPT, 2, wire, 0));
	cr_expect(refs_known(refs));
	say(1, MESSAGE_RREF_CONFIRM, wire);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(ready.count, 1);
	refs_free(again);
	refs_free(refs);
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(h);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(FIGURE(USERS), 0);
}

Test(rref_user, a_handle_that_is_released_early_ends_when_it_is_confirmed)
{
	struct rref_wire wire = word(1, 5, 2, 6, 0);
	struct refs_in *refs = refs_from(2, &wire, 1);

	cr_expect(awaits(refs));
	wire_forget();
	/* It waits in vain: nothing is told. */
	refs_free(refs);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 1);
	say(1, MESSAGE_RREF_CONFIRM, wire);
	cr_expect_eq(ready.count, 0);
	cr_expect(says(MESSAGE_RREF_CHILD_ACCEPT, 2, wire, 0));
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(FIGURE(USERS), 0);
	/* It is not here any more. */
	say(1, MESSAGE_RREF_CONFIRM, wire);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(wire_left(), 0);
}

Test(rref_user, an_owner_without_memory_makes_a_handle_fail)
{
	struct rref_wire wires[2] = { word(1, 5, 2, 6, 0),
		word(1, 7, 1, 8, RREF_CONFIRMED) };
	struct rref_wire no = word(1, 5, 2, 6, RREF_UNMADE);
	struct rref_wire late = word(1, 7, 1, 8, RREF_UNMADE);
	struct refs_in *refs = refs_from(2, wires, 2);
	struct xr_rref *h = handle_in(refs, &wires[0]);
	struct xr_rref *other = handle_in(refs, &wires[1]);

	wire_forget();
	cr_expect(awaits(refs));
	say(1, MESSAGE_RREF_CONFIRM, word(1, 50, 2, 60, RREF_UNMADE));
	say(2, MESSAGE_RREF_CONFIRM, no);
	cr_expect_eq(usable(h, &err), XR_OK);
	say(1, MESSAGE_RREF_CONFIRM, no);
	cr_expect_eq(usable(h, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "one (1) has no memory for a reference");
	/* The other is pending, since its message was not the owner's. */
	cr_expect_eq(ready.count, 0);
	say(1, MESSAGE_RREF_CONFIRM, wires[1]);
	cr_expect(is_ready(XR_E_NOMEM, "no memory for a reference"));
	say(1, MESSAGE_RREF_CONFIRM, late);
	cr_expect_eq(usable(other, &err), XR_OK);
	/* The call comes again: the one has failed, the other is confirmed. */
	refs_free(refs);
	refs = refs_from(2, wires, 2);
	cr_expect(awaits(refs));
	cr_expect(is_ready(XR_E_NOMEM, "no memory for a reference"));
	cr_expect(!refs_known(refs));
	refs_free(refs);
	wire_forget();
	xr_rref_unref(h);
	cr_expect_eq(wire_left(), 0); /* its owner does not know it */
	xr_rref_unref(other);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wires[1], 0));
	cr_expect_eq(FIGURE(USERS), 0);
}

/* The last of several tells. */
Test(rref_user, a_call_waits_for_all_of_its_references)
{
	struct rref_wire wires[4] = { word(1, 1, 2, 1, 0), word(1, 2, 2, 2, 0),
		word(3, 3, 2, 3, 0), word(9, 1, 2, 4, 0) };
	struct refs_in *refs = refs_from(2, wires, 3);

	cr_expect(awaits(refs));
	say(1, MESSAGE_RREF_CONFIRM, wires[0]);
	say(3, MESSAGE_RREF_CONFIRM, wires[2]);
	cr_expect_eq(ready.count, 0);
	say(1, MESSAGE_RREF_CONFIRM, wires[1]);
	cr_expect(is_ready(XR_OK, ""));
	refs_free(refs);
	/* Of one whose owner is unknown, and one that is pending. */
	wires[2].fork_local = 7;
	refs = refs_from(2, wires + 2, 2);
	cr_expect(awaits(refs));
	cr_expect_eq(ready.count, 0);
	cr_expect(!refs_known(refs));
	say(3, MESSAGE_RREF_CONFIRM, wires[2]);
	cr_expect(is_ready(XR_E_PEER_LOST, "lost worker 9"));
	refs_free(refs);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* Two calls may wait for one handle: neither is forgotten. */
Test(rref_user, all_calls_that_wait_for_a_handle_hear_of_it)
{
	struct rref_wire wire = word(1, 1, 2, 1, 0);
	struct refs_in *refs[3];

	for (int i = 0; i < 3; i++) {
		refs[i] = refs_from(2, &wire, 1);
		cr_expect(!refs_known(refs[i]));
		cr_expect(awaits(refs[i]));
		cr_expect_eq(ready.count, 0);
	}
	say(1, MESSAGE_RREF_CONFIRM, wire);
	cr_expect_eq(ready.count, 3);
	cr_expect_eq(ready.status, XR_OK);
	for (int i = 0; i < 3; i++) {
		cr_expect(refs_known(refs[i]));
		refs_free(refs[i]);
	}
	cr_expect_eq(FIGURE(USERS), 0);
}

/* --- owners that are lost ------------------------------------------------------ */

Test(rref_user, a_handle_of_an_owner_that_is_not_known_has_failed)
{
	struct rref_wire wires[2] = { word(9, 5, 1, 6, 0),
		word(2, 5, 1, 7, 0) };

	wires[1].owner_incarnation++;
	for (int i = 0; i < 2; i++) {
		struct xr_rref *h = handle_from(1, wires[i]);
		struct xr_value *value = NULL;

		cr_expect_eq(xr_rref_fetch(h, HOUR, &value, &err),
			XR_E_PEER_LOST);
		cr_expect_not_null(strstr(err.text,
					   i == 0 ? "worker 9" : "worker 2"),
			"%s", err.text);
		cr_expect_not_null(strstr(err.text, "in the life"));
		xr_rref_unref(h);
	}
	cr_expect_eq(wire_left(), 0);
}

Test(rref_user, a_handle_fails_when_its_owner_is_lost)
{
	struct rref_wire mine = word(1, 5, 2, 6, 0),
			 other = word(3, 5, 2, 7, 0);
	struct refs_in *refs = refs_from(2, &mine, 1);
	struct xr_rref *h = handle_in(refs, &mine),
		       *there = handle_from(2, other), *late;

	cr_expect(awaits(refs));
	wire_forget();
	agent_lose(wire_peer[1], "on purpose");
	cr_expect(is_ready(XR_E_PEER_LOST, "lost one (1)"));
	cr_expect_eq(usable(h, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1), which had the value");
	cr_expect_eq(usable(there, &err), XR_OK);
	cr_expect_eq(FIGURE(PENDING_USERS), 1);
	late = handle_from(2, word(1, 8, 2, 9, 0));
	cr_expect_eq(usable(late, &err), XR_E_PEER_LOST);
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(late);
	refs_free(refs);
	xr_rref_unref(h);
	/* The parent of the other is lost: nobody accepts it. */
	agent_lose(wire_peer[2], "on purpose");
	cr_expect_eq(usable(there, &err), XR_OK);
	say(3, MESSAGE_RREF_CONFIRM, other);
	cr_expect(xr_rref_confirmed(there));
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(there);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 3, other, 0));
	cr_expect_eq(FIGURE(USERS), 0);
}

/* One that nobody has any more goes with its owner. */
Test(rref_user, a_released_handle_goes_with_its_owner)
{
	refs_free(refs_from(2, &(struct rref_wire[]){ word(1, 5, 2, 6, 0) }[0],
		1));
	cr_expect_eq(FIGURE(USERS), 1);
	agent_lose(wire_peer[1], "on purpose");
	cr_expect_eq(FIGURE(USERS), 0);
	cr_expect_eq(FIGURE(PENDING_USERS), 0);
}

/* What was given back, and is confirmed once more, has ended as it was. */
Test(rref_user, a_handle_that_was_given_back_has_ended)
{
	struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED), end = wire;
	struct xr_rref *h = handle_from(1, wire);

	cr_expect_eq(rref_settle(false, 0, &err), XR_OK);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	end.flags = 0;
	say(1, MESSAGE_RREF_CONFIRM, end);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(h);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* Its owner is a peer of the former agent. */
Test(rref_user, a_handle_of_a_former_agent_is_released_without_a_message)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));

	h->life++;
	xr_rref_unref(h);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* There the lock may be anybody's. */
Test(rref_user, a_handle_is_left_alone_after_a_fork)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));
	int status = 0;
	pid_t pid;

	pthread_mutex_lock(&rref.lock);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		xr_rref_unref(h);
		_exit(atomic_load(&h->refs) != 1);
	}
	pthread_mutex_unlock(&rref.lock);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	xr_rref_unref(h);
}

/* --- forks that are passed on ---------------------------------------------------- */

/* pass() - a fork of @h goes to @to; its wire. */
static struct rref_wire
pass(struct xr_rref *h, uint32_t to)
{
	struct refs_out out = { 0 };
	struct rref_wire wire;

	cr_assert_eq(refs_out_begin(&out, wire_peer[to], &err), XR_OK);
	cr_assert_eq(refs_out_add(&out, h, (uint8_t *)&wire, &err), XR_OK);
	cr_assert_eq(refs_out_part(&out).len, 128);
	refs_out_fini(&out);
	return wire;
}

Test(rref_user, a_fork_keeps_its_parent_until_it_is_accepted)
{
	struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED), fork;
	struct xr_rref *h = handle_from(1, wire);

	fork = pass(h, 2);
	cr_expect_eq(fork.flags, 0);
	cr_expect_eq(fork.owner, 1);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 1);
	xr_rref_unref(h);
	cr_expect_eq(wire_left(), 0);
	say(3, MESSAGE_RREF_CHILD_ACCEPT, fork);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 1);
	say(2, MESSAGE_RREF_CHILD_ACCEPT, fork);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	say(2, MESSAGE_RREF_CHILD_ACCEPT, fork);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 0);
}

Test(rref_user, a_fork_ends_with_its_receiver_or_its_owner)
{
	struct xr_rref *of_one =
			       handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED)),
		       *of_two =
			       handle_from(2, word(2, 5, 2, 6, RREF_CONFIRMED));

	pass(of_one, 2);
	pass(of_one, 3);
	pass(of_two, 3);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 3);
	/* The first goes to it, the third is of its value. */
	agent_lose(wire_peer[2], "on purpose");
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 1);
	agent_lose(wire_peer[1], "on purpose");
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
	xr_rref_unref(of_one);
	xr_rref_unref(of_two);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* A head, and a block for each. */
Test(rref_user, the_references_of_a_message_follow_each_other)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));
	struct rref_wire birth = word(0, 1, 0, 2, 0), wire[6];
	struct refs_out out = { .has_birth = true,
		.birth = birth,
		.target = h };
	struct xr_part part;
	uint32_t head[16];

	cr_assert_eq(refs_out_begin(&out, wire_peer[2], &err), XR_OK);
	part = refs_out_part(&out);
	cr_expect_eq(part.len, 3 * 64);
	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(refs_out_add(&out, h, (uint8_t *)&wire[i], &err),
			XR_OK);
		part = refs_out_part(&out);
		cr_expect_eq(part.len, (4 + i) * 64);
		memcpy(head, part.data, sizeof(head));
		cr_expect_eq(head[2], i + 1);
	}
	cr_expect_eq(head[0], MAGIC);
	cr_expect_eq(head[1], 3);
	for (unsigned i = 3; i < 16; i++)
		cr_expect_eq(head[i], 0);
	cr_expect_eq(memcmp((const char *)part.data + 64, &birth, 64), 0);
	cr_expect_eq(memcmp((const char *)part.data + 3 * 64, wire, 6 * 64), 0);
	refs_out_undo(&out);
	refs_out_fini(&out);
	cr_expect_null(out.wire);
	/* Without any there is nothing in front of the value. */
	cr_assert_eq(refs_out_begin(&out, wire_peer[2], &err), XR_OK);
	cr_expect_eq(refs_out_part(&out).len, 0);
	refs_out_fini(&out);
	xr_rref_unref(h);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
}

Test(rref_user, a_message_that_is_not_sent_takes_its_forks_back)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED)),
		       *own = NULL;
	struct refs_out out = { 0 };
	struct rref_wire wire;

	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(1), &own, &err),
		XR_OK);
	cr_assert_eq(refs_out_begin(&out, wire_peer[2], &err), XR_OK);
	cr_assert_eq(refs_out_add(&out, h, (uint8_t *)&wire, &err), XR_OK);
	cr_assert_eq(refs_out_add(&out, own, (uint8_t *)&wire, &err), XR_OK);
	cr_expect_eq(wire.flags, RREF_CONFIRMED);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 1);
	cr_expect_eq(FIGURE(FORKS), 1);
	refs_out_undo(&out);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
	cr_expect_eq(FIGURE(FORKS), 0);
	refs_out_undo(&out);
	refs_out_fini(&out);
	xr_rref_unref(own);
	xr_rref_unref(h);
	cr_expect_eq(FIGURE(USERS), 0);
	cr_expect_eq(FIGURE(OWNERS), 0);
}

/* A handle that is good for nothing is not passed on. */
Test(rref_user, a_handle_that_has_failed_is_not_passed_on)
{
	struct xr_rref *h = handle_from(1, word(9, 5, 1, 6, 0));
	struct refs_out out = { 0 };
	struct rref_wire wire;

	cr_assert_eq(refs_out_begin(&out, wire_peer[2], &err), XR_OK);
	cr_expect_eq(refs_out_add(&out, h, (uint8_t *)&wire, &err),
		XR_E_PEER_LOST);
	cr_expect_eq(out.count, 1); /* the head */
	refs_out_fini(&out);
	xr_rref_unref(h);
}

/* --- many ------------------------------------------------------------------------ */

#define MANY 600 /* beyond two sizes of the table */

static struct rref_wire many[MANY];

static void
expect_found(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct rref_gid fork = gid(1, 1000 + i);
		struct gid_node *n = gid_find(&rref.users, &fork);

		cr_assert_not_null(n);
		cr_expect_eq(((struct xr_rref *)n)->id.local, i);
	}
}

Test(rref_user, a_table_grows_with_its_handles)
{
	struct refs_in *refs;
	char text[64];

	for (uint32_t i = 0; i < MANY; i++)
		many[i] = word(1, i, 1, 1000 + i, RREF_CONFIRMED);
	refs = refs_from(1, many, MANY);
	cr_assert_eq(FIGURE(USERS), MANY);
	cr_expect_eq(rref.users.buckets, 512);
	expect_found(MANY);
	cr_expect_eq(rref_leaks(text, sizeof(text)), MANY);
	refs_free(refs);
	cr_expect_eq(FIGURE(USERS), 0);
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert(wire_sent(MESSAGE_RREF_USER_DELETE, 1) != NULL);
	cr_expect_eq(wire_left(), 0);
}

Test(rref_user, a_table_that_cannot_grow_takes_more)
{
	struct refs_in *refs, *one;

	for (uint32_t i = 0; i < 2 * GID_FEW + 2; i++)
		many[i] = word(1, i, 1, 1000 + i, RREF_CONFIRMED);
	refs = refs_from(1, many, 2 * GID_FEW);
	cr_expect_null(rref.users.bucket);
	until_short = 3; /* the references, the handle, the table */
	one = refs_from(1, many + 2 * GID_FEW, 1);
	cr_expect_eq(until_short, 0);
	cr_expect_null(rref.users.bucket);
	expect_found(2 * GID_FEW + 1);
	refs_free(one);
	one = refs_from(1, many + 2 * GID_FEW, 2);
	cr_expect_not_null(rref.users.bucket);
	cr_expect_eq(rref.users.buckets, 256);
	expect_found(2 * GID_FEW + 2);
	refs_free(one);
	refs_free(refs);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* --- no memory -------------------------------------------------------------------- */

/* Each allocation of it fails once: nothing is left of what was taken. */
Test(rref_user, references_without_memory_are_given_back)
{
	struct rref_wire wires[3] = { word(1, 1, 1, 1, RREF_CONFIRMED),
		word(9, 1, 1, 2, 0), word(1, 3, 1, 3, RREF_CONFIRMED) };
	enum xr_status status = XR_E_NOMEM;
	struct refs_in *refs = NULL;
	unsigned at = 0;

	while (status != XR_OK && at < 20) {
		was_short = false;
		until_short = ++at;
		status = try_refs_from(1, wires, 3, &refs, &err);
		until_short = 0;
		if (status != XR_OK) {
			cr_expect(was_short);
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_str_eq(err.text, "no memory for references");
			cr_expect_null(refs);
			cr_expect_eq(FIGURE(USERS), 0);
		}
	}
	cr_expect_gt(at, 3);
	cr_expect_eq(FIGURE(USERS), 2);
	refs_free(refs);
	cr_expect_eq(FIGURE(USERS), 0);
}

Test(rref_user, a_fork_without_memory_is_not_sent)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED)),
		       *own = NULL, *both[2];

	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(1), &own, &err),
		XR_OK);
	both[0] = h;
	both[1] = own;
	for (int i = 0; i < 2; i++) {
		enum xr_status status = XR_E_NOMEM;
		unsigned at = 0;

		while (status != XR_OK && at < 10) {
			struct refs_out out = { 0 };
			struct rref_wire wire;

			until_short = ++at;
			status = refs_out_begin(&out, wire_peer[2], &err);
			cr_expect_eq(status, XR_OK);
			status = refs_out_add(&out, both[i], (uint8_t *)&wire,
				&err);
			until_short = 0;
			if (status != XR_OK) {
				cr_expect_eq(status, XR_E_NOMEM);
				cr_expect_str_eq(err.text, "out of memory");
				cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
				cr_expect_eq(FIGURE(FORKS), 0);
			}
			refs_out_undo(&out);
			refs_out_fini(&out);
		}
		cr_expect_eq(at, 3);
	}
	xr_rref_unref(own);
	xr_rref_unref(h);
	cr_expect_eq(FIGURE(USERS), 0);
}
