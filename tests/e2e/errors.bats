#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# errors.bats - what is wrong is said in one line, with what to try, and no
# rank was started; and what only looks wrong arrives byte for byte.
#
# Takes long, so it begins early.

load helper

# says CODE TEXT - the job before this was refused with these words.
says()
{
	assert_eq "$stderr" "xrun: $2"
	assert_eq "$status" "$1"
	assert_eq "$output" ''
	[ ! -e ran ]
}

# says_like CODE PATTERN - the same with an extended regular expression.
says_like()
{
	assert_has "$stderr" "^xrun: $2"
	assert_eq "$status" "$1"
	assert_eq "$(grep -c . <<<"$stderr")" 1
	[ ! -e ran ]
}

# --- programs ----------------------------------------------------------------

@test "rel-22 a missing program: 127, and once for all ranks" {
	job -n 8 ./train
	says 127 './train: not found   try: build it first'
	job -n 8 ./no/such/folder/train
	says 127 './no/such/folder/train: not found   try: build it first'
	echo >file
	job ./file/train
	says 127 './file/train: not found   try: build it first'
	job frobnicate
	says 127 'frobnicate: not found in PATH'
	job ''
	says 127 'the name of the program is empty'
}

@test "rel-22 python that is called python3 here" {
	mkdir bin
	ln -s "$(command -v python3 || echo /usr/bin/python3)" bin/python3
	try env PATH="$PWD/bin" "$XRUN" python train.py
	says 127 'python: not found in PATH   try: python3'
}

@test "options and verbs of other tools, and misspelt programs, have advice" {
	job --max-restarts 3 true
	says 125 'unknown option --max-restarts, as of torchrun   try: --restarts N'
	mkdir bin
	cp "$PROG/argshow" bin/trainer
	try env PATH="$PWD/bin" "$XRUN" run -n 2 trainer
	says 127 'run: not found in PATH, and no verb of xrun   try: xrun -n N PROGRAM'
	try env PATH="$PWD/bin" "$XRUN" list
	says 127 'list: not found in PATH, and no verb of xrun   try: xrun ps'
	try env PATH="$PWD/bin" "$XRUN" trianer
	says 127 'trianer: not found in PATH (did you mean trainer?)'
	cp "$PROG/argshow" bin/jdb
	cp "$PROG/argshow" bin/touch
	try env PATH="$PWD/bin" "$XRUN" job
	says 127 'job: not found in PATH'
	try env PATH="$PWD/bin" "$XRUN" nosuch
	says 127 'nosuch: not found in PATH'
	try env PATH="$PWD/bin" "$XRUN" top
	says 125 'top comes with a later version   try: xrun ps'
}

# bats test_tags=sanitize
@test "--version and -V print what the verb prints; -np2 is two ranks" {
	local option

	for option in --version -V '-n 2 -V'; do
		# shellcheck disable=SC2086 # a count and an option
		try "$XRUN" $option
		assert_eq "$status: $output" "0: $("$XRUN" version)"
	done
	job -np2 sh -c 'echo $WORLD_SIZE'
	assert_eq "$status: $(sort <<<"$output" | paste -sd' ')" '0: [0] 2 [1] 2'
	job -np2x true
	says 125 "-np: '2x' is not a number; 1 to 1000000"
}

@test "rel-80 a script without its x bit: 126 and who can run it" {
	echo 'print(1)' >train.py
	job -n 8 train.py
	says 126 'train.py: not executable   try: xrun -n 8 python3 train.py'
	job ./train.py
	says 126 './train.py: not executable   try: xrun -n 1 python3 ./train.py'
	echo >tool
	job ./tool
	says 126 './tool: not executable   try: chmod +x ./tool'
}

@test "rel-80 a program in the working directory that PATH does not have" {
	cp "$PROG/argshow" tool
	job tool
	says 127 'tool: not found in PATH   try: ./tool'
}

@test "rel-80 a script without #!: 126 and who can run it" {
	[ ! -e /proc/sys/fs/binfmt_misc/status ] ||
		skip 'binfmt_misc may run anything here'
	echo 'echo hi' >script
	chmod +x script
	job -n 2 ./script
	says 126 './script: neither a program nor a script with a #! line   try: xrun -n 2 sh ./script'
}

@test "rel-80 a script whose interpreter is missing: 127, and it is named" {
	printf '#!/no/such/interpreter\n' >script
	chmod +x script
	job -n 2 ./script
	says_like 127 '\./script: .*/no/such/interpreter'
}

@test "rel-80 a directory, a pipe and a loop of links: 126" {
	mkdir folder
	mkfifo -m 755 pipe
	ln -s loop loop
	job ./folder
	says 126 './folder: is a directory'
	job ./pipe
	says 126 './pipe: not a regular file'
	job ./loop
	says 126 './loop: Too many levels of symbolic links'
}

@test "rel-80 a program for another processor: 126, named once, with a hint" {
	# An ELF header that is right but for its machine: 243 is RISC-V.
	cp "$PROG/argshow" other
	printf '\363\0' | dd of=other bs=1 seek=18 conv=notrunc status=none
	[ "$(uname -m)" != riscv64 ] || printf '\76\0' |
		dd of=other bs=1 seek=18 conv=notrunc status=none
	job -n 4 ./other
	says_like 126 '\./other: .*(processor|machine|architecture)'
}

