/* SPDX-License-Identifier: Apache-2.0 */
/* test_init.c - how a process joins, step by step. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "tests/unit/init_rig.h"

/* --- joining ---------------------------------------------------------------------------------------- */

static struct xr_rpc_opts opts;

static void
begin(void)
{
	static const char *const variables[] = { "XRUN_STORE", "XRUN_RANK",
		"XRUN_SIZE", "RANK", "WORLD_SIZE", "XRUN_RPC_UNAUTHENTICATED" };

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	opts = (struct xr_rpc_opts){ .size = sizeof(opts) };
	cr_assert_eq(xr_rpc_opts_init(0, &opts, NULL), XR_OK);
	opts.init_method = "control:";
	opts.timeout = XR_SECONDS(50);
	store_says_rank = 1;
	store_says_size = 3;
}

static void
end(void)
{
	xr_value_unref(told);
}

TestSuite(init, .timeout = 20, .init = begin, .fini = end);

static enum xr_status
join(int64_t rank, int64_t size)
{
	err = (struct xr_error){ 0 };
	steps[0] = added[0] = '\0';
	return xr_rpc_init("self", rank, size, &opts, &err);
}

static void
refused(int64_t rank, int64_t size, enum xr_status status, const char *words)
{
	cr_expect_eq(join(rank, size), status);
	cr_expect_str_eq(err.text, words);
	cr_expect_null(group.store);
}

#define BY_STORE  "fault open decline static secret member tell meet ready begin"
#define BY_ROSTER "fault open member meet.here ready.here begin"

static void
expect_told(int64_t said_size)
{
	struct member m;

	cr_assert(member_read(told, &m));
	cr_expect_str_eq(m.name, "self");
	cr_expect_eq(m.id, 1);
	cr_expect_eq(m.said_size, said_size);
	cr_expect_str_eq(m.addresses, "shm:1 tcp:2");
	cr_expect_neq(m.incarnation, 0);
}

Test(init, a_rank_joins_by_the_store)
{
	int64_t now = clock_now();

	opts.rref_flags = XR_RREF_ACK_ON_DONE;
	cr_assert_eq(join(-1, -1), XR_OK, "%s", err.text);
	expect_steps(BY_STORE);
	cr_expect_eq(group.store, STORE);
	cr_expect_eq(rref_flags, XR_RREF_ACK_ON_DONE);
	cr_expect_eq(met.store, STORE);
	cr_expect_eq(met.rank, 1);
	cr_expect_eq(met.size, 3);
	cr_expect_eq(met.cycle, 0);
	cr_expect_geq(met.deadline, now + XR_SECONDS(50));
	cr_expect_leq(met.deadline, clock_now() + XR_SECONDS(50));
	cr_expect_str_eq(my_name, "self");
	cr_expect_eq(me.id, 1);
	cr_expect_eq(me.said_size, 3);
	cr_expect(begun_with == 's' && begun_is_same);
	cr_expect_str_eq(begun.store_host, "there");
	cr_expect_not(begun.is_near || begun.is_new);
	cr_expect_null(begun.lost);
	expect_told(3);
	cr_expect_str_eq(added, "rank.0 rank.2 ");
	/* Each time is another one. */
	group.store = NULL;
	cr_assert_eq(join(-1, -1), XR_OK, "%s", err.text);
	cr_expect_eq(met.cycle, 1);
}

Test(init, a_rank_joins_in_the_segment)
{
	by_roster = true;
	cr_assert_eq(join(1, 3), XR_OK, "%s", err.text);
	expect_steps(BY_ROSTER);
	cr_expect_eq(group.store, STORE);
	cr_expect_eq(rref_flags, 0);
	cr_expect(begun_with == 'r' && begun_is_same);
	cr_expect(begun.is_near);
	cr_expect_null(begun.store_host);
	expect_told(3);
	cr_expect_str_eq(added, "rank.0 rank.2 ");
}

Test(init, a_rank_that_cannot_join_in_the_segment_does_by_the_store)
{
	by_roster = true;
	fails = "meet.here";
	fails_with = XR_E_STALE;
	cr_assert_eq(join(-1, -1), XR_OK, "%s", err.text);
	expect_steps(
		"fault open member meet.here close decline static secret member tell meet ready begin");
}

