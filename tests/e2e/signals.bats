#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# signals.bats - how ranks may end and what xrun makes of it; what xrun does
# with signals of its own; what ranks are born with.
#
# Takes long, so it begins early.

load helper

# What takes 10 s begins with the file and is judged by its last test.
setup_file()
{
	stand_still >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- &
}

# begin COUNT ARG... - a job behind the test whose ranks say "ready", which is
# waited for COUNT times. Its stdout goes to the FIFO `pipe`, stderr to `err`.
begin()
{
	local count=$1

	shift
	mkfifo pipe
	env --default-signal=INT,QUIT "$XRUN" "$@" >pipe 2>err 3>&- &
	launched=$!
	while [ $((count--)) -gt 0 ]; do
		await_line pipe 'ready$' 10
	done
}

# ended - waits for that job; $status is its, $output what its ranks said.
ended()
{
	await_exit "$launched" 10
	status=0
	wait "$launched" || status=$?
	while IFS= read -r -t 0 -u "${await_fd[pipe]}"; do
		IFS= read -r -u "${await_fd[pipe]}" line
		printf '%s\n' "$line" >>pipe.seen
	done
	output=$(cat pipe.seen)
}

pid_of_supervisor()
{
	xruns | sed -n 's/ xrun-super$//p'
}

# ranks - the pids of this test's ranks.
ranks()
{
	pgrep -P "$(pid_of_supervisor)"
}

# all_in STATE - there are ranks, and each is in this state of ps.
all_in()
{
	[ "$(ps -o state= -p "$(ranks | paste -sd,)" 2>/dev/null | sort -u)" = "$1" ]
}

# make_listener - ./listen, a rank that says which of two signals came, and
# ends. Unlike a program in sigwaitinfo(2), it does not notice being stopped; and
# unlike one that starts others it is never in a vfork(2) that is stopped amid.
make_listener()
{
	[ -e silence ] || mkfifo silence
	cat >listen <<-'END'
		#!/bin/bash
		trap 'echo heard TERM; exit 0' TERM
		trap 'echo heard USR1; exit 0' USR1
		echo ready
		while :; do
			read -r -t 0.02 _ <>silence
		done
	END
	chmod +x listen
}

nobody_left()
{
	[ -z "$(left_behind '.*' && xruns)" ]
}

# --- how ranks end -----------------------------------------------------------

@test "rel-2 each of the 256 exit codes of a rank becomes xrun's" {
	local code status

	# Under sanitizers some, for all take the same way.
	for code in $(seq 0 ${SANITIZED:+17} 255); do
		status=0
		"$XRUN" "$PROG/die" --exit "$code" 2>err || status=$?
		assert_eq "$status" "$code"
		[ "$code" -eq 0 ] ||
			grep -q "^xrun: rank 0 failed: exit status $code after" err
	done
}

# bats test_tags=sanitize
@test "rel-2 each signal that ends a rank becomes 128 and its number" {
	local signal status

	for signal in {1..16} {24..27} {29..31} {34..64}; do
		status=0
		"$XRUN" "$PROG/die" --signal "$signal" 2>err || status=$?
		assert_eq "$status" $((128 + signal))
		grep -qE '^xrun: rank 0 failed: (SIG|signal )' err
	done
}

@test "rel-2 signals are called by their names" {
	local name

	for name in HUP KILL BUS PIPE ALRM TERM XCPU SYS; do
		job "$PROG/die" --signal "$name"
		assert_has "$stderr" "^xrun: rank 0 failed: SIG$name after "
	done
}

@test "rel-5 ranks that ignore SIGTERM are killed, and the root cause is kept" {
	mkfifo gate
	job -n 4 --grace 300ms sh -c '
		if [ "$RANK" = 1 ]; then
			exec 5<>gate
			read -r _ <&5; read -r _ <&5; read -r _ <&5
			exit 3
		fi
		trap "" TERM
		echo >gate
		exec sleep 60'
	assert_eq "$status" 3
	assert_has "$stderr" '^xrun: rank 1 failed first: exit status 3 '
	assert_has "$stderr" '^  ranks 0, 2, 3 were stopped by xrun \(TERM, then KILL, '
}

@test "rel-5 --grace 0 kills at once" {
	job -n 4 --grace 0 sh -c '[ "$RANK" != 1 ] || exit 3; trap "" TERM; sleep 60'
	assert_eq "$status" 3
	[ -z "$(left_behind '.*')" ]
}

