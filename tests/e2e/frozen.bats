#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# frozen.bats - a file system that does not answer: the mover waits for it, and
# so may the helper thread; what xrun hears and does meanwhile. ext4 on a loop
# device in a mount namespace of the test's own, frozen with fsfreeze(8).

# shellcheck disable=SC2090,SC2153,SC2163 # words for other shells

load helper

# A rank that writes $1 lines, one each 2 ms.
# shellcheck disable=SC2016,SC2089,SC2090 # for the rank's shell
slowly='exec 9<> <(:)
	for ((i = 0; i < $1; i++)); do
		read -rt 0.002 _ <&9
		echo "line $i"
	done'

# A place that can be frozen, as $disk, for what COMMAND... of the test does.
setup()
{
	private_place
	need mkfs.ext4 fsfreeze losetup unshare
	[ "$(id -u)" = 0 ] || skip "only root mounts and freezes"
	need_mounts -m
	disk=$BATS_TEST_TMPDIR/disk
	mkdir "$disk"
	truncate -s 24M image
	mkfs.ext4 -q -F image
}

# on_disk FUNCTION - runs it in a mount namespace where $disk can be frozen; it
# is thawed at the end, whatever happened. Functions and variables are the
# test's.
on_disk()
{
	export -f "$1" now_ms await_exit wait_for ended_within freeze thaw begin
	export disk slowly
	unshare -m --propagation private bash -c '
		mount -o loop image "$disk" || exit 77
		trap "fsfreeze -u \"$disk\" 2>/dev/null || :; umount -l \"$disk\"" EXIT
		set -eE
		'"$1" || {
		status=$?
		[ "$status" != 77 ] || skip "loop devices are not allowed here"
		return "$status"
	}
}

freeze()
{
	fsfreeze -f "$disk"
}

thaw()
{
	fsfreeze -u "$disk"
}

# begin ARG... - a job with its files on the disk, which writes; $xrun.
begin()
{
	env --default-signal=INT "$XRUN" --log-dir "$disk/job" "$@" \
		>out 2>err 3>&- &
	xrun=$!
	wait_for 10 test -s "$disk/job/0/rank-0001/stdout"
}

# ended_within MS - xrun ends, and its status is $status.
ended_within()
{
	local begun

	begun=$(now_ms)
	await_exit "$xrun" $(($1 / 1000 + 20)) || return
	status=0
	wait "$xrun" || status=$?
	echo "ended after $(($(now_ms) - begun)) ms: $(cat err)" >&2
	[ $(($(now_ms) - begun)) -le "$1" ]
}

# The ranks go at once, whatever the disk does: 10 x what it takes without.
told_to_end()
{
	begin --grace 300ms -n 2 bash -c "$slowly" _ 100000
	freeze
	wait_for 5 waits_for_disk
	kill -TERM "$xrun"
	wait_for 3 no_ranks
	ended_within 15000
	[ "$status" -eq 143 ]
	grep -q 'does not answer: what was written last may be lost' err
}

