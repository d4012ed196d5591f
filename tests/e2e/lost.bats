#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lost.bats - a job whose keeper and supervisor were killed: every later xrun of
# the same user ends its processes, wherever either keeps its files, and ends no
# other process.

bats_require_minimum_version 1.5.0
load helper

# next_ends ARG... - a job is lost; xrun ARG... ends its processes.
next_ends()
{
	lost
	"$XRUN" "$@" >next.out
	wait_for 10 none_of "$id"
	[ -z "$(ls -A "$XDG_RUNTIME_DIR/xrun")" ]
}

@test "lost: the next job ends it with --no-logs" {
	next_ends --no-logs true
}

@test "lost: the next job ends it with --log-dir" {
	next_ends --log-dir elsewhere echo next
}

@test "lost: the next job ends it with another XDG_STATE_HOME" {
	need jq
	lost
	XDG_STATE_HOME=$PWD/state2 "$XRUN" true
	wait_for 10 none_of "$id"
	assert_eq "$(jq -c '[.exit, .reason]' "$XDG_STATE_HOME/xrun/$id/job.json")" \
		'[125,"supervisor lost"]'
}

@test "lost: xrun ps ends it and lists it as lost" {
	lost
	"$XRUN" ps >running
	none_of "$id"
	[ ! -s running ]
	assert_has "$("$XRUN" ps -a)" "^$id +2  lost .* 125  sh -c "
}

@test "lost: verbs that read files end it" {
	lost
	assert_has "$("$XRUN" logs "$id" | plain)" "^\\[0\\] id $id$"
	none_of "$id"
	lost
	"$XRUN" events "$id" >lost.out
	none_of "$id"
}

@test "lost: a job that ran with --no-logs is ended and listed" {
	lost --no-logs
	"$XRUN" ps >running
	none_of "$id"
	[ ! -s running ]
	assert_has "$("$XRUN" ps -a)" "^$id +2  lost .* 125  sh -c "
}

@test "lost: a job that ran with --log-dir is ended and listed" {
	need jq
	lost --log-dir "$PWD/elsewhere"
	"$XRUN" true
	none_of "$id"
	assert_eq "$(jq -c '[.exit, .reason]' elsewhere/job.json)" \
		'[125,"supervisor lost"]'
	assert_has "$("$XRUN" ps -a)" "^$id +2  lost .* 125  sh -c "
	assert_has "$("$XRUN" logs "$id" | plain)" "^\\[0\\] id $id$"
}

@test "lost: a clock that was set back changes nothing" {
	need jq
	lost
	touch -d '+1 hour' "$XDG_STATE_HOME/xrun/$id/lock" \
		"$XDG_RUNTIME_DIR/xrun/$id" "$XDG_RUNTIME_DIR"/xrun/.job-*
	jq -c '.start = "2999-01-01T00:00:00.000000Z"' \
		"$XDG_STATE_HOME/xrun/$id/job.json" >later
	cp later "$XDG_STATE_HOME/xrun/$id/job.json"
	"$XRUN" true
	wait_for 10 none_of "$id"
}

@test "lost: a job whose record is gone is known by its folder" {
	lost
	rm "$XDG_RUNTIME_DIR"/xrun/.job-*
	"$XRUN" sh -c 'echo next'
	wait_for 10 none_of "$id"
}

# bats test_tags=sanitize
@test "lost: a process that has only the variables of the job lives" {
	local claimant

	lost
	XRUN_JOB=$id setsid sleep 60 3>&- & claimant=$!
	wait_for 10 claims "$claimant"
	"$XRUN" true
	wait_for 10 only_claimant "$claimant"
	lost
	"$XRUN" doctor --clean >cleaned
	none_of "$id"
	kill "$claimant"
	wait "$claimant" || assert_eq "$?" 143
}

claims()
{
	[ "$(cat "/proc/$1/comm")" = sleep ]
}

only_claimant()
{
	[ "$(left_behind "$id" | cut -d' ' -f1)" = "$1" ]
}

