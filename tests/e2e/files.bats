#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# files.bats - what a job leaves on the disk: where, with which rights, how long.

bats_require_minimum_version 1.5.0
load helper

# job ARG... - runs xrun into the files out and err; $status is its.
job()
{
	status=0
	"$XRUN" "$@" >out 2>err || status=$?
}

# modes PATH... - their permissions, in one line.
modes()
{
	stat -c %a "$@" | paste -sd' '
}

# --- layout -----------------------------------------------------------------

@test "latest points to a running job once it has written a byte" {
	local root=$XDG_STATE_HOME/xrun go

	mkfifo go
	exec {go}<>go
	spawn run "$XRUN" -n 1 bash -c 'read -r _ <go; echo hi; read -r _ <go'
	# shellcheck disable=SC2016 # for the other shell
	wait_for 10 bash -c 'compgen -G "$0/*/job.json" >/dev/null' "$root"
	[ ! -e "$root/latest" ]
	echo >&"$go"
	wait_for 10 test -e "$root/latest/0/rank-0000/stdout"
	echo >&"$go"
	wait "$pid"
	[ -e "$root/latest/job.json" ]
}

@test "a job's folder: layout, rights, and the link to the latest" {
	local dir id

	umask 0
	job -n 2 bash -c 'echo out; echo err >&2'
	id=$(readlink "$XDG_STATE_HOME/xrun/latest")
	[[ $id =~ ^[a-km-np-z][a-km-np-z2-9]{3}$ ]]
	dir=$XDG_STATE_HOME/xrun/$id
	assert_eq "$(cd "$dir" && find . -type f | sort | paste -sd' ')" \
		'./0/rank-0000/stderr ./0/rank-0000/stdout ./0/rank-0001/stderr ./0/rank-0001/stdout ./events.jsonl ./job.json ./lock'
	assert_eq "$(modes "$XDG_STATE_HOME/xrun" "$dir" "$dir/0" "$dir/0/rank-0001")" \
		'700 700 700 700'
	assert_eq "$(modes "$dir"/{lock,job.json,events.jsonl,0/rank-0000/std*})" \
		'600 600 600 600 600'
	job echo again
	[ "$(readlink "$XDG_STATE_HOME/xrun/latest")" != "$id" ]
	[ -e "$dir/job.json" ]
}

@test "job.json and events.jsonl say what was run and how it ended" {
	local dir

	need jq
	job -n 3 "$PROG/die" --rank 1 --exit 7 --say boo
	assert_eq "$status" 7
	dir=$XDG_STATE_HOME/xrun/latest
	assert_eq "$(jq -r '[.v, .ranks, .exit, .reason, .culprit, .bytes] | @csv' "$dir/job.json")" \
		'1,3,7,"failure",1,4'
	assert_eq "$(jq -r .job "$dir/job.json")" "$(readlink "$dir")"
	assert_eq "$(jq -r '.argv[0]' "$dir/job.json")" "$PROG/die"
	assert_eq "$(jq -r .host "$dir/job.json")" "$(hostname)"
	assert_eq "$(jq -r .boot "$dir/job.json")" \
		"$(cat /proc/sys/kernel/random/boot_id)"
	# One object a line, numbered, in the order of time.
	json_holds -s 'map(.seq) == [range(length)] and (map(.mono_ns) | . == sort)' \
		"$dir/events.jsonl"
	assert_eq "$(jq -r .event "$dir/events.jsonl" | sed -n '1p;$p' | paste -sd' ')" \
		'job.start job.end'
}

@test "while it runs, job.json has no end and the lock is held" {
	local dir

	need jq flock
	spawn job "$XRUN" "$PROG/deaf"
	await_line job.out ready 5
	dir=$(echo "$XDG_STATE_HOME"/xrun/????)
	await_file "$dir/job.json" 5
	assert_eq "$(jq -r '[.pid, has("exit"), has("end")] | @csv' "$dir/job.json")" \
		"$pid,false,false"
	run ! flock -n "$dir/lock" true
	kill -KILL "$(pgrep -P "$(xruns | sed -n 's/ xrun-super$//p')")"
	wait "$pid" || true
	flock -n "$dir/lock" true
	assert_eq "$(jq .exit "$dir/job.json")" 137
}

