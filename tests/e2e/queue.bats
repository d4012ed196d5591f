#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# queue.bats - queues, by the acceptance checks, and what the originals got wrong.

load helper

setup()
{
	private_place
	QUEUE=$BUILD/tests/prog/queue
}

teardown()
{
	nothing_left
}

# runs CASE... - each ends with 0.
runs()
{
	local name

	for name in "$@"; do
		try timeout 60 "$QUEUE" "$name"
		# shellcheck disable=SC2154 # of try
		assert_eq "$name: $status: $stderr" "$name: 0: "
	done
}

# queue_kill ARG... - the campaign of that name.
queue_kill()
{
	try timeout 100 "$BUILD/tests/fault/fault_queuekill" "$@"
	assert_eq "$*: $status: $stderr" "$*: 0: "
}

@test "AC-U1 what four put four get, each once and in its order" {
	runs all-once all-sizes few-cells one-cell
}

@test "items of one to one are got in their order" {
	runs p2p-once p2p-sizes
}

@test "AC-U2 of an empty queue nothing is got, at once or in time" {
	runs empty-now
}

@test "AC-U3 D-U1 who waits for ever keeps nobody from being late" {
	runs late-beside
}

# bats test_tags=sanitize,keep
@test "AC-U4 D-U2 who is killed at any moment is in nobody's way" {
	queue_kill --rounds 60 any
	queue_kill --rounds 30 p2p
	runs half-put half-got
}

@test "an item of one who is killed is got again, where that was asked for" {
	queue_kill --rounds 30 redeliver
	runs again-with-reader
}

@test "what one who is killed has got is lost with it" {
	runs lost-with-reader
}

@test "AC-U5 D-U3 when the last writer has ended, and all was got, it is closed" {
	runs last-writer last-writer-killed
}

# bats test_tags=sanitize,keep
@test "AC-U6 D-U4 an item that was half put by one who was killed is not there" {
	runs half-put half-got
}

@test "AC-U7 D-U5 D-U7 a full queue is as it was when a put is late" {
	runs full
}

@test "AC-U8 100 MiB pass a queue of one" {
	runs hundred-mib
}

@test "AC-U9 all who wait wake up when it is closed" {
	runs close-wakes
}

# bats test_tags=sanitize,keep
@test "what is put while another closes it is got, or was not put" {
	try timeout 60 "$BUILD/tests/fault/fault_queueplay" --closes --rounds 200
	assert_eq "$status $stderr" '0 '
}

@test "AC-U10 D-U6 one flooded lane of eight keeps none of the others waiting" {
	runs flooded lanes
}

@test "AC-U11 who waits uses no processor" {
	runs idle
}

@test "AC-U12 what a reader writes to a shared tensor its writer sees" {
	runs shared shared-by-the-dead
}

@test "AC-U13 a queue can be polled" {
	runs pollable
}

@test "AC-U14 it says how long an item takes there and back" {
	try timeout 60 "$QUEUE" latency
	assert_eq "$status: $stderr" '0: '
	[[ $output =~ ^'one way: median '[0-9]+' ns' ]]
}

@test "D-U8 one handle that is freed takes nothing from others" {
	runs handed lanes-freed
}

@test "an end of one to one has one process at a time" {
	runs one-reader
}

@test "values, bytes, and what does not fit" {
	runs values room roles
}

@test "who is woken for what he cannot have wakes another" {
	runs too-small no-memory
}

@test "threads of a process" {
	runs threads
}

# bats test_tags=sanitize
@test "ranks find a queue by its name" {
	job -n 3 "$QUEUE" ranks
	[ "$status" -eq 0 ]
	[[ $output == *'2000 items of 2 ranks'* ]]
}
