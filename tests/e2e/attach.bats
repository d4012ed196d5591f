#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# attach.bats - xrun attach: output of a job that runs, until it is over, and
# the keyboard of a rank that has a terminal.
#
# Takes long, so it begins early.

bats_require_minimum_version 1.5.0
load helper

# Who waits for a job's end is told a little before its processes are gone.
teardown()
{
	wait_for 10 no_xruns || true
	nothing_left
}

no_xruns()
{
	[ -z "$(xruns)" ]
}

# talker - a job left alone, whose ranks say what is written to their FIFO, and
# end with what stands behind "end"; its id is in $id.
talker()
{
	local r fd

	# Held open, so that what is said before a rank listens is not lost.
	for r in 0 1; do
		mkfifo "say.$r"
		exec {fd}<>"say.$r"
	done
	id=$("$XRUN" -d -n 2 sh -c '
		exec 3<>say.$RANK
		while read -r word <&3; do
			case $word in
			end*) exit "${word#end}" ;;
			*) echo "$word" ;;
			esac
		done')
}

# tell RANK WORD - opened without a wait for who reads.
tell()
{
	local fd

	exec {fd}<>"say.$1"
	printf '%s\n' "$2" >&"$fd"
	exec {fd}>&-
}

end_all()
{
	tell 0 "end$1"
	tell 1 "end$1"
}

has_said()
{
	grep -qx "$2" "$XDG_STATE_HOME/xrun/$id/0/rank-000$1/stdout"
}

# bats test_tags=sanitize
@test "attach: the last lines, then what comes, then the job's exit status" {
	talker
	for i in $(seq 12); do
		tell 0 "line$i"
	done
	wait_for 10 has_said 0 line12
	spawn at "$XRUN" attach "$id"
	await_line at.out '^\[0\] line12$' 10
	tell 1 later
	await_line at.out '^\[1\] later$' 10
	tell 1 end3
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 3
	assert_eq "$(head -n 1 at.out)" '[0] line3'
	assert_has "$(cat at.err)" '^xrun: rank 1 failed first: exit status 3 '
}

@test "attach: some ranks, as many lines as are wanted, no job named" {
	talker
	tell 0 zero
	tell 1 one
	tell 1 more
	wait_for 10 has_said 1 more
	wait_for 10 has_said 0 zero
	spawn at "$XRUN" attach -r 1 --tail 1
	await_line at.out more 10
	tell 0 unseen
	tell 1 seen
	await_line at.out seen 10
	end_all 0
	wait "$pid"
	assert_eq "$(cat at.out)" $'[1] more\n[1] seen'
	assert_has "$(cat at.err)" "^xrun: job $id, started [0-9]+ .* ago\$"
	assert_eq "$(wc -l <at.err)" 1
}

@test "attach: Ctrl-C leaves the job running" {
	talker
	tell 0 ready
	screen -w ready -s '\003' -- attach "$id"
	assert_eq "$status" 130
	assert_has "$output" "^(\^C)?xrun: left $id running; xrun attach $id comes back$"
	spawn at "$XRUN" attach "$id"
	await_line at.out ready 10
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 143
	end_all 0
	"$XRUN" wait "$id"
}