@test "rel-22 a program that somebody is writing to: 126, and it is named" {
	cp "$PROG/argshow" busy
	exec {writer}>>busy
	job -n 4 ./busy
	exec {writer}>&-
	says_like 126 '\./busy: Text file busy'
}

@test "rel-81 arguments near ARG_MAX: 126, explained with sizes" {
	local fill

	# A stack of 512 KiB allows 128 KiB of arguments and environment: enough
	# for xrun, too little for a rank with its variables.
	fill=$(printf '%130500s' x)
	try env -i HOME="$HOME" \
		XDG_STATE_HOME="$XDG_STATE_HOME" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" \
		prlimit --stack=524288:524288 "$XRUN" -n 2 "$PROG/argshow" "$fill"
	says_like 126 '.*argshow: .*[0-9]+ (bytes|KiB)'
}

@test "rel-23 a missing working directory is an error, never another directory" {
	job --chdir /no/such "$PROG/stamp" ran
	says 125 '--chdir: /no/such: No such file or directory'
	mkdir there
	job --chdir there pwd
	assert_eq "$output" "$PWD/there"
	XRUN_CHDIR=there job pwd
	assert_eq "$output" "$PWD/there"
}

# --- numbers and limits ------------------------------------------------------

@test "rel-65 a number of ranks out of range is answered with the range" {
	job -n 0 "$PROG/stamp" ran
	says 125 "-n: '0' is too small; 1 to 1000000"
	job -n -1 "$PROG/stamp" ran
	says 125 "-n: '-1' is too small; 1 to 1000000"
	job -n 8x "$PROG/stamp" ran
	says 125 "-n: '8x' is not a number; 1 to 1000000"
	job --ranks=1e9 "$PROG/stamp" ran
	says 125 "--ranks: '1e9' is not a number; 1 to 1000000"
	job -np 2147483648 "$PROG/stamp" ran
	says 125 "-np: '2147483648' is too large; 1 to 1000000"
	job -n 99999999999999999999 "$PROG/stamp" ran
	says 125 "-n: '99999999999999999999' is too large; 1 to 1000000"
	job -n '' "$PROG/stamp" ran
	says 125 "-n: '' is not a number; 1 to 1000000"
	XRUN_RANKS=0 job "$PROG/stamp" ran
	says 125 "XRUN_RANKS: '0' is too small; 1 to 1000000"
	job -n
	says 125 '-n needs a number; 1 to 1000000'
}

@test "rel-65 more ranks than limits allow: the one that bites, and a number" {
	[ "$(id -u)" = 0 ] || skip 'raising limits needs root'
	[ "$(cat /proc/sys/kernel/pid_max)" -gt 31999 ] ||
		skip 'kernel.pid_max bites first here'
	try prlimit --nofile=1048576:1048576 \
		--nproc=31999:31999 setpriv --reuid=65534 --clear-groups \
		"$XRUN" -n 100000 true
	if [[ $stderr == *'failed to set'* ]]; then
		skip 'descriptors cannot be raised to 1048576 here'
	fi
	says 125 '100000 ranks need 300048 descriptors; this shell allows 1048576, and 31999 processes (ulimit -u)   try: -n 10000 or less'
}

@test "rel-44 few descriptors: counted before the first rank" {
	try prlimit --nofile=64:64 "$XRUN" -n 100 \
		"$PROG/stamp" ran
	# 3 of each rank, 48 of xrun, and those that xrun inherits
	says_like 125 '100 ranks need 3(4[89]|5[0-9]) descriptors; this shell allows 64(,.*)?   try: -n [1-4] or less$'
	try prlimit --nofile=64:64 "$XRUN" -n 4 "$PROG/argshow"
	assert_eq "$status" 0
	assert_eq "$(grep -c 'argv\[0\]' <<<"$output")" 4
	try prlimit --nofile=30:30 "$XRUN" -n 1 \
		"$PROG/stamp" ran
	says_like 125 '1 rank needs 5[0-9] descriptors; this shell allows 30.*   try: ulimit -Hn 5[0-9]'
}

@test "rel-44 a soft limit is raised for xrun, and not for the ranks" {
	try prlimit --nofile=64: "$XRUN" -n 40 \
		bash -c 'ulimit -Sn'
	assert_eq "$status" 0
	assert_eq "$(sort -u <<<"${output//\[??\] /}")" 64
}

@test "rel-43 few processes: all is undone, and the limit is named" {
	for_user 64999
	try timeout 20 setpriv --reuid=64999 --clear-groups \
		prlimit --nproc=12:12 "$XRUN" -n 30 sleep 60
	assert_eq "$status" 125
	assert_has "$stderr" '(ulimit -u)'
	[ -z "$(left_behind '.*')" ]
}

@test "rel-45 little memory: an end with words, never a hang" {
	local size

	unsanitized 'they reserve more address space than is allowed here'
	# Below 5 MiB the kernel may have no room for the program, or its loader
	# none for libraries, and end it before its first step.
	for size in 5 6 7 24 64; do
		try timeout -k 1 9 \
			prlimit --as=$((size << 20)) "$XRUN" -n 16 "$PROG/argshow"
		printf '%s MiB: %s\n%s\n' "$size" "$status" "$stderr"
		case $status in
		0) assert_eq "$(grep -c 'argv\[0\]' <<<"$output")" 16 ;;
		127) assert_has "$stderr" 'shared libraries|shared object' ;;
		125) assert_has "$stderr" '^xrun: ' ;;
		*) return 1 ;;
		esac
		[ -z "$(left_behind '.*')" ]
	done
}

