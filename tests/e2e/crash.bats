#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# crash.bats - fatal signals that are told with their place: xr_job_report_crashes(),
# and --stacks-on crash.

load helper

# dies HOW STATUS WORDS - a program that asked for it dies of HOW with STATUS, and
# WORDS are said of it.
dies()
{
	job -n 1 "$PROG/member" report crash "$1"
	assert_eq "$status" "$2"
	assert_has "$stderr" "^  error.json: $3\$"
}

@test "each fatal signal is told with its cause and the functions; status as ever" {
	dies segv 139 'SIGSEGV: nothing is at address 0x10'
	assert_has "$stderr" '^    #0 crash\+0x[0-9a-f]+ \(member 0x[0-9a-f]+\)$'
	assert_has "$stderr" '^    #1 main\+0x[0-9a-f]+ \(member 0x[0-9a-f]+\)$'
	dies ill 132 'SIGILL: no instruction of this processor'
	dies kill 135 'SIGBUS: sent by itself'
	dies abort 134 'SIGABRT: abort was called'
	assert_has "$stderr" '^    #[0-9] crash'
	dies stack 139 'SIGSEGV: its stack is full'
	assert_has "$stderr" '^    #1 deeper\+'
}

@test "so is a division by zero" {
	unsanitized 'it finds that itself'
	dies fpe 136 'SIGFPE: an integer was divided by zero'
}

# bats test_tags=sanitize
@test "what calls nothing is named by its caller" {
	dies call 139 'SIGSEGV: nothing is at address 0x0'
	assert_has "$stderr" '^    #0 \? \(\? 0x0\)$'
	assert_has "$stderr" '^    #1 crash\+'
}

# bats test_tags=sanitize
@test "a stack that cannot be walked: the first signal is what ends it" {
	job -n 1 "$PROG/member" report crash mess
	assert_eq "$status" 134
	assert_has "$stderr" 'failed: SIGABRT'
	assert_has "$stderr" '^  error.json: SIGABRT: abort was called$'
	assert_has "$stderr" '^    #0 .*libc'
}

@test "another thread, and sixteen at once: one is told" {
	job -n 1 "$PROG/member" report thread segv
	assert_eq "$status" 139
	assert_has "$stderr" '^    #1 crash_there\+'
	job -n 1 "$PROG/member" report threads segv
	assert_eq "$status" 139
	assert_eq "$(grep -c '^  error.json: ' <<<"$stderr")" 1
	assert_has "$stderr" '^    #0 crash\+'
}

@test "a handler that the program had is called as before" {
	job -n 1 "$PROG/member" handle report crash segv
	assert_eq "$status" 9
	assert_has "$output" '^own handler: 11$'
	assert_has "$stderr" '^  \| SIGSEGV: nothing is at address 0x10$'
	[[ $stderr != *error.json* ]]
}

# bats test_tags=sanitize
@test "after a signal that a handler took, the one that ends it is told, too" {
	job -n 1 "$PROG/member" outlive report crash segv crash abort
	assert_eq "$status" 134
	assert_has "$stderr" '^  \| SIGSEGV: nothing is at address 0x10$'
	assert_has "$stderr" '^  error.json: SIGABRT: abort was called$'
	job --job well -n 1 "$PROG/member" outlive report crash segv say 'goes on'
	assert_eq "$status: $output" '0: goes on'
	[ ! -e "$XDG_STATE_HOME/xrun/well/0/rank-0000.error.json" ]
}

@test "the file has the form of torch's, is private, and is not written over" {
	need jq
	job --job one -n 1 "$PROG/member" report crash segv
	file=$XDG_STATE_HOME/xrun/one/0/rank-0000.error.json
	json_holds '.message.message == "SIGSEGV: nothing is at address 0x10" and
		(.message.extraInfo | .signal == "SIGSEGV" and .pid == .thread and
			(.timestamp | tonumber > 1000000000) and
			(.backtrace | length >= 2 and (.[0] | startswith("crash+"))))' "$file"
	assert_eq "$(stat -c %a "$file")" 600
	# shellcheck disable=SC2016
	job -n 1 sh -c 'echo "{\"message\":{\"message\":\"first\"}}" >"$TORCHELASTIC_ERROR_FILE"
		exec "$0" report crash segv' "$PROG/member"
	assert_eq "$status" 139
	assert_has "$stderr" '^  error.json: first$'
	assert_has "$stderr" '^  \|   #0  crash\+'
}

