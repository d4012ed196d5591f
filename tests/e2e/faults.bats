#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# faults.bats - rarer faults of the host: numbers that come again, clocks that
# jump, programs that are replaced, terminals that can little.

load helper

# --- numbers -----------------------------------------------------------------

# Rank 0 has ended, and a stranger bears its number, as process, group and
# session, when the rest of the job is stopped.
@test "rel-40 a stranger who got the number of a rank that ended is left alone" {
	need_pids -fp --mount-proc
	[ -w /proc/sys/kernel/ns_last_pid ] || skip 'no ns_last_pid here'
	cat >script <<-'END'
		. "$1/helper.bash"
		spawn job "$XRUN" -n 3 --grace 200ms sh -c '
			if [ "$RANK" = 0 ]; then echo $$ >number; exit 0; fi
			exec "$0"' "$PROG/deaf"
		job=$pid
		await_line job.out '^\[1\] ready$' 10
		await_line job.out '^\[2\] ready$' 10
		number=$(cat number)
		wait_for 10 test ! -e "/proc/$number"
		for try in $(seq 50); do
			echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
			setsid sleep 30 &
			stranger=$!
			[ $stranger != "$number" ] || break
			kill $stranger
		done
		[ $stranger = "$number" ] || { echo "no luck" >&3; exit 9; }
		kill -TERM $job
		code=0
		wait $job || code=$?
		kill -0 $stranger && echo "job $code, stranger lives" >result
		kill $stranger
	END
	try unshare -fp --mount-proc bash script "$here" 3>&1
	[ "$status" != 9 ] || skip 'the number was not to be had'
	assert_eq "$(cat result)" 'job 143, stranger lives'
}

@test "rel-41 ranks that end before anybody looked: 20 times 64, no hang" {
	local round

	# shellcheck disable=SC2153 # of the helper
	for ((round = 0; round < 20; round++)); do
		try timeout 10 "$XRUN" -n 64 "$PROG/die" --exit $((round % 2))
		assert_eq "$status" $((round % 2))
	done
	assert_eq "$(left_behind '.*')" ''
}

# --- clocks ------------------------------------------------------------------

# A wall clock that is a day early, then a day late, at each second look.
@test "rel-52 the wall clock jumps by days: no timeout fires, nothing is late" {
	local begun

	need cc jq
	unsanitized 'another library comes first'
	cat >jump.c <<-'END'
		#define _GNU_SOURCE
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <time.h>
		#include <unistd.h>

		int
		clock_gettime(clockid_t clock, struct timespec *out)
		{
			static int looks;
			int failed = (int)syscall(SYS_clock_gettime, clock, out);

			if (clock == CLOCK_REALTIME)
				out->tv_sec += looks++ % 2 ? 86400 : -86400;
			return failed;
		}
	END
	cc -shared -fPIC -o jump.so jump.c
	begun=$(now_ms)
	LD_PRELOAD=$PWD/jump.so try "$TWIN" -n 2 --timeout 20s --report report \
		sh -c 'for i in 1 2 3 4 5; do echo $i; sleep 0.1; done'
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	assert_eq "$(grep -c '5$' <<<"$output")" 2
	json_holds '.rank | length == 2 and all(.seconds >= 0.5 and .seconds < 10)' report
	# The stamps alone are wild.
	json_holds '.end[0:10] | test("^[0-9-]{10}$") and . != (now | todate)[0:10]' report
	LD_PRELOAD=$PWD/jump.so try "$TWIN" -n 2 --timeout 500ms --grace 300ms \
		"$PROG/deaf"
	assert_eq "$status" 124
	[ $(($(now_ms) - begun)) -lt 10000 ]
}

# --- programs ----------------------------------------------------------------

@test "rel-59 the program xrun is replaced while it runs" {
	local xrun=$BATS_TEST_TMPDIR/xrun status=0 go

	cp "$XRUN" "$xrun"
	mkfifo go
	exec {go}<>go
	spawn job "$xrun" -n 2 sh -c 'echo ready; read -r _ <go; echo on; exit 5'
	await_line job.out '^\[0\] ready$' 5
	await_line job.out '^\[1\] ready$' 5
	rm "$xrun"
	printf 'no program at all\n' >"$xrun"
	printf '\n\n' >&"$go"
	await_exit "$pid" 10
	wait "$pid" || status=$?
	assert_eq "$status" 5
	assert_has "$(cat job.out)" '\] on$'
	assert_has "$(cat job.err)" '^xrun: rank [01] failed first: exit status 5 '
}

# --- poor terminals ----------------------------------------------------------