@test "a run that wrote no byte leaves no folder" {
	job -n 2 true
	assert_eq "$status" 0
	job -n 2 false
	assert_eq "$status" 1
	job -n 2 "$PROG/die" --signal SEGV
	assert_eq "$status" 139
	job ./missing
	assert_eq "$status" 127
	job -n 2 python3 -c pass
	assert_eq "$(ls "$XDG_STATE_HOME/xrun")" ''
}

@test "an empty write makes no file" {
	job -n 2 bash -c 'exec 3>&1; echo -n; echo -n >&2; [ "$RANK" = 0 ] || echo x'
	assert_eq "$(cd "$XDG_STATE_HOME/xrun/latest/0" && find . -type f)" \
		./rank-0001/stdout
}

@test "many jobs at once have folders of their own" {
	local i pids=()

	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		spawn "job$i" "$XRUN" -n 2 echo "$i"
		pids+=("$pid")
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
	assert_eq "$(cat "$XDG_STATE_HOME"/xrun/????/0/rank-0000/stdout | sort -n | paste -sd' ')" \
		'1 2 3 4 5 6 7 8 9 10 11 12'
	assert_eq "$(cat job*.err)" ''
}

# --- --log-dir --------------------------------------------------------------

@test "--log-dir: absent or empty it is the folder, else it holds one" {
	local dir

	job --log-dir new/logs -n 2 echo one
	assert_eq "$(cat new/logs/0/rank-0001/stdout)" one
	assert_eq "$(modes new new/logs)" '700 700'
	mkdir empty
	job --log-dir empty echo two
	assert_eq "$(cat empty/0/rank-0000/stdout)" two
	job --log-dir empty echo three
	dir=$(find empty -mindepth 1 -maxdepth 1 -name '????' ! -name lock)
	assert_eq "$(cat "$dir/0/rank-0000/stdout")" three
	assert_eq "$(cat empty/0/rank-0000/stdout)" two
	[ ! -e "$XDG_STATE_HOME/xrun/latest" ]
}

@test "--log-dir: of two that start at once each keeps its output" {
	local round first second

	for round in {1..30}; do
		"$XRUN" --timeout 20s --log-dir "pair$round" echo one >/dev/null 2>>errs 3>&- &
		first=$!
		"$XRUN" --timeout 20s --log-dir "pair$round" echo two >/dev/null 2>>errs 3>&- &
		second=$!
		wait "$first"
		wait "$second"
		assert_eq "$(find "pair$round" -name stdout -exec cat {} + | sort |
			paste -sd' ')" 'one two'
		assert_eq "$(find "pair$round" -name lock | wc -l)" 2
		assert_eq "$(find "pair$round" -name job.json | wc -l)" 2
	done
	[ ! -s errs ]
}

@test "--log-dir: {job} and {host} stand for themselves" {
	job --log-dir 'logs/{host}/{job}-x' "$PROG/envshow" XRUN_JOB
	assert_eq "$status" 0
	assert_has "$(cat out)" '^XRUN_JOB=.'
	assert_eq "$(cat "logs/$(hostname)/$(sed 's/.*=//' out)-x/0/rank-0000/stdout")" \
		"$(cat out)"
}

@test "--log-dir: what stands in braces is a name, and a doubled one a brace" {
	local text

	job --log-dir 'a{{job}}b' echo hi
	assert_eq "$(cat 'a{job}b/0/rank-0000/stdout')" hi
	job --job me --log-dir 'c{{job}}' echo hi
	assert_eq "$(cat 'c{job}/me/0/rank-0000/stdout')" hi
	try "$XRUN" --log-dir 'out.{jbo}' true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --log-dir: byte 4: '{jbo}' is not one of {job} {host} (did you mean {job}?)"
	XRUN_LOG_DIR='x{rank}' try "$XRUN" true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: XRUN_LOG_DIR: byte 1: '{rank}' is not one of {job} {host}; a brace of the text is doubled"
	for text in 'a{' 'a}' '{}' '{job}}' '{{job}'; do
		try "$XRUN" --log-dir "$text" true
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: --log-dir: byte [0-9]+: '
	done
	echo '{"log-dir": "{foo}"}' >c.json
	try "$XRUN" config check c.json
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: c.json:1:13: log-dir: byte 0: '\\{foo\\}' is not one of"
	[ ! -e x ]
}

@test "--log-dir: a run that wrote no byte leaves a given folder as it was" {
	mkdir given
	job --log-dir given --report report true
	assert_eq "$status" 0
	ranks_exited_0 1
	assert_eq "$(ls -A given 2>&1)" ''
	touch given/mine
	job --log-dir given true
	assert_eq "$(ls -A given)" mine
}