# bats test_tags=sanitize
@test "a crash is reported in the error file with --no-logs, and on stderr without that file" {
	job --no-logs -n 2 sh -c 'exec "$0" report crash segv' "$PROG/member"
	assert_eq "$status" 139
	assert_has "$stderr" '^  error.json: SIGSEGV: nothing is at address 0x10$'
	job --no-logs -n 2 env -u TORCHELASTIC_ERROR_FILE "$PROG/member" report crash segv
	assert_eq "$status" 139
	assert_has "$stderr" '^\[[01]\]!SIGSEGV: nothing is at address 0x10$'
	assert_has "$stderr" '^\[[01]\]!  #0  crash\+'
	status=0
	"$PROG/member" report crash segv 2>err || status=$?
	assert_eq "$status" 139
	assert_has "$(cat err)" 'SIGSEGV: nothing is at address 0x10$'
}

@test "a child of a rank that crashes is named as what it is" {
	job -n 1 "$PROG/member" report fork crash segv
	assert_eq "$status" 1
	assert_has "$stderr" '^  error.json: process [0-9]+: SIGSEGV: nothing is at address 0x10$'
}

@test "a core file is written as before, of where it crashed" {
	unsanitized 'no core file is written then'
	[ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip "cores go elsewhere"
	ulimit -c unlimited || skip "no core files here"
	job -n 1 "$PROG/member" report crash segv
	assert_eq "$status" 139
	assert_has "$stderr" 'core: [^ ]*core'
}

# bats test_tags=sanitize
@test "--stacks-on crash: an unmodified program tells, whatever its depth and buffers" {
	job --stacks-on crash -n 2 "$PROG/member" crash segv
	assert_eq "$status" 139
	assert_has "$stderr" 'rank [01] failed first: SIGSEGV'
	assert_has "$stderr" '^  error.json: SIGSEGV: '
	assert_has "$stderr" '^    #[0-9] main\+0x[0-9a-f]+ \(member '
	job --stacks-on hang,crash --buffer full -n 1 sh -c '"$0" crash abort; exit 3' "$PROG/member"
	assert_eq "$status" 3
	assert_has "$stderr" '^  error.json: process [0-9]+: SIGABRT: abort was called$'
}

# bats test_tags=sanitize
@test "--stacks-on crash: only where stdout is xrun's, and only if it was asked for" {
	# shellcheck disable=SC2016
	job --stacks-on crash -n 1 sh -c '"$0" crash segv | cat; exit 3' "$PROG/member"
	assert_eq "$status" 3
	[[ $stderr != *error.json* ]]
	job -n 1 "$PROG/member" crash segv
	assert_eq "$status" 139
	[[ $stderr != *error.json* ]]
	job --stacks-on crash -n 1 sh -c 'kill -SEGV $$'
	assert_eq "$status" 139
	assert_has "$stderr" '^  error.json: SIGSEGV: sent by itself$'
	job --stacks-on crash -n 1 sh -c 'exit 5'
	assert_eq "$status" 5
	[[ $stderr != *error.json* ]]
}

@test "--stacks-on crash: a program that cannot be asked is named, and runs" {
	need "${CC:-cc}"
	echo 'int main(void) { return 7; }' >static.c
	"${CC:-cc}" -static -o static static.c 2>/dev/null || skip "no static libc"
	job --stacks-on crash -n 1 ./static
	assert_eq "$status" 7
	assert_has "$stderr" '^xrun: --stacks-on crash: ./static cannot tell of a crash: it is statically linked$'
}

# bats test_tags=sanitize
@test "--stacks-on crash: Python's own traceback comes beside" {
	need python3
	export PYTHONDONTWRITEBYTECODE=1
	job --stacks-on crash -n 1 python3 -c 'import ctypes, xrun; ctypes.string_at(0)'
	assert_eq "$status" 139
	assert_has "$stderr" 'Fatal Python error: Segmentation fault'
	assert_has "$stderr" 'in string_at$'
	assert_has "$stderr" '^  error.json: SIGSEGV: sent by itself$'
	assert_has "$stderr" '^    #[0-9] .*\(_ctypes\.'
}
