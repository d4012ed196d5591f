#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# output.bats - what ranks write: on the screen by whole lines, in the files to
# the byte, and when.
#
# The ranks are mostly tests/prog/spew, which keeps a copy of what it writes;
# tests/prog/verify compares.
#
# Takes long, so it begins early.


bats_require_minimum_version 1.5.0
load helper

# job ARG... - runs xrun into the files out and err; $status is its.
job()
{
	status=0
	"$XRUN" "$@" >out 2>err || status=$?
}

# raw RANK STREAM - the file of a rank of the latest job, below $LOGS if set.
raw()
{
	printf '%s/rank-%04d/%s' "${LOGS:-$XDG_STATE_HOME/xrun/latest/0}" "$1" "$2"
}

# stuck NAME - a FIFO that is open for reading, and that nobody reads: spawn
# NAME then writes to it. $reader holds it.
stuck()
{
	mkfifo "$1.out"
	exec {reader}<>"$1.out"
}

# spawn_in NAME COMMAND... - spawn with the FIFO in as its stdin, which it makes
# at first and $hold keeps open.
spawn_in()
{
	local name=$1

	shift
	if [ ! -p in ]; then
		mkfifo in
		exec {hold}<>in
	fi
	spawn "$name" bash -c 'exec "$@" <in' - "$@"
}

# rank_named NAME - the pid of a rank whose program is called so.
rank_named()
{
	pgrep -P "$(supervisor)" -x "$1" 2>/dev/null
}

# no_ranks - true if all ranks have ended.
no_ranks()
{
	[ -z "$(left_behind '.*')" ]
}

# reads PID - true if the process sleeps in a read of an empty pipe.
reads()
{
	grep -qs pipe_read "/proc/$1/wchan"
}

