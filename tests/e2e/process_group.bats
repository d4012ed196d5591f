#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# process_group.bats - the backend process_group: what holds of calls and of joining
# with the default one holds with it, and what it has not is refused.

load helper

setup()
{
	private_place
	export TEST_BACKEND=process_group
	WAY=$PROG/rpc_way
	[ -x "$WAY" ] || skip 'the programs of tests are not built'
}

# by_both RANKS PROGRAM ARG... - by shared memory, and by TCP.
by_both()
{
	job --report report -n "$1" "${@:2}"
	[ "$status" -eq 0 ]
	ranks_exited_0 "$1"
	by_shm=$output
	job --report report -n "$1" "${@:2}" tcp
	[ "$status" -eq 0 ]
	ranks_exited_0 "$1"
}

# both PATTERN COUNT - so many lines of each say that.
both()
{
	[ "$(grep -cE "$1" <<<"$by_shm")" -eq "$2" ]
	[ "$(grep -cE "$1" <<<"$output")" -eq "$2" ]
}

# units NAME LEAST - at least so many tests of that program ran, and all passed.
units()
{
	[ -x "$BUILD/tests/unit/test_$1" ] || skip 'criterion is not installed'
	try "$BUILD/tests/unit/test_$1"
	[ "$status" -eq 0 ] || printf '%s\n' "$stderr" >&2
	[ "$status" -eq 0 ]
	[ "$(sed -n 's/.*Tested: \([0-9]*\) .*/\1/p' <<<"$stderr")" -ge "$2" ]
}

# --- what holds of every backend ---------------------------------------------

@test "AC-R1 to AC-R23 of one process with process_group: test_call" {
	units call 25
}

@test "functions that answer late with process_group: test_call_late" {
	units call_late 23
}

@test "AC-B2 AC-B7 AC-B15 AC-B18 AC-M1 to AC-M10 with process_group: test_group" {
	units group 15
}

@test "AC-B6 AC-B8 AC-B19 with process_group: test_worker_join" {
	units worker_join 5
}

@test "AC-R1 AC-R2 AC-R6 the next worker, and chains of calls, with process_group" {
	by_both 3 "$PROG/rpc_calls" next
	both 'worker(.) \(\1\) knows no worker 4' 3
	by_both 4 "$PROG/rpc_calls" chains
	[ -z "$stderr" ]
}

@test "AC-R14 a rank that is killed is named at once, with process_group" {
	local how line

	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		job --on-failure continue -n 2 "$PROG/rpc_calls" killed $how
		for line in 'the one' 'the other' later; do
			assert_has "$output" "$line: .*lost worker1 \(1\)"
		done
		# shellcheck disable=SC2086
		job --on-failure continue -n 2 "$PROG/rpc_calls" gone $how
		assert_has "$output" 'nobody was there'
	done
}

# tries RANKS SCENARIO... - rank 0 finds that each holds, by both transports.
tries()
{
	local transport scenario

	for transport in shm tcp; do
		for scenario in "${@:2}"; do
			job -n "$1" "$PROG/rpc_prof" --backend process_group \
				--transport "$transport" "$scenario"
			assert_has "$output" "$scenario holds"
			[ "$status" -eq 0 ]
		done
	done
}

@test "AC-R18 AC-R19 figures and profiles are those of calls, with process_group" {
	tries 2 metrics bytes
	tries 3 quiet record
}

@test "AC-R21 agents with nothing to do take no time, with process_group" {
	job -n 8 "$PROG/rpc_calls" idle
	[ "$status" -eq 0 ]
	[ "$(grep -c 'idle' <<<"$output")" -eq 8 ]
	[ "$(awk '/idle/ { n += $(NF - 1) } END { print n }' <<<"$output")" -lt 100000 ]
}

# bats test_tags=sanitize
@test "AC-B17 sixty-four ranks with one thread each join, with process_group" {
	job -n 64 "$PROG/rpc_group" --threads 1
	[ "$status" -eq 0 ]
	[ "$(grep -c 'all of 64$' <<<"$output")" -eq 64 ]
}

@test "storms of calls, graceful leaving, values that outlive, with process_group" {
	by_both 2 "$PROG/rpc_calls" storm
	both 'each ended once' 2
	by_both 3 "$PROG/rpc_calls" graceful
	both 'answered with 7' 1
	by_both 2 "$PROG/rpc_calls" outlive
}

@test "memory is lent and taken back, with process_group" {
	local transport

	for transport in shm tcp; do
		job -n 2 "$PROG/rpc_lend" --transport "$transport"
		[ "$status" -eq 0 ]
		assert_has "$output" 'whole [1-4], torn 0$'
	done
}

# bats test_tags=sanitize,keep
@test "bytes and values of any length come back as they were sent, with process_group" {
	local bytes how

	for bytes in 0 8 41 489 2048 8193 65536 1048576; do
		for how in '' --values; do
			# shellcheck disable=SC2086 # none, or one word
			job -n 2 "$BUILD/tests/bench/rpcecho" --bytes "$bytes" --calls 50 $how
			[ "$status" -eq 0 ]
			assert_has "$output" "\"bytes\":$bytes,"
		done
	done
}

# By shared memory the program, by TCP the one that is in the way of messages.
@test "references live and end, with process_group" {
	local program scene

	for program in rref rref_inside; do
		job -n 3 "$BUILD/tests/rref/$program" fetch share chain confirmed pairs
		[ "$status" -eq 0 ]
		for scene in fetch share chain confirmed pairs; do
			assert_has "$output" "$scene: well$"
		done
	done
	job -n 3 "$BUILD/tests/rref/rref_inside" share-failing share-mixed
	[ "$status" -eq 0 ]
	job --on-failure continue -n 2 "$BUILD/tests/rref/rref" user-killed
	assert_has "$output" 'its handle is gone'
}

# bats test_tags=sanitize
@test "groups of ranks and of names stand on process_group" {
	by_both 3 "$PROG/coll" send
	by_both 3 "$PROG/group" world
	by_both 3 "$PROG/group" calls-only
}

# --- what is its own ----------------------------------------------------------

@test "AC-B19 two ranks join 201 times over a group, and nothing is left" {
	by_both 2 "$WAY" cycles
	both 'joined 201 times' 2
}

@test "one of three is lost: calls of it fail and name it, all others go on" {
	local how

	for how in '' tcp; do
		# shellcheck disable=SC2086
		job --on-failure continue -n 3 "$WAY" lost $how
		[ "$(grep -c 'lost worker2 (2): ' <<<"$output")" -eq 2 ]
		refute_has "$stderr" 'rank [01]: line'
	done
}

@test "B20 calls over a group and operations of groups, in either order" {
	by_both 3 "$WAY" either
	both 'in either order' 3
}

@test "B28 device maps and groups that change are refused before anything is done" {
	job -n 1 "$WAY" refused
	[ "$status" -eq 0 ]
	assert_has "$output" 'a device map to two: the backend process_group has no device maps'
	assert_has "$output" 'devices: 3: the backend process_group has no accelerators'
	assert_has "$output" 'world_size 0: the backend process_group has no groups'
}

@test "all ranks have process_group, or none: whoever differs is named to all" {
	by_both 3 "$WAY" mixed
	both 'worker0 \(0\) has the backend process_group, and worker2 \(2\) has not' 3
}

@test "num_send_recv_threads is how many threads run functions, four by default" {
	job -n 2 "$WAY" threads
	[ "$status" -eq 0 ]
	[ "$(grep -c 'threads 4, 9 that all say, 2 of its own option' <<<"$output")" -eq 2 ]
}