@test "--stop-signal is what ranks are told to stop by" {
	begin 2 -n 2 --stop-signal USR2 "$PROG/sigshow" --until USR2
	kill -TERM "$launched"
	ended
	assert_eq "$status" 143
	assert_eq "$(grep -c 'signal: USR2 ' <<<"$output")" 2
	assert_has "$(cat err)" '^xrun: SIGTERM: ranks 0, 1 were stopped by xrun \(USR2, '
}

@test "rel-7 a stopped rank hears the signal that ends the job" {
	make_listener
	begin 2 -n 2 --grace 30s ./listen
	ranks | xargs kill -STOP
	wait_for 5 all_in T
	kill -TERM "$launched"
	ended
	assert_eq "$status" 143
	assert_eq "$(grep -c 'heard TERM$' <<<"$output")" 2
}

@test "rel-7 a rank that was stopped and continued goes on" {
	make_listener
	begin 2 -n 2 ./listen
	ranks | xargs kill -STOP
	wait_for 5 all_in T
	ranks | xargs kill -CONT
	kill -USR1 "$launched"
	ended
	assert_eq "$status" 0
	assert_eq "$(grep -c 'heard USR1$' <<<"$output")" 2
	assert_eq "$(grep '^xrun' err)" ''
}

# The screen of the first Ctrl-C, while rank 0 stands still.
@test "rel-7 a stopped rank is shown as stopped" {
	local rank

	mkfifo keys
	exec {keys}<>keys
	"$PTY" -d 20 -T dumb -w 'Ctrl-C again: stop' -s '\003' -- "$XRUN" -n 2 \
		--interrupt ask --grace 5s sh -c '
		echo $$ >pid.$RANK; exec "$0" --linger 0' "$PROG/deaf" \
		<keys >screen 3>&- &
	launched=$!
	await_line screen '0. ready' 10
	await_line screen '1. ready' 10
	rank=$(cat pid.0)
	kill -STOP "$rank"
	wait_for 5 grep -q '^State:.T' "/proc/$rank/status"
	printf '\003' >&"$keys"
	await_exit "$launched" 20
	assert_has "$(plain <screen)" '^(\^C)? +rank 0 +stopped +last output'
	assert_has "$(plain <screen)" '^ +rank 1 +running +last output'
}

@test "Ctrl-C shows ranks with equal rows in one row" {
	mkfifo keys
	exec {keys}<>keys
	"$PTY" -d 20 -T dumb -w 'stopping 64 ranks' -- "$XRUN" -n 64 --grace 5s \
		sh -c ': >up.$RANK; exec sleep 60' <keys >screen 3>&- &
	launched=$!
	wait_for 20 test -e up.63
	for ((rank = 0; rank < 64; rank++)); do
		wait_for 20 test -e "up.$rank"
	done
	printf '\003' >&"$keys"
	await_exit "$launched" 20
	assert_eq "$(plain <screen | grep -cE '^(\^C)? +ranks? [0-9,-]+ ')" 1
	assert_has "$(plain <screen)" '^(\^C)? +ranks 0-63 +running +no output yet'
}

@test "rel-24 a set-user-id rank ends with the supervisor, too" {
	for_user 65534
	install -m 4755 "$PROG/deaf" deaf
	mkfifo pipe
	setpriv --reuid=65534 --clear-groups "$XRUN" -n 2 ./deaf >pipe 2>err 3>&- &
	launched=$!
	await_line pipe ready 5
	await_line pipe ready 5
	assert_eq "$(pgrep -c -f "^./deaf" -P "$(pid_of_supervisor)")" 2
	kill -KILL "$(pid_of_supervisor)"
	ended
	assert_eq "$status" 125
	assert_has "$(cat err)" '^xrun: the supervisor ended \(SIGKILL\)'
	assert_fails pgrep -f '^./deaf' -u root
}

@test "rel-24 a set-user-id rank is stopped, and its exit code is kept" {
	for_user 65534
	install -m 4755 "$PROG/die" die
	try setpriv --reuid=65534 --clear-groups "$XRUN" -n 3 --grace 5s \
		./die --rank 1 --exit 7
	assert_eq "$status" 7
	assert_has "$stderr" '^  ranks 0, 2 were stopped by xrun \(TERM, [0-9.]+ m?s\)'
}