# writes_wait PID - true if the process sleeps in a write to a full pipe.
writes_wait()
{
	grep -qs pipe_write "/proc/$1"/task/*/wchan
}

# all_wait PID... - true if all processes sleep in a write to a full pipe.
all_wait()
{
	local one

	for one; do
		writes_wait "$one" || return 1
	done
}

# --- lines ------------------------------------------------------------------

@test "AC-L19 lines carry the rank prefix and are never mixed" {
	job -n 8 "$PROG/spew" --lines 5000 --size 80 --both
	assert_eq "$status" 0
	"$PROG/verify" merged --ranks 8 --lines 5000 out
	"$PROG/verify" merged --ranks 8 --lines 5000 --streams 2 err
	"$XRUN" -n 8 "$PROG/spew" --lines 5000 --size 80 | cat >piped
	"$PROG/verify" merged --ranks 8 --lines 5000 piped
}

@test "AC-L19 64 ranks that write a line a call" {
	job -n 64 "$PROG/spew" --lines 500 --size 60
	assert_eq "$status" 0
	"$PROG/verify" merged --ranks 64 --lines 500 out
}

# bats test_tags=sanitize,keep
@test "rel-15 wild bytes in wild pieces: files to the byte, lines whole" {
	job -n 8 "$PROG/spew" --wild 7 --lines 300 --both --copy ref
	assert_eq "$status" 0
	same_bytes 8
	"$PROG/verify" merged --joins --ranks 8 --lines 300 out
	"$PROG/verify" merged --joins --ranks 8 --lines 300 --streams 2 err
}

@test "rel-15 NUL, BOM, carriage returns, invalid UTF-8: exact, and JSON stays valid" {
	need jq
	printf '\xef\xbb\xbfbom\r\n\0nul\0\r\xff\xfe\xc3(\xed\xa0\x80\n\xf0\x9f' >bytes
	job -n 2 --on-failure continue --report report --events events sh -c \
		'cat bytes; cat bytes >&2; exit 3' $'\xff\r'
	assert_eq "$status" 3
	for rank in 0 1; do
		cmp bytes "$(raw $rank stdout)"
		cmp bytes "$(raw $rank stderr)"
	done
	for file in report "$XDG_STATE_HOME"/xrun/latest/job.json; do
		iconv -f UTF-8 -t UTF-8 "$file" >/dev/null
		json_holds '.argv | length == 4' "$file"
	done
	for file in events "$XDG_STATE_HOME"/xrun/latest/events.jsonl; do
		iconv -f UTF-8 -t UTF-8 "$file" >/dev/null
		json_holds -s '.[-1].event == "job.end"' "$file"
	done
}

# 64 MB in all; G13 with its 6.4 GB is a campaign's.
@test "rel-17 64 ranks write a million lines: none is lost" {
	local pairs=() r

	job -n 64 "$PROG/spew" --lines 15625 --size 64 --copy ref
	assert_eq "$status" 0
	for ((r = 0; r < 64; r++)); do
		pairs+=("$(raw "$r" stdout)" "ref.$r.out")
	done
	"$PROG/verify" raw "${pairs[@]}"
	"$PROG/verify" merged --ranks 64 --lines 15625 out
}

@test "rel-19 a crash in the middle of a line: it is kept, shown, and ended" {
	job -n 2 sh -c '[ "$RANK" = 1 ] || exec sleep 60
		printf "half a line"; printf "why" >&2; kill -SEGV $$'
	assert_eq "$status" 139
	assert_eq "$(cat "$(raw 1 stdout)") $(cat "$(raw 1 stderr)")" \
		'half a line why'
	assert_eq "$(cat out)" '[1] half a line'
	assert_eq "$(head -n 1 err)" '[1]!why'
	assert_eq "$(grep '^  |' err)" $'  | half a line\n  | why'
}

@test "without prefixes the lines of several ranks are whole, too" {
	job -n 8 --no-prefix "$PROG/spew" --lines 3000 --size 200
	assert_eq "$status" 0
	"$PROG/verify" merged --prefix '' --ranks 8 --lines 3000 out
}

@test "stdout and stderr in one file: nothing is overwritten or mixed" {
	"$XRUN" -n 4 "$PROG/spew" --lines 3000 --both >both 2>&1
	"$PROG/verify" merged --ranks 4 --lines 3000 --streams 3 both
	"$XRUN" -n 4 "$PROG/spew" --lines 3000 --both >>twice 2>>twice
	"$PROG/verify" merged --ranks 4 --lines 3000 --streams 3 twice
}

@test "a pause of one second within a line does not cut it in a pipe" {
	job -n 2 bash -c \
		'[ "$RANK" = 1 ] || { printf half; read -rt 1 _ <> <(:); echo " more"; }'
	assert_eq "$(cat out)" '[0] half more'
}

@test "in a pipe a line is cut after 5 s of silence and continues behind a mark" {
	local hold

	mkfifo go
	exec {hold}<>go
	spawn job "$XRUN" -n 2 bash -c \
		'[ "$RANK" = 1 ] || { printf wait; read -r _ <go; echo ing; }'
	await_line job.out '^\[0\] wait$' 20
	assert_eq "$(cat job.out)" '[0] wait'
	echo >&"$hold"
	wait "$pid"
	assert_eq "$(cat job.out)" $'[0] wait\n[0] …ing'
	assert_eq "$(cat "$(raw 0 stdout)")" waiting
}

@test "in a pipe progress is a line now and then, and its last state" {
	local hold

	mkfifo go
	exec {hold}<>go
	spawn job "$XRUN" -n 2 bash -c '[ "$RANK" = 1 ] || {
			printf "\r1 of 3\r2 of 3"
			read -r _ <go
			printf "\r3 of 3\n"
		}'
	await_line job.out '^\[0\] 2 of 3$' 20
	echo >&"$hold"
	wait "$pid"
	assert_eq "$(cat job.out)" $'[0] 2 of 3\n[0] 3 of 3'
	assert_eq "$(cat "$(raw 0 stdout)")" $'\r1 of 3\r2 of 3\r3 of 3'
	job -n 2 printf '\r10%%\r20%%\r100%%\nplain\r\n'
	assert_eq "$(grep -F '[1]' out)" $'[1] 100%\n[1] plain\r'
}

# The thread that shows it must be woken again.
@test "what follows a line without its newline shows at once" {
	local hold

	mkfifo go
	exec {hold}<>go
	spawn job "$XRUN" -n 2 bash -c '[ "$RANK" = 1 ] || printf wait
		[ "$RANK" = 1 ] && for i in 1 2; do read -r _ <go; echo "line $i"; done
		exec sleep 60'
	await_line job.out '^\[0\] wait$' 20
	echo >&"$hold"
	await_line job.out '^\[1\] line 1$' 5
	echo >&"$hold"
	await_line job.out '^\[1\] line 2$' 5
	kill "$pid"
	await_exit "$pid" 10
}

# The silence of each stream counts for itself: the other rank writes until the
# line was seen.
@test "a line without its newline shows while another rank never pauses" {
	local hold

	mkfifo never
	exec {hold}<>never
	spawn job "$XRUN" -n 2 bash -c '[ "$RANK" = 1 ] || {
			printf torn
			read -r _ <never
			exit
		}
		until [ -e seen ]; do "$1" --size 1000 --lines 20000; done' - "$PROG/spew"
	await_line job.out '^\[0\] torn$' 20
	touch seen
	echo >&"$hold"
	wait "$pid"
	assert_eq "$(grep -c torn job.out)" 1
	assert_eq $((($(wc -l <job.out) - 1) % 20000)) 0
}

# Bytes that are on their way to the file are no silence, however slow that is.
@test "a line is not cut because its file is slow" {
	XRUN_FAULT='move.before:delay=6s;nth=2' job --debug-faults -n 2 bash -c \
		'[ "$RANK" = 1 ] || { printf half; read -rt .05 _ <> <(:); echo " more"; }'
	assert_eq "$(cat out)" '[0] half more'
}

@test "rel-19 the last line needs no newline" {
	job -n 2 printf 'one\ntwo'
	assert_eq "$(sort out)" $'[0] one\n[0] two\n[1] one\n[1] two'
	assert_eq "$(cat "$(raw 1 stdout)")" $'one\ntwo'
}

@test "one rank alone passes untouched, stdout and stderr" {
	job "$PROG/spew" --wild 3 --lines 300 --both --torn --copy ref
	assert_eq "$status" 0
	cmp out ref.0.out
	cmp err ref.0.err
	same_bytes 1
}

@test "xrun's own words begin a line of their own" {
	status=0
	"$XRUN" bash -c 'printf torn; exit 3' >both 2>&1 || status=$?
	assert_eq "$status" 3
	assert_eq "$(head -n 1 both)" torn
	assert_has "$(sed -n 2p both)" '^xrun: rank 0 failed: exit status 3'
}

@test "the account comes behind all output" {
	for _ in 1 2 3 4 5; do
		status=0
		"$XRUN" -n 4 bash -c '"$1" --lines 300 --both; exit 4' - \
			"$PROG/spew" >both 2>&1 || status=$?
		assert_eq "$status" 4
		sed '1,/^xrun: rank [0-9] failed first/d' both >behind
		[ -s behind ]
		assert_eq "$(grep -vE '^(  |xrun: )' behind)" ''
	done
}

# --- who is shown -----------------------------------------------------------

@test "--show: all, first, none, a list; the files have everything" {
	local show want
	local -A expected=([all]='0 1 2 3' [first]='0' [none]='' [1,3]='1 3'
		[-1]='3' [0-2]='0 1 2' [auto]='0 1 2 3')

	for show in "${!expected[@]}"; do
		want=${expected[$show]}
		job -n 4 --show="$show" "$PROG/spew" --lines 1 --both --copy ref
		assert_eq "$status" 0
		assert_eq "$(cut -c2 out | sort | paste -sd' ')" "$want"
		assert_eq "$(cut -c2 err | sort | paste -sd' ')" "$want"
		same_bytes 4
	done
}

@test "--show: a failing rank that is not shown has its last lines in the account" {
	job -n 2 --show none bash -c 'echo why; exit 1'
	assert_eq "$(cat out)" ''
	assert_has "$(cat err)" '^  \| why$'
}

# --- when -------------------------------------------------------------------

@test "--buffer line: the first line of a plain program comes at once" {
	local hold

	spawn_in job "$XRUN" -n 2 "$PROG/talk" --ask --lines 2
	await_line job.out '^\[0\] line 0$' 5
	echo >&"$hold"
	await_line job.out '^\[0\] line 1$' 5
	echo >&"$hold"
	wait "$pid"
}

# Nothing else happens that would wake the one who shows it.
@test "a line shows at once after another stream ended without a byte" {
	mkfifo close go never
	spawn job "$XRUN" -n 2 bash -c 'if [ "$RANK" = 0 ]; then
			read -r _ <close; exec >&- 2>&-; : >closed
		else
			echo first; read -r _ <go; echo second
		fi
		read -r -t 60 _ <>never'
	await_line job.out '^\[1\] first$' 5
	echo >close
	wait_for 5 test -e closed
	echo >go
	await_line job.out '^\[1\] second$' 5
	kill -TERM "$pid"
	await_exit "$pid" 15
}

@test "--buffer full: in blocks; --buffer none: byte by byte" {
	local hold

	spawn_in full "$XRUN" --buffer full "$PROG/talk" --ask
	wait_for 5 reads "$(wait_for 5 rank_named talk)"
	assert_eq "$(cat full.out)" ''
	echo >&"$hold"
	wait "$pid"
	assert_eq "$(cat full.out)" 'line 0'
	spawn_in none "$XRUN" --buffer none "$PROG/talk" --ask --lines 0 --part torn
	wait_for 5 grep -qx torn none.out
	echo >&"$hold"
	wait "$pid"
}

@test "--buffer line: the last lines before a crash are there" {
	job -n 2 --on-failure continue "$PROG/talk" --lines 3 --crash
	assert_eq "$status" 139
	assert_eq "$(cat "$(raw 0 stdout)")" $'line 0\nline 1\nline 2'
	assert_has "$(cat out)" '^\[0\] line 2$'
	assert_has "$(cat err)" '^  \| line 2$'
}

@test "Python shows its lines when it prints them" {
	local hold

	need /usr/bin/python3
	spawn_in job "$XRUN" /usr/bin/python3 -c 'print("hello"); input()'
	await_line job.out '^hello$' 10
	echo >&"$hold"
	await_exit "$pid" 10
}

# --- readers ----------------------------------------------------------------

@test "the reader of stdout exits: the job is stopped with 141, files complete" {
	local codes

	"$XRUN" -n 4 "$PROG/spew" --endless --both --copy ref 2>err |
		head -n 1 >first
	codes=("${PIPESTATUS[@]}")
	assert_eq "${codes[0]}" 141
	assert_eq "$(grep -c '' first)" 1
	assert_has "$(cat err)" '^xrun: the reader of stdout exited: '
	cmp -n "$(stat -c %s "$(raw 0 stdout)")" "$(raw 0 stdout)" ref.0.out
}

@test "the reader of stdout exits: a rank that is silent is stopped, too" {
	local status=0

	mkfifo output held
	"$XRUN" --grace 20s sh -c 'trap "echo bye >bye; exit 0" TERM
		echo >held; while :; do sleep 0.01; done' >output 2>err &
	pid=$!
	exec {reader}<output
	read -r _ <held
	exec {reader}<&-
	await_exit "$pid" 15
	wait "$pid" || status=$?
	assert_eq "$status" 141
	assert_eq "$(cat bye)" bye
}

# over KIND ARG... - xrun with a socket as its stdout; the peer runs READ, a line of
# Python with the socket s, and exits. The exit status of xrun is printed.
over()
{
	local kind=$1 read=$2

	shift 2
	timeout 60 python3 - "$kind" "$read" "$XRUN" "$@" <<-'PY' 2>err
		import socket, subprocess, sys
		if sys.argv[1] == 'unix':
		    s, out = socket.socketpair()
		else:
		    door = socket.create_server(('127.0.0.1', 0))
		    out = socket.create_connection(door.getsockname())
		    s = door.accept()[0]
		job = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, stdout=out)
		out.close()
		exec(sys.argv[2])
		s.close()
		print(job.wait(50))
	PY
	cat err >&2
}

# bats test_tags=sanitize
@test "the peer of a socket exits and leaves output unread: 141" {
	local kind

	for kind in unix tcp; do
		run --separate-stderr over "$kind" 's.recv(1)' -n 2 \
			"$PROG/spew" --endless
		assert_eq "$output" 141
		assert_has "$stderr" '^xrun: the reader of stdout exited: '
		run --separate-stderr over "$kind" 's.recv(1)' --no-logs -n 2 \
			"$PROG/spew" --endless
		assert_eq "$output" 141
		assert_has "$stderr" '^xrun: the reader of stdout exited: '
	done
}

@test "the peer of a unix socket exits: a rank that is silent is stopped, too" {
	run --separate-stderr over unix 's.recv(1)' --grace 20s \
		sh -c 'echo up; exec sleep 60'
	assert_eq "$output" 141
}

@test "the peer of a socket has no more to write, and reads: the job continues" {
	local kind

	for kind in unix tcp; do
		run --separate-stderr over "$kind" \
			's.shutdown(socket.SHUT_WR); assert len(s.makefile().read()) == 300000' \
			-n 1 "$PROG/spew" --lines 3000
		assert_eq "$output" 0
	done
}

@test "a partial line is held when the reader exits: the job ends" {
	local codes

	# shellcheck disable=SC2016,SC2216 # for the ranks; it does not read
	timeout 60 "$XRUN" -q --report report -n 2 sh -c \
		'head -c 20000000 /dev/zero | tr "\0" a' | sleep 1
	codes=("${PIPESTATUS[@]}")
	assert_has "${codes[0]}" '^(0|141)$'
	assert_has "$(cat report)" '"stdout_bytes":[1-9]'
}

@test "the reader of stdout exits after all ranks: their status stays" {
	local codes

	"$XRUN" -n 2 sh -c 'exit 3' | true
	codes=("${PIPESTATUS[@]}")
	# The reader may be the first.
	assert_has "${codes[0]}" '^(3|141)$'
	mkfifo slow
	"$XRUN" --grace 20s "$PROG/spew" --lines 3000 --copy ref >slow 2>err &
	pid=$!
	exec {reader}<slow
	wait_for 10 test -e ref.0.out.count
	wait_for 10 no_ranks
	exec {reader}<&-
	wait "$pid"
	cmp "$(raw 0 stdout)" ref.0.out
}

@test "--on-stdout-close continue: one line says so, files complete" {
	local codes

	"$XRUN" --on-stdout-close continue -n 4 "$PROG/spew" --lines 20000 --both \
		--copy ref 2>err | head -n 1 >first
	codes=("${PIPESTATUS[@]}")
	assert_eq "${codes[0]}" 0
	assert_eq "$(grep -c '' first)" 1
	assert_eq "$(grep '^xrun: ' err)" \
		"xrun: the reader of stdout exited: the job continues, its output is in $(readlink -f "$XDG_STATE_HOME/xrun/latest")/0"
	same_bytes 4
	"$PROG/verify" merged --ranks 4 --lines 20000 --streams 2 --skip xrun: err
}

@test "--on-stdout-close continue --no-logs: the job continues without output" {
	local codes

	"$XRUN" --no-logs --on-stdout-close continue -n 2 \
		sh -c '"$0" --lines 20000; echo >>ended' "$PROG/spew" 2>err |
		head -n 1 >first
	codes=("${PIPESTATUS[@]}")
	assert_eq "${codes[0]}" 0
	assert_eq "$(grep -c '' ended)" 2
	assert_eq "$(grep '^xrun: ' err)" \
		"xrun: the reader of stdout exited: the job continues, its output is dropped"
}

@test "-d: the job continues although the reader of stdout exits" {
	mkfifo go
	"$XRUN" -d sh -c 'read -r _ <go; echo output' | head -n 1 >id
	echo >go
	"$XRUN" wait "$(cat id)"
	assert_eq "$(cat "$(raw 0 stdout)")" output
}

@test "rel-18 a slow reader: ranks do not wait for it, and it gets everything" {
	stuck job
	spawn job "$XRUN" -n 2 "$PROG/spew" --lines 20000 --both --copy ref
	wait_for 10 test -e ref.1.err.count
	wait_for 10 no_ranks
	writes_wait "$(supervisor)"
	exec {copy}<job.out
	exec {reader}>&-
	cat <&"$copy" >out
	wait "$pid"
	"$PROG/verify" merged --ranks 2 --lines 20000 out
	same_bytes 2
}

# left_in_files ERR - the number of bytes it tells are only in the files.
left_in_files()
{
	sed -nE 's/^xrun: the reader of the output is slow: ([0-9]+) bytes are only in the files \(.*\)$/\1/p' "$1"
}

@test "rel-18 a reader who does not read does not stop --timeout" {
	local left

	stuck job
	spawn job "$XRUN" --timeout 1s --grace 300ms "$PROG/spew" --lines 3000 \
		--copy ref
	await_exit "$pid" 15
	wait "$pid"
	left=$(left_in_files job.err)
	# The pipe took 64 KiB of 300,000 bytes.
	[ "$left" -ge $((300000 - 65536)) ]
	[ "$left" -le 300000 ]
	cmp "$(raw 0 stdout)" ref.0.out
}

@test "readers of stdout and of stderr who do not read do not stop --timeout" {
	local said

	stuck job
	mkfifo said
	exec {said}<>said
	head -c 65536 /dev/zero >said
	"$XRUN" --timeout 500ms --grace 300ms "$PROG/spew" --lines 3000 --copy ref \
		>job.out 2>said &
	pid=$!
	await_exit "$pid" 15
	wait "$pid"
	cmp "$(raw 0 stdout)" ref.0.out
}

@test "a reader who does not read does not stop TERM" {
	local status=0

	stuck job
	spawn job "$XRUN" --grace 300ms -n 2 "$PROG/spew" --lines 3000 --copy ref
	wait_for 10 test -e ref.1.out.count
	wait_for 10 no_ranks
	kill -TERM "$pid"
	await_exit "$pid" 15
	wait "$pid" || status=$?
	assert_eq "$status" 0
	[ "$(left_in_files job.err)" -gt 0 ]
}

@test "a reader who does not read does not stop TERM while the ranks run" {
	local status=0

	ulimit -f 2000000
	stuck job
	spawn job "$XRUN" --grace 300ms -n 2 "$PROG/spew" --endless
	wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0001/stdout"
	kill -TERM "$pid"
	await_exit "$pid" 15
	wait "$pid" || status=$?
	assert_eq "$status" 143
	[ "$(left_in_files job.err)" -gt 0 ]
}

@test "stop waits for the end of a job whose reader does not read" {
	local status=0

	stuck job
	mkfifo go
	spawn job "$XRUN" --grace 300ms sh -c '"$0" --lines 3000; read -r _ <go' \
		"$PROG/spew"
	wait_for 10 sockets
	echo >go
	wait_for 10 no_ranks
	"$XRUN" stop
	assert_eq "$("$XRUN" ps -q)" ''
	await_exit "$pid" 5
	wait "$pid" || status=$?
	assert_eq "$status" 0
	[ "$(left_in_files job.err)" -gt 0 ]
}

@test "--no-logs: stop waits for the end of a job whose reader does not read" {
	local status=0

	stuck job
	spawn job "$XRUN" --no-logs --grace 300ms -n 2 "$PROG/spew" --endless
	wait_for 10 sockets
	wait_for 10 writes_wait "$(supervisor)"
	"$XRUN" stop
	assert_eq "$("$XRUN" ps -q)" ''
	await_exit "$pid" 5
	wait "$pid" || status=$?
	[ "$status" != 0 ]
}

@test "stop fails if the job does not end in time" {
	local super

	# The rank stops its supervisor after that has accepted the request, when it
	# sleeps again.
	spawn job "$XRUN" --grace 2s -n 1 sh -c 'end() {
			until grep -q "^State:.S" /proc/$PPID/status; do :; done
			kill -STOP $PPID
			exit
		}
		trap end TERM
		sleep 60 & echo up; wait'
	await_line job.out up 10
	super=$(supervisor)
	try "$XRUN" stop
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: stop: .* has not ended within [0-9]+ s   try: xrun ps '
	kill -CONT "$super"
	await_exit "$pid" 10
}

@test "stop continues a keeper that is stopped" {
	spawn job "$XRUN" --grace 100ms -n 1 sh -c 'echo up; exec sleep 60'
	await_line job.out up 10
	# A keeper that is stopped cannot exit.
	kill -STOP "$pid"
	try "$XRUN" stop
	assert_eq "$status" 0
	await_exit "$pid" 10
}

# sockets - true if a job has a control socket.
sockets()
{
	compgen -G "$XDG_RUNTIME_DIR/xrun/*/control" >/dev/null
}