# Its mover sleeps, as nothing ends it.
waits_for_disk()
{
	local super status=0

	super=$(pgrep -P "$xrun" -x xrun-super)
	grep -qs ') D ' /proc/"$super"/task/*/stat
}

# No process has the job's output as its own.
no_ranks()
{
	local super status=0

	super=$(pgrep -P "$xrun" -x xrun-super)
	! pgrep -P "$super" >/dev/null
}

@test "a frozen disk: xrun hears TERM at once, ends the ranks, and itself" {
	export -f waits_for_disk no_ranks
	on_disk told_to_end
}

timed_out()
{
	begin --timeout 2s --grace 300ms -n 2 bash -c "$slowly" _ 100000
	freeze
	wait_for 5 waits_for_disk
	wait_for 4 no_ranks
	thaw
	ended_within 8000
	[ "$status" -eq 124 ]
	[ "$(grep -c 'does not answer' err)" = 0 ]
}

@test "a frozen disk: --timeout is kept, and what thaws in time loses nothing" {
	export -f waits_for_disk no_ranks
	on_disk timed_out
}

one_fails()
{
	mkfifo fail
	begin -n 2 bash -c 'if [ "$RANK" = 0 ]; then
			'"$slowly"'
		fi
		echo begun
		read -r _ <fail
		exit 3' _ 100000
	freeze
	wait_for 5 waits_for_disk
	echo >fail
	wait_for 3 no_ranks
	thaw
	ended_within 8000
	[ "$status" -eq 3 ]
	grep -q 'rank 1 failed first: exit status 3' err
}

@test "a frozen disk: a death is heard, and the others are stopped" {
	export -f waits_for_disk no_ranks
	on_disk one_fails
}

# There is no folder for the next attempt, and nobody waits for one.
told_to_begin_again()
{
	begin -n 2 sh -c 'echo up; exec sleep 60'
	wait_for 5 compgen -G "$XDG_RUNTIME_DIR/xrun/*/control"
	freeze
	"$XRUN" restart
	ended_within 12000
	[ "$status" -eq 125 ]
	grep -q "^xrun: the job cannot begin again: the folder of attempt 1 in $disk/job: not written in time\$" err
	thaw
}

# bats test_tags=sanitize
@test "a frozen disk: a job that is told to begin again cannot, and says so" {
	on_disk told_to_begin_again
}

# Neither the loop nor the keeper waits for it.
without_threads()
{
	XRUN_FAULT='thread.start:fail=EAGAIN' "$XRUN" --debug-faults \
		--log-dir "$disk/job" --grace 300ms -n 1 \
		sh -c 'echo up; : >begun; exec sleep 60' >out 2>err 3>&- &
	xrun=$!
	wait_for 10 test -e begun
	freeze
	kill -TERM "$xrun"
	wait_for 3 no_ranks
	ended_within 20000
	thaw
	grep -q 'no thread could read what ranks wrote last' err
}

@test "a frozen disk, and no thread to wait for it: xrun ends" {
	export -f no_ranks
	on_disk without_threads
}

frozen_and_thawed()
{
	begin -n 2 bash -c "$slowly" _ 1500
	freeze
	wait_for 5 waits_for_disk
	thaw
	ended_within 20000
	[ "$status" -eq 0 ]
	for r in 0 1; do
		[ "$(wc -l <"$disk/job/0/rank-000$r/stdout")" -eq 1500 ]
		[ "$(sort -u "$disk/job/0/rank-000$r/stdout" | wc -l)" -eq 1500 ]
	done
}

@test "a frozen disk that thaws: no line is lost, none is there twice" {
	export -f waits_for_disk
	on_disk frozen_and_thawed
}

# What the loop's thread was seen to do with the folder of the job between the
# first rank and the verdict: nothing. And no call of it took long but the wait
# for what happens.
@test "the loop touches no file of the job, and none of its calls takes long" {
	local super status=0
	need strace python3
	unsanitized 'a tracer beside their own'
	printf 'import sys\nprint("out")\nsys.exit(3)\n' >fail.py

	strace -f -y -T -o trace "$XRUN" --log-dir "$PWD/folder" \
		-n 4 python3 fail.py >out 2>err || status=$?
	assert_eq "$status" 3
	super=$(sed -nE 's/^([0-9]+) +prctl\(PR_SET_NAME, "xrun-super".*/\1/p' trace)
	sed -nE "s/^$super +//p" trace | sed '1,/CLONE_VFORK/d; /exit_group/,$d' >loop
	[ -s loop ]
	assert_eq "$(grep -F "$PWD/folder" loop | grep -v '^close(')" ''
	assert_eq "$(grep -E '<[0-9.]+>$' loop | grep -vE '^(<... )?(epoll_wait|clone)' |
		awk -F'[<>]' '$(NF - 1) > 0.2')" ''
	assert_has "$(cat err)" '^  \| out'
}
