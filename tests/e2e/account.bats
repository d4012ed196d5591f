#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# account.bats - who failed first, and what is told of it: on the screen, in
# the exit status, in --report and --events. The culprit is never a victim.
#
# ROUNDS=100 looks for the culprit that often in each kind of failure, not 3
# times; TOUCH=1G gives the slow one more memory.
#
# Takes long, so it begins early.

load helper

ROUNDS=${ROUNDS:-3}

# account - xrun's own words, and what hangs below them.
account()
{
	sed -n '/^xrun: /,$p' <<<"$stderr"
}

# blames RANK HOW CODE - the job before this ended so, and says so everywhere.
blames()
{
	assert_has "$stderr" "^xrun: rank $1 failed first: $2 "
	assert_eq "$status" "$3"
}

# --- the block ---------------------------------------------------------------

@test "a training that crashes: the account, to the letter" {
	job -n 4 "$BUILD/examples/train" --crash 2
	assert_eq "$status" 139
	# Whether a peer hears of it before it is stopped is a matter of luck.
	account | sed -E '5s/.*(All output)/OTHERS. \1/; s/train\.c:[0-9]+/train.c:LINE/' |
		golden account-train
}

@test "a C program's last lines are in the account, though it crashes" {
	need cc
	cat >crash.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>

		int
		main(void)
		{
			int rank = atoi(getenv("RANK"));

			printf("rank %d reads\n", rank);
			if (rank == 1) {
				printf("the last thing it says\n");
				fprintf(stderr, "about to fall\n");
				abort();
			}
			for (;;)
				getchar();
		}
	END
	cc crash.c -o crash
	job -n 2 ./crash
	assert_eq "$status" 134
	assert_has "$stderr" '^xrun: rank 1 failed first: SIGABRT after '
	assert_eq "$(account | sed -n '2,4s/^  | //p')" \
		$'rank 1 reads\nthe last thing it says\nabout to fall'
}

@test "of many last lines the account shows ten, stderr before stdout" {
	job sh -c 'seq -f "out %g" 20; seq -f "err %g" 4 >&2; exit 1'
	assert_eq "$(account | sed -n 's/^  | //p')" \
		"$(seq -f 'out %g' 15 20; seq -f 'err %g' 4)"
	job sh -c 'echo out; seq -f "err %g" 30 >&2; exit 1'
	assert_eq "$(account | sed -n 's/^  | //p')" "$(seq -f 'err %g' 21 30)"
}

@test "a rank that says nothing has an account of its own" {
	job -n 2 "$PROG/die" --rank 1 --exit 3
	account | golden account-silent
}

@test "-q prints no report of a failure" {
	job -q -n 2 "$PROG/die" --rank 1 --exit 3
	assert_eq "$status: $stderr$output" '3: '
	job -q --timeout 0.1s -n 2 sleep 60
	assert_eq "$status: $stderr$output" '124: '
	job -q -n 2 ./missing
	assert_eq "$status" 127
	assert_has "$stderr" '^xrun: ./missing: not found'
	job --quiet -n 2 true
	assert_eq "$stderr$output" ''
	job -n 2 true
	assert_eq "$stderr$output" ''
}

@test "a single rank that needs a terminal: the report suggests --pty" {
	local fails text

	for text in 'sudo: a terminal is required to read the password' \
		'Error opening terminal: unknown.' \
		'open terminal failed: not a terminal'; do
		fails="echo '$text' >&2; exit 1"
		try in_pty "$XRUN" -n 1 sh -c "$fails"
		assert_eq "$status" 1
		assert_has "$output" 'try: xrun --pty'
	done
	try in_pty "$XRUN" -n 2 sh -c "$fails"
	assert_eq "$(grep -c 'try: xrun --pty' <<<"$output")" 0
	try in_pty "$XRUN" --pty -n 1 sh -c "$fails"
	assert_eq "$(grep -c 'try: xrun --pty' <<<"$output")" 0
	try in_pty "$XRUN" -n 1 sh -c 'exit 1'
	assert_eq "$(grep -c 'try: xrun --pty' <<<"$output")" 0
}

