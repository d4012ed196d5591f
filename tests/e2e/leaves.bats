#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# leaves.bats - a control group for each rank, where groups were delegated; made
# here by hand, by root, as systemd does it. And none where they were not.

bats_require_minimum_version 1.5.0
load helper

setup()
{
	private_place
	group=
}

teardown()
{
	nothing_left
	[ -z "$group" ] || wait_for 5 rmdir "$group"
}

# delegated - a group in $group that systemd might have made for us.
delegated()
{
	local top

	need python3
	top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$top" ] || skip 'no control groups of version 2 here'
	mkdir "$top/xrun-test-$$" 2>/dev/null ||
		skip 'no control group may be made here'
	group=$top/xrun-test-$$
	python3 -c 'import os, sys
os.setxattr(sys.argv[1], "trusted.delegate", b"1")' "$group" ||
		skip 'no mark may be set here'
}

# inside COMMAND... - runs it in the group, as systemd starts a service.
inside()
{
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		env INVOCATION_ID=0123 "$@"
}

# groups - those below ours.
groups()
{
	find "$group" -mindepth 1 -type d | sort
}

no_groups()
{
	[ -z "$(groups)" ]
}

# populated - does anybody live in it?
populated()
{
	grep -q '^populated 1' "$group/cgroup.events"
}

empty()
{
	! populated
}

@test "delegated: each rank is in a group of its own, which goes with the job" {
	delegated
	try inside "$XRUN" -n 3 grep 0:: /proc/self/cgroup
	assert_eq "$status" 0
	assert_eq "$(sed -E 's,xrun-[a-z0-9]{4}/,xrun-JOB/,; s,.*/xrun-test-[0-9]*,,' \
		<<<"$output" | sort | paste -sd' ')" \
		'/xrun-JOB/rank-0000 /xrun-JOB/rank-0001 /xrun-JOB/rank-0002'
	no_groups
}

@test "delegated: who left session, parent and environment is ended and named" {
	delegated
	try inside "$XRUN" sh -c 'mkdir "$0/xrun-$XRUN_JOB/rank-0000/own"
		env -i setsid sleep 60 >/dev/null 2>&1 &
		sleep 0.1' "$group"
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: 1 process outlived its rank and was ended: sleep'
	no_groups
}

# bats test_tags=sanitize
@test "delegated: who came into the group and is no child of anybody goes, too" {
	local guest status=0

	delegated
	setsid sleep 60 >/dev/null 2>&1 3>&- &
	guest=$!
	try inside "$XRUN" sh -c \
		'echo "$1" >"$0/xrun-$XRUN_JOB/rank-0000/cgroup.procs"' "$group" \
		"$guest"
	assert_eq "$status" 0
	wait "$guest" || status=$?
	assert_eq "$status" 137
	no_groups
}

@test "delegated: the supervisor is killed, and nobody is left in the groups" {
	delegated
	spawn job bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		env INVOCATION_ID=0123 "$XRUN" -n 2 sh -c \
		'env -i setsid sleep 60 & echo ready; wait'
	await_line job.out '^\[1\] ready' 10
	await_line job.out '^\[0\] ready' 10
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait "$pid" || status=$?
	assert_eq "$status" 125
	empty
	no_groups
}

# bats test_tags=sanitize
@test "delegated: both are killed, and the next job ends what is in the groups" {
	local super

	delegated
	spawn job bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		env INVOCATION_ID=0123 "$XRUN" -n 2 sh -c \
		'env -i setsid sleep 60 & echo ready; wait'
	await_line job.out '^\[1\] ready' 10
	await_line job.out '^\[0\] ready' 10
	await_file "$(echo "$XDG_STATE_HOME"/xrun/????)/job.json" 10
	assert_has "$(cat "$XDG_STATE_HOME"/xrun/????/job.json)" \
		'"cgroup":"[^"]*/xrun-test-[0-9]+",.*"rank_cgroups":"[0-9]+:[0-9]+"'
	super=$(pgrep -P "$pid" -x xrun-super)
	kill -STOP "$pid" "$super"
	kill -KILL "$super" "$pid" # whose death wakes its supervisor up
	wait "$pid" || true
	populated
	"$XRUN" sh -c 'echo next'
	wait_for 5 empty
	no_groups
}

# bats test_tags=sanitize
@test "delegated: a later group of the same name is another job's" {
	delegated
	spawn one bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		env INVOCATION_ID=0123 "$XRUN" --job train sh -c 'echo up; sleep 60'
	await_line one.out up 10
	record=$XDG_STATE_HOME/xrun/train/job.json
	await_file "$record" 10
	cp "$record" before
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait "$pid" || true
	no_groups
	# As if the keeper had been killed as well.
	cp before "$record"
	: >"$XDG_STATE_HOME/xrun/train/lock"
	ln -f "$XDG_STATE_HOME/xrun/train/lock" "$XDG_STATE_HOME/xrun/.live/train"
	spawn two bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		env INVOCATION_ID=0123 "$XRUN" --job train --log-dir elsewhere \
		sh -c 'echo up; sleep 60'
	await_line two.out up 10
	"$XRUN" sh -c 'echo next'
	[ -s "$XDG_STATE_HOME/xrun/train/lock" ]
	populated
	kill "$pid"
	wait "$pid" || status=$?
	assert_eq "$status" 143
}

# bats test_tags=sanitize
@test "delegated: no room for groups is no reason not to run" {
	delegated
	echo 1 >"$group/cgroup.max.descendants"
	try inside "$XRUN" -n 2 grep 0:: /proc/self/cgroup
	assert_eq "$status" 0
	assert_eq "$(grep -c "/xrun-test-$$$" <<<"$output")" 2
	no_groups
}

@test "not delegated: no group is made, and looking is one call" {
	delegated
	python3 -c 'import os, sys
os.removexattr(sys.argv[1], "trusted.delegate")' "$group"
	try inside "$XRUN" -n 2 grep 0:: /proc/self/cgroup
	assert_eq "$(grep -c "/xrun-test-$$$" <<<"$output")" 2
	no_groups
	need strace
	unsanitized 'has files of its own in /proc'
	env -u INVOCATION_ID strace -f -o trace "$XRUN" true
	# A job that takes long looks at limits of memory and processes, too.
	assert_eq "$(grep -c '/cgroup\.[a-z]' trace)" 1
}