# --- options -----------------------------------------------------------------

# bats test_tags=sanitize
@test "rel-66 an unknown option is answered with the one that was meant" {
	job --rank 3 "$PROG/stamp" ran
	says 125 'unknown option --rank (did you mean --ranks?)'
	job --timout 3s "$PROG/stamp" ran
	says 125 'unknown option --timout (did you mean --timeout?)'
	job --no-log "$PROG/stamp" ran
	says 125 'unknown option --no-log (did you mean --no-logs?)'
	job -y "$PROG/stamp" ran
	says 125 'unknown option -y'
	job --xyzzyplugh "$PROG/stamp" ran
	says 125 'unknown option --xyzzyplugh'
	job --doctor
	says 125 'unknown option --doctor (did you mean xrun doctor?)'
}

@test "rel-66 a value that is missing or wrong names option, text and what would do" {
	job --chdir
	says 125 '--chdir needs a DIR'
	job --timeout 3x "$PROG/stamp" ran
	says 125 "--timeout: '3x' is not a time such as 250ms, 30s, 10m or 1h30m"
	job --grace=-1s "$PROG/stamp" ran
	says_like 125 "--grace: '-1s' is not a time"
	job --on-failure panic "$PROG/stamp" ran
	says 125 "--on-failure: 'panic' is not one of stop|continue"
	job --exit-code last "$PROG/stamp" ran
	says 125 "--exit-code: 'last' is not one of first|max|rank0"
	job --stop-signal FOO "$PROG/stamp" ran
	says 125 "--stop-signal: 'FOO' is not a signal such as TERM, INT or 15"
	job --buffer block "$PROG/stamp" ran
	says 125 "--buffer: 'block' is not one of line|full|none"
	job --color red "$PROG/stamp" ran
	says 125 "--color: 'red' is not one of auto|always|never"
	job --interrupt no "$PROG/stamp" ran
	says 125 "--interrupt: 'no' is not one of stop|ask"
	job --port-hold maybe "$PROG/stamp" ran
	says 125 "--port-hold: 'maybe' is not one of auto|serve|always|never"
	job --platform abacus "$PROG/stamp" ran
	says 125 "--platform: 'abacus' is not one of auto|cpu|cuda|tpu"
	job --env-profile foo "$PROG/stamp" ran
	says 125 "--env-profile: 'foo' is not one of auto|none|torch|xla|xrt|pjrt|xrun"
	XRUN_TIMEOUT=soon job "$PROG/stamp" ran
	says 125 "XRUN_TIMEOUT: 'soon' is not a time such as 250ms, 30s, 10m or 1h30m"
	job -n 2 --show 9 "$PROG/stamp" ran
	says_like 125 "--show: '9'.* 0 to 1"
	job -n 2 --show x "$PROG/stamp" ran
	says_like 125 "--show: 'x' is not "
	job --show-env=5 -n 2 "$PROG/stamp" ran
	says 125 '--show-env: there is no rank 5 here, only 0 to 1'
	job --show-env=1 -n 1 true
	says 125 '--show-env: there is no rank 1 here, only 0'
}

@test "rel-66 an option given twice: the last one counts" {
	job --ranks 2 -n 3 "$PROG/argshow"
	assert_eq "$status" 0
	assert_eq "$(grep -c 'argv\[0\]' <<<"$output")" 3
	XRUN_RANKS=5 job -n 2 "$PROG/argshow"
	assert_eq "$(grep -c 'argv\[0\]' <<<"$output")" 2
}

