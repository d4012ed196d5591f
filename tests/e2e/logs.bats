#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# logs.bats - xrun logs and xrun events: what a job wrote and what happened to
# it, read from its files.

bats_require_minimum_version 1.5.0
load helper

VT=$BUILD/tests/e2e/vt

# listed ARG... - runs xrun logs as try does. The line that names the job, if no
# argument does, is not in $stderr; history.bats tests it.
listed()
{
	try "$XRUN" logs "$@"
	stderr=$(grep -vE '^xrun: job [a-z0-9]+, (started )?[0-9]+ [a-z]+ ago$' \
		<<<"$stderr" || true)
}

# turns RANKS LINES [ARG...] - a job whose ranks write a line in turn, each 20 ms
# after the one before it was in its file.
turns()
{
	local r

	for ((r = 0; r < $1; r++)); do
		mkfifo "turn$r"
	done
	# shellcheck disable=SC2016 # for the rank
	"$XRUN" "${@:3}" -n "$1" bash -c '
		file=$XDG_STATE_HOME/xrun/$XRUN_JOB/$XRUN_ATTEMPT/rank-000$RANK/stdout
		exec 5<>"turn$RANK" 6<>"turn$(((RANK + 1) % WORLD_SIZE))" 7<> <(:)
		[ "$RANK" != 0 ] || echo 0 >&5
		while read -r i <&5 && [ "$i" -lt "$1" ]; do
			echo "line $i"
			until grep -qsx "line $i" "$file"; do read -rt 0.01 _ <&7; done
			read -rt 0.02 _ <&7
			echo $((i + 1)) >&6
		done
		echo "$i" >&6
		[ "$RANK" != 1 ] || echo end >&2' turns "$2" >/dev/null 2>&1 3>&-
}

# lines FROM TO - "line FROM" to "line TO".
lines()
{
	seq -f 'line %.0f' "$1" "$2"
}

# folder - of the last job.
folder()
{
	readlink -f "$XDG_STATE_HOME/xrun/latest"
}

@test "logs: the lines of all ranks in the order in which they came" {
	local want at

	turns 3 9
	want=$(for i in {0..8}; do echo "[$((i % 3))] line $i"; done)
	listed --stdout
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" "$want"
	listed --no-prefix --stdout
	assert_eq "$output" "$(lines 0 8)"
	listed --stdout --tail 4
	assert_eq "$output" "$(tail -n 4 <<<"$want")"
	listed --stdout --lines 4
	assert_eq "$output" "$(tail -n 4 <<<"$want")"
	listed --tail=0
	assert_eq "$status: $output" '0: '
	listed -r 0,-1 --no-prefix --stdout
	assert_eq "$output" "$(lines 0 8 | sed '/[147]$/d')"
	listed --rank 1
	assert_eq "$output" $'[1] line 1\n[1] line 4\n[1] line 7\n[1]!end'
	listed --stderr
	assert_eq "$output" '[1]!end'
	listed --grep 'ne 7'
	assert_eq "$output" '[1] line 7'
	listed --grep line --tail 2
	assert_eq "$output" $'[1] line 7\n[2] line 8'
	listed --grep line -n 1
	assert_eq "$output" '[2] line 8'
	listed --grep 'line \.'
	assert_eq "$status: $output" '0: '
	listed --no-prefix --grep '^line [27]$|^e(nd)+$'
	assert_eq "$output" $'line 2\nline 7\nend'
	listed --no-prefix --grep 'LINE 7' -i
	assert_eq "$output" 'line 7'
	listed --no-prefix --grep 'LINE 7'
	assert_eq "$status: $output" '0: '
	listed --grep 'a('
	assert_has "$status: $stderr" "^125: xrun: logs: --grep: 'a\(': "
	listed -i
	assert_has "$status: $stderr" '^125: xrun: logs: -i is for --grep'

	listed -t --stdout
	assert_eq "$(sed -E 's/^..:..:..\.... //' <<<"$output")" "$want"
	sort -c <<<"$output"
	at=$(sed -n '/line 4$/s/ .*//p' <<<"$output")
	listed --stdout --no-prefix --since "$at"
	assert_eq "$output" "$(lines 4 8)"
	listed --stdout --no-prefix --until "$at"
	assert_eq "$output" "$(lines 0 4)"
	listed --stdout --no-prefix --until "$at" --tail 2
	assert_eq "$output" "$(lines 3 4)"
	listed --stdout --no-prefix --since "$at" --tail 100
	assert_eq "$output" "$(lines 4 8)"
	listed --since 0
	assert_eq "$status: $output" '0: '
	listed --since 1h --stdout
	assert_eq "$output" "$want"
	listed --until 1h
	assert_eq "$status: $output" '0: '
}

