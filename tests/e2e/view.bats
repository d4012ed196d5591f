#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# view.bats - progress, and lines that several ranks have in common: what stands
# on a terminal at the end, as tests/e2e/vt shows it, and what goes to pipes.

bats_require_minimum_version 1.5.0
load helper

VT=$BUILD/tests/e2e/vt

# screen [COLSxROWS] ARG... - xrun on a terminal of its own: what was written to
# it is in the file raw, what it shows in $output, the status in $status.
screen()
{
	local size=80x24

	case $1 in
	[0-9]*x[0-9]*)
		size=$1
		shift
		;;
	esac
	status=0
	in_pty -d 30 -c "$size" -- "$XRUN" "$@" >raw </dev/null || status=$?
	output=$("$VT" -l -c "$size" <raw)
}

# bars STEPS - a rank that counts on stderr, each time over the last.
bars()
{
	cat >bars <<-'END'
		i=0
		while [ $i -lt 20 ]; do
			i=$((i + 1))
			printf '\r%d of 20' $i >&2
			[ -z "$1" ] || "$1" --lines 15 --size 100
		done
		echo >&2
	END
}

# at_once - a script for ranks of sh: the commands in $1 print for each rank. Rank 0 runs them
# all, so that their output arrives at one time, however slow the machine is.
at_once()
{
	rm -f pid.* over
	cat >at_once <<-'END'
		commands=$1
		shift
		echo $$ >"pid.$RANK.new"
		mv "pid.$RANK.new" "pid.$RANK"
		if [ "$RANK" != 0 ]; then
			until [ -e over ]; do sleep 0.01; done
			exit
		fi
		until [ "$(find . -name 'pid.*[0-9]' | wc -l)" -eq "$WORLD_SIZE" ]; do
			sleep 0.01
		done
		pids=$(cat pid.*)
		RANK=0
		for pid in $pids; do
			eval "$commands" >"/proc/$pid/fd/1" 2>"/proc/$pid/fd/2"
			RANK=$((RANK + 1))
		done
		: >over
	END
}

# moves - how many sequences move the cursor of who reads raw.
moves()
{
	grep -cE $'\x1b\\[([0-9]+A|J|K|\\?7)' raw || true
}

# --- progress ----------------------------------------------------------------

@test "progress of several ranks: one row each, and the last state stays" {
	bars
	LC_ALL=C screen -q --collapse off -n 4 sh bars
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output" | sed '/^$/d')" \
		"$(printf '[%d]!20 of 20\n' 0 1 2 3)"
	at_once
	screen -q -n 4 sh at_once '. ./bars'
	assert_has "$output" '^0-3┃ 20 of 20$'
}

@test "progress and whole lines, wider than the screen: every line is whole" {
	local size collapse

	bars
	for size in 80x24 40x8; do
		for collapse in auto off; do
			LC_ALL=C screen $size -q --collapse $collapse -n 6 \
				sh bars "$PROG/spew"
			assert_eq "$status" 0
			grep -v ' of 20' <<<"$output" | sed '/^$/d' |
				cut -d' ' -f1 | sort | uniq -c >counts
			assert_eq "$(awk '{ print $1 }' counts | sort -u)" 300
			assert_eq "$(grep -c ' of 20' <<<"$output")" "$(grep -o \
				'[0-9,-]*\]!20 of 20' <<<"$output" | wc -l)"
			[ "$(grep -cvE '^(\[[0-5]\] [0-5]:[^ ]* [a-z]*|\[[-0-5,]*\]!20 of 20)?$' \
				<<<"$output")" -eq 0 ]
		done
	done
}

@test "progress is a line in a pipe, and in the file what the rank wrote" {
	bars
	"$XRUN" --no-prefix -n 2 --show 1 --log-dir logs sh bars 2>&1 | cat >out
	assert_eq "$(tail -n 1 out)" '20 of 20'
	[ "$(wc -l <out)" -lt 20 ]
	assert_eq "$(tr -d '0-9' <out | sort -u)" ' of '
	assert_eq "$(tr -cd '\r' <logs/0/rank-0001/stderr | wc -c)" 20
}

@test "progress stands still: no context switch in a second" {
	unsanitized 'their own threads wake'
	mkfifo keys
	exec {keys}<>keys
	"$PTY" -d 30 -- "$XRUN" -n 2 sh -c 'printf "\r%s" "half of $RANK"; exec sleep 60' \
		<keys >raw 3>&- &
	pid=$!
	wait_for 10 grep -q 'half of 0' raw
	wait_for 10 grep -q 'half of 1' raw
	wait_for 10 calm
	before=$(switches)
	pass 1
	assert_eq "$(switches)" "$before"
	printf '\003' >&"$keys"
	await_exit "$pid" 10
	assert_eq "$("$VT" <raw | grep -c '│ half of')" 2
}