# --- --no-logs --------------------------------------------------------------

@test "--no-logs: the same lines, and no file" {
	job --no-logs -n 8 "$PROG/spew" --lines 3000 --both
	assert_eq "$status" 0
	"$PROG/verify" merged --ranks 8 --lines 3000 out
	"$PROG/verify" merged --ranks 8 --lines 3000 --streams 2 err
	job --no-logs -n 4 "$PROG/spew" --wild 5 --lines 300 --both
	"$PROG/verify" merged --joins --ranks 4 --lines 300 out
	"$PROG/verify" merged --joins --ranks 4 --lines 300 --streams 2 err
	[ -z "$(ls "$XDG_STATE_HOME/xrun")" ]
}

@test "--no-logs: one rank alone passes untouched" {
	job --no-logs "$PROG/spew" --wild 9 --lines 300 --both --torn --copy ref
	assert_eq "$status" 0
	cmp out ref.0.out
	cmp err ref.0.err
}

@test "--no-logs: a slow reader makes the ranks wait, and gets everything" {
	local rank taken copy

	stuck job
	spawn job "$XRUN" --no-logs "$PROG/spew" --lines 100000 --copy ref
	wait_for 5 test -e ref.0.out.count
	rank=$(wait_for 5 rank_named spew)
	wait_for 5 all_wait "$rank" "$(supervisor)"
	taken=$(od -An -t u8 ref.0.out.count | tr -d ' ')
	[ "$taken" -lt 1000000 ]
	exec {copy}<job.out
	exec {reader}>&-
	cat <&"$copy" >out
	wait "$pid"
	cmp out ref.0.out
	assert_eq "$(stat -c %s out)" 10000000
}