@test "what is not built yet is refused and never guessed" {
	local name word

	sed -n '/run_options_later\[\]/,/^};/s/^\t{ "\([^"]*\)".*/\1/p' \
		"$root/launcher/job/options_table.c" >later
	while read -r name; do
		job "--$name=1" "$PROG/stamp" ran
		says 125 "--$name comes with a later version"
		job "--no-$name" "$PROG/stamp" ran
		says 125 "--no-$name comes with a later version"
		word=${name^^}
		word=XRUN_${word//-/_}
		[ "$word" != XRUN_JOB ] || continue # ranks are told it
		try env "$word=1" "$XRUN" "$PROG/stamp" ran
		says 125 "$word comes with a later version"
	done <later
	[ "$(wc -l <later)" -gt 5 ]
	[ ! -e ran ]
	mkdir bin
	while read -r name; do
		try env PATH="$PWD/bin" "$XRUN" "$name"
		says 125 "$name comes with a later version"
	done < <(sed -n 's/^\t{ "\([^"]*\)", NULL, .*/\1/p' \
		"$root/launcher/cmd/verb.c")
	ln -s "$PROG/argshow" bin/node
	try env PATH="$PWD/bin" "$XRUN" node
	says 125 'node comes with a later version   try: xrun -- node, for the program of that name'
}

@test "options of other launchers are answered with xrun's own" {
	job --nproc-per-node=8 true
	says 125 'unknown option --nproc-per-node, as of torchrun   try: -n N'
	job -ppn 2 true
	says 125 'unknown option -ppn, as of mpiexec   try: -n N'
	job -x PATH true
	says 125 'unknown option -x, as of mpirun   try: --env NAME=VALUE; ranks inherit what xrun was started with'
	job --oversubscribe true
	says 125 'unknown option --oversubscribe, as of mpirun   try: without it: any number of ranks is started'
	job --timeout 5 true
	says 125 "--timeout: '5' has no unit, such as 5s, 5m or 5h"
	job -n 1 true : -genv A 1 true
	says_like 125 'unknown option -genv, as of mpiexec'
	job --timeout 1h30m --grace 1m0.5s true
	assert_eq "$status" 0
}

# bats test_tags=sanitize
@test "options and verbs in a place that is not theirs are told the right one" {
	job true : -n 2
	says 125 "program 2 is missing: behind the last ':' are options, beginning with '-n', and no program   try: the program behind them"
	job --show-env 1 true
	says 125 "--show-env: its value stands behind a '=', and '1' would be the program   try: --show-env=1, or -- before the program"
	job -- help
	says 127 "help: not found in PATH; a verb of xrun stands first, before options and without --   try: xrun help"
	job --config none config show
	says 127 "config: not found in PATH; a verb of xrun stands first, before options and without --   try: xrun config"
	job --time 3s true
	says 125 'unknown option --time, as of srun   try: --timeout TIME'
	job --log x true
	says 125 'unknown option --log, as of others   try: --log-dir DIR'
	job -host a true
	says_like 125 'unknown option -host, as of mpirun'
}

@test "a program named like a verb runs behind --" {
	mkdir bin
	ln -s "$PROG/argshow" bin/ps
	PATH=$PWD/bin:$PATH job -- ps : x
	assert_eq "$status" 0
	assert_eq "$(sed -n 2p <<<"$output")" 'argv[1] 1 3a'
}

# --- accelerators ------------------------------------------------------------

# four_gpus - a machine with four of them, as far as device files go.
four_gpus()
{
	mkdir -p root/dev
	touch root/dev/nvidia0 root/dev/nvidia1 root/dev/nvidia2 \
		root/dev/nvidia3 root/dev/nvidiactl
	export XRUN_CUDA_ROOT=$PWD/root
}

# devices - who has what, by --dry-run.
devices()
{
	jq -r '.ranks | map(.device) | join(" ")' <<<"$output"
}

@test "rel-77 CUDA_VISIBLE_DEVICES decides who gets what" {
	local -A want=(['0,1']='cuda:0 cuda:1' ['3,1']='cuda:3 cuda:1'
		['GPU-11111111']='cuda:GPU-11111111'
		['MIG-2222']='cuda:MIG-2222' ['-1']=cpu ['NoDevFiles']=cpu)
	local mask

	need jq
	four_gpus
	job --dry-run --json true
	assert_eq "$(devices)" 'cuda:0 cuda:1 cuda:2 cuda:3'
	for mask in "${!want[@]}"; do
		CUDA_VISIBLE_DEVICES=$mask job --dry-run --json true
		assert_eq "$stderr" ''
		assert_eq "$(devices)" "${want[$mask]}"
	done
	CUDA_VISIBLE_DEVICES='' job --dry-run --json true
	assert_eq "$(devices)" cpu
}

@test "rel-77 a mask that cannot be meant is refused with its byte" {
	four_gpus
	CUDA_VISIBLE_DEVICES=0,0 job "$PROG/stamp" ran
	says 125 "CUDA_VISIBLE_DEVICES: '0' (byte 2) is there twice"
	CUDA_VISIBLE_DEVICES=9 job "$PROG/stamp" ran
	says 125 "CUDA_VISIBLE_DEVICES: '9' (byte 0) is out of range, the 4 devices here are 0 to 3"
	CUDA_VISIBLE_DEVICES=0,x job "$PROG/stamp" ran
	says 125 "CUDA_VISIBLE_DEVICES: 'x' (byte 2) is neither an index nor GPU-... nor MIG-..."
	job --devices 7 "$PROG/stamp" ran
	says 125 "--devices: '7' (byte 0) is out of range, the 4 devices here are 0 to 3"
}

# bats test_tags=sanitize
@test "rel-77 devices are dealt, shared and hidden" {
	four_gpus
	job --devices 0-2 -n 2 "$PROG/envshow" CUDA_VISIBLE_DEVICES XRUN_DEVICE
	assert_has "$output" '^\[0\] CUDA_VISIBLE_DEVICES=0,2$'
	assert_has "$output" '^\[0\] XRUN_DEVICE=cuda:0,cuda:2$'
	assert_has "$output" '^\[1\] CUDA_VISIBLE_DEVICES=1$'
	job -n 8 "$PROG/envshow" XRUN_DEVICE
	assert_has "$output" '^\[6\] XRUN_DEVICE=cuda:2$'
	job --devices none -n 2 "$PROG/envshow" CUDA_VISIBLE_DEVICES XRUN_DEVICE
	assert_has "$output" '^\[1\] CUDA_VISIBLE_DEVICES=-1$'
	assert_has "$output" '^\[1\] XRUN_DEVICE=cpu$'
	job --platform cpu "$PROG/envshow" XRUN_DEVICE
	assert_eq "$output" XRUN_DEVICE=cpu
}

@test "a platform that is not here is refused by name" {
	mkdir -p root/dev
	XRUN_CUDA_ROOT=$PWD/root job --platform cuda "$PROG/stamp" ran
	says_like 125 '--platform cuda: no device here'
	mkdir -p root/sys
	XRUN_TPU_ROOT=$PWD/root job --platform=tpu "$PROG/stamp" ran
	says_like 125 '--platform tpu: no device here'
}

# bats test_tags=sanitize
@test "rel-76 a TPU shape that does not add up is refused with the sum" {
	export TPU_ACCELERATOR_TYPE=v4-16 TPU_CHIPS_PER_HOST_BOUNDS=2,2,1 \
		TPU_WORKER_ID=0
	TPU_HOST_BOUNDS=2,2 job "$PROG/stamp" ran
	says 125 "TPU_HOST_BOUNDS: '2,2' has 2 factors, not x,y,z"
	TPU_HOST_BOUNDS=1,1,2 job "$PROG/stamp" ran
	says 125 'TPU_HOST_BOUNDS 1,1,2 x TPU_CHIPS_PER_HOST_BOUNDS 2,2,1 = 8 processes, but 1 host x 4 ranks = 4'
	export TPU_HOST_BOUNDS=1,1,1
	TPU_PROCESS_ADDRESSES=a:1,b:2 job "$PROG/stamp" ran
	says 125 'TPU_PROCESS_ADDRESSES has 2 addresses, but 1 host x 4 ranks = 4 processes'
	TPU_VISIBLE_CHIPS=0,0 job "$PROG/stamp" ran
	says 125 "TPU_VISIBLE_CHIPS: '0' (byte 2) is there twice"
	TPU_HOST_BOUNDS=1,1,2 TPU_WORKER_HOSTNAMES=a,b job "$PROG/envshow" \
		--rank 3 TPU_PROCESS_BOUNDS CLOUD_TPU_TASK_ID TPU_PROCESS_PORT
	assert_eq "$(cut -d' ' -f2 <<<"$output" | paste -sd' ')" \
		'TPU_PROCESS_BOUNDS=2,2,2 CLOUD_TPU_TASK_ID=3 TPU_PROCESS_PORT=8479'
}

# --- bytes -------------------------------------------------------------------

@test "rel-73 arguments arrive byte for byte" {
	local arguments=("it's" '"' '$(reboot)' '`id`' $'new\nline' '*' '' ' '
		"\\" $'\xff\xfe\x01' '-n' '--help' '--' 'ünïcode' '{rank}' '%s%n')

	"$PROG/argshow" "${arguments[@]}" >want
	job -- "$PROG/argshow" "${arguments[@]}"
	assert_eq "$status" 0
	assert_eq "$output" "$(cat want)"
	job -n 2 "$PROG/argshow" "${arguments[@]}"
	assert_eq "$(sed -n 's/^\[1\] //p' <<<"$output")" "$(cat want)"
}

@test "rel-72 values of variables arrive byte for byte, odd names too" {
	local long

	long=$(printf '%100000s' x | tr ' ' y)
	E=$'a\nb=c' job -n 2 "$PROG/envshow" E
	assert_has "$output" '^\[1\] E=a\\nb=c$'
	job --env $'F=x\ny=$(z) "' "$PROG/envshow" F
	assert_eq "$output" 'F=x\ny=$(z) "'
	job --env G= --env H==h "$PROG/envshow" G H
	assert_eq "$output" $'G=\nH==h'
	LONG=$long job "$PROG/envshow" LONG
	assert_eq "$output" "LONG=$long"
	try env 'odd name=1' $'B=\xff\xfe' "$XRUN" \
		"$PROG/envshow" 'odd name' B
	assert_eq "$output" $'odd name=1\nB=\xff\xfe'
}

@test "rel-72 a bad name of a variable is refused" {
	job --env 'odd name=1' "$PROG/stamp" ran
	says 125 "--env: 'odd name' is no name of a variable"
	job --env $'new\nline=1' "$PROG/stamp" ran
	assert_eq "$status" 125
	[ ! -e ran ]
}

# --- preloading --------------------------------------------------------------

@test "rel-79 a static, a set-user-id and a damaged program run without the agent" {
	need cc
	printf '#include <stdio.h>\nint main(void) { puts("ran well"); return 0; }\n' >p.c
	cc -static p.c -o static || skip 'no static libc'
	job -n 2 ./static
	assert_eq "$status" 0
	assert_eq "$(grep -c 'ran well' <<<"$output")" 2
	job --dry-run ./static
	assert_has "$output" '^agent +none: the program is statically linked'
	cc p.c -o secure
	chmod u+s secure
	job ./secure
	assert_eq "$output" 'ran well'
	assert_eq "$status" 0
	assert_eq "$stderr" ''
}

@test "rel-79 a library to be preloaded that is missing: the rank still runs" {
	LD_PRELOAD=/no/such.so job "$PROG/envshow" LD_PRELOAD
	assert_eq "$status" 0
	assert_has "$output" '^LD_PRELOAD=/no/such.so:.*libxrun-preload.so$'
}

# --- files -------------------------------------------------------------------

@test "rel-47 a state directory that cannot be made: 125 before the first rank" {
	echo >file
	XDG_STATE_HOME=$PWD/file job "$PROG/stamp" ran
	says_like 125 "$PWD/file/xrun/[a-z0-9]{4}: Not a directory   try: --log-dir DIR or --no-logs$"
	XDG_STATE_HOME=$PWD/file job --no-logs "$PROG/argshow"
	assert_eq "$status" 0
}

@test "rel-47 a read-only state directory: 125, and --no-logs runs" {
	need_mounts -m
	mkdir ro
	try unshare -m sh -c 'mount -t tmpfs -o ro none ro &&
		XDG_STATE_HOME=$PWD/ro exec "$@"' sh "$XRUN" "$PROG/stamp" ran
	says_like 125 ".*/ro/xrun/[a-z0-9]{4}: Read-only file system   try: --log-dir DIR or --no-logs$"
	try unshare -m sh -c 'mount -t tmpfs -o ro none ro &&
		XDG_STATE_HOME=$PWD/ro exec "$@"' sh "$XRUN" --no-logs echo hi
	assert_eq "$status $output" '0 hi'
}

@test "rel-47 somebody else's state directory: 125" {
	[ "$(id -u)" = 0 ] || skip 'another user is needed'
	chmod 700 "$XDG_STATE_HOME"
	chmod 755 "$BATS_TEST_TMPDIR"
	try setpriv --reuid=65534 --clear-groups "$XRUN" true
	says_like 125 ".*: Permission denied   try: --log-dir DIR or --no-logs$"
}

# The job of both tests: two ranks with some 3 MB each for a disk of 4 MiB on
# which there are 3 already.
full_disk()
{
	need_mounts -m
	mkdir disk
	cat >script <<-'END'
		mount -t tmpfs -o size=4m none disk
		mkdir disk/state
		head -c 3000000 /dev/zero >disk/filler
		export XDG_STATE_HOME=$PWD/disk/state
		mkfifo words
		timeout -s KILL 15 "$XRUN" -n 2 --timeout 10s "$@" \
			>out 2>words &
		exec 3<words
		while IFS= read -r line <&3; do
			printf '%s\n' "$line" >>err
			case $line in *'file system full'*) break ;; esac
		done
	END
}

