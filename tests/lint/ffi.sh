#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ffi.sh - tests/ffi/table.py says what the public headers say, as clang 19 reads
# them, and lays structs out as it does.
. "$(dirname "$0")/common.bash"

for tool in clang-19 python3; do
	command -v "$tool" >/dev/null || cannot "ffi.sh: needs $tool"
done

table=$(mktemp) || exit 1
trap 'rm -f "$table"' EXIT
python3 tests/ffi/generate.py >"$table" 2>&1 ||
	problem "tests/ffi/generate.py: $(tail -n 1 "$table")"
[ "$problems" -gt 0 ] || cmp -s "$table" tests/ffi/table.py ||
	problem "tests/ffi/table.py is not what the headers say: tests/ffi/generate.py >tests/ffi/table.py"
finish
