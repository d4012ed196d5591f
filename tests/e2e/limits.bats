#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# limits.bats - machines that allow little: processes, descriptors, system
# calls, folders, and a container in which xrun is everybody's parent.
#
# Takes long, so it begins early.

bats_require_minimum_version 1.5.0
load helper

# A place that another user can reach, too; and a user that nobody is, so that
# its processes are only ours.
setup()
{
	private_place
	stranger=$((60000 + $$ % 5000))
	holders=()
	place=$(mktemp -d /tmp/xrun-limits-XXXXXX)
	chmod 0777 "$place"
}

teardown()
{
	release
	remove_cgroups
	# Jobs of the stranger have no runtime directory.
	rm -rf "$place" "/tmp/xrun-$stranger" "/var/tmp/xrun-$stranger"
	nothing_left
}

# job ARG... - runs xrun into the files out and err; $status is its.
job()
{
	status=0
	"$XRUN" "$@" >out 2>err || status=$?
}

# --- processes --------------------------------------------------------------

need_stranger()
{
	need setpriv prlimit
	[ "$(id -u)" -eq 0 ] || skip "only root can be somebody else"
	as_stranger test -x "$XRUN" -a -x "$PROG/spew" ||
		skip "another user cannot reach $XRUN"
	export XDG_STATE_HOME=$place
}

as_stranger()
{
	setpriv --reuid=$stranger --regid=$stranger --clear-groups "$@"
}

# hold COUNT - so many processes of the stranger, until release.
hold()
{
	local i

	[ -p "$place/hold" ] || mkfifo -m 0666 "$place/hold"
	for ((i = 0; i < $1; i++)); do
		setpriv --reuid=$stranger --regid=$stranger --clear-groups \
			bash -c 'read -r _ <>"$1"' - "$place/hold" 3>&- &
		holders+=($!)
	done
	wait_for 60 held "$1"
}

held()
{
	[ "$(pgrep -c -U $stranger -x bash)" -eq "$1" ]
}

