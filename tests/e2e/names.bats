#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# names.bats - jobs that have a name (--job), and their attempts.

bats_require_minimum_version 1.5.0
load helper

@test "--job: the name is told, and each run is the next attempt" {
	local i

	for i in 0 1 2; do
		job --job train -n 2 sh -c 'echo $XRUN_JOB $XRUN_ATTEMPT'
		assert_eq "$status" 0
		assert_eq "$(cat "$XDG_STATE_HOME/xrun/train/$i/rank-0001/stdout")" \
			"train $i"
		json_holds --argjson i "$i" '.job == "train" and .attempt == $i and .exit == 0' \
			"$XDG_STATE_HOME/xrun/train/job.json"
	done
	assert_eq "$(readlink "$XDG_STATE_HOME/xrun/latest")" train
	assert_eq "$(jq -c 'select(.event == "job.start") | .attempt' \
		"$XDG_STATE_HOME/xrun/train/events.jsonl" | xargs)" '0 1 2'
	# What the attempts before wrote is room that is taken, too.
	json_holds '.bytes == 16 and .bytes_before == 32' \
		"$XDG_STATE_HOME/xrun/train/job.json"
}

@test "--job: a name that runs is refused with its pid, and only while it runs" {
	spawn first "$XRUN" --job train -n 1 sh -c 'echo up; exec sleep 60'
	await_line first.out up 10
	job --job train true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --job: train runs (pid $pid, $XDG_STATE_HOME/xrun/train)   try: another name, or xrun stop train"
	job --job other true
	assert_eq "$status" 0
	kill "$pid"
	wait "$pid" || true
	job --job train -n 1 sh -c 'echo $XRUN_ATTEMPT'
	assert_eq "$output" 1
}

@test "--job: of several that start at once one has the name" {
	local i pids=() won=0

	mkfifo go
	for i in 1 2 3 4 5; do
		"$XRUN" --job race -n 1 sh -c 'echo up; read -r _' <go \
			>"out.$i" 2>"err.$i" 3>&- &
		pids+=("$!")
	done
	exec {hold}>go
	wait_for 20 refused 4
	exec {hold}>&-
	for i in "${pids[@]}"; do
		status=0
		wait "$i" || status=$?
		[ "$status" -eq 125 ] || won=$((won + 1))
	done
	assert_eq "$won" 1
	assert_eq "$(cat out.?)" up
	assert_eq "$(ls "$XDG_STATE_HOME/xrun/race")" $'0\nevents.jsonl\njob.json\nlock'
}

refused()
{
	[ "$(cat err.? | grep -c 'race runs')" -eq "$1" ]
}

@test "--job: what is silent has its account, what is refused is no attempt" {
	job --job quiet echo out
	job --job quiet -n 2 false
	assert_eq "$status" 1
	json_holds '.attempt == 1 and .exit == 1' "$XDG_STATE_HOME/xrun/quiet/job.json"
	job --job quiet ./no-such-program
	[ ! -e "$XDG_STATE_HOME/xrun/quiet/2" ]
}

@test "--job: killed with its keeper, the next attempt is the next" {
	spawn first "$XRUN" --job train -n 1 sh -c 'echo up; exec sleep 60'
	await_line first.out up 10
	kill -KILL "$(pgrep -P "$pid" -x xrun-super)"
	wait "$pid" || true
	job --job train -n 1 sh -c 'echo $XRUN_ATTEMPT'
	assert_eq "$output" 1
}

@test "--job: names that no file may have, and latest, are refused" {
	local name

	for name in '' . .. .a -a a/b 'a b' latest \
		"$(printf 'x%.0s' {1..65})"; do
		job "--job=$name" true
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: --job'
	done
	job --job "$(printf 'x%.0s' {1..64})" echo out
	assert_eq "$status" 0
}

@test "--job: no variable; an xrun inside of a rank is another job" {
	job --job outer -n 1 "$XRUN" -n 1 sh -c 'echo "$XRUN_JOB"'
	assert_eq "$status" 0
	[ "$output" != outer ]
	XRUN_JOB=given job -n 1 sh -c 'echo "$XRUN_JOB"'
	[ "$output" != given ]
	printf '{"job": "filed"}' >config.json
	job --config config.json sh -c 'echo "$XRUN_JOB"'
	assert_eq "$output" filed
	job help job
	[ "$(grep -c XRUN_JOB <<<"$output")" -eq 1 ]
}

@test "--job --log-dir: in the folder of its name" {
	mkdir used
	touch used/file
	job --job a --log-dir used echo out
	job --job a --log-dir used echo out
	[ -e used/a/0/rank-0000/stdout ]
	[ -e used/a/1/rank-0000/stdout ]
	job --job b --log-dir 'new/{job}' echo out
	[ -e new/b/0/rank-0000/stdout ]
	mkdir -p used/mine/data
	job --job mine --log-dir used echo out
	assert_eq "$status" 125
	assert_has "$stderr" 'is there, and not the folder of a job'
}

@test "inside of Slurm a job has its id, and a number beside others" {
	export SLURM_JOB_ID=4711
	job -n 1 sh -c 'echo "$XRUN_JOB"'
	assert_eq "$output" 4711
	job -n 1 sh -c 'echo "$XRUN_JOB $XRUN_ATTEMPT"'
	assert_eq "$output" '4711.2 0'
}

@test "--job: an attempt that says nothing counts, too; with --no-logs none does" {
	job --job quiet false
	assert_eq "$status" 1
	[ -d "$XDG_STATE_HOME/xrun/quiet" ]
	job --job quiet sh -c 'echo $XRUN_ATTEMPT'
	assert_eq "$output" 1
	job --job quiet --no-logs sh -c 'echo $XRUN_ATTEMPT'
	assert_eq "$output" 0
}

@test "in a Slurm job a silent one leaves neither folder nor number" {
	export SLURM_JOB_ID=4711
	job -n 2 true
	assert_eq "$status" 0
	[ ! -e "$XDG_STATE_HOME/xrun/4711" ]
	job sh -c 'echo $XRUN_JOB $XRUN_ATTEMPT'
	assert_eq "$output" '4711 0'
	job true
	job sh -c 'echo $XRUN_JOB $XRUN_ATTEMPT'
	assert_eq "$output" '4711.2 0'
}
