#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# terminal.bats - what a person at a terminal sees and types.

load helper

# --- lines -------------------------------------------------------------------

@test "on a terminal: a header, and the rank before a bar" {
	screen -- -n 2 sh -c '
		[ "$RANK" = 1 ] || { echo out; touch next; exit; }
		until [ -e next ]; do sleep 0.01; done
		echo error >&2'
	assert_eq "$status" 0
	sort <<<"$output" | golden terminal-lines
}

@test "ranks are padded to the widest" {
	screen -- -n 11 --collapse off --show 0,10 sh -c 'echo x'
	assert_has "$output" '^ 0│ x$'
	assert_has "$output" '^10│ x$'
}

@test "brackets where the locale has no bars" {
	LC_ALL=C screen -- --collapse off -n 2 sh -c 'echo out; echo error >&2'
	assert_has "$output" '^\[1\] out$'
	assert_has "$output" '^\[1\]!error$'
}

@test "one rank alone has no prefix, --no-prefix takes it from several" {
	screen -- -n 1 echo alone
	assert_has "$output" '^alone$'
	screen -- -n 2 --no-prefix echo both
	assert_eq "$(grep -c '^both$' <<<"$output")" 2
}

@test "a failure on a terminal: the last lines behind a bar" {
	screen -- -n 2 "$PROG/die" --rank 1 --exit 3 --say 'last words'
	assert_eq "$status" 3
	golden terminal-failure <<<"$output"
}

@test "-q: no header" {
	screen -- -q -n 2 echo ran
	assert_has "$output" ' ran$'
	assert_eq "$(grep -v ' ran$' <<<"$output")" ''
}

@test "more than 16 ranks: rank 0's stdout, everybody's stderr, and a word" {
	screen -- -n 17 sh -c 'echo out; [ "$RANK" != 9 ] || echo error >&2'
	assert_eq "$status" 0
	assert_has "$output" "^xrun: 17 ranks: showing rank 0's stdout and everybody's stderr; --show all shows the rest\$"
	assert_eq "$(grep -c 'out$' <<<"$output")" 1
	assert_has "$output" '^ 0│ out$'
	assert_has "$output" '^ 9┃ error$'
	screen -- --collapse off -n 17 --show all echo out
	assert_eq "$(grep -c '│ out$' <<<"$output")" 17
	assert_eq "$(grep -c showing <<<"$output")" 0
}

# --- colour ------------------------------------------------------------------

@test "prefixes have colours, by rank; the text has none" {
	screen -- --collapse off -n 2 echo text
	assert_has "$raw" $'\x1b\\[[0-9;]+m1│ ?\x1b\\[0m ?text'
	[ "$(grep -o $'\x1b\\[[0-9;]*m[01]' <<<"$raw" | sort -u | wc -l)" -eq 2 ]
}

@test "NO_COLOR, TERM=dumb and --color never: none" {
	NO_COLOR=1 screen -- -n 2 echo text
	assert_has "$output" ' text$'
	assert_eq "$(grep -cE $'\x1b\\[[0-9;]*m' <<<"$raw")" 0
	screen -T dumb -- -n 2 echo text
	assert_has "$output" ' text$'
	assert_eq "$(grep -c $'\x1b' <<<"$raw")" 0
	screen -- --color never -n 2 printf '\r50%%\r100%%\n'
	assert_has "$output" '100%$'
	assert_eq "$(grep -cE $'\x1b\\[[0-9;]*m' <<<"$raw")" 0
}

@test "--color always: in a pipe, too; auto: not there" {
	assert_has "$("$XRUN" --color always -n 2 echo text)" $'\x1b\\['
	[ "$("$XRUN" -n 2 echo text | grep -c $'\x1b')" -eq 0 ]
}

@test "rel-16 escape sequences do not reach the terminal, colours do; files are raw" {
	printf 'a\033]52;c;SGk=\007b\033[2Jc\033[31mred\033]0;title\033\\d\n' >bytes
	screen -- --log-dir logs -n 2 cat bytes
	assert_eq "$(grep -c $'\x1b]' <<<"$raw")" 0
	assert_eq "$(grep -cF $'\x1b[2J' <<<"$raw")" 0
	assert_has "$raw" $'\x1b\\[31mred'
	assert_has "$output" '│ abcredd$'
	cmp bytes logs/0/rank-0000/stdout
	cmp bytes logs/0/rank-0001/stdout
	[ "$("$XRUN" -n 2 cat bytes | grep -cF $'\x1b[2J')" -eq 2 ]
}

@test "rel-16 control characters of 8 bits do not reach a terminal, letters do" {
	printf 'A\x9b31mB \xc3\x9c\xc3\x9b2JC\n' >bytes
	screen -- -n 2 --collapse off cat bytes
	assert_has "$raw" 'A31mB ÜÛ2JC'
	LC_ALL=C screen -- -n 2 --collapse off cat bytes
	assert_has "$raw" 'A31mB ÜÛ2JC'
	LC_ALL=de_DE.ISO-8859-1 screen -- -n 2 --collapse off cat bytes
	[ "$(LC_ALL=C grep -c $'\x9b' "$BATS_TEST_TMPDIR/.raw")" -eq 0 ]
	[ "$(LC_ALL=C grep -c $'A31mB' "$BATS_TEST_TMPDIR/.raw")" -eq 2 ]
}