@test "-v ends with a table of what each rank used" {
	mkfifo written
	job -v -n 2 sh -c 'echo 1234567
		if [ $RANK = 0 ]; then echo >written; sleep 60
		else read -r _ <written; exit 3; fi'
	assert_eq "$status" 3
	assert_has "$stderr" '^ +rank +exit +wall s +user s +sys s +peak MiB +bytes logged$'
	assert_has "$stderr" '^ +0 +143 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +8$'
	assert_has "$(tail -n 1 <<<"$stderr")" '^ +1 +3 .* 8$'
	job --verbose true
	assert_eq "$status" 0
	assert_has "$stderr" ' bytes logged$'
}

@test "the account says why there is no core file" {
	try prlimit --core=0 "$XRUN" "$PROG/die" --signal SEGV
	assert_has "$stderr" 'SIGSEGV after .* \(pid [0-9]+, core: none, ulimit -c is 0\)$'
	job "$PROG/die" --signal TERM
	assert_has "$stderr" 'SIGTERM after .* \(pid [0-9]+\)$'
}

@test "rel-1 a fault at once, and one later: named, timed, the others stopped, 139" {
	need jq
	for after in 0 300; do
		try prlimit --core=0 "$XRUN" -n 4 --report report "$PROG/die" \
			--rank 2 --signal SEGV --after "$after" --say "after $after"
		blames 2 SIGSEGV 139
		assert_has "$stderr" ' \(pid [0-9]+, core: none, ulimit -c is 0\)$'
		assert_has "$stderr" "^  \| after $after\$"
		assert_has "$stderr" '^  ranks 0, 1, 3 were stopped by xrun \(TERM, '
		json_holds --argjson after "$after" '.rank[2].signal == "SIGSEGV" and
			.rank[2].seconds >= $after / 1000 and
			.rank[2].seconds < $after / 1000 + 5' report
	done
}

@test "rel-1 a core file that was written is named" {
	[ "$(cat /proc/sys/kernel/core_pattern)" = core ] ||
		skip "core files go elsewhere here"
	[ "$(cat /proc/sys/kernel/core_uses_pid)" = 0 ] ||
		skip "core files bear pids here"
	mkdir place
	job -n 2 --chdir place "$PROG/die" --rank 1 --signal SEGV --core
	[ -s place/core ]
	blames 1 SIGSEGV 139
	assert_has "$stderr" ' \(pid [0-9]+, core: ([^ ]*/)?core\)$'
}

@test "rel-3 a rank that ends early and well lets the others run" {
	job -n 3 sh -c '[ "$RANK" != 0 ] || { touch early; exit 0; }
		until [ -e early ]; do sleep 0.01; done
		sleep 0.3; echo on'
	assert_eq "$status" 0
	assert_eq "$(grep -c 'on$' <<<"$output")" 2
	assert_eq "$stderr" ''
}

# --- statuses ----------------------------------------------------------------

@test "--on-failure continue lets the others end by themselves" {
	job -n 3 --on-failure continue sh -c '
		[ "$RANK" = 1 ] && exit 4
		until [ -e "done" ]; do [ "$RANK" = 2 ] && touch "done"; done
		echo well'
	assert_eq "$status" 4
	assert_eq "$(grep -c 'well$' <<<"$output")" 2
	assert_has "$stderr" '^xrun: rank 1 failed first: exit status 4 '
	assert_eq "$(grep -c 'stopped by xrun' <<<"$stderr")" 0
}

@test "--exit-code first, max, rank0" {
	# Rank 2 outlives rank 1, that is, until somebody has reaped it.
	local script='case $RANK in
		1) echo $$ >first ;;
		2)
			until [ -s first ]; do sleep 0.01; done
			while kill -0 "$(cat first)" 2>/dev/null; do sleep 0.01; done
			;;
		esac
		exit $((RANK * 3))'

	job -n 3 --on-failure continue sh -c "$script"
	assert_eq "$status" 3
	rm first
	job -n 3 --on-failure continue --exit-code first sh -c "$script"
	assert_eq "$status" 3
	job -n 3 --on-failure continue --exit-code max sh -c "$script"
	assert_eq "$status" 6
	job -n 3 --on-failure continue --exit-code rank0 sh -c "$script"
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: rank [12] failed first: '
}

