#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# asking.bats - what xrun says of a job that it does not run, of itself, and of
# variables that it finds; and that an xrun inside of a rank starts clean. The
# texts of the help itself are in help.bats.

load helper

# variable NAME - its object in the JSON of --show-env.
variable()
{
	jq_sorted --arg name "$1" '.variables[] | select(.name == $name)' <<<"$output"
}

# removed NAME - why ranks do not get it.
removed()
{
	jq -r --arg name "$1" '.removed[] | select(.name == $name).why' \
		<<<"$output"
}

# --- short answers -----------------------------------------------------------

@test "xrun alone: on stderr, 125, and the last line is live" {
	job
	assert_eq "$status" 125
	assert_eq "$output" ''
	assert_eq "$(head -n 1 <<<"$stderr")" 'xrun: no program given'
	assert_has "$(tail -n 1 <<<"$stderr")" ' No job running\.$'
	mkfifo pipe
	"$XRUN" "$PROG/deaf" --linger 0 >pipe 2>/dev/null 3>&- &
	launched=$!
	await_line pipe ready 5
	job
	kill "$launched"
	wait "$launched" || true
	assert_has "$(tail -n 1 <<<"$stderr")" ' 1 job running: [a-z0-9]{4} \(([0-9]+ ranks?, )?[0-9]+ s\)\.$'
}

# bats test_tags=sanitize
@test "-h fits 24 lines of 80 columns" {
	job -h
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	[ "$(wc -l <<<"$output")" -le 24 ]
	[ "$(wc -L <<<"$output")" -le 80 ]
	[ "$(wc -l <<<"$output")" -ge 10 ]
	try "$XRUN" --help
	assert_has "$output" '^usage: xrun '
}

@test "help, version and completion answer on stdout with 0" {
	local words

	for words in help 'help ranks' 'help exit' version 'version --json' \
		'completion bash'; do
		# shellcheck disable=SC2086 # words
		job $words
		assert_eq "$status" 0
		assert_eq "$stderr" ''
		[ -n "$output" ]
	done
	job version
	assert_has "$output" '^xrun [0-9]+\.[0-9]+\.[0-9]+'
}

@test "an answer that cannot be written is 125" {
	status=0
	"$XRUN" help >/dev/full 2>err || status=$?
	assert_eq "$status" 125
	assert_has "$(cat err)" '^xrun: standard output: No space left on device$'
}

