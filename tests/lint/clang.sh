#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang.sh - clang 14 compiles all of it without a warning, as gcc must to build
# it. Its words for two warnings differ.
. "$(dirname "$0")/common.bash"

command -v clang-14 >/dev/null ||
	cannot "clang-14 is not installed: only gcc looked for warnings"

flags=(-std=gnu17 -D_GNU_SOURCE -fsyntax-only -I. -Isrc -Isrc/include
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
	-Winitializer-overrides -Wformat=2 -Wno-unused-parameter
	-Wno-missing-field-initializers
	'-DXRUN_VERSION=""' '-DXRUN_LIBDIR=""' '-DXRUN_LIBDIR_FROM_BIN=""'
	-DXR_BUILTIN)

# Files are small: eight a process, one process a core.
problems_from < <(tracked 'src/*.c' 'launcher/*.c' 'worker/*.c' 'plugins/*.c' \
	'examples/*.c' 'tests/prog/*.c' 'tests/e2e/*.c' 'tests/fake/*.c' |
	xargs -r -n 8 -P "$(nproc)" clang-14 "${flags[@]}" 2>&1 |
	grep -E ': (warning|error): ')
finish
