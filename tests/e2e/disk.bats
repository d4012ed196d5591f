#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# disk.bats - output files and free space: --log-reserve, ended jobs that make
# room, output that is displayed though it cannot be stored.

bats_require_minimum_version 1.5.0
load helper

# No file here has to be larger, whatever goes wrong.
setup()
{
	private_place
	ulimit -f 200000
	mkdir disk
	export XDG_STATE_HOME=$PWD/disk
}

# on_disk MIB FUNCTION [ARG]... - runs FUNCTION with a tmpfs of MIB mounted on
# ./disk, which holds the jobs. The mount is the function's own.
on_disk()
{
	local flags=-m

	[ "$(id -u)" -eq 0 ] || flags=-rm
	need_mounts "$flags"
	# shellcheck disable=SC2163 # the function that the argument names
	export -f "$2" wait_for await_line await_fifo await_growing await_exit now_ms \
		assert_eq assert_has left_behind spawn free_kib no_room fits no_ranks \
		json_holds json_check
	export here root BATS_TEST_TMPDIR
	unshare $flags --propagation private bash -c 'set -eE; declare -gA await_fd=()
		mount -t tmpfs -o "size=$1m" none disk; shift; "$@"' - "$@"
}

free_kib()
{
	df -k --output=avail disk | tail -n 1 | tr -d ' '
}

no_ranks()
{
	[ -z "$(left_behind '.*')" ]
}

# --- the reserve -------------------------------------------------------------

# Twice as much as the disk holds; then the disk gets larger.
reserve_is_kept()
{
	local least=$1 status=0

	shift
	spawn job "$XRUN" --job big -n 2 "$@" "$PROG/spew" --lines 100000 --copy "$PWD/ref"
	await_line job.err 'log file system full' 20
	assert_has "$line" "^xrun: rank [01]: log file system full \\($PWD/disk; --log-reserve keeps [0-9.]+ MiB free\\): ranks wait until there is room"
	# Folders, indexes and events take a few blocks of the reserve.
	[ "$(free_kib)" -ge $((least - 64)) ]
	[ "$(free_kib)" -le $((least + 64)) ]
	mount -o remount,size=64m disk
	wait "$pid"
	cmp ref.0.out disk/xrun/big/0/rank-0000/stdout
	cmp ref.1.out disk/xrun/big/0/rank-0001/stdout
}

@test "--log-reserve: output leaves 5 % of a small disk free" {
	on_disk 16 reserve_is_kept 819
}

@test "--log-reserve SIZE: output leaves SIZE free" {
	on_disk 16 reserve_is_kept 5120 --log-reserve 5M
}

# The ranks wrote less than the pipes hold.
keeper_keeps_reserve()
{
	local status=0

	fallocate -l 15700k disk/ballast
	spawn job "$XRUN" --job big -n 2 sh -c 'head -c 60000 /dev/zero'
	await_line job.err 'log file system full' 20
	wait_for 10 no_ranks
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	await_exit "$pid" 20
	wait "$pid" || status=$?
	assert_eq "$status" 125
	assert_has "$(cat job.err)" '^xrun: 120000 bytes found no room on the disk and are lost'
}

@test "--log-reserve: the keeper leaves the reserve free, too" {
	on_disk 16 keeper_keeps_reserve
}

# An ext4 reserves blocks for root, who runs this job.
reserved_blocks_stay()
{
	local status=0 free

	truncate -s 32M image
	mkfs.ext4 -q -m 20 -F image
	mount -o loop image disk
	spawn job timeout 60 "$XRUN" --job big --log-reserve 0 -n 1 --grace 100ms \
		"$PROG/spew" --lines 400000
	await_line job.err 'log file system full' 30
	free=$(stat -f -c '(%f - %a) / 256' disk)
	kill -TERM "$(pgrep -P "$pid" -x xrun)"
	wait "$pid" || status=$?
	umount disk
	echo "MiB reserved and free: $((free))" >&2
	[ $((free)) -ge 5 ]
}

@test "--log-reserve 0: the blocks reserved for root stay free" {
	need mkfs.ext4
	[ "$(id -u)" -eq 0 ] || skip "only root mounts an image"
	unshare -m sh -c 'truncate -s 1M probe && mkfs.ext4 -q -F probe &&
		mount -o loop probe disk' || skip "loop devices are not allowed here"
	on_disk 1 reserved_blocks_stay
}

@test "--log-reserve: what is no size is an error" {
	for bad in 5% -1 x ''; do
		job --log-reserve "$bad" true
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: --log-reserve'
	done
}

# --- ended jobs make room ----------------------------------------------------

# make_jobs NAME... - jobs with 3 MB of output each, the oldest first.
make_jobs()
{
	local name

	for name; do
		"$XRUN" -q --job "$name" "$PROG/spew" --lines 30000 >out
		touch -d '-1 hour' "disk/xrun/$name/job.json" "disk/xrun/$name"
	done
	touch -d '-2 hours' "disk/xrun/$1/job.json" "disk/xrun/$1"
}

