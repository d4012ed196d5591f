#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks that show no sign of life are found, shown, and end the job.
#
# Takes long, so it begins early.
load helper

bats_require_minimum_version 1.5.0

@test "--hang-timeout: the rank that stopped is named, and nobody else" {
	need jq
	try "$XRUN" --job hung --hang-timeout 1s --stacks-on none --report report -n 3 bash -c '
		echo begins
		[ "$XRUN_RANK" = 1 ] && read -r _ <> <(:)
		for ((;;)); do echo tick; read -rt .2 _ <> <(:); done'
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: rank 1 hangs: no output, no progress and no processor time for 1\.[0-9] s$'
	assert_has "$stderr" '^    rank      step  last line      life   CPU  waits in$'
	assert_has "$stderr" '^  \*    1         -     1\.[0-9] s     1\.[0-9] s     0%  [a-z_]+$'
	assert_has "$stderr" '^xrun: --hang-timeout: ranks 0, 1, 2 were stopped by xrun'
	assert_eq "$(jq -c '[.exit, .reason, .hung]' report)" '[121,"hang",[1]]'
	assert_eq "$(jq -c 'select(.event == "job.hang") | [.rule, .hung, (.seconds >= 1)]' \
		"$XDG_STATE_HOME/xrun/hung/events.jsonl")" '["silent",[1],true]'
	assert_has "$("$XRUN" events hung)" '^.* job\.hang +silent, rank 1, after 1\.[0-9]+ s$'
}

# bats test_tags=sanitize
@test "-q --hang-timeout prints no report; --report and the events have it" {
	need jq
	try "$XRUN" -q --job hung --hang-timeout 1s --report report -n 2 bash -c '
		[ "$XRUN_RANK" = 1 ] && read -r _ <> <(:)
		for ((;;)); do echo tick >&2; read -rt .2 _ <> <(:); done'
	assert_eq "$status" 121
	assert_eq "$(grep -v '^\[0\].tick$' <<<"$stderr")" ''
	assert_eq "$(jq -c '[.exit, .reason, .hung]' report)" '[121,"hang",[1]]'
	assert_eq "$(jq -c 'select(.event == "job.hang") | .hung' \
		"$XDG_STATE_HOME/xrun/hung/events.jsonl")" '[1]'
}

@test "--hang-timeout: who works on and is behind hangs, and not those who wait for it" {
	need jq
	try "$XRUN" --hang-timeout 1s --stacks-on none --report report -n 3 bash -c '
		tell() { echo "{\"type\":\"progress\",\"step\":$1}" >&97; }
		for step in 1 2 3; do tell "$step"; read -rt .1 _ <> <(:); done
		[ "$XRUN_RANK" = 1 ] && for ((;;)); do :; done
		tell 4; read -r _ <> <(:)'
	assert_eq "$status" 121
	assert_eq "$(jq -c .hung report)" '[1]'
}

@test "--hang-timeout: how long those behind told nothing, whoever goes on telling" {
	need jq
	try "$XRUN" --job behind --hang-timeout 1s --heartbeat 100ms --stacks-on none --report report -n 3 bash -c '
		tell() { echo "{\"type\":\"progress\",\"step\":$1}" >&97; }
		tell 3
		[ "$XRUN_RANK" = 1 ] && for ((;;)); do :; done
		tell 4
		[ "$XRUN_RANK" = 0 ] && read -r _ <> <(:)
		for ((step = 5; ; step++)); do tell "$step"; read -rt .1 _ <> <(:); done'
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: rank 1 hangs: behind the others, and told of no progress for 1\.[0-9] s$'
	assert_eq "$(jq -c .hung report)" '[1]'
	assert_eq "$(jq -c 'select(.event == "job.hang") | [.rule, .hung, (.seconds >= 1)]' \
		"$XDG_STATE_HOME/xrun/behind/events.jsonl")" '["uneven",[1],true]'
}

@test "--hang-timeout: stacks name the place" {
	need eu-stack
	unsanitized 'ptrace and its own stacks'
	try "$XRUN" --hang-timeout 1s -n 2 bash -c '
		[ "$XRUN_RANK" = 1 ] && exec sleep 60
		for ((;;)); do echo tick; read -rt .2 _ <> <(:); done'
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: stacks of 2 ranks: .*/stacks.txt$'
	assert_has "$stderr" '^  rank 1: .*nanosleep'
}

