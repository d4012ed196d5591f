#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# acl.bats - the acceptance checks of the launcher, seen from outside: a job
# runs, and what its ranks say, or what is left of them, is looked at.
#
# Host 2 of two is this machine, told so by XRT_LOCAL_WORKER=NAME:1 and
# XRT_SHARD_WORLD_SIZE=2.

load helper

LIST='a;0;h:1|b;1;h:2'

# refused - the job before this ended with 125, and no rank ever ran.
refused()
{
	assert_eq "$status" 125
	[ ! -e ran ]
}

# told RANK NAME - what that rank's envshow said about the variable.
told()
{
	sed -n "s/^\[ *$1\] $2[= ]//p" <<<"$output"
}

# told_all NAME - the same of all ranks, by rank, in one line.
told_all()
{
	sed -nE "s/^\[ *([0-9]+)\] $1[= ]/\1 /p" <<<"$output" |
		sort -n | cut -d' ' -f2- | paste -sd' '
}

alive()
{
	kill -0 "$1" 2>/dev/null && [ "$(ps -o stat= -p "$1")" != Z ]
}

# none_alive FILE - of the pids in it.
none_alive()
{
	local one

	while read -r one; do
		! alive "$one" || return 1
	done <"$1"
}

pid_of_supervisor()
{
	xruns | sed -n 's/ xrun-super$//p'
}

# --- the worker list ---------------------------------------------------------

@test "AC-L1 two entries are read in their order" {
	export XRT_TPU_CONFIG=$LIST TPU_NUM_DEVICES=2
	job "$PROG/envshow" XRT_TPU_CONFIG XRT_LOCAL_WORKER
	assert_eq "$status" 0
	assert_eq "$(told 0 XRT_TPU_CONFIG)" "$LIST"
	assert_eq "$(told_all XRT_LOCAL_WORKER)" 'a:0 a:0'
	XRT_TPU_CONFIG='b;1;h:2|a;0;h:1' job "$PROG/envshow" XRT_LOCAL_WORKER
	assert_eq "$(told_all XRT_LOCAL_WORKER)" 'b:1 b:1'
}

@test "AC-L2 a malformed list is refused by its bad piece" {
	local -A piece=(['a;0']='a;0' ['a;0;h:1;x']='a;0;h:1;x'
		['a;0;h:1|']='' ['a;x;h:1']='a;x;h:1'
		['a;0;h:1|b;1']='b;1')
	local list

	for list in "${!piece[@]}"; do
		XRT_TPU_CONFIG=$list job "$PROG/stamp" ran
		refused
		assert_has "$stderr" "^xrun: XRT_TPU_CONFIG: '${piece[$list]}' "
	done
	XRT_TPU_CONFIG='' job "$PROG/stamp" ran
	refused
	assert_has "$stderr" "^xrun: XRT_TPU_CONFIG: '' "
}

@test "AC-L3 eight devices a host, or as many as TPU_NUM_DEVICES says" {
	export XRT_LOCAL_WORKER=w:0
	job "$PROG/envshow" RANK
	assert_eq "$(told_all RANK)" '0 1 2 3 4 5 6 7'
	TPU_NUM_DEVICES=4 job "$PROG/envshow" RANK
	assert_eq "$(told_all RANK)" '0 1 2 3'
}

