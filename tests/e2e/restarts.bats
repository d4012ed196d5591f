#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A job that failed begins again; one that is told to, too.
load helper

bats_require_minimum_version 1.5.0

# up ARG... - in the background, as job "again"; its socket is there.
up()
{
	spawn one "$XRUN" --job again "$@"
	id=again
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
}

over()
{
	status=0
	wait "$pid" || status=$?
}

attempt_is()
{
	[ "$("$XRUN" ps --json "$id" | jq .attempt)" = "$1" ]
}

# events NAME FIELD - of all attempts, in one line.
events()
{
	jq -r "select(.event == \"$1\") | $2" \
		"$XDG_STATE_HOME/xrun/again/events.jsonl" | paste -sd' '
}

@test "--restarts: all ranks begin again, with a folder and number of their own" {
	need jq
	try "$XRUN" --job again --restarts 2 --report report -n 3 sh -c '
		echo "$XRUN_ATTEMPT $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS"
		echo "$TORCHELASTIC_ERROR_FILE" >&2
		[ "$XRUN_RANK" = 1 ] || exec sleep 60
		[ "$XRUN_ATTEMPT" = 2 ] || exit 7
		kill -INT $PPID; sleep 60'
	assert_eq "$status" 130
	for n in 0 1 2; do
		assert_eq "$(cat "$XDG_STATE_HOME/xrun/again/$n/rank-0001/stdout")" "$n $n of 2"
		assert_eq "$(cat "$XDG_STATE_HOME/xrun/again/$n/rank-0001/stderr")" \
			"$XDG_STATE_HOME/xrun/again/$n/rank-0001.error.json"
	done
	assert_has "$stderr" '^xrun: rank 1 failed first: exit status 7'
	assert_has "$stderr" '^xrun: restart 1 of 2: attempt 1 begins$'
	assert_has "$stderr" '^xrun: restart 2 of 2: attempt 2 begins in 1\.[01] s$'
	assert_eq "$(jq -c '[.attempt, .restarts, .exit, .reason]' report)" '[2,2,130,"signal"]'
	assert_eq "$(jq -c '.attempts | map([.attempt, .exit, .reason, .culprit])' report)" \
		'[[0,7,"failure",1],[1,7,"failure",1]]'
	assert_eq "$(events job.restart '"\(.exit) \(.culprit) \(.next)"')" '7 1 1 7 1 2'
	assert_eq "$(events job.start .attempt)" '0 1 2'
	assert_eq "$(events job.end .exit)" 130
	assert_eq "$(jq -s 'map(.seq) == [range(length)]' "$XDG_STATE_HOME/xrun/again/events.jsonl")" true
}