@test "logs --json: each line with time, rank and stream" {
	need jq
	job -n 2 sh -c 'echo "out \"$RANK"; printf "\377\t." >&2'
	listed --json
	assert_eq "$(jq -c '[.rank, .stream, .text]' <<<"$output" | sort)" \
		$'[0,"stderr","�\\t."]\n[0,"stdout","out \\"0"]\n[1,"stderr","�\\t."]\n[1,"stdout","out \\"1"]'
	printf '%s\n' "$output" >lines.jsonl
	need_schemas
	fits log lines.jsonl
	# Its time is one that --since takes.
	listed --since "$(jq -rs 'map(.time) | min' lines.jsonl)" --json
	assert_eq "$(wc -l <<<"$output")" 4
}

@test "logs: a job of one rank is byte for byte what it wrote" {
	job -n 1 "$PROG/spew" --lines 3000 --wild 100 --copy "$PWD/copy"
	"$XRUN" logs >got
	cmp got copy.0.out
	job printf 'no end'
	"$XRUN" logs >got
	assert_eq "$(cat got)" 'no end'
	assert_eq "$(stat -c %s got)" 6
	# With something before it, it is a line.
	"$XRUN" logs -t >got
	assert_eq "$(wc -l <got)" 1
	job --merge-stderr -n 1 sh -c 'echo out; echo err >&2; echo on'
	listed
	assert_eq "$output" $'out\nerr\non'
}

@test "logs: many ranks at full speed, every line whole, each rank's in order" {
	local r

	job -n 4 "$PROG/spew" --lines 20000 --both --copy "$PWD/ref"
	"$XRUN" logs >got
	assert_eq "$(wc -l <got)" 160000
	for r in 0 1 2 3; do
		cmp <(sed -n "s/^\[$r\] //p" got) "ref.$r.out"
		cmp <(sed -n "s/^\[$r\]!//p" got) "ref.$r.err"
	done
	"$XRUN" logs --tail 5000 | cmp - <(tail -n 5000 got)
}

@test "logs: of attempts the last, or the one that is named" {
	job --job night -n 2 echo first
	job --job night -n 3 echo second
	listed night
	assert_eq "$(sort <<<"$output")" $'[0] second\n[1] second\n[2] second'
	listed nig --attempt 0
	assert_eq "$(sort <<<"$output")" $'[0] first\n[1] first'
	# Its own number of ranks.
	listed --attempt 0 -r 2
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --rank: '2': the ranks are 0 to 1"
	listed night --attempt 7
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: night has no attempt 7   try: --attempt 1, its last'
}

@test "logs: a time without a date is of the last day of the job" {
	local file

	need jq
	job -n 1 echo over
	file=$(folder)/job.json
	jq --arg at "$(date -ud '-2 days' +%FT%T.000000Z)" \
		'.start = $at | .end = $at' "$file" >changed
	cat changed >"$file"
	listed --since "$(date +%T)"
	assert_eq "$status: $output$stderr" '0: over'
	listed --until "$(date +%T)"
	assert_eq "$status: $output$stderr" '0: '
}

@test "logs: where no attempt wrote anything, the last is meant" {
	job --job mute -n 2 true
	job --job mute -n 4 true
	job --job mute -n 8 true
	listed mute -r 5
	assert_eq "$status: $output$stderr" '0: '
	job --job mute -n 2 echo heard
	job --job mute -n 2 true
	job --job mute -n 3 true
	listed mute -r 0
	assert_eq "$status: $output" '0: [0] heard'
	assert_eq "$stderr" 'xrun: attempt 5 wrote nothing; this is attempt 3'
	listed mute -r 2
	assert_eq "$status" 125
}