@test "rel-46 a full disk: ranks wait, one word about it, and nothing is lost" {
	full_disk
	cat >>script <<-'END'
		rm disk/filler
		mount -o remount,size=64m disk
		cat <&3 >>err &
		wait %1
		status=$?
		for rank in 0 1; do
			"$PROG/verify" raw \
				disk/state/xrun/latest/0/rank-000$rank/stdout \
				ref.$rank.out || status=99
		done
		exit $status
	END
	try unshare -m bash script "$PROG/spew" --lines 30000 --copy "$PWD/ref"
	printf '%s\n' "$output"
	assert_eq "$status" 0
	assert_eq "$(grep -c 'file system full' err)" 1
	assert_has "$(cat err)" '^xrun: rank [01]: log file system full \(/[^)]*\): ranks wait until there is room; nothing is lost while the job goes on$'
	"$PROG/verify" merged --ranks 2 --lines 30000 --joins out
}

@test "rel-46 a disk that stays full: Ctrl-C and --timeout still work" {
	full_disk
	cat >>script <<-'END'
		cat <&3 >>err &
		kill -TERM %1
		wait %1
	END
	try unshare -m bash script --grace 500ms "$PROG/spew" --lines 30000
	assert_eq "$status" 143
	assert_has "$(cat err)" '^xrun: SIGTERM'
}

