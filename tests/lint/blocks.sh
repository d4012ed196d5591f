#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# blocks.sh - C code of the pages of section 3 and of README.md is valid. A struct or a
# callback type without an #include is equal to that of its header; every other block
# compiles as it stands. Each struct and callback type of the public headers has a page.
. "$(dirname "$0")/common.bash"

command -v cc >/dev/null || cannot "cc is not installed: the C blocks were not compiled"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat src/include/xrun/*.h >"$dir/headers"

# blocks_cut FILE - writes each block of FILE to $dir/LINE.c. In a page, a block is C if
# a line of it ends in a semicolon or a brace.
blocks_cut()
{
	awk -v dir="$dir" -v readme="$1" '
		/^```/ && !inside { inside = NR; text = ""; is_c = $0 == "```c"; next }
		/^```/ {
			if (is_c && text !~ /^\$ /) {
				printf "%s", text > (dir "/" inside ".c")
				close(dir "/" inside ".c")
			}
			inside = 0
			next
		}
		inside {
			text = text $0 "\n"
			if (readme != "README.md" && /[;{}]$/)
				is_c = 1
		}' "$1"
}

# blocks_types FILE - the structs and callback types that differ from the headers.
blocks_types()
{
	awk -v headers="$dir/headers" '
		function flush() {
			if (name != "" && index(all, "\n" text) == 0)
				print name
			name = text = ""
		}
		BEGIN {
			while ((getline line < headers) > 0)
				all = all "\n" line
			all = all "\n"
		}
		/^struct [a-z_]+ \{$/ { name = $2 }
		/^typedef / { name = "typedef" }
		name != "" { text = text $0 "\n" }
		/^};$/ || (name == "typedef" && /;$/) { flush() }' "$1"
}

for page in man/*.3.scd README.md; do
	blocks_cut "$page"
	for block in "$dir"/*.c; do
		[ -e "$block" ] || continue
		line=$(basename "$block" .c)
		if ! grep -q '^#include' "$block" && grep -qE '^(struct .* \{$|typedef )' "$block"; then
			while read -r name; do
				problem "$page:$line: $name differs from its header"
			done < <(blocks_types "$block")
		elif ! cc -std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only \
			-I src/include "$block" 2>"$dir/errors"; then
			problem "$page:$line: $(grep -m 1 error "$dir/errors")"
		fi
		rm "$block"
	done
done
while read -r type; do
	grep -qE "^(struct $type \{|typedef .*\b$type\()" man/*.3.scd ||
		problem "no page of section 3 has $type"
done < <(grep -hoE '^struct xr_[a-z_]+ \{|\bxr_[a-z_]+_fn\(' src/include/xrun/*.h |
	sed 's/struct //; s/[ ({]*$//' | sort -u)
finish
