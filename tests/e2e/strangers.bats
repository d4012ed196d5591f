#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# strangers.bats - stores and groups outside xrun, and clients that are not theirs.
#
# Takes long, so it begins early.

load helper

attack=$here/store_attack.py

setup()
{
	private_place
	chmod 755 "$BATS_TEST_TMPDIR"
	export MASTER_ADDR=127.0.0.1 MASTER_PORT
	# shellcheck disable=SC2016 # the rank's shell
	job --port-hold always -n 1 sh -c 'echo "$MASTER_PORT"'
	MASTER_PORT=$output
	store=tcp://127.0.0.1:$MASTER_PORT
}

# target NAME ADDRESS RANK [ARG]... - a member of a group of 2, in the background;
# its stdin is NAME.in.
target()
{
	mkfifo "$1.in"
	timeout 60 "$PROG/rpc_target" "$2" "$3" 2 "${@:4}" \
		<"$1.in" >"$1.out" 2>"$1.err" 3>&- &
	pid=$!
}

# as_other COMMAND... - as another user, with nothing of this one's.
as_other()
{
	[ "$(id -u)" = 0 ] || skip 'needs root, to be another user'
	need setpriv
	env -u XDG_STATE_HOME XDG_RUNTIME_DIR="$other" XDG_CONFIG_HOME="$other" \
		HOME="$other" setpriv --reuid 1001 --regid 1001 --clear-groups "$@"
}

# other_place - a home of another user. Skips the test if this user cannot become another one,
# before a process runs.
other_place()
{
	other=$(mktemp -d /tmp/xrun-other-XXXXXX)
	[ "$(id -u)" != 0 ] || chown 1001:1001 "$other"
	as_other true
}

teardown()
{
	[ -z "${other:-}" ] || rm -rf "$other"
	nothing_left
}

# listens PORT - Returns true if a socket listens on the port.
listens()
{
	grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ 0A" \
		/proc/net/tcp /proc/net/tcp6
}

@test "env:// on the loopback needs no listener and ends with rank 0" {
	target zero env:// 0
	local first=$pid
	exec 7>zero.in
	wait_for 20 [ -e "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT" ]
	assert_eq "$(listens "$MASTER_PORT" && echo a listener)" ''
	assert_eq "$(stat -c %a "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT")" 600
	try env RANK=1 timeout 30 "$PROG/rpc_target" env:// 1 2 0
	assert_eq "$status: $output" '0: ready
answered'
	wait_for 20 grep -q 'called by 1' zero.out
	exec 7>&-
	wait "$first"
}

# bats test_tags=sanitize
@test "env:// on the loopback: what a killed rank 0 left is not seen by the next" {
	local r run pids

	export WORLD_SIZE=2
	RANK=0 timeout 60 "$BUILD/examples/meet" >/dev/null 2>&1 3>&- &
	pids=$!
	wait_for 20 [ -s "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT" ]
	kill -KILL "$(pgrep -P "$pids")"
	wait "$pids" || true
	[ -e "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT" ]
	for run in 1 2; do
		pids=()
		for r in 1 0; do
			RANK=$r timeout 30 "$BUILD/examples/meet" >"out.$r" 2>&1 3>&- &
			pids+=($!)
		done
		wait "${pids[0]}"
		wait "${pids[1]}"
		assert_eq "$(cat out.0 out.1)" "rank 0 of 2 reads: rank 1 is here
rank 1 of 2 reads: rank 0 is here"
	done
	[ ! -e "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT" ]
	[ ! -e "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT.lock" ]
}

