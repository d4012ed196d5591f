#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# pty.bats - a terminal for each rank, and what becomes of xrun's own (--pty).

bats_require_minimum_version 1.5.0
load helper

# at_terminal STEP... -- ARG... - xrun --pty there: what was written is in
# $raw, without escape sequences in $output, the status in $status. The modes of
# the terminal are the same afterwards, or it is 98.
at_terminal()
{
	on_screen -m -c 100x30 "$@"
}

# out RANK - the file of a rank of the only job.
out()
{
	cat "$XDG_STATE_HOME"/xrun/????/0/rank-000"$1"/stdout
}

# --- what a rank has ----------------------------------------------------------

@test "--pty: each rank has a terminal of its own, also where xrun has none" {
	job --pty -n 3 --no-prefix sh -c '
		[ "$RANK" = 0 ] || tty
		[ -t 1 ] && [ -t 2 ] && echo both
		stty size </dev/tty'
	assert_eq "$status" 0
	assert_eq "$(grep -c '^both$' <<<"$output")" 3
	assert_eq "$(grep -c '^24 80$' <<<"$output")" 3
	assert_eq "$(grep '^/dev/pts/' <<<"$output" | sort -u | wc -l)" 2
}

@test "--pty: the files hold what was written, stdout and stderr in one" {
	job --pty -n 2 sh -c 'printf "one\ntwo"; printf "\nthree\r\n" >&2'
	assert_eq "$status" 0
	assert_eq "$(out 0 | od -c)" "$(printf 'one\ntwo\nthree\r\n' | od -c)"
	assert_eq "$(out 1 | od -c)" "$(printf 'one\ntwo\nthree\r\n' | od -c)"
	[ -z "$(find "$XDG_STATE_HOME" -name stderr)" ]
	json_holds '.rank[0].stdout_bytes == 15 and .rank[0].stderr_bytes == 0' \
		"$XDG_STATE_HOME"/xrun/latest/job.json
}

@test "--pty: who says nothing leaves no folder; statuses are as ever" {
	job --pty -n 2 true
	assert_eq "$status" 0
	[ -z "$(find "$XDG_STATE_HOME" -name 'rank-*')" ]
	job --pty -n 2 "$PROG/die" --rank 1 --exit 3 --say 'last words'
	assert_eq "$status" 3
	assert_has "$stderr" '^xrun: rank 1 failed first: exit status 3'
	assert_has "$stderr" '^  \| last words$'
	job --pty -n 2 ./no-such-program
	assert_eq "$status" 127
}

@test "--pty: input that is a pipe or file is inherited; other ranks are at its end" {
	status=0
	output=$(printf 'a\nb\n' | timeout 20 "$XRUN" --pty -n 2 cat) || status=$?
	assert_eq "$status" 0
	assert_eq "$output" $'[0] a\n[0] b'
}

@test "--pty --no-logs: the same lines, and a slow reader is waited for" {
	"$XRUN" --pty --no-logs -n 2 sh -c 'seq 30000; [ -t 2 ] && echo end' |
		{ read -r -t 0.2 _ <&3 || true; cat; } 3<> <(:) >lines
	assert_eq "$(grep -c ' end$' lines)" 2
	assert_eq "$(sed -n 's/^\[1\] //p' lines | head -n 30000 | cksum)" \
		"$(seq 30000 | cksum)"
}

# bats test_tags=sanitize
@test "--pty: a process left behind that holds the terminal is ended" {
	job --pty -n 2 sh -c 'echo out; trap "" HUP; sleep 60 & exit 0'
	assert_eq "$status" 0
	assert_eq "$(out 0)$(out 1)" outout
	assert_eq "$(left_behind '.*')" ''
}

# --- one rank, and a person ---------------------------------------------------

# bats test_tags=sanitize
@test "--pty at a terminal: keys are the program's, Ctrl-C as well" {
	export PYTHON_BASIC_REPL=1 # that of Python 3.13 writes each line many times
	at_terminal -w '>>> ' -s 'import time\n' -w '>>> ' \
		-s 'print("as"+"leep"), time.sleep(50)\n' -w asleep \
		-s '\003' -w KeyboardInterrupt -w '>>> ' \
		-s 'print(6*7)\n' -w '42' -w '>>> ' -s '\004' -- \
		"$XRUN" --pty -n 1 python3 -q
	assert_eq "$status" 0
	assert_has "$output" '^>>> print\(6\*7\)$'
	# As a terminal has it: an echo, and a carriage return.
	out 0 | grep -q $'>>> print(6\\*7)\r$'
}

@test "--pty at a terminal: the size, and another one" {
	at_terminal -w 'size 30 100' -r 120x40 -w 'size 40 120' -- \
		"$XRUN" --pty -n 1 bash -c 'say() { echo "size $(stty size)"; }
			trap "say; exit" WINCH; say; while :; do read -t 0.1 -r _; done'
	assert_eq "$status" 0
}

