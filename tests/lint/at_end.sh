#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# at_end.sh - no check of Criterion stands in the .fini of a suite, where it is ignored:
# AT_END() (tests/unit/at_end.h) is for that. Functions of the file, and of headers of tests
# that it includes, are looked at; what these call is not.
. "$(dirname "$0")/common.bash"

look()
{
	local file name names rigs

	while read -r file; do
		names=$(grep -oE '\.fini = [a-z_0-9]+' "$file" | sed 's/.* = //' | sort -u)
		mapfile -t rigs < <(sed -nE 's/^#include "(tests\/unit\/[^"]*)"$/\1/p' "$file")
		for name in $names; do
			awk -v name="$name" -v file="$file" '
				$0 == name "(void)" { inside = 1 }
				/^}/ { inside = 0 }
				inside && /cr_(expect|assert)/ {
					printf "%s:%d: ignored in the .fini of %s: %s\n",
						FILENAME, FNR, file, $0
				}' "$file" "${rigs[@]}"
		done
	done
}

problems_from < <(tracked 'tests/unit/test_*.c' | look)
finish
