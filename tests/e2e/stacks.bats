#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# stacks.bats - where ranks are: xrun stacks, and --stacks-on.
#
# Takes long, so it begins early.

load helper

setup()
{
	private_place
	mkdir bin # the tools of a test's own
}

# up ARG... - a job called stands in the background that can be asked.
up()
{
	spawn one "$XRUN" --job stands "$@"
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/stands/control" ]
}

# standing COUNT - so many ranks of `stand` have said ready.
standing()
{
	[ "$(grep -c ready one.out)" -eq "$1" ]
}

# stand_up RANKS RANK - ranks of `stand`, of which RANK waits for a lock.
stand_up()
{
	up -n "$1" "$PROG/stand" "$2"
	wait_for 5 standing "$1"
}

rank_pids()
{
	"$XRUN" ps --json stands | jq '.rank[] | select(.exit == null).pid'
}

# state_of PID - R, S, T, ...
state_of()
{
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"
}

# all_go - no rank stands still, none is traced, and no tool is left.
all_go()
{
	local pid

	for pid in $(rank_pids); do
		case $(state_of "$pid") in [TtZ]) return 1 ;; esac
		grep -q '^TracerPid:	0$' "/proc/$pid/status" || return 1
	done
	! pgrep -f "$BATS_TEST_TMPDIR/bin/" >/dev/null
}

# unharmed COUNT - so many ranks live, and go on.
unharmed()
{
	wait_for 10 all_go
	assert_eq "$(rank_pids | wc -l)" "$1"
}

down()
{
	"$XRUN" stop stands
	wait "$pid" || true
	[ -z "$(left_behind '.*')" ]
}

# tool NAME - a tool of the test's own, from stdin; nothing else is found then.
tool()
{
	cat >"bin/$1"
	chmod +x "bin/$1"
}

# stacks ARG... - with the tools of the test alone.
stacks()
{
	try env PATH="$BATS_TEST_TMPDIR/bin" "$XRUN" stacks "$@"
}

@test "stacks: equal ones are one, the odd one out first" {
	need eu-stack jq
	stand_up 4 2
	try "$XRUN" stacks
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: job stands, started [0-9]+ s ago$'
	assert_has "$output" '^4 ranks in .*, by eu-stack$'
	assert_has "$(sed -n 3p <<<"$output")" \
		'^2 +1  stand +main > train > wait_for_the_lock > pthread_mutex_lock$'
	assert_has "$(sed -n 4p <<<"$output")" \
		'^0-1,3 +3  stand +main > train > wait_for_others > pause$'
	assert_has "$(sed -n 5p <<<"$output")" '^0-3 +4  stand +beside > pause$'
	assert_eq "$(wc -l <<<"$output")" 5
	unharmed 4
	try "$XRUN" stacks stan -r 1-2 --full
	assert_has "$output" '^rank 2, 1 thread of stand$'
	assert_has "$output" '^  wait_for_the_lock  stand$'
	assert_has "$output" '^  in the kernel: futex$'
	try "$XRUN" stacks --json
	json_holds '.job == "stands" and .group[0].ranks == "2" and .group[0].main and
		(.group[0].stack | endswith("pthread_mutex_lock")) and
		(.rank | length == 4) and (.rank[2].process[0] |
			.by == "eu-stack" and .depth == 0 and
			.thread[0].call == "futex" and .thread[0].group == 0)' <<<"$output"
	unharmed 4
	down
}

# bats test_tags=sanitize
@test "stacks: shells are passed over, a rank that ended is named" {
	need eu-stack jq
	up -n 3 sh -c '[ $RANK = 1 ] && exit 0; "$0" 0; :' "$PROG/stand"
	wait_for 5 standing 2
	try "$XRUN" stacks
	assert_has "$output" '^0 +1  stand +main > train > wait_for_the_lock'
	assert_has "$output" '^2 +1  stand +main > train > wait_for_others'
	assert_has "$output" '^rank 1: ended$'
	[[ $output != *' sh '* ]]
	try "$XRUN" stacks --json
	json_holds '.rank[1].ended and .rank[0].process[0].depth == 1' <<<"$output"
	try "$XRUN" stacks -r 1
	assert_eq "$status: ${output#*$'\n'}" '0: rank 1: ended'
	try "$XRUN" stacks -r 7
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: .*7'
	down
}

