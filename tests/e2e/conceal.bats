#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# conceal.bats - output that would hide or reorder text on a terminal.

load helper

# shellcheck disable=SC2034 # the job's program
text='a\033[8mb\033[38:5:1;5;8mc\033[38;2;8md\342\200\256e\n'

# tame TEXT - fails if SGR 8 or a control of direction is in TEXT.
tame()
{
	[[ $1 != *$'\342\200\256'* && ! $1 =~ $'\033['[0-9\;:]*'8m' ]]
	assert_has "$1" 'ab.*cde'
}

@test "conceal: xrun logs and attach print text that a rank conceals or reorders" {
	# One rank: the direct run would print its bytes as they are.
	mkfifo go
	spawn one "$XRUN" --job one sh -c "printf '$text'; read -r _ <go"
	await_file one.out 10
	screen -- logs one
	assert_eq "$status" 0
	tame "$raw"
	screen -w cde -s '\003' -- attach one
	tame "$raw"
	echo >go &
	wait "$pid" || true
	screen -- logs one
	tame "$raw"
}
