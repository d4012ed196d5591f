#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# parts.bats - several programs in one job: xrun A : B.

load helper

@test "ranks are numbered through the programs, and each is told its place" {
	local tell='echo "$0 $XRUN_RANK/$XRUN_SIZE $XRUN_PART $XRUN_PART_RANK/$XRUN_PART_SIZE $RANK"'

	job -n 2 sh -c "$tell" a : sh -c "$tell" b : -n 3 sh -c "$tell" c
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" '[0] a 0/6 0 0/2 0
[1] a 1/6 0 1/2 1
[2] b 2/6 1 0/1 2
[3] c 3/6 2 0/3 3
[4] c 4/6 2 1/3 4
[5] c 5/6 2 2/3 5'
}

@test "-n, --chdir, --env and --buffer are of the program behind them" {
	local tell='echo "$(pwd) ${A-no} ${B-no} ${PYTHONUNBUFFERED-no}"'

	mkdir one two
	job --chdir one --env A=1 sh -c "$tell" : \
		--chdir two --env B=2 --buffer full sh -c "$tell" : sh -c "$tell"
	assert_eq "$(sort <<<"$output")" "[0] $PWD/one 1 no 1
[1] $PWD/two no 2 no
[2] $PWD no no 1"
}

@test "variables hold for each program that says nothing else" {
	local tell='echo "$(pwd) ${A-no} ${B-no}"'

	mkdir one two
	XRUN_CHDIR=one XRUN_ENV=A=1 job sh -c "$tell" : \
		--chdir two --env B=2 sh -c "$tell"
	assert_eq "$(sort <<<"$output")" "[0] $PWD/one 1 no
[1] $PWD/two no 2"
}

# bats test_tags=sanitize
@test "a program is looked for in its own directory" {
	mkdir one two
	printf '#!/bin/sh\necho one\n' >one/prog
	printf '#!/bin/sh\necho two\n' >two/prog
	chmod +x one/prog two/prog
	job --chdir one ./prog : --chdir two ./prog
	assert_eq "$(sort <<<"$output")" '[0] one
[1] two'
	job --chdir one ./prog : ./prog
	assert_eq "$status" 127
	assert_eq "$output" ''
	printf '#!/no/such/thing\n' >two/prog
	job --chdir one ./prog : --chdir two ./prog
	assert_has "$stderr" '^xrun: \./prog: No such file or directory \(its interpreter /no/such/thing\)'
}

@test "behind -- nothing splits" {
	job -- echo a : b
	assert_eq "$output" 'a : b'
	job echo a -- : b
	assert_eq "$output" 'a -- : b'
	job true : -- echo x : y
	assert_eq "$output" '[1] x : y'
	job sh -c :
	assert_eq "$status" 125
	assert_has "$stderr" "program 2 is missing.* try: -- before the first program"
	job -- sh -c :
	assert_eq "$status" 0
}

@test "what is wrong with several programs is said before any starts" {
	job "$PROG/stamp" ran : no-such-program
	assert_eq "$status" 127
	assert_eq "$stderr" 'xrun: no-such-program: not found in PATH'
	job "$PROG/stamp" ran : -n 0 true
	assert_eq "$status" 125
	job "$PROG/stamp" ran : -n 1000000 true : -n 1000000 true
	assert_eq "$status" 125
	job "$PROG/stamp" ran : --chdir /no/such true
	assert_eq "$stderr" 'xrun: --chdir: /no/such: No such file or directory'
	job "$PROG/stamp" ran : --grace 1s true
	assert_eq "$stderr" "xrun: --grace is for the whole job, and stands before 'true', which is not the first program   try: give it before the first program"
	job "$PROG/stamp" ran : --no-logs true
	assert_has "$stderr" "^xrun: --no-logs is for the whole job, and stands before 'true'"
	job "$PROG/stamp" ran : --env RANK=3 true
	assert_has "$stderr" '^xrun: --env: RANK is what xrun tells its ranks'
	XRUN_RANKS=2 job -n 1 "$PROG/stamp" ran : true
	assert_has "$stderr" '^xrun: XRUN_RANKS does not say how many .* program 2 has no -n'
	XRT_LOCAL_WORKER=w:0 job -n 2 "$PROG/stamp" ran : true
	assert_eq "$stderr" 'xrun: -n 3 in all: this TPU worker list has 8 devices a host, so 1 or 8   try: -n 8 in all, or --any-ranks'
	[ ! -e ran ]
	XRUN_RANKS=2 job -n 1 true : -n 1 true
	assert_eq "$status" 0
}

@test "the program that failed first is named" {
	job --grace 300ms -n 2 "$PROG/deaf" : "$PROG/die" --exit 3
	assert_eq "$status" 3
	assert_has "$stderr" "^xrun: rank 2 \\($PROG/die\\) failed first: exit status 3 after "
	assert_has "$stderr" '^  ranks 0, 1 were stopped by xrun '
}

