#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# abi.sh [BUILD] - libxrun.so shows the names of abi.list and no others, needs
# libc only, and is called libxrun.so.0; statuses keep their numbers, and
# xr_status(3) has them all. BUILD is the build folder, "build".
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

# statuses - "XR_E_INVAL -1 invalid argument", a line for each.
statuses()
{
	sed -n 's/.*S(\(E_[A-Z_]*\), \([0-9]*\), [a-z]*, "\(.*\)").*/XR_\1 -\2 \3/p' \
		src/include/xrun/status.h
}

# documented - the same from the tables of the manual page.
documented()
{
	awk '/^\|  XR_E_/ { name = $2; getline; number = $2; getline
		sub(/^: +/, ""); print name, number, $0 }' man/xr_status.3.scd
}

listed=$(grep '@@' tests/lint/abi.list | sort)
problems_from < <(comm -13 <(echo "$listed") <(shown) |
	sed "s,\$, is shown by $lib but not in tests/lint/abi.list,")
problems_from < <(comm -23 <(echo "$listed") <(shown) |
	sed "s,^,tests/lint/abi.list: $lib does not show ,")

problems_from < <(comm -13 <(statuses | cut -d' ' -f1,2 | sort) \
	<(grep '^XR_E_' tests/lint/abi.list | sort) |
	sed 's,$, of tests/lint/abi.list is not in src/include/xrun/status.h,')
problems_from < <(comm -23 <(statuses | cut -d' ' -f1,2 | sort) \
	<(grep '^XR_E_' tests/lint/abi.list | sort) |
	sed 's,$, of src/include/xrun/status.h is not in tests/lint/abi.list,')
problems_from < <(diff <(statuses) <(documented) | grep '^[<>]' |
	sed 's,^<,man/xr_status.3.scd lacks:,; s,^>,man/xr_status.3.scd has too much:,')

[ "$(dynamic SONAME)" = libxrun.so.0 ] ||
	problem "$lib: its SONAME is '$(dynamic SONAME)', not libxrun.so.0"
problems_from < <(dynamic NEEDED | grep -vE '^(libc\.so|ld-linux)' |
	grep -vE '^lib[a-z]*san\.so' | sed "s,^,$lib needs ,")
finish