@test "--pty: of several ranks each line fits with its prefix, and Ctrl-C is xrun's" {
	at_terminal -w 'ready' -w 'ready' -s '\003' -- \
		"$XRUN" --pty --collapse off -n 2 sh -c 'stty size; echo ready; exec sleep 50'
	assert_eq "$status" 130
	assert_has "$output" '^0│ 30 97$'
	assert_has "$output" 'xrun: Ctrl-C: ranks 0, 1 were stopped by xrun'
}

@test "--pty: of several ranks one has the lines that are typed, and ^D" {
	at_terminal -w 'eof' -s 'hello\n' -w '0│' -w 'got hello' -s 'to\004' \
		-s 'gether\n' -w 'got together' -s '\004' -- "$XRUN" --pty -n 2 \
		--color never sh -c 'while read -r x; do echo "got $x"; done; echo eof'
	assert_eq "$status" 0
	assert_has "$output" '^0│ eof$'
	assert_eq "$(out 0)" $'got hello\ngot together\neof'
	assert_eq "$(out 1)" eof
}

@test "--pty at a terminal: three times Ctrl-] is the way out" {
	at_terminal -w 'ready' -s '\035\035\035' -w 'Ctrl-] three times again' -- \
		"$XRUN" --pty -n 1 "$PROG/deaf" --linger 0
	assert_eq "$status" 130
	assert_has "$output" '^xrun: stopping 1 rank; Ctrl-\] three times again: terminate now$'
	at_terminal -w 'xrun: job' -s 'aa\035a' -w 'aa^]a' -s '\035\035' \
		-w '^]^]' -s 'a\035\n' -w 'a^]' -s '\004' -- "$XRUN" --pty -n 1 cat
	assert_eq "$status" 0
}

@test "--pty at a terminal: keys typed after the header reach the rank unchanged" {
	need strace
	unsanitized 'a leak cannot be looked for under strace'
	# Each call that looks at the modes, or sets them, takes long: the header is not
	# written before they are set.
	at_terminal -w 'xrun: job' -s 'a\035\n\004' -- strace -f -o /dev/null \
		-e trace=ioctl -e inject=ioctl:delay_enter=50000 \
		"$XRUN" --pty -n 1 cat
	assert_eq "$status" 0
	assert_eq "$(out 0)" $'a^]\r\na\035\r'
}

@test "rel-21 --pty: the terminal's modes are kept, whoever is killed" {
	at_terminal -w up -- "$XRUN" --pty -n 1 sh -c 'echo up; exit 4'
	assert_eq "$status" 4
	at_terminal -w up -- "$XRUN" --pty -n 1 sh -c 'echo up; kill -KILL $PPID; sleep 60'
	assert_eq "$status" 125
	assert_has "$output" '^xrun: the supervisor ended \(SIGKILL\)'
	at_terminal -w up -S 15 -- "$XRUN" --pty -n 1 "$PROG/deaf" --linger 0 --say up
	at_terminal -- "$XRUN" --pty -n 1 ./no-such-program
	assert_eq "$status" 127
}

# bats test_tags=sanitize
@test "rel-21 --pty: the keeper is killed: the supervisor restores the terminal" {
	need ps
	# The keeper is killed when the terminal has no line editing any more.
	cat >rank <<-'END'
		until stty -a -F "$1" | grep -q -e '-icanon'; do sleep 0.05; done
		echo changed
		kill -KILL $(ps -o ppid= -p $PPID)
		exec sleep 60
	END
	at_terminal -w changed -w restored -- bash -c '
		"$0" --pty -n 1 sh rank "$(tty)"
		until stty -a | grep -qE "(^| )icanon"; do sleep 0.05; done
		echo restored' "$XRUN"
	assert_eq "$status" 0
	wait_for 10 no_xrun
}

no_xrun()
{
	[ -z "$(xruns)" ]
}

@test "rel-37 --pty: stopped and continued, the terminal is the shell's meanwhile" {
	need ps
	cat >stop_us <<-'END'
		trap 'echo interrupted; exit 6' INT # before it waits, too
		kill -TSTP "$(ps -o ppid= -p "$PPID" | tr -d ' ')"
		read -r x
		echo "got $x"
		sleep 50 &
		wait
	END
	PS1='B# ' at_terminal -w 'B# ' -s "'$XRUN' -q --pty -n 1 sh stop_us\\n" \
		-w Stopped -w 'B# ' \
		-s 'stty -a | grep -ow -e -*icanon\n' -w $'\nicanon' -w 'B# ' \
		-s 'fg\n' -w stop_us -s 'hello\n' -w 'got hello' -s '\003' \
		-w interrupted -w 'B# ' -s 'echo status $?; exit\n' -w 'status 6' \
		-- bash --norc --noediting
	assert_eq "$status" 0
}

