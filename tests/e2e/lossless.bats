#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lossless.bats - no byte that a rank wrote is lost or doubled: not when xrun is
# killed with -9, not when the disk is full.
#
# A rank keeps a copy of what it writes, filled before each write(2), and a
# counter of what write(2) accepted, moved on after it. Killed at any moment,
# its file must therefore begin its copy and be as long as the counter at least:
# between the two lies only the write that was under way.
#
# ROUNDS is how often the supervisor is killed, 3 without it.
#
# Takes long, so it begins early.

bats_require_minimum_version 1.5.0
load helper

# No test here needs a larger file, whatever goes wrong.
setup()
{
	private_place
	ulimit -f 2000000
	# The tests fill the whole disk; disk.bats tests the reserve.
	export XRUN_LOG_RESERVE=0
}

# raw RANK STREAM - the file of a rank of the only job.
raw()
{
	printf '%s/rank-%04d/%s' "$(echo "${VIEW:-}$XDG_STATE_HOME"/xrun/????/0)" \
		"$1" "$2"
}

# files_of COUNT - true if there are COUNT files of output.
files_of()
{
	[ "$(compgen -G "${VIEW:-}$XDG_STATE_HOME/xrun/????/0/*/std???" |
		wc -l)" -ge "$1" ]
}

# --- kill -9 ----------------------------------------------------------------

# kill_round OPTION... - 8 ranks that write both streams without end; the
# supervisor is killed; everything accepted is in the files, nobody is left.
# Adds the time from the kill to the end to $took, in ms.
kill_round()
{
	local status=0 begun

	rm -rf "$XDG_STATE_HOME/xrun" ref.*
	spawn job "$XRUN" -n 8 "$PROG/spew" --endless --both --copy ref "$@"
	wait_for 10 files_of 16
	pass "0.0$((RANDOM % 90 + 10))"
	begun=$(date +%s%N)
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait "$pid" || status=$?
	took+=($((($(date +%s%N) - begun) / 1000000)))
	assert_eq "$(left_behind '.*')" ''
	assert_eq "$status" 125
	assert_eq "$(grep -ao 'xrun: the supervisor.*' job.err)" \
		"xrun: the supervisor ended (SIGKILL): all ranks were ended with it; what they wrote is in $(echo "$XDG_STATE_HOME"/xrun/????)/0"
	same_bytes 8 --killed >verified || {
		grep -v identical verified
		return 1
	}
}

@test "rel-29 rel-32 the supervisor is killed under 8 writers: no line lost, none twice" {
	local took=() round

	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		case $((round % 3)) in
		0) kill_round ;;
		1) kill_round --size 40 --batch 50 ;;
		2) kill_round --wild $((round + 1)) ;;
		esac
	done
	mapfile -t took < <(printf '%s\n' "${took[@]}" | sort -n)
	# G1 wants 1 s; ten times that is a failure on any machine.
	[ "${took[-1]}" -lt 10000 ]
	[ -z "${ROUNDS:-}" ] || printf '# kill to end: %s rounds, median %s ms, 99 %% %s ms, most %s ms\n' \
		"${#took[@]}" "${took[$((${#took[@]} / 2))]}" \
		"${took[$((${#took[@]} * 99 / 100))]}" "${took[-1]}" >&3
}

# The same of terminals, which no splice(2) takes to a file at once.
@test "rel-29 --pty: the supervisor is killed under 8 writers: no line lost, none twice" {
	local round status super

	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		status=0
		rm -rf "$XDG_STATE_HOME/xrun" ref.*
		spawn job "$XRUN" --pty -n 8 "$PROG/spew" --endless --copy ref \
			--wild $((round + 1))
		wait_for 10 files_of 8
		pass "0.0$((RANDOM % 90 + 10))"
		super=$(pgrep -P "$pid" -x xrun-super)
		# What is in terminals and pipes by then is the keeper's.
		[ $((round % 3)) -ne 1 ] || {
			kill -STOP "$super"
			pass 0.2
		}
		kill -KILL "$super"
		wait "$pid" || status=$?
		assert_eq "$status" 125
		identical_out 8 --killed
	done
}

# identical_out RANKS [OPTION] - the same of stdout alone.
identical_out()
{
	local pairs=() r

	for ((r = 0; r < $1; r++)); do
		pairs+=("$(raw "$r" stdout)" "ref.$r.out")
	done
	"$PROG/verify" raw ${2:+"$2"} "${pairs[@]}"
}

# A terminal holds 4 KiB: for each of them a loaded machine switches to xrun-super and back.
@test "--pty: a long output is whole, in files and in lines" {
	"$XRUN" --pty -n 4 --no-prefix "$PROG/spew" --lines 6000 --copy ref >lines
	identical_out 4
	assert_eq "$(sort lines | cksum)" "$(cat ref.*.out | sort | cksum)"
	"$XRUN" --pty -n 4 --no-logs --no-prefix "$PROG/spew" --lines 6000 >lines
	assert_eq "$(sort lines | cksum)" "$(cat ref.*.out | sort | cksum)"
}

@test "rel-29 killed while its reader sleeps: what nobody saw is in the files" {
	local reader status=0

	mkfifo job.out
	exec {reader}<>job.out
	spawn job "$XRUN" -n 4 "$PROG/spew" --lines 20000 --both --copy ref
	wait_for 10 files_of 8
	wait_for 10 no_ranks
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait "$pid" || status=$?
	assert_eq "$status" 125
	same_bytes 4
}

no_ranks()
{
	[ -z "$(left_behind '.*')" ]
}

@test "rel-29 killed while it is stopped: the pipes are full, and drained" {
	local status=0 super

	spawn job "$XRUN" -n 4 "$PROG/spew" --endless --both --copy ref
	wait_for 10 files_of 8
	super=$(pgrep -P "$pid" -x xrun-super)
	kill -STOP "$super"
	wait_for 10 all_blocked "$super"
	kill -KILL "$super"
	wait "$pid" || status=$?
	assert_eq "$status" 125
	same_bytes 4 --killed
}

# few_descriptors COMMAND... - just enough for 60 ranks, not for their files;
# bats' own are not passed on. Spawns it.
few_descriptors()
{
	spawn job bash -c 'for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			[ "$fd" -le 2 ] || eval "exec $fd>&-"
		done
		ulimit -n 256
		exec "$@"' - "$@"
}

# The keeper has the supervisor's descriptors, and few more to open files with.
@test "rel-44 killed while it is stopped, with few descriptors: all is saved" {
	local go status=0 super

	mkfifo go
	few_descriptors "$XRUN" -n 60 bash -c 'echo ready; read -r _ <go; echo saved'
	wait_for 20 files_of 60
	super=$(pgrep -P "$pid" -x xrun-super)
	kill -STOP "$super"
	exec {go}<>go
	printf '\n%.0s' {1..60} >&"$go"
	wait_for 20 no_ranks
	kill -KILL "$super"
	wait "$pid" || status=$?
	assert_eq "$status" 125
	run ! grep 'are lost' job.err
	assert_eq "$(cat "$XDG_STATE_HOME"/xrun/????/0/*/stdout | sort | uniq -c |
		tr -s ' ' | paste -sd,)" ' 60 ready, 60 saved'
}

