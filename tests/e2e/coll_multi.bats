#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# coll_multi.bats - what ranks with two devices each do together.
#
# Takes long, so it begins early.

load helper

setup()
{
	private_place
	COLL=$BUILD/tests/prog/coll_multi
}

# runs CASE RANKS - by shared memory, and by TCP. A program that has the library
# within itself gets the job's segment where it is watched.
runs()
{
	job --hang-timeout 100s --report report -n "$2" "$COLL" "$1"
	assert_eq "$status: $stderr" '0: '
	ranks_exited_0 "$2"
	by_shm=$output
	job --report report -n "$2" "$COLL" "$1" tcp
	assert_eq "$status: $stderr" '0: '
	ranks_exited_0 "$2"
}

# both PATTERN COUNT - so many lines of each say that.
both()
{
	assert_eq "$(grep -cE "$1" <<<"$by_shm")" "$2"
	assert_eq "$(grep -cE "$1" <<<"$output")" "$2"
}

@test "AC-C17 entry k*K+j of what was gathered is tensor j of rank k" {
	runs gather 3
}

# bats test_tags=sanitize
@test "what a tensor of a rank broadcasts is on all devices of all" {
	runs bcast 3
}

@test "each operation of each type is that of all devices of all, with the same bits" {
	runs types 3
	both 'every type' 3
	runs types 2
	runs types 1
}

# bats test_tags=sanitize
@test "the host is a device among others" {
	runs host 3
}

@test "what is long goes in pieces" {
	runs pieces 3
}

@test "a group of some has the world's ranks" {
	runs some 3
}

# bats test_tags=sanitize
@test "two tensors of one device are refused, and what is not alike" {
	runs refused 3
}

# bats test_tags=sanitize
@test "lists of other lengths are refused to all, who hear of whom" {
	runs other-length 3
	both 'ranks [01] and [01] do not call|ranks [12] and [12] do not call' 3
	both 'broadcast_multi of [12] x 4 f32, rank 0, tensor 0' 3
	runs other-index 3
	both 'do not call the same: rank . calls .*, tensor [01]' 3
	runs other-count 3
	both 'do not call the same: rank . calls broadcast_multi of 2 x (4|4300001) f32' 3
	runs other-form 3
	both 'do not call the same: rank . calls all_reduce' 3
}

# bats test_tags=sanitize
@test "a device that fails is named to all" {
	runs broken-read 3
	both 'rank 1: all_reduce_multi of 2 x 4 f64, sum: fake:1: it fell off' 3
	runs broken-write 3
	both 'rank 1: .*fake:1: it is full of dust' 3
	runs broken-piece 3
	both 'rank 1: .*fake:1: it fell off' 3
}

@test "one that is late is named to all" {
	runs late 3
	both 'broadcast_multi of .*: these ranks did not come in time: 2' 3
}

# bats test_tags=sanitize
@test "a member that has no memory keeps nobody waiting" {
	runs memory 3
	both 'had no memory' 3
}