# A program that became somebody else wholly: nothing we send reaches it.
# bats test_tags=sanitize
@test "rel-24 a rank that may not be signalled: said once, and waited for" {
	for_user 65534
	install -m 4755 "$(command -v setpriv)" become
	try setpriv --reuid=65534 --clear-groups "$XRUN" -n 2 --timeout 300ms \
		--grace 300ms sh -c '[ "$RANK" = 0 ] || exec "$@"
		exec ./become --reuid=0 --regid=0 --clear-groups sleep 2' \
		sh sleep 60
	assert_eq "$status" 124
	assert_eq "$(grep -cE '^xrun: rank 0 \(pid [0-9]+\) is another user.s by now and cannot be signalled \(Operation not permitted\)$' \
		<<<"$stderr")" 1
	assert_has "$stderr" '^xrun: --timeout reached .*: rank 1 was stopped by xrun'
}

# --- signals for xrun --------------------------------------------------------

# stops SIGNAL CODE - one of it, by kill(1), ends the job in order.
stops()
{
	begin 2 -n 2 "$PROG/sigshow" --until TERM
	kill -s "$1" "$launched"
	ended
	assert_eq "$status" "$2"
	assert_eq "$(grep -c 'signal: TERM ' <<<"$output")" 2
	assert_has "$(cat err)" "^xrun: SIG$1: ranks 0, 1 were stopped by xrun \(TERM, "
}

@test "kill -TERM of xrun stops the ranks with grace: 143" {
	stops TERM 143
}

# sleeps_below_unshare - the rank has its namespace, and a program in it.
sleeps_below_unshare()
{
	local rank

	rank=$(pgrep -x unshare -P "$(pid_of_supervisor)") &&
		pgrep -x sleep -P "$rank"
}

@test "stop: PID 1 of a PID namespace without a handler ends before --grace" {
	need_pids -fp
	mkfifo up
	"$XRUN" --grace 1000s -n 1 sh -c 'echo >up
		exec unshare -pf --kill-child sleep 1000' 2>err 3>&- &
	launched=$!
	read -r _ <up
	wait_for 10 sleeps_below_unshare
	kill -TERM "$launched"
	await_exit "$launched" 30
	status=0
	wait "$launched" || status=$?
	assert_eq "$status" 143
}

@test "stop: PID 1 of a PID namespace with a handler has all of --grace" {
	need_pids -fp
	mkfifo up go
	exec {up}<>up
	"$XRUN" --grace 1000s -n 1 unshare -pf --kill-child sh -c '
		trap "echo term >up; read -r _ <go; echo saved >saved; exit 0" TERM
		echo >up; while :; do sleep 0.1; done' 2>err 3>&- &
	launched=$!
	read -r _ <&"$up"
	kill -TERM "$launched"
	read -r _ <&"$up"
	# Longer than until the first two looks.
	sleep 2
	echo >go
	await_exit "$launched" 30
	wait "$launched" || true
	assert_eq "$(cat saved)" saved
}

# bats test_tags=sanitize
@test "stop: PID 1 in a session of its own ends before --grace" {
	need_pids -fp
	mkfifo up
	"$XRUN" --grace 1000s -n 1 sh -c 'echo >up
		exec unshare -pf --kill-child setsid -w sleep 1000' 2>err 3>&- &
	launched=$!
	read -r _ <up
	wait_for 10 sleeps_below_unshare
	kill -TERM "$launched"
	await_exit "$launched" 30
	status=0
	wait "$launched" || status=$?
	assert_eq "$status" 143
}

# The worker has lost its parent: it is no descendant of the rank's process.
# bats test_tags=sanitize
@test "stop: an orphan of the session with a handler has all of --grace" {
	need_pids -fp
	mkfifo up go
	exec {up}<>up
	"$XRUN" --grace 1000s -n 1 bash -c '
		( (trap "echo term >up; read -r _ <go; echo saved >saved; exit 0" TERM
			echo >up; while :; do sleep 0.1; done) & )
		exec unshare -pf --kill-child sleep 1000' 2>err 3>&- &
	launched=$!
	read -r _ <&"$up"
	wait_for 10 sleeps_below_unshare
	kill -TERM "$launched"
	read -r _ <&"$up"
	# Longer than until the first two looks.
	sleep 2
	echo >go
	await_exit "$launched" 30
	wait "$launched" || true
	assert_eq "$(cat saved)" saved
}