@test "stacks: gdb tells the same where there is no eu-stack" {
	need gdb jq
	stand_up 2 1
	ln -s "$(command -v gdb)" bin/gdb
	stacks --patience 60s
	assert_has "$output" 'by gdb$'
	assert_has "$output" '^1 +1  stand +main > train > wait_for_the_lock > pthread_mutex_lock$'
	assert_has "$output" '^0 +1  stand +main > train > wait_for_others > pause$'
	unharmed 2
	down
}

@test "stacks: without a tool there is what the kernel says" {
	need jq
	mkfifo fifo
	up -n 2 bash -c 'echo ready; read -r line <>fifo'
	wait_for 5 standing 2
	stacks
	assert_has "$output" '^0-1 +2  bash +\[read /.*/fifo, [a-z_]*pipe'
	# A folder that is not named from the root on is not looked into.
	ln -s "$PROG/hold" bin/eu-stack
	try env PATH=bin "$XRUN" stacks
	assert_has "$output" '^ranks 0-1: no stack: neither eu-stack nor gdb is installed   try: apt-get install elfutils$'
	down
}

@test "stacks: a tool that tells nothing is quoted, and the rest goes on" {
	need jq
	stand_up 2 1
	tool eu-stack <<-'EOF'
		#!/bin/sh
		echo "eu-stack: cannot: no way" >&2
		exit 2
	EOF
	stacks
	assert_eq "$status" 0
	assert_has "$output" '^1 +1  stand +\[futex'
	assert_has "$output" '^ranks 0-1: no stack: eu-stack: cannot: no way$'
	down
}

