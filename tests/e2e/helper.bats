#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# helper.bats - the helpers themselves: a helper that says yes to everything
# would make every test above it worthless.

load helper

@test "a test has places of its own and nobody's settings" {
	[ "$XDG_STATE_HOME" = "$BATS_TEST_TMPDIR/state" ]
	[ "$(stat -c %a "$XDG_RUNTIME_DIR")" = 700 ]
	export XRUN_RANKS=3 RANK=5 SLURM_JOB_ID=1
	clean_environment
	[ -z "${XRUN_RANKS+set}${RANK+set}${SLURM_JOB_ID+set}" ]
}

@test "await_line finds a line in a FIFO and keeps its place" {
	mkfifo pipe
	printf 'one\ntwo\nthree\n' >pipe 3>&- &
	await_line pipe '^t' 5
	[ "$line" = two ]
	await_line pipe '^t' 5
	[ "$line" = three ]
	[ "$(cat pipe.seen)" = "$(printf 'one\ntwo\nthree')" ]
}

@test "await_line says no when the line does not come" {
	local status=0

	mkfifo pipe
	echo other >file
	await_line pipe line 1 2>/dev/null || status=$?
	[ "$status" -eq 1 ]
	status=0
	await_line file line 1 2>/dev/null || status=$?
	[ "$status" -eq 1 ]
}

@test "await_line waits for a file that does not exist yet" {
	mkfifo go
	{ read -r _ <go; echo 'rank 0 ready' >late; } 3>&- &
	{ await_line late 'never' 1 2>/dev/null || echo >go; } 3>&-
	await_line late 'rank 0' 5
	[ "$line" = 'rank 0 ready' ]
	await_file late 5
}

@test "spawn gives the program SIGINT as a foreground job has it" {
	local status=0

	spawn one bash -c 'echo ready; exec sleep 60'
	await_line one.out ready 5
	kill -INT "$pid"
	wait "$pid" || status=$?
	[ "$status" -eq 130 ]
}

@test "await_exit and wait_for tell done from not done" {
	local status=0

	spawn one sleep 60
	await_exit "$pid" 1 || status=$?
	[ "$status" -eq 124 ]
	kill "$pid"
	await_exit "$pid" 5
	wait_for 1 true
	run wait_for 1 false
	[ "$status" -eq 1 ]
}

@test "a process left behind is found, named and ended" {
	local status=0

	XRUN_JOB="test" spawn one sleep 60
	wait_for 5 grep -qzx XRUN_JOB=test "/proc/$pid/environ"
	[[ "$(left_behind test)" == "$pid sleep sleep 60 " ]]
	[ -z "$(left_behind other)" ]
	nothing_left 2>err || status=$?
	[ "$status" -eq 1 ]
	grep -q "$pid sleep" err
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 137 ]
	nothing_left
}

@test "wait_for prints the messages of the last try only" {
	run wait_for 1 ls not-there
	[ "$status" -eq 1 ]
	assert_eq "$(grep -c 'cannot access' <<<"$output")" 1
	assert_has "$output" '^wait_for: still false: ls not-there$'
}

# holds WANT TEXT [ARG]... - json_holds ARG... ends with WANT when TEXT is its input; its
# messages are in $stderr.
holds()
{
	printf '%b' "$2" >input
	status=0
	json_holds "${@:3}" <input >out 2>err || status=$?
	stderr=$(cat err)
	[ "$status" -eq "$1" ] || { echo "$*: $status: $stderr" >&2 && return 1; }
	assert_eq "$(cat out)" ''
}

@test "json_holds is true if all results are neither false nor null" {
	need jq
	holds 0 '{"a":1}' '.a == 1'
	assert_eq "$stderr" ''
	holds 0 '0' .
	holds 0 '{"a":1}\n{"a":2}\n' '.a > 0'
	holds 0 '1\n2\n' -s '. == [1, 2]'
	holds 0 '"x y"' --arg want 'x y' '. == $want'
	holds 0 '3' --argjson want 3 --arg more x '. == $want and $more == "x"'
	echo '[1]' >one
	echo '[1, 2]' >two
	json_holds '.[0] == 1' one two
	# It leaves no file.
	assert_eq "$(ls -A)" "$(printf '%s\n' config err home input one out run state two)"
}

@test "json_holds is false for each value that is false or null, not the last only" {
	need jq
	holds 1 'false' .
	holds 1 'null' .
	holds 1 '{"a":2}\n{"a":1}\n' '.a == 1'
	holds 1 '{"a":1}\n{"a":2}\n' '.a == 1'
	assert_has "$stderr" '^json_holds: false or null among the results: true false$'
	assert_has "$stderr" '^filter: \.a == 1$'
	assert_has "$stderr" '^read from standard input:$'
	assert_has "$stderr" '^\{"a":2\}$'
	holds 1 '{"a":1}' '.b, .a'
}