@test "--timeout: 124, and who was stopped" {
	need jq
	job -n 2 --timeout 200ms --report report sleep 60
	assert_eq "$status" 124
	assert_has "$stderr" '^xrun: --timeout reached after 0.2 s: ranks 0, 1 were stopped by xrun \(TERM, '
	assert_eq "$(jq -r '.reason, .exit, .culprit' report | paste -sd' ')" \
		'timeout 124 null'
	XRUN_TIMEOUT=10s job -n 2 true
	assert_eq "$status" 0
}

@test "a rank's own 124, 125, 126 and 127 pass through; the report tells" {
	local code

	need jq
	for code in 120 121 124 125 126 127 141; do
		job --report report "$PROG/die" --exit "$code"
		assert_eq "$status" "$code"
		assert_eq "$(jq -r '.reason, .culprit' report | paste -sd' ')" \
			'failure 0'
	done
}

# --- report and events -------------------------------------------------------

@test "--report of a job that went well" {
	need jq
	job -n 3 --report report sh -c 'echo out; echo error >&2'
	assert_eq "$status" 0
	json_holds '.v == 1 and .exit == 0 and .reason == "ok" and .ranks == 3 and
		.failed == 0 and .left_behind == 0 and .bytes == 30 and
		has("culprit") == false and .argv[0] == "sh" and
		(.start | length) > 0 and .start < .end and (.rank | length) == 3' report
	json_holds '[.rank[] | .exit == 0 and .stopped == false and .death > 0 and
		.stdout_bytes == 4 and .stderr_bytes == 6 and .pid > 0 and
		.device == "cpu" and .seconds > 0 and .rss_peak_bytes > 0] | all' \
		report
	assert_eq "$(jq -c '[.rank[].rank]' report)" '[0,1,2]'
}

@test "--report of a failure agrees with the exit status" {
	need jq
	job -n 3 --report report "$PROG/die" --rank 1 --signal SEGV
	assert_eq "$(jq .exit report)" "$status"
	json_holds '.exit == 139 and .reason == "failure" and .culprit == 1 and
		.failed == 1' report
	json_holds '.rank[1] | .exit == 139 and .signal == "SIGSEGV" and
		.stopped == false and .death == 1' report
	json_holds '.rank[0] | .exit == 143 and .signal == "SIGTERM" and .stopped' report
}

@test "--report of a program that cannot be run" {
	need jq
	# It is there when xrun looks, and not a program when the rank starts.
	cp "$PROG/argshow" busy
	exec {writer}>>busy
	job -n 2 --report report ./busy
	exec {writer}>&-
	assert_eq "$status" 126
	assert_eq "$(jq .exit report)" 126
	json_holds '.rank[0] | .step == "exec" and .error == "Text file busy"' report
}

@test "--events: every start, end and stop, in order" {
	need jq
	job -n 3 --events events "$PROG/die" --rank 1 --exit 5
	assert_eq "$status" 5
	assert_eq "$(jq -s 'map(.seq) == [range(length)]' events)" true
	assert_eq "$(jq -s 'map(.mono_ns) | . == sort' events)" true
	assert_eq "$(jq -rs 'map(.event) | .[0], .[-1]' events | paste -sd' ')" \
		'job.start job.end'
	assert_eq "$(jq -s 'map(select(.event == "rank.exit")) | length' events)" 3
	json_holds -s 'map(select(.event == "rank.exit" and .rank == 1))[0] |
		.exit == 5 and .stopped == false' events
	json_holds -s 'map(select(.event == "job.stop"))[0].reason == "failure"' events
	json_holds -s '.[-1] | .exit == 5 and .reason == "failure" and .culprit == 1' events
	job --events events true
	assert_eq "$(grep -c '"job.end"' events)" 2
}

@test "--report and --events hold arguments of any bytes" {
	need jq
	job --report report --events events -n 1 "$PROG/argshow" \
		$'\xff"\\\n' '$(x)' ''
	assert_eq "$status" 0
	json_holds '.argv | length == 4' report
	json_holds -s '.[0].argv | length == 4' events
}

