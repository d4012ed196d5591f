# SPDX-License-Identifier: Apache-2.0
# helper.bash - what every end-to-end test starts with: `load helper`.
#
# Each test gets a home, a state and a runtime directory of its own, an
# environment without anybody's settings, and is checked at its end for
# processes that it left behind. A file with its own setup() calls
# private_place in it; one with its own teardown() calls nothing_left.
#
# Nothing here sleeps for an event that can be awaited: see await_line,
# await_file and await_exit. wait_for is for what gives no sign.
# shellcheck shell=bash

here=${BASH_SOURCE[0]%/*} # bats loads it by its absolute path
root=${here%/tests/e2e}

# What the tests drive: $XRUN, which may be an installed program; $BUILD is
# where meson built, $PROG holds the programs of tests/prog.
BUILD=${BUILD:-$root/build}
XRUN=${XRUN:-$BUILD/xrun}
# The same for who reads LD_PRELOAD.
TWIN=$BUILD/launcher/xrun-dynamic
[ -x "$TWIN" ] || TWIN=$XRUN
PROG=$BUILD/tests/prog
PTY=$BUILD/tests/e2e/pty
PATH=$PATH:/usr/sbin:/sbin # mkfs.ext4, ip; not in the PATH of other users than root
export BUILD XRUN TWIN PROG PTY PATH

# clean_environment - no setting of whoever runs the tests reaches them.
clean_environment()
{
	local name

	for name in $(compgen -e); do
		case $name in
		XRUN) ;;
		XRUN_* | SLURM_* | PMI_* | PMIX_* | OMPI_* | TORCHELASTIC_* | \
			XRT_* | TPU_* | MASTER_* | RANK | WORLD_SIZE | LOCAL_RANK | \
			LOCAL_WORLD_SIZE | GROUP_RANK | CUDA_VISIBLE_DEVICES | \
			NO_COLOR | CLICOLOR* | COLORTERM | LD_PRELOAD | \
			PYTHONUNBUFFERED | OMP_NUM_THREADS)
			unset "$name"
			;;
		esac
	done
	export LC_ALL=C.UTF-8 TERM=dumb TZ=UTC
	# Debian's python3 and friends, whatever shims the user's PATH begins
	# with; bats has its own directory in PATH.
	export PATH="/usr/local/bin:/usr/bin:/bin:$PATH"
}

# When the file is loaded: in a test, bats runs code of its own for each command of the
# shell, which made this loop take 60 ms for each test.
clean_environment

# gojq, where it is installed, starts in 5 ms, and jq 1.6 in 30. It sorts the keys of
# objects.
jq_sorted()
{
	jq -cS "$@"
}
if command -v gojq >/dev/null; then
	jq()
	{
		gojq "$@"
	}
	jq_sorted()
	{
		gojq -c "$@"
	}
fi

# trace_only_test - a failure is reported with the line of the test itself. By default bats
# runs code of its own before each command of all functions, too, to know where each is:
# a third of the time of these tests. TEST_TRACE=1: it does.
trace_only_test()
{
	[ -n "${BATS_TEST_NAME:-}" ] && [ -z "${TEST_TRACE:-}" ] || return 0
	set +T
	declare -ft -- "$BATS_TEST_NAME"
}

# private_place - directories of this test alone. Short: socket paths end at
# 107 bytes.
private_place()
{
	trace_only_test
	make_place
}

make_place()
{
	export HOME=$BATS_TEST_TMPDIR/home
	export XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
	export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	mkdir -p "$HOME" "$XDG_STATE_HOME" "$XDG_CONFIG_HOME"
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	cd "$BATS_TEST_TMPDIR" || return 1
	# shellcheck source=/dev/null # tests/e2e/edges measures what each test reaches
	[ -z "${TEST_EDGES:-}" ] || . "$TEST_EDGES"
}

setup()
{
	private_place
}

teardown()
{
	nothing_left
}

# need PROGRAM... - skips the test where one of them is missing.
need()
{
	local program

	for program in "$@"; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# need_mounts FLAG... - skips the test unless a mount namespace can be made by unshare, with
# these flags. A chroot does not allow it, nor does a container without rights.
need_mounts()
{
	need unshare
	unshare "$@" true 2>/dev/null || skip 'mount namespaces are refused here'
}

# need_pids FLAG... - the same for a namespace of process ids.
need_pids()
{
	need unshare
	unshare "$@" true 2>/dev/null || skip 'PID namespaces are refused here'
}

# unsanitized WHY - skips the test where tests/run runs it under sanitizers, for
# what they themselves cannot do without: memory to reserve, /proc, a process.
unsanitized()
{
	[ -z "${SANITIZED:-}" ] || skip "under sanitizers: $1"
}

# spawn NAME COMMAND... - runs COMMAND behind the test, as a shell's foreground
# job would run: a shell's "&" alone would have it ignore SIGINT. Its output
# goes to NAME.out and NAME.err; its pid is in $pid; `wait "$pid"` is its end.
spawn()
{
	local name=$1

	shift
	env --default-signal=INT,QUIT "$@" \
		>"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
	# shellcheck disable=SC2034 # for the test
	pid=$!
}

# for_user UID - opens the places of this test to that user, and makes the user the owner of
# the runtime directory: without one, a job uses /tmp/xrun-UID, and leaves that behind. Skips
# the test if processes of another user are not possible.
for_user()
{
	local place=$BATS_TEST_TMPDIR

	need setpriv
	[ "$(id -u)" -eq 0 ] || skip 'only root becomes another user'
	while chmod go+x "$place" && [ "$place" != "$BATS_RUN_TMPDIR" ]; do
		place=$(dirname "$place")
	done
	chmod 777 "$XDG_STATE_HOME"
	chown "$1" "$XDG_RUNTIME_DIR"
	setpriv --reuid="$1" --clear-groups test -x "$XRUN" ||
		skip "another user does not reach $XRUN"
}

# need_schemas - skips the test where no JSON can be checked.
need_schemas()
{
	[ ! -e "$BATS_FILE_TMPDIR/schemas" ] || return 0
	"$here/fits.py" --strict "$root/share/schema/version.json" 2>/dev/null ||
		skip 'python3-jsonschema is not installed'
	: >"$BATS_FILE_TMPDIR/schemas" # so that the next test need not ask
}

# fits NAME FILE... - the JSON of each fits share/schema/NAME.json; *.jsonl has
# a value a line, - is stdin.
fits()
{
	"$here/fits.py" "$root/share/schema/$1.json" "${@:2}"
}

# --- waiting ---------------------------------------------------------------

# try COMMAND... - runs it; $status, $output and $stderr are its. Not bats' own
# run, which takes a status of 127 for a slip.
# shellcheck disable=SC2034 # read by the tests
try()
{
	status=0
	"$@" >"$BATS_TEST_TMPDIR/.out" 2>"$BATS_TEST_TMPDIR/.err" </dev/null ||
		status=$?
	output=$(<"$BATS_TEST_TMPDIR/.out")
	stderr=$(<"$BATS_TEST_TMPDIR/.err")
}

# job ARG... - a job of xrun. Files that look at the bytes of its streams have
# one of their own.
job()
{
	try "$XRUN" "$@"
}

# ranks_exited_0 COUNT - the report of the job, in the file report, has so many ranks,
# and each exited with 0. A job of silent ranks shows by it that they ran. It removes
# the file.
ranks_exited_0()
{
	assert_eq "$(grep -o '"exit":[^,]*,"stopped"' report | sort | uniq -c | xargs)" \
		"$1 exit:0,stopped"
	rm report
}

# both_ways PROGRAM CASE RANKS - ranks of it end well by shared memory, when they print
# $by_shm, and by TCP.
both_ways()
{
	job --report report -n "$3" "$1" "$2"
	[ "$status" -eq 0 ]
	ranks_exited_0 "$3"
	# shellcheck disable=SC2034 # whoever calls looks at it
	by_shm=$output
	job --report report -n "$3" "$1" "$2" tcp
	[ "$status" -eq 0 ]
	ranks_exited_0 "$3"
}

# now_ms - a monotonic clock, enough for deadlines.
now_ms()
{
	local up _

	read -r up _ </proc/uptime
	printf '%s\n' "$((10#${up/./} * 10))"
}

declare -gA await_fd=()

# await_line FILE PATTERN SECONDS - sets $line to the first line of FILE that
# the extended regular expression fits; false after SECONDS.
#
# FILE may be a FIFO: it is kept open from the first call on, so that its
# writers never meet a closed pipe, the next call goes on where this one ended,
# and what was read is kept in FILE.seen. Or it is a file that somebody writes
# or will make: each call reads it from its beginning.
await_line()
{
	if [ -p "$1" ]; then
		await_fifo "$@"
	else
		await_growing "$@"
	fi
}

await_fifo()
{
	local fifo=$1 pattern=$2 end left fd

	end=$(($(now_ms) + $3 * 1000))
	if [ -z "${await_fd[$fifo]:-}" ]; then
		exec {fd}<>"$fifo"
		await_fd[$fifo]=$fd
	fi
	while left=$((end - $(now_ms))) && [ "$left" -gt 0 ]; do
		IFS= read -r -t "$((left / 1000)).$(printf %03d $((left % 1000)))" \
			-u "${await_fd[$fifo]}" line || break
		printf '%s\n' "$line" >>"$fifo.seen"
		[[ ! $line =~ $pattern ]] || return 0
	done
	echo "await_line: no '$pattern' in $fifo for $3 s" >&2
	return 1
}

# tail follows through inotify; grep reads, since bash takes each byte of a pipe
# alone: seconds for a file of many lines.
await_growing()
{
	local file=$1 pattern=$2 tail fd status=0

	exec {fd}< <(exec timeout "$3" tail -q -n +1 -F "$file" 2>/dev/null 3>&-)
	tail=$!
	IFS= read -r line < <(exec grep -a -m 1 -E -e "$pattern" <&"$fd" 3>&-) ||
		status=1
	kill "$tail" 2>/dev/null || true
	exec {fd}<&-
	[ "$status" -eq 0 ] || {
		echo "await_line: no '$pattern' in $file for $3 s; it has:"
		tail -n 20 "$file" "${file%.out}.err" 2>&1
	} >&2
	return "$status"
}

# await_file FILE SECONDS - until FILE exists and holds a line.
await_file()
{
	await_growing "$1" '' "$2"
}

# await_exit PID SECONDS - until the process is gone (or a zombie of ours).
await_exit()
{
	timeout "$2" tail --pid="$1" -s 0.02 -f /dev/null
}

# wait_for SECONDS COMMAND... - until COMMAND succeeds; for states of the
# system that tell nobody when they change, such as /proc. Only the messages of the
# last try are printed.
wait_for()
{
	local end quiet

	end=$(($(now_ms) + $1 * 1000))
	shift
	exec {quiet}<> <(:)
	until "$@" 2>/dev/null; do
		if [ "$(now_ms)" -ge "$end" ]; then
			"$@" && break # once more, with its messages
			echo "wait_for: still false: $*" >&2
			return 1
		fi
		read -r -t 0.02 -u "$quiet" || true
	done
	exec {quiet}>&-
}

# pass SECONDS - the time over which something is measured.
pass()
{
	local quiet

	exec {quiet}<> <(:)
	read -r -t "$1" -u "$quiet" || true
	exec {quiet}>&-
}

# --- processes -------------------------------------------------------------

# left_behind JOB - the living processes of JOB ('.*': of any job of this
# test): those that bear its XRUN_JOB and our state directory in their
# environment. One line each: pid, name, command line.
left_behind()
{
	local file

	grep -lzsx -e "XRUN_JOB=$1" /proc/[0-9]*/environ |
		xargs -r grep -lzsxF -e "XDG_STATE_HOME=$XDG_STATE_HOME" |
		while IFS= read -r file; do
			file=${file%/environ}
			printf '%s %s %s\n' "${file#/proc/}" \
				"$(cat "$file/comm" 2>/dev/null)" \
				"$(tr '\0' ' ' 2>/dev/null <"$file/cmdline")"
		done
}