@test "on a terminal the header counts the programs, and Ctrl-C names them" {
	status=0
	in_pty -d 20 -w begun -s '\003' -- "$XRUN" -n 1 sh -c 'exec sleep 60' : \
		-n 2 sh -c 'echo begun; exec sleep 60' >out || status=$?
	assert_eq "$status" 130
	assert_has "$(plain <out)" '^xrun: job [a-z0-9]+: 3 ranks of 2 programs( on .*)?, cpu'
	assert_has "$(plain <out)" '^  ranks? [0-9-]*1[0-9-]* .*, sh$'
}

@test "devices are dealt to all ranks in order" {
	mkdir -p root/dev
	touch root/dev/nvidia0 root/dev/nvidia1 root/dev/nvidia2 \
		root/dev/nvidiactl
	export XRUN_CUDA_ROOT=$PWD/root
	job --dry-run -n 2 true : echo
	assert_eq "$(awk '/^ +[0-9]+ / { print $1, $3, $4 }' <<<"$output")" \
		'0 cuda:0 true
1 cuda:1 true
2 cuda:2 echo'
}

@test "--dry-run, --show-env and the report know the programs" {
	need jq
	mkdir there
	job --dry-run -n 2 echo a : --chdir there --buffer full echo b
	assert_eq "$(head -n 1 <<<"$output")" \
		'3 ranks of 2 programs (given), platform cpu; nothing was started'
	assert_has "$output" '^part     0, ranks 0-1$'
	assert_has "$output" "^part     1, rank 2, in $PWD/there\$"
	assert_has "$output" '^agent    none \(--buffer full\)$'
	job --dry-run --json -n 2 echo a : --chdir there echo b
	json_holds --arg dir "$PWD/there" '[.ranks[].part] == [0, 0, 1] and
		.parts[1] == {program: .parts[0].program, argv: ["echo", "b"],
			preload: .parts[0].preload, first: 2, ranks: 1, cwd: $dir}' \
		<<<"$output"
	job --show-env=2 -n 2 true : --env A=1 true
	assert_has "$output" '^--env +A=1$'
	assert_has "$output" '^xrun +XRUN_PART=1$'
	job --report report --events events -n 2 echo a : --chdir there echo b
	assert_eq "$status" 0
	json_holds --arg here "$PWD" '.ranks == 3 and .cwd == $here and
		.argv == ["echo", "a", ":", "echo", "b"] and
		.parts == [{first: 0, ranks: 2, argv: ["echo", "a"]},
			{first: 2, ranks: 1, argv: ["echo", "b"],
				cwd: ($here + "/there")}] and
		[.rank[].part] == [0, 0, 1]' report
	json_holds -s '.[0].event == "job.start" and (.[0].parts | length) == 2' events
	job --report report --chdir there true
	json_holds --arg dir "$PWD/there" '.cwd == $dir and (has("parts") | not)' \
		report
}

@test "an error file can be written before anything else, by whatever program" {
	local dir

	# Nothing else is written by this job.
	job -n 16 sh -c '
		echo "{\"message\": {\"message\": \"no data\"}}" >"$TORCHELASTIC_ERROR_FILE"
		[ "$RANK" = 0 ] || exit 0
		cd "${TORCHELASTIC_ERROR_FILE%/*}"
		until [ "$(cat ./*.error.json | wc -l)" = 16 ]; do sleep 0.02; done
		exit 7'
	assert_eq "$status" 7
	assert_has "$stderr" '^  error.json: no data$'
	dir=$(echo "$XDG_STATE_HOME"/xrun/????)
	assert_eq "$(grep -lF 'no data' "$dir"/0/rank-00??.error.json | wc -l)" 16
	[ -s "$dir/job.json" ]
	[ -s "$dir/lock" ]
	rm -r "$dir"
	# Kept, too, where it is not the culprit's, as a job's that has ended.
	job -n 2 sh -c '
		[ "$RANK" = 0 ] || { : >"$TORCHELASTIC_ERROR_FILE"; exit 0; }
		until [ -e "${TORCHELASTIC_ERROR_FILE%/*}/rank-0001.error.json" ]; do
			sleep 0.02
		done
		exit 7'
	assert_eq "$status" 7
	dir=$(echo "$XDG_STATE_HOME"/xrun/????)
	[ -s "$dir/lock" ]
	rm -r "$dir"
	# And a job that writes nothing at all leaves nothing.
	job -n 2 sh -c 'exit 7'
	job -n 2 python3 -c ''
	[ ! -e "$(echo "$XDG_STATE_HOME"/xrun/????)" ]
}