@test "stacks: a tool that hangs is killed, with all it started" {
	need jq
	stand_up 2 1
	tool eu-stack <<-EOF
		#!/bin/sh
		/bin/sleep 1000 &
		echo \$! >>$BATS_TEST_TMPDIR/sleeps
		wait
	EOF
	stacks --patience 500ms
	assert_eq "$status" 0
	assert_has "$output" '^ranks 0-1: no stack: eu-stack had no answer$'
	assert_eq "$(wc -l <sleeps)" 2
	while read -r one; do
		wait_for 10 gone "$one"
	done <sleeps
	unharmed 2
	down
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

@test "stacks: a tool that is killed leaves nobody standing still" {
	need jq
	stand_up 2 1
	cp "$PROG/hold" bin/eu-stack
	for how in seen blind; do
		HOLD=$how stacks --patience 400ms
		assert_has "$output" 'no stack: eu-stack had no answer$'
		unharmed 2
	done
	# By a person, in the midst of it.
	spawn two env HOLD=blind PATH="$BATS_TEST_TMPDIR/bin" "$XRUN" stacks --patience 60s stands
	verb=$pid
	wait_for 5 held
	kill -INT "$verb"
	status=0
	wait "$verb" || status=$?
	assert_eq "$status" 130
	unharmed 2
	"$XRUN" stop stands
	wait_for 5 gone_socket
}

@test "stacks: a tool does not outlive who asked, though he is killed" {
	need jq
	stand_up 1 0
	tool eu-stack <<-EOF
		#!/bin/sh
		echo \$\$ >$BATS_TEST_TMPDIR/asked
		exec /bin/sleep 1000
	EOF
	spawn two env PATH="$BATS_TEST_TMPDIR/bin" "$XRUN" stacks --patience 60s stands
	await_file asked 10
	kill -KILL "$pid"
	wait_for 5 gone "$(cat asked)"
	unharmed 1
	"$XRUN" stop stands
	wait_for 5 gone_socket
}

# held - there are two ranks, and a tool holds both.
held()
{
	local one pids

	mapfile -t pids < <(rank_pids)
	[ "${#pids[@]}" -eq 2 ] || return 1
	for one in "${pids[@]}"; do
		[ "$(state_of "$one")" = t ] || return 1
	done
}

gone_socket()
{
	[ ! -e "$XDG_RUNTIME_DIR/xrun/stands/control" ] && [ -z "$(xruns)" ]
}

# bats test_tags=sanitize
@test "stacks: who stood still before is looked at, and stays so" {
	need eu-stack jq
	stand_up 2 1
	"$XRUN" signal STOP stands -r 1
	one=$(rank_pids | sed -n 2p)
	wait_for 5 stands_still "$one"
	try "$XRUN" stacks --json
	json_holds '.rank[1].process[0].stopped and .group[0].ranks == "0"' <<<"$output"
	assert_has "$(jq -r '.group[].stack' <<<"$output")" 'wait_for_the_lock'
	stands_still "$one"
	cp "$PROG/hold" bin/eu-stack
	HOLD=blind stacks --patience 400ms
	wait_for 10 stands_still "$one"
	"$XRUN" signal CONT stands
	wait_for 5 all_go
	down
}

stands_still()
{
	[ "$(state_of "$1")" = T ]
}

# bats test_tags=sanitize
@test "stacks: another user's ranks are named, and what may be seen is" {
	need eu-stack setpriv
	[ "$(id -u)" = 0 ] || skip 'takes root'
	stand_up 2 1
	rank_pids | nl -v 0 >pids
	chmod 755 "$BATS_TEST_TMPDIR"
	status=0
	output=$(setpriv --reuid 65534 --clear-groups "$XRUN" stacks --pids <pids) || status=$?
	assert_eq "$status" 0
	assert_has "$output" "^ranks 0-1: no stack: it is another user's \\(uid 0\\): root may look\$"
	unharmed 2
	down
}

# bats test_tags=sanitize
@test "stacks: who is traced already, and who ends meanwhile, is named" {
	need jq
	stand_up 3 1
	mapfile -t pids < <(rank_pids)
	"$PROG/hold" -p "${pids[0]}" &
	holder=$!
	wait_for 5 is_held "${pids[0]}"
	# This one ends the last rank, as if it had ended by itself.
	tool eu-stack <<-EOF
		#!/bin/sh
		[ "\$3" = ${pids[2]} ] || exit 1
		kill -KILL ${pids[2]}
		while kill -0 ${pids[2]}; do :; done 2>/dev/null
		echo "eu-stack: no such process" >&2
		exit 1
	EOF
	printf '%s\n' "0 ${pids[0]}" "1 ${pids[1]}" "2 ${pids[2]}" \
		'3 4194303' >pids
	try env PATH="$BATS_TEST_TMPDIR/bin" /bin/sh -c "exec $XRUN stacks --pids <pids"
	kill "$holder"
	assert_eq "$status" 0
	assert_has "$output" '^rank 0: no stack: hold traces it$'
	assert_has "$output" '^rank 1: no stack: eu-stack: told nothing$'
	assert_has "$output" '^rank 2: no stack: eu-stack: no such process$'
	assert_has "$output" '^rank 3: ended$'
	wait "$pid" || status=$?
	assert_eq "$status" 137
}

is_held()
{
	[ "$(state_of "$1")" = t ]
}

# python_up - a rank that waits in Python.
python_up()
{
	cat >wait.py <<-'EOF'
		import threading

		def wait_for_ever():
		    print("ready", flush=True)
		    threading.Event().wait()

		wait_for_ever()
	EOF
	up -n 1 python3 wait.py
	wait_for 5 standing 1
}

@test "stacks: a Python rank is told by py-spy, or by gdb's extension" {
	need python3 jq
	python_up
	rank=$(rank_pids)
	tool eu-stack <<-EOF
		#!/bin/sh
		printf 'TID %s:\n#0  0x1 sem_wait - /libc.so\n#1  0x2 _PyEval_EvalFrameDefault - /python\n#2  0x3 main - /python\n' $rank
	EOF
	stacks
	assert_has "$output" '^0 +1  python3 +main > \[python\] > sem_wait$'
	assert_has "$output" '^rank 0: no functions of Python   try: pip install py-spy, or import xrun'
	tool gdb <<-EOF
		#!/bin/sh
		printf 'Thread 1 (LWP $rank):\n#0  sem_wait () from /libc.so\n#1  0x2 in main () at a.c:1\n\nThread 1 (LWP $rank):\n  File "/x/wait.py", line 5, in wait_for_ever\n'
	EOF
	rm bin/eu-stack
	stacks
	assert_has "$output" '^0 +1  python3 +wait_for_ever > main > sem_wait$'
	tool py-spy <<-EOF
		#!/bin/sh
		printf 'Thread $rank (idle): "MainThread"\n    wait (threading.py:3)\n    <module> (wait.py:7)\n'
	EOF
	rm bin/gdb
	stacks --json
	json_holds '.rank[0].process[0] | .by == "/proc" and .python_by == "py-spy" and
		.thread[0].python[1].file == "wait.py"' <<<"$output"
	assert_has "$(jq -r '.group[0].stack' <<<"$output")" '^<module> > wait'
	down
}

# bats test_tags=sanitize
@test "stacks: a rank that imported xrun.py tells of Python without any tool" {
	need python3 jq
	cat >wait.py <<-'EOF'
		import os, threading, time
		import xrun

		def wait_for_ever():
		    print("ready", flush=True)
		    # Neither is cut short by it.
		    begun = time.monotonic()
		    time.sleep(3 if os.environ["RANK"] == "1" else 1e6)
		    print("slept", time.monotonic() - begun >= 3, flush=True)
		    threading.Event().wait()

		if os.fork() == 0:
		    threading.Event().wait(1e6)
		wait_for_ever()
	EOF
	export PYTHONDONTWRITEBYTECODE=1
	up -n 2 python3 wait.py
	wait_for 5 standing 2
	for _ in 1 2 3; do
		stacks --json
		json_holds '[.rank[].process[]] | length == 4 and
			all(.by == "/proc" and .python_by == "faulthandler")' <<<"$output"
		# Rank 1 may have slept enough by now, and is elsewhere in the function.
		json_holds '[.group[] | select(.stack |
			startswith("<module> > wait_for_ever"))] |
			(map(.count) | add) == 2 and all(.main)' <<<"$output"
		json_holds '[.group[] | select(.stack | startswith("<module> > wait > "))] |
			length == 1 and .[0].ranks == "0-1"' <<<"$output"
	done
	stacks
	assert_eq "$(grep 'no stack' <<<"$output")" ''
	await_line one.out '^.1. slept True' 10
	unharmed 2
	down
}