@test "logs: over every border of --log-rotate; what is gone is said once" {
	local gone

	job --log-rotate 64k -n 1 "$PROG/spew" --lines 20000 --copy "$PWD/copy"
	"$XRUN" logs | cmp - copy.0.out
	"$XRUN" logs --tail 7000 | cmp - <(tail -n 7000 copy.0.out)
	job --log-rotate 64k,3 -n 2 "$PROG/spew" --lines 20000 --copy "$PWD/copy"
	listed --no-prefix -r 1
	assert_eq "$status" 0
	gone=$(sed -nE 's/^xrun: ([0-9]+) bytes were rotated away$/\1/p' <<<"$stderr")
	assert_eq "$(wc -l <<<"$stderr")" 1
	cmp <(tail -c "+$((gone + 1))" copy.1.out) <(printf '%s\n' "$output")
	# One line has the sum of the bytes of both ranks.
	listed --no-prefix -r 0-1
	gone=$(sed -nE 's/^xrun: ([0-9]+) bytes were rotated away$/\1/p' <<<"$stderr")
	assert_eq "$(wc -l <<<"$stderr")" 1
	assert_eq "$((gone + $(wc -c <<<"$output")))" "$(cat copy.[01].out | wc -c)"
	listed --tail 10
	assert_eq "$stderr" ''
}

@test "logs: while the job runs, an unfinished line is not one yet" {
	mkfifo go
	spawn run "$XRUN" --log-dir "$PWD/elsewhere" --job busy -n 2 sh -c '
		echo whole; printf part; read -r x <go; echo " and rest"'
	exec 8<>go
	wait_for 10 grep -qs part elsewhere/busy/0/rank-0000/stdout
	wait_for 10 grep -qs part elsewhere/busy/0/rank-0001/stdout
	# The folder is not where folders are: the job says where it is.
	wait_for 10 "$XRUN" logs busy
	listed bu
	assert_eq "$(sort <<<"$output")" $'[0] whole\n[1] whole'
	printf '\n\n' >&8
	wait "$pid"
	# The history knows the folder of the ended job.
	listed busy
	assert_eq "$(sort <<<"$output")" \
		$'[0] part and rest\n[0] whole\n[1] part and rest\n[1] whole'
	listed ./elsewhere/busy
	assert_eq "$(sort <<<"$output")" \
		$'[0] part and rest\n[0] whole\n[1] part and rest\n[1] whole'
	listed ./home
	assert_eq "$stderr" 'xrun: ./home: is not the folder of a job: it has no lock'
}

@test "logs: of a job that was left running, the ranks' and not xrun's words" {
	local id

	id=$("$XRUN" -d -n 2 sh -c 'echo out; exit 3')
	wait_for 10 json_holds 'has("exit")' "$XDG_STATE_HOME/xrun/$id/job.json"
	[ -s "$XDG_STATE_HOME/xrun/$id/0/xrun.log" ]
	listed "$id"
	assert_has "$output" '^\[[01]\] out$'
	assert_eq "$(grep -c 'failed first' <<<"$output$stderr")" 0
}

@test "logs: refusals say what to do" {
	listed
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: there is no job yet   try: xrun ps -a'
	listed --since 12:3x
	assert_eq "$status" 125
	assert_eq "$stderr" \
		"xrun: logs: --since: '12:3x' is no time, such as 10m, 12:34:56 or '2026-11-21 12:34'"
	listed one two
	assert_eq "$status" 125
	spawn run "$XRUN" --no-logs --job quiet sleep 60
	wait_for 10 "$XRUN" ps quiet
	listed quiet
	assert_eq "$status" 125
	assert_eq "$stderr" \
		'xrun: quiet keeps no output: it was started with --no-logs   try: start it without that, or with --log-dir DIR'
	kill "$pid"
	wait "$pid" || true
}

# bats test_tags=sanitize
@test "logs: files that cannot be opened are named, and none is left out" {
	job -n 30 sh -c 'echo out; echo err >&2'
	status=0
	(ulimit -n 40; exec "$XRUN" logs) >out 2>err || status=$?
	assert_eq "$status" 125
	assert_has "$(cat err)" \
		'^xrun: /.*/0/rank-00[0-9]{2}/std(out|err): Too many open files   try: -r RANKS$'
	assert_eq "$(grep -vc '^xrun: job ' err)" 1
	[ ! -s out ]
	assert_eq "$( (ulimit -n 40; exec "$XRUN" logs -r 20-29) | wc -l)" 20
	(ulimit -n 40; exec timeout 10 "$XRUN" logs -f) >out 2>err || true
	assert_has "$(cat err)" 'Too many open files   try: -r RANKS'
}

# bats test_tags=sanitize
@test "logs: a reader that has enough ends it without a word" {
	local statuses

	job -n 1 "$PROG/spew" --lines 20000
	statuses=$("$XRUN" logs 2>err | head -n 1 >one; echo "${PIPESTATUS[0]}")
	assert_eq "$statuses" 141
	# Also where SIGPIPE does not end it.
	statuses=$(trap '' PIPE; "$XRUN" logs 2>>err | head -n 1 >one
		echo "${PIPESTATUS[0]}")
	assert_eq "$statuses" 141
	assert_eq "$(grep -cv '^xrun: job ' err)" 0
	status=0
	"$XRUN" logs >/dev/full 2>err || status=$?
	assert_eq "$status: $(tail -n 1 err)" '125: xrun: standard output: No space left on device'
}