# log_dir DIR - a job that keeps its files there.
log_dir()
{
	job --log-dir "$1" -n 2 echo hi
}

@test "--log-dir that is absent or empty becomes the job's folder" {
	log_dir a/b
	assert_eq "$status" 0
	assert_eq "$(cat a/b/0/rank-0001/stdout)" hi
	assert_eq "$(stat -c %a a/b/0/rank-0001 a/b/0/rank-0001/stdout | paste -sd' ')" \
		'700 600'
	mkdir empty
	XRUN_LOG_DIR=empty job -n 2 echo hi
	assert_eq "$(cat empty/0/rank-0001/stdout)" hi
	[ -z "$(ls "$XDG_STATE_HOME/xrun")" ]
}

@test "--log-dir with something in it gets a folder for each job" {
	mkdir used
	echo mine >used/file
	log_dir used
	log_dir used
	assert_eq "$status" 0
	assert_eq "$(cat used/????/0/rank-0001/stdout)" $'hi\nhi'
	assert_eq "$(cat used/file)" mine
}

@test "--log-dir knows {job} and {host}, and a job without output leaves nothing" {
	need jq
	job --log-dir 'logs/{job}-{host}' --report report -n 2 echo hi
	assert_eq "$(ls logs)" "$(jq -r .job report)-$(uname -n)"
	mkdir empty
	job --log-dir empty -n 2 true
	[ -d empty ]
	assert_eq "$(ls -A empty)" ''
	job --log-dir absent -n 2 true
	[ ! -e absent ]
}