@test "stacks: a Python rank that is runnable is given time to answer" {
	need python3 jq
	# As if the rank had a CPU twice a second only: the signal is delivered that often.
	cat >wait.py <<-'EOF'
		import signal, time
		import xrun

		print("ready", flush=True)
		while True:
		    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
		    until = time.monotonic() + 0.5
		    while time.monotonic() < until:
		        pass
		    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
	EOF
	export PYTHONDONTWRITEBYTECODE=1
	up -n 1 python3 wait.py
	wait_for 30 standing 1
	for _ in 1 2 3 4; do
		stacks --json
		json_holds '.rank[0].process[0].python_by == "faulthandler"' <<<"$output"
	done
	down
}

@test "stacks: a real Python rank, by the tools of this machine" {
	need python3 eu-stack
	python_up
	try "$XRUN" stacks
	assert_has "$output" '^0 +1  python3? +(\[python\]|main|<module>)( > |$)'
	unharmed 1
	try "$XRUN" stacks --pids
	assert_eq "$status: $stderr" '125: xrun: stacks: --pids: standard input has no line'
	try /bin/sh -c "echo 0 x | $XRUN stacks --pids"
	assert_eq "$status: $stderr" "125: xrun: --pids: '0 x' is not RANK PID"
	down
}

@test "stacks --json fits its schema, and lets nothing more through" {
	need jq
	need_schemas
	up -n 3 sh -c '[ $RANK = 1 ] && exit 0; "$0" 0; :' "$PROG/stand"
	wait_for 5 standing 2
	"$XRUN" stacks --json >one.json
	stacks --json
	echo "$output" >two.json
	echo "0 $(rank_pids | head -n 1)" | "$XRUN" stacks --pids --json >three.json
	fits stacks one.json two.json three.json
	jq '.rank[0].process[0].more = 1' one.json >more.json
	try fits stacks more.json
	assert_eq "$status" 1
	down
}