@test "logs: on a terminal colour passes, and of progress the last state" {
	job -n 2 sh -c 'printf "\033]0;title\007\033[31mred\033[2Jx\n"
		printf " 1%%\r50%%\r100%%\n" >&2'
	export TERM=xterm
	screen -- logs -r 1
	assert_eq "$status" 0
	assert_has "$raw" $'1│ \033\\[0m\033\\[31mredx\033\\[0m'
	assert_eq "$(grep -v '^xrun: job ' <<<"$output")" $'1│ redx\n1┃ 100%'
	screen -- logs -r 1 --color never
	assert_has "$raw" $'^1│ \033\\[31mredx\033\\[0m'
	listed -r 1 --color always --stderr
	assert_has "$output" $'^\033\\[1;32m\\[1\\]!\033\\[0m100%$'
}

@test "logs: equal lines of several ranks are one on a terminal, and with --collapse on" {
	local r

	job --job same -n 4 sh -c 'echo all; echo "rank $RANK"'
	for r in 0 1 2 3; do # all at one time, however slow the machine is
		rm -f "$(file same "$r" stdout.idx)"
		touch -r "$(file same 0 stdout)" "$(file same "$r" stdout)"
	done
	export LC_ALL=C
	screen -- logs --color never same
	assert_eq "$(grep -c 'all$' <<<"$output")" 1
	assert_has "$output" '^\[0-3\] all$'
	assert_eq "$(grep -c '^\[[0-3]\] rank [0-3]$' <<<"$output")" 4
	assert_eq "$(grep -c $'\033' <<<"$raw")" 0 # no line is changed
	screen -- logs --collapse off same
	assert_eq "$(grep -c 'all$' <<<"$output")" 4
	listed same
	assert_eq "$(grep -c 'all$' <<<"$output")" 4
	listed --collapse on same
	assert_eq "$(grep 'all$' <<<"$output")" '[0-3] all'
	assert_eq "$(grep -c rank <<<"$output")" 4
	try timeout 10 "$XRUN" logs -f --collapse=on same
	assert_eq "$(grep 'all$' <<<"$output")" '[0-3] all'
	listed --collapse on --no-prefix same
	assert_eq "$(grep -c '^all$' <<<"$output")" 4
	listed --collapse on --json same
	assert_eq "$(grep -c '"all"' <<<"$output")" 4
}

@test "logs: more than 16 ranks on a terminal: rank 0's stdout, everybody's stderr" {
	job --job many -n 20 sh -c 'echo "out $RANK"; [ "$RANK" != 9 ] || echo error >&2'
	screen -- logs --color never many
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" "$(sort <<-'END'
		xrun: 20 ranks: showing rank 0's stdout and everybody's stderr; -r 0-19 shows the rest
		 0│ out 0
		 9┃ error
	END
	)"
	screen -- logs --tail 1 --stdout many
	assert_has "$output" "^xrun: 20 ranks: showing rank 0's stdout; -r 0-19 shows the rest$"
	assert_has "$output" '^ 0│ out 0$'
	screen -- logs -r 0-19 many
	assert_eq "$(grep -c '│ out' <<<"$output")" 20
	assert_eq "$(grep -c showing <<<"$output")" 0
	screen -- logs --grep 'out 1[0-9]' many
	assert_eq "$(grep -c '│ out 1' <<<"$output")" 10
	listed many
	assert_eq "$(grep -c 'out' <<<"$output")" 20
	assert_eq "$stderr" ''
}

@test "logs: progress in a pipe is its last state; of a job of one rank the bytes" {
	job --job bars -n 2 sh -c 'printf "1%%\r50%%\r100%%\n"; echo next'
	listed bars
	assert_eq "$(sort <<<"$output")" $'[0] 100%\n[0] next\n[1] 100%\n[1] next'
	try timeout 10 "$XRUN" logs -f bars
	assert_eq "$(sort <<<"$output")" $'[0] 100%\n[0] next\n[1] 100%\n[1] next'
	job --job bar -n 1 printf '1%%\r50%%\r100%%\n'
	listed bar
	assert_eq "$output" $'1%\r50%\r100%'
	listed -t bar
	assert_has "$output" '^[0-9:.]+ 100%$'
}

