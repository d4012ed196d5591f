#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# spawn.bats - xr_spawn(): ranks as functions of a program, by the acceptance checks.

load helper

setup()
{
	private_place
	RANKS=$BUILD/tests/prog/ranks
	export TEST_MARK=$BATS_TEST_TMPDIR
	list='c;0;h:1|d;1;h:2'
}

# marked_is N - so many processes of this test's program live.
marked_is()
{
	[ "$(grep -lzsx -e "TEST_MARK=$BATS_TEST_TMPDIR" /proc/[0-9]*/environ |
		xargs -r -n 1 dirname | sed 's,$,/comm,' | xargs -r cat 2>/dev/null |
		grep -c '^ranks$')" -eq "$1" ]
}

# deaf_is N - so many of those that live ignore SIGINT and SIGTERM.
deaf_is()
{
	local dir count=0

	for dir in $(grep -lzsx -e "TEST_MARK=$BATS_TEST_TMPDIR" /proc/[0-9]*/environ | xargs -r -n 1 dirname); do
		[ $((0x$(awk '$1 == "SigIgn:" { print $2 }' "$dir/status") & 0x4002)) -ne $((0x4002)) ] ||
			count=$((count + 1))
	done
	[ "$count" -eq "$1" ]
}

# ranks ARG... - what they say is in $output, sorted.
ranks()
{
	try timeout 60 "$RANKS" "$@"
	output=$(sort <<<"$output")
}

@test "AC-L22 one rank, without a worker list: the caller's process, which exits" {
	try "$RANKS" show_pid zygote 0
	assert_eq "$status: $stderr" '0: '
	self=${output%%$'\n'*}
	assert_eq "$output" "$self"$'\n'"rank 0 is $self"
	try "$RANKS" fail_one zygote 1 0
	assert_eq "$status" 17
	assert_eq "$(head -n 1 <<<"$stderr")" 'cpu: rank 0: sample 1797 of 1797'
	assert_has "$stderr" '#0  fail_one'
	try "$RANKS" show_pid zygote 2
	assert_has "$output" 'returned XR_OK'
}

@test "AC-L23 D-L2 one rank a host, under a worker list: the host's, and its own code" {
	export XRT_TPU_CONFIG=$list XRT_LOCAL_WORKER=d:1 XRT_SHARD_WORLD_SIZE=2
	try "$RANKS" show_pid zygote 1
	self=${output%%$'\n'*}
	assert_eq "$status: $output" "0: $self"$'\n'"rank 1 is $self"
	try "$RANKS" show zygote 1
	assert_has "$output" '^1: xrt 2 1 0 TPU:1 d:1 no-list, xrun 1/2 0/1, torch 1/2'
	try "$RANKS" exit_one zygote 1 1
	assert_eq "$status" 5
	try "$RANKS" fail_one zygote 1 1
	assert_eq "$status" 17
	assert_eq "$(head -n 1 <<<"$stderr")" 'tpu:1: rank 1: sample 1797 of 1797'
}

@test "AC-L24 the handle of those that run, and how they ended, again and again" {
	for method in zygote fork spawn; do
		try timeout 60 "$RANKS" handle "$method" 3
		assert_eq "$status: $stderr" '0: '
		killed='XR_E_WORKER_LOST index 1, pid fits, code -1, signal 9'
		killed+=', text ) was ended by SIGKILL'
		assert_eq "$output" "$(printf '%s\n' '3 live' XR_E_TIMEOUT "$killed" "$killed")"
	done
	try timeout 60 "$RANKS" joined-show zygote 3
	assert_eq "$(grep -c '^XR_OK$' <<<"$output")" 2
	try timeout 60 "$RANKS" joined-exit_one zygote 3 2
	exited='XR_E_WORKER_LOST index 2, pid fits, code 5, signal 0'
	exited+=', text ) ended with exit code 5'
	assert_eq "$output" "$exited"$'\n'"$exited"
	try timeout 60 "$RANKS" joined-fail_one zygote 3 1
	failed='XR_E_REMOTE index 1, pid fits, code 17, signal 0'
	failed+=', report sample 1797 of 1797, text ): sample 1797 of 1797'
	assert_eq "$output" "$failed"$'\n'"$failed"
}