@test "what a rank leaves on in the terminal is put back, whoever is killed" {
	local pty on='\033[?1049h\033[?25l\033[?2004h\033[?1000h\033(0\033[31mup'
	local off=$'\e[?1049l\e[?25h\e[?1000l\e[?2004l\e(B\e[0m'

	for pty in --pty --no-pty; do
		at_terminal -- "$XRUN" $pty -n 1 \
			sh -c "printf '$on'; kill -KILL \$\$"
		assert_eq "$status" 137
		[[ $raw == *up"$off"*'rank 0 failed'* ]]
		at_terminal -w up -- "$XRUN" $pty -q -n 1 sh -c "printf '$on'
			sleep 0.3; kill -KILL \$PPID; sleep 60"
		assert_eq "$status" 125
		[[ $raw == *up"$off"*'the supervisor ended'* ]]
	done
}

@test "a terminal that is stopped is not waited for when xrun-super was killed" {
	need python3
	printf '%s\n' "printf '\\033[?1049hup'; read -r _" \
		"python3 -c 'import os, sys, termios
termios.tcflow(os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY), termios.TCOOFF)
' \"\$1\"; kill -KILL \$PPID; sleep 60" >rank
	# shellcheck disable=SC2016
	at_terminal -d 20 -w up -s '\n' -- \
		bash -c '"$0" -q -n 1 sh rank "$(tty)" 2>errors; echo $? >code' "$XRUN"
	assert_eq "$(cat code)" 125
	[[ $(cat errors) == *'the supervisor ended'* ]]
}

@test "what a rank did not switch, or put back itself, is left alone" {
	at_terminal -- "$XRUN" --pty -q -n 1 \
		printf 'a\033[?1049h\033[?25l\033[31mb\033[0m\033[?25h\033[?1049l'
	assert_eq "$raw" $'a\e[?1049h\e[?25l\e[31mb\e[0m\e[?25h\e[?1049l'
	assert_eq "$("$XRUN" --pty -n 1 printf '\033[?1049h\033[31m')" \
		$'\e[?1049h\e[31m'
}

@test "--pty: full-screen programs draw on it" {
	need vim less
	seq 300 >lines
	at_terminal -T xterm -w 'lines' -s 'G' -w '300' -w '(END)' -s 'q' -- \
		"$XRUN" --pty -n 1 less lines
	assert_eq "$status" 0
	at_terminal -T xterm -w '~' -s 'ihello\e' -w hello -s ':wq saved\n' -- \
		"$XRUN" --pty -n 1 vim -u NONE -i NONE
	assert_eq "$status" 0
	assert_eq "$(cat saved)" hello
}

@test "--pty: job control inside, ^Z too" {
	# It says when it is in front again: keys before that are the shell's. It
	# makes no process: one that is stopped before its exec holds its maker.
	mkfifo never
	printf '%s\n' '#!/usr/bin/env bash' 'trap "echo back" CONT' 'echo up' \
		'while :; do read -r -t 0.1 _ <>never; done' >runner
	chmod +x runner
	PS1='C# ' at_terminal -w 'C# ' -s './runner\n' -w up -s '\032' -w Stopped \
		-w 'C# ' -s 'fg\n' -w back -s '\003' -w 'C# ' -s 'exit 7\n' -- \
		"$XRUN" --pty -n 1 bash --norc --noediting
	assert_eq "$status" 7
}

# bats test_tags=sanitize
@test "--pty: ^Z stops no program that nobody could continue; a line job is xrun's" {
	at_terminal -w up -s '\032more\n' -w 'got more' -s '\004' -- "$XRUN" \
		--pty -n 1 bash -c 'echo up; while read -r x; do echo "got $x"; done'
	assert_eq "$status" 0
	PS1='B# ' at_terminal -w 'B# ' \
		-s "'$XRUN' -q --pty --timestamps -n 1 sh -c 'echo up; read -r x; echo got\$x'\n" \
		-w 'up' -w 'up' -s '\032' -w Stopped -w 'B# ' -s 'fg\n' -w 'echo got' \
		-s 'line\n' -w 'gotline' -w 'B# ' -s 'exit 5\n' -- \
		bash --norc --noediting
	assert_eq "$status" 5
}

# dash loses a SIGINT that comes between its fork and the exec: cat answers before it is sent.
@test "--pty in the background leaves the terminal alone, and goes on in front" {
	PS1='B# ' at_terminal -w 'B# ' \
		-s "'$XRUN' --pty -n 1 sh -c 'touch job; read -r x; echo got\$x; cat' & until [ -e job ]; do sleep 0.02; done\\n" \
		-w 'B# ' -s 'stty -a | grep -ow -e -*icanon\n' -w $'\nicanon' -w 'B# ' \
		-s 'fg\n' -w "cat'" -s 'hello\n' -w 'gothello' \
		-s 'more\n' -w $'more\r\nmore' -s '\003' \
		-w 'rank 0 failed' -w 'B# ' \
		-s 'exit 5\n' -- bash --norc --noediting
	assert_eq "$status" 5
}

@test "--pty: a program may close its terminal and live on" {
	job --pty -n 1 sh -c 'exec </dev/null >/dev/null 2>&1; sleep 0.3; exit 3'
	assert_eq "$status" 3
}