# bytes COMMAND... - how many bytes it reads of files.
bytes()
{
	strace -f -qq -e trace=pread64,read,readv -o trace "$@" >/dev/null
	awk '{ if ($NF > 0) sum += $NF } END { print sum + 0 }' trace
}

@test "logs --tail 100 of 10 GB reads the end" {
	unsanitized 'strace sees their own reads'
	need strace
	ulimit -S -f "$(ulimit -H -f)"
	job -n 2 sh -c 'for i in 1 2 3; do echo "line $i"; done'
	for r in 0 1; do
		truncate -s 10G "$(folder)/0/rank-000$r/stdout"
		seq -f 'a line of words, number %.0f' 1000 \
			>>"$(folder)/0/rank-000$r/stdout"
	done
	assert_eq "$("$XRUN" logs --tail 100 | wc -l)" 100
	[ "$(bytes "$XRUN" logs --tail 100)" -lt 300000 ]
	[ "$(bytes "$XRUN" logs --tail 100 --rank 1 -t)" -lt 200000 ]
}

@test "logs: what comes while it prints is another time's" {
	mkfifo go slow
	exec 8<>go 7<>slow
	spawn run "$XRUN" --job one -n 1 sh -c \
		'seq 200000; echo told >&2; read -r x <go; echo later; echo told >&2'
	await_line run.err told 10
	"$XRUN" logs one >slow 2>slow.err 3>&- 7>&- 8>&- &
	local reader=$!
	# It prints, and stands still when the pipe is full.
	IFS= read -r -t 10 line <&7
	assert_eq "$line" 1
	echo >&8
	wait "$pid"
	cat <slow >got 7>&- 3>&- &
	local cat=$!
	exec 7>&-
	wait "$reader" "$cat"
	assert_eq "$(grep -c later got)" 0
	assert_eq "$(grep -vc told got)" 199999
	assert_eq "$("$XRUN" logs --stdout | tail -n 1)" later
}

# --- -f ---------------------------------------------------------------------

# follow NAME ARG... - xrun logs -f in the background; its output is in NAME.out,
# its pid in $reader.
follow()
{
	spawn "$1" "$XRUN" logs -f "${@:2}"
	reader=$pid
}

# begin NAME ARG... - a job that runs in the background: its pid in $ranks, and
# it has an account of itself.
begin()
{
	spawn "$1" "$XRUN" --job "$1" "${@:2}"
	ranks=$pid
	wait_for 60 test -e "$XDG_STATE_HOME/xrun/$1/job.json"
}

# file NAME RANK STREAM - of what it wrote.
file()
{
	printf '%s\n' "$XDG_STATE_HOME/xrun/$1/${4:-0}/rank-000$2/$3"
}

@test "logs -f: what there is, what comes, and the end with the job" {
	mkfifo go0 go1
	exec 8<>go0 9<>go1
	begin one -n 2 sh -c '[ $RANK = 0 ] || echo "early $RANK"; read -r x <go$RANK
		echo "late $RANK" >&2; read -r x <go$RANK; printf "part $RANK"'
	wait_for 10 test -s "$(file one 1 stdout)"
	follow reader one
	await_line reader.out '^\[1\] early 1$' 10
	kill -0 "$reader"
	# A file, and a folder, that were not there before are met, too.
	[ ! -e "$(file one 1 stderr)" ]
	echo >&9
	await_line reader.out '^\[1\]!late 1$' 10
	[ ! -e "$(dirname "$(file one 0 stderr)")" ]
	echo >&8
	await_line reader.out '^\[0\]!late 0$' 10
	echo >&8
	echo >&9
	wait "$ranks"
	await_exit "$reader" 10
	wait "$reader"
	assert_eq "$(sort reader.out)" \
		$'[0] part 0\n[0]!late 0\n[1] early 1\n[1] part 1\n[1]!late 1'
	assert_eq "$(cat reader.err)" ''
	# Of a job that has ended it is the same as without.
	try timeout 10 "$XRUN" logs --follow one
	assert_eq "$status: $(sort <<<"$output")" "0: $(sort reader.out)"
}