@test "a rank that fails says so on stderr, and the others are ended" {
	try timeout 60 "$RANKS" fail_one zygote 3 2
	assert_eq "$status" 3
	assert_has "$output" 'returned XR_E_REMOTE rank 2 \(process [0-9]*\): sample'
	assert_eq "$(head -n 1 <<<"$stderr")" 'cpu: rank 2: sample 1797 of 1797'
	assert_has "$stderr" '#0  fail_one'
}

@test "D-L1 who fails before its function is called ends with 17, too, and says so" {
	XRUN_RANK=first try timeout 60 "$BUILD/examples/hello_main"
	assert_eq "$status: $output" '17: '
	assert_has "$stderr" "XRUN_RANK: 'first' is not a rank"
}

@test "D-L6 daemons that want to hear of nothing end with the caller, too" {
	for method in zygote fork spawn; do
		spawn deaf "$RANKS" killed-daemon-deaf "$method" 3
		if [ "$method" = fork ]; then
			wait_for 10 marked_is 4
		else
			wait_for 10 marked_is 5
		fi
		wait_for 10 deaf_is 3
		kill -KILL "$pid"
		wait_for 10 marked_is 0
	done
}

@test "D-L8 a local worker and a list that are none are refused by name" {
	for value in w w: w:x; do
		XRT_LOCAL_WORKER=$value ranks show zygote 0
		assert_has "$output" "^returned XR_E_INVAL XRT_LOCAL_WORKER: '$value' is not name:index"
	done
	for address in h h: h:x h:70000 :1; do
		XRT_TPU_CONFIG="c;0;$address" ranks show zygote 0
		assert_has "$output" "^returned XR_E_INVAL XRT_TPU_CONFIG: 'c;0;$address' "
	done
}

@test "D-L5 a rank that SIGINT ends has not ended well" {
	try timeout 60 "$RANKS" joined-crash_one zygote 2 1
	assert_has "$output" 'XR_E_WORKER_LOST index 1, pid fits, code -1, signal 2'
}

@test "AC-L25 daemons end with the caller, and others are waited for" {
	for method in zygote fork spawn; do
		try timeout 20 "$RANKS" left-daemon "$method" 3
		assert_eq "$status: $output" '0: '
		marked_is 0
		try timeout 20 "$RANKS" left "$method" 3
		assert_eq "$status: $(grep -c 'rank [012] is' <<<"$output")" '0: 3'
		marked_is 0
		for how in killed killed-daemon; do
			spawn "$how" "$RANKS" "$how" "$method" 3
			if [ "$method" = fork ]; then
				wait_for 10 marked_is 4
			else
				wait_for 10 marked_is 5
			fi
			kill -KILL "$pid"
			wait_for 10 marked_is 0
		done
	done
}

@test "AC-L26 fork and spawn give the same ranks; only fork sees the caller's memory" {
	export XRT_TPU_CONFIG=$list XRT_LOCAL_WORKER=d:1 XRT_SHARD_WORLD_SIZE=2
	export TPU_NUM_DEVICES=3
	want=$(printf '%s\n' \
		'3: xrt 6 3 0 TPU:3 d:1 no-list, xrun 3/6 0/3, torch 3/6, memory N' \
		'4: xrt 6 4 1 TPU:4 d:1 no-list, xrun 4/6 1/3, torch 4/6, memory N' \
		'5: xrt 6 5 2 TPU:5 d:1 no-list, xrun 5/6 2/3, torch 5/6, memory N')
	for method in zygote spawn fork; do
		ranks show "$method" 0
		memory=1
		[ "$method" != fork ] || memory=2
		assert_eq "$status: $(grep "^[0-9]" <<<"$output")" "0: ${want//N/$memory}"
		ranks show_all "$method" 3
		grep "^[345]: " <<<"$output" |
			sed 's/\(MESH_SERVICE_ADDRESS=localhost:\).*/\1PORT/' >"all.$method"
		assert_eq "$(grep -c '^[345]: TEST_LATE=of the caller$' "all.$method")" 3
		diff all.zygote "all.$method"
		ranks exit_one "$method" 3 4
		assert_has "$output" 'returned XR_E_WORKER_LOST .*exit code 5'
		assert_eq "$status" 3
		for how in exit_one:5:0 fail_one:17:0 crash_one:-1:2; do
			IFS=: read -r what code signal <<<"$how"
			ranks "joined-$what" "$method" 3 4
			assert_eq "$(grep -c "index 1, pid fits, code $code, signal $signal" \
				<<<"$output")" 2
		done
	done
	assert_eq "$(cut -d: -f1 all.spawn | sort -u | xargs)" '3 4 5'
	ranks show thread 0
	assert_has "$output" "returned XR_E_INVAL method 'thread' is not one of"
	ranks show zygote 2
	assert_has "$output" 'returned XR_E_INVAL 2 processes: .* 3 devices a host, so 1 or 3'
}