@test "--events: two jobs may append to one file, and no line is lost" {
	local round first second

	need jq
	for round in 1 2 3 4 5; do
		"$XRUN" --no-logs -n 16 --events events true 3>&- &
		first=$!
		"$XRUN" --no-logs -n 16 --events events true 3>&- &
		second=$!
		wait "$first"
		wait "$second"
	done
	assert_eq "$(jq -r .event events | sort | uniq -c | sed 's/^ *//' |
		paste -sd,)" '10 job.end,10 job.start,160 rank.exit,160 rank.start'
}

@test "--report: a job that is refused says why, and nothing old is left" {
	need jq
	# refused CODE ERROR - the report says the same as the job.
	refused()
	{
		assert_eq "$status" "$1"
		assert_eq "$(jq -r '.exit, .reason, .error' report | paste -sd'|')" \
			"$1|refused|$2"
		echo '{"exit": 0, "reason": "ok", "long": "old old old old old"}' >report
	}
	echo old >report
	job --report report -n 3 ./train a
	assert_eq "$(jq -c .argv report)" '["./train","a"]'
	refused 127 './train: not found'
	echo >tool
	job --report report ./tool
	refused 126 './tool: not executable'
	job --report report --chdir /no/such true
	refused 125 '--chdir: /no/such: No such file or directory'
	job --report report --events /no/such/file true
	refused 125 '--events: /no/such/file: No such file or directory'
	job --report report -n x true
	refused 125 "-n: 'x' is not a number; 1 to 1000000"
	try prlimit --nofile=30:30 "$XRUN" --report report true
	assert_has "$stderr" '^xrun: 1 rank needs [0-9]+ descriptors; this shell allows 30'
	refused 125 "$(sed 's/^xrun: //; s/   try: .*//' <<<"$stderr")"
}

@test "--report: a supervisor that was killed leaves no old account" {
	local super

	need jq
	echo '{"exit": 0}' >report
	mkfifo pipe
	"$XRUN" --report report "$PROG/deaf" >pipe 2>err 3>&- &
	launched=$!
	await_line pipe ready 5
	super=$(xruns | sed -n 's/ xrun-super$//p')
	kill -KILL "$super"
	status=0
	wait "$launched" || status=$?
	assert_eq "$status" 125
	json_holds '.exit == 125 and .reason == "refused" and (.error | length) > 0' \
		report
}

# bats test_tags=sanitize
@test "--report and --events that are lost: said once, 125 if the job was well" {
	need jq
	[ -c /dev/full ] || skip 'no /dev/full'
	job --events /dev/full -n 3 --report report true
	assert_eq "$stderr" \
		'xrun: --events: /dev/full: No space left on device; it is not complete'
	assert_eq "$status" 125
	assert_eq "$(jq -r '.exit, .reason, .error' report | paste -sd'|')" \
		'125|xrun|--events: /dev/full: No space left on device'
	job --report /dev/full true
	assert_eq "$stderr" \
		'xrun: --report: /dev/full: No space left on device; it is not complete'
	assert_eq "$status" 125
	job --report /dev/full --events /dev/full -n 2 "$PROG/die" --rank 1 --exit 7
	assert_eq "$status" 7
	assert_eq "$(grep -c 'not complete' <<<"$stderr")" 2
}

@test "--report that nobody takes: given up after 5 s, and said" {
	local full

	mkfifo pipe
	exec {full}<>pipe
	head -c 65536 /dev/zero >pipe
	job --report pipe true
	exec {full}>&-
	assert_eq "$stderr" \
		'xrun: --report: pipe: not written within 5 s; it is not complete'
	assert_eq "$status" 125
}

# ends_by - the job in $pid ends within a few seconds after TERM; a phase of its own
# would take 5 s.
ends_by()
{
	local at

	at=$(now_ms)
	kill -TERM "$pid"
	await_exit "$pid" 20
	[ $(($(now_ms) - at)) -lt 4500 ]
}