# bats test_tags=sanitize
@test "logs -f: --tail, --since and --grep say where it begins" {
	mkfifo go
	exec 8<>go
	begin one -n 1 sh -c 'echo a1; echo b2; echo a3; read -r x <go; echo a4; echo b5'
	wait_for 10 grep -qs a3 "$(file one 0 stdout)"
	follow tail --tail 1
	local tail=$reader
	follow none --tail 0
	local none=$reader
	follow grep --grep a --tail 2 -t
	local grep=$reader
	follow since --since 0
	await_line tail.out '^a3$' 10
	await_line grep.out ' a3$' 10
	wait_for 10 asleep "$none"
	wait_for 10 asleep "$reader"
	echo >&8
	wait "$ranks" "$tail" "$none" "$grep" "$reader"
	assert_eq "$(cat tail.out)" $'a3\na4\nb5'
	assert_eq "$(cat none.out)" $'a4\nb5'
	assert_eq "$(cat since.out)" $'a4\nb5'
	assert_eq "$(sed 's/.* //' grep.out)" $'a1\na3\na4'
	try "$XRUN" logs -f --until 1m
	assert_eq "$status" 125
	assert_has "$stderr" 'until is for what is there already'
}

# asleep PID - the reader watches job and attempt, and waits.
asleep()
{
	[ "$(cat "/proc/$1"/fdinfo/* 2>/dev/null | grep -c '^inotify wd')" -ge 2 ] &&
		grep -q '^State:.S (sleeping)' "/proc/$1/status"
}

# rows RANKS - a job "rows" whose ranks show progress that stands still until the
# file "over" is there. It returns when all of that is in their files: a reader then
# displays it at once.
rows()
{
	local r

	begin rows -n "$1" bash -c 'echo whole; printf "\rrow 1\rrow $RANK$RANK"
		until [ -e over ]; do sleep 0.01; done; printf "\rdone $RANK\n"'
	for ((r = 0; r < $1; r++)); do
		wait_for 60 grep -qs "row $r$r" "$(file rows "$r" stdout)"
	done
}

@test "logs -f on a terminal shows progress while it is written over" {
	rows 2
	in_pty -d 20 -w 'row 00' -w 'row 11' -S 2 -- "$XRUN" logs -f \
		--collapse off --color never rows >raw </dev/null || true
	output=$("$VT" -c 80x24 <raw | sed '/^$/d')
	assert_eq "$(sort <<<"${output%%?│ row*}" | sed '/^$/d')" $'0│ whole\n1│ whole'
	assert_eq "$(tail -n 2 <<<"$output")" $'0│ row 00\n1│ row 11'
	# What a finished line writes over is not there any more.
	in_pty -d 20 -o seen -w 'row 00' -w 'row 11' -w 'done 1' -- "$XRUN" logs -f \
		--collapse off --color never rows >raw </dev/null 3>&- &
	local pty=$!
	wait_for 10 grep -qs 'row 11' seen
	touch over
	wait "$pty" "$ranks"
	output=$("$VT" -c 80x24 <raw | sed '/^$/d' | sort)
	assert_eq "$output" $'0│ done 0\n0│ whole\n1│ done 1\n1│ whole'
}

@test "logs -f on a terminal: progress of one rank, and a prompt" {
	rows 1
	in_pty -d 20 -w 'row 00' -S 2 -- "$XRUN" logs -f rows >raw </dev/null || true
	assert_eq "$("$VT" -c 80x24 <raw | sed '/^$/d')" $'whole\nrow 00'
	touch over
	wait "$ranks"
	begin asks -n 2 bash -c '[ $RANK = 1 ] || printf "name? "
		until [ -e named ]; do sleep 0.01; done; echo joe'
	in_pty -d 20 -w '0│ name? ' -S 2 -- "$XRUN" logs -f --color never asks \
		>raw </dev/null || true
	touch named
	wait "$ranks"
	assert_has "$("$VT" -c 80x24 <raw)" '^0│ name\?'
}

# bats test_tags=sanitize
@test "logs -f in a pipe: the latest state of progress, as a line a second" {
	rows 2
	follow reader rows
	await_line reader.out '^\[0\] row 00$' 10
	await_line reader.out '^\[1\] row 11$' 10
	touch over
	wait "$ranks"
	wait "$reader"
	assert_eq "$(sort reader.out)" "$(printf '[%d] %s\n' 0 'done 0' 0 'row 00' \
		0 whole 1 'done 1' 1 'row 11' 1 whole)"
}