# all_blocked SUPERVISOR - each rank sleeps in a write to its full pipe.
all_blocked()
{
	local one

	for one in $(pgrep -P "$1"); do
		grep -qs pipe_write "/proc/$one/wchan" || return 1
	done
}

@test "rel-60 where splice(2) is refused the files are whole all the same" {
	"$PROG/deny" splice=EINVAL -- "$XRUN" -n 4 "$PROG/spew" --wild 2 \
		--lines 200 --both --copy ref >out 2>err
	same_bytes 4
	"$PROG/verify" merged --joins --ranks 4 --lines 200 out
}

# --- a full disk ------------------------------------------------------------

# on_small_disk MIB COMMAND... - spawns COMMAND with a state directory of 1 MiB
# and a ballast of MIB, which make_room takes away. $VIEW is its view of files.
on_small_disk()
{
	local mib=$1 flags=-m

	shift
	[ "$(id -u)" -eq 0 ] || flags=-rm
	need_mounts "$flags"
	spawn job unshare $flags bash -c \
		'mount -t tmpfs -o "size=$(($1 + 1))m" none "$XDG_STATE_HOME" &&
		fallocate -l "$1m" "$XDG_STATE_HOME/ballast" && shift && exec "$@"' \
		- "$mib" "$@"
	VIEW=/proc/$pid/root
}

