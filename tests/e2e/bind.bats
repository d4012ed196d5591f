#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bind.bats - processors: who is bound to what, who is not, and that two jobs
# do not take the same ones. Leases are known to the whole machine, and other
# tests' ranks that call each other have some: this file runs alone, and its tests
# take turns.

bats_require_minimum_version 1.5.0
load helper

# One test at a time, and each has the CPUs that this process may use.
setup()
{
	private_place
	exec {turn}</bin/sh # a file that everybody has
	flock "$turn"
	mapfile -t cpus < <(may)
}

teardown()
{
	nothing_left
}

# may - the CPUs of this process, one a line.
may()
{
	local piece

	for piece in $(affinity $$ | tr , ' '); do
		seq "${piece%-*}" "${piece#*-}"
	done
}

affinity()
{
	sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/status"
}

need_cpus()
{
	[ "${#cpus[@]}" -ge "$1" ] || skip "needs $1 CPUs"
}

# where OPTION... - the CPUs of each rank, in order, on a line.
where()
{
	"$XRUN" --no-prefix --no-logs "$@" sh -c \
		'echo "$RANK $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status) ${OMP_NUM_THREADS:--}"' |
		sort -n | cut -d' ' -f2- | tr ' \n' ':;'
}

@test "--bind LIST: equal shares in its order, then one each, round robin" {
	local a b both

	need_cpus 2
	a=${cpus[0]} b=${cpus[1]}
	assert_eq "$(where --bind "$b,$a" -n 2)" "$b:1;$a:1;"
	assert_eq "$(where --bind "$a,$b" -n 3)" "$a:1;$b:1;$a:1;"
	assert_eq "$(where --bind "$a" -n 2)" "$a:1;$a:1;"
	assert_eq "$(XRUN_BIND=$b where -n 1)" "$b:-;"
	both=$a,$b
	[ "$b" -ne $((a + 1)) ] || both=$a-$b
	assert_eq "$(where --bind "$b,$a" -n 1)" "$both:-;"
}

@test "--bind core: a core a rank; other programs are left alone by auto" {
	local all

	all=$(affinity $$)
	assert_eq "$(where -n 2)" "$all:1;$all:1;"
	assert_eq "$(where --bind none -n 2)" "$all:1;$all:1;"
	need_cpus 2
	where --bind core -n 2 | tr ';' '\n' >two
	assert_eq "$(sort -u two | wc -l)" 2
	assert_eq "$(cut -d: -f2 two | sort -u)" 1
}

@test "--bind: one who may use one CPU binds to that one" {
	need taskset
	need_cpus 2
	assert_eq "$(XRUN="taskset -c ${cpus[1]} $XRUN" wherever --bind core -n 2)" \
		"${cpus[1]};${cpus[1]};"
}

wherever()
{
	# shellcheck disable=SC2086 # words
	$XRUN --no-prefix --no-logs "$@" sh -c \
		'sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status' | tr '\n' ';'
}

@test "--bind: what cannot be had is refused with what can" {
	job --bind 8191 true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --bind: CPU 8191 is not among those that may be used here: $(affinity $$)"
	job --bind 0-x true
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: --bind: '0-x' is not auto, none, core or a list of CPUs such as 0-3,8$"
	[ ! -e "$XDG_STATE_HOME/xrun" ] || [ -z "$(ls "$XDG_STATE_HOME/xrun")" ]
}

