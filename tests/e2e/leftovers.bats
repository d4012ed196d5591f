#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# leftovers.bats - ranks that leave processes behind: when xrun ends, none of
# them lives, and they are named.

bats_require_minimum_version 1.5.0
load helper

# job ARG... - runs xrun into the files out and err; $status is its.
job()
{
	status=0
	"$XRUN" "$@" >out 2>err || status=$?
}

# gone COUNT - so many pids were written down, and none of them lives.
gone()
{
	assert_eq "$(wc -l <pids)" "$1"
	if xargs -n 1 kill -0 <pids 2>/dev/null; then
		echo "one of these lives: $(paste -sd' ' pids)" >&2
		return 1
	fi
	assert_eq "$(left_behind '.*')" ''
}

# named COUNT - the account names them, by their pids.
named()
{
	local one

	if [ "$1" -eq 1 ]; then
		assert_has "$(cat err)" \
			'^xrun: 1 process outlived (its rank|the ranks) and was ended: fork_away \(pid [0-9]+\)$'
	else
		assert_has "$(cat err)" \
			"^xrun: $1 processes outlived (its rank|the ranks) and were ended: fork_away"
	fi
	grep -o 'pid [0-9]*' err | while read -r _ one; do
		grep -qx "$one" pids
	done
}

@test "rel-8 double fork, and the parent exits 0" {
	job "$PROG/fork_away" --depth 2 --orphan --close --pids pids
	assert_eq "$status" 0
	gone 1
	named 1
	assert_eq "$(cat out)" ready
}

@test "rel-9 setsid, streams closed, deaf to TERM" {
	local begun

	begun=$(now_ms)
	job -n 4 "$PROG/fork_away" --setsid --close --ignore-term --pids pids
	assert_eq "$status" 0
	gone 4
	named 4
	# Their own lives last 30 s.
	[ $(($(now_ms) - begun)) -lt 10000 ]
}

# yardstick - the ms in which this machine ends 24 processes, as loaded as it is.
yardstick()
{
	bash -c 'for i in {1..24}; do read -r _ <>"$0" & done
		begun=${EPOCHREALTIME/./}
		kill -KILL $(jobs -p)
		wait
		echo $(((${EPOCHREALTIME/./} - begun) / 1000))' never 2>/dev/null
}

# From the last rank's end to the end of the job, as its events have it; the best of five,
# since others work on this machine, too. If they do, the machine takes longer to end
# processes: five times the yardstick is added.
@test "rel-9 all of them are gone within 100 ms" {
	local took usual

	need jq
	mkfifo never
	for _ in 1 2 3 4 5; do
		rm -f pids events
		job -n 4 --events events "$PROG/fork_away" --depth 2 --width 2 \
			--setsid --close --ignore-term --pids pids
		assert_eq "$status" 0
		gone 24
		jq -s '(map(select(.event == "job.end"))[0].mono_ns -
			(map(select(.event == "rank.exit").mono_ns) | max)) / 1e6 |
			floor' events >>took
		yardstick >>usual
	done
	took=$(sort -n took | head -n 1)
	usual=$(sort -n usual | sed -n 3p)
	[ "$took" -le $((100 + 5 * usual)) ] || {
		echo "ms: $(paste -sd' ' took); yardstick: $(paste -sd' ' usual)" >&2
		return 1
	}
}

@test "rel-9 a whole tree of such" {
	job -n 2 "$PROG/fork_away" --depth 3 --width 3 --setsid --close \
		--ignore-term --pids pids
	assert_eq "$status" 0
	gone 78
	assert_has "$(cat err)" '^xrun: [0-9]+ processes outlived the ranks and were ended: '
}

# One process at a time, each forks the next and is gone: who kills those he
# sees is always late. It gives up after 2 s, which is longer than a sweep.
@test "rel-10 a relay of forks is caught" {
	local begun

	begun=$(now_ms)
	job "$PROG/fork_away" --relay --setsid --close --ignore-term --pids pids
	assert_eq "$status" 0
	[ -s pids ]
	assert_eq "$(left_behind '.*')" ''
	[ $(($(now_ms) - begun)) -lt 1900 ]
}

@test "rel-10 four relays, and the ranks fail" {
	local begun

	begun=$(now_ms)
	job -n 4 "$PROG/fork_away" --relay --setsid --close --exit 3 --pids pids
	assert_eq "$status" 3
	assert_eq "$(left_behind '.*')" ''
	[ $(($(now_ms) - begun)) -lt 1900 ]
}

@test "rel-11 children like those of a data loader, and the rank crashes" {
	mkfifo never
	job -n 2 bash -c '"$1" --width 4 --pids pids >&2
		until [ "$(wc -l <pids)" = 8 ]; do :; done
		[ "$RANK" = 0 ] || kill -SEGV $$
		read -r -t 60 _ <>never' - "$PROG/fork_away"
	assert_eq "$status" 139
	assert_has "$(cat err)" '^xrun: rank 1 failed first: SIGSEGV'
	gone 8
}

@test "rel-11 the same when the job is stopped, by signal and by time" {
	spawn job "$XRUN" --grace 300ms -n 2 "$PROG/fork_away" --depth 2 \
		--setsid --ignore-term --stay --pids pids
	await_line job.out '^\[1\] ready$' 10
	await_line job.out '^\[0\] ready$' 10
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 143
	gone 4
	rm pids
	job --timeout 500ms --grace 300ms "$PROG/fork_away" --setsid \
		--ignore-term --stay --pids pids
	assert_eq "$status" 124
	gone 1
}

@test "--no-logs and --on-failure continue leave nobody either" {
	job --no-logs -n 2 "$PROG/fork_away" --setsid --close --ignore-term --pids pids
	assert_eq "$status" 0
	gone 2
	rm pids
	job --on-failure continue -n 2 "$PROG/fork_away" --setsid --close \
		--exit 5 --pids pids
	assert_eq "$status" 5
	gone 2
}

# bats test_tags=sanitize
@test "they are in the report, and -q keeps quiet about them" {
	need jq
	job --report report -n 2 "$PROG/fork_away" --setsid --close --pids pids
	assert_eq "$(jq .left_behind report)" 2
	job -q -n 2 "$PROG/fork_away" --setsid --close --pids pids
	assert_eq "$(cat err)" ''
	assert_eq "$(left_behind '.*')" ''
}

@test "a process that ended before its rank is not a leftover" {
	job -n 2 bash -c '(exec true) & (exit 3) & wait; echo done'
	assert_eq "$status" 0
	assert_eq "$(sort out)" $'[0] done\n[1] done'
	assert_eq "$(cat err)" ''
}

# Adopted children that end while the job runs must not pile up as zombies.
@test "the dead among the adopted are reaped while the job runs" {
	mkfifo go
	spawn job "$XRUN" bash -c \
		'for i in {1..20}; do (true & ) ; done; echo left; read -r _ <>go'
	await_line job.out left 10
	wait_for 10 no_zombies
	echo >go
	wait "$pid"
}

no_zombies()
{
	! pgrep -r Z -P "$pid,$(pgrep -d, -P "$pid")" >/dev/null
}

@test "a shell's background jobs end with the rank, whoever their parent is" {
	mkfifo never
	job -n 2 bash -c 'sleep 1000 & disown; nohup sleep 1001 >/dev/null 2>&1 &
		setsid sleep 1002 >/dev/null 2>&1 & read -r -t 0.2 _ <>never; exit 0'
	assert_eq "$status" 0
	assert_eq "$(left_behind '.*')" ''
	assert_has "$(cat err)" 'outlived the ranks and were ended: .*sleep'
}