/* Each step fails once: what was opened before is closed. */
Test(init, a_step_that_fails_ends_the_joining)
{
	static const struct {
		const char *fails, *steps;
		bool roster;
	} row[] = {
		{ "fault", "fault", false },
		{ "open", "fault open free", false },
		{ "decline", "fault open decline free", false },
		{ "static", "fault open decline static free", false },
		{ "tell",
			"fault open decline static secret member tell close free",
			false },
		{ "meet",
			"fault open decline static secret member tell meet close free",
			false },
		{ "ready",
			"fault open decline static secret member tell meet ready close free",
			false },
		{ "meet.here", "fault open member meet.here close free", true },
		{ "ready.here",
			"fault open member meet.here ready.here close free",
			true },
		/* What keeps it from beginning is told to all. */
		{ "secret", "fault open decline static secret tell free",
			false },
		{ "member", "fault open decline static secret member tell free",
			false },
		{ "member", "fault open member meet.here free", true },
	};
	char words[64];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xr_failure f = { .size = sizeof(f) };
		enum xr_status status;

		/* The others fail as all do. */
		bool is_told = i >= 9;

		fails = row[i].fails;
		fails_with = XR_E_CANCELLED;
		by_roster = row[i].roster;
		if (is_told && by_roster)
			continue;
		status = join(-1, -1);
		cr_expect_eq(status, XR_E_CANCELLED, "row %zu: %s", i,
			err.text);
		snprintf(words, sizeof(words), "%s failed", fails);
		cr_expect_str_eq(err.text, words);
		expect_steps(row[i].steps);
		cr_expect_null(group.store);
		if (!is_told)
			continue;
		cr_assert_eq(xr_value_failure(told, &f), XR_OK);
		cr_expect_eq(f.status, XR_E_CANCELLED);
		snprintf(words, sizeof(words), "self: %s failed", fails);
		cr_expect_str_eq(f.text, words);
	}
}

/* Rank 0 says so instead of a verdict. */
Test(init, rank_0_gives_up_for_all)
{
	store_says_rank = 0;
	fails = "member";
	fails_with = XR_E_CANCELLED;
	refused(-1, -1, XR_E_CANCELLED, "member failed");
	expect_steps(
		"fault open decline static secret member tell give.up free");
	cr_expect_eq(gave_up, XR_E_CANCELLED);
	fails = "tell";
	refused(-1, -1, XR_E_CANCELLED, "tell failed");
	expect_steps(
		"fault open decline static secret member tell give.up close free");
}

/* --- who they are -------------------------------------------------------------------------------------- */

Test(init, all_say_the_same_size)
{
	other_size = 4;
	refused(-1, -1, XR_E_CONFLICT,
		"rank.0 (0) says that there are 4 members, and 3 are asked for");
	expect_steps(
		"fault open decline static secret member tell meet close free");
	by_roster = true;
	refused(-1, -1, XR_E_CONFLICT,
		"rank.0 (0) says that there are 4 members, and 3 are asked for");
	expect_steps("fault open member meet.here close free");
}

Test(init, who_is_no_member_is_refused)
{
	other_is_none = true;
	refused(-1, -1, XR_E_PROTO, "member 0 is none");
}

Test(init, a_member_without_memory_is_not_added)
{
	fails = "add";
	refused(-1, -1, XR_E_NOMEM, "out of memory");
	cr_expect_str_eq(added, "rank.0 ");
	expect_steps(
		"fault open decline static secret member tell meet close free");
}

Test(init, members_of_a_group_send_over_it)
{
	cr_assert_eq(xr_rpc_opts_init(xr_backend_find("process_group"), &opts,
			     NULL),
		XR_OK);
	opts.init_method = "control:";
	refused(-1, -1, XR_E_CONFLICT,
		"self (1) has the backend process_group, and rank.0 (0) has not");
	/* Alone, there is nobody else. */
	store_says_rank = 0;
	store_says_size = 1;
	way_rank = 7;
	cr_expect_eq(join(-1, -1), XR_OK, "%s", err.text);
	expect_steps(
		"fault open decline static secret member tell meet way ready begin");
	cr_expect_eq(way_rank, 0);
	cr_expect_eq(way_size, 1);
	group.store = NULL;
	fails = "way";
	fails_with = XR_E_CANCELLED;
	refused(-1, -1, XR_E_CANCELLED, "way failed");
	/* There is none before all are known. */
	store_says_size = 3;
	other_opts = &opts;
	fails = "add";
	refused(-1, -1, XR_E_NOMEM, "out of memory");
	expect_steps(
		"fault open decline static secret member tell meet close free");
}

/* --- rank and size ---------------------------------------------------------------------------------------- */

