#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# logs.bats - xrun logs and xrun events: what a job wrote and what happened to
# it, read from its files.

bats_require_minimum_version 1.5.0
load helper

# logs ARG... - as try, of xrun logs.
logs()
{
	try "$XRUN" logs "$@"
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
	logs --stdout
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" "$want"
	logs --no-prefix --stdout
	assert_eq "$output" "$(lines 0 8)"
	logs --stdout --tail 4
	assert_eq "$output" "$(tail -n 4 <<<"$want")"
	logs --tail=0
	assert_eq "$status: $output" '0: '
	logs -r 0,-1 --no-prefix --stdout
	assert_eq "$output" "$(lines 0 8 | sed '/[147]$/d')"
	logs --rank 1
	assert_eq "$output" $'[1] line 1\n[1] line 4\n[1] line 7\n[1]!end'
	logs --stderr
	assert_eq "$output" '[1]!end'
	logs --grep 'ne 7'
	assert_eq "$output" '[1] line 7'
	logs --grep line --tail 2
	assert_eq "$output" $'[1] line 7\n[2] line 8'
	logs --grep 'line .'
	assert_eq "$status: $output" '0: '

	logs -t --stdout
	assert_eq "$(sed -E 's/^..:..:..\.... //' <<<"$output")" "$want"
	sort -c <<<"$output"
	at=$(sed -n '/line 4$/s/ .*//p' <<<"$output")
	logs --stdout --no-prefix --since "$at"
	assert_eq "$output" "$(lines 4 8)"
	logs --stdout --no-prefix --until "$at"
	assert_eq "$output" "$(lines 0 4)"
	logs --stdout --no-prefix --until "$at" --tail 2
	assert_eq "$output" "$(lines 3 4)"
	logs --stdout --no-prefix --since "$at" --tail 100
	assert_eq "$output" "$(lines 4 8)"
	logs --since 0
	assert_eq "$status: $output" '0: '
	logs --since 1h --stdout
	assert_eq "$output" "$want"
	logs --until 1h
	assert_eq "$status: $output" '0: '
}

@test "logs --json: each line with time, rank and stream" {
	need jq
	job -n 2 sh -c 'echo "out \"$RANK"; printf "\377\t." >&2'
	logs --json
	assert_eq "$(jq -c '[.rank, .stream, .text]' <<<"$output" | sort)" \
		$'[0,"stderr","�\\t."]\n[0,"stdout","out \\"0"]\n[1,"stderr","�\\t."]\n[1,"stdout","out \\"1"]'
	printf '%s\n' "$output" >lines.jsonl
	need_schemas
	fits log lines.jsonl
	# Its time is one that --since takes.
	logs --since "$(jq -rs 'map(.time) | min' lines.jsonl)" --json
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
	logs
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
	logs night
	assert_eq "$(sort <<<"$output")" $'[0] second\n[1] second\n[2] second'
	logs nig --attempt 0
	assert_eq "$(sort <<<"$output")" $'[0] first\n[1] first'
	# Its own number of ranks.
	logs --attempt 0 -r 2
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --rank: '2': the ranks are 0 to 1"
	logs night --attempt 7
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: night has no attempt 7   try: --attempt 1, its last'
}

@test "logs: over every border of --log-rotate; what is gone is said once" {
	local gone

	job --log-rotate 64k -n 1 "$PROG/spew" --lines 20000 --copy "$PWD/copy"
	"$XRUN" logs | cmp - copy.0.out
	"$XRUN" logs --tail 7000 | cmp - <(tail -n 7000 copy.0.out)
	job --log-rotate 64k,3 -n 2 "$PROG/spew" --lines 20000 --copy "$PWD/copy"
	logs --no-prefix -r 1
	assert_eq "$status" 0
	gone=$(sed -nE 's/^xrun: ([0-9]+) bytes were rotated away$/\1/p' <<<"$stderr")
	assert_eq "$(wc -l <<<"$stderr")" 1
	cmp <(tail -c "+$((gone + 1))" copy.1.out) <(printf '%s\n' "$output")
	logs --tail 10
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
	logs bu
	assert_eq "$(sort <<<"$output")" $'[0] whole\n[1] whole'
	printf '\n\n' >&8
	wait "$pid"
	# Later nobody knows of it, but by its path.
	logs busy
	assert_eq "$status: $stderr" \
		"125: xrun: there is no job 'busy'   try: xrun ps -a"
	logs ./elsewhere/busy
	assert_eq "$(sort <<<"$output")" \
		$'[0] part and rest\n[0] whole\n[1] part and rest\n[1] whole'
	logs ./home
	assert_eq "$stderr" 'xrun: ./home: is not the folder of a job: it has no lock'
}

@test "logs: of a job that was left running, the ranks' and not xrun's words" {
	local id

	id=$("$XRUN" -d -n 2 sh -c 'echo out; exit 3')
	wait_for 10 jq -e 'has("exit")' "$XDG_STATE_HOME/xrun/$id/job.json"
	[ -s "$XDG_STATE_HOME/xrun/$id/0/xrun.log" ]
	logs "$id"
	assert_has "$output" '^\[[01]\] out$'
	! grep -q 'failed first' <<<"$output$stderr"
}

@test "logs: refusals say what to do" {
	logs
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: there is no job that kept output   try: xrun ps -a'
	logs --since 12:3x
	assert_eq "$status" 125
	assert_eq "$stderr" \
		"xrun: logs: --since: '12:3x' is no time, such as 10m, 12:34:56 or '2026-11-21 12:34'"
	logs one two
	assert_eq "$status" 125
	spawn run "$XRUN" --no-logs --job quiet sleep 60
	wait_for 10 test -S "$XDG_RUNTIME_DIR/xrun/quiet/control"
	logs quiet
	assert_eq "$status" 125
	assert_eq "$stderr" \
		'xrun: quiet keeps no output: it was started with --no-logs   try: start it without that, or with --log-dir DIR'
	kill "$pid"
	wait "$pid" || true
}

@test "logs: a reader that has enough ends it without a word" {
	local statuses

	job -n 1 "$PROG/spew" --lines 20000
	statuses=$("$XRUN" logs 2>err | head -n 1 >one; echo "${PIPESTATUS[0]}")
	assert_eq "$statuses" 141
	# Also where SIGPIPE does not end it.
	statuses=$(trap '' PIPE; "$XRUN" logs 2>>err | head -n 1 >one
		echo "${PIPESTATUS[0]}")
	assert_eq "$statuses" 141
	assert_eq "$(cat err)" ''
	status=0
	"$XRUN" logs >/dev/full 2>err || status=$?
	assert_eq "$status: $(cat err)" '125: xrun: standard output: No space left on device'
}

@test "logs: on a terminal colour passes, and of progress the last state" {
	job -n 2 sh -c 'printf "\033]0;title\007\033[31mred\033[2Jx\n"
		printf " 1%%\r50%%\r100%%\n" >&2'
	export TERM=xterm
	screen -- logs -r 1
	assert_eq "$status" 0
	assert_has "$raw" $'1│ \033\\[0m\033\\[31mredx\033\\[0m'
	assert_eq "$output" $'1│ redx\n1┃ 100%'
	screen -- logs -r 1 --color never
	assert_has "$raw" $'^1│ \033\\[31mredx\033\\[0m'
	logs -r 1 --color always --stderr
	assert_has "$output" $'^\033\\[1;32m\\[1\\]!\033\\[0m 1%\r50%\r100%$'
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