@test "kill -INT of xrun, without a terminal: 130" {
	stops INT 130
}

@test "kill -HUP of xrun: 129" {
	stops HUP 129
}

@test "kill -QUIT of xrun: 131" {
	stops QUIT 131
}

@test "kill -TERM of the whole process group is one request, not two" {
	set -m
	begin 2 -n 2 --grace 20s "$PROG/deaf" --linger 300
	set +m
	kill -TERM -- "-$launched"
	ended
	assert_eq "$status" 143
	assert_has "$(cat err)" '^xrun: SIGTERM: ranks 0, 1 were stopped by xrun \(TERM, 0\.[3-9] s\)'
}

@test "kill -TERM of the supervisor alone stops the job the same way" {
	begin 2 -n 2 "$PROG/sigshow" --until TERM
	kill -TERM "$(pid_of_supervisor)"
	ended
	assert_eq "$status" 143
}

@test "kill -USR1 and -USR2 of xrun reach the ranks, once, and the job goes on" {
	begin 2 -n 2 "$PROG/sigshow" --wait 2
	kill -USR1 "$launched"
	await_line pipe 'signal: USR1' 5
	await_line pipe 'signal: USR1' 5
	kill -USR2 "$launched"
	ended
	assert_eq "$status" 0
	assert_eq "$(grep -c 'signal: USR2 ' <<<"$output")" 2
	assert_eq "$(cat err)" ''
}

@test "rel-35 under nohup a SIGHUP is not heard" {
	mkfifo pipe
	nohup "$XRUN" -n 2 "$PROG/sigshow" --until USR1 >pipe 2>err 3>&- &
	launched=$!
	await_line pipe ready 5
	await_line pipe ready 5
	kill -HUP "$launched"
	kill -HUP "$(pid_of_supervisor)"
	kill -USR1 "$launched"
	ended
	assert_eq "$status" 0
	assert_eq "$(grep -c 'signal: HUP' <<<"$output")" 0
	assert_eq "$(grep -c 'signal: USR1' <<<"$output")" 2
}

@test "rel-34 deaths that a stopped supervisor slept through keep their order" {
	local supervisor

	mkfifo first
	begin 3 -n 3 sh -c 'echo ready
		[ "$RANK" != 1 ] || { read -r _ <first; exit 3; }
		until [ -e again ]; do sleep 0.02; done
		exit 4'
	supervisor=$(pid_of_supervisor)
	kill -STOP "$supervisor"
	echo >first
	wait_for 5 zombies "$supervisor" 1
	touch again
	wait_for 5 zombies "$supervisor" 3
	kill -CONT "$supervisor"
	ended
	assert_eq "$status" 3
	assert_has "$(cat err)" '^xrun: rank 1 failed first: exit status 3 '
}

# zombies PARENT COUNT - so many of its children are dead.
zombies()
{
	[ "$(ps -o state= --ppid "$1" | tr -cd Z | wc -c)" -eq "$2" ]
}

# bats test_tags=sanitize
@test "a signal to the group of xrun ends no rank that is being started" {
	mkfifo first
	setsid "$XRUN" -n 150 bash -c 'echo up' >first 2>job.err 3>&- &
	launched=$!
	await_line first up 10
	while kill -s VTALRM -- "-$launched" 2>/dev/null; do :; done
	status=0
	wait "$launched" || status=$?
	cat job.err
	assert_eq "$status" 0
}

is_stopped() # PID
{
	grep -qs '^State:.*T (stopped)' "/proc/$1/status"
}

@test "a stopped supervisor hears what xrun is told, and of the keeper's death" {
	local round

	for round in TERM KILL; do
		spawn job "$XRUN" --grace 300ms -n 2 sh -c '
			[ "$RANK" = 1 ] || { echo $PPID >sup; kill -s STOP $PPID; }
			exec sleep 60'
		launched=$pid
		wait_for 5 test -s sup
		wait_for 5 is_stopped "$(cat sup)"
		kill -s "$round" "$launched"
		status=0
		wait "$launched" || status=$?
		[ "$status" -eq 143 ] || [ "$round" = KILL ]
		wait_for 5 nobody_left
		rm sup
	done
}

# --- the terminal ------------------------------------------------------------

