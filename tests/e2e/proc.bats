#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# proc.bats - processes that libxrun starts, in each way that it can, by the
# acceptance checks.

load helper

setup()
{
	private_place
	PROC=$BUILD/tests/prog/proc
	export TEST_MARK=$BATS_TEST_TMPDIR
}

# every CASE - runs it in each way; what it says is standard input.
every()
{
	local want method

	want=$(cat)
	for method in zygote fork spawn; do
		try timeout 60 "$PROC" "$1" "$method"
		# shellcheck disable=SC2154 # of try
		assert_eq "$method: $status: $stderr" "$method: 0: "
		assert_eq "$method: $output" "$method: $want"
	done
}

# marked - how many living processes there are of this test's programs.
marked()
{
	grep -lzsx -e "TEST_MARK=$BATS_TEST_TMPDIR" /proc/[0-9]*/environ |
		xargs -r -n 1 dirname | sed 's,$,/comm,' | xargs -r cat 2>/dev/null |
		grep -c '^proc$' || true
}

marked_is()
{
	[ "$(marked)" -eq "$1" ]
}

@test "a function runs, with its argument, and ends well" {
	every say <<-END
		7: hello
		code 0
	END
}

@test "AC-H1 D-H1 a function that fails: exit code 17, and a report with a backtrace" {
	every fail <<-END
		code 17, XR_E_REMOTE
		): sample 1797 of 1797
		report of break_down: XR_E_RANGE: sample 1797 of 1797
		no report 1
		frame 0: break_down, frames: 2 to 16
		again XR_E_REMOTE sample 1797 of 1797
	END
}

@test "AC-H2 function and cleaner both fail: two reports" {
	every cleaner <<-END
		cleaned
		code 17
		report of break_down: XR_E_RANGE: sample 1797 of 1797
		report of clean_badly: XR_E_STATE: the folder is not empty
		cleaned
		code 17
		report of clean_badly: XR_E_STATE: the folder is not empty
		no report 1
		cleaned
		code 3
		report of clean_badly: XR_E_STATE: the folder is not empty
		no report 1
	END
}

@test "AC-H3 D-H2 a report of 10 MiB arrives" {
	every long <<-END
		10485760 bytes, ValueError, XR_E_CONFLICT
	END
}

@test "AC-H4 D-H3 exit(3) stays 3, and is no report" {
	every exit <<-END
		code 3, XR_E_WORKER_LOST, ended with exit code 3
		no report 0
	END
}

@test "AC-H5 who is killed has the signal told" {
	every signal <<-END
		code -1, signal 9, XR_E_WORKER_LOST, was ended by SIGKILL
		signal 15
		XR_E_STATE
	END
}

@test "AC-H9 D-H5 finalisers: once, by priority, at exit, and in no forked child" {
	every final <<-END
		final early
		10
		final of the process
		1: final of the program
		final high
		final early
		final low
	END
}

@test "AC-H10 a report names process, pid and start time" {
	every report <<-END
		named
	END
}

@test "a descriptor tells the end, and goes on doing so" {
	every poll <<-END
		0
		1 XR_OK 1
	END
}

@test "environment and folder are those of the moment; only fork sees memory; no program has memory of xrun" {
	local method

	for method in zygote spawn fork; do
		try timeout 60 "$PROC" around "$method"
		case $method in
		fork) assert_eq "$output" '2 green / 0' ;;
		*) assert_eq "$output" '1 green / 0' ;;
		esac
	done
}

@test "a program that ends waits for its processes, and ends daemons" {
	local method

	for method in zygote fork spawn; do
		try timeout 20 "$PROC" wait "$method"
		assert_eq "$status: $output" '0: 0: '
		marked_is 0
	done
}

@test "1,000 processes leave no descriptor, zombie or mapping" {
	local method

	for method in zygote fork; do
		try timeout 60 "$PROC" cycles "$method"
		assert_eq "$status: $stderr" '0: '
	done
}

@test "a program is killed: a second later nobody is left, nor what they started" {
	local method processes

	for method in zygote spawn fork; do
		spawn "$method" "$PROC" orphans "$method"
		# Of each three, and the zygote; a fork's children are nobody's.
		processes=11
		[ "$method" != fork ] || processes=4
		wait_for 10 marked_is "$processes"
		kill -KILL "$pid"
		wait_for 10 marked_is 0
	done
}

@test "the zygote is killed: so are its children, and the next start has another" {
	try timeout 20 "$PROC" zygote zygote
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" 'signal 9, then 0'
}

# bats test_tags=sanitize
@test "a process is killed with all that descend from it, and no other" {
	local method processes

	for method in zygote spawn fork; do
		rm -f go
		mkfifo go
		timeout 30 "$PROC" tree "$method" <go >"$method.out" 3>&- &
		exec {go}>go
		processes=8
		[ "$method" != fork ] || processes=7
		wait_for 10 marked_is "$processes"
		echo on >&"$go"
		await_line "$method.out" '^signal 9$' 10
		wait_for 10 marked_is $((processes - 3))
		echo on >&"$go"
		exec {go}>&-
		wait $!
		wait_for 10 marked_is 0
	done
}

# bats test_tags=sanitize
@test "what cannot be started is refused, and says why" {
	try timeout 20 "$PROC" refused zygote
	assert_eq "$output" "$(printf '%s\n' XR_E_INVAL \
		"method 'thread' is not one of zygote, fork, spawn" \
		XR_E_NO_FUNCTION XR_E_NOTFOUND)"
	try timeout 20 "$PROC" late zygote
	assert_eq "$output" "$(printf '%s\n' XR_E_STATE \
		'xr_init() comes first, or a module, or method fork')"
	try timeout 20 "$PROC" threads fork
	assert_eq "$output" "$(printf '%s\n' XR_E_STATE \
		'method fork: this process has threads')"
}

@test "a program that does not get to its xr_init(), or has threads there, is told of" {
	try timeout 20 "$PROC" absent zygote
	assert_has "$output" 'process [0-9]* ended before it got to its xr_init'
	try timeout 20 "$PROC" early zygote
	assert_has "$output" 'the program has threads before its xr_init'
	marked_is 0
}

@test "threads start processes at once, and may end before them" {
	try timeout 60 "$PROC" crowd zygote
	assert_eq "$status: $stderr: $output" '0: : all told'
	try timeout 20 "$PROC" thread-ends zygote
	assert_eq "$status: $stderr: $output" '0: : code 5, XR_E_TIMEOUT'
}

# bats test_tags=sanitize
@test "what a program does with its own children does not matter" {
	try timeout 20 "$PROC" deaf zygote
	assert_eq "$status: $stderr: $output" '0: : code 5'
	try timeout 20 "$PROC" reaped zygote
	assert_eq "$status: $stderr: $output" '0: : signal 15'
}

@test "a module takes the place of a program" {
	local method

	for method in zygote spawn; do
		try timeout 20 "$PROC" module "$method" "$BUILD/tests/prog/proc_module.so"
		assert_eq "$status: $stderr" '0: '
		assert_eq "$output" 'module 7: hello'
	done
}

# bats test_tags=sanitize
@test "xrun-worker says which module cannot be loaded, and serves nobody of itself" {
	local worker=$BUILD/worker/xrun-worker

	try "$worker"
	assert_eq "$status: $stderr" '125: xrun-worker: it is executed by libxrun, with a module'
	try "$worker" ./none.so
	assert_has "$status: $stderr" '^125: xrun-worker: \./none\.so: .*No such file'
	try "$worker" "$BUILD/tests/prog/proc_module.so"
	assert_eq "$status: $stderr" '125: xrun-worker: nobody who would be served'
}
