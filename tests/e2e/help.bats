#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# help.bats - what xrun says about itself: alone, -h, help, version, completion,
# --dry-run, --show-env. All of it from the built-in tables, without installation.

bats_require_minimum_version 1.5.0
load helper

# said NAME COMMAND... - both streams and the status, against golden/NAME.
said()
{
	local name=$1

	shift
	run --separate-stderr "$@"
	{
		printf '$ %s\n' "${*//$XRUN/xrun}"
		[ -z "$output" ] || printf '%s\n' "$output"
		# shellcheck disable=SC2001 # at each line
		[ -z "$stderr" ] || sed 's/^/2> /' <<<"$stderr"
		printf '= %s\n' "$status"
	} | golden "$name"
}

@test "xrun alone shows the way, on stderr, and ends with 125" {
	run --separate-stderr "$XRUN"
	assert_eq "$status" 125
	assert_eq "$output" ""
	# The last line is live.
	sed '$d' <<<"$stderr" | golden alone
	assert_has "$(tail -n 1 <<<"$stderr")" \
		'^(No accelerator|[0-9]+ accelerators?) here.*\. (No|[0-9]+) jobs? running'
}

@test "-h is short, and a success" {
	said short "$XRUN" -h
	run --separate-stderr "$XRUN" --help
	assert_eq "$status" 0
	"$XRUN" -h | cmp - <(printf '%s\n' "$output")
}

@test "help has every option, with its variable" {
	local name variable

	"$XRUN" help >all
	while read -r name; do
		variable=${name^^}
		grep -qE -e "--(no-)?$name([= []|$)" all
		# XRUN_JOB is the id in a rank's environment; --version is no setting.
		[ "$name" = job ] || [ "$name" = version ] ||
			grep -qE "XRUN_(NO_)?${variable//-/_}$" all
	done < <(sed -nE 's/.*\.name = "([a-z0-9-]+)".*/\1/p' \
		"$root/launcher/job/options_table.c")
}

@test "help fits a screen of 80 columns" {
	assert_has "$("$XRUN" help)" '^ +--timeout'
	assert_has "$("$XRUN" -h)" '^ +-n'
	run ! grep -nE '^.{81}' <("$XRUN" help)
	run ! grep -nE '^.{81}' <("$XRUN" -h)
}

@test "help of one option, of a topic, of a verb" {
	said help-option "$XRUN" help grace
	run -0 "$XRUN" help exit
	assert_has "$output" '^ *124 '
	for word in --grace XRUN_GRACE; do
		assert_eq "$("$XRUN" help "$word")" "$("$XRUN" help grace)"
	done
	assert_eq "$("$XRUN" help XRUN_NO_LOGS)" "$("$XRUN" help --no-logs)"
	run -0 "$XRUN" help XRUN_RANK
	assert_has "$output" '^ *XRUN_RANK is what xrun tells a rank, and no option'
	run -0 "$XRUN" help version
	assert_has "$output" '^  -V, --version$'
	assert_has "$output" '^  xrun version \[--json\]$'
	run -0 "$XRUN" help doctor
	assert_has "$output" '^usage: xrun doctor'
}

@test "help of what is not there suggests what was meant" {
	said help-wrong "$XRUN" help grac
}

@test "version tells which xrun this is, and a program the same" {
	run -0 "$XRUN" version
	assert_has "$output" '^xrun [0-9]+\.[0-9]+\.[0-9]+$'
	assert_has "$output" 'Cadence'
	run -0 "$XRUN" version --json
	assert_eq "xrun $(jq -r .xrun <<<"$output")" "$("$XRUN" version | head -n 1)"
	run -125 "$XRUN" version --yaml
	assert_has "$output" "'--yaml' is not --json"
}

# bats test_tags=sanitize
@test "help protocol has the messages of each side, with their fields" {
	run -0 "$XRUN" help protocol
	assert_has "$output" '^Asked by a client$'
	assert_has "$output" '^  signal     a signal to ranks; answered by done$'
	assert_has "$output" '^    signal     text: TERM, SIGTERM or 15$'
	assert_has "$output" '^    ranks      text, optional: '
	assert_has "$output" '^Said by the job$'
	assert_has "$output" '^  welcome    the first line of every connection$'
	assert_eq "$(grep -c '^  welcome ' <<<"$output")" 1
	run -0 "$XRUN" help protocol --man
	assert_has "$output" '^## Asked by a client$'
	assert_has "$output" '^\*signal\*$'
	assert_has "$output" '_signal_: text; TERM, SIGTERM or 15\.$'
	assert_has "$output" '_ranks_: text, optional; '
}

@test "help is of one topic, in a form that it has" {
	run -0 "$XRUN" help stop --man
	assert_has "$output" '\*'
	run -125 "$XRUN" help grace exit
	assert_has "$output" "one topic at a time, not 'exit'"
	run -125 "$XRUN" help exit --dot
	assert_has "$output" 'exit cannot be shown that way'
}