@test "lost: a process without variables and descriptors is ended" {
	spawn job "$XRUN" sh -c 'env -i setsid sleep 61 <&- >&- 2>&- &
		echo "child $!"; exec sleep 60'
	await_line job.out '^child ' 10
	kill_both
	kill -0 "${line#child }"
	"$XRUN" ps
	wait_for 5 gone "${line#child }"
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

@test "lost: a job without job.json is recorded, listed and shown" {
	need jq
	lost
	rm "$XDG_STATE_HOME/xrun/$id/job.json"
	assert_has "$("$XRUN" ps -a)" "^$id +2  lost .* 125  sh -c "
	assert_eq "$(jq -c '[.job, .ranks, .exit, .reason]' \
		"$XDG_STATE_HOME/xrun/$id/job.json")" \
		"[\"$id\",2,125,\"supervisor lost\"]"
	assert_has "$("$XRUN" logs "$id" | plain)" "^\\[0\\] id $id$"
}

@test "lost: records of jobs that run are held, and removed at the end" {
	mkfifo go
	spawn job "$XRUN" --no-logs sh -c 'echo ready; read -r _ <go'
	await_line job.out ready 10
	[ "$(find "$XDG_RUNTIME_DIR/xrun" -name '.job-*' | wc -l)" -eq 1 ]
	"$XRUN" true
	assert_has "$("$XRUN" ps)" 'running .* sh -c '
	echo >go
	wait "$pid"
	[ -z "$(ls -A "$XDG_RUNTIME_DIR/xrun")" ]
}

@test "lost: the keeper is killed alone, and nothing stays" {
	spawn job "$XRUN" --no-logs sh -c 'echo ready; exec sleep 60'
	await_line job.out ready 10
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for 10 none_of '.*'
	wait_for 10 no_records
}

no_records()
{
	[ -z "$(find "$XDG_RUNTIME_DIR/xrun" -name '.job-*')" ]
}

# with_errors - a job with --no-logs whose rank has written its error file, which is
# in $file.
with_errors()
{
	spawn job "$XRUN" --no-logs sh -c ': >"$TORCHELASTIC_ERROR_FILE"
		echo "file $TORCHELASTIC_ERROR_FILE"; exec sleep 60'
	await_line job.out '^file ' 10
	file=${line#file }
	[ -e "$file" ]
}

@test "lost: the error files go with a supervisor that outlives its keeper" {
	local file

	with_errors
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for 10 no_records
	[ ! -e "$file" ]
}

@test "lost: the error files go when only the supervisor is killed" {
	local file

	with_errors
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait "$pid" || assert_eq "$?" 125
	[ ! -e "$file" ]
}

@test "lost: the next job removes the error files of a lost one, and none that is in use" {
	local file first

	with_errors
	kill_both
	first=$file
	"$XRUN" true
	[ ! -e "$first" ]
	with_errors
	"$XRUN" ps
	[ -e "$file" ]
	kill "$pid"
	wait "$pid" || true
	[ ! -e "$file" ]
}

# limited LIMIT... - the same job, started with these options of prlimit(1).
limited()
{
	spawn job prlimit "$@" -- "$XRUN" --no-logs sh -c \
		'env -i setsid sleep 61 <&- >&- 2>&- & echo "child $!"; exec sleep 60'
	await_line job.out '^child ' 10
	child=${line#child }
	kill_both
	"$XRUN" ps
}

@test "lost: a job is found if RLIMIT_RTTIME was set when it started" {
	local child

	limited --rttime=1000000:1000000
	wait_for 5 gone "$child"
	[ ! -s job.err ]
	limited --rttime=1000000:1000000 --locks=1000000:1000000
	assert_has "$(cat job.err)" '^xrun: RLIMIT_RTTIME and RLIMIT_LOCKS cannot be set: '
	kill "$child"
}

@test "lost: the next job with another XDG_RUNTIME_DIR ends it" {
	local first=$XDG_RUNTIME_DIR

	mkdir -m 700 run2
	lost --no-logs
	XDG_RUNTIME_DIR=$PWD/run2 "$XRUN" -q true
	wait_for 10 none_of "$id"
	[ -z "$(find "$XDG_STATE_HOME" "$first" -name '.at-*' -o -name '.job-*')" ]
	[ -z "$(find "$first" -name '.errors-*')" ]
}

@test "lost: the record of another host stays" {
	spawn job "$XRUN" sh -c 'echo ready; exec sleep 60'
	await_line job.out ready 10
	cp "$XDG_RUNTIME_DIR"/xrun/.job-* record
	kill "$pid"
	wait "$pid" || true
	sed 's/"host":"[^"]*"/"host":"elsewhere"/; s/,"boot":"[^"]*"//' record \
		>"$XDG_RUNTIME_DIR/xrun/.job-0000000000000007"
	"$XRUN" ps
	"$XRUN" true
	[ -s "$XDG_RUNTIME_DIR/xrun/.job-0000000000000007" ]
}