make_room()
{
	rm "$VIEW$XDG_STATE_HOME/ballast"
}

@test "rel-46 a full disk: ranks wait, one warning, and with room all is complete" {
	on_small_disk 30 "$XRUN" -n 2 "$PROG/spew" --lines 20000 --both --copy ref
	await_line job.err '^xrun: ' 10
	[[ $line =~ ^xrun:\ rank\ [01]:\ log\ file\ system\ full\ \(.*\):\ ranks\ wait\ until\ there\ is\ room\;\ nothing\ is\ lost\ while\ the\ job\ goes\ on$ ]]
	wait_for 10 all_blocked "$(pgrep -P "$pid" -x xrun-super)"
	# Held open, for the mount goes with its last process.
	exec {held}<"$VIEW$XDG_STATE_HOME"
	make_room
	wait "$pid"
	VIEW=/proc/$$/fd/$held
	XDG_STATE_HOME='' same_bytes 2
	assert_eq "$(grep -c '^xrun: rank' job.err)" 1
	"$PROG/verify" merged --joins --ranks 2 --lines 20000 job.out
}

# Their last bytes fit into the pipes: the ranks are gone, their output is not.
@test "rel-46 a full disk when the ranks end: their last bytes wait for room" {
	on_small_disk 30 "$XRUN" -n 2 "$PROG/spew" --lines 5300 --copy ref
	await_line job.err 'log file system full' 10
	wait_for 10 no_ranks
	pass 3
	exec {held}<"$VIEW$XDG_STATE_HOME"
	make_room
	wait "$pid"
	VIEW=/proc/$$/fd/$held
	"$PROG/verify" raw "$(XDG_STATE_HOME='' raw 0 stdout)" ref.0.out \
		"$(XDG_STATE_HOME='' raw 1 stdout)" ref.1.out
	assert_eq "$(grep -c '^xrun: rank' job.err)" 1
}

@test "rel-46 a full disk does not stop TERM; what found no room is counted" {
	local status=0

	on_small_disk 30 "$XRUN" --grace 300ms -n 2 "$PROG/spew" --endless
	await_line job.err 'log file system full' 10
	kill -TERM "$pid"
	await_exit "$pid" 15
	wait "$pid" || status=$?
	assert_eq "$status" 143
	assert_has "$(cat job.err)" '[0-9]+ bytes found no room on the disk and are lost'
}

# bats test_tags=sanitize,keep
@test "rel-46 a full disk and the supervisor killed: with room all is complete" {
	local status=0

	on_small_disk 30 "$XRUN" -n 2 "$PROG/spew" --endless --both --copy ref
	await_line job.err 'log file system full' 10
	wait_for 10 all_blocked "$(pgrep -P "$pid" -x xrun-super)"
	exec {held}<"$VIEW$XDG_STATE_HOME"
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait_for 10 no_ranks
	make_room
	wait "$pid" || status=$?
	assert_eq "$status" 125
	VIEW=/proc/$$/fd/$held
	XDG_STATE_HOME='' same_bytes 2 --killed
	run ! grep 'are lost' job.err
}