# Both ranks ignore INT and TERM; rank 0 says so when rank 1 does.
deaf_pair='
	trap "" INT TERM
	if [ "$RANK" = 1 ]; then echo >gate; else read -r _ <gate; echo ready; fi
	exec sleep 60'

# ctrl_c GOLDEN STEP... - what the terminal shows of such a job, and 130.
ctrl_c()
{
	local name=$1

	shift
	mkfifo gate
	try in_pty -d 20 -w ready "$@" -- "$XRUN" -n 2 --grace 10s sh -c "$deaf_pair"
	# The terminal's echo stands wherever it found room.
	plain <<<"$output" | sed 's/\^C//' | golden "$name"
	assert_eq "$status" 130
}

@test "rel-36 Ctrl-C three times: INT, TERM, KILL, each announced; 130" {
	ctrl_c ctrl-c-3 -s '\003' -w 'terminate now' -s '\003' -w 'kill now' \
		-s '\003'
}

@test "rel-36 Ctrl-C twice: TERM, and KILL after the grace" {
	mkfifo gate
	try in_pty -d 20 -w ready -s '\003' -w 'terminate now' -s '\003' \
		-- "$XRUN" -n 2 --grace 500ms sh -c "$deaf_pair"
	plain <<<"$output" | golden ctrl-c-2
	assert_eq "$status" 130
}

@test "rel-36 Ctrl-C once: every rank gets SIGINT, and what it says is shown" {
	mkfifo gate
	try in_pty -d 20 -w ready -s '\003' -- "$XRUN" -n 2 sh -c '
		if [ "$RANK" = 1 ]; then
			trap "exit 0" INT; echo >gate
		else
			trap "echo saving; exit 0" INT; read -r _ <gate; echo ready
		fi
		while :; do sleep 0.05; done'
	plain <<<"$output" | golden ctrl-c-1
	assert_eq "$status" 130
}

@test "rel-36 a Python program sees KeyboardInterrupt" {
	need python3
	try in_pty -d 20 -w ready -s '\003' -- "$XRUN" -n 1 python3 -c '
import time
try:
    print("ready")
    while True:
        time.sleep(0.05)
except KeyboardInterrupt:
    print("interrupted")'
	assert_eq "$status" 130
	assert_has "$(plain <<<"$output")" '^interrupted$'
}

# One Ctrl-C leaves the ranks all the time they want; whatever else ends a job
# still does. 130: the first cause stays.
after_one_ctrl_c() # STEP... -- OPTION...
{
	local begun steps=()

	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	mkfifo gate
	begun=$(now_ms)
	try in_pty -d 20 -w ready -s '\003' -w 'terminate now' "${steps[@]}" -- \
		"$XRUN" -n 2 --grace 300ms --report "$PWD/report" "$@" \
		sh -c "$deaf_pair"
	assert_eq "$status" 130
	assert_eq "$(jq -r .signal report)" SIGINT
	[ $(($(now_ms) - begun)) -lt 15000 ]
}

@test "after one Ctrl-C: TERM is heard, and ends with KILL" {
	after_one_ctrl_c -S 15 --
}

@test "after one Ctrl-C: a hang-up is heard" {
	after_one_ctrl_c -h --
	wait_for 5 nobody_left
}

@test "after one Ctrl-C: --timeout is heard" {
	after_one_ctrl_c -- --timeout 1s
}

@test "--interrupt ask: the first Ctrl-C only shows, the second stops" {
	mkfifo gate
	try in_pty -d 20 -w ready -s '\003' -w 'Ctrl-C again: stop' -s '\003' \
		-- "$XRUN" -n 2 --interrupt ask --grace 5s sh -c '
		[ "$RANK" = 0 ] || exec "$0" --linger 0 >gate
		read -r _ <gate
		exec "$0" --linger 0' "$PROG/deaf"
	plain <<<"$output" | golden ctrl-c-ask
	assert_eq "$status" 130
}

@test "Ctrl-\\ stops the job with 131" {
	try in_pty -d 20 -w ready -w ready -s '\034' -- "$XRUN" --collapse off -n 2 --grace 5s \
		"$PROG/sigshow" --wait 1
	assert_eq "$status" 131
}

