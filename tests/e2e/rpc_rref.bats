#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# rpc_rref.bats - references to values that stay with their owners. What ranks do
# is told in tests/rref. Most of it is done twice: over shared memory by a
# program that is linked with libxrun, and over TCP by one that holds its objects.

bats_require_minimum_version 1.5.0

load helper

setup()
{
	private_place
}

# ranks N SCENE... - they all go well, in both programs.
ranks()
{
	local program

	for program in rref rref_inside; do
		job -n "$1" "$BUILD/tests/rref/$program" "${@:2}"
		well "${@:2}"
	done
}

# inside N SCENE... - the same of scenes that are in the way of messages.
inside()
{
	job -n "$1" "$BUILD/tests/rref/rref_inside" "${@:2}"
	well "${@:2}"
}

well()
{
	[ "$status" -eq 0 ] || {
		printf '%s\n%s\n' "$output" "$stderr" >&2
		return 1
	}
	for scene in "$@"; do
		assert_has "$output" "^(\[0\] )?$scene: well$"
	done
}

# killed SCENE TEXT - rank 1 is killed, and rank 0 says the text.
killed()
{
	local program

	for program in rref rref_inside; do
		job --on-failure continue -n 2 "$BUILD/tests/rref/$program" "$1"
		assert_eq "$status" 137
		assert_has "$output" "$2"
		refute_has "$stderr" 'rank 0:'
	done
}

@test "AC-Q1 what remote calls of the next and of oneself make is fetched" {
	ranks 1 fetch
	ranks 3 fetch
}

@test "AC-Q2 a user has no local value: the error names both workers" {
	ranks 2 local-on-user local
}

@test "AC-Q3 a local reference is in the owner's table while it is shared" {
	ranks 2 local-shared
}

@test "AC-Q4 two of remote calls are two in the owner's table, and released none" {
	ranks 2 two
}

@test "AC-Q5 shared with the owner, a third, and by the owner; then all tables are empty" {
	ranks 3 share
}

@test "AC-Q6 a chain of eight forwards gives the value" {
	ranks 3 chain
	ranks 2 chain
}

@test "AC-Q7 a function that is given another's reference sees it confirmed" {
	ranks 3 confirmed
}

@test "AC-Q8 the first three sends of each message fail, and nothing is lost" {
	inside 3 share-failing
}

# faulty FAULTS SCENE... - the scenes go well though these messages fail. xrun keeps
# the variable to itself.
faulty()
{
	job -n 3 env XRUN_FAULT="$1" "$BUILD/tests/rref/rref" "${@:2}"
	well "${@:2}"
}

# bats test_tags=sanitize,keep
@test "AC-P8 references live through three failures of each message, and through others" {
	local kind faults=''

	for kind in CONFIRM FORK_REQUEST CHILD_ACCEPT USER_DELETE; do
		faults+=",fail:RREF_$kind:3"
	done
	faults=${faults#,}
	faulty "$faults" share chain two
	faulty "${faults//fail/dup}" share chain
	faulty reorder:RREF_CONFIRM,reorder:RREF_USER_DELETE share chain
	# It is asked for what is to fail.
	job -n 2 env XRUN_FAULT=fail:RREF_NOTHING "$BUILD/tests/rref/rref" two
	[ "$status" -ne 0 ]
}

# bats test_tags=sanitize,keep
@test "AC-Q9 messages come in any order, and twice" {
	inside 3 share-mixed
}

@test "AC-Q10 a parent that is released at once leaves its child its value" {
	ranks 3 parent-first
}

@test "AC-Q11 a child ends before the owner has heard of its parent" {
	inside 4 child-first
}

@test "AC-Q12 a function that fails is what fetching gives, each time" {
	ranks 2 fails
}

@test "AC-Q13 a call that never comes is what fetching and sharing give" {
	inside 3 never-made
}

@test "D-Q5 who fetches already hears that the call failed" {
	inside 3 never-made
	RREF_LATE=1 ranks 3 limit
}

@test "AC-Q14 a fetch that takes too long leaves the reference as it was" {
	ranks 2 slow
}

@test "AC-Q15 D-Q4 so does the owner's own" {
	ranks 2 slow-here
}

@test "AC-Q16 methods of objects: of an instance, static, missing, three times" {
	ranks 2 methods
}

@test "AC-Q17 D-Q3 a method that takes too long spoils no later one" {
	ranks 2 slow-method
}

@test "AC-Q18 D-Q2 a user that is killed has no handles any more" {
	killed user-killed 'its handle is gone'
}

@test "AC-Q19 D-Q6 after leaving, references are closed, in the next life, too" {
	job -n 3 "$BUILD/tests/rref/rref" closed
	assert_eq "$status" 0
	assert_has "$output" closed
	job -n 3 "$BUILD/tests/rref/rref_inside" closed
	assert_eq "$status" 0
	assert_has "$output" closed
}

@test "AC-Q20 what leaked is told by default, and an error where it is asked for" {
	job -n 2 "$BUILD/tests/rref/rref" leak
	assert_eq "$status" 0
	assert_has "$stderr" 'worker0: 1 references were not released: \(0, 0\) by fork \(0, 1\)'
	job -n 2 "$BUILD/tests/rref/rref" leak-strict
	assert_eq "$status" 0
	assert_has "$output" 'leaked \(0, 0\) by fork \(0, 1\)'
}

@test "AC-Q21 twenty references to pairs of references" {
	ranks 3 pairs
}

@test "AC-Q22 D-Q1 a remote call whose callee is killed fails at once, and delays no leaving" {
	killed owner-killed 'it left at once'
}

@test "AC-Q23 D-Q8 a reference is confirmed while its function runs, or later on request" {
	ranks 2 confirmed-early
	RREF_LATE=1 ranks 2 confirmed-early
	# The owner cannot send the confirmation at once: a reply arrives before it.
	faulty fail:RREF_CONFIRM:3 confirmed-early
}

@test "AC-Q24 references come and go, ids are never used again, and memory stays" {
	unsanitized "memory that was freed is kept for a while"
	job -n 4 "$BUILD/tests/rref/rref" many
	well many
}

# bats test_tags=sanitize
@test "D-Q7 a fetch of what nobody makes leaves nothing at the owner" {
	inside 3 unknown never-made
}

@test "what is told while it is looked for keeps nobody from leaving" {
	inside 2 told-last
}

@test "a reference that comes when its owner is known to be lost is not waited for" {
	job --on-failure continue -n 2 "$BUILD/tests/rref/rref_inside" taken-dead
	assert_eq "$status" 137
	assert_has "$output" 'it failed at once'
	assert_eq "$(grep -c 'rank 0:' <<<"$stderr")" 0
}

# bats test_tags=sanitize
@test "ids begin at 0, two a remote call, and stand in its text" {
	ranks 2 ids
}

@test "AC-A5 AC-A6 remote calls of functions that answer later" {
	ranks 3 later
}

@test "AC-A16 a method that answers later, called in all three ways" {
	ranks 3 later-method
}

# bats test_tags=sanitize
@test "a reference is nothing outside of a call" {
	ranks 2 outside
}

@test "a remote call's limit is of the owner's word, or of the function on request" {
	ranks 3 limit
	RREF_LATE=1 ranks 3 limit
}

@test "trainers share parameters that rank 0 has" {
	job -n 4 "$BUILD/examples/rpc_params"
	assert_eq "$status" 0
	assert_has "$output" 'after 10 rounds of 3 trainers: 30\.0 30\.0 30\.0'
}
