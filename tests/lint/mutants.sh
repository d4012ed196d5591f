#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh - every acceptance check of spec.ids has a mutant, and every mutant
# is of one; tests/mutants/run tries them.
. "$(dirname "$0")/common.bash"

list=tests/mutants/launcher.mut
while read -r id _; do
	case $id in '#'* | '') continue ;; esac
	grep -q "^$id " "$list" || problem "$list: $id has no mutant"
done <"$here/spec.ids"

while read -r id _; do
	grep -qx "$id" "$here/spec.ids" ||
		problem "$list: $id is not in tests/lint/spec.ids"
done < <(grep -oE '^AC-[A-Z]+[0-9]+' "$list" | sort -u)

# A file that moved is found elsewhere, one that is misspelt is not.
while read -r _ file; do
	[ -f "$file" ] || problem "$list: $file is gone; where is the text now?"
done < <(grep -h '^file ' tests/mutants/*.mut)
finish