@test "--bind auto binds ranks of libxrun, but not one alone, nor with threads" {
	need_cpus 2
	need jq
	[ -x "$BUILD/examples/hello_main" ] || skip 'examples are not built'
	job --dry-run --json -n 2 "$BUILD/examples/hello_main"
	assert_eq "$(jq '[.ranks[].cpus] | unique | length' <<<"$output")" 2
	job --dry-run --json -n 1 "$BUILD/examples/hello_main"
	assert_eq "$(jq -c '[.ranks[].cpus]' <<<"$output")" '[null]'
	job --dry-run --json -n 2 --env OMP_NUM_THREADS=4 "$BUILD/examples/hello_main"
	assert_eq "$(jq -c '[.ranks[].cpus]' <<<"$output")" '[null,null]'
	job --dry-run --json -n 2 true
	assert_eq "$(jq -c '[.ranks[].cpus]' <<<"$output")" '[null,null]'
	job --dry-run -n 2 --bind "${cpus[0]}" true
	assert_has "$output" "^ rank  host  +device +cpus +command$"
	assert_has "$output" "^ +1 .* cpu +${cpus[0]} +true$"
}

@test "two jobs do not take the same processors; a third shares, and says so" {
	local n=${#cpus[@]}

	need_cpus 2
	spawn one "$XRUN" --bind core "$PROG/deaf" --linger 0
	await_line one.out ready 10
	[ "$(where --bind core -n 1)" != "$(affinity "$(pgrep -P "$(pgrep -P "$pid")")"):-;" ]
	kill "$pid"
	wait "$pid" || true
	spawn all "$XRUN" --bind core -n "$n" "$PROG/deaf" --linger 0
	await_line all.out ready 10
	job --bind core -n 2 true
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: other jobs of xrun have all the processors: ranks share them'
	job -q --bind core -n 2 true
	assert_eq "$stderr" ''
	# The lease goes with its holder, whatever ends that.
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for 10 free_again
}

free_again()
{
	job --bind core -n 2 true
	[ -z "$stderr" ]
}

# bats test_tags=sanitize
@test "a binding that the kernel refuses fails the job that asked for it" {
	job --report report.json --bind "${cpus[0]}" true
	assert_eq "$(jq -r '.rank[0].cpus' report.json)" "${cpus[0]}"
	try "$PROG/deny" sched_setaffinity=EPERM -- "$XRUN" --bind "${cpus[0]}" true
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: rank 0 could not be started: sched_setaffinity: Operation not permitted'
	[ -x "$BUILD/examples/hello_main" ] || skip 'examples are not built'
	try "$PROG/deny" sched_setaffinity=EPERM -- "$XRUN" -n 2 "$BUILD/examples/hello_main"
	assert_eq "$status" 0
}

@test "OMP_NUM_THREADS: torchrun's rule, the cores of a binding, and its origin" {
	need_cpus 2
	job -n 2 --show-env true
	assert_has "$output" '^profile torch +OMP_NUM_THREADS=1$'
	job -n 2 --show-env --bind "${cpus[0]},${cpus[1]}" true
	assert_has "$output" '^profile torch +OMP_NUM_THREADS=1$'
	OMP_NUM_THREADS=3 job -n 2 --show-env true
	assert_has "$output" '^inherited +OMP_NUM_THREADS=3$'
	job -n 1 --show-env true
	refute_has "$output" ' OMP_NUM_THREADS='
	job -n 2 --env-profile none --show-env true
	refute_has "$output" ' OMP_NUM_THREADS='
}

@test "a terminal is told of more threads than CPUs, and others are not" {
	local n=$((${#cpus[@]} * 2))

	in_pty -- "$XRUN" --no-logs -n "$n" true | plain >screen
	assert_has "$(cat screen)" "^xrun: job [a-z0-9]+: $n ranks on ${#cpus[@]} CPUs? \(OMP_NUM_THREADS=1\), cpu, no logs$"
	in_pty -- "$XRUN" --no-logs -n 1 true | plain >screen
	assert_has "$(cat screen)" ": 1 rank, cpu, no logs$"
	OMP_NUM_THREADS=99999 in_pty -- "$XRUN" --no-logs -n 1 true | plain >screen
	assert_has "$(cat screen)" ": 1 rank on ${#cpus[@]} CPUs? \(OMP_NUM_THREADS=99999\), cpu"
	job -n "$n" true
	assert_eq "$stderr" ''
}