@test "AC-L4 the global index is host times devices plus local index" {
	XRT_LOCAL_WORKER=w:0 job "$PROG/envshow" XRT_SHARD_ORDINAL
	assert_eq "$(told 0 XRT_SHARD_ORDINAL)" 0
	export XRT_SHARD_WORLD_SIZE=2
	XRT_LOCAL_WORKER=w:1 job "$PROG/envshow" XRT_SHARD_ORDINAL \
		XRT_SHARD_LOCAL_ORDINAL XRT_MULTI_PROCESSING_DEVICE
	assert_eq "$(told 11 XRT_SHARD_ORDINAL)" 11
	assert_eq "$(told 11 XRT_SHARD_LOCAL_ORDINAL)" 3
	assert_eq "$(told 11 XRT_MULTI_PROCESSING_DEVICE)" TPU:11
	XRT_SHARD_WORLD_SIZE=3 XRT_LOCAL_WORKER=w:2 TPU_NUM_DEVICES=4 \
		job "$PROG/envshow" XRT_SHARD_ORDINAL
	assert_eq "$(told 9 XRT_SHARD_ORDINAL)" 9
	assert_eq "$(told_all XRT_SHARD_ORDINAL)" '8 9 10 11'
}

@test "AC-L5 the world is hosts times ranks" {
	export XRT_LOCAL_WORKER=w:0
	XRT_SHARD_WORLD_SIZE=2 job -n 8 "$PROG/envshow" XRT_SHARD_WORLD_SIZE \
		WORLD_SIZE
	assert_eq "$(told_all XRT_SHARD_WORLD_SIZE)" '16 16 16 16 16 16 16 16'
	assert_eq "$(told_all WORLD_SIZE)" '16 16 16 16 16 16 16 16'
	job -n 8 "$PROG/envshow" XRT_SHARD_WORLD_SIZE
	assert_eq "$(told_all XRT_SHARD_WORLD_SIZE)" '8 8 8 8 8 8 8 8'
}

@test "AC-L6 one rank of the job sees the worker list, on two hosts too" {
	export XRT_TPU_CONFIG=$LIST TPU_NUM_DEVICES=4 XRT_SHARD_WORLD_SIZE=2
	XRT_LOCAL_WORKER=a:0 job "$PROG/envshow" XRT_TPU_CONFIG
	assert_eq "$(told_all XRT_TPU_CONFIG)" "$LIST unset unset unset"
	XRT_LOCAL_WORKER=b:1 job "$PROG/envshow" XRT_TPU_CONFIG
	assert_eq "$(told_all XRT_TPU_CONFIG)" 'unset unset unset unset'
}

@test "AC-L7 without a local worker every rank gets the first entry's name" {
	export XRT_TPU_CONFIG='c_tpu_worker;3;h:1|b;1;h:2' TPU_NUM_DEVICES=4
	job "$PROG/envshow" XRT_LOCAL_WORKER XRT_TPU_CONFIG
	assert_eq "$(told_all XRT_LOCAL_WORKER)" \
		'c_tpu_worker:3 c_tpu_worker:3 c_tpu_worker:3 c_tpu_worker:3'
	assert_eq "$(told 3 XRT_TPU_CONFIG)" unset
}

@test "AC-L8 three ranks of eight devices are refused before any child exists" {
	export XRT_LOCAL_WORKER=w:0
	job -n 3 "$PROG/stamp" ran
	refused
	assert_eq "$stderr" "xrun: -n 3: this TPU worker list has 8 devices a host, so 1 or 8   try: -n 8, or --any-ranks"
	job -n 3 --any-ranks "$PROG/envshow" WORLD_SIZE
	assert_eq "$(told_all WORLD_SIZE)" '3 3 3'
}

@test "D-L9 any number of ranks, with devices and without" {
	local n

	for n in 2 3 7; do
		job -n "$n" "$PROG/envshow" WORLD_SIZE
		assert_eq "$status: $(told_all WORLD_SIZE)" "0: $(yes "$n" | head -n "$n" | xargs)"
	done
	export XRT_LOCAL_WORKER=w:0 TPU_NUM_DEVICES=8
	job -n 3 --any-ranks "$PROG/envshow" XRT_SHARD_ORDINAL
	assert_eq "$status: $(told_all XRT_SHARD_ORDINAL)" '0: 0 1 2'
}