# Where schemas can be checked, they are.
fits_both()
{
	"$here/fits.py" --strict "$root/share/schema/version.json" 2>/dev/null ||
		return 0
	fits job r.json
	fits event e.jsonl
}

# bats test_tags=sanitize
@test "--stacks-on timeout: they are taken, kept and named before the end" {
	need eu-stack jq
	job --timeout 500ms --stacks-on hang,timeout --report r.json \
		--events e.jsonl --job stands \
		-n 4 "$PROG/stand" 2
	assert_eq "$status" 124
	file=$XDG_STATE_HOME/xrun/stands/0/stacks.txt
	assert_eq "$(jq -r .stacks r.json)" "$file"
	assert_has "$stderr" "^xrun: stacks of 4 ranks: .*/stands/0/stacks.txt\$"
	assert_has "$stderr" '^  rank 2 differs: main > train > wait_for_the_lock > pthread_mutex_lock; ranks 0-1, 3 wait in wait_for_others$'
	assert_has "$stderr" '^  ranks 0-1,3: main > train > wait_for_others > pause$'
	assert_has "$stderr" '^xrun: --timeout reached after'
	assert_has "$(head -n 1 "$file")" '^2.*Z --timeout: 4 ranks in'
	assert_has "$(cat "$file")" '^  wait_for_the_lock  stand$'
	json_holds -s --arg file "$file" 'map(select(.event == "job.stacks")) | length == 1
		and .[0].why == "--timeout" and .[0].ranks == 4
		and .[0].path == $file' e.jsonl
	fits_both
	try "$XRUN" events stands
	assert_has "$output" 'job.stacks +--timeout, 4 ranks: .*/stacks.txt$'
	job --timeout 300ms --stacks-on none -n 2 "$PROG/stand" 2
	assert_eq "$status" 124
	[[ $stderr != *stacks* ]]
	job --timeout 300ms --stacks-on timeout --no-logs -n 2 "$PROG/stand" 1
	assert_has "$stderr" '^xrun: stacks of 2 ranks:$'
	assert_has "$stderr" '^  1 +1  stand +main > train > wait_for_the_lock'
	job --stacks-on never true
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: --stacks-on: 'never' is not one of hang\|timeout\|crash, or none alone\$"
}

@test "--stacks-on: a silent job keeps its folder for them" {
	need eu-stack
	need jq
	job --timeout 300ms --stacks-on timeout --report r.json -n 1 sleep 100
	assert_eq "$status" 124
	assert_has "$(cat "$(jq -r .stacks r.json)")" '^0 +1  sleep '
	json_holds '.exit == 124 and .stacks != null' "$(dirname "$(jq -r .stacks r.json)")/../job.json"
}

# slow_tool [COMMAND] - an eu-stack that writes a line to the file asked, and stays. The first
# one runs COMMAND, which may name the pids $super and $keeper. What is to happen while xrun
# waits for the tool is done there: xrun waits for 2.5 s only.
slow_tool()
{
	tool eu-stack <<-EOF
		#!/bin/sh
		up() { read -r _ _ _ up _ <"/proc/\$1/stat"; }
		up \$PPID
		super=\$up
		up "\$super"
		keeper=\$up
		echo here >>$BATS_TEST_TMPDIR/asked
		if /bin/mkdir $BATS_TEST_TMPDIR/first 2>/dev/null; then
			${1:-:}
		fi
		/bin/sleep 1000
	EOF
}