@test "env:// on the loopback: another user's /tmp/xrun-UID keeps no rank from its store" {
	local r pids=() fake

	[ "$(id -u)" = 0 ] || skip 'needs root, to be another user'
	need setpriv
	# A user without a folder yet.
	fake=$((700000 + RANDOM))
	other=$(mktemp -d /tmp/xrun-other-XXXXXX)
	chown "$fake" "$other"
	mkdir -m 777 "/tmp/xrun-$fake"
	for r in 1 0; do
		env -u XDG_RUNTIME_DIR -u XDG_STATE_HOME HOME="$other" WORLD_SIZE=2 \
			RANK=$r setpriv --reuid "$fake" --regid 1001 --clear-groups \
			timeout 30 "$BUILD/examples/meet" >"out.$r" 2>&1 3>&- &
		pids+=($!)
	done
	wait "${pids[0]}" && wait "${pids[1]}" || true
	rmdir "/tmp/xrun-$fake"
	assert_eq "$(cat out.0 out.1)" "rank 0 of 2 reads: rank 1 is here
rank 1 of 2 reads: rank 0 is here"
	assert_eq "$(stat -c %a "$other"/.local/state/xrun/.run-*)" 700
}

@test "tcp:// is open to processes with the same secret only" {
	target zero "$store" 0
	local first=$pid
	exec 7>zero.in
	wait_for 20 listens "$MASTER_PORT"
	assert_eq "$(stat -c %a "$XDG_CONFIG_HOME/xrun/store.secret")" 600
	echo 'another secret, long enough' >secret
	chmod 600 secret
	XRUN_STORE_SECRET_FILE=secret try timeout 30 "$PROG/rpc_target" "$store" 1 2 0
	assert_eq "$status" 1
	assert_has "$stderr" 'XR_E_AUTH: .*does not know the secret'
	try timeout 30 "$PROG/rpc_target" "$store?auth=none" 1 2 0
	assert_eq "$status" 1
	assert_has "$stderr" 'XR_E_AUTH: .*rank 0 asks for a secret'
	cp "$XDG_CONFIG_HOME/xrun/store.secret" secret
	XRUN_STORE_SECRET_FILE=secret try timeout 30 "$PROG/rpc_target" "$store" 1 2 0
	assert_eq "$status: $output" '0: ready
answered'
	exec 7>&-
	wait "$first"
	# A call may come before its own start returns.
	assert_eq "$(sort zero.out)" 'called by 1
ready'
}

# bats test_tags=sanitize
@test "a secret that others can read, a short one and none are refused by name" {
	echo 'a secret, long enough' >secret
	chmod 640 secret
	export XRUN_STORE_SECRET_FILE=secret
	try timeout 30 "$PROG/rpc_target" "$store" 0 1
	assert_eq "$status" 1
	assert_has "$stderr" 'XR_E_AUTH: .*secret: other users can read or change it'
	chmod 600 secret
	printf 'short          \n' >secret
	try timeout 30 "$PROG/rpc_target" "$store" 0 1
	assert_has "$stderr" 'XR_E_INVAL: .*secret has 5 bytes, at least 16'
	rm secret
	try timeout 30 "$PROG/rpc_target" "$store" 0 1
	assert_has "$stderr" 'XR_E_SYS: .*secret: No such file'
}

@test "a group refuses a store with auth=none, unless that is asked for by name" {
	try timeout 30 "$PROG/rpc_target" "$store?auth=none" 0 1
	assert_eq "$status" 1
	assert_has "$stderr" 'XR_E_AUTH: .*XRUN_RPC_UNAUTHENTICATED=1'
	XRUN_RPC_UNAUTHENTICATED=1 try timeout 30 "$PROG/rpc_target" "$store?auth=none" 0 1
	assert_eq "$status: $output" '0: ready'
}