@test "bash completes options, values and verbs" {
	local complete

	"$XRUN" completion bash >words
	# complete WORD...: what would be offered for the last one.
	cat >ask <<-'END'
		source ./words
		COMP_WORDS=(xrun "$@")
		COMP_CWORD=$#
		COMP_LINE="xrun $*"
		COMP_POINT=${#COMP_LINE}
		_xrun
		printf '%s\n' "${COMPREPLY[@]}"
	END
	assert_has "$(bash --norc ask --time)" '^--timeout='
	assert_eq "$(bash --norc ask --on-failure '')" $'stop\ncontinue'
	assert_eq "$(bash --norc ask --exit-code = ma)" max
	assert_has "$(bash --norc ask ver)" '^version$'
	assert_has "$(bash --norc ask --no-lo)" '^--no-logs$'
	assert_eq "$(bash --norc ask --hosts | grep -c hosts)" 0
	mkdir folder
	assert_has "$(bash --norc ask --chdir fol)" '^folder$'
}

# --- --dry-run ---------------------------------------------------------------

@test "--dry-run starts nothing, makes nothing, and quotes arguments" {
	job --dry-run -n 3 sh -c 'touch ran; echo $RANK' "it's"
	assert_eq "$status" 0
	assert_has "$output" '^3 ranks \(given\), platform cpu; nothing was started$'
	assert_eq "$(grep -cE '^ +[0-2]  ' <<<"$output")" 3
	assert_has "$output" "sh -c 'touch ran; echo \\\$RANK' 'it'\\\\''s'\$"
	[ ! -e ran ]
	[ ! -e "$XDG_STATE_HOME/xrun" ]
}

# bats test_tags=sanitize
@test "--dry-run --json is the same for a program" {
	need jq
	job --dry-run --json true
	assert_has "$output" '"why":"'
	job --dry-run --json -n 3 "$PROG/argshow" $'\xff' ''
	assert_eq "$status: $stderr" '0: '
	json_holds '.v == 1 and .size == 3 and .why == "given" and
		.platform == "cpu" and (.argv | length) == 3 and
		[.ranks[].rank] == [0, 1, 2] and .ranks[2].device == "cpu"' \
		<<<"$output"
	XRT_LOCAL_WORKER=w:1 XRT_SHARD_WORLD_SIZE=2 TPU_NUM_DEVICES=4 \
		job --dry-run --json true
	assert_eq "$status: $stderr" '0: '
	json_holds '.why == "worker list" and .size == 8 and
		[.ranks[].rank] == [4, 5, 6, 7] and .ranks[0].node == 1' <<<"$output"
}

@test "--dry-run refuses what a run would refuse" {
	job --dry-run ./train
	assert_eq "$status" 127
	XRT_LOCAL_WORKER=w:0 job --dry-run -n 3 true
	assert_eq "$status" 125
}

@test "--dry-run and --show-env touch no file" {
	echo old >report
	job --dry-run --report report --events events true
	assert_eq "$status" 0
	job --show-env --report report --events events true
	assert_eq "$status" 0
	job --dry-run --report report --events events ./train
	assert_eq "$status" 127
	job --dry-run --report report -n x true
	assert_eq "$status" 125
	assert_eq "$(cat report)" old
	[ ! -e events ]
}

@test "--json without anything that was asked says so" {
	job --json echo hi
	assert_eq "$output" hi
	assert_eq "$status" 0
	assert_eq "$stderr" "xrun: --json is for --dry-run and --show-env; a job's account as JSON: --report FILE"
}

# --- --show-env --------------------------------------------------------------

@test "--show-env says where each value comes from, and what it hides" {
	need jq
	export MINE=1 MASTER_PORT=4711 RANK=9 PMI_RANK=3 XRUN_TIMEOUT=1h \
		SLURM_PROCID=4 SLURM_JOB_ID=77 SLURM_JOB_NAME=x OMP_NUM_THREADS=5
	job --show-env=1 --json -n 2 --env ADDED=x true
	assert_eq "$status" 0
	assert_eq "$(variable MINE)" \
		'{"name":"MINE","source":"inherited","value":"1"}'
	assert_eq "$(variable ADDED | jq -r .source)" --env
	assert_eq "$(variable RANK | jq -r '.value, .source' | paste -sd,)" \
		'1,profile torch'
	assert_eq "$(variable XRUN_RANK | jq -r '.value, .source' | paste -sd,)" \
		'1,xrun'
	assert_eq "$(variable MASTER_PORT | jq -r .hides)" 4711
	assert_eq "$(variable OMP_NUM_THREADS | jq -r '.value, .source' |
		paste -sd,)" '5,inherited'
	assert_eq "$(variable SLURM_JOB_NAME | jq -r .source)" inherited
	assert_eq "$(removed SLURM_JOB_ID)" 'the step xrun runs in, not its ranks'
	assert_eq "$(removed PMI_RANK)" 'the ranks of another MPI launcher'
	assert_eq "$(removed SLURM_PROCID)" 'the step xrun runs in, not its ranks'
	assert_has "$(removed XRUN_TIMEOUT)" '^an option of xrun'
}

