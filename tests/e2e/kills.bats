#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kills.bats - kill -9 of each process of xrun, alone and together: nobody of
# the job lives on, nothing is locked, and the files are whole. And a rank that
# not even kill -9 ends.
#
# Takes long, so it begins early.

bats_require_minimum_version 1.5.0
load helper

# What takes 30 s begins with the file and is judged by its last tests.
setup_file()
{
	unkillable >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- &
	mkdir "$BATS_FILE_TMPDIR/again"
	not_again >"$BATS_FILE_TMPDIR/again/log" 2>&1 3>&- &
}

setup()
{
	private_place
	ulimit -f 2000000
}

# supervisor - of the job whose keeper is $pid.
supervisor()
{
	pgrep -P "$pid" -x xrun-super
}

# ends CODE SECONDS - the job is over in time, with that status.
ends()
{
	local status=0

	await_exit "$pid" "$2"
	wait "$pid" || status=$?
	assert_eq "$status" "$1"
}

# nobody - no process of the job and none of xrun lives.
nobody()
{
	[ -z "$(left_behind '.*' && xruns)" ]
}

# free - each job's lock can be had, as soon as the last thread of who had it is gone,
# and xrun counts no running job.
free()
{
	local lock

	for lock in "$XDG_STATE_HOME"/xrun/????/lock; do
		[ ! -e "$lock" ] || flock -w 5 "$lock" true
	done
	run -125 "$XRUN"
	run ! grep -E '[0-9] jobs? running' <<<"$output"
}

# identical RANKS - the files begin the copies, and hold what was accepted.
identical()
{
	local pairs=() r

	for ((r = 0; r < $1; r++)); do
		pairs+=("$(printf '%s/rank-%04d/stdout' \
			"$(echo "$XDG_STATE_HOME"/xrun/????/0)" "$r")" "ref.$r.out")
	done
	"$PROG/verify" raw --killed "${pairs[@]}"
}

# family - a job of two ranks with children that nobody would miss: setsid, deaf
# to TERM, without the rank's streams.
family()
{
	spawn job "$XRUN" "$@" -n 2 "$PROG/fork_away" --depth 2 --width 2 \
		--setsid --ignore-term --close --stay --pids pids --last 60000
	await_line job.out '^\[1\] ready$' 10
	await_line job.out '^\[0\] ready$' 10
	assert_eq "$(wc -l <pids)" 12
}

none_of_pids()
{
	! xargs -n 1 kill -0 <pids 2>/dev/null
}

# --- the supervisor ---------------------------------------------------------

@test "rel-29 the supervisor is killed: ranks and descendants are gone, 125" {
	family
	kill -KILL "$(supervisor)"
	ends 125 10
	nobody
	none_of_pids
	free
	assert_has "$(cat job.err)" \
		'^xrun: the supervisor ended \(SIGKILL\): all ranks were ended with it; what they wrote is in '
}

# 1 s from the kill to the end of everything; and what xrun had made beside the
# files, sockets above all, is gone.
@test "rel-29 the supervisor is killed: all is over within 1 s" {
	local round begun took=()

	for round in 1 2 3 4 5; do
		rm -f pids job.out
		family
		begun=$(now_ms)
		kill -KILL "$(supervisor)"
		ends 125 10
		took+=($(($(now_ms) - begun)))
		nobody
		none_of_pids
	done
	mapfile -t took < <(printf '%s\n' "${took[@]}" | sort -n)
	[ "${took[2]}" -le 1000 ] || {
		echo "ms: ${took[*]}" >&2
		return 1
	}
	assert_eq "$(find "$XDG_RUNTIME_DIR" -mindepth 2)" ''
	assert_eq "$(find "$XDG_STATE_HOME" -type s)" ''
}

@test "rel-29 --no-logs: the same, and the message knows of no files" {
	family --no-logs
	kill -KILL "$(supervisor)"
	ends 125 10
	nobody
	none_of_pids
	assert_eq "$(cat job.err)" \
		'xrun: the supervisor ended (SIGKILL): all ranks were ended with it'
}

@test "rel-29 a silent job leaves no folder when its supervisor is killed" {
	spawn job "$XRUN" -n 2 "$PROG/die" --rank 5
	wait_for 10 ranks 2
	kill -KILL "$(supervisor)"
	ends 125 10
	nobody
	assert_eq "$(ls "$XDG_STATE_HOME/xrun")" ''
	assert_eq "$(cat job.err)" \
		'xrun: the supervisor ended (SIGKILL): all ranks were ended with it'
}

# ranks COUNT - so many ranks are there.
ranks()
{
	[ "$(pgrep -c -P "$(supervisor)")" = "$1" ]
}

