#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh - every acceptance check of spec.ids has a mutant, and every mutant
# is of one; tests/mutants/run tries them. The operators, tables and limits of
# tests/mutants/sample pass their own tests.
. "$(dirname "$0")/common.bash"

# The bugs of fuzz targets are of no check.
shopt -s extglob
lists=(tests/mutants/!(fuzz).mut)
while read -r id _; do
	case $id in '#'* | '') continue ;; esac
	grep -qh "^$id " "${lists[@]}" || problem "tests/mutants: $id has no mutant"
done <"$here/spec.ids"

while read -r id _; do
	grep -qx "$id" "$here/spec.ids" ||
		problem "tests/mutants: $id is not in tests/lint/spec.ids"
done < <(grep -ohE '^AC-[A-Z]+[0-9]+' "${lists[@]}" | sort -u)

# What a mutant takes out stands in its file, blanks aside: else it breaks nothing.
while IFS= read -r line; do
	problem "$line"
done < <(python3 - tests/mutants/*.mut <<'END'
import sys

for path in sys.argv[1:]:
    file = text = None
    for line in open(path):
        if line.startswith("file "):
            file = line[5:].strip()
            try:
                text = " ".join(open(file).read().split())
            except OSError:
                text = None
        elif line.startswith("- ") and text is not None and \
                " ".join(line[2:].split()) not in text:
            print(f"{path}: {file} has no: {line[2:].strip()}")
END
)

# A file that moved is found elsewhere, one that is misspelt is not.
while read -r _ file; do
	[ -f "$file" ] || problem "tests/mutants: $file is gone; where is the text now?"
done < <(grep -h '^file ' tests/mutants/*.mut)

problems_from < <(tests/mutants/check 2>&1 || echo "tests/mutants/check fails")
finish
