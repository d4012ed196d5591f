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

# counts ARG... - a job whose rank 0 makes 1000 calls, 2 of which fail, and which then
# rests; $pid is its xrun.
counts()
{
	spawn one "$XRUN" --job counts --report report "$@" figures 1000
	wait_for 20 is_ready
}

is_ready()
{
	"$XRUN" ps --json counts | json_holds '.rank[0].ready'
}

# are - true if the object on standard input has the expected counters of the ranks.
are()
{
	json_holds '[.rank[].rpc] | (.[0].calls == 1000 and .[0].errors == 2 and
		.[0].timeouts == 0 and .[1].served == 1000 and
		.[0].bytes_out >= 8000 and .[0].bytes_out == .[1].bytes_in and
		.[1].bytes_out == .[0].bytes_in and
		([.[0].latency[].calls] | add) == 1000 and
		.[0].p50 > 0 and .[0].p50 <= .[0].p99 and .[0].seconds > 0)'
}

# A call is counted as served behind its answer.
have_counted()
{
	"$XRUN" ps --json counts >ps.json && are <ps.json
}

@test "ps, metrics and the report have what a rank's agent counted" {
	need jq
	counts --metrics-file told.prom -n 2 "$PROG/rpc_prof"
	wait_for 10 have_counted
	try "$XRUN" ps counts
	assert_has "$output" '^ RANK +CALLS +SERVED +ERRORS +SENT +GOT +MEAN +P50 +P99$'
	assert_has "$output" '^ +0 +1000 +0 +2 +7\.8K +'
	assert_has "$output" '^ +1 +0 +1000 +0 '
	"$XRUN" stop counts
	wait "$pid" || true
	grep -qF 'xrun_rank_calls_total{job="counts",rank="0"} 1000' told.prom
	grep -qF 'xrun_rank_calls_served_total{job="counts",rank="1"} 1000' told.prom
	grep -qF 'xrun_rank_call_errors_total{job="counts",rank="0"} 2' told.prom
	grep -qF 'xrun_rank_call_seconds_bucket{job="counts",rank="0",le="+Inf"} 1000' told.prom
	grep -qF 'xrun_rank_call_seconds_count{job="counts",rank="0"} 1000' told.prom
	if command -v promtool >/dev/null; then
		promtool check metrics <told.prom
	fi
	are <report
	need_schemas
	fits ps ps.json
	fits job report
}

@test "a rank without a segment tells the same by messages" {
	need jq
	# shellcheck disable=SC2016 # its arguments, not ours
	counts -n 2 bash -c 'exec "$0" "$@"' "$PROG/rpc_prof"
	wait_for 20 told
	"$XRUN" stop counts
	wait "$pid" || true
	are <report
}

told()
{
	"$XRUN" ps --json counts | are
}

@test "of ranks without an agent nothing of it is shown" {
	need jq
	spawn one "$XRUN" --job plain -n 2 sleep 60
	wait_for 20 is_plain
	try "$XRUN" ps plain
	assert_eq "$status" 0
	assert_has "$output" '^job plain: running'
	refute_has "$output" CALLS
	"$XRUN" stop plain
	wait "$pid" || true
}

is_plain()
{
	"$XRUN" ps --json plain | json_holds '.rank | length == 2 and
		all(.state == "running" and has("rpc") == false)'
}

# bats test_tags=sanitize
@test "whom others were calling when it was killed is the culprit, and none of them" {
	job -n 4 "$PROG/rpc_prof" lost 700M
	[ "$status" -eq 137 ]
	assert_has "$stderr" 'rank 1 failed first: SIGKILL'
	# shellcheck disable=SC2016 # its arguments, not ours
	job -n 4 bash -c 'exec "$0" "$@"' "$PROG/rpc_prof" lost 700M
	[ "$status" -eq 137 ]
	assert_has "$stderr" 'rank 1 failed first: SIGKILL'
}

# --- profiles -----------------------------------------------------------------

@test "AC-P2 without a profile nothing of it is sent" {
	tries quiet 3 --transport shm
	tries quiet 3 --transport tcp
}

# bats test_tags=sanitize
@test "AC-P3 a call of two hops has two prefixes, and the ids of who ran it" {
	tries record 3 --transport shm
	tries record 3 --transport tcp
}