# release - ends these processes, all at once: xrun gives up 5 s after the first refusal,
# and one process after the other takes seconds on a loaded machine.
release()
{
	[ ${#holders[@]} -gt 0 ] || return 0
	{
		kill -KILL "${holders[@]}" || true
		wait "${holders[@]}" || true
	} 2>/dev/null
	holders=()
}

# limited ARG... - spawns xrun as the stranger, who may have 30 processes.
limited()
{
	spawn job setpriv --reuid=$stranger --regid=$stranger --clear-groups \
		prlimit --nproc=30:30 "$XRUN" "$@"
}

# ends CODE SECONDS - the job is over in time, with that status.
ends()
{
	local status=0

	await_exit "$pid" "$2"
	wait "$pid" || status=$?
	assert_eq "$status" "$1"
}

@test "rel-43 more ranks than processes are allowed: refused at once" {
	need_stranger
	limited -n 100 "$PROG/stamp" "$place/ran"
	ends 125 10
	assert_has "$(cat job.err)" \
		'^xrun: 100 ranks need [0-9]+ descriptors; this shell allows [0-9]+, and 30 processes \(ulimit -u\)   try: -n [0-9]+ or less$'
	[ ! -e "$place/ran" ]
	[ -z "$(ls -A "$place")" ]
}

@test "rel-43 the table is full in the middle of the start: undone, and said" {
	local begun

	need_stranger
	hold 18
	begun=$(now_ms)
	limited --grace 300ms -n 16 "$PROG/deaf" --last 60000
	ends 125 20
	# Tried again for 5 s, then what was started is stopped.
	[ $(($(now_ms) - begun)) -ge 5000 ]
	[ $(($(now_ms) - begun)) -lt 10000 ]
	assert_has "$(cat job.err)" 'Resource temporarily unavailable'
	assert_has "$(cat job.err)" 'ulimit -u'
	assert_eq "$(left_behind '.*')" ''
	release
}

@test "rel-43 the table is full for a moment: the start goes on" {
	need_stranger
	hold 18
	limited -n 16 "$PROG/deaf" --last 120000
	wait_for 60 full
	release
	wait_for 60 all_ready # in any order
	kill -KILL $(pgrep -U $stranger -x deaf)
	ends 137 60
}

all_ready()
{
	[ "$(grep -cE '^\[ *[0-9]+\] ready$' job.out)" -eq 16 ]
}

full()
{
	[ "$(pgrep -c -U $stranger)" -ge 27 ] # and threads, which it leaves out
}

@test "rel-43 room for the ranks but not for xrun's threads" {
	local held

	need_stranger
	for held in 13 14 15 16; do
		hold $held
		limited --grace 300ms -n 12 "$PROG/deaf" --last 60000
		wait_for 10 pgrep -U $stranger -x xrun-super
		wait_for 10 settled
		release
		kill -TERM "$pid" 2>/dev/null || true
		await_exit "$pid" 20
		assert_eq "$(left_behind '.*')" ''
	done
}

# settled - all twelve ranks are there, or the job is over.
settled()
{
	[ "$(pgrep -c -U $stranger -x deaf)" -eq 12 ] ||
		! kill -0 "$pid" 2>/dev/null || full
}

@test "rel-43 no room for the supervisor: 125, and no folder" {
	unsanitized 'looking for leaks takes one more process'
	need_stranger
	hold 29
	limited "$PROG/talk"
	ends 125 10
	assert_has "$(cat job.err)" \
		'^xrun: cannot start the supervisor: .*Resource temporarily unavailable'
	release
	[ -z "$(ls -A --ignore=.live "$place/xrun")" ]
}

# --- descriptors ------------------------------------------------------------

@test "from 4 descriptors on: the job runs whole, or one line says what to do" {
	local files mode

	unsanitized "the leak check at exit never ends without descriptors"
	need jq
	for files in {4..64}; do
		for mode in --no-logs \
			'-n 2 --stdin all --report r --events e'; do
			rm -f r e
			# shellcheck disable=SC2086 # several words
			try timeout 20 bash -c '
				exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
				ulimit -n "$1"; shift; exec "$@"' \
				- "$files" "$XRUN" $mode echo hi
			if [ "$status" -eq 0 ]; then
				assert_eq "$stderr" ''
				assert_eq "$(sort -u <<<"$output" | tail -c 3)" hi
			else
				assert_eq "$files $mode: $status" "$files $mode: 125"
				assert_eq "$output" ''
				assert_has "$stderr" '^xrun: .*(ulimit -n is [0-9]+|need).*   try: (ulimit -H?n [0-9]+.*|-n [0-9]+.*)$'
				assert_eq "$(wc -l <<<"$stderr")" 1
			fi
			case $mode in
			*report*) assert_eq "$(jq .exit r)" "$status" ;;
			esac
			case $mode,$status in
			*events*,0) assert_eq "$(jq -s length e)" 6 ;;
			esac
		done
	done
	# Not refused for ever: with what it says it runs.
	need prlimit
	try prlimit --nofile=20:20 "$XRUN" -n 1 --report r --events e true
	files=$(sed -nE 's/.*try: ulimit -Hn ([0-9]+).*/\1/p' <<<"$stderr")
	prlimit --nofile="$files:$files" "$XRUN" -n 1 --report r --events e true
}

@test "rel-44 too few descriptors: refused with the number, which is enough" {
	local needed

	need prlimit
	run -125 prlimit --nofile=70:70 "$XRUN" -n 64 "$PROG/stamp" ran
	assert_has "$output" \
		'^xrun: 64 ranks need [0-9]+ descriptors; this shell allows 70(, and .*)?   try: -n [0-9]+ or less$'
	[ ! -e ran ]
	needed=$(sed -E 's/.*need ([0-9]+) desc.*/\1/' <<<"$output")
	run -125 prlimit --nofile=$((needed - 1)):$((needed - 1)) "$XRUN" -n 64 true
	prlimit --nofile="$needed:$needed" "$XRUN" -n 64 "$PROG/spew" --lines 50 \
		--both >out 2>err
	"$PROG/verify" merged --ranks 64 --lines 50 out
	"$PROG/verify" merged --ranks 64 --lines 50 --streams 2 err
}

@test "rel-44 the advice can be followed" {
	local most

	need prlimit
	run -125 prlimit --nofile=100:100 "$XRUN" -n 1000 true
	most=$(sed -E 's/.*try: -n ([0-9]+) or less/\1/' <<<"$output")
	prlimit --nofile=100:100 "$XRUN" -n "$most" "$PROG/spew" --lines 1 >out
	"$PROG/verify" merged --ranks "$most" --lines 1 out
}