@test "--no-logs: a stdout that is closed ends the job with 141" {
	local codes

	"$XRUN" --no-logs -n 4 "$PROG/spew" --endless 2>err | head -n 1 >first
	codes=("${PIPESTATUS[@]}")
	assert_eq "${codes[0]}" 141
	assert_eq "$(grep -c '' first)" 1
	assert_has "$(cat err)" '^xrun: the reader of stdout exited: '
}

@test "--no-logs: a reader who does not read does not stop --timeout" {
	local status=0

	stuck job
	spawn job "$XRUN" --no-logs --timeout 500ms --grace 300ms -n 2 \
		"$PROG/spew" --endless
	await_exit "$pid" 15
	wait "$pid" || status=$?
	assert_eq "$status" 124
}

@test "--no-logs: the account has the last lines all the same" {
	job --no-logs -n 2 bash -c \
		'seq 1000; [ "$RANK" = 0 ] || { echo because >&2; exit 3; }; sleep 60'
	assert_eq "$status" 3
	assert_has "$(cat err)" '^  \| because$'
	assert_has "$(cat err)" '^  \| 1000$'
}

# --- what begins a line ------------------------------------------------------

@test "--prefix: names in braces are filled in, numbers padded" {
	job -n 11 --show 2,10 --prefix '{job} {rank}/{size} {stream}{{}} ' --report r \
		sh -c 'echo out; echo err >&2'
	assert_eq "$status" 0
	id=$(jq -r .job r)
	assert_eq "$(sort out)" "$id  2/11 stdout{} out
$id 10/11 stdout{} out"
	assert_has "$(cat err)" "^$id  2/11 stderr\\{\\} err\$"
	job --prefix '{part}.{rank} ' -n 1 echo server : -n 2 echo worker
	assert_eq "$(sort out)" $'0.0 server\n1.1 worker\n1.2 worker'
	XRUN_PREFIX='{local_rank}:' job -n 1 echo alone
	assert_eq "$(cat out)" '0:alone'
	XRUN_NO_PREFIX=1 job -n 2 echo both
	assert_eq "$(cat out)" $'both\nboth'
}