# xruns - the keepers and supervisors of this test that are alive: pid, name.
xruns()
{
	local file

	find /proc/[0-9]*/exe -maxdepth 0 -lname "$(readlink -f "$XRUN")" \
		-printf '%h/environ\n' 2>/dev/null |
		xargs -r grep -lzsxF -e "XDG_STATE_HOME=$XDG_STATE_HOME" |
		while IFS= read -r file; do
			file=${file%/environ}
			printf '%s %s\n' "${file#/proc/}" "$(cat "$file/comm" 2>/dev/null)"
		done
}

# supervisor - the pid of the one that runs.
supervisor()
{
	xruns | sed -n 's/ xrun-super$//p'
}

# switches - context switches of all threads of keeper and supervisor so far.
switches()
{
	local one

	for one in $(xruns | cut -d' ' -f1); do
		cat "/proc/$one"/task/*/status
	done | awk '/ctxt_switches/ { sum += $2 } END { print sum }'
}

# calm - true when nothing was switched for half a second.
calm()
{
	local before

	before=$(switches)
	pass 0.5
	[ "$(switches)" = "$before" ]
}

# nothing_left - true if no rank and no xrun of this test is alive; what is
# found is named and ended, so that the next test starts clean.
nothing_left()
{
	local left state=$XDG_STATE_HOME

	# Nearly always there is no process at all with our state directory.
	XDG_STATE_HOME='' grep -qzsxF -e "XDG_STATE_HOME=$state" /proc/[0-9]*/environ ||
		return 0
	left=$(left_behind '.*' && xruns)
	[ -n "$left" ] || return 0
	printf 'left behind:\n%s\n' "$left" >&2
	# shellcheck disable=SC2046 # one pid a word
	kill -KILL $(printf '%s\n' "$left" | cut -d' ' -f1) 2>/dev/null
	return 1
}

