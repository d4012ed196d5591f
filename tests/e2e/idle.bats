#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# idle.bats - what xrun costs: nothing while nothing happens, little memory
# however much is written. Runs alone: it counts what others would disturb.

bats_require_minimum_version 1.5.0
load helper

# peak_mib - the most memory the supervisor ever had.
peak_mib()
{
	awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$(supervisor)/status"
}

# holds PATTERN SIZE - the file that fits has so many bytes.
holds()
{
	[ "$(stat -c %s $1 2>/dev/null)" = "$2" ]
}

# threads - how many the supervisor has.
threads()
{
	awk '/^Threads/ { print $2 }' "/proc/$(supervisor)/status"
}

@test "the thread that moves output is made at the first byte" {
	local go

	mkfifo go
	exec {go}<>go
	spawn job "$XRUN" sh -c \
		'echo >ready; read -r word <go; echo "$word"; read -r word <go'
	await_file ready 10
	# One is the helper's, which wrote job.json.
	wait_for 10 compgen -G "$XDG_STATE_HOME/xrun/*/job.json" >/dev/null
	assert_eq "$(threads)" 2
	echo word >&"$go"
	await_line job.out '^word$' 10
	assert_eq "$(threads)" 4
	echo end >&"$go"
	wait "$pid"
}

@test "an idle job: no context switch of keeper and supervisor in 5 s" {
	local before

	spawn job "$XRUN" -n 8 "$PROG/deaf"
	await_line job.out '^\[7\] ready$' 10
	wait_for 20 calm
	before=$(switches)
	pass 5
	assert_eq "$(switches)" "$before"
	[ "$before" -gt 0 ]
	kill -KILL $(pgrep -P "$(supervisor)")
	await_exit "$pid" 10
}

# bats test_tags=sanitize
@test "--no-logs: the same" {
	local before

	spawn job "$XRUN" --no-logs -n 8 "$PROG/deaf"
	await_line job.out '^\[7\] ready$' 10
	wait_for 20 calm
	before=$(switches)
	pass 2
	assert_eq "$(switches)" "$before"
	kill -KILL $(pgrep -P "$(supervisor)")
	await_exit "$pid" 10
}

@test "rel-12 ranks that close their streams are not dead, and cost nothing" {
	local before

	mkfifo never
	spawn job "$XRUN" -n 4 bash -c \
		'echo closing; exec >&- 2>&-; read -r _ <>never'
	await_line job.out closing 10
	wait_for 20 calm
	before=$(switches)
	pass 2
	assert_eq "$(switches)" "$before"
	assert_eq "$(pgrep -c -P "$(supervisor)")" 4
	kill -TERM "$pid"
	await_exit "$pid" 15
}

@test "an unfinished line that waits costs nothing either" {
	local before

	mkfifo never
	spawn job "$XRUN" -n 2 bash -c 'printf torn; read -r _ <>never'
	await_line job.out '^\[1\] torn$' 10
	wait_for 20 calm
	before=$(switches)
	pass 2
	assert_eq "$(switches)" "$before"
	kill -TERM "$pid"
	await_exit "$pid" 15
}

@test "rel-14 200 MB without a newline: exact, in less than 64 MiB" {
	local mixed

	mkfifo go job.out
	RANK=0 "$PROG/spew" --joined --size 1000 --lines 200000 >line
	{
		cmp - <(printf '[0] ' && cat line && printf '\n[0] \n') <job.out
		echo $? >compared
	} 3>&- &
	spawn job "$XRUN" -n 2 bash -c '[ "$RANK" = 0 ] || exit 0
		"$1" --joined --size 1000 --lines 200000
		echo; read -r _ <>go; echo' - "$PROG/spew"
	# The line and its newline; what follows comes when we say so.
	wait_for 30 holds "$XDG_STATE_HOME"/xrun/'????'/0/rank-0000/stdout \
		$(($(stat -c %s line) + 1))
	wait_for 30 calm
	[ "$(peak_mib)" -lt 64 ]
	echo >go
	wait "$pid"
	wait_for 10 test -s compared
	assert_eq "$(cat compared)" 0
	cmp "$XDG_STATE_HOME/xrun/latest/0/rank-0000/stdout" \
		<(cat line && printf '\n\n')
}

# bats test_tags=sanitize
@test "rel-18 100 MB that nobody reads: in the files, and in less than 64 MiB" {
	local reader

	mkfifo job.out
	exec {reader}<>job.out
	spawn job "$XRUN" --grace 0 -n 2 "$PROG/spew" --size 1000 --lines 50000
	wait_for 30 compgen -G "$XDG_STATE_HOME/xrun/????/0/rank-0001/stdout"
	wait_for 30 all_gone
	[ "$(peak_mib)" -lt 64 ]
	kill -TERM "$pid"
	await_exit "$pid" 15
	assert_eq "$(stat -c %s "$XDG_STATE_HOME/xrun/latest/0/rank-0001/stdout")" \
		50000000
}

all_gone()
{
	[ -z "$(left_behind '.*')" ]
}

@test "rel-14 --no-logs: 100 MB without a newline in less than 64 MiB" {
	mkfifo go
	spawn job "$XRUN" --no-logs -n 2 bash -c '[ "$RANK" = 0 ] || exit 0
		"$1" --joined --size 1000 --lines 100000
		echo; echo end; read -r _ <>go' - "$PROG/spew"
	wait_for 30 holds job.out 99900013
	[ "$(peak_mib)" -lt 64 ]
	echo >go
	wait "$pid"
	cmp job.out <(printf '[0] ' && RANK=0 "$PROG/spew" --joined --size 1000 \
		--lines 100000 && printf '\n[0] end\n')
}