@test "--prefix: what is wrong is named with its byte, and nothing is left" {
	job -n 2 --prefix 'x{rnak}' true
	assert_eq "$status" 125
	assert_eq "$(cat err)" "xrun: --prefix: byte 1: '{rnak}' is not one of {rank} {local_rank} {size} {host} {job} {part} {stream} {time} (did you mean {rank}?)"
	[ -z "$(ls -A --ignore=.live "$XDG_STATE_HOME/xrun")" ]
}

# ms HH:MM:SS.mmm - of the day.
ms()
{
	awk -F '[:.]' '{ print (($1 * 60 + $2) * 60 + $3) * 1000 + $4 }' <<<"$1"
}

@test "--timestamps: the time at which a line arrived, not that of its reader" {
	local first last

	mkfifo go gate
	stuck job
	spawn job "$XRUN" --log-dir logs --timestamps -n 2 --show 0 bash -c '
		[ "$RANK" = 0 ] || exit 0
		echo first; yes "" | head -n 300000
		read -r _ <go; echo last'
	wait_for 10 holds_bytes logs/0/rank-0000/stdout 300006
	read -r -t 0.5 _ <>gate || true
	echo >go
	wait_for 10 holds_bytes logs/0/rank-0000/stdout 300011
	exec {copy}<job.out
	exec {reader}>&-
	cat <&"$copy" >out
	wait "$pid"
	assert_eq "$(grep -cE '^[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3} \[0\] ' out)" 300002
	first=$(ms "$(head -n 1 out)")
	last=$(ms "$(tail -n 1 out)")
	assert_has "$(tail -n 1 out)" ' \[0\] last$'
	[ "$last" -ge "$((first + 500))" ] || [ "$last" -lt "$first" ]
	first=$(ms "$(tail -n 2 out | head -n 1)")
	[ "$last" -ge "$((first + 500))" ] || [ "$last" -lt "$first" ]
}