@test "rel-44 the soft limit is raised for xrun, and given back to the ranks" {
	need prlimit
	prlimit --nofile=64:4096 "$XRUN" -n 32 bash -c 'ulimit -Sn; ulimit -Hn' >out
	assert_eq "$(cut -d' ' -f2- out | sed 's/^[0-9]*\] //' | sort | uniq -c | tr -s ' ' | paste -sd' ')" \
		' 32 4096  32 64'
}

# holding COUNT COMMAND... - with so many descriptors more, from 20 on.
holding()
{
	local fd most=$((19 + $1))

	shift
	for ((fd = 20; fd <= most; fd++)); do
		eval "exec $fd</dev/null"
	done
	exec prlimit --nofile=256:256 "$@"
}

@test "rel-44 descriptors that xrun was started with count, too" {
	local most

	need prlimit
	run -125 holding 100 "$XRUN" -n 60 true
	assert_has "$output" '^xrun: 60 ranks need [0-9]+ descriptors; this shell allows 256'
	for most in 35 33 30 9; do
		holding 100 "$XRUN" -n $most "$PROG/spew" --lines 3 --both \
			>out 2>err &
		wait $!
		"$PROG/verify" merged --ranks $most --lines 3 out
	done
}

# in_pids_cgroup MAX COMMAND... - in a control group of so many processes.
in_pids_cgroup()
{
	local group=$pids_cgroup max=$1

	shift
	(
		echo "$max" >"$group/pids.max"
		echo "$BASHPID" >"$group/cgroup.procs"
		exec "$@"
	)
}

make_pids_cgroup()
{
	pids_cgroup=/sys/fs/cgroup/pids/xrun-test-$$
	mkdir "$pids_cgroup" 2>/dev/null || skip 'no pids controller here'
}

remove_cgroups()
{
	local group

	for group in "${pids_cgroup:-}" "${memory_cgroup:-}"; do
		[ ! -d "$group" ] || wait_for 5 rmdir "$group"
	done
}

@test "rel-43 a control group with few processes: refused, or named with its numbers" {
	make_pids_cgroup
	try in_pids_cgroup 40 "$XRUN" -n 100 true
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: 100 ranks need [0-9]+ descriptors; this shell allows [0-9]+, and 39 processes \(cgroup pids\.max\)   try: -n 10 or less$'
	try in_pids_cgroup 12 "$XRUN" --grace 300ms -n 16 "$PROG/deaf" --linger 0
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: rank [0-9]+ could not be started: clone: Resource temporarily unavailable \\(pids\\.max of cgroup /xrun-test-$$ is 12, and [0-9]+ are used\\); [0-9]+ ranks were started and are stopped$"
	assert_eq "$(left_behind '.*')" ''
}

@test "rel-43 who is limited in processes is told of how many he has" {
	need_stranger
	hold 18
	limited --grace 300ms -n 16 "$PROG/deaf" --linger 0
	ends 125 20
	assert_has "$(cat job.err)" 'ulimit -u is 30, and this user has [23][0-9]\)'
	release
}

# Files are then opened for each move.
@test "rel-44 with few descriptors left the files are whole all the same" {
	local needed pairs=() r

	need prlimit
	run -125 prlimit --nofile=60:60 "$XRUN" -n 64 true
	needed=$(sed -E 's/.*need ([0-9]+) desc.*/\1/' <<<"$output")
	prlimit --nofile="$needed:$needed" "$XRUN" -n 64 --show none \
		"$PROG/spew" --wild 4 --lines 40 --copy ref
	for ((r = 0; r < 64; r++)); do
		pairs+=("$(printf '%s/rank-%04d/stdout' \
			"$XDG_STATE_HOME/xrun/latest/0" "$r")" "ref.$r.out")
	done
	"$PROG/verify" raw "${pairs[@]}"
}