@test "rel-37 Ctrl-Z stops ranks and clock, fg goes on with both" {
	# It makes no children: one stopped before its exec would hold it in D.
	mkfifo never
	cat >waiter <<-'END'
		#!/bin/bash
		echo ready
		until [ -e go ]; do
			read -r -t 0.02 _ <>never
		done
		echo finished
	END
	chmod +x waiter
	cat >script <<-'END'
		. "$1/helper.bash"
		set -m
		"$XRUN" --collapse off -n 2 --timeout 2s ./waiter
		echo "stopped: $?"
		xruns=$(xruns | cut -d' ' -f1)
		for pid in $xruns $(pgrep -x -P "${xruns//$'\n'/,}" waiter); do
			echo "state: $(ps -o comm=,state= -p "$pid" | tr -s ' ')"
		done
		timeout 2.5 tail -f /dev/null
		touch go
		fg %1
		echo "ended: $?"
	END
	try in_pty -d 20 -w ready -w ready -s '\032' -- bash --norc script "$here"
	output=$(plain <<<"$output")
	assert_has "$output" '^(\^Z)?stopped: 14[78]$'
	assert_eq "$(grep '^state: ' <<<"$output" | sort | paste -sd,)" \
		'state: waiter T,state: waiter T,state: xrun T,state: xrun-super T'
	assert_eq "$(grep -c 'finished$' <<<"$output")" 2
	assert_has "$output" '^ended: 0$'
}

@test "rel-37 a job that was stopped can be ended by kill" {
	make_listener
	# In a process group of its own: an orphaned one is not stopped.
	set -m
	begin 2 -n 2 ./listen
	set +m
	kill -TSTP "$launched"
	wait_for 5 all_in T
	kill -TERM "$launched"
	kill -CONT "$launched"
	ended
	assert_eq "$status" 143
	assert_eq "$(grep -c 'heard TERM$' <<<"$output")" 2
}

@test "rel-35 the terminal of xrun alone is closed: the ranks are stopped" {
	try in_pty -d 10 -w ready -w ready -h -- "$XRUN" --collapse off -n 2 --grace 5s \
		--report "$PWD/report" "$PROG/sigshow" --until TERM
	assert_eq "$status" 129
	wait_for 5 nobody_left
	assert_eq "$(jq -r .signal report)" SIGHUP
}

@test "rel-35 the terminal of a shell with xrun is closed: the ranks are stopped" {
	try in_pty -d 10 -w ready -w ready -h -- bash -c \
		'"$0" --collapse off -n 2 --report "$PWD/report" "$PROG/sigshow" --until TERM; :' \
		"$XRUN"
	wait_for 5 nobody_left
	wait_for 5 test -s report
	assert_eq "$(jq -r .signal report)" SIGHUP
	assert_eq "$(jq .exit report)" 129
}

@test "rel-35 the terminal is closed where SIGHUP is ignored: the job goes on" {
	# What ranks print then has nowhere to go; that must not stop them either.
	try in_pty -d 20 -w ready -w ready -h -- bash -c '
		trap "" HUP
		{
			while stty -a <&2; do sleep 0.02; done >/dev/null
			touch gone
		} &
		"$0" --collapse off -n 2 --log-dir logs sh -c "
			echo ready
			until [ -e gone ]; do sleep 0.02; done
			echo on; echo on"
		echo "status $?" >status' "$XRUN"
	assert_eq "$(cat status)" 'status 0'
	assert_eq "$(cat logs/0/rank-0001/stdout)" $'ready\non\non'
}

# --- what ranks are born with ------------------------------------------------

# born_default - $output of a rank's sigshow shows nothing odd.
born_default()
{
	assert_has "$output" '^SigBlk:.0+$'
	assert_has "$output" '^SigIgn:.0+$'
	assert_has "$output" '^SigCgt:.0+$'
}

# descriptors - those of a rank, in one line. The highest is the lifeline.
descriptors()
{
	sed -n 's/^fd: \([0-9]*\) .*/\1/p' <<<"$output" | sort -n | paste -sd' '
}

@test "rel-38 ignored and blocked signals of xrun's parent do not reach the ranks" {
	try env --ignore-signal=CHLD,HUP,PIPE,USR1,34 \
		--block-signal=INT,TERM,USR2,CHLD,40 "$XRUN" "$PROG/sigshow"
	assert_eq "$status" 0
	born_default
}

@test "rel-38 with SIGCHLD ignored exit codes are right" {
	try env --ignore-signal=CHLD "$XRUN" -n 3 "$PROG/die" --rank 2 --exit 9
	assert_eq "$status" 9
}

