#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# size.sh - no function over 60 lines, no file over 700, no function with more
# than five parameters, unless tests/lint/size.allow says why.
#
# Definitions start in column 0 (clang-format sees to it): the name at the
# line's beginning, then "{" and at last "}" alone.
. "$(dirname "$0")/common.bash"

measure()
{
	# shellcheck disable=SC2016 # the program is for awk
	tracked '*.c' '*.h' | xargs -r awk '
	FNR == 1 { name = ""; args = "" }
	FNR == 701 { print FILENAME " file: over 700 lines" }
	match($0, /^[A-Za-z_][A-Za-z0-9_]*\(/) && !/;[ \t]*$/ {
		name = substr($0, 1, RLENGTH - 1)
		args = ""
		open = 1
	}
	open { args = args $0 }
	/^{/ && name != "" {
		begun = FNR
		open = 0
		depth = commas = 0
		for (i = 1; i <= length(args); i++) {
			c = substr(args, i, 1)
			depth += (c == "(") - (c == ")")
			commas += (c == "," && depth == 1)
		}
		if (commas > 4 && name != "main")
			print FILENAME " " name ": " commas + 1 " parameters"
	}
	/^}/ {
		if (name != "" && begun && FNR - begun - 1 > 60)
			print FILENAME " " name ": " FNR - begun - 1 " lines"
		name = ""
		begun = open = 0
	}'
}

# The list: "FILE NAME: reason", NAME a function or the word "file".
allowed()
{
	grep -qE "^$1 $2: .+" "$here/size.allow"
}

while read -r file name text; do
	allowed "$file" "${name%:}" || problem "$file: ${name%:}: $text"
done < <(measure)

while read -r file name _; do
	case $file in '#'* | '') continue ;; esac
	[ -f "$file" ] || problem "tests/lint/size.allow: $file is gone (${name%:})"
done <"$here/size.allow"
finish