@test "a rank that gets no more processes: the limit of the group is named" {
	make_pids_cgroup
	# Later than the look at the counters, which comes 20 ms after the start.
	try in_pids_cgroup 30 "$XRUN" sh -c 'sleep 0.5
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 \
			22 23 24 25 26 27 28 29 30 31; do
			sleep 60 &
		done'
	assert_eq "$status" 2
	assert_has "$stderr" "^  the kernel refused [0-9]+ new processe?s? or threads?: pids\\.max of cgroup /xrun-test-$$ is 30\$"
	try in_pids_cgroup 30 "$XRUN" sh -c 'exit 3'
	[[ $stderr != *refused* ]]
	# What was refused long before is none of this job's.
	try in_pids_cgroup 30 "$XRUN" sh -c 'sleep 0.2; exit 3'
	assert_eq "$status" 3
	[[ $stderr != *refused* ]]
}

# --- memory, processor time, file sizes ----------------------------------------

# in_memory_cgroup BYTES COMMAND...
in_memory_cgroup()
{
	local group=$memory_cgroup max=$1

	shift
	(
		echo "$max" >"$group/memory.limit_in_bytes"
		echo "$BASHPID" >"$group/cgroup.procs"
		exec "$@"
	)
}

make_memory_cgroup()
{
	memory_cgroup=/sys/fs/cgroup/memory/xrun-test-$$
	mkdir "$memory_cgroup" 2>/dev/null || skip 'no memory controller here'
}

@test "rel-26 out of memory: said from the counter, with limit and peak" {
	unsanitized 'takes more memory than 20 MB itself'
	need python3 jq
	make_memory_cgroup
	# Later than the look at the counters, which comes 20 ms after the start.
	try in_memory_cgroup 20971520 "$XRUN" -n 2 --report report.json \
		--events events sh -c '[ "$RANK" = 1 ] || exec sleep 60
		sleep 0.5
		exec python3 -c "
x = []
while True: x.append(bytearray(1 << 20))"'
	assert_eq "$status" 137
	assert_has "$stderr" "^xrun: rank 1 failed first: SIGKILL after .* \(pid [0-9]+, out of memory: the limit of cgroup /xrun-test-$$ is 20 MiB, its peak 20 MiB, the rank's peak [0-9.]+ MiB\)$"
	assert_eq "$(jq -c '[.rank[].oom]' report.json)" '[null,"cgroup"]'
	assert_eq "$(jq -c 'select(.event == "rank.exit") | [.rank, .oom]' events | sort | paste -sd' ')" \
		'[0,null] [1,"cgroup"]'
	mv events events.jsonl
	need_schemas
	fits job report.json
	fits event events.jsonl
}

@test "rel-26 out of memory: a worker of a rank, and SIGKILL by a person" {
	unsanitized 'takes more memory than 20 MB itself'
	need python3
	make_memory_cgroup
	try in_memory_cgroup 20971520 "$XRUN" sh -c 'sleep 0.5
		python3 -c "
x = []
while True: x.append(bytearray(1 << 20))" || exit 1'
	assert_eq "$status" 1
	assert_has "$stderr" "^xrun: rank 0 failed: exit status 1 after .*, and the kernel killed another process, out of memory: the limit of cgroup /xrun-test-$$ is 20 MiB"
	try in_memory_cgroup 2097152000 "$XRUN" sh -c 'sleep 0.5; kill -9 $$'
	assert_eq "$status" 137
	assert_has "$stderr" '^xrun: rank 0 failed: SIGKILL after [^,]* \(pid [0-9]+\)$'
}

@test "limits of ulimit that end a rank are named" {
	need prlimit
	try prlimit --cpu=1:4 "$XRUN" sh -c 'while :; do :; done'
	assert_eq "$status" 152
	assert_has "$stderr" '^xrun: rank 0 failed: SIGXCPU after .*, ulimit -t is 1 s\)$'
	try prlimit --cpu=1:1 "$XRUN" sh -c 'while :; do :; done'
	assert_eq "$status" 137
	assert_has "$stderr" '^xrun: rank 0 failed: SIGKILL after .*, ulimit -Ht is 1 s\)$'
	try prlimit --fsize=65536 "$XRUN" dd if=/dev/zero of=big bs=128K count=1
	assert_eq "$status" 153
	assert_has "$stderr" '^xrun: rank 0 failed: SIGXFSZ after .*, ulimit -f is 64 KiB\)$'
}

# --- system calls -----------------------------------------------------------

# A sandbox that refuses the calls by which ranks are made.
in_sandbox()
{
	"$PROG/deny" vfork=EPERM close_range=ENOSYS -- "$XRUN" "$@"
}