@test "AC-L28 a list, a local worker, both, or none decide what ranks are told" {
	local variables=(XRT_SHARD_ORDINAL XRT_LOCAL_WORKER)

	export TPU_NUM_DEVICES=2
	XRT_TPU_CONFIG=$LIST job "$PROG/envshow" "${variables[@]}"
	assert_eq "$(told_all XRT_SHARD_ORDINAL)" '0 1'
	XRT_LOCAL_WORKER=w:0 job "$PROG/envshow" "${variables[@]}"
	assert_eq "$(told_all XRT_SHARD_ORDINAL)" '0 1'
	XRT_TPU_CONFIG=$LIST XRT_LOCAL_WORKER=b:1 XRT_SHARD_WORLD_SIZE=2 \
		job "$PROG/envshow" "${variables[@]}"
	assert_eq "$(told_all XRT_SHARD_ORDINAL)" '2 3'
	job "$PROG/envshow" "${variables[@]}"
	assert_eq "$output" $'XRT_SHARD_ORDINAL unset\nXRT_LOCAL_WORKER unset'
	XRT_TPU_CONFIG='' job "$PROG/stamp" ran
	refused
	assert_has "$stderr" "^xrun: XRT_TPU_CONFIG: "
	XRT_LOCAL_WORKER='' job "$PROG/stamp" ran
	refused
	assert_has "$stderr" "^xrun: XRT_LOCAL_WORKER: "
}

@test "AC-L29 a malformed local worker is named with its variable" {
	local value

	for value in w w: w:x; do
		XRT_LOCAL_WORKER=$value job "$PROG/stamp" ran
		refused
		assert_has "$stderr" "^xrun: XRT_LOCAL_WORKER: '$value' is not name:index"
	done
}

@test "AC-L20 two hosts with one rank each have the ranks 0 and 1 of 2" {
	export XRT_SHARD_WORLD_SIZE=2
	XRT_LOCAL_WORKER=w:0 job -n 1 "$PROG/envshow" XRT_SHARD_ORDINAL RANK
	assert_eq "$(told 0 XRT_SHARD_ORDINAL)" 0
	XRT_LOCAL_WORKER=w:1 job -n 1 "$PROG/envshow" XRT_SHARD_ORDINAL \
		XRT_SHARD_WORLD_SIZE RANK WORLD_SIZE XRUN_NODE XRUN_NODES
	assert_eq "$(told 1 XRT_SHARD_ORDINAL)" 1
	assert_eq "$(told 1 XRT_SHARD_WORLD_SIZE)" 2
	assert_eq "$(told 1 RANK) $(told 1 WORLD_SIZE)" '1 2'
	assert_eq "$(told 1 XRUN_NODE) $(told 1 XRUN_NODES)" '1 2'
}

@test "AC-L20 the account of the second host has the job's own rank numbers" {
	export XRT_LOCAL_WORKER=w:1 XRT_SHARD_WORLD_SIZE=2 TPU_NUM_DEVICES=4
	job --report report --events events "$PROG/die" --rank 6 --exit 3 --say x
	assert_eq "$status" 3
	assert_has "$stderr" '^xrun: rank 6 failed first: exit status 3 '
	assert_has "$stderr" 'ranks 4, 5, 7 were stopped by xrun'
	assert_eq "$(jq .culprit report)" 6
	assert_eq "$(jq 'select(.event == "rank.exit" and .exit == 3).rank' \
		events)" 6
	[ -e "$XDG_STATE_HOME"/xrun/latest/0/rank-0006/stderr ]
}

# --- the environment before the runtime --------------------------------------