# starred_rows - the ranks of the table in $stderr, those with a star marked.
starred_rows()
{
	sed -nE 's/^  (\*| ) +([0-9]+) +- .*/\2\1/p' <<<"$stderr" | tr -d ' ' | tr '\n' ' '
}

@test "--hang-timeout: the rank that differs is named and comes first" {
	need eu-stack
	unsanitized 'ptrace and its own stacks'
	try "$XRUN" --hang-timeout 2s --heartbeat 100ms -n 4 "$PROG/stand" 2
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: ranks 0-3 hang: '
	assert_has "$stderr" '^  rank 2 differs: main > train > wait_for_the_lock > pthread_mutex_lock; ranks 0-1, 3 wait in wait_for_others$'
	assert_has "$stderr" '^  ranks 0-1,3: main > train > wait_for_others > pause$'
	assert_eq "$(starred_rows)" '2* 0 1 3 '
	try "$XRUN" --no-logs --hang-timeout 2s --heartbeat 100ms -n 4 "$PROG/stand" 2
	assert_has "$stderr" '^  rank 2 differs: main > train > wait_for_the_lock > '
	assert_eq "$(starred_rows)" '2* 0 1 3 '
}

@test "--hang-timeout: ranks that wait in a collective operation are said to wait in its function" {
	need eu-stack
	unsanitized 'ptrace and its own stacks'
	try "$XRUN" --hang-timeout 2s --heartbeat 100ms -n 4 "$BUILD/tests/prog/coll" hang
	assert_eq "$status" 121
	assert_has "$stderr" '^  rank 2 differs: main > hang > pause; ranks 0-1, 3 wait in xr_coll_allreduce$'
	assert_has "$stderr" '^  ranks 0-1,3: main > hang > xr_coll_allreduce > '
}

@test "--hang-timeout: without stacks, the rank that sleeps elsewhere in the kernel comes first" {
	try "$XRUN" --hang-timeout 2s --heartbeat 100ms --stacks-on none -n 4 "$PROG/stand" 3
	assert_eq "$status" 121
	assert_eq "$(starred_rows)" '3* 0 1 2 '
	try "$XRUN" --hang-timeout 2s --heartbeat 100ms --stacks-on none -n 3 "$PROG/stand" 9
	assert_eq "$(starred_rows)" '0* 1* 2* '
}

@test "--hang-timeout: who works without a word does not hang" {
	try "$XRUN" --hang-timeout 700ms --heartbeat 100ms --report report -n 2 bash -c '
		end=$((SECONDS + 3)); while ((SECONDS < end)); do :; done'
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	ranks_exited_0 2
}

# one_stopped RANKS - a job of ranks that do nothing, of which rank 0 stops itself for
# longer than the time; nothing was said of it. Its pid is in $pid, that of rank 0 in
# $rank. Until rank 0 has stopped, the other uses processor time.
one_stopped()
{
	# shellcheck disable=SC2016 # the ranks' shell
	spawn one "$XRUN" --hang-timeout 600ms --heartbeat 100ms --stacks-on none --no-prefix \
		-n "$1" bash -c '
		if [ "$RANK" = 0 ]; then
			echo "$$" >pid.new && mv pid.new pid && kill -STOP "$$"
		else
			until [ -e pid ]; do :; done
			until grep -q "^State:.T" "/proc/$(<pid)/status"; do :; done
			echo waits
		fi
		read -r _ <> <(:)'
	await_file pid 5
	rank=$(<pid)
	wait_for 10 grep -q "^State:.T" "/proc/$rank/status"
	[ "$1" = 1 ] || await_line one.out '^waits$' 5
	pass 2
	kill -0 "$pid"
	assert_eq "$(cat one.err)" ''
}

@test "--hang-timeout: nor does who is stopped, until it goes on" {
	one_stopped 1
	kill -CONT "$rank"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 121
}

