#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gauges.bats - how the pools and queues of ranks are, and where it is shown.

load helper

setup()
{
	private_place
	need jq
}

# rests CASE [threads] - a job of a rank that has come as far as the case goes; $pid is
# its xrun.
rests()
{
	spawn one "$XRUN" --job told --report report --metrics-file told.prom \
		"$PROG/gauges" "$@"
	wait_for 30 is_ready
}

is_ready()
{
	"$XRUN" ps --json told | json_holds '.rank[0].ready == true'
}

# ends - it is stopped, and left no process.
ends()
{
	"$XRUN" stop told
	wait "$pid" || true
	nothing_left
}

# say FILTER - what of the rank is so, by jq.
say()
{
	"$XRUN" ps --json told >ps.json
	jq -c ".rank[0] | $1" ps.json
}

# is TEXT FILTER
is()
{
	[ "$(say "$2")" = "$1" ]
}

# says TEXT FILTER - the same, now.
says()
{
	assert_eq "$(say "$2")" "$1"
}

# see LINE - a line of ps, with one blank between words.
see()
{
	try "$XRUN" ps told
	# shellcheck disable=SC2154 # of try
	assert_has "$(tr -s ' ' <<<"$output")" "$1"
}

# metric LINE
metric()
{
	grep -qF "xrun_$1" told.prom
}

@test "what a pool has done is counted exactly, of processes and of threads" {
	local kind

	for kind in processes threads; do
		rests 'done' "$kind"
		wait_for 10 is 0 '.pools[0].open'
		says '["work","'"$kind"'",2,19,4,19,0,0]' '.pools[0] |
			[.name, .kind, .workers, .done, .failed, .timed, .waiting, .running]'
		says 19 '[.pools[0].times[].tasks] | add'
		says false 'has("queues")' # those of the pool are its own
		says true '.pools[0] | .p50 > 0 and .p50 <= .p99'
		says true '.pools[0] | .task_seconds > 0.02'
		says true '.pools[0] | .task_seconds == .busy_seconds'
		says true '.pools[0] | .worker_seconds > .busy_seconds'
		see '^ RANK POOL WORKERS WAITING RUNNING DONE FAILED BUSY MEAN P50 P99$'
		see '^ 0 work 2 0 0 19 4 [0-9]+% '
		ends
		metric 'pool_tasks_total{job="told",rank="0",pool="work"} 19'
		metric 'pool_task_errors_total{job="told",rank="0",pool="work"} 4'
		metric 'pool_task_seconds_bucket{job="told",rank="0",pool="work",le="+Inf"} 19'
		metric 'pool_task_seconds_count{job="told",rank="0",pool="work"} 19'
		# The longest is told, and all that are shorter are in it.
		metric 'pool_task_seconds_bucket{job="told",rank="0",pool="work",le="1099.511627776"} 19'
		if command -v promtool >/dev/null; then
			promtool check metrics <told.prom
		fi
		[ "$(jq -c '.rank[0].pools[0] | [.workers, .done, .failed]' report)" = '[0,19,4]' ]
		need_schemas
		fits ps ps.json
		fits job report
	done
}

@test "what waits and what is in hand is seen while no task ends, and that all are busy" {
	local kind

	for kind in processes threads; do
		rests busy "$kind"
		wait_for 20 is '[105,2,103,0]' '.pools[0] | [.open, .running, .waiting, .done]'
		# The start of the workers is a smaller share with time.
		wait_for 20 is true '.pools[0].busy > 0.9'
		says true '.pools[0] | .busy <= 1 and .busy_seconds > 0 and .timed == 0'
		see '^ 0 work 2 103 2 0 0 (9[0-9]|100)%$'
		ends
		# Nobody has ended them, but what they took is not taken back.
		[ "$(jq '.rank[0].pools[0] | .busy_seconds > 0 and .open == 0' report)" = true ]
	done
}

