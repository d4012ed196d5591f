#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# rpc_prof.bats - what a rank's agent counts and records, and where it is shown.

load helper

setup()
{
	private_place
	[ -x "$PROG/rpc_prof" ] || skip 'tests/prog is not built'
}

# tries SCENARIO [RANKS] [ARG...] - rank 0 finds that it holds.
tries()
{
	job -n "${2:-2}" "$PROG/rpc_prof" "${@:3}" "$1"
	assert_has "$output" "$1 holds"
	[ "$status" -eq 0 ]
}

@test "AC-R18 all metric keys exist, nothing is active when idle, threads are as the option says" {
	tries metrics 2 --transport shm
	tries metrics 2 --transport tcp --threads 2
}

@test "AC-R19 network counters grow by exactly the bytes that were sent" {
	tries bytes 2 --transport shm
	tries bytes 2 --transport tcp
}
