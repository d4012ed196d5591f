#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# headers.sh - every public header can be included alone, from C11 and from
# C++17, without a warning, and names no header that is not public. Each field of a
# struct of options or of a call has a comment.
. "$(dirname "$0")/common.bash"

warnings='-Wall -Wextra -pedantic -Werror'

# compile HEADER LANGUAGE STANDARD COMPILER - the header twice, as any program
# with several files would have it.
compile()
{
	local said

	command -v "$4" >/dev/null || return 0
	# shellcheck disable=SC2086 # the warnings are words
	said=$(printf '#include <%s>\n#include <%s>\n' "$1" "$1" |
		"$4" -x "$2" -std="$3" $warnings -Isrc/include -fsyntax-only - 2>&1) ||
		problem "$1 as $3 by $4: $(printf '%s\n' "$said" | grep -m 1 error)"
}

# have TOOL... - is one of them here?
have()
{
	local tool

	for tool in "$@"; do
		command -v "$tool" >/dev/null && return 0
	done
	return 1
}

# uncommented FILE - the fields without a comment, of the structs that a caller fills.
uncommented()
{
	perl -0ne '
		while (/^struct (xr_\w+_(?:opts|options|call|op|multi|loop)) \{\n(.*?)^\};/msg) {
			my ($type, $body, $is_own) = ($1, $2, 0);
			while ($body =~ /\G(\s*)(?:(\/\*.*?\*\/)|([^;\/]+;)([ \t]*\/\*)?)/gcs) {
				my ($space, $decl, $joined) = ($1, $3, $4);
				if (!defined $decl) {
					$is_own = $space =~ /\n/ || $-[0] == 0;
					next;
				}
				pos($body) -= 2 if defined $joined;
				my ($field) = $decl =~ /(\w+)\)?(?:\([^()]*\)|\[[^\]]*\])?;$/s;
				print "$ARGV: $type.$field has no comment\n"
					if !$is_own && !defined $joined;
				$is_own = 0;
			}
		}' "$1"
}

have gcc clang-19 || cannot "headers.sh: needs gcc or clang-19"
have g++ clang++-19 || cannot "headers.sh: needs g++ or clang++-19"

for file in src/include/xrun/*.h; do
	header=${file#src/include/}
	for tool in gcc clang-19; do
		compile "$header" c c11 "$tool"
	done
	for tool in g++ clang++-19; do
		compile "$header" c++ c++17 "$tool"
	done
	grep -q 'extern "C"' "$file" || problem "$file: nothing for C++"
done

for file in src/include/xrun/*.h; do
	problems_from < <(uncommented "$file")
done
problems_from < <(grep -nE '^[[:space:]]*#[[:space:]]*include "' \
	src/include/xrun/*.h | grep -v '"xrun/' |
	sed 's/$/: not a public header/')
problems_from < <(grep -nE ':[[:space:]]*[0-9]+;' src/include/xrun/*.h |
	sed 's/$/: a bit field/')
finish