@test "an error file of a job with --no-logs is read, and removed at its end" {
	local how

	for how in 'exit 7' 'kill -KILL $PPID; sleep 60'; do
		TMPDIR=/nonexistent job --no-logs -n 2 sh -c '
			[ "$RANK" = 1 ] || exec sleep 60
			echo "$TORCHELASTIC_ERROR_FILE" >file
			stat -c %a "${TORCHELASTIC_ERROR_FILE%/*}" >mode
			echo "{\"message\": {\"message\": \"no data\"}}" >"$TORCHELASTIC_ERROR_FILE"
			'"$how"
		assert_has "$(cat file)" "^$XDG_RUNTIME_DIR/xrun/[.]errors-.*-rank-0001[.]error[.]json\$"
		assert_eq "$(cat mode)" 700
		[ ! -e "$(cat file)" ]
		[ "$how" != 'exit 7' ] || assert_has "$stderr" '^  error.json: no data$'
	done
}

# bats test_tags=sanitize
@test "an error file of an attempt with --no-logs is not read in the next" {
	job --no-logs --restarts 1 -n 1 sh -c '
		[ "$XRUN_ATTEMPT" = 1 ] ||
			echo "{\"message\": {\"message\": \"the first\"}}" >"$TORCHELASTIC_ERROR_FILE"
		exit 7'
	assert_eq "$status" 7
	assert_eq "$(grep -c 'error.json: the first' <<<"$stderr")" 1
}

@test "a job that left an error file alone has a record of its end, its supervisor killed" {
	need jq
	job -n 1 sh -c '
		cd "${TORCHELASTIC_ERROR_FILE%/*}"
		until [ -s ../job.json ]; do sleep 0.02; done
		: >"$TORCHELASTIC_ERROR_FILE"
		kill -KILL $PPID
		sleep 60'
	assert_eq "$status" 125
	dir=$(echo "$XDG_STATE_HOME"/xrun/????)
	assert_has "$stderr" "what they wrote is in $dir"
	assert_eq "$(jq -r '"\(.exit) \(.reason)"' "$dir/job.json")" \
		'125 supervisor lost'
	[ -s "$dir/lock" ]
}

@test "a silent job that left an error file and ended well has a record of that" {
	need jq
	# What takes longer than 20 ms has a job.json before its end is known.
	job -n 1 sh -c '
		until [ -s "${TORCHELASTIC_ERROR_FILE%/*}/../job.json" ]; do
			sleep 0.02
		done
		echo "{}" >"$TORCHELASTIC_ERROR_FILE"'
	assert_eq "$status" 0
	dir=$(echo "$XDG_STATE_HOME"/xrun/????)
	[ -s "$dir/0/rank-0000.error.json" ]
	[ -s "$dir/lock" ]
	json_holds '.exit == 0 and .end != null and .reason != null' "$dir/job.json"
}

@test "a thousand programs are started" {
	unsanitized 'a thousand processes of it take memory and minutes'
	local -a words=(-n 1 "$PROG/argshow")

	for ((i = 1; i < 1000; i++)); do words+=(: "$PROG/argshow" "$i"); done
	job --show 0,999 "${words[@]}"
	assert_eq "$status" 0
	assert_has "$output" '^\[999\] argv\[1\] 3 393939$'
}

# --- --template ---------------------------------------------------------------

@test "--template puts a rank's place into its arguments" {
	job -n 2 --template echo '{rank}/{size} {local_rank} {node} {attempt} {{}}' plain : \
		--template echo '{part} {part_rank}/{part_size}' : echo '{rank}'
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" '[0] 0/4 0 0 0 {} plain
[1] 1/4 1 0 0 {} plain
[2] 1 0/1
[3] {rank}'
	job --template sh -c 'echo "$0" "$XRUN_JOB" "$1" "$XRUN_HOST"' '{job}' '{host}'
	read -r -a words <<<"$output"
	assert_eq "${words[0]} ${words[2]}" "${words[1]} ${words[3]}"
	mkdir '{rank}'
	ln -s "$PROG/argshow" '{rank}/show'
	job --template './{rank}/show' '{rank}'
	assert_eq "$status" 0
	assert_has "$output" '^argv\[1\] 1 30$'
}

@test "--template names what it does not know, before anything starts" {
	job --template "$PROG/stamp" 'ran{rnak}'
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: --template: argument 1: byte 3: '\\{rnak\\}' is not one of \\{rank\\} .*\\{part_size\\} \\(did you mean \\{rank\\}\\?\\)\$"
	job --template "$PROG/stamp" ran 'x{'
	assert_has "$stderr" "byte 1: '\\{' without its"
	[ -z "$(find . -name 'ran*')" ]
	[ -z "$(ls "$XDG_STATE_HOME/xrun")" ]
	job --no-template echo '{rnak}'
	assert_eq "$output" '{rnak}'
}

@test "--dry-run shows the arguments of each rank" {
	job --dry-run -n 2 --template echo 'out.{rank}'
	assert_has "$output" '^ +0 .* echo out\.0$'
	assert_has "$output" '^ +1 .* echo out\.1$'
}

@test "--template: --dry-run --json has the arguments of each rank" {
	job --dry-run --json -n 2 --template echo '{rank}' : -n 1 echo '{rank}'
	assert_eq "$(jq -c '[.ranks[].argv]' <<<"$output")" \
		'[["echo","0"],["echo","1"],null]'
	fits dry-run - <<<"$output"
}
