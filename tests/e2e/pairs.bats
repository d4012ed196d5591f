#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# pairs.bats - two options, one of which does nothing beside the other. Which
# there are is in tests/unit/test_options_pair.c.

bats_require_minimum_version 1.5.0
load helper

# said WORDS... - what the job said, and that it went well.
said()
{
	assert_eq "$status" 0
	assert_eq "$stderr" "$(printf 'xrun: %s\n' "$@")"
}

@test "options that do nothing are named, a line each, and the job runs" {
	job --no-logs --log-dir kept --log-rotate 1M --log-full drop echo hi
	assert_eq "$output" hi
	said '--log-dir does nothing with --no-logs: no files are kept' \
		'--log-rotate does nothing with --no-logs: no files are kept' \
		'--log-full does nothing with --no-logs: no files are kept'
	[ ! -e kept ]
	job --pty --merge-stderr true
	said '--merge-stderr does nothing with --pty: both streams of a rank are its terminal'
	job --dry-run --report r --events e true
	said '--report does nothing with --dry-run: nothing is started' \
		'--events does nothing with --dry-run: nothing is started'
	[ ! -e r ] && [ ! -e e ]
}

@test "a profile that the command line takes back is no noise" {
	export XRUN_LOG_DIR=$PWD/kept XRUN_MERGE_STDERR=1 XRUN_REPORT=$PWD/report
	for args in --no-logs --pty --dry-run; do
		job $args true
		assert_eq "$status" 0
		assert_eq "$stderr" ''
		if [ "$args" = --dry-run ]; then
			assert_has "$output" true
		else
			ranks_exited_0 1
		fi
	done
	[ ! -e kept ]
	XRUN_JSON=1 job true
	assert_eq "$stderr" ''
	ranks_exited_0 1
}

@test "-d: a variable's --stdin is not heard, and no obstacle" {
	local id

	id=$(XRUN_STDIN=0 XRUN_SHOW=all "$XRUN" -d --log-dir logs \
		sh -c 'read -r x || echo end' 2>err <<<typed)
	assert_eq "$(cat err)" ''
	wait_for 10 test -s logs/0/rank-0000/stdout
	assert_eq "$(cat logs/0/rank-0000/stdout)" end
	wait_for 10 json_holds '.exit == 0' logs/job.json
}

# bats test_tags=sanitize
@test "a file of settings is named with line and column" {
	printf '{\n  "logs": false,\n  "log-dir": "x",\n}\n' >c.json
	job --config c.json true
	said 'c.json:3:14: log-dir does nothing with "logs" (c.json:2:11): no files are kept'
	job --config c.json --logs true
	assert_eq "$stderr" ''
	[ ! -e x ]
}

@test "-q and -v: the stronger source counts, of equal ones -q with a warning" {
	job -q -v true
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: --verbose does nothing with --quiet: xrun prints errors and warnings only'
	XRUN_QUIET=1 XRUN_VERBOSE=1 job true
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: XRUN_VERBOSE does nothing with XRUN_QUIET: xrun prints errors and warnings only'
	XRUN_QUIET=1 job -v true
	assert_eq "$status" 0
	assert_has "$stderr" '^  rank  exit'
	XRUN_VERBOSE=1 job -q true
	assert_eq "$stderr" ''
}
