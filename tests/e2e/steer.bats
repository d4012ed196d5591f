#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# steer.bats - the control socket, and the verbs that speak through it.
#
# Takes long, so it begins early.

load helper

# up NAME ARG... - a job in the background that can be asked; its id is in $id.
up()
{
	spawn "$1" "$XRUN" "${@:2}"
	wait_for 5 any_socket
	id=$(cd "$XDG_RUNTIME_DIR/xrun" && echo *)
	id=${id##* }
}

any_socket()
{
	compgen -G "$XDG_RUNTIME_DIR/xrun/*/control" >/dev/null
}

# over - the job of $pid has ended, and so has its socket.
over()
{
	status=0
	wait "$pid" || status=$?
	assert_fails any_socket
	[ -z "$(ls "$XDG_RUNTIME_DIR/xrun")" ]
}

# talk LINE... - what the job answers to them, behind its greeting; fails without that.
talk()
{
	printf '%s\n' "$@" |
		socat -t 2 - "UNIX-CONNECT:$XDG_RUNTIME_DIR/xrun/$id/control" | {
		IFS= read -r line
		json_holds '.type == "welcome"' <<<"$line" && cat
	}
}

@test "ps tells what runs, and with -a what ran" {
	need jq
	try "$XRUN" ps
	assert_eq "$status: $output$stderr" '0: '
	job -n 2 sh -c 'echo x; exit $RANK'
	up one -n 3 sleep 60
	try "$XRUN" ps
	assert_has "$output" '^JOB +RANKS +STATE +TIME +EXIT +COMMAND$'
	assert_has "$output" "^$id +3 +running +[0-9]+ s +sleep 60\$"
	assert_eq "$(wc -l <<<"$output")" 2
	try "$XRUN" ps --all
	assert_has "$output" '^[a-z0-9]{4} +2 +failed +0 s +1 +sh -c echo x'
	assert_eq "$(wc -l <<<"$output")" 3
	try "$XRUN" ps -q
	assert_eq "$output" "$id"
	try "$XRUN" ps --json -a
	json_holds --arg id "$id" 'length == 2 and .[1].job == $id and .[1].running
		and (.[0].running | not) and .[0].exit == 1' <<<"$output"
	kill "$pid"
	over
}

@test "ps: a row is a line, whatever the command, and fits the terminal" {
	job -n 1 --job odd sh -c $'echo\t\e[31m\r\n: \u009b\u00e9'
	try "$XRUN" ps -a
	assert_eq "$(wc -l <<<"$output")" 2
	assert_has "$output" '^odd .* sh -c echo\?\?\[31m\?\?: \?\?é$'
	job -n 1 --job long true "$(printf '%0200d' 0)"
	job -n 1 --job wide true "$(printf '世%.0s' {1..99})"
	on_screen -c 60x20 -- "$XRUN" ps -a
	assert_eq "$(grep -Ec '^(odd|long|wide) ' <<<"$output")" 3
	assert_has "$output" '^long .* true 0+$'
	assert_has "$output" '^wide .* true 世+$'
	assert_eq "$(wc -L <<<"$output")" 60
	try "$XRUN" ps -a
	assert_has "$output" '^long .* true 0{200}$'
}

@test "ps JOB has a line a rank, of a job that runs and of one that ended" {
	need jq
	up one -n 2 sh -c 'echo word; [ $RANK = 1 ] || exec sleep 60; exit 0'
	wait_for 5 rank_is 1 'exit 0'
	try "$XRUN" ps "$id"
	assert_has "$output" "^job $id: running, [0-9]+ s, 2 ranks on [^ ]+\$"
	assert_eq "$(sed -n 2p <<<"$output")" \
		'  sh -c echo word; [ $RANK = 1 ] || exec sleep 60; exit 0'
	assert_has "$output" '^ RANK +PID STATE +TIME +CPU +RSS +OUT +DEVICE +STEP$'
	assert_has "$output" '^ +0 +[0-9]+ running +[0-9]+ s +[0-9]+% .* 5B +cpu$'
	assert_has "$output" '^ +1 +[0-9]+ exit 0 '
	try "$XRUN" ps --json "$id"
	json_holds '.phase == "running" and .running and .ranks == 2 and
		(.rank[0] | .state == "running" and .stdout_bytes == 5 and
		.rss_bytes > 100000 and .processes == 1) and
		.rank[1].exit == 0' <<<"$output"
	"$XRUN" stop "$id"
	over
	assert_eq "$status" 143
	try "$XRUN" ps "$id"
	assert_has "$output" "^job $id: ended with 143 \(signal\), [0-9]+ s, 2 ranks on "
	assert_has "$output" '^ +0 +[0-9]+ SIGTERM +'
	try "$XRUN" ps "$id" --json
	json_holds '.exit == 143 and (.running | not)' <<<"$output"
}

@test "ps JOB shows a rank that a signal stopped as stopped" {
	up one -n 2 sh -c 'echo $$ >pid.$RANK; exec sleep 60'
	wait_for 5 [ -s pid.0 ]
	wait_for 5 [ -s pid.1 ]
	kill -STOP "$(cat pid.1)"
	wait_for 5 rank_is 1 stopped
	rank_is 0 running
	kill -CONT "$(cat pid.1)"
	wait_for 5 rank_is 1 running
	"$XRUN" stop "$id"
	over
}

rank_is()
{
	"$XRUN" ps "$id" | grep -Eq "^ +$1 +[0-9]+ $2 "
}

@test "a job is found by the beginning of its id, if no other begins so" {
	up one --job alpha1 sleep 60
	spawn two "$XRUN" --job alpha2 sleep 60
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/alpha2/control" ]
	try "$XRUN" ps alpha
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: 'alpha' may be any of 2 jobs: alpha[12], alpha[12]   try: more of its id"
	try "$XRUN" stop
	assert_has "$stderr" '^xrun: which job\? 2 run: alpha[12], alpha[12]   try: xrun ps$'
	try "$XRUN" stop beta
	assert_eq "$stderr" "xrun: there is no job 'beta'   try: xrun ps -a"
	"$XRUN" stop alpha2
	wait_for 5 is_ended alpha2
	"$XRUN" stop al
	wait_for 5 is_ended alpha1
	try "$XRUN" stop alpha1
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: alpha1 has ended   try: xrun ps alpha1'
	try "$XRUN" stop
	assert_has "$stderr" '^xrun: no job runs   try: xrun ps -a'
}

is_ended()
{
	! "$XRUN" ps | grep -q "^$1 "
}

@test "signal reaches the ranks it is for, and no other" {
	need jq
	up one -n 3 sh -c '
		trap "echo heard; exit 4" USR1
		echo ready
		while :; do sleep 0.02; done'
	for i in 0 1 2; do
		await_line "$BATS_TEST_TMPDIR/one.out" "^\[$i\] ready" 5
	done
	try "$XRUN" signal SIGUSR1 "$id" -r 1 --json
	assert_eq "$status" 0
	json_holds --arg id "$id" '. == {"job": $id, "count": 1}' <<<"$output"
	over
	assert_eq "$status" 4
	assert_eq "$(grep -c heard "$BATS_TEST_TMPDIR/one.out")" 1
	assert_has "$(cat "$BATS_TEST_TMPDIR/one.out")" '^\[1\] heard$'
}

@test "signal: a rank that ended takes none, and that is said" {
	need jq
	up one -n 2 sh -c '[ "$XRUN_RANK" = 0 ] || exec sleep 60'
	wait_for 5 rank_is 0 'exit 0'
	try "$XRUN" signal USR1 -r 0 "$id"
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: no rank of $id takes it"
	try "$XRUN" signal USR1 -r 0 --json "$id"
	assert_eq "$status" 125
	json_holds --arg id "$id" '. == {"job": $id, "count": 0}' <<<"$output"
	assert_has "$stderr" "^xrun: no rank of $id takes it"
	kill "$pid"
	over
}

@test "signal: what is no signal, no rank, no job is said" {
	up one -n 2 sleep 60
	try "$XRUN" signal
	assert_has "$stderr" '^xrun: signal: which one\?'
	try "$XRUN" signal NOPE "$id"
	assert_eq "$status: $stderr" "125: xrun: signal: 'NOPE' is none"
	try "$XRUN" signal "$id" TERM
	assert_eq "$status: $stderr" \
		"125: xrun: signal: '$id' is none   try: xrun signal TERM $id"
	try "$XRUN" signal -9 "$id"
	assert_eq "$status: $stderr" \
		"125: xrun: signal: '-9': a signal has no dash   try: xrun signal 9 JOB"
	try "$XRUN" signal "$id" -TERM
	assert_has "$stderr" 'try: xrun signal TERM JOB$'
	try "$XRUN" signal TERM "$id" --rank 7
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: .*7'
	try "$XRUN" signal TERM "$id" --rank x
	assert_eq "$status" 125
	try "$XRUN" signal WINCH "$id" more words
	assert_has "$stderr" "there is no job 'more'"
	try "$XRUN" signal TERM -- "$id"
	assert_eq "$status" 0
	over
}

@test "wait ends with the job, as it did" {
	need jq
	up one -n 2 sh -c 'trap "exit 9" USR1; while :; do sleep 0.02; done'
	spawn waits "$XRUN" wait --json "$id"
	local waits=$pid
	wait_for 5 rank_is 0 running
	"$XRUN" signal USR1 "$id"
	status=0
	wait "$waits" || status=$?
	assert_eq "$status" 9
	json_holds '.exit == 9 and .reason == "failure"' "$BATS_TEST_TMPDIR/waits.out"
	# Of one that has ended, at once, by what it left.
	job sh -c 'echo; exit 3'
	try "$XRUN" wait "$(readlink "$XDG_STATE_HOME/xrun/latest")"
	assert_eq "$status" 3
}

@test "wait: who waited for a job finds it gone" {
	for _ in {1..10}; do
		id=$("$XRUN" -d sh -c 'echo; sleep 0.05')
		[ -n "$id" ]
		"$XRUN" wait "$id"
		assert_eq "$("$XRUN" ps -q)" ''
	done
}

@test "wait tells of a job whose supervisor was killed" {
	up one --job lost sh -c 'echo; exec sleep 60'
	spawn waits "$XRUN" wait lost
	local waits=$pid
	wait_for 5 has_client
	kill -KILL "$(supervisor)"
	status=0
	wait "$waits" || status=$?
	assert_eq "$status" 125
	[ -z "$(ls "$XDG_RUNTIME_DIR/xrun")" ]
}

# is_connected PID - the process has a socket.
is_connected()
{
	[ -n "$(find "/proc/$1/fd" -lname 'socket:*')" ]
}

# A socket to a client: more than those of standard streams and the listener.
has_client()
{
	[ "$(find "/proc/$(supervisor)/fd" -lname 'socket:*' | wc -l)" -ge 2 ]
}

@test "the socket is for its user, and gone with the job however that ends" {
	up one sleep 60
	assert_eq "$(modes "$XDG_RUNTIME_DIR/xrun/$id/control")" 600
	assert_eq "$(modes "$XDG_RUNTIME_DIR/xrun/$id")" 700
	assert_eq "$(modes "$XDG_RUNTIME_DIR/xrun")" 700
	kill -KILL "$(supervisor)"
	over
	assert_eq "$status" 125
	# Both killed: by the next job.
	up one sleep 60
	local first=$id
	local both
	both=$(xruns | cut -d' ' -f1 | paste -sd' ')
	# Stopped, so that neither sees the other die. One pid a word.
	# shellcheck disable=SC2086
	kill -STOP $both && kill -KILL $both
	wait "$pid" || true
	[ -e "$XDG_RUNTIME_DIR/xrun/$first" ]
	spawn two "$XRUN" --job next sleep 60
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/next/control" ]
	[ ! -e "$XDG_RUNTIME_DIR/xrun/$first" ]
	"$XRUN" stop next
	over
}

modes()
{
	stat -c %a "$1"
}

@test "a job that is over at once never made a socket" {
	job --report report -n 4 true
	ranks_exited_0 4
	[ -z "$(ls -A "$XDG_RUNTIME_DIR/xrun")" ]
}

# bats test_tags=sanitize
@test "jobs without files or elsewhere are found, too; --no-logs, --log-dir" {
	up one --no-logs sleep 60
	assert_has "$("$XRUN" ps)" "^$id .*sleep 60"
	"$XRUN" stop "$id"
	over
	up one --log-dir logs sleep 60
	assert_has "$("$XRUN" ps)" "^$id .*sleep 60"
	"$XRUN" stop "$id"
	over
}

# made: a folder in /tmp that this test has made.
teardown()
{
	[ -z "${made:-}" ] || rmdir "$made"
	nothing_left
}

@test "where the runtime folder is not ours alone, it is below /tmp" {
	local fallback
	fallback=/tmp/xrun-$(id -u)

	chmod 0755 "$XDG_RUNTIME_DIR"
	[ ! -d "/run/user/$(id -u)" ] || skip 'there is a /run/user of ours'
	[ ! -e "$fallback" ] || [ "$(modes "$fallback")" = 700 ] ||
		skip "$fallback is not ours"
	[ -e "$fallback" ] || made=$fallback
	spawn one "$XRUN" --job "below-tmp-$$" sleep 60
	wait_for 5 [ -e "$fallback/below-tmp-$$/control" ]
	assert_eq "$(modes "$fallback")" 700
	"$XRUN" stop "below-tmp-$$"
	wait "$pid" || true
	assert_has "$(cat one.err)" "^xrun: XDG_RUNTIME_DIR: $XDG_RUNTIME_DIR has mode 0755, not 0700: the control socket is in $fallback instead\$"
	# It is no business of another user's folder.
	XDG_RUNTIME_DIR=/nonexistent "$XRUN" true 2>two.err
	assert_eq "$(cat two.err)" ''
	[ ! -e "$fallback/below-tmp-$$" ]
}

@test "a shell can speak to it, and what is wrong is answered" {
	need jq
	need socat
	up one -n 2 sleep 60
	talk '{"type":"status","id":5}' >answer
	json_holds '.type == "job" and .id == 5 and .status.ranks == 2' answer
	talk '{"type":"stopp","id":1}' '{' '[]' '{"type":"signal","id":2}' \
		'{"type":"ready"}' >answer
	json_holds -s 'map(.type) == ["error", "error", "error", "error", "error"] and
		map(.code) == ["XR_E_NOTFOUND", "XR_E_DECODE", "XR_E_PROTO",
		"XR_E_PROTO", "XR_E_NOTFOUND"] and .[0].id == 1 and .[3].id == 2' \
		answer
	# What a job says ends the connection: two jobs would talk for ever.
	talk '{"type":"done"}' '{"type":"status"}' >answer
	assert_eq "$(cat answer)" ''
	# Who has asked all may close that way at once, and gets all.
	for ((i = 0; i < 400; i++)); do
		echo '{"type":"status"}'
	done >many
	talk "$(cat many)" >answer
	assert_eq "$(grep -c '"type":"job"' answer)" 400
	talk '{"type":"wait","id":1}' '{"type":"wait","id":2}' >answer &
	wait_for 5 grep -q XR_E_STATE answer
	kill "$!" || true
	# Longer than any message: the connection, and nothing else, ends.
	head -c 2M /dev/zero | tr '\0' x |
		timeout 10 socat -t 2 - "UNIX-CONNECT:$XDG_RUNTIME_DIR/xrun/$id/control" \
			>answer 2>/dev/null || true
	assert_eq "$("$XRUN" ps -q)" "$id"
	"$XRUN" stop "$id"
	over
}

@test "a crowd that says nothing keeps nobody from asking" {
	need python3 jq
	up one -n 2 sleep 60
	python3 - "$XDG_RUNTIME_DIR/xrun/$id/control" >crowd.out <<-'EOS' 3>&- &
		import signal, socket, sys
		crowd = []
		for i in range(300):
		    s = socket.socket(socket.AF_UNIX)
		    s.connect(sys.argv[1])
		    crowd.append(s)
		    if i % 3 == 0:
		        s.sendall(b'{"type":"sta')
		print('here', flush=True)
		signal.alarm(60)
		signal.pause()
	EOS
	local crowd=$!
	await_line crowd.out here 10
	for i in 1 2 3; do
		try timeout 2 "$XRUN" ps "$id" --json
		json_holds '.phase == "running"' <<<"$output"
	done
	kill "$crowd"
	wait "$crowd" || true
	"$XRUN" stop "$id"
	over
}

# pretend ID - a job that runs but has no socket, as in its first moments; it
# ends with $pretended.
pretend()
{
	need flock
	(umask 077 && mkdir -p "$XDG_RUNTIME_DIR/xrun/$1")
	(
		exec 7<"$XDG_RUNTIME_DIR/xrun/$1"
		flock 7
		exec sleep 60 3>&-
	) &
	pretended=$!
	wait_for 5 is_held "$XDG_RUNTIME_DIR/xrun/$1"
}

is_held()
{
	! flock --nonblock --shared "$1" true
}

# unpretend - that job ends.
unpretend()
{
	kill -KILL "$pretended"
	wait "$pretended" || true
}

# naps PID - xrun, by then, waits for something.
naps()
{
	grep -q '^Name:.xrun' "/proc/$1/status" 2>/dev/null &&
		grep -q '^State:.S' "/proc/$1/status" 2>/dev/null
}

@test "stop of a job without a socket stops no other whose id begins so" {
	up one --job alpha2 sleep 60
	pretend alpha
	spawn stops "$XRUN" stop alpha
	local stops=$pid
	wait_for 5 naps "$stops"
	unpretend
	status=0
	wait "$stops" || status=$?
	assert_eq "$status: $(cat stops.err)" \
		'125: xrun: alpha has ended   try: xrun ps alpha'
	assert_eq "$("$XRUN" ps -q)" alpha2
	"$XRUN" stop alpha2
	wait_for 5 [ ! -e "$XDG_RUNTIME_DIR/xrun/alpha2" ]
}

@test "a JOB that is empty is none, not the only one that runs" {
	up one sleep 60
	for verb in stop wait ps 'signal TERM' logs; do
		# shellcheck disable=SC2086 # a verb and its operand
		try timeout 10 "$XRUN" $verb ''
		assert_eq "$status: $stderr" \
			"125: xrun: which job? the one named is ''   try: xrun ps"
	done
	assert_eq "$("$XRUN" ps -q)" "$id"
	"$XRUN" stop "$id"
	over
}

# fake ID TURN... - a job that has a socket, and greets; what else it does with
# each caller is a TURN: a line is its answer, "drop" closes the connection with
# the question unread, "=LINE" greets so and no more. It ends behind the last.
fake()
{
	need python3
	(umask 077 && mkdir -p "$XDG_RUNTIME_DIR/xrun/$1")
	python3 - "$XDG_RUNTIME_DIR/xrun/$1" "${@:2}" <<-'EOS' 3>&- &
		import fcntl, os, select, signal, socket, sys
		signal.alarm(60)
		os.chdir(sys.argv[1])
		lock = os.open('.', os.O_RDONLY)
		fcntl.flock(lock, fcntl.LOCK_EX)
		door = socket.socket(socket.AF_UNIX)
		door.bind('new')
		door.listen(8)
		os.rename('new', 'control')
		def takes(turn):
		    c, _ = door.accept()
		    with c:
		        if turn[0] == '=':
		            c.sendall(turn[1:].encode() + b'\n')
		            return True
		        c.sendall(b'{"type":"welcome","v":1,"job":"fake","pid":1}\n')
		        select.select([c], [], [])
		        if turn == 'drop':
		            return True
		        if not c.recv(999):
		            return False # ps looks whether anybody answers
		        c.sendall(turn.encode() + b'\n')
		        c.recv(999)
		        return True
		for turn in sys.argv[2:]:
		    while not takes(turn):
		        pass
		os.unlink('control')
	EOS
	pretended=$!
	wait_for 20 [ -e "$XDG_RUNTIME_DIR/xrun/$1/control" ]
}

@test "an answer to something else, and another version, are said" {
	fake odd '{"type":"done"}' '{"type":"over","exit":0,"reason":"ok"}' \
		'{"type":"job","status":[]}' '{"type":"job","status":[1]}' \
		'={"type":"welcome","v":99,"job":"odd","pid":1}' \
		'=["hello"]' '{"type":"done","count":3}'
	try "$XRUN" ps odd
	assert_eq "$status: $output$stderr" \
		"125: xrun: odd: 'status' is answered by 'done'"
	try "$XRUN" stop odd
	assert_eq "$status: $stderr" "125: xrun: odd: 'stop' is answered by 'over'"
	try "$XRUN" ps odd --json
	assert_eq "$status: $output$stderr" '125: xrun: odd: that is no status'
	try "$XRUN" ps --json
	assert_eq "$status: $output" '0: [{"job":"odd","running":true}]'
	try "$XRUN" stop odd
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: odd: it speaks version 99 of the control protocol, and this xrun 1 '
	try "$XRUN" stop odd
	assert_eq "$status" 125
	try "$XRUN" stop odd --json
	assert_eq "$status: $output" '0: {"job":"odd","count":3}'
	wait "$pretended"
}

@test "stop of a job that ends meanwhile: it has ended, in one wording" {
	fake ending drop
	try "$XRUN" stop ending
	assert_eq "$status: $stderr" \
		'125: xrun: ending has ended   try: xrun ps ending'
	wait "$pretended"
	fake ending drop
	try "$XRUN" ps ending
	assert_eq "$status: $output$stderr" \
		'125: xrun: ending has ended, and left no files'
	wait "$pretended"
}

# bats test_tags=sanitize
@test "wait of a job without a folder: until it ends, whoever drops it" {
	fake bare drop drop '{"type":"over","exit":7,"reason":"failure"}'
	try timeout 30 "$XRUN" wait bare
	assert_eq "$status: $stderr" '7: '
	wait "$pretended"
	# It has no socket any more, and runs: nobody will know how it ended.
	rm -r "$XDG_RUNTIME_DIR/xrun/bare"
	pretend bare
	spawn waits "$XRUN" wait bare
	local waits=$pid
	wait_for 10 awaits_lock "$waits"
	unpretend
	status=0
	wait "$waits" || status=$?
	assert_eq "$status: $(cat waits.err)" \
		'125: xrun: bare has ended, and how is not known'
}

# awaits_lock PID - it waits for a lock.
awaits_lock()
{
	grep -qs lock_inode_wait "/proc/$1/wchan"
}

@test "ps reports a supervisor that does not answer, and no table of nothing" {
	need jq
	up one sleep 60
	kill -STOP "$(supervisor)"
	try timeout 20 "$XRUN" ps "$id"
	assert_eq "$status: $output$stderr" \
		"125: xrun: $id runs, but its supervisor does not answer   try: xrun stop $id"
	try timeout 20 "$XRUN" ps
	assert_eq "$status: $stderr" \
		"0: xrun: $id: the supervisor does not answer   try: xrun stop $id"
	assert_has "$output" "^$id +1 +stuck +"
	try timeout 20 "$XRUN" ps --json
	json_holds '.[0].running and .[0].stuck' <<<"$output"
	kill -CONT "$(supervisor)"
	try "$XRUN" ps --json
	json_holds '.[0].running and (.[0] | has("stuck") | not)' <<<"$output"
	"$XRUN" stop "$id"
	over
}

@test "ps: a supervisor that has answered is not silent, however late ps reads" {
	need strace
	unsanitized 'strace and they do not go together'
	up one sleep 60
	try timeout 40 strace -f -qq -o trace -e trace=connect \
		-e inject=connect:delay_exit=6000000 "$XRUN" ps "$id"
	assert_eq "$status: $stderr" '0: '
	assert_has "$(cat trace)" 'DELAYED'
	"$XRUN" stop "$id"
	over
}

@test "ps lists a job as suspended if its keeper is stopped, too" {
	need jq
	up one sleep 60
	kill -STOP "$pid" "$(supervisor)"
	try timeout 20 "$XRUN" ps
	assert_eq "$status: $stderr" '0: '
	assert_has "$output" "^$id +1 +suspended +"
	try timeout 20 "$XRUN" ps --json
	json_holds '.[0].running and .[0].suspended and (.[0] | has("stuck") | not)' \
		<<<"$output"
	kill -CONT "$pid" "$(supervisor)"
	"$XRUN" stop "$id"
	over
}

# are_complete COUNT - so many jobs have their sockets and their job.json, which are made
# after the ranks have been started.
are_complete()
{
	[ "$(compgen -G "$XDG_RUNTIME_DIR/xrun/*/control" | wc -l)" -eq "$1" ] &&
		[ "$(compgen -G "$XDG_STATE_HOME/xrun/????/job.json" | wc -l)" -eq "$1" ]
}

@test "ps asks supervisors that do not answer all at once" {
	local n before supers=() pids=()

	for n in 1 2 3 4; do
		spawn "j$n" "$XRUN" -n 1 sh -c 'echo up; exec sleep 60'
		await_line "j$n.out" up 10
		pids+=("$pid")
		supers+=("$(pgrep -P "$pid")")
	done
	wait_for 10 are_complete 4
	kill -STOP "${supers[@]}"
	before=$(now_ms)
	try timeout 20 "$XRUN" ps
	[ $(($(now_ms) - before)) -lt 5000 ]
	assert_eq "$(grep -c ' stuck ' <<<"$output")" 4
	kill -CONT "${supers[@]}"
	"$XRUN" stop --all
	for pid in "${pids[@]}"; do
		await_exit "$pid" 10
	done
}

@test "stop ends a job whose supervisor is stopped" {
	local how

	for how in --logs --no-logs; do
		up one "$how" sleep 60
		kill -STOP "$(supervisor)"
		timeout 30 "$XRUN" stop "$id"
		over
		assert_eq "$status" 143
	done
}

@test "stop ends a job whose supervisor and keeper are stopped" {
	up one sleep 60
	kill -STOP "$(supervisor)" "$pid"
	timeout 30 "$XRUN" stop "$id"
	over
	assert_eq "$status" 143
}

@test "stop ends a job whose supervisor is held by a debugger" {
	need gdb
	up one sleep 60
	gdb -p "$(supervisor)" -batch -ex 'shell echo held >held; exec sleep 60' \
		>gdb.out 2>&1 3>&- &
	debugger=$!
	wait_for 20 test -e held
	timeout 50 "$XRUN" stop "$id"
	over
	kill -KILL "$debugger"
	wait "$debugger" || true
	assert_eq "$status" 125
	assert_has "$(cat one.err)" '^xrun: the supervisor does not answer: xrun ends it$'
	assert_has "$(cat one.err)" '^xrun: the supervisor ended \(SIGKILL\): all ranks were ended with it'
}

@test "stop ends a job that has no control socket" {
	mkfifo out.fifo
	exec {reader}<>out.fifo
	"$XRUN" --grace 300ms "$PROG/spew" --lines 3000 --copy ref >out.fifo 2>err 3>&- &
	pid=$!
	wait_for 10 test -e ref.0.out.count
	id=$("$XRUN" ps -q)
	timeout 30 "$XRUN" stop "$id"
	wait "$pid"
	assert_eq "$("$XRUN" ps -q)" ''
}

@test "a job that lets nobody in keeps no verb for ever" {
	need python3
	(umask 077 && mkdir -p "$XDG_RUNTIME_DIR/xrun/full")
	python3 - "$XDG_RUNTIME_DIR/xrun/full" >full.out <<-'EOS' 3>&- &
		import fcntl, os, signal, socket, sys
		os.chdir(sys.argv[1])
		lock = os.open('.', os.O_RDONLY)
		fcntl.flock(lock, fcntl.LOCK_EX)
		door = socket.socket(socket.AF_UNIX)
		door.bind('control')
		door.listen(0)
		crowd = []
		try:
		    while True:
		        s = socket.socket(socket.AF_UNIX)
		        s.setblocking(False)
		        s.connect('control')
		        crowd.append(s)
		except BlockingIOError:
		    print('full', flush=True)
		signal.alarm(60)
		signal.pause()
	EOS
	pretended=$!
	await_line full.out full 10
	try timeout 20 "$XRUN" stop full
	assert_eq "$status: $stderr" '125: xrun: full runs, but its supervisor does not answer   try: xrun stop full'
	kill -KILL "$pretended"
	wait "$pretended" || true
}

# three - jobs a, b and c that run; their pids are in $pids.
three()
{
	local job

	pids=()
	for job in a b c; do
		spawn "$job" "$XRUN" --job "$job" -n 2 bash -c \
			'trap "echo usr1" USR1; trap "exit 3" TERM
			echo ready; while :; do read -rt 1 _ <> <(:); done'
		pids+=("$pid")
		await_line "$job.out" '\[1\] ready' 20
		await_line "$job.out" '\[0\] ready' 20
	done
}

@test "signal, stop and wait take several jobs" {
	three
	try "$XRUN" signal USR1 a c --json
	assert_eq "$status: $output" $'0: {"job":"a","count":2}\n{"job":"c","count":2}'
	await_line a.out usr1 10
	await_line c.out usr1 10
	assert_eq "$(grep -c usr1 b.out)" 0
	try "$XRUN" stop a b a
	assert_eq "$status: $stderr" '0: '
	assert_eq "$("$XRUN" ps -q)" c
	try "$XRUN" wait a b
	assert_eq "$status" 143
	"$XRUN" stop c
	wait "${pids[@]}" || true
}

@test "signal, stop and wait report a job that is not found and continue" {
	three
	try "$XRUN" signal USR1 nosuch a none b
	assert_eq "$status" 125
	assert_eq "$(grep -c '^xrun: .*nosuch' <<<"$stderr")" 1
	assert_eq "$(grep -c '^xrun: .*none' <<<"$stderr")" 1
	await_line a.out usr1 10
	await_line b.out usr1 10
	try "$XRUN" stop nosuch a
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: .*nosuch'
	try "$XRUN" stop b none
	assert_eq "$status" 125
	assert_eq "$("$XRUN" ps -q)" c
	try "$XRUN" wait nosuch a
	assert_eq "$status" 125
	try "$XRUN" wait a nosuch
	assert_eq "$status" 143
	assert_has "$stderr" '^xrun: .*nosuch'
	"$XRUN" stop c
	wait "${pids[@]}" || true
}

# bats test_tags=sanitize
@test "stop, signal and wait --all: every job that runs" {
	three
	try "$XRUN" signal --all USR1
	assert_eq "$status" 0
	for job in a b c; do
		await_line "$job.out" usr1 10
	done
	try "$XRUN" stop --all b
	assert_eq "$status" 125
	assert_has "$stderr" '--all takes no job'
	spawn waits "$XRUN" wait --all
	wait_for 10 is_connected "$pid" # it lists the jobs first
	try "$XRUN" stop --all
	assert_eq "$status: $stderr" '0: '
	assert_eq "$("$XRUN" ps -q)" ''
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 143
	try "$XRUN" stop --all
	assert_eq "$status: $output$stderr" '0: '
}