@test "AC-P4 a trace is JSON, and has both sides of each call" {
	need jq
	tries record 3
	json_holds '.traceEvents | map(select(.ph == "X")) | length == 17 and
		all(.ts > 0 and .dur >= 0 and (.name | length) > 0) and
		(map(.pid) | unique == [0, 1, 2]) and
		any(.name == "rpc_sync#hop(worker0 -> worker1)" and .pid == 0) and
		any(.name == "rpc_sync#hop(worker0 -> worker1)#remote_op: hop" and .pid == 1)' trace
	json_holds '[.traceEvents[] | select(.ph == "M") | .args.name] |
		. == ["worker 0", "worker 1", "worker 2"]' trace
}

@test "AC-P5 of two profiles of a process the inner one is part of the outer" {
	# One thread: what it ran is noted before it runs what was asked next.
	tries nested 3 --transport shm --threads 1
	tries nested 3 --transport tcp --threads 1
}

# spent FILE - all instructions, and those that look whether anything is recorded.
spent()
{
	callgrind_annotate --threshold=100 --auto=no "$1" | awk '
		{ gsub(",", "", $1) }
		/PROGRAM TOTALS/ { all = $1 }
		$0 !~ /=>/ && /worker\/rpc\/prof[a-z_]*\.[ch]:/ { look += $1 }
		END { print all + 0, look + 0 }'
}

@test "AC-P10 that nothing is recorded costs less than 1 % of a call that does nothing" {
	unsanitized
	need valgrind callgrind_annotate
	for n in 0 2000; do
		job -n 1 valgrind --tool=callgrind --callgrind-out-file="ran.$n" \
			"$PROG/rpc_prof" cost "$n"
		[ "$status" -eq 0 ]
	done
	read -r all_0 look_0 < <(spent ran.0)
	read -r all look < <(spent ran.2000)
	echo "$all_0 $look_0 $all $look"
	# Each call looks, and what it looks at beside that is not counted: twice.
	[ $((look - look_0)) -ge 2000 ]
	[ $((200 * (look - look_0))) -lt $((all - all_0)) ]
}

# --- faults -------------------------------------------------------------------

# refused FAULT TEXT - the backend "faulty" does not begin with it, and says so.
refused()
{
	job -n 1 "$PROG/rpc_prof" --backend faulty --fault "$1" whole
	[ "$status" -eq 2 ]
	assert_has "$stderr" "init: XR_E_INVAL: $2"
}

@test "AC-P6 a fault of a message that there is not is refused" {
	refused fail:PIGEON:3 "fault 'fail:PIGEON:3': no message is of kind 'PIGEON'"
	job -n 1 "$PROG/rpc_prof" --backend faulty --extra messages_to_fail=PIGEON whole
	[ "$status" -eq 2 ]
	assert_has "$stderr" "XR_E_INVAL: messages_to_fail: 'PIGEON'"
}

@test "AC-P7 a delay below 0 is refused" {
	refused delay:CALL:-1 "fault 'delay:CALL:-1': '-1' is not a time"
	job -n 1 "$PROG/rpc_prof" --backend faulty --extra messages_to_delay=CALL:-1s whole
	[ "$status" -eq 2 ]
	assert_has "$stderr" "XR_E_INVAL: messages_to_delay: 'CALL:-1s'"
}

@test "AC-P9 calls are delayed by 1.5 s: a timeout of 1 s fails, the default and NEVER succeed" {
	tries delayed 2 --backend FAULTY_TENSORPIPE --fault delay:CALL:1.5 --transport shm
	tries delayed 2 --backend faulty --extra messages_to_delay=PYTHON_CALL:1.5s --transport tcp
}

@test "the first sends of each call fail with XR_E_INJECTED, and nothing is left of them" {
	for transport in shm tcp; do
		tries failed 2 --backend faulty --fault fail:CALL:3 --transport "$transport"
		tries failed 2 --backend FAULTY_TENSORPIPE --transport "$transport" \
			--extra messages_to_fail=PYTHON_CALL --extra2 num_fail_sends=3
	done
}

# bats test_tags=sanitize,keep
@test "messages come twice, late, and in another order" {
	for transport in shm tcp; do
		tries odd 2 --backend faulty --fault dup:REQUEST:1 --transport "$transport"
		for fault in reorder:REQUEST reorder:REPLY dup:REPLY delay:REPLY:10ms; do
			tries whole 2 --backend faulty --fault "$fault" --transport "$transport"
		done
	done
}

@test "what is said of faults counts with that backend alone" {
	tries whole 2 --fault fail:CALL
	job -n 2 "$PROG/rpc_prof" --backend faulty --fault fail:CALL whole
	[ "$status" -eq 2 ]
	assert_has "$stderr" 'call: XR_E_INJECTED'
}
