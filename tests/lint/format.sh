#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# format.sh - clang-format 19 has nothing to say about any C file.
. "$(dirname "$0")/common.bash"

command -v clang-format-19 >/dev/null ||
	cannot "clang-format-19 is not installed: the formatting was not checked"
# The report names each place; the two lines of code that follow it are noise.
problems_from < <(tracked '*.c' '*.h' |
	xargs -r clang-format-19 --dry-run -Werror 2>&1 |
	grep -E ': (error|warning):' | cut -d: -f1,2 | sort -u |
	sed 's/$/: not as clang-format-19 would write it/')
finish
