#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# orphans.bats - keeper and supervisor are killed at once: what their ranks left
# is ended by the next job of the same user, and nobody else is.

bats_require_minimum_version 1.5.0
load helper

# reopen - as if no xrun had closed the job.
reopen()
{
	: >"$XDG_STATE_HOME/xrun/$id/lock"
	ln -f "$XDG_STATE_HOME/xrun/$id/lock" "$XDG_STATE_HOME/xrun/.live/$id"
}

@test "both killed: the next job ends what is left, and closes the record" {
	need jq
	lost
	record=$XDG_STATE_HOME/xrun/$id/job.json
	"$XRUN" sh -c 'echo next'
	none_of "$id"
	assert_eq "$(jq -c '[.exit, .reason, has("end"), .left_behind > 0]' "$record")" \
		'[125,"supervisor lost",true,true]'
	# Once only.
	cp "$record" before
	"$XRUN" sh -c 'echo another'
	cmp before "$record"
	# A record that is closed stays, marked as such or not.
	reopen
	"$XRUN" sh -c 'echo another'
	cmp before "$record"
	[ -s "$XDG_STATE_HOME/xrun/$id/lock" ]
}

# slow_to_go - the lock of the job's xrun is free only when the next job runs.
slow_to_go()
{
	local next

	mkfifo never
	# Its lock is taken by one who ends, and held by us who have the file.
	exec {held}<>"$XDG_STATE_HOME/xrun/$id/lock"
	flock "$held"
	"$XRUN" sh -c 'echo next; read -r _ <>never' {held}>&- & next=$!
	wait_for 10 grep -rqs '"pid":'"$next" "$XDG_STATE_HOME/xrun"
	exec {held}>&- # it looks for two seconds
	wait_for 10 none_of "$id"
	kill "$next"
	wait "$next" || true
}

@test "an xrun that was killed, and is slow to go, is waited for" {
	lost
	slow_to_go
}

@test "so is one that was killed before it had a record" {
	lost
	rm "$XDG_STATE_HOME/xrun/$id/job.json"
	slow_to_go
}

@test "the socket of one that was killed goes, though it was locked for a while" {
	local next

	lost
	mkfifo never
	exec {held}<"$XDG_RUNTIME_DIR/xrun/$id"
	flock "$held"
	"$XRUN" sh -c 'echo next; read -r _ <>never' {held}<&- & next=$!
	wait_for 10 grep -rqs '"pid":'"$next" "$XDG_STATE_HOME/xrun"
	wait_for 10 none_of "$id"
	exec {held}<&- # for a second it is looked at again
	wait_for 10 test ! -e "$XDG_RUNTIME_DIR/xrun/$id"
	kill "$next"
	wait "$next" || true
}

@test "the folder of a lost job that belongs to another user is not changed" {
	need jq
	[ "$(id -u)" = 0 ] || skip 'another user is needed'
	lost
	chown 64997 "$XDG_STATE_HOME/xrun/$id"
	"$XRUN" sh -c 'echo next'
	none_of "$id"
	assert_eq "$(jq -c .exit "$XDG_STATE_HOME/xrun/$id/job.json")" null
	chown 0 "$XDG_STATE_HOME/xrun/$id"
	"$XRUN" sh -c 'echo next'
	assert_eq "$(jq -c .exit "$XDG_STATE_HOME/xrun/$id/job.json")" 125
}

@test "the supervisor is killed: the keeper closes the record" {
	need jq
	spawn job "$XRUN" sh -c 'echo ready; exec sleep 60'
	await_line job.out ready 10
	wait_for 10 records 1
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 125
	assert_eq "$(jq -c '[.exit, .reason, .bytes, has("end"), .argv[0]]' \
		"$XDG_STATE_HOME"/xrun/????/job.json)" \
		'[125,"supervisor lost",6,true,"sh"]'
	[ -s "$(echo "$XDG_STATE_HOME"/xrun/????/lock)" ]
	assert_eq "$(ls "$XDG_STATE_HOME/xrun/.live")" ''
}

@test "both killed: a job that says nothing ends what is left, too" {
	lost
	[ "$(of_job "$id")" -ge 1 ]
	"$XRUN" true
	none_of "$id"
	[ ! -e "$XDG_STATE_HOME/xrun/.live/$id" ]
}

@test "a job stands among the open ones until it is over" {
	mkfifo go
	spawn job "$XRUN" sh -c 'echo ready; read -r _ <go'
	await_line job.out ready 10
	wait_for 10 test -L "$XDG_STATE_HOME/xrun/latest"
	assert_eq "$(ls "$XDG_STATE_HOME/xrun/.live")" \
		"$(readlink "$XDG_STATE_HOME/xrun/latest")"
	"$XRUN" true
	assert_eq "$(ls "$XDG_STATE_HOME/xrun/.live")" \
		"$(readlink "$XDG_STATE_HOME/xrun/latest")"
	echo >go
	wait "$pid"
	assert_eq "$(ls "$XDG_STATE_HOME/xrun/.live")" ''
	"$XRUN" sh -c 'exec 1>&- 2>&-; kill -9 $$' || true
	assert_eq "$(ls "$XDG_STATE_HOME/xrun/.live")" ''
}

