#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# group.bats - ranks that join a group, meet, come and go.

load helper

setup()
{
	private_place
	[ -x "$PROG/rpc_group" ] || skip 'the programs of tests are not built'
}

# all_of N - each of N ranks has called all others.
all_of()
{
	[ "$status" -eq 0 ]
	[ "$(grep -c "all of $1\$" <<<"$output")" -eq "$1" ]
}

@test "AC-M1 each rank of a group calls each, and all meet" {
	job -n 4 "$PROG/rpc_group"
	all_of 4
}

@test "AC-B17 sixty-four ranks join that have one thread each" {
	job -n 64 "$PROG/rpc_group" --threads 1
	all_of 64
}

@test "AC-M11 ranks come at once, go, and come again, to a group that changes" {
	job -n 8 "$PROG/rpc_group" --change
	all_of 8
}

@test "AC-M11 so they do over TCP" {
	job -n 6 "$PROG/rpc_group" --change --tcp
	all_of 6
}

# Who is awaited by the others in the store is the second life; whoever called the
# first calls it by the same name.
@test "AC-R15 a rank that dies and begins again is a member again, and called" {
	# shellcheck disable=SC2016 # for the rank
	job -n 4 bash -c '"$0" --change --die 2 || "$0" --change' "$PROG/rpc_group"
	all_of 4
}