# At any moment of the start: ranks half made, no folder, no thread yet.
@test "rel-29 the supervisor is killed while it starts 64 ranks" {
	local round

	for round in 1 2 3 4 5 6 7 8; do
		spawn job "$XRUN" -n 64 "$PROG/deaf"
		wait_for 5 supervisor >/dev/null
		for ((i = 0; i < round * 150; i++)); do :; done
		kill -KILL "$(supervisor)"
		ends 125 10
		nobody
	done
	free
}

@test "rel-34 the supervisor stands still: output waits, nobody is judged" {
	local super left

	spawn job "$XRUN" -n 4 "$PROG/spew" --lines 200000 --copy ref
	wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0003/stdout"
	super=$(supervisor)
	kill -STOP "$super"
	wait_for 10 grep -q '^State:.T' "/proc/$super/status"
	left=$(pgrep -c -P "$super")
	kill -CONT "$super"
	ends 0 20
	[ "$left" -gt 0 ]
	identical 4
	"$PROG/verify" merged --joins --ranks 4 --lines 200000 job.out
	assert_eq "$(cat job.err)" ''
}

@test "rel-34 the keeper stands still: the job does not" {
	local go

	mkfifo go
	exec {go}<>go # what is written waits for whoever opens it late
	spawn job "$XRUN" -n 2 bash -c 'echo ready; read -r _ <go; echo done'
	await_line job.out ready 10
	kill -STOP "$pid"
	wait_for 10 grep -q '^State:.T' "/proc/$pid/status"
	printf '\n\n' >&"$go"
	wait_for 10 ended
	assert_eq "$(grep -c 'done' job.out)" 2
	kill -CONT "$pid"
	ends 0 10
}

ended()
{
	grep -qs '"exit":0,"reason":"ok"' "$XDG_STATE_HOME"/xrun/????/job.json
}

# --- the keeper -------------------------------------------------------------

@test "rel-30 the keeper is killed: the ranks are stopped in order" {
	local super

	mkfifo never
	spawn job "$XRUN" -n 2 bash -c \
		'trap "echo told; exit 0" TERM; echo ready; while :; do read -r -t 60 _ <>never; done'
	await_line job.out '^\[1\] ready$' 10
	await_line job.out '^\[0\] ready$' 10
	super=$(supervisor)
	kill -KILL "$pid"
	await_exit "$super" 10
	wait_for 5 nobody
	assert_eq "$(grep -c told job.out)" 2
	assert_has "$(cat job.err)" \
		'^xrun: the process that was started as xrun was killed$'
	free
	assert_has "$(cat "$XDG_STATE_HOME"/xrun/????/job.json)" '"exit":125'
}

@test "rel-30 the keeper is killed: descendants are swept, too" {
	local super

	family --grace 200ms
	super=$(supervisor)
	kill -KILL "$pid"
	await_exit "$super" 15
	wait_for 5 nobody
	none_of_pids
	free
}

@test "rel-30 the keeper is killed under writers: files are whole" {
	local super

	spawn job "$XRUN" --grace 200ms -n 4 "$PROG/spew" --endless --copy ref
	wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0003/stdout"
	super=$(supervisor)
	kill -KILL "$pid"
	await_exit "$super" 15
	nobody
	identical 4
}

@test "rel-30 the keeper is killed, and nobody reads the output: it ends" {
	local super reader

	mkfifo job.out
	exec {reader}<>job.out
	spawn job "$XRUN" --grace 200ms -n 2 "$PROG/spew" --lines 100000
	wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0001/stdout"
	super=$(supervisor)
	kill -KILL "$pid"
	await_exit "$super" 15
	nobody
}

# --- both -------------------------------------------------------------------

@test "rel-31 both are killed at once: ranks die with them, locks are free" {
	local i super

	for i in 1 2 3 4 5; do
		spawn job "$XRUN" -n 8 "$PROG/spew" --endless --copy ref
		wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0007/stdout"
		super=$(supervisor)
		if ((i % 2)); then
			kill -KILL "$super" "$pid"
		else
			kill -KILL "$pid" "$super"
		fi
		wait_for 5 nobody
		free
		rm -rf "$XDG_STATE_HOME/xrun"
	done
	"$XRUN" -n 2 echo next
}

# --- ranks ------------------------------------------------------------------