ended_jobs_make_room()
{
	make_jobs first second third
	"$XRUN" --job big "$@" "$PROG/spew" --lines 60000 --copy "$PWD/ref" >out 2>err
	cat err >&2
	assert_has "$(cat err)" "^xrun: log file system full \\($PWD/disk; --log-reserve keeps [0-9.]+ [MK]iB free\\): removed 1 ended job, the oldest first, 2.9 MiB$"
	assert_eq "$(grep -cE 'ranks wait|is dropped' err)" 0
	cmp ref.0.out disk/xrun/big/0/rank-0000/stdout
	[ ! -e disk/xrun/first ]
	[ -e disk/xrun/second ] || [ -e disk/xrun/third ]
}

@test "a full disk: the oldest ended job goes before a rank waits" {
	export -f make_jobs
	on_disk 14 ended_jobs_make_room
}

@test "a full disk: the oldest ended job goes before output is dropped" {
	export -f make_jobs
	on_disk 14 ended_jobs_make_room --log-full drop
}

# --- display -----------------------------------------------------------------

# no_room - a job finds the disk at its reserve.
no_room()
{
	fallocate -l $(($(free_kib) - 100))k disk/ballast
}

displayed_while_full()
{
	local status=0

	no_room
	spawn job "$XRUN" --job big -n 2 "$@" sh -c 'echo begun
		read -r _ <go; exec "$PROG"/spew --lines 30000'
	await_line job.err 'log file system full' 20
	await_line job.out '^\[0\] begun' 20
	await_line job.out '^\[1\] begun' 20
	[ ! -s disk/xrun/big/0/rank-0000/stdout ]
	exec {go}<>go
	echo go >&"$go"
	echo go >&"$go"
	await_line job.out '^\[0\] [^b]' 20
	rm disk/ballast
	wait "$pid"
	for r in 0 1; do
		assert_eq "$(head -n 1 disk/xrun/big/0/rank-000$r/stdout | tr -d '\r')" begun
		[ "$(wc -l <disk/xrun/big/0/rank-000$r/stdout)" = 30001 ]
		grep "^\[$r\]" job.out | cut -d' ' -f2- | tr -d '\r' |
			cmp - <(tr -d '\r' <disk/xrun/big/0/rank-000$r/stdout)
	done
}

@test "a full disk: lines are displayed when they are written, each once and in order" {
	mkfifo go
	on_disk 16 displayed_while_full
}

# bats test_tags=sanitize
@test "a full disk, --pty: lines are displayed when they are written" {
	mkfifo go
	on_disk 16 displayed_while_full --pty
}

@test "a full disk, --log-rotate: lines are displayed when they are written" {
	mkfifo go
	on_disk 16 rotated_while_full
}

# Pieces of a file, one after the other.
rotated_while_full()
{
	no_room
	spawn job "$XRUN" --job big -n 1 --log-rotate 64k \
		sh -c 'echo begun; read -r _ <go; exec "$PROG"/spew --lines 20000'
	await_line job.out '^begun' 20
	exec {go}<>go
	echo go >&"$go"
	await_line job.err 'log file system full' 20
	rm disk/ballast
	wait "$pid"
	cat disk/xrun/big/0/rank-0000/stdout.*[0-9] disk/xrun/big/0/rank-0000/stdout |
		cmp - job.out
	[ "$(wc -l <job.out)" = 20001 ]
}

dropped_is_displayed()
{
	local r

	no_room
	"$XRUN" --job big -n 2 --log-full drop --report report.json "$PROG/spew" \
		--lines 2000 --batch 50 --copy "$PWD/ref" >job.out 2>job.err
	assert_has "$(cat job.err)" 'what ranks write is dropped until there is room'
	for r in 0 1; do
		grep "^\[$r\]" job.out | cut -d' ' -f2- | cmp - ref.$r.out
	done
	json_holds '.rank | length == 2 and
		all(.dropped_bytes > 0 and .stdout_bytes + .dropped_bytes == 200000)' report.json
}

@test "--log-full drop: what is dropped is displayed" {
	need jq
	on_disk 16 dropped_is_displayed
}

# It ends while the disk is full: its lines were displayed, and are not stored.
ended_while_full()
{
	local status=0

	no_room
	spawn job "$XRUN" --job big --timeout 2s --grace 100ms -n 2 \
		sh -c 'echo said; printf "no newline"'
	wait "$pid" || status=$?
	assert_eq "$status" 124
	assert_eq "$(sort job.out | paste -sd,)" '[0] no newline,[0] said,[1] no newline,[1] said'
	assert_has "$(cat job.err)" '^xrun: 30 bytes found no room on the disk and are lost$'
}

@test "a full disk: what is lost at the end of the job was displayed" {
	on_disk 16 ended_while_full
}

# --- what is reported --------------------------------------------------------