@test "logs -f on a terminal, stopped and continued: what the shell wrote stays" {
	rows 2
	status=0
	PS1='B# ' in_pty -w 'B# ' -s "'$XRUN' logs -f --color never rows\n" \
		-w 'row 11' -s '\032' -w Stopped -w 'B# ' -s 'fg\n' \
		-w 'row 00' -w 'row 11' -s '\003' -w 'B# ' -s 'exit 5\n' -- \
		bash --norc --noediting >raw </dev/null || status=$?
	touch over
	wait "$ranks"
	assert_eq "$status" 5
	output=$("$VT" -c 80x24 <raw)
	assert_has "$output" 'Stopped'
	assert_has "$output" '^B# fg$'
}

@test "logs -f: an idle job costs no wake-up" {
	mkfifo go
	exec 8<>go
	begin one -n 2 sh -c 'echo up; read -r x <go'
	wait_for 10 test -s "$(file one 0 stdout)"
	follow reader
	await_line reader.out up 10
	turned()
	{
		awk '/^voluntary/ { n += $2 } END { print n }' /proc/"$reader"/task/*/status
	}
	still()
	{
		local before

		before=$(turned)
		pass 0.5
		[ "$(turned)" = "$before" ]
	}
	wait_for 10 still
	printf '\n\n' >&8
	wait "$ranks" "$reader"
}

@test "logs -f: a reader that is slow, or dies, costs the ranks nothing" {
	local dead

	mkfifo slow go
	exec 7<>slow 8<>go
	begin one --log-rotate 1M -n 2 sh -c \
		'read -r x <go; exec "$0" "$@"' "$PROG/spew" --lines 20000 --both --copy "$PWD/copy"
	follow dies -r 0
	dead=$reader
	# Nobody reads the pipe: 64 KiB, and it stands still.
	"$XRUN" logs -f -r 1 --no-prefix --stdout >slow 2>slow.err 3>&- 8>&- &
	reader=$!
	wait_for 10 asleep "$reader"
	printf '\n\n' >&8
	await_line dies.out . 20
	kill -KILL "$dead"
	wait "$ranks"
	kill -0 "$reader"
	cat <&7 >got &
	local cat=$!
	await_exit "$reader" 20
	wait "$reader"
	wait_for 10 cmp -s got copy.1.out
	kill "$cat"
	assert_has "$(cat slow.err)" '^xrun: job one, started [0-9]+ s ago$'
	assert_eq "$(wc -l <slow.err)" 1
	"$XRUN" logs --no-prefix -r 0 --stderr one | cmp - copy.0.err
}

# bats test_tags=sanitize
@test "logs -f: many ranks that write at full speed, over pieces: all of it" {
	local r

	mkfifo go
	exec 8<>go
	begin one --log-rotate 64k -n 4 sh -c \
		'read -r x <go; exec "$0" "$@"' "$PROG/spew" --lines 10000 --copy "$PWD/ref"
	follow reader
	wait_for 10 asleep "$reader"
	printf '\n\n\n\n' >&8
	wait "$ranks"
	await_exit "$reader" 30
	wait "$reader"
	for r in 0 1 2 3; do
		sed -n "s/^\[$r\] //p" reader.out | cmp - "ref.$r.out"
	done
	assert_has "$(cat reader.err)" '^xrun: job one, started [0-9]+ s ago$'
	assert_eq "$(wc -l <reader.err)" 1
}

@test "logs -f goes on with the next attempt, and not if one was named" {
	mkfifo go
	exec 8<>go
	begin one -n 2 sh -c 'echo first; read -r x <go'
	wait_for 10 test -s "$(file one 0 stdout)"
	follow all one
	local all=$reader
	follow named one --attempt 0
	await_line all.out '0. first' 10
	await_line named.out '0. first' 10
	kill -STOP "$all" "$reader"
	printf '\n\n' >&8
	wait "$ranks"
	spawn next "$XRUN" --job one -n 3 sh -c 'echo second; read -r x <go'
	ranks=$pid
	wait_for 10 test -s "$(file one 2 stdout 1)"
	kill -CONT "$all" "$reader"
	await_exit "$reader" 10
	wait "$reader"
	await_line all.out '^\[2\] second' 10
	kill -0 "$all"
	printf '\n\n\n' >&8
	wait "$ranks"
	await_exit "$all" 10
	wait "$all"
	assert_eq "$(sort all.out)" \
		$'[0] first\n[0] second\n[1] first\n[1] second\n[2] second'
	assert_eq "$(sort named.out)" $'[0] first\n[1] first'
}

@test "logs -f ends by Ctrl-C with 130, without a reader with 141" {
	begin one -n 1 sh -c 'echo up; exec sleep 60'
	wait_for 10 test -s "$(file one 0 stdout)"
	follow reader
	await_line reader.out up 10
	kill -INT "$reader"
	status=0
	wait "$reader" || status=$?
	assert_eq "$status" 130
	# It need not write to hear of it.
	assert_eq "$(timeout 10 "$XRUN" logs -f 2>err | head -n 1
		echo "${PIPESTATUS[0]}")" $'up\n141'
	assert_eq "$(grep -cv '^xrun: job one, ' reader.err err | tr '\n' ' ')" \
		'reader.err:0 err:0 '
	kill "$ranks"
	wait "$ranks" || true
}

@test "logs -f ends though all of xrun was killed" {
	begin one -n 1 sh -c 'echo up; exec sleep 60'
	wait_for 10 test -s "$(file one 0 stdout)"
	follow reader
	await_line reader.out up 10
	# shellcheck disable=SC2046 # a pid a word
	kill -KILL $(xruns | sed -n '/ xrun-super$\| xrun$/s/ .*//p' | grep -vx "$reader")
	wait "$ranks" || true
	await_exit "$reader" 10
	wait "$reader"
	assert_eq "$(cat reader.out)" up
}

@test "logs -f: where the kernel tells of no change, files are looked at" {
	unsanitized 'strace and they do not go together'
	need strace
	mkfifo go
	exec 8<>go
	begin one -n 2 sh -c 'echo "early $RANK"; read -r x <go; echo "late $RANK" >&2'
	wait_for 10 test -s "$(file one 1 stdout)"
	spawn reader strace -qq -f -o trace -e inject=inotify_init1:error=EMFILE \
		"$XRUN" logs -f
	await_line reader.out 'early 1' 10
	printf '\n\n' >&8
	wait "$ranks" "$pid"
	assert_eq "$(sort reader.out)" \
		$'[0] early 0\n[0]!late 0\n[1] early 1\n[1]!late 1'
}

# --- events -----------------------------------------------------------------

# what - the columns behind the time.
what()
{
	sed -E '2,$s/^[0-9]{4}-[0-9]{2}-[0-9]{2} ..:..:..\.... {2}//; 1s/^TIME +//'
}

@test "events: what happened, a row each" {
	job --job one -n 2 sh -c 'echo x; [ "$RANK" = 1 ] && exit 3
		exec sleep 60'
	try "$XRUN" events
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: job one, [0-9]+ s ago$'
	printf '%s\n' "$output" | what | sed 's/ on [^ ,]*, pid/ on HOST, pid/' | sort | golden events
	# Each in its own row, in the order in which it happened.
	assert_eq "$(what <<<"$output" | cut -d' ' -f1 | uniq | tr '\n' ' ')" \
		'EVENT job.start rank.start rank.exit job.stop rank.exit job.end '
	"$XRUN" events one --json | cmp - "$XDG_STATE_HOME/xrun/one/events.jsonl"
	try "$XRUN" events two
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: there is no job 'two'   try: xrun ps -a"
}

@test "events: one that is not known here is told as it stands" {
	job --job one true
	printf '%s\n' '{"v":1,"time":"2026-11-21T12:00:00.5Z","event":"rank.late","rank":7,"seconds":1.5,"where":"in\u001b[2J a \n lock"}' \
		'no JSON' '{"v":1}' >>"$XDG_STATE_HOME/xrun/one/events.jsonl"
	try "$XRUN" events one
	assert_has "$output" ' job.start .*one, attempt 0: 1 rank on '
	assert_has "$output" '^2026-11-21 12:00:00.500  rank.late     7  seconds 1.5, where in \[2J a   lock$'
	assert_eq "$(tail -n 1 <<<"$output" | sed 's/ *$//')" '-                        ?'
}

@test "events -f: until the job is over" {
	mkfifo go
	exec 8<>go
	spawn one "$XRUN" --job one --log-dir "$PWD/logs" -n 1 sh -c \
		'echo up; read -r x <go'
	ranks=$pid
	wait_for 10 "$XRUN" ps one
	spawn reader "$XRUN" events --follow one
	await_line reader.out 'rank.start +0  pid' 10
	kill -0 "$pid"
	echo >&8
	await_exit "$pid" 10
	wait "$pid" "$ranks"
	assert_eq "$(what <reader.out | cut -d' ' -f1 | tr '\n' ' ')" \
		'EVENT job.start rank.start rank.exit job.end '
	assert_eq "$(timeout 10 "$XRUN" events -f --json ./logs/one | jq -r .event | tail -n 1)" job.end
}
