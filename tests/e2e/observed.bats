#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# observed.bats - what is counted of a job, for those who collect it.

load helper

# value FILE SAMPLE - the value of the sample that begins so.
value()
{
	awk -v want="$2" 'index($0, want) == 1 { print $NF; exit }' "$1"
}

# A rank that tells ten steps; rank 2 takes three times as long for each. It
# ends when it is told to.
steps='for i in {1..10}; do
	echo "{\"type\":\"progress\",\"step\":$i,\"total\":10,\"metrics\":{\"a\\\"b\":$RANK}}" >&97
	read -rt 0.0$((RANK == 2 ? 9 : 3)) _ <> <(:)
done; echo over'

@test "--metrics-file: how a job ended, as Prometheus reads it" {
	job --metrics-file job.prom -n 2 sh -c 'echo hello; exit $RANK'
	assert_eq "$status" 1
	assert_eq "$(value job.prom 'xrun_job_ranks{')" 2
	assert_eq "$(value job.prom 'xrun_job_exit_status{')" 1
	assert_has "$(cat job.prom)" '^xrun_job_state\{job="[a-z0-9]{4}",state="ended"\} 1$'
	assert_has "$(cat job.prom)" '^xrun_ranks\{job="[a-z0-9]{4}",state="done"\} 2$'
	assert_has "$(cat job.prom)" '^xrun_rank_output_bytes_total\{job="[a-z0-9]{4}",rank="1",stream="stdout"\} 6$'
	assert_has "$(cat job.prom)" '^xrun_rank_exit_status\{job="[a-z0-9]{4}",rank="1"\} 1$'
	assert_eq "$(ls)" "$(printf '%s\n' config home job.prom run state)"
}

@test "what is counted is what ps --json shows, and promtool finds no fault" {
	need jq
	spawn one "$XRUN" --metrics-file job.prom --job one -n 3 bash -c "$steps; exec sleep 60"
	await_told
	wait_for 10 published 2
	try "$XRUN" ps --json one
	echo "$output" >ps.json
	kill "$pid"
	await_exit "$pid" 10
	for rank in 0 1 2; do
		of="job=\"one\",rank=\"$rank\""
		assert_eq "$(value job.prom "xrun_rank_step{$of}")" \
			"$(jq ".rank[$rank].progress.step" ps.json)"
		assert_eq "$(value job.prom "xrun_rank_told{$of,name=\"a\\\\\"b\"}")" \
			"$rank"
		assert_eq "$(value job.prom "xrun_rank_output_bytes_total{$of,stream=\"stdout\"}")" \
			"$(jq ".rank[$rank].stdout_bytes" ps.json)"
	done
	need promtool
	promtool check metrics <job.prom
}

# await_told - every rank has told all of its steps.
await_told()
{
	local rank

	for rank in 0 1 2; do
		await_line one.out "^\[$rank\] over\$" 10
	done
}

# published RANK - a file was written after the rank had told its last step.
published()
{
	[ "$(value job.prom "xrun_rank_step{job=\"one\",rank=\"$1\"}")" = 10 ]
}

# bats test_tags=sanitize
@test "the rank whose steps take long is named" {
	need jq
	job -v --report report -n 4 bash -c "$steps"
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: rank 2 took longer than the others: 0\.[0-9]+ s a step at the end, where 0\.0[0-9]+ s is usual$'
	assert_eq "$(jq -c '[.rank[].progress.slow]' report)" '[false,false,true,false]'
	fits job report
	# Said without being asked only to a person.
	job -n 4 bash -c "$steps"
	assert_eq "$stderr" ''
}

@test "ps marks it while the job runs" {
	need_schemas
	spawn one "$XRUN" --job one -n 3 bash -c "$steps; exec sleep 60"
	await_told
	try "$XRUN" ps one
	assert_has "$output" '^ +2 .* 10/10  slow: 0\.[0-9]+ s a step  a"b 2$'
	assert_eq "$(grep -c slow: <<<"$output")" 1
	try "$XRUN" ps --json one
	fits ps - <<<"$output"
	kill "$pid"
	await_exit "$pid" 10
}

@test "--metrics-file that cannot be written: refused at the start, one word later" {
	job --metrics-file nowhere/job.prom true
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: --metrics-file: nowhere/job.prom: No such file or directory'
	job --metrics-file /dev/null true
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: --metrics-file: /dev/null is no regular file, and would be replaced '
	mkdir gone
	job --metrics-file gone/job.prom rmdir gone
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: --metrics-file: gone/job.prom: No such file or directory'
	job --dry-run --metrics-file job.prom true
	assert_has "$stderr" '^xrun: --metrics-file does nothing with --dry-run: nothing is started$'
	[ ! -e job.prom ]
}

@test "a link in the place of the metrics is no way to another file" {
	echo mine >mine
	ln -s mine job.prom
	job --metrics-file job.prom true
	assert_eq "$status" 125
	assert_eq "$(cat mine)" mine
}

# bats test_tags=sanitize
@test "xrun help metrics names every metric" {
	local all

	try "$XRUN" help metrics
	all=$output
	assert_has "$output" '^  xrun_rank_cpu_seconds_total$'
	job --metrics-file job.prom true
	while read -r _ _ name _; do
		assert_has "$all" "^  $name\$"
	done < <(grep '^# TYPE' job.prom)
}