@test "rel-60 clone and close_range refused: the same results" {
	local how

	for how in "$XRUN" in_sandbox; do
		$how -n 4 "$PROG/spew" --lines 500 --both --copy ref >out 2>err
		"$PROG/verify" merged --ranks 4 --lines 500 out
		run -3 $how -n 4 "$PROG/die" --rank 2 --exit 3
		assert_has "$output" '^xrun: rank 2 failed first: exit status 3'
		run -139 $how -n 2 "$PROG/die" --rank 0 --signal SEGV
		run -127 $how ./missing
		assert_has "$output" '^xrun: \./missing: not found'
		printf '\177ELFnothing' >broken
		chmod +x broken
		run -126 $how -n 3 ./broken
		assert_eq "$(printf 'in\n' | $how -n 2 "$PROG/tty" | grep -c 'read: in')" 1
	done
}

@test "rel-60 clone and close_range refused: ranks are born the same" {
	# Less what differs anyway: pids, inodes, the pipes' numbers.
	"$XRUN" -n 1 "$PROG/sigshow" </dev/null | same >here
	in_sandbox -n 1 "$PROG/sigshow" </dev/null | same >there
	diff here there
	assert_has "$(cat here)" '^fd: 2 pipe'
}

same()
{
	sed -E 's/^(pid|parent|group|session): .*/\1/; s/[0-9]{3,}/N/g'
}

# bats test_tags=sanitize
@test "rel-60 clone and close_range refused: nobody is left, whoever is killed" {
	spawn job "$PROG/deny" vfork=EPERM close_range=ENOSYS -- "$XRUN" -n 4 \
		"$PROG/deaf" --last 60000
	await_line job.out '^\[3\] ready$' 10
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	ends 125 10
	[ -z "$(left_behind '.*' && xruns)" ]
	spawn job "$PROG/deny" vfork=EPERM close_range=ENOSYS -- "$XRUN" -n 4 \
		"$PROG/deaf" --last 60000
	await_line job.out '^\[3\] ready$' 10
	kill -KILL "$pid" "$(pgrep -P "$pid" -x xrun-super)"
	wait_for 5 nobody
	in_sandbox -n 2 "$PROG/fork_away" --setsid --close --ignore-term --pids pids
	run ! xargs -n 1 kill -0 <pids
}

nobody()
{
	[ -z "$(left_behind '.*' && xruns)" ]
}

@test "rel-60 threads are refused: words and 125" {
	local logs

	for logs in --logs --no-logs; do
		status=0
		timeout 20 "$PROG/deny" clone3=ENOSYS thread=EPERM -- "$XRUN" \
			$logs -n 2 sh -c 'echo up; exec sleep 60' 2>err ||
			status=$?
		assert_eq "$status" 125
		assert_has "$(cat err)" \
			'^xrun: no thread for the output: Operation not permitted$'
	done
}

@test "rel-60 pidfd_open refused: works, or names what is missing" {
	run "$PROG/deny" pidfd_open=ENOSYS -- "$XRUN" -n 2 "$PROG/talk"
	if [ "$status" -eq 0 ]; then
		assert_has "$output" '^\[1\] line 0$'
	else
		assert_eq "$status" 125
		assert_has "$output" pidfd
	fi
}

# --- folders ----------------------------------------------------------------

@test "rel-61 no HOME: the folder of the passwd entry" {
	need setpriv unshare
	[ "$(id -u)" -eq 0 ] || skip "only root can hide root's home"
	need_mounts -m
	run unshare -m bash -c 'mount -t tmpfs none ~root &&
		env -u HOME -u XDG_STATE_HOME "$1" echo hello && ls ~root/.local/state/xrun' \
		- "$XRUN"
	[ "$status" -eq 0 ] || {
		case $XRUN in "$(eval echo ~root)"*) skip "xrun is in the home" ;; esac
	}
	assert_eq "${lines[0]}" hello
	assert_has "$output" '^latest$'
}

# bats test_tags=sanitize
@test "rel-61 no HOME and no passwd entry: a folder in /var/tmp" {
	need_stranger
	spawn job setpriv --reuid=$stranger --regid=$stranger --clear-groups \
		env -u HOME -u XDG_STATE_HOME -u XDG_RUNTIME_DIR "$XRUN" -n 2 "$PROG/talk"
	ends 0 10
	assert_eq "$(sort job.out)" $'[0] line 0\n[1] line 0'
	assert_eq "$(stat -c '%a %u' /var/tmp/xrun-$stranger)" "700 $stranger"
	assert_eq "$(cat /var/tmp/xrun-$stranger/latest/0/rank-0001/stdout)" 'line 0'
}