# kill_both - keeper and supervisor of the job $pid, before either can act.
kill_both()
{
	local super

	super=$(pgrep -P "$pid" -x xrun-super)
	kill -STOP "$pid" "$super"
	kill -KILL "$super" "$pid" # whose death wakes its supervisor up
	wait "$pid" || true
}

# of_job JOB - how many processes bear it.
of_job()
{
	left_behind "$1" | wc -l
}

none_of()
{
	[ "$(of_job "$1")" -eq 0 ]
}

# lost [OPTION]... - a job of two ranks that left twelve processes and has no
# xrun; its id is in $id.
lost()
{
	rm -f job.out
	# shellcheck disable=SC2016 # for the rank's shell
	spawn job "$XRUN" "$@" -n 2 sh -c 'echo "id $XRUN_JOB"; exec "$@"' - \
		"$PROG/fork_away" --depth 2 --width 2 \
		--setsid --ignore-term --close --stay --last 60000
	await_line job.out '^\[1\] ready$' 10
	await_line job.out '^\[0\] ready$' 10
	id=$(sed -n 's/^\[0\] id //p' job.out)
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
	kill_both
	wait_for 10 only_children
	[ "$(of_job "$id")" -ge 1 ]
}

# only_children - the ranks themselves are gone.
only_children()
{
	[ "$(of_job "$id")" -le 12 ]
}