@test "json_holds is false without input, without a result and for what is not JSON" {
	need jq
	holds 1 '' .
	assert_has "$stderr" '^json_holds: no input$'
	holds 1 '' -s '. == []'
	holds 1 ' \n' true
	holds 1 '1' 'select(. == 2)'
	assert_has "$stderr" '^json_holds: no result$'
	holds 1 '{"a":' .
	assert_has "$stderr" '^json_holds: jq failed$'
	assert_has "$stderr" '^\{"a":$'
	holds 1 '1\n{' .
	holds 1 '1\n\0' .
	assert_has "$stderr" '^json_holds: a zero byte is not JSON$'
	holds 1 '1' '. =='
	echo 1 >one
	: >none
	run json_holds . one none
	[ "$status" -eq 1 ]
	assert_has "$output" '^read from none:$'
	run json_holds . not-there
	[ "$status" -eq 1 ]
	holds 2 '1' -e .
	holds 2 '1' -n true
}

@test "json_holds in a condition and in a pipe does not hide a failure" {
	need jq
	if : | json_holds true 2>/dev/null; then
		return 1
	fi
	run bash -c 'source "$1/helper.bash"; set -e; json_holds . <<<null; echo more' - \
		"$BATS_TEST_DIRNAME"
	[ "$status" -eq 1 ]
	assert_has "$output" 'among the results: null$'
	refute_has "$output" '^more$'
}

@test "refute_has fails if a line fits, and if the pattern is none" {
	refute_has $'one\ntwo' '^three$'
	refute_has '' .
	run refute_has $'one\ntwo' '^two$'
	[ "$status" -eq 1 ]
	assert_has "$output" "^'\\^two\\\$' in:$"
	run refute_has one '('
	[ "$status" -eq 1 ]
}

@test "assert_fails fails if the command succeeds, and if it does not run" {
	assert_fails false
	assert_fails grep -q x /dev/null
	run assert_fails true
	[ "$status" -eq 1 ]
	assert_has "$output" '^it succeeds: true$'
	run assert_fails no-such-command
	[ "$status" -eq 1 ]
	assert_has "$output" '^it does not run \(status 127\): no-such-command$'
	run assert_fails /
	[ "$status" -eq 1 ]
}

@test "for_user: a job of another user has a runtime directory, and none in /tmp" {
	local uid=$((61000 + $$ % 1000))

	for_user "$uid"
	rm -rf "/tmp/xrun-$uid"
	setpriv --reuid="$uid" --clear-groups "$XRUN" --job one sleep 60 3>&- &
	pid=$!
	wait_for 10 [ -e "$XDG_RUNTIME_DIR/xrun/one/control" ]
	kill "$pid"
	wait "$pid" || true
	[ ! -e "/tmp/xrun-$uid" ]
}

@test "golden tells a difference and hides what may differ" {
	local here=$BATS_TEST_TMPDIR

	mkdir golden
	cp "$BATS_TEST_DIRNAME/golden.sed" .
	echo 'xrun: job JOB: rank 2: SIGSEGV after TIME (pid PID)' >golden/x
	echo 'xrun: job k7m2: rank 2: SIGSEGV after 1.8 s (pid 4711)' | golden x
	run golden x <<<'xrun: job k7m2: rank 3: SIGSEGV after 1.8 s (pid 4711)'
	[ "$status" -eq 1 ]
}

@test "pty: the command has a terminal of the size asked for" {
	run in_pty -c 100x30 -T vt100 bash -c 'stty size; echo $TERM; [ -t 1 ]'
	[ "$status" -eq 0 ]
	[ "$(plain <<<"$output")" = "$(printf '30 100\nvt100')" ]
}

@test "pty: Ctrl-C is typed when the text was seen, and the status comes back" {
	# A signal just before read(2) does not interrupt it: bash runs the trap when it returns.
	run in_pty -w ready -s '\003' -w 'got it' -- bash -c \
		'trap "echo got it; exit 9" INT; echo ready; while :; do read -r -t 0.1 _; done'
	[ "$status" -eq 9 ]
}

@test "pty: closing the terminal is a hang-up" {
	run in_pty -w ready -h -- bash -c \
		'trap "exit 11" HUP; echo ready; while :; do read -r -t 60 _; done'
	[ "$status" -eq 11 ]
}

@test "pty: what never came is named" {
	run in_pty -w never true
	[ "$status" -eq 97 ]
	assert_has "$output" "before 'never' came"
	run in_pty -d 1 -w never sleep 60
	[ "$status" -eq 124 ]
	assert_has "$output" "while 'never' was waited for"
}

@test "pty: modes that were left changed are told" {
	run in_pty -m true
	[ "$status" -eq 0 ]
	run in_pty -m stty raw
	[ "$status" -eq 98 ]
}

@test "pty: no byte of the output is missing" {
	in_pty -o record seq 20000 </dev/null >out
	seq 20000 | sed 's/$/\r/' | cmp - out
	cmp record out
}