# ask_slowly COMMAND ARG... - a job whose time is over, with that tool.
ask_slowly()
{
	slow_tool "$1"
	shift
	spawn one env PATH="$BATS_TEST_TMPDIR/bin" "$XRUN" --timeout 300ms \
		--stacks-on timeout --job stands "$@"
}

ended()
{
	status=0
	await_exit "$pid" 10
	wait "$pid" || status=$?
	assert_eq "$(pgrep -f "$BATS_TEST_TMPDIR/bin/")" ''
}

@test "--stacks-on: who stops the job meanwhile does not wait for a tool" {
	# shellcheck disable=SC2016 # the tool expands it
	ask_slowly 'kill "$keeper"' -n 2 "$PROG/stand" 1
	ended
	assert_eq "$status" 143
	assert_has "$(cat one.err)" '^xrun: SIGTERM: ranks 0, 1 were stopped by xrun'
	[[ $(cat one.err) != *outlived* ]]
}

@test "--stacks-on: a tool lets go of ranks that are told to end" {
	need jq
	cp "$PROG/hold" bin/eu-stack
	spawn one env HOLD=seen PATH="$BATS_TEST_TMPDIR/bin" "$XRUN" --grace 60s \
		--timeout 500ms --stacks-on timeout --job stands -n 2 "$PROG/stand" 1
	wait_for 10 held
	kill "$pid"
	ended
	assert_eq "$status" 143
	assert_has "$(cat one.err)" 'ranks 0, 1 were stopped by xrun \(TERM, [0-9.]+ m?s\)$'
}

@test "--stacks-on: a rank that fails meanwhile is the culprit, and nobody waits" {
	mkfifo go
	ask_slowly "echo >'$PWD/go'" --grace 5s -n 2 /bin/sh -c '
		[ $RANK = 1 ] || exec /bin/sleep 100
		read -r line <go; exit 3'
	ended
	assert_eq "$status" 3
	assert_has "$(cat one.err)" '^xrun: rank 1 failed first: exit status 3'
}

# bats test_tags=sanitize
@test "--stacks-on: Ctrl-C meanwhile is heard by the ranks, and then is the end" {
	slow_tool
	export PATH="$BATS_TEST_TMPDIR/bin:$PATH"
	screen -w here -s '\003' -- --grace 2s --timeout 500ms --stacks-on timeout \
		-n 2 /bin/sh -c 'trap "echo heard" INT
		[ $RANK = 1 ] || { tail -F asked 2>/dev/null & }
		while :; do sleep 0.05; done'
	assert_eq "$status" 130
	assert_has "$output" 'heard'
	assert_has "$output" '^xrun: Ctrl-C: ranks 0, 1 were stopped by xrun'
}

@test "--stacks-on: a tool that hangs does not keep the job, nor a rank standing" {
	need jq
	cp "$PROG/hold" bin/eu-stack
	job_env=(env HOLD=blind PATH="$BATS_TEST_TMPDIR/bin")
	try "${job_env[@]}" "$XRUN" --timeout 300ms --stacks-on timeout --grace 60s \
		--job stands -n 2 "$PROG/stand" 1
	assert_eq "$status" 124
	assert_has "$stderr" '^xrun: stacks of 2 ranks: '
	assert_has "$stderr" '^  rank 1: \[futex'
	assert_has "$stderr" 'stopped by xrun \(TERM, [0-9.]+ m?s\)$'
	assert_has "$(cat "$XDG_STATE_HOME/xrun/stands/0/stacks.txt")" \
		'^ranks 0-1: no stack: eu-stack had no answer$'
}

@test "--stacks-on: nothing is left when the supervisor is killed meanwhile" {
	# shellcheck disable=SC2016 # the tool expands it
	ask_slowly 'kill -KILL "$super"' -n 2 "$PROG/stand" 1
	ended
	assert_eq "$status" 125
	wait_for 5 no_tool
}

no_tool()
{
	! pgrep -f "$BATS_TEST_TMPDIR/bin/" >/dev/null
}
