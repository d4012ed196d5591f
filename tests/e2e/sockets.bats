#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# sockets.bats - another user made the folder for control sockets below /tmp. In a
# mount namespace, since /tmp is everybody's.

bats_require_minimum_version 1.5.0
load helper

setup()
{
	private_place
	need setpriv
	[ "$(id -u)" = 0 ] || skip 'only root mounts'
	need_mounts -m
}

# with_tmp_taken FUNCTION - runs it where /tmp/xrun-0 belongs to another user and
# no other folder for control sockets exists. $PWD has another name there.
# shellcheck disable=SC2016,SC2163 # for the other shell
with_tmp_taken()
{
	export -f "$1" try assert_has assert_eq await_line await_growing wait_for \
		now_ms
	unshare -m --propagation private bash -c '
		mount -t tmpfs none /mnt && mkdir /mnt/t &&
			mount --bind "$BATS_TEST_TMPDIR" /mnt/t &&
			mount -t tmpfs -o mode=1777 none /tmp || exit 77
		[ ! -d /run/user ] || mount -t tmpfs none /run/user || exit 77
		setpriv --reuid 64997 --regid 64997 --clear-groups \
			mkdir -m 777 /tmp/xrun-0 || exit 77
		unset XDG_RUNTIME_DIR
		export BATS_TEST_TMPDIR=/mnt/t XDG_STATE_HOME=/mnt/t/state
		cd /mnt/t
		set -eE
		'"$1" || {
		status=$?
		[ "$status" != 77 ] || skip "mount namespaces are refused here"
		return "$status"
	}
}

foreground()
{
	local pid

	"$XRUN" --job here sh -c 'echo ready; exec sleep 60' >job.out 2>job.err &
	pid=$!
	await_line job.out ready 10
	assert_has "$(cat job.err)" \
		'^xrun: /tmp/xrun-0 belongs to user 64997: the control socket is in \.run-HOST in the state directory instead$'
	wait_for 10 test -S "$XDG_STATE_HOME/xrun/.run-$(hostname)/here/control"
	assert_eq "$(stat -c %a "$XDG_STATE_HOME/xrun/.run-$(hostname)")" 700
	assert_has "$("$XRUN" ps here)" 'running'
	"$XRUN" stop here
	wait "$pid" || true
	assert_eq "$(ls -A "$XDG_STATE_HOME/xrun/.run-$(hostname)")" ''
	# The folder of the other user is not changed.
	assert_eq "$(ls -A /tmp/xrun-0)" ''
}

@test "sockets: a job warns of a taken folder, and verbs reach it" {
	with_tmp_taken foreground
}

# Whose they are is reported at the start, unless the job is silent.
wrong_runtime()
{
	rmdir /tmp/xrun-0
	mkdir -m 700 rt
	chown 64997 rt
	export XDG_RUNTIME_DIR=$PWD/rt
	try "$XRUN" true
	assert_eq "$status: $stderr" "0: xrun: XDG_RUNTIME_DIR: $PWD/rt belongs to user 64997: the control socket is in /tmp/xrun-0 instead"
	try "$XRUN" -q true
	assert_eq "$status: $stderr" '0: '
	chown 0 rt
	chmod 777 rt
	try "$XRUN" true
	assert_eq "$status: $stderr" "0: xrun: XDG_RUNTIME_DIR: $PWD/rt has mode 0777, not 0700: the control socket is in /tmp/xrun-0 instead"
	unset XDG_RUNTIME_DIR
	rm -r /tmp/xrun-0
	setpriv --reuid 64997 --regid 64997 --clear-groups ln -s /etc /tmp/xrun-0
	try "$XRUN" true
	assert_eq "$status: $stderr" '0: xrun: /tmp/xrun-0 belongs to user 64997: the control socket is in .run-HOST in the state directory instead'
	assert_has "$("$XRUN" doctor || true)" '/tmp/xrun-0 belongs to user 64997'
}

@test "sockets: a runtime folder with a wrong owner or mode, and a link, are reported at the start" {
	with_tmp_taken wrong_runtime
}

detached()
{
	try "$XRUN" -d --job gone sh -c 'exec sleep 60'
	assert_eq "$status" 125
	assert_eq "$output" ''
	assert_has "$stderr" \
		'^xrun: -d: /tmp/xrun-0 belongs to user 64997: verbs might not reach the job   try: XDG_RUNTIME_DIR=DIR, '
	assert_eq "$("$XRUN" ps -aq)" ''
	mkdir -m 700 own
	XDG_RUNTIME_DIR=$PWD/own try "$XRUN" -d --job gone sh -c 'exec sleep 60'
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	XDG_RUNTIME_DIR=$PWD/own "$XRUN" stop gone
}

@test "sockets: -d is refused while the folder is taken" {
	with_tmp_taken detached
}

doctored()
{
	try "$XRUN" doctor
	assert_has "$output" \
		'^warn  runtime +/tmp/xrun-0 belongs to user 64997; \.run-HOST in the state directory is used, and -d is refused$'
}

@test "sockets: doctor names the user who has the folder" {
	with_tmp_taken doctored
}

killed()
{
	local pid

	"$XRUN" --no-logs sh -c 'setsid sleep 61 <&- >&- 2>&- & echo "child $!"
		exec sleep 60' >job.out 2>job.err &
	pid=$!
	await_line job.out '^child ' 10
	kill -STOP "$pid" "$(pgrep -P "$pid" -x xrun-super)"
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)" "$pid"
	wait "$pid" || true
	kill -0 "${line#child }"
	"$XRUN" ps
	wait_for 5 test ! -e "/proc/${line#child }"
}

@test "sockets: a job that was killed there is ended by the next xrun" {
	with_tmp_taken killed
}