# in_namespace COMMAND - a shell with mounts of its own.
in_namespace()
{
	local flags=-m

	[ "$(id -u)" -eq 0 ] || flags=-rm
	need_mounts "$flags"
	unshare $flags bash -c "$@"
}

@test "rel-61 no /proc: ranks run, fail and end as always" {
	unsanitized 'they need /proc themselves'
	in_namespace 'umount -l /proc && "$1" -n 4 "$2/spew" --lines 100' - \
		"$XRUN" "$PROG" >out
	"$PROG/verify" merged --ranks 4 --lines 100 out
	run -3 in_namespace 'umount -l /proc && "$1" -n 4 "$2/die" --rank 2 --exit 3' \
		- "$XRUN" "$PROG"
	assert_has "$output" '^xrun: rank 2 failed first: exit status 3'
}

@test "rel-61 no /proc: leftovers are ended, or xrun says that it cannot" {
	unsanitized 'they need /proc themselves'
	status=0
	in_namespace 'umount -l /proc && "$1" -n 2 "$2/fork_away" --setsid \
		--close --last 3000 --pids pids' - "$XRUN" "$PROG" >out 2>err || status=$?
	assert_eq "$status" 0
	[ -s pids ]
	if xargs -n 1 kill -0 <pids 2>/dev/null; then
		xargs kill -KILL <pids
		assert_has "$(cat err)" '/proc'
	fi
}

@test "rel-61 no /dev/shm, and a read-only state folder" {
	in_namespace 'umount -l /dev/shm && "$1" -n 2 "$2/talk"' - "$XRUN" "$PROG" >out
	assert_eq "$(sort out)" $'[0] line 0\n[1] line 0'
	run -125 in_namespace 'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" &&
		"$1" true' - "$XRUN" "$XDG_STATE_HOME"
	assert_has "$output" 'Read-only file system   try: --log-dir DIR or --no-logs$'
	run -0 in_namespace 'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" &&
		"$1" --no-logs echo goes' - "$XRUN" "$XDG_STATE_HOME"
	assert_eq "$output" goes
}

# --- PID 1 ------------------------------------------------------------------

# contained ARG... - spawns xrun as the first process of a container.
contained()
{
	# shellcheck disable=SC2086 # several flags
	need_mounts $contain
	spawn job unshare $contain "$XRUN" "$@"
}

contain='-pf --mount-proc'
[ "$(id -u)" -eq 0 ] || contain="-r $contain"

@test "rel-62 as PID 1: runs, fails with the rank's code, reaps" {
	contained -n 2 "$PROG/talk"
	ends 0 10
	contained -n 2 "$PROG/die" --rank 1 --exit 4
	ends 4 10
	contained -n 2 "$PROG/fork_away" --depth 2 --orphan --close
	ends 0 10
	assert_has "$(cat job.err)" \
		'^xrun: 2 processes outlived the ranks and were ended'
	contained bash -c 'for i in {1..30}; do (true &); done; sleep 1.5; ps -eo stat'
	ends 0 10
	run ! grep Z job.out
}

@test "rel-62 as PID 1: TERM and INT are heard" {
	local sig

	mkfifo never
	for sig in TERM INT HUP; do
		contained -n 2 bash -c \
			'trap "echo told; exit 0" TERM; echo ready; while :; do read -r -t 60 _ <>never; done'
		await_line job.out '^\[0\] ready$' 10
		await_line job.out '^\[1\] ready$' 10
		kill -$sig "$(pgrep -P "$pid")"
		ends $((128 + $(kill -l $sig))) 15
		assert_eq "$(grep -c told job.out)" 2
	done
}

@test "rel-62 as PID 1: the supervisor is killed, and all of it ends" {
	contained -n 2 "$PROG/deaf" --last 60000
	await_line job.out '^\[1\] ready$' 10
	kill -KILL "$(pgrep -P "$(pgrep -P "$pid")" -x xrun-super)"
	ends 125 10
	assert_has "$(cat job.err)" '^xrun: the supervisor ended \(SIGKILL\)'
}