# holds_bytes FILE SIZE - by now.
holds_bytes()
{
	[ "$(stat -c %s "$1" 2>/dev/null)" = "$2" ]
}

@test "--timestamps: of one rank, and without files" {
	job --timestamps echo alone
	assert_has "$(cat out)" '^[0-9:]{8}\.[0-9]{3} alone$'
	TZ=XXX-5 job --timestamps --no-logs -n 2 --prefix '{rank} at {time}: ' echo x
	assert_has "$(cat out)" "^1 at $(TZ=XXX-5 date +%H):[0-9:]{5}\.[0-9]{3}: x\$"
}

# --- input ------------------------------------------------------------------

@test "stdin: rank 0 inherits the pipe or file, the others have /dev/null" {
	printf 'typed\n' | "$XRUN" -n 3 "$PROG/tty" >out
	assert_eq "$(grep '^\[0\]' out | paste -sd' ')" \
		'[0] stdin: pipe [0] controlling: no [0] foreground: no [0] read: typed [0] eof'
	assert_eq "$(grep -c 'stdin: null' out)" 2
	seq 3 >file
	"$XRUN" -n 2 "$PROG/tty" <file >out
	assert_has "$(cat out)" '^\[0\] stdin: file$'
	assert_has "$(cat out)" '^\[0\] read: 3$'
	"$XRUN" -n 1 "$PROG/tty" <&- >out
	assert_has "$(cat out)" '^stdin: null$'
}

