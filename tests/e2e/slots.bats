#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# slots.bats - what ranks tell by a store into the job's segment.

load helper

# up ARG... - a job in the background that can be asked; its id is in $id.
up()
{
	spawn one "$XRUN" --job slots "$@"
	id=slots
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
}

# rank_has RANK JQ - true if JQ holds for the rank in `ps --json`.
rank_has()
{
	"$XRUN" ps --json "$id" | json_holds ".rank[$1] | $2"
}

down()
{
	"$XRUN" stop "$id"
	status=0
	wait "$pid" || status=$?
}

@test "ps shows the last step of many, though few were sent" {
	need jq
	up -n 2 "$PROG/member" burst 500 say on rest
	await_line one.out '^\[0\] on$' 5
	await_line one.out '^\[1\] on$' 5
	rank_has 0 '.progress.step == 500 and .progress.total == 1000000'
	rank_has 1 '.progress.step == 500'
	assert_has "$("$XRUN" ps "$id")" '^ +1 .* 500/1000000$'
	down
	assert_eq "$status" 143
}

@test "a step that is smaller, and later, is the one that counts" {
	need jq
	up -n 1 "$PROG/member" at 700 at 3 say on rest
	await_line one.out '^on$' 5
	wait_for 5 rank_has 0 '.progress.step == 3'
	down
}

@test "a heartbeat is a word, and no step" {
	need jq
	up -n 1 "$PROG/member" beat 1000 say on rest
	await_line one.out '^on$' 5
	rank_has 0 '.progress | has("seconds_ago") and .seconds_ago >= 0 and
		.seconds_ago < 60 and (has("step") | not)'
	down
}

@test "an unmodified program has no segment, beside one that has it does" {
	try "$XRUN" -n 1 sh -c 'echo "${XRUN_SEGMENT_FD-none}"; ls /proc/$$/fd'
	assert_eq "$status" 0
	assert_has "$output" '^none$'
	[[ ! $output =~ (^|$'\n')98($|$'\n') ]]
	# shellcheck disable=SC2016
	try "$XRUN" --no-prefix -n 1 "$PROG/member" say x : -n 1 bash -c '
		[ "$XRUN_SEGMENT_FD" = "98:$(stat -L -c %i /dev/fd/98)" ] && echo same'
	assert_eq "$status" 0
	assert_has "$output" '^same$'
}

# bats test_tags=sanitize
@test "a second process of a rank learns which one it is" {
	try "$XRUN" -n 1 "$PROG/member" attach fork attach
	assert_eq "$status" 0
	assert_has "$output" '^attached$'
	assert_has "$output" '^rank 0 is held by process [0-9]+ \(member\): XR_E_EXISTS$'
	try "$XRUN" -n 1 "$PROG/member" attach detach fork attach
	assert_eq "$output" $'attached\nattached'
}

@test "whoever is executed in its place is the rank, and so is a shell's child" {
	try "$XRUN" -n 1 "$PROG/member" attach exec attach exec attach
	assert_eq "$output" $'attached\nattached\nattached'
	# The shell is linked with nothing: the other program has the segment.
	try "$XRUN" --no-prefix -n 1 sh -c '"$0" attach; "$0" attach' "$PROG/member" : \
		-n 1 "$PROG/member" say x
	assert_eq "$(sort <<<"$output")" $'attached\nattached\nx'
}

@test "where there is no segment the job runs, and tells by messages" {
	need jq
	up -n 1 sh -c 'exec "$0" attach at 7 beat 3 say on rest' "$PROG/member"
	await_line one.out '^on$' 5
	assert_has "$(cat one.out)" '^job slots has no segment here: XR_E_NOTFOUND$'
	wait_for 5 rank_has 0 '.progress.step == 7'
	down
	# A kernel or sandbox that has no memfd.
	try "$PROG/deny" memfd_create=EPERM -- "$XRUN" -n 1 "$PROG/member" attach
	assert_eq "$status" 0
	assert_has "$output" 'has no segment here'
}

# bats test_tags=sanitize
@test "a rank whose limit leaves no room for the descriptor has none" {
	need jq
	ulimit -n 90
	up -n 1 "$PROG/member" attach at 7 say on rest
	await_line one.out '^on$' 5
	assert_has "$(cat one.out)" 'has no segment here'
	down
}