@test "attach: a terminal shows progress and equal lines as a direct run does" {
	id=$("$XRUN" -d -n 2 bash -c 'echo whole; printf "\rrow 1\rrow $RANK$RANK"
		until [ -e over ]; do sleep 0.01; done')
	local files=$XDG_STATE_HOME/xrun/$id/0
	wait_for 10 grep -qs 'row 00' "$files/rank-0000/stdout"
	wait_for 10 grep -qs 'row 11' "$files/rank-0001/stdout"
	rm -f "$files"/rank-*/stdout.idx # both at one time, however slow the machine is
	touch -r "$files/rank-0000/stdout" "$files/rank-0001/stdout"
	in_pty -d 20 -w 'row 00' -w 'row 11' -s '\003' -w left -- \
		"$XRUN" attach "$id" >raw </dev/null || true
	output=$("$BUILD/tests/e2e/vt" -c 80x24 <raw)
	assert_has "$output" '^0-1│ whole$'
	assert_has "$output" '^0│ row 00$'
	assert_has "$output" '^1│ row 11$'
	in_pty -d 20 -w 'row 00' -w 'row 11' -s '\003' -w left -- \
		"$XRUN" attach --collapse off "$id" >raw </dev/null || true
	assert_eq "$("$BUILD/tests/e2e/vt" -c 80x24 <raw | grep -c '^[01]│ whole$')" 2
	touch over
	"$XRUN" wait "$id"
}

# bats test_tags=sanitize
@test "attach: a job that has ended, none, one that keeps no output" {
	"$XRUN" --job over echo text
	try "$XRUN" attach over
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: over has ended   try: xrun logs over'
	try "$XRUN" attach
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: no job runs'
	spawn quiet "$XRUN" --no-logs --job quiet sh -c 'echo ready; exec sleep 60'
	await_line quiet.out ready 10
	wait_for 10 test -S "$XDG_RUNTIME_DIR/xrun/quiet/control"
	try "$XRUN" attach quiet
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: quiet keeps no output: it was started with --no-logs'
	kill "$pid"
	wait "$pid" || true
}

@test "attach: who reads no more ends it, and the job goes on" {
	talker
	tell 0 first
	wait_for 10 has_said 0 first
	spawn at sh -c '"$1" attach "$2" | head -n 1; echo "${PIPESTATUS-}"' - "$XRUN" "$id"
	await_line at.out first 10
	tell 0 second
	await_exit "$pid" 10
	"$XRUN" ps "$id" | grep -q running
	end_all 0
	"$XRUN" wait "$id"
}

# in_write PID - it waits in a call whose first argument is standard output.
in_write()
{
	grep -q '^[0-9]* 0x1 ' "/proc/$1/syscall"
}

# bats test_tags=sanitize
@test "attach: a signal ends it though nobody takes its output" {
	local hold

	id=$("$XRUN" -d sh -c 'seq 100000; exec sleep 60')
	mkfifo full
	exec {hold}<>full
	spawn at sh -c 'exec "$1" attach --tail 100000 "$2" >full' - "$XRUN" "$id"
	wait_for 10 in_write "$pid"
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 143
	assert_has "$(cat at.err)" "^xrun: left $id running"
	exec {hold}>&-
	"$XRUN" stop "$id"
}

# --- a terminal ----------------------------------------------------------------

# shell - a job of one shell at a terminal; its id is in $id.
shell()
{
	id=$("$XRUN" -d --pty sh)
	wait_for 10 prompted
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
}

prompted()
{
	[ -s "$XDG_STATE_HOME/xrun/$id/0/rank-0000/stdout" ]
}

# at STEP... - attach, on a terminal whose modes are the same afterwards.
at()
{
	screen -m -c 100x30 -w 'leaves it running' "$@" -- attach "$id"
}

@test "attach: a shell at a terminal is typed at, left, and come back to" {
	shell
	at -s 'x=4; stty size; echo $((x + 38))\n' -w '30 100' -w 42 -s '\020\021'
	assert_eq "$status" 130
	assert_has "$output" "^xrun: $id, rank 0; Ctrl-P Ctrl-Q leaves it running$"
	assert_has "$output" "^xrun: left $id running; xrun attach $id comes back$"
	# Echo, line ends, Ctrl-C for the program, another size.
	# shellcheck disable=SC2016 # for the shell there
	at -s 'echo still $x; sh -c '\''trap "echo got$((1 + 1)); exit" INT
			echo in$((2 + 2)); while :; do sleep 1; done'\''\n' \
		-w 'still 4' -w in4 -s '\003' -w got2 \
		-r 90x20 -s 'stty size; exit 7\n' -w '20 90'
	assert_eq "$status" 7
	assert_has "$output" '^xrun: rank 0 failed: exit status 7 '
}

@test "attach: the keyboard goes on with the next attempt" {
	id=$("$XRUN" -d --pty --restarts 2 -n 1 sh -c '
		echo "attempt $XRUN_ATTEMPT"
		while read -r word; do
			echo "got $word"
			[ "$word" != die ] || exit 1
		done')
	wait_for 10 prompted
	at -s 'die\n' -w 'attempt 1' -s 'two\n' -w 'got two' \
		-s 'die\n' -w 'attempt 2' -s 'three\n' -w 'got three' -s '\020\021'
	assert_eq "$status" 130
	"$XRUN" stop "$id"
}

# words RESTARTS - a job left alone that begins again when "die" comes through its
# FIFO or its terminal, and whose attempt 1 ends at once where "quick" is a file;
# its id is in $id.
words()
{
	mkfifo words
	id=$("$XRUN" -d --pty --restarts "$1" -n 1 sh -c '
		echo "attempt $XRUN_ATTEMPT"
		if [ -e quick ] && [ "$XRUN_ATTEMPT" = 1 ]; then exit 1; fi
		exec 3<>words
		(while read -r word <&3; do
			[ "$word" != die ] || kill $$
			echo "told $word"
		done) &
		while read -r word; do echo "got $word"; done')
	wait_for 10 begun 0
}

# begun ATTEMPT - its rank wrote something.
begun()
{
	[ -s "$XDG_STATE_HOME/xrun/$id/$1/rank-0000/stdout" ]
}

# typist NAME STEP... - attach on a terminal, behind the test; its pid is in
# $client, that of its terminal in $pid.
typist()
{
	local name=$1

	shift
	spawn "$name" "$PTY" -d 60 -w 'leaves it' "$@" \
		sh -c 'echo $$ >"$0.pid"; exec "$@"' "$name" "$XRUN" attach "$id"
	await_line "$name.out" 'leaves it' 10
	client=$(cat "$name.pid")
}

@test "attach: who missed an attempt sees its lines, and types in the next" {
	: >quick
	words 3
	typist at -w 'attempt 1' -w 'attempt 1' -w 'attempt 2' -w 'attempt 2' \
		-s 'two\n' -w 'got two' -s '\020\021'
	kill -STOP "$client"
	echo die >words
	wait_for 20 begun 2
	kill -CONT "$client"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 130
	assert_has "$(plain <at.out)" '^xrun: attempt 2$'
	"$XRUN" stop "$id"
}

# bats test_tags=sanitize
@test "attach: where another one types, a resize is nobody's business" {
	words 2
	typist at -w 'output alone' -w 'attempt 1' -r 90x20 -w 'told later' -s '\003' -w left
	local first=$pid held=$client

	kill -STOP "$held"
	echo die >words
	wait_for 20 begun 1
	typist second
	kill -CONT "$held"
	wait_for 10 sized "$held" '20 90'
	echo later >words
	status=0
	wait "$first" || status=$?
	assert_eq "$status" 130
	"$XRUN" stop "$id"
	wait "$pid" || true
}

# sized PID SIZE - of its terminal.
sized()
{
	[ "$(stty size -F "/proc/$1/fd/0" 2>/dev/null)" = "$2" ]
}

@test "attach: what begins like the keys that leave is typed" {
	shell
	at -s 'cat -v\n' -s '\020' -w '^P' -s 'x\020y\n' -w '^Px^Py' \
		-s '\004exit\n'
	assert_eq "$status" 0
}

# alone - keeper and supervisor of one job are all there is of xrun.
alone()
{
	[ "$(xruns | wc -l)" -eq 2 ]
}

# bats test_tags=sanitize
@test "attach: one keyboard a rank; a second one sees, and is told so" {
	shell
	spawn first "$PTY" -d 30 -w 'leaves it' -s 'echo first\n' -w 'first' \
		-w 'second' -s 'exit 5\n' "$XRUN" attach "$id"
	await_line first.out 'leaves it' 10
	await_line first.out '^first' 10
	screen -w 'its output alone' -w first -s '\003' -- attach "$id"
	assert_eq "$status" 130
	assert_has "$output" "^xrun: rank 0 of $id: somebody types there already; its output alone$"
	status=0
	screen -w first -s '\003' -- attach --no-keys "$id"
	assert_eq "$status" 130
	run ! grep -q 'output alone' <<<"$output"
	kill "$pid"
	wait "$pid" || true
	wait_for 10 alone # its client was hung up, and goes
	at -s 'echo second\n' -w second -s 'exit\n'
	assert_eq "$status" 0
}

@test "attach: a client that is killed leaves the job, and the next one types" {
	shell
	spawn first "$PTY" -d 30 -w 'leaves it' -s 'echo one\n' -w 'one' -w never \
		sh -c 'echo $$ >client; exec "$@"' - "$XRUN" attach "$id"
	await_line first.out 'leaves it' 10
	wait_for 10 has_said 0 $'one\r'
	kill -KILL "$(cat client)"
	wait "$pid" || true
	at -s 'stty -a\n' -w ' icanon' -w ' echo ' -s 'exit\n'
	assert_eq "$status" 0
}

# modes_of RANK - of its terminal: "-opost -icanon -echo", or without dashes.
modes_of()
{
	local p

	p=$("$XRUN" ps --json "$id" | jq ".rank[$1].pid")
	stty -a <"/proc/$p/fd/1" | grep -owE -e '-?(opost|icanon|echo)' | paste -sd' '
}

@test "attach: a rank at whose terminal nobody typed echoes while one does" {
	need jq
	id=$("$XRUN" -d --pty -n 3 sh -c 'echo up; exec sleep 60')
	await_line "$XDG_STATE_HOME/xrun/$id/0/rank-0002/stdout" up 10
	assert_eq "$(modes_of 2)" '-opost -icanon -echo'
	assert_eq "$(modes_of 0)" 'opost icanon echo'
	screen -m -w 'leaves it' -w up -s 'typed\n' -w typed -s '\020\021' -- \
		attach -r 2 "$id"
	assert_eq "$status" 130
	wait_for 10 untyped
	"$XRUN" stop "$id"
	"$XRUN" wait "$id" || true
}

untyped()
{
	[ "$(modes_of 2)" = '-opost -icanon -echo' ]
}

@test "attach: a rank that ends before its job takes no more keys" {
	local go0 go1

	mkfifo go.0 go.1
	exec {go0}<>go.0 {go1}<>go.1
	id=$("$XRUN" -d --pty -n 2 sh -c 'echo up; read -r x <go.$RANK; echo over')
	spawn at "$PTY" -m -d 30 -w 'leaves it' -w 'no more keys' \
		-s '\003' -w 'left' "$XRUN" attach -r 1 "$id"
	await_line at.out 'leaves it' 10
	printf '\n' >&"$go1"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 130
	assert_has "$(plain <at.out)" '^xrun: rank 1 takes no more keys; Ctrl-C leaves$'
	printf '\n' >&"$go0"
	"$XRUN" wait "$id"
}

@test "attach: the terminal of a job that was not left alone has its keyboard" {
	mkfifo go
	spawn job "$PTY" -d 30 -w ready -s 'end\n' "$XRUN" --pty -n 1 \
		sh -c 'echo ready; read -r x; echo "got $x"; read -r x <>go'
	await_line job.out ready 10
	id=$("$XRUN" ps -q)
	screen -w 'output alone' -w ready -s '\003' -- attach "$id"
	assert_eq "$status" 130
	"$XRUN" stop "$id"
	wait "$pid" || true
}

@test "--pty -d: the rank that has the input waits for it, others are at its end" {
	id=$("$XRUN" -d --pty -n 2 sh -c 'read -r x; echo "got $x, $?"')
	await_line "$XDG_STATE_HOME/xrun/$id/0/rank-0001/stdout" 'got , 1' 10
	screen -w 'leaves it' -s 'hello\n' -w 'got hello, 0' -- attach -r 0 "$id"
	assert_eq "$status" 0
	job -d --pty --stdin all -n 2 true
	assert_eq "$status" 125
}

# --- left alone ----------------------------------------------------------------

@test "a detached job goes on when the terminal that started it dies" {
	local fd status=0

	mkfifo go
	exec {fd}<>go
	in_pty -d 30 -w started -h \
		sh -c 'id=$("$1" -d -n 2 sh -c '\''echo up $$; read -r x <go; echo on$x; read -r x <go'\'')
			echo "$id" >id; echo started; sleep 60' - "$XRUN" >/dev/null || status=$?
	assert_eq "$status" 129
	id=$(cat id)
	"$XRUN" ps "$id" | grep -q running
	# From another terminal.
	screen -w 'up ' -s '\003' -- attach "$id"
	assert_eq "$status" 130
	spawn at "$PTY" -d 30 "$XRUN" attach "$id"
	await_line at.out 'up [0-9]' 10
	printf '\n\n' >&"$fd"
	await_line at.out 'on' 10
	printf '\n\n' >&"$fd"
	wait "$pid"
}

# --- the protocol --------------------------------------------------------------

# asks LINE [FD] - the answers of job $id's socket to LINE; with FD, that goes
# along.
asks()
{
	python3 - "$XDG_RUNTIME_DIR/xrun/$id/control" "$@" <<'EOF'
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.settimeout(20)
s.connect(sys.argv[1])
lines = s.makefile()
lines.readline()
fds = []
kind = sys.argv[3] if len(sys.argv) > 3 else ""
a, b = socket.socketpair()
if kind == "stream":
    fds = [b.fileno()]
elif kind == "file":
    fds = [1]
socket.send_fds(s, [(sys.argv[2] + "\n").encode()], fds)
answer = json.loads(lines.readline())
print(answer["type"], answer.get("code", ""))
if answer["type"] == "done" and kind == "stream":
    b.close()
    s.sendall(b'{"type":"resize","rows":11,"cols":22}\n')
    print(json.loads(lines.readline())["type"])
    s.sendall(b'{"type":"resize","rows":0,"cols":22}\n')
    print(json.loads(lines.readline())["code"])
    a.sendall(b"stty size; exit 9\n")
    while a.recv(1):
        pass
    print("closed")
EOF
}

@test "attach over the socket: what is refused, and what a program can do" {
	need python3
	shell
	assert_eq "$(asks '{"type":"attach","rank":0}')" 'error XR_E_INVAL'
	assert_eq "$(asks '{"type":"attach","rank":0}' file)" 'error XR_E_INVAL'
	assert_eq "$(asks '{"type":"attach","rank":1}' stream)" 'error XR_E_RANGE'
	assert_eq "$(asks '{"type":"attach"}')" 'error XR_E_PROTO'
	assert_eq "$(asks '{"type":"resize","rows":1,"cols":1}')" 'error XR_E_STATE'
	assert_eq "$(asks '{"type":"attach","rank":0}' stream)" \
		$'done \ndone\nXR_E_RANGE\nclosed'
	try "$XRUN" wait "$id"
	assert_eq "$status" 9
	grep -q '11 22' "$XDG_STATE_HOME/xrun/$id/0/rank-0000/stdout"
	talker
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
	assert_eq "$(asks '{"type":"attach","rank":0}' stream)" 'error XR_E_STATE'
	end_all 0
	"$XRUN" wait "$id"
}