@test "a rank is killed: it is named, the others are stopped, 137" {
	local who

	mkfifo never
	spawn job "$XRUN" -n 4 --grace 5s bash -c \
		'echo "pid $$"; trap "exit 0" TERM; while :; do read -r -t 60 _ <>never; done'
	await_line job.out '^\[2\] pid ' 10
	who=${line##* }
	kill -KILL "$who"
	ends 137 10
	assert_has "$(cat job.err)" \
		"^xrun: rank 2 failed first: SIGKILL after .* \\(pid $who\\)"
	assert_has "$(cat job.err)" 'ranks 0, 1, 3 were stopped by xrun'
	nobody
}

@test "random ranks are killed under load: always the one that was" {
	local i victim rank

	for i in 1 2 3 4 5 6; do
		rm -rf "$XDG_STATE_HOME/xrun" ref.*
		spawn job "$XRUN" -n 8 "$PROG/spew" --endless --copy ref
		wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0007/stdout"
		victim=$(pgrep -P "$(supervisor)" | shuf -n 1)
		rank=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^XRUN_RANK=//p')
		kill -KILL "$victim"
		ends 137 15
		assert_has "$(cat job.err)" "^xrun: rank $rank failed first: SIGKILL"
		identical 8
		nobody
	done
}

# --- what no signal ends ----------------------------------------------------

# hold PID - a tracer that asked to be told of its end: the kernel stops a killed
# process there, and drops every further SIGKILL until the tracer is gone, too.
# As near to a driver that never answers as one comes without such a driver.
hold()
{
	exec /usr/bin/python3 -c '
import ctypes, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
SEIZE, TRACEEXIT = 0x4206, 0x40
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if libc.ptrace(SEIZE, int(sys.argv[1]), 0, TRACEEXIT) != 0:
    sys.exit("ptrace: errno %d" % ctypes.get_errno())
print("held", flush=True)
signal.sigtimedwait([signal.SIGTERM], 100)' "$1"
}

# unkillable - a job with such a rank is told to stop; what came of it is in the
# folder of this file: status, took (ms), lives, job.err, and then over.
unkillable()
{
	local begun tracer status=0

	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR private_place
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
	spawn job "$XRUN" --grace 300ms -n 2 sh -c \
		'echo $$ >pid.$RANK; exec "$0"' "$PROG/deaf"
	await_line job.out '^\[0\] ready$' 10
	await_line job.out '^\[1\] ready$' 10
	hold "$(cat pid.0)" >held 2>&1 &
	tracer=$!
	await_line held . 10
	begun=$(now_ms)
	kill -TERM "$pid"
	await_exit "$pid" 50 || true
	echo $(($(now_ms) - begun)) >took
	! kill -0 "$(cat pid.0)" || echo yes >lives
	kill "$tracer" || true
	wait "$tracer" || true
	wait "$pid" || status=$?
	echo "$status" >status
	echo over >over
}

# not_again - the same of a process that its rank left behind, in a job that is
# told to begin again; in the folder again.
not_again()
{
	local tracer status=0

	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR/again private_place
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR/again
	spawn job "$XRUN" --job again --report report sh -c \
		'"$0" & echo $! >pid.deaf; wait' "$PROG/deaf"
	await_line job.out '^ready$' 10
	hold "$(cat pid.deaf)" >held 2>&1 &
	tracer=$!
	await_line held . 10
	wait_for 10 "$XRUN" restart again
	await_exit "$pid" 50 || true
	kill "$tracer" || true
	wait "$tracer" || true
	wait "$pid" || status=$?
	echo "$status" >status
	echo over >over
}

@test "a job of which a process cannot be ended does not begin again: 125" {
	local of=$BATS_FILE_TMPDIR/again

	need jq
	await_file "$of/over" 50
	assert_eq "$(cat "$of/held")" held
	assert_eq "$(cat "$of/status")" 125
	assert_has "$(cat "$of/job.err")" '^xrun: 1 process cannot be ended, not even with SIGKILL'
	assert_has "$(cat "$of/job.err")" \
		'^xrun: the job cannot begin again: a process of it cannot be ended$'
	assert_eq "$(jq -c '[.attempt, .exit, .reason]' "$of/report")" '[0,125,"xrun"]'
	[ ! -e "$of/state/xrun/again/1" ]
}

@test "rel-6 a rank that cannot be ended: waited for 30 s, named, 120" {
	local of=$BATS_FILE_TMPDIR who

	await_file "$of/over" 50
	assert_eq "$(cat "$of/held")" held
	assert_eq "$(cat "$of/status")" 120
	assert_eq "$(cat "$of/lives")" yes
	[ "$(cat "$of/took")" -ge 30000 ]
	[ "$(cat "$of/took")" -lt 36000 ]
	who=$(cat "$of/pid.0")
	assert_eq "$(grep -c 'cannot be ended' "$of/job.err")" 1
	assert_has "$(cat "$of/job.err")" \
		"^xrun: rank 0 \\(pid $who, state [a-zA-Z]\\) cannot be ended, not even with SIGKILL, and is left; look at: cat /proc/$who/wchan /proc/$who/stack\$"
	assert_has "$(cat "$of/job.err")" \
		'^xrun: SIGTERM: rank 1 was stopped by xrun \(TERM, then KILL, '
}