reported_while_full()
{
	no_room
	spawn job "$XRUN" --job big -n 2 --metrics-file "$PWD/metrics" \
		sh -c 'echo said; read -r _ <go'
	await_line job.err 'log file system full' 20
	wait_for 20 waits_for_disk 2
	"$XRUN" ps >list
	assert_has "$(cat list)" '^big +2  waiting: disk +[0-9.]+ s'
	"$XRUN" ps big >one
	assert_has "$(cat one)" '^job big: waiting: disk, '
	assert_eq "$(grep -c '^ *[01] .* waiting: disk ' one)" 2
	"$XRUN" ps --json >list.json
	"$XRUN" ps --json big >one.json
	fits ps list.json one.json
	json_holds '.[0].waiting == "disk"' list.json
	json_holds '.waiting == "disk" and .rank[1].waiting == "disk"' one.json
	wait_for 20 grep -q '^xrun_ranks_waiting{job="big",for="disk"} 2$' metrics
	rm disk/ballast
	wait_for 20 waits_for_disk 0
	json_holds 'has("waiting") | not' disk/xrun/big/job.json
	exec {go}<>go
	echo go >&"$go"
	echo go >&"$go"
	wait "$pid"
}

# waits_for_disk COUNT - so many ranks of the job wait for room.
waits_for_disk()
{
	[ "$("$XRUN" ps --json big | jq '[.rank[] | select(.waiting == "disk")] | length')" = "$1" ] &&
		[ "$(jq 'has("waiting")' disk/xrun/big/job.json)" = "$([ "$1" = 0 ] && echo false || echo true)" ]
}

@test "waiting: disk stands in ps, in JSON and in the metrics" {
	need jq
	need_schemas
	mkfifo go
	export -f waits_for_disk
	on_disk 16 reported_while_full
}

# Each move of rank 1 fails at the point, so each counts as the next limit.
@test "large output: one warning for each limit names the rank that wrote most" {
	local go

	mkfifo go
	XRUN_FAULT='move.large:fail=ENOSPC;rank=1' spawn job "$XRUN" --debug-faults -n 3 \
		sh -c '[ "$RANK" = 1 ] || exit 0
			echo one; read -r _ <go; echo two'
	await_line job.err 'has reached 10 GiB' 20
	exec {go}<>go
	echo go >&"$go"
	wait "$pid"
	assert_eq "$(sed 's,(.*),(DIR),' job.err)" "xrun: warning: the output of the job has reached 10 GiB (DIR); rank 1 wrote most, 0.0 MiB; --log-rotate SIZE,COUNT limits the files
xrun: warning: the output of the job has reached 100 GiB (DIR); rank 1 wrote most, 0.0 MiB; --log-rotate SIZE,COUNT limits the files"
}

# bats test_tags=sanitize
@test "large output: a further attempt counts on" {
	XRUN_FAULT='move.large:fail=ENOSPC;rank=0' "$XRUN" --debug-faults -n 1 \
		--restarts 1 sh -c 'echo x; exit 3' >out 2>err || true
	assert_eq "$(grep -o 'has reached [0-9]* GiB' err | tr '\n' ' ')" \
		'has reached 10 GiB has reached 100 GiB '
}

lost_while_full()
{
	local super

	no_room
	spawn job "$XRUN" --job big -n 2 sh -c 'echo said; sleep 60'
	await_line job.err 'log file system full' 20
	wait_for 20 waits_for_disk 2
	super=$(pgrep -P "$pid")
	kill -KILL "$pid" "$super"
	rm disk/ballast
	wait "$pid" || true
	"$XRUN" ps >list
	json_holds '.reason == "supervisor lost" and (has("waiting") | not)' disk/xrun/big/job.json
}

@test "waiting: disk does not stay in the record of a lost job" {
	need jq
	export -f waits_for_disk
	on_disk 16 lost_while_full
}

# no_inodes - takes all that are left.
no_inodes()
{
	while : >"disk/fill.$n"; do
		n=$((n + 1))
	done 2>/dev/null
	return 0
}

inodes_are_freed()
{
	local n=0

	mount -o remount,nr_inodes=100 disk
	"$XRUN" -q --job old echo output >out
	no_inodes
	timeout 60 "$XRUN" --log-full drop echo shown >out 2>err
	assert_eq "$(cat out)" shown
	[ ! -e disk/xrun/old ]
}

# bats test_tags=sanitize
@test "no inodes: an ended job goes before a job starts" {
	export -f no_inodes
	on_disk 16 inodes_are_freed
}

no_inodes_are_left()
{
	local n=0 status=0

	mount -o remount,nr_inodes=100 disk
	no_inodes
	timeout 60 "$XRUN" -n 2 echo shown >out 2>err
	assert_eq "$(sort out)" $'[0] shown\n[1] shown'
	assert_has "$(cat err)" '^xrun: warning: .*: No space left on device; the output of this job is not stored$'
	timeout 60 "$XRUN" --job named echo shown >out 2>err || status=$?
	assert_eq "$status" 125
	status=0
	timeout 60 "$XRUN" -d echo shown >out 2>err || status=$?
	assert_eq "$status" 125
	assert_has "$(cat err)" '^xrun: .*: No space left on device'
	assert_eq "$(grep -c 'is not stored' err || true)" 0
}

# bats test_tags=sanitize
@test "no inodes: a job displays its output" {
	export -f no_inodes
	on_disk 16 no_inodes_are_left
}