@test "rel-46 a full disk and the supervisor killed: what is lost is counted" {
	local status=0

	on_small_disk 30 "$XRUN" -n 2 "$PROG/spew" --endless
	await_line job.err 'log file system full' 10
	wait_for 10 all_blocked "$(pgrep -P "$pid" -x xrun-super)"
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	await_exit "$pid" 20
	wait "$pid" || status=$?
	assert_eq "$status" 125
	assert_has "$(cat job.err)" '[0-9]+ bytes found no room on the disk and are lost'
}

# on_full_disk OPTION... - ranks that say a few bytes, on a disk without room for
# one; $status is that of xrun.
on_full_disk()
{
	status=0
	on_small_disk 1 bash -c '! head -c 2m /dev/zero >"$XDG_STATE_HOME/rest" 2>/dev/null
		exec "$@"' - "$XRUN" --report "$PWD/report.json" --grace 300ms \
		-n 2 "$@" echo said
}

@test "a disk that stays full, and ranks that have ended: --timeout is 124, with the bytes" {
	on_full_disk --timeout 1s
	wait "$pid" || status=$?
	assert_eq "$status" 124
	assert_has "$(cat job.err)" \
		'^xrun: --timeout reached after 1.0 s: all ranks had ended; their last output was waited for no longer$'
	assert_has "$(cat job.err)" '^xrun: 10 bytes found no room on the disk and are lost$'
	fits job report.json
	assert_eq "$(jq -c '[.exit, .reason, .lost_bytes]' report.json)" \
		'[124,"timeout",10]'
}

@test "a disk that stays full, and ranks that have ended: a signal says what it ended" {
	on_full_disk
	await_line job.err 'log file system full' 10
	wait_for 10 no_ranks
	kill -INT "$pid"
	wait "$pid" || status=$?
	assert_eq "$status" 130
	assert_has "$(cat job.err)" \
		'^xrun: SIGINT: all ranks had ended; their last output was waited for no longer$'
	assert_eq "$(jq -c '[.exit, .lost_bytes]' report.json)" '[130,10]'
}

# --- a file that may not grow -----------------------------------------------

# says_more OPTION... - two ranks say more than ulimit -f lets their files hold.
says_more()
{
	try bash -c 'ulimit -f 100
		timeout 30 "$@" | wc -c; exit "${PIPESTATUS[0]}"' - "$XRUN" \
		--report report.json -n 2 "$@" sh -c \
		'head -c 300000 /dev/zero | tr "\0" "\n"; echo the end'
	fits job report.json
}

@test "ulimit -f: a file that cannot grow ends the job at once, by name" {
	says_more
	assert_eq "$status" 125
	assert_has "$stderr" \
		'^xrun: rank [01]: log file in .*/0 cannot grow any more \(ulimit -f is 100 KiB\): raise the limit'
	assert_has "$stderr" '^xrun: [0-9]+ bytes came when their file could not grow any more and are lost$'
	json_holds '.exit == 125 and .reason == "xrun" and .lost_bytes > 0' report.json
}

@test "ulimit -f: --log-full drop goes on and counts; --log-rotate needs no more" {
	says_more --log-full drop
	assert_eq "$status" 0
	assert_has "$stderr" \
		'^xrun: rank [01]: log file cannot grow any more \(ulimit -f is 100 KiB\): what such ranks write is dropped$'
	json_holds '(has("lost_bytes") | not) and (.rank | length == 2 and
		all(.stdout_bytes + .dropped_bytes == 300008))' report.json
	assert_has "$stderr" '^xrun: dropped, because log files could not grow: rank 0: 197608 bytes, rank 1: 197608 bytes$'
	says_more --log-rotate 64k
	assert_eq "$status" 0
	json_holds '.rank | length == 2 and all(.stdout_bytes == 300008)' report.json
}

# --- a folder that is removed -----------------------------------------------