@test "rel-16 what xrun shows of values is tame on a terminal, whole in a pipe" {
	local value=$'a\e]0;pwned\ab\x9b2J'

	X=$value screen -- --show-env -n 2 true
	assert_has "$output" "X='a\\?\\]0;pwned\\?b\\?2J'"
	screen -- --dry-run -n 2 echo "$value"
	assert_has "$output" "echo 'a\\?\\]0;pwned\\?b\\?2J'"
	X=$value "$XRUN" --show-env -n 2 true | LC_ALL=C grep -qF "$value"
}

# --- input -------------------------------------------------------------------

@test "rel-20 what is typed reaches rank 0 only, and ^D ends it" {
	screen -w 'foreground' -w 'foreground' -s 'hello\n' -w 'read: hello' \
		-s '\004' -- --collapse off -n 2 "$PROG/tty"
	assert_eq "$status" 0
	assert_has "$output" '^0│ read: hello$'
	assert_has "$output" '^0│ eof$'
	assert_has "$output" '^0│ stdin: pipe$'
	assert_has "$output" '^1│ stdin: null$'
	assert_eq "$(grep -c '│ read:' <<<"$output")" 1
}

@test "rel-20 a job in the background is not stopped by the terminal" {
	status=0
	in_pty -d 20 -- bash --norc -c '
		set -m
		"$0" -n 2 sh -c "echo out; touch up.\$RANK; cat; sleep 60" </dev/tty &
		until [ -e up.0 ] && [ -e up.1 ]; do sleep 0.02; done
		jobs -l
		kill -TERM %1
		wait %1
		echo "status $?"' "$XRUN" >screen </dev/null || status=$?
	output=$(plain <screen)
	assert_has "$output" '^status 143$'
	assert_eq "$(grep -c Stopped <<<"$output")" 0
	assert_eq "$(grep -c '│ out$' <<<"$output")" 2
}

@test "rel-21 the terminal's modes are kept" {
	screen -m -- -n 2 true
	assert_eq "$status" 0
	screen -m -- -n 2 "$PROG/die" --rank 1 --signal SEGV
	assert_eq "$status" 139
	screen -m -w ready -w ready -s '\003' -w 'terminate now' -s '\003' \
		-w 'kill now' -s '\003' -- --collapse off -n 2 "$PROG/deaf" --int
	assert_eq "$status" 130
	screen -m -w ready -- --timeout 1s "$PROG/deaf" --linger 0
	assert_eq "$status" 124
}

@test "rel-21 the supervisor is killed: the terminal's modes are kept" {
	screen -m -- -n 2 sh -c '[ "$RANK" = 0 ] || kill -KILL $PPID; exec sleep 60'
	assert_eq "$status" 125
}

@test "rel-21 a rank that would leave the terminal raw has none" {
	screen -m -- --collapse off -n 2 --on-failure continue sh -c '
		stty raw </dev/tty; stty raw <&0; stty raw <&1; stty raw <&2; exit 3'
	assert_eq "$status" 3
	# The account says them again.
	assert_eq "$(grep -c '^[01]┃ .*Inappropriate ioctl for device' \
		<<<"$output")" 6
}

# key BYTES - types them at the terminal of the job that runs.
key()
{
	printf '%b' "$1" >&"$keys"
}

# holds FILE LINES - it has so many by now.
holds()
{
	[ "$(wc -l <"$1" 2>/dev/null)" = "$2" ]
}

# bats test_tags=sanitize
@test "rel-18 a terminal paused by ^S: the ranks go on, and it gets all at ^Q" {
	local keys

	mkfifo keys
	exec {keys}<>keys
	"$PTY" -d 30 -T dumb -w paused -- "$XRUN" -n 2 --log-dir logs sh -c '
		echo ready
		[ "$RANK" = 0 ] || until [ -e go ]; do sleep 0.02; done
		[ "$RANK" = 1 ] || exec sleep 1
		seq 20000; echo paused; touch over' <keys >screen 3>&- &
	pid=$!
	await_line screen '1│ ready' 10
	key '\023'
	touch go
	# Far more than terminal and pipe hold; the job does not wait for them.
	wait_for 10 test -e over
	wait_for 10 holds logs/0/rank-0001/stdout 20002
	[ "$(wc -c <screen)" -lt 50000 ]
	key '\021'
	await_exit "$pid" 20
	wait "$pid"
	assert_eq "$(plain <screen | sed -nE 's/^1│ ([0-9]+)$/\1/p' | cksum)" \
		"$(seq 20000 | cksum)"
}

@test "a terminal that changes its size disturbs nobody" {
	screen -w ready -r 40x10 -s '\003' -- -n 1 "$PROG/sigshow" --wait 1
	assert_eq "$status" 130
	assert_has "$output" '^signal: INT '
}
