#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# abi.sh [BUILD] - libxrun.so shows the names of abi.list and no others, needs
# libc only, and is called libxrun.so.0. BUILD is the build folder, "build".
. "$(dirname "$0")/common.bash"

build=${1:-build}
lib=$build/worker/libxrun.so.0
[ -e "$lib" ] || cannot "abi.sh: $lib is not there; build first"
command -v nm readelf >/dev/null || cannot "abi.sh: needs nm and readelf"

# shown - what the library defines for others, without the version's own name.
shown()
{
	nm -D --defined-only "$lib" | awk '$2 != "A" { print $3 }' | sort
}

# dynamic TAG - what stands in brackets behind TAG in the dynamic section.
dynamic()
{
	readelf -dW "$lib" | sed -n "s/.*($1).*\[\(.*\)\]/\1/p"
}

listed=$(grep -v '^#' tests/lint/abi.list | sort)
problems_from < <(comm -13 <(echo "$listed") <(shown) |
	sed "s,\$, is shown by $lib but not in tests/lint/abi.list,")
problems_from < <(comm -23 <(echo "$listed") <(shown) |
	sed "s,^,tests/lint/abi.list: $lib does not show ,")

[ "$(dynamic SONAME)" = libxrun.so.0 ] ||
	problem "$lib: its SONAME is '$(dynamic SONAME)', not libxrun.so.0"
problems_from < <(dynamic NEEDED | grep -vE '^(libc\.so|ld-linux)' |
	grep -vE '^lib[a-z]*san\.so' | sed "s,^,$lib needs ,")
finish