# in_pty [OPTION]... COMMAND - runs COMMAND on a terminal of its own; what it
# can do is told at the top of pty.c.
in_pty()
{
	"$PTY" "$@"
}

# on_screen [STEP]... -- COMMAND... - on a terminal of its own: what was written
# to it is in $raw, without escape sequences in $output, the status in $status.
# STEP is what in_pty takes.
on_screen()
{
	status=0
	in_pty -d 30 "$@" >"$BATS_TEST_TMPDIR/.raw" </dev/null || status=$?
	raw=$(cat "$BATS_TEST_TMPDIR/.raw")
	# shellcheck disable=SC2034 # the tests read it
	output=$(plain <<<"$raw")
}

# screen [STEP]... -- ARG... - the same with xrun ARG...
screen()
{
	local steps=()

	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	on_screen "${steps[@]}" -- "$XRUN" "$@"
}

# same_bytes RANKS [OPTION] - the raw files, which the file's own raw() names,
# hold what spew --both --copy ref wrote.
same_bytes()
{
	local pairs=() r

	for ((r = 0; r < $1; r++)); do
		pairs+=("$(raw "$r" stdout)" "ref.$r.out")
		pairs+=("$(raw "$r" stderr)" "ref.$r.err")
	done
	"$PROG/verify" raw ${2:+"$2"} "${pairs[@]}"
}

# --- machines --------------------------------------------------------------

# two_machines - namespaces $apart-0 and $apart-1 with a network between them, where
# 0 is 10.77.31.1.
two_machines()
{
	local r

	if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null; then
		skip 'needs root and ip(8)'
	fi
	need_mounts -m # of which ip(8) has one for a name
	ip netns add "xrun-$$-0" 2>/dev/null || skip 'network namespaces are refused here'
	apart=xrun-$$
	ip netns add "$apart-1"
	ip link add veth0 netns "$apart-0" type veth peer name veth1 netns "$apart-1"
	for r in 0 1; do
		ip -n "$apart-$r" addr add "10.77.31.$((r + 1))/24" dev "veth$r"
		ip -n "$apart-$r" link set lo up
		ip -n "$apart-$r" link set "veth$r" up
	done
}

# no_machines - they are gone.
no_machines()
{
	[ -z "${apart-}" ] || ip netns del "$apart-0"
	[ -z "${apart-}" ] || ip netns del "$apart-1"
	apart=
}

# on_machines COMMAND... - rank 0 of two on the one, rank 1 on the other; what they
# say is in out.0 and out.1.
on_machines()
{
	local r pids=()

	export WORLD_SIZE=2 XRUN_SIZE=2 MASTER_ADDR=10.77.31.1 MASTER_PORT=29511
	for r in 0 1; do
		RANK=$r XRUN_RANK=$r ip netns exec "$apart-$r" \
			timeout 60 "$@" >"out.$r" 2>&1 3>&- &
		pids+=($!)
	done
	wait "${pids[0]}"
	wait "${pids[1]}"
}