# bats test_tags=sanitize
@test "a profile has the tasks of pools, each where it ran, and how many are open" {
	local kind

	for kind in processes threads; do
		rests traced "$kind"
		json_holds '[.traceEvents[] | select(.ph == "X")] | length == 19 and
			all(.name == "pool#work: nap" and .dur >= 0) and
			([.[].tid] | unique | length) <= 3 and
			([.[] | select(.dur >= 1000)] | length) >= 14' trace
		# Nobody does two things at a time.
		json_holds '[.traceEvents[] | select(.ph == "X")] | group_by(.tid) |
			all(sort_by(.ts) | [., .[1:]] | transpose | all(.[1] == null or
				.[0].ts + .[0].dur <= .[1].ts + 2))' trace
		json_holds '[.traceEvents[] | select(.ph == "C")] | length == 19 and
			all(.name == "pool#work" and .args.open >= 0) and
			(map(.args.open) | max) >= 2' trace
		ends
	done
}

@test "parts of a loop are tasks of its pool" {
	local timed brief

	rests looped threads
	read -r timed brief <parts
	says "[$((timed + brief)),0,0,0]" '.pools[0] | [.done, .failed, .open, .running]'
	# Of what is short the time is not taken, as soon as that is known.
	says true ".pools[0] | .timed >= $timed and .timed < $timed + 100"
	says true '.pools[0] | .task_seconds >= 0.04 and .busy_seconds <= .worker_seconds'
	ends
	# One of the two is begun by the thread that called.
	rests looping threads
	wait_for 20 is '[2,2,0,0]' '.pools[0] | [.open, .running, .waiting, .done]'
	wait_for 20 is true '.pools[0].busy > 0.9'
	ends
}

# bats test_tags=sanitize
@test "a profile has how many items were in a queue, of whatever goes through it" {
	rests moved
	json_holds '[.traceEvents[] | select(.ph == "C" and .name == "queue#queue")] |
		sort_by(.ts) | .[0].args.items == 6 and .[-1].args.items == 2' trace
	json_holds '[.traceEvents[] | select(.ph == "C" and .name == "queue#queue-2")] |
		length > 10 and length < 300000 and all(.args.items | . == 0 or . == 1) and
		.[-1].args.items == 0' trace
	json_holds '[.traceEvents[] | select(.ph == "X")] | length == 0' trace
	ends
}

@test "who has nothing to do is not busy, and does not wake up to say so" {
	local kind before after rank

	for kind in processes threads; do
		rests idle "$kind"
		wait_for 30 is true '.pools[0] | .busy < 0.05 and .worker_seconds > 1'
		rank=$(say .pid)
		before=$(switches "$rank")
		pass 2
		after=$(switches "$rank")
		assert_eq "$after" "$before"
		ends
	done
}

