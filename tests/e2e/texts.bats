#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# texts.bats - what xrun says to a person, to the letter: each text comes from a
# run that really is so, never from the printer alone. Error texts that need a
# machine of their own (limits, full disks) are in errors.bats.

load helper

# What takes 10 s begins with the file and is judged by its last test.
setup_file()
{
	long_silence >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- &
}

# ends COMMAND... - xrun's words of a run, and its status, as one entry of a
# golden file that collects them.
ends()
{
	try "$@"
	printf '%s   %s\n' "$(grep '^xrun: ' <<<"$stderr")" "$status"
}

# --- a run and a failure -----------------------------------------------------

@test "a training on a terminal: header, lines, no last word" {
	unset XDG_STATE_HOME
	screen -- --collapse off -n 4 "$BUILD/examples/train"
	assert_eq "$status" 0
	output=$(stable <<<"$output")
	assert_eq "$(head -n 1 <<<"$output")" \
		'xrun: job JOB: 4 ranks, cpu, logs ~/.local/state/xrun/JOB'
	# Beyond ten seconds, as on a busy machine, it has a last word.
	assert_eq "$(grep -v 'ended well after TIME' <<<"$output" |
		grep -c '^xrun:')" 1
	assert_eq "$(grep -c '^[0-3]│ digits: 1797 images, 450 a rank$' \
		<<<"$output")" 4
	assert_has "$output" '^0│ epoch 1  loss [0-9.]+  accuracy [0-9.]+ %$'
	assert_has "$output" '^0│ epoch 8  loss [0-9.]+  accuracy [0-9.]+ %$'
}

@test "a training that crashes on a terminal: the account, paths with ~" {
	unset XDG_STATE_HOME
	screen -- -n 4 "$BUILD/examples/train" --crash 2
	assert_eq "$status" 139
	# Whether a peer hears of it before it is stopped is a matter of luck.
	sed -n '/^xrun: rank/,$p' <<<"$output" |
		sed -E '$s/.*(All output)/OTHERS. \1/; s/train\.c:[0-9]+/train.c:LINE/' |
		golden screen-train
}

@test "the header says where the number of ranks comes from" {
	mkdir -p root/dev
	touch root/dev/nvidia0 root/dev/nvidia1 root/dev/nvidiactl
	{
		screen -- -n 1 --no-logs true
		head -n 1 <<<"$output"
		XRUN_CUDA_ROOT=$PWD/root screen -- true
		head -n 1 <<<"$output"
		XRT_LOCAL_WORKER=w:0 TPU_NUM_DEVICES=2 screen -- true
		head -n 1 <<<"$output"
		screen -- -n 17 true
		head -n 2 <<<"$output"
	} | golden headers
}

@test "six colours by rank, in the prefix only; red is xrun's own" {
	local rank

	screen -- --collapse off -n 7 echo text
	for rank in 0 1 2 3 4 5 6; do
		grep -oE $'\x1b\\[[0-9;]*m'" *$rank│" <<<"$raw" |
			grep -oE '[0-9;]+m' >>colours
	done
	assert_eq "$(wc -l <colours)" 7
	assert_eq "$(sort -u colours | wc -l)" 6
	assert_eq "$(sed -n 1p colours)" "$(sed -n 7p colours)"
	assert_eq "$(grep -cE '(^|;)(31|91)(;|m)' colours)" 0
	# The text has none, the bar of a stderr line is bold.
	screen -- --collapse off -n 2 sh -c 'echo text >&2'
	assert_has "$raw" $'\x1b\\[1;[0-9]+m0┃ ?\x1b\\[0m ?text'
}

# --- xrun alone --------------------------------------------------------------

@test "xrun alone tells of accelerators and of the job that runs" {
	mkdir -p root/dev
	touch root/dev/nvidia0 root/dev/nvidia1 root/dev/nvidiactl
	spawn job "$XRUN" -n 2 "$PROG/deaf" --linger 0
	await_line job.out '^\[0\] ready$' 5
	await_line job.out '^\[1\] ready$' 5
	# The job's own file tells of its ranks, a moment after its start.
	wait_for 5 test -s "$(echo "$XDG_STATE_HOME"/xrun/????)/job.json"
	XRUN_CUDA_ROOT=$PWD/root try "$XRUN"
	kill "$pid"
	wait "$pid" || true
	assert_eq "$status" 125
	tail -n 1 <<<"$stderr" |
		sed -E 's/running: [a-z0-9]{4} /running: JOB /' |
		golden alone-live
}

# --- errors ------------------------------------------------------------------

