#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# detach.bats - jobs that are left running (-d, --detach).

bats_require_minimum_version 1.5.0
load helper

# folder JOB - where it is; words JOB - what xrun said since it was left alone.
folder()
{
	printf '%s\n' "$XDG_STATE_HOME/xrun/$1"
}

words()
{
	cat "$(folder "$1")/${2:-0}/xrun.log"
}

# pid_of JOB - of job.json, which is there as soon as the id is.
pid_of()
{
	jq .pid "$(folder "$1")/job.json"
}

# gone PID - or a zombie, whose parent is whoever takes orphans here.
gone()
{
	[ ! -e "/proc/$1/exe" ]
}

# ended JOB - waits for its end; false if job.json then has no exit status.
ended()
{
	wait_for 60 gone "$(pid_of "$1")"
	json_holds 'has("exit")' "$(folder "$1")/job.json"
}

exit_of()
{
	jq -c '[.exit, .reason]' "$(folder "$1")/job.json"
}

@test "-d: the id is printed while the ranks run, and nothing of ours is held" {
	local id fd go end=0

	mkfifo go
	exec {go}<>go # what is written waits for whoever opens it late
	# As $(...) would wait, but not for ever; other descriptors count, too.
	exec {fd}< <("$XRUN" -d -n 2 sh -c \
		'echo "out $RANK"; echo err >&2; read -r x <go; echo on$x' \
		2>&1 7>&1 8>&1)
	IFS= read -r -t 20 -u "$fd" id
	read -r -t 20 -u "$fd" || end=$?
	assert_eq "$end" 1
	assert_eq "$(xruns | wc -l)" 2
	[[ $id =~ ^[a-z0-9]{4}$ ]]
	json_holds '.ranks == 2 and (has("exit") | not)' "$(folder "$id")/job.json"
	await_line "$(folder "$id")/0/rank-0001/stdout" 'out 1' 10
	# A byte each: a shell reads byte by byte, and the other one between.
	printf '\n\n' >&"$go"
	ended "$id"
	assert_eq "$(exit_of "$id")" '[0,"ok"]'
	assert_eq "$(cat "$(folder "$id")/0/rank-0000/stdout")" $'out 0\non'
	assert_eq "$(words "$id")" ''
	assert_eq "$(readlink "$XDG_STATE_HOME/xrun/latest")" "$id"
}

@test "-d: who has the id has job.json, however slow the disk is" {
	local id

	id=$(XRUN_FAULT='state.write:delay=300ms;nth=1' \
		"$XRUN" -d --debug-faults sleep 60)
	kill "$(pid_of "$id")"
	ended "$id"
}

@test "-d: a session of its own, without terminal or input" {
	local id p

	id=$(echo typed | "$XRUN" --detach -n 1 sh -c 'cat; ls -l /proc/$$/fd/0; sleep 60')
	p=$(pid_of "$id")
	assert_eq "$(ps -o sid=,tty= -p "$p" | xargs)" "$p ?"
	await_line "$(folder "$id")/0/rank-0000/stdout" '/dev/null$' 10
	[ "$(wc -l <"$(folder "$id")/0/rank-0000/stdout")" -eq 1 ]
	assert_eq "$(readlink "/proc/$p/fd/2")" "$(folder "$id")/0/xrun.log"
	kill "$p"
	ended "$id"
}

# bats test_tags=sanitize
@test "-d: what keeps a job from starting is told as ever, with its status" {
	local args

	printf '#!/no/such/shell\n' >script
	chmod +x script
	touch data
	for args in ./no-such-program ./data ./script \
		'--on-failure continue ./script' '-n 3 : true' '--stdin none --chdir /no/dir true'; do
		# shellcheck disable=SC2086 # several words
		job $args
		printf '%s\n' "$status" "$stderr" >plain
		# shellcheck disable=SC2086
		job -d $args
		assert_eq "$output" ''
		assert_eq "$(printf '%s\n' "$status" "$stderr")" "$(cat plain)"
		[ "$status" -ne 0 ]
		assert_has "$stderr" '^xrun: '
	done
	assert_eq "$(find "$XDG_STATE_HOME" -mindepth 2 -type d ! -name .live ! -name '.run-*')" ''
}