@test "--restarts: another xrun does not end a job that began again" {
	id=$("$XRUN" -d --restarts 1 -n 1 bash -c '[ "$XRUN_ATTEMPT" = 1 ] || exit 1
		echo ready; exec sleep 60')
	wait_for 10 grep -qs ready "$XDG_STATE_HOME/xrun/$id/1/rank-0000/stdout"
	job true
	assert_eq "$("$XRUN" ps -q)" "$id"
	try "$XRUN" stop "$id"
	assert_eq "$status: $stderr" '0: '
}

@test "--restarts: when they are used up, the job has failed, and says how often" {
	try "$XRUN" --restarts 1 -n 2 sh -c 'exit $((3 + XRUN_ATTEMPT))'
	assert_eq "$status" 4
	assert_has "$stderr" '^xrun: --restarts 1 is used up:$'
	assert_has "$stderr" '^  attempt 0: exit 3 after .*, rank [01] first$'
	assert_has "$stderr" '^  attempt 1: exit 4 after .*, rank [01] first$'
	try "$XRUN" --restarts 1 sh -c 'exit $((1 - XRUN_ATTEMPT))'
	assert_eq "$status" 0
}

@test "--restarts: what cannot be executed, was stopped or timed out is final" {
	try "$XRUN" --restarts 3 ./nosuch
	assert_eq "$status" 127
	run ! grep -Eq 'attempt|restart' <<<"$stderr"
	try "$XRUN" --restarts 3 sh -c 'nosuch'
	assert_eq "$status" 127
	run ! grep -Eq 'restart 1' <<<"$stderr"
	try "$XRUN" --restarts 3 sh -c 'kill $PPID; sleep 60'
	assert_eq "$status" 143
	run ! grep -Eq 'restart 1' <<<"$stderr"
	try "$XRUN" --restarts 3 --timeout 300ms sh -c 'echo "$XRUN_ATTEMPT"; [ $XRUN_ATTEMPT = 1 ] || exit 3; sleep 60'
	assert_eq "$status" 124
	assert_eq "$output" "$(printf '0\n1')"
}

@test "--restarts: a step beyond all before makes failures forgotten" {
	try "$XRUN" --restarts 1 bash -c '
		echo "{\"type\":\"progress\",\"step\":$XRUN_ATTEMPT}" >&97
		[ "$XRUN_ATTEMPT" = 3 ] || exit 5'
	assert_eq "$status" 0
	assert_eq "$(grep -c '^xrun: restart 1 of 1: attempt . begins' <<<"$stderr")" 3
	try "$XRUN" --restarts 1 bash -c '
		echo "{\"type\":\"progress\",\"step\":1}" >&97
		exit 5'
	assert_eq "$status" 5
	assert_has "$stderr" 'is used up'
}

@test "--restart-window: what is older is not counted" {
	try "$XRUN" --restarts 1 --restart-window 1ms sh -c '
		read -r up _ </proc/uptime
		until read -r now _ </proc/uptime && [ "$now" != "$up" ]; do :; done
		[ "$XRUN_ATTEMPT" = 3 ] || exit 5'
	assert_eq "$status" 0
	assert_eq "$(grep -c '^xrun: restart 1 of 1: attempt . begins' <<<"$stderr")" 3
}

@test "--restarts: who tells the job to end in the pause is heard at once" {
	need jq
	up --restarts 9 sh -c 'echo "here $XRUN_ATTEMPT"; exit 3'
	wait_for 10 pauses
	SECONDS=0
	"$XRUN" stop again
	over
	assert_eq "$status" 143
	[ "$SECONDS" -lt 5 ]
	[ ! -e "$XDG_RUNTIME_DIR/xrun/again" ]
	try "$XRUN" logs again
	assert_eq "$status" 0
	assert_has "$output" '^here [1-9]$'
	assert_eq "$stderr" "xrun: attempt $((${output#here } + 1)) wrote nothing; this is attempt ${output#here }"
}

pauses()
{
	[ "$("$XRUN" ps --json again | jq -r '.phase + " " + .rank[0].state')" = 'waiting new' ]
}

# bats test_tags=sanitize
@test "restart: the job begins again, on the socket that it has" {
	need jq
	up --report report -n 2 sh -c 'trap "echo saved; exit 0" TERM; echo "up $XRUN_ATTEMPT"; sleep 60 & wait'
	await_line one.out '\[1\] up 0' 5
	one=$pid
	spawn follower timeout 30 "$XRUN" logs -f again
	follower=$pid
	spawn waiter timeout 30 "$XRUN" wait again
	waiter=$pid pid=$one
	await_line follower.out '\[1\] up 0' 5
	try "$XRUN" restart again
	assert_eq "$status" 0
	wait_for 5 attempt_is 1
	await_line follower.out '\[1\] up 1' 5
	try "$XRUN" restart --json
	assert_eq "$output" '{"job":"again"}'
	wait_for 5 attempt_is 2
	await_line follower.out '\[0\] up 2' 5
	"$XRUN" stop again
	over
	assert_eq "$status" 143
	status=0
	wait "$waiter" || status=$?
	assert_eq "$status" 143
	wait "$follower"
	assert_eq "$(grep -c saved follower.out)" 6
	assert_has "$(cat one.err)" '^xrun: restart, as asked for: attempt 1 begins$'
	assert_eq "$(jq -c '[.restarts, (.attempts | map(.reason))]' report)" '[2,["restart","restart"]]'
}

@test "restart: each attempt has the descriptors that the first one had" {
	need jq
	up -n 3 sh -c 'echo "up $XRUN_ATTEMPT"; exec sleep 60'
	await_line one.out 'up 0' 5
	"$XRUN" restart again
	await_line one.out "\[2\] up 1" 5
	before=$(descriptors)
	for n in {2..20}; do
		"$XRUN" restart again
		wait_for 5 attempt_is "$n"
		await_line one.out "\[2\] up $n" 5
	done
	wait_for 5 descriptors_are "$before"
	"$XRUN" stop again
	over
}

descriptors()
{
	find "/proc/$pid/fd" -type l | wc -l
}

descriptors_are()
{
	[ "$(descriptors)" -le "$(($1 + 6))" ]
}

@test "restart: what the old attempt left behind is ended before the new one begins" {
	up sh -c '
		[ ! -e left ] || ! kill -0 "$(cat left)" 2>/dev/null || echo "still there"
		setsid sh -c "echo \$\$ >left; echo up; sleep 60" & wait'
	await_line one.out '^up' 5
	first=$(cat left)
	"$XRUN" restart again
	wait_for 5 two_up
	run ! kill -0 "$first"
	"$XRUN" stop again
	over
	run ! grep -Eq 'still there' <<<"$(cat one.out)"
}

two_up()
{
	[ "$(grep -c ^up one.out)" = 2 ]
}

@test "restart: the supervisor of a later attempt may be killed, too" {
	need jq
	up -n 2 sh -c 'echo "up $XRUN_ATTEMPT"; exec sleep 60'
	"$XRUN" restart again
	await_line one.out '\[1\] up 1' 5
	wait_for 5 record_is 1
	kill -KILL "$(pgrep -P "$pid" xrun-super)"
	over
	assert_eq "$status" 125
	assert_has "$(cat one.err)" 'the supervisor ended \(SIGKILL\).*/again/1'
	[ ! -e "$XDG_RUNTIME_DIR/xrun/again" ]
	assert_eq "$(jq -c '[.attempt, .exit]' "$XDG_STATE_HOME/xrun/again/job.json")" '[1,125]'
}

record_is()
{
	[ "$(jq .attempt "$XDG_STATE_HOME/xrun/again/job.json")" = "$1" ]
}

@test "restart: a supervisor that cannot end by itself is killed, and no zombie" {
	need strace
	unsanitized 'a tracer beside their own'
	XRUN_FAULT='keeper.clone:delay=1s;nth=2' up --debug-faults sh -c \
		'echo "up $XRUN_ATTEMPT"; exec sleep 60'
	await_line one.out 'up 0' 5
	super=$(pgrep -P "$pid" -x xrun-super)
	# It is killed a second after its last word, and dead for who asks when its
	# tracer is done with it: before there is the next one.
	strace -qq -o trace -p "$super" -e trace=exit_group \
		-e inject=exit_group:delay_enter=1500000 3>&- &
	wait_for 10 grep -q '^TracerPid:.*[1-9]' "/proc/$super/status"
	"$XRUN" restart again
	await_line one.out 'up 1' 10
	wait "$!" || true
	wait_for 5 [ ! -e "/proc/$super" ]
	"$XRUN" stop again
	over
	assert_eq "$status" 143
}

@test "restart: a stop that comes while the ranks end is the end of the job" {
	up sh -c 'trap "echo saves; sleep 1; exit 0" TERM; echo up; while :; do sleep .1; done'
	await_line one.out up 5
	"$XRUN" restart again
	await_line one.out saves 5
	"$XRUN" stop again
	over
	assert_eq "$status" 143
	run ! grep 'attempt 1' one.err
}

# undelivered FD GRACE - a job of which nobody reads stdout (1) or stderr (2): told
# to begin again, it waits for that when its rank has ended.
undelivered()
{
	mkfifo unread
	exec {r}<>unread
	spawn one sh -c "exec \"\$@\" $1>unread" - "$XRUN" --job again --grace "$2" --report report \
		sh -c "head -c 1000000 /dev/zero | tr '\0' x >&$1; echo >&$1; : >written; exec sleep 60"
	id=again
	wait_for 10 [ -e written ]
	"$XRUN" restart again
	wait_for 10 phase_is ending
}

# read_it - what nobody read, into shown; $reader ends when all is written.
read_it()
{
	exec {in}<unread {r}>&-
	cat <&"$in" >shown 3>&- &
	reader=$!
	exec {in}<&-
}

# ask_to_stop - the reply comes at once; xrun stop would wait for the end, which waits for
# the reader of what is written.
ask_to_stop()
{
	python3 - "$XDG_RUNTIME_DIR/xrun/again" >reply <<-'EOS'
		import os, socket, sys
		os.chdir(sys.argv[1])
		s = socket.socket(socket.AF_UNIX)
		s.settimeout(20)
		s.connect('control')
		s.sendall(b'{"type":"stop","id":1}\n')
		f = s.makefile()
		f.readline()
		print(f.readline())
	EOS
	assert_has "$(cat reply)" '"type":"done","id":1,"seconds":'
}

phase_is()
{
	[ "$("$XRUN" ps --json again | jq -r .phase)" = "$1" ]
}

ended_as()
{
	assert_eq "$(jq -c '[.attempt, .exit, .reason, .signal, .restarts]' report)" "$1"
	assert_eq "$(events job.stop '.reason')" "restart $(jq -r .reason report)"
	assert_eq "$(events job.end '.exit')" "$(jq -r .exit report)"
	run ! grep 'attempt 1 begins' one.err
}

@test "restart: a stop that comes while the output goes out is the end of the job" {
	need jq
	need python3
	undelivered 1 60s
	ask_to_stop
	read_it
	over
	wait "$reader"
	assert_eq "$status" 143
	assert_has "$(cat one.err)" '^xrun: SIGTERM: '
	ended_as '[0,143,"signal","SIGTERM",null]'
}

@test "restart: so is a signal" {
	need jq
	undelivered 1 60s
	kill -INT "$pid"
	over
	exec {r}>&-
	assert_eq "$status" 130
	ended_as '[0,130,"signal","SIGINT",null]'
}

@test "restart: where the next folder cannot be made, xrun has failed" {
	need jq
	up --report report sh -c 'echo up; exec sleep 60'
	await_line one.out up 5
	: >"$XDG_STATE_HOME/xrun/again/1"
	"$XRUN" restart again
	over
	assert_eq "$status" 125
	assert_has "$(cat one.err)" \
		"^xrun: the job cannot begin again: the folder of attempt 1 in $XDG_STATE_HOME/xrun/again: File exists\$"
	assert_eq "$(jq -r .error report)" \
		"the job cannot begin again: the folder of attempt 1 in $XDG_STATE_HOME/xrun/again: File exists"
	assert_eq "$(jq -c '[.attempt, .exit, .reason, .restarts]' report)" '[0,125,"xrun",null]'
	assert_eq "$(jq -c '[.exit, .reason]' "$XDG_STATE_HOME/xrun/again/job.json")" '[125,"xrun"]'
	[ ! -e "$XDG_STATE_HOME/xrun/again/2" ]
}

@test "restart: without memory for the next attempt, xrun has failed" {
	need jq
	need prlimit
	up --report report sh -c 'echo up; exec sleep 60'
	await_line one.out up 5
	prlimit --pid "$pid" --as=1:1
	"$XRUN" restart again
	over
	assert_eq "$status" 125
	assert_has "$(cat one.err)" '^xrun: the job cannot begin again: memory: Cannot allocate memory$'
}

@test "restart: a stop tells how the job ends that cannot begin again, too" {
	need jq
	need python3
	undelivered 2 60s
	: >"$XDG_STATE_HOME/xrun/again/1"
	ask_to_stop
	read_it
	over
	assert_eq "$status" 143
	wait "$reader"
	assert_has "$(tail -c 2000 shown)" '^xrun: the job cannot begin again: the folder of attempt 1 '
	ended_as '[0,143,"signal","SIGTERM",null]'
}

@test "restart: nobody waits for a reader of stderr to say that it cannot be" {
	need jq
	undelivered 2 3s
	: >"$XDG_STATE_HOME/xrun/again/1"
	await_exit "$pid" 20
	over
	exec {r}>&-
	assert_eq "$status" 125
	assert_eq "$(jq -r .reason report)" xrun
}

@test "--restarts: where the next folder cannot be made, the failure is the job's" {
	need jq
	try "$XRUN" --job again --restarts 3 sh -c \
		'mkdir "$XDG_STATE_HOME/xrun/again/1"; exit 5'
	assert_eq "$status" 5
	assert_has "$stderr" '^xrun: the job cannot begin again: the folder of attempt 1 in .*: File exists$'
	assert_eq "$(jq -c '[.attempt, .exit, .reason]' "$XDG_STATE_HOME/xrun/again/job.json")" '[0,5,"failure"]'
}

@test "--restarts: a hang-up that is ignored is ignored between attempts, too" {
	spawn one bash -c 'trap "" HUP; exec "$@"' - "$XRUN" --job again --restarts 3 sh -c \
		'echo "up $XRUN_ATTEMPT"; [ "$XRUN_ATTEMPT" = 3 ] || { kill -HUP $PPID; exit 3; }'
	over
	assert_eq "$status" 0
	assert_has "$(cat one.out)" '^up 3$'
}

@test "--restarts: --stdin all goes on where the attempt before ended" {
	mkfifo in
	exec {w}<>in
	spawn one sh -c 'exec "$@" <in' - "$XRUN" --stdin all --restarts 2 -n 2 sh -c '
		read -r x; echo "$XRUN_ATTEMPT got $x"; [ "$x" = c ] || exit 3'
	echo a >&"$w"
	await_line one.out '\] 0 got a' 10
	await_line one.err 'attempt 1 begins' 10
	echo b >&"$w"
	await_line one.out '] 1 got b' 10
	await_line one.err 'attempt 2 begins' 10
	echo c >&"$w"
	over
	assert_eq "$status" 0
	exec {w}>&-
}

@test "--restarts: hundreds of inherited descriptors are no hindrance" {
	need python3
	cat >many.py <<-'END'
		import os, subprocess, sys
		for _ in range(600):
		    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
		sys.exit(subprocess.run([sys.argv[1], "--restarts", "2", "-n", "2", "sh", "-c",
		    "exit $((2 - XRUN_ATTEMPT))"], close_fds=False).returncode)
	END
	try python3 many.py "$XRUN"
	assert_eq "$status" 0
	assert_has "$stderr" 'restart 2 of 2'
}

@test "restart: what the dead left in /dev/shm is removed, what others have is not" {
	other=/dev/shm/torch_$$_1_0
	: >"$other"
	try "$XRUN" --restarts 1 sh -c '
		[ "$XRUN_ATTEMPT" = 0 ] || exit 0
		: >"/dev/shm/torch_$$_1_0"
		: >"/dev/shm/nccl-bats$$"
		exit 3'
	mine=$(echo /dev/shm/torch_$$_*)
	rm -f "$other"
	assert_eq "$status" 0
	assert_eq "$mine" "$other"
	assert_has "$stderr" '^xrun: (2 objects|1 object) that this attempt left in /dev/shm (were|was) removed: .*nccl-bats'
	run ! compgen -G '/dev/shm/nccl-bats*'
}

@test "restart: the segment serves the next attempt" {
	need jq
	up -n 2 "$PROG/member" at 7 rest
	wait_for 5 both_are_at 7
	"$XRUN" restart again
	wait_for 5 attempt_is 1
	wait_for 5 both_are_at 7
	"$XRUN" stop again
	over
}

both_are_at()
{
	[ "$("$XRUN" ps --json again | jq -c '[.rank[].progress.step]')" = "[$1,$1]" ]
}

@test "restart: with -d, --no-logs and --pty" {
	need jq
	id=$("$XRUN" -d -n 2 sh -c 'echo "up $XRUN_ATTEMPT"; exec sleep 60')
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
	"$XRUN" restart "$id"
	wait_for 5 attempt_is 1
	assert_eq "$(jq .attempt "$XDG_STATE_HOME/xrun/$id/job.json")" 1
	"$XRUN" stop "$id"
	"$XRUN" wait "$id" || true
	assert_eq "$(jq -r .reason "$XDG_STATE_HOME/xrun/$id/job.json")" signal
	up --no-logs sh -c 'echo "up $XRUN_ATTEMPT"; exec sleep 60'
	"$XRUN" restart again
	await_line one.out 'up 1' 5
	"$XRUN" stop again
	over
	assert_eq "$status" 143
	up --pty sh -c 'test -t 1 && echo "up $XRUN_ATTEMPT"; exec sleep 60'
	"$XRUN" restart again
	await_line one.out 'up 1' 5
	"$XRUN" stop again
	over
	assert_eq "$status" 143
}