@test "rank 0 of the job alone sees the list, and all the local worker of its first entry" {
	export XRT_TPU_CONFIG=$list XRT_SHARD_WORLD_SIZE=2 TPU_NUM_DEVICES=2
	ranks show zygote 0
	assert_eq "$(grep "^[0-9]" <<<"$output")" "$(printf '%s\n' \
		'0: xrt 4 0 0 TPU:0 c:0 list, xrun 0/4 0/2, torch 0/4, memory 1' \
		'1: xrt 4 1 1 TPU:1 c:0 no-list, xrun 1/4 1/2, torch 1/4, memory 1')"
}

@test "D-L3 the service address is a port of this host that nobody else takes" {
	export XRT_TPU_CONFIG=$list XRT_SHARD_WORLD_SIZE=2 TPU_NUM_DEVICES=2
	ranks serve zygote 0
	assert_has "$output" '^plain -1, server 0 0'
	assert_has "$output" 'returned XR_OK'
}

@test "D-L7 what ranks have started is ended with them, when one fails" {
	try timeout 60 "$RANKS" joined-leave_some zygote 3 1
	assert_has "$output" '^XR_E_REMOTE index 1'
	marked_is 0
}

@test "AC-L27 D-L4 64 ranks, number 40 fails: it decides, and all are told at once" {
	begun=$(now_ms)
	try timeout 60 "$RANKS" joined-end_late zygote 64 40
	took=$(($(now_ms) - begun))
	assert_has "$output" '^XR_E_REMOTE index 40, pid fits, code 17'
	# Each takes 0.3 s: 19 s, one after the other.
	[ "$took" -lt 8000 ]
	marked_is 0
}

@test "ranks that ignore SIGTERM are killed after one grace" {
	begun=$(now_ms)
	try timeout 60 "$RANKS" joined-end_never zygote 8 3
	took=$(($(now_ms) - begun))
	assert_has "$output" '^XR_E_REMOTE index 3, pid fits, code 17'
	[ "$took" -ge 1000 ]
	[ "$took" -lt 5000 ]
	marked_is 0
}

# bats test_tags=sanitize
@test "AC-L30 a rendezvous gives all payloads to all, and names who is missing" {
	for method in zygote spawn fork; do
		ranks meet "$method" 5
		assert_eq "$(grep ^rank <<<"$output")" \
			"$(printf 'rank %s met 5\n' 0 1 2 3 4)"
	done
	ranks again zygote 3 1
	assert_eq "$(grep ^rank <<<"$output")" "$(printf 'rank %s met 3\n' 0 1 2)"
	ranks miss zygote 4 2
	assert_eq "$(grep ^rank <<<"$output")" "$(for i in 0 1 3; do
		echo "rank $i: XR_E_TIMEOUT: rendezvous start: rank 2 did not come in time"
	done)"
}

# bats test_tags=sanitize
@test "a rendezvous of a job names a rank that was killed, long before its timeout" {
	job --on-failure continue -n 3 "$RANKS" job-die zygote 0 1
	assert_eq "$(grep -c 'XR_E_PEER_LOST: rendezvous gate: rank 1 ended before it came' <<<"$output")" 2
}

# bats test_tags=sanitize
@test "AC-L30 a rendezvous of a job's ranks goes by its store" {
	job --no-prefix -n 4 "$RANKS" job-meet zygote 0
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" \
		"$(printf 'rank %s met 4\n' 0 1 2 3)"
	job -n 3 "$RANKS" job-miss zygote 0 1
	assert_eq "$(grep -c 'XR_E_TIMEOUT: rendezvous start: rank 1 did not' <<<"$output")" 2
}
