#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# rpc.bats - ranks call each other's functions.

bats_require_minimum_version 1.5.0

load helper

setup()
{
	private_place
	[ -x "$BUILD/examples/rpc_echo" ] || skip 'examples are not built'
}

teardown()
{
	no_machines
}

# echoes BYTES CALLS [ARG...] - rank 1 sends back what rank 0 sends, which compares
# all of it.
echoes()
{
	job -n 2 "$BUILD/tests/bench/rpcecho" --bytes "$1" --calls "$2" "${@:3}"
	# shellcheck disable=SC2154 # of run
	echo "$stderr"
	[ "$status" -eq 0 ]
	assert_has "$output" "\"bytes\":$1,"
}

@test "each rank calls the next, with bytes and with values" {
	job -n 3 "$BUILD/examples/rpc_echo"
	[ "$status" -eq 0 ]
	for r in 0 1 2; do
		assert_has "$output" "rank $r: hello from $(((r + 1) % 3))"
		assert_has "$output" "rank $r: 42 from $(((r + 1) % 3))"
	done
}

@test "one rank calls itself" {
	job -n 1 "$BUILD/examples/rpc_echo"
	[ "$status" -eq 0 ]
	assert_has "$output" 'rank 0: hello from 0'
	assert_has "$output" 'rank 0: 42 from 0'
}

@test "a function answers with what another one gives" {
	job -n 3 "$BUILD/examples/rpc_chain"
	[ "$status" -eq 0 ]
	assert_has "$output" '1 \+ 1 \+ 1 = 3'
}

# bats test_tags=sanitize,keep
@test "bytes of any length come back as they were sent" {
	for bytes in 0 1 8 40 41 488 489 2047 2048 8192 8193 65536 1048576; do
		echoes "$bytes" 50
	done
}

@test "so do values" {
	for bytes in 0 8 1023 1024 2048 8193 65536 1048576; do
		echoes "$bytes" 50 --values
	done
}

@test "many calls are under way at once" {
	echoes 8 6400 --window 64
	echoes 5000 640 --window 64
}

@test "sixteen ranks join, and each calls another" {
	job -n 16 "$BUILD/examples/rpc_echo"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'hello from' <<<"$output")" -eq 16 ]
}

# bats test_tags=sanitize
@test "over TCP: a process that is killed is named by who waits for it" {
	job --on-failure continue -n 2 bash -c '
		[ "$RANK" = 1 ] && { "$0" --bytes 8 --calls 1 & p=$!; sleep 0.3; kill -9 $p; wait $p; exit 9; }
		exec "$0" --bytes 8 --calls 100000000' "$BUILD/tests/bench/rpcecho"
	[ "$status" -ne 0 ]
	assert_has "$stderr" 'XR_E_PEER_LOST: lost worker1 \(1\)'
}

# rank_is RANK JQ - true if JQ holds for the rank in `ps --json`.
rank_is()
{
	"$XRUN" ps --json calls | json_holds ".rank[$1] | $2"
}

@test "over shared memory: a rank that is killed is named by who waits for it" {
	need jq
	spawn one "$XRUN" --job calls --on-failure continue -n 2 "$BUILD/tests/bench/rpcecho" \
		--bytes 8 --calls 10000000
	wait_for 10 rank_is 0 .ready
	kill -9 "$("$XRUN" ps --json calls | jq '.rank[1].pid')"
	status=0
	wait "$pid" || status=$?
	[ "$status" -ne 0 ]
	assert_has "$(cat "$BATS_TEST_TMPDIR/one.err")" \
		'XR_E_PEER_LOST: lost worker1 \(1\): its process ended'
}

# Whoever lost patience unmaps what it lent, and the callee reads on.
# bats test_tags=sanitize
@test "memory is taken back from a call that nobody answered" {
	for transport in shm tcp; do
		job -n 2 "$BUILD/tests/prog/rpc_lend" --transport "$transport"
		[ "$status" -eq 0 ]
		assert_has "$output" 'whole [1-4], torn 0$'
	done
}

# bats test_tags=sanitize
@test "so it is where nobody may read another's memory" {
	run --separate-stderr "$BUILD/tests/prog/deny" process_vm_readv=EPERM -- \
		"$XRUN" -n 2 "$BUILD/tests/prog/rpc_lend"
	[ "$status" -eq 0 ]
	assert_has "$output" 'whole [1-4], torn 0$'
}

@test "bytes come whole where nobody may read another's memory" {
	for bytes in 8193 65536 1048576 5000000; do
		run --separate-stderr "$BUILD/tests/prog/deny" process_vm_readv=EPERM -- \
			"$XRUN" -n 2 "$BUILD/tests/bench/rpcecho" --bytes "$bytes" --calls 30 --private
		[ "$status" -eq 0 ]
		assert_has "$output" "\"bytes\":$bytes,"
	done
}

@test "two machines call each other over TCP, by the interface that reaches the store" {
	two_machines
	on_machines "$BUILD/examples/rpc_echo"
	assert_eq "$(sort out.0 out.1)" "rank 0: 42 from 1
rank 0: hello from 1
rank 1: 42 from 0
rank 1: hello from 0"
}

# bats test_tags=sanitize
@test "TCP listens on the interface of TP_SOCKET_IFNAME, and says when there is none" {
	two_machines
	export RANK=0 WORLD_SIZE=1 XRUN_RANK=0 XRUN_SIZE=1 MASTER_ADDR=10.77.31.1
	export MASTER_PORT=29512
	TP_SOCKET_IFNAME=veth0 try ip netns exec "$apart-0" "$BUILD/examples/rpc_echo"
	assert_eq "$status: $stderr" '0: '
	TP_SOCKET_IFNAME=veth9 try ip netns exec "$apart-0" "$BUILD/examples/rpc_echo"
	[ "$status" -ne 0 ]
	assert_has "$stderr" "no interface 'veth9' has an address"
}