@test "a folder that cannot be written is an error before any rank" {
	touch file
	job --log-dir file/x "$PROG/stamp" ran
	assert_eq "$status" 125
	assert_has "$(cat err)" \
		"^xrun: $PWD/file/x: Not a directory   try: --log-dir DIR or --no-logs\$"
	XDG_STATE_HOME=$PWD/file job "$PROG/stamp" ran
	assert_eq "$status" 125
	assert_has "$(cat err)" 'try: --log-dir DIR or --no-logs'
	[ ! -e ran ]
	XDG_STATE_HOME=$PWD/file job --no-logs echo goes
	assert_eq "$status" 0
}

# in_place_of_file LINK-COMMAND... - somebody makes a link where rank 0's file is
# to be; what it leads to stays as it was, and nothing is lost.
in_place_of_file()
{
	local dir

	rm -rf "$XDG_STATE_HOME/xrun" job.err go
	mkfifo go
	spawn job "$XRUN" bash -c 'read -r _ <go; echo secret; exit 5'
	wait_for 5 test -d "$XDG_STATE_HOME/xrun"
	wait_for 5 compgen -G "$XDG_STATE_HOME/xrun/????/0"
	dir=$(echo "$XDG_STATE_HOME"/xrun/????/0)
	mkdir -p "$dir/rank-0000"
	"$@" "$PWD/victim" "$dir/rank-0000/stdout"
	echo >go
	await_line job.err 'ranks wait until it can be written' 5
	[ ! -s victim ]
	rm "$dir/rank-0000/stdout"
	await_exit "$pid" 10
	assert_eq "$(cat "$dir/rank-0000/stdout")" secret
	[ ! -s victim ]
}

@test "rel-82 a link in place of a rank's file is not followed" {
	in_place_of_file ln -s
	[ ! -e victim ]
}

@test "rel-82 a hard link in place of a rank's file is not written to" {
	touch victim
	in_place_of_file ln
}

# --- the index --------------------------------------------------------------

# check_index FILE - records in order, none beyond the end, the last one there.
check_index()
{
	/usr/bin/python3 - "$1" <<-'EOS'
	import os, struct, sys, time
	data = open(sys.argv[1] + '.idx', 'rb').read()
	assert len(data) % 16 == 0, 'torn record'
	records = list(struct.iter_unpack('<Qq', data))
	ends = [r[0] for r in records]
	times = [r[1] for r in records]
	assert ends == sorted(set(ends)), 'ends do not grow'
	assert all(b - a >= 10_000_000 for a, b in zip(times, times[1:])), 'too close'
	assert ends[-1] <= os.path.getsize(sys.argv[1]), 'beyond the end'
	assert 0 <= time.time_ns() - times[-1] < 60e9, 'no time of today'
	print(len(records), ends[-1] == os.path.getsize(sys.argv[1]))
	EOS
}

@test "the index tells when which part was written" {
	need /usr/bin/python3
	# Each line once the one before is in the file, however slow xrun is. An
	# index has a record for 10 ms at most.
	job bash -c '
		raw=$1/$XRUN_JOB/0/rank-0000/stdout had=0
		for i in 1 2 3 4 5 6; do
			echo "line $i"
			had=$((had + 7))
			until [ "$(stat -c %s "$raw")" = "$had" ]; do sleep 0.002; done
			sleep 0.02
		done' - "$XDG_STATE_HOME/xrun"
	run check_index "$XDG_STATE_HOME/xrun/latest/0/rank-0000/stdout"
	assert_eq "$output" '6 True'
	assert_eq "$(modes "$XDG_STATE_HOME/xrun/latest/0/rank-0000/stdout.idx")" 600
}

@test "the index of much output is small and complete" {
	need /usr/bin/python3
	job -n 2 bash -c '"$1" --lines 300000; "$2" --count 2 --gap 20' - \
		"$PROG/spew" "$BUILD/tests/bench/tick"
	run check_index "$XDG_STATE_HOME/xrun/latest/0/rank-0001/stdout"
	assert_has "$output" 'True$'
}

# --- retention --------------------------------------------------------------

# old_job ID DAYS [BYTES [EXIT [HOST]]] - a job that ended so long ago.
old_job()
{
	local dir=$XDG_STATE_HOME/xrun/$1

	mkdir -p "$dir/0/rank-0000"
	: >"$dir/lock"
	echo text >"$dir/0/rank-0000/stdout"
	printf '{"v":1,"job":"%s","host":"%s","exit":%d,"bytes":%d}\n' "$1" \
		"${5:-$(hostname)}" "${4:-0}" "${3:-5}" >"$dir/job.json"
	touch -d "$2 days ago" "$dir"
}