@test "both killed: a job without a record is closed, too" {
	need jq
	lost
	record=$XDG_STATE_HOME/xrun/$id/job.json
	rm -f "$record"
	touch -d '1 minute ago' "$XDG_STATE_HOME/xrun/$id/lock"
	"$XRUN" sh -c 'echo next'
	none_of "$id"
	assert_eq "$(jq -c '[.job, .exit, .reason]' "$record")" \
		"[\"$id\",125,\"supervisor lost\"]"
	# The same without any process or record of it.
	rm "$record"
	reopen
	"$XRUN" sh -c 'echo next'
	assert_eq "$(jq -c '[.job, .exit, .reason]' "$record")" \
		"[\"$id\",125,\"supervisor lost\"]"
	[ -s "$XDG_STATE_HOME/xrun/$id/lock" ]
}

@test "both killed: jobs of other hosts and boots are not ours to end" {
	local left

	need jq
	lost
	# Such jobs have no record on this machine and in this boot.
	rm "$XDG_RUNTIME_DIR"/xrun/.job-*
	left=$(of_job "$id")
	record=$XDG_STATE_HOME/xrun/$id/job.json
	jq -c '.host = "elsewhere"' "$record" >there
	cp there "$record"
	"$XRUN" sh -c 'echo next'
	assert_eq "$(of_job "$id")" "$left"
	cmp there "$record"
	# An earlier boot: the record is closed, and nobody is ended.
	jq -c --arg host "$(hostname)" '.host = $host | .boot = "another"' there \
		>"$record"
	"$XRUN" sh -c 'echo next'
	assert_eq "$(of_job "$id")" "$left"
	assert_eq "$(jq -r .reason "$record")" 'supervisor lost'
	left_behind "$id" | cut -d' ' -f1 | xargs kill -KILL
	wait_for 10 none_of "$id"
}

@test "both killed: who has a living xrun above is spared" {
	lost
	spawn other "$XRUN" env "XRUN_JOB=$id" "$PROG/deaf" --linger 0
	await_line other.out ready 10
	wait_for 10 only_deaf
	"$XRUN" sh -c 'echo next'
	only_deaf
	kill "$pid"
	wait "$pid" || true
}

only_deaf()
{
	[ "$(left_behind "$id" | cut -d' ' -f2 | sort -u)" = deaf ]
}

# bats test_tags=sanitize
@test "both killed: a nested xrun ends its job in order" {
	need jq
	# Its output has a reader that stays.
	spawn job "$XRUN" sh -c 'setsid "$XRUN" sh -c "echo inner; sleep 60" \
		>inner.out 2>&1 & wait'
	await_line inner.out inner 10
	wait_for 10 records 2
	kill_both
	"$XRUN" sh -c 'echo next'
	wait_for 10 none_of '.*'
	assert_eq "$(jq -r .reason "$XDG_STATE_HOME"/xrun/????/job.json |
		sort | paste -sd,)" 'ok,signal,supervisor lost'
}

records()
{
	[ "$(find "$XDG_STATE_HOME" -name job.json | wc -l)" -eq "$1" ]
}

# lost_train N - attempt N of the job train is lost; who is left is in $left.
lost_train()
{
	spawn "job$1" "$XRUN" --job train sh -c \
		'setsid sleep 60 <&- >&- 2>&- & echo ready; exec sleep 60'
	await_line "job$1.out" ready 10
	wait_for 10 attempt_is "$1"
}

attempt_is()
{
	[ "$(jq .attempt "$XDG_STATE_HOME/xrun/train/job.json")" = "$1" ]
}

# bats test_tags=sanitize
@test "both killed: the next attempt of a named job ends what is left" {
	local left

	need jq
	record=$XDG_STATE_HOME/xrun/train/job.json
	"$XRUN" --job train echo first
	cp "$record" first
	lost_train 1
	kill_both
	wait_for 10 one_of_train
	left=$(left_behind train | cut -d' ' -f1)
	lost_train 2
	[ "$(left_behind train | grep -c "^$left ")" -eq 0 ]
	kill_both
	wait_for 10 one_of_train
	# Killed before its record was there: an old end is not its own.
	cp first "$record"
	"$XRUN" true
	none_of train
	"$XRUN" --job train sh -c 'echo third'
	assert_eq "$(jq -c '[.attempt, .bytes, .bytes_before]' "$record")" \
		'[3,6,18]'
}

one_of_train()
{
	[ "$(of_job train)" -eq 1 ]
}