@test "the manual's part of the help is good scdoc" {
	need scdoc
	{ printf 'xrun(1)\n\n# OPTIONS\n\n'; "$XRUN" help options --man; } >page.scd
	scdoc <page.scd >page
	assert_has "$(cat page)" '--stop-signal|\\-\\-stop\\-signal|stop-signal'
}

@test "bash completes verbs, options and values" {
	run -0 bash -c '
		source <("$XRUN" completion bash)
		try() {
			COMP_WORDS=("$@")
			COMP_CWORD=$(($# - 1))
			COMPREPLY=()
			"$(complete -p xrun | sed "s/.*-F \([^ ]*\) .*/\1/")" xrun "${@: -1}"
			echo "${COMPREPLY[*]}"
		}
		try xrun --timeo
		try xrun he
		try xrun help gra
		try xrun --on-failure co'
	assert_has "${lines[0]}" '^--timeout=? *$'
	# Programs are offered behind the verbs.
	assert_has "${lines[1]}" '^help( |$)'
	assert_has "${lines[2]}" '^grace *$'
	assert_has "${lines[3]}" 'continue'
}

@test "--dry-run says who would run where, and starts nothing" {
	run -0 --separate-stderr "$XRUN" --dry-run -n 3 touch ran
	assert_has "$output" '^ *2 +[^ ]+ +cpu +touch ran$'
	[ ! -e ran ]
	run -0 --separate-stderr "$XRUN" --dry-run --json -n 3 touch ran
	assert_eq "$(jq '.ranks | length' <<<"$output")" 3
}

@test "--show-env says every variable of a rank and where it comes from" {
	run -0 --separate-stderr "$XRUN" -n 4 --show-env=3 --env A=b touch ran
	assert_has "$output" '^xrun +XRUN_RANK=3$'
	assert_has "$output" '^profile torch +WORLD_SIZE=4$'
	assert_has "$output" '^--env +A=b$'
	assert_has "$output" '^inherited +HOME='
	[ ! -e ran ]
	run -0 --separate-stderr "$XRUN" -n 4 --show-env=3 --json true
	json_holds '.v == 1 and .rank == 3 and (.variables |
		any(. == {"name": "XRUN_RANK", "value": "3", "source": "xrun"}) and
		any(. == {"name": "WORLD_SIZE", "value": "4", "source": "profile torch"}) and
		any(.name == "HOME" and .source == "inherited"))' <<<"$output"
}

# What differs between any two jobs.
changing='^(XRUN_JOB|XRUN_(CONTROL|SEGMENT|BELL)_FD|XRUN_STDIO|MASTER_PORT'
changing+='|TORCHELASTIC_(RUN_ID|ERROR_FILE))='

@test "what --show-env promises is what a rank gets" {
	"$XRUN" -n 1 --show-env --json true |
		jq -j '.variables[] | "\(.name)=\(.value)\u0000"' |
		grep -zvE "$changing" | sort -z >promised
	"$XRUN" -n 1 cp /proc/self/environ environ
	grep -zvE "$changing" environ | sort -z >got
	grep -qzx XRUN_RANK=0 got
	diff -u <(tr '\0' '\n' <promised) <(tr '\0' '\n' <got)
}

@test "--quiet leaves out the header and the report of a failure" {
	run --separate-stderr in_pty "$XRUN" --quiet -n 2 true
	assert_eq "$output" ""
	run in_pty "$XRUN" -n 2 true
	assert_has "$output" '^xrun: job [a-z0-9]+: 2 ranks'
	run --separate-stderr "$XRUN" --quiet -n 2 sh -c 'exit 3'
	assert_eq "$status: $stderr" '3: '
}

@test "--verbose ends with a table of what each rank used" {
	run --separate-stderr "$XRUN" --verbose -n 2 true
	assert_eq "$status" 0
	assert_eq "$output" ""
	assert_has "$stderr" '^ *1 .*[0-9]'
}

@test "help environ has what ranks get, what is kept from them, and every option" {
	run -0 "$XRUN" help environ
	assert_has "$output" '^  XRUN_RANK +\{rank\}$'
	assert_has "$output" '^  PMI_\* +the ranks of another MPI launcher$'
	assert_has "$output" '^  XRUN_NO_LOGS +keep no files of output$'
	# xrun only appends to LD_PRELOAD and PYTHONPATH.
	"$XRUN" -n 2 --buffer full --show-env=1 true |
		sed -nE 's/^(xrun|profile torch) +([A-Z_]+)=.*/\2/p' |
		grep -vx PYTHONPATH >got
	[ -s got ]
	while read -r name; do
		assert_has "$output" "^  $name "
	done <got
	run ! grep -nE '^.{81}' <<<"$output"
}

@test "help environ names no variable that sets nothing" {
	job help environ
	assert_eq "$(sed -n '/^Options as variables/,$p' <<<"$output" |
		grep -cE 'XRUN_(JOB|DEBUG_FAULTS) ')" 0
	assert_has "$output" '^  XRUN_GRACE '
}