@test "--env-pass: what else ranks do not inherit" {
	need jq
	export NCCL_A=1 NCCL_B=2 MINE=3 OTHER=4
	job --show-env --json --env-pass 'NCCL_*' --env-pass MINE,YOURS true
	assert_eq "$(variable NCCL_A)" \
		'{"name":"NCCL_A","source":"inherited","value":"1"}'
	assert_eq "$(variable MINE | jq -r .source)" inherited
	assert_eq "$(variable HOME | jq -r .source)" inherited
	assert_eq "$(variable XRUN_RANK | jq -r .source)" xrun
	assert_eq "$(variable OTHER)" ''
	assert_eq "$(removed OTHER)" 'not among --env-pass'
	job -n 1 --env-pass MINE sh -c 'echo "${MINE-no} ${OTHER-no} ${NCCL_A-no}"' : \
		-n 1 sh -c 'echo "${MINE-no} ${OTHER-no} ${NCCL_A-no}"'
	assert_eq "$(sort <<<"$output")" $'[0] 3 no no\n[1] 3 4 1'
	XRUN_ENV_PASS='OTHER' job sh -c 'echo "${MINE-no} ${OTHER-no}"'
	assert_eq "$output" 'no 4'
	job --env-pass A=1 true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --env-pass: 'A=1' is not a GLOB"
}

@test "--show-env as text has the same" {
	export PMI_RANK=3 MASTER_PORT=4711
	job --show-env -n 2 true
	assert_has "$output" '^inherited +HOME='
	assert_has "$output" '^xrun +XRUN_SIZE=2$'
	assert_has "$output" '^profile torch +MASTER_PORT=[0-9]+   \(inherited: 4711\)$'
	assert_has "$output" '^removed +PMI_RANK   \(the ranks of another MPI launcher\)$'
	[ ! -e "$XDG_STATE_HOME/xrun" ]
}

@test "--env-profile: none leaves xrun's own, torch adds its names" {
	job --env-profile none -n 2 "$PROG/envshow" RANK XRUN_RANK MASTER_ADDR
	assert_has "$output" '^\[1\] RANK unset$'
	assert_has "$output" '^\[1\] XRUN_RANK=1$'
	XRUN_ENV_PROFILE=torch job -n 2 "$PROG/envshow" RANK
	assert_has "$output" '^\[1\] RANK=1$'
}

# --- variables ---------------------------------------------------------------

@test "every option is a variable, the command line wins" {
	XRUN_RANKS=3 job "$PROG/envshow" WORLD_SIZE
	assert_eq "$(grep -c 'WORLD_SIZE=3' <<<"$output")" 3
	XRUN_RANKS=3 job --ranks 2 "$PROG/envshow" WORLD_SIZE
	assert_eq "$(grep -c 'WORLD_SIZE=2' <<<"$output")" 2
	XRUN_ENV=$'A=1\nB=2' job "$PROG/envshow" A B
	assert_eq "$output" $'A=1\nB=2'
	XRUN_NO_PREFIX=1 job -n 2 echo x
	assert_eq "$output" $'x\nx'
}

@test "a variable that nobody knows is a warning" {
	XRUN_RANGS=3 job "$PROG/envshow" RANK
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: unknown variable XRUN_RANGS (did you mean XRUN_RANKS?)'
	assert_eq "$output" RANK=0
	XRUN_XYZZY=3 job true
	assert_eq "$stderr" 'xrun: unknown variable XRUN_XYZZY'
}

@test "a variable that means nothing yet is said to come later" {
	XRUN_DEBUG=wire XRUN_LOG_FILE=/x job true
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$stderr")" 'xrun: XRUN_DEBUG comes with a later version
xrun: XRUN_LOG_FILE comes with a later version'
}

@test "XRUN_RANK is what ranks are told, and a warning says so" {
	XRUN_RANK=3 job "$PROG/envshow" WORLD_SIZE
	assert_eq "$status" 0
	assert_eq "$stderr" 'xrun: XRUN_RANK is what xrun tells its ranks; the number of ranks is XRUN_RANKS or -n'
	assert_eq "$output" WORLD_SIZE=1
}