# --- text ------------------------------------------------------------------

# plain - stdin without the escape sequences and carriage returns of a
# terminal.
plain()
{
	sed -E 's/\x1b\[[0-9;?]*[A-Za-z]//g; s/\x1b[()][A-Z0-9]//g; s/\r//g'
}

# stable - stdin with placeholders for what differs from run to run.
stable()
{
	sed -e "s,$BATS_TEST_TMPDIR,TMP,g" -e "s,$root,ROOT,g" |
		sed -E -f "$here/golden.sed"
}

# golden NAME - stdin, made stable, is golden/NAME to the letter.
# UPDATE_GOLDEN=1 writes the file instead: read the difference before you
# commit it.
golden()
{
	local want=$here/golden/$1 got

	got=$BATS_TEST_TMPDIR/golden.$1
	stable >"$got"
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		cp "$got" "$want"
		return 0
	fi
	diff -u --label "golden/$1" --label "what xrun says" "$want" "$got"
}

# assert_eq GOT WANT - says both when they differ.
assert_eq()
{
	[ "$1" = "$2" ] && return 0
	printf 'got:  %s\nwant: %s\n' "$1" "$2" >&2
	return 1
}

# assert_has TEXT PATTERN - the extended regular expression fits some line.
assert_has()
{
	grep -qE -e "$2" <<<"$1" && return 0
	printf "no '%s' in:\n%s\n" "$2" "$1" >&2
	return 1
}

# refute_has TEXT PATTERN - the extended regular expression fits no line.
refute_has()
{
	local status=0

	grep -qE -e "$2" <<<"$1" || status=$?
	[ "$status" -ne 1 ] || return 0
	printf "'%s' in:\n%s\n" "$2" "$1" >&2
	return 1
}

# assert_fails COMMAND... - it ends with a status other than 0. A command that is not found
# or cannot be executed has not failed. bats ignores the status of "! COMMAND", except at the
# end of a function.
assert_fails()
{
	local status=0

	"$@" || status=$?
	case $status in
	0) printf 'it succeeds: %s\n' "$*" >&2 ;;
	126 | 127) printf 'it does not run (status %s): %s\n' "$status" "$*" >&2 ;;
	*) return 0 ;;
	esac
	return 1
}

# --- JSON ------------------------------------------------------------------

# json_holds [OPTION]... FILTER [FILE]... - true if each result of the filter of jq(1) is
# neither false nor null, for all JSON values of the files, or of standard input. False if
# there is no result, if an input is empty or is not JSON, and if a file is missing; then the
# reason and the inputs are on standard error. OPTION is -s, --arg NAME VALUE or --argjson
# NAME VALUE. jq 1.6 -e alone returns 0 for empty input, and judges the last result only.
json_holds()
{
	local options=() filter stdin='' file status=0

	while [[ ${1-} == -* ]]; do
		case $1 in
		-s) options+=("$1") && shift ;;
		--arg | --argjson) options+=("${@:1:3}") && shift 3 ;;
		*) echo "json_holds: no option: $1" >&2 && return 2 ;;
		esac
	done
	filter=$1
	shift
	if [ $# -eq 0 ]; then
		stdin=$(mktemp "$BATS_TEST_TMPDIR/.json.XXXXXX") || return 2
		cat >"$stdin"
		set -- "$stdin"
	fi
	json_check "$@" || status=1
	if [ "$status" -ne 0 ]; then
		printf 'filter: %s\n' "$filter" >&2
		for file in "$@"; do
			printf 'read from %s:\n' "${stdin:+standard input}${file#"$stdin"}" >&2
			head -c 4000 -- "$file" >&2
		done
	fi
	[ -z "$stdin" ] || rm -f "$stdin"
	return "$status"
}

# json_check FILE... - does the work of json_holds, whose $options and $filter it uses.
json_check()
{
	local file results

	for file in "$@"; do
		if ! grep -qa '[^[:space:]]' -- "$file"; then
			echo "json_holds: no input" >&2
			return 1
		elif grep -qaP '\x00' -- "$file"; then
			echo "json_holds: a zero byte is not JSON" >&2
			return 1
		fi
	done
	if ! results=$(jq -c "${options[@]}" "$filter" "$@"); then
		echo "json_holds: jq failed" >&2
		return 1
	elif [ -z "$results" ]; then
		echo "json_holds: no result" >&2
		return 1
	elif grep -qxE 'false|null' <<<"$results"; then
		printf 'json_holds: false or null among the results: %s\n' \
			"$(head -c 400 <<<"$results" | paste -sd' ')" >&2
		return 1
	fi
}