# xrun takes no byte: the pipe belongs to rank 0 and to who comes after it.
@test "stdin: what rank 0 leaves in the pipe is there for the next" {
	printf 'one\ntwo\n' | {
		"$XRUN" bash -c 'read -r line; echo "got $line"'
		cat
	} >out
	assert_eq "$(cat out)" $'got one\ntwo'
}

# --- streams that close -----------------------------------------------------

@test "rel-13 a process left behind that keeps the output open is waited for 2 s" {
	local begun

	begun=$(now_ms)
	job -n 2 "$PROG/fork_away" --last 20000
	assert_eq "$status" 0
	[ $(($(now_ms) - begun)) -ge 1900 ]
	[ $(($(now_ms) - begun)) -lt 3500 ]
	assert_has "$(cat err)" \
		'^xrun: ranks 0, 1: a process left behind kept the output open; what it wrote after 2 s is not kept$'
	assert_has "$(cat err)" \
		'^xrun: 2 processes outlived the ranks and were ended: fork_away \(pid [0-9]+\), fork_away \(pid [0-9]+\)$'
	[ ! -e "$(raw 0 stderr)" ]
	nothing_left
}

@test "rel-13 what such a process writes within 2 s is kept" {
	mkfifo never
	job bash -c '(read -r -t 0.5 _ <>never; echo late) & echo first'
	assert_eq "$status" 0
	assert_eq "$(cat out)" $'first\nlate'
	assert_eq "$(cat err)" ''
}