# bats test_tags=sanitize,keep
@test "another user calls no function and reads no key, with the secret as well" {
	local address first

	other_place
	for address in env:// "$store" "$store?auth=none"; do
		rm -f zero.in
		XRUN_RPC_UNAUTHENTICATED=1 target zero "$address" 0
		first=$pid
		exec 7>zero.in
		case $address in
		env*) wait_for 20 [ -e "$XDG_RUNTIME_DIR/xrun/store-$MASTER_PORT" ] ;;
		*)
			wait_for 20 listens "$MASTER_PORT"
			[ ! -e "$XDG_CONFIG_HOME/xrun/store.secret" ] ||
				install -o 1001 -m 600 "$XDG_CONFIG_HOME/xrun/store.secret" "$other/secret"
			try as_other "$attack" "$MASTER_PORT" keys
			assert_eq "$status: $output" '0: read 0'
			;;
		esac
		XRUN_RPC_UNAUTHENTICATED=1 try as_other timeout 3 "$PROG/rpc_target" "$address" 1 2 0
		[ "$status" -ne 0 ]
		XRUN_STORE_SECRET_FILE=$other/secret XRUN_RPC_UNAUTHENTICATED=1 \
			try as_other timeout 3 "$PROG/rpc_target" "$address" 1 2 0
		[ "$status" -ne 0 ]
		assert_eq "$(cat zero.out)" ''
		XRUN_RPC_UNAUTHENTICATED=1 try env RANK=1 timeout 30 "$PROG/rpc_target" "$address" 1 2 0
		assert_eq "$status: $output" '0: ready
answered'
		exec 7>&-
		wait "$first"
	done
}

# bats test_tags=sanitize
@test "connections without a proof leave the descriptors of rank 0 alone" {
	need python3
	local first kind hold fds

	mkfifo zero.in
	ulimit -n 6000 2>/dev/null || skip 'needs 6000 descriptors'
	(ulimit -n 1024 && exec timeout 60 "$PROG/rpc_target" "$store" 0 2) \
		<zero.in >zero.out 2>zero.err 3>&- &
	first=$!
	exec 7>zero.in
	wait_for 20 listens "$MASTER_PORT"
	for kind in silent hello junk; do
		mkfifo "$kind.in"
		"$attack" "$MASTER_PORT" "$kind" 4200 <"$kind.in" >"$kind.out" 3>&- 7>&- &
		hold=$!
		exec 8>"$kind.in"
		await_file "$kind.out" 60
		fds=("/proc/$(pgrep -P "$first")"/fd/*)
		[ "${#fds[@]}" -lt 100 ]
		exec 8>&-
		wait "$hold"
	done
	try "$attack" "$MASTER_PORT" keys
	assert_eq "$status: $output" '0: read 0'
	try timeout 30 "$PROG/rpc_target" "$store" 1 2 0
	assert_eq "$status: $output" '0: ready
answered'
	exec 7>&-
	wait "$first"
}

@test "auth=none: another user gets no reply over lo, and no request is executed after he left" {
	local first server kind

	other_place
	XRUN_RPC_UNAUTHENTICATED=1 target zero "$store?auth=none" 0
	first=$pid
	exec 7>zero.in
	wait_for 20 listens "$MASTER_PORT"
	try as_other "$attack" "$MASTER_PORT" bind
	assert_eq "$status: $output" '0: read 0'
	server=$(pgrep -P "$first")
	for kind in close reset; do
		kill -STOP "$server"
		try as_other "$attack" "$MASTER_PORT" "$kind"
		kill -CONT "$server"
		assert_eq "$status: $output" '0: left'
		# It is accepted later than that one.
		try "$attack" "$MASTER_PORT" key
		assert_eq "$status: $output" '0: key 0'
	done
	try "$attack" "$MASTER_PORT" bind
	[ "$output" != 'read 0' ]
	exec 7>&-
	kill "$first"
	wait "$first" || true
}

@test "auth=none: a client refuses a server of another user, whatever its rank" {
	local first rank

	other_place
	mkfifo zero.in
	XRUN_RPC_UNAUTHENTICATED=1 as_other timeout 60 "$PROG/rpc_target" \
		"$store?auth=none" 0 2 <zero.in >zero.out 2>zero.err 3>&- &
	first=$!
	exec 7>zero.in
	wait_for 20 listens "$MASTER_PORT"
	for rank in 1 0; do
		XRUN_RPC_UNAUTHENTICATED=1 try timeout 30 "$PROG/rpc_target" \
			"$store?auth=none" "$rank" 2 0
		assert_eq "$status" 1
		assert_has "$stderr" 'XR_E_AUTH: .*another user of this machine serves there'
	done
	exec 7>&-
	kill "$first"
	wait "$first" || true
}