@test "--report and --events that nobody takes end with --grace after TERM" {
	local full option status

	for option in report events; do
		mkfifo "pipe.$option"
		exec {full}<>"pipe.$option"
		head -c 65536 /dev/zero >"pipe.$option"
		status=0
		spawn job "$XRUN" --grace 1s "--$option" "pipe.$option" -n 1 \
			sh -c 'echo up; exec sleep 60'
		await_line job.out up 10
		ends_by
		wait "$pid" || status=$?
		exec {full}>&-
		assert_eq "$status" 143
		grep -q "^xrun: --$option: pipe.$option: not written in time; it is not complete$" job.err
		[ "$option" = events ] || [ "$(grep -c 'job.json' job.err)" = 0 ]
		rm pipe.* job.*
	done
}

# bats test_tags=sanitize
@test "--exec-on: a command that hangs ends with --grace after TERM" {
	spawn job "$XRUN" --grace 1s --exec-on 'job.end:exec sleep 60' -n 1 \
		sh -c 'echo up; exec sleep 60'
	await_line job.out up 10
	ends_by
	grep -q "^xrun: --exec-on job.end: .* is not waited for any longer$" job.err
}

# --- the culprit -------------------------------------------------------------

@test "rel-4 one of 64 dies by SIGSEGV, the others of broken pipes within 50 ms" {
	local round

	for ((round = 0; round < ROUNDS; round++)); do
		mkdir meet
		job -n 64 "$PROG/die" --rank 41 --signal SEGV --star meet/s --within 50
		rm -r meet
		blames 41 SIGSEGV 139
	done
}

@test "rel-4 one exits with 3, the others die by SIGSEGV at once" {
	local round

	for ((round = 0; round < ROUNDS; round++)); do
		mkdir meet
		job -n 64 "$PROG/die" --rank 7 --exit 3 --star meet/s --how segv \
			--within 1
		rm -r meet
		blames 7 'exit status 3' 3
	done
}

@test "rel-4 one exits with 9, its peers over TCP fail by reset connections" {
	local round

	for ((round = 0; round < ROUNDS; round++)); do
		mkdir meet
		job -n 64 "$PROG/die" --rank 13 --exit 9 --star meet/t --tcp \
			--how exit --victim-exit 1 --within 2
		rm -r meet
		blames 13 'exit status 9' 9
	done
}

@test "rel-4 death goes round a ring: the one who began is named" {
	local round

	for ((round = 0; round < ROUNDS; round++)); do
		mkdir meet
		job -n 16 "$PROG/die" --rank 5 --exit 9 --ring meet/r --how exit \
			--victim-exit 1
		rm -r meet
		blames 5 'exit status 9' 9
	done
}

@test "rel-4 the culprit has much memory and dumps core, its peers die faster" {
	local round

	for ((round = 0; round < ROUNDS; round++)); do
		mkdir meet
		job -n 8 --chdir meet "$PROG/die" --rank 3 --signal SEGV \
			--touch "${TOUCH:-256M}" --core --star s --within 5
		rm -r meet
		blames 3 SIGSEGV 139
	done
}

@test "rel-4 several fail by themselves: all are listed" {
	job -n 4 --on-failure continue sh -c 'exit $((RANK > 1))'
	assert_eq "$status" 1
	assert_has "$stderr" '^xrun: rank [23] failed first: '
	assert_has "$stderr" '^  rank [23] failed after it'
}

@test "progress that was written over: the account has its last state" {
	job -n 2 sh -c '[ "$RANK" = 1 ] || exec sleep 60
		printf "\r10%%\r20%%\r30%%\n\r40%%" >&2; exit 3'
	assert_eq "$status" 3
	assert_has "$stderr" '^  \| 30%$'
	assert_has "$stderr" '^  \| 40%$'
}

# bats test_tags=sanitize
@test "--stop-signal KILL is one signal, and who was stopped is said once" {
	job --stop-signal KILL -n 4 --timeout 200ms sleep 60
	assert_eq "$status" 124
	assert_has "$stderr" '^xrun: --timeout reached after 0.2 s: ranks 0-3 were stopped by xrun \(KILL, [^,]*\)$'
	job --on-failure continue --timeout 500ms -n 2 sh -c '
		[ "$RANK" = 1 ] || exit 2; exec sleep 60'
	assert_eq "$status" 124
	assert_has "$stderr" 'rank 0 failed first: exit status 2'
	assert_eq "$(grep -c 'rank 1 was stopped by xrun' <<<"$stderr")" 1
}
