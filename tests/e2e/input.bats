#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# input.bats - --stdin: who reads what stands before xrun's standard input.

load helper

# --- a rank, nobody -----------------------------------------------------------

@test "--stdin RANK: that rank inherits it, the others have /dev/null" {
	printf 'typed\n' | "$XRUN" --stdin 1 -n 3 "$PROG/tty" >out
	assert_has "$(cat out)" '^\[1\] stdin: pipe$'
	assert_has "$(cat out)" '^\[1\] read: typed$'
	assert_eq "$(grep -c 'stdin: null' out)" 2
	seq 3 >file
	"$XRUN" --stdin 2 -n 3 "$PROG/tty" <file >out
	assert_has "$(cat out)" '^\[2\] stdin: file$'
	printf 'one\ntwo\n' | {
		"$XRUN" --stdin 1 -n 2 bash -c 'read -r line; echo "got $line"' \
			>out
		cat
	} >rest
	assert_eq "$(cat rest)" two
}

@test "--stdin none: nobody reads it" {
	printf 'typed\n' | {
		"$XRUN" --stdin none -n 2 "$PROG/tty" >out
		cat
	} >rest
	assert_eq "$(grep -c 'stdin: null' out)" 2
	assert_eq "$(cat rest)" typed
	status=0
	in_pty -d 20 -- "$XRUN" --stdin none "$PROG/tty" >out || status=$?
	assert_eq "$status" 0
	assert_has "$(plain <out)" 'stdin: null'
}

@test "--stdin of what is no rank is refused" {
	local word

	for word in -1 x 0,1 4294967296; do
		job --stdin "$word" -n 2 "$PROG/stamp" ran
		assert_eq "$status" 125
		assert_eq "$stderr" "xrun: --stdin: '$word' is not all, none or a rank"
	done
	job --stdin 2 -n 2 "$PROG/stamp" ran
	assert_eq "$stderr" "xrun: --stdin: '2' is not all, none or a rank, 0 to 1"
	job --stdin all --pty -n 2 "$PROG/stamp" ran
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: --stdin all: with --pty .* try: --stdin RANK, or --no-pty\$"
	[ ! -e ran ]
}

@test "--stdin RANK: what is typed goes to that rank" {
	status=0
	in_pty -d 20 -w reads -s 'hello\n' -w 'got hello' -- "$XRUN" --stdin 1 -n 2 \
		sh -c '[ "$RANK" = 0 ] || { echo reads; read -r line; echo "got $line"; }' \
		>out || status=$?
	assert_eq "$status" 0
}

# --- all ----------------------------------------------------------------------

# bats test_tags=sanitize
@test "--stdin all: every rank has every byte, from a pipe, a file, a FIFO" {
	local sum

	head -c 1000000 /dev/urandom >bytes
	sum=$(md5sum <bytes)
	for _ in 0 1 2; do echo "$sum"; done >want
	"$XRUN" --stdin all --no-prefix -n 3 md5sum <bytes >out
	diff want out
	# Writes of all sizes.
	{ head -c 1; head -c 70000; cat; } <bytes |
		"$XRUN" --stdin all --no-prefix -n 3 md5sum >out
	diff want out
	mkfifo fifo
	cat bytes >fifo &
	"$XRUN" --stdin all --no-prefix -n 3 md5sum <fifo >out
	diff want out
}

@test "--stdin all: the end is passed on, also at once" {
	try timeout 20 "$XRUN" --stdin all -n 2 cat
	assert_eq "$status $output$stderr" '0 '
	timeout 20 "$XRUN" --stdin all -n 2 cat <&- >out
	assert_eq "$(cat out)" ''
	status=0
	timeout 20 "$XRUN" --stdin all -n 2 cat </ >out 2>err || status=$?
	assert_eq "$status" 0
	assert_eq "$(cat err)" 'xrun: standard input cannot be read (Is a directory): the ranks saw its end'
}

@test "--stdin all: a rank that ends or closes its input holds nobody up" {
	seq 100000 >lines
	"$XRUN" --stdin all --on-failure continue -n 4 sh -c 'case $RANK in
		0) exec <&- ;;
		1) head -n 1 ;;
		2) kill -KILL $$ ;;
		*) wc -l ;;
		esac' <lines >out 2>err || true
	assert_has "$(cat out)" '^\[1\] 1$'
	assert_has "$(cat out)" '^\[3\] 100000$'
}

@test "--stdin all: the slowest reader decides" {
	mkfifo go
	{ head -c 3000000 /dev/zero; echo >written; } |
		"$XRUN" --stdin all -n 2 sh -c '
			if [ "$RANK" = 1 ]; then
				head -c 1 >/dev/null
				read -r _ <go
				[ ! -e written ] || echo early
				wc -c
			else
				head -c 1 >/dev/null
				echo begun
				wc -c
			fi' >out 2>err 3>&- &
	launched=$!
	await_line out begun 10
	echo >go
	wait "$launched"
	assert_eq "$(sort out)" '[0] 2999999
[0] begun
[1] 2999999'
}

@test "--stdin all: who writes learns that nobody reads" {
	local -a ends

	yes | "$XRUN" --stdin all -n 2 true
	ends=("${PIPESTATUS[@]}")
	assert_eq "${ends[*]}" '141 0'
	# The job goes on without its input, until its writer has ended.
	mkfifo ended
	{ yes || true; echo >ended; } | "$XRUN" --stdin all --timeout 20s -n 2 sh -c '
		exec <&-
		[ "$RANK" = 1 ] || read -r _ <ended'
}

@test "--stdin all: what is typed goes to all" {
	status=0
	in_pty -d 20 -w 'reads 0' -s 'hello\n\004' -w '1 got hello' -- "$XRUN" \
		--stdin all -n 2 sh -c '
			[ "$RANK" = 0 ] && echo "reads 0"
			read -r line; echo "$RANK got $line"; cat' \
		>out || status=$?
	assert_eq "$status" 0
	assert_has "$(plain <out)" '0 got hello'
}

@test "--stdin all counts its descriptors before the first rank" {
	try prlimit --nofile=400:400 "$XRUN" --stdin all -n 110 "$PROG/stamp" ran
	assert_eq "$status" 125
	assert_has "$stderr" '110 ranks need [0-9]+ descriptors; this shell allows 400'
	[ ! -e ran ]
	try prlimit --nofile=600:600 "$XRUN" --stdin all -n 110 cat
	assert_eq "$status" 0
}
