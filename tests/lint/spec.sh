#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# spec.sh - every acceptance check of spec.ids has a test that bears its id:
# AC_L1_... in C, "AC-L1 ..." in bats. Prints the ids without one.
#
# A skipped test counts as missing. After a whole run, tests/run says where the
# results are ($XRUN_TEST_RESULTS), and a test must stand there as run; without
# results the sources are read, and a test that always skips does not count.
. "$(dirname "$0")/common.bash"

results=${XRUN_TEST_RESULTS:-}

# ran - the lines of tests that were not skipped.
ran()
{
	cat "$results"/unit.*.tap "$results"/e2e.*.tap | grep -E '^(not )?ok' |
		grep -viE '# *skip'
}

# written - the lines that begin a test which does not say skip at once.
written()
{
	# shellcheck disable=SC2016 # a program for awk
	tracked 'tests/*.c' | xargs -r awk '
		/^(Test|ParameterizedTest|TheoryTest)\(/ { test = $0; open = 1 }
		open && /disabled *= *true/ { test = "" }
		open && /{$/ {
			if (test != "")
				print test
			open = 0
		}'
	# shellcheck disable=SC2016 # a program for awk
	tracked 'tests/*.bats' | xargs -r awk '
		/^@test / { test = $0; next }
		test != "" {
			if ($1 != "skip")
				print test
			test = ""
		}'
}

if [ -n "$results" ] && compgen -G "$results/unit.*.tap" >/dev/null &&
	compgen -G "$results/e2e.*.tap" >/dev/null; then
	have=$(ran)
	how='was run and not skipped'
else
	have=$(written)
	how='is there'
fi
ids=" $(grep -oE 'AC[-_][A-Z]+[0-9]+' <<<"$have" | tr _ - | sort -u | xargs) "
while read -r id _; do
	case $id in '#'* | '') continue ;; esac
	[[ $ids == *" $id "* ]] || problem "$id: no test of this id $how"
done <"$here/spec.ids"
finish
