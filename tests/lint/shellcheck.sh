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

	tracked '*.sh' '*.bash' '*.bats'
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

# with_options - what shellcheck is to be called with, of each file. Tests load by
# the function of bats, which -x does not follow.
with_options()
{
	local file

	while IFS= read -r file; do
		case $file in
		*.bats) printf '%s\n' "-e $bats_only $file" ;;
		*) printf '%s\n' "-x -P SCRIPTDIR $file" ;;
		esac
	done
}

# It takes 20 ms a kilobyte and no time to start; so the large ones go first, and
# each core takes the next when it is done.
problems_from < <(scripts | sort -u | xargs -r ls -S | with_options |
	xargs -r -L 1 -P "$(nproc)" shellcheck -f gcc 2>&1)
finish
