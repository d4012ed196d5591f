#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# burst.bats - programs that print many lines: by block, and none is lost,
# doubled or late at an end, a crash, a fork or an exec.
load helper

N=30000

setup()
{
	private_place
	[ "$(uname -m)" = x86_64 ] || skip 'by block on x86-64 only'
}

# job ARGUMENT... - xrun with stdout and stderr in out and err; sets $status.
job()
{
	status=0
	"$XRUN" "$@" >out 2>err || status=$?
}

# burst WHAT [OPTION...] - one rank prints N lines and does WHAT; $status, out and
# err.
burst()
{
	local what=$1

	shift
	job "$@" "$PROG/burst" "$N" "$what" </dev/null
}

# lines_are TEXT... - out is the N lines, once each, followed by TEXT.
lines_are()
{
	seq 0 $((N - 1)) >want
	[ $# -eq 0 ] || printf '%s\n' "$@" >>want
	cmp want out
}

# Each way to end a process, with the status that xrun returns for it.
@test "after many lines each end of a process leaves all of them" {
	local -A ends=([segv]=139 [abort]=134 [inside]=139 [overflow]=139
		[term]=143 [raise]=140 [quick]=0 [none]=0 [exit-group]=0
		[kill]=137)
	local what

	for what in "${!ends[@]}"; do
		burst "$what"
		echo "$what: $status"
		assert_eq "$status" "${ends[$what]}"
		lines_are
	done
}

@test "the report of a crash after many lines shows the last line" {
	burst segv -n 2
	assert_eq "$status" 139
	assert_has "$(cat err)" "^  \| $((N - 1))\$"
}

@test "after many lines --stacks-on crash reports and no line is lost" {
	burst segv --stacks-on crash
	assert_eq "$status" 139
	assert_has "$(cat err)" 'do_segv'
	lines_are
}

# Killed while it prints: the lines are the first ones, none torn, none twice.
@test "SIGTERM while a program prints leaves the first lines, each once" {
	for _ in 1 2 3 4 5; do
		burst termed
		assert_eq "$status" 143
		[ "$(wc -l <out)" -gt "$N" ]
		seq 0 $(($(wc -l <out) - 1)) >want
		cmp want out
	done
}

@test "xrun stop ends a printing program with whole lines, each once" {
	local id last

	spawn job "$XRUN" --job burst sh -c 'exec "$1" 10000000' - "$PROG/burst"
	await_line job.out '^30000$' 20
	"$XRUN" stop burst
	await_exit "$pid" 20
	last=$(($(wc -l <job.out) - 1))
	seq 0 "$last" | cmp - job.out
}

@test "output of exec, spawn, system and write comes after the lines before it" {
	burst exec
	lines_are behind
	burst execve
	lines_are behind
	burst vfork
	lines_are child parent
	burst spawn
	lines_are child parent
	burst system
	lines_are child parent
	burst write
	lines_are written parent
	echo sent >sent
	burst sendfile
	lines_are sent parent
	burst dup
	lines_are
	assert_eq "$(cat other)" other
	burst unbuffered
	assert_eq "$(tail -c 10 out)" "$((N - 1))"$'\n'torn
}

# The half line is in both buffers, as without xrun.
@test "a fork after many lines repeats only an unfinished line" {
	local i

	for i in 1 2 3; do
		burst fork
		assert_eq "$status" 0
		{
			seq 0 $((N - 1))
			printf 'half child\nhalf parent\n'
			seq 0 $((N - 1))
		} >want
		cmp want out
	done
}

@test "threads that print many lines lose none, also while one forks" {
	local name

	burst threads
	for name in a b c d; do
		seq -f "$name %.0f" 0 $((N - 1)) >want
		tail -n +$((N + 1)) out | grep "^$name" | cmp want -
	done
	assert_eq "$(wc -l <out)" $((5 * N))
	burst forks
	{
		seq 0 $((N - 1))
		seq -f 'a %.0f' 0 $((N - 1))
	} >want
	cmp want out
}

@test "putchar() by block: all lines, and the last at once" {
	burst chars
	{
		seq 0 $((N - 1))
		seq 0 $((N - 1))
		echo last
	} >want
	cmp want out
}

@test "a line is not kept: the last of many comes while the program waits" {
	local hold

	mkfifo in
	exec {hold}<>in
	spawn job sh -c 'exec "$1" "$2" "$3" wait <in' - "$XRUN" "$PROG/burst" "$N"
	await_line job.out "^$((N - 1))\$" 20
	exec {hold}>&-
	kill "$pid"
	await_exit "$pid" 20
}

@test "a program that prints sees neither signal handlers nor a thread that stays" {
	burst action
	lines_are default
	burst thread-count
	lines_are 'threads 1'
}

# How many write(2) calls, and not how long: other programs may be busy.
# repeated COUNT - the N lines, so many times.
repeated()
{
	local i

	for ((i = 0; i < $1; i++)); do
		seq 0 $((N - 1))
	done
}

@test "after many lines a program changes its group, and all lines come" {
	burst setid --timeout 60s
	assert_eq "$status" 0
	repeated 4 | cmp - out
}

@test "a timer that interrupts printf() often does not stop a program" {
	burst timer --timeout 100s
	assert_eq "$status" 0
	repeated 21 | cmp - out
}

@test "a timer between two instructions of printf() does not stop a program" {
	burst between --timeout 100s
	assert_eq "$status" 0
	[ "$(wc -l <out)" -ge $((3 * N)) ]
	repeated $(($(wc -l <out) / N)) | cmp - out
}

# The kernel kills a confined program that makes another system call.
@test "a confined program prints, before and after many lines" {
	local count

	{
		echo ready
		seq -f 'confined %.0f' 0 999
	} >confined
	for count in 0 "$N"; do
		job "$PROG/burst" "$count" strict
		assert_eq "$status" 0
		seq 0 $((count - 1)) | cat - confined | cmp - out
	done
}

@test "after many lines unshare() meets one thread" {
	burst unshare
	assert_eq "$(tail -n 1 out)" 'one thread'
	repeated 11 | cmp - <(sed '$d' out)
}

@test "a failed exec leaves the environment as it was" {
	printf '\177ELF\001\001\001000000000000000' >foreign
	chmod +x foreign
	burst environ
	lines_are same
}

@test "a program that prints sees no signal stack, and its threads leak none" {
	burst stack
	lines_are 'no stack'
	burst leak
	assert_eq "$(tail -n 1 out)" 'no leak'
	# If the main thread prints nothing before, each thread in turn gets the signal stack.
	job "$PROG/burst" 0 leak
	assert_eq "$(tail -n 1 out)" 'no leak'
}

@test "output without the lock of stdout is complete" {
	burst unlocked
	{
		seq 0 $((N - 1))
		seq -f 'unlocked %.0f' 0 $((20 * N - 1))
	} | cmp - out
	job "$PROG/burst_inline" $((10 * N))
	seq 0 $((10 * N - 1)) | cmp - out
}

@test "many lines are written by block, few by line" {
	job "$PROG/burst" $((10 * N)) calls
	assert_eq "$(wc -l <out)" $((10 * N))
	[ "$(cat err)" -lt $((5 * N)) ]
	job "$PROG/burst" 20 calls
	[ "$(cat err)" -ge 20 ]
	assert_eq "$(wc -l <out)" 20
}

@test "stdbuf inside a rank decides" {
	job stdbuf -oL "$PROG/burst" "$N" calls
	lines_are
	[ "$(cat err)" -ge "$N" ]
	job stdbuf -o0 "$PROG/burst" "$N" calls
	[ "$(cat err)" -ge "$N" ]
	job stdbuf -o16K "$PROG/burst" 2000 calls
	[ "$(cat err)" -lt 10 ]
	assert_eq "$(wc -l <out)" 2000
}

@test "a program of 32 bits starts without an error of the loader" {
	local libc=/lib32/libc.so.6

	# It is a program, too, and prints its version.
	[ -x "$libc" ] || skip 'no libc of 32 bits'
	job sh -c '"$1"; exec "$1"' - "$libc"
	assert_eq "$status" 0
	assert_eq "$(grep -c '^GNU C Library' out)" 2
	assert_eq "$(cat err)" ''
	printf '#!%s\n' "$libc" >script
	chmod +x script
	job "$PROG/burst" 0 foreign
	assert_eq "$(grep -c '^GNU C Library' out)" 7
	assert_eq "$(cat err)" ''
}

@test "a program in a changed root starts without an error of the loader" {
	local f

	[ "$(id -u)" = 0 ] || skip 'needs chroot(2)'
	mkdir root
	for f in /bin/echo $(ldd /bin/echo | grep -o '/[^ ]*'); do
		mkdir -p "root$(dirname "$f")"
		cp "$f" "root$f"
	done
	job chroot root /bin/echo inside
	assert_eq "$(cat err)" ''
	assert_eq "$(cat out)" inside
	assert_eq "$status" 0
}