@test "the error texts, with the status behind each" {
	local bin=$PWD/bin

	echo 'print(1)' >train.py
	mkdir bin
	ln -s "$(command -v python3 || echo /usr/bin/python3)" bin/python3
	{
		ends "$XRUN" -n 8 ./train
		ends "$XRUN" -n 8 train.py
		ends env PATH="$bin" "$XRUN" python train.py
		ends "$XRUN" --rank 3 ./train
		XRUN_RANK=3 ends "$XRUN" true
		XRUN_RANGS=3 ends "$XRUN" true
		XRT_LOCAL_WORKER=w:0 ends "$XRUN" -n 3 true
		XRT_TPU_CONFIG='a;0' ends "$XRUN" true
		XRT_LOCAL_WORKER=w ends "$XRUN" true
		ends "$XRUN" --hosts=a true
		ends "$XRUN" top
		ends "$XRUN" true :
		ends "$XRUN" true : --timeout 1s true
		XRUN_RANKS=2 ends "$XRUN" true : true
		ends "$XRUN" --env RANK=3 true
		ends "$XRUN" --env FOO true
		ends "$XRUN" -n 0 true
		ends "$XRUN" --timeout soon true
		ends "$XRUN" --chdir /no/such true
	} | golden errors
}

@test "how jobs end, in xrun's words" {
	mkfifo never
	{
		ends "$XRUN" -n 2 --timeout 200ms sleep 60
		ends "$XRUN" -n 2 --timeout 200ms --grace 200ms "$PROG/deaf"
		ends "$XRUN" -n 3 "$PROG/die" --rank 1 --exit 3
		ends "$XRUN" -n 3 --on-failure continue sh -c 'exit 4'
		ends "$XRUN" -n 2 "$PROG/fork_away" --setsid --close
		ends "$XRUN" "$PROG/fork_away" --setsid --close
		ends "$XRUN" -n 2 sh -c '[ "$RANK" = 0 ] || kill -TERM $PPID
			exec sleep 60'
		ends "$XRUN" -n 2 sh -c '[ "$RANK" = 0 ] || exec sleep 60
			echo out; kill -KILL $PPID; exec sleep 60'
		ends "$XRUN" --no-logs -n 2 sh -c '[ "$RANK" = 0 ] || exec sleep 60
			kill -KILL $PPID; exec sleep 60'
	} | sed -E 's/rank [0-2] failed first: exit status 4/rank R failed first: exit status 4/' |
		golden endings
}

@test "the account of each rank that fails: who, how, when, and the others" {
	{
		try "$XRUN" -n 4 --on-failure continue sh -c '
			[ "$RANK" = 1 ] || until [ -e first ]; do sleep 0.01; done
			touch first; exit $((RANK % 2 * 3))'
		cat <<<"$stderr"
		try prlimit --core=0 "$XRUN" -n 12 "$PROG/die" --rank 5 \
			--signal ABRT --say 'last words'
		cat <<<"$stderr"
		try "$XRUN" --no-logs "$PROG/die" --signal TERM
		cat <<<"$stderr"
	} | sed -E 's/^(  rank|  ranks) [0-9].* failed after it/\1 OTHERS failed after it/
			s/rank [13] (failed first: exit status 3)/rank 1 \1/' |
		golden accounts
}

# --- asking ------------------------------------------------------------------

@test "help exit, version, --dry-run: to the letter" {
	{
		for words in 'help exit' version '--dry-run -n 3 echo a'; do
			printf '$ xrun %s\n' "$words"
			# shellcheck disable=SC2086 # words
			try "$XRUN" $words
			sed -E -e "s/ $(uname -n) +/ HOST /" \
				-e 's/^(built with) .*/\1 .../' \
				-e 's,^(agent +).*/(libxrun),\1.../\2,' <<<"$output"
			printf '= %s\n' "$status"
		done
	} | golden asking
}

@test "what a rank sees of xrun: the names of the contract, and no others" {
	"$XRUN" -n 2 env | sed -nE 's/^\[1\] ((XRUN|TORCHELASTIC|GROUP|LOCAL|MASTER|WORLD)_[A-Z_]+|RANK)=.*/\1/p' |
		sort | golden rank-names
}

# --- a long run --------------------------------------------------------------

# long_silence - on a terminal: 10 s without a word, then one; its screen is in
# the folder of this file: .raw, status, over.
long_silence()
{
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR private_place
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
	screen -w 'no output yet' -s 'go\n' -- -n 2 sh -c '
		[ "$RANK" = 0 ] || { until [ -e gone ]; do sleep 0.1; done; exit; }
		read -r line && echo "read $line"; touch gone'
	echo "$status" >status
	echo over >over
}

@test "a job of more than 10 s: one word of its silence, and one of its end" {
	await_file "$BATS_FILE_TMPDIR/over" 30
	assert_eq "$(cat "$BATS_FILE_TMPDIR/status")" 0
	raw=$(cat "$BATS_FILE_TMPDIR/.raw")
	# Dim while it stands there; the first line erases it.
	assert_has "$raw" $'\x1b\\[2mxrun: 2 ranks running, no output yet; xrun stacks [a-z0-9]+ shows where they are\x1b\\[0m'
	assert_has "$raw" $'\r\x1b\\[(2)?K'
	plain <<<"$raw" | sed "s,$BATS_FILE_TMPDIR,TMP,g" | golden screen-long
}