@test "AC-L21 the environment is complete when a runtime is loaded" {
	local record=$BATS_TEST_TMPDIR/record lib ranks

	lib=$(find "$BUILD/tests/fake" -name libfake_runtime.so)
	[ -e "$lib" ]
	export XRT_TPU_CONFIG=$LIST TPU_NUM_DEVICES=4 XRT_SHARD_WORLD_SIZE=2 \
		FAKE_RUNTIME_RECORD=$record
	job --env LD_PRELOAD="$lib" "$PROG/envshow" --rank 99
	assert_eq "$status" 0
	ranks=$(sed -nE 's/^[0-9]+\tXRT_SHARD_ORDINAL=//p' "$record" | sort)
	assert_eq "$(paste -sd' ' <<<"$ranks")" '0 1 2 3'
	assert_eq "$(grep -c 'XRT_SHARD_WORLD_SIZE=8$' "$record")" 4
	assert_eq "$(grep -c 'XRT_LOCAL_WORKER=a:0$' "$record")" 4
	assert_eq "$(cut -f2 "$record" | grep -c '^XRT_TPU_CONFIG=')" 1
	# xrun itself never opened it: one record a rank, of four processes.
	assert_eq "$(cut -f1 "$record" | sort -u | wc -l)" 4
}

@test "AC-L21 a runtime that the program opens late sees the same" {
	local record=$BATS_TEST_TMPDIR/record lib

	need python3
	lib=$(find "$BUILD/tests/fake" -name libfake_runtime.so)
	export XRT_TPU_CONFIG=$LIST TPU_NUM_DEVICES=2 FAKE_RUNTIME_RECORD=$record
	job python3 -c "import ctypes; ctypes.CDLL('$lib')"
	assert_eq "$status" 0
	assert_eq "$(grep -c $'\tXRT_SHARD_ORDINAL=' "$record")" 2
	assert_eq "$(grep -c $'\tXRT_TPU_CONFIG=' "$record")" 1
}

# --- ports -------------------------------------------------------------------

@test "AC-L9 a service address that is set stays as it is" {
	export XRT_LOCAL_WORKER=w:0 TPU_NUM_DEVICES=2
	XRT_MESH_SERVICE_ADDRESS=far:4711 \
		job "$PROG/envshow" XRT_MESH_SERVICE_ADDRESS
	assert_eq "$(told_all XRT_MESH_SERVICE_ADDRESS)" 'far:4711 far:4711'
}

@test "AC-L9 a service address that is empty or absent is replaced, equal for all" {
	local address

	export XRT_LOCAL_WORKER=w:0 TPU_NUM_DEVICES=2
	XRT_MESH_SERVICE_ADDRESS='' \
		job "$PROG/envshow" XRT_MESH_SERVICE_ADDRESS
	address=$(told 0 XRT_MESH_SERVICE_ADDRESS)
	assert_has "$address" '^localhost:[0-9]+$'
	assert_eq "$(told 1 XRT_MESH_SERVICE_ADDRESS)" "$address"
	job "$PROG/envshow" XRT_MESH_SERVICE_ADDRESS
	assert_has "$(told 1 XRT_MESH_SERVICE_ADDRESS)" '^localhost:[0-9]+$'
}

# Beside the listener, seven ranks take and let go of ports the kernel chooses.
listen_1000_times()
{
	XRT_LOCAL_WORKER=w:0 job -n 8 sh -c '
		[ "$RANK" = 0 ] || exec "$1" --rank "$RANK" --port 0 --times 3000
		"$1" --port "${XRT_MESH_SERVICE_ADDRESS##*:}" --times 1000 $2 &&
			"$1" --times 1000 $2' \
		sh "$PROG/port" "$*"
	assert_eq "$stderr" ''
	assert_eq "$status" 0
	assert_eq "$(grep -c '^\[0\] listening [1-9]' <<<"$output")" 2
}

@test "AC-L9 a listener with SO_REUSEADDR succeeds 1000 times on a held port" {
	listen_1000_times --reuseaddr
}

@test "AC-L9 a listener with SO_REUSEADDR and SO_REUSEPORT succeeds 1000 times" {
	listen_1000_times --reuseaddr --reuseport
}

