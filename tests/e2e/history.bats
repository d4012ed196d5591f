#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# history.bats - every job is recorded: verbs without a job name the one that they
# use, and never another; stored jobs are removed.

bats_require_minimum_version 1.5.0
load helper

# named_is JOB - the verb said that it uses that one.
named_is()
{
	assert_has "$stderr" "^xrun: job $1, [0-9]+ (s|min) ago\$"
}

# newest - the id of the job that began last.
newest()
{
	"$XRUN" ps -aq | tail -n 1
}

@test "history: a verb without a job names the job that it uses" {
	"$XRUN" --job first echo text
	try "$XRUN" logs
	assert_eq "$output" text
	named_is first
	try "$XRUN" events
	named_is first
	try "$XRUN" logs first
	assert_eq "$stderr" ''
	spawn job "$XRUN" --job second sh -c 'echo ready; sleep 60'
	await_line job.out ready 10
	try "$XRUN" logs
	assert_eq "$output" ready
	assert_has "$stderr" '^xrun: job second, started [0-9]+ s ago$'
	try "$XRUN" stop
	assert_has "$stderr" '^xrun: job second, started [0-9]+ s ago$'
	wait "$pid" || true
}

@test "history: logs after a silent job shows nothing of an older one" {
	"$XRUN" echo old
	"$XRUN" true
	try "$XRUN" logs
	assert_eq "$status" 0
	assert_eq "$output" ''
	named_is "$(newest)"
	assert_has "$stderr" "^xrun: $(newest) kept no output: its ranks wrote nothing\$"
	assert_has "$("$XRUN" ps -a)" "^$(newest) +1  done .* 0  true\$"
}

@test "history: logs after a job with --no-logs shows nothing of an older one" {
	"$XRUN" echo old
	"$XRUN" --no-logs echo new
	try "$XRUN" logs
	assert_eq "$status" 125
	assert_eq "$output" ''
	named_is "$(newest)"
	assert_has "$stderr" "^xrun: $(newest) kept no output: it was started with --no-logs"
	assert_has "$("$XRUN" ps -a)" "^$(newest) +1  done .* 0  echo new\$"
}

@test "history: logs finds the output of a job with --log-dir" {
	"$XRUN" echo old
	"$XRUN" --log-dir "$PWD/elsewhere" echo new
	try "$XRUN" logs
	assert_eq "$output" new
	named_is "$(newest)"
	rm -r elsewhere
	try "$XRUN" logs
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: $(newest): its output was removed from $PWD/elsewhere"
}

@test "history: a later run of a named job without files hides the earlier one" {
	"$XRUN" --job train echo old
	"$XRUN" --job train --no-logs echo new
	try "$XRUN" logs train
	assert_eq "$output" ''
	assert_has "$stderr" '^xrun: train kept no output: it was started with --no-logs'
	"$XRUN" --job train echo newer
	assert_eq "$("$XRUN" logs train)" newer
}

@test "history: ps shows a job without a folder" {
	need_schemas
	"$XRUN" --job bare --no-logs true
	"$XRUN" --job there --log-dir "$PWD/elsewhere" echo 1
	"$XRUN" ps -a --json >all.json
	fits ps all.json
	"$XRUN" ps bare --json >bare.json
	fits ps bare.json
	assert_has "$("$XRUN" ps bare)" '^job bare: ended'
	assert_eq "$(jq -c '[.[] | .job, .no_logs, .dir]' all.json)" \
		'["bare",true,null,"there",null,null]'
	rm -r elsewhere
	"$XRUN" ps -a --json >all.json
	fits ps all.json
	assert_eq "$(jq -r '.[1].dir' all.json)" "$PWD/elsewhere/there"
}

# bats test_tags=sanitize
@test "history: wait knows how a job without files ended" {
	"$XRUN" --job bare --no-logs sh -c 'exit 3' || true
	try "$XRUN" wait bare
	assert_eq "$status" 3
	"$XRUN" --job mute sh -c 'exit 4' || true
	try "$XRUN" wait --json mute
	assert_eq "$status" 4
	assert_eq "$output" '{"job":"mute","exit":4,"reason":"failure"}'
}

@test "history: the file is bounded, and each line is whole" {
	need jq
	mkdir -p "$XDG_STATE_HOME/xrun"
	yes '{"job":"old1","v":1,"start":"2020-01-01T00:00:00.000000Z"}' |
		head -n 6000 >"$XDG_STATE_HOME/xrun/.history"
	"$XRUN" --no-logs echo "$(printf 'x%.0s' {1..5000})" >out
	[ -e "$XDG_STATE_HOME/xrun/.history.1" ]
	assert_eq "$(wc -l <"$XDG_STATE_HOME/xrun/.history")" 1
	json_holds '.exit == 0 and .argv == ["echo", "..."]' \
		"$XDG_STATE_HOME/xrun/.history"
	assert_eq "$("$XRUN" ps -aq | wc -l)" 2
}