@test "--log-dir that is no directory is refused" {
	echo >file
	job --log-dir file "$PROG/stamp" ran
	says_like 125 ".*/file(/[a-z0-9]{4})?: Not a directory   try: --log-dir DIR or --no-logs$"
	job --log-dir /proc/no/such "$PROG/stamp" ran
	says_like 125 "/proc/no.*: No such file or directory   try: --log-dir DIR or --no-logs$"
}

@test "rel-82 --log-dir follows one's own links, not another user's" {
	mkdir full empty
	touch full/file
	ln -s full mine
	job --log-dir mine -n 2 echo hi
	assert_eq "$status" 0
	assert_eq "$(cat full/????/0/rank-0001/stdout)" hi
	[ "$(id -u)" = 0 ] || skip 'another user is needed'
	ln -s empty foreign1
	ln -s full foreign2
	chown -h 65534 foreign1 foreign2
	for link in foreign1 foreign2; do
		job --log-dir "$link" "$PROG/stamp" ran
		says_like 125 "--log-dir: .*$link: is another user's symbolic link"
	done
	# In the midst of the path, and behind a link of one's own.
	mkdir -p top/empty
	ln -s top foreign3
	ln -s foreign3/empty mine2
	chown -h 65534 foreign3
	for path in foreign3/empty foreign3/new foreign3/empty/../new mine2 \
		"$PWD/foreign3/new/{job}"; do
		for more in --quiet --job=named; do
			job "$more" --log-dir "$path" "$PROG/stamp" ran
			says_like 125 "--log-dir: .*/foreign3: is another user's symbolic link"
		done
	done
	assert_eq "$(ls empty top/empty)" $'empty:\n\ntop/empty:'
}

@test "--report and --events that cannot be written: 125 before the first rank" {
	mkdir folder
	job --report /no/such/file "$PROG/stamp" ran
	says 125 '--report: /no/such/file: No such file or directory'
	job --events /no/such/file "$PROG/stamp" ran
	says 125 '--events: /no/such/file: No such file or directory'
	job --report folder "$PROG/stamp" ran
	says 125 '--report: folder: Is a directory'
}

@test "--report is written where xrun was started, not in --chdir" {
	mkdir folder
	job --chdir folder --report report --events events true
	assert_eq "$status" 0
	[ -s report ]
	[ -s events ]
	assert_eq "$(ls folder)" ''
}

@test "rel-61 no HOME, no passwd entry: state below /var/tmp, or said" {
	for_user 64998
	try env -u HOME -u XDG_STATE_HOME setpriv \
		--reuid=64998 --clear-groups "$XRUN" -n 2 echo hi
	assert_eq "$status" 0
	[ -d /var/tmp/xrun-64998/latest/0/rank-0001 ] ||
		[ -d /var/tmp/xrun-64998/xrun/latest ]
	rm -r /var/tmp/xrun-64998
}

# homeless ARG... - a job of user 64997, who has no home; and what becomes of
# its folder below /var/tmp, which this made.
homeless()
{
	try env -u HOME -u XDG_STATE_HOME setpriv \
		--reuid=64997 --clear-groups "$XRUN" "$@"
	rm -rf "$shared"
}

# bats test_tags=sanitize
@test "without a HOME a folder that somebody else laid in /var/tmp is refused" {
	for_user 64997
	shared=/var/tmp/xrun-64997
	local advice='   try: HOME=DIR, --log-dir DIR or --no-logs$'

	rm -rf "$shared"
	chmod 755 "$BATS_TEST_TMPDIR" # it writes "ran" nowhere
	mkdir -m 0777 theirs
	ln -s "$PWD/theirs" "$shared"
	for job in '' '--job=mine'; do
		homeless $job -n 2 echo hi
		says_like 125 "$shared: is no folder, .*$advice"
		ln -s "$PWD/theirs" "$shared"
	done
	rm "$shared"
	mkdir -m 0777 "$shared"
	homeless -n 2 echo hi
	says_like 125 "$shared: belongs to user 0, .*$advice"
	assert_eq "$(ls theirs)" ''
	# What is ours is for us alone from then on.
	install -d -m 0777 -o 64997 "$shared"
	try env -u HOME -u XDG_STATE_HOME setpriv \
		--reuid=64997 --clear-groups "$XRUN" -n 2 echo hi
	assert_eq "$status" 0
	assert_eq "$(stat -c '%a %u' "$shared")" '700 64997'
	[ -d "$shared/latest/0/rank-0001" ]
	rm -r "$shared"
}

