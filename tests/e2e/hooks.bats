#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hooks.bats - faults at named points: who may ask for them, and what xrun does.
#
# Takes long, so it begins early.

load helper

# broken FAULT ARG... - a job of xrun with that fault.
broken()
{
	export XRUN_FAULT=$1
	shift
	job --debug-faults "$@"
}

@test "a fault is for who types --debug-faults, and for nobody else" {
	XRUN_FAULT=end:kill job true
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: XRUN_FAULT does nothing without --debug-faults'
	XRUN_DEBUG_FAULTS=1 XRUN_FAULT=end:kill job true
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: --debug-faults counts on the command line only'
	broken end:kill true
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: the supervisor ended \(SIGKILL\)'
}

@test "an xrun within a rank inherits no fault" {
	broken end:delay=1ms -n 1 sh -c 'env | grep XRUN_FAULT; exec "$0" echo ran' "$XRUN"
	assert_eq "$status" 0
	assert_eq "$output$stderr" ran
}

# bats test_tags=sanitize
@test "a fault that is none is refused with its word" {
	broken 'end:kill,nowhere:kill' true
	assert_eq "$status" 125
	assert_eq "$stderr" \
		"xrun: XRUN_FAULT: 'nowhere' is no point; man xrun-hacking lists them"
}

@test "xrun-hacking(7) lists every point" {
	local point

	while read -r point; do
		grep -qxF -- "|  $point" "$root/man/xrun-hacking.7.scd" ||
			echo "$point is not in the manual"
	done < <(sed -nE 's/^\tP\([A-Z_]+, "([^"]+)".*/\1/p' \
		"$root/src/base/fault.h") >missing
	assert_eq "$(cat missing)" ''
}

# agrees - the report is one object, and says how xrun ended.
agrees()
{
	assert_eq "$(jq -s 'length, .[0].exit' report | paste -sd ' ')" \
		"1 $status"
}

@test "xrun-super is killed while it says how the job ended: said once, and so it ends" {
	local at end reason n=0

	need jq
	need_schemas
	for at in report.write report.after super.end; do
		for end in true 'echo hi' 'exit 3' 'sleep 0.1; echo hi; exit 4'; do
			broken "$at:kill" --report report -n 2 sh -c "$end"
			reason=failure
			[ "$status" -ne 0 ] || reason=ok
			echo "[$status,\"$reason\",2]" >>want
			mv report "report.$((n++ + 10))"
		done
	done
	# One object in each file: so many lines, in the order of the files.
	assert_eq "$(jq -c '[.exit, .reason, (.rank | length)]' report.*)" "$(cat want)"
	fits job report.*
	# What was not begun to be told is nobody's: all of it is 125.
	for at in end events.write; do
		broken "$at:kill" --report report sh -c 'echo hi'
		assert_eq "$status" 125
		agrees
	done
}

@test "xrun-super is killed before its last words: job.json says as xrun does" {
	local end

	need jq
	need_schemas
	for end in 'echo hi' 'sleep 0.1; echo hi' 'sleep 0.1; echo hi; exit 4'; do
		broken super.end:kill --log-dir "logs$end" sh -c "$end"
		assert_eq "$(jq .exit "logs$end/job.json")" "$status"
		fits job "logs$end/job.json"
	done
	assert_eq "$status" 4
	# It had told how it began, and no more.
	broken 'state.write:kill;nth=2' --log-dir late \
		sh -c 'sleep 0.2; echo hi; exit 4'
	assert_eq "$status" 4
	assert_eq "$(jq -c '[.exit, .reason, has("end")]' late/job.json)" \
		'[4,"supervisor lost",true]'
	fits job late/job.json
}

@test "xrun-super is killed amid the report: the keeper writes the rest" {
	local first

	need jq
	mkfifo pipe
	spawn job "$XRUN" --report pipe sh -c 'exit 3' "$(head -c 100000 /dev/zero | tr '\0' x)"
	exec 5<pipe
	IFS= read -r -n 1 -u 5 first
	kill -KILL "$(supervisor)"
	{
		printf %s "$first"
		cat <&5
	} >report
	exec 5<&-
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 3
	agrees
	assert_eq "$(jq '.argv[-1] | length' report)" 100000
}

@test "a report that is appended to a file is whole as well" {
	need jq
	echo '{"exit":"before"}' >log
	status=0
	"$XRUN" --report - sh -c 'exit 3' "$(head -c 100000 /dev/zero | tr '\0' x)" \
		>>log 2>err || status=$?
	assert_eq "$(jq -c '[.exit, (.argv[-1]? | length)]' log | paste -sd ' ')" \
		'["before",0] [3,100000]'
	sed 1d log >report
	agrees
}