# kept - the ids that are still there, but for the newest.
kept()
{
	find "$XDG_STATE_HOME/xrun" -mindepth 1 -maxdepth 1 -type d \
		! -name .live ! -name '.run-*' ! -name "$(readlink "$XDG_STATE_HOME/xrun/latest")" -printf '%f\n' |
		sort | paste -sd' '
}

forget_latest()
{
	local id

	id=$(readlink "$XDG_STATE_HOME/xrun/latest")
	rm -r "$XDG_STATE_HOME/xrun/$id"
}

# look WANT - jobs, until those that are kept are WANT: a look ends after 0.05 s, and what it
# has not seen by then stays.
look()
{
	local i

	for ((i = 0; i < 20; i++)); do
		job echo
		[ "$(kept)" != "$1" ] || return 0
		forget_latest
		rm -f "$XDG_STATE_HOME/xrun/.retained"
	done
	assert_eq "$(kept)" "$1"
}

@test "retention: what is older than 7 days goes, failed or not" {
	old_job aged 8
	old_job fail 8 5 1
	old_job week 6
	old_job news 0
	look 'news week'
}

@test "retention: a running job, another machine's, and what is no job stay" {
	local lock

	old_job runs 8
	exec {lock}<"$XDG_STATE_HOME/xrun/runs/lock"
	flock "$lock"
	old_job host 8 5 0 elsewhere
	mkdir "$XDG_STATE_HOME/xrun/mine"
	touch -d '30 days ago' "$XDG_STATE_HOME/xrun/mine"
	# Of an xrun that was killed before it wrote down whose it is.
	old_job nojs 8
	rm "$XDG_STATE_HOME/xrun/nojs/job.json"
	touch -d '8 days ago' "$XDG_STATE_HOME/xrun/nojs"
	old_job newl 1
	rm "$XDG_STATE_HOME/xrun/newl/job.json"
	touch -d '6 days ago' "$XDG_STATE_HOME/xrun/newl"
	old_job aged 8
	look 'host mine newl runs'
}

@test "retention: beyond 2 GiB the oldest goes first, failed ones last" {
	old_job aaaa 5 900000000 1
	old_job bbbb 4 900000000
	old_job cccc 3 900000000
	old_job dddd 2 200000000
	look 'aaaa cccc dddd'
}

# bats test_tags=sanitize,keep
@test "rel-57 a state file that is garbage is never half-trusted: its job stays" {
	local here id

	here=$(hostname)
	for id in good none half list text deep huge tail; do
		old_job $id 8
	done
	cd "$XDG_STATE_HOME/xrun" || return 1
	: >none/job.json
	printf '{"v":1,"job":"half","host":"%s","ex' "$here" >half/job.json
	printf '[1,2]' >list/job.json
	printf '{"v":1,"host":5,"exit":"0","bytes":"5"}' >text/job.json
	printf '[%.0s' {1..100000} >deep/job.json
	printf '{"v":1,"host":"%s","exit":0,"bytes":1e999}' "$here" >huge/job.json
	printf '{"v":1,"host":"%s","exit":0,"bytes":5} x' "$here" >tail/job.json
	touch -d '8 days ago' ./*
	job echo hi
	assert_eq "$status" 0
	assert_eq "$(cat out err)" hi
	forget_latest
	rm -f .retained
	look 'deep half huge list none tail text'
	run -125 "$XRUN"
	assert_has "$output" ' No job running\.$'
}

@test "retention: a link is removed, never followed" {
	mkdir -p precious/deep
	echo gold >precious/deep/file
	old_job aged 8
	ln -s "$PWD/precious" "$XDG_STATE_HOME/xrun/aged/0/link"
	ln -s "$PWD/precious" "$XDG_STATE_HOME/xrun/link"
	touch -d '8 days ago' "$XDG_STATE_HOME/xrun/aged"
	look ''
	assert_eq "$(cat precious/deep/file)" gold
}

@test "retention: not looked at again within ten minutes" {
	job echo
	forget_latest
	old_job aged 8
	job echo
	assert_eq "$(kept)" aged
	forget_latest
	rm "$XDG_STATE_HOME/xrun/.retained"
	look ''
}