@test "rm: removes the named jobs, and no others" {
	"$XRUN" --job one echo 1
	"$XRUN" --job two echo 2
	"$XRUN" --job bare --no-logs true
	try "$XRUN" rm --dry-run one bare
	assert_eq "$output" $'one\nbare'
	try "$XRUN" rm o
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: rm: 'o' is only the beginning of one   try: xrun rm one"
	try "$XRUN" rm -rf one
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: to run rm\(1\)   try: xrun -- rm -rf \.\.\.$'
	try "$XRUN" rm one bare
	assert_eq "$status" 0
	assert_eq "$output$stderr" $'one\nbare'
	assert_eq "$("$XRUN" ps -aq)" two
	[ ! -e "$XDG_STATE_HOME/xrun/one" ]
	try "$XRUN" rm
	assert_eq "$status" 125
	try "$XRUN" rm nosuch two
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: there is no job 'nosuch'"
	assert_eq "$("$XRUN" ps -aq)" ''
}

@test "rm: a job that runs stays" {
	spawn job "$XRUN" --job runs sh -c 'echo ready; sleep 60'
	await_line job.out ready 10
	try "$XRUN" rm runs
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: rm: runs runs   try: xrun stop runs$'
	try "$XRUN" prune --all
	assert_eq "$output" ''
	assert_eq "$("$XRUN" logs runs)" ready
	kill "$pid"
	wait "$pid" || true
}

@test "rm: output that --log-dir put elsewhere stays" {
	"$XRUN" --log-dir "$PWD/elsewhere" echo new
	id=$(newest)
	try "$XRUN" rm "$id"
	assert_eq "$status" 0
	assert_has "$stderr" "^xrun: $id: its output stays in $PWD/elsewhere\$"
	assert_eq "$(cat elsewhere/0/rank-0000/stdout)" new
	assert_eq "$("$XRUN" ps -aq)" ''
}

# aged JOB DAYS - as if it had ended so long ago.
aged()
{
	local json=$XDG_STATE_HOME/xrun/$1/job.json

	jq -c --arg e "$(date -u -d "$2 days ago" +%Y-%m-%dT%H:%M:%S.000000Z)" \
		'.end = $e' "$json" >aged
	cp aged "$json"
}

@test "prune: takes jobs by age and by number" {
	need jq
	for job in a b c d; do
		"$XRUN" --job "$job" echo "$job"
	done
	aged a 9
	aged b 4
	aged c 2
	try "$XRUN" prune --older-than 3d --dry-run
	assert_eq "$output" $'b\na'
	assert_eq "$stderr" 'xrun: 2 jobs, 0.0 MiB of output would be removed'
	try "$XRUN" prune --older-than 3d --keep 3
	assert_eq "$output" a
	assert_eq "$stderr" 'xrun: 1 job, 0.0 MiB of output removed'
	try "$XRUN" prune --keep 2
	assert_eq "$output" b
	try "$XRUN" prune --older-than 36h
	assert_eq "$output" c
	assert_eq "$("$XRUN" ps -aq)" d
	try "$XRUN" prune -a
	assert_eq "$output" d
	assert_eq "$("$XRUN" ps -aq)" ''
}

@test "prune: without a condition it is an error" {
	"$XRUN" --job kept echo 1
	try "$XRUN" prune
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: prune: a condition is missing   try: --older-than 7d, --keep 10 or --all$'
	try "$XRUN" prune --all --keep 1
	assert_eq "$status" 125
	try "$XRUN" prune --older-than soon
	assert_eq "$status" 125
	assert_has "$stderr" "'soon' is no time such as 12h or 7d"
	try "$XRUN" prune --older-than 1h
	assert_eq "$status" 0
	assert_eq "$("$XRUN" ps -aq)" kept
}

@test "rm, prune: nothing of a removed job stays in the history" {
	"$XRUN" --job bare --no-logs true secret
	"$XRUN" --job mute true secret
	grep -q secret "$XDG_STATE_HOME/xrun/.history"
	"$XRUN" rm bare
	"$XRUN" prune --all
	assert_eq "$(tr -d ' \n' <"$XDG_STATE_HOME/xrun/.history")" ''
}

@test "prune: reads the history once" {
	local i

	unsanitized 'a leak cannot be looked for under strace'
	need strace
	mkdir -p "$XDG_STATE_HOME/xrun"
	for i in {1..200}; do
		echo "{\"job\":\"j$i\",\"start\":\"2020-01-01T00:00:00.000000Z\"}"
	done >"$XDG_STATE_HOME/xrun/.history"
	strace -f -o calls -e trace=openat "$XRUN" prune --all >pruned 2>&1
	assert_eq "$(grep -c '^j' pruned)" 200
	[ "$(grep -c '/\.history"' calls)" -le 6 ]
	assert_eq "$("$XRUN" ps -aq)" ''
}