@test "-d: a job that cannot start all of its ranks is none" {
	export XRUN_FAULT='spawn.pipe:fail=EMFILE;rank=1'

	job -d --debug-faults -n 2 sleep 60
	assert_eq "$status" 125
	assert_eq "$output" ''
	assert_has "$stderr" '^xrun: rank 1 could not be started: .*1 ranks were started'
	assert_eq "$(xruns)" ''
}

@test "-d: a silent job keeps its folder, since its id was told" {
	local id

	id=$("$XRUN" -d -n 2 false)
	ended "$id"
	assert_eq "$(exit_of "$id")" '[1,"failure"]'
	assert_has "$(words "$id")" '^xrun: rank [01] failed first: exit status 1'
	id=$("$XRUN" -d true)
	ended "$id"
	assert_eq "$(exit_of "$id")" '[0,"ok"]'
}

@test "-d: SIGHUP does nothing, SIGTERM to its pid stops it" {
	local id p

	id=$("$XRUN" -d sh -c 'trap "echo heard" USR1; echo up; while :; do sleep 0.05; done')
	p=$(pid_of "$id")
	await_line "$(folder "$id")/0/rank-0000/stdout" up 10
	kill -HUP "$p"
	kill -USR1 "$p"
	await_line "$(folder "$id")/0/rank-0000/stdout" heard 10
	kill "$p"
	ended "$id"
	assert_eq "$(exit_of "$id")" '[143,"signal"]'
	assert_has "$(words "$id")" '^xrun: SIGTERM: rank 0 was stopped'
}

@test "-d at a terminal: Ctrl-C and a hang-up afterwards do not touch the job" {
	local step id

	for step in "-s \003" -h; do
		rm -rf "${XDG_STATE_HOME:?}/xrun"
		# The whole line: on Ctrl-C, the terminal drops output that was not read, and
		# may display ^C before the newline.
		# shellcheck disable=SC2086 # an option and its argument
		try in_pty -w 'to end it' -w $'\n' $step sh -c \
			'"$XRUN" -d sh -c "trap \"echo heard\" USR1; while :; do echo up; sleep 0.05; done"; exec sleep 60'
		[ "$status" -gt 128 ]
		id=$(plain <<<"$output" | head -n 1)
		assert_has "$(plain <<<"$output")" \
			"^xrun: job $id: 1 rank in the background, output in .*/$id/0; to end it: xrun stop $id\$"
		# The rank's trap is there.
		await_line "$(folder "$id")/0/rank-0000/stdout" up 60
		kill -USR1 "$(pid_of "$id")"
		await_line "$(folder "$id")/0/rank-0000/stdout" heard 60
		kill "$(pid_of "$id")"
		ended "$id"
	done
	try in_pty "$XRUN" -q -d true
	id=$(plain <<<"$output")
	[[ $id =~ ^[a-z0-9]{4}$ ]]
	ended "$id"
}

@test "-d: --timeout holds, and xrun's words are in xrun.log" {
	local id

	id=$("$XRUN" -d -v --timeout 200ms -n 2 sleep 60)
	ended "$id"
	assert_eq "$(exit_of "$id")" '[124,"timeout"]'
	assert_has "$(words "$id")" '^xrun: --timeout reached after 0.2'
	assert_has "$(words "$id")" 'bytes logged'
}

@test "-d: whoever waits for the start takes the job with him" {
	local id

	export XRUN_FAULT='spawn.after:delay=1s;rank=1'
	spawn caller "$XRUN" --debug-faults -d -n 2 sleep 60
	wait_for 10 any_words
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for 10 none_runs
	id=$(basename "$(dirname "$XDG_STATE_HOME"/xrun/*/lock)")
	assert_eq "$(cat caller.out)" ''
	assert_has "$(words "$id")" 'the xrun that was called was ended before'
	assert_eq "$(jq .exit "$(folder "$id")/job.json")" 125
}