@test "--hang-timeout: who waits for one that is stopped does not hang, either" {
	one_stopped 2
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 143
}

@test "--hang-timeout: processor time is no excuse where all tell how far they are" {
	need jq
	try "$XRUN" --hang-timeout 700ms --heartbeat 100ms --stacks-on none --report report -n 3 bash -c '
		say() { echo "{\"type\":\"progress\",\"step\":$1}" >&97; }
		say 1; say 2; [ "$XRUN_RANK" = 2 ] || say 3
		while :; do :; done'
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: rank 2 hangs: behind the others, and told of no progress for '
	assert_has "$stderr" '^  \*    2         2 '
	assert_eq "$(jq -c .hung report)" '[2]'
	try "$XRUN" --hang-timeout 500ms --heartbeat 100ms --stacks-on none -n 2 bash -c '
		echo "{\"type\":\"progress\",\"step\":4}" >&97
		while :; do :; done'
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: ranks 0, 1 hang: nobody told of progress for 1\.[0-9] s$'
}

@test "--hang-timeout: words of ranks keep it away, whatever xrun was stopped for" {
	spawn one "$XRUN" --hang-timeout 900ms --heartbeat 100ms --stacks-on none bash -c '
		for n in {1..20}; do echo "tick $n"; read -rt .3 _ <> <(:); done; true'
	await_line one.out '^tick 3$' 5
	super=$(pgrep -P "$pid" xrun-super)
	kill -STOP "$super"
	read -rt 3 _ <> <(:) || true
	kill -CONT "$super"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 0
	assert_has "$(cat one.out)" '^tick 20$'
	assert_eq "$(cat one.err)" ''
}

# in_thread PROGRAM - a program that waits for its thread, which waits for PROGRAM.
in_thread()
{
	need python3
	try "$XRUN" --hang-timeout 700ms --heartbeat 100ms --stacks-on none --report report \
		python3 -c '
import subprocess, sys, threading
t = threading.Thread(target=lambda: subprocess.run([sys.executable, "-c", sys.argv[1]]))
t.start()
t.join()' "$1"
}

@test "--hang-timeout: what a child of another thread burns is a sign of life" {
	in_thread '
import time
end = time.monotonic() + 3
while time.monotonic() < end: pass'
	assert_eq "$status" 0
	ranks_exited_0 1
}

@test "--hang-timeout: so it is where that child rests most of the time" {
	in_thread '
import time
for n in range(30):
    now = time.process_time()
    while time.process_time() < now + .03: pass
    time.sleep(.07)'
	assert_eq "$status" 0
	ranks_exited_0 1
}

@test "--hang-timeout: who has threads and children that wait hangs" {
	need jq
	in_thread '
import time
time.sleep(60)'
	assert_eq "$status" 121
	assert_has "$stderr" '^xrun: rank 0 hangs: no output, no progress and no processor time for '
	assert_eq "$(jq -c .hung report)" '[0]'
}

@test "--hang-timeout: to be ready is no progress that must go on" {
	try "$XRUN" --hang-timeout 500ms --heartbeat 100ms --stacks-on none --report report \
		-n 2 bash -c '
		echo "{\"type\":\"ready\"}" >&97
		end=$((SECONDS + 3)); while ((SECONDS < end)); do :; done'
	assert_eq "$status" 0
	ranks_exited_0 2
}

@test "--hang-timeout: with --no-logs, whoever waits for the reader does not hang" {
	"$XRUN" --no-logs --hang-timeout 500ms --heartbeat 100ms --stacks-on none bash -c '
		for ((i = 0; i < 20000; i++)); do echo "$i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; done' |
		(read -rt 3 _ <> <(:) || true; wc -l) >lines
	assert_eq "$(cat lines)" 20000
}

# bats test_tags=sanitize
@test "D-L11 --hang-timeout and --restarts: the job begins again" {
	try "$XRUN" --hang-timeout 500ms --heartbeat 100ms --stacks-on none --restarts 1 bash -c '
		[ "$XRUN_ATTEMPT" = 1 ] || read -r _ <> <(:)'
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: rank 0 hangs: '
	assert_has "$stderr" '^xrun: restart 1 of 1: attempt 1 begins$'
}