# slowly ARG... - xrun with a reader that takes nothing for 3.5 s: into the files out and err.
slowly()
{
	mkfifo never
	"$XRUN" "$@" 2>err | {
		read -r -t 3.5 _ <>never || true
		cat
	} >out
}

@test "rel-13 --no-logs: a rank that ended before a slow reader reads left no process behind" {
	slowly --no-logs -n 2 sh -c 'seq 100000 | head -c 60000'
	assert_eq "$(cat err)" ''
	assert_eq "$(grep -a '^\[1\]' out | sed 's/^\[1\] //' | head -c 60000 | cksum)" \
		"$(seq 100000 | head -c 60000 | cksum)"
}

# A terminal holds more bytes than FIONREAD counts.
@test "rel-13 --pty --no-logs: what a rank wrote before a slow reader reads is kept" {
	slowly --pty --no-logs sh -c 'seq 100000 | head -c 72000'
	assert_eq "$(cat err)" ''
	assert_eq "$(cksum <out)" "$(seq 100000 | head -c 72000 | cksum)"
	rm never
	slowly --pty --no-logs sh -c 'trap "" HUP; seq 100000 | head -c 70000; sleep 60 & exit 0'
	assert_has "$(cat err)" '^xrun: 1 process outlived its rank and was ended: sleep '
	assert_eq "$(cksum <out)" "$(seq 100000 | head -c 70000 | cksum)"
}

# Rank 0 holds the output for 3.5 s with a line that is longer than 32 KiB.
@test "rel-13 --no-logs: of ranks that wait for the line of another, one left a process behind" {
	mkfifo never
	job --no-logs -n 3 bash -c 'case $XRUN_RANK in
		0) printf %040000d 0; read -r -t 3.5 _ <>never; echo end ;;
		1) read -r -t 0.3 _ <>never; seq 9000; sleep 60 & exit 0 ;;
		2) read -r -t 0.3 _ <>never; seq 9000 ;;
		esac'
	assert_eq "$status" 0
	assert_has "$(cat err)" \
		'^xrun: rank 1: a process left behind kept the output open; what it wrote after 2 s is not kept$'
	assert_eq "$(sed -n 's/^\[1\] //p' out | cksum)" "$(seq 9000 | cksum)"
	assert_eq "$(sed -n 's/^\[2\] //p' out | cksum)" "$(seq 9000 | cksum)"
	assert_eq "$(grep -c '^\[0\] 0*end$' out)" 1
}

@test "rel-13 a rank whose output waits 3 s for the disk left no process behind" {
	XRUN_FAULT='move.before:delay=3s;nth=1' job --debug-faults -n 2 seq 9000
	assert_eq "$status" 0
	assert_eq "$(cat err)" ''
	assert_eq "$(sed -n 's/^\[1\] //p' out | cksum)" "$(seq 9000 | cksum)"
}

# The mover stops for 4 s after the first line and finds no room twice. Each rank is given up
# meanwhile, 2 s after its end.
@test "rel-13 a rank that was given up is not given up again when the next one is" {
	mkfifo never
	XRUN_FAULT='move.after:delay=4s;nth=1,move.before:fail=ENOSPC;nth=2,move.before:fail=ENOSPC;nth=2' \
		job --debug-faults -n 2 bash -c '
			[ "$XRUN_RANK" = 1 ] || echo first
			read -r -t "$XRUN_RANK.3" _ <>never
			[ "$XRUN_RANK" = 1 ] || echo last'
	assert_eq "$status" 0
	assert_eq "$(cat out)" $'[0] first\n[0] last'
	assert_eq "$(cat "$(raw 0 stdout)")" $'first\nlast'
}

@test "the preloaded agent causes no error under valgrind" {
	unsanitized 'valgrind does not run a program of theirs'
	need valgrind
	job -n 1 valgrind -q --error-exitcode=9 /bin/true
	assert_eq "$status: $(cat err)" '0: '
	job -n 1 valgrind -q --error-exitcode=9 seq 1000
	assert_eq "$status: $(cat err)" '0: '
	assert_eq "$(cat out)" "$(seq 1000)"
}