@test "a rank that closed its descriptors has none" {
	# shellcheck disable=SC2016
	try "$XRUN" --no-prefix -n 1 bash -c 'exec 98</dev/null; exec "$0" attach' "$PROG/member" : \
		-n 1 "$PROG/member" say x
	assert_eq "$status" 0
	assert_has "$output" 'has no segment here'
}

# bats test_tags=sanitize
@test "whatever ranks write there, xrun goes on and says what can be" {
	need jq
	up -n 2 "$PROG/member" say on rest : -n 2 bash -c '
		truncate -s 0 /dev/fd/98 2>/dev/null && echo shorter
		truncate -s 1G /dev/fd/98 2>/dev/null && echo longer
		for i in 1 2 3 4 5 6 7 8; do
			head -c 100000 /dev/urandom | head -c "$(stat -L -c %s /dev/fd/98)" |
				dd of=/dev/fd/98 bs=64K conv=notrunc status=none
		done
		echo done
		exec sleep 60'
	await_line one.out '^\[2\] done$' 10
	await_line one.out '^\[3\] done$' 10
	[[ ! $(cat one.out) =~ shorter|longer ]]
	for _ in 1 2 3; do
		"$XRUN" ps --json "$id" |
			json_holds '.rank | length == 4 and all(.progress.seconds_ago == null or
				.progress.seconds_ago >= 0)'
		"$XRUN" ps "$id" >/dev/null
	done
	down
	assert_eq "$status" 143
}

# bats test_tags=sanitize
@test "a rank that asked is told to stop, and ends by itself" {
	spawn one "$XRUN" --job slots -n 1 "$PROG/member" on-stop say saved
	await_line one.out '^waiting$' 5
	"$XRUN" stop slots
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 143
	assert_eq "$(cat one.out)" $'waiting\ntold 1\nsaved'
}

@test "each attempt has a segment of its own, which tells which one it is" {
	# shellcheck disable=SC2016
	job --restarts 1 --hang-timeout 60s --no-prefix -n 1 bash -c '
		[ "$XRUN_SEGMENT_FD" = "98:$(stat -L -c %i /dev/fd/98)" ] && echo "$XRUN_SEGMENT_FD"
		od -A n -t u4 -j 32 -N 4 /dev/fd/98
		od -A n -t u8 -j 4248 -N 8 /dev/fd/98
		"$0" at 7 attach
		exit 3' "$PROG/member"
	assert_eq "$status" 3
	assert_eq "$(grep -c '^attached$' <<<"$output")" 2
	assert_eq "$(grep '^98:' <<<"$output" | sort -u | wc -l)" 2
	assert_eq "$(grep '^  *[0-9]' <<<"$output" | tr -s ' \n' ' ')" ' 0 0 1 0 '
}

# bats test_tags=sanitize
@test "a rank that beats does not hang, one that only sleeps does" {
	job --hang-timeout 400ms --heartbeat 100ms --stacks-on none -n 1 "$PROG/member" pulse 24
	assert_eq "$status" 0
	job --hang-timeout 400ms --heartbeat 100ms --stacks-on none -n 1 "$PROG/member" pulse 4 rest
	assert_eq "$status" 121
	# It beats by messages where it has no segment.
	try "$PROG/deny" memfd_create=EPERM -- "$XRUN" --hang-timeout 1500ms --heartbeat 100ms \
		--stacks-on none -n 1 "$PROG/member" pulse 44
	assert_eq "$status" 0
}

@test "what a rank counts of reports without room is told" {
	need jq
	need_schemas
	# The layout's own places: tick, when, and what found no room.
	up --hang-timeout 60s -n 1 bash -c '
		printf "\\1" | dd of=/dev/fd/98 bs=1 seek=4240 conv=notrunc status=none
		printf "\\1" | dd of=/dev/fd/98 bs=1 seek=4264 conv=notrunc status=none
		printf "\\5\\1" | dd of=/dev/fd/98 bs=1 seek=4272 conv=notrunc status=none
		exec sleep 60'
	wait_for 5 rank_has 0 '.progress.unheard == 261'
	"$XRUN" ps --json "$id" >ps.json
	fits ps ps.json
	down
}

@test "a rank without the agent holds its slot; a static program has no use for one" {
	job --buffer full -n 1 "$PROG/member" attach
	assert_eq "$status" 0
	assert_eq "$output" attached
	need "${CC:-cc}"
	echo 'int main(void) { return 7; }' >static.c
	"${CC:-cc}" -static -o static static.c 2>/dev/null || skip "no static libc"
	job --hang-timeout 60s -n 1 ./static
	assert_eq "$status" 7
}