@test "--log-dir in a folder that others may write makes a folder a job" {
	[ "$(id -u)" = 0 ] || skip 'another user is needed'
	mkdir -m 0775 shared
	chown 64997 shared
	for _ in 1 2; do
		job --log-dir shared -n 2 echo hi
		assert_eq "$status" 0
	done
	assert_eq "$(find shared -mindepth 1 -maxdepth 1 | wc -l)" 2
	assert_eq "$(cat shared/*/0/rank-0001/stdout)" $'hi\nhi'
	job --log-dir shared --job mine -n 2 echo hi
	assert_eq "$status" 0
	chown 64997 shared/mine
	job --log-dir shared --job mine "$PROG/stamp" ran
	says_like 125 '--job: .*/shared/mine is there, and other users may write into it   try: another name, or --log-dir DIR$'
	[ ! -e shared/mine/1 ]
}

@test "a name that would steer the terminal is tamed in xrun's words" {
	job -n 2 $'./no\e]0;title\a\xc2\x9b2J'
	assert_eq "$status" 127
	assert_eq "$stderr" 'xrun: ./no?]0;title???2J: not found   try: build it first'
}

@test "--report and --events of one file are refused before the first rank" {
	ln -s one link
	: >one
	try "$XRUN" --report one --events link "$PROG/stamp" ran
	says_like 125 '--events: link: this is the file of --report, too   try: another file for one of them$'
	[ ! -e ran ]
	[ ! -s one ]
	# What the caller opened has one place, and they share it.
	try "$XRUN" --report - --events - true
	assert_eq "$status" 0
	assert_eq "$(jq -c 'has("exit")' <<<"$output" | tail -n 1)" true
}

# bats test_tags=sanitize
@test "too few descriptors for xrun itself: the limit is named" {
	try bash -c 'ulimit -n 8; exec "$@"' - "$XRUN" "$PROG/stamp" ran
	says_like 125 'ulimit -n is 8: too few descriptors for xrun itself   try: ulimit -n 1024$'
	[ ! -e ran ]
}

# steers TEXT - how many of its lines hold what a terminal would obey but colour.
steers()
{
	LC_ALL=C sed -E 's/\x1b\[[0-9;:]*m//g' <<<"$1" | LC_ALL=C grep -cP \
		'[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' || true
}

@test "rel-16 the account of a failure is tame, whatever ranks called themselves and wrote" {
	local name=$'./pro\e]0;pwned\a\nxrun: gram'

	cat >python3 <<-'END'
		#!/bin/sh
		until [ -d "${TORCHELASTIC_ERROR_FILE%/*}" ]; do sleep 0.01; done
		cat >"$TORCHELASTIC_ERROR_FILE" <<-'JSON'
		{"message":{"message":"boo \u001b]0;pwned\u0007\u001b[2J \u001b[31mred \u009b2J\u0001\nmore"}}
		JSON
		exit 3
	END
	chmod +x python3
	job -n 2 ./python3
	assert_eq "$status" 3
	assert_has "$stderr" $'^  error.json: boo  \x1b\\[31mred \x1b\\[0m$'
	assert_eq "$(steers "$stderr")" 0

	cp /bin/false "$name"
	job -n 1 "$name" : -n 1 sleep 60
	assert_eq "$status" 1
	assert_has "$stderr" \
		'^xrun: rank 0 \(\./pro\?\]0;pwned\?\?xrun: gram\) failed first'
	assert_eq "$(steers "$stderr")" 0

	printf '#!/no/such\033]0;T\007\n' >script
	chmod +x script
	job -n 2 ./script
	assert_eq "$status" 127
	assert_has "$stderr" 'its interpreter /no/such\?\]0;T\?\)'
	assert_eq "$(steers "$stderr")" 0
}

# bats test_tags=sanitize
@test "rel-16 a process left behind cannot begin a line by its name" {
	local name=$'a\nxrun: \e[2Jb'

	[ "$(steers "$name")" -eq 1 ]
	cp /bin/sleep "$name"
	job -n 2 sh -c 'setsid "./$1" 60 >/dev/null 2>&1 </dev/null &
		until grep -q 2Jb "/proc/$!/comm"; do sleep 0.01; done' - "$name"
	assert_has "$stderr" 'outlived the ranks .*a\?xrun: \?\[2Jb \(pid'
	assert_eq "$(steers "$stderr")" 0
}

@test "rel-16 a file of settings cannot steer the terminal, nor begin a line" {
	local file=$'se\e]0;T\at.json' text

	for text in '{"a\nxrun: b\tc\u001b[2J": 1}' '{"show": "\n\u001b[2J"}' \
		'{"env": {"A\n\u009b=": "x"}}' '{"ranks": "\n\t\u001b[2J"}' \
		$'{"si\e[2Jze": 1}' $'{"show": "\x9b"}'; do
		printf '%s' "$text" >"$file"
		job --config "$file" -n 2 true
		assert_eq "$status" 125
		assert_eq "$(steers "$stderr")" 0
		assert_eq "$(wc -l <<<"$stderr")" 1
		try "$XRUN" config check "$file"
		assert_eq "$(steers "$stderr")" 0
	done
}

@test "--events: a FIFO without a reader is waited for, and that is said" {
	mkfifo line
	spawn one "$XRUN" --events line -n 1 true
	await_line one.err '^xrun: --events: line: waits for somebody who reads it$' 5
	assert_eq "$(tail -n 1 <line | grep -c job.end)" 1
	await_exit "$pid" 5
}