@test "a dumb terminal, and one that tee writes to, too: no cursor moves" {
	bars
	in_pty -d 20 -T dumb -- "$XRUN" -n 2 sh bars >raw </dev/null
	assert_eq "$(moves)" 0
	assert_eq "$(grep -c '20 of 20' raw)" 2
	[ "$(grep -c ' of 20' raw)" -le 4 ]
	in_pty -d 20 -- sh -c '"$0" -n 2 sh bars | tee log' "$XRUN" >raw </dev/null
	assert_eq "$(moves)" 0
	assert_eq "$(grep -c '20 of 20' raw)" 2
}

# bats test_tags=sanitize
@test "a job in the background leaves the cursor where it is" {
	bars
	in_pty -d 20 -- bash --norc -c 'set -m
		"$0" -n 2 sh bars & wait $!' "$XRUN" >raw </dev/null
	assert_eq "$(moves)" 0
	assert_eq "$(grep -c '20 of 20' raw)" 2
}

@test "another size: progress that stands still is painted anew, each row once" {
	status=0
	mkfifo never
	"$PTY" -d 20 -c 80x24 -w '1│ half' -r 60x20 -w '0│ half' -w '1│ half' \
		-s '\003' -- "$XRUN" -n 2 --collapse off --color never \
		bash -c 'printf "\rhalf "; read -r _ <>never' >raw </dev/null ||
		status=$?
	assert_eq "$status" 130
	output=$("$VT" -c 80x24 <raw)
	assert_eq "$(grep -c '0│ half' <<<"$output")" 1
	assert_eq "$(grep -c '1│ half' <<<"$output")" 1
}

# bats test_tags=sanitize
@test "stopped and continued: what the shell wrote meanwhile stays" {
	status=0
	mkfifo never
	printf '%s\n' 'printf "\rhalf "; read -r _ <>never' >rank
	PS1='B# ' in_pty -d 20 -w 'B# ' \
		-s "'$XRUN' -q -n 2 --collapse off --color never bash rank\n" \
		-w '1│ half' -s '\032' -w Stopped -w 'B# ' -s 'fg\n' \
		-w '0│ half' -w '1│ half' -s '\003' -w 'B# ' -s 'exit 5\n' -- \
		bash --norc --noediting >raw </dev/null || status=$?
	assert_eq "$status" 5
	output=$("$VT" -c 80x24 <raw)
	assert_has "$output" 'Stopped'
	assert_has "$output" '^B# fg$'
}

@test "a prompt is shown after 200 ms, and its line is whole" {
	status=0
	in_pty -d 20 -w 'name? ' -s 'joe\n' -- "$XRUN" -n 2 bash -c '
		[ "$RANK" = 0 ] || exit 0
		printf "name? "; read -r name; echo "is $name"' >raw </dev/null ||
		status=$?
	assert_eq "$status" 0
	assert_has "$("$VT" <raw)" '^0│ name\? is joe$'
}

# --- lines in common ---------------------------------------------------------

@test "equal lines of several ranks are one, with all of them before it" {
	at_once
	screen -q -n 8 sh at_once 'echo all; echo "rank $RANK"'
	assert_eq "$(grep -c 'all$' <<<"$output")" 1
	assert_has "$output" '^0-7│ all$'
	assert_eq "$(grep -c '│ rank' <<<"$output")" 8
	at_once
	screen -q --color never --prefix '<{rank}> ' -n 8 sh at_once 'echo all'
	assert_eq "$(sed '/^$/d' <<<"$output")" '<0-7> all'
}

@test "standard error has its own bar, and its own lines" {
	at_once
	screen -q -n 4 sh at_once 'echo same; echo same >&2'
	assert_has "$output" '^0-3│ same$'
	assert_has "$output" '^0-3┃ same$'
}

@test "the first of a burst is shown at once, while its rank still runs" {
	status=0
	in_pty -d 20 -w 'hello' -s 'go\n' -- "$XRUN" -q --color never -n 2 bash -c '
		[ "$RANK" = 1 ] || { echo hello; read -r _; }' >raw </dev/null ||
		status=$?
	assert_eq "$status" 0
	assert_has "$("$VT" <raw)" '^0│ hello$'
}

@test "--collapse on: in a pipe a line is shown while its ranks still run" {
	mkfifo lines
	spawn job sh -c '"$0" --collapse on -n 2 sh -c "echo all; exec sleep 60" >lines' "$XRUN"
	await_line lines ' all$' 10
	"$XRUN" stop
	wait "$pid" || true
}

@test "--collapse off: each line of each rank" {
	screen -q --collapse off -n 8 echo all
	assert_eq "$(grep -c '│ all$' <<<"$output")" 8
}

@test "--collapse auto leaves pipes alone, on does not" {
	local pipe

	pipe=$("$XRUN" -n 4 echo all | sort)
	assert_eq "$pipe" "$(printf '[%d] all\n' 0 1 2 3)"
	at_once
	pipe=$("$XRUN" --collapse on -n 4 sh at_once 'echo all' | cat)
	assert_eq "$pipe" '[0-3] all'
	"$XRUN" --collapse=on -n 4 "$PROG/spew" --lines 3000 >out
	"$PROG/verify" merged --ranks 4 --lines 3000 out
}
