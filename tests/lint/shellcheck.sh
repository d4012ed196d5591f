#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lint of all scripts, found by name or by their first line: shellcheck has
# nothing to say about any of them.
. "$(dirname "$0")/common.bash"

command -v shellcheck >/dev/null ||
	cannot "shellcheck is not installed: the scripts were not checked"

scripts()
{
	local file first

	tracked '*.sh' '*.bash'
	tracked "*" | while IFS= read -r file; do
		case ${file##*/} in *.*) continue ;; esac
		IFS= read -r first <"$file" 2>/dev/null || continue
		case $first in '#!'*sh) printf '%s\n' "$file" ;; esac
	done
}

# In a test, variables come and go through load, run and subshells, text in
# single quotes is often a program for somebody else, and lists of pids and
# options are split on purpose.
bats_only=SC2016,SC2030,SC2031,SC2034,SC2086,SC2154

problems_from < <(scripts | sort -u | grep -v '\.bats$' |
	xargs -r -P 2 -n 4 shellcheck -x -P SCRIPTDIR -f gcc 2>&1)
problems_from < <(tracked '*.bats' |
	xargs -r -P 2 -n 4 shellcheck -x -P SCRIPTDIR -f gcc -e "$bats_only" 2>&1)
finish
