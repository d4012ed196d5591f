#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# world.bats - worlds beside each other, and worlds that lose ranks.

load helper

setup()
{
	private_place
	WORLD=$BUILD/tests/prog/world
	wrapped=()
}

# two_jobs CASE CASE RANKS [tcp] - two jobs at once, which meet; what they say is in
# one.out and two.out.
two_jobs()
{
	local one

	rm -f mine other
	mkfifo mine other
	spawn one timeout 60 "$XRUN" -n "$3" "${wrapped[@]}" "$WORLD" "$1" 1 mine other ${4:+"$4"}
	one=$pid
	spawn two timeout 60 "$XRUN" -n "$3" "${wrapped[@]}" "$WORLD" "$2" 2 other mine ${4:+"$4"}
	wait "$one"
	wait "$pid"
}

@test "AC-W7 two worlds of two jobs on one host, where all names are the same" {
	for how in '' tcp; do
		two_jobs together together 3 $how
		assert_eq "$(grep -c 'job 1: rank . heard of its own only' one.out)" 3
		assert_eq "$(grep -c 'job 2: rank . heard of its own only' two.out)" 3
	done
}

# bats test_tags=sanitize
@test "AC-W7 a worker of another job, who is called by mistake, is not called" {
	wrapped=(env) # so that they come together in the store, which has their addresses
	two_jobs found stray 2 tcp
	assert_eq "$(grep -c 'job 1: rank . was not called' one.out)" 2
	assert_has "$(cat two.out)" 'lost rank1 .*it could not prove to be of this job'
}

@test "AC-W8 keys are found, taken and given up when rank 0 was killed" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		job --on-failure continue -n 3 "$WORLD" headless $how
		assert_eq "$(grep -c 'rank [12]: a barrier of group all: lost rank0 ' <<<"$output")" 2
		assert_eq "$(grep -c 'rank [12]: keys without rank 0' <<<"$output")" 2
	done
}

@test "AC-W8 where rank 0 had the store, too, all are told at once" {
	local r pids=()

	export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT
	# shellcheck disable=SC2016 # the rank's shell
	job --port-hold always -n 1 sh -c 'echo "$MASTER_PORT"'
	MASTER_PORT=$output
	for r in 0 1 2; do
		RANK=$r timeout 60 "$WORLD" storeless >"out.$r" 2>&1 3>&- &
		pids+=($!)
	done
	r=0
	wait "${pids[0]}" || r=$?
	assert_eq "$r" 137
	wait "${pids[1]}"
	wait "${pids[2]}"
	assert_eq "$(grep -hc 'told at once' out.1 out.2 | xargs)" '1 1'
}

# bats test_tags=sanitize
@test "who died at a barrier has not come to it: nobody waits for those who know" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		job --on-failure continue -n 3 "$WORLD" withdrawn $how
		assert_eq "$status" 137
		assert_has "$output" 'rank 0: a barrier of group all: .*rank2'
	done
}

@test "who died before speaking to anybody is not waited for" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		job --on-failure continue -n 3 "$WORLD" silent $how
		assert_eq "$status" 137
		assert_has "$output" 'rank 0: group all: .*rank2'
		# Which of the two it is told of: rank 0 has ended by then, perhaps.
		assert_has "$output" 'rank 1: group all: .*(rank2|lost rank0)'
	done
}

@test "barriers of ranks that are killed: each is told of one, and those left go on" {
	unsanitized 'memory that each maps, many times'
	try timeout 60 "$BUILD/tests/fault/fault_crowdkill" --barriers 300 --kills 12 \
		--seed "${SEED:-$RANDOM}" "$XRUN" "$BUILD/tests/fault/fault_crowd" "$BATS_TEST_TMPDIR/crowd"
	echo "$output"
	[ "$status" -eq 0 ]
}