# bats test_tags=sanitize
@test "-d: an xrun that was killed before the job has a folder leaves none" {
	local caller child

	# The parent of the caller is stopped: it does not reap the caller, whose pid stays.
	export XRUN_FAULT='state.open:stop'
	# shellcheck disable=SC2016 # for the inner shell
	spawn parent sh -c '"$0" --debug-faults -d sleep 60 & echo $!; kill -STOP $$' "$XRUN"
	await_line parent.out '^[0-9]+$' 10
	caller=$line
	wait_for 10 pgrep -P "$caller" >/dev/null
	child=$(pgrep -P "$caller")
	wait_for 10 grep -q '^State:.*stopped' "/proc/$child/status"
	kill -KILL "$caller"
	wait_for 10 grep -q '^State:.*zombie' "/proc/$caller/status"
	kill -CONT "$child"
	wait_for 10 gone "$child"
	kill -KILL "$pid"
	assert_eq "$(compgen -G "$XDG_STATE_HOME/xrun/*/lock" || true)" ''
}

any_words()
{
	compgen -G "$XDG_STATE_HOME/xrun/*/0/xrun.log" >/dev/null
}

none_runs()
{
	[ -z "$(xruns)" ]
}

@test "-d --job: a name that runs is refused, the next attempt has its own words" {
	local p

	assert_eq "$("$XRUN" -d --job train sleep 60)" train
	p=$(pid_of train)
	job -d --job train true
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: --job: train runs \(pid $p,"
	kill "$p"
	ended train
	assert_eq "$("$XRUN" -d --job train false)" train
	ended train
	assert_has "$(words train 0)" SIGTERM
	assert_has "$(words train 1)" 'exit status 1'
}

@test "-d: several at once are several jobs" {
	local a b

	a=$("$XRUN" -d sleep 60)
	b=$("$XRUN" -d -d sleep 60)
	[ "$a" != "$b" ]
	assert_eq "$(xruns | wc -l)" 4
	kill "$(pid_of "$a")"
	ended "$a"
	assert_eq "$(xruns | wc -l)" 2
	kill "$(pid_of "$b")"
	ended "$b"
}

@test "-d: killed supervisor, killed keeper: as ever, with the words in the file" {
	local id p

	id=$("$XRUN" -d sleep 60)
	p=$(pid_of "$id")
	kill -KILL "$(pgrep -P "$p" -x xrun-super)"
	wait_for 10 gone "$p"
	assert_has "$(words "$id")" '^xrun: the supervisor ended \(SIGKILL\)'
	id=$("$XRUN" -d sleep 60)
	kill -KILL "$(pid_of "$id")"
	wait_for 10 none_runs
	assert_has "$(words "$id")" 'the process that was started as xrun was killed'
	json_holds '.exit == 125' "$(folder "$id")/job.json"
}

# bats test_tags=sanitize
@test "-d: what needs whoever called it is refused" {
	local args

	for args in '--no-logs' '--stdin 0' '--stdin all' '--report -' \
		'--events /dev/stdout' '--report /dev/fd/2'; do
		# shellcheck disable=SC2086 # several words
		job -d $args true
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: --(detach|stdin|report|events): .*   try: '
	done
	XRUN_DETACH=1 job --no-logs true
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: XRUN_DETACH: '
	assert_eq "$(ls "$XDG_STATE_HOME")" ''
	job -d --report run.json ./no-such-program
	json_holds '.reason == "refused" and .exit == 127' run.json
	job -d --dry-run true
	assert_eq "$status" 0
	assert_has "$output" 'nothing was started'
}

@test "-d: --report, --events, --log-dir, --pty, --stdin none, --show are had" {
	local id

	id=$("$XRUN" -d --report r.json --events e.jsonl --log-dir logs --pty \
		--stdin none --show all -n 2 sh -c 'tty; read -r x || echo end')
	wait_for 10 none_runs
	json_holds --arg id "$id" '.job == $id and .exit == 0' r.json
	assert_eq "$(jq -r 'select(.event == "job.start") | .job' e.jsonl)" "$id"
	assert_eq "$(sed 1d logs/0/rank-0001/stdout)" end
	assert_eq "$(cat logs/0/xrun.log)" ''
}

@test "-d: an id that cannot be printed is said, with the job that runs" {
	local id p

	[ -w /dev/full ] || skip 'no /dev/full'
	status=0
	"$XRUN" -d sleep 60 >/dev/full 2>err || status=$?
	assert_eq "$status" 125
	id=$(sed -n 's/^xrun: job .*to end it: xrun stop //p' err)
	p=$(pid_of "$id")
	"$XRUN" stop "$id"
	wait_for 10 gone "$p"
}
