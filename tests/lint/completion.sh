#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# completion.sh [BUILD] - bash, zsh and fish complete every option, its no- form
# and every verb; where the shell is here, it can read its script.
. "$(dirname "$0")/common.bash"
. "$here/options.bash"

build=${1:-build}
[ -x "$build/xrun" ] || cannot "completion.sh: $build/xrun is not there; build first"

# parses SHELL FILE - does it, where it is installed?
parses()
{
	! command -v "$1" >/dev/null || "$1" -n "$2"
}

script=$(mktemp) || exit 1
trap 'rm -f "$script"' EXIT
for shell in bash zsh fish; do
	"$build/xrun" completion $shell >"$script"
	parses $shell "$script" || problem "xrun completion $shell: $shell cannot read it"
	for name in $(option_names); do
		case $shell in
		bash) pattern="(^|[ '])--$name=?[ ']" ;;
		zsh) pattern="[)*]--$name=?-?\\[" ;;
		fish) pattern=" -l $name " ;;
		esac
		grep -qE -e "$pattern" "$script" ||
			problem "xrun completion $shell: --$name is missing"
	done
	for name in $("$build/xrun" help | sed -nE 's/^  xrun ([a-z]+) .*/\1/p'); do
		grep -qE "(^|[ '])${name}[ ']" "$script" ||
			problem "xrun completion $shell: the verb $name is missing"
	done
done
finish