Test(init, rank_and_size_are_known_to_the_call_or_to_the_store)
{
	refused(2, -1, XR_E_CONFLICT, "the rank is 2 here, and 1 in the group");
	refused(-1, 2, XR_E_CONFLICT, "the size is 2 here, and 3 in the group");
	store_says_rank = -1;
	refused(-1, -1, XR_E_INVAL, "the rank is not known: say it");
	cr_expect_eq(join(2, -1), XR_OK);
	cr_expect_eq(met.rank, 2);
	group.store = NULL;
	refused(3, 3, XR_E_RANGE, "rank 3 of 3");
	expect_steps("fault open free");
	store_says_size = -1;
	refused(2, -1, XR_E_INVAL, "the size is not known: say it");
	cr_expect_eq(join(0, 1), XR_OK, "%s", err.text);
	cr_expect_eq(met.rank, 0);
	cr_expect_eq(met.size, 1);
	cr_expect_eq(opened_with.rank, 0);
	cr_expect_eq(opened_with.world_size, 1);
	group.store = NULL;
	refused(32767, 32767, XR_E_RANGE, "rank 32767 of 32767");
	refused(32768, 40000, XR_E_RANGE, "rank 32768: the last is 32767");
}

Test(init, the_store_is_opened_with_what_is_said)
{
	cr_expect_eq(join(-1, -1), XR_OK);
	cr_expect_str_eq(opened_at, "control:");
	cr_expect_eq(opened_with.rank, XR_STORE_UNSAID);
	cr_expect_eq(opened_with.world_size, XR_STORE_UNSAID);
	cr_expect_eq(opened_with.timeout, XR_SECONDS(50));
	cr_expect_not(opened_with.dynamic);
	group.store = NULL;
	cr_expect_eq(join(1, 3), XR_OK);
	cr_expect_eq(opened_with.rank, 1);
	cr_expect_eq(opened_with.world_size, 3);
}

/* agrees() - with these variables, of rank 1 of 3. */
static bool
agrees(const char *address, const char *rank, const char *size)
{
	bool is;

	opts.init_method = address;
	is = join(1, 3) == XR_OK;
	group.store = NULL;
	if (!is)
		cr_expect_str_eq(steps, "fault");
	(void)rank;
	(void)size;
	return is;
}

static void
set(const char *rank_name, const char *rank, const char *size_name,
	const char *size)
{
	setenv(rank_name, rank, 1);
	setenv(size_name, size, 1);
}

/* xrun's are those of its own store, and torch's those of others. */
Test(init, arguments_do_not_differ_from_the_variables)
{
	set("XRUN_RANK", "1", "XRUN_SIZE", "3");
	set("RANK", "7", "WORLD_SIZE", "9");
	cr_expect(agrees("control:", "1", "3"));
	cr_expect_not(agrees("env://", "1", "3"));
	cr_expect_str_eq(err.text, "the rank is 1 here, and 7 in the group");
	setenv("RANK", "1", 1);
	cr_expect_not(agrees("env://", "1", "3"));
	cr_expect_str_eq(err.text, "the size is 3 here, and 9 in the group");
	/* Addresses that say the rank do not look at them. */
	cr_expect(agrees("tcp://h:1?rank=1", "1", "3"));
	cr_expect(agrees("file:///tmp/x", "1", "3"));
	setenv("XRUN_STORE", "control:", 1);
	cr_expect(agrees("env://", "1", "3"));
	setenv("XRUN_RANK", "0", 1);
	cr_expect_not(agrees("env://", "1", "3"));
	cr_expect_str_eq(err.text, "the rank is 1 here, and 0 in the group");
	cr_expect_not(agrees("control:", "1", "3"));
	set("XRUN_RANK", "1", "XRUN_SIZE", "2");
	cr_expect_not(agrees("control:", "1", "3"));
	cr_expect_str_eq(err.text, "the size is 3 here, and 2 in the group");
	/* What is no number is none. */
	set("XRUN_RANK", "one", "XRUN_SIZE", "-2");
	cr_expect(agrees("control:", "1", "3"));
	set("XRUN_RANK", "", "XRUN_SIZE", "2147483648");
	cr_expect(agrees("control:", "1", "3"));
	setenv("XRUN_SIZE", "2147483647", 1);
	cr_expect_not(agrees("control:", "1", "3"));
	/* Nor is what the call does not say compared. */
	set("XRUN_RANK", "7", "XRUN_SIZE", "9");
	cr_expect_eq(join(-1, -1), XR_OK);
}

/* --- stores without authentication ---------------------------------------------------------------------------- */

#define OPEN_STORE \
	"a store with auth=none would let every process that reaches its port call functions here\tleave auth=none out, or set XRUN_RPC_UNAUTHENTICATED=1"