@test "rel-38 closed 0, 1 and 2 are never taken for something else" {
	status=0
	"$XRUN" --log-dir logs -n 2 "$PROG/sigshow" <&- >&- 2>&- || status=$?
	assert_eq "$status" 0
	output=$(cat logs/0/rank-0000/stdout)
	born_default
	assert_has "$output" '^fd: 0 /dev/null$'
	assert_eq "$(descriptors)" '0 1 2 97 1023'
	status=0
	"$XRUN" "$PROG/die" --exit 3 <&- >&- 2>&- || status=$?
	assert_eq "$status" 3
}

@test "rel-39 descriptors that xrun inherits do not reach the ranks" {
	local a b

	exec {a}<"$PROG/argshow" {b}>other 9>nine 63>high
	job -n 1 "$PROG/sigshow"
	exec {a}<&- {b}>&- 9>&- 63>&-
	assert_eq "$(descriptors)" '0 1 2 97 1023'
	try prlimit --nofile=64:64 "$XRUN" -n 1 "$PROG/sigshow"
	assert_eq "$(descriptors)" '0 1 2 63'
}

@test "a rank leads a session and a group of its own, without a terminal" {
	try in_pty -- "$XRUN" -n 1 "$PROG/sigshow"
	output=$(plain <<<"$output")
	assert_has "$output" '^terminal: none$'
	assert_eq "$(sed -n 's/^group: //p' <<<"$output")" \
		"$(sed -n 's/^pid: //p' <<<"$output")"
	assert_eq "$(sed -n 's/^session: //p' <<<"$output")" \
		"$(sed -n 's/^pid: //p' <<<"$output")"
}

@test "the umask of the caller is the ranks', and files are private all the same" {
	umask 022
	job --log-dir logs "$PROG/sigshow"
	assert_has "$output" '^umask: 022$'
	assert_eq "$(stat -c %a logs logs/0/rank-0000/stdout | paste -sd' ')" \
		'700 600'
	umask 077
	job "$PROG/sigshow"
	assert_has "$output" '^umask: 077$'
}

# --- alone in the world ------------------------------------------------------

@test "rel-62 as process 1: orphans are reaped, codes right, nothing left" {
	need_pids -fp --mount-proc
	try unshare -fp --mount-proc "$XRUN" -n 2 "$PROG/fork_away" --depth 2 \
		--width 2 --orphan --setsid --ignore-term --close
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: [0-9]+ processes outlived the ranks and were ended: fork_away '
	try unshare -fp --mount-proc "$XRUN" -n 4 "$PROG/die" --rank 3 --signal SEGV
	assert_eq "$status" 139
}

@test "rel-62 as process 1: TERM stops the job" {
	need_pids -fp --mount-proc
	mkfifo pipe
	unshare -fp --mount-proc "$XRUN" -n 2 "$PROG/sigshow" --until TERM \
		>pipe 2>err 3>&- &
	launched=$!
	await_line pipe ready 5
	await_line pipe ready 5
	kill -TERM "$(pgrep -x xrun -P "$launched")"
	ended
	assert_eq "$status" 143
	assert_eq "$(grep -c 'signal: TERM ' <<<"$output")" 2
}

# --- standing still ----------------------------------------------------------

# stand_still - a job whose supervisor is stopped for 10 s, while its ranks count
# on; what came of it is in the folder of this file: status, job.err, over.
stand_still()
{
	local supervisor status=0

	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR private_place
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
	begin 4 -n 4 --timeout 60s sh -c 'echo ready
		until [ -e go ]; do i=$((i + 1)); sleep 0.1; done
		echo "counted $i"'
	supervisor=$(pid_of_supervisor)
	kill -STOP "$supervisor"
	timeout 10 tail -f /dev/null || true
	kill -CONT "$supervisor"
	touch go
	ended
	echo "$status" >status
	echo over >over
}

@test "rel-34 a supervisor that was stopped for 10 s finds no fault in anybody" {
	local of=$BATS_FILE_TMPDIR

	await_file "$of/over" 30
	assert_eq "$(cat "$of/status")" 0
	assert_eq "$(cat "$of/err")" ''
	# Nobody stood still with it.
	assert_eq "$(grep -cE 'counted ([3-9][0-9]|1[0-9][0-9])$' "$of/pipe.seen")" 4
}
