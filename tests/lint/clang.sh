#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang.sh - clang 19 compiles all of it, tests too, without a warning, as gcc must
# to build it. Its words for two warnings differ. What drives peers needs their
# headers, and is not looked at.
. "$(dirname "$0")/common.bash"

command -v clang-19 >/dev/null ||
	cannot "clang-19 is not installed: only gcc looked for warnings"

flags=(-std=gnu17 -D_GNU_SOURCE -fsyntax-only -I. -Isrc -Isrc/include
	-Wall -Wextra -Wimplicit-fallthrough -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
	-Winitializer-overrides -Wformat=2 -Wno-unused-parameter
	-Wno-missing-field-initializers
	'-DFAKE_NVML=""' '-DREAL_GIT2=""' '-DXRUN_VERSION=""' '-DXRUN_LIBDIR=""' '-DXRUN_LIBDIR_FROM_BIN=""'
	-DXR_BUILTIN)

# The compiler itself, without the driver, takes many files a process; to start
# one for each takes as long as the rest. One process a core.
eval "cc1=($(clang-19 "${flags[@]}" -### -x c /dev/null 2>&1 | tail -n 1))"
[ "${cc1[1]-}" = -cc1 ] || cannot "clang-19 -### does not tell what it would run"
unset 'cc1[-1]' # the file

words=$(mktemp) || exit 1
trap 'rm -f "$words"' EXIT
tracked 'src/*.c' 'launcher/*.c' 'worker/*.c' 'plugins/*.c' \
	'examples/*.c' 'tests/*.c' | grep -v '^tests/bench/peers/' |
	xargs -r -n 24 -P "$(nproc)" "${cc1[@]}" >"$words" 2>&1
status=${PIPESTATUS[2]} # of xargs
problems_from < <(grep -E ': (warning|(fatal )?error): ' "$words")
[ "$status" -eq 0 ] || [ "$problems" -gt 0 ] ||
	problem "clang-19 -cc1: status $status: $(tail -n 1 "$words")"
finish
