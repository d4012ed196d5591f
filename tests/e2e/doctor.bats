#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# doctor.bats - xrun doctor: what it says of the machine, and what it finds and
# cleans up of jobs that are over.

bats_require_minimum_version 1.5.0
load helper

# row NAME - what doctor says of it: verdict and words.
row()
{
	"$XRUN" doctor --json | jq -r --arg name "$1" \
		'.checks[] | select(.name == $name) | "\(.verdict) \(.what)"'
}

# left JOB - what it says is left of a job: its processes' number, and flags.
left()
{
	"$XRUN" doctor --json | jq -c --arg job "$1" '.leftovers[] |
		select(.job == $job) |
		[(.processes | length), .known, .unclosed, .socket]'
}

@test "doctor: a line for each check, and a last one; nothing is changed" {
	need jq
	find . >before
	try "$XRUN" doctor
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	for name in kernel files processes memory cgroup ports clock terminals \
		devices stacks core state runtime settings variables locale \
		program agent libraries leftovers; do
		assert_has "$output" "^(ok|note|warn|bad ) *$name  "
	done
	assert_has "$output" '^ready: nothing bad, [0-9]+ warnings?$'
	find . | grep -v -e /.out -e /.err | diff <(grep -v -e /.out -e /.err before) -
	try "$XRUN" doctor more
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: doctor: 'more' is one word too many   try: xrun doctor -h"
}

@test "doctor: its JSON fits the schema, before and after --clean" {
	need jq
	need_schemas
	unsanitized 'memory is reserved for them'
	"$XRUN" doctor --json >plain.json
	lost
	"$XRUN" doctor --json >found.json
	"$XRUN" doctor --clean --json >cleaned.json
	"$XRUN" doctor --json >after.json
	fits doctor plain.json found.json cleaned.json after.json
	assert_eq "$(jq -c '[.ready, has("cleaned")]' plain.json)" '[true,false]'
	assert_eq "$(jq -c --arg id "$id" '.cleaned[] | select(.job == $id) |
		[.ended > 0, .closed, .socket]' cleaned.json)" '[true,true,true]'
}

@test "doctor: settings that would keep a job from starting are bad" {
	need jq
	mkdir -p "$XDG_CONFIG_HOME/xrun"
	printf '{ "ranks": 2, "grace": "soon", "rank": 1 }\n' \
		>"$XDG_CONFIG_HOME/xrun/config.json"
	try "$XRUN" doctor
	assert_eq "$status" 1
	assert_has "$output" '^bad   settings    .*config.json:1:.* \(and 1 more\)$'
	assert_has "$output" '^not ready: 1 bad, '
	rm "$XDG_CONFIG_HOME/xrun/config.json"
	XRUN_GRACE=soon try "$XRUN" doctor
	assert_eq "$status" 1
	assert_has "$output" '^bad   settings    XRUN_GRACE: '
	assert_has "$(row settings)" '^ok no files, nothing wrong$'
}

@test "doctor: folders that others can write are not trusted" {
	need jq
	mkdir -m 0777 "$XDG_STATE_HOME/xrun"
	chmod 0777 "$XDG_STATE_HOME/xrun"
	try "$XRUN" doctor
	assert_eq "$status" 1
	assert_has "$output" '^bad   state       .*/state/xrun belongs to somebody else, or all may write it$'
	chmod 0755 "$XDG_RUNTIME_DIR"
	assert_has "$(row runtime)" '^warn \$XDG_RUNTIME_DIR is no folder of yours alone'
	chmod 0700 "$XDG_STATE_HOME/xrun" "$XDG_RUNTIME_DIR"
	assert_has "$(row state)" '^(ok|note|warn) '
	assert_eq "$(row runtime)" "ok xrun in \$XDG_RUNTIME_DIR"
}

@test "doctor: another xrun comes first in PATH" {
	need jq
	mkdir first
	printf '#!/bin/sh\necho irun\n' >first/xrun
	chmod +x first/xrun
	assert_has "$(PATH="$PWD/first:$PATH" row program)" \
		"^warn xrun in PATH is $PWD/first/xrun, and not this one, "
	mkdir last
	ln -s "$(readlink -f "$XRUN")" last/xrun
	assert_eq "$(PATH="$PWD/last:$PATH" row program)" "ok $PWD/last/xrun"
	assert_eq "$(PATH="$PWD/last:$PWD/first:$PATH" row program)" \
		"note $PWD/last/xrun; behind it in PATH is $PWD/first/xrun"
}