@test "AC-L9 clients reach the listener on a held port" {
	job -n 2 "$PROG/port" --reuseaddr --connect --times 100
	assert_eq "$status" 0
	assert_has "$output" '^\[0\] listening '
	job -n 2 "$PROG/port" --reuseaddr --v6 --times 100
	assert_eq "$status" 0
}

@test "AC-L9 a held port is refused to whoever binds it plainly" {
	job -n 2 "$PROG/port"
	assert_eq "$status" 1
	assert_has "$output" '^\[0\] bind [0-9]+: Address already in use$'
}

@test "AC-L9 with --port-hold never a plain bind succeeds, too" {
	job -n 2 --port-hold never "$PROG/port"
	assert_eq "$status" 0
	assert_has "$output" '^\[0\] listening '
	XRT_LOCAL_WORKER=w:0 TPU_NUM_DEVICES=2 job --port-hold=never sh -c '
		[ "$RANK" != 0 ] || exec "$0" --port "${XRT_MESH_SERVICE_ADDRESS##*:}"' \
		"$PROG/port"
	assert_eq "$status" 0
	assert_has "$output" '^\[0\] listening '
}

@test "AC-L9 two jobs at a time have two ports" {
	local first second

	mkfifo pipe
	"$XRUN" -n 2 "$PROG/port" --reuseaddr --hold >pipe 3>&- &
	first=$!
	await_line pipe listening 5
	second=${line##* }
	job -n 2 --port-hold always "$PROG/port" --reuseaddr
	assert_eq "$status" 0
	assert_has "$output" listening
	[ "${output##* }" != "$second" ]
	kill "$first"
	wait "$first" || true
}

# with_free_ports RESERVED COMMAND... - runs COMMAND where the kernel reserves these ports.
with_free_ports()
{
	try unshare -n sh -c '
		echo 40000 40999 >/proc/sys/net/ipv4/ip_local_port_range &&
			echo "$1" >/proc/sys/net/ipv4/ip_local_reserved_ports && shift && exec "$@"' \
		sh "$@"
}

# bats test_tags=sanitize
@test "AC-L9 no port is taken that the kernel reserves" {
	local one=1-29999,30001-65535 two=1-29999,30002-65535 all=1-65535
	local show='echo "${MASTER_PORT-none} ${XRT_MESH_SERVICE_ADDRESS-none}"'

	need unshare
	unshare -n true 2>/dev/null || skip 'network namespaces are refused here'
	export TPU_NUM_DEVICES=1
	with_free_ports "$one" "$XRUN" -n 1 sh -c "$show"
	assert_eq "$status: $output" '0: 30000 none'
	export XRT_LOCAL_WORKER=w:0
	with_free_ports "$one" "$XRUN" --env-profile xrt sh -c "$show"
	assert_eq "$status: $output" '0: none localhost:30000'
	with_free_ports "$two" "$XRUN" sh -c "$show"
	assert_has "$output" '^(30000 localhost:30001|30001 localhost:30000)$'
	with_free_ports "$one" "$XRUN" sh -c "$show"
	assert_eq "$status: $stderr" '125: xrun: no TCP port is free on this machine'
	with_free_ports "$all" "$XRUN" --env-profile none sh -c "$show"
	assert_eq "$status: $output" '0: none none'
}

# --- failing -----------------------------------------------------------------

# fails_at RANK COMMAND... - that rank is it, the others wait for ever.
fails_at()
{
	local rank=$1

	shift
	job -n 4 sh -c 'guilty=$0
		[ "$RANK" != "$guilty" ] || exec "$@"
		exec sleep 60' "$rank" "$@"
}

@test "AC-L10 a failing rank says device and message, exits 17, and so does xrun" {
	local begun

	begun=$(now_ms)
	job -n 4 --report report sh -c '
		[ "$RANK" != 2 ] || exec "$0" "the oven is cold"
		exec sleep 60' "$BUILD/examples/hello_main"
	[ $(($(now_ms) - begun)) -lt 5000 ]
	assert_eq "$status" 17
	assert_has "$stderr" '^\[2\]!cpu: rank 2: the oven is cold$'
	assert_has "$stderr" '^xrun: rank 2 failed first: exit status 17 after '
	assert_has "$stderr" '^  ranks 0, 1, 3 were stopped by xrun \(TERM, '
	assert_eq "$(jq '.rank[2].exit' report)" 17
	assert_eq "$(jq -c '[.rank[].stopped]' report)" '[true,true,false,true]'
	[ -z "$(left_behind '.*')" ]
}

@test "AC-L10 under a worker list the device is the list's" {
	XRT_LOCAL_WORKER=w:0 TPU_NUM_DEVICES=2 job sh -c '
		[ "$RANK" != 1 ] || exec "$0" cold
		exec sleep 60' "$BUILD/examples/hello_main"
	assert_eq "$status" 17
	assert_has "$stderr" '^\[1\]!(TPU|tpu):1: rank 1: cold$'
}

@test "AC-L11 a rank that dies by SIGSEGV is named so, and xrun exits 139" {
	job -n 4 "$PROG/die" --rank 2 --signal SEGV
	assert_eq "$status" 139
	assert_has "$stderr" '^xrun: rank 2 failed first: SIGSEGV after '
}

@test "AC-L12 64 ranks that ignore SIGTERM take one grace period, not 64" {
	local begun took code=0

	mkfifo pipe
	# shellcheck disable=SC2094 # a FIFO
	"$XRUN" -n 64 --grace 1s "$PROG/deaf" >pipe 2>err 3>&- &
	for _ in {1..64}; do
		await_line pipe ready 10
	done
	begun=$(now_ms)
	kill -TERM $!
	wait $! || code=$?
	took=$(($(now_ms) - begun))
	assert_eq "$code" 143
	[ "$took" -ge 900 ]
	[ "$took" -lt 10000 ]
	assert_has "$(cat err)" '^xrun: SIGTERM: ranks 0-63 were stopped by xrun \(TERM, then KILL, '
	[ -z "$(left_behind '.*')" ]
}

@test "AC-L14 a rank's own exit code is preserved" {
	fails_at 3 sh -c 'exit 5'
	assert_eq "$status" 5
	assert_has "$stderr" '^xrun: rank 3 failed first: exit status 5 '
}

@test "AC-L16 a backtrace has at most 16 frames" {
	need cc
	cat >deep.c <<-'END'
		#include <stddef.h>

		#include <xrun/spawn.h>

		__attribute__((noinline)) static enum xr_status
		deep(unsigned n, struct xr_error *err)
		{
			enum xr_status status;

			if (n == 0)
				return xr_error_set(err, XR_E_NOTFOUND, "deep down");
			status = deep(n - 1, err);
			__asm__ volatile("" : : "r"(&status) : "memory");
			return status;
		}

		static enum xr_status
		fall(uint32_t ordinal, void *ctx, struct xr_error *err)
		{
			return deep(100, err);
		}

		int
		main(void)
		{
			return xr_main(fall, NULL);
		}
	END
	unsanitized 'a plain program cannot link a library that has them'
	cc -O1 -fno-optimize-sibling-calls -I"$root/src/include" deep.c -o deep \
		-L"$BUILD/worker" -lxrun -Wl,-rpath,"$BUILD/worker"
	job -n 2 --on-failure continue ./deep
	assert_eq "$status" 17
	assert_eq "$(grep -c '^\[0\]!.*deep down' <<<"$stderr")" 1
	assert_eq "$(grep -c '^\[0\]!.* #[0-9]' <<<"$stderr")" 16
	assert_eq "$(grep -c '^\[1\]!.* #[0-9]' <<<"$stderr")" 16
}

# --- ending ------------------------------------------------------------------

# family - two ranks with grandchildren in sessions of their own that
# ignore SIGTERM; $keeper is what was started, `pids` are all below it.
family()
{
	mkfifo pipe
	"$XRUN" -n 2 "$PROG/fork_away" --depth 2 --width 2 --setsid --stay \
		--ignore-term --pids "$BATS_TEST_TMPDIR/pids" >pipe 2>err 3>&- &
	keeper=$!
	await_line pipe ready 5
	await_line pipe ready 5
	assert_eq "$(wc -l <pids)" 12
	left_behind '.*' | cut -d' ' -f1 >>pids
	assert_eq "$(sort -u pids | wc -l)" 14
}

@test "AC-L13 kill -9 of xrun: no rank and no grandchild lives 2 s later" {
	local keeper

	family
	kill -KILL "$keeper"
	wait_for 2 none_alive pids
	wait_for 5 nobody_left
}

@test "AC-L13 kill -9 of the supervisor: the same, and xrun exits 125" {
	local keeper code=0

	family
	kill -KILL "$(pid_of_supervisor)"
	wait_for 2 none_alive pids
	wait "$keeper" || code=$?
	assert_eq "$code" 125
	assert_has "$(cat err)" '^xrun: the supervisor ended \(SIGKILL\): all ranks were ended with it'
}

nobody_left()
{
	[ -z "$(left_behind '.*' && xruns)" ]
}

@test "AC-L15 Ctrl-C: the ranks get SIGINT and xrun exits 130, though they end well" {
	run in_pty -w ready -w ready -s '\003' -- "$XRUN" --collapse off -n 2 \
		"$PROG/sigshow" --wait 1
	assert_eq "$status" 130
	assert_eq "$(plain <<<"$output" | grep -c 'signal: INT ')" 2
}

# --- what is refused ---------------------------------------------------------

# bats test_tags=sanitize
@test "AC-L17 --env of what xrun tells its ranks is refused by name" {
	local name

	for name in XRUN_RANK XRUN_SIZE RANK WORLD_SIZE LOCAL_RANK \
		XRT_SHARD_ORDINAL XRUN_RANKS; do
		job --env "$name=3" "$PROG/stamp" ran
		refused
		assert_eq "$stderr" \
			"xrun: --env: $name is what xrun tells its ranks and cannot be set"
	done
	job --env MASTER_PORT=4711 "$PROG/envshow" MASTER_PORT
	assert_eq "$output" MASTER_PORT=4711
}

@test "AC-L18 --env without a value is refused" {
	job --env FOO "$PROG/stamp" ran
	refused
	assert_has "$stderr" "^xrun: --env: 'FOO' is not (a )?NAME=VALUE"
	XRUN_ENV=FOO job "$PROG/stamp" ran
	refused
	assert_has "$stderr" "^xrun: XRUN_ENV: 'FOO' is not (a )?NAME=VALUE"
	job --env =x "$PROG/stamp" ran
	refused
}

# --- lines -------------------------------------------------------------------

# whole STREAMS FILE - but for a few lines of ranks that had to wait in the middle
# of one for 200 ms, on a busy machine.
whole()
{
	try "$PROG/verify" merged --joins --ranks 8 --lines 2000 --streams "$@"
	assert_eq "$status" 0
	assert_has "$output" ', joined [0-9]$'
}

@test "AC-L19 D-L10 lines carry their rank and are never mixed" {
	"$XRUN" -n 8 "$PROG/spew" --lines 2000 --both --wild 7 >out 2>err
	whole 1 out
	whole 2 err
	"$XRUN" -n 8 "$PROG/spew" --lines 2000 --both --wild 8 >both 2>&1
	whole 3 both
}

@test "AC-L19 lines that are longer than anything is held are never mixed" {
	"$XRUN" -n 8 "$PROG/spew" --lines 6 --size 100000 --both >out 2>err
	"$PROG/verify" merged --joins --ranks 8 --lines 6 out
	"$PROG/verify" merged --joins --ranks 8 --lines 6 --streams 2 err
}