# removed_under SPAWN... - spawned by that, ranks say ready, their job's folder goes,
# they say more on both streams and end; $status is that of xrun.
removed_under()
{
	local go

	mkfifo go
	status=0
	"$@" bash -c \
		'echo ready; read -r _ <go; echo later; echo error >&2'
	wait_for 20 said_by "$ranks"
	# Its xrun may make one more file meanwhile.
	wait_for 5 rm -rf "$XDG_STATE_HOME"/xrun/????
	exec {go}<>go
	printf '\n%.0s' $(seq "$ranks") >&"$go"
	await_exit "$pid" 20
	wait "$pid" || status=$?
}

said_by()
{
	[ "$(grep -c 'ready$' job.out)" -eq "$1" ]
}

# bats test_tags=sanitize
@test "the folder of the job is removed: it goes on, is shown, and says so once" {
	local ranks=4

	removed_under spawn job "$XRUN" -n 4
	assert_eq "$status" 0
	assert_eq "$(grep -c 'later$' job.out)" 4
	assert_eq "$(grep -c 'error$' job.err)" 4
	assert_eq "$(grep 'was removed' job.err | sed 's,/[0-9a-z]\{4\}/0,/ID/0,')" \
		"xrun: the folder of the job was removed ($XDG_STATE_HOME/xrun/ID/0): the job goes on; what ranks write is shown, but kept no more"
}

@test "the folder of the job is removed, with few descriptors: what is lost is counted" {
	local lost ranks=60 shown

	removed_under few_descriptors "$XRUN" -n 60
	assert_eq "$status" 125
	lost=$(sed -nE 's/^xrun: ([0-9]+) bytes came after the folder of the job was removed and are lost$/\1/p' job.err)
	[ "$lost" -gt 0 ]
	[ "$lost" -lt 720 ]
	# What cannot be stored is displayed.
	shown=$(grep -cE '(later|error)$' job.out job.err | cut -d: -f2 | paste -sd+)
	assert_eq $((shown)) 120
}

# The sink opens most files when it reads them, and it comes to this one late.
# bats test_tags=sanitize
@test "a file that is removed before it is shown: said with the bytes, and it ends" {
	local cat reader status=0

	mkfifo in job.out
	exec {reader}<>job.out
	few_descriptors "$XRUN" -n 60 bash -c '
		[ "$RANK" -ne 0 ] || printf "%200000s\n" full
		[ "$RANK" -ne 59 ] || read -r _ <in
		echo "$RANK says this"'
	wait_for 20 files_of 59
	wait_for 10 blocks "$(pgrep -P "$pid" -x xrun-super)"
	echo >in
	wait_for 20 test -s "$(raw 59 stdout)"
	rm "$(raw 59 stdout)"
	timeout 20 cat <&"$reader" >shown 3>&- &
	cat=$!
	await_exit "$pid" 20
	wait "$pid" || status=$?
	kill "$cat"
	assert_eq "$status" 125
	assert_has "$(cat job.err)" \
		'^xrun: rank 59: its log file cannot be read \(No such file or directory\): what it writes is not shown any more$'
	assert_has "$(cat job.err)" \
		'^xrun: 13 bytes of output could not be shown \(No such file or directory\); it was removed from .*/0$'
}

# blocks PID - true if a thread of the process sleeps in a write to a full pipe.
blocks()
{
	grep -qs pipe_write "/proc/$1"/task/*/wchan
}

@test "rel-47 a disk that is full from the start: the job runs, and its output is displayed" {
	local status=0

	mkfifo both # a rank that fails ends the others
	on_small_disk 1 bash -c \
		'mount -o remount,nr_inodes=3 "$XDG_STATE_HOME"; exec "$@"' - \
		"$XRUN" -n 2 sh -c 'echo "rank $RANK"
			[ "$RANK" = 1 ] && : <both || : >both
			exit "$RANK"'
	wait "$pid" || status=$?
	assert_eq "$status" 1
	assert_eq "$(sort job.out)" $'[0] rank 0\n[1] rank 1'
	assert_has "$(head -n 1 job.err)" \
		'^xrun: warning: .*: No space left on device; the output of this job is not stored$'
}