@test "rel-78 an xrun inside of a rank starts clean" {
	XRUN_RANKS=2 XRUN_TIMEOUT=1h job sh -c '
		[ "$RANK" = 1 ] || exit 0
		exec "$0" "$@"' "$XRUN" "$PROG/envshow" RANK WORLD_SIZE XRUN_SIZE \
		XRUN_RANKS XRUN_TIMEOUT XRUN_JOB
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	assert_has "$output" '^\[1\] RANK=0$'
	assert_has "$output" '^\[1\] WORLD_SIZE=1$'
	assert_has "$output" '^\[1\] XRUN_SIZE=1$'
	assert_has "$output" '^\[1\] XRUN_RANKS unset$'
	assert_has "$output" '^\[1\] XRUN_TIMEOUT unset$'
}

@test "rel-78 an inner xrun has a job of its own, and its failure goes out" {
	job -n 2 sh -c '
		[ "$RANK" = 1 ] || exec sleep 60
		exec "$0" "$@"' "$XRUN" -n 2 "$PROG/die" --rank 1 --exit 6
	assert_eq "$status" 6
	assert_has "$stderr" '^\[1\]!xrun: rank 1 failed first: exit status 6 '
	assert_has "$stderr" '^xrun: rank 1 failed first: exit status 6 '
}

@test "rel-78 a worker list is the outer job's alone" {
	XRT_TPU_CONFIG='a;0;h:1' TPU_NUM_DEVICES=2 job sh -c '
		[ "$RANK" = 0 ] || exit 0
		exec "$0" "$@"' "$XRUN" "$PROG/envshow" XRT_TPU_CONFIG \
		XRT_SHARD_ORDINAL WORLD_SIZE
	assert_eq "$status" 0
	assert_has "$output" '^\[0\] XRT_TPU_CONFIG unset$'
	assert_has "$output" '^\[0\] WORLD_SIZE=1$'
}

@test "ranks find no part of the variables of a Slurm step" {
	export SLURM_JOB_ID=77 SLURM_JOBID=77 SLURM_STEP_NODELIST=a SLURM_NTASKS=4 \
		SLURM_PROCID=3 SLURM_LOCALID=3 SLURM_STEP_NUM_NODES=1 SLURM_JOB_NAME=x \
		SLURM_STEPID=0 SLURM_SRUN_COMM_PORT=1 SLURM_SRUN_COMM_HOST=10.0.0.1 \
		SLURM_LAUNCH_NODE_IPADDR=10.0.0.1 SLURM_DISTRIBUTION=cyclic \
		SLURM_CPU_BIND=quiet,mask_cpu:0x1 SLURM_CPU_BIND_TYPE=mask_cpu: \
		SLURM_TASKS_PER_NODE=4 SLURM_NTASKS_PER_NODE=4 \
		SLURM_JOB_NODELIST=a SLURM_CPUS_ON_NODE=8 SLURM_CPUS_PER_TASK=2
	job -n 1 sh -c 'env | grep ^SLURM_ | sort'
	assert_eq "$output" 'SLURM_CPUS_ON_NODE=8
SLURM_CPUS_PER_TASK=2
SLURM_JOB_NAME=x
SLURM_JOB_NODELIST=a'
	job -n 1 --env SLURM_JOB_ID=78 sh -c 'echo "$SLURM_JOB_ID"'
	assert_eq "$output" 78
}

@test "rel-78 what Slurm and MPI left behind does not reach the ranks" {
	export SLURM_PROCID=4 SLURM_JOB_ID=77 PMI_RANK=3 PMIX_RANK=3 \
		OMPI_COMM_WORLD_RANK=3 MASTER_ADDR=old LOCAL_RANK=7
	job -n 2 "$PROG/envshow" SLURM_PROCID SLURM_JOB_ID PMI_RANK PMIX_RANK \
		OMPI_COMM_WORLD_RANK MASTER_ADDR LOCAL_RANK
	assert_eq "$(sed -n 's/^\[1\] //p' <<<"$output" | paste -sd,)" \
		'SLURM_PROCID unset,SLURM_JOB_ID unset,PMI_RANK unset,PMIX_RANK unset,OMPI_COMM_WORLD_RANK unset,MASTER_ADDR=127.0.0.1,LOCAL_RANK=1'
}