# bats test_tags=sanitize
@test "doctor: a program without its agent is told" {
	need jq
	mkdir alone
	cp "$(readlink -f "$XRUN")" alone/xrun
	XRUN=$PWD/alone/xrun
	[[ $(row agent) != ok\ /* ]] || skip 'an xrun is installed where this one looks'
	assert_has "$(row agent)" '^warn libxrun-preload.so is not where xrun is'
	printf 'not a library\n' >alone/libxrun-preload.so
	assert_has "$(row agent)" '^warn .*/alone/libxrun-preload.so is not a program: '
}

@test "doctor: a sandbox that refuses what xrun needs is bad, what it uses a warning" {
	local call said

	unsanitized 'they use what is refused'
	while read -r call said; do
		try "$PROG/deny" "$call" -- "$XRUN" doctor
		assert_has "$output" "$said"
		assert_eq "$status" "$(grep -c '^bad ' <<<"$output")"
	done <<-'EOF'
		pidfd_open=ENOSYS ^bad   kernel .* no pidfd_open: no job can start$
		pidfd_send_signal=EPERM ^warn  kernel .* jobs do not hear of kill
		vfork=EPERM ^warn  kernel .* ranks are made by fork
		close_range=ENOSYS ^warn  kernel .* no close_range
		memfd_create=EPERM ^warn  kernel .* no memfd_create
	EOF
}

@test "doctor: what other launchers left in the shell is named" {
	need jq
	assert_eq "$(row variables)" 'ok none'
	assert_eq "$(MASTER_PORT=1 SLURM_JOB_ID=7 row variables)" \
		'note MASTER_PORT SLURM_JOB_ID'
	assert_has "$(LC_ALL=C row locale)" '^note C: '
}

has_socket()
{
	[ -S "$(echo "$XDG_RUNTIME_DIR"/xrun/*/control)" ]
}

@test "rel-31 both killed: doctor finds what is left, and --clean ends it" {
	local other

	need jq
	unsanitized 'memory is reserved for them'
	mkfifo never
	spawn beside "$XRUN" "$PROG/fork_away" --depth 2 --width 2 --setsid \
		--ignore-term --close --stay --last 60000
	other=$pid
	await_line beside.out ready 10
	wait_for 10 has_socket
	left_behind '.*' | sort >beside.before
	lost
	try "$XRUN" doctor
	assert_eq "$status" 0
	assert_has "$output" '^warn  leftovers   [0-9]+ process(es)? and files of 1 job$'
	assert_has "$output" "^ +$id: [0-9]+ processe?s?: fork_away \(pid [0-9]+\).*; a record without an end; a control socket$"
	[ "$(of_job "$id")" -ge 1 ]
	[ ! -s "$XDG_STATE_HOME/xrun/$id/lock" ]
	try "$XRUN" doctor --clean
	assert_eq "$status" 0
	assert_has "$output" "^ +$id: [0-9]+ process(es)? ended; record closed; control socket removed$"
	# Those of tests beside this one are not known here.
	assert_has "$output" '^(ok|note)  *leftovers '
	none_of "$id"
	[ ! -e "$XDG_RUNTIME_DIR/xrun/$id" ]
	assert_eq "$(jq -c '[.exit, .reason]' "$XDG_STATE_HOME/xrun/$id/job.json")" \
		'[125,"supervisor lost"]'
	# What runs beside lost nothing.
	left_behind '.*' | sort | diff beside.before -
	[ "$("$XRUN" ps -q | wc -l)" -eq 1 ]
	kill "$other"
	wait "$other" || true
}

@test "rel-31 of a job that kept no folder, its record tells" {
	need jq
	unsanitized 'memory is reserved for them'
	lost --no-logs
	assert_has "$(left "$id")" '^\[[1-9][0-9]*,true,true,true\]$'
	try "$XRUN" doctor --clean
	none_of "$id"
	assert_eq "$(left "$id")" ''
	# The next job does it, too.
	lost --no-logs
	spawn next "$XRUN" sleep 60
	wait_for 10 none_of "$id"
	kill "$pid"
	wait "$pid" || true
}

# claimant JOB - a process that says it is of JOB, and that no xrun looks after.
claimant()
{
	XRUN_JOB=$1 setsid sleep 60 3>&- &
	claimants+=($!)
}

all_sleep()
{
	[ "$(ps -o comm= -p "$(IFS=,; echo "${claimants[*]}")" | sort -u)" = sleep ]
}

@test "doctor: a process that only names a job is listed and never ended" {
	local claimants=()

	need jq
	"$XRUN" --job ended echo over
	spawn job "$XRUN" --job runs sh -c 'echo ready; sleep 60'
	await_line job.out ready 10
	claimant ended
	claimant runs
	claimant unknown
	claimant 'no/name'
	wait_for 10 all_sleep
	assert_eq "$(left ended)" '[1,false,false,false]'
	assert_eq "$(left unknown)" '[1,false,false,false]'
	assert_eq "$("$XRUN" doctor --json | jq -c '[.leftovers[].job] | sort' |
		grep -c -e runs -e 'no/')" 0
	try "$XRUN" doctor --clean
	assert_has "$output" '^ +ended: 1 process: sleep \(pid [0-9]+\); not known to be of that job, and left alone$'
	assert_has "$output" '^ +unknown: 1 process: sleep \(pid [0-9]+\); not known to be of that job, and left alone$'
	kill "${claimants[@]}" "$pid" # all of them live
	wait "${claimants[@]}" "$pid" || true
}
