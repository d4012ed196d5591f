#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# queue_far.bats - queues of another machine: the programs of queue.bats, with the same
# results, and what is only there.
#
# Takes long, so it begins early.

load helper

setup()
{
	private_place
	QUEUE=$BUILD/tests/prog/queue
	need_pids -fp --mount-proc
}

teardown()
{
	no_machines
	nothing_left
}

# elsewhere COMMAND... - where each queue is that of a process elsewhere.
elsewhere()
{
	rm -f store*
	QUEUE_FAR=file://$PWD/store try timeout 100 "$@"
}

# as_here CASE... - each says there what it says here.
as_here()
{
	local name here

	for name in "$@"; do
		try timeout 60 "$QUEUE" "$name"
		# shellcheck disable=SC2154 # of try
		here="$name: $status: $output: $stderr"
		elsewhere "$QUEUE" "$name"
		assert_eq "$name: $status: $output: $stderr" "$here"
	done
}

# runs CASE... - each ends with 0 there.
runs()
{
	local name

	for name in "$@"; do
		elsewhere "$QUEUE" "$name"
		assert_eq "$name: $status: $stderr" "$name: 0: "
	done
}

@test "AC-U1 elsewhere: what four put four get, each once and in its order" {
	as_here all-once all-sizes few-cells one-cell
}

@test "elsewhere: items of one to one are got in their order" {
	as_here p2p-once p2p-sizes
}

@test "AC-U2 AC-U3 AC-U7 elsewhere: a time is over when it is over" {
	as_here empty-now late-beside full
}

@test "AC-U4 elsewhere: who is killed at any moment is in nobody's way" {
	for kind in any p2p redeliver; do
		elsewhere "$BUILD/tests/fault/fault_queuekill" --rounds 12 "$kind"
		assert_eq "$kind: $status: $stderr" "$kind: 0: "
	done
	as_here half-put half-got lost-with-reader again-with-reader
}

@test "AC-U5 AC-U9 elsewhere: who is the last writer, and who closes" {
	as_here last-writer last-writer-killed close-wakes
}

@test "AC-U8 elsewhere: 100 MiB pass a queue of one" {
	runs hundred-mib
	assert_eq "$output" ''
}

# bats test_tags=sanitize
@test "AC-U10 elsewhere: lanes" {
	as_here flooded lanes lanes-freed
}

@test "AC-U11 elsewhere: who waits uses no processor" {
	runs idle
}

@test "AC-U13 elsewhere: a queue can be polled" {
	as_here pollable
}

@test "elsewhere: an end of one to one has one process at a time, which is named" {
	runs one-reader
	assert_has "$output" '^worker child[0-9]+ has this end of the queue already'
}

@test "elsewhere: values, bytes, threads, and what does not fit" {
	as_here values room roles threads too-small no-memory
}

# bats test_tags=sanitize
@test "whose server is killed is told so at once, and who that was" {
	runs server-killed
	assert_has "$output" '^lost server '
}

@test "what comes too late is the next one's, or another's" {
	runs server-stopped
}

# bats test_tags=sanitize
@test "D-U5 a put to one who says nothing is late in time, and not put" {
	runs server-takes-nothing many-in-time late-is-over
}

@test "a long put whose bytes are slow succeeds, without waiting for room" {
	runs long-put-is-slow
}

@test "a long get whose bytes are slow succeeds, with timeout 0 and with 20 ms" {
	runs long-get-is-slow
}

# bats test_tags=sanitize
@test "times that are over as an item comes: none is lost, none is there twice" {
	runs late-race stopped-race
}

# bats test_tags=sanitize
@test "what was put by reference is a copy elsewhere" {
	runs by-reference
}

@test "without an agent both sides say what is to be done" {
	runs no-agent
	assert_has "$output" 'xr_rpc_init\(\) comes before xr_queue_text'
	assert_has "$output" 'on another machine: xr_rpc_init\(\) comes first'
}

# bats test_tags=sanitize
@test "between two networks a queue is what it is on one machine" {
	local port=29513

	two_machines
	# One that has just ended may have its port yet.
	for name in all-sizes p2p-sizes last-writer close-wakes pollable full values; do
		port=$((port + 1))
		QUEUE_FAR=tcp://10.77.31.1:$port QUEUE_FAR_NET=/run/netns/$apart-0 \
			try ip netns exec "$apart-1" timeout 100 "$QUEUE" "$name"
		assert_eq "$name: $status: $stderr" "$name: 0: "
	done
	QUEUE_FAR=tcp://10.77.31.1:29513 QUEUE_FAR_NET=/run/netns/$apart-0 \
		try ip netns exec "$apart-1" timeout 100 "$BUILD/tests/fault/fault_queuekill" --rounds 8 any
	assert_eq "$status: $stderr" '0: '
}