# A child that is gone before its number is known must be heard of all the same.
@test "rel-41 a rank that dies before its pid is recorded ends the job" {
	broken 'spawn.after:delay=100ms' -n 3 true
	assert_eq "$status" 0
	broken 'spawn.after:delay=100ms;rank=1' -n 2 "$PROG/die" --rank 1 --exit 3
	assert_eq "$status" 3
	assert_has "$stderr" '^xrun: rank 1 failed first: exit status 3'
}

@test "a rank that cannot be watched is not left alone" {
	broken 'spawn.watch:fail=ENOSPC;rank=1' --grace 300ms -n 2 \
		"$PROG/deaf"
	assert_eq "$status" 125
	assert_has "$stderr" 'rank 1 cannot be watched: No space left on device'
}

# bats test_tags=sanitize,keep
@test "rel-43 processes refused for a while are asked for again" {
	broken 'spawn.before:fail=EAGAIN;rank=1;nth=1' -n 2 echo hi
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" $'[0] hi\n[1] hi'
}

@test "rel-43 processes refused for ever: the limit is named" {
	broken 'spawn.before:fail=EAGAIN;rank=1' --grace 300ms -n 2 \
		"$PROG/deaf"
	assert_eq "$status" 125
	assert_has "$stderr" 'rank 1 could not be started: clone: .*ulimit -u'
}

@test "the keeper stands still while the job begins: nothing is lost" {
	broken 'keeper.watch:delay=300ms' -n 2 echo hi
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" $'[0] hi\n[1] hi'
}

@test "files that find no room for a second are whole" {
	broken 'move.before:fail=ENOSPC;nth=1' -n 1 echo hi
	assert_eq "$status" 0
	assert_eq "$output" hi
	assert_eq "$(cat "$XDG_STATE_HOME"/xrun/????/0/rank-0000/stdout)" hi
}

# The supervisor sleeps until the newborn is a program; who wakes that one?
@test "a rank that is stopped before its program runs is waited for no longer than needed" {
	local call

	for call in '' vfork=EPERM; do
		export XRUN_FAULT='spawn.child:stop;rank=1'
		try timeout 20 "$PROG/deny" ${call:-splice=EINVAL} -- "$XRUN" \
			--debug-faults -n 3 echo hi
		assert_eq "$status" 0
		assert_eq "$(wc -l <<<"$output")" 3
	done
}

# Everything stands still for longer than --grace, as in a suspended machine.
# is_stopped PID
is_stopped()
{
	grep -q '^State:.T' "/proc/$1/status"
}

# The rank stops its supervisor and then itself when it receives SIGTERM. It waits until the
# supervisor has stopped, which sends SIGCONT after SIGTERM. The supervisor, which is
# continued 3 s after the end of --grace, continues the rank. The answer to ps shows that its
# timer has fired: the rank has another 3 s.
@test "rel-34 who stood still with xrun has his --grace all the same" {
	local super rank go

	mkfifo go
	exec {go}<>go
	spawn job "$XRUN" --grace 4s -n 1 bash -c \
		'trap "kill -STOP $PPID
			while ! grep -q ^State:.T /proc/$PPID/status; do :; done
			kill -STOP $$; read -r _ <go; echo saved; exit 0" TERM
		mkfifo fifo; echo ready; while :; do read -rt 60 _ <>fifo; done'
	await_line job.out ready 10
	super=$(supervisor)
	rank=$(pgrep -P "$super")
	kill -TERM "$pid"
	wait_for 10 is_stopped "$rank"
	is_stopped "$super"
	pass 7
	kill -CONT "$super"
	"$XRUN" ps >/dev/null
	echo >&"$go"
	await_exit "$pid" 15
	assert_has "$(cat job.out)" '^saved$'
}

# --- what a sandbox refuses --------------------------------------------------

# sandboxed CALL ERROR - a job there ends: well, or with 125 and words.
sandboxed()
{
	try timeout 20 "$PROG/deny" "$1=$2" -- "$XRUN" -n 2 "$PROG/spew" \
		--lines 3
	if [ "$status" -eq 0 ]; then
		assert_eq "$(wc -l <<<"$output")" 6
	else
		assert_eq "$1 $status" "$1 125"
		assert_has "$stderr" '^xrun: '
	fi
	nothing_left
}

# bats test_tags=sanitize
@test "rel-60 a call that the sandbox refuses: it goes another way, or says so" {
	local call error

	for call in poll waitid ioctl epoll_wait epoll_ctl clone3 splice; do
		for error in ENOSYS EPERM; do
			sandboxed "$call" "$error"
		done
	done
}

@test "rel-60 without poll, waitid or ioctl a job ends as it does with them" {
	local call

	for call in poll waitid ioctl; do
		try timeout 20 "$PROG/deny" "$call=EPERM" -- "$XRUN" -n 2 \
			"$PROG/die" --rank 1 --exit 3 --say boo
		assert_eq "$call $status" "$call 3"
		assert_has "$stderr" '^xrun: rank 1 failed first: exit status 3'
		assert_has "$stderr" 'boo'
	done
}