@test "rel-63 locale C, TERM dumb, no size, no terminal: plain text" {
	local terminal

	for terminal in dumb ''; do
		LC_ALL=C COLUMNS=0 LINES=0 try in_pty -d 10 -T "$terminal" -c 0x0 \
			-- "$XRUN" -n 2 sh -c 'echo out; echo error >&2; exit 3'
		assert_eq "$status" 3
		assert_eq "$(grep -c $'\x1b' <<<"$output")" 0
		assert_eq "$(LC_ALL=C grep -c $'[\x80-\xff]' <<<"$output")" 0
		assert_has "$(plain <<<"$output")" '^\[[01]\] out$'
		assert_has "$(plain <<<"$output")" '^\[[01]\]!error$'
	done
	LC_ALL=C try env -u TERM "$XRUN" -n 2 echo out
	assert_eq "$(sort <<<"$output")" $'[0] out\n[1] out'
}

# --- threads -----------------------------------------------------------------

# thread_late SECONDS - preload late.so: no thread for so long after the first
# was asked for.
thread_late()
{
	need cc
	unsanitized 'another library comes first'
	cat >late.c <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <pthread.h>
		#include <stdlib.h>
		#include <time.h>

		int
		pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			void *(*fn)(void *), void *arg)
		{
			static long first;
			struct timespec now;
			int (*make)(pthread_t *, const pthread_attr_t *,
				void *(*)(void *), void *);

			clock_gettime(CLOCK_MONOTONIC, &now);
			if (first == 0)
				first = now.tv_sec * 1000 + now.tv_nsec / 1000000;
			if (now.tv_sec * 1000 + now.tv_nsec / 1000000 - first <
				atol(getenv("LATE_MS")))
				return EAGAIN;
			make = (int (*)(pthread_t *, const pthread_attr_t *,
				void *(*)(void *), void *))
				dlsym(RTLD_NEXT, "pthread_create");
			return make(thread, attr, fn, arg);
		}
	END
	cc -shared -fPIC -o late.so late.c -ldl
	export LATE_MS=$1
}

@test "output waits for a thread to read it; nobody is said to hold it open" {
	thread_late 3500
	try env LD_PRELOAD="$PWD/late.so" "$TWIN" -n 2 sh -c 'echo "rank $RANK"'
	assert_eq "$(sort <<<"$output")" $'[0] rank 0\n[1] rank 1'
	assert_eq "$status: $stderr" '0: '
}

@test "--stdin all waits for its thread, too" {
	thread_late 1000
	try env LD_PRELOAD="$PWD/late.so" sh -c 'echo word |
		"$1" -n 2 --stdin all cat' sh "$TWIN"
	assert_eq "$(sort <<<"$output")" $'[0] word\n[1] word'
	assert_eq "$status: $stderr" '0: '
}

# no_threads ERROR ARG... - xrun on a machine that has none for it; EAGAIN is
# tried again for a while.
no_threads()
{
	XRUN_FAULT=thread.start:fail=$1 exec "$XRUN" --debug-faults "${@:2}"
}

# bats test_tags=sanitize
@test "without threads what ranks wrote is saved at the end, and said" {
	local files=$XDG_STATE_HOME/xrun/latest/0

	export -f no_threads
	try bash -c 'no_threads EPERM -n 1 sh -c "echo up; exec sleep 60"'
	assert_eq "$status: $output" '125: '
	assert_has "$stderr" 'no thread for the output'
	assert_has "$stderr" \
		'what ranks wrote last: it is not shown; it is saved in .*/0$'
	assert_eq "$(cat "$files"/rank-*/stdout)" up
	try bash -c 'no_threads EAGAIN --no-logs -n 2 sh -c "echo up; exec sleep 60"'
	assert_eq "$status: $output" '125: '
	assert_has "$stderr" 'what ranks wrote last: it is not shown; it is lost$'
}

# no_ranks PID - xrun PID has none any more.
no_ranks()
{
	[ -z "$(pgrep -P "$(pgrep -P "$1" -x xrun-super)")" ]
}

# ends_by_signal PID - tells it to end; true when it has ended.
ends_by_signal()
{
	! kill -TERM "$1" 2>/dev/null
}

# The loop has things to say there, and waits for that as long as --grace. Each signal that it
# receives ends one of its waits.
@test "without threads a reader that does not read keeps no signal waiting" {
	mkfifo fifo
	exec 7<>fifo
	dd if=/dev/zero bs=64K count=1 oflag=nonblock of=fifo status=none
	no_threads EPERM --grace 50s -n 1 sh -c ': >begun; echo up; exec sleep 60' \
		2>&7 3>&- &
	pid=$!
	wait_for 10 test -e begun
	wait_for 10 no_ranks "$pid"
	wait_for 20 ends_by_signal "$pid"
	status=0
	wait "$pid" || status=$?
	assert_eq "$status" 125
	exec 7>&-
}