Test(init, a_store_that_anybody_can_reach_is_refused)
{
	is_open = true;
	for (int64_t size = -1; size <= 0; size++) {
		unsetenv("XRUN_RPC_UNAUTHENTICATED");
		refused(-1, size, XR_E_AUTH, OPEN_STORE);
		expect_steps("fault open free");
		setenv("XRUN_RPC_UNAUTHENTICATED", "0", 1);
		refused(-1, size, XR_E_AUTH, OPEN_STORE);
		setenv("XRUN_RPC_UNAUTHENTICATED", "1", 1);
		cr_expect_eq(join(-1, size), XR_OK);
		group.store = NULL;
	}
}

/* --- groups whose members come and go ------------------------------------------------------------------------- */

Test(init, a_member_of_a_group_that_changes_joins_by_its_list)
{
	int64_t now = clock_now();

	cr_assert_eq(join(5, 0), XR_OK, "%s", err.text);
	expect_steps("fault open dynamic join");
	cr_expect_eq(group.store, STORE);
	cr_expect_eq(me.id, 5);
	cr_expect_eq(me.said_size, 0);
	cr_expect_str_eq(my_name, "self");
	cr_expect_geq(begun_until, now + XR_SECONDS(50));
	cr_expect(opened_with.dynamic);
	cr_expect_eq(opened_with.rank, XR_STORE_UNSAID);
	cr_expect_eq(opened_with.timeout, XR_SECONDS(50));
	group.store = NULL;
	cr_assert_eq(join(-1, 0), XR_OK, "%s", err.text);
	cr_expect_eq(me.id, 1);
	group.store = NULL;
	cr_assert_eq(join(0, 0), XR_OK, "%s", err.text);
	cr_expect_eq(me.id, 0);
	group.store = NULL;
	/* An address with a place for the rank has it. */
	opts.init_method = "tcp://h:1";
	cr_assert_eq(join(5, 0), XR_OK, "%s", err.text);
	cr_expect_eq(opened_with.rank, 5);
	group.store = NULL;
	opts.init_method = "file:///x";
	cr_assert_eq(join(-1, 0), XR_OK, "%s", err.text);
	cr_expect_eq(opened_with.rank, XR_STORE_UNSAID);
	group.store = NULL;
	store_says_rank = -1;
	refused(-1, 0, XR_E_INVAL, "the rank is not known: say it");
	cr_expect_eq(join(32767, 0), XR_OK);
	group.store = NULL;
	refused(32768, 0, XR_E_RANGE, "rank 32768: the last is 32767");
	expect_steps("fault open free");
}

Test(init, a_step_that_fails_ends_the_joining_of_a_group_that_changes)
{
	static const char *const row[][2] = {
		{ "open", "fault open free" },
		{ "dynamic", "fault open dynamic free" },
		{ "join", "fault open dynamic join free" },
	};
	char words[64];

	fails_with = XR_E_CANCELLED;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fails = row[i][0];
		snprintf(words, sizeof(words), "%s failed", fails);
		refused(1, 0, XR_E_CANCELLED, words);
		expect_steps(row[i][1]);
	}
}

/* --- what is refused at once -------------------------------------------------------------------------------------- */

Test(init, what_is_wrong_is_refused_at_once)
{
	refused(-2, 1, XR_E_INVAL, "rank -2, size 1");
	refused(0, -2, XR_E_INVAL, "rank 0, size -2");
	opts.rref_flags = 4;
	refused(0, 1, XR_E_INVAL, "rref_flags: 0x4 has unknown ones");
	opts.rref_flags = XR_RREF_ACK_ON_DONE | 4;
	refused(0, 1, XR_E_INVAL, "rref_flags: 0x5 has unknown ones");
	opts.rref_flags = 0;
	expect_steps("");
	state = AGENT_RUNS;
	refused(0, 1, XR_E_STATE, "an agent runs in this process already");
	expect_steps("");
	state = AGENT_NONE;
	cr_assert_eq(xr_rpc_init("self", -1, -1, NULL, &err), XR_OK, "%s",
		err.text);
	cr_expect_str_eq(opened_at, XR_INIT_METHOD_DEFAULT);
	cr_expect_eq(opened_with.timeout, XR_RPC_TIMEOUT_DEFAULT);
}

Test(init, a_forked_process_cannot_join)
{
	int status = -1;
	pid_t pid;

	inside_open();
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		alarm(20);
		_exit(join(-1, -1) == XR_E_STATE && steps[0] == '\0' &&
					strcmp(err.text,
						"this process was forked: the agent is its parent's") ==
						0 ?
				7 :
				1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 7);
	inside_close();
}