# switches PID - how often its threads have gone to sleep.
switches()
{
	awk '/^voluntary/ { n += $2 } END { print n }' /proc/"$1"/task/*/status
}

# bats test_tags=sanitize
@test "what a pool did that was freed stays, the next one of that name counts on" {
	rests again
	says '["work",0,30,0]' '.pools[0] | [.name, .workers, .done, .open]'
	says '["work","twin","twin-2"]' '[.pools[].name]'
	says '[30,0,1]' '[.pools[].done]'
	ends
}

@test "what waits in a pool that is ended waits no more" {
	rests ended
	wait_for 10 is '[0,0,0]' '.pools[0] | [.open, .waiting, .running]'
	ends
}

@test "a task whose worker was killed failed, and its time is nobody's" {
	rests lost
	says '[2,1,1,0,0]' '.pools[0] | [.done, .failed, .timed, .running, .waiting]'
	ends
}

@test "what a rank counted that was killed is there" {
	local kind

	for kind in processes threads; do
		rm -f report
		job --job told --report report "$PROG/gauges" killed "$kind"
		[ "$status" -eq 137 ]
		[ "$(jq -c '.rank[0].pools[0] | [.name, .workers, .done, .failed, .timed, .open]' \
			report)" = '["work",0,19,4,19,0]' ]
		try "$XRUN" ps told
		assert_has "$(tr -s ' ' <<<"$output")" '^ 0 work 0 0 0 19 4 '
	done
}

# bats test_tags=sanitize
@test "a rank without a segment tells the same" {
	# shellcheck disable=SC2016 # its arguments, not ours
	spawn one "$XRUN" --job told --report report --metrics-file told.prom \
		bash -c '"$0" "$@"; exit' "$PROG/gauges" busy
	wait_for 30 is_ready
	wait_for 20 is '[105,2,103,0]' '.pools[0] | [.open, .running, .waiting, .done]'
	"$XRUN" stop told
	wait "$pid" || true
	# shellcheck disable=SC2016 # its arguments, not ours
	job --job dead --report report bash -c '"$0" "$@"; exit' "$PROG/gauges" killed
	[ "$(jq -c '.rank[0].pools[0] | [.name, .workers, .done, .failed, .timed, .open]' \
		report)" = '["work",0,19,4,19,0]' ]
	# shellcheck disable=SC2016 # its arguments, not ours
	job --job two --report report bash -c '"$0" "$@"; "$0" killed; exit' \
		"$PROG/gauges" killed
	[ "$(jq -c '.rank[0].pools[0] | [.name, .done]' report)" = '["work",19]' ]
}

# bats test_tags=sanitize
@test "memory of any kind that is sent, and whatever stands there, harms nobody" {
	need python3
	cat >sends.py <<-'EOF'
		import array, fcntl, os, socket, sys, time
		control = socket.socket(fileno=os.dup(int(os.environ["XRUN_CONTROL_FD"].split(":")[0])))
		def send(fd):
		    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd >= 0 else []
		    control.sendmsg([b'{"type":"gauges"}'], rights)
		def memory(size, byte, seals):
		    fd = os.memfd_create("m", os.MFD_ALLOW_SEALING)
		    os.write(fd, bytes([byte]) * size)
		    fcntl.fcntl(fd, 1033, seals)
		    return fd
		send(-1)
		send(os.open("/dev/null", os.O_RDWR))
		send(os.pipe()[0])
		send(memory(20480, 0xff, 0))
		send(memory(4096, 0xff, 6))
		if sys.argv[1] == "wild":
		    send(memory(20480, 0xff, 6))
		control.sendmsg([b'{"type":"ready"}'])
		time.sleep(600)
	EOF
	spawn one "$XRUN" --job told python3 sends.py tame
	wait_for 30 is_ready
	says '[false,false,false]' '[has("pools"), has("queues"), has("unlisted")]'
	ends
	spawn one "$XRUN" --job told --report report python3 sends.py wild
	wait_for 30 is_ready
	says 4294967295 .unlisted
	ends
	[ "$(jq '.rank[0].unlisted' report)" = 4294967295 ]
}

@test "how many items are in a queue is seen, whoever put them, and that it is full" {
	rests queues
	says '[["queue",8,8,9,1],["jobs",3,100,5,2],["queue-2",0,0,3,1]]' '[.queues[] |
		[.name, .items, .room, .put, .got]]'
	says false 'has("pools")'
	see '^ RANK QUEUE ITEMS ROOM PUT GOT$'
	see '^ 0 queue 8 8 9 1$'
	see '^ 0 jobs 3 100 5 2$'
	need_schemas
	fits ps ps.json
	wait_for 20 metric 'queue_items{job="told",rank="0",queue="queue"} 8'
	metric 'queue_room{job="told",rank="0",queue="queue"} 8'
	ends
	metric 'queue_put_total{job="told",rank="0",queue="jobs"} 5'
	metric 'queue_got_total{job="told",rank="0",queue="jobs"} 2'
	[ "$(jq -c '[.rank[0].queues[] | [.put, .got, .room]]' report)" = '[[9,1,0],[5,2,0],[3,1,0]]' ]
	need_schemas
	fits job report
}

@test "queues for which there is no room are said to be" {
	rests many
	says '[20,5]' '[(.queues | length), .unlisted]'
	says true '[.queues[].items] | all(. == 1)'
	see '^ 0 5 more, for which there is no room$'
	need_schemas
	fits ps ps.json
	ends
}

@test "of ranks without pools and queues nothing of it is shown" {
	spawn one "$XRUN" --job plain sleep 60
	wait_for 20 is_plain
	try "$XRUN" ps plain
	assert_eq "$status" 0
	assert_has "$output" '^job plain: running'
	refute_has "$output" 'POOL|QUEUE'
	"$XRUN" stop plain
	wait "$pid" || true
}

is_plain()
{
	"$XRUN" ps --json plain | json_holds '.rank | length == 1 and
		all(.state == "running" and (has("pools") or has("queues") or
			has("unlisted") | not))'
}
