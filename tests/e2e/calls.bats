#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# calls.bats - calls between ranks, by the acceptance checks.
#
# Takes long, so it begins early.

load helper

setup()
{
	private_place
	CALLS=$BUILD/tests/prog/rpc_calls
}

# runs CASE RANKS - by shared memory, and by TCP.
runs()
{
	both_ways "$CALLS" "$1" "$2"
}

# dies CASE - of two ranks, the second dies, and the first has no fault.
dies()
{
	job --on-failure continue -n 2 "$CALLS" "$@"
	[ "$status" -ne 0 ]
	refute_has "$stderr" 'rank 0: line'
}

@test "AC-R1 AC-R2 the next worker, by name, id and what was found" {
	runs next 3
	for r in 0 1 2; do
		assert_has "$output" "rank $r: worker$r \($r\) knows no worker 4"
	done
}

@test "AC-R6 chains of calls that nobody waits for are over when all leave" {
	for _ in 1 2 3 4 5; do
		runs chains 4
		for out in "$by_shm" "$output"; do
			[ "$(awk '/descents/ { n += $NF } END { print n }' <<<"$out")" -eq 84 ]
		done
		[ -z "$stderr" ]
	done
}

@test "AC-R14 whoever waits for one that is killed is told at once who it was" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		dies killed $how
		for line in 'the one' 'the other' later; do
			assert_has "$output" "$line: .*lost worker1 \(1\)"
		done
	done
}

@test "AC-A18 all wait for a call that is answered later" {
	runs graceful 3
	assert_has "$by_shm" 'answered with 7'
	assert_has "$output" 'answered with 7'
}

@test "AC-A19 three trainers have the same average, ten times" {
	runs train 4
	[ "$(grep -c weight <<<"$output")" -eq 3 ]
	[ "$(grep -o 'weight .*' <<<"$by_shm"$'\n'"$output" | sort -u | wc -l)" -eq 1 ]
}

@test "AC-A20 whoever asked is gone when he could be answered" {
	for how in '' tcp; do
		# shellcheck disable=SC2086
		dies gone $how
		assert_has "$output" 'nobody was there'
	done
}

@test "AC-R21 agents with nothing to do take no time" {
	job -n 8 "$CALLS" idle
	[ "$status" -eq 0 ]
	[ "$(grep -c 'idle' <<<"$output")" -eq 8 ]
	[ "$(awk '/idle/ { n += $(NF - 1) } END { print n }' <<<"$output")" -lt 100000 ]
}

# bats test_tags=sanitize
@test "what a call gave outlives the agent" {
	runs outlive 2
	for r in 0 1; do
		assert_has "$by_shm" "rank $r: it is still there"
		assert_has "$output" "rank $r: it is still there"
	done
}

# bats test_tags=sanitize,keep
@test "sixty-four threads of each call and cancel, and each call ends once" {
	runs storm 2
	[ "$(grep -c 'each ended once' <<<"$by_shm"$'\n'"$output")" -eq 4 ]
}

unruly()
{
	job -n 2 "$BUILD/tests/prog/rpc_unruly" "$1"
	[ "$status" -eq 0 ]
	by_shm=$output
	job -n 2 "$BUILD/tests/prog/rpc_unruly" "$1" tcp
	[ "$status" -eq 0 ]
}

# bats test_tags=sanitize
@test "a function that ends its thread fails, and its process goes on" {
	mkfifo gate
	export GATE=$PWD/gate
	unruly thread
	for out in "$by_shm" "$output"; do
		assert_has "$out" 'ends on worker1 \(1\): XR_E_STATE: it has ended its thread'
		assert_has "$out" 'a callback has ended its thread'
	done
}

@test "an answer that could not be made is no value, and is told so" {
	unruly null
	assert_has "$by_shm" 'nothing answered with NULL'
	[ "$(grep -c 'nothing answered with NULL' <<<"$output")" -eq 2 ]
}

@test "a function that keeps its process from leaving is named" {
	local job

	mkfifo gate
	GATE=$PWD/gate "$XRUN" --no-logs -n 2 "$BUILD/tests/prog/rpc_unruly" stay 2>err >out 3>&- &
	job=$!
	await_line err 'worker1 \(1\) cannot leave: these functions have not returned: stays, called by worker0 \(0\)' 20
	echo >gate
	wait "$job"
}

@test "calls that nobody answers wait for room at a rank that is stopped" {
	unruly stopped
	assert_has "$by_shm" 'worker1 \(1\) takes nothing more'
	assert_has "$output" 'worker1 \(1\) takes nothing more'
}

# bats test_tags=sanitize
@test "a caller sleeps while a stopped rank has no room, and XR_E_TIMEOUT is returned" {
	unruly room
	for out in "$by_shm" "$output"; do
		[ "$(grep -c 'worker1 (1) takes nothing more' <<<"$out")" -eq 3 ]
	done
}

@test "a rank that is stopped before it is called is not lost, by either transport" {
	for how in '' tcp; do
		rm -f pid
		# shellcheck disable=SC2086
		PIDFILE=$PWD/pid job -n 2 "$BUILD/tests/prog/rpc_unruly" frozen $how
		[ "$status" -eq 0 ]
		assert_has "$output" 'it was not lost'
	done
}

@test "a rank that is stopped for 12 s with messages under way to it by TCP is not lost" {
	job -n 2 "$BUILD/tests/prog/rpc_unruly" frozen-later tcp
	[ "$status" -eq 0 ]
	assert_has "$output" 'it was not lost'
}

@test "who comes to a meeting when the others have gone hears that it was late" {
	unruly late
	for out in "$by_shm" "$output"; do
		[ "$(grep -c 'these did not come in time: worker1' <<<"$out")" -eq 2 ]
	done
}
